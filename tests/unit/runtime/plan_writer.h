// SPDX-License-Identifier: Apache-2.0
// Writes plans by hand: what codegen does, for tests that have no compiler.
// Everything has a fixed capacity that no test exceeds.
#ifndef PESTLE_TESTS_UNIT_RUNTIME_PLAN_WRITER_H_
#define PESTLE_TESTS_UNIT_RUNTIME_PLAN_WRITER_H_

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "pestle/plan_format.h"
#include "pestle/version.h"

enum { PLAN_WRITER_MAX = 64 };

typedef struct plan_writer_t {
  pestle_plan_header_t header;
  char strings[4096];
  pestle_plan_device_t devices[PLAN_WRITER_MAX];
  pestle_plan_io_t inputs[PLAN_WRITER_MAX];
  pestle_plan_io_t outputs[PLAN_WRITER_MAX];
  pestle_plan_kernel_t kernels[PLAN_WRITER_MAX];
  pestle_plan_binding_t bindings[PLAN_WRITER_MAX];
  pestle_plan_step_t steps[PLAN_WRITER_MAX];
  pestle_plan_call_t calls[PLAN_WRITER_MAX];
  pestle_plan_tensor_t tensors[PLAN_WRITER_MAX];
  char constants[4096];
  size_t constant_size;
  pestle_plan_constant_ref_t refs[PLAN_WRITER_MAX];  // the first: |constants|
  pestle_plan_location_t locations[4];
  uint32_t location_ids[8];
  pestle_plan_collective_t collectives[4];
  int32_t groups[8];
  pestle_plan_part_t parts[4];
  pestle_plan_part_place_t places[8];
  char code[8192];
} plan_writer_t;

static inline pestle_plan_str_t plan_text(plan_writer_t* w, const char* text) {
  if (!*text) return 0;
  size_t at = w->header.strings.count;
  memcpy(w->strings + at, text, strlen(text) + 1);
  w->header.strings.count += strlen(text) + 1;
  return (pestle_plan_str_t)at;
}

static inline void plan_begin(plan_writer_t* w, const char* name) {
  memset(w, 0, sizeof(*w));
  memcpy(w->header.magic, PESTLE_PLAN_MAGIC, 8);
  w->header.version = PESTLE_PLAN_VERSION;
  w->header.header_size = sizeof(w->header);
  w->header.build_id = pestle_build_id_u64();
  w->header.strings.count = 1;
  w->header.constant_refs.count = 1;
  w->header.replicas = w->header.partitions = 1;
  w->header.name = plan_text(w, name);
}

static inline uint32_t plan_device(plan_writer_t* w, const char* backend,
                                   const char* features) {
  uint32_t index = (uint32_t)w->header.devices.count++;
  w->devices[index] = (pestle_plan_device_t){
      .backend = plan_text(w, backend),
      .device_type = PESTLE_DEVICE_CPU,
      .features = plan_text(w, features),
  };
  return index;
}

static inline void plan_fill_io(plan_writer_t* w, pestle_plan_io_t* io,
                                const char* name, pestle_dtype_t dtype,
                                int rank, const int64_t* dims) {
  *io = (pestle_plan_io_t){.name = plan_text(w, name),
                           .align_log2 = 6,
                           .alias = -1,
                           .dtype = (uint8_t)dtype,
                           .rank = (uint8_t)rank,
                           .size = pestle_dtype_size(dtype)};
  for (int i = 0; i < rank; ++i) {
    io->dims[i] = dims[i];
    io->size *= (uint64_t)dims[i];
  }
}

static inline uint32_t plan_input(plan_writer_t* w, const char* name,
                                  pestle_dtype_t dtype, int rank,
                                  const int64_t* dims) {
  uint32_t index = (uint32_t)w->header.inputs.count++;
  plan_fill_io(w, &w->inputs[index], name, dtype, rank, dims);
  return index;
}

