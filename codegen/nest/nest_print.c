// SPDX-License-Identifier: Apache-2.0
// The nest as text, all of it, in the form that nest_parse.c reads:
//
//   nest "gemm_0" from "the ops" {
//     input a : tensor<13x29xf32> slot 0
//     input b : tensor<29x71xf32> slot 1 constant
//     output y : tensor<13x71xf32> slot 0
//     local c : tensor<13x71xf32> private
//     stage c[a:13, b:71] add over [k:29] : f32 {
//       c = multiply(a[29*a + k], b[b + 71*k]) init f32 0.0
//       split b 16 -> bo, bi
//       loops a:unroll, k, bo:unroll, bi:vector
//       at y.bo
//     }
//     stage y2[a:13, b:71] {
//       %0 = c[a, b]
//       y[71*a + b] = maximum(%0, f32 0.0)
//     }
//     schedule {
//       split y2.b 16
//     }
//   }
//
// Stages that were inlined are not part of it any more. The data of constants
// is not part of the text. An expression that is used more than once in a
// stage, or is deep, is bound to a %N first. Terms of an index form stand in an
// order that does not depend on ids, so that text that was read prints the
// same.
#include <math.h>
#include <string.h>

#include "codegen/nest/nest.h"

enum { DEEPEST = 6 };  // nesting on one line

typedef struct note_t {
  uint32_t uses;
  uint32_t label;  // + 1; 0: printed where it is used
  uint32_t depth;
  bool seen;
} note_t;

typedef struct printer_t {
  const pestle_nest_t* nest;
  pestle_strbuf_t* out;
  note_t* notes;  // by expression
  uint32_t labels;
} printer_t;

static void print_expr(printer_t* p, const pestle_expr_t* e);
static void print_affine(printer_t* p, const pestle_affine_t* a);

static const char* dtype_name(unsigned dtype) {
  return pestle_dtype_info((pestle_dtype_t)dtype)->name;
}

// --- Order of terms ---

