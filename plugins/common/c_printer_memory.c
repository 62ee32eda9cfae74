// SPDX-License-Identifier: Apache-2.0
// Loads and stores. A run of lanes moves as vectors where the access says that
// it is aligned; a masked one does so when all of its lanes are on.
#include "plugins/common/c_printer_internal.h"

typedef struct access_t {
  uint32_t id, buffer;
  unsigned lanes;
  pestle_c_printer_memory_t memory;
  pestle_c_printer_class_t c;
  unsigned dtype;
  const char* base;
  uint32_t mask;      // or PESTLE_KIR_NONE
  const char* index;  // an atom where it is used again
  uint32_t index_id;
  bool lanewise, stores;
} access_t;

// --- Elements ---

static const char* subscript(c_printer_t* p, const char* base, const char* at) {
  // Arrays of GLSL have indices of 32 bits, which a buffer's size fits.
  if (p->d->blocks && p->wide_index && !p->pairs) {
    at = pestle_c_printer_cast(p, PESTLE_C_PRINTER_I32, at);
  }
  return pestle_c_printer_format(p, "%s[%s]", base,
                                 pestle_c_printer_bare(p, at));
}

static const char* plus(c_printer_t* p, const char* index, unsigned lane) {
  int64_t known = strtoll(index, NULL, 10);
  if (!lane) return index;
  if (index[strspn(index, "0123456789")] == 0) {
    return pestle_c_printer_format(p, "%lld", (long long)(known + lane));
  }
  return pestle_c_printer_format(p, "(%s + %u)", index, lane);
}

static const char* element(c_printer_t* p, const access_t* a, unsigned lane) {
  const char* at = plus(p, a->index, lane);
  if (a->lanewise) {
    at = pestle_c_printer_narrow(p, c_printer_inst(p, a->index_id)->type,
                                 pestle_c_printer_get(p, a->index_id, lane));
  }
  if (a->lanewise && p->d->blocks) {
    at = pestle_c_printer_cast(p, PESTLE_C_PRINTER_I32, at);
    return pestle_c_printer_format(p, "%s[%s]", a->base, at);
  }
  return subscript(p, a->base, at);
}

static bool same_type(pestle_c_printer_memory_t m, pestle_c_printer_class_t c) {
  return (m == PESTLE_C_PRINTER_M_I32 && c == PESTLE_C_PRINTER_I32) ||
         (m == PESTLE_C_PRINTER_M_U32 && c == PESTLE_C_PRINTER_U32) ||
         (m == PESTLE_C_PRINTER_M_I64 && c == PESTLE_C_PRINTER_I64) ||
         (m == PESTLE_C_PRINTER_M_U64 && c == PESTLE_C_PRINTER_U64) ||
         (m == PESTLE_C_PRINTER_M_F32 && c == PESTLE_C_PRINTER_F32) ||
         (m == PESTLE_C_PRINTER_M_F64 && c == PESTLE_C_PRINTER_F64);
}

static const char* from_memory(c_printer_t* p, const access_t* a,
                               const char* x) {
  if (a->c == PESTLE_C_PRINTER_BOOL) {
    return pestle_c_printer_format(
        p, "(%s != %s)", pestle_c_printer_cast(p, PESTLE_C_PRINTER_U32, x),
        pestle_c_printer_int(p, PESTLE_C_PRINTER_U32, 0));
  }
  return same_type(a->memory, a->c) ? x : pestle_c_printer_cast(p, a->c, x);
}

static const char* to_memory(c_printer_t* p, const access_t* a, const char* x) {
  const char* type = pestle_c_printer_memory_type(p, a->memory);
  if (a->c == PESTLE_C_PRINTER_BOOL)
    x = pestle_c_printer_format(p, "(%s ? 1 : 0)", x);
  if (same_type(a->memory, a->c)) return x;
  if (p->d->constructors) {
    return pestle_c_printer_format(p, "%s(%s)", type,
                                   pestle_c_printer_bare(p, x));
  }
  return pestle_c_printer_format(p, "(%s)%s", type, x);
}

static const char* zero_of(c_printer_t* p, pestle_c_printer_class_t c) {
  if (c == PESTLE_C_PRINTER_F32 || c == PESTLE_C_PRINTER_F64)
    return pestle_c_printer_zero(p, c);
  return pestle_c_printer_int(p, c, 0);
}

// --- Private buffers ---

