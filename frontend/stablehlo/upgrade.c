// SPDX-License-Identifier: Apache-2.0
// vhlo gives every attribute, those that are absent in StableHLO as a value that
// says nothing, and takes what is a structure there apart:
//
//   channel_id = 1                          channel_handle = <handle = 1, type = 0>
//   operand_layouts = [], result_layouts = []      neither
//   lhs_precision_type = tf32, ..                  algorithm = <..>
#include <string.h>

#include "base/mem.h"
#include "frontend/stablehlo/forms.h"

typedef pestle_generic_value_t value_t;
typedef pestle_generic_entry_t entry_t;

// --- Entries ---

static value_t* find(value_t* dict, const char* key) {
  for (entry_t* e = dict->entries; e; e = e->next) {
    if (pestle_str_equal_c(e->key, key)) return &e->value;
  }
  return NULL;
}

// Takes |key| out of |dict|; false when it is not there.
static bool take(value_t* dict, const char* key, entry_t** out) {
  entry_t** place = &dict->entries;
  while (*place && !pestle_str_equal_c((*place)->key, key))
    place = &(*place)->next;
  if (!*place) return false;
  if (out) *out = *place;
  *place = (*place)->next;
  --dict->entry_count;
  return true;
}

static void put(value_t* dict, entry_t* e, const char* key) {
  e->key = pestle_str(key);
  e->next = dict->entries;
  dict->entries = e;
  ++dict->entry_count;
}

static bool is_empty(const value_t* value) {
  return (value->kind == PESTLE_GENERIC_LIST && !value->entry_count) ||
         (value->kind == PESTLE_GENERIC_ELEMENTS &&
          !pestle_type_count(&value->elements.type)) ||
         (value->kind == PESTLE_GENERIC_STRING && !value->text.size);
}

static void drop_empty(value_t* dict, const char* key) {
  const value_t* value = find(dict, key);
  if (value && is_empty(value)) (void)take(dict, key, NULL);
}

// --- What is joined ---

static pestle_status_t join_channel(pestle_arena_t* arena, value_t* dict) {
  entry_t *handle, *type = NULL;
  if (!take(dict, "channel_id", &handle)) return NULL;
  (void)take(dict, "channel_type", &type);
  bool none = handle->value.kind == PESTLE_GENERIC_INT && !handle->value.i64;
  if (none && !type) return NULL;
  if (!type) {
    type = PESTLE_ARENA_NEW(arena, entry_t);
    if (!type) return PESTLE_OOM();
    type->value.kind = PESTLE_GENERIC_INT;
  }
  entry_t* channel = PESTLE_ARENA_NEW(arena, entry_t);
  if (!channel) return PESTLE_OOM();
  channel->value.kind = PESTLE_GENERIC_DICT;
  put(&channel->value, type, "type");
  put(&channel->value, handle, "handle");
  put(dict, channel, "channel_handle");
  return NULL;
}

// Type none says that there is no algorithm.
static pestle_status_t join_algorithm(pestle_arena_t* arena, value_t* dict) {
  static const char* const parts[] = {
      "lhs_precision_type",          "rhs_precision_type",
      "accumulation_type",           "lhs_component_count",
      "rhs_component_count",         "num_primitive_operations",
      "allow_imprecise_accumulation"};
  enum { PARTS = sizeof(parts) / sizeof(*parts) };
  const value_t* first = find(dict, parts[0]);
  if (!first) return NULL;
  bool none = pestle_str_equal_c(first->text, "none");
  entry_t* algorithm = PESTLE_ARENA_NEW(arena, entry_t);
  if (!algorithm) return PESTLE_OOM();
  algorithm->value.kind = PESTLE_GENERIC_DICT;
  for (size_t i = PARTS; i-- > 0;) {
    entry_t* part;
    if (take(dict, parts[i], &part)) put(&algorithm->value, part, parts[i]);
  }
  if (!none) put(dict, algorithm, "algorithm");
  return NULL;
}

// Dimension numbers, where what they are is built of other ops (ir/built.h) that
// ask for them as StableHLO writes them.
static pestle_status_t join_gather(pestle_arena_t* arena, value_t* dict) {
  static const char* const parts[] = {
      "index_vector_dim",      "start_indices_batching_dims",
      "operand_batching_dims", "start_index_map",
      "collapsed_slice_dims",  "offset_dims"};
  entry_t *numbers = PESTLE_ARENA_NEW(arena, entry_t), *part;
  if (!numbers) return PESTLE_OOM();
  numbers->value.kind = PESTLE_GENERIC_DICT;
  for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); ++i) {
    if (take(dict, parts[i], &part)) put(&numbers->value, part, parts[i]);
  }
  if (numbers->value.entry_count) put(dict, numbers, "dimension_numbers");
  return NULL;
}

static pestle_status_t take_number(value_t* dict, const char* key,
                                   int64_t* out) {
  entry_t* e;
  if (take(dict, key, &e) && e->value.kind == PESTLE_GENERIC_INT) {
    *out = e->value.i64;
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED, "expected attribute '%s', an integer", key);
}

