// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX model, and as a stored tensor. The mutator knows protobuf: it
// goes into a message and changes, moves, doubles or drops one field there, and mends
// the lengths of all messages around it. Ops are named from the importer's table.
#include "mutate.h"
#include "pestle/import.h"
#include "target.h"

static void try_input(pestle_fuzz_t* fuzz, const uint8_t* data, size_t size) {
  pestle_module_t* module = NULL;
  pestle_status_t status =
      pestle_import_onnx(fuzz->context, data, size, false, NULL, NULL, &module);
  uint64_t hash[2];
  if (!status) status = pestle_module_signature(module, hash);
  pestle_status_release(status);
  pestle_module_release(module);
  pestle_elements_t elements;
  status =
      pestle_read_onnx_tensor(fuzz->context, data, size, &elements, NULL, 0);
  if (!status)
    pestle_context_free(fuzz->context, (void*)elements.data, elements.size);
  pestle_status_release(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pestle_fuzz_t fuzz;
  return pestle_fuzz_run(&fuzz, NULL, try_input, data, size);
}

// --- The mutator ---

enum { MAX_DEPTH = 8, MAX_FIELDS = 512, MAX_MODEL = 1 << 16 };

typedef struct field_t {
  const uint8_t *first, *payload, *end;
  uint64_t tag;
} field_t;

static const char* const words[] = {
#define PESTLE_ONNX_OP(name, ...) #name,
#include "frontend/onnx/onnx_ops.def"
#undef PESTLE_ONNX_OP
    "",
    "x",
    "y",
    "axis",
    "axes",
    "perm",
    "pads",
    "strides",
    "to",
    "value",
    "body",
    "then_branch",
    "else_branch",
    "equation",
    "mode",
    "keepdims",
    "com.microsoft",
    "ai.onnx.ml",
    "kernel_shape",
    "auto_pad",
    "batch",
};

static const uint8_t* get_varint(const uint8_t* at, const uint8_t* end,
                                 uint64_t* out) {
  *out = 0;
  for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
    *out |= (uint64_t)(*at & 127) << shift;
    if (*at++ < 128) return at;
  }
  return NULL;
}

static size_t put_varint(uint8_t* out, uint64_t value) {
  size_t size = 0;
  for (; value > 127; value >>= 7)
    out[size++] = (uint8_t)(value | 128);
  out[size++] = (uint8_t)value;
  return size;
}

// The fields that fill |data|; 0: it is no message.
static size_t split(const uint8_t* data, size_t size, field_t* fields) {
  const uint8_t *at = data, *end = data + size;
  size_t count = 0;
  while (at < end) {
    if (count == MAX_FIELDS) return 0;
    field_t* f = &fields[count++];
    uint64_t value;
    f->first = at;
    at = get_varint(at, end, &f->tag);
    if (!at || !(f->tag >> 3)) return 0;
    f->payload = at;
    unsigned wire = f->tag & 7;
    if (wire == 0) {
      at = get_varint(at, end, &value);
      if (!at) return 0;
    } else if (wire == 2) {
      at = get_varint(at, end, &value);
      if (!at || value > (size_t)(end - at)) return 0;
      f->payload = at;
      at += value;
    } else {
      size_t width = wire == 1 ? 8 : wire == 5 ? 4 : SIZE_MAX;
      if (width > (size_t)(end - at)) return 0;
      at += width;
    }
    f->end = at;
  }
  return count;
}

static size_t put_field(uint8_t* out, uint64_t tag, const uint8_t* payload,
                        size_t size) {
  size_t at = put_varint(out, tag);
  if ((tag & 7) == 2) at += put_varint(out + at, size);
  if (size) memcpy(out + at, payload, size);
  return at + size;
}

