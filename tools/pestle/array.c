// SPDX-License-Identifier: Apache-2.0
// Host tensors: memory, elements as numbers, names of types.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "base/huge_pages.h"
#include "base/mem.h"
#include "cli.h"

// Large arrays lie on huge pages: without them, a kernel that streams through
// memory waits for page tables.
static size_t alignment_of(size_t size) {
  return size >= PESTLE_HUGE_PAGE ? PESTLE_HUGE_PAGE : PESTLE_BUFFER_ALIGNMENT;
}

pestle_status_t cli_array_init(pestle_dtype_t dtype, int32_t rank,
                               const int64_t* dims, cli_array_t* out_array) {
  *out_array = (cli_array_t){.index = -1, .dtype = dtype, .rank = rank};
  char text[400];
  if (rank < 0 || rank > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(UNSUPPORTED, "a tensor of rank %d; at most %d", rank,
                        PESTLE_MAX_RANK);
  }
  for (int32_t i = 0; i < rank; ++i)
    out_array->dims[i] = dims[i];
  if (!pestle_checked_count(dims, (size_t)rank, &out_array->count) ||
      !pestle_checked_mul((size_t)out_array->count, pestle_dtype_size(dtype),
                          &out_array->size)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "no tensor can have the shape %s: its size passes 2^63",
                        cli_print_dims(rank, dims, text, sizeof(text)));
  }
  out_array->data =
      pestle_alloc_aligned(pestle_allocator_system(), out_array->size,
                           alignment_of(out_array->size));
  if (!out_array->data) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "no memory for a tensor of %zu bytes",
                        out_array->size);
  }
  pestle_advise_huge(out_array->data, out_array->size);
  memset(out_array->data, 0, out_array->size);
  return NULL;
}

void cli_array_deinit(cli_array_t* array) {
  pestle_allocator_t a = pestle_allocator_system();
  pestle_free_str(a, array->name);
  cli_words_deinit(array);
  pestle_free_aligned(a, array->data, array->size, alignment_of(array->size));
  *array = (cli_array_t){0};
}

pestle_status_t cli_array_set_name(cli_array_t* array, pestle_str_t name) {
  pestle_allocator_t a = pestle_allocator_system();
  pestle_free_str(a, array->name);
  array->name = pestle_alloc(a, name.size + 1);
  if (!array->name) return PESTLE_OOM();
  if (name.size) memcpy(array->name, name.data, name.size);
  array->name[name.size] = 0;
  return NULL;
}

pestle_tensor_t cli_array_view(cli_array_t* array) {
  return (pestle_tensor_t){
      .data = array->data,
      .device = {PESTLE_DEVICE_CPU, 0},
      .ndim = array->rank,
      .dtype = pestle_dtype_to_dlpack(array->dtype),
      .shape = array->dims,
  };
}

// --- Elements ---

void cli_array_retype(cli_array_t* array, pestle_dtype_t dtype) {
  bool is_stored_so =
      (array->dtype == PESTLE_U16 && dtype == PESTLE_BF16) ||
      (array->dtype == PESTLE_U8 && pestle_dtype_size(dtype) == 1 &&
       (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) ||
        pestle_dtype_is_sub_byte(dtype)));
  if (!is_stored_so) return;
  array->dtype = dtype;
  if (!pestle_dtype_is_sub_byte(dtype)) return;
  // Files hold the low bits, tensors a byte that is extended.
  uint8_t* bytes = array->data;
  for (int64_t i = 0; i < array->count; ++i)
    bytes[i] = pestle_dtype_extend(dtype, bytes[i]);
}

static uint64_t load_bits(const cli_array_t* array, int64_t index) {
  size_t size = pestle_dtype_size(array->dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)array->data + (size_t)index * size,
         size < 8 ? size : 8);
  return bits;
}

double cli_array_get(const cli_array_t* array, int64_t index) {
  uint64_t bits = load_bits(array, index);
  pestle_dtype_t dtype = array->dtype;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return pestle_float_decode(dtype, bits);
  }
  if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) {
    unsigned unused = 64 - 8 * pestle_dtype_size(dtype);
    return (double)((int64_t)(bits << unused) >> unused);
  }
  if (dtype == PESTLE_C64) return pestle_float_decode(PESTLE_F32, bits);
  if (dtype == PESTLE_C128) return pestle_float_decode(PESTLE_F64, bits);
  return (double)bits;
}

bool cli_array_is_less(const cli_array_t* array, int64_t a, int64_t b) {
  if (!pestle_dtype_is(array->dtype, PESTLE_KIND_INT)) {
    return cli_array_get(array, a) < cli_array_get(array, b);
  }
  uint64_t x = load_bits(array, a), y = load_bits(array, b);
  if (!pestle_dtype_is(array->dtype, PESTLE_KIND_SIGNED)) return x < y;
  unsigned unused = 64 - 8 * (unsigned)pestle_dtype_size(array->dtype);
  return (int64_t)(x << unused) < (int64_t)(y << unused);
}

