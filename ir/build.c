// SPDX-License-Identifier: Apache-2.0
// pestle_op_<op>() for every row of scalar.def and ops.def. Each gathers its
// arguments into a pestle_node_spec_t; node.c does the work.
#include "ir/internal.h"
#include "pestle/graph.h"

// --- What the expansions below share ---

static pestle_status_t check_builder(const pestle_builder_t* builder,
                                     pestle_op_t op) {
  if (builder) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "pestle_op_%s needs a builder",
                      pestle_op_info(op)->name);
}

// |out| is written last: callers may pass the array of operands for it.
static pestle_status_t build_one(pestle_builder_t* builder,
                                 const pestle_node_spec_t* spec,
                                 pestle_value_t** out) {
  pestle_node_t* node;
  pestle_status_t status = check_builder(builder, spec->op);
  if (!status) status = pestle_node_create(builder, spec, &node);
  if (out) *out = status ? NULL : pestle_node_result(node, 0);
  return status;
}

static pestle_status_t build_none(pestle_builder_t* builder,
                                  const pestle_node_spec_t* spec) {
  pestle_node_t* node;
  PESTLE_TRY(check_builder(builder, spec->op));
  return pestle_node_create(builder, spec, &node);
}

// The number of results is asked for first: a failed call adds nothing.
static pestle_status_t check_capacity(const pestle_builder_t* builder,
                                      const pestle_node_spec_t* spec,
                                      size_t capacity) {
  pestle_node_spec_t full = *spec;
  full.module = builder->module;
  size_t count = 0;
  pestle_status_t status = pestle_node_check_spec(builder, &full);
  if (!status) status = pestle_infer_types(&full, NULL, 0, &count);
  if (!status && count <= capacity) return NULL;
  if (!status) {
    status = PESTLE_ERROR(INVALID_ARGUMENT,
                          "the op has %zu results, there is room for %zu",
                          count, capacity);
  }
  return pestle_op_wrap_error(spec->op, &builder->loc, builder->module, status);
}

static pestle_status_t build_many(pestle_builder_t* builder,
                                  const pestle_node_spec_t* spec,
                                  pestle_value_t** out, size_t capacity) {
  pestle_node_t* node = NULL;
  PESTLE_TRY(check_builder(builder, spec->op));
  if (!out) capacity = 0;
  pestle_status_t status = check_capacity(builder, spec, capacity);
  if (!status) status = pestle_node_create(builder, spec, &node);
  for (size_t i = 0; i < capacity; ++i) {
    out[i] =
        node && i < node->result_count ? pestle_node_result(node, i) : NULL;
  }
  return status;
}

static pestle_status_t check_attrs(pestle_builder_t* builder, pestle_op_t op,
                                   const size_t* struct_size) {
  PESTLE_TRY(check_builder(builder, op));
  if (!struct_size || *struct_size >= sizeof(size_t)) return NULL;
  return pestle_op_wrap_error(
      op, &builder->loc, builder->module,
      PESTLE_ERROR(INVALID_ARGUMENT,
                   "struct_size of the attributes is not "
                   "set"));
}

// --- pestle_<op>_attrs_t to an array of attributes ---

// A caller built against an older header has a shorter struct: what lies past
// its end is as if left out.
#define HAS_FIELD(in, Struct, field) \
  ((in) && (in)->struct_size >= offsetof(Struct, field) + sizeof((in)->field))

#define SET_BOOL(field) .as.b = field
#define SET_I64(field) .as.i64 = field
#define SET_F64(field) .as.f64 = field
#define SET_STR(field) .as.str = field
#define SET_I64S(field) .as.i64s = field
#define SET_TYPE(field) .as.type = &field
#define SET_ELEMENTS(field) .as.elements = &field

