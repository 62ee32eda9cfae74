// SPDX-License-Identifier: Apache-2.0
// pestle reduce: makes a model that shows a defect smaller for as long as the
// check still holds.
//
// Every step edits the module's text and is kept if the parser takes what comes
// out and the check holds: fewer results; an op's results become arguments of
// the entry; an op gives way to an operand of its type, or to a constant; long
// constants become one number; extents shrink. Ops that nobody reads any more
// go too. Steps are tried for many ops at once first, then for fewer.
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ir_text.h"
#include "json.h"

typedef struct reduce_t {
  cli_t* cli;
  const char *out, *candidate;  // files
  const char* command;
  int wanted;  // exit code; -1: that of a crash
  pestle_module_t* module;
  cli_ir_text_t text;
  int64_t tries, limit;
  int64_t kept;
} reduce_t;

// --- The check ---

static bool is_crash(int code) {
  return code >= 128 || code == CLI_INTERNAL;
}

static pestle_status_t write_module(reduce_t* r, const pestle_module_t* module,
                                    const char* path) {
  char* text;
  size_t size;
  PESTLE_TRY(pestle_module_print(module, 0, &text, &size));
  pestle_status_t status = pestle_file_write(path, pestle_str_make(text, size));
  pestle_context_free(r->cli->context, text, size + 1);
  return status;
}

static pestle_status_t holds(reduce_t* r, const pestle_module_t* module,
                             bool* out_holds) {
  ++r->tries;
  if (cli_is_terminal(stderr)) {
    fprintf(stderr, "\rcheck %lld of at most %lld: %zu ops\033[K",
            (long long)r->tries, (long long)r->limit, r->text.ops.size);
  }
  PESTLE_TRY(write_module(r, module, r->candidate));
  int code = cli_run_command(r->command);
  *out_holds = r->wanted < 0 ? is_crash(code) : code == r->wanted;
  return NULL;
}

// --- Candidates ---

static pestle_status_t set_module(reduce_t* r, pestle_module_t* module) {
  pestle_module_release(r->module);
  r->module = module;
  cli_ir_text_deinit(&r->text);
  return cli_ir_text_init(r->cli, module, &r->text);
}

// Takes away what nobody reads.
static pestle_status_t sweep(reduce_t* r, pestle_module_t* module) {
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .passes = "dce"};
  return pestle_optimize(r->cli->context, module, NULL, &options);
}

// Tries what |edit| makes. A text that is not a module is not an error.
static pestle_status_t try_edit(reduce_t* r, const cli_ir_edit_t* edit,
                                bool* out_kept) {
  pestle_strbuf_t text;
  pestle_module_t* module = NULL;
  *out_kept = false;
  if (r->tries >= r->limit) return NULL;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_status_t status = cli_ir_text_apply(&r->text, edit, &text);
  if (!status) {
    pestle_status_t wrong = pestle_module_parse(
        r->cli->context, text.data, text.size, "candidate", &module);
    if (!wrong) wrong = sweep(r, module);
    if (!wrong) {
      status = holds(r, module, out_kept);
    }
    pestle_status_release(wrong);
  }
  pestle_strbuf_deinit(&text);
  if (!status && *out_kept) {
    ++r->kept;
    return set_module(r, module);
  }
  pestle_module_release(module);
  return status;
}

// --- Fewer results ---

static pestle_status_t try_results(reduce_t* r, size_t first, size_t count,
                                   bool* out_kept) {
  const cli_ir_op_t* ret = &r->text.returned;
  cli_ir_pair_t* left =
      PESTLE_ARENA_ARRAY(&r->cli->arena, cli_ir_pair_t, ret->operand_count + 1);
  size_t n = 0;
  *out_kept = false;
  if (!left) return PESTLE_OOM();
  for (size_t i = 0; i < ret->operand_count; ++i) {
    if (i >= first && i < first + count) continue;
    left[n++] = (cli_ir_pair_t){ret->operands[i], ret->types[i]};
  }
  cli_ir_edit_t edit = {.results = left, .result_count = n};
  return n ? try_edit(r, &edit, out_kept) : NULL;
}

