// SPDX-License-Identifier: Apache-2.0
// Checks that a run of a kernel stays within its frame, whoever wrote the
// artifact: operands are earlier values of the right type and lanes, regions
// close. Indices are checked against their buffers when they are used.
#include "plugins/ref/ref_internal.h"
#include "plugins/ref/ref_tile.h"

typedef struct check_t {
  const pestle_host_t* host;
  const pestle_kir_t* k;
  uint32_t id;
} check_t;

pestle_kir_op_info_t pestle_ref_plugin_op_info(unsigned op) {
  return pestle_kir_op_info(op);
}

static const pestle_kir_inst_t* inst_of(const check_t* c, uint32_t id) {
  return pestle_kir_inst(c->k, id);
}

static pestle_status_t bad(const check_t* c, const char* what) {
  const char* name = pestle_ref_plugin_op_info(inst_of(c, c->id)->op).mnemonic;
  return REF_ERROR(c->host, MALFORMED, "ref: instruction %u (%s): %s", c->id,
                   name ? name : "?", what);
}

static bool kind_is(unsigned type, unsigned kinds) {
  return pestle_dtype_is((pestle_dtype_t)type, kinds);
}

enum {
  INTEGERS = PESTLE_KIND_INT | PESTLE_KIND_BOOL,
  NUMBERS = PESTLE_KIND_REAL | PESTLE_KIND_BOOL,
  MAX_LANES = 1024,  // of a group: of every GPU
  // Of one that is spread over execution units by its index along z.
  MAX_WIDE_LANES = MAX_LANES * PESTLE_WIDE_GROUP,
  ANY_LANES = 0,
};

static pestle_status_t operand(const check_t* c, int a, unsigned type,
                               unsigned lanes) {
  const pestle_kir_inst_t* from = inst_of(c, inst_of(c, c->id)->arg[a]);
  if (from->type != type) return bad(c, "an operand has the wrong type");
  if (lanes && from->lanes != lanes) {
    return bad(c, "an operand has the wrong lanes");
  }
  return NULL;
}

static pestle_status_t check_arguments(const check_t* c, const char* letters) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  for (int a = 0; letters[a]; ++a) {
    uint32_t arg = inst->arg[a];
    if (letters[a] == 'b' && arg >= c->k->buffer_count) {
      return bad(c, "no such buffer");
    }
    if (letters[a] == 'o' && arg == PESTLE_KIR_NONE) continue;
    if (letters[a] != 'v' && letters[a] != 'o') continue;
    if (arg >= c->id || inst_of(c, arg)->type == PESTLE_NONE) {
      return bad(c, "an operand is no earlier value");
    }
  }
  return NULL;
}

// --- Rows ---

typedef struct scalar_row_t {
  uint8_t arity, rule, kinds;
} scalar_row_t;

static const scalar_row_t* scalar_row(unsigned row) {
  static const scalar_row_t rows[PESTLE_SCALAR_COUNT] = {
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, ...) \
  {n, PESTLE_RULE_##RULE, KINDS},
#include "pestle/scalar.def"
  };
  return &rows[row];
}

static pestle_status_t check_scalar(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  const scalar_row_t* row = scalar_row(inst->op - PESTLE_KIR_SCALAR_BASE);
  unsigned type = inst->type;
  int first = row->rule == PESTLE_RULE_SELECT;
  if (row->rule == PESTLE_RULE_COMPARE || row->rule == PESTLE_RULE_TEST) {
    if (type != PESTLE_I1) return bad(c, "the result must be i1");
    type = inst_of(c, inst->arg[0])->type;
  }
  if (!kind_is(type, row->kinds) || !kind_is(type, NUMBERS)) {
    return bad(c, "the row does not take that type");
  }
  if (first) PESTLE_TRY(operand(c, 0, PESTLE_I1, inst->lanes));
  for (int a = first; a < row->arity; ++a) {
    PESTLE_TRY(operand(c, a, type, inst->lanes));
  }
  return NULL;
}