#define PESTLE_OP_BEGIN(NAME, op, ...)                           \
  static size_t read_##op(const pestle_##op##_attrs_t* in,       \
                          pestle_attr_t out[PESTLE_MAX_ATTRS]) { \
    (void)in;                                                    \
    (void)out;                                                   \
    size_t count = 0;
#define PESTLE_OP_ATTR(NAME, op, KIND, attr, ...)                           \
  if (HAS_FIELD(in, pestle_##op##_attrs_t, attr)) {                         \
    out[count++] = (pestle_attr_t){                                         \
        PESTLE_ATTR_##attr, PESTLE_ATTR_KIND_##KIND, SET_##KIND(in->attr)}; \
  }
#define PESTLE_OP_END(NAME, op) \
  return count;                 \
  }
#include "pestle/ops.def"

size_t pestle_attrs_read(pestle_op_t op, const void* attrs,
                         pestle_attr_t out_attrs[PESTLE_MAX_ATTRS]) {
  if (!attrs) return 0;
  switch ((int)op) {
#define PESTLE_OP_BEGIN(NAME, op, ...) \
  case PESTLE_OP_##NAME:               \
    return read_##op(attrs, out_attrs);
#include "pestle/ops.def"
    default:
      return 0;
  }
}

// --- Elementwise ops ---

#define LIST_1 {a}
#define LIST_2 {a, b}
#define LIST_3 {a, b, c}

#define PESTLE_SCALAR(NAME, fn, mlir, n, ...)                                \
  pestle_status_t pestle_op_##fn(                                            \
      pestle_builder_t* builder PESTLE_OPERANDS_##n, pestle_value_t** out) { \
    pestle_value_t* list[] = LIST_##n;                                       \
    return build_one(                                                        \
        builder,                                                             \
        &(pestle_node_spec_t){                                               \
            .op = PESTLE_OP_##NAME, .operands = list, .operand_count = n},   \
        out);                                                                \
  }
#include "pestle/scalar.def"

// --- Whole-tensor ops ---

// Each column of a row becomes fields of the spec, and the last the call.
#define SPEC_OPERANDS_0
#define SPEC_OPERANDS_1                      \
  spec.operands = (pestle_value_t*[])LIST_1; \
  spec.operand_count = 1;
#define SPEC_OPERANDS_2                      \
  spec.operands = (pestle_value_t*[])LIST_2; \
  spec.operand_count = 2;
#define SPEC_OPERANDS_3                      \
  spec.operands = (pestle_value_t*[])LIST_3; \
  spec.operand_count = 3;
#define SPEC_OPERANDS_V     \
  spec.operands = operands; \
  spec.operand_count = operand_count;
#define SPEC_REGIONS_0
#define SPEC_REGIONS_1    \
  spec.regions = &region; \
  spec.region_count = 1;
#define SPEC_REGIONS_2                                \
  spec.regions = (pestle_region_t*[]){region, other}; \
  spec.region_count = 2;
#define SPEC_REGIONS_V    \
  spec.regions = regions; \
  spec.region_count = region_count;
#define SPEC_TYPE_INFER
#define SPEC_TYPE_TYPED spec.type = &type;
#define SPEC_TYPE_TYPES \
  spec.types = types;   \
  spec.type_count = type_count;
#define BUILD_RESULTS_0 build_none(builder, &spec)
#define BUILD_RESULTS_1 build_one(builder, &spec, out)
#define BUILD_RESULTS_V build_many(builder, &spec, out, out_capacity)

#define PESTLE_OP_BEGIN(NAME, fn, mlir, OPERANDS, REGIONS, RESULTS, TYPE, ...) \
  pestle_status_t pestle_op_##fn(                                              \
      pestle_builder_t* builder PESTLE_OPERANDS_##OPERANDS,                    \
      const pestle_##fn##_attrs_t* attrs PESTLE_REGIONS_##REGIONS              \
          PESTLE_TYPE_##TYPE PESTLE_RESULTS_##RESULTS) {                       \
    PESTLE_TRY(check_attrs(builder, PESTLE_OP_##NAME,                          \
                           attrs ? &attrs->struct_size : NULL));               \
    pestle_attr_t list[PESTLE_MAX_ATTRS];                                      \
    pestle_node_spec_t spec = {.op = PESTLE_OP_##NAME, .attrs = list};         \
    spec.attr_count = read_##fn(attrs, list);                                  \
    SPEC_OPERANDS_##OPERANDS SPEC_REGIONS_##REGIONS                            \
        SPEC_TYPE_##TYPE return BUILD_RESULTS_##RESULTS;                       \
  }
#include "pestle/ops.def"
