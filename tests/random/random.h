// SPDX-License-Identifier: Apache-2.0
// Random valid graphs over every row of the op tables, and the bounds that the
// results of a target must keep.
//
// A graph grows op by op. Each op is evaluated at once by ir/ref on the graph's
// inputs, and beside its value stands a radius: how far any element of a right
// target's result may be from it. A radius follows from the op's row alone,
// never from what a target was seen to do:
//
//   - Integers, booleans and what only moves elements: 0, the same bits.
//   - A float op without TRANS on operands of radius 0 is correctly rounded: 0.
//     TRANS ones are as many ulp off as ir/accuracy.def says, those on complex
//     numbers as many roundoffs of the number's size as ir/complex.def does.
//   - A sum of n terms of which all partial sums are exact in f32 (f64): 0, in
//     any order. Else n roundings of the sum of the terms' sizes. A start of 0 may
//     be left out of it: the sign of a zero is not said where a term is -0. Nor
//     is what a convolution's padding makes of weights that are not finite.
//   - Numerics other than strict may contract a product into the sum that takes
//     it: half an ulp of the product.
//   - What a composite makes in f32 is rounded once to a type as coarse as
//     f4E2M1FN: to that number or to its neighbour.
//   - An operand's radius is carried on by what the op's derivative can make of
//     it, and one ulp for the two roundings. Where that is not known, or where
//     the op jumps (comparisons, roundings, sorts) and the operands are nearer
//     to the jump than their radius, the op is not taken into the graph.
//
// So there is no step on which a comparison may fall either way, and no
// tolerance that is chosen. Results that grow past their type's range or are
// not finite are returned, but no op takes them.
#ifndef PESTLE_TESTS_RANDOM_RANDOM_H_
#define PESTLE_TESTS_RANDOM_RANDOM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/graph.h"
#include "pestle/pestle.h"

typedef struct value_t {
  pestle_value_t* value;
  void* data;     // what ir/ref makes of it
  double* wide;   // floats of |data|, or parts, made when first asked for
  double radius;  // of each element, or part, of a right result around |data|
  // Not 0: elements are within |near| and so many of their own type's steps, which
  // says more than |radius| where a step is as large as the number.
  double steps, near;
  double largest;  // magnitude of a finite element
  bool special;    // some element is not finite
  bool leaf;       // to be returned only
  bool constant;   // known when it is compiled
  uint32_t uses;
  struct value_t* next;  // of all that the graph owns
} value_t;

enum {
  MAX_VALUES = 1024,
  MAX_INPUTS = 128,
  MAX_OUTPUTS = 24,
  MAX_OPERANDS = 24,
  PALETTE = 3,
};

typedef struct counts_t {
  uint64_t by_op[PESTLE_OP_COUNT][PESTLE_DTYPE_COUNT];
  uint64_t graphs, ops, long_graphs;
  uint64_t sizes[512];  // graphs by their number of ops
} counts_t;

typedef struct graph_t {
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_function_t* function;
  pestle_builder_t b;
  uint64_t seed, random;
  pestle_numerics_t numerics;
  bool no_fuse;
  value_t* values[MAX_VALUES];  // in sight: [first, count)
  size_t first, count;
  value_t* inputs[MAX_INPUTS];
  size_t input_count;
  value_t* outputs[MAX_OUTPUTS];
  size_t output_count;
  value_t* all;
  pestle_dtype_t palette[PALETTE];
  pestle_type_t shapes[3];  // of inputs; dtypes do not count
  int64_t limit;            // elements that a value may have
  uint32_t ops, wanted;
  int depth;         // of regions
  bool closed;       // inside a function or fusion: nothing is captured
  bool flat;         // no control flow inside this body
  bool elementwise;  // nor anything but elementwise ops
  uint32_t functions;
  counts_t* counts;  // or NULL
  bool broken;       // an op that the generator built was refused
  bool peer;         // for another compiler: see graph_make()
} graph_t;

