// SPDX-License-Identifier: Apache-2.0
#include "compile/explain_index.h"

#include "base/mem.h"

pestle_explain_group_t* pestle_explain_group(
    const pestle_explain_index_t* index, const pestle_node_t* node) {
  const pestle_map_value_t* found =
      pestle_map_find_u64(&index->groups, (uintptr_t)node);
  return found ? found->ptr : NULL;
}

static pestle_explain_group_t* add_group(pestle_explain_index_t* index,
                                         pestle_arena_t* arena,
                                         const pestle_node_t* node) {
  pestle_explain_group_t* group = pestle_explain_group(index, node);
  if (group) return group;
  group = pestle_arena_alloc_zero(arena, sizeof(*group),
                                  _Alignof(pestle_explain_group_t));
  if (!group ||
      !pestle_map_set_u64_ptr(&index->groups, (uintptr_t)node, group)) {
    return NULL;
  }
  return group;
}

static bool index_kernels(const pestle_kernels_t* ks, pestle_arena_t* arena,
                          pestle_explain_index_t* index, pestle_map_t* codes) {
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    const pestle_kernel_t* k = ks->list.data[i];
    const uint64_t code[3] = {k->legal->view.hash[0], k->legal->view.hash[1],
                              k->device};
    pestle_explain_group_t* group = add_group(index, arena, k->node);
    bool added;
    pestle_map_value_t* first =
        pestle_map_put(codes, code, sizeof(code), &added);
    if (!group || !first) return false;
    if (!group->kernels) group->first_kernel = i;
    index->part[i] = ++group->kernels;
    if (added) first->u64 = i;
    index->twin[i] = (uint32_t)first->u64;
  }
  return true;
}

static bool index_reads(pestle_arena_t* arena, pestle_explain_index_t* index) {
  for (size_t i = 0; i < index->remarks->list.size; ++i) {
    const pestle_remark_t* r = &index->remarks->list.data[i];
    if (!r->from) continue;
    pestle_explain_group_t* group = add_group(index, arena, r->kernel);
    if (!group) return false;
    *(group->last_read ? &index->next_read[group->last_read - 1]
                       : &group->first_read) = i + 1;
    group->last_read = i + 1;
  }
  return true;
}

bool pestle_explain_index_make(const pestle_kernels_t* ks,
                               const pestle_remarks_t* remarks,
                               pestle_arena_t* arena,
                               pestle_explain_index_t* out) {
  pestle_map_t codes;
  size_t kernels = ks->list.size + 1, reads = remarks->list.size + 1;
  out->remarks = remarks;
  out->part = PESTLE_ARENA_ARRAY(arena, uint32_t, kernels);
  out->twin = PESTLE_ARENA_ARRAY(arena, uint32_t, kernels);
  out->next_read =
      pestle_arena_alloc_zero(arena, reads * sizeof(size_t), sizeof(size_t));
  if (!out->part || !out->twin || !out->next_read) return false;
  pestle_map_init(ks->list.allocator, &codes);
  bool made = index_kernels(ks, arena, out, &codes) && index_reads(arena, out);
  pestle_map_deinit(&codes);
  return made;
}
