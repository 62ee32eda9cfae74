// SPDX-License-Identifier: Apache-2.0
// Runs on buffers: inputs are checked and bound, outputs made, or taken from
// donated inputs. What the steps then do is run.c's.
#include <inttypes.h>
#include <string.h>

#include "base/require.h"
#include "runtime/buffer.h"
#include "runtime/executable.h"

typedef struct buffers_run_t {
  pestle_executable_t* e;
  pestle_frame_t* frame;
  const pestle_buffer_view_t* inputs;
  pestle_buffer_t** outputs;
  const pestle_run_buffers_options_t* options;
} buffers_run_t;

// --- Options ---

static pestle_status_t read_options(const pestle_run_buffers_options_t* user,
                                    pestle_run_buffers_options_t* out_options,
                                    pestle_run_t* out_run) {
  memset(out_options, 0, sizeof(*out_options));
  memset(out_run, 0, sizeof(*out_run));
  if (!user) return NULL;
  size_t size = user->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_buffers_options_t.struct_size is not set");
  }
  memcpy(out_options, user, size < sizeof(*user) ? size : sizeof(*user));
  if (out_options->donated_count && !out_options->donated) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_buffers_options_t counts donated inputs "
                        "that are NULL");
  }
  out_run->options.threads = out_options->threads;
  out_run->options.on_step = out_options->on_step;
  out_run->options.on_step_user = out_options->on_step_user;
  return pestle_run_read_control(out_options->control, &out_run->control);
}

// --- Inputs ---

// Of another device than the home.
static pestle_status_t check_place(const pestle_executable_t* e,
                                   const pestle_buffer_t* buffer,
                                   const pestle_exec_io_t* io) {
  if (buffer->device->context != e->context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "input '%s' is a buffer of another context than the "
                        "executable's",
                        io->info.name);
  }
  if (pestle_device_is_cpu(buffer->device)) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "input '%s' is on device %s, but the executable runs on "
                      "%s; copy it there with pestle_buffer_copy()",
                      io->info.name, buffer->device->name, e->home->name);
}

static pestle_status_t outside(const pestle_buffer_t* buffer,
                               const pestle_buffer_view_t* view,
                               const pestle_exec_io_t* io) {
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "input '%s' of %" PRIu64 " bytes, %" PRIu64
                      " bytes into its buffer%s, leads out of the buffer's %zu",
                      io->info.name, io->size, view->byte_offset,
                      view->strides ? " and with gaps" : "", buffer->size);
}

static pestle_status_t bind_strided(const buffers_run_t* r, size_t i,
                                    const pestle_buffer_view_t* view) {
  const pestle_exec_io_t* io = &r->e->io[i];
  const pestle_buffer_t* buffer = view->buffer;
  pestle_view_range_t* range = &r->frame->ranges[i];
  if (view->byte_offset > buffer->size) return outside(buffer, view, io);
  PESTLE_TRY(pestle_view_check(&r->frame->given[i], io, "input", range,
                               &r->frame->dense[i]));
  uintptr_t begin = (uintptr_t)buffer->block.data;
  if (range->begin >= begin && range->end <= begin + buffer->size) return NULL;
  return outside(buffer, view, io);
}

static pestle_status_t bind_input(const buffers_run_t* r, size_t i) {
  const pestle_executable_t* e = r->e;
  pestle_frame_t* frame = r->frame;
  const pestle_exec_io_t* io = &e->io[i];
  const pestle_buffer_view_t* view = &r->inputs[i];
  const pestle_buffer_t* buffer = view->buffer;
  pestle_tensor_t* given = &frame->given[i];
  frame->copied[i] = false;
  frame->dense[i] = true;
  frame->remote[i] = e->remote;
  if (!buffer) {
    frame->ranges[i] = (pestle_view_range_t){0, 0};
    if (!io->size) return NULL;
    return PESTLE_ERROR(INVALID_ARGUMENT, "input '%s' has no buffer",
                        io->info.name);
  }
  if (buffer->device != e->home) {
    PESTLE_TRY(check_place(e, buffer, io));
    frame->remote[i] = false;
  }
  given->data = buffer->block.data;
  given->byte_offset = view->byte_offset;
  given->strides = (int64_t*)(uintptr_t)view->strides;  // which is only read
  if (view->strides && io->size) return bind_strided(r, i, view);
  if (view->byte_offset > buffer->size ||
      io->size > buffer->size - view->byte_offset) {
    return outside(buffer, view, io);
  }
  uintptr_t begin = (uintptr_t)given->data + (uintptr_t)view->byte_offset;
  frame->ranges[i] = (pestle_view_range_t){begin, begin + io->size};
  return NULL;
}

