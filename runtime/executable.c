// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/fault.h"
#include "base/mem.h"
#include "runtime/overlap.h"
#include "runtime/owned.h"

// --- Inputs and outputs ---

static void fill_io(const pestle_plan_t* plan, const pestle_plan_io_t* record,
                    pestle_exec_io_t* io) {
  *io = (pestle_exec_io_t){
      .info = {.name = pestle_plan_text(plan, record->name),
               .dtype = (pestle_dtype_t)record->dtype,
               .rank = record->rank,
               .dims = record->dims,
               .bounded = record->bounded},
      .dl_dtype = pestle_dtype_to_dlpack((pestle_dtype_t)record->dtype),
      .element = pestle_dtype_size((pestle_dtype_t)record->dtype),
      .size = record->size,
      .shape_offset = record->shape_offset,
      .misaligned = ((uintptr_t)1 << record->align_log2) - 1,
      .alias = record->alias,
      .first_step = UINT32_MAX,
  };
}

static void fill_ios(pestle_executable_t* e) {
  const pestle_plan_io_t* inputs =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_io_t, inputs);
  const pestle_plan_io_t* outputs =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_io_t, outputs);
  for (size_t i = 0; i < e->input_count; ++i) {
    fill_io(e->plan, &inputs[i], &e->io[i]);
  }
  for (size_t i = 0; i < e->output_count; ++i) {
    pestle_exec_io_t* io = &e->io[e->input_count + i];
    fill_io(e->plan, &outputs[i], io);
    // One that begins as an input is written before the first step.
    if (io->alias < 0) continue;
    io->first_step = 0;
    e->has_aliases = true;
  }
}

// The place in |io| of a binding, or SIZE_MAX.
static size_t io_of(const pestle_executable_t* e,
                    const pestle_plan_binding_t* binding) {
  if (binding->storage == PESTLE_PLAN_INPUT) return binding->index;
  if (binding->storage == PESTLE_PLAN_OUTPUT) {
    return e->input_count + binding->index;
  }
  return SIZE_MAX;
}

static pestle_status_t fill_patches(pestle_executable_t* e) {
  size_t count = 0;
  for (size_t i = 0; i < e->binding_count; ++i) {
    count += io_of(e, &e->bindings[i]) != SIZE_MAX;
  }
  e->patches = PESTLE_ARENA_ARRAY(&e->arena, pestle_exec_patch_t, count);
  if (!e->patches) return PESTLE_OOM();
  for (size_t i = 0; i < e->binding_count; ++i) {
    size_t io = io_of(e, &e->bindings[i]);
    if (io == SIZE_MAX) continue;
    e->patches[e->patch_count++] = (pestle_exec_patch_t){
        .binding = (uint32_t)i,
        .io = (uint32_t)io,
        .offset = e->bindings[i].offset,
    };
  }
  return NULL;
}

// --- Steps ---

static size_t bindings_of(const pestle_plan_step_t* step) {
  switch ((pestle_plan_step_kind_t)step->kind) {
    case PESTLE_PLAN_LAUNCH:
    case PESTLE_PLAN_CALL:
    case PESTLE_PLAN_COLLECTIVE:
      return step->count;
    case PESTLE_PLAN_COPY:
      return 2;
    case PESTLE_PLAN_JUMP_IF_ZERO:
    case PESTLE_PLAN_JUMP_TABLE:
      return 1;
    case PESTLE_PLAN_JUMP:
    case PESTLE_PLAN_REPEAT:
    case PESTLE_PLAN_END:
      break;
  }
  return 0;
}

// Finds when inputs and outputs are touched: whether a donated input may share
// memory with an output follows from it.
static void scan_steps(pestle_executable_t* e, size_t step_count) {
  for (size_t i = 0; i < step_count; ++i) {
    const pestle_plan_step_t* step = &e->steps[i];
    bool jumps = step->kind == PESTLE_PLAN_JUMP ||
                 step->kind == PESTLE_PLAN_JUMP_IF_ZERO ||
                 step->kind == PESTLE_PLAN_JUMP_TABLE;
    bool repeats = step->kind == PESTLE_PLAN_REPEAT;
    e->loops |= repeats || (jumps && step->target <= i);
    e->repeat_count += repeats;
    for (size_t b = 0; b < bindings_of(step); ++b) {
      size_t at = io_of(e, &e->bindings[step->first + b]);
      if (at == SIZE_MAX) continue;
      pestle_exec_io_t* io = &e->io[at];
      if (io->first_step > i) io->first_step = (uint32_t)i;
      io->last_step = (uint32_t)i;
    }
  }
}

