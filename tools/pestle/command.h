// SPDX-License-Identifier: Apache-2.0
// The tables of the command: its verbs, options and examples, from which parsing,
// help, the man page and completion follow.
#ifndef PESTLE_TOOLS_COMMAND_H_
#define PESTLE_TOOLS_COMMAND_H_

#include "cli.h"

typedef enum cli_kind_e {
  CLI_FLAG,
  CLI_MAYBE,
  CLI_TEXT,
  CLI_COUNT,
  CLI_BYTES,
  CLI_LIST
} cli_kind_t;

typedef struct cli_option_row_t {
  const char* name;
  cli_kind_t kind;
  const char* argument;
  const char* environment;  // "": none
  unsigned verbs;           // bits of those that take it
  const char* help;
} cli_option_row_t;

typedef struct cli_verb_row_t {
  const char* name;
  unsigned bit;
  const char* arguments;
  pestle_status_t (*run)(cli_t* cli, int* out_exit);
  const char* help;
} cli_verb_row_t;

// A variable that is no option: a tool asks for it, not a run.
typedef struct cli_variable_row_t {
  const char* name;
  const char* help;
} cli_variable_row_t;

// A command line that works on a model.onnx of one input, and what it does.
typedef struct cli_example_row_t {
  unsigned verb;  // its bit
  const char* command;
  const char* help;
} cli_example_row_t;

// What is asked for by a word of its own, without options.
typedef struct cli_word_row_t {
  const char* name;
  const char* arguments;
  const char* help;
} cli_word_row_t;

extern const cli_option_row_t cli_options[CLI_OPTION_COUNT];
// These end with a row without a name, or without a command.
extern const cli_verb_row_t cli_verbs[];
extern const cli_variable_row_t cli_variables[];
extern const cli_example_row_t cli_examples[];
extern const cli_word_row_t cli_words[];

const cli_verb_row_t* cli_find_verb(const char* name);
// "-o", "--device": which dashes an option takes.
const char* cli_dashes(const cli_option_row_t* option);

// --- help.c ---

// |verb| NULL: all of them.
void cli_print_help(FILE* out, const cli_verb_row_t* verb);
void cli_print_man(FILE* out);

// --- completion.c ---

// For |shell|: bash, zsh or fish; false for another.
bool cli_print_completion(FILE* out, const char* shell);

#endif  // PESTLE_TOOLS_COMMAND_H_