const char* pestle_c_printer_element(c_printer_t* p, uint32_t buffer,
                                     uint32_t index, unsigned lane) {
  const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, buffer);
  int64_t known;
  if (u->count * u->lanes == 1) return p->name[buffer];
  const char* at = pestle_c_printer_narrow(p, PESTLE_INDEX,
                                           pestle_c_printer_get(p, index, 0));
  if (pestle_c_printer_known(p, index, &known)) {
    return pestle_c_printer_format(p, "%s[%lld]", p->name[buffer],
                                   (long long)(known * u->lanes + lane));
  }
  if (u->lanes > 1) at = pestle_c_printer_format(p, "%s * %u", at, u->lanes);
  if (lane) at = pestle_c_printer_format(p, "%s + %u", at, lane);
  return pestle_c_printer_format(p, "%s[%s]", p->name[buffer],
                                 pestle_c_printer_bare(p, at));
}

static void load_private(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char** lane = pestle_c_printer_lanes(p, n->lanes);
  for (unsigned l = 0; l < n->lanes; ++l) {
    lane[l] = pestle_c_printer_element(p, n->arg[0], n->arg[1], l);
  }
  pestle_c_printer_define_named(p, id, lane, n->lanes);
}

static void store_private(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  unsigned lanes = pestle_kir_buffer(p->k, n->arg[0])->lanes;
  for (unsigned l = 0; l < lanes; ++l) {
    const char* to = pestle_c_printer_element(p, n->arg[0], n->arg[1], l);
    const char* value = pestle_c_printer_get(p, n->arg[2], l);
    pestle_c_printer_line(p, "%s = %s;", to, pestle_c_printer_bare(p, value));
  }
}

// --- Vectors ---

// Lanes that move at once: 1, 2, 4 or 8.
static unsigned run_of(const c_printer_t* p, const access_t* a) {
  const pestle_kir_inst_t* n = c_printer_inst(p, a->id);
  unsigned size = pestle_dtype_size((pestle_dtype_t)a->dtype);
  unsigned align = 1u << n->align_log2;
  const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, a->buffer);
  bool moves = u->scope == PESTLE_KIR_GLOBAL ||
               (u->scope == PESTLE_KIR_SHARED && p->d->shared_vectors);
  if (a->lanewise || !moves || p->wide_index) return 1;
  if (p->pairs && size == 8 && a->dtype != PESTLE_F64) return 1;
  if (a->lanes % 8 == 0 && align >= 8 * size && size == 2 && p->d->vector8) {
    return 8;
  }
  if (a->lanes % 4 == 0 && align >= 4 * size && size <= 4 &&
      p->d->vector4[a->memory]) {
    return 4;
  }
  if (a->lanes % 2 == 0 && align >= 2 * size && p->d->vector2[a->memory]) {
    return 2;
  }
  return 1;
}

static const char* vector_of(const c_printer_t* p, const access_t* a,
                             unsigned run) {
  if (run == 8) return p->d->vector8;
  return run == 4 ? p->d->vector4[a->memory] : p->d->vector2[a->memory];
}

// How a vector is read, and written, where the access is.
static const char* read_form(const c_printer_t* p, const access_t* a) {
  bool shared = pestle_kir_buffer(p->k, a->buffer)->scope == PESTLE_KIR_SHARED;
  return shared && p->d->shared_read ? p->d->shared_read : p->d->vector_read;
}
static const char* write_form(const c_printer_t* p, const access_t* a) {
  bool shared = pestle_kir_buffer(p->k, a->buffer)->scope == PESTLE_KIR_SHARED;
  return shared && p->d->shared_write ? p->d->shared_write : p->d->vector_write;
}

// Element |i| of eight in the four words of |whole|.
static const char* half_of(c_printer_t* p, const access_t* a, const char* whole,
                           unsigned i) {
  static const char* const member[] = {"x", "y", "z", "w"};
  const char* type = pestle_c_printer_memory_type(p, a->memory);
  return pestle_c_printer_format(p, i % 2 ? "(%s)(%s.%s >> 16)" : "(%s)(%s.%s)",
                                 type, whole, member[i / 2]);
}

// Words of two floats move as they are: |run| lanes are run / 2 of them.
static bool moves_words(const c_printer_t* p, const access_t* a, unsigned run) {
  return run > 1 && pestle_c_printer_has_halves(p, a->dtype);
}

static const char* words_type(const c_printer_t* p, unsigned run) {
  return run == 8   ? p->d->vector4[PESTLE_C_PRINTER_M_U32]
         : run == 4 ? p->d->vector2[PESTLE_C_PRINTER_M_U32]
                    : p->d->memory[PESTLE_C_PRINTER_M_U32];
}

