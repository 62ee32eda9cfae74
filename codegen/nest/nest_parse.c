// SPDX-License-Identifier: Apache-2.0
// Reads the text form that nest_print.c writes and describes. Index forms are
// made as they stand, nothing is simplified, so that what was printed prints
// the same again. Everything is bounded: nesting, depth, names, counts.
#include <string.h>

#include "codegen/nest/nest_parse_internal.h"

// --- Types and tensors ---

// "tensor<13x71xf32>"
static pestle_status_t parse_type(pestle_nest_parser_t* p,
                                  pestle_type_t* out_type) {
  pestle_lex_t* s = &p->s;
  *out_type = (pestle_type_t){.dtype = PESTLE_NONE};
  PESTLE_TRY(pestle_lex_expect_word(s, "tensor"));
  PESTLE_TRY(pestle_lex_expect(s, '<'));
  pestle_str_t rest = pestle_lex_word(s);
  for (;;) {
    size_t x = pestle_str_find_char(rest, 'x');
    int64_t dim;
    if (x == SIZE_MAX ||
        !pestle_str_parse_i64(pestle_str_slice(rest, 0, x), &dim)) {
      break;
    }
    if (out_type->rank == PESTLE_MAX_RANK || dim < 0) {
      return pestle_lex_error(s, "expected at most %d extents from 0",
                              PESTLE_MAX_RANK);
    }
    out_type->dims[out_type->rank++] = dim;
    rest = pestle_str_slice(rest, x + 1, rest.size);
  }
  if (!pestle_nest_parse_dtype(rest, &out_type->dtype)) {
    return pestle_lex_error(s, "expected a tensor's type");
  }
  pestle_status_t bad = pestle_type_check(out_type);
  if (bad) {
    pestle_status_release(bad);
    return pestle_lex_error(s, "expected a type that a tensor may have");
  }
  return pestle_lex_expect(s, '>');
}

static pestle_status_t parse_pack_axis(pestle_nest_parser_t* p,
                                       pestle_nest_tensor_t* t) {
  pestle_lex_t* s = &p->s;
  if (t->pack_count == PESTLE_NEST_MAX_AXES + 2) {
    return pestle_lex_error(s, "expected at most %d dims",
                            PESTLE_NEST_MAX_AXES + 2);
  }
  pestle_pack_axis_t* a = &t->pack[t->pack_count++];
  PESTLE_TRY(pestle_lex_int(s, -INT64_MAX, INT64_MAX, &a->coef));
  PESTLE_TRY(pestle_lex_expect(s, ':'));
  PESTLE_TRY(pestle_lex_int(s, 1, PESTLE_NEST_LARGEST, &a->extent));
  if (__builtin_mul_overflow(t->packed_elements, a->extent,
                             &t->packed_elements)) {
    return pestle_lex_error(s, "expected fewer than 2^63 elements");
  }
  if (!pestle_lex_accept_word(s, "of")) return NULL;
  PESTLE_TRY(pestle_lex_int(s, 1, PESTLE_NEST_LARGEST, &a->limit));
  PESTLE_TRY(pestle_lex_expect_word(s, "by"));
  PESTLE_TRY(pestle_lex_int(s, 1, PESTLE_NEST_LARGEST, &a->scale));
  a->reduction = pestle_lex_accept_word(s, "k");
  return NULL;
}

