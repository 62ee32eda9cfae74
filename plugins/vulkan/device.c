// SPDX-License-Identifier: Apache-2.0
// Finding devices and starting one. libvulkan.so.1 is opened at run time; a
// logical device is made when it is first used, since that takes a while.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "plugins/vulkan/shader.h"
#include "plugins/vulkan/vulkan.h"

// --- What a device can do ---

typedef struct features_t {
  VkPhysicalDeviceFeatures2 all;
  VkPhysicalDeviceVulkan11Features v11;
  VkPhysicalDeviceVulkan12Features v12;
} features_t;

static void link_features(features_t* f) {
  memset(f, 0, sizeof *f);
  f->all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  f->all.pNext = &f->v11;
  f->v11.pNext = &f->v12;
}

// The features that the plugin uses, of those in |has|.
static void choose_features(const features_t* has, features_t* use) {
  link_features(use);
  use->all.features.shaderInt64 = has->all.features.shaderInt64;
  use->all.features.shaderFloat64 = has->all.features.shaderFloat64;
  use->all.features.shaderInt16 = has->all.features.shaderInt16;
  use->v11.storageBuffer16BitAccess = has->v11.storageBuffer16BitAccess;
  use->v12.storageBuffer8BitAccess = has->v12.storageBuffer8BitAccess;
  use->v12.shaderInt8 = has->v12.shaderInt8;
  use->v12.shaderSubgroupExtendedTypes = has->v12.shaderSubgroupExtendedTypes;
  use->v12.bufferDeviceAddress = VK_TRUE;
  use->v12.timelineSemaphore = VK_TRUE;
}

static unsigned printer_features(const features_t* has, VkDriverId driver,
                                 const VkPhysicalDeviceVulkan11Properties* p) {
  // Mesa's compiler folds zeros, NVIDIA's in a loop; another's is not known.
  unsigned bits = PESTLE_C_PRINTER_FOLDS_ZEROS;
  const VkSubgroupFeatureFlags shuffles = VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  if (has->all.features.shaderInt64) bits |= PESTLE_C_PRINTER_HAS_INT64;
  if (has->all.features.shaderFloat64) bits |= PESTLE_C_PRINTER_HAS_F64;
  if (has->v12.storageBuffer8BitAccess && has->v12.shaderInt8) {
    bits |= PESTLE_C_PRINTER_HAS_STORAGE8;
  }
  if (has->v11.storageBuffer16BitAccess && has->all.features.shaderInt16) {
    bits |= PESTLE_C_PRINTER_HAS_STORAGE16;
  }
  if ((p->subgroupSupportedOperations & shuffles) &&
      (p->subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    bits |= PESTLE_C_PRINTER_HAS_SUBGROUP;
    if (has->v12.shaderSubgroupExtendedTypes) {
      bits |= PESTLE_C_PRINTER_HAS_SUBGROUP64;
    }
  }
  // Vulkan lets fma() round twice, and Mesa's CPU driver does. It lets / and
  // sqrt() be 2.5 ulp off, and NVIDIA's driver is 1. Mesa's are taken as they
  // are, since its compiler is slow at the helpers, though they are not always
  // exact: a pool's division was 1 ulp off in one of 100 random graphs.
  if (driver == VK_DRIVER_ID_MESA_LLVMPIPE) {
    bits |= PESTLE_C_PRINTER_HAS_EXACT_DIV;
    // Mesa 22.3 on CPUs without AVX-512: halves, and zeros below zero.
    bits |= PESTLE_C_PRINTER_ROUNDS_F64_WRONG;
  } else {
    bits |= PESTLE_C_PRINTER_HAS_FMA | PESTLE_C_PRINTER_HAS_FMA64;
  }
  return bits;
}

static unsigned floats_of(const VkPhysicalDeviceVulkan12Properties* p) {
  const struct {
    VkBool32 has;
    pestle_vulkan_floats_t bit;
  } rows[] = {
      {p->shaderSignedZeroInfNanPreserveFloat32, PESTLE_VULKAN_KEEPS_NAN_32},
      {p->shaderSignedZeroInfNanPreserveFloat64, PESTLE_VULKAN_KEEPS_NAN_64},
      {p->shaderDenormPreserveFloat32, PESTLE_VULKAN_KEEPS_DENORMALS_32},
      {p->shaderDenormPreserveFloat64, PESTLE_VULKAN_KEEPS_DENORMALS_64},
      {p->shaderRoundingModeRTEFloat32, PESTLE_VULKAN_ROUNDS_TO_EVEN_32},
      {p->shaderRoundingModeRTEFloat64, PESTLE_VULKAN_ROUNDS_TO_EVEN_64},
  };
  unsigned bits = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (rows[i].has) bits |= (unsigned)rows[i].bit;
  }
  return bits;
}

