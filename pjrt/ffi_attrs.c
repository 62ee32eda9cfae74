// SPDX-License-Identifier: Apache-2.0
// A reader of MLIR's attribute text: numbers, strings, arrays, dense elements and
// dictionaries, which is what the interface has.
#include "pjrt/ffi_attrs.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/str.h"
#include "base/vec.h"
#include "pestle/types.h"

enum { DEEPEST = 16, MOST_ELEMENTS = 1 << 24 };

typedef struct reader_t {
  pestle_arena_t* arena;
  const char* next;
  const char* end;
  pestle_str_t key;  // of the attribute that is being read
  int depth;
} reader_t;

typedef struct entry_t {
  XLA_FFI_AttrType type;
  XLA_FFI_ByteSpan* name;
  void* value;
  struct entry_t* next;
} entry_t;

typedef PESTLE_VEC(uint8_t) bytes_t;

static pestle_status_t read_value(reader_t* r, entry_t* out);

// --- Characters ---

static pestle_status_t damaged(const reader_t* r, const char* what) {
  pestle_str_t rest = pestle_str_make(r->next, (size_t)(r->end - r->next));
  return PESTLE_ERROR(MALFORMED, "attribute '%.*s' lacks %s before '%.*s'",
                      PESTLE_STR_ARG(r->key), what,
                      PESTLE_STR_ARG(pestle_str_slice(rest, 0, 24)));
}

static void skip(reader_t* r) {
  while (r->next < r->end && strchr(" \t\r\n", *r->next))
    ++r->next;
}

static bool take(reader_t* r, char c) {
  skip(r);
  if (r->next == r->end || *r->next != c) return false;
  ++r->next;
  return true;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
}

static pestle_str_t take_word(reader_t* r) {
  skip(r);
  const char* begin = r->next;
  while (r->next < r->end && is_word(*r->next))
    ++r->next;
  return pestle_str_make(begin, (size_t)(r->next - begin));
}

static bool take_text(reader_t* r, const char* text) {
  skip(r);
  size_t size = strlen(text);
  if ((size_t)(r->end - r->next) < size || memcmp(r->next, text, size))
    return false;
  r->next += size;
  return true;
}

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Behind the opening quote.
static pestle_status_t take_string(reader_t* r, pestle_str_t* out) {
  const char* begin = r->next;
  size_t size = 0;
  while (r->next < r->end && *r->next != '"')
    r->next += *r->next == '\\' ? 2 : 1;
  if (r->next >= r->end) {
    r->next = r->end;
    return damaged(r, "a closing '\"'");
  }
  char* text = pestle_arena_alloc(r->arena, (size_t)(r->next - begin) + 1, 1);
  if (!text) return PESTLE_OOM();
  for (const char* c = begin; c < r->next; ++c) {
    if (*c != '\\') {
      text[size++] = *c;
      continue;
    }
    ++c;
    int high = digit(*c), low = c + 1 < r->next ? digit(c[1]) : -1;
    if (high >= 0 && low >= 0) {
      text[size++] = (char)(high * 16 + low);
      ++c;
    } else {
      text[size++] = *c == 'n' ? '\n' : *c == 't' ? '\t' : *c;
    }
  }
  ++r->next;
  text[size] = 0;
  *out = pestle_str_make(text, size);
  return NULL;
}

// --- Types ---

XLA_FFI_DataType pestle_ffi_dtype(int dtype) {
  switch (dtype) {
#define CASE(NAME, NUMBER, DTYPE) \
  case PESTLE_##DTYPE:            \
    return XLA_FFI_DataType_##NAME;
    XLA_FFI_DTYPES(CASE)
#undef CASE
    default:
      return XLA_FFI_DataType_INVALID;
  }
}