static pestle_status_t check_reduce(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  unsigned lanes = inst_of(c, inst->arg[0])->lanes;
  if (inst->arg[1] >= (uint32_t)PESTLE_SCALAR_COUNT) return bad(c, "no row");
  const scalar_row_t* row = scalar_row(inst->arg[1]);
  if (row->rule != PESTLE_RULE_SAME || row->arity != 2 ||
      !kind_is(inst->type, row->kinds) || !kind_is(inst->type, NUMBERS)) {
    return bad(c, "the row does not reduce that type");
  }
  if (inst->lanes != 1 || lanes & (lanes - 1)) {
    return bad(c, "the lanes have no halves");
  }
  return operand(c, 0, inst->type, ANY_LANES);
}

static pestle_status_t check_sg_reduce(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  if (inst->arg[1] >= (uint32_t)PESTLE_SCALAR_COUNT) return bad(c, "no row");
  const scalar_row_t* row = scalar_row(inst->arg[1]);
  if (row->rule != PESTLE_RULE_SAME || row->arity != 2 ||
      !kind_is(inst->type, row->kinds) || !kind_is(inst->type, NUMBERS)) {
    return bad(c, "the row does not reduce that type");
  }
  uint32_t width = inst->arg[2], all = 1;
  for (int d = 0; d < 3; ++d)
    all *= c->k->lane[d];
  if (!width || width & (width - 1) || all % width) {
    return bad(c, "the lanes are no whole subgroups");
  }
  return operand(c, 0, inst->type, inst->lanes);
}

static pestle_status_t check_shuffle(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  const pestle_kir_t* k = c->k;
  PESTLE_TRY(operand(c, 0, inst->type, ANY_LANES));
  PESTLE_TRY(operand(c, 1, inst->type, ANY_LANES));
  uint32_t lanes = (uint32_t)inst_of(c, inst->arg[0])->lanes +
                   inst_of(c, inst->arg[1])->lanes;
  if (inst->arg[2] >= k->table_count) return bad(c, "no such table");
  pestle_kir_table_t table = k->table[inst->arg[2]];
  if (table.count != inst->lanes ||
      (uint64_t)table.first + table.count > k->table_word_count) {
    return bad(c, "the table does not fit");
  }
  for (uint32_t i = 0; i < table.count; ++i) {
    if (k->table_word[table.first + i] >= lanes) {
      return bad(c, "the table names no lane");
    }
  }
  return NULL;
}

static pestle_status_t check_cast(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  const pestle_kir_inst_t* from = inst_of(c, inst->arg[0]);
  if (from->lanes != inst->lanes || !kind_is(from->type, NUMBERS) ||
      !kind_is(inst->type, NUMBERS)) {
    return bad(c, "no such cast");
  }
  if (inst->op == PESTLE_KIR_BITCAST &&
      pestle_dtype_info((pestle_dtype_t)from->type)->bits !=
          pestle_dtype_info((pestle_dtype_t)inst->type)->bits) {
    return bad(c, "the types differ in bits");
  }
  return NULL;
}

static pestle_status_t check_lane(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  bool insert = inst->op == PESTLE_KIR_INSERT;
  unsigned lanes = inst_of(c, inst->arg[0])->lanes;
  PESTLE_TRY(operand(c, 0, inst->type, ANY_LANES));
  if (insert) PESTLE_TRY(operand(c, 1, inst->type, 1));
  if (inst->arg[insert ? 2 : 1] >= lanes ||
      inst->lanes != (insert ? lanes : 1)) {
    return bad(c, "no such lane");
  }
  return NULL;
}

