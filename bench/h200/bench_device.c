// SPDX-License-Identifier: Apache-2.0
// bench_device DEVICE [CACHE]: times compiled modules whose inputs and outputs are in the
// device's memory. A server, so that a script can take turns with its peers:
//
//   load FILE SETS    compiles; SETS sets of random inputs take turns
//   load FILE SETS fast    the same in numerics `fast`
//   normal FILE       writes the f32 numbers that inputs are made of: element i of
//                     input j is number (i + 99991 j) modulo their count, rounded
//   input INDEX FILE  has every set's input be the file's bytes
//   save INDEX FILE   runs the first set, and writes the bytes of an output
//   time MILLISECONDS runs for about so long without a gap, after a round that is not
//                     timed
//   quit
//
// Each answers with one line: "ready COMPILE_MS INPUT_BYTES OUTPUT_BYTES", "us
// MICROSECONDS_A_RUN". Inputs of bf16 and f32 are normal random numbers, others 0. Plans are
// kept in the folder CACHE, if one is named.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pestle/pestle.h"

enum { MOST_SETS = 64, MOST_IO = 128, BLOCK = 1 << 20, APART = 99991 };

static void check(pestle_status_t status) {
  if (!status) return;
  char text[2048];
  pestle_status_format(status, text, sizeof(text));
  printf("error %s\n", text);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

typedef struct io_t {
  pestle_buffer_t* buffer;
  pestle_tensor_t view;
  int64_t shape[PESTLE_MAX_RANK];
} io_t;

typedef struct bench_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_stream_t* stream;
  pestle_executable_t* executable;
  size_t inputs, outputs;
  int sets;
  io_t io[MOST_SETS][MOST_IO];
  float* normal;  // BLOCK random numbers
} bench_t;

// --- Data ---

static float uniform(uint64_t* seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (float)((*seed >> 40) + 1) / 16777217.f;
}

static float* make_normal(void) {
  float* data = malloc(BLOCK * sizeof(*data));
  uint64_t seed = 42;
  for (int i = 0; data && i < BLOCK; i += 2) {
    float r = sqrtf(-2.f * logf(uniform(&seed)));
    float angle = 6.2831853f * uniform(&seed);
    data[i] = r * cosf(angle);
    data[i + 1] = r * sinf(angle);
  }
  return data;
}

static void put(pestle_dtype_t dtype, float value, char* to) {
  if (dtype == PESTLE_BF16) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint16_t half = (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    memcpy(to, &half, sizeof(half));
  } else if (dtype == PESTLE_F32) {
    memcpy(to, &value, sizeof(value));
  }
}

static void fill(const bench_t* b, pestle_dtype_t dtype, size_t input,
                 pestle_buffer_t* buffer) {
  size_t element = pestle_dtype_size(dtype);
  size_t size = pestle_buffer_size(buffer), block = BLOCK * element;
  char* data = calloc(BLOCK, element);
  for (size_t i = 0; data && i < BLOCK; ++i)
    put(dtype, b->normal[(i + APART * input) % BLOCK], data + i * element);
  for (size_t at = 0; data && at < size; at += block) {
    size_t part = size - at < block ? size - at : block;
    check(pestle_buffer_write(buffer, at, data, part));
  }
  free(data);
}

static void make_io(bench_t* b, const pestle_io_info_t* info, bool input,
                    size_t index, io_t* io) {
  size_t size = pestle_dtype_size(info->dtype);
  for (int32_t i = 0; i < info->rank; ++i) {
    io->shape[i] = info->dims[i];
    size *= (size_t)info->dims[i];
  }
  check(pestle_buffer_create(b->device, size, &io->buffer));
  io->view = (pestle_tensor_t){.data = pestle_buffer_data(io->buffer),
                               .device = pestle_device_dl(b->device),
                               .ndim = info->rank,
                               .dtype = pestle_dtype_to_dlpack(info->dtype),
                               .shape = io->shape};
  if (input) fill(b, info->dtype, index, io->buffer);
}

// --- Commands ---

static void unload(bench_t* b) {
  if (!b->executable) return;
  check(pestle_stream_synchronize(b->stream));
  for (int s = 0; s < b->sets; ++s) {
    for (size_t i = 0; i < b->inputs + b->outputs; ++i)
      pestle_buffer_release(b->io[s][i].buffer);
  }
  pestle_executable_release(b->executable);
  b->executable = NULL;
  check(pestle_device_memory_set(b->device, PESTLE_MEMORY_CACHE, 0, NULL));
}

static double compile(bench_t* b, const char* path, bool fast) {
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_compile_options_t options = {.struct_size = sizeof(options)};
  if (fast) options.numerics = PESTLE_NUMERICS_FAST;
  double begin = now();
  check(pestle_import_file(b->context, path, NULL, &module));
  check(pestle_compile(b->context, module, b->device, &options, &plan));
  check(pestle_executable_create(b->context, plan, b->device, &b->executable));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return now() - begin;
}

