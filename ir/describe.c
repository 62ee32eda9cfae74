// SPDX-License-Identifier: Apache-2.0
// Naming ops in diagnostics.
#include <stdarg.h>

#include "base/mem.h"
#include "ir/internal.h"

static bool has_loc(const pestle_loc_t* loc) {
  return loc->name || loc->file;
}

// "model.mlir:3:5", with what is known of it.
static void append_file(const pestle_loc_t* loc, pestle_strbuf_t* out) {
  pestle_strbuf_append_c(out, loc->file);
  if (!loc->line) return;
  pestle_strbuf_append_char(out, ':');
  pestle_strbuf_append_u64(out, loc->line);
  if (!loc->column) return;
  pestle_strbuf_append_char(out, ':');
  pestle_strbuf_append_u64(out, loc->column);
}

void pestle_node_describe(const pestle_node_t* node, pestle_strbuf_t* out) {
  if (node->result_count && node->results[0].name) {
    pestle_strbuf_append_char(out, '%');
    pestle_strbuf_append_c(out, node->results[0].name);
    pestle_strbuf_append_c(out, " = ");
  }
  pestle_strbuf_append_c(out, pestle_op_info((pestle_op_t)node->op)->mlir);
  if (!has_loc(&node->loc)) return;
  pestle_strbuf_append_c(out, " at ");
  if (node->loc.file) append_file(&node->loc, out);
  if (!node->loc.name) return;
  if (node->loc.file) pestle_strbuf_append_char(out, ' ');
  pestle_strbuf_append_c(out, "node '");
  pestle_strbuf_append_c(out, node->loc.name);
  pestle_strbuf_append_char(out, '\'');
}

// "'stablehlo.add' (node 'conv1' in model.onnx)".
static void append_subject(pestle_op_t op, const pestle_loc_t* loc,
                           pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '\'');
  pestle_strbuf_append_c(out, pestle_op_info(op)->mlir);
  pestle_strbuf_append_char(out, '\'');
  if (!has_loc(loc)) return;
  pestle_strbuf_append_c(out, " (");
  if (loc->name) {
    pestle_strbuf_append_c(out, "node '");
    pestle_strbuf_append_c(out, loc->name);
    pestle_strbuf_append_char(out, '\'');
  }
  if (loc->name && loc->file) pestle_strbuf_append_c(out, " in ");
  if (loc->file) append_file(loc, out);
  pestle_strbuf_append_char(out, ')');
}

pestle_status_t pestle_op_wrap_error(pestle_op_t op, const pestle_loc_t* loc,
                                     const pestle_module_t* module,
                                     pestle_status_t status) {
  if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) return status;
  pestle_strbuf_t subject;
  pestle_strbuf_init(
      module ? module->arena.allocator : pestle_allocator_system(), &subject);
  append_subject(op, loc, &subject);
  pestle_status_t wrapped = pestle_status_make(
      pestle_status_code(status), pestle_status_file(status),
      pestle_status_line(status), "%s: %s", pestle_strbuf_cstr(&subject),
      pestle_status_message(status));
  for (size_t i = 0; pestle_status_note(status, i); ++i) {
    wrapped =
        pestle_status_annotate(wrapped, "%s", pestle_status_note(status, i));
  }
  pestle_strbuf_deinit(&subject);
  pestle_status_release(status);
  return wrapped;
}

pestle_status_t pestle_node_error(const pestle_node_t* node,
                                  pestle_status_code_t code, const char* format,
                                  ...) {
  va_list args;
  va_start(args, format);
  pestle_status_t status =
      pestle_status_make_v(code, __FILE__, __LINE__, format, args);
  va_end(args);
  const pestle_module_t* module =
      node->block ? node->block->region->module : NULL;
  return pestle_op_wrap_error((pestle_op_t)node->op, &node->loc, module,
                              status);
}