// --- Describing ---

static bool find_family(const vulkan_t* v, vulkan_device_t* d) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  v->GetPhysicalDeviceQueueFamilyProperties(d->physical, &count, families);
  for (uint32_t i = 0; i < count; ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
    d->family = i;
    return true;
  }
  return false;
}

static bool find_memory(const vulkan_t* v, vulkan_device_t* d) {
  VkPhysicalDeviceMemoryProperties m;
  const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                     VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags device = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  bool has_device = false, has_host = false;
  v->GetPhysicalDeviceMemoryProperties(d->physical, &m);
  for (uint32_t i = 0; i < m.memoryTypeCount; ++i) {
    VkMemoryPropertyFlags flags = m.memoryTypes[i].propertyFlags;
    if (!has_device && (flags & device)) {
      has_device = true;
      d->device_type_index = i;
      d->memory_bytes = m.memoryHeaps[m.memoryTypes[i].heapIndex].size;
    }
    bool cached = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if ((flags & host) == host && (!has_host || cached)) {
      has_host = true;
      d->staging_type_index = i;
    }
  }
  d->limit = d->memory_bytes;
  d->cache_limit = d->memory_bytes / 4;
  return has_device && has_host;
}

// False when the device lacks what every kernel needs.
static bool describe_device(const vulkan_t* v, vulkan_device_t* d) {
  VkPhysicalDeviceVulkan12Properties p12 = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceVulkan11Properties p11 = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES,
      .pNext = &p12};
  VkPhysicalDeviceProperties2 p = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &p11};
  features_t has;
  v->GetPhysicalDeviceProperties2(d->physical, &p);
  if (p.properties.apiVersion < VK_API_VERSION_1_2) return false;
  link_features(&has);
  v->GetPhysicalDeviceFeatures2(d->physical, &has.all);
  if (!has.v12.bufferDeviceAddress || !has.v12.timelineSemaphore) return false;
  const VkPhysicalDeviceLimits* l = &p.properties.limits;
  snprintf(d->name, sizeof d->name, "%s", p.properties.deviceName);
  snprintf(d->driver, sizeof d->driver, "%.100s %.150s", p12.driverName,
           p12.driverInfo);
  d->driver_version = p.properties.driverVersion;
  d->vendor = p.properties.vendorID;
  d->api = p.properties.apiVersion;
  d->is_gpu = p.properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU;
  d->features = printer_features(&has, p12.driverID, &p11);
  d->floats = floats_of(&p12);
  d->subgroup = p11.subgroupSize;
  d->group_lanes = l->maxComputeWorkGroupInvocations;
  d->shared = l->maxComputeSharedMemorySize;
  d->push_bytes = l->maxPushConstantsSize;
  d->most_memory = p11.maxMemoryAllocationSize;
  for (int a = 0; a < 3; ++a) {
    d->lanes[a] = l->maxComputeWorkGroupSize[a];
    d->groups[a] = l->maxComputeWorkGroupCount[a];
  }
  return find_family(v, d) && find_memory(v, d);
}

// --- Starting ---

static PFN_vkGetInstanceProcAddr open_loader(char* why, size_t capacity) {
  PFN_vkGetInstanceProcAddr look_up = NULL;
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(why, capacity,
             "there is no Vulkan loader (Debian: libvulkan1, and a driver): %s",
             dlerror());
    return NULL;
  }
  *(void**)&look_up = dlsym(library, "vkGetInstanceProcAddr");
  if (!look_up) {
    snprintf(why, capacity, "libvulkan.so.1 has no vkGetInstanceProcAddr");
  }
  return look_up;
}

static bool make_instance(vulkan_t* v, char* why, size_t capacity) {
  PFN_vkGetInstanceProcAddr look_up = open_loader(why, capacity);
  if (!look_up) return false;
  PFN_vkCreateInstance create =
      (PFN_vkCreateInstance)look_up(NULL, "vkCreateInstance");
  VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                           .pApplicationName = "pestle",
                           .pEngineName = "pestle",
                           .apiVersion = VK_API_VERSION_1_2};
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                               .pApplicationInfo = &app};
  VkResult result = create ? create(&info, NULL, &v->instance)
                           : VK_ERROR_INITIALIZATION_FAILED;
  if (result != VK_SUCCESS) {
    snprintf(why, capacity,
             "vkCreateInstance failed with %d: is a Vulkan 1.2 driver "
             "installed (see /usr/share/vulkan/icd.d)?",
             (int)result);
    return false;
  }
