// SPDX-License-Identifier: Apache-2.0
// The radius of a right result around the reference's: see random.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "ir/accuracy.h"
#include "ir/cumulative.h"
#include "ir/ref/ref.h"
#include "random/random.h"

// --- Evaluating ---

static bool run_reference(graph_t* g, const pestle_node_t* node,
                          const void* const* operands, void* const* results) {
  pestle_status_t status = pestle_ref_evaluate_node(pestle_allocator_system(),
                                                    node, operands, results);
  expect(g, status);
  return true;
}

bool evaluate(graph_t* g, const pestle_node_t* node, value_t* const* in,
              value_t** out) {
  const void* operands[MAX_OPERANDS];
  void* results[MAX_OPERANDS];
  for (uint32_t i = 0; i < node->operand_count; ++i)
    operands[i] = in[i]->data;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    out[i] = make_value(g, &node->results[i]);
    results[i] = out[i]->data;
  }
  run_reference(g, node, operands, results);
  for (uint32_t i = 0; i < node->result_count; ++i)
    note_range(out[i]);
  return true;
}

void copy_value(value_t* out, const value_t* from) {
  memcpy(out->data, from->data, pestle_type_bytes(out->value->type));
  out->radius = from->radius;
  note_range(out);
}

// --- What a node and its operands are ---

typedef struct case_t {
  graph_t* g;
  const pestle_node_t* node;
  value_t* const* in;
  value_t* const* out;
  double radius;  // the largest of the operands
  bool special;   // an operand is
} case_t;

static pestle_dtype_t dtype_of(const value_t* v) {
  return v->value->type->dtype;
}

// The least magnitude of an element; infinity where there is none.
static double least(value_t* v) {
  const double* x = numbers(v);
  double m = INFINITY;
  for (int64_t i = 0; i < number_count(v); ++i)
    m = fmin(m, fabs(x[i]));
  return m;
}

static double lowest(value_t* v) {
  const double* x = numbers(v);
  double m = INFINITY;
  for (int64_t i = 0; i < count_of(v); ++i)
    m = fmin(m, x[i]);
  return m;
}

// Whether all elements are farther than the radius from where rounding to an
// integer jumps: at integers, and so from 0, or between them.
static bool far_from_jumps(value_t* v, bool between) {
  const double* x = numbers(v);
  for (int64_t i = 0; i < count_of(v); ++i) {
    double y = between ? x[i] - 0.5 : x[i];
    if (!(fabs(y - nearbyint(y)) > v->radius)) return false;
  }
  return true;
}

static bool are_apart(value_t* a, value_t* b) {
  const double *x = numbers(a), *y = numbers(b);
  for (int64_t i = 0; i < count_of(a); ++i) {
    if (!(fabs(x[i] - y[i]) > a->radius + b->radius)) return false;
  }
  return true;
}

// The largest power of two that divides every element.
static double quantum(value_t* v) {
  const double* x = numbers(v);
  int least_bit = 2000;
  for (int64_t i = 0; i < number_count(v); ++i) {
    if (x[i] == 0 || !isfinite(x[i])) continue;
    int e, zeros = 0;
    int64_t m = (int64_t)ldexp(frexp(x[i], &e), 53);
    while (!(m & 1)) {
      m >>= 1;
      ++zeros;
    }
    if (e - 53 + zeros < least_bit) least_bit = e - 53 + zeros;
  }
  return least_bit == 2000 ? 1 : ldexp(1, least_bit);
}

// The radius of zeros whose sign an op leaves open: far below any other number.
#define EITHER_ZERO 0x1p-1000

static bool has_zero(value_t* v, bool negative) {
  const double* x = numbers(v);
  for (int64_t i = 0; i < number_count(v); ++i) {
    if (x[i] == 0 && (!negative || signbit(x[i]))) return true;
  }
  return false;
}

static double unit_of(pestle_dtype_t dtype) {
  return pestle_dtype_part(dtype) == PESTLE_F64 ? 0x1p-53 : 0x1p-24;
}

// --- Elementwise on complex numbers ---

static double steps_of(pestle_op_t op, double* reach) {
  switch ((int)op) {
#define PESTLE_COMPLEX(NAME, RESULT, STEPS, REACH, expr) \
  case PESTLE_OP_##NAME:                                 \
    *reach = REACH;                                      \
    return STEPS;
#include "ir/complex.def"
  }
  *reach = 0;
  return 0;
}

// Of parts that are no number of grids: the formulas' own underflows.
static bool is_tiny(value_t* v) {
  const double* x = numbers(v);
  for (int64_t i = 0; i < number_count(v); ++i) {
    if (x[i] != 0 && fabs(x[i]) < 1e-6) return true;
  }
  return false;
}

