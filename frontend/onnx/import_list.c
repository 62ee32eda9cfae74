// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors, as lists of values that are known while importing: they
// are built, asked and taken apart with no code to run. Positions and lengths
// must be known; a sequence is no input or output of a model.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/lists.h"
#include "frontend/onnx/ops.h"

pestle_onnx_sequence_t* pestle_onnx_make_list(pestle_onnx_call_t* call,
                                              size_t count) {
  pestle_onnx_sequence_t* s = pestle_onnx_scratch(call, sizeof(*s));
  if (!s) return NULL;
  s->count = count;
  s->values = pestle_onnx_scratch(call, (count + 1) * sizeof(*s->values));
  return s->values ? s : NULL;
}

// Sequence |index|, or NULL with an error kept.
static const pestle_onnx_sequence_t* sequence_of(pestle_onnx_call_t* call,
                                                 size_t index) {
  const pestle_onnx_sequence_t* s =
      index < call->input_count ? call->sequences[index] : NULL;
  if (s && !s->is_nothing) return s;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its input %zu is no sequence", index);
  return NULL;
}

// The position that input |index| gives among |count|, |missing| without it;
// -1 with an error kept.
static int64_t position(pestle_onnx_call_t* call, size_t index, int64_t count,
                        int64_t missing) {
  if (!pestle_onnx_input(call, index)) return missing;
  pestle_i64s_t list = pestle_onnx_input_ints(call, index, "position");
  int64_t at = list.count == 1 ? list.data[0] : count;
  if (at < 0) at += count;
  if (call->f.status || (at >= 0 && at < count))
    return call->f.status ? -1 : at;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its position is outside of a sequence of %lld",
                   (long long)count);
  return -1;
}

void pestle_onnx_import_sequence_empty(pestle_onnx_call_t* call) {
  call->made[0] = pestle_onnx_make_list(call, 0);
}

void pestle_onnx_import_sequence_construct(pestle_onnx_call_t* call) {
  pestle_onnx_sequence_t* s = pestle_onnx_make_list(call, call->input_count);
  for (size_t i = 0; s && i < s->count; ++i) {
    s->values[i] = call->inputs[i];
    if (s->values[i]) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its input %zu is no tensor", i);
  }
  call->made[0] = s;
}

void pestle_onnx_import_sequence_length(pestle_onnx_call_t* call) {
  const pestle_onnx_sequence_t* s = sequence_of(call, 0);
  pestle_type_t type = {.dtype = PESTLE_I64};
  if (s) {
    call->outputs[0] = pestle_onnx_splat_int(call, &type, (int64_t)s->count);
  }
}

void pestle_onnx_import_sequence_at(pestle_onnx_call_t* call) {
  const pestle_onnx_sequence_t* s = sequence_of(call, 0);
  int64_t at = s ? position(call, 1, (int64_t)s->count, -1) : -1;
  if (at >= 0) call->outputs[0] = s->values[at];
}

void pestle_onnx_import_sequence_insert(pestle_onnx_call_t* call) {
  const pestle_onnx_sequence_t* s = sequence_of(call, 0);
  if (!s) return;
  if (!call->inputs[1]) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "its input 1 is no tensor");
    return;
  }
  // Behind the last is a place too, which a negative position cannot name.
  int64_t count = (int64_t)s->count, at = count;
  if (pestle_onnx_input(call, 2)) {
    pestle_i64s_t list = pestle_onnx_input_ints(call, 2, "position");
    bool is_end = list.count == 1 && list.data[0] == count;
    if (!is_end) at = position(call, 2, count, count);
  }
  pestle_onnx_sequence_t* to = pestle_onnx_make_list(call, s->count + 1);
  if (!to || at < 0 || call->f.status) return;
  for (int64_t i = 0; i <= count; ++i) {
    to->values[i] = i < at    ? s->values[i]
                    : i == at ? call->inputs[1]
                              : s->values[i - 1];
  }
  call->made[0] = to;
}

void pestle_onnx_import_sequence_erase(pestle_onnx_call_t* call) {
  const pestle_onnx_sequence_t* s = sequence_of(call, 0);
  if (!s) return;
  int64_t count = (int64_t)s->count;
  int64_t at = position(call, 1, count, count - 1);
  pestle_onnx_sequence_t* to =
      at < 0 ? NULL : pestle_onnx_make_list(call, s->count - 1);
  for (int64_t i = 0; to && i < count - 1; ++i)
    to->values[i] = s->values[i < at ? i : i + 1];
  if (at < 0) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "the sequence is empty");
  }
  call->made[0] = to;
}

// |x| with a new axis of 1 in place |axis|.
static pestle_value_t* with_axis(pestle_onnx_call_t* call, pestle_value_t* x,
                                 int64_t axis) {
  int64_t dims[PESTLE_MAX_RANK + 1];
  for (int64_t i = 0, from = 0; i <= rank_of(x); ++i)
    dims[i] = i == axis ? 1 : pestle_onnx_dim(x, from++);
  pestle_value_t* y = pestle_f_reshape(&call->f, x, rank_of(x) + 1, dims);
  for (int32_t i = 0; y && i < rank_of(x); ++i) {
    pestle_onnx_set_real(call, y, i < axis ? i : i + 1,
                         pestle_onnx_real_size(call->import, x, i));
  }
  return y;
}

// Whether the elements of |s| are strings; MALFORMED where some are.
static bool holds_texts(pestle_onnx_call_t* call,
                        const pestle_onnx_sequence_t* s) {
  size_t texts = 0;
  for (size_t i = 0; i < s->count; ++i)
    texts += pestle_onnx_is_text(call->import, s->values[i]);
  if (texts && texts < s->count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "of the %zu tensors of its sequence %zu are of strings",
                     s->count, texts);
  }
  return texts != 0;
}

