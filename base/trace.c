// SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "pestle/version.h"

enum { CHUNK_EVENTS = 1024 };

// For what is done once at the end: small rather than fast.
#define COLD __attribute__((cold))

typedef struct event_t {
  pestle_trace_span_t span;
  int64_t thread;
  bool is_counter;       // its values hold from |begin_ns| on
  atomic_bool is_whole;  // written to its end
} event_t;

typedef struct chunk_t {
  event_t events[CHUNK_EVENTS];
} chunk_t;

struct pestle_trace_t {
  pestle_allocator_t allocator;
  size_t capacity;
  size_t chunk_count;
  int64_t begin_ns;
  int64_t process;
  _Atomic(chunk_t*)* chunks;
  atomic_uint_fast64_t lost;   // for want of memory
  atomic_uint_fast64_t flows;  // numbers that were given
  _Alignas(64) atomic_uint_fast64_t next;
  _Alignas(64) pestle_mutex_t mutex;  // of all below
  pestle_arena_t texts;
  pestle_map_t interned;  // text -> its copy
  pestle_map_t threads;   // id -> name
};

// --- Life ---

pestle_trace_t* pestle_trace_create(pestle_allocator_t allocator,
                                    size_t capacity) {
  pestle_trace_t* trace =
      pestle_alloc_aligned(allocator, sizeof(*trace), _Alignof(pestle_trace_t));
  if (!trace) return NULL;
  memset(trace, 0, sizeof(*trace));
  trace->allocator = allocator;
  trace->capacity = capacity;
  trace->chunk_count = (capacity + CHUNK_EVENTS - 1) / CHUNK_EVENTS;
  trace->begin_ns = pestle_clock_ns();
  trace->process = pestle_process_id();
  atomic_init(&trace->lost, 0);
  atomic_init(&trace->flows, 0);
  atomic_init(&trace->next, 0);
  pestle_mutex_init(&trace->mutex);
  pestle_arena_init(allocator, &trace->texts);
  pestle_map_init(allocator, &trace->interned);
  pestle_map_init(allocator, &trace->threads);
  trace->chunks =
      pestle_alloc_array(allocator, trace->chunk_count, sizeof(*trace->chunks));
  if (!trace->chunks) {
    pestle_trace_destroy(trace);
    return NULL;
  }
  for (size_t i = 0; i < trace->chunk_count; ++i) {
    atomic_init(&trace->chunks[i], NULL);
  }
  pestle_trace_name_thread(trace, "caller");
  return trace;
}

void pestle_trace_destroy(pestle_trace_t* trace) {
  if (!trace) return;
  pestle_allocator_t allocator = trace->allocator;
  for (size_t i = 0; trace->chunks && i < trace->chunk_count; ++i) {
    pestle_dealloc(allocator, atomic_load(&trace->chunks[i]), sizeof(chunk_t));
  }
  pestle_dealloc(allocator, trace->chunks,
                 trace->chunk_count * sizeof(*trace->chunks));
  pestle_map_deinit(&trace->threads);
  pestle_map_deinit(&trace->interned);
  pestle_arena_deinit(&trace->texts);
  pestle_mutex_deinit(&trace->mutex);
  pestle_free_aligned(allocator, trace, sizeof(*trace),
                      _Alignof(pestle_trace_t));
}

// --- Recording ---

const char* pestle_trace_intern(pestle_trace_t* trace, const char* text) {
  if (!text) return NULL;
  pestle_mutex_lock(&trace->mutex);
  pestle_map_value_t* value =
      pestle_map_put(&trace->interned, text, strlen(text), NULL);
  if (value && !value->ptr) {
    value->ptr = pestle_arena_strdup(&trace->texts, text);
  }
  const char* copy = value ? value->ptr : NULL;
  pestle_mutex_unlock(&trace->mutex);
  return copy;
}

