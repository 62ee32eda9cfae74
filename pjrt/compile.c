// SPDX-License-Identifier: Apache-2.0
// From a program of the framework to an executable.
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pjrt/callback.h"
#include "pjrt/options.h"
#include "pjrt/program.h"
#include "pjrt/slots.h"
#include "pjrt/times.h"

// --- What the module says of itself ---

// Whether the program may be handed to a device, of which there is one.
static PJRT_Error* check_devices(const pestle_pjrt_options_t* options) {
  if (options->replicas <= 1 && options->partitions <= 1) return NULL;
  return pestle_pjrt_error(
      PJRT_Error_Code_UNIMPLEMENTED,
      "the program is for %lld replicas of %lld partitions; a client has 1 "
      "device",
      (long long)options->replicas, (long long)options->partitions);
}

static bool contains(const PJRT_Program* program, const char* text) {
  pestle_str_t code = pestle_str_make(program->code, program->code_size);
  return pestle_str_find(code, pestle_str(text)) != SIZE_MAX;
}

// Of each argument whether its memory is given up.
static PJRT_Error* find_donors(pestle_module_t* module, pestle_arena_t* arena,
                               pestle_pjrt_program_info_t* info) {
  pestle_function_t* entry = pestle_module_entry(module);
  size_t count = entry ? pestle_function_argument_count(entry) : 0;
  bool* donors = PESTLE_ARENA_ARRAY(arena, bool, count);
  if (!donors) return pestle_pjrt_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    const char* donor =
        pestle_function_argument_attribute(entry, i, "jax.buffer_donor");
    donors[i] =
        pestle_function_argument_attribute(entry, i, "tf.aliasing_output") ||
        (donor && strcmp(donor, "false") != 0);
  }
  info->is_donor = donors;
  info->input_count = count;
  return NULL;
}

// --- Compiling ---

static PJRT_Error* read_module(PJRT_Client* client, const PJRT_Program* program,
                               pestle_module_t** out_module) {
  pestle_str_t format = pestle_str_make(program->format, program->format_size);
  if (!pestle_str_equal_c(format, "mlir")) {
    return pestle_pjrt_error(
        PJRT_Error_Code_UNIMPLEMENTED,
        "a program of format '%.*s'; Pestle takes 'mlir' (StableHLO, bytecode "
        "or text)",
        PESTLE_STR_ARG(format));
  }
  return pestle_pjrt_error_of(
      pestle_import_bytes(client->context, program->code, program->code_size,
                          "program", NULL, out_module));
}

static PJRT_Error* compile_module(PJRT_Client* client, pestle_module_t* module,
                                  const pestle_pjrt_options_t* options,
                                  bool no_cache, pestle_plan_t** out_plan) {
  pestle_compile_options_t compile = {.struct_size = sizeof(compile),
                                      .numerics = options->numerics,
                                      .no_fuse = options->no_fuse,
                                      .no_cache = no_cache};
  return pestle_pjrt_error_of(pestle_compile(
      client->context, module, client->device.device, &compile, out_plan));
}

static PJRT_Error* make_program(PJRT_Client* client, pestle_module_t* module,
                                const pestle_pjrt_options_t* options,
                                bool no_cache,
                                pestle_pjrt_program_t** out_program) {
  pestle_arena_t arena;
  pestle_pjrt_program_info_t info = {.name = pestle_module_name(module)};
  pestle_plan_t* plan = NULL;
  pestle_arena_init(pestle_allocator_system(), &arena);
  if (!*info.name) info.name = "main";
  info.input_tokens.count = pestle_function_tokens(
      pestle_module_entry(module), false, &info.input_tokens.positions);
  info.output_tokens.count = pestle_function_tokens(
      pestle_module_entry(module), true, &info.output_tokens.positions);
  PJRT_Error* error = find_donors(module, &arena, &info);
  if (!error)
    error =
        pestle_pjrt_error_of(pestle_module_signature(module, info.signature));
  if (!error) error = compile_module(client, module, options, no_cache, &plan);
  if (!error) {
    error =
        pestle_pjrt_program_create(client, plan, options, &info, out_program);
  }
  pestle_plan_release(plan);
  pestle_arena_deinit(&arena);
  return error;
}

static PJRT_Error* compile(PJRT_Client* client, const PJRT_Program* program,
                           const pestle_pjrt_options_t* options,
                           pestle_pjrt_program_t** out_program) {
  pestle_module_t* module = NULL;
  // Numbers of callbacks mean nothing in another process.
  bool no_cache = contains(program, PESTLE_PJRT_CALLBACK_TARGET);
  int64_t begin = pestle_clock_ns();
  PJRT_TRY(read_module(client, program, &module));
  PJRT_Error* error =
      make_program(client, module, options, no_cache, out_program);
  pestle_module_release(module);
  if (!error && client->settings.program_text) {
    error = pestle_pjrt_program_keep_text(*out_program, program->code,
                                          program->code_size);
    if (error) pestle_pjrt_program_release(*out_program);
  }
  if (!error) {
    pestle_pjrt_times_compiled(client->times, (*out_program)->name,
                               pestle_clock_ns() - begin);
  }
  return error;
}

PJRT_Error* pestle_PJRT_Client_Compile(PJRT_Client_Compile_Args* args) {
  PJRT_REQUIRE(PJRT_Client_Compile, client, executable);
  pestle_pjrt_options_t options;
  pestle_pjrt_program_t* program = NULL;
  args->executable = NULL;
  if (!args->program || !args->program->code || !args->program->format)
    return pestle_pjrt_no_handle("PJRT_Client_Compile", "program");
  PJRT_TRY(pestle_pjrt_client_check(args->client));
  PJRT_TRY(pestle_pjrt_options_read(args->compile_options,
                                    args->compile_options_size,
                                    &args->client->settings, &options));
  PJRT_TRY(check_devices(&options));
  PJRT_TRY(compile(args->client, args->program, &options, &program));
  return pestle_pjrt_load(program, &args->executable);
}
