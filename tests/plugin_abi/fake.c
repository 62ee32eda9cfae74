// SPDX-License-Identifier: Apache-2.0
// A backend without any function in it, built many times: each time one FAKE_
// definition makes it wrong in one way.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pestle/plugin.h"
#ifdef FAKE_OWN
#include "pestle_build_id.h"
#endif

// What a function may do instead of returning. The kernel sends the signal, so
// that no compiler and no sanitizer sees it coming.
__attribute__((unused)) static inline void misbehave_crash(void) {
  raise(SIGSEGV);
}
__attribute__((unused)) static inline void misbehave_abort(void) {
  abort();
}
__attribute__((unused)) static inline void misbehave_exit(void) {
  exit(0);
}
__attribute__((unused)) static inline void misbehave_quit(void) {
  _exit(3);
}
__attribute__((unused)) static inline void misbehave_hang(void) {
  for (;;)
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
}
// Half a second of work, however long that takes.
__attribute__((unused)) static inline void misbehave_work(void) {
  struct timespec used;
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < 500000000);
}
// The report's pipe among them, so that the host hears no more of it.
__attribute__((unused)) static inline void misbehave_close(void) {
  for (int file = 3; file < 64; ++file)
    close(file);
  misbehave_hang();
}
// What it leaves behind holds the pipe, and is in no group of its own.
__attribute__((unused)) static inline void misbehave_leave(void) {
  if (fork()) raise(SIGBUS);
  setsid();
  nanosleep(&(struct timespec){.tv_sec = 8}, NULL);
  _exit(0);
}
__attribute__((unused)) static inline void misbehave_flood(void) {
  static const char zeros[8192];
  for (;;) {
    for (int file = 3; file < 64; ++file) {
      ssize_t size = write(file, zeros, sizeof(zeros));
      (void)size;
    }
  }
}
__attribute__((unused)) static inline void misbehave_print(void) {
  printf("a plugin that prints\n");
  fflush(stdout);
}
// A line for each process that opens it.
__attribute__((unused)) static inline void misbehave_note(void) {
  const char* path = getenv("FAKE_NOTES");
  FILE* notes = path ? fopen(path, "a") : NULL;
  if (!notes) return;
  fprintf(notes, FAKE_NAME " %d\n", (int)getpid());
  fclose(notes);
}
// For what goes wrong by what lies around a file.
__attribute__((unused)) static inline void misbehave_if_told(void) {
  if (getenv("FAKE_CRASH")) misbehave_crash();
}
#define MISBEHAVE_(how) misbehave_##how()
#define MISBEHAVE(how) MISBEHAVE_(how)

#ifdef FAKE_CONSTRUCTOR
__attribute__((constructor)) static void at_load(void) {
  MISBEHAVE(FAKE_CONSTRUCTOR);
}
#endif

#ifndef FAKE_ID
#define FAKE_ID "fake-1"
#endif
#ifndef FAKE_SCORE
#define FAKE_SCORE 10
#endif
#ifndef FAKE_DEVICE_TYPE
#define FAKE_DEVICE_TYPE PESTLE_DEVICE_CPU
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif
#ifndef FAKE_MAJOR
#define FAKE_MAJOR PESTLE_ABI_MAJOR
#endif
#ifndef FAKE_MINOR
#define FAKE_MINOR PESTLE_ABI_MINOR
#endif
#ifndef FAKE_KIR_MAJOR
#define FAKE_KIR_MAJOR PESTLE_KIR_ABI_MAJOR
#endif
#ifndef FAKE_INFO_SIZE
#define FAKE_INFO_SIZE sizeof(pestle_backend_abi_info_t)
#endif
#ifndef FAKE_INST_SIZE
#define FAKE_INST_SIZE sizeof(pestle_kir_inst_t)
#endif
#ifndef FAKE_BUFFER_SIZE
#define FAKE_BUFFER_SIZE sizeof(pestle_kir_buffer_t)
#endif
#ifndef FAKE_KIR_SIZE
#define FAKE_KIR_SIZE sizeof(pestle_kir_t)
#endif
#ifndef FAKE_SANITIZERS
#define FAKE_SANITIZERS PESTLE_SANITIZERS_
#endif
#ifndef FAKE_TABLE_SIZE
#define FAKE_TABLE_SIZE sizeof(pestle_backend_t)
#endif
#ifndef FAKE_TABLE_NAME
#define FAKE_TABLE_NAME FAKE_NAME
#endif
#ifndef FAKE_PROPERTY_AT
#define FAKE_PROPERTY_AT 0
#endif
#ifndef FAKE_TABLE_SCORE
#define FAKE_TABLE_SCORE FAKE_SCORE
#endif