static pestle_status_t parse_pack(pestle_nest_parser_t* p,
                                  pestle_nest_tensor_t* t) {
  t->pack = PESTLE_ARENA_ARRAY(p->nest->arena, pestle_pack_axis_t,
                               PESTLE_NEST_MAX_AXES + 2);
  if (!t->pack) return PESTLE_OOM();
  memset(t->pack, 0, (PESTLE_NEST_MAX_AXES + 2) * sizeof(*t->pack));
  t->packed_elements = 1;
  PESTLE_TRY(pestle_lex_int(&p->s, -INT64_MAX, INT64_MAX, &t->pack_offset));
  PESTLE_TRY(pestle_lex_expect(&p->s, '['));
  do {
    PESTLE_TRY(parse_pack_axis(p, t));
  } while (pestle_lex_accept(&p->s, ','));
  PESTLE_TRY(pestle_lex_expect(&p->s, ']'));
  if (pestle_lex_accept_word(&p->s, "by")) {
    t->packer = pestle_lex_template(&p->s);
    if (!t->packer || !t->packer->pack) {
      return pestle_lex_error(&p->s, "expected a template that packs");
    }
  }
  if (!pestle_lex_accept_word(&p->s, "packed")) return NULL;
  PESTLE_TRY(pestle_lex_int(&p->s, 2, 4, &t->packed_width));
  t->packed_elements /= t->packed_width;
  return NULL;
}

static pestle_status_t parse_argument(pestle_nest_parser_t* p,
                                      pestle_nest_tensor_t* t) {
  int64_t value;
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "slot"));
  PESTLE_TRY(pestle_lex_int(&p->s, 0, INT32_MAX, &value));
  t->slot = (uint32_t)value;
  t->constant = pestle_lex_accept_word(&p->s, "constant");
  if (pestle_lex_accept_word(&p->s, "over")) {
    PESTLE_TRY(pestle_lex_int(&p->s, 0, INT32_MAX, &value));
    t->alias = (int32_t)value;
  }
  t->streamed = pestle_lex_accept_word(&p->s, "streamed");
  return pestle_lex_accept_word(&p->s, "pack") ? parse_pack(p, t) : NULL;
}

static pestle_status_t parse_tensor(pestle_nest_parser_t* p,
                                    pestle_tensor_kind_t kind) {
  const char* name;
  pestle_type_t type;
  PESTLE_TRY(pestle_lex_name(&p->s, "a tensor", &name));
  if (pestle_nest_find_tensor(p->nest, name) >= 0) {
    return pestle_lex_error(&p->s,
                            "expected a new name; there is a tensor "
                            "'%s' already",
                            name);
  }
  PESTLE_TRY(pestle_lex_expect(&p->s, ':'));
  PESTLE_TRY(parse_type(p, &type));
  uint32_t id = pestle_nest_add_tensor(p->nest, name, kind, 0, &type);
  PESTLE_TRY(pestle_nest_status(p->nest));
  pestle_nest_tensor_t* t = &p->nest->tensors.data[id];
  t->name = name;
  if (kind != PESTLE_TENSOR_STAGE) return parse_argument(p, t);
  if (pestle_lex_accept_word(&p->s, "private")) {
    t->scope = PESTLE_SCOPE_PRIVATE;
  } else if (pestle_lex_accept_word(&p->s, "shared")) {
    t->scope = PESTLE_SCOPE_SHARED;
  } else if (pestle_lex_accept_word(&p->s, "lanes")) {
    t->scope = PESTLE_SCOPE_LANES;
    PESTLE_TRY(pestle_lex_int(&p->s, 1, PESTLE_NEST_LARGEST, &t->lane_stride));
  }
  return NULL;
}

// --- Axes ---

static pestle_status_t add_axis(pestle_nest_parser_t* p, bool reduce,
                                int64_t extent, uint32_t* out_axis) {
  const char* name;
  PESTLE_TRY(pestle_lex_name(&p->s, "an axis", &name));
  if (pestle_nest_find_axis(p->nest, p->stage, name) >= 0) {
    return pestle_lex_error(
        &p->s, "expected a new name; the stage has an axis '%s'", name);
  }
  *out_axis =
      pestle_nest_add_axis(p->nest, name, (int32_t)p->stage, reduce, extent);
  PESTLE_TRY(pestle_nest_status(p->nest));
  p->nest->axes.data[*out_axis].name = name;
  return NULL;
}

