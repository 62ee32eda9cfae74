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

static const char* const part[] = {
    "lhs_precision_type",          "rhs_precision_type",
    "accumulation_type",           "lhs_component_count",
    "rhs_component_count",         "num_primitive_operations",
    "allow_imprecise_accumulation"};
enum { TYPES = 3, NUMBERS = 6, PARTS = sizeof(part) / sizeof(*part) };

// Marks the part that |e| is in |seen|.
static pestle_status_t check_key(const pestle_generic_entry_t* e,
                                 unsigned* seen) {
  for (size_t i = 0; i < PARTS; ++i) {
    if (!pestle_str_equal_c(e->key, part[i])) continue;
    if (*seen & 1u << i)
      return PESTLE_ERROR(MALFORMED, "'algorithm' has '%s' twice", part[i]);
    *seen |= 1u << i;
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED, "'algorithm' has no part '%.*s'",
                      PESTLE_STR_ARG(e->key));
}

static pestle_status_t find(const pestle_generic_value_t* dict, size_t i,
                            const pestle_generic_value_t** out) {
  *out = pestle_generic_find(dict, part[i]);
  if (*out) return NULL;
  return PESTLE_ERROR(MALFORMED, "'algorithm' needs '%s'", part[i]);
}

static pestle_status_t word_of(const pestle_generic_value_t* dict, size_t i,
                               char out[WORD]) {
  const pestle_generic_value_t* v;
  PESTLE_TRY(find(dict, i, &v));
  bool is_type = v->kind == PESTLE_GENERIC_TYPE ||
                 v->kind == PESTLE_GENERIC_OPAQUE ||
                 v->kind == PESTLE_GENERIC_WORD;
  if (!is_type || !v->text.size || v->text.size >= WORD)
    return PESTLE_ERROR(MALFORMED, "'%s' of 'algorithm' must be a type",
                        part[i]);
  memcpy(out, v->text.data, v->text.size);
  out[v->text.size] = 0;
  return NULL;
}

static pestle_status_t number_of(const pestle_generic_value_t* dict, size_t i,
                                 pestle_generic_kind_t kind, int64_t* out) {
  const pestle_generic_value_t* v;
  PESTLE_TRY(find(dict, i, &v));
  if (v->kind != kind)
    return PESTLE_ERROR(MALFORMED, "'%s' of 'algorithm' must be %s", part[i],
                        kind == PESTLE_GENERIC_INT ? "a number" : "a boolean");
  *out = kind == PESTLE_GENERIC_INT ? v->i64 : v->b;
  return NULL;
}

pestle_status_t pestle_dot_algorithm_text(pestle_arena_t* arena,
                                          const pestle_generic_value_t* dict,
                                          const char** out_text) {
  char type[TYPES][WORD], text[512];
  int64_t n[PARTS];
  unsigned seen = 0;
  if (dict->kind != PESTLE_GENERIC_DICT)
    return PESTLE_ERROR(MALFORMED,
                        "'algorithm' must be #stablehlo.dot_algorithm<..>");
  for (const pestle_generic_entry_t* e = dict->entries; e; e = e->next)
    PESTLE_TRY(check_key(e, &seen));
  for (size_t i = 0; i < TYPES; ++i)
    PESTLE_TRY(word_of(dict, i, type[i]));
  for (size_t i = TYPES; i < PARTS; ++i)
    PESTLE_TRY(number_of(dict, i,
                         i < NUMBERS ? PESTLE_GENERIC_INT : PESTLE_GENERIC_BOOL,
                         &n[i]));
  (void)snprintf(text, sizeof text, form, type[0], type[1], type[2], n[3], n[4],
                 n[5], n[6] ? "true" : "false");
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
  if (pestle_dtype_is(*out, PESTLE_KIND_FLOAT)) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "'algorithm' names '%s', which is no type of floats and "
                      "not tf32",
                      word);
}

// How many parts an operand is the sum of: StableHLO's text says it, JAX and XLA leave 1.
static bool fits_products(int64_t parts, int64_t products) {
  return parts == 1 || (products == 3 && parts == 2) ||
         (products > 3 && parts == 3);
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
  known &= parts[0] == parts[1] && fits_products(parts[0], products);
  if (known && !sum_tf32) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "'algorithm' asks for %" PRId64 " products of %s and %s in %" PRId64
      " and %" PRId64
      " parts, summed as %s; known are one product of any two types, 3, 6 or 9 "
      "of bf16 and 3 of tf32, in as many parts as these take or 1, summed in "
      "an element type. Without 'algorithm' operands are multiplied as they "
      "are",
      products, word[0], word[1], parts[0], parts[1], word[2]);
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
