// SPDX-License-Identifier: Apache-2.0
// A backend whose compiler half is a plugin's, or a dialect alone, and whose
// device half runs the printed text on this CPU: clang++ compiles it as C++
// with a header of tests/shim, the lanes are fibres. So the tests of devices
// serve for languages that no device here speaks. It proves that the text means
// what it should, not that another compiler takes it.
#ifndef PESTLE_TESTS_SHIM_SHIM_DEVICE_H_
#define PESTLE_TESTS_SHIM_SHIM_DEVICE_H_

#include <dlfcn.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins/common/c_printer_artifact.h"
#include "plugins/common/error.h"
#include "shim/simt.h"

typedef struct shim_language_t {
  const char* target;   // of artifacts: "metal"
  const char* include;  // the header that stands for the language's library
  bool passes_places;   // group and lane are arguments
  bool blocks;          // of SPIRV-Cross: all arguments are one struct
} shim_language_t;

static shim_language_t shim_language;
static const pestle_host_t* shim_host;

struct pestle_loaded_s {
  void* library;
  void (*run)(void* data);
  uint32_t group[3], lane[3];
  uint32_t arg_count, param_count;
};

struct pestle_device_stream_s {
  int unused;
};

// The first pointer or reference of |text|, to an array and to a subgroup's
// matrix too, that does not say where it points to, or NULL; |*out_count|: how
// many there were before it.
static inline const char* shim_homeless(const char* text, int* out_count) {
  const char* pattern =
      "(^|[ (,;])((device|constant|threadgroup|thread) )?(const )?"
      "((u?char|u?short|u?int|u?long|float|half|bool)[24]?|"
      "simdgroup_[a-z]+8x8|simdgroup_matrix<[^>]*>) ?[(]?[*&]";
  regex_t regex;
  regmatch_t match[6];
  const char* homeless = NULL;
  assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED), 0);
  *out_count = 0;
  for (const char* at = text;
       !homeless && regexec(&regex, at, 6, match, 0) == 0;
       at += match[0].rm_eo) {
    ++*out_count;
    if (match[3].rm_so < 0) homeless = at + match[0].rm_so;
  }
  regfree(&regex);
  return homeless;
}

// Metal's compiler refuses such a one; C++ does not care.
static inline void shim_lint(const char* text, size_t size) {
  char* copy = calloc(1, size + 1);
  int count;
  memcpy(copy, text, size);
  const char* homeless = shim_homeless(copy, &count);
  if (homeless) {
    print_error("no address space: %.60s\n", homeless);
    fail();
  }
  assert_true(count > 0);
  free(copy);
}

// Whether clang takes |text| as C++ for OpenCL, whose address spaces are Metal's:
// it refuses what the lint lets pass, a wrong one. What it says goes to stderr
// if |loud|.
static inline bool shim_spaces_agree(const char* text, size_t size, bool loud) {
  char path[] = "/tmp/pestle-spaces-XXXXXX", command[1024];
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, size), (ssize_t)size);
  close(file);
  snprintf(command, sizeof command,
           "clang++-19 -x clcpp -cl-std=CLC++2021 -target spir64 -fsyntax-only "
           "-Wno-everything -I%s/tests/shim/spaces %s%s",
           getenv("PESTLE_SOURCE_DIR"), path, loud ? " >&2" : " 2>/dev/null");
  bool agree = system(command) == 0;
  unlink(path);
  return agree;
}

// The arguments of a kernel that the printer made: buffers, parameters, places.
static inline void shim_write_call(FILE* f,
                                   const pestle_c_printer_artifact_t* a) {
  fprintf(f, "  %s(", a->name);
  for (uint32_t i = 0; i < a->arg_count; ++i)
    fprintf(f, "%spestle_any_t{c.buffers[%u]}", i ? ", " : "", i);
  for (uint32_t i = 0; i < a->param_count; ++i)
    fprintf(f, ", c.params[%u]", i);
  fputs(shim_language.passes_places ? ", group, lane);\n}\n" : ");\n}\n", f);
}

