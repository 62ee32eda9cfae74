// SPDX-License-Identifier: Apache-2.0
// Branches whose results differ in extents: they give them with room for the longer, and
// how long they really are as results beside them. And ops that do the work of their
// bound, of which there is one for few elements and one for many.
//
//   if n <= 1563: sort x[0:1563]   else if n <= 12500: sort x[0:12500]   else: sort x
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

bool pestle_onnx_begin_branch(pestle_onnx_call_t* call,
                              pestle_onnx_branch_t* out) {
  pestle_module_t* module = call->import->module;
  pestle_block_t* block;
  out->values = pestle_onnx_scratch(
      call, (call->output_count * (PESTLE_MAX_RANK + 1) + 1) *
                sizeof(pestle_value_t*));
  if (!out->values || call->f.status ||
      pestle_onnx_keep(
          call, pestle_region_create(module, NULL, 0, &out->region, &block))) {
    return false;
  }
  out->builder = (pestle_builder_t){
      .module = module, .block = block, .loc = call->f.builder.loc};
  return true;
}

// Results of the if, one for each output and then the extents that a run tells.
typedef struct merge_t {
  pestle_onnx_call_t* call;
  pestle_onnx_branch_t* branches;
  size_t count;
} merge_t;

// What branch |b| gives as output |i|, with as much behind it as |dims| has room for, of
// which nobody relies on what is behind the extents that |places| has, or |sizes| has of
// both branches.
static void widen(merge_t* m, pestle_onnx_branch_t* b, size_t i,
                  const int64_t* dims, const size_t* places,
                  pestle_value_t* const* sizes) {
  pestle_onnx_call_t* call = m->call;
  pestle_builder_t outer = call->f.builder;
  call->f.builder = b->builder;
  pestle_value_t* x = pestle_onnx_widen(call, b->values[i], dims);
  pestle_value_t* y = x == b->values[i] ? pestle_onnx_apart(call, x) : x;
  for (int32_t axis = 0; y && axis < rank_of(y); ++axis) {
    pestle_onnx_set_real(call, y, axis,
                         places[axis] ? b->values[places[axis]] : sizes[axis]);
  }
  b->values[i] = pestle_onnx_end_real(call, y);
  b->builder = call->f.builder;
  call->f.builder = outer;
}

// The result that is the extent of output |i| along |axis|, or 0: both have the one of
// |*out_size|, NULL where that is the type's.
static size_t merge_extent(merge_t* m, size_t i, int32_t axis,
                           pestle_value_t** out_size) {
  pestle_onnx_call_t* call = m->call;
  pestle_value_t* sizes[2];
  int64_t dims[2];
  for (int k = 0; k < 2; ++k) {
    const pestle_value_t* x = m->branches[k].values[i];
    sizes[k] = pestle_onnx_real_size(call->import, x, axis);
    dims[k] = pestle_onnx_dim(x, axis);
  }
  *out_size = sizes[0];
  if (sizes[0] == sizes[1] && dims[0] == dims[1]) return 0;
  pestle_builder_t outer = call->f.builder;
  for (int k = 0; k < 2; ++k) {
    pestle_onnx_branch_t* b = &m->branches[k];
    call->f.builder = b->builder;
    b->values[m->count] =
        sizes[k] ? sizes[k] : pestle_onnx_size_number(call, dims[k]);
    b->builder = call->f.builder;
  }
  call->f.builder = outer;
  return m->count++;
}

// How long output |i| is: |places| are the results that say it, 0 for none.
static bool merge_output(merge_t* m, size_t i, size_t* places,
                         pestle_value_t** sizes) {
  pestle_onnx_branch_t *a = &m->branches[0], *b = &m->branches[1];
  int64_t dims[PESTLE_MAX_RANK];
  for (int32_t axis = 0; axis < rank_of(a->values[i]); ++axis) {
    int64_t x = pestle_onnx_dim(a->values[i], axis);
    int64_t y = pestle_onnx_dim(b->values[i], axis);
    dims[axis] = x > y ? x : y;
    places[axis] = merge_extent(m, i, axis, &sizes[axis]);
  }
  widen(m, a, i, dims, places, sizes);
  widen(m, b, i, dims, places, sizes);
  return !m->call->f.status;
}

static bool end_branches(merge_t* m) {
  for (int k = 0; k < 2; ++k) {
    pestle_onnx_branch_t* b = &m->branches[k];
    if (m->call->f.status ||
        pestle_onnx_keep(m->call, pestle_op_return(&b->builder, b->values,
                                                   m->count, NULL))) {
      return false;
    }
  }
  return true;
}

