// SPDX-License-Identifier: Apache-2.0
// What a module says of its values: see partition.h.
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "passes/partition.h"

static bool is_named(const pestle_node_t* node, const char* name) {
  return node->op == PESTLE_OP_CUSTOM &&
         !strcmp(PESTLE_NODE_STR(node, name), name);
}

bool partition_is_wish(const pestle_node_t* node) {
  return is_named(node, PESTLE_MARK_WISH);
}

bool partition_has_bodies(const pestle_node_t* node) {
  return node->op == PESTLE_OP_WHILE || node->op == PESTLE_OP_IF ||
         node->op == PESTLE_OP_CASE;
}

// --- Numbers ---

static pestle_status_t add(partition_t* p, pestle_value_t* value) {
  partition_value_t v = {.value = value, .spread = pestle_spread_whole()};
  if (value) value->scratch = p->values.size;
  return pestle_vec_push(&p->values, v) ? NULL : PESTLE_OOM();
}

static pestle_status_t number_block(partition_t* p,
                                    const pestle_block_t* block) {
  for (uint32_t i = 0; i < block->argument_count; ++i)
    PESTLE_TRY(add(p, block->arguments[i]));
  return NULL;
}

static pestle_status_t number(partition_t* p) {
  const pestle_region_t* body = p->entry->body;
  PESTLE_TRY(number_block(p, body->block));
  for (pestle_node_t* n = NULL; (n = pestle_region_next(body, n));) {
    for (uint32_t i = 0; i < n->result_count; ++i)
      PESTLE_TRY(add(p, &n->results[i]));
    for (uint32_t i = 0; i < n->region_count; ++i)
      PESTLE_TRY(number_block(p, pestle_node_body(n, i)));
  }
  uint32_t count = body->block->last->operand_count;
  p->results = PESTLE_ARENA_ARRAY(p->arena, uint32_t, count + 1);
  p->said = PESTLE_ARENA_ARRAY(p->arena, bool, count + 1);
  if (!p->results || !p->said) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    p->results[i] = (uint32_t)p->values.size;
    p->said[i] = false;
    PESTLE_TRY(add(p, NULL));
  }
  return NULL;
}

// --- Texts ---

typedef pestle_status_t (*text_fn_t)(partition_t* p, pestle_str_t text,
                                     const pestle_type_t* type,
                                     partition_value_t* v);

static pestle_status_t each_boundary(partition_t* p, text_fn_t fn) {
  const pestle_block_t* block = p->entry->body->block;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    const char* text =
        pestle_function_argument_attribute(p->entry, i, "sdy.sharding");
    if (!text) continue;
    PESTLE_TRY(pestle_status_annotate(
        fn(p, pestle_str(text), block->arguments[i]->type,
           partition_of(p, block->arguments[i])),
        "in the sharding of argument %u", (unsigned)i));
  }
  for (uint32_t i = 0; i < block->last->operand_count; ++i) {
    const char* text =
        pestle_function_result_attribute(p->entry, i, "sdy.sharding");
    if (!text) continue;
    p->said[i] = true;
    PESTLE_TRY(pestle_status_annotate(
        fn(p, pestle_str(text), pestle_node_operand(block->last, i)->type,
           &p->values.data[p->results[i]]),
        "in the sharding of result %u", (unsigned)i));
  }
  return NULL;
}

static pestle_status_t see(partition_t* p, pestle_str_t text,
                           const pestle_type_t* type, partition_value_t* v) {
  bool other;
  (void)type;
  (void)v;
  PESTLE_TRY(pestle_mesh_maker_is_other(&p->maker, text, &other));
  return other ? NULL : pestle_mesh_maker_see(&p->maker, text);
}

// On a mesh of its own: it is gathered where it comes in, and cut where it goes out.
static pestle_status_t say_other(partition_t* p, pestle_str_t text,
                                 const pestle_type_t* type,
                                 partition_value_t* v) {
  pestle_mesh_maker_t maker;
  pestle_spread_t spread;
  pestle_axes_t manual;
  pestle_sharding_t* s = PESTLE_ARENA_NEW(p->arena, pestle_sharding_t);
  if (!s) return PESTLE_OOM();
  pestle_mesh_maker_init(p->module, p->arena, &maker);
  PESTLE_TRY(pestle_mesh_maker_see(&maker, text));
  PESTLE_TRY(pestle_mesh_maker_finish(&maker));
  PESTLE_TRY(pestle_mesh_maker_read(&maker, text, type, &spread, &manual));
  PESTLE_TRY(
      pestle_spread_processes(&maker.mesh, &spread, type->rank, p->arena, s));
  v->spread.decided = true;
  if (!s->replicated) v->other = s;
  return NULL;
}

