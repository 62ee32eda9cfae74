// SPDX-License-Identifier: Apache-2.0
// The plan loader: bytes as they are, and once more with the version, size and checksum
// that are right, so that the checks behind these are reached. The mutator knows the sections: it changes a word of
// a record, a record for another one, or where a section lies and how long it is.
#include "../unit/runtime/plan_writer.h"
#include "../unit/runtime/test_backend.h"
#include "mutate.h"
#include "target.h"

static void try_plan(pestle_context_t* context, const void* data, size_t size) {
  pestle_plan_t* plan;
  pestle_status_t status =
      pestle_plan_create(context, data, size, NULL, NULL, &plan);
  if (!status) {
    pestle_executable_t* executable;
    status = pestle_executable_create(context, plan, NULL, &executable);
    for (int32_t p = -1; p < 3; ++p)
      (void)pestle_executable_constant_bytes(executable, p);
    pestle_executable_release(executable);
  }
  pestle_status_release(status);
  pestle_plan_release(plan);
}

static void try_input(pestle_fuzz_t* fuzz, const uint8_t* data, size_t size) {
  char* copy = aligned_alloc(64, (size + 64) & ~(size_t)63);
  if (!copy) return;
  memcpy(copy, data, size);
  try_plan(fuzz->context, copy, size);
  if (size >= sizeof(pestle_plan_header_t)) {
    pestle_plan_header_t* header = (void*)copy;
    memcpy(header->magic, PESTLE_PLAN_MAGIC, sizeof(header->magic));
    header->version = PESTLE_PLAN_VERSION;
    header->header_size = sizeof(*header);
    header->size = size;
    plan_seal(copy, size);
    try_plan(fuzz->context, copy, size);
  }
  free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pestle_fuzz_t fuzz;
  return pestle_fuzz_run(&fuzz, test_backend_add, try_input, data, size);
}

// --- The mutator ---

typedef struct section_t {
  size_t at;     // of its pestle_plan_section_t in the header
  size_t width;  // of a record
} section_t;

#define SECTION(name, type) {offsetof(pestle_plan_header_t, name), sizeof(type)}
static const section_t sections[] = {
    SECTION(strings, char),
    SECTION(devices, pestle_plan_device_t),
    SECTION(inputs, pestle_plan_io_t),
    SECTION(outputs, pestle_plan_io_t),
    SECTION(kernels, pestle_plan_kernel_t),
    SECTION(bindings, pestle_plan_binding_t),
    SECTION(steps, pestle_plan_step_t),
    SECTION(constant_refs, pestle_plan_constant_ref_t),
    SECTION(code, char),
    SECTION(calls, pestle_plan_call_t),
    SECTION(call_tensors, pestle_plan_tensor_t),
    SECTION(locations, pestle_plan_location_t),
    SECTION(location_ids, uint32_t),
    SECTION(collectives, pestle_plan_collective_t),
    SECTION(groups, int32_t),
    SECTION(parts, pestle_plan_part_t),
    SECTION(part_places, pestle_plan_part_place_t),
};

// Changes a number of |width| bytes at |at|: an edge, or a neighbour.
static void change_number(uint8_t* at, size_t width, uint64_t* state) {
  uint64_t value = 0;
  memcpy(&value, at, width);
  switch (fuzz_below(state, 3)) {
    case 0:
      ++value;
      break;
    case 1:
      --value;
      break;
    default:
      value = fuzz_number(state);
  }
  memcpy(at, &value, width);
}

static void change_header(uint8_t* data, uint64_t* state) {
  size_t width = fuzz_below(state, 2) ? 8 : 4;
  size_t from = offsetof(pestle_plan_header_t, name);
  size_t room = sizeof(pestle_plan_header_t) - from;
  change_number(data + from + fuzz_below(state, room / width) * width, width,
                state);
}

static void change_record(uint8_t* data, size_t size, const section_t* of,
                          const pestle_plan_section_t* s, uint64_t* state) {
  static const size_t widths[] = {1, 2, 4, 8};
  uint8_t copy[512];
  size_t chosen = fuzz_below(state, s->count),
         other = fuzz_below(state, s->count);
  uint8_t* record = data + s->offset + chosen * of->width;
  const uint8_t* from = data + s->offset + other * of->width;
  if (chosen >= size || other >= size) return;
  size_t width = widths[fuzz_below(state, 4)];
  if (width > of->width) width = of->width;
  size_t at = fuzz_below(state, of->width / width) * width;
  switch (fuzz_below(state, 6)) {
    case 0:  // another record
      memcpy(copy, from, of->width);
      memcpy(record, copy, of->width);
      return;
    case 1:  // a word of another record
      memcpy(copy, from + at, width);
      memcpy(record + at, copy, width);
      return;
    default:
      change_number(record + at, width, state);
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed) {
  uint64_t state = fuzz_seed(seed);
  pestle_plan_header_t header;
  for (size_t times = 1 + fuzz_below(&state, 5); times; --times) {
    if (size < sizeof(header) || !fuzz_below(&state, 30)) {
      uint8_t byte = (uint8_t)fuzz_next(&state);
      size = fuzz_bytes(data, size, max_size, &byte, 1, &state);
      continue;
    }
    memcpy(&header, data, sizeof(header));
    const section_t* of =
        &sections[fuzz_below(&state, sizeof(sections) / sizeof(*sections))];
    pestle_plan_section_t section;
    memcpy(&section, data + of->at, sizeof(section));
    bool is_there = section.count && section.offset < size &&
                    section.count <= (size - section.offset) / of->width;
    if (is_there && fuzz_below(&state, 8)) {
      change_record(data, size, of, &section, &state);
    } else if (fuzz_below(&state, 2)) {
      change_number(data + of->at + 8 * fuzz_below(&state, 2), 8, &state);
    } else {
      change_header(data, &state);
    }
    if (fuzz_below(&state, 4)) {  // what the first checks ask for
      header.size = size;
      memcpy(data + offsetof(pestle_plan_header_t, size), &header.size, 8);
    }
  }
  return size;
}