// SPIRV-Cross puts them into a struct, and places in an order of its own.
static inline void shim_write_block_call(FILE* f,
                                         const pestle_c_printer_artifact_t* a) {
  static const char* const what[][2] = {
      {"[[buffer(0)]]", "pestle_block_t{at}"},
      {"threadgroup_position_in_grid", "group"},
      {"thread_position_in_threadgroup", "lane"}};
  char* text = calloc(1, a->text_size + 1);
  memcpy(text, a->text, a->text_size);
  const char* at = strstr(text, "kernel void main0(");
  assert_non_null(at);
  fputs("  unsigned long long block[64], *at = block;\n", f);
  for (uint32_t i = 0; i < a->arg_count; ++i)
    fprintf(f, "  block[%u] = (unsigned long long)c.buffers[%u];\n", i, i);
  for (uint32_t i = 0; i < a->param_count; ++i)
    fprintf(f, "  block[%u] = c.params[%u];\n", a->arg_count + i, i);
  if (a->table) {
    fputs(
        "  unsigned long long table = (unsigned long long)block;\n"
        "  at = &table;\n",
        f);
  }
  fputs("  main0(", f);
  for (bool first = true;; first = false) {
    const char* best = NULL;
    size_t which = 0;
    for (size_t i = 0; i < 3; ++i) {
      const char* found = strstr(at, what[i][0]);
      if (found && (!best || found < best)) {
        best = found;
        which = i;
      }
    }
    if (!best) break;
    fprintf(f, "%s%s", first ? "" : ", ", what[which][1]);
    at = best + 1;
  }
  fputs(");\n}\n", f);
  free(text);
}

static inline void shim_write_source(const char* path,
                                     const pestle_c_printer_artifact_t* a) {
  FILE* f = fopen(path, "w");
  assert_non_null(f);
  if (shim_language.blocks) fputs("#define PESTLE_SPIRV_CROSS 1\n", f);
  fprintf(f, "#include \"%s\"\n", shim_language.include);
  fwrite(a->text, 1, a->text_size, f);
  fputs(
      "#undef kernel\n#undef device\n#undef constant\n"
      "#include \"run.h\"\n"
      "#ifdef PESTLE_SHIM\n"
      "unsigned char pestle_shared[1 << 18];\n"
      "#endif\n"
      "extern \"C\" __attribute__((visibility(\"default\"))) void\n"
      "pestle_shim_run(void* data) {\n"
      "  const pestle_call_t& c = *(const pestle_call_t*)data;\n",
      f);
  if (shim_language.passes_places) {
    fputs(
        "  simt_place_t g = simt->group(), l = simt->lane();\n"
        "  uint3 group = {g.x, g.y, g.z}, lane = {l.x, l.y, l.z};\n",
        f);
  }
  if (shim_language.blocks) {
    shim_write_block_call(f, a);
  } else {
    shim_write_call(f, a);
  }
  fclose(f);
}

static inline pestle_status_t shim_compile(const char* folder,
                                           const char* compiler) {
  char command[2048];
  snprintf(command, sizeof command,
           "%s -std=c++17 -O1 -fPIC -shared -fvisibility=hidden "
           "-ffp-contract=off -Xclang -ffloat16-excess-precision=none "
           "-fwrapv -march=native "
           "-Wno-everything -I%s/tests/shim -o %s/k.so %s/k.cpp 2>%s/log",
           compiler, getenv("PESTLE_SOURCE_DIR"), folder, folder, folder);
  if (system(command) == 0) return NULL;
  snprintf(command, sizeof command, "head -c 3000 %s/log >&2", folder);
  (void)!system(command);
  return PESTLE_PLUGIN_ERROR(shim_host, INTERNAL,
                             "clang++ does not take what was printed");
}

