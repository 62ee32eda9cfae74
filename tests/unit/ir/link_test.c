// SPDX-License-Identifier: Apache-2.0
// Several modules as one: what it computes, what is refused, every allocation.
#include "ir/collective.h"
#include "ir_test.h"
#include "text_test.h"

#define ARGUMENT(i) {PESTLE_LINK_ARGUMENT, (i)}

// Two results, through a function that both modules have under one name.
static const char first[] =
    "module {\nfunc.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> "
    "(tensor<2xf32>, "
    "tensor<2xf32>) {\n"
    "  %0 = func.call @half(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
    "  %1 = stablehlo.add %0, %y : tensor<2xf32>\n"
    "  return %0, %1 : tensor<2xf32>, tensor<2xf32>\n}\n"
    "func.func private @half(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %c = stablehlo.constant dense<0.5> : tensor<2xf32>\n"
    "  %0 = stablehlo.multiply %x, %c : tensor<2xf32>\n"
    "  return %0 : tensor<2xf32>\n}\n}\n";
static const char second[] =
    "module {\nfunc.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> "
    "tensor<2xf32> {\n"
    "  %0 = func.call @half(%b) : (tensor<2xf32>) -> tensor<2xf32>\n"
    "  %1 = stablehlo.subtract %a, %0 : tensor<2xf32>\n"
    "  return %1 : tensor<2xf32>\n}\n"
    "func.func private @half(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %0 = stablehlo.negate %x : tensor<2xf32>\n"
    "  return %0 : tensor<2xf32>\n}\n}\n";
static const char other[] =
    "func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n"
    "  return %a : tensor<3xf32>\n}\n";

static pestle_status_t parse(pestle_context_t* context, const char* text,
                             pestle_module_t** out) {
  return pestle_module_parse(context, text, strlen(text), "test", out);
}

// first(#0, #1) -> a, b; second(b, #0) -> c; second(c, c) -> d; results d, a, #1.
static const pestle_link_source_t reads[3][2] = {
    {ARGUMENT(0), ARGUMENT(1)}, {{0, 1}, ARGUMENT(0)}, {{1, 0}, {1, 0}}};
static const pestle_link_source_t results[] = {{2, 0}, {0, 0}, ARGUMENT(1)};

static pestle_status_t link_three(pestle_context_t* context,
                                  pestle_module_t** out) {
  pestle_module_t *a = NULL, *b = NULL;
  pestle_status_t status = parse(context, first, &a);
  if (!status) status = parse(context, second, &b);
  if (!status) {
    const pestle_link_part_t parts[] = {
        {a, reads[0], 2}, {b, reads[1], 2}, {b, reads[2], 2}};
    status = pestle_module_link(parts, 3, results, 3, out);
  }
  pestle_module_release(a);
  pestle_module_release(b);
  return status;
}

static void parts_become_one(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* linked;
  assert_ok(link_three(context, &linked));
  assert_ok(pestle_module_verify(linked));
  pestle_function_t* main = pestle_module_entry(linked);
  assert_int_equal(pestle_function_argument_count(main), 2);
  char* text = text_print(linked, 0);
  // Each call has the callee of its own part.
  const char* at = text;
  static const char* const calls[] = {"call @part0_half", "call @part1_half",
                                      "call @part2_half"};
  for (int i = 0; i < 3; ++i) {
    at = strstr(at, calls[i]);
    if (!at) fail_msg("no '%s' in\n%s", calls[i], text);
  }
  free(text);
  pestle_module_release(linked);
  pestle_context_release(context);
}

