// SPDX-License-Identifier: Apache-2.0
// Outputs of a run: written to files, printed as text, or compared.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli.h"
#include "json.h"

static const char* file_of(cli_t* cli, const cli_inputs_t* inputs,
                           size_t index) {
  if (index < inputs->output_files.size && inputs->output_files.data[index]) {
    return inputs->output_files.data[index];
  }
  char name[40];
  snprintf(name, sizeof(name), "output_%zu.npy", index);
  return cli_copy(cli, pestle_str(name));
}

// --- --outputs ---

// The dtype as NumPy and ONNX spell it.
static const char* onnx_name(pestle_dtype_t dtype) {
  static const char* const names[] = {
      "bool",
      "int4",
      "int8",
      "int16",
      "int32",
      "int64",
      "uint4",
      "uint8",
      "uint16",
      "uint32",
      "uint64",
      "bfloat16",
      "float16",
      "float32",
      "float64",
      "float8_e4m3fn",
      "complex64",
      "float8_e5m2",
      "complex128",
      "float8_e4m3fnuz",
      "float8_e5m2fnuz",
      "int2",
      "uint2",
      "float8_e3m4",
      "float8_e4m3",
      "float8_e4m3b11fnuz",
      "float8_e8m0fnu",
      "float4_e2m1fn",
      "float6_e2m3fn",
      "float6_e3m2fn",
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (cli_dtype(pestle_str(names[i])) == dtype) return names[i];
  }
  return "?";
}

// A line of io.txt ends with the name: what would end it is left out.
static const char* one_line(cli_t* cli, const char* name) {
  char* copy = pestle_arena_strdup(&cli->arena, name);
  for (char* c = copy; c && *c; ++c) {
    if (*c == '\n' || *c == '\r') *c = '?';
  }
  return copy;
}

static pestle_status_t write_output(cli_t* cli, const cli_inputs_t* inputs,
                                    const char* folder,
                                    const cli_array_t* array,
                                    pestle_strbuf_t* io) {
  char dims[400];
  const char* file = file_of(cli, inputs, (size_t)array->index);
  const char* path = file ? pestle_path_join(&cli->arena, folder, file) : NULL;
  const char* name = one_line(cli, array->name);
  if (!path || !name) return PESTLE_OOM();
  pestle_strbuf_appendf(
      io, "output %" PRId64 " %s %s %s %s\n", array->index,
      array->words ? "string" : onnx_name(array->dtype),
      cli_print_dims(array->rank, array->dims, dims, sizeof(dims)), file, name);
  return cli_npy_write(path, array);
}

static pestle_status_t make_folder(const char* folder) {
  pestle_file_info_t info;
  pestle_status_t status = pestle_file_stat(folder, true, &info);
  if (!status && info.is_folder) return NULL;
  pestle_status_release(status);
  return pestle_folder_make(folder);
}

pestle_status_t cli_outputs_write(cli_t* cli, const cli_inputs_t* inputs,
                                  const char* folder,
                                  const cli_arrays_t* outputs) {
  pestle_strbuf_t io;
  pestle_strbuf_init(pestle_allocator_system(), &io);
  pestle_status_t status = make_folder(folder);
  for (size_t i = 0; !status && i < outputs->size; ++i) {
    status = write_output(cli, inputs, folder, &outputs->data[i], &io);
  }
  const char* path = pestle_path_join(&cli->arena, folder, "io.txt");
  if (!status && !path) status = PESTLE_OOM();
  if (!status) status = pestle_strbuf_status(&io);
  if (!status) status = pestle_file_write(path, pestle_strbuf_view(&io));
  pestle_strbuf_deinit(&io);
  return pestle_status_annotate(status, "while writing --outputs %s", folder);
}

// --- Text ---

// The name, as a terminal may show it; in |buffer|, cut where that ends.
static const char* print_name(const char* name, char* buffer, size_t size) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_strbuf_append_name(&text, name);
  snprintf(buffer, size, "%s", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return buffer;
}

