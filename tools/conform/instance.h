// SPDX-License-Identifier: Apache-2.0
// One op on one dtype, shape and variant: built as a module, evaluated by ir/ref,
// compiled and run with inputs and outputs given as dense, offset, gapped,
// reversed, transposed and repeating views, and compared. The tests of codegen/
// and the conformance kit of plugins share it; each has its own report().
#ifndef PESTLE_TOOLS_CONFORM_INSTANCE_H_
#define PESTLE_TOOLS_CONFORM_INSTANCE_H_

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "tools/conform/check.h"

// A result for each dtype, and a few more.
enum { MAX_ARGS = 8, MAX_RESULTS = PESTLE_DTYPE_COUNT + 8 };

typedef struct shape_t {
  const char* name;
  int32_t rank;
  int64_t dims[4];
} shape_t;

// What an argument is filled with. Integers are any bits but for INDEX.
typedef enum fill_t {
  FILL_BITS,    // any pattern, NaNs and infinities too: for what moves data
  FILL_VALUES,  // the same, but NaNs are the one that arithmetic makes
  FILL_UNIT,    // floats in [-1, 1]
  FILL_SPREAD,  // floats in [-4, 4]
  FILL_SCALE,   // floats in [0.5, 1.5]; scales in [0.5, 2]
  FILL_INDEX,   // integers from below 0 to above the argument's limit
} fill_t;

// How a float result is held against the reference; integers are exact.
// u is the unit roundoff of what is computed in (f32, or f64 for f64). Each
// adds one rounding of the result for each side and a subnormal step.
typedef enum check_t {
  CHECK_BITS,       // equal bits
  CHECK_VALUES,     // equal values; any NaN for a NaN
  CHECK_REDUCTION,  // terms * u * the reference's result on |inputs|: what the
                    // order of a reduction of |terms| elements may change
  CHECK_RELATIVE,   // terms * u * |result|
  CHECK_ABSOLUTE,   // terms * u * (1 + |result|)
} check_t;

typedef struct row_t row_t;

typedef struct instance_t {
  const row_t* row;
  pestle_dtype_t dtype;
  const shape_t* shape;
  uint32_t variant;
  // Elementwise ops before the first operand and after the first result.
  bool wrapped;
  const char* how;  // it is compiled: "", "no_fuse" or "strict"
  // Set by the row's function:
  const char* what;  // the variant's name
  check_t check;
  double terms;
  fill_t fill[MAX_ARGS];
  int64_t limit[MAX_ARGS];
  size_t arg_count;
  pestle_module_t* module;
  pestle_function_t* function;
  pestle_builder_t b;
} instance_t;

// One structured op of the sweep: |build| makes the module for the instance, or
// returns false where the variant does not go with the shape.
struct row_t {
  pestle_op_t op;
  unsigned kinds;  // of dtypes that it takes
  uint32_t variants;
  bool (*build)(instance_t* t);
};

static pestle_context_t *strict_context, *lenient_context;

// --- Building ---

static inline pestle_type_t type_of(pestle_dtype_t dtype, int32_t rank,
                                    const int64_t* dims) {
  return pestle_type_make(dtype, rank, dims);
}

static inline void begin(instance_t* t, const pestle_type_t* types,
                         size_t count) {
  t->arg_count = count;
  if (!t->module) {
    assert_ok(pestle_module_create(strict_context, "m", &t->module));
  }
  assert_ok(pestle_module_add_function(t->module, "main", types, NULL, count,
                                       &t->function));
  t->b = pestle_builder_make(t->function);
}

static inline bool is_complex(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX);
}

// Powers of two alone: neither a zero nor negative numbers.
static inline bool is_scale(pestle_dtype_t dtype) {
  const pestle_float_format_t* format = pestle_float_format(dtype);
  return format && format->specials == PESTLE_FLOAT_SCALE;
}

// Whether instances of |row| are of |dtype|. Substitution, gradients of softmax and
// norms, and deviations from a mean take numbers off each other: of scales, what is less than 0 is
// NaN, and whether a small one is depends on how often it was rounded to a power of two
// before, which is not said.
static inline bool row_takes(const row_t* row, pestle_dtype_t dtype) {
  return pestle_dtype_is_stored(dtype) && pestle_dtype_is(dtype, row->kinds) &&
         !(is_scale(dtype) &&
           (row->op == PESTLE_OP_CHOLESKY ||
            row->op == PESTLE_OP_TRIANGULAR_SOLVE ||
            row->op == PESTLE_OP_LAYER_NORM || row->op == PESTLE_OP_NORM_GRAD ||
            row->op == PESTLE_OP_ATTENTION_GRAD)) &&
         !(dtype != PESTLE_F32 && row->op == PESTLE_OP_SUPPRESS);
}

