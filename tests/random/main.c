// SPDX-License-Identifier: Apache-2.0
// pestle-random [--device NAME] [--target-cpu CPU]
//               [--seeds FIRST..LAST | --seeds COUNT] [--jobs N]
//               [--timeout SECONDS] [--slow N] [--counts] [--sizes] [--least N]
//               [--until-failure]
//               [--print SEED] [--dump FOLDER] [--optional]
//               [--for-peer FOLDER] [--without OP:DTYPE,OP..] [--derive] [--make]
// Runs random graphs on a device against ir/ref. Each of N workers is a process
// that takes the next seed; one that dies or hangs is told with its seed, and
// another goes on. Exit code 0: all agree; 1: some do not; 3: the generator is
// wrong. --timeout is CPU time a graph; where a driver's compiler takes minutes for some
// kernels, --slow says how many graphs may pass it. --counts prints how often each op met
// each dtype, --sizes how many graphs have how many ops; --least fails where a pair was met less than N times; --dump
// writes the module and inputs of what fails; with --optional a device that is
// not there is exit code 77, which skips a test. --for-peer runs nothing and
// writes each graph for another compiler (peer.c), --without leaves ops out ("*":
// all of a dtype). --derive holds the graphs' derivatives and batched forms against
// differences and loops (derive.c), on no device; graphs are in f64, c128, integers and flags.
// --make makes the graphs, for their counts, and runs none.
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random/random.h"

enum { MAX_JOBS = 64, GRAPHS_A_WORKER = 400 };

typedef struct settings_t {
  const char *device, *cpu, *dump, *peer;
  uint64_t first, last, print;
  int jobs, timeout, slow;
  uint64_t least;
  bool counts, sizes, until_failure, printing, optional, derive, make;
} settings_t;

// Shared by the workers.
typedef struct shared_t {
  atomic_ullong next;
  atomic_uint failures, crashes;
  atomic_int slow;
  atomic_bool stop;
  uint64_t current[MAX_JOBS];
  counts_t counts[MAX_JOBS];
} shared_t;

// --- Failures ---

static void write_file(const char* folder, uint64_t seed, const char* name,
                       const void* data, size_t size) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/%llu%s", folder, (unsigned long long)seed,
           name);
  FILE* f = fopen(path, "wb");
  if (!f) return;
  fwrite(data, 1, size, f);
  fclose(f);
}

static const char* numpy_name(pestle_dtype_t dtype) {
  switch ((int)dtype) {
    case PESTLE_I1:
      return "|b1";
    case PESTLE_I8:
    case PESTLE_I4:
    case PESTLE_I2:
      return "|i1";
    case PESTLE_I16:
      return "<i2";
    case PESTLE_I32:
      return "<i4";
    case PESTLE_I64:
      return "<i8";
    case PESTLE_U16:
      return "<u2";
    case PESTLE_U32:
      return "<u4";
    case PESTLE_U64:
      return "<u8";
    case PESTLE_F16:
      return "<f2";
    case PESTLE_F32:
      return "<f4";
    case PESTLE_F64:
      return "<f8";
    case PESTLE_C64:
      return "<c8";
    case PESTLE_C128:
      return "<c16";
    case PESTLE_BF16:
      return "<V2";
    default:
      return pestle_dtype_is(dtype, PESTLE_KIND_UNSIGNED) ? "|u1" : "|V1";
  }
}