static pestle_status_t find_axis(pestle_nest_parser_t* p, uint32_t* out_axis) {
  const char* name;
  PESTLE_TRY(pestle_lex_name(&p->s, "an axis", &name));
  int32_t id = pestle_nest_find_axis(p->nest, p->stage, name);
  *out_axis = (uint32_t)id;
  if (id >= 0) return NULL;
  return pestle_lex_error(&p->s, "expected an axis of the stage, not '%s'",
                          name);
}

// " end 4 of n" behind an axis.
static pestle_status_t parse_end(pestle_nest_parser_t* p, uint32_t axis) {
  if (!pestle_lex_accept_word(&p->s, "end")) return NULL;
  const char* name;
  int64_t scale;
  PESTLE_TRY(pestle_lex_int(&p->s, 1, INT32_MAX, &scale));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "of"));
  PESTLE_TRY(pestle_lex_name(&p->s, "an input", &name));
  int32_t tensor = pestle_nest_find_tensor(p->nest, name);
  if (tensor < 0) {
    return pestle_lex_error(&p->s, "expected an input, not '%s'", name);
  }
  p->nest->axes.data[axis].end_scale = scale;
  p->nest->axes.data[axis].end_tensor = (uint32_t)tensor;
  return NULL;
}

// " peel" or " block 64 by a" behind an axis.
static pestle_status_t parse_block(pestle_nest_parser_t* p, uint32_t axis) {
  p->nest->axes.data[axis].peel_last = pestle_lex_accept_word(&p->s, "peel");
  if (!pestle_lex_accept_word(&p->s, "block")) return NULL;
  uint32_t by;
  int64_t block;
  PESTLE_TRY(pestle_lex_int(&p->s, 1, PESTLE_NEST_LARGEST, &block));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "by"));
  PESTLE_TRY(find_axis(p, &by));
  p->nest->axes.data[axis].block = block;
  p->nest->axes.data[axis].block_axis = (int32_t)by;
  return NULL;
}

// "[a:13, b:71]"
static pestle_status_t parse_roots(pestle_nest_parser_t* p,
                                   pestle_nest_stage_t* s, bool reduce) {
  PESTLE_TRY(pestle_lex_expect(&p->s, '['));
  if (pestle_lex_accept(&p->s, ']')) return NULL;
  do {
    uint32_t axis;
    if (s->root_count == PESTLE_NEST_MAX_AXES) {
      return pestle_lex_error(&p->s, "expected at most %d axes",
                              PESTLE_NEST_MAX_AXES);
    }
    PESTLE_TRY(add_axis(p, reduce, 0, &axis));
    pestle_nest_axis_t* a = &p->nest->axes.data[axis];
    PESTLE_TRY(pestle_lex_expect(&p->s, ':'));
    PESTLE_TRY(pestle_lex_int(&p->s, 0, PESTLE_NEST_LARGEST, &a->extent));
    a->full_extent = a->extent;
    PESTLE_TRY(parse_block(p, axis));
    PESTLE_TRY(parse_end(p, axis));
    s->roots[s->root_count++] = axis;
    if (!reduce) s->map_count = s->root_count;
  } while (pestle_lex_accept(&p->s, ','));
  return pestle_lex_expect(&p->s, ']');
}

// "b 16 -> bo, bi"
static pestle_status_t parse_split(pestle_nest_parser_t* p) {
  uint32_t axis, outer, inner;
  int64_t factor;
  PESTLE_TRY(find_axis(p, &axis));
  if (p->nest->axes.data[axis].outer >= 0 ||
      ++p->splits > PESTLE_NEST_MAX_AXES) {
    return pestle_lex_error(&p->s,
                            "expected an axis that is not split, and "
                            "at most %d splits",
                            PESTLE_NEST_MAX_AXES);
  }
  PESTLE_TRY(pestle_lex_int(&p->s, 1, PESTLE_NEST_LARGEST, &factor));
  PESTLE_TRY(pestle_lex_expect(&p->s, '-'));
  PESTLE_TRY(pestle_lex_expect(&p->s, '>'));
  bool reduce = p->nest->axes.data[axis].reduce;
  int64_t extent = pestle_nest_axis_span(&p->nest->axes.data[axis]);
  PESTLE_TRY(
      add_axis(p, reduce, extent / factor + (extent % factor != 0), &outer));
  PESTLE_TRY(pestle_lex_expect(&p->s, ','));
  PESTLE_TRY(add_axis(p, reduce, factor, &inner));
  pestle_nest_axis_t* axes = p->nest->axes.data;
  axes[axis].outer = (int32_t)outer;
  axes[axis].inner = (int32_t)inner;
  axes[axis].factor = factor;
  axes[outer].parent = axes[inner].parent = (int32_t)axis;
  return NULL;
}

