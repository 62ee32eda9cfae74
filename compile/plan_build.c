// SPDX-License-Identifier: Apache-2.0
#include "compile/plan_build.h"

#include <string.h>

#include "base/bits.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/mem.h"
#include "pestle/version.h"

void pestle_plan_build_init(pestle_allocator_t allocator,
                            pestle_plan_build_t* out_plan) {
  memset(out_plan, 0, sizeof(*out_plan));
  out_plan->allocator = allocator;
  pestle_strbuf_init(allocator, &out_plan->strings);
  pestle_map_init(allocator, &out_plan->string_offsets);
  pestle_map_init(allocator, &out_plan->constant_keys);
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

// --- Constants ---

static uint64_t constant_bytes(const pestle_kernel_arg_t* a) {
  uint64_t size = pestle_dtype_size(a->elements->type.dtype);
  if (a->pack) return (uint64_t)a->packed_elements * size;
  return (uint64_t)pestle_type_count(&a->elements->type) * size;
}

// Content and layout: shared by all kernels, plans and processes that read it
// so.
static pestle_hash128_t constant_key(const pestle_kernel_arg_t* a) {
  pestle_hasher_t h;
  pestle_hasher_init(&h);
  const pestle_elements_t* e = a->elements;
  uint32_t head[3] = {(uint32_t)e->type.dtype, (uint32_t)e->type.rank,
                      (uint32_t)e->splat};
  pestle_hasher_update(&h, head, sizeof(head));
  pestle_hasher_update(&h, e->type.dims,
                       (size_t)e->type.rank * sizeof(int64_t));
  pestle_hasher_update(&h, e->data, e->size);
  pestle_hasher_update_u64(&h, a->pack ? a->pack_count + 1 : 0);
  if (a->pack) {
    pestle_hasher_update(&h, a->pack, a->pack_count * sizeof(*a->pack));
    pestle_hasher_update(&h, &a->pack_offset, sizeof(a->pack_offset));
  }
  if (a->packer) {
    pestle_hasher_update(&h, a->packer->name, strlen(a->packer->name));
  }
  return pestle_hasher_finish(&h);
}

pestle_plan_binding_t pestle_plan_constant(pestle_plan_build_t* plan,
                                           const pestle_kernel_arg_t* arg) {
  pestle_plan_binding_t b = {.storage = PESTLE_PLAN_CONSTANT};
  pestle_hash128_t key = constant_key(arg);
  bool added = false;
  pestle_map_value_t* v =
      pestle_map_put(&plan->constant_keys, &key, sizeof(key), &added);
  if (!v) {
    plan->failed = true;
    return b;
  }
  if (added) {
    v->u64 = plan->constants.size;
    pestle_plan_constant_t c = {
        .arg = *arg, .key = {key.low, key.high}, .size = constant_bytes(arg)};
    plan->constant_size += pestle_align_up(c.size, PESTLE_BUFFER_ALIGNMENT);
    if (!pestle_vec_push(&plan->constants, c)) {
      plan->failed = true;
      return b;
    }
  }
  b.index = (uint32_t)v->u64;
  b.size = plan->constants.data[v->u64].size;
  return b;
}

static void copy_element(uint8_t* to, const uint8_t* from, size_t size) {
  memcpy(to, from, size);
}

// Fills the packed layout's dims from |dim| on. |limits| sums what split
// coordinates have reached so far; beyond their limit elements are zero.
typedef struct packer_t {
  const pestle_kernel_arg_t* arg;
  const uint8_t* source;
  uint8_t* target;
  size_t size;
  int64_t coordinate[2], limit[2];  // of columns and taps
} packer_t;

static void copy_words(uint8_t* to, const uint8_t* from, int64_t step,
                       int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    memcpy(to + i * 4, from + i * step * 4, 4);
}

// How many elements of the innermost dim |a| exist; the target is zero beyond.
static int64_t count_run(const packer_t* p, const pestle_pack_axis_t* a) {
  int which = a->reduction != 0;
  int64_t most = a->limit ? a->limit : p->limit[which], count = a->extent;
  if (p->limit[!which] && p->coordinate[!which] >= p->limit[!which]) return 0;
  if (!most) return count;
  int64_t left = most - p->coordinate[which];
  if (left <= 0) return 0;
  // With a step of none all stand where the first one does.
  int64_t inside = a->scale ? (left + a->scale - 1) / a->scale : count;
  return inside < count ? inside : count;
}

static void end_run(packer_t* p, const pestle_pack_axis_t* a, int64_t count) {
  size_t rest = (size_t)(a->extent - count) * p->size;
  if (rest) memset(p->target + (size_t)count * p->size, 0, rest);
  p->target += (size_t)a->extent * p->size;
}

// A whole innermost dim: millions of elements cost as much as their bytes, not a
// call each.
static void pack_run(packer_t* p, const pestle_pack_axis_t* a, int64_t from) {
  int64_t count = count_run(p, a);
  const uint8_t* source = p->source + (size_t)from * p->size;
  if (a->coef == 1) {
    if (count) memcpy(p->target, source, (size_t)count * p->size);
  } else if (p->size == 4) {
    copy_words(p->target, source, a->coef, count);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      copy_element(p->target + (size_t)i * p->size,
                   source + i * a->coef * (int64_t)p->size, p->size);
    }
  }
  end_run(p, a, count);
}

