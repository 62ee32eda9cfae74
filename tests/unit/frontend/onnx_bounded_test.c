// SPDX-License-Identifier: Apache-2.0
// Extents that only a run tells: what ops make of them and pass on, and which
// are refused. Elements behind the real ones are never part of a result.
#include <math.h>

#include "onnx_test.h"

enum { COUNT = 7 };

// Starts a model of x [7] and the positions of its non-zero elements as a
// column, "at" [7, 1] with a real extent in front.
static pb_t positions(void) {
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "7");
  onnx_node(&g, "NonZero", "nz", "x", "row", NULL);
  onnx_node(&g, "Transpose", "t", "row", "at", NULL);
  return g;
}

// Appends the chosen elements, "y" [7].
static pb_t chosen(void) {
  pb_t g = positions();
  onnx_node(&g, "GatherND", "g", "x,at", "y", NULL);
  return g;
}

static const float inputs[][COUNT] = {
    {0, 2, 0, -3, 5, 0, 0.5f},
    {0, 0, 0, 0, 0, 0, 0},
    {1, -2, 3, -4, 5, -6, 7},
    {0, 0, 0, 0, 0, 0, -9},
};

static void gives_the_chosen(void** state) {
  (void)state;
  for (size_t n = 0; n < sizeof(inputs) / sizeof(inputs[0]); ++n) {
    pb_t g = chosen();
    onnx_node(&g, "Abs", "abs", "y", "z", NULL);
    onnx_node(&g, "Shape", "s", "z", "shape", NULL);
    onnx_output(&g, "z");
    onnx_output(&g, "shape");
    pb_t model = onnx_model(13, &g);
    float z[COUNT];
    int64_t shape[1], extent[1], found = 0;
    onnx_run(&model, (const void*[]){inputs[n]}, (void*[]){z, shape, extent});
    for (int i = 0; i < COUNT; ++i) {
      if (inputs[n][i] != 0) assert_true(z[found++] == fabsf(inputs[n][i]));
    }
    assert_int_equal(extent[0], found);
    assert_int_equal(shape[0], found);
  }
}

// |op| over the chosen, without an axis left.
static double reduced(const char* op, const float* x) {
  pb_t g = chosen(), attrs = {0};
  onnx_attr_int(&attrs, "keepdims", 0);
  onnx_node(&g, op, "fold", "y", "z", &attrs);
  onnx_output(&g, "z");
  pb_t model = onnx_model(13, &g);
  float z;
  onnx_run(&model, (const void*[]){x}, (void*[]){&z});
  return (double)z;
}

static void reduces_the_real_ones(void** state) {
  (void)state;
  for (size_t n = 0; n < sizeof(inputs) / sizeof(inputs[0]); ++n) {
    double sum = 0, product = 1, most = -INFINITY, least = INFINITY, count = 0;
    double squares = 0, exponentials = 0;
    for (int i = 0; i < COUNT; ++i) {
      double x = (double)inputs[n][i];
      if (x == 0) continue;
      ++count;
      sum += x;
      product *= x;
      most = fmax(most, x);
      least = fmin(least, x);
      squares += x * x;
      exponentials += exp(x);
    }
    const float* x = inputs[n];
    assert_float_equal(reduced("ReduceSum", x), sum, 1e-5);
    assert_float_equal(reduced("ReduceProd", x), product, 1e-2);
    assert_true(reduced("ReduceMax", x) == most);
    assert_true(reduced("ReduceMin", x) == least);
    assert_float_equal(reduced("ReduceSumSquare", x), squares, 1e-3);
    assert_float_equal(reduced("ReduceL2", x), sqrt(squares), 1e-4);
    if (count != 0) {
      assert_float_equal((float)reduced("ReduceMean", x), (float)(sum / count),
                         1e-5);
      assert_float_equal(reduced("ReduceLogSumExp", x), log(exponentials),
                         1e-4);
    }
  }
}

// The first and the last place of the least element: ties with what lies behind
// the real ones, which is element 0 again, do not count.
static void finds_places(void** state) {
  (void)state;
  for (int64_t last = 0; last < 2; ++last) {
    pb_t g = chosen(), attrs = {0};
    onnx_attr_int(&attrs, "keepdims", 0);
    onnx_attr_int(&attrs, "select_last_index", last);
    onnx_node(&g, "ArgMin", "fold", "y", "z", &attrs);
    onnx_output(&g, "z");
    pb_t model = onnx_model(13, &g);
    const float x[COUNT] = {-1, 0, -1, 4, 0, 0, 2};
    int64_t z;
    onnx_run(&model, (const void*[]){x}, (void*[]){&z});
    assert_int_equal(z, last);
  }
}

