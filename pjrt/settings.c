// SPDX-License-Identifier: Apache-2.0
#include "pjrt/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "pjrt/error.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

// --- Values as text: options and variables are read by the same functions ---

typedef PJRT_Error* (*read_fn_t)(const char* name, pestle_str_t text,
                                 void* out);

static PJRT_Error* copy_text(const char* name, pestle_str_t text, char* out,
                             size_t size) {
  if (text.size >= size || (text.size && memchr(text.data, 0, text.size)))
    return INVALID("%s is longer than %zu bytes", name, size - 1);
  if (text.size) memcpy(out, text.data, text.size);
  out[text.size] = 0;
  return NULL;
}

static PJRT_Error* read_device(const char* name, pestle_str_t text, void* out) {
  return copy_text(name, text, out,
                   sizeof(((pestle_pjrt_settings_t*)0)->device));
}

static PJRT_Error* read_folder(const char* name, pestle_str_t text, void* out) {
  pestle_pjrt_settings_t* s = out;
  s->has_cache_dir = true;
  return copy_text(name, text, s->cache_dir, sizeof(s->cache_dir));
}

static PJRT_Error* read_trace(const char* name, pestle_str_t text, void* out) {
  return copy_text(name, text, out,
                   sizeof(((pestle_pjrt_settings_t*)0)->trace_file));
}

static PJRT_Error* read_flag(const char* name, pestle_str_t text, void* out) {
  bool is_on =
      pestle_str_equal_c(text, "1") || pestle_str_equal_c(text, "true");
  bool is_off =
      pestle_str_equal_c(text, "0") || pestle_str_equal_c(text, "false");
  if (!is_on && !is_off) {
    return INVALID("%s is '%.*s'; it may be 0 or 1", name,
                   PESTLE_STR_ARG(text));
  }
  *(bool*)out = is_on;
  return NULL;
}

static PJRT_Error* read_no_flag(const char* name, pestle_str_t text,
                                void* out) {
  PJRT_Error* error = read_flag(name, text, out);
  if (!error) *(bool*)out = !*(bool*)out;
  return error;
}

static PJRT_Error* read_merging(const char* name, pestle_str_t text,
                                void* out) {
  pestle_pjrt_merging_t* merging = out;
  bool is_on = true;
  *merging = PESTLE_PJRT_MERGING_SOON;
  if (pestle_str_equal_c(text, "soon")) return NULL;
  PJRT_Error* error = read_flag(name, text, &is_on);
  *merging = is_on ? PESTLE_PJRT_MERGING_EARNED : PESTLE_PJRT_MERGING_NEVER;
  if (!error) return NULL;
  pestle_pjrt_error_free(error);
  return INVALID("%s is '%.*s'; it may be 0, 1 or soon", name,
                 PESTLE_STR_ARG(text));
}

static PJRT_Error* read_threads(const char* name, pestle_str_t text,
                                void* out) {
  int64_t value;
  if (!pestle_str_parse_i64(text, &value) || value < 0 || value > 4096) {
    return INVALID("%s is '%.*s'; it may be a number from 0 (all) to 4096",
                   name, PESTLE_STR_ARG(text));
  }
  *(int32_t*)out = (int32_t)value;
  return NULL;
}

// A thread and a queue each; more have no use on one machine.
enum { MOST_CPU_DEVICES = 256 };

static PJRT_Error* read_cpu_devices(const char* name, pestle_str_t text,
                                    void* out) {
  int64_t value;
  if (!pestle_str_parse_i64(text, &value) || value < 1 ||
      value > MOST_CPU_DEVICES) {
    return INVALID("%s is '%.*s'; it may be a number from 1 to %d", name,
                   PESTLE_STR_ARG(text), MOST_CPU_DEVICES);
  }
  *(int32_t*)out = (int32_t)value;
  return NULL;
}

enum { MOST_PROCESSES = 65536 };

static PJRT_Error* read_process(const char* name, pestle_str_t text,
                                void* out) {
  int64_t value;
  if (!pestle_str_parse_i64(text, &value) || value < 0 ||
      value > MOST_PROCESSES) {
    return INVALID("%s is '%.*s'; it may be a number from 0 to %d", name,
                   PESTLE_STR_ARG(text), MOST_PROCESSES);
  }
  *(int32_t*)out = (int32_t)value;
  return NULL;
}

// What the framework says of slices of a machine, which change nothing here.
static PJRT_Error* read_nothing(const char* name, pestle_str_t text,
                                void* out) {
  (void)name;
  (void)text;
  (void)out;
  return NULL;
}

static PJRT_Error* read_numerics(const char* name, pestle_str_t text,
                                 void* out) {
  static const char* const names[] = {"default", "strict", "fast"};
  for (int i = 0; i < 3; ++i) {
    if (!pestle_str_equal_c(text, names[i])) continue;
    *(pestle_numerics_t*)out = (pestle_numerics_t)i;
    return NULL;
  }
  return INVALID("%s is '%.*s'; it may be default, strict or fast", name,
                 PESTLE_STR_ARG(text));
}