static void pack_dims(packer_t* p, uint32_t dim, int64_t from) {
  if (dim == p->arg->pack_count) {
    bool inside = true;
    for (int i = 0; i < 2; ++i) {
      inside = inside && (!p->limit[i] || p->coordinate[i] < p->limit[i]);
    }
    if (inside) {
      copy_element(p->target, p->source + (size_t)from * p->size, p->size);
    } else {
      memset(p->target, 0, p->size);
    }
    p->target += p->size;
    return;
  }
  const pestle_pack_axis_t* a = &p->arg->pack[dim];
  bool last = dim + 1 == p->arg->pack_count;
  if (last && a->scale >= 0) {
    pack_run(p, a, from);
    return;
  }
  int which = a->reduction != 0;
  int64_t start = p->coordinate[which];
  if (a->limit) p->limit[which] = a->limit;
  for (int64_t i = 0; i < a->extent; ++i) {
    p->coordinate[which] = start + i * a->scale;
    pack_dims(p, dim + 1, from + i * a->coef);
  }
  p->coordinate[which] = start;
}

static void write_constant(const pestle_plan_constant_t* c, uint8_t* target) {
  const pestle_elements_t* e = c->arg.elements;
  size_t size = pestle_dtype_size(e->type.dtype);
  if (c->arg.packer) {
    c->arg.packer->pack(&c->arg, target);
  } else if (e->splat) {
    for (uint64_t i = 0; i < c->size; i += size) {
      copy_element(target + i, e->data, size);
    }
  } else if (c->arg.pack) {
    packer_t p = {
        .arg = &c->arg, .source = e->data, .target = target, .size = size};
    pack_dims(&p, 0, c->arg.pack_offset);
  } else if (c->size) {
    memcpy(target, e->data, c->size);
  }
}

static void pack_constant(void* user, void* target, size_t size) {
  (void)size;
  write_constant(user, target);
}

typedef struct sharing_t {
  pestle_context_t* context;
  pestle_plan_build_t* plan;
  pestle_status_t* status;  // by constant
} sharing_t;

static void share_task(void* user, int64_t index) {
  const sharing_t* s = user;
  pestle_plan_constant_t* c = &s->plan->constants.data[index];
  if (c->size < PESTLE_PLAN_EXTERNAL_CONSTANT) return;
  s->status[index] = pestle_constant_get(s->context, c->key, (size_t)c->size,
                                         pack_constant, c, &c->shared);
}

