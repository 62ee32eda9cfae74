// SPDX-License-Identifier: Apache-2.0
// What was executed, and what of it repeats.
#include <string.h>

#include "base/mem.h"
#include "pjrt/merge_sequence.h"

typedef pestle_pjrt_history_t history_t;
typedef pestle_pjrt_entry_t entry_t;
typedef pestle_pjrt_sequence_t sequence_t;

enum { STEPS = PESTLE_PJRT_MERGE_STEPS, REPEATS = PESTLE_PJRT_MERGE_REPEATS };

// Parts that are over at once have little that could be saved.
static const long long least_ns = 100 * 1000;
// What a compilation takes, roughly: so much, and so much a byte of the parts' code.
static const long long compile_ns = 10 * 1000 * 1000,
                       compile_ns_per_byte = 5000;

// --- Noting ---

static entry_t* entry_of(const history_t* history, uint64_t serial) {
  return (entry_t*)&history->entries[serial % PESTLE_PJRT_MERGE_HISTORY];
}

static void clear(entry_t* entry) {
  pestle_pjrt_program_release(entry->program);
  entry->program = NULL;
}

void pestle_pjrt_history_deinit(history_t* history) {
  for (size_t i = 0; i < PESTLE_PJRT_MERGE_HISTORY; ++i) {
    entry_t* entry = &history->entries[i];
    clear(entry);
    pestle_dealloc(pestle_allocator_system(), entry->origins,
                   entry->room * sizeof(*entry->origins));
  }
}

void pestle_pjrt_history_break(history_t* history) {
  for (size_t i = 0; i < PESTLE_PJRT_MERGE_HISTORY; ++i)
    clear(&history->entries[i]);
}

static bool make_room(entry_t* entry, size_t count) {
  if (entry->room >= count) return true;
  pestle_dealloc(pestle_allocator_system(), entry->origins,
                 entry->room * sizeof(*entry->origins));
  entry->origins = pestle_alloc_array(pestle_allocator_system(), count,
                                      sizeof(*entry->origins));
  entry->room = entry->origins ? count : 0;
  return entry->origins != NULL;
}

