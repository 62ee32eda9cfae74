// SPDX-License-Identifier: Apache-2.0
// A CUDA driver on threads: each stream has one, which works off a queue. Kernels
// are functions of the libraries that fake libnvrtc makes; memory is the host's,
// and copies check that they lie within an allocation.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"
#include "plugins/cuda/driver.h"

// Own prototypes, exported, of all that the plugin calls.
#define PESTLE_CUDA(name, parameters) \
  __attribute__((visibility("default"))) CUresult name parameters;
#include "plugins/cuda/driver.def"
#define EXPORT __attribute__((visibility("default")))

enum { MOST_BLOCKS = 4096, MOST_FUNCTIONS = 80, MOST_ARGUMENTS = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int live, faults, held;
static bool lost;  // a kernel failed: everything does from then on

// --- Tests' view ---

static struct {
  char name[64];
  int at, result;
} failure;
static struct {
  char name[48];
  int count;
} counts[MOST_FUNCTIONS];

static bool has_queued(void);

EXPORT void fake_cuda_fail(const char* function, int at, int result);
EXPORT void fake_cuda_fail(const char* function, int at, int result) {
  pthread_mutex_lock(&lock);
  snprintf(failure.name, sizeof failure.name, "%s", function);
  failure.at = at;
  failure.result = result;
  // What a lost device passes over is passed over whole: a wait that stayed behind
  // would not end.
  while (!result && lost && has_queued())
    pthread_cond_wait(&changed, &lock);
  if (!result) lost = false;
  pthread_mutex_unlock(&lock);
}
EXPORT int fake_cuda_live(void);
EXPORT int fake_cuda_live(void) {
  return live;
}
EXPORT int fake_cuda_faults(void);
EXPORT int fake_cuda_faults(void) {
  return faults;
}
EXPORT void fake_cuda_hold(int on);
EXPORT void fake_cuda_hold(int on) {
  pthread_mutex_lock(&lock);
  held = on;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

EXPORT void fake_cuda_lose(void);
EXPORT void fake_cuda_lose(void) {
  pthread_mutex_lock(&lock);
  lost = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static int* count_of(const char* name) {
  for (int i = 0; i < MOST_FUNCTIONS; ++i) {
    if (!*counts[i].name)
      snprintf(counts[i].name, sizeof counts[i].name, "%s", name);
    if (!strcmp(counts[i].name, name)) return &counts[i].count;
  }
  abort();
}
EXPORT int fake_cuda_calls(const char* function);
EXPORT int fake_cuda_calls(const char* function) {
  pthread_mutex_lock(&lock);
  int count = *count_of(function);
  pthread_mutex_unlock(&lock);
  return count;
}

// What the call is to fail with, or 0.
static CUresult note(const char* name) {
  pthread_mutex_lock(&lock);
  ++*count_of(name);
  CUresult result = 0;
  if (failure.result && !strcmp(failure.name, name) && --failure.at == 0) {
    result = failure.result;
  }
  if (!result && lost && strcmp(name, "cuGetErrorName") &&
      strcmp(name, "cuGetErrorString")) {
    result = CUDA_ERROR_LAUNCH_FAILED;
  }
  pthread_mutex_unlock(&lock);
  return result;
}
#define NOTE()                       \
  do {                               \
    CUresult noted = note(__func__); \
    if (noted) return noted;         \
  } while (0)
// Of calls that free what there is: they count, but do it all the same.
#define NOTE_END() (void)note(__func__)

// --- Devices and contexts ---

struct CUctx_st {
  int device;
};
static struct CUctx_st contexts[16];
static _Thread_local CUcontext stack[64];
static _Thread_local int depth;

static long number(const char* name, long usual) {
  const char* text = getenv(name);
  return text ? strtol(text, NULL, 10) : usual;
}
static CUresult need_context(void) {
  return depth ? 0 : 201;
}
#define NEED()                      \
  do {                              \
    NOTE();                         \
    if (need_context()) return 201; \
  } while (0)

CUresult cuInit(unsigned flags) {
  const char* text = getenv("FAKE_CUDA_FAIL");
  char name[64];
  int at, failed;
  if (text && sscanf(text, "%63[A-Za-z0-9_]:%d:%d", name, &at, &failed) == 3)
    fake_cuda_fail(name, at, failed);
  NOTE();
  return flags ? CUDA_ERROR_INVALID_VALUE : 0;
}
CUresult cuDriverGetVersion(int* version) {
  NOTE();
  *version = 13000;
  return 0;
}
CUresult cuGetErrorName(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                               : "CUDA_ERROR_OTHER";
  return 0;
}
CUresult cuGetErrorString(CUresult result, const char** text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "a failure";
  return 0;
}
CUresult cuDeviceGetCount(int* count) {
  NOTE();
  *count = (int)number("FAKE_CUDA_DEVICES", 1);
  return 0;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  NOTE();
  *device = index;
  return 0;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  NOTE();
  snprintf(name, (size_t)size, "Fake %d", device);
  return 0;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  NOTE();
  memset(uuid, device, sizeof *uuid);
  return 0;
}
CUresult cuDeviceTotalMem_v2(size_t* size, CUdevice device) {
  (void)device;
  NOTE();
  *size = (size_t)number("FAKE_CUDA_MEMORY", 4096) << 20;
  return 0;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what,
                              CUdevice device) {
  int capability = (int)number("FAKE_CUDA_CAPABILITY", 80);
  NOTE();
  *value =
      what == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK               ? 1024
      : what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK       ? 49152
      : what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448
      : what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
          ? 233472
      : what == CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK ? 1024
      : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? capability / 10
      : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? capability % 10
      : what == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 132
      : what == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE            ? 60 << 20
      : what == CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR ? 65536
      : what == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE                ? 3201000
      : what == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH          ? 6016
      : what == CU_DEVICE_ATTRIBUTE_CLOCK_RATE                       ? 1980000
      : what == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID                    ? device + 1
      : what == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS ? 1
                                                                  : 0;
  return 0;
}
static void add_live(int count) {
  pthread_mutex_lock(&lock);
  live += count;
  pthread_mutex_unlock(&lock);
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  NOTE();
  contexts[device].device = device;
  *context = &contexts[device];
  add_live(1);
  return 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  (void)device;
  NOTE_END();
  add_live(-1);
  return 0;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  NOTE();
  if (depth == 64) abort();
  stack[depth++] = context;
  return 0;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (!depth) return 201;
  *context = stack[--depth];
  return 0;
}

// --- Memory ---

static struct {
  char* data;
  size_t size;
  bool host;
  CUcontext context;
} blocks[MOST_BLOCKS];

static int block_of(const char* data, size_t size) {
  for (int i = 0; i < MOST_BLOCKS; ++i) {
    if (blocks[i].data && data >= blocks[i].data &&
        data + size <= blocks[i].data + blocks[i].size) {
      return i;
    }
  }
  return -1;
}

static CUresult add_block(char** out_data, size_t size, bool host) {
  size_t used = 0;
  int at = -1;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST_BLOCKS; ++i) {
    if (!blocks[i].data) at = i;
    if (blocks[i].data && !blocks[i].host) used += blocks[i].size;
  }
  bool fits = host || used + size <= (size_t)number("FAKE_CUDA_MEMORY", 4096)
                                         << 20;
  char* data =
      fits && at >= 0 ? aligned_alloc(512, (size + 511) / 512 * 512) : NULL;
  if (data) {
    memset(data, 0xe7, size);
    blocks[at].data = data;
    blocks[at].size = size;
    blocks[at].host = host;
    blocks[at].context = depth ? stack[depth - 1] : NULL;
    ++live;
    *out_data = data;
    result = 0;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static bool is_used(const char* data, size_t size);

static CUresult remove_block(char* data) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  int at = block_of(data, 0);
  if (at >= 0 && blocks[at].data == data) {
    if (is_used(data, blocks[at].size)) ++faults;
    blocks[at].data = NULL;
    free(data);
    --live;
    result = 0;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr* data, size_t size) {
  char* made = NULL;
  NEED();
  CUresult result = add_block(&made, size, false);
  *data = (CUdeviceptr)(uintptr_t)made;
  return result;
}
CUresult cuMemFree_v2(CUdeviceptr data) {
  NOTE_END();
  return remove_block((char*)(uintptr_t)data);
}
CUresult cuMemHostAlloc(void** data, size_t size, unsigned flags) {
  char* made = NULL;
  (void)flags;
  NEED();
  CUresult result = add_block(&made, size, true);
  *data = made;
  return result;
}
CUresult cuMemFreeHost(void* data) {
  NOTE_END();
  return remove_block(data);
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* data,
                                      unsigned flags) {
  (void)flags;
  NEED();
  *address = (CUdeviceptr)(uintptr_t)data;
  return 0;
}
// Of memory that it does not know 0, and no error.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* what,
                                void** values, CUdeviceptr data) {
  NEED();
  pthread_mutex_lock(&lock);
  int at = block_of((const char*)(uintptr_t)data, 0);
  for (unsigned i = 0; i < count; ++i) {
    CUcontext context = at < 0 ? NULL : blocks[at].context;
    switch (what[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned*)values[i] = at < 0 ? 0 : blocks[at].host ? 1 : 2;
        break;
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext*)values[i] = context;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int*)values[i] = context ? context->device : -2;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr*)values[i] =
            at < 0 ? 0 : (CUdeviceptr)(uintptr_t)blocks[at].data;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t*)values[i] = at < 0 ? 0 : blocks[at].size;
        break;
    }
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

static CUresult check_range(CUdeviceptr data, size_t size) {
  pthread_mutex_lock(&lock);
  int at = block_of((const char*)(uintptr_t)data, size);
  bool ok = at >= 0 && !blocks[at].host;
  pthread_mutex_unlock(&lock);
  return ok ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  NEED();
  if (check_range(from, size)) return CUDA_ERROR_INVALID_VALUE;
  memcpy(to, (const void*)(uintptr_t)from, size);
  return 0;
}

// --- Modules ---

struct CUmod_st {
  void* library;
  bool copies, foreign;  // the plugin's own PTX; a cubin of the real NVRTC
};
struct CUfunc_st {
  CUmodule module;
  fake_entry_t entry;
  unsigned char* shared;
  int shared_most;
};
// One function of each module is asked for.
struct module_t {
  struct CUmod_st module;
  struct CUfunc_st function;
};

static size_t elf_size(const unsigned char* image) {
  uint64_t sections;
  uint16_t size, count;
  memcpy(&sections, image + 0x28, 8);
  memcpy(&size, image + 0x3a, 2);
  memcpy(&count, image + 0x3c, 2);
  return (size_t)sections + (size_t)size * count;
}

// The loader knows libraries by their names: each needs one of its own.
static void* open_image(const unsigned char* image) {
  char path[] = "/tmp/pestle-fake-XXXXXX";
  size_t size = elf_size(image);
  int file = mkstemp(path);
  if (file < 0) return NULL;
  bool ok = write(file, image, size) == (ssize_t)size;
  close(file);
  void* library = ok ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  unlink(path);
  return library;
}

CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  const unsigned char* bytes = image;
  uint16_t machine = 0;
  (void)count, (void)options, (void)values;
  NEED();
  struct module_t* m = calloc(1, sizeof *m);
  if (!memcmp(bytes, "\177ELF", 4)) {
    memcpy(&machine, bytes + 0x12, 2);
    m->module.foreign = machine == 190;
    if (!m->module.foreign) m->module.library = open_image(bytes);
  } else {
    m->module.copies = strstr(image, ".entry pestle_copy(") != NULL;
  }
  if (!m->module.foreign && !m->module.copies && !m->module.library) {
    free(m);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  add_live(1);
  *out = &m->module;
  return 0;
}
CUresult cuModuleUnload(CUmodule module) {
  NOTE_END();
  if (module->library) dlclose(module->library);
  free(module);
  add_live(-1);
  return 0;
}

static void run_copy(fake_shim_t* shim, void** arguments) {
  if (shim->thread.x || shim->block.x) return;
  const char* from = *(const char**)arguments[0];
  char* to = *(char**)arguments[1];
  memcpy(to, from, (size_t)*(uint64_t*)arguments[4]);
}

CUresult cuModuleGetFunction(CUfunction* out, CUmodule module,
                             const char* name) {
  CUfunction f = &((struct module_t*)module)->function;
  NEED();
  f->module = module;
  f->shared_most = 49152;
  if (module->copies) f->entry = run_copy;
  if (module->library) {
    // The kernel itself must be there too.
    if (!dlsym(module->library, name)) return CUDA_ERROR_NOT_FOUND;
    *(void**)&f->entry = dlsym(module->library, "pestle_shim_entry");
    f->shared = dlsym(module->library, "pestle_shared");
  }
  *out = f;
  return 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute what,
                            int value) {
  NEED();
  if (what == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    f->shared_most = value;
  }
  return 0;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute what,
                            CUfunction f) {
  (void)what, (void)f;
  NEED();
  *value = 0;
  return 0;
}

// --- Streams ---

struct CUevent_st {
  unsigned recorded, done;  // how often
  int holders;              // of the driver's own queues
  bool gone;
  CUgraph graph;  // that its latest recording is part of
  int lane;       // where
  bool waited;    // within the graph
};

typedef enum kind_t {
  COPY,
  LAUNCH,
  HOST,
  RECORD,
  WAIT,
  WAIT_VALUE,
  WRITE_VALUE,
  WRITE_WORD,
  FILL
} kind_t;
typedef struct op_t {
  struct op_t* next;
  kind_t kind;
  const void* from;
  void* to;
  size_t size;
  CUevent event;
  unsigned ticket;
  CUhostFn call;
  void* user;
  void (*hold)(void* user, int count);  // of a recorded call, or NULL
  const _Atomic(uint64_t)* word;
  uint64_t value;
  CUfunction function;
  fake_launch_t launch;
  uint64_t arguments[MOST_ARGUMENTS];
  uint32_t argument_count;
  bool early;       // may begin before the one in front of it ends
  int lane;         // of a graph: which of its streams
  uint64_t serial;  // when it was queued
} op_t;

enum { MOST_LANES = 4, MOST_GRAPH_EVENTS = 256 };
struct CUgraph_st {
  op_t *head, **tail;
  int lanes;                     // the first is of the stream that began
  CUstream streams[MOST_LANES];  // while it is recorded
  CUevent
      latest[MOST_LANES];  // a lane's last op is the recording of it, or NULL
  bool in_kernel[MOST_LANES];  // a lane's last op is a kernel that waits
};
struct CUgraphExec_st {
  op_t* head;
  int lanes;
  CUstream streams[MOST_LANES];  // its own, from the second on
  // Events of the program, and what a launch uses instead.
  CUevent theirs[MOST_GRAPH_EVENTS], own[MOST_GRAPH_EVENTS];
  int event_count;
};
struct CUstream_st {
  struct CUstream_st* next;
  pthread_t thread;
  op_t *head, **tail, *current;
  bool stop;
  bool orphan;  // nobody joins it: it frees itself
  CUgraph capture;
  int lane;
};
static CUstream streams;
static int
    beside;  // kernels that began before a function queued earlier had ended
static uint64_t serials;

__attribute__((destructor)) static void tell_beside(void) {
  const char* path = getenv("FAKE_CUDA_BESIDE");
  FILE* file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%d\n", beside);
  (void)fclose(file);
}

static bool has_queued(void) {
  for (CUstream s = streams; s; s = s->next) {
    if (s->head || s->current) return true;
  }
  return false;
}

static bool op_uses(const op_t* op, const char* data, size_t size) {
  const char *from = op->from, *to = op->to, *end = data + size;
  if (op->kind == COPY) {
    return (from < end && data < from + op->size) ||
           (to < end && data < to + op->size);
  }
  for (uint32_t i = 0; op->kind == LAUNCH && i < op->argument_count; ++i) {
    const char* argument = (const char*)(uintptr_t)op->arguments[i];
    if (argument >= data && argument < end) return true;
  }
  return false;
}
static bool is_used(const char* data, size_t size) {
  for (CUstream s = streams; s; s = s->next) {
    if (s->current && op_uses(s->current, data, size)) return true;
    for (const op_t* op = s->head; op; op = op->next) {
      if (op_uses(op, data, size)) return true;
    }
  }
  return false;
}

static void drop_event(CUevent event) {
  if (--event->holders == 0 && event->gone) free(event);
}

// How many lanes of |f|'s launches have waited for the kernel before them; NULL: its text
// cannot.
static unsigned long* waits_of(CUfunction f) {
  return f->module->library ? dlsym(f->module->library, "pestle_shim_waits")
                            : NULL;
}

// Each lane of a kernel that begins early waits.
static void check_waits(const op_t* op, unsigned long before) {
  const fake_dim_t *grid = &op->launch.grid, *group = &op->launch.group;
  const unsigned long* waits = waits_of(op->function);
  unsigned long lanes = (unsigned long)grid->x * grid->y * grid->z * group->x *
                        group->y * group->z;
  if (waits && __atomic_load_n(waits, __ATOMIC_RELAXED) - before >= lanes)
    return;
  pthread_mutex_lock(&lock);
  ++faults;
  pthread_mutex_unlock(&lock);
}

static void run_launch(op_t* op) {
  void* arguments[MOST_ARGUMENTS];
  const unsigned long* waits = waits_of(op->function);
  unsigned long before = waits ? __atomic_load_n(waits, __ATOMIC_RELAXED) : 0;
  for (uint32_t i = 0; i < op->argument_count; ++i)
    arguments[i] = &op->arguments[i];
  op->launch.arguments = arguments;
  if (!fake_run(&op->launch)) {
    fake_cuda_lose();
  } else if (op->early) {
    check_waits(op, before);
  }
}

// Without the lock.
static void run_op(op_t* op) {
  if (op->kind == COPY) memcpy(op->to, op->from, op->size);
  if (op->kind == FILL) memset(op->to, (int)op->value, op->size);
  if (op->kind == WRITE_VALUE)
    atomic_store((_Atomic(uint64_t)*)op->to, op->value);
  if (op->kind == WRITE_WORD)
    atomic_store((_Atomic(uint32_t)*)op->to, (uint32_t)op->value);
  if (op->kind == LAUNCH) run_launch(op);
  if (op->kind == HOST) op->call(op->user);
}

// The lock is held; false: not yet.
static bool may_run(const op_t* op) {
  if (held) return false;
  if (lost) return true;
  if (op->kind == WAIT) return op->event->done >= op->ticket;
  if (op->kind == WAIT_VALUE) {
    uint64_t now = atomic_load_explicit(op->word, memory_order_acquire);
    return (int64_t)(now - op->value) >= 0;
  }
  return true;
}

// A word in memory changes without a word to us.
static void wait_a_moment(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  pthread_cond_timedwait(&changed, &lock, &until);
}

// The lock is held.
static bool is_beside(const op_t* launch) {
  for (CUstream t = streams; t; t = t->next) {
    const op_t* now = t->current;
    if (now && now->kind == HOST && now->serial < launch->serial) return true;
    for (now = t->head; now; now = now->next) {
      if (now->kind == HOST && now->serial < launch->serial) return true;
    }
  }
  return false;
}

// Of one on which nothing is queued. The lock is held.
static void forget_stream(CUstream s) {
  CUstream* at = &streams;
  while (*at != s)
    at = &(*at)->next;
  *at = s->next;
  free(s);
}

static void* stream_main(void* user) {
  CUstream s = user;
  pthread_mutex_lock(&lock);
  for (;;) {
    if (!s->head && s->stop) break;
    if (!s->head) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    if (!may_run(s->head)) {
      wait_a_moment();
      continue;
    }
    op_t* op = s->head;
    s->head = op->next;
    if (!s->head) s->tail = &s->head;
    s->current = op;
    if (op->kind == LAUNCH) beside += is_beside(op);
    bool broken = lost;
    pthread_mutex_unlock(&lock);
    if (!broken) run_op(op);
    pthread_mutex_lock(&lock);
    if (op->kind == RECORD && op->event->done < op->ticket) {
      op->event->done = op->ticket;
    }
    if (op->event) drop_event(op->event);
    s->current = NULL;
    free(op);
    pthread_cond_broadcast(&changed);
  }
  if (s->orphan) forget_stream(s);
  pthread_mutex_unlock(&lock);
  return NULL;
}

// Queues a copy of |op|, or records it. The lock is held.
static void push_locked(CUstream s, const op_t* op) {
  op_t* copy = malloc(sizeof *copy);
  *copy = *op;
  copy->next = NULL;
  if (s->capture) {
    if (copy->hold) copy->hold(copy->user, 1);
    copy->lane = s->lane;
    // Edges of a graph that let a kernel begin early are between kernels.
    if (op->early && !s->capture->in_kernel[s->lane]) ++faults;
    s->capture->in_kernel[s->lane] =
        op->kind == LAUNCH && waits_of(op->function);
    s->capture->latest[s->lane] = op->kind == RECORD ? op->event : NULL;
    *s->capture->tail = copy;
    s->capture->tail = &copy->next;
    return;
  }
  copy->serial = ++serials;
  if (copy->event) ++copy->event->holders;
  *s->tail = copy;
  s->tail = &copy->next;
  pthread_cond_broadcast(&changed);
}
static CUresult push(CUstream s, const op_t* op) {
  pthread_mutex_lock(&lock);
  push_locked(s, op);
  pthread_mutex_unlock(&lock);
  return 0;
}

static CUstream start_stream(void) {
  CUstream s = calloc(1, sizeof *s);
  s->tail = &s->head;
  pthread_mutex_lock(&lock);
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&lock);
  pthread_create(&s->thread, NULL, stream_main, s);
  return s;
}

CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  (void)flags;
  NEED();
  *out = start_stream();
  add_live(1);
  return 0;
}
CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags,
                                    int priority) {
  (void)flags, (void)priority;
  NEED();
  *out = start_stream();
  add_live(1);
  return 0;
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  NEED();
  *least = 0;
  *greatest = -5;
  return 0;
}
CUresult cuStreamDestroy_v2(CUstream s) {
  NOTE_END();
  pthread_mutex_lock(&lock);
  s->stop = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  pthread_join(s->thread, NULL);
  pthread_mutex_lock(&lock);
  forget_stream(s);
  --live;
  pthread_mutex_unlock(&lock);
  return 0;
}
CUresult cuStreamSynchronize(CUstream s) {
  NEED();
  if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  pthread_mutex_lock(&lock);
  while (s->head || s->current)
    pthread_cond_wait(&changed, &lock);
  CUresult result = lost ? CUDA_ERROR_LAUNCH_FAILED : 0;
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuStreamQuery(CUstream s) {
  NEED();
  pthread_mutex_lock(&lock);
  bool busy = s->head || s->current;
  CUresult result = lost   ? CUDA_ERROR_LAUNCH_FAILED
                    : busy ? CUDA_ERROR_NOT_READY
                           : 0;
  pthread_mutex_unlock(&lock);
  return result;
}

static CUresult copy(CUstream s, const void* from, void* to, size_t size) {
  op_t op = {.kind = COPY, .from = from, .to = to, .size = size};
  return push(s, &op);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size,
                              CUstream s) {
  NEED();
  if (check_range(to, size)) return CUDA_ERROR_INVALID_VALUE;
  return copy(s, from, (void*)(uintptr_t)to, size);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size,
                              CUstream s) {
  NEED();
  if (check_range(from, size)) return CUDA_ERROR_INVALID_VALUE;
  return copy(s, (const void*)(uintptr_t)from, to, size);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size,
                              CUstream s) {
  NEED();
  if (check_range(to, size) || check_range(from, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return copy(s, (const void*)(uintptr_t)from, (void*)(uintptr_t)to, size);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context,
                           CUdeviceptr from, CUcontext from_context,
                           size_t size, CUstream s) {
  NEED();
  if (!to_context || !from_context) return 201;
  if (check_range(to, size) || check_range(from, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return copy(s, (const void*)(uintptr_t)from, (void*)(uintptr_t)to, size);
}

// A kernel of the plugin has as many arguments as its text, which alone knows
// them: those are counted by a word of the library.
static uint32_t argument_count(CUfunction f) {
  if (f->module->copies) return 5;
  const uint32_t* count = dlsym(f->module->library, "pestle_shim_arguments");
  return count ? *count : 0;
}

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                       unsigned bx, unsigned by, unsigned bz, unsigned shared,
                       CUstream s, void** arguments, void** extra, bool early) {
  if (early && !s->capture) return CUDA_ERROR_INVALID_VALUE;  // by choice
  if (extra || !gx || !gy || !gz || gy > 65535 || gz > 65535 ||
      bx * by * bz > 1024 || (int)shared > f->shared_most) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (f->module->foreign) return CUDA_ERROR_NOT_SUPPORTED;
  op_t op = {.kind = LAUNCH,
             .function = f,
             .launch = {.entry = f->entry,
                        .grid = {gx, gy, gz},
                        .group = {bx, by, bz},
                        .shared = f->shared,
                        .shared_bytes = shared},
             .argument_count = argument_count(f),
             .early = early};
  for (uint32_t i = 0; i < op.argument_count; ++i)
    memcpy(&op.arguments[i], arguments[i], 8);
  return push(s, &op);
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream s, void** arguments, void** extra) {
  NEED();
  return launch(f, gx, gy, gz, bx, by, bz, shared, s, arguments, extra, false);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f,
                          void** arguments, void** extra) {
  NEED();
  if (c->numAttrs == 1 && c->attrs->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
    return CUDA_ERROR_NOT_SUPPORTED;  // its groups run one after the other
  }
  if (c->numAttrs != 1 ||
      c->attrs->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
      c->attrs->value.programmaticStreamSerializationAllowed != 1) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return launch(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
                c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream,
                arguments, extra, true);
}
CUresult cuLaunchHostFunc(CUstream s, CUhostFn call, void* user) {
  NEED();
  op_t op = {.kind = HOST, .call = call, .user = user};
  return push(s, &op);
}
// One that graphs may hold: |hold| is told of each that comes and goes.
EXPORT CUresult fake_cuda_held_call(CUstream s, CUhostFn call, void* user,
                                    void (*hold)(void* user, int count));
EXPORT CUresult fake_cuda_held_call(CUstream s, CUhostFn call, void* user,
                                    void (*hold)(void* user, int count)) {
  NEED();
  op_t op = {.kind = HOST, .call = call, .user = user, .hold = hold};
  return push(s, &op);
}

// --- Events ---

CUresult cuEventCreate(CUevent* out, unsigned flags) {
  (void)flags;
  NEED();
  *out = calloc(1, sizeof **out);
  add_live(1);
  return 0;
}
CUresult cuEventDestroy_v2(CUevent event) {
  NOTE_END();
  pthread_mutex_lock(&lock);
  event->gone = true;
  bool free_now = !event->holders;
  --live;
  pthread_mutex_unlock(&lock);
  if (free_now) free(event);
  return 0;
}
CUresult cuEventRecord(CUevent event, CUstream s) {
  NEED();
  pthread_mutex_lock(&lock);
  event->graph = s->capture;
  event->lane = s->lane;
  event->waited = false;
  if (!s->capture) ++event->recorded;
  op_t op = {.kind = RECORD, .event = event, .ticket = event->recorded};
  push_locked(s, &op);
  pthread_mutex_unlock(&lock);
  return 0;
}
CUresult cuEventQuery(CUevent event) {
  NOTE();
  pthread_mutex_lock(&lock);
  bool done = event->done >= event->recorded;
  pthread_mutex_unlock(&lock);
  return done ? 0 : CUDA_ERROR_NOT_READY;
}
CUresult cuEventSynchronize(CUevent event) {
  NOTE();
  pthread_mutex_lock(&lock);
  ++event->holders;
  unsigned ticket = event->recorded;
  while (event->done < ticket && !lost)
    pthread_cond_wait(&changed, &lock);
  drop_event(event);
  CUresult result = lost ? CUDA_ERROR_LAUNCH_FAILED : 0;
  pthread_mutex_unlock(&lock);
  return result;
}
// The lock is held.
static void join_capture(CUstream s, CUgraph graph) {
  bool records = false;
  for (const struct CUstream_st* t = streams; t; t = t->next)
    records |= t->capture == graph;
  if (!records || graph->lanes == MOST_LANES) {
    ++faults;  // the event is of a recording that has ended
    return;
  }
  s->capture = graph;
  s->lane = graph->lanes;
  graph->streams[graph->lanes++] = s;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent event, unsigned flags) {
  NEED();
  pthread_mutex_lock(&lock);
  // A graph takes no event of outside that it is not told of, and its own are nothing
  // outside of it; a stream that waits for one of them is recorded from then on.
  if (event->graph && !s->capture) join_capture(s, event->graph);
  if (s->capture != event->graph && flags != CU_EVENT_WAIT_EXTERNAL) ++faults;
  if (event->graph) event->waited = true;
  op_t op = {.kind = WAIT, .event = event, .ticket = event->recorded};
  push_locked(s, &op);
  pthread_mutex_unlock(&lock);
  return 0;
}
CUresult cuStreamWaitValue64_v2(CUstream s, CUdeviceptr word, cuuint64_t value,
                                unsigned flags) {
  NEED();
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_INVALID_VALUE;
  op_t op = {.kind = WAIT_VALUE,
             .word = (const _Atomic(uint64_t)*)(uintptr_t)word,
             .value = value};
  return push(s, &op);
}

CUresult cuStreamWriteValue64_v2(CUstream s, CUdeviceptr word, cuuint64_t value,
                                 unsigned flags) {
  NEED();
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  if (s->capture && number("FAKE_CUDA_NO_RECORDED_WRITES", 0))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  op_t op = {.kind = WRITE_VALUE, .to = (void*)(uintptr_t)word, .value = value};
  return push(s, &op);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size,
                         CUstream s) {
  NEED();
  if (check_range(to, size)) return CUDA_ERROR_INVALID_VALUE;
  op_t op = {
      .kind = FILL, .to = (void*)(uintptr_t)to, .size = size, .value = value};
  return push(s, &op);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                          CUstream s) {
  NEED();
  if (count != 1 || check_range(to, 4)) return CUDA_ERROR_INVALID_VALUE;
  op_t op = {.kind = WRITE_WORD, .to = (void*)(uintptr_t)to, .value = value};
  return push(s, &op);
}

// --- Graphs ---

static void free_ops(op_t* op) {
  while (op) {
    op_t* next = op->next;
    if (op->hold) op->hold(op->user, -1);
    free(op);
    op = next;
  }
}
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
  (void)mode;
  NEED();
  s->capture = calloc(1, sizeof *s->capture);
  s->capture->tail = &s->capture->head;
  s->capture->lanes = 1;
  s->capture->streams[0] = s;
  s->lane = 0;
  return 0;
}
CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* out) {
  NEED();
  *out = s->capture ? 1 : CU_STREAM_CAPTURE_STATUS_NONE;
  return 0;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph* out) {
  CUgraph graph = s->capture;
  CUresult result = note(__func__);
  // All work of the other streams ends in an event that is waited for.
  for (int i = 0; i < graph->lanes; ++i) {
    CUevent last = graph->latest[i];
    if (i && !result && !(last && last->graph == graph && last->waited))
      result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    graph->streams[i]->capture = NULL;
  }
  if (result) {
    free_ops(graph->head);
    free(graph);
    return result;
  }
  add_live(1);
  *out = graph;
  return 0;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph,
                                     unsigned long long flags) {
  (void)flags;
  NEED();
  *out = calloc(1, sizeof **out);
  (*out)->lanes = graph->lanes;
  for (int i = 1; i < graph->lanes; ++i)
    (*out)->streams[i] = start_stream();
  op_t** tail = &(*out)->head;
  for (const op_t* op = graph->head; op; op = op->next) {
    *tail = malloc(sizeof **tail);
    **tail = *op;
    (*tail)->next = NULL;
    if (op->hold) op->hold(op->user, 1);
    tail = &(*tail)->next;
  }
  add_live(1);
  return 0;
}
CUresult cuGraphUpload(CUgraphExec graph, CUstream s) {
  (void)graph, (void)s;
  NEED();
  return 0;
}
static CUevent event_of(CUgraphExec graph, CUevent theirs) {
  for (int i = 0; i < graph->event_count; ++i) {
    if (graph->theirs[i] == theirs) return graph->own[i];
  }
  if (graph->event_count == MOST_GRAPH_EVENTS) abort();
  graph->theirs[graph->event_count] = theirs;
  return graph->own[graph->event_count++] = calloc(1, sizeof *theirs);
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream s) {
  NEED();
  pthread_mutex_lock(&lock);
  for (const op_t* op = graph->head; op; op = op->next) {
    op_t now = *op;
    // Of a graph of several streams: an event of outside that it waits for keeps its own.
    if (graph->lanes > 1 && (op->kind == RECORD || op->kind == WAIT)) {
      now.event = event_of(graph, op->event);
      if (op->kind == RECORD) ++now.event->recorded;
      now.ticket = now.event->recorded;
    }
    push_locked(op->lane ? graph->streams[op->lane] : s, &now);
  }
  pthread_mutex_unlock(&lock);
  return 0;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  NOTE_END();
  // What was launched goes on.
  pthread_mutex_lock(&lock);
  for (int i = 1; i < graph->lanes; ++i) {
    pthread_detach(graph->streams[i]->thread);
    graph->streams[i]->stop = graph->streams[i]->orphan = true;
  }
  for (int i = 0; i < graph->event_count; ++i) {
    graph->own[i]->gone = true;
    if (!graph->own[i]->holders) free(graph->own[i]);
  }
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  free_ops(graph->head);
  free(graph);
  add_live(-1);
  return 0;
}
CUresult cuGraphDestroy(CUgraph graph) {
  NOTE_END();
  free_ops(graph->head);
  free(graph);
  add_live(-1);
  return 0;
}

// The real NVRTC asks for one, to learn of limits that a driver may set.
EXPORT CUresult cuGetExportTable(const void** table, const CUuuid* id);
EXPORT CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  (void)id;
  *table = NULL;
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Kernels with tiles do not run here: their text is PTX.
EXPORT CUresult cuTensorMapEncodeIm2col(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
    const cuuint64_t* extents, const cuuint64_t* strides, const int* low,
    const int* high, cuuint32_t channels, cuuint32_t pixels,
    const cuuint32_t* steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  (void)map, (void)type, (void)rank, (void)base, (void)extents, (void)strides;
  (void)low, (void)high, (void)channels, (void)pixels, (void)steps;
  (void)interleave, (void)swizzle, (void)promotion, (void)fill;
  return CUDA_ERROR_NOT_SUPPORTED;
}
EXPORT CUresult cuTensorMapEncodeTiled(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
    const cuuint64_t* extents, const cuuint64_t* strides,
    const cuuint32_t* boxes, const cuuint32_t* steps,
    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  (void)map, (void)type, (void)rank, (void)base, (void)extents, (void)strides;
  (void)boxes, (void)steps, (void)interleave, (void)swizzle, (void)promotion;
  (void)fill;
  return CUDA_ERROR_NOT_SUPPORTED;
}
