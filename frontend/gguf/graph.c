// SPDX-License-Identifier: Apache-2.0
// The graph of a model: the ops, and their order, that onnxruntime-genai's models become
// (frontend/onnx/import_contrib_attention.c), so that the same passes find them.
//
// Rows of queries and keys whose numbers turn by pairs are brought into the order of halves:
// scores stay what they are, since both have it.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "frontend/gguf/pack.h"
#include "frontend/gguf/source.h"
#include "ir/formula.h"

typedef pestle_value_t pv_t;
typedef pestle_gguf_tensor_t tensor_t;

enum { BATCH, HEADS, ROWS, COLUMNS, RANK };
enum { EVERYWHERE, WINDOW, VIEWS };  // what a layer sees

// Weights as block_dot takes them.
typedef struct packed_t {
  pv_t *bytes, *scales, *zeros;  // |zeros| may be NULL
} packed_t;

typedef struct graph_t {
  pestle_formula_t f;
  const pestle_gguf_source_t* source;
  const pestle_gguf_model_t* m;
  pestle_function_t* function;
  int64_t batch, rows,
      total;            // new tokens, and positions that there is room for
  pv_t* past;           // [batch]: how many tokens a sequence has
  pv_t* places;         // [batch, rows]: of the new tokens
  pv_t* biases[VIEWS];  // of scores, with the groups in their rows
  pv_t *cosine[VIEWS], *sine[VIEWS];  // [batch, 1, rows, pairs]
  packed_t embedding;                 // where it is packed
  uint8_t *next, *end;                // memory for what is packed
  char at[64];                        // what is made, for errors and explain
} graph_t;

static void set_place(graph_t* g, int64_t layer, const char* part) {
  if (layer < 0) {
    (void)snprintf(g->at, sizeof(g->at), "%s", part);
  } else {
    (void)snprintf(g->at, sizeof(g->at), "blk.%" PRId64 ".%s", layer, part);
  }
  g->f.builder.loc.name = g->at;
}

// --- Constants ---

static pv_t* constant(graph_t* g, pestle_dtype_t dtype, int64_t rows,
                      int64_t columns, const void* data) {
  pestle_elements_t e = {.data = data};
  const int64_t dims[2] = {rows, columns};
  e.type = pestle_type_make(dtype, columns ? 2 : 1, dims);
  e.size = pestle_type_bytes(&e.type);
  return data ? pestle_f_elements(&g->f, &e) : NULL;
}

// The pages of |t| are not needed before the next plan.
static void forget(const graph_t* g, const tensor_t* t) {
  pestle_gguf_forget(&g->source->parts, t->data, t->size);
}

static void* room(graph_t* g, int64_t count, size_t size) {
  return pestle_f_memory(&g->f, (size_t)count * size);
}

enum { LINE = 64 };

static size_t in_lines(size_t size) {
  return (size + LINE - 1) / LINE * LINE;
}

// The same of what is packed, in one block: so large a one goes back to the system with the
// module, which many small ones would not.
static void* packed_room(graph_t* g, int64_t count, size_t size) {
  size_t bytes = in_lines((size_t)count * size);
  if (bytes > (size_t)(g->end - g->next)) return room(g, count, size);
  uint8_t* data = g->next;
  g->next += bytes;
  return data;
}

static bool make_packed_room(graph_t* g) {
  enum {
    PARTS = 3,
    TENSORS = 3
  };  // bytes, scales and zeros; rows of a joined one
  const pestle_gguf_file_t* file = g->m->file;
  size_t all = 0;
  for (size_t i = 0; i < file->tensor_count; ++i) {
    const tensor_t* t = &file->tensors[i];
    const pestle_gguf_type_t* type = t->type;
    size_t count = t->size / type->bytes * type->elements;
    all += PARTS * TENSORS * LINE;
    if (type->bits) {
      all += count / 8 * type->bits + count / type->group * 2 * sizeof(float);
    } else if (t->axes > 1 && (g->m->arch->flags & PESTLE_GGUF_PAIRS)) {
      // Of the plain ones queries and keys alone are copied.
      all +=
          t->dims[1] == g->m->queries || t->dims[1] == g->m->keys ? t->size : 0;
    }
  }
  g->next = pestle_f_memory(&g->f, all);
  g->end = g->next ? g->next + all : NULL;
  return g->next;
}

