// SPDX-License-Identifier: Apache-2.0
// A whole backend in two files: it prints each kernel as C (print_c.c), has the
// system's C compiler make a library of it, and calls that. Built from the
// installed headers of Pestle alone; README.md walks through it.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "print_c.h"

extern char** environ;

// --- Statuses: always the host's ---

#define ERROR(host, code, ...) \
  make_error(host, PESTLE_STATUS_##code, __LINE__, __VA_ARGS__)

static pestle_status_t make_error(const pestle_host_t* host, int32_t code,
                                  int32_t line, const char* format, ...)
    PESTLE_PRINTF(4, 5);

static pestle_status_t make_error(const pestle_host_t* host, int32_t code,
                                  int32_t line, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return host->status_make(host->self, code, "example.c", line, text);
}

// One for each host: two contexts share nothing.
typedef struct state_t {
  pestle_backend_t backend;
  const pestle_host_t* host;
  char toolchain[PATH_MAX + 96];
} state_t;

// --- The toolchain ---

// The first `cc` of PATH. Looking does not run it.
static bool find_cc(char path[PATH_MAX]) {
  const char* rest = getenv("PATH");
  while (rest && *rest) {
    size_t size = strcspn(rest, ":");
    if (size && size < PATH_MAX - 4) {
      snprintf(path, PATH_MAX, "%.*s/cc", (int)size, rest);
      if (access(path, X_OK) == 0) return true;
    }
    rest += size + (rest[size] == ':');
  }
  return false;
}

// What would change the code: flags, and which file the compiler is.
#define FLAGS "-O2 -ffp-contract=off -fno-strict-aliasing -fwrapv"

static void write_toolchain_id(state_t* state) {
  char cc[PATH_MAX];
  struct stat info;
  if (!find_cc(cc) || stat(cc, &info) != 0) memset(&info, 0, sizeof info);
  snprintf(state->toolchain, sizeof state->toolchain, "example-1 %s %lld %lld",
           FLAGS, (long long)info.st_size, (long long)info.st_mtime);
}

static bool write_file(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wbx");
  if (!file) return false;
  bool written = fwrite(data, 1, size, file) == size;
  return fclose(file) == 0 && written;
}

// A folder that nobody else can look into.
static bool make_folder(char path[PATH_MAX]) {
  const char* base = getenv("TMPDIR");
  snprintf(path, PATH_MAX, "%s/pestle-example-XXXXXX",
           base && *base ? base : "/tmp");
  return mkdtemp(path) != NULL;
}

static void remove_folder(const char* folder) {
  static const char* const files[] = {"kernel.c", "kernel.so"};
  char path[PATH_MAX + 16];
  for (size_t i = 0; i < 2; ++i) {
    snprintf(path, sizeof path, "%s/%s", folder, files[i]);
    (void)unlink(path);
  }
  (void)rmdir(folder);
}

static pestle_status_t run_cc(const pestle_host_t* host, const char* source,
                              const char* library) {
  char cc[PATH_MAX];
  if (!find_cc(cc)) {
    return ERROR(host, UNAVAILABLE,
                 "there is no C compiler 'cc' on PATH; install one");
  }
  const char* arguments[] = {cc,
                             "-std=c11",
                             "-O2",
                             "-ffp-contract=off",
                             "-fno-strict-aliasing",
                             "-fwrapv",
                             "-w",
                             "-shared",
                             "-fPIC",
                             source,
                             "-o",
                             library,
                             "-lm",
                             NULL};
  char* copies[sizeof arguments / sizeof *arguments];
  memcpy(copies, arguments, sizeof copies);
  pid_t child;
  int end = 0;
  int error = posix_spawn(&child, cc, NULL, NULL, copies, environ);
  while (!error && waitpid(child, &end, 0) < 0 && errno == EINTR) {
  }
  if (error || end) {
    return ERROR(host, INTERNAL, "%s failed on %s (%s %d)", cc, source,
                 error ? strerror(error) : "status", end);
  }
  return NULL;
}

// --- Artifacts: the library's bytes behind a head that says what they are ---

typedef struct head_t {
  char magic[8];
  uint64_t size, hash;  // of what follows
} head_t;
static const char k_magic[8] = "PEXAMP1";

static uint64_t hash_of(const void* data, size_t size) {
  const unsigned char* bytes = data;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

// Reads |path| into a blob, which the host frees.
static pestle_status_t pack(const pestle_host_t* host, const char* path,
                            pestle_blob_t* out_artifact) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (file < 0 || fstat(file, &info) != 0) {
    if (file >= 0) close(file);
    return ERROR(host, IO, "%s cannot be read: %s", path, strerror(errno));
  }
  size_t size = (size_t)info.st_size;
  char* data = host->alloc(host->self, sizeof(head_t) + size);
  bool got = data && read(file, data + sizeof(head_t), size) == (ssize_t)size;
  close(file);
  if (!got) {
    host->free(host->self, data, sizeof(head_t) + size);
    return ERROR(host, OUT_OF_MEMORY, "no memory for a library of %zu bytes",
                 size);
  }
  head_t head = {.size = size, .hash = hash_of(data + sizeof head, size)};
  memcpy(head.magic, k_magic, sizeof k_magic);
  memcpy(data, &head, sizeof head);
  *out_artifact = (pestle_blob_t){data, sizeof head + size};
  return NULL;
}

// --- The compiler half ---

static const pestle_host_t* host_of(void* self) {
  return ((const state_t*)self)->host;
}

// The most important function: what is not described here is not asked for.
// Legalisation, above the plugin, rewrites it into what is, or the host builds
// the kernel for another backend.
static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  if (cpu && strcmp(cpu, "native") != 0) {
    return ERROR(host_of(self), UNSUPPORTED,
                 "example compiles for this machine alone, not for '%s'", cpu);
  }
  pestle_target_caps_t caps = {.struct_size = sizeof caps,
                               .name = "example",
                               .device_type = PESTLE_DEVICE_CPU,
                               .vector_registers = 16,
                               .max_lanes = 1,
                               .cores = 1,
                               .l1_bytes = 32 << 10,
                               .l2_bytes = 1 << 20,
                               .scratch_bytes = 1 << 20,
                               .max_group_lanes = 1};
#define PESTLE_KIR(NAME, code, ...) caps.op_dtypes[code] = EXAMPLE_DTYPES;
#include "pestle/kir.def"
  uint32_t kinds[64] = {0};
  kinds[PESTLE_KIND_BOOL] = 1u << PESTLE_I1;
  // Sets have a bit for the first dtypes; no kernel has the others.
  for (unsigned d = 0; d < 32 && d < PESTLE_DTYPE_COUNT; ++d) {
    if (!(EXAMPLE_DTYPES >> d & 1)) continue;
    kinds[pestle_dtype_info((pestle_dtype_t)d)->kind] |= 1u << d;
  }
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, ...)                \
  for (unsigned kind = 1; kind < 64; kind <<= 1) {                        \
    if ((KINDS) & kind) caps.op_dtypes[PESTLE_KIR_##NAME] |= kinds[kind]; \
  }
#include "pestle/scalar.def"
  static const unsigned moves[] = {PESTLE_KIR_LOAD,   PESTLE_KIR_STORE,
                                   PESTLE_KIR_GATHER, PESTLE_KIR_SCATTER,
                                   PESTLE_KIR_ALLOC,  PESTLE_KIR_BITCAST};
  for (size_t i = 0; i < sizeof moves / sizeof *moves; ++i)
    caps.op_dtypes[moves[i]] |= EXAMPLE_MOVED;
  caps.op_dtypes[PESTLE_KIR_SHUFFLE] = 0;
#if PESTLE_ABI_MINOR >= 1
  caps.op_dtypes[PESTLE_KIR_SG_REDUCE] = 0;
#endif
#if PESTLE_ABI_MINOR >= 2
  for (unsigned op = PESTLE_KIR_DOT2; op <= PESTLE_KIR_DOT4; ++op)
    caps.op_dtypes[op] = 0;
#endif
#if PESTLE_ABI_MINOR >= 3
  for (unsigned op = PESTLE_KIR_SCALE; op <= PESTLE_KIR_MREG_STREAM; ++op)
    caps.op_dtypes[op] = 0;
#endif
#if PESTLE_ABI_MINOR >= 7
  for (unsigned op = PESTLE_KIR_SG_BALLOT; op <= PESTLE_KIR_TILE_LOAD_ALL; ++op)
    caps.op_dtypes[op] = 0;
#endif
#if PESTLE_ABI_MINOR >= 8
  caps.op_dtypes[PESTLE_KIR_GRID_WAIT] = 0;
#endif
  // A host of an older minor version has a shorter record.
  size_t size = out_caps->struct_size;
  if (size > sizeof caps) size = sizeof caps;
  caps.struct_size = size;
  memcpy(out_caps, &caps, size);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  *out_text = ((const state_t*)self)->toolchain;
  return NULL;
}

