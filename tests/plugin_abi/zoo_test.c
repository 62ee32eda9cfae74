// SPDX-License-Identifier: Apache-2.0
// Plugin files that crash, hang, lie, or that nobody may trust. Each is tried by
// a host that has every file tried in a child process; each has a sentence of
// its own, and the host survives them all.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "test.h"
// Ours.
#include "pestle/runtime.h"
#include "pestle/version.h"

enum { NOBODY = 65534, STRANGER = 54321 };

static char temporary[256];

static pestle_context_t* open_context(const char* path) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .backend_path = path,
                                      .probe_backends = true,
                                      .probe_timeout_ms = 2000};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static const char* in(const char* folder, const char* file) {
  static char paths[8][512];
  static unsigned next;
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", folder, file);
  return strcpy(paths[next++ % 8], path);
}

static const char* zoo_file(const char* name) {
  char file[128];
  snprintf(file, sizeof(file), "libpestle-%s.so", name);
  return in(ZOO_FOLDER, file);
}

static size_t sentences;
static char* seen[128];

// The reason less the path, which tells any two apart.
static void note_sentence(const char* message, const char* path) {
  const char* at = strstr(message, path);
  const char* rest = at ? at + strlen(path) : message;
  for (size_t i = 0; i < sentences; ++i) {
    if (strcmp(seen[i], rest) != 0) continue;
    print_error("two cases have the sentence '%s'\n", rest);
    fail();
  }
  assert_true(sentences < 128);
  seen[sentences++] = strdup(rest);
}

// |path| must be refused with a sentence that has |text| and the path.
static void expect_refusal(pestle_context_t* context, const char* path,
                           pestle_status_code_t code, const char* text) {
  pestle_status_t status = pestle_context_load_backend(context, path);
  if (pestle_status_code(status) != code ||
      !strstr(pestle_status_message(status), text) ||
      !strstr(pestle_status_message(status), path)) {
    print_error("%s: status %d, '%s', expected %d, '%s' and the path\n", path,
                (int)pestle_status_code(status),
                status ? pestle_status_message(status) : "", (int)code, text);
    fail();
  }
  note_sentence(pestle_status_message(status), path);
  pestle_status_release(status);
}

// --- What plugins do ---

typedef struct case_t {
  const char* name;
  pestle_status_code_t code;
  const char* text;
} case_t;

#define DEAD PESTLE_STATUS_UNAVAILABLE
#define WRONG PESTLE_STATUS_INCOMPATIBLE

