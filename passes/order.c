// SPDX-License-Identifier: Apache-2.0
// Puts the ops of each block into the order in which they run. A greedy list
// scheduler takes, of the ops that are ready, the one that adds least to the
// live bytes; its order is kept if its peak is below that of the order found.
//
//   %0 = fusion(%x)  // big        %0 = fusion(%x)
//   %1 = fusion(%y)  // big   ->   %2 = fusion(%0)
//   %2 = fusion(%0)  // small      %1 = fusion(%y)
//
// Collectives run beside kernels: each then comes as early as its operands are there, and
// who reads a result as late as others have something to do, unless that takes much more
// memory:
//
//   %1 = all_reduce(%0)            %1 = all_reduce(%0)
//   %2 = fusion(%w, %1)       ->   %3 = fusion(%x)
//   %3 = fusion(%x)                %2 = fusion(%w, %1)
#include <string.h>

#include "base/mem.h"
#include "passes/fuse.h"
#include "passes/util.h"

// Ready ops that are compared at each step.
#define WINDOW 48

// What the live bytes may grow to where collectives run beside kernels.
#define BESIDE_GROWTH 1.25

typedef struct op_t {
  pestle_node_t* node;
  uint32_t need_begin, need_end;  // into sched_t.needs
  uint32_t user_begin, user_end;  // into sched_t.users
  uint32_t waiting;               // ops that must run before it
  uint32_t
      behind;  // collective, by its place among those begun, that it reads; 0: none
} op_t;

// Storage that lives from its op to the last op that reads it or a view of it.
typedef struct root_t {
  int64_t bytes;
  uint32_t uses, left;
} root_t;

typedef struct sched_t {
  pestle_pass_context_t* ctx;
  pestle_block_t* block;
  op_t* ops;
  uint32_t count;
  root_t* roots;
  uint32_t root_count;
  uint32_t* needs;    // value numbers that an op reads
  uint32_t* root_of;  // by value number
  uint32_t* maker;    // by value number: op, or UINT32_MAX
  uint32_t value_count;
  uint32_t marks;  // number of the first op's mark
  uint32_t *users, *order, *ready;
  bool changed;
} sched_t;

static bool is_here(const sched_t* s, const pestle_value_t* v) {
  return (v->node ? v->node->block : v->block) == s->block;
}

// Writes the numbers of the block's values that |node| and its regions read.
static uint32_t list_needs(const sched_t* s, const pestle_node_t* node,
                           uint32_t* out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* v = pestle_node_operand(node, i);
    if (!is_here(s, v)) continue;
    if (out) out[count] = (uint32_t)v->scratch;
    ++count;
  }
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_block_t* body = pestle_node_body(node, r);
    for (const pestle_node_t* n = body->first; n; n = n->next) {
      count += list_needs(s, n, out ? out + count : NULL);
    }
  }
  return count;
}

static void number_values(sched_t* s) {
  s->value_count = 0;
  s->count = 0;
  for (uint32_t i = 0; i < s->block->argument_count; ++i) {
    s->block->arguments[i]->scratch = s->value_count++;
  }
  for (pestle_node_t* n = s->block->first; n; n = n->next) {
    n->scratch = s->count++;
    for (uint32_t r = 0; r < n->result_count; ++r) {
      n->results[r].scratch = s->value_count++;
    }
  }
  // One more for each op: that it was there, which the next op with an effect
  // waits for.
  s->marks = s->value_count;
  s->value_count += s->count;
}

