// SPDX-License-Identifier: Apache-2.0
// What the framework asks of executables. All was prepared when the program was
// made (program.c).
#include <string.h>

#include "base/mem.h"
#include "pjrt/program.h"
#include "pjrt/slots.h"

// --- Handles ---

PJRT_Error* pestle_PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_Destroy, executable, executable);
  pestle_pjrt_program_release(args->executable->program);
  return NULL;
}

// Runs that are queued hold the program themselves: nothing waits here.
PJRT_Error* pestle_PJRT_LoadedExecutable_Destroy(
    PJRT_LoadedExecutable_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_Destroy, executable, executable);
  pestle_pjrt_program_release(args->executable->program);
  pestle_dealloc(pestle_allocator_system(), args->executable,
                 sizeof(*args->executable));
  return NULL;
}

// May not fail.
PJRT_Error* pestle_PJRT_LoadedExecutable_GetExecutable(
    PJRT_LoadedExecutable_GetExecutable_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_GetExecutable, loaded_executable,
               executable);
  pestle_pjrt_program_t* program = args->loaded_executable->program;
  pestle_pjrt_program_retain(program);
  args->executable = &program->handle;
  return NULL;
}

PJRT_Error* pestle_PJRT_LoadedExecutable_Delete(
    PJRT_LoadedExecutable_Delete_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_Delete, executable, executable);
  atomic_store(&args->executable->is_deleted, true);
  return NULL;
}

PJRT_Error* pestle_PJRT_LoadedExecutable_IsDeleted(
    PJRT_LoadedExecutable_IsDeleted_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_IsDeleted, executable, is_deleted);
  args->is_deleted = atomic_load(&args->executable->is_deleted);
  return NULL;
}

// One client's executable is loaded as it is made.
PJRT_Error* pestle_PJRT_Client_Load(PJRT_Client_Load_Args* args) {
  PJRT_REQUIRE(PJRT_Client_Load, client, loaded_executable);
  args->loaded_executable = NULL;
  if (!args->executable)
    return pestle_pjrt_no_handle("PJRT_Client_Load", "executable");
  pestle_pjrt_program_t* program = args->executable->program;
  if (program->client != args->client) {
    return pestle_pjrt_error(
        PJRT_Error_Code_INVALID_ARGUMENT,
        "%s was compiled for another client: serialise it there and load the "
        "bytes here (PJRT_Executable_DeserializeAndLoad)",
        program->name);
  }
  pestle_pjrt_program_retain(program);
  return pestle_pjrt_load(program, &args->loaded_executable);
}

// --- Contexts of executions: nothing here takes what they would hold ---

struct PJRT_ExecuteContext {
  char unused;
};

PJRT_Error* pestle_PJRT_ExecuteContext_Create(
    PJRT_ExecuteContext_Create_Args* args) {
  PJRT_TRY(pestle_pjrt_check(args,
                             PJRT_END_OF(PJRT_ExecuteContext_Create, context),
                             "PJRT_ExecuteContext_Create"));
  args->context =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*args->context));
  return args->context ? NULL : pestle_pjrt_out_of_memory();
}

PJRT_Error* pestle_PJRT_ExecuteContext_Destroy(
    PJRT_ExecuteContext_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_ExecuteContext_Destroy, context, context);
  pestle_dealloc(pestle_allocator_system(), args->context,
                 sizeof(*args->context));
  return NULL;
}

// --- Devices ---

PJRT_Error* pestle_PJRT_LoadedExecutable_AddressableDevices(
    PJRT_LoadedExecutable_AddressableDevices_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_AddressableDevices, executable,
               num_addressable_devices);
  args->addressable_devices = args->executable->program->devices;
  args->num_addressable_devices = args->executable->program->device_count;
  return NULL;
}

PJRT_Error* pestle_PJRT_LoadedExecutable_AddressableDeviceLogicalIds(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_AddressableDeviceLogicalIds, executable,
               num_addressable_device_logical_ids);
  args->addressable_device_logical_ids = args->executable->program->logical_ids;
  args->num_addressable_device_logical_ids =
      args->executable->program->device_count;
  return NULL;
}

