// SPDX-License-Identifier: Apache-2.0
// One rank of a world that its environment names: runs a model with one input and one
// output of f32 many times, each time on what came out.
//
//   world_rank MODEL STEPS [FAULT STEP]
//
// MODEL may be a plan (.plan). WORLD_RANK_DEVICE=cuda: each rank runs on the device of its
// number, "cuda:1"; "cuda:0": all on that one. WORLD_RANK_THREADS=4: that many ranks, threads of
// this process, which prints a line for each at the end and takes no FAULT; of a MODEL
// "A,B" the last of them runs B.
//
// FAULT, before run STEP: kill, stop (this process), close (all its sockets), disk (it
// writes to /dev/full and fails), late (it sleeps for two seconds first). Prints
// "ready" when it has joined, then "done" with a hash of the last output, or "error"
// with the status. Exit code 1 after an error.
#include <errno.h>
#include <pthread.h>
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
  // Of ranks that are threads.
  pthread_t thread;
  const char* path;
  int rank, steps;
  pestle_status_t status;
} state_t;

static pestle_status_t load_plan(state_t* s, const char* path,
                                 pestle_device_t* device) {
  pestle_compile_options_t options = {.struct_size = sizeof(options)};
  size_t length = strlen(path);
  if (length > 5 && !strcmp(path + length - 5, ".plan"))
    return pestle_plan_load(s->context, path, &s->plan);
  PESTLE_TRY(pestle_import_file(s->context, path, NULL, &s->module));
  return pestle_compile(s->context, s->module, device, &options, &s->plan);
}

static pestle_status_t load(state_t* s, const char* path) {
  const char* kind = getenv("WORLD_RANK_DEVICE");
  pestle_device_t* device = NULL;
  char name[64];
  if (kind) {
    (void)snprintf(name, sizeof(name), "%s%s%d", kind,
                   strchr(kind, ':') ? "" : ":", s->rank);
    if (strchr(kind, ':')) (void)snprintf(name, sizeof(name), "%s", kind);
    PESTLE_TRY(pestle_context_device(s->context, name, &device));
  }
  PESTLE_TRY(load_plan(s, path, device));
  return pestle_executable_create(s->context, s->plan, device, &s->executable);
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

static void release(state_t* s) {
  pestle_world_release(s->world);
  pestle_executable_release(s->executable);
  pestle_plan_release(s->plan);
  pestle_module_release(s->module);
  free(s->data);
  free(s->out);
}

static int tell(const state_t* s) {
  if (s->status) {
    char text[4096];
    (void)pestle_status_format(s->status, text, sizeof(text));
    printf("error %s\n", text);
  } else {
    printf("done %016llx\n", hash_of(s));
  }
  fflush(stdout);
  return s->status ? 1 : 0;
}

// --- Ranks as threads ---

static void* run_thread(void* user) {
  state_t* s = user;
  s->status = load(s, s->path);
  if (!s->status) s->status = run(s, s->steps, NULL, 0);
  if (s->status) pestle_world_abort(s->world, s->status);
  return NULL;
}

static int run_threads(pestle_context_t* context, int n, const char* path,
                       int steps) {
  state_t* states = calloc((size_t)n, sizeof(*states));
  pestle_world_t** worlds = calloc((size_t)n, sizeof(void*));
  int code = 0;
  const char* other = strchr(path, ',');
  char first[1024];
  (void)snprintf(first, sizeof(first), "%.*s",
                 other ? (int)(other - path) : (int)strlen(path), path);
  pestle_status_t status = pestle_world_create_local(context, n, NULL, worlds);
  for (int i = 0; i < n && !status; ++i) {
    states[i] = (state_t){.context = context,
                          .world = worlds[i],
                          .path = other && i + 1 == n ? other + 1 : first,
                          .rank = i,
                          .steps = steps};
    if (pthread_create(&states[i].thread, NULL, run_thread, &states[i]))
      return 3;
  }
  for (int i = 0; i < n && !status; ++i)
    (void)pthread_join(states[i].thread, NULL);
  for (int i = 0; i < n && !status; ++i) {
    code |= tell(&states[i]);
    pestle_status_release(states[i].status);
    release(&states[i]);
  }
  code |= status != NULL;
  pestle_status_release(status);
  free(worlds);
  free(states);
  return code;
}

int main(int count, char** arguments) {
  state_t s = {NULL};
  const char* fault = count > 4 ? arguments[3] : NULL;
  const char* rank = getenv("RANK");
  const char* threads = getenv("WORLD_RANK_THREADS");
  if (count < 3) return 2;
  s.rank = rank ? atoi(rank) : 0;
  s.status = pestle_context_create(NULL, &s.context);
  if (!s.status && threads) {
    int code =
        run_threads(s.context, atoi(threads), arguments[1], atoi(arguments[2]));
    pestle_context_release(s.context);
    return code;
  }
  if (!s.status) s.status = load(&s, arguments[1]);
  if (!s.status) s.status = pestle_world_create(s.context, NULL, &s.world);
  if (!s.status) {
    printf("ready\n");
    fflush(stdout);
    s.status =
        run(&s, atoi(arguments[2]), fault, fault ? atoi(arguments[4]) : 0);
    if (s.status) pestle_world_abort(s.world, s.status);
  }
  int code = tell(&s);
  pestle_status_release(s.status);
  release(&s);
  pestle_context_release(s.context);
  return code;
}
