// SPDX-License-Identifier: Apache-2.0
// dense<..>: one value for all, nested lists, or bytes in hexadecimal.
#include "base/half.h"
#include "base/hex.h"
#include "ir/parse_internal.h"

typedef struct dense_t {
  pestle_parser_t* p;
  const pestle_type_t* type;
  char* data;
  size_t at;  // elements read
} dense_t;

static void store(dense_t* d, pestle_dtype_t dtype, size_t offset,
                  uint64_t bits) {
  memcpy(d->data + offset, &bits, pestle_dtype_size(dtype));
}

static pestle_status_t does_not_fit(const pestle_parser_t* p,
                                    const pestle_token_t* t,
                                    pestle_dtype_t dtype) {
  return pestle_parse_error(p, t, PESTLE_STATUS_MALFORMED,
                            "%.*s is no value of type %s",
                            t->whole.size > 40 ? 40 : (int)t->whole.size,
                            t->whole.data, pestle_dtype_info(dtype)->name);
}

static bool is_hex_text(pestle_str_t text) {
  return text.size > 2 && text.data[0] == '0' && text.data[1] == 'x';
}

static pestle_status_t read_float(dense_t* d, pestle_dtype_t dtype,
                                  size_t offset) {
  pestle_parser_t* p = d->p;
  const pestle_token_t* t = pestle_parse_token(p);
  unsigned bits = pestle_dtype_info(dtype)->bits;
  uint64_t pattern;
  double value;
  if (t->kind != PESTLE_TOKEN_INT && t->kind != PESTLE_TOKEN_FLOAT) {
    return pestle_parse_expected(p, "a number");
  }
  if (is_hex_text(t->text)) {
    if (!pestle_str_parse_u64(t->text, &pattern) ||
        (bits < 64 && pattern >> bits)) {
      return does_not_fit(p, t, dtype);
    }
  } else if (pestle_str_parse_f64(t->text, &value)) {
    pattern = pestle_float_encode(dtype, value);
  } else {
    return does_not_fit(p, t, dtype);
  }
  store(d, dtype, offset, pattern);
  pestle_parse_advance(p);
  return NULL;
}

// Whether the 64 bits of |value| are a number of |bits| bits: any pattern, or a
// negative number of a signed type.
static bool int_fits(int64_t value, bool negative, unsigned bits,
                     bool is_signed) {
  if (negative) {
    return is_signed && (bits == 64 || value >= -(INT64_C(1) << (bits - 1)));
  }
  return bits == 64 || !((uint64_t)value >> bits);
}

static pestle_status_t read_int(dense_t* d, pestle_dtype_t dtype,
                                size_t offset) {
  pestle_parser_t* p = d->p;
  pestle_token_t t = *pestle_parse_token(p);
  int64_t value;
  if (dtype == PESTLE_I1 && t.kind == PESTLE_TOKEN_WORD) {
    bool is_true = pestle_parse_take_word(p, "true");
    if (!is_true && !pestle_parse_take_word(p, "false")) {
      return pestle_parse_expected(p, "true or false");
    }
    store(d, dtype, offset, is_true);
    return NULL;
  }
  PESTLE_TRY(pestle_parse_integer(p, &value));
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  if (!int_fits(value, t.text.data[0] == '-', pestle_dtype_info(dtype)->bits,
                is_signed)) {
    return does_not_fit(p, &t, dtype);
  }
  if (pestle_dtype_is_sub_byte(dtype)) {
    value = pestle_dtype_extend(dtype, (uint8_t)value);
  }
  store(d, dtype, offset, (uint64_t)value);
  return NULL;
}

static pestle_status_t read_element(dense_t* d) {
  pestle_parser_t* p = d->p;
  pestle_dtype_t dtype = d->type->dtype;
  size_t offset = d->at++ * pestle_dtype_size(dtype);
  if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
    pestle_dtype_t part = dtype == PESTLE_C64 ? PESTLE_F32 : PESTLE_F64;
    PESTLE_TRY(pestle_parse_expect(p, '('));
    PESTLE_TRY(read_float(d, part, offset));
    PESTLE_TRY(pestle_parse_expect(p, ','));
    PESTLE_TRY(read_float(d, part, offset + pestle_dtype_size(part)));
    return pestle_parse_expect(p, ')');
  }
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)
             ? read_float(d, dtype, offset)
             : read_int(d, dtype, offset);
}

static pestle_status_t read_nested(dense_t* d, int axis) {
  if (axis == d->type->rank) return read_element(d);
  PESTLE_TRY(pestle_parse_expect(d->p, '['));
  for (int64_t i = 0; i < d->type->dims[axis]; ++i) {
    if (i) PESTLE_TRY(pestle_parse_expect(d->p, ','));
    PESTLE_TRY(read_nested(d, axis + 1));
  }
  return pestle_parse_expect(d->p, ']');
}

static bool read_bytes(pestle_str_t hex, unsigned char* out) {
  unsigned bad = 0;
  for (size_t i = 0; i + 1 < hex.size; i += 2) {
    unsigned high = (unsigned)pestle_hex_digit(hex.data[i]);
    unsigned low = (unsigned)pestle_hex_digit(hex.data[i + 1]);
    bad |= high | low;
    out[i / 2] = (unsigned char)((high & 15) << 4 | (low & 15));
  }
  return bad < 16;  // -1 has all bits
}