static inline bool is_float(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
}

// An elementwise op on |x| that loses nothing.
static inline pestle_value_t* wrap(instance_t* t, pestle_value_t* x) {
  pestle_dtype_t dtype = x->type->dtype;
  if (!t->wrapped) return x;
  pestle_value_t* y;
  if (is_scale(dtype)) {
    // None is below 0: a negated one is NaN.
    assert_ok(pestle_op_abs(&t->b, x, &y));
  } else if (is_float(dtype) || is_complex(dtype)) {
    assert_ok(pestle_op_negate(&t->b, x, &y));
  } else {
    assert_ok(pestle_op_not(&t->b, x, &y));
  }
  return y;
}

static inline pestle_value_t* arg(instance_t* t, size_t i) {
  pestle_value_t* x = pestle_function_argument(t->function, i);
  return i == 0 ? wrap(t, x) : x;
}

static inline void finish(instance_t* t, pestle_value_t* const* values,
                          size_t count) {
  pestle_value_t* out[MAX_RESULTS];
  assert_true(count <= MAX_RESULTS);
  for (size_t i = 0; i < count; ++i)
    out[i] = i == 0 ? wrap(t, values[i]) : values[i];
  assert_ok(pestle_op_return(&t->b, out, count, NULL));
}

static inline void finish1(instance_t* t, pestle_value_t* value) {
  finish(t, &value, 1);
}

// --- Data ---

static inline uint32_t next_random(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static inline double unit_random(uint32_t* state) {
  return (double)(next_random(state) >> 8) / (1 << 24);
}

static inline uint64_t float_bits(pestle_dtype_t dtype, fill_t fill,
                                  uint32_t* state) {
  double u = unit_random(state);
  // Negative ones would be NaN, which sums and windows spread over all results.
  double least = is_scale(dtype) ? 0x1p-20 : -1;
  switch (fill) {
    case FILL_UNIT:
      return pestle_float_encode(dtype, fmax(u * 2 - 1, least));
    case FILL_SPREAD:
      return pestle_float_encode(dtype, fmax(u * 8 - 4, 4 * least));
    case FILL_SCALE:
      return pestle_float_encode(
          dtype, is_scale(dtype) ? ldexp(1, (int)(u * 3) - 1) : u + 0.5);
    case FILL_BITS:
    case FILL_VALUES:
    case FILL_INDEX:
      break;
  }
  uint64_t bits = next_random(state);
  bits = bits << 32 | next_random(state);
  if (bits % 5 == 0) {
    static const double edges[] = {
        0,     -0.0, 1,   -1,   INFINITY, -INFINITY, NAN,  0.5,  2.5,   -3.5,
        127.5, 300,  7e4, -2e9, 3e9,      1e19,      -1e6, 1e-8, 1e-40, 255.5};
    bits = pestle_float_encode(
        dtype, edges[bits / 5 % (sizeof(edges) / sizeof(edges[0]))]);
  }
  unsigned width = pestle_dtype_info(dtype)->bits;
  if (width < 64) bits &= (UINT64_C(1) << width) - 1;
  if (fill == FILL_VALUES && isnan(pestle_float_decode(dtype, bits))) {
    bits = pestle_float_encode(dtype, NAN);
  }
  return bits;
}

static inline uint64_t int_bits(pestle_dtype_t dtype, fill_t fill,
                                int64_t limit, uint32_t* state) {
  uint64_t bits = next_random(state);
  bits = bits << 32 | next_random(state);
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  if (fill == FILL_INDEX) {
    bool negative = info->kind == PESTLE_KIND_SIGNED;
    uint64_t span = (uint64_t)limit + (negative ? 5 : 3);
    return bits % span - (negative ? 2 : 0);
  }
  if (bits % 7 == 0) bits = (uint64_t)(bits & 8 ? 0 : -1) << (bits / 7 & 63);
  if (info->bits == 1) return bits >> 5 & 1;
  if (pestle_dtype_is_sub_byte(dtype)) {
    bits = pestle_dtype_extend(dtype, (uint8_t)bits);
  }
  return bits;
}

static inline pestle_dtype_t part_of(pestle_dtype_t dtype) {
  return dtype == PESTLE_C64    ? PESTLE_F32
         : dtype == PESTLE_C128 ? PESTLE_F64
                                : dtype;
}

// Elements of one part: a complex number is two.
static inline size_t part_count(const pestle_type_t* type) {
  return (size_t)pestle_type_count(type) * (is_complex(type->dtype) ? 2 : 1);
}

static inline uint64_t get_bits(pestle_dtype_t part, const void* data,
                                size_t at) {
  size_t size = pestle_dtype_size(part);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)data + at * size, size);
  return bits;
}

