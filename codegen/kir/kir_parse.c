// SPDX-License-Identifier: Apache-2.0
// Reads the text form that kir_print.c writes. Nothing is folded or merged, so
// that what was printed comes back as it was; value numbers are labels, and may
// be any. The result has the right shape but is not verified.
#include "base/bits.h"
#include "codegen/kir/kir_internal.h"
#include "codegen/nest/lex.h"

typedef struct label_t {
  uint64_t number;
  pestle_kir_id_t id;
} label_t;

typedef struct parse_t {
  pestle_lex_t s;
  pestle_kir_builder_t* k;
  PESTLE_VEC(label_t) labels;
  uint32_t depth;
} parse_t;

// --- Names, types, values ---

static pestle_status_t parse_name(parse_t* p, char sigil, pestle_str_t* out) {
  PESTLE_TRY(pestle_lex_expect(&p->s, sigil));
  *out = pestle_lex_word(&p->s);
  return out->size ? NULL : pestle_lex_error(&p->s, "expected a name");
}

static uint32_t intern(parse_t* p, pestle_str_t text, bool identifier) {
  char* copy = pestle_alloc(p->k->allocator, text.size + 1);
  if (!copy) {
    p->k->failed = true;
    return 0;
  }
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  uint32_t offset = pestle_kir_intern(p->k, copy, identifier);
  pestle_dealloc(p->k->allocator, copy, text.size + 1);
  return offset;
}

static bool find_dtype(pestle_str_t name, unsigned* out_type) {
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!pestle_str_equal_c(name, pestle_dtype_info((pestle_dtype_t)d)->name)) {
      continue;
    }
    *out_type = d;
    return true;
  }
  return false;
}

// f32, f32x16.
static pestle_status_t parse_type(parse_t* p, unsigned* out_type,
                                  unsigned* out_lanes) {
  pestle_str_t text = pestle_lex_word(&p->s);
  size_t cut = pestle_str_rfind_char(text, 'x');
  uint64_t lanes = 1;
  if (cut != SIZE_MAX && cut + 1 < text.size &&
      pestle_str_parse_u64(pestle_str_slice(text, cut + 1, text.size),
                           &lanes)) {
    text = pestle_str_slice(text, 0, cut);
  }
  if (!find_dtype(text, out_type))
    return pestle_lex_error(&p->s, "expected a type");
  if (lanes < 1 || lanes > PESTLE_KIR_MAX_LANES) {
    return pestle_lex_error(&p->s, "a value has 1 to %u lanes",
                            PESTLE_KIR_MAX_LANES);
  }
  *out_lanes = (unsigned)lanes;
  return NULL;
}

static pestle_status_t parse_label(parse_t* p, uint64_t* out_number) {
  PESTLE_TRY(pestle_lex_expect(&p->s, '%'));
  pestle_str_t text = pestle_lex_word(&p->s);
  if (pestle_str_parse_u64(text, out_number)) return NULL;
  return pestle_lex_error(&p->s, "expected a value's number");
}

static pestle_status_t parse_value(parse_t* p, uint32_t* out_id) {
  uint64_t number;
  if (pestle_lex_accept_word(&p->s, "none")) {
    *out_id = PESTLE_KIR_NONE;
    return NULL;
  }
  PESTLE_TRY(parse_label(p, &number));
  for (size_t i = p->labels.size; i-- > 0;) {
    if (p->labels.data[i].number != number) continue;
    *out_id = p->labels.data[i].id;
    return NULL;
  }
  return pestle_lex_error(&p->s, "no value %%%llu", (unsigned long long)number);
}

static pestle_status_t parse_buffer_ref(parse_t* p, uint32_t* out_buffer) {
  pestle_str_t name;
  PESTLE_TRY(parse_name(p, '@', &name));
  for (uint32_t b = 0; b < p->k->buffer.size; ++b) {
    const char* other = pestle_kir_text(p->k, p->k->buffer.data[b].name);
    if (!pestle_str_equal_c(name, other)) continue;
    *out_buffer = b;
    return NULL;
  }
  return pestle_lex_error(&p->s, "no buffer @%.*s", PESTLE_STR_ARG(name));
}

