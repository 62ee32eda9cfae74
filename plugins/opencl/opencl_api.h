// SPDX-License-Identifier: Apache-2.0
// The part of OpenCL 1.2 that the plugin uses, looked up in libOpenCL.so.1 at
// run time, so that it builds and loads where there is none. Names and values
// are those of the Khronos specification.
#ifndef PESTLE_PLUGINS_OPENCL_OPENCL_API_H_
#define PESTLE_PLUGINS_OPENCL_OPENCL_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cl_platform_s* cl_platform_t;
typedef struct cl_device_s* cl_device_t;
typedef struct cl_context_s* cl_context_t;
typedef struct cl_queue_s* cl_queue_t;
typedef struct cl_mem_s* cl_mem_t;
typedef struct cl_program_s* cl_program_t;
typedef struct cl_kernel_s* cl_kernel_t;
typedef struct cl_event_s* cl_event_t;

enum {
  CL_DEVICE_NOT_FOUND = -1,
  CL_INVALID_CONTEXT = -34,
  CL_COMPLETE = 0,
  CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_AVAILABLE = 0x1027,
  CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
  CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
  CL_DEVICE_NAME = 0x102b,
  CL_DEVICE_VENDOR = 0x102c,
  CL_DRIVER_VERSION = 0x102d,
  CL_DEVICE_VERSION = 0x102f,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
  CL_MEM_READ_WRITE = 1,
  CL_MEM_SIZE = 0x1102,
  CL_MEM_CONTEXT = 0x1106,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BINARIES = 0x1166,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_FP_DENORM = 1,
  CL_FP_FMA = 32,
  CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 128,
  CL_DEVICE_TYPE_CPU = 2,
  CL_DEVICE_TYPE_GPU = 4,
};
#define CL_DEVICE_TYPE_ALL UINT64_C(0xffffffff)

typedef void (*cl_event_done_t)(cl_event_t, int32_t, void*);

// X(result, name, parameters)
#define PESTLE_OPENCL_FUNCTIONS(X)                                             \
  X(int32_t, GetPlatformIDs, (uint32_t, cl_platform_t*, uint32_t*))            \
  X(int32_t, GetDeviceIDs,                                                     \
    (cl_platform_t, uint64_t, uint32_t, cl_device_t*, uint32_t*))              \
  X(int32_t, GetDeviceInfo, (cl_device_t, uint32_t, size_t, void*, size_t*))   \
  X(cl_context_t, CreateContext,                                               \
    (const intptr_t*, uint32_t, const cl_device_t*,                            \
     void (*)(const char*, const void*, size_t, void*), void*, int32_t*))      \
  X(int32_t, ReleaseContext, (cl_context_t))                                   \
  X(cl_queue_t, CreateCommandQueue,                                            \
    (cl_context_t, cl_device_t, uint64_t, int32_t*))                           \
  X(int32_t, ReleaseCommandQueue, (cl_queue_t))                                \
  X(cl_mem_t, CreateBuffer, (cl_context_t, uint64_t, size_t, void*, int32_t*)) \
  X(int32_t, RetainMemObject, (cl_mem_t))                                      \
  X(int32_t, ReleaseMemObject, (cl_mem_t))                                     \
  X(int32_t, GetMemObjectInfo, (cl_mem_t, uint32_t, size_t, void*, size_t*))   \
  X(cl_program_t, CreateProgramWithSource,                                     \
    (cl_context_t, uint32_t, const char**, const size_t*, int32_t*))           \
  X(cl_program_t, CreateProgramWithBinary,                                     \
    (cl_context_t, uint32_t, const cl_device_t*, const size_t*,                \
     const unsigned char**, int32_t*, int32_t*))                               \
  X(int32_t, BuildProgram,                                                     \
    (cl_program_t, uint32_t, const cl_device_t*, const char*,                  \
     void (*)(cl_program_t, void*), void*))                                    \
  X(int32_t, GetProgramInfo, (cl_program_t, uint32_t, size_t, void*, size_t*)) \
  X(int32_t, GetProgramBuildInfo,                                              \
    (cl_program_t, cl_device_t, uint32_t, size_t, void*, size_t*))             \
  X(int32_t, ReleaseProgram, (cl_program_t))                                   \
  X(cl_kernel_t, CreateKernel, (cl_program_t, const char*, int32_t*))          \
  X(int32_t, SetKernelArg, (cl_kernel_t, uint32_t, size_t, const void*))       \
  X(int32_t, ReleaseKernel, (cl_kernel_t))                                     \
  X(int32_t, EnqueueNDRangeKernel,                                             \
    (cl_queue_t, cl_kernel_t, uint32_t, const size_t*, const size_t*,          \
     const size_t*, uint32_t, const cl_event_t*, cl_event_t*))                 \
  X(int32_t, EnqueueReadBuffer,                                                \
    (cl_queue_t, cl_mem_t, uint32_t, size_t, size_t, void*, uint32_t,          \
     const cl_event_t*, cl_event_t*))                                          \
  X(int32_t, EnqueueWriteBuffer,                                               \
    (cl_queue_t, cl_mem_t, uint32_t, size_t, size_t, const void*, uint32_t,    \
     const cl_event_t*, cl_event_t*))                                          \
  X(int32_t, EnqueueCopyBuffer,                                                \
    (cl_queue_t, cl_mem_t, cl_mem_t, size_t, size_t, size_t, uint32_t,         \
     const cl_event_t*, cl_event_t*))                                          \
  X(int32_t, EnqueueMarkerWithWaitList,                                        \
    (cl_queue_t, uint32_t, const cl_event_t*, cl_event_t*))                    \
  X(int32_t, EnqueueBarrierWithWaitList,                                       \
    (cl_queue_t, uint32_t, const cl_event_t*, cl_event_t*))                    \
  X(cl_event_t, CreateUserEvent, (cl_context_t, int32_t*))                     \
  X(int32_t, SetUserEventStatus, (cl_event_t, int32_t))                        \
  X(int32_t, SetEventCallback, (cl_event_t, int32_t, cl_event_done_t, void*))  \
  X(int32_t, RetainEvent, (cl_event_t))                                        \
  X(int32_t, ReleaseEvent, (cl_event_t))                                       \
  X(int32_t, Flush, (cl_queue_t))                                              \
  X(int32_t, Finish, (cl_queue_t))

typedef struct pestle_opencl_api_t {
#define PESTLE_OPENCL_SLOT_(result, name, parameters) result(*name) parameters;
  PESTLE_OPENCL_FUNCTIONS(PESTLE_OPENCL_SLOT_)
#undef PESTLE_OPENCL_SLOT_
} pestle_opencl_api_t;

#endif  // PESTLE_PLUGINS_OPENCL_OPENCL_API_H_