#define LOOK_UP(name) v->name = (PFN_vk##name)look_up(v->instance, "vk" #name);
  VULKAN_INSTANCE_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  return true;
}

bool pestle_vulkan_start(vulkan_t* v, char* why, size_t capacity) {
  VkPhysicalDevice found[VULKAN_MAX_DEVICES];
  uint32_t count = VULKAN_MAX_DEVICES;
  if (!make_instance(v, why, capacity)) return false;
  VkResult result = v->EnumeratePhysicalDevices(v->instance, &count, found);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) count = 0;
  // GPUs before drivers that run on the CPU.
  for (int gpu = 1; gpu >= 0; --gpu) {
    for (uint32_t i = 0; i < count; ++i) {
      vulkan_device_t* d = &v->device[v->device_count];
      memset(d, 0, sizeof *d);
      d->owner = v;
      d->physical = found[i];
      if (!describe_device(v, d) || d->is_gpu != (gpu == 1)) continue;
      pthread_mutex_init(&d->lock, NULL);
      ++v->device_count;
    }
  }
  if (v->device_count) return true;
  snprintf(why, capacity,
           "none of %u Vulkan devices has version 1.2 with buffer device "
           "addresses and timeline semaphores",
           (unsigned)count);
  return false;
}

static void stop_device(vulkan_device_t* d) {
  if (d->device) {
    d->DeviceWaitIdle(d->device);
    pestle_vulkan_free_all(d);
    if (d->cache) d->DestroyPipelineCache(d->device, d->cache, NULL);
    if (d->clock) d->DestroySemaphore(d->device, d->clock, NULL);
    d->DestroyDevice(d->device, NULL);
  }
  pthread_mutex_destroy(&d->lock);
}

void pestle_vulkan_stop(vulkan_t* v) {
  for (int32_t i = 0; i < v->device_count; ++i)
    stop_device(&v->device[i]);
  v->device_count = 0;
  if (v->instance) v->DestroyInstance(v->instance, NULL);
}

static VkResult make_device(vulkan_device_t* d) {
  const vulkan_t* v = d->owner;
  features_t has, use;
  float priority = 1;
  link_features(&has);
  v->GetPhysicalDeviceFeatures2(d->physical, &has.all);
  choose_features(&has, &use);
  VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueFamilyIndex = d->family,
      .queueCount = 1,
      .pQueuePriorities = &priority};
  VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                             .pNext = &use.all,
                             .queueCreateInfoCount = 1,
                             .pQueueCreateInfos = &queue};
  VkResult result = v->CreateDevice(d->physical, &info, NULL, &d->device);
  if (result != VK_SUCCESS) return result;
#define LOOK_UP(name) \
  d->name = (PFN_vk##name)v->GetDeviceProcAddr(d->device, "vk" #name);
  VULKAN_DEVICE_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  d->GetDeviceQueue(d->device, d->family, 0, &d->queue);
  VkPipelineCacheCreateInfo cache = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  result = d->CreatePipelineCache(d->device, &cache, NULL, &d->cache);
  if (result != VK_SUCCESS) return result;
  VkSemaphoreTypeCreateInfo type = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkSemaphoreCreateInfo clock = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  return d->CreateSemaphore(d->device, &clock, NULL, &d->clock);
}

pestle_status_t pestle_vulkan_device(vulkan_t* v, int32_t index,
                                     vulkan_device_t** out_device) {
  *out_device = NULL;
  if (index < 0 || index >= v->device_count) {
    return PESTLE_PLUGIN_ERROR(v->host, NOT_FOUND,
                               "vulkan has %d devices and no %d",
                               v->device_count, index);
  }
  vulkan_device_t* d = &v->device[index];
  VkResult result = VK_SUCCESS;
  pthread_mutex_lock(&d->lock);
  if (!d->clock) result = make_device(d);
  pthread_mutex_unlock(&d->lock);
  if (result != VK_SUCCESS) {
    return PESTLE_PLUGIN_ERROR(v->host, INTERNAL,
                               "%s cannot be started: Vulkan says %d", d->name,
                               (int)result);
  }
  *out_device = d;
  return NULL;
}
