// SPDX-License-Identifier: Apache-2.0
// The model of a decoder: what its inputs and outputs are for, and its executables.
//
// A cache is an input X.past and an output of the same rest of the name: builders write
// past_key_values.3.key beside present.3.key, exports of transformers past_key_values.3.key
// beside present_key_values.3.key. Both have the full length, so that the output may be made
// where the input lies.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "ir/infer.h"
#include "pestle/model_info.h"
#include "session/decode.h"

static const char* keep(pestle_decoder_t* d, const char* text) {
  return pestle_arena_strdup(&d->arena, text);
}

// --- Names ---

// What |name| has behind |prefix|, or NULL.
static const char* behind(const char* name, const char* prefix) {
  size_t size = strlen(prefix);
  return strncmp(name, prefix, size) ? NULL : name + size;
}

static const char* past_of(const char* name) {
  static const char* const prefixes[] = {"past_key_values", "past_key_value",
                                         "past"};
  for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); ++i) {
    const char* rest = behind(name, prefixes[i]);
    if (rest && (*rest == '.' || *rest == '_')) return rest;
  }
  return NULL;
}

static const char* present_of(const char* name) {
  static const char* const prefixes[] = {"present_key_values",
                                         "present_key_value", "present"};
  for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); ++i) {
    const char* rest = behind(name, prefixes[i]);
    if (rest && (*rest == '.' || *rest == '_')) return rest;
  }
  return NULL;
}

bool pestle_decode_is_cross_pair(const pestle_decoder_t* d, const char* past,
                                 const char* present) {
  const char *a = past_of(past), *b = present_of(present);
  return (a && b && !strcmp(a, b)) ||
         pestle_decode_is_config_cross(d, past, present);
}

// Caches of cross attention are called by what they are of: past_key_cross_0,
// past_key_values.0.encoder.key.
static bool is_cross(const pestle_decoder_t* d, const char* name) {
  return pestle_decode_is_cross(d, name) ||
         (past_of(name) &&
          (strstr(name, "_cross_") || strstr(name, ".encoder.")));
}

static bool is_of_integers(pestle_dtype_t dtype) {
  return dtype == PESTLE_I64 || dtype == PESTLE_I32;
}

// --- Inputs ---

static pestle_status_t is_odd(const decode_input_t* input, const char* what) {
  return PESTLE_ERROR(
      UNSUPPORTED,
      "input '%s' %s: a decoder takes input_ids and attention_mask (integers "
      "[1, any]), position_ids, cache_position, nonpad_kv_seqlen, "
      "write_indices and past_sequence_length (integers [1]), and caches "
      "past_* with all extents but "
      "batch and rows known",
      input->name, what);
}

static pestle_status_t set_matrix(decode_input_t* input, decode_role_t role,
                                  int64_t columns) {
  input->role = role;
  if (input->type.rank != 2 || !is_of_integers(input->type.dtype))
    return is_odd(input, "is not a matrix of integers");
  input->type.dims[0] = 1;
  input->type.dims[1] = columns;
  return NULL;
}

static const char no_extents[] =
    "has extents that are not known, and no genai_config.json beside the model "
    "says its head_size";

static pestle_status_t set_cache(pestle_decoder_t* d, decode_input_t* input,
                                 uint32_t index) {
  pestle_type_t* type = &input->type;
  decode_cache_t* cache = &d->caches[d->cache_count];
  int32_t rows = type->rank - 2;
  if (rows < 1) return is_odd(input, "has too few axes");
  type->dims[0] = 1;
  type->dims[rows] = d->most;
  if (type->dims[rows + 1] == PESTLE_DIM_DYNAMIC && d->config.head_size)
    type->dims[rows + 1] = d->config.head_size;
  for (int32_t i = 0; i < type->rank; ++i) {
    if (!type->dims[i]) return is_odd(input, "has an extent of 0");
    if (type->dims[i] < 0) return is_odd(input, no_extents);
  }
  if (d->config.head_size && type->dims[rows + 1] != d->config.head_size) {
    return PESTLE_ERROR(MALFORMED,
                        "genai_config.json: model.decoder.head_size is %lld, "
                        "and input '%s' has heads of %lld",
                        (long long)d->config.head_size, input->name,
                        (long long)type->dims[rows + 1]);
  }
  *cache = (decode_cache_t){.input = index, .output = UINT32_MAX, .parts = 1};
  for (int32_t i = 1; i < rows; ++i)
    cache->parts *= type->dims[i];
  cache->row_bytes =
      (size_t)type->dims[rows + 1] * pestle_dtype_size(type->dtype);
  input->role = DECODE_CACHE;
  input->cache = d->cache_count++;
  return NULL;
}