// What one op adds to the radius: a number's size bounds the error of each part,
// and no size is more than sqrt(2) times the largest part.
static bool complex_steps(const case_t* c, double* out) {
  value_t *y = c->out[0], *const *in = c->in;
  pestle_op_t op = (pestle_op_t)c->node->op;
  double reach, steps = steps_of(op, &reach), u = unit_of(dtype_of(in[0]));
  *out = 0;
  // Each part is rounded once, as is a real number.
  bool parts = op == PESTLE_OP_ADD || op == PESTLE_OP_SUBTRACT ||
               op == PESTLE_OP_NEGATE || op == PESTLE_OP_SELECT;
  if (parts || !has_floats(dtype_of(y))) return true;
  if (c->special || y->special) return false;
  for (uint32_t i = 0; i < c->node->operand_count; ++i) {
    if (in[i]->largest > reach || is_tiny(in[i])) return false;
  }
  // Products without a rounding, and their sums.
  if (op == PESTLE_OP_MULTIPLY && 2 * in[0]->largest * in[1]->largest * u <=
                                      quantum(in[0]) * quantum(in[1])) {
    return true;
  }
  // Below the least normal number steps are no smaller; a zero's sign is not said.
  bool wide = pestle_dtype_part(dtype_of(y)) == PESTLE_F64;
  *out = 1.5 * steps * u * fmax(y->largest, wide ? 0x1p-1022 : 0x1p-126);
  return true;
}

static bool scalar_complex(const case_t* c) {
  value_t *out = c->out[0], *const *in = c->in;
  double own, ra = in[0]->radius;
  double rb = c->node->operand_count > 1 ? in[1]->radius : 0;
  out->radius = 0;
  if (!complex_steps(c, &own)) return false;
  if (c->radius == 0) {
    out->radius = own;
    return true;
  }
  switch ((int)c->node->op) {
    case PESTLE_OP_NEGATE:
    case PESTLE_OP_SELECT:
      out->radius = c->radius;
      return true;
    case PESTLE_OP_ADD:
    case PESTLE_OP_SUBTRACT:
      out->radius = ra + rb;
      break;
    case PESTLE_OP_MULTIPLY:
      out->radius = 2 * ((in[0]->largest + ra) * rb + in[1]->largest * ra);
      break;
    case PESTLE_OP_ABS:
      out->radius = 1.5 * ra;
      break;
    default:
      return false;
  }
  out->radius += own + ulp_at(dtype_of(out), out->largest + out->radius);
  return true;
}

// --- Elementwise ---

// Whether each product needs no rounding.
static bool products_are_exact(const case_t* c) {
  value_t *a = c->in[0], *b = c->in[1];
  const double *x = numbers(a), *y = numbers(b), *z = numbers(c->out[0]);
  for (int64_t i = 0; i < count_of(a); ++i) {
    if (!isfinite(z[i]) || fma(x[i], y[i], -z[i]) != 0) return false;
  }
  return true;
}

static bool scalar_exact(const case_t* c) {
  value_t* out = c->out[0];
  pestle_dtype_t dtype = dtype_of(out);
  out->radius = 0;
  if (!is_float(dtype)) return true;
  out->radius = pestle_accuracy_steps((pestle_op_t)c->node->op, dtype) *
                ulp_at(dtype, out->largest);
  bool contracts = c->node->op == PESTLE_OP_MULTIPLY && !is_narrow(dtype) &&
                   c->g->numerics != PESTLE_NUMERICS_STRICT;
  if (contracts && !products_are_exact(c)) {
    out->radius = ulp_at(dtype, out->largest) / 2;
  }
  // To a peer it is a sum in f64, rounded once more.
  if (c->g->peer && c->node->op == PESTLE_OP_FMA && dtype == PESTLE_F32)
    out->radius = ulp_at(dtype, out->largest);
  return true;
}

