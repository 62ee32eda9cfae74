// SPDX-License-Identifier: Apache-2.0
// One call of an executable: what the caller gave is checked, bound to a frame,
// run and copied back where it was not used in place.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/control.h"
#include "runtime/stream.h"

// --- Options ---

pestle_status_t pestle_run_read_control(const pestle_control_t* control,
                                        pestle_control_t* out_control) {
  // Runs that wait in a queue are copied: nothing points at the control.
  const pestle_control_t* here;
  return pestle_control_read(control, out_control, &here);
}

static pestle_status_t read_options(const pestle_run_options_t* options,
                                    pestle_run_t* out_run) {
  memset(out_run, 0, sizeof(*out_run));
  if (!options) return NULL;
  size_t size = options->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_options_t.struct_size is not set");
  }
  if (size > sizeof(*options)) size = sizeof(*options);
  memcpy(&out_run->options, options, size);
  if (out_run->options.donated_count && !out_run->options.donated) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_options_t counts donated inputs that are "
                        "NULL");
  }
  int32_t place = out_run->options.output_place;
  if (place < PESTLE_OUTPUTS_AUTO || place > PESTLE_OUTPUTS_DEVICE) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_options_t.output_place is %d, which is "
                        "none of pestle_output_place_t",
                        (int)place);
  }
  if (out_run->options.threads < 0) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_options_t.threads is %d; expected 0 (the "
                        "pool's size) or more",
                        (int)out_run->options.threads);
  }
  return pestle_run_read_control(out_run->options.control, &out_run->control);
}

static pestle_status_t mark_donated(const pestle_executable_t* e,
                                    const pestle_run_options_t* options,
                                    pestle_frame_t* frame) {
  memset(frame->donated, 0, e->input_count);
  for (size_t d = 0; d < options->donated_count; ++d) {
    const char* name = options->donated[d];
    bool found = false;
    for (size_t i = 0; name && i < e->input_count; ++i) {
      if (strcmp(e->io[i].info.name, name) != 0) continue;
      frame->donated[i] = found = true;
    }
    if (!found) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the donated input '%s' is none of the executable's",
                          name ? name : "");
    }
  }
  return NULL;
}

// --- Checks ---

static bool same_device(pestle_dl_device_t a, pestle_dl_device_t b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

// The context's name of a device, or what DLPack calls it.
const char* pestle_run_device_text(pestle_context_t* context,
                                   pestle_dl_device_t dl, char out_text[64]) {
  const pestle_device_t* device;
  for (int64_t i = 0;
       (device = pestle_registry_find(&context->registry, NULL, 0, i)); ++i) {
    if (!pestle_device_is_cpu(device) && same_device(device->dl, dl)) {
      return device->name;
    }
  }
  (void)snprintf(out_text, 64, "of DLPack type %d, number %d",
                 (int)dl.device_type, (int)dl.device_id);
  return out_text;
}

// The host's memory or the home's.
static pestle_status_t check_place(const pestle_executable_t* e,
                                   const pestle_tensor_t* view,
                                   const pestle_exec_io_t* io, const char* kind,
                                   bool* out_remote) {
  pestle_dl_device_t dl = view->device;
  *out_remote = e->remote && same_device(dl, e->home->dl);
  if (*out_remote) return NULL;
  if (dl.device_type != PESTLE_DEVICE_CPU) {
    char text[64];
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%s '%s' is on device %s, but the executable runs on "
                        "%s; copy it there with pestle_buffer_copy()",
                        kind, io->info.name,
                        pestle_run_device_text(e->context, dl, text),
                        e->home->name);
  }
  // Every CPU device shares the host's memory, which DLPack numbers 0.
  if (dl.device_id == 0) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "%s '%s' is on CPU device %d, which does not exist; "
                      "host memory is that of device 0",
                      kind, io->info.name, (int)dl.device_id);
}

static pestle_status_t check_view(const pestle_executable_t* e,
                                  const pestle_tensor_t* view, size_t at,
                                  pestle_frame_t* frame) {
  const char* kind = at < e->input_count ? "input" : "output";
  const pestle_exec_io_t* io = &e->io[at];
  frame->copied[at] = false;
  PESTLE_TRY(
      pestle_view_check(view, io, kind, &frame->ranges[at], &frame->dense[at]));
  PESTLE_TRY(check_place(e, view, io, kind, &frame->remote[at]));
  if (!frame->remote[at] || frame->dense[at] || *kind == 'i') return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "output '%s' on device %s has gaps between its elements, "
                      "where nothing but the host could write; give one "
                      "without strides",
                      io->info.name, e->home->name);
}

