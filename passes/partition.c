// SPDX-License-Identifier: Apache-2.0
// From a module over all devices of a mesh to what each of them runs
// (docs/partition.md).
//
//   @main(%x: [8,4] {[{data}, {}]}, %w: [4,6] {[{}, {model}]})      data = 2, model = 2
//     %y = dot %x, %w : [8,6]
//   ->
//   @main(%x: [4,4], %w: [4,3])
//     %y = dot %x, %w : [4,3]        // [{data}, {model}]
//
// A module that says nothing of a mesh stays as it is, and so does one that was divided:
// its arguments and results say then, as spmd.sharding, what parts they are.
#include "passes/partition.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "ir/scan.h"
#include "passes/fold_constants.h"

// --- The boundary ---

static pestle_status_t begin_arguments(partition_t* p) {
  pestle_block_t* block = p->entry->body->block;
  uint32_t count = block->argument_count;
  for (uint32_t i = 0; i < count; ++i) {
    partition_value_t* v = partition_of(p, block->arguments[i]);
    pestle_type_t type =
        v->other ? pestle_sharding_local(v->other, v->value->type)
                 : pestle_spread_local(p->mesh, &v->spread, v->value->type);
    pestle_value_t* local;
    PESTLE_TRY(pestle_block_add_argument(p->module, block, &type, &local));
    if (v->other) {
      pestle_formula_t f = pestle_formula_make(p->levels[0].builder);
      local = pestle_sharding_gather(&f, local, v->other);
      PESTLE_TRY(f.status);
    }
    PESTLE_TRY(partition_add_form(p, v->value, &v->spread, local));
  }
  return NULL;
}

// The arguments of before take the places of those that stood for them.
static void finish_arguments(partition_t* p) {
  pestle_block_t* block = p->entry->body->block;
  uint32_t count = block->argument_count / 2;
  for (uint32_t i = 0; i < count; ++i) {
    pestle_value_t* local = block->arguments[count + i];
    block->arguments[i]->type = local->type;
    pestle_value_replace_all_uses(local, block->arguments[i]);
  }
  block->argument_count = count;
}

static pestle_status_t finish_results(partition_t* p, pestle_node_t* ret) {
  for (uint32_t i = 0; i < ret->operand_count; ++i) {
    const pestle_value_t* old = pestle_node_operand(ret, i);
    pestle_spread_t* s = &p->values.data[p->results[i]].spread;
    pestle_value_t* value;
    p->asker = ret;
    PESTLE_TRY(partition_obtain(p, old, s, &value));
    const pestle_sharding_t* other = p->values.data[p->results[i]].other;
    if (other) {
      pestle_formula_t f = pestle_formula_before(ret);
      value = pestle_sharding_slice(&f, value, other);
      PESTLE_TRY(f.status);
    }
    pestle_node_set_operand(ret, i, value);
  }
  if (!p->entry->results_declared) return NULL;
  const pestle_type_t** types = PESTLE_ARENA_ARRAY(
      &p->module->arena, const pestle_type_t*, ret->operand_count + 1);
  if (!types) return PESTLE_OOM();
  for (uint32_t i = 0; i < ret->operand_count; ++i)
    types[i] = pestle_node_operand(ret, i)->type;
  p->entry->result_types = types;
  return NULL;
}

static pestle_status_t say(partition_t* p, bool of_result, uint32_t index,
                           const partition_value_t* v, int32_t rank) {
  pestle_sharding_t s;
  if (v->other)
    return pestle_function_set_sharding(p->entry, of_result, index, v->other,
                                        p->arena);
  PESTLE_TRY(pestle_spread_processes(p->mesh, &v->spread, rank, p->arena, &s));
  return pestle_function_set_sharding(p->entry, of_result, index,
                                      s.replicated ? NULL : &s, p->arena);
}

static pestle_status_t say_all(partition_t* p) {
  const pestle_block_t* block = p->entry->body->block;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    PESTLE_TRY(say(p, false, i, partition_of(p, block->arguments[i]),
                   block->arguments[i]->type->rank));
  }
  for (uint32_t i = 0; i < block->last->operand_count; ++i) {
    PESTLE_TRY(say(p, true, i, &p->values.data[p->results[i]],
                   pestle_node_operand(block->last, i)->type->rank));
  }
  return NULL;
}