static packed_t pack(graph_t* g, const tensor_t* t,
                     const pestle_gguf_rows_t* rows) {
  const pestle_gguf_type_t* type = t->type;
  int64_t columns = t->dims[0], groups = columns / type->group;
  int64_t width = columns * type->bits / 8;
  packed_t p = {NULL, NULL, NULL};
  uint8_t* bytes = packed_room(g, rows->count * width, 1);
  pestle_dtype_t dtype = type->is_half ? PESTLE_F16 : PESTLE_F32;
  void* scales = packed_room(g, rows->count * groups, pestle_dtype_size(dtype));
  float* zeros = type->has_least
                     ? packed_room(g, rows->count * groups, sizeof(float))
                     : NULL;
  if (g->f.status) return p;
  pestle_gguf_pack(g->source->context, t, rows, bytes, scales, zeros);
  forget(g, t);
  p.bytes = constant(g, PESTLE_U8, rows->count, width, bytes);
  p.scales = constant(g, dtype, rows->count, groups, scales);
  p.zeros = constant(g, PESTLE_F32, rows->count, groups, zeros);
  return p;
}

// Plain numbers where they lie, or in the order of |rows|.
static pv_t* plain(graph_t* g, const tensor_t* t,
                   const pestle_gguf_rows_t* rows) {
  size_t size = t->type->bytes, width = (size_t)t->dims[0] * size;
  pestle_dtype_t dtype = size == sizeof(float)           ? PESTLE_F32
                         : !strcmp(t->type->name, "F16") ? PESTLE_F16
                                                         : PESTLE_BF16;
  const uint8_t* data = t->data + (size_t)rows->first * width;
  if (rows->depth || (uintptr_t)data % size) {
    uint8_t* copy = packed_room(g, rows->count, width);
    for (int64_t i = 0; copy && i < rows->count; ++i) {
      const uint8_t* row = t->data + (size_t)pestle_gguf_row(rows, i) * width;
      memcpy(copy + (size_t)i * width, row, width);
    }
    data = copy;
    if (data) forget(g, t);
  }
  return constant(g, dtype, rows->count, t->dims[0], data);
}

// |rows| of a vector, as f32.
static pv_t* vector(graph_t* g, const tensor_t* t,
                    const pestle_gguf_rows_t* rows) {
  float* all = room(g, t->dims[0], sizeof(float));
  float* some = room(g, rows->count, sizeof(float));
  if (!all || !some) return NULL;
  pestle_gguf_unpack(t, all);
  for (int64_t i = 0; i < rows->count; ++i)
    some[i] = all[pestle_gguf_row(rows, i)];
  return constant(g, PESTLE_F32, rows->count, 0, some);
}

// --- Parts ---

static pv_t* spread(graph_t* g, pv_t* a, const pv_t* like) {
  if (!a || !like) return NULL;
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < a->type->rank; ++i)
    axes[i] = like->type->rank - a->type->rank + i;
  pestle_type_t type = *like->type;
  type.dtype = a->type->dtype;
  return pestle_f_broadcast_to(&g->f, a, &type, axes);
}

static pv_t* norm(graph_t* g, pv_t* x, const tensor_t* t,
                  const pestle_gguf_rows_t* rows) {
  pv_t* operands[2] = {x, vector(g, t, rows)};
  if (!operands[0] || !operands[1]) return NULL;
  const int64_t last = x->type->rank - 1;
  const pestle_attr_t attrs[2] = {PESTLE_SET_I64S(dimensions, &last, 1),
                                  PESTLE_SET_F64(epsilon, g->m->epsilon)};
  return pestle_f_make(&g->f, PESTLE_OP_RMS_NORM, operands, 2, attrs, 2, NULL);
}

static pv_t* norm_all(graph_t* g, pv_t* x, const tensor_t* t) {
  const pestle_gguf_rows_t rows = {.count = t->dims[0]};
  return norm(g, x, t, &rows);
}

static pv_t* block_product(graph_t* g, pv_t* x, const tensor_t* t,
                           const packed_t* w) {
  pv_t* operands[4] = {x, w->bytes, w->scales, w->zeros};
  if (g->f.status || !x) return NULL;
  const pestle_attr_t attrs[3] = {PESTLE_SET_I64(bits, t->type->bits),
                                  PESTLE_SET_I64(block, t->type->group),
                                  PESTLE_SET_I64(accuracy, 0)};
  return pestle_f_make(&g->f, PESTLE_OP_BLOCK_DOT, operands, w->zeros ? 4 : 3,
                       attrs, 3, NULL);
}