static pestle_status_t check_views(const pestle_executable_t* e,
                                   const pestle_tensor_t* inputs,
                                   const pestle_tensor_t* outputs,
                                   pestle_frame_t* frame) {
  for (size_t i = 0; i < e->input_count; ++i) {
    PESTLE_TRY(check_view(e, &inputs[i], i, frame));
  }
  for (size_t i = 0; i < e->output_count; ++i) {
    size_t at = e->input_count + i;
    if (outputs[i].data) {
      PESTLE_TRY(check_view(e, &outputs[i], at, frame));
      continue;
    }
    frame->ranges[at] = (pestle_view_range_t){0, 0};
    frame->dense[at] = true;
    frame->remote[at] = frame->copied[at] = false;
  }
  return NULL;
}

static int compare_ranges(const void* a, const void* b) {
  const pestle_io_range_t *x = a, *y = b;
  if (x->remote != y->remote) return x->remote ? 1 : -1;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

// Addresses of two devices say nothing about each other.
static bool overlaps(const pestle_frame_t* frame, size_t a, size_t b) {
  return frame->remote[a] == frame->remote[b] &&
         pestle_view_overlaps(frame->ranges[a], frame->ranges[b]);
}

// Whether an output surely overlaps nothing: the usual case, told by the ranges
// in the order of their beginnings. Each pair is looked at where that fails.
static bool all_apart(const pestle_executable_t* e, pestle_frame_t* frame) {
  uintptr_t last = 0, last_output = 0;  // ends so far
  for (size_t i = 0; i < e->io_count; ++i) {
    pestle_view_range_t r = frame->ranges[i];
    frame->sorted[i] = (pestle_io_range_t){r.begin, r.end, frame->remote[i],
                                           i >= e->input_count};
  }
  qsort(frame->sorted, e->io_count, sizeof(frame->sorted[0]), compare_ranges);
  for (size_t i = 0; i < e->io_count; ++i) {
    const pestle_io_range_t* r = &frame->sorted[i];
    if (i && r->remote != r[-1].remote) last = last_output = 0;
    if (r->begin < (r->is_output ? last : last_output)) return false;
    if (r->end > last) last = r->end;
    if (r->is_output && r->end > last_output) last_output = r->end;
  }
  return true;
}

static pestle_status_t check_outputs_apart(const pestle_executable_t* e,
                                           const pestle_frame_t* frame) {
  for (size_t o = e->input_count; o < e->io_count; ++o) {
    for (size_t p = e->input_count; p < o; ++p) {
      if (!overlaps(frame, o, p)) continue;
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "output '%s' overlaps output '%s' in memory",
                          e->io[o].info.name, e->io[p].info.name);
    }
  }
  return NULL;
}

// Whether donated input |i| may stay where output |o| is made in place. An input
// that some output begins as is read before all steps, with the others of its
// kind, so only its own place will do.
static bool may_lie_under(const pestle_executable_t* e,
                          const pestle_frame_t* frame, size_t i, size_t o) {
  const pestle_exec_io_t* input = &e->io[i];
  if (frame->copied[i]) return false;
  if (input->alias < 0) return pestle_exec_is_apart(e, input, &e->io[o]);
  return e->input_count + (size_t)input->alias == o &&
         pestle_frame_is_alias(e, frame, i,
                               (const char*)frame->ranges[o].begin);
}

// Refuses outputs that overlap what must stay. A donated input that an output
// overlaps is read in place only if all reads of it lie before all writes of
// the output; otherwise it is copied, so that the results are the same.
static pestle_status_t check_overlaps(const pestle_executable_t* e,
                                      pestle_frame_t* frame) {
  // Of a few the pairs cost less than the order.
  enum { A_FEW = 24 };
  if (e->io_count > A_FEW && all_apart(e, frame)) return NULL;
  PESTLE_TRY(check_outputs_apart(e, frame));
  for (size_t o = e->input_count; o < e->io_count; ++o) {
    const pestle_exec_io_t* output = &e->io[o];
    for (size_t i = 0; i < e->input_count; ++i) {
      if (!overlaps(frame, o, i)) continue;
      const pestle_exec_io_t* input = &e->io[i];
      if (!frame->donated[i]) {
        return PESTLE_ERROR(INVALID_ARGUMENT,
                            "output '%s' overlaps input '%s' in memory, which "
                            "this run may not overwrite; donate the input or "
                            "give the output memory of its own",
                            output->info.name, input->info.name);
      }
      if (!pestle_frame_in_place(e, frame, o)) continue;
      frame->copied[i] = !may_lie_under(e, frame, i, o);
    }
  }
  return NULL;
}

