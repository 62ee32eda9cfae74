// SPDX-License-Identifier: Apache-2.0
#include "compile/plan_constants.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/mem.h"

// --- What they are ---

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

// The number of |c|, which is appended where it is new.
static uint32_t add_constant(pestle_plan_build_t* plan,
                             pestle_plan_constant_t c) {
  bool added = false;
  pestle_map_value_t* v =
      pestle_map_put(&plan->constant_keys, c.key, sizeof(c.key), &added);
  if (v && added) {
    v->u64 = plan->constants.size;
    plan->constant_size += pestle_align_up(c.size, PESTLE_BUFFER_ALIGNMENT);
    if (!pestle_vec_push(&plan->constants, c)) v = NULL;
  } else if (v) {
    plan->constants.data[v->u64].alone |= c.alone;
  }
  if (v) return (uint32_t)v->u64;
  plan->failed = true;
  return 0;
}

// --- Parts ---

static int64_t part_count(const pestle_kernel_arg_t* arg) {
  return PESTLE_NODE_ELEMENTS(arg->parts)->type.dims[0];
}

static uint64_t part_stride(const pestle_kernel_arg_t* arg) {
  return pestle_align_up(constant_bytes(arg), PESTLE_BUFFER_ALIGNMENT);
}

// Appends the record of a new part: of small ones all lie in one constant, which every
// process has; others are a constant each.
static void add_part(pestle_plan_build_t* plan, const pestle_kernel_arg_t* arg,
                     const pestle_hash128_t* keys, pestle_hash128_t key) {
  pestle_i64s_t parts = PESTLE_NODE_I64S(arg->parts, parts);
  pestle_plan_part_t record = {.size = constant_bytes(arg),
                               .first = (uint32_t)plan->part_places.size};
  bool apart = record.size >= PESTLE_PLAN_EXTERNAL_CONSTANT;
  pestle_plan_constant_t all = {
      .arg = *arg, .part = -1, .key = {key.low, key.high}};
  all.size = (uint64_t)part_count(arg) * part_stride(arg);
  uint32_t together = apart ? 0 : add_constant(plan, all);
  for (size_t i = 0; i < parts.count && !plan->failed; ++i) {
    pestle_hash128_t own = keys[parts.data[i]];
    pestle_plan_constant_t c = {.arg = *arg,
                                .part = parts.data[i],
                                .key = {own.low, own.high},
                                .size = record.size};
    pestle_plan_part_place_t at = {.constant = together};
    if (apart) at.constant = add_constant(plan, c);
    if (!apart) at.offset = (uint64_t)parts.data[i] * part_stride(arg);
    if (!pestle_vec_push(&plan->part_places, at)) plan->failed = true;
  }
  if (!pestle_vec_push(&plan->parts, record)) plan->failed = true;
}

static pestle_hash128_t part_key(const pestle_kernel_arg_t* arg,
                                 pestle_hash128_t* keys) {
  pestle_i64s_t parts = PESTLE_NODE_I64S(arg->parts, parts);
  pestle_hasher_t h;
  pestle_hasher_init(&h);
  for (int64_t i = 0; i < part_count(arg); ++i) {
    pestle_elements_t e = pestle_constant_part_at(arg->parts, i);
    pestle_kernel_arg_t part = *arg;
    part.elements = &e;
    keys[i] = constant_key(&part);
    pestle_hasher_update(&h, &keys[i], sizeof(keys[i]));
  }
  pestle_hasher_update(&h, parts.data, parts.count * sizeof(*parts.data));
  return pestle_hasher_finish(&h);
}

static pestle_plan_binding_t bind_part(pestle_plan_build_t* plan,
                                       const pestle_kernel_arg_t* arg) {
  pestle_plan_binding_t b = {.storage = PESTLE_PLAN_PART,
                             .size = constant_bytes(arg)};
  size_t size = (size_t)part_count(arg) * sizeof(pestle_hash128_t);
  pestle_hash128_t* keys = pestle_alloc(plan->allocator, size);
  pestle_map_value_t* v = NULL;
  bool added = false;
  if (keys) {
    pestle_hash128_t key = part_key(arg, keys);
    v = pestle_map_put(&plan->part_keys, &key, sizeof(key), &added);
    if (v && added) {
      v->u64 = plan->parts.size;
      add_part(plan, arg, keys, key);
    }
  }
  pestle_dealloc(plan->allocator, keys, size);
  if (v)
    b.index = (uint32_t)v->u64;
  else
    plan->failed = true;
  return b;
}