static void keep_assignment(PJRT_DeviceAssignmentSerialized* assignment) {
  (void)assignment;
}

PJRT_Error* pestle_PJRT_LoadedExecutable_GetDeviceAssignment(
    PJRT_LoadedExecutable_GetDeviceAssignment_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_GetDeviceAssignment, executable,
               serialized_device_assignment_deleter);
  args->serialized_bytes = args->executable->program->assignment;
  args->serialized_bytes_size = args->executable->program->assignment_size;
  args->serialized_device_assignment = NULL;
  args->serialized_device_assignment_deleter = keep_assignment;
  return NULL;
}

// --- Names and numbers ---

PJRT_Error* pestle_PJRT_Executable_Name(PJRT_Executable_Name_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_Name, executable, executable_name_size);
  args->executable_name = args->executable->program->name;
  args->executable_name_size = strlen(args->executable_name);
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_NumReplicas(
    PJRT_Executable_NumReplicas_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_NumReplicas, executable, num_replicas);
  args->num_replicas = (size_t)args->executable->program->options.replicas;
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_NumPartitions(
    PJRT_Executable_NumPartitions_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_NumPartitions, executable, num_partitions);
  args->num_partitions = (size_t)args->executable->program->options.partitions;
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_NumOutputs(
    PJRT_Executable_NumOutputs_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_NumOutputs, executable, num_outputs);
  args->num_outputs = args->executable->program->output_count;
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_SizeOfGeneratedCodeInBytes(
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_SizeOfGeneratedCodeInBytes, executable,
               size_in_bytes);
  args->size_in_bytes = args->executable->program->code_bytes;
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_Fingerprint(
    PJRT_Executable_Fingerprint_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_Fingerprint, executable,
               executable_fingerprint_size);
  args->executable_fingerprint = args->executable->program->fingerprint;
  args->executable_fingerprint_size = strlen(args->executable_fingerprint);
  return NULL;
}

PJRT_Error* pestle_PJRT_LoadedExecutable_Fingerprint(
    PJRT_LoadedExecutable_Fingerprint_Args* args) {
  PJRT_REQUIRE(PJRT_LoadedExecutable_Fingerprint, executable,
               executable_fingerprint_size);
  args->executable_fingerprint = args->executable->program->fingerprint;
  args->executable_fingerprint_size = strlen(args->executable_fingerprint);
  return NULL;
}

// --- Outputs and parameters ---

PJRT_Error* pestle_PJRT_Executable_OutputElementTypes(
    PJRT_Executable_OutputElementTypes_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_OutputElementTypes, executable,
               num_output_types);
  // The slot's type has no const; the framework only reads them.
  args->output_types =
      (PJRT_Buffer_Type*)(uintptr_t)args->executable->program->output_types;
  args->num_output_types = args->executable->program->output_count;
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_OutputDimensions(
    PJRT_Executable_OutputDimensions_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_OutputDimensions, executable, dim_sizes);
  const pestle_pjrt_program_t* p = args->executable->program;
  args->num_outputs = p->output_count;
  args->dims = p->output_dims;
  args->dim_sizes = p->output_ranks;
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_OutputMemoryKinds(
    PJRT_Executable_OutputMemoryKinds_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_OutputMemoryKinds, executable,
               memory_kind_sizes);
  const pestle_pjrt_program_t* p = args->executable->program;
  args->num_outputs = p->output_count;
  args->memory_kinds = p->memory_kinds;
  args->memory_kind_sizes = p->memory_kind_sizes;
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_ParameterMemoryKinds(
    PJRT_Executable_ParameterMemoryKinds_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_ParameterMemoryKinds, executable,
               memory_kind_sizes);
  const pestle_pjrt_program_t* p = args->executable->program;
  args->num_parameters = p->input_count;
  args->memory_kinds = p->memory_kinds;
  args->memory_kind_sizes = p->memory_kind_sizes;
  return NULL;
}

