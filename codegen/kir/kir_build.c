// SPDX-License-Identifier: Apache-2.0
// The builder of flat kernels. Index arithmetic comes out in one form: a chain
// of madi, each variable once, its constant outermost,
//
//   madi(madi(v2, i2, madi(v1, i1, 0)), 1, K)
//
// so that equal addresses are equal instructions, and addresses that differ by
// a constant share all but the last.
#include "codegen/kir/kir_build.h"

#include "base/bits.h"
#include "codegen/kir/kir_internal.h"

// What inst.data points to when not even the first allocation succeeded, so
// that ids stay readable; never written, since |failed| is set.
static const pestle_kir_inst_t no_inst = {
    .op = PESTLE_KIR_CONST, .type = PESTLE_INDEX, .lanes = 1};
// The same for buffer.data: a buffer that could not be added has the id 0.
static const pestle_kir_buffer_t no_buffer = {.dtype = PESTLE_F32, .lanes = 1};

void pestle_kir_init(pestle_allocator_t allocator, const char* name,
                     const char* note, pestle_kir_builder_t* out_builder) {
  pestle_kir_builder_t* k = out_builder;
  memset(k, 0, sizeof *k);
  k->allocator = allocator;
  pestle_vec_init(&k->inst, allocator);
  pestle_vec_init(&k->buffer, allocator);
  pestle_vec_init(&k->table, allocator);
  pestle_vec_init(&k->word, allocator);
  pestle_strbuf_init(allocator, &k->strings);
  pestle_strbuf_append_char(&k->strings, '\0');
  if (!pestle_vec_reserve(&k->inst, 64)) {
    k->failed = true;
    k->inst.data = (pestle_kir_inst_t*)(uintptr_t)&no_inst;
  } else {
    k->inst.data[0] = no_inst;
  }
  if (!pestle_vec_reserve(&k->buffer, 8)) {
    k->failed = true;
    k->buffer.data = (pestle_kir_buffer_t*)(uintptr_t)&no_buffer;
  } else {
    k->buffer.data[0] = no_buffer;
  }
  k->name = pestle_kir_intern(k, name, true);
  k->note = pestle_kir_intern(k, note ? note : "", false);
}

void pestle_kir_deinit(pestle_kir_builder_t* k) {
  if (!k->inst.capacity) k->inst.data = NULL;
  if (!k->buffer.capacity) k->buffer.data = NULL;
  pestle_vec_deinit(&k->inst);
  pestle_vec_deinit(&k->buffer);
  pestle_vec_deinit(&k->table);
  pestle_vec_deinit(&k->word);
  pestle_strbuf_deinit(&k->strings);
}

static bool is_identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

uint32_t pestle_kir_intern(pestle_kir_builder_t* k, const char* text,
                           bool identifier) {
  size_t size = text ? strlen(text) : 0;
  if (k->strings.failed) k->failed = true;
  if (!size || k->failed) return 0;
  size_t start = k->strings.size;
  if (identifier && text[0] >= '0' && text[0] <= '9') {
    pestle_strbuf_append_char(&k->strings, '_');
  }
  pestle_strbuf_append_bytes(&k->strings, text, size);
  pestle_strbuf_append_char(&k->strings, '\0');
  if (k->strings.failed) {
    k->failed = true;
    return 0;
  }
  char* added = k->strings.data + start;
  for (char* at = added; identifier && *at; ++at) {
    if (!is_identifier_char(*at)) *at = '_';
  }
  for (size_t at = 1; at < start; at += strlen(k->strings.data + at) + 1) {
    if (!strcmp(k->strings.data + at, added)) {
      k->strings.size = start;
      return (uint32_t)at;
    }
  }
  return (uint32_t)start;
}

// Buffers are named in the text, so two may not have one name.
static uint32_t unique_buffer_name(pestle_kir_builder_t* k, const char* name) {
  uint32_t offset = pestle_kir_intern(k, name && *name ? name : "b", true);
  char base[64];
  size_t size = strlen(pestle_kir_text(k, offset));
  if (size > 48) size = 48;
  memcpy(base, pestle_kir_text(k, offset), size);
  base[size] = '\0';
  for (unsigned tries = 1; tries <= k->buffer.size; ++tries) {
    bool taken = false;
    for (size_t i = 0; i < k->buffer.size; ++i) {
      taken = taken || k->buffer.data[i].name == offset;
    }
    if (!taken) break;
    char digits[16];
    unsigned count = 0;
    for (unsigned rest = tries + 1; rest; rest /= 10) {
      digits[count++] = (char)('0' + rest % 10);
    }
    char* at = base + size;
    *at++ = '_';
    while (count)
      *at++ = digits[--count];
    *at = '\0';
    offset = pestle_kir_intern(k, base, true);
  }
  return offset;
}

