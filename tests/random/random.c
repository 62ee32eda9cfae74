// SPDX-License-Identifier: Apache-2.0
// Random numbers, values and inputs; adding an op to a graph.
#include "random/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

// --- Numbers ---

static uint64_t next_random(graph_t* g) {
  uint64_t z = g->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

uint32_t pick(graph_t* g, uint32_t count) {
  return count ? (uint32_t)((next_random(g) >> 32) * count >> 32) : 0;
}

bool one_in(graph_t* g, uint32_t n) {
  return pick(g, n) == 0;
}

bool is_float(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
}

bool is_int(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_INT);
}

bool is_narrow(pestle_dtype_t dtype) {
  return is_float(dtype) && pestle_dtype_size(dtype) < 4;
}

bool is_complex(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX);
}

bool has_floats(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX);
}

double roundoff(pestle_dtype_t dtype) {
  dtype = pestle_dtype_part(dtype);
  uint64_t one = pestle_float_encode(dtype, 1);
  return (pestle_float_decode(dtype, one + 1) - 1) / 2;
}

bool is_coarse(pestle_dtype_t dtype) {
  return is_float(dtype) && roundoff(dtype) >= 0.25;
}

bool is_positive(pestle_dtype_t dtype) {
  return is_float(dtype) &&
         isnan(pestle_float_decode(dtype, pestle_float_encode(dtype, -1)));
}

double ulp_at(pestle_dtype_t dtype, double x) {
  dtype = pestle_dtype_part(dtype);
  double least = pestle_float_decode(dtype, 1);
  if (x == 0 || !isfinite(x)) return least;
  int exponent;
  (void)frexp(x, &exponent);
  return fmax(least, ldexp(roundoff(dtype), exponent));
}

pestle_type_t type_of(pestle_dtype_t dtype, int32_t rank, const int64_t* dims) {
  return pestle_type_make(dtype, rank, dims);
}

pestle_type_t scalar_of(pestle_dtype_t dtype) {
  return pestle_type_make(dtype, 0, NULL);
}

static bool has_reciprocal(pestle_dtype_t dtype, double x) {
  return x <= pestle_float_max(dtype) && 4 * ulp_at(dtype, 1 / x) <= 1 / x;
}

double matrix_diagonal(pestle_dtype_t dtype) {
  double x = 24;
  for (double next = 16; x > 1 && !has_reciprocal(dtype, x); next /= 2)
    x = next;
  return x;
}

int64_t count_of(const value_t* v) {
  return pestle_type_count(v->value->type);
}

int64_t number_count(const value_t* v) {
  return count_of(v) * (is_complex(v->value->type->dtype) ? 2 : 1);
}

const double* numbers(value_t* v) {
  pestle_dtype_t dtype = v->value->type->dtype;
  if (v->wide || !has_floats(dtype)) return v->wide;
  dtype = pestle_dtype_part(dtype);
  size_t n = (size_t)number_count(v), size = pestle_dtype_size(dtype);
  v->wide = malloc((n + 1) * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    uint64_t bits = 0;
    memcpy(&bits, (const char*)v->data + i * size, size);
    v->wide[i] = pestle_float_decode(dtype, bits);
  }
  return v->wide;
}

void note_range(value_t* v) {
  const double* x = numbers(v);
  if (!x) return;
  int64_t n = number_count(v);
  v->largest = 0;
  v->special = false;
  for (int64_t i = 0; i < n; ++i) {
    if (!isfinite(x[i]))
      v->special = true;
    else if (fabs(x[i]) > v->largest)
      v->largest = fabs(x[i]);
  }
}

// --- Types ---

static bool left_out[PESTLE_DTYPE_COUNT];

void leave_out_dtype(pestle_dtype_t dtype) {
  left_out[dtype] = true;
}

bool is_generated(pestle_dtype_t dtype) {
  return pestle_dtype_is_stored(dtype) && !left_out[dtype];
}

pestle_dtype_t pick_any_dtype(graph_t* g) {
  for (;;) {
    pestle_dtype_t dtype =
        (pestle_dtype_t)(1 + pick(g, PESTLE_DTYPE_COUNT - 1));
    if (is_generated(dtype)) return dtype;
  }
}

