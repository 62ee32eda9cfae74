// SPDX-License-Identifier: Apache-2.0
#include "ir/custom_op.h"

#include <stdio.h>
#include <string.h>

#include "base/custom_attrs.h"
#include "base/mem.h"
#include "base/require.h"
#include "ir/copy.h"
#include "ir/formula.h"
#include "ir/infer.h"
#include "ir/internal.h"

enum {
  MAX_RESULTS = PESTLE_CUSTOM_MAX_RESULTS,
  MAX_BODIES = 64,  // of registered ops, one in another
};

// --- Nodes ---

static pestle_status_t fill_node(pestle_arena_t* arena,
                                 const pestle_node_t* node,
                                 pestle_custom_node_t* out) {
  uint32_t n = node->operand_count, m = node->result_count;
  pestle_value_t** values = PESTLE_ARENA_ARRAY(arena, pestle_value_t*, n + m);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(arena, pestle_type_t, n + m);
  if (!values || !types) return PESTLE_OOM();
  for (uint32_t i = 0; i < n + m; ++i) {
    values[i] =
        i < n ? pestle_node_operand(node, i) : pestle_node_result(node, i - n);
    types[i] = *values[i]->type;
  }
  *out = (pestle_custom_node_t){.struct_size = sizeof(*out),
                                .name = PESTLE_NODE_STR(node, name),
                                .operands = values,
                                .operand_count = n,
                                .operand_types = types,
                                .results = values + n,
                                .result_count = m,
                                .result_types = types + n,
                                .version = PESTLE_NODE_I64(node, version)};
  return NULL;
}

// The types that the op's rule gives; |*out_count| 0: it has no rule.
static pestle_status_t infer(const pestle_custom_op_t* op,
                             const pestle_custom_node_t* node,
                             pestle_type_t out_types[MAX_RESULTS],
                             size_t* out_count) {
  *out_count = 0;
  if (!op->infer) return NULL;
  pestle_custom_node_t given = *node;
  given.operands = given.results = NULL;
  given.result_types = NULL;
  given.result_count = 0;
  *out_count = MAX_RESULTS;
  memset(out_types, 0, MAX_RESULTS * sizeof(*out_types));
  PESTLE_TRY(
      pestle_status_annotate(op->infer(op->user, &given, out_types, out_count),
                             "in the type rule of op '%s'", op->name));
  if (*out_count > MAX_RESULTS || !*out_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the type rule of op '%s' says that it has %zu "
                        "results; there are 1 to %d",
                        op->name, *out_count, (int)MAX_RESULTS);
  }
  for (size_t i = 0; i < *out_count; ++i) {
    PESTLE_TRY(pestle_status_annotate(pestle_type_check(&out_types[i]),
                                      "in the type rule of op '%s'", op->name));
  }
  return NULL;
}

static pestle_status_t check_results(const pestle_custom_op_t* op,
                                     const pestle_custom_node_t* node) {
  pestle_type_t types[MAX_RESULTS];
  size_t count;
  PESTLE_TRY(infer(op, node, types, &count));
  if (!count) return NULL;
  if (count != node->result_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "op '%s' has %zu results, its type rule says %zu",
                        op->name, node->result_count, count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (pestle_type_equal(&types[i], &node->result_types[i])) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "result %zu of op '%s' is %s, its type rule says %s", i,
                        op->name, pestle_type_text(&node->result_types[i]).text,
                        pestle_type_text(&types[i]).text);
  }
  return NULL;
}

pestle_status_t pestle_custom_use(pestle_arena_t* arena,
                                  const pestle_node_t* node,
                                  pestle_custom_use_t* out_use) {
  *out_use = (pestle_custom_use_t){.op = NULL};
  PESTLE_TRY(fill_node(arena, node, &out_use->node));
  const pestle_custom_op_t* op = pestle_context_find_op(
      node->block->region->module->context, out_use->node.name);
  if (!op || op->version != out_use->node.version) return NULL;
  PESTLE_TRY(pestle_custom_attrs_of_text(
      arena, op, PESTLE_NODE_STR(node, attributes), &out_use->node.attrs));
  PESTLE_TRY(check_results(op, &out_use->node));
  out_use->op = op;
  return NULL;
}

