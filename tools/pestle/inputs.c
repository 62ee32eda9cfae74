// SPDX-License-Identifier: Apache-2.0
// Inputs as the command line gives them: --input, --inputs, --inputs-pb.
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli.h"

static pestle_status_t push_array(cli_inputs_t* inputs, cli_array_t* array) {
  if (pestle_vec_push(&inputs->arrays, *array)) return NULL;
  cli_array_deinit(array);
  return PESTLE_ERROR(OUT_OF_MEMORY, "reading the inputs");
}

static const char* join(cli_t* cli, const char* folder, const char* name) {
  return pestle_path_join(&cli->arena, folder, name);
}

// --- --inputs DIR with io.txt ---

typedef struct io_line_t {
  bool is_input;
  int64_t index;
  pestle_dtype_t dtype;  // NONE: "?"
  pestle_str_t file, name;
} io_line_t;

// "input <index> <dtype> <shape> <file> <name>"; the name may hold spaces.
static pestle_status_t parse_line(pestle_str_t line, io_line_t* out) {
  pestle_str_t field[4], rest = line;
  bool ok = pestle_str_split(rest, ' ', &field[0], &rest);
  for (int i = 1; ok && i < 4; ++i) {
    ok = pestle_str_split(rest, ' ', &field[i], &rest);
  }
  // The name may be missing or empty.
  pestle_str_split(rest, ' ', &out->file, &out->name);
  out->is_input = ok && pestle_str_equal_c(field[0], "input");
  ok = ok && (out->is_input || pestle_str_equal_c(field[0], "output")) &&
       pestle_str_parse_i64(field[1], &out->index) && out->index >= 0 &&
       out->index < 65536 && out->file.size;
  if (!ok) {
    return PESTLE_ERROR(MALFORMED,
                        "'%.*s' is not 'input INDEX DTYPE SHAPE FILE NAME' or "
                        "'output ...'",
                        PESTLE_STR_ARG(line));
  }
  out->dtype = cli_dtype(field[2]);
  // Strings stand for themselves.
  if (pestle_str_equal_c(field[2], "string")) out->dtype = PESTLE_I32;
  if (out->is_input && out->dtype == PESTLE_NONE) {
    return PESTLE_ERROR(UNSUPPORTED, "input '%.*s' has the element type %.*s",
                        PESTLE_STR_ARG(out->name), PESTLE_STR_ARG(field[2]));
  }
  return NULL;
}

// Whether |file| stays within the folder that it is looked for in.
static bool is_within(pestle_str_t file) {
  pestle_str_t rest = file, part;
  if (pestle_str_starts_with(file, PESTLE_STR("/"))) return false;
  while (pestle_str_next(&rest, '/', &part)) {
    if (pestle_str_equal_c(part, "..")) return false;
  }
  return true;
}

static pestle_status_t note_output(cli_t* cli, cli_inputs_t* inputs,
                                   const io_line_t* line) {
  // It is where --outputs writes: a folder of inputs may not name any file.
  if (!is_within(line->file)) {
    return PESTLE_ERROR(MALFORMED,
                        "output %lld goes to '%.*s', which leads out of the "
                        "folder of the outputs",
                        (long long)line->index, PESTLE_STR_ARG(line->file));
  }
  size_t index = (size_t)line->index;
  const char* file = cli_copy(cli, line->file);
  if (!file || (inputs->output_files.size <= index &&
                !pestle_vec_resize(&inputs->output_files, index + 1))) {
    return PESTLE_OOM();
  }
  inputs->output_files.data[index] = file;
  return NULL;
}

static pestle_status_t read_line(cli_t* cli, const char* folder,
                                 pestle_str_t text, cli_inputs_t* inputs) {
  io_line_t line;
  cli_array_t array;
  PESTLE_TRY(parse_line(text, &line));
  if (!line.is_input) return note_output(cli, inputs, &line);
  const char* file = cli_copy(cli, line.file);
  const char* path = file ? join(cli, folder, file) : NULL;
  if (!path) return PESTLE_OOM();
  PESTLE_TRY(cli_npy_read(path, &array));
  array.index = line.index;
  cli_array_retype(&array, line.dtype);
  PESTLE_TRY(push_array(inputs, &array));
  return line.name.size
             ? cli_array_set_name(&pestle_vec_last(&inputs->arrays), line.name)
             : NULL;
}

static pestle_status_t read_io(cli_t* cli, const char* folder, const char* path,
                               cli_inputs_t* inputs) {
  char* text;
  size_t size;
  pestle_allocator_t a = pestle_allocator_system();
  PESTLE_TRY(pestle_file_read(path, (size_t)1 << 24, a, &text, &size));
  pestle_str_t rest = pestle_str_make(text, size), line;
  pestle_status_t status = NULL;
  while (!status && pestle_str_next(&rest, '\n', &line)) {
    if (line.size && line.data[line.size - 1] == '\r') --line.size;
    if (line.size) status = read_line(cli, folder, line, inputs);
  }
  pestle_dealloc(a, text, size + 1);
  return pestle_status_annotate(status, "while reading '%s'", path);
}

