// SPDX-License-Identifier: Apache-2.0
// Tensors of ONNX test data.
#include <string.h>

#include "base/file.h"
#include "cli.h"

static pestle_status_t copy_elements(const pestle_elements_t* elements,
                                     cli_array_t* out_array) {
  PESTLE_TRY(cli_array_init(elements->type.dtype, elements->type.rank,
                            elements->type.dims, out_array));
  size_t size = pestle_dtype_size(out_array->dtype);
  if (!elements->splat && elements->size == out_array->size) {
    if (out_array->size) {
      memcpy(out_array->data, elements->data, out_array->size);
    }
    return NULL;
  }
  for (int64_t i = 0; elements->splat && i < out_array->count; ++i) {
    memcpy((char*)out_array->data + (size_t)i * size, elements->data, size);
  }
  return NULL;
}

// --- Tensors of strings: the fields of onnx.TensorProto that they have ---

typedef struct proto_t {
  const uint8_t *next, *end;
} proto_t;

static bool read_varint(proto_t* p, uint64_t* out) {
  *out = 0;
  for (unsigned shift = 0; p->next < p->end && shift < 64; shift += 7) {
    uint8_t byte = *p->next++;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return true;
  }
  return false;
}

// The next field: its number, and a number or bytes.
static bool read_field(proto_t* p, uint64_t* out_number, uint64_t* out_value,
                       pestle_str_t* out_bytes) {
  uint64_t key;
  *out_bytes = (pestle_str_t){0};
  if (!read_varint(p, &key)) return false;
  *out_number = key >> 3;
  uint64_t size = (key & 7) == 1 ? 8 : 4;
  if ((key & 7) == 0) return read_varint(p, out_value);
  if ((key & 7) == 2 && !read_varint(p, &size)) return false;
  if (size > (uint64_t)(p->end - p->next)) return false;
  *out_bytes = pestle_str_make((const char*)p->next, (size_t)size);
  p->next += size;
  return true;
}

typedef struct strings_t {
  int64_t dims[PESTLE_MAX_RANK], count;
  int32_t rank;
  bool is_text, bad;
  size_t bytes;  // of all strings
  pestle_str_t name;
} strings_t;

static void add_dim(strings_t* s, uint64_t dim) {
  s->bad = s->bad || s->rank == PESTLE_MAX_RANK || dim > INT64_MAX;
  if (!s->bad) s->dims[s->rank++] = (int64_t)dim;
}

static strings_t read_strings(pestle_str_t file) {
  strings_t s = {0};
  proto_t p = {(const uint8_t*)file.data,
               (const uint8_t*)file.data + file.size};
  uint64_t number = 0, value = 0;
  pestle_str_t bytes;
  while (!s.bad && p.next < p.end) {
    s.bad = !read_field(&p, &number, &value, &bytes);
    if (number == 1 && !bytes.data) add_dim(&s, value);
    proto_t packed = {(const uint8_t*)bytes.data,
                      (const uint8_t*)bytes.data + bytes.size};
    while (number == 1 && bytes.data && packed.next < packed.end && !s.bad) {
      s.bad = !read_varint(&packed, &value);
      add_dim(&s, value);
    }
    if (number == 2) s.is_text = value == 8;  // STRING
    if (number == 6) ++s.count;
    if (number == 6) s.bytes += bytes.size;
    if (number == 8) s.name = bytes;
  }
  return s;
}

static pestle_status_t copy_strings(pestle_str_t file, const strings_t* s,
                                    cli_array_t* out_array) {
  char* bytes;
  PESTLE_TRY(cli_array_init(PESTLE_I32, s->rank, s->dims, out_array));
  if (out_array->count != s->count) {
    return PESTLE_ERROR(MALFORMED,
                        "it holds %lld strings, which its dims do not say",
                        (long long)s->count);
  }
  PESTLE_TRY(cli_words_init(out_array, s->bytes, &bytes));
  proto_t p = {(const uint8_t*)file.data,
               (const uint8_t*)file.data + file.size};
  uint64_t number, value;
  pestle_str_t word;
  for (int64_t i = 0; i < s->count && read_field(&p, &number, &value, &word);) {
    if (number != 6) continue;
    if (word.size) memcpy(bytes, word.data, word.size);
    out_array->words[i++] = (pestle_string_t){bytes, word.size};
    bytes += word.size;
  }
  return s->name.size ? cli_array_set_name(out_array, s->name) : NULL;
}

pestle_status_t cli_read_pb(cli_t* cli, const char* path,
                            cli_array_t* out_array) {
  *out_array = (cli_array_t){.index = -1};
  pestle_mapping_t mapping;
  pestle_elements_t elements = {0};
  char name[1024] = "";
  PESTLE_TRY(pestle_file_map(path, &mapping));
  pestle_str_t file = pestle_str_make(mapping.data, mapping.size);
  strings_t strings = read_strings(file);
  if (strings.is_text && !strings.bad) {
    pestle_status_t read = copy_strings(file, &strings, out_array);
    if (read) cli_array_deinit(out_array);
    pestle_file_unmap(&mapping);
    return pestle_status_annotate(read, "while reading '%s'", path);
  }
  pestle_status_t status = pestle_read_onnx_tensor(
      cli->context, mapping.data, mapping.size, &elements, name, sizeof(name));
  if (!status) {
    status = copy_elements(&elements, out_array);
    pestle_context_free(cli->context, (void*)(uintptr_t)elements.data,
                        elements.size);
  }
  pestle_file_unmap(&mapping);
  if (!status && name[0]) {
    status = cli_array_set_name(out_array, pestle_str(name));
  }
  return pestle_status_annotate(status, "while reading '%s'", path);
}