// f32, ui8, complex<f32>, index.
static pestle_status_t take_dtype(reader_t* r, pestle_dtype_t* out) {
  char name[32];
  skip(r);
  const char* begin = r->next;
  while (r->next < r->end && is_word(*r->next))
    ++r->next;
  if (r->next < r->end && *r->next == '<') {
    while (r->next < r->end && *r->next != '>')
      ++r->next;
    if (r->next < r->end) ++r->next;
  }
  size_t size = (size_t)(r->next - begin);
  if (size >= sizeof(name)) size = sizeof(name) - 1;
  memcpy(name, begin, size);
  name[size] = 0;
  *out = strcmp(name, "index") ? pestle_dtype_from_name(name) : PESTLE_I64;
  if (*out != PESTLE_NONE && pestle_ffi_dtype((int)*out)) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "attribute '%.*s' has elements of type '%s', which foreign "
      "functions are not given",
      PESTLE_STR_ARG(r->key), name);
}

// --- Numbers ---

static bool is_float(pestle_dtype_t dtype) {
  return pestle_dtype_info(dtype)->kind == PESTLE_KIND_FLOAT;
}

// The bits of the number |text|, as an element of |dtype| has them.
static bool number_bits(pestle_str_t text, pestle_dtype_t dtype,
                        uint64_t* out_bits) {
  int64_t i;
  double f;
  if (dtype == PESTLE_I1 &&
      (pestle_str_equal_c(text, "true") || pestle_str_equal_c(text, "false"))) {
    *out_bits = text.data[0] == 't';
    return true;
  }
  bool is_hex = pestle_str_find(text, pestle_str("0x")) != SIZE_MAX;
  if (is_float(dtype) && !is_hex) {
    if (!pestle_str_parse_f64(text, &f)) return false;
    *out_bits = pestle_float_encode(dtype, f);
    return true;
  }
  if (pestle_str_parse_u64(text, out_bits)) {
    // What is not finite may come as a double's bits, whatever its type.
    if (is_float(dtype) && text.size == 18 && dtype != PESTLE_F64) {
      memcpy(&f, out_bits, sizeof(f));
      *out_bits = pestle_float_encode(dtype, f);
    }
    return true;
  }
  if (!pestle_str_parse_i64(text, &i)) return false;
  *out_bits = (uint64_t)i;
  return true;
}

static pestle_str_t take_number(reader_t* r) {
  skip(r);
  const char* begin = r->next;
  while (r->next < r->end &&
         (is_word(*r->next) || *r->next == '-' || *r->next == '+')) {
    ++r->next;
  }
  return pestle_str_make(begin, (size_t)(r->next - begin));
}

static pestle_status_t append_bits(const reader_t* r, pestle_dtype_t dtype,
                                   uint64_t bits, bytes_t* out) {
  size_t size = pestle_dtype_info(dtype)->size;
  if (out->size / size >= MOST_ELEMENTS) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "attribute '%.*s' has more than %d elements",
                        PESTLE_STR_ARG(r->key), MOST_ELEMENTS);
  }
  for (size_t i = 0; i < size; ++i) {
    if (!pestle_vec_push(out, (uint8_t)(bits >> (8 * i)))) return PESTLE_OOM();
  }
  return NULL;
}

// One element: a number, or (real, imaginary).
static pestle_status_t append_element(reader_t* r, pestle_dtype_t dtype,
                                      bytes_t* out) {
  uint64_t bits;
  bool is_complex = pestle_dtype_info(dtype)->kind == PESTLE_KIND_COMPLEX;
  pestle_dtype_t part = dtype;
  if (is_complex) {
    part = dtype == PESTLE_C64 ? PESTLE_F32 : PESTLE_F64;
    if (!take(r, '(')) return damaged(r, "'('");
  }
  for (int i = 0; i <= is_complex; ++i) {
    if (i && !take(r, ',')) return damaged(r, "','");
    if (!number_bits(take_number(r), part, &bits))
      return damaged(r, "a number of its type");
    PESTLE_TRY(append_bits(r, part, bits, out));
  }
  if (is_complex && !take(r, ')')) return damaged(r, "')'");
  return NULL;
}

