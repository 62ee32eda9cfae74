// SPDX-License-Identifier: Apache-2.0
#include "pjrt/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pjrt/slots.h"

// What a handle of an error is. |size| bytes of |text| and a terminator.
typedef struct error_t {
  PJRT_Error head;
  PJRT_Error_Code code;
  size_t size;
  const char* text;
} error_t;

static void destroy_error(PJRT_Error* error);
static void get_message(const PJRT_Error* error, const char** message,
                        size_t* message_size);
static PJRT_Error_Code get_code(const PJRT_Error* error);
static void visit_payloads(const PJRT_Error* error,
                           PJRT_Error_PayloadVisitor visitor, void* user_arg);

static const PJRT_Error_FunctionTable error_functions = {
    .struct_size = sizeof(PJRT_Error_FunctionTable),
    .instance_size = sizeof(error_t),
    .destroy = destroy_error,
    .message = get_message,
    .get_code = get_code,
    .for_each_payload = visit_payloads,
};

#define NO_MEMORY "out of host memory"
static const error_t no_memory = {
    .head = {&error_functions},
    .code = PJRT_Error_Code_RESOURCE_EXHAUSTED,
    .size = sizeof(NO_MEMORY) - 1,
    .text = NO_MEMORY,
};

// The framework only hands it back: nothing ever writes to it.
PJRT_Error* pestle_pjrt_out_of_memory(void) {
  return (PJRT_Error*)(uintptr_t)&no_memory;
}

static const error_t* of(const PJRT_Error* error) {
  return (const error_t*)(const void*)error;
}

PJRT_Error* pestle_pjrt_error_text(PJRT_Error_Code code, const char* text,
                                   size_t size) {
  error_t* error =
      pestle_alloc(pestle_allocator_system(), sizeof(error_t) + size + 1);
  if (!error) return pestle_pjrt_out_of_memory();
  char* copy = (char*)(error + 1);
  if (size) memcpy(copy, text, size);
  copy[size] = 0;
  *error = (error_t){{&error_functions}, code, size, copy};
  return &error->head;
}

static void destroy_error(PJRT_Error* error) {
  if (!error || of(error) == &no_memory) return;
  pestle_dealloc(pestle_allocator_system(), error,
                 sizeof(error_t) + of(error)->size + 1);
}

void pestle_pjrt_error_free(PJRT_Error* error) {
  destroy_error(error);
}

PJRT_Error* pestle_pjrt_error_copy(const PJRT_Error* error) {
  if (!error) return NULL;
  return pestle_pjrt_error_text(of(error)->code, of(error)->text,
                                of(error)->size);
}

const char* pestle_pjrt_error_sentence(const PJRT_Error* error) {
  return error ? of(error)->text : "ok";
}

PJRT_Error* pestle_pjrt_error(PJRT_Error_Code code, const char* format, ...) {
  pestle_strbuf_t text;
  va_list args;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  va_start(args, format);
  pestle_strbuf_appendf_v(&text, format, args);
  va_end(args);
  PJRT_Error* error = text.failed
                          ? pestle_pjrt_out_of_memory()
                          : pestle_pjrt_error_text(code, text.data, text.size);
  pestle_strbuf_deinit(&text);
  return error;
}