static void dump_input(const char* folder, const graph_t* g, size_t i) {
  const pestle_type_t* type = g->inputs[i]->value->type;
  char head[256], name[32];
  int n = snprintf(head + 10, sizeof(head) - 10,
                   "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   numpy_name(type->dtype));
  for (int32_t k = 0; k < type->rank; ++k) {
    n += snprintf(head + 10 + n, sizeof(head) - 10 - (size_t)n, "%lld,",
                  (long long)type->dims[k]);
  }
  n += snprintf(head + 10 + n, sizeof(head) - 10 - (size_t)n, "), }");
  while ((n + 10) % 64 != 63)
    head[10 + n++] = ' ';
  head[10 + n++] = '\n';
  memcpy(head, "\x93NUMPY\x01\x00", 8);
  head[8] = (char)(n & 0xff);
  head[9] = (char)(n >> 8);
  size_t size = pestle_type_bytes(type);
  char* all = malloc((size_t)n + 10 + size);
  memcpy(all, head, (size_t)n + 10);
  memcpy(all + n + 10, g->inputs[i]->data, size);
  snprintf(name, sizeof(name), ".%zu.npy", i);
  write_file(folder, g->seed, name, all, (size_t)n + 10 + size);
  free(all);
}

static void print_module(const graph_t* g, const char* folder) {
  char* text;
  size_t size;
  pestle_status_t status = pestle_module_print(g->module, 0, &text, &size);
  if (status) {
    pestle_status_release(status);
    return;
  }
  if (folder) {
    write_file(folder, g->seed, ".mlir", text, size);
    for (size_t i = 0; i < g->input_count; ++i)
      dump_input(folder, g, i);
  } else {
    fwrite(text, 1, size, stdout);
  }
  pestle_context_free(g->context, text, size + 1);
}

// --- Workers ---

static pestle_context_t* open_device(const settings_t* s,
                                     pestle_device_t** out_device) {
  pestle_context_t* context;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true};
  pestle_status_t status = pestle_context_create(&options, &context);
  if (!status && !s->derive && !s->make) {
    status = pestle_context_device(context, s->device, out_device);
  }
  if (!status) return context;
  bool missing = pestle_status_code(status) == PESTLE_STATUS_NOT_FOUND ||
                 pestle_status_code(status) == PESTLE_STATUS_UNAVAILABLE;
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "pestle-random: %s\n", text);
  pestle_status_release(status);
  exit(s->optional && missing ? 77 : 2);
}

static bool run_seed(const settings_t* s, pestle_context_t* context,
                     pestle_device_t* device, uint64_t seed, counts_t* counts) {
  char text[2048] = "";
  graph_t* g = graph_make(context, seed, counts, s->peer != NULL);
  if (s->peer || s->make) {
    if (s->peer) write_for_peer(g, s->peer);
    graph_free(g);
    return true;
  }
  if (s->printing) print_module(g, NULL);
  outcome_t outcome = s->derive
                          ? derive_graph(g, text, sizeof(text))
                          : run_graph(g, device, s->cpu, text, sizeof(text));
  if (outcome != SAME) {
    char line[3072];
    int n = snprintf(line, sizeof(line), "seed %llu on %s%s%s: %s\n",
                     (unsigned long long)seed, s->device,
                     g->numerics == PESTLE_NUMERICS_STRICT ? ", strict" : "",
                     g->no_fuse ? ", no fusion" : "", text);
    fflush(stdout);
    if (write(1, line, (size_t)n) < 0) exit(2);
    if (s->dump) print_module(g, s->dump);
  }
  graph_free(g);
  return outcome == SAME;
}

// The worker dies of the next graph after |seconds| of CPU time, and of one that
// sleeps after ten times as long; 0: never.
static void allow(int seconds) {
  struct itimerval cpu = {.it_value = {.tv_sec = seconds}};
  (void)setitimer(ITIMER_PROF, &cpu, NULL);
  alarm(10 * (unsigned)seconds);
}

static void work(const settings_t* s, shared_t* shared, int job) {
  pestle_device_t* device = NULL;
  pestle_context_t* context = open_device(s, &device);
  for (int i = 0; i < GRAPHS_A_WORKER && !atomic_load(&shared->stop); ++i) {
    uint64_t seed = atomic_fetch_add(&shared->next, 1);
    if (seed > s->last) break;
    shared->current[job] = seed;
    allow(s->timeout);
    if (!run_seed(s, context, device, seed, &shared->counts[job])) {
      atomic_fetch_add(&shared->failures, 1);
      if (s->until_failure) atomic_store(&shared->stop, true);
    }
  }
  allow(0);
  pestle_context_release(context);
  fflush(stdout);
  exit(0);
}

static pid_t start(const settings_t* s, shared_t* shared, int job) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) work(s, shared, job);
  return pid;
}

