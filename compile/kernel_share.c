// SPDX-License-Identifier: Apache-2.0
// Kernels that differ by scalars alone are one kernel, which reads the scalars from an
// argument: the layers of a quantised model are alike but for their scales, and each
// would be compiled by itself. Only on CPUs: there a broadcast from memory costs what
// one from a constant does.
#include "base/map.h"
#include "base/mem.h"
#include "codegen/kir/kir_scalars.h"
#include "compile/kernel_build.h"

// More scalars than this are data rather than parameters.
enum { MOST_SCALARS = 64 };

// A kernel that stands for itself, and its scalars: instructions of its code.
typedef struct member_t {
  struct member_t* next;  // of those that differ from it by scalars alone
  pestle_kernel_t* kernel;
  const uint8_t* is_scalar;
} member_t;

// Scalars that are the same number in each member are one.
typedef struct column_t {
  uint32_t first;  // its first scalar
  bool varies;
  uint32_t slot;
} column_t;

static bool may_share(const pestle_kernels_t* ks, const pestle_kernel_t* k) {
  const pestle_target_caps_t* caps = &ks->targets[k->device].caps;
  return k->owns_legal && !k->source &&
         caps->device_type == PESTLE_DEVICE_CPU &&
         !(caps->flags & PESTLE_TARGET_LANES) &&
         k->arg_count + 1 < PESTLE_KERNEL_MAX_ARGS;
}

// Sorts the kernels by what they are but for scalars; |*out_heads| of each kind.
static pestle_status_t find_alike(pestle_kernels_t* ks, pestle_map_t* kinds,
                                  member_t** heads, size_t* out_count) {
  for (size_t i = 0; i < ks->list.size; ++i) {
    pestle_kernel_t* k = ks->list.data[i];
    if (!may_share(ks, k)) continue;
    size_t count = k->legal->inst.size;
    uint8_t* is_scalar = pestle_arena_alloc(ks->arena, count + 1, 1);
    member_t* m = PESTLE_ARENA_ARRAY(ks->arena, member_t, 1);
    if (!is_scalar || !m) return PESTLE_OOM();
    pestle_kir_find_scalars(k->legal, is_scalar);
    if (!memchr(is_scalar, 1, count)) continue;
    uint64_t key[3] = {0, 0, k->device};
    pestle_kir_hash_but_scalars(k->legal, is_scalar, key);
    bool added;
    pestle_map_value_t* at = pestle_map_put(kinds, key, sizeof key, &added);
    if (!at) return PESTLE_OOM();
    if (added) {
      at->u64 = *out_count;
      heads[(*out_count)++] = NULL;
    }
    *m =
        (member_t){.next = heads[at->u64], .kernel = k, .is_scalar = is_scalar};
    heads[at->u64] = m;
  }
  return NULL;
}

static bool is_same(const member_t* m, uint32_t a, uint32_t b) {
  const pestle_kir_inst_t* inst = m->kernel->legal->inst.data;
  return !memcmp(inst[a].arg, inst[b].arg, sizeof inst[a].arg);
}

static bool differs(const member_t* head, uint32_t at) {
  const pestle_kir_inst_t* a = &head->kernel->legal->inst.data[at];
  for (const member_t* m = head->next; m; m = m->next) {
    const pestle_kir_inst_t* b = &m->kernel->legal->inst.data[at];
    if (memcmp(a->arg, b->arg, sizeof a->arg)) return true;
  }
  return false;
}

// The column of scalar |at|, new where no other is always the same number.
static column_t* find_column(const member_t* head, column_t* of,
                             uint32_t* count, uint32_t at) {
  for (uint32_t c = 0; c < *count; ++c) {
    bool same = true;
    for (const member_t* m = head; m && same; m = m->next)
      same = is_same(m, of[c].first, at);
    if (same) return &of[c];
  }
  if (*count == MOST_SCALARS) return NULL;
  of[*count] = (column_t){.first = at, .varies = differs(head, at)};
  return &of[(*count)++];
}

