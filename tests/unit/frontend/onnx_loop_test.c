// SPDX-License-Identifier: Apache-2.0
// Loop and Scan: written out, with a known number of trips, and as a while.
#include "onnx_test.h"

typedef enum counts_e { COUNT_NONE, COUNT_KNOWN, COUNT_INPUT } counts_t;

// The body of a Loop: s + x, and that as a scan output where |scans|.
static pb_t adding_body(bool scans) {
  pb_t body = {0};
  onnx_input(&body, "i", ONNX_INT64, "");
  onnx_input(&body, "c", ONNX_BOOL, "");
  onnx_input(&body, "s", ONNX_FLOAT, "2");
  onnx_node(&body, "Identity", "goes", "c", "c_out", NULL);
  onnx_node(&body, "Add", "sum", "s,x", "s_out", NULL);
  onnx_output(&body, "c_out");
  onnx_output(&body, "s_out");
  if (scans) {
    onnx_node(&body, "Identity", "row", "s_out", "row_out", NULL);
    onnx_output(&body, "row_out");
  }
  return body;
}

static pb_t loop_model(pb_t body, int64_t trips, counts_t counts,
                       const char* outputs) {
  pb_t graph = {0}, attrs = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, "2");
  if (counts == COUNT_INPUT) onnx_input(&graph, "m", ONNX_INT64, "");
  if (counts == COUNT_KNOWN) {
    pb_message(&graph, 5,
               onnx_tensor("m", ONNX_INT64, 0, NULL, &trips, sizeof(trips)));
  }
  onnx_attr_message(&attrs, "body", 5, 6, body);
  onnx_node(&graph, "Loop", "loop", counts == COUNT_NONE ? ",,x" : "m,,x",
            outputs, &attrs);
  onnx_output(&graph, "y");
  if (strchr(outputs, ',')) onnx_output(&graph, "rows");
  return onnx_model(13, &graph);
}

static int count_whiles(const pb_t* model) {
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, model));
  int count = onnx_count(t.module, PESTLE_OP_WHILE);
  onnx_end(&t);
  return count;
}

// x, 2 x, ... (trips + 1) x
static void check_known(int64_t trips, int whiles) {
  pb_t model = loop_model(adding_body(true), trips, COUNT_KNOWN, "y,rows");
  assert_int_equal(count_whiles(&model), whiles);
  float x[2] = {1, -2}, y[2], rows[400];
  onnx_run(&model, (const void*[]){x}, (void*[]){y, rows});
  assert_float_equal(y[1], -2 * (float)(trips + 1), 0);
  for (int64_t i = 0; i < trips; ++i) {
    assert_float_equal(rows[2 * i], (float)(i + 2), 0);
    assert_float_equal(rows[2 * i + 1], -2 * (float)(i + 2), 0);
  }
}

static void loops_a_known_number_of_times(void** state) {
  (void)state;
  check_known(0, 0);
  check_known(3, 0);
  check_known(100, 1);
}

static void loops_as_an_input_says(void** state) {
  (void)state;
  for (int64_t trips = 0; trips < 4; ++trips) {
    pb_t model = loop_model(adding_body(false), 0, COUNT_INPUT, "y");
    assert_int_equal(count_whiles(&model), 1);
    float x[2] = {1, -2}, y[2];
    onnx_run(&model, (const void*[]){x, &trips}, (void*[]){y});
    assert_float_equal(y[0], (float)(trips + 1), 0);
  }
}

static void wants_the_count_of_rows(void** state) {
  (void)state;
  pb_t model = loop_model(adding_body(true), 0, COUNT_INPUT, "y,rows");
  onnx_wants_value(&model, 1);
}

// Doubles until the sum passes 100; the sums are a scan output where |scans|.
static pb_t doubling_body(bool scans) {
  pb_t body = {0};
  int64_t axis = 0;
  float bound = 100;
  onnx_input(&body, "i", ONNX_INT64, "");
  onnx_input(&body, "c", ONNX_BOOL, "");
  onnx_input(&body, "s", ONNX_FLOAT, "2");
  onnx_floats(&body, "bound", 0, NULL, &bound);
  onnx_int_list(&body, "axes", 1, &axis);
  onnx_node(&body, "Add", "twice", "s,s", "s_out", NULL);
  pb_t attrs = {0};
  onnx_attr_int(&attrs, "keepdims", 0);
  onnx_node(&body, "ReduceSum", "sum", "s_out,axes", "total", &attrs);
  onnx_node(&body, "Less", "less", "total,bound", "c_out", NULL);
  onnx_output(&body, "c_out");
  onnx_output(&body, "s_out");
  if (scans) {
    onnx_node(&body, "Neg", "row", "total", "row_out", NULL);
    onnx_output(&body, "row_out");
  }
  return body;
}

