// SPDX-License-Identifier: Apache-2.0
// Ops of CHLO that jax emits and that no row stands for: each is read as a CUSTOM
// of its name, whose body is its formula.
#include <string.h>

#include "ir/chlo.h"
#include "ir/formula.h"
#include "ir/generic.h"

typedef struct row_t {
  const char* name;
  pestle_op_t base;
  bool self;  // computed in the type of its operands
  pv_t* (*formula)(pestle_formula_t* f, pv_t* const* operands);
} row_t;

#define WIDE false
#define SELF true
static const row_t rows[] = {
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

const char* pestle_generic_chlo_name(size_t index) {
  return index < ROWS ? rows[index].name : NULL;
}

pestle_op_t pestle_generic_chlo_base(size_t index) {
  return rows[index].base;
}

// The formula of |row| before |f->of->node|; NULL if a step failed.
static pv_t* expand(const row_t* row, pestle_formula_t* f) {
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
  f->status =
      pestle_node_error(f->of->node, PESTLE_STATUS_UNSUPPORTED,
                        "'%s' of complex numbers is not supported", name);
  return NULL;
}

// The formula of |name| over |base|, which stands for it inside |wrap|.
static pestle_status_t build(size_t at, pestle_node_t* base,
                             pestle_generic_wrap_t* wrap, pv_t** out) {
  const pestle_type_t* type = pestle_node_operand(base, 0)->type;
  pestle_decomposition_t of = {.node = base, .shape = *type};
  pestle_formula_t f = pestle_formula_make(wrap->inside);
  bool wide = pestle_dtype_part(type->dtype) == PESTLE_F64;
  f.builder.before = base;
  f.of = &of;
  of.shape.dtype = f.compute = wide ? PESTLE_F64 : PESTLE_F32;
  *out = pestle_type_is_complex(type) ? expand_complex(rows[at].name, &f)
                                      : expand(&rows[at], &f);
  return f.status;
}

pestle_status_t pestle_generic_chlo(const pestle_generic_site_t* site,
                                    pestle_node_t** node) {
  size_t at = 0;
  if (!pestle_str_starts_with(site->name, PESTLE_STR("chlo."))) return NULL;
  while (at < ROWS && !pestle_str_equal_c(site->name, rows[at].name))
    ++at;
  if (at == ROWS) return NULL;
  const pestle_type_t* type = pestle_node_operand(*node, 0)->type;
  if (!pestle_type_is_static(type)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "'%s' of a tensor with unknown extents is not "
                        "supported",
                        rows[at].name);
  }
  pestle_generic_site_t own = *site;
  own.builder = pestle_builder_before(*node);
  pestle_generic_wrap_t wrap;
  PESTLE_TRY(pestle_generic_wrap_begin(&own, &wrap));
  pestle_node_t *base, *made;
  pestle_builder_t b = wrap.inside;
  b.loc = (*node)->loc;  // for what the formula may object to
  pestle_node_spec_t spec = {.op = (pestle_op_t)(*node)->op,
                             .operands = wrap.arguments,
                             .operand_count = site->operand_count};
  PESTLE_TRY(pestle_node_create(&b, &spec, &base));
  pv_t* y;
  PESTLE_TRY(build(at, base, &wrap, &y));
  pestle_node_erase(base);
  PESTLE_TRY(
      pestle_generic_wrap_end(&own, &wrap, PESTLE_STR(""), &y, 1, &made));
  pestle_node_erase(*node);
  *node = made;
  return NULL;
}