// What a launch that runs on a CPU away from home may need: its bindings, each
// at its alignment within 64 bytes.
static void measure_stage(pestle_executable_t* e,
                          const pestle_plan_step_t* step) {
  size_t size = 0;
  for (uint32_t b = 0; b < step->count; ++b) {
    // Below 2^56 each, and no more of them than fit a plan of that size.
    size += pestle_align_up((size_t)e->bindings[step->first + b].size, 64) + 64;
  }
  if (e->stage_size < size) e->stage_size = size;
  if (e->stage_args < step->count) e->stage_args = step->count;
}

// Whether the device is waited for before a call is made.
static bool call_waits(const pestle_executable_t* e,
                       const pestle_exec_call_t* call) {
  return call->staged ||
         (call->function &&
          !PESTLE_HAS(pestle_device_api(e->home), stream_native));
}

// Whether the host must look into a run on a stream.
static bool needs_host(const pestle_executable_t* e, size_t step_count) {
  if (!pestle_device_has_events(e->home)) return true;  // nothing tells its end
  for (size_t i = e->input_count; i < e->io_count; ++i) {
    if (e->io[i].info.bounded) return true;
  }
  for (size_t i = 0; i < step_count; ++i) {
    const pestle_plan_step_t* step = &e->steps[i];
    switch ((pestle_plan_step_kind_t)step->kind) {
      case PESTLE_PLAN_LAUNCH:
        if (e->kernels[step->kernel].staged) return true;
        break;
      case PESTLE_PLAN_CALL:
        if (call_waits(e, &e->calls[step->kernel])) return true;
        break;
      case PESTLE_PLAN_COPY:
        if (e->slow_copies) return true;
        break;
      case PESTLE_PLAN_JUMP_IF_ZERO:
      case PESTLE_PLAN_JUMP_TABLE:
      case PESTLE_PLAN_COLLECTIVE:
        return true;
      case PESTLE_PLAN_JUMP:
      case PESTLE_PLAN_REPEAT:
      case PESTLE_PLAN_END:
        break;
    }
  }
  return false;
}

// What a recording may hold: beyond it a graph's memory and the time that it takes to
// make are more than is saved, and steps are queued one by one.
#define MOST_RECORDED 16384.0

// Of more steps than these a frame keeps 16 recordings, for their memory.
#define FEW_RECORDED 64.0

// How many steps |first| .. |end| - 1 are queued by a run, where loops are those of known
// trips alone.
static double count_queued(const pestle_executable_t* e, size_t step_count) {
  double queued = 0;
  for (size_t i = 0; i < step_count; ++i) {
    const pestle_plan_step_t* step = &e->steps[i];
    if (step->kind != PESTLE_PLAN_LAUNCH && step->kind != PESTLE_PLAN_COPY &&
        step->kind != PESTLE_PLAN_COLLECTIVE)
      continue;
    double times = 1;
    for (size_t j = i; e->repeat_count && j < step_count; ++j) {
      const pestle_plan_step_t* loop = &e->steps[j];
      if (loop->kind == PESTLE_PLAN_REPEAT && loop->target <= i)
        times *= loop->count;
    }
    queued += times;
  }
  return queued;
}

static bool has_slow_copies(const pestle_device_t* device) {
  const pestle_device_api_t* api = pestle_device_api(device);
  return !PESTLE_HAS(api, queue_from_host) || !PESTLE_HAS(api, queue_to_host) ||
         !PESTLE_HAS(api, queue_copy);
}

// The number of this process, of which the host tells the device, is no part of a recording.
static bool records_collective(const pestle_executable_t* e,
                               const pestle_plan_step_t* step) {
  uint32_t kind = e->collectives[step->kernel].kind;
  return e->group_hashes && kind != PESTLE_PLAN_PARTITION_ID &&
         kind != PESTLE_PLAN_REPLICA_ID;
}

