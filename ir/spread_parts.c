// SPDX-License-Identifier: Apache-2.0
// A value that is whole on every process and its parts, each from the other: see
// sharding.h.
#include <string.h>

#include "ir/formula.h"
#include "ir/sharding.h"

pestle_type_t pestle_sharding_local(const pestle_sharding_t* sharding,
                                    const pestle_type_t* type) {
  pestle_type_t local = *type;
  for (int32_t i = 0; i < type->rank && !sharding->replicated; ++i)
    local.dims[i] /= sharding->tiles[i];
  return local;
}

// What |of| says of each process, by this one's number.
static pestle_value_t* number_of(pestle_formula_t* f, pestle_value_t* process,
                                 const pestle_sharding_t* s, int64_t inner,
                                 int64_t parts, int64_t step) {
  pestle_type_t type = pestle_type_make(PESTLE_I32, 1, &s->count);
  size_t size = (size_t)s->count * sizeof(int32_t);
  int32_t* table = pestle_f_memory(f, size);
  if (!table) return NULL;
  for (int64_t i = 0; i < s->count; ++i)
    table[s->processes[i]] = (int32_t)(i / inner % parts * step);
  pestle_elements_t e = {.type = type, .data = table, .size = size};
  pestle_value_t* at[2] = {pestle_f_elements(f, &e), process};
  pestle_attr_t one = PESTLE_SET_I64S(slice_sizes, (int64_t[]){1}, 1);
  if (!at[0]) return NULL;
  at[0] = pestle_f_make(f, PESTLE_OP_DYNAMIC_SLICE, at, 2, &one, 1, NULL);
  return at[0] ? pestle_f_reshape(f, at[0], 0, NULL) : NULL;
}

// Processes between which dim |d|, or for the rank the summand, goes up by one.
static int64_t stride_of(const pestle_sharding_t* s, int32_t d) {
  int64_t inner = d < s->rank ? s->copies * s->sums : s->copies;
  for (int32_t k = d + 1; k < s->rank; ++k)
    inner *= s->tiles[k];
  return inner;
}

// The first of those that are to be summed up has the value, the others 0.
static pestle_value_t* first_summand(pestle_formula_t* f, pestle_value_t* part,
                                     pestle_value_t* process,
                                     const pestle_sharding_t* s) {
  pestle_value_t* place =
      number_of(f, process, s, stride_of(s, s->rank), s->sums, 1);
  pestle_value_t* is_first = place ? pestle_f_is_zero(f, place) : NULL;
  pestle_value_t* zero = is_first ? pestle_f_number(f, part->type, 0) : NULL;
  if (!zero) return NULL;
  pestle_type_t type = *part->type;
  type.dtype = PESTLE_I1;
  is_first = pestle_f_broadcast_to(f, is_first, &type, NULL);
  return is_first ? pestle_f_select(f, is_first, part, zero) : NULL;
}

pestle_value_t* pestle_sharding_slice(pestle_formula_t* f,
                                      pestle_value_t* whole,
                                      const pestle_sharding_t* s) {
  pestle_value_t* operands[PESTLE_MAX_RANK + 1] = {whole};
  pestle_type_t local = pestle_sharding_local(s, whole->type);
  pestle_node_t* number =
      pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_PARTITION_ID});
  if (!number) return NULL;
  for (int32_t d = 0; d < local.rank; ++d) {
    operands[d + 1] = number_of(f, &number->results[0], s, stride_of(s, d),
                                s->tiles[d], local.dims[d]);
    if (!operands[d + 1]) return NULL;
  }
  pestle_attr_t sizes = PESTLE_SET_I64S(slice_sizes, local.dims, local.rank);
  pestle_value_t* part = whole;
  if (!pestle_type_equal(&local, whole->type)) {
    part = pestle_f_make(f, PESTLE_OP_DYNAMIC_SLICE, operands,
                         (size_t)local.rank + 1, &sizes, 1, NULL);
  }
  if (!part || s->sums == 1) return part;
  return first_summand(f, part, &number->results[0], s);
}

// Groups of |count| processes that are |stride| apart in the list.
static bool make_groups(pestle_formula_t* f, const pestle_sharding_t* s,
                        int64_t count, int64_t stride, pestle_elements_t* out) {
  int64_t dims[2] = {s->count / count, count};
  size_t size = (size_t)s->count * sizeof(int64_t);
  int64_t* groups = pestle_f_memory(f, size);
  if (!groups) return false;
  int64_t n = 0;
  for (int64_t i = 0; i < s->count; ++i) {
    if (i / stride % count) continue;
    for (int64_t k = 0; k < count; ++k)
      groups[n++] = s->processes[i + k * stride];
  }
  *out = (pestle_elements_t){.type = pestle_type_make(PESTLE_I64, 2, dims),
                             .data = groups,
                             .size = size};
  return true;
}

// An op over groups of processes, by their numbers in the world.
static pestle_value_t* collective(pestle_formula_t* f, pestle_op_t op,
                                  pestle_value_t* value,
                                  const pestle_elements_t* groups, int64_t dim,
                                  const pestle_type_t* type) {
  pestle_attr_t attrs[4] = {
      {.name = PESTLE_ATTR_replica_groups,
       .kind = PESTLE_ATTR_KIND_ELEMENTS,
       .as.elements = groups},
      PESTLE_SET_I64(channel_handle, 1),
      PESTLE_SET_BOOL(use_global_device_ids, true),
      PESTLE_SET_I64(all_gather_dim, dim),
  };
  bool gathers = op == PESTLE_OP_ALL_GATHER;
  pestle_region_t* region =
      gathers ? NULL : pestle_f_region(f, PESTLE_OP_ADD, value->type->dtype);
  if (f->status) return NULL;
  pestle_node_t* node =
      pestle_f_node(f, &(pestle_node_spec_t){.op = op,
                                             .operands = &value,
                                             .operand_count = 1,
                                             .attrs = attrs,
                                             .attr_count = gathers ? 4 : 3,
                                             .regions = &region,
                                             .region_count = gathers ? 0 : 1,
                                             .type = gathers ? type : NULL,
                                             .types = gathers ? type : NULL,
                                             .type_count = gathers ? 1 : 0});
  return node ? &node->results[0] : NULL;
}

pestle_value_t* pestle_sharding_gather(pestle_formula_t* f,
                                       pestle_value_t* part,
                                       const pestle_sharding_t* s) {
  pestle_elements_t groups;
  if (s->sums > 1) {
    if (!make_groups(f, s, s->sums, stride_of(s, s->rank), &groups))
      return NULL;
    part = collective(f, PESTLE_OP_ALL_REDUCE, part, &groups, 0, NULL);
  }
  // From the last dim on, so that what is gathered first lies together.
  for (int32_t d = s->rank; part && d-- > 0;) {
    if (s->tiles[d] == 1) continue;
    pestle_type_t type = *part->type;
    type.dims[d] *= s->tiles[d];
    if (!make_groups(f, s, s->tiles[d], stride_of(s, d), &groups)) return NULL;
    part = collective(f, PESTLE_OP_ALL_GATHER, part, &groups, d, &type);
  }
  return part;
}
