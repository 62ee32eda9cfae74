// SPDX-License-Identifier: Apache-2.0
// The backend "opencl": its state and functions, shared by its files.
#ifndef PESTLE_PLUGINS_OPENCL_OPENCL_H_
#define PESTLE_PLUGINS_OPENCL_OPENCL_H_

#include <pthread.h>

#include "pestle/plugin.h"
#include "plugins/common/c_printer.h"
#include "plugins/common/error.h"
#include "plugins/opencl/opencl_api.h"

// Addresses are reserved for a byte more than a block has: its end, which a view
// of nothing may have as its place, is then no other block's begin.
enum { OPENCL_MAX_DEVICES = 16, OPENCL_END = 1 };

// Memory of one allocate(). Buffers of OpenCL have no addresses: each stands
// for a range that nothing else of the process has.
typedef struct opencl_block_t {
  struct opencl_block_t* next;
  char* address;
  size_t size;
  cl_mem_t memory;
} opencl_block_t;

typedef struct opencl_device_t {
  cl_device_t id;
  cl_context_t context;
  cl_queue_t queue;  // of copies and launches without a stream
  char name[128], vendor[128], version[128], driver[128];
  char made_for[192];  // what a program's binary is for
  bool is_software;    // it computes on the machine's CPU
  uint64_t memory, most_memory, shared;
  uint32_t units, group_lanes, lanes[3];
  unsigned features;  // pestle_c_printer_feature_t
  bool keeps_denormals;
  bool exact_division;
  pthread_mutex_t lock;  // of what follows, and of kernels' arguments
  opencl_block_t* blocks;
  uint64_t active, peak, limit;
} opencl_device_t;

// One for each host that calls init.
typedef struct opencl_t {
  pestle_backend_t backend;
  const pestle_host_t* host;
  const pestle_opencl_api_t* cl;
  pestle_opencl_api_t functions;
  char toolchain[1024];
  int32_t device_count;
  opencl_device_t device[OPENCL_MAX_DEVICES];
} opencl_t;

struct pestle_device_stream_s {
  opencl_device_t* device;
  cl_queue_t queue;
  pthread_mutex_t lock;
  pthread_cond_t called;
  uint32_t calls;  // of the host that are not made yet
};

#define OPENCL_CHECK(o, call)                                              \
  do {                                                                     \
    int32_t error_ = (call);                                               \
    if (error_) {                                                          \
      return PESTLE_PLUGIN_ERROR((o)->host, INTERNAL, "%s failed with %d", \
                                 #call, error_);                           \
    }                                                                      \
  } while (0)

extern const pestle_device_api_t pestle_opencl_device_api;

// --- host_call.c: slots of the table ---

pestle_status_t pestle_opencl_stream_host_call(
    void* self, pestle_device_stream_t* stream,
    void (*fn)(void* user, pestle_status_t failure), void* user);
pestle_status_t pestle_opencl_stream_native(void* self,
                                            pestle_device_stream_t* stream,
                                            void** out_native);
pestle_status_t pestle_opencl_wait_native(void* self, int32_t device,
                                          pestle_device_stream_t* stream,
                                          void* native);
pestle_status_t pestle_opencl_native_wait(void* self, int32_t device,
                                          void* native,
                                          pestle_device_stream_t* stream);

// --- adopt.c: slots of the table ---

pestle_status_t pestle_opencl_adopt(void* self, int32_t device, void* handle,
                                    uint64_t offset, uint64_t size,
                                    void** out_data, void** out_hold);
void pestle_opencl_release_adopted(void* self, void* hold);
pestle_status_t pestle_opencl_handle_of(void* self, int32_t device,
                                        const void* data, void** out_handle,
                                        uint64_t* out_offset);

// The printer's view of |device|, or of a device of the usual kind for NULL.
pestle_c_printer_target_t pestle_opencl_target(const opencl_device_t* device);

// Builds |size| bytes of source, or the binary, for |device|.
pestle_status_t pestle_opencl_build(const opencl_t* o,
                                    const opencl_device_t* device,
                                    const void* source, size_t size,
                                    const char* flags,
                                    cl_program_t* out_program);

#endif  // PESTLE_PLUGINS_OPENCL_OPENCL_H_