// Whether all steps can be one recording: nothing that the host must look at or
// do, and something to queue.
static void look_at_steps(pestle_executable_t* e, size_t step_count) {
  bool records = e->remote;
  for (size_t i = 0; e->remote && i < step_count; ++i) {
    const pestle_plan_step_t* step = &e->steps[i];
    bool launch = step->kind == PESTLE_PLAN_LAUNCH;
    bool staged = launch && e->kernels[step->kernel].staged;
    bool call = step->kind == PESTLE_PLAN_CALL;
    if (staged || (call && e->calls[step->kernel].staged)) {
      measure_stage(e, step);
    }
    bool back = step->kind == PESTLE_PLAN_JUMP && step->target <= i;
    records =
        records && !staged && !call && !back &&
        (step->kind != PESTLE_PLAN_COLLECTIVE || records_collective(e, step)) &&
        step->kind != PESTLE_PLAN_JUMP_IF_ZERO &&
        step->kind != PESTLE_PLAN_JUMP_TABLE;
  }
  if (records && pestle_device_has_graphs(e->home)) {
    double queued = count_queued(e, step_count);
    if (queued > 0 && queued <= MOST_RECORDED) {
      e->recordings = queued <= FEW_RECORDED ? PESTLE_RECORDINGS : 16;
    }
  }
  e->slow_copies = e->remote && has_slow_copies(e->home);
  e->needs_host = e->remote && needs_host(e, step_count);
}

// Of a kernel its note, and of any step "locations: 3 4 7".
static void append_trace_note(const pestle_executable_t* e,
                              const pestle_plan_step_t* step,
                              pestle_strbuf_t* out) {
  if (step->kind == PESTLE_PLAN_LAUNCH) {
    const pestle_plan_kernel_t* k = &PESTLE_PLAN_RECORDS(
        e->plan, pestle_plan_kernel_t, kernels)[step->kernel];
    pestle_strbuf_append_c(out, pestle_plan_text(e->plan, k->note));
  }
  const uint32_t* ids = PESTLE_PLAN_RECORDS(e->plan, uint32_t, location_ids) +
                        step->first_location;
  if (!step->location_count) return;
  bool begins_line = !out->size || out->data[out->size - 1] == '\n';
  pestle_strbuf_append_c(out, begins_line ? "locations:" : "\nlocations:");
  for (uint32_t i = 0; i < step->location_count; ++i)
    pestle_strbuf_appendf(out, " %" PRIu32, ids[i]);
}

// The plan may be gone when the trace is written.
static pestle_status_t fill_trace_texts(pestle_executable_t* e, size_t count) {
  pestle_trace_t* trace = e->context->core.trace;
  e->trace_texts = PESTLE_ARENA_ARRAY(&e->arena, pestle_trace_texts_t, count);
  if (!e->trace_texts) return PESTLE_OOM();
  pestle_strbuf_t note;
  pestle_strbuf_init(e->context->core.allocator, &note);
  for (size_t i = 0; i < count; ++i) {
    pestle_strbuf_clear(&note);
    append_trace_note(e, &e->steps[i], &note);
    e->trace_texts[i] = (pestle_trace_texts_t){
        .label = pestle_trace_intern(
            trace, pestle_plan_text(e->plan, e->steps[i].label)),
        .note = note.size ? pestle_trace_intern(trace, note.data) : NULL};
  }
  pestle_status_t status = pestle_strbuf_status(&note);
  pestle_strbuf_deinit(&note);
  return status;
}

// --- Life ---

// Other plans may use the same constants: those count themselves, as the blocks
// of other devices do.
static void count_constants(pestle_executable_t* e, bool in) {
  if (e->remote) return;
  e->counted = in;
  bool counts = in ? !atomic_fetch_add(&e->plan->users, 1)
                   : atomic_fetch_sub(&e->plan->users, 1) == 1;
  if (!counts) return;
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_constant_ref_t, constant_refs);
  int64_t bytes = 0;  // in the plan
  for (size_t i = 0; i < e->plan->constant_count; ++i) {
    pestle_constant_t* outside = e->plan->constants[i];
    if (pestle_plan_is_part(e->plan, i)) continue;
    if (!outside) {
      bytes += (int64_t)refs[i].size;
    } else if (in) {
      pestle_constant_use(outside, e->home);
    } else {
      pestle_constant_unuse(outside);
    }
  }
  pestle_device_count_memory(e->home, in ? bytes : -bytes);
}

