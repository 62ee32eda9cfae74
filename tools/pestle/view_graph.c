// SPDX-License-Identifier: Apache-2.0
// Reads the text of a module (ir/print.c) as a graph: what is an op, what it reads,
// what is in whose region. It is no parser: the library's checks the text, and a line
// that is not understood is left out.
#include <string.h>

#include "view.h"

typedef struct scope_t {
  int32_t owner;
  size_t undo;     // how many entries the list had when it began
  int32_t last;    // the last op of the scope: regions that follow are its own
  bool is_region;  // its owner's type may stand behind its end
} scope_t;

typedef struct undo_t {
  pestle_str_t name;
  uint64_t before;  // node + 1; 0: none
} undo_t;

typedef struct reader_t {
  cli_graph_t* graph;
  pestle_map_t names;  // of values -> node + 1
  PESTLE_VEC(undo_t) undo;
  PESTLE_VEC(scope_t) scopes;
  uint32_t line;
  bool failed;  // out of memory
} reader_t;

// --- Scopes ---

static void define(reader_t* r, pestle_str_t name, int32_t node) {
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(&r->names, name.data, name.size, &added);
  undo_t undo = {name, value && !added ? value->u64 : 0};
  if (!value || !pestle_vec_push(&r->undo, undo)) {
    r->failed = true;
    return;
  }
  value->u64 = (uint64_t)node + 1;
}

static void push(reader_t* r, int32_t owner, bool is_region) {
  scope_t scope = {owner, r->undo.size, -1, is_region};
  if (!pestle_vec_push(&r->scopes, scope)) r->failed = true;
}

static scope_t pop(reader_t* r) {
  scope_t scope = {-1, 0, -1, false};
  if (!r->scopes.size) return scope;
  scope = pestle_vec_pop(&r->scopes);
  while (r->undo.size > scope.undo) {
    undo_t undo = pestle_vec_pop(&r->undo);
    if (!pestle_map_set_str(&r->names, undo.name, undo.before))
      r->failed = true;
  }
  return scope;
}

static int32_t owner_of_scope(const reader_t* r) {
  return r->scopes.size ? pestle_vec_last(&r->scopes).owner : -1;
}

static int32_t add_node(reader_t* r, pestle_str_t op, pestle_str_t name,
                        int32_t parent) {
  cli_graph_node_t node = {.op = op,
                           .name = name,
                           .line = r->line,
                           .parent = parent,
                           .first = (uint32_t)r->graph->operands.size};
  if (!pestle_vec_push(&r->graph->nodes, node)) r->failed = true;
  return r->failed ? 0 : (int32_t)r->graph->nodes.size - 1;
}

// --- Parts of a line ---

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '.' || c == '-';
}

// The name at |at|, where a '%' is; |*at| is behind it.
static pestle_str_t read_name(pestle_str_t line, size_t* at) {
  size_t begin = ++*at;
  while (*at < line.size && is_name_char(line.data[*at]))
    ++*at;
  return pestle_str_slice(line, begin, *at);
}

// Behind the string that begins at |at|.
static size_t skip_string(pestle_str_t line, size_t at) {
  for (++at; at < line.size && line.data[at] != '"'; ++at)
    at += line.data[at] == '\\';
  return at < line.size ? at + 1 : line.size;
}

// Where |text| stands last outside of strings; the line's size: nowhere.
static size_t find_last(pestle_str_t line, const char* text) {
  size_t found = line.size, size = strlen(text);
  for (size_t i = 0; i + size <= line.size;) {
    if (!memcmp(line.data + i, text, size)) found = i;
    i = line.data[i] == '"' ? skip_string(line, i) : i + 1;
  }
  return found;
}

static bool ends_with(pestle_str_t line, const char* text) {
  return pestle_str_ends_with(line, pestle_str(text));
}

// Takes loc(..) from the end of |*line|: its name, or file:line:column.
static pestle_str_t take_location(pestle_str_t* line) {
  size_t at = find_last(*line, " loc(");
  if (at == line->size) return pestle_str("");
  pestle_str_t text = pestle_str_slice(*line, at + 5, line->size);
  *line = pestle_str_trim(pestle_str_slice(*line, 0, at));
  if (!text.size || text.data[0] != '"') return pestle_str("");
  size_t end = skip_string(text, 0);
  pestle_str_t name = pestle_str_slice(text, 1, end - 1);
  if (end >= text.size || text.data[end] != ':') return name;
  // "file":3:4), where the quotes would stand in the way of comparing.
  size_t stop = pestle_str_find_char(text, ')');
  return pestle_str_slice(text, 1, stop);
}