static uint64_t mix(uint64_t key, uint64_t value) {
  key = (key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return key ^ key >> 29;
}

// Executions that are longer ago than the longest sequence are all alike.
static uint64_t distance(const history_t* history, uint64_t serial) {
  uint64_t passed = history->serial - serial;
  return serial && passed <= STEPS ? passed : 0;
}

static long long ns_of(const pestle_pjrt_program_t* p) {
  return atomic_load_explicit(&p->expected_ns, memory_order_relaxed);
}

// Every sequence that may pay has a part that is not.
static bool is_short(const pestle_pjrt_program_t* p) {
  return ns_of(p) * STEPS < least_ns;
}

bool pestle_pjrt_history_skips(const history_t* history,
                               const pestle_pjrt_execution_t* e) {
  return is_short(e->program) &&
         atomic_load_explicit(&history->short_ones, memory_order_relaxed) >=
             STEPS;
}

// Whether |program| is noted; the last of many short ones ends what was noted.
static bool count_short(history_t* history, const pestle_pjrt_program_t* p) {
  size_t count = is_short(p) ? 1 + atomic_load_explicit(&history->short_ones,
                                                        memory_order_relaxed)
                             : 0;
  if (count > STEPS) return false;
  atomic_store_explicit(&history->short_ones, count, memory_order_relaxed);
  if (count == STEPS) pestle_pjrt_history_break(history);
  return count < STEPS;
}

void pestle_pjrt_history_add(history_t* history,
                             const pestle_pjrt_execution_t* e, bool was_asked) {
  if (!count_short(history, e->program)) return;
  atomic_fetch_add_explicit(&e->program->spent_ns, ns_of(e->program),
                            memory_order_relaxed);
  entry_of(history, history->serial)->is_followed = was_asked;
  uint64_t serial = ++history->serial;
  entry_t* entry = entry_of(history, serial);
  clear(entry);
  for (size_t i = 0; i < e->output_count; ++i) {
    e->results[i]->serial = serial;
    e->results[i]->index = (uint32_t)i;
  }
  if (!make_room(entry, e->input_count)) return;
  entry->count = e->input_count;
  entry->is_followed = false;
  entry->key = mix(0, (uint64_t)(uintptr_t)e->program);
  for (size_t i = 0; i < e->input_count; ++i) {
    const PJRT_Buffer* from = e->arguments[i];
    entry->origins[i] =
        (pestle_pjrt_origin_t){from->serial, from->index, e->inputs[i].buffer};
    uint64_t far = distance(history, from->serial);
    entry->key = mix(entry->key, far ? far << 32 | from->index : 0);
  }
  entry->program = e->program;
  pestle_pjrt_program_retain(e->program);
}

// --- What repeats ---

// Whether the last REPEATS times |length| executions are one block again and
// again, within which nobody asks for a result.
static bool repeats(const history_t* history, size_t length) {
  uint64_t last = history->serial;
  size_t all = length * REPEATS;
  if (last < all) return false;
  for (size_t i = 0; i < all; ++i) {
    const entry_t* entry = entry_of(history, last - i);
    if (!entry->program) return false;
    if (i % length && entry->is_followed) return false;
    if (i + length < all &&
        (entry->key != entry_of(history, last - i - length)->key ||
         entry->program != entry_of(history, last - i - length)->program)) {
      return false;
    }
  }
  return true;
}

static bool is_mergeable(const pestle_pjrt_program_t* p,
                         const pestle_pjrt_program_t* first) {
  return p->code && !p->callback_count && !p->has_foreign &&
         !p->input_tokens.count && !p->output_tokens.count &&
         p->options.numerics != PESTLE_NUMERICS_STRICT &&
         p->options.numerics == first->options.numerics &&
         p->options.threads == first->options.threads &&
         p->options.no_fuse == first->options.no_fuse;
}

// The number of an argument from outside: that of an earlier one which was the
// same memory, else a new one.
static uint32_t number_of(const void* memory, const void** seen,
                          size_t* count) {
  for (size_t i = 0; i < *count; ++i) {
    if (seen[i] == memory) return (uint32_t)i;
  }
  seen[*count] = memory;
  return (uint32_t)(*count)++;
}

// Whether the parts have something to do with each other: what one makes or reads
// another one reads.
static bool fill(sequence_t* s, const history_t* history, uint64_t first,
                 const void** seen) {
  bool is_joined = false;
  for (size_t k = 0; k < s->length; ++k) {
    const entry_t* entry = entry_of(history, first + k);
    pestle_pjrt_step_t* step = &s->steps[k];
    for (size_t i = 0; i < entry->count; ++i) {
      const pestle_pjrt_origin_t* from = &entry->origins[i];
      if (from->serial >= first) {
        step->sources[i] = (pestle_link_source_t){
            (int32_t)(from->serial - first), from->index};
        is_joined = true;
        continue;
      }
      if (!from->memory) return false;
      size_t before = s->argument_count;
      uint32_t at = number_of(from->memory, seen, &s->argument_count);
      step->sources[i] = (pestle_link_source_t){PESTLE_LINK_ARGUMENT, at};
      is_joined = is_joined || (k && s->argument_count == before);
    }
  }
  return is_joined;
}

static bool is_taken(const sequence_t* s, size_t part, size_t result) {
  for (size_t k = part + 1; k < s->length; ++k) {
    const pestle_pjrt_program_t* p = s->steps[k].program;
    for (size_t i = 0; i < p->input_count; ++i) {
      const pestle_link_source_t* from = &s->steps[k].sources[i];
      if (from->part == (int32_t)part && from->index == result &&
          p->is_donor[i]) {
        return true;
      }
    }
  }
  return false;
}

static bool list_results(sequence_t* s) {
  size_t all = 0;
  for (size_t k = 0; k < s->length; ++k)
    all += s->steps[k].program->output_count;
  s->results =
      pestle_alloc_array(pestle_allocator_system(), all, sizeof(*s->results));
  if (!s->results) return false;
  for (size_t k = 0; k < s->length; ++k) {
    for (size_t i = 0; i < s->steps[k].program->output_count; ++i) {
      if (is_taken(s, k, i)) continue;
      s->results[s->result_count++] =
          (pestle_link_source_t){(int32_t)k, (uint32_t)i};
    }
  }
  return true;
}

static size_t all_outputs(const sequence_t* s) {
  size_t all = 0;
  for (size_t k = 0; k < s->length; ++k)
    all += s->steps[k].program ? s->steps[k].program->output_count : 0;
  return all;
}

void pestle_pjrt_sequence_free(sequence_t* s) {
  if (!s) return;
  pestle_allocator_t system = pestle_allocator_system();
  if (s->results)
    pestle_dealloc(system, s->results, all_outputs(s) * sizeof(*s->results));
  for (size_t k = 0; k < s->length; ++k) {
    pestle_pjrt_step_t* step = &s->steps[k];
    if (!step->program) continue;
    pestle_dealloc(system, step->sources,
                   step->program->input_count * sizeof(*step->sources));
    pestle_pjrt_program_release(step->program);
  }
  pestle_pjrt_program_release(s->program);
  pestle_dealloc(system, s, sizeof(*s));
}

sequence_t* pestle_pjrt_history_make(const history_t* history,
                                     PJRT_Device* device, size_t length) {
  uint64_t first = history->serial - length + 1;
  sequence_t* s = pestle_alloc_zero(pestle_allocator_system(), sizeof(*s));
  if (!s) return NULL;
  size_t inputs = 0;
  bool ok = true;
  s->device = device;
  s->length = length;
  pestle_pjrt_history_keys(history, length, &s->first_key, &s->key);
  atomic_init(&s->state, PESTLE_PJRT_SEQUENCE_NEW);
  for (size_t k = 0; k < length && ok; ++k) {
    const entry_t* entry = entry_of(history, first + k);
    s->steps[k].program = entry->program;
    pestle_pjrt_program_retain(entry->program);
    atomic_store_explicit(&entry->program->spent_ns, 0, memory_order_relaxed);
    s->steps[k].sources = pestle_alloc_array(
        pestle_allocator_system(), entry->count, sizeof(pestle_link_source_t));
    inputs += entry->count;
    ok = s->steps[k].sources || !entry->count;
  }
  const void** seen =
      pestle_alloc_array(pestle_allocator_system(), inputs + 1, sizeof(void*));
  ok = ok && seen && fill(s, history, first, seen) && list_results(s);
  pestle_dealloc(pestle_allocator_system(), seen, (inputs + 1) * sizeof(void*));
  if (ok) return s;
  pestle_pjrt_sequence_free(s);
  return NULL;
}

// A loop whose compilation would take longer than it has run so far may end before
// the merged program is there: the compilation takes a processor from it at most as
// long as it has run without.
static bool pays(const history_t* history, size_t length) {
  uint64_t last = history->serial;
  const pestle_pjrt_program_t* first = entry_of(history, last)->program;
  long long ns = 0, spent = 0, cost = compile_ns;
  for (size_t i = 0; i < length; ++i) {
    const pestle_pjrt_program_t* p = entry_of(history, last - i)->program;
    if (!is_mergeable(p, first)) return false;
    ns += ns_of(p);
    spent += atomic_load_explicit(&p->spent_ns, memory_order_relaxed);
    cost += p->code_bytes * compile_ns_per_byte;
  }
  return ns >= least_ns && (history->is_soon || spent >= cost);
}

size_t pestle_pjrt_history_repeats(const history_t* history) {
  for (size_t length = 2; length <= STEPS; ++length) {
    if (repeats(history, length)) return pays(history, length) ? length : 0;
  }
  return 0;
}

void pestle_pjrt_history_keys(const history_t* history, size_t length,
                              uint64_t* out_first, uint64_t* out_all) {
  uint64_t first = history->serial - length + 1;
  *out_first = entry_of(history, first)->key;
  *out_all = length;
  for (size_t k = 0; k < length; ++k)
    *out_all += entry_of(history, first + k)->key;
}