// "a:unroll, k, ki:parts:vector"
static pestle_status_t parse_loops(pestle_nest_parser_t* p,
                                   pestle_nest_stage_t* s) {
  s->order_count = 0;
  do {
    uint32_t axis;
    PESTLE_TRY(find_axis(p, &axis));
    if (s->order_count == PESTLE_NEST_MAX_AXES) {
      return pestle_lex_error(&p->s, "expected at most %d loops",
                              PESTLE_NEST_MAX_AXES);
    }
    s->order[s->order_count++] = axis;
    pestle_nest_axis_t* a = &p->nest->axes.data[axis];
    while (pestle_lex_accept(&p->s, ':')) {
      if (pestle_lex_accept_word(&p->s, "parts")) {
        a->rfactored = true;
      } else if (pestle_lex_accept_word(&p->s, "unroll")) {
        a->mark = PESTLE_MARK_UNROLL;
      } else if (pestle_lex_accept_word(&p->s, "vector")) {
        a->mark = PESTLE_MARK_VECTOR;
      } else if (pestle_lex_accept_word(&p->s, "group")) {
        a->mark = PESTLE_MARK_GROUP;
      } else if (pestle_lex_accept_word(&p->s, "lanex")) {
        a->mark = PESTLE_MARK_LANE_X;
      } else if (pestle_lex_accept_word(&p->s, "laney")) {
        a->mark = PESTLE_MARK_LANE_Y;
      } else {
        return pestle_lex_error(&p->s,
                                "expected parts, unroll, vector, group, "
                                "lanex or laney");
      }
    }
  } while (pestle_lex_accept(&p->s, ','));
  return NULL;
}

// --- Statements ---

// "c[71*a + b] = value init start combine step", after the name.
static pestle_status_t parse_write(pestle_nest_parser_t* p,
                                   const pestle_nest_stage_t* s,
                                   const char* name) {
  int32_t tensor = pestle_nest_find_tensor(p->nest, name);
  if (tensor < 0 || p->nest->tensors.data[tensor].kind == PESTLE_TENSOR_INPUT ||
      p->nest->tensors.data[tensor].stage >= 0) {
    return pestle_lex_error(&p->s,
                            "expected a local or output that nothing "
                            "writes yet, not '%s'",
                            name);
  }
  p->nest->tensors.data[tensor].stage = (int32_t)p->stage;
  pestle_nest_write_t w = {.tensor = (uint32_t)tensor};
  if (pestle_lex_accept(&p->s, '[')) {
    const pestle_affine_t** at =
        PESTLE_ARENA_ARRAY(p->nest->arena, const pestle_affine_t*, 1);
    if (!at) return PESTLE_OOM();
    PESTLE_TRY(pestle_nest_parse_affine(p, at));
    PESTLE_TRY(pestle_lex_expect(&p->s, ']'));
    w.index = at;
  }
  PESTLE_TRY(pestle_lex_expect(&p->s, '='));
  PESTLE_TRY(pestle_nest_parse_expr(p, &w.value));
  if (s->is_reduction) {
    PESTLE_TRY(pestle_lex_expect_word(&p->s, "init"));
    PESTLE_TRY(pestle_nest_parse_expr(p, &w.init));
  }
  if (s->is_reduction && s->reduce == PESTLE_OP_COUNT) {
    PESTLE_TRY(pestle_lex_expect_word(&p->s, "combine"));
    PESTLE_TRY(pestle_nest_parse_expr(p, &w.combine));
  }
  return pestle_vec_push(&p->writes, w) ? NULL : PESTLE_OOM();
}

