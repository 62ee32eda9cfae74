// SPDX-License-Identifier: Apache-2.0
// Encoders of speech models. One executable makes, of a slot's features, all that the decoder
// reads of them: hidden states, and the keys and values of its cross attention, which the
// encoder gives, or the decoder's branch without a past (optimum's merged models) makes of the
// hidden states. A token reads them where they lie.
//
//   features -> encoder -> hidden states -> decoder, use_cache_branch 0 -> present.0.encoder.key
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "base/thread.h"
#include "ir/graph.h"
#include "ir/infer.h"
#include "pestle/model_info.h"
#include "runtime/view.h"
#include "session/decode.h"

// --- A model that is read for its results ---

typedef struct part_t {
  pestle_module_t* module;  // with types
  const pestle_model_info_t* info;
} part_t;

static void end_part(part_t* p) {
  pestle_module_release(p->module);
  if (p->info) pestle_model_info_release(p->info);
}

// The output called |name|, or what |input| of the decoder becomes; -1: there is none.
static int64_t find_output(const pestle_decoder_t* d, const part_t* p,
                           const char* name, const char* input) {
  for (size_t i = 0; p->info && i < p->info->output_count; ++i) {
    const char* own = p->info->outputs[i].name;
    if (name ? !strcmp(own, name) : pestle_decode_is_cross_pair(d, input, own))
      return (int64_t)i;
  }
  return -1;
}

static pestle_type_t result_of(const part_t* p, int64_t output) {
  return pestle_function_returned_type(pestle_module_entry(p->module),
                                       (size_t)output);
}

// --- The encoder ---

static pestle_status_t check_features(pestle_function_t* f,
                                      pestle_type_t* type) {
  size_t count = f ? pestle_function_argument_count(f) : 0;
  if (count != 1) {
    return PESTLE_ERROR(
        UNSUPPORTED,
        "the encoder has %zu inputs: one is known, the features "
        "[1, mels, frames]",
        count);
  }
  *type = pestle_value_type(pestle_function_argument(f, 0));
  if (type->rank && type->dims[0] == PESTLE_DIM_DYNAMIC) type->dims[0] = 1;
  if (!pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT) || type->rank < 2) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the encoder's input is %s, not floats [1, mels, "
                        "frames]",
                        pestle_type_text(type).text);
  }
  if (pestle_type_is_static(type) && type->dims[0] == 1) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "the encoder's input is %s: all its extents but the batch, "
      "which is 1, must be fixed, as exporters of Whisper fix "
      "them",
      pestle_type_text(type).text);
}

static pestle_status_t open_encoder(pestle_decoder_t* d, const char* path,
                                    part_t* out) {
  pestle_module_t* module;
  PESTLE_TRY(pestle_import_file(d->context, path, NULL, &module));
  pestle_status_t status =
      pestle_model_info_create(d->context, path, NULL, &out->info);
  if (!status)
    status = check_features(pestle_module_entry(module), &d->encoder.features);
  if (!status) {
    status =
        pestle_module_specialize(module, &d->encoder.features, 1, &out->module);
  }
  pestle_module_release(module);
  return status;
}

static int64_t hidden_states_of(const pestle_decoder_t* d,
                                const part_t* encoder) {
  const char* const names[] = {d->config.hidden, "encoder_hidden_states",
                               "last_hidden_state", "hidden_states"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i) {
    int64_t output = names[i] ? find_output(d, encoder, names[i], NULL) : -1;
    if (output >= 0) return output;
  }
  return -1;
}

// --- The decoder's branch without a past ---

// All inputs but the hidden states as zeros.
static pestle_status_t import_first(pestle_decoder_t* d, const char* path,
                                    const pestle_type_t* hidden,
                                    pestle_module_t** out_module) {
  float zero = 0;
  const pestle_tensor_t number = {.data = &zero,
                                  .device = {PESTLE_DEVICE_CPU, 0},
                                  .dtype = pestle_dtype_to_dlpack(PESTLE_F32)};
  size_t bytes = (d->input_count + 1) * sizeof(pestle_const_binding_t);
  pestle_const_binding_t* consts = pestle_alloc(d->allocator, bytes);
  pestle_module_t* module = NULL;
  size_t count = 0;
  if (!consts) return PESTLE_OOM();
  for (size_t i = 0; i < d->input_count; ++i) {
    if (d->inputs[i].role != DECODE_HIDDEN)
      consts[count++] = (pestle_const_binding_t){d->inputs[i].name, &number};
  }
  consts[count++] = (pestle_const_binding_t){PESTLE_DECODE_BRANCH, &number};
  const pestle_import_options_t options = {
      .struct_size = sizeof(options), .consts = consts, .const_count = count};
  pestle_status_t status =
      pestle_import_file(d->context, path, &options, &module);
  pestle_dealloc(d->allocator, consts, bytes);
  if (!status) status = pestle_module_specialize(module, hidden, 1, out_module);
  pestle_module_release(module);
  return pestle_status_annotate(
      status, "while importing the decoder's branch without a past");
}

