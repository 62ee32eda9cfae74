// SPDX-License-Identifier: Apache-2.0
// Type rules of control ops and fusions.
#include <inttypes.h>

#include "base/mem.h"
#include "ir/infer.h"

// The results are what |node|, a return, returns.
static pestle_status_t emit_returned(pestle_infer_t* in,
                                     const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(pestle_emit(in, pestle_node_operand(node, i)->type));
  }
  return NULL;
}

// --- while ---

static pestle_status_t check_condition(const pestle_infer_t* in) {
  const pestle_node_t* node;
  pestle_type_t flag = pestle_type_make(PESTLE_I1, 0, NULL);
  PESTLE_TRY(pestle_in_return(in, 0, &node));
  if (node->operand_count != 1) {
    return PESTLE_BAD("region 0, the condition, returns %u values, not one",
                      (unsigned)node->operand_count);
  }
  return pestle_need_region_type("result", 0, 0,
                                 pestle_node_operand(node, 0)->type, &flag);
}

pestle_status_t pestle_infer_while(pestle_infer_t* in) {
  size_t count = in->spec->operand_count;
  const pestle_node_t* node;
  PESTLE_TRY(pestle_need_operand_arguments(in, 0, 0, count));
  PESTLE_TRY(pestle_need_operand_arguments(in, 1, 0, count));
  PESTLE_TRY(check_condition(in));
  PESTLE_TRY(pestle_in_return(in, 1, &node));
  if (node->operand_count != count) {
    return PESTLE_BAD("region 1, the body, returns %u values for %zu operands",
                      (unsigned)node->operand_count, count);
  }
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    PESTLE_TRY(pestle_need_region_type(
        "result", i, 1, pestle_node_operand(node, i)->type, type));
    PESTLE_TRY(pestle_emit(in, type));
  }
  return NULL;
}

// --- if and case ---

// Every region takes nothing and returns what region 0 returns.
static pestle_status_t infer_branches(pestle_infer_t* in) {
  const pestle_node_t* first;
  PESTLE_TRY(pestle_in_return(in, 0, &first));
  for (size_t r = 0; r < in->spec->region_count; ++r) {
    const pestle_node_t* node;
    PESTLE_TRY(pestle_need_arguments(in, r, 0));
    PESTLE_TRY(pestle_in_return(in, r, &node));
    if (node->operand_count != first->operand_count) {
      return PESTLE_BAD("region 0 returns %u values, region %zu returns %u",
                        (unsigned)first->operand_count, r,
                        (unsigned)node->operand_count);
    }
    for (uint32_t i = 0; i < node->operand_count; ++i) {
      PESTLE_TRY(pestle_need_region_type("result", i, r,
                                         pestle_node_operand(node, i)->type,
                                         pestle_node_operand(first, i)->type));
    }
  }
  return emit_returned(in, first);
}

static pestle_status_t check_selector(const pestle_infer_t* in,
                                      pestle_dtype_t dtype) {
  const pestle_type_t* type = pestle_in_type(in, 0);
  if (type->rank == 0 && type->dtype == dtype) return NULL;
  return PESTLE_BAD("operand 0 is %s, not tensor<%s>",
                    pestle_type_text(type).text,
                    pestle_dtype_info(dtype)->name);
}

pestle_status_t pestle_infer_if(pestle_infer_t* in) {
  PESTLE_TRY(check_selector(in, PESTLE_I1));
  return infer_branches(in);
}

pestle_status_t pestle_infer_case(pestle_infer_t* in) {
  if (in->spec->region_count == 0) {
    return PESTLE_BAD("the op takes at least one region");
  }
  PESTLE_TRY(check_selector(in, PESTLE_I32));
  return infer_branches(in);
}

// --- Calls and returns ---

static pestle_status_t check_call_arguments(const pestle_infer_t* in,
                                            pestle_function_t* callee) {
  size_t count = pestle_function_argument_count(callee);
  if (in->spec->operand_count != count) {
    return PESTLE_BAD("%zu operands are given, '%s' takes %zu",
                      in->spec->operand_count, callee->name, count);
  }
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    const pestle_type_t* expected = pestle_function_argument(callee, i)->type;
    if (pestle_type_equal(type, expected)) continue;
    return PESTLE_BAD("operand %zu is %s, '%s' takes %s", i,
                      pestle_type_text(type).text, callee->name,
                      pestle_type_text(expected).text);
  }
  return NULL;
}