static int compare_i64(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_lins(const printer_t* p, const pestle_affine_t* a,
                        const pestle_affine_t* b);

static int compare_atoms(const printer_t* p, const pestle_atom_t* a,
                         const pestle_atom_t* b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return compare_i64(a->kind, b->kind);
  int order = 0;
  switch ((pestle_atom_kind_t)a->kind) {
    case PESTLE_ATOM_AXIS:
      return strcmp(p->nest->axes.data[a->axis].name,
                    p->nest->axes.data[b->axis].name);
    case PESTLE_ATOM_DIV:
    case PESTLE_ATOM_MOD:
      order = compare_i64(a->divisor, b->divisor);
      return order ? order : compare_lins(p, a->affine, b->affine);
    case PESTLE_ATOM_VALUE:
      order = compare_i64(a->lo, b->lo);
      if (!order) order = compare_i64(a->hi, b->hi);
      if (!order) order = compare_i64(a->value->kind, b->value->kind);
      if (!order) order = compare_i64(a->value->i, b->value->i);
      return order ? order : compare_i64(a->id, b->id);
  }
  return 0;
}

static int compare_terms(const printer_t* p, const pestle_term_t* a,
                         const pestle_term_t* b) {
  bool values =
      a->atom->kind == PESTLE_ATOM_VALUE && b->atom->kind == PESTLE_ATOM_VALUE;
  if (values && a->coef != b->coef) return compare_i64(b->coef, a->coef);
  return compare_atoms(p, a->atom, b->atom);
}

// The terms of |a| in the order of the text, in |out| of a->count.
static void sort_terms(const printer_t* p, const pestle_affine_t* a,
                       const pestle_term_t** out) {
  for (uint32_t i = 0; i < a->count; ++i) {
    uint32_t at = i;
    for (; at && compare_terms(p, out[at - 1], &a->terms[i]) > 0; --at) {
      out[at] = out[at - 1];
    }
    out[at] = &a->terms[i];
  }
}

static const pestle_term_t** sorted_terms(const printer_t* p,
                                          const pestle_affine_t* a) {
  const pestle_term_t** terms =
      PESTLE_ARENA_ARRAY(p->nest->arena, const pestle_term_t*, a->count + 1);
  if (terms) {
    sort_terms(p, a, terms);
  } else {
    p->out->failed = true;
  }
  return terms;
}

static int compare_lins(const printer_t* p, const pestle_affine_t* a,
                        const pestle_affine_t* b) {
  int order = compare_i64(a->count, b->count);
  if (!order) order = compare_i64(a->constant, b->constant);
  if (order) return order;
  const pestle_term_t** s = sorted_terms(p, a);
  const pestle_term_t** t = sorted_terms(p, b);
  for (uint32_t i = 0; s && t && i < a->count && !order; ++i) {
    order = compare_i64(s[i]->coef, t[i]->coef);
    if (!order) order = compare_atoms(p, s[i]->atom, t[i]->atom);
  }
  return order;
}

// --- Which expressions are bound ---

static void visit_affine(printer_t* p, const pestle_affine_t* a,
                         uint32_t* depth,
                         void (*visit)(printer_t* p, const pestle_expr_t* e,
                                       uint32_t* depth));

// Calls |visit| for every expression that |e| holds, in the text's order.
static void visit_parts(printer_t* p, const pestle_expr_t* e, uint32_t* depth,
                        void (*visit)(printer_t* p, const pestle_expr_t* e,
                                      uint32_t* depth)) {
  for (int i = 0; i < 3 && e->args[i]; ++i)
    visit(p, e->args[i], depth);
  if (e->affine) visit_affine(p, e->affine, depth, visit);
  for (uint32_t i = 0; i < e->index_count; ++i) {
    visit_affine(p, e->index[i], depth, visit);
  }
  if (e->guard) visit(p, e->guard, depth);
}

static void visit_affine(printer_t* p, const pestle_affine_t* a,
                         uint32_t* depth,
                         void (*visit)(printer_t* p, const pestle_expr_t* e,
                                       uint32_t* depth)) {
  const pestle_term_t** terms = sorted_terms(p, a);
  for (uint32_t i = 0; terms && i < a->count; ++i) {
    if (terms[i]->atom->affine)
      visit_affine(p, terms[i]->atom->affine, depth, visit);
    if (terms[i]->atom->value) visit(p, terms[i]->atom->value, depth);
  }
}

static void count_uses(printer_t* p, const pestle_expr_t* e, uint32_t* depth) {
  note_t* n = &p->notes[e->id];
  (void)depth;
  if (n->uses++) return;
  n->seen = false;
  n->label = 0;
  visit_parts(p, e, NULL, count_uses);
}

// Binds, parts first, what is shared or deep below |e| and |e| itself.
static void bind(printer_t* p, const pestle_expr_t* e, uint32_t* depth) {
  note_t* n = &p->notes[e->id];
  if (!n->seen) {
    n->seen = true;
    n->depth = 0;
    visit_parts(p, e, &n->depth, bind);
    bool leaf = e->kind == PESTLE_EXPR_CONST || e->kind == PESTLE_EXPR_ACC ||
                e->kind == PESTLE_EXPR_VAL;
    if (!leaf && (n->uses > 1 || n->depth >= DEEPEST)) {
      pestle_strbuf_appendf(p->out, "    %%%u = ", p->labels);
      print_expr(p, e);
      pestle_strbuf_append_char(p->out, '\n');
      n->label = ++p->labels;
      n->depth = 0;
    }
  }
  uint32_t mine = n->label ? 0 : n->depth + 1;
  if (depth && mine > *depth) *depth = mine;
}

// Use counts of one stage's expressions are forgotten before the next.
static void forget(printer_t* p, const pestle_expr_t* e, uint32_t* depth) {
  (void)depth;
  if (!p->notes[e->id].uses) return;
  p->notes[e->id] = (note_t){0};
  visit_parts(p, e, NULL, forget);
}

// --- Forms and expressions ---

static void print_atom(printer_t* p, const pestle_atom_t* a) {
  switch ((pestle_atom_kind_t)a->kind) {
    case PESTLE_ATOM_AXIS:
      pestle_strbuf_append_c(p->out, p->nest->axes.data[a->axis].name);
      return;
    case PESTLE_ATOM_DIV:
    case PESTLE_ATOM_MOD:
      pestle_strbuf_append_char(p->out, '(');
      print_affine(p, a->affine);
      pestle_strbuf_append_c(p->out, a->kind == PESTLE_ATOM_DIV ? ")/" : ")%");
      pestle_strbuf_append_i64(p->out, a->divisor);
      return;
    case PESTLE_ATOM_VALUE:
      pestle_strbuf_append_char(p->out, '{');
      print_expr(p, a->value);
      pestle_strbuf_append_c(p->out, " in ");
      pestle_strbuf_append_i64(p->out, a->lo);
      pestle_strbuf_append_c(p->out, "..");
      pestle_strbuf_append_i64(p->out, a->hi);
      pestle_strbuf_append_char(p->out, '}');
      return;
  }
}

// The sign between two terms, then the magnitude's text.
static void print_sign(printer_t* p, bool first, bool negative) {
  if (first) {
    if (negative) pestle_strbuf_append_char(p->out, '-');
  } else {
    pestle_strbuf_append_c(p->out, negative ? " - " : " + ");
  }
}

static uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static void print_affine(printer_t* p, const pestle_affine_t* a) {
  const pestle_term_t** terms = sorted_terms(p, a);
  for (uint32_t i = 0; terms && i < a->count; ++i) {
    print_sign(p, i == 0, terms[i]->coef < 0);
    if (magnitude(terms[i]->coef) != 1) {
      pestle_strbuf_append_u64(p->out, magnitude(terms[i]->coef));
      pestle_strbuf_append_char(p->out, '*');
    }
    print_atom(p, terms[i]->atom);
  }
  if (!a->constant && a->count) return;
  print_sign(p, !a->count, a->constant < 0);
  pestle_strbuf_append_u64(p->out, magnitude(a->constant));
}

static void print_const(printer_t* p, const pestle_expr_t* e) {
  pestle_strbuf_appendf(p->out, "%s ", dtype_name(e->dtype));
  if (!pestle_dtype_is((pestle_dtype_t)e->dtype, PESTLE_KIND_FLOAT)) {
    pestle_strbuf_append_i64(p->out, e->i);
  } else if (isnan(e->f)) {
    uint64_t bits;
    memcpy(&bits, &e->f, sizeof(bits));
    pestle_strbuf_appendf(p->out, "0x%llx", (unsigned long long)bits);
  } else {
    pestle_strbuf_append_f64(p->out, e->f);
  }
}

static void print_read(printer_t* p, const pestle_expr_t* e) {
  pestle_strbuf_appendf(p->out, "%s[", p->nest->tensors.data[e->i].name);
  for (uint32_t i = 0; i < e->index_count; ++i) {
    if (i) pestle_strbuf_append_c(p->out, ", ");
    print_affine(p, e->index[i]);
  }
  pestle_strbuf_append_char(p->out, ']');
  if (e->packed) {
    pestle_strbuf_appendf(p->out, " packed %u by %lld of ", e->packed,
                          (long long)e->lo);
    print_affine(p, e->affine);
    pestle_strbuf_appendf(p->out, " below %lld", (long long)e->hi);
  }
  if (!e->guard) return;
  pestle_strbuf_append_c(p->out, " if ");
  print_expr(p, e->guard);
}

// "lt.i1" when the result's type is not the last operand's.
static void print_call(printer_t* p, const char* name, const pestle_expr_t* e,
                       bool typed) {
  pestle_strbuf_append_c(p->out, name);
  if (typed) pestle_strbuf_appendf(p->out, ".%s", dtype_name(e->dtype));
  pestle_strbuf_append_char(p->out, '(');
  for (int i = 0; i < 3 && e->args[i]; ++i) {
    if (i) pestle_strbuf_append_c(p->out, ", ");
    print_expr(p, e->args[i]);
  }
  pestle_strbuf_append_char(p->out, ')');
}

static void print_op(printer_t* p, const pestle_expr_t* e) {
  const pestle_expr_t* last = e->args[0];
  for (int i = 1; i < 3 && e->args[i]; ++i)
    last = e->args[i];
  print_call(p, pestle_op_info((pestle_op_t)e->op)->name, e,
             !last || last->dtype != e->dtype);
}

static void print_inside(printer_t* p, const pestle_expr_t* e) {
  pestle_strbuf_append_c(p->out, "inside(");
  print_affine(p, e->affine);
  pestle_strbuf_append_c(p->out, ", ");
  pestle_strbuf_append_i64(p->out, e->lo);
  pestle_strbuf_append_c(p->out, ", ");
  pestle_strbuf_append_i64(p->out, e->hi);
  pestle_strbuf_append_char(p->out, ')');
}

// By DOT4's immediate: "dot_us" is of bytes without a sign and bytes with one.
static const char* const dot_names[] = {"dot_uu", "dot_su", "dot_us", "dot_ss"};

static void print_expr(printer_t* p, const pestle_expr_t* e) {
  if (p->notes[e->id].label) {
    pestle_strbuf_appendf(p->out, "%%%u", p->notes[e->id].label - 1);
    return;
  }
  switch ((pestle_expr_kind_t)e->kind) {
    case PESTLE_EXPR_CONST:
      print_const(p, e);
      return;
    case PESTLE_EXPR_INDEX:
      pestle_strbuf_appendf(p->out, "index.%s(", dtype_name(e->dtype));
      print_affine(p, e->affine);
      pestle_strbuf_append_char(p->out, ')');
      return;
    case PESTLE_EXPR_READ:
      print_read(p, e);
      return;
    case PESTLE_EXPR_OP:
      print_op(p, e);
      return;
    case PESTLE_EXPR_CAST:
      print_call(p, "cast", e, true);
      return;
    case PESTLE_EXPR_BITCAST:
      print_call(p, "bitcast", e, true);
      return;
    case PESTLE_EXPR_INSIDE:
      print_inside(p, e);
      return;
    case PESTLE_EXPR_ACC:
    case PESTLE_EXPR_VAL:
      pestle_strbuf_appendf(p->out, "%s.%s(%lld)",
                            e->kind == PESTLE_EXPR_ACC ? "acc" : "val",
                            dtype_name(e->dtype), (long long)e->i);
      return;
    case PESTLE_EXPR_DOT:
      print_call(p, e->dtype == PESTLE_F32 ? "dot" : dot_names[e->i & 3], e,
                 true);
      return;
  }
}

// --- Tensors ---

static void print_pack(const pestle_nest_tensor_t* t, pestle_strbuf_t* out) {
  if (!t->pack) return;
  pestle_strbuf_appendf(out, " pack %lld [", (long long)t->pack_offset);
  for (uint32_t i = 0; i < t->pack_count; ++i) {
    const pestle_pack_axis_t* a = &t->pack[i];
    pestle_strbuf_appendf(out, "%s%lld:%lld", i ? ", " : "", (long long)a->coef,
                          (long long)a->extent);
    if (!a->limit) continue;
    pestle_strbuf_appendf(out, " of %lld by %lld", (long long)a->limit,
                          (long long)a->scale);
    if (a->reduction) pestle_strbuf_append_c(out, " k");
  }
  pestle_strbuf_append_char(out, ']');
  if (t->packer) pestle_strbuf_appendf(out, " by %s", t->packer->name);
  if (t->packed_width) {
    pestle_strbuf_appendf(out, " packed %lld", (long long)t->packed_width);
  }
}

static void print_tensor(printer_t* p, const pestle_nest_tensor_t* t) {
  static const char* const kinds[] = {"input", "output", "local"};
  static const char* const scopes[] = {"", " private", " shared", " lanes", ""};
  pestle_strbuf_appendf(p->out, "  %s %s : ", kinds[t->kind], t->name);
  pestle_type_print(&t->type, p->out);
  if (t->kind == PESTLE_TENSOR_STAGE) {
    pestle_strbuf_append_c(p->out, scopes[t->scope]);
    if (t->scope == PESTLE_SCOPE_LANES) {
      pestle_strbuf_appendf(p->out, " %lld", (long long)t->lane_stride);
    }
  } else {
    pestle_strbuf_appendf(p->out, " slot %u", t->slot);
  }
  if (t->constant) pestle_strbuf_append_c(p->out, " constant");
  if (t->alias >= 0) pestle_strbuf_appendf(p->out, " over %d", t->alias);
  if (t->streamed) pestle_strbuf_append_c(p->out, " streamed");
  print_pack(t, p->out);
  pestle_strbuf_append_char(p->out, '\n');
}

// A tensor is left out when its stage writes another instead, or is inlined.
static bool is_used(const pestle_nest_t* nest, uint32_t tensor) {
  const pestle_nest_tensor_t* t = &nest->tensors.data[tensor];
  if (t->kind == PESTLE_TENSOR_INPUT) return true;
  if (t->stage < 0 || (uint32_t)t->stage >= nest->stages.size) return false;
  const pestle_nest_stage_t* s = &nest->stages.data[t->stage];
  for (uint32_t v = 0; v < s->value_count && !s->inlined; ++v) {
    if (s->tensors[v] == tensor) return true;
  }
  return false;
}

// --- Stages ---

static void print_roots(printer_t* p, const pestle_nest_stage_t* s,
                        uint32_t from, uint32_t to) {
  pestle_strbuf_append_char(p->out, '[');
  for (uint32_t i = from; i < to; ++i) {
    const pestle_nest_axis_t* a = &p->nest->axes.data[s->roots[i]];
    pestle_strbuf_appendf(p->out, "%s%s:%lld", i > from ? ", " : "", a->name,
                          (long long)a->full_extent);
    if (a->peel_last) pestle_strbuf_append_c(p->out, " peel");
    if (a->block_axis >= 0) {
      pestle_strbuf_appendf(p->out, " block %lld by %s", (long long)a->block,
                            p->nest->axes.data[a->block_axis].name);
    }
    if (a->end_scale) {
      pestle_strbuf_appendf(p->out, " end %lld of %s", (long long)a->end_scale,
                            p->nest->tensors.data[a->end_tensor].name);
    }
  }
  pestle_strbuf_append_char(p->out, ']');
}

static void print_header(printer_t* p, const pestle_nest_stage_t* s) {
  pestle_strbuf_appendf(p->out, "  stage %s", s->name);
  print_roots(p, s, 0, s->map_count);
  if (s->is_reduction) {
    pestle_strbuf_appendf(
        p->out, " %s over ",
        s->combine ? "reduce" : pestle_op_info(s->reduce)->name);
    print_roots(p, s, s->map_count, s->root_count);
    pestle_strbuf_appendf(p->out, " : %s", dtype_name(s->acc_dtype));
    if (s->factors == PESTLE_FACTORS_F8) pestle_strbuf_append_c(p->out, " f8");
    if (s->factors == PESTLE_FACTORS_TF32)
      pestle_strbuf_append_c(p->out, " tf32");
  }
  if (s->keep) pestle_strbuf_append_c(p->out, " keep");
  if (s->border) pestle_strbuf_append_c(p->out, " border");
  if (s->skips) pestle_strbuf_append_c(p->out, " reassoc");
  if (s->transposed) pestle_strbuf_append_c(p->out, " transposed");
  pestle_strbuf_append_c(p->out, " {\n");
}

static void walk_body(printer_t* p, const pestle_nest_stage_t* s,
                      void (*visit)(printer_t* p, const pestle_expr_t* e,
                                    uint32_t* depth)) {
  for (uint32_t v = 0; v < s->value_count; ++v) {
    const pestle_affine_t* const* at = s->write_index[v];
    if (at) visit_affine(p, at[0], NULL, visit);
    visit(p, s->values[v], NULL);
    if (!s->is_reduction) continue;
    visit(p, s->inits[v], NULL);
    if (s->combine) visit(p, s->combine[v], NULL);
  }
}

static void print_body(printer_t* p, const pestle_nest_stage_t* s) {
  p->labels = 0;
  walk_body(p, s, count_uses);
  walk_body(p, s, bind);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_strbuf_appendf(p->out, "    %s",
                          p->nest->tensors.data[s->tensors[v]].name);
    if (s->write_index[v]) {
      pestle_strbuf_append_char(p->out, '[');
      print_affine(p, s->write_index[v][0]);
      pestle_strbuf_append_char(p->out, ']');
    }
    pestle_strbuf_append_c(p->out, " = ");
    print_expr(p, s->values[v]);
    if (s->is_reduction) {
      pestle_strbuf_append_c(p->out, " init ");
      print_expr(p, s->inits[v]);
    }
    if (s->combine) {
      pestle_strbuf_append_c(p->out, " combine ");
      print_expr(p, s->combine[v]);
    }
    pestle_strbuf_append_char(p->out, '\n');
  }
  walk_body(p, s, forget);
}