static inline void* make_array(const pestle_type_t* type) {
  return calloc(pestle_type_bytes(type) + 16, 1);
}

// Row-major values for argument |i|. With |repeat| all positions of the first
// axis of more than one hold the same, as a view of stride 0 does.
static inline int32_t repeat_axis(const pestle_type_t* type) {
  for (int32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] > 1) return i;
  }
  return -1;
}

static inline void* make_data(const instance_t* t, size_t i,
                              const pestle_type_t* type, bool repeat) {
  char* data = make_array(type);
  pestle_dtype_t part = part_of(type->dtype);
  size_t n = part_count(type), size = pestle_dtype_size(part);
  uint32_t state = (uint32_t)i * 7919u + t->variant * 104729u + 12345u;
  for (size_t k = 0; k < n; ++k) {
    uint64_t bits = is_float(part)
                        ? float_bits(part, t->fill[i], &state)
                        : int_bits(part, t->fill[i], t->limit[i], &state);
    // Few scales other than 1, so that products of any of them stay in their range.
    if (is_scale(part) && t->fill[i] == FILL_SCALE && n > 8 &&
        (k + 1) % (n / 8)) {
      bits = pestle_float_encode(part, 1);
    }
    memcpy(data + k * size, &bits, size);
  }
  int32_t axis = repeat_axis(type);
  if (!repeat || axis < 0 || !n) return data;
  size_t inner = pestle_dtype_size(type->dtype);
  for (int32_t d = axis + 1; d < type->rank; ++d)
    inner *= (size_t)type->dims[d];
  for (int64_t k = 1; k < type->dims[axis]; ++k)
    memcpy(data + (size_t)k * inner, data, inner);
  return data;
}

// --- Views ---

typedef enum view_mode_t {
  VIEW_DENSE,
  VIEW_OFFSET,      // dense, one element behind an aligned address
  VIEW_GAPS,        // every second element of every second row
  VIEW_NEGATIVE,    // strides of a row-major array, negated
  VIEW_TRANSPOSED,  // the first axis innermost
  VIEW_ZERO,        // one axis of stride 0 (inputs only)
  VIEW_MODES,
} view_mode_t;

static const char* const view_names[] = {"dense",    "offset",     "gaps",
                                         "negative", "transposed", "stride 0"};

typedef struct view_t {
  char* memory;
  size_t bytes;  // of |memory|
  int64_t strides[PESTLE_MAX_RANK];
  int64_t shape[PESTLE_MAX_RANK];
  pestle_tensor_t tensor;
  pestle_type_t type;
} view_t;

static inline void view_strides(const pestle_type_t* type, view_mode_t mode,
                                view_t* view) {
  int64_t step = mode == VIEW_GAPS ? 2 : 1;
  int32_t zero = mode == VIEW_ZERO ? repeat_axis(type) : -1;
  for (int32_t k = 0; k < type->rank; ++k) {
    int32_t i = mode == VIEW_TRANSPOSED ? k : type->rank - 1 - k;
    if (i < 0) break;  // gcc cannot see that it is not
    view->strides[i] = i == zero ? 0 : mode == VIEW_NEGATIVE ? -step : step;
    if (i != zero) step *= type->dims[i] * (mode == VIEW_GAPS ? 2 : 1);
    if (!step) step = 1;
  }
}

