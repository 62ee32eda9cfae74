// SPDX-License-Identifier: Apache-2.0
// What the steps of an executable are and which ops they are for, for profiles.
#include <string.h>

#include "runtime/executable.h"

size_t pestle_executable_step_count(const pestle_executable_t* e) {
  return e ? (size_t)pestle_plan_header(e->plan)->steps.count : 0;
}

static bool is_constant(const pestle_plan_binding_t* b) {
  return b->storage == PESTLE_PLAN_CONSTANT || b->storage == PESTLE_PLAN_PART;
}

static uint64_t bound_bytes(const pestle_executable_t* e,
                            const pestle_plan_step_t* step, bool constants) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < step->count; ++i) {
    const pestle_plan_binding_t* b = &e->bindings[step->first + i];
    if (!constants || is_constant(b)) bytes += b->size;
  }
  return bytes;
}

// The next line of |*text|; the rest stays there.
static const char* take_line(const char** text, size_t* out_size) {
  const char* line = *text;
  *out_size = strcspn(line, "\n");
  *text += *out_size + (line[*out_size] == '\n');
  return line;
}

static void tell_kernel(const pestle_executable_t* e,
                        const pestle_plan_step_t* step,
                        pestle_step_info_t* info) {
  const pestle_exec_kernel_t* kernel = &e->kernels[step->kernel];
  const pestle_plan_kernel_t* record = &PESTLE_PLAN_RECORDS(
      e->plan, pestle_plan_kernel_t, kernels)[step->kernel];
  bool on_cpu = pestle_device_is_cpu(kernel->device);
  const char* note = pestle_plan_text(e->plan, record->note);
  info->kind = PESTLE_STEP_KERNEL;
  info->name = kernel->name;
  info->backend = kernel->device->plugin->name;
  info->fallback = record->device != 0;
  info->threads = on_cpu ? kernel->threads : 0;
  info->ops = take_line(&note, &info->ops_size);
  info->schedule = take_line(&note, &info->schedule_size);
  info->flops = record->flops;
  info->half_flops = record->half_flops;
  info->byte_flops = record->byte_flops;
  info->bytes = record->bytes;
  info->constant_bytes = bound_bytes(e, step, true);
}

static void tell_call(const pestle_executable_t* e,
                      const pestle_plan_step_t* step,
                      pestle_step_info_t* info) {
  const pestle_exec_call_t* call = &e->calls[step->kernel];
  info->kind = PESTLE_STEP_CALL;
  info->name = info->ops = call->name;
  info->ops_size = strlen(call->name);
  if (call->library) info->backend = call->library->name;
  info->threads = e->remote ? 0 : 1;
  info->bytes = bound_bytes(e, step, false);
  info->constant_bytes = bound_bytes(e, step, true);
}

static void tell_copy(const pestle_executable_t* e,
                      const pestle_plan_step_t* step,
                      pestle_step_info_t* info) {
  const pestle_plan_binding_t* from = &e->bindings[step->first];
  info->kind = PESTLE_STEP_COPY;
  info->name = info->ops = pestle_plan_text(e->plan, step->label);
  info->ops_size = strlen(info->ops);
  info->threads = e->remote ? 0 : 1;
  info->bytes = 2 * from->size;
  info->constant_bytes = is_constant(from) ? from->size : 0;
}

static void tell_collective(const pestle_executable_t* e,
                            const pestle_plan_step_t* step,
                            pestle_step_info_t* info) {
  info->kind = PESTLE_STEP_COLLECTIVE;
  info->name = info->ops = pestle_plan_text(e->plan, step->label);
  info->ops_size = strlen(info->ops);
  info->threads = 1;
  info->bytes = bound_bytes(e, step, false);
}

pestle_status_t pestle_executable_step(const pestle_executable_t* e,
                                       size_t index,
                                       pestle_step_info_t* out_info) {
  if (!e || !out_info || out_info->struct_size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_executable_step needs an executable and a "
                        "place for what the step is, its struct_size set");
  }
  size_t count = pestle_executable_step_count(e), size = out_info->struct_size;
  if (index >= count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "there is no step %zu: the executable has %zu", index,
                        count);
  }
  const pestle_plan_step_t* step = &e->steps[index];
  pestle_step_info_t info = {.kind = PESTLE_STEP_JUMP,
                             .name = "",
                             .ops = "",
                             .schedule = "",
                             .backend = e->home->plugin->name};
  if (step->kind == PESTLE_PLAN_LAUNCH) tell_kernel(e, step, &info);
  if (step->kind == PESTLE_PLAN_CALL) tell_call(e, step, &info);
  if (step->kind == PESTLE_PLAN_COPY) tell_copy(e, step, &info);
  if (step->kind == PESTLE_PLAN_COLLECTIVE) tell_collective(e, step, &info);
  if (info.constant_bytes > info.bytes) info.constant_bytes = info.bytes;
  info.locations = PESTLE_PLAN_RECORDS(e->plan, uint32_t, location_ids) +
                   step->first_location;
  info.location_count = step->location_count;
  info.struct_size = size < sizeof(info) ? size : sizeof(info);
  memcpy(out_info, &info, info.struct_size);
  return NULL;
}

// --- Locations ---

size_t pestle_executable_location_count(const pestle_executable_t* e) {
  return e ? (size_t)pestle_plan_header(e->plan)->locations.count : 0;
}

pestle_status_t pestle_executable_location(const pestle_executable_t* e,
                                           size_t index,
                                           pestle_location_info_t* out_info) {
  if (!e || !out_info || out_info->struct_size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_executable_location needs an executable and a "
                        "place for what the location is, its struct_size set");
  }
  size_t count = pestle_executable_location_count(e);
  size_t size = out_info->struct_size;
  if (index >= count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "there is no location %zu: the executable has %zu",
                        index, count);
  }
  const pestle_plan_location_t* l =
      &PESTLE_PLAN_RECORDS(e->plan, pestle_plan_location_t, locations)[index];
  pestle_location_info_t info = {.op = pestle_plan_text(e->plan, l->op),
                                 .name = pestle_plan_text(e->plan, l->name),
                                 .file = pestle_plan_text(e->plan, l->file),
                                 .line = l->line,
                                 .column = l->column};
  info.struct_size = size < sizeof(info) ? size : sizeof(info);
  memcpy(out_info, &info, info.struct_size);
  return NULL;
}
