// SPDX-License-Identifier: Apache-2.0
// A module's generic text as lines and ops, and edits of it. See
// ir_text_compiler.c.
#ifndef PESTLE_TOOLS_IR_TEXT_H_
#define PESTLE_TOOLS_IR_TEXT_H_

#include "cli.h"

enum { CLI_IR_MAX_RESULTS = 128 };

// An op with results: the lines that it takes, what it makes and reads.
typedef struct cli_ir_op_t {
  size_t first, last, indent;
  pestle_str_t name;  // "%3", the op's own without "#1"
  pestle_str_t kind;  // "stablehlo.add"
  size_t result_count, operand_count;
  pestle_str_t types[CLI_IR_MAX_RESULTS];
  pestle_str_t operands[CLI_IR_MAX_RESULTS];
} cli_ir_op_t;

typedef struct cli_ir_text_t {
  cli_t* cli;
  char* text;
  size_t size;
  PESTLE_VEC(pestle_str_t) lines;
  PESTLE_VEC(cli_ir_op_t) ops;
  size_t header, end;    // lines of the entry and of its return
  cli_ir_op_t returned;  // |operands| of |types|
} cli_ir_text_t;

// |from| becomes |to|; or a value and its type.
typedef struct cli_ir_pair_t {
  pestle_str_t from, to;
} cli_ir_pair_t;

typedef struct cli_ir_edit_t {
  const bool* remove;           // lines; or NULL
  const pestle_str_t* replace;  // lines, where they are not empty; or NULL
  const cli_ir_pair_t* renames;
  size_t rename_count;
  const cli_ir_pair_t* arguments;  // new ones of the entry
  size_t argument_count;
  const cli_ir_pair_t* results;  // what the entry returns; NULL: as it is
  size_t result_count;
  bool (*drops)(void* user, pestle_str_t argument);  // of the entry; or NULL
  void* user;
} cli_ir_edit_t;

// |t| must be deinitialised whatever comes back.
PESTLE_NODISCARD pestle_status_t cli_ir_text_init(cli_t* cli,
                                                  const pestle_module_t* module,
                                                  cli_ir_text_t* t);
void cli_ir_text_deinit(cli_ir_text_t* t);
// "%3" or "%3#1".
PESTLE_NODISCARD pestle_status_t cli_ir_result_name(cli_t* cli,
                                                    const cli_ir_op_t* op,
                                                    size_t i,
                                                    pestle_str_t* out);
PESTLE_NODISCARD pestle_status_t cli_ir_text_apply(const cli_ir_text_t* t,
                                                   const cli_ir_edit_t* edit,
                                                   pestle_strbuf_t* out);

#endif  // PESTLE_TOOLS_IR_TEXT_H_
