// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "ir/collective.h"
#include "ir/internal.h"

enum { MOST_AXES = 16 };

// --- Meshes ---

pestle_status_t pestle_module_add_mesh(pestle_module_t* module,
                                       pestle_str_t name, pestle_str_t text) {
  uint32_t count = module->meshes.count;
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(&module->arena, pestle_dialect_attr_t, count + 1);
  if (!data) return PESTLE_OOM();
  if (count) memcpy(data, module->meshes.data, count * sizeof(*data));
  data[count].key = pestle_arena_strndup(&module->arena, name);
  data[count].text = pestle_arena_strndup(&module->arena, text);
  if (!data[count].key || !data[count].text) return PESTLE_OOM();
  module->meshes = (pestle_dialect_attrs_t){data, count + 1};
  return NULL;
}

typedef struct mesh_t {
  pestle_str_t names[MOST_AXES];
  int64_t sizes[MOST_AXES];
  int count;
  // "device_ids=[..]": numbers of processes in the order of the mesh, or none.
  pestle_str_t ids;
} mesh_t;

// --- Reading texts ---

typedef struct scan_t {
  const char *at, *end;
} scan_t;

static void skip_space(scan_t* s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t'))
    ++s->at;
}

static bool take(scan_t* s, const char* text) {
  size_t n = strlen(text);
  skip_space(s);
  if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0) return false;
  s->at += n;
  return true;
}

static bool take_name(scan_t* s, pestle_str_t* out) {
  if (!take(s, "\"")) return false;
  const char* begin = s->at;
  while (s->at < s->end && *s->at != '"')
    ++s->at;
  *out = pestle_str_make(begin, (size_t)(s->at - begin));
  return take(s, "\"");
}

static bool take_number(scan_t* s, int64_t* out) {
  skip_space(s);
  const char* begin = s->at;
  while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
    ++s->at;
  return pestle_str_parse_i64(pestle_str_make(begin, (size_t)(s->at - begin)),
                              out);
}

static pestle_status_t unknown(pestle_str_t text) {
  int size = text.size > 200 ? 200 : (int)text.size;
  return PESTLE_ERROR(UNSUPPORTED,
                      "the sharding '%.*s' is none of whole axes of a mesh, "
                      "which are those that are understood here",
                      size, text.data);
}

// "<["x"=4, "y"=2]>"
static pestle_status_t read_mesh(const char* text, mesh_t* out) {
  scan_t s = {text, text + strlen(text)};
  *out = (mesh_t){.count = 0};
  const char* open = strchr(text, '[');
  if (open) s.at = open;
  bool good = take(&s, "[");
  while (good && !take(&s, "]")) {
    good = out->count < MOST_AXES && take_name(&s, &out->names[out->count]) &&
           take(&s, "=") && take_number(&s, &out->sizes[out->count]) &&
           out->sizes[out->count] > 0;
    if (good) ++out->count;
    (void)take(&s, ",");
  }
  if (good && take(&s, ",")) {
    good = take(&s, "device_ids") && take(&s, "=") && take(&s, "[");
    const char* begin = s.at;
    while (good && s.at < s.end && *s.at != ']')
      ++s.at;
    out->ids = pestle_str_make(begin, (size_t)(s.at - begin));
    good = good && take(&s, "]");
  }
  if (good && take(&s, ">")) return NULL;
  return unknown(pestle_str(text));
}

static pestle_status_t find_mesh(const pestle_module_t* module,
                                 pestle_str_t name, mesh_t* out) {
  for (uint32_t i = 0; i < module->meshes.count; ++i) {
    if (!pestle_str_equal_c(name, module->meshes.data[i].key)) continue;
    return read_mesh(module->meshes.data[i].text, out);
  }
  return PESTLE_ERROR(MALFORMED, "the module has no mesh '%.*s'",
                      name.size > 60 ? 60 : (int)name.size, name.data);
}

typedef struct spec_t {
  mesh_t mesh;
  int dims[PESTLE_MAX_RANK][MOST_AXES];  // numbers of axes
  int counts[PESTLE_MAX_RANK];
  int rank;
  bool summed[MOST_AXES];  // axes along which there are summands
} spec_t;

