// SPDX-License-Identifier: Apache-2.0
#include "pjrt/program.h"

#include <string.h>

#include "base/mem.h"
#include "pestle/plan_format.h"
#include "pjrt/callback.h"
#include "pjrt/dtype.h"
#include "pjrt/error.h"
#include "pjrt/layouts.h"
#include "pjrt/slots.h"
#include "pjrt/spread.h"

// --- Shapes ---

static PJRT_Error* shape_of(const pestle_io_info_t* io, const char* kind,
                            size_t index, pestle_pjrt_shape_t* out_shape) {
  PJRT_Buffer_Type type = pestle_pjrt_type_of(io->dtype);
  if (type == PJRT_Buffer_Type_INVALID || io->bounded) {
    return pestle_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                             "%s %zu is %s, which PJRT has not", kind, index,
                             io->bounded
                                 ? "of a shape that is known after a run only"
                                 : pestle_dtype_info(io->dtype)->name);
  }
  return pestle_pjrt_shape_make(type, io->dims, (size_t)io->rank, out_shape);
}

// |shape| of what the plan has at |index| becomes that of the program's, which lies so.
static void put_in_order(const pestle_pjrt_program_info_t* info, size_t index,
                         pestle_pjrt_shape_t* shape) {
  pestle_pjrt_shape_t lying = *shape;
  if (!info->orders) return;
  const uint8_t* order = info->orders + index * PESTLE_MAX_RANK;
  for (size_t i = 0; i < shape->rank; ++i) {
    shape->order[i] = order[i];
    shape->dims[order[i]] = lying.dims[i];
  }
}

static PJRT_Error* token_shape(pestle_pjrt_shape_t* out_shape) {
  return pestle_pjrt_shape_make(PJRT_Buffer_Type_PRED, &(int64_t){0}, 1,
                                out_shape);
}

// |*out_tokens| becomes a copy of |tokens|, |*out_places| where |count| values
// stand in the list that has both.
static PJRT_Error* place(pestle_pjrt_program_t* p,
                         const pestle_pjrt_tokens_t* tokens, size_t count,
                         pestle_pjrt_tokens_t* out_tokens,
                         const uint32_t** out_places) {
  uint32_t* places = PESTLE_ARENA_ARRAY(&p->arena, uint32_t, count);
  out_tokens->count = tokens->count;
  out_tokens->positions =
      pestle_arena_copy(&p->arena, tokens->positions,
                        tokens->count * sizeof(uint32_t), _Alignof(uint32_t));
  if (!places || !out_tokens->positions) return pestle_pjrt_out_of_memory();
  size_t at = 0, next = 0;
  for (size_t i = 0; i < count; ++i, ++at) {
    for (; next < tokens->count && tokens->positions[next] == at; ++next)
      ++at;
    places[i] = (uint32_t)at;
  }
  // Those that are left stand behind all values, one behind the other.
  for (; next < tokens->count; ++next, ++at) {
    if (tokens->positions[next] == at) continue;
    return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "a token of %s stands at place %u of %zu", p->name,
                             tokens->positions[next], at);
  }
  *out_places = places;
  return NULL;
}

static PJRT_Error* collect_inputs(pestle_pjrt_program_t* p,
                                  const pestle_pjrt_program_info_t* info) {
  size_t count = pestle_executable_input_count(p->executable);
  if (count != info->input_count) {
    return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "the plan of %s has %zu inputs; %zu were expected",
                             info->name, count, info->input_count);
  }
  p->input_count = info->input_tokens.count + count;
  pestle_pjrt_shape_t* shapes =
      PESTLE_ARENA_ARRAY(&p->arena, pestle_pjrt_shape_t, p->input_count);
  bool* donors = PESTLE_ARENA_ARRAY(&p->arena, bool, p->input_count);
  if (!shapes || !donors) return pestle_pjrt_out_of_memory();
  PJRT_Error* error =
      place(p, &info->input_tokens, count, &p->input_tokens, &p->input_places);
  for (size_t i = 0; i < info->input_tokens.count && !error; ++i) {
    uint32_t at = info->input_tokens.positions[i];
    donors[at] = false;
    error = token_shape(&shapes[at]);
  }
  for (size_t i = 0; i < count && !error; ++i) {
    uint32_t at = p->input_places[i];
    pestle_io_info_t io = pestle_executable_input(p->executable, i);
    error = shape_of(&io, "input", i, &shapes[at]);
    if (error) break;
    put_in_order(info, i, &shapes[at]);
    donors[at] = info->is_donor[i];
    p->donor_count += donors[at];
    p->argument_bytes += (int64_t)shapes[at].size;
  }
  p->inputs = shapes;
  p->is_donor = donors;
  return error;
}