static const case_t cases[] = {
    {"ctorcrash", DEAD, "crashed in its constructors (signal 11, "},
    {"ctorabort", DEAD, "crashed in its constructors (signal 6, "},
    {"ctorexit", DEAD, "ended the process in its constructors (exit status "},
    {"ctorquit", DEAD, "ended the process in its constructors (exit status 3)"},
    {"ctorhang", DEAD, "did not come back from its constructors within 2000"},
    {"infocrash", DEAD, "crashed in pestle_backend_abi_info (signal 11, "},
    {"infoexit", DEAD, "ended the process in pestle_backend_abi_info"},
    {"infohang", DEAD, "did not come back from pestle_backend_abi_info"},
    {"scorecrash", DEAD, "crashed in pestle_backend_score (signal 11, "},
    {"scoreabort", DEAD, "crashed in pestle_backend_score (signal 6, "},
    {"scoreexit", DEAD, "ended the process in pestle_backend_score"},
    {"scorequit", DEAD, "pestle_backend_score (exit status 3)"},
    {"scorehang", DEAD, "did not come back from pestle_backend_score"},
    {"initcrash", DEAD, "crashed in pestle_backend_init (signal 11, "},
    {"initexit", DEAD, "ended the process in pestle_backend_init"},
    {"inithang", DEAD, "did not come back from pestle_backend_init"},
    {"garbage", DEAD, "crashed in what pestle_backend_init gave"},
    {"describecrash", DEAD, "crashed in target.describe"},
    {"propertycrash", DEAD, "crashed in device.property"},
    {"lateabort", DEAD, "crashed in device.property (signal 6, "},
    {"deinitcrash", DEAD, "crashed in deinit (signal 11, "},
    {"deinithang", DEAD, "did not come back from deinit within 2000"},
    {"describeclose", DEAD, "did not come back from target.describe within"},
    {"scoreleave", DEAD, "crashed in pestle_backend_score (signal 7, "},
    {"scoreflood", DEAD, "wrote into a pipe that is not its own in"},
    {"zinfo", WRONG, "exports no pestle_backend_abi_info"},
    {"zinit", WRONG, "exports no pestle_backend_init"},
    {"zunresolved", DEAD, "pestle_no_such_function"},
    {"initnull", DEAD, "cannot start: it gave no reason"},
    {"initfails", DEAD, "cannot start: UNAVAILABLE: the moon is not full"},
    {"infonull", WRONG, "pestle_backend_abi_info gave NULL"},
    {"infohuge", WRONG, "says that it has 18446744073709551615 bytes"},
    {"zmajor", WRONG, "major version differs: expected 1, found 0"},
    {"zkir", WRONG, "size of pestle_kir_t differs"},
    {"longwhy", DEAD, "not for this machine: xxxxxxxx"},
    {"mute", DEAD, "its score is 0, without a reason"},
    {"negative", DEAD, "its score is -7, without a reason"},
    {"nodescribe", WRONG, "target.describe is NULL"},
    {"notoolchain", WRONG, "target.toolchain_id is NULL"},
    {"nocompile", WRONG, "target.compile is NULL"},
    {"noload", WRONG, "device.load is NULL"},
    {"nounload", WRONG, "device.unload is NULL"},
    {"nofree", WRONG, "device.deallocate, beside allocate, is NULL"},
    {"shorttarget", WRONG, "length of pestle_target_api_t differs"},
    {"shortdevice", WRONG, "length of pestle_device_api_t differs"},
    {"hugetable", WRONG, "pestle_backend_t differs: expected 56, found 109951"},
    {"nametable", WRONG, "gave a table named ''"},
    {"strange", WRONG, "device type 99 is none that this Pestle knows"},
    {"million", WRONG, "1000000 devices; expected at most 1024"},
    {"debt", WRONG, "with -1 devices"},
    {"noid", WRONG, "names no backend or build id"},
    {"colon", WRONG, "'co:lon' is no name for a backend"},
    {"shout", WRONG, "'SHOUT' is no name for a backend"},
    {"cpu", WRONG, "neither cpu nor gpu"},
    {"lengthy", WRONG, "'a_name_that_is_longer_than_any_backend_m' is no name"},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void test_plugins(void** state) {
  (void)state;
  pestle_context_t* context = open_context("/nonexistent");
  for (size_t i = 0; i < CASES; ++i) {
    expect_refusal(context, zoo_file(cases[i].name), cases[i].code,
                   cases[i].text);
  }
  // And one that is right, afterwards.
  pestle_device_t* device;
  assert_ok(pestle_context_load_backend(context, zoo_file("tame")));
  assert_ok(pestle_context_device(context, "tame", &device));
  pestle_context_release(context);
}

// One that says that its compiler half works without a device is tried for that
// in a child too.
static void test_targets(void** state) {
  (void)state;
  static const char* const rows[][2] = {
      {"alonecrash", "crashed in pestle_backend_init (signal 11"},
      {"alonehang", "did not come back from target.describe within 2000"}};
  pestle_context_t* context = open_context("/nonexistent");
  for (size_t i = 0; i < 2; ++i) {
    pestle_device_t* device;
    const char* path = zoo_file(rows[i][0]);
    assert_error(pestle_context_load_backend(context, path), UNAVAILABLE,
                 "no flux capacitor");
    assert_error(pestle_context_target(context, rows[i][0], &device),
                 UNAVAILABLE, rows[i][1]);
    assert_null(device);
  }
  pestle_context_release(context);
}

// What a filter sees of a file that was tried in a child is what it says itself.
static bool note_candidate(void* user, const pestle_candidate_t* candidate) {
  if (strcmp(candidate->name, "talker") != 0) return true;
  const pestle_backend_abi_info_t* info = candidate->abi_info;
  assert_int_equal(candidate->score, 77);
  assert_string_equal(candidate->path,
                      in(temporary, "talk/libpestle-talker.so"));
  assert_int_equal(info->struct_size, sizeof(*info));
  assert_int_equal(info->abi_major, PESTLE_ABI_MAJOR);
  assert_int_equal(info->abi_minor, 1);
  assert_int_equal(info->sizeof_inst, sizeof(pestle_kir_inst_t));
  assert_int_equal(info->sizeof_kir, sizeof(pestle_kir_t));
  assert_string_equal(info->name, "talker");
  assert_string_equal(info->build_id, "fake-1");
  assert_string_equal(info->host_build_id, pestle_build_id());
  assert_int_equal(info->device_type, PESTLE_DEVICE_CUDA);
  ++*(int*)user;
  return false;
}

static void test_filter(void** state) {
  (void)state;
  int calls = 0;
  const char* folder = in(temporary, "talk");
  assert_int_equal(mkdir(folder, 0755), 0);
  assert_int_equal(
      symlink(zoo_file("talker"), in(temporary, "talk/libpestle-talker.so")),
      0);
  pestle_context_t* context = open_context(folder);
  pestle_backend_filter_t filter = {
      .struct_size = sizeof(filter), .accept = note_candidate, .user = &calls};
  assert_ok(pestle_context_load_all(context, &filter));
  assert_int_equal(calls, 1);
  pestle_context_release(context);
}

// A host that leaves its children to the system is told less, but not wrongly.
static void test_ignored_children(void** state) {
  (void)state;
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  pestle_context_t* context = open_context("/nonexistent");
  assert_error(pestle_context_load_backend(context, zoo_file("scorecrash")),
               UNAVAILABLE,
               "crashed or ended the process in pestle_backend_sc");
  assert_error(pestle_context_load_backend(context, zoo_file("scorehang")),
               UNAVAILABLE, "did not come back from pestle_backend_score");
  assert_ok(pestle_context_load_backend(context, zoo_file("tame")));
  signal(SIGCHLD, before);
  pestle_context_release(context);
}

// A process that takes what it can get of the one CPU.
static pid_t start_rival(void) {
  pid_t pid = fork();
  while (!pid) {
  }
  assert_true(pid > 0);
  return pid;
}

// On a busy machine half a second of work may take four: no more of it counts
// than the plugin was given a CPU for.
static void test_busy_machine(void** state) {
  (void)state;
  enum { RIVALS = 7 };
  cpu_set_t before, one;
  if (access("/proc/self/schedstat", R_OK)) skip();
  assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (size_t i = 0; !CPU_COUNT(&one); ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
  pid_t rivals[RIVALS];
  for (int i = 0; i < RIVALS; ++i)
    rivals[i] = start_rival();
  pestle_context_t* context = open_context("/nonexistent");
  int64_t begin = pestle_clock_ns();
  pestle_status_t status =
      pestle_context_load_backend(context, zoo_file("busy"));
  int64_t took = pestle_clock_ns() - begin;
  for (int i = 0; i < RIVALS; ++i) {
    kill(rivals[i], SIGKILL);
    assert_int_equal(waitpid(rivals[i], NULL, 0), rivals[i]);
  }
  assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
  assert_ok(status);
  print_message("half a second of work took %d ms\n", (int)(took / 1000000));
  pestle_context_release(context);
}

// The sentence of a file far down is whole.
static void test_long_path(void** state) {
  (void)state;
  char path[1400], line[3200];
  int size = snprintf(path, sizeof(path), "%s", temporary);
  for (int i = 0; i < 6; ++i) {
    size += snprintf(path + size, sizeof(path) - (size_t)size, "/%0190d", i);
  }
  snprintf(line, sizeof(line), "mkdir -m 755 -p '%s' && cp '%s' '%s'", path,
           zoo_file("scoreabort"), path);
  assert_int_equal(system(line), 0);
  snprintf(path + size, sizeof(path) - (size_t)size,
           "/libpestle-scoreabort.so");
  pestle_context_t* context = open_context("/nonexistent");
  pestle_status_t status = pestle_context_load_backend(context, path);
  assert_non_null(strstr(pestle_status_message(status), path));
  assert_non_null(
      strstr(pestle_status_message(status), "mend or remove the pl"));
  pestle_status_release(status);
  pestle_context_release(context);
}

// --- What files are ---

static void copy_file(const char* from, const char* to) {
  char* data;
  size_t size;
  pestle_allocator_t a = pestle_allocator_system();
  assert_ok(pestle_file_read(from, (size_t)1 << 24, a, &data, &size));
  assert_ok(pestle_file_write(to, pestle_str_make(data, size)));
  assert_int_equal(chmod(to, 0644), 0);
  pestle_dealloc(a, data, size + 1);
}

// A copy of the tame plugin with |count| bytes at |offset| replaced.
static const char* patched(const char* file, size_t offset, const char* bytes,
                           size_t count) {
  const char* path = in(temporary, file);
  copy_file(zoo_file("tame"), path);
  int handle = open(path, O_WRONLY);
  assert_true(handle >= 0);
  assert_int_equal(pwrite(handle, bytes, count, (off_t)offset), (ssize_t)count);
  close(handle);
  return path;
}

static const char* written(const char* file, const char* text) {
  const char* path = in(temporary, file);
  assert_ok(pestle_file_write(path, pestle_str(text)));
  return path;
}

static void test_files(void** state) {
  (void)state;
  pestle_context_t* context = open_context("/nonexistent");
  expect_refusal(context, written("libpestle-text.so", "no library\n"), DEAD,
                 "is not an ELF library");
  expect_refusal(context, patched("libpestle-arch.so", 18, "\xb7\0", 2), DEAD,
                 "is built for another kind of machine");
  const char* path = patched("libpestle-cut.so", 0, "\x7f", 1);
  assert_int_equal(truncate(path, 700), 0);
  expect_refusal(context, path, DEAD, "is cut short");
  expect_refusal(context, patched("libpestle-type.so", 16, "\x01\0", 2), DEAD,
                 "only ET_DYN");
  path = in(temporary, "libpestle-folder.so");
  assert_int_equal(mkdir(path, 0755), 0);
  expect_refusal(context, path, DEAD, "it is no regular file");
  path = in(temporary, "libpestle-loop.so");
  assert_int_equal(symlink("libpestle-loop.so", path), 0);
  assert_code(pestle_context_load_backend(context, path), NOT_FOUND);
  path = in(temporary, "libpestle-dangling.so");
  assert_int_equal(symlink("nothing", path), 0);
  assert_code(pestle_context_load_backend(context, path), NOT_FOUND);
  pestle_context_release(context);
  // In a folder that is searched they are rows with reasons.
  path = in(temporary, "libpestle-alias.so");
  copy_file(zoo_file("alias"), path);
  path = in(temporary, "libpestle-pipe.so");
  assert_int_equal(mkfifo(path, 0644), 0);
  context = open_context(temporary);
  assert_ok(pestle_context_load_backends(context));
  static const char* const rows[][2] = {
      {"dangling", "leads to no file"},
      {"loop", "leads to no file"},
      {"pipe", "no regular file"},
      {"alias", "is named for backend 'alias', but holds 'other_name'"}};
  for (size_t i = 0; i < 4; ++i) {
    bool found = false;
    for (size_t r = 0; r < pestle_context_backend_count(context); ++r) {
      pestle_backend_info_t info = {.struct_size = sizeof(info)};
      assert_ok(pestle_context_backend_info(context, r, &info));
      found |= !strcmp(info.name, rows[i][0]) &&
               strstr(info.reason, rows[i][1]) && !info.backend;
    }
    if (!found) print_error("%s: no row with its reason\n", rows[i][0]);
    assert_true(found);
  }
  pestle_context_release(context);
}

// --- Who owns them ---

static void test_trust(void** state) {
  (void)state;
  pestle_context_t* context = open_context("/nonexistent");
  const char* path = in(temporary, "libpestle-open.so");
  copy_file(zoo_file("tame"), path);
  assert_int_equal(chmod(path, 0646), 0);
  expect_refusal(context, path, DEAD, "the file may be written by others");
  const char* folder = in(temporary, "public");
  assert_int_equal(mkdir(folder, 0755), 0);
  path = in(folder, "libpestle-tame.so");
  copy_file(zoo_file("tame"), path);
  assert_int_equal(chmod(folder, 01777), 0);
  expect_refusal(context, path, DEAD, "its folder may be written by others");
  // A link in a good folder to a file in that one.
  const char* link = in(temporary, "libpestle-link.so");
  assert_int_equal(symlink("public/libpestle-tame.so", link), 0);
  pestle_status_t status = pestle_context_load_backend(context, link);
  assert_error(status, UNAVAILABLE, "its folder may be written by others");
  // A link there that leads on, to a file in a good one.
  assert_int_equal(symlink(zoo_file("tame"), in(folder, "middle.so")), 0);
  link = in(temporary, "libpestle-chain.so");
  assert_int_equal(symlink("public/middle.so", link), 0);
  status = pestle_context_load_backend(context, link);
  assert_error(status, UNAVAILABLE, "its folder may be written by others");
  // A folder further up is not judged.
  assert_int_equal(mkdir(in(folder, "own"), 0755), 0);
  path = in(folder, "own/libpestle-tame.so");
  copy_file(zoo_file("tame"), path);
  assert_ok(pestle_context_load_backend(context, path));
  pestle_context_release(context);
}

static void test_strangers_file(void** state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("only root can give files away\n");
    skip();
  }
  pestle_context_t* context = open_context("/nonexistent");
  const char* path = in(temporary, "libpestle-stranger.so");
  copy_file(zoo_file("tame"), path);
  assert_int_equal(chown(path, STRANGER, STRANGER), 0);
  expect_refusal(context, path, DEAD,
                 "the file belongs neither to root, nor to this user");
  pestle_context_release(context);
}

// The file may be read by root alone, or by nobody; a user without rights tries
// it.
static int load_unreadable(const char* path) {
  pestle_context_t* context = open_context("/nonexistent");
  if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY))) return 2;
  pestle_status_t status = pestle_context_load_backend(context, path);
  bool is_right = pestle_status_code(status) == PESTLE_STATUS_UNAVAILABLE &&
                  strstr(pestle_status_message(status), "cannot be read: Perm");
  if (!is_right) print_error("%s\n", pestle_status_message(status));
  pestle_status_release(status);
  pestle_context_release(context);
  return is_right ? 0 : 1;
}