// The radius by the derivative, before rounding. False: not known.
static bool smooth(const case_t* c, double* out) {
  value_t* const* in = c->in;
  uint32_t n = c->node->operand_count;
  double ra = in[0]->radius, rb = n > 1 ? in[1]->radius : 0;
  double rc = n > 2 ? in[2]->radius : 0, low, y = c->out[0]->largest;
  double a = in[0]->largest + ra, b = n > 1 ? in[1]->largest + rb : 0;
  switch ((int)c->node->op) {
    case PESTLE_OP_ADD:
    case PESTLE_OP_SUBTRACT:
      *out = ra + rb;
      return true;
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_FMA:
      *out = a * rb + b * ra + rc;
      return true;
    case PESTLE_OP_DIVIDE:
      low = least(in[1]) - rb;
      *out = ra / low + a * rb / (low * low);
      return low > 0;
    case PESTLE_OP_TANH:
    case PESTLE_OP_SINE:
    case PESTLE_OP_COSINE:
      *out = ra;
      return true;
    case PESTLE_OP_LOGISTIC:
      *out = ra / 4;
      return true;
    case PESTLE_OP_ERF:
      *out = 1.13 * ra;
      return true;
    case PESTLE_OP_EXP:
      *out = y * exp(ra) * ra;
      return ra < 0.5;
    case PESTLE_OP_EXPM1:
      *out = (y + 1) * exp(ra) * ra;
      return ra < 0.5;
    case PESTLE_OP_LOG:
      low = lowest(in[0]) - ra;
      *out = ra / low;
      return low > 0;
    case PESTLE_OP_LOG1P:
      low = 1 + lowest(in[0]) - ra;
      *out = ra / low;
      return low > 0;
    case PESTLE_OP_SQRT:
      low = lowest(in[0]) - ra;
      *out = ra / (2 * sqrt(low));
      return low > 0;
    case PESTLE_OP_RSQRT:
      low = lowest(in[0]) - ra;
      *out = ra / (2 * low * sqrt(low));
      return low > 0;
    case PESTLE_OP_CBRT:
      low = least(in[0]) - ra;
      *out = ra / (3 * pow(low, 2.0 / 3));
      return low > 0;
    default:
      return false;
  }
}

static bool scalar_near(const case_t* c) {
  value_t *out = c->out[0], *const *in = c->in;
  pestle_dtype_t dtype = dtype_of(out);
  out->radius = 0;
  switch ((int)c->node->op) {
    case PESTLE_OP_NEGATE:
    case PESTLE_OP_ABS:
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
    case PESTLE_OP_CLAMP:
    case PESTLE_OP_SELECT:
      out->radius = c->radius;
      return true;
    case PESTLE_OP_EQ:
    case PESTLE_OP_NE:
    case PESTLE_OP_LT:
    case PESTLE_OP_LE:
    case PESTLE_OP_GT:
    case PESTLE_OP_GE:
      return are_apart(in[0], in[1]);
    case PESTLE_OP_IS_FINITE:
    case PESTLE_OP_IS_NAN:
      return true;
    case PESTLE_OP_SIGN:
      return least(in[0]) > in[0]->radius;
    case PESTLE_OP_FLOOR:
    case PESTLE_OP_CEIL:
    case PESTLE_OP_TRUNC:
      return far_from_jumps(in[0], false);
    case PESTLE_OP_ROUND_EVEN:
    case PESTLE_OP_ROUND_AFZ:
      // What may be on either side of 0 is rounded to either.
      if (least(in[0]) <= in[0]->radius) out->radius = EITHER_ZERO;
      return far_from_jumps(in[0], true);
    default:
      break;
  }
  if (!is_float(dtype) || !smooth(c, &out->radius)) return false;
  bool trans =
      pestle_op_info((pestle_op_t)c->node->op)->flags & PESTLE_OP_FLAG_TRANS;
  out->radius += (trans ? 3 : 1) * ulp_at(dtype, out->largest + out->radius);
  return true;
}

static bool convert(const case_t* c) {
  value_t *x = c->in[0], *out = c->out[0];
  pestle_dtype_t from = dtype_of(x), to = dtype_of(out);
  out->radius = 0;
  if (x->radius == 0) return true;
  if (is_complex(from) && !has_floats(to)) return false;
  if (to == PESTLE_I1) return least(x) > x->radius;
  if (!has_floats(to)) return far_from_jumps(x, false);
  out->radius = x->radius;
  if (roundoff(to) >= roundoff(from))
    out->radius += ulp_at(to, out->largest + x->radius);
  return true;
}

// --- Sums ---

static double as_is(double size) {
  return size;
}

static double not_below_1(double size) {
  return fmax(size, 1);
}

// Of what makes a product small.
static double not_above_1(double size) {
  return size > 0 && size < 1 ? 1 / size : 1;
}

// The largest element of what |node| makes of |of| the magnitudes of its operands;
// of a complex number it is that of both parts, as a real one.
static double result_of_sizes(const case_t* c, double (*of)(double)) {
  const pestle_node_t* node = c->node;
  void* operands[MAX_OPERANDS];
  for (uint32_t k = 0; k < node->operand_count; ++k) {
    const pestle_type_t* type = c->in[k]->value->type;
    size_t n = (size_t)pestle_type_count(type);
    size_t size = pestle_dtype_size(type->dtype);
    const double* x = numbers(c->in[k]);
    operands[k] = calloc(n + 1, size);
    for (size_t i = 0; x && i < n; ++i) {
      uint64_t bits[2] = {0};
      double sum = is_complex(type->dtype) ? fabs(x[2 * i]) + fabs(x[2 * i + 1])
                                           : fabs(x[i]);
      bits[0] = pestle_float_encode(pestle_dtype_part(type->dtype), of(sum));
      memcpy((char*)operands[k] + i * size, bits, size);
    }
  }
  const pestle_type_t* type = node->results[0].type;
  size_t n = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  char* result = calloc(n + 1, size);
  void* results[] = {result};
  run_reference(c->g, node, (const void* const*)operands, results);
  double most = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t bits = 0;
    size_t part = pestle_dtype_size(pestle_dtype_part(type->dtype));
    memcpy(&bits, result + i * size, part);
    double real = pestle_float_decode(pestle_dtype_part(type->dtype), bits);
    most = fmax(most, fabs(real));
  }
  for (uint32_t k = 0; k < node->operand_count; ++k)
    free(operands[k]);
  free(result);
  return most;
}

