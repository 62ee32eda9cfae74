// SPDX-License-Identifier: Apache-2.0
// Reading and walking nodes for passes.
#include "passes/util.h"

#include <string.h>

#include "base/half.h"
#include "base/mem.h"

void pestle_pass_replace(pestle_node_t* node, pestle_value_t* const* values) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_value_t* result = pestle_node_result(node, i);
    if (!values[i]->name) values[i]->name = result->name;
    pestle_value_replace_all_uses(result, values[i]);
  }
  pestle_node_erase(node);
}

pestle_status_t pestle_pass_make_group(pestle_builder_t* at, const char* label,
                                       pestle_value_t* const* operands,
                                       size_t operand_count,
                                       pestle_region_t* region,
                                       pestle_node_t** out_group) {
  pestle_attr_t attr = PESTLE_SET_STR(label, label);
  pestle_node_spec_t spec = {.op = PESTLE_OP_FUSION,
                             .operands = operands,
                             .operand_count = operand_count,
                             .attrs = &attr,
                             .attr_count = 1,
                             .regions = &region,
                             .region_count = 1};
  pestle_status_t status = pestle_node_create(at, &spec, out_group);
  if (status) pestle_region_discard(region);
  return status;
}

uint32_t pestle_pass_updates(const pestle_node_t* node) {
  if (pestle_pass_info(node)->flags & PESTLE_OP_FLAG_UPDATES)
    return node->result_count;
  if (node->op != PESTLE_OP_FUSION) return 0;
  const char* label = PESTLE_NODE_STR(node, label);
  return label && !strcmp(label, PESTLE_CACHED_STEP) ? 2 : 0;
}

pestle_status_t pestle_pass_replace_by_group(pestle_builder_t* at,
                                             pestle_node_t* node,
                                             const char* label,
                                             pestle_value_t* const* operands,
                                             pestle_region_t* region) {
  pestle_node_t* group;
  PESTLE_TRY(pestle_pass_make_group(at, label, operands, node->operand_count,
                                    region, &group));
  for (uint32_t i = 0; i < node->result_count; ++i)
    pestle_value_replace_all_uses(&node->results[i], &group->results[i]);
  pestle_node_erase(node);
  return NULL;
}

// The region of a group of |node| alone, which takes its operands.
static pestle_status_t copy_inside(pestle_copier_t* copier,
                                   const pestle_node_t* node,
                                   pestle_value_t** results) {
  pestle_builder_t* inside = &copier->builder;
  pestle_node_t* copy;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t *operand = pestle_node_operand(node, i), *argument;
    PESTLE_TRY(pestle_block_add_argument(inside->module, inside->block,
                                         operand->type, &argument));
    PESTLE_TRY(pestle_copier_set(copier, operand, argument));
  }
  PESTLE_TRY(pestle_copier_node(copier, node, &copy));
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_node_set_operand(copy, i, pestle_block_argument(inside->block, i));
  }
  for (uint32_t i = 0; i < node->result_count; ++i)
    results[i] = &copy->results[i];
  return pestle_op_return(inside, results, node->result_count, NULL);
}

pestle_status_t pestle_pass_wrap(const pestle_pass_context_t* ctx,
                                 pestle_node_t* node, const char* label) {
  pestle_builder_t before = pestle_builder_before(node);
  pestle_builder_t inside = {.module = before.module, .loc = node->loc};
  pestle_region_t* region;
  pestle_value_t** values =
      PESTLE_ARENA_ARRAY(ctx->scratch, pestle_value_t*,
                         node->operand_count + node->result_count + 1);
  if (!values) return PESTLE_OOM();
  PESTLE_TRY(
      pestle_region_create(before.module, NULL, 0, &region, &inside.block));
  pestle_copier_t copier;
  pestle_copier_init(pestle_context_allocator(ctx->context), inside, &copier);
  pestle_status_t status = copy_inside(&copier, node, values);
  pestle_copier_deinit(&copier);
  for (uint32_t i = 0; i < node->operand_count; ++i)
    values[i] = pestle_node_operand(node, i);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  return pestle_pass_replace_by_group(&before, node, label, values, region);
}