static void test_unreadable(void** state) {
  (void)state;
  const char* path = in(temporary, "libpestle-secret.so");
  copy_file(zoo_file("tame"), path);
  assert_int_equal(chmod(path, geteuid() ? 0 : 0600), 0);
  pid_t child = fork();
  if (!child) _exit(load_unreadable(path));
  int end;
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
}

// --- Files that are swapped between the look and the load ---

static bool swap_file(void* user, const pestle_candidate_t* candidate) {
  (void)user;
  if (!strcmp(candidate->name, "tame")) {
    copy_file(zoo_file("scorecrash"), in(temporary, "swap/new"));
    assert_int_equal(rename(in(temporary, "swap/new"), candidate->path), 0);
  }
  return true;
}

static bool swap_link(void* user, const pestle_candidate_t* candidate) {
  (void)user;
  if (!strcmp(candidate->name, "tame")) {
    assert_int_equal(unlink(candidate->path), 0);
    assert_int_equal(symlink(zoo_file("initcrash"), candidate->path), 0);
  }
  return true;
}

static pestle_backend_info_t info_of(pestle_context_t* context,
                                     const char* name) {
  pestle_backend_info_t info = {.struct_size = sizeof(info)};
  for (size_t i = 0; i < pestle_context_backend_count(context); ++i) {
    assert_ok(pestle_context_backend_info(context, i, &info));
    if (!strcmp(info.name, name)) return info;
  }
  fail();
  return info;
}