uint32_t pestle_kir_add_buffer(pestle_kir_builder_t* k, const char* name,
                               pestle_kir_scope_t scope, pestle_dtype_t dtype,
                               unsigned lanes, int64_t count, unsigned flags) {
  uint32_t slot = 0;
  for (size_t i = 0; i < k->buffer.size; ++i) {
    slot += k->buffer.data[i].scope == PESTLE_KIR_GLOBAL;
  }
  uint32_t id = (uint32_t)k->buffer.size;
  pestle_kir_buffer_t buffer = {
      .name = unique_buffer_name(k, name),
      .dtype = (uint8_t)dtype,
      .lanes = (uint8_t)(scope == PESTLE_KIR_PRIVATE ? lanes : 1),
      .scope = (uint8_t)scope,
      .flags = (uint8_t)flags,
      .count = (uint64_t)count,
      .align = 64,
      .arg_slot = scope == PESTLE_KIR_GLOBAL ? slot : 0,
      .alias_set = (uint16_t)id};
  if (k->failed || !pestle_vec_push(&k->buffer, buffer)) {
    k->failed = true;
    return 0;
  }
  return id;
}

pestle_kir_id_t pestle_kir_put(pestle_kir_builder_t* k,
                               pestle_kir_inst_t inst) {
  if (k->failed || k->inst.size >= PESTLE_KIR_NONE - 1 ||
      !pestle_vec_push(&k->inst, inst)) {
    k->failed = true;
    return 0;
  }
  return (pestle_kir_id_t)(k->inst.size - 1);
}

static bool is_float(pestle_dtype_t type) {
  return pestle_dtype_is(type, PESTLE_KIND_FLOAT);
}

static pestle_kir_inst_t make(unsigned op, pestle_dtype_t type, unsigned lanes,
                              uint32_t a, uint32_t b) {
  return (pestle_kir_inst_t){.op = (uint16_t)op,
                             .type = (uint8_t)type,
                             .lanes = (uint8_t)lanes,
                             .arg = {a, b}};
}

void pestle_kir_act(pestle_kir_builder_t* k, pestle_kir_op_t op, uint32_t a,
                    uint32_t b, uint32_t c, uint32_t d) {
  pestle_kir_inst_t inst = make(op, PESTLE_NONE, 1, a, b);
  inst.arg[2] = c;
  inst.arg[3] = d;
  pestle_kir_put(k, inst);
}

// --- Constants ---

static pestle_kir_id_t put_bits(pestle_kir_builder_t* k, pestle_dtype_t type,
                                unsigned lanes, uint64_t bits) {
  return pestle_kir_put(k, make(PESTLE_KIR_CONST, type, lanes, (uint32_t)bits,
                                (uint32_t)(bits >> 32)));
}

pestle_kir_id_t pestle_kir_int(pestle_kir_builder_t* k, pestle_dtype_t type,
                               unsigned lanes, int64_t value) {
  return put_bits(k, type, lanes, (uint64_t)pestle_kir_wrap_int(type, value));
}

pestle_kir_id_t pestle_kir_index(pestle_kir_builder_t* k, int64_t value) {
  return put_bits(k, PESTLE_INDEX, 1, (uint64_t)value);
}

pestle_kir_id_t pestle_kir_float(pestle_kir_builder_t* k, pestle_dtype_t type,
                                 unsigned lanes, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return put_bits(k, type, lanes, bits);
}

pestle_kir_id_t pestle_kir_const(pestle_kir_builder_t* k, pestle_dtype_t type,
                                 unsigned lanes, double f, int64_t i) {
  return is_float(type) ? pestle_kir_float(k, type, lanes, f)
                        : pestle_kir_int(k, type, lanes, i);
}

bool pestle_kir_is_int(const pestle_kir_builder_t* k, pestle_kir_id_t id,
                       int64_t* out_value) {
  if (id >= k->inst.size) return false;
  const pestle_kir_inst_t* inst = &k->inst.data[id];
  if (inst->op != PESTLE_KIR_CONST) return false;
  if (is_float((pestle_dtype_t)inst->type)) return false;
  *out_value = pestle_kir_const_int(inst);
  return true;
}