#ifdef FAKE_UNRESOLVED
void pestle_no_such_function(void);
#endif

#ifndef FAKE_NO_INFO
PESTLE_EXPORT const pestle_backend_abi_info_t* pestle_backend_abi_info(void);
const pestle_backend_abi_info_t* pestle_backend_abi_info(void) {
#ifdef FAKE_INFO
  MISBEHAVE(FAKE_INFO);
#endif
#ifdef FAKE_INFO_NULL
  return NULL;
#endif
  static const pestle_backend_abi_info_t info = {
      .struct_size = FAKE_INFO_SIZE,
      .abi_major = FAKE_MAJOR,
      .abi_minor = FAKE_MINOR,
      .sanitizers = FAKE_SANITIZERS,
      .kir_abi_major = FAKE_KIR_MAJOR,
      .sizeof_inst = FAKE_INST_SIZE,
      .sizeof_buffer = FAKE_BUFFER_SIZE,
      .sizeof_kir = FAKE_KIR_SIZE,
      .build_id = FAKE_ID,
#ifdef FAKE_SAYS_TYPE
      .device_type = FAKE_DEVICE_TYPE,
#endif
#ifdef FAKE_ALONE
      .flags = PESTLE_BACKEND_TARGET_ALONE,
#endif
#ifdef FAKE_OWN
      .host_build_id = PESTLE_BUILD_ID,
#endif
      .name = FAKE_NAME};
  return &info;
}
#endif

PESTLE_EXPORT int32_t pestle_backend_score(char* why, size_t capacity);
int32_t pestle_backend_score(char* why, size_t capacity) {
#ifdef FAKE_SCORES
  MISBEHAVE(FAKE_SCORES);
#endif
#if defined(FAKE_LONG_WHY)
  memset(why, 'x', capacity);  // without an end
  return 0;
#elif defined(FAKE_MUTE)
  (void)why, (void)capacity;
  return 0;
#elif defined(FAKE_ZERO_SCORE)
  strncpy(why, "the machine has no flux capacitor", capacity);
  return 0;
#else
  (void)why, (void)capacity;
  return FAKE_SCORE;
#endif
}

#if !defined(FAKE_NO_HALVES) && !defined(FAKE_FAILS) && \
    !defined(FAKE_SILENT) && !defined(FAKE_NO_INIT)
static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  (void)self, (void)cpu;
#ifdef FAKE_DESCRIBES
  MISBEHAVE(FAKE_DESCRIBES);
#endif
  memset(out_caps, 0, sizeof(*out_caps));
  out_caps->max_lanes = 1;
#ifdef FAKE_COMPILES
  // It claims all of f32, so that it is asked for kernels.
  out_caps->max_group_lanes = 1;
  out_caps->cores = 1;
  out_caps->vector_registers = 16;
  out_caps->scratch_bytes = 1 << 20;
  for (int op = 0;
       op < (int)(sizeof(out_caps->op_dtypes) / sizeof(out_caps->op_dtypes[0]));
       ++op)
    out_caps->op_dtypes[op] =
        1u << PESTLE_F32 | 1u << PESTLE_INDEX | 1u << PESTLE_I1;
#endif
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  (void)self;
  *out_text = "fake";
  return NULL;
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  (void)self, (void)kernel, (void)options, (void)out_artifact;
#ifdef FAKE_COMPILES
  MISBEHAVE(FAKE_COMPILES);
#endif
  return NULL;
}

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  (void)self, (void)device, (void)artifact, (void)size, (void)out_loaded;
  return NULL;
}

static void unload(void* self, pestle_loaded_t* loaded) {
  (void)self, (void)loaded;
}

#if defined(FAKE_PROPERTIES)
static pestle_status_t property(void* self, int32_t device, uint32_t index,
                                pestle_device_property_t* out_property) {
  (void)self, (void)device, (void)out_property;
  if (index == FAKE_PROPERTY_AT) MISBEHAVE(FAKE_PROPERTIES);
  return NULL;
}
#endif

#ifdef FAKE_MEMORY
// Each number of a device is FAKE_MEMORY + 10 * device + which, until it is set.
static uint64_t numbers[FAKE_DEVICES][8];
static bool is_set[FAKE_DEVICES][8];

static pestle_status_t memory_get(void* self, int32_t device,
                                  pestle_memory_t what, uint64_t* out_bytes) {
  (void)self;
  *out_bytes = is_set[device][what]
                   ? numbers[device][what]
                   : FAKE_MEMORY + 10 * (uint64_t)device + what;
  return NULL;
}

