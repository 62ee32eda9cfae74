// SPDX-License-Identifier: Apache-2.0
// sort_first: the best |count| of a row, and where they were. Rows in parallel:
//
//   for row in group.x:
//     for each vector of the row:
//       if any of it comes before the last one of a full list:
//         append those to what is fresh
//       if there is no room left, or the row ends:
//         sort what is fresh, merge it with the list, keep the first |count|
//
// The list holds what the comparator reads and positions; whatever else is moved
// is read by position in the end. What is fresh lies behind the list in the row,
// and is appended in order, so that of equals the first come first, as in a
// stable sort.
#include "codegen/direct/direct_sort.h"

typedef struct first_t {
  pestle_sort_t s;
  int64_t length, count, room;  // of a row, of the list, of what is fresh
  pestle_sort_place_t row, list, work;  // the row has no positions
  pestle_sort_place_t fresh, sorted;  // behind the list and in the other buffer
  uint32_t kept, added;  // variables: of the list, of what is fresh
} first_t;

static pk_t op(first_t* f, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(f->s.d, o, a, b);
}

static pk_t number(first_t* f, int64_t value) {
  return pestle_direct_index(f->s.d, value);
}

static pk_t loop(first_t* f, const char* name, pk_t lo, pk_t hi, int32_t step) {
  return pestle_kir_for(f->s.d->k, name, lo, hi, step, PESTLE_KIR_SERIAL);
}

static pk_t list_is_open(first_t* f) {
  pk_t kept = pestle_direct_get(f->s.d, f->kept);
  return op(f, PESTLE_OP_LT, kept, number(f, f->count));
}

// Whether elements |x| may be among the first: the list is not full, or they
// come before its last one.
static pestle_status_t may_enter(first_t* f, const pk_t* x, unsigned lanes,
                                 pk_t* out) {
  pestle_direct_t* d = f->s.d;
  pk_t last[PESTLE_SORT_MAX_COLUMNS], at = number(f, f->count - 1);
  for (uint32_t c = 0; c < f->s.compared; ++c) {
    last[c] = pestle_sort_load(&f->s, &f->list, c, 1, at, PESTLE_KIR_NONE);
    last[c] = pestle_kir_splat(d->k, last[c], lanes);
  }
  PESTLE_TRY(pestle_sort_before(&f->s, x, last, lanes, out));
  pk_t open =
      op(f, PESTLE_OP_LT, pestle_direct_get(d, f->kept), number(f, f->count));
  *out = op(f, PESTLE_OP_OR, *out, pestle_kir_splat(d->k, open, lanes));
  return NULL;
}

// Elements [v, last) of the row that may enter are added to what is fresh.
static pestle_status_t append(first_t* f, pk_t v, pk_t last) {
  pestle_direct_t* d = f->s.d;
  uint32_t c = 0;
  pk_t x[PESTLE_SORT_MAX_COLUMNS], enters;
  pk_t j = loop(f, "j", v, last, 1);
  pk_t added = pestle_direct_get(d, f->added);
  pk_t to = pestle_sort_at(&f->s, &f->fresh,
                           pestle_direct_clamp(d, added, 0, f->room - 1));
  for (; c < f->s.compared; ++c) {
    x[c] = pestle_sort_load(&f->s, &f->row, c, 1, j, PESTLE_KIR_NONE);
    pestle_direct_store(d, f->fresh.buffers[c], to, x[c]);
  }
  pestle_direct_store(d, f->fresh.buffers[c], to,
                      pestle_kir_cast(d->k, j, PESTLE_I32));
  PESTLE_TRY(may_enter(f, x, 1, &enters));
  added =
      op(f, PESTLE_OP_ADD, added, pestle_kir_cast(d->k, enters, PESTLE_INDEX));
  pestle_direct_set(d, f->added, added);
  pestle_kir_end(d->k);
  return NULL;
}

// What is fresh becomes part of the list.
static pestle_status_t settle(first_t* f) {
  pestle_direct_t* d = f->s.d;
  pk_t zero = number(f, 0);
  pk_t added =
      pestle_direct_clamp(d, pestle_direct_get(d, f->added), 0, f->room);
  pk_t kept =
      pestle_direct_clamp(d, pestle_direct_get(d, f->kept), 0, f->count);
  f->s.length = f->room;
  PESTLE_TRY(pestle_sort_row(&f->s, &f->fresh, &f->sorted, added));
  pk_t behind = number(f, f->count);
  pk_t all = op(f, PESTLE_OP_ADD, kept, added);
  pestle_sort_runs_t runs = {.left = zero,
                             .left_end = kept,
                             .right = behind,
                             .right_end = op(f, PESTLE_OP_ADD, behind, added),
                             .begin = zero,
                             .end = all};
  f->s.length = f->count + f->room;
  PESTLE_TRY(pestle_sort_merge(&f->s, &f->list, &f->work, &runs));
  all = pestle_direct_clamp(d, all, 0, f->count);
  pestle_sort_copy(&f->s, &f->work, &f->list, all);
  pestle_direct_set(d, f->kept, all);
  pestle_direct_set(d, f->added, zero);
  return NULL;
}

