// SPDX-License-Identifier: Apache-2.0
// The verifier of flat kernels: what kir.h promises a plugin. One walk in which
// every instruction is checked against its row (operands, types, lanes),
// against the regions around it, and every access against its buffer
// (kir_range.c).
#include <stdio.h>

#include "base/bits.h"
#include "codegen/kir/kir_range.h"
#include "ir/graph.h"

enum {  // of groups_seen
  LANE_LOOPS =
      1 << PESTLE_KIR_LANE_X | 1 << PESTLE_KIR_LANE_Y | 1 << PESTLE_KIR_LANE_Z,
};

enum { SUBGROUP = 32 };  // lanes

// In which lanes of a cluster's groups a value may be another one.
typedef enum varies_t {
  VARIES_NOT,        // it is the same in all, of a cluster too
  VARIES_GROUPS,     // in those of different groups of a cluster
  VARIES_SUBGROUPS,  // in those of different subgroups of 32
  VARIES_LANES,
} varies_t;

typedef struct verify_t {
  const pestle_kir_t* k;
  pestle_kir_ranges_t ranges;
  PESTLE_VEC(uint32_t) open;   // FOR and IF whose END is to come
  PESTLE_VEC(uint8_t) closed;  // by value: its region has ended
  uint32_t id;
  PESTLE_VEC(uint8_t) varies;  // by value: varies_t
  unsigned groups_seen;        // bits of the GROUP and LANE axes
  uint32_t groups_open, lanes_open;
  bool body_seen;    // something that may not stand around a group loop
  bool memory_seen;  // global memory was read or written
  bool wait_seen;    // GRID_WAIT
} verify_t;

// Fails with the instruction and the rule it breaks.
static PESTLE_PRINTF(2, 3) pestle_status_t
    broken(const verify_t* v, const char* format, ...) {
  char rule[256];
  va_list args;
  va_start(args, format);
  vsnprintf(rule, sizeof rule, format, args);
  va_end(args);
  pestle_strbuf_t text;
  pestle_strbuf_init(v->ranges.allocator, &text);
  pestle_kir_print_inst(v->k, v->id, &text);
  pestle_status_t status =
      PESTLE_ERROR(INTERNAL, "kernel %s, instruction %u, `%s`: %s",
                   pestle_kir_string(v->k, v->k->name), v->id,
                   pestle_strbuf_cstr(&text), rule);
  pestle_strbuf_deinit(&text);
  return status;
}

static const pestle_kir_inst_t* inst_of(const verify_t* v, uint32_t id) {
  return pestle_kir_inst(v->k, id);
}

static bool kind_is(unsigned type, unsigned kinds) {
  return pestle_dtype_is((pestle_dtype_t)type, kinds);
}

static const char* type_name(unsigned type) {
  return pestle_dtype_info((pestle_dtype_t)type)->name;
}

enum { NUMBERS = PESTLE_KIND_BOOL | PESTLE_KIND_REAL };

// --- Operands ---

static pestle_status_t check_value(const verify_t* v, uint32_t arg, int slot) {
  if (arg >= v->id)
    return broken(v, "operand %d is not an earlier value", slot);
  if (inst_of(v, arg)->type == PESTLE_NONE) {
    return broken(v, "operand %d, %%%u, has no value", slot, arg);
  }
  if (v->closed.data[arg]) {
    return broken(v, "operand %d, %%%u, left its region", slot, arg);
  }
  return NULL;
}

static pestle_status_t check_operands(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const char* letters = pestle_kir_info(inst->op).operands;
  for (int a = 0; letters[a]; ++a) {
    if (letters[a] == 'b' && inst->arg[a] >= v->k->buffer_count) {
      return broken(v, "there is no buffer %u", inst->arg[a]);
    }
    if (letters[a] == 'v' ||
        (letters[a] == 'o' && inst->arg[a] != PESTLE_KIR_NONE)) {
      PESTLE_TRY(check_value(v, inst->arg[a], a));
    }
  }
  return NULL;
}

// Operand |a| must be of |type| and |lanes|.
static pestle_status_t expect(const verify_t* v, int a, unsigned type,
                              unsigned lanes) {
  const pestle_kir_inst_t* operand = inst_of(v, inst_of(v, v->id)->arg[a]);
  if (operand->type == type && operand->lanes == lanes) return NULL;
  return broken(v, "operand %d is %sx%u, not %sx%u", a,
                type_name(operand->type), operand->lanes, type_name(type),
                lanes);
}

static pestle_status_t expect_result(const verify_t* v, unsigned kinds) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (!kind_is(inst->type, kinds)) {
    return broken(v, "the row has no %s", type_name(inst->type));
  }
  return NULL;
}

// --- Scalar rows ---

static pestle_status_t check_scalar(const verify_t* v, pestle_op_t op) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_row_t* row = pestle_kir_row(op);
  unsigned type = inst->type;
  int first = 0;
  if (row->rule == PESTLE_RULE_SELECT) {
    PESTLE_TRY(expect(v, 0, PESTLE_I1, inst->lanes));
    first = 1;
  } else if (row->rule == PESTLE_RULE_COMPARE ||
             row->rule == PESTLE_RULE_TEST) {
    if (type != PESTLE_I1) return broken(v, "the result must be i1");
    type = inst_of(v, inst->arg[0])->type;
  }
  if (!kind_is(type, row->kinds) || !kind_is(type, NUMBERS)) {
    return broken(v, "the row does not take %s", type_name(type));
  }
  for (int a = first; a < row->arity; ++a) {
    PESTLE_TRY(expect(v, a, type, inst->lanes));
  }
  return NULL;
}

// --- Lanes and types ---

static pestle_status_t check_shuffle(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_t* k = v->k;
  unsigned lanes = inst_of(v, inst->arg[0])->lanes;
  unsigned more = inst_of(v, inst->arg[1])->lanes;
  PESTLE_TRY(expect(v, 0, inst->type, lanes));
  PESTLE_TRY(expect(v, 1, inst->type, more));
  if (inst->arg[2] >= k->table_count) {
    return broken(v, "there is no table %u", inst->arg[2]);
  }
  pestle_kir_table_t table = k->table[inst->arg[2]];
  if (table.count != inst->lanes) {
    return broken(v, "the table has %u lanes, not %u", table.count,
                  inst->lanes);
  }
  if ((uint64_t)table.first + table.count > k->table_word_count) {
    return broken(v, "the table leaves the words");
  }
  for (uint32_t i = 0; i < table.count; ++i) {
    if (k->table_word[table.first + i] >= lanes + more) {
      return broken(v, "lane %u of the table is %u of %u", i,
                    k->table_word[table.first + i], lanes + more);
    }
  }
  return NULL;
}