static bool is_open(const pestle_spread_t* s, int32_t rank) {
  return s->closed != (1u << rank) - 1;
}

// Numbers of Shardy's, "{"x"}p1", of which larger ones than there are rounds for are the
// last.
static pestle_status_t read_rounds(partition_t* p, pestle_str_t text,
                                   partition_value_t* v) {
  enum { LAST_ROUND = 15 };
  pestle_sharding_text_t t;
  PESTLE_TRY(pestle_sharding_text_read(p->module, text, &t));
  for (int d = 0; d < t.rank; ++d) {
    int64_t round = t.priority[d] < LAST_ROUND ? t.priority[d] : LAST_ROUND;
    v->rounds[d] = (uint8_t)round;
    if (round > p->last_round) p->last_round = (uint8_t)round;
  }
  return NULL;
}

static pestle_status_t say(partition_t* p, pestle_str_t text,
                           const pestle_type_t* type, partition_value_t* v) {
  pestle_axes_t manual;
  bool other;
  PESTLE_TRY(pestle_mesh_maker_is_other(&p->maker, text, &other));
  if (other) return say_other(p, text, type, v);
  PESTLE_TRY(
      pestle_mesh_maker_read(&p->maker, text, type, &v->spread, &manual));
  v->spread.decided = !is_open(&v->spread, type->rank);
  return read_rounds(p, text, v);
}

// What is made for a wish for summands alone is to be summands.
static void wish_for_operand(partition_t* p, const pestle_value_t* made,
                             const pestle_spread_t* s) {
  if (!made->node || made->use_count != 1 || pestle_is_mark(made->node) ||
      partition_has_bodies(made->node) || !pestle_spread_sums(s)) {
    return;
  }
  partition_value_t* v = partition_of(p, made);
  v->spread = *s;
  v->spread.decided = true;
}

// --- Computations that are for each process ---

static pestle_status_t read_marker(partition_t* p, pestle_node_t* node) {
  bool wish = is_named(node, PESTLE_MARK_WISH);
  pestle_str_t text = pestle_str(PESTLE_NODE_STR(node, attributes));
  bool enters = is_named(node, PESTLE_MARK_LOCAL);
  const pestle_value_t* global =
      enters ? pestle_node_operand(node, 0) : &node->results[0];
  pestle_spread_t s;
  pestle_axes_t manual;
  if (wish) {
    partition_value_t* v = partition_of(p, global);
    PESTLE_TRY(pestle_mesh_maker_read_wish(&p->maker, text, global->type, &s));
    v->spread = s;
    v->spread.decided = !is_open(&s, global->type->rank);
    if (v->spread.decided)
      wish_for_operand(p, pestle_node_operand(node, 0), &v->spread);
    return read_rounds(p, text, v);
  }
  PESTLE_TRY(
      pestle_mesh_maker_read(&p->maker, text, global->type, &s, &manual));
  partition_marker_t* m = PESTLE_ARENA_NEW(p->arena, partition_marker_t);
  if (!m) return PESTLE_OOM();
  pestle_sharding_text_t t;
  PESTLE_TRY(pestle_sharding_text_read(p->module, text, &t));
  if (!t.has_manual) manual = 0xff;
  *m = (partition_marker_t){.node = node,
                            .enters = enters,
                            .spread = s,
                            .manual = manual,
                            .next = p->markers};
  // Of each dim the axes that are manual stand in front.
  for (int32_t d = 0; d < global->type->rank; ++d) {
    pestle_axis_order_t order = pestle_spread_dim(&s, d), kept = {.count = 0};
    for (int i = 0; i < order.count; ++i) {
      if (pestle_axes_has(manual, order.axes[i]))
        kept.axes[kept.count++] = order.axes[i];
    }
    pestle_spread_set_dim(&m->spread, d, &kept);
  }
  pestle_spread_set_sums(&m->spread, pestle_spread_sums(&s) & manual,
                         PESTLE_COMBINE_ADD);
  pestle_type_t local = pestle_spread_local(p->mesh, &m->spread, global->type);
  const pestle_type_t* has =
      enters ? node->results[0].type : pestle_node_operand(node, 0)->type;
  if (!pestle_type_equal(&local, has)) {
    return pestle_node_error(node, PESTLE_STATUS_MALFORMED,
                             "a computation for each device has a value of "
                             "another type than its sharding, '%.200s', says",
                             PESTLE_NODE_STR(node, attributes));
  }
  p->markers = m;
  if (!enters) partition_of(p, &node->results[0])->spread = s;
  return NULL;
}

