// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "pjrt/slots.h"
#include "pjrt/spread.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

// --- The table ---

typedef struct type_row_t {
  const char* name;
  int64_t id;
  void (*deleter)(void*);
  struct type_row_t* next;
} type_row_t;

// The interface has no client to keep them: they belong to the process, as the
// functions do that they name.
static _Atomic(pestle_ffi_row_t*) first_row;
static _Atomic(type_row_t*) first_type;
static atomic_llong last_type;

static char* copy_name(const char* name, size_t size) {
  char* text = pestle_alloc(pestle_allocator_system(), size + 1);
  if (!text) return NULL;
  memcpy(text, name, size);
  text[size] = 0;
  return text;
}

static pestle_ffi_row_t* find_row(pestle_ffi_row_t* row, const char* name,
                                  size_t size) {
  while (row && (strlen(row->name) != size || memcmp(row->name, name, size)))
    row = row->next;
  return row;
}

// The row of |name|, made if there is none; NULL when out of memory.
static pestle_ffi_row_t* row_of(const char* name, size_t size) {
  pestle_ffi_row_t* first = atomic_load(&first_row);
  pestle_ffi_row_t* row = find_row(first, name, size);
  if (row) return row;
  row = pestle_alloc_zero(pestle_allocator_system(), sizeof(*row));
  if (!row) return NULL;
  row->name = copy_name(name, size);
  row->next = first;
  while (row->name && !atomic_compare_exchange_weak(&first_row, &first, row)) {
    pestle_ffi_row_t* other = find_row(first, name, size);
    if (other) {
      pestle_dealloc(pestle_allocator_system(), (void*)(uintptr_t)row->name,
                     size + 1);
      pestle_dealloc(pestle_allocator_system(), row, sizeof(*row));
      return other;
    }
    row->next = first;
  }
  if (row->name) return row;
  pestle_dealloc(pestle_allocator_system(), row, sizeof(*row));
  return NULL;
}

