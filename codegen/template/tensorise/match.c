// SPDX-License-Identifier: Apache-2.0
// Which products warpgroups take: plain matrices of 16-bit floats, or of bytes, whose
// boxes the copy engine can bring.
#include "codegen/template/tensorise/tensorise.h"

#include "base/bits.h"
#include "codegen/schedule/schedule.h"
#include "ir/dot_algorithm.h"

enum {
  RUN = 8,  // elements of 16 bytes: what boxes are copied by
  WARPGROUP_ROWS = 64,
  MOST_COLUMNS = 256,
  CHUNK = 64,  // columns that a box of a transposed operand has
  FEWEST_SLOTS = 3,
  MOST_SLOTS = 8,
  SWIZZLED_ROWS = 8,
};

// --- Is it one? ---

typedef struct side_t {
  const pestle_nest_t* nest;
  const pestle_nest_stage_t* s;
  int64_t coef[PESTLE_NEST_MAX_AXES];  // by position among the roots
  int64_t offset;
  uint32_t tensor;
  pestle_dtype_t dtype;
} side_t;

static bool is_byte(pestle_dtype_t dtype) {
  return dtype == PESTLE_I8 || dtype == PESTLE_U8;
}

// Narrow floats in f32, or bytes, or 8-bit floats that are multiplied as such, which were
// widened at once.
static bool is_type(const side_t* side, uint32_t casts) {
  if (side->s->acc_dtype == PESTLE_I32) {
    return is_byte(side->dtype) && casts == 1;
  }
  if (side->s->factors == PESTLE_FACTORS_F8)
    return pestle_dot_is_f8(side->dtype) && casts == 1;
  if (side->dtype == PESTLE_F32) {
    return !casts &&
           (side->nest->is_fast || side->s->factors == PESTLE_FACTORS_TF32);
  }
  return side->dtype == PESTLE_BF16 || side->dtype == PESTLE_F16;
}

static bool read_side(const pestle_expr_t* x, side_t* side) {
  uint32_t casts = 0;
  for (; x->kind == PESTLE_EXPR_CAST; ++casts)
    x = x->args[0];
  if (x->kind != PESTLE_EXPR_READ || x->guard) return false;
  const pestle_nest_tensor_t* t = &side->nest->tensors.data[x->i];
  side->tensor = (uint32_t)x->i;
  side->dtype = t->type.dtype;
  if (t->kind != PESTLE_TENSOR_INPUT || t->pack || !is_type(side, casts)) {
    return false;
  }
  const pestle_affine_t* at = x->index[0];
  side->offset = at->constant;
  uint32_t found = 0;
  for (uint32_t i = 0; i < side->s->root_count; ++i) {
    bool nested;
    side->coef[i] = pestle_affine_coef(at, side->s->roots[i], &nested);
    if (nested || side->coef[i] < 0) return false;
    found += side->coef[i] != 0;
  }
  return found == at->count;
}

// Runs of 16 bytes, and strides that a box may have.
static bool can_copy(const pestle_matrix_t* x, int64_t rows, int64_t depth) {
  bool along_k = x->k_stride == 1, along_rows = x->row_stride == 1;
  if (!along_k && !along_rows) return false;
  int64_t other = along_k ? x->row_stride : x->k_stride;
  int64_t others = along_k ? rows : depth;
  return x->offset % RUN == 0 && (others == 1 || other % RUN == 0) &&
         x->batch_stride % RUN == 0 && other != 0;
}

// Counts pairs of bytes, where they lie along k and begin at whole pairs.
static bool take_pairs(pestle_matrix_t* x) {
  if (x->k_stride != 1 || x->offset % 2 || x->row_stride % 2 ||
      x->batch_stride % 2) {
    return false;
  }
  x->offset /= 2;
  x->row_stride /= 2;
  x->batch_stride /= 2;
  return true;
}

// Counts halves of f32, which lie along k.
static bool take_halves(pestle_matrix_t* x) {
  if (x->k_stride != 1) return false;
  x->offset *= 2;
  x->row_stride *= 2;
  x->batch_stride *= 2;
  return true;
}

// The types of operands, and how much of what they count.
static bool take_types(pestle_dtype_t a, pestle_dtype_t b,
                       pestle_tensorise_t* p) {
  p->dtype = a;
  p->how = a == PESTLE_F16 ? (uint32_t)PESTLE_KIR_WGMMA_F16 : 0u;
  bool floats = p->sums == PESTLE_F32;
  if (a == PESTLE_F32 && b == a) {
    p->dtype = PESTLE_BF16;
    p->how = PESTLE_KIR_WGMMA_TF32;
    p->k *= 2;
    return take_halves(&p->a) && take_halves(&p->b);
  }
  if (floats && !pestle_dot_is_f8(a)) return a == b;
  p->dtype = PESTLE_BF16;
  if (floats) {
    p->how = PESTLE_KIR_WGMMA_F8;
    if (a == PESTLE_F8E5M2) p->how |= PESTLE_KIR_WGMMA_A_E5M2;
    if (b == PESTLE_F8E5M2) p->how |= PESTLE_KIR_WGMMA_B_E5M2;
  } else {
    p->how = PESTLE_KIR_WGMMA_BYTES;
    if (a == PESTLE_I8) p->how |= PESTLE_KIR_WGMMA_A_SIGNED;
    if (b == PESTLE_I8) p->how |= PESTLE_KIR_WGMMA_B_SIGNED;
  }
  if (p->k % 2 || !take_pairs(&p->a) || !take_pairs(&p->b)) return false;
  p->k /= 2;
  return true;
}