// Sets the element of each scalar of |head| that is not the same in all, and
// first[element] to its first scalar. 0 elements: there are too many, or none.
static uint32_t number_scalars(const member_t* head, uint32_t* slot,
                               uint32_t* first) {
  column_t columns[MOST_SCALARS];
  uint32_t count = 0, elements = 0;
  size_t size = head->kernel->legal->inst.size;
  for (uint32_t i = 0; i < size; ++i) {
    slot[i] = PESTLE_KIR_NONE;
    if (!head->is_scalar[i]) continue;
    uint32_t before = count;
    column_t* c = find_column(head, columns, &count, i);
    if (!c) return 0;
    if (count > before && c->varies) {
      first[elements] = i;
      c->slot = elements++;
    }
    if (c->varies) slot[i] = c->slot;
  }
  return elements;
}

static pestle_status_t scalars_of(pestle_arena_t* arena,
                                  const pestle_kir_builder_t* legal,
                                  const uint32_t* first, uint32_t count,
                                  const pestle_elements_t** out) {
  pestle_elements_t* elements = PESTLE_ARENA_ARRAY(arena, pestle_elements_t, 1);
  float* data = PESTLE_ARENA_ARRAY(arena, float, count);
  int64_t* dims = PESTLE_ARENA_ARRAY(arena, int64_t, 1);
  if (!elements || !data || !dims) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i)
    data[i] = (float)pestle_kir_const_float(&legal->inst.data[first[i]]);
  dims[0] = count;
  *elements = (pestle_elements_t){.type = pestle_type_make(PESTLE_F32, 1, dims),
                                  .data = data,
                                  .size = count * sizeof(float)};
  *out = elements;
  return NULL;
}

// Appends the argument to |k|, whose code asks for it.
static pestle_status_t add_argument(pestle_kernels_t* ks, pestle_kernel_t* k,
                                    const pestle_elements_t* scalars) {
  pestle_kernel_arg_t* args =
      PESTLE_ARENA_ARRAY(ks->arena, pestle_kernel_arg_t, k->arg_count + 1u);
  if (!args) return PESTLE_OOM();
  memcpy(args, k->args, k->arg_count * sizeof *args);
  args[k->arg_count++] =
      (pestle_kernel_arg_t){.kind = PESTLE_ARG_CONSTANT, .elements = scalars};
  k->args = args;
  return NULL;
}

// The code of |owner|, and of all that have the same, with its scalars in an argument.
static pestle_status_t lift(pestle_kernels_t* ks, pestle_kernel_t* owner,
                            const uint32_t* slot, const uint32_t* first,
                            uint32_t count) {
  const pestle_elements_t* scalars;
  pestle_kir_builder_t lifted;
  pestle_kir_builder_t* legal = (pestle_kir_builder_t*)owner->legal;
  PESTLE_TRY(scalars_of(ks->arena, legal, first, count, &scalars));
  PESTLE_TRY(
      pestle_kir_lift_scalars(ks->list.allocator, legal, slot, count, &lifted));
  pestle_kir_deinit(legal);
  *legal = lifted;
  for (size_t i = 0; i < ks->list.size; ++i) {
    pestle_kernel_t* k = ks->list.data[i];
    if (k->legal == legal) PESTLE_TRY(add_argument(ks, k, scalars));
  }
  return pestle_status_annotate(
      pestle_kir_verify_in(ks->list.allocator, &legal->view),
      "giving kernel '%s' its scalars as an argument", owner->name);
}

static pestle_status_t share(pestle_kernels_t* ks, const member_t* head) {
  size_t size = head->kernel->legal->inst.size;
  uint32_t* slot = PESTLE_ARENA_ARRAY(ks->arena, uint32_t, size);
  uint32_t first[MOST_SCALARS];
  if (!slot) return PESTLE_OOM();
  uint32_t count = number_scalars(head, slot, first);
  for (const member_t* m = head; m && count; m = m->next)
    PESTLE_TRY(lift(ks, m->kernel, slot, first, count));
  return NULL;
}

pestle_status_t pestle_kernels_share(pestle_kernels_t* ks) {
  member_t** heads =
      PESTLE_ARENA_ARRAY(ks->arena, member_t*, ks->list.size + 1);
  if (!heads) return PESTLE_OOM();
  pestle_map_t kinds;
  pestle_map_init(ks->list.allocator, &kinds);
  size_t count = 0;
  pestle_status_t status = find_alike(ks, &kinds, heads, &count);
  for (size_t i = 0; i < count && !status; ++i) {
    if (heads[i]->next) status = share(ks, heads[i]);
  }
  pestle_map_deinit(&kinds);
  return status;
}