static int axis_of(const mesh_t* mesh, pestle_str_t name) {
  for (int i = 0; i < mesh->count; ++i) {
    if (pestle_str_equal(mesh->names[i], name)) return i;
  }
  return -1;
}

// "{"x", "y"}p1", "{?}"
static bool read_dim(scan_t* s, spec_t* spec) {
  int* count = &spec->counts[spec->rank];
  pestle_str_t name;
  int64_t priority;
  *count = 0;
  if (!take(s, "{")) return false;
  while (!take(s, "}")) {
    if (take(s, "?")) continue;
    if (!take_name(s, &name) || *count == MOST_AXES) return false;
    int axis = axis_of(&spec->mesh, name);
    if (axis < 0 || take(s, ":")) return false;  // a part of an axis
    spec->dims[spec->rank][(*count)++] = axis;
    (void)take(s, ",");
  }
  if (take(s, "p")) return take_number(s, &priority);
  return true;
}

// -1: none, or a part of one.
static int take_axis(scan_t* s, const mesh_t* mesh) {
  pestle_str_t name;
  if (!take_name(s, &name)) return -1;
  return take(s, ":") ? -1 : axis_of(mesh, name);
}

// "{"x"}": the axes that |spec| is about; nothing for all of them.
static bool keep_axes(scan_t* s, spec_t* spec) {
  bool kept[MOST_AXES] = {false};
  const char* open = memchr(s->at, '"', (size_t)(s->end - s->at));
  skip_space(s);
  if (s->at == s->end) return true;
  if (open) s->at = open;
  while (open && s->at < s->end && *s->at == '"') {
    int axis = take_axis(s, &spec->mesh);
    if (axis < 0) return false;
    kept[axis] = true;
    (void)take(s, ",");
    skip_space(s);
  }
  for (int d = 0; d < spec->rank; ++d) {
    int n = 0;
    for (int k = 0; k < spec->counts[d]; ++k) {
      if (kept[spec->dims[d][k]]) spec->dims[d][n++] = spec->dims[d][k];
    }
    spec->counts[d] = n;
  }
  for (int i = 0; i < MOST_AXES; ++i)
    spec->summed[i] &= kept[i];
  return true;
}

static pestle_status_t read_spec(const pestle_module_t* module,
                                 pestle_str_t text, spec_t* spec) {
  scan_t s = {text.data, text.data + text.size};
  size_t open = pestle_str_find_char(text, '<');
  if (open == SIZE_MAX) return unknown(text);
  s.at += open + 1;
  if (!take(&s, "@")) return unknown(text);
  bool quoted = take(&s, "\"");
  const char* begin = s.at;
  while (s.at < s.end && *s.at != (quoted ? '"' : ',') && *s.at != '>')
    ++s.at;
  pestle_str_t name = pestle_str_make(begin, (size_t)(s.at - begin));
  if (quoted) (void)take(&s, "\"");
  PESTLE_TRY(find_mesh(module, name, &spec->mesh));
  if (!take(&s, ",") || !take(&s, "[")) return unknown(text);
  while (!take(&s, "]")) {
    if (spec->rank == PESTLE_MAX_RANK || !read_dim(&s, spec))
      return unknown(text);
    ++spec->rank;
    (void)take(&s, ",");
  }
  while (take(&s, ",")) {
    bool sums = take(&s, "unreduced");
    if (!sums && !take(&s, "replicated")) return unknown(text);
    if (!take(&s, "=") || !take(&s, "{")) return unknown(text);
    while (!take(&s, "}")) {
      int axis = take_axis(&s, &spec->mesh);
      if (axis < 0) return unknown(text);
      spec->summed[axis] |= sums;
      (void)take(&s, ",");
    }
  }
  if (!take(&s, ">")) return unknown(text);
  return keep_axes(&s, spec) ? NULL : unknown(text);
}

// --- Processes ---