// The last stage reads the sums at its own axes.
static bool is_aligned(pestle_nest_t* nest, uint32_t reduce) {
  const pestle_nest_stage_t* f = pestle_nest_stage(nest, reduce);
  uint32_t last = (uint32_t)nest->stages.size - 1;
  const pestle_nest_stage_t* y = pestle_nest_stage(nest, last);
  if (y->is_reduction || f->map_count != y->map_count || reduce == last)
    return false;
  const pestle_expr_t* read =
      pestle_schedule_find_read(nest, last, f->tensors[0]);
  if (!read || read->guard) return false;
  for (uint32_t i = 0; i < f->map_count; ++i) {
    const pestle_nest_axis_t* own = &nest->axes.data[y->roots[i]];
    if (own->full_extent != nest->axes.data[f->roots[i]].full_extent) {
      return false;
    }
    if (own->full_extent == 1) continue;
    if (pestle_affine_is_axis(read->index[i]) != (int32_t)y->roots[i]) {
      return false;
    }
  }
  return true;
}

static bool is_sum(pestle_nest_t* nest, const pestle_nest_stage_t* s) {
  const pestle_expr_t* x = s->values[0];
  if (!s->is_reduction || s->reduce != PESTLE_OP_ADD || s->combine ||
      s->value_count != 1 ||
      (s->acc_dtype != PESTLE_F32 && s->acc_dtype != PESTLE_I32) ||
      s->map_count < 2 || s->root_count <= s->map_count ||
      x->kind != PESTLE_EXPR_OP || x->op != PESTLE_OP_MULTIPLY ||
      x->dtype != s->acc_dtype || s->inits[0]->kind != PESTLE_EXPR_CONST ||
      s->inits[0]->f != 0 || s->inits[0]->i != 0) {
    return false;
  }
  for (uint32_t i = 0; i < s->root_count; ++i) {
    if (!pestle_nest_axis_is_whole(&nest->axes.data[s->roots[i]])) {
      return false;
    }
  }
  return true;
}

static bool find_matrices(pestle_nest_t* nest, const pestle_nest_stage_t* s,
                          pestle_tensorise_t* out) {
  uint32_t maps = s->map_count;
  const pestle_expr_t* x = s->values[0];
  if (maps > 3 || s->root_count != maps + 1) return false;
  side_t a = {.nest = nest, .s = s}, b = {.nest = nest, .s = s};
  if (!read_side(x->args[0], &a) || !read_side(x->args[1], &b)) return false;
  uint32_t m = maps - 2, n = maps - 1, k = maps;
  if (a.coef[n]) {
    side_t swap = a;
    a = b;
    b = swap;
  }
  if (a.coef[n] || b.coef[m]) return false;
  const pestle_nest_stage_t* y =
      pestle_nest_stage(nest, (uint32_t)nest->stages.size - 1);
  bool batch = maps == 3;
  *out = (pestle_tensorise_t){
      .a = {a.tensor, a.offset, a.coef[m], a.coef[k], batch ? a.coef[0] : 0},
      .b = {b.tensor, b.offset, b.coef[n], b.coef[k], batch ? b.coef[0] : 0},
      .batch = batch ? nest->axes.data[s->roots[0]].full_extent : 1,
      .m = nest->axes.data[s->roots[m]].full_extent,
      .n = nest->axes.data[s->roots[n]].full_extent,
      .k = nest->axes.data[s->roots[k]].full_extent,
      .sums = (pestle_dtype_t)s->acc_dtype,
      .batch_axis = batch ? y->roots[0] : UINT32_MAX,
      .n_axis = y->roots[n],
      .m_count = 1,
      .m_axis = {y->roots[m]}};
  out->m_extent[0] = out->m;
  out->sum_rank = maps;
  for (uint32_t d = 0; d < maps; ++d)
    out->sum_axis[d] = (int32_t)y->roots[d];
  return out->m > 0 && out->n > 0 && out->k > 0 && out->batch > 0 &&
         take_types(a.dtype, b.dtype, out) && out->n % 2 == 0 &&
         can_copy(&out->a, out->m, out->k) && can_copy(&out->b, out->n, out->k);
}

bool pestle_tensorise_find(pestle_nest_t* nest, uint32_t reduce,
                           pestle_tensorise_t* out) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, reduce);
  if (!is_sum(nest, s)) return false;
  return (is_aligned(nest, reduce) && find_matrices(nest, s, out)) ||
         (s->acc_dtype == PESTLE_F32 &&
          pestle_tensorise_find_window(nest, reduce, out));
}