pestle_dtype_t pick_dtype(graph_t* g, unsigned kinds) {
  pestle_dtype_t fits[PESTLE_DTYPE_COUNT];
  uint32_t n = 0;
  for (int i = 0; i < PALETTE; ++i) {
    if (pestle_dtype_is(g->palette[i], kinds)) fits[n++] = g->palette[i];
  }
  if (n && !one_in(g, 16)) return fits[pick(g, n)];
  n = 0;
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!is_generated((pestle_dtype_t)d)) continue;
    if (pestle_dtype_is((pestle_dtype_t)d, kinds))
      fits[n++] = (pestle_dtype_t)d;
  }
  return n ? fits[pick(g, n)] : PESTLE_NONE;
}

pestle_type_t pick_shape(graph_t* g, pestle_dtype_t dtype) {
  pestle_type_t type = g->shapes[one_in(g, 3) ? pick(g, 3) : 0];
  type.dtype = dtype;
  return type;
}

// --- Values ---

value_t* make_value(graph_t* g, pestle_value_t* value) {
  value_t* v = calloc(1, sizeof(*v));
  v->value = value;
  v->data = calloc(pestle_type_bytes(value->type) + 16, 1);
  v->next = g->all;
  g->all = v;
  value->scratch = (uintptr_t)v;
  return v;
}

void keep(graph_t* g, value_t* v) {
  if (g->count < MAX_VALUES) g->values[g->count++] = v;
}

// Of a type without zeros and negative numbers: no NaN among those that ops take.
static double positive(double unit, fill_t fill) {
  switch (fill) {
    case FILL_UNIT:
      return ldexp(1, -(int)(unit * 4));
    case FILL_SCALE:
      return unit + 0.5;
    case FILL_GRID:
    case FILL_INDEX:
    case FILL_EDGES:
      break;
  }
  return ldexp(1, (int)(unit * 5) - 2);
}

static uint64_t float_bits(graph_t* g, pestle_dtype_t dtype, fill_t fill) {
  double unit = (double)(next_random(g) >> 11) / 9007199254740992.0;
  if (is_positive(dtype) && fill != FILL_EDGES)
    return pestle_float_encode(dtype, positive(unit, fill));
  switch (fill) {
    case FILL_UNIT:
      return pestle_float_encode(dtype, unit * 2 - 1);
    case FILL_SCALE:
      return pestle_float_encode(dtype, unit + 0.5);
    case FILL_GRID:
    case FILL_INDEX:
      return pestle_float_encode(dtype, ((double)pick(g, 33) - 16) / 4);
    case FILL_EDGES:
      break;
  }
  static const double edges[] = {
      0,     -0.0, 1,   -1,   INFINITY, -INFINITY, NAN,  0.5,  2.5,   -3.5,
      127.5, 300,  7e4, -2e9, 3e9,      1e19,      -1e6, 1e-8, 1e-40, 255.5};
  if (one_in(g, 3)) {
    double edge = edges[pick(g, sizeof(edges) / sizeof(edges[0]))];
    // XLA takes subnormal numbers for 0.
    if (g->peer && edge == 1e-40) edge = 1;
    return pestle_float_encode(dtype, edge);
  }
  return pestle_float_encode(dtype, unit * 200 - 100);
}

static uint64_t int_bits(graph_t* g, pestle_dtype_t dtype, fill_t fill,
                         int64_t limit) {
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  uint64_t bits = next_random(g);
  if (info->bits == 1) return bits & 1;
  bool has_sign = info->kind == PESTLE_KIND_SIGNED;
  if (fill == FILL_INDEX) {
    uint64_t span = (uint64_t)(limit < 0 ? 0 : limit) + (has_sign ? 5 : 3);
    bits = (bits >> 8) % span - (has_sign ? 2 : 0);
  } else if (fill == FILL_EDGES) {
    if (bits % 5 == 0) bits = (uint64_t)(bits & 8 ? 0 : -1) << (bits >> 9 & 63);
  } else {
    bits = (bits >> 8) % 19 - (has_sign ? 9 : 0);
  }
  if (pestle_dtype_is_sub_byte(dtype)) {
    bits = pestle_dtype_extend(dtype, (uint8_t)bits);
  }
  return bits;
}