static pestle_status_t parse_at(pestle_nest_parser_t* p,
                                pestle_nest_stage_t* s) {
  pestle_nest_at_t at = {.stage = p->stage};
  PESTLE_TRY(pestle_lex_name(&p->s, "a stage", &at.consumer));
  at.token = p->s.token;
  if (pestle_lex_accept(&p->s, '.')) {
    PESTLE_TRY(pestle_lex_name(&p->s, "a loop", &at.axis));
    s->carried = pestle_lex_accept_word(&p->s, "carried");
  }
  return pestle_vec_push(&p->places, at) ? NULL : PESTLE_OOM();
}

static pestle_status_t parse_argument_name(pestle_nest_parser_t* p,
                                           uint32_t* out_tensor) {
  const char* name;
  PESTLE_TRY(pestle_lex_name(&p->s, "an argument", &name));
  int32_t tensor = pestle_nest_find_tensor(p->nest, name);
  *out_tensor = (uint32_t)tensor;
  if (tensor >= 0) return NULL;
  return pestle_lex_error(&p->s, "expected an argument, not '%s'", name);
}

// "prefetch x at a like y by 64 share 8", after the first word.
static pestle_status_t parse_prefetch(pestle_nest_parser_t* p) {
  pestle_prefetch_t f = {0};
  PESTLE_TRY(parse_argument_name(p, &f.tensor));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "at"));
  PESTLE_TRY(find_axis(p, &f.loop));
  f.like = f.tensor;
  if (pestle_lex_accept_word(&p->s, "like")) {
    PESTLE_TRY(parse_argument_name(p, &f.like));
  }
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "by"));
  PESTLE_TRY(pestle_lex_int(&p->s, INT64_MIN, INT64_MAX, &f.by));
  if (pestle_lex_accept_word(&p->s, "share")) {
    PESTLE_TRY(pestle_lex_int(&p->s, 1, INT64_MAX, &f.share));
  }
  return pestle_vec_push(&p->nest->prefetches, f) ? NULL : PESTLE_OOM();
}

static pestle_status_t parse_statement(pestle_nest_parser_t* p,
                                       pestle_nest_stage_t* s) {
  if (pestle_lex_peek(&p->s) == '%') return pestle_nest_parse_binding(p);
  const char* word;
  PESTLE_TRY(pestle_lex_name(&p->s,
                             "a tensor that is written, split, loops, "
                             "at or prefetch",
                             &word));
  char next = pestle_lex_peek(&p->s);
  if (next == '[' || next == '=') return parse_write(p, s, word);
  if (!strcmp(word, "split")) return parse_split(p);
  if (!strcmp(word, "loops")) return parse_loops(p, s);
  if (!strcmp(word, "at")) return parse_at(p, s);
  if (!strcmp(word, "prefetch")) return parse_prefetch(p);
  return pestle_lex_error(&p->s, "expected '=' or '[' after '%s'", word);
}

// --- Stages ---

static pestle_status_t parse_reduce(pestle_nest_parser_t* p,
                                    pestle_nest_stage_t* s) {
  const char* word;
  PESTLE_TRY(pestle_lex_name(&p->s, "a reduction", &word));
  s->is_reduction = true;
  if (strcmp(word, "reduce")) {
    if (!pestle_nest_parse_op(word, &s->reduce)) {
      return pestle_lex_error(&p->s, "expected a scalar op or reduce, not '%s'",
                              word);
    }
  }
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "over"));
  PESTLE_TRY(parse_roots(p, s, true));
  PESTLE_TRY(pestle_lex_expect(&p->s, ':'));
  if (pestle_nest_parse_dtype(pestle_lex_word(&p->s), &s->acc_dtype)) {
    return NULL;
  }
  return pestle_lex_error(&p->s, "expected a type");
}

