// SPDX-License-Identifier: Apache-2.0
// Which convolutions warpgroups take: of 16-bit floats with channels side by side, whose
// windows the copy engine can find by itself (im2col). What they are is read off the
// indices, whatever graph they came from:
//
//   c[a, b, c, d] = +[k, l, m] x[12544 a + 896 b + 64 c + 896 k + 64 l + m - 960]
//                                  if 0 <= b + k - 1 < 14, 0 <= c + l - 1 < 14
//                              * w[d + 24576 k + 8192 l + 128 m]
//
// Where there is a guard it says extent, step, dilation and padding of a spatial dim.
// Where there is none the dim's places are what windows reach. Of the axes of rows
// the outermost counts images if no tap goes with it.
#include "base/bits.h"
#include "codegen/schedule/schedule.h"
#include "codegen/template/product.h"
#include "codegen/template/tensorise/tensorise.h"

enum {
  RUN = 8,  // elements of 16 bytes
  MOST_STEP = 8,
  MOST_GUARDS = PESTLE_WINDOW_DIMS,
  NONE = -1,
};

// Positions among the stage's roots, NONE: that has one element.
typedef struct dim_axes_t {
  int32_t position, tap;
} dim_axes_t;

typedef struct guard_t {
  const pestle_expr_t* inside;
  dim_axes_t axes;
} guard_t;

typedef struct operand_t {
  uint32_t tensor;
  pestle_dtype_t dtype;
  int64_t offset, coef[PESTLE_NEST_MAX_AXES];  // by position among the roots
  const pestle_expr_t* guard;
} operand_t;

typedef struct windows_t {
  pestle_nest_t* nest;
  const pestle_nest_stage_t* s;
  operand_t a, b;
  guard_t guard[MOST_GUARDS];
  uint32_t guard_count;
  int32_t channel;  // position of its axis
  bool used[PESTLE_NEST_MAX_AXES];
  dim_axes_t axes[PESTLE_WINDOW_DIMS];  // by dim of the window
} windows_t;

static int64_t extent_of(const windows_t* w, uint32_t root) {
  return w->nest->axes.data[w->s->roots[root]].full_extent;
}

// --- What is read ---

// Coefficients of the stage's axes; false: it depends on something else.
static bool read_affine(const windows_t* w, const pestle_affine_t* at,
                        int64_t* coef) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < w->s->root_count; ++i) {
    bool nested;
    coef[i] = pestle_affine_coef(at, w->s->roots[i], &nested);
    if (nested) return false;
    found += coef[i] != 0;
  }
  return found == at->count;
}

static bool is_zero(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_CONST && x->f == 0 && x->i == 0;
}

static const pestle_expr_t* widened(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_CAST && x->dtype == PESTLE_F32 ? x->args[0] : x;
}

static bool read_operand(const windows_t* w, const pestle_expr_t* x,
                         operand_t* out) {
  x = widened(x);
  *out = (operand_t){0};
  if (x->kind == PESTLE_EXPR_OP && x->op == PESTLE_OP_SELECT &&
      is_zero(x->args[2])) {
    out->guard = x->args[0];
    x = widened(x->args[1]);
  }
  if (x->kind != PESTLE_EXPR_READ || x->packed || (x->guard && !out->guard))
    return false;
  const pestle_nest_tensor_t* t = &w->nest->tensors.data[x->i];
  out->tensor = (uint32_t)x->i;
  out->dtype = t->type.dtype;
  out->offset = x->index[0]->constant;
  return t->kind == PESTLE_TENSOR_INPUT && !t->pack &&
         (out->dtype == PESTLE_BF16 || out->dtype == PESTLE_F16) &&
         read_affine(w, x->index[0], out->coef);
}

// --- Guards ---

static bool add_guards(windows_t* w, const pestle_expr_t* x) {
  if (x->kind == PESTLE_EXPR_OP && x->op == PESTLE_OP_AND)
    return add_guards(w, x->args[0]) && add_guards(w, x->args[1]);
  if (x->kind != PESTLE_EXPR_INSIDE || w->guard_count == MOST_GUARDS)
    return false;
  guard_t g = {x, {NONE, NONE}};
  int64_t coef[PESTLE_NEST_MAX_AXES];
  if (!read_affine(w, x->affine, coef)) return false;
  for (uint32_t i = 0; i < w->s->root_count; ++i) {
    if (!coef[i]) continue;
    int32_t* axis = i < w->s->map_count ? &g.axes.position : &g.axes.tap;
    if (coef[i] < 0 || *axis != NONE || w->used[i]) return false;
    *axis = (int32_t)i;
    w->used[i] = true;
  }
  w->guard[w->guard_count++] = g;
  return true;
}

