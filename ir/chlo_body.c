// SPDX-License-Identifier: Apache-2.0
// The bodies of CHLO's ops: of those that chlo.def has as they are read, and of
// composites that stand for an op of CHLO, in place of the decomposition that came
// with them.
#include <stdlib.h>
#include <string.h>

#include "ir/chlo.h"

#define WIDE false
#define SELF true
static const pestle_chlo_row_t rows[] = {
#define PESTLE_CHLO(op, base, IN, ULPS, bound) \
  {"chlo." #op, PESTLE_OP_##base, IN, pestle_chlo_##op},
#include "ir/chlo.def"
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

typedef struct complex_row_t {
  const char* name;
  pv_t* (*formula)(pestle_formula_t* f, pv_t* z);
} complex_row_t;

static const complex_row_t complex_rows[] = {
#define PESTLE_CHLO_COMPLEX(op, STEPS, REACH) \
  {"chlo." #op, pestle_chlo_complex_##op},
#include "ir/chlo.def"
};
enum { COMPLEX_ROWS = sizeof(complex_rows) / sizeof(complex_rows[0]) };

const pestle_chlo_row_t* pestle_chlo_table(size_t* out_count) {
  *out_count = ROWS;
  return rows;
}

const pestle_chlo_row_t* pestle_chlo_find(pestle_str_t name) {
  for (size_t i = 0; i < ROWS; ++i) {
    if (pestle_str_equal_c(name, rows[i].name)) return &rows[i];
  }
  return NULL;
}

// --- Formulas ---

static pv_t* expand(const pestle_chlo_row_t* row, pestle_formula_t* f) {
  pestle_dtype_t dtype = pestle_node_operand(f->of->node, 0)->type->dtype;
  pestle_dtype_t compute = row->self ? dtype : f->compute;
  pv_t* operands[2] = {NULL, NULL};
  for (uint32_t i = 0; i < f->of->node->operand_count; ++i)
    operands[i] = pestle_f_operand(f, i, compute);
  if (f->status) return NULL;
  pv_t* y = row->formula(f, operands);
  return row->self ? y : pestle_f_convert(f, y, dtype);
}

// The same of complex numbers: rows whose base takes them have a formula of them.
static pv_t* expand_complex(const char* name, pestle_formula_t* f) {
  size_t at = 0;
  while (at < COMPLEX_ROWS && strcmp(complex_rows[at].name, name))
    ++at;
  if (at < COMPLEX_ROWS)
    return complex_rows[at].formula(f, pestle_node_operand(f->of->node, 0));
  return pestle_f_fail(
      f, pestle_node_error(f->of->node, PESTLE_STATUS_UNSUPPORTED,
                           "'%s' of complex numbers is not supported", name));
}

pestle_status_t pestle_chlo_build(pestle_builder_t* b,
                                  const pestle_chlo_row_t* row,
                                  pv_t* const* operands, size_t count,
                                  pv_t** out) {
  const pestle_type_t* type = operands[0]->type;
  pestle_node_t* base;
  pestle_node_spec_t spec = {
      .op = row->base, .operands = operands, .operand_count = count};
  PESTLE_TRY(pestle_node_create(b, &spec, &base));
  pestle_decomposition_t of = {.node = base, .shape = *type};
  // What is made has no place of its own: that of the op is given later.
  pestle_formula_t f = pestle_formula_make(
      (pestle_builder_t){b->module, b->block, base, .loc = {0}});
  bool wide = pestle_dtype_part(type->dtype) == PESTLE_F64;
  f.of = &of;
  of.shape.dtype = f.compute = wide ? PESTLE_F64 : PESTLE_F32;
  *out = pestle_type_is_complex(type) ? expand_complex(row->name, &f)
                                      : expand(row, &f);
  pestle_node_erase(base);
  return f.status;
}

// --- Composites ---

// The number after "k = " in the composite's attributes; -1: none.
static int64_t read_k(const pestle_node_t* composite) {
  const char* text = PESTLE_NODE_STR(composite, attributes);
  const char* at = text ? strstr(text, "k = ") : NULL;
  if (!at || (at != text && at[-1] != '{' && at[-1] != ' ')) return -1;
  return strtoll(at + 4, NULL, 10);
}

// What |composite| is of |arguments|: an op of scalar.def, a row of chlo.def, the
// largest of each row. NULL results: none of them.
static pestle_status_t build(const pestle_node_t* composite,
                             pestle_builder_t* b, pv_t* const* arguments,
                             pv_t* out[2]) {
  pestle_str_t name = pestle_str(PESTLE_NODE_STR(composite, name));
  size_t count = composite->operand_count;
  if (pestle_str_equal_c(name, "chlo.top_k")) {
    int64_t k = read_k(composite);
    pestle_type_t types[2];
    if (count != 1 || !pestle_chlo_top_k_types(arguments[0]->type, k, types)) {
      return NULL;
    }
    pestle_formula_t f = pestle_formula_make(*b);
    pestle_chlo_top_k(&f, arguments[0], k, out);
    return f.status;
  }
  const pestle_chlo_row_t* row = pestle_chlo_find(name);
  if (row) return pestle_chlo_build(b, row, arguments, count, out);
  for (unsigned op = 0; op < PESTLE_OP_COUNT; ++op) {
    if (!pestle_op_is_scalar((pestle_op_t)op) ||
        !pestle_str_equal_c(name, pestle_op_info((pestle_op_t)op)->mlir)) {
      continue;
    }
    pestle_formula_t f = pestle_formula_make(*b);
    out[0] =
        pestle_f_make(&f, (pestle_op_t)op, arguments, count, NULL, 0, NULL);
    return f.status;
  }
  return NULL;
}

// Whether the composite's results have the types of |values|.
static bool fits(const pestle_node_t* composite, pv_t* const* values) {
  for (uint32_t i = 0; i < composite->result_count; ++i) {
    if (i > 1 || !values[i] || values[i]->type != composite->results[i].type)
      return false;
  }
  return true;
}

static bool may_be(const pestle_node_t* composite) {
  const char* name = PESTLE_NODE_STR(composite, name);
  if (!name || strncmp(name, "chlo.", 5) || !composite->operand_count ||
      composite->operand_count > 2) {
    return false;
  }
  for (uint32_t i = 0; i < composite->operand_count; ++i) {
    if (!pestle_type_is_static(pestle_node_operand(composite, i)->type))
      return false;
  }
  return true;
}

pestle_status_t pestle_chlo_body(const pestle_node_t* composite,
                                 pestle_region_t** out_region) {
  *out_region = NULL;
  if (!may_be(composite)) return NULL;
  pestle_module_t* module = composite->block->region->module;
  pestle_builder_t b = {.module = module};
  pestle_type_t types[2];
  pv_t* values[2] = {NULL, NULL};
  for (uint32_t i = 0; i < composite->operand_count; ++i)
    types[i] = *pestle_node_operand(composite, i)->type;
  PESTLE_TRY(pestle_region_create(module, types, composite->operand_count,
                                  out_region, &b.block));
  pestle_status_t status = build(composite, &b, b.block->arguments, values);
  if (!status && fits(composite, values)) {
    return pestle_op_return(&b, values, composite->result_count, NULL);
  }
  pestle_region_discard(*out_region);
  *out_region = NULL;
  // Of types that the row does not take: the decomposition may.
  if (!status || pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) {
    return status;
  }
  pestle_status_release(status);
  return NULL;
}
