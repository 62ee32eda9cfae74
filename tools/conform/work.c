// SPDX-License-Identifier: Apache-2.0
// Workers: child processes that each open the backend and take cells until none
// is left. A backend that crashes takes a worker with it and nothing else.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "ir/graph.h"
#include "tools/conform/kit.h"

// --- The backend ---

static bool is_file(const char* plugin) {
  return strchr(plugin, '/') ||
         pestle_str_ends_with(pestle_str(plugin), PESTLE_STR(".so"));
}

// One worker speaks for all: they open the same.
static bool is_quiet;

static void log_message(void* user, pestle_log_level_t level,
                        const char* message) {
  (void)user, (void)level;
  if (!is_quiet) fprintf(stderr, "pestle-conform: %s\n", message);
}

// The name of the backend in the file |plugin|, as a device or to compile for.
static const char* name_of(pestle_context_t* context, const char* plugin) {
  size_t count = pestle_context_backend_count(context);
  for (size_t i = 0; i < count && is_file(plugin); ++i) {
    pestle_backend_info_t info = {.struct_size = sizeof(info)};
    pestle_status_release(pestle_context_backend_info(context, i, &info));
    bool is_usable = info.backend || info.is_target;
    if (is_usable && !strcmp(info.path, plugin)) return info.name;
  }
  return plugin;
}

static pestle_status_t open_context(bool strict,
                                    pestle_context_t** out_context) {
  const char* plugin = kit.plugin;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .log = log_message,
                                      .log_level = PESTLE_LOG_WARN,
                                      .strict = strict,
                                      .no_cache = true,
                                      .manual_backends = true,
                                      .probe_backends = true,
                                      .backend_path = kit.folders};
  PESTLE_TRY(pestle_context_create(&options, out_context));
  if (!is_file(plugin) && pestle_context_backend(*out_context, plugin)) {
    return NULL;
  }
  pestle_status_t status =
      is_file(plugin) ? pestle_context_load_backend(*out_context, plugin)
                      : pestle_context_load_best(*out_context, plugin);
  pestle_device_t* device;
  // Without a device it may compile all the same.
  const char* name = name_of(*out_context, plugin);
  pestle_status_t target =
      status ? pestle_context_target(*out_context, name, &device) : NULL;
  bool compiles = status && !target;
  pestle_status_release(target);
  if (!compiles) return status;
  pestle_status_release(status);
  return NULL;
}

// What has library ops alone, LAPACK say, compiles no kernel that could be held
// against the reference.
static pestle_status_t check_target(void) {
  pestle_device_t* device;
  return pestle_context_target(kit.strict, kit.backend, &device);
}

// --- A worker ---

enum { CELLS = PESTLE_OP_COUNT * PESTLE_DTYPE_COUNT, NO_CELL = CELLS };
// How a worker ends that could not open the backend.
enum { EXIT_NOT_OPENED = 4 };
// The slowest driver that is known takes a minute for a cell.
enum { CELL_SECONDS = 900 };

typedef struct worker_t {
  pid_t pid;       // 0: none; the parent's to write
  atomic_uint at;  // the cell at work, which the worker writes
} worker_t;

static kit_cell_t* cell_at(unsigned i) {
  return &kit.results->cells[i / PESTLE_DTYPE_COUNT][i % PESTLE_DTYPE_COUNT];
}

static void run_cell(unsigned i) {
  pestle_op_t op = (pestle_op_t)(i / PESTLE_DTYPE_COUNT);
  pestle_dtype_t dtype = (pestle_dtype_t)(i % PESTLE_DTYPE_COUNT);
  kit.cell = cell_at(i);
  if (pestle_op_is_scalar(op)) {
    kit_run_scalar(op, dtype);
  } else {
    kit_run_structured(op, dtype);
  }
}

static int report_status(pestle_status_t status) {
  char text[2048];
  pestle_status_format(status, text, sizeof(text));
  if (!is_quiet) fprintf(stderr, "pestle: error: %s\n", text);
  pestle_status_release(status);
  return EXIT_NOT_OPENED;
}

// On a terminal: which of how many cells is at work.
static void show_progress(pestle_op_t op, unsigned i) {
  unsigned begun = atomic_fetch_add(&kit.results->begun, 1) + 1;
  if (!isatty(STDERR_FILENO)) return;
  fprintf(stderr, "\rcell %u of %u: %s on %s\033[K", begun, kit.results->total,
          pestle_op_info(op)->name,
          pestle_dtype_info((pestle_dtype_t)(i % PESTLE_DTYPE_COUNT))->name);
}

