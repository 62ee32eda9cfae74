// SPDX-License-Identifier: Apache-2.0
#include "ir/mesh_axes.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/sharding_text.h"

typedef pestle_generic_value_t value_t;
typedef pestle_mesh_text_t mesh_t;

enum { MAX_DEVICES = 1 << 20 };

// Axes of a mesh, or parts of them, by the places between neighbours along them.
typedef struct digits_t {
  int64_t sizes[PESTLE_MESH_TEXT_AXES];
  int64_t strides[PESTLE_MESH_TEXT_AXES];
  int count;
} digits_t;

static bool is_number(const value_t* value) {
  return value && value->kind == PESTLE_GENERIC_INT;
}

static bool is_list(const value_t* value) {
  return value && value->kind == PESTLE_GENERIC_LIST;
}

bool pestle_is_mesh_axes(const value_t* value) {
  return value->kind == PESTLE_GENERIC_DICT &&
         pestle_generic_find(value, "mesh") &&
         is_list(pestle_generic_find(value, "axes"));
}

static pestle_status_t damaged(const char* what) {
  return PESTLE_ERROR(
      MALFORMED,
      "'replica_groups' as axes of a mesh: %s; they are "
      "<mesh = @NAME, axes = [#stablehlo.axis_ref<name = \"x\">]>",
      what);
}

// --- The mesh ---

// #stablehlo.mesh<axes = [<name = "x", size = 2>], device_ids = dense<..>>
static pestle_status_t read_mesh(const value_t* value, mesh_t* out) {
  const value_t* axes = pestle_generic_find(value, "axes");
  *out = (mesh_t){.count = 0};
  if (!is_list(axes)) return damaged("a mesh without axes");
  for (const pestle_generic_entry_t* e = axes->entries; e; e = e->next) {
    if (out->count == PESTLE_MESH_TEXT_AXES)
      return damaged("a mesh of more than 16 axes");
    if (e->value.kind != PESTLE_GENERIC_DICT)
      return damaged("an axis of a mesh that is no name and size");
    const value_t* name = pestle_generic_find(&e->value, "name");
    const value_t* size = pestle_generic_find(&e->value, "size");
    if (!name || name->kind != PESTLE_GENERIC_STRING || !is_number(size) ||
        size->i64 < 1) {
      return damaged("an axis of a mesh that is no name and size");
    }
    out->names[out->count] = name->text;
    out->sizes[out->count++] = size->i64;
  }
  return NULL;
}

static pestle_status_t count_devices(const mesh_t* mesh, int64_t* out) {
  *out = 1;
  for (int i = 0; i < mesh->count; ++i) {
    if (mesh->sizes[i] > MAX_DEVICES / *out)
      return damaged("a mesh of more than 1,048,576 devices");
    *out *= mesh->sizes[i];
  }
  return NULL;
}

// The number of the device at each place of a mesh that is written with the groups.
static pestle_status_t read_ids(const value_t* ids, int64_t count, bool* seen,
                                int32_t* out) {
  const pestle_elements_t* e = &ids->elements;
  size_t size = ids->kind == PESTLE_GENERIC_ELEMENTS
                    ? pestle_dtype_size(e->type.dtype)
                    : 0;
  bool fits = size && size <= 8 &&
              pestle_dtype_is(e->type.dtype, PESTLE_KIND_INT) &&
              pestle_type_count(&e->type) == count && (!e->splat || count == 1);
  for (int64_t i = 0; i < count && fits; ++i) {
    int64_t id = 0;
    memcpy(&id, (const char*)e->data + (size_t)i * size, size);
    fits = id >= 0 && id < count && !seen[id];
    if (fits) seen[id] = true;
    out[i] = (int32_t)id;
  }
  return fits ? NULL
              : damaged("device_ids that are not each of its devices once");
}

static pestle_status_t make_ids(const mesh_t* mesh, const value_t* ids,
                                int64_t count, pestle_arena_t* arena,
                                int32_t** out) {
  bool* seen = PESTLE_ARENA_ARRAY(arena, bool, (size_t)count);
  *out = PESTLE_ARENA_ARRAY(arena, int32_t, (size_t)count);
  if (!seen || !*out) return PESTLE_OOM();
  if (ids) return read_ids(ids, count, seen, *out);
  if (mesh->ids.size) return pestle_mesh_text_ids(mesh, count, seen, *out);
  for (int64_t i = 0; i < count; ++i)
    (*out)[i] = (int32_t)i;
  return NULL;
}

// --- Axes ---