// Hands large constants to the context, which may have them packed already;
// packing, hashing and writing them to the disk is what takes its time.
static pestle_status_t share_constants(pestle_context_t* context,
                                       pestle_plan_build_t* plan) {
  size_t count = plan->constants.size, bytes = count * sizeof(pestle_status_t);
  sharing_t s = {.context = context, .plan = plan};
  s.status = pestle_alloc_zero(plan->allocator, bytes);
  if (!s.status) return PESTLE_OOM();
  pestle_context_parallel_for(context, (int64_t)count, share_task, &s);
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count; ++i) {
    if (status) {
      pestle_status_release(s.status[i]);
    } else {
      status = s.status[i];
    }
  }
  pestle_dealloc(plan->allocator, s.status, bytes);
  return status;
}

// Places the constants that stay in the plan, behind one another.
static void place_constants(const pestle_plan_build_t* plan, uint64_t* end,
                            pestle_plan_constant_ref_t* refs) {
  for (size_t i = 0; i < plan->constants.size; ++i) {
    const pestle_plan_constant_t* c = &plan->constants.data[i];
    refs[i] = (pestle_plan_constant_ref_t){.key = {c->key[0], c->key[1]},
                                           .size = c->size,
                                           .external = c->shared != NULL};
    if (c->shared) {
      (void)pestle_constant_data(c->shared, refs[i].hash);
      continue;
    }
    refs[i].offset = *end;
    *end += pestle_align_up(c->size, PESTLE_BUFFER_ALIGNMENT);
  }
}

typedef struct filling_t {
  uint8_t* data;
  const pestle_plan_build_t* plan;
  pestle_plan_constant_ref_t* refs;
} filling_t;

static void fill_task(void* user, int64_t index) {
  const filling_t* f = user;
  pestle_plan_constant_ref_t* ref = &f->refs[index];
  if (ref->external) return;
  uint8_t* target = f->data + ref->offset;
  size_t padded = pestle_align_up(ref->size, PESTLE_BUFFER_ALIGNMENT);
  write_constant(&f->plan->constants.data[index], target);
  memset(target + ref->size, 0, padded - ref->size);
  pestle_hash128_t hash = pestle_hash128(target, (size_t)ref->size);
  ref->hash[0] = hash.low;
  ref->hash[1] = hash.high;
}

// Constants are packed and hashed by all threads: they are most of a plan.
static void fill_constants(pestle_context_t* context, uint8_t* data,
                           const pestle_plan_build_t* plan,
                           pestle_plan_constant_ref_t* refs) {
  filling_t f = {data, plan, refs};
  pestle_context_parallel_for(context, (int64_t)plan->constants.size, fill_task,
                              &f);
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
  fill_code(data + h->code.offset, plan, kernels);
  memcpy(data, h, sizeof(*h));
  h->checksum = pestle_hash64(data + PESTLE_PLAN_CHECKED_FROM,
                              (size_t)h->size - PESTLE_PLAN_CHECKED_FROM);
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
  place_constants(plan, &end, refs);
  h.size = end;
  uint8_t* data = pestle_alloc_aligned(plan->allocator, (size_t)end,
                                       PESTLE_BUFFER_ALIGNMENT);
  if (!data) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "the plan of '%s' needs %llu bytes",
                        name, (unsigned long long)end);
  }
  memset(data, 0, head);
  fill_constants(kernels->context, data, plan, refs);
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
  if (share) PESTLE_TRY(share_constants(kernels->context, plan));
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

// --- Text ---

static void print_binding(const pestle_plan_binding_t* b,
                          pestle_strbuf_t* out) {
  static const char* const names[] = {"arena", "input", "output", "constant"};
  pestle_strbuf_append_c(out, names[b->storage & 3]);
  if (b->storage != PESTLE_PLAN_ARENA) {
    pestle_strbuf_appendf(out, "%u", b->index);
  }
  pestle_strbuf_appendf(out, "[%llu:%llu]", (unsigned long long)b->offset,
                        (unsigned long long)(b->offset + b->size));
}

