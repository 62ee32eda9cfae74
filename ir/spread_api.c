// SPDX-License-Identifier: Apache-2.0
// What a caller says of meshes and shardings, and reads of parts: pestle/partition.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "ir/internal.h"
#include "ir/spread.h"
#include "pestle/partition.h"

static const char own_mesh[] = "mesh";

// --- The mesh ---

static pestle_status_t bad_mesh(pestle_str_t part) {
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "'%.*s' is no axis of a mesh; an axis is NAME=EXTENT, as "
      "in data=2,model=4, of at most %d axes and 2^20 processes "
      "in all",
      part.size > 60 ? 60 : (int)part.size, part.data, PESTLE_MESH_AXES);
}

static bool is_name(pestle_str_t name) {
  if (!name.size) return false;
  for (size_t i = 0; i < name.size; ++i) {
    char c = name.data[i];
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                (c >= '0' && c <= '9') || c == '_';
    if (!good) return false;
  }
  return true;
}

// "["data"=2, "model"=4]"; how many processes that are.
static pestle_status_t read_axes(const char* axes, pestle_strbuf_t* out,
                                 int64_t* total) {
  pestle_str_t rest = pestle_str(axes), part;
  pestle_str_t names[PESTLE_MESH_AXES];
  int count = 0;
  *total = 1;
  pestle_strbuf_append_c(out, "<[");
  while (pestle_str_next(&rest, ',', &part)) {
    size_t equal = pestle_str_find_char(part, '=');
    int64_t extent;
    if (equal == SIZE_MAX || count++ == PESTLE_MESH_AXES) return bad_mesh(part);
    pestle_str_t name = pestle_str_trim(pestle_str_slice(part, 0, equal));
    pestle_str_t number =
        pestle_str_trim(pestle_str_slice(part, equal + 1, part.size));
    if (!is_name(name) || !pestle_str_parse_i64(number, &extent) ||
        extent < 1 || extent > (1 << 20) / *total) {
      return bad_mesh(part);
    }
    for (int i = 0; i < count - 1; ++i) {
      if (!pestle_str_equal(names[i], name)) continue;
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the mesh has two axes '%.*s': give each a name of "
                          "its own",
                          PESTLE_STR_ARG(name));
    }
    names[count - 1] = name;
    *total *= extent;
    pestle_strbuf_appendf(out, "%s\"%.*s\"=%" PRId64, count > 1 ? ", " : "",
                          PESTLE_STR_ARG(name), extent);
  }
  pestle_strbuf_append_c(out, "]>");
  return count ? pestle_strbuf_status(out) : bad_mesh(pestle_str(axes));
}

static pestle_status_t set_world(pestle_module_t* module, int64_t total) {
  uint32_t count = module->dialect_attrs.count, n = 0;
  char text[40];
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(&module->arena, pestle_dialect_attr_t, count + 1);
  if (!data) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(module->dialect_attrs.data[i].key, "mhlo.num_partitions") != 0)
      data[n++] = module->dialect_attrs.data[i];
  }
  snprintf(text, sizeof(text), "%" PRId64 " : i32", total);
  data[n++] = (pestle_dialect_attr_t){"mhlo.num_partitions", text};
  return pestle_module_set_dialect_attrs(module, data, n);
}