// The last of types that commas part.
static pestle_str_t last_type(pestle_str_t type) {
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < type.size; ++i) {
    char c = type.data[i];
    depth += (c == '<' || c == '(' || c == '[' || c == '{') -
             (c == '>' || c == ')' || c == ']' || c == '}');
    if (c == ',' && !depth) begin = i + 1;
  }
  return pestle_str_trim(pestle_str_slice(type, begin, type.size));
}

// Of "... : (a, b) -> c" c; of "... : a" a.
static pestle_str_t type_of(pestle_str_t line, bool is_one) {
  size_t at = find_last(line, " -> "), skip = 4;
  size_t colon = find_last(line, " : ");
  if (at == line.size || (colon != line.size && colon > at)) {
    at = colon;
    skip = 3;
  }
  if (at == line.size) return pestle_str("");
  pestle_str_t type =
      pestle_str_trim(pestle_str_slice(line, at + skip, line.size));
  return is_one ? last_type(type) : type;
}

// --- Arguments and operands ---

// "%a: tensor<2xf32> {..}, %b: tensor<f32>": an argument each, until the list ends.
static void read_arguments(reader_t* r, pestle_str_t line, int32_t parent) {
  for (size_t i = 0; i < line.size && !r->failed;) {
    if (line.data[i] == '"') {
      i = skip_string(line, i);
      continue;
    }
    if (line.data[i] != '%') {
      // What a function returns has no names.
      if (line.data[i] == '-' && i + 1 < line.size && line.data[i + 1] == '>')
        return;
      ++i;
      continue;
    }
    pestle_str_t name = read_name(line, &i);
    if (i >= line.size || line.data[i] != ':') continue;
    size_t begin = ++i;
    for (int depth = 0; i < line.size; ++i) {
      char c = line.data[i];
      if (!depth && (c == ',' || c == ')' || c == '{')) break;
      depth += (c == '<' || c == '(' || c == '[') -
               (c == '>' || c == ')' || c == ']');
    }
    int32_t node = add_node(r, pestle_str("arg"), name, parent);
    if (r->failed) return;
    r->graph->nodes.data[node].type =
        pestle_str_trim(pestle_str_slice(line, begin, i));
    define(r, name, node);
  }
}

static void add_operand(reader_t* r, int32_t node, pestle_str_t name) {
  const pestle_map_value_t* value = pestle_map_find_str(&r->names, name);
  if (!value || !value->u64) return;
  if (!pestle_vec_push(&r->graph->operands, (int32_t)(value->u64 - 1)))
    r->failed = true;
  if (!r->failed) ++r->graph->nodes.data[node].count;
}

// What |text| reads; in "(%i = %n)" %i is an argument of the regions that follow, which
// is defined once all operands are known.
static void read_operands(reader_t* r, int32_t node, pestle_str_t text) {
  PESTLE_VEC(pestle_str_t) inner;
  pestle_vec_init(&inner, pestle_allocator_system());
  for (size_t i = 0; i < text.size && !r->failed;) {
    if (text.data[i] == '"') {
      i = skip_string(text, i);
      continue;
    }
    if (text.data[i] != '%') {
      ++i;
      continue;
    }
    pestle_str_t name = read_name(text, &i);
    bool is_inner = i + 3 <= text.size && !memcmp(text.data + i, " = ", 3);
    if (!is_inner) {
      add_operand(r, node, name);
    } else if (!pestle_vec_push(&inner, name)) {
      r->failed = true;
    }
  }
  for (size_t i = 0; i < inner.size && !r->failed; ++i)
    define(r, inner.data[i],
           add_node(r, pestle_str("arg"), inner.data[i], node));
  pestle_vec_deinit(&inner);
}

// --- Lines ---

// "stablehlo.add" is add, "pestle.fusion" fusion.
static pestle_str_t short_op(pestle_str_t op) {
  size_t dot = pestle_str_find_char(op, '.');
  return dot < op.size ? pestle_str_slice(op, dot + 1, op.size) : op;
}