// A limit on the home's memory counts constants that are mapped or lie in the plan
// too, where no plan that is run has them yet.
static pestle_status_t check_constants(pestle_executable_t* e) {
  if (e->remote) return NULL;  // they were allocated there
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_constant_ref_t, constant_refs);
  bool is_new = !atomic_load(&e->plan->users);
  uint64_t bytes = 0;
  for (size_t i = 0; is_new && i < e->plan->constant_count; ++i) {
    pestle_constant_t* outside = e->plan->constants[i];
    if (pestle_plan_is_part(e->plan, i)) continue;
    if (!outside || !pestle_constant_is_used(outside)) bytes += refs[i].size;
  }
  if (!bytes) return NULL;
  return pestle_status_annotate(
      pestle_memory_check_limit(e->home, bytes),
      "while taking the constants of plan '%s'",
      pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name));
}

static void drop_constants(pestle_executable_t* e) {
  for (size_t i = 0; e->constants && i < e->plan->constant_count; ++i) {
    pestle_device_constant_release(e->context, e->constants[i]);
  }
}

// Those that a binding names are uploaded: a plan may hold more.
static pestle_status_t upload_constants(pestle_executable_t* e) {
  if (!e->remote) return NULL;
  size_t count = e->plan->constant_count;
  e->constants =
      PESTLE_ARENA_ARRAY(&e->arena, pestle_device_constant_t*, count);
  if (!e->constants) return PESTLE_OOM();
  if (count) memset(e->constants, 0, count * sizeof(*e->constants));
  int64_t begin = pestle_context_trace_begin(e->context);
  for (size_t i = 0; i < e->binding_count; ++i) {
    const pestle_plan_binding_t* b = &e->bindings[i];
    if (b->storage != PESTLE_PLAN_CONSTANT || e->constants[b->index]) continue;
    PESTLE_TRY(pestle_device_constant_get(
        e->plan, b->index, pestle_plan_constant_base(e->plan, b->index),
        e->home, &e->constants[b->index]));
  }
  pestle_context_trace_end(e->context, begin, "load", "upload constants",
                           e->home->name);
  return NULL;
}

static void destroy(pestle_executable_t* e) {
  pestle_context_t* context = e->context;
  pestle_frame_destroy_all(e);
  pestle_arena_pool_release(e->pool);
  pestle_executable_unload_kernels(e);
  drop_constants(e);
  pestle_executable_drop_parts(e);
  if (e->counted) count_constants(e, false);
  if (!PESTLE_FAULT(trust_executable_leak)) pestle_arena_deinit(&e->arena);
  bool owned = e->owned;
  if (owned) {
    pestle_plan_release_cached(e->plan);
  } else {
    pestle_plan_release(e->plan);
  }
  pestle_dealloc(context->core.allocator, e, sizeof(*e));
  if (!owned) pestle_context_release(context);
}

void pestle_executable_own_by_context(pestle_executable_t* e) {
  pestle_plan_retain_cached(e->plan);
  pestle_plan_release(e->plan);
  e->owned = true;
  pestle_context_release(e->context);
}