// --- Folders of numbered files ---

static pestle_status_t read_numbered(cli_t* cli, const char* folder, bool is_pb,
                                     cli_inputs_t* inputs) {
  for (int64_t i = 0;; ++i) {
    char name[40];
    snprintf(name, sizeof(name),
             is_pb ? "input_%" PRId64 ".pb" : "input_%" PRId64 ".npy", i);
    const char* path = join(cli, folder, name);
    if (!path) return PESTLE_OOM();
    if (!pestle_file_exists(path)) break;
    cli_array_t array;
    PESTLE_TRY(is_pb ? cli_read_pb(cli, path, &array)
                     : cli_npy_read(path, &array));
    array.index = i;
    PESTLE_TRY(push_array(inputs, &array));
  }
  return NULL;
}

static pestle_status_t check_folder(const char* path, const char* option) {
  pestle_file_info_t info;
  PESTLE_TRY(pestle_status_annotate(pestle_file_stat(path, true, &info),
                                    "while reading %s", option));
  if (info.is_folder) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "%s: '%s' is not a folder", option,
                      path);
}

static pestle_status_t read_folder(cli_t* cli, const char* folder,
                                   cli_inputs_t* inputs) {
  PESTLE_TRY(check_folder(folder, "--inputs"));
  const char* io = join(cli, folder, "io.txt");
  if (!io) return PESTLE_OOM();
  return pestle_file_exists(io) ? read_io(cli, folder, io, inputs)
                                : read_numbered(cli, folder, false, inputs);
}

// --- --input NAME=... ---

static pestle_status_t make_array(pestle_str_t name, const char* rest,
                                  cli_array_t* out_array) {
  pestle_str_t type;
  const char* value;
  pestle_dtype_t dtype;
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  if (!cli_split(rest, &type, &value)) return cli_npy_read(rest, out_array);
  PESTLE_TRY(cli_parse_type(type, &dtype, &rank, dims));
  if (dtype == PESTLE_NONE) {
    return CLI_USAGE_ERROR(
        "--input %.*s: the shape '%.*s' lacks a type, as "
        "in 1x3xf32",
        PESTLE_STR_ARG(name), PESTLE_STR_ARG(type));
  }
  PESTLE_TRY(cli_array_init(dtype, rank, dims, out_array));
  pestle_status_t status = cli_array_set_name(out_array, name);
  if (!status) status = cli_fill(out_array, value);
  if (status) cli_array_deinit(out_array);
  return status;
}

static pestle_status_t read_input(cli_t* cli, const char* text,
                                  cli_inputs_t* inputs) {
  pestle_str_t name;
  const char* rest;
  if (!cli_split(text, &name, &rest)) {
    return CLI_USAGE_ERROR("--input wants NAME=VALUE, not '%s'", text);
  }
  bool is_file = pestle_str_ends_with(pestle_str(rest), PESTLE_STR(".npy"));
  if (!is_file && !strchr(rest, '=')) {
    cli_lazy_t lazy = {cli_copy(cli, name), rest};
    if (lazy.name && pestle_vec_push(&inputs->lazy, lazy)) return NULL;
    return PESTLE_OOM();
  }
  cli_array_t array;
  PESTLE_TRY(make_array(name, rest, &array));
  // "0=..." is the first input of a model whose inputs have no names.
  if (!pestle_str_parse_i64(name, &array.index)) array.index = -1;
  PESTLE_TRY(push_array(inputs, &array));
  return cli_array_set_name(&pestle_vec_last(&inputs->arrays), name);
}

static pestle_status_t read_all(cli_t* cli, cli_inputs_t* inputs) {
  // --input comes first and so wins over the same input of a folder.
  for (size_t i = 0; i < cli->list[CLI_INPUT].size; ++i) {
    PESTLE_TRY(read_input(cli, cli->list[CLI_INPUT].data[i], inputs));
  }
  if (cli->text[CLI_INPUTS]) {
    PESTLE_TRY(read_folder(cli, cli->text[CLI_INPUTS], inputs));
  }
  if (cli->text[CLI_INPUTS_PB]) {
    PESTLE_TRY(check_folder(cli->text[CLI_INPUTS_PB], "--inputs-pb"));
    PESTLE_TRY(read_numbered(cli, cli->text[CLI_INPUTS_PB], true, inputs));
  }
  return NULL;
}