static pestle_status_t parse_table(parse_t* p, uint32_t* out_table) {
  pestle_kir_builder_t* k = p->k;
  pestle_kir_table_t table = {(uint32_t)k->word.size, 0};
  PESTLE_TRY(pestle_lex_expect(&p->s, '['));
  while (!pestle_lex_accept(&p->s, ']')) {
    int64_t lane;
    if (table.count) PESTLE_TRY(pestle_lex_expect(&p->s, ','));
    PESTLE_TRY(pestle_lex_int(&p->s, 0, UINT32_MAX, &lane));
    if (!pestle_vec_push(&k->word, (uint32_t)lane)) return PESTLE_OOM();
    ++table.count;
  }
  *out_table = (uint32_t)k->table.size;
  return pestle_vec_push(&k->table, table) ? NULL : PESTLE_OOM();
}

// --- Buffers ---

static pestle_status_t parse_buffer_flags(parse_t* p,
                                          pestle_kir_buffer_t* buffer) {
  int64_t value;
  for (;;) {
    if (pestle_lex_accept_word(&p->s, "readonly")) {
      buffer->flags |= PESTLE_KIR_READONLY;
    } else if (pestle_lex_accept_word(&p->s, "nontemporal")) {
      buffer->flags |= PESTLE_KIR_NONTEMPORAL;
    } else if (pestle_lex_accept_word(&p->s, "align")) {
      PESTLE_TRY(pestle_lex_int(&p->s, 1, 1 << 20, &value));
      buffer->align = (uint32_t)value;
    } else if (pestle_lex_accept_word(&p->s, "alias")) {
      PESTLE_TRY(pestle_lex_int(&p->s, 0, UINT16_MAX, &value));
      buffer->alias_set = (uint16_t)value;
    } else if (pestle_lex_accept_word(&p->s, "layout")) {
      PESTLE_TRY(pestle_lex_int(&p->s, 0, UINT16_MAX, &value));
      buffer->layout = (uint16_t)value;
    } else if (pestle_lex_accept_word(&p->s, "tiles")) {
      uint32_t table;
      PESTLE_TRY(parse_table(p, &table));
      buffer->layout = (uint16_t)(table + 1);
    } else {
      return NULL;
    }
  }
}

static pestle_status_t parse_buffer(parse_t* p) {
  pestle_str_t name, scope_name;
  unsigned type, lanes, scope = 0;
  int64_t count;
  PESTLE_TRY(parse_name(p, '@', &name));
  PESTLE_TRY(pestle_lex_expect(&p->s, ':'));
  scope_name = pestle_lex_word(&p->s);
  while (scope <= PESTLE_KIR_TENSOR_MAP &&
         !pestle_str_equal_c(scope_name, pestle_kir_scope_name(scope))) {
    ++scope;
  }
  if (scope > PESTLE_KIR_TENSOR_MAP) {
    return pestle_lex_error(&p->s, "expected global, shared, private or map");
  }
  PESTLE_TRY(parse_type(p, &type, &lanes));
  PESTLE_TRY(pestle_lex_expect(&p->s, '['));
  PESTLE_TRY(pestle_lex_int(&p->s, 0, INT64_MAX, &count));
  PESTLE_TRY(pestle_lex_expect(&p->s, ']'));
  uint32_t id = pestle_kir_add_buffer(p->k, "", (pestle_kir_scope_t)scope,
                                      (pestle_dtype_t)type, lanes, count, 0);
  uint32_t offset = intern(p, name, true);
  if (p->k->failed) return PESTLE_OOM();
  for (uint32_t b = 0; b < id; ++b) {
    if (p->k->buffer.data[b].name != offset) continue;
    return pestle_lex_error(&p->s, "there is a buffer @%.*s already",
                            PESTLE_STR_ARG(name));
  }
  p->k->buffer.data[id].name = offset;
  return parse_buffer_flags(p, &p->k->buffer.data[id]);
}

// --- Operands ---

static pestle_status_t parse_const(parse_t* p, uint64_t* out_bits,
                                   bool* out_float) {
  pestle_str_t text = pestle_lex_number(&p->s);
  int64_t integer;
  double value;
  *out_float = false;
  // 0x means the bits themselves, of floats too.
  if (pestle_str_starts_with(text, PESTLE_STR("0x")) &&
      pestle_str_parse_u64(text, out_bits)) {
    return NULL;
  }
  if (pestle_str_parse_i64(text, &integer)) {
    *out_bits = (uint64_t)integer;
    return NULL;
  }
  if (!pestle_str_parse_f64(text, &value)) {
    return pestle_lex_error(&p->s, "expected a number");
  }
  memcpy(out_bits, &value, sizeof value);
  *out_float = true;
  return NULL;
}

