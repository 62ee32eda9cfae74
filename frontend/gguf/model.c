// SPDX-License-Identifier: Apache-2.0
// From metadata and names of tensors to a model.
#include "frontend/gguf/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "base/mem.h"

enum {
  MAX_LAYERS = 1 << 12,
  MAX_WIDTH = 1 << 22,
  MAX_NAME = 96,
};

static const pestle_gguf_arch_t archs[] = {
#define PESTLE_GGUF_ARCH(name, ...) {#name, __VA_ARGS__},
#include "frontend/gguf/archs.def"
};
static const char known_archs[] =
#define PESTLE_GGUF_ARCH(name, ...) #name " "
#include "frontend/gguf/archs.def"
    ;

// --- Keys ---

// ARCHITECTURE.|name|; NULL: not there. |key| is what errors call it.
static const pestle_gguf_value_t* find(const pestle_gguf_model_t* m,
                                       const char* name, char key[MAX_NAME]) {
  (void)snprintf(key, MAX_NAME, "%s.%s", m->arch->name, name);
  return pestle_gguf_find_value(m->file, pestle_str(key));
}

static pestle_status_t is_missing(const char* key) {
  return PESTLE_ERROR(MALFORMED,
                      "the key '%s' is missing: convert the model again", key);
}

// Leaves |*io| as it is where there is no such key. Layers may have a number each, which
// has to be the same.
static pestle_status_t read_i64(const pestle_gguf_model_t* m, const char* name,
                                int64_t least, int64_t most, int64_t* io) {
  char key[MAX_NAME];
  const pestle_gguf_value_t* v = find(m, name, key);
  int64_t first = 0;
  if (!v) return NULL;
  if (!pestle_gguf_as_i64(v, 0, &first) || first < least || first > most) {
    return PESTLE_ERROR(MALFORMED,
                        "the key '%s' is of kind %s and no integer from "
                        "%" PRId64 " to %" PRId64,
                        key, pestle_gguf_kind_name(v->kind), least, most);
  }
  for (uint64_t i = 1; i < v->count; ++i) {
    int64_t other;
    if (pestle_gguf_as_i64(v, i, &other) && other == first) continue;
    return PESTLE_ERROR(UNSUPPORTED,
                        "the key '%s' says %" PRId64
                        " of layer 0 and another number of layer %" PRIu64
                        ": all layers have to be alike",
                        key, first, i);
  }
  *io = first;
  return NULL;
}

static pestle_status_t need_i64(const pestle_gguf_model_t* m, const char* name,
                                int64_t most, int64_t* out) {
  char key[MAX_NAME];
  if (!find(m, name, key)) return is_missing(key);
  return read_i64(m, name, 1, most, out);
}

static pestle_status_t read_f64(const pestle_gguf_model_t* m, const char* name,
                                double least, double* io) {
  char key[MAX_NAME];
  const pestle_gguf_value_t* v = find(m, name, key);
  double number;
  if (!v) return NULL;
  if (v->kind == PESTLE_GGUF_ARRAY || !pestle_gguf_as_f64(v, 0, &number) ||
      !(number >= least && number <= 1e30)) {
    return PESTLE_ERROR(MALFORMED,
                        "the key '%s' is of kind %s and no number from %g on",
                        key, pestle_gguf_kind_name(v->kind), least);
  }
  *io = number;
  return NULL;
}

static pestle_status_t find_arch(pestle_gguf_model_t* m) {
  static const char key[] = "general.architecture";
  const pestle_gguf_value_t* v =
      pestle_gguf_find_value(m->file, PESTLE_STR(key));
  pestle_str_t name;
  if (!v) return is_missing(key);
  if (!pestle_gguf_as_text(v, &name)) {
    return PESTLE_ERROR(MALFORMED, "the key '%s' is of kind %s and no string",
                        key, pestle_gguf_kind_name(v->kind));
  }
  for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); ++i) {
    if (!pestle_str_equal_c(name, archs[i].name)) continue;
    m->arch = &archs[i];
    return NULL;
  }
  return PESTLE_ERROR(UNSUPPORTED,
                      "its architecture is '%.*s'; known are %s- others go by "
                      "ONNX (onnxruntime-genai's builder)",
                      name.size > 100 ? 100 : (int)name.size, name.data,
                      known_archs);
}

// --- Numbers ---