// The arrays that the framework asks for, from |p->outputs|.
static PJRT_Error* list_outputs(pestle_pjrt_program_t* p) {
  size_t all = 0;
  for (size_t i = 0; i < p->output_count; ++i)
    all += p->outputs[i].rank;
  PJRT_Buffer_Type* types =
      PESTLE_ARENA_ARRAY(&p->arena, PJRT_Buffer_Type, p->output_count);
  int64_t* dims = PESTLE_ARENA_ARRAY(&p->arena, int64_t, all);
  size_t* ranks = PESTLE_ARENA_ARRAY(&p->arena, size_t, p->output_count);
  if (!types || !dims || !ranks) return pestle_pjrt_out_of_memory();
  p->output_types = types;
  p->output_dims = dims;
  p->output_ranks = ranks;
  for (size_t i = 0; i < p->output_count; ++i) {
    const pestle_pjrt_shape_t* shape = &p->outputs[i];
    types[i] = shape->type;
    ranks[i] = shape->rank;
    for (size_t k = 0; k < shape->rank; ++k)
      *dims++ = shape->dims[k];
  }
  return NULL;
}

static PJRT_Error* collect_outputs(pestle_pjrt_program_t* p,
                                   const pestle_pjrt_program_info_t* info) {
  size_t count = pestle_executable_output_count(p->executable);
  p->output_count = info->output_tokens.count + count;
  pestle_pjrt_shape_t* shapes =
      PESTLE_ARENA_ARRAY(&p->arena, pestle_pjrt_shape_t, p->output_count);
  if (!shapes) return pestle_pjrt_out_of_memory();
  PJRT_Error* error = place(p, &info->output_tokens, count, &p->output_tokens,
                            &p->output_places);
  for (size_t i = 0; i < info->output_tokens.count && !error; ++i)
    error = token_shape(&shapes[info->output_tokens.positions[i]]);
  for (size_t i = 0; i < count && !error; ++i) {
    pestle_pjrt_shape_t* shape = &shapes[p->output_places[i]];
    pestle_io_info_t io = pestle_executable_output(p->executable, i);
    error = shape_of(&io, "output", i, shape);
    if (error) break;
    put_in_order(info, info->input_count + i, shape);
    p->output_bytes += (int64_t)shape->size;
    if (pestle_executable_alias(p->executable, i) >= 0)
      p->alias_bytes += (int64_t)shape->size;
  }
  p->outputs = shapes;
  return error ? error : list_outputs(p);
}

static PJRT_Error* list_memory_kinds(pestle_pjrt_program_t* p) {
  size_t count =
      p->input_count > p->output_count ? p->input_count : p->output_count;
  const char** kinds = PESTLE_ARENA_ARRAY(&p->arena, const char*, count);
  size_t* sizes = PESTLE_ARENA_ARRAY(&p->arena, size_t, count);
  if (!kinds || !sizes) return pestle_pjrt_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    kinds[i] = PESTLE_PJRT_MEMORY_KIND;
    sizes[i] = sizeof(PESTLE_PJRT_MEMORY_KIND) - 1;
  }
  p->memory_kinds = kinds;
  p->memory_kind_sizes = sizes;
  return NULL;
}

static PJRT_Error* layouts_of(pestle_pjrt_program_t* p,
                              const pestle_pjrt_shape_t* shapes, size_t count,
                              PJRT_Layouts_MemoryLayout*** out_layouts) {
  *out_layouts =
      PESTLE_ARENA_ARRAY(&p->arena, PJRT_Layouts_MemoryLayout*, count);
  if (!*out_layouts) return pestle_pjrt_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    (*out_layouts)[i] = pestle_pjrt_layout(&p->arena, &shapes[i]);
    if (!(*out_layouts)[i]) return pestle_pjrt_out_of_memory();
  }
  return NULL;
}

static PJRT_Error* list_layouts(pestle_pjrt_program_t* p) {
  PJRT_TRY(layouts_of(p, p->inputs, p->input_count, &p->input_layouts));
  return layouts_of(p, p->outputs, p->output_count, &p->output_layouts);
}

