// SPDX-License-Identifier: Apache-2.0
// A module's generic text as lines and ops, for the verbs that edit it: the
// public API builds graphs but does not change them, and a wrong edit is what
// the parser refuses.
#include "ir_text.h"

#include <string.h>

static size_t indent_of(pestle_str_t line) {
  size_t n = 0;
  while (n < line.size && line.data[n] == ' ')
    ++n;
  return n;
}

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '.' ||
         c == '-' || c == '#';
}

// --- Lines ---

static pestle_str_t line_of(const cli_ir_text_t* t, size_t i) {
  return t->lines.data[i];
}

// Where an op that begins on |line| ends: with its last region.
static size_t end_of_op(const cli_ir_text_t* t, size_t line) {
  pestle_str_t first = line_of(t, line);
  if (!pestle_str_ends_with(first, PESTLE_STR("({"))) return line;
  size_t indent = indent_of(first);
  for (size_t i = line + 1; i < t->lines.size; ++i) {
    pestle_str_t text = line_of(t, i);
    pestle_str_t rest = pestle_str_slice(text, indent_of(text), text.size);
    if (indent_of(text) == indent &&
        pestle_str_starts_with(rest, PESTLE_STR("})"))) {
      return i;
    }
  }
  return line;
}

// Types between the commas of |text|, which may be in parentheses.
static bool split_types(pestle_str_t text, cli_ir_op_t* op) {
  text = pestle_str_trim(text);
  if (text.size && text.data[0] == '(')
    text = pestle_str_slice(text, 1, text.size - 1);
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size; ++i) {
    char c = i < text.size ? text.data[i] : ',';
    depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (c != ',' || depth) continue;
    pestle_str_t type = pestle_str_trim(pestle_str_slice(text, begin, i));
    begin = i + 1;
    if (!type.size) continue;
    if (op->result_count == CLI_IR_MAX_RESULTS) return false;
    op->types[op->result_count++] = type;
  }
  return true;
}

// What is behind the last "-> " of the op's last line.
static bool read_types(const cli_ir_text_t* t, cli_ir_op_t* op) {
  pestle_str_t last = line_of(t, op->last);
  size_t at = SIZE_MAX;
  for (size_t i = 0; i + 3 <= last.size; ++i) {
    if (!memcmp(last.data + i, "-> ", 3)) at = i;
  }
  return at != SIZE_MAX &&
         split_types(pestle_str_slice(last, at + 3, last.size), op);
}

static void read_operands(pestle_str_t line, cli_ir_op_t* op) {
  size_t at = pestle_str_find(line, PESTLE_STR("\"("));
  if (at == SIZE_MAX) return;
  for (size_t i = at + 2; i < line.size && line.data[i] != ')'; ++i) {
    if (line.data[i] != '%') continue;
    size_t end = i + 1;
    while (end < line.size && is_name_char(line.data[end]))
      ++end;
    if (op->operand_count == CLI_IR_MAX_RESULTS) return;
    op->operands[op->operand_count++] = pestle_str_slice(line, i, end);
    i = end - 1;
  }
}

static pestle_status_t read_op(cli_ir_text_t* t, size_t i) {
  pestle_str_t line = line_of(t, i);
  pestle_str_t rest = pestle_str_slice(line, indent_of(line), line.size);
  size_t equals = pestle_str_find(rest, PESTLE_STR(" = \""));
  cli_ir_op_t op = {.first = i, .last = end_of_op(t, i)};
  if (!rest.size || rest.data[0] != '%' || equals == SIZE_MAX) return NULL;
  pestle_str_t name = pestle_str_slice(rest, 0, equals);
  size_t colon = pestle_str_find_char(name, ':');
  op.name = pestle_str_slice(name, 0, colon == SIZE_MAX ? name.size : colon);
  op.kind = pestle_str_slice(rest, equals + 4, rest.size);
  size_t quote = pestle_str_find_char(op.kind, '"');
  op.kind = pestle_str_slice(op.kind, 0, quote == SIZE_MAX ? 0 : quote);
  op.indent = indent_of(line);
  read_operands(rest, &op);
  if (!read_types(t, &op)) return NULL;
  return pestle_vec_push(&t->ops, op) ? NULL : PESTLE_OOM();
}