// --- Dims ---

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int64_t coef_at(const operand_t* x, int32_t root) {
  return root == NONE ? 0 : x->coef[root];
}

static int64_t count_at(const windows_t* w, int32_t root) {
  return root == NONE ? 1 : extent_of(w, (uint32_t)root);
}

// A tap whose places are the next channels, as where a line has no padding: both are
// counted as channels, which then are fewer parts of a copy.
static void join_channels(windows_t* w, pestle_window_t* out) {
  int64_t depth = PESTLE_TENSORISE_DEPTH;
  for (uint32_t i = w->s->map_count; i < w->s->root_count; ++i) {
    int64_t taps = extent_of(w, i), channels = out->channels;
    if (w->used[i] || taps == 1 || channels % depth == 0 ||
        w->a.coef[i] != channels ||
        w->b.coef[i] != channels * w->b.coef[w->channel] ||
        pestle_ceil_div(channels * taps, depth) >=
            taps * pestle_ceil_div(channels, depth)) {
      continue;
    }
    w->used[i] = true;
    out->channels *= taps;
  }
}

// The dim of |axes|, whose places are |stride| elements apart.
static pestle_window_dim_t dim_of(const windows_t* w, const dim_axes_t* axes,
                                  int64_t stride) {
  pestle_window_dim_t d = {.stride = stride,
                           .positions = count_at(w, axes->position),
                           .taps = count_at(w, axes->tap),
                           .step = coef_at(&w->a, axes->position) / stride,
                           .dilation = coef_at(&w->a, axes->tap) / stride,
                           .b_stride = coef_at(&w->b, axes->tap)};
  if (axes->position == NONE) d.step = 1;
  if (axes->tap == NONE) d.dilation = 1;
  d.extent = (d.positions - 1) * d.step + (d.taps - 1) * d.dilation + 1;
  return d;
}

// |*offset| is then that of place 0.
static bool guarded_dim(const windows_t* w, const guard_t* g, int64_t* offset,
                        pestle_window_dim_t* out) {
  int64_t of_guard[PESTLE_NEST_MAX_AXES];
  if (!read_affine(w, g->inside->affine, of_guard)) return false;
  int32_t any = g->axes.position == NONE ? g->axes.tap : g->axes.position;
  if (any == NONE || of_guard[any] <= 0 || w->a.coef[any] <= 0) return false;
  int64_t stride = w->a.coef[any] / of_guard[any];
  for (int i = 0; i < 2; ++i) {
    int32_t root = i ? g->axes.tap : g->axes.position;
    if (root != NONE && w->a.coef[root] != of_guard[root] * stride)
      return false;
  }
  if (!stride) return false;
  *out = dim_of(w, &g->axes, stride);
  out->low = g->inside->affine->constant - g->inside->lo;
  out->extent = g->inside->hi - g->inside->lo;
  *offset -= stride * out->low;
  return out->extent > 0;
}

// The free axis of rows that tap |tap| goes along: the one with the smallest step and
// dilation, of two such the one whose elements are nearer.
static int32_t position_of(const windows_t* w, uint32_t tap) {
  int32_t best = NONE;
  int64_t own = w->a.coef[tap], least = INT64_MAX;
  for (uint32_t i = 0; i + 1 < w->s->map_count; ++i) {
    int64_t coef = w->a.coef[i];
    if (w->used[i] || coef <= 0 || extent_of(w, i) == 1) continue;
    int64_t apart = (coef > own ? coef : own) / gcd(coef, own);
    if (apart > least || (apart == least && w->a.coef[best] <= coef)) continue;
    best = (int32_t)i;
    least = apart;
  }
  return best;
}

static bool add_dim(windows_t* w, pestle_window_t* out, const dim_axes_t* axes,
                    const pestle_window_dim_t* dim) {
  if (out->rank == PESTLE_WINDOW_DIMS) return false;
  w->axes[out->rank] = *axes;
  out->dim[out->rank++] = *dim;
  return true;
}