void pestle_trace_name_thread(pestle_trace_t* trace, const char* name) {
  pestle_mutex_lock(&trace->mutex);
  // Without memory the thread stays nameless, which print() puts right.
  (void)pestle_map_set_u64_ptr(&trace->threads, (uint64_t)pestle_thread_id(),
                               (void*)(uintptr_t)name);
  pestle_mutex_unlock(&trace->mutex);
}

// The chunk of that number, made by whoever needs it first.
static chunk_t* get_chunk(pestle_trace_t* trace, size_t index) {
  _Atomic(chunk_t*)* place = &trace->chunks[index];
  chunk_t* chunk = atomic_load_explicit(place, memory_order_acquire);
  if (chunk) return chunk;
  chunk_t* fresh = pestle_alloc_zero(trace->allocator, sizeof(*fresh));
  if (!fresh) return NULL;
  for (int i = 0; i < CHUNK_EVENTS; ++i) {
    atomic_init(&fresh->events[i].is_whole, false);
  }
  if (atomic_compare_exchange_strong(place, &chunk, fresh)) return fresh;
  pestle_dealloc(trace->allocator, fresh, sizeof(*fresh));
  return chunk;
}

static void add(pestle_trace_t* trace, const pestle_trace_span_t* span,
                bool is_counter) {
  int64_t end = span->end_ns ? span->end_ns : pestle_clock_ns();
  uint64_t index =
      atomic_fetch_add_explicit(&trace->next, 1, memory_order_relaxed);
  if (index >= trace->capacity) return;  // counted by |next|
  chunk_t* chunk = get_chunk(trace, (size_t)index / CHUNK_EVENTS);
  if (!chunk) {
    atomic_fetch_add_explicit(&trace->lost, 1, memory_order_relaxed);
    return;
  }
  event_t* event = &chunk->events[index % CHUNK_EVENTS];
  event->span = *span;
  event->span.end_ns = end;
  event->thread = pestle_thread_id();
  event->is_counter = is_counter;
  atomic_store_explicit(&event->is_whole, true, memory_order_release);
}

void pestle_trace_add(pestle_trace_t* trace, const pestle_trace_span_t* span) {
  add(trace, span, false);
}

uint64_t pestle_trace_flow(pestle_trace_t* trace) {
  return 1 + (uint64_t)atomic_fetch_add_explicit(&trace->flows, 1,
                                                 memory_order_relaxed);
}

void pestle_trace_memory(pestle_trace_t* trace, const char* device,
                         int64_t used, int64_t kept) {
  pestle_trace_span_t span = {.name = device,
                              .begin_ns = pestle_clock_ns(),
                              .keys = {"in use", "kept"},
                              .values = {used, kept}};
  add(trace, &span, true);
}

// --- Printing ---

typedef struct list_t {
  event_t** events;
  size_t count;
} list_t;

static int compare_i64(int64_t a, int64_t b) {
  return a < b ? -1 : a > b;
}

// By thread and time, what encloses before what it encloses.
static int compare_events(const void* left, const void* right) {
  const event_t* a = *(event_t* const*)left;
  const event_t* b = *(event_t* const*)right;
  int order = compare_i64(a->thread, b->thread);
  if (!order) order = compare_i64(a->span.begin_ns, b->span.begin_ns);
  return order ? order : compare_i64(b->span.end_ns, a->span.end_ns);
}

COLD static void collect(const pestle_trace_t* trace, size_t count,
                         list_t* out_list) {
  for (size_t i = 0; i < count; ++i) {
    chunk_t* chunk = atomic_load(&trace->chunks[i / CHUNK_EVENTS]);
    if (!chunk) continue;
    event_t* event = &chunk->events[i % CHUNK_EVENTS];
    if (!atomic_load_explicit(&event->is_whole, memory_order_acquire)) continue;
    out_list->events[out_list->count++] = event;
  }
  qsort(out_list->events, out_list->count, sizeof(*out_list->events),
        compare_events);
}

COLD static void print_text(pestle_strbuf_t* out, const char* text) {
  pestle_json_t json;
  pestle_json_init(out, 0, &json);
  pestle_json_cstr(&json, text ? text : "");
}

