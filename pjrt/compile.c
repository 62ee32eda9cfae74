// SPDX-License-Identifier: Apache-2.0
// From a program of the framework to an executable.
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pjrt/callback.h"
#include "pjrt/dump.h"
#include "pjrt/ffi.h"
#include "pjrt/known.h"
#include "pjrt/layouts.h"
#include "pjrt/options.h"
#include "pjrt/program.h"
#include "pjrt/slots.h"
#include "pjrt/spread.h"
#include "pjrt/times.h"

// --- What the module says of itself ---

// Whether the program may be handed to the client's devices.
static PJRT_Error* check_devices(const PJRT_Client* client,
                                 const pestle_pjrt_options_t* options) {
  int64_t replicas = options->replicas > 1 ? options->replicas : 1;
  int64_t partitions = options->partitions > 1 ? options->partitions : 1;
  size_t have = client->device_count;
  if ((uint64_t)replicas <= have && (uint64_t)partitions <= have &&
      (uint64_t)(replicas * partitions) <= have) {
    return NULL;
  }
  return pestle_pjrt_error(
      PJRT_Error_Code_UNIMPLEMENTED,
      "the program is for %lld replicas of %lld partitions; the client has %zu "
      "device%s: compile it for %s",
      (long long)options->replicas, (long long)options->partitions, have,
      have == 1 ? "" : "s", have == 1 ? "one" : "so many");
}

// Whether the program runs on several devices.
static bool is_spread(const pestle_pjrt_options_t* options) {
  return options->replicas > 1 || options->partitions > 1;
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

// Where schedules that were measured lie, as with the command.
static const char lock_path[] = "pestle.lock";

static PJRT_Error* compile_module(PJRT_Client* client, pestle_module_t* module,
                                  const pestle_pjrt_options_t* options,
                                  const char* name, bool no_cache,
                                  pestle_plan_t** out_plan) {
  pestle_compile_options_t compile = {.struct_size = sizeof(compile),
                                      .numerics = options->numerics,
                                      .no_fuse = options->no_fuse,
                                      .no_cache = no_cache};
  pestle_pjrt_dump_t dump = {.folder = options->dump, .program = name};
  if (options->tune_seconds > 0) {
    compile.lock_path = lock_path;
    compile.tune_seconds = options->tune_seconds;
  }
  if (options->dump.size) {
    compile.no_cache = true;
    compile.dump = pestle_pjrt_dump_receive;
    compile.dump_user = &dump;
    compile.dump_stages = (UINT32_C(1) << PESTLE_STAGE_COUNT) - 1;
    compile.dump_stages &= ~(UINT32_C(1) << PESTLE_STAGE_ASM);
  }
  pestle_status_t status = pestle_compile(
      client->context, module, client->device.device, &compile, out_plan);
  if (!status && dump.status) {
    pestle_plan_release(*out_plan);
    *out_plan = NULL;
    return pestle_pjrt_error_of(
        pestle_status_annotate(dump.status, "compiler option pestle_dump"));
  }
  pestle_status_release(dump.status);
  return pestle_pjrt_error_of(status);
}

// |*module| becomes what is compiled, if the program asks for layouts of its own.
static PJRT_Error* make_info(PJRT_Client* client, pestle_module_t** module,
                             pestle_arena_t* arena,
                             pestle_pjrt_program_info_t* out_info) {
  pestle_function_t* entry = pestle_module_entry(*module);
  *out_info = (pestle_pjrt_program_info_t){.name = pestle_module_name(*module)};
  if (!*out_info->name) out_info->name = "main";
  out_info->input_tokens.count =
      pestle_function_tokens(entry, false, &out_info->input_tokens.positions);
  out_info->output_tokens.count =
      pestle_function_tokens(entry, true, &out_info->output_tokens.positions);
  PJRT_TRY(find_donors(*module, arena, out_info));
  PJRT_TRY(pestle_pjrt_layouts_read(*module, arena, out_info));
  PJRT_TRY(pestle_pjrt_layouts_wrap(client->context, out_info, arena, module));
  return pestle_pjrt_error_of(
      pestle_module_signature(*module, out_info->signature));
}

static PJRT_Error* make_program(PJRT_Client* client, pestle_module_t* module,
                                const pestle_pjrt_options_t* options,
                                const pestle_pjrt_source_t* source,
                                pestle_pjrt_program_t** out_program) {
  pestle_arena_t arena;
  pestle_pjrt_program_info_t info;
  pestle_plan_t* plan = NULL;
  pestle_module_t* original = module;  // make_info() may wrap it
  pestle_module_retain(module);
  pestle_arena_init(pestle_allocator_system(), &arena);
  PJRT_Error* error = make_info(client, &module, &arena, &info);
  if (!error)
    error = compile_module(client, module, options, info.name,
                           source->has_callback, &plan);
  if (!error) error = pestle_pjrt_spread_read(original, plan, &arena, &info);
  if (!error) {
    error =
        pestle_pjrt_program_create(client, plan, options, &info, out_program);
  }
  if (!error) pestle_pjrt_known_add(client->known, source, plan, &info);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_arena_deinit(&arena);
  return error;
}

// Longer modules are not kept for merging: their constants are in them.
enum { MOST_CODE = 8 << 20 };

// What of |module|, which was divided, each device runs: the framework reads the
// collectives in it.
static PJRT_Error* keep_divided_text(pestle_module_t* module,
                                     pestle_pjrt_program_t* program) {
  char* text;
  size_t size;
  // It knows StableHLO's ops.
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .passes = "decompose"};
  PJRT_TRY(pestle_pjrt_error_of(
      pestle_optimize(program->client->context, module,
                      program->client->device.device, &options)));
  PJRT_TRY(pestle_pjrt_error_of(
      pestle_module_print(module, PESTLE_PRINT_GENERIC, &text, &size)));
  PJRT_Error* error = pestle_pjrt_program_keep_text(program, text, size);
  pestle_context_free(program->client->context, text, size + 1);
  return error;
}