typedef struct range_t {
  int64_t low, high;  // elements; -1: none is finite
  int64_t counted, odd;
  double sum;
} range_t;

static range_t range_of(const cli_array_t* a) {
  range_t r = {.low = -1, .high = -1};
  for (int64_t i = 0; i < a->count; ++i) {
    double x = cli_array_get(a, i);
    if (!isfinite(x)) {
      ++r.odd;
      continue;
    }
    if (r.low < 0 || cli_array_is_less(a, i, r.low)) r.low = i;
    if (r.high < 0 || cli_array_is_less(a, r.high, i)) r.high = i;
    r.sum += x;
    ++r.counted;
  }
  return r;
}

static void print_output(const cli_array_t* a) {
  char dims[400], name[400];
  printf("output %" PRId64 " '%s': %s of %s\n", a->index,
         print_name(a->name, name, sizeof(name)),
         a->words ? "strings" : pestle_dtype_info(a->dtype)->name,
         cli_print_dims(a->rank, a->dims, dims, sizeof(dims)));
  range_t r = {0};
  if (!a->words) r = range_of(a);
  if (r.counted) {
    char least[32], most[32];
    printf("  min %s  max %s  mean %.6g",
           cli_print_element(a, r.low, least, sizeof(least)),
           cli_print_element(a, r.high, most, sizeof(most)),
           r.sum / (double)r.counted);
    if (r.odd) printf("  (%" PRId64 " are nan or infinite)", r.odd);
    printf("\n");
  }
  printf("  [");
  for (int64_t i = 0; i < a->count && i < 8; ++i) {
    char text[80];
    printf("%s%s", i ? ", " : "",
           a->words ? cli_print_word(a, i, text, sizeof(text))
                    : cli_print_element(a, i, text, sizeof(text)));
  }
  printf("%s]\n", a->count > 8 ? ", ..." : "");
}

void cli_outputs_print(const cli_arrays_t* outputs) {
  for (size_t i = 0; i < outputs->size; ++i)
    print_output(&outputs->data[i]);
}

// Elements as texts: JSON's numbers have no infinity, and no integers of 64 bits for
// who reads them as doubles.
static void json_element(const cli_array_t* a, int64_t i, pestle_json_t* json) {
  char text[64];
  if (a->words) {
    pestle_json_str(json, pestle_str_make(a->words[i].data, a->words[i].size));
    return;
  }
  pestle_json_cstr(json, cli_print_exact(a, i, text, sizeof(text)));
}

static void json_output(const cli_array_t* a, pestle_json_t* json) {
  range_t r = {0};
  if (!a->words) r = range_of(a);
  cli_info_json_value(json, a->name, cli_info_type(a->dtype, a->words != NULL),
                      a->rank, a->dims, NULL);
  cli_key_i64(json, "index", a->index);
  cli_key_i64(json, "elements", a->count);
  cli_key_i64(json, "not_finite", r.odd);
  if (r.counted) {
    pestle_json_key(json, "min");
    json_element(a, r.low, json);
    pestle_json_key(json, "max");
    json_element(a, r.high, json);
    cli_key_f64(json, "mean", r.sum / (double)r.counted);
  }
  pestle_json_key(json, "first");
  pestle_json_begin_array(json);
  for (int64_t i = 0; i < a->count && i < 8; ++i)
    json_element(a, i, json);
  pestle_json_end_array(json);
  pestle_json_end_object(json);
}

void cli_outputs_json(const cli_arrays_t* outputs, pestle_json_t* json) {
  pestle_json_key(json, "outputs");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < outputs->size; ++i)
    json_output(&outputs->data[i], json);
  pestle_json_end_array(json);
}

// --- --compare ---

