// SPDX-License-Identifier: Apache-2.0
// Instructions that make and move lanes, and index arithmetic.
#include "plugins/llvm/emit.h"

// --- Index pairs ---

typedef struct pair_t {
  LLVMValueRef v;  // NULL: the constant alone
  int64_t c;
} pair_t;

static pair_t pair_of(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_llvm_value_t* value = &e->value[id];
  if (value->index) return (pair_t){value->v, value->constant};
  LLVMValueRef v = pestle_llvm_get(e, id);
  if (!e->ll->IsAConstantInt(v)) return (pair_t){v, 0};
  return (pair_t){NULL, e->ll->ConstIntGetSExtValue(v)};
}

// Wrapping, as the generated code does.
static int64_t wrap_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t wrap_multiply(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

static pair_t sum(pestle_llvm_emit_t* e, pair_t a, pair_t b) {
  LLVMValueRef v = a.v ? a.v : b.v;
  if (a.v && b.v) v = e->ll->BuildNSWAdd(e->b, a.v, b.v, "");
  return (pair_t){v, wrap_add(a.c, b.c)};
}

static pair_t scaled(pestle_llvm_emit_t* e, pair_t a, int64_t by) {
  LLVMValueRef v = a.v;
  if (by == 0) v = NULL;
  if (v && by != 1) {
    v = e->ll->BuildNSWMul(e->b, v, pestle_llvm_i64(e, by), "");
    if (a.v == e->opaque) v = e->ll->BuildFreeze(e->b, v, "");
  }
  return (pair_t){v, wrap_multiply(a.c, by)};
}

static pair_t difference(pestle_llvm_emit_t* e, pair_t a, pair_t b) {
  int64_t c = wrap_add(a.c, wrap_multiply(b.c, -1));
  if (a.v == b.v) return (pair_t){NULL, c};
  if (!b.v) return (pair_t){a.v, c};
  LLVMValueRef zero = pestle_llvm_i64(e, 0);
  return (pair_t){e->ll->BuildSub(e->b, a.v ? a.v : zero, b.v, ""), c};
}

static void set_pair(pestle_llvm_emit_t* e, uint32_t id, pair_t p) {
  pestle_llvm_set_index(e, id, p.v, p.c);
}

bool pestle_llvm_emit_index_row(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  bool affine = n->op == PESTLE_KIR_ADD || n->op == PESTLE_KIR_SUBTRACT ||
                n->op == PESTLE_KIR_MULTIPLY;
  if (!affine || n->type != PESTLE_INDEX || n->lanes != 1) return false;
  pair_t a = pair_of(e, n->arg[0]), b = pair_of(e, n->arg[1]);
  if (n->op == PESTLE_KIR_ADD) {
    set_pair(e, id, sum(e, a, b));
  } else if (n->op == PESTLE_KIR_SUBTRACT) {
    set_pair(e, id, difference(e, a, b));
  } else if (!b.v) {
    set_pair(e, id, scaled(e, a, b.c));
  } else if (!a.v) {
    set_pair(e, id, scaled(e, b, a.c));
  } else {
    return false;
  }
  return true;
}

static void madi(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  pair_t a = pair_of(e, n->arg[0]), c = pair_of(e, n->arg[2]);
  set_pair(e, id, sum(e, scaled(e, a, (int32_t)n->arg[1]), c));
}

// --- Masks ---

// Lanes below |count|, which emission knows.
static LLVMValueRef constant_mask(pestle_llvm_emit_t* e, unsigned lanes,
                                  int64_t count) {
  LLVMValueRef bit[PESTLE_KIR_MAX_LANES];
  for (unsigned i = 0; i < lanes; ++i) {
    bit[i] = e->ll->ConstInt(e->type[PESTLE_I1], (int64_t)i < count, 0);
  }
  return lanes == 1 ? bit[0] : e->ll->ConstVector(bit, lanes);
}

static LLVMValueRef iota(pestle_llvm_emit_t* e, LLVMTypeRef lane,
                         unsigned lanes) {
  LLVMValueRef at[PESTLE_KIR_MAX_LANES];
  for (unsigned i = 0; i < lanes; ++i)
    at[i] = e->ll->ConstInt(lane, i, 0);
  return lanes == 1 ? at[0] : e->ll->ConstVector(at, lanes);
}

// index + lane < limit: the distance, brought to 0 .. lanes so that it fits
// narrow lanes, against 0, 1, 2 ...
static void mask(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_llvm_api_t* ll = e->ll;
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  unsigned lanes = n->lanes;
  pair_t index = pair_of(e, n->arg[0]), limit = pair_of(e, n->arg[1]);
  pair_t d = difference(e, limit, index);
  if (!d.v) {
    pestle_llvm_set(e, id, constant_mask(e, lanes, d.c));
    return;
  }
  LLVMValueRef count = d.v;
  if (d.c) count = ll->BuildNSWAdd(e->b, d.v, pestle_llvm_i64(e, d.c), "");
  LLVMValueRef zero = pestle_llvm_i64(e, 0);
  if (lanes == 1) {
    pestle_llvm_set(e, id, ll->BuildICmp(e->b, LLVMIntSGT, count, zero, ""));
    return;
  }
  LLVMValueRef all = pestle_llvm_i64(e, lanes);
  LLVMValueRef c = ll->BuildICmp(e->b, LLVMIntSLT, count, all, "");
  count = ll->BuildSelect(e->b, c, count, all, "");
  c = ll->BuildICmp(e->b, LLVMIntSGT, count, zero, "");
  count = ll->BuildSelect(e->b, c, count, zero, "");
  // One 64-byte vector of lanes, whatever their number.
  unsigned width = lanes <= 16 ? 32 : lanes <= 32 ? 16 : 8;
  if (lanes > 64) width = 16;
  LLVMTypeRef lane = ll->IntTypeInContext(e->context, width);
  count = pestle_llvm_splat(e, ll->BuildTrunc(e->b, count, lane, ""), lanes);
  pestle_llvm_set(
      e, id, ll->BuildICmp(e->b, LLVMIntULT, iota(e, lane, lanes), count, ""));
}

// --- Lanes ---

static LLVMValueRef shuffled(pestle_llvm_emit_t* e, LLVMValueRef a,
                             LLVMValueRef b, const uint32_t* lane,
                             unsigned lanes) {
  LLVMValueRef at[PESTLE_KIR_MAX_LANES];
  for (unsigned i = 0; i < lanes; ++i)
    at[i] = pestle_llvm_i32(e, lane[i]);
  return e->ll->BuildShuffleVector(e->b, a, b, e->ll->ConstVector(at, lanes),
                                   "");
}

// |v| of |lanes| lanes as the first of |wide|.
static LLVMValueRef padded(pestle_llvm_emit_t* e, LLVMValueRef v,
                           unsigned lanes, unsigned wide) {
  uint32_t lane[PESTLE_KIR_MAX_LANES];
  if (lanes == wide) return v;
  if (lanes == 1) {
    LLVMTypeRef type = e->ll->VectorType(e->ll->TypeOf(v), wide);
    return e->ll->BuildInsertElement(e->b, e->ll->GetPoison(type), v,
                                     pestle_llvm_i64(e, 0), "");
  }
  // What lies behind is never picked.
  for (unsigned i = 0; i < wide; ++i)
    lane[i] = i < lanes ? i : 0;
  LLVMValueRef poison = e->ll->GetPoison(e->ll->TypeOf(v));
  return shuffled(e, v, poison, lane, wide);
}

static LLVMValueRef shuffle(pestle_llvm_emit_t* e, const pestle_kir_inst_t* n) {
  const pestle_kir_t* k = e->k;
  unsigned first = pestle_llvm_inst(e, n->arg[0])->lanes;
  unsigned second = pestle_llvm_inst(e, n->arg[1])->lanes;
  unsigned wide = first > second ? first : second;
  if (wide < 2) wide = 2;
  uint32_t lane[PESTLE_KIR_MAX_LANES];
  pestle_kir_table_t table = {0};
  if (n->arg[2] < k->table_count) table = k->table[n->arg[2]];
  bool fits = table.count == n->lanes && table.first <= k->table_word_count &&
              k->table_word_count - table.first >= table.count;
  for (unsigned i = 0; fits && i < n->lanes; ++i) {
    uint32_t at = k->table_word[table.first + i];
    fits = at < first + second;
    lane[i] = at < first ? at : at - first + wide;
  }
  if (!fits) {
    return pestle_llvm_fail(e, (pestle_dtype_t)n->type, n->lanes,
                            PESTLE_STATUS_MALFORMED,
                            "a shuffle names lanes that are not");
  }
  LLVMValueRef a = padded(e, pestle_llvm_get(e, n->arg[0]), first, wide);
  LLVMValueRef b = padded(e, pestle_llvm_get(e, n->arg[1]), second, wide);
  LLVMValueRef r = shuffled(e, a, b, lane, n->lanes);
  if (n->lanes > 1) return r;
  return e->ll->BuildExtractElement(e->b, r, pestle_llvm_i64(e, 0), "");
}

// Halves folded onto each other: an order that is the same on every target and
// needs no permission to reassociate.
static void reduce(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  unsigned lanes = pestle_llvm_inst(e, n->arg[0])->lanes;
  pestle_llvm_row_args_t a = {.dtype = pestle_llvm_dtype(e, n->arg[0]),
                              .facts = n->facts};
  LLVMValueRef v = pestle_llvm_get(e, n->arg[0]);
  if (lanes & (lanes - 1)) {
    v = pestle_llvm_fail(e, a.dtype, 1, PESTLE_STATUS_UNSUPPORTED,
                         "a reduction's lanes are not a power of two");
    lanes = 1;
  }
  for (unsigned half = lanes / 2; half; half /= 2) {
    uint32_t low[PESTLE_KIR_MAX_LANES], high[PESTLE_KIR_MAX_LANES];
    for (unsigned i = 0; i < half; ++i) {
      low[i] = i;
      high[i] = i + half;
    }
    LLVMValueRef poison = e->ll->GetPoison(e->ll->TypeOf(v));
    a.lanes = half;
    if (half > 1) {
      a.x[0] = shuffled(e, v, poison, low, half);
      a.x[1] = shuffled(e, v, poison, high, half);
    } else {
      a.x[0] = e->ll->BuildExtractElement(e->b, v, pestle_llvm_i64(e, 0), "");
      a.x[1] = e->ll->BuildExtractElement(e->b, v, pestle_llvm_i64(e, 1), "");
    }
    v = pestle_llvm_emit_row(e, n->arg[1], &a);
  }
  pestle_llvm_set(e, id, v);
}

static LLVMValueRef extract(pestle_llvm_emit_t* e, const pestle_kir_inst_t* n) {
  LLVMValueRef v = pestle_llvm_get(e, n->arg[0]);
  unsigned lanes = pestle_llvm_inst(e, n->arg[0])->lanes;
  if (n->arg[1] >= lanes) {
    return pestle_llvm_fail(e, (pestle_dtype_t)n->type, 1,
                            PESTLE_STATUS_MALFORMED,
                            "extract names a lane that is not");
  }
  if (lanes == 1) return v;
  return e->ll->BuildExtractElement(e->b, v, pestle_llvm_i64(e, n->arg[1]), "");
}

static LLVMValueRef insert(pestle_llvm_emit_t* e, const pestle_kir_inst_t* n) {
  LLVMValueRef v = pestle_llvm_get(e, n->arg[0]);
  LLVMValueRef one = pestle_llvm_get(e, n->arg[1]);
  if (n->arg[2] >= n->lanes) {
    return pestle_llvm_fail(e, (pestle_dtype_t)n->type, n->lanes,
                            PESTLE_STATUS_MALFORMED,
                            "insert names a lane that is not");
  }
  if (n->lanes == 1) return one;
  return e->ll->BuildInsertElement(e->b, v, one, pestle_llvm_i64(e, n->arg[2]),
                                   "");
}

void pestle_llvm_emit_lane(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  if (n->op == PESTLE_KIR_MADI) madi(e, id);
  if (n->op == PESTLE_KIR_MASK) mask(e, id);
  if (n->op == PESTLE_KIR_SHUFFLE) pestle_llvm_set(e, id, shuffle(e, n));
  if (n->op == PESTLE_KIR_REDUCE) reduce(e, id);
  if (n->op == PESTLE_KIR_IOTA) {
    pestle_llvm_set(e, id, iota(e, e->type[n->type], n->lanes));
  }
  if (n->op == PESTLE_KIR_SPLAT) {
    LLVMValueRef v = pestle_llvm_get(e, n->arg[0]);
    pestle_llvm_set(e, id, pestle_llvm_splat(e, v, n->lanes));
  }
  if (n->op == PESTLE_KIR_EXTRACT) pestle_llvm_set(e, id, extract(e, n));
  if (n->op == PESTLE_KIR_INSERT) pestle_llvm_set(e, id, insert(e, n));
}
