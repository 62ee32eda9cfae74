// SPDX-License-Identifier: Apache-2.0
// The plugin as a framework drives it: loaded from its file, called through the
// table alone.
#ifndef PESTLE_TESTS_PJRT_DRIVER_H_
#define PESTLE_TESTS_PJRT_DRIVER_H_

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "pjrt/abi.h"
#include "test.h"

// An args struct whose other fields hold garbage, as callers leave them.
#define ARGS(NAME, var)              \
  NAME##_Args var;                   \
  memset(&(var), 0xa5, sizeof(var)); \
  (var).struct_size = sizeof(var);   \
  (var).extension_start = NULL

static const PJRT_Api* api;
static PJRT_Client* client;
static PJRT_Device* device;

static inline void destroy_error(PJRT_Error* error) {
  ARGS(PJRT_Error_Destroy, args);
  args.error = error;
  api->PJRT_Error_Destroy(&args);
}

static inline const char* text_of(const PJRT_Error* error) {
  ARGS(PJRT_Error_Message, args);
  args.error = (PJRT_Error*)(uintptr_t)error;
  api->PJRT_Error_Message(&args);
  return args.message;
}

// |error| must be none; its sentence is printed if it is one.
#define assert_fine(error) assert_fine_((error), __FILE__, __LINE__)
static inline void assert_fine_(PJRT_Error* error, const char* file, int line) {
  if (!error) return;
  print_error("expected no error, got '%s'\n", text_of(error));
  destroy_error(error);
  _fail(file, line);
}

// |error| must be of |wanted| and its sentence contain |part|. It is destroyed.
#define assert_fails(error, wanted, part) \
  assert_fails_((error), PJRT_Error_Code_##wanted, (part), __FILE__, __LINE__)
static inline void assert_fails_(PJRT_Error* error, PJRT_Error_Code wanted,
                                 const char* part, const char* file, int line) {
  ARGS(PJRT_Error_GetCode, args);
  args.error = error;
  assert_null(api->PJRT_Error_GetCode(&args));
  bool good = error && args.code == wanted && strstr(text_of(error), part);
  if (!good) {
    print_error("expected error %d with '%s', got %d: '%s'\n", (int)wanted,
                part, error ? (int)args.code : 0,
                error ? text_of(error) : "none");
  }
  if (error) destroy_error(error);
  if (!good) _fail(file, line);
}

static inline void open_plugin(void) {
  char path[4096];
  const char* folder = getenv("PESTLE_BUILD_DIR");
  snprintf(path, sizeof(path), "%s/pjrt_plugin_pestle.so",
           folder ? folder : ".");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  const PJRT_Api* (*get)(void);
  *(void**)&get = dlsym(library, "GetPjrtApi");
  assert_non_null(get);
  api = get();
}

static inline PJRT_Error* create_client(const PJRT_NamedValue* options,
                                        size_t count,
                                        PJRT_Client** out_client) {
  ARGS(PJRT_Client_Create, args);
  args.create_options = options;
  args.num_options = count;
  PJRT_Error* error = api->PJRT_Client_Create(&args);
  *out_client = error ? NULL : args.client;
  return error;
}

static inline PJRT_NamedValue string_option(const char* name,
                                            const char* value) {
  return (PJRT_NamedValue){.struct_size = sizeof(PJRT_NamedValue),
                           .name = name,
                           .name_size = strlen(name),
                           .type = PJRT_NamedValue_kString,
                           .string_value = value,
                           .value_size = strlen(value)};
}

static inline PJRT_NamedValue bool_option(const char* name, bool value) {
  return (PJRT_NamedValue){.struct_size = sizeof(PJRT_NamedValue),
                           .name = name,
                           .name_size = strlen(name),
                           .type = PJRT_NamedValue_kBool,
                           .bool_value = value,
                           .value_size = 1};
}

// Makes |client| and |device|, a CPU whatever the machine has beside it.
static inline void start(bool is_inline) {
  const PJRT_NamedValue options[] = {string_option("device", "cpu"),
                                     bool_option("inline", is_inline)};
  assert_fine(create_client(options, 2, &client));
  ARGS(PJRT_Client_AddressableDevices, args);
  args.client = client;
  assert_fine(api->PJRT_Client_AddressableDevices(&args));
  assert_int_equal(args.num_addressable_devices, 1);
  device = args.addressable_devices[0];
}

static inline void stop(void) {
  ARGS(PJRT_Client_Destroy, args);
  args.client = client;
  assert_fine(api->PJRT_Client_Destroy(&args));
  client = NULL;
}

// --- Events ---

static inline void destroy_event(PJRT_Event* event) {
  ARGS(PJRT_Event_Destroy, args);
  args.event = event;
  assert_fine(api->PJRT_Event_Destroy(&args));
}

static inline bool is_ready(PJRT_Event* event) {
  ARGS(PJRT_Event_IsReady, args);
  args.event = event;
  assert_fine(api->PJRT_Event_IsReady(&args));
  return args.is_ready;
}

// Waits for |event| and destroys it.
static inline PJRT_Error* await(PJRT_Event* event) {
  ARGS(PJRT_Event_Await, args);
  args.event = event;
  PJRT_Error* error = api->PJRT_Event_Await(&args);
  assert_true(is_ready(event));
  destroy_event(event);
  return error;
}

// --- Buffers ---

static inline PJRT_Buffer* put_as(const void* data, PJRT_Buffer_Type type,
                                  const int64_t* dims, size_t rank,
                                  PJRT_HostBufferSemantics semantics,
                                  PJRT_Event** out_done) {
  ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = client;
  args.data = data;
  args.type = type;
  args.dims = dims;
  args.num_dims = rank;
  args.byte_strides = NULL;
  args.num_byte_strides = 0;
  args.host_buffer_semantics = semantics;
  args.device = device;
  args.memory = NULL;
  args.device_layout = NULL;
  assert_fine(api->PJRT_Client_BufferFromHostBuffer(&args));
  *out_done = args.done_with_host_buffer;
  return args.buffer;
}

// A copy of |count| floats as a vector.
static inline PJRT_Buffer* put(const float* data, int64_t count) {
  PJRT_Event* done;
  PJRT_Buffer* buffer =
      put_as(data, PJRT_Buffer_Type_F32, &count, 1,
             PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, &done);
  assert_fine(await(done));
  return buffer;
}

static inline PJRT_Error* get_raw(PJRT_Buffer* buffer, void* data,
                                  size_t size) {
  ARGS(PJRT_Buffer_ToHostBuffer, args);
  args.src = buffer;
  args.host_layout = NULL;
  args.dst = data;
  args.dst_size = size;
  PJRT_Error* error = api->PJRT_Buffer_ToHostBuffer(&args);
  return error ? error : await(args.event);
}

static inline void get(PJRT_Buffer* buffer, float* data, size_t count) {
  assert_fine(get_raw(buffer, data, count * sizeof(float)));
}

static inline bool is_deleted(PJRT_Buffer* buffer) {
  ARGS(PJRT_Buffer_IsDeleted, args);
  args.buffer = buffer;
  assert_fine(api->PJRT_Buffer_IsDeleted(&args));
  return args.is_deleted;
}

static inline void delete_buffer(PJRT_Buffer* buffer) {
  ARGS(PJRT_Buffer_Delete, args);
  args.buffer = buffer;
  assert_fine(api->PJRT_Buffer_Delete(&args));
}

static inline void destroy_buffer(PJRT_Buffer* buffer) {
  ARGS(PJRT_Buffer_Destroy, args);
  args.buffer = buffer;
  assert_fine(api->PJRT_Buffer_Destroy(&args));
}

static inline void* address_of(PJRT_Buffer* buffer) {
  ARGS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer, args);
  args.buffer = buffer;
  assert_fine(api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&args));
  return args.device_memory_ptr;
}