// The program of |source|: made before, or now.
static PJRT_Error* find_or_make(PJRT_Client* client,
                                const PJRT_Program* program,
                                const pestle_pjrt_options_t* options,
                                const pestle_pjrt_source_t* source,
                                pestle_pjrt_program_t** out_program) {
  pestle_module_t* module = NULL;
  *out_program = NULL;
  // Who wants to see a compilation, or to tune, is not given an old one.
  bool shows = client->settings.program_text && is_spread(options);
  if (!options->dump.size && !(options->tune_seconds > 0) && !shows) {
    PJRT_TRY(pestle_pjrt_known_find(client->known, source, client, options,
                                    out_program));
  }
  if (*out_program) return NULL;
  PJRT_TRY(read_module(client, program, &module));
  pestle_compile_options_t divide = {.struct_size = sizeof(divide),
                                     .numerics = options->numerics};
  PJRT_Error* error = pestle_pjrt_error_of(pestle_partition(
      client->context, module, client->device.device, &divide));
  if (!error)
    error = make_program(client, module, options, source, out_program);
  if (!error && shows) error = keep_divided_text(module, *out_program);
  pestle_module_release(module);
  return error;
}

static PJRT_Error* compile(PJRT_Client* client, const PJRT_Program* program,
                           const char* option_bytes, size_t option_size,
                           pestle_pjrt_program_t** out_program) {
  pestle_pjrt_options_t options;
  PJRT_TRY(pestle_pjrt_client_check(client));
  PJRT_TRY(pestle_pjrt_options_read(option_bytes, option_size,
                                    &client->settings, &options));
  PJRT_TRY(check_devices(client, &options));
  PJRT_TRY(pestle_ffi_bind(client));
  // Numbers of callbacks mean nothing in another process.
  pestle_pjrt_source_t source = {
      program->code, program->code_size, &options,
      contains(program, PESTLE_PJRT_CALLBACK_TARGET)};
  int64_t begin = pestle_clock_ns();
  pestle_pjrt_program_t* made = NULL;
  PJRT_TRY(find_or_make(client, program, &options, &source, &made));
  PJRT_Error* error =
      pestle_pjrt_program_keep_options(made, option_bytes, option_size);
  if (!error && client->device.merge && !options.no_merge &&
      !made->has_orders && program->code_size <= MOST_CODE)
    error =
        pestle_pjrt_program_keep_code(made, program->code, program->code_size);
  if (!error && client->settings.program_text && !made->text) {
    error =
        pestle_pjrt_program_keep_text(made, program->code, program->code_size);
  }
  if (error) {
    pestle_pjrt_program_release(made);
    return error;
  }
  pestle_pjrt_times_compiled(client->times, made->name,
                             pestle_clock_ns() - begin);
  *out_program = made;
  return NULL;
}

static bool is_given(const PJRT_Program* program) {
  return program && program->struct_size >= sizeof(*program) && program->code &&
         program->format;
}

PJRT_Error* pestle_PJRT_Client_Compile(PJRT_Client_Compile_Args* args) {
  PJRT_REQUIRE(PJRT_Client_Compile, client, executable);
  pestle_pjrt_program_t* program = NULL;
  args->executable = NULL;
  if (!is_given(args->program))
    return pestle_pjrt_no_handle("PJRT_Client_Compile", "program");
  PJRT_TRY(compile(args->client, args->program, args->compile_options,
                   args->compile_options_size, &program));
  return pestle_pjrt_load(program, &args->executable);
}

// Ahead of time, for a topology: the executable is then serialised, or loaded into
// the topology's client.
PJRT_Error* pestle_PJRT_Compile(PJRT_Compile_Args* args) {
  PJRT_REQUIRE(PJRT_Compile, topology, executable);
  pestle_pjrt_program_t* program = NULL;
  PJRT_Client* client = args->client ? args->client : args->topology->client;
  args->executable = NULL;
  if (!is_given(args->program))
    return pestle_pjrt_no_handle("PJRT_Compile", "program");
  PJRT_TRY(compile(client, args->program, args->compile_options,
                   args->compile_options_size, &program));
  args->executable = &program->handle;
  return NULL;
}
