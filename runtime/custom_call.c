// SPDX-License-Identifier: Apache-2.0
// The functions that a context has for custom calls. The list only grows, at its
// head and by one exchange, so that who looks needs no lock; nor does a child
// of fork().
#include "pestle/custom_call.h"

#include <string.h>

#include "base/mem.h"
#include "runtime/context.h"
#include "runtime/own_calls.h"

enum { NAME_BYTES = 256, VERSION_BYTES = 64 };

struct pestle_custom_entry_t {
  struct pestle_custom_entry_t* next;
  pestle_custom_call_fn_t function;
  void* user;
  bool device_memory;
  char name[NAME_BYTES];
  char version[VERSION_BYTES];
};

static pestle_custom_entry_t* find(pestle_custom_entry_t* from,
                                   const char* name) {
  while (from && strcmp(from->name, name) != 0)
    from = from->next;
  return from;
}

static pestle_status_t check_texts(const char* name, const char* version) {
  if (!*name || strlen(name) >= NAME_BYTES) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the name of a custom call has 1 to %d bytes, '%.40s' "
                        "has %zu",
                        NAME_BYTES - 1, name, strlen(name));
  }
  if (!strncmp(name, "pestle.", 7)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "custom call '%s' has a name that begins with "
                        "'pestle.', as Pestle's own do; choose another one",
                        name);
  }
  if (strlen(version) < VERSION_BYTES) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the version of custom call '%s' has %zu bytes, more "
                      "than %d",
                      name, strlen(version), VERSION_BYTES - 1);
}

static pestle_status_t taken(const char* name) {
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the context has a custom call '%s' already; choose "
                      "another name",
                      name);
}

// Puts |entry| at the head unless its name is in the list.
static bool push(pestle_context_t* context, pestle_custom_entry_t* entry) {
  pestle_custom_entry_t* head = atomic_load(&context->custom_calls);
  do {
    if (find(head, entry->name)) return false;
    entry->next = head;
  } while (!atomic_compare_exchange_weak(&context->custom_calls, &head, entry));
  return true;
}

pestle_status_t pestle_context_register_custom_call(
    pestle_context_t* context, const char* name,
    pestle_custom_call_fn_t function, void* user,
    const pestle_custom_call_options_t* options) {
  if (!context || !name || !function ||
      (options && options->struct_size < sizeof(size_t))) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_context_register_custom_call needs a context, "
                        "a name, a function, and options, if any, with their "
                        "struct_size set");
  }
  pestle_custom_call_options_t own = {.struct_size = 0};
  if (options) {
    size_t n = options->struct_size;
    memcpy(&own, options, n < sizeof(own) ? n : sizeof(own));
  }
  if (!own.version) own.version = "";
  PESTLE_TRY(check_texts(name, own.version));
  pestle_custom_entry_t* entry =
      pestle_alloc_zero(context->core.allocator, sizeof(*entry));
  if (!entry) return PESTLE_OOM();
  entry->function = function;
  entry->user = user;
  entry->device_memory = own.device_memory;
  memcpy(entry->name, name, strlen(name) + 1);
  memcpy(entry->version, own.version, strlen(own.version) + 1);
  if (push(context, entry)) return NULL;
  pestle_dealloc(context->core.allocator, entry, sizeof(*entry));
  return taken(name);
}

pestle_status_t pestle_context_custom_call(
    const pestle_context_t* context, const char* name,
    pestle_custom_call_info_t* out_info) {
  if (!context || !name || !out_info ||
      out_info->struct_size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_context_custom_call needs a context, a name "
                        "and an info with its struct_size set");
  }
  pestle_custom_call_info_t info = {.struct_size = out_info->struct_size};
  const pestle_custom_entry_t* entry =
      find(atomic_load(&context->custom_calls), name);
  if (entry) {
    info.function = entry->function;
    info.user = entry->user;
    info.version = entry->version;
    info.device_memory = entry->device_memory;
  }
  bool known = entry || pestle_own_call(context, name, &info);
  size_t n = out_info->struct_size;
  memcpy(out_info, &info, n < sizeof(info) ? n : sizeof(info));
  if (known) return NULL;
  return PESTLE_ERROR(NOT_FOUND,
                      "the context has no custom call '%s'; give it one with "
                      "pestle_context_register_custom_call()",
                      name);
}

void pestle_custom_calls_deinit(pestle_context_t* context) {
  pestle_custom_entry_t* entry = atomic_exchange(&context->custom_calls, NULL);
  while (entry) {
    pestle_custom_entry_t* next = entry->next;
    pestle_dealloc(context->core.allocator, entry, sizeof(*entry));
    entry = next;
  }
}
