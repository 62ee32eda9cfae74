// SPDX-License-Identifier: Apache-2.0
// Logits of a token on a device other than a CPU: they stay there until somebody asks for
// them. Behind the model for one token a chooser is linked, which finds the greatest of them
// and its place, so that the likeliest token is eight bytes to read.
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "ir/infer.h"
#include "session/decode.h"

// --- The chooser ---

// A function of the logits %x: the place of the greatest, the first of equal ones, and its
// bits as f32, which are a NaN where any of them is.
static void put_chooser(const pestle_decoder_t* d, pestle_strbuf_t* text) {
  const pestle_type_t given = {d->logits_dtype, 3, {1, 1, d->words}};
  pestle_type_t wide = given, place = given;
  wide.dtype = PESTLE_F32;
  place.dtype = PESTLE_I32;
  char types[3][64];
  const pestle_type_t* all[3] = {&given, &wide, &place};
  for (int i = 0; i < 3; ++i)
    memcpy(types[i], pestle_type_text(all[i]).text, sizeof(types[i]));
  long long words = (long long)d->words;
  const char *from = types[0], *f = types[1], *at = types[2];
  pestle_strbuf_appendf(
      text,
      "func.func public @main(%%g: %s) -> tensor<2xi32> {\n"
      "%%x = stablehlo.convert %%g : (%s) -> %s\n"
      "%%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "%%m = stablehlo.reduce(%%x init: %%low) applies stablehlo.maximum "
      "across "
      "dimensions = [0, 1, 2] : (%s, tensor<f32>) -> tensor<f32>\n"
      "%%b = stablehlo.broadcast_in_dim %%m, dims = [] : (tensor<f32>) -> %s\n",
      from, from, f, f, f);
  pestle_strbuf_appendf(
      text,
      "%%e = stablehlo.compare EQ, %%x, %%b, FLOAT : (%s, %s) -> "
      "tensor<1x1x%lldxi1>\n"
      "%%i = stablehlo.iota dim = 2 : %s\n"
      "%%w = stablehlo.constant dense<%lld> : %s\n"
      "%%s = stablehlo.select %%e, %%i, %%w : tensor<1x1x%lldxi1>, %s\n"
      "%%n = stablehlo.constant dense<%lld> : tensor<i32>\n"
      "%%d = stablehlo.reduce(%%s init: %%n) applies stablehlo.minimum across "
      "dimensions = [0, 1, 2] : (%s, tensor<i32>) -> tensor<i32>\n",
      f, f, words, at, words, at, words, at, words, at);
  pestle_strbuf_append_c(
      text,
      "%mb = stablehlo.bitcast_convert %m : (tensor<f32>) -> tensor<i32>\n"
      "%r0 = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>\n"
      "%r1 = stablehlo.reshape %mb : (tensor<i32>) -> tensor<1xi32>\n"
      "%r = stablehlo.concatenate %r0, %r1, dim = 0 : (tensor<1xi32>, "
      "tensor<1xi32>) -> tensor<2xi32>\n"
      "return %r : tensor<2xi32>\n}\n");
}

pestle_status_t pestle_decode_make_chooser(const pestle_decoder_t* d,
                                           pestle_module_t** out_module) {
  pestle_strbuf_t text;
  *out_module = NULL;
  pestle_strbuf_init(d->allocator, &text);
  put_chooser(d, &text);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    status =
        pestle_module_parse(d->context, text.data, text.size, NULL, out_module);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

// --- What stays on the device ---

void pestle_decode_drop(decode_slot_t* slot) {
  pestle_buffer_release(slot->far_logits);
  pestle_buffer_release(slot->far_choice);
  slot->far_logits = slot->far_choice = NULL;
}

pestle_status_t pestle_decode_fetch(const pestle_decoder_t* d,
                                    decode_slot_t* slot) {
  if (!slot->far_logits) return NULL;
  size_t size = pestle_dtype_size(d->logits_dtype) * (size_t)d->words;
  PESTLE_TRY(pestle_buffer_read(slot->far_logits, 0, d->bytes, size));
  pestle_decode_take_logits(d, slot, d->bytes);
  return NULL;
}

pestle_status_t pestle_decode_likeliest(const pestle_decoder_t* d,
                                        const decode_slot_t* slot,
                                        int64_t* out_id, bool* out_found) {
  struct {
    int32_t id;
    float most;
  } choice = {.id = 0};
  *out_found = false;
  if (!slot->far_choice) return NULL;
  PESTLE_TRY(pestle_buffer_read(slot->far_choice, 0, &choice, sizeof(choice)));
  // What is no number is for the host to find.
  *out_found = isfinite(choice.most) && choice.id >= 0 && choice.id < d->words;
  if (*out_found) *out_id = choice.id;
  return NULL;
}
