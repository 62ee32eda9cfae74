// SPDX-License-Identifier: Apache-2.0
// A sequence as one program: linked, compiled, compared with its parts, and run in
// their place.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "pjrt/merge_sequence.h"
#include "pjrt/slots.h"

typedef pestle_pjrt_sequence_t sequence_t;
typedef pestle_pjrt_execution_t execution_t;

// So many times over; times are the shortest of them.
enum { COMPARISONS = 5 };

// --- Linking and compiling ---

static pestle_status_t link_modules(const sequence_t* s,
                                    pestle_module_t** modules,
                                    pestle_module_t** out_module) {
  pestle_link_part_t parts[PESTLE_PJRT_MERGE_STEPS];
  for (size_t k = 0; k < s->length; ++k) {
    const pestle_pjrt_program_t* p = s->steps[k].program;
    PESTLE_TRY(pestle_import_bytes(p->client->context, p->code, p->code_size,
                                   p->name, NULL, &modules[k]));
    parts[k] =
        (pestle_link_part_t){modules[k], s->steps[k].sources, p->input_count};
  }
  return pestle_module_link(parts, s->length, s->results, s->result_count,
                            out_module);
}

static bool is_aliased(const pestle_alias_t* aliases, size_t count,
                       uint32_t input) {
  for (size_t i = 0; i < count; ++i) {
    if (aliases[i].input == input) return true;
  }
  return false;
}

// Results that the parts make in place of arguments from outside are wished there
// again; whether that is possible is the compiler's to say.
static size_t list_aliases(const sequence_t* s, pestle_alias_t* out_aliases) {
  size_t count = 0;
  for (size_t r = 0; r < s->result_count; ++r) {
    const pestle_pjrt_step_t* step = &s->steps[s->results[r].part];
    int64_t input =
        pestle_executable_alias(step->program->executable, s->results[r].index);
    if (input < 0) continue;
    const pestle_link_source_t* from = &step->sources[input];
    if (from->part != PESTLE_LINK_ARGUMENT ||
        is_aliased(out_aliases, count, from->index)) {
      continue;
    }
    out_aliases[count++] = (pestle_alias_t){from->index, (int32_t)r};
  }
  return count;
}

// "f+g+u".
static void name_of(const sequence_t* s, char* out_name, size_t size) {
  size_t used = 0;
  *out_name = 0;
  for (size_t k = 0; k < s->length && used < size; ++k) {
    int n = snprintf(out_name + used, size - used, "%s%s", k ? "+" : "",
                     s->steps[k].program->name);
    used += n > 0 ? (size_t)n : 0;
  }
}

static PJRT_Error* compile_linked(sequence_t* s, pestle_module_t* module,
                                  pestle_alias_t* aliases, bool* is_donor,
                                  const volatile int32_t* cancel) {
  const pestle_pjrt_program_t* part = s->steps[0].program;
  pestle_control_t control = {.struct_size = sizeof(control), .cancel = cancel};
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .numerics = part->options.numerics,
                                      .no_fuse = part->options.no_fuse,
                                      .control = &control,
                                      .aliases = aliases,
                                      .alias_count = list_aliases(s, aliases)};
  char name[256];
  name_of(s, name, sizeof(name));
  pestle_pjrt_program_info_t info = {
      .name = name, .is_donor = is_donor, .input_count = s->argument_count};
  pestle_plan_t* plan = NULL;
  pestle_status_t status = pestle_module_signature(module, info.signature);
  if (!status) {
    status = pestle_compile(part->client->context, module, s->device->device,
                            &options, &plan);
  }
  PJRT_Error* error = pestle_pjrt_error_of(status);
  if (!error) {
    error = pestle_pjrt_program_create(part->client, plan, &part->options,
                                       &info, &s->program);
  }
  pestle_plan_release(plan);
  return error;
}

static PJRT_Error* link_and_compile(sequence_t* s,
                                    const volatile int32_t* cancel) {
  pestle_allocator_t system = pestle_allocator_system();
  pestle_module_t* modules[PESTLE_PJRT_MERGE_STEPS] = {NULL};
  pestle_module_t* linked = NULL;
  size_t aliases_size = (s->argument_count + 1) * sizeof(pestle_alias_t);
  pestle_alias_t* aliases = pestle_alloc(system, aliases_size);
  bool* donors = pestle_alloc_zero(system, s->argument_count + 1);
  PJRT_Error* error =
      aliases && donors
          ? pestle_pjrt_error_of(link_modules(s, modules, &linked))
          : pestle_pjrt_out_of_memory();
  if (!error) error = compile_linked(s, linked, aliases, donors, cancel);
  pestle_module_release(linked);
  for (size_t k = 0; k < s->length; ++k)
    pestle_module_release(modules[k]);
  pestle_dealloc(system, aliases, aliases_size);
  pestle_dealloc(system, donors, s->argument_count + 1);
  return error;
}