static pestle_status_t drop_results(reduce_t* r) {
  for (size_t part = r->text.returned.operand_count; part; part /= 2) {
    for (size_t i = 0; i < r->text.returned.operand_count;) {
      bool kept;
      PESTLE_TRY(try_results(r, i, part, &kept));
      if (!kept) i += part;
    }
  }
  return NULL;
}

// --- Ops ---

typedef struct lines_t {
  bool* remove;
  pestle_str_t* replace;
} lines_t;

static pestle_status_t lines_make(reduce_t* r, lines_t* l) {
  size_t n = r->text.lines.size + 1;
  l->remove = pestle_arena_alloc_zero(&r->cli->arena, n, 1);
  l->replace = PESTLE_ARENA_ARRAY(&r->cli->arena, pestle_str_t, n);
  if (!l->remove || !l->replace) return PESTLE_OOM();
  memset(l->replace, 0, n * sizeof(*l->replace));
  return NULL;
}

static void remove_op(lines_t* l, const cli_ir_op_t* op) {
  for (size_t k = op->first; k <= op->last; ++k)
    l->remove[k] = true;
}

static bool is_source(const cli_ir_op_t* op) {
  return pestle_str_equal_c(op->kind, "stablehlo.constant");
}

static pestle_status_t print_name(reduce_t* r, const char* format, size_t n,
                                  pestle_str_t* out) {
  char name[48];
  int size = snprintf(name, sizeof(name), format, n);
  const char* copy = cli_copy(r->cli, pestle_str_make(name, (size_t)size));
  *out = pestle_str(copy);
  return copy ? NULL : PESTLE_OOM();
}

// Ops |first| and so on become arguments of the entry.
static pestle_status_t try_arguments(reduce_t* r, size_t first, size_t count,
                                     bool* out_kept) {
  lines_t l;
  size_t room = 0, n = 0, covered = 0;
  *out_kept = false;
  PESTLE_TRY(lines_make(r, &l));
  for (size_t i = first; i < first + count; ++i)
    room += r->text.ops.data[i].result_count;
  cli_ir_pair_t* renames =
      PESTLE_ARENA_ARRAY(&r->cli->arena, cli_ir_pair_t, 2 * room + 2);
  if (!renames) return PESTLE_OOM();
  cli_ir_pair_t* arguments = renames + room + 1;
  for (size_t i = first; i < first + count; ++i) {
    const cli_ir_op_t* op = &r->text.ops.data[i];
    // What is inside of another one that goes, goes with it.
    if (op->first < covered || is_source(op)) continue;
    covered = op->last + 1;
    remove_op(&l, op);
    for (size_t k = 0; k < op->result_count; ++k) {
      pestle_str_t name;
      PESTLE_TRY(
          print_name(r, "%%reduced_%zu", (size_t)r->tries * 256 + n, &name));
      PESTLE_TRY(cli_ir_result_name(r->cli, op, k, &renames[n].from));
      renames[n].to = name;
      arguments[n++] = (cli_ir_pair_t){name, op->types[k]};
    }
  }
  cli_ir_edit_t edit = {.remove = l.remove,
                        .renames = renames,
                        .rename_count = n,
                        .arguments = arguments,
                        .argument_count = n,
                        .results = NULL};
  cli_ir_pair_t* results = PESTLE_ARENA_ARRAY(
      &r->cli->arena, cli_ir_pair_t, r->text.returned.operand_count + 1);
  if (!results) return PESTLE_OOM();
  for (size_t i = 0; i < r->text.returned.operand_count; ++i) {
    results[i] = (cli_ir_pair_t){r->text.returned.operands[i],
                                 r->text.returned.types[i]};
  }
  edit.results = results;
  edit.result_count = r->text.returned.operand_count;
  return n ? try_edit(r, &edit, out_kept) : NULL;
}

static pestle_status_t make_arguments(reduce_t* r) {
  for (size_t part = r->text.ops.size; part; part /= 2) {
    for (size_t i = 0; i < r->text.ops.size;) {
      bool kept;
      size_t left = r->text.ops.size - i, n = part < left ? part : left;
      PESTLE_TRY(try_arguments(r, i, n, &kept));
      if (!kept) i += part;
    }
  }
  return NULL;
}

