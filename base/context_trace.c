// SPDX-License-Identifier: Apache-2.0
// The trace file of a context: opened with it, written when it goes. A file
// that cannot be written is a warning; nothing else fails for it.
#include "base/context.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

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
  pestle_context_core_t* core = (pestle_context_core_t*)context;
  if (!path || !*path) return NULL;
  pestle_status_t status = try_file(path);
  if (status) {
    pestle_context_log_status(context, PESTLE_LOG_WARN, "there is no trace",
                              status);
    return NULL;
  }
  core->trace_file = pestle_strdup(core->allocator, path);
  core->trace_memory = pestle_trace_create(core->allocator, TRACE_SPANS);
  if (!core->trace_file || !core->trace_memory) return PESTLE_OOM();
  core->trace = core->trace_memory;
  return NULL;
}

static pestle_status_t write_trace(const pestle_context_core_t* core) {
  pestle_strbuf_t text;
  pestle_strbuf_init(core->allocator, &text);
  pestle_status_t status = pestle_trace_print(core->trace, &text);
  if (!status) {
    status = pestle_file_write(core->trace_file, pestle_strbuf_view(&text));
  }
  pestle_strbuf_deinit(&text);
  return status;
}

void pestle_context_close_trace(pestle_context_t* context) {
  pestle_context_core_t* core = (pestle_context_core_t*)context;
  // A child of fork() leaves the file to its parent.
  if (core->trace) {
    pestle_context_log_status(context, PESTLE_LOG_WARN,
                              "the trace could not be written",
                              write_trace(core));
  }
  pestle_trace_destroy(core->trace_memory);
  pestle_free_str(core->allocator, core->trace_file);
  core->trace = core->trace_memory = NULL;
  core->trace_file = NULL;
}

int64_t pestle_context_trace_begin(const pestle_context_t* context) {
  return context && pestle_context_core(context)->trace ? pestle_clock_ns() : 0;
}

void pestle_context_trace_end(pestle_context_t* context, int64_t begin_ns,
                              const char* category, const char* name,
                              const char* detail) {
  pestle_trace_t* trace = context ? pestle_context_core(context)->trace : NULL;
  if (!begin_ns || !trace) return;
  pestle_trace_span_t span = {.begin_ns = begin_ns,
                              .end_ns = pestle_clock_ns()};
  span.category = pestle_trace_intern(trace, category);
  span.name = pestle_trace_intern(trace, name);
  span.detail = pestle_trace_intern(trace, detail);
  pestle_trace_add(trace, &span);
}