// |lanes| are reduced by the row that arg[1] names into one value, which is a lane
// of the result; |what| they are lanes of, for the error.
static pestle_status_t check_reduced(const verify_t* v, unsigned lanes,
                                     const char* what) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (inst->arg[1] >= (uint32_t)PESTLE_SCALAR_COUNT) {
    return broken(v, "there is no scalar row %u", inst->arg[1]);
  }
  const pestle_kir_row_t* row = pestle_kir_row((pestle_op_t)inst->arg[1]);
  if (!(row->flags & PESTLE_OP_FLAG_ASSOC) ||
      !kind_is(inst->type, row->kinds) || !kind_is(inst->type, NUMBERS)) {
    return broken(v, "the row cannot reduce %s", type_name(inst->type));
  }
  if (pestle_is_pow2(lanes)) return NULL;
  return broken(v, "%u lanes%s have no halves", lanes, what);
}

// The lanes of a value, into one.
static pestle_status_t check_reduce(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  unsigned lanes = inst_of(v, inst->arg[0])->lanes;
  PESTLE_TRY(check_reduced(v, lanes, ""));
  if (inst->lanes != 1) return broken(v, "the result must have one lane");
  return expect(v, 0, inst->type, lanes);
}

// A value of each lane of a subgroup, lane by lane of the value.
static pestle_status_t check_sg_reduce(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  PESTLE_TRY(check_reduced(v, inst->arg[2], " of a subgroup"));
  return expect(v, 0, inst->type, inst->lanes);
}

static pestle_status_t check_cast(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_inst_t* from = inst_of(v, inst->arg[0]);
  if (from->lanes != inst->lanes) return broken(v, "the lanes differ");
  if (!kind_is(inst->type, NUMBERS) || !kind_is(from->type, NUMBERS)) {
    return broken(v, "no cast from %s to %s", type_name(from->type),
                  type_name(inst->type));
  }
  if (inst->op == PESTLE_KIR_BITCAST &&
      !pestle_dtypes_have_same_bits((pestle_dtype_t)inst->type,
                                    (pestle_dtype_t)from->type)) {
    return broken(v, "%s and %s differ in bits", type_name(from->type),
                  type_name(inst->type));
  }
  return NULL;
}

static pestle_status_t check_lane(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  bool insert = inst->op == PESTLE_KIR_INSERT;
  unsigned lanes = inst_of(v, inst->arg[0])->lanes;
  uint32_t lane = inst->arg[insert ? 2 : 1];
  if (lane >= lanes) return broken(v, "lane %u of %u", lane, lanes);
  if (inst->lanes != (insert ? lanes : 1)) {
    return broken(v, "the result has %u lanes", inst->lanes);
  }
  PESTLE_TRY(expect(v, 0, inst->type, lanes));
  return insert ? expect(v, 1, inst->type, 1) : NULL;
}

static pestle_status_t check_mask(const verify_t* v) {
  if (inst_of(v, v->id)->type != PESTLE_I1) {
    return broken(v, "the result must be i1");
  }
  PESTLE_TRY(expect(v, 0, PESTLE_INDEX, 1));
  return expect(v, 1, PESTLE_INDEX, 1);
}

static pestle_status_t check_madi(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (inst->type != PESTLE_INDEX || inst->lanes != 1) {
    return broken(v, "the result must be one index");
  }
  PESTLE_TRY(expect(v, 0, PESTLE_INDEX, 1));
  return expect(v, 2, PESTLE_INDEX, 1);
}

// --- Memory ---

static pestle_status_t check_bounds(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(v->k, inst->arg[0]);
  int64_t lo, hi;
  if (pestle_kir_ranges_dead(&v->ranges)) return NULL;
  pestle_kir_ranges_access(&v->ranges, v->id, &lo, &hi);
  if (v->ranges.failed) return PESTLE_OOM();  // a mask's bound was lost
  if (hi < lo) return NULL;
  if (lo >= 0 && hi < (int64_t)buffer->count) return NULL;
  if (lo <= -PESTLE_KIR_UNKNOWN || hi >= PESTLE_KIR_UNKNOWN) {
    return broken(v, "the index is not bounded; @%s has %llu elements",
                  pestle_kir_string(v->k, buffer->name),
                  (unsigned long long)buffer->count);
  }
  return broken(v, "elements %lld to %lld leave @%s of %llu", (long long)lo,
                (long long)hi, pestle_kir_string(v->k, buffer->name),
                (unsigned long long)buffer->count);
}

static pestle_status_t check_private(const verify_t* v,
                                     const pestle_kir_buffer_t* buffer) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (inst->op == PESTLE_KIR_GATHER || inst->op == PESTLE_KIR_SCATTER) {
    return broken(v, "a private buffer has no lanes to index");
  }
  if (inst->lanes != buffer->lanes) {
    return broken(v, "an element has %u lanes", buffer->lanes);
  }
  if (!v->ranges.fact.data[inst->arg[1]].fixed) {
    return broken(v, "the index is not constant once unrolled");
  }
  return NULL;
}

static pestle_status_t check_access(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(v->k, inst->arg[0]);
  bool stores = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER;
  bool lanewise =
      inst->op == PESTLE_KIR_GATHER || inst->op == PESTLE_KIR_SCATTER;
  uint32_t mask = inst->arg[stores ? 3 : 2];
  if (lanewise) {
    const pestle_kir_inst_t* index = inst_of(v, inst->arg[1]);
    if (index->lanes != inst->lanes || !kind_is(index->type, PESTLE_KIND_INT)) {
      return broken(v, "there must be one integer index a lane");
    }
  } else {
    PESTLE_TRY(expect(v, 1, PESTLE_INDEX, 1));
  }
  if (mask != PESTLE_KIR_NONE) {
    PESTLE_TRY(expect(v, stores ? 3 : 2, PESTLE_I1, inst->lanes));
  }
  if (stores) {
    PESTLE_TRY(expect(v, 2, buffer->dtype, inst->lanes));
    if (buffer->flags & PESTLE_KIR_READONLY) {
      return broken(v, "the buffer is read-only");
    }
  } else if (inst->type != buffer->dtype) {
    return broken(v, "elements are %s", type_name(buffer->dtype));
  }
  if (buffer->scope == PESTLE_KIR_PRIVATE) {
    PESTLE_TRY(check_private(v, buffer));
  }
  return check_bounds(v);
}