static pestle_status_t print_kernel(const pestle_host_t* host,
                                    const pestle_kir_t* kernel,
                                    example_text_t* out) {
  const char* lacks = example_print_c(kernel, out);
  if (lacks) {
    // UNSUPPORTED: the host takes its fallback for this kernel, and says so.
    return ERROR(host, UNSUPPORTED, "example has no way to print %s", lacks);
  }
  if (out->failed) return ERROR(host, OUT_OF_MEMORY, "no memory for C source");
  return NULL;
}

static pestle_status_t build(const pestle_host_t* host, const char* folder,
                             const example_text_t* text,
                             pestle_blob_t* out_artifact) {
  char source[PATH_MAX + 16], library[PATH_MAX + 16];
  snprintf(source, sizeof source, "%s/kernel.c", folder);
  snprintf(library, sizeof library, "%s/kernel.so", folder);
  if (!write_file(source, text->data, text->size)) {
    return ERROR(host, IO, "%s cannot be written: %s", source, strerror(errno));
  }
  pestle_status_t status = run_cc(host, source, library);
  return status ? status : pack(host, library, out_artifact);
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  const pestle_host_t* host = host_of(self);
  example_text_t text = {0};
  char folder[PATH_MAX];
  (void)options;  // strict or not, nothing is contracted
  *out_artifact = (pestle_blob_t){NULL, 0};
  pestle_status_t status = print_kernel(host, kernel, &text);
  if (!status && !make_folder(folder)) {
    status = ERROR(host, IO, "no folder for a source: %s", strerror(errno));
  } else if (!status) {
    status = build(host, folder, &text, out_artifact);
    remove_folder(folder);
  }
  free(text.data);
  return status;
}

