// SPDX-License-Identifier: Apache-2.0
// A plugin is tried in a child while calls to the system fail, are interrupted or move
// few bytes, and while what the child reports is cut or forged. The loader is linked
// into this program, whose own functions of these names it calls.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "test.h"
// Ours.
#include "pestle/plugin.h"
#include "pestle/runtime.h"

#define NEXT(name) __extension__((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// What becomes of the |number|-th call of |call|, and of those behind it if |all|.
static struct {
  const char* call;
  int number, error, seen;
  bool all;
  size_t bytes;  // instead of failing it moves no more
} fault;

// errno of this call of |call|, or 0; a limit of its bytes in |*size|.
static int fault_of(const char* call, size_t* size) {
  if (!fault.call || strcmp(fault.call, call) != 0) return 0;
  ++fault.seen;
  if (fault.seen != fault.number && !(fault.all && fault.seen > fault.number))
    return 0;
  if (size && fault.bytes && *size > fault.bytes) *size = fault.bytes;
  return fault.error;
}

#define FAIL_IF(call, size)                \
  do {                                     \
    int error_ = fault_of((call), (size)); \
    if (error_) {                          \
      errno = error_;                      \
      return -1;                           \
    }                                      \
  } while (0)

int pipe2(int ends[2], int flags) {
  FAIL_IF("pipe2", NULL);
  return NEXT(pipe2)(ends, flags);
}

pid_t fork(void) {
  FAIL_IF("fork", NULL);
  return NEXT(fork)();
}

int poll(struct pollfd* files, nfds_t count, int timeout) {
  if (count) FAIL_IF("poll", NULL);
  return NEXT(poll)(files, count, timeout);
}

// Bytes of a report, which is written as a whole: those at |at| become |bytes|.
static struct {
  size_t at, size;
  int32_t kind;
  unsigned char bytes[8];
} forgery;

static bool is_pipe(int file) {
  struct stat info;
  return !fstat(file, &info) && S_ISFIFO(info.st_mode);
}

ssize_t read(int file, void* data, size_t size) {
  if (is_pipe(file))
    FAIL_IF("read", &size);
  else
    FAIL_IF("read schedstat", &size);
  return NEXT(read)(file, data, size);
}

ssize_t write(int file, const void* data, size_t size) {
  unsigned char forged[16384];
  int32_t kind = 0;
  if (size > 1000) memcpy(&kind, data, sizeof(kind));
  if (kind && kind == forgery.kind && size <= sizeof(forged)) {
    memcpy(forged, data, size);
    size_t at = forgery.at < size ? forgery.at
                                  : size - sizeof(pestle_backend_abi_info_t);
    memcpy(forged + at, forgery.bytes, forgery.size);
    data = forged;
  }
  if (is_pipe(file)) FAIL_IF("write", &size);
  ssize_t done = NEXT(write)(file, data, size);
  if (is_pipe(file) && fault.call && !strcmp(fault.call, "end after write"))
    _exit(9);
  return done;
}

pid_t waitpid(pid_t pid, int* end, int flags) {
  FAIL_IF("waitpid", NULL);
  return NEXT(waitpid)(pid, end, flags);
}

int waitid(idtype_t type, id_t id, siginfo_t* info, int flags) {
  FAIL_IF("waitid", NULL);
  return NEXT(waitid)(type, id, info, flags);
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(list, int) : 0;
  va_end(list);
  if (strstr(path, "schedstat")) FAIL_IF("open schedstat", NULL);
  if (!strcmp(path, "/dev/null")) FAIL_IF("open null", NULL);
  return NEXT(open)(path, flags, mode);
}

static int count_files(void) {
  int count = 0;
  for (int file = 0; file < 256; ++file)
    count += fcntl(file, F_GETFD) >= 0;
  return count;
}

static pestle_context_t* open_context(int timeout_ms) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .backend_path = "/nonexistent",
                                      .probe_backends = true,
                                      .probe_timeout_ms = timeout_ms};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static const char* zoo_file(const char* name) {
  static char path[512];
  snprintf(path, sizeof(path), "%s/libpestle-%s.so", ZOO_FOLDER, name);
  return path;
}

typedef struct case_t {
  const char *plugin, *call;
  int number, error;
  bool all;
  size_t bytes;
  const char* text;  // of the refusal; NULL: it is loaded all the same
} case_t;

#define CANNOT "cannot be tried in a child process: "