static void fill_data(graph_t* g, const pestle_type_t* type, fill_t fill,
                      int64_t limit, void* data) {
  pestle_dtype_t dtype = pestle_dtype_part(type->dtype);
  size_t n = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(dtype);
  if (is_complex(type->dtype)) n *= 2;
  for (size_t i = 0; i < n; ++i) {
    uint64_t bits = is_float(dtype) ? float_bits(g, dtype, fill)
                                    : int_bits(g, dtype, fill, limit);
    memcpy((char*)data + i * size, &bits, size);
  }
}

void expect(graph_t* g, pestle_status_t status) {
  if (!status) return;
  char text[2048];
  pestle_status_format(status, text, sizeof(text));
  printf("seed %llu: the generator built what is refused: %s\n",
         (unsigned long long)g->seed, text);
  fflush(stdout);
  pestle_status_release(status);
  exit(3);
}

static value_t* constant_of(graph_t* g, pestle_type_t type, const void* data,
                            bool is_splat) {
  size_t n = is_splat ? 1 : (size_t)pestle_type_count(&type);
  size_t size = pestle_dtype_size(type.dtype);
  pestle_constant_attrs_t attrs = {sizeof(attrs),
                                   {type, data, n * size, is_splat}};
  pestle_value_t* out;
  expect(g, pestle_op_constant(&g->b, &attrs, &out));
  value_t* v = make_value(g, out);
  size_t count = (size_t)pestle_type_count(&type);
  for (size_t i = 0; i < count; ++i) {
    memcpy((char*)v->data + i * size,
           (const char*)data + (is_splat ? 0 : i * size), size);
  }
  note_range(v);
  v->constant = true;
  v->leaf = v->special;
  keep(g, v);
  if (g->counts) ++g->counts->by_op[PESTLE_OP_CONSTANT][type.dtype];
  return v;
}

value_t* constant(graph_t* g, pestle_type_t type, fill_t fill) {
  void* data = calloc(pestle_type_bytes(&type) + 16, 1);
  fill_data(g, &type, fill, 9, data);
  value_t* v = constant_of(g, type, data, false);
  free(data);
  return v;
}

uint64_t splat_bits(pestle_dtype_t dtype, double number) {
  dtype = pestle_dtype_part(dtype);
  if (is_float(dtype)) return pestle_float_encode(dtype, number);
  uint64_t bits = (uint64_t)(int64_t)number;
  if (dtype == PESTLE_I1) bits &= 1;
  if (pestle_dtype_is_sub_byte(dtype)) {
    bits = pestle_dtype_extend(dtype, (uint8_t)bits);
  }
  return bits;
}

value_t* splat(graph_t* g, pestle_type_t type, double number) {
  uint64_t bits[2] = {splat_bits(type.dtype, number), 0};
  return constant_of(g, type, bits, true);
}

value_t* fresh(graph_t* g, pestle_type_t type, fill_t fill, int64_t limit) {
  if (g->closed || g->input_count == MAX_INPUTS) return constant(g, type, fill);
  pestle_value_t* out;
  expect(g, pestle_block_add_argument(g->module, g->function->body->block,
                                      &type, &out));
  value_t* v = make_value(g, out);
  fill_data(g, &type, fill, limit, v->data);
  note_range(v);
  v->leaf = v->special && one_in(g, 2);
  g->inputs[g->input_count++] = v;
  keep(g, v);
  return v;
}

static fill_t pick_fill(graph_t* g, pestle_dtype_t dtype) {
  uint32_t k = pick(g, 16);
  if (!has_floats(dtype)) return k < 5 ? FILL_EDGES : FILL_GRID;
  return k == 0  ? FILL_EDGES
         : k < 5 ? FILL_UNIT
         : k < 7 ? FILL_SCALE
                 : FILL_GRID;
}

static bool fits(const value_t* v, pestle_dtype_t dtype, bool exact,
                 int32_t rank) {
  return v && !v->leaf && v->value->type->dtype == dtype &&
         v->value->type->rank >= rank && !(exact && v->radius > 0);
}

// A later value oftener, so that chains grow long.
static value_t* pick_value(graph_t* g) {
  size_t n = g->count - g->first;
  if (!n) return NULL;
  uint32_t back = pick(g, 3) ? pick(g, 8) : pick(g, (uint32_t)n);
  return back < n ? g->values[g->count - 1 - back] : g->values[g->first];
}