// --- Donation ---

static pestle_status_t mark_donated(const buffers_run_t* r) {
  const pestle_executable_t* e = r->e;
  const pestle_run_buffers_options_t* options = r->options;
  bool* donated = r->frame->donated;
  memset(donated, 0, e->input_count);
  for (size_t d = 0; d < options->donated_count; ++d) {
    uint32_t index = options->donated[d];
    if (index >= e->input_count) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the donated input %" PRIu32
                          " is none of the executable's %zu",
                          index, e->input_count);
    }
    for (size_t i = 0; i < e->input_count; ++i) {
      if (!donated[i] || !r->inputs[i].buffer ||
          r->inputs[i].buffer != r->inputs[index].buffer) {
        continue;
      }
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the buffer of input '%s' is donated twice",
                          e->io[index].info.name);
    }
    donated[index] = true;
  }
  return NULL;
}

// Whether an output may have the memory of donated input |i|.
static bool may_take(const buffers_run_t* r, size_t i, size_t output) {
  const pestle_executable_t* e = r->e;
  const pestle_frame_t* frame = r->frame;
  const pestle_exec_io_t* io = &e->io[e->input_count + output];
  const pestle_buffer_t* buffer = r->inputs[i].buffer;
  if (!frame->donated[i] || !buffer || buffer->device != e->home ||
      buffer->size != io->size || r->inputs[i].byte_offset ||
      !frame->dense[i] || (frame->ranges[i].begin & io->misaligned) ||
      !pestle_buffer_may_take(buffer)) {
    return false;
  }
  // Another input that sees the buffer would see what is written.
  for (size_t j = 0; j < e->input_count; ++j) {
    if (j != i && r->inputs[j].buffer == buffer) return false;
  }
  return true;
}

static void take(const buffers_run_t* r, size_t i, size_t output) {
  pestle_buffer_t* buffer = r->inputs[i].buffer;
  r->outputs[output] = buffer;
  r->frame->donated[i] = false;  // Its reference is the output's.
  pestle_buffer_drop_extents(buffer);
}

static void take_donated(const buffers_run_t* r) {
  const pestle_executable_t* e = r->e;
  for (size_t o = 0; o < e->output_count; ++o) {
    int32_t alias = e->io[e->input_count + o].alias;
    if (alias >= 0 && may_take(r, (size_t)alias, o)) take(r, (size_t)alias, o);
  }
  for (size_t i = 0; i < e->input_count; ++i) {
    if (!r->frame->donated[i] || e->io[i].alias >= 0) continue;
    for (size_t o = 0; o < e->output_count; ++o) {
      const pestle_exec_io_t* output = &e->io[e->input_count + o];
      if (r->outputs[o] || output->info.bounded ||
          !pestle_exec_is_apart(e, &e->io[i], output) || !may_take(r, i, o)) {
        continue;
      }
      take(r, i, o);
      break;
    }
  }
}

// The references that no output has taken are given up.
static void drop_donated(const buffers_run_t* r) {
  for (size_t d = 0; d < r->options->donated_count; ++d) {
    uint32_t i = r->options->donated[d];
    if (r->frame->donated[i]) pestle_buffer_release(r->inputs[i].buffer);
  }
}

// --- Outputs ---