static const case_t cases[] = {
    {"tame", "pipe2", 1, EMFILE, false, 0, CANNOT "Too many open files"},
    {"tame", "fork", 1, EAGAIN, false, 0, CANNOT "Resource temporarily"},
    {"tame", "poll", 1, EINTR, false, 0, NULL},
    {"tame", "poll", 1, ENOMEM, false, 0, CANNOT "Cannot allocate memory"},
    {"tame", "poll", 3, EINVAL, false, 0, CANNOT "Invalid argument"},
    {"tame", "read", 1, EINTR, false, 0, NULL},
    {"tame", "read", 1, EIO, false, 0, CANNOT "Input/output error"},
    {"tame", "read", 2, EIO, false, 0, CANNOT "Input/output error"},
    {"tame", "read", 1, 0, true, 700, NULL},
    {"tame", "write", 1, EINTR, false, 0, NULL},
    {"tame", "write", 1, 0, true, 500, NULL},
    {"tame", "write", 1, EIO, false, 0,
     "ended the process in its start (exit status 125)"},
    {"tame", "write", 4, EIO, false, 0,
     "ended the process in pestle_backend_abi_info (exit status 125)"},
    // Half of a report, and its end.
    {"tame", "end after write", 1, 0, false, 0,
     "ended the process in the look at its headers (exit status 9)"},
    {"tame", "waitpid", 1, EINTR, false, 0, NULL},
    {"scorecrash", "waitpid", 1, EINTR, false, 0, "(signal 11, "},
    {"scorecrash", "waitid", 1, EINTR, false, 0, "(signal 11, "},
    {"scorecrash", "waitid", 1, ECHILD, false, 0, "(signal 11, "},
    // Nobody waits for the child any more.
    {"scorecrash", "waitpid", 1, ECHILD, false, 0, "it is not known which"},
    {"tame", "open null", 1, EMFILE, false, 0, NULL},
    {"asked", "nothing", 1, 0, false, 0, NULL},
    {"brief", "nothing", 1, 0, false, 0, NULL},
    {"newer", "nothing", 1, 0, false, 0, NULL},
    {"opsalone", "nothing", 1, 0, false, 0, NULL},
    {"scorehang", "open schedstat", 1, ENOENT, true, 0,
     "did not come back from pestle_backend_score within 150 ms"},
    {"scorehang", "read schedstat", 1, EIO, true, 0,
     "did not come back from pestle_backend_score within 150 ms"},
    {"scorehang", "read schedstat", 1, 0, true, 2,
     "did not come back from pestle_backend_score within 150 ms"},
};

static void test_calls(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
    const case_t* c = &cases[i];
    bool hangs = strstr(c->plugin, "hang") != NULL;
    pestle_context_t* context = open_context(hangs ? 150 : 20000);
    int files = count_files();
    const char* path = zoo_file(c->plugin);
    fault.call = c->call;
    fault.number = c->number, fault.error = c->error, fault.seen = 0;
    fault.all = c->all, fault.bytes = c->bytes;
    pestle_status_t status = pestle_context_load_backend(context, path);
    fault.call = NULL;
    const char* message = pestle_status_message(status);
    pestle_status_code_t code =
        c->text ? PESTLE_STATUS_UNAVAILABLE : PESTLE_STATUS_OK;
    if (pestle_status_code(status) != code ||
        (c->text && (!strstr(message, c->text) || !strstr(message, path))))
      print_error("case %zu: '%s', expected '%s'\n", i, message,
                  c->text ? c->text : "");
    assert_int_equal(pestle_status_code(status), code);
    assert_true(!c->text || strstr(message, c->text));
    pestle_status_release(status);
    // No file and no child stays, and what failed once is tried again.
    assert_int_equal(count_files(), files);
    bool lost = !strcmp(c->call, "waitpid") && c->error == ECHILD;
    assert_int_equal(waitpid(-1, NULL, WNOHANG) > 0, lost);
    if (c->text && !strcmp(c->plugin, "tame"))
      assert_ok(pestle_context_load_backend(context, path));
    pestle_context_release(context);
  }
}

static int tries_of_crash;

static void count_tries(void* user, pestle_log_level_t level,
                        const char* message) {
  (void)user, (void)level;
  tries_of_crash += strstr(message, "backend tried in a child: ") &&
                    strstr(message, "scorecrash");
}