// --- Short dot products ---

static pestle_status_t check_dot(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  bool floats = inst->op == PESTLE_KIR_DOT2;
  if (inst->type != (floats ? PESTLE_F32 : PESTLE_I32)) {
    return broken(v, "the sums must be %s", floats ? "f32" : "i32");
  }
  PESTLE_TRY(expect(v, 0, PESTLE_I32, inst->lanes));
  PESTLE_TRY(expect(v, 1, PESTLE_I32, inst->lanes));
  PESTLE_TRY(expect(v, 2, inst->type, inst->lanes));
  if (floats || inst->arg[3] <= 3) return NULL;
  return broken(v, "no such signedness");
}

static pestle_status_t check_scale(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (inst->type != PESTLE_F32) return broken(v, "what is scaled must be f32");
  PESTLE_TRY(expect(v, 0, PESTLE_F32, inst->lanes));
  return expect(v, 1, PESTLE_F32, inst->lanes);
}

static pestle_status_t check_load_words(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(v->k, inst->arg[0]);
  unsigned size = pestle_dtype_size((pestle_dtype_t)u->dtype);
  unsigned bits = pestle_dtype_info((pestle_dtype_t)u->dtype)->bits;
  PESTLE_TRY(expect(v, 1, PESTLE_INDEX, 1));
  if (inst->type != PESTLE_I32) return broken(v, "words are i32");
  if (u->scope > PESTLE_KIR_SHARED || size > 2 || bits != 8 * size) {
    return broken(v,
                  "the buffer must be in memory, of elements of one or two "
                  "bytes");
  }
  return check_bounds(v);
}

// --- Tiles ---

static pestle_status_t check_ref(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(v->k, inst->arg[0]);
  PESTLE_TRY(expect(v, 1, PESTLE_INDEX, 1));
  if (inst->type != PESTLE_ADDR) return broken(v, "the result must be an addr");
  if (buffer->scope != PESTLE_KIR_SHARED) {
    return broken(v, "the buffer is not shared");
  }
  return check_bounds(v);
}

// In the memory of a group of the cluster.
static pestle_status_t check_ref_at(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_fact_range_t* at = &v->ranges.fact.data[inst->arg[1]];
  PESTLE_TRY(expect(v, 0, PESTLE_ADDR, 1));
  PESTLE_TRY(expect(v, 1, PESTLE_INDEX, 1));
  if (inst->type != PESTLE_ADDR) return broken(v, "the result must be an addr");
  if (inst_of(v, inst->arg[0])->op != PESTLE_KIR_REF) {
    return broken(v, "operand 0 is no ref of this group's memory");
  }
  if (pestle_kir_ranges_dead(&v->ranges)) return NULL;
  int64_t groups = pestle_kir_cluster(v->k);
  if (at->lo >= 0 && at->hi < groups) return NULL;
  return broken(v, "groups %lld to %lld of a cluster of %lld",
                (long long)at->lo, (long long)at->hi, (long long)groups);
}

static uint32_t map_words(uint32_t rank) {
  return 5 + 4 * rank;
}

// To or from.
static pestle_status_t check_tile_copy(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  PESTLE_TRY(expect(v, 0, PESTLE_ADDR, 1));
  PESTLE_TRY(expect(v, 2, PESTLE_ADDR, 1));
  if (inst->op != PESTLE_KIR_TILE_STORE) {
    PESTLE_TRY(expect(v, 3, PESTLE_ADDR, 1));
  }
  const pestle_kir_buffer_t* map = pestle_kir_buffer(v->k, inst->arg[1]);
  if (map->scope != PESTLE_KIR_TENSOR_MAP) {
    return broken(v, "the buffer is no tensor map");
  }
  pestle_kir_table_t table = v->k->table[map->layout - 1];
  uint32_t rank = v->k->table_word[table.first + 1];
  bool windows = inst->op == PESTLE_KIR_TILE_LOAD_WINDOW;
  if (windows != (table.count > map_words(rank))) {
    return broken(
        v, windows ? "the map is not of windows" : "the map is of windows");
  }
  uint32_t numbers = 1;
  for (uint32_t at = inst->arg[2];
       inst_of(v, at)->op == PESTLE_KIR_COORD && numbers <= 2 * rank; ++numbers)
    at = inst_of(v, at)->arg[1];
  if (numbers == (windows ? 2 * rank - 2 : rank)) return NULL;
  return broken(v, "the coordinate has %u numbers, and the map %u dims",
                numbers, rank);
}

// Tile a in registers: they are a buffer's, so that what writes them while the
// product is under way can be seen.
static pestle_status_t check_in_registers(const verify_t* v) {
  const pestle_kir_inst_t* a = inst_of(v, inst_of(v, v->id)->arg[1]);
  PESTLE_TRY(expect(v, 1, PESTLE_U32, 4));
  if (a->op != PESTLE_KIR_LOAD ||
      pestle_kir_buffer(v->k, a->arg[0])->scope != PESTLE_KIR_PRIVATE) {
    return broken(v, "tile a must be loaded from a private buffer");
  }
  return NULL;
}

// Bytes, 8-bit floats, and f32 of few bits; |type| is not that of 16-bit floats.
static bool is_wgmma_type(uint32_t type) {
  enum { TWO_BITS = PESTLE_KIR_WGMMA_A_SIGNED | PESTLE_KIR_WGMMA_B_SIGNED };
  uint32_t kind = type & ~(uint32_t)TWO_BITS;
  return kind == PESTLE_KIR_WGMMA_BYTES || kind == PESTLE_KIR_WGMMA_F8 ||
         type == PESTLE_KIR_WGMMA_TF32;
}