// --- Structure ---

pestle_kir_id_t pestle_kir_for(pestle_kir_builder_t* k, const char* name,
                               pestle_kir_id_t lo, pestle_kir_id_t hi,
                               int32_t step, pestle_kir_axis_t axis) {
  pestle_kir_inst_t inst = make(PESTLE_KIR_FOR, PESTLE_INDEX, 1, lo, hi);
  inst.arg[2] = (uint32_t)step;
  inst.arg[3] = (uint32_t)axis;
  uint32_t offset = pestle_kir_intern(k, name, true);
  inst.name = offset <= UINT16_MAX ? (uint16_t)offset : 0;
  return pestle_kir_put(k, inst);
}

pestle_kir_id_t pestle_kir_repeat(pestle_kir_builder_t* k, const char* name,
                                  int64_t count) {
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  if (count == 1) return zero;
  return pestle_kir_for(k, name, zero, pestle_kir_index(k, count), 1,
                        PESTLE_KIR_SERIAL);
}

void pestle_kir_end_repeat(pestle_kir_builder_t* k, int64_t count) {
  if (count != 1) pestle_kir_end(k);
}

pestle_kir_id_t pestle_kir_unroll(pestle_kir_builder_t* k, const char* name,
                                  int64_t count) {
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t end = pestle_kir_index(k, count);
  return pestle_kir_for(k, name, zero, end, 1, PESTLE_KIR_UNROLL);
}

void pestle_kir_if(pestle_kir_builder_t* k, pestle_kir_id_t condition) {
  pestle_kir_put(k, make(PESTLE_KIR_IF, PESTLE_NONE, 1, condition, 0));
}
void pestle_kir_else(pestle_kir_builder_t* k) {
  pestle_kir_put(k, make(PESTLE_KIR_ELSE, PESTLE_NONE, 1, 0, 0));
}
void pestle_kir_end(pestle_kir_builder_t* k) {
  pestle_kir_put(k, make(PESTLE_KIR_END, PESTLE_NONE, 1, 0, 0));
}
void pestle_kir_alloc(pestle_kir_builder_t* k, uint32_t buffer) {
  pestle_kir_put(k, make(PESTLE_KIR_ALLOC, PESTLE_NONE, 1, buffer, 0));
}

// --- Index arithmetic ---

static pestle_kir_id_t put_madi(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                int64_t imm, pestle_kir_id_t c) {
  if (imm != (int32_t)imm) {
    pestle_kir_inst_t product =
        make(pestle_kir_code(PESTLE_OP_MULTIPLY), PESTLE_INDEX, 1, a,
             pestle_kir_index(k, imm));
    a = pestle_kir_put(k, product);
    imm = 1;
  }
  int64_t rest;
  if (imm == 1 && pestle_kir_is_int(k, c, &rest) && rest == 0) return a;
  pestle_kir_inst_t inst =
      make(PESTLE_KIR_MADI, PESTLE_INDEX, 1, a, (uint32_t)(int32_t)imm);
  inst.arg[2] = c;
  return pestle_kir_put(k, inst);
}

// Whether |id| is madi(x, imm, K): x and imm, and the constant K.
static bool is_offset(const pestle_kir_builder_t* k, pestle_kir_id_t id,
                      pestle_kir_id_t* out_x, int64_t* out_imm,
                      int64_t* out_offset) {
  const pestle_kir_inst_t* inst = &k->inst.data[id];
  if (inst->op != PESTLE_KIR_MADI) return false;
  if (!pestle_kir_is_int(k, inst->arg[2], out_offset)) return false;
  *out_x = inst->arg[0];
  *out_imm = (int32_t)inst->arg[1];
  return true;
}

// x + offset, the constant outermost.
static pestle_kir_id_t add_constant(pestle_kir_builder_t* k, pestle_kir_id_t x,
                                    int64_t offset) {
  int64_t value, imm, inner;
  pestle_kir_id_t base;
  if (pestle_kir_is_int(k, x, &value) &&
      !__builtin_add_overflow(value, offset, &value)) {
    return pestle_kir_index(k, value);
  }
  if (offset == 0) return x;
  if (is_offset(k, x, &base, &imm, &inner) &&
      !__builtin_add_overflow(inner, offset, &inner)) {
    return put_madi(k, base, imm, pestle_kir_index(k, inner));
  }
  return put_madi(k, x, 1, pestle_kir_index(k, offset));
}