int64_t pestle_tensorise_steps(const pestle_tensorise_t* p) {
  int64_t depth = p->window.rank ? p->window.channels : p->k, taps = 1;
  for (uint32_t d = 0; d < p->window.rank; ++d)
    taps *= p->window.dim[d].taps;
  return taps * pestle_ceil_div(depth, PESTLE_TENSORISE_DEPTH);
}

// On an H200 16 x 8,192 x 8,192 takes 40.2 us so, 44.7 by boxes that end far behind the
// matrix.
int64_t pestle_tensorise_copied_rows(const pestle_tensorise_t* p,
                                     int64_t rows) {
  int64_t there = pestle_ceil_div(p->m, SWIZZLED_ROWS) * SWIZZLED_ROWS;
  bool few = !p->window.rank && p->a.k_stride == 1 && rows == WARPGROUP_ROWS &&
             2 * there <= rows;
  return few ? there : rows;
}

// --- The primitive ---

pestle_tensorise_how_t pestle_tensorise_of(const pestle_nest_template_t* use) {
  return (pestle_tensorise_how_t){.rows = use->ints[0],
                                  .columns = use->ints[1],
                                  .groups = use->ints[2],
                                  .group_bytes = use->ints[3],
                                  .cluster = use->ints[4],
                                  .parts = use->ints[5],
                                  .slots = use->ints[6],
                                  .apart = use->ints[7] != 0};
}

static bool is_tile(int64_t extent, int64_t most) {
  return extent >= WARPGROUP_ROWS && extent <= most &&
         extent % WARPGROUP_ROWS == 0;
}

static bool is_cluster(int64_t groups, int64_t most) {
  return groups == 1 || groups == 2 || (groups == 4 && most == 4);
}

pestle_status_t pestle_tensorise_match(pestle_nest_t* nest,
                                       const pestle_nest_template_t* use) {
  pestle_tensorise_t product;
  pestle_tensorise_how_t how = pestle_tensorise_of(use);
  const char* name = pestle_nest_stage(nest, use->stage)->name;
  if (!pestle_tensorise_find(nest, use->stage, &product)) {
    PESTLE_TRY(pestle_nest_status(nest));
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "tensorise %s: it must be a product of two matrices of "
                        "f16 or bf16, whose rows or columns are runs of 16 "
                        "bytes, or of bytes in i32, 8-bit floats or f32 as "
                        "tf32 with such rows, or a convolution of such "
                        "channels",
                        name);
  }
  bool clusters = (how.cluster == 1 || how.parts == 1) &&
                  is_cluster(how.cluster, 2) && is_cluster(how.parts, 4) &&
                  how.columns % (how.cluster * CHUNK) == 0;
  if (!clusters || how.slots < FEWEST_SLOTS || how.slots > MOST_SLOTS) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "tensorise %s: groups are alone, 2 that share columns of whole 64, or "
        "2 or 4 that share a tile's k, with 3 to %d slots, not %lld, %lld and "
        "%lld",
        name, MOST_SLOTS, (long long)how.cluster, (long long)how.parts,
        (long long)how.slots);
  }
  // Sums of parts wait beside the fewest slots.
  int64_t slot = (how.rows + how.columns) * PESTLE_TENSORISE_DEPTH *
                 (int64_t)pestle_dtype_size(product.dtype);
  int64_t least = FEWEST_SLOTS * slot + 4 * how.rows * how.columns;
  if (how.parts > 1 && least > how.group_bytes) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "tensorise %s: parts of k of a tile of %lld x %lld take "
        "%lld bytes of shared memory, and groups have %lld",
        name, (long long)how.rows, (long long)how.columns, (long long)least,
        (long long)how.group_bytes);
  }
  if (how.apart && (product.sums != PESTLE_F32 ||
                    how.columns > PESTLE_TENSORISE_APART_COLUMNS ||
                    how.rows * how.columns > PESTLE_TENSORISE_APART_SUMS)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "tensorise %s: sums of steps apart are of f32, at most "
                        "%d and %d columns, which registers hold twice",
                        name, PESTLE_TENSORISE_APART_SUMS,
                        PESTLE_TENSORISE_APART_COLUMNS);
  }
  if (is_tile(how.rows, 4 * WARPGROUP_ROWS) &&
      is_tile(how.columns, MOST_COLUMNS) && how.groups > 0 &&
      how.group_bytes >= 0 && how.groups <= INT32_MAX &&
      how.group_bytes <= INT32_MAX) {
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "tensorise %s %lld %lld: tiles are of 64 to 256 rows and "
                      "columns, multiples of 64, made by at least one group",
                      name, (long long)how.rows, (long long)how.columns);
}

// Results are computed in pairs.
pestle_status_t pestle_tensorise_apply(pestle_nest_t* nest,
                                       const pestle_nest_template_t* use) {
  pestle_tensorise_t product;
  uint32_t outer, inner, last = (uint32_t)nest->stages.size - 1;
  if (!pestle_tensorise_find(nest, use->stage, &product)) {
    return pestle_nest_status(nest);
  }
  PESTLE_TRY(
      pestle_schedule_split(nest, last, product.n_axis, 2, &outer, &inner));
  return pestle_schedule_mark(nest, last, inner, PESTLE_MARK_VECTOR);
}
