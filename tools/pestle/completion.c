// SPDX-License-Identifier: Apache-2.0
// Completion for bash, zsh and fish, as the tables of command.h say. Values of an
// option are the alternatives of its argument that are words ("graph|fused"), the
// devices that the command finds, or files.
#include <string.h>

#include "command.h"

typedef enum values_e { NOTHING, WORDS, DEVICES, FILES } values_t;

// The next alternative of |*text| that is a word as it is typed; false: no more.
static bool next_word(const char** text, const char** out_word, int* out_size) {
  while (**text) {
    const char* begin = *text;
    size_t size = strcspn(begin, "| ");
    *text += size + (begin[size] == '|');
    if (begin[size] == ' ') *text = "";  // what follows the first argument
    size_t plain = strspn(begin, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (!size || plain != size) continue;
    *out_word = begin;
    *out_size = (int)size;
    return true;
  }
  return false;
}

static values_t values_of(const cli_option_row_t* o) {
  const char *text = o->argument, *word;
  int size;
  if (o->kind == CLI_FLAG || o->kind == CLI_MAYBE) return NOTHING;
  if (!strcmp(text, "DEVICE")) return DEVICES;
  if (next_word(&text, &word, &size)) return WORDS;
  bool is_file = strstr(o->argument, "FILE") || strstr(o->argument, "DIR") ||
                 strstr(o->argument, "PATH");
  return is_file ? FILES : NOTHING;
}

static void print_words(FILE* out, const char* text) {
  const char* word;
  int size;
  bool is_first = true;
  while (next_word(&text, &word, &size)) {
    fprintf(out, "%s%.*s", is_first ? "" : " ", size, word);
    is_first = false;
  }
}

static bool has_words(const char* text) {
  const char* word;
  int size;
  return next_word(&text, &word, &size);
}

static void print_verbs(FILE* out) {
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb)
    fprintf(out, "%s ", verb->name);
  for (const cli_word_row_t* word = cli_words; word->name; ++word)
    fprintf(out, "%s%s", word->name, word[1].name ? " " : "");
}

// --- bash ---

// The patterns by which a case finds option |o| behind a verb.
static void print_bash_patterns(FILE* out, const cli_option_row_t* o) {
  bool is_first = true;
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb) {
    if (!(o->verbs & verb->bit)) continue;
    fprintf(out, "%s%s:%s%s", is_first ? "    " : "|", verb->name,
            cli_dashes(o), o->name);
    is_first = false;
  }
  fputs(") ", out);
}

static void print_bash_values(FILE* out) {
  for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
    const cli_option_row_t* o = &cli_options[i];
    if (o->kind == CLI_FLAG || o->kind == CLI_MAYBE) continue;
    print_bash_patterns(out, o);
    switch (values_of(o)) {
      case NOTHING:
        fprintf(out, "return");
        break;
      case WORDS:
        fputs("words='", out);
        print_words(out, o->argument);
        fputs("'; files=", out);
        break;
      case DEVICES:
        fputs("words=$(\"$command\" devices --names 2>/dev/null); files=", out);
        break;
      case FILES:
        fputs("words=; files=-f", out);
        break;
    }
    fputs(" ;;\n", out);
  }
}

static void print_bash(FILE* out) {
  fputs(
      "_pestle() {\n"
      "  local command=${COMP_WORDS[0]} verb=${COMP_WORDS[1]} words files=-f\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  COMPREPLY=()\n"
      "  if [ $COMP_CWORD -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '",
      out);
  print_verbs(out);
  fputs(
      "' -- \"$cur\"))\n    return\n  fi\n"
      "  # '--stage=gr' comes as three words, ':' of a device's name too\n"
      "  if [ \"$cur\" = = ]; then cur=\n"
      "  elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  case $verb in\n",
      out);
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb) {
    fprintf(out, "    %s) words='", verb->name);
    print_words(out, verb->arguments);
    if (has_words(verb->arguments)) fputc(' ', out);
    for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
      if (!(cli_options[i].verbs & verb->bit)) continue;
      fprintf(out, "%s%s ", cli_dashes(&cli_options[i]), cli_options[i].name);
    }
    fputs("' ;;\n", out);
  }
  for (const cli_word_row_t* word = cli_words; word->name; ++word) {
    fprintf(out, "    %s) files= words='", word->name);
    print_words(out, word->arguments);
    if (!strcmp(word->name, "help")) print_verbs(out);
    fputs("' ;;\n", out);
  }
  fputs("  esac\n  case $verb:$prev in\n", out);
  print_bash_values(out);
  fputs(
      "  esac\n  COMPREPLY=($(compgen -W \"$words\" $files -- \"$cur\"))\n}\n"
      "complete -F _pestle pestle\n",
      out);
}

// --- zsh ---

// Inside of '..[..]': what would end it.
static void print_quoted(FILE* out, const char* text) {
  for (; *text; ++text) {
    if (*text == '\'') {
      fputs("'\\''", out);
      continue;
    }
    if (strchr("[]:\\", *text)) fputc('\\', out);
    fputc(*text, out);
  }
}