pestle_kir_id_t pestle_kir_madi(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                int64_t imm, pestle_kir_id_t c) {
  int64_t value, inner_imm, inner, product, offset;
  pestle_kir_id_t x;
  if (c == PESTLE_KIR_NONE) c = pestle_kir_index(k, 0);
  if (k->failed || imm == 0) return c;
  if (pestle_kir_is_int(k, a, &value) &&
      !__builtin_mul_overflow(value, imm, &product)) {
    return add_constant(k, c, product);
  }
  if (pestle_kir_is_int(k, c, &value) && imm == 1) {
    return add_constant(k, a, value);
  }
  // Constants go outermost: (x*i + K)*imm + c = (x*(i*imm) + c) + K*imm, which
  // costs nothing, and distributes where the first factor stays small.
  if (is_offset(k, a, &x, &inner_imm, &inner) &&
      !__builtin_mul_overflow(inner_imm, imm, &product) &&
      product == (int32_t)product &&
      !__builtin_mul_overflow(inner, imm, &offset)) {
    return add_constant(k, pestle_kir_madi(k, x, product, c), offset);
  }
  const pestle_kir_inst_t rest = k->inst.data[c];
  if (is_offset(k, c, &x, &inner_imm, &inner) && inner != 0) {
    pestle_kir_id_t bare = pestle_kir_madi(k, x, inner_imm, PESTLE_KIR_NONE);
    return add_constant(k, pestle_kir_madi(k, a, imm, bare), inner);
  }
  if (c == a && imm < INT32_MAX) {
    return pestle_kir_madi(k, a, imm + 1, PESTLE_KIR_NONE);
  }
  if (rest.op == PESTLE_KIR_MADI && rest.arg[0] == a &&
      !__builtin_add_overflow((int64_t)(int32_t)rest.arg[1], imm, &product) &&
      product == (int32_t)product) {
    return pestle_kir_madi(k, a, product, rest.arg[2]);
  }
  return put_madi(k, a, imm, c);
}

// --- Memory ---

static unsigned access_align(const pestle_kir_builder_t* k, uint32_t buffer,
                             unsigned align) {
  if (buffer >= k->buffer.size) return 0;
  unsigned size =
      pestle_dtype_size((pestle_dtype_t)k->buffer.data[buffer].dtype);
  if (align < size) align = size;
  return align ? pestle_log2_floor(align) : 0;
}

// A mask that is on in all lanes is no mask.
static pestle_kir_id_t real_mask(const pestle_kir_builder_t* k,
                                 pestle_kir_id_t mask) {
  int64_t value;
  if (mask == PESTLE_KIR_NONE) return mask;
  return pestle_kir_is_int(k, mask, &value) && value ? PESTLE_KIR_NONE : mask;
}

static pestle_dtype_t buffer_type(const pestle_kir_builder_t* k,
                                  uint32_t buffer) {
  if (buffer >= k->buffer.size) return PESTLE_F32;
  return (pestle_dtype_t)k->buffer.data[buffer].dtype;
}

pestle_kir_id_t pestle_kir_load(pestle_kir_builder_t* k, uint32_t buffer,
                                unsigned lanes, pestle_kir_id_t index,
                                pestle_kir_id_t mask, unsigned align) {
  pestle_kir_inst_t inst =
      make(PESTLE_KIR_LOAD, buffer_type(k, buffer), lanes, buffer, index);
  inst.arg[2] = real_mask(k, mask);
  inst.align_log2 = (uint8_t)access_align(k, buffer, align);
  return pestle_kir_put(k, inst);
}

void pestle_kir_store(pestle_kir_builder_t* k, uint32_t buffer,
                      pestle_kir_id_t index, pestle_kir_id_t value,
                      pestle_kir_id_t mask, unsigned align) {
  pestle_kir_inst_t inst = make(PESTLE_KIR_STORE, PESTLE_NONE,
                                pestle_kir_lanes_of(k, value), buffer, index);
  inst.arg[2] = value;
  inst.arg[3] = real_mask(k, mask);
  inst.align_log2 = (uint8_t)access_align(k, buffer, align);
  pestle_kir_put(k, inst);
}