const partition_marker_t* partition_marker_of(const partition_t* p,
                                              const pestle_node_t* node) {
  const partition_marker_t* m = p->markers;
  while (m && m->node != node)
    m = m->next;
  return m;
}

// A wish that is of no tensor of the module's, in a reduction's body, or of a mesh that
// numbers the devices in another order.
static pestle_status_t is_idle(const partition_t* p, const pestle_node_t* node,
                               bool* out) {
  *out = false;
  if (!is_named(node, PESTLE_MARK_WISH)) return NULL;
  const pestle_node_t* owner = node->block->region->owner;
  for (; owner && !*out; owner = owner->block->region->owner)
    *out = !partition_has_bodies(owner);
  if (*out) return NULL;
  return pestle_mesh_maker_is_other(
      &p->maker, pestle_str(PESTLE_NODE_STR(node, attributes)), out);
}

static pestle_status_t drop_idle(partition_t* p) {
  const pestle_region_t* body = p->entry->body;
  for (pestle_node_t *n = body->block->first, *next; n; n = next) {
    next = pestle_region_next(body, n);
    bool idle;
    PESTLE_TRY(is_idle(p, n, &idle));
    if (!idle) continue;
    pestle_value_replace_all_uses(&n->results[0], pestle_node_operand(n, 0));
    pestle_node_erase(n);
  }
  return NULL;
}

static pestle_status_t each_marker(partition_t* p, bool reads) {
  const pestle_region_t* body = p->entry->body;
  for (pestle_node_t* n = NULL; (n = pestle_region_next(body, n));) {
    if (!pestle_is_mark(n)) continue;
    pestle_str_t text = pestle_str(PESTLE_NODE_STR(n, attributes));
    PESTLE_TRY(reads ? read_marker(p, n)
                     : pestle_mesh_maker_see(&p->maker, text));
  }
  return NULL;
}

// --- Where processes may hold different values ---

pestle_axes_t partition_manual(partition_t* p, const pestle_node_t* node) {
  unsigned set = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i)
    set |= partition_of(p, pestle_node_operand(node, i))->manual;
  return (pestle_axes_t)set;
}

static bool widen(partition_t* p, const pestle_value_t* value, unsigned set) {
  partition_value_t* v = partition_of(p, value);
  bool more = (set & ~(unsigned)v->manual) != 0;
  v->manual = (pestle_axes_t)(v->manual | set);
  return more;
}

static bool widen_bodies(partition_t* p, const pestle_node_t* node,
                         unsigned set) {
  bool more = false;
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_block_t* body = pestle_node_body(node, r);
    for (uint32_t i = 0; i < body->argument_count; ++i)
      more |= widen(p, body->arguments[i], set);
    set |= partition_manual(p, body->last);
  }
  for (uint32_t i = 0; i < node->result_count; ++i)
    more |= widen(p, &node->results[i], set);
  return more;
}

static bool widen_node(partition_t* p, const pestle_node_t* node) {
  unsigned set = partition_manual(p, node);
  const partition_marker_t* m = partition_marker_of(p, node);
  if (m && m->enters) set |= m->manual;
  if (m && !m->enters) set &= ~(unsigned)m->manual;
  // What nobody says to be alike, or to be of some axes, is of all.
  if (!set && pestle_pass_info(node)->fuse == PESTLE_FUSE_COLLECTIVE)
    set = 0xff;
  if (node->op == PESTLE_OP_PARTITION_ID || node->op == PESTLE_OP_REPLICA_ID)
    set = 0xff;
  if (partition_has_bodies(node)) return widen_bodies(p, node, set);
  bool more = false;
  for (uint32_t i = 0; i < node->result_count; ++i)
    more |= widen(p, &node->results[i], set);
  return more;
}

static void find_manual(partition_t* p) {
  const pestle_region_t* body = p->entry->body;
  for (bool more = true; more;) {
    more = false;
    for (pestle_node_t* n = NULL; (n = pestle_region_next(body, n));)
      more |= widen_node(p, n);
  }
}

pestle_status_t partition_read(partition_t* p) {
  pestle_mesh_maker_init(p->module, p->arena, &p->maker);
  PESTLE_TRY(number(p));
  PESTLE_TRY(each_boundary(p, see));
  PESTLE_TRY(drop_idle(p));
  PESTLE_TRY(each_marker(p, false));
  PESTLE_TRY(pestle_mesh_maker_finish(&p->maker));
  p->mesh = &p->maker.mesh;
  PESTLE_TRY(each_boundary(p, say));
  PESTLE_TRY(each_marker(p, true));
  find_manual(p);
  return NULL;
}