typedef struct difference_t {
  int64_t count, worst;  // elements that differ, and the worst of them
  double excess;         // by how much it passes its tolerance
  double largest;        // |found - expected| of those that are finite
  int64_t farthest;      // element, where that is
} difference_t;

// Complex elements as pairs of floats.
static cli_array_t as_parts(const cli_array_t* array) {
  cli_array_t parts = *array;
  if (array->dtype == PESTLE_C64) parts.dtype = PESTLE_F32;
  if (array->dtype == PESTLE_C128) parts.dtype = PESTLE_F64;
  if (parts.dtype != array->dtype) parts.count *= 2;
  return parts;
}

static bool is_near(double found, double expected, double atol, double rtol,
                    double* out_excess) {
  *out_excess = INFINITY;
  if (isnan(found) || isnan(expected)) return isnan(found) && isnan(expected);
  if (isinf(found) || isinf(expected)) return found == expected;
  *out_excess = fabs(found - expected) - (atol + rtol * fabs(expected));
  return *out_excess <= 0;
}

// Whether element |i| of integers of 64 bits is the same: as doubles they may
// seem so.
static bool is_same_wide(const cli_array_t* found, const cli_array_t* expected,
                         int64_t i) {
  size_t size = pestle_dtype_size(found->dtype);
  size_t at = (size_t)i * size;
  if (size != 8 || !pestle_dtype_is(found->dtype, PESTLE_KIND_INT)) return true;
  return !memcmp((const char*)found->data + at,
                 (const char*)expected->data + at, size);
}

// Of arrays as as_parts() makes them, |step| parts an element.
static difference_t compare_elements(const cli_array_t* found,
                                     const cli_array_t* expected, int64_t step,
                                     double atol, double rtol) {
  difference_t d = {.worst = -1};
  if (!pestle_dtype_is(found->dtype, PESTLE_KIND_FLOAT)) atol = rtol = 0;
  int64_t last = -1;
  for (int64_t i = 0; i < found->count; ++i) {
    double excess;
    double apart = fabs(cli_array_get(found, i) - cli_array_get(expected, i));
    if (isfinite(apart) && apart > d.largest) {
      d.largest = apart;
      d.farthest = i / step;
    }
    if (is_near(cli_array_get(found, i), cli_array_get(expected, i), atol, rtol,
                &excess) &&
        is_same_wide(found, expected, i)) {
      continue;
    }
    if (i / step != last) ++d.count;
    last = i / step;
    if (d.worst >= 0 && excess <= d.excess) continue;
    d.worst = i / step;
    d.excess = excess;
  }
  return d;
}

// "[0,3,17]" of a row-major position.
static const char* print_index(const cli_array_t* a, int64_t at, char* buffer,
                               size_t capacity) {
  int64_t index[PESTLE_MAX_RANK];
  for (int32_t i = a->rank - 1; i >= 0; --i) {
    index[i] = at % a->dims[i];
    at /= a->dims[i];
  }
  size_t size = 0;
  snprintf(buffer, capacity, "[");
  for (int32_t i = 0; i < a->rank; ++i) {
    size = strlen(buffer);
    snprintf(buffer + size, capacity - size, "%s%" PRId64, i ? "," : "",
             index[i]);
  }
  size = strlen(buffer);
  snprintf(buffer + size, capacity - size, "]");
  return buffer;
}

static bool say_type_differs(const cli_array_t* found,
                             const cli_array_t* expected) {
  char a[400], b[400], name[400];
  bool differs =
      found->dtype != expected->dtype || !found->words != !expected->words ||
      found->rank != expected->rank || found->count != expected->count;
  for (int32_t i = 0; !differs && i < found->rank; ++i) {
    differs = found->dims[i] != expected->dims[i];
  }
  if (!differs) return false;
  cli_say_error("output %" PRId64 " '%s' is %s of %s, expected %s of %s",
                found->index, print_name(found->name, name, sizeof(name)),
                pestle_dtype_info(found->dtype)->name,
                cli_print_dims(found->rank, found->dims, a, sizeof(a)),
                pestle_dtype_info(expected->dtype)->name,
                cli_print_dims(expected->rank, expected->dims, b, sizeof(b)));
  return true;
}

