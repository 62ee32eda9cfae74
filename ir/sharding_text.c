// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding_text.h"

#include <inttypes.h>
#include <string.h>

#include "ir/sharding.h"

typedef pestle_mesh_text_t mesh_t;
typedef pestle_axis_list_t list_t;

// --- Reading ---

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

pestle_status_t pestle_sharding_unknown(pestle_str_t text) {
  int size = text.size > 200 ? 200 : (int)text.size;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "the sharding '%.*s' is none of axes of a mesh, which are "
      "those that are understood here",
      size, text.data);
}

// --- Meshes ---

static int axis_of(const mesh_t* mesh, pestle_str_t name) {
  for (int i = 0; i < mesh->count; ++i) {
    if (pestle_str_equal(mesh->names[i], name)) return i;
  }
  return -1;
}

pestle_status_t pestle_mesh_text_read(const char* text, mesh_t* out) {
  scan_t s = {text, text + strlen(text)};
  *out = (mesh_t){.count = 0};
  const char* open = strchr(text, '[');
  if (open) s.at = open;
  bool good = take(&s, "[");
  while (good && !take(&s, "]")) {
    good = out->count < PESTLE_MESH_TEXT_AXES &&
           take_name(&s, &out->names[out->count]) && take(&s, "=") &&
           take_number(&s, &out->sizes[out->count]) &&
           out->sizes[out->count] > 0 &&
           axis_of(out, out->names[out->count]) < 0;
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
  return pestle_sharding_unknown(pestle_str(text));
}

pestle_status_t pestle_mesh_text_find(const pestle_module_t* module,
                                      pestle_str_t name, mesh_t* out) {
  const char* text = pestle_module_find_mesh(module, name);
  if (text) return pestle_mesh_text_read(text, out);
  return PESTLE_ERROR(MALFORMED,
                      "the module has no mesh '%.*s': sdy.mesh declares one",
                      name.size > 60 ? 60 : (int)name.size, name.data);
}

pestle_status_t pestle_mesh_text_ids(const mesh_t* mesh, int64_t count,
                                     bool* seen, int32_t* out) {
  scan_t s = {mesh->ids.data, mesh->ids.data + mesh->ids.size};
  memset(seen, 0, (size_t)count);
  for (int64_t i = 0; i < count; ++i, (void)take(&s, ",")) {
    int64_t id;
    if (!take_number(&s, &id) || id < 0 || id >= count || seen[id]) {
      return PESTLE_ERROR(MALFORMED,
                          "the devices of a mesh, [%.*s], are not each of "
                          "%" PRId64 " numbers once",
                          (int)(mesh->ids.size > 200 ? 200 : mesh->ids.size),
                          mesh->ids.data, count);
    }
    seen[id] = true;
    out[i] = (int32_t)id;
  }
  return NULL;
}

// --- Shardings ---

// ""x"", ""x":(1)2".
static bool take_axis(scan_t* s, const mesh_t* mesh, list_t* list) {
  pestle_str_t name;
  pestle_axis_part_t part = {.before = 1};
  if (!take_name(s, &name) || list->count == PESTLE_MESH_TEXT_AXES)
    return false;
  part.axis = axis_of(mesh, name);
  if (part.axis < 0) return false;
  part.size = mesh->sizes[part.axis];
  if (take(s, ":")) {
    if (!take(s, "(") || !take_number(s, &part.before) || !take(s, ")") ||
        !take_number(s, &part.size)) {
      return false;
    }
    if (!pestle_axis_has_part(mesh->sizes[part.axis], part.before, part.size))
      return false;
  }
  list->data[list->count++] = part;
  return true;
}

// "{"x", "y"}p1", "{?}"
static bool read_dim(scan_t* s, pestle_sharding_text_t* spec) {
  list_t* list = &spec->dims[spec->rank];
  int64_t* priority = &spec->priority[spec->rank];
  list->count = 0;
  spec->open[spec->rank] = false;
  if (!take(s, "{")) return false;
  while (!take(s, "}")) {
    if (take(s, "?")) {
      spec->open[spec->rank] = true;
      continue;
    }
    if (!take_axis(s, &spec->mesh, list)) return false;
    (void)take(s, ",");
  }
  if (take(s, "p")) return take_number(s, priority) && *priority >= 0;
  return true;
}

// ", manual = #sdy.axes<{"x"}>}"; nothing where there is no list.
static bool read_manual(scan_t* s, pestle_sharding_text_t* spec) {
  if (!take(s, ",")) return true;
  if (!take(s, "manual")) return false;
  spec->has_manual = true;
  const char* open = memchr(s->at, '"', (size_t)(s->end - s->at));
  if (open) s->at = open;
  while (open && s->at < s->end && *s->at == '"') {
    if (!take_axis(s, &spec->mesh, &spec->manual)) return false;
    (void)take(s, ",");
    skip_space(s);
  }
  return true;
}

static bool read_lists(scan_t* s, pestle_sharding_text_t* spec) {
  while (take(s, ",")) {
    bool sums = take(s, "unreduced");
    list_t* list = sums ? &spec->sums : &spec->fixed;
    if (!sums && !take(s, "replicated")) return false;
    if (!take(s, "=") || !take(s, "{")) return false;
    while (!take(s, "}")) {
      if (!take_axis(s, &spec->mesh, list)) return false;
      (void)take(s, ",");
    }
  }
  return true;
}

pestle_status_t pestle_sharding_text_read(const pestle_module_t* module,
                                          pestle_str_t text,
                                          pestle_sharding_text_t* spec) {
  scan_t s = {text.data, text.data + text.size};
  size_t open = pestle_str_find_char(text, '<');
  *spec = (pestle_sharding_text_t){.rank = 0};
  if (open == SIZE_MAX) return pestle_sharding_unknown(text);
  s.at += open + 1;
  if (!take(&s, "@")) return pestle_sharding_unknown(text);
  bool quoted = take(&s, "\"");
  const char* begin = s.at;
  while (s.at < s.end && *s.at != (quoted ? '"' : ',') &&
         (quoted || *s.at != '>'))
    ++s.at;
  pestle_str_t name = pestle_str_make(begin, (size_t)(s.at - begin));
  if (quoted) (void)take(&s, "\"");
  PESTLE_TRY(pestle_mesh_text_find(module, name, &spec->mesh));
  if (!take(&s, ",") || !take(&s, "[")) return pestle_sharding_unknown(text);
  while (!take(&s, "]")) {
    if (spec->rank == PESTLE_MAX_RANK || !read_dim(&s, spec))
      return pestle_sharding_unknown(text);
    ++spec->rank;
    (void)take(&s, ",");
  }
  bool good = read_lists(&s, spec) && take(&s, ">") && read_manual(&s, spec);
  return good ? NULL : pestle_sharding_unknown(text);
}
