// SPDX-License-Identifier: Apache-2.0
// Clients of two processes, which are threads here, that meet by the key-value calls of
// PJRT_Client_Create: the devices of both, and what is told when calls are missing, fail,
// say nonsense, or when nobody comes.
#include <pthread.h>
#include <time.h>

#include "driver.h"

enum { KEYS = 32 };

// The framework's store.
static struct {
  pthread_mutex_t mutex;
  char keys[KEYS][128], values[KEYS][512];
  int count;
  bool breaks;           // each put fails
  const char* nonsense;  // what every get says, or NULL
} store = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int find(const char* key, size_t size) {
  for (int i = 0; i < store.count; ++i) {
    if (strlen(store.keys[i]) == size && !memcmp(store.keys[i], key, size))
      return i;
  }
  return -1;
}

static PJRT_Error* failure(PJRT_CallbackError* make, PJRT_Error_Code code,
                           const char* text) {
  return (*make)(code, text, strlen(text));
}

static PJRT_Error* put_value(PJRT_KeyValuePutCallback_Args* args) {
  PJRT_Error* error = NULL;
  assert_ptr_equal(args->user_arg, &store);
  pthread_mutex_lock(&store.mutex);
  if (store.breaks) {
    error =
        failure(args->callback_error, PJRT_Error_Code_UNAVAILABLE, "no store");
  } else if (find(args->key, args->key_size) >= 0) {
    error =
        failure(args->callback_error, PJRT_Error_Code_ALREADY_EXISTS, "again");
  } else {
    assert_true(store.count < KEYS && args->key_size < 128 &&
                args->value_size < 512);
    memcpy(store.keys[store.count], args->key, args->key_size);
    store.keys[store.count][args->key_size] = 0;
    memcpy(store.values[store.count], args->value, args->value_size);
    store.values[store.count++][args->value_size] = 0;
  }
  pthread_mutex_unlock(&store.mutex);
  return error;
}

static void free_value(char* value) {
  free(value);
}

static bool look(const char* key, size_t size, char** out, size_t* out_size) {
  pthread_mutex_lock(&store.mutex);
  int at = find(key, size);
  const char* value = at < 0 ? NULL : store.values[at];
  if (value && store.nonsense) value = store.nonsense;
  *out = value ? strdup(value) : NULL;
  *out_size = value ? strlen(value) : 0;
  pthread_mutex_unlock(&store.mutex);
  return *out != NULL;
}

static PJRT_Error* get_value(PJRT_KeyValueGetCallback_Args* args) {
  struct timespec moment = {.tv_nsec = 1000000};
  args->value_deleter_callback = free_value;
  for (int i = 0; i < args->timeout_in_ms; ++i) {
    if (look(args->key, args->key_size, &args->value, &args->value_size))
      return NULL;
    nanosleep(&moment, NULL);
  }
  return failure(args->callback_error, PJRT_Error_Code_DEADLINE_EXCEEDED,
                 "late");
}

static PJRT_Error* try_get(PJRT_KeyValueTryGetCallback_Args* args) {
  args->value_deleter_callback = free_value;
  if (look(args->key, args->key_size, &args->value, &args->value_size))
    return NULL;
  return failure(args->callback_error, PJRT_Error_Code_NOT_FOUND, "none");
}

static void empty_store(void) {
  store.count = 0;
  store.breaks = false;
  store.nonsense = NULL;
}

static PJRT_NamedValue number_option(const char* name, int64_t value) {
  return (PJRT_NamedValue){.struct_size = sizeof(PJRT_NamedValue),
                           .name = name,
                           .name_size = strlen(name),
                           .type = PJRT_NamedValue_kInt64,
                           .int64_value = value,
                           .value_size = 1};
}

typedef struct process_t {
  pthread_t thread;
  int64_t index, count, devices;
  bool is_without_calls, is_without_try;
  PJRT_Client* client;
  PJRT_Error* error;
} process_t;

static void* make(void* self) {
  process_t* p = self;
  PJRT_NamedValue options[] = {string_option("device", "cpu"),
                               number_option("node_id", p->index),
                               number_option("num_nodes", p->count),
                               number_option("cpu_devices", p->devices)};
  ARGS(PJRT_Client_Create, args);
  args.create_options = options;
  args.num_options = 4;
  args.kv_get_callback = p->is_without_calls ? NULL : get_value;
  args.kv_put_callback = p->is_without_calls ? NULL : put_value;
  args.kv_try_get_callback = p->is_without_try ? NULL : try_get;
  args.kv_get_user_arg = args.kv_put_user_arg = args.kv_try_get_user_arg =
      &store;
  p->error = api->PJRT_Client_Create(&args);
  p->client = p->error ? NULL : args.client;
  return NULL;
}

static void make_both(process_t both[2]) {
  for (int i = 0; i < 2; ++i) {
    both[i].index = i;
    both[i].count = 2;
    pthread_create(&both[i].thread, NULL, make, &both[i]);
  }
  for (int i = 0; i < 2; ++i)
    pthread_join(both[i].thread, NULL);
}