// --- Values ---

static pestle_status_t make_array(reader_t* r, pestle_dtype_t dtype,
                                  const bytes_t* bytes, size_t count,
                                  entry_t* out) {
  XLA_FFI_Array* array = PESTLE_ARENA_ARRAY(r->arena, XLA_FFI_Array, 1);
  void* data = pestle_arena_alloc(r->arena, bytes->size + 1, 16);
  if (!array || !data) return PESTLE_OOM();
  if (bytes->size) memcpy(data, bytes->data, bytes->size);
  *array = (XLA_FFI_Array){pestle_ffi_dtype((int)dtype), count, data};
  out->type = XLA_FFI_AttrType_ARRAY;
  out->value = array;
  return NULL;
}

static size_t count_of(pestle_dtype_t dtype, const bytes_t* bytes) {
  return bytes->size / pestle_dtype_info(dtype)->size;
}

// array<i64: 1, 2>, behind the '<'.
static pestle_status_t read_array(reader_t* r, bytes_t* bytes, entry_t* out) {
  pestle_dtype_t dtype;
  PESTLE_TRY(take_dtype(r, &dtype));
  if (take(r, ':')) {
    do {
      PESTLE_TRY(append_element(r, dtype, bytes));
    } while (take(r, ','));
  }
  if (!take(r, '>')) return damaged(r, "'>'");
  return make_array(r, dtype, bytes, count_of(dtype, bytes), out);
}

// Elements in any nesting of brackets: numbers come in row-major order.
static pestle_status_t read_elements(reader_t* r, pestle_dtype_t dtype,
                                     bytes_t* bytes) {
  int depth = 0;
  for (;;) {
    skip(r);
    if (take(r, '[')) {
      ++depth;
    } else if (take(r, ']')) {
      if (--depth < 0) return damaged(r, "'['");
    } else if (take(r, ',')) {
      continue;
    } else if (r->next == r->end || *r->next == '>') {
      return depth ? damaged(r, "']'") : NULL;
    } else {
      PESTLE_TRY(append_element(r, dtype, bytes));
    }
  }
}

static pestle_status_t read_hex(reader_t* r, pestle_str_t text,
                                bytes_t* bytes) {
  bool is_fine = text.size >= 2 && text.size % 2 == 0 && text.data[0] == '0' &&
                 (text.data[1] == 'x' || text.data[1] == 'X');
  for (size_t i = 2; is_fine && i < text.size; i += 2) {
    int high = digit(text.data[i]), low = digit(text.data[i + 1]);
    is_fine = high >= 0 && low >= 0;
    if (is_fine && !pestle_vec_push(bytes, (uint8_t)(high * 16 + low)))
      return PESTLE_OOM();
  }
  return is_fine ? NULL : damaged(r, "hexadecimal digits");
}

// tensor<2x3xf32>
static pestle_status_t take_type(reader_t* r, pestle_dtype_t* out_dtype,
                                 size_t* out_count) {
  size_t count = 1;
  if (!take_text(r, "tensor<")) return damaged(r, "a tensor's type");
  for (;;) {
    const char* begin = r->next;
    size_t extent = 0;
    while (r->next < r->end && *r->next >= '0' && *r->next <= '9')
      extent = extent * 10 + (size_t)(*r->next++ - '0');
    if (r->next == begin || r->next == r->end || *r->next != 'x') {
      r->next = begin;
      break;
    }
    ++r->next;
    if (extent && count > MOST_ELEMENTS / extent)
      return damaged(r, "a size that can be");
    count *= extent;
  }
  PESTLE_TRY(take_dtype(r, out_dtype));
  *out_count = count;
  return take(r, '>') ? NULL : damaged(r, "'>'");
}

