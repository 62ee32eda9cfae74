// SPDX-License-Identifier: Apache-2.0
// One execution: arguments are looked at, donated ones given up, and the program
// is run by the caller's thread where that is quickest, else by the device's
// stream, in whose case the results are there before their contents.
#include <string.h>

#include "base/mem.h"
#include "pjrt/callback.h"
#include "pjrt/merge.h"
#include "pjrt/slots.h"
#include "pjrt/worlds.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

typedef pestle_pjrt_execution_t execution_t;
enum { FEW = PESTLE_PJRT_FEW };

// --- Room ---

// Points the arrays of |e| to its own room, or to a block of zeros.
static bool find_room(execution_t* e) {
  size_t inputs = e->input_count, outputs = e->program->output_count;
  e->inputs = e->few_inputs;
  e->is_ours = e->few_ours;
  e->donated = e->few_donated;
  e->outputs = e->few_outputs;
  e->results = e->few_results;
  e->block = NULL;
  e->block_size = 0;
  if (inputs <= FEW && outputs <= FEW) return true;
  size_t pointers = 2 * sizeof(void*) * outputs;
  size_t views = sizeof(pestle_buffer_view_t) * inputs;
  size_t size = pointers + views + (sizeof(uint32_t) + 1) * inputs;
  char* block = pestle_alloc_zero(pestle_allocator_system(), size);
  if (!block) return false;
  e->block = block;
  e->block_size = size;
  e->outputs = (void*)block;
  e->results = (void*)(block + sizeof(void*) * outputs);
  e->inputs = (void*)(block + pointers);
  e->donated = (void*)(block + pointers + views);
  e->is_ours = (bool*)(block + pointers + views + sizeof(uint32_t) * inputs);
  return true;
}

static PJRT_Error* make_room(execution_t* e) {
  if (!find_room(e)) return pestle_pjrt_out_of_memory();
  for (size_t i = 0; i < e->program->output_count; ++i)
    e->results[i] = NULL;
  return NULL;
}

static void free_room(execution_t* e) {
  pestle_dealloc(pestle_allocator_system(), e->block, e->block_size);
}

// --- Arguments ---

static PJRT_Error* bad_argument(const execution_t* e, size_t index,
                                const pestle_pjrt_shape_t* given) {
  char is[PESTLE_PJRT_SHAPE_TEXT], wanted[PESTLE_PJRT_SHAPE_TEXT];
  pestle_pjrt_shape_print(given, is);
  pestle_pjrt_shape_print(&e->program->inputs[index], wanted);
  return INVALID("argument %zu of %s is a %s; the program takes a %s", index,
                 e->program->name, is, wanted);
}

static PJRT_Error* check_argument(const execution_t* e, size_t index,
                                  const PJRT_Buffer* buffer) {
  const pestle_pjrt_shape_t* wanted = &e->program->inputs[index];
  if (!buffer)
    return INVALID("argument %zu of %s is NULL", index, e->program->name);
  if (buffer->device != e->device) {
    return INVALID("argument %zu of %s lies on another device; copy it there",
                   index, e->program->name);
  }
  const pestle_pjrt_shape_t* given = &buffer->shape;
  bool fits = given->type == wanted->type && given->rank == wanted->rank;
  for (size_t i = 0; fits && i < given->rank; ++i)
    fits = given->dims[i] == wanted->dims[i];
  if (fits && memcmp(given->order, wanted->order, given->rank)) {
    int64_t strides[PESTLE_MAX_RANK];
    pestle_pjrt_device_strides(given, strides);
    fits = pestle_pjrt_lies_so(wanted, strides);
  }
  return fits ? NULL : bad_argument(e, index, given);
}

bool pestle_pjrt_may_donate(const PJRT_ExecuteOptions* options, size_t index) {
  if (!options) return true;
  for (size_t i = 0; i < options->num_non_donatable_input_indices; ++i) {
    if (options->non_donatable_input_indices[i] == (int64_t)index) return false;
  }
  return true;
}

