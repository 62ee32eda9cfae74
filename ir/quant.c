// SPDX-License-Identifier: Apache-2.0
#include "ir/quant.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ir/built.h"
#include "ir/infer.h"

typedef pestle_value_t pv_t;

// --- Reading ---

static pestle_status_t no_quant(pestle_str_t text) {
  return PESTLE_ERROR(MALFORMED,
                      "'!quant.uniform<%.*s>' is no quantised type such as "
                      "!quant.uniform<i8:f32, 0.1:3>",
                      text.size > 100 ? 100 : (int)text.size, text.data);
}

// Takes what stands before |sign| off |rest|; all of it where there is none.
static pestle_str_t upto(pestle_str_t* rest, char sign, bool* found) {
  size_t at = pestle_str_find_char(*rest, sign);
  pestle_str_t out = *rest;
  *found = at != SIZE_MAX;
  if (*found) {
    out.size = at;
    rest->data += at + 1;
    rest->size -= at + 1;
  } else {
    rest->size = 0;
  }
  return pestle_str_trim(out);
}

static pestle_dtype_t dtype_named(pestle_str_t name) {
  char text[32];
  if (name.size >= sizeof(text)) return PESTLE_NONE;
  memcpy(text, name.data, name.size);
  text[name.size] = 0;
  // MLIR writes u8 here and ui8 elsewhere.
  if (text[0] == 'u' && text[1] != 'i' && name.size + 2 < sizeof(text)) {
    memmove(text + 2, text + 1, name.size);
    text[1] = 'i';
  }
  return pestle_dtype_from_name(text);
}

// "i8", "i8<-127:127>"
static bool read_storage(pestle_str_t text, pestle_quant_t* out) {
  bool ranged, more;
  pestle_str_t name = upto(&text, '<', &ranged);
  out->storage = dtype_named(name);
  if (!pestle_dtype_is(out->storage, PESTLE_KIND_INT)) return false;
  size_t bits = pestle_dtype_info(out->storage)->bits;
  bool is_signed = pestle_dtype_is(out->storage, PESTLE_KIND_SIGNED);
  if (bits > 32) return false;
  out->high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
  out->low = is_signed ? -out->high - 1 : 0;
  if (!ranged) return true;
  if (!text.size || text.data[text.size - 1] != '>') return false;
  --text.size;
  pestle_str_t low = upto(&text, ':', &more);
  return more && pestle_str_parse_i64(low, &out->low) &&
         pestle_str_parse_i64(pestle_str_trim(text), &out->high);
}

// "0.1:3", "0.1"
static bool read_pair(pestle_str_t text, double* scale, int64_t* zero) {
  bool more;
  pestle_str_t first = upto(&text, ':', &more);
  *zero = 0;
  return pestle_str_parse_f64(first, scale) && *scale > 0 && isfinite(*scale) &&
         (!more || pestle_str_parse_i64(pestle_str_trim(text), zero));
}

// "0.1:3", "0.1, 0.2:1"; |*out_fits| is false for what is none.
static pestle_status_t read_pairs(pestle_arena_t* arena, pestle_str_t text,
                                  pestle_quant_t* out, bool* out_fits) {
  size_t count = 1;
  pestle_str_t pair;
  for (size_t i = 0; i < text.size; ++i)
    count += text.data[i] == ',';
  double* scales = PESTLE_ARENA_ARRAY(arena, double, count);
  int64_t* zeros = PESTLE_ARENA_ARRAY(arena, int64_t, count);
  if (!scales || !zeros) return PESTLE_OOM();
  out->scales = scales;
  out->zeros = zeros;
  while (pestle_str_next(&text, ',', &pair)) {
    if (!read_pair(pestle_str_trim(pair), scales + out->count,
                   zeros + out->count)) {
      return NULL;
    }
    ++out->count;
  }
  *out_fits = out->count > 0;
  return NULL;
}

// "f32", "f32:1"
static bool read_expressed(pestle_str_t text, pestle_quant_t* out) {
  bool more;
  int64_t axis;
  pestle_str_t name = upto(&text, ':', &more);
  out->expressed = dtype_named(name);
  out->axis = -1;
  if (!pestle_dtype_is(out->expressed, PESTLE_KIND_FLOAT)) return false;
  if (!more) return true;
  if (!pestle_str_parse_i64(pestle_str_trim(text), &axis) || axis < 0 ||
      axis >= PESTLE_MAX_RANK) {
    return false;
  }
  out->axis = (int32_t)axis;
  return true;
}

