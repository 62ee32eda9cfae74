// SPDX-License-Identifier: Apache-2.0
// Type rules of dot_general and convolution.
#include "base/checked.h"
#include "base/mem.h"
#include "ir/dot_algorithm.h"
#include "ir/infer.h"

// What is multiplied has one element type; integers may differ in sign, and those of
// at most 8 bits in width too, as quantised products do; so may the two 8-bit floats that
// matrix units take. The sum may be wider than the factors.
static pestle_status_t check_dtypes(const pestle_infer_t* in,
                                    pestle_dtype_t result) {
  static const unsigned families[] = {PESTLE_KIND_INT, PESTLE_KIND_FLOAT,
                                      PESTLE_KIND_COMPLEX, PESTLE_KIND_BOOL};
  PESTLE_TRY(pestle_need_kind(
      in, 0, PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX | PESTLE_KIND_BOOL));
  pestle_dtype_t a = pestle_in_type(in, 0)->dtype;
  pestle_dtype_t b = pestle_in_type(in, 1)->dtype;
  bool integers = pestle_dtype_is(a, PESTLE_KIND_INT) &&
                  pestle_dtype_is(b, PESTLE_KIND_INT);
  uint32_t bits[2] = {pestle_dtype_info(a)->bits, pestle_dtype_info(b)->bits};
  bool small = bits[0] == bits[1] || (bits[0] <= 8 && bits[1] <= 8);
  bool mixes =
      (integers && small) || (pestle_dot_is_f8(a) && pestle_dot_is_f8(b));
  if (!mixes) PESTLE_TRY(pestle_need_same_dtype(in, 0, 1));
  for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); ++i) {
    if (pestle_dtype_is(a, families[i]) &&
        pestle_dtype_is(result, families[i])) {
      return NULL;
    }
  }
  return PESTLE_BAD(
      "the result's element type %s does not go with operands "
      "of %s",
      pestle_dtype_info(result)->name, pestle_dtype_info(a)->name);
}

// Emits |type| with the stated element type, if the stated shape agrees.
static pestle_status_t emit_stated(pestle_infer_t* in,
                                   const pestle_type_t* stated,
                                   pestle_type_t* type) {
  type->dtype = stated->dtype;
  if (!pestle_shapes_agree(type, stated)) {
    return PESTLE_BAD("the result is stated as %s, the operands give %s",
                      pestle_type_text(stated).text,
                      pestle_type_text(type).text);
  }
  pestle_merge_shape(type, stated);
  return pestle_emit(in, type);
}

// --- dot_general ---

// The batching and contracting axes of one side, which |used| collects.
static pestle_status_t check_side(const pestle_infer_t* in, size_t operand,
                                  pestle_attr_name_t batching,
                                  pestle_attr_name_t contracting,
                                  bool used[PESTLE_MAX_RANK]) {
  int rank = pestle_in_type(in, operand)->rank;
  PESTLE_TRY(pestle_need_axes(in, batching, rank, used));
  return pestle_need_axes(in, contracting, rank, used);
}

// The axes that two arrays pair have equal extents.
static pestle_status_t check_pairs(const pestle_infer_t* in,
                                   pestle_attr_name_t lhs_name,
                                   pestle_attr_name_t rhs_name) {
  const pestle_type_t* lhs = pestle_in_type(in, 0);
  const pestle_type_t* rhs = pestle_in_type(in, 1);
  pestle_i64s_t a = pestle_in_i64s(in, lhs_name);
  pestle_i64s_t b = pestle_in_i64s(in, rhs_name);
  PESTLE_TRY(pestle_need_count(in, rhs_name, a.count));
  for (size_t i = 0; i < a.count; ++i) {
    if (pestle_dims_agree(lhs->dims[a.data[i]], rhs->dims[b.data[i]])) continue;
    return PESTLE_BAD(
        "axis %lld of operand 0, %s, and axis %lld of operand "
        "1, %s, must have one extent ('%s', '%s')",
        (long long)a.data[i], pestle_type_text(lhs).text, (long long)b.data[i],
        pestle_type_text(rhs).text, pestle_attr_name_text(lhs_name),
        pestle_attr_name_text(rhs_name));
  }
  return NULL;
}

static pestle_status_t append_dim(pestle_type_t* type, int64_t dim) {
  if (type->rank == PESTLE_MAX_RANK) {
    return PESTLE_BAD("the result's rank would pass %d", PESTLE_MAX_RANK);
  }
  type->dims[type->rank++] = dim;
  return NULL;
}

static pestle_status_t append_free(const pestle_type_t* side,
                                   const bool used[PESTLE_MAX_RANK],
                                   pestle_type_t* type) {
  for (int i = 0; i < side->rank; ++i) {
    if (!used[i]) PESTLE_TRY(append_dim(type, side->dims[i]));
  }
  return NULL;
}