static inline uint32_t plan_output(plan_writer_t* w, const char* name,
                                   pestle_dtype_t dtype, int rank,
                                   const int64_t* dims) {
  uint32_t index = (uint32_t)w->header.outputs.count++;
  plan_fill_io(w, &w->outputs[index], name, dtype, rank, dims);
  return index;
}

// Bytes of the arena, 64-byte aligned.
static inline uint64_t plan_arena(plan_writer_t* w, uint64_t size) {
  uint64_t at = (uint64_t)w->header.arena_size;
  w->header.arena_size += (int64_t)((size + 63) & ~(uint64_t)63);
  return at;
}

// Its offset in constant 0.
static inline uint64_t plan_constant(plan_writer_t* w, const void* data,
                                     size_t size) {
  uint64_t at = w->constant_size;
  memcpy(w->constants + at, data, size);
  w->constant_size += (size + 63) & ~(size_t)63;
  return at;
}

// Refers to a constant outside of the plan; its index.
static inline uint32_t plan_external(plan_writer_t* w, const uint64_t hash[2],
                                     uint64_t size) {
  uint32_t index = (uint32_t)w->header.constant_refs.count++;
  w->refs[index] = (pestle_plan_constant_ref_t){
      .hash = {hash[0], hash[1]}, .size = size, .external = 1};
  return index;
}

static inline uint32_t plan_bind(plan_writer_t* w,
                                 pestle_plan_storage_t storage, uint32_t index,
                                 uint64_t offset, uint64_t size) {
  uint32_t at = (uint32_t)w->header.bindings.count++;
  w->bindings[at] = (pestle_plan_binding_t){.storage = (uint16_t)storage,
                                            .index = index,
                                            .offset = offset,
                                            .size = size};
  return at;
}

// The same, of what the launch writes.
static inline uint32_t plan_bind_written(plan_writer_t* w,
                                         pestle_plan_storage_t storage,
                                         uint32_t index, uint64_t offset,
                                         uint64_t size) {
  uint32_t at = plan_bind(w, storage, index, offset, size);
  w->bindings[at].flags = PESTLE_PLAN_WRITTEN;
  return at;
}

static inline uint32_t plan_kernel(plan_writer_t* w, const char* name,
                                   uint32_t device, const void* code,
                                   size_t size, uint32_t args, int64_t group,
                                   uint64_t work) {
  uint32_t index = (uint32_t)w->header.kernels.count++;
  w->kernels[index] = (pestle_plan_kernel_t){
      .name = plan_text(w, name),
      .device = device,
      .arg_count = args,
      .code_offset = w->header.code.count,
      .code_size = size,
      .group = {group, 1, 1},
      .work = work,
  };
  memcpy(w->code + w->header.code.count, code, size);
  w->header.code.count += (size + 63) & ~(size_t)63;
  return index;
}

static inline uint32_t plan_step(plan_writer_t* w, pestle_plan_step_kind_t kind,
                                 uint32_t kernel, uint32_t first,
                                 uint32_t count, uint32_t target) {
  uint32_t index = (uint32_t)w->header.steps.count++;
  w->steps[index] = (pestle_plan_step_t){
      .kind = (uint32_t)kind,
      .device = kind == PESTLE_PLAN_LAUNCH ? w->kernels[kernel].device : 0,
      .kernel = kernel,
      .first = first,
      .count = count,
      .target = target,
  };
  return index;
}

static inline uint32_t plan_launch(plan_writer_t* w, uint32_t kernel,
                                   uint32_t first) {
  return plan_step(w, PESTLE_PLAN_LAUNCH, kernel, first,
                   w->kernels[kernel].arg_count, 0);
}

// Adds a location, and its number to those that records may name.
static inline uint32_t plan_location(plan_writer_t* w, const char* op) {
  uint32_t index = (uint32_t)w->header.locations.count++;
  w->locations[index] = (pestle_plan_location_t){.op = plan_text(w, op)};
  w->location_ids[w->header.location_ids.count++] = index;
  return index;
}

