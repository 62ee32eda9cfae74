// SPDX-License-Identifier: Apache-2.0
// Range analysis: whether every INDEX of a kernel lies within 32 bits, by
// intervals in one walk. An unknown value has all 64 bits.
#include "plugins/common/c_printer_internal.h"

typedef struct range_t {
  int64_t lo, hi;
} range_t;

static const range_t everything = {INT64_MIN, INT64_MAX};

static bool is_bounded(range_t r) {
  // Far from where the sums below overflow.
  const int64_t far = INT64_C(1) << 40;
  return r.lo >= -far && r.hi <= far;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static range_t sum(range_t a, range_t b) {
  if (!is_bounded(a) || !is_bounded(b)) return everything;
  return (range_t){a.lo + b.lo, a.hi + b.hi};
}

static range_t product(range_t a, range_t b) {
  const int64_t far = INT64_C(1) << 31;
  if (a.lo < -far || a.hi > far || b.lo < -far || b.hi > far) {
    return everything;
  }
  int64_t p = a.lo * b.lo, q = a.lo * b.hi, r = a.hi * b.lo, s = a.hi * b.hi;
  return (range_t){least(least(p, q), least(r, s)),
                   most(most(p, q), most(r, s))};
}

static range_t of_dtype(unsigned dtype) {
  const pestle_dtype_info_t* info = pestle_dtype_info((pestle_dtype_t)dtype);
  if (info->bits > 32 || !(info->kind & (PESTLE_KIND_INT | PESTLE_KIND_BOOL))) {
    return everything;
  }
  if (!(info->kind & PESTLE_KIND_SIGNED)) {
    return (range_t){0, (INT64_C(1) << info->bits) - 1};
  }
  int64_t half = INT64_C(1) << (info->bits - 1);
  return (range_t){-half, half - 1};
}

// Of a quotient or a remainder by something positive.
static range_t divided(range_t a, range_t b, bool remainder) {
  if (b.lo < 1 || !is_bounded(a)) return everything;
  if (!remainder) {
    return (range_t){a.lo < 0 ? a.lo / b.lo - 1 : a.lo / b.hi,
                     a.hi < 0 ? a.hi / b.hi : a.hi / b.lo};
  }
  return (range_t){a.lo < 0 ? -(b.hi - 1) : 0, least(most(a.hi, 0), b.hi - 1)};
}

// Of or and xor: no bit is set above the highest of either.
static range_t joined(range_t a, range_t b) {
  if (!is_bounded(a) || !is_bounded(b) || a.lo < 0 || b.lo < 0) {
    return everything;
  }
  int64_t hi = 1;
  while (hi <= most(a.hi, b.hi))
    hi *= 2;
  return (range_t){0, hi - 1};
}

static range_t of_scalar(unsigned op, range_t a, range_t b, range_t c) {
  switch (op) {
    case PESTLE_KIR_ADD:
      return sum(a, b);
    case PESTLE_KIR_SUBTRACT:
      if (!is_bounded(b)) return everything;
      return sum(a, (range_t){-b.hi, -b.lo});
    case PESTLE_KIR_MULTIPLY:
      return product(a, b);
    case PESTLE_KIR_DIVIDE:
    case PESTLE_KIR_REMAINDER:
      return divided(a, b, op == PESTLE_KIR_REMAINDER);
    case PESTLE_KIR_MAXIMUM:
      return (range_t){most(a.lo, b.lo), most(a.hi, b.hi)};
    case PESTLE_KIR_MINIMUM:
      return (range_t){least(a.lo, b.lo), least(a.hi, b.hi)};
    case PESTLE_KIR_CLAMP:
      return (range_t){least(most(b.lo, a.lo), c.lo),
                       least(most(b.hi, a.hi), c.hi)};
    case PESTLE_KIR_SELECT:
      return (range_t){least(b.lo, c.lo), most(b.hi, c.hi)};
    case PESTLE_KIR_AND:
      if (b.lo >= 0) return (range_t){0, b.hi};
      return everything;
    case PESTLE_KIR_OR:
    case PESTLE_KIR_XOR:
      return joined(a, b);
    default:
      return everything;
  }
}

static range_t of_inst(const range_t* known, const pestle_kir_inst_t* n) {
  range_t x[3] = {everything, everything, everything};
  const char* letters = pestle_kir_op_info(n->op).operands;
  for (int a = 0; a < 3 && letters[a]; ++a) {
    if (letters[a] == 'v') x[a] = known[n->arg[a]];
  }
  switch (n->op) {
    case PESTLE_KIR_CONST: {
      int64_t value = pestle_kir_const_int(n);
      return (range_t){value, value};
    }
    case PESTLE_KIR_FOR:
      return (range_t){x[0].lo, most(x[0].lo, x[1].hi)};
    case PESTLE_KIR_MADI: {
      int64_t by = (int32_t)n->arg[1];
      return sum(product(x[0], (range_t){by, by}), x[2]);
    }
    case PESTLE_KIR_IOTA:
      return (range_t){0, n->lanes};
    case PESTLE_KIR_CAST:
    case PESTLE_KIR_SPLAT:
    case PESTLE_KIR_EXTRACT:
      return x[0];
    case PESTLE_KIR_INSERT:
    case PESTLE_KIR_SHUFFLE:
      return (range_t){least(x[0].lo, x[1].lo), most(x[0].hi, x[1].hi)};
    default:
      return of_scalar(n->op, x[0], x[1], x[2]);
  }
}

bool pestle_c_printer_indices_fit(const pestle_host_t* host,
                                  const pestle_kir_t* k, bool* out_fit) {
  size_t size = (size_t)(k->inst_count + 1) * sizeof(range_t);
  range_t* known = host->alloc(host->self, size);
  *out_fit = true;
  if (!known) return false;
  for (uint32_t i = 0; i < k->inst_count; ++i) {
    const pestle_kir_inst_t* n = pestle_kir_inst(k, i);
    known[i] = of_dtype(n->type);
    if (!pestle_dtype_is((pestle_dtype_t)n->type,
                         PESTLE_KIND_INT | PESTLE_KIND_BOOL)) {
      continue;
    }
    range_t made = of_inst(known, n);
    if (n->type != PESTLE_INDEX) {
      // What does not wrap, of an integer of at most 32 bits.
      if (made.lo >= known[i].lo && made.hi <= known[i].hi) known[i] = made;
      continue;
    }
    known[i] = made;
    // A run of lanes goes on from an index.
    if (known[i].lo < INT32_MIN ||
        known[i].hi > INT32_MAX - (int64_t)PESTLE_KIR_MAX_LANES) {
      *out_fit = false;
    }
  }
  for (uint32_t b = 0; b < k->buffer_count; ++b) {
    if (pestle_kir_buffer(k, b)->count > INT32_MAX) *out_fit = false;
  }
  host->free(host->self, known, size);
  return true;
}