static inline void pin(PJRT_Buffer* buffer) {
  ARGS(PJRT_Buffer_IncreaseExternalReferenceCount, args);
  args.buffer = buffer;
  assert_fine(api->PJRT_Buffer_IncreaseExternalReferenceCount(&args));
}

static inline PJRT_Error* try_unpin(PJRT_Buffer* buffer) {
  ARGS(PJRT_Buffer_DecreaseExternalReferenceCount, args);
  args.buffer = buffer;
  return api->PJRT_Buffer_DecreaseExternalReferenceCount(&args);
}

// --- Programs ---

static inline PJRT_Error* try_compile_with(
    const char* text, const char* options, size_t options_size,
    PJRT_LoadedExecutable** out_executable) {
  PJRT_Program program = {.struct_size = sizeof(program),
                          .code = (char*)(uintptr_t)text,
                          .code_size = strlen(text),
                          .format = "mlir",
                          .format_size = 4};
  ARGS(PJRT_Client_Compile, args);
  args.client = client;
  args.program = &program;
  args.compile_options = options;
  args.compile_options_size = options_size;
  PJRT_Error* error = api->PJRT_Client_Compile(&args);
  *out_executable = error ? NULL : args.executable;
  return error;
}

static inline PJRT_Error* try_compile(const char* text,
                                      PJRT_LoadedExecutable** out_executable) {
  return try_compile_with(text, "", 0, out_executable);
}

static inline PJRT_LoadedExecutable* compile(const char* text) {
  PJRT_LoadedExecutable* executable;
  assert_fine(try_compile(text, &executable));
  return executable;
}

static inline void destroy_loaded(PJRT_LoadedExecutable* executable) {
  ARGS(PJRT_LoadedExecutable_Destroy, args);
  args.executable = executable;
  assert_fine(api->PJRT_LoadedExecutable_Destroy(&args));
}

static inline PJRT_Executable* executable_of(PJRT_LoadedExecutable* loaded) {
  ARGS(PJRT_LoadedExecutable_GetExecutable, args);
  args.loaded_executable = loaded;
  assert_fine(api->PJRT_LoadedExecutable_GetExecutable(&args));
  return args.executable;
}

static inline void destroy_executable(PJRT_Executable* executable) {
  ARGS(PJRT_Executable_Destroy, args);
  args.executable = executable;
  assert_fine(api->PJRT_Executable_Destroy(&args));
}

// Runs once; |out_done| may be NULL. |kept| (-1: none) may not be donated.
static inline PJRT_Error* try_execute(PJRT_LoadedExecutable* executable,
                                      PJRT_Buffer* const* inputs, size_t count,
                                      int64_t kept, PJRT_Buffer** outputs,
                                      PJRT_Event** out_done) {
  PJRT_ExecuteOptions options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.non_donatable_input_indices = &kept;
  options.num_non_donatable_input_indices = kept >= 0;
  ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = executable;
  args.options = &options;
  args.argument_lists = &inputs;
  args.num_devices = 1;
  args.num_args = count;
  args.output_lists = &outputs;
  args.device_complete_events = out_done;
  args.execute_device = NULL;
  return api->PJRT_LoadedExecutable_Execute(&args);
}

static inline void execute(PJRT_LoadedExecutable* executable,
                           PJRT_Buffer* const* inputs, size_t count,
                           PJRT_Buffer** outputs) {
  PJRT_Event* done;
  assert_fine(try_execute(executable, inputs, count, -1, outputs, &done));
  destroy_event(done);
}

#endif  // PESTLE_TESTS_PJRT_DRIVER_H_