// The op's users read its operand |k| instead.
static pestle_status_t try_operand(reduce_t* r, size_t i, size_t k,
                                   bool* out_kept) {
  const cli_ir_op_t* op = &r->text.ops.data[i];
  lines_t l;
  PESTLE_TRY(lines_make(r, &l));
  remove_op(&l, op);
  cli_ir_pair_t rename = {op->name, op->operands[k]};
  cli_ir_edit_t edit = {
      .remove = l.remove, .renames = &rename, .rename_count = 1};
  return try_edit(r, &edit, out_kept);
}

static pestle_status_t forward_operands(reduce_t* r) {
  for (size_t i = 0; i < r->text.ops.size; ++i) {
    bool kept = false;
    for (size_t k = 0;
         i < r->text.ops.size && !kept && k < r->text.ops.data[i].operand_count;
         ++k) {
      if (r->text.ops.data[i].result_count != 1) break;
      PESTLE_TRY(try_operand(r, i, k, &kept));
    }
    if (kept) --i;  // another op has its place now
  }
  return NULL;
}

// The op becomes a constant of one number.
static pestle_status_t try_constant(reduce_t* r, size_t i, const char* number,
                                    bool* out_kept) {
  const cli_ir_op_t* op = &r->text.ops.data[i];
  lines_t l;
  pestle_strbuf_t line;
  *out_kept = false;
  if (op->result_count != 1) return NULL;
  PESTLE_TRY(lines_make(r, &l));
  remove_op(&l, op);
  l.remove[op->first] = false;
  pestle_strbuf_init(pestle_allocator_system(), &line);
  pestle_strbuf_appendf(&line,
                        "%.*s = \"stablehlo.constant\"() <{value = dense<%s> : "
                        "%.*s}> : () -> %.*s",
                        PESTLE_STR_ARG(op->name), number,
                        PESTLE_STR_ARG(op->types[0]),
                        PESTLE_STR_ARG(op->types[0]));
  pestle_status_t status = pestle_strbuf_status(&line);
  if (!status) {
    l.replace[op->first] = pestle_strbuf_view(&line);
    cli_ir_edit_t edit = {.remove = l.remove, .replace = l.replace};
    status = try_edit(r, &edit, out_kept);
  }
  pestle_strbuf_deinit(&line);
  return status;
}

static pestle_status_t make_constants(reduce_t* r) {
  static const char* const numbers[] = {"0", "0.0", "false", "1", "1.0"};
  for (size_t i = 0; i < r->text.ops.size; ++i) {
    pestle_str_t line = r->text.lines.data[r->text.ops.data[i].first];
    bool source = is_source(&r->text.ops.data[i]);
    // A constant may become a simpler one.
    if (source && pestle_str_find(line, PESTLE_STR("dense<[")) == SIZE_MAX)
      continue;
    bool kept = false;
    for (size_t k = 0; k < 5 && !kept; ++k)
      PESTLE_TRY(try_constant(r, i, numbers[k], &kept));
  }
  return NULL;
}

// --- Arguments that nobody reads ---

static bool is_read(const cli_ir_text_t* t, pestle_str_t name) {
  for (size_t i = 0; i < t->lines.size; ++i) {
    pestle_str_t line = t->lines.data[i];
    if (i == t->header) continue;
    for (size_t at = 0; at + name.size <= line.size; ++at) {
      if (memcmp(line.data + at, name.data, name.size)) continue;
      char c = at + name.size < line.size ? line.data[at + name.size] : ' ';
      bool longer = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                    (c >= 'A' && c <= 'Z') || c == '_';
      if (!longer) return true;
    }
  }
  return false;
}

static bool is_unread(void* user, pestle_str_t name) {
  return !is_read(&((reduce_t*)user)->text, name);
}

