// SPDX-License-Identifier: Apache-2.0
// The client, its devices and their memories: made once and not changed, so that
// what the framework asks of them cannot fail.
#ifndef PESTLE_PJRT_CLIENT_H_
#define PESTLE_PJRT_CLIENT_H_

#include <stdatomic.h>

#include "base/thread.h"
#include "pestle/pestle.h"
#include "pjrt/abi.h"
#include "pjrt/settings.h"

#define PESTLE_PJRT_PLATFORM "pestle"
#define PESTLE_PJRT_MEMORY_KIND "device"

// Enough for "pestle:2147483647 (backend:2147483647)".
enum { PESTLE_PJRT_NAME_SIZE = 96 };

typedef struct pestle_pjrt_user_data_t {
  const void* key;
  void* data;
  void (*destroy)(void*);
  struct pestle_pjrt_user_data_t* next;
} pestle_pjrt_user_data_t;

// What a handle of a memory is.
typedef struct pestle_pjrt_memory_t {
  PJRT_Memory head;
  PJRT_Device* device;
  int id;
  char text[PESTLE_PJRT_NAME_SIZE];
  pestle_mutex_t mutex;  // of |user_data|
  pestle_pjrt_user_data_t* user_data;
} pestle_pjrt_memory_t;

static inline pestle_pjrt_memory_t* pestle_pjrt_memory_of(PJRT_Memory* memory) {
  return (pestle_pjrt_memory_t*)(void*)memory;
}

struct PJRT_DeviceDescription {
  int id;
  int process;  // whose it is
  char kind[PESTLE_PJRT_NAME_SIZE];
  char text[PESTLE_PJRT_NAME_SIZE];        // "PestleDevice(id=0)"
  char debug_text[PESTLE_PJRT_NAME_SIZE];  // "pestle:0 (llvm)"
};

// One of another process has no |device|, stream or event, and runs nothing here.
struct PJRT_Device {
  PJRT_Client* client;
  int local;  // its number among those of this process, or -1
  PJRT_DeviceDescription description;
  PJRT_DeviceDescription* description_handle;
  pestle_pjrt_memory_t memory;
  PJRT_Memory* memory_handle;
  PJRT_Device* handle;  // lists of one are pointers to these
  pestle_device_t* device;
  bool is_cpu;  // the host reads and writes its memory
  // Executions that are not run by their caller.
  pestle_stream_t* stream;
  pestle_mutex_t mutex;               // of what is queued: |stream|, |done|
  pestle_event_t* done;               // of the execution that is being queued
  atomic_size_t queued;               // executions that are not done
  atomic_size_t queued_callbacks;     // of them those with Python callbacks
  struct pestle_pjrt_merge_t* merge;  // or NULL
  atomic_llong callback_thread;       // that runs a callback now; 0: none does
};

struct PJRT_TopologyDescription {
  PJRT_DeviceDescription* const* descriptions;
  size_t count;
  PJRT_Client* client;  // whose it is
  bool is_alone;        // it holds the client: nobody else made one
};

struct PJRT_Client {
  pestle_refcount_t references;  // the framework's, and those of what it made
  pestle_context_t* context;
  pestle_pjrt_settings_t settings;
  char version[PESTLE_PJRT_NAME_SIZE];
  char device_name[PESTLE_PJRT_NAME_SIZE];  // that names its device again
  int64_t process;                          // that made it
  PJRT_Device device;                       // the first one of this process
  // All of them, process by process: of a CPU, which is one device of the runtime,
  // several that have a stream each, and so a thread; of GPUs all of a host.
  size_t device_count;
  PJRT_Device** devices;
  PJRT_DeviceDescription** descriptions;
  // Those of this process.
  size_t local_count;
  PJRT_Device** locals;
  PJRT_Memory** memories;
  struct pestle_pjrt_processes_t* processes;  // NULL: this one alone
  struct pestle_pjrt_worlds_t* worlds;  // in which programs run (worlds.h)
  pestle_mutex_t launch;  // held while a program is queued on several of them
  PJRT_TopologyDescription topology;
  struct pestle_pjrt_known_t* known;
  pestle_mutex_t ffi_mutex;          // of |ffi|
  struct pestle_ffi_binding_t* ffi;  // foreign functions
  PJRT_Event* ready;  // set, and well: handed out for what is done at once
  struct pestle_pjrt_times_t* times;  // or NULL: nobody asked
};

// The framework's key-value calls; |get| is NULL where it has none.
typedef struct pestle_pjrt_calls_t {
  PJRT_KeyValueGetCallback get;
  void* get_user;
  PJRT_KeyValuePutCallback put;
  void* put_user;
  PJRT_KeyValueTryGetCallback try_get;  // or NULL
  void* try_get_user;
} pestle_pjrt_calls_t;

// A client as |options| want it, of which there are |count|; |calls| as
// pestle_pjrt_roster_make() has them.
PJRT_Error* pestle_pjrt_client_create(const PJRT_NamedValue* options,
                                      size_t count,
                                      const pestle_pjrt_calls_t* calls,
                                      PJRT_Client** out_client);
void pestle_pjrt_client_retain(PJRT_Client* client);
void pestle_pjrt_client_release(PJRT_Client* client);
// UNAVAILABLE in a child of fork(): threads and devices are the parent's.
PJRT_Error* pestle_pjrt_client_check(const PJRT_Client* client);
// Whether this is a child of fork() of the process that made the client.
bool pestle_pjrt_client_is_torn(const PJRT_Client* client);
// Takes a lock that is only held for a few instructions. In a child of fork() a
// thread that is not here may hold it for ever: then it is made anew.
void pestle_pjrt_lock(const PJRT_Client* client, pestle_mutex_t* mutex);
// Another hold of the event that is set.
PJRT_Event* pestle_pjrt_client_ready(PJRT_Client* client);

// Device |id| of |client|, which may be another process's, or NULL.
static inline PJRT_Device* pestle_pjrt_device(const PJRT_Client* client,
                                              int64_t id) {
  return id >= 0 && (uint64_t)id < client->device_count ? client->devices[id]
                                                        : NULL;
}
// Whether it is of this process.
static inline bool pestle_pjrt_is_local(const PJRT_Device* device) {
  return device->local >= 0;
}
// Fills |*out_device|, which has its address for good; |local|, |is_cpu| and, of the
// description, |id|, |process| and |kind| are there. |device|: NULL for one of another
// process.
PJRT_Error* pestle_pjrt_device_init(PJRT_Client* client,
                                    pestle_device_t* device,
                                    PJRT_Device* out_device);
// INVALID_ARGUMENT: it is of another process.
PJRT_Error* pestle_pjrt_check_local(const PJRT_Device* device);
void pestle_pjrt_device_deinit(PJRT_Device* device);

#endif  // PESTLE_PJRT_CLIENT_H_
