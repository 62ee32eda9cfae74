// SPDX-License-Identifier: Apache-2.0
#include "ir/scan.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/formula.h"
#include "ir/infer.h"

// --- Types ---

bool pestle_scan_element_type(const pestle_type_t* stacked,
                              pestle_type_t* out_element) {
  if (!stacked->rank) return false;
  *out_element =
      pestle_type_make(stacked->dtype, stacked->rank - 1, stacked->dims + 1);
  return true;
}

bool pestle_scan_stacked_type(const pestle_type_t* element, int64_t length,
                              pestle_type_t* out_stacked) {
  int64_t dims[PESTLE_MAX_RANK];
  if (element->rank >= PESTLE_MAX_RANK) return false;
  dims[0] = length;
  memcpy(dims + 1, element->dims, (size_t)element->rank * sizeof(*dims));
  *out_stacked = pestle_type_make(element->dtype, element->rank + 1, dims);
  return true;
}

bool pestle_scan_argument_type(size_t index, int64_t carry_count,
                               int64_t xs_count, const pestle_type_t* operand,
                               pestle_type_t* out_type) {
  uint64_t at = index - (uint64_t)carry_count;
  if (index >= (uint64_t)carry_count && at < (uint64_t)xs_count) {
    return pestle_scan_element_type(operand, out_type);
  }
  *out_type = *operand;
  return true;
}

bool pestle_scan_node_argument_type(const pestle_node_t* node, size_t index,
                                    const pestle_type_t* operand,
                                    pestle_type_t* out_type) {
  return pestle_scan_argument_type(index, PESTLE_NODE_I64(node, carry_count),
                                   PESTLE_NODE_I64(node, xs_count), operand,
                                   out_type);
}

// --- The rule ---

static pestle_status_t check_counts(const pestle_infer_t* in) {
  static const pestle_attr_name_t names[] = {PESTLE_ATTR_carry_count,
                                             PESTLE_ATTR_xs_count};
  uint64_t left = in->spec->operand_count;
  for (size_t i = 0; i < 2; ++i) {
    int64_t count = pestle_in_i64(in, names[i]);
    if (count < 0 || (uint64_t)count > left) {
      return PESTLE_BAD("'%s' is %" PRId64 " of %zu operands",
                        pestle_attr_name_text(names[i]), count,
                        in->spec->operand_count);
    }
    left -= (uint64_t)count;
  }
  if (pestle_in_i64(in, PESTLE_ATTR_length) < 0) {
    return PESTLE_BAD("'length' is %" PRId64
                      ", a number of turns is at least 0",
                      pestle_in_i64(in, PESTLE_ATTR_length));
  }
  if (pestle_in_i64(in, PESTLE_ATTR_unroll) < 0) {
    return PESTLE_BAD("'unroll' is %" PRId64 ", it is at least 0",
                      pestle_in_i64(in, PESTLE_ATTR_unroll));
  }
  return NULL;
}

static pestle_status_t check_arguments(const pestle_infer_t* in) {
  int64_t carries = pestle_in_i64(in, PESTLE_ATTR_carry_count);
  int64_t xs = pestle_in_i64(in, PESTLE_ATTR_xs_count);
  int64_t length = pestle_in_i64(in, PESTLE_ATTR_length);
  size_t count = in->spec->operand_count;
  PESTLE_TRY(pestle_need_arguments(in, 0, count));
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* operand = pestle_in_type(in, i);
    pestle_type_t want;
    bool is_x = i >= (size_t)carries && i < (size_t)(carries + xs);
    if (is_x &&
        (!operand->rank || !pestle_dims_agree(operand->dims[0], length))) {
      return PESTLE_BAD(
          "operand %zu is %s: the arrays that are scanned have "
          "'length', %" PRId64 ", elements along dimension 0",
          i, pestle_type_text(operand).text, length);
    }
    (void)pestle_scan_argument_type(i, carries, xs, operand, &want);
    PESTLE_TRY(pestle_need_region_type(
        "argument", i, 0, pestle_in_block(in, 0)->arguments[i]->type, &want));
  }
  return NULL;
}

pestle_status_t pestle_infer_scan(pestle_infer_t* in) {
  const pestle_node_t* end;
  PESTLE_TRY(check_counts(in));
  PESTLE_TRY(check_arguments(in));
  PESTLE_TRY(pestle_in_return(in, 0, &end));
  size_t carries = (size_t)pestle_in_i64(in, PESTLE_ATTR_carry_count);
  if (end->operand_count < carries) {
    return PESTLE_BAD(
        "region 0, the body, returns %u values, fewer than the "
        "%zu that it carries",
        (unsigned)end->operand_count, carries);
  }
  for (uint32_t i = 0; i < end->operand_count; ++i) {
    const pestle_type_t* type = pestle_node_operand(end, i)->type;
    pestle_type_t result = *type;
    if (i < carries) {
      PESTLE_TRY(
          pestle_need_region_type("result", i, 0, type, pestle_in_type(in, i)));
    } else if (!pestle_scan_stacked_type(
                   type, pestle_in_i64(in, PESTLE_ATTR_length), &result)) {
      return PESTLE_BAD(
          "result %u of region 0 is %s: what is stacked up has "
          "at most %d dimensions",
          (unsigned)i, pestle_type_text(type).text, PESTLE_MAX_RANK - 1);
    }
    PESTLE_TRY(pestle_emit(in, &result));
  }
  return NULL;
}