static pestle_status_t drop_arguments(reduce_t* r) {
  const cli_ir_op_t* ret = &r->text.returned;
  cli_ir_pair_t* results =
      PESTLE_ARENA_ARRAY(&r->cli->arena, cli_ir_pair_t, ret->operand_count + 1);
  bool kept;
  if (!results) return PESTLE_OOM();
  for (size_t i = 0; i < ret->operand_count; ++i)
    results[i] = (cli_ir_pair_t){ret->operands[i], ret->types[i]};
  cli_ir_edit_t edit = {.results = results,
                        .result_count = ret->operand_count,
                        .drops = is_unread,
                        .user = r};
  return try_edit(r, &edit, &kept);
}

// --- Functions that nobody calls ---

static pestle_status_t drop_functions(reduce_t* r) {
  for (size_t i = 0; i < r->text.lines.size; ++i) {
    pestle_str_t line = r->text.lines.data[i];
    if (i == r->text.header ||
        !pestle_str_starts_with(line, PESTLE_STR("  func.func"))) {
      continue;
    }
    lines_t l;
    bool kept;
    PESTLE_TRY(lines_make(r, &l));
    for (size_t k = i; k < r->text.lines.size; ++k) {
      l.remove[k] = true;
      if (pestle_str_equal_c(r->text.lines.data[k], "  }")) break;
    }
    cli_ir_edit_t edit = {.remove = l.remove};
    PESTLE_TRY(try_edit(r, &edit, &kept));
    if (kept) --i;  // another function has its place now
  }
  return NULL;
}

// --- Extents ---

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// |from| becomes |to| where it stands alone as a number, but not in the data of
// constants, whose numbers are no extents.
static void shrink_line(pestle_str_t line, int64_t from, int64_t to,
                        pestle_strbuf_t* out) {
  size_t data = pestle_str_find(line, PESTLE_STR("dense<"));
  size_t data_end = data;
  while (data_end < line.size && line.data[data_end] != '>')
    ++data_end;
  for (size_t i = 0; i < line.size;) {
    char before = i ? line.data[i - 1] : ' ';
    bool inside = data != SIZE_MAX && i > data && i < data_end;
    bool starts = is_digit(line.data[i]) && !inside && !is_digit(before) &&
                  (strchr("<x[ ,", before) != NULL);
    if (!starts) {
      pestle_strbuf_append_char(out, line.data[i++]);
      continue;
    }
    size_t end = i;
    while (end < line.size && is_digit(line.data[end]))
      ++end;
    int64_t value;
    pestle_str_t number = pestle_str_slice(line, i, end);
    char after = end < line.size ? line.data[end] : ' ';
    bool same = pestle_str_parse_i64(number, &value) && value == from &&
                after != '.' && after != 'e';
    if (same) {
      pestle_strbuf_append_i64(out, to);
    } else {
      pestle_strbuf_append(out, number);
    }
    i = end;
  }
}

static pestle_status_t try_extent(reduce_t* r, int64_t from, int64_t to,
                                  bool* out_kept) {
  pestle_strbuf_t all;
  lines_t l;
  PESTLE_TRY(lines_make(r, &l));
  size_t* ends =
      PESTLE_ARENA_ARRAY(&r->cli->arena, size_t, r->text.lines.size + 1);
  if (!ends) return PESTLE_OOM();
  pestle_strbuf_init(pestle_allocator_system(), &all);
  for (size_t i = 0; i < r->text.lines.size; ++i) {
    shrink_line(r->text.lines.data[i], from, to, &all);
    ends[i] = all.size;
  }
  pestle_status_t status = pestle_strbuf_status(&all);
  for (size_t i = 0; !status && i < r->text.lines.size; ++i) {
    size_t begin = i ? ends[i - 1] : 0;
    l.replace[i] = pestle_str_make(all.data + begin, ends[i] - begin);
  }
  cli_ir_edit_t edit = {.replace = l.replace};
  if (!status) status = try_edit(r, &edit, out_kept);
  pestle_strbuf_deinit(&all);
  return status;
}