// What a child did not survive is not tried again for another type of device.
static void test_once(void** state) {
  (void)state;
  char folder[] = "/tmp/pestle-child-XXXXXX", link[128];
  assert_non_null(mkdtemp(folder));
  static const char* const names[] = {"scorecrash", "tame"};
  for (int i = 0; i < 2; ++i) {
    snprintf(link, sizeof(link), "%s/libpestle-%s.so", folder, names[i]);
    assert_int_equal(symlink(zoo_file(names[i]), link), 0);
  }
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .log = count_tries,
                                      .log_level = PESTLE_LOG_DEBUG,
                                      .backend_path = folder,
                                      .probe_backends = true,
                                      .probe_timeout_ms = 20000};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  static const char* const types[] = {"cpu", "gpu"};
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(pestle_context_device_count(context, types[i]) > 0, !i);
    assert_int_equal(tries_of_crash, 1);
  }
  assert_non_null(pestle_context_backend(context, "tame"));
  // Who asks for all of them anew has it tried.
  assert_ok(pestle_context_load_all(context, NULL));
  assert_int_equal(tries_of_crash, 2);
  pestle_context_release(context);
  for (int i = 0; i < 2; ++i) {
    snprintf(link, sizeof(link), "%s/libpestle-%s.so", folder, names[i]);
    unlink(link);
  }
  rmdir(folder);
}

// A plugin that finds the pipe writes what it likes: a result that is none is not
// believed, whichever of its numbers is wrong.
static void test_forgeries(void** state) {
  (void)state;
  enum { STEP = 0x50455354, RESULT = 0x50455355 };
  static const struct {
    int32_t kind;
    size_t at, size;
    unsigned char bytes[8];
  } rows[] = {
      {STEP, 0, 4, {1, 2, 3, 4}},
      {RESULT, 4, 4, {99, 0, 0, 0}},
      {RESULT, 4, 4, {0xff, 0xff, 0xff, 0xff}},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    pestle_context_t* context = open_context(20000);
    forgery.kind = rows[i].kind, forgery.at = rows[i].at;
    forgery.size = rows[i].size;
    memcpy(forgery.bytes, rows[i].bytes, sizeof(forgery.bytes));
    assert_error(pestle_context_load_backend(context, zoo_file("tame")),
                 UNAVAILABLE, "wrote into a pipe that is not its own in ");
    forgery.kind = 0;
    assert_ok(pestle_context_load_backend(context, zoo_file("tame")));
    pestle_context_release(context);
  }
  // A length of the plugin's own table, which the host would copy by.
  pestle_context_t* context = open_context(20000);
  forgery.kind = RESULT, forgery.at = SIZE_MAX, forgery.size = 8;
  memset(forgery.bytes, 0x7f, 8);
  pestle_status_t status =
      pestle_context_load_backend(context, zoo_file("tame"));
  forgery.kind = 0;
  assert_error(status, UNAVAILABLE, "wrote into a pipe that is not its own");
  pestle_context_release(context);
}

// Each request for memory fails, here or in the child.
static void test_memory(void** state) {
  (void)state;
  static const char* const plugins[] = {"tame", "scorecrash", "mute", "talker"};
  for (size_t i = 0; i < sizeof(plugins) / sizeof(*plugins); ++i) {
    for (size_t k = 1;; ++k) {
      pestle_test_allocator_t memory;
      pestle_test_allocator_init(&memory, 0);
      pestle_context_options_t options = {
          .struct_size = sizeof(options),
          .allocator = pestle_test_allocator(&memory),
          .cache_dir = "",
          .threads = 1,
          .backend_path = "/nonexistent",
          .probe_backends = true,
          .probe_timeout_ms = 20000};
      pestle_context_t* context;
      assert_ok(pestle_context_create(&options, &context));
      atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
      const char* path = zoo_file(plugins[i]);
      pestle_status_t status = pestle_context_load_backend(context, path);
      bool failed = pestle_test_allocator_failed(&memory);
      pestle_status_code_t code = pestle_status_code(status);
      bool is_good = plugins[i][0] == 't';
      pestle_status_code_t whole =
          is_good ? PESTLE_STATUS_OK : PESTLE_STATUS_UNAVAILABLE;
      if (failed && code != PESTLE_STATUS_OUT_OF_MEMORY)
        print_error("%s, request %zu: %s\n", plugins[i], k,
                    pestle_status_code_name(code));
      // The child's memory is a copy: what fails there is not counted here.
      if (failed) assert_int_equal(code, PESTLE_STATUS_OUT_OF_MEMORY);
      if (!failed && code != PESTLE_STATUS_OUT_OF_MEMORY)
        assert_int_equal(code, whole);
      pestle_status_release(status);
      atomic_store(&memory.fail_at, 0);
      if (is_good && code)
        assert_ok(pestle_context_load_backend(context, path));
      pestle_context_release(context);
      pestle_test_allocator_check(&memory);
      if (!failed && code == whole) break;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_once),
      cmocka_unit_test(test_forgeries),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