static pestle_status_t check_access(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(c->k, inst->arg[0]);
  bool stores = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER;
  bool lanewise =
      inst->op == PESTLE_KIR_GATHER || inst->op == PESTLE_KIR_SCATTER;
  uint32_t mask = inst->arg[stores ? 3 : 2];
  const pestle_kir_inst_t* index = inst_of(c, inst->arg[1]);
  if (!kind_is(index->type, PESTLE_KIND_INT) ||
      index->lanes != (lanewise ? inst->lanes : 1)) {
    return bad(c, "the index has the wrong type");
  }
  if (mask != PESTLE_KIR_NONE) {
    PESTLE_TRY(operand(c, stores ? 3 : 2, PESTLE_I1, inst->lanes));
  }
  if (stores) PESTLE_TRY(operand(c, 2, buffer->dtype, inst->lanes));
  if (!stores && inst->type != buffer->dtype) {
    return bad(c, "the buffer has another type");
  }
  if (buffer->scope > PESTLE_KIR_PRIVATE) {
    return bad(c, "the buffer is a tensor map");
  }
  if (buffer->scope == PESTLE_KIR_PRIVATE &&
      (lanewise || mask != PESTLE_KIR_NONE || inst->lanes != buffer->lanes)) {
    return bad(c, "a private element is accessed whole");
  }
  return NULL;
}

static pestle_status_t check_for(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  PESTLE_TRY(operand(c, 0, PESTLE_INDEX, 1));
  PESTLE_TRY(operand(c, 1, PESTLE_INDEX, 1));
  if (inst->type != PESTLE_INDEX || inst->lanes != 1 ||
      (int32_t)inst->arg[2] <= 0 || inst->arg[3] > PESTLE_KIR_CLUSTER) {
    return bad(c, "no such loop");
  }
  const pestle_kir_inst_t* hi = inst_of(c, inst->arg[1]);
  bool lane =
      inst->arg[3] >= PESTLE_KIR_LANE_X && inst->arg[3] <= PESTLE_KIR_LANE_Z;
  if (inst->arg[3] == PESTLE_KIR_CLUSTER &&
      (hi->op != PESTLE_KIR_CONST ||
       pestle_kir_const_int(hi) != (int64_t)pestle_kir_cluster(c->k))) {
    return bad(c, "a cluster of another length than the kernel states");
  }
  if (lane && (hi->op != PESTLE_KIR_CONST ||
               pestle_kir_const_int(hi) !=
                   (int64_t)c->k->lane[inst->arg[3] - PESTLE_KIR_LANE_X])) {
    return bad(c, "a lane loop of another length than the kernel states");
  }
  return NULL;
}

static pestle_status_t check_mma(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  bool small = inst->arg[3] == PESTLE_KIR_MMA_F32_8X8;
  bool bytes =
      inst->arg[3] >= PESTLE_KIR_MMA_BYTES && inst->arg[3] < PESTLE_KIR_MMA_F8;
  pestle_dtype_t type = small ? PESTLE_F32 : PESTLE_U32;
  pestle_dtype_t sum = bytes ? PESTLE_I32 : PESTLE_F32;
  unsigned sums = small ? 2 : 4;
  if (inst->type != sum || inst->lanes != sums ||
      inst->arg[3] >= PESTLE_KIR_MMA_KINDS) {
    return bad(c, "no such product");
  }
  PESTLE_TRY(operand(c, 0, type, sums));
  PESTLE_TRY(operand(c, 1, type, 2));
  return operand(c, 2, sum, sums);
}

static pestle_status_t check_ldmatrix(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(c->k, inst->arg[0]);
  unsigned size = pestle_dtype_size((pestle_dtype_t)u->dtype);
  if (inst->type != PESTLE_U32 || inst->lanes > 4 || inst->arg[2] > 1 ||
      u->scope != PESTLE_KIR_SHARED ||
      (size != 2 && ((size != 1 && size != 4) || inst->arg[2]))) {
    return bad(c, "no such matrices");
  }
  return operand(c, 1, PESTLE_INDEX, 1);
}