static void load(bench_t* b, const char* path, int sets, bool fast) {
  size_t bytes[2] = {0, 0};
  unload(b);
  double took = compile(b, path, fast);
  b->inputs = pestle_executable_input_count(b->executable);
  b->outputs = pestle_executable_output_count(b->executable);
  b->sets = sets < 1 ? 1 : sets > MOST_SETS ? MOST_SETS : sets;
  if (b->inputs + b->outputs > MOST_IO) {
    printf("error %s has more than %d inputs and outputs\n", path, MOST_IO);
    exit(1);
  }
  for (int s = 0; s < b->sets; ++s) {
    for (size_t i = 0; i < b->inputs + b->outputs; ++i) {
      bool input = i < b->inputs;
      pestle_io_info_t info =
          input ? pestle_executable_input(b->executable, i)
                : pestle_executable_output(b->executable, i - b->inputs);
      make_io(b, &info, input, i, &b->io[s][i]);
      if (!s) bytes[!input] += pestle_buffer_size(b->io[s][i].buffer);
    }
  }
  printf("ready %.1f %zu %zu\n", took, bytes[0], bytes[1]);
}

static void set_input(bench_t* b, unsigned index, const char* path) {
  if (!b->executable || index >= b->inputs) {
    printf("error there is no such input\n");
    return;
  }
  size_t size = pestle_buffer_size(b->io[0][index].buffer);
  char* data = malloc(size);
  FILE* file = fopen(path, "rb");
  bool read = data && file && fread(data, 1, size, file) == size;
  if (file) fclose(file);
  for (int s = 0; read && s < b->sets; ++s)
    check(pestle_buffer_write(b->io[s][index].buffer, 0, data, size));
  free(data);
  printf(read ? "set %zu\n" : "error %zu bytes were not read\n", size);
}

static void run_set(bench_t* b, int set) {
  pestle_tensor_t views[MOST_IO];
  for (size_t i = 0; i < b->inputs + b->outputs; ++i)
    views[i] = b->io[set][i].view;
  check(pestle_executable_run(b->executable, b->stream, views, b->inputs,
                              views + b->inputs, b->outputs, NULL));
}

static double run_rounds(bench_t* b, int rounds) {
  double begin = now();
  for (int r = 0; r < rounds; ++r) {
    for (int s = 0; s < b->sets; ++s)
      run_set(b, s);
  }
  check(pestle_stream_synchronize(b->stream));
  return (now() - begin) / rounds / b->sets;
}

static void measure(bench_t* b, double milliseconds) {
  // The first runs are recorded; the next tell how many fill the time.
  if (!b->executable) {
    printf("error nothing is loaded\n");
    return;
  }
  static pestle_executable_t* warm;
  static double estimate;
  if (warm != b->executable) {
    run_rounds(b, 4);
    estimate = run_rounds(b, 2);
    warm = b->executable;
  }
  // The device comes back from the process whose turn it was: 150 us on an H200, which a
  // peer's events do not count either.
  run_rounds(b, 1);
  int rounds = (int)(milliseconds / (estimate * b->sets)) + 1;
  printf("us %.4f\n", run_rounds(b, rounds) * 1e3);
}

static void write_bytes(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wb");
  bool written = file && fwrite(data, 1, size, file) == size;
  if (file && fclose(file)) written = false;
  printf(written ? "saved %zu\n" : "error %zu bytes were not written\n", size);
}

static void save(bench_t* b, unsigned index, const char* path) {
  if (!b->executable || index >= b->outputs) {
    printf("error there is no such output\n");
    return;
  }
  pestle_buffer_t* buffer = b->io[0][b->inputs + index].buffer;
  size_t size = pestle_buffer_size(buffer);
  char* data = malloc(size);
  if (!data) exit(1);
  memset(data, 0xa5, size);
  check(pestle_buffer_write(buffer, 0, data, size));
  run_set(b, 0);
  check(pestle_stream_synchronize(b->stream));
  check(pestle_buffer_read(buffer, 0, data, size));
  write_bytes(path, data, size);
  free(data);
}

int main(int argc, char** argv) {
  static bench_t b;
  char line[1200], path[1024], how[8];
  int sets;
  double milliseconds;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = argc < 3,
                                      .cache_dir = argc < 3 ? NULL : argv[2]};
  setvbuf(stdout, NULL, _IOLBF, 0);
  check(pestle_context_create(&options, &b.context));
  check(pestle_context_device(b.context, argc > 1 ? argv[1] : NULL, &b.device));
  check(pestle_stream_create(b.device, &b.stream));
  b.normal = make_normal();
  while (b.normal && fgets(line, sizeof(line), stdin)) {
    int read = sscanf(line, "load %1023s %d %7s", path, &sets, how);
    if (read >= 2) {
      load(&b, path, sets, read == 3 && !strcmp(how, "fast"));
    } else if (sscanf(line, "normal %1023s", path) == 1) {
      write_bytes(path, b.normal, BLOCK * sizeof(*b.normal));
    } else if (sscanf(line, "input %d %1023s", &sets, path) == 2) {
      set_input(&b, (unsigned)sets, path);
    } else if (sscanf(line, "save %d %1023s", &sets, path) == 2) {
      save(&b, (unsigned)sets, path);
    } else if (sscanf(line, "time %lf", &milliseconds) == 1) {
      measure(&b, milliseconds);
    } else {
      break;
    }
  }
  unload(&b);
  free(b.normal);
  pestle_stream_release(b.stream);
  pestle_context_release(b.context);
  return 0;
}