pestle_status_t pestle_module_set_mesh(pestle_module_t* module,
                                       const char* axes) {
  if (!module || !axes) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_module_set_mesh needs a module and axes");
  }
  if (pestle_module_has_mesh(module) ||
      pestle_module_device_count(module) != 1) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the module has a mesh or processes already");
  }
  pestle_strbuf_t text;
  int64_t total;
  pestle_strbuf_init(module->arena.allocator, &text);
  pestle_status_t status = read_axes(axes, &text, &total);
  if (!status) status = set_world(module, total);
  if (!status)
    status = pestle_module_add_mesh(module, pestle_str(own_mesh),
                                    pestle_strbuf_view(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

// --- Shardings ---

static bool fits(const char* pattern, const char* end, const char* name) {
  while (pattern < end && *pattern != '*') {
    if (*name != *pattern) return false;
    ++pattern;
    ++name;
  }
  if (pattern == end) return !*name;
  while (pattern < end && *pattern == '*')
    ++pattern;
  if (pattern == end) return true;
  for (; *name; ++name) {
    if (*name == *pattern && fits(pattern, end, name)) return true;
  }
  return false;
}

// |mesh| as it is written: an axis is there, and |out| has it not yet.
static pestle_status_t check_axis(pestle_str_t axis, pestle_str_t mesh,
                                  const pestle_strbuf_t* out) {
  char quoted[64];
  int size = snprintf(quoted, sizeof quoted, "\"%.*s\"", PESTLE_STR_ARG(axis));
  bool fits = size > 0 && (size_t)size < sizeof quoted;
  pestle_str_t word = pestle_str_make(quoted, fits ? (size_t)size : 0);
  if (!fits || pestle_str_find(mesh, word) == SIZE_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%.*s' is no axis of the mesh, whose axes are %.*s",
                        axis.size > 60 ? 60 : (int)axis.size, axis.data,
                        mesh.size > 200 ? 200 : (int)mesh.size, mesh.data);
  }
  if (pestle_str_find(pestle_strbuf_view(out), word) == SIZE_MAX) return NULL;
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "the axis '%.*s' is there twice: it divides one dimension",
      PESTLE_STR_ARG(axis));
}

// "data+model" as {"data", "model"}.
static pestle_status_t write_dim(pestle_str_t entry, pestle_str_t mesh,
                                 pestle_strbuf_t* out) {
  pestle_str_t part;
  bool first = true;
  pestle_strbuf_append_char(out, '{');
  if (pestle_str_equal_c(entry, "?")) {
    pestle_strbuf_append_char(out, '?');
  } else if (!pestle_str_equal_c(entry, "-")) {
    while (pestle_str_next(&entry, '+', &part)) {
      part = pestle_str_trim(part);
      if (!is_name(part)) {
        return PESTLE_ERROR(INVALID_ARGUMENT,
                            "'%.*s' is no axis; an entry is an axis, axes with "
                            "'+' between, '-' or '?'",
                            part.size > 60 ? 60 : (int)part.size, part.data);
      }
      PESTLE_TRY(check_axis(part, mesh, out));
      pestle_strbuf_appendf(out, "%s\"%.*s\"", first ? "" : ", ",
                            PESTLE_STR_ARG(part));
      first = false;
    }
  }
  pestle_strbuf_append_char(out, '}');
  return NULL;
}

static pestle_status_t write_spec(pestle_str_t spec, pestle_str_t mesh,
                                  pestle_strbuf_t* out) {
  pestle_str_t entry;
  bool first = true;
  pestle_strbuf_appendf(out, "#sdy.sharding<@%s, [", own_mesh);
  while (pestle_str_next(&spec, ',', &entry)) {
    if (!first) pestle_strbuf_append_c(out, ", ");
    first = false;
    PESTLE_TRY(write_dim(pestle_str_trim(entry), mesh, out));
  }
  pestle_strbuf_append_c(out, "]>");
  return pestle_strbuf_status(out);
}

// Reads what was written, so that a mistake is told here.
static pestle_status_t check_spec(const pestle_module_t* module,
                                  pestle_str_t text, const pestle_type_t* type,
                                  pestle_arena_t* arena) {
  pestle_mesh_maker_t maker;
  pestle_spread_t spread;
  pestle_axes_t manual;
  pestle_mesh_maker_init(module, arena, &maker);
  PESTLE_TRY(pestle_mesh_maker_see(&maker, text));
  PESTLE_TRY(pestle_mesh_maker_finish(&maker));
  return pestle_mesh_maker_read(&maker, text, type, &spread, &manual);
}

static pestle_status_t replace(pestle_function_t* f, bool result, size_t index,
                               const char* text, pestle_arena_t* arena) {
  pestle_dialect_attrs_t old = result
                                   ? pestle_function_result_attrs(f, index)
                                   : pestle_function_argument_attrs(f, index);
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(arena, pestle_dialect_attr_t, old.count + 1);
  uint32_t n = 0;
  if (!data) return PESTLE_OOM();
  for (uint32_t i = 0; i < old.count; ++i) {
    if (strcmp(old.data[i].key, "sdy.sharding") != 0) data[n++] = old.data[i];
  }
  data[n++] = (pestle_dialect_attr_t){"sdy.sharding", text};
  return result ? pestle_function_set_result_attrs(f, index, data, n)
                : pestle_function_set_argument_attrs(f, index, data, n);
}

