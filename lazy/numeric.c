// SPDX-License-Identifier: Apache-2.0
// The rows of numeric.def on arrays: promote, then record an op, or a map whose body
// is the row's formula.
#include "lazy/numeric.h"

#include "base/require.h"

typedef enum to_e { SAME, PLANE, TRUTH, OWN } to_t;
typedef struct row_t {
  const char* name;
  uint8_t operands, to, kinds;
} row_t;

#define N_ALL (PESTLE_KIND_BOOL | PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX)
static const row_t rows[] = {
#define PESTLE_NUMERIC(NAME, name, n, TO, KINDS, RULE, means) \
  {#name, n, TO, KINDS},
#include "pestle/numeric.def"
};

// --- Promoting ---

static pestle_status_t promoted(const row_t* row,
                                pestle_array_t* const* operands,
                                pestle_dtype_t* out_dtype) {
  pestle_dtype_t dtype = operands[0]->type.dtype;
  for (size_t i = 1; i < row->operands; ++i) {
    if (operands[i]->type.dtype == dtype) continue;
    pestle_status_t status =
        pestle_dtype_promote(dtype, operands[i]->type.dtype, &dtype);
    if (status) return pestle_status_annotate(status, "of %s", row->name);
  }
  if (!(pestle_dtype_info(dtype)->kind & row->kinds)) {
    return PESTLE_ERROR(WRONG_TYPE, "%s takes no array of %s", row->name,
                        pestle_dtype_info(dtype)->name);
  }
  if (row->to == PLANE &&
      pestle_dtype_is(dtype, PESTLE_KIND_BOOL | PESTLE_KIND_INT)) {
    dtype = PESTLE_F32;
  }
  *out_dtype = row->to == TRUTH ? PESTLE_I1 : dtype;
  return NULL;
}

// --- Formulas ---

static pestle_status_t make_body(pestle_lazy_t* lazy, pestle_numeric_t fn,
                                 pestle_dtype_t dtype,
                                 pestle_module_t** out_module) {
  pestle_type_t types[] = {{.dtype = dtype}, {.dtype = dtype}};
  pestle_function_t* function;
  size_t count = rows[fn].operands;
  PESTLE_TRY(pestle_module_create(lazy->context, NULL, out_module));
  PESTLE_TRY(pestle_module_add_function(*out_module, "main", types, NULL, count,
                                        &function));
  pestle_formula_t f = pestle_formula_make(pestle_builder_make(function));
  pv_t* x[2] = {NULL, NULL};
  for (size_t i = 0; i < count; ++i)
    x[i] = pestle_function_argument(function, i);
  pv_t* y = pestle_numeric_formula(&f, fn, x, count);
  if (f.status) return f.status;
  return pestle_op_return(&f.builder, &y, 1, NULL);
}

// The number of the body that row |fn| of |dtype| is.
static pestle_status_t body_of(pestle_lazy_t* lazy, pestle_numeric_t fn,
                               pestle_dtype_t dtype, uint32_t* out_id) {
  uint64_t key = (PESTLE_OP_COUNT + (uint64_t)fn) << 32 | (uint64_t)dtype;
  pestle_lazy_lock(lazy);
  pestle_map_value_t* value = pestle_map_find_u64(&lazy->fold_ids, key);
  if (value) *out_id = (uint32_t)value->u64;
  pestle_mutex_unlock(&lazy->mutex);
  if (value) return NULL;
  pestle_module_t* module = NULL;
  pestle_status_t status = make_body(lazy, fn, dtype, &module);
  if (!status) status = pestle_body_of(lazy, module, out_id);
  pestle_module_release(module);
  if (status) return status;
  pestle_lazy_lock(lazy);
  bool kept = pestle_map_set_u64(&lazy->fold_ids, key, *out_id);
  pestle_mutex_unlock(&lazy->mutex);
  return kept ? NULL : PESTLE_OOM();
}

static pestle_status_t record_map(pestle_numeric_t fn,
                                  pestle_array_t* const* operands,
                                  pestle_array_t** out_array) {
  uint32_t body;
  pestle_array_t* wide[2] = {NULL, NULL};
  size_t count = rows[fn].operands;
  PESTLE_TRY(body_of(operands[0]->lazy, fn, operands[0]->type.dtype, &body));
  PESTLE_TRY(pestle_array_spread(operands, count, wide));
  // All axes, in order: StableHLO wants them written down.
  static const int64_t axes[PESTLE_MAX_RANK] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                8, 9, 10, 11, 12, 13, 14, 15};
  pestle_attr_t attr = {PESTLE_ATTR_dimensions,
                        PESTLE_ATTR_KIND_I64S,
                        {.i64s = {axes, (size_t)wide[0]->type.rank}}};
  pestle_record_t r = {.op = PESTLE_OP_MAP,
                       .operands = wide,
                       .operand_count = count,
                       .parts = {&attr, 1, NULL, &body, 1}};
  pestle_status_t status = pestle_array_record(&r, out_array, 1);
  for (size_t i = 0; i < count; ++i)
    pestle_array_release(wide[i]);
  return status;
}