void pestle_pjrt_sequence_compile(sequence_t* s,
                                  const volatile int32_t* cancel) {
  PJRT_Error* error = link_and_compile(s, cancel);
  // What does not compile stays what it was: nobody need hear of it.
  pestle_pjrt_error_free(error);
  atomic_store_explicit(
      &s->state,
      error ? PESTLE_PJRT_SEQUENCE_REFUSED : PESTLE_PJRT_SEQUENCE_COMPARED,
      memory_order_release);
}

// --- Parts ---

// Donated inputs in their order: those that were, and those that earlier parts made
// for this one alone. From the last to the first, since the list grows where it
// lies.
static void list_donated(const pestle_pjrt_step_t* step, execution_t* e) {
  size_t old = e->donated_count, count = old;
  for (size_t i = 0; i < e->input_count; ++i)
    count += e->is_ours[i] && step->sources[i].part != PESTLE_LINK_ARGUMENT;
  e->donated_count = count;
  for (size_t i = e->input_count; i-- > 0;) {
    if (step->sources[i].part != PESTLE_LINK_ARGUMENT) {
      if (e->is_ours[i]) e->donated[--count] = (uint32_t)i;
    } else if (old && e->donated[old - 1] == i) {
      --old;
      e->donated[--count] = (uint32_t)i;
    }
  }
}

void pestle_pjrt_sequence_wire(const sequence_t* s, execution_t* const* held,
                               size_t at) {
  const pestle_pjrt_step_t* step = &s->steps[at];
  execution_t* e = held[at];
  for (size_t i = 0; i < e->input_count; ++i) {
    const pestle_link_source_t* from = &step->sources[i];
    if (from->part == PESTLE_LINK_ARGUMENT) continue;
    e->inputs[i].buffer = held[from->part]->outputs[from->index];
    pestle_buffer_retain(e->inputs[i].buffer);
  }
  list_donated(step, e);
}

// --- The merged program ---

// Arguments from outside, each once, and room for the results.
typedef struct run_t {
  pestle_buffer_view_t* inputs;
  pestle_buffer_t** outputs;
  uint32_t* donated;
  size_t donated_count;
  size_t size;  // of all, which is one block
} run_t;

static PJRT_Error* make_run(const sequence_t* s, run_t* out) {
  size_t views = s->argument_count * sizeof(pestle_buffer_view_t);
  size_t outputs = s->result_count * sizeof(pestle_buffer_t*);
  out->size = views + outputs + s->argument_count * sizeof(uint32_t) + 1;
  char* block = pestle_alloc_zero(pestle_allocator_system(), out->size);
  if (!block) return pestle_pjrt_out_of_memory();
  out->inputs = (void*)block;
  out->outputs = (void*)(block + views);
  out->donated = (void*)(block + views + outputs);
  out->donated_count = 0;
  return NULL;
}

static void free_run(run_t* run) {
  pestle_dealloc(pestle_allocator_system(), run->inputs, run->size);
}

// The arguments, without holds of their own.
static void borrow_arguments(const sequence_t* s, execution_t* const* held,
                             run_t* run) {
  for (size_t k = 0; k < s->length; ++k) {
    for (size_t i = 0; i < held[k]->input_count; ++i) {
      const pestle_link_source_t* from = &s->steps[k].sources[i];
      if (from->part == PESTLE_LINK_ARGUMENT)
        run->inputs[from->index].buffer = held[k]->inputs[i].buffer;
    }
  }
}

// The same with one hold of each, the parts' being let go: donated memory is
// written only if nobody else has it.
static void take_arguments(const sequence_t* s, execution_t* const* held,
                           run_t* run) {
  for (size_t k = 0; k < s->length; ++k) {
    execution_t* e = held[k];
    for (size_t i = 0; i < e->input_count; ++i) {
      const pestle_link_source_t* from = &s->steps[k].sources[i];
      if (from->part != PESTLE_LINK_ARGUMENT) continue;
      if (run->inputs[from->index].buffer)
        pestle_buffer_release(e->inputs[i].buffer);
      else
        run->inputs[from->index].buffer = e->inputs[i].buffer;
    }
    for (size_t i = 0; i < e->donated_count; ++i) {
      const pestle_link_source_t* from = &s->steps[k].sources[e->donated[i]];
      run->donated[run->donated_count++] = from->index;
    }
    e->held = 0;
  }
}

static pestle_pjrt_run_t run_of(const sequence_t* s, const run_t* run) {
  return (pestle_pjrt_run_t){.program = s->program,
                             .device = s->device,
                             .inputs = run->inputs,
                             .input_count = s->argument_count,
                             .outputs = run->outputs,
                             .output_count = s->result_count,
                             .donated = run->donated,
                             .donated_count = run->donated_count};
}

static void drop_arguments(const sequence_t* s, const run_t* run,
                           bool has_run) {
  for (size_t i = 0; i < s->argument_count; ++i) {
    bool is_gone = false;
    for (size_t d = 0; d < run->donated_count && has_run && !is_gone; ++d)
      is_gone = run->donated[d] == i;
    if (!is_gone) pestle_buffer_release(run->inputs[i].buffer);
  }
}