// The payload of |f| changed, at |out|.
static size_t change_payload(const field_t* f, uint8_t* out, uint64_t* state) {
  size_t size = (size_t)(f->end - f->payload);
  if ((f->tag & 7) == 0) return put_varint(out, fuzz_number(state));
  if (size) memcpy(out, f->payload, size);
  if ((f->tag & 7) != 2) {
    out[fuzz_below(state, size)] ^= (uint8_t)(1u << fuzz_below(state, 8));
    return size;
  }
  if (!fuzz_below(state, 3)) {
    const char* word = words[fuzz_below(state, sizeof(words) / sizeof(*words))];
    memcpy(out, word, strlen(word));
    return strlen(word);
  }
  uint8_t number[10];
  size_t width = put_varint(number, fuzz_number(state));
  return fuzz_bytes(out, size, MAX_MODEL / 2, number, width, state);
}

static field_t fields_of[MAX_DEPTH][MAX_FIELDS];
static uint8_t made_of[MAX_DEPTH + 1][2 * MAX_MODEL];

static size_t change_message(const uint8_t* data, size_t size, uint8_t* out,
                             unsigned depth, uint64_t* state);

// Field |f| with something else inside; its size at |out|.
static size_t change_field(const field_t* f, uint8_t* out, unsigned depth,
                           uint64_t* state) {
  uint8_t* inside = made_of[depth + 1];
  size_t size = (size_t)(f->end - f->payload), made = 0;
  bool goes_in = (f->tag & 7) == 2 && depth + 1 < MAX_DEPTH && size &&
                 fuzz_below(state, 8) != 0;
  if (goes_in) {
    made = change_message(f->payload, size, inside, depth + 1, state);
  }
  if (!goes_in || made == SIZE_MAX) made = change_payload(f, inside, state);
  uint64_t tag = f->tag;
  if (!fuzz_below(state, 40))
    tag = (fuzz_below(state, 30) + 1) << 3 | (tag & 7);
  return put_field(out, tag, inside, made);
}

// The message |data| with one field changed, at |out|; SIZE_MAX where it is none.
static size_t change_message(const uint8_t* data, size_t size, uint8_t* out,
                             unsigned depth, uint64_t* state) {
  field_t* fields = fields_of[depth];
  size_t count = split(data, size, fields);
  if (!count) return SIZE_MAX;
  size_t chosen = fuzz_below(state, count), at = 0;
  size_t other = fuzz_below(state, count);
  size_t how = fuzz_below(state, 16);
  for (size_t i = 0; i < count; ++i) {
    const field_t* f = &fields[i];
    const field_t* from = i == chosen && how == 1 ? &fields[other] : f;
    size_t whole = (size_t)(from->end - from->first);
    if (at + 2 * whole + 64 > MAX_MODEL) return SIZE_MAX;
    if (i == chosen && how == 0) continue;  // dropped
    if (i == chosen && how == 2) {          // another field's payload
      const field_t* p = &fields[other];
      uint64_t tag = (f->tag & ~(uint64_t)7) | (p->tag & 7);
      size_t length = (size_t)(p->end - p->payload);
      if (at + length + 32 > MAX_MODEL) return SIZE_MAX;
      at += put_field(out + at, tag, p->payload, length);
      continue;
    }
    if (i == chosen && how > 3) {
      at += change_field(f, out + at, depth, state);
      if (at > MAX_MODEL) return SIZE_MAX;
      continue;
    }
    memcpy(out + at, from->first, whole);
    at += whole;
    if (i == chosen && how == 3) {  // twice
      memcpy(out + at, from->first, whole);
      at += whole;
    }
  }
  return at;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed) {
  uint64_t state = fuzz_seed(seed);
  uint8_t number[10];
  for (size_t times = 1 + fuzz_below(&state, 4); times; --times) {
    size_t made = SIZE_MAX;
    if (size <= MAX_MODEL / 2 && fuzz_below(&state, 30)) {
      made = change_message(data, size, made_of[0], 0, &state);
    }
    if (made <= max_size) {
      memcpy(data, made_of[0], made);
      size = made;
      continue;
    }
    size_t width = put_varint(number, fuzz_number(&state));
    size = fuzz_bytes(data, size, max_size, number, width, &state);
  }
  return size;
}