static pestle_status_t check_wgmma(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* sum = pestle_kir_buffer(v->k, inst->arg[0]);
  bool in_registers = inst->op == PESTLE_KIR_WGMMA_RA;
  uint32_t how = inst->arg[3], n = how & PESTLE_KIR_WGMMA_N;
  uint32_t turned =
      how & (PESTLE_KIR_WGMMA_A_TRANSPOSED | PESTLE_KIR_WGMMA_B_TRANSPOSED);
  if (in_registers) {
    PESTLE_TRY(check_in_registers(v));
  } else {
    PESTLE_TRY(expect(v, 1, PESTLE_ADDR, 1));
  }
  PESTLE_TRY(expect(v, 2, PESTLE_ADDR, 1));
  uint32_t type = how & PESTLE_KIR_WGMMA_TYPE;
  bool bytes = type & PESTLE_KIR_WGMMA_BYTES;
  if (n < 8 || n > 256 || n % 8 || (bytes && n > 32 && n % 16) ||
      sum->scope != PESTLE_KIR_PRIVATE ||
      sum->dtype != (bytes ? PESTLE_I32 : PESTLE_F32) ||
      sum->count * sum->lanes != n / 2) {
    return broken(v,
                  "the sums must be n / 2 private f32, of bytes i32, n a "
                  "multiple of 8");
  }
  if (type && (!is_wgmma_type(type) || turned || in_registers ||
               how & PESTLE_KIR_WGMMA_F16)) {
    return broken(v,
                  "operands are f16 or bf16, as one bit says, or bytes, 8-bit "
                  "floats or f32 that lie along k in shared memory");
  }
  if (in_registers && how & PESTLE_KIR_WGMMA_A_TRANSPOSED) {
    return broken(v, "a tile in registers cannot be transposed");
  }
  if (how & PESTLE_KIR_WGMMA_SWIZZLE &&
      (turned ||
       (how & PESTLE_KIR_WGMMA_SWIZZLE) == PESTLE_KIR_WGMMA_SWIZZLE)) {
    return broken(v, "no such swizzle of its tiles");
  }
  return NULL;
}

// --- Fragments, and copies past the registers ---

enum { MATRIX_ROW_BYTES = 16 };

static pestle_status_t check_mma(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (inst->arg[3] == PESTLE_KIR_MMA_F32_8X8) {
    if (inst->type != PESTLE_F32 || inst->lanes != 2) {
      return broken(v, "the sums of 8 x 8 must be f32x2");
    }
    for (int a = 0; a < 3; ++a)
      PESTLE_TRY(expect(v, a, PESTLE_F32, 2));
    return NULL;
  }
  bool bytes =
      inst->arg[3] >= PESTLE_KIR_MMA_BYTES && inst->arg[3] < PESTLE_KIR_MMA_F8;
  pestle_dtype_t sums = bytes ? PESTLE_I32 : PESTLE_F32;
  if (inst->type != sums || inst->lanes != 4 ||
      inst->arg[3] >= PESTLE_KIR_MMA_KINDS) {
    return broken(v, "the sums must be f32x4 of floats, or i32x4 of bytes");
  }
  PESTLE_TRY(expect(v, 0, PESTLE_U32, 4));
  PESTLE_TRY(expect(v, 1, PESTLE_U32, 2));
  return expect(v, 2, sums, 4);
}

// |count| elements from operand |a| on, a multiple of them, lie in |buffer|.
static pestle_status_t check_run(const verify_t* v, int a, uint32_t buffer,
                                 int64_t count) {
  const pestle_kir_buffer_t* u = pestle_kir_buffer(v->k, buffer);
  const pestle_kir_fact_range_t* f =
      &v->ranges.fact.data[inst_of(v, v->id)->arg[a]];
  PESTLE_TRY(expect(v, a, PESTLE_INDEX, 1));
  if (pestle_kir_ranges_dead(&v->ranges) ||
      f->hi <= (int64_t)u->count - count) {
    return NULL;
  }
  return broken(v, "elements up to %lld leave @%s of %llu",
                (long long)f->hi + count - 1, pestle_kir_string(v->k, u->name),
                (unsigned long long)u->count);
}

// Each lane's row of elements of two bytes, or of others as they lie.
static pestle_status_t check_matrix_rows(const verify_t* v, bool as_it_lies) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(v->k, inst->arg[0]);
  unsigned size = pestle_dtype_size((pestle_dtype_t)u->dtype);
  if (u->scope != PESTLE_KIR_SHARED ||
      (size != 2 && !(as_it_lies && (size == 1 || size == 4)))) {
    return broken(v, "the buffer must be shared, of elements of two bytes");
  }
  if (v->ranges.fact.data[inst->arg[1]].lo < 0) {
    return broken(v, "the index may be below 0");
  }
  return check_run(v, 1, inst->arg[0], MATRIX_ROW_BYTES / size);
}

static pestle_status_t check_ldmatrix(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (inst->type != PESTLE_U32 || inst->lanes > 4 || inst->lanes == 3 ||
      inst->arg[2] > 1) {
    return broken(v, "the result must be one, two or four words of ui32");
  }
  return check_matrix_rows(v, inst->arg[2] == 0);
}

static pestle_status_t check_stmatrix(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  unsigned words = inst_of(v, inst->arg[2])->lanes;
  PESTLE_TRY(expect(v, 2, PESTLE_U32, words));
  if (words > 4 || words == 3 || inst->arg[3] > 1) {
    return broken(v, "it stores one, two or four words of ui32");
  }
  return check_matrix_rows(v, false);
}

static pestle_status_t check_atomic_add(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(v->k, inst->arg[0]);
  PESTLE_TRY(expect(v, 1, PESTLE_INDEX, 1));
  PESTLE_TRY(expect(v, 2, PESTLE_I32, 1));
  if (inst->type != PESTLE_I32 || inst->lanes != 1 || u->dtype != PESTLE_I32 ||
      u->scope > PESTLE_KIR_SHARED || u->flags & PESTLE_KIR_READONLY) {
    return broken(v, "it adds to an i32 in memory that may be written");
  }
  return check_bounds(v);
}

static pestle_status_t check_ballot(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (inst->type != PESTLE_U32 || inst->lanes != 1) {
    return broken(v, "the result must be one word of ui32");
  }
  return expect(v, 0, PESTLE_I1, 1);
}

static pestle_status_t check_copy_async(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* to = pestle_kir_buffer(v->k, inst->arg[0]);
  const pestle_kir_buffer_t* from = pestle_kir_buffer(v->k, inst->arg[2]);
  unsigned bytes = inst->lanes * pestle_dtype_size((pestle_dtype_t)to->dtype);
  if (to->scope != PESTLE_KIR_SHARED || from->scope != PESTLE_KIR_GLOBAL ||
      to->dtype != from->dtype) {
    return broken(v, "it copies from a global buffer to a shared one alike");
  }
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    return broken(v, "it copies 4, 8 or 16 bytes, not %u", bytes);
  }
  if (v->ranges.fact.data[inst->arg[1]].lo < 0) {
    return broken(v, "the index may be below 0");
  }
  PESTLE_TRY(check_run(v, 1, inst->arg[0], inst->lanes));
  return check_run(v, 3, inst->arg[2], inst->lanes);
}

// --- Matrix registers ---