bool pestle_pass_may_regroup(const pestle_compile_options_t* options,
                             pestle_op_t op, pestle_dtype_t dtype) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) return false;
  bool exact = (op != PESTLE_OP_ADD && op != PESTLE_OP_MULTIPLY) ||
               !pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
  return exact || options->numerics != PESTLE_NUMERICS_STRICT;
}

// --- Reading ---

double pestle_pass_element_f64(const pestle_elements_t* e, size_t index) {
  size_t size = pestle_dtype_size(e->type.dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)e->data + (e->splat ? 0 : index * size), size);
  return pestle_float_decode(e->type.dtype, bits);
}

int64_t pestle_pass_element_i64(const pestle_elements_t* e, size_t index) {
  size_t size = pestle_dtype_size(e->type.dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)e->data + (e->splat ? 0 : index * size), size);
  if (!pestle_dtype_is(e->type.dtype, PESTLE_KIND_SIGNED) || size >= 8) {
    return (int64_t)bits;
  }
  unsigned shift = 64 - 8 * (unsigned)size;
  return (int64_t)(bits << shift) >> shift;
}

// The splat constant that |value| is, through ops that only repeat it.
static const pestle_elements_t* find_splat(const pestle_value_t* value) {
  for (int depth = 0; depth < 8; ++depth) {
    const pestle_elements_t* e = pestle_value_constant(value);
    if (e) {
      return e->splat || pestle_type_count(&e->type) == 1 ? e : NULL;
    }
    if (!pestle_pass_is(value, PESTLE_OP_BROADCAST_IN_DIM) &&
        !pestle_pass_is(value, PESTLE_OP_RESHAPE)) {
      return NULL;
    }
    value = pestle_node_operand(value->node, 0);
  }
  return NULL;
}

bool pestle_pass_splat_f64(const pestle_value_t* value, double* out) {
  const pestle_elements_t* e = find_splat(value);
  if (!e || !pestle_dtype_is(e->type.dtype, PESTLE_KIND_FLOAT)) return false;
  *out = pestle_pass_element_f64(e, 0);
  return true;
}

bool pestle_pass_splat_i64(const pestle_value_t* value, int64_t* out) {
  const pestle_elements_t* e = find_splat(value);
  if (!e ||
      !pestle_dtype_is(e->type.dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL)) {
    return false;
  }
  *out = pestle_pass_element_i64(e, 0);
  return true;
}

bool pestle_pass_splat_is(const pestle_value_t* value, double wanted) {
  double f;
  int64_t i;
  if (pestle_pass_splat_f64(value, &f)) return f >= wanted && f <= wanted;
  if (!pestle_pass_splat_i64(value, &i)) return false;
  f = (double)i;  // a fraction is no integer
  return f >= wanted && f <= wanted;
}

void pestle_pass_fill(void* target, const void* element, size_t size,
                      size_t count) {
  char* to = target;
  if (!count) return;
  memcpy(to, element, size);
  // Doubling copies keep this at memcpy speed for any element size.
  size_t done = size, total = size * count;
  while (done < total) {
    size_t step = done < total - done ? done : total - done;
    memcpy(to + done, to, step);
    done += step;
  }
}

const void* pestle_pass_expand(const pestle_elements_t* e,
                               pestle_arena_t* arena) {
  if (!e->splat) return e->data ? e->data : "";  // NULL: out of memory
  void* data = pestle_arena_alloc(arena, pestle_type_bytes(&e->type), 16);
  if (!data) return NULL;
  pestle_pass_fill(data, e->data, pestle_dtype_size(e->type.dtype),
                   (size_t)pestle_type_count(&e->type));
  return data;
}

int64_t pestle_pass_source_dim(const pestle_node_t* broadcast, int64_t axis) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(broadcast, broadcast_dimensions);
  for (size_t i = 0; i < dims.count; ++i) {
    if (dims.data[i] == axis) return (int64_t)i;
  }
  return -1;
}

