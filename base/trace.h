// SPDX-License-Identifier: Apache-2.0
// A recorder of spans: what ran, on which thread, from when to when; of arrows from a
// span to those that it caused on other threads; and of numbers over time; printed as
// Chrome's JSON trace events, which Perfetto and chrome://tracing show.
//
// Recording takes no lock: an event's place comes from one atomic addition, and
// memory from the allocator once in a thousand events. A recorder holds at most
// |capacity| events; those after them are counted and left out. The count is in
// the printed trace.
#ifndef PESTLE_BASE_TRACE_H_
#define PESTLE_BASE_TRACE_H_

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/thread.h"
#include "pestle/allocator.h"
#include "pestle/status.h"

typedef struct pestle_trace_t pestle_trace_t;

enum { PESTLE_TRACE_VALUES = 2 };

// A span of the calling thread. Texts must live as long as the recorder:
// literals, or from pestle_trace_intern().
typedef struct pestle_trace_span_t {
  const char* category;
  const char* name;
  const char* detail;                     // NULL: none
  int64_t begin_ns;                       // of pestle_clock_ns()
  int64_t end_ns;                         // 0: now
  const char* keys[PESTLE_TRACE_VALUES];  // NULL: no more
  int64_t values[PESTLE_TRACE_VALUES];
  // Numbers of pestle_trace_flow(), 0: none. An arrow leads from the span that has one
  // as |flow_out| to each span of another thread that has it as |flow_in|.
  uint64_t flow_out, flow_in;
} pestle_trace_span_t;

// Names the calling thread "caller". NULL when out of memory.
pestle_trace_t* pestle_trace_create(pestle_allocator_t allocator,
                                    size_t capacity);
// Nobody may record any more. NULL is allowed.
void pestle_trace_destroy(pestle_trace_t* trace);

// A copy of |text| that lives as long as the recorder, the same for equal
// texts; NULL for NULL and when out of memory. Any thread may call.
const char* pestle_trace_intern(pestle_trace_t* trace, const char* text);
// Names the calling thread in the trace. |name| lives as long as the recorder.
void pestle_trace_name_thread(pestle_trace_t* trace, const char* name);
// Records a span; any thread may call.
void pestle_trace_add(pestle_trace_t* trace, const pestle_trace_span_t* span);
// A number for arrows that no span has yet. Any thread may call.
uint64_t pestle_trace_flow(pestle_trace_t* trace);
// Records how many bytes of a device's memory are in use, and kept to be used again,
// from now on. |device| lives as texts of spans do; any thread may call.
__attribute__((cold)) void pestle_trace_memory(pestle_trace_t* trace,
                                               const char* device, int64_t used,
                                               int64_t kept);

// Appends the trace as a JSON object. Spans that other threads are recording
// meanwhile may be missing.
PESTLE_NODISCARD __attribute__((cold)) pestle_status_t
pestle_trace_print(pestle_trace_t* trace, pestle_strbuf_t* out);

#endif  // PESTLE_BASE_TRACE_H_