static pestle_status_t set_vector(decode_input_t* input, decode_role_t role) {
  input->role = role;
  if (input->type.rank != 1 || !is_of_integers(input->type.dtype))
    return is_odd(input, "is not a vector of integers");
  input->type.dims[0] = 1;
  return NULL;
}

static pestle_status_t set_beams(const pestle_decoder_t* d,
                                 decode_input_t* input) {
  input->role = DECODE_BEAMS;
  if (input->type.rank != 3 || !is_of_integers(input->type.dtype))
    return is_odd(input, "is not [batch, beams, rows] of integers");
  const int64_t dims[3] = {1, 1, d->most};
  memcpy(input->type.dims, dims, sizeof(dims));
  return NULL;
}

static const char hidden_states[] = "encoder_hidden_states";

static pestle_status_t set_input(pestle_decoder_t* d, uint32_t index) {
  decode_input_t* input = &d->inputs[index];
  const char* name = input->name;
  const decode_config_t* c = &d->config;
  if (!strcmp(name, c->input_ids)) return set_matrix(input, DECODE_IDS, 1);
  if (!strcmp(name, c->mask)) return set_matrix(input, DECODE_MASK, d->most);
  if (!strcmp(name, c->position_ids))
    return set_matrix(input, DECODE_POSITIONS, 1);
  if (!strcmp(name, "cache_position"))
    return set_vector(input, DECODE_POSITIONS);
  if (!strcmp(name, "nonpad_kv_seqlen")) return set_vector(input, DECODE_TOTAL);
  if (!strcmp(name, "write_indices")) return set_vector(input, DECODE_FIRST);
  if (!strcmp(name, PESTLE_DECODE_ROWS)) {
    d->has_rows = true;
    return set_vector(input, DECODE_FIRST);
  }
  if (!strcmp(name, "beam_width")) return set_vector(input, DECODE_BEAM_WIDTH);
  if (!strcmp(name, "cache_indirection")) return set_beams(d, input);
  bool is_hidden = !strcmp(name, hidden_states);
  if (is_hidden || is_cross(d, name)) {
    input->role = is_hidden ? DECODE_HIDDEN : DECODE_CROSS;
    input->cache = d->encoder.count++;
    return NULL;
  }
  if (pestle_decode_is_past(d, name) || past_of(name))
    return set_cache(d, input, index);
  return is_odd(input, "is none that is known");
}

static pestle_status_t take_inputs(pestle_decoder_t* d) {
  pestle_function_t* f = pestle_module_entry(d->module);
  d->room = d->most;
  if (!f) return PESTLE_ERROR(MALFORMED, "the model has no function to run");
  size_t count = pestle_function_argument_count(f);
  bool has_ids = false;
  d->input_count = count;
  d->inputs = PESTLE_ARENA_ARRAY(&d->arena, decode_input_t, count + 2);
  d->caches = PESTLE_ARENA_ARRAY(&d->arena, decode_cache_t, count + 1);
  if (!d->inputs || !d->caches) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = pestle_function_argument_name(f, i);
    d->inputs[i] = (decode_input_t){
        .name = keep(d, name ? name : ""),
        .type = pestle_value_type(pestle_function_argument(f, i))};
    if (!d->inputs[i].name) return PESTLE_OOM();
    PESTLE_TRY(set_input(d, i));
    has_ids |= d->inputs[i].role == DECODE_IDS;
    // One of them says which rows of the caches are there.
    d->has_mask |= d->inputs[i].role == DECODE_MASK;
    d->is_told |=
        d->inputs[i].role == DECODE_MASK || d->inputs[i].role == DECODE_TOTAL ||
        d->inputs[i].role == DECODE_FIRST ||
        (d->inputs[i].role == DECODE_POSITIONS && d->inputs[i].type.rank == 1);
  }
  if (has_ids && d->cache_count) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED, "the model has no %s: a decoder needs input_ids and caches",
      !has_ids ? "input_ids" : "input past_*");
}

