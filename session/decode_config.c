// SPDX-License-Identifier: Apache-2.0
// What is told beside a model: the metadata of a GGUF file, or genai_config.json, which
// builders of onnxruntime-genai put beside a model. Its file, the names of its inputs and
// outputs, what the caches' widths are, the ids that end a text, and how tokens are chosen
// where nobody says otherwise.
#include <string.h>

#include "base/file.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "pestle/model_info.h"
#include "session/decode.h"

static const char config_name[] = "genai_config.json";
enum { MOST_BYTES = 1 << 24, MOST_HEAD = 1 << 16 };

// --- Fields ---

static pestle_status_t is_odd(const char* path, const char* what) {
  return PESTLE_ERROR(MALFORMED, "%s: %s is not %s", config_name, path, what);
}

// Null and what is not there leave |*out| as it is.
static const pestle_json_value_t* find(const pestle_json_value_t* root,
                                       const char* path) {
  const pestle_json_value_t* v = pestle_json_find(root, path);
  return v && v->kind != PESTLE_JSON_NULL ? v : NULL;
}

static bool as_i64(const pestle_json_value_t* v, int64_t* out) {
  double number;
  if (v->kind != PESTLE_JSON_NUMBER) return false;
  if (pestle_str_parse_i64(v->text, out)) return true;
  // 2048.0
  if (!pestle_str_parse_f64(v->text, &number) ||
      !(number > -0x1p53 && number < 0x1p53) ||
      number != (double)(int64_t)number) {
    return false;
  }
  *out = (int64_t)number;
  return true;
}

static pestle_status_t read_i64(const pestle_json_value_t* root,
                                const char* path, int64_t least, int64_t most,
                                int64_t* out) {
  const pestle_json_value_t* v = find(root, path);
  int64_t value;
  if (!v) return NULL;
  if (!as_i64(v, &value) || value < least || value > most) {
    return PESTLE_ERROR(MALFORMED, "%s: %s is not an integer from %lld to %lld",
                        config_name, path, (long long)least, (long long)most);
  }
  *out = value;
  return NULL;
}

static pestle_status_t read_f64(const pestle_json_value_t* root,
                                const char* path, double most, double* out) {
  const pestle_json_value_t* v = find(root, path);
  double value;
  if (!v) return NULL;
  if (v->kind != PESTLE_JSON_NUMBER || !pestle_str_parse_f64(v->text, &value) ||
      !(value >= 0 && value <= most)) {
    return is_odd(path, "a number from 0 on, or it is too large");
  }
  *out = value;
  return NULL;
}

static pestle_status_t read_text(const pestle_json_value_t* root,
                                 const char* path, const char** out) {
  const pestle_json_value_t* v = find(root, path);
  if (!v) return NULL;
  if (v->kind != PESTLE_JSON_STRING || !v->text.size ||
      strlen(v->text.data) != v->text.size) {
    return is_odd(path, "a string");
  }
  *out = v->text.data;
  return NULL;
}

// A pattern with one %d, and nothing else that begins with %.
static pestle_status_t read_pattern(const pestle_json_value_t* root,
                                    const char* path, const char** out) {
  PESTLE_TRY(read_text(root, path, out));
  if (!find(root, path)) return NULL;
  const char* percent = strchr(*out, '%');
  if (percent && percent[1] == 'd' && !strchr(percent + 1, '%')) return NULL;
  return is_odd(path, "a name with one %d, the layer's number");
}

// --- Ids ---

static pestle_status_t read_ends(pestle_decoder_t* d,
                                 const pestle_json_value_t* root) {
  const char* path = "model.eos_token_id";
  const pestle_json_value_t* v = find(root, path);
  if (!v) return NULL;
  bool is_list = v->kind == PESTLE_JSON_ARRAY;
  size_t count = is_list ? v->count : 1, at = 0;
  int64_t* ends = PESTLE_ARENA_ARRAY(&d->arena, int64_t, count + 1);
  if (!ends) return PESTLE_OOM();
  for (const pestle_json_value_t* i = is_list ? v->first : v; at < count;
       i = i->next) {
    if (!as_i64(i, &ends[at]) || ends[at++] < 0)
      return is_odd(path, "an id or a list of ids");
  }
  d->config.end_ids = ends;
  d->config.end_count = count;
  return NULL;
}

