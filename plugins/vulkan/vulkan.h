// SPDX-License-Identifier: Apache-2.0
// The backend "vulkan": its state and functions, shared by its files.
//
//   vulkan.c   entry points and the compiler half
//   device.c   finding devices, and what they can do
//   memory.c   buffers: addresses, the cache, copies
//   stream.c   command buffers, streams, events, fences
//   launch.c   pipelines and dispatches
#ifndef PESTLE_PLUGINS_VULKAN_VULKAN_H_
#define PESTLE_PLUGINS_VULKAN_VULKAN_H_

#define VK_NO_PROTOTYPES
#include <pthread.h>
#include <vulkan/vulkan.h>

#include "pestle/plugin.h"
#include "plugins/common/c_printer.h"
#include "plugins/common/error.h"

enum { VULKAN_MAX_DEVICES = 16 };

#define VULKAN_INSTANCE_FUNCTIONS(X)        \
  X(DestroyInstance)                        \
  X(EnumeratePhysicalDevices)               \
  X(GetPhysicalDeviceProperties2)           \
  X(GetPhysicalDeviceFeatures2)             \
  X(GetPhysicalDeviceMemoryProperties)      \
  X(GetPhysicalDeviceQueueFamilyProperties) \
  X(GetDeviceProcAddr)                      \
  X(CreateDevice)

#define VULKAN_DEVICE_FUNCTIONS(X) \
  X(DestroyDevice)                 \
  X(GetDeviceQueue)                \
  X(DeviceWaitIdle)                \
  X(CreateBuffer)                  \
  X(DestroyBuffer)                 \
  X(GetBufferMemoryRequirements)   \
  X(AllocateMemory)                \
  X(FreeMemory)                    \
  X(BindBufferMemory)              \
  X(MapMemory)                     \
  X(GetBufferDeviceAddress)        \
  X(CreateCommandPool)             \
  X(DestroyCommandPool)            \
  X(AllocateCommandBuffers)        \
  X(FreeCommandBuffers)            \
  X(BeginCommandBuffer)            \
  X(EndCommandBuffer)              \
  X(CmdPipelineBarrier)            \
  X(CmdCopyBuffer)                 \
  X(CmdBindPipeline)               \
  X(CmdPushConstants)              \
  X(CmdDispatch)                   \
  X(QueueSubmit)                   \
  X(CreateSemaphore)               \
  X(DestroySemaphore)              \
  X(WaitSemaphores)                \
  X(SignalSemaphore)               \
  X(GetSemaphoreCounterValue)      \
  X(CreateShaderModule)            \
  X(DestroyShaderModule)           \
  X(CreatePipelineLayout)          \
  X(DestroyPipelineLayout)         \
  X(CreatePipelineCache)           \
  X(DestroyPipelineCache)          \
  X(CreateComputePipelines)        \
  X(DestroyPipeline)

#define VULKAN_SLOT_(name) PFN_vk##name name;

// A buffer with memory of its own.
typedef struct vulkan_block_t {
  struct vulkan_block_t* next;
  VkDeviceAddress address;
  size_t size;
  VkBuffer buffer;
  VkDeviceMemory memory;
  void* mapped;        // or NULL: the host does not see it
  bool staging;        // of copies with the host
  uint64_t free_from;  // of the device's clock: no work uses it then
} vulkan_block_t;

typedef struct vulkan_s vulkan_t;

typedef struct vulkan_device_t {
  vulkan_t* owner;
  VkPhysicalDevice physical;
  char name[256], driver[256];
  uint32_t driver_version, vendor, api;
  unsigned features;  // pestle_c_printer_feature_t
  unsigned floats;    // pestle_vulkan_floats_t
  bool is_gpu;
  uint32_t subgroup, group_lanes, lanes[3], groups[3], shared;
  uint32_t push_bytes, family;
  uint64_t memory_bytes, most_memory;
  uint32_t device_type_index, staging_type_index;  // memory types
  // What follows is made when the device is first used.
  pthread_mutex_t lock;
  VkDevice device;
  VkQueue queue;
  VkPipelineCache cache;
  VkSemaphore clock;  // counts what was submitted
  uint64_t now;       // the last value that was
  struct pestle_device_stream_s* streams;
  vulkan_block_t *blocks, *retired, *cached;
  uint64_t active, peak, limit, cache_bytes, cache_limit;
  VULKAN_DEVICE_FUNCTIONS(VULKAN_SLOT_)
} vulkan_device_t;

struct vulkan_s {
  pestle_backend_t backend;
  const pestle_host_t* host;
  VkInstance instance;
  char toolchain[1024];
  int32_t device_count;
  VULKAN_INSTANCE_FUNCTIONS(VULKAN_SLOT_)
  vulkan_device_t device[VULKAN_MAX_DEVICES];
};