// The largest extent of a tensor below |limit|; 0: none.
static int64_t next_extent(const cli_ir_text_t* t, int64_t limit) {
  int64_t found = 0;
  pestle_str_t text = pestle_str_make(t->text, t->size);
  for (size_t i = 0; i + 7 < text.size; ++i) {
    if (memcmp(text.data + i, "tensor<", 7)) continue;
    size_t at = i + 7;
    while (at < text.size && is_digit(text.data[at])) {
      size_t end = at;
      while (end < text.size && is_digit(text.data[end]))
        ++end;
      int64_t n;
      if (pestle_str_parse_i64(pestle_str_slice(text, at, end), &n) &&
          n < limit && n > found) {
        found = n;
      }
      at = end + 1;
    }
  }
  return found;
}

static pestle_status_t shrink_extents(reduce_t* r) {
  for (int64_t n = next_extent(&r->text, INT64_MAX); n > 1;
       n = next_extent(&r->text, n)) {
    int64_t tries[] = {1, 2, n / 2, n - 1};
    bool kept = false;
    for (int i = 0; i < 4 && !kept; ++i) {
      if (tries[i] >= n || tries[i] < 1) continue;
      PESTLE_TRY(try_extent(r, n, tries[i], &kept));
    }
  }
  return NULL;
}

// --- The search ---

static pestle_status_t reduce_all(reduce_t* r) {
  for (int64_t before = -1; before != r->kept && r->tries < r->limit;) {
    before = r->kept;
    PESTLE_TRY(drop_results(r));
    PESTLE_TRY(drop_functions(r));
    PESTLE_TRY(make_arguments(r));
    PESTLE_TRY(forward_operands(r));
    PESTLE_TRY(make_constants(r));
    PESTLE_TRY(shrink_extents(r));
    int64_t useful = r->kept;
    PESTLE_TRY(drop_arguments(r));
    r->kept = useful;
  }
  return NULL;
}

// --- The command line ---

static void append_quoted(pestle_strbuf_t* out, const char* text) {
  pestle_strbuf_append_char(out, '\'');
  for (; *text; ++text) {
    if (*text == '\'')
      pestle_strbuf_append_c(out, "'\\''");
    else
      pestle_strbuf_append_char(out, *text);
  }
  pestle_strbuf_append_char(out, '\'');
}

// "pestle diff CANDIDATE A B", with what of the options it needs.
static pestle_status_t append_diff(reduce_t* r, const char* a, const char* b,
                                   pestle_strbuf_t* out) {
  cli_t* cli = r->cli;
  const char* self;
  PESTLE_TRY(cli_own_path(&cli->arena, &self));
  append_quoted(out, self);
  pestle_strbuf_append_c(out, " diff --quick --seed ");
  pestle_strbuf_append_i64(out, cli->count[CLI_SEED]);
  for (int i = 0; i < 2; ++i) {
    const char* value = cli->text[i ? CLI_ATOL : CLI_RTOL];
    if (!value) continue;
    pestle_strbuf_append_c(out, i ? " --atol " : " --rtol ");
    append_quoted(out, value);
  }
  if (cli->text[CLI_BACKENDS]) {
    pestle_strbuf_append_c(out, " --backend-path ");
    append_quoted(out, cli->text[CLI_BACKENDS]);
  }
  pestle_strbuf_append_char(out, ' ');
  append_quoted(out, r->candidate);
  pestle_strbuf_append_char(out, ' ');
  append_quoted(out, a);
  pestle_strbuf_append_char(out, ' ');
  append_quoted(out, b);
  return NULL;
}

static void append_command(reduce_t* r, const char* command,
                           pestle_strbuf_t* out) {
  const char* hole = strstr(command, "{}");
  if (!hole) {
    pestle_strbuf_append_c(out, command);
    pestle_strbuf_append_char(out, ' ');
    append_quoted(out, r->candidate);
    return;
  }
  pestle_strbuf_append(out, pestle_str_make(command, (size_t)(hole - command)));
  append_quoted(out, r->candidate);
  pestle_strbuf_append_c(out, hole + 2);
}