// Microseconds with all digits of the nanoseconds: spans that touch do so in
// the file too.
COLD static void print_us(pestle_strbuf_t* out, int64_t ns) {
  pestle_strbuf_appendf(out, "%" PRId64 ".%03" PRId64, ns / 1000, ns % 1000);
}

COLD static void print_args(pestle_strbuf_t* out,
                            const pestle_trace_span_t* span) {
  if (!span->detail && !span->keys[0]) return;
  pestle_strbuf_append_c(out, ",\"args\":{");
  if (span->detail) {
    pestle_strbuf_append_c(out, "\"detail\":");
    print_text(out, span->detail);
  }
  for (int i = 0; i < PESTLE_TRACE_VALUES && span->keys[i]; ++i) {
    if (i || span->detail) pestle_strbuf_append_char(out, ',');
    print_text(out, span->keys[i]);
    pestle_strbuf_appendf(out, ":%" PRId64, span->values[i]);
  }
  pestle_strbuf_append_char(out, '}');
}

// One that began before the recorder did is cut to its time.
static inline int64_t begin_of(const pestle_trace_t* trace,
                               const event_t* event) {
  int64_t begin = event->span.begin_ns - trace->begin_ns;
  return begin < 0 ? 0 : begin;
}

static inline void print_place(const pestle_trace_t* trace,
                               const event_t* event, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64,
                        trace->process, event->thread);
}

static inline void print_counter(const pestle_trace_t* trace,
                                 const event_t* event, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(
      out,
      ",\n{\"ph\":\"C\",\"name\":\"memory of %s\",\"ts\":", event->span.name);
  print_us(out, begin_of(trace, event));
  print_place(trace, event, out);
  print_args(out, &event->span);
  pestle_strbuf_append_char(out, '}');
}

// One end of an arrow, at the beginning of |event|'s span.
COLD static void print_end(const pestle_trace_t* trace, const char* phase,
                           size_t number, const event_t* event,
                           pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out,
                        ",\n{\"ph\":%s,\"cat\":\"flow\",\"name\":\"causes\","
                        "\"id\":%zu,\"ts\":",
                        phase, number);
  print_us(out, begin_of(trace, event));
  print_place(trace, event, out);
  pestle_strbuf_append_char(out, '}');
}

// Arrows to other threads, each with a number of its own. Without memory there are
// none.
COLD static void print_flows(const pestle_trace_t* trace, const list_t* list,
                             pestle_strbuf_t* out) {
  pestle_map_t sources;
  size_t number = 0;
  pestle_map_init(trace->allocator, &sources);
  for (size_t i = 0; i < list->count; ++i) {
    event_t* event = list->events[i];
    if (event->span.flow_out)
      (void)pestle_map_set_u64_ptr(&sources, event->span.flow_out, event);
  }
  for (size_t i = 0; i < list->count; ++i) {
    const event_t* event = list->events[i];
    const pestle_map_value_t* source =
        event->span.flow_in ? pestle_map_find_u64(&sources, event->span.flow_in)
                            : NULL;
    const event_t* from = source ? source->ptr : NULL;
    if (!from || from->thread == event->thread) continue;
    print_end(trace, "\"s\"", ++number, from, out);
    print_end(trace, "\"f\",\"bp\":\"e\"", number, event, out);
  }
  pestle_map_deinit(&sources);
}

COLD static void print_event(const pestle_trace_t* trace, const event_t* event,
                             pestle_strbuf_t* out) {
  const pestle_trace_span_t* span = &event->span;
  if (event->is_counter) {
    print_counter(trace, event, out);
    return;
  }
  int64_t begin = begin_of(trace, event);
  int64_t end = span->end_ns - trace->begin_ns;
  if (end < begin) end = begin;
  pestle_strbuf_append_c(out, ",\n{\"ph\":\"X\",\"cat\":");
  print_text(out, span->category);
  pestle_strbuf_append_c(out, ",\"name\":");
  print_text(out, span->name);
  pestle_strbuf_append_c(out, ",\"ts\":");
  print_us(out, begin);
  pestle_strbuf_append_c(out, ",\"dur\":");
  print_us(out, end - begin);
  print_place(trace, event, out);
  print_args(out, span);
  pestle_strbuf_append_char(out, '}');
}