// What a worker's end says; true: something is wrong.
static bool note_end(const settings_t* s, shared_t* shared, int job,
                     int state) {
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return false;
  bool no_device =
      WIFEXITED(state) && (WEXITSTATUS(state) == 2 || WEXITSTATUS(state) == 77);
  if (no_device) exit(WEXITSTATUS(state));
  uint64_t seed = shared->current[job];
  bool late = WIFSIGNALED(state) &&
              (WTERMSIG(state) == SIGALRM || WTERMSIG(state) == SIGPROF);
  bool wrong = !late || atomic_fetch_add(&shared->slow, 1) >= s->slow;
  if (wrong) atomic_fetch_add(&shared->crashes, 1);
  if (wrong && s->until_failure) atomic_store(&shared->stop, true);
  if (late) {
    printf("seed %llu on %s: still running after %d s of CPU time\n",
           (unsigned long long)seed, s->device, s->timeout);
  } else if (WIFSIGNALED(state)) {
    printf("seed %llu on %s: killed by signal %d\n", (unsigned long long)seed,
           s->device, WTERMSIG(state));
  } else {
    printf("seed %llu on %s: exit code %d\n", (unsigned long long)seed,
           s->device, WEXITSTATUS(state));
  }
  return wrong;
}

static void run_workers(const settings_t* s, shared_t* shared) {
  pid_t pids[MAX_JOBS];
  int running = s->jobs;
  for (int j = 0; j < s->jobs; ++j)
    pids[j] = start(s, shared, j);
  while (running) {
    int state;
    pid_t pid = waitpid(-1, &state, 0);
    if (pid < 0 && errno != EINTR) break;
    for (int j = 0; j < s->jobs; ++j) {
      if (pids[j] != pid) continue;
      note_end(s, shared, j, state);
      bool more =
          atomic_load(&shared->next) <= s->last && !atomic_load(&shared->stop);
      if (more)
        pids[j] = start(s, shared, j);
      else
        --running;
    }
  }
}

// --- Counts ---

static bool declares(pestle_op_t op, pestle_dtype_t dtype) {
  if (pestle_op_is_scalar(op))
    return pestle_dtype_is(dtype, pestle_op_info(op)->kinds);
  for (size_t i = 0; i < structured_row_count; ++i) {
    if (structured_rows[i].op != op) continue;
    return pestle_dtype_is(dtype, structured_rows[i].kinds) &&
           !(structured_rows[i].without >> dtype & 1);
  }
  return false;
}

static uint64_t median(const counts_t* c) {
  uint64_t seen = 0;
  for (uint64_t n = 0; n < 512; ++n) {
    seen += c->sizes[n];
    if (2 * seen >= c->graphs) return n;
  }
  return 512;
}

static void print_sizes(const counts_t* c) {
  printf("sizes:");
  for (int n = 0; n < 512; ++n) {
    if (c->sizes[n]) printf(" %d:%llu", n, (unsigned long long)c->sizes[n]);
  }
  printf("\n");
}

// Each op on each dtype; true: all of them often enough.
static bool print_counts(const settings_t* s, const counts_t* c) {
  size_t pairs = 0, rare = 0;
  uint64_t fewest = UINT64_MAX;
  for (int op = 0; op < PESTLE_OP_COUNT; ++op) {
    if (s->counts) printf("%-24s ", pestle_op_info((pestle_op_t)op)->name);
    for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
      if (!pestle_dtype_is_stored((pestle_dtype_t)d)) continue;
      if (!declares((pestle_op_t)op, (pestle_dtype_t)d)) continue;
      uint64_t n = c->by_op[op][d];
      ++pairs;
      if (n < fewest) fewest = n;
      const char* dtype = pestle_dtype_info((pestle_dtype_t)d)->name;
      if (s->counts) printf(" %s:%llu", dtype, (unsigned long long)n);
      if (n < s->least && ++rare <= 40) {
        printf("%stoo rare: %s on %s, %llu times\n", s->counts ? "\n" : "",
               pestle_op_info((pestle_op_t)op)->name, dtype,
               (unsigned long long)n);
      }
    }
    if (s->counts) printf("\n");
  }
  printf("%zu pairs of op and dtype, each at least %llu times\n", pairs,
         (unsigned long long)fewest);
  return rare == 0;
}

static void merge(counts_t* all, const counts_t* c) {
  for (int op = 0; op < PESTLE_OP_COUNT; ++op) {
    for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d)
      all->by_op[op][d] += c->by_op[op][d];
  }
  for (int n = 0; n < 512; ++n)
    all->sizes[n] += c->sizes[n];
  all->graphs += c->graphs;
  all->ops += c->ops;
  all->long_graphs += c->long_graphs;
}

// Ops that graphs do not hold: the sweep of tools/conform has them, and
// custom_call is whatever its function does.
// What extent says may be skipped is not said, nor are places behind the counts of
// suppress and places: no value of those could be judged.
static const pestle_op_t left_out[] = {PESTLE_OP_CUSTOM_CALL, PESTLE_OP_EXTENT,
                                       PESTLE_OP_SUPPRESS, PESTLE_OP_PLACES};
