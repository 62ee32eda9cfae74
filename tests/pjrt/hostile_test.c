// SPDX-License-Identifier: Apache-2.0
// Callers that break the contract as far as a function can tell: every slot
// without arguments, with structs that are too short, and without handles. Each
// gives an error, or does nothing where it may not fail; none ends the process.
#include "driver.h"

// Slots that take no handle.
static bool needs_no_handle(const char* slot) {
  static const char* const names[] = {
      "PJRT_Error_GetCode",         "PJRT_Error_ForEachPayload",
      "PJRT_Plugin_Initialize",     "PJRT_Plugin_Attributes",
      "PJRT_Event_Create",          "PJRT_Client_Create",
      "PJRT_ExecuteContext_Create", "PJRT_TopologyDescription_Create"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (!strcmp(slot, names[i])) return true;
  }
  return false;
}

static bool may_not_fail(const char* slot) {
  return !strncmp(slot, "PJRT_Error_", 11);
}

static void expect_error(const char* slot, PJRT_Error* error) {
  if (may_not_fail(slot)) {
    assert_null(error);
    return;
  }
  if (!error) fail_msg("%s gave no error", slot);
  if (!strstr(text_of(error), slot) &&
      !strstr(text_of(error), "does not implement")) {
    fail_msg("%s says '%s'", slot, text_of(error));
  }
  destroy_error(error);
}

// A struct of garbage of |size| bytes in a block of that size, so that whatever
// lies behind is seen by a sanitizer.
static void* garbage(size_t size, size_t stated) {
  void* block = malloc(size);
  memset(block, 0xa5, size);
  memcpy(block, &stated, sizeof(stated));
  return block;
}

// The two slots that return nothing, and all others.
static PJRT_Error* call_destroy(void* args) {
  api->PJRT_Error_Destroy(args);
  return NULL;
}
static PJRT_Error* call_message(void* args) {
  api->PJRT_Error_Message(args);
  return NULL;
}
typedef PJRT_Error* (*slot_fn_t)(void* args);
// Each slot's argument is a pointer to a struct of its own, which the ABI
// passes as it passes void*; Clang's sanitizer of functions tells them apart.
#if defined(__clang__)
#define ANY_FUNCTION __attribute__((no_sanitize("function")))
#else
#define ANY_FUNCTION
#endif
ANY_FUNCTION static PJRT_Error* call_slot(size_t offset, void* args) {
  slot_fn_t fn;
  if (offset == offsetof(PJRT_Api, PJRT_Error_Destroy))
    return call_destroy(args);
  if (offset == offsetof(PJRT_Api, PJRT_Error_Message))
    return call_message(args);
  // All others take a pointer to a struct and return an error.
  memcpy(&fn, (const char*)api + offset, sizeof(fn));
  return fn(args);
}

typedef struct slot_t {
  const char* name;
  size_t offset;
  size_t args_size;
} slot_t;