static double sum_of_sizes(const case_t* c) {
  return result_of_sizes(c, as_is);
}

// Whether products of any of the elements are in their type's range.
static bool products_stay(const case_t* c) {
  bool wide = pestle_dtype_part(dtype_of(c->out[0])) == PESTLE_F64;
  double most = wide ? 1e300 : 1e37;
  return result_of_sizes(c, not_below_1) < most &&
         result_of_sizes(c, not_above_1) < most;
}

// |terms| summed, of which one grain is the least; |carried| comes from the
// operands' radii.
static bool sum(const case_t* c, double terms, double grain, double carried,
                bool scaled) {
  value_t* out = c->out[0];
  pestle_dtype_t dtype = dtype_of(out);
  double u = unit_of(dtype), sizes = sum_of_sizes(c);
  bool wide = pestle_dtype_part(dtype) == PESTLE_F64;
  // A partial sum may overflow in one order and not in another.
  if (sizes > (wide ? 1e300 : 1e37)) return false;
  if (c->special || out->special || !isfinite(sizes)) {
    // Which of several infinities or NaNs comes first does not show.
    out->radius = 0;
    if (carried > 0) return false;
    if (sizes <= out->largest || !isfinite(sizes)) sizes = out->largest * terms;
  }
  if (carried == 0 && !scaled && sizes <= grain / u) {
    // A start of 0 may be left out, and so may all terms but one.
    bool kept = terms > 2 && !has_zero(c->in[0], true);
    if (!kept && has_zero(out, false)) out->radius = EITHER_ZERO;
    return true;
  }
  // Both sides round in an order of their own.
  double levels = wide ? 2 : 1;
  out->radius = levels * terms * u * sizes + carried +
                ulp_at(dtype, out->largest + carried);
  return true;
}

// Each product is off by a few roundoffs of its size, and sizes multiply.
static bool complex_product(const case_t* c, double terms) {
  value_t* out = c->out[0];
  double reach, steps = steps_of(PESTLE_OP_MULTIPLY, &reach);
  if (c->special || out->special || c->in[0]->largest > 16 ||
      is_tiny(c->in[0])) {
    return false;
  }
  out->radius = 1.5 * steps * terms * unit_of(dtype_of(out)) * out->largest;
  return true;
}

static bool reduction_by(const case_t* c, pestle_op_t op, double terms) {
  const pestle_node_t* node = c->node;
  value_t* out = c->out[0];
  for (uint32_t i = 0; i < node->result_count; ++i)
    c->out[i]->radius = 0;
  if (!has_floats(dtype_of(out))) return c->radius == 0;
  if (op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM) {
    out->radius = c->radius;
    return true;
  }
  if (op == PESTLE_OP_ADD) {
    double grain = quantum(c->in[0]);
    if (node->operand_count > 1) grain = fmin(grain, quantum(c->in[1]));
    return sum(c, terms, grain, terms * c->radius, false);
  }
  if (c->radius > 0) return false;
  if (op == PESTLE_OP_MULTIPLY && !products_stay(c)) return false;
  if (op == PESTLE_OP_MULTIPLY && is_complex(dtype_of(out)))
    return complex_product(c, terms);
  if (op == PESTLE_OP_MULTIPLY) return sum(c, terms, 0, 0, true);
  // A body of several ops is reduced in order, each step rounded to the type:
  // those that choose are exact.
  if (node->result_count > 1) return true;
  pestle_dtype_t dtype = dtype_of(out);
  out->radius =
      terms * roundoff(dtype) * sum_of_sizes(c) + ulp_at(dtype, out->largest);
  return !c->special;
}

static bool reduction(const case_t* c, double terms) {
  const pestle_block_t* body = pestle_node_body(c->node, 0);
  return reduction_by(c, pestle_block_reduce_op(body), terms);
}

static double product(pestle_i64s_t sizes) {
  double n = 1;
  for (size_t i = 0; i < sizes.count; ++i)
    n *= (double)sizes.data[i];
  return n;
}

