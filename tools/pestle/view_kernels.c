// SPDX-License-Identifier: Apache-2.0
// What 'pestle view' keeps of kernels: texts, each once, by kernel and stage.
#include <string.h>

#include "view.h"

static const void* section(const pestle_plan_header_t* plan,
                           pestle_plan_section_t s) {
  return (const char*)plan + s.offset;
}

// --- Texts ---

int32_t cli_view_text(cli_view_t* view, const char* text, size_t size) {
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(&view->text_numbers, text, size, &added);
  if (!value) return -1;
  if (!added) return (int32_t)value->u64;
  const char* copy = cli_copy(view->cli, pestle_str_make(text, size));
  value->u64 = view->texts.size;
  if (!copy || !pestle_vec_push(&view->texts, copy)) return -1;
  return (int32_t)value->u64;
}

void cli_view_keep(cli_view_t* view, const char* name, cli_view_stage_t stage,
                   const char* text, size_t size) {
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(&view->kernel_numbers, name, strlen(name), &added);
  int32_t number = cli_view_text(view, text, size);
  if (view->status) return;
  if (!value || number < 0) {
    view->status = PESTLE_OOM();
    return;
  }
  if (added) {
    cli_view_kernel_t kernel = {.name = cli_copy(view->cli, pestle_str(name))};
    for (int i = 0; i < CLI_VIEW_STAGES; ++i)
      kernel.texts[i] = -1;
    value->u64 = view->kernels.size;
    if (!kernel.name || !pestle_vec_push(&view->kernels, kernel)) {
      view->status = PESTLE_OOM();
      return;
    }
  }
  view->kernels.data[value->u64].texts[stage] = number;
}

// A plan has of each kernel its ops and what was chosen.
pestle_status_t cli_view_keep_notes(cli_view_t* view) {
  const pestle_plan_header_t* plan = pestle_plan_data(view->job.plan, NULL);
  const pestle_plan_kernel_t* kernels = section(plan, plan->kernels);
  const char* strings = section(plan, plan->strings);
  for (uint64_t i = 0; i < plan->kernels.count; ++i) {
    const char* note = strings + kernels[i].note;
    cli_view_keep(view, strings + kernels[i].name, CLI_VIEW_SCHEDULE, note,
                  strlen(note));
  }
  return view->status;
}

// Kernels of one Kernel IR are compiled once: those without a source are like one that
// has it.
pestle_status_t cli_view_share_code(cli_view_t* view) {
  const pestle_plan_header_t* plan = pestle_plan_data(view->job.plan, NULL);
  const pestle_plan_kernel_t* kernels = section(plan, plan->kernels);
  const char* strings = section(plan, plan->strings);
  pestle_map_t first;  // by hash: the number of a kernel that has its code, + 1
  bool failed = false;
  pestle_map_init(pestle_allocator_system(), &first);
  for (int turn = 0; turn < 2 && !failed; ++turn) {
    for (uint64_t i = 0; i < plan->kernels.count && !failed; ++i) {
      const char* name = strings + kernels[i].name;
      const pestle_map_value_t* number =
          pestle_map_find_str(&view->kernel_numbers, pestle_str(name));
      if (!number) continue;
      int32_t* texts = view->kernels.data[number->u64].texts;
      bool has_code = texts[CLI_VIEW_SOURCE] >= 0 || texts[CLI_VIEW_ASM] >= 0;
      pestle_map_value_t* value = pestle_map_put(&first, kernels[i].hash,
                                                 sizeof(kernels[i].hash), NULL);
      failed = !value;
      if (value && has_code && !turn) value->u64 = number->u64 + 1;
      if (!value || has_code || !turn || !value->u64) continue;
      const int32_t* other = view->kernels.data[value->u64 - 1].texts;
      texts[CLI_VIEW_SOURCE] = other[CLI_VIEW_SOURCE];
      texts[CLI_VIEW_ASM] = other[CLI_VIEW_ASM];
    }
  }
  pestle_map_deinit(&first);
  return failed ? PESTLE_OOM() : NULL;
}