pestle_plan_binding_t pestle_plan_constant(pestle_plan_build_t* plan,
                                           const pestle_kernel_arg_t* arg) {
  if (arg->parts) return bind_part(plan, arg);
  pestle_hash128_t key = constant_key(arg);
  pestle_plan_constant_t c = {.arg = *arg,
                              .alone = true,
                              .key = {key.low, key.high},
                              .size = constant_bytes(arg)};
  return (pestle_plan_binding_t){.storage = PESTLE_PLAN_CONSTANT,
                                 .index = add_constant(plan, c),
                                 .size = c.size};
}

static void copy_element(uint8_t* to, const uint8_t* from, size_t size) {
  memcpy(to, from, size);
}

// --- Packing ---

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

static void write_one(const pestle_kernel_arg_t* arg, uint8_t* target) {
  const pestle_elements_t* e = arg->elements;
  size_t size = pestle_dtype_size(e->type.dtype);
  uint64_t bytes = constant_bytes(arg);
  if (arg->packer) {
    arg->packer->pack(arg, target);
  } else if (e->splat) {
    for (uint64_t i = 0; i < bytes; i += size) {
      copy_element(target + i, e->data, size);
    }
  } else if (arg->pack) {
    packer_t p = {
        .arg = arg, .source = e->data, .target = target, .size = size};
    pack_dims(&p, 0, arg->pack_offset);
  } else if (bytes) {
    memcpy(target, e->data, bytes);
  }
}

static void write_constant(const pestle_plan_constant_t* c, uint8_t* target) {
  if (!c->arg.parts) {
    write_one(&c->arg, target);
    return;
  }
  int64_t first = c->part < 0 ? 0 : c->part;
  int64_t end = c->part < 0 ? part_count(&c->arg) : c->part + 1;
  if (c->part < 0) memset(target, 0, c->size);
  for (int64_t i = first; i < end; ++i) {
    pestle_elements_t e = pestle_constant_part_at(c->arg.parts, i);
    pestle_kernel_arg_t arg = c->arg;
    arg.elements = &e;
    write_one(&arg, target + (uint64_t)(i - first) * part_stride(&c->arg));
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
  const pestle_elements_t* e = c->arg.elements;
  pestle_elements_t part;
  bool together = c->arg.parts && c->part < 0;
  if (c->arg.parts && !together) {
    part = pestle_constant_part_at(c->arg.parts, c->part);
    e = &part;
  }
  bool is_as_it_is = !c->arg.packer && !c->arg.pack && !e->splat && !together;
  s->status[index] =
      is_as_it_is ? pestle_constant_get_bytes(s->context, c->key, e->data,
                                              (size_t)c->size, &c->shared)
                  : pestle_constant_get(s->context, c->key, (size_t)c->size,
                                        pack_constant, c, &c->shared);
}

pestle_status_t pestle_plan_share_constants(pestle_context_t* context,
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

// Places those that are of large parts alone, or all others.
static void place_those(const pestle_plan_build_t* plan, bool of_parts,
                        uint64_t* end, pestle_plan_constant_ref_t* refs) {
  for (size_t i = 0; i < plan->constants.size; ++i) {
    const pestle_plan_constant_t* c = &plan->constants.data[i];
    bool of_part = !c->alone && c->size >= PESTLE_PLAN_EXTERNAL_CONSTANT;
    if (of_part != of_parts || c->shared) continue;
    refs[i].offset = *end;
    *end += pestle_align_up(c->size, PESTLE_BUFFER_ALIGNMENT);
  }
}

uint64_t pestle_plan_place_constants(const pestle_plan_build_t* plan,
                                     uint64_t* end,
                                     pestle_plan_constant_ref_t* refs) {
  for (size_t i = 0; i < plan->constants.size; ++i) {
    const pestle_plan_constant_t* c = &plan->constants.data[i];
    refs[i] = (pestle_plan_constant_ref_t){.key = {c->key[0], c->key[1]},
                                           .size = c->size,
                                           .external = c->shared != NULL};
    if (c->shared) (void)pestle_constant_data(c->shared, refs[i].hash);
  }
  place_those(plan, false, end, refs);
  uint64_t checked = *end;
  place_those(plan, true, end, refs);
  return checked;
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

void pestle_plan_fill_constants(pestle_context_t* context, uint8_t* data,
                                const pestle_plan_build_t* plan,
                                pestle_plan_constant_ref_t* refs) {
  filling_t f = {data, plan, refs};
  pestle_context_parallel_for(context, (int64_t)plan->constants.size, fill_task,
                              &f);
}
