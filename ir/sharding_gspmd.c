// SPDX-License-Identifier: Apache-2.0
// Shardings as XLA's older partitioner has them, as those of a mesh: see sharding.h.
//
//   {replicated}                                  [{}, {}]
//   {devices=[4,2]<=[8]}                          mesh d0 = 8: [{d0:(1)4}, {d0:(4)2}]
//   {devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
//                                                 mesh d0 = 2, d1 = 2: [{d1}, {}]
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "ir/internal.h"
#include "ir/sharding.h"
#include "ir/sharding_text.h"

enum { MOST_DIMS = 2 * PESTLE_MAX_RANK };

typedef struct list_t {
  int64_t data[MOST_DIMS];
  int count;
} list_t;

typedef struct scan_t {
  const char *at, *end;
} scan_t;

static bool take(scan_t* s, const char* text) {
  size_t n = strlen(text);
  while (s->at < s->end && *s->at == ' ')
    ++s->at;
  if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0) return false;
  s->at += n;
  return true;
}

// "4,2]"
static bool take_list(scan_t* s, const char* close, list_t* out) {
  out->count = 0;
  while (!take(s, close)) {
    int64_t number = 0;
    const char* begin = s->at;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; ++s->at)
      number = number < (1 << 24) ? number * 10 + (*s->at - '0') : number;
    if (s->at == begin || out->count == MOST_DIMS) return false;
    out->data[out->count++] = number;
    (void)take(s, ",");
  }
  return true;
}

typedef struct tiles_t {
  list_t tiles, mesh, order;
  int32_t rank;      // tiles behind are copies, or summands
  bool last_copies;  // the last tiles are copies
} tiles_t;

// "devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
static bool read_tiles(scan_t* s, tiles_t* out) {
  if (!take(s, "devices=[") || !take_list(s, "]", &out->tiles)) return false;
  if (!take(s, "<=[") || !take_list(s, "]", &out->mesh)) return false;
  out->order.count = 0;
  if (take(s, "T(") && (!take_list(s, ")", &out->order) ||
                        out->order.count != out->mesh.count)) {
    return false;
  }
  for (int i = out->order.count; i < out->mesh.count; ++i)
    out->order.data[out->order.count++] = i;
  bool seen[MOST_DIMS] = {false};
  for (int i = 0; i < out->order.count; ++i) {
    int64_t axis = out->order.data[i];
    if (axis >= out->mesh.count || seen[axis]) return false;
    seen[axis] = true;
  }
  out->last_copies = take(s, "last_tile_dim_replicate");
  if (!out->last_copies && take(s, "last_tile_dims={replicated}"))
    out->last_copies = true;
  return take(s, "}");
}

// The axes, or parts of them, that |tile| takes from place |*at| on, of which |*before|
// is taken.
static bool write_tile(const tiles_t* t, int64_t tile, int* at, int64_t* before,
                       pestle_strbuf_t* out) {
  const char* between = "";
  pestle_strbuf_append_char(out, '{');
  while (tile > 1) {
    if (*at == t->mesh.count) return false;
    int64_t axis = t->order.data[*at], size = t->mesh.data[axis];
    int64_t left = size / *before;
    int64_t part = tile % left == 0 ? left : tile;
    if (left % part != 0) return false;
    if (part > 1) {
      pestle_strbuf_appendf(out, "%s\"d%" PRId64 "\"", between, axis);
      if (part != size)
        pestle_strbuf_appendf(out, ":(%" PRId64 ")%" PRId64, *before, part);
      between = ", ";
    }
    tile /= part;
    *before *= part;
    if (*before == size) {
      *before = 1;
      ++*at;
    }
  }
  pestle_strbuf_append_char(out, '}');
  return true;
}

static bool write_dims(const tiles_t* t, int32_t rank, pestle_strbuf_t* out) {
  int64_t before = 1, product = 1, total = 1;
  int at = 0;
  for (int i = 0; i < t->tiles.count; ++i) {
    if (t->tiles.data[i] < 1 || t->tiles.data[i] > (1 << 20) / product)
      return false;
    product *= t->tiles.data[i];
  }
  for (int i = 0; i < t->mesh.count; ++i) {
    if (t->mesh.data[i] < 1 || t->mesh.data[i] > (1 << 20) / total)
      return false;
    total *= t->mesh.data[i];
  }
  if (t->tiles.count != rank + t->last_copies || product != total) return false;
  for (int32_t d = 0; d < rank; ++d) {
    if (d) pestle_strbuf_append_c(out, ", ");
    if (!write_tile(t, t->tiles.data[d], &at, &before, out)) return false;
  }
  return true;
}