static PJRT_Error* take_argument(execution_t* e, size_t index,
                                 const PJRT_ExecuteOptions* options) {
  const pestle_pjrt_program_t* p = e->program;
  uint32_t at = p->input_places[index];
  PJRT_Buffer* buffer = e->arguments[at];
  pestle_buffer_t* memory = NULL;
  bool is_ours = false;
  PJRT_TRY(check_argument(e, at, buffer));
  if (!pestle_pjrt_buffer_is_ready(buffer)) {
    PJRT_TRY(pestle_pjrt_buffer_check_arrives(buffer));
    e->is_ready = false;
  } else if (buffer->ready && pestle_pjrt_event_error(buffer->ready)) {
    return pestle_pjrt_error_copy(pestle_pjrt_event_error(buffer->ready));
  }
  bool is_consumed =
      p->donor_count && p->is_donor[at] && pestle_pjrt_may_donate(options, at);
  PJRT_Error* error =
      is_consumed ? pestle_pjrt_buffer_consume(buffer, &memory, &is_ours)
                  : pestle_pjrt_buffer_hold_now(buffer, &memory);
  if (error) return error;
  e->inputs[index] = (pestle_buffer_view_t){.buffer = memory};
  e->is_ours[index] = is_consumed;
  if (is_ours && memory) e->donated[e->donated_count++] = (uint32_t)index;
  ++e->held;
  return NULL;
}

static PJRT_Error* take_arguments(execution_t* e,
                                  const PJRT_ExecuteOptions* options) {
  e->is_ready = true;
  for (size_t i = 0; i < e->input_count; ++i)
    PJRT_TRY(take_argument(e, i, options));
  return NULL;
}

// Donated memory went with the run, if that took place; else it comes back.
void pestle_pjrt_execution_drop_inputs(execution_t* e, bool has_run) {
  for (size_t i = 0, k = 0; i < e->held; ++i) {
    pestle_buffer_t* memory = e->inputs[i].buffer;
    bool is_donated = k < e->donated_count && e->donated[k] == i;
    if (is_donated) ++k;
    if (!has_run && e->is_ours[i] && e->arguments)
      pestle_pjrt_buffer_restore(e->arguments[e->program->input_places[i]],
                                 memory);
    else if (!has_run || !is_donated)
      pestle_buffer_release(memory);
  }
}

// --- Results ---

static PJRT_Error* make_results(execution_t* e) {
  const pestle_pjrt_program_t* p = e->program;
  for (size_t i = 0; i < p->output_count; ++i) {
    e->results[i] =
        pestle_pjrt_buffer_create(e->device, &p->outputs[i], e->done);
    if (!e->results[i]) return pestle_pjrt_out_of_memory();
  }
  return NULL;
}

static void drop_results(execution_t* e) {
  for (size_t i = 0; i < e->program->output_count; ++i)
    pestle_pjrt_buffer_release(e->results[i]);
}

// --- Executions that are kept ---

PJRT_Error* pestle_pjrt_execution_prepare(execution_t* e,
                                          const PJRT_ExecuteOptions* options) {
  PJRT_Error* error = take_arguments(e, options);
  if (!error) {
    e->done = pestle_pjrt_event_create();
    error = e->done ? make_results(e) : pestle_pjrt_out_of_memory();
  }
  if (!error) return NULL;
  pestle_pjrt_execution_drop_inputs(e, false);
  drop_results(e);
  return error;
}

// The arrays are copied, not handed on: the caller reads his results after the
// copy has been run and freed by another thread.
execution_t* pestle_pjrt_execution_keep(const execution_t* e) {
  execution_t* copy = pestle_alloc(pestle_allocator_system(), sizeof(*copy));
  if (!copy) return NULL;
  *copy = *e;
  copy->arguments = NULL;
  if (!find_room(copy)) {
    pestle_dealloc(pestle_allocator_system(), copy, sizeof(*copy));
    return NULL;
  }
  if (e->block) memcpy(copy->block, e->block, e->block_size);
  memset(copy->outputs, 0, e->output_count * sizeof(copy->outputs[0]));
  pestle_pjrt_program_retain(e->program);
  pestle_pjrt_event_retain(e->done);
  for (size_t i = 0; i < e->program->output_count; ++i)
    pestle_refcount_retain(&e->results[i]->references);
  return copy;
}

void pestle_pjrt_execution_free(execution_t* e) {
  drop_results(e);
  pestle_pjrt_event_release(e->done);
  pestle_pjrt_program_release(e->program);
  free_room(e);
  pestle_dealloc(pestle_allocator_system(), e, sizeof(*e));
}

// --- Running ---