static pestle_status_t check_copy(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  const pestle_kir_buffer_t* to = pestle_kir_buffer(c->k, inst->arg[0]);
  const pestle_kir_buffer_t* from = pestle_kir_buffer(c->k, inst->arg[2]);
  if (to->scope != PESTLE_KIR_SHARED || from->scope != PESTLE_KIR_GLOBAL ||
      to->dtype != from->dtype) {
    return bad(c, "no such copy");
  }
  PESTLE_TRY(operand(c, 1, PESTLE_INDEX, 1));
  return operand(c, 3, PESTLE_INDEX, 1);
}

static pestle_status_t check_atomic(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(c->k, inst->arg[0]);
  if (inst->type != PESTLE_I32 || inst->lanes != 1 || u->dtype != PESTLE_I32 ||
      u->scope > PESTLE_KIR_SHARED) {
    return bad(c, "no such sum");
  }
  PESTLE_TRY(operand(c, 1, PESTLE_INDEX, 1));
  return operand(c, 2, PESTLE_I32, 1);
}

static pestle_status_t check_dot(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  bool floats = inst->op == PESTLE_KIR_DOT2;
  if (inst->type != (floats ? PESTLE_F32 : PESTLE_I32) ||
      (!floats && inst->arg[3] > 3)) {
    return bad(c, "no such product");
  }
  PESTLE_TRY(operand(c, 0, PESTLE_I32, inst->lanes));
  PESTLE_TRY(operand(c, 1, PESTLE_I32, inst->lanes));
  return operand(c, 2, inst->type, inst->lanes);
}

static pestle_status_t check_load_words(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(c->k, inst->arg[0]);
  if (inst->type != PESTLE_I32 || u->scope > PESTLE_KIR_SHARED ||
      pestle_dtype_size((pestle_dtype_t)u->dtype) > 2) {
    return bad(c, "no such words");
  }
  return operand(c, 1, PESTLE_INDEX, 1);
}

static pestle_status_t check_scale(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  if (inst->type != PESTLE_F32) return bad(c, "not f32");
  PESTLE_TRY(operand(c, 0, PESTLE_F32, inst->lanes));
  return operand(c, 1, PESTLE_F32, inst->lanes);
}

static pestle_status_t check_mreg(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  uint32_t lanes = c->k->lane[0] * c->k->lane[1] * c->k->lane[2];
  if (lanes != 1) return bad(c, "the registers are those of one lane");
  if (inst->op == PESTLE_KIR_MREG_ZERO || inst->op == PESTLE_KIR_MREG_MMA) {
    int count = inst->op == PESTLE_KIR_MREG_ZERO ? 1 : 3;
    for (int a = 0; a < count; ++a) {
      if (inst->arg[a] >= PESTLE_KIR_MREGS) return bad(c, "no such register");
    }
    return count == 3 && inst->arg[3] >= 2 * PESTLE_KIR_MREG_BYTES
               ? bad(c, "no such product")
               : NULL;
  }
  const pestle_kir_buffer_t* u = pestle_kir_buffer(c->k, inst->arg[0]);
  if (u->scope > PESTLE_KIR_SHARED || inst->arg[3] >= PESTLE_KIR_MREGS ||
      (int32_t)inst->arg[2] <= 0) {
    return bad(c, "no such rows");
  }
  return operand(c, 1, PESTLE_INDEX, 1);
}

// Lanes of whole subgroups of 32.
static pestle_status_t check_subgroups(const check_t* c) {
  uint32_t all = c->k->lane[0] * c->k->lane[1] * c->k->lane[2];
  return all % 32 ? bad(c, "the lanes are no whole subgroups") : NULL;
}

