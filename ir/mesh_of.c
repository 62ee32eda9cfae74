// SPDX-License-Identifier: Apache-2.0
// One mesh for all that a module's texts name: see spread.h.
//
//   <["x"=4, "y"=2]>, <["z"=8]>, "x":(1)2   ->   axes of 2, 2, 2
//
// A cut is a number of places: one axis counts from each cut to the next larger one. All
// axes of all meshes begin and end at cuts, so each is one axis or some neighbours.
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "ir/spread.h"

typedef pestle_mesh_maker_t maker_t;

void pestle_mesh_maker_init(const pestle_module_t* module,
                            pestle_arena_t* arena, maker_t* out) {
  *out = (maker_t){.module = module, .arena = arena};
}

static bool add_cut(maker_t* m, int64_t cut) {
  for (int i = 0; i < m->cut_count; ++i) {
    if (m->cuts[i] == cut) return true;
  }
  if (m->cut_count == 2 * PESTLE_MESH_TEXT_AXES) return false;
  int at = m->cut_count++;
  for (; at > 0 && m->cuts[at - 1] > cut; --at)
    m->cuts[at] = m->cuts[at - 1];
  m->cuts[at] = cut;
  return true;
}

static int64_t places_of(const pestle_mesh_text_t* mesh) {
  int64_t total = 1;
  for (int i = 0; i < mesh->count; ++i) {
    if (mesh->sizes[i] > (1 << 20) / total) return 0;
    total *= mesh->sizes[i];
  }
  return total;
}

static int64_t stride_of(const pestle_mesh_text_t* mesh, int axis) {
  int64_t stride = 1;
  for (int i = axis + 1; i < mesh->count; ++i)
    stride *= mesh->sizes[i];
  return stride;
}

// The places that one step along |part| is.
static int64_t step_of(const pestle_mesh_text_t* mesh,
                       const pestle_axis_part_t* part) {
  return stride_of(mesh, part->axis) * mesh->sizes[part->axis] /
         (part->before * part->size);
}

static bool add_list(maker_t* m, const pestle_mesh_text_t* mesh,
                     const pestle_axis_list_t* list) {
  for (int i = 0; i < list->count; ++i) {
    int64_t step = step_of(mesh, &list->data[i]);
    if (!add_cut(m, step) || !add_cut(m, step * list->data[i].size))
      return false;
  }
  return true;
}

static bool same_text(pestle_str_t a, pestle_str_t b) {
  return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

pestle_status_t pestle_mesh_maker_is_other(const maker_t* m, pestle_str_t text,
                                           bool* out_other) {
  pestle_sharding_text_t t;
  PESTLE_TRY(pestle_sharding_text_read(m->module, text, &t));
  *out_other = m->total && places_of(&t.mesh) == m->total &&
               !same_text(m->ids, t.mesh.ids);
  return NULL;
}

pestle_status_t pestle_mesh_maker_see(maker_t* m, pestle_str_t text) {
  pestle_sharding_text_t t;
  PESTLE_TRY(pestle_sharding_text_read(m->module, text, &t));
  int64_t total = places_of(&t.mesh);
  pestle_world_shape_t world = pestle_module_world(m->module);
  // Of one device, or of none: it says that a value is whole.
  if (total == 1 && world.partitions > 1) return NULL;
  if (world.replicas != 1 || total != world.partitions) {
    return PESTLE_ERROR(MALFORMED,
                        "a mesh of %" PRId64
                        " devices in a module of %d partitions and %d "
                        "replicas: mhlo.num_partitions is the mesh's number",
                        total, (int)world.partitions, (int)world.replicas);
  }
  if (!m->total) {
    m->first = t.mesh;
    m->ids = t.mesh.ids;
  }
  if (m->total && !same_text(m->ids, t.mesh.ids)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "two meshes number the devices in different orders");
  }
  m->total = total;
  bool good = true;
  for (int i = 0; i < t.mesh.count; ++i) {
    int64_t stride = stride_of(&t.mesh, i);
    good = good && add_cut(m, stride) && add_cut(m, stride * t.mesh.sizes[i]);
  }
  for (int d = 0; d < t.rank; ++d)
    good = good && add_list(m, &t.mesh, &t.dims[d]);
  good = good && add_list(m, &t.mesh, &t.sums) &&
         add_list(m, &t.mesh, &t.fixed) && add_list(m, &t.mesh, &t.manual);
  return good ? NULL : pestle_sharding_unknown(text);
}

// The axis of the first mesh that counts like this one, or a part of it.
static const char* name_of(const maker_t* m, int64_t stride, int64_t size) {
  for (int i = 0; i < m->first.count; ++i) {
    int64_t begin = stride_of(&m->first, i);
    int64_t end = begin * m->first.sizes[i];
    if (stride < begin || stride * size > end) continue;
    int length =
        (int)(m->first.names[i].size > 60 ? 60 : m->first.names[i].size);
    pestle_strbuf_t text;
    pestle_strbuf_init(m->arena->allocator, &text);
    pestle_strbuf_appendf(&text, "%.*s", length, m->first.names[i].data);
    if (stride != begin || stride * size != end)
      pestle_strbuf_appendf(&text, ":(%" PRId64 ")%" PRId64,
                            end / (stride * size), size);
    const char* name =
        text.failed ? NULL
                    : pestle_arena_strndup(m->arena, pestle_strbuf_view(&text));
    pestle_strbuf_deinit(&text);
    return name;
  }
  return "?";
}