static pestle_status_t append_batch(const pestle_infer_t* in,
                                    pestle_type_t* type) {
  pestle_i64s_t a = pestle_in_i64s(in, PESTLE_ATTR_lhs_batching_dimensions);
  pestle_i64s_t b = pestle_in_i64s(in, PESTLE_ATTR_rhs_batching_dimensions);
  for (size_t i = 0; i < a.count; ++i) {
    int64_t dim = pestle_in_type(in, 0)->dims[a.data[i]];
    if (!pestle_dim_known(dim)) dim = pestle_in_type(in, 1)->dims[b.data[i]];
    PESTLE_TRY(append_dim(type, dim));
  }
  return NULL;
}

pestle_status_t pestle_infer_dot_general(pestle_infer_t* in) {
  const pestle_type_t* stated;
  bool lhs_used[PESTLE_MAX_RANK] = {false};
  bool rhs_used[PESTLE_MAX_RANK] = {false};
  PESTLE_TRY(pestle_in_stated(in, &stated));
  PESTLE_TRY(check_dtypes(in, stated->dtype));
  PESTLE_TRY(check_side(in, 0, PESTLE_ATTR_lhs_batching_dimensions,
                        PESTLE_ATTR_lhs_contracting_dimensions, lhs_used));
  PESTLE_TRY(check_side(in, 1, PESTLE_ATTR_rhs_batching_dimensions,
                        PESTLE_ATTR_rhs_contracting_dimensions, rhs_used));
  PESTLE_TRY(check_pairs(in, PESTLE_ATTR_lhs_batching_dimensions,
                         PESTLE_ATTR_rhs_batching_dimensions));
  PESTLE_TRY(check_pairs(in, PESTLE_ATTR_lhs_contracting_dimensions,
                         PESTLE_ATTR_rhs_contracting_dimensions));
  pestle_type_t type = {.rank = 0};
  PESTLE_TRY(append_batch(in, &type));
  PESTLE_TRY(append_free(pestle_in_type(in, 0), lhs_used, &type));
  PESTLE_TRY(append_free(pestle_in_type(in, 1), rhs_used, &type));
  const char* algorithm = pestle_in_attr(in, PESTLE_ATTR_algorithm)->as.str;
  pestle_dot_algorithm_t how;
  if (*algorithm) PESTLE_TRY(pestle_dot_algorithm_read(algorithm, &how));
  return emit_stated(in, stated, &type);
}

// --- convolution ---

// Names of the attributes that lay out one of the three tensors: for the kernel
// |batch| is the output feature axis and |feature| the input feature axis.
typedef struct layout_t {
  pestle_attr_name_t batch, feature, spatial;
} layout_t;

static const layout_t input_layout = {PESTLE_ATTR_input_batch_dimension,
                                      PESTLE_ATTR_input_feature_dimension,
                                      PESTLE_ATTR_input_spatial_dimensions};
static const layout_t kernel_layout = {
    PESTLE_ATTR_kernel_output_feature_dimension,
    PESTLE_ATTR_kernel_input_feature_dimension,
    PESTLE_ATTR_kernel_spatial_dimensions};
static const layout_t output_layout = {PESTLE_ATTR_output_batch_dimension,
                                       PESTLE_ATTR_output_feature_dimension,
                                       PESTLE_ATTR_output_spatial_dimensions};

// The three name every axis of a tensor of |rank| once.
static pestle_status_t check_layout(const pestle_infer_t* in,
                                    const layout_t* layout, int rank) {
  bool seen[PESTLE_MAX_RANK] = {false};
  PESTLE_TRY(pestle_need_between(in, layout->batch, 0, rank));
  PESTLE_TRY(pestle_need_between(in, layout->feature, 0, rank));
  PESTLE_TRY(pestle_need_count(in, layout->spatial, (size_t)rank - 2));
  PESTLE_TRY(pestle_need_axes(in, layout->spatial, rank, seen));
  int64_t batch = pestle_in_i64(in, layout->batch);
  int64_t feature = pestle_in_i64(in, layout->feature);
  if (batch != feature && !seen[batch] && !seen[feature]) return NULL;
  return PESTLE_BAD("'%s', '%s' and '%s' must name each axis once",
                    pestle_attr_name_text(layout->batch),
                    pestle_attr_name_text(layout->feature),
                    pestle_attr_name_text(layout->spatial));
}

static int64_t layout_dim(const pestle_infer_t* in, size_t operand,
                          pestle_attr_name_t name) {
  return pestle_in_type(in, operand)->dims[pestle_in_i64(in, name)];
}

static pestle_status_t check_window(const pestle_infer_t* in, size_t spatial) {
  static const uint16_t positive[] = {PESTLE_ATTR_window_strides,
                                      PESTLE_ATTR_lhs_dilation,
                                      PESTLE_ATTR_rhs_dilation};
  for (size_t i = 0; i < sizeof(positive) / sizeof(positive[0]); ++i) {
    pestle_attr_name_t name = (pestle_attr_name_t)positive[i];
    PESTLE_TRY(pestle_need_count(in, name, spatial));
    PESTLE_TRY(pestle_need_at_least(in, name, 1));
  }
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_padding, 2 * spatial));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_window_reversal, spatial));
  pestle_i64s_t reversal = pestle_in_i64s(in, PESTLE_ATTR_window_reversal);
  for (size_t i = 0; i < spatial; ++i) {
    if (reversal.data[i] != 0 && reversal.data[i] != 1) {
      return PESTLE_BAD("'window_reversal' must hold 0 or 1 for each axis");
    }
  }
  return NULL;
}