static pestle_status_t read_search(decode_config_t* c,
                                   const pestle_json_value_t* root) {
  pestle_sampling_t* s = &c->sampling;
  const pestle_json_value_t* draws = find(root, "search.do_sample");
  if (draws && draws->kind != PESTLE_JSON_BOOL)
    return is_odd("search.do_sample", "true or false");
  s->temperature = 1;
  PESTLE_TRY(read_f64(root, "search.temperature", 1e9, &s->temperature));
  PESTLE_TRY(read_i64(root, "search.top_k", 0, INT32_MAX, &s->top_k));
  PESTLE_TRY(read_f64(root, "search.top_p", 1, &s->top_p));
  if (!draws || !draws->truth) {
    *s = (pestle_sampling_t){.struct_size = sizeof(*s)};
  }
  return NULL;
}

// What has fields of its own.
static pestle_status_t check_objects(const pestle_json_value_t* root) {
  static const char* const paths[] = {"model",
                                      "model.decoder",
                                      "model.decoder.inputs",
                                      "model.decoder.outputs",
                                      "model.encoder",
                                      "model.encoder.outputs",
                                      "search"};
  if (root->kind != PESTLE_JSON_OBJECT)
    return PESTLE_ERROR(MALFORMED, "%s is not an object", config_name);
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); ++i) {
    const pestle_json_value_t* v = find(root, paths[i]);
    if (v && v->kind != PESTLE_JSON_OBJECT)
      return is_odd(paths[i], "an object");
  }
  return NULL;
}

static pestle_status_t read_fields(pestle_decoder_t* d,
                                   const pestle_json_value_t* root) {
  decode_config_t* c = &d->config;
  PESTLE_TRY(check_objects(root));
  c->is_genai = true;
#define DECODER "model.decoder."
  PESTLE_TRY(read_text(root, DECODER "filename", &c->file));
  PESTLE_TRY(read_text(root, DECODER "inputs.input_ids", &c->input_ids));
  PESTLE_TRY(read_text(root, DECODER "inputs.attention_mask", &c->mask));
  PESTLE_TRY(read_text(root, DECODER "inputs.position_ids", &c->position_ids));
  PESTLE_TRY(read_text(root, DECODER "outputs.logits", &c->logits));
  PESTLE_TRY(read_pattern(root, DECODER "inputs.past_key_names", &c->past[0]));
  PESTLE_TRY(
      read_pattern(root, DECODER "inputs.past_value_names", &c->past[1]));
  PESTLE_TRY(
      read_pattern(root, DECODER "outputs.present_key_names", &c->present[0]));
  PESTLE_TRY(read_pattern(root, DECODER "outputs.present_value_names",
                          &c->present[1]));
  PESTLE_TRY(read_pattern(root, DECODER "inputs.cross_past_key_names",
                          &c->cross_past[0]));
  PESTLE_TRY(read_pattern(root, DECODER "inputs.cross_past_value_names",
                          &c->cross_past[1]));
  PESTLE_TRY(read_i64(root, DECODER "head_size", 1, MOST_HEAD, &c->head_size));
#undef DECODER
#define ENCODER "model.encoder."
  PESTLE_TRY(read_text(root, ENCODER "filename", &c->encoder_file));
  PESTLE_TRY(
      read_text(root, ENCODER "outputs.encoder_hidden_states", &c->hidden));
  PESTLE_TRY(read_pattern(root, ENCODER "outputs.cross_present_key_names",
                          &c->cross_present[0]));
  PESTLE_TRY(read_pattern(root, ENCODER "outputs.cross_present_value_names",
                          &c->cross_present[1]));
#undef ENCODER
  PESTLE_TRY(read_i64(root, "model.context_length", 1, INT32_MAX, &c->context));
  PESTLE_TRY(read_i64(root, "model.bos_token_id", 0, INT32_MAX, &c->begin_id));
  PESTLE_TRY(read_i64(root, "model.pad_token_id", 0, INT32_MAX, &c->pad_id));
  PESTLE_TRY(read_ends(d, root));
  return read_search(c, root);
}