static inline pestle_status_t shim_load(void* self, int32_t device,
                                        const void* artifact, size_t size,
                                        pestle_loaded_t** out_loaded) {
  pestle_c_printer_artifact_t a;
  char folder[] = "/tmp/pestle-shim-XXXXXX", path[64], command[80];
  (void)self, (void)device;
  *out_loaded = NULL;
  PESTLE_TRY(pestle_c_printer_artifact_open(shim_host, shim_language.target,
                                            artifact, size, &a));
  bool is_metal = shim_language.passes_places && !shim_language.blocks;
  if (is_metal) {
    shim_lint(a.text, a.text_size);
    assert_true(shim_spaces_agree(a.text, a.text_size, true));
  }
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/k.cpp", folder);
  shim_write_source(path, &a);
  pestle_status_t status = shim_compile(folder, "clang++-19");
  void* library = NULL;
  if (!status) {
    snprintf(path, sizeof path, "%s/k.so", folder);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) print_error("%s\n", dlerror());
    assert_non_null(library);
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (status) return status;
  void (*start)(const simt_t*);
  pestle_loaded_t* loaded = malloc(sizeof *loaded);
  loaded->library = library;
  *(void**)&loaded->run = dlsym(library, "pestle_shim_run");
  *(void**)&start = dlsym(library, "pestle_shim_init");
  assert_true(loaded->run && start);
  start(&simt_functions);
  memcpy(loaded->group, a.group, sizeof a.group);
  memcpy(loaded->lane, a.lane, sizeof a.lane);
  loaded->arg_count = a.arg_count;
  loaded->param_count = a.param_count;
  *out_loaded = loaded;
  return NULL;
}

static inline void shim_unload(void* self, pestle_loaded_t* loaded) {
  (void)self;
  dlclose(loaded->library);
  free(loaded);
}

static inline pestle_status_t shim_launch(void* self, int32_t device,
                                          pestle_device_stream_t* stream,
                                          const pestle_launch_t* launch) {
  const pestle_loaded_t* k = launch->loaded;
  struct {
    void* const* buffers;
    const int64_t* params;
  } call = {launch->buffers, launch->params};
  (void)self, (void)device, (void)stream;
  if (simt_run(k->group, k->lane, k->run, &call)) return NULL;
  return PESTLE_PLUGIN_ERROR(shim_host, INTERNAL,
                             "the lanes of a group met different barriers");
}

static inline pestle_status_t shim_allocate(void* self, int32_t device,
                                            size_t size, void** out_data) {
  (void)self, (void)device;
  *out_data = aligned_alloc(64, (size + 63) & ~(size_t)63);
  return NULL;
}
static inline void shim_deallocate(void* self, int32_t device, void* data,
                                   size_t size) {
  (void)self, (void)device, (void)size;
  free(data);
}
static inline pestle_status_t shim_copy(void* self,
                                        pestle_device_stream_t* stream,
                                        const void* from, void* to,
                                        size_t size) {
  (void)self, (void)stream;
  memcpy(to, from, size);
  return NULL;
}
static inline pestle_status_t shim_stream_create(
    void* self, int32_t device, pestle_device_stream_t** out_stream) {
  (void)self, (void)device;
  *out_stream = calloc(1, sizeof **out_stream);
  return NULL;
}
static inline pestle_status_t shim_synchronize(void* self,
                                               pestle_device_stream_t* s) {
  (void)self, (void)s;
  return NULL;
}
static inline void shim_stream_destroy(void* self, pestle_device_stream_t* s) {
  (void)self;
  free(s);
}

static const pestle_device_api_t shim_device_api = {
    .struct_size = sizeof shim_device_api,
    .load = shim_load,
    .unload = shim_unload,
    .allocate = shim_allocate,
    .deallocate = shim_deallocate,
    .stream_create = shim_stream_create,
    .stream_synchronize = shim_synchronize,
    .stream_destroy = shim_stream_destroy,
    .launch = shim_launch,
    .queue_from_host = shim_copy,
    .queue_to_host = shim_copy,
};

static inline bool shim_has_compiler(void) {
  return system("clang++-19 --version >/dev/null 2>&1") == 0;
}

#endif  // PESTLE_TESTS_SHIM_SHIM_DEVICE_H_
