// SPDX-License-Identifier: Apache-2.0
// Any tensor of another library, made of bytes: struct tensor_t below, then memory.
// One whose elements lie in that memory becomes an array, whose elements are compared
// with what shape and strides say, and is exported again; all others are imported as
// buffers, of which no element is looked at. Whatever happens, the deleter is called
// once after an import that succeeds, and never after one that fails.
#include "base/dlpack_abi.h"
#include "mutate.h"
#include "pestle/array.h"
#include "pestle/runtime.h"
#include "target.h"

enum { MAX_AXES = PESTLE_MAX_RANK + 4, MAX_COUNT = 4096, MAX_MEMORY = 4096 };
enum { FAR = 1 << 24 };  // elements: a stride beyond leads out of the memory

enum { LACKS_SHAPE = 1, LACKS_STRIDES = 2, LACKS_DELETER = 4, LACKS_DATA = 8 };

typedef struct tensor_t {
  uint8_t is_legacy, lacks, copy, is_trusted;
  uint8_t code, bits, shift, export_how;
  uint16_t lanes;
  int16_t ndim;
  uint32_t major, minor;
  int32_t device_type, device_id;
  uint64_t flags, byte_offset;
  int64_t shape[MAX_AXES], strides[MAX_AXES];
} tensor_t;

// A producer: what is handed over, and how often it was let go of.
typedef struct producer_t {
  struct DLManagedTensorVersioned versioned;
  struct DLManagedTensor legacy;
  tensor_t spec;
  uint8_t* memory;
  size_t size;
  int ended;
} producer_t;

static void end_versioned(struct DLManagedTensorVersioned* self) {
  ++((producer_t*)self->manager_ctx)->ended;
}
static void end_legacy(struct DLManagedTensor* self) {
  ++((producer_t*)self->manager_ctx)->ended;
}

static void make(producer_t* p, const uint8_t* data, size_t size) {
  memset(p, 0, sizeof(*p));
  tensor_t* s = &p->spec;
  size_t head = size < sizeof(*s) ? size : sizeof(*s);
  memcpy(s, data, head);
  p->size = size - head < MAX_MEMORY ? size - head : MAX_MEMORY;
  // Blocks of their own size, so that AddressSanitizer sees each byte beyond.
  size_t shift = s->shift % 16;
  p->memory = malloc(p->size + shift + 1);
  if (!p->memory) pestle_fuzz_fail("no memory");
  memcpy(p->memory + shift, data + head, p->size);
  pestle_tensor_t t = {.data = s->lacks & LACKS_DATA ? NULL : p->memory + shift,
                       .device = {s->device_type, s->device_id},
                       .ndim = s->ndim,
                       .dtype = {s->code, s->bits, s->lanes},
                       .shape = s->lacks & LACKS_SHAPE ? NULL : s->shape,
                       .strides = s->lacks & LACKS_STRIDES ? NULL : s->strides,
                       .byte_offset = s->byte_offset};
  bool is_kept = s->lacks & LACKS_DELETER;
  p->versioned = (struct DLManagedTensorVersioned){
      {s->major, s->minor}, p, is_kept ? NULL : end_versioned, s->flags, t};
  p->legacy = (struct DLManagedTensor){t, p, is_kept ? NULL : end_legacy};
}

// Whether all elements lie in the memory; then how many there are, the bytes of one,
// and the axes with strides, by arithmetic of the test's own.
typedef struct elements_t {
  int64_t count, dims[MAX_AXES], strides[MAX_AXES];
  int rank;
  size_t width;
} elements_t;

static bool is_real(const producer_t* p, elements_t* e) {
  const tensor_t* s = &p->spec;
  memset(e, 0, sizeof(*e));
  if (s->ndim < 0 || s->ndim > MAX_AXES || s->bits % 8 || !s->bits ||
      s->bits > 128 || s->lanes > 16 || !s->lanes) {
    return false;
  }
  if (s->lacks & (LACKS_SHAPE | LACKS_DATA) || s->byte_offset > p->size) {
    return false;
  }
  e->rank = s->ndim;
  e->width = (size_t)s->bits / 8 * s->lanes;
  e->count = 1;
  int64_t low = 0, high = 0;
  for (int i = e->rank; i-- > 0;) {
    if (s->shape[i] < 0 || s->shape[i] > MAX_COUNT) return false;
    e->dims[i] = s->shape[i];
    e->strides[i] = s->lacks & LACKS_STRIDES ? e->count : s->strides[i];
    e->count *= s->shape[i];
    if (e->count > MAX_COUNT) return false;
    if (s->shape[i] < 2) continue;
    if (e->strides[i] < -FAR || e->strides[i] > FAR) return false;
    int64_t reach = e->strides[i] * (s->shape[i] - 1);
    *(reach < 0 ? &low : &high) += reach;
  }
  int64_t first = (int64_t)s->byte_offset, width = (int64_t)e->width;
  return first + low * width >= 0 &&
         first + (high + 1) * width <= (int64_t)p->size;
}