bool pestle_pass_counts_along(const pestle_value_t* value, int64_t axis) {
  int64_t extent = value->type->dims[axis];
  while (pestle_pass_is(value, PESTLE_OP_BROADCAST_IN_DIM)) {
    axis = pestle_pass_source_dim(value->node, axis);
    value = pestle_node_operand(value->node, 0);
    if (axis < 0 || value->type->dims[axis] != extent) return false;
  }
  if (pestle_pass_is(value, PESTLE_OP_IOTA)) {
    // Narrow types start again.
    pestle_dtype_t dtype = (pestle_dtype_t)value->type->dtype;
    int bits = pestle_dtype_info(dtype)->bits;
    if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) --bits;
    return PESTLE_NODE_I64(value->node, iota_dimension) == axis &&
           (bits > 62 || extent <= (int64_t)1 << bits);
  }
  const pestle_elements_t* e = pestle_value_constant(value);
  if (!e || e->splat || pestle_type_count(value->type) != extent) return false;
  for (int64_t i = 0; i < extent; ++i) {
    if (pestle_pass_element_i64(e, (size_t)i) != i) return false;
  }
  return true;
}

bool pestle_pass_same_dims(const pestle_type_t* a, const pestle_type_t* b) {
  return a->rank == b->rank &&
         !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0]));
}

bool pestle_pass_turns(const pestle_node_t* transpose) {
  pestle_i64s_t perm = PESTLE_NODE_I64S(transpose, permutation);
  const pestle_type_t* from = pestle_node_operand(transpose, 0)->type;
  int64_t last = -1;
  for (size_t i = 0; i < perm.count; ++i) {
    if (from->dims[perm.data[i]] == 1) continue;
    if (perm.data[i] < last) return true;
    last = perm.data[i];
  }
  return false;
}

bool pestle_pass_i64s_is_iota(pestle_i64s_t list) {
  for (size_t i = 0; i < list.count; ++i) {
    if (list.data[i] != (int64_t)i) return false;
  }
  return true;
}

bool pestle_pass_i64s_all(pestle_i64s_t list, int64_t value) {
  for (size_t i = 0; i < list.count; ++i) {
    if (list.data[i] != value) return false;
  }
  return true;
}

bool pestle_pass_has_channels_last(const pestle_node_t* n) {
  pestle_i64s_t in = PESTLE_NODE_I64S(n, input_spatial_dimensions);
  pestle_i64s_t out = PESTLE_NODE_I64S(n, output_spatial_dimensions);
  int64_t features = n->results[0].type->rank - 1;
  bool last = PESTLE_NODE_I64(n, input_batch_dimension) == 0 &&
              PESTLE_NODE_I64(n, input_feature_dimension) == features &&
              PESTLE_NODE_I64(n, output_batch_dimension) == 0 &&
              PESTLE_NODE_I64(n, output_feature_dimension) == features;
  for (size_t i = 0; last && i < in.count; ++i) {
    last = in.data[i] == (int64_t)i + 1 && out.data[i] == (int64_t)i + 1;
  }
  return last;
}

bool pestle_pass_has_byte_units(const pestle_target_caps_t* caps) {
  for (uint32_t i = 0; i < caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &caps->intrinsic[i];
    if (x->kind == PESTLE_INTRINSIC_MMA && x->c == PESTLE_I32) return true;
  }
  return false;
}

// Units of warpgroups that take |taps| elements of k at once.
static bool has_warpgroups(const pestle_pass_context_t* ctx,
                           pestle_dtype_t dtype, pestle_dtype_t sums,
                           unsigned taps) {
  const pestle_target_caps_t* caps = ctx->caps;
  for (uint32_t i = 0; i < caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &caps->intrinsic[i];
    if (x->kind == PESTLE_INTRINSIC_WGMMA && x->a == dtype && x->c == sums &&
        x->k == taps) {
      return true;
    }
  }
  return false;
}

bool pestle_pass_has_warpgroups(const pestle_pass_context_t* ctx,
                                pestle_dtype_t dtype) {
  return has_warpgroups(ctx, dtype, PESTLE_F32, 16);
}

bool pestle_pass_has_byte_warpgroups(const pestle_pass_context_t* ctx) {
  return has_warpgroups(ctx, PESTLE_I8, PESTLE_I32, 32);
}

bool pestle_pass_has_f8_warpgroups(const pestle_pass_context_t* ctx) {
  return has_warpgroups(ctx, PESTLE_F8E4M3FN, PESTLE_F32, 32);
}