// --- Evals ---

static bool glob(const char* pattern, const char* text) {
  const char *star = NULL, *from = NULL;
  while (*text) {
    if (*pattern == '*') {
      star = pattern++;
      from = text;
    } else if (*pattern == *text) {
      ++pattern;
      ++text;
    } else if (star) {
      pattern = star + 1;
      text = ++from;
    } else {
      return false;
    }
  }
  while (*pattern == '*')
    ++pattern;
  return !*pattern;
}

static const char* device_type_name(int32_t type) {
  switch (type) {
    case PESTLE_DEVICE_CPU:
      return "cpu";
    case PESTLE_DEVICE_CUDA:
      return "cuda";
    case PESTLE_DEVICE_OPENCL:
      return "opencl";
    case PESTLE_DEVICE_VULKAN:
      return "vulkan";
    case PESTLE_DEVICE_METAL:
      return "metal";
    default:
      return "";
  }
}

bool pestle_is_text_call(const pestle_node_t* node) {
  const pestle_custom_op_t* op;
  const pestle_custom_eval_t* eval;
  if (!pestle_is_eval_call(node)) return false;
  pestle_status_t status = pestle_eval_call_find(node, &op, &eval);
  pestle_status_release(status);
  return !status && pestle_eval_is_text(eval);
}

static bool takes_text(const pestle_custom_eval_t* eval,
                       const pestle_target_caps_t* caps) {
  bool lanes = caps->flags & PESTLE_TARGET_LANES;
  if (eval->kind == PESTLE_EVAL_KERNEL_IR) return !lanes;
  const char* language = eval->source->language;
  return !strcmp(language, "kir") ? !lanes
                                  : !strcmp(language, caps->source_language);
}

bool pestle_custom_eval_is_for(const pestle_custom_eval_t* eval,
                               const pestle_target_caps_t* caps) {
  if (pestle_eval_is_text(eval) && !takes_text(eval, caps)) return false;
  return glob(eval->target, caps->name) ||
         glob(eval->target, device_type_name(caps->device_type));
}

pestle_status_t pestle_custom_use_attrs(pestle_arena_t* arena,
                                        const pestle_custom_op_t* op,
                                        const char* text,
                                        pestle_custom_node_t* node) {
  return pestle_custom_attrs_of_text(arena, op, text, &node->attrs);
}

bool pestle_is_eval_call(const pestle_node_t* node) {
  return node->op == PESTLE_OP_CUSTOM_CALL &&
         !strncmp(PESTLE_NODE_STR(node, call_target_name), PESTLE_EVAL_CALL,
                  strlen(PESTLE_EVAL_CALL));
}

pestle_status_t pestle_eval_call_find(const pestle_node_t* node,
                                      const pestle_custom_op_t** out_op,
                                      const pestle_custom_eval_t** out_eval) {
  pestle_str_t call = pestle_str(PESTLE_NODE_STR(node, call_target_name));
  pestle_str_t name, id,
      rest = pestle_str_slice(call, strlen(PESTLE_EVAL_CALL), call.size);
  char text[256];
  int64_t index = -1;
  if (!pestle_str_split(rest, '#', &name, &id)) {
    pestle_str_split(rest, '@', &name, &id);
    if (!pestle_str_parse_i64(id, &index)) index = -1;
  }
  (void)snprintf(text, sizeof(text), "%.*s", PESTLE_STR_ARG(name));
  *out_op = pestle_context_find_op(node->block->region->module->context, text);
  *out_eval = NULL;
  for (size_t i = 0; *out_op && i < (*out_op)->eval_count; ++i) {
    const pestle_custom_eval_t* e = (*out_op)->evals[i];
    bool found = index >= 0 ? (int64_t)i == index && pestle_eval_is_text(e)
                            : e->function && !pestle_eval_is_text(e) &&
                                  pestle_str_equal_c(id, e->id);
    if (!found) continue;
    *out_eval = e;
    return NULL;
  }
  return pestle_node_error(node, PESTLE_STATUS_NOT_FOUND,
                           "the context has no op '%s' with an eval '%.*s'",
                           text, PESTLE_STR_ARG(id));
}