static void print_split(printer_t* p, uint32_t axis) {
  const pestle_nest_axis_t* a = &p->nest->axes.data[axis];
  if (a->outer < 0) return;
  pestle_strbuf_appendf(p->out, "    split %s %lld -> %s, %s\n", a->name,
                        (long long)a->factor, p->nest->axes.data[a->outer].name,
                        p->nest->axes.data[a->inner].name);
  print_split(p, (uint32_t)a->outer);
  print_split(p, (uint32_t)a->inner);
}

static void print_loops(printer_t* p, const pestle_nest_stage_t* s) {
  static const char* const marks[] = {"",       ":unroll", ":vector",
                                      ":group", ":lanex",  ":laney"};
  for (uint32_t i = 0; i < s->root_count; ++i)
    print_split(p, s->roots[i]);
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &p->nest->axes.data[s->order[i]];
    pestle_strbuf_appendf(p->out, "%s%s%s%s", i ? ", " : "    loops ", a->name,
                          a->rfactored ? ":parts" : "", marks[a->mark]);
  }
  if (s->order_count) pestle_strbuf_append_char(p->out, '\n');
  if (s->at_stage < 0) return;
  pestle_strbuf_appendf(
      p->out, "    at %s%s%s%s\n", p->nest->stages.data[s->at_stage].name,
      s->at_axis < 0 ? "" : ".",
      s->at_axis < 0 ? "" : p->nest->axes.data[s->at_axis].name,
      s->carried ? " carried" : "");
}