// --- Both as one ---

// Where what the decoder's input |i| reads comes from: a result of part 0 or 1.
static pestle_status_t find_source(const pestle_decoder_t* d,
                                   const part_t* parts, size_t i,
                                   pestle_link_source_t* out) {
  const decode_input_t* input = &d->inputs[i];
  for (int32_t p = 0; p < 2; ++p) {
    int64_t output = input->role == DECODE_HIDDEN
                         ? (p ? -1 : hidden_states_of(d, &parts[0]))
                         : find_output(d, &parts[p], NULL, input->name);
    if (output < 0 || !parts[p].module) continue;
    *out = (pestle_link_source_t){p, (uint32_t)output};
    return NULL;
  }
  return PESTLE_ERROR(
      UNSUPPORTED,
      "nothing makes the decoder's input '%s': the encoder has no output of "
      "the "
      "same name with present for past, and the decoder no branch "
      "(" PESTLE_DECODE_BRANCH ") that makes it of encoder_hidden_states",
      input->name);
}

static bool needs_first(const pestle_decoder_t* d, const part_t* encoder) {
  bool has_hidden = false, lacks = false;
  for (size_t i = 0; i < d->input_count; ++i) {
    has_hidden |= d->inputs[i].role == DECODE_HIDDEN;
    lacks |= d->inputs[i].role == DECODE_CROSS &&
             find_output(d, encoder, NULL, d->inputs[i].name) < 0;
  }
  return has_hidden && lacks && d->has_branch;
}

static pestle_status_t link(pestle_decoder_t* d, const part_t* parts,
                            pestle_module_t** out_module) {
  size_t count = d->encoder.count;
  pestle_link_source_t* results =
      pestle_alloc(d->allocator, (count + 1) * sizeof(*results));
  if (!results) return PESTLE_OOM();
  const pestle_link_source_t given = {PESTLE_LINK_ARGUMENT, 0};
  const pestle_link_source_t hidden = {
      0, (uint32_t)hidden_states_of(d, &parts[0])};
  const pestle_link_part_t both[2] = {{parts[0].module, &given, 1},
                                      {parts[1].module, &hidden, 1}};
  pestle_status_t status = NULL;
  for (size_t i = 0; !status && i < d->input_count; ++i) {
    decode_input_t* input = &d->inputs[i];
    if (input->role != DECODE_CROSS && input->role != DECODE_HIDDEN) continue;
    pestle_link_source_t* from = &results[input->cache];
    status = find_source(d, parts, i, from);
    if (!status) input->type = result_of(&parts[from->part], from->index);
    if (!status)
      d->encoder.sizes[input->cache] = (size_t)pestle_type_bytes(&input->type);
  }
  if (!status) {
    status = pestle_module_link(both, parts[1].module ? 2 : 1, results, count,
                                out_module);
  }
  pestle_dealloc(d->allocator, results, (count + 1) * sizeof(*results));
  return status;
}

static pestle_status_t make(pestle_decoder_t* d, const char* path,
                            const char* decoder, part_t* parts,
                            pestle_module_t** out_module) {
  PESTLE_TRY(open_encoder(d, path, &parts[0]));
  if (needs_first(d, &parts[0])) {
    int64_t output = hidden_states_of(d, &parts[0]);
    if (output < 0) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "the encoder has no output of hidden states, which "
                          "the decoder's branch without a past reads");
    }
    pestle_type_t hidden = result_of(&parts[0], output);
    PESTLE_TRY(import_first(d, decoder, &hidden, &parts[1].module));
    PESTLE_TRY(
        pestle_model_info_create(d->context, decoder, NULL, &parts[1].info));
  }
  return link(d, parts, out_module);
}

