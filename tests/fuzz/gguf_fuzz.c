// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file, whose graph is made for two tokens. The mutator walks the head:
// it changes counts, lengths, kinds, extents, types and places, and numbers among the
// metadata, or exchanges two of them.
#include "mutate.h"
#include "pestle/graph.h"
#include "pestle/import.h"
#include "target.h"

static void try_input(pestle_fuzz_t* fuzz, const uint8_t* data, size_t size) {
  static const pestle_dim_binding_t dims[] = {
      {"batch_size", 1}, {"sequence_length", 2}, {"total_sequence_length", 4}};
  const pestle_import_options_t options = {
      .struct_size = sizeof(options), .dims = dims, .dim_count = 3};
  pestle_module_t* module = NULL;
  // What begins otherwise is read by others.
  if (size < 4 || memcmp(data, "GGUF", 4) != 0) return;
  pestle_status_t status =
      pestle_import_bytes(fuzz->context, data, size, "x", &options, &module);
  uint64_t hash[2];
  if (!status) status = pestle_module_signature(module, hash);
  pestle_status_release(status);
  pestle_module_release(module);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pestle_fuzz_t fuzz;
  return pestle_fuzz_run(&fuzz, NULL, try_input, data, size);
}

// --- The mutator ---

enum { MAX_FIELDS = 1024 };

typedef struct field_t {
  size_t at, width;
} field_t;

typedef struct walk_t {
  const uint8_t* data;
  size_t size, at, count;
  bool is_off;  // behind the end
  field_t fields[MAX_FIELDS];
} walk_t;

// The number at the walk's place, which is a field.
static uint64_t field(walk_t* w, size_t width) {
  uint64_t value = 0;
  if (w->is_off || width > w->size - w->at) {
    w->is_off = true;
    return 0;
  }
  memcpy(&value, w->data + w->at, width);
  if (w->count < MAX_FIELDS) w->fields[w->count++] = (field_t){w->at, width};
  w->at += width;
  return value;
}

static void leap(walk_t* w, uint64_t bytes) {
  w->is_off |= bytes > w->size - w->at;
  if (!w->is_off) w->at += (size_t)bytes;
}

static void walk_value(walk_t* w, uint64_t kind) {
  static const uint8_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (kind >= sizeof(widths)) {
    w->is_off = true;
  } else if (widths[kind]) {
    (void)field(w, widths[kind]);
  } else if (kind == 8) {
    leap(w, field(w, 8));
  } else {
    uint64_t of = field(w, 4), count = field(w, 8);
    for (uint64_t i = 0; i < count && !w->is_off; ++i)
      walk_value(w, of == 9 ? 99 : of);
  }
}

static void walk_file(walk_t* w) {
  leap(w, 4);
  (void)field(w, 4);
  uint64_t tensors = field(w, 8), values = field(w, 8);
  for (uint64_t i = 0; i < values && !w->is_off; ++i) {
    leap(w, field(w, 8));
    walk_value(w, field(w, 4));
  }
  for (uint64_t i = 0; i < tensors && !w->is_off; ++i) {
    leap(w, field(w, 8));
    uint64_t axes = field(w, 4);
    for (uint64_t k = 0; k < axes && !w->is_off; ++k)
      (void)field(w, 8);
    (void)field(w, 4);
    (void)field(w, 8);
  }
}

static void change_field(uint8_t* data, const field_t* f, const field_t* other,
                         uint64_t* state) {
  uint64_t value = 0, taken = 0;
  memcpy(&value, data + f->at, f->width);
  memcpy(&taken, data + other->at, other->width);
  switch (fuzz_below(state, 5)) {
    case 0:
      ++value;
      break;
    case 1:
      --value;
      break;
    case 2:
      value = taken;
      break;
    case 3:
      value ^= UINT64_C(1) << fuzz_below(state, 8 * f->width);
      break;
    default:
      value = fuzz_number(state);
  }
  memcpy(data + f->at, &value, f->width);
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed) {
  static walk_t w;
  uint64_t state = fuzz_seed(seed);
  for (size_t times = 1 + fuzz_below(&state, 4); times; --times) {
    w = (walk_t){.data = data, .size = size};
    walk_file(&w);
    if (!w.count || !fuzz_below(&state, 8)) {
      uint64_t number = fuzz_number(&state);
      size =
          fuzz_bytes(data, size, max_size, (const uint8_t*)&number, 8, &state);
    } else {
      change_field(data, &w.fields[fuzz_below(&state, w.count)],
                   &w.fields[fuzz_below(&state, w.count)], &state);
    }
  }
  return size;
}