static pestle_status_t read_sizes(pestle_gguf_model_t* m) {
  int64_t experts = 0;
  PESTLE_TRY(read_i64(m, "expert_count", 0, INT32_MAX, &experts));
  if (experts) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the model has %" PRId64
                        " experts a layer, which are not taken from GGUF",
                        experts);
  }
  char key[MAX_NAME];
  const pestle_gguf_value_t* causal = find(m, "attention.causal", key);
  if (causal && causal->kind == PESTLE_GGUF_BOOL && !causal->data[0]) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the key '%s' is false: its tokens look at those "
                        "behind them, which makes no text token by token",
                        key);
  }
  PESTLE_TRY(need_i64(m, "block_count", MAX_LAYERS, &m->layers));
  PESTLE_TRY(need_i64(m, "embedding_length", MAX_WIDTH, &m->width));
  PESTLE_TRY(need_i64(m, "attention.head_count", MAX_WIDTH, &m->heads));
  PESTLE_TRY(need_i64(m, "feed_forward_length", MAX_WIDTH, &m->inner));
  m->shared = m->heads;
  PESTLE_TRY(read_i64(m, "attention.head_count_kv", 1, MAX_WIDTH, &m->shared));
  m->depth = m->width / m->heads;
  PESTLE_TRY(read_i64(m, "attention.key_length", 1, MAX_WIDTH, &m->depth));
  m->value_depth = m->depth;
  PESTLE_TRY(
      read_i64(m, "attention.value_length", 1, MAX_WIDTH, &m->value_depth));
  PESTLE_TRY(read_i64(m, "context_length", 1, INT32_MAX, &m->context));
  if (m->heads % m->shared || m->depth < 2) {
    return PESTLE_ERROR(MALFORMED,
                        "%" PRId64 " heads of %" PRId64
                        " numbers do not share %" PRId64 " heads of keys",
                        m->heads, m->depth, m->shared);
  }
  m->one = 1;
  m->queries = m->heads * m->depth;
  m->keys = m->shared * m->depth;
  m->values = m->shared * m->value_depth;
  m->joined = m->queries + m->keys + m->values;
  m->outputs = m->heads * m->value_depth;
  m->ups = m->arch->flags & PESTLE_GGUF_JOINED ? 2 * m->inner : m->inner;
  return NULL;
}

static pestle_status_t read_scores(pestle_gguf_model_t* m) {
  const pestle_gguf_arch_t* arch = m->arch;
  static const char epsilon[] = "attention.layer_norm_rms_epsilon";
  char key[MAX_NAME];
  if (!find(m, epsilon, key)) return is_missing(key);
  PESTLE_TRY(read_f64(m, epsilon, 0, &m->epsilon));
  double over = (double)m->depth;
  if (arch->wide && m->layers == arch->wide)
    over = (double)m->width / (double)m->heads;
  m->scale = 0;
  PESTLE_TRY(read_f64(m, "attention.scale", 0, &m->scale));
  if (m->scale == 0) m->scale = 1 / sqrt(over);
  m->cap = arch->cap;
  m->last_cap = arch->last_cap;
  PESTLE_TRY(read_f64(m, "attn_logit_softcapping", 0, &m->cap));
  PESTLE_TRY(read_f64(m, "final_logit_softcapping", 0, &m->last_cap));
  if (!arch->windowed) return NULL;
  m->window = arch->window;
  return read_i64(m, "attention.sliding_window", 0, INT32_MAX, &m->window);
}

static pestle_status_t read_scaling(pestle_gguf_model_t* m) {
  pestle_gguf_angles_t* a = &m->angles;
  char key[MAX_NAME];
  const pestle_gguf_value_t* v = find(m, "rope.scaling.type", key);
  pestle_str_t name = PESTLE_STR("");
  a->factor = 0;
  PESTLE_TRY(read_f64(m, "rope.scale_linear", 0, &a->factor));
  PESTLE_TRY(read_f64(m, "rope.scaling.factor", 0, &a->factor));
  PESTLE_TRY(read_f64(m, "rope.scaling.attn_factor", 0, &a->magnitude));
  a->original = m->context;
  PESTLE_TRY(read_i64(m, "rope.scaling.original_context_length", 1, INT32_MAX,
                      &a->original));
  if (v && !pestle_gguf_as_text(v, &name)) {
    return PESTLE_ERROR(MALFORMED, "the key '%s' is of kind %s and no string",
                        key, pestle_gguf_kind_name(v->kind));
  }
  bool is_yarn = pestle_str_equal_c(name, "yarn");
  bool is_none = pestle_str_equal_c(name, "none");
  bool is_known = is_yarn || is_none || !name.size ||
                  pestle_str_is_one_of(name, "linear longrope");
  if (!is_known || (is_yarn && !a->original)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the key '%s' is '%.*s'; known are none, linear, yarn "
                        "(with a context_length) and longrope",
                        key, name.size > 100 ? 100 : (int)name.size, name.data);
  }
  if (is_none || a->factor == 0 || a->factor == 1) return NULL;
  a->scaling = is_yarn ? PESTLE_GGUF_YARN : PESTLE_GGUF_LINEAR;
  return NULL;
}