static pestle_status_t check_one(const pestle_function_t* f, const char* what,
                                 const char* name, const pestle_type_t* type,
                                 const char* text, pestle_arena_t* arena) {
  pestle_status_t status = check_spec(f->module, pestle_str(text), type, arena);
  pestle_status_code_t code = pestle_status_code(status);
  if (code != PESTLE_STATUS_MALFORMED && code != PESTLE_STATUS_UNSUPPORTED)
    return status;
  pestle_status_t own = PESTLE_ERROR(INVALID_ARGUMENT, "sharding %s '%s': %s",
                                     what, name, pestle_status_message(status));
  pestle_status_release(status);
  return own;
}

static pestle_status_t shard_one(pestle_function_t* f, bool result,
                                 size_t index, const char* name,
                                 const pestle_type_t* type, const char* text,
                                 pestle_arena_t* arena) {
  PESTLE_TRY(
      check_one(f, result ? "result" : "argument", name, type, text, arena));
  return replace(f, result, index, text, arena);
}

// What was said of |value| before; NULL: nothing.
static pestle_node_t* wish_of(const pestle_value_t* value) {
  pestle_node_t* user = value->use_count == 1 ? value->uses->user : NULL;
  bool wish = user && pestle_is_mark(user) &&
              !strcmp(PESTLE_NODE_STR(user, name), PESTLE_MARK_WISH);
  return wish ? user : NULL;
}

// A weight of the model: its users get it through a mark that says where it lies.
static pestle_status_t shard_weight(pestle_node_t* node, const char* text) {
  pestle_value_t *value = &node->results[0], *placed;
  pestle_node_t* old = wish_of(value);
  if (old) {
    pestle_value_replace_all_uses(&old->results[0], value);
    pestle_node_erase(old);
  }
  pestle_builder_t b = pestle_builder_before(node->next);
  b.loc = node->loc;
  PESTLE_TRY(pestle_mark_wish(&b, value, pestle_str(text), &placed));
  pestle_value_replace_all_uses(value, placed);
  pestle_node_set_operand(placed->node, 0, value);
  return NULL;
}

static pestle_status_t shard_all(pestle_function_t* f, pestle_str_t pattern,
                                 const char* text, pestle_arena_t* arena,
                                 size_t* count) {
  const pestle_block_t* block = f->body->block;
  const char* end = pattern.data + pattern.size;
  for (size_t i = 0; i < block->argument_count; ++i) {
    const char* name = pestle_function_argument_name(f, i);
    if (!name) name = block->arguments[i]->name;
    char number[32];
    (void)snprintf(number, sizeof(number), "arg%zu", i);
    if (!name) name = number;
    if (!fits(pattern.data, end, name)) continue;
    PESTLE_TRY(
        shard_one(f, false, i, name, block->arguments[i]->type, text, arena));
    ++*count;
  }
  for (size_t i = 0; block->last && i < block->last->operand_count; ++i) {
    const char* name = i < f->result_name_count ? f->result_names[i] : NULL;
    if (!name || !fits(pattern.data, end, name)) continue;
    PESTLE_TRY(shard_one(f, true, i, name,
                         pestle_node_operand(block->last, i)->type, text,
                         arena));
    ++*count;
  }
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op != PESTLE_OP_CONSTANT) continue;
    // Front ends note what a weight was called as where it came from; one of another
    // dtype has a name of its own, too.
    const char *name = n->results[0].name, *source = n->loc.name;
    if (!name || !fits(pattern.data, end, name)) name = source;
    if (!name || !n->results[0].use_count || !fits(pattern.data, end, name))
      continue;
    PESTLE_TRY(check_one(f, "weight", name, n->results[0].type, text, arena));
    // Alone nobody takes a part.
    if (pestle_module_world(f->module).partitions > 1)
      PESTLE_TRY(shard_weight(n, text));
    ++*count;
  }
  return NULL;
}

