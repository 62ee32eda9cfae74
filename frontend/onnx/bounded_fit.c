// SPDX-License-Identifier: Apache-2.0
// Extents that have to be equal, and of which only a run tells whether they are. Where it
// shows that they are not, the run fails (importer.h): no op computes with what lies behind
// the real elements, or leaves some of them out.
//
//   [a b . .] + [c d e f], n = 2 of at most 4:   fails
//   [a . . .] + [c d e f], n = 1:                places 0 0 0 0 of the first
#include "base/mem.h"
#include "frontend/onnx/bounded.h"

typedef struct fit_t {
  pestle_onnx_call_t* call;
  pestle_value_t** values;
  const int64_t* axes;  // of each value the one that is looked at, -1 for none
  size_t count;
  bool repeats;  // an axis of one element is repeated, as numpy has it
  int64_t dim;   // that of a value whose type says it, or -1
  pestle_value_t*
      size;             // the first one that is only known after a run, or NULL
  bool alike;           // no other one is, and their bounds are one
  int64_t least, most;  // of the bounds
} fit_t;

static pestle_value_t* size_of(const fit_t* f, size_t i) {
  return pestle_onnx_real_size(f->call->import, f->values[i], f->axes[i]);
}

static void look(fit_t* f) {
  f->dim = -1;
  f->alike = true;
  for (size_t i = 0; i < f->count; ++i) {
    if (!f->values[i] || f->axes[i] < 0) continue;
    int64_t bound = pestle_onnx_dim(f->values[i], f->axes[i]);
    pestle_value_t* size = size_of(f, i);
    if (!size) {
      if (!f->repeats || bound != 1) f->dim = bound;
      continue;
    }
    if (!f->size) f->least = f->most = bound;
    f->alike &=
        !f->size || (bound == f->most && pestle_onnx_same_size(size, f->size));
    if (!f->size) f->size = size;
    if (bound < f->least) f->least = bound;
    if (bound > f->most) f->most = bound;
  }
}

bool pestle_onnx_must_hold(pestle_onnx_call_t* call, pestle_value_t* holds) {
  pestle_onnx_import_t* import = call->import;
  if (!holds || call->f.builder.block != import->entry) return false;
  pestle_value_t* fails = pestle_f_not(&call->f, holds);
  import->misfit =
      import->misfit ? pestle_f_or(&call->f, import->misfit, fails) : fails;
  return import->misfit != NULL;
}

static pestle_value_t* is_number(fit_t* f, pestle_value_t* size,
                                 int64_t number) {
  return pestle_f_eq(&f->call->f, size,
                     pestle_onnx_size_number(f->call, number));
}

// Value |i| with |y| in its place, of which |size| is real along the axis.
static void replace(fit_t* f, size_t i, pestle_value_t* y,
                    pestle_value_t* size) {
  pestle_value_t* x = f->values[i];
  for (int32_t axis = 0; y && axis < rank_of(x); ++axis) {
    pestle_onnx_set_real(f->call, y, axis,
                         axis == f->axes[i]
                             ? size
                             : pestle_onnx_real_size(f->call->import, x, axis));
  }
  f->values[i] = y;
}

// Value |i| over |bound| places, the last real one again behind what is real.
static void repeat_last(fit_t* f, size_t i, int64_t bound,
                        pestle_value_t* size) {
  pestle_onnx_call_t* call = f->call;
  const pestle_type_t list = {.dtype = PESTLE_I64, .rank = 1, .dims = {bound}};
  pestle_value_t* last = pestle_f_maximum(
      &call->f, pestle_onnx_size_number(call, 0),
      add(call, size_of(f, i), pestle_onnx_size_number(call, -1)));
  pestle_value_t* at =
      pestle_f_minimum(&call->f, pestle_f_iota(&call->f, &list, 0), last);
  replace(f, i, pestle_onnx_take(call, f->values[i], at, f->axes[i]), size);
}