enum { LEFT_OUT = sizeof(left_out) / sizeof(left_out[0]) };

static void print_left_out(void) {
  printf("left out:");
  for (size_t i = 0; i < LEFT_OUT; ++i)
    printf("%s %s", i ? "," : "", pestle_op_info(left_out[i])->name);
  printf("\n");
}

// Every op that runs has a row here or is left out: only terminators have none, and
// collectives, which a world of one does not have.
static bool rows_are_complete(void) {
  bool complete = true;
  for (unsigned op = PESTLE_SCALAR_COUNT; op < PESTLE_OP_COUNT; ++op) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)op);
    bool found = info->flags & PESTLE_OP_FLAG_TERMINATOR ||
                 info->fuse == PESTLE_FUSE_COLLECTIVE;
    for (size_t i = 0; i < structured_row_count; ++i)
      found |= structured_rows[i].op == (pestle_op_t)op;
    for (size_t i = 0; i < LEFT_OUT; ++i)
      found |= left_out[i] == (pestle_op_t)op;
    if (found) continue;
    printf("op '%s' has no row in tests/random\n", info->name);
    complete = false;
  }
  return complete;
}

// --- Command line ---

static const char* value_of(int argc, char** argv, int* i) {
  if (*i + 1 < argc) return argv[++*i];
  fprintf(stderr, "pestle-random: %s takes a value\n", argv[*i]);
  exit(2);
}

static void parse_seeds(const char* text, settings_t* s) {
  char* end;
  s->first = 1;
  s->last = strtoull(text, &end, 10);
  if (end != text && !strncmp(end, "..", 2)) {
    s->first = s->last;
    text = end + 2;
    s->last = strtoull(text, &end, 10);
  }
  if (end != text && !*end) return;
  fprintf(stderr, "pestle-random: --seeds is FIRST..LAST or COUNT\n");
  exit(2);
}

// Whether |name| is the |n| characters at |text|.
static bool is_named(const char* name, const char* text, size_t n) {
  return strlen(name) == n && !strncmp(name, text, n);
}

// OP, OP:DTYPE or *:DTYPE, in two parts; false where that is nothing.
static bool leave_out_named(const char* op, size_t op_size, const char* dtype,
                            size_t dtype_size) {
  bool found = false, all = is_named("*", op, op_size);
  for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
    const char* its = pestle_dtype_info((pestle_dtype_t)d)->name;
    if (dtype_size ? !is_named(its, dtype, dtype_size) : d || all) continue;
    if (all) leave_out_dtype((pestle_dtype_t)d);
    found |= all;
    for (int i = 0; i < PESTLE_OP_COUNT && !all; ++i) {
      const char* name = pestle_op_info((pestle_op_t)i)->name;
      if (!is_named(name, op, op_size)) continue;
      leave_out((pestle_op_t)i, (pestle_dtype_t)d);
      found = true;
    }
  }
  return found;
}

static void parse_without(const char* text) {
  while (*text) {
    size_t n = strcspn(text, ":,"), m = 0;
    const char* dtype = text + n;
    if (*dtype == ':') m = strcspn(++dtype, ",");
    if (!leave_out_named(text, n, dtype, m)) {
      fprintf(stderr, "pestle-random: --without %s: no such op or dtype\n",
              text);
      exit(2);
    }
    text = m ? dtype + m : text + n;
    if (*text) ++text;
  }
}

