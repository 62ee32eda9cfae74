// SPDX-License-Identifier: Apache-2.0
// The nest for readers: stages with bodies, then the schedule rows.
#include <string.h>

#include "codegen/schedule.h"

enum { MAX_DEPTH = 12 };  // deeper expressions are cut: this text is for people

static void print_expr(const pestle_nest_t* nest, const pestle_expr_t* e,
                       int depth, pestle_strbuf_t* out);

static void print_atom(const pestle_nest_t* nest, const pestle_atom_t* a,
                       int depth, pestle_strbuf_t* out);

static void print_lin(const pestle_nest_t* nest, const pestle_lin_t* a,
                      int depth, pestle_strbuf_t* out) {
  for (uint32_t i = 0; i < a->count; ++i) {
    if (i) pestle_strbuf_append_c(out, " + ");
    if (a->terms[i].coef != 1) {
      pestle_strbuf_appendf(out, "%lld*", (long long)a->terms[i].coef);
    }
    print_atom(nest, a->terms[i].atom, depth, out);
  }
  if (a->constant || !a->count) {
    pestle_strbuf_appendf(out, "%s%lld", a->count ? " + " : "",
                          (long long)a->constant);
  }
}

static void print_atom(const pestle_nest_t* nest, const pestle_atom_t* a,
                       int depth, pestle_strbuf_t* out) {
  switch ((pestle_atom_kind_t)a->kind) {
    case PESTLE_ATOM_AXIS:
      pestle_strbuf_append_c(out, nest->axes.data[a->axis].name);
      return;
    case PESTLE_ATOM_DIV:
    case PESTLE_ATOM_MOD:
      pestle_strbuf_append_char(out, '(');
      print_lin(nest, a->lin, depth + 1, out);
      pestle_strbuf_appendf(out, a->kind == PESTLE_ATOM_DIV ? ")/%lld"
                                                            : ")%%%lld",
                            (long long)a->divisor);
      return;
    case PESTLE_ATOM_VALUE:
      print_expr(nest, a->value, depth + 1, out);
      return;
  }
}

static void print_read(const pestle_nest_t* nest, const pestle_expr_t* e,
                       int depth, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, "%s[", nest->tensors.data[e->i].name);
  for (uint32_t i = 0; i < e->index_count; ++i) {
    if (i) pestle_strbuf_append_c(out, ", ");
    print_lin(nest, e->index[i], depth + 1, out);
  }
  pestle_strbuf_append_char(out, ']');
  if (e->guard) pestle_strbuf_append_char(out, '?');
}

static void print_args(const pestle_nest_t* nest, const char* name,
                       const pestle_expr_t* e, int depth,
                       pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, "%s(", name);
  for (int i = 0; i < 3 && e->args[i]; ++i) {
    if (i) pestle_strbuf_append_c(out, ", ");
    print_expr(nest, e->args[i], depth + 1, out);
  }
  pestle_strbuf_append_char(out, ')');
}

static void print_expr(const pestle_nest_t* nest, const pestle_expr_t* e,
                       int depth, pestle_strbuf_t* out) {
  if (depth > MAX_DEPTH) {
    pestle_strbuf_append_c(out, "...");
    return;
  }
  const char* dtype = pestle_dtype_info((pestle_dtype_t)e->dtype)->name;
  switch ((pestle_expr_kind_t)e->kind) {
    case PESTLE_EXPR_CONST:
      if (pestle_dtype_is((pestle_dtype_t)e->dtype, PESTLE_KIND_FLOAT)) {
        pestle_strbuf_append_f64(out, e->f);
      } else {
        pestle_strbuf_append_i64(out, e->i);
      }
      return;
    case PESTLE_EXPR_INDEX:
      pestle_strbuf_appendf(out, "%s(", dtype);
      print_lin(nest, e->lin, depth + 1, out);
      pestle_strbuf_append_char(out, ')');
      return;
    case PESTLE_EXPR_READ:
      print_read(nest, e, depth, out);
      return;
    case PESTLE_EXPR_OP:
      print_args(nest, pestle_op_info((pestle_op_t)e->op)->name, e, depth,
                 out);
      return;
    case PESTLE_EXPR_CAST:
      print_args(nest, dtype, e, depth, out);
      return;
    case PESTLE_EXPR_BITCAST:
      print_args(nest, "bitcast", e, depth, out);
      return;
    case PESTLE_EXPR_INSIDE:
      pestle_strbuf_appendf(out, "(%lld <= ", (long long)e->lo);
      print_lin(nest, e->lin, depth + 1, out);
      pestle_strbuf_appendf(out, " < %lld)", (long long)e->hi);
      return;
    case PESTLE_EXPR_ACC:
      pestle_strbuf_appendf(out, "acc%lld", (long long)e->i);
      return;
    case PESTLE_EXPR_VAL:
      pestle_strbuf_appendf(out, "val%lld", (long long)e->i);
      return;
  }
}

static void print_stage(const pestle_nest_t* nest,
                        const pestle_nest_stage_t* s, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, "stage %s[", s->name);
  for (uint32_t i = 0; i < s->map_count; ++i) {
    const pestle_nest_axis_t* a = &nest->axes.data[s->roots[i]];
    pestle_strbuf_appendf(out, "%s%s:%lld", i ? ", " : "", a->name,
                          (long long)a->full_extent);
  }
  pestle_strbuf_append_char(out, ']');
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_strbuf_append_c(out, v ? ", " : " = ");
    if (s->is_fold) {
      pestle_strbuf_appendf(out, "%s over [",
                            s->fold == PESTLE_OP_COUNT
                                ? "fold"
                                : pestle_op_info(s->fold)->name);
      for (uint32_t i = s->map_count; i < s->root_count; ++i) {
        const pestle_nest_axis_t* a = &nest->axes.data[s->roots[i]];
        pestle_strbuf_appendf(out, "%s%s:%lld", i > s->map_count ? ", " : "",
                              a->name, (long long)a->full_extent);
      }
      pestle_strbuf_append_c(out, "] ");
    }
    print_expr(nest, s->values[v], 0, out);
  }
  pestle_strbuf_append_char(out, '\n');
}

pestle_status_t pestle_nest_print(const pestle_nest_t* nest,
                                  pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, "nest %s  // %s\n", nest->name, nest->ops);
  for (size_t i = 0; i < nest->stages.size; ++i) {
    if (!nest->stages.data[i].inlined) {
      print_stage(nest, &nest->stages.data[i], out);
    }
  }
  pestle_schedule_print(nest, out);
  return pestle_strbuf_status(out);
}
