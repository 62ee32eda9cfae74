// SPDX-License-Identifier: Apache-2.0
// The command `pestle`: its verbs and options as tables, from which parsing, help, man page
// and completion follow.
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "pestle/version.h"

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
  V = 8192
};
typedef enum kind_e { FLAG, MAYBE, TEXT, COUNT, BYTES, LIST } kind_t;

typedef struct option_t {
  const char* name;
  kind_t kind;
  const char* argument;
  const char* environment;
  unsigned verbs;
  const char* help;
} option_t;

static const option_t options[] = {
#define PESTLE_OPTION(ID, name, kind, argument, environment, verbs, help) \
  {name, kind, argument, environment, verbs, help},
#include "options.def"
};

typedef struct verb_t {
  const char* name;
  unsigned bit;
  const char* arguments;
  pestle_status_t (*run)(cli_t* cli, int* out_exit);
  const char* help;
} verb_t;

static const verb_t verbs[] = {
    {"run", R, "MODEL", cli_run, "compile a model (or load a plan) and run it"},
    {"bench", B, "MODEL|PLAN", cli_bench,
     "run for some seconds and print median, p90, p99 and runs a second; also "
     "beside ONNX Runtime"},
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
    {"op-test", T, "EXTENSION.so", cli_op_test,
     "hold the ops of an extension against their own bodies"},
    {"plugins", P, "list|test FILE|NAME", cli_plugins,
     "list the backends and their devices; hold one against the reference"},
    {"cache", C, "stats|list|verify|clear|prune", cli_cache,
     "look at the plan cache and clean it"},
    {"doctor", H, "[--jax]", cli_doctor,
     "say in words what is here and what is wrong with it; --jax: why JAX does "
     "not find Pestle"},
};
enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) };

// Variables that are no option: a tool asks for them, not a run.
static const struct {
  const char* name;
  const char* help;
} variables[] = {
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
};
enum { VARIABLE_COUNT = sizeof(variables) / sizeof(variables[0]) };

// --- Help ---

static void print_options(FILE* out, unsigned bits) {
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    const option_t* o = &options[i];
    if (!(o->verbs & bits)) continue;
    bool dash = strlen(o->name) == 1;
    const char* space = o->kind == MAYBE ? "" : " ";
    fprintf(out, "  %s%s%s%s\n        %s%s%s%s\n", dash ? "-" : "--", o->name,
            o->argument[0] ? space : "", o->argument, o->help,
            o->environment[0] ? " (also " : "", o->environment,
            o->environment[0] ? ")" : "");
  }
}

static void print_help(FILE* out, const verb_t* verb) {
  if (verb) {
    fprintf(out, "usage: pestle %s %s [options]\n\n%s\n\noptions:\n",
            verb->name, verb->arguments, verb->help);
    print_options(out, verb->bit);
    return;
  }
  fprintf(out, "usage: pestle VERB ... [options]\n\n");
  for (int v = 0; v < VERB_COUNT; ++v) {
    fprintf(out, "  %-8s %s\n", verbs[v].name, verbs[v].help);
  }
  fprintf(out,
          "  %-8s %s\n  %-8s %s\n  %-8s %s\n\n'pestle VERB --help' lists a "
          "verb's options, and the variables that stand for them.\n\nother "
          "variables:\n",
          "man", "print the manual page", "completion", "print bash completion",
          "version", "print version and build");
  for (int i = 0; i < VARIABLE_COUNT; ++i) {
    fprintf(out, "  %s\n        %s\n", variables[i].name, variables[i].help);
  }
  fprintf(out,
          "\nexit codes: 0 done, 1 a comparison or check "
          "failed, 2 usage, 3 unsupported,\n4 bad input, 5 resources, 6 "
          "Pestle's own fault\n");
}

// Text of the tables, in which a '-' is one that can be typed.
static void print_roff(FILE* out, const char* text) {
  for (; *text; ++text) {
    if (*text == '-') fputc('\\', out);
    fputc(*text, out);
  }
}

static void print_man_option(FILE* out, const option_t* o) {
  fprintf(out, ".TP\n.B ");
  print_roff(out, strlen(o->name) == 1 ? "-" : "--");
  print_roff(out, o->name);
  const char* space = o->argument[0] && o->kind != MAYBE ? " " : "";
  fprintf(out, "%s%s\n", space, o->argument);
  print_roff(out, o->help);
  fputc('\n', out);
}

