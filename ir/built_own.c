// SPDX-License-Identifier: Apache-2.0
#include "ir/built_own.h"

#include <string.h>

#include "base/mem.h"
#include "ir/internal.h"

typedef pestle_value_t pv_t;

enum { MOST = 4 };

static pestle_dtype_t complex_of(pestle_dtype_t part) {
  return part == PESTLE_F64 ? PESTLE_C128 : PESTLE_C64;
}

// [..]c64 -> [.., 2]f32
static pv_t* as_pairs(pestle_formula_t* f, pv_t* x) {
  if (!x) return NULL;
  if (!pestle_type_is_complex(x->type)) {
    pv_t* parts[2] = {x, pestle_f_splat(f, x, 0)};
    x = pestle_f_make(f, PESTLE_OP_COMPLEX, parts, 2, NULL, 0, NULL);
  }
  if (!x) return NULL;
  pestle_type_t type = *x->type;
  if (type.rank == PESTLE_MAX_RANK) {
    f->status = PESTLE_ERROR(UNSUPPORTED, "complex matrices of rank %d",
                             PESTLE_MAX_RANK);
    return NULL;
  }
  type.dtype = pestle_dtype_part(type.dtype);
  type.dims[type.rank++] = 2;
  return pestle_f_make(f, PESTLE_OP_BITCAST_CONVERT, &x, 1, NULL, 0, &type);
}

// What |x|, pairs, is in |type|.
static pv_t* from_pairs(pestle_formula_t* f, pv_t* x,
                        const pestle_type_t* type) {
  pestle_type_t whole = *type;
  bool real = !pestle_type_is_complex(type);
  if (real) whole.dtype = complex_of(type->dtype);
  x = pestle_f_make(f, PESTLE_OP_BITCAST_CONVERT, &x, 1, NULL, 0, &whole);
  return real ? pestle_f_unary(f, PESTLE_OP_REAL, x) : x;
}

void pestle_own_linalg(pestle_formula_t* f, const char* name, const char* flags,
                       pv_t* const* in, size_t in_count,
                       const pestle_type_t* types, const char* parts,
                       pv_t** out) {
  pv_t* operands[MOST];
  pestle_type_t given[MOST];
  size_t count = strlen(parts);
  for (size_t i = 0; i < in_count; ++i)
    operands[i] = pestle_dtype_is(in[i]->type->dtype, PESTLE_KIND_INT)
                      ? in[i]
                      : as_pairs(f, in[i]);
  for (size_t i = 0; i < count; ++i) {
    given[i] = types[i];
    if (parts[i] != 'z') continue;
    if (given[i].rank == PESTLE_MAX_RANK) return;
    if (pestle_type_is_complex(&given[i])) {
      given[i].dtype = pestle_dtype_part(given[i].dtype);
    }
    given[i].dims[given[i].rank++] = 2;
  }
  pestle_attr_t attrs[] = {PESTLE_SET_STR(call_target_name, name),
                           PESTLE_SET_STR(backend_config, flags)};
  pestle_node_t* node =
      pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_CUSTOM_CALL,
                                             .operands = operands,
                                             .operand_count = in_count,
                                             .attrs = attrs,
                                             .attr_count = 2,
                                             .type = given,
                                             .types = given,
                                             .type_count = count});
  for (size_t i = 0; node && i < count; ++i) {
    pv_t* y = pestle_node_result(node, i);
    out[i] = parts[i] == 'z' ? from_pairs(f, y, &types[i]) : y;
  }
}

// --- Rows ---

bool pestle_own_takes(pestle_op_t op, pv_t* const* operands, size_t count) {
  bool known = (op == PESTLE_OP_CHOLESKY && count == 1) ||
               (op == PESTLE_OP_TRIANGULAR_SOLVE && count == 2);
  for (size_t i = 0; known && i < count; ++i) {
    known = pestle_type_is_complex(operands[i]->type) &&
            pestle_type_is_static(operands[i]->type) &&
            operands[i]->type->rank < PESTLE_MAX_RANK;
  }
  return known;
}

pestle_status_t pestle_own_row(pestle_op_t op, const pestle_attr_t* attrs,
                               size_t attr_count, pestle_builder_t* b,
                               pv_t* const* operands, size_t count,
                               pestle_node_t** out_node) {
  char flags[8] = "";
  size_t n = 0;
  bool left = false;
  // The row's own rule says what is wrong with the operands.
  pestle_node_spec_t spec = {.op = op,
                             .operands = operands,
                             .operand_count = count,
                             .attrs = attrs,
                             .attr_count = attr_count,
                             .module = b->module};
  pestle_type_t type;
  size_t types;
  PESTLE_TRY(pestle_infer_types(&spec, &type, 1, &types));
  for (size_t i = 0; i < attr_count; ++i) {
    const pestle_attr_t* a = &attrs[i];
    if (a->name == PESTLE_ATTR_lower && a->as.b) flags[n++] = 'L';
    if (a->name == PESTLE_ATTR_unit_diagonal && a->as.b) flags[n++] = 'U';
    if (a->name == PESTLE_ATTR_left_side) left = a->as.b;
    if (a->name != PESTLE_ATTR_transpose_a) continue;
    if (strcmp(a->as.str, "NO_TRANSPOSE")) flags[n++] = 'T';
    if (!strcmp(a->as.str, "ADJOINT")) flags[n++] = 'C';
  }
  if (op == PESTLE_OP_TRIANGULAR_SOLVE && !left) flags[n++] = 'R';
  pestle_formula_t f = pestle_formula_make(*b);
  pv_t* y = NULL;
  pestle_own_linalg(&f,
                    op == PESTLE_OP_CHOLESKY ? "pestle.z.cholesky"
                                             : "pestle.z.triangular_solve",
                    flags, operands, count, &type, "z", &y);
  if (y) *out_node = y->node;
  return f.status;
}