static int64_t stride_of(const mesh_t* mesh, int axis) {
  int64_t stride = 1;
  for (int i = axis + 1; i < mesh->count; ++i)
    stride *= mesh->sizes[i];
  return stride;
}

// Adds what |ref|, a name or an axis_ref, stands for.
static pestle_status_t add_axis(const mesh_t* mesh, const value_t* ref,
                                digits_t* out) {
  const value_t *name = ref, *sub = NULL;
  if (ref->kind == PESTLE_GENERIC_DICT) {
    name = pestle_generic_find(ref, "name");
    sub = pestle_generic_find(ref, "sub_axis_info");
  }
  if (!name || name->kind != PESTLE_GENERIC_STRING)
    return damaged("an axis without a name");
  int axis = 0;
  while (axis < mesh->count && !pestle_str_equal(mesh->names[axis], name->text))
    ++axis;
  if (axis == mesh->count) {
    return PESTLE_ERROR(MALFORMED,
                        "'replica_groups' name the axis '%.*s', which their "
                        "mesh has not",
                        name->text.size > 60 ? 60 : (int)name->text.size,
                        name->text.data);
  }
  int64_t whole = mesh->sizes[axis], before = 1, size = whole;
  if (sub) {
    const value_t *first = NULL, *second = NULL;
    if (sub->kind == PESTLE_GENERIC_DICT) {
      first = pestle_generic_find(sub, "pre_size");
      second = pestle_generic_find(sub, "size");
    }
    if (!is_number(first) || !is_number(second))
      return damaged("a part of an axis that is not (BEFORE)SIZE");
    before = first->i64;
    size = second->i64;
    if (!pestle_axis_has_part(whole, before, size))
      return damaged("a part of an axis that does not divide it");
  }
  if (out->count == PESTLE_MESH_TEXT_AXES) return damaged("more than 16 axes");
  out->sizes[out->count] = size;
  out->strides[out->count++] =
      stride_of(mesh, axis) * (whole / (before * size));
  return NULL;
}

static bool is_first(const digits_t* digits, int64_t place) {
  for (int i = 0; i < digits->count; ++i) {
    if (place / digits->strides[i] % digits->sizes[i] != 0) return false;
  }
  return true;
}

static int64_t member_at(const digits_t* digits, int64_t member) {
  int64_t offset = 0;
  for (int i = digits->count; i-- > 0; member /= digits->sizes[i])
    offset += member % digits->sizes[i] * digits->strides[i];
  return offset;
}

pestle_status_t pestle_mesh_axes_groups(const pestle_module_t* module,
                                        const value_t* value,
                                        pestle_arena_t* arena,
                                        pestle_elements_t* out) {
  const value_t* named = pestle_generic_find(value, "mesh");
  const value_t* ids = NULL;
  digits_t digits = {.count = 0};
  mesh_t mesh;
  int64_t count, members = 1, n = 0;
  int32_t* devices;
  if (named->kind == PESTLE_GENERIC_DICT) {
    PESTLE_TRY(read_mesh(named, &mesh));
    ids = pestle_generic_find(named, "device_ids");
  } else if (named->kind == PESTLE_GENERIC_SYMBOL ||
             named->kind == PESTLE_GENERIC_STRING) {
    PESTLE_TRY(pestle_mesh_text_find(module, named->text, &mesh));
  } else {
    return damaged("a mesh that is neither a name nor axes");
  }
  PESTLE_TRY(count_devices(&mesh, &count));
  PESTLE_TRY(make_ids(&mesh, ids, count, arena, &devices));
  const value_t* axes = pestle_generic_find(value, "axes");
  for (const pestle_generic_entry_t* e = axes->entries; e; e = e->next) {
    PESTLE_TRY(add_axis(&mesh, &e->value, &digits));
    members *= digits.sizes[digits.count - 1];
    if (members > count) return damaged("axes that overlap");
  }
  int64_t* rows = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)count);
  if (!rows) return PESTLE_OOM();
  for (int64_t place = 0; place < count; ++place) {
    if (!is_first(&digits, place)) continue;
    for (int64_t k = 0; k < members; ++k, ++n) {
      int64_t at = place + member_at(&digits, k);
      if (n == count || at >= count) return damaged("axes that overlap");
      rows[n] = devices[at];
    }
  }
  if (n != count) return damaged("axes that overlap");
  int64_t dims[2] = {count / members, members};
  *out = (pestle_elements_t){.type = pestle_type_make(PESTLE_I64, 2, dims),
                             .data = rows,
                             .size = (size_t)count * sizeof(*rows)};
  return NULL;
}
