// SPDX-License-Identifier: Apache-2.0
// stablehlo.composite: an op by name, whose body in the graph is a copy of its
// decomposition, a function of the text. Functions come in any order, so bodies
// are made when all are read.
#include "ir/copy.h"
#include "ir/parse_internal.h"

// Composites are nested no deeper, and bodies have no more ops in all: a text of
// few lines can name bodies in bodies that have 2^lines.
enum { MAX_DEPTH = 256, MAX_OPS = 1 << 20 };

// --- Reading ---

pestle_status_t pestle_parse_composite(pestle_parser_t* p,
                                       pestle_parse_op_t* o) {
  pestle_str_t name;
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_STRING)) {
    return pestle_parse_expected(p, "the composite's name in quotes");
  }
  PESTLE_TRY(pestle_parse_string(p, &p->scratch, &name));
  pestle_attr_t a = {.name = PESTLE_ATTR_name, .kind = PESTLE_ATTR_KIND_STR};
  a.as.str = name.data;
  PESTLE_TRY(pestle_parse_push_attr(p, o, &a));
  PESTLE_TRY(pestle_parse_operands(p, o));
  return pestle_parse_types_after_dict(p, o);
}

pestle_status_t pestle_parse_composite_attr(pestle_parser_t* p,
                                            pestle_parse_op_t* o,
                                            const pestle_parse_entry_t* e,
                                            bool* out_done) {
  *out_done = true;
  pestle_attr_t a = {.kind = PESTLE_ATTR_KIND_STR};
  if (pestle_str_equal_c(e->key, "decomposition")) {
    PESTLE_TRY(pestle_parse_convert(p, "decomposition", &e->value, &a));
    o->decomposition = pestle_arena_strdup(&p->kept, a.as.str);
    return o->decomposition ? NULL : PESTLE_OOM();
  }
  if (pestle_str_equal_c(e->key, "composite_attributes")) {
    if (e->value.kind != PESTLE_VALUE_DICT || !e->value.text.size) {
      return pestle_parse_error(p, &e->value.at, PESTLE_STATUS_MALFORMED,
                                "attribute 'composite_attributes' must be a "
                                "dictionary");
    }
    if (!e->value.entry_count) return NULL;
    a.name = PESTLE_ATTR_attributes;
    a.as.str = pestle_arena_strndup(&p->scratch, e->value.text);
    return a.as.str ? pestle_parse_push_attr(p, o, &a) : PESTLE_OOM();
  }
  *out_done = false;
  return NULL;
}

pestle_status_t pestle_parse_by_name(pestle_parser_t* p, pestle_parse_op_t* o) {
  size_t kept = 0;
  o->op = PESTLE_OP_CUSTOM;
  for (size_t i = 0; i < o->attr_count; ++i) {
    pestle_attr_t a = o->attrs[i];
    if (a.name == PESTLE_ATTR_api_version) continue;
    if (a.name == PESTLE_ATTR_call_target_name) a.name = PESTLE_ATTR_name;
    if (a.name == PESTLE_ATTR_backend_dictionary) {
      a.name = PESTLE_ATTR_attributes;
    }
    if (a.name != PESTLE_ATTR_name && a.name != PESTLE_ATTR_version &&
        a.name != PESTLE_ATTR_attributes) {
      return pestle_parse_error(
          p, &o->at, PESTLE_STATUS_UNSUPPORTED,
          "a custom call with 'pestle.version' has no attribute '%s'",
          pestle_attr_name_text((pestle_attr_name_t)a.name));
    }
    o->attrs[kept++] = a;
  }
  o->attr_count = kept;
  return NULL;
}

pestle_status_t pestle_parse_note_composite(pestle_parser_t* p,
                                            const pestle_parse_op_t* o,
                                            pestle_node_t* node) {
  if (o->by_name) return NULL;
  if (!o->decomposition) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "expected attribute 'decomposition'");
  }
  if (o->region_count) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_UNSUPPORTED,
                              "regions of a composite are not supported");
  }
  pestle_parse_composite_t composite = {node, o->decomposition, o->at};
  return pestle_vec_push(&p->composites, composite) ? NULL : PESTLE_OOM();
}

// --- Ops of the text that have no row ---