static void print_man(FILE* out) {
  fprintf(out,
          ".TH PESTLE 1\n.SH NAME\npestle \\- compile and run tensor "
          "graphs\n.SH SYNOPSIS\n.B pestle\nVERB [options]\n");
  for (int v = 0; v < VERB_COUNT; ++v) {
    fprintf(out, ".SH %s\n.B pestle %s %s\n.PP\n%s\n", verbs[v].name,
            verbs[v].name, verbs[v].arguments, verbs[v].help);
    for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
      if (!(options[i].verbs & verbs[v].bit)) continue;
      print_man_option(out, &options[i]);
    }
  }
  fprintf(out, ".SH ENVIRONMENT\n");
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    if (!options[i].environment[0]) continue;
    fprintf(out, ".TP\n.B %s\nas --%s\n", options[i].environment,
            options[i].name);
  }
  for (int i = 0; i < VARIABLE_COUNT; ++i) {
    fprintf(out, ".TP\n.B %s\n", variables[i].name);
    print_roff(out, variables[i].help);
    fputc('\n', out);
  }
  fprintf(out,
          ".SH EXIT STATUS\n0 done, 1 a comparison or check failed, 2 "
          "usage, 3 unsupported, 4 bad input, 5 resources, 6 Pestle's "
          "own fault\n");
}

static void print_completion(FILE* out) {
  fprintf(out,
          "_pestle() {\n  local cur=${COMP_WORDS[COMP_CWORD]}\n"
          "  if [ $COMP_CWORD -eq 1 ]; then\n    COMPREPLY=($(compgen -W "
          "'");
  for (int v = 0; v < VERB_COUNT; ++v)
    fprintf(out, "%s ", verbs[v].name);
  fprintf(out,
          "man completion version' -- \"$cur\"))\n    return\n  fi\n"
          "  case ${COMP_WORDS[1]} in\n");
  for (int v = 0; v < VERB_COUNT; ++v) {
    fprintf(out, "    %s) words='", verbs[v].name);
    for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
      if (!(options[i].verbs & verbs[v].bit)) continue;
      fprintf(out, "%s%s ", strlen(options[i].name) == 1 ? "-" : "--",
              options[i].name);
    }
    fprintf(out, "' ;;\n");
  }
  fprintf(out,
          "  esac\n  COMPREPLY=($(compgen -W \"$words\" -f -- \"$cur\"))"
          "\n}\ncomplete -F _pestle pestle\n");
}

// --- Command line ---

static int find_option(const char* name, size_t size, unsigned bits) {
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    if (strlen(options[i].name) == size &&
        !memcmp(options[i].name, name, size) && (options[i].verbs & bits)) {
      return i;
    }
  }
  return -1;
}

static pestle_status_t unknown_option(const cli_t* cli, const char* name,
                                      size_t size, unsigned bits) {
  pestle_closest_t closest = pestle_closest_to(pestle_str_make(name, size));
  char hint[PESTLE_HINT];
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    if (options[i].verbs & bits)
      pestle_closest_offer(&closest, pestle_str(options[i].name));
  }
  return CLI_USAGE_ERROR(
      "'pestle %s' has no option '%.*s'; see 'pestle %s --help'%s", cli->verb,
      (int)size, name, cli->verb, pestle_closest_hint(&closest, hint));
}

static pestle_status_t set_option(cli_t* cli, int i, const char* value) {
  switch (options[i].kind) {
    case FLAG:
    case MAYBE:
    case TEXT:
      cli->text[i] = value;
      return NULL;
    case COUNT:
      cli->text[i] = value;
      if (!pestle_str_parse_i64(pestle_str(value), &cli->count[i]) ||
          cli->count[i] < 0) {
        return CLI_USAGE_ERROR(
            "--%s wants a number that is not negative, "
            "not '%s'",
            options[i].name, value);
      }
      return NULL;
    case BYTES:
      cli->text[i] = value;
      if (!pestle_str_parse_bytes(pestle_str(value), &cli->count[i])) {
        return CLI_USAGE_ERROR("--%s wants bytes, or 512K, 512M, 2G; not '%s'",
                               options[i].name, value);
      }
      return NULL;
    case LIST:
      if (!pestle_vec_push(&cli->list[i], value)) {
        return PESTLE_ERROR(OUT_OF_MEMORY, "reading the command line");
      }
      return NULL;
  }
  return NULL;
}