static void parse(int argc, char** argv, settings_t* s) {
  for (int i = 1; i < argc; ++i) {
    const char* a = argv[i];
    if (!strcmp(a, "--device")) {
      s->device = value_of(argc, argv, &i);
    } else if (!strcmp(a, "--target-cpu")) {
      s->cpu = value_of(argc, argv, &i);
    } else if (!strcmp(a, "--seeds")) {
      parse_seeds(value_of(argc, argv, &i), s);
    } else if (!strcmp(a, "--jobs")) {
      s->jobs = atoi(value_of(argc, argv, &i));
    } else if (!strcmp(a, "--timeout")) {
      s->timeout = atoi(value_of(argc, argv, &i));
    } else if (!strcmp(a, "--slow")) {
      s->slow = atoi(value_of(argc, argv, &i));
    } else if (!strcmp(a, "--least")) {
      s->least = strtoull(value_of(argc, argv, &i), NULL, 10);
    } else if (!strcmp(a, "--counts")) {
      s->counts = true;
    } else if (!strcmp(a, "--sizes")) {
      s->sizes = true;
    } else if (!strcmp(a, "--optional")) {
      s->optional = true;
    } else if (!strcmp(a, "--make")) {
      s->make = true;
    } else if (!strcmp(a, "--derive")) {
      s->derive = true;
      s->device = "derivatives";
    } else if (!strcmp(a, "--until-failure")) {
      s->until_failure = true;
    } else if (!strcmp(a, "--dump")) {
      s->dump = value_of(argc, argv, &i);
    } else if (!strcmp(a, "--for-peer")) {
      s->peer = value_of(argc, argv, &i);
    } else if (!strcmp(a, "--without")) {
      parse_without(value_of(argc, argv, &i));
    } else if (!strcmp(a, "--print")) {
      s->print = strtoull(value_of(argc, argv, &i), NULL, 10);
      s->printing = true;
    } else {
      fprintf(stderr, "pestle-random: what is '%s'? See main.c\n", a);
      exit(2);
    }
  }
  if (s->jobs < 1) s->jobs = 1;
  if (s->jobs > MAX_JOBS) s->jobs = MAX_JOBS;
}

// The I-th of N runs of the seeds, where PESTLE_TEST_PART=I/N says so.
static void take_part(settings_t* s) {
  const char* text = getenv("PESTLE_TEST_PART");
  unsigned part, parts;
  if (!text) return;
  if (sscanf(text, "%u/%u", &part, &parts) != 2 || !part || part > parts) {
    fprintf(stderr, "pestle-random: PESTLE_TEST_PART=%s is not I/N\n", text);
    exit(2);
  }
  uint64_t first = s->first, count = s->last - s->first + 1;
  s->first = first + count * (part - 1) / parts;
  s->last = first + count * part / parts - 1;
}

// Those in which roundings hide what is wrong.
static void leave_out_coarse_dtypes(void) {
  static const pestle_dtype_t kept[] = {PESTLE_I1, PESTLE_I32, PESTLE_I64,
                                        PESTLE_U8, PESTLE_F64, PESTLE_C128};
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    bool is_kept = false;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); ++i)
      is_kept |= kept[i] == (pestle_dtype_t)d;
    if (!is_kept) leave_out_dtype((pestle_dtype_t)d);
  }
}

int main(int argc, char** argv) {
  settings_t s = {
      .device = "llvm", .first = 1, .last = 100, .jobs = 2, .timeout = 400};
  parse(argc, argv, &s);
  take_part(&s);
  if (!rows_are_complete()) return 3;
  if (s.derive) {
    leave_out_coarse_dtypes();
    // The one rounds tangents too, the other is 0 whatever it is to differences.
    leave_out(PESTLE_OP_REDUCE_PRECISION, PESTLE_NONE);
    leave_out(PESTLE_OP_BITCAST_CONVERT, PESTLE_NONE);
  }
  if (s.printing) {
    pestle_device_t* device = NULL;
    pestle_context_t* context = open_device(&s, &device);
    bool same = run_seed(&s, context, device, s.print, NULL);
    pestle_context_release(context);
    return same ? 0 : 1;
  }
  shared_t* shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  atomic_store(&shared->next, s.first);
  run_workers(&s, shared);
  counts_t* all = calloc(1, sizeof(*all));
  for (int j = 0; j < s.jobs; ++j)
    merge(all, &shared->counts[j]);
  print_left_out();
  bool often = print_counts(&s, all);
  if (s.sizes) print_sizes(all);
  unsigned failures = atomic_load(&shared->failures);
  unsigned crashes = atomic_load(&shared->crashes);
  printf(
      "%s: seeds %llu to %llu: %llu graphs, median %llu ops, %llu with 50 "
      "or more, %llu ops; %u differ, %u crash\n",
      s.device, (unsigned long long)s.first, (unsigned long long)s.last,
      (unsigned long long)all->graphs, (unsigned long long)median(all),
      (unsigned long long)all->long_graphs, (unsigned long long)all->ops,
      failures, crashes);
  free(all);
  munmap(shared, sizeof(*shared));
  return failures || crashes || !often ? 1 : 0;
}