// x[x != 0] = x * 10, and + 100 to element 0, which stands behind the real ones.
static void scatters_the_real_ones(void** state) {
  (void)state;
  pb_t g = chosen(), attrs = {0};
  float ten = 10;
  onnx_floats(&g, "ten", 0, NULL, &ten);
  onnx_node(&g, "Mul", "m", "y,ten", "tenfold", NULL);
  onnx_attr_text(&attrs, "reduction", "add");
  onnx_node(&g, "ScatterND", "s", "x,at,tenfold", "z", &attrs);
  onnx_output(&g, "z");
  pb_t model = onnx_model(16, &g);
  float z[COUNT];
  onnx_run(&model, (const void*[]){inputs[0]}, (void*[]){z});
  for (int i = 0; i < COUNT; ++i)
    assert_float_equal(z[i], 11 * inputs[0][i], 1e-5);
}

// Rows of a matrix, through axes that come and go, and one product with them.
static void moves_axes(void** state) {
  (void)state;
  pb_t g = positions(), attrs = {0}, more = {0};
  const float table[COUNT][2] = {{1, 2},  {3, 4},   {5, 6},  {7, 8},
                                 {9, 10}, {11, 12}, {13, 14}};
  const float weights[2] = {1, 100};
  const int64_t dims[] = {COUNT, 2}, column[] = {2, 1}, one = 1;
  onnx_floats(&g, "table", 2, dims, &table[0][0]);
  onnx_floats(&g, "w", 2, column, weights);
  onnx_int_list(&g, "last", 1, &one);
  onnx_node(&g, "Squeeze", "sq", "at,last", "list", NULL);
  onnx_node(&g, "Gather", "rows", "table,list", "chosen", NULL);  // [n, 2]
  onnx_node(&g, "MatMul", "mm", "chosen,w", "products", NULL);    // [n, 1]
  onnx_attr_int(&attrs, "axis", 1);
  onnx_node(&g, "Concat", "c", "chosen,products", "joined", &attrs);
  onnx_node(&g, "Unsqueeze", "u", "joined,last", "wide", NULL);  // [n, 1, 3]
  const int64_t order[] = {2, 0, 1};
  onnx_attr_ints(&more, "perm", 3, order);
  onnx_node(&g, "Transpose", "tr", "wide", "z", &more);  // [3, n, 1]
  onnx_output(&g, "z");
  pb_t model = onnx_model(13, &g);
  float z[3][COUNT];
  int64_t extents[3];
  onnx_run(&model, (const void*[]){inputs[0]}, (void*[]){z, extents});
  const int rows[] = {1, 3, 4, 6};
  assert_int_equal(extents[0], 3);
  assert_int_equal(extents[1], 4);
  assert_int_equal(extents[2], 1);
  for (int i = 0; i < 4; ++i) {
    const float* row = table[rows[i]];
    assert_float_equal(z[0][i], row[0], 0);
    assert_float_equal(z[1][i], row[1], 0);
    assert_float_equal(z[2][i], row[0] + 100 * row[1], 1e-3);
  }
}

