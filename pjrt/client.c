// SPDX-License-Identifier: Apache-2.0
// Plugin and client: what the framework asks before it has a program.
#include "pjrt/client.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "pestle/version.h"
#include "pjrt/callback.h"
#include "pjrt/event.h"
#include "pjrt/ffi.h"
#include "pjrt/known.h"
#include "pjrt/merge.h"
#include "pjrt/processes.h"
#include "pjrt/roster.h"
#include "pjrt/slots.h"
#include "pjrt/times.h"
#include "pjrt/worlds.h"

// --- Making and ending ---

static void log_to_stderr(void* user, pestle_log_level_t level,
                          const char* message) {
  static const char* const names[] = {"error", "warning", "info", "debug"};
  (void)user;
  fprintf(stderr, "pestle: %s: %s\n", names[level & 3], message);
}

static PJRT_Error* make_context(const pestle_pjrt_settings_t* settings,
                                pestle_context_t** out_context) {
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .log = log_to_stderr,
      .log_level = PESTLE_LOG_ERROR,
      .use_environment = true,
      .strict = settings->strict,
      .threads = settings->threads,
      .cache_dir = settings->has_cache_dir ? settings->cache_dir : NULL,
      .trace_file = *settings->trace_file ? settings->trace_file : NULL,
  };
  return pestle_pjrt_error_of(pestle_context_create(&options, out_context));
}

static PJRT_Error* client_init(PJRT_Client* client,
                               const PJRT_NamedValue* options, size_t count,
                               const pestle_pjrt_calls_t* calls) {
  pestle_refcount_init(&client->references);
  pestle_mutex_init(&client->launch);
  client->process = pestle_process_id();
  pestle_mutex_init(&client->ffi_mutex);
  client->ready = pestle_pjrt_event_create();
  client->known = pestle_pjrt_known_create();
  if (!client->ready || !client->known) return pestle_pjrt_out_of_memory();
  pestle_pjrt_event_set(client->ready, NULL);
  PJRT_TRY(pestle_pjrt_settings_read(options, count, &client->settings));
  PJRT_TRY(make_context(&client->settings, &client->context));
  PJRT_TRY(pestle_pjrt_callback_register(client));
  PJRT_TRY(pestle_pjrt_worlds_create(client, &client->worlds));
  PJRT_TRY(pestle_pjrt_roster_make(client, calls));
  client->topology = (PJRT_TopologyDescription){
      client->descriptions, client->device_count, client, false};
  snprintf(client->version, sizeof(client->version), "pestle %s on %.60s",
           PESTLE_VERSION_STRING, pestle_device_name(client->device.device));
  if (client->settings.times) {
    client->times = pestle_pjrt_times_create();
    if (!client->times) return pestle_pjrt_out_of_memory();
  }
  return client->processes ? pestle_pjrt_worlds_open(client) : NULL;
}

void pestle_pjrt_client_retain(PJRT_Client* client) {
  pestle_refcount_retain(&client->references);
}

void pestle_pjrt_client_release(PJRT_Client* client) {
  if (!client || !pestle_refcount_release(&client->references)) return;
  pestle_pjrt_known_release(client->known);
  pestle_pjrt_times_release(client->times);
  pestle_pjrt_worlds_release(client->worlds);
  pestle_pjrt_roster_drop(client);
  pestle_ffi_unbind(client);
  pestle_context_release(client->context);
  pestle_mutex_deinit(&client->launch);
  pestle_mutex_deinit(&client->ffi_mutex);
  pestle_pjrt_event_release(client->ready);
  pestle_dealloc(pestle_allocator_system(), client, sizeof(*client));
}

bool pestle_pjrt_client_is_torn(const PJRT_Client* client) {
  return client->process != pestle_process_id();
}

void pestle_pjrt_lock(const PJRT_Client* client, pestle_mutex_t* mutex) {
  enum { PATIENCE = 1000 };
  if (pestle_mutex_try_lock(mutex)) return;
  if (!pestle_pjrt_client_is_torn(client)) {
    pestle_mutex_lock(mutex);
    return;
  }
  for (int i = 0; i < PATIENCE; ++i) {
    if (pestle_mutex_try_lock(mutex)) return;
    pestle_thread_yield();
  }
  pestle_mutex_init(mutex);
  pestle_mutex_lock(mutex);
}