static int work(worker_t* self, bool (*takes)(pestle_op_t op)) {
  pestle_status_t status = open_context(true, &kit.strict);
  if (!status) status = open_context(false, &kit.lenient);
  if (!status) {
    kit.backend = name_of(kit.strict, kit.plugin);
    status = check_target();
  }
  if (!status) {
    unsigned i;
    while ((i = atomic_fetch_add(&kit.results->next, 1)) < CELLS) {
      pestle_op_t op = (pestle_op_t)(i / PESTLE_DTYPE_COUNT);
      if (!takes(op)) continue;
      show_progress(op, i);
      atomic_store(&self->at, i);
      alarm(CELL_SECONDS);
      run_cell(i);
      alarm(0);
      atomic_store(&self->at, NO_CELL);
    }
  }
  pestle_context_release(kit.strict);
  pestle_context_release(kit.lenient);
  return status ? report_status(status) : 0;
}

// --- All of them ---

void* kit_share(size_t size) {
  void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) return memory;
  fprintf(stderr, "pestle: error: no %zu bytes for workers: %s\n", size,
          strerror(errno));
  return NULL;
}

static bool start(worker_t* worker, bool quiet, bool (*takes)(pestle_op_t op)) {
  atomic_store(&worker->at, NO_CELL);
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    is_quiet = quiet;
    exit(work(worker, takes));
  }
  worker->pid = pid > 0 ? pid : 0;
  if (pid > 0) return true;
  fprintf(stderr, "pestle: error: no process for a worker: %s\n",
          strerror(errno));
  return false;
}

static void describe_end(int end, char* text, size_t capacity) {
  if (WIFSIGNALED(end) && WTERMSIG(end) == SIGALRM) {
    snprintf(text, capacity, "it did not come back within %d s", CELL_SECONDS);
  } else if (WIFSIGNALED(end)) {
    snprintf(text, capacity, "signal %d (%s)", WTERMSIG(end),
             strsignal(WTERMSIG(end)));
  } else {
    snprintf(text, capacity, "exit status %d", WEXITSTATUS(end));
  }
}

// What the end of |worker| says: true when another is to take its place.
static bool take_end(worker_t* worker, int end, int* out_exit) {
  worker->pid = 0;
  unsigned at = atomic_load(&worker->at);
  char text[200];
  describe_end(end, text, sizeof(text));
  if (at != NO_CELL) {
    kit.cell = cell_at(at);
    kit_note(KIT_WRONG, "the backend ended the process: %s", text);
    return true;
  }
  if (WIFEXITED(end) && WEXITSTATUS(end) == 0) return false;
  if (!WIFEXITED(end) || WEXITSTATUS(end) != EXIT_NOT_OPENED) {
    fprintf(stderr,
            "pestle: error: '%s' ended a worker outside of any op: %s\n",
            kit.plugin, text);
  }
  *out_exit = EXIT_NOT_OPENED;
  return false;
}

static worker_t* find_worker(worker_t* workers, unsigned count, pid_t pid) {
  for (unsigned i = 0; i < count; ++i) {
    if (workers[i].pid == pid) return &workers[i];
  }
  return NULL;
}

int kit_work(unsigned jobs, bool (*takes)(pestle_op_t op)) {
  size_t size = jobs * sizeof(worker_t);
  worker_t* workers = kit_share(size);
  int code = workers ? 0 : EXIT_NOT_OPENED, end;
  for (unsigned op = 0; op < PESTLE_OP_COUNT; ++op)
    kit.results->total += takes((pestle_op_t)op) ? PESTLE_DTYPE_COUNT : 0;
  for (unsigned i = 0; i < jobs && !code; ++i) {
    if (!start(&workers[i], i > 0, takes)) code = EXIT_NOT_OPENED;
  }
  pid_t pid;
  while (workers && ((pid = waitpid(-1, &end, 0)) > 0 || errno == EINTR)) {
    worker_t* worker = pid > 0 ? find_worker(workers, jobs, pid) : NULL;
    bool again = worker && take_end(worker, end, &code);
    if (again && !start(worker, true, takes)) code = EXIT_NOT_OPENED;
  }
  if (atomic_load(&kit.results->begun) && isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
  return code;
}