// An argument whose memory a result is to take, of which a process has another part
// than of the result: any result may take it.
static pestle_status_t settle_alias(partition_t* p, uint32_t index) {
  static const char alias[] = "tf.aliasing_output",
                    donor[] = "jax.buffer_donor";
  const pestle_block_t* block = p->entry->body->block;
  int64_t result = pestle_function_aliased_result(p->entry, index);
  if (result < 0 || result >= block->last->operand_count) return NULL;
  const pestle_type_t* type =
      pestle_node_operand(block->last, (size_t)result)->type;
  if (pestle_type_equal(type, block->arguments[index]->type)) return NULL;
  pestle_dialect_attrs_t old = pestle_function_argument_attrs(p->entry, index);
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(p->arena, pestle_dialect_attr_t, old.count + 1);
  uint32_t n = 0;
  if (!data) return PESTLE_OOM();
  for (uint32_t i = 0; i < old.count; ++i) {
    const char* key = old.data[i].key;
    if (strcmp(key, alias) != 0 && strcmp(key, donor) != 0)
      data[n++] = old.data[i];
  }
  data[n++] = (pestle_dialect_attr_t){donor, "true"};
  return pestle_function_set_argument_attrs(p->entry, index, data, n);
}

// --- The body ---

static pestle_status_t begin(partition_t* p) {
  pestle_block_t* block = p->entry->body->block;
  pestle_builder_t b = pestle_builder_before(block->first);
  pestle_node_t* id;
  PESTLE_TRY(pestle_node_create(
      &b, &(pestle_node_spec_t){.op = PESTLE_OP_PARTITION_ID}, &id));
  p->process = &id->results[0];
  p->levels[0] = (partition_level_t){b, block};
  return begin_arguments(p);
}

static pestle_status_t emit_all(partition_t* p) {
  pestle_block_t* block = p->entry->body->block;
  pestle_node_t* ret = block->last;
  size_t count = 0;
  for (pestle_node_t* n = block->first; n; n = n->next)
    ++count;
  pestle_node_t** old = PESTLE_ARENA_ARRAY(p->arena, pestle_node_t*, count + 1);
  if (!old) return PESTLE_OOM();
  count = 0;
  for (pestle_node_t* n = block->first; n != ret; n = n->next)
    old[count++] = n;
  p->last_rule = NULL;
  PESTLE_TRY(begin(p));
  for (size_t i = 0; i < count; ++i) {
    p->levels[0].builder.before = old[i];
    PESTLE_TRY(partition_emit(p, old[i]));
  }
  p->levels[0].builder.before = ret;
  PESTLE_TRY(finish_results(p, ret));
  while (count)
    pestle_node_erase(old[--count]);
  finish_arguments(p);
  PESTLE_TRY(say_all(p));
  for (uint32_t i = 0; i < block->argument_count; ++i)
    PESTLE_TRY(settle_alias(p, i));
  if (!p->process->use_count) pestle_node_erase(p->process->node);
  return NULL;
}

// One remark a value that is not whole.
static void remark(partition_t* p) {
  for (size_t i = 0; i < p->values.size && p->ctx->remarks; ++i) {
    const partition_value_t* v = &p->values.data[i];
    if (!v->value || pestle_spread_is_whole(&v->spread)) continue;
    if (v->value->node && !v->value->node->block) continue;
    pestle_strbuf_t text, what;
    pestle_strbuf_init(p->arena->allocator, &text);
    pestle_strbuf_init(p->arena->allocator, &what);
    pestle_strbuf_appendf(&text, "lies as ");
    pestle_spread_print(p->mesh, &v->spread, v->value->type->rank, &text);
    if (v->spread.decided) pestle_strbuf_append_c(&text, ", as it was said");
    if (v->value->node) {
      pestle_remark_describe(v->value->node, &what);
    } else {
      pestle_strbuf_append_c(&what,
                             v->value->name ? v->value->name : "argument");
    }
    if (!text.failed && !what.failed) {
      pestle_remarks_add(p->ctx->remarks,
                         &(pestle_remark_t){.pass = "partition",
                                            .code = "spread",
                                            .what = pestle_strbuf_cstr(&what),
                                            .text = pestle_strbuf_cstr(&text)});
    }
    pestle_strbuf_deinit(&what);
    pestle_strbuf_deinit(&text);
  }
}

