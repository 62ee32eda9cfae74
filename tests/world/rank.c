// SPDX-License-Identifier: Apache-2.0
// One rank of a world that its environment names: runs a model with one input and one
// output of f32 many times, each time on what came out.
//
//   world_rank MODEL STEPS [FAULT STEP]
//
// FAULT, before run STEP: kill, stop (this process), close (all its sockets), disk (it
// writes to /dev/full and fails), late (it sleeps for two seconds first). Prints
// "ready" when it has joined, then "done" with a hash of the last output, or "error"
// with the status. Exit code 1 after an error.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pestle/pestle.h"

static pestle_status_t write_to_full_disk(void) {
  FILE* file = fopen("/dev/full", "w");
  if (!file) return PESTLE_ERROR(IO, "/dev/full: %s", strerror(errno));
  bool bad = fputs("checkpoint", file) < 0;
  bad |= fclose(file) != 0;
  if (!bad) return NULL;
  return PESTLE_ERROR(RESOURCE_EXHAUSTED, "cannot write the checkpoint: %s",
                      strerror(errno));
}

static void close_sockets(void) {
  struct stat info;
  for (int fd = 3; fd < 256; ++fd) {
    if (!fstat(fd, &info) && S_ISSOCK(info.st_mode))
      (void)shutdown(fd, SHUT_RDWR);
  }
}

static pestle_status_t fail(const char* fault) {
  if (!strcmp(fault, "kill")) (void)raise(SIGKILL);
  if (!strcmp(fault, "stop")) (void)raise(SIGSTOP);
  if (!strcmp(fault, "close")) close_sockets();
  if (!strcmp(fault, "late")) (void)sleep(2);
  return strcmp(fault, "disk") != 0 ? NULL : write_to_full_disk();
}

typedef struct state_t {
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  pestle_world_t* world;
  float *data, *out;
  size_t size;
} state_t;

static pestle_status_t load(state_t* s, const char* path) {
  pestle_compile_options_t options = {.struct_size = sizeof(options)};
  PESTLE_TRY(pestle_context_create(NULL, &s->context));
  PESTLE_TRY(pestle_import_file(s->context, path, NULL, &s->module));
  PESTLE_TRY(pestle_compile(s->context, s->module, NULL, &options, &s->plan));
  return pestle_executable_create(s->context, s->plan, NULL, &s->executable);
}

static pestle_status_t step(state_t* s, pestle_io_info_t* info) {
  pestle_tensor_t in = {.data = s->data,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = info->rank,
                        .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                        .shape = (int64_t*)(uintptr_t)info->dims};
  pestle_tensor_t out = in;
  out.data = s->out;
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .world = s->world};
  PESTLE_TRY(
      pestle_executable_run(s->executable, NULL, &in, 1, &out, 1, &options));
  memcpy(s->data, s->out, s->size * sizeof(float));
  return NULL;
}

static pestle_status_t run(state_t* s, int steps, const char* fault, int at) {
  pestle_io_info_t info = pestle_executable_input(s->executable, 0);
  s->size = 1;
  for (int32_t d = 0; d < info.rank; ++d)
    s->size *= (size_t)info.dims[d];
  s->data = malloc(s->size * sizeof(float) + 1);
  s->out = malloc(s->size * sizeof(float) + 1);
  for (size_t i = 0; i < s->size; ++i)
    s->data[i] =
        (float)((int)(i % 97) - 48) / (float)(3 + pestle_world_rank(s->world));
  for (int i = 0; i < steps; ++i) {
    if (fault && i == at) PESTLE_TRY(fail(fault));
    PESTLE_TRY(step(s, &info));
  }
  return NULL;
}

static unsigned long long hash_of(const state_t* s) {
  unsigned long long hash = 14695981039346656037u;
  for (size_t i = 0; i < s->size * sizeof(float); ++i)
    hash = (hash ^ ((const unsigned char*)s->data)[i]) * 1099511628211u;
  return hash;
}

int main(int count, char** arguments) {
  state_t s = {NULL};
  const char* fault = count > 4 ? arguments[3] : NULL;
  if (count < 3) return 2;
  pestle_status_t status = load(&s, arguments[1]);
  if (!status) status = pestle_world_create(s.context, NULL, &s.world);
  if (!status) {
    printf("ready\n");
    fflush(stdout);
    status = run(&s, atoi(arguments[2]), fault, fault ? atoi(arguments[4]) : 0);
    if (status) pestle_world_abort(s.world, status);
  }
  int code = status ? 1 : 0;
  if (status) {
    char text[4096];
    (void)pestle_status_format(status, text, sizeof(text));
    printf("error %s\n", text);
  } else {
    printf("done %016llx\n", hash_of(&s));
  }
  fflush(stdout);
  pestle_status_release(status);
  pestle_world_release(s.world);
  pestle_executable_release(s.executable);
  pestle_plan_release(s.plan);
  pestle_module_release(s.module);
  pestle_context_release(s.context);
  free(s.data);
  free(s.out);
  return code;
}
