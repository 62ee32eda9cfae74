// SPDX-License-Identifier: Apache-2.0
// Any bytes as MLIR bytecode. The mutator knows the container: it changes bytes
// and numbers within one section and mends the section's length, so that what is
// behind the container's own checks is reached.
#include "frontend/stablehlo/container.h"
#include "frontend/stablehlo/import.h"
#include "mutate.h"
#include "pestle/graph.h"
#include "target.h"

static void try_input(pestle_fuzz_t* fuzz, const uint8_t* data, size_t size) {
  pestle_module_t* module = NULL;
  pestle_status_t status =
      pestle_import_stablehlo(fuzz->context, data, size, NULL, &module);
  uint64_t hash[2];
  if (!status) status = pestle_module_signature(module, hash);
  pestle_status_release(status);
  pestle_module_release(module);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pestle_fuzz_t fuzz;
  return pestle_fuzz_run(&fuzz, NULL, try_input, data, size);
}

// --- The mutator ---

enum { MAX_SECTIONS = 16, MAX_FILE = PESTLE_FUZZ_MAX };

typedef struct part_t {
  uint8_t id;
  const uint8_t* data;
  size_t size;
} part_t;

typedef struct file_t {
  size_t head;  // magic, format and producer
  part_t parts[MAX_SECTIONS];
  size_t count;
} file_t;

static bool split(const uint8_t* data, size_t size, file_t* out) {
  pestle_reader_t r = pestle_reader_make(data, size);
  uint64_t format;
  pestle_str_t producer;
  *out = (file_t){.count = 0};
  if (!pestle_bytecode_is(data, size)) return false;
  r.next += 4;
  pestle_status_t status = pestle_reader_varint(&r, &format);
  if (!status) status = pestle_reader_terminated(&r, &producer);
  out->head = (size_t)(r.next - data);
  while (!status && pestle_reader_more(&r) && out->count < MAX_SECTIONS) {
    pestle_reader_t section;
    part_t* part = &out->parts[out->count];
    status = pestle_bytecode_section(&r, &part->id, &section);
    if (status) break;
    part->data = section.next;
    part->size = pestle_reader_left(&section);
    ++out->count;
  }
  bool whole = !status && !pestle_reader_more(&r) && out->count;
  pestle_status_release(status);
  return whole;
}

// A number in as many bytes as it needs.
static size_t put_varint(uint8_t* out, uint64_t value) {
  unsigned extra = 0;
  while (extra < 8 && value >> (7 * (extra + 1)))
    ++extra;
  if (extra == 8) {
    *out++ = 0;
    for (unsigned i = 0; i < 8; ++i)
      *out++ = (uint8_t)(value >> (8 * i));
    return 9;
  }
  uint64_t bits = (value << 1 | 1) << extra;
  for (unsigned i = 0; i <= extra; ++i)
    out[i] = (uint8_t)(bits >> (8 * i));
  return extra + 1;
}

// Changes bytes and numbers of |data|, which has room for |room| bytes.
static size_t mutate(uint8_t* data, size_t size, size_t room, uint64_t* state) {
  uint8_t number[9];
  size_t width = put_varint(number, fuzz_number(state));
  return fuzz_bytes(data, size, room, number, width, state);
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed) {
  static uint8_t work[MAX_FILE], made[2 * MAX_FILE];
  uint64_t state = fuzz_seed(seed);
  file_t file;
  if (size > MAX_FILE / 2 || !split(data, size, &file) ||
      !fuzz_below(&state, 20)) {
    return mutate(data, size, max_size, &state);
  }
  size_t chosen = fuzz_below(&state, file.count);
  part_t* part = &file.parts[chosen];
  memcpy(work, part->data, part->size);
  for (size_t times = 1 + fuzz_below(&state, 3); times; --times)
    part->size = mutate(work, part->size, MAX_FILE, &state);
  part->data = work;
  size_t end = file.head;
  memcpy(made, data, end);
  for (size_t i = 0; i < file.count; ++i) {
    made[end++] = file.parts[i].id;
    end += put_varint(made + end, file.parts[i].size);
    if (end + file.parts[i].size > max_size) return size;
    memcpy(made + end, file.parts[i].data, file.parts[i].size);
    end += file.parts[i].size;
  }
  memcpy(data, made, end);
  return end;
}