static pestle_status_t read_ids(maker_t* m) {
  int32_t* ids = PESTLE_ARENA_ARRAY(m->arena, int32_t, (size_t)m->total + 1);
  bool* seen = PESTLE_ARENA_ARRAY(m->arena, bool, (size_t)m->total + 1);
  if (!ids || !seen) return PESTLE_OOM();
  PESTLE_TRY(pestle_mesh_text_ids(&m->first, m->total, seen, ids));
  m->mesh.processes = ids;
  return NULL;
}

pestle_status_t pestle_mesh_maker_finish(maker_t* m) {
  m->mesh.count = m->total;
  if (!m->total) return NULL;
  int n = 0;
  for (int i = m->cut_count; i-- > 1;) {
    int64_t stride = m->cuts[i - 1], size = m->cuts[i] / stride;
    if (m->cuts[i] % stride != 0) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "the meshes of the module do not divide its devices "
                          "along the same axes");
    }
    if (n == PESTLE_MESH_AXES) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "the meshes of the module have more than %d axes",
                          PESTLE_MESH_AXES);
    }
    m->mesh.sizes[n] = size;
    m->mesh.strides[n] = stride;
    m->mesh.names[n] = name_of(m, stride, size);
    if (!m->mesh.names[n++]) return PESTLE_OOM();
  }
  m->mesh.axis_count = n;
  return m->ids.size ? read_ids(m) : NULL;
}

// Appends the mesh's axes that |part| is, the slowest first; false: one is there twice.
static bool append(const maker_t* m, const pestle_mesh_text_t* mesh,
                   const pestle_axis_part_t* part, pestle_axes_t* used,
                   pestle_axis_order_t* out) {
  int64_t begin = step_of(mesh, part), end = begin * part->size;
  for (int i = 0; i < m->mesh.axis_count; ++i) {
    if (m->mesh.strides[i] < begin || m->mesh.strides[i] >= end) continue;
    if (pestle_axes_has(*used, i)) return false;
    *used |= pestle_axis_bit(i);
    out->axes[out->count++] = (uint8_t)i;
  }
  return true;
}

static bool append_all(const maker_t* m, const pestle_mesh_text_t* mesh,
                       const pestle_axis_list_t* list, pestle_axes_t* used,
                       pestle_axis_order_t* out) {
  out->count = 0;
  for (int i = 0; i < list->count; ++i) {
    if (!append(m, mesh, &list->data[i], used, out)) return false;
  }
  return true;
}

static pestle_status_t read_text(const maker_t* m, pestle_str_t text,
                                 const pestle_type_t* type,
                                 pestle_spread_t* out,
                                 pestle_axes_t* out_manual) {
  pestle_sharding_text_t t;
  pestle_axis_order_t order;
  pestle_axes_t used = 0, none = 0;
  *out = pestle_spread_whole();
  *out_manual = 0;
  PESTLE_TRY(pestle_sharding_text_read(m->module, text, &t));
  if (t.rank != type->rank) {
    return PESTLE_ERROR(MALFORMED,
                        "a sharding of %d dimensions of a tensor that has "
                        "%d: it has an entry for each",
                        t.rank, (int)type->rank);
  }
  if (places_of(&t.mesh) != m->total) {
    // An empty mesh: what is open stays so.
    pestle_sharding_text_t bare = {.rank = t.rank};
    memcpy(bare.open, t.open, sizeof(bare.open));
    t = bare;
  }
  for (int d = 0; d < t.rank; ++d) {
    if (!append_all(m, &t.mesh, &t.dims[d], &used, &order))
      return pestle_sharding_unknown(text);
    pestle_spread_set_dim(out, d, &order);
    if (!t.open[d]) out->closed |= (uint16_t)(1u << d);
  }
  if (!append_all(m, &t.mesh, &t.sums, &used, &order))
    return pestle_sharding_unknown(text);
  pestle_spread_set_sums(out, pestle_axis_order_set(&order),
                         PESTLE_COMBINE_ADD);
  if (!append_all(m, &t.mesh, &t.fixed, &used, &order))
    return pestle_sharding_unknown(text);
  out->fixed = pestle_axis_order_set(&order);
  if (!append_all(m, &t.mesh, &t.manual, &none, &order))
    return pestle_sharding_unknown(text);
  *out_manual = pestle_axis_order_set(&order);
  return NULL;
}

pestle_status_t pestle_mesh_maker_read(const maker_t* m, pestle_str_t text,
                                       const pestle_type_t* type,
                                       pestle_spread_t* out,
                                       pestle_axes_t* out_manual) {
  PESTLE_TRY(read_text(m, text, type, out, out_manual));
  int d;
  if (pestle_spread_fits(&m->mesh, out, type, &d)) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "dimension %d of %" PRId64
                      " elements is to lie in %" PRId64
                      " parts, which would differ",
                      d, type->dims[d], pestle_spread_parts(&m->mesh, out, d));
}

pestle_status_t pestle_mesh_maker_read_wish(const maker_t* m, pestle_str_t text,
                                            const pestle_type_t* type,
                                            pestle_spread_t* out) {
  pestle_axes_t manual;
  int d;
  PESTLE_TRY(read_text(m, text, type, out, &manual));
  while (!pestle_spread_fits(&m->mesh, out, type, &d)) {
    pestle_axis_order_t order = pestle_spread_dim(out, d);
    --order.count;
    pestle_spread_set_dim(out, d, &order);
  }
  return NULL;
}