static pestle_status_t scan(first_t* f) {
  pestle_direct_t* d = f->s.d;
  unsigned lanes = f->s.lanes;
  pk_t x[PESTLE_SORT_MAX_COLUMNS], enter;
  pk_t length = number(f, f->length);
  pk_t v = loop(f, "v", number(f, 0), length, (int32_t)lanes);
  pk_t mask = pestle_kir_mask(d->k, v, length, lanes);
  for (uint32_t c = 0; c < f->s.compared; ++c)
    x[c] = pestle_sort_load(&f->s, &f->row, c, lanes, v, mask);
  PESTLE_TRY(may_enter(f, x, lanes, &enter));
  enter = op(f, PESTLE_OP_AND, enter, mask);
  pestle_kir_if(d->k, pestle_kir_reduce(d->k, enter, PESTLE_OP_OR));
  pk_t last = op(f, PESTLE_OP_ADD, v, number(f, lanes));
  last = op(f, PESTLE_OP_MINIMUM, last, length);
  PESTLE_TRY(append(f, v, last));
  pestle_kir_end(d->k);
  // As soon as there are enough, too: what they keep out is not added.
  pk_t added = pestle_direct_get(d, f->added);
  pk_t enough = op(f, PESTLE_OP_GE, added, number(f, f->count));
  enough = op(f, PESTLE_OP_AND, enough, list_is_open(f));
  pk_t full = op(f, PESTLE_OP_GT, added, number(f, f->room - lanes));
  full = op(f, PESTLE_OP_OR, full, enough);
  pk_t ends = op(f, PESTLE_OP_GE, v, number(f, f->length - lanes));
  pestle_kir_if(d->k, op(f, PESTLE_OP_OR, full, ends));
  PESTLE_TRY(settle(f));
  pestle_kir_end(d->k);
  pestle_kir_end(d->k);
  return NULL;
}

// The list's elements to the results, where those of the row begin at |base|.
static void write_results(first_t* f, const uint32_t* operands,
                          const uint32_t* results, pk_t base) {
  pestle_direct_t* d = f->s.d;
  uint32_t count = d->node->operand_count, column = 0;
  pk_t i = loop(f, "i", number(f, 0), number(f, f->count), 1);
  pk_t to = pestle_kir_madi(d->k, i, f->row.stride, base);
  pk_t at =
      pestle_sort_load(&f->s, &f->list, f->s.compared, 1, i, PESTLE_KIR_NONE);
  pk_t from = pestle_kir_cast(d->k, at, PESTLE_INDEX);
  from = pestle_direct_clamp(d, from, 0, f->length - 1);
  from = pestle_sort_at(&f->s, &f->row, from);
  for (uint32_t o = 0; o < count; ++o) {
    bool listed = column < f->s.compared && f->s.first[column] == o;
    pk_t x = listed ? pestle_sort_load(&f->s, &f->list, column++, 1, i,
                                       PESTLE_KIR_NONE)
                    : pestle_direct_load(d, operands[o], from);
    pestle_direct_store(d, results[o], to, x);
  }
  pestle_direct_store(d, results[count], to, at);
  pestle_kir_end(d->k);
}

// Whether scratch has room for |size| elements of all columns twice, each buffer
// from 64 bytes on, and for ranks.
static bool fits_scratch(const first_t* f, int64_t size) {
  const pestle_node_t* node = f->s.d->node;
  int64_t bytes = 2 * (4 * size + 64) + 4 * pestle_sort_block(&f->s);
  for (uint32_t c = 0; c < f->s.compared; ++c) {
    pestle_dtype_t dtype = node->results[f->s.first[c]].type->dtype;
    bytes += 2 * (size * (int64_t)pestle_dtype_size(dtype) + 64);
  }
  return bytes <= (int64_t)f->s.d->caps->scratch_bytes;
}

// A column of the list and of what is fresh: in scratch, or a workspace with one
// for each row.
static uint32_t add_column(first_t* f, pestle_dtype_t dtype, bool in_scratch,
                           int64_t rows) {
  int64_t size = f->count + f->room;
  if (!in_scratch) return pestle_direct_workspace(f->s.d, dtype, rows * size);
  return pestle_kir_add_buffer(f->s.d->k, "list", PESTLE_KIR_SHARED, dtype, 1,
                               size, 0);
}

static void add_columns(first_t* f, bool in_scratch, int64_t rows) {
  f->s.count = f->s.compared + 1;
  for (uint32_t c = 0; c < f->s.count; ++c) {
    const pestle_value_t* like =
        &f->s.d->node->results[c < f->s.compared ? f->s.first[c]
                                                 : f->s.d->node->operand_count];
    f->list.buffers[c] = add_column(f, like->type->dtype, in_scratch, rows);
    f->work.buffers[c] = add_column(f, like->type->dtype, in_scratch, rows);
  }
}