static double reduced(const case_t* c) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(c->node, dimensions);
  double n = 1;
  for (size_t i = 0; i < dims.count; ++i)
    n *= (double)c->in[0]->value->type->dims[dims.data[i]];
  return n + 1;
}

static bool contraction(const case_t* c, double terms) {
  value_t *a = c->in[0], *b = c->in[1];
  c->out[0]->radius = 0;
  if (!has_floats(dtype_of(c->out[0]))) return true;
  double carried =
      terms * ((a->largest + a->radius) * b->radius + b->largest * a->radius);
  if (is_complex(dtype_of(a))) {  // two products a part
    carried *= 2;
    terms *= 2;
  }
  // A factor beside constant weights may be folded into them.
  bool scaled =
      (a->constant || b->constant) && c->g->numerics != PESTLE_NUMERICS_STRICT;
  return sum(c, terms, quantum(a) * quantum(b), carried, scaled);
}

static double dot_terms(const case_t* c) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(c->node, lhs_contracting_dimensions);
  double n = 1;
  for (size_t i = 0; i < dims.count; ++i)
    n *= (double)c->in[0]->value->type->dims[dims.data[i]];
  return n + 1;
}

static bool is_padded(const pestle_node_t* conv) {
  pestle_i64s_t padding = PESTLE_NODE_I64S(conv, padding);
  pestle_i64s_t dilation = PESTLE_NODE_I64S(conv, lhs_dilation);
  bool padded = false;
  for (size_t i = 0; i < padding.count; ++i)
    padded |= padding.data[i] > 0;
  for (size_t i = 0; i < dilation.count; ++i)
    padded |= dilation.data[i] > 1;
  return padded;
}

static double conv_terms(const case_t* c) {
  const pestle_type_t* kernel = c->in[1]->value->type;
  int64_t out =
      kernel->dims[PESTLE_NODE_I64(c->node, kernel_output_feature_dimension)];
  return out ? (double)pestle_type_count(kernel) / (double)out + 1 : 1;
}

// --- Composites: the roundings of their formulas ---

// |near| are the roundings in f32 (f64); the result's own come on top. False: a
// number may be on either side of those that its type has.
static bool rounded(const case_t* c, value_t* out, double near) {
  pestle_dtype_t dtype = dtype_of(out);
  out->radius = near + 2 * ulp_at(dtype, out->largest);
  if (!is_coarse(dtype)) return true;
  out->steps = 1;
  out->near = near;
  out->radius = near + ulp_at(dtype, out->largest);
  return !c->g->peer && !(is_positive(dtype) && lowest(out) <= near);
}

static bool composite(const case_t* c, double roundings, double slope) {
  value_t* out = c->out[0];
  pestle_dtype_t dtype = dtype_of(out);
  out->radius = 0;
  if (!is_float(dtype)) return c->radius == 0;
  if (c->special || out->special || (slope == 0 && c->radius > 0)) return false;
  double near = roundings * unit_of(dtype) * (1 + out->largest);
  return rounded(c, out, near + slope * c->radius);
}

static double largest_of(const case_t* c) {
  double m = 0;
  for (uint32_t i = 0; i < c->node->operand_count; ++i)
    m = fmax(m, c->in[i]->largest);
  return m;
}

// exp(x - max) is off by |x - max| roundings of its argument and 2 ulp of its
// own, the sum by one for each element.
static bool softmax(const case_t* c) {
  return composite(c, reduced(c) + 16 + 4 * c->in[0]->largest, 2.5);
}

static bool running(const case_t* c) {
  const pestle_node_t* node = c->node;
  pestle_op_t op = pestle_cumulative_op(PESTLE_NODE_STR(node, combiner));
  int64_t axis = PESTLE_NODE_I64(node, dimension);
  double terms = (double)c->in[0]->value->type->dims[axis] + 1;
  return op == PESTLE_OP_LOGSUMEXP
             ? composite(c, terms + 16 + 4 * c->in[0]->largest, 2.5)
             : reduction_by(c, op, terms);
}

// With epsilon 0.1 what is divided by is at least 0.31: each of the roundings
// of mean, difference and square shows at most 3.2 times.
static bool norm(const case_t* c) {
  double m = 1 + largest_of(c);
  return composite(c, 3.2 * (reduced(c) + 8) * m * m, 0);
}

// Scores take one rounding a term, which show in the weights; their sum and
// that of the values take one a column.
static bool attention(const case_t* c) {
  const pestle_type_t *q = c->in[0]->value->type, *k = c->in[1]->value->type;
  double depth = (double)q->dims[q->rank - 1];
  double columns = (double)k->dims[k->rank - 2];
  return c->in[0]->largest <= 1 && c->in[1]->largest <= 1 &&
         c->in[2]->largest <= 1 &&
         composite(c, 2 * columns + 9 * depth + 24, 0);
}