// What comes between executions that are held ends the hold; a callback's own
// execution has nothing to do with them.
static PJRT_Error* run(execution_t* e, const PJRT_ExecuteOptions* options) {
  pestle_pjrt_merge_t* merge =
      pestle_pjrt_in_callback(e->device) ? NULL : e->device->merge;
  bool is_held = false;
  if (merge) PJRT_TRY(pestle_pjrt_merge_offer(merge, e, options, &is_held));
  if (is_held) return NULL;
  PJRT_Error* error = take_arguments(e, options);
  bool is_here = !error && pestle_pjrt_is_inline(e);
  if (!error && !is_here) {
    e->done = pestle_pjrt_event_create();
    if (!e->done) error = pestle_pjrt_out_of_memory();
  }
  if (!error) error = make_results(e);
  if (!error)
    error = is_here ? pestle_pjrt_run_here(e) : pestle_pjrt_run_queued(e);
  pestle_pjrt_execution_drop_inputs(e, !error);
  if (error) {
    drop_results(e);
    return error;
  }
  for (size_t i = 0; i < e->output_count; ++i)
    e->results[e->program->output_places[i]]->memory = e->outputs[i];
  if (merge) pestle_pjrt_merge_note(merge, e);
  return NULL;
}

// --- The slot ---

static PJRT_Error* check_call(const PJRT_LoadedExecutable_Execute_Args* args) {
  const pestle_pjrt_program_t* p = args->executable->program;
  if (atomic_load(&args->executable->is_deleted))
    return INVALID("executable %s was deleted", p->name);
  if (args->num_devices != p->device_count) {
    return INVALID("%s runs on %zu device%s%s; %zu are given", p->name,
                   p->device_count, p->device_count == 1 ? "" : "s",
                   p->client->processes ? " of this process" : "",
                   args->num_devices);
  }
  if (args->execute_device && args->execute_device->client != p->client)
    return INVALID("%s is to run on a device of another client", p->name);
  if (args->execute_device)
    PJRT_TRY(pestle_pjrt_check_local(args->execute_device));
  if (args->execute_device && p->rank_count > 1)
    return INVALID("%s is to run on one device alone, and is for %zu", p->name,
                   p->rank_count);
  if (args->num_args != p->input_count) {
    return INVALID("%s takes %zu arguments; %zu are given", p->name,
                   p->input_count, args->num_args);
  }
  for (size_t d = 0; d < p->device_count; ++d) {
    if (p->input_count && (!args->argument_lists || !args->argument_lists[d]))
      return INVALID("the list of arguments of %s is NULL", p->name);
    if (p->output_count && (!args->output_lists || !args->output_lists[d]))
      return INVALID("the list of results of %s is NULL", p->name);
  }
  const PJRT_ExecuteOptions* o = args->options;
  if (o && (o->struct_size < offsetof(PJRT_ExecuteOptions, context) ||
            (o->num_non_donatable_input_indices &&
             !o->non_donatable_input_indices))) {
    return INVALID("the options of the execution of %s are damaged", p->name);
  }
  if (o && (o->num_send_ops || o->num_recv_ops)) {
    return pestle_pjrt_error(
        PJRT_Error_Code_UNIMPLEMENTED,
        "PJRT_LoadedExecutable_Execute: %s is run with send or "
        "receive callbacks; programs have no send and "
        "recv, use a Python callback or a custom call",
        p->name);
  }
  return pestle_pjrt_client_check(p->client);
}

// As device |d| of the program, whose lists they are.
static void begin(const PJRT_LoadedExecutable_Execute_Args* args, size_t d,
                  execution_t* e) {
  pestle_pjrt_program_t* p = args->executable->program;
  e->program = p;
  e->device = args->execute_device ? args->execute_device : p->devices[d];
  e->world = NULL;
  e->arguments = p->input_count ? args->argument_lists[d] : NULL;
  e->input_count = p->input_count - p->input_tokens.count;
  e->output_count = p->output_count - p->output_tokens.count;
  e->donated_count = 0;
  e->held = 0;
  e->done = NULL;
  e->is_queued = false;
}