static pestle_status_t memory_set(void* self, int32_t device,
                                  pestle_memory_t what, uint64_t bytes,
                                  uint64_t* out_before) {
  if (out_before) (void)memory_get(self, device, what, out_before);
  is_set[device][what] = true;
  numbers[device][what] = bytes;
  return NULL;
}

static pestle_status_t property(void* self, int32_t device, uint32_t index,
                                pestle_device_property_t* out_property) {
  const pestle_host_t* host = self;
  if (index > 1) {
    return host->status_make(host->self, PESTLE_STATUS_NOT_FOUND, __FILE__,
                             __LINE__, "there are two");
  }
  out_property->is_text = index == 1;
  out_property->integer = device;
  strcpy(out_property->name, index ? "colour" : "number");
  strcpy(out_property->text, index ? "green" : "");
  return NULL;
}
#endif

#ifdef FAKE_SOFTWARE
// Bit |device| of it: the device says that it computes on the CPU.
static pestle_status_t property(void* self, int32_t device, uint32_t index,
                                pestle_device_property_t* out_property) {
  const pestle_host_t* host = self;
  if (index > 1) {
    return host->status_make(host->self, PESTLE_STATUS_NOT_FOUND, __FILE__,
                             __LINE__, "there are two");
  }
  out_property->is_text = false;
  out_property->integer = index ? FAKE_SOFTWARE >> device & 1 : 7 + device;
  strcpy(out_property->name, index ? "software" : "number");
  return NULL;
}
#endif

#ifdef FAKE_ALLOCATES
static pestle_status_t allocate(void* self, int32_t device, size_t size,
                                void** out_data) {
  (void)self, (void)device, (void)size;
  *out_data = NULL;
  return NULL;
}
#endif
#endif

#ifdef FAKE_DEINIT
static void deinit(void* self) {
  const pestle_host_t* host = self;
#ifdef FAKE_DEINITS
  MISBEHAVE(FAKE_DEINITS);
#endif
  host->log(host->self, 3, "fake backend " FAKE_NAME " ends");
}
#endif

#ifdef FAKE_LIBRARY
#ifndef FAKE_LIBRARY_SIZE
#define FAKE_LIBRARY_SIZE sizeof(pestle_library_api_t)
#endif
static bool takes_none(void* self, const pestle_library_op_t* op) {
  (void)self, (void)op;
  return false;
}
static pestle_status_t run_none(void* self, int32_t device,
                                pestle_device_stream_t* stream,
                                const pestle_library_op_t* op) {
  (void)self, (void)device, (void)stream, (void)op;
  return NULL;
}
static const pestle_library_api_t library = {
    .struct_size = FAKE_LIBRARY_SIZE,
#ifndef FAKE_NO_TAKES
    .takes = takes_none,
#endif
#ifndef FAKE_NO_RUN
    .run = run_none,
#endif
};
#endif

#ifdef FAKE_COLLECTIVE
#ifndef FAKE_COLLECTIVE_SIZE
#define FAKE_COLLECTIVE_SIZE sizeof(pestle_collective_api_t)
#endif
static pestle_status_t comm_id(void* self, uint8_t* out_id, size_t* size) {
  (void)self, (void)out_id, *size = 0;
  return NULL;
}
static pestle_status_t comm_create(void* self, int32_t device,
                                   const pestle_comm_options_t* options,
                                   pestle_comm_t** out_comm) {
  (void)self, (void)device, (void)options, *out_comm = NULL;
  return NULL;
}
static pestle_status_t comm_enqueue(void* self, pestle_comm_t* comm,
                                    pestle_device_stream_t* stream,
                                    const pestle_collective_t* ops,
                                    size_t count) {
  (void)self, (void)comm, (void)stream, (void)ops, (void)count;
  return NULL;
}
static pestle_status_t comm_register(void* self, pestle_comm_t* comm,
                                     void* data, size_t size,
                                     void** out_handle) {
  (void)self, (void)comm, (void)data, (void)size, *out_handle = NULL;
  return NULL;
}
static void comm_deregister(void* self, pestle_comm_t* comm, void* handle) {
  (void)self, (void)comm, (void)handle;
}
static pestle_status_t comm_poll(void* self, pestle_comm_t* comm) {
  (void)self, (void)comm;
  return NULL;
}
static void comm_abort(void* self, pestle_comm_t* comm, const char* reason) {
  (void)self, (void)comm, (void)reason;
}
static void comm_destroy(void* self, pestle_comm_t* comm) {
  (void)self, (void)comm;
}
// One that is whole, less the slot that a case leaves out.
static pestle_collective_api_t collective = {
    .struct_size = FAKE_COLLECTIVE_SIZE,
    .id = comm_id,
    .create = comm_create,
    .enqueue = comm_enqueue,
    .register_memory = comm_register,
    .deregister_memory = comm_deregister,
    .poll = comm_poll,
    .abort = comm_abort,
    .destroy = comm_destroy,
};
#endif