pestle_kir_id_t pestle_kir_gather(pestle_kir_builder_t* k, uint32_t buffer,
                                  pestle_kir_id_t indices,
                                  pestle_kir_id_t mask) {
  pestle_kir_inst_t inst =
      make(PESTLE_KIR_GATHER, buffer_type(k, buffer),
           pestle_kir_lanes_of(k, indices), buffer, indices);
  inst.arg[2] = real_mask(k, mask);
  inst.align_log2 = (uint8_t)access_align(k, buffer, 0);
  return pestle_kir_put(k, inst);
}

// --- Lanes and types ---

// The table that holds |lanes|; equal ones are kept once.
static uint32_t table_of(pestle_kir_builder_t* k, const uint32_t* lanes,
                         unsigned count) {
  for (uint32_t t = 0; t < k->table.size; ++t) {
    if (k->table.data[t].count == count &&
        !memcmp(&k->word.data[k->table.data[t].first], lanes,
                count * sizeof(*lanes))) {
      return t;
    }
  }
  pestle_kir_table_t table = {(uint32_t)k->word.size, count};
  for (unsigned i = 0; i < count; ++i) {
    if (!pestle_vec_push(&k->word, lanes[i])) k->failed = true;
  }
  if (!pestle_vec_push(&k->table, table)) k->failed = true;
  return (uint32_t)k->table.size - 1;
}

pestle_kir_id_t pestle_kir_shuffle(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                   pestle_kir_id_t b, const uint32_t* lanes,
                                   unsigned count) {
  if (k->failed) return 0;
  pestle_kir_inst_t inst = {.op = PESTLE_KIR_SHUFFLE,
                            .type = (uint8_t)pestle_kir_type_of(k, a),
                            .lanes = (uint8_t)count,
                            .arg = {a, b, table_of(k, lanes, count)}};
  return pestle_kir_put(k, inst);
}

pestle_kir_id_t pestle_kir_splat(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                 unsigned lanes) {
  if (pestle_kir_lanes_of(k, a) == lanes) return a;
  pestle_kir_inst_t inst = k->inst.data[a];
  if (inst.op == PESTLE_KIR_CONST) {
    inst.lanes = (uint8_t)lanes;
    return pestle_kir_put(k, inst);
  }
  return pestle_kir_put(
      k, make(PESTLE_KIR_SPLAT, (pestle_dtype_t)inst.type, lanes, a, 0));
}

pestle_kir_id_t pestle_kir_extract(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                   uint32_t lane) {
  if (pestle_kir_lanes_of(k, a) == 1) return a;
  return pestle_kir_put(
      k, make(PESTLE_KIR_EXTRACT, pestle_kir_type_of(k, a), 1, a, lane));
}

pestle_kir_id_t pestle_kir_pair(pestle_kir_builder_t* k, pestle_kir_id_t low,
                                pestle_kir_id_t high) {
  pestle_kir_inst_t inst = make(PESTLE_KIR_INSERT, pestle_kir_type_of(k, low),
                                2, pestle_kir_splat(k, low, 2), high);
  inst.arg[2] = 1;
  return pestle_kir_put(k, inst);
}

pestle_kir_id_t pestle_kir_pack(pestle_kir_builder_t* k, pestle_kir_id_t a) {
  static const uint32_t even[2] = {0, 2}, odd[2] = {1, 3};
  pestle_kir_id_t bits = pestle_kir_bitcast(k, a, PESTLE_U16);
  bits = pestle_kir_cast(k, bits, PESTLE_U32);
  pestle_kir_id_t high = pestle_kir_shuffle(k, bits, bits, odd, 2);
  high =
      pestle_kir_scalar(k, PESTLE_OP_SHIFT_LEFT, high,
                        pestle_kir_int(k, PESTLE_U32, 2, 16), PESTLE_KIR_NONE);
  return pestle_kir_scalar(k, PESTLE_OP_OR,
                           pestle_kir_shuffle(k, bits, bits, even, 2), high,
                           PESTLE_KIR_NONE);
}

pestle_kir_id_t pestle_kir_mask(pestle_kir_builder_t* k, pestle_kir_id_t index,
                                pestle_kir_id_t limit, unsigned lanes) {
  int64_t at, end;
  if (pestle_kir_is_int(k, index, &at) && pestle_kir_is_int(k, limit, &end)) {
    if (at <= INT64_MAX - (int64_t)lanes && at + (int64_t)lanes <= end) {
      return pestle_kir_int(k, PESTLE_I1, lanes, 1);
    }
    if (at >= end) return pestle_kir_int(k, PESTLE_I1, lanes, 0);
  }
  return pestle_kir_put(k,
                        make(PESTLE_KIR_MASK, PESTLE_I1, lanes, index, limit));
}