COLD static void print_name(const pestle_trace_t* trace, const char* what,
                            int64_t thread, const char* name,
                            pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out,
                        "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRId64
                        ",\"tid\":%" PRId64 ",\"args\":{\"name\":",
                        what, trace->process, thread);
  print_text(out, name);
  pestle_strbuf_append_c(out, "}}");
}

// Every thread that has a span, in order.
COLD static void print_threads(const pestle_trace_t* trace, const list_t* list,
                               pestle_strbuf_t* out) {
  for (size_t i = 0; i < list->count; ++i) {
    int64_t thread = list->events[i]->thread;
    if (i && list->events[i - 1]->thread == thread) continue;
    const pestle_map_value_t* name =
        pestle_map_find_u64(&trace->threads, (uint64_t)thread);
    pestle_strbuf_append_c(out, ",\n");
    print_name(trace, "thread_name", thread,
               name ? name->ptr : "application thread", out);
  }
}

// Seen where the spans end: that they are not all.
COLD static void print_dropped(const pestle_trace_t* trace, const list_t* list,
                               uint64_t dropped, pestle_strbuf_t* out) {
  int64_t last = trace->begin_ns;
  for (size_t i = 0; i < list->count; ++i) {
    int64_t end = list->events[i]->span.end_ns;
    if (end > last) last = end;
  }
  pestle_strbuf_appendf(out,
                        ",\n{\"ph\":\"i\",\"s\":\"g\",\"cat\":\"trace\","
                        "\"name\":\"the trace is full: %" PRIu64
                        " later spans are not in it\",\"pid\":%" PRId64
                        ",\"tid\":%" PRId64 ",\"ts\":",
                        dropped, trace->process, trace->process);
  print_us(out, last - trace->begin_ns);
  pestle_strbuf_append_char(out, '}');
}

static inline size_t count_spans(const list_t* list) {
  size_t count = 0;
  for (size_t i = 0; i < list->count; ++i)
    count += !list->events[i]->is_counter;
  return count;
}

COLD static void print_list(const pestle_trace_t* trace, const list_t* list,
                            uint64_t dropped, pestle_strbuf_t* out) {
  pestle_strbuf_append_c(out,
                         "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  print_name(trace, "process_name", trace->process, "pestle", out);
  print_threads(trace, list, out);
  for (size_t i = 0; i < list->count; ++i) {
    print_event(trace, list->events[i], out);
  }
  print_flows(trace, list, out);
  if (dropped) print_dropped(trace, list, dropped, out);
  pestle_strbuf_append_c(out, "\n],\"otherData\":{\"pestle\":");
  print_text(out, pestle_version());
  pestle_strbuf_append_c(out, ",\"build\":");
  print_text(out, pestle_build_id());
  pestle_strbuf_appendf(out, ",\"spans\":%zu,\"dropped\":%" PRIu64 "}}\n",
                        count_spans(list), dropped);
}

pestle_status_t pestle_trace_print(pestle_trace_t* trace,
                                   pestle_strbuf_t* out) {
  uint64_t asked = atomic_load(&trace->next);
  size_t count = asked < trace->capacity ? (size_t)asked : trace->capacity;
  uint64_t dropped = asked - count + atomic_load(&trace->lost);
  list_t list = {.events = pestle_alloc_array(trace->allocator, count,
                                              sizeof(*list.events))};
  if (!list.events) return PESTLE_OOM();
  collect(trace, count, &list);
  pestle_mutex_lock(&trace->mutex);
  print_list(trace, &list, dropped, out);
  pestle_mutex_unlock(&trace->mutex);
  pestle_dealloc(trace->allocator, list.events, count * sizeof(*list.events));
  return pestle_strbuf_status(out);
}