pestle_status_t pestle_run_check_counts(const pestle_executable_t* e,
                                        const void* inputs, size_t input_count,
                                        const void* outputs,
                                        size_t output_count) {
  if (input_count != e->input_count || output_count != e->output_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the run got %zu inputs and %zu outputs; the "
                        "executable has %zu and %zu",
                        input_count, output_count, e->input_count,
                        e->output_count);
  }
  if ((input_count && !inputs) || (output_count && !outputs)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the run's %s are NULL",
                        input_count && !inputs ? "inputs" : "outputs");
  }
  return NULL;
}

// --- Allocated outputs ---

static void drop_outputs(pestle_executable_t* e, pestle_frame_t* frame,
                         pestle_tensor_t* outputs) {
  for (size_t i = 0; i < e->output_count; ++i) {
    if (frame->allocated[i]) pestle_tensor_release(e, &outputs[i]);
  }
}

static bool makes_remote(const pestle_executable_t* e,
                         const pestle_frame_t* frame,
                         const pestle_run_options_t* options) {
  if (!e->remote || options->output_place == PESTLE_OUTPUTS_HOST) return false;
  bool remote = options->output_place == PESTLE_OUTPUTS_DEVICE;
  for (size_t i = 0; i < e->input_count; ++i) {
    remote |= frame->remote[i];
  }
  return remote;
}

static pestle_status_t make_outputs(pestle_executable_t* e,
                                    pestle_frame_t* frame,
                                    const pestle_run_options_t* options,
                                    pestle_tensor_t* outputs) {
  bool remote = makes_remote(e, frame, options);
  for (size_t i = 0; i < e->output_count; ++i) {
    if (outputs[i].data) continue;
    size_t at = e->input_count + i;
    PESTLE_TRY(pestle_output_create(e, &e->io[at], remote, &outputs[i]));
    frame->allocated[i] = true;
    frame->remote[at] = remote;
    uintptr_t begin = (uintptr_t)outputs[i].data;
    frame->ranges[at] = (pestle_view_range_t){begin, begin + e->io[at].size};
  }
  return NULL;
}

// --- Binding ---

static pestle_status_t reserve_staging(pestle_executable_t* e,
                                       pestle_frame_t* frame) {
  size_t size = 0;
  for (size_t i = 0; i < e->io_count; ++i) {
    frame->staged[i] = SIZE_MAX;
    bool reached = frame->remote[i] == e->remote;
    bool in_place = reached && pestle_frame_in_place(e, frame, i);
    // What an output begins as is brought to that one's storage at once.
    bool alias = i < e->input_count && e->io[i].alias >= 0 && !frame->copied[i];
    if (!e->io[i].size || in_place || alias) continue;
    frame->staged[i] = size;
    // Each is below 2^56 and there are less than 2^32; memory ends before.
    if (__builtin_add_overflow(size, pestle_align_up(e->io[i].size, 64),
                               &size)) {
      return PESTLE_ERROR(OUT_OF_MEMORY, "the views to copy are too large");
    }
  }
  if (!size || (frame->staging && frame->staging->size >= size)) return NULL;
  pestle_device_free(e->home, frame->staging);
  frame->staging = NULL;
  return pestle_device_allocate(e->home, size, &frame->staging);
}

// Brings what outputs begin as to their storage.
static void bind_aliases(pestle_executable_t* e, pestle_frame_t* frame,
                         const pestle_tensor_t* inputs) {
  for (size_t i = 0; i < e->input_count; ++i) {
    const pestle_exec_io_t* io = &e->io[i];
    if (io->alias < 0 || !io->size) continue;
    char* storage = frame->io[e->input_count + (size_t)io->alias];
    if (frame->staged[i] != SIZE_MAX) {
      memcpy(storage, frame->io[i], io->size);
    } else if (!pestle_frame_is_alias(e, frame, i, storage)) {
      pestle_view_copy(io->info.rank, io->info.dims, io->element,
                       pestle_view_data(&inputs[i]), inputs[i].strides, storage,
                       NULL);
    }
    frame->io[i] = storage;
  }
}

static void bind_views(pestle_executable_t* e, pestle_frame_t* frame,
                       const pestle_tensor_t* inputs) {
  for (size_t i = 0; i < e->io_count; ++i) {
    const pestle_exec_io_t* io = &e->io[i];
    if (!io->size) {
      frame->io[i] = frame->arena->data;  // Some address; nobody reads there.
    } else if (frame->staged[i] == SIZE_MAX) {
      frame->io[i] = (char*)frame->ranges[i].begin;
    } else {
      frame->io[i] = (char*)frame->staging->data + frame->staged[i];
      if (i < e->input_count) {
        pestle_view_copy(io->info.rank, io->info.dims, io->element,
                         pestle_view_data(&inputs[i]), inputs[i].strides,
                         frame->io[i], NULL);
      }
    }
  }
  if (e->has_aliases) bind_aliases(e, frame, inputs);
  for (size_t i = 0; i < e->patch_count; ++i) {
    const pestle_exec_patch_t* patch = &e->patches[i];
    frame->bindings[patch->binding] = frame->io[patch->io] + patch->offset;
  }
}