static pestle_str_t label_of(pestle_str_t line) {
  static const char key[] = "<{label = \"";
  size_t at = pestle_str_find(line, pestle_str(key));
  if (at >= line.size) return pestle_str("");
  pestle_str_t rest = pestle_str_slice(line, at + sizeof(key) - 1, line.size);
  return pestle_str_slice(rest, 0, pestle_str_find_char(rest, '"'));
}

// "%a:2 = " at the line's beginning: the first name; |*line| is what follows.
static pestle_str_t take_results(pestle_str_t* line, bool* out_is_one) {
  *out_is_one = true;
  if (line->data[0] != '%') return pestle_str("");
  size_t at = 0;
  pestle_str_t name = read_name(*line, &at);
  size_t equals = pestle_str_find(*line, PESTLE_STR(" = "));
  if (equals >= line->size) return pestle_str("");
  *out_is_one = at == equals;
  *line = pestle_str_slice(*line, equals + 3, line->size);
  return name;
}

static void read_op(reader_t* r, pestle_str_t line) {
  bool is_one;
  pestle_str_t location = take_location(&line);
  pestle_str_t name = take_results(&line, &is_one);
  size_t end = 0;
  while (end < line.size && line.data[end] != '(' && line.data[end] != ' ')
    ++end;
  pestle_str_t op = pestle_str_slice(line, 0, end);
  if (op.size > 2 && op.data[0] == '"')
    op = pestle_str_slice(op, 1, op.size - 1);
  int32_t node = add_node(r, short_op(op), name, owner_of_scope(r));
  if (r->failed) return;
  bool opens = ends_with(line, "{");
  cli_graph_node_t* n = &r->graph->nodes.data[node];
  n->location = location;
  n->label = label_of(line);
  if (!opens) n->type = type_of(line, is_one);
  read_operands(r, node, pestle_str_slice(line, end, line.size));
  if (r->failed) return;
  if (name.size) define(r, name, node);
  if (r->scopes.size) pestle_vec_last(&r->scopes).last = node;
  if (opens) push(r, node, true);
}

// "}" and what stands behind it: the owner's type, or its next region.
static void read_end(reader_t* r, pestle_str_t line) {
  scope_t scope = pop(r);
  pestle_str_t location = take_location(&line);
  if (ends_with(line, "{")) {
    push(r, scope.owner, scope.is_region);
    return;
  }
  if (scope.owner < 0 || !scope.is_region) return;
  cli_graph_node_t* owner = &r->graph->nodes.data[scope.owner];
  pestle_str_t type = type_of(line, true);
  if (!owner->type.size) owner->type = type;
  if (location.size) owner->location = location;
}

static void read_function(reader_t* r, pestle_str_t line) {
  size_t at = pestle_str_find_char(line, '@');
  size_t open = pestle_str_find_char(line, '(');
  if (at >= line.size || open >= line.size) return;
  int32_t node =
      add_node(r, pestle_str("func"), pestle_str_slice(line, at + 1, open),
               owner_of_scope(r));
  push(r, node, false);
  read_arguments(r, pestle_str_slice(line, open, line.size), node);
}

// An op has a result, or the dot of a dialect in its name, or is a return.
static bool is_op(pestle_str_t line) {
  if (line.data[0] == '%' || line.data[0] == '"') return true;
  size_t end = 0;
  while (end < line.size && is_name_char(line.data[end]))
    ++end;
  pestle_str_t word = pestle_str_slice(line, 0, end);
  return pestle_str_find_char(word, '.') < word.size ||
         pestle_str_equal_c(word, "return");
}

static void read_line(reader_t* r, pestle_str_t line) {
  if (!line.size || line.data[0] == '/' || line.data[0] == '#') return;
  if (pestle_str_starts_with(line, PESTLE_STR("module"))) {
    push(r, -1, false);
  } else if (pestle_str_starts_with(line, PESTLE_STR("func.func"))) {
    read_function(r, line);
  } else if (line.data[0] == '}') {
    read_end(r, line);
  } else if (line.data[0] == '^') {
    read_arguments(r, line, owner_of_scope(r));
  } else if (is_op(line)) {
    read_op(r, line);
  } else if (ends_with(line, "{")) {
    // "cond {", "reducer(%a: tensor<f32>) {": of the op before.
    int32_t owner = r->scopes.size ? pestle_vec_last(&r->scopes).last : -1;
    push(r, owner, true);
    read_arguments(r, line, owner);
  }
}