static pestle_status_t parse_for(parse_t* p, pestle_kir_inst_t* inst) {
  int64_t step;
  PESTLE_TRY(parse_value(p, &inst->arg[0]));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "to"));
  PESTLE_TRY(parse_value(p, &inst->arg[1]));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "step"));
  PESTLE_TRY(pestle_lex_int(&p->s, 1, INT32_MAX, &step));
  inst->arg[2] = (uint32_t)step;
  pestle_str_t axis = pestle_lex_word(&p->s);
  for (uint32_t a = 0; a <= PESTLE_KIR_CLUSTER; ++a) {
    if (!pestle_str_equal_c(axis, pestle_kir_axis_name(a))) continue;
    inst->arg[3] = a;
    return NULL;
  }
  return pestle_lex_error(&p->s,
                          "expected an axis kind: serial, unroll, group.x ...");
}

static pestle_status_t parse_access(parse_t* p, pestle_kir_inst_t* inst) {
  bool stores = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER;
  PESTLE_TRY(parse_buffer_ref(p, &inst->arg[0]));
  PESTLE_TRY(pestle_lex_expect(&p->s, '['));
  PESTLE_TRY(parse_value(p, &inst->arg[1]));
  PESTLE_TRY(pestle_lex_expect(&p->s, ']'));
  if (inst->op == PESTLE_KIR_PREFETCH) {
    if (!pestle_lex_accept(&p->s, ',')) return NULL;
    inst->arg[2] = PESTLE_KIR_PREFETCH_FAR;
    return pestle_lex_expect_word(&p->s, "far");
  }
  uint32_t* mask = &inst->arg[stores ? 3 : 2];
  *mask = PESTLE_KIR_NONE;
  if (stores) {
    PESTLE_TRY(pestle_lex_expect(&p->s, ','));
    PESTLE_TRY(parse_value(p, &inst->arg[2]));
    if (inst->arg[2] == PESTLE_KIR_NONE)
      return pestle_lex_error(&p->s, "no value");
    inst->lanes = p->k->inst.data[inst->arg[2]].lanes;
  }
  if (!pestle_lex_accept(&p->s, ',')) return NULL;
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "mask"));
  return parse_value(p, mask);
}

static pestle_status_t parse_reduce(parse_t* p, pestle_kir_inst_t* inst) {
  PESTLE_TRY(parse_value(p, &inst->arg[0]));
  PESTLE_TRY(pestle_lex_expect(&p->s, ','));
  pestle_str_t name = pestle_lex_word(&p->s);
  for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    unsigned code = pestle_kir_code((pestle_op_t)op);
    if (!pestle_str_equal_c(name, pestle_kir_info(code).mnemonic)) continue;
    inst->arg[1] = op;
    return NULL;
  }
  return pestle_lex_error(&p->s, "expected a scalar row");
}

static pestle_status_t parse_sg_reduce(parse_t* p, pestle_kir_inst_t* inst) {
  int64_t width;
  PESTLE_TRY(parse_reduce(p, inst));
  PESTLE_TRY(pestle_lex_expect(&p->s, ','));
  PESTLE_TRY(pestle_lex_int(&p->s, 1, UINT32_MAX, &width));
  inst->arg[2] = (uint32_t)width;
  return NULL;
}

static pestle_status_t parse_plain(parse_t* p, const char* letters,
                                   pestle_kir_inst_t* inst) {
  for (int a = 0; letters[a]; ++a) {
    int64_t value;
    if (a) PESTLE_TRY(pestle_lex_expect(&p->s, ','));
    if (inst->op == PESTLE_KIR_SHUFFLE && letters[a] == 'i') {
      PESTLE_TRY(parse_table(p, &inst->arg[a]));
    } else if (letters[a] == 'b') {
      PESTLE_TRY(parse_buffer_ref(p, &inst->arg[a]));
    } else if (letters[a] == 'i') {
      PESTLE_TRY(pestle_lex_int(&p->s, INT32_MIN, UINT32_MAX, &value));
      inst->arg[a] = (uint32_t)value;
    } else {
      PESTLE_TRY(parse_value(p, &inst->arg[a]));
    }
  }
  return NULL;
}