static pestle_status_t read_angles(pestle_gguf_model_t* m) {
  pestle_gguf_angles_t* a = &m->angles;
  a->turned = m->depth;
  a->base = 10000;
  a->magnitude = 1;
  PESTLE_TRY(read_i64(m, "rope.dimension_count", 2, m->depth, &a->turned));
  PESTLE_TRY(read_f64(m, "rope.freq_base", 1e-3, &a->base));
  m->local_base = 10000;
  PESTLE_TRY(read_f64(m, "rope.freq_base_swa", 1e-3, &m->local_base));
  if (a->turned % 2) {
    return PESTLE_ERROR(MALFORMED,
                        "%" PRId64 " numbers of a head do not turn in pairs",
                        a->turned);
  }
  return read_scaling(m);
}

// --- Tensors ---

typedef struct found_t {
  pestle_gguf_model_t* m;
  size_t count;  // of the file's tensors that are something
  pestle_strbuf_t missing;
  size_t missing_count;
} found_t;

enum { MOST_TOLD = 12 };

static void tell(pestle_strbuf_t* list, size_t* count, pestle_str_t name) {
  if (++*count > MOST_TOLD) return;
  pestle_strbuf_appendf(list, "%s'%.*s'", *count > 1 ? ", " : "",
                        PESTLE_STR_ARG(name));
}

// Finds the tensor |name| of |rows| rows of |columns|; 0 rows: any.
static pestle_status_t find_tensor(found_t* f, const char* name,
                                   int64_t columns, int64_t rows,
                                   bool is_needed,
                                   const pestle_gguf_tensor_t** out) {
  const pestle_gguf_tensor_t* t =
      pestle_gguf_find_tensor(f->m->file, pestle_str(name));
  *out = t;
  if (!t) {
    if (is_needed) tell(&f->missing, &f->missing_count, pestle_str(name));
    return NULL;
  }
  ++f->count;
  if (t->dims[0] == columns && (t->dims[1] == rows || !rows) &&
      t->dims[2] * t->dims[3] == 1) {
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED,
                      "the tensor '%s' has %" PRId64 " rows of %" PRId64
                      ", by the file's keys it has %" PRId64 " of %" PRId64,
                      name, t->dims[1], t->dims[0], rows ? rows : t->dims[1],
                      columns);
}

static pestle_status_t find_layer(found_t* f, int64_t layer) {
  static const char* const names[PESTLE_GGUF_SLOTS] = {
#define PESTLE_GGUF_SLOT(SLOT, name, columns, rows, needed) name,
#include "frontend/gguf/tensors.def"
  };
  pestle_gguf_model_t* m = f->m;
  uint32_t flags = m->arch->flags;
  char name[MAX_NAME];
  (void)snprintf(name, sizeof(name), "blk.%" PRId64 ".attn_qkv.weight", layer);
  bool is_joined = pestle_gguf_find_tensor(m->file, pestle_str(name)) ||
                   (flags & PESTLE_GGUF_JOINED);
  const struct {
    int64_t columns, rows;
    bool is_needed;
  } wanted[PESTLE_GGUF_SLOTS] = {
#define PESTLE_GGUF_SLOT(SLOT, name, columns, rows, needed) \
  {m->columns, m->rows, (needed) != 0},
#include "frontend/gguf/tensors.def"
  };
  const pestle_gguf_tensor_t** slots = &m->slots[layer * PESTLE_GGUF_SLOTS];
  for (int i = 0; i < PESTLE_GGUF_SLOTS; ++i) {
    (void)snprintf(name, sizeof(name), "blk.%" PRId64 ".%s", layer, names[i]);
    PESTLE_TRY(find_tensor(f, name, wanted[i].columns, wanted[i].rows,
                           wanted[i].is_needed, &slots[i]));
  }
  return NULL;
}