// x [batch, rows, columns] times the transpose of |rows| of |t|.
static pv_t* product(graph_t* g, pv_t* x, const tensor_t* t,
                     const pestle_gguf_rows_t* rows) {
  const int64_t from[2] = {g->batch * g->rows, t->dims[0]};
  const int64_t to[3] = {g->batch, g->rows, rows->count};
  const int64_t dims[2] = {from[0], rows->count};
  const pestle_type_t type = pestle_type_make(PESTLE_F32, 2, dims);
  if (t->type->bits) {
    packed_t w = t == g->m->embedding ? g->embedding : pack(g, t, rows);
    return block_product(g, x, t, &w);
  }
  pv_t* w = plain(g, t, rows);
  w = pestle_f_convert(&g->f, w, PESTLE_F32);
  x = pestle_f_reshape(&g->f, x, 2, from);
  pv_t* y = pestle_f_dot(&g->f, x, w, true, &type);
  return pestle_f_reshape(&g->f, y, 3, to);
}

// The same with a bias, which may be NULL.
static pv_t* biased(graph_t* g, pv_t* x, const tensor_t* t,
                    const tensor_t* bias, const pestle_gguf_rows_t* rows) {
  pv_t* y = product(g, x, t, rows);
  if (!bias) return y;
  pv_t* b = spread(g, vector(g, bias, rows), y);
  return pestle_f_add(&g->f, y, b);
}

// |cap| * tanh(x / cap); 0: no cap.
static pv_t* capped(graph_t* g, pv_t* x, double cap) {
  if (cap <= 0) return x;
  x = pestle_f_times(&g->f, x, 1 / cap);
  x = pestle_f_tanh(&g->f, x);
  return pestle_f_times(&g->f, x, cap);
}

// --- Embeddings ---

// Rows |ids| of a matrix: [batch, rows, columns].
static pv_t* gather(graph_t* g, pv_t* matrix, pv_t* ids) {
  if (!matrix || !ids) return NULL;
  int32_t axes = ids->type->rank;
  const int64_t last = axes, zero = 0;
  const int64_t sizes[2] = {1, matrix->type->dims[1]};
  const pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(offset_dims, &last, 1),
      PESTLE_SET_I64S(collapsed_slice_dims, &zero, 1),
      PESTLE_SET_I64S(start_index_map, &zero, 1),
      PESTLE_SET_I64(index_vector_dim, axes),
      PESTLE_SET_I64S(slice_sizes, sizes, 2)};
  pv_t* operands[2] = {matrix, ids};
  return pestle_f_make(&g->f, PESTLE_OP_GATHER, operands, 2, attrs, 5, NULL);
}

// Bytes [.., n] as [.., n, 8 / bits] numbers of f32.
static pv_t* unpack(graph_t* g, pv_t* bytes, int64_t bits) {
  if (!bytes) return NULL;
  static const int64_t axes[3] = {0, 1, 2};
  pestle_type_t type = *bytes->type;
  type.dims[type.rank++] = 8 / bits;
  pv_t* x = pestle_f_broadcast_to(&g->f, bytes, &type, axes);
  if (bits == 8) return pestle_f_convert(&g->f, x, PESTLE_F32);
  pv_t* shift = pestle_f_iota(&g->f, &type, type.rank - 1);
  shift = pestle_f_times(&g->f, shift, (double)bits);
  x = pestle_f_shift_right_logical(&g->f, x, shift);
  pv_t* mask = pestle_f_number(&g->f, &type, (double)((1 << bits) - 1));
  x = pestle_f_and(&g->f, x, mask);
  return pestle_f_convert(&g->f, x, PESTLE_F32);
}