// The elements, row-major, by |data| and strides in elements.
static void gather(const elements_t* e, const uint8_t* data, uint8_t* out) {
  int64_t index[MAX_AXES] = {0};
  for (int64_t n = 0; n < e->count; ++n) {
    int64_t at = 0;
    for (int i = 0; i < e->rank; ++i)
      at += index[i] * e->strides[i];
    memcpy(out + (size_t)n * e->width, data + at * (int64_t)e->width, e->width);
    for (int i = e->rank; i-- > 0 && ++index[i] == e->dims[i];)
      index[i] = 0;
  }
}

// What the array's elements are to be: booleans are 0 or 1.
static void expected(const producer_t* p, const elements_t* e, uint8_t* out) {
  gather(e, (const uint8_t*)p->versioned.dl_tensor.data + p->spec.byte_offset,
         out);
  size_t bytes = (size_t)e->count * e->width;
  for (size_t i = 0; p->spec.code == PESTLE_DL_BOOL && i < bytes; ++i)
    out[i] = out[i] != 0;
}

static uint8_t wanted[MAX_COUNT * 256], got[MAX_COUNT * 256];

// The elements of what was exported, which has them as the array does: lanes are its
// last axis.
static void check_tensor(const pestle_tensor_t* t, size_t bytes) {
  elements_t e = {.count = 1, .rank = t->ndim, .width = t->dtype.bits / 8};
  if (t->dtype.lanes != 1 || t->ndim > MAX_AXES) {
    pestle_fuzz_fail("the export has lanes");
  }
  for (int i = 0; i < e.rank; ++i) {
    e.dims[i] = t->shape[i];
    e.strides[i] = t->strides[i];
    e.count *= t->shape[i];
  }
  if ((size_t)e.count * e.width != bytes) {
    pestle_fuzz_fail("the export has another size");
  }
  if (!bytes) return;
  gather(&e, (const uint8_t*)t->data + t->byte_offset, got);
  if (memcmp(wanted, got, bytes) != 0) {
    pestle_fuzz_fail("an exported element is another one");
  }
}

static void export_again(pestle_array_t* array, unsigned how, size_t bytes) {
  pestle_dlpack_export_options_t options = {.struct_size = sizeof(options),
                                            .copy = (int32_t)(how >> 1 & 3)};
  pestle_status_t status;
  if (how & 1) {
    struct DLManagedTensor* out;
    status = pestle_array_export_legacy(array, &options, &out);
    if (!status) {
      check_tensor(&out->dl_tensor, bytes);
      out->deleter(out);
    }
  } else {
    struct DLManagedTensorVersioned* out;
    status = pestle_array_export(array, &options, &out);
    if (!status) {
      check_tensor(&out->dl_tensor, bytes);
      out->deleter(out);
    }
  }
  pestle_status_release(status);
}

static pestle_status_t try_array(pestle_context_t* context, producer_t* p,
                                 const elements_t* e) {
  pestle_dlpack_import_options_t options = {.struct_size = sizeof(options),
                                            .copy = p->spec.copy % 4,
                                            .trusted = p->spec.is_trusted & 1};
  pestle_array_t* array;
  pestle_status_t status =
      p->spec.is_legacy & 1
          ? pestle_array_import_legacy(context, &p->legacy, &options, &array)
          : pestle_array_import(context, &p->versioned, &options, &array);
  if (status) return status;
  size_t bytes = (size_t)e->count * e->width;
  bool is_exact = p->spec.code != PESTLE_DL_BOOL || !options.trusted;
  expected(p, e, wanted);
  status = pestle_array_read(array, got, bytes);
  if (status) pestle_fuzz_fail("what was imported is not read");
  if (is_exact && memcmp(wanted, got, bytes) != 0) {
    pestle_fuzz_fail("an imported element is another one");
  }
  if (is_exact) export_again(array, p->spec.export_how, bytes);
  pestle_array_release(array);
  return NULL;
}

static pestle_status_t try_buffer(pestle_context_t* context, producer_t* p) {
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  PESTLE_TRY(
      pestle_buffer_import(context, &p->versioned, NULL, &layout, &buffer));
  uint64_t size = pestle_buffer_size(buffer);
  if (layout.byte_offset > size) {
    pestle_fuzz_fail("the first element lies behind the buffer");
  }
  pestle_buffer_release(buffer);
  return NULL;
}

// The first array makes what a context keeps of arrays.
static pestle_status_t warm_up(pestle_context_t* context) {
  pestle_device_t* device;
  pestle_array_t* array;
  const float x[2] = {1, 2};
  float y[2];
  pestle_type_t type = {PESTLE_F32, 1, {2}};
  PESTLE_TRY(pestle_context_device(context, "cpu", &device));
  PESTLE_TRY(pestle_array_from_data(device, &type, x, &array));
  pestle_status_t status = pestle_array_read(array, y, sizeof(y));
  pestle_array_release(array);
  return status;
}