static void read_words(c_printer_t* p, const access_t* a, unsigned run) {
  static const char* const member[] = {"x", "y", "z", "w"};
  const char** words = pestle_c_printer_lanes(p, a->lanes / 2);
  p->runs[a->buffer] |= (uint8_t)run;
  for (unsigned l = 0; l < a->lanes; l += run) {
    const char* at = pestle_c_printer_bare(p, plus(p, a->index, l));
    const char* type = words_type(p, run);
    const char* pairs[] = {"type", type, "name", p->name[a->buffer],
                           "at",   at,   NULL};
    const char* whole = pestle_c_printer_format(p, "t%u", p->temporaries++);
    pestle_c_printer_line(p, "%s %s = %s;", type, whole,
                          pestle_c_printer_expand(p, read_form(p, a), pairs));
    for (unsigned w = 0; w < run / 2; ++w) {
      words[l / 2 + w] =
          run == 2 ? whole
                   : pestle_c_printer_format(p, "%s.%s", whole, member[w]);
    }
  }
  pestle_c_printer_alias_words(p, a->id, words, a->lanes);
}

static void write_words(c_printer_t* p, const access_t* a, unsigned run,
                        uint32_t from) {
  p->runs[a->buffer] |= (uint8_t)run;
  for (unsigned l = 0; l < a->lanes; l += run) {
    const char* list = "";
    for (unsigned w = 0; w < run / 2; ++w) {
      const char* word = pestle_c_printer_word(p, from, l / 2 + w);
      list = pestle_c_printer_format(p, "%s%s%s", list, w ? ", " : "",
                                     pestle_c_printer_bare(p, word));
    }
    const char* type = words_type(p, run);
    const char* made[] = {"type", type, "v", list, NULL};
    const char* whole =
        run == 2 ? list : pestle_c_printer_expand(p, p->d->vector_make, made);
    const char* at = pestle_c_printer_bare(p, plus(p, a->index, l));
    const char* pairs[] = {"type", type,  "name", p->name[a->buffer], "at", at,
                           "v",    whole, NULL};
    pestle_c_printer_line(p, "%s;",
                          pestle_c_printer_expand(p, write_form(p, a), pairs));
  }
}

// Statements that give |to| what lies at the access.
static void read_runs(c_printer_t* p, const access_t* a, unsigned run,
                      const char** to) {
  static const char* const member[] = {"x", "y", "z", "w"};
  char digit[2] = {(char)('0' + run), 0};
  p->runs[a->buffer] |= (uint8_t)run;
  for (unsigned l = 0; l < a->lanes; l += run) {
    const char* at = pestle_c_printer_bare(p, plus(p, a->index, l));
    const char* type = vector_of(p, a, run);
    const char* pairs[] = {"type", type,  "name", p->name[a->buffer], "at", at,
                           "n",    digit, NULL};
    const char* whole = pestle_c_printer_format(p, "t%u", p->temporaries++);
    pestle_c_printer_line(p, "%s %s = %s;", type, whole,
                          pestle_c_printer_expand(p, read_form(p, a), pairs));
    for (unsigned i = 0; i < run; ++i) {
      const char* part =
          run < 8 ? pestle_c_printer_format(p, "%s.%s", whole, member[i])
                  : half_of(p, a, whole, i);
      to[l + i] = from_memory(p, a, part);
    }
  }
}

static void write_runs(c_printer_t* p, const access_t* a, unsigned run,
                       const char** from) {
  char digit[2] = {(char)('0' + run), 0};
  p->runs[a->buffer] |= (uint8_t)run;
  for (unsigned l = 0; l < a->lanes; l += run) {
    const char* list = "";
    for (unsigned i = 0; i < run; ++i) {
      const char* part = to_memory(p, a, from[l + i]);
      const char* join = i ? ", " : "";
      if (run == 8) {
        // Two of them in a word.
        const char* u32 = p->d->value[PESTLE_C_PRINTER_U32];
        const char* u16 = p->d->memory[PESTLE_C_PRINTER_M_U16];
        part = pestle_c_printer_format(p, "(%s)(%s)(%s)%s", u32, u16, part,
                                       i % 2 ? " << 16" : "");
        if (i % 2) join = " | ";
      }
      list = pestle_c_printer_format(p, "%s%s%s", list, join, part);
    }
    const char* type = vector_of(p, a, run);
    const char* made[] = {"type", type, "v", list, NULL};
    const char* whole = pestle_c_printer_expand(p, p->d->vector_make, made);
    const char* at = pestle_c_printer_bare(p, plus(p, a->index, l));
    const char* pairs[] = {"type", type,  "name", p->name[a->buffer],
                           "at",   at,    "v",    whole,
                           "n",    digit, NULL};
    pestle_c_printer_line(p, "%s;",
                          pestle_c_printer_expand(p, write_form(p, a), pairs));
  }
}