pestle_status_t pestle_module_shard(pestle_module_t* module, const char* rule,
                                    size_t* out_count) {
  size_t count = 0;
  if (out_count) *out_count = 0;
  if (!module || !rule) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_module_shard needs a module and a rule");
  }
  pestle_function_t* f = pestle_module_entry(module);
  const char* mesh = pestle_module_find_mesh(module, pestle_str(own_mesh));
  if (!mesh || !f || !f->body) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the module has no mesh, or no function; "
                        "pestle_module_set_mesh() gives it one");
  }
  pestle_str_t all = pestle_str(rule), axes = pestle_str(mesh);
  size_t equal = pestle_str_find_char(all, '=');
  if (equal == SIZE_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%.60s' is no rule; a rule is PATTERN=SPEC, as in "
                        "x=data,-",
                        rule);
  }
  pestle_strbuf_t text;
  pestle_arena_t arena;
  pestle_arena_init(module->arena.allocator, &arena);
  pestle_strbuf_init(module->arena.allocator, &text);
  axes = pestle_str_slice(axes, pestle_str_find_char(axes, '[') + 1,
                          pestle_str_rfind_char(axes, ']'));
  pestle_status_t status =
      write_spec(pestle_str_slice(all, equal + 1, all.size), axes, &text);
  if (!status)
    status = shard_all(f, pestle_str_slice(all, 0, equal),
                       pestle_strbuf_cstr(&text), &arena, &count);
  pestle_strbuf_deinit(&text);
  pestle_arena_deinit(&arena);
  PESTLE_TRY(status);
  if (out_count) *out_count = count;
  if (count) return NULL;
  return PESTLE_ERROR(NOT_FOUND,
                      "no argument, result or weight has a name that "
                      "'%.*s' fits; one that was turned while the model was "
                      "read has its result's",
                      equal > 60 ? 60 : (int)equal, rule);
}

// --- Parts ---

static bool next_number(const char** at, int64_t* out) {
  while (**at == ',' || **at == ' ')
    ++*at;
  const char* begin = *at;
  for (*out = 0; **at >= '0' && **at <= '9'; ++*at)
    *out = *out * 10 + (**at - '0');
  return *at != begin;
}

typedef struct parts_t {
  int64_t tiles[2 * PESTLE_MAX_RANK], copies, place, first;
  bool found;
} parts_t;

// "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"
static void read_parts(const char* text, int32_t rank, int32_t process,
                       parts_t* out) {
  const char* at = strchr(text, '[');
  int n = 0;
  *out = (parts_t){.copies = 1};
  if (!at) return;
  ++at;
  while (n < 2 * PESTLE_MAX_RANK && next_number(&at, &out->tiles[n]))
    ++n;
  for (int i = rank; i < n; ++i)
    out->copies *= out->tiles[i];
  if (*at == ']') ++at;
  int64_t id, first = 0;
  for (int64_t place = 0; next_number(&at, &id); ++place) {
    if (place % out->copies == 0) first = id;
    if (id < first) first = id;
    if (id == process) {
      out->found = true;
      out->place = place / out->copies;
    }
    if (out->found && out->place == place / out->copies) out->first = first;
  }
}

pestle_status_t pestle_function_part(const pestle_function_t* f, bool of_result,
                                     size_t index, int32_t process,
                                     int64_t* out_starts, bool* out_first) {
  if (!f || !f->body || !out_starts || !out_first) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_function_part needs a function and places for "
                        "what it gives");
  }
  const pestle_block_t* block = f->body->block;
  size_t count = of_result ? block->last->operand_count : block->argument_count;
  if (index >= count || process < 0 ||
      process >= pestle_module_device_count(f->module)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "there is no %s %zu, or no process %d",
                        of_result ? "result" : "argument", index, (int)process);
  }
  const pestle_type_t* type =
      of_result ? pestle_node_operand(block->last, index)->type
                : block->arguments[index]->type;
  memset(out_starts, 0, (size_t)type->rank * sizeof(*out_starts));
  *out_first = process == 0;
  const char* text =
      of_result
          ? pestle_function_result_attribute(f, index, PESTLE_SHARDING_KEY)
          : pestle_function_argument_attribute(f, index, PESTLE_SHARDING_KEY);
  if (!text) return NULL;
  parts_t parts;
  read_parts(text, type->rank, process, &parts);
  for (int32_t d = type->rank; d-- > 0 && parts.found;) {
    out_starts[d] = parts.place % parts.tiles[d] * type->dims[d];
    parts.place /= parts.tiles[d];
  }
  if (parts.found) *out_first = parts.first == process;
  return NULL;
}

int64_t pestle_module_processes(const pestle_module_t* module) {
  return module ? pestle_module_device_count(module) : 0;
}