static inline void view_make(const pestle_type_t* type, view_mode_t mode,
                             view_t* view) {
  *view = (view_t){.type = *type};
  view_strides(type, mode, view);
  size_t size = pestle_dtype_size(type->dtype);
  int64_t low = 0, high = 0;
  for (int32_t i = 0; i < type->rank; ++i) {
    view->shape[i] = type->dims[i];
    int64_t reach = (type->dims[i] ? type->dims[i] - 1 : 0) * view->strides[i];
    *(reach < 0 ? &low : &high) += reach;
  }
  int64_t first = -low + (mode == VIEW_OFFSET);
  view->bytes = (size_t)(first + high + 2) * size;
  view->bytes = (view->bytes + 127) / 64 * 64;
  view->memory = aligned_alloc(64, view->bytes);
  memset(view->memory, 0xcd, view->bytes);
  bool dense = mode == VIEW_DENSE || mode == VIEW_OFFSET;
  view->tensor = (pestle_tensor_t){.data = view->memory,
                                   .device = {PESTLE_DEVICE_CPU, 0},
                                   .ndim = type->rank,
                                   .dtype = pestle_dtype_to_dlpack(type->dtype),
                                   .shape = view->shape,
                                   .strides = dense ? NULL : view->strides,
                                   .byte_offset = (uint64_t)first * size};
}

// Copies between |dense| and the view's elements; with |wipe| the elements are
// then overwritten by what surrounds them.
static inline void view_copy(const view_t* view, char* dense, bool to_view,
                             bool wipe) {
  size_t size = pestle_dtype_size(view->type.dtype);
  int64_t index[PESTLE_MAX_RANK] = {0};
  int64_t count = pestle_type_count(&view->type);
  for (int64_t k = 0; k < count; ++k) {
    int64_t at = 0;
    for (int32_t i = 0; i < view->type.rank; ++i)
      at += index[i] * view->strides[i];
    char* element =
        view->memory + view->tensor.byte_offset + at * (int64_t)size;
    char* row_major = dense + (size_t)k * size;
    memcpy(to_view ? element : row_major, to_view ? row_major : element, size);
    if (wipe) memset(element, 0xcd, size);
    for (int32_t i = view->type.rank; i-- > 0;) {
      if (++index[i] < view->type.dims[i]) break;
      index[i] = 0;
    }
  }
}

// Whether nothing but the view's elements was written; call after a wipe.
static inline bool view_untouched(const view_t* view) {
  for (size_t i = 0; i < view->bytes; ++i) {
    if ((unsigned char)view->memory[i] != 0xcd) return false;
  }
  return true;
}

// --- The reference's results ---

typedef struct expected_t {
  size_t count;
  pestle_type_t types[MAX_RESULTS];
  void* results[MAX_RESULTS];
  void* scales[MAX_RESULTS];  // results on |inputs|, for CHECK_REDUCTION
  void* inputs[MAX_ARGS];
} expected_t;

static inline void make_absolute(const pestle_type_t* type, bool negate,
                                 void* data) {
  pestle_dtype_t part = part_of(type->dtype);
  if (!is_float(part)) return;
  size_t size = pestle_dtype_size(part), n = part_count(type);
  for (size_t k = 0; k < n; ++k) {
    double v = pestle_float_decode(part, get_bits(part, data, k));
    uint64_t bits = pestle_float_encode(part, negate ? -fabs(v) : fabs(v));
    memcpy((char*)data + k * size, &bits, size);
  }
}

static inline pestle_status_t evaluate(const instance_t* t, void* const* inputs,
                                       void* const* results) {
  return pestle_ref_evaluate_function(pestle_allocator_system(), t->function,
                                      (const void* const*)inputs,
                                      (void* const*)results);
}

static inline pestle_status_t expected_make(const instance_t* t, bool repeat,
                                            expected_t* e) {
  const pestle_node_t* end = t->function->body->block->last;
  *e = (expected_t){.count = end->operand_count};
  for (size_t i = 0; i < t->arg_count; ++i) {
    const pestle_type_t* type = pestle_function_argument(t->function, i)->type;
    e->inputs[i] = make_data(t, i, type, repeat);
  }
  for (size_t i = 0; i < e->count; ++i) {
    e->types[i] = *pestle_node_operand(end, (uint32_t)i)->type;
    e->results[i] = make_array(&e->types[i]);
    e->scales[i] = make_array(&e->types[i]);
  }
  PESTLE_TRY(evaluate(t, e->inputs, e->results));
  if (t->check != CHECK_REDUCTION) return NULL;
  // A wrapped operand is negated on the way.
  void* absolute[MAX_ARGS];
  for (size_t i = 0; i < t->arg_count; ++i) {
    const pestle_type_t* type = pestle_function_argument(t->function, i)->type;
    absolute[i] = make_data(t, i, type, repeat);
    make_absolute(type, t->wrapped && i == 0, absolute[i]);
  }
  pestle_status_t status = evaluate(t, absolute, e->scales);
  for (size_t i = 0; i < t->arg_count; ++i)
    free(absolute[i]);
  return status;
}