// --- What it costs ---

// A core's arithmetic and memory, roughly: only whether a run is short matters.
static const double flops_per_ns = 8, bytes_per_ns = 8, ns_per_step = 100;
static const double slow_ns = 1e6;  // of what says nothing about its time

static void set_cost(PJRT_NamedValue* out, const char* name, double value) {
  *out = (PJRT_NamedValue){.struct_size = sizeof(*out),
                           .name = name,
                           .name_size = strlen(name),
                           .type = PJRT_NamedValue_kFloat,
                           .float_value = (float)value,
                           .value_size = 1};
}

static PJRT_Error* add_costs(pestle_pjrt_program_t* p) {
  double flops = 0, bytes = 0, ns = 0;
  size_t steps = pestle_executable_step_count(p->executable);
  for (size_t i = 0; i < steps; ++i) {
    pestle_step_info_t step = {.struct_size = sizeof(step)};
    pestle_status_t status = pestle_executable_step(p->executable, i, &step);
    if (status) return pestle_pjrt_error_of(status);
    flops += (double)step.flops;
    bytes += (double)step.bytes;
    ns += ns_per_step;
    // The last step is the end; other jumps are loops and branches.
    bool is_loop = step.kind == PESTLE_STEP_JUMP && i + 1 < steps;
    if (is_loop || step.kind == PESTLE_STEP_CALL) ns += slow_ns;
  }
  double work = flops / flops_per_ns > bytes / bytes_per_ns
                    ? flops / flops_per_ns
                    : bytes / bytes_per_ns;
  atomic_init(&p->expected_ns, (long long)(ns + work));
  set_cost(&p->costs[0], "flops", flops);
  set_cost(&p->costs[1], "bytes accessed", bytes);
  set_cost(&p->costs[2], "transcendentals", 0);
  set_cost(&p->costs[3], "optimal_seconds", (ns + work) * 1e-9);
  return NULL;
}

static void add_plan_sizes(pestle_pjrt_program_t* p) {
  const pestle_plan_header_t* header = pestle_plan_data(p->plan, NULL);
  p->temp_bytes = header->arena_size;
  p->code_bytes = (int64_t)header->code.count;
}

// The callbacks among the plan's calls are held from now on.
static PJRT_Error* find_callbacks(pestle_pjrt_program_t* p) {
  const char* data = pestle_plan_data(p->plan, NULL);
  const pestle_plan_header_t* header = (const void*)data;
  const char* strings = data + header->strings.offset;
  const pestle_plan_call_t* calls = (const void*)(data + header->calls.offset);
  size_t count = (size_t)header->calls.count;
  int64_t* found = PESTLE_ARENA_ARRAY(&p->arena, int64_t, count);
  if (!found) return pestle_pjrt_out_of_memory();
  p->callbacks = found;
  for (size_t i = 0; i < count; ++i) {
    int64_t index;
    bool is_callback =
        !strcmp(strings + calls[i].name, PESTLE_PJRT_CALLBACK_TARGET);
    if (calls[i].kind == PESTLE_PLAN_CALL_CUSTOM && !is_callback)
      p->has_foreign = true;
    if (!is_callback ||
        !pestle_pjrt_callback_index(strings + calls[i].config,
                                    strings + calls[i].dictionary, &index)) {
      continue;
    }
    pestle_pjrt_callback_hold(p->client, index, true);
    found[p->callback_count++] = index;
  }
  return NULL;
}

// --- Life ---

// Loads the plan on each device: those of a CPU are one.
static PJRT_Error* load_all(pestle_pjrt_program_t* p) {
  p->executables =
      PESTLE_ARENA_ARRAY(&p->arena, pestle_executable_t*, p->device_count);
  if (!p->executables) return pestle_pjrt_out_of_memory();
  memset(p->executables, 0, p->device_count * sizeof(*p->executables));
  for (size_t i = 0; i < p->device_count; ++i) {
    if (i && p->devices[i]->device == p->devices[0]->device) {
      p->executables[i] = p->executables[0];
      pestle_executable_retain(p->executables[i]);
      continue;
    }
    pestle_status_t status = pestle_executable_create(
        p->client->context, p->plan, p->devices[i]->device, &p->executables[i]);
    if (status) return pestle_pjrt_error_of(status);
  }
  p->executable = p->executables[0];
  return NULL;
}