static bool divides(int64_t divisor, int64_t dim) {
  return !pestle_dim_known(dim) || dim % divisor == 0;
}

// The constraints between batch, features and groups.
static pestle_status_t check_groups(const pestle_infer_t* in) {
  int64_t groups = pestle_in_i64(in, PESTLE_ATTR_feature_group_count);
  int64_t batches = pestle_in_i64(in, PESTLE_ATTR_batch_group_count);
  int64_t batch = layout_dim(in, 0, input_layout.batch);
  int64_t features = layout_dim(in, 0, input_layout.feature);
  int64_t kernel_in = layout_dim(in, 1, kernel_layout.feature);
  int64_t kernel_out = layout_dim(in, 1, kernel_layout.batch);
  if (groups < 1 || batches < 1 || (groups > 1 && batches > 1)) {
    return PESTLE_BAD(
        "'feature_group_count' is %lld, 'batch_group_count' is "
        "%lld: both must be positive and one of them 1",
        (long long)groups, (long long)batches);
  }
  if (!divides(batches, batch) || !divides(batches, kernel_out)) {
    return PESTLE_BAD(
        "'batch_group_count' %lld must divide the batch %lld "
        "and the kernel's output features %lld",
        (long long)batches, (long long)batch, (long long)kernel_out);
  }
  if (!divides(groups, features) || !divides(groups, kernel_out)) {
    return PESTLE_BAD(
        "'feature_group_count' %lld must divide the input "
        "features %lld and the kernel's output features %lld",
        (long long)groups, (long long)features, (long long)kernel_out);
  }
  if (pestle_dim_known(features) &&
      !pestle_dims_agree(features / groups, kernel_in)) {
    return PESTLE_BAD(
        "the kernel has %lld input features, %lld features in "
        "%lld groups need %lld",
        (long long)kernel_in, (long long)features, (long long)groups,
        (long long)(features / groups));
  }
  return NULL;
}

static pestle_status_t spatial_dims(const pestle_infer_t* in, size_t spatial,
                                    pestle_type_t* type) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  const pestle_type_t* kernel = pestle_in_type(in, 1);
  const int64_t* padding = pestle_in_i64s(in, PESTLE_ATTR_padding).data;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t from = pestle_in_i64s(in, input_layout.spatial).data[i];
    int64_t over = pestle_in_i64s(in, kernel_layout.spatial).data[i];
    int64_t to = pestle_in_i64s(in, output_layout.spatial).data[i];
    pestle_window_t window = {
        .size = kernel->dims[over],
        .stride = pestle_in_i64s(in, PESTLE_ATTR_window_strides).data[i],
        .base_dilation = pestle_in_i64s(in, PESTLE_ATTR_lhs_dilation).data[i],
        .window_dilation = pestle_in_i64s(in, PESTLE_ATTR_rhs_dilation).data[i],
        .low = padding[2 * i],
        .high = padding[2 * i + 1]};
    PESTLE_TRY(
        pestle_window_places(x->dims[from], &window, (int)i, &type->dims[to]));
  }
  return NULL;
}

pestle_status_t pestle_infer_convolution(pestle_infer_t* in) {
  const pestle_type_t* stated;
  const pestle_type_t* x = pestle_in_type(in, 0);
  PESTLE_TRY(pestle_in_stated(in, &stated));
  PESTLE_TRY(check_dtypes(in, stated->dtype));
  if (x->rank < 2) {
    return PESTLE_BAD("operand 0 is %s: its rank must be at least 2",
                      pestle_type_text(x).text);
  }
  PESTLE_TRY(pestle_need_rank(in, 1, x->rank));
  PESTLE_TRY(check_layout(in, &input_layout, x->rank));
  PESTLE_TRY(check_layout(in, &kernel_layout, x->rank));
  PESTLE_TRY(check_layout(in, &output_layout, x->rank));
  size_t spatial = (size_t)x->rank - 2;
  PESTLE_TRY(check_window(in, spatial));
  PESTLE_TRY(check_groups(in));
  pestle_type_t type = {.rank = x->rank};
  int64_t batch = layout_dim(in, 0, input_layout.batch);
  if (pestle_dim_known(batch)) {
    batch /= pestle_in_i64(in, PESTLE_ATTR_batch_group_count);
  }
  type.dims[pestle_in_i64(in, output_layout.batch)] = batch;
  type.dims[pestle_in_i64(in, output_layout.feature)] =
      layout_dim(in, 1, kernel_layout.batch);
  PESTLE_TRY(spatial_dims(in, spatial, &type));
  return emit_stated(in, stated, &type);
}
