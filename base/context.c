// SPDX-License-Identifier: Apache-2.0
#include "base/context.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "pestle/custom_op.h"
#include "pestle/runtime.h"

void pestle_context_core_init(pestle_allocator_t allocator,
                              pestle_context_core_t* out_core) {
  *out_core = (pestle_context_core_t){.allocator = allocator, .threads = 1};
  pestle_refcount_init(&out_core->refcount);
}

void pestle_context_retain(pestle_context_t* context) {
  if (!context) return;
  pestle_refcount_retain(&((pestle_context_core_t*)context)->refcount);
}

void pestle_context_release(pestle_context_t* context) {
  pestle_context_core_t* core = (pestle_context_core_t*)context;
  if (!core || !pestle_refcount_release(&core->refcount)) return;
  if (core->destroy) core->destroy(context);
}

// --- The guest ---

pestle_context_guest_t* pestle_context_set_guest(
    pestle_context_t* context, pestle_context_guest_t* guest) {
  pestle_context_core_t* core = (pestle_context_core_t*)context;
  pestle_context_guest_t* there = NULL;
  return atomic_compare_exchange_strong(&core->guest, &there, guest) ? guest
                                                                     : there;
}

void pestle_context_end_guest(pestle_context_t* context) {
  pestle_context_core_t* core = (pestle_context_core_t*)context;
  pestle_context_guest_t* guest = atomic_exchange(&core->guest, NULL);
  if (guest) guest->destroy(guest);
}

// --- Getters ---

pestle_allocator_t pestle_context_allocator(const pestle_context_t* context) {
  if (!context) return pestle_allocator_system();
  return pestle_context_core(context)->allocator;
}

int32_t pestle_context_threads(const pestle_context_t* context) {
  return context ? pestle_context_core(context)->threads : 0;
}

const pestle_custom_op_t* pestle_context_find_op(
    const pestle_context_t* context, const char* name) {
  if (!context || !name || !pestle_context_core(context)->find_op) return NULL;
  return pestle_context_core(context)->find_op(context, name);
}

void pestle_context_free(pestle_context_t* context, void* data, size_t size) {
  if (!context || !data) return;
  pestle_dealloc(pestle_context_allocator(context), data, size);
}

// --- Log ---

// Room for what a plugin's own loader says of it, and a path.
enum { MESSAGE = 5632 };

static bool is_heard(const pestle_context_core_t* core,
                     pestle_log_level_t level) {
  return core && core->log && level <= core->log_level;
}

void pestle_context_log(pestle_context_t* context, pestle_log_level_t level,
                        const char* format, ...) {
  const pestle_context_core_t* core = pestle_context_core(context);
  if (!format || !is_heard(core, level)) return;
  char message[MESSAGE];
  va_list args;
  va_start(args, format);
  int size = vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  if (size >= 0) core->log(core->log_user, level, message);
}

void pestle_context_log_status(pestle_context_t* context,
                               pestle_log_level_t level, const char* what,
                               pestle_status_t status) {
  if (!status) return;
  if (is_heard(pestle_context_core(context), level)) {
    char text[1600];
    pestle_status_format(status, text, sizeof(text));
    pestle_context_log(context, level, "%s: %s", what, text);
  }
  pestle_status_release(status);
}

// --- Parallel work ---

void pestle_context_parallel_for(pestle_context_t* context, int64_t count,
                                 void (*task)(void* arg, int64_t index),
                                 void* arg) {
  if (!context || !task) return;
  const pestle_context_core_t* core = pestle_context_core(context);
  if (core->parallel_for) {
    core->parallel_for(context, count, task, arg);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    task(arg, i);
}
