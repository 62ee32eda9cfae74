// SPDX-License-Identifier: Apache-2.0
#include "ir/fold.h"

#include <string.h>

#include "base/mem.h"
#include "ir/ref/ref.h"

// The most bytes that an op reads or gives to be evaluated.
#define MOST_BYTES ((size_t)16 << 10)
enum { MOST_OPERANDS = 64 };

static bool is_number(const pestle_type_t* type) {
  return pestle_dtype_is(type->dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL) &&
         pestle_type_is_static(type) && pestle_type_bytes(type) <= MOST_BYTES;
}

static bool can_fold(const pestle_node_t* node) {
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)node->op);
  if (node->op == PESTLE_OP_CONSTANT || info->fuse == PESTLE_FUSE_CONTROL ||
      info->fuse == PESTLE_FUSE_COLLECTIVE || node->result_count != 1 ||
      node->operand_count > MOST_OPERANDS ||
      !is_number(node->results[0].type)) {
    return false;
  }
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* operand = pestle_node_operand(node, i);
    if (!pestle_value_constant(operand)) return false;
    if (pestle_type_bytes(operand->type) > MOST_BYTES) return false;
  }
  return true;
}

// The elements of a constant, one after the other.
static const void* data_of(pestle_arena_t* arena, const pestle_value_t* value) {
  const pestle_elements_t* e = pestle_value_constant(value);
  size_t count = (size_t)pestle_type_count(&e->type);
  size_t size = pestle_dtype_size(e->type.dtype);
  if (!e->splat && e->size) return e->data;
  char* data = pestle_arena_alloc(arena, count * size + 1, 8);
  for (size_t i = 0; data && i < count && e->size; ++i)
    memcpy(data + i * size, e->data, size);
  return data;
}

static pestle_status_t evaluate(pestle_arena_t* arena,
                                const pestle_node_t* node,
                                pestle_elements_t* out) {
  const void* operands[MOST_OPERANDS];
  pestle_type_t type = *node->results[0].type;
  size_t size = pestle_type_bytes(&type);
  void* result = pestle_arena_alloc(arena, size + 1, 8);
  if (!result) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    operands[i] = data_of(arena, pestle_node_operand(node, i));
    if (!operands[i]) return PESTLE_OOM();
  }
  *out = (pestle_elements_t){.type = type, .data = result, .size = size};
  return pestle_ref_evaluate_node(arena->allocator, node, operands, &result);
}

pestle_status_t pestle_fold_value(pestle_builder_t* builder,
                                  pestle_value_t** value) {
  pestle_node_t* node = (*value)->node;
  if (!node || node->block != builder->block || !can_fold(node)) return NULL;
  pestle_arena_t arena;
  pestle_arena_init(builder->module->arena.allocator, &arena);
  pestle_constant_attrs_t attrs = {.struct_size = sizeof(attrs)};
  pestle_status_t status = evaluate(&arena, node, &attrs.value);
  if (!status) {
    pestle_value_t* made;
    status = pestle_op_constant(builder, &attrs, &made);
    if (!status) {
      pestle_value_replace_all_uses(*value, made);
      made->name = (*value)->name;
      pestle_node_erase(node);
      *value = made;
    }
  } else if (pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED) {
    pestle_status_release(status);
    status = NULL;
  }
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_constant_i64s(pestle_arena_t* arena,
                                     const pestle_value_t* value,
                                     pestle_i64s_t* out, bool* out_known) {
  *out_known = false;
  const pestle_elements_t* e = pestle_value_constant(value);
  if (!e || e->type.rank > 1 ||
      !pestle_dtype_is(e->type.dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL) ||
      pestle_dtype_is_sub_byte(e->type.dtype)) {
    return NULL;
  }
  size_t count = (size_t)pestle_type_count(&e->type);
  size_t size = pestle_dtype_size(e->type.dtype);
  bool is_signed = pestle_dtype_is(e->type.dtype, PESTLE_KIND_SIGNED);
  if (count > 4 * PESTLE_MAX_RANK) return NULL;
  int64_t* data = PESTLE_ARENA_ARRAY(arena, int64_t, count + 1);
  if (!data) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    memcpy(&bits, (const char*)e->data + (e->splat ? 0 : i * size), size);
    uint64_t sign = size < 8 && is_signed ? UINT64_C(1) << (8 * size - 1) : 0;
    data[i] = (int64_t)((bits ^ sign) - sign);
  }
  *out = (pestle_i64s_t){data, count};
  *out_known = true;
  return NULL;
}
