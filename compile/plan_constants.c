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
  const pestle_elements_t* e = c->arg.elements;
  bool is_as_it_is = !c->arg.packer && !c->arg.pack && !e->splat;
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

void pestle_plan_place_constants(const pestle_plan_build_t* plan, uint64_t* end,
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

void pestle_plan_fill_constants(pestle_context_t* context, uint8_t* data,
                                const pestle_plan_build_t* plan,
                                pestle_plan_constant_ref_t* refs) {
  filling_t f = {data, plan, refs};
  pestle_context_parallel_for(context, (int64_t)plan->constants.size, fill_task,
                              &f);
}