// Asks the function for the version of the interface that it was built with.
static PJRT_Error* check_version(const char* name, size_t size,
                                 XLA_FFI_Handler handler) {
  XLA_FFI_Metadata metadata = {
      .struct_size = sizeof(metadata),
      .api_version = {.struct_size = sizeof(metadata.api_version)}};
  XLA_FFI_Metadata_Extension extension = {
      .extension_base = {.struct_size = sizeof(extension),
                         .type = XLA_FFI_Extension_Metadata},
      .metadata = &metadata};
  XLA_FFI_CallFrame frame = {.struct_size = offsetof(XLA_FFI_CallFrame, future),
                             .extension_start = &extension.extension_base,
                             .api = &pestle_ffi_api,
                             .stage = XLA_FFI_ExecutionStage_EXECUTE};
  char text[256];
  snprintf(text, sizeof(text), "%.*s", (int)(size < 200 ? size : 200), name);
  pestle_status_t status = pestle_ffi_status_of(handler(&frame), text);
  if (status) return pestle_pjrt_error_of(status);
  if (metadata.api_version.major_version == XLA_FFI_API_MAJOR &&
      metadata.api_version.minor_version <= XLA_FFI_API_MINOR) {
    return NULL;
  }
  return pestle_pjrt_error(
      PJRT_Error_Code_UNIMPLEMENTED,
      "foreign function %s was built for version %d.%d of XLA's interface; "
      "Pestle has %d.%d: build it with the headers of the JAX that is tested",
      text, metadata.api_version.major_version,
      metadata.api_version.minor_version, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
}

PJRT_Error* pestle_ffi_register(const char* name, size_t size,
                                XLA_FFI_ExecutionStage stage,
                                XLA_FFI_Handler handler) {
  enum { LONGEST = 255 };
  if (!size || size > LONGEST || memchr(name, 0, size))
    return INVALID("the name of a foreign function has 1 to %d bytes", LONGEST);
  if ((unsigned)stage >= XLA_FFI_STAGES)
    return INVALID("foreign function %.*s has no stage %d", (int)size, name,
                   (int)stage);
  PJRT_TRY(check_version(name, size, handler));
  pestle_ffi_row_t* row = row_of(name, size);
  if (!row) return pestle_pjrt_out_of_memory();
  XLA_FFI_Handler before = NULL;
  if (atomic_compare_exchange_strong(&row->stages[stage], &before, handler) ||
      before == handler) {
    return NULL;
  }
  return pestle_pjrt_error(PJRT_Error_Code_ALREADY_EXISTS,
                           "foreign function %s is registered already; give "
                           "the other one another name",
                           row->name);
}

// --- Types ---

static type_row_t* find_type(type_row_t* t, const char* name, size_t size) {
  while (t && (strlen(t->name) != size || memcmp(t->name, name, size)))
    t = t->next;
  return t;
}

static PJRT_Error* number_of_type(const type_row_t* t, int64_t* type_id) {
  if (*type_id && *type_id != t->id)
    return INVALID("type %s is registered under another number", t->name);
  *type_id = t->id;
  return NULL;
}

PJRT_Error* pestle_ffi_register_type(const char* name, size_t size,
                                     int64_t* type_id, void (*deleter)(void*)) {
  type_row_t* first = atomic_load(&first_type);
  const type_row_t* known = find_type(first, name, size);
  if (known) return number_of_type(known, type_id);
  type_row_t* row = pestle_alloc_zero(pestle_allocator_system(), sizeof(*row));
  if (!row) return pestle_pjrt_out_of_memory();
  row->name = copy_name(name, size);
  if (!row->name) {
    pestle_dealloc(pestle_allocator_system(), row, sizeof(*row));
    return pestle_pjrt_out_of_memory();
  }
  // Numbers that callers bring are small: ours begin behind them.
  enum { FIRST = 1 << 20 };
  row->id = *type_id ? *type_id : FIRST + atomic_fetch_add(&last_type, 1);
  row->deleter = deleter;
  row->next = first;
  while (!atomic_compare_exchange_weak(&first_type, &first, row)) {
    known = find_type(first, name, size);  // by another thread meanwhile
    if (known) {
      pestle_dealloc(pestle_allocator_system(), (void*)(uintptr_t)row->name,
                     size + 1);
      pestle_dealloc(pestle_allocator_system(), row, sizeof(*row));
      return number_of_type(known, type_id);
    }
    row->next = first;
  }
  *type_id = row->id;
  return NULL;
}

void (*pestle_ffi_deleter(int64_t type_id))(void*) {
  for (type_row_t* t = atomic_load(&first_type); t; t = t->next) {
    if (t->id == type_id) return t->deleter;
  }
  return NULL;
}

// --- What a client knows ---

static bool is_bound(PJRT_Client* client, const pestle_ffi_row_t* row) {
  for (pestle_ffi_binding_t* b = client->ffi; b; b = b->next) {
    if (b->row == row) return true;
  }
  return false;
}

static PJRT_Error* bind_row(PJRT_Client* client, pestle_ffi_row_t* row) {
  pestle_ffi_binding_t* b =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*b));
  if (!b) return pestle_pjrt_out_of_memory();
  b->row = row;
  b->client = client;
  pestle_mutex_init(&b->mutex);
  pestle_custom_call_options_t options = {
      .struct_size = sizeof(options), .device_memory = !client->device.is_cpu};
  // A name that Pestle has a meaning for keeps it.
  pestle_status_t status = pestle_context_register_custom_call(
      client->context, row->name, pestle_ffi_call, b, &options);
  if (status) {
    pestle_context_log(client->context, PESTLE_LOG_WARN,
                       "foreign function %s is not used: %s", row->name,
                       pestle_status_message(status));
    pestle_status_release(status);
  }
  b->next = client->ffi;
  client->ffi = b;
  return NULL;
}

PJRT_Error* pestle_ffi_bind(PJRT_Client* client) {
  pestle_ffi_row_t* first = atomic_load(&first_row);
  PJRT_Error* error = NULL;
  if (!first) return NULL;
  pestle_mutex_lock(&client->ffi_mutex);
  for (pestle_ffi_row_t* row = first; row && !error; row = row->next) {
    if (!is_bound(client, row)) error = bind_row(client, row);
  }
  pestle_mutex_unlock(&client->ffi_mutex);
  return error;
}

static void free_instance(pestle_ffi_instance_t* instance) {
  void (*deleter)(void*) = pestle_ffi_deleter(instance->state_type);
  if (instance->state && deleter) deleter(instance->state);
  pestle_arena_deinit(&instance->arena);
  pestle_dealloc(pestle_allocator_system(), instance, sizeof(*instance));
}