static pestle_status_t print(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_text_t kind, pestle_blob_t* out_text) {
  const pestle_host_t* host = host_of(self);
  example_text_t text = {0};
  (void)options;
  *out_text = (pestle_blob_t){NULL, 0};
  if (kind != PESTLE_TEXT_SOURCE) {
    return ERROR(host, UNSUPPORTED, "example prints C source, no assembly");
  }
  pestle_status_t status = print_kernel(host, kernel, &text);
  if (!status && text.size) {
    out_text->data = host->alloc(host->self, text.size);
    out_text->size = text.size;
    if (out_text->data) memcpy(out_text->data, text.data, text.size);
    if (!out_text->data) status = ERROR(host, OUT_OF_MEMORY, "no memory");
  }
  free(text.data);
  return status;
}

// --- The device half ---

struct pestle_loaded_s {
  void* library;
  pestle_cpu_entry_t entry;
};

// An artifact comes from a file of the user's: nothing in it is believed.
static pestle_status_t check_artifact(const pestle_host_t* host,
                                      const void* artifact, size_t size) {
  head_t head;
  if (size < sizeof head) {
    return ERROR(host, MALFORMED, "an artifact of %zu bytes is none", size);
  }
  memcpy(&head, artifact, sizeof head);
  if (memcmp(head.magic, k_magic, sizeof k_magic) != 0) {
    return ERROR(host, INCOMPATIBLE, "the artifact is not of this backend");
  }
  const char* bytes = (const char*)artifact + sizeof head;
  if (head.size != size - sizeof head ||
      head.hash != hash_of(bytes, size - sizeof head)) {
    return ERROR(host, MALFORMED, "the artifact is damaged");
  }
  return NULL;
}