static void make_roots(sched_t* s) {
  s->root_count = s->value_count;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    s->root_of[v] = v;
    s->maker[v] = UINT32_MAX;
    s->roots[v] = (root_t){0};
  }
  for (uint32_t i = 0; i < s->count; ++i) {
    const pestle_node_t* n = s->ops[i].node;
    bool view = pestle_fuse_is_view(n);
    for (uint32_t r = 0; r < n->result_count; ++r) {
      const pestle_value_t* v = &n->results[r];
      s->maker[v->scratch] = i;
      if (view && is_here(s, pestle_node_operand(n, r))) {
        s->root_of[v->scratch] = s->root_of[pestle_node_operand(n, r)->scratch];
      } else if (!pestle_pass_is_stored(n) && !view) {
        s->roots[v->scratch].bytes = (int64_t)pestle_type_bytes(v->type);
      }
    }
    s->maker[s->marks + i] = i;
  }
}

static pestle_status_t build(sched_t* s) {
  pestle_arena_t* arena = s->ctx->scratch;
  number_values(s);
  uint32_t needs = 0;
  for (pestle_node_t* n = s->block->first; n; n = n->next) {
    needs += list_needs(s, n, NULL);
  }
  s->ops = PESTLE_ARENA_ARRAY(arena, op_t, s->count + 1);
  needs += s->count;
  s->needs = PESTLE_ARENA_ARRAY(arena, uint32_t, needs + 1);
  s->users = PESTLE_ARENA_ARRAY(arena, uint32_t, needs + 1);
  s->roots = PESTLE_ARENA_ARRAY(arena, root_t, s->value_count + 1);
  s->root_of = PESTLE_ARENA_ARRAY(arena, uint32_t, s->value_count + 1);
  s->maker = PESTLE_ARENA_ARRAY(arena, uint32_t, s->value_count + 1);
  s->order = PESTLE_ARENA_ARRAY(arena, uint32_t, s->count + 1);
  s->ready = PESTLE_ARENA_ARRAY(arena, uint32_t, s->count + 1);
  if (!s->ops || !s->needs || !s->users || !s->roots || !s->root_of ||
      !s->maker || !s->order || !s->ready) {
    return PESTLE_OOM();
  }
  uint32_t at = 0, i = 0, last = UINT32_MAX;
  for (pestle_node_t* n = s->block->first; n; n = n->next) {
    uint32_t end = at + list_needs(s, n, s->needs + at);
    // Barriers and generators need no order among themselves.
    if (!(pestle_pass_info(n)->flags & PESTLE_OP_FLAG_EFFECT) &&
        pestle_node_has_effect(n)) {
      if (last != UINT32_MAX) s->needs[end++] = s->marks + last;
      last = i;
    }
    s->ops[i++] = (op_t){.node = n, .need_begin = at, .need_end = end};
    at = end;
  }
  make_roots(s);
  return NULL;
}

// Fills |users| of every op from |needs|, by counting.
static void link_users(sched_t* s) {
  for (uint32_t i = 0; i < s->count; ++i) {
    for (uint32_t n = s->ops[i].need_begin; n < s->ops[i].need_end; ++n) {
      uint32_t value = s->needs[n];
      ++s->roots[s->root_of[value]].uses;
      if (s->maker[value] == UINT32_MAX) continue;
      ++s->ops[s->maker[value]].user_end;
      ++s->ops[i].waiting;
    }
  }
  uint32_t begin = 0;
  for (uint32_t i = 0; i < s->count; ++i) {
    s->ops[i].user_begin = begin;
    begin += s->ops[i].user_end;
    s->ops[i].user_end = s->ops[i].user_begin;
  }
  for (uint32_t i = 0; i < s->count; ++i) {
    for (uint32_t n = s->ops[i].need_begin; n < s->ops[i].need_end; ++n) {
      uint32_t maker = s->maker[s->needs[n]];
      if (maker != UINT32_MAX) s->users[s->ops[maker].user_end++] = i;
    }
  }
}

// --- Live bytes ---

static void reset_live(sched_t* s) {
  for (uint32_t r = 0; r < s->root_count; ++r) {
    s->roots[r].left = s->roots[r].uses;
  }
}

static int64_t made_by(const sched_t* s, const op_t* op) {
  int64_t bytes = 0;
  for (uint32_t r = 0; r < op->node->result_count; ++r) {
    bytes += s->roots[op->node->results[r].scratch].bytes;
  }
  return bytes;
}

