// SPDX-License-Identifier: Apache-2.0
// The attribute `algorithm` of dot_general, read and written.
#include "ir/dot_algorithm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { WORD = 24 };

static const char form[] =
    "lhs_precision_type = %s, rhs_precision_type = %s, accumulation_type = %s, "
    "lhs_component_count = %" PRId64 ", rhs_component_count = %" PRId64
    ", num_primitive_operations = %" PRId64
    ", allow_imprecise_accumulation = %s";
static const char scan[] =
    "lhs_precision_type = %23[^,], rhs_precision_type = %23[^,], "
    "accumulation_type = %23[^,], lhs_component_count = %" SCNd64
    ", rhs_component_count = %" SCNd64 ", num_primitive_operations = %" SCNd64
    ", allow_imprecise_accumulation = %23[a-z]%n";

// --- From a reader ---

static bool word_of(const pestle_generic_value_t* dict, const char* key,
                    char out[WORD]) {
  const pestle_generic_value_t* v = pestle_generic_find(dict, key);
  if (!v || !v->text.size || v->text.size >= WORD) return false;
  memcpy(out, v->text.data, v->text.size);
  out[v->text.size] = 0;
  return true;
}

static int64_t number_of(const pestle_generic_value_t* dict, const char* key) {
  const pestle_generic_value_t* v = pestle_generic_find(dict, key);
  return v ? v->i64 : 1;
}

pestle_status_t pestle_dot_algorithm_text(pestle_arena_t* arena,
                                          const pestle_generic_value_t* dict,
                                          const char** out_text) {
  char lhs[WORD], rhs[WORD], sum[WORD], text[512];
  if (!word_of(dict, "lhs_precision_type", lhs) ||
      !word_of(dict, "rhs_precision_type", rhs) ||
      !word_of(dict, "accumulation_type", sum)) {
    return PESTLE_ERROR(MALFORMED,
                        "'algorithm' needs 'lhs_precision_type', "
                        "'rhs_precision_type' and 'accumulation_type'");
  }
  const pestle_generic_value_t* imprecise =
      pestle_generic_find(dict, "allow_imprecise_accumulation");
  (void)snprintf(text, sizeof text, form, lhs, rhs, sum,
                 number_of(dict, "lhs_component_count"),
                 number_of(dict, "rhs_component_count"),
                 number_of(dict, "num_primitive_operations"),
                 imprecise && imprecise->b ? "true" : "false");
  pestle_dot_algorithm_t read;
  PESTLE_TRY(pestle_dot_algorithm_read(text, &read));
  *out_text = pestle_arena_strndup(arena, pestle_str(text));
  return *out_text ? NULL : PESTLE_OOM();
}

// --- From text ---

static pestle_status_t read_type(const char* word, pestle_dtype_t* out,
                                 bool* out_tf32) {
  *out_tf32 = !strcmp(word, "tf32");
  *out = *out_tf32 ? PESTLE_F32 : pestle_dtype_from_name(word);
  if (pestle_dtype_is(*out, PESTLE_KIND_FLOAT | PESTLE_KIND_INT)) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "'algorithm' names '%s', which is no element type of "
                      "numbers and not tf32",
                      word);
}

pestle_status_t pestle_dot_algorithm_read(const char* text,
                                          pestle_dot_algorithm_t* out) {
  char word[4][WORD];
  int64_t parts[2], products;
  int end = 0;
  bool sum_tf32;
  // Seven numbers and words, and where they end.
  int read = sscanf(text, scan, word[0], word[1], word[2], &parts[0], &parts[1],
                    &products, word[3], &end);
  if (read != 7 || text[end] ||
      (strcmp(word[3], "true") != 0 && strcmp(word[3], "false") != 0)) {
    return PESTLE_ERROR(MALFORMED,
                        "'algorithm' is '%s'; it is written as "
                        "#stablehlo.dot_algorithm, between the brackets",
                        text);
  }
  out->products = products;
  for (size_t i = 0; i < 2; ++i)
    PESTLE_TRY(read_type(word[i], &out->side[i], &out->is_tf32[i]));
  PESTLE_TRY(read_type(word[2], &out->sum, &sum_tf32));
  bool bf16 = out->side[0] == PESTLE_BF16 && out->side[1] == PESTLE_BF16;
  bool tf32 = out->is_tf32[0] && out->is_tf32[1];
  bool known = products == 1 || (products == 3 && (bf16 || tf32)) ||
               (bf16 && (products == 6 || products == 9));
  if (known && !sum_tf32 && parts[0] > 0 && parts[1] > 0) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "'algorithm' asks for %" PRId64
      " products of %s and %s, summed as %s; known are one product of any two "
      "types, 3, 6 or 9 of bf16 and 3 of tf32, summed in an element type. "
      "Without 'algorithm' operands are multiplied as they are",
      products, word[0], word[1], word[2]);
}

bool pestle_dot_algorithm_of(const pestle_node_t* dot,
                             pestle_dot_algorithm_t* out) {
  const char* text = PESTLE_NODE_STR(dot, algorithm);
  if (!text || !*text) return false;
  pestle_status_t status = pestle_dot_algorithm_read(text, out);
  pestle_status_release(status);
  return !status;
}

bool pestle_dot_is_tf32(const pestle_node_t* dot) {
  pestle_dot_algorithm_t how;
  return pestle_node_operand(dot, 0)->type->dtype == PESTLE_F32 &&
         pestle_node_operand(dot, 1)->type->dtype == PESTLE_F32 &&
         pestle_dot_algorithm_of(dot, &how) && how.products == 1 &&
         how.is_tf32[0] && how.is_tf32[1];
}