static PJRT_Error* fill(pestle_pjrt_program_t* p,
                        const pestle_pjrt_program_info_t* info) {
  PJRT_TRY(pestle_pjrt_spread_devices(p));
  PJRT_TRY(load_all(p));
  p->name = pestle_arena_strdup(&p->arena, info->name);
  if (!p->name) return pestle_pjrt_out_of_memory();
  memcpy(p->signature, info->signature, sizeof(p->signature));
  pestle_hash128_to_hex(
      (pestle_hash128_t){info->signature[0], info->signature[1]},
      p->fingerprint);
  p->has_orders = info->orders != NULL;
  PJRT_Error* error = collect_inputs(p, info);
  if (!error) error = collect_outputs(p, info);
  if (!error) error = pestle_pjrt_spread_shardings(p, info);
  if (!error) error = list_memory_kinds(p);
  if (!error) error = list_layouts(p);
  if (!error) error = add_costs(p);
  if (!error) error = find_callbacks(p);
  if (!error) add_plan_sizes(p);
  return error;
}

PJRT_Error* pestle_pjrt_program_create(PJRT_Client* client, pestle_plan_t* plan,
                                       const pestle_pjrt_options_t* options,
                                       const pestle_pjrt_program_info_t* info,
                                       pestle_pjrt_program_t** out_program) {
  pestle_pjrt_program_t* p =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*p));
  if (!p) return pestle_pjrt_out_of_memory();
  pestle_refcount_init(&p->references);
  pestle_arena_init(pestle_allocator_system(), &p->arena);
  pestle_pjrt_client_retain(client);
  pestle_plan_retain(plan);
  p->handle.program = p;
  p->client = client;
  p->plan = plan;
  p->options = *options;
  PJRT_Error* error = fill(p, info);
  if (error) {
    pestle_pjrt_program_release(p);
    p = NULL;
  }
  *out_program = p;
  return error;
}

PJRT_Error* pestle_pjrt_program_keep_text(pestle_pjrt_program_t* program,
                                          const char* text, size_t size) {
  program->text = pestle_arena_copy(&program->arena, text, size, 1);
  if (!program->text) return pestle_pjrt_out_of_memory();
  program->text_size = size;
  return NULL;
}

PJRT_Error* pestle_pjrt_program_keep_code(pestle_pjrt_program_t* program,
                                          const char* code, size_t size) {
  program->code = pestle_arena_copy(&program->arena, code, size, 1);
  if (!program->code) return pestle_pjrt_out_of_memory();
  program->code_size = size;
  return NULL;
}

PJRT_Error* pestle_pjrt_program_keep_options(pestle_pjrt_program_t* program,
                                             const char* bytes, size_t size) {
  if (!size) return NULL;
  program->option_bytes = pestle_arena_copy(&program->arena, bytes, size, 1);
  if (!program->option_bytes) return pestle_pjrt_out_of_memory();
  program->option_size = size;
  return NULL;
}

pestle_executable_t* pestle_pjrt_program_on(
    const pestle_pjrt_program_t* program, const PJRT_Device* device) {
  for (size_t i = 0; i < program->device_count; ++i) {
    if (program->devices[i] == device) return program->executables[i];
  }
  return program->executable;
}

void pestle_pjrt_program_retain(pestle_pjrt_program_t* program) {
  pestle_refcount_retain(&program->references);
}

void pestle_pjrt_program_release(pestle_pjrt_program_t* program) {
  if (!program || !pestle_refcount_release(&program->references)) return;
  PJRT_Client* client = program->client;
  for (size_t i = 0; i < program->callback_count; ++i)
    pestle_pjrt_callback_hold(client, program->callbacks[i], false);
  for (size_t i = 0; program->executables && i < program->device_count; ++i)
    pestle_executable_release(program->executables[i]);
  pestle_plan_release(program->plan);
  pestle_arena_deinit(&program->arena);
  pestle_dealloc(pestle_allocator_system(), program, sizeof(*program));
  pestle_pjrt_client_release(client);
}

PJRT_Error* pestle_pjrt_load(pestle_pjrt_program_t* program,
                             PJRT_LoadedExecutable** out_executable) {
  PJRT_LoadedExecutable* loaded =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*loaded));
  if (!loaded) {
    pestle_pjrt_program_release(program);
    return pestle_pjrt_out_of_memory();
  }
  loaded->program = program;
  atomic_init(&loaded->is_deleted, false);
  *out_executable = loaded;
  return NULL;
}