// Rows are gathered packed, and then unpacked.
static pv_t* packed_rows(graph_t* g, const tensor_t* t, pv_t* ids) {
  const packed_t* w = &g->embedding;
  int64_t bits = t->type->bits, group = t->type->group;
  const int64_t dims[4] = {g->batch, g->rows, t->dims[0] / group, group};
  const int64_t flat[3] = {g->batch, g->rows, t->dims[0]};
  static const int64_t axes[3] = {0, 1, 2};
  const pestle_type_t type = pestle_type_make(PESTLE_F32, 4, dims);
  pv_t* x = unpack(g, gather(g, w->bytes, ids), bits);
  x = pestle_f_reshape(&g->f, x, 4, dims);
  pv_t* zero = w->zeros ? gather(g, w->zeros, ids) : NULL;
  if (w->zeros) {
    zero = pestle_f_broadcast_to(&g->f, zero, &type, axes);
  } else {
    zero = pestle_f_number(&g->f, &type, (double)(1 << (bits - 1)));
  }
  x = pestle_f_subtract(&g->f, x, zero);
  pv_t* scale = gather(g, w->scales, ids);
  scale = pestle_f_convert(&g->f, scale, PESTLE_F32);
  scale = pestle_f_broadcast_to(&g->f, scale, &type, axes);
  x = pestle_f_multiply(&g->f, x, scale);
  return pestle_f_reshape(&g->f, x, 3, flat);
}

static pv_t* embed(graph_t* g, pv_t* ids) {
  const tensor_t* t = g->m->embedding;
  const pestle_gguf_rows_t all = {.count = t->dims[1]};
  set_place(g, -1, "token_embd");
  pv_t* x;
  if (t->type->bits) {
    g->embedding = pack(g, t, &all);
    x = packed_rows(g, t, ids);
  } else {
    pv_t* matrix = plain(g, t, &all);
    x = pestle_f_convert(&g->f, gather(g, matrix, ids), PESTLE_F32);
  }
  if (!(g->m->arch->flags & PESTLE_GGUF_SCALED)) return x;
  return pestle_f_times(&g->f, x, (double)sqrtf((float)g->m->width));
}

// --- Angles ---

// What the angles of pair |pair| are times those of base alone, by YaRN: pairs that turn
// often keep them, those that turn seldom have them divided.
static double yarn(const pestle_gguf_angles_t* a, int64_t pair) {
  enum { OFTEN = 32, SELDOM = 1 };
  double n = (double)a->turned, turns[2] = {OFTEN, SELDOM}, at[2];
  for (int i = 0; i < 2; ++i)
    at[i] = n * log((double)a->original / (turns[i] * 2 * M_PI)) /
            (2 * log(a->base));
  double low = fmax(0, floor(at[0])), high = fmin(n - 1, ceil(at[1]));
  double place = ((double)pair - low) / fmax(0.001, high - low);
  double kept = 1 - fmin(1, fmax(0, place));
  return (1 - kept) / a->factor + kept;
}

// Of each pair its angle at place 1; false: out of memory.
static bool read_speeds(graph_t* g, const pestle_gguf_angles_t* a,
                        double* speeds) {
  const tensor_t* t = a->divisors;
  int64_t half = a->turned / 2;
  float* divisors = NULL;
  if (a->many && a->few)
    t = a->original && g->total > a->original ? a->many : a->few;
  if (t) {
    divisors = room(g, half, sizeof(float));
    if (!divisors) return false;
    pestle_gguf_unpack(t, divisors);
  }
  for (int64_t i = 0; i < half; ++i) {
    speeds[i] = pow(a->base, -2 * (double)i / (double)a->turned);
    if (divisors) speeds[i] /= (double)divisors[i];
    if (a->scaling == PESTLE_GGUF_LINEAR) speeds[i] /= a->factor;
    if (a->scaling == PESTLE_GGUF_YARN) speeds[i] *= yarn(a, i);
  }
  return true;
}

// Tables [total, pairs] of cosines and sines, and of these the rows of the new tokens.
static void make_angles(graph_t* g, int view, const pestle_gguf_angles_t* a) {
  int64_t half = a->turned / 2;
  const int64_t dims[RANK] = {g->batch, 1, g->rows, half};
  double* speeds = room(g, half, sizeof(double));
  float* cosine = room(g, g->total * half, sizeof(float));
  float* sine = room(g, g->total * half, sizeof(float));
  double size = a->magnitude;
  if (!speeds || !cosine || !sine || !read_speeds(g, a, speeds)) return;
  if (a->scaling == PESTLE_GGUF_YARN) size *= 1 + 0.1 * log(a->factor);
  for (int64_t p = 0; p < g->total; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      double angle = (double)p * speeds[i];
      cosine[p * half + i] = (float)(cos(angle) * size);
      sine[p * half + i] = (float)(sin(angle) * size);
    }
  }
  pv_t* c =
      gather(g, constant(g, PESTLE_F32, g->total, half, cosine), g->places);
  pv_t* s = gather(g, constant(g, PESTLE_F32, g->total, half, sine), g->places);
  g->cosine[view] = pestle_f_reshape(&g->f, c, RANK, dims);
  g->sine[view] = pestle_f_reshape(&g->f, s, RANK, dims);
}

