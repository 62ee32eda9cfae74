// SPDX-License-Identifier: Apache-2.0
// An NVRTC that has clang++ make a shared library of CUDA C: what it calls a
// cubin is that library, which fake libcuda.so.1 opens.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

#define EXPORT __attribute__((visibility("default")))

typedef struct program_s {
  char* text;
  char log[4096];
  char* code;
  size_t size;
} program_t;

EXPORT int nvrtcVersion(int* major, int* minor);
EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

static const int archs[] = {75, 80, 86, 89, 90, 100, 103, 120};
enum { ARCHS = sizeof archs / sizeof *archs };
EXPORT int nvrtcGetNumSupportedArchs(int* count);
EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = ARCHS;
  return 0;
}
EXPORT int nvrtcGetSupportedArchs(int* out);
EXPORT int nvrtcGetSupportedArchs(int* out) {
  memcpy(out, archs, sizeof archs);
  return 0;
}

EXPORT int nvrtcCreateProgram(program_t** out, const char* text,
                              const char* name, int count,
                              const char* const* headers,
                              const char* const* names);
EXPORT int nvrtcCreateProgram(program_t** out, const char* text,
                              const char* name, int count,
                              const char* const* headers,
                              const char* const* names) {
  (void)name, (void)count, (void)headers, (void)names;
  program_t* p = calloc(1, sizeof *p);
  if (p) p->text = strdup(text);
  *out = p;
  return !p || !p->text;
}

// The kernel's name: what stands before the ( of what is __global__.
static int find_kernel(const char* text, char* name, size_t capacity) {
  const char* at = strstr(text, "__launch_bounds__(");
  at = at ? strchr(at, ')') : NULL;
  if (!at) return 0;
  at += 1 + strspn(at + 1, " \n");
  size_t size = strcspn(at, "( \n");
  if (!size || size >= capacity) return 0;
  memcpy(name, at, size);
  name[size] = 0;
  return 1;
}

static int write_source(const program_t* p, const char* path,
                        const char* kernel) {
  FILE* file = fopen(path, "w");
  if (!file) return 0;
  fprintf(file,
          "#include \"" FAKE_SHIM
          "\"\n%s\n"
          "unsigned char pestle_shared[240 << 10];\n"
          "extern \"C\" void pestle_shim_entry(pestle_shim_t* shim,\n"
          "                                  void** arguments) {\n"
          "  pestle_shim = shim;\n"
          "  pestle_call(%s, arguments);\n}\n"
          "extern \"C\" const unsigned pestle_shim_arguments =\n"
          "    pestle_count(%s);\n",
          p->text, kernel, kernel);
  return !fclose(file);
}

static int run_clang(char* source, char* output, char* log) {
  char* arguments[] = {"clang++-19", "-std=c++17", "-O1", "-march=native",
                       "-ffp-contract=off", "-fno-exceptions", "-fno-rtti",
                       "-fPIC", "-shared", "-nostdlib++",
                       // The names of temporary files, which would
                       // make each time's code another one.
                       "-Wl,-s,--build-id=none", "-w", "-xc++", source, "-o",
                       output, "-lm", NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  int result = -1;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log, 1 | 64 | 512, 0600);
  int failed =
      posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed || waitpid(child, &result, 0) != child) return 0;
  return WIFEXITED(result) && !WEXITSTATUS(result);
}

static char* read_file(const char* path, size_t* out_size) {
  FILE* file = fopen(path, "r");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char* data = size > 0 ? malloc((size_t)size) : NULL;
  if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
    free(data);
    data = NULL;
  }
  fclose(file);
  *out_size = data ? (size_t)size : 0;
  return data;
}

EXPORT int nvrtcCompileProgram(program_t* p, int count,
                               const char* const* options);
EXPORT int nvrtcCompileProgram(program_t* p, int count,
                               const char* const* options) {
  char folder[] = "/tmp/pestle-fake-XXXXXX", kernel[256];
  char source[64], output[64], log[64];
  (void)count, (void)options;
  if (!find_kernel(p->text, kernel, sizeof kernel) || !mkdtemp(folder)) {
    snprintf(p->log, sizeof p->log, "the text has no kernel");
    return 6;
  }
  snprintf(source, sizeof source, "%s/kernel.cu", folder);
  snprintf(output, sizeof output, "%s/kernel.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  int ok = write_source(p, source, kernel) && run_clang(source, output, log);
  if (ok) p->code = read_file(output, &p->size);
  size_t size;
  char* words = read_file(log, &size);
  if (words) snprintf(p->log, sizeof p->log, "%.*s", (int)size, words);
  free(words);
  unlink(source);
  unlink(output);
  unlink(log);
  rmdir(folder);
  return p->code ? 0 : 6;
}

EXPORT int nvrtcGetProgramLogSize(program_t* p, size_t* size);
EXPORT int nvrtcGetProgramLogSize(program_t* p, size_t* size) {
  *size = strlen(p->log) + 1;
  return 0;
}
EXPORT int nvrtcGetProgramLog(program_t* p, char* log);
EXPORT int nvrtcGetProgramLog(program_t* p, char* log) {
  memcpy(log, p->log, strlen(p->log) + 1);
  return 0;
}
EXPORT int nvrtcGetCUBINSize(program_t* p, size_t* size);
EXPORT int nvrtcGetCUBINSize(program_t* p, size_t* size) {
  *size = p->size;
  return 0;
}
EXPORT int nvrtcGetCUBIN(program_t* p, char* code);
EXPORT int nvrtcGetCUBIN(program_t* p, char* code) {
  memcpy(code, p->code, p->size);
  return 0;
}
// The same as "PTX": the library behind a line, as text ends with a 0.
EXPORT int nvrtcGetPTXSize(program_t* p, size_t* size);
EXPORT int nvrtcGetPTXSize(program_t* p, size_t* size) {
  *size = p->size + 1;
  return 0;
}
EXPORT int nvrtcGetPTX(program_t* p, char* code);
EXPORT int nvrtcGetPTX(program_t* p, char* code) {
  memcpy(code, p->code, p->size);
  code[p->size] = 0;
  return 0;
}
EXPORT int nvrtcDestroyProgram(program_t** p);
EXPORT int nvrtcDestroyProgram(program_t** p) {
  free((*p)->text);
  free((*p)->code);
  free(*p);
  *p = NULL;
  return 0;
}