// A part for four processes makes the whole one for four; another cannot be for two.
static void worlds_are_kept(void** state) {
  (void)state;
#define SPREAD(n)                                                     \
  "module attributes {mhlo.num_partitions = " #n                      \
  " : i32} {\n"                                                       \
  "func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {\n"           \
  "%p = stablehlo.partition_id : tensor<ui32>\n"                      \
  "%i = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>\n"       \
  "%b = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> " \
  "tensor<2xi32>\n"                                                   \
  "%r = stablehlo.add %a, %b : tensor<2xi32>\n"                       \
  "return %r : tensor<2xi32>\n}\n}"
  pestle_context_t* context = text_context();
  pestle_module_t *one, *four, *two, *linked;
  assert_ok(parse(context,
                  "func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {\n"
                  "%r = stablehlo.negate %a : tensor<2xi32>\n"
                  "return %r : tensor<2xi32>\n}",
                  &one));
  assert_ok(parse(context, SPREAD(4), &four));
  assert_ok(parse(context, SPREAD(2), &two));
  const pestle_link_source_t from[] = {ARGUMENT(0), {0, 0}, {1, 0}};
  const pestle_link_part_t parts[] = {{one, &from[0], 1}, {four, &from[1], 1}};
  assert_ok(pestle_module_link(parts, 2, &from[2], 1, &linked));
  assert_ok(pestle_module_verify(linked));
  assert_int_equal(pestle_module_world(linked).partitions, 4);
  assert_int_equal(pestle_module_world(linked).replicas, 1);
  pestle_module_release(linked);
  const pestle_link_part_t wrong[] = {{two, &from[0], 1}, {four, &from[1], 1}};
  assert_error(pestle_module_link(wrong, 2, &from[2], 1, &linked),
               INVALID_ARGUMENT,
               "part 1 is for 1 replicas of 4 partitions, an earlier one for 1 "
               "of 2");
  pestle_module_release(one);
  pestle_module_release(four);
  pestle_module_release(two);
  pestle_context_release(context);
#undef SPREAD
}

static void sources_are_checked(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t *a, *o, *linked;
  assert_ok(parse(context, first, &a));
  assert_ok(parse(context, other, &o));
  const pestle_link_source_t gap[] = {ARGUMENT(1), ARGUMENT(1)};
  const pestle_link_source_t beyond[] = {ARGUMENT(0), ARGUMENT(99)};
  const pestle_link_source_t itself[] = {ARGUMENT(0), {0, 0}};
  const pestle_link_source_t seam[] = {{0, 1}}, none[] = {{0, 2}};
  const pestle_link_source_t minus[] = {{-7, 0}}, shared[] = {ARGUMENT(0)};
  const pestle_link_source_t* const wrong[] = {gap, beyond, itself};
  static const char* const why[] = {"no part reads argument 0",
                                    "argument 99 of the whole",
                                    "it must come before it"};
  for (int i = 0; i < 3; ++i) {
    const pestle_link_part_t part = {a, wrong[i], 2};
    assert_error(pestle_module_link(&part, 1, results + 1, 1, &linked),
                 INVALID_ARGUMENT, why[i]);
    assert_null(linked);
  }
  const pestle_link_source_t* const wrong_second[] = {seam, none, minus,
                                                      shared};
  static const char* const why_second[] = {
      "not of the type that part 1 takes as argument 0", "result 2 of part 0",
      "part -7", "read as another type by part 1"};
  for (int i = 0; i < 4; ++i) {
    const pestle_link_part_t parts[] = {{a, reads[0], 2},
                                        {o, wrong_second[i], 1}};
    assert_error(pestle_module_link(parts, 2, results + 1, 1, &linked),
                 INVALID_ARGUMENT, why_second[i]);
  }
  const pestle_link_part_t few = {a, reads[0], 1}, one = {a, reads[0], 2};
  assert_error(pestle_module_link(&few, 1, NULL, 0, &linked), INVALID_ARGUMENT,
               "takes 2 arguments");
  assert_error(pestle_module_link(&one, 1, results, 1, &linked),
               INVALID_ARGUMENT, "part 2 is a source");
  pestle_module_release(a);
  pestle_module_release(o);
  pestle_context_release(context);
}

static void every_allocation(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    pestle_context_options_t options = {
        .struct_size = sizeof(options),
        .allocator = pestle_test_allocator(&memory)};
    pestle_context_t* context = NULL;
    pestle_module_t* linked = NULL;
    pestle_status_t status = pestle_context_create(&options, &context);
    if (!status) status = link_three(context, &linked);
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_module_release(linked);
    pestle_context_release(context);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_become_one),
      cmocka_unit_test(worlds_are_kept),
      cmocka_unit_test(sources_are_checked),
      cmocka_unit_test(every_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