void pestle_onnx_merge_branches(pestle_onnx_call_t* call,
                                pestle_value_t* condition,
                                pestle_onnx_branch_t* branches) {
  merge_t m = {.call = call, .branches = branches, .count = call->output_count};
  size_t axes = call->output_count * PESTLE_MAX_RANK + 1;
  size_t* places = pestle_onnx_scratch(call, axes * sizeof(size_t));
  pestle_value_t** sizes =
      pestle_onnx_scratch(call, axes * sizeof(pestle_value_t*));
  if (!places || !sizes || !condition) return;
  for (size_t i = 0; i < call->output_count; ++i) {
    size_t first = i * PESTLE_MAX_RANK;
    if (!merge_output(&m, i, places + first, sizes + first)) return;
  }
  if (!end_branches(&m)) return;
  pestle_region_t* regions[] = {branches[0].region, branches[1].region};
  pestle_node_spec_t spec = {.op = PESTLE_OP_IF,
                             .operands = &condition,
                             .operand_count = 1,
                             .regions = regions,
                             .region_count = 2};
  pestle_node_t* node = pestle_f_node(&call->f, &spec);
  for (size_t i = 0; node && i < call->output_count; ++i) {
    pestle_value_t* y = pestle_node_result(node, i);
    for (int32_t axis = 0; axis < rank_of(y); ++axis) {
      size_t at = i * PESTLE_MAX_RANK + (size_t)axis;
      pestle_value_t* size =
          places[at] ? pestle_node_result(node, places[at]) : sizes[at];
      pestle_onnx_set_real(call, y, axis, size);
    }
    call->outputs[i] = pestle_onnx_end_real(call, y);
  }
}

// --- Few and many ---

// Elements of an input from which on it is worth code of its own for few of them, and how
// many times fewer they are.
enum { LEAST_MANY = 1 << 14, FEWER = 8, LEVELS = 2 };

typedef struct by_size_t {
  pestle_onnx_fn_t fn;
  pestle_value_t *x, *size;
  int64_t axis, bound;
  bool merged;  // what went wrong since is no matter of size
} by_size_t;

// The longest axis of the first input of which only a run tells how long it is.
static bool find_axis(pestle_onnx_call_t* call, by_size_t* b) {
  b->x = call->inputs[0];
  for (int32_t i = 0; i < rank_of(b->x); ++i) {
    pestle_value_t* size = pestle_onnx_real_size(call->import, b->x, i);
    if (!size || pestle_onnx_dim(b->x, i) <= b->bound) continue;
    b->axis = i;
    b->bound = pestle_onnx_dim(b->x, i);
    b->size = size;
  }
  return b->size && pestle_type_count(pestle_onnx_type(b->x)) >= LEAST_MANY;
}

static void run_below(pestle_onnx_call_t* call, by_size_t* b, int level);

// The op where |bound| elements are enough; |level| 0: no fewer.
static bool run_branch(pestle_onnx_call_t* call, by_size_t* b, int64_t bound,
                       int level, pestle_onnx_branch_t* out) {
  if (!pestle_onnx_begin_branch(call, out)) return false;
  pestle_builder_t outer = call->f.builder;
  call->f.builder = out->builder;
  if (bound < b->bound) {
    call->inputs[0] = pestle_onnx_part_real(
        call, b->x, b->axis, pestle_onnx_size_number(call, 0), b->size, bound);
    b->fn(call);
  } else {
    call->inputs[0] = b->x;
    run_below(call, b, level);
  }
  for (size_t i = 0; i < call->output_count; ++i) {
    out->values[i] =
        call->outputs[i] ? call->outputs[i] : pestle_onnx_size_number(call, 0);
  }
  out->builder = call->f.builder;
  call->f.builder = outer;
  call->inputs[0] = b->x;
  return !call->f.status;
}

static void run_below(pestle_onnx_call_t* call, by_size_t* b, int level) {
  int64_t few = b->bound;
  for (int i = 0; i < level; ++i)
    few = (few + FEWER - 1) / FEWER;
  if (level == 0) {
    b->fn(call);
    return;
  }
  pestle_onnx_branch_t branches[2] = {{0}};
  pestle_value_t* condition =
      pestle_f_le(&call->f, b->size, pestle_onnx_size_number(call, few));
  if (run_branch(call, b, few, 0, &branches[0]) &&
      run_branch(call, b, b->bound, level - 1, &branches[1])) {
    pestle_onnx_merge_branches(call, condition, branches);
    b->merged |= call->f.status != NULL;
    return;
  }
  // What they use outside is used no more.
  for (int i = 0; i < 2; ++i) {
    if (branches[i].region) pestle_region_discard(branches[i].region);
  }
}

void pestle_onnx_by_size(pestle_onnx_call_t* call, pestle_onnx_fn_t fn) {
  by_size_t b = {.fn = fn};
  if (call->f.status || !find_axis(call, &b)) {
    fn(call);
    return;
  }
  run_below(call, &b, LEVELS);
  call->inputs[0] = b.x;
  // What few elements cannot be, all may.
  if (!call->f.status || b.merged ||
      pestle_status_code(call->f.status) == PESTLE_STATUS_OUT_OF_MEMORY) {
    return;
  }
  pestle_status_release(call->f.status);
  call->f.status = NULL;
  fn(call);
}