static void print_zsh_option(FILE* out, const cli_option_row_t* o) {
  fprintf(out, "        '%s%s%s%s[", o->kind == CLI_LIST ? "*" : "",
          cli_dashes(o), o->name, o->kind == CLI_MAYBE ? "=-" : "");
  print_quoted(out, o->help);
  fputc(']', out);
  if (o->kind != CLI_FLAG) {
    fputs(o->kind == CLI_MAYBE ? "::" : ":", out);
    print_quoted(out, o->argument);
    fputc(':', out);
  }
  switch (values_of(o)) {
    case NOTHING:
      break;
    case WORDS:
      fputc('(', out);
      print_words(out, o->argument);
      fputc(')', out);
      break;
    case DEVICES:
      fputs("{compadd -- ${(f)\"$($words[1] devices --names 2>/dev/null)\"}}",
            out);
      break;
    case FILES:
      fputs("_files", out);
      break;
  }
  fputs("' \\\n", out);
}

static void print_zsh(FILE* out) {
  fputs("#compdef pestle\n_pestle() {\n  local -a verbs\n  verbs=(\n", out);
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb) {
    fprintf(out, "    '%s:", verb->name);
    print_quoted(out, verb->help);
    fputs("'\n", out);
  }
  for (const cli_word_row_t* word = cli_words; word->name; ++word) {
    fprintf(out, "    '%s:", word->name);
    print_quoted(out, word->help);
    fputs("'\n", out);
  }
  fputs(
      "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    "
      "return\n"
      "  fi\n  local verb=$words[2]\n  case $verb in\n",
      out);
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb) {
    fprintf(out, "    %s)\n      _arguments \\\n        '1: :' \\\n",
            verb->name);
    for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
      if (cli_options[i].verbs & verb->bit)
        print_zsh_option(out, &cli_options[i]);
    }
    if (has_words(verb->arguments)) {
      fputs("        '2: :(", out);
      print_words(out, verb->arguments);
      fputs(")' \\\n", out);
    }
    fputs("        '*:file:_files' ;;\n", out);
  }
  fputs(
      "    completion) compadd bash zsh fish ;;\n"
      "    help) _describe verb verbs ;;\n"
      "  esac\n}\n"
      // Sourced, or the function's own file in the folder of fpath.
      "if [[ $funcstack[1] = _pestle ]]; then _pestle \"$@\"\n"
      "else compdef _pestle pestle; fi\n",
      out);
}

// --- fish ---

static void print_fish_text(FILE* out, const char* text) {
  fputc('\'', out);
  for (; *text; ++text) {
    if (*text == '\'' || *text == '\\') fputc('\\', out);
    fputc(*text, out);
  }
  fputc('\'', out);
}

static void print_fish_option(FILE* out, const cli_verb_row_t* verb,
                              const cli_option_row_t* o) {
  fprintf(out, "complete -c pestle -n '__fish_seen_subcommand_from %s' -%s %s",
          verb->name, strlen(o->name) == 1 ? "o" : "l", o->name);
  switch (values_of(o)) {
    case NOTHING:
      if (o->kind != CLI_FLAG && o->kind != CLI_MAYBE) fputs(" -x", out);
      break;
    case WORDS:
      fputs(" -x -a '", out);
      print_words(out, o->argument);
      fputc('\'', out);
      break;
    case DEVICES:
      fputs(" -x -a '(pestle devices --names 2>/dev/null)'", out);
      break;
    case FILES:
      fputs(" -r -F", out);
      break;
  }
  fputs(" -d ", out);
  print_fish_text(out, o->help);
  fputc('\n', out);
}

static void print_fish(FILE* out) {
  for (const cli_verb_row_t* verb = cli_verbs; verb->name; ++verb) {
    fprintf(out, "complete -c pestle -n __fish_use_subcommand -f -a %s -d ",
            verb->name);
    print_fish_text(out, verb->help);
    fputc('\n', out);
    if (has_words(verb->arguments)) {
      fprintf(out,
              "complete -c pestle -n '__fish_seen_subcommand_from %s' -a '",
              verb->name);
      print_words(out, verb->arguments);
      fputs("'\n", out);
    }
    for (int i = 0; i < CLI_OPTION_COUNT; ++i) {
      if (cli_options[i].verbs & verb->bit)
        print_fish_option(out, verb, &cli_options[i]);
    }
  }
  for (const cli_word_row_t* word = cli_words; word->name; ++word) {
    fprintf(out, "complete -c pestle -n __fish_use_subcommand -f -a %s -d ",
            word->name);
    print_fish_text(out, word->help);
    fputc('\n', out);
  }
  fputs(
      "complete -c pestle -n '__fish_seen_subcommand_from completion' -f -a "
      "'bash zsh fish'\n",
      out);
}

bool cli_print_completion(FILE* out, const char* shell) {
  if (!strcmp(shell, "bash")) {
    print_bash(out);
  } else if (!strcmp(shell, "zsh")) {
    print_zsh(out);
  } else if (!strcmp(shell, "fish")) {
    print_fish(out);
  } else {
    return false;
  }
  return true;
}
