// SPDX-License-Identifier: Apache-2.0
// The copies of a convolution. A step is a tap and a part of its channels: the pixels
// that this tap of the tile's windows sees, which the copy engine finds by itself
// (TILE_LOAD_WINDOW), and the tap's weights. What lies outside of the image, behind
// the last channel or behind the last image is zeros.
//
//   step = (tap, part of the channels), the channels fastest
//   a    : map of windows [channels, places.., images]
//   b    : [channels, taps.., n], or [n, channels, taps..] where n lies side by side
#include "base/bits.h"
#include "codegen/template/tensorise/emit.h"

enum { CHUNK = 64 };  // elements of a swizzled row

static bool along_k(const pestle_tiles_t* t) {
  return t->p.b.k_stride == 1;
}

static int64_t parts_of(const pestle_tiles_t* t) {
  return pestle_ceil_div(t->p.window.channels, PESTLE_TENSORISE_DEPTH);
}

// --- Maps ---

static void map_weights(pestle_tiles_t* t) {
  const pestle_window_t* x = &t->p.window;
  pestle_map_dim_t dims[PESTLE_WINDOW_DIMS + 2];
  pestle_map_dim_t depth = {x->channels, PESTLE_TENSORISE_DEPTH,
                            t->p.b.k_stride};
  pestle_map_dim_t lines = {t->p.n,
                            along_k(t) ? t->columns / t->how.cluster : CHUNK,
                            t->p.b.row_stride};
  int64_t offset = t->p.b.offset;
  uint32_t rank = 0;
  dims[rank++] = along_k(t) ? depth : lines;
  if (!along_k(t)) dims[rank++] = depth;
  for (uint32_t d = 0; d < x->rank; ++d) {
    int64_t stride = x->dim[d].b_stride;
    if (x->dim[d].taps == 1) continue;
    if (stride < 0) offset += stride * (x->dim[d].taps - 1);
    dims[rank++] =
        (pestle_map_dim_t){x->dim[d].taps, 1, stride < 0 ? -stride : stride};
  }
  if (along_k(t)) dims[rank++] = lines;
  t->map_b = pestle_tiles_map(t, "map_b", t->e->buffer[t->p.b.tensor],
                              t->p.dtype, offset, dims, rank, NULL);
}

void pestle_tiles_window_maps(pestle_tiles_t* t) {
  const pestle_window_t* x = &t->p.window;
  pestle_map_dim_t dims[PESTLE_WINDOW_DIMS + 2];
  dims[0] = (pestle_map_dim_t){x->channels, PESTLE_TENSORISE_DEPTH, 1};
  for (uint32_t d = 0; d < x->rank; ++d) {
    dims[d + 1] =
        (pestle_map_dim_t){x->dim[d].extent, d ? 1 : t->rows, x->dim[d].stride};
  }
  // One image: its stride is that of nothing, but has to be one.
  int64_t stride =
      x->images > 1 ? x->image_stride
                    : x->dim[x->rank - 1].stride * x->dim[x->rank - 1].extent;
  dims[x->rank + 1] = (pestle_map_dim_t){x->images, 1, stride};
  t->map_a = pestle_tiles_map(t, "map_a", t->e->buffer[t->p.a.tensor],
                              t->p.dtype, t->p.a.offset, dims, x->rank + 2, x);
  map_weights(t);
}

// --- Numbers ---

// |*number| in digits of |count|: the lowest, and the rest behind it.
static pestle_kir_id_t take_digit(const pestle_tiles_t* t, int64_t count,
                                  pestle_kir_id_t* number) {
  pestle_kir_builder_t* k = t->e->k;
  if (count == 1) return pestle_kir_index(k, 0);
  pestle_kir_id_t digit =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, *number, count);
  *number = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, *number, count);
  return digit;
}

void pestle_tiles_start_window(pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  const pestle_window_t* x = &t->p.window;
  pestle_kir_id_t row =
      pestle_kir_madi(k, t->row, t->rows, pestle_kir_index(k, 0));
  for (uint32_t d = 0; d < x->rank; ++d) {
    pestle_kir_id_t position = take_digit(t, x->dim[d].positions, &row);
    t->window[d] = pestle_kir_madi(k, position, x->dim[d].step,
                                   pestle_kir_index(k, x->dim[d].low));
  }
  t->window[x->rank] = row;
}

// --- Copies ---