#define VULKAN_CHECK(v, call)                                             \
  do {                                                                    \
    VkResult result_ = (call);                                            \
    if (result_ != VK_SUCCESS) {                                          \
      return result_ == VK_ERROR_DEVICE_LOST                              \
                 ? PESTLE_PLUGIN_ERROR((v)->host, UNAVAILABLE,            \
                                       "%s says that the device is lost", \
                                       #call)                             \
                 : PESTLE_PLUGIN_ERROR((v)->host, INTERNAL,               \
                                       "%s failed with %d", #call,        \
                                       (int)result_);                     \
    }                                                                     \
  } while (0)

// --- device.c ---

// Opens the loader and finds devices; false with |why|.
bool pestle_vulkan_start(vulkan_t* v, char* why, size_t capacity);
void pestle_vulkan_stop(vulkan_t* v);
// The device |index|, ready for work.
PESTLE_NODISCARD pestle_status_t
pestle_vulkan_device(vulkan_t* v, int32_t index, vulkan_device_t** out_device);

// --- memory.c; the caller holds the lock where the name ends in _locked ---

pestle_status_t pestle_vulkan_allocate(void* self, int32_t device, size_t size,
                                       void** out_data);
void pestle_vulkan_deallocate(void* self, int32_t device, void* data,
                              size_t size);
pestle_status_t pestle_vulkan_block_locked(vulkan_device_t* d, size_t size,
                                           bool staging,
                                           vulkan_block_t** out_block);
// Gives |block| back once what was submitted so far, and |more| submissions,
// are done.
void pestle_vulkan_retire_locked(vulkan_device_t* d, vulkan_block_t* block,
                                 uint64_t more);
vulkan_block_t* pestle_vulkan_find_locked(vulkan_device_t* d, const void* data,
                                          size_t size);
void* pestle_vulkan_raw_ptr(void* self, int32_t device, void* data);
pestle_status_t pestle_vulkan_memory_get(void* self, int32_t device,
                                         pestle_memory_t what,
                                         uint64_t* out_bytes);
pestle_status_t pestle_vulkan_memory_set(void* self, int32_t device,
                                         pestle_memory_t what, uint64_t bytes,
                                         uint64_t* out_before);
void pestle_vulkan_free_all(vulkan_device_t* d);

// --- stream.c ---

enum { VULKAN_MAX_WAITS = 8, VULKAN_MAX_PENDING = 64 };

typedef struct vulkan_wait_t {
  VkSemaphore semaphore;
  uint64_t value;
  const uint64_t* promised;  // value whose signal was submitted
} vulkan_wait_t;

struct pestle_device_stream_s {
  vulkan_device_t* device;
  struct pestle_device_stream_s* next;
  VkCommandPool pool;
  VkCommandBuffer open;  // being recorded, or NULL
  uint32_t recorded;     // commands in it
  VkSemaphore done;
  uint64_t submitted;  // value of |done| that the last submission gives
  vulkan_wait_t wait[VULKAN_MAX_WAITS];  // of the next submission
  uint32_t wait_count;
  struct {
    VkCommandBuffer buffer;
    uint64_t value;
  } pending[VULKAN_MAX_PENDING];  // submitted, to be freed
  uint32_t pending_count;
  vulkan_block_t* used;  // staging blocks and tables of the open buffer
};

// A command buffer to record into, after what stands in it.
PESTLE_NODISCARD pestle_status_t pestle_vulkan_record_locked(
    pestle_device_stream_t* stream, VkCommandBuffer* out_buffer);
// |block| is used by the open command buffer alone.
void pestle_vulkan_use_locked(pestle_device_stream_t* stream,
                              vulkan_block_t* block);
// A stream for one call, which waits.
PESTLE_NODISCARD pestle_status_t pestle_vulkan_with_stream(
    vulkan_t* v, int32_t device,
    pestle_status_t (*work)(pestle_device_stream_t* stream, const void* data),
    const void* data);

extern const pestle_device_api_t pestle_vulkan_device_api;

pestle_status_t pestle_vulkan_load(void* self, int32_t device,
                                   const void* artifact, size_t size,
                                   pestle_loaded_t** out_loaded);
void pestle_vulkan_unload(void* self, pestle_loaded_t* loaded);
pestle_status_t pestle_vulkan_launch(void* self, int32_t device,
                                     pestle_device_stream_t* stream,
                                     const pestle_launch_t* launch);
pestle_status_t pestle_vulkan_property(void* self, int32_t device,
                                       uint32_t index,
                                       pestle_device_property_t* out_property);

#endif  // PESTLE_PLUGINS_VULKAN_VULKAN_H_
