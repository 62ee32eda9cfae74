// SPDX-License-Identifier: Apache-2.0
#include "pjrt/processes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pjrt/slots.h"

enum { KEY = 256, VALUE = 1024, MOST_SERIES = 1 << 20 };
// That a process waits for another one to make its client.
static const int64_t usual_ms = 300000;

// --- The framework's calls ---

static PJRT_Error* make_error(PJRT_Error_Code code, const char* message,
                              size_t size) {
  return pestle_pjrt_error_text(code, message, size);
}
static PJRT_CallbackError callback_error = make_error;

static PJRT_Error* call_put(const pestle_pjrt_calls_t* calls, const char* key,
                            const char* value) {
  PJRT_KeyValuePutCallback_Args args = {
      .struct_size = sizeof(args),
      .key = key,
      .key_size = strlen(key),
      .value = value,
      .value_size = strlen(value),
      .callback_error = &callback_error,
      .user_arg = calls->put_user,
  };
  return calls->put(&args);
}

// Copies the value of |key| with an end; |*out_fits| is false where that is too long.
static PJRT_Error* call_get(const pestle_pjrt_calls_t* calls, const char* key,
                            int64_t timeout_ms, char* out_value,
                            size_t capacity, bool* out_fits) {
  PJRT_KeyValueGetCallback_Args args = {
      .struct_size = sizeof(args),
      .key = key,
      .key_size = strlen(key),
      .timeout_in_ms = timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms,
      .callback_error = &callback_error,
      .user_arg = calls->get_user,
  };
  PJRT_TRY(calls->get(&args));
  *out_fits = args.value && args.value_size < capacity;
  if (*out_fits) {
    memcpy(out_value, args.value, args.value_size);
    out_value[args.value_size] = '\0';
  }
  if (args.value && args.value_deleter_callback)
    args.value_deleter_callback(args.value);
  return NULL;
}

// Whether |key| has a value now.
static bool has_value(const pestle_pjrt_calls_t* calls, const char* key) {
  PJRT_KeyValueTryGetCallback_Args args = {
      .struct_size = sizeof(args),
      .key = key,
      .key_size = strlen(key),
      .callback_error = &callback_error,
      .user_arg = calls->try_get_user,
  };
  PJRT_Error* error = calls->try_get(&args);
  if (!error && args.value && args.value_deleter_callback)
    args.value_deleter_callback(args.value);
  pestle_pjrt_error_free(error);
  return !error;
}

static PJRT_Error_Code code_of(const PJRT_Error* error) {
  return error->vtable->get_code(error);
}

// --- As a store of worlds ---

// Takes |error| over.
static pestle_status_t status_of(PJRT_Error* error, const char* key) {
  const char* text;
  size_t size;
  if (!error) return NULL;
  pestle_status_code_t code =
      code_of(error) == PJRT_Error_Code_DEADLINE_EXCEEDED
          ? PESTLE_STATUS_DEADLINE_EXCEEDED
          : PESTLE_STATUS_UNAVAILABLE;
  error->vtable->message(error, &text, &size);
  pestle_status_t status =
      pestle_status_make(code, __FILE__, __LINE__,
                         "the framework's key-value store: key '%s': %.*s", key,
                         size > 400 ? 400 : (int)size, text);
  pestle_pjrt_error_free(error);
  return status;
}

static void whole_key(const pestle_pjrt_processes_t* p, const char* key,
                      char out[KEY]) {
  (void)snprintf(out, KEY, "pestle/%d/%s", (int)p->series, key);
}

static pestle_status_t put(void* user, const char* key, const char* value) {
  const pestle_pjrt_processes_t* p = user;
  char whole[KEY];
  whole_key(p, key, whole);
  return status_of(call_put(&p->calls, whole, value), whole);
}

static pestle_status_t get(void* user, const char* key, int64_t timeout_ms,
                           char* out_value, size_t capacity) {
  const pestle_pjrt_processes_t* p = user;
  char whole[KEY];
  bool fits;
  whole_key(p, key, whole);
  pestle_status_t status = status_of(
      call_get(&p->calls, whole, timeout_ms, out_value, capacity, &fits),
      whole);
  if (status || fits) return status;
  return pestle_status_make(
      PESTLE_STATUS_RESOURCE_EXHAUSTED, __FILE__, __LINE__,
      "the framework's key-value store: the value of '%s' is longer than %zu "
      "bytes",
      whole, capacity);
}

// --- Meeting ---

static void process_key(const pestle_pjrt_processes_t* p, int32_t index,
                        char out[KEY]) {
  char key[64];
  (void)snprintf(key, sizeof(key), "process/%d", (int)index);
  whole_key(p, key, out);
}

