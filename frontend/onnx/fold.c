// SPDX-License-Identifier: Apache-2.0
// Emission with constant folding. Exporters write shape computations (Shape,
// Gather, Concat, ...), whose operands are constants once the inputs' shapes
// are known: evaluating each op as it is emitted makes all of them disappear.
//
//   %0 = constant dense<[1, 3]>          %2 = constant dense<[1, 1]>
//   %1 = slice %0 [0:1]            ->    (%0, %1 go when nothing else reads
//   them) %2 = concatenate %1, %1
//
// Weights that pass through a few moves (LSTM gates reordered by an exporter)
// are folded too, as long as that does not make them larger. The constant
// folding pass does the rest.
#include "base/mem.h"
#include "frontend/onnx/emit.h"
#include "ir/ref/ref.h"

// Always folded, unless the budget is gone.
#define SMALL_BYTES ((size_t)32 << 10)
// Folded even then: shapes and axes, without which nothing can be imported.
#define TINY_BYTES ((size_t)1 << 10)
// The most that one folded op may read and write.
#define LARGE_BYTES ((size_t)8 << 20)
// The most multiply-adds of a folded contraction or window.
#define MOST_WORK ((int64_t)1 << 22)

static bool result_fits(pestle_onnx_call_t* call, const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (pestle_onnx_type_fits(node->results[i].type)) continue;
    pestle_strbuf_t text;
    pestle_strbuf_init(call->import->allocator, &text);
    pestle_type_print(node->results[i].type, &text);
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it makes a %s of more than 2^48 elements",
                     pestle_strbuf_cstr(&text));
    pestle_strbuf_deinit(&text);
    return false;
  }
  return true;
}

static pestle_node_t* make_node(pestle_formula_t* f,
                                const pestle_node_spec_t* spec) {
  pestle_onnx_call_t* call = (pestle_onnx_call_t*)f;
  if (f->status) return NULL;
  for (size_t i = 0; i < spec->operand_count; ++i) {
    if (spec->operands[i]) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "an input that it needs is missing");
    return NULL;
  }
  pestle_node_t* node = NULL;
  if (pestle_onnx_keep(call, pestle_node_create(&f->builder, spec, &node))) {
    return NULL;
  }
  return result_fits(call, node) ? node : NULL;
}

static bool all_constant(const pestle_node_spec_t* spec) {
  for (size_t i = 0; i < spec->operand_count; ++i) {
    if (!spec->operands[i] || !pestle_value_constant(spec->operands[i])) {
      return false;
    }
  }
  return spec->operand_count != 0;
}

static bool one_element(const pestle_elements_t* elements) {
  return elements->splat || pestle_type_count(&elements->type) == 1;
}

static bool all_splat(const pestle_node_spec_t* spec) {
  for (size_t i = 0; i < spec->operand_count; ++i) {
    if (!one_element(pestle_value_constant(spec->operands[i]))) return false;
  }
  return true;
}

// The constant |from| with its data seen as |type|, a splat if it was one.
static pestle_value_t* as_type(pestle_onnx_call_t* call,
                               const pestle_elements_t* from,
                               const pestle_type_t* type) {
  int64_t count = pestle_type_count(type);
  pestle_elements_t to = *from;
  to.type = *type;
  if (one_element(from)) {
    to.size = count ? pestle_dtype_size(type->dtype) : 0;
    to.splat = count != 1 && count != 0;
  }
  return pestle_f_elements(&call->f, &to);
}

// An elementwise op on splats: the op on one element, as a splat. NULL if not
// possible.
static pestle_value_t* fold_splats(pestle_onnx_call_t* call,
                                   const pestle_node_spec_t* spec) {
  if (spec->operand_count > 3) return NULL;
  pestle_value_t* scalars[3];
  pestle_type_t shape = {0};
  for (size_t i = 0; i < spec->operand_count; ++i) {
    const pestle_elements_t* from = pestle_value_constant(spec->operands[i]);
    if (from->type.rank > shape.rank) shape = from->type;
    if (!from->size) return NULL;
    pestle_type_t scalar = {.dtype = from->type.dtype};
    scalars[i] = as_type(call, from, &scalar);
    if (!scalars[i]) return NULL;
  }
  if (shape.rank == 0) return NULL;
  pestle_node_spec_t inner = *spec;
  inner.operands = scalars;
  pestle_type_t type = {0};
  if (spec->type) {
    type.dtype = spec->type->dtype;
    inner.type = &type;
  }
  const pestle_elements_t* result = NULL;
  pestle_value_t* value = pestle_f_emit(&call->f, &inner);
  if (value) result = pestle_value_constant(value);
  if (!result) return NULL;
  shape.dtype = result->type.dtype;
  return as_type(call, result, &shape);
}

