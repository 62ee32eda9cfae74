// SPDX-License-Identifier: Apache-2.0
// Foreign functions of XLA's interface (jax.ffi): those that were registered for the
// platform are custom calls of each client's context, called with a frame as XLA's own
// backends call them. ffi.c has the table and what a client knows, ffi_call.c the
// call, ffi_api.c what a function may ask during it.
#ifndef PESTLE_PJRT_FFI_H_
#define PESTLE_PJRT_FFI_H_

#include "base/mem.h"
#include "base/thread.h"
#include "pestle/custom_call.h"
#include "pjrt/client.h"
#include "pjrt/ffi_attrs.h"

extern const PJRT_FFI_Extension pestle_pjrt_ffi;
extern const XLA_FFI_Api pestle_ffi_api;

// --- The table of the process ---
//
// The interface registers functions with the library, not with a client: rows are
// added and never taken away, and their order is that of a list's links.

typedef struct pestle_ffi_row_t {
  const char* name;
  _Atomic(XLA_FFI_Handler) stages[XLA_FFI_STAGES];
  atomic_bool takes_nothing;  // no stage but EXECUTE
  struct pestle_ffi_row_t* next;
} pestle_ffi_row_t;

// INVALID_ARGUMENT: another function has the name and stage; UNIMPLEMENTED: it is of
// another version of the interface.
PJRT_Error* pestle_ffi_register(const char* name, size_t size,
                                XLA_FFI_ExecutionStage stage,
                                XLA_FFI_Handler handler);
// Gives |*type_id| a number if it has none. |info| may be NULL.
PJRT_Error* pestle_ffi_register_type(const char* name, size_t size,
                                     int64_t* type_id, void (*deleter)(void*));
// What frees a state of |type_id|; NULL: nothing does.
void (*pestle_ffi_deleter(int64_t type_id))(void*);

// --- What a client knows ---

// Attributes and state of all calls with one dictionary.
typedef struct pestle_ffi_instance_t {
  const char* dictionary;  // in the arena
  pestle_arena_t arena;
  pestle_ffi_attrs_t attrs;
  bool is_ready;  // instantiated
  void* state;
  int64_t state_type;
  struct pestle_ffi_instance_t* next;
} pestle_ffi_instance_t;

typedef struct pestle_ffi_binding_t {
  pestle_ffi_row_t* row;
  PJRT_Client* client;
  pestle_mutex_t mutex;  // of |instances|
  pestle_ffi_instance_t* instances;
  struct pestle_ffi_binding_t* next;
} pestle_ffi_binding_t;

// Makes custom calls of what has been registered since the last time.
PJRT_Error* pestle_ffi_bind(PJRT_Client* client);
void pestle_ffi_unbind(PJRT_Client* client);

// The custom call of |self|, a binding.
pestle_status_t pestle_ffi_call(void* self, const pestle_custom_call_t* call);

// --- During a call ---

typedef struct pestle_ffi_memory_t {
  pestle_buffer_t* buffer;
  void* data;
  struct pestle_ffi_memory_t* next;
} pestle_ffi_memory_t;

struct XLA_FFI_ExecutionContext {
  pestle_ffi_binding_t* binding;
  pestle_ffi_instance_t* instance;
  void* stream;
  int32_t device;
  int64_t run;
  void* states[XLA_FFI_STAGES];  // of PREPARE and INITIALIZE
  int64_t state_types[XLA_FFI_STAGES];
  pestle_mutex_t mutex;  // of |memory|
  pestle_ffi_memory_t* memory;
};

struct XLA_FFI_Error {
  int code;
  char text[];
};

struct XLA_FFI_Future {
  pestle_mutex_t mutex;
  pestle_cond_t cond;
  bool is_set;
  XLA_FFI_Error* error;
};

// The status of |error|, which is taken over; NULL for NULL.
PESTLE_NODISCARD pestle_status_t pestle_ffi_status_of(XLA_FFI_Error* error,
                                                      const char* name);
// Waits for |future| and frees it.
XLA_FFI_Error* pestle_ffi_future_wait(XLA_FFI_Future* future);
void pestle_ffi_context_init(pestle_ffi_binding_t* binding,
                             pestle_ffi_instance_t* instance, void* stream,
                             int32_t device,
                             XLA_FFI_ExecutionContext* out_context);
void pestle_ffi_context_deinit(XLA_FFI_ExecutionContext* context);

#endif  // PESTLE_PJRT_FFI_H_