static pestle_status_t find_divisors(found_t* f) {
  pestle_gguf_angles_t* a = &f->m->angles;
  int64_t half = a->turned / 2;
  PESTLE_TRY(find_tensor(f, "rope_freqs.weight", half, 1, false, &a->divisors));
  PESTLE_TRY(
      find_tensor(f, "rope_factors_short.weight", half, 1, false, &a->few));
  PESTLE_TRY(
      find_tensor(f, "rope_factors_long.weight", half, 1, false, &a->many));
  return NULL;
}

// Whether |m| has |t| in a place; those of angles that old converters wrote are none.
static bool is_known(const pestle_gguf_model_t* m,
                     const pestle_gguf_tensor_t* t) {
  const pestle_gguf_tensor_t* const more[] = {m->embedding,  m->last_norm,
                                              m->head,       m->angles.divisors,
                                              m->angles.few, m->angles.many};
  for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); ++i) {
    if (more[i] == t) return true;
  }
  for (int64_t i = 0; i < m->layers * PESTLE_GGUF_SLOTS; ++i) {
    if (m->slots[i] == t) return true;
  }
  return false;
}

static pestle_status_t check_rest(const pestle_gguf_model_t* m,
                                  pestle_strbuf_t* list) {
  size_t count = 0;
  for (size_t i = 0; i < m->file->tensor_count; ++i) {
    const pestle_gguf_tensor_t* t = &m->file->tensors[i];
    if (!is_known(m, t)) tell(list, &count, t->name);
  }
  return PESTLE_ERROR(UNSUPPORTED,
                      "the architecture '%s' is not known to have the tensors "
                      "%s%s (%zu in all): what they are for would be left out",
                      m->arch->name, pestle_strbuf_cstr(list),
                      count > MOST_TOLD ? ", .." : "", count);
}

static pestle_status_t find_all(found_t* f) {
  pestle_gguf_model_t* m = f->m;
  PESTLE_TRY(
      find_tensor(f, "token_embd.weight", m->width, 0, true, &m->embedding));
  m->words = m->embedding ? m->embedding->dims[1] : 0;
  PESTLE_TRY(
      find_tensor(f, "output_norm.weight", m->width, 1, true, &m->last_norm));
  PESTLE_TRY(
      find_tensor(f, "output.weight", m->width, m->words, false, &m->head));
  if (!m->head) m->head = m->embedding;
  PESTLE_TRY(find_divisors(f));
  for (int64_t i = 0; i < m->layers; ++i)
    PESTLE_TRY(find_layer(f, i));
  PESTLE_TRY(pestle_strbuf_status(&f->missing));
  if (f->missing_count) {
    return PESTLE_ERROR(
        MALFORMED,
        "the tensors %s%s (%zu in all) are missing, which the architecture "
        "'%s' of %" PRId64
        " layers needs: the file is damaged, or a part of a model",
        pestle_strbuf_cstr(&f->missing),
        f->missing_count > MOST_TOLD ? ", .." : "", f->missing_count,
        m->arch->name, m->layers);
  }
  if (f->count == m->file->tensor_count) return NULL;
  return check_rest(m, &f->missing);
}

pestle_status_t pestle_gguf_find_model(const pestle_gguf_file_t* file,
                                       pestle_arena_t* arena,
                                       pestle_gguf_model_t* out_model) {
  pestle_gguf_model_t* m = out_model;
  *m = (pestle_gguf_model_t){.file = file};
  PESTLE_TRY(find_arch(m));
  PESTLE_TRY(read_sizes(m));
  PESTLE_TRY(read_scores(m));
  PESTLE_TRY(read_angles(m));
  size_t count = (size_t)m->layers * PESTLE_GGUF_SLOTS;
  m->slots = pestle_arena_alloc_zero(arena, count * sizeof(*m->slots),
                                     _Alignof(pestle_gguf_tensor_t*));
  if (!m->slots) return PESTLE_OOM();
  found_t f = {.m = m};
  pestle_strbuf_init(arena->allocator, &f.missing);
  pestle_status_t status = find_all(&f);
  pestle_strbuf_deinit(&f.missing);
  return status;
}