static pestle_status_t check_row(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  if (inst->op >= PESTLE_KIR_SCALAR_BASE) return check_scalar(c);
  if (pestle_ref_plugin_is_tile(inst->op)) {
    const char* why = pestle_ref_plugin_tile_fault(c->k, c->id);
    return why ? bad(c, why) : NULL;
  }
  switch (inst->op) {
    case PESTLE_KIR_CONST:
      return kind_is(inst->type, NUMBERS) ? NULL : bad(c, "no such constant");
    case PESTLE_KIR_PARAM:
      if (inst->arg[0] >= c->k->param_count) return bad(c, "no such parameter");
      return kind_is(inst->type, INTEGERS) ? NULL : bad(c, "not an integer");
    case PESTLE_KIR_IOTA:
      return kind_is(inst->type, INTEGERS) ? NULL : bad(c, "not an integer");
    case PESTLE_KIR_MADI:
      PESTLE_TRY(operand(c, 0, PESTLE_INDEX, 1));
      PESTLE_TRY(operand(c, 2, PESTLE_INDEX, 1));
      if (inst->type == PESTLE_INDEX && inst->lanes == 1) return NULL;
      return bad(c, "not one index");
    case PESTLE_KIR_MASK:
      PESTLE_TRY(operand(c, 0, PESTLE_INDEX, 1));
      PESTLE_TRY(operand(c, 1, PESTLE_INDEX, 1));
      return inst->type == PESTLE_I1 ? NULL : bad(c, "not i1");
    case PESTLE_KIR_SPLAT:
      return operand(c, 0, inst->type, 1);
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_INSERT:
      return check_lane(c);
    case PESTLE_KIR_REDUCE:
      return check_reduce(c);
    case PESTLE_KIR_SG_REDUCE:
      return check_sg_reduce(c);
    case PESTLE_KIR_MMA:
      PESTLE_TRY(check_subgroups(c));
      return check_mma(c);
    case PESTLE_KIR_LDMATRIX:
      PESTLE_TRY(check_subgroups(c));
      return check_ldmatrix(c);
    case PESTLE_KIR_SG_BALLOT:
      PESTLE_TRY(check_subgroups(c));
      if (inst->type != PESTLE_U32 || inst->lanes != 1)
        return bad(c, "no such word");
      return operand(c, 0, PESTLE_I1, 1);
    case PESTLE_KIR_ATOMIC_ADD:
      return check_atomic(c);
    case PESTLE_KIR_COPY_ASYNC:
      return check_copy(c);
    case PESTLE_KIR_DOT2:
    case PESTLE_KIR_DOT4:
      return check_dot(c);
    case PESTLE_KIR_LOAD_WORDS:
      return check_load_words(c);
    case PESTLE_KIR_SCALE:
      return check_scale(c);
    case PESTLE_KIR_MREG_ZERO:
    case PESTLE_KIR_MREG_LOAD:
    case PESTLE_KIR_MREG_STREAM:
    case PESTLE_KIR_MREG_STORE:
    case PESTLE_KIR_MREG_MMA:
      return check_mreg(c);
    case PESTLE_KIR_CAST:
    case PESTLE_KIR_BITCAST:
      return check_cast(c);
    case PESTLE_KIR_SHUFFLE:
      return check_shuffle(c);
    case PESTLE_KIR_LOAD:
    case PESTLE_KIR_STORE:
    case PESTLE_KIR_GATHER:
    case PESTLE_KIR_SCATTER:
      return check_access(c);
    case PESTLE_KIR_IF:
    case PESTLE_KIR_TRAP_IF:
      return operand(c, 0, PESTLE_I1, 1);
    case PESTLE_KIR_FOR:
      return check_for(c);
    default:
      return NULL;
  }
}

static pestle_status_t check_inst(const check_t* c) {
  const pestle_kir_inst_t* inst = inst_of(c, c->id);
  pestle_kir_op_info_t info = pestle_ref_plugin_op_info(inst->op);
  if (!info.mnemonic) return bad(c, "an op that this build does not know");
  if (inst->lanes < 1 || inst->lanes > PESTLE_KIR_MAX_LANES) {
    return bad(c, "no such number of lanes");
  }
  bool has_value =
      info.klass == 'P' || info.klass == 'M' || inst->op == PESTLE_KIR_FOR;
  bool address = pestle_ref_plugin_is_tile(inst->op) && has_value &&
                 inst->op != PESTLE_KIR_LOAD_AT;
  if (address     ? inst->type != PESTLE_ADDR
      : has_value ? !kind_is(inst->type, NUMBERS)
                  : inst->type != PESTLE_NONE) {
    return bad(c, "no such type");
  }
  PESTLE_TRY(check_arguments(c, info.operands));
  return check_row(c);
}