pestle_status_t pestle_infer_call(pestle_infer_t* in) {
  const char* name = pestle_in_attr(in, PESTLE_ATTR_callee)->as.str;
  // Looking up does not change the module.
  pestle_module_t* module = (pestle_module_t*)in->spec->module;
  pestle_function_t* callee =
      module ? pestle_module_find_function(module, name) : NULL;
  if (!callee) return PESTLE_BAD("there is no function '%s'", name);
  PESTLE_TRY(check_call_arguments(in, callee));
  size_t count;
  if (!pestle_function_result_count(callee, &count)) {
    return PESTLE_BAD("the results of '%s' are not known yet: it has no return",
                      name);
  }
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_emit(in, pestle_function_result_type(callee, i)));
  }
  return NULL;
}

pestle_status_t pestle_infer_return(pestle_infer_t* in) {
  (void)in;
  return NULL;
}

pestle_status_t pestle_infer_optimization_barrier(pestle_infer_t* in) {
  for (size_t i = 0; i < in->spec->operand_count; ++i) {
    PESTLE_TRY(pestle_emit(in, pestle_in_type(in, i)));
  }
  return NULL;
}

// One row of a fusion's 'ends': result, axis, operand, scale.
static pestle_status_t check_end(const pestle_infer_t* in,
                                 const pestle_node_t* returned,
                                 const int64_t* row) {
  if (row[0] < 0 || row[0] >= (int64_t)returned->operand_count) {
    return PESTLE_BAD("'ends' names result %lld of %u", (long long)row[0],
                      (unsigned)returned->operand_count);
  }
  int32_t rank = pestle_node_operand(returned, (size_t)row[0])->type->rank;
  if (row[1] < 0 || row[1] >= rank) {
    return PESTLE_BAD("'ends' names axis %lld of result %lld, which has %d",
                      (long long)row[1], (long long)row[0], rank);
  }
  const pestle_type_t* n = NULL;
  if (row[2] >= 0 && row[2] < (int64_t)in->spec->operand_count) {
    n = pestle_in_type(in, (size_t)row[2]);
  }
  if (!n || n->dtype != PESTLE_I64 || n->rank) {
    return PESTLE_BAD("'ends' names operand %lld, which is no tensor<i64>",
                      (long long)row[2]);
  }
  if (row[3] >= 1 && row[3] <= INT32_MAX) return NULL;
  return PESTLE_BAD("'ends' has the scale %lld", (long long)row[3]);
}

pestle_status_t pestle_infer_fusion(pestle_infer_t* in) {
  const pestle_node_t* node;
  PESTLE_TRY(pestle_need_operand_arguments(in, 0, 0, in->spec->operand_count));
  PESTLE_TRY(pestle_in_return(in, 0, &node));
  pestle_i64s_t ends = pestle_in_i64s(in, PESTLE_ATTR_ends);
  if (ends.count % 4) {
    return PESTLE_BAD("'ends' has %zu numbers, not four a row", ends.count);
  }
  for (size_t i = 0; i < ends.count; i += 4)
    PESTLE_TRY(check_end(in, node, ends.data + i));
  return emit_returned(in, node);
}

// Who states one type has not heard of several.
static pestle_status_t need_types(const pestle_infer_t* in) {
  const pestle_node_spec_t* spec = in->spec;
  if ((!spec->type_count && !spec->type) || spec->types) return NULL;
  return PESTLE_BAD("the result types are missing");
}

// --- Ops by name ---

// The body's results are those that were stated, if any were, wherever both are
// known.
static pestle_status_t check_stated(const pestle_infer_t* in,
                                    const pestle_node_t* node) {
  const pestle_node_spec_t* spec = in->spec;
  if (!spec->types) return NULL;
  if (spec->type_count != node->operand_count) {
    return PESTLE_BAD("%zu result types are stated, the body returns %u values",
                      spec->type_count, (unsigned)node->operand_count);
  }
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_type_t* stated = &spec->types[i];
    const pestle_type_t* actual = pestle_node_operand(node, i)->type;
    if (stated->dtype == actual->dtype && pestle_shapes_agree(stated, actual)) {
      continue;
    }
    return PESTLE_BAD("result %u is stated as %s, the body returns %s", i,
                      pestle_type_text(stated).text,
                      pestle_type_text(actual).text);
  }
  return NULL;
}