// x [batch, heads, rows, depth] turned by halves.
static pv_t* turn(graph_t* g, pv_t* x, int view) {
  if (!x) return NULL;
  pestle_formula_t* f = &g->f;
  int64_t depth = x->type->dims[COLUMNS], turned = g->m->angles.turned;
  int32_t last = COLUMNS;
  pv_t* a = pestle_f_slice_axis(f, x, last, 0, turned / 2);
  pv_t* b = pestle_f_slice_axis(f, x, last, turned / 2, turned);
  pv_t* c = spread(g, g->cosine[view], a);
  pv_t* s = spread(g, g->sine[view], a);
  pv_t* bs = pestle_f_multiply(f, b, s);
  pv_t* ac = pestle_f_multiply(f, a, c);
  pv_t* first = pestle_f_subtract(f, ac, bs);
  pv_t* bc = pestle_f_multiply(f, b, c);
  pv_t* as = pestle_f_multiply(f, a, s);
  pv_t* second = pestle_f_add(f, as, bc);
  pv_t* parts[3] = {first, second, NULL};
  if (turned < depth) parts[2] = pestle_f_slice_axis(f, x, last, turned, depth);
  return pestle_f_concatenate(f, parts, turned < depth ? 3 : 2, last);
}

// --- Attention ---

static pv_t* split_heads(graph_t* g, pv_t* x, int64_t heads, int64_t depth) {
  static const int64_t swap[RANK] = {0, 2, 1, 3};
  const int64_t dims[RANK] = {g->batch, g->rows, heads, depth};
  x = pestle_f_reshape(&g->f, x, RANK, dims);
  return pestle_f_transpose(&g->f, x, swap);
}

// |cache| with |x| at the places of the new tokens.
static pv_t* update(graph_t* g, pv_t* cache, pv_t* x) {
  static const int64_t window[2] = {HEADS, COLUMNS}, rows = ROWS, batch = BATCH;
  if (!cache || !x || !g->places) return NULL;
  pestle_region_t* region =
      pestle_f_region(&g->f, PESTLE_OP_COUNT, cache->type->dtype);
  if (!region) return NULL;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(update_window_dims, window, 2),
      PESTLE_SET_I64S(inserted_window_dims, &rows, 1),
      PESTLE_SET_I64S(input_batching_dims, &batch, 1),
      PESTLE_SET_I64S(scatter_indices_batching_dims, &batch, 1),
      PESTLE_SET_I64S(scatter_dims_to_operand_dims, &rows, 1),
      PESTLE_SET_I64(index_vector_dim, 2),
      PESTLE_SET_BOOL(unique_indices, true)};
  pv_t* operands[3] = {cache, g->places, x};
  pestle_node_spec_t spec = {.op = PESTLE_OP_SCATTER,
                             .operands = operands,
                             .operand_count = 3,
                             .attrs = attrs,
                             .attr_count = sizeof(attrs) / sizeof(attrs[0]),
                             .regions = &region,
                             .region_count = 1};
  return pestle_f_emit(&g->f, &spec);
}