pestle_status_t pestle_quant_parse(pestle_arena_t* arena, pestle_str_t text,
                                   const pestle_quant_t** out) {
  pestle_quant_t* q = PESTLE_ARENA_NEW(arena, pestle_quant_t);
  if (!q) return PESTLE_OOM();
  memset(q, 0, sizeof(*q));
  *out = q;
  // The range of the storage has a ':' of its own.
  size_t range = pestle_str_find_char(text, '>');
  size_t colon = pestle_str_find_char(text, ':');
  size_t angle = pestle_str_find_char(text, '<');
  bool ranged = angle != SIZE_MAX && angle < colon && range != SIZE_MAX;
  size_t end = ranged ? range + 1 : colon;
  if (end == SIZE_MAX || end >= text.size || text.data[end] != ':') {
    return no_quant(text);
  }
  pestle_str_t storage = pestle_str_make(text.data, end);
  pestle_str_t rest = pestle_str_make(text.data + end + 1, text.size - end - 1);
  bool more;
  pestle_str_t expressed = upto(&rest, ',', &more);
  rest = pestle_str_trim(rest);
  if (pestle_str_find_char(expressed, '{') != SIZE_MAX) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "'!quant.uniform<%.*s>' has scales of blocks, which "
                        "are not supported",
                        text.size > 100 ? 100 : (int)text.size, text.data);
  }
  bool along =
      rest.size >= 2 && rest.data[0] == '{' && rest.data[rest.size - 1] == '}';
  if (along) {
    rest.data += 1;
    rest.size -= 2;
  }
  bool fits = false;
  if (more && read_storage(pestle_str_trim(storage), q) &&
      read_expressed(expressed, q)) {
    PESTLE_TRY(read_pairs(arena, rest, q, &fits));
  }
  fits = fits && along == (q->axis >= 0) && (along || q->count == 1);
  return fits ? NULL : no_quant(text);
}

// --- Which way ---

static bool is_same(const pestle_quant_t* a, const pestle_quant_t* b) {
  if (a == b) return true;
  if (!a || !b || a->storage != b->storage || a->expressed != b->expressed ||
      a->count != b->count || a->low != b->low || a->high != b->high) {
    return false;
  }
  return !memcmp(a->scales, b->scales, a->count * sizeof(double)) &&
         !memcmp(a->zeros, b->zeros, a->count * sizeof(int64_t));
}

// Ops that give elements as they take them, or leave what they do to a region.
static bool moves(const pestle_generic_t* g) {
  if (g->built) {
    static const char* const counts[] = {"dot", "einsum", "unary_einsum",
                                         "dynamic_conv"};
    pestle_str_t name = pestle_str(g->built->name), dialect;
    if (!pestle_str_next(&name, '.', &dialect) ||
        !pestle_str_equal_c(dialect, "stablehlo")) {
      return false;
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); ++i) {
      if (pestle_str_equal_c(name, counts[i])) return false;
    }
    return true;
  }
  const pestle_op_info_t* info = pestle_op_info(g->op);
  bool inside = info->fuse == PESTLE_FUSE_REDUCTION ||
                info->fuse == PESTLE_FUSE_WINDOW || g->op == PESTLE_OP_SORT ||
                g->op == PESTLE_OP_SCATTER || g->op == PESTLE_OP_MAP ||
                g->op == PESTLE_OP_SELECT_AND_SCATTER;
  return inside || info->fuse == PESTLE_FUSE_VIEW ||
         info->fuse == PESTLE_FUSE_GATHER ||
         info->fuse == PESTLE_FUSE_CONTROL || g->op == PESTLE_OP_CONSTANT ||
         g->op == PESTLE_OP_SELECT || g->op == PESTLE_OP_DYNAMIC_UPDATE_SLICE;
}

bool pestle_quant_needs(const pestle_generic_t* g,
                        const pestle_quant_t* const* operands,
                        size_t operand_count,
                        const pestle_quant_t* const* results,
                        size_t result_count) {
  const pestle_quant_t* first = NULL;
  bool same = true, control;
  for (size_t i = 0; i < operand_count + result_count; ++i) {
    const pestle_quant_t* q =
        i < operand_count ? operands[i] : results[i - operand_count];
    if (!q) continue;
    if (!first) first = q;
    same = same && is_same(first, q);
  }
  if (!first) return false;
  // The bits are those of the storage.
  if (!g->built && g->op == PESTLE_OP_BITCAST_CONVERT) return false;
  // Loops, branches and calls carry values of any types.
  control = !g->built && pestle_op_info(g->op)->fuse == PESTLE_FUSE_CONTROL;
  return !moves(g) || (!same && !control);
}

// --- To numbers and back ---

// Scales, or zeros in |dtype|, as a constant of rank 0, or 1 along the axis.
static pv_t* parameters(pestle_formula_t* f, const pestle_quant_t* q,
                        pestle_dtype_t dtype, bool zeros) {
  int64_t count = (int64_t)q->count;
  pestle_type_t type = pestle_type_make(dtype, q->axis < 0 ? 0 : 1, &count);
  double* values =
      PESTLE_ARENA_ARRAY(&f->builder.module->arena, double, q->count);
  if (!values && !f->status) f->status = PESTLE_OOM();
  if (f->status) return NULL;
  for (size_t i = 0; i < q->count; ++i)
    values[i] = zeros ? (double)q->zeros[i] : q->scales[i];
  return q->axis < 0 ? pestle_f_number(f, &type, values[0])
                     : pestle_f_numbers(f, &type, values);
}