static pestle_status_t write_command(reduce_t* r, pestle_strbuf_t* out) {
  cli_t* cli = r->cli;
  const char* check = cli->text[CLI_CHECK];
  size_t ways = cli->args.size - 1;
  bool differ = !strcmp(check, "differ");
  const char* a = ways ? cli->args.data[1] : differ ? "ref" : "llvm";
  const char* b = ways > 1 ? cli->args.data[2] : differ ? "llvm" : a;
  if (differ || !strcmp(check, "crash")) {
    r->wanted = differ ? CLI_CHECK_FAILED : -1;
    PESTLE_TRY(append_diff(r, a, b, out));
    pestle_strbuf_append_c(out, " >/dev/null 2>&1");
  } else if (!strncmp(check, "error:", 6)) {
    PESTLE_TRY(append_diff(r, a, b, out));
    pestle_strbuf_append_c(out, " 2>&1 >/dev/null | grep -qF -- ");
    append_quoted(out, check + 6);
  } else {
    append_command(r, check, out);
  }
  return pestle_strbuf_status(out);
}

static pestle_status_t set_files(reduce_t* r) {
  cli_t* cli = r->cli;
  pestle_strbuf_t path;
  pestle_strbuf_init(pestle_allocator_system(), &path);
  r->out = cli->text[CLI_OUT];
  if (!r->out) {
    pestle_strbuf_appendf(&path, "%s.reduced.mlir", cli->args.data[0]);
    r->out = cli_copy(cli, pestle_strbuf_view(&path));
  }
  pestle_strbuf_clear(&path);
  pestle_strbuf_appendf(&path, "%s.try.mlir", r->out ? r->out : "");
  r->candidate = cli_copy(cli, pestle_strbuf_view(&path));
  pestle_strbuf_clear(&path);
  pestle_status_t status = NULL;
  if (!r->out || !r->candidate) status = PESTLE_OOM();
  if (!status) status = write_command(r, &path);
  if (!status) {
    r->command = cli_copy(cli, pestle_strbuf_view(&path));
    if (!r->command) status = PESTLE_OOM();
  }
  pestle_strbuf_deinit(&path);
  return status;
}

static pestle_status_t reduce(reduce_t* r) {
  bool is_held;
  PESTLE_TRY(cli_ir_text_init(r->cli, r->module, &r->text));
  size_t before = r->text.ops.size;
  PESTLE_TRY(holds(r, r->module, &is_held));
  if (!is_held) {
    return CLI_USAGE_ERROR(
        "--check does not hold for the model itself; it ran: %s", r->command);
  }
  PESTLE_TRY(reduce_all(r));
  PESTLE_TRY(write_module(r, r->module, r->out));
  if (cli_is_terminal(stderr)) fputs("\r\033[K", stderr);
  if (r->cli->json) {
    cli_key_cstr(r->cli->json, "file", r->out);
    cli_key_u64(r->cli->json, "ops_before", before);
    cli_key_u64(r->cli->json, "ops", r->text.ops.size);
    cli_key_i64(r->cli->json, "checks", r->tries);
    return NULL;
  }
  printf("%zu ops became %zu, after %lld checks; written to %s\n", before,
         r->text.ops.size, (long long)r->tries, r->out);
  return NULL;
}

pestle_status_t cli_reduce(cli_t* cli, int* out_exit) {
  (void)out_exit;
  if (!cli->args.size || cli->args.size > 3 || !cli->text[CLI_CHECK]) {
    return CLI_USAGE_ERROR(
        "'pestle reduce' wants a model and --check, as in 'pestle reduce "
        "model.mlir ref llvm --check differ'");
  }
  reduce_t r = {.cli = cli, .limit = 4000};
  if (cli->text[CLI_TRIES]) r.limit = cli->count[CLI_TRIES];
  if (cli->text[CLI_OUT])
    PESTLE_TRY(cli_check_target(cli->args.data[0], cli->text[CLI_OUT], "-o"));
  PESTLE_TRY(set_files(&r));
  pestle_status_t status =
      cli_open_module(cli, cli->args.data[0], NULL, &r.module);
  if (!status) status = reduce(&r);
  cli_ir_text_deinit(&r.text);
  pestle_module_release(r.module);
  pestle_status_release(pestle_file_remove(r.candidate));
  return status;
}