// Bytes that are free once |op| has run. |commit| takes the uses off.
static int64_t freed_by(sched_t* s, const op_t* op, bool commit) {
  int64_t bytes = 0;
  for (uint32_t n = op->need_begin; n < op->need_end; ++n) {
    root_t* root = &s->roots[s->root_of[s->needs[n]]];
    if (--root->left == 0) bytes += root->bytes;
  }
  for (uint32_t n = op->need_begin; n < op->need_end && !commit; ++n) {
    ++s->roots[s->root_of[s->needs[n]]].left;
  }
  return bytes;
}

static int64_t run_op(sched_t* s, const op_t* op, int64_t* live) {
  *live += made_by(s, op);
  int64_t peak = *live;
  *live -= freed_by(s, op, true);
  return peak;
}

static int64_t peak_of(sched_t* s, const uint32_t* order) {
  int64_t live = 0, peak = 0;
  reset_live(s);
  for (uint32_t i = 0; i < s->count; ++i) {
    int64_t now = run_op(s, &s->ops[order ? order[i] : i], &live);
    if (now > peak) peak = now;
  }
  return peak;
}

// --- The greedy order ---

// The ready list is kept in the order found, so that ties change nothing.
static void insert_ready(sched_t* s, uint32_t* count, uint32_t op) {
  uint32_t at = (*count)++;
  while (at > 0 && s->ready[at - 1] > op) {
    s->ready[at] = s->ready[at - 1];
    --at;
  }
  s->ready[at] = op;
}

static uint32_t pick(sched_t* s, uint32_t count) {
  uint32_t best = 0;
  int64_t best_cost = INT64_MAX;
  for (uint32_t i = 0; i < count && i < WINDOW; ++i) {
    const op_t* op = &s->ops[s->ready[i]];
    int64_t cost = pestle_pass_is_terminator(op->node)
                       ? INT64_MAX - 1
                       : made_by(s, op) - freed_by(s, op, false);
    if (cost < best_cost) {
      best = i;
      best_cost = cost;
    }
  }
  return best;
}

static int64_t schedule(sched_t* s) {
  uint32_t ready = 0, done = 0;
  int64_t live = 0, peak = 0;
  reset_live(s);
  for (uint32_t i = 0; i < s->count; ++i) {
    if (!s->ops[i].waiting) insert_ready(s, &ready, i);
  }
  while (ready) {
    uint32_t at = pick(s, ready), op = s->ready[at];
    memmove(s->ready + at, s->ready + at + 1,
            (--ready - at) * sizeof(s->ready[0]));
    s->order[done++] = op;
    int64_t now = run_op(s, &s->ops[op], &live);
    if (now > peak) peak = now;
    for (uint32_t u = s->ops[op].user_begin; u < s->ops[op].user_end; ++u) {
      if (--s->ops[s->users[u]].waiting == 0) {
        insert_ready(s, &ready, s->users[u]);
      }
    }
  }
  return peak;
}

// --- Beside collectives ---

static bool is_collective(const op_t* op) {
  return pestle_pass_is_collective(op->node);
}

// The latest collective whose result |op| reads; |begun|: by value number, 0: none.
static uint32_t find_behind(const sched_t* s, const op_t* op,
                            const uint32_t* begun) {
  uint32_t behind = 0;
  for (uint32_t n = op->need_begin; n < op->need_end; ++n) {
    uint32_t of = begun[s->root_of[s->needs[n]]];
    if (behind < of) behind = of;
  }
  return behind;
}

// Of the ready ops: a collective; else the first that waits for none that is under way;
// else the one that waits for the earliest; at last the terminator.
static uint32_t pick_beside(const sched_t* s, uint32_t count, uint32_t done) {
  uint32_t best = count;
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; i < count; ++i) {
    const op_t* op = &s->ops[s->ready[i]];
    uint32_t waits = op->behind > done ? op->behind : 0;
    if (is_collective(op)) return i;
    if (pestle_pass_is_terminator(op->node)) waits = UINT32_MAX - 1;
    if (waits < least) {
      best = i;
      least = waits;
    }
  }
  return best;
}

