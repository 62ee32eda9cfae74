// SPDX-License-Identifier: Apache-2.0
// The command `pestle`: reads the command line by the tables of command.h and runs
// the verb.
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json.h"
#include "pestle/version.h"

// --- Command line ---

static int find_option(const char* name, size_t size, unsigned bits) {
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    if (strlen(cli_options[i].name) == size &&
        !memcmp(cli_options[i].name, name, size) &&
        (cli_options[i].verbs & bits)) {
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
    if (cli_options[i].verbs & bits)
      pestle_closest_offer(&closest, pestle_str(cli_options[i].name));
  }
  return CLI_USAGE_ERROR(
      "'pestle %s' has no option '%.*s'; see 'pestle %s --help'%s", cli->verb,
      (int)size, name, cli->verb, pestle_closest_hint(&closest, hint));
}

// -n, --most
static const char* dashes(int option) {
  return cli_options[option].name[1] ? "--" : "-";
}

static pestle_status_t set_option(cli_t* cli, int i, const char* value) {
  switch (cli_options[i].kind) {
    case CLI_FLAG:
    case CLI_MAYBE:
    case CLI_TEXT:
      cli->text[i] = value;
      return NULL;
    case CLI_COUNT:
      cli->text[i] = value;
      if (!pestle_str_parse_i64(pestle_str(value), &cli->count[i]) ||
          cli->count[i] < 0) {
        return CLI_USAGE_ERROR(
            "%s%s wants a number that is not negative, not '%s'", dashes(i),
            cli_options[i].name, value);
      }
      return NULL;
    case CLI_BYTES:
      cli->text[i] = value;
      if (!pestle_str_parse_bytes(pestle_str(value), &cli->count[i])) {
        return CLI_USAGE_ERROR("--%s wants bytes, or 512K, 512M, 2G; not '%s'",
                               cli_options[i].name, value);
      }
      return NULL;
    case CLI_LIST:
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
    bool alone = cli_options[option].kind == CLI_MAYBE && !equals;
    const char* value = alone ? "" : "1";
    if (cli_options[option].kind == CLI_FLAG && equals) {
      return CLI_USAGE_ERROR("--%s takes no value", cli_options[option].name);
    }
    if (cli_options[option].kind != CLI_FLAG && !alone) {
      if (equals) {
        value = equals + 1;
      } else if (i + 1 < argc) {
        value = argv[++i];
      } else {
        return CLI_USAGE_ERROR("%s%s wants %s", dashes(option),
                               cli_options[option].name,
                               cli_options[option].argument);
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
            cli_options[option].name, (int)size, text, other, text);
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
  static const int read[] = {CLI_DEVICE, CLI_NO_FUSE, CLI_MEMORY_LIMIT};
  for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); ++i) {
    const char* value = cli_environment(cli_options[read[i]].environment);
    if (!value || cli->text[read[i]]) continue;
    if (cli_options[read[i]].kind == CLI_FLAG) {
      bool is_set = false;
      PESTLE_TRY(read_flag(cli_options[read[i]].environment, value, &is_set));
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

// Takes the place of whatever the verb wrote so far.
static void report_json(cli_t* cli, pestle_status_t status, int code,
                        const char* text) {
  pestle_strbuf_clear(cli->json->buffer);
  pestle_json_init(cli->json->buffer, 2, cli->json);
  pestle_json_begin_object(cli->json);
  pestle_json_key(cli->json, "error");
  pestle_json_begin_object(cli->json);
  cli_key_cstr(cli->json, "code",
               pestle_status_code_name(pestle_status_code(status)));
  cli_key_i64(cli->json, "exit", code);
  cli_key_cstr(cli->json, "message", text);
  pestle_json_end_object(cli->json);
}

static int report(cli_t* cli, pestle_status_t status) {
  int code = exit_code(status);
  size_t size = pestle_status_format(status, NULL, 0) + 1;
  char* text = malloc(size);
  if (text) pestle_status_format(status, text, size);
  cli_print_label(stderr, PESTLE_LOG_ERROR);
  print_error(cli, text ? text : pestle_status_message(status));
  if (cli->json)
    report_json(cli, status, code, text ? text : pestle_status_message(status));
  free(text);
  pestle_status_release(status);
  return code;
}

// With --json stdout is one object, that of the verb or of its error.
static int print_object(cli_t* cli, int code) {
  pestle_json_end_object(cli->json);
  pestle_status_t status = pestle_strbuf_status(cli->json->buffer);
  if (!status) printf("%s\n", pestle_strbuf_cstr(cli->json->buffer));
  cli->json = NULL;
  return status ? report(cli, status) : code;
}

static int run_verb(const cli_verb_row_t* verb, int argc, char** argv) {
  cli_t cli = {.verb = verb->name,
               .control = {.struct_size = sizeof(cli.control)}};
  int code = CLI_DONE;
  pestle_strbuf_t text;
  pestle_json_t json;
  pestle_allocator_t a = pestle_allocator_system();
  pestle_arena_init(a, &cli.arena);
  pestle_strbuf_init(a, &text);
  pestle_json_init(&text, 2, &json);
  pestle_vec_init(&cli.args, a);
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    pestle_vec_init(&cli.list[i], a);
  }
  pestle_status_t status = parse(&cli, verb->bit, argc, argv);
  if (!status && cli.text[CLI_HELP]) {
    cli_print_help(stdout, verb);
  } else {
    if (cli.text[CLI_JSON]) {
      cli.json = &json;
      pestle_json_begin_object(&json);
    }
    if (!status) status = check_repeats(&cli);
    if (!status) status = read_environment(&cli);
    if (!status) status = cli_take_stdin(&cli);
    if (!status) status = cli_open_context(&cli);
    if (!status) status = verb->run(&cli, &code);
  }
  if (status) code = report(&cli, status);
  if (cli.json) code = print_object(&cli, code);
  pestle_strbuf_deinit(&text);
  pestle_world_release(cli.world);
  pestle_context_release(cli.context);
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    pestle_vec_deinit(&cli.list[i]);
  }
  pestle_vec_deinit(&cli.args);
  pestle_arena_deinit(&cli.arena);
  return code;
}

static void print_version(bool as_json) {
  if (as_json) {
    printf("{\n  \"version\": \"%s\",\n  \"build\": \"%s\"\n}\n",
           pestle_version(), pestle_build_id());
  } else {
    printf("pestle %s %s\n", pestle_version(), pestle_build_id());
  }
}

// help, and man, completion, version, which have no options but version's --json.
static int run_word(const char* name, int argc, char** argv) {
  bool is_help =
      !strcmp(name, "--help") || !strcmp(name, "help") || !strcmp(name, "-h");
  bool is_completion = !strcmp(name, "completion");
  const cli_verb_row_t* about =
      is_help && argc == 3 ? cli_find_verb(argv[2]) : NULL;
  bool is_version = !strcmp(name, "version") || !strcmp(name, "--version");
  bool as_json = is_version && argc == 3 && !strcmp(argv[2], "--json");
  if (argc > (is_completion ? 3 : 2) && !about && !as_json) {
    cli_say_error(is_help ? "'pestle %s' wants a verb alone; what is '%s'?"
                  : is_completion
                      ? "'pestle %s' wants one shell: bash, zsh or fish; what "
                        "is '%s'?"
                  : is_version
                      ? "'pestle %s' takes no argument but --json, not '%s'"
                      : "'pestle %s' takes no argument, not '%s'",
                  name, argv[argc - 1]);
    return CLI_USAGE;
  }
  if (is_help) {
    cli_print_help(stdout, about);
  } else if (!strcmp(name, "man")) {
    cli_print_man(stdout);
  } else if (is_completion) {
    const char* shell = argc > 2 ? argv[2] : "bash";
    if (!cli_print_completion(stdout, shell)) {
      cli_say_error("'pestle completion' knows bash, zsh and fish, not '%s'",
                    shell);
      return CLI_USAGE;
    }
  } else if (is_version) {
    print_version(as_json);
  }
  return CLI_DONE;
}

static void say_no_verb(const char* name) {
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  char hint[PESTLE_HINT];
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb)
    pestle_closest_offer(&closest, pestle_str(verb->name));
  cli_say_error("no verb '%s'%s", name, pestle_closest_hint(&closest, hint));
}

static int run_name(const char* name, int argc, char** argv) {
  static const char* const words[] = {
      "--help", "help", "-h", "man", "completion", "version", "--version"};
  const cli_verb_row_t* verb = cli_find_verb(name);
  if (verb) return run_verb(verb, argc, argv);
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    if (!strcmp(words[i], name)) return run_word(name, argc, argv);
  }
  // What is wrong comes last, behind the long help.
  cli_print_help(stderr, NULL);
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