value_t* any_of(graph_t* g, pestle_dtype_t dtype, bool exact, int32_t rank) {
  for (int tries = 0; tries < 24; ++tries) {
    value_t* v = pick_value(g);
    if (fits(v, dtype, exact, rank)) return v;
  }
  for (size_t i = g->count; i > g->first; --i) {
    value_t* v = g->values[i - 1];
    if (fits(v, dtype, exact, rank)) return v;
  }
  pestle_type_t type = pick_shape(g, dtype);
  while (type.rank < rank)
    type.dims[type.rank++] = 1 + pick(g, 4);
  return fresh(g, type, pick_fill(g, dtype), 9);
}

value_t* of_type(graph_t* g, const pestle_type_t* type, bool exact) {
  value_t* found[8];
  uint32_t n = 0;
  for (size_t i = g->count; i > g->first && n < 8; --i) {
    value_t* v = g->values[i - 1];
    if (fits(v, type->dtype, exact, 0) &&
        pestle_type_equal(v->value->type, type)) {
      found[n++] = v;
    }
  }
  return n ? found[pick(g, n)] : NULL;
}

// |type| from a scalar or from some of its axes.
static value_t* broadcast_to(graph_t* g, const pestle_type_t* type) {
  int64_t dims[PESTLE_MAX_RANK], axes[PESTLE_MAX_RANK];
  int32_t rank = 0;
  for (int32_t i = 0; i < type->rank; ++i) {
    if (one_in(g, 2)) continue;
    dims[rank] = one_in(g, 5) ? 1 : type->dims[i];
    axes[rank++] = i;
  }
  pestle_type_t small = type_of(type->dtype, rank, dims);
  value_t* x = of_type(g, &small, false);
  if (!x) {
    fill_t fill = pick_fill(g, type->dtype);
    x = one_in(g, 2) ? constant(g, small, fill) : fresh(g, small, fill, 9);
  }
  spec_t s = SPEC(BROADCAST_IN_DIM);
  spec_operand(&s, x);
  spec_i64s(&s, PESTLE_ATTR_broadcast_dimensions, axes, rank);
  s.type = *type;
  s.typed = true;
  return add(g, &s, NULL);
}

static value_t* converted_to(graph_t* g, const pestle_type_t* type,
                             bool exact) {
  for (int tries = 0; tries < 12; ++tries) {
    value_t* v = pick_value(g);
    if (!v || v->leaf || (exact && v->radius > 0)) continue;
    pestle_type_t from = *v->value->type;
    if (from.dtype == type->dtype) continue;
    from.dtype = type->dtype;
    if (!pestle_type_equal(&from, type)) continue;
    spec_t s = SPEC(CONVERT);
    spec_operand(&s, v);
    s.type = *type;
    s.typed = true;
    value_t* out = add(g, &s, NULL);
    if (out && !out->leaf && !(exact && out->radius > 0)) return out;
  }
  return NULL;
}

value_t* partner(graph_t* g, const pestle_type_t* type, bool exact) {
  uint32_t how = pick(g, 8);
  value_t* v = NULL;
  if (how < 5) v = of_type(g, type, exact);
  if (!v && how == 5) v = broadcast_to(g, type);
  if (!v && how < 7) v = converted_to(g, type, exact);
  if (v && !v->leaf && !(exact && v->radius > 0)) return v;
  fill_t fill = pick_fill(g, type->dtype);
  if (one_in(g, 3)) {
    static const double small[] = {0, 1, 2, 0.5, -1, 3, 0.25, -2};
    return splat(g, *type, small[pick(g, 8)]);
  }
  return one_in(g, 6) && pestle_type_count(type) < 200
             ? constant(g, *type, fill)
             : fresh(g, *type, fill, 9);
}

// --- Ops ---

void spec_operand(spec_t* s, value_t* v) {
  s->operands[s->operand_count++] = v;
}

static pestle_attr_t* spec_attr(spec_t* s, pestle_attr_name_t name,
                                pestle_attr_kind_t kind) {
  pestle_attr_t* a = &s->attrs[s->attr_count++];
  *a = (pestle_attr_t){.name = (uint16_t)name, .kind = (uint16_t)kind};
  return a;
}