static void loops_on_a_condition(void** state) {
  (void)state;
  pb_t model = loop_model(doubling_body(false), 0, COUNT_NONE, "y");
  assert_int_equal(count_whiles(&model), 1);
  float x[2] = {1, 2}, y[2];
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  assert_float_equal(y[0], 64, 0);
  assert_float_equal(y[1], 128, 0);
}

// A row for each trip that the limit allows; those that were made are real.
static void keeps_rows_up_to_a_limit(void** state) {
  (void)state;
  const int64_t limits[] = {1, 3, 50};
  for (int k = 0; k < 3; ++k) {
    pb_t model =
        loop_model(doubling_body(true), limits[k], COUNT_KNOWN, "y,rows");
    assert_int_equal(count_whiles(&model), 1);
    float x[2] = {1, 2}, y[2], rows[50];
    int64_t extent;
    onnx_run(&model, (const void*[]){x}, (void*[]){y, rows, &extent});
    int64_t trips = limits[k] < 6 ? limits[k] : 6;
    assert_int_equal(extent, trips);
    assert_float_equal(y[1], (float)(2 << trips), 0);
    for (int64_t i = 0; i < trips; ++i)
      assert_float_equal(rows[i], -3 * (float)(2 << i), 0);
  }
  pb_t model = loop_model(doubling_body(true), 0, COUNT_KNOWN, "y,rows");
  assert_int_equal(count_whiles(&model), 0);
  pb_free(&model);
  model = loop_model(doubling_body(true), INT64_MAX, COUNT_KNOWN, "y,rows");
  assert_int_equal(count_whiles(&model), 1);  // with room for some rows
  pb_free(&model);
  model = loop_model(doubling_body(true), 0, COUNT_INPUT, "y,rows");
  onnx_wants_value(&model, 1);
}

// Each trip appends to the state, so that no two have the same types.
static pb_t growing_body(void) {
  pb_t body = {0}, attrs = {0};
  onnx_input(&body, "i", ONNX_INT64, "");
  onnx_input(&body, "c", ONNX_BOOL, "");
  onnx_input(&body, "s", ONNX_FLOAT, "n");
  onnx_node(&body, "Identity", "goes", "c", "c_out", NULL);
  onnx_attr_int(&attrs, "axis", 0);
  onnx_node(&body, "Concat", "join", "s,x", "s_out", &attrs);
  onnx_output(&body, "c_out");
  onnx_output(&body, "s_out");
  return body;
}

static void writes_out_what_grows(void** state) {
  (void)state;
  pb_t model = loop_model(growing_body(), 2, COUNT_KNOWN, "y");
  float x[2] = {1, 2}, y[6], wanted[6] = {1, 2, 1, 2, 1, 2};
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  assert_memory_equal(y, wanted, sizeof(wanted));
  model = loop_model(growing_body(), 1000, COUNT_KNOWN, "y");
  onnx_fails(model, UNSUPPORTED, "over more than 256 trips");
  model = loop_model(growing_body(), 2, COUNT_INPUT, "y");
  onnx_wants_value(&model, 1);
}

// |depth| loops of 200 growing trips, one inside of the other.
static pb_t nested_body(int depth) {
  if (!depth) return growing_body();
  pb_t body = {0}, attrs = {0};
  onnx_input(&body, "i", ONNX_INT64, "");
  onnx_input(&body, "c", ONNX_BOOL, "");
  onnx_input(&body, "s", ONNX_FLOAT, "n");
  onnx_node(&body, "Identity", "goes", "c", "c_out", NULL);
  onnx_attr_message(&attrs, "body", 5, 6, nested_body(depth - 1));
  onnx_node(&body, "Loop", "inner", "m,,s", "s_out", &attrs);
  onnx_output(&body, "c_out");
  onnx_output(&body, "s_out");
  return body;
}