pestle_status_t pestle_parse_wrap_begin(pestle_parser_t* p,
                                        const pestle_parse_op_t* o,
                                        pestle_parse_wrap_t* out_wrap) {
  size_t count = o->operand_count;
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&p->scratch, pestle_type_t, count);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *o->operands[i]->type;
  *out_wrap = (pestle_parse_wrap_t){.inside = {.module = p->module}};
  PESTLE_TRY(pestle_region_create(p->module, types, count, &out_wrap->region,
                                  &out_wrap->inside.block));
  out_wrap->arguments = out_wrap->inside.block->arguments;
  return NULL;
}

pestle_status_t pestle_parse_wrap_end(pestle_parser_t* p,
                                      const pestle_parse_op_t* o,
                                      pestle_parse_wrap_t* wrap,
                                      pestle_str_t attributes,
                                      pestle_value_t* const* results,
                                      size_t count, pestle_node_t** out_node) {
  char* name = pestle_arena_strndup(&p->scratch, o->at.text);
  char* text = pestle_arena_strndup(&p->scratch, attributes);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&p->scratch, pestle_type_t, count);
  if (!name || !text || !types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *results[i]->type;
  PESTLE_TRY(pestle_op_return(&wrap->inside, results, count, NULL));
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_name, PESTLE_ATTR_KIND_STR, .as.str = name},
      {PESTLE_ATTR_version, PESTLE_ATTR_KIND_I64, .as.i64 = 1},
      {PESTLE_ATTR_attributes, PESTLE_ATTR_KIND_STR, .as.str = text}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .operands = o->operands,
                             .operand_count = o->operand_count,
                             .attrs = attrs,
                             .attr_count = 3,
                             .regions = &wrap->region,
                             .region_count = 1,
                             .types = types,
                             .type_count = count};
  pestle_builder_t b = *o->builder;
  b.loc = (pestle_loc_t){
      .file = p->file, .line = o->at.line, .column = o->at.column};
  return pestle_node_create(&b, &spec, out_node);
}

// --- Bodies ---

enum { UNSEEN, OPEN, DONE };

// The composites of one function.
typedef struct group_t {
  size_t first, count;
  int state;
} group_t;

typedef struct attacher_t {
  pestle_parser_t* p;
  pestle_arena_t arena;
  pestle_map_t groups;  // function -> group_t*
  size_t op_count;      // copied so far
} attacher_t;

static const pestle_function_t* function_around(const pestle_node_t* node) {
  const pestle_region_t* region = node->block->region;
  while (region->owner)
    region = region->owner->block->region;
  return region->function;
}

// A function's body is read at once, so its composites are neighbours.
static pestle_status_t group(attacher_t* a) {
  const pestle_parser_t* p = a->p;
  const pestle_function_t* last = NULL;
  group_t* g = NULL;
  for (size_t i = 0; i < p->composites.size; ++i) {
    const pestle_function_t* f = function_around(p->composites.data[i].node);
    if (f == last) {
      ++g->count;
      continue;
    }
    last = f;
    g = PESTLE_ARENA_NEW(&a->arena, group_t);
    if (!g || !pestle_map_set_u64_ptr(&a->groups, (uintptr_t)f, g)) {
      return PESTLE_OOM();
    }
    *g = (group_t){.first = i, .count = 1};
  }
  return NULL;
}

static pestle_status_t find_decomposition(const attacher_t* a,
                                          const pestle_parse_composite_t* c,
                                          pestle_function_t** out) {
  *out = pestle_module_find_function(a->p->module, c->decomposition);
  if (*out) return NULL;
  return pestle_parse_error(a->p, &c->at, PESTLE_STATUS_MALFORMED,
                            "there is no function '%.60s'", c->decomposition);
}

static pestle_status_t count_ops(attacher_t* a, const pestle_region_t* body,
                                 const pestle_parse_composite_t* c) {
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(body, n)))
    ++a->op_count;
  if (a->op_count <= MAX_OPS) return NULL;
  return pestle_parse_error(a->p, &c->at, PESTLE_STATUS_RESOURCE_EXHAUSTED,
                            "the bodies of composites have more than %d ops "
                            "in all",
                            MAX_OPS);
}