static pestle_status_t make_output(const buffers_run_t* r, size_t o) {
  const pestle_executable_t* e = r->e;
  pestle_frame_t* frame = r->frame;
  size_t at = e->input_count + o;
  const pestle_exec_io_t* io = &e->io[at];
  if (!r->outputs[o]) {
    PESTLE_TRY(pestle_buffer_make(e->home, (size_t)io->size, &r->outputs[o]));
    if (io->info.bounded) {
      PESTLE_TRY(pestle_buffer_make_extents(r->outputs[o], io->info.rank));
    }
  }
  char* data = r->outputs[o]->block.data;
  frame->given[at].data = data;
  frame->ranges[at] =
      (pestle_view_range_t){(uintptr_t)data, (uintptr_t)data + io->size};
  frame->dense[at] = true;
  frame->copied[at] = false;
  frame->remote[at] = e->remote;
  frame->allocated[o] = false;
  return NULL;
}

static void finish_output(const buffers_run_t* r, size_t o) {
  pestle_buffer_t* buffer = r->outputs[o];
  const pestle_tensor_t* made = &r->frame->given[r->e->input_count + o];
  if (!buffer->extents) return;
  memcpy(buffer->extents, made->shape,
         (size_t)buffer->extent_count * sizeof(int64_t));
}

// A buffer that was an input stays the caller's.
static void drop_outputs(const buffers_run_t* r) {
  for (size_t o = 0; o < r->e->output_count; ++o) {
    pestle_buffer_t* buffer = r->outputs[o];
    for (size_t d = 0; d < r->options->donated_count && buffer; ++d) {
      uint32_t i = r->options->donated[d];
      if (i < r->e->input_count && r->inputs[i].buffer == buffer) buffer = NULL;
    }
    pestle_buffer_release(buffer);
    r->outputs[o] = NULL;
  }
}

// --- The call ---

static pestle_status_t bind(const buffers_run_t* r) {
  for (size_t i = 0; i < r->e->input_count; ++i)
    PESTLE_TRY(bind_input(r, i));
  if (r->options->donated_count) {
    PESTLE_TRY(mark_donated(r));
    take_donated(r);
  }
  for (size_t o = 0; o < r->e->output_count; ++o)
    PESTLE_TRY(make_output(r, o));
  return NULL;
}

static pestle_status_t run_now(const buffers_run_t* r,
                               const pestle_run_t* run) {
  pestle_executable_t* e = r->e;
  pestle_status_t status = bind(r);
  if (!status) {
    status = pestle_run_frame(e, r->frame, NULL, r->frame->given,
                              r->frame->given + e->input_count, run);
  }
  if (status) {
    drop_outputs(r);
    return status;
  }
  for (size_t o = 0; o < e->output_count; ++o)
    finish_output(r, o);
  drop_donated(r);
  return NULL;
}

pestle_status_t pestle_executable_run_buffers(
    pestle_executable_t* executable, pestle_stream_t* stream,
    const pestle_buffer_view_t* inputs, size_t input_count,
    pestle_buffer_t** outputs, size_t output_count,
    const pestle_run_buffers_options_t* user) {
  pestle_executable_t* e = executable;
  pestle_run_buffers_options_t options;
  pestle_run_t run;
  for (size_t o = 0; outputs && o < output_count; ++o)
    outputs[o] = NULL;
  PESTLE_REQUIRE(e, "an executable");
  if (stream) {
    return PESTLE_ERROR(UNSUPPORTED, "runs of buffers on a stream");
  }
  pestle_context_enter(e->context);
  if (e->remote) PESTLE_TRY(pestle_device_check_open(e->home));
  PESTLE_TRY(
      pestle_run_check_counts(e, inputs, input_count, outputs, output_count));
  PESTLE_TRY(read_options(user, &options, &run));
  buffers_run_t r = {
      .e = e, .inputs = inputs, .outputs = outputs, .options = &options};
  PESTLE_TRY(pestle_frame_take(e, 0, &r.frame));
  pestle_status_t status = run_now(&r, &run);
  pestle_frame_give(e, r.frame);
  return status;
}