static pestle_status_t check_register(const verify_t* v, int a) {
  uint32_t number = inst_of(v, v->id)->arg[a];
  if (v->groups_seen & LANE_LOOPS) {
    return broken(v, "matrix registers are those of a thread, not of lanes");
  }
  if (number < PESTLE_KIR_MREGS) return NULL;
  return broken(v, "there is no matrix register %u", number);
}

static pestle_status_t check_mreg_access(const verify_t* v, bool stores) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(v->k, inst->arg[0]);
  int64_t row =
      PESTLE_KIR_MREG_ROW_BYTES / pestle_dtype_size((pestle_dtype_t)u->dtype);
  int64_t stride = (int32_t)inst->arg[2];
  PESTLE_TRY(check_register(v, 3));
  bool written = stores && (u->flags & PESTLE_KIR_READONLY);
  if (u->scope > PESTLE_KIR_SHARED || written) {
    return broken(v, "the buffer must be in memory%s",
                  stores ? ", and no argument that is only read" : "");
  }
  if (stride < row) return broken(v, "its rows overlap");
  if (v->ranges.fact.data[inst->arg[1]].lo < 0) {
    return broken(v, "the index may be below 0");
  }
  return check_run(v, 1, inst->arg[0],
                   (PESTLE_KIR_MREG_ROWS - 1) * stride + row);
}

static pestle_status_t check_mreg_mma(const verify_t* v) {
  const uint32_t* arg = inst_of(v, v->id)->arg;
  for (int a = 0; a < 3; ++a)
    PESTLE_TRY(check_register(v, a));
  if (arg[0] == arg[1] || arg[0] == arg[2] || arg[1] == arg[2]) {
    return broken(v, "its registers must be three");
  }
  bool bytes =
      arg[3] >= PESTLE_KIR_MREG_BYTES && arg[3] < 2 * PESTLE_KIR_MREG_BYTES;
  if (bytes || arg[3] == PESTLE_KIR_MREG_BF16) return NULL;
  return broken(v, "there is no such product");
}

// --- Regions ---

static bool is_group_axis(uint32_t axis) {
  return axis >= PESTLE_KIR_GROUP_X && axis <= PESTLE_KIR_GROUP_Z;
}

static bool is_constant(const verify_t* v, uint32_t id, int64_t* out_value) {
  const pestle_kir_inst_t* inst = inst_of(v, id);
  *out_value = pestle_kir_const_int(inst);
  return inst->op == PESTLE_KIR_CONST;
}

static pestle_status_t check_group_loop(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  int64_t lo, hi;
  if (v->body_seen || v->open.size != v->groups_open ||
      v->groups_seen & 1u << PESTLE_KIR_CLUSTER) {
    return broken(v, "group loops are outermost and perfectly nested");
  }
  unsigned bit = 1u << inst->arg[3];
  if (v->groups_seen & bit) return broken(v, "there is one loop a group axis");
  v->groups_seen |= bit;
  ++v->groups_open;
  if (!is_constant(v, inst->arg[0], &lo) ||
      !is_constant(v, inst->arg[1], &hi) || lo != 0 || hi < 0 ||
      inst->arg[2] != 1) {
    return broken(v, "a group loop runs from 0 by 1 to a constant");
  }
  return NULL;
}

// It counts as one of the group loops.
static pestle_status_t check_cluster_loop(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  int64_t lo, hi;
  if (v->body_seen || !v->groups_open || v->open.size != v->groups_open ||
      v->groups_seen & (1u << PESTLE_KIR_CLUSTER | LANE_LOOPS)) {
    return broken(v, "one cluster loop stands directly under the group loops");
  }
  v->groups_seen |= 1u << PESTLE_KIR_CLUSTER;
  ++v->groups_open;
  if (!is_constant(v, inst->arg[0], &lo) ||
      !is_constant(v, inst->arg[1], &hi) || lo != 0 || inst->arg[2] != 1 ||
      (hi != 1 && hi != 2 && hi != 4 && hi != 8)) {
    return broken(v, "a cluster loop runs from 0 by 1 to 1, 2, 4 or 8");
  }
  return NULL;
}

static bool is_lane_axis(uint32_t axis) {
  return axis >= PESTLE_KIR_LANE_X && axis <= PESTLE_KIR_LANE_Z;
}

static pestle_status_t check_lane_loop(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  int64_t lo, hi;
  if (v->body_seen || !v->groups_open ||
      v->open.size != v->groups_open + v->lanes_open) {
    return broken(v,
                  "lane loops stand directly under the group loops, perfectly "
                  "nested");
  }
  unsigned bit = 1u << inst->arg[3];
  // z before y before x.
  if (v->groups_seen & (bit | (bit - 1)) & LANE_LOOPS) {
    return broken(v, "lane loops are one of each kind, z before y before x");
  }
  v->groups_seen |= bit;
  ++v->lanes_open;
  if (!is_constant(v, inst->arg[0], &lo) ||
      !is_constant(v, inst->arg[1], &hi) || lo != 0 || hi < 1 ||
      inst->arg[2] != 1) {
    return broken(v, "a lane loop runs from 0 by 1 to a constant");
  }
  return NULL;
}

// What all lanes of a group reach together, or those of a subgroup, where what
// is around it may be another value in another one (|most|).
static pestle_status_t check_collective(const verify_t* v, varies_t most) {
  for (size_t i = 0; i < v->open.size; ++i) {
    const pestle_kir_inst_t* around = inst_of(v, v->open.data[i]);
    bool loop = around->op == PESTLE_KIR_FOR;
    if (loop && is_lane_axis(around->arg[3])) continue;
    if (v->varies.data[around->arg[0]] > most ||
        (loop && v->varies.data[around->arg[1]] > most)) {
      return broken(v,
                    "not every lane gets here: %%%u around it differs from "
                    "lane to lane",
                    v->open.data[i]);
    }
  }
  return NULL;
}

// All lanes of all groups wait before they touch what another kernel may write.
static pestle_status_t check_grid_wait(verify_t* v) {
  if (v->open.size != v->groups_open + v->lanes_open) {
    return broken(v, "it stands directly under the lane loops");
  }
  if (v->wait_seen) return broken(v, "a kernel has one");
  if (v->memory_seen) {
    return broken(v, "global memory is read or written before it");
  }
  v->wait_seen = true;
  return NULL;
}