static void give(const PJRT_LoadedExecutable_Execute_Args* args, size_t d,
                 execution_t* e) {
  const pestle_pjrt_program_t* p = e->program;
  if (p->output_count) {
    memcpy(args->output_lists[d], e->results,
           p->output_count * sizeof(PJRT_Buffer*));
  }
  if (!args->device_complete_events) return;
  args->device_complete_events[d] =
      e->done ? e->done : pestle_pjrt_client_ready(p->client);
  e->done = NULL;
  e->is_queued = false;
}

// --- On several devices ---

// What |e| has taken and made is given back.
static void undo(execution_t* e) {
  pestle_pjrt_execution_drop_inputs(e, false);
  drop_results(e);
}

// Queues them all, under one lock: two programs come to all devices in one order.
static PJRT_Error* queue_all(execution_t* all, size_t count) {
  PJRT_Client* client = all->program->client;
  PJRT_Error* error = NULL;
  size_t queued = 0;
  pestle_mutex_lock(&client->launch);
  for (; queued < count && !error; ++queued) {
    execution_t* e = &all[queued];
    error = pestle_pjrt_run_queued(e);
    if (error) break;
    pestle_pjrt_execution_drop_inputs(e, true);
    for (size_t i = 0; i < e->output_count; ++i)
      e->results[e->program->output_places[i]]->memory = e->outputs[i];
  }
  pestle_mutex_unlock(&client->launch);
  if (!error) return NULL;
  // Those that are queued would wait for the others.
  pestle_status_t why = pestle_status_make(
      PESTLE_STATUS_UNAVAILABLE, __FILE__, __LINE__,
      "the program could not be queued on all of its devices");
  pestle_world_abort(all->world, why);
  pestle_status_release(why);
  for (size_t d = 0; d < queued; ++d)
    drop_results(&all[d]);
  for (size_t d = queued; d < count; ++d)
    undo(&all[d]);
  return error;
}

static PJRT_Error* run_all(const PJRT_LoadedExecutable_Execute_Args* args,
                           execution_t* all, pestle_world_t** ranks) {
  size_t count = args->executable->program->device_count, made = 0;
  PJRT_Error* error = NULL;
  for (; made < count && !error; ++made) {
    begin(args, made, &all[made]);
    all[made].world = ranks[made];
    error = make_room(&all[made]);
    if (!error)
      error = pestle_pjrt_execution_prepare(&all[made], args->options);
    if (error) free_room(&all[made]);
    if (error) pestle_pjrt_event_release(all[made].done);
    if (error) break;
  }
  if (error) {
    for (size_t d = 0; d < made; ++d)
      undo(&all[d]);
  } else {
    error = queue_all(all, count);
  }
  for (size_t d = 0; d < made; ++d) {
    if (!error) give(args, d, &all[d]);
    pestle_pjrt_event_release(all[d].done);
    free_room(&all[d]);
  }
  return error;
}

static PJRT_Error* run_on_all(const PJRT_LoadedExecutable_Execute_Args* args) {
  pestle_pjrt_program_t* p = args->executable->program;
  size_t count = p->device_count, size = count * sizeof(execution_t);
  size_t ranks_size = count * sizeof(pestle_world_t*);
  execution_t* all = pestle_alloc_zero(pestle_allocator_system(), size);
  pestle_world_t** ranks =
      pestle_alloc_zero(pestle_allocator_system(), ranks_size);
  PJRT_Error* error = NULL;
  if (!all || !ranks) {
    error = pestle_pjrt_out_of_memory();
  } else {
    error = pestle_pjrt_worlds_take(p, ranks);
  }
  if (!error) error = run_all(args, all, ranks);
  for (size_t i = 0; ranks && i < count; ++i)
    pestle_world_release(ranks[i]);
  pestle_dealloc(pestle_allocator_system(), ranks, ranks ? ranks_size : 0);
  pestle_dealloc(pestle_allocator_system(), all, all ? size : 0);
  return error;
}

PJRT_Error* pestle_PJRT_LoadedExecutable_Execute(
    PJRT_LoadedExecutable_Execute_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_Execute, executable, execute_device);
  PJRT_TRY(check_call(args));
  if (args->executable->program->rank_count > 1) return run_on_all(args);
  execution_t e;
  begin(args, 0, &e);
  PJRT_Error* error = make_room(&e);
  if (!error) error = run(&e, args->options);
  if (!error) give(args, 0, &e);
  pestle_pjrt_event_release(e.done);
  free_room(&e);
  return error;
}