// --- Analyses ---

PJRT_Error* pestle_PJRT_Executable_GetCostAnalysis(
    PJRT_Executable_GetCostAnalysis_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_GetCostAnalysis, executable, properties);
  args->properties = args->executable->program->costs;
  args->num_properties = PESTLE_PJRT_COSTS;
  return NULL;
}

PJRT_Error* pestle_PJRT_Executable_GetCompiledMemoryStats(
    PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_GetCompiledMemoryStats, executable,
               host_temp_size_in_bytes);
  const pestle_pjrt_program_t* p = args->executable->program;
  int64_t total =
      p->argument_bytes + p->output_bytes - p->alias_bytes + p->temp_bytes;
  args->generated_code_size_in_bytes = p->code_bytes;
  args->argument_size_in_bytes = p->argument_bytes;
  args->output_size_in_bytes = p->output_bytes;
  args->alias_size_in_bytes = p->alias_bytes;
  args->temp_size_in_bytes = p->temp_bytes;
  args->host_generated_code_size_in_bytes = 0;
  args->host_argument_size_in_bytes = 0;
  args->host_output_size_in_bytes = 0;
  args->host_alias_size_in_bytes = 0;
  args->host_temp_size_in_bytes = 0;
  if (PJRT_HAS(PJRT_Executable_GetCompiledMemoryStats, peak_memory_in_bytes))
    args->peak_memory_in_bytes = total;
  if (PJRT_HAS(PJRT_Executable_GetCompiledMemoryStats, total_size_in_bytes))
    args->total_size_in_bytes = total;
  if (PJRT_HAS(PJRT_Executable_GetCompiledMemoryStats, total_allocation_bytes))
    args->total_allocation_bytes = total;
  if (PJRT_HAS(PJRT_Executable_GetCompiledMemoryStats, indefinite_allocations))
    args->indefinite_allocations = 0;
  if (PJRT_HAS(PJRT_Executable_GetCompiledMemoryStats,
               peak_unpadded_heap_bytes))
    args->peak_unpadded_heap_bytes = total;
  return NULL;
}

static void keep_options(PJRT_SerializedCompileOptions* options) {
  (void)options;
}

// As they were given; none of an executable that was deserialised.
PJRT_Error* pestle_PJRT_Executable_GetCompileOptions(
    PJRT_Executable_GetCompileOptions_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_GetCompileOptions, executable,
               serialized_compile_options_deleter);
  const pestle_pjrt_program_t* p = args->executable->program;
  args->serialized_bytes = p->option_bytes;
  args->serialized_bytes_size = p->option_size;
  args->serialized_compile_options = NULL;
  args->serialized_compile_options_deleter = keep_options;
  return NULL;
}

// What the framework does with the text costs more than a small compilation: it
// is there only for those who ask (create option program_text).
PJRT_Error* pestle_PJRT_Executable_OptimizedProgram(
    PJRT_Executable_OptimizedProgram_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_OptimizedProgram, executable, program);
  const pestle_pjrt_program_t* p = args->executable->program;
  PJRT_Program* program = args->program;
  if (!p->text) {
    return pestle_pjrt_error(
        PJRT_Error_Code_UNIMPLEMENTED,
        "PJRT_Executable_OptimizedProgram: the text of %s was not kept; set "
        "PESTLE_PJRT_PROGRAM_TEXT=1",
        p->name);
  }
  if (!program)
    return pestle_pjrt_no_handle("PJRT_Executable_OptimizedProgram", "program");
  program->format = "mlir";
  program->format_size = 4;
  if (program->code) {
    if (program->code_size < p->text_size) {
      return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                               "the text has %zu bytes; there is room for %zu",
                               p->text_size, program->code_size);
    }
    memcpy(program->code, p->text, p->text_size);
  }
  program->code_size = p->text_size;
  return NULL;
}