static inline void expected_free(const instance_t* t, expected_t* e) {
  for (size_t i = 0; i < t->arg_count; ++i)
    free(e->inputs[i]);
  for (size_t i = 0; i < e->count; ++i) {
    free(e->results[i]);
    free(e->scales[i]);
  }
}

// --- Comparing ---

// The relative error of one rounding to |dtype|.
static inline double roundoff(pestle_dtype_t dtype) {
  uint64_t one = pestle_float_encode(dtype, 1);
  return (pestle_float_decode(dtype, one + 1) - 1) / 2;
}

static inline double bound(const instance_t* t, pestle_dtype_t dtype,
                           double want, double scale) {
  if (t->check < CHECK_REDUCTION) return 0;
  bool wide = dtype == PESTLE_F64;
  double u = ldexp(1, wide ? -53 : -24);
  // The reference sums f64 in f64 too, in its own order.
  double terms = t->terms * (wide ? 2 : 1), size = fabs(want);
  if (t->check == CHECK_REDUCTION) {
    // Values are at most 1, so the sum of their sizes is at most |terms|. Parts
    // of a complex product cancel whatever the signs, and each is of two.
    size = isfinite(scale) ? fabs(scale) : t->terms;
    if (is_complex(t->dtype)) size = 2 * t->terms;
  } else if (t->check == CHECK_ABSOLUTE) {
    size = 1 + size;
  }
  return terms * u * size + 2 * roundoff(dtype) * fabs(want) +
         pestle_float_decode(dtype, 1);
}

static inline bool same_bits(const instance_t* t, pestle_dtype_t part,
                             uint64_t want, uint64_t got) {
  if (want == got) return true;
  // A wrapped value went through arithmetic, which need not keep a NaN's bits.
  bool any_nan = t->check != CHECK_BITS || t->wrapped;
  return is_float(part) && any_nan && isnan(pestle_float_decode(part, want)) &&
         isnan(pestle_float_decode(part, got));
}

static inline bool agrees(const instance_t* t, pestle_dtype_t part,
                          uint64_t want, uint64_t got, uint64_t scale) {
  if (same_bits(t, part, want, got)) return true;
  if (!is_float(part) || t->check < CHECK_REDUCTION) return false;
  double w = pestle_float_decode(part, want),
         g = pestle_float_decode(part, got);
  double s = pestle_float_decode(part, scale);
  return fabs(w - g) <= bound(t, part, w, s);
}

static inline void describe(const instance_t* t, const char* how, char* out,
                            size_t size) {
  char dims[64] = "";
  for (int32_t i = 0; i < t->shape->rank; ++i) {
    size_t at = strlen(dims);
    snprintf(dims + at, sizeof(dims) - at, "%s%lld", i ? "x" : "",
             (long long)t->shape->dims[i]);
  }
  snprintf(out, size, "%s (%s%s) of %s, %s [%s], %s%s%s",
           pestle_op_info(t->row->op)->name, t->what,
           t->wrapped ? ", wrapped" : "", pestle_dtype_info(t->dtype)->name,
           t->shape->name, dims, how, *t->how ? ", " : "", t->how);
}

// Told of everything that is not as it should be; of whoever includes this.
static inline void report(const instance_t* t, const char* how,
                          const char* message);

static inline void compare(const instance_t* t, const char* how,
                           const expected_t* e, size_t result,
                           const void* got) {
  const pestle_type_t* type = &e->types[result];
  pestle_dtype_t part = part_of(type->dtype);
  size_t n = part_count(type);
  for (size_t k = 0; k < n; ++k) {
    uint64_t w = get_bits(part, e->results[result], k);
    uint64_t g = get_bits(part, got, k);
    if (agrees(t, part, w, g, get_bits(part, e->scales[result], k))) continue;
    char text[256];
    double x = is_float(part) ? pestle_float_decode(part, w) : (double)w;
    double y = is_float(part) ? pestle_float_decode(part, g) : (double)g;
    snprintf(text, sizeof(text),
             "result %zu (%s) at %zu is %#llx (%.9g), should be %#llx (%.9g)",
             result, pestle_dtype_info(type->dtype)->name, k,
             (unsigned long long)g, y, (unsigned long long)w, x);
    report(t, how, text);
    return;
  }
}