static void try_input(pestle_fuzz_t* fuzz, const uint8_t* data, size_t size) {
  static producer_t p;
  elements_t e;
  make(&p, data, size);
  pestle_status_t status = is_real(&p, &e) ? try_array(fuzz->context, &p, &e)
                                           : try_buffer(fuzz->context, &p);
  int calls = status || p.spec.lacks & LACKS_DELETER ? 0 : 1;
  if (p.ended != calls) {
    fprintf(stderr, "the deleter ran %d times, not %d\n", p.ended, calls);
    pestle_fuzz_fail("the deleter ran too often or not at all");
  }
  pestle_status_release(status);
  free(p.memory);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pestle_fuzz_t fuzz;
  return pestle_fuzz_run(&fuzz, warm_up, try_input, data, size);
}

// --- The mutator ---

static void change_number(void* at, size_t width, uint64_t* state) {
  uint64_t value = fuzz_number(state);
  if (fuzz_below(state, 3) == 0) value = 0 - value;
  memcpy(at, &value, width);
}

// One that many tensors have, so that the checks behind are reached.
static void mend(tensor_t* s, uint64_t* state) {
  static const uint8_t bits[] = {8, 16, 32, 64, 128, 4, 2, 1};
  switch (fuzz_below(state, 9)) {
    case 0:
      s->major = 1;
      s->minor = (uint32_t)fuzz_below(state, 5);
      return;
    case 1:
      s->code = (uint8_t)fuzz_below(state, 20);
      s->bits = bits[fuzz_below(state, sizeof(bits))];
      return;
    case 2:
      s->lanes = 1;
      return;
    case 3:
      s->device_type = 1;
      s->device_id = 0;
      return;
    case 4:
      s->ndim = (int16_t)fuzz_below(state, 5);
      return;
    case 5:
      for (int i = 0; i < MAX_AXES; ++i)
        s->shape[i] = (int64_t)fuzz_below(state, 6);
      return;
    case 6:  // row-major
      for (int64_t i = MAX_AXES, step = 1; i-- > 0;) {
        s->strides[i] = i < s->ndim ? step : 0;
        if (i < s->ndim && s->shape[i] > 0 && s->shape[i] < 64)
          step *= s->shape[i];
      }
      return;
    case 7:
      for (int i = 0; i < MAX_AXES; ++i)
        s->strides[i] = (int64_t)fuzz_below(state, 9) - 4;
      return;
    default:
      s->flags = fuzz_below(state, 8);
      s->byte_offset = fuzz_below(state, 64);
      return;
  }
}

static void change(tensor_t* s, uint64_t* state) {
  int64_t* axes = fuzz_below(state, 2) ? s->shape : s->strides;
  switch (fuzz_below(state, 10)) {
    case 0:
      change_number(&s->flags, 8, state);
      return;
    case 1:
      change_number(&s->byte_offset, 8, state);
      return;
    case 2:
      change_number(&s->ndim, 2, state);
      return;
    case 3:
      change_number(&s->lanes, 2, state);
      return;
    case 4:
      change_number(&s->device_type, 4, state);
      return;
    case 5:
      s->lacks ^= (uint8_t)(1u << fuzz_below(state, 4));
      return;
    case 6:
      s->shift = (uint8_t)fuzz_below(state, 16);
      return;
    case 7:
      s->is_legacy = (uint8_t)fuzz_below(state, 2);
      s->copy = (uint8_t)fuzz_below(state, 4);
      s->export_how = (uint8_t)fuzz_below(state, 8);
      s->is_trusted = !fuzz_below(state, 4);
      return;
    default:
      change_number(&axes[fuzz_below(state, MAX_AXES)], 8, state);
      return;
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed) {
  uint64_t state = fuzz_seed(seed);
  tensor_t s;
  if (max_size < sizeof(s)) return size;
  if (size < sizeof(s)) {
    memset(data + size, 0, sizeof(s) - size);
    size = sizeof(s);
  }
  memcpy(&s, data, sizeof(s));
  for (size_t times = 1 + fuzz_below(&state, 6); times; --times) {
    if (fuzz_below(&state, 2)) {
      mend(&s, &state);
    } else {
      change(&s, &state);
    }
  }
  memcpy(data, &s, sizeof(s));
  uint8_t byte = (uint8_t)fuzz_next(&state);
  size_t rest = size - sizeof(s), room = max_size - sizeof(s);
  if (!fuzz_below(&state, 4)) {  // memory of another size
    size_t more = fuzz_below(&state, 512);
    if (more > room) more = room;
    if (more > rest) memset(data + sizeof(s) + rest, byte, more - rest);
    rest = more;
  }
  return sizeof(s) + fuzz_bytes(data + sizeof(s), rest, room, &byte, 1, &state);
}