// MLIR packs booleans eight to a byte; we print one byte each.
static void unpack_bools(const unsigned char* packed, size_t count, char* out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = (char)(packed[i / 8] >> (i % 8) & 1);
  }
}

// Bytes that no value of the type has would travel on as they are.
static void clean_bytes(pestle_elements_t* e, char* data) {
  for (size_t i = 0; i < e->size; ++i) {
    if (e->type.dtype == PESTLE_I1) data[i] = data[i] != 0;
    if (pestle_dtype_is_sub_byte(e->type.dtype)) {
      data[i] = (char)pestle_dtype_extend(e->type.dtype, (uint8_t)data[i]);
    }
  }
}

static pestle_status_t read_hex(pestle_parser_t* p, pestle_elements_t* e) {
  pestle_token_t t = *pestle_parse_token(p);
  size_t count = (size_t)pestle_type_count(&e->type);
  size_t size = pestle_dtype_size(e->type.dtype);
  pestle_str_t hex = pestle_str_slice(t.text, 2, t.text.size);
  size_t bytes = hex.size / 2;
  bool packed = e->type.dtype == PESTLE_I1 && bytes != count &&
                bytes == count / 8 + (count % 8 != 0);
  e->splat = !packed && bytes == size && count != 1;
  if (!is_hex_text(t.text) || hex.size % 2 ||
      (!packed && !e->splat && bytes != count * size)) {
    return pestle_parse_error(
        p, &t, PESTLE_STATUS_MALFORMED,
        "expected \"0x\" and %zu hexadecimal digits, found %zu characters",
        2 * count * size, t.text.size);
  }
  unsigned char* data = pestle_arena_alloc(&p->scratch, bytes, 64);
  if (!data) return PESTLE_OOM();
  if (!read_bytes(hex, data)) {
    return pestle_parse_error(p, &t, PESTLE_STATUS_MALFORMED,
                              "a byte of the data is no hexadecimal number");
  }
  e->data = data;
  e->size = bytes;
  if (packed) {
    char* bools = pestle_arena_alloc(&p->scratch, count, 64);
    if (!bools) return PESTLE_OOM();
    unpack_bools(data, count, bools);
    e->data = bools;
    e->size = count;
  } else {
    clean_bytes(e, (char*)data);
  }
  pestle_parse_advance(p);
  return NULL;
}

// What stands between < and >, whose end is at |close|.
static pestle_status_t read_content(pestle_parser_t* p, pestle_elements_t* e,
                                    const char* close) {
  size_t count = (size_t)pestle_type_count(&e->type);
  size_t size = pestle_dtype_size(e->type.dtype);
  size_t room = (size_t)(close - pestle_parse_token(p)->whole.data);
  if (pestle_parse_at(p, '>')) {
    if (!count) return NULL;
    return pestle_parse_expected(p, "the elements");
  }
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_STRING)) return read_hex(p, e);
  e->splat = e->type.rank && !pestle_parse_at(p, '[');
  // Every element takes a character at least.
  if (!e->splat && count > room) {
    return pestle_parse_error(p, pestle_parse_token(p), PESTLE_STATUS_MALFORMED,
                              "expected %zu elements in %zu characters", count,
                              room);
  }
  e->size = e->splat ? size : count * size;
  dense_t d = {.p = p,
               .type = &e->type,
               .data = pestle_arena_alloc(&p->scratch, e->size, 64)};
  if (!d.data) return PESTLE_OOM();
  e->data = d.data;
  if (e->splat) {
    // A value for no elements is no value.
    char spare[16];
    if (!count) d.data = spare;
    PESTLE_TRY(read_element(&d));
    if (!count) e->size = 0, e->splat = false;
    return NULL;
  }
  return read_nested(&d, 0);
}

// The type comes last but says how to read: look at it first.
pestle_status_t pestle_parse_dense(pestle_parser_t* p,
                                   pestle_elements_t* out_elements) {
  *out_elements = (pestle_elements_t){0};
  pestle_parse_advance(p);
  if (!pestle_parse_at(p, '<')) return pestle_parse_expected(p, "'<'");
  pestle_lexer_t open = p->lexer;
  PESTLE_TRY(pestle_parse_skip_brackets(p, true));
  const char* close = p->lexer.token.whole.data;
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  pestle_token_t type_token = *pestle_parse_token(p);
  PESTLE_TRY(pestle_parse_type(p, &out_elements->type));
  if (!pestle_type_is_static(&out_elements->type)) {
    return pestle_parse_error(p, &type_token, PESTLE_STATUS_MALFORMED,
                              "constant data needs a type with known extents");
  }
  pestle_lexer_t end = p->lexer;
  p->lexer = open;
  pestle_parse_advance(p);
  PESTLE_TRY(read_content(p, out_elements, close));
  PESTLE_TRY(pestle_parse_expect(p, '>'));
  p->lexer = end;
  return NULL;
}