const char* cli_print_exact(const cli_array_t* array, int64_t index,
                            char* buffer, size_t capacity) {
  bool is_wide = array->dtype == PESTLE_F64 || array->dtype == PESTLE_C128;
  int digits = is_wide ? 17 : 9;
  if (pestle_dtype_is(array->dtype, PESTLE_KIND_INT))
    return cli_print_element(array, index, buffer, capacity);
  if (array->dtype == PESTLE_C64 || array->dtype == PESTLE_C128) {
    cli_array_t parts = *array;
    parts.dtype = is_wide ? PESTLE_F64 : PESTLE_F32;
    (void)snprintf(buffer, capacity, "(%.*g, %.*g)", digits,
                   cli_array_get(&parts, 2 * index), digits,
                   cli_array_get(&parts, 2 * index + 1));
  } else {
    (void)snprintf(buffer, capacity, "%.*g", digits,
                   cli_array_get(array, index));
  }
  return buffer;
}

const char* cli_print_element(const cli_array_t* array, int64_t index,
                              char* buffer, size_t capacity) {
  uint64_t bits = load_bits(array, index);
  unsigned unused = 64 - 8 * (unsigned)pestle_dtype_size(array->dtype);
  if (!pestle_dtype_is(array->dtype, PESTLE_KIND_INT)) {
    snprintf(buffer, capacity, "%.6g", cli_array_get(array, index));
  } else if (pestle_dtype_is(array->dtype, PESTLE_KIND_SIGNED)) {
    snprintf(buffer, capacity, "%" PRId64, (int64_t)(bits << unused) >> unused);
  } else {
    snprintf(buffer, capacity, "%" PRIu64, bits);
  }
  return buffer;
}

static uint64_t integer_bits(pestle_dtype_t dtype, double value) {
  if (isnan(value)) return 0;
  if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) {
    if (value <= -0x1p63) return (uint64_t)INT64_MIN;
    return value >= 0x1p63 ? (uint64_t)INT64_MAX : (uint64_t)(int64_t)value;
  }
  if (value <= 0) return 0;
  return value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}

void cli_array_set(cli_array_t* array, int64_t index, double value) {
  pestle_dtype_t dtype = array->dtype;
  size_t size = pestle_dtype_size(dtype);
  uint64_t bits;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    bits = pestle_float_encode(dtype, value);
  } else if (dtype == PESTLE_C64) {
    bits = pestle_float_encode(PESTLE_F32, value);
  } else if (dtype == PESTLE_C128) {
    bits = pestle_float_encode(PESTLE_F64, value);
  } else if (dtype == PESTLE_I1) {
    bits = value != 0;
  } else {
    bits = integer_bits(dtype, value);
  }
  memcpy((char*)array->data + (size_t)index * size, &bits, size < 8 ? size : 8);
}

// SplitMix64: the same numbers on every machine.
static uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Floats in [-1, 1), integers in [0, 8): small enough to be indices.
void cli_fill_random(cli_array_t* array, uint64_t seed) {
  uint64_t state = seed;
  for (int64_t i = 0; i < array->count; ++i) {
    double unit = (double)(next_random(&state) >> 11) * 0x1p-53;
    bool is_float =
        pestle_dtype_is(array->dtype, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX);
    double limit = array->dtype == PESTLE_I1 ? 2 : 8;
    cli_array_set(array, i, is_float ? 2 * unit - 1 : floor(limit * unit));
  }
}

static bool parse_value(const char* text, double* out_value) {
  if (!strcmp(text, "true") || !strcmp(text, "false")) {
    *out_value = text[0] == 't';
    return true;
  }
  return pestle_str_parse_f64(pestle_str(text), out_value);
}

// Whether |value| is one that the type can hold.
static bool fits(pestle_dtype_t dtype, double value) {
  if (!pestle_dtype_is(dtype, PESTLE_KIND_INT)) return true;
  double scale = ldexp(1, pestle_dtype_info(dtype)->bits);
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  return value == floor(value) && value >= (is_signed ? -scale / 2 : 0) &&
         value < (is_signed ? scale / 2 : scale);
}

pestle_status_t cli_fill(cli_array_t* array, const char* value) {
  const char* name = array->name ? array->name : "";
  if (!strncmp(value, "random:", 7)) {
    uint64_t seed;
    if (!pestle_str_parse_u64(pestle_str(value + 7), &seed)) {
      return CLI_USAGE_ERROR("input '%s': random: wants a number, not '%s'",
                             name, value + 7);
    }
    cli_fill_random(array, seed);
    return NULL;
  }
  double number;
  if (!parse_value(value, &number)) {
    return CLI_USAGE_ERROR(
        "input '%s': '%s' is neither a file FILE.npy, nor a number, nor "
        "random:SEED, nor SHAPExDTYPE=VALUE",
        name, value);
  }
  if (!fits(array->dtype, number)) {
    return CLI_USAGE_ERROR("input '%s': %s does not fit %s", name, value,
                           pestle_dtype_info(array->dtype)->name);
  }
  for (int64_t i = 0; i < array->count; ++i)
    cli_array_set(array, i, number);
  return NULL;
}