void cli_inputs_init(cli_inputs_t* out_inputs) {
  pestle_allocator_t a = pestle_allocator_system();
  pestle_vec_init(&out_inputs->arrays, a);
  pestle_vec_init(&out_inputs->lazy, a);
  pestle_vec_init(&out_inputs->output_files, a);
  out_inputs->names = NULL;
  out_inputs->name_count = 0;
}

pestle_status_t cli_inputs_read(cli_t* cli, cli_inputs_t* out_inputs) {
  cli_inputs_init(out_inputs);
  return read_all(cli, out_inputs);
}

void cli_inputs_deinit(cli_inputs_t* inputs) {
  for (size_t i = 0; i < inputs->arrays.size; ++i) {
    cli_array_deinit(&inputs->arrays.data[i]);
  }
  pestle_vec_deinit(&inputs->arrays);
  pestle_vec_deinit(&inputs->lazy);
  pestle_vec_deinit(&inputs->output_files);
}

// --- Finding them again ---

// Whether an input was given by its number: "--input 1=...".
static bool is_number(const char* name, size_t index) {
  int64_t number;
  return pestle_str_parse_i64(pestle_str(name), &number) &&
         number == (int64_t)index;
}

size_t cli_inputs_number(const cli_inputs_t* inputs, size_t index,
                         const char* name) {
  for (size_t i = 0; name && i < inputs->name_count; ++i) {
    if (!strcmp(inputs->names[i], name)) return i;
  }
  return index;
}

cli_array_t* cli_inputs_find(cli_inputs_t* inputs, size_t index,
                             const char* name) {
  index = cli_inputs_number(inputs, index, name);
  for (size_t i = 0; name && name[0] && i < inputs->arrays.size; ++i) {
    cli_array_t* a = &inputs->arrays.data[i];
    bool is_other = a->is_made && a->index != (int64_t)index;
    if (a->name && !strcmp(a->name, name) && !is_other) return a;
  }
  for (size_t i = 0; i < inputs->arrays.size; ++i) {
    cli_array_t* a = &inputs->arrays.data[i];
    // A named one stands for its name alone, unless the model has no names.
    bool by_place = !a->name || !name || !name[0] || is_number(a->name, index);
    if (a->index == (int64_t)index && by_place) return a;
  }
  return NULL;
}

static pestle_status_t missing(const cli_inputs_t* inputs, size_t index,
                               const pestle_io_info_t* info) {
  index = cli_inputs_number(inputs, index, info->name);
  char dims[400];
  cli_print_dims(info->rank, info->dims, dims, sizeof(dims));
  return CLI_USAGE_ERROR(
      "input %zu, '%s' (%s of %s), is not given: use --inputs DIR, --input "
      "%s=FILE.npy or --input %s=random:1",
      index, info->name, pestle_dtype_info(info->dtype)->name, dims, info->name,
      info->name);
}

static const cli_lazy_t* find_lazy(const cli_inputs_t* inputs, size_t index,
                                   const char* name) {
  index = cli_inputs_number(inputs, index, name);
  // A name goes before a number: "0" may be what another input is called.
  for (size_t i = 0; i < inputs->lazy.size; ++i) {
    if (!strcmp(inputs->lazy.data[i].name, name)) return &inputs->lazy.data[i];
  }
  for (size_t i = 0; i < inputs->lazy.size; ++i) {
    if (is_number(inputs->lazy.data[i].name, index)) {
      return &inputs->lazy.data[i];
    }
  }
  return NULL;
}

bool cli_inputs_has(const cli_inputs_t* inputs, size_t index,
                    const char* name) {
  return find_lazy(inputs, index, name) != NULL;
}

const char* cli_inputs_value(const cli_inputs_t* inputs, size_t index,
                             const char* name) {
  const cli_lazy_t* lazy = find_lazy(inputs, index, name);
  return lazy ? lazy->value : NULL;
}

pestle_status_t cli_inputs_bind(cli_inputs_t* inputs, size_t index,
                                const pestle_io_info_t* info,
                                cli_array_t** out_array) {
  cli_array_t* found = cli_inputs_find(inputs, index, info->name);
  *out_array = found;
  if (found) {
    cli_array_retype(found, info->dtype);
    return NULL;
  }
  const cli_lazy_t* lazy = find_lazy(inputs, index, info->name);
  if (!lazy) return missing(inputs, index, info);
  cli_array_t array;
  PESTLE_TRY(cli_array_init(info->dtype, info->rank, info->dims, &array));
  PESTLE_TRY(push_array(inputs, &array));
  *out_array = &pestle_vec_last(&inputs->arrays);
  (*out_array)->index = (int64_t)cli_inputs_number(inputs, index, info->name);
  (*out_array)->is_made = true;
  PESTLE_TRY(cli_array_set_name(*out_array, pestle_str(info->name)));
  return cli_fill(*out_array, lazy->value);
}