// From places in the mesh to the processes that its list says are there.
static pestle_status_t renumber(const mesh_t* mesh, int32_t* list,
                                int64_t total, pestle_arena_t* arena) {
  scan_t s = {mesh->ids.data, mesh->ids.data + mesh->ids.size};
  int32_t* ids = PESTLE_ARENA_ARRAY(arena, int32_t, (size_t)total + 1);
  bool* seen = PESTLE_ARENA_ARRAY(arena, bool, (size_t)total + 1);
  if (!ids || !seen) return PESTLE_OOM();
  memset(seen, 0, (size_t)total);
  for (int64_t i = 0; i < total; ++i, (void)take(&s, ",")) {
    int64_t id;
    if (!take_number(&s, &id) || id < 0 || id >= total || seen[id]) {
      return PESTLE_ERROR(MALFORMED,
                          "the devices of a mesh, [%.*s], are not each of "
                          "%" PRId64 " numbers once",
                          (int)(mesh->ids.size > 200 ? 200 : mesh->ids.size),
                          mesh->ids.data, total);
    }
    seen[id] = true;
    ids[i] = (int32_t)id;
  }
  for (int64_t i = 0; i < total; ++i)
    list[i] = ids[list[i]];
  return NULL;
}

// Numbers of processes in the order of |order|, axes of the mesh from the slowest.
static pestle_status_t list_processes(const mesh_t* mesh, const int* order,
                                      pestle_arena_t* arena,
                                      pestle_sharding_t* out) {
  int64_t stride[MOST_AXES], at[MOST_AXES] = {0}, total = 1;
  for (int i = mesh->count; i-- > 0;) {
    stride[i] = total;
    total *= mesh->sizes[i];
  }
  int32_t* list = PESTLE_ARENA_ARRAY(arena, int32_t, (size_t)total + 1);
  if (!list) return PESTLE_OOM();
  for (int64_t n = 0; n < total; ++n) {
    int64_t process = 0;
    for (int i = 0; i < mesh->count; ++i)
      process += at[i] * stride[order[i]];
    list[n] = (int32_t)process;
    for (int i = mesh->count; i-- > 0;) {
      if (++at[i] < mesh->sizes[order[i]]) break;
      at[i] = 0;
    }
  }
  out->processes = list;
  out->count = total;
  return mesh->ids.size ? renumber(mesh, list, total, arena) : NULL;
}

static pestle_status_t finish(const pestle_module_t* module, const spec_t* spec,
                              pestle_str_t text, pestle_arena_t* arena,
                              pestle_sharding_t* out) {
  int order[MOST_AXES], n = 0;
  bool used[MOST_AXES] = {false};
  int64_t tiles = 1, total = 1;
  for (int i = 0; i < spec->mesh.count; ++i) {
    if (!pestle_checked_mul_i64(total, spec->mesh.sizes[i], &total))
      return unknown(text);
  }
  pestle_world_shape_t world = pestle_module_world(module);
  for (int d = 0; d < spec->rank; ++d) {
    out->tiles[d] = 1;
    for (int k = 0; k < spec->counts[d]; ++k) {
      int axis = spec->dims[d][k];
      if (used[axis]) return unknown(text);
      used[axis] = true;
      order[n++] = axis;
      out->tiles[d] *= spec->mesh.sizes[axis];
    }
    tiles *= out->tiles[d];
  }
  for (int i = 0; i < spec->mesh.count; ++i) {
    if (!spec->summed[i]) continue;
    if (used[i]) return unknown(text);
    used[i] = true;
    order[n++] = i;
    out->sums *= spec->mesh.sizes[i];
  }
  if (tiles * out->sums == 1) {
    out->replicated = true;
    return NULL;
  }
  if (world.replicas != 1 || total != world.partitions) {
    return PESTLE_ERROR(MALFORMED,
                        "a mesh of %" PRId64
                        " devices in a module of %d partitions and %d replicas",
                        total, (int)world.partitions, (int)world.replicas);
  }
  for (int i = 0; i < spec->mesh.count; ++i) {
    if (!used[i]) order[n++] = i;
  }
  out->copies = total / tiles / out->sums;
  return list_processes(&spec->mesh, order, arena, out);
}

pestle_status_t pestle_sharding_parse(const pestle_module_t* module,
                                      pestle_str_t text,
                                      const pestle_type_t* type,
                                      pestle_arena_t* arena,
                                      pestle_sharding_t* out) {
  spec_t spec = {.rank = 0};
  *out = (pestle_sharding_t){.rank = type->rank, .sums = 1, .copies = 1};
  PESTLE_TRY(read_spec(module, text, &spec));
  if (spec.rank != type->rank) {
    return PESTLE_ERROR(MALFORMED,
                        "a sharding of %d dimensions of a tensor that has %d",
                        spec.rank, (int)type->rank);
  }
  PESTLE_TRY(finish(module, &spec, text, arena, out));
  for (int d = 0; d < spec.rank && !out->replicated; ++d) {
    if (type->dims[d] % out->tiles[d] == 0) continue;
    return PESTLE_ERROR(UNSUPPORTED,
                        "dimension %d of %" PRId64
                        " elements is to lie in %" PRId64
                        " parts, which would differ",
                        d, type->dims[d], out->tiles[d]);
  }
  return NULL;
}