// --- Regions and buffers ---

// FOR and IF are closed, ELSE stands once in an IF. Needs no stack: a region
// that was found open is closed by the helper that readers use.
static pestle_status_t check_regions(check_t* c) {
  const pestle_kir_t* k = c->k;
  uint32_t depth = 0;
  for (c->id = 0; c->id < k->inst_count; ++c->id) {
    unsigned op = inst_of(c, c->id)->op;
    if (op == PESTLE_KIR_FOR || op == PESTLE_KIR_IF) ++depth;
    if (op == PESTLE_KIR_END && !depth--) return bad(c, "no region is open");
    if (op == PESTLE_KIR_ELSE && !depth) return bad(c, "no `if` is open");
    if (depth > 256) return bad(c, "regions nest too deep");
  }
  c->id = 0;
  return depth ? REF_ERROR(c->host, MALFORMED, "ref: a region has no end")
               : NULL;
}

static pestle_status_t check_buffers(const check_t* c) {
  for (uint32_t b = 0; b < c->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* buffer = pestle_kir_buffer(c->k, b);
    bool map = buffer->scope == PESTLE_KIR_TENSOR_MAP;
    bool barrier =
        buffer->scope == PESTLE_KIR_SHARED && buffer->dtype == PESTLE_MBAR;
    if (buffer->scope > PESTLE_KIR_TENSOR_MAP ||
        !(kind_is(buffer->dtype, NUMBERS) || barrier) || buffer->lanes < 1 ||
        buffer->lanes > PESTLE_KIR_MAX_LANES ||
        buffer->count > INT64_MAX / 1024 ||
        (map ? !pestle_ref_plugin_is_map(c->k, buffer) : buffer->layout != 0) ||
        (buffer->scope == PESTLE_KIR_GLOBAL &&
         buffer->arg_slot >= c->k->arg_count)) {
      return REF_ERROR(c->host, MALFORMED, "ref: buffer %u is no buffer", b);
    }
  }
  return NULL;
}

pestle_status_t pestle_ref_plugin_check(const pestle_host_t* host,
                                        const pestle_kir_t* kernel) {
  check_t c = {host, kernel, 0};
  uint64_t lanes = 1;
  for (int d = 0; d < 3; ++d)
    lanes *= kernel->lane[d] && kernel->lane[d] <= MAX_LANES ? kernel->lane[d]
                                                             : UINT32_MAX;
  bool alone =
      kernel->group[0] == 1 && kernel->group[1] == 1 && kernel->group[2] == 1;
  bool wide = !kernel->shared_bytes && kernel->lane[2] > 1 &&
              (kernel->lane[2] <= PESTLE_WIDE_GROUP || alone) &&
              lanes / kernel->lane[2] <= MAX_LANES;
  if (lanes > (wide ? MAX_WIDE_LANES : MAX_LANES)) {
    return REF_ERROR(host, MALFORMED, "ref: groups of no or too many lanes");
  }
  uint32_t cluster = pestle_kir_cluster(kernel);
  if (cluster > REF_CLUSTER || (cluster & (cluster - 1)) ||
      (cluster > 1 &&
       (lanes % REF_WARP || lanes * cluster + REF_TICKETS > REF_ACTORS))) {
    return REF_ERROR(host, MALFORMED,
                     "ref: clusters of %u groups of %u lanes, which must be 1, "
                     "2, 4 or 8 of whole subgroups",
                     (unsigned)cluster, (unsigned)lanes);
  }
  PESTLE_TRY(check_buffers(&c));
  for (c.id = 0; c.id < kernel->inst_count; ++c.id)
    PESTLE_TRY(check_inst(&c));
  return check_regions(&c);
}