static bool touches_memory(const verify_t* v, const pestle_kir_inst_t* inst) {
  pestle_kir_op_info_t info = pestle_kir_info(inst->op);
  if (inst->op == PESTLE_KIR_PREFETCH) return false;
  // Who puts such a read before a wait knows that no kernel in front writes there.
  bool copies = inst->op == PESTLE_KIR_COPY_ASYNC;
  if ((copies || inst->op == PESTLE_KIR_LOAD) &&
      pestle_kir_buffer(v->k, inst->arg[copies ? 2 : 0])->flags &
          PESTLE_KIR_READONLY) {
    return false;
  }
  for (int a = 0; info.operands[a]; ++a) {
    if (info.operands[a] != 'b') continue;
    unsigned scope = pestle_kir_buffer(v->k, inst->arg[a])->scope;
    if (scope == PESTLE_KIR_GLOBAL || scope == PESTLE_KIR_TENSOR_MAP)
      return true;
  }
  return false;
}

// Whether the number of a lane is its number along x.
static bool has_one_lane_axis(const verify_t* v) {
  return (v->groups_seen & LANE_LOOPS) == 1u << PESTLE_KIR_LANE_X;
}

// A lane's number divided by whole subgroups.
static bool names_subgroup(const verify_t* v, const pestle_kir_inst_t* inst) {
  int64_t by;
  const pestle_kir_inst_t* x = inst_of(v, inst->arg[0]);
  return x->op == PESTLE_KIR_FOR && x->arg[3] == PESTLE_KIR_LANE_X &&
         is_constant(v, inst->arg[1], &by) && by > 0 && by % SUBGROUP == 0 &&
         has_one_lane_axis(v);
}

// What a group has in its shared memory others of its cluster need not have.
static bool reads_own_memory(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  if (inst->op == PESTLE_KIR_LOAD_AT) return true;
  bool loads = inst->op == PESTLE_KIR_LOAD || inst->op == PESTLE_KIR_GATHER ||
               inst->op == PESTLE_KIR_LOAD_WORDS;
  return loads &&
         pestle_kir_buffer(v->k, inst->arg[0])->scope == PESTLE_KIR_SHARED;
}

// Of lanes along y whole subgroups have one number, where those along x fill some.
static varies_t lanes_vary(const verify_t* v, const pestle_kir_inst_t* inst) {
  if (inst->arg[3] == PESTLE_KIR_LANE_X) return VARIES_LANES;
  for (uint32_t i = v->id + 1; i < v->k->inst_count; ++i) {
    const pestle_kir_inst_t* x = inst_of(v, i);
    int64_t count;
    if (x->op == PESTLE_KIR_FOR && x->arg[3] == PESTLE_KIR_LANE_X) {
      return is_constant(v, x->arg[1], &count) && count > 0 &&
                     count % SUBGROUP == 0
                 ? VARIES_SUBGROUPS
                 : VARIES_LANES;
    }
  }
  return VARIES_LANES;
}

// Lanes may have different values of what comes from a lane's number or its own
// memory.
static varies_t varies(const verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  const char* letters = pestle_kir_info(inst->op).operands;
  pestle_op_t op;
  if (inst->op == PESTLE_KIR_FOR && is_lane_axis(inst->arg[3])) {
    return lanes_vary(v, inst);
  }
  bool of_cluster =
      inst->op == PESTLE_KIR_FOR && inst->arg[3] == PESTLE_KIR_CLUSTER;
  if (inst->op == PESTLE_KIR_MMA || inst->op == PESTLE_KIR_LDMATRIX ||
      inst->op == PESTLE_KIR_ATOMIC_ADD ||
      (inst->op == PESTLE_KIR_LOAD &&
       pestle_kir_buffer(v->k, inst->arg[0])->scope == PESTLE_KIR_PRIVATE)) {
    return VARIES_LANES;
  }
  if (inst->op == PESTLE_KIR_SG_BALLOT) return VARIES_SUBGROUPS;
  if (pestle_kir_is_scalar(inst->op, &op) && op == PESTLE_OP_DIVIDE &&
      names_subgroup(v, inst)) {
    return VARIES_SUBGROUPS;
  }
  varies_t most =
      of_cluster || reads_own_memory(v) ? VARIES_GROUPS : VARIES_NOT;
  for (int a = 0; letters[a]; ++a) {
    bool value = letters[a] == 'v' ||
                 (letters[a] == 'o' && inst->arg[a] != PESTLE_KIR_NONE);
    if (value && v->varies.data[inst->arg[a]] > most) {
      most = (varies_t)v->varies.data[inst->arg[a]];
    }
  }
  return most;
}

static pestle_status_t check_for(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  PESTLE_TRY(expect(v, 0, PESTLE_INDEX, 1));
  PESTLE_TRY(expect(v, 1, PESTLE_INDEX, 1));
  if (inst->type != PESTLE_INDEX || inst->lanes != 1) {
    return broken(v, "the value must be one index");
  }
  if ((int32_t)inst->arg[2] <= 0) return broken(v, "the step must be positive");
  if (inst->arg[3] > PESTLE_KIR_CLUSTER) return broken(v, "no such axis kind");
  if (inst->arg[3] == PESTLE_KIR_UNROLL) {
    for (int a = 0; a < 2; ++a) {
      if (!v->ranges.fact.data[inst->arg[a]].fixed) {
        return broken(v, "the bounds of an unrolled loop must be constant");
      }
    }
  }
  if (is_group_axis(inst->arg[3])) {
    PESTLE_TRY(check_group_loop(v));
  } else if (is_lane_axis(inst->arg[3])) {
    PESTLE_TRY(check_lane_loop(v));
  } else if (inst->arg[3] == PESTLE_KIR_CLUSTER) {
    PESTLE_TRY(check_cluster_loop(v));
  } else {
    v->body_seen = true;
  }
  return NULL;
}

static pestle_status_t close_region(verify_t* v, bool at_else) {
  if (!v->open.size) return broken(v, "no region is open");
  uint32_t begin = pestle_vec_last(&v->open);
  const pestle_kir_inst_t* opener = inst_of(v, begin);
  if (at_else && opener->op != PESTLE_KIR_IF) {
    return broken(v, "the region is no `if`");
  }
  // A second ELSE is found by the first, which is closed already.
  for (uint32_t i = begin + 1; i < v->id; ++i) {
    if (at_else && inst_of(v, i)->op == PESTLE_KIR_ELSE && !v->closed.data[i]) {
      return broken(v, "the `if` has an `else` already");
    }
  }
  for (uint32_t i = begin + (at_else ? 1 : 0); i < v->id; ++i) {
    v->closed.data[i] = 1;
  }
  if (at_else) return NULL;
  v->open.size--;
  if (opener->op == PESTLE_KIR_FOR &&
      (is_group_axis(opener->arg[3]) || opener->arg[3] == PESTLE_KIR_CLUSTER)) {
    --v->groups_open;
  }
  if (opener->op == PESTLE_KIR_FOR && is_lane_axis(opener->arg[3])) {
    --v->lanes_open;
    v->body_seen = true;  // nothing follows the lanes
  }
  return NULL;
}

