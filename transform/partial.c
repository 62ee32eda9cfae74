// SPDX-License-Identifier: Apache-2.0
#include "transform/partial.h"
#include "base/fault.h"

#include "transform/transform.h"

// Of each row: op, operand, formula, end.
static const uint8_t rows[] = {
#define PESTLE_PARTIAL(NAME, operand, ...) \
  PESTLE_OP_##NAME, operand, __VA_ARGS__, PESTLE_PARTIAL_END,
#include "transform/partial.def"
    PESTLE_PARTIAL_END};
static const double numbers[] = {PESTLE_PARTIAL_NUMBERS};

const uint8_t* pestle_partial_find(pestle_op_t op, size_t operand) {
  const uint8_t* row = rows;
  while (*row != PESTLE_PARTIAL_END) {
    if (row[0] == op && row[1] == operand) return row + 2;
    while (*row != PESTLE_PARTIAL_END)
      ++row;
    ++row;
  }
  return NULL;
}

double pestle_partial_number(size_t index) {
  return numbers[index];
}

// The value of one code, given the stack below it.
static pv_t* step(pestle_formula_t* f, uint8_t code, pv_t* const* operands,
                  pv_t* result, pv_t** stack, size_t* depth) {
  if (code >= PESTLE_PARTIAL_NUMBER) {
    return pestle_f_splat(f, result, numbers[code - PESTLE_PARTIAL_NUMBER]);
  }
  if (code == PESTLE_PARTIAL_RESULT) return result;
  if (code >= PESTLE_PARTIAL_OPERAND) {
    return operands[code - PESTLE_PARTIAL_OPERAND];
  }
  size_t count = pestle_op_info((pestle_op_t)code)->operands;
  *depth -= count;
  return pestle_f_make(f, (pestle_op_t)code, stack + *depth, count, NULL, 0,
                       NULL);
}

static pv_t* build(pestle_formula_t* f, const uint8_t* formula,
                   pv_t* const* operands, pv_t* result) {
  pv_t* stack[PESTLE_PARTIAL_DEPTH];
  size_t depth = 0;
  for (; *formula != PESTLE_PARTIAL_END; ++formula) {
    pv_t* value = step(f, *formula, operands, result, stack, &depth);
    stack[depth++] = value;
  }
  return stack[0];
}

pv_t* pestle_scaled(pestle_formula_t* f, pv_t* factor, pv_t* tangent,
                    pestle_dtype_t dtype) {
  if (!factor || !tangent) return NULL;
  tangent = pestle_f_convert(f, tangent, factor->type->dtype);
  return pestle_f_convert(f, pestle_f_multiply(f, factor, tangent), dtype);
}

static bool is_one(const uint8_t* formula) {
  return formula[0] == PESTLE_PARTIAL_ONE && formula[1] == PESTLE_PARTIAL_END;
}

// Whose partial derivative goes with the tangent of operand |i|.
static size_t partial_of(const pestle_node_t* node, size_t i) {
  return PESTLE_FAULT(swapped_partial) && node->operand_count == 2 ? 1 - i : i;
}

void pestle_jvp_partial(pestle_jvp_t* j, const pestle_node_t* node,
                        pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t *operands[3], *terms[3] = {NULL};
  pv_t* result = pestle_node_result(node, 0);
  pestle_dtype_t dtype = result->type->dtype;
  pestle_dtype_t compute = pestle_compute_dtype(dtype);
  for (uint32_t i = 0; i < node->operand_count; ++i)
    operands[i] = pestle_f_convert(f, pestle_node_operand(node, i), compute);
  result = pestle_f_convert(f, result, compute);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const uint8_t* formula =
        t[i] ? pestle_partial_find((pestle_op_t)node->op, partial_of(node, i))
             : NULL;
    if (!formula) continue;
    pv_t* tangent = pestle_f_convert(f, t[i], compute);
    terms[i] = is_one(formula)
                   ? tangent
                   : pestle_scaled(f, build(f, formula, operands, result),
                                   tangent, compute);
  }
  out[0] = pestle_sum(f, terms, node->operand_count);
  out[0] = pestle_f_convert(f, out[0], dtype);
}
