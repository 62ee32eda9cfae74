// SPDX-License-Identifier: Apache-2.0
// Col2Im: blocks added up where they overlap in the image. The elements at one
// place of all blocks are the image spread by the strides, so that each place
// is a pad of its own, and the image their sum.
#include "base/checked.h"
#include "frontend/onnx/ops.h"

#define MOST_PLACES 1024

typedef struct unfold_t {
  int32_t count;  // of axes
  int64_t image[PESTLE_MAX_RANK], block[PESTLE_MAX_RANK];
  int64_t strides[PESTLE_MAX_RANK], dilations[PESTLE_MAX_RANK];
  int64_t low[PESTLE_MAX_RANK];
  int64_t blocks[PESTLE_MAX_RANK];  // how many there are along an axis
  int64_t places, total;            // elements of a block, blocks in all
} unfold_t;

static bool read_list(pestle_onnx_call_t* call, const char* name, size_t count,
                      int64_t missing, int64_t minimum, int64_t* out) {
  pestle_i64s_t list = pestle_onnx_ints(call, name);
  if (list.count && list.count != count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute '%s' has %zu numbers, it should have %zu", name,
                     list.count, count);
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    out[i] = list.count ? list.data[i] : missing;
    if (out[i] >= minimum && out[i] <= INT32_MAX) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "attribute '%s' holds %lld",
                     name, (long long)out[i]);
    return false;
  }
  return !call->f.status;
}

// How many blocks lie along each axis.
static bool count_blocks(pestle_onnx_call_t* call, unfold_t* u,
                         const int64_t* high) {
  u->places = u->total = 1;
  for (int32_t i = 0; i < u->count; ++i) {
    bool sane = u->image[i] > 0 && u->image[i] <= INT32_MAX &&
                u->block[i] > 0 && u->block[i] <= MOST_PLACES;
    int64_t room = sane ? u->image[i] + u->low[i] + high[i] -
                              (u->block[i] - 1) * u->dilations[i] - 1
                        : -1;
    u->blocks[i] = room / u->strides[i] + 1;
    if (room < 0 || u->places * u->block[i] > MOST_PLACES ||
        !pestle_checked_mul_i64(u->total, u->blocks[i], &u->total)) {
      pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                       "blocks of %lld along axis %d of an image of %lld, or "
                       "of more than %d elements",
                       (long long)u->block[i], i, (long long)u->image[i],
                       MOST_PLACES);
      return false;
    }
    u->places *= u->block[i];
  }
  return true;
}

static bool read_unfold(pestle_onnx_call_t* call, unfold_t* u) {
  pestle_i64s_t image = pestle_onnx_input_ints(call, 1, "image_shape");
  pestle_i64s_t block = pestle_onnx_input_ints(call, 2, "block_shape");
  int64_t pads[2 * PESTLE_MAX_RANK];
  if (call->f.status) return false;
  if (image.count != block.count || image.count < 1 ||
      image.count > PESTLE_MAX_RANK - 2) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its image_shape has %zu axes, its block_shape %zu",
                     image.count, block.count);
    return false;
  }
  u->count = (int32_t)image.count;
  for (size_t i = 0; i < image.count; ++i) {
    u->image[i] = image.data[i];
    u->block[i] = block.data[i];
  }
  if (!read_list(call, "strides", image.count, 1, 1, u->strides) ||
      !read_list(call, "dilations", image.count, 1, 1, u->dilations) ||
      !read_list(call, "pads", 2 * image.count, 0, 0, pads)) {
    return false;
  }
  for (size_t i = 0; i < image.count; ++i)
    u->low[i] = pads[i];
  return count_blocks(call, u, pads + image.count);
}

// Place |which| of all blocks, [n, channels, 1, blocks...], as an image.
static pestle_value_t* place(pestle_onnx_call_t* call, const unfold_t* u,
                             pestle_value_t* x, int64_t which) {
  int64_t dims[PESTLE_MAX_RANK] = {pestle_onnx_dim(x, 0),
                                   pestle_onnx_dim(x, 1)};
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  int64_t inner[PESTLE_MAX_RANK] = {0};
  x = pestle_onnx_slice_axis(call, x, 2, which, which + 1, 1);
  for (int32_t i = u->count - 1; i >= 0; --i) {
    int64_t offset = which % u->block[i] * u->dilations[i];
    which /= u->block[i];
    dims[2 + i] = u->blocks[i];
    low[2 + i] = offset - u->low[i];
    inner[2 + i] = u->strides[i] - 1;
    high[2 + i] =
        u->image[i] - low[2 + i] - ((u->blocks[i] - 1) * u->strides[i] + 1);
  }
  x = pestle_f_reshape(&call->f, x, u->count + 2, dims);
  return pestle_f_pad(&call->f, x, pestle_onnx_scalar(call, dtype_of(x), 0),
                      low, high, inner);
}

void pestle_onnx_import_col2im(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  unfold_t u = {0};
  if (!read_unfold(call, &u)) return;
  int64_t width = pestle_onnx_dim(x, 1);
  if (rank_of(x) != 3 || width % u.places || pestle_onnx_dim(x, 2) != u.total) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input must be [n, channels * %lld, %lld]",
                     (long long)u.places, (long long)u.total);
    return;
  }
  int64_t dims[] = {pestle_onnx_dim(x, 0), width / u.places, u.places, u.total};
  x = pestle_f_reshape(&call->f, x, 4, dims);
  pestle_value_t* sum = NULL;
  for (int64_t i = 0; i < u.places && !call->f.status; ++i) {
    pestle_value_t* part = place(call, &u, x, i);
    sum = sum ? add(call, sum, part) : part;
  }
  call->outputs[0] = sum;
}