// --- Building ---

// One op on its way.
typedef struct making_t {
  pestle_builder_t* builder;
  const pestle_custom_op_t* op;
  pestle_arena_t arena;
  pestle_custom_node_t node;
  pestle_type_t types[MAX_RESULTS];
  size_t count;
  pestle_region_t* region;
} making_t;

static pestle_status_t describe(making_t* m, pestle_value_t* const* operands,
                                size_t count) {
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&m->arena, pestle_type_t, count);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    if (!operands[i]) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "operand %zu of op '%s' is NULL", i,
                          m->op->name);
    }
    types[i] = *operands[i]->type;
  }
  m->node.struct_size = sizeof(m->node);
  m->node.name = m->op->name;
  m->node.version = m->op->version;
  m->node.operand_count = count;
  m->node.operand_types = types;
  return NULL;
}

// |operands|, and behind them a value for each dynamic attribute.
static pestle_status_t add_dynamic(making_t* m, pestle_value_t* const* operands,
                                   size_t count,
                                   const pestle_custom_attr_value_t* attrs,
                                   size_t attr_count, pestle_value_t*** out,
                                   size_t* out_count) {
  size_t n = pestle_custom_dynamic_count(m->op);
  pestle_value_t** all =
      PESTLE_ARENA_ARRAY(&m->arena, pestle_value_t*, count + n);
  pestle_custom_attr_value_t* given =
      PESTLE_ARENA_ARRAY(&m->arena, pestle_custom_attr_value_t, n + 1);
  if (!all || !given) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    all[i] = operands[i];
  *out = all;
  *out_count = count + n;
  if (!n) return NULL;
  PESTLE_TRY(pestle_custom_dynamic(m->op, attrs, attr_count,
                                   PESTLE_CUSTOM_VALUE, given));
  pestle_dtype_t dtype = pestle_custom_dynamic_dtype(
      count && operands[0] ? operands[0]->type->dtype : PESTLE_F32);
  pestle_formula_t f = pestle_formula_make(*m->builder);
  for (size_t i = 0; i < n; ++i) {
    bool is_number = given[i].kind == PESTLE_CUSTOM_F64;
    pestle_value_t* v = is_number ? pestle_f_scalar(&f, dtype, given[i].as.f64)
                                  : given[i].as.value;
    PESTLE_TRY(f.status);
    if (!v || v->type->rank || v->type->dtype != dtype) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "attribute '%s' of op '%s' is %s, not tensor<%s>",
                          given[i].name, m->op->name,
                          v ? pestle_type_text(v->type).text : "NULL",
                          pestle_dtype_info(dtype)->name);
    }
    all[count + i] = v;
  }
  *m->builder = f.builder;
  return NULL;
}

// What the body gave is what the type rule said, if there is one.
static pestle_status_t check_body(making_t* m, pestle_value_t* const* values) {
  size_t count = 0;
  while (count < MAX_RESULTS && values[count])
    ++count;
  if (!m->count) m->count = count;
  if (!count || count != m->count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the body of op '%s' gave %zu results, its type rule "
                        "says %zu",
                        m->op->name, count, m->count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!m->op->infer) {
      m->types[i] = *values[i]->type;
    } else if (!pestle_type_equal(values[i]->type, &m->types[i])) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "result %zu of the body of op '%s' is %s, its type "
                          "rule says %s",
                          i, m->op->name,
                          pestle_type_text(values[i]->type).text,
                          pestle_type_text(&m->types[i]).text);
    }
  }
  return NULL;
}

static bool is_inside(const pestle_region_t* region,
                      const pestle_value_t* value) {
  const pestle_region_t* r = pestle_value_region(value);
  while (r && r != region)
    r = r->owner ? r->owner->block->region : NULL;
  return r;
}