// --- One instruction ---

static pestle_status_t check_plain(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  switch (inst->op) {
    case PESTLE_KIR_CONST:
      return expect_result(v, NUMBERS);
    case PESTLE_KIR_PARAM:
    case PESTLE_KIR_IOTA:
      return expect_result(v, PESTLE_KIND_INT);
    case PESTLE_KIR_MADI:
      return check_madi(v);
    case PESTLE_KIR_MASK:
      return check_mask(v);
    case PESTLE_KIR_SPLAT:
      return expect(v, 0, inst->type, 1);
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_INSERT:
      return check_lane(v);
    case PESTLE_KIR_REDUCE:
      return check_reduce(v);
    case PESTLE_KIR_REF:
      return check_ref(v);
    case PESTLE_KIR_COORD:
      if (inst->type == PESTLE_ADDR) return expect(v, 0, PESTLE_INDEX, 1);
      return broken(v, "the result must be an addr");
    case PESTLE_KIR_MBAR_INIT:
    case PESTLE_KIR_MBAR_EXPECT:
    case PESTLE_KIR_MBAR_ARRIVE:
      return expect(v, 0, PESTLE_ADDR, 1);
    case PESTLE_KIR_MBAR_WAIT:
      PESTLE_TRY(expect(v, 0, PESTLE_ADDR, 1));
      return expect(v, 1, PESTLE_INDEX, 1);
    case PESTLE_KIR_TILE_LOAD:
    case PESTLE_KIR_TILE_LOAD_WINDOW:
    case PESTLE_KIR_TILE_LOAD_ALL:
    case PESTLE_KIR_TILE_STORE:
      return check_tile_copy(v);
    case PESTLE_KIR_REF_AT:
      return check_ref_at(v);
    case PESTLE_KIR_LOAD_AT:
      PESTLE_TRY(expect(v, 0, PESTLE_ADDR, 1));
      PESTLE_TRY(expect_result(v, PESTLE_KIND_REAL));
      return expect(v, 1, PESTLE_INDEX, 1);
    case PESTLE_KIR_CLUSTER_SYNC:
      return check_collective(v, VARIES_NOT);
    case PESTLE_KIR_GRID_WAIT:
      return check_grid_wait(v);
    case PESTLE_KIR_SYNC:
    case PESTLE_KIR_SYNC_ARRIVE:
      return expect(v, 0, PESTLE_INDEX, 1);
    case PESTLE_KIR_WGMMA:
    case PESTLE_KIR_WGMMA_RA:
      return check_wgmma(v);
    case PESTLE_KIR_SG_REDUCE:
      PESTLE_TRY(check_collective(v, VARIES_SUBGROUPS));
      return check_sg_reduce(v);
    case PESTLE_KIR_MMA:
      PESTLE_TRY(check_collective(v, VARIES_SUBGROUPS));
      return check_mma(v);
    case PESTLE_KIR_LDMATRIX:
      PESTLE_TRY(check_collective(v, VARIES_SUBGROUPS));
      return check_ldmatrix(v);
    case PESTLE_KIR_STMATRIX:
      PESTLE_TRY(check_collective(v, VARIES_SUBGROUPS));
      return check_stmatrix(v);
    case PESTLE_KIR_SG_BALLOT:
      PESTLE_TRY(check_collective(v, VARIES_SUBGROUPS));
      return check_ballot(v);
    case PESTLE_KIR_ATOMIC_ADD:
      return check_atomic_add(v);
    case PESTLE_KIR_COPY_ASYNC:
      return check_copy_async(v);
    case PESTLE_KIR_DOT2:
    case PESTLE_KIR_DOT4:
      return check_dot(v);
    case PESTLE_KIR_LOAD_WORDS:
      return check_load_words(v);
    case PESTLE_KIR_SCALE:
      return check_scale(v);
    case PESTLE_KIR_MREG_ZERO:
      return check_register(v, 0);
    case PESTLE_KIR_MREG_LOAD:
    case PESTLE_KIR_MREG_STREAM:
      return check_mreg_access(v, false);
    case PESTLE_KIR_MREG_STORE:
      return check_mreg_access(v, true);
    case PESTLE_KIR_MREG_MMA:
      return check_mreg_mma(v);
    case PESTLE_KIR_BARRIER:
      return check_collective(v, VARIES_GROUPS);
    case PESTLE_KIR_CAST:
    case PESTLE_KIR_BITCAST:
      return check_cast(v);
    case PESTLE_KIR_SHUFFLE:
      return check_shuffle(v);
    case PESTLE_KIR_LOAD:
    case PESTLE_KIR_STORE:
    case PESTLE_KIR_GATHER:
    case PESTLE_KIR_SCATTER:
      return check_access(v);
    case PESTLE_KIR_PREFETCH:
      return expect(v, 1, PESTLE_INDEX, 1);
    case PESTLE_KIR_IF:
    case PESTLE_KIR_TRAP_IF:
      return expect(v, 0, PESTLE_I1, 1);
    case PESTLE_KIR_ALLOC:
      if (pestle_kir_buffer(v->k, inst->arg[0])->scope != PESTLE_KIR_PRIVATE) {
        return broken(v, "the buffer is not private");
      }
      return NULL;
    case PESTLE_KIR_FOR:
      return check_for(v);
    case PESTLE_KIR_ELSE:
      return close_region(v, true);
    default:
      return NULL;
  }
}

static pestle_status_t check_place(verify_t* v, char klass) {
  if (klass == 'M' || klass == 'S') {
    v->body_seen = true;
    if (!v->groups_open) return broken(v, "it stands outside the group loops");
    if (v->groups_seen & LANE_LOOPS && !v->lanes_open) {
      return broken(v, "it stands outside the lane loops");
    }
  }
  if (klass == 'B' && inst_of(v, v->id)->op == PESTLE_KIR_IF) {
    v->body_seen = true;
  }
  return NULL;
}