// --- Outputs ---

// Finds the cache that output |o|, called |name|, is the next of.
static pestle_status_t pair_output(pestle_decoder_t* d, uint32_t o,
                                   const char* name, const char* rest) {
  const char* other = NULL;
  for (size_t c = 0; c < d->cache_count; ++c) {
    const char* input = d->inputs[d->caches[c].input].name;
    const char* past = past_of(input);
    bool is_pair = past && rest && !strcmp(past, rest);
    if (!is_pair && !pestle_decode_is_pair(d, input, name)) continue;
    if (other) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "output '%s' is what both '%s' and '%s' become by "
                          "their names",
                          name, other, input);
    }
    other = input;
    d->caches[c].output = o;
    d->caches[c].present = keep(d, name);
    if (!d->caches[c].present) return PESTLE_OOM();
  }
  for (size_t i = 0; rest && !other && i < d->input_count; ++i) {
    // What a branch without a past would give of cross attention.
    if (d->inputs[i].role == DECODE_CROSS &&
        pestle_decode_is_cross_pair(d, d->inputs[i].name, name)) {
      other = d->inputs[i].name;
    }
  }
  if (!rest || other) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "output '%s' has no input past_* of the same rest of its "
                      "name, so that nothing says what it is the next of",
                      name);
}

static pestle_status_t pair(pestle_decoder_t* d,
                            const pestle_model_info_t* info) {
  d->logits = UINT32_MAX;
  for (uint32_t o = 0; o < info->output_count; ++o) {
    const char *name = info->outputs[o].name, *rest = present_of(name);
    if (!strcmp(name, d->config.logits)) d->logits = o;
    PESTLE_TRY(pair_output(d, o, name, rest));
  }
  for (size_t c = 0; c < d->cache_count; ++c) {
    if (d->caches[c].output != UINT32_MAX) continue;
    return PESTLE_ERROR(
        UNSUPPORTED,
        "input '%s' has no output present* of the same rest of its name, so "
        "that nothing says what the cache becomes",
        d->inputs[d->caches[c].input].name);
  }
  if (d->logits != UINT32_MAX) return NULL;
  return PESTLE_ERROR(UNSUPPORTED, "the model has no output '%s'",
                      d->config.logits);
}

// Whether |type| is what the cache |input| becomes by a model that keeps its length, or by
// one that appends |rows| rows.
static bool is_cache(const pestle_type_t* type, const pestle_type_t* past,
                     int64_t more) {
  bool same = type->dtype == past->dtype && type->rank == past->rank;
  for (int32_t i = 0; same && i < type->rank; ++i)
    same = type->dims[i] == past->dims[i] + (i == type->rank - 2) * more;
  return same;
}

static pestle_status_t check_cache(const pestle_decoder_t* d,
                                   pestle_function_t* f, size_t cache,
                                   const decode_plan_t* plan) {
  uint32_t input = d->caches[cache].input;
  pestle_type_t past = pestle_decode_type(d, input, plan->room);
  past.dims[0] = plan->batch;
  pestle_type_t type =
      pestle_function_returned_type(f, d->caches[cache].output);
  if (is_cache(&type, &past, d->grows ? plan->rows : 0)) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "the cache '%s' is %s and becomes %s for %lld new tokens: a model writes "
      "new rows into it, as GroupQueryAttention and TensorScatter do, or "
      "appends them, all else stays",
      d->inputs[input].name, pestle_type_text(&past).text,
      pestle_type_text(&type).text, (long long)plan->rows);
}

pestle_status_t pestle_decode_check(const pestle_decoder_t* d,
                                    pestle_function_t* f,
                                    const decode_plan_t* plan) {
  for (size_t c = 0; c < d->cache_count; ++c)
    PESTLE_TRY(check_cache(d, f, c, plan));
  pestle_type_t type = pestle_function_returned_type(f, d->logits);
  bool is_taken = type.rank == 3 && type.dims[0] == plan->batch &&
                  type.dims[1] == plan->rows && type.dims[2] > 0 &&
                  pestle_dtype_is(type.dtype, PESTLE_KIND_FLOAT);
  if (!is_taken) {
    return PESTLE_ERROR(
        UNSUPPORTED,
        "output 'logits' is not [1, tokens, words] of floats for %lld tokens",
        (long long)plan->rows);
  }
  return NULL;
}