static pestle_status_t open_library(const pestle_host_t* host, const char* path,
                                    pestle_loaded_t* loaded) {
  loaded->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!loaded->library) {
    return ERROR(host, MALFORMED, "the kernel cannot be loaded: %s", dlerror());
  }
  void* entry = dlsym(loaded->library, "kernel");
  memcpy(&loaded->entry, &entry, sizeof entry);
  return entry ? NULL : ERROR(host, MALFORMED, "the library has no kernel");
}

static void unload(void* self, pestle_loaded_t* loaded) {
  const pestle_host_t* host = host_of(self);
  if (!loaded) return;
  if (loaded->library) dlclose(loaded->library);
  host->free(host->self, loaded, sizeof *loaded);
}

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  const pestle_host_t* host = host_of(self);
  char folder[PATH_MAX], path[PATH_MAX + 16];
  (void)device;
  *out_loaded = NULL;
  pestle_status_t status = check_artifact(host, artifact, size);
  if (status) return status;
  if (!make_folder(folder)) {
    return ERROR(host, IO, "no folder for a library: %s", strerror(errno));
  }
  snprintf(path, sizeof path, "%s/kernel.so", folder);
  pestle_loaded_t* loaded = host->alloc(host->self, sizeof *loaded);
  if (!loaded) {
    status = ERROR(host, OUT_OF_MEMORY, "no memory for a kernel");
  } else {
    memset(loaded, 0, sizeof *loaded);
    bool written = write_file(path, (const char*)artifact + sizeof(head_t),
                              size - sizeof(head_t));
    status = written ? open_library(host, path, loaded)
                     : ERROR(host, IO, "%s cannot be written", path);
  }
  remove_folder(folder);
  if (status) {
    unload(self, loaded);
  } else {
    *out_loaded = loaded;
  }
  return status;
}

static pestle_status_t cpu_entry(void* self, pestle_loaded_t* loaded,
                                 pestle_cpu_entry_t* out_entry,
                                 const void** out_entry_self) {
  (void)self;
  *out_entry = loaded->entry;
  *out_entry_self = NULL;
  return NULL;
}

// --- Entry points ---

static const pestle_target_api_t k_target = {.struct_size = sizeof k_target,
                                             .describe = describe,
                                             .toolchain_id = toolchain_id,
                                             .compile = compile,
                                             .print = print};
// Memory, streams and events are the host's on cpu devices: no slots.
static const pestle_device_api_t k_device = {.struct_size = sizeof k_device,
                                             .load = load,
                                             .unload = unload,
                                             .cpu_entry = cpu_entry};

static int32_t score(char* why, size_t capacity) {
  char cc[PATH_MAX];
  if (find_cc(cc)) return 1;
  snprintf(why, capacity, "there is no C compiler 'cc' on PATH");
  return 0;
}

static void deinit(void* self) {
  const pestle_host_t* host = host_of(self);
  host->free(host->self, self, sizeof(state_t));
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  *out_status = NULL;
  state_t* state = host->alloc(host->self, sizeof *state);
  if (!state) {
    *out_status = ERROR(host, OUT_OF_MEMORY, "no memory to start example");
    return NULL;
  }
  memset(state, 0, sizeof *state);
  state->host = host;
  write_toolchain_id(state);
  state->backend = (pestle_backend_t){.struct_size = sizeof state->backend,
                                      .name = "example",
                                      .device_type = PESTLE_DEVICE_CPU,
                                      .score = 1,
                                      .device_count = 1,
                                      .self = state,
                                      .target = &k_target,
                                      .device = &k_device,
                                      .deinit = deinit};
  return &state->backend;
}

// Who asks for a gpu need not start this one. Hosts before minor version 1 do not
// look.
#undef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE PESTLE_DEVICE_CPU
PESTLE_BACKEND_IMPL("example", "example-1", init)
PESTLE_BACKEND_SCORE_IMPL(score)
