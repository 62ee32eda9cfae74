// SPDX-License-Identifier: Apache-2.0
// Arrays of strings: what files hold, and the numbers that a run takes and gives in
// their place (pestle/strings.h).
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli.h"

// --- Memory ---

pestle_status_t cli_words_init(cli_array_t* array, size_t bytes,
                               char** out_bytes) {
  size_t count = (size_t)array->count, size;
  if (!pestle_checked_mul(count, sizeof(*array->words), &size) ||
      !pestle_checked_add(size, bytes, &size)) {
    return PESTLE_OOM();
  }
  array->words = pestle_alloc_zero(pestle_allocator_system(), size + 1);
  if (!array->words) return PESTLE_OOM();
  array->words_size = size + 1;
  *out_bytes = (char*)(array->words + count);
  return NULL;
}

void cli_words_deinit(cli_array_t* array) {
  if (array->words)
    pestle_dealloc(pestle_allocator_system(), array->words, array->words_size);
  array->words = NULL;
}

// --- NumPy's '<U8' and '|S8' ---

static size_t put_utf8(uint32_t code, char* to) {
  if (code < 0x80) {
    to[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    to[0] = (char)(0xc0 | code >> 6);
    to[1] = (char)(0x80 | (code & 0x3f));
    return 2;
  }
  if (code < 0x10000) {
    to[0] = (char)(0xe0 | code >> 12);
    to[1] = (char)(0x80 | (code >> 6 & 0x3f));
    to[2] = (char)(0x80 | (code & 0x3f));
    return 3;
  }
  to[0] = (char)(0xf0 | (code >> 18 & 7));
  to[1] = (char)(0x80 | (code >> 12 & 0x3f));
  to[2] = (char)(0x80 | (code >> 6 & 0x3f));
  to[3] = (char)(0x80 | (code & 0x3f));
  return 4;
}

static uint32_t code_at(const char* from) {
  const uint8_t* b = (const uint8_t*)from;
  return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
         (uint32_t)b[3] << 24;
}

// One of |length| places; zeros at its end are none of it.
static size_t read_word(const char* from, size_t length, bool wide, char* to) {
  size_t size = 0;
  while (length && !(wide ? code_at(from + 4 * (length - 1))
                          : (uint32_t)from[length - 1]))
    --length;
  for (size_t i = 0; i < length; ++i) {
    if (wide) {
      size += put_utf8(code_at(from + 4 * i), to + size);
    } else {
      to[size++] = from[i];
    }
  }
  return size;
}

pestle_status_t cli_words_read(const char* from, size_t length, bool wide,
                               cli_array_t* array) {
  size_t each = wide ? 4 * length : length, count = (size_t)array->count;
  char* bytes;
  PESTLE_TRY(cli_words_init(array, count * each, &bytes));
  for (size_t i = 0; i < count; ++i) {
    size_t size = read_word(from + i * each, length, wide, bytes);
    array->words[i] = (pestle_string_t){bytes, size};
    bytes += size;
  }
  return NULL;
}

static size_t length_of(pestle_string_t word) {
  size_t length = 0;
  for (size_t i = 0; i < word.size; ++i)
    length += ((unsigned char)word.data[i] & 0xc0) != 0x80;
  return length;
}

size_t cli_words_length(const cli_array_t* array) {
  size_t most = 1;
  for (int64_t i = 0; i < array->count; ++i) {
    size_t length = length_of(array->words[i]);
    if (length > most) most = length;
  }
  return most;
}

void cli_words_write(const cli_array_t* array, size_t length,
                     pestle_strbuf_t* out) {
  for (int64_t i = 0; i < array->count; ++i) {
    pestle_str_t text =
        pestle_str_make(array->words[i].data, array->words[i].size);
    size_t written = 0;
    for (; text.size; ++written) {
      size_t n = pestle_utf8_length(text);
      uint32_t code = (unsigned char)text.data[0];
      if (n > 1) code &= 0x7fu >> n;
      for (size_t k = 1; k < n; ++k)
        code = code << 6 | ((unsigned char)text.data[k] & 0x3fu);
      for (int k = 0; k < 4; ++k)
        pestle_strbuf_append_char(out, (char)(code >> (8 * k)));
      text = pestle_str_slice(text, n ? n : 1, text.size);
    }
    pestle_strbuf_append_fill(out, 0, 4 * (length - written));
  }
}

// --- Before and after a run ---

pestle_status_t cli_words_make(cli_job_t* job) {
  return job->strings ? NULL
                      : pestle_strings_create(job->executable, &job->strings);
}

// The same word everywhere, or with "random:SEED" one of the model's each time.
static pestle_status_t fill_words(cli_job_t* job, const char* value,
                                  cli_array_t* array) {
  int32_t* ids = array->data;
  int64_t seed = 0;
  size_t count = pestle_strings_count(job->strings);
  bool random =
      pestle_str_starts_with(pestle_str(value), PESTLE_STR("random:"));
  if (!random) {
    pestle_string_t word = {value, strlen(value)};
    for (int64_t i = 0; i < array->count; ++i)
      PESTLE_TRY(pestle_strings_encode(job->strings, &word, 1, &ids[i]));
    return NULL;
  }
  if (!pestle_str_parse_i64(pestle_str(value + strlen("random:")), &seed))
    return CLI_USAGE_ERROR("'%s' is not random:SEED", value);
  uint64_t state = (uint64_t)seed * 2 + 1;
  for (int64_t i = 0; i < array->count; ++i) {
    state =
        state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    ids[i] = count ? (int32_t)((state >> 33) % count) : 0;
  }
  return NULL;
}

pestle_status_t cli_words_bind(cli_job_t* job, size_t index,
                               const pestle_io_info_t* info) {
  bool wanted = pestle_executable_input_is_strings(job->executable, index);
  cli_array_t* array = cli_inputs_find(&job->inputs, index, info->name);
  if (!wanted) {
    if (!array || !array->words) return NULL;
    return CLI_USAGE_ERROR("input '%s' is given strings, the model takes %s",
                           info->name, pestle_dtype_info(info->dtype)->name);
  }
  PESTLE_TRY(cli_words_make(job));
  if (array && !array->words) {
    return CLI_USAGE_ERROR(
        "input '%s' is given numbers, the model takes strings; NumPy saves "
        "them as an array of '<U8' or the like, and --input %s=WORD is one "
        "word everywhere",
        info->name, info->name);
  }
  if (array) {
    return pestle_status_annotate(
        pestle_strings_encode(job->strings, array->words, (size_t)array->count,
                              array->data),
        "in input '%s'", info->name);
  }
  const char* value = cli_inputs_value(&job->inputs, index, info->name);
  if (!value) return NULL;
  cli_array_t made;
  PESTLE_TRY(cli_array_init(info->dtype, info->rank, info->dims, &made));
  pestle_status_t status = fill_words(job, value, &made);
  if (!status) status = cli_array_set_name(&made, pestle_str(info->name));
  made.index = (int64_t)cli_inputs_number(&job->inputs, index, info->name);
  made.is_made = true;
  if (!status && !pestle_vec_push(&job->inputs.arrays, made))
    status = PESTLE_OOM();
  if (status) cli_array_deinit(&made);
  return status;
}

pestle_status_t cli_words_decode(cli_job_t* job) {
  for (size_t i = 0; i < job->outputs.size; ++i) {
    cli_array_t* array = &job->outputs.data[i];
    char* bytes;
    if (!pestle_executable_output_is_strings(job->executable, i)) continue;
    PESTLE_TRY(cli_words_make(job));
    cli_words_deinit(array);
    PESTLE_TRY(cli_words_init(array, 0, &bytes));
    PESTLE_TRY(pestle_status_annotate(
        pestle_strings_decode(job->strings, array->data, (size_t)array->count,
                              array->words),
        "in output '%s'", array->name));
  }
  return NULL;
}

// --- As text ---

const char* cli_print_word(const cli_array_t* array, int64_t index,
                           char* buffer, size_t capacity) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_string_t word = array->words[index];
  pestle_strbuf_append(&text, pestle_str_make(word.data, word.size));
  pestle_strbuf_t shown;
  pestle_strbuf_init(pestle_allocator_system(), &shown);
  pestle_strbuf_append_name(&shown, pestle_strbuf_cstr(&text));
  snprintf(buffer, capacity, "'%s'", pestle_strbuf_cstr(&shown));
  pestle_strbuf_deinit(&shown);
  pestle_strbuf_deinit(&text);
  return buffer;
}

int64_t cli_words_compare(const cli_array_t* found, const cli_array_t* expected,
                          int64_t* out_first) {
  int64_t differing = 0;
  for (int64_t i = 0; i < found->count; ++i) {
    pestle_string_t a = found->words[i], b = expected->words[i];
    if (a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size)))
      continue;
    if (!differing++) *out_first = i;
  }
  return differing;
}