// Folds that need no evaluation: those that only change how one element or the
// same bytes are looked at.
static pestle_value_t* fold_view(pestle_onnx_call_t* call,
                                 const pestle_node_spec_t* spec) {
  const pestle_elements_t* from = pestle_value_constant(spec->operands[0]);
  bool is_view = pestle_op_info(spec->op)->fuse == PESTLE_FUSE_VIEW &&
                 spec->operand_count == 1;
  if (!is_view || (!one_element(from) && spec->op != PESTLE_OP_RESHAPE)) {
    return NULL;
  }
  pestle_type_t type;
  size_t count;
  if (pestle_onnx_keep(call, pestle_infer_types(spec, &type, 1, &count))) {
    return NULL;
  }
  // A weight of another shape is that weight still, and is called so.
  pestle_builder_t* b = &call->f.builder;
  pestle_loc_t of_op = b->loc;
  if (spec->op == PESTLE_OP_RESHAPE && !one_element(from))
    b->loc = spec->operands[0]->node->loc;
  pestle_value_t* value = as_type(call, from, &type);
  b->loc = of_op;
  return value;
}

static bool is_elementwise(pestle_op_t op) {
  return pestle_op_is_scalar(op) || op == PESTLE_OP_CONVERT;
}

// Multiply-adds, roughly, of ops whose work is not their size.
static int64_t work_of(const pestle_node_t* node) {
  int64_t work = pestle_type_count(node->results[0].type);
  for (uint32_t i = 0; i < node->operand_count && i < 2; ++i) {
    int64_t count = pestle_type_count(pestle_node_operand(node, i)->type);
    if (__builtin_mul_overflow(work, count ? count : 1, &work)) {
      return INT64_MAX;
    }
  }
  return work;
}

// Takes |amount| off what is left; false when that is less.
static bool spend(size_t* left, size_t amount) {
  if (*left < amount) return false;
  *left -= amount;
  return true;
}

// A weight that is written out beside what a run gives: a bias of each row. It stays
// what it is called, and is spread where it is read.
static bool spreads_weight(const pestle_onnx_call_t* call,
                           const pestle_node_t* node) {
  const pestle_type_t* type = pestle_node_operand(node, 0)->type;
  if (node->op != PESTLE_OP_BROADCAST_IN_DIM ||
      !pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT) ||
      pestle_type_count(type) == 1) {
    return false;
  }
  for (size_t i = 0; i < call->input_count; ++i) {
    if (call->inputs[i] && !pestle_value_constant(call->inputs[i])) return true;
  }
  return false;
}

// Whether to fold |node|; what it costs is taken off the budgets.
static bool worth_folding(const pestle_onnx_call_t* call,
                          const pestle_node_t* node) {
  pestle_onnx_import_t* import = call->import;
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)node->op);
  if (spreads_weight(call, node)) return false;
  // Quantised weights stay as they are: kernels take them.
  if (node->op == PESTLE_OP_DEQUANTIZE || node->op == PESTLE_OP_QUANTIZE ||
      info->fuse == PESTLE_FUSE_CONTROL) {
    return false;
  }
  size_t in = 0, out = pestle_type_bytes(node->results[0].type);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    size_t bytes = pestle_type_bytes(pestle_node_operand(node, i)->type);
    if (bytes > LARGE_BYTES) return false;
    in += bytes;
  }
  if (in > LARGE_BYTES || out > LARGE_BYTES) return false;
  bool is_work =
      info->fuse == PESTLE_FUSE_CONTRACTION || info->fuse == PESTLE_FUSE_WINDOW;
  int64_t work = is_work ? work_of(node) : 0;
  if (work > MOST_WORK) return false;
  if (out <= TINY_BYTES && in <= TINY_BYTES) return true;
  return (out <= SMALL_BYTES || out <= in) &&
         spend(&import->fold_work, in + out + (size_t)work) &&
         spend(&import->fold_budget, out);
}

// An operand's elements, written out when it is a splat.
static const void* operand_data(pestle_allocator_t allocator,
                                const pestle_value_t* value, void** out_owned) {
  const pestle_elements_t* elements = pestle_value_constant(value);
  *out_owned = NULL;
  if (!elements->splat) return elements->data;
  size_t count = (size_t)pestle_type_count(&elements->type);
  size_t size = pestle_dtype_size(elements->type.dtype);
  char* data = pestle_alloc(allocator, count * size);
  if (!data) return NULL;
  for (size_t i = 0; i < count; ++i) {
    memcpy(data + i * size, elements->data, size);
  }
  *out_owned = data;
  return data;
}