static pestle_kir_id_t coordinate(const pestle_tiles_t* t,
                                  const pestle_kir_id_t* number,
                                  uint32_t count) {
  pestle_kir_id_t at = number[--count];
  while (count--)
    at = pestle_tiles_address(t, PESTLE_KIR_COORD, number[count], at);
  return at;
}

// Those of this group's columns, to all groups of the cluster.
static void copy_weights(const pestle_tiles_t* t, const pestle_tiles_step_t* s,
                         pestle_kir_id_t channel, const pestle_kir_id_t* tap,
                         pestle_kir_id_t arrives) {
  pestle_kir_builder_t* k = t->e->k;
  const pestle_window_t* x = &t->p.window;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  int64_t own = t->columns / t->how.cluster;
  pestle_kir_id_t base =
      pestle_kir_madi(k, s->slot, t->columns * PESTLE_TENSORISE_DEPTH, zero);
  pestle_kir_id_t first = pestle_kir_madi(k, t->column, t->columns, zero);
  if (t->how.cluster > 1) {
    base = pestle_kir_madi(k, t->rank, own * PESTLE_TENSORISE_DEPTH, base);
    first = pestle_kir_madi(k, t->rank, own, first);
  }
  int64_t boxes = along_k(t) ? 1 : own / CHUNK;
  for (int64_t i = 0; i < boxes; ++i) {
    pestle_kir_id_t at[PESTLE_WINDOW_DIMS + 2];
    pestle_kir_id_t column =
        pestle_kir_madi(k, first, 1, pestle_kir_index(k, i * CHUNK));
    uint32_t rank = 0;
    if (!along_k(t)) at[rank++] = column;
    at[rank++] = channel;
    for (uint32_t d = 0; d < x->rank; ++d) {
      if (x->dim[d].taps == 1) continue;
      bool turned = x->dim[d].b_stride < 0;
      pestle_kir_id_t last = pestle_kir_index(k, x->dim[d].taps - 1);
      at[rank++] = turned ? pestle_kir_madi(k, tap[d], -1, last) : tap[d];
    }
    if (along_k(t)) at[rank++] = column;
    pestle_kir_id_t to = pestle_kir_madi(
        k, base, 1, pestle_kir_index(k, i * CHUNK * PESTLE_TENSORISE_DEPTH));
    pestle_kir_act(
        k, t->how.cluster > 1 ? PESTLE_KIR_TILE_LOAD_ALL : PESTLE_KIR_TILE_LOAD,
        pestle_tiles_ref(t, t->tile_b, to), t->map_b, coordinate(t, at, rank),
        arrives);
  }
}

void pestle_tiles_copy_window(const pestle_tiles_t* t,
                              const pestle_tiles_step_t* s,
                              pestle_kir_id_t arrives) {
  pestle_kir_builder_t* k = t->e->k;
  const pestle_window_t* x = &t->p.window;
  pestle_kir_id_t zero = pestle_kir_index(k, 0), number = s->number;
  pestle_kir_id_t tap[PESTLE_WINDOW_DIMS], at[2 * PESTLE_WINDOW_DIMS + 2];
  pestle_kir_id_t behind = zero;
  if (t->how.parts > 1) {
    // Steps behind the last one are of channels that there are none of.
    int64_t all = pestle_tensorise_steps(&t->p);
    number = pestle_kir_madi(k, t->rank, t->steps, number);
    behind = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, number, all);
    number = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, number, all);
  }
  pestle_kir_id_t part = take_digit(t, parts_of(t), &number);
  part = pestle_kir_madi(k, behind, parts_of(t), part);
  pestle_kir_id_t channel =
      pestle_kir_madi(k, part, PESTLE_TENSORISE_DEPTH, zero);
  uint32_t count = 0;
  at[count++] = channel;
  for (uint32_t d = 0; d <= x->rank; ++d)
    at[count++] = t->window[d];
  for (uint32_t d = 0; d < x->rank; ++d) {
    tap[d] = take_digit(t, x->dim[d].taps, &number);
    at[count++] = pestle_kir_madi(k, tap[d], x->dim[d].dilation, zero);
  }
  pestle_kir_id_t to =
      pestle_kir_madi(k, s->slot, t->rows * PESTLE_TENSORISE_DEPTH, zero);
  pestle_kir_act(k, PESTLE_KIR_TILE_LOAD_WINDOW,
                 pestle_tiles_ref(t, t->tile_a, to), t->map_a,
                 coordinate(t, at, count), arrives);
  copy_weights(t, s, channel, tap, arrives);
}