#ifndef FAKE_NO_INIT
PESTLE_EXPORT const pestle_backend_t* pestle_backend_init(
    const pestle_host_t* host, pestle_status_t* out_status);
const pestle_backend_t* pestle_backend_init(const pestle_host_t* host,
                                            pestle_status_t* out_status) {
#ifdef FAKE_UNRESOLVED
  pestle_no_such_function();
#endif
#ifdef FAKE_INIT
  MISBEHAVE(FAKE_INIT);
#endif
#ifdef FAKE_GARBAGE
  (void)host, (void)out_status;
  return (const pestle_backend_t*)(uintptr_t)FAKE_GARBAGE;
#endif
#if defined(FAKE_FAILS)
  *out_status = host->status_make(host->self, PESTLE_STATUS_UNAVAILABLE,
                                  __FILE__, __LINE__, "the moon is not full");
  return NULL;
#elif defined(FAKE_SILENT)
  (void)host, (void)out_status;
  return NULL;
#else
  host->log(host->self, 3, "fake backend starts");
  (void)out_status;
#ifndef FAKE_NO_HALVES
#ifdef FAKE_SHORT
  // As an older plugin: the tables end after the slots that all must have.
  static const pestle_target_api_t target = {
      .struct_size = offsetof(pestle_target_api_t, print),
      .describe = describe,
      .toolchain_id = toolchain_id,
      .compile = compile};
  static const pestle_device_api_t device = {
      .struct_size = offsetof(pestle_device_api_t, cpu_entry),
      .load = load,
      .unload = unload};
#else
#ifndef FAKE_TARGET_SIZE
#define FAKE_TARGET_SIZE sizeof(pestle_target_api_t)
#endif
#ifndef FAKE_DEVICE_SIZE
#define FAKE_DEVICE_SIZE sizeof(pestle_device_api_t)
#endif
  static const pestle_target_api_t target = {
      .struct_size = FAKE_TARGET_SIZE,
#ifndef FAKE_NO_DESCRIBE
      .describe = describe,
#endif
#ifndef FAKE_NO_TOOLCHAIN
      .toolchain_id = toolchain_id,
#endif
#ifndef FAKE_NO_COMPILE
      .compile = compile,
#endif
  };
  static const pestle_device_api_t device = {
      .struct_size = FAKE_DEVICE_SIZE,
#ifndef FAKE_NO_LOAD
      .load = load,
#endif
#ifndef FAKE_NO_UNLOAD
      .unload = unload,
#endif
#ifdef FAKE_ALLOCATES
      .allocate = allocate,
#endif
#ifdef FAKE_PROPERTIES
      .property = property,
#endif
#ifdef FAKE_SOFTWARE
      .property = property,
#endif
#ifdef FAKE_MEMORY
      .memory_get = memory_get,
      .memory_set = memory_set,
      .property = property,
#endif
  };
  // What a case leaves out of the table is not used.
  (void)describe, (void)toolchain_id, (void)compile, (void)load, (void)unload;
#endif
#endif
  static pestle_backend_t backend = {
      .struct_size = FAKE_TABLE_SIZE,
      .name = FAKE_TABLE_NAME,
      .device_type = FAKE_DEVICE_TYPE,
      .score = FAKE_TABLE_SCORE,
      .device_count = FAKE_DEVICES,
#ifndef FAKE_NO_HALVES
      .target = &target,
      .device = &device,
#endif
#ifdef FAKE_DEINIT
      .deinit = deinit,
#endif
#ifdef FAKE_LIBRARY
      .library = &library,
#endif
#ifdef FAKE_COLLECTIVE
      .collective = &collective,
#endif
  };
#ifdef FAKE_COLLECTIVE_LACKS
  collective.FAKE_COLLECTIVE_LACKS = NULL;
#endif
#ifdef FAKE_LIBRARY
  // What a case leaves out of the table is not used.
  (void)takes_none, (void)run_none;
#endif
  // The table is one for all hosts; only its properties look at |self|.
  backend.self = (void*)(uintptr_t)host;
  return &backend;
#endif
}
#endif
