// SPDX-License-Identifier: Apache-2.0
#include "ir/spread.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

// --- Combinations ---

static const pestle_op_t combine_ops[PESTLE_COMBINE_COUNT] = {
    PESTLE_OP_ADD,     PESTLE_OP_MULTIPLY, PESTLE_OP_MINIMUM,
    PESTLE_OP_MAXIMUM, PESTLE_OP_AND,      PESTLE_OP_OR,
};

pestle_op_t pestle_combine_op(pestle_combine_t combine) {
  return combine_ops[combine];
}

pestle_combine_t pestle_combine_of(pestle_op_t op) {
  int i = 0;
  while (i < PESTLE_COMBINE_COUNT && combine_ops[i] != op)
    ++i;
  return (pestle_combine_t)i;
}

// --- Lists of axes ---

pestle_axes_t pestle_axis_order_set(const pestle_axis_order_t* order) {
  unsigned set = 0;
  for (int i = 0; i < order->count; ++i)
    set |= 1u << order->axes[i];
  return (pestle_axes_t)set;
}

int pestle_axis_order_common(const pestle_axis_order_t* a,
                             const pestle_axis_order_t* b) {
  int n = 0;
  while (n < a->count && n < b->count && a->axes[n] == b->axes[n])
    ++n;
  return n;
}

bool pestle_axis_order_equal(const pestle_axis_order_t* a,
                             const pestle_axis_order_t* b) {
  return a->count == b->count && pestle_axis_order_common(a, b) == a->count;
}

int64_t pestle_axis_order_parts(const pestle_mesh_t* mesh,
                                const pestle_axis_order_t* order) {
  int64_t parts = 1;
  for (int i = 0; i < order->count; ++i)
    parts *= mesh->sizes[order->axes[i]];
  return parts;
}

// --- Spreads ---

pestle_spread_t pestle_spread_whole(void) {
  pestle_spread_t s = {.closed = 0};
  memset(s.places, PESTLE_AXIS_FREE, sizeof(s.places));
  return s;
}

static bool is_of_dim(const pestle_spread_t* s, int axis, int dim) {
  return s->places[axis] < PESTLE_AXIS_SUM && s->places[axis] >> 3 == dim;
}

pestle_axis_order_t pestle_spread_dim(const pestle_spread_t* s, int dim) {
  pestle_axis_order_t order = {.count = 0};
  for (int i = 0; i < PESTLE_MESH_AXES; ++i) {
    if (!is_of_dim(s, i, dim)) continue;
    order.axes[s->places[i] & 7] = (uint8_t)i;
    ++order.count;
  }
  return order;
}

void pestle_spread_set_dim(pestle_spread_t* s, int dim,
                           const pestle_axis_order_t* order) {
  for (int i = 0; i < PESTLE_MESH_AXES; ++i) {
    if (is_of_dim(s, i, dim)) s->places[i] = PESTLE_AXIS_FREE;
  }
  for (int i = 0; i < order->count; ++i)
    s->places[order->axes[i]] = (uint8_t)(dim << 3 | i);
}

pestle_axes_t pestle_spread_sums(const pestle_spread_t* s) {
  unsigned set = 0;
  for (int i = 0; i < PESTLE_MESH_AXES; ++i)
    set |= (unsigned)(s->places[i] == PESTLE_AXIS_SUM) << i;
  return (pestle_axes_t)set;
}

pestle_axes_t pestle_spread_used(const pestle_spread_t* s) {
  unsigned set = 0;
  for (int i = 0; i < PESTLE_MESH_AXES; ++i)
    set |= (unsigned)(s->places[i] != PESTLE_AXIS_FREE) << i;
  return (pestle_axes_t)set;
}

void pestle_spread_set_sums(pestle_spread_t* s, pestle_axes_t axes,
                            pestle_combine_t combine) {
  for (int i = 0; i < PESTLE_MESH_AXES; ++i) {
    if (s->places[i] == PESTLE_AXIS_SUM) s->places[i] = PESTLE_AXIS_FREE;
    if (pestle_axes_has(axes, i)) s->places[i] = PESTLE_AXIS_SUM;
  }
  s->combine = axes ? (uint8_t)combine : 0;
}

bool pestle_spread_equal(const pestle_spread_t* a, const pestle_spread_t* b) {
  return !memcmp(a->places, b->places, sizeof(a->places)) &&
         (!pestle_spread_sums(a) || a->combine == b->combine);
}

bool pestle_spread_is_whole(const pestle_spread_t* s) {
  return !pestle_spread_used(s);
}

int64_t pestle_spread_parts(const pestle_mesh_t* mesh, const pestle_spread_t* s,
                            int dim) {
  int64_t parts = 1;
  for (int i = 0; i < mesh->axis_count; ++i)
    parts *= is_of_dim(s, i, dim) ? mesh->sizes[i] : 1;
  return parts;
}

bool pestle_spread_fits(const pestle_mesh_t* mesh, const pestle_spread_t* s,
                        const pestle_type_t* type, int* out_dim) {
  for (int d = 0; d < type->rank; ++d) {
    if (type->dims[d] % pestle_spread_parts(mesh, s, d) == 0) continue;
    *out_dim = d;
    return false;
  }
  return true;
}