static pestle_status_t take_axes(pestle_arena_t* arena, value_t* dict,
                                 const char* key, pestle_generic_conv_t* conv,
                                 size_t side) {
  entry_t* e;
  pestle_i64s_t axes = {NULL, 0};
  pestle_generic_t g = {.arena = arena};
  if (take(dict, key, &e) && !is_empty(&e->value)) {
    PESTLE_TRY(pestle_generic_i64s(&g, &e->value, &axes));
  }
  if (axes.count > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(MALFORMED, "attribute '%s' has too many axes", key);
  }
  conv->side[side].count = axes.count;
  for (size_t i = 0; i < axes.count; ++i)
    conv->side[side].space[i] = axes.data[i];
  return NULL;
}

static pestle_status_t join_convolution(pestle_arena_t* arena, value_t* dict) {
  static const char* const keys[3][3] = {
      {"input_batch_dimension", "input_feature_dimension",
       "input_spatial_dimensions"},
      {"kernel_input_feature_dimension", "kernel_output_feature_dimension",
       "kernel_spatial_dimensions"},
      {"output_batch_dimension", "output_feature_dimension",
       "output_spatial_dimensions"}};
  if (!find(dict, keys[0][0])) return NULL;
  entry_t* numbers = PESTLE_ARENA_NEW(arena, entry_t);
  pestle_generic_conv_t* conv = PESTLE_ARENA_NEW(arena, pestle_generic_conv_t);
  if (!numbers || !conv) return PESTLE_OOM();
  for (size_t i = 0; i < 3; ++i) {
    PESTLE_TRY(take_number(dict, keys[i][0], &conv->side[i].first));
    PESTLE_TRY(take_number(dict, keys[i][1], &conv->side[i].second));
    PESTLE_TRY(take_axes(arena, dict, keys[i][2], conv, i));
  }
  numbers->value.kind = PESTLE_GENERIC_CONV;
  numbers->value.conv = conv;
  put(dict, numbers, "dimension_numbers");
  return NULL;
}

// The first form of dynamic_conv has padding twice: what is written of nothing is
// left out, the operand counts.
static pestle_status_t drop_zeros(pestle_arena_t* arena, value_t* dict,
                                  const char* key) {
  const value_t* value = find(dict, key);
  pestle_i64s_t numbers = {NULL, 0};
  pestle_generic_t g = {.arena = arena};
  if (!value) return NULL;
  if (!is_empty(value)) PESTLE_TRY(pestle_generic_i64s(&g, value, &numbers));
  for (size_t i = 0; i < numbers.count; ++i) {
    if (numbers.data[i]) return NULL;
  }
  (void)take(dict, key, NULL);
  return NULL;
}

static void unflag(value_t* dict, const char* key) {
  value_t* value = find(dict, key);
  if (!value || value->kind != PESTLE_GENERIC_BOOL) return;
  if (!value->b)
    (void)take(dict, key, NULL);
  else
    value->kind = PESTLE_GENERIC_UNIT;
}

// Layouts are given for all tensors or for none.
static void drop_layouts(value_t* dict) {
  const value_t* in = find(dict, "operand_layouts");
  const value_t* out = find(dict, "result_layouts");
  if (!in || !out || !is_empty(in) || !is_empty(out)) return;
  (void)take(dict, "operand_layouts", NULL);
  (void)take(dict, "result_layouts", NULL);
}

// --- Text ---

// What a custom call and a composite keep of a dictionary is its text.
static pestle_status_t write_out(pestle_bytecode_decoder_t* d, value_t* dict,
                                 const char* key) {
  value_t* value = find(dict, key);
  if (!value || value->kind != PESTLE_GENERIC_DICT) return NULL;
  return pestle_bytecode_attribute_text(d, value, &value->text);
}

pestle_status_t pestle_bytecode_upgrade(pestle_bytecode_decoder_t* d,
                                        pestle_arena_t* arena,
                                        const pestle_bytecode_form_t* form,
                                        value_t* dict) {
  if (!strcmp(form->name, "stablehlo.custom_call")) {
    drop_layouts(dict);
    drop_empty(dict, "result_tilings");
    drop_empty(dict, "called_computations");
    drop_empty(dict, "output_operand_aliases");
    PESTLE_TRY(write_out(d, dict, "backend_config"));
    PESTLE_TRY(write_out(d, dict, "mhlo.backend_config"));
  }
  if (!strcmp(form->name, "stablehlo.composite")) {
    PESTLE_TRY(write_out(d, dict, "composite_attributes"));
  }
  if (!strcmp(form->name, "stablehlo.dynamic_gather")) {
    PESTLE_TRY(join_gather(arena, dict));
  }
  if (!strcmp(form->name, "stablehlo.dynamic_conv")) {
    PESTLE_TRY(join_convolution(arena, dict));
    PESTLE_TRY(drop_zeros(arena, dict, "padding"));
  }
  PESTLE_TRY(join_channel(arena, dict));
  PESTLE_TRY(join_algorithm(arena, dict));
  unflag(dict, "use_global_device_ids");
  drop_empty(dict, "known_expanding_dimensions");
  drop_empty(dict, "known_nonexpanding_dimensions");
  drop_empty(dict, "source_target_pairs");
  return NULL;
}