// " from 3-5,8": locations [first, first + count) of those that steps name.
static void print_from(const pestle_plan_build_t* plan, uint32_t first,
                       uint32_t count, pestle_strbuf_t* out) {
  const uint32_t* ids = plan->location_ids.data + first;
  for (uint32_t i = 0, end; i < count; i = end) {
    for (end = i + 1; end < count && ids[end] == ids[end - 1] + 1; ++end)
      ;
    pestle_strbuf_appendf(out, i ? ",%u" : "  from %u", ids[i]);
    if (end - i > 1) pestle_strbuf_appendf(out, "-%u", ids[end - 1]);
  }
}

static void print_locations(const pestle_plan_build_t* plan,
                            pestle_strbuf_t* out) {
  const char* text = plan->strings.data;
  if (plan->locations.size) pestle_strbuf_append_c(out, "locations:\n");
  for (size_t i = 0; i < plan->locations.size; ++i) {
    const pestle_plan_location_t* l = &plan->locations.data[i];
    pestle_strbuf_appendf(out, "%4zu  %s", i, text + l->op);
    if (l->name) {
      pestle_strbuf_append_c(out, " '");
      pestle_strbuf_append_name(out, text + l->name);
      pestle_strbuf_append_char(out, '\'');
    }
    if (l->file) pestle_strbuf_appendf(out, " %s", text + l->file);
    if (l->line) pestle_strbuf_appendf(out, ":%u:%u", l->line, l->column);
    pestle_strbuf_append_char(out, '\n');
  }
}

void pestle_plan_build_print(const pestle_plan_build_t* plan,
                             pestle_strbuf_t* out) {
  static const char* const kinds[] = {
      "launch", "copy", "jump", "jump_if_zero", "jump_table", "end", "call"};
  pestle_strbuf_appendf(
      out,
      "plan: %zu steps, %zu kernels, arena %lld bytes (lower bound %lld), "
      "constants %llu bytes\n",
      plan->steps.size, plan->kernels.size, (long long)plan->arena_size,
      (long long)plan->lower_bound, (unsigned long long)plan->constant_size);
  for (size_t i = 0; i < plan->steps.size; ++i) {
    const pestle_plan_step_t* s = &plan->steps.data[i];
    pestle_strbuf_appendf(out, "%4zu  %-12s ", i, kinds[s->kind]);
    if (s->kind == PESTLE_PLAN_LAUNCH) {
      pestle_strbuf_appendf(
          out, "%s ", plan->strings.data + plan->kernels.data[s->kernel].name);
    } else if (s->kind == PESTLE_PLAN_CALL) {
      const pestle_plan_call_t* call = &plan->calls.data[s->kernel];
      bool library = call->kind == PESTLE_PLAN_CALL_LIBRARY;
      const char* text = plan->strings.data;
      pestle_strbuf_appendf(out, "%s%s%s ", library ? text + call->version : "",
                            library ? "." : "", text + call->name);
    } else if (s->kind >= PESTLE_PLAN_JUMP && s->kind < PESTLE_PLAN_END) {
      pestle_strbuf_appendf(out, "-> %u ", s->target);
    }
    uint32_t n = s->kind == PESTLE_PLAN_JUMP_TABLE ? 1 : s->count;
    for (uint32_t b = 0; b < n; ++b) {
      if (b) pestle_strbuf_append_c(out, ", ");
      print_binding(&plan->bindings.data[s->first + b], out);
    }
    if (s->kind == PESTLE_PLAN_LAUNCH && plan->devices.size > 1) {
      pestle_strbuf_appendf(
          out, "  on %s",
          plan->strings.data + plan->devices.data[s->device].backend);
    }
    print_from(plan, s->first_location, s->location_count, out);
    pestle_strbuf_append_char(out, '\n');
  }
  print_locations(plan, out);
}