#define ROW(NAME, RETURNS) \
  {#NAME, offsetof(PJRT_Api, NAME), sizeof(NAME##_Args)},
static const slot_t slots[] = {PJRT_SLOTS(ROW)};
enum { SLOTS = sizeof(slots) / sizeof(slots[0]) };

static void table_is_full(void** state) {
  (void)state;
  assert_int_equal(SLOTS, 138);
  assert_int_equal(api->struct_size, 1144);
  for (size_t i = 0; i < SLOTS; ++i) {
    void* fn;
    memcpy(&fn, (const char*)api + slots[i].offset, sizeof(fn));
    if (!fn) fail_msg("%s is NULL", slots[i].name);
  }
}

static void no_arguments(void** state) {
  (void)state;
  for (size_t i = 0; i < SLOTS; ++i)
    expect_error(slots[i].name, call_slot(slots[i].offset, NULL));
}

// Only the head is there, and says so.
static void short_structs(void** state) {
  (void)state;
  for (size_t i = 0; i < SLOTS; ++i) {
    if (!strcmp(slots[i].name, "PJRT_Plugin_Initialize")) continue;
    for (size_t size = 8; size <= 16; size += 8) {
      void* args = garbage(size, size);
      expect_error(slots[i].name, call_slot(slots[i].offset, args));
      free(args);
    }
  }
}

static void no_handles(void** state) {
  (void)state;
  for (size_t i = 0; i < SLOTS; ++i) {
    if (needs_no_handle(slots[i].name)) continue;
    void* args = calloc(1, slots[i].args_size);
    memcpy(args, &slots[i].args_size, sizeof(size_t));
    expect_error(slots[i].name, call_slot(slots[i].offset, args));
    free(args);
  }
}

// The same of the extensions, whose functions are rows of |count|.
static void extension_refuses(const void* extension, const slot_t* rows,
                              size_t count) {
  for (size_t i = 0; i < count; ++i) {
    slot_fn_t fn;
    memcpy(&fn, (const char*)extension + rows[i].offset, sizeof(fn));
    expect_error(rows[i].name, fn(NULL));
    void* args = garbage(8, 8);
    expect_error(rows[i].name, fn(args));
    free(args);
    args = calloc(1, rows[i].args_size);
    memcpy(args, &rows[i].args_size, sizeof(size_t));
    expect_error(rows[i].name, fn(args));
    free(args);
  }
}

static const void* extension_of(PJRT_Extension_Type type) {
  const PJRT_Extension_Base* e = api->extension_start;
  while (e && e->type != type)
    e = e->next;
  assert_non_null(e);
  return e;
}

static void extensions_refuse_too(void** state) {
  (void)state;
#define LAYOUTS_ROW(NAME) \
  {#NAME, offsetof(PJRT_Layouts_Extension, NAME), sizeof(NAME##_Args)},
#define FFI_ROW(NAME, FIELD) \
  {#NAME, offsetof(PJRT_FFI_Extension, FIELD), sizeof(NAME##_Args)},
  const slot_t layouts[] = {PJRT_LAYOUTS_SLOTS(LAYOUTS_ROW)};
  const slot_t ffi[] = {PJRT_FFI_SLOTS(FFI_ROW)};
  extension_refuses(extension_of(PJRT_Extension_Type_Layouts), layouts,
                    sizeof(layouts) / sizeof(layouts[0]));
  extension_refuses(extension_of(PJRT_Extension_Type_FFI), ffi,
                    sizeof(ffi) / sizeof(ffi[0]));
}

// A caller from the future: more bytes than this plugin knows.
static void longer_structs(void** state) {
  (void)state;
  PJRT_Client_PlatformName_Args args[2];
  memset(args, 0xa5, sizeof(args));
  args[0].struct_size = sizeof(args);
  args[0].client = client;
  assert_fine(api->PJRT_Client_PlatformName(&args[0]));
  assert_memory_equal(args[0].platform_name, "pestle", 6);
}

// An old caller's out struct is not written behind its end.
static void older_structs(void** state) {
  size_t size = offsetof(PJRT_Executable_GetCompiledMemoryStats_Args,
                         total_size_in_bytes);
  (void)state;
  PJRT_LoadedExecutable* loaded = compile(
      "module { func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> { "
      "%0 = stablehlo.add %a, %a : tensor<3xf32> return %0 : tensor<3xf32> } "
      "}");
  PJRT_Executable* executable = executable_of(loaded);
  ARGS(PJRT_Executable_GetCompiledMemoryStats, args);
  args.struct_size = size;
  args.executable = executable;
  assert_fine(api->PJRT_Executable_GetCompiledMemoryStats(&args));
  assert_int_equal(args.output_size_in_bytes, 12);
  assert_int_equal(args.total_size_in_bytes, (int64_t)0xa5a5a5a5a5a5a5a5);
  destroy_executable(executable);
  destroy_loaded(loaded);
}

static void impossible_buffers(void** state) {
  int64_t dims[20] = {INT64_MAX, INT64_MAX};
  float x = 0;
  (void)state;
  ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = client;
  args.data = &x;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = 2;
  args.byte_strides = NULL;
  args.num_byte_strides = 0;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  args.device = NULL;
  args.memory = NULL;
  args.device_layout = NULL;
  assert_fails(api->PJRT_Client_BufferFromHostBuffer(&args), INVALID_ARGUMENT,
               "2^63");
  dims[0] = -1;
  assert_fails(api->PJRT_Client_BufferFromHostBuffer(&args), INVALID_ARGUMENT,
               "extent -1");
  args.num_dims = 20;
  assert_fails(api->PJRT_Client_BufferFromHostBuffer(&args), UNIMPLEMENTED,
               "20 axes");
  args.num_dims = 0;
  args.type = (PJRT_Buffer_Type)77;
  assert_fails(api->PJRT_Client_BufferFromHostBuffer(&args), UNIMPLEMENTED,
               "PJRT_Buffer_Type 77");
  args.type = PJRT_Buffer_Type_F32;
  args.data = NULL;
  assert_fails(api->PJRT_Client_BufferFromHostBuffer(&args), INVALID_ARGUMENT,
               "NULL");
}

static int begin(void** state) {
  (void)state;
  open_plugin();
  start(true);
  return 0;
}

static int end(void** state) {
  (void)state;
  stop();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table_is_full),
      cmocka_unit_test(no_arguments),
      cmocka_unit_test(short_structs),
      cmocka_unit_test(no_handles),
      cmocka_unit_test(longer_structs),
      cmocka_unit_test(older_structs),
      cmocka_unit_test(impossible_buffers),
      cmocka_unit_test(extensions_refuse_too),
  };
  return cmocka_run_group_tests_name("hostile", tests, begin, end);
}
