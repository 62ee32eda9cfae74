// SPDX-License-Identifier: Apache-2.0
// The steps of every cell: compile for the backend, and note the outcome.
#include "tools/conform/kit.h"

#include <stdarg.h>
#include <stdio.h>

void kit_note(kit_state_t state, const char* format, ...) {
  kit_cell_t* cell = kit.cell;
  ++cell->instances;
  if (state <= cell->state) return;
  cell->state = state;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(cell->why, sizeof(cell->why), format, args);
  va_end(args);
}

static pestle_status_t compile_in(pestle_context_t* context,
                                  pestle_module_t* module,
                                  pestle_executable_t** out_executable) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  PESTLE_TRY(pestle_context_target(context, kit.backend, &device));
  bool compiles_only = pestle_device_is_target(device);
  atomic_store(&kit.results->compiles_only, compiles_only);
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .verify = true,
                                      .target_cpu = kit.cpu};
  PESTLE_TRY(pestle_compile(context, module, device, &options, &plan));
  pestle_status_t status = NULL;
  if (!compiles_only) {
    status = pestle_executable_create(context, plan, device, out_executable);
  }
  pestle_plan_release(plan);
  return status;
}

kit_state_t kit_compile(pestle_module_t* module, const char* what,
                        pestle_executable_t** out_executable) {
  *out_executable = NULL;
  pestle_status_t status = compile_in(kit.strict, module, out_executable);
  bool compiles_only = atomic_load(&kit.results->compiles_only);
  if (!status && compiles_only) kit_note(KIT_COMPILED, "%s", "");
  if (!status) return compiles_only ? KIT_COMPILED : KIT_PASS;
  const char* colon = *what ? ": " : "";
  bool lacks = pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED;
  if (!lacks) {
    kit_note(KIT_WRONG, "%s%s%s", what, colon, pestle_status_message(status));
    pestle_status_release(status);
    return KIT_WRONG;
  }
  pestle_status_t other = compile_in(kit.lenient, module, out_executable);
  kit_state_t state = !other ? KIT_FALLBACK
                      : pestle_status_code(other) == PESTLE_STATUS_UNSUPPORTED
                          ? KIT_UNSUPPORTED
                          : KIT_WRONG;
  kit_note(state, "%s%s%s", what, colon,
           pestle_status_message(state == KIT_WRONG ? other : status));
  pestle_status_release(status);
  pestle_status_release(other);
  return state;
}