pestle_type_t pestle_spread_local(const pestle_mesh_t* mesh,
                                  const pestle_spread_t* s,
                                  const pestle_type_t* type) {
  pestle_type_t local = *type;
  for (int d = 0; d < type->rank; ++d)
    local.dims[d] /= pestle_spread_parts(mesh, s, d);
  return local;
}

void pestle_spread_print(const pestle_mesh_t* mesh, const pestle_spread_t* s,
                         int32_t rank, pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '[');
  for (int d = 0; d < rank; ++d) {
    pestle_axis_order_t order = pestle_spread_dim(s, d);
    pestle_strbuf_append_c(out, d ? ", {" : "{");
    for (int i = 0; i < order.count; ++i)
      pestle_strbuf_appendf(out, "%s%s", i ? ", " : "",
                            mesh->names[order.axes[i]]);
    pestle_strbuf_append_char(out, '}');
  }
  pestle_strbuf_append_char(out, ']');
  pestle_axes_t sums = pestle_spread_sums(s);
  const char* between = " sum {";
  for (int i = 0; i < mesh->axis_count && sums; ++i) {
    if (!pestle_axes_has(sums, i)) continue;
    pestle_strbuf_appendf(out, "%s%s", between, mesh->names[i]);
    between = ", ";
  }
  if (sums) pestle_strbuf_append_char(out, '}');
}

// --- Processes ---

int64_t pestle_mesh_place(const pestle_mesh_t* mesh, int32_t process) {
  int64_t place = process;
  for (place = 0; mesh->processes && place < mesh->count; ++place) {
    if (mesh->processes[place] == process) return place;
  }
  return process;
}

int64_t pestle_mesh_number(const pestle_mesh_t* mesh, int64_t place,
                           const pestle_axis_order_t* order) {
  int64_t number = 0;
  for (int i = 0; i < order->count; ++i) {
    int axis = order->axes[i];
    number = number * mesh->sizes[axis] +
             place / mesh->strides[axis] % mesh->sizes[axis];
  }
  return number;
}

// How far place |number| along the axes of |order| is from the first.
static int64_t offset_of(const pestle_mesh_t* mesh,
                         const pestle_axis_order_t* order, int64_t number) {
  int64_t offset = 0;
  for (int i = order->count; i-- > 0;) {
    int axis = order->axes[i];
    offset += number % mesh->sizes[axis] * mesh->strides[axis];
    number /= mesh->sizes[axis];
  }
  return offset;
}

static int32_t process_at(const pestle_mesh_t* mesh, int64_t place) {
  return mesh->processes ? mesh->processes[place] : (int32_t)place;
}

pestle_status_t pestle_mesh_groups(const pestle_mesh_t* mesh,
                                   const pestle_axis_order_t* order,
                                   pestle_arena_t* arena,
                                   pestle_elements_t* out) {
  int64_t size = pestle_axis_order_parts(mesh, order), n = 0;
  int64_t dims[2] = {mesh->count / size, size};
  int64_t* rows = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)mesh->count);
  if (!rows) return PESTLE_OOM();
  for (int64_t place = 0; place < mesh->count; ++place) {
    if (pestle_mesh_number(mesh, place, order) != 0) continue;
    for (int64_t k = 0; k < size; ++k)
      rows[n++] = process_at(mesh, place + offset_of(mesh, order, k));
  }
  *out = (pestle_elements_t){.type = pestle_type_make(PESTLE_I64, 2, dims),
                             .data = rows,
                             .size = (size_t)mesh->count * sizeof(*rows)};
  return NULL;
}

pestle_status_t pestle_spread_processes(const pestle_mesh_t* mesh,
                                        const pestle_spread_t* s, int32_t rank,
                                        pestle_arena_t* arena,
                                        pestle_sharding_t* out) {
  pestle_axis_order_t all = {.count = 0};
  *out = (pestle_sharding_t){.rank = rank,
                             .sums = 1,
                             .copies = 1,
                             .count = mesh->count,
                             .replicated = pestle_spread_is_whole(s)};
  for (int d = 0; d < rank; ++d) {
    pestle_axis_order_t order = pestle_spread_dim(s, d);
    out->tiles[d] = pestle_axis_order_parts(mesh, &order);
    for (int i = 0; i < order.count; ++i)
      all.axes[all.count++] = order.axes[i];
  }
  for (int kind = PESTLE_AXIS_SUM; kind <= PESTLE_AXIS_FREE; ++kind) {
    for (int i = 0; i < mesh->axis_count; ++i) {
      if (s->places[i] != kind) continue;
      all.axes[all.count++] = (uint8_t)i;
      *(kind == PESTLE_AXIS_SUM ? &out->sums : &out->copies) *= mesh->sizes[i];
    }
  }
  int32_t* processes =
      PESTLE_ARENA_ARRAY(arena, int32_t, (size_t)mesh->count + 1);
  if (!processes) return PESTLE_OOM();
  for (int64_t i = 0; i < mesh->count; ++i)
    processes[i] = process_at(mesh, offset_of(mesh, &all, i));
  out->processes = processes;
  return NULL;
}