// --- Masks ---

// The condition under which all lanes are on, where the mask has such a one.
static const char* all_on(c_printer_t* p, const access_t* a) {
  const pestle_kir_inst_t* n = c_printer_inst(p, a->mask);
  if (n->op != PESTLE_KIR_MASK) return NULL;
  return pestle_c_printer_get(p, a->mask, a->lanes - 1);
}

static void open_if(c_printer_t* p, const char* condition) {
  pestle_c_printer_line(p, "if (%s) {", pestle_c_printer_bare(p, condition));
  ++p->depth;
}
static void open_else(c_printer_t* p) {
  --p->depth;
  pestle_c_printer_line(p, "} else {");
  ++p->depth;
}
static void close_if(c_printer_t* p) {
  --p->depth;
  pestle_c_printer_line(p, "}");
}

// --- Loads and stores ---

static void assign_lanes(c_printer_t* p, const access_t* a, const char** name) {
  for (unsigned l = 0; l < a->lanes; ++l) {
    const char* x = from_memory(p, a, element(p, a, l));
    const char* on = pestle_c_printer_get(p, a->mask, l);
    pestle_c_printer_line(p, "if (%s) %s = %s;", pestle_c_printer_bare(p, on),
                          name[l], pestle_c_printer_bare(p, x));
  }
}

static void load_masked(c_printer_t* p, const access_t* a, unsigned run) {
  const char** lane = pestle_c_printer_lanes(p, a->lanes);
  for (unsigned l = 0; l < a->lanes; ++l)
    lane[l] = zero_of(p, a->c);
  pestle_c_printer_define_named(p, a->id, lane, a->lanes);
  const char** name = p->value[a->id].lane;
  const char* all = run > 1 ? all_on(p, a) : NULL;
  if (!all) {
    assign_lanes(p, a, name);
    return;
  }
  const char** read = pestle_c_printer_lanes(p, a->lanes);
  open_if(p, all);
  read_runs(p, a, run, read);
  for (unsigned l = 0; l < a->lanes; ++l) {
    pestle_c_printer_line(p, "%s = %s;", name[l],
                          pestle_c_printer_bare(p, read[l]));
  }
  open_else(p);
  assign_lanes(p, a, name);
  close_if(p);
}

static void load(c_printer_t* p, const access_t* a) {
  unsigned run = run_of(p, a);
  if (a->mask != PESTLE_KIR_NONE) {
    load_masked(p, a, run);
    return;
  }
  if (moves_words(p, a, run)) {
    read_words(p, a, run);
    return;
  }
  const char** lane = pestle_c_printer_lanes(p, a->lanes);
  if (run > 1) {
    read_runs(p, a, run, lane);
    pestle_c_printer_alias(p, a->id, lane, a->lanes);
    return;
  }
  for (unsigned l = 0; l < a->lanes; ++l) {
    lane[l] = from_memory(p, a, element(p, a, l));
  }
  pestle_c_printer_define_named(p, a->id, lane, a->lanes);
}

static void store_lanes(c_printer_t* p, const access_t* a, const char** value) {
  for (unsigned l = 0; l < a->lanes; ++l) {
    const char* to = element(p, a, l);
    const char* x = pestle_c_printer_bare(p, to_memory(p, a, value[l]));
    if (a->mask == PESTLE_KIR_NONE) {
      pestle_c_printer_line(p, "%s = %s;", to, x);
    } else {
      const char* on = pestle_c_printer_get(p, a->mask, l);
      pestle_c_printer_line(p, "if (%s) %s = %s;", pestle_c_printer_bare(p, on),
                            to, x);
    }
  }
}

