// SPDX-License-Identifier: Apache-2.0
// FOLDER/jit_f.003.kernels.add.txt: files sort in the order in which they were made.
#include "pjrt/dump.h"

#include <ctype.h>

#include "base/file.h"

static const char* const stages[PESTLE_STAGE_COUNT] = {
    [PESTLE_STAGE_GRAPH] = "graph",     [PESTLE_STAGE_PASS] = "pass",
    [PESTLE_STAGE_FUSED] = "fused",     [PESTLE_STAGE_SCHEDULE] = "schedule",
    [PESTLE_STAGE_KERNELS] = "kernels", [PESTLE_STAGE_SOURCE] = "source",
    [PESTLE_STAGE_ASM] = "asm",         [PESTLE_STAGE_PLAN] = "plan",
    [PESTLE_STAGE_TIMES] = "times",     [PESTLE_STAGE_EXPLAIN] = "explain",
};

// Any bytes may be in a name.
static void append_name(const char* name, pestle_strbuf_t* out) {
  for (size_t i = 0; name && name[i] && i < 100; ++i) {
    bool is_plain =
        isalnum((unsigned char)name[i]) || name[i] == '_' || name[i] == '-';
    pestle_strbuf_append_char(out, is_plain ? name[i] : '_');
  }
}

void pestle_pjrt_dump_receive(void* self, pestle_stage_t stage,
                              const char* name, const char* text, size_t size) {
  pestle_pjrt_dump_t* dump = self;
  if (dump->status) return;
  pestle_strbuf_t path;
  pestle_strbuf_init(pestle_allocator_system(), &path);
  pestle_strbuf_append(&path, dump->folder);
  pestle_strbuf_append_char(&path, '/');
  append_name(dump->program, &path);
  pestle_strbuf_appendf(&path, ".%03zu.%s", dump->count++, stages[stage]);
  if (name && *name) pestle_strbuf_append_char(&path, '.');
  append_name(name, &path);
  pestle_strbuf_append_c(&path, ".txt");
  dump->status = pestle_strbuf_status(&path);
  if (!dump->status) {
    dump->status = pestle_file_write(pestle_strbuf_cstr(&path),
                                     pestle_str_make(text, size));
  }
  pestle_strbuf_deinit(&path);
}