static pestle_status_t parse_operands(parse_t* p, pestle_kir_inst_t* inst) {
  const char* letters = pestle_kir_info(inst->op).operands;
  if (inst->op == PESTLE_KIR_FOR) return parse_for(p, inst);
  if (inst->op == PESTLE_KIR_REDUCE) return parse_reduce(p, inst);
  if (inst->op == PESTLE_KIR_SG_REDUCE) return parse_sg_reduce(p, inst);
  if (inst->op == PESTLE_KIR_LOAD || inst->op == PESTLE_KIR_STORE ||
      inst->op == PESTLE_KIR_GATHER || inst->op == PESTLE_KIR_SCATTER ||
      inst->op == PESTLE_KIR_PREFETCH) {
    return parse_access(p, inst);
  }
  PESTLE_TRY(parse_plain(p, letters, inst));
  if (inst->op != PESTLE_KIR_COPY_ASYNC) return NULL;
  int64_t lanes;
  PESTLE_TRY(pestle_lex_expect(&p->s, ','));
  PESTLE_TRY(pestle_lex_int(&p->s, 1, PESTLE_KIR_MAX_LANES, &lanes));
  inst->lanes = (uint8_t)lanes;
  return NULL;
}

// --- Instructions ---

static pestle_status_t find_op(parse_t* p, uint16_t* out_op) {
  pestle_str_t name = pestle_lex_word(&p->s);
  for (unsigned op = 1; op < PESTLE_KIR_OP_LIMIT; ++op) {
    const char* mnemonic = pestle_kir_info(op).mnemonic;
    if (!mnemonic || !pestle_str_equal_c(name, mnemonic)) continue;
    *out_op = (uint16_t)op;
    return NULL;
  }
  return pestle_lex_error(&p->s, "no op '%.*s'", PESTLE_STR_ARG(name));
}

// What may follow an instruction: facts, alignment, a name.
static pestle_status_t parse_suffix(parse_t* p, pestle_kir_inst_t* inst) {
  for (;;) {
    size_t start = p->s.at;
    int64_t value;
    pestle_str_t text = pestle_lex_word(&p->s);
    unsigned bit = 0;
    while (bit < 8 && !pestle_str_equal_c(text, pestle_kir_fact_name(bit))) {
      ++bit;
    }
    if (bit < 8) {
      inst->facts |= (uint8_t)(1u << bit);
    } else if (pestle_str_equal_c(text, "align")) {
      PESTLE_TRY(pestle_lex_int(&p->s, 1, INT64_C(1) << 62, &value));
      inst->align_log2 = (uint8_t)pestle_log2_floor((uint64_t)value);
    } else if (pestle_str_equal_c(text, "name")) {
      uint32_t offset = intern(p, pestle_lex_word(&p->s), true);
      inst->name = offset <= UINT16_MAX ? (uint16_t)offset : 0;
    } else {
      // The next instruction, which has no label.
      p->s.at = start;
      return NULL;
    }
  }
}

static pestle_status_t add_label(parse_t* p, uint64_t number,
                                 pestle_kir_id_t id) {
  label_t label = {number, id};
  return pestle_vec_push(&p->labels, label) ? NULL : PESTLE_OOM();
}

// A constant's number is read before its type is known.
static void settle_const(pestle_kir_inst_t* inst, uint64_t bits, bool is_float,
                         bool is_hex) {
  bool wants = pestle_dtype_is((pestle_dtype_t)inst->type, PESTLE_KIND_FLOAT);
  if (wants && !is_float && !is_hex) {
    double value = (double)(int64_t)bits;
    memcpy(&bits, &value, sizeof bits);
  }
  inst->arg[0] = (uint32_t)bits;
  inst->arg[1] = (uint32_t)(bits >> 32);
}

static pestle_status_t parse_typed(parse_t* p, pestle_kir_inst_t* inst) {
  uint64_t bits = 0;
  bool is_float = false, is_hex = false;
  if (inst->op == PESTLE_KIR_CONST) {
    pestle_lex_skip(&p->s);
    is_hex = p->s.at + 1 < p->s.size && p->s.text[p->s.at + 1] == 'x';
    PESTLE_TRY(parse_const(p, &bits, &is_float));
  } else {
    PESTLE_TRY(parse_operands(p, inst));
  }
  if (pestle_lex_accept(&p->s, ':')) {
    unsigned type, lanes;
    PESTLE_TRY(parse_type(p, &type, &lanes));
    inst->type = (uint8_t)type;
    inst->lanes = (uint8_t)lanes;
  }
  if (inst->op == PESTLE_KIR_CONST) settle_const(inst, bits, is_float, is_hex);
  return parse_suffix(p, inst);
}