// --- Reading ---

pestle_scan_t pestle_scan_read(const pestle_node_t* node) {
  pestle_block_t* body = pestle_node_body(node, 0);
  pestle_scan_t s = {.node = (pestle_node_t*)(uintptr_t)node,
                     .body = body,
                     .length = PESTLE_NODE_I64(node, length),
                     .unroll = PESTLE_NODE_I64(node, unroll),
                     .reverse = PESTLE_NODE_BOOL(node, reverse),
                     .carry_count = (size_t)PESTLE_NODE_I64(node, carry_count),
                     .xs_count = (size_t)PESTLE_NODE_I64(node, xs_count)};
  if (s.unroll < 1) s.unroll = 1;
  size_t first = s.carry_count + s.xs_count;
  s.constant_count = node->operand_count - first;
  s.ys_count = node->result_count - s.carry_count;
  s.init = node->operands;
  s.xs = node->operands + s.carry_count;
  s.constants = node->operands + first;
  s.carry = body->arguments;
  s.x = body->arguments + s.carry_count;
  s.constant = body->arguments + first;
  s.next = body->last->operands;
  s.y = body->last->operands + s.carry_count;
  s.final = node->results;
  s.ys = node->results + s.carry_count;
  return s;
}

// --- Building ---

static size_t operand_count(const pestle_scan_spec_t* spec) {
  return spec->carry_count + spec->xs_count + spec->constant_count;
}

static pestle_value_t* operand_at(const pestle_scan_spec_t* spec, size_t i) {
  if (i < spec->carry_count) return spec->init[i];
  i -= spec->carry_count;
  return i < spec->xs_count ? spec->xs[i] : spec->constants[i - spec->xs_count];
}

pestle_status_t pestle_scan_begin(const pestle_builder_t* builder,
                                  const pestle_scan_spec_t* spec,
                                  pestle_scan_body_t* out_body) {
  pestle_block_t* block;
  *out_body = (pestle_scan_body_t){.builder = *builder};
  PESTLE_TRY(pestle_region_create(builder->module, NULL, 0, &out_body->region,
                                  &block));
  for (size_t i = 0; i < operand_count(spec); ++i) {
    pestle_value_t* argument;
    pestle_type_t type;
    if (!operand_at(spec, i)) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "operand %zu of a scan is NULL", i);
    }
    if (!pestle_scan_argument_type(i, (int64_t)spec->carry_count,
                                   (int64_t)spec->xs_count,
                                   operand_at(spec, i)->type, &type)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "operand %zu of a scan is of rank 0 and cannot be "
                          "taken element by element",
                          i);
    }
    PESTLE_TRY(
        pestle_block_add_argument(builder->module, block, &type, &argument));
  }
  out_body->builder.block = block;
  out_body->builder.before = NULL;
  out_body->carry = block->arguments;
  out_body->x = block->arguments + spec->carry_count;
  out_body->constant = out_body->x + spec->xs_count;
  return NULL;
}

static pestle_status_t make_scan(pestle_builder_t* builder,
                                 const pestle_scan_spec_t* spec,
                                 pestle_scan_body_t* body,
                                 pestle_value_t* const* next,
                                 pestle_value_t* const* ys, size_t ys_count,
                                 pestle_value_t** values,
                                 pestle_node_t** out_node) {
  for (size_t i = 0; i < spec->carry_count; ++i)
    values[i] = next[i];
  for (size_t i = 0; i < ys_count; ++i)
    values[spec->carry_count + i] = ys[i];
  PESTLE_TRY(pestle_op_return(&body->builder, values,
                              spec->carry_count + ys_count, NULL));
  for (size_t i = 0; i < operand_count(spec); ++i)
    values[i] = operand_at(spec, i);
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64(length, spec->length),
      PESTLE_SET_I64(carry_count, (int64_t)spec->carry_count),
      PESTLE_SET_I64(xs_count, (int64_t)spec->xs_count),
      PESTLE_SET_I64(unroll, spec->unroll),
      PESTLE_SET_BOOL(reverse, spec->reverse)};
  return pestle_node_create(
      builder,
      &(pestle_node_spec_t){.op = PESTLE_OP_SCAN,
                            .operands = values,
                            .operand_count = operand_count(spec),
                            .attrs = attrs,
                            .attr_count = sizeof(attrs) / sizeof(attrs[0]),
                            .regions = &body->region,
                            .region_count = 1},
      out_node);
}

pestle_status_t pestle_scan_end(pestle_builder_t* builder,
                                const pestle_scan_spec_t* spec,
                                pestle_scan_body_t* body,
                                pestle_status_t status,
                                pestle_value_t* const* next,
                                pestle_value_t* const* ys, size_t ys_count,
                                pestle_node_t** out_node) {
  size_t count = operand_count(spec) + spec->carry_count + ys_count;
  pestle_allocator_t allocator = builder->module->arena.allocator;
  *out_node = NULL;
  if (!status) {
    pestle_value_t** values =
        pestle_alloc_array(allocator, count, sizeof(*values));
    status = values ? make_scan(builder, spec, body, next, ys, ys_count, values,
                                out_node)
                    : PESTLE_OOM();
    pestle_dealloc(allocator, values, count * sizeof(*values));
  }
  if (status) pestle_region_discard(body->region);
  return status;
}