// --- Running ---

static size_t view_runs;

static inline void run_views(const instance_t* t, const char* how,
                             pestle_executable_t* exe, const expected_t* e,
                             view_mode_t mode) {
  view_t in[MAX_ARGS], out[MAX_RESULTS];
  pestle_tensor_t inputs[MAX_ARGS], outputs[MAX_RESULTS];
  for (size_t i = 0; i < t->arg_count; ++i) {
    const pestle_type_t* type = pestle_function_argument(t->function, i)->type;
    view_make(type, mode, &in[i]);
    view_copy(&in[i], e->inputs[i], true, false);
    inputs[i] = in[i].tensor;
  }
  // No element of a result may be named twice; dense ones are allocated too.
  for (size_t i = 0; i < e->count; ++i) {
    view_make(&e->types[i], mode == VIEW_ZERO ? VIEW_DENSE : mode, &out[i]);
    outputs[i] = mode == VIEW_DENSE ? (pestle_tensor_t){0} : out[i].tensor;
  }
  pestle_status_t status = pestle_executable_run(
      exe, NULL, inputs, t->arg_count, outputs, e->count, NULL);
  ++view_runs;
  if (status) report(t, how, pestle_status_message(status));
  for (size_t i = 0; i < e->count && !status; ++i) {
    if (mode == VIEW_DENSE) {
      compare(t, how, e, i, outputs[i].data);
      pestle_tensor_release(exe, &outputs[i]);
      continue;
    }
    char* got = make_array(&e->types[i]);
    view_copy(&out[i], got, false, true);
    compare(t, how, e, i, got);
    if (!view_untouched(&out[i])) report(t, how, "wrote beside the result");
    free(got);
  }
  pestle_status_release(status);
  for (size_t i = 0; i < t->arg_count; ++i)
    free(in[i].memory);
  for (size_t i = 0; i < e->count; ++i)
    free(out[i].memory);
}

// Every kind of view; of large arrays two, and one where they are interpreted.
static inline void run_all_views(const instance_t* t, const char* device,
                                 pestle_executable_t* exe, const expected_t* e,
                                 const expected_t* repeated) {
  bool large = false;
  for (size_t i = 0; i < e->count; ++i)
    large |= pestle_type_count(&e->types[i]) > 5000;
  for (size_t i = 0; i < t->arg_count; ++i) {
    large |= pestle_type_count(pestle_function_argument(t->function, i)->type) >
             5000;
  }
  for (int m = 0; m < VIEW_MODES; ++m) {
    view_mode_t mode = (view_mode_t)m;
    if (large && mode != VIEW_DENSE && mode != VIEW_GAPS) continue;
    if (large && mode != VIEW_GAPS && strcmp(device, "llvm")) continue;
    // Views are the runtime's matter, not the schedule's.
    if (mode != VIEW_GAPS && !strcmp(device, "simt")) continue;
    char how[64];
    snprintf(how, sizeof(how), "%s, %s", device, view_names[m]);
    run_views(t, how, exe, mode == VIEW_ZERO ? repeated : e, mode);
  }
}

static const char* const simt_kinds[] = {"simt1", "simt", "simtm", "simt8"};

static inline pestle_status_t compile(const instance_t* t, const char* spec,
                                      pestle_context_t* context,
                                      pestle_device_t* device,
                                      pestle_executable_t** out_exe) {
  pestle_plan_t* plan;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .verify = true,
                                      .no_fuse = !strcmp(t->how, "no_fuse")};
  if (!strcmp(t->how, "strict")) options.numerics = PESTLE_NUMERICS_STRICT;
  if (!strcmp(spec, "simt")) options.target_cpu = simt_kinds[t->arg_count % 4];
  PESTLE_TRY(pestle_compile(context, t->module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, out_exe));
  pestle_plan_release(plan);
  return NULL;
}

#endif  // PESTLE_TOOLS_CONFORM_INSTANCE_H_