static void store(c_printer_t* p, const access_t* a) {
  unsigned run = run_of(p, a);
  const char** value = pestle_c_printer_lanes(p, a->lanes);
  uint32_t from = c_printer_inst(p, a->id)->arg[2];
  bool masked = a->mask != PESTLE_KIR_NONE;
  if (!masked && moves_words(p, a, run)) {
    write_words(p, a, run, from);
    return;
  }
  const char* all = masked && run > 1 ? all_on(p, a) : NULL;
  for (unsigned l = 0; l < a->lanes; ++l) {
    value[l] = pestle_c_printer_get(p, from, l);
    if (all) value[l] = pestle_c_printer_atom(p, a->c, value[l]);
  }
  if (run == 1 || (masked && !all)) {
    store_lanes(p, a, value);
    return;
  }
  if (all) open_if(p, all);
  write_runs(p, a, run, value);
  if (all) {
    open_else(p);
    store_lanes(p, a, value);
    close_if(p);
  }
}

void pestle_c_printer_access(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, n->arg[0]);
  bool stores = n->op == PESTLE_KIR_STORE || n->op == PESTLE_KIR_SCATTER;
  bool lanewise = n->op == PESTLE_KIR_GATHER || n->op == PESTLE_KIR_SCATTER;
  if (u->scope == PESTLE_KIR_PRIVATE) {
    if (stores) {
      store_private(p, id);
    } else {
      load_private(p, id);
    }
    return;
  }
  access_t a = {
      .id = id,
      .buffer = n->arg[0],
      .lanes = stores ? c_printer_inst(p, n->arg[2])->lanes : n->lanes,
      .memory = pestle_c_printer_memory(p, u->dtype),
      .c = pestle_c_printer_class(p, u->dtype),
      .dtype = u->dtype,
      .base = p->base[n->arg[0]],
      .mask = n->arg[stores ? 3 : 2],
      .index = pestle_c_printer_get(p, n->arg[1], 0),
      .index_id = n->arg[1],
      .lanewise = lanewise,
      .stores = stores};
  bool narrowed = p->pairs && p->wide_index;
  if (narrowed && !lanewise) {
    a.index = pestle_c_printer_narrow(p, PESTLE_INDEX, a.index);
  }
  if (a.lanes > 1 && !lanewise) {
    pestle_c_printer_class_t c = pestle_c_printer_class(p, PESTLE_INDEX);
    a.index =
        pestle_c_printer_atom(p, narrowed ? PESTLE_C_PRINTER_I32 : c, a.index);
  }
  if (stores) {
    store(p, &a);
  } else {
    load(p, &a);
  }
}

// Words of a buffer of smaller elements, as vectors where the access says that it is aligned.
void pestle_c_printer_load_words(c_printer_t* p, uint32_t id) {
  static const char* const member[] = {"x", "y", "z", "w"};
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, n->arg[0]);
  unsigned each = 4 / pestle_dtype_size((pestle_dtype_t)u->dtype), run = 1;
  if (n->lanes % 2 == 0 && n->align_log2 >= 3) run = 2;
  if (n->lanes % 4 == 0 && n->align_log2 >= 4) run = 4;
  if (n->align_log2 < 2 || p->wide_index) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "the device loads words from their places only");
    return;
  }
  const char* type = run == 4   ? p->d->vector4[PESTLE_C_PRINTER_M_U32]
                     : run == 2 ? p->d->vector2[PESTLE_C_PRINTER_M_U32]
                                : p->d->memory[PESTLE_C_PRINTER_M_U32];
  access_t a = {.id = id, .buffer = n->arg[0]};
  a.index = pestle_c_printer_atom(p, pestle_c_printer_class(p, PESTLE_INDEX),
                                  pestle_c_printer_get(p, n->arg[1], 0));
  const char** lane = pestle_c_printer_lanes(p, n->lanes);
  for (unsigned l = 0; l < n->lanes; l += run) {
    const char* at = pestle_c_printer_bare(p, plus(p, a.index, l * each));
    const char* pairs[] = {"type", type, "name", p->name[a.buffer],
                           "at",   at,   NULL};
    const char* whole = pestle_c_printer_format(p, "t%u", p->temporaries++);
    pestle_c_printer_line(p, "%s %s = %s;", type, whole,
                          pestle_c_printer_expand(p, read_form(p, &a), pairs));
    for (unsigned i = 0; i < run; ++i) {
      const char* word =
          run == 1 ? whole
                   : pestle_c_printer_format(p, "%s.%s", whole, member[i]);
      lane[l + i] = pestle_c_printer_cast(p, PESTLE_C_PRINTER_I32, word);
    }
  }
  pestle_c_printer_alias(p, id, lane, n->lanes);
}