static void test_swaps(void** state) {
  (void)state;
  const char* folder = in(temporary, "swap");
  assert_int_equal(mkdir(folder, 0755), 0);
  pestle_context_t* context = open_context(folder);
  copy_file(zoo_file("tame"), in(temporary, "swap/libpestle-tame.so"));
  pestle_backend_filter_t filter = {.struct_size = sizeof(filter),
                                    .accept = swap_file};
  assert_ok(pestle_context_load_all(context, &filter));
  pestle_backend_info_t info = info_of(context, "tame");
  assert_non_null(
      strstr(info.reason, "was changed or put in place of another"));
  assert_int_equal(info.verdict, PESTLE_VERDICT_UNTRUSTED);
  pestle_context_release(context);
  // A link that is turned elsewhere: what was judged is what is loaded.
  context = open_context(in(temporary, "swap"));
  const char* path = in(temporary, "swap/libpestle-tame.so");
  assert_int_equal(unlink(path), 0);
  assert_int_equal(symlink(zoo_file("tame"), path), 0);
  filter.accept = swap_link;
  assert_ok(pestle_context_load_all(context, &filter));
  assert_string_equal(info_of(context, "tame").reason, "");
  pestle_context_release(context);
}

// --- The command ---

// Runs it with the zoo as its only folder, and gives what it printed.
static int run_command(const char* options, char* text, size_t capacity) {
  char line[1200];
  snprintf(line, sizeof(line), "'%s/pestle' plugins %s --backend-path '%s'",
           getenv("PESTLE_BUILD_DIR"), options, in(temporary, "cli"));
  FILE* pipe = popen(line, "r");
  assert_non_null(pipe);
  size_t size = fread(text, 1, capacity - 1, pipe);
  text[size] = 0;
  return pclose(pipe);
}