// The comparator's operands are those of the list.
static void find_compared(first_t* f) {
  const pestle_node_t* node = f->s.d->node;
  const pestle_block_t* block = pestle_node_body(node, 0);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    bool read = block->arguments[2 * i]->use_count ||
                block->arguments[2 * i + 1]->use_count;
    if (read) f->s.first[f->s.compared++] = i;
  }
}

// The row's list begins empty; its last element is one of the row, so that none
// is compared that was never written.
static void start_row(first_t* f, pk_t list) {
  pestle_direct_t* d = f->s.d;
  pestle_sort_variables(&f->s);
  f->kept = pestle_direct_variable(d, "kept", PESTLE_INDEX, 1);
  f->added = pestle_direct_variable(d, "added", PESTLE_INDEX, 1);
  f->list.base = f->work.base = list;
  f->fresh = f->list;
  f->sorted = f->work;
  f->fresh.base = f->sorted.base =
      op(f, PESTLE_OP_ADD, list, number(f, f->count));
  pestle_direct_set(d, f->kept, number(f, 0));
  pestle_direct_set(d, f->added, number(f, 0));
  pk_t at = pestle_sort_at(&f->s, &f->list, number(f, f->count - 1));
  for (uint32_t c = 0; c < f->s.compared; ++c) {
    pk_t x = pestle_direct_load(d, f->row.buffers[c], f->row.base);
    pestle_direct_store(d, f->list.buffers[c], at, x);
  }
}

bool pestle_direct_sort_first_is_idle(const pestle_node_t* node) {
  (void)node;
  return false;
}

// How much is fresh before it is sorted: all of the row where most of it is
// wanted, else about what the list has.
static int64_t choose_room(const first_t* f) {
  int64_t lanes = f->s.lanes, least = 2 * lanes;
  int64_t room = f->count > least ? f->count : least;
  if (room > f->length / 2) room = f->length;
  return (room + lanes - 1) / lanes * lanes;
}

// The whole row, of which the first are kept.
static pestle_status_t sort_by_lanes(pestle_direct_t* d, const first_t* f,
                                     int64_t rows) {
  uint32_t count = d->node->operand_count;
  pestle_sort_lanes_t how = {.length = f->length,
                             .wanted = f->count,
                             .rows = rows,
                             .stride = f->row.stride,
                             .positions = true};
  for (uint32_t i = 0; i < count; ++i)
    how.from[i] = pestle_direct_operand(d, i);
  for (uint32_t i = 0; i <= count; ++i)
    how.to[i] = pestle_direct_result(d, i);
  return pestle_sort_lanes(d, &how);
}

pestle_status_t pestle_direct_sort_first(pestle_direct_t* d) {
  const pestle_node_t* node = d->node;
  const pestle_type_t* type = pestle_node_operand(node, 0)->type;
  int64_t axis = pestle_sort_axis(node), inner = pestle_sort_inner(type, axis);
  uint32_t count = node->operand_count;
  if (5 * count + 3 > PESTLE_KERNEL_MAX_ARGS) {
    return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                             "%u operands; at most %d", count,
                             (PESTLE_KERNEL_MAX_ARGS - 3) / 5);
  }
  first_t f = {.length = type->dims[axis],
               .count = PESTLE_NODE_I64(node, count),
               .row.stride = inner,
               .list.stride = 1,
               .work.stride = 1};
  uint32_t operands[PESTLE_SORT_MAX_COLUMNS], results[PESTLE_SORT_MAX_COLUMNS];
  int64_t rows = pestle_type_count(type) / f.length;
  if (pestle_sort_lanes_fit(d, f.length, rows)) {
    return sort_by_lanes(d, &f, rows);
  }
  pestle_sort_init(d, &f.s);
  find_compared(&f);
  f.room = choose_room(&f);
  for (uint32_t i = 0; i < count; ++i)
    operands[i] = pestle_direct_operand(d, i);
  for (uint32_t i = 0; i <= count; ++i)
    results[i] = pestle_direct_result(d, i);
  for (uint32_t c = 0; c < f.s.compared; ++c)
    f.row.buffers[c] = operands[f.s.first[c]];
  bool in_scratch = fits_scratch(&f, f.count + f.room);
  add_columns(&f, in_scratch, rows);
  pk_t g = pestle_kir_for(d->k, "row", number(&f, 0), number(&f, rows), 1,
                          PESTLE_KIR_GROUP_X);
  pk_t outer = op(&f, PESTLE_OP_DIVIDE, g, number(&f, inner));
  pk_t rest = op(&f, PESTLE_OP_REMAINDER, g, number(&f, inner));
  f.row.base = pestle_kir_madi(d->k, outer, f.length * inner, rest);
  start_row(&f, in_scratch ? number(&f, 0)
                           : pestle_kir_madi(d->k, g, f.count + f.room,
                                             PESTLE_KIR_NONE));
  PESTLE_TRY(scan(&f));
  write_results(&f, operands, results,
                pestle_kir_madi(d->k, outer, f.count * inner, rest));
  pestle_kir_end(d->k);
  d->steps = (uint64_t)(rows * (f.length + 32 * (f.count + f.room)));
  return NULL;
}