static pestle_status_t parse(cli_t* cli, unsigned bits, int argc, char** argv) {
  bool ended = false;
  for (int i = 2; i < argc; ++i) {
    const char* a = argv[i];
    if (!ended && !strcmp(a, "--")) {
      ended = true;
      continue;
    }
    if (ended || a[0] != '-' || !a[1]) {
      if (!pestle_vec_push(&cli->args, a)) {
        return PESTLE_ERROR(OUT_OF_MEMORY, "reading the command line");
      }
      continue;
    }
    const char* name = a + (a[1] == '-' ? 2 : 1);
    if (!strcmp(a, "-h")) name = "help";
    const char* equals = strchr(name, '=');
    size_t size = equals ? (size_t)(equals - name) : strlen(name);
    int option = find_option(name, size, bits);
    if (option < 0) return unknown_option(cli, name, size, bits);
    bool alone = options[option].kind == MAYBE && !equals;
    const char* value = alone ? "" : "1";
    if (options[option].kind == FLAG && equals) {
      return CLI_USAGE_ERROR("--%s takes no value", options[option].name);
    }
    if (options[option].kind != FLAG && !alone) {
      if (equals) {
        value = equals + 1;
      } else if (i + 1 < argc) {
        value = argv[++i];
      } else {
        return CLI_USAGE_ERROR("--%s wants %s", options[option].name,
                               options[option].argument);
      }
    }
    PESTLE_TRY(set_option(cli, option, value));
  }
  return NULL;
}

// One name twice: neither value is surely the one that is meant.
static pestle_status_t check_repeats(const cli_t* cli) {
  for (int option = 0; option < CLI_OPTION_COUNT; ++option) {
    for (size_t i = 0; i < cli->list[option].size; ++i) {
      const char* text = cli->list[option].data[i];
      size_t size = strcspn(text, "=");
      for (size_t j = 0; j < i; ++j) {
        const char* other = cli->list[option].data[j];
        if (strcspn(other, "=") != size || memcmp(text, other, size)) continue;
        return CLI_USAGE_ERROR(
            "--%s is given twice for '%.*s': as '%s' and as '%s'",
            options[option].name, (int)size, text, other, text);
      }
    }
  }
  return NULL;
}

// The words that the library takes for its own variables.
static pestle_status_t read_flag(const char* name, const char* value,
                                 bool* out_is_set) {
  static const char* const words[] = {"0",  "1",   "false", "true",
                                      "no", "yes", "off",   "on"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    if (strcmp(words[i], value)) continue;
    *out_is_set = i % 2 == 1;
    return NULL;
  }
  return CLI_USAGE_ERROR("environment variable %s is '%s'; expected 1 or 0",
                         name, value);
}

// What the context does not read itself.
static pestle_status_t read_environment(cli_t* cli) {
  static const int read[] = {CLI_DEVICE, CLI_NO_FUSE};
  for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); ++i) {
    const char* value = cli_environment(options[read[i]].environment);
    if (!value || cli->text[read[i]]) continue;
    if (options[read[i]].kind == FLAG) {
      bool is_set = false;
      PESTLE_TRY(read_flag(options[read[i]].environment, value, &is_set));
      if (!is_set) continue;
    }
    PESTLE_TRY(set_option(cli, read[i], value));
  }
  return NULL;
}

static int exit_code(pestle_status_t status) {
  switch (pestle_status_code(status)) {
    case PESTLE_STATUS_OK:
      return CLI_DONE;
    case PESTLE_STATUS_INVALID_ARGUMENT:
      return !strcmp(pestle_status_file(status), "usage") ? CLI_USAGE
                                                          : CLI_BAD_INPUT;
    case PESTLE_STATUS_UNSUPPORTED:
      return CLI_UNSUPPORTED;
    case PESTLE_STATUS_MALFORMED:
    case PESTLE_STATUS_NOT_FOUND:
    case PESTLE_STATUS_INCOMPATIBLE:
    case PESTLE_STATUS_WRONG_TYPE:
    case PESTLE_STATUS_OUT_OF_RANGE:
      return CLI_BAD_INPUT;
    case PESTLE_STATUS_OUT_OF_MEMORY:
    case PESTLE_STATUS_RESOURCE_EXHAUSTED:
    case PESTLE_STATUS_IO:
    case PESTLE_STATUS_UNAVAILABLE:
    case PESTLE_STATUS_CANCELLED:
    case PESTLE_STATUS_DEADLINE_EXCEEDED:
      return CLI_RESOURCES;
    case PESTLE_STATUS_INTERNAL:
    case PESTLE_STATUS_CODE_COUNT:
      return CLI_INTERNAL;
  }
  return CLI_INTERNAL;
}

