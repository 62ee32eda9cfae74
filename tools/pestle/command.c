// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <string.h>

// Bits of the verbs, as options.def names them.
enum {
  R = 1,
  D = 2,
  P = 4,
  C = 8,
  O = 16,
  K = 32,
  E = 64,
  F = 128,
  M = 256,
  H = 512,
  T = 1024,
  I = 2048,
  B = 4096,
  V = 8192,
  L = 16384,
  G = 32768,
  W = 65536,
};

const cli_option_row_t cli_options[] = {
#define PESTLE_OPTION(ID, name, kind, argument, environment, verbs, help) \
  {name, CLI_##kind, argument, environment, verbs, help},
#include "options.def"
};

const cli_verb_row_t cli_verbs[] = {
    {"run", R, "MODEL", cli_run, "compile a model (or load a plan) and run it"},
    {"bench", B, "MODEL|PLAN", cli_bench,
     "run for some seconds and print median, p90, p99 and runs a second; also "
     "beside ONNX Runtime"},
    {"generate", G, "MODEL --ids N,N,..", cli_generate,
     "make tokens with a language model: ids in, ids out, and how fast"},
    {"compile", K, "MODEL -o FILE.plan", cli_compile,
     "compile a model into a plan that 'pestle run' takes"},
    {"opt", O, "MODEL", cli_opt, "run passes over a model and print it"},
    {"dump", D, "MODEL", cli_dump, "show a model at a stage of compilation"},
    {"explain", E, "MODEL", cli_explain,
     "say why: which ops share a kernel, its layouts and schedule, the cache"},
    {"info", I, "MODEL|PLAN", cli_info,
     "say what a model or a plan takes and returns, its dims, ops and weights, "
     "what of it is not supported, and what a run costs"},
    {"view", V, "MODEL|PLAN -o FILE.html", cli_view,
     "write a page that shows the graph after each pass, its kernels with "
     "their "
     "times and code, and the memory plan; it needs nothing else"},
    {"diff", F, "MODEL WAY WAY", cli_diff,
     "run a model in two ways (ref, llvm,strict ...) and say whether the "
     "results agree; if not, after which pass or at which kernel they part"},
    {"reduce", M, "MODEL [WAY [WAY]] --check COMMAND", cli_reduce,
     "make a model that fails as small as it still fails"},
    {"world", W, "MODEL|PLAN --simulate N --topology FILE", cli_world,
     "say how long a run on many ranks would take, and what goes over their "
     "wires"},
    {"op-test", T, "EXTENSION.so", cli_op_test,
     "hold the ops of an extension against their own bodies"},
    {"devices", L, "", cli_devices,
     "list what kernels run on: CPUs, GPUs, and drivers that compute on the "
     "CPU"},
    {"plugins", P, "list|test FILE|NAME", cli_plugins,
     "list the backends and their devices; hold one against the reference"},
    {"cache", C, "stats|list|verify|clear|prune", cli_cache,
     "look at the plan cache and clean it"},
    {"doctor", H, "[--jax]", cli_doctor,
     "say in words what is here and what is wrong with it; --jax: why JAX does "
     "not find Pestle"},
    {0},
};

const cli_variable_row_t cli_variables[] = {
    {"PESTLE_WORLD",
     "tcp://HOST:PORT: where rank 0 of a world listens; with RANK and "
     "WORLD_SIZE, where mpirun, srun or torchrun do not set theirs"},
    {"PESTLE_WORLD_SECRET",
     "64 hexadecimal digits by which the ranks of a world know each other "
     "(default: a file of the user's in the cache folder)"},
    {"PESTLE_WORLD_DEADLINE_MS",
     "how long a rank waits for another one at a collective (default 60000)"},
    {"PESTLE_WORLD_CREATE_MS",
     "how long ranks wait until all have come (default 300000)"},
    {"PESTLE_WORLD_TRANSPORT",
     "mpi: MPI carries the bytes of a world (default host)"},
    {"PESTLE_WORLD_ORDERED",
     "1: sums of floats are in the order of the ranks, whatever carries them"},
    {"PESTLE_WORLD_CHECK",
     "1: ranks compare each collective before another library carries it"},
    {"PESTLE_WORLD_OVERLAP", "0: collectives do not run beside kernels"},
    {"PESTLE_WORLD_RECORDINGS",
     "0: plans with collectives of GPUs are launched step by step"},
    {"PESTLE_WORLD_SHM",
     "0: ranks of one machine do not share memory, they use sockets"},
    {"PESTLE_PYTHON",
     "the Python that 'bench --beside ort' runs (default python3)"},
    {"PESTLE_PERF_MAP",
     "1: a line a kernel in /tmp/perf-PID.map, by which perf names it"},
    {"PESTLE_JITDUMP",
     "FOLDER: kernels' code in FOLDER/jit-PID.dump, which 'perf inject --jit' "
     "reads: perf record -k mono, then perf annotate shows it"},
    {"PESTLE_GDB",
     "1: kernels are known to GDB by their names (its JIT "
     "interface)"},
    {"NO_COLOR",
     "set to anything: no colours on terminals, which are there otherwise"},
    {"COLUMNS", "how wide help is (default: the terminal's width, else 80)"},
    {0},
};

const cli_example_row_t cli_examples[] = {
#define PESTLE_EXAMPLE(verb, command, help) {verb, command, help},
#include "examples.def"
    {0, NULL, NULL},
};

const cli_word_row_t cli_words[] = {
    {"help", "VERB", "say this, or what a verb takes"},
    {"man", "", "print the manual page"},
    {"completion", "bash|zsh|fish",
     "print what a shell completes command lines by (default bash)"},
    {"version", "", "print version and build"},
    {NULL, NULL, NULL},
};

const cli_verb_row_t* cli_find_verb(const char* name) {
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb) {
    if (!strcmp(verb->name, name)) return verb;
  }
  return NULL;
}

const char* cli_dashes(const cli_option_row_t* option) {
  return strlen(option->name) == 1 ? "-" : "--";
}