// What would take elements behind the real ones for real, or does not know where
// they end, says so.
static void refuses_what_it_would_spoil(void** state) {
  (void)state;
  static const struct {
    const char *op, *inputs, *sentence;
  } rows[] = {
      {"HannWindow", "y", "would compute with what lies behind that"},
      {"HammingWindow", "y", "(at most 7) is known after a run only"},
      {"Expand", "y,seven", "whether axis 0 of its input has 7 elements"},
      {"LayerNormalization", "y,one", "it normalises axis 0"},
      {"Conv", "wide,wide", "known after a run only"},
      {"ScatterElements", "x,places,y", "of its indices and updates alike"},
      {"Squeeze", "y", "only a run tells"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pb_t g = chosen(), attrs = {0};
    const int64_t zero = 0, one = 1, seven = 7;
    onnx_int_list(&g, "zero", 1, &zero);
    onnx_int_list(&g, "one", 1, &one);
    const int64_t two[] = {-1, 7}, places[COUNT] = {0};
    onnx_int_list(&g, "seven", 1, &seven);
    onnx_int_list(&g, "rows", 2, two);
    onnx_int_list(&g, "places", COUNT, places);
    onnx_node(&g, "Transpose", "w", "at", "wide", NULL);
    onnx_input(&g, "keep", ONNX_BOOL, "7");
    onnx_node(&g, rows[i].op, "bad", rows[i].inputs, "z", &attrs);
    onnx_output(&g, "z");
    pb_t model = onnx_model(18, &g);
    onnx_fails(model, UNSUPPORTED, rows[i].sentence);
  }
}

// Two sizes that happen to have one bound are not one: only a run shows whether they are
// equal, and one of them is repeated if it is 1. Otherwise no extent is.
static void tells_sizes_apart(void** state) {
  (void)state;
  const float x[COUNT] = {1, 0, 3, 0, 0, 6, 7};
  static const struct {
    float u[COUNT], last;
    int64_t extent;
  } rows[] = {{{0, 1, 2, 3, 4, 0, 0}, 11, 4},
              {{0, 0, 0, 8, 0, 0, 0}, 15, 4},
              {{0, 1, 2, 3, 0, 0, 0}, 0, -1}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pb_t g = chosen();
    onnx_input(&g, "u", ONNX_FLOAT, "7");
    onnx_node(&g, "NonZero", "n2", "u", "row2", NULL);
    onnx_node(&g, "Transpose", "t2", "row2", "at2", NULL);
    onnx_node(&g, "GatherND", "g2", "u,at2", "y2", NULL);
    onnx_node(&g, "Add", "sum", "y,y2", "z", NULL);
    onnx_output(&g, "z");
    pb_t model = onnx_model(13, &g);
    float z[COUNT];
    int64_t extent;
    onnx_run(&model, (const void*[]){x, rows[i].u}, (void*[]){z, &extent});
    assert_int_equal(extent, rows[i].extent);
    if (extent == 4) assert_true(z[3] == rows[i].last);
  }
}

// What is not 0, by rows if |c|, else half of |x|: one type with room for both.
static void gives_extents_of_branches(void** state) {
  (void)state;
  const float x[COUNT] = {1, 0, 3, 0, 0, 6, 7};
  for (int choice = 0; choice < 2; ++choice) {
    pb_t g = {0}, attrs = {0}, some = {0}, half = {0}, parts = {0};
    const bool c = choice;
    onnx_input(&g, "c", ONNX_BOOL, "");
    onnx_input(&g, "x", ONNX_FLOAT, "7");
    onnx_node(&some, "Compress", "", "x,x_kept", "out", NULL);
    onnx_output(&some, "out");
    onnx_attr_int(&parts, "num_outputs", 3);
    onnx_node(&half, "Split", "", "x", "out,b,d", &parts);
    onnx_output(&half, "out");
    onnx_attr_int(&attrs, "to", ONNX_BOOL);
    onnx_node(&g, "Cast", "kept", "x", "x_kept", &attrs);
    attrs = (pb_t){0};
    onnx_attr_message(&attrs, "then_branch", 5, 6, some);
    onnx_attr_message(&attrs, "else_branch", 5, 6, half);
    onnx_node(&g, "If", "choice", "c", "y", &attrs);
    onnx_output(&g, "y");
    pb_t model = onnx_model(18, &g);
    float y[COUNT];
    int64_t extent;
    onnx_run(&model, (const void*[]){&c, x}, (void*[]){y, &extent});
    assert_int_equal(extent, choice ? 4 : 3);
    assert_memory_equal(y + 2, choice ? &x[5] : &x[2], sizeof(float));
  }
}

// NaN is one value and comes last; 0 and -0 are one.
static void finds_unique_floats(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "7");
  onnx_node(&g, "Unique", "u", "x", "y,first,inverse,counts", NULL);
  onnx_output(&g, "y");
  onnx_output(&g, "first");
  onnx_output(&g, "inverse");
  onnx_output(&g, "counts");
  pb_t model = onnx_model(13, &g);
  const float x[COUNT] = {NAN, 3, -0.0f, 3, NAN, 0, -INFINITY};
  float y[COUNT];
  int64_t first[COUNT], inverse[COUNT], counts[COUNT], extents[3];
  onnx_run(&model, (const void*[]){x},
           (void*[]){y, first, inverse, counts, &extents[0], &extents[1],
                     &extents[2]});
  const int64_t firsts[] = {6, 2, 1, 0}, many[] = {1, 2, 2, 2};
  const int64_t inverses[] = {3, 2, 1, 2, 3, 1, 0};
  for (int i = 0; i < 3; ++i)
    assert_int_equal(extents[i], 4);
  assert_true(y[0] == -INFINITY && y[1] == 0 && y[2] == 3 && isnan(y[3]));
  assert_memory_equal(first, firsts, sizeof(firsts));
  assert_memory_equal(counts, many, sizeof(many));
  assert_memory_equal(inverse, inverses, sizeof(inverses));
}

static void makes_nothing_of_nothing(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "3,0");
  onnx_node(&g, "NonZero", "n", "x", "y", NULL);
  onnx_node(&g, "Unique", "u", "x", "z,first,inverse,counts", NULL);
  onnx_output(&g, "y");
  onnx_output(&g, "z");
  onnx_output(&g, "counts");
  pb_t model = onnx_model(13, &g);
  char nothing[8];
  onnx_run(&model, (const void*[]){nothing},
           (void*[]){nothing, nothing, nothing});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_the_chosen),
      cmocka_unit_test(reduces_the_real_ones),
      cmocka_unit_test(finds_places),
      cmocka_unit_test(scatters_the_real_ones),
      cmocka_unit_test(moves_axes),
      cmocka_unit_test(refuses_what_it_would_spoil),
      cmocka_unit_test(tells_sizes_apart),
      cmocka_unit_test(gives_extents_of_branches),
      cmocka_unit_test(finds_unique_floats),
      cmocka_unit_test(makes_nothing_of_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