static pestle_status_t finish_stage(pestle_nest_parser_t* p,
                                    pestle_nest_stage_t* s) {
  pestle_arena_t* arena = p->nest->arena;
  size_t n = p->writes.size;
  if (!n) return pestle_lex_error(&p->s, "expected a tensor that is written");
  s->value_count = (uint32_t)n;
  s->values = PESTLE_ARENA_ARRAY(arena, const pestle_expr_t*, n);
  s->tensors = PESTLE_ARENA_ARRAY(arena, uint32_t, n);
  s->write_index = PESTLE_ARENA_ARRAY(arena, const pestle_affine_t* const*, n);
  const pestle_expr_t** inits =
      PESTLE_ARENA_ARRAY(arena, const pestle_expr_t*, n);
  const pestle_expr_t** combine =
      PESTLE_ARENA_ARRAY(arena, const pestle_expr_t*, n);
  if (!s->values || !s->tensors || !s->write_index || !inits || !combine) {
    return PESTLE_OOM();
  }
  for (size_t i = 0; i < n; ++i) {
    const pestle_nest_write_t* w = &p->writes.data[i];
    s->values[i] = w->value;
    s->tensors[i] = w->tensor;
    s->write_index[i] = w->index;
    inits[i] = w->init;
    combine[i] = w->combine;
  }
  if (s->is_reduction) s->inits = inits;
  if (s->is_reduction && s->reduce == PESTLE_OP_COUNT) s->combine = combine;
  p->nest->stages.data[p->stage] = *s;
  return NULL;
}

static pestle_status_t parse_stage(pestle_nest_parser_t* p) {
  pestle_nest_stage_t s = {
      .reduce = PESTLE_OP_COUNT, .at_stage = -1, .at_axis = -1};
  PESTLE_TRY(pestle_lex_name(&p->s, "a stage", &s.name));
  if (pestle_nest_find_stage(p->nest, s.name) >= 0) {
    return pestle_lex_error(
        &p->s, "expected a new name; there is a stage '%s' already", s.name);
  }
  p->stage = (uint32_t)p->nest->stages.size;
  p->splits = 0;
  pestle_vec_clear(&p->labels);
  pestle_vec_clear(&p->writes);
  if (!pestle_vec_push(&p->nest->stages, s)) return PESTLE_OOM();
  PESTLE_TRY(parse_roots(p, &s, false));
  s.keep = pestle_lex_accept_word(&p->s, "keep");
  s.transposed = pestle_lex_accept_word(&p->s, "transposed");
  if (!s.keep && pestle_lex_peek(&p->s) != '{') {
    PESTLE_TRY(parse_reduce(p, &s));
    if (pestle_lex_accept_word(&p->s, "f8")) s.factors = PESTLE_FACTORS_F8;
    if (pestle_lex_accept_word(&p->s, "tf32")) s.factors = PESTLE_FACTORS_TF32;
    s.keep = pestle_lex_accept_word(&p->s, "keep");
    s.border = pestle_lex_accept_word(&p->s, "border");
    s.skips = s.border && pestle_lex_accept_word(&p->s, "reassoc");
  }
  PESTLE_TRY(pestle_lex_expect(&p->s, '{'));
  while (!pestle_lex_accept(&p->s, '}')) {
    PESTLE_TRY(parse_statement(p, &s));
  }
  return finish_stage(p, &s);
}