// A body reads its operands and what it makes, nothing from around the op.
static pestle_status_t check_closed(const making_t* m) {
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(m->region, n))) {
    for (uint32_t i = 0; i < n->operand_count; ++i) {
      if (is_inside(m->region, pestle_node_operand(n, i))) continue;
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the body of op '%s' reads a value from outside of "
                          "it; make it an operand",
                          m->op->name);
    }
  }
  return NULL;
}

// The body, whose ops may have bodies themselves. One that uses itself would never end.
static pestle_status_t call_body(const making_t* m, pestle_builder_t* inside,
                                 const pestle_custom_node_t* node,
                                 pestle_value_t** out) {
  pestle_module_t* module = inside->module;
  if (module->open_bodies >= MAX_BODIES) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "bodies of ops stand in each other %d deep: an op cannot "
        "be used in its own body",
        MAX_BODIES);
  }
  ++module->open_bodies;
  pestle_status_t status = m->op->body(m->op->user, inside, node, out);
  --module->open_bodies;
  return status;
}

static pestle_status_t build_body(making_t* m) {
  pestle_value_t* values[MAX_RESULTS] = {NULL};
  pestle_builder_t inside = {.module = m->builder->module,
                             .loc = m->builder->loc};
  PESTLE_TRY(pestle_region_create(inside.module, m->node.operand_types,
                                  m->node.operand_count, &m->region,
                                  &inside.block));
  pestle_custom_node_t node = m->node;
  node.operands = inside.block->arguments;
  PESTLE_TRY(pestle_status_annotate(call_body(m, &inside, &node, values),
                                    "in the body of op '%s'", m->op->name));
  PESTLE_TRY(check_body(m, values));
  PESTLE_TRY(
      pestle_status_annotate(pestle_op_return(&inside, values, m->count, NULL),
                             "in the body of op '%s'", m->op->name));
  return check_closed(m);
}

static pestle_status_t make(making_t* m, pestle_value_t* const* operands,
                            const pestle_custom_attr_value_t* attrs,
                            size_t attr_count, size_t capacity,
                            pestle_node_t** out_node) {
  PESTLE_TRY(pestle_custom_attrs_make(&m->arena, m->op, attrs, attr_count,
                                      &m->node.attrs));
  PESTLE_TRY(infer(m->op, &m->node, m->types, &m->count));
  if (m->op->body) PESTLE_TRY(build_body(m));
  if (!m->count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "op '%s' has neither a type rule nor a body; state its "
                        "result types with pestle_op_composite()",
                        m->op->name);
  }
  if (m->count <= m->op->hidden_results) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "op '%s' has %zu results, of which %zu are hidden; one "
                        "at least is not",
                        m->op->name, m->count, m->op->hidden_results);
  }
  if (m->count > capacity) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "op '%s' has %zu results, there is room for %zu",
                        m->op->name, m->count, capacity);
  }
  pestle_strbuf_t text;
  pestle_strbuf_init(m->arena.allocator, &text);
  pestle_custom_attrs_print(m->node.attrs, &text);
  pestle_attr_t list[] = {
      {PESTLE_ATTR_name, PESTLE_ATTR_KIND_STR, .as.str = m->op->name},
      {PESTLE_ATTR_version, PESTLE_ATTR_KIND_I64, .as.i64 = m->op->version},
      {PESTLE_ATTR_attributes, PESTLE_ATTR_KIND_STR,
       .as.str = pestle_strbuf_cstr(&text)}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .operands = operands,
                             .operand_count = m->node.operand_count,
                             .attrs = list,
                             .attr_count = 3,
                             .regions = &m->region,
                             .region_count = m->region ? 1 : 0,
                             .types = m->types,
                             .type_count = m->count};
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) status = pestle_node_create(m->builder, &spec, out_node);
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t pestle_op_custom(pestle_builder_t* builder, const char* name,
                                 pestle_value_t* const* operands,
                                 size_t operand_count,
                                 const pestle_custom_attr_value_t* attrs,
                                 size_t attr_count, pestle_value_t** out,
                                 size_t out_capacity) {
  pestle_node_t* node = NULL;
  PESTLE_REQUIRE(builder && builder->module && name, "a builder and a name");
  PESTLE_REQUIRE((operands || !operand_count) && (attrs || !attr_count) &&
                     (out || !out_capacity) && operand_count < UINT32_MAX,
                 "operands, attributes and a place for the results");
  for (size_t i = 0; i < out_capacity; ++i)
    out[i] = NULL;
  making_t m = {.builder = builder};
  m.op = pestle_context_find_op(builder->module->context, name);
  if (!m.op) {
    return PESTLE_ERROR(NOT_FOUND,
                        "the context has no op '%.80s'; register it with "
                        "pestle_context_register_op(), or load the extension "
                        "that does",
                        name);
  }
  pestle_arena_init(builder->module->arena.allocator, &m.arena);
  pestle_value_t** all;
  pestle_status_t status = add_dynamic(&m, operands, operand_count, attrs,
                                       attr_count, &all, &operand_count);
  if (!status) status = describe(&m, all, operand_count);
  if (!status) status = make(&m, all, attrs, attr_count, out_capacity, &node);
  if (status && m.region) pestle_region_discard(m.region);
  pestle_arena_deinit(&m.arena);
  for (uint32_t i = 0; node && i < node->result_count; ++i)
    out[i] = pestle_node_result(node, i);
  return status ? pestle_op_wrap_error(PESTLE_OP_CUSTOM, &builder->loc,
                                       builder->module, status)
                : NULL;
}