PJRT_Error* pestle_pjrt_client_check(const PJRT_Client* client) {
  if (!pestle_pjrt_client_is_torn(client)) return NULL;
  return pestle_pjrt_error(
      PJRT_Error_Code_UNAVAILABLE,
      "this process is a child of the one that made the client (%lld), whose "
      "threads it does not have: use the 'spawn' start method, or import jax "
      "in the child",
      (long long)client->process);
}

PJRT_Event* pestle_pjrt_client_ready(PJRT_Client* client) {
  pestle_pjrt_event_retain(client->ready);
  return client->ready;
}

PJRT_Error* pestle_pjrt_client_create(const PJRT_NamedValue* options,
                                      size_t count,
                                      const pestle_pjrt_calls_t* calls,
                                      PJRT_Client** out_client) {
  PJRT_Client* client =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*client));
  if (!client) return pestle_pjrt_out_of_memory();
  PJRT_Error* error = client_init(client, options, count, calls);
  if (error) {
    pestle_pjrt_client_release(client);
    return error;
  }
  *out_client = client;
  return NULL;
}

PJRT_Error* pestle_PJRT_Client_Create(PJRT_Client_Create_Args* args) {
  PJRT_TRY(pestle_pjrt_check(args, PJRT_END_OF(PJRT_Client_Create, client),
                             "PJRT_Client_Create"));
  args->client = NULL;
  PJRT_Client* client = NULL;
  pestle_pjrt_calls_t calls = {
      .get = args->kv_get_callback,
      .get_user = args->kv_get_user_arg,
      .put = args->kv_put_callback,
      .put_user = args->kv_put_user_arg,
  };
  if (PJRT_HAS(PJRT_Client_Create, kv_try_get_user_arg)) {
    calls.try_get = args->kv_try_get_callback;
    calls.try_get_user = args->kv_try_get_user_arg;
  }
  PJRT_TRY(pestle_pjrt_client_create(args->create_options, args->num_options,
                                     &calls, &client));
  // Executions of several devices go on together: none of them is held.
  PJRT_Error* error =
      client->device_count > 1
          ? NULL
          : pestle_pjrt_merge_create(&client->device, &client->device.merge);
  if (error)
    pestle_pjrt_client_release(client);
  else
    args->client = client;
  return error;
}

// The interpreter lock is not held here, as it may be where the last buffer
// goes: what is queued is waited for now.
PJRT_Error* pestle_PJRT_Client_Destroy(PJRT_Client_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_Client_Destroy, client, client);
  if (!pestle_pjrt_client_is_torn(args->client)) {
    pestle_pjrt_merge_t* merge = args->client->device.merge;
    args->client->device.merge = NULL;
    pestle_pjrt_merge_release(merge);
    for (size_t i = 0; i < args->client->local_count; ++i) {
      pestle_status_release(
          pestle_stream_synchronize(args->client->locals[i]->stream));
    }
    pestle_pjrt_worlds_close(args->client->worlds);
    pestle_pjrt_times_print(args->client->times);
  }
  pestle_pjrt_client_release(args->client);
  return NULL;
}

// --- What a client says of itself ---

PJRT_Error* pestle_PJRT_Client_PlatformName(
    PJRT_Client_PlatformName_Args* args) {
  PJRT_REQUIRE(PJRT_Client_PlatformName, client, platform_name_size);
  args->platform_name = PESTLE_PJRT_PLATFORM;
  args->platform_name_size = sizeof(PESTLE_PJRT_PLATFORM) - 1;
  return NULL;
}

PJRT_Error* pestle_PJRT_Client_ProcessIndex(
    PJRT_Client_ProcessIndex_Args* args) {
  PJRT_REQUIRE(PJRT_Client_ProcessIndex, client, process_index);
  const pestle_pjrt_processes_t* processes = args->client->processes;
  args->process_index = processes ? processes->index : 0;
  return NULL;
}

