// SPDX-License-Identifier: Apache-2.0
// The backend "opencl": Kernel IR to OpenCL C 1.2. It links against nothing of
// OpenCL; without libOpenCL.so.1 or a device it scores 0 and still prints.
#include "plugins/opencl/opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "pestle_plugin_build_id.h"
#include "plugins/common/c_printer_artifact.h"
#include "plugins/common/slots.h"
#include "plugins/opencl/dialect.h"

enum { SCORE_GPU = 100, SCORE_CPU = 10, GENERIC_LANES = 256, THREADS = 64 };

// --- Devices ---

static bool open_library(pestle_opencl_api_t* cl, char* why, size_t capacity) {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(why, capacity,
             "there is no OpenCL loader (Debian: ocl-icd-libopencl1, and a "
             "driver): %s",
             dlerror());
    return false;
  }
#define LOOK_UP(result, name, parameters)                      \
  *(void**)&cl->name = dlsym(library, "cl" #name);             \
  if (!cl->name) {                                             \
    snprintf(why, capacity, "libOpenCL.so.1 has no cl" #name); \
    return false;                                              \
  }
  PESTLE_OPENCL_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  return true;
}

static void text_of(const pestle_opencl_api_t* cl, cl_device_t id,
                    uint32_t what, char* text, size_t capacity) {
  text[0] = 0;
  if (cl->GetDeviceInfo(id, what, capacity - 1, text, NULL)) text[0] = 0;
  text[capacity - 1] = 0;
}

static uint64_t number_of(const pestle_opencl_api_t* cl, cl_device_t id,
                          uint32_t what) {
  uint64_t value = 0;
  return cl->GetDeviceInfo(id, what, sizeof value, &value, NULL) ? 0 : value;
}

static uint32_t at_most_32(uint64_t value) {
  return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static bool is_software(const pestle_opencl_api_t* cl, cl_device_t id) {
  return number_of(cl, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
}

static void describe_device(const pestle_opencl_api_t* cl, opencl_device_t* d) {
  size_t sizes[16] = {0};
  text_of(cl, d->id, CL_DEVICE_NAME, d->name, sizeof d->name);
  text_of(cl, d->id, CL_DEVICE_VENDOR, d->vendor, sizeof d->vendor);
  text_of(cl, d->id, CL_DEVICE_VERSION, d->version, sizeof d->version);
  text_of(cl, d->id, CL_DRIVER_VERSION, d->driver, sizeof d->driver);
  char made_for[sizeof d->made_for];
  snprintf(made_for, sizeof made_for, "%.90s|%.90s", d->name, d->driver);
  memcpy(d->made_for, made_for, sizeof made_for);
  d->is_software = is_software(cl, d->id);
  d->memory = number_of(cl, d->id, CL_DEVICE_GLOBAL_MEM_SIZE);
  d->most_memory = number_of(cl, d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  d->shared = number_of(cl, d->id, CL_DEVICE_LOCAL_MEM_SIZE);
  d->units = at_most_32(number_of(cl, d->id, CL_DEVICE_MAX_COMPUTE_UNITS));
  d->group_lanes =
      at_most_32(number_of(cl, d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  cl->GetDeviceInfo(d->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes,
                    NULL);
  for (int a = 0; a < 3; ++a)
    d->lanes[a] = at_most_32(sizes[a]);
  uint64_t f32 = number_of(cl, d->id, CL_DEVICE_SINGLE_FP_CONFIG);
  uint64_t f64 = number_of(cl, d->id, CL_DEVICE_DOUBLE_FP_CONFIG);
  d->features = PESTLE_C_PRINTER_HAS_INT64 | PESTLE_C_PRINTER_HAS_STORAGE8 |
                PESTLE_C_PRINTER_HAS_STORAGE16 | PESTLE_C_PRINTER_HAS_EXACT_DIV;
  // fma() of OpenCL is fused wherever it is; the bit says that it is fast.
  d->features |= PESTLE_C_PRINTER_HAS_FMA;
  if (f64) d->features |= PESTLE_C_PRINTER_HAS_F64 | PESTLE_C_PRINTER_HAS_FMA64;
  d->exact_division = f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  d->keeps_denormals = f32 & CL_FP_DENORM;
  d->limit = d->memory;
}

static bool is_usable(const pestle_opencl_api_t* cl, cl_device_t id) {
  return number_of(cl, id, CL_DEVICE_AVAILABLE) &&
         number_of(cl, id, CL_DEVICE_COMPILER_AVAILABLE);
}

// Moves those that compute on the CPU behind the others, in the order that they have.
static void put_software_last(const pestle_opencl_api_t* cl, cl_device_t* ids,
                              int32_t count) {
  cl_device_t last[OPENCL_MAX_DEVICES];
  int32_t kept = 0, moved = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (is_software(cl, ids[i])) {
      last[moved++] = ids[i];
    } else {
      ids[kept++] = ids[i];
    }
  }
  memcpy(ids + kept, last, (size_t)moved * sizeof *ids);
}

// Fills |ids| with the devices of all platforms.
static int32_t find_devices(const pestle_opencl_api_t* cl, cl_device_t* ids) {
  cl_platform_t platform[8];
  uint32_t platforms = 0;
  int32_t count = 0;
  if (cl->GetPlatformIDs(8, platform, &platforms)) return 0;
  if (platforms > 8) platforms = 8;
  for (uint32_t i = 0; i < platforms; ++i) {
    cl_device_t found[OPENCL_MAX_DEVICES];
    uint32_t devices = 0;
    if (cl->GetDeviceIDs(platform[i], CL_DEVICE_TYPE_ALL, OPENCL_MAX_DEVICES,
                         found, &devices)) {
      continue;
    }
    if (devices > OPENCL_MAX_DEVICES) devices = OPENCL_MAX_DEVICES;
    for (uint32_t d = 0; d < devices && count < OPENCL_MAX_DEVICES; ++d) {
      if (is_usable(cl, found[d])) ids[count++] = found[d];
    }
  }
  put_software_last(cl, ids, count);
  return count;
}

static int32_t score(char* why, size_t capacity) {
  pestle_opencl_api_t cl;
  cl_device_t ids[OPENCL_MAX_DEVICES];
  if (capacity) *why = 0;
  if (!open_library(&cl, why, capacity)) return 0;
  int32_t count = find_devices(&cl, ids);
  if (!count) {
    snprintf(why, capacity,
             "libOpenCL.so.1 knows no device that can compile: is a driver of "
             "it installed (see /etc/OpenCL/vendors)?");
    return 0;
  }
  return is_software(&cl, ids[0]) ? SCORE_CPU : SCORE_GPU;
}

// --- The compiler half ---

pestle_c_printer_target_t pestle_opencl_target(const opencl_device_t* device) {
  pestle_c_printer_target_t target = {
      .dialect = &pestle_opencl_dialect,
      .features = PESTLE_C_PRINTER_HAS_INT64 | PESTLE_C_PRINTER_HAS_F64 |
                  PESTLE_C_PRINTER_HAS_STORAGE8 |
                  PESTLE_C_PRINTER_HAS_STORAGE16 | PESTLE_C_PRINTER_HAS_FMA |
                  PESTLE_C_PRINTER_HAS_FMA64 | PESTLE_C_PRINTER_HAS_EXACT_DIV,
      .max_groups = {INT32_MAX, 65535, 65535},
      .thread_lanes = THREADS,
      .argument_limit = UINT32_MAX};
  if (device) target.features = device->features;
  return target;
}

static const opencl_device_t* first_device(const opencl_t* o) {
  return o->device_count ? &o->device[0] : NULL;
}

static pestle_status_t check_cpu(const opencl_t* o, const char* cpu) {
  if (!cpu || !strcmp(cpu, "native") || !strcmp(cpu, "generic")) return NULL;
  return PESTLE_PLUGIN_ERROR(
      o->host, UNSUPPORTED,
      "opencl knows no device '%s': try native or generic", cpu);
}

static const opencl_device_t* device_for(const opencl_t* o, const char* cpu) {
  return cpu && !strcmp(cpu, "generic") ? NULL : first_device(o);
}

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  const opencl_t* o = self;
  PESTLE_TRY(check_cpu(o, cpu));
  const opencl_device_t* d = device_for(o, cpu);
  pestle_c_printer_target_t target = pestle_opencl_target(d);
  uint32_t lanes = d && d->group_lanes ? d->group_lanes : GENERIC_LANES;
  uint64_t shared = d && d->shared ? d->shared : 32 << 10;
  if (lanes > 1024) lanes = 1024;
  if (shared > 64 << 10) shared = 64 << 10;
  pestle_target_caps_t caps = {
      .struct_size = sizeof caps,
      .name = "opencl",
      .device_type = PESTLE_DEVICE_OPENCL,
      .vector_bytes = 16,
      .vector_registers = 64,
      .max_lanes = 4,
      .cores = d ? d->units : 16,
      .l1_bytes = 32 << 10,
      .l2_bytes = 1 << 20,
      .l3_bytes = 0,
      .scratch_bytes = (uint32_t)shared,
      // Without subgroups lanes pass values through shared memory, any number.
      .subgroup = 32,
      .max_group_lanes = lanes,
      .flags = PESTLE_TARGET_FMA | PESTLE_TARGET_LANES,
      .max_lanes_axis = {lanes, lanes, lanes < 64 ? lanes : 64},
      .max_groups_axis = {INT32_MAX, 65535, 65535},
      .register_bytes_lane = 1 << 10,
      .register_bytes_group = 64 << 10,
  };
  if (d && !d->keeps_denormals) caps.flags |= PESTLE_TARGET_FLUSHES_DENORMALS;
  memcpy(caps.source_language, "opencl", sizeof "opencl");
  snprintf(caps.cpu, sizeof caps.cpu, "%.63s", d ? d->name : "generic");
  pestle_c_printer_describe(&target, &caps);
  pestle_plugin_give(&caps, sizeof caps, out_caps);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  *out_text = ((opencl_t*)self)->toolchain;
  return NULL;
}

// |source| NULL: the kernel's instructions.
static pestle_status_t print_text(const opencl_t* o, const pestle_kir_t* kernel,
                                  const pestle_source_text_t* source,
                                  const pestle_kernel_options_t* options,
                                  pestle_c_printer_kernel_t* out_printed) {
  const char* cpu = pestle_plugin_cpu_option(options);
  PESTLE_TRY(check_cpu(o, cpu));
  pestle_c_printer_target_t target = pestle_opencl_target(device_for(o, cpu));
  return pestle_c_printer_print_source(o->host, &target, kernel, source,
                                       out_printed);
}

pestle_status_t pestle_opencl_build(const opencl_t* o,
                                    const opencl_device_t* device,
                                    const void* source, size_t size,
                                    const char* flags,
                                    cl_program_t* out_program) {
  const char* text = source;
  int32_t error = 0;
  *out_program =
      o->cl->CreateProgramWithSource(device->context, 1, &text, &size, &error);
  if (error) {
    return PESTLE_PLUGIN_ERROR(
        o->host, INTERNAL, "clCreateProgramWithSource failed with %d", error);
  }
  char options[512];
  int length = snprintf(
      options, sizeof options, "-cl-std=CL1.2%s %s",
      device->exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
      flags ? flags : "");
  if (length >= (int)sizeof options) {
    o->cl->ReleaseProgram(*out_program);
    *out_program = NULL;
    return PESTLE_PLUGIN_ERROR(o->host, INVALID_ARGUMENT,
                               "the flags of a source have more than %zu bytes",
                               sizeof options);
  }
  error =
      o->cl->BuildProgram(*out_program, 1, &device->id, options, NULL, NULL);
  if (!error) return NULL;
  char log[2000] = "";
  o->cl->GetProgramBuildInfo(*out_program, device->id, CL_PROGRAM_BUILD_LOG,
                             sizeof log - 1, log, NULL);
  o->cl->ReleaseProgram(*out_program);
  *out_program = NULL;
  if (flags) {  // a person's text
    return PESTLE_PLUGIN_ERROR(o->host, INVALID_ARGUMENT,
                               "%s does not build the source: %s", device->name,
                               log);
  }
  return PESTLE_PLUGIN_ERROR(
      o->host, INTERNAL, "%s does not build what was printed (error %d): %s",
      device->name, error, log);
}

// The program's binary, which the caller frees; none when it has none.
static pestle_blob_t binary_of(const opencl_t* o, cl_program_t program) {
  size_t size = 0;
  pestle_blob_t blob = {NULL, 0};
  if (o->cl->GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size,
                            &size, NULL) ||
      size == 0) {
    return blob;
  }
  unsigned char* data = o->host->alloc(o->host->self, size);
  if (!data) return blob;
  if (o->cl->GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data,
                            NULL)) {
    o->host->free(o->host->self, data, size);
    return blob;
  }
  return (pestle_blob_t){data, size};
}

static pestle_status_t compile_source(void* self, const pestle_kir_t* kernel,
                                      const pestle_source_text_t* source,
                                      const pestle_kernel_options_t* options,
                                      pestle_blob_t* out_artifact) {
  const opencl_t* o = self;
  pestle_c_printer_kernel_t printed;
  pestle_blob_t binary = {NULL, 0};
  *out_artifact = (pestle_blob_t){NULL, 0};
  PESTLE_TRY(print_text(o, kernel, source, options, &printed));
  pestle_c_printer_artifact_t a =
      pestle_c_printer_artifact_of("opencl", kernel, &printed);
  if (source && source->whole) {
    snprintf(a.name, sizeof a.name, "%s", source->entry);
  }
  const opencl_device_t* device =
      device_for(o, pestle_plugin_cpu_option(options));
  pestle_status_t status = NULL;
  if (device) {
    cl_program_t program;
    status = pestle_opencl_build(o, device, a.text, a.text_size,
                                 source ? source->flags : NULL, &program);
    if (!status) {
      binary = binary_of(o, program);
      o->cl->ReleaseProgram(program);
      memcpy(a.made_for, device->made_for, sizeof a.made_for);
      a.binary = binary.data;
      a.binary_size = binary.size;
    }
  }
  if (!status)
    status = pestle_c_printer_artifact_pack(o->host, &a, out_artifact);
  if (binary.data) o->host->free(o->host->self, binary.data, binary.size);
  o->host->free(o->host->self, printed.text.data, printed.text.size);
  return status;
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  return compile_source(self, kernel, NULL, options, out_artifact);
}

static pestle_status_t print(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_text_t kind, pestle_blob_t* out_text) {
  const opencl_t* o = self;
  pestle_c_printer_kernel_t printed;
  *out_text = (pestle_blob_t){NULL, 0};
  if (kind != PESTLE_TEXT_SOURCE) {
    return PESTLE_PLUGIN_ERROR(
        o->host, UNSUPPORTED,
        "opencl hands source to its driver: there is no assembly to print");
  }
  PESTLE_TRY(print_text(o, kernel, NULL, options, &printed));
  *out_text = printed.text;
  return NULL;
}

static const pestle_target_api_t k_target = {
    .struct_size = sizeof k_target,
    .describe = describe,
    .toolchain_id = toolchain_id,
    .compile = compile,
    .print = print,
    .compile_source = compile_source,
};

// --- Entry points ---

static void start_devices(opencl_t* o) {
  cl_device_t ids[OPENCL_MAX_DEVICES];
  int32_t found = find_devices(o->cl, ids);
  for (int32_t i = 0; i < found; ++i) {
    opencl_device_t* d = &o->device[o->device_count];
    int32_t error = 0;
    memset(d, 0, sizeof *d);
    d->id = ids[i];
    d->context = o->cl->CreateContext(NULL, 1, &d->id, NULL, NULL, &error);
    if (error) continue;
    d->queue = o->cl->CreateCommandQueue(d->context, d->id, 0, &error);
    if (error) {
      o->cl->ReleaseContext(d->context);
      continue;
    }
    describe_device(o->cl, d);
    pthread_mutex_init(&d->lock, NULL);
    ++o->device_count;
  }
}

static void deinit(void* self) {
  opencl_t* o = self;
  for (int32_t i = 0; i < o->device_count; ++i) {
    o->cl->ReleaseCommandQueue(o->device[i].queue);
    o->cl->ReleaseContext(o->device[i].context);
    pthread_mutex_destroy(&o->device[i].lock);
  }
  o->host->free(o->host->self, o, sizeof *o);
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  char why[256] = "";
  opencl_t* o = pestle_plugin_state(host, sizeof *o, "opencl", out_status);
  if (!o) return NULL;
  o->host = host;
  o->cl = &o->functions;
  if (open_library(&o->functions, why, sizeof why)) start_devices(o);
  const opencl_device_t* d = first_device(o);
  snprintf(o->toolchain, sizeof o->toolchain, "opencl %s device=%s",
           PESTLE_PLUGIN_BUILD_ID, d ? d->made_for : "generic");
  o->backend = (pestle_backend_t){
      .struct_size = sizeof o->backend,
      .name = "opencl",
      .device_type = PESTLE_DEVICE_OPENCL,
      .score = !d               ? 0
               : d->is_software ? SCORE_CPU
                                : SCORE_GPU,
      .device_count = o->device_count,
      .self = o,
      .target = &k_target,
      .device = &pestle_opencl_device_api,
      .deinit = deinit,
  };
  return &o->backend;
}

#undef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE PESTLE_DEVICE_OPENCL
#undef PESTLE_BACKEND_ABI_FLAGS
#define PESTLE_BACKEND_ABI_FLAGS PESTLE_BACKEND_TARGET_ALONE
PESTLE_BACKEND_IMPL("opencl", PESTLE_PLUGIN_BUILD_ID, init)
PESTLE_BACKEND_SCORE_IMPL(score)
