// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/forms.h"

#include <string.h>

#include "base/mem.h"

static const pestle_bytecode_form_t forms[] = {
#define PESTLE_VHLO(op, form, since, attributes) \
  {"vhlo." op "_v" #form, "stablehlo." op, attributes},
#define PESTLE_VHLO_FUNC(op, form, since, attributes) \
  {"vhlo." op "_v" #form, "func." op, attributes},
#include "frontend/stablehlo/vhlo.def"
#define PESTLE_FORM(op, attributes) {op, op, attributes},
#include "frontend/stablehlo/stablehlo.def"
};
enum { FORMS = sizeof(forms) / sizeof(*forms), SEGMENTS = 2, MAX_NUMBERS = 8 };

static bool is_called(const char* whole, pestle_str_t dialect,
                      pestle_str_t op) {
  pestle_str_t before, behind;
  pestle_str_split(pestle_str(whole), '.', &before, &behind);
  return pestle_str_equal(before, dialect) && pestle_str_equal(behind, op);
}

const pestle_bytecode_form_t* pestle_bytecode_find_form(pestle_str_t dialect,
                                                        pestle_str_t op) {
  for (size_t i = 0; i < FORMS; ++i) {
    if (is_called(forms[i].op, dialect, op)) return &forms[i];
  }
  return NULL;
}

// --- Properties ---

static size_t attribute_count(const pestle_bytecode_form_t* form) {
  size_t count = *form->attributes != 0;
  for (const char* c = form->attributes; *c; ++c)
    count += *c == ' ';
  return count;
}

static pestle_status_t number_count(pestle_reader_t r, size_t* out) {
  uint64_t ignored;
  *out = 0;
  for (; pestle_reader_more(&r); ++*out)
    PESTLE_TRY(pestle_reader_varint(&r, &ignored));
  return NULL;
}

// That of |form| and its neighbours that has |count| attributes, or NULL.
static const pestle_bytecode_form_t* fitting(const pestle_bytecode_form_t* form,
                                             size_t count) {
  const char* op = form->op;
  for (; form < forms + FORMS && !strcmp(form->op, op); ++form) {
    if (attribute_count(form) == count) return form;
  }
  return NULL;
}

typedef struct builder_t {
  pestle_arena_t* arena;
  pestle_generic_value_t* dict;
  pestle_generic_entry_t** tail;
} builder_t;

static pestle_status_t add(builder_t* b, pestle_str_t key,
                           const pestle_generic_value_t* value) {
  pestle_generic_entry_t* e =
      PESTLE_ARENA_NEW(b->arena, pestle_generic_entry_t);
  if (!e) return PESTLE_OOM();
  e->key = key;
  e->value = *value;
  *b->tail = e;
  b->tail = &e->next;
  ++b->dict->entry_count;
  return NULL;
}

// Numbers, all of them or those that are not 0, each with its place in its lower bits.
static pestle_status_t read_numbers(pestle_reader_t* r, int64_t* out,
                                    size_t* out_count, bool* out_sparse) {
  uint64_t count, bits = 0, number;
  PESTLE_TRY(pestle_reader_flagged(r, &count, out_sparse));
  pestle_reader_t at = *r;
  if (*out_sparse && count) PESTLE_TRY(pestle_reader_varint(r, &bits));
  if (count > MAX_NUMBERS || bits > 8) {
    return pestle_reader_damaged(&at, "a list of too many numbers");
  }
  *out_count = (size_t)count;
  for (size_t i = 0; i < MAX_NUMBERS; ++i)
    out[i] = 0;
  for (size_t i = 0; i < count; ++i) {
    at = *r;
    PESTLE_TRY(pestle_reader_varint(r, &number));
    uint64_t place = *out_sparse ? number & ((UINT64_C(1) << bits) - 1) : i;
    number >>= bits;
    if (place >= MAX_NUMBERS || number > INT32_MAX) {
      return pestle_reader_damaged(&at, "a number out of its list");
    }
    out[place] = (int64_t)number;
  }
  return NULL;
}

// The list |name| of two numbers, which is how many are of each of two kinds.
static pestle_status_t read_segments(pestle_reader_t* r, pestle_str_t name,
                                     builder_t* b) {
  int64_t numbers[MAX_NUMBERS];
  pestle_generic_value_t list = {.kind = PESTLE_GENERIC_LIST};
  builder_t in = {b->arena, &list, &list.entries};
  pestle_reader_t at = *r;
  size_t count;
  bool sparse;
  PESTLE_TRY(read_numbers(r, numbers, &count, &sparse));
  if (sparse ? count > SEGMENTS : count != SEGMENTS) {
    return pestle_reader_damaged(&at, "a list that has not two numbers");
  }
  for (size_t i = 0; i < SEGMENTS; ++i) {
    pestle_generic_value_t number = {.kind = PESTLE_GENERIC_INT,
                                     .i64 = numbers[i]};
    PESTLE_TRY(add(&in, pestle_str_make(NULL, 0), &number));
  }
  return add(b, name, &list);
}

// The attribute |name|, which may begin with "?" or "&".
static pestle_status_t read_property(pestle_bytecode_decoder_t* d,
                                     pestle_reader_t* r, pestle_str_t name,
                                     builder_t* b) {
  const pestle_generic_value_t* value;
  size_t limit = d->file->attribute_count;
  if (*name.data == '&') {
    return read_segments(r, pestle_str_slice(name, 1, name.size), b);
  }
  if (*name.data != '?') {
    PESTLE_TRY(pestle_bytecode_read_attribute(d, r, &value));
    return add(b, name, value);
  }
  pestle_reader_t at = *r;
  uint64_t index;
  bool present;
  PESTLE_TRY(pestle_reader_flagged(r, &index, &present));
  if (!present) return NULL;
  if (index >= limit) {
    return pestle_reader_damaged(&at, "an attribute that the file has not");
  }
  PESTLE_TRY(pestle_bytecode_attribute(d, (uint32_t)index, &value));
  return add(b, pestle_str_slice(name, 1, name.size), value);
}

static pestle_status_t read_properties(pestle_bytecode_decoder_t* d,
                                       const pestle_bytecode_form_t* form,
                                       pestle_str_t bytes, builder_t* b) {
  pestle_reader_t r = pestle_reader_sub(&d->file->file, bytes);
  size_t count;
  PESTLE_TRY(number_count(r, &count));
  // Lists are of any number of numbers.
  bool listed = strchr(form->attributes, '&') != NULL;
  const pestle_bytecode_form_t* fits = listed ? form : fitting(form, count);
  if (!fits) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "'%s' has %zu properties; Pestle knows it with %zu",
                        form->op, count, attribute_count(form));
  }
  pestle_str_t rest = pestle_str(fits->attributes);
  while (rest.size) {
    pestle_str_t name;
    pestle_str_split(rest, ' ', &name, &rest);
    PESTLE_TRY(read_property(d, &r, name, b));
  }
  return pestle_reader_more(&r)
             ? pestle_reader_damaged(&r, "properties that the op has not")
             : NULL;
}

pestle_status_t pestle_bytecode_op_attributes(
    pestle_bytecode_decoder_t* d, pestle_arena_t* arena,
    const pestle_bytecode_form_t* form, uint32_t properties,
    uint32_t attributes, pestle_generic_value_t* out_dict) {
  *out_dict = (pestle_generic_value_t){.kind = PESTLE_GENERIC_DICT};
  builder_t b = {arena, out_dict, &out_dict->entries};
  if (form && properties != PESTLE_BYTECODE_NONE) {
    PESTLE_TRY(read_properties(d, form, d->file->properties[properties], &b));
  }
  if (attributes == PESTLE_BYTECODE_NONE) return NULL;
  const pestle_generic_value_t* more;
  PESTLE_TRY(pestle_bytecode_attribute(d, attributes, &more));
  if (more->kind != PESTLE_GENERIC_DICT) {
    return PESTLE_ERROR(MALFORMED, "its attributes are no dictionary");
  }
  for (const pestle_generic_entry_t* e = more->entries; e; e = e->next) {
    PESTLE_TRY(add(&b, e->key, &e->value));
  }
  return NULL;
}