pestle_kir_id_t pestle_kir_iota(pestle_kir_builder_t* k, pestle_dtype_t type,
                                unsigned lanes) {
  if (lanes == 1) return pestle_kir_int(k, type, 1, 0);
  return pestle_kir_put(k, make(PESTLE_KIR_IOTA, type, lanes, 0, 0));
}

pestle_kir_id_t pestle_kir_reduce(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                  pestle_op_t op) {
  if (pestle_kir_lanes_of(k, a) == 1) return a;
  pestle_dtype_t type = pestle_kir_type_of(k, a);
  pestle_kir_inst_t inst = make(PESTLE_KIR_REDUCE, type, 1, a, (uint32_t)op);
  if (is_float(type)) inst.facts = k->facts;
  return pestle_kir_put(k, inst);
}

pestle_kir_id_t pestle_kir_sg_reduce(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                     pestle_op_t op, unsigned width) {
  if (width <= 1) return a;
  pestle_dtype_t type = pestle_kir_type_of(k, a);
  pestle_kir_inst_t inst = make(PESTLE_KIR_SG_REDUCE, type,
                                pestle_kir_lanes_of(k, a), a, (uint32_t)op);
  inst.arg[2] = width;
  if (is_float(type)) inst.facts = k->facts;
  return pestle_kir_put(k, inst);
}

void pestle_kir_barrier(pestle_kir_builder_t* k) {
  pestle_kir_put(k, make(PESTLE_KIR_BARRIER, PESTLE_NONE, 1, 0, 0));
}

pestle_kir_id_t pestle_kir_cast(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                pestle_dtype_t type) {
  pestle_dtype_t from = pestle_kir_type_of(k, a);
  unsigned lanes = pestle_kir_lanes_of(k, a);
  int64_t value;
  if (from == type) return a;
  if (pestle_kir_is_int(k, a, &value)) {
    if (type == PESTLE_I1) return pestle_kir_int(k, type, lanes, value != 0);
    if (!is_float(type)) return pestle_kir_int(k, type, lanes, value);
    // Small ones are exact in every float type that has 11 bits or more.
    if (value >= -2048 && value <= 2048 &&
        (type == PESTLE_F64 || type == PESTLE_F32 || type == PESTLE_F16)) {
      return pestle_kir_float(k, type, lanes, (double)value);
    }
  }
  return pestle_kir_put(k, make(PESTLE_KIR_CAST, type, lanes, a, 0));
}

pestle_kir_id_t pestle_kir_bitcast(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                   pestle_dtype_t type) {
  pestle_dtype_t from = pestle_kir_type_of(k, a);
  int64_t value;
  if (from == type) return a;
  if (!is_float(type) && pestle_kir_is_int(k, a, &value)) {
    return pestle_kir_int(k, type, pestle_kir_lanes_of(k, a), value);
  }
  return pestle_kir_put(
      k, make(PESTLE_KIR_BITCAST, type, pestle_kir_lanes_of(k, a), a, 0));
}

// --- Short dot products ---

pestle_kir_id_t pestle_kir_load_words(pestle_kir_builder_t* k, uint32_t buffer,
                                      unsigned lanes, pestle_kir_id_t index) {
  return pestle_kir_put(
      k, make(PESTLE_KIR_LOAD_WORDS, PESTLE_I32, lanes, buffer, index));
}

pestle_kir_id_t pestle_kir_dot(pestle_kir_builder_t* k, pestle_kir_id_t a,
                               pestle_kir_id_t b, pestle_kir_id_t sum,
                               unsigned kinds) {
  pestle_dtype_t type = pestle_kir_type_of(k, sum);
  pestle_kir_inst_t inst =
      make(type == PESTLE_F32 ? PESTLE_KIR_DOT2 : PESTLE_KIR_DOT4, type,
           pestle_kir_lanes_of(k, sum), a, b);
  inst.arg[2] = sum;
  if (type != PESTLE_F32) inst.arg[3] = kinds;
  return pestle_kir_put(k, inst);
}

pestle_kir_id_t pestle_kir_scale(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                 pestle_kir_id_t b) {
  return pestle_kir_put(k, make(PESTLE_KIR_SCALE, pestle_kir_type_of(k, a),
                                pestle_kir_lanes_of(k, a), a, b));
}