// Which processes are alive, as the framework thinks. Worlds find that out themselves,
// sooner: by connections that end and by deadlines.
PJRT_Error* pestle_PJRT_Client_UpdateGlobalProcessInfo(
    PJRT_Client_UpdateGlobalProcessInfo_Args* args) {
  PJRT_REQUIRE(PJRT_Client_UpdateGlobalProcessInfo, client, num_process_infos);
  return NULL;
}

PJRT_Error* pestle_PJRT_Client_PlatformVersion(
    PJRT_Client_PlatformVersion_Args* args) {
  PJRT_REQUIRE(PJRT_Client_PlatformVersion, client, platform_version_size);
  args->platform_version = args->client->version;
  args->platform_version_size = strlen(args->client->version);
  return NULL;
}

PJRT_Error* pestle_PJRT_Client_Devices(PJRT_Client_Devices_Args* args) {
  PJRT_REQUIRE(PJRT_Client_Devices, client, num_devices);
  args->devices = args->client->devices;
  args->num_devices = args->client->device_count;
  return NULL;
}

PJRT_Error* pestle_PJRT_Client_AddressableDevices(
    PJRT_Client_AddressableDevices_Args* args) {
  PJRT_REQUIRE(PJRT_Client_AddressableDevices, client, num_addressable_devices);
  args->addressable_devices = args->client->locals;
  args->num_addressable_devices = args->client->local_count;
  return NULL;
}

// Of |count| devices of |client| none is number |id|.
static PJRT_Error* no_device(const PJRT_Client* client, size_t count, int id) {
  if (client->device_count == 1) {
    return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "there is no device %d: the client has device 0",
                             id);
  }
  return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                           "there is no device %d: the client has devices 0 "
                           "to %zu%s",
                           id, count - 1,
                           client->processes ? " of this process" : "");
}

PJRT_Error* pestle_PJRT_Client_LookupDevice(
    PJRT_Client_LookupDevice_Args* args) {
  PJRT_REQUIRE(PJRT_Client_LookupDevice, client, device);
  args->device = pestle_pjrt_device(args->client, args->id);
  return args->device
             ? NULL
             : no_device(args->client, args->client->device_count, args->id);
}

PJRT_Error* pestle_PJRT_Client_LookupAddressableDevice(
    PJRT_Client_LookupAddressableDevice_Args* args) {
  PJRT_REQUIRE(PJRT_Client_LookupAddressableDevice, client, addressable_device);
  const PJRT_Client* client = args->client;
  int id = args->local_hardware_id;
  bool is_there = id >= 0 && (size_t)id < client->local_count;
  args->addressable_device = is_there ? client->locals[id] : NULL;
  return is_there ? NULL : no_device(client, client->local_count, id);
}

PJRT_Error* pestle_PJRT_Client_AddressableMemories(
    PJRT_Client_AddressableMemories_Args* args) {
  PJRT_REQUIRE(PJRT_Client_AddressableMemories, client,
               num_addressable_memories);
  args->addressable_memories = args->client->memories;
  args->num_addressable_memories = args->client->local_count;
  return NULL;
}

PJRT_Error* pestle_PJRT_Client_DefaultDeviceAssignment(
    PJRT_Client_DefaultDeviceAssignment_Args* args) {
  PJRT_REQUIRE(PJRT_Client_DefaultDeviceAssignment, client, default_assignment);
  int64_t count = (int64_t)args->num_replicas * args->num_partitions;
  size_t have = args->client->device_count;
  if (args->num_replicas < 1 || args->num_partitions < 1 ||
      (uint64_t)count > have) {
    return pestle_pjrt_error(
        PJRT_Error_Code_UNIMPLEMENTED,
        "PJRT_Client_DefaultDeviceAssignment: %d replicas of %d partitions "
        "were asked for; the client has %zu device%s%s",
        args->num_replicas, args->num_partitions, have, have == 1 ? "" : "s",
        have == 1 ? ", ask for 1 of 1 (a CPU is several by PESTLE_CPU_DEVICES)"
                  : "");
  }
  if (!args->default_assignment ||
      args->default_assignment_size < (size_t)count) {
    return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "there is no room for %lld device ids",
                             (long long)count);
  }
  for (int64_t i = 0; i < count; ++i)
    args->default_assignment[i] = (int)i;
  return NULL;
}
