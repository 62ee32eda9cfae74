// SPDX-License-Identifier: Apache-2.0
// Truncated and bit-flipped models: each import ends soon, in bounded memory,
// with a status. A module that still imports must verify. The seed is fixed.
// With PESTLE_MODELS set to a folder, its *.onnx files are damaged too.
#include <dirent.h>

#include "base/file.h"
#include "base/mem.h"
#include "onnx_bounded.h"

// |count| truncations and as many copies with one to eight flipped bits.
static void damage(const uint8_t* data, size_t size, int count, uint64_t seed) {
  uint8_t* copy = malloc(size + 1);
  for (int i = 0; i < count; ++i) {
    // Its exact size, so that a sanitizer sees a read beyond the end.
    size_t cut = (size_t)(next_random(&seed) % size);
    uint8_t* part = malloc(cut + 1);
    memcpy(part, data, cut);
    import_damaged(part, cut);
    free(part);
  }
  for (int i = 0; i < count; ++i) {
    memcpy(copy, data, size);
    for (uint64_t flips = 1 + next_random(&seed) % 8; flips; --flips) {
      uint64_t bit = next_random(&seed) % (size * 8);
      copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    import_damaged(copy, size);
  }
  free(copy);
}

// Some of everything: convolution, pool, LSTM, If, shapes, quantisation.
static pb_t broad_model(void) {
  pb_t g = {0}, a = {0}, then_graph = {0}, else_graph = {0};
  static float weights[512];
  for (int i = 0; i < 512; ++i)
    weights[i] = (float)(i % 7) - 3;
  onnx_input(&g, "x", ONNX_FLOAT, "1,2,8,8");
  onnx_input(&g, "c", ONNX_BOOL, "");
  onnx_floats(&g, "w", 4, (const int64_t[]){4, 2, 3, 3}, weights);
  onnx_floats(&g, "b", 1, (const int64_t[]){4}, weights);
  onnx_floats(&g, "lw", 3, (const int64_t[]){1, 8, 4}, weights);
  onnx_floats(&g, "lr", 3, (const int64_t[]){1, 8, 2}, weights);
  onnx_floats(&g, "scale", 0, NULL, weights + 1);
  onnx_int_list(&g, "axes", 1, (const int64_t[]){0});
  onnx_int_list(&g, "rest", 1, (const int64_t[]){-1});
  onnx_int_list(&g, "pads", 8, (const int64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
  onnx_floats(&g, "sizes", 1, (const int64_t[]){4},
              (const float[]){1, 1, 2, 2});
  onnx_attr_text(&a, "mode", "reflect");
  onnx_node(&g, "Pad", "pad", "x,pads", "padded", &a);
  onnx_attr_ints(&a, "kernel_shape", 2, (const int64_t[]){3, 3});
  onnx_attr_ints(&a, "strides", 2, (const int64_t[]){1, 1});
  onnx_node(&g, "Conv", "conv", "padded,w,b", "conv_y", &a);
  onnx_attr_ints(&a, "kernel_shape", 2, (const int64_t[]){2, 2});
  onnx_attr_ints(&a, "strides", 2, (const int64_t[]){2, 2});
  onnx_node(&g, "MaxPool", "pool", "conv_y", "pool_y", &a);
  onnx_attr_text(&a, "mode", "linear");
  onnx_node(&g, "Resize", "up", "pool_y,,sizes", "up_y", &a);
  onnx_attr_ints(&a, "perm", 4, (const int64_t[]){2, 0, 3, 1});
  onnx_node(&g, "Transpose", "move", "pool_y", "moved", &a);
  onnx_node(&g, "Shape", "shape", "moved", "dims", NULL);
  onnx_node(&g, "Gather", "first", "dims,axes", "n", NULL);
  onnx_int_list(&g, "four", 1, (const int64_t[]){4});
  onnx_attr_int(&a, "axis", 0);
  onnx_node(&g, "Concat", "join", "n,rest,four", "target", &a);
  onnx_node(&g, "Reshape", "steps", "moved,target", "seq", NULL);
  onnx_attr_int(&a, "hidden_size", 2);
  onnx_node(&g, "LSTM", "lstm", "seq,lw,lr", "lstm_y", &a);
  onnx_node(&g, "QuantizeLinear", "q", "lstm_y,scale", "q_y", NULL);
  onnx_node(&g, "DequantizeLinear", "dq", "q_y,scale", "dq_y", NULL);
  onnx_node(&then_graph, "Softmax", "soft", "up_y", "then_y", NULL);
  onnx_output(&then_graph, "then_y");
  onnx_node(&else_graph, "Neg", "neg", "up_y", "else_y", NULL);
  onnx_output(&else_graph, "else_y");
  onnx_attr_message(&a, "then_branch", 5, 6, then_graph);
  onnx_attr_message(&a, "else_branch", 5, 6, else_graph);
  onnx_node(&g, "If", "choice", "c", "y", &a);
  onnx_output(&g, "y");
  onnx_output(&g, "dq_y");
  return onnx_model(13, &g);
}

static void survives_damage(void** state) {
  (void)state;
  pb_t model = broad_model();
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  onnx_end(&t);
  for (size_t cut = 0; cut < model.size; ++cut)
    import_damaged(model.data, cut);
  damage(model.data, model.size, 1000, 0x9e3779b97f4a7c15);
  pb_free(&model);
}

// Every byte of a small model at each of its extreme values.
static void survives_every_byte(void** state) {
  (void)state;
  static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
  pb_t model = broad_model();
  for (size_t i = 0; i < model.size; ++i) {
    uint8_t before = model.data[i];
    model.data[i] = values[i % sizeof(values)];
    import_damaged(model.data, model.size);
    model.data[i] = before;
  }
  pb_free(&model);
}

static void survives_damaged_files(void** state) {
  (void)state;
  const char* folder = getenv("PESTLE_MODELS");
  DIR* models = folder ? opendir(folder) : NULL;
  if (!models) skip();
  struct dirent* entry;
  while ((entry = readdir(models))) {
    size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 5, ".onnx") != 0) {
      continue;
    }
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    pestle_mapping_t mapping;
    assert_ok(pestle_file_map(path, &mapping));
    damage(mapping.data, mapping.size, 20, mapping.size);
    pestle_file_unmap(&mapping);
  }
  closedir(models);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(survives_damage),
      cmocka_unit_test(survives_every_byte),
      cmocka_unit_test(survives_damaged_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