// --- Types ---

pestle_dtype_t cli_dtype(pestle_str_t name) {
  // As NumPy and ONNX spell them.
  static const struct {
    const char* name;
    pestle_dtype_t dtype;
  } names[] = {
      {"bool", PESTLE_I1},
      {"int4", PESTLE_I4},
      {"int8", PESTLE_I8},
      {"int16", PESTLE_I16},
      {"int32", PESTLE_I32},
      {"int64", PESTLE_I64},
      {"uint4", PESTLE_U4},
      {"int2", PESTLE_I2},
      {"uint2", PESTLE_U2},
      {"u2", PESTLE_U2},
      {"uint8", PESTLE_U8},
      {"uint16", PESTLE_U16},
      {"uint32", PESTLE_U32},
      {"uint64", PESTLE_U64},
      {"u4", PESTLE_U4},
      {"u8", PESTLE_U8},
      {"u16", PESTLE_U16},
      {"u32", PESTLE_U32},
      {"u64", PESTLE_U64},
      {"bfloat16", PESTLE_BF16},
      {"float16", PESTLE_F16},
      {"float32", PESTLE_F32},
      {"float64", PESTLE_F64},
      {"float8_e4m3fn", PESTLE_F8E4M3FN},
      {"float8_e5m2", PESTLE_F8E5M2},
      {"float8_e4m3fnuz", PESTLE_F8E4M3FNUZ},
      {"float8_e5m2fnuz", PESTLE_F8E5M2FNUZ},
      {"float8_e3m4", PESTLE_F8E3M4},
      {"float8_e4m3", PESTLE_F8E4M3},
      {"float8_e4m3b11fnuz", PESTLE_F8E4M3B11FNUZ},
      {"float8_e8m0fnu", PESTLE_F8E8M0FNU},
      {"float4_e2m1fn", PESTLE_F4E2M1FN},
      {"float6_e2m3fn", PESTLE_F6E2M3FN},
      {"float6_e3m2fn", PESTLE_F6E3M2FN},
      {"complex64", PESTLE_C64},
      {"complex128", PESTLE_C128},
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (pestle_str_equal_c(name, names[i].name)) return names[i].dtype;
  }
  char text[32];
  if (name.size >= sizeof(text)) return PESTLE_NONE;
  memcpy(text, name.data, name.size);
  text[name.size] = 0;
  pestle_dtype_t dtype = pestle_dtype_from_name(text);
  return pestle_dtype_is_stored(dtype) ? dtype : PESTLE_NONE;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Extents up to the first field that does not begin with a digit: the dtype.
static bool parse_type(pestle_str_t text, pestle_dtype_t* dtype, int32_t* rank,
                       int64_t dims[PESTLE_MAX_RANK]) {
  size_t at = 0;
  while (at < text.size && is_digit(text.data[at])) {
    size_t end = at;
    while (end < text.size && is_digit(text.data[end]))
      ++end;
    if (*rank == PESTLE_MAX_RANK ||
        !pestle_str_parse_i64(pestle_str_slice(text, at, end), &dims[*rank])) {
      return false;
    }
    ++*rank;
    if (end == text.size) return true;
    if (text.data[end] != 'x') return false;
    at = end + 1;
  }
  *dtype = cli_dtype(pestle_str_slice(text, at, text.size));
  return *dtype != PESTLE_NONE;
}

pestle_status_t cli_parse_type(pestle_str_t text, pestle_dtype_t* out_dtype,
                               int32_t* out_rank,
                               int64_t dims[PESTLE_MAX_RANK]) {
  *out_dtype = PESTLE_NONE;
  *out_rank = 0;
  if (pestle_str_equal_c(text, "scalar") ||
      parse_type(text, out_dtype, out_rank, dims)) {
    return NULL;
  }
  return CLI_USAGE_ERROR(
      "'%.*s' is no shape: write 1x3x640x640 with at most %d extents, or "
      "1x3xf32 with a type",
      PESTLE_STR_ARG(text), PESTLE_MAX_RANK);
}

const char* cli_print_dims(int32_t rank, const int64_t* dims, char* buffer,
                           size_t capacity) {
  size_t at = 0;
  snprintf(buffer, capacity, "scalar");
  for (int32_t i = 0; i < rank && at < capacity; ++i) {
    const char* x = i ? "x" : "";
    int n =
        dims[i] == PESTLE_DIM_DYNAMIC
            ? snprintf(buffer + at, capacity - at, "%s?", x)
            : snprintf(buffer + at, capacity - at, "%s%" PRId64, x, dims[i]);
    at += n > 0 ? (size_t)n : 0;
  }
  return buffer;
}