pestle_status_t pestle_decode_open_encoder(pestle_decoder_t* d,
                                           const char* path,
                                           const char* decoder) {
  part_t parts[2] = {{NULL, NULL}, {NULL, NULL}};
  pestle_module_t* module = NULL;
  pestle_plan_t* plan = NULL;
  int64_t begin = pestle_clock_ns();
  size_t count = d->encoder.count;
  d->encoder.sizes = PESTLE_ARENA_ARRAY(&d->arena, size_t, count + 1);
  d->encoder.results =
      PESTLE_ARENA_ARRAY(&d->arena, pestle_buffer_t*, count + 1);
  if (!d->encoder.sizes || !d->encoder.results) return PESTLE_OOM();
  pestle_status_t status = make(d, path, decoder, parts, &module);
  if (!status)
    status = pestle_compile(d->context, module, d->device, &d->compile, &plan);
  if (!status) {
    status = pestle_executable_create(d->context, plan, d->device,
                                      &d->encoder.executable);
  }
  pestle_plan_release(plan);
  pestle_module_release(module);
  end_part(&parts[0]);
  end_part(&parts[1]);
  ++d->compiles;
  d->compile_ns += pestle_clock_ns() - begin;
  return pestle_status_annotate(status, "in the encoder '%s'", path);
}

// --- Features ---

void pestle_decode_forget_features(const pestle_decoder_t* d,
                                   decode_slot_t* slot) {
  for (size_t i = 0; slot->given && i < d->encoder.count; ++i) {
    pestle_buffer_release(slot->given[i]);
    slot->given[i] = NULL;
  }
  slot->is_encoded = false;
}

void pestle_decode_share_features(const pestle_decoder_t* d,
                                  const decode_slot_t* from,
                                  decode_slot_t* to) {
  pestle_decode_forget_features(d, to);
  for (size_t i = 0; from->is_encoded && i < d->encoder.count; ++i) {
    pestle_buffer_retain(from->given[i]);
    to->given[i] = from->given[i];
  }
  to->is_encoded = from->is_encoded;
}

pestle_status_t pestle_decode_check_features(const pestle_decoder_t* d,
                                             const decode_slot_t* slot) {
  if (!d->encoder.executable || slot->is_encoded) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "slot %zu has no features: pestle_decoder_encode() comes "
                      "before its tokens",
                      (size_t)(slot - d->slots));
}

// |features| may lack the batch.
static pestle_status_t check_view(const pestle_decoder_t* d,
                                  const pestle_tensor_t* features) {
  const pestle_type_t* type = &d->encoder.features;
  int32_t skipped = features->ndim == type->rank - 1;
  bool fits = features->data && features->ndim + skipped == type->rank &&
              pestle_dtype_from_dlpack(features->dtype) == type->dtype;
  for (int32_t i = 0; fits && i < features->ndim; ++i)
    fits = features->shape[i] == type->dims[i + skipped];
  if (fits && features->device.device_type == PESTLE_DEVICE_CPU &&
      pestle_view_is_dense(features)) {
    return NULL;
  }
  pestle_type_t got = {.dtype = pestle_dtype_from_dlpack(features->dtype)};
  for (int32_t i = 0; i < features->ndim && got.rank < PESTLE_MAX_RANK; ++i)
    got.dims[got.rank++] = features->shape[i];
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "the features are %s: the encoder takes %s, of the host and without gaps",
      pestle_type_text(&got).text, pestle_type_text(type).text);
}

static pestle_status_t encode(pestle_decoder_t* d, decode_slot_t* slot,
                              const pestle_tensor_t* features) {
  size_t size = (size_t)pestle_type_bytes(&d->encoder.features);
  pestle_buffer_t* given;
  PESTLE_TRY(pestle_buffer_create(d->device, size, &given));
  pestle_status_t status =
      pestle_buffer_write(given, 0, pestle_view_data(features), size);
  const pestle_buffer_view_t view = {.buffer = given};
  const pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                                .threads = d->threads};
  memset(d->encoder.results, 0, d->encoder.count * sizeof(pestle_buffer_t*));
  if (!status) {
    status = pestle_executable_run_buffers(d->encoder.executable, NULL, &view,
                                           1, d->encoder.results,
                                           d->encoder.count, &options);
  }
  pestle_buffer_release(given);
  if (status) return status;
  pestle_decode_forget_features(d, slot);
  memcpy(slot->given, d->encoder.results,
         d->encoder.count * sizeof(pestle_buffer_t*));
  slot->is_encoded = true;
  return NULL;
}

pestle_status_t pestle_decoder_encode(pestle_decoder_t* decoder, size_t slot,
                                      const pestle_tensor_t* features) {
  PESTLE_REQUIRE(decoder && features, "a decoder and features");
  decode_slot_t* s;
  PESTLE_TRY(pestle_decode_slot(decoder, slot, &s));
  if (!decoder->encoder.executable) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the model has no encoder to give features to "
                        "(pestle_decoder_options_t.encoder)");
  }
  if (s->length) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "slot %zu has %lld tokens of other features: cut it at "
                        "0 first",
                        slot, (long long)s->length);
  }
  PESTLE_TRY(check_view(decoder, features));
  return encode(decoder, s, features);
}