static bool find_dims(windows_t* w, pestle_window_t* out) {
  for (uint32_t i = 0; i < w->guard_count; ++i) {
    pestle_window_dim_t dim;
    if (!guarded_dim(w, &w->guard[i], &w->a.offset, &dim) ||
        !add_dim(w, out, &w->guard[i].axes, &dim)) {
      return false;
    }
  }
  for (uint32_t i = w->s->map_count; i < w->s->root_count; ++i) {
    if (w->used[i] || extent_of(w, i) == 1) continue;
    if (w->a.coef[i] <= 0) return false;
    dim_axes_t axes = {position_of(w, i), (int32_t)i};
    int64_t stride = gcd(w->a.coef[i], coef_at(&w->a, axes.position));
    pestle_window_dim_t dim = dim_of(w, &axes, stride);
    w->used[i] = true;
    if (axes.position != NONE) w->used[axes.position] = true;
    if (!add_dim(w, out, &axes, &dim)) return false;
  }
  // What is left of the rows' axes: images, and dims of one tap.
  for (uint32_t i = 0; i + 1 < w->s->map_count; ++i) {
    if (w->used[i] || extent_of(w, i) == 1) continue;
    if (w->a.coef[i] <= 0) return false;
    bool outermost = true;
    for (uint32_t j = 0; j < i; ++j)
      outermost = outermost && extent_of(w, j) == 1;
    if (outermost) {
      out->images = extent_of(w, i);
      out->image_stride = w->a.coef[i];
      continue;
    }
    dim_axes_t axes = {(int32_t)i, NONE};
    pestle_window_dim_t dim = dim_of(w, &axes, w->a.coef[i]);
    if (!add_dim(w, out, &axes, &dim)) return false;
  }
  return out->rank > 0;
}

// Fastest first: as rows are counted, dims of one position last.
static void sort_dims(windows_t* w, pestle_window_t* out) {
  for (uint32_t i = 1; i < out->rank; ++i) {
    for (uint32_t j = i; j && w->axes[j].position > w->axes[j - 1].position;
         --j) {
      dim_axes_t axes = w->axes[j];
      pestle_window_dim_t dim = out->dim[j];
      w->axes[j] = w->axes[j - 1], out->dim[j] = out->dim[j - 1];
      w->axes[j - 1] = axes, out->dim[j - 1] = dim;
    }
  }
}

// --- What the copy engine takes ---

static bool fits_engine(const pestle_window_t* x) {
  static const int64_t ends[PESTLE_WINDOW_DIMS] = {1 << 15, 1 << 7, 1 << 4};
  int64_t end = ends[x->rank - 1];
  for (uint32_t i = 0; i < x->rank; ++i) {
    const pestle_window_dim_t* d = &x->dim[i];
    int64_t high = d->low + (d->positions - 1) * d->step - (d->extent - 1);
    if (d->step > MOST_STEP || d->low < -end || d->low >= end || high < -end ||
        high >= end || (d->taps - 1) * d->dilation >= 2 * end ||
        d->stride % RUN || d->extent > INT32_MAX) {
      return false;
    }
  }
  return x->images == 1 || x->image_stride % RUN == 0;
}

static bool fits_weights(const pestle_matrix_t* b, const pestle_window_t* x,
                         int64_t n) {
  bool along_k = b->k_stride == 1, along_n = b->row_stride == 1;
  if (!along_k && !along_n) return false;
  int64_t other = along_k ? b->row_stride : b->k_stride;
  int64_t others = along_k ? n : x->channels;
  for (uint32_t i = 0; i < x->rank; ++i) {
    const pestle_window_dim_t* d = &x->dim[i];
    if (d->taps > 1 && (!d->b_stride || d->b_stride % RUN)) return false;
  }
  return b->offset % RUN == 0 && (others == 1 || other % RUN == 0) && other > 0;
}

// --- Is it one? ---

static bool find_sides(windows_t* w) {
  const pestle_expr_t* const* x = w->s->values[0]->args;
  uint32_t n = w->s->map_count - 1;
  for (int turn = 0; turn < 2; ++turn) {
    if (!read_operand(w, x[turn], &w->a) || !read_operand(w, x[!turn], &w->b) ||
        w->a.dtype != w->b.dtype) {
      return false;
    }
    if (!w->a.coef[n] && !w->b.guard) break;
  }
  if (w->a.coef[n] || w->b.guard || w->b.coef[n] <= 0) return false;
  for (uint32_t i = 0; i < n; ++i)
    if (w->b.coef[i]) return false;
  return true;
}