static void print_prefetches(printer_t* p, uint32_t stage) {
  const pestle_nest_tensor_t* tensors = p->nest->tensors.data;
  for (size_t i = 0; i < p->nest->prefetches.size; ++i) {
    const pestle_prefetch_t* f = &p->nest->prefetches.data[i];
    const pestle_nest_axis_t* a = &p->nest->axes.data[f->loop];
    if (a->stage != (int32_t)stage) continue;
    pestle_strbuf_appendf(p->out, "    prefetch %s at %s",
                          tensors[f->tensor].name, a->name);
    if (f->like != f->tensor) {
      pestle_strbuf_appendf(p->out, " like %s", tensors[f->like].name);
    }
    pestle_strbuf_appendf(p->out, " by %lld", (long long)f->by);
    if (f->share) {
      pestle_strbuf_appendf(p->out, " share %lld", (long long)f->share);
    }
    pestle_strbuf_append_char(p->out, '\n');
  }
}

static void print_stage(printer_t* p, uint32_t stage) {
  const pestle_nest_stage_t* s = &p->nest->stages.data[stage];
  print_header(p, s);
  print_body(p, s);
  print_loops(p, s);
  print_prefetches(p, stage);
  pestle_strbuf_append_c(p->out, "  }\n");
}

// --- The nest ---

