// SPDX-License-Identifier: Apache-2.0
// The binary form: exact round trips, alignment, and damaged bytes.
#include "ir/serialize.h"

#include "ir_test.h"
#include "text_test.h"

static void* serialized(pestle_context_t* context, const char* name,
                        size_t* out_size) {
  size_t size;
  char* text = text_golden(name, &size);
  pestle_module_t* module = text_parse(context, text);
  void* data;
  assert_ok(pestle_module_serialize(module, &data, out_size));
  pestle_module_release(module);
  free(text);
  return data;
}

static void round_trips(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  for (size_t i = 0; i < TEXT_GOLDENS; ++i) {
    size_t size, again_size;
    char* text = text_golden(text_golden_names[i], &size);
    pestle_module_t* module = text_parse(context, text);
    pestle_module_t* loaded;
    void *data, *again;
    assert_ok(pestle_module_serialize(module, &data, &size));
    assert_ok(pestle_module_deserialize(context, data, size, &loaded));
    char* before = text_print(module, PESTLE_PRINT_LOCATIONS);
    char* after = text_print(loaded, PESTLE_PRINT_LOCATIONS);
    assert_string_equal(before, after);
    assert_ok(pestle_module_serialize(loaded, &again, &again_size));
    assert_int_equal(size, again_size);
    assert_memory_equal(data, again, size);
    pestle_context_free(context, again, again_size);
    pestle_context_free(context, data, size);
    free(after);
    free(before);
    pestle_module_release(loaded);
    pestle_module_release(module);
    free(text);
  }
  pestle_context_release(context);
}

// Constants lie at multiples of 64, equal ones once, and are borrowed on wish.
static void constants(void** state) {
  (void)state;
  BEGIN(t, T0(F32));
  float data[1000];
  for (int i = 0; i < 1000; ++i)
    data[i] = (float)i;
  pestle_value_t* c[3];
  assert_ok(ir_test_constant(&t.b, T(F32, 1000), data, &c[0]));
  assert_ok(ir_test_constant(&t.b, T(F32, 1000), data, &c[1]));
  assert_ok(ir_test_constant(&t.b, T(F32, 10, 100), data, &c[2]));
  assert_ok(pestle_op_return(&t.b, c, 3, NULL));
  void* bytes;
  size_t size;
  assert_ok(pestle_module_serialize(t.module, &bytes, &size));
  assert_in_range(size, 8000, 9000);
  void* aligned = aligned_alloc(64, (size + 63) / 64 * 64);
  memcpy(aligned, bytes, size);
  pestle_module_t* loaded;
  for (unsigned flags = 0; flags < 2; ++flags) {
    assert_ok(pestle_module_deserialize_flags(t.context, aligned, size, flags,
                                              &loaded));
    const pestle_elements_t* e =
        PESTLE_NODE_ELEMENTS(pestle_module_entry(loaded)->body->block->first);
    const char* at = e->data;
    bool inside = at >= (char*)aligned && at < (char*)aligned + size;
    assert_int_equal(inside, flags == PESTLE_DESERIALIZE_BORROW);
    assert_int_equal((uintptr_t)at % 64, 0);
    assert_memory_equal(at, data, sizeof(data));
    pestle_module_release(loaded);
  }
  // A changed constant is noticed.
  ((char*)aligned)[size - 100] ^= 1;
  assert_error(pestle_module_deserialize(t.context, aligned, size, &loaded),
               MALFORMED, "content");
  free(aligned);
  pestle_context_free(t.context, bytes, size);
  ir_test_end(&t);
}

static void assert_handled(pestle_context_t* context, const void* data,
                           size_t size) {
  char* exact = malloc(size ? size : 1);
  memcpy(exact, data, size);
  pestle_module_t* module = NULL;
  pestle_status_t status =
      pestle_module_deserialize(context, exact, size, &module);
  pestle_status_code_t code = pestle_status_code(status);
  assert_true(code == PESTLE_STATUS_OK || code == PESTLE_STATUS_MALFORMED ||
              code == PESTLE_STATUS_UNSUPPORTED ||
              code == PESTLE_STATUS_INCOMPATIBLE);
  assert_int_equal(status == NULL, module != NULL);
  pestle_status_release(status);
  pestle_module_release(module);
  free(exact);
}

static void damage(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  uint64_t random = 88172645463325252u;
  for (size_t i = 0; i < TEXT_GOLDENS; ++i) {
    size_t size;
    unsigned char* data = serialized(context, text_golden_names[i], &size);
    for (size_t cut = 0; cut < size; cut += 1 + cut / 40) {
      assert_handled(context, data, cut);
      // The same with a header that says so.
      unsigned char total[8];
      memcpy(total, data + 16, 8);
      if (cut >= 24) {
        for (int k = 0; k < 8; ++k) {
          data[16 + k] = (unsigned char)((uint64_t)cut >> (8 * k) & 255);
        }
      }
      assert_handled(context, data, cut);
      memcpy(data + 16, total, 8);
    }
    for (int round = 0; round < 200; ++round) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      size_t at = random % size;
      unsigned char old = data[at];
      data[at] = (unsigned char)(random >> 50);
      assert_handled(context, data, size);
      data[at] = old;
    }
    pestle_context_free(context, data, size);
  }
  pestle_context_release(context);
}

static void versions(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  size_t size;
  unsigned char* data = serialized(context, "mlp.mlir", &size);
  pestle_module_t* module;
  data[8] = 99;
  assert_error(pestle_module_deserialize(context, data, size, &module),
               INCOMPATIBLE, "version 99");
  data[0] = 'X';
  assert_error(pestle_module_deserialize(context, data, size, &module),
               MALFORMED, "does not begin");
  assert_error(pestle_module_deserialize(context, "", 0, &module), MALFORMED,
               "does not begin");
  pestle_context_free(context, data, size);
  pestle_context_release(context);
}

static pestle_status_t there_and_back(ir_test_t* t) {
  pestle_value_t *c, *y;
  pestle_type_t type = T(F32, 2);
  PESTLE_TRY(ir_test_constant(&t->b, type, (float[]){1, 2}, &c));
  PESTLE_TRY(pestle_op_add(&t->b, t->a[0], c, &y));
  PESTLE_TRY(pestle_op_return(&t->b, &y, 1, NULL));
  void* data;
  size_t size;
  pestle_module_t* loaded = NULL;
  PESTLE_TRY(pestle_module_serialize(t->module, &data, &size));
  pestle_status_t status =
      pestle_module_deserialize(t->context, data, size, &loaded);
  pestle_module_release(loaded);
  pestle_context_free(t->context, data, size);
  return status;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  pestle_type_t type = T(F32, 2);
  ir_test_every_failure(&type, 1, there_and_back);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trips),
      cmocka_unit_test(constants),
      cmocka_unit_test(damage),
      cmocka_unit_test(versions),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