void pestle_ffi_unbind(PJRT_Client* client) {
  while (client->ffi) {
    pestle_ffi_binding_t* b = client->ffi;
    client->ffi = b->next;
    while (b->instances) {
      pestle_ffi_instance_t* instance = b->instances;
      b->instances = instance->next;
      free_instance(instance);
    }
    pestle_mutex_deinit(&b->mutex);
    pestle_dealloc(pestle_allocator_system(), b, sizeof(*b));
  }
}

// --- The extension ---

static PJRT_Error* pestle_PJRT_FFI_Type_Register(
    PJRT_FFI_Type_Register_Args* args) {
  PJRT_REQUIRE(PJRT_FFI_Type_Register, type_name, type_info);
  return pestle_ffi_register_type(
      args->type_name, args->type_name_size, &args->type_id,
      args->type_info ? args->type_info->deleter : NULL);
}

static PJRT_Error* pestle_PJRT_FFI_UserData_Add(
    PJRT_FFI_UserData_Add_Args* args) {
  PJRT_REQUIRE(PJRT_FFI_UserData_Add, context, user_data);
  return pestle_pjrt_error(
      PJRT_Error_Code_UNIMPLEMENTED,
      "PJRT_FFI_UserData_Add: executions hand no data on to foreign functions; "
      "give it as an attribute, or make it a state of stage INSTANTIATE");
}

static PJRT_Error* pestle_PJRT_FFI_Register_Handler(
    PJRT_FFI_Register_Handler_Args* args) {
  PJRT_TRY(pestle_pjrt_check(args,
                             PJRT_END_OF(PJRT_FFI_Register_Handler, traits),
                             "PJRT_FFI_Register_Handler"));
  if (!args->target_name)
    return pestle_pjrt_no_handle("PJRT_FFI_Register_Handler", "target_name");
  if (!args->handler)
    return pestle_pjrt_no_handle("PJRT_FFI_Register_Handler", "handler");
  XLA_FFI_Handler handler;
  memcpy(&handler, &args->handler, sizeof(handler));
  return pestle_ffi_register(args->target_name, args->target_name_size,
                             XLA_FFI_ExecutionStage_EXECUTE, handler);
}

#define FFI_SLOT_(NAME, FIELD) .FIELD = pestle_##NAME,
const PJRT_FFI_Extension pestle_pjrt_ffi = {
    .base = {.struct_size = sizeof(PJRT_FFI_Extension),
             .type = PJRT_Extension_Type_FFI,
             .next = (PJRT_Extension_Base*)(uintptr_t)&pestle_pjrt_shardings},
    PJRT_FFI_SLOTS(FFI_SLOT_)};

// --- The Python side ---

// A sentence, to be freed by nobody, or NULL. Called with the interpreter lock.
PESTLE_API int pestle_pjrt_ffi_register(const char* name, int stage,
                                        void* handler, char* out_message,
                                        size_t capacity);
int pestle_pjrt_ffi_register(const char* name, int stage, void* handler,
                             char* out_message, size_t capacity) {
  XLA_FFI_Handler fn;
  memcpy(&fn, &handler, sizeof(fn));
  PJRT_Error* error =
      name && fn ? pestle_ffi_register(name, strlen(name),
                                       (XLA_FFI_ExecutionStage)stage, fn)
                 : INVALID("a foreign function is NULL or has no name");
  if (!error) return 0;
  if (capacity)
    snprintf(out_message, capacity, "%s", pestle_pjrt_error_sentence(error));
  pestle_pjrt_error_free(error);
  return 1;
}

PESTLE_API int64_t pestle_pjrt_ffi_register_type(const char* name,
                                                 int64_t type_id,
                                                 void* deleter);
int64_t pestle_pjrt_ffi_register_type(const char* name, int64_t type_id,
                                      void* deleter) {
  void (*fn)(void*);
  memcpy(&fn, &deleter, sizeof(fn));
  PJRT_Error* error =
      pestle_ffi_register_type(name, strlen(name), &type_id, fn);
  pestle_pjrt_error_free(error);
  return error ? 0 : type_id;
}