// What one output came to, told on stderr or as an object of |json|.
static void tell_agreement(const cli_array_t* found, const difference_t* d,
                           double atol, double rtol) {
  char at[400], name[400];
  print_name(found->name, name, sizeof(name));
  cli_print_label(stderr, PESTLE_LOG_INFO);
  if (d->largest == 0) {
    fprintf(stderr,
            "output %" PRId64 " '%s' agrees: all %" PRId64
            " elements are the same\n",
            found->index, name, found->count);
    return;
  }
  fprintf(stderr,
          "output %" PRId64 " '%s' agrees in all %" PRId64
          " elements (atol %g, rtol %g); they differ by %.3g at most, at %s\n",
          found->index, name, found->count, atol, rtol, d->largest,
          print_index(found, d->farthest, at, sizeof(at)));
}

static void tell_difference(const cli_array_t* found,
                            const cli_array_t* expected, const difference_t* d,
                            double atol, double rtol) {
  char at[400], name[400], x[64], y[64];
  cli_say_error("output %" PRId64 " '%s' differs in %" PRId64 " of %" PRId64
                " elements (atol %g, rtol %g); worst at %s: %s, expected %s",
                found->index, print_name(found->name, name, sizeof(name)),
                d->count, found->count, atol, rtol,
                print_index(found, d->worst, at, sizeof(at)),
                cli_print_exact(found, d->worst, x, sizeof(x)),
                cli_print_exact(expected, d->worst, y, sizeof(y)));
}

static void json_comparison(const cli_array_t* found,
                            const cli_array_t* expected, const difference_t* d,
                            pestle_json_t* json) {
  char at[400];
  pestle_json_begin_object(json);
  cli_key_i64(json, "output", found->index);
  cli_key_cstr(json, "name", found->name);
  cli_key_bool(json, "agrees", !d->count);
  cli_key_i64(json, "elements", found->count);
  cli_key_i64(json, "differing", d->count);
  cli_key_f64(json, "largest_difference", d->largest);
  int64_t place = d->count ? d->worst : d->farthest;
  if (found->count) {
    cli_key_cstr(json, "at", print_index(found, place, at, sizeof(at)));
    pestle_json_key(json, "found");
    json_element(found, place, json);
    pestle_json_key(json, "expected");
    json_element(expected, place, json);
  }
  pestle_json_end_object(json);
}

static bool compare_words(const cli_array_t* found, const cli_array_t* expected,
                          pestle_json_t* json) {
  char at[400], name[400], x[80], y[80];
  int64_t first = 0;
  int64_t count = cli_words_compare(found, expected, &first);
  if (json) {
    pestle_json_begin_object(json);
    cli_key_i64(json, "output", found->index);
    cli_key_cstr(json, "name", found->name);
    cli_key_bool(json, "agrees", !count);
    cli_key_i64(json, "elements", found->count);
    cli_key_i64(json, "differing", count);
    pestle_json_end_object(json);
  } else if (!count) {
    cli_print_label(stderr, PESTLE_LOG_INFO);
    fprintf(stderr,
            "output %" PRId64 " '%s' agrees: all %" PRId64
            " strings are the same\n",
            found->index, print_name(found->name, name, sizeof(name)),
            found->count);
  }
  if (count) {
    cli_say_error("output %" PRId64 " '%s' differs in %" PRId64 " of %" PRId64
                  " strings; at %s: %s, expected %s",
                  found->index, print_name(found->name, name, sizeof(name)),
                  count, found->count,
                  print_index(found, first, at, sizeof(at)),
                  cli_print_word(found, first, x, sizeof(x)),
                  cli_print_word(expected, first, y, sizeof(y)));
  }
  return !count;
}

