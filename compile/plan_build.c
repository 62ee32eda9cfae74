// SPDX-License-Identifier: Apache-2.0
// A plan's strings, bindings, steps and bytes.
#include "compile/plan_build.h"

#include <string.h>

#include "base/bits.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/mem.h"
#include "compile/plan_constants.h"
#include "pestle/version.h"

void pestle_plan_build_init(pestle_allocator_t allocator,
                            pestle_plan_build_t* out_plan) {
  memset(out_plan, 0, sizeof(*out_plan));
  out_plan->allocator = allocator;
  pestle_strbuf_init(allocator, &out_plan->strings);
  pestle_map_init(allocator, &out_plan->string_offsets);
  pestle_map_init(allocator, &out_plan->constant_keys);
  pestle_map_init(allocator, &out_plan->part_keys);
  pestle_vec_init(&out_plan->devices, allocator);
  pestle_vec_init(&out_plan->inputs, allocator);
  pestle_vec_init(&out_plan->outputs, allocator);
  pestle_vec_init(&out_plan->kernels, allocator);
  pestle_vec_init(&out_plan->bindings, allocator);
  pestle_vec_init(&out_plan->steps, allocator);
  pestle_vec_init(&out_plan->calls, allocator);
  pestle_vec_init(&out_plan->call_tensors, allocator);
  pestle_vec_init(&out_plan->locations, allocator);
  pestle_vec_init(&out_plan->location_ids, allocator);
  pestle_vec_init(&out_plan->collectives, allocator);
  pestle_vec_init(&out_plan->groups, allocator);
  pestle_vec_init(&out_plan->parts, allocator);
  pestle_vec_init(&out_plan->part_places, allocator);
  out_plan->replicas = out_plan->partitions = 1;
  pestle_vec_init(&out_plan->constants, allocator);
  pestle_strbuf_append_char(&out_plan->strings, 0);
}

void pestle_plan_build_deinit(pestle_plan_build_t* plan) {
  for (size_t i = 0; i < plan->constants.size; ++i) {
    pestle_constant_release(plan->constants.data[i].shared);
  }
  pestle_strbuf_deinit(&plan->strings);
  pestle_map_deinit(&plan->string_offsets);
  pestle_map_deinit(&plan->constant_keys);
  pestle_map_deinit(&plan->part_keys);
  pestle_vec_deinit(&plan->devices);
  pestle_vec_deinit(&plan->inputs);
  pestle_vec_deinit(&plan->outputs);
  pestle_vec_deinit(&plan->kernels);
  pestle_vec_deinit(&plan->bindings);
  pestle_vec_deinit(&plan->steps);
  pestle_vec_deinit(&plan->calls);
  pestle_vec_deinit(&plan->call_tensors);
  pestle_vec_deinit(&plan->locations);
  pestle_vec_deinit(&plan->location_ids);
  pestle_vec_deinit(&plan->collectives);
  pestle_vec_deinit(&plan->groups);
  pestle_vec_deinit(&plan->parts);
  pestle_vec_deinit(&plan->part_places);
  pestle_vec_deinit(&plan->constants);
}

pestle_plan_str_t pestle_plan_string(pestle_plan_build_t* plan,
                                     const char* text) {
  if (!text || !text[0]) return 0;
  bool added = false;
  pestle_map_value_t* v =
      pestle_map_put(&plan->string_offsets, text, strlen(text), &added);
  if (!v) {
    plan->failed = true;
    return 0;
  }
  if (added) {
    v->u64 = plan->strings.size;
    pestle_strbuf_append_bytes(&plan->strings, text, strlen(text) + 1);
  }
  return (pestle_plan_str_t)v->u64;
}

// --- Bindings and steps ---

uint32_t pestle_plan_bind(pestle_plan_build_t* plan,
                          const pestle_plan_binding_t* bindings,
                          uint32_t count) {
  uint32_t first = (uint32_t)plan->bindings.size;
  if (!pestle_vec_append(&plan->bindings, bindings, count)) {
    plan->failed = true;
  }
  return first;
}

uint32_t pestle_plan_step(pestle_plan_build_t* plan, pestle_plan_step_t step) {
  if (!pestle_vec_push(&plan->steps, step)) plan->failed = true;
  return (uint32_t)plan->steps.size - 1;
}

// --- Bytes ---

static pestle_plan_section_t place(uint64_t* end, uint64_t count,
                                   uint64_t size) {
  pestle_plan_section_t s = {*end, count};
  *end += pestle_align_up(count * size, PESTLE_BUFFER_ALIGNMENT);
  return s;
}

static void fill(uint8_t* data, pestle_plan_section_t s, const void* from,
                 size_t size) {
  if (s.count) memcpy(data + s.offset, from, (size_t)s.count * size);
}