static PJRT_Error_Code code_of(pestle_status_code_t code) {
  switch (code) {
    case PESTLE_STATUS_INVALID_ARGUMENT:
    case PESTLE_STATUS_MALFORMED:
    case PESTLE_STATUS_WRONG_TYPE:
      return PJRT_Error_Code_INVALID_ARGUMENT;
    case PESTLE_STATUS_OUT_OF_RANGE:
      return PJRT_Error_Code_OUT_OF_RANGE;
    case PESTLE_STATUS_UNSUPPORTED:
      return PJRT_Error_Code_UNIMPLEMENTED;
    case PESTLE_STATUS_NOT_FOUND:
      return PJRT_Error_Code_NOT_FOUND;
    case PESTLE_STATUS_OUT_OF_MEMORY:
    case PESTLE_STATUS_RESOURCE_EXHAUSTED:
      return PJRT_Error_Code_RESOURCE_EXHAUSTED;
    case PESTLE_STATUS_INCOMPATIBLE:
      return PJRT_Error_Code_FAILED_PRECONDITION;
    case PESTLE_STATUS_IO:
    case PESTLE_STATUS_UNAVAILABLE:
      return PJRT_Error_Code_UNAVAILABLE;
    case PESTLE_STATUS_CANCELLED:
      return PJRT_Error_Code_CANCELLED;
    case PESTLE_STATUS_DEADLINE_EXCEEDED:
      return PJRT_Error_Code_DEADLINE_EXCEEDED;
    case PESTLE_STATUS_OK:
    case PESTLE_STATUS_INTERNAL:
    case PESTLE_STATUS_CODE_COUNT:
      break;
  }
  return PJRT_Error_Code_INTERNAL;
}

PJRT_Error* pestle_pjrt_error_of_borrowed(pestle_status_t status) {
  pestle_strbuf_t text;
  if (!status) return NULL;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_strbuf_append_c(&text, pestle_status_message(status));
  for (size_t i = 0; pestle_status_note(status, i); ++i) {
    pestle_strbuf_append_c(&text, "; ");
    pestle_strbuf_append_c(&text, pestle_status_note(status, i));
  }
  PJRT_Error* error =
      text.failed ? pestle_pjrt_out_of_memory()
                  : pestle_pjrt_error_text(code_of(pestle_status_code(status)),
                                           text.data, text.size);
  pestle_strbuf_deinit(&text);
  return error;
}

PJRT_Error* pestle_pjrt_error_of(pestle_status_t status) {
  PJRT_Error* error = pestle_pjrt_error_of_borrowed(status);
  pestle_status_release(status);
  return error;
}

// --- What callers get wrong ---

PJRT_Error* pestle_pjrt_check(const void* args, size_t needed,
                              const char* slot) {
  size_t given;
  if (!args) {
    return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "%s was called without arguments", slot);
  }
  memcpy(&given, args, sizeof(given));
  if (given >= needed) return NULL;
  return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                           "%s was called with %zu bytes of arguments; %zu are "
                           "needed: the framework is older than this plugin "
                           "supports",
                           slot, given, needed);
}

PJRT_Error* pestle_pjrt_no_handle(const char* slot, const char* handle) {
  return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                           "%s was called with %s = NULL", slot, handle);
}

// --- The table of functions that an error carries ---

static void get_message(const PJRT_Error* error, const char** message,
                        size_t* message_size) {
  *message = of(error)->text;
  *message_size = of(error)->size;
}

static PJRT_Error_Code get_code(const PJRT_Error* error) {
  return of(error)->code;
}

static void visit_payloads(const PJRT_Error* error,
                           PJRT_Error_PayloadVisitor visitor, void* user_arg) {
  (void)error, (void)visitor, (void)user_arg;
}

// --- Slots. None of them may return an error: the framework would ask for the
// error of that ---

void pestle_PJRT_Error_Destroy(PJRT_Error_Destroy_Args* args) {
  if (args && PJRT_HAS(PJRT_Error_Destroy, error)) destroy_error(args->error);
}

void pestle_PJRT_Error_Message(PJRT_Error_Message_Args* args) {
  if (!args || !PJRT_HAS(PJRT_Error_Message, message_size)) return;
  args->message = "";
  args->message_size = 0;
  if (args->error)
    get_message(args->error, &args->message, &args->message_size);
}

PJRT_Error* pestle_PJRT_Error_GetCode(PJRT_Error_GetCode_Args* args) {
  if (args && PJRT_HAS(PJRT_Error_GetCode, code)) {
    args->code = args->error ? of(args->error)->code : PJRT_Error_Code_OK;
  }
  return NULL;
}

PJRT_Error* pestle_PJRT_Error_ForEachPayload(
    PJRT_Error_ForEachPayload_Args* args) {
  (void)args;
  return NULL;
}