// dense<[1, 2]> : tensor<2xi64>, behind the '<'. The type is behind the numbers.
static pestle_status_t read_dense(reader_t* r, bytes_t* bytes, entry_t* out) {
  const char* begin = r->next;
  pestle_dtype_t dtype;
  size_t count;
  for (bool quoted = false; r->next < r->end; ++r->next) {
    if (*r->next == '"') quoted = !quoted;
    if (*r->next == '>' && !quoted) break;
  }
  if (!take(r, '>') || !take(r, ':')) return damaged(r, "'> :'");
  PESTLE_TRY(take_type(r, &dtype, &count));
  const char* behind = r->next;
  r->next = begin;
  if (take(r, '"')) {
    pestle_str_t text;
    PESTLE_TRY(take_string(r, &text));
    PESTLE_TRY(read_hex(r, text, bytes));
  } else {
    PESTLE_TRY(read_elements(r, dtype, bytes));
  }
  size_t size = pestle_dtype_info(dtype)->size, given = bytes->size;
  if (given == size) {  // one for all
    for (size_t i = size; i < count * size; ++i) {
      if (!pestle_vec_push(bytes, bytes->data[i - size])) return PESTLE_OOM();
    }
    if (!count) bytes->size = 0;
  }
  if (bytes->size != count * size)
    return damaged(r, "as many elements as its type has");
  r->next = behind;
  return make_array(r, dtype, bytes, count, out);
}

static pestle_status_t make_scalar(reader_t* r, pestle_dtype_t dtype,
                                   uint64_t bits, entry_t* out) {
  XLA_FFI_Scalar* scalar = PESTLE_ARENA_ARRAY(r->arena, XLA_FFI_Scalar, 1);
  uint64_t* value = PESTLE_ARENA_ARRAY(r->arena, uint64_t, 1);
  if (!scalar || !value) return PESTLE_OOM();
  *value = bits;  // its low bytes come first: little-endian, as the bits are
  *scalar = (XLA_FFI_Scalar){pestle_ffi_dtype((int)dtype), value};
  out->type = XLA_FFI_AttrType_SCALAR;
  out->value = scalar;
  return NULL;
}

static bool looks_float(pestle_str_t text) {
  return pestle_str_find(text, pestle_str("0x")) == SIZE_MAX &&
         (pestle_str_find_char(text, '.') != SIZE_MAX ||
          pestle_str_find_char(text, 'e') != SIZE_MAX);
}

// 3, 2.0 : f32, true.
static pestle_status_t read_scalar(reader_t* r, entry_t* out) {
  uint64_t bits;
  pestle_str_t text = take_number(r);
  if (!text.size) return damaged(r, "a value");
  bool is_bool =
      pestle_str_equal_c(text, "true") || pestle_str_equal_c(text, "false");
  pestle_dtype_t dtype = is_bool             ? PESTLE_I1
                         : looks_float(text) ? PESTLE_F64
                                             : PESTLE_I64;
  if (take(r, ':')) PESTLE_TRY(take_dtype(r, &dtype));
  if (!number_bits(text, dtype, &bits)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "attribute '%.*s' is '%.*s', which foreign functions "
                        "are not given: numbers, strings, arrays and "
                        "dictionaries are",
                        PESTLE_STR_ARG(r->key), PESTLE_STR_ARG(text));
  }
  return make_scalar(r, dtype, bits, out);
}

