// SPDX-License-Identifier: Apache-2.0
// Stored tensors: raw and typed, narrow and packed, external, damaged.
#include <unistd.h>

#include "base/file.h"
#include "onnx_test.h"

static const int64_t three[] = {3}, four[] = {4};

static void expect(pb_t tensor, pestle_dtype_t dtype, const void* data,
                   size_t size) {
  onnx_test_t t;
  onnx_begin(&t);
  pestle_elements_t elements;
  char name[8];
  assert_ok(pestle_read_onnx_tensor(t.context, tensor.data, tensor.size,
                                    &elements, name, sizeof(name)));
  assert_int_equal(elements.type.dtype, dtype);
  assert_int_equal(elements.size, size);
  assert_string_equal(name, "t");
  if (size) assert_memory_equal(elements.data, data, size);
  pestle_context_free(t.context, (void*)elements.data, elements.size);
  onnx_end(&t);
  pb_free(&tensor);
}

#define refuse(tensor, code, text)                                            \
  do {                                                                        \
    onnx_test_t t_;                                                           \
    onnx_begin(&t_);                                                          \
    pestle_elements_t elements_;                                              \
    assert_error(pestle_read_onnx_tensor(t_.context, (tensor).data,           \
                                         (tensor).size, &elements_, NULL, 0), \
                 code, text);                                                 \
    onnx_end(&t_);                                                            \
    pb_free(&(tensor));                                                       \
  } while (0)

static void reads_raw_data(void** state) {
  (void)state;
  const float values[3] = {1, -2, 3.5f};
  expect(onnx_tensor("t", ONNX_FLOAT, 1, three, values, sizeof(values)),
         PESTLE_F32, values, sizeof(values));
  const uint8_t bools[3] = {0, 1, 7}, expected[3] = {0, 1, 1};
  expect(onnx_tensor("t", ONNX_BOOL, 1, three, bools, 3), PESTLE_I1, expected,
         3);
}

static void reads_typed_data(void** state) {
  (void)state;
  const float values[3] = {1, -2, 3.5f};
  pb_t packed = onnx_tensor("t", ONNX_FLOAT, 1, three, NULL, 0);
  pb_bytes(&packed, 4, values, sizeof(values));
  expect(packed, PESTLE_F32, values, sizeof(values));
  // In several fields, of which one is empty.
  packed = onnx_tensor("t", ONNX_FLOAT, 1, three, NULL, 0);
  pb_bytes(&packed, 4, values, 4);
  pb_bytes(&packed, 4, values, 0);
  pb_bytes(&packed, 4, values + 1, 8);
  expect(packed, PESTLE_F32, values, sizeof(values));
  pb_t unpacked = onnx_tensor("t", ONNX_FLOAT, 1, three, NULL, 0);
  for (int i = 0; i < 3; ++i)
    pb_f32(&unpacked, 4, values[i]);
  expect(unpacked, PESTLE_F32, values, sizeof(values));
  // INT8 in int32_data, negative numbers as ten-byte varints.
  pb_t narrow = onnx_tensor("t", 3, 1, three, NULL, 0);
  for (int i = 0; i < 3; ++i)
    pb_int(&narrow, 5, -i);
  expect(narrow, PESTLE_I8, (const int8_t[]){0, -1, -2}, 3);
  // FLOAT16 bit patterns in int32_data.
  pb_t half = onnx_tensor("t", 10, 1, three, NULL, 0);
  for (int i = 0; i < 3; ++i)
    pb_int(&half, 5, 0x3c00 + i);
  expect(half, PESTLE_F16, (const uint16_t[]){0x3c00, 0x3c01, 0x3c02}, 6);
  // UINT32 in uint64_data.
  pb_t wide = onnx_tensor("t", 12, 1, three, NULL, 0);
  for (int i = 0; i < 3; ++i)
    pb_int(&wide, 11, 4294967295 - i);
  expect(wide, PESTLE_U32,
         (const uint32_t[]){4294967295u, 4294967294u, 4294967293u}, 12);
}

static void reads_nibbles(void** state) {
  (void)state;
  const uint8_t raw[2] = {0xf1, 0x08};
  expect(onnx_tensor("t", 22, 1, three, raw, 2), PESTLE_I4,
         (const int8_t[]){1, -1, -8}, 3);
  expect(onnx_tensor("t", 21, 1, three, raw, 2), PESTLE_U4,
         (const uint8_t[]){1, 15, 8}, 3);
  pb_t typed = onnx_tensor("t", 22, 1, four, NULL, 0);
  pb_int(&typed, 5, 0xf1);
  pb_int(&typed, 5, 0x78);
  expect(typed, PESTLE_I4, (const int8_t[]){1, -1, -8, 7}, 4);
  expect(onnx_tensor("t", 23, 1, three, raw, 2), PESTLE_F4E2M1FN,
         (const uint8_t[]){1, 15, 8}, 3);
  typed = onnx_tensor("t", 23, 1, four, NULL, 0);
  pb_int(&typed, 5, 0xf1);
  pb_int(&typed, 5, 0x78);
  expect(typed, PESTLE_F4E2M1FN, (const uint8_t[]){1, 15, 8, 7}, 4);
}