bool pestle_pass_has_tf32_warpgroups(const pestle_pass_context_t* ctx) {
  return has_warpgroups(ctx, PESTLE_F32, PESTLE_F32, 8);
}

bool pestle_pass_has_tf32_units(const pestle_pass_context_t* ctx) {
  const pestle_target_caps_t* caps = ctx->caps;
  for (uint32_t i = 0; i < caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &caps->intrinsic[i];
    // Those of 8 x 8 keep all of an f32.
    if (x->a == PESTLE_F32 && x->c == PESTLE_F32 && x->m > 8 && x->k == 8)
      return true;
  }
  return false;
}

bool pestle_pass_has_units(const pestle_pass_context_t* ctx,
                           pestle_dtype_t dtype) {
  enum { M = 16, N = 8, K = 16 };
  const pestle_target_caps_t* caps = ctx->caps;
  for (uint32_t i = 0; i < caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &caps->intrinsic[i];
    if (x->kind == PESTLE_INTRINSIC_MMA && x->a == dtype && x->m == M &&
        x->n == N && x->k == K)
      return true;
  }
  return false;
}

int64_t pestle_pass_l2_bytes(const pestle_pass_context_t* ctx) {
  enum { USUAL = 1 << 20 };
  int64_t bytes = (int64_t)ctx->caps->l2_bytes;
  return bytes > 0 ? bytes : USUAL;
}

// --- Walking ---

bool pestle_pass_has_bodies(const pestle_node_t* node) {
  return node->op == PESTLE_OP_WHILE || node->op == PESTLE_OP_IF ||
         node->op == PESTLE_OP_CASE || node->op == PESTLE_OP_SCAN;
}

static pestle_status_t each_block(pestle_module_t* module,
                                  pestle_block_t* block,
                                  pestle_pass_block_fn_t fn, void* user) {
  // A walk over all nodes is what a pass takes most of its time for.
  uint32_t left = block->body_count;
  for (pestle_node_t* node = block->first; left && node; node = node->next) {
    if (!pestle_pass_has_bodies(node)) continue;
    --left;
    for (uint32_t r = 0; r < node->region_count; ++r) {
      PESTLE_TRY(each_block(module, pestle_node_body(node, r), fn, user));
    }
  }
  return fn(user, module, block);
}

pestle_status_t pestle_pass_each_block(pestle_module_t* module,
                                       pestle_pass_block_fn_t fn, void* user) {
  for (pestle_function_t* f = module->first; f; f = f->next) {
    PESTLE_TRY(each_block(module, f->body->block, fn, user));
  }
  return NULL;
}

void pestle_pass_clear_block(pestle_block_t* block) {
  while (block->last)
    pestle_node_erase(block->last);
}

pestle_value_t* pestle_pass_meet(pestle_formula_t* f, pestle_op_t op,
                                 const pestle_node_t* like, pestle_value_t* a,
                                 const pestle_attr_t* dim,
                                 const pestle_type_t* type) {
  static const pestle_attr_name_t names[] = {PESTLE_ATTR_replica_groups,
                                             PESTLE_ATTR_channel_handle,
                                             PESTLE_ATTR_use_global_device_ids};
  pestle_attr_t attrs[4];
  size_t n = 0;
  pestle_op_t by = pestle_block_reduce_op(pestle_node_body(like, 0));
  pestle_region_t* body = a ? pestle_f_region(f, by, a->type->dtype) : NULL;
  if (!body) return NULL;
  for (size_t i = 0; i < 3; ++i)
    attrs[n++] = *pestle_node_attr(like, names[i]);
  if (dim) attrs[n++] = *dim;
  pestle_node_t* made =
      pestle_f_node(f, &(pestle_node_spec_t){.op = op,
                                             .operands = &a,
                                             .operand_count = 1,
                                             .attrs = attrs,
                                             .attr_count = n,
                                             .regions = &body,
                                             .region_count = 1,
                                             .type = type,
                                             .types = type,
                                             .type_count = type != NULL,
                                             .share_elements = true});
  return made ? &made->results[0] : NULL;
}