// The same of the weights, which are multiplied by up to 2 width; sums over rows and
// columns take one a term. A device may take its own result where a row's weights and
// their cotangents are summed: what that is off shows |width| times in a row's sum, and
// that in each of a column's.
static bool attention_grad(const case_t* c) {
  const pestle_type_t *q = c->in[0]->value->type, *v = c->in[2]->value->type;
  double rows = (double)q->dims[q->rank - 2];
  double columns = (double)v->dims[v->rank - 2];
  double depth = (double)q->dims[q->rank - 1];
  double width = (double)v->dims[v->rank - 1];
  const value_t* y = c->in[3];
  if (c->special) return false;
  for (uint32_t i = 0; i < c->node->operand_count; ++i) {
    if (i != 3 && c->in[i]->radius > 0) return false;
    if (i < 5 && !(c->in[i]->largest <= 1 + c->in[i]->radius)) return false;
  }
  double off = y->radius;
  if (off > 0 && is_narrow(dtype_of(y))) off = ulp_at(dtype_of(y), 1);
  for (uint32_t i = 0; i < c->node->result_count; ++i) {
    value_t* out = c->out[i];
    if (out->special) return false;
    double near = 2 * (1 + width) *
                  (2 * (rows + columns) + 9 * (depth + width) + 24) *
                  unit_of(dtype_of(out)) * (1 + out->largest);
    if (i != 2) near += width * off * (i ? 2 * rows : 1);
    if (!rounded(c, out, near)) return false;
  }
  return true;
}

// Of an element n - 1 products are subtracted, and it is divided once, each rounded
// to the type. What is solved for is one over the diagonal in size, and so is what
// was rounded before it was divided by that.
static bool linear_algebra(const case_t* c, double size) {
  value_t* out = c->out[0];
  pestle_dtype_t dtype = dtype_of(out);
  const pestle_type_t* a = c->in[0]->value->type;
  double n = (double)a->dims[a->rank - 1];
  double u = is_narrow(dtype) ? roundoff(dtype) : unit_of(dtype);
  if (c->special || out->special || c->radius > 0) return false;
  if (n <= 1 && is_coarse(dtype)) return rounded(c, out, 0);
  out->radius = (2 * n - 1) * u * (size + out->largest) +
                (n > 1 ? 2 : 1) * ulp_at(dtype, out->largest);
  return true;
}

// Of a matrix with |d| on its diagonal and at most 1 beside it, whose condition is
// no more than this; forward and back again.
static double condition_of(double d, double n) {
  return (d + n - 1) / (d - n + 1);
}

static bool factorised(const case_t* c, double size) {
  value_t* out = c->out[0];
  const pestle_type_t* a = c->in[0]->value->type;
  double n = (double)a->dims[a->rank - 1], u = unit_of(dtype_of(out));
  double condition = condition_of(matrix_diagonal(dtype_of(out)), n);
  for (uint32_t i = 1; i < c->node->result_count; ++i)
    c->out[i]->radius = 0;
  if (c->special || out->special || c->radius > 0) return false;
  return rounded(c, out, (3 * n + 8) * u * condition * (size + out->largest));
}

// Of qr both factors are near, in the matrix's condition. Values of eigh and svd
// are within roundings of the matrix's size; their vectors are as near as values
// lie apart, which is not asked: no graph takes or returns them.
static bool factors(const case_t* c) {
  const pestle_node_t* node = c->node;
  const pestle_type_t* a = c->in[0]->value->type;
  double n = (double)a->dims[a->rank - 1], u = unit_of(dtype_of(c->in[0]));
  double condition = node->op == PESTLE_OP_QR ? condition_of(24, n) : 1;
  uint32_t values = node->op == PESTLE_OP_SVD;
  if (c->special || c->radius > 0) return false;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    value_t* out = c->out[i];
    if (out->special) return false;
    out->radius = 2 * (3 * n + 8) * u * condition * (1 + out->largest);
    if (node->op != PESTLE_OP_QR && i != values) out->radius = INFINITY;
  }
  return true;
}

// A transform of n points multiplies and adds a few times a factor of n, with
// factors of its own that are rounded, numbers of the size of sqrt(n).
static bool transform(const case_t* c) {
  value_t *x = c->in[0], *out = c->out[0];
  pestle_i64s_t lengths = PESTLE_NODE_I64S(c->node, fft_length);
  double points = product(lengths), u = unit_of(dtype_of(out));
  const char* kind = PESTLE_NODE_STR(c->node, fft_type);
  double scale = *kind == 'I' ? 1 / fmax(points, 1) : 1;
  out->radius = 0;
  if (count_of(out) == 0) return true;
  if (c->special || out->special) return false;
  out->radius = 6 * log2(2 * points) * u *
                    (scale * sqrt(points) * x->largest + out->largest) +
                scale * 2 * points * x->radius;
  if (has_zero(out, false)) out->radius = fmax(out->radius, EITHER_ZERO);
  return true;
}