// What inputs hold.
typedef enum fill_t {
  FILL_GRID,   // few bits, so that sums are exact
  FILL_UNIT,   // floats in [-1, 1]
  FILL_SCALE,  // floats in [0.5, 1.5]
  FILL_EDGES,  // any bits, NaNs, infinities, ...
  FILL_INDEX,  // integers from -2 to a little above a limit
} fill_t;

// --- random.c: numbers and values ---

uint32_t pick(graph_t* g, uint32_t count);
// True one time in |n|.
bool one_in(graph_t* g, uint32_t n);
bool is_float(pestle_dtype_t dtype);
bool is_int(pestle_dtype_t dtype);
bool is_narrow(pestle_dtype_t dtype);
bool is_complex(pestle_dtype_t dtype);
// Whether elements are floats or pairs of them.
bool has_floats(pestle_dtype_t dtype);
// Of numbers of that dtype, or of their parts.
double roundoff(pestle_dtype_t dtype);
// Whether a step is a quarter of a number and more: f4E2M1FN, f8E8M0FNU.
bool is_coarse(pestle_dtype_t dtype);
// Whether floats of |dtype| are all above 0: f8E8M0FNU.
bool is_positive(pestle_dtype_t dtype);
// What well conditioned matrices have on their diagonal, and at most 1 beside it:
// its reciprocal is a number of |dtype| too. 1 where there is no such number.
double matrix_diagonal(pestle_dtype_t dtype);
// The step of |dtype| at |x|.
double ulp_at(pestle_dtype_t dtype, double x);
int64_t count_of(const value_t* v);
// Floats, or parts of complex numbers; NULL of others.
const double* numbers(value_t* v);
int64_t number_count(const value_t* v);

pestle_type_t type_of(pestle_dtype_t dtype, int32_t rank, const int64_t* dims);
pestle_type_t scalar_of(pestle_dtype_t dtype);
// A dtype of |kinds|: of the graph's own if one fits. NONE if none does.
pestle_dtype_t pick_dtype(graph_t* g, unsigned kinds);
// Whether graphs have tensors of |dtype|, which no graph has once it is left out.
bool is_generated(pestle_dtype_t dtype);
void leave_out_dtype(pestle_dtype_t dtype);
// Any that tensors may have.
pestle_dtype_t pick_any_dtype(graph_t* g);
pestle_type_t pick_shape(graph_t* g, pestle_dtype_t dtype);

value_t* make_value(graph_t* g, pestle_value_t* value);
void keep(graph_t* g, value_t* v);
// An argument of the entry, or a constant where none can be captured.
value_t* fresh(graph_t* g, pestle_type_t type, fill_t fill, int64_t limit);
value_t* constant(graph_t* g, pestle_type_t type, fill_t fill);
value_t* splat(graph_t* g, pestle_type_t type, double number);
// An element of |number|, or its real part.
uint64_t splat_bits(pestle_dtype_t dtype, double number);
// A value of |dtype| in sight or a new one; |exact|: of radius 0; its rank is
// at least |rank|.
value_t* any_of(graph_t* g, pestle_dtype_t dtype, bool exact, int32_t rank);
// One of exactly |type|.
value_t* of_type(graph_t* g, const pestle_type_t* type, bool exact);
// One of |type| that is made by an op if need be: broadcast, converted.
value_t* partner(graph_t* g, const pestle_type_t* type, bool exact);

typedef struct spec_t {
  pestle_op_t op;
  value_t* operands[MAX_OPERANDS];
  size_t operand_count;
  pestle_attr_t attrs[20];
  size_t attr_count;
  pestle_region_t* regions[8];
  size_t region_count;
  pestle_type_t type;  // of TYPED ops
  pestle_type_t attr_type;
  bool typed;
  value_t* given[MAX_OPERANDS];  // what the results of ops with bodies are
} spec_t;