static pestle_status_t parse_inst(parse_t* p) {
  pestle_kir_inst_t inst = {.type = PESTLE_NONE, .lanes = 1};
  uint64_t number = 0;
  pestle_lex_skip(&p->s);
  bool labelled = pestle_lex_peek(&p->s) == '%';
  if (labelled) {
    PESTLE_TRY(parse_label(p, &number));
    PESTLE_TRY(pestle_lex_expect(&p->s, '='));
  }
  PESTLE_TRY(find_op(p, &inst.op));
  if (inst.op == PESTLE_KIR_END || inst.op == PESTLE_KIR_ELSE) {
    return pestle_lex_error(&p->s, "written as braces");
  }
  PESTLE_TRY(parse_typed(p, &inst));
  if (labelled != (inst.type != PESTLE_NONE)) {
    return pestle_lex_error(
        &p->s, labelled ? "expected ': type'" : "expected '%%N ='");
  }
  pestle_kir_id_t id = pestle_kir_put(p->k, inst);
  if (labelled) PESTLE_TRY(add_label(p, number, id));
  if (inst.op != PESTLE_KIR_FOR && inst.op != PESTLE_KIR_IF) return NULL;
  ++p->depth;
  return pestle_lex_expect(&p->s, '{');
}

static pestle_status_t parse_body(parse_t* p) {
  for (;;) {
    if (p->k->failed) return PESTLE_OOM();
    if (!pestle_lex_accept(&p->s, '}')) {
      if (p->s.at >= p->s.size) return pestle_lex_error(&p->s, "expected '}'");
      PESTLE_TRY(parse_inst(p));
    } else if (p->depth == 0) {
      return NULL;
    } else if (pestle_lex_accept_word(&p->s, "else")) {
      PESTLE_TRY(pestle_lex_expect(&p->s, '{'));
      pestle_kir_else(p->k);
    } else {
      pestle_kir_end(p->k);
      --p->depth;
    }
  }
}

// --- The kernel ---

// Comment lines at the very start are the note.
static void parse_note(parse_t* p, pestle_strbuf_t* note) {
  bool first = true;
  while (pestle_lex_at_comment(&p->s)) {
    p->s.at += 2;
    if (p->s.at < p->s.size && p->s.text[p->s.at] == ' ') ++p->s.at;
    size_t start = p->s.at;
    while (p->s.at < p->s.size && p->s.text[p->s.at] != '\n')
      ++p->s.at;
    if (!first) pestle_strbuf_append_char(note, '\n');
    pestle_strbuf_append_bytes(note, p->s.text + start, p->s.at - start);
    first = false;
    if (p->s.at < p->s.size) ++p->s.at;
  }
}

static pestle_status_t parse_kernel(parse_t* p) {
  pestle_str_t name;
  pestle_strbuf_t note;
  pestle_strbuf_init(p->k->allocator, &note);
  parse_note(p, &note);
  pestle_str_t text = pestle_strbuf_view(&note);
  p->k->note = text.size ? intern(p, text, false) : 0;
  bool failed = note.failed;
  pestle_strbuf_deinit(&note);
  if (failed || p->k->failed) return PESTLE_OOM();
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "kernel"));
  PESTLE_TRY(parse_name(p, '@', &name));
  p->k->name = intern(p, name, true);
  PESTLE_TRY(pestle_lex_expect(&p->s, '('));
  while (!pestle_lex_accept(&p->s, ')')) {
    if (p->k->buffer.size) PESTLE_TRY(pestle_lex_expect(&p->s, ','));
    PESTLE_TRY(parse_buffer(p));
  }
  PESTLE_TRY(pestle_lex_expect(&p->s, '{'));
  PESTLE_TRY(parse_body(p));
  pestle_lex_skip(&p->s);
  if (p->s.at < p->s.size)
    return pestle_lex_error(&p->s, "text after the kernel");
  return pestle_kir_seal(p->k);
}

pestle_status_t pestle_kir_parse(pestle_allocator_t allocator, const char* text,
                                 size_t size, const char* file,
                                 pestle_kir_builder_t* out_builder) {
  parse_t p = {.s = {.file = file ? file : "kernel",
                     .text = text,
                     .size = size,
                     .dots = true,
                     .allocator = allocator},
               .k = out_builder};
  pestle_kir_init(allocator, "", NULL, out_builder);
  pestle_vec_init(&p.labels, allocator);
  pestle_status_t status =
      out_builder->failed ? PESTLE_OOM() : parse_kernel(&p);
  pestle_vec_deinit(&p.labels);
  // A name that could not be kept is not the text's fault.
  if (status && out_builder->failed) {
    pestle_status_release(status);
    status = PESTLE_OOM();
  }
  if (status) pestle_kir_deinit(out_builder);
  return status;
}