static pestle_status_t check_inst(verify_t* v) {
  const pestle_kir_inst_t* inst = inst_of(v, v->id);
  pestle_kir_op_info_t info = pestle_kir_info(inst->op);
  pestle_op_t op;
  if (!info.mnemonic) return broken(v, "there is no op %u", inst->op);
  if (inst->lanes < 1 || inst->lanes > PESTLE_KIR_MAX_LANES) {
    return broken(v, "%u lanes", inst->lanes);
  }
  bool has_value =
      info.klass == 'P' || info.klass == 'M' || inst->op == PESTLE_KIR_FOR;
  if (inst->type >= PESTLE_DTYPE_COUNT ||
      has_value != (inst->type != PESTLE_NONE)) {
    return broken(v, "it may not have type %s", type_name(inst->type));
  }
  PESTLE_TRY(check_operands(v));
  PESTLE_TRY(check_place(v, info.klass));
  v->memory_seen |= touches_memory(v, inst);
  v->varies.data[v->id] = (uint8_t)varies(v);
  pestle_kir_ranges_visit(&v->ranges, v->id);
  if (v->ranges.failed) return PESTLE_OOM();
  if (pestle_kir_is_scalar(inst->op, &op)) {
    PESTLE_TRY(check_scalar(v, op));
  } else {
    PESTLE_TRY(check_plain(v));
  }
  if (info.klass == 'B' && !pestle_vec_push(&v->open, v->id)) {
    return PESTLE_OOM();
  }
  return info.klass == 'E' ? close_region(v, false) : NULL;
}

// --- The kernel ---

static bool fits_bits(uint32_t word, unsigned bits) {
  int64_t value = (int32_t)word, end = INT64_C(1) << (bits - 1);
  return value >= -end && value < end;
}

// What such a map's words behind its dims say.
static bool is_map_of_windows(const uint32_t* word) {
  static const unsigned bits[3] = {16, 8, 5};
  uint32_t rank = word[1];
  const uint32_t* more = word + map_words(rank);
  if (rank < 3 || *more++ != PESTLE_KIR_MAP_WINDOWS) return false;
  for (uint32_t d = 2; d < rank; ++d) {
    if (word[5 + 4 * d + 1] != 1) return false;
  }
  for (uint32_t d = 1; d + 1 < rank; ++d, more += 3) {
    int64_t last = (int64_t)word[5 + 4 * d] - 1 + (int32_t)more[1];
    if (!fits_bits(more[0], bits[rank - 3]) ||
        !fits_bits(more[1], bits[rank - 3]) || last < (int32_t)more[0] ||
        more[2] < 1 || more[2] > 8) {
      return false;
    }
  }
  return true;
}

static bool is_map(const pestle_kir_t* k, const pestle_kir_buffer_t* map) {
  uint32_t id = (uint32_t)map->layout - 1;
  if (id >= k->table_count) return false;
  pestle_kir_table_t table = k->table[id];
  if ((uint64_t)table.first + table.count > k->table_word_count ||
      table.count < 5) {
    return false;
  }
  const uint32_t* word = &k->table_word[table.first];
  uint32_t rank = word[1];
  if (word[0] >= k->buffer_count || rank < 1 || rank > 5) return false;
  bool windows = rank > 2 && table.count == map_words(rank) + 3 * rank - 5 &&
                 is_map_of_windows(word);
  return (windows || table.count == map_words(rank)) &&
         pestle_kir_buffer(k, word[0])->scope == PESTLE_KIR_GLOBAL;
}

static pestle_status_t check_buffers(const pestle_kir_t* k) {
  uint32_t slots = 0;
  for (uint32_t b = 0; b < k->buffer_count; ++b) {
    const pestle_kir_buffer_t* buffer = pestle_kir_buffer(k, b);
    const char* why = NULL;
    uint64_t bytes;
    if (buffer->scope > PESTLE_KIR_TENSOR_MAP) why = "has no scope";
    bool object =
        buffer->dtype == PESTLE_MBAR && buffer->scope == PESTLE_KIR_SHARED;
    if (!kind_is(buffer->dtype, NUMBERS) && !object) {
      why = "has no element type";
    }
    if (buffer->scope == PESTLE_KIR_TENSOR_MAP && !is_map(k, buffer)) {
      why = "is no view of a global buffer by boxes";
    }
    if (buffer->lanes < 1 || buffer->lanes > PESTLE_KIR_MAX_LANES ||
        (buffer->lanes > 1 && buffer->scope != PESTLE_KIR_PRIVATE)) {
      why = "has elements of that many lanes";
    }
    if (__builtin_mul_overflow(buffer->count, 8u * buffer->lanes, &bytes) ||
        bytes > INT64_MAX) {
      why = "is too large";
    }
    if (!pestle_is_pow2(buffer->align)) why = "has no alignment";
    if (buffer->scope == PESTLE_KIR_GLOBAL && buffer->arg_slot != slots++) {
      why = "is not in its argument slot";
    }
    if (why) {
      return PESTLE_ERROR(INTERNAL, "kernel %s: buffer @%s %s",
                          pestle_kir_string(k, k->name),
                          pestle_kir_string(k, buffer->name), why);
    }
  }
  return NULL;
}

static pestle_status_t walk(verify_t* v) {
  const pestle_kir_t* k = v->k;
  if (v->ranges.failed ||
      !pestle_vec_resize(&v->varies, (size_t)k->inst_count) ||
      !pestle_vec_resize(&v->closed, (size_t)k->inst_count)) {
    return PESTLE_OOM();
  }
  PESTLE_TRY(check_buffers(k));
  for (v->id = 0; v->id < k->inst_count; ++v->id)
    PESTLE_TRY(check_inst(v));
  if (!v->open.size) return NULL;
  v->id = pestle_vec_last(&v->open);
  return broken(v, "the region has no end");
}

pestle_status_t pestle_kir_verify_in(pestle_allocator_t allocator,
                                     const pestle_kir_t* kernel) {
  verify_t v = {.k = kernel};
  pestle_kir_ranges_init(allocator, kernel, &v.ranges);
  pestle_vec_init(&v.open, allocator);
  pestle_vec_init(&v.closed, allocator);
  pestle_vec_init(&v.varies, allocator);
  pestle_status_t status = walk(&v);
  if (!status) status = pestle_kir_verify_tiles(kernel);
  pestle_vec_deinit(&v.varies);
  pestle_vec_deinit(&v.closed);
  pestle_vec_deinit(&v.open);
  pestle_kir_ranges_deinit(&v.ranges);
  return status;
}

pestle_status_t pestle_kir_verify(const pestle_kir_t* kernel) {
  return pestle_kir_verify_in(pestle_allocator_system(), kernel);
}