// Sums of up to as many terms as a feature has, divided by deviations of 0.3 at
// least (epsilon is 0.125) and their cubes.
static bool batch_norm_sums(const case_t* c) {
  const pestle_type_t* x = c->in[0]->value->type;
  int64_t features = x->dims[PESTLE_NODE_I64(c->node, feature_index)];
  if (!pestle_type_count(x) || c->special || c->radius > 0) return false;
  double terms = (double)(pestle_type_count(x) / features);
  for (uint32_t i = 0; i < c->node->result_count; ++i) {
    value_t* out = c->out[i];
    pestle_dtype_t dtype = dtype_of(out);
    if (out->special) return false;
    double near = 60 * (1 + terms) * unit_of(dtype) * (1 + out->largest);
    if (!rounded(c, out, near)) return false;
  }
  return true;
}

// The same a row, and sums over the rows.
static bool norm_sums(const case_t* c) {
  const pestle_type_t* x = c->in[0]->value->type;
  double rows = 1, length = 1;
  for (int32_t d = 0; d < x->rank; ++d) {
    bool is_row = d < PESTLE_NODE_I64(c->node, dimension);
    *(is_row ? &rows : &length) *= (double)x->dims[d];
  }
  if (!pestle_type_count(x) || c->special || c->radius > 0) return false;
  for (uint32_t i = 0; i < c->node->result_count; ++i) {
    value_t* out = c->out[i];
    if (out->special || !(c->in[0]->largest <= 1)) return false;
    double u = unit_of(dtype_of(c->out[0]));
    double near = 60 * (1 + rows) * (length + 8) * u * (1 + out->largest);
    if (!rounded(c, out, near)) return false;
  }
  return true;
}

// k terms of weights of a few bits, less zero points that are as large.
static bool block_sums(const case_t* c) {
  const pestle_type_t* x = c->in[0]->value->type;
  value_t* out = c->out[0];
  double k = (double)x->dims[x->rank - 1];
  double most = ldexp(1, (int)PESTLE_NODE_I64(c->node, bits));
  if (c->special || c->radius > 0 || out->special) return false;
  if (c->node->operand_count > 3) most = fmax(most, c->in[3]->largest);
  double near = most * (k + 8) * unit_of(dtype_of(out)) * (1 + out->largest);
  return rounded(c, out, near);
}

static bool moves(const case_t* c) {
  for (uint32_t i = 0; i < c->node->result_count; ++i)
    c->out[i]->radius = has_floats(dtype_of(c->out[i])) ? c->radius : 0;
  return true;
}

static bool bits_only(const case_t* c) {
  for (uint32_t i = 0; i < c->node->result_count; ++i)
    c->out[i]->radius = 0;
  return c->radius == 0;
}

static bool structured(const case_t* c) {
  switch ((int)c->node->op) {
    case PESTLE_OP_CONVERT:
      return convert(c);
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_TRANSPOSE:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_REVERSE:
    case PESTLE_OP_PAD:
    case PESTLE_OP_CONCATENATE:
    case PESTLE_OP_DYNAMIC_SLICE:
    case PESTLE_OP_DYNAMIC_UPDATE_SLICE:
    case PESTLE_OP_GATHER:
    case PESTLE_OP_COMPLEX:
    case PESTLE_OP_REAL:
    case PESTLE_OP_IMAG:
      return moves(c);
    case PESTLE_OP_BITCAST_CONVERT:  // a NaN's bits are not said
      return !c->special && bits_only(c);
    case PESTLE_OP_REDUCE:
      return reduction(c, reduced(c));
    case PESTLE_OP_REDUCE_WINDOW:
      return reduction(
          c, product(PESTLE_NODE_I64S(c->node, window_dimensions)) + 1);
    case PESTLE_OP_DOT_GENERAL:
      return contraction(c, dot_terms(c));
    case PESTLE_OP_CONVOLUTION:
      // What 0 * inf in padding and between dilated elements makes is not said.
      return !(c->in[1]->special && is_padded(c->node)) &&
             contraction(c, conv_terms(c));
    case PESTLE_OP_SOFTMAX:
    case PESTLE_OP_LOG_SOFTMAX:
      return softmax(c);
    case PESTLE_OP_LAYER_NORM:
    case PESTLE_OP_RMS_NORM:
      return norm(c);
    // What cancels to little keeps the roundings of |x|.
    case PESTLE_OP_GELU:
    case PESTLE_OP_SILU:
    case PESTLE_OP_HARD_SIGMOID:
      return composite(c, 6 * (1 + largest_of(c)), 1.2);
    case PESTLE_OP_QUANTIZE:
    case PESTLE_OP_DEQUANTIZE:
      return composite(c, 4 * (1 + largest_of(c)), 0);
    case PESTLE_OP_BATCH_NORM_INFERENCE:
      return composite(c, 24 * (1 + largest_of(c)), 0);
    case PESTLE_OP_ATTENTION:
      return attention(c);
    case PESTLE_OP_ATTENTION_GRAD:
      return attention_grad(c);
    case PESTLE_OP_LOGSUMEXP:
      return softmax(c);
    case PESTLE_OP_CUMULATIVE:
      return running(c);
    case PESTLE_OP_QR:
    case PESTLE_OP_EIGH:
    case PESTLE_OP_SVD:
      return factors(c);
    case PESTLE_OP_LU:
      return factorised(c, 1);
    case PESTLE_OP_SOLVE:
    case PESTLE_OP_INVERSE:
      return factorised(c, 0);
    case PESTLE_OP_FFT:
      return transform(c);
    case PESTLE_OP_BLOCK_DOT:
      return block_sums(c);
    case PESTLE_OP_NORM_GRAD:
      return norm_sums(c);
    case PESTLE_OP_BATCH_NORM_TRAINING:
    case PESTLE_OP_BATCH_NORM_GRAD:
      return batch_norm_sums(c);
    case PESTLE_OP_CHOLESKY:
      return linear_algebra(c, 1);
    case PESTLE_OP_TRIANGULAR_SOLVE:
      return linear_algebra(c, 1 / (matrix_diagonal(dtype_of(c->out[0])) - 1));
    default:
      return bits_only(c);
  }
}

