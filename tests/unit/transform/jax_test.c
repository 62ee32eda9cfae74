// SPDX-License-Identifier: Apache-2.0
// Derivatives against those of JAX, which tests/transform/jax_cases.py wrote to
// jax.txt, or to the file that is given: by the evaluator.
#include "transform_test.h"

typedef struct reader_t {
  const char *at, *end;
} reader_t;

static pestle_context_t* context;
static int case_count, failed_count;

// The next line, without its end; it is cut off the text.
static const char* next_line(reader_t* r, size_t* out_size) {
  const char* line = r->at;
  const char* end = memchr(line, '\n', (size_t)(r->end - line));
  if (!end) return NULL;
  *out_size = (size_t)(end - line);
  r->at = end + 1;
  return line;
}

static bool takes(const char* line, const char* key) {
  return !strncmp(line, key, strlen(key));
}

// The numbers of a line, as many as |type| has.
static void read_numbers(const char* text, numbers_t* a) {
  char* end;
  for (size_t i = 0; i < a->count; ++i) {
    a->data[i] = strtod(text, &end);
    if (end == text) fail_msg("%zu numbers are missing", a->count - i);
    text = end;
  }
}

typedef struct case_t {
  const char* name;
  pestle_module_t *jvp, *vjp;
  numbers_list_t arguments, tangents, cotangents;
  numbers_list_t by_jvp, by_vjp;  // run once all arguments are there
  size_t result, tangent_result, cotangent_result;
  size_t result_count;
  int wrong;
} case_t;

static void compare(case_t* c, const char* what, size_t index,
                    const numbers_t* got, const char* text) {
  char* end;
  double tolerance = strtod(text, &end);
  numbers_t want = numbers_make(got->type);
  read_numbers(end, &want);
  double scale = largest(&want);
  for (size_t i = 0; i < want.count && !c->wrong; ++i) {
    double error = error_of(got->data[i], want.data[i], scale);
    if (error <= tolerance) continue;
    print_error("%s: %s %zu, element %zu: %.17g, not %.17g (off %g of %g)\n",
                c->name, what, index, i, got->data[i], want.data[i], error,
                tolerance);
    c->wrong = 1;
  }
  free(want.data);
}

static void add(numbers_list_t* list, const pestle_type_t* type,
                const char* text) {
  numbers_t a = numbers_make(type);
  read_numbers(text, &a);
  list_add(list, &a);
  free(a.data);
}

static const pestle_type_t* argument_type(const pestle_module_t* module,
                                          size_t index) {
  return pestle_module_entry((pestle_module_t*)(uintptr_t)module)
      ->body->block->arguments[index]
      ->type;
}

static numbers_list_t run_both(pestle_module_t* module, const numbers_list_t* a,
                               const numbers_list_t* b) {
  numbers_list_t all = list_make(0);
  for (size_t i = 0; i < a->count; ++i)
    list_add(&all, &a->items[i]);
  for (size_t i = 0; i < b->count; ++i)
    list_add(&all, &b->items[i]);
  numbers_list_t out = run(module, &all);
  list_free(&all);
  return out;
}

static void evaluate(case_t* c) {
  if (c->by_jvp.items) return;
  c->by_jvp = run_both(c->jvp, &c->arguments, &c->tangents);
  c->by_vjp = run_both(c->vjp, &c->arguments, &c->cotangents);
  c->tangent_result = c->cotangent_result = c->result_count;
}

// One line of a case; false at its end.
static bool take_line(case_t* c, const char* line) {
  size_t next = c->arguments.count;
  if (takes(line, "argument ")) {
    add(&c->arguments, argument_type(c->jvp, next), line + 9);
  } else if (takes(line, "tangent ")) {
    add(&c->tangents, argument_type(c->jvp, next + c->tangents.count),
        line + 8);
  } else if (takes(line, "cotangent ")) {
    add(&c->cotangents, argument_type(c->vjp, next + c->cotangents.count),
        line + 10);
  } else if (takes(line, "result ")) {
    evaluate(c);
    compare(c, "result", c->result, &c->by_jvp.items[c->result], line + 7);
    ++c->result;
  } else if (takes(line, "jvp ")) {
    size_t i = c->tangent_result++;
    compare(c, "jvp", i, &c->by_jvp.items[i], line + 4);
  } else if (takes(line, "vjp ")) {
    size_t i = c->cotangent_result++;
    compare(c, "vjp", i, &c->by_vjp.items[i], line + 4);
  } else {
    return false;
  }
  return true;
}

static void read_module(reader_t* r, case_t* c) {
  size_t size;
  pestle_module_t* module;
  const char* line = next_line(r, &size);
  size_t bytes = strtoul(line + strlen("module "), NULL, 10);
  assert_ok(pestle_module_parse(context, r->at, bytes, c->name, &module));
  r->at += bytes;
  const pestle_function_t* entry = pestle_module_entry(module);
  c->result_count = entry->body->block->last->operand_count;
  assert_ok(pestle_module_jvp(module, NULL, &c->jvp));
  assert_ok(pestle_module_vjp(module, NULL, &c->vjp));
  assert_ok(pestle_module_verify(c->jvp));
  assert_ok(pestle_module_verify(c->vjp));
  pestle_module_release(module);
}

static void run_case(reader_t* r, const char* name) {
  size_t size;
  case_t c = {.name = name};
  c.arguments = list_make(0);
  c.tangents = list_make(0);
  c.cotangents = list_make(0);
  read_module(r, &c);
  while (take_line(&c, next_line(r, &size))) {
  }
  ++case_count;
  failed_count += c.wrong;
  assert_int_equal(c.by_jvp.count, c.tangent_result);
  assert_int_equal(c.by_vjp.count, c.cotangent_result);
  numbers_list_t* all[] = {&c.arguments, &c.tangents, &c.cotangents, &c.by_jvp,
                           &c.by_vjp};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
    list_free(all[i]);
  pestle_module_release(c.jvp);
  pestle_module_release(c.vjp);
}

static char* text;
static size_t text_size;
static const char* only;

static void test_all(void** state) {
  (void)state;
  reader_t r = {text, text + text_size};
  size_t size;
  const char* line;
  while ((line = next_line(&r, &size)) != NULL) {
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)(size - 5), line + 5);
    if (only && strncmp(only, name, strlen(only))) {
      while ((line = next_line(&r, &size)) != NULL && !takes(line, "end")) {
      }
      continue;
    }
    run_case(&r, name);
  }
  printf("%d cases, %d wrong\n", case_count, failed_count);
  assert_int_equal(failed_count, 0);
  assert_true(case_count > 0);
}

// jax [FILE [CASE]]
int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
  if (!getenv("PESTLE_SOURCE_DIR")) return 77;
  const char* file = argc > 1 ? argv[1] : "tests/unit/transform/jax.txt";
  only = argc > 2 ? argv[2] : NULL;
  text = read_source(file, &text_size);
  assert_ok(pestle_context_create(NULL, &context));
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  pestle_context_release(context);
  free(text);
  return failed;
}