static void check_devices(const process_t* p, int first) {
  ARGS(PJRT_Client_Devices, all);
  ARGS(PJRT_Client_AddressableDevices, own);
  ARGS(PJRT_Client_ProcessIndex, which);
  all.client = own.client = which.client = p->client;
  assert_fine(api->PJRT_Client_Devices(&all));
  assert_fine(api->PJRT_Client_AddressableDevices(&own));
  assert_fine(api->PJRT_Client_ProcessIndex(&which));
  assert_int_equal(which.process_index, p->index);
  assert_int_equal(all.num_devices, 5);
  assert_int_equal(own.num_addressable_devices, p->devices);
  for (int i = 0; i < 5; ++i) {
    ARGS(PJRT_Device_IsAddressable, is);
    ARGS(PJRT_Device_GetDescription, description);
    ARGS(PJRT_DeviceDescription_ProcessIndex, owner);
    ARGS(PJRT_Device_LocalHardwareId, local);
    is.device = description.device = local.device = all.devices[i];
    assert_fine(api->PJRT_Device_IsAddressable(&is));
    assert_fine(api->PJRT_Device_GetDescription(&description));
    assert_fine(api->PJRT_Device_LocalHardwareId(&local));
    owner.device_description = description.device_description;
    assert_fine(api->PJRT_DeviceDescription_ProcessIndex(&owner));
    bool is_own = i >= first && i < first + p->devices;
    assert_int_equal(is.is_addressable, is_own);
    assert_int_equal(local.local_hardware_id, is_own ? i - first : -1);
    assert_int_equal(owner.process_index, i < 2 ? 0 : 1);
    if (is_own)
      assert_ptr_equal(own.addressable_devices[i - first], all.devices[i]);
  }
  // Nothing goes to a device of the other process.
  const float data[] = {1};
  PJRT_Client_BufferFromHostBuffer_Args buffer = {
      .struct_size = sizeof(buffer),
      .client = p->client,
      .data = data,
      .type = PJRT_Buffer_Type_F32,
      .device = all.devices[first ? 0 : 4]};
  assert_fails(api->PJRT_Client_BufferFromHostBuffer(&buffer), INVALID_ARGUMENT,
               "out of reach here");
}

static void destroy(PJRT_Client* gone) {
  ARGS(PJRT_Client_Destroy, args);
  args.client = gone;
  assert_fine(api->PJRT_Client_Destroy(&args));
}

static void two_meet(void** state) {
  (void)state;
  empty_store();
  for (int round = 0; round < 2; ++round) {  // keys are not used again
    process_t both[2] = {{.devices = 2, .is_without_try = round == 1},
                         {.devices = 3, .is_without_try = round == 1}};
    make_both(both);
    assert_fine(both[0].error);
    assert_fine(both[1].error);
    check_devices(&both[0], 0);
    check_devices(&both[1], 2);
    destroy(both[1].client);  // process 0 waits until the other has gone
    destroy(both[0].client);
  }
  assert_int_equal(store.count, 6);  // two cards and a world each time
}

static void alone(process_t p, PJRT_Error_Code code, const char* text) {
  p.devices = 1;
  (void)make(&p);
  assert_null(p.client);
  assert_fails_(p.error, code, text, __FILE__, __LINE__);
}

static void says_what_is_wrong(void** state) {
  (void)state;
  empty_store();
  alone((process_t){.count = 2, .is_without_calls = true},
        PJRT_Error_Code_INVALID_ARGUMENT, "no key-value callbacks");
  alone((process_t){.index = 2, .count = 2}, PJRT_Error_Code_INVALID_ARGUMENT,
        "node_id is 2; of 2 processes");
  alone((process_t){.index = -1, .count = 2}, PJRT_Error_Code_INVALID_ARGUMENT,
        "node_id is '-1'");
  store.breaks = true;
  alone((process_t){.count = 2}, PJRT_Error_Code_UNAVAILABLE, "no store");
  empty_store();
  setenv("PESTLE_WORLD_CREATE_MS", "50", 1);
  alone((process_t){.index = 1, .count = 4}, PJRT_Error_Code_DEADLINE_EXCEEDED,
        "processes 0, 2, 3 of 4 have not made a client");
  unsetenv("PESTLE_WORLD_CREATE_MS");
  static const char* const nonsense[] = {
      "", "2", "2\ncpu", "0\ncpu\ncpu", "many\ncpu\ncpu", "-1\ncpu\ncpu"};
  for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); ++i) {
    empty_store();
    store.nonsense = nonsense[i];
    alone((process_t){.count = 2}, PJRT_Error_Code_FAILED_PRECONDITION,
          "is not understood");
  }
}

// One process is alone, with or without calls.
static void one_needs_nobody(void** state) {
  (void)state;
  empty_store();
  process_t p = {.count = 1, .devices = 1};
  (void)make(&p);
  assert_fine(p.error);
  assert_int_equal(store.count, 0);
  destroy(p.client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_meet),
      cmocka_unit_test(says_what_is_wrong),
      cmocka_unit_test(one_needs_nobody),
  };
  setenv("PESTLE_THREADS", "1", 1);
  open_plugin();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
