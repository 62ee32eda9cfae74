// SPDX-License-Identifier: Apache-2.0
#include "pjrt/callback.h"

#include <string.h>

#include "base/str.h"
#include "pjrt/error.h"
#include "pjrt/shape.h"

// The number behind |key| in the text of a dictionary: "{index = 3 : i64}".
static bool find_number(const char* dictionary, const char* key,
                        int64_t* out_value) {
  pestle_str_t text = pestle_str(dictionary);
  size_t at = pestle_str_find(text, pestle_str(key));
  if (at == SIZE_MAX) return false;
  text = pestle_str_slice(text, at + strlen(key), text.size);
  size_t equals = pestle_str_find_char(text, '=');
  if (equals == SIZE_MAX) return false;
  text = pestle_str_trim(pestle_str_slice(text, equals + 1, text.size));
  size_t end = 0;
  while (end < text.size && (text.data[end] == '-' ||
                             (text.data[end] >= '0' && text.data[end] <= '9')))
    ++end;
  return pestle_str_parse_i64(pestle_str_slice(text, 0, end), out_value);
}

bool pestle_pjrt_callback_index(const char* config, const char* dictionary,
                                int64_t* out_index) {
  return pestle_str_parse_i64(pestle_str_trim(pestle_str(config)), out_index) ||
         find_number(dictionary, "index", out_index);
}

void pestle_pjrt_callback_hold(const PJRT_Client* client, int64_t index,
                               bool is_held) {
  const pestle_pjrt_python_t* python = client->settings.python;
  if (!python || !python->is_alive) return;
  (void)python->call(
      is_held ? PESTLE_PJRT_PYTHON_HOLD : PESTLE_PJRT_PYTHON_LET_GO, index,
      NULL, 0, NULL, 0, NULL, 0);
}

static void extend(const pestle_tensor_t* tensor) {
  size_t size = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i)
    size *= (size_t)tensor->shape[i];
  pestle_pjrt_extend(pestle_dtype_from_dlpack(tensor->dtype),
                     (char*)tensor->data + tensor->byte_offset, size);
}

static bool is_running(const PJRT_Client* client, long long thread) {
  for (size_t i = 0; i < client->device_count; ++i) {
    if (atomic_load(&client->devices[i]->callback_thread) == thread)
      return true;
  }
  return false;
}

// Notes that this thread runs a callback, at any device that notes none: as many may
// run as there are devices. NULL: it is noted already, or there is no room.
static atomic_llong* take_slot(PJRT_Client* client) {
  long long thread = (long long)pestle_thread_id();
  if (is_running(client, thread)) return NULL;
  for (size_t i = 0; i < client->device_count; ++i) {
    atomic_llong* slot = &client->devices[i]->callback_thread;
    long long none = 0;
    if (atomic_compare_exchange_strong(slot, &none, thread)) return slot;
  }
  return NULL;
}

static pestle_status_t run_callback(void* user,
                                    const pestle_custom_call_t* call) {
  PJRT_Client* client = user;
  const pestle_pjrt_python_t* python = client->settings.python;
  char message[4096] = "";
  int64_t index;
  if (!pestle_pjrt_callback_index(call->config, call->dictionary, &index)) {
    return PESTLE_ERROR(
        MALFORMED, "custom call %s says no number of its callback", call->name);
  }
  if (!python->is_alive) {
    return PESTLE_ERROR(CANCELLED, "the interpreter of Python has ended");
  }
  atomic_llong* slot = take_slot(client);
  int failed = python->call(PESTLE_PJRT_PYTHON_CALL, index, call->inputs,
                            call->input_count, call->outputs,
                            call->output_count, message, sizeof(message));
  if (slot) atomic_store(slot, 0);
  for (size_t i = 0; i < call->output_count; ++i)
    extend(&call->outputs[i]);
  if (!failed) return NULL;
  message[sizeof(message) - 1] = 0;
  return PESTLE_ERROR(INTERNAL, "%s", message);
}

static pestle_status_t no_python(void* user, const pestle_custom_call_t* call) {
  (void)user;
  return PESTLE_ERROR(UNAVAILABLE,
                      "%s needs the Python side of the plugin (jax_plugins."
                      "pestle), through which this client was not made",
                      call->name);
}

PJRT_Error* pestle_pjrt_callback_register(PJRT_Client* client) {
  return pestle_pjrt_error_of(pestle_context_register_custom_call(
      client->context, PESTLE_PJRT_CALLBACK_TARGET,
      client->settings.python ? run_callback : no_python, client, NULL));
}

bool pestle_pjrt_in_callback(const PJRT_Device* device) {
  return is_running(device->client, (long long)pestle_thread_id());
}