static pestle_status_t build(pestle_executable_t* e, pestle_device_t* device) {
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  e->input_count = h->inputs.count;
  e->output_count = h->outputs.count;
  e->io_count = e->input_count + e->output_count;
  e->device_count = h->devices.count;
  e->binding_count = h->bindings.count;
  e->arena_size = (size_t)h->arena_size;
  e->scratch_size = (size_t)h->scratch_size;
  e->steps = PESTLE_PLAN_RECORDS(e->plan, pestle_plan_step_t, steps);
  e->bindings = PESTLE_PLAN_RECORDS(e->plan, pestle_plan_binding_t, bindings);
  e->io = PESTLE_ARENA_ARRAY(&e->arena, pestle_exec_io_t, e->io_count);
  e->devices = PESTLE_ARENA_ARRAY(&e->arena, pestle_device_t*, e->device_count);
  e->kernels =
      PESTLE_ARENA_ARRAY(&e->arena, pestle_exec_kernel_t, h->kernels.count);
  if (!e->io || !e->devices || !e->kernels) return PESTLE_OOM();
  memset(e->kernels, 0, h->kernels.count * sizeof(*e->kernels));
  e->kernel_count = h->kernels.count;
  fill_ios(e);
  PESTLE_TRY(fill_patches(e));
  scan_steps(e, h->steps.count);
  PESTLE_TRY(pestle_executable_find_devices(e, device));
  PESTLE_TRY(pestle_executable_find_collectives(e));
  PESTLE_TRY(pestle_executable_find_calls(e));
  PESTLE_TRY(pestle_executable_find_strings(e));
  PESTLE_TRY(pestle_executable_load_kernels(e));
  PESTLE_TRY(upload_constants(e));
  PESTLE_TRY(pestle_executable_find_parts(e));
  look_at_steps(e, h->steps.count);
  PESTLE_TRY(pestle_overlap_find(e, (uint32_t)h->steps.count));
  if (e->context->core.trace) PESTLE_TRY(fill_trace_texts(e, h->steps.count));
  PESTLE_TRY(check_constants(e));
  count_constants(e, true);
  return NULL;
}

pestle_status_t pestle_executable_create(pestle_context_t* context,
                                         pestle_plan_t* plan,
                                         pestle_device_t* device,
                                         pestle_executable_t** out_executable) {
  if (!context || !plan || !out_executable) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_executable_create needs a context, a plan and "
                        "a place for the executable");
  }
  *out_executable = NULL;
  if (device && device->context != context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "device %s belongs to another context", device->name);
  }
  pestle_context_enter(context);
  pestle_executable_t* e =
      pestle_alloc_zero(context->core.allocator, sizeof(*e));
  if (!e) return PESTLE_OOM();
  pestle_refcount_init(&e->refcount);
  pestle_context_retain(context);
  pestle_plan_retain(plan);
  e->context = context;
  e->plan = plan;
  pestle_arena_init(context->core.allocator, &e->arena);
  for (size_t i = 0; i < PESTLE_FRAME_SLOTS; ++i) {
    atomic_init(&e->frames[i], NULL);
  }
  int64_t begin = pestle_context_trace_begin(context);
  pestle_status_t status = build(e, device);
  pestle_context_trace_end(
      context, begin, "load", "create",
      pestle_plan_text(plan, pestle_plan_header(plan)->name));
  if (status) {
    destroy(e);
  } else {
    *out_executable = e;
  }
  return status;
}

void pestle_executable_retain(pestle_executable_t* executable) {
  if (!executable) return;
  pestle_refcount_retain(&executable->refcount);
}

void pestle_executable_release(pestle_executable_t* executable) {
  if (!executable || !pestle_refcount_release(&executable->refcount)) return;
  pestle_context_enter(executable->context);
  // Of a device of the parent's there is nothing here that could be torn down.
  if (!executable->home || !pestle_device_is_of_parent(executable->home)) {
    destroy(executable);
  }
}

// --- Getters ---

size_t pestle_executable_input_count(const pestle_executable_t* executable) {
  return executable ? executable->input_count : 0;
}

size_t pestle_executable_output_count(const pestle_executable_t* executable) {
  return executable ? executable->output_count : 0;
}

pestle_io_info_t pestle_executable_input(const pestle_executable_t* executable,
                                         size_t index) {
  if (index >= pestle_executable_input_count(executable)) {
    return (pestle_io_info_t){.name = ""};
  }
  return executable->io[index].info;
}

pestle_io_info_t pestle_executable_output(const pestle_executable_t* executable,
                                          size_t index) {
  if (index >= pestle_executable_output_count(executable)) {
    return (pestle_io_info_t){.name = ""};
  }
  return executable->io[executable->input_count + index].info;
}

int32_t pestle_executable_alias(const pestle_executable_t* executable,
                                size_t index) {
  if (index >= pestle_executable_output_count(executable)) return -1;
  return executable->io[executable->input_count + index].alias;
}
