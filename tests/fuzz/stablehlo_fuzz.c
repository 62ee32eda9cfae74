// SPDX-License-Identifier: Apache-2.0
// Any bytes as MLIR bytecode. The mutator knows the container: it changes bytes
// and numbers within one section and mends the section's length, so that what is
// behind the container's own checks is reached.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "frontend/stablehlo/container.h"
#include "frontend/stablehlo/import.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pestle_context_t* context;
  static pestle_fuzz_blocks_t blocks;
  static size_t in_use;
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = {&blocks, pestle_fuzz_resize},
      .cache_dir = "",
      .backend_path = "/nonexistent",
      .threads = 1};
  pestle_status_t status = NULL;
  if (!context) status = pestle_context_create(&options, &context);
  pestle_module_t* module = NULL;
  if (!status) {
    status = pestle_import_stablehlo(context, data, size, NULL, &module);
  }
  uint64_t hash[2];
  if (!status) status = pestle_module_signature(module, hash);
  pestle_status_release(status);
  pestle_module_release(module);
  // The first input makes what a context keeps.
  if (!in_use) in_use = blocks.in_use;
  if (blocks.in_use > in_use) abort();  // leaked
  return 0;
}

// --- The mutator ---

enum { MAX_SECTIONS = 16, MAX_FILE = 1 << 20 };

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

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static size_t below(uint64_t* state, size_t limit) {
  return limit ? (size_t)(next_random(state) % limit) : 0;
}

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

// Numbers that checks are about.
static uint64_t some_number(uint64_t* state) {
  static const uint64_t edges[] = {
      0,          1,          2,         3,       16,       17,
      63,         64,         100,       127,     128,      255,
      UINT32_MAX, UINT64_MAX, INT64_MAX, 1 << 20, 1u << 31, INT32_MAX};
  if (below(state, 2)) return below(state, 300);
  return edges[below(state, sizeof(edges) / sizeof(*edges))];
}

// Changes |data|, which has room for |room| bytes; the new size.
static size_t mutate(uint8_t* data, size_t size, size_t room, uint64_t* state) {
  uint8_t number[9];
  size_t at = below(state, size + 1), length;
  switch (below(state, 6)) {
    case 0:
      if (at < size) data[at] = (uint8_t)next_random(state);
      return size;
    case 1:
      if (at < size) data[at] ^= (uint8_t)(1u << below(state, 8));
      return size;
    case 2:  // a number over what is there
      length = put_varint(number, some_number(state));
      if (at + length <= size) memcpy(data + at, number, length);
      return size;
    case 3:  // a number between
      length = put_varint(number, some_number(state));
      if (size + length > room) return size;
      memmove(data + at + length, data + at, size - at);
      memcpy(data + at, number, length);
      return size + length;
    case 4:  // something less
      length = 1 + below(state, 4);
      if (at + length > size) return size;
      memmove(data + at, data + at + length, size - at - length);
      return size - length;
    default:  // a piece again
      length = 1 + below(state, 16);
      if (at + length > size) return size;
      memmove(data + below(state, size - length + 1), data + at, length);
      return size;
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed) {
  static uint8_t work[MAX_FILE], made[2 * MAX_FILE];
  uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  file_t file;
  if (size > MAX_FILE / 2 || !split(data, size, &file) || !below(&state, 20)) {
    return mutate(data, size, max_size, &state);
  }
  size_t chosen = below(&state, file.count);
  part_t* part = &file.parts[chosen];
  memcpy(work, part->data, part->size);
  for (size_t times = 1 + below(&state, 3); times; --times)
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