// The entry: @main, else the first public function.
static void find_entry(cli_ir_text_t* t) {
  t->header = t->end = SIZE_MAX;
  for (size_t i = 0; i < t->lines.size; ++i) {
    pestle_str_t line = line_of(t, i);
    bool main = pestle_str_find(line, PESTLE_STR("func.func public @main(")) !=
                SIZE_MAX;
    bool any =
        pestle_str_find(line, PESTLE_STR("func.func public @")) != SIZE_MAX;
    if (main || (any && t->header == SIZE_MAX)) t->header = i;
    if (main) break;
  }
  for (size_t i = t->header; t->header != SIZE_MAX && i < t->lines.size; ++i) {
    if (pestle_str_find(line_of(t, i), PESTLE_STR("\"func.return\"(")) !=
        SIZE_MAX) {
      t->end = i;
      return;
    }
  }
}

pestle_status_t cli_ir_text_init(cli_t* cli, const pestle_module_t* module,
                                 cli_ir_text_t* t) {
  pestle_allocator_t a = pestle_allocator_system();
  *t = (cli_ir_text_t){.cli = cli};
  pestle_vec_init(&t->lines, a);
  pestle_vec_init(&t->ops, a);
  PESTLE_TRY(
      pestle_module_print(module, PESTLE_PRINT_GENERIC, &t->text, &t->size));
  pestle_str_t rest = pestle_str_make(t->text, t->size), line;
  while (pestle_str_next(&rest, '\n', &line)) {
    if (!pestle_vec_push(&t->lines, line)) return PESTLE_OOM();
  }
  for (size_t i = 0; i < t->lines.size; ++i)
    PESTLE_TRY(read_op(t, i));
  find_entry(t);
  if (t->end == SIZE_MAX) {
    return PESTLE_ERROR(INTERNAL, "the module's text has no entry function");
  }
  t->returned = (cli_ir_op_t){.first = t->end, .last = t->end};
  read_operands(line_of(t, t->end), &t->returned);
  pestle_str_t ret = line_of(t, t->end);
  size_t colon = pestle_str_find(ret, PESTLE_STR(") : ("));
  size_t arrow = pestle_str_find(ret, PESTLE_STR(") -> "));
  if (colon == SIZE_MAX || arrow == SIZE_MAX || arrow < colon ||
      !split_types(pestle_str_slice(ret, colon + 4, arrow + 1), &t->returned)) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED, "more than %d results",
                        CLI_IR_MAX_RESULTS);
  }
  return NULL;
}

void cli_ir_text_deinit(cli_ir_text_t* t) {
  if (t->text) pestle_context_free(t->cli->context, t->text, t->size + 1);
  pestle_vec_deinit(&t->lines);
  pestle_vec_deinit(&t->ops);
}

// --- Edits ---

pestle_status_t cli_ir_result_name(cli_t* cli, const cli_ir_op_t* op, size_t i,
                                   pestle_str_t* out) {
  pestle_strbuf_t name;
  pestle_strbuf_init(pestle_allocator_system(), &name);
  pestle_strbuf_append(&name, op->name);
  if (op->result_count > 1) pestle_strbuf_appendf(&name, "#%zu", i);
  const char* copy = cli_copy(cli, pestle_strbuf_view(&name));
  pestle_status_t status = pestle_strbuf_status(&name);
  pestle_strbuf_deinit(&name);
  if (!status && !copy) status = PESTLE_OOM();
  *out = pestle_str(copy);
  return status;
}