pestle_str_t pestle_sharding_of_list(pestle_str_t list, size_t index) {
  int depth = 0;
  size_t found = 0;
  const char* begin = NULL;
  for (size_t i = 0; i < list.size; ++i) {
    // Per value: "#sdy.sharding_per_value<[<..>, <..>]>".
    char c = list.data[i];
    if (c == '[' && !depth && !begin) {
      depth = 1;
    } else if (c == '<' && depth == 1) {
      begin = list.data + i;
      depth = 2;
    } else if (c == '>' && depth == 2) {
      if (found++ == index)
        return pestle_str_make(begin, (size_t)(list.data + i + 1 - begin));
      depth = 1;
    }
  }
  return pestle_str_make("", 0);
}

// --- What it says ---

static pestle_str_t text_at(const pestle_generic_value_t* dict,
                            const char* key) {
  const pestle_generic_value_t* value = pestle_generic_find(dict, key);
  return value ? value->whole : pestle_str_make("", 0);
}

pestle_shardings_t pestle_shardings_read(const pestle_generic_value_t* dict) {
  return (pestle_shardings_t){.in = text_at(dict, "in_shardings"),
                              .out = text_at(dict, "out_shardings"),
                              .axes = text_at(dict, "manual_axes")};
}

bool pestle_sharding_equal(const pestle_sharding_t* a,
                           const pestle_sharding_t* b) {
  if (a->replicated || b->replicated) return a->replicated == b->replicated;
  return a->rank == b->rank && a->copies == b->copies && a->sums == b->sums &&
         a->count == b->count &&
         !memcmp(a->tiles, b->tiles, (size_t)a->rank * sizeof(*a->tiles)) &&
         !memcmp(a->processes, b->processes,
                 (size_t)a->count * sizeof(*a->processes));
}

pestle_type_t pestle_sharding_local(const pestle_sharding_t* sharding,
                                    const pestle_type_t* type) {
  pestle_type_t local = *type;
  for (int32_t i = 0; i < type->rank && !sharding->replicated; ++i)
    local.dims[i] /= sharding->tiles[i];
  return local;
}

const char* pestle_sharding_text(const pestle_sharding_t* s,
                                 pestle_arena_t* arena) {
  if (s->replicated) return pestle_arena_strdup(arena, "{replicated}");
  if (s->sums == s->count) return pestle_arena_strdup(arena, "{unreduced}");
  pestle_strbuf_t text;
  pestle_strbuf_init(arena->allocator, &text);
  pestle_strbuf_append_c(&text, "{devices=[");
  for (int32_t i = 0; i < s->rank; ++i)
    pestle_strbuf_appendf(&text, "%s%" PRId64, i ? "," : "", s->tiles[i]);
  if (s->sums > 1)
    pestle_strbuf_appendf(&text, s->rank ? ",%" PRId64 : "%" PRId64, s->sums);
  if (s->copies > 1) pestle_strbuf_appendf(&text, ",%" PRId64, s->copies);
  pestle_strbuf_append_char(&text, ']');
  for (int64_t i = 0; i < s->count; ++i)
    pestle_strbuf_appendf(&text, "%s%" PRId32, i ? "," : "", s->processes[i]);
  if (s->sums > 1) {
    pestle_strbuf_appendf(&text, " last_tile_dims={unreduced%s}",
                          s->copies > 1 ? ", replicated" : "");
  } else if (s->copies > 1) {
    pestle_strbuf_append_c(&text, " last_tile_dim_replicate");
  }
  pestle_strbuf_append_char(&text, '}');
  const char* out =
      text.failed ? NULL
                  : pestle_arena_strndup(arena, pestle_strbuf_view(&text));
  pestle_strbuf_deinit(&text);
  return out;
}
