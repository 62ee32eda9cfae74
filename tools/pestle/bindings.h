// SPDX-License-Identifier: Apache-2.0
// What an import is told of dims, shapes and values (bindings_compiler.c).
#ifndef PESTLE_TOOLS_BINDINGS_H_
#define PESTLE_TOOLS_BINDINGS_H_

#include "cli.h"

typedef struct cli_bindings_t {
  PESTLE_VEC(pestle_dim_binding_t) dims;
  PESTLE_VEC(pestle_shape_binding_t) shapes;
  PESTLE_VEC(pestle_const_binding_t) consts;
  cli_arrays_t arrays;  // that values of |consts| lie in
  pestle_onnx_compat_t compat;
} cli_bindings_t;

void cli_bindings_init(cli_bindings_t* b);
void cli_bindings_deinit(cli_bindings_t* b);
// What the options say, and, unless it is NULL, |inputs| of the model at |path|; |inputs|
// gets the names of the model's.
PESTLE_NODISCARD pestle_status_t cli_bindings_read(cli_t* cli, const char* path,
                                                   cli_inputs_t* inputs,
                                                   cli_bindings_t* b);
// Borrows from |b|.
pestle_import_options_t cli_bindings_options(cli_t* cli,
                                             const cli_bindings_t* b);

#endif  // PESTLE_TOOLS_BINDINGS_H_