// --- A module's ops at a builder ---

static pestle_status_t check_operands(const pestle_function_t* entry,
                                      pestle_value_t* const* operands,
                                      size_t count) {
  const pestle_block_t* block = entry->body->block;
  if (count != block->argument_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%zu operands are given, the module takes %u", count,
                        block->argument_count);
  }
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* type = block->arguments[i]->type;
    if (operands[i] && pestle_type_equal(operands[i]->type, type)) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "operand %zu is not %s, which the module takes", i,
                        pestle_type_text(type).text);
  }
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(entry->body, n))) {
    if (n->op == PESTLE_OP_CALL) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "the module calls functions");
    }
  }
  return NULL;
}

static pestle_status_t copy_entry(pestle_copier_t* copier,
                                  const pestle_block_t* block,
                                  pestle_value_t* const* operands,
                                  pestle_value_t** out) {
  copier->foreign = true;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    PESTLE_TRY(pestle_copier_set(copier, block->arguments[i], operands[i]));
  }
  PESTLE_TRY(pestle_copier_block(copier, block));
  for (uint32_t i = 0; i < block->last->operand_count; ++i) {
    out[i] = pestle_copier_get(copier, pestle_node_operand(block->last, i));
  }
  return NULL;
}

pestle_status_t pestle_builder_inline(pestle_builder_t* builder,
                                      pestle_module_t* module,
                                      pestle_value_t* const* operands,
                                      size_t operand_count,
                                      pestle_value_t** out,
                                      size_t out_capacity) {
  PESTLE_REQUIRE(builder && builder->module && module,
                 "a builder and a module");
  PESTLE_REQUIRE((operands || !operand_count) && (out || !out_capacity),
                 "operands and a place for the results");
  const pestle_function_t* entry = pestle_module_entry(module);
  PESTLE_REQUIRE(entry && entry->body->block->last &&
                     module->context == builder->module->context,
                 "a module of its context with a function");
  const pestle_block_t* block = entry->body->block;
  PESTLE_REQUIRE(block->last->operand_count <= out_capacity,
                 "room for all results");
  PESTLE_TRY(check_operands(entry, operands, operand_count));
  for (size_t i = 0; i < out_capacity; ++i)
    out[i] = NULL;
  PESTLE_TRY(pestle_module_keep_module(builder->module, module));
  pestle_copier_t copier;
  pestle_copier_init(builder->module->arena.allocator, *builder, &copier);
  pestle_status_t status = copy_entry(&copier, block, operands, out);
  pestle_copier_deinit(&copier);
  return status;
}