#define SPEC(NAME) {.op = PESTLE_OP_##NAME}
void spec_operand(spec_t* s, value_t* v);
void spec_i64(spec_t* s, pestle_attr_name_t name, int64_t value);
void spec_f64(spec_t* s, pestle_attr_name_t name, double value);
void spec_bool(spec_t* s, pestle_attr_name_t name, bool value);
void spec_str(spec_t* s, pestle_attr_name_t name, const char* value);
void spec_type(spec_t* s, pestle_attr_name_t name, pestle_type_t type);
void spec_i64s(spec_t* s, pestle_attr_name_t name, const int64_t* data,
               int32_t count);
// Builds the op, evaluates and judges it. Its first result that is said, and all in
// |results| if not NULL; NULL where it is ill-conditioned and was taken out.
value_t* add(graph_t* g, const spec_t* spec, value_t** results);
// Ends a generator that has built what Pestle refuses.
void expect(graph_t* g, pestle_status_t status);

// --- judge.c ---

// Sets the radius of each of |out|, whose data is there. False: the op is
// ill-conditioned on these operands.
bool judge(graph_t* g, const pestle_node_t* node, value_t* const* in,
           value_t* const* out);
// Evaluates |node| on |in| into |out|, which are made.
bool evaluate(graph_t* g, const pestle_node_t* node, value_t* const* in,
              value_t** out);
// |out| is what |from| is.
void copy_value(value_t* out, const value_t* from);
void note_range(value_t* v);

// --- rows*.c: one function for each structured op ---

typedef struct row_t {
  pestle_op_t op;
  unsigned kinds;
  uint64_t without;  // dtypes of |kinds| that it does not take
  value_t* (*build)(graph_t* g, pestle_dtype_t dtype);
} row_t;
extern const row_t structured_rows[];
extern const size_t structured_row_count;
value_t* build_scalar(graph_t* g, pestle_op_t op, pestle_dtype_t dtype);
// Regions of reduction bodies.
pestle_region_t* reduce_region(graph_t* g, pestle_op_t op,
                               pestle_dtype_t dtype);
pestle_value_t* raw(graph_t* g, pestle_builder_t* b, pestle_op_t op,
                    pestle_value_t* x, pestle_value_t* y, pestle_value_t* z);
pestle_value_t* raw_splat(graph_t* g, pestle_builder_t* b, pestle_dtype_t dtype,
                          double number);
pestle_region_t* raw_region(graph_t* g, const pestle_type_t* types,
                            size_t count, pestle_builder_t* out_inside);
void raw_return(graph_t* g, pestle_builder_t* b, pestle_value_t* const* values,
                size_t count);

#define DECLARE_ROW(op) value_t* row_##op(graph_t* g, pestle_dtype_t dtype)
#define PESTLE_OP_BEGIN(NAME, op, ...) DECLARE_ROW(op);
#include "pestle/ops.def"

// Adds |count| ops at the builder's place.
void grow(graph_t* g, uint32_t count);
// The graph of |seed|; NULL when the generator is wrong (it says why).
// |for_peer|: with radii for XLA, whose approximations are within 8 ulp where a
// row says 2 (the worst seen: tan of f32, 6), and that contracts always.
graph_t* graph_make(pestle_context_t* context, uint64_t seed, counts_t* counts,
                    bool for_peer);
// No graph has |op| on |dtype| from now on; NONE: on any.
void leave_out(pestle_op_t op, pestle_dtype_t dtype);
void graph_free(graph_t* g);

// --- run.c ---

typedef enum outcome_t { SAME, DIFFERENT, REFUSED } outcome_t;
// Compiles and runs |g| on |device| and compares; |text| says what is wrong.
outcome_t run_graph(graph_t* g, pestle_device_t* device, const char* cpu,
                    char* text, size_t size);

// --- derive.c ---

// Differentiates and batches |g| and holds what comes of it against what it must be;
// |text| says what is wrong.
outcome_t derive_graph(graph_t* g, char* text, size_t size);

// --- peer.c ---

// SEED.mlir, StableHLO alone, SEED.txt, which says what SEED.bin holds: a line an
// input, an output (dtype, extents, where, radius, op) and an op. What |g| was
// is gone.
void write_for_peer(graph_t* g, const char* folder);

#endif  // PESTLE_TESTS_RANDOM_RANDOM_H_