// Places name later stages, so they are looked up at the end.
static pestle_status_t resolve_places(pestle_nest_parser_t* p) {
  for (size_t i = 0; i < p->places.size; ++i) {
    const pestle_nest_at_t* at = &p->places.data[i];
    int32_t consumer = pestle_nest_find_stage(p->nest, at->consumer);
    p->s.token = at->token;
    if (consumer < 0) {
      return pestle_lex_error(&p->s,
                              "expected a stage of this nest, not "
                              "'%s'",
                              at->consumer);
    }
    pestle_nest_stage_t* s = pestle_nest_stage(p->nest, at->stage);
    s->at_stage = consumer;
    s->at_axis = -1;
    if (!at->axis) continue;
    s->at_axis = pestle_nest_find_axis(p->nest, (uint32_t)consumer, at->axis);
    if (s->at_axis < 0) {
      return pestle_lex_error(&p->s, "expected a loop of '%s', not '%s'",
                              at->consumer, at->axis);
    }
  }
  return NULL;
}

// The template that the schedule names is not to be seen in the stages.
static pestle_status_t read_template(pestle_nest_parser_t* p) {
  for (size_t i = 0; i < p->nest->primitives.size; ++i) {
    const pestle_primitive_t* row = &p->nest->primitives.data[i];
    if (row->prim != PESTLE_PRIM_TEMPLATE) continue;
    pestle_status_t status =
        pestle_nest_read_template(p->nest, row, &p->nest->template);
    if (!status) continue;
    pestle_status_t error =
        pestle_lex_error(&p->s, "%s", pestle_status_message(status));
    pestle_status_release(status);
    return error;
  }
  return NULL;
}

// --- The nest ---

static pestle_status_t parse_nest(pestle_nest_parser_t* p) {
  pestle_lex_t* s = &p->s;
  PESTLE_TRY(pestle_lex_expect_word(s, "nest"));
  PESTLE_TRY(pestle_lex_quoted(s, &p->nest->name));
  PESTLE_TRY(pestle_lex_expect_word(s, "from"));
  PESTLE_TRY(pestle_lex_quoted(s, &p->nest->ops));
  PESTLE_TRY(pestle_lex_expect(s, '{'));
  for (;;) {
    if (pestle_lex_accept_word(s, "input")) {
      PESTLE_TRY(parse_tensor(p, PESTLE_TENSOR_INPUT));
    } else if (pestle_lex_accept_word(s, "output")) {
      PESTLE_TRY(parse_tensor(p, PESTLE_TENSOR_OUTPUT));
    } else if (pestle_lex_accept_word(s, "local")) {
      PESTLE_TRY(parse_tensor(p, PESTLE_TENSOR_STAGE));
    } else if (pestle_lex_accept_word(s, "stage")) {
      PESTLE_TRY(parse_stage(p));
    } else {
      break;
    }
  }
  if (!p->nest->stages.size) {
    return pestle_lex_error(s, "expected input, output, local or stage");
  }
  PESTLE_TRY(pestle_lex_expect_word(s, "schedule"));
  PESTLE_TRY(pestle_lex_expect(s, '{'));
  PESTLE_TRY(pestle_primitives_lex(s, &p->nest->primitives));
  PESTLE_TRY(pestle_lex_expect(s, '}'));
  PESTLE_TRY(pestle_lex_expect(s, '}'));
  pestle_lex_skip(s);
  if (s->at < s->size) return pestle_lex_error(s, "expected the end");
  PESTLE_TRY(read_template(p));
  return resolve_places(p);
}

pestle_status_t pestle_nest_parse(const char* text, size_t size,
                                  const char* file, pestle_nest_t* out_nest) {
  pestle_nest_parser_t p = {.s = {.file = file,
                                  .text = text,
                                  .size = size,
                                  .allocator = out_nest->allocator,
                                  .arena = out_nest->arena},
                            .nest = out_nest};
  pestle_vec_init(&p.labels, out_nest->allocator);
  pestle_vec_init(&p.writes, out_nest->allocator);
  pestle_vec_init(&p.places, out_nest->allocator);
  pestle_status_t status = parse_nest(&p);
  if (!status) status = pestle_nest_status(out_nest);
  pestle_vec_deinit(&p.labels);
  pestle_vec_deinit(&p.writes);
  pestle_vec_deinit(&p.places);
  return status;
}