// How many bytes of stored tensors all processes have, and each of them has.
static pestle_status_t remark_weights(pestle_pass_context_t* ctx,
                                      pestle_module_t* module) {
  const pestle_region_t* body = pestle_module_entry(module)->body;
  uint64_t all = 0, own = 0;
  uint32_t parts = 0;
  for (pestle_node_t* n = NULL; (n = pestle_region_next(body, n));) {
    if (!pestle_pass_is_stored(n)) continue;
    uint64_t size = PESTLE_NODE_ELEMENTS(n)->size;
    all += size;
    parts += n->op == PESTLE_OP_CONSTANT_PART;
    own += n->op == PESTLE_OP_CONSTANT ? size
                                       : pestle_type_bytes(n->results[0].type);
  }
  if (!ctx->remarks || !parts) return NULL;
  pestle_strbuf_t text;
  pestle_strbuf_init(ctx->scratch->allocator, &text);
  pestle_strbuf_appendf(&text,
                        "a process has %" PRIu64 " of %" PRIu64
                        " bytes: of %" PRIu32 " tensors its own parts",
                        own, all, parts);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    pestle_remarks_add(ctx->remarks,
                       &(pestle_remark_t){.pass = "partition",
                                          .code = "weights",
                                          .what = "weights",
                                          .text = pestle_strbuf_cstr(&text)});
  }
  pestle_strbuf_deinit(&text);
  return status;
}

// Scans are divided as the loops that they are.
static pestle_status_t expand_scans(void* user, pestle_module_t* module,
                                    pestle_block_t* block) {
  (void)user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_SCAN) PESTLE_TRY(pestle_scan_expand(n));
  }
  return NULL;
}

static pestle_status_t divide(partition_t* p) {
  PESTLE_TRY(pestle_pass_each_block(p->module, expand_scans, NULL));
  p->ctx->reads_texts = true;
  PESTLE_TRY(partition_read(p));
  p->ctx->reads_texts = false;
  if (p->mesh->count < 2) return NULL;
  PESTLE_TRY(partition_propagate(p));
  remark(p);
  return emit_all(p);
}

static bool is_divisible(const pestle_module_t* module,
                         const pestle_function_t* entry) {
  return entry && entry->body && entry->body->block->last &&
         pestle_module_world(module).partitions > 1 &&
         pestle_module_has_mesh(module);
}

pestle_status_t pestle_pass_partition(pestle_pass_context_t* ctx,
                                      pestle_module_t* module,
                                      bool* out_changed) {
  partition_t p = {.ctx = ctx,
                   .module = module,
                   .entry = pestle_module_entry(module),
                   .arena = ctx->scratch,
                   .strict = ctx->options->numerics == PESTLE_NUMERICS_STRICT};
  // One that brings its own collectives has them combined all the same.
  if (!is_divisible(module, p.entry)) {
    return pestle_module_device_count(module) > 1
               ? partition_combine(ctx, module, out_changed)
               : NULL;
  }
  pestle_vec_init(&p.values, pestle_context_allocator(ctx->context));
  pestle_status_t status = divide(&p);
  pestle_vec_deinit(&p.values);
  PESTLE_TRY(status);
  *out_changed = true;
  PESTLE_TRY(pestle_module_drop_meshes(module));
  PESTLE_TRY(pestle_pass_simplify_collectives(ctx, module, out_changed));
  PESTLE_TRY(partition_combine(ctx, module, out_changed));
  PESTLE_TRY(pestle_pass_expand_collectives(ctx, module, out_changed));
  // Parts of weights, and the numbers that say which, are known for each process.
  PESTLE_TRY(pestle_pass_fold_constants(ctx, module, out_changed));
  PESTLE_TRY(pestle_pass_dce(ctx, module, out_changed));
  return remark_weights(ctx, module);
}
