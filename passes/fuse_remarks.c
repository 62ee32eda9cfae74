// SPDX-License-Identifier: Apache-2.0
// Which values pass from one kernel to another, and why the kernels are two.
// The rules' answers are noted while groups are made; when all are made, each
// value that still crosses finds its own.
#include <string.h>

#include "passes/fuse.h"

static const struct {
  const char* code;
  const char* sentence;
} reasons[] = {
    [PESTLE_FUSE_REASON_NONE] = {"", ""},
#define PESTLE_FUSE_REASON(ID, code, sentence) \
  [PESTLE_FUSE_REASON_##ID] = {code, sentence},
#include "passes/fuse_reasons.def"
};

pestle_fuse_reason_t pestle_fuse_note(pestle_fuse_t* f, uint32_t group,
                                      uint32_t item, pestle_fuse_reason_t why) {
  if (!why || !f->ctx->remarks) return why;
  pestle_fuse_note_t note = {
      .item = item, .member = f->groups[group].first, .why = why};
  if (!pestle_vec_push(&f->notes, note)) f->ctx->remarks->failed = true;
  return why;
}

// The last refusal of |item| by the group, for the code that made it last knew
// most; NONE.
static pestle_fuse_reason_t noted(const pestle_fuse_t* f, uint32_t group,
                                  uint32_t item) {
  for (size_t i = f->notes.size; i-- > 0;) {
    const pestle_fuse_note_t* n = &f->notes.data[i];
    if (n->item == item && f->items[n->member].group == group) return n->why;
  }
  return PESTLE_FUSE_REASON_NONE;
}

// A value of group |from| that a member of |to| reads, perhaps through views
// that are no kernel.
typedef struct edge_t {
  uint32_t from, to;
  uint32_t producer;  // member of |from|
  uint32_t view;      // the last of the views between, or the producer
  uint32_t first;     // the first of them, or the reader
  uint32_t reader;    // member of |to|
} edge_t;

static bool has_hero(const pestle_fuse_t* f, uint32_t group) {
  return f->groups[group].hero != PESTLE_FUSE_NONE;
}

// Two kernels with a hero each are two for that, unless the op between them
// could have followed the first one.
static pestle_fuse_reason_t why_two(const pestle_fuse_t* f, const edge_t* e,
                                    uint32_t* out_op) {
  pestle_fuse_reason_t why = noted(f, e->from, e->first);
  bool could =
      why == PESTLE_FUSE_REASON_TAKEN || why == PESTLE_FUSE_REASON_CIRCLE ||
      why == PESTLE_FUSE_REASON_FULL || why == PESTLE_FUSE_REASON_TENSORS;
  if (why == PESTLE_FUSE_REASON_PAIR_NEAR ||
      why == PESTLE_FUSE_REASON_PAIR_UNFIT) {
    return why;
  }
  if (!could || e->first == f->groups[e->to].hero) {
    return PESTLE_FUSE_REASON_TWO_HEROES;
  }
  *out_op = e->first;
  return why;
}

static pestle_fuse_reason_t why_apart(const pestle_fuse_t* f, const edge_t* e,
                                      uint32_t* out_op) {
  *out_op = e->producer;
  if (f->ctx->options->no_fuse) return PESTLE_FUSE_REASON_NO_FUSE;
  if (has_hero(f, e->from) && has_hero(f, e->to)) return why_two(f, e, out_op);
  *out_op = e->view;
  pestle_fuse_reason_t why = noted(f, e->to, e->view);
  if (why) return why;
  *out_op = e->first;
  why = noted(f, e->from, e->first);
  if (why) return why;
  *out_op = e->producer;
  why = noted(f, e->to, e->producer);
  if (why) return why;
  const pestle_node_t* producer = pestle_fuse_node(f, e->producer);
  return has_hero(f, e->from) && producer->op == PESTLE_OP_TRANSPOSE
             ? PESTLE_FUSE_REASON_AFTER_VIEW
             : PESTLE_FUSE_REASON_ONE_PLACE;
}

static void append_sentence(const char* sentence, const pestle_node_t* op,
                            pestle_strbuf_t* out) {
  const char* at = strchr(sentence, '@');
  if (!at) {
    pestle_strbuf_append_c(out, sentence);
    return;
  }
  pestle_strbuf_append_bytes(out, sentence, (size_t)(at - sentence));
  pestle_remark_describe(op, out);
  pestle_strbuf_append_c(out, at + 1);
}

static void remark_edge(pestle_fuse_t* f, const edge_t* e) {
  uint32_t op;
  pestle_fuse_reason_t why = why_apart(f, e, &op);
  const pestle_node_t* producer = pestle_fuse_node(f, e->producer);
  pestle_strbuf_t what, text;
  pestle_strbuf_init(f->allocator, &what);
  pestle_strbuf_init(f->allocator, &text);
  pestle_type_print(producer->results[0].type, &what);
  pestle_strbuf_append_c(&what, " of ");
  pestle_remark_describe(producer, &what);
  append_sentence(reasons[why].sentence, pestle_fuse_node(f, op), &text);
  pestle_remark_t remark = {.pass = "fuse",
                            .code = reasons[why].code,
                            .what = pestle_strbuf_cstr(&what),
                            .text = pestle_strbuf_cstr(&text)};
  pestle_fuse_pair_t pair = {e->from, e->to};
  if (what.failed || text.failed || !pestle_vec_push(&f->pairs, pair)) {
    f->ctx->remarks->failed = true;
  }
  pestle_remarks_add(f->ctx->remarks, &remark);
  pestle_strbuf_deinit(&what);
  pestle_strbuf_deinit(&text);
}

// The edge that ends at operand |index| of |reader|, if one does.
static bool find_edge(const pestle_fuse_t* f, uint32_t reader, uint32_t index,
                      edge_t* e) {
  const pestle_value_t* v =
      pestle_node_operand(pestle_fuse_node(f, reader), index);
  uint32_t item = pestle_fuse_item_of(f, v);
  e->reader = e->first = reader;
  e->view = item;
  // Through copies and what is no kernel, along the first operand: views.
  while (item != PESTLE_FUSE_NONE && f->items[item].group == PESTLE_FUSE_NONE &&
         pestle_fuse_node(f, item)->operand_count &&
         (f->items[item].floating ||
          pestle_fuse_is_zero_copy(pestle_fuse_node(f, item)))) {
    // A copy is in the reader's kernel.
    if (!f->items[item].floating) e->first = item;
    item = pestle_fuse_item_of(
        f, pestle_node_operand(pestle_fuse_node(f, item), 0));
    if (e->first == reader) e->view = item;
  }
  if (item == PESTLE_FUSE_NONE) return false;
  e->producer = item;
  e->from = f->items[item].group;
  e->to = f->items[reader].group;
  return e->from != PESTLE_FUSE_NONE && e->from != e->to;
}

// One remark for a value and a group, however many members read it.
static bool is_new(const edge_t* e, uint32_t* seen) {
  if (seen[e->producer] == e->to + 1) return false;
  seen[e->producer] = e->to + 1;
  return true;
}

static void remark_group(pestle_fuse_t* f, uint32_t group, uint32_t* seen) {
  for (uint32_t i = f->groups[group].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    const pestle_node_t* node = pestle_fuse_node(f, i);
    for (uint32_t o = 0; o < node->operand_count; ++o) {
      edge_t e;
      if (find_edge(f, i, o, &e) && is_new(&e, seen)) remark_edge(f, &e);
    }
  }
}

pestle_status_t pestle_fuse_remark_edges(pestle_fuse_t* f) {
  uint32_t* seen =
      PESTLE_ARENA_ARRAY(f->ctx->scratch, uint32_t, f->item_count + 1);
  if (!seen) return PESTLE_OOM();
  memset(seen, 0, (f->item_count + 1) * sizeof(*seen));
  for (uint32_t g = 0; g < f->group_count; ++g) {
    if (!f->groups[g].dead) remark_group(f, g, seen);
  }
  return pestle_remarks_status(f->ctx->remarks);
}

void pestle_fuse_remark_fusions(pestle_fuse_t* f) {
  if (!f->pairs.size) return;  // and perhaps no list
  // The block's remarks are the last ones.
  pestle_remark_t* remarks =
      f->ctx->remarks->list.data + f->ctx->remarks->list.size - f->pairs.size;
  for (size_t i = 0; i < f->pairs.size; ++i) {
    remarks[i].from = f->groups[f->pairs.data[i].from].fusion;
    remarks[i].kernel = f->groups[f->pairs.data[i].to].fusion;
  }
}