// A radius that is no longer small beside the values tells little of what is
// made of them.
static bool is_sharp(const value_t* v) {
  pestle_dtype_t dtype = dtype_of(v);
  if (v->radius <= EITHER_ZERO) return true;
  double part = is_narrow(dtype) ? fmax(8 * roundoff(dtype), 0.02) : 1e-3;
  return v->radius <= part * v->largest;
}

static bool has_subnormals(value_t* v) {
  const double* x = numbers(v);
  bool wide = pestle_dtype_part(dtype_of(v)) == PESTLE_F64;
  for (int64_t i = 0; x && i < number_count(v); ++i) {
    if (x[i] != 0 && fabs(x[i]) < (wide ? 0x1p-1022 : 0x1p-126)) return true;
  }
  return false;
}

bool judge(graph_t* g, const pestle_node_t* node, value_t* const* in,
           value_t* const* out) {
  case_t c = {.g = g, .node = node, .in = in, .out = out};
  bool known = node->operand_count > 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    c.radius = fmax(c.radius, in[i]->radius);
    c.special |= in[i]->special;
    known = known && in[i]->constant;
  }
  bool is_scalar = pestle_op_is_scalar((pestle_op_t)node->op);
  // Where NaNs come in an order by 'less' is not said.
  if (g->peer && node->op == PESTLE_OP_SORT && c.special) return false;
  // Of a NaN without mantissa bits XLA makes a NaN or an infinity.
  if (g->peer && node->op == PESTLE_OP_REDUCE_PRECISION && c.special)
    return false;
  // jaxlib's folder dies of integer quotients of constants by 0.
  bool quotient =
      node->op == PESTLE_OP_DIVIDE || node->op == PESTLE_OP_REMAINDER;
  if (g->peer && quotient && known && !has_floats(dtype_of(in[0])))
    return false;
  if (c.special && c.radius > 0) return false;
  bool planar =
      node->operand_count && is_complex(dtype_of(in[node->operand_count - 1]));
  if (is_scalar && planar) {
    if (!scalar_complex(&c)) return false;
  } else if (is_scalar && c.radius == 0) {
    if (!scalar_exact(&c)) return false;
  } else if (!(is_scalar ? scalar_near(&c) : structured(&c))) {
    return false;
  }
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)node->op);
  bool rough =
      info->flags & PESTLE_OP_FLAG_TRANS || info->fuse == PESTLE_FUSE_COMPOSITE;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    // XLA takes subnormal numbers for 0.
    if (g->peer && has_subnormals(out[i])) return false;
    if (g->peer && rough) out[i]->radius *= 5;  // 10 ulp for 2
    out[i]->constant = known;
    if (out[i]->radius > 0 && out[i]->special && c.radius > 0) return false;
    if (isinf(out[i]->radius)) continue;  // not said
    bool wide = out[i]->radius > fmax(out[i]->largest, EITHER_ZERO);
    if (wide && !(out[i]->steps > 0)) return false;
    out[i]->leaf = !is_sharp(out[i]);
  }
  return true;
}