// [1, 2 : i64]: numbers of one type make an array.
static pestle_status_t read_list(reader_t* r, bytes_t* bytes, entry_t* out) {
  int dtype = -1;
  size_t count = 0;
  while (!take(r, ']')) {
    entry_t element = {0};
    if (count++ && !take(r, ',')) return damaged(r, "','");
    PESTLE_TRY(read_value(r, &element));
    const XLA_FFI_Scalar* scalar = element.value;
    if (element.type != XLA_FFI_AttrType_SCALAR ||
        (dtype >= 0 && dtype != (int)scalar->dtype)) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "attribute '%.*s' is a list of other things than "
                          "numbers of one type",
                          PESTLE_STR_ARG(r->key));
    }
    dtype = (int)scalar->dtype;
    for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
      if ((int)pestle_ffi_dtype(d) != dtype || !dtype) continue;
      uint64_t bits;
      memcpy(&bits, scalar->value, sizeof(bits));
      PESTLE_TRY(append_bits(r, (pestle_dtype_t)d, bits, bytes));
      break;
    }
  }
  XLA_FFI_Array* array = PESTLE_ARENA_ARRAY(r->arena, XLA_FFI_Array, 1);
  void* data = pestle_arena_alloc(r->arena, bytes->size + 1, 16);
  if (!array || !data) return PESTLE_OOM();
  if (bytes->size) memcpy(data, bytes->data, bytes->size);
  *array = (XLA_FFI_Array){
      dtype < 0 ? XLA_FFI_DataType_S64 : (XLA_FFI_DataType)dtype, count, data};
  out->type = XLA_FFI_AttrType_ARRAY;
  out->value = array;
  return NULL;
}

// --- Dictionaries ---

static int by_name(const void* a, const void* b) {
  const entry_t *x = *(entry_t* const*)a, *y = *(entry_t* const*)b;
  size_t size = x->name->len < y->name->len ? x->name->len : y->name->len;
  int order = memcmp(x->name->ptr, y->name->ptr, size);
  if (order) return order;
  return (x->name->len > y->name->len) - (x->name->len < y->name->len);
}

static pestle_status_t make_attrs(reader_t* r, entry_t* first, size_t count,
                                  XLA_FFI_Attrs* out) {
  entry_t** all = PESTLE_ARENA_ARRAY(r->arena, entry_t*, count + 1);
  *out = (XLA_FFI_Attrs){.struct_size = sizeof(*out), .size = (int64_t)count};
  out->types = PESTLE_ARENA_ARRAY(r->arena, XLA_FFI_AttrType, count + 1);
  out->names = PESTLE_ARENA_ARRAY(r->arena, XLA_FFI_ByteSpan*, count + 1);
  out->attrs = PESTLE_ARENA_ARRAY(r->arena, void*, count + 1);
  if (!all || !out->types || !out->names || !out->attrs) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i, first = first->next)
    all[i] = first;
  qsort(all, count, sizeof(*all), by_name);
  for (size_t i = 0; i < count; ++i) {
    out->types[i] = all[i]->type;
    out->names[i] = all[i]->name;
    out->attrs[i] = all[i]->value;
  }
  return NULL;
}

static pestle_status_t take_key(reader_t* r, entry_t* entry) {
  pestle_str_t key;
  if (take(r, '"')) {
    PESTLE_TRY(take_string(r, &key));
  } else {
    key = take_word(r);
  }
  if (!key.size) return damaged(r, "a key");
  XLA_FFI_ByteSpan* name = PESTLE_ARENA_ARRAY(r->arena, XLA_FFI_ByteSpan, 1);
  if (!name) return PESTLE_OOM();
  *name = (XLA_FFI_ByteSpan){key.data, key.size};
  entry->name = name;
  r->key = key;
  return NULL;
}

// [[0, 1], []]: an order for each tensor.
static pestle_status_t read_orders(reader_t* r, pestle_ffi_attrs_t* out) {
  enum { MOST = 4096 };
  pestle_ffi_order_t* orders =
      PESTLE_ARENA_ARRAY(r->arena, pestle_ffi_order_t, MOST);
  if (!orders) return PESTLE_OOM();
  if (!take(r, '[')) return damaged(r, "'['");
  while (!take(r, ']') && out->order_count < MOST) {
    if (out->order_count && !take(r, ',')) return damaged(r, "','");
    entry_t element = {0};
    PESTLE_TRY(read_value(r, &element));
    const XLA_FFI_Array* axes = element.value;
    if (element.type != XLA_FFI_AttrType_ARRAY ||
        axes->dtype != XLA_FFI_DataType_S64 || axes->size > PESTLE_MAX_RANK) {
      return damaged(r, "a list of axes");
    }
    orders[out->order_count++] = (pestle_ffi_order_t){axes->size, axes->data};
  }
  out->orders = orders;
  return NULL;
}