pestle_status_t pestle_infer_composite(pestle_infer_t* in) {
  const pestle_node_spec_t* spec = in->spec;
  const pestle_node_t* node;
  if (!*pestle_in_attr(in, PESTLE_ATTR_name)->as.str) {
    return PESTLE_BAD("'name' is empty");
  }
  if (spec->region_count > 1) {
    return PESTLE_BAD("%zu regions are given, the op takes one or none",
                      spec->region_count);
  }
  PESTLE_TRY(need_types(in));
  for (size_t i = 0; !spec->region_count && i < spec->type_count; ++i) {
    PESTLE_TRY(pestle_emit(in, &spec->types[i]));
  }
  if (!spec->region_count) return NULL;
  PESTLE_TRY(pestle_need_operand_arguments(in, 0, 0, spec->operand_count));
  PESTLE_TRY(pestle_in_return(in, 0, &node));
  PESTLE_TRY(check_stated(in, node));
  return emit_returned(in, node);
}

static pestle_status_t check_custom_type(const char* what, size_t index,
                                         const pestle_type_t* type) {
  if (!pestle_type_is_complex(type)) return NULL;
  return PESTLE_BAD("%s %zu is %s: complex numbers cannot be passed", what,
                    index, pestle_type_text(type).text);
}

// Pairs of a result and the operand of its type that it begins as, each once.
static pestle_status_t check_aliases(pestle_infer_t* in) {
  const pestle_node_spec_t* spec = in->spec;
  pestle_i64s_t pairs =
      pestle_in_attr(in, PESTLE_ATTR_output_operand_aliases)->as.i64s;
  if (pairs.count % 2) {
    return PESTLE_BAD("'output_operand_aliases' must be pairs, result first");
  }
  for (size_t i = 0; i < pairs.count; i += 2) {
    int64_t result = pairs.data[i], operand = pairs.data[i + 1];
    if (result < 0 || (uint64_t)result >= spec->type_count || operand < 0 ||
        (uint64_t)operand >= spec->operand_count) {
      return PESTLE_BAD("'output_operand_aliases' names result %" PRId64
                        " and operand %" PRId64 " of %zu and %zu",
                        result, operand, spec->type_count, spec->operand_count);
    }
    const pestle_type_t *is = pestle_in_type(in, (size_t)operand),
                        *becomes = &spec->types[result];
    if (!pestle_type_equal(is, becomes)) {
      return PESTLE_BAD("'output_operand_aliases': result %" PRId64
                        " is %s, operand %" PRId64 " is %s",
                        result, pestle_type_text(becomes).text, operand,
                        pestle_type_text(is).text);
    }
    for (size_t k = 0; k < i; k += 2) {
      if (pairs.data[k] != result && pairs.data[k + 1] != operand) continue;
      return PESTLE_BAD("'output_operand_aliases' names %s %" PRId64 " twice",
                        pairs.data[k] == result ? "result" : "operand",
                        pairs.data[k] == result ? result : operand);
    }
  }
  return NULL;
}

pestle_status_t pestle_infer_custom_call(pestle_infer_t* in) {
  const pestle_node_spec_t* spec = in->spec;
  if (!*pestle_in_attr(in, PESTLE_ATTR_call_target_name)->as.str) {
    return PESTLE_BAD("'call_target_name' is empty");
  }
  if (*pestle_in_attr(in, PESTLE_ATTR_backend_config)->as.str &&
      *pestle_in_attr(in, PESTLE_ATTR_backend_dictionary)->as.str) {
    return PESTLE_BAD(
        "the configuration is a string and a dictionary; give one of them");
  }
  PESTLE_TRY(need_types(in));
  for (size_t i = 0; i < spec->operand_count; ++i) {
    PESTLE_TRY(check_custom_type("operand", i, pestle_in_type(in, i)));
  }
  for (size_t i = 0; i < spec->type_count; ++i) {
    PESTLE_TRY(check_custom_type("result", i, &spec->types[i]));
    PESTLE_TRY(pestle_emit(in, &spec->types[i]));
  }
  return check_aliases(in);
}
