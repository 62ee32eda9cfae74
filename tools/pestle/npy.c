// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, versions 1 to 3: a header that is a Python dictionary,
// then the elements.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli.h"

// Files have |V1 to <V2 for types of ml_dtypes, whose names numpy does not know:
// they are read as bits.
static const struct {
  const char* text;
  pestle_dtype_t dtype;
} types[] = {
    {"|b1", PESTLE_I1},    {"|i1", PESTLE_I8},  {"|u1", PESTLE_U8},
    {"<i1", PESTLE_I8},    {"<u1", PESTLE_U8},  {"<i2", PESTLE_I16},
    {"<i4", PESTLE_I32},   {"<i8", PESTLE_I64}, {"<u2", PESTLE_U16},
    {"<u4", PESTLE_U32},   {"<u8", PESTLE_U64}, {"<f2", PESTLE_F16},
    {"<f4", PESTLE_F32},   {"<f8", PESTLE_F64}, {"<c8", PESTLE_C64},
    {"<c16", PESTLE_C128}, {"|V1", PESTLE_U8},  {"<V1", PESTLE_U8},
    {"<f1", PESTLE_U8},    {"|V2", PESTLE_U16}, {"<V2", PESTLE_U16},
};
enum { TYPE_COUNT = sizeof(types) / sizeof(types[0]) };

static const char magic[] = "\x93NUMPY";

// --- Reading ---

typedef struct header_t {
  pestle_dtype_t dtype;
  bool is_fortran;
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  size_t data;  // where the elements begin
  // Of strings: their characters, and whether they are of 4 bytes; 0: none.
  size_t length;
  bool is_wide, is_text;
} header_t;

// What follows "'key':" in the dictionary, without leading spaces.
static pestle_str_t value_of(pestle_str_t dictionary, const char* key) {
  size_t at = pestle_str_find(dictionary, pestle_str(key));
  if (at == SIZE_MAX) return (pestle_str_t){0};
  at += strlen(key);
  while (at < dictionary.size && strchr("': ", dictionary.data[at]))
    ++at;
  return pestle_str_slice(dictionary, at, dictionary.size);
}

// '<U8', '|S8': 8 characters each.
static bool read_text(pestle_str_t text, header_t* out) {
  int64_t length;
  bool wide = pestle_str_starts_with(text, PESTLE_STR("<U"));
  if (!wide && !pestle_str_starts_with(text, PESTLE_STR("|S"))) return false;
  if (!pestle_str_parse_i64(pestle_str_slice(text, 2, text.size), &length) ||
      length < 0 || length > (1 << 24)) {
    return false;
  }
  out->dtype = PESTLE_I32;
  out->length = (size_t)length;
  out->is_wide = wide;
  out->is_text = true;
  return true;
}

static pestle_status_t read_dtype(pestle_str_t dictionary, header_t* out) {
  pestle_str_t text, rest;
  pestle_str_split(value_of(dictionary, "'descr'"), '\'', &text, &rest);
  if (read_text(text, out)) return NULL;
  for (int i = 0; i < TYPE_COUNT; ++i) {
    if (!pestle_str_equal_c(text, types[i].text)) continue;
    out->dtype = types[i].dtype;
    return NULL;
  }
  return PESTLE_ERROR(UNSUPPORTED,
                      "its element type is '%.*s'; save it little-endian as "
                      "one of bool, [u]int8-64, float16-64, complex64-128, or "
                      "as strings ('<U8')",
                      PESTLE_STR_ARG(text));
}

static pestle_status_t read_shape(pestle_str_t dictionary, header_t* header) {
  pestle_str_t list = value_of(dictionary, "'shape'"), field, rest;
  bool is_list =
      list.size && list.data[0] == '(' &&
      pestle_str_split(pestle_str_slice(list, 1, list.size), ')', &list, &rest);
  while (is_list && pestle_str_next(&list, ',', &field)) {
    field = pestle_str_trim(field);
    if (!field.size) continue;
    is_list = header->rank < PESTLE_MAX_RANK &&
              pestle_str_parse_i64(field, &header->dims[header->rank]);
    if (is_list && header->dims[header->rank++] < 0) {
      return PESTLE_ERROR(MALFORMED,
                          "its shape has the extent %.*s; extents are not "
                          "negative",
                          PESTLE_STR_ARG(field));
    }
  }
  if (is_list) return NULL;
  return PESTLE_ERROR(MALFORMED, "its shape is not a tuple of up to %d numbers",
                      PESTLE_MAX_RANK);
}

static pestle_status_t read_header(pestle_str_t file, header_t* out_header) {
  *out_header = (header_t){0};
  const uint8_t* b = (const uint8_t*)file.data;
  if (file.size < 12 || memcmp(b, magic, 6) || b[6] < 1 || b[6] > 3) {
    return PESTLE_ERROR(MALFORMED, "it is no .npy file of version 1 to 3");
  }
  size_t begin = b[6] == 1 ? 10 : 12;
  size_t size = b[8] | (size_t)b[9] << 8;
  if (b[6] > 1) size |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (size > file.size - begin) {
    return PESTLE_ERROR(MALFORMED, "it ends within its header");
  }
  pestle_str_t dictionary = pestle_str_slice(file, begin, begin + size);
  PESTLE_TRY(read_dtype(dictionary, out_header));
  PESTLE_TRY(read_shape(dictionary, out_header));
  pestle_str_t order = value_of(dictionary, "'fortran_order'");
  out_header->is_fortran = pestle_str_starts_with(order, PESTLE_STR("True"));
  if (!out_header->is_fortran &&
      !pestle_str_starts_with(order, PESTLE_STR("False"))) {
    return PESTLE_ERROR(MALFORMED,
                        "its 'fortran_order' is neither True nor False");
  }
  out_header->data = begin + size;
  return NULL;
}