static void bounds_what_is_written_out(void** state) {
  (void)state;
  pb_t model = loop_model(nested_body(4), 200, COUNT_KNOWN, "y");
  onnx_fails(model, UNSUPPORTED, "too many nodes");
}

static void refuses_a_body_that_does_not_fit(void** state) {
  (void)state;
  pb_t body = {0};
  onnx_input(&body, "i", ONNX_INT64, "");
  onnx_output(&body, "i");
  pb_t model = loop_model(body, 2, COUNT_KNOWN, "y");
  onnx_fails(model, MALFORMED, "its body 1 and 1");
  pb_t graph = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, "2");
  onnx_node(&graph, "Loop", "loop", ",,x", "y", NULL);
  onnx_output(&graph, "y");
  model = onnx_model(13, &graph);
  onnx_fails(model, MALFORMED, "attribute 'body' is missing");
}

// --- Scan ---

// Running sums of the columns of x [2, 3], from the last one on if |back|.
static pb_t scan_model(bool back, int64_t columns) {
  pb_t graph = {0}, body = {0}, attrs = {0};
  int64_t one = 1, flag = back;
  char dims[32];
  snprintf(dims, sizeof(dims), "2,%lld", (long long)columns);
  onnx_input(&graph, "s", ONNX_FLOAT, "2");
  onnx_input(&graph, "x", ONNX_FLOAT, dims);
  onnx_input(&body, "s_in", ONNX_FLOAT, "2");
  onnx_input(&body, "column", ONNX_FLOAT, "2");
  onnx_node(&body, "Add", "sum", "s_in,column", "s_out", NULL);
  onnx_node(&body, "Identity", "copy", "s_out", "row", NULL);
  onnx_output(&body, "s_out");
  onnx_output(&body, "row");
  onnx_attr_message(&attrs, "body", 5, 6, body);
  onnx_attr_int(&attrs, "num_scan_inputs", 1);
  onnx_attr_ints(&attrs, "scan_input_axes", 1, &one);
  onnx_attr_ints(&attrs, "scan_output_axes", 1, &one);
  onnx_attr_ints(&attrs, "scan_input_directions", 1, &flag);
  onnx_attr_ints(&attrs, "scan_output_directions", 1, &flag);
  onnx_node(&graph, "Scan", "scan", "s,x", "last,y", &attrs);
  onnx_output(&graph, "last");
  onnx_output(&graph, "y");
  return onnx_model(13, &graph);
}

static void scans_columns(void** state) {
  (void)state;
  float s[2] = {10, 20}, x[6] = {1, 2, 3, 4, 5, 6}, last[2], y[6];
  float forward[6] = {11, 13, 16, 24, 29, 35};
  float backward[6] = {16, 15, 13, 35, 31, 26};
  for (int back = 0; back < 2; ++back) {
    pb_t model = scan_model(back, 3);
    onnx_run(&model, (const void*[]){s, x}, (void*[]){last, y});
    assert_memory_equal(y, back ? backward : forward, sizeof(y));
    assert_float_equal(last[0], 16, 0);
  }
}

static void scans_in_a_loop(void** state) {
  (void)state;
  enum { COLUMNS = 100 };
  pb_t model = scan_model(true, COLUMNS);
  assert_int_equal(count_whiles(&model), 1);
  float s[2] = {0, 0}, x[2 * COLUMNS], last[2], y[2 * COLUMNS];
  for (int i = 0; i < 2 * COLUMNS; ++i)
    x[i] = 1;
  onnx_run(&model, (const void*[]){s, x}, (void*[]){last, y});
  for (int i = 0; i < COLUMNS; ++i)
    assert_float_equal(y[i], (float)(COLUMNS - i), 0);
  assert_float_equal(last[1], COLUMNS, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_a_known_number_of_times),
      cmocka_unit_test(loops_as_an_input_says),
      cmocka_unit_test(wants_the_count_of_rows),
      cmocka_unit_test(loops_on_a_condition),
      cmocka_unit_test(keeps_rows_up_to_a_limit),
      cmocka_unit_test(writes_out_what_grows),
      cmocka_unit_test(bounds_what_is_written_out),
      cmocka_unit_test(refuses_a_body_that_does_not_fit),
      cmocka_unit_test(scans_columns),
      cmocka_unit_test(scans_in_a_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