static pestle_status_t run_bound(pestle_executable_t* e, pestle_frame_t* frame,
                                 pestle_stream_t* stream,
                                 const pestle_tensor_t* inputs,
                                 pestle_tensor_t* outputs,
                                 const pestle_run_t* run) {
  PESTLE_TRY(pestle_frame_prepare(e, frame));
  PESTLE_TRY(reserve_staging(e, frame));
  if (e->remote) {
    return pestle_run_device(e, frame, stream, inputs, outputs, run);
  }
  bind_views(e, frame, inputs);
  PESTLE_TRY(pestle_execute(e, frame, run));
  for (size_t i = 0; i < e->output_count; ++i) {
    PESTLE_TRY(pestle_output_finish(e, frame, i, &outputs[i]));
  }
  return NULL;
}

pestle_status_t pestle_run_frame(pestle_executable_t* e, pestle_frame_t* frame,
                                 pestle_stream_t* stream,
                                 const pestle_tensor_t* inputs,
                                 pestle_tensor_t* outputs,
                                 const pestle_run_t* run) {
  if (!e->context->core.trace) {
    return run_bound(e, frame, stream, inputs, outputs, run);
  }
  pestle_trace_t* trace = e->context->core.trace;
  pestle_trace_span_t span = {.category = "run",
                              .name = "run",
                              .begin_ns = pestle_clock_ns(),
                              .flow_in = run->flow};
  pestle_status_t status = run_bound(e, frame, stream, inputs, outputs, run);
  span.detail = pestle_trace_intern(
      trace, pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name));
  pestle_trace_add(trace, &span);
  return status;
}

pestle_status_t pestle_run_bind(const pestle_executable_t* e,
                                const pestle_tensor_t* inputs,
                                const pestle_tensor_t* outputs,
                                pestle_frame_t* frame) {
  PESTLE_TRY(check_views(e, inputs, outputs, frame));
  return check_overlaps(e, frame);
}

// --- The call ---

static pestle_status_t check_and_run(pestle_executable_t* e,
                                     pestle_frame_t* frame,
                                     pestle_stream_t* stream,
                                     const pestle_tensor_t* inputs,
                                     pestle_tensor_t* outputs,
                                     const pestle_run_t* run) {
  PESTLE_TRY(mark_donated(e, &run->options, frame));
  PESTLE_TRY(pestle_run_bind(e, inputs, outputs, frame));
  if (stream) PESTLE_TRY(pestle_stream_accepts(stream, e));
  pestle_status_t status = make_outputs(e, frame, &run->options, outputs);
  if (!status) {
    status =
        stream ? pestle_stream_run(stream, e, frame, inputs, outputs, run, NULL)
               : pestle_run_frame(e, frame, NULL, inputs, outputs, run);
  }
  if (status) drop_outputs(e, frame, outputs);
  return status;
}

static pestle_status_t call(pestle_executable_t* e, pestle_stream_t* stream,
                            const pestle_tensor_t* inputs, size_t input_count,
                            pestle_tensor_t* outputs, size_t output_count,
                            const pestle_run_t* run) {
  if (e->remote) PESTLE_TRY(pestle_device_check_open(e->home));
  PESTLE_TRY(
      pestle_run_check_counts(e, inputs, input_count, outputs, output_count));
  PESTLE_TRY(pestle_executable_check_world(e, run->options.world));
  PESTLE_TRY(pestle_executable_check_strings(e, run->options.strings));
  pestle_frame_t* frame;
  bool native = stream && pestle_stream_native(stream);
  PESTLE_TRY(pestle_frame_take(e, native ? stream->number : 0,
                               run->options.world, &frame));
  memset(frame->allocated, 0, e->output_count);
  pestle_status_t status =
      check_and_run(e, frame, stream, inputs, outputs, run);
  pestle_frame_give(e, frame);
  return status;
}

pestle_status_t pestle_executable_run(
    pestle_executable_t* executable, pestle_stream_t* stream,
    const pestle_tensor_t* inputs, size_t input_count, pestle_tensor_t* outputs,
    size_t output_count, const pestle_run_options_t* options) {
  pestle_run_t run;
  if (!executable) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_executable_run needs an executable, not NULL");
  }
  pestle_context_enter(executable->context);
  PESTLE_TRY(read_options(options, &run));
  pestle_status_t status = call(executable, stream, inputs, input_count,
                                outputs, output_count, &run);
  pestle_run_leave_world(&run, status);
  return status;
}