// The same in the shape of |like|.
static pv_t* spread(pestle_formula_t* f, const pestle_quant_t* q,
                    pestle_dtype_t dtype, bool zeros, const pv_t* like) {
  pv_t* a = parameters(f, q, dtype, zeros);
  int64_t axis = q->axis;
  if (!a || !like) return NULL;
  return pestle_f_broadcast(f, a, like->type->rank, like->type->dims,
                            (pestle_i64s_t){&axis, q->axis < 0 ? 0 : 1});
}

static pestle_status_t check_axis(const pestle_quant_t* q,
                                  const pestle_type_t* type) {
  if (q->axis < 0) return NULL;
  if (q->axis < type->rank && type->dims[q->axis] == (int64_t)q->count) {
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED,
                      "%s has %zu scales along axis %d: one for each element "
                      "there is needed",
                      pestle_type_text(type).text, q->count, (int)q->axis);
}

// Regions, which hold numbers of rank 0, have scalar ops alone.
static bool has_row(const pestle_quant_t* q, const pv_t* x) {
  return x->type->rank > 0 && pestle_dtype_info(q->storage)->bits <= 16 &&
         (q->expressed == PESTLE_F32 || q->expressed == PESTLE_F16 ||
          q->expressed == PESTLE_BF16);
}

static pv_t* with_row(pestle_formula_t* f, pestle_op_t op, pv_t* x,
                      const pestle_quant_t* q) {
  pv_t* operands[3] = {x, parameters(f, q, q->expressed, false), NULL};
  operands[2] = parameters(f, q, q->storage, true);
  pestle_attr_t axis = PESTLE_SET_I64(axis, q->axis < 0 ? 0 : q->axis);
  return pestle_f_make(f, op, operands, 3, &axis, 1, NULL);
}

static pv_t* dequantized(pestle_formula_t* f, pv_t* x,
                         const pestle_quant_t* q) {
  if (!f->status) f->status = check_axis(q, x->type);
  if (f->status) return NULL;
  if (has_row(q, x)) return with_row(f, PESTLE_OP_DEQUANTIZE, x, q);
  pv_t* y = pestle_f_convert(f, x, q->expressed);
  y = pestle_f_subtract(f, y, spread(f, q, q->expressed, true, y));
  return pestle_f_multiply(f, y, spread(f, q, q->expressed, false, y));
}

static bool is_whole_range(const pestle_quant_t* q) {
  size_t bits = pestle_dtype_info(q->storage)->bits;
  return q->high - q->low == (INT64_C(1) << bits) - 1;
}

static pv_t* quantized(pestle_formula_t* f, pv_t* x, const pestle_quant_t* q) {
  if (!x) return NULL;
  if (!f->status) f->status = check_axis(q, x->type);
  if (f->status) return NULL;
  if (has_row(q, x) && is_whole_range(q)) {
    return with_row(f, PESTLE_OP_QUANTIZE, x, q);
  }
  pv_t* y = pestle_f_divide(f, x, spread(f, q, q->expressed, false, x));
  y = pestle_f_round_nearest_even(f, y);
  y = pestle_f_add(f, y, spread(f, q, q->expressed, true, y));
  pv_t* low = pestle_f_splat(f, y, (double)q->low);
  pv_t* high = pestle_f_splat(f, y, (double)q->high);
  y = pestle_f_clamp(f, low, y, high);
  return pestle_f_convert(f, y, q->storage);
}

// --- The op ---

pestle_status_t pestle_quant_build(
    pestle_generic_t* g, pestle_builder_t* builder,
    pestle_value_t* const* operands,
    const pestle_quant_t* const* operand_quants, size_t operand_count,
    pestle_region_t* const* regions, size_t region_count,
    const pestle_type_t* types, const pestle_quant_t* const* result_quants,
    size_t type_count, pestle_value_t*** out_values) {
  pestle_formula_t f = pestle_formula_make(*builder);
  pv_t** numbers = PESTLE_ARENA_ARRAY(g->arena, pv_t*, operand_count + 1);
  pestle_type_t* own = PESTLE_ARENA_ARRAY(g->arena, pestle_type_t, type_count);
  if (!numbers || !own) return PESTLE_OOM();
  for (size_t i = 0; i < operand_count; ++i) {
    const pestle_quant_t* q = operand_quants[i];
    numbers[i] = q ? dequantized(&f, operands[i], q) : operands[i];
    PESTLE_TRY(f.status);
  }
  for (size_t i = 0; i < type_count; ++i) {
    own[i] = types[i];
    if (result_quants[i]) own[i].dtype = result_quants[i]->expressed;
  }
  bool identity = g->op == PESTLE_OP_CONVERT && operand_count == 1 &&
                  type_count == 1 && numbers[0]->type->dtype == own[0].dtype;
  if (identity) {
    *out_values = numbers;
  } else {
    PESTLE_TRY(pestle_generic_build(g, builder, numbers, operand_count, regions,
                                    region_count, own, type_count, out_values));
  }
  for (size_t i = 0; i < type_count; ++i) {
    if (!result_quants[i]) continue;
    (*out_values)[i] = quantized(&f, (*out_values)[i], result_quants[i]);
    PESTLE_TRY(f.status);
  }
  return NULL;
}
