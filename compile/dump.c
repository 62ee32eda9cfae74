// SPDX-License-Identifier: Apache-2.0
#include "compile/dump.h"

#include "ir/graph.h"

bool pestle_wants_dump(const pestle_compile_options_t* options,
                       pestle_stage_t stage) {
  return options->dump && (options->dump_stages >> stage & 1);
}

void pestle_dump(const pestle_compile_options_t* options, pestle_stage_t stage,
                 const char* name, const char* text, size_t size) {
  if (!pestle_wants_dump(options, stage)) return;
  options->dump(options->dump_user, stage, name, text, size);
}

pestle_status_t pestle_dump_module(const pestle_compile_options_t* options,
                                   pestle_stage_t stage,
                                   const pestle_module_t* module) {
  if (!pestle_wants_dump(options, stage)) return NULL;
  char* text;
  size_t size;
  PESTLE_TRY(pestle_module_print(module, PESTLE_PRINT_ELIDE, &text, &size));
  pestle_dump(options, stage, module->name, text, size);
  pestle_context_free(module->context, text, size + 1);
  return NULL;
}

pestle_status_t pestle_dump_plan(const pestle_compile_options_t* options,
                                 const pestle_module_t* module,
                                 const pestle_memory_plan_t* memory,
                                 const pestle_plan_build_t* plan) {
  if (!pestle_wants_dump(options, PESTLE_STAGE_PLAN)) return NULL;
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_context_allocator(module->context), &text);
  pestle_plan_build_print(plan, &text);
  pestle_status_t status = pestle_memory_plan_print(module, memory, &text);
  if (!status) status = pestle_strbuf_status(&text);
  if (!status) {
    pestle_dump(options, PESTLE_STAGE_PLAN, module->name,
                pestle_strbuf_cstr(&text), text.size);
  }
  pestle_strbuf_deinit(&text);
  return status;
}