void pestle_onnx_import_concat_from_sequence(pestle_onnx_call_t* call) {
  const pestle_onnx_sequence_t* s = sequence_of(call, 0);
  if (!s || !s->count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "the sequence is empty");
    return;
  }
  bool is_new = pestle_onnx_int(call, "new_axis", 0) != 0;
  int64_t rank = rank_of(s->values[0]) + is_new;
  int64_t axis = pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank);
  pestle_value_t** parts = pestle_onnx_scratch(call, s->count * sizeof(*parts));
  if (!parts || call->f.status) return;
  for (size_t i = 0; i < s->count; ++i) {
    parts[i] = s->values[i];
    if (is_new) parts[i] = with_axis(call, parts[i], axis);
  }
  call->outputs[0] = pestle_onnx_join(call, parts, s->count, axis);
  if (holds_texts(call, s)) pestle_onnx_mark_text(call, call->outputs[0]);
}

// --- SplitToSequence ---

// Where the parts end, from input 1: lengths, a length of all but the last, or,
// without it, 1.
static pestle_i64s_t part_lengths(pestle_onnx_call_t* call, int64_t extent) {
  pestle_i64s_t list = {0};
  int64_t length = 1;
  if (pestle_onnx_input(call, 1)) {
    list = pestle_onnx_input_ints(call, 1, "split");
    if (call->f.status || rank_of(call->inputs[1]) == 1) return list;
    length = list.count == 1 ? list.data[0] : 0;
  }
  if (length < 1 || extent / length > 65536) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it splits %lld elements into parts of %lld",
                     (long long)extent, (long long)length);
    return (pestle_i64s_t){0};
  }
  size_t count = (size_t)((extent + length - 1) / length);
  int64_t* lengths = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  for (size_t i = 0; lengths && i < count; ++i) {
    int64_t left = extent - (int64_t)i * length;
    lengths[i] = left < length ? left : length;
  }
  return (pestle_i64s_t){lengths, lengths ? count : 0};
}

// What is real of |part|, of |x| and without axis |axis| of it where |drops|.
static void note_part(pestle_onnx_call_t* call, pestle_value_t* part,
                      const pestle_value_t* x, int64_t axis, bool drops) {
  for (int32_t k = 0; part && k < rank_of(x); ++k) {
    if (k == axis) continue;
    pestle_onnx_set_real(call, part, drops && k > axis ? k - 1 : k,
                         pestle_onnx_real_size(call->import, x, k));
  }
}

// Where only a run tells how long the axis is, the parts must be given, and the run
// fails unless they make it up.
static bool fit_lengths(pestle_onnx_call_t* call, pestle_value_t* x,
                        int64_t axis, int64_t* extent) {
  pestle_value_t* size = pestle_onnx_real_size(call->import, x, axis);
  if (!size) return true;
  pestle_value_t* split = pestle_onnx_input(call, 1);
  if (!split || rank_of(split) != 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "how many parts it makes of axis %lld, only a run tells; "
                     "give the length of each part",
                     (long long)axis);
    return false;
  }
  pestle_i64s_t list = pestle_onnx_input_ints(call, 1, "split");
  int64_t sum = 0;
  for (size_t i = 0; !call->f.status && i < list.count; ++i) {
    if (list.data[i] < 0 || list.data[i] > *extent - sum) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "its parts do not make up the elements of axis %lld, "
                       "which are at most %lld",
                       (long long)axis, (long long)*extent);
      return false;
    }
    sum += list.data[i];
  }
  *extent = sum;
  pestle_value_t* holds =
      pestle_f_eq(&call->f, size, pestle_onnx_size_number(call, sum));
  if (call->f.status) return false;
  if (pestle_onnx_must_hold(call, holds)) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "how long axis %lld is, only a run tells, and no body of a "
                   "loop or branch may fail",
                   (long long)axis);
  return false;
}

void pestle_onnx_import_split_to_sequence(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  if (!x) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "its input 0 is no tensor");
    return;
  }
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank_of(x));
  bool drops =
      !pestle_onnx_input(call, 1) && pestle_onnx_int(call, "keepdims", 1) == 0;
  if (call->f.status) return;
  int64_t extent = pestle_onnx_dim(x, axis), at = 0;
  pestle_i64s_t lengths = {0};
  if (fit_lengths(call, x, axis, &extent)) lengths = part_lengths(call, extent);
  pestle_onnx_sequence_t* s = pestle_onnx_make_list(call, lengths.count);
  if (!s || call->f.status) return;
  for (size_t i = 0; i < lengths.count; ++i) {
    int64_t length = lengths.data[i];
    if (length < 0 || length > extent - at) break;
    pestle_value_t* part =
        pestle_onnx_slice_axis(call, x, axis, at, at + length, 1);
    int64_t dims[PESTLE_MAX_RANK];
    int32_t rank = 0;
    for (int32_t k = 0; drops && k < rank_of(x); ++k) {
      if (k != axis) dims[rank++] = pestle_onnx_dim(x, k);
    }
    s->values[i] = drops ? pestle_f_reshape(&call->f, part, rank, dims) : part;
    note_part(call, s->values[i], x, axis, drops);
    if (pestle_onnx_is_text(call->import, x))
      pestle_onnx_mark_text(call, s->values[i]);
    at += length;
  }
  if (at != extent) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its parts do not make up the %lld elements of axis %lld",
                     (long long)extent, (long long)axis);
  }
  call->made[0] = s;
}
