// SPDX-License-Identifier: Apache-2.0
// The trace file of a context: opened with it, written when it goes. That it
// cannot be written is a warning; nothing else fails for it.
#include "base/trace.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "runtime/context.h"

// Spans of one context: 30 MB, and a file of 50 MB, which Perfetto still opens
// in seconds.
enum { TRACE_SPANS = 1 << 18 };

// Finds out now, not after an hour, that the file cannot be written. A pipe
// gets the trace alone.
static pestle_status_t try_file(const char* path) {
  pestle_file_info_t info;
  pestle_status_t status = pestle_file_stat(path, true, &info);
  bool is_other = !status && !info.is_file && !info.is_folder;
  pestle_status_release(status);
  if (is_other) return NULL;
  return pestle_file_write(path, PESTLE_STR("{\"traceEvents\":[]}\n"));
}

pestle_status_t pestle_context_open_trace(pestle_context_t* context,
                                          const char* path) {
  if (!path || !*path) return NULL;
  pestle_status_t status = try_file(path);
  if (status) {
    pestle_context_log_status(context, PESTLE_LOG_WARN, "there is no trace",
                              status);
    return NULL;
  }
  context->trace_file = pestle_strdup(context->allocator, path);
  context->trace_memory = pestle_trace_create(context->allocator, TRACE_SPANS);
  if (!context->trace_file || !context->trace_memory) return PESTLE_OOM();
  context->trace = context->pool.trace = context->trace_memory;
  return NULL;
}

static pestle_status_t write_trace(pestle_context_t* context) {
  pestle_strbuf_t text;
  pestle_strbuf_init(context->allocator, &text);
  pestle_status_t status = pestle_trace_print(context->trace, &text);
  if (!status) {
    status = pestle_file_write(context->trace_file, pestle_strbuf_view(&text));
  }
  pestle_strbuf_deinit(&text);
  return status;
}

void pestle_context_close_trace(pestle_context_t* context) {
  // A child of fork() leaves the file to its parent.
  if (context->trace) {
    pestle_context_log_status(context, PESTLE_LOG_WARN,
                              "the trace could not be written",
                              write_trace(context));
  }
  pestle_trace_destroy(context->trace_memory);
  pestle_free_str(context->allocator, context->trace_file);
  context->trace = context->trace_memory = NULL;
  context->trace_file = NULL;
}

int64_t pestle_context_trace_begin(const pestle_context_t* context) {
  return context && context->trace ? pestle_clock_ns() : 0;
}

void pestle_context_trace_end(pestle_context_t* context, int64_t begin_ns,
                              const char* category, const char* name,
                              const char* detail) {
  if (!begin_ns || !context || !context->trace) return;
  pestle_trace_t* trace = context->trace;
  pestle_trace_span_t span = {.begin_ns = begin_ns,
                              .end_ns = pestle_clock_ns()};
  span.category = pestle_trace_intern(trace, category);
  span.name = pestle_trace_intern(trace, name);
  span.detail = pestle_trace_intern(trace, detail);
  pestle_trace_add(trace, &span);
}