// Places artifacts: identical kernels point to the code of the first.
static void place_code(pestle_plan_build_t* plan,
                       const pestle_kernels_t* kernels, uint64_t* out_size) {
  uint64_t end = 0;
  for (size_t i = 0; i < kernels->list.size; ++i) {
    const pestle_kernel_t* k = kernels->list.data[i];
    pestle_plan_kernel_t* p = &plan->kernels.data[i];
    if (k->unique != i) {
      p->code_offset = plan->kernels.data[k->unique].code_offset;
      p->code_size = plan->kernels.data[k->unique].code_size;
      continue;
    }
    p->code_offset = end;
    p->code_size = k->code.size;
    end += pestle_align_up(k->code.size, PESTLE_BUFFER_ALIGNMENT);
  }
  *out_size = end;
}

static void fill_code(uint8_t* code, const pestle_plan_build_t* plan,
                      const pestle_kernels_t* kernels) {
  for (size_t i = 0; i < kernels->list.size; ++i) {
    const pestle_kernel_t* k = kernels->list.data[i];
    if (k->unique == i && k->code.size) {
      memcpy(code + plan->kernels.data[i].code_offset, k->code.data,
             k->code.size);
    }
  }
}

static int64_t scratch_size(const pestle_plan_build_t* plan) {
  int64_t most = 0;
  for (size_t i = 0; i < plan->kernels.size; ++i) {
    int64_t n = (int64_t)pestle_align_up(plan->kernels.data[i].shared_bytes,
                                         PESTLE_BUFFER_ALIGNMENT);
    if (n > most) most = n;
  }
  return most;
}

// The header of the plan, its sections placed from |*end| on.
static pestle_plan_header_t make_header(pestle_plan_build_t* plan,
                                        const pestle_kernels_t* kernels,
                                        const char* name,
                                        const uint64_t signature[2],
                                        uint64_t* end) {
  pestle_plan_header_t h = {.version = PESTLE_PLAN_VERSION,
                            .header_size = sizeof(h),
                            .signature = {signature[0], signature[1]},
                            .build_id = pestle_build_id_u64(),
                            .numerics = (uint32_t)kernels->options->numerics,
                            .arena_size = plan->arena_size,
                            .lower_bound = plan->lower_bound,
                            .scratch_size = scratch_size(plan)};
  memcpy(h.magic, PESTLE_PLAN_MAGIC, sizeof(h.magic));
  h.name = pestle_plan_string(plan, name);
  uint64_t code_size;
  place_code(plan, kernels, &code_size);
  *end = pestle_align_up(sizeof(h), PESTLE_BUFFER_ALIGNMENT);
  h.strings = place(end, plan->strings.size, 1);
  h.devices = place(end, plan->devices.size, sizeof(pestle_plan_device_t));
  h.inputs = place(end, plan->inputs.size, sizeof(pestle_plan_io_t));
  h.outputs = place(end, plan->outputs.size, sizeof(pestle_plan_io_t));
  h.kernels = place(end, plan->kernels.size, sizeof(pestle_plan_kernel_t));
  h.bindings = place(end, plan->bindings.size, sizeof(pestle_plan_binding_t));
  h.steps = place(end, plan->steps.size, sizeof(pestle_plan_step_t));
  h.constant_refs =
      place(end, plan->constants.size, sizeof(pestle_plan_constant_ref_t));
  h.code = place(end, code_size, 1);
  h.calls = place(end, plan->calls.size, sizeof(pestle_plan_call_t));
  h.call_tensors =
      place(end, plan->call_tensors.size, sizeof(pestle_plan_tensor_t));
  h.locations =
      place(end, plan->locations.size, sizeof(pestle_plan_location_t));
  h.location_ids = place(end, plan->location_ids.size, sizeof(uint32_t));
  h.replicas = plan->replicas;
  h.partitions = plan->partitions;
  h.collectives =
      place(end, plan->collectives.size, sizeof(pestle_plan_collective_t));
  h.groups = place(end, plan->groups.size, sizeof(int32_t));
  h.parts = place(end, plan->parts.size, sizeof(pestle_plan_part_t));
  h.part_places =
      place(end, plan->part_places.size, sizeof(pestle_plan_part_place_t));
  return h;
}