static void test_command(void** state) {
  (void)state;
  if (!getenv("PESTLE_BUILD_DIR")) skip();
  assert_int_equal(mkdir(in(temporary, "cli"), 0755), 0);
  // All but most of those that hang: each takes its 5 s.
  for (size_t i = 0; i < CASES; ++i) {
    const char* name = cases[i].name;
    if (strstr(name, "hang") && strcmp(name, "scorehang") != 0) continue;
    char link[128];
    snprintf(link, sizeof(link), "cli/libpestle-%s.so", name);
    assert_int_equal(symlink(zoo_file(name), in(temporary, link)), 0);
  }
  static const char* const good[] = {"tame", "printer"};
  for (size_t i = 0; i < 2; ++i) {
    char link[128];
    snprintf(link, sizeof(link), "cli/libpestle-%s.so", good[i]);
    assert_int_equal(symlink(zoo_file(good[i]), in(temporary, link)), 0);
  }
  static char text[1 << 17];
  assert_int_equal(run_command("--why", text, sizeof(text)), 0);
  for (size_t i = 0; i < CASES; ++i) {
    const char* name = cases[i].name;
    if (strstr(name, "hang") && strcmp(name, "scorehang") != 0) continue;
    if (!strstr(text, zoo_file(name)) && !strstr(text, name)) {
      print_error("--why does not list %s\n", name);
      fail();
    }
  }
  assert_non_null(strstr(text, "crashed in its constructors (signal 11"));
  assert_non_null(strstr(text, "pestle_backend_score within 5000 ms"));
  assert_non_null(strstr(text, "used: score 3"));
}