// "processes 1, 3 have not made their clients for 300 s".
static PJRT_Error* missing(const pestle_pjrt_processes_t* p, int32_t first,
                           int64_t ms) {
  pestle_strbuf_t list;
  char key[KEY];
  int32_t count = 0;
  pestle_strbuf_init(pestle_allocator_system(), &list);
  for (int32_t i = first; i < p->count; ++i) {
    process_key(p, i, key);
    if (i > first && (!p->calls.try_get || has_value(&p->calls, key))) continue;
    if (count++) pestle_strbuf_append_c(&list, ", ");
    pestle_strbuf_append_i64(&list, i);
  }
  PJRT_Error* error =
      list.failed
          ? pestle_pjrt_out_of_memory()
          : pestle_pjrt_error(
                PJRT_Error_Code_DEADLINE_EXCEEDED,
                "process%s %.*s of %d ha%s not made a client of Pestle for "
                "%.1f s: start all of them (PESTLE_WORLD_CREATE_MS is how long "
                "others wait)",
                count == 1 ? "" : "es",
                PESTLE_STR_ARG(pestle_strbuf_view(&list)), (int)p->count,
                count == 1 ? "s" : "ve", (double)ms * 1e-3);
  pestle_strbuf_deinit(&list);
  return error;
}

static PJRT_Error* read_card(const pestle_pjrt_processes_t* p, int32_t index,
                             char* text, pestle_pjrt_card_t* out) {
  char* kind = strchr(text, '\n');
  char* type = kind ? strchr(kind + 1, '\n') : NULL;
  int64_t count = 0;
  if (type) *kind++ = *type++ = '\0';
  if (!type || !pestle_str_parse_i64(pestle_str(text), &count) || count < 1 ||
      count > INT16_MAX || strlen(kind) >= sizeof(out->kind)) {
    return pestle_pjrt_error(
        PJRT_Error_Code_FAILED_PRECONDITION,
        "what process %d of %d says of its devices is not understood; all "
        "processes need the same Pestle",
        (int)index, (int)p->count);
  }
  out->count = (int32_t)count;
  out->is_cpu = !strcmp(type, "cpu");
  (void)snprintf(out->kind, sizeof(out->kind), "%s", kind);
  return NULL;
}

// A key is given a value once: that is how the clients of a process are counted, which
// all processes make in one order.
static PJRT_Error* put_card(pestle_pjrt_processes_t* p,
                            const pestle_pjrt_card_t* own) {
  char key[KEY], text[VALUE];
  (void)snprintf(text, sizeof(text), "%d\n%s\n%s", (int)own->count, own->kind,
                 own->is_cpu ? "cpu" : "other");
  for (;; ++p->series) {
    process_key(p, p->index, key);
    if (p->calls.try_get && has_value(&p->calls, key)) continue;
    PJRT_Error* error = call_put(&p->calls, key, text);
    if (!error || code_of(error) != PJRT_Error_Code_ALREADY_EXISTS ||
        p->series == MOST_SERIES) {
      return error;
    }
    pestle_pjrt_error_free(error);
  }
}

static int64_t patience_ms(void) {
  int64_t ms;
  const char* text = getenv("PESTLE_WORLD_CREATE_MS");
  return text && pestle_str_parse_i64(pestle_str(text), &ms) && ms > 0
             ? ms
             : usual_ms;
}

PJRT_Error* pestle_pjrt_processes_meet(pestle_pjrt_processes_t* p,
                                       const pestle_pjrt_card_t* own,
                                       pestle_pjrt_card_t* cards) {
  char key[KEY], text[VALUE];
  int64_t ms = patience_ms(), end = pestle_clock_ns() + ms * 1000000;
  PJRT_TRY(put_card(p, own));
  for (int32_t i = 0; i < p->count; ++i) {
    bool fits;
    int64_t left = (end - pestle_clock_ns()) / 1000000;
    process_key(p, i, key);
    PJRT_Error* error = call_get(&p->calls, key, left > 1 ? left : 1, text,
                                 sizeof(text), &fits);
    if (error && code_of(error) == PJRT_Error_Code_DEADLINE_EXCEEDED) {
      pestle_pjrt_error_free(error);
      return missing(p, i, ms);
    }
    if (!error)
      error = read_card(p, i, fits ? text : (text[0] = 0, text), &cards[i]);
    if (error) return error;
  }
  return NULL;
}

// --- Life ---

PJRT_Error* pestle_pjrt_processes_create(const pestle_pjrt_calls_t* calls,
                                         int32_t index, int32_t count,
                                         pestle_pjrt_processes_t** out) {
  if (!calls->get || !calls->put) {
    return pestle_pjrt_error(
        PJRT_Error_Code_INVALID_ARGUMENT,
        "the client is of process %d of %d (create options node_id, "
        "num_nodes), "
        "and the framework gives it no key-value callbacks, by which processes "
        "meet: call jax.distributed.initialize() first",
        (int)index, (int)count);
  }
  if (index < 0 || index >= count) {
    return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "create option node_id is %d; of %d processes it "
                             "may be 0 to %d",
                             (int)index, (int)count, (int)count - 1);
  }
  pestle_pjrt_processes_t* p =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*p));
  if (!p) return pestle_pjrt_out_of_memory();
  p->calls = *calls;
  p->index = index;
  p->count = count;
  p->store = (pestle_world_store_t){
      .struct_size = sizeof(p->store), .user = p, .put = put, .get = get};
  *out = p;
  return NULL;
}

void pestle_pjrt_processes_release(pestle_pjrt_processes_t* processes) {
  pestle_dealloc(pestle_allocator_system(), processes, sizeof(*processes));
}
