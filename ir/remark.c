// SPDX-License-Identifier: Apache-2.0
#include "ir/remark.h"

void pestle_remarks_init(pestle_allocator_t allocator,
                         pestle_remarks_t* out_remarks) {
  pestle_arena_init(allocator, &out_remarks->arena);
  pestle_vec_init(&out_remarks->list, allocator);
  out_remarks->failed = false;
}

void pestle_remarks_deinit(pestle_remarks_t* remarks) {
  pestle_vec_deinit(&remarks->list);
  pestle_arena_deinit(&remarks->arena);
}

void pestle_remarks_add(pestle_remarks_t* remarks,
                        const pestle_remark_t* remark) {
  pestle_remark_t own = *remark;
  own.what =
      pestle_arena_strdup(&remarks->arena, remark->what ? remark->what : "");
  own.text = pestle_arena_strdup(&remarks->arena, remark->text);
  if (!own.what || !own.text || !pestle_vec_push(&remarks->list, own)) {
    remarks->failed = true;
  }
}

pestle_status_t pestle_remarks_status(const pestle_remarks_t* remarks) {
  return remarks->failed ? PESTLE_OOM() : NULL;
}

void pestle_remark_describe(const pestle_node_t* node, pestle_strbuf_t* out) {
  pestle_strbuf_append_c(out, pestle_op_info((pestle_op_t)node->op)->name);
  if (!node->loc.name) return;
  pestle_strbuf_append_c(out, " (");
  pestle_strbuf_append_name(out, node->loc.name);
  pestle_strbuf_append_char(out, ')');
}

void pestle_remarks_add_on(pestle_remarks_t* remarks, const char* pass,
                           const pestle_node_t* node, const char* code,
                           const char* text) {
  if (!remarks) return;
  pestle_strbuf_t what;
  pestle_strbuf_init(remarks->list.allocator, &what);
  pestle_remark_describe(node, &what);
  pestle_remarks_add(remarks,
                     &(pestle_remark_t){.pass = pass,
                                        .code = code,
                                        .what = pestle_strbuf_cstr(&what),
                                        .text = text});
  pestle_strbuf_deinit(&what);
}
