// SPDX-License-Identifier: Apache-2.0
// The gradient of a norm y = h scale + offset over the last axes, with h = rate x and x less
// its mean where the norm is centred, t = c scale and means along a row:
//
//   dx = rate (t - h mean(h t) - mean(t))     of scale: sum c h     of offset: sum c
//
// without mean(t) where it is not centred. The sums come block by block of rows.
#include "ir/composite.h"

typedef struct norm_t {
  pestle_formula_t* f;
  pestle_type_t type;  // of x, in the dtype of the computation
  int64_t axes[PESTLE_MAX_RANK];
  pestle_i64s_t last;  // the normalised axes
  pestle_i64s_t kept;  // the others
  int64_t rows, length, blocks;
} norm_t;

static norm_t norm_of(pestle_formula_t* f) {
  const pestle_node_t* node = f->of->node;
  norm_t n = {.f = f,
              .type = f->of->shape,
              .rows = 1,
              .length = 1,
              .blocks = PESTLE_NODE_I64(node, blocks)};
  int64_t first = PESTLE_NODE_I64(node, dimension);
  for (int32_t d = 0; d < n.type.rank; ++d) {
    n.axes[d] = d;
    *(d < first ? &n.rows : &n.length) *= n.type.dims[d];
  }
  return n;
}

static void set_axes(norm_t* n) {
  size_t first = (size_t)PESTLE_NODE_I64(n->f->of->node, dimension);
  n->kept = (pestle_i64s_t){n->axes, first};
  n->last = (pestle_i64s_t){n->axes + first, (size_t)n->type.rank - first};
}

// A number a row, in the shape of x.
static pv_t* spread(norm_t* n, pv_t* a) {
  return a ? pestle_f_broadcast_to(n->f, a, &n->type, n->kept.data) : NULL;
}

// Means along rows, a number each.
static pv_t* mean(norm_t* n, pv_t* a) {
  a = a ? pestle_f_reduce(n->f, PESTLE_OP_ADD, a, n->last, 0) : NULL;
  return a ? pestle_f_divide(n->f, a,
                             pestle_f_splat(n->f, a, (double)n->length))
           : NULL;
}

// [blocks, normalised axes..]: sums of rows, of which the last block has fewer.
static pv_t* block_sums(norm_t* n, pv_t* a) {
  int64_t dims[PESTLE_MAX_RANK + 2], one = 1;
  int64_t length = (n->rows + n->blocks - 1) / n->blocks;
  int32_t rank = 1;
  if (!a) return NULL;
  dims[0] = n->rows;
  for (size_t i = 0; i < n->last.count; ++i)
    dims[rank++] = n->type.dims[n->last.data[i]];
  a = pestle_f_reshape(n->f, a, rank, dims);
  if (!a) return NULL;
  a = pestle_f_pad_end(n->f, a, 0, n->blocks * length - n->rows);
  for (int32_t d = rank; d > 1; --d)
    dims[d] = dims[d - 1];
  dims[0] = n->blocks;
  dims[1] = length;
  a = pestle_f_reshape(n->f, a, rank + 1, dims);
  return a ? pestle_f_reduce(n->f, PESTLE_OP_ADD, a, (pestle_i64s_t){&one, 1},
                             0)
           : NULL;
}

pv_t* pestle_decompose_norm_grad(pestle_formula_t* f) {
  const pestle_node_t* node = f->of->node;
  bool is_centred = PESTLE_NODE_BOOL(node, centred);
  norm_t n = norm_of(f);
  set_axes(&n);
  pv_t* x = pestle_f_operand(f, 0, f->compute);
  pv_t* c = pestle_f_operand(f, 2, f->compute);
  pv_t* scale =
      pestle_f_to_shape(f, pestle_f_operand(f, 1, f->compute), n.last);
  if (is_centred) {
    pv_t* middle = spread(&n, mean(&n, x));
    x = pestle_f_subtract(f, x, middle);
  }
  pv_t* rate = mean(&n, pestle_f_multiply(f, x, x));
  rate = rate ? pestle_f_plus(f, rate, PESTLE_NODE_F64(node, epsilon)) : NULL;
  rate = spread(&n, pestle_f_rsqrt(f, rate));
  pv_t* h = pestle_f_multiply(f, x, rate);
  pv_t* t = pestle_f_multiply(f, c, scale);
  pv_t* along = spread(&n, mean(&n, pestle_f_multiply(f, h, t)));
  pv_t* y = pestle_f_subtract(f, t, pestle_f_multiply(f, h, along));
  if (is_centred) y = pestle_f_subtract(f, y, spread(&n, mean(&n, t)));
  y = pestle_f_multiply(f, y, rate);
  f->of->more[0] = block_sums(&n, pestle_f_multiply(f, c, h));
  if (is_centred) f->of->more[1] = block_sums(&n, c);
  return pestle_f_convert(f, y, node->results[0].type->dtype);
}