// A name for the mesh that tells its extents, and its text.
static pestle_status_t add_mesh(pestle_module_t* module, const list_t* mesh,
                                const char* name) {
  pestle_strbuf_t text;
  if (pestle_module_find_mesh(module, pestle_str(name))) return NULL;
  pestle_strbuf_init(module->arena.allocator, &text);
  pestle_strbuf_append_c(&text, "<[");
  for (int i = 0; i < mesh->count; ++i)
    pestle_strbuf_appendf(&text, "%s\"d%d\"=%" PRId64, i ? ", " : "", i,
                          mesh->data[i]);
  pestle_strbuf_append_c(&text, "]>");
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status)
    status = pestle_module_add_mesh(module, pestle_str(name),
                                    pestle_strbuf_view(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t write(pestle_module_t* module, pestle_str_t text,
                             int32_t rank, pestle_strbuf_t* name,
                             pestle_strbuf_t* out) {
  scan_t s = {text.data, text.data + text.size};
  tiles_t t = {.rank = rank};
  pestle_world_shape_t world = pestle_module_world(module);
  bool good = take(&s, "{");
  if (good && (take(&s, "replicated") || take(&s, "maximal"))) {
    t.mesh = (list_t){{world.partitions}, 1};
    t.tiles.count = rank + 1;
    for (int32_t d = 0; d < rank; ++d)
      t.tiles.data[d] = 1;
    t.tiles.data[rank] = world.partitions;
    t.order = (list_t){{0}, 1};
    t.last_copies = true;
  } else {
    good = good && read_tiles(&s, &t);
  }
  pestle_strbuf_append_c(name, "devices");
  for (int i = 0; i < t.mesh.count; ++i)
    pestle_strbuf_appendf(name, "_%" PRId64, t.mesh.data[i]);
  pestle_strbuf_appendf(out, "#sdy.sharding<@%s, [", pestle_strbuf_cstr(name));
  good = good && write_dims(&t, rank, out);
  pestle_strbuf_append_c(out, "]>");
  if (!good) return pestle_sharding_unknown(text);
  PESTLE_TRY(pestle_strbuf_status(name));
  PESTLE_TRY(pestle_strbuf_status(out));
  return add_mesh(module, &t.mesh, pestle_strbuf_cstr(name));
}

pestle_status_t pestle_sharding_of_tiles(pestle_module_t* module,
                                         pestle_str_t text, int32_t rank,
                                         const char** out) {
  pestle_strbuf_t name, sharding;
  pestle_strbuf_init(module->arena.allocator, &name);
  pestle_strbuf_init(module->arena.allocator, &sharding);
  pestle_status_t status = write(module, text, rank, &name, &sharding);
  if (!status)
    status =
        pestle_module_intern_opt(module, pestle_strbuf_cstr(&sharding), out);
  pestle_strbuf_deinit(&sharding);
  pestle_strbuf_deinit(&name);
  return status;
}

// --- Arguments and results ---

// "\"{replicated}\"" without its quotes.
static pestle_str_t unquoted(const char* text) {
  pestle_str_t s = pestle_str_trim(pestle_str(text));
  if (s.size >= 2 && s.data[0] == '"') s = pestle_str_slice(s, 1, s.size - 1);
  return s;
}

static pestle_status_t convert(pestle_function_t* f, bool result, size_t index,
                               int32_t rank, pestle_arena_t* arena) {
  pestle_dialect_attrs_t old = result
                                   ? pestle_function_result_attrs(f, index)
                                   : pestle_function_argument_attrs(f, index);
  const char* text = pestle_dialect_attrs_find(old, "mhlo.sharding");
  if (!text || pestle_dialect_attrs_find(old, "sdy.sharding")) return NULL;
  const char* sharding;
  PESTLE_TRY(
      pestle_sharding_of_tiles(f->module, unquoted(text), rank, &sharding));
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(arena, pestle_dialect_attr_t, old.count + 1);
  uint32_t n = 0;
  if (!data) return PESTLE_OOM();
  for (uint32_t i = 0; i < old.count; ++i) {
    if (strcmp(old.data[i].key, "mhlo.sharding") != 0) data[n++] = old.data[i];
  }
  data[n++] = (pestle_dialect_attr_t){"sdy.sharding", sharding};
  return result ? pestle_function_set_result_attrs(f, index, data, n)
                : pestle_function_set_argument_attrs(f, index, data, n);
}

pestle_status_t pestle_module_read_tiles(pestle_module_t* module) {
  pestle_function_t* f = pestle_module_entry(module);
  if (!f || !f->body || !f->body->block->last ||
      pestle_module_world(module).partitions == 1) {
    return NULL;
  }
  pestle_arena_t arena;
  pestle_status_t status = NULL;
  const pestle_block_t* block = f->body->block;
  pestle_arena_init(module->arena.allocator, &arena);
  for (uint32_t i = 0; i < block->argument_count && !status; ++i) {
    status = convert(f, false, i, block->arguments[i]->type->rank, &arena);
  }
  for (uint32_t i = 0; i < block->last->operand_count && !status; ++i) {
    const pestle_type_t* type = pestle_node_operand(block->last, i)->type;
    status = convert(f, true, i, type->rank, &arena);
  }
  pestle_arena_deinit(&arena);
  return status;
}