// --- Opening ---

// The name of the argument that says how many rows caches have.
#define LENGTH "pestle_past_length"

// The branch with a past, if the model has two, and caches that end where a run says, if it
// counts their rows, or what an input of its own says of them.
static pestle_status_t import(pestle_decoder_t* d,
                              pestle_module_t** out_module) {
  float one = 1;
  const pestle_tensor_t number = {.data = &one,
                                  .device = {PESTLE_DEVICE_CPU, 0},
                                  .dtype = pestle_dtype_to_dlpack(PESTLE_F32)};
  const pestle_const_binding_t branch = {PESTLE_DECODE_BRANCH, &number};
  size_t bytes = (d->cache_count + 1) * sizeof(pestle_length_binding_t);
  pestle_length_binding_t* lengths = pestle_alloc(d->allocator, bytes);
  if (!lengths) return PESTLE_OOM();
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_input_t* input = &d->inputs[d->caches[c].input];
    lengths[c] =
        (pestle_length_binding_t){input->name, input->type.rank - 2,
                                  d->counts ? LENGTH : PESTLE_DECODE_ROWS};
  }
  const pestle_import_options_t options = {
      .struct_size = sizeof(options),
      .consts = &branch,
      .const_count = d->has_branch,
      .lengths = lengths,
      .length_count = d->counts ? d->cache_count : d->has_rows};
  pestle_status_t status =
      pestle_import_file(d->context, d->path, &options, out_module);
  pestle_dealloc(d->allocator, lengths, bytes);
  return status;
}

static bool has_branch(const pestle_decoder_t* d) {
  pestle_function_t* f = pestle_module_entry(d->module);
  size_t count = f ? pestle_function_argument_count(f) : 0;
  for (size_t i = 0; i < count; ++i) {
    const char* name = pestle_function_argument_name(f, i);
    if (name && !strcmp(name, PESTLE_DECODE_BRANCH)) return true;
  }
  return false;
}

static pestle_status_t import_again(pestle_decoder_t* d) {
  pestle_module_t* module;
  PESTLE_TRY(import(d, &module));
  pestle_module_release(d->module);
  d->module = module;
  return NULL;
}

pestle_status_t pestle_decode_count_rows(pestle_decoder_t* d) {
  d->counts = true;
  pestle_status_t status = import_again(d);
  if (status) {
    d->counts = false;
    return status;
  }
  d->inputs[d->input_count++] = (decode_input_t){
      .name = LENGTH, .role = DECODE_FIRST, .type = {.dtype = PESTLE_I64}};
  return NULL;
}

static pestle_status_t open_encoder(pestle_decoder_t* d, const char* encoder) {
  if (d->encoder.count && encoder)
    return pestle_decode_open_encoder(d, encoder, d->path);
  if (!d->encoder.count && !encoder) return NULL;
  for (size_t i = 0; i < d->input_count; ++i) {
    const decode_input_t* input = &d->inputs[i];
    if (input->role != DECODE_CROSS && input->role != DECODE_HIDDEN) continue;
    return PESTLE_ERROR(
        UNSUPPORTED,
        "input '%s' is what an encoder gives: say its file "
        "(pestle_decoder_options_t.encoder), or give the folder of both",
        input->name);
  }
  return PESTLE_ERROR(
      UNSUPPORTED,
      "the encoder '%s' is given, but the model has no input of "
      "cross attention (%s, past_*_cross_*, past_*.encoder.*)",
      encoder, hidden_states);
}

pestle_status_t pestle_decode_open(pestle_decoder_t* d, const char* path,
                                   const char* encoder) {
  const pestle_model_info_t* info;
  d->path = keep(d, path);
  if (!d->path) return PESTLE_OOM();
  PESTLE_TRY(import(d, &d->module));
  d->has_branch = has_branch(d);
  if (d->has_branch) PESTLE_TRY(import_again(d));
  PESTLE_TRY(take_inputs(d));
  if (d->has_rows) PESTLE_TRY(import_again(d));
  PESTLE_TRY(pestle_model_info_create(d->context, path, NULL, &info));
  pestle_status_t status = pair(d, info);
  pestle_model_info_release(info);
  if (!status) status = open_encoder(d, encoder);
  return status ? status : pestle_decode_look(d);
}