void spec_i64(spec_t* s, pestle_attr_name_t name, int64_t value) {
  spec_attr(s, name, PESTLE_ATTR_KIND_I64)->as.i64 = value;
}

void spec_f64(spec_t* s, pestle_attr_name_t name, double value) {
  spec_attr(s, name, PESTLE_ATTR_KIND_F64)->as.f64 = value;
}

void spec_bool(spec_t* s, pestle_attr_name_t name, bool value) {
  spec_attr(s, name, PESTLE_ATTR_KIND_BOOL)->as.b = value;
}

void spec_str(spec_t* s, pestle_attr_name_t name, const char* value) {
  spec_attr(s, name, PESTLE_ATTR_KIND_STR)->as.str = value;
}

void spec_type(spec_t* s, pestle_attr_name_t name, pestle_type_t type) {
  s->attr_type = type;
  spec_attr(s, name, PESTLE_ATTR_KIND_TYPE)->as.type = &s->attr_type;
}

void spec_i64s(spec_t* s, pestle_attr_name_t name, const int64_t* data,
               int32_t count) {
  spec_attr(s, name, PESTLE_ATTR_KIND_I64S)->as.i64s =
      (pestle_i64s_t){data, (size_t)count};
}

// Results that are too large for what comes after are returned only.
static double range_of(pestle_dtype_t dtype) {
  dtype = pestle_dtype_part(dtype);
  if (dtype == PESTLE_F32 || dtype == PESTLE_F64 || dtype == PESTLE_BF16)
    return 1e6;
  return dtype == PESTLE_F16 ? 2000 : 64;
}

static void settle(graph_t* g, value_t* v) {
  pestle_dtype_t dtype = v->value->type->dtype;
  if (has_floats(dtype) && (v->special || v->largest > range_of(dtype)))
    v->leaf = true;
  if (isfinite(v->radius)) keep(g, v);
}

value_t* add(graph_t* g, const spec_t* spec, value_t** results) {
  pestle_value_t* operands[MAX_OPERANDS];
  for (size_t i = 0; i < spec->operand_count; ++i) {
    if (!spec->operands[i]) return NULL;
    operands[i] = spec->operands[i]->value;
  }
  pestle_node_spec_t node_spec = {.op = spec->op,
                                  .operands = operands,
                                  .operand_count = spec->operand_count,
                                  .attrs = spec->attrs,
                                  .attr_count = spec->attr_count,
                                  .regions = spec->regions,
                                  .region_count = spec->region_count,
                                  .type = spec->typed ? &spec->type : NULL};
  pestle_node_t* node;
  expect(g, pestle_node_create(&g->b, &node_spec, &node));
  value_t* out[MAX_OPERANDS] = {0};
  bool fine = node->result_count <= MAX_OPERANDS;
  for (uint32_t i = 0; fine && i < node->result_count; ++i)
    fine = pestle_type_count(node->results[i].type) <= 4 * g->limit;
  if (fine && spec->given[0]) {
    for (uint32_t i = 0; i < node->result_count; ++i) {
      out[i] = make_value(g, &node->results[i]);
      copy_value(out[i], spec->given[i]);
    }
  } else {
    fine = fine && evaluate(g, node, spec->operands, out) &&
           judge(g, node, spec->operands, out);
  }
  if (!fine) {
    pestle_node_erase(node);
    return NULL;
  }
  // What an index, a flag or a counter stands beside is the data that it moves.
  bool control = spec->op == PESTLE_OP_SELECT || spec->op == PESTLE_OP_IF ||
                 spec->op == PESTLE_OP_CASE;
  bool second =
      spec->op == PESTLE_OP_WHILE || spec->op == PESTLE_OP_RNG_BIT_GENERATOR;
  const pestle_value_t* data = second ? &node->results[1]
                               : control || !node->operand_count
                                   ? &node->results[0]
                                   : operands[0];
  pestle_dtype_t dtype = data->type->dtype;
  if (g->counts) ++g->counts->by_op[spec->op][dtype];
  ++g->ops;
  for (size_t i = 0; i < spec->operand_count; ++i)
    ++spec->operands[i]->uses;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    settle(g, out[i]);
    if (results) results[i] = out[i];
  }
  return isfinite(out[0]->radius) ? out[0] : out[1];
}