static pestle_status_t evaluate(pestle_allocator_t allocator,
                                const pestle_node_t* node, void* result) {
  const void** data =
      pestle_alloc_array(allocator, node->operand_count, 2 * sizeof(void*));
  if (!data) return PESTLE_OOM();
  void** owned = (void**)(data + node->operand_count);
  memset(data, 0, node->operand_count * 2 * sizeof(void*));
  pestle_status_t status = NULL;
  for (uint32_t i = 0; i < node->operand_count && !status; ++i) {
    data[i] = operand_data(allocator, pestle_node_operand(node, i), &owned[i]);
    if (!data[i]) status = PESTLE_OOM();
  }
  if (!status) {
    status = pestle_ref_evaluate_node(allocator, node, data, &result);
  }
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!owned[i]) continue;
    pestle_dealloc(allocator, owned[i],
                   pestle_type_bytes(pestle_node_operand(node, i)->type));
  }
  pestle_dealloc(allocator, data, node->operand_count * 2 * sizeof(void*));
  return status;
}

static bool is_uniform(const char* data, size_t count, size_t size) {
  return count > 1 && memcmp(data, data + size, (count - 1) * size) == 0;
}

// Replaces |node| by the constant that it gives; the node itself on failure.
static pestle_value_t* fold_node(pestle_onnx_call_t* call,
                                 pestle_node_t* node) {
  pestle_onnx_import_t* import = call->import;
  pestle_type_t type = *node->results[0].type;
  size_t size = pestle_type_bytes(&type);
  pestle_arena_mark_t mark = pestle_arena_mark(&import->module->arena);
  void* data = pestle_arena_alloc(&import->module->arena, size ? size : 1,
                                  PESTLE_BUFFER_ALIGNMENT);
  if (!data) {
    pestle_onnx_keep(call, PESTLE_OOM());
    return NULL;
  }
  pestle_status_t status = evaluate(import->allocator, node, data);
  if (status) {
    pestle_arena_rewind(&import->module->arena, mark);
    if (pestle_status_code(status) != PESTLE_STATUS_UNSUPPORTED) {
      pestle_onnx_keep(call, status);
      return NULL;
    }
    pestle_status_release(status);
    return pestle_node_result(node, 0);
  }
  // A weight of another dtype is that weight still, too.
  pestle_builder_t* b = &call->f.builder;
  pestle_loc_t of_op = b->loc;
  if (node->op == PESTLE_OP_CONVERT)
    b->loc = pestle_node_operand(node, 0)->node->loc;
  pestle_node_erase(node);
  size_t element = pestle_dtype_size(type.dtype);
  bool splat = size && is_uniform(data, size / element, element);
  pestle_value_t* value = pestle_f_elements(
      &call->f, &(pestle_elements_t){.type = type,
                                     .data = data,
                                     .size = splat ? element : size,
                                     .splat = splat});
  b->loc = of_op;
  return value;
}

static pestle_value_t* emit(pestle_formula_t* f,
                            const pestle_node_spec_t* spec) {
  pestle_onnx_call_t* call = (pestle_onnx_call_t*)f;
  if (f->status) return NULL;
  bool constant = all_constant(spec);
  if (constant) {
    pestle_value_t* value = fold_view(call, spec);
    if (!value && is_elementwise(spec->op) && all_splat(spec)) {
      value = fold_splats(call, spec);
    }
    if (value || f->status) return value;
  }
  pestle_node_t* node = make_node(f, spec);
  if (!node) return NULL;
  if (constant && worth_folding(call, node)) {
    return fold_node(call, node);
  }
  return pestle_node_result(node, 0);
}

// The shape of the last two first: a select's condition has any that fits.
static bool broadcast(pestle_formula_t* f, pestle_value_t** operands,
                      size_t count) {
  pestle_onnx_call_t* call = (pestle_onnx_call_t*)f;
  pestle_type_t type;
  for (size_t i = 0; i < count; ++i) {
    if (!operands[i]) return false;
  }
  type = *operands[count - 1]->type;
  for (size_t i = count - 1; i-- > 0;) {
    bool last = i + 2 == count;
    const pestle_type_t* other = operands[i]->type;
    if (!pestle_onnx_common_shape(call, last ? other : &type,
                                  last ? &type : other, &type)) {
      return false;
    }
  }
  for (size_t i = 0; i < count; ++i)
    operands[i] =
        pestle_onnx_broadcast(call, operands[i], type.rank, type.dims);
  return true;
}

const pestle_formula_hooks_t pestle_onnx_hooks = {emit, make_node, broadcast};