// Value |i| over |bound| places, all that are real where they were.
static void cut(fit_t* f, size_t i, int64_t bound, pestle_value_t* size) {
  pestle_onnx_call_t* call = f->call;
  pestle_value_t* x = f->values[i];
  int64_t axis = f->axes[i], dims[PESTLE_MAX_RANK];
  if (pestle_onnx_dim(x, axis) > bound) {
    x = pestle_onnx_slice_axis(call, x, axis, 0, bound, 1);
  } else if (pestle_onnx_dim(x, axis) < bound) {
    for (int32_t k = 0; k < rank_of(x); ++k)
      dims[k] = k == axis ? bound : pestle_onnx_dim(x, k);
    x = pestle_onnx_widen(call, x, dims);
  } else {
    x = pestle_onnx_apart(call, x);
  }
  replace(f, i, x, size);
}

// The extent of all, NULL where it is |f->dim|. False where no run could fail by it.
static bool agree(fit_t* f, pestle_value_t** out_size) {
  pestle_formula_t* k = &f->call->f;
  *out_size = f->dim >= 0 ? NULL : f->size;
  for (size_t i = 0; i < f->count; ++i) {
    pestle_value_t* size =
        f->values[i] && f->axes[i] >= 0 ? size_of(f, i) : NULL;
    if (!size || size == *out_size) continue;
    pestle_value_t* holds = *out_size ? pestle_f_eq(k, size, *out_size)
                                      : is_number(f, size, f->dim);
    if (f->repeats) {
      holds = pestle_f_or(k, holds, is_number(f, size, 1));
      if (*out_size) {
        pestle_value_t* is_one = is_number(f, *out_size, 1);
        holds = pestle_f_or(k, holds, is_one);
        *out_size = pestle_f_select(k, is_one, size, *out_size);
      }
    }
    if (!pestle_onnx_must_hold(f->call, holds)) return false;
  }
  return true;
}

static bool fit(fit_t* f, pestle_value_t** out_size) {
  pestle_onnx_call_t* call = f->call;
  look(f);
  *out_size = f->size;
  if (call->f.status) return false;
  if (!f->size || (f->dim < 0 && f->alike)) return true;
  if (!agree(f, out_size)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its inputs differ in how long they are along an axis, "
                     "for at least one of them is so long as only a run tells");
    return false;
  }
  int64_t bound = f->dim >= 0 ? f->dim : f->repeats ? f->most : f->least;
  for (size_t i = 0; i < f->count; ++i) {
    if (!f->values[i] || f->axes[i] < 0 || !size_of(f, i)) continue;
    if (f->repeats) {
      repeat_last(f, i, bound, *out_size);
    } else {
      cut(f, i, bound, *out_size);
    }
  }
  return !call->f.status;
}

bool pestle_onnx_fit(pestle_onnx_call_t* call, pestle_value_t** values,
                     const int64_t* axes, size_t count,
                     pestle_value_t** out_size) {
  fit_t f = {.call = call, .values = values, .axes = axes, .count = count};
  return fit(&f, out_size);
}

void pestle_onnx_fit_broadcast(pestle_onnx_call_t* call) {
  int64_t* axes =
      pestle_onnx_scratch(call, (call->input_count + 1) * sizeof(int64_t));
  int32_t rank = 0;
  bool any = false;
  for (size_t i = 0; axes && i < call->input_count; ++i) {
    const pestle_value_t* x = call->inputs[i];
    if (!x) continue;
    any |= pestle_onnx_real(call->import, x) != NULL;
    if (rank_of(x) > rank) rank = rank_of(x);
  }
  for (int32_t k = 1; any && k <= rank && !call->f.status; ++k) {
    for (size_t i = 0; i < call->input_count; ++i)
      axes[i] = call->inputs[i] ? rank_of(call->inputs[i]) - k : -1;
    pestle_value_t* size;
    fit_t f = {.call = call,
               .values = call->inputs,
               .axes = axes,
               .count = call->input_count,
               .repeats = true};
    (void)fit(&f, &size);
  }
}