// 0 where a key is seen, -inf elsewhere: [batch, 1, rows of all groups, total].
static pv_t* make_bias(graph_t* g, int64_t window) {
  pestle_formula_t* f = &g->f;
  int64_t groups = g->m->heads / g->m->shared;
  pestle_type_t type = {PESTLE_I64, RANK, {g->batch, 1, g->rows, g->total}};
  const int64_t one[RANK] = {g->batch, 1, 1, 1}, keys = COLUMNS, rows = ROWS;
  pv_t* key = pestle_f_iota(f, &type, keys);
  pv_t* past = pestle_f_reshape(f, g->past, RANK, one);
  pv_t* query = pestle_f_iota(f, &type, rows);
  query = pestle_f_add(f, query, spread(g, past, query));
  pv_t* seen = pestle_f_le(f, key, query);
  if (window) {
    pv_t* before = pestle_f_plus(f, query, -(double)window);
    before = pestle_f_gt(f, key, before);
    seen = pestle_f_and(f, seen, before);
  }
  type.dtype = PESTLE_F32;
  pv_t* zero = pestle_f_number(f, &type, 0);
  pv_t* low = pestle_f_number(f, &type, -INFINITY);
  pv_t* bias = pestle_f_select(f, seen, zero, low);
  if (groups == 1 || g->rows == 1) return bias;
  const int64_t wide[RANK] = {g->batch, groups, g->rows, g->total};
  const int64_t flat[RANK] = {g->batch, 1, groups * g->rows, g->total};
  static const int64_t axes[RANK] = {0, 1, 2, 3};
  bias = pestle_f_broadcast(f, bias, RANK, wide, (pestle_i64s_t){axes, RANK});
  return pestle_f_reshape(f, bias, RANK, flat);
}

// Scores with a cap, spelled out.
static pv_t* attend_capped(graph_t* g, pv_t* q, pv_t* k, pv_t* v, pv_t* bias) {
  static const int64_t last = COLUMNS;
  if (!q || !v) return NULL;
  pestle_type_t type = *q->type;
  type.dims[COLUMNS] = g->total;
  pv_t* x = pestle_f_dot(&g->f, q, k, true, &type);
  x = pestle_f_times(&g->f, x, g->m->scale);
  x = capped(g, x, g->m->cap);
  x = pestle_f_add(&g->f, x, spread(g, bias, x));
  const pestle_attr_t attr = PESTLE_SET_I64S(dimensions, &last, 1);
  x = pestle_f_make(&g->f, PESTLE_OP_SOFTMAX, &x, 1, &attr, 1, NULL);
  type.dims[COLUMNS] = v->type->dims[COLUMNS];
  return pestle_f_dot(&g->f, x, v, false, &type);
}

// q [batch, heads, rows, depth] over caches: [batch, rows, heads * value depth]. Heads that
// share keys are more rows of these.
static pv_t* attend(graph_t* g, pv_t* q, pv_t* k, pv_t* v, int view) {
  const pestle_gguf_model_t* m = g->m;
  static const int64_t swap[RANK] = {0, 2, 1, 3};
  const int64_t grouped[RANK] = {g->batch, m->shared,
                                 m->heads / m->shared * g->rows, m->depth};
  const int64_t apart[RANK] = {g->batch, m->heads, g->rows, m->value_depth};
  const int64_t flat[3] = {g->batch, g->rows, m->outputs};
  q = pestle_f_reshape(&g->f, q, RANK, grouped);
  pv_t *operands[4] = {q, k, v, g->biases[view]}, *y;
  if (!q || !k || !v || !operands[3]) return NULL;
  if (m->cap > 0) {
    y = attend_capped(g, q, k, v, operands[3]);
  } else {
    const pestle_attr_t attr = PESTLE_SET_F64(scale, m->scale);
    y = pestle_f_make(&g->f, PESTLE_OP_ATTENTION, operands, 4, &attr, 1, NULL);
  }
  y = pestle_f_reshape(&g->f, y, RANK, apart);
  y = pestle_f_transpose(&g->f, y, swap);
  return pestle_f_reshape(&g->f, y, 3, flat);
}

// --- Layers ---

#define SLOT(NAME) pestle_gguf_slot(g->m, layer, PESTLE_GGUF_##NAME##_SLOT)

// Queries, keys and values [batch, heads, rows, depth].
static void project(graph_t* g, int64_t layer, pv_t* x, pv_t* out[3]) {
  const pestle_gguf_model_t* m = g->m;
  static const char* const names[3] = {"attn_q", "attn_k", "attn_v"};
  const tensor_t *joined = SLOT(JOINED), *joined_bias = SLOT(JOINED_BIAS);
  const tensor_t* weights[3] = {SLOT(QUERY), SLOT(KEY), SLOT(VALUE)};
  const tensor_t* biases[3] = {SLOT(QUERY_BIAS), SLOT(KEY_BIAS),
                               SLOT(VALUE_BIAS)};
  const tensor_t* norms[3] = {SLOT(QUERY_NORM), SLOT(KEY_NORM), NULL};
  const int64_t counts[3] = {m->queries, m->keys, m->values};
  const int64_t depths[3] = {m->depth, m->depth, m->value_depth};
  int64_t first = 0;
  for (int i = 0; i < 3; ++i) {
    bool is_turned = i < 2 && (m->arch->flags & PESTLE_GGUF_PAIRS);
    pestle_gguf_rows_t rows = {.first = joined ? first : 0,
                               .count = counts[i],
                               .depth = is_turned ? m->depth : 0,
                               .turned = m->angles.turned};
    first += counts[i];
    set_place(g, layer, names[i]);
    out[i] = biased(g, x, joined ? joined : weights[i],
                    joined ? joined_bias : biases[i], &rows);
    out[i] = split_heads(g, out[i], counts[i] / depths[i], depths[i]);
    if (!norms[i]) continue;
    rows.first = 0;
    rows.count = m->depth;
    out[i] = norm(g, out[i], norms[i], &rows);
  }
}