// The axis whose elements of a lie side by side.
static bool find_channel(windows_t* w, pestle_window_t* out) {
  for (uint32_t i = w->s->map_count; i < w->s->root_count; ++i) {
    if (w->used[i] || w->a.coef[i] != 1 || extent_of(w, i) == 1) continue;
    w->channel = (int32_t)i;
    w->used[i] = true;
    out->channels = extent_of(w, i);
    join_channels(w, out);
    return true;
  }
  return false;
}

// The axes of the last stage at which it reads the sums: all that it has. None ends.
static bool find_sums(const windows_t* w, uint32_t reduce,
                      pestle_tensorise_t* out) {
  uint32_t last = (uint32_t)w->nest->stages.size - 1, found = 0;
  const pestle_nest_stage_t* y = pestle_nest_stage(w->nest, last);
  if (y->is_reduction || reduce == last ||
      w->s->map_count > PESTLE_WINDOW_DIMS + 2) {
    return false;
  }
  const pestle_expr_t* read =
      pestle_schedule_find_read(w->nest, last, w->s->tensors[0]);
  if (!read || read->guard) return false;
  out->sum_rank = w->s->map_count;
  for (uint32_t i = 0; i < out->sum_rank; ++i) {
    out->sum_axis[i] =
        pestle_product_last_axis(w->nest, read, i, extent_of(w, i));
    if (out->sum_axis[i] == -2) return false;
    for (uint32_t j = 0; j < i; ++j) {
      if (out->sum_axis[i] != -1 && out->sum_axis[i] == out->sum_axis[j])
        return false;
    }
  }
  for (uint32_t r = 0; r < y->root_count; ++r) {
    const pestle_nest_axis_t* axis = &w->nest->axes.data[y->roots[r]];
    if (axis->end_scale > 0) return false;
    for (uint32_t i = 0; i < out->sum_rank; ++i)
      found += out->sum_axis[i] == (int32_t)y->roots[r];
    found += axis->full_extent == 1;
  }
  return found == y->root_count;
}

static bool take_rows(const windows_t* w, pestle_tensorise_t* out) {
  uint32_t n = w->s->map_count - 1;
  out->m = 1;
  if (out->sum_axis[n] < 0) return false;
  out->n_axis = (uint32_t)out->sum_axis[n];
  for (uint32_t i = 0; i < n; ++i) {
    if (out->sum_axis[i] < 0) continue;
    out->m_axis[out->m_count] = (uint32_t)out->sum_axis[i];
    out->m_extent[out->m_count++] = extent_of(w, i);
    out->m *= extent_of(w, i);
  }
  return out->m <= INT32_MAX;
}

bool pestle_tensorise_find_window(pestle_nest_t* nest, uint32_t reduce,
                                  pestle_tensorise_t* out) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, reduce);
  windows_t w = {.nest = nest, .s = s};
  *out = (pestle_tensorise_t){.batch = 1, .batch_axis = UINT32_MAX};
  pestle_window_t* x = &out->window;
  x->images = 1;
  if (!find_sides(&w) || (w.a.guard && !add_guards(&w, w.a.guard)) ||
      !find_channel(&w, x) || !find_dims(&w, x) ||
      !find_sums(&w, reduce, out) || !take_rows(&w, out)) {
    return false;
  }
  sort_dims(&w, x);
  uint32_t n = s->map_count - 1;
  out->dtype = w.a.dtype;
  out->sums = PESTLE_F32;
  out->how = w.a.dtype == PESTLE_F16 ? (uint32_t)PESTLE_KIR_WGMMA_F16 : 0u;
  out->n = extent_of(&w, n);
  out->k = x->channels;
  for (uint32_t i = 0; i < x->rank; ++i)
    out->k *= x->dim[i].taps;
  out->a = (pestle_matrix_t){w.a.tensor, w.a.offset, x->dim[0].stride, 1, 0};
  out->b = (pestle_matrix_t){w.b.tensor, w.b.offset, w.b.coef[n],
                             w.b.coef[w.channel], 0};
  return out->n > 0 && out->n % 2 == 0 && out->a.offset >= 0 &&
         out->a.offset % RUN == 0 && fits_engine(x) &&
         fits_weights(&out->b, x, out->n);
}