PJRT_Error* pestle_pjrt_sequence_submit(sequence_t* s,
                                        execution_t* const* held) {
  PJRT_Event* events[PESTLE_PJRT_MERGE_STEPS];
  run_t run;
  PJRT_TRY(make_run(s, &run));
  take_arguments(s, held, &run);
  for (size_t k = 0; k < s->length; ++k) {
    events[k] = held[k]->done;
    pestle_pjrt_event_retain(events[k]);
  }
  pestle_pjrt_run_t wanted = run_of(s, &run);
  PJRT_Error* error = pestle_pjrt_submit(&wanted, events, s->length);
  for (size_t k = 0; k < s->length; ++k) {
    held[k]->is_queued = !error;
    if (error) pestle_pjrt_event_release(events[k]);
  }
  drop_arguments(s, &run, !error);
  for (size_t r = 0; r < s->result_count; ++r)
    held[s->results[r].part]->outputs[s->results[r].index] = run.outputs[r];
  free_run(&run);
  return error;
}

// --- Comparing ---

static bool same_bytes(pestle_buffer_t* a, pestle_buffer_t* b, size_t size) {
  const void *x = pestle_buffer_host_data(a), *y = pestle_buffer_host_data(b);
  if (x && y) return !memcmp(x, y, size);
  pestle_allocator_t system = pestle_allocator_system();
  char* both = pestle_alloc(system, 2 * size);
  pestle_status_t status =
      both ? pestle_buffer_read(a, 0, both, size) : PESTLE_OOM();
  if (!status) status = pestle_buffer_read(b, 0, both + size, size);
  bool same = !status && !memcmp(both, both + size, size);
  pestle_status_release(status);
  pestle_dealloc(system, both, 2 * size);
  return same;
}

static bool are_equal(const sequence_t* s, execution_t* const* held,
                      const run_t* run) {
  for (size_t r = 0; r < s->result_count; ++r) {
    const pestle_link_source_t* from = &s->results[r];
    size_t size = s->program->outputs[r].size;
    pestle_buffer_t* part = held[from->part]->outputs[from->index];
    if (size && !same_bytes(run->outputs[r], part, size)) return false;
  }
  return true;
}

// Runs the parts one after the other on this thread.
static PJRT_Error* run_parts(const sequence_t* s, execution_t* const* held,
                             int64_t* out_ns) {
  int64_t begin = pestle_clock_ns();
  for (size_t k = 0; k < s->length; ++k) {
    pestle_pjrt_sequence_wire(s, held, k);
    PJRT_Error* error = pestle_pjrt_run_here(held[k]);
    pestle_pjrt_execution_drop_inputs(held[k], !error);
    held[k]->held = 0;
    if (error) return error;
  }
  *out_ns = pestle_clock_ns() - begin;
  return NULL;
}

static int64_t shorter(int64_t a, int64_t b, bool is_first) {
  return is_first || b < a ? b : a;
}

// The waiting for the last part must cost a third of what is saved at most.
static bool pays(const sequence_t* s) {
  int64_t saved = s->parts_ns - s->merged_ns;
  return saved > 3 * s->hold_ns && saved > s->parts_ns / 30;
}

static void note(sequence_t* s, bool is_equal, int64_t parts_ns,
                 int64_t merged_ns, int64_t hold_ns) {
  bool is_first = !s->compared;
  s->parts_ns = shorter(s->parts_ns, parts_ns, is_first);
  s->merged_ns = shorter(s->merged_ns, merged_ns, is_first);
  s->hold_ns = shorter(s->hold_ns, hold_ns, is_first);
  int state = PESTLE_PJRT_SEQUENCE_COMPARED;
  if (!is_equal) {
    state = PESTLE_PJRT_SEQUENCE_REFUSED;
  } else if (++s->compared == COMPARISONS) {
    state = pays(s) ? PESTLE_PJRT_SEQUENCE_USED : PESTLE_PJRT_SEQUENCE_REFUSED;
  }
  atomic_store_explicit(&s->state, state, memory_order_release);
}

PJRT_Error* pestle_pjrt_sequence_compare(sequence_t* s,
                                         execution_t* const* held,
                                         int64_t hold_ns) {
  run_t run;
  int64_t merged_ns = 0, parts_ns = 0;
  PJRT_TRY(make_run(s, &run));
  borrow_arguments(s, held, &run);
  pestle_pjrt_run_t wanted = run_of(s, &run);
  PJRT_Error* refused = pestle_pjrt_run_now(&wanted, &merged_ns);
  PJRT_Error* error = run_parts(s, held, &parts_ns);
  if (!error) {
    bool is_equal = !refused && are_equal(s, held, &run);
    note(s, is_equal, parts_ns, merged_ns, hold_ns);
  }
  for (size_t r = 0; r < s->result_count; ++r)
    pestle_buffer_release(run.outputs[r]);
  pestle_pjrt_error_free(refused);
  free_run(&run);
  return error;
}