// |from| has its first axis innermost.
static void copy_fortran(const char* from, cli_array_t* array) {
  size_t element = pestle_dtype_size(array->dtype);
  int64_t strides[PESTLE_MAX_RANK], index[PESTLE_MAX_RANK] = {0}, stride = 1;
  for (int32_t i = 0; i < array->rank; ++i) {
    strides[i] = stride;
    stride *= array->dims[i];
  }
  for (int64_t n = 0; n < array->count; ++n) {
    int64_t at = 0;
    for (int32_t i = 0; i < array->rank; ++i)
      at += index[i] * strides[i];
    memcpy((char*)array->data + (size_t)n * element,
           from + (size_t)at * element, element);
    for (int32_t i = array->rank - 1; i >= 0; --i) {
      if (++index[i] < array->dims[i]) break;
      index[i] = 0;
    }
  }
}

static pestle_status_t read_array(pestle_str_t file, cli_array_t* out_array) {
  header_t h;
  int64_t count;
  size_t size;
  PESTLE_TRY(read_header(file, &h));
  size_t held = file.size - h.data;
  size_t each =
      h.is_text ? h.length * (h.is_wide ? 4 : 1) : pestle_dtype_size(h.dtype);
  // Before memory is asked for: a damaged header may claim anything.
  if (!pestle_checked_count(h.dims, (size_t)h.rank, &count) ||
      !pestle_checked_mul((size_t)count, each, &size) || size > held) {
    return PESTLE_ERROR(MALFORMED,
                        "it holds %zu bytes of elements, less than its shape "
                        "says",
                        held);
  }
  if (size < held) {
    return PESTLE_ERROR(MALFORMED,
                        "%zu bytes follow the %zu bytes of elements that its "
                        "shape says",
                        held - size, size);
  }
  PESTLE_TRY(cli_array_init(h.dtype, h.rank, h.dims, out_array));
  const char* from = file.data + h.data;
  if (h.is_text && h.is_fortran && h.rank > 1) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "its strings are in Fortran's order; save them in C's");
  }
  if (h.is_text) return cli_words_read(from, h.length, h.is_wide, out_array);
  if (h.is_fortran && h.rank > 1) {
    copy_fortran(from, out_array);
  } else if (size) {
    memcpy(out_array->data, from, size);
  }
  return NULL;
}

pestle_status_t cli_npy_read(const char* path, cli_array_t* out_array) {
  *out_array = (cli_array_t){0};
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_file_map(path, &mapping));
  pestle_status_t status =
      read_array(pestle_str_make(mapping.data, mapping.size), out_array);
  pestle_file_unmap(&mapping);
  return pestle_status_annotate(status, "while reading '%s'", path);
}

// --- Writing ---

static const char* stored_type(pestle_dtype_t dtype) {
  for (int i = 0; i < TYPE_COUNT; ++i) {
    if (types[i].dtype == dtype) return types[i].text;
  }
  return pestle_dtype_size(dtype) == 2 ? "<u2" : "|u1";
}

static const char* text_type(const cli_array_t* array, char text[32]) {
  snprintf(text, 32, "<U%zu", cli_words_length(array));
  return text;
}

static void write_header(const cli_array_t* array, pestle_strbuf_t* out) {
  static const char version[] = {1, 0};
  char text[32];
  pestle_strbuf_append_bytes(out, magic, 6);
  pestle_strbuf_append_bytes(out, version, 2);
  size_t at = out->size;
  pestle_strbuf_append_fill(out, ' ', 2);
  pestle_strbuf_appendf(
      out,
      "{'descr': '%s', 'fortran_order': False, "
      "'shape': (",
      array->words ? text_type(array, text) : stored_type(array->dtype));
  for (int32_t i = 0; i < array->rank; ++i) {
    pestle_strbuf_appendf(out, i ? ", %" PRId64 : "%" PRId64, array->dims[i]);
  }
  pestle_strbuf_append_c(out, array->rank == 1 ? ",), }" : "), }");
  // The elements begin at a multiple of 64.
  pestle_strbuf_append_fill(out, ' ', 63 - out->size % 64);
  pestle_strbuf_append_char(out, '\n');
  if (out->failed) return;
  size_t size = out->size - at - 2;
  out->data[at] = (char)(size & 255);
  out->data[at + 1] = (char)(size >> 8);
}

static void write_elements(const cli_array_t* array, pestle_strbuf_t* out) {
  unsigned mask = (1u << pestle_dtype_info(array->dtype)->bits % 8) - 1;
  size_t size = (size_t)array->count * pestle_dtype_size(array->dtype);
  pestle_strbuf_append_bytes(out, array->data, size);
  if (!pestle_dtype_is_sub_byte(array->dtype) || out->failed) return;
  for (size_t i = out->size - size; i < out->size; ++i)
    out->data[i] = (char)((unsigned char)out->data[i] & mask);
}

pestle_status_t cli_npy_write(const char* path, const cli_array_t* array) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  write_header(array, &text);
  if (array->words) {
    cli_words_write(array, cli_words_length(array), &text);
  } else {
    write_elements(array, &text);
  }
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) status = pestle_file_write(path, pestle_strbuf_view(&text));
  pestle_strbuf_deinit(&text);
  return pestle_status_annotate(status, "while writing '%s'", path);
}