// Names that hold line breaks cannot begin a line of their own. The model of a
// pipe is called what the command line calls it.
static void print_error(const cli_t* cli, const char* text) {
  size_t size = cli->stdin_path ? strlen(cli->stdin_path) : 0;
  for (const char* c = text; *c; ++c) {
    if (size && !strncmp(c, cli->stdin_path, size)) {
      fputs("<stdin>", stderr);
      c += size - 1;
      continue;
    }
    fputc(*c, stderr);
    if (*c == '\n') fputs("  ", stderr);
  }
  fputc('\n', stderr);
}

static int report(const cli_t* cli, pestle_status_t status) {
  int code = exit_code(status);
  size_t size = pestle_status_format(status, NULL, 0) + 1;
  char* text = malloc(size);
  if (text) pestle_status_format(status, text, size);
  fputs("pestle: error: ", stderr);
  print_error(cli, text ? text : pestle_status_message(status));
  free(text);
  pestle_status_release(status);
  return code;
}

static int run_verb(const verb_t* verb, int argc, char** argv) {
  cli_t cli = {.verb = verb->name,
               .control = {.struct_size = sizeof(cli.control)}};
  int code = CLI_DONE;
  pestle_allocator_t a = pestle_allocator_system();
  pestle_arena_init(a, &cli.arena);
  pestle_vec_init(&cli.args, a);
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    pestle_vec_init(&cli.list[i], a);
  }
  pestle_status_t status = parse(&cli, verb->bit, argc, argv);
  if (!status && cli.text[CLI_HELP]) {
    print_help(stdout, verb);
  } else {
    if (!status) status = check_repeats(&cli);
    if (!status) status = read_environment(&cli);
    if (!status) status = cli_take_stdin(&cli);
    if (!status) status = cli_open_context(&cli);
    if (!status) status = verb->run(&cli, &code);
  }
  if (status) code = report(&cli, status);
  pestle_context_release(cli.context);
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    pestle_vec_deinit(&cli.list[i]);
  }
  pestle_vec_deinit(&cli.args);
  pestle_arena_deinit(&cli.arena);
  return code;
}

static const verb_t* find_verb(const char* name) {
  for (int v = 0; v < VERB_COUNT; ++v) {
    if (!strcmp(verbs[v].name, name)) return &verbs[v];
  }
  return NULL;
}

// help, and man, completion, version, which have no options.
static int run_word(const char* name, int argc, char** argv) {
  bool is_help =
      !strcmp(name, "--help") || !strcmp(name, "help") || !strcmp(name, "-h");
  const verb_t* about = is_help && argc == 3 ? find_verb(argv[2]) : NULL;
  if (argc > 2 && !about) {
    cli_say_error(is_help ? "'pestle %s' wants a verb alone; what is '%s'?"
                          : "'pestle %s' takes no argument, not '%s'",
                  name, argv[argc - 1]);
    return CLI_USAGE;
  }
  if (is_help) {
    print_help(stdout, about);
  } else if (!strcmp(name, "man")) {
    print_man(stdout);
  } else if (!strcmp(name, "completion")) {
    print_completion(stdout);
  } else if (!strcmp(name, "version") || !strcmp(name, "--version")) {
    printf("pestle %s %s\n", pestle_version(), pestle_build_id());
  }
  return CLI_DONE;
}

static void say_no_verb(const char* name) {
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  char hint[PESTLE_HINT];
  for (int v = 0; v < VERB_COUNT; ++v)
    pestle_closest_offer(&closest, pestle_str(verbs[v].name));
  cli_say_error("no verb '%s'%s", name, pestle_closest_hint(&closest, hint));
}

static int run_name(const char* name, int argc, char** argv) {
  static const char* const words[] = {
      "--help", "help", "-h", "man", "completion", "version", "--version"};
  const verb_t* verb = find_verb(name);
  if (verb) return run_verb(verb, argc, argv);
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    if (!strcmp(words[i], name)) return run_word(name, argc, argv);
  }
  // What is wrong comes last, behind the long help.
  print_help(stderr, NULL);
  if (name[0]) say_no_verb(name);
  if (!name[0]) cli_say_error("a verb is missing");
  return CLI_USAGE;
}

int main(int argc, char** argv) {
  cli_set_signals();
  int code = run_name(argc > 1 ? argv[1] : "", argc, argv);
  if (fflush(stdout) != 0 || ferror(stdout)) {
    cli_say_error("stdout could not be written");
    if (code == CLI_DONE) code = CLI_RESOURCES;
  }
  if (argc > 1 && !strcmp(argv[1], "plugins")) cli_leave(code);
  return code;
}