static void run_beside(sched_t* s, uint32_t op, uint32_t* begun,
                       uint32_t* count, uint32_t* done, uint32_t* ready) {
  const op_t* o = &s->ops[op];
  if (is_collective(o)) {
    ++*count;
    for (uint32_t r = 0; r < o->node->result_count; ++r)
      begun[o->node->results[r].scratch] = *count;
  } else if (o->behind > *done) {
    *done = o->behind;
  }
  for (uint32_t u = o->user_begin; u < o->user_end; ++u) {
    op_t* user = &s->ops[s->users[u]];
    if (--user->waiting) continue;
    user->behind =
        pestle_fuse_is_view(user->node) ? 0 : find_behind(s, user, begun);
    insert_ready(s, ready, s->users[u]);
  }
}

// Fills |order|.
static pestle_status_t schedule_beside(sched_t* s) {
  uint32_t ready = 0, at = 0, count = 0, done = 0;
  uint32_t* begun =
      PESTLE_ARENA_ARRAY(s->ctx->scratch, uint32_t, s->value_count + 1);
  if (!begun) return PESTLE_OOM();
  memset(begun, 0, (s->value_count + 1) * sizeof(*begun));
  for (uint32_t i = 0; i < s->count; ++i) {
    if (!s->ops[i].waiting) insert_ready(s, &ready, i);
  }
  while (ready) {
    uint32_t next = pick_beside(s, ready, done), op = s->ready[next];
    memmove(s->ready + next, s->ready + next + 1,
            (--ready - next) * sizeof(s->ready[0]));
    s->order[at++] = op;
    run_beside(s, op, begun, &count, &done, &ready);
  }
  return NULL;
}

static void apply(sched_t* s) {
  pestle_node_t* end = s->block->last;
  for (uint32_t i = 0; i + 1 < s->count; ++i)
    pestle_node_move(s->ops[s->order[i]].node, end);
  s->changed = true;
}

static bool is_changed(const sched_t* s) {
  for (uint32_t i = 0; i < s->count; ++i) {
    if (s->order[i] != i) return true;
  }
  return false;
}

static pestle_status_t order_beside(sched_t* s) {
  bool any = false;
  for (pestle_node_t* n = s->block->first; n; n = n->next)
    any |= pestle_pass_is_collective(n);
  if (!any) return NULL;
  PESTLE_TRY(build(s));
  link_users(s);
  int64_t found = peak_of(s, NULL);
  PESTLE_TRY(schedule_beside(s));
  bool fits = (double)peak_of(s, s->order) <= BESIDE_GROWTH * (double)found;
  bool ends = s->ops[s->order[s->count - 1]].node == s->block->last;
  if (fits && ends && is_changed(s)) apply(s);
  return NULL;
}

static pestle_status_t order_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  sched_t* s = user;
  (void)module;
  s->block = block;
  pestle_arena_mark_t mark = pestle_arena_mark(s->ctx->scratch);
  PESTLE_TRY(build(s));
  link_users(s);
  int64_t found = peak_of(s, NULL);
  // A return reads nothing in a block without results: it must stay last.
  if (schedule(s) < found &&
      s->ops[s->order[s->count - 1]].node == block->last) {
    apply(s);
  }
  pestle_status_t status = order_beside(s);
  pestle_arena_rewind(s->ctx->scratch, mark);
  return status;
}

pestle_status_t pestle_pass_order(pestle_pass_context_t* ctx,
                                  pestle_module_t* module, bool* out_changed) {
  sched_t s = {.ctx = ctx};
  PESTLE_TRY(pestle_pass_each_block(module, order_block, &s));
  *out_changed = s.changed;
  return NULL;
}