// What attention adds; |caches| become those with the new rows.
static pv_t* attention(graph_t* g, int64_t layer, pv_t* x, pv_t* caches[2]) {
  const pestle_gguf_model_t* m = g->m;
  const pestle_gguf_rows_t all = {.count = m->width};
  int view = pestle_gguf_is_windowed(m, layer) ? WINDOW : EVERYWHERE;
  pv_t* parts[3];
  project(g, layer, x, parts);
  set_place(g, layer, "attn");
  parts[0] = turn(g, parts[0], view);
  parts[1] = turn(g, parts[1], view);
  caches[0] = update(g, caches[0], parts[1]);
  caches[1] = update(g, caches[1], parts[2]);
  pv_t* y = attend(g, parts[0], caches[0], caches[1], view);
  set_place(g, layer, "attn_output");
  y = biased(g, y, SLOT(OUTPUT), SLOT(OUTPUT_BIAS), &all);
  const tensor_t* post = SLOT(POST_ATTENTION_NORM);
  return post ? norm_all(g, y, post) : y;
}

static pv_t* activate(graph_t* g, pv_t* x) {
  if (g->m->arch->flags & PESTLE_GGUF_GELU) {
    const pestle_attr_t attr = PESTLE_SET_BOOL(approximate, true);
    return pestle_f_make(&g->f, PESTLE_OP_GELU, &x, 1, &attr, 1, NULL);
  }
  pv_t* y = pestle_f_logistic(&g->f, x);
  return pestle_f_multiply(&g->f, x, y);
}

static pv_t* feed_forward(graph_t* g, int64_t layer, pv_t* x) {
  const pestle_gguf_model_t* m = g->m;
  const tensor_t *up = SLOT(UP), *gate = SLOT(GATE);
  const tensor_t *up_bias = SLOT(UP_BIAS), *gate_bias = SLOT(GATE_BIAS);
  pestle_gguf_rows_t rows = {.count = m->inner};
  const pestle_gguf_rows_t all = {.count = m->width};
  set_place(g, layer, "ffn_gate");
  pv_t* a = biased(g, x, gate ? gate : up, gate ? gate_bias : up_bias, &rows);
  if (!gate) rows.first = m->inner;
  set_place(g, layer, "ffn_up");
  pv_t* b = biased(g, x, up, up_bias, &rows);
  a = activate(g, a);
  a = pestle_f_multiply(&g->f, a, b);
  set_place(g, layer, "ffn_down");
  pv_t* y = biased(g, a, SLOT(DOWN), SLOT(DOWN_BIAS), &all);
  const tensor_t* post = SLOT(POST_INNER_NORM);
  return post ? norm_all(g, y, post) : y;
}

static pv_t* make_layer(graph_t* g, int64_t layer, pv_t* x, pv_t* caches[2]) {
  set_place(g, layer, "attn_norm");
  pv_t* y = norm_all(g, x, SLOT(ATTENTION_NORM));
  y = attention(g, layer, y, caches);
  x = pestle_f_add(&g->f, x, y);
  set_place(g, layer, "ffn_norm");
  y = norm_all(g, x, SLOT(INNER_NORM));
  y = feed_forward(g, layer, y);
  return pestle_f_add(&g->f, x, y);
}

// --- The whole ---