// Behind the '{'. |top|: the call's own, which may say how tensors lie.
static pestle_status_t read_dictionary(reader_t* r, XLA_FFI_Attrs* out,
                                       pestle_ffi_attrs_t* top) {
  entry_t* first = NULL;
  entry_t** end = &first;
  size_t count = 0;
  for (bool is_first = true; !take(r, '}'); is_first = false) {
    entry_t* entry = PESTLE_ARENA_ARRAY(r->arena, entry_t, 1);
    if (!entry) return PESTLE_OOM();
    *entry = (entry_t){.next = NULL};
    if (!is_first && !take(r, ',')) return damaged(r, "','");
    PESTLE_TRY(take_key(r, entry));
    if (!take(r, '=')) return damaged(r, "'='");
    if (top && pestle_str_equal_c(r->key, PESTLE_FFI_LAYOUTS)) {
      PESTLE_TRY(read_orders(r, top));
      continue;
    }
    PESTLE_TRY(read_value(r, entry));
    *end = entry;
    end = &entry->next;
    ++count;
  }
  return make_attrs(r, first, count, out);
}

static pestle_status_t read_inner(reader_t* r, bytes_t* bytes, entry_t* out) {
  if (take_text(r, "array<")) return read_array(r, bytes, out);
  if (take_text(r, "dense<")) return read_dense(r, bytes, out);
  if (take(r, '[')) return read_list(r, bytes, out);
  if (take(r, '{')) {
    XLA_FFI_Attrs* attrs = PESTLE_ARENA_ARRAY(r->arena, XLA_FFI_Attrs, 1);
    if (!attrs) return PESTLE_OOM();
    out->type = XLA_FFI_AttrType_DICTIONARY;
    out->value = attrs;
    return read_dictionary(r, attrs, NULL);
  }
  if (take(r, '"')) {
    pestle_str_t text;
    XLA_FFI_ByteSpan* span = PESTLE_ARENA_ARRAY(r->arena, XLA_FFI_ByteSpan, 1);
    if (!span) return PESTLE_OOM();
    PESTLE_TRY(take_string(r, &text));
    *span = (XLA_FFI_ByteSpan){text.data, text.size};
    out->type = XLA_FFI_AttrType_STRING;
    out->value = span;
    return NULL;
  }
  return read_scalar(r, out);
}

static pestle_status_t read_value(reader_t* r, entry_t* out) {
  bytes_t bytes;
  if (r->depth == DEEPEST) return damaged(r, "an end to its nesting");
  ++r->depth;
  pestle_vec_init(&bytes, pestle_allocator_system());
  pestle_status_t status = read_inner(r, &bytes, out);
  pestle_vec_deinit(&bytes);
  --r->depth;
  return status;
}

pestle_status_t pestle_ffi_attrs_read(const char* dictionary,
                                      pestle_arena_t* arena,
                                      pestle_ffi_attrs_t* out_attrs) {
  reader_t r = {.arena = arena,
                .next = dictionary,
                .end = dictionary + strlen(dictionary)};
  *out_attrs = (pestle_ffi_attrs_t){.orders = NULL};
  skip(&r);
  if (r.next == r.end) return make_attrs(&r, NULL, 0, &out_attrs->attrs);
  if (!take(&r, '{')) return damaged(&r, "'{'");
  PESTLE_TRY(read_dictionary(&r, &out_attrs->attrs, out_attrs));
  skip(&r);
  return r.next == r.end ? NULL : damaged(&r, "an end");
}