static void append_replaced(pestle_str_t line, const cli_ir_edit_t* e,
                            pestle_strbuf_t* out) {
  for (size_t i = 0; i < line.size;) {
    bool found = false;
    for (size_t r = 0; r < e->rename_count && line.data[i] == '%'; ++r) {
      pestle_str_t from = e->renames[r].from;
      if (line.size - i < from.size ||
          memcmp(line.data + i, from.data, from.size) ||
          (i + from.size < line.size && is_name_char(line.data[i + from.size])))
        continue;
      pestle_strbuf_append(out, e->renames[r].to);
      i += from.size;
      found = true;
      break;
    }
    if (!found) pestle_strbuf_append_char(out, line.data[i++]);
  }
}

// The header with more arguments and the results that are left.
static void append_header(const cli_ir_text_t* t, const cli_ir_edit_t* e,
                          pestle_strbuf_t* out) {
  pestle_str_t line = line_of(t, t->header);
  size_t open = pestle_str_find_char(line, '('), close = open;
  int depth = 0;
  for (size_t i = open; i < line.size; ++i) {
    depth += line.data[i] == '(' ? 1 : line.data[i] == ')' ? -1 : 0;
    if (depth) continue;
    close = i;
    break;
  }
  bool first = true;
  pestle_strbuf_append(out, pestle_str_slice(line, 0, open + 1));
  pestle_str_t arguments = pestle_str_slice(line, open + 1, close), part;
  size_t begin = 0;
  for (size_t i = 0; i <= arguments.size; ++i) {
    char c = i < arguments.size ? arguments.data[i] : ',';
    depth += c == '<' || c == '{' ? 1 : c == '>' || c == '}' ? -1 : 0;
    if (c != ',' || depth) continue;
    part = pestle_str_trim(pestle_str_slice(arguments, begin, i));
    begin = i + 1;
    size_t colon = pestle_str_find_char(part, ':');
    if (!part.size || colon == SIZE_MAX) continue;
    if (e->drops && e->drops(e->user, pestle_str_slice(part, 0, colon)))
      continue;
    if (!first) pestle_strbuf_append_c(out, ", ");
    pestle_strbuf_append(out, part);
    first = false;
  }
  for (size_t i = 0; i < e->argument_count; ++i) {
    if (!first) pestle_strbuf_append_c(out, ", ");
    pestle_strbuf_append(out, e->arguments[i].from);
    pestle_strbuf_append_c(out, ": ");
    pestle_strbuf_append(out, e->arguments[i].to);
    first = false;
  }
  pestle_strbuf_append_c(out, ") -> (");
  for (size_t i = 0; i < e->result_count; ++i) {
    if (i) pestle_strbuf_append_c(out, ", ");
    pestle_strbuf_append(out, e->results[i].to);
  }
  pestle_strbuf_append_c(out, ") {");
}

static void append_return(const cli_ir_edit_t* e, pestle_strbuf_t* out) {
  pestle_strbuf_append_c(out, "    \"func.return\"(");
  for (size_t i = 0; i < e->result_count; ++i) {
    if (i) pestle_strbuf_append_c(out, ", ");
    append_replaced(e->results[i].from, e, out);
  }
  pestle_strbuf_append_c(out, ") : (");
  for (size_t i = 0; i < e->result_count; ++i) {
    if (i) pestle_strbuf_append_c(out, ", ");
    pestle_strbuf_append(out, e->results[i].to);
  }
  pestle_strbuf_append_c(out, ") -> ()");
}

pestle_status_t cli_ir_text_apply(const cli_ir_text_t* t,
                                  const cli_ir_edit_t* e,
                                  pestle_strbuf_t* out) {
  for (size_t i = 0; i < t->lines.size; ++i) {
    if (e->remove && e->remove[i]) continue;
    if (i == t->header && e->results) {
      append_header(t, e, out);
    } else if (i == t->end && e->results) {
      append_return(e, out);
    } else if (e->replace && e->replace[i].size) {
      append_replaced(e->replace[i], e, out);
    } else {
      append_replaced(line_of(t, i), e, out);
    }
    pestle_strbuf_append_char(out, '\n');
  }
  return pestle_strbuf_status(out);
}