// |node| again with |region|, in its place.
static pestle_status_t replace(pestle_node_t* node, pestle_region_t* region) {
  pestle_builder_t b = pestle_builder_before(node);
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .attrs = node->attrs,
                             .attr_count = node->attr_count,
                             .regions = &region,
                             .region_count = 1};
  PESTLE_TRY(pestle_node_result_types(b.module, node, &spec));
  pestle_value_t** operands = PESTLE_ARENA_ARRAY(
      &b.module->arena, pestle_value_t*, node->operand_count);
  if (!operands) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->operand_count; ++i)
    operands[i] = pestle_node_operand(node, i);
  spec.operands = operands;
  spec.operand_count = node->operand_count;
  pestle_node_t* made;
  PESTLE_TRY(pestle_node_create(&b, &spec, &made));
  for (uint32_t i = 0; i < node->result_count; ++i) {
    made->results[i].name = node->results[i].name;
    pestle_value_replace_all_uses(&node->results[i], &made->results[i]);
  }
  pestle_node_erase(node);
  return NULL;
}

static pestle_status_t attach(attacher_t* a, const pestle_parse_composite_t* c,
                              const pestle_function_t* f) {
  PESTLE_TRY(count_ops(a, f->body, c));
  pestle_copier_t copier;
  pestle_region_t* region = NULL;
  pestle_copier_init(a->p->allocator,
                     (pestle_builder_t){.module = a->p->module}, &copier);
  pestle_status_t status = pestle_copier_region(&copier, f->body, &region);
  pestle_copier_deinit(&copier);
  if (!status) status = replace(c->node, region);
  return pestle_parse_place(a->p, &c->at, status);
}

// Gives the composites of |f| their bodies, those in the bodies first.
static pestle_status_t attach_in(attacher_t* a, const pestle_function_t* f,
                                 int depth) {
  const pestle_map_value_t* found =
      pestle_map_find_u64(&a->groups, (uintptr_t)f);
  group_t* g = found ? found->ptr : NULL;
  if (!g || g->state == DONE) return NULL;
  g->state = OPEN;
  for (size_t i = 0; i < g->count; ++i) {
    const pestle_parse_composite_t* c = &a->p->composites.data[g->first + i];
    pestle_function_t* body;
    PESTLE_TRY(find_decomposition(a, c, &body));
    const pestle_map_value_t* inner =
        pestle_map_find_u64(&a->groups, (uintptr_t)body);
    if (inner && ((const group_t*)inner->ptr)->state == OPEN) {
      return pestle_parse_error(a->p, &c->at, PESTLE_STATUS_MALFORMED,
                                "'%.60s' is its own decomposition",
                                c->decomposition);
    }
    if (depth >= MAX_DEPTH) {
      return pestle_parse_error(a->p, &c->at, PESTLE_STATUS_RESOURCE_EXHAUSTED,
                                "composites are nested more than %d deep",
                                MAX_DEPTH);
    }
    PESTLE_TRY(attach_in(a, body, depth + 1));
    PESTLE_TRY(attach(a, c, body));
  }
  g->state = DONE;
  return NULL;
}

// --- Functions that were decompositions only ---

static pestle_status_t note_calls(const pestle_module_t* module,
                                  pestle_map_t* called) {
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(f->body, n))) {
      if (n->op != PESTLE_OP_CALL) continue;
      pestle_str_t name = pestle_str(PESTLE_NODE_STR(n, callee));
      if (!pestle_map_set_str(called, name, 1)) return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t drop_decompositions(const pestle_parser_t* p) {
  pestle_map_t called;
  pestle_map_init(p->allocator, &called);
  pestle_status_t status = note_calls(p->module, &called);
  for (size_t i = 0; i < p->composites.size && !status; ++i) {
    const char* name = p->composites.data[i].decomposition;
    pestle_function_t* f = pestle_module_find_function(p->module, name);
    if (!f || !f->is_private || pestle_map_find_str(&called, pestle_str(name)))
      continue;
    pestle_module_remove_function(f);
  }
  pestle_map_deinit(&called);
  return status;
}

pestle_status_t pestle_parse_attach_bodies(pestle_parser_t* p) {
  if (!p->composites.size) return NULL;
  attacher_t a = {.p = p};
  pestle_arena_init(p->allocator, &a.arena);
  pestle_map_init(p->allocator, &a.groups);
  pestle_status_t status = group(&a);
  for (pestle_function_t* f = p->module->first; f && !status; f = f->next)
    status = attach_in(&a, f, 0);
  pestle_map_deinit(&a.groups);
  pestle_arena_deinit(&a.arena);
  return status ? status : drop_decompositions(p);
}