static void find_places(graph_t* g, pv_t* mask) {
  const int64_t axis = 1, column[2] = {g->batch, 1};
  const int64_t dims[2] = {g->batch, g->rows};
  const pestle_type_t type = pestle_type_make(PESTLE_I64, 2, dims);
  set_place(g, -1, "attention_mask");
  pv_t* count =
      pestle_f_reduce(&g->f, PESTLE_OP_ADD, mask, (pestle_i64s_t){&axis, 1}, 0);
  g->past = pestle_f_plus(&g->f, count, -(double)g->rows);
  pv_t* past = pestle_f_reshape(&g->f, g->past, 2, column);
  pv_t* place = pestle_f_iota(&g->f, &type, 1);
  g->places = pestle_f_add(&g->f, place, spread(g, past, place));
}

// What layers have in common, as far as some layer sees it.
static void make_views(graph_t* g) {
  const pestle_gguf_model_t* m = g->m;
  const int64_t windows[VIEWS] = {0, m->window < g->total ? m->window : 0};
  pestle_gguf_angles_t angles[VIEWS] = {m->angles, m->angles};
  if (m->arch->flags & PESTLE_GGUF_LOCAL_ANGLES) {
    angles[WINDOW] = (pestle_gguf_angles_t){
        .turned = m->angles.turned, .base = m->local_base, .magnitude = 1};
  }
  for (int view = 0; view < VIEWS; ++view) {
    bool is_seen = false;
    for (int64_t i = 0; i < m->layers; ++i)
      is_seen |= pestle_gguf_is_windowed(m, i) == (view == WINDOW);
    if (!is_seen) continue;
    g->biases[view] = make_bias(g, windows[view]);
    make_angles(g, view, &angles[view]);
  }
}

static pestle_status_t name_results(const graph_t* g) {
  char name[64];
  PESTLE_TRY(pestle_function_set_result_name(g->function, 0, "logits"));
  for (int64_t i = 0; i < 2 * g->m->layers; ++i) {
    (void)snprintf(name, sizeof(name), "present.%" PRId64 ".%s", i / 2,
                   i % 2 ? "value" : "key");
    PESTLE_TRY(
        pestle_function_set_result_name(g->function, (size_t)i + 1, name));
  }
  return NULL;
}

static pestle_status_t build(graph_t* g, pv_t** results) {
  const pestle_gguf_model_t* m = g->m;
  const pestle_gguf_rows_t words = {.count = m->words};
  if (!make_packed_room(g)) return g->f.status;
  find_places(g, pestle_function_argument(g->function, PESTLE_GGUF_MASK));
  make_views(g);
  pv_t* x = embed(g, pestle_function_argument(g->function, PESTLE_GGUF_IDS));
  for (int64_t i = 0; i < m->layers; ++i) {
    pv_t** caches = &results[1 + 2 * i];
    for (int64_t c = 0; c < 2; ++c)
      caches[c] = pestle_function_argument(
          g->function, (size_t)(PESTLE_GGUF_CACHES + 2 * i + c));
    x = make_layer(g, i, x, caches);
    PESTLE_TRY(g->f.status);
  }
  set_place(g, -1, "output_norm");
  x = norm_all(g, x, m->last_norm);
  set_place(g, -1, "output");
  x = product(g, x, m->head, &words);
  results[0] = capped(g, x, m->last_cap);
  PESTLE_TRY(g->f.status);
  PESTLE_TRY(pestle_op_return(&g->f.builder, results, 1 + 2 * (size_t)m->layers,
                              NULL));
  return name_results(g);
}

pestle_status_t pestle_gguf_build(const pestle_gguf_source_t* source,
                                  pestle_function_t* function) {
  const pestle_type_t* ids =
      pestle_function_argument(function, PESTLE_GGUF_IDS)->type;
  const pestle_type_t* mask =
      pestle_function_argument(function, PESTLE_GGUF_MASK)->type;
  graph_t g = {.f = pestle_formula_make(pestle_builder_make(function)),
               .source = source,
               .m = &source->model,
               .function = function,
               .batch = ids->dims[0],
               .rows = ids->dims[1],
               .total = mask->dims[1]};
  g.f.builder.loc.file = source->name;
  size_t count = 1 + 2 * (size_t)g.m->layers;
  pestle_allocator_t allocator = pestle_context_allocator(source->context);
  pv_t** results = pestle_alloc(allocator, count * sizeof(*results));
  if (!results) return PESTLE_OOM();
  pestle_status_t status = build(&g, results);
  pestle_dealloc(allocator, results, count * sizeof(*results));
  return status;
}