static PJRT_Error* read_address(const char* name, pestle_str_t text,
                                void* out) {
  int64_t value;
  if (!pestle_str_parse_i64(text, &value))
    return INVALID("%s is not an address", name);
  *(const pestle_pjrt_python_t**)out =
      (const pestle_pjrt_python_t*)(uintptr_t)value;
  return NULL;
}

typedef struct row_t {
  const char* option;    // or NULL
  const char* variable;  // or NULL
  size_t field;
  read_fn_t read;
} row_t;

#define FIELD(name) offsetof(pestle_pjrt_settings_t, name)
static const row_t rows[] = {
    {"device", "PESTLE_PJRT_DEVICE", FIELD(device), read_device},
    {"cache_dir", NULL, 0, read_folder},
    {"trace", NULL, FIELD(trace_file), read_trace},
    {"threads", NULL, FIELD(threads), read_threads},
    {"cpu_devices", "PESTLE_CPU_DEVICES", FIELD(cpu_devices), read_cpu_devices},
    {"node_id", NULL, FIELD(node_id), read_process},
    {"num_nodes", NULL, FIELD(num_nodes), read_process},
    {"partition_index", NULL, 0, read_nothing},
    {"slice_index", NULL, 0, read_nothing},
    {"numerics", "PESTLE_PJRT_NUMERICS", FIELD(numerics), read_numerics},
    {"fuse", "PESTLE_PJRT_FUSE", FIELD(no_fuse), read_no_flag},
    {"strict", "PESTLE_PJRT_STRICT", FIELD(strict), read_flag},
    {"times", "PESTLE_PJRT_TIMES", FIELD(times), read_flag},
    {"inline", "PESTLE_PJRT_INLINE", FIELD(no_inline), read_no_flag},
    {"merge", "PESTLE_PJRT_MERGE", FIELD(merging), read_merging},
    {"program_text", "PESTLE_PJRT_PROGRAM_TEXT", FIELD(program_text),
     read_flag},
    {"python_callback", NULL, FIELD(python), read_address},
};
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static PJRT_Error* read_row(const row_t* row, const char* name,
                            pestle_str_t text, pestle_pjrt_settings_t* out) {
  return row->read(name, text, (char*)out + row->field);
}

// The value of |option| as text; numbers are written to |buffer|.
static bool value_text(const PJRT_NamedValue* option, pestle_strbuf_t* buffer,
                       pestle_str_t* out_text) {
  switch (option->type) {
    case PJRT_NamedValue_kString:
      *out_text = pestle_str_make(option->string_value, option->value_size);
      return option->string_value || !option->value_size;
    case PJRT_NamedValue_kInt64:
      pestle_strbuf_append_i64(buffer, option->int64_value);
      break;
    case PJRT_NamedValue_kBool:
      pestle_strbuf_append_c(buffer, option->bool_value ? "1" : "0");
      break;
    case PJRT_NamedValue_kInt64List:
    case PJRT_NamedValue_kFloat:
    default:  // the caller's number may be any
      return false;
  }
  *out_text = pestle_strbuf_view(buffer);
  return !buffer->failed;
}

static PJRT_Error* read_option(const PJRT_NamedValue* option,
                               pestle_pjrt_settings_t* out) {
  pestle_str_t name = pestle_str_make(option->name, option->name_size), text;
  const row_t* row = NULL;
  if (option->struct_size < offsetof(PJRT_NamedValue, value_size) ||
      (option->name_size && !option->name)) {
    return INVALID(
        "a create option is damaged: its struct is shorter than a "
        "PJRT_NamedValue, or its name is NULL");
  }
  for (int i = 0; i < ROW_COUNT && !row; ++i) {
    if (pestle_str_equal_c(name, rows[i].option)) row = &rows[i];
  }
  if (!row) {
    return INVALID(
        "create option '%.*s' is not known; there are device, "
        "cache_dir, trace, threads, cpu_devices, numerics, fuse, strict, "
        "times, "
        "inline, merge, program_text",
        PESTLE_STR_ARG(name));
  }
  pestle_strbuf_t buffer;
  pestle_strbuf_init(pestle_allocator_system(), &buffer);
  PJRT_Error* error =
      value_text(option, &buffer, &text)
          ? read_row(row, row->option, text, out)
          : INVALID(
                "create option %s has a type that it may not have: it is "
                "a string, an integer or a boolean",
                row->option);
  pestle_strbuf_deinit(&buffer);
  return error;
}

PJRT_Error* pestle_pjrt_settings_read(const PJRT_NamedValue* options,
                                      size_t option_count,
                                      pestle_pjrt_settings_t* out_settings) {
  PJRT_Error* error = NULL;
  *out_settings = (pestle_pjrt_settings_t){.device = ""};
  for (int i = 0; i < ROW_COUNT && !error; ++i) {
    const char* text = rows[i].variable ? getenv(rows[i].variable) : NULL;
    if (text && *text) {
      error =
          read_row(&rows[i], rows[i].variable, pestle_str(text), out_settings);
    }
  }
  if (!error && option_count && !options)
    error = INVALID("%zu create options are given at NULL", option_count);
  for (size_t i = 0; i < option_count && !error; ++i)
    error = read_option(&options[i], out_settings);
  return error;
}