// Fills the head of |data|, which is zero but for the records of the constants.
static void fill_plan(uint8_t* data, pestle_plan_header_t* h,
                      const pestle_plan_build_t* plan,
                      const pestle_kernels_t* kernels) {
  fill(data, h->strings, plan->strings.data, 1);
  fill(data, h->devices, plan->devices.data, sizeof(pestle_plan_device_t));
  fill(data, h->inputs, plan->inputs.data, sizeof(pestle_plan_io_t));
  fill(data, h->outputs, plan->outputs.data, sizeof(pestle_plan_io_t));
  fill(data, h->kernels, plan->kernels.data, sizeof(pestle_plan_kernel_t));
  fill(data, h->bindings, plan->bindings.data, sizeof(pestle_plan_binding_t));
  fill(data, h->steps, plan->steps.data, sizeof(pestle_plan_step_t));
  fill(data, h->calls, plan->calls.data, sizeof(pestle_plan_call_t));
  fill(data, h->call_tensors, plan->call_tensors.data,
       sizeof(pestle_plan_tensor_t));
  fill(data, h->locations, plan->locations.data,
       sizeof(pestle_plan_location_t));
  fill(data, h->location_ids, plan->location_ids.data, sizeof(uint32_t));
  fill(data, h->collectives, plan->collectives.data,
       sizeof(pestle_plan_collective_t));
  fill(data, h->groups, plan->groups.data, sizeof(int32_t));
  fill(data, h->parts, plan->parts.data, sizeof(pestle_plan_part_t));
  fill(data, h->part_places, plan->part_places.data,
       sizeof(pestle_plan_part_place_t));
  fill_code(data + h->code.offset, plan, kernels);
  memcpy(data, h, sizeof(*h));
  h->checksum = pestle_hash64(data + PESTLE_PLAN_CHECKED_FROM,
                              (size_t)h->checked - PESTLE_PLAN_CHECKED_FROM);
  memcpy(data, h, sizeof(*h));
}

static pestle_status_t write_plan(pestle_plan_build_t* plan,
                                  const pestle_kernels_t* kernels,
                                  const char* name, const uint64_t signature[2],
                                  pestle_plan_constant_ref_t* refs,
                                  void** out_data, size_t* out_size) {
  uint64_t end;
  pestle_plan_header_t h = make_header(plan, kernels, name, signature, &end);
  if (plan->failed || plan->strings.failed) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "writing the plan of '%s'", name);
  }
  size_t head = (size_t)end;
  h.checked = pestle_plan_place_constants(plan, &end, refs);
  h.size = end;
  uint8_t* data = pestle_alloc_aligned(plan->allocator, (size_t)end,
                                       PESTLE_BUFFER_ALIGNMENT);
  if (!data) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "the plan of '%s' needs %llu bytes",
                        name, (unsigned long long)end);
  }
  memset(data, 0, head);
  pestle_plan_fill_constants(kernels->context, data, plan, refs);
  fill(data, h.constant_refs, refs, sizeof(*refs));
  fill_plan(data, &h, plan, kernels);
  *out_data = data;
  *out_size = (size_t)end;
  return NULL;
}

static pestle_status_t write_all(pestle_plan_build_t* plan, bool share,
                                 const pestle_kernels_t* kernels,
                                 const char* name, const uint64_t signature[2],
                                 void** out_data, size_t* out_size) {
  if (share) PESTLE_TRY(pestle_plan_share_constants(kernels->context, plan));
  size_t size = plan->constants.size * sizeof(pestle_plan_constant_ref_t);
  pestle_plan_constant_ref_t* refs = pestle_alloc(plan->allocator, size);
  if (!refs) return PESTLE_ERROR(OUT_OF_MEMORY, "writing a plan");
  pestle_status_t status =
      write_plan(plan, kernels, name, signature, refs, out_data, out_size);
  pestle_dealloc(plan->allocator, refs, size);
  return status;
}

typedef struct bytes_t {
  pestle_allocator_t allocator;
  void* data;
  size_t size;
} bytes_t;

static void release_bytes(void* self) {
  bytes_t* b = self;
  pestle_free_aligned(b->allocator, b->data, b->size, PESTLE_BUFFER_ALIGNMENT);
  pestle_dealloc(b->allocator, b, sizeof(*b));
}

pestle_status_t pestle_plan_build_finish(pestle_plan_build_t* plan, bool share,
                                         const pestle_kernels_t* kernels,
                                         const char* name,
                                         const uint64_t signature[2],
                                         pestle_plan_t** out_plan) {
  bytes_t* b = pestle_alloc_zero(plan->allocator, sizeof(*b));
  if (!b) return PESTLE_ERROR(OUT_OF_MEMORY, "writing a plan");
  b->allocator = plan->allocator;
  int64_t begin = pestle_context_trace_begin(kernels->context);
  pestle_status_t status =
      write_all(plan, share, kernels, name, signature, &b->data, &b->size);
  if (status) {
    pestle_dealloc(plan->allocator, b, sizeof(*b));
    return status;
  }
  status = pestle_plan_create(kernels->context, b->data, b->size, release_bytes,
                              b, out_plan);
  if (status) release_bytes(b);  // it took nothing over
  pestle_context_trace_end(kernels->context, begin, "compile", "write plan",
                           NULL);
  return status;
}