// Adds a part, the places of which are those that are added next; its index.
static inline uint32_t plan_part(plan_writer_t* w, uint64_t size) {
  uint32_t index = (uint32_t)w->header.parts.count++;
  w->parts[index] = (pestle_plan_part_t){
      .size = size, .first = (uint32_t)w->header.part_places.count};
  return index;
}

static inline void plan_part_place(plan_writer_t* w, uint32_t constant,
                                   uint64_t offset) {
  w->places[w->header.part_places.count++] =
      (pestle_plan_part_place_t){.offset = offset, .constant = constant};
}

// Makes the checksum right again.
static inline void plan_seal(void* data, size_t size) {
  pestle_plan_header_t* header = data;
  if (header->checked < sizeof(*header) || header->checked > size)
    header->checked = size;
  header->checksum =
      pestle_hash64((const char*)data + 32, (size_t)header->checked - 32);
}

static inline void plan_place(char* base, uint64_t* size,
                              pestle_plan_section_t* section,
                              const void* records, size_t record_size) {
  section->offset = *size;
  size_t bytes = section->count * record_size;
  if (base) memcpy(base + *size, records, bytes);
  *size += (bytes + 63) & ~(size_t)63;
}

static inline uint64_t plan_lay_out(plan_writer_t* w, char* base) {
  pestle_plan_header_t* h = &w->header;
  uint64_t size = (sizeof(*h) + 63) & ~(uint64_t)63;
  plan_place(base, &size, &h->strings, w->strings, 1);
  plan_place(base, &size, &h->devices, w->devices, sizeof(w->devices[0]));
  plan_place(base, &size, &h->inputs, w->inputs, sizeof(w->inputs[0]));
  plan_place(base, &size, &h->outputs, w->outputs, sizeof(w->outputs[0]));
  plan_place(base, &size, &h->kernels, w->kernels, sizeof(w->kernels[0]));
  plan_place(base, &size, &h->bindings, w->bindings, sizeof(w->bindings[0]));
  plan_place(base, &size, &h->steps, w->steps, sizeof(w->steps[0]));
  pestle_plan_section_t constants = {0, w->constant_size};
  plan_place(base, &size, &constants, w->constants, 1);
  w->refs[0].offset = constants.offset;
  w->refs[0].size = w->constant_size;
  plan_place(base, &size, &h->constant_refs, w->refs, sizeof(w->refs[0]));
  plan_place(base, &size, &h->code, w->code, 1);
  plan_place(base, &size, &h->calls, w->calls, sizeof(w->calls[0]));
  plan_place(base, &size, &h->call_tensors, w->tensors, sizeof(w->tensors[0]));
  plan_place(base, &size, &h->locations, w->locations, sizeof(w->locations[0]));
  plan_place(base, &size, &h->location_ids, w->location_ids, sizeof(uint32_t));
  plan_place(base, &size, &h->collectives, w->collectives,
             sizeof(w->collectives[0]));
  plan_place(base, &size, &h->groups, w->groups, sizeof(int32_t));
  plan_place(base, &size, &h->parts, w->parts, sizeof(w->parts[0]));
  plan_place(base, &size, &h->part_places, w->places, sizeof(w->places[0]));
  return size;
}

// The bytes of the plan, to be freed with free().
static inline void* plan_finish(plan_writer_t* w, size_t* out_size) {
  uint64_t size = plan_lay_out(w, NULL);
  char* data = aligned_alloc(64, size);
  if (!data) return NULL;
  memset(data, 0, size);
  w->header.size = w->header.checked = size;
  (void)plan_lay_out(w, data);
  memcpy(data, &w->header, sizeof(w->header));
  plan_seal(data, size);
  *out_size = size;
  return data;
}

#endif  // PESTLE_TESTS_UNIT_RUNTIME_PLAN_WRITER_H_