static bool compare_output(const cli_array_t* found,
                           const cli_array_t* expected, double atol,
                           double rtol, pestle_json_t* json) {
  if (say_type_differs(found, expected)) {
    if (json) {
      pestle_json_begin_object(json);
      cli_key_i64(json, "output", found->index);
      cli_key_bool(json, "agrees", false);
      cli_key_cstr(json, "why", "another type or shape");
      pestle_json_end_object(json);
    }
    return false;
  }
  if (found->words) return compare_words(found, expected, json);
  cli_array_t a = as_parts(found), b = as_parts(expected);
  difference_t d =
      compare_elements(&a, &b, a.dtype == found->dtype ? 1 : 2, atol, rtol);
  if (json) {
    json_comparison(found, expected, &d, json);
  } else if (!d.count) {
    tell_agreement(found, &d, atol, rtol);
  }
  if (d.count) tell_difference(found, expected, &d, atol, rtol);
  return !d.count;
}

static pestle_status_t read_expected(cli_t* cli, const cli_inputs_t* inputs,
                                     const char* folder,
                                     const cli_array_t* found,
                                     cli_array_t* out_array) {
  const char* file = file_of(cli, inputs, (size_t)found->index);
  const char* path = file ? pestle_path_join(&cli->arena, folder, file) : NULL;
  char name[40];
  snprintf(name, sizeof(name), "output_%" PRId64 ".pb", found->index);
  const char* pb = pestle_path_join(&cli->arena, folder, name);
  if (!path || !pb) return PESTLE_OOM();
  if (!pestle_file_exists(path) && pestle_file_exists(pb)) {
    return cli_read_pb(cli, pb, out_array);
  }
  PESTLE_TRY(cli_npy_read(path, out_array));
  cli_array_retype(out_array, found->dtype);
  return NULL;
}

static pestle_status_t tolerance(const cli_t* cli, cli_option_t option,
                                 double by_default, double* out) {
  *out = by_default;
  if (!cli->text[option] ||
      (pestle_str_parse_f64(pestle_str(cli->text[option]), out) && *out >= 0 &&
       isfinite(*out))) {
    return NULL;
  }
  return CLI_USAGE_ERROR(
      "a tolerance is a finite number that is not negative, not '%s'",
      cli->text[option]);
}

pestle_status_t cli_outputs_check_options(const cli_t* cli) {
  double unused;
  PESTLE_TRY(tolerance(cli, CLI_ATOL, 0, &unused));
  PESTLE_TRY(tolerance(cli, CLI_RTOL, 0, &unused));
  if (cli->text[CLI_COMPARE] ||
      (!cli->text[CLI_ATOL] && !cli->text[CLI_RTOL])) {
    return NULL;
  }
  return CLI_USAGE_ERROR("--%s is of --compare DIR, which is not given",
                         cli->text[CLI_ATOL] ? "atol" : "rtol");
}

pestle_status_t cli_outputs_compare(cli_t* cli, const cli_inputs_t* inputs,
                                    const char* folder, cli_arrays_t* outputs,
                                    pestle_json_t* json, bool* out_equal) {
  double atol, rtol;
  *out_equal = true;
  PESTLE_TRY(tolerance(cli, CLI_ATOL, 1e-5, &atol));
  PESTLE_TRY(tolerance(cli, CLI_RTOL, 1e-3, &rtol));
  if (json) {
    pestle_json_key(json, "compare");
    pestle_json_begin_array(json);
  }
  for (size_t i = 0; i < outputs->size; ++i) {
    cli_array_t expected;
    PESTLE_TRY(
        read_expected(cli, inputs, folder, &outputs->data[i], &expected));
    if (!compare_output(&outputs->data[i], &expected, atol, rtol, json))
      *out_equal = false;
    cli_array_deinit(&expected);
  }
  if (json) pestle_json_end_array(json);
  return NULL;
}
