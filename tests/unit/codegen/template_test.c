// SPDX-License-Identifier: Apache-2.0
// The table of templates: each row has its functions, and a primitive that reads back as
// it was printed, whatever its integers are.
#include "codegen/template/template.h"

#include <stdio.h>

#include "codegen/nest/nest_verify.h"
#include "unit/codegen/nest_test.h"

static void test_rows(void** state) {
  (void)state;
  uint32_t count = 0;
  for (; pestle_template_at(count); ++count) {
    const pestle_template_t* t = pestle_template_at(count);
    assert_true(t->name[0] && t->form[0] == 's');
    assert_ptr_equal(pestle_template_find(t->name), t);
    assert_non_null(t->match);
    assert_non_null(t->sketch);
    assert_non_null(t->emit);
    // A constant that the template writes has a layout, which it sets when applied.
    assert_true(!t->pack || t->apply);
  }
  assert_true(count >= 6);
  assert_null(pestle_template_at(count + 1));
  assert_null(pestle_template_find("no_such_template"));
}

// How many choices "[a|b]" at |form| has, beside nothing.
static int64_t count_choices(const char* form) {
  int64_t count = 1;
  for (; *form != ']'; ++form)
    count += *form == '|';
  return count;
}

// A primitive of |t|, number |variant| of those that differ in what is chosen.
static pestle_primitive_t make_row(const pestle_template_t* t, int64_t variant,
                                   const char** names) {
  pestle_primitive_t row = {.prim = PESTLE_PRIM_TEMPLATE,
                            .template = t,
                            .stage = "c_1",
                            .names = names};
  for (const char* f = t->form; *f; ++f) {
    if (*f == 'i') {
      row.ints[row.int_count] = 100 + row.int_count - 300 * variant;
      ++row.int_count;
    } else if (*f == 'n') {
      names[row.name_count++] = "x_7";
    } else if (*f == '[') {
      row.ints[row.int_count++] = variant % (count_choices(f) + 1);
      f = strchr(f, ']');
    } else {
      assert_true(*f == 's' || *f == ' ');
    }
  }
  return row;
}

static void round_trip(const pestle_primitive_t* row) {
  pestle_arena_t arena;
  pestle_strbuf_t text, again;
  pestle_primitives_t rows;
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_strbuf_init(pestle_allocator_system(), &again);
  pestle_vec_init(&rows, pestle_allocator_system());
  pestle_primitive_print(row, &text);
  assert_ok(pestle_primitives_parse(&arena, pestle_strbuf_cstr(&text),
                                    text.size, "row", &rows));
  assert_int_equal(rows.size, 1);
  assert_ptr_equal(rows.data[0].template, row->template);
  assert_int_equal(rows.data[0].int_count, row->int_count);
  assert_memory_equal(rows.data[0].ints, row->ints, sizeof row->ints);
  assert_int_equal(rows.data[0].name_count, row->name_count);
  pestle_primitive_print(&rows.data[0], &again);
  assert_string_equal(pestle_strbuf_cstr(&text), pestle_strbuf_cstr(&again));
  pestle_vec_deinit(&rows);
  pestle_strbuf_deinit(&text);
  pestle_strbuf_deinit(&again);
  pestle_arena_deinit(&arena);
}

static void test_primitives(void** state) {
  (void)state;
  const char* names[PESTLE_TEMPLATE_INTS];
  for (uint32_t i = 0; pestle_template_at(i); ++i) {
    for (int64_t variant = 0; variant < 6; ++variant) {
      pestle_primitive_t row = make_row(pestle_template_at(i), variant, names);
      assert_in_range(row.int_count + row.name_count, 1, PESTLE_TEMPLATE_INTS);
      round_trip(&row);
    }
  }
}

// Of a nest that is none of theirs each refuses with a sentence that begins with its
// name; integers may be anything.
static void test_refusals(void** state) {
  static const int64_t values[] = {0, 1, -1, 16, 64, INT64_MAX, INT64_MIN};
  lowering_t l;
  pestle_nest_t nest;
  (void)state;
  lowering_open(&cases[0], &l);
  for (uint32_t i = 0; pestle_template_at(i); ++i) {
    const pestle_template_t* t = pestle_template_at(i);
    for (size_t v = 0; v < sizeof values / sizeof *values; ++v) {
      pestle_nest_template_t use = {.row = t};
      bool tensor = strchr(t->form, 'n') != NULL;
      lowering_nest(&l, 0, 0, &nest);
      for (int n = 0; n < PESTLE_TEMPLATE_INTS; ++n)
        use.ints[n] = tensor ? 0 : values[v];
      assert_error(pestle_schedule_template(&nest, &use), INVALID_ARGUMENT,
                   t->name);
      assert_null(nest.template.row);
      assert_int_equal(nest.primitives.size, 0);
      pestle_nest_deinit(&nest);
    }
  }
  lowering_close(&l);
}

// --- A nest whose constant a template packs ---

static void apply_text(pestle_nest_t* nest, const char* text) {
  pestle_primitives_t rows;
  pestle_vec_init(&rows, pestle_allocator_system());
  assert_ok(
      pestle_primitives_parse(nest->arena, text, strlen(text), "rows", &rows));
  for (size_t i = 0; i < rows.size; ++i)
    assert_ok(pestle_schedule_apply(nest, &rows.data[i]));
  pestle_vec_deinit(&rows);
}

// What |text| says of the nest, where |was| becomes |is|.
static pestle_status_t read_changed(pestle_nest_t* nest, const char* text,
                                    const char* was, const char* is) {
  char changed[8192];
  pestle_nest_t copy;
  const char* at = strstr(text, was);
  assert_non_null(at);
  int size = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text),
                      text, is, at + strlen(was));
  assert_in_range(size, 1, sizeof changed - 1);
  pestle_nest_init(pestle_allocator_system(), nest->arena, "", &copy);
  pestle_status_t status =
      pestle_nest_parse(changed, (size_t)size, "nest", &copy);
  if (!status) status = pestle_nest_verify(&copy, PESTLE_NEST_LOWERED, NULL);
  if (!status) status = pestle_nest_verify(&copy, PESTLE_NEST_SCHEDULED, NULL);
  if (!status) {
    pestle_strbuf_t again = nest_text(&copy);
    assert_string_equal(pestle_strbuf_cstr(&again), changed);
    pestle_strbuf_deinit(&again);
  }
  pestle_nest_deinit(&copy);
  return status;
}

static void test_packed(void** state) {
  lowering_t l;
  pestle_nest_t nest;
  (void)state;
  lowering_open(find_case("conv_panel"), &l);
  lowering_nest(&l, 0, 2, &nest);
  apply_text(&nest, "inline xpad\nwinograd c 1 28 6 4 16 0 1 4");
  pestle_strbuf_t text = nest_text(&nest);
  const char* t = pestle_strbuf_cstr(&text);
  assert_ok(read_changed(&nest, t, "] by winograd", "] by winograd"));
  assert_error(read_changed(&nest, t, "] by winograd", "] by amx"), MALFORMED,
               "a template that packs");
  assert_error(read_changed(&nest, t, " by winograd", ""), INTERNAL,
               "it must be a convolution");
  assert_error(read_changed(&nest, t, "winograd c 1", "winograd q 1"),
               MALFORMED, "there is no stage 'q'");
  // The weights have another layout than these sizes want.
  assert_error(read_changed(&nest, t, "28 6 4 16 0 1 4", "28 6 4 16 0 1 2"),
               INTERNAL, "it must be a convolution");
  pestle_strbuf_deinit(&text);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_primitives),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_packed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