pestle_status_t pestle_decode_check_ends(const pestle_decoder_t* d) {
  const decode_config_t* c = &d->config;
  if (!c->is_genai || !c->end_count) return NULL;
  for (size_t i = 0; i < c->end_count; ++i) {
    if (c->end_ids[i] < d->words) return NULL;
  }
  return PESTLE_ERROR(MALFORMED,
                      "%s: model.eos_token_id is %lld, and the model's ids "
                      "are 0 to %lld, so that no text would end",
                      config_name, (long long)c->end_ids[0],
                      (long long)d->words - 1);
}

// --- Files ---

static pestle_status_t read_config(pestle_decoder_t* d, const char* path) {
  char* data;
  size_t size;
  const pestle_json_value_t* root;
  PESTLE_TRY(pestle_file_read(path, MOST_BYTES, d->allocator, &data, &size));
  pestle_status_t status =
      pestle_json_read(pestle_str_make(data, size), &d->arena, &root);
  if (status) {
    status = pestle_status_annotate(status, "in %s", path);
  } else {
    // Numbers' digits are in |data|.
    status = pestle_status_annotate(read_fields(d, root), "in %s", path);
  }
  pestle_dealloc(d->allocator, data, size + 1);
  return status;
}

static void forget(decode_config_t* c) {
  *c = (decode_config_t){.input_ids = "input_ids",
                         .mask = "attention_mask",
                         .position_ids = "position_ids",
                         .logits = "logits",
                         .begin_id = -1,
                         .pad_id = -1,
                         .sampling = {.struct_size = sizeof(c->sampling)}};
}

// --- GGUF ---

static bool is_gguf(const char* path) {
  pestle_mapping_t mapping;
  pestle_status_t status = pestle_file_map(path, &mapping);
  bool is_it = !status && mapping.size >= 4 && !memcmp(mapping.data, "GGUF", 4);
  if (!status) pestle_file_unmap(&mapping);
  pestle_status_release(status);
  return is_it;
}

// The number of a key of the file; -1: there is none that an id or a length may be.
static int64_t number_of(const pestle_model_info_t* info, const char* key) {
  int64_t number = -1;
  for (size_t i = 0; i < info->text_count; ++i) {
    if (strcmp(info->texts[i].key, key) != 0) continue;
    if (!pestle_str_parse_i64(pestle_str(info->texts[i].value), &number) ||
        number > INT32_MAX) {
      number = -1;
    }
  }
  return number;
}

// How many positions it was trained for, whatever the architecture.
static int64_t context_of(const pestle_model_info_t* info) {
  pestle_str_t end = PESTLE_STR(".context_length");
  for (size_t i = 0; i < info->text_count; ++i) {
    pestle_str_t key = pestle_str(info->texts[i].key);
    bool is_first = pestle_str_ends_with(key, end) &&
                    pestle_str_find_char(key, '.') == key.size - end.size;
    int64_t number = is_first ? number_of(info, info->texts[i].key) : -1;
    if (number > 0) return number;
  }
  return 0;
}

// Whether it may have divisors of angles for few positions and for many: which are taken
// follows from how many there are in all.
static bool follows_room(const pestle_model_info_t* info) {
  pestle_str_t end = PESTLE_STR(".rope.scaling.original_context_length");
  for (size_t i = 0; i < info->text_count; ++i) {
    if (pestle_str_ends_with(pestle_str(info->texts[i].key), end)) return true;
  }
  return false;
}

// A GGUF file is its own config.
static pestle_status_t read_gguf(pestle_decoder_t* d, const char* path) {
  static const char* const ends[] = {"tokenizer.ggml.eos_token_id",
                                     "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"};
  enum { ENDS = sizeof(ends) / sizeof(ends[0]) };
  decode_config_t* c = &d->config;
  const pestle_model_info_t* info;
  int64_t* ids = PESTLE_ARENA_ARRAY(&d->arena, int64_t, ENDS);
  if (!ids) return PESTLE_OOM();
  PESTLE_TRY(pestle_model_info_create(d->context, path, NULL, &info));
  c->context = context_of(info);
  c->follows_room = follows_room(info);
  c->begin_id = number_of(info, "tokenizer.ggml.bos_token_id");
  c->pad_id = number_of(info, "tokenizer.ggml.padding_token_id");
  c->end_ids = ids;
  for (size_t i = 0; i < ENDS; ++i) {
    int64_t id = number_of(info, ends[i]);
    bool is_new = id >= 0;
    for (size_t k = 0; k < c->end_count; ++k)
      is_new &= ids[k] != id;
    if (is_new) ids[c->end_count++] = id;
  }
  pestle_model_info_release(info);
  return NULL;
}