// Quotes and line ends would end the text early; nobody needs them.
static void print_quoted(const char* text, pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '"');
  for (const char* c = text ? text : ""; *c; ++c) {
    bool plain = *c != '"' && *c != '\n' && *c != '\r';
    pestle_strbuf_append_char(out, plain ? *c : '\'');
  }
  pestle_strbuf_append_char(out, '"');
}

pestle_status_t pestle_nest_print(const pestle_nest_t* nest,
                                  pestle_strbuf_t* out) {
  printer_t p = {.nest = nest, .out = out};
  pestle_arena_mark_t mark = pestle_arena_mark(nest->arena);
  p.notes = pestle_arena_alloc_zero(
      nest->arena, (nest->expr_count + 1) * sizeof(note_t), _Alignof(note_t));
  if (!p.notes) return PESTLE_ERROR(OUT_OF_MEMORY, "printing a nest");
  pestle_strbuf_append_c(out, "nest ");
  print_quoted(nest->name, out);
  pestle_strbuf_append_c(out, " from ");
  print_quoted(nest->ops, out);
  pestle_strbuf_append_c(out, " {\n");
  for (uint32_t i = 0; i < nest->tensors.size; ++i) {
    if (is_used(nest, i)) print_tensor(&p, &nest->tensors.data[i]);
  }
  for (uint32_t i = 0; i < nest->stages.size; ++i) {
    if (!nest->stages.data[i].inlined) print_stage(&p, i);
  }
  pestle_strbuf_append_c(out, "  schedule {\n");
  for (size_t i = 0; i < nest->primitives.size; ++i) {
    pestle_strbuf_append_c(out, "    ");
    pestle_primitive_print(&nest->primitives.data[i], out);
    pestle_strbuf_append_char(out, '\n');
  }
  pestle_strbuf_append_c(out, "  }\n}\n");
  pestle_arena_rewind(nest->arena, mark);
  return pestle_strbuf_status(out);
}