// --- Entry ---

// Row |fn| on operands that are what it takes.
static pestle_status_t record(pestle_numeric_t fn,
                              pestle_array_t* const* operands,
                              pestle_array_t** out_array) {
  pestle_dtype_t dtype = operands[0]->type.dtype;
  int op = pestle_numeric_op(fn, dtype);
  if (op != PESTLE_NUMERIC_NO_OP) {
    pestle_record_t r = {.op = (pestle_op_t)op,
                         .operands = operands,
                         .operand_count = rows[fn].operands};
    return pestle_array_record(&r, out_array, 1);
  }
  if (!pestle_numeric_is_same(fn, dtype)) {
    return record_map(fn, operands, out_array);
  }
  pestle_array_retain(operands[0]);
  *out_array = operands[0];
  return NULL;
}

static pestle_status_t record_cast(pestle_numeric_t fn, pestle_dtype_t dtype,
                                   pestle_array_t* const* operands,
                                   pestle_array_t** out_array) {
  pestle_array_t* casts[2] = {NULL, NULL};
  pestle_status_t status = NULL;
  for (size_t i = 0; i < rows[fn].operands && !status; ++i)
    status = pestle_numeric_cast(operands[i], dtype, &casts[i]);
  if (!status) status = record(fn, casts, out_array);
  pestle_array_release(casts[0]);
  pestle_array_release(casts[1]);
  return status;
}

pestle_status_t pestle_numeric_apply(pestle_numeric_t fn,
                                     pestle_array_t* const* operands,
                                     size_t count, pestle_array_t** out_array) {
  PESTLE_REQUIRE(out_array, "a place for the array");
  *out_array = NULL;
  PESTLE_REQUIRE((unsigned)fn < PESTLE_NUMERIC_COUNT, "a row of numeric.def");
  const row_t* row = &rows[fn];
  if (count != row->operands) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "%s takes %d arrays, %zu are given",
                        row->name, (int)row->operands, count);
  }
  PESTLE_REQUIRE(operands, "operands");
  bool is_plain = true;
  for (size_t i = 0; i < count; ++i) {
    PESTLE_REQUIRE(operands[i], "operands that are arrays");
    is_plain &= operands[i]->type.dtype == operands[0]->type.dtype;
  }
  pestle_dtype_t dtype;
  PESTLE_TRY(promoted(row, operands, &dtype));
  is_plain &= row->to == OWN || operands[0]->type.dtype == dtype;
  return is_plain ? record(fn, operands, out_array)
                  : record_cast(fn, dtype, operands, out_array);
}

pestle_status_t pestle_numeric_where(pestle_array_t* condition,
                                     pestle_array_t* a, pestle_array_t* b,
                                     pestle_array_t** out_array) {
  PESTLE_REQUIRE(condition && a && b && out_array,
                 "three arrays and a place for the array");
  *out_array = NULL;
  pestle_dtype_t dtype;
  if (condition->type.dtype != PESTLE_I1) {
    return PESTLE_ERROR(WRONG_TYPE, "the condition of where is %s, not i1",
                        pestle_dtype_info(condition->type.dtype)->name);
  }
  PESTLE_TRY(pestle_dtype_promote(a->type.dtype, b->type.dtype, &dtype));
  pestle_array_t* casts[2] = {NULL, NULL};
  pestle_status_t status = pestle_numeric_cast(a, dtype, &casts[0]);
  if (!status) status = pestle_numeric_cast(b, dtype, &casts[1]);
  if (!status) {
    status = pestle_array_select(condition, casts[0], casts[1], out_array);
  }
  pestle_array_release(casts[0]);
  pestle_array_release(casts[1]);
  return status;
}