static pestle_status_t path_within(pestle_decoder_t* d, const char* folder,
                                   const char* name, const char** out_file) {
  pestle_str_t rest = pestle_str(name), part;
  bool leads_out = *name == '/';
  while (pestle_str_next(&rest, '/', &part))
    leads_out |= pestle_str_equal_c(part, "..");
  if (leads_out) {
    return PESTLE_ERROR(
        MALFORMED, "%s names the file '%s', which is not within its folder",
        config_name, name);
  }
  *out_file = pestle_path_join(&d->arena, folder, name);
  return *out_file ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_decode_config(pestle_decoder_t* d, const char* path,
                                     const char** out_file) {
  decode_config_t* c = &d->config;
  pestle_file_info_t info;
  forget(c);
  *out_file = path;
  PESTLE_TRY(pestle_file_stat(path, true, &info));
  const char* folder = path;
  if (!info.is_folder && is_gguf(path)) return read_gguf(d, path);
  if (!info.is_folder) {
    folder = pestle_arena_strndup(&d->arena, pestle_path_folder(path));
    if (!folder) return PESTLE_OOM();
  }
  const char* config = pestle_path_join(&d->arena, folder, config_name);
  if (!config) return PESTLE_OOM();
  bool is_there = pestle_file_exists(config);
  if (!info.is_folder && !is_there) return NULL;
  if (!is_there) {
    return PESTLE_ERROR(NOT_FOUND,
                        "the folder '%s' has no %s, which says what its model "
                        "is: give the model's file",
                        path, config_name);
  }
  PESTLE_TRY(read_config(d, config));
  // It may be of another file of the folder.
  if (!info.is_folder && c->file &&
      !pestle_str_equal_c(pestle_path_name(path), c->file)) {
    forget(c);
    return NULL;
  }
  if (c->encoder_file)
    PESTLE_TRY(path_within(d, folder, c->encoder_file, &c->encoder));
  if (!info.is_folder) return NULL;
  return path_within(d, folder, c->file ? c->file : "model.onnx", out_file);
}

// --- Names ---

// Whether |name| is |pattern| with a number in the place of its %d, which |*out_number| is.
static bool matches(const char* pattern, const char* name,
                    pestle_str_t* out_number) {
  const char* percent = pattern ? strchr(pattern, '%') : NULL;
  if (!percent) return false;
  pestle_str_t text = pestle_str(name);
  pestle_str_t head = pestle_str_make(pattern, (size_t)(percent - pattern));
  pestle_str_t tail = pestle_str(percent + 2);
  if (text.size <= head.size + tail.size ||
      !pestle_str_starts_with(text, head) || !pestle_str_ends_with(text, tail))
    return false;
  *out_number = pestle_str_slice(text, head.size, text.size - tail.size);
  for (size_t i = 0; i < out_number->size; ++i) {
    if (out_number->data[i] < '0' || out_number->data[i] > '9') return false;
  }
  return true;
}

static bool fit(const char* const* pasts, const char* const* presents,
                const char* past, const char* present) {
  pestle_str_t a, b;
  for (int i = 0; i < 2; ++i) {
    if (matches(pasts[i], past, &a) && matches(presents[i], present, &b) &&
        pestle_str_equal(a, b)) {
      return true;
    }
  }
  return false;
}

bool pestle_decode_is_pair(const pestle_decoder_t* d, const char* past,
                           const char* present) {
  return fit(d->config.past, d->config.present, past, present);
}

bool pestle_decode_is_config_cross(const pestle_decoder_t* d, const char* past,
                                   const char* present) {
  return fit(d->config.cross_past, d->config.cross_present, past, present);
}

bool pestle_decode_is_past(const pestle_decoder_t* d, const char* name) {
  pestle_str_t number;
  return matches(d->config.past[0], name, &number) ||
         matches(d->config.past[1], name, &number);
}

bool pestle_decode_is_cross(const pestle_decoder_t* d, const char* name) {
  pestle_str_t number;
  return matches(d->config.cross_past[0], name, &number) ||
         matches(d->config.cross_past[1], name, &number);
}