// Four to a byte, the first in the lowest bits.
static void reads_pairs_of_bits(void** state) {
  (void)state;
  const int64_t five[1] = {5};
  const uint8_t raw[2] = {0xb1, 0x02};
  expect(onnx_tensor("t", 26, 1, five, raw, 2), PESTLE_I2,
         (const int8_t[]){1, 0, -1, -2, -2}, 5);
  expect(onnx_tensor("t", 25, 1, five, raw, 2), PESTLE_U2,
         (const uint8_t[]){1, 0, 3, 2, 2}, 5);
  pb_t typed = onnx_tensor("t", 26, 1, five, NULL, 0);
  pb_int(&typed, 5, 0xb1);
  pb_int(&typed, 5, 1);
  expect(typed, PESTLE_I2, (const int8_t[]){1, 0, -1, -2, 1}, 5);
}

static void reads_nothing(void** state) {
  (void)state;
  const int64_t dims[2] = {0, 5};
  expect(onnx_tensor("t", ONNX_FLOAT, 2, dims, NULL, 0), PESTLE_F32, NULL, 0);
}

static void refuses_wrong_sizes(void** state) {
  (void)state;
  const float values[2] = {1, 2};
  pb_t tensor = onnx_tensor("t", ONNX_FLOAT, 1, three, values, 8);
  refuse(tensor, MALFORMED, "'t' holds 8 bytes, its dims say 12");
  tensor = onnx_tensor("t", ONNX_INT64, 1, three, NULL, 0);
  pb_int(&tensor, 7, 1);
  refuse(tensor, MALFORMED, "holds 1 values, its dims say 3");
  const int64_t huge[3] = {INT64_MAX, 2, 2}, below[1] = {-3};
  tensor = onnx_tensor("t", ONNX_FLOAT, 3, huge, NULL, 0);
  refuse(tensor, MALFORMED, "2^63");
  const int64_t bytes[2] = {(int64_t)1 << 40, (int64_t)1 << 21};
  tensor = onnx_tensor("t", ONNX_INT64, 2, bytes, NULL, 0);
  refuse(tensor, MALFORMED, "2^63");
  tensor = onnx_tensor("t", ONNX_FLOAT, 1, below, NULL, 0);
  refuse(tensor, MALFORMED, "negative");
  tensor = onnx_tensor("t", 8, 1, three, NULL, 0);
  refuse(tensor, UNSUPPORTED, "STRING");
  const int64_t many[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  tensor = onnx_tensor("t", ONNX_FLOAT, 17, many, NULL, 0);
  refuse(tensor, UNSUPPORTED, "17 dimensions");
}

// --- External data ---

static void add_entry(pb_t* tensor, const char* key, const char* value) {
  pb_t entry = {0};
  pb_text(&entry, 1, key);
  pb_text(&entry, 2, value);
  pb_message(tensor, 13, entry);
}

// y = w, stored in |location|.
static pb_t external_model(const char* location, const char* offset,
                           const char* length) {
  pb_t g = {0}, tensor = onnx_tensor("w", ONNX_FLOAT, 1, three, NULL, 0);
  add_entry(&tensor, "location", location);
  if (offset) add_entry(&tensor, "offset", offset);
  if (length) add_entry(&tensor, "length", length);
  pb_int(&tensor, 14, 1);
  pb_message(&g, 5, tensor);
  onnx_node(&g, "Neg", "n", "w", "y", NULL);
  onnx_output(&g, "y");
  return onnx_model(13, &g);
}

static char folder[64];

static pestle_status_t import_at(pb_t* model, float* y) {
  onnx_test_t t;
  onnx_begin(&t);
  pestle_status_t status =
      pestle_import_onnx(t.context, model->data, model->size, false, folder,
                         &t.options, &t.module);
  if (!status) {
    status = pestle_ref_evaluate_function(pestle_test_allocator(&t.memory),
                                          pestle_module_entry(t.module), NULL,
                                          (void*[]){y});
  }
  onnx_end(&t);
  pb_free(model);
  return status;
}

static void reads_external_data(void** state) {
  (void)state;
  const float values[4] = {9, 1, 2, 3}, expected[3] = {-1, -2, -3};
  char path[128];
  snprintf(path, sizeof(path), "%s/w.bin", folder);
  assert_ok(pestle_file_write(
      path, pestle_str_make((const char*)values, sizeof(values))));
  float y[3];
  pb_t model = external_model("w.bin", "4", "12");
  assert_ok(import_at(&model, y));
  assert_memory_equal(y, expected, sizeof(y));
  model = external_model("w.bin", "8", "12");
  assert_error(import_at(&model, y), MALFORMED,
               "holds 8 bytes of 12, where 'w.bin' ends");
  model = external_model("w.bin", "4", "13");
  assert_error(import_at(&model, y), MALFORMED, "holds 12 bytes of 13");
  model = external_model("w.bin", "99999999999999", NULL);
  assert_error(import_at(&model, y), MALFORMED, "holds 0 bytes");
  model = external_model("w.bin", "x", NULL);
  assert_error(import_at(&model, y), MALFORMED, "offset 'x'");
  model = external_model("missing.bin", NULL, NULL);
  assert_error(import_at(&model, y), NOT_FOUND, "missing.bin");
  // Without a length what is behind is another one's, unless elements share bytes.
  const float first[3] = {-9, -1, -2};
  model = external_model("w.bin", NULL, NULL);
  assert_ok(import_at(&model, y));
  assert_memory_equal(y, first, sizeof(y));
  model = external_model("w.bin", NULL, "16");
  assert_error(import_at(&model, y), MALFORMED, "holds 16 bytes");
  model = external_model("w.bin", "8", NULL);
  assert_error(import_at(&model, y), MALFORMED, "holds 8 bytes");
  pb_t tensor = onnx_tensor("w", 22, 1, three, NULL, 0), g = {0};
  add_entry(&tensor, "location", "w.bin");
  pb_int(&tensor, 14, 1);
  pb_message(&g, 5, tensor);
  onnx_node(&g, "Identity", "n", "w", "y", NULL);
  onnx_output(&g, "y");
  model = onnx_model(21, &g);
  assert_error(import_at(&model, y), MALFORMED,
               "holds 16 bytes, its dims say 2");
}

static void refuses_a_name_with_a_zero(void** state) {
  (void)state;
  pb_t tensor = onnx_tensor("w", ONNX_FLOAT, 1, three, NULL, 0), g = {0};
  pb_t entry = {0};
  float y[3];
  pb_text(&entry, 1, "location");
  pb_bytes(&entry, 2, "w.bin\0x", 7);
  pb_message(&tensor, 13, entry);
  pb_int(&tensor, 14, 1);
  pb_message(&g, 5, tensor);
  onnx_node(&g, "Neg", "n", "w", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  assert_error(import_at(&model, y), MALFORMED, "holds a zero");
}

// What stands for weights that were not fetched is not read as numbers.
static void names_what_is_no_data(void** state) {
  (void)state;
  static const char pointer[] =
      "version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 12\n";
  char path[128];
  float y[3];
  snprintf(path, sizeof(path), "%s/w.bin", folder);
  assert_ok(pestle_file_write(path, pestle_str(pointer)));
  pb_t model = external_model("w.bin", NULL, "12");
  assert_error(import_at(&model, y), MALFORMED, "'git lfs pull'");
  model = external_model("w.bin", NULL, "12");
  assert_error(import_at(&model, y), MALFORMED, "tensor 'w'");
  assert_ok(pestle_file_write(path, pestle_str("<!DOCTYPE html><html>...")));
  model = external_model("w.bin", NULL, "12");
  assert_error(import_at(&model, y), MALFORMED, "a page of HTML");
}

static void stays_in_the_folder(void** state) {
  (void)state;
  float y[3];
  char link[128];
  snprintf(link, sizeof(link), "%s/link", folder);
  assert_int_equal(symlink("/etc/passwd", link), 0);
  const char* const outside[] = {"/etc/passwd", "../../etc/passwd", "link", ""};
  for (size_t i = 0; i < 4; ++i) {
    pb_t model = external_model(outside[i], NULL, NULL);
    assert_error(import_at(&model, y), MALFORMED, "outside the model's folder");
  }
  unlink(link);
  pb_t model = external_model("w.bin", NULL, NULL);
  onnx_fails(model, INVALID_ARGUMENT, "no folder");
}

static int make_folder(void** state) {
  (void)state;
  snprintf(folder, sizeof(folder), "/tmp/pestle-onnx-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof(path), "%s/w.bin", folder);
  unlink(path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_raw_data),
      cmocka_unit_test(reads_typed_data),
      cmocka_unit_test(reads_nibbles),
      cmocka_unit_test(reads_pairs_of_bits),
      cmocka_unit_test(reads_nothing),
      cmocka_unit_test(refuses_wrong_sizes),
      cmocka_unit_test(reads_external_data),
      cmocka_unit_test(refuses_a_name_with_a_zero),
      cmocka_unit_test(names_what_is_no_data),
      cmocka_unit_test(stays_in_the_folder),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