// The kit opens what it tests, but not before a child has: it has an exit code of
// its own, and a sentence. What ends the process in an op is wrong in that op.
static void test_kit(void** state) {
  (void)state;
  static const struct {
    const char* name;
    int code;
    const char* text;
  } rows[] = {
      {"scorequit", 4,
       "ended the process in pestle_backend_score (exit status 3)"},
      {"deinitcrash", 4, "crashed in deinit (signal 11"},
      {"compilecrash", 1,
       "WRONG: add on f32: the backend ended the process: signal 11"},
      {"compilequit", 1,
       "WRONG: add on f32: the backend ended the process: exit status 3"},
      {"tame", 0, "unsupported: add on f32"}};
  static char text[1 << 15];
  char options[600], kit[600];
  snprintf(kit, sizeof(kit), "%s/pestle-conform", getenv("PESTLE_BUILD_DIR"));
  if (!getenv("PESTLE_BUILD_DIR") || access(kit, X_OK) != 0) skip();
  // A sanitizer would end what crashes with a status of its own.
  static const char* const variables[] = {"ASAN_OPTIONS", "TSAN_OPTIONS"};
  char* before[2];
  for (int v = 0; v < 2; ++v) {
    const char* asked = getenv(variables[v]);
    before[v] = asked ? strdup(asked) : NULL;
    snprintf(options, sizeof(options), "%s:handle_segv=0", asked ? asked : "");
    setenv(variables[v], options, 1);
  }
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    snprintf(options, sizeof(options), "test --ops add --jobs 3 '%s' 2>&1",
             zoo_file(rows[i].name));
    int end = run_command(options, text, sizeof(text));
    if (!WIFEXITED(end) || WEXITSTATUS(end) != rows[i].code ||
        !strstr(text, rows[i].text))
      print_error("%s: %d\n%s\n", rows[i].name, end, text);
    assert_true(WIFEXITED(end) && WEXITSTATUS(end) == rows[i].code);
    assert_non_null(strstr(text, rows[i].text));
  }
  for (int v = 0; v < 2; ++v) {
    if (before[v]) {
      setenv(variables[v], before[v], 1);
    } else {
      unsetenv(variables[v]);
    }
    free(before[v]);
  }
}

// --- All ---

static int make_folder(void** state) {
  (void)state;
  const char* base = getenv("TMPDIR");
  snprintf(temporary, sizeof(temporary), "%s/pestle-zoo-XXXXXX",
           base && *base ? base : "/tmp");
  return mkdtemp(temporary) && !chmod(temporary, 0755) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  char line[300];
  snprintf(line, sizeof(line), "rm -rf '%s'", temporary);
  while (sentences)
    free(seen[--sentences]);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plugins),
      cmocka_unit_test(test_targets),
      cmocka_unit_test(test_filter),
      cmocka_unit_test(test_long_path),
      cmocka_unit_test(test_ignored_children),
      cmocka_unit_test(test_busy_machine),
      cmocka_unit_test(test_files),
      cmocka_unit_test(test_trust),
      cmocka_unit_test(test_strangers_file),
      cmocka_unit_test(test_unreadable),
      cmocka_unit_test(test_swaps),
      cmocka_unit_test(test_command),
      cmocka_unit_test(test_kit),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
