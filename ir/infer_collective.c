// SPDX-License-Identifier: Apache-2.0
// Type rules of collectives. Groups, which the module's world decides, are held against
// the types by collective.c.
#include "base/mem.h"
#include "ir/infer.h"

static pestle_status_t need_rows(const pestle_infer_t* in,
                                 pestle_attr_name_t name) {
  const pestle_elements_t* rows = pestle_in_attr(in, name)->as.elements;
  if (rows && pestle_dtype_is(rows->type.dtype, PESTLE_KIND_INT) &&
      (rows->type.rank == 2 || !pestle_type_count(&rows->type))) {
    return NULL;
  }
  return PESTLE_BAD("'%s' must be rows of integers",
                    pestle_attr_name_text(name));
}

static pestle_status_t need_operands(const pestle_infer_t* in) {
  return in->spec->operand_count
             ? NULL
             : PESTLE_BAD("no operand is given, the op takes at least 1");
}

// One body for all operands, which are of one dtype.
static pestle_status_t need_body(const pestle_infer_t* in) {
  PESTLE_TRY(need_operands(in));
  for (size_t i = 1; i < in->spec->operand_count; ++i)
    PESTLE_TRY(pestle_need_same_dtype(in, 0, i));
  return pestle_need_reduce_body(in, 1);
}

pestle_status_t pestle_infer_all_reduce(pestle_infer_t* in) {
  PESTLE_TRY(need_body(in));
  PESTLE_TRY(need_rows(in, PESTLE_ATTR_replica_groups));
  for (size_t i = 0; i < in->spec->operand_count; ++i)
    PESTLE_TRY(pestle_emit(in, pestle_in_type(in, i)));
  return NULL;
}

// |whole| is |part| but for the extent of |axis|, which is a multiple.
static pestle_status_t need_parts(const pestle_type_t* whole,
                                  const pestle_type_t* part, int64_t axis) {
  bool fits = whole->dtype == part->dtype && whole->rank == part->rank;
  for (int32_t i = 0; fits && i < whole->rank; ++i) {
    int64_t a = whole->dims[i], b = part->dims[i];
    if (i != axis)
      fits = pestle_dims_agree(a, b);
    else
      fits =
          !pestle_dim_known(a) || !pestle_dim_known(b) || (b ? a % b == 0 : !a);
  }
  if (fits) return NULL;
  return PESTLE_BAD("%s is no number of parts %s along dimension %lld",
                    pestle_type_text(whole).text, pestle_type_text(part).text,
                    (long long)axis);
}

pestle_status_t pestle_infer_all_gather(pestle_infer_t* in) {
  const pestle_node_spec_t* spec = in->spec;
  PESTLE_TRY(need_operands(in));
  PESTLE_TRY(need_rows(in, PESTLE_ATTR_replica_groups));
  if (spec->type_count != spec->operand_count) {
    return PESTLE_BAD("%zu result types are given for %zu operands",
                      spec->type_count, spec->operand_count);
  }
  for (size_t i = 0; i < spec->operand_count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    PESTLE_TRY(
        pestle_need_between(in, PESTLE_ATTR_all_gather_dim, 0, type->rank));
    PESTLE_TRY(need_parts(&spec->types[i], type,
                          pestle_in_i64(in, PESTLE_ATTR_all_gather_dim)));
    PESTLE_TRY(pestle_emit(in, &spec->types[i]));
  }
  return NULL;
}

pestle_status_t pestle_infer_reduce_scatter(pestle_infer_t* in) {
  const pestle_type_t *type = pestle_in_type(in, 0), *stated;
  PESTLE_TRY(need_body(in));
  PESTLE_TRY(need_rows(in, PESTLE_ATTR_replica_groups));
  PESTLE_TRY(pestle_in_stated(in, &stated));
  PESTLE_TRY(
      pestle_need_between(in, PESTLE_ATTR_scatter_dimension, 0, type->rank));
  PESTLE_TRY(need_parts(type, stated,
                        pestle_in_i64(in, PESTLE_ATTR_scatter_dimension)));
  return pestle_emit(in, stated);
}

pestle_status_t pestle_infer_all_to_all(pestle_infer_t* in) {
  int64_t split = pestle_in_i64(in, PESTLE_ATTR_split_dimension);
  int64_t concat = pestle_in_i64(in, PESTLE_ATTR_concat_dimension);
  int64_t count = pestle_in_i64(in, PESTLE_ATTR_split_count);
  PESTLE_TRY(need_operands(in));
  PESTLE_TRY(need_rows(in, PESTLE_ATTR_replica_groups));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_split_count, 1, INT32_MAX));
  for (size_t i = 0; i < in->spec->operand_count; ++i) {
    pestle_type_t type = *pestle_in_type(in, i);
    PESTLE_TRY(
        pestle_need_between(in, PESTLE_ATTR_split_dimension, 0, type.rank));
    PESTLE_TRY(
        pestle_need_between(in, PESTLE_ATTR_concat_dimension, 0, type.rank));
    if (pestle_dim_known(type.dims[split]) && type.dims[split] % count) {
      return PESTLE_BAD("dimension %lld of %s is not to be cut in %lld parts",
                        (long long)split, pestle_type_text(&type).text,
                        (long long)count);
    }
    if (pestle_dim_known(type.dims[split])) type.dims[split] /= count;
    if (pestle_dim_known(type.dims[concat]) &&
        __builtin_mul_overflow(type.dims[concat], count, &type.dims[concat])) {
      return PESTLE_BAD("the result is too large");
    }
    PESTLE_TRY(pestle_emit(in, &type));
  }
  return NULL;
}

pestle_status_t pestle_infer_collective_permute(pestle_infer_t* in) {
  PESTLE_TRY(need_rows(in, PESTLE_ATTR_source_target_pairs));
  return pestle_emit(in, pestle_in_type(in, 0));
}

pestle_status_t pestle_infer_collective_broadcast(pestle_infer_t* in) {
  PESTLE_TRY(need_rows(in, PESTLE_ATTR_replica_groups));
  return pestle_emit(in, pestle_in_type(in, 0));
}

pestle_status_t pestle_infer_partition_id(pestle_infer_t* in) {
  return pestle_emit(in, &(pestle_type_t){.dtype = PESTLE_U32});
}

pestle_status_t pestle_infer_replica_id(pestle_infer_t* in) {
  return pestle_emit(in, &(pestle_type_t){.dtype = PESTLE_U32});
}

pestle_status_t pestle_infer_constant_part(pestle_infer_t* in) {
  const pestle_elements_t* e =
      pestle_in_attr(in, PESTLE_ATTR_value)->as.elements;
  pestle_i64s_t parts = pestle_in_attr(in, PESTLE_ATTR_parts)->as.i64s;
  if (!e || e->splat || !e->type.rank || !parts.count) {
    return PESTLE_BAD(
        "'value' must be the parts, one behind the other along the first dim, "
        "and 'parts' which of them each partition has");
  }
  for (size_t i = 0; i < parts.count; ++i) {
    if (parts.data[i] >= 0 && parts.data[i] < e->type.dims[0]) continue;
    return PESTLE_BAD("partition %zu has part %lld of %lld", i,
                      (long long)parts.data[i], (long long)e->type.dims[0]);
  }
  pestle_type_t type = pestle_constant_part_type(e);
  return pestle_emit(in, &type);
}