pestle_status_t cli_graph_read(pestle_str_t text, cli_graph_t* out_graph) {
  pestle_allocator_t a = pestle_allocator_system();
  reader_t r = {.graph = out_graph};
  pestle_vec_init(&out_graph->nodes, a);
  pestle_vec_init(&out_graph->operands, a);
  pestle_map_init(a, &r.names);
  pestle_vec_init(&r.undo, a);
  pestle_vec_init(&r.scopes, a);
  pestle_str_t line;
  for (; pestle_str_next(&text, '\n', &line) && !r.failed; ++r.line)
    read_line(&r, pestle_str_trim(line));
  pestle_map_deinit(&r.names);
  pestle_vec_deinit(&r.undo);
  pestle_vec_deinit(&r.scopes);
  return r.failed ? PESTLE_OOM() : NULL;
}

void cli_graph_deinit(cli_graph_t* graph) {
  pestle_vec_deinit(&graph->nodes);
  pestle_vec_deinit(&graph->operands);
}

bool cli_graph_may_run(const cli_graph_t* graph, size_t node) {
  static const char* const others[] = {"arg", "func", "return", "constant"};
  const cli_graph_node_t* n = &graph->nodes.data[node];
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
    if (pestle_str_equal_c(n->op, others[i])) return false;
  }
  for (int32_t p = n->parent; p >= 0; p = graph->nodes.data[p].parent) {
    if (pestle_str_equal_c(graph->nodes.data[p].op, "fusion")) return false;
  }
  return true;
}

// --- JSON ---

// The number of a text among those that were written before, which come as a list.
static uint64_t number_of(pestle_map_t* numbers, pestle_str_t text,
                          bool* failed) {
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(numbers, text.data, text.size, &added);
  if (!value) {
    *failed = true;
    return 0;
  }
  if (added) value->u64 = numbers->size - 1;
  return value->u64;
}

static void write_numbers(const pestle_map_t* numbers, const char* key,
                          pestle_json_t* json) {
  size_t cursor = 0;
  pestle_map_entry_t* entry;
  pestle_json_key(json, key);
  pestle_json_begin_array(json);
  while ((entry = pestle_map_next(numbers, &cursor)) != NULL)
    pestle_json_str(json, pestle_map_entry_key(entry));
  pestle_json_end_array(json);
}

// A node is [op, name, type, parent, line, [operands], label, location]; the last two
// are left out where both are empty.
static void write_node(const cli_graph_t* graph, const cli_graph_node_t* n,
                       pestle_map_t* ops, pestle_map_t* types, bool* failed,
                       pestle_json_t* json) {
  pestle_json_begin_array(json);
  pestle_json_u64(json, number_of(ops, n->op, failed));
  pestle_json_str(json, n->name);
  pestle_json_u64(json, number_of(types, n->type, failed));
  pestle_json_i64(json, n->parent);
  pestle_json_u64(json, n->line);
  pestle_json_begin_array(json);
  for (uint32_t i = 0; i < n->count; ++i)
    pestle_json_i64(json, graph->operands.data[n->first + i]);
  pestle_json_end_array(json);
  if (n->label.size || n->location.size) {
    pestle_json_str(json, n->label);
    pestle_json_str(json, n->location);
  }
  pestle_json_end_array(json);
}

pestle_status_t cli_graph_write(const cli_graph_t* graph, pestle_json_t* json) {
  pestle_map_t ops, types;
  bool failed = false;
  pestle_map_init(pestle_allocator_system(), &ops);
  pestle_map_init(pestle_allocator_system(), &types);
  pestle_json_key(json, "nodes");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < graph->nodes.size; ++i)
    write_node(graph, &graph->nodes.data[i], &ops, &types, &failed, json);
  pestle_json_end_array(json);
  write_numbers(&ops, "ops", json);
  write_numbers(&types, "types", json);
  pestle_map_deinit(&ops);
  pestle_map_deinit(&types);
  return failed ? PESTLE_OOM() : NULL;
}
