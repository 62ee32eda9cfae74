// SPDX-License-Identifier: Apache-2.0
#include "compile/library.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

// Few enough to look at them all; the most tensors that one of them has.
enum { MAX_TENSORS = 8 };

// "z.eigh" of a call of a function that every context has; NULL: of another one.
static const char* own_name(const pestle_node_t* node) {
  static const char own[] = "pestle.z.";
  const char* name = PESTLE_NODE_STR(node, call_target_name);
  return strncmp(name, own, sizeof(own) - 1) ? NULL : name + strlen("pestle.");
}

static bool is_candidate(const pestle_node_t* node) {
  switch ((int)node->op) {
    case PESTLE_OP_LU:
    case PESTLE_OP_CHOLESKY:
    case PESTLE_OP_TRIANGULAR_SOLVE:
    case PESTLE_OP_SOLVE:
    case PESTLE_OP_INVERSE:
    case PESTLE_OP_QR:
    case PESTLE_OP_EIGH:
    case PESTLE_OP_SVD:
      return true;
    case PESTLE_OP_CUSTOM_CALL:
      return own_name(node) != NULL;
    default:
      return false;
  }
}

bool pestle_libraries_are_used(const pestle_compile_options_t* options) {
  return options->numerics != PESTLE_NUMERICS_STRICT;
}

void pestle_libraries_key(const pestle_device_t* device, pestle_strbuf_t* key) {
  const char* id;
  for (size_t i = 0; pestle_device_library(device, i, &id); ++i)
    pestle_strbuf_appendf(key, "library %s\n", id);
}

// A bit for each letter of the configuration.
static uint32_t letters_of(const char* config) {
  uint32_t flags = 0;
  for (; *config; ++config) {
    if (*config >= 'A' && *config <= 'Z') flags |= 1u << (*config - 'A');
  }
  return flags;
}

static uint32_t flags_of(const pestle_node_t* node) {
  static const struct {
    uint16_t attr;
    uint32_t flag;
  } rows[] = {{PESTLE_ATTR_full, PESTLE_LIBRARY_FULL},
              {PESTLE_ATTR_lower, PESTLE_LIBRARY_LOWER},
              {PESTLE_ATTR_left_side, PESTLE_LIBRARY_LEFT_SIDE},
              {PESTLE_ATTR_unit_diagonal, PESTLE_LIBRARY_UNIT_DIAGONAL}};
  uint32_t flags = 0;
  if (node->op == PESTLE_OP_CUSTOM_CALL) {
    return letters_of(PESTLE_NODE_STR(node, backend_config));
  }
  for (uint32_t a = 0; a < node->attr_count; ++a) {
    const pestle_attr_t* attr = &node->attrs[a];
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
      if (attr->name == rows[i].attr && attr->as.b) flags |= rows[i].flag;
    }
    // ADJOINT is the same on real numbers.
    if (attr->name == PESTLE_ATTR_transpose_a &&
        strcmp(attr->as.str, "NO_TRANSPOSE") != 0) {
      flags |= PESTLE_LIBRARY_TRANSPOSE;
    }
  }
  return flags;
}

typedef struct question_t {
  pestle_library_op_t op;
  pestle_library_view_t views[MAX_TENSORS];
  int64_t strides[MAX_TENSORS][PESTLE_MAX_RANK];
} question_t;

static bool add_view(question_t* q, size_t at, const pestle_type_t* type) {
  if (!pestle_type_is_static(type) || pestle_type_is_complex(type) ||
      !pestle_type_count(type) || !pestle_dtype_bit(type->dtype)) {
    return false;
  }
  pestle_dense_strides(type->dims, (size_t)type->rank,
                       pestle_dtype_size(type->dtype), q->strides[at]);
  q->views[at] = (pestle_library_view_t){.dtype = (int32_t)type->dtype,
                                         .rank = type->rank,
                                         .dims = type->dims,
                                         .strides = q->strides[at]};
  return true;
}

// What a library is asked; false for what none is: tensors without elements, of
// types that plugins do not see.
static bool make_question(const pestle_node_t* node, question_t* q) {
  if (node->operand_count + node->result_count > MAX_TENSORS) return false;
  q->op = (pestle_library_op_t){
      .struct_size = sizeof(q->op),
      .name = node->op == PESTLE_OP_CUSTOM_CALL
                  ? own_name(node)
                  : pestle_op_info((pestle_op_t)node->op)->name,
      .flags = flags_of(node),
      .operand_count = node->operand_count,
      .result_count = node->result_count,
      .operands = q->views,
      .results = q->views + node->operand_count};
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!add_view(q, i, pestle_node_operand(node, i)->type)) return false;
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    const pestle_type_t* type = node->results[i].type;
    if (!add_view(q, node->operand_count + i, type)) return false;
  }
  return true;
}

static const pestle_backend_t* find_taker(const pestle_device_t* device,
                                          const question_t* q) {
  const pestle_backend_t* backend;
  for (size_t i = 0; (backend = pestle_device_library(device, i, NULL)); ++i) {
    if (backend->library->takes(backend->self, &q->op)) return backend;
  }
  return NULL;
}

static pestle_status_t make_call(pestle_node_t* node, const question_t* q,
                                 const pestle_backend_t* backend) {
  char name[64], config[96];
  pestle_type_t types[MAX_TENSORS];
  pestle_value_t *operands[MAX_TENSORS], *results[MAX_TENSORS];
  pestle_builder_t b = pestle_builder_before(node);
  (void)snprintf(name, sizeof(name), PESTLE_LIBRARY_CALL "%s", q->op.name);
  (void)snprintf(config, sizeof(config), "%s %u", backend->name,
                 (unsigned)q->op.flags);
  pestle_custom_call_attrs_t attrs = {.struct_size = sizeof(attrs),
                                      .call_target_name = name,
                                      .backend_config = config,
                                      .backend_dictionary = "",
                                      .called_computations = ""};
  for (uint32_t i = 0; i < node->operand_count; ++i)
    operands[i] = pestle_node_operand(node, i);
  for (uint32_t i = 0; i < node->result_count; ++i)
    types[i] = *node->results[i].type;
  PESTLE_TRY(pestle_op_custom_call(&b, operands, node->operand_count, &attrs,
                                   types, node->result_count, results,
                                   MAX_TENSORS));
  for (uint32_t i = 0; i < node->result_count; ++i)
    pestle_value_replace_all_uses(&node->results[i], results[i]);
  pestle_node_erase(node);
  return NULL;
}

static pestle_status_t offer(const pestle_device_t* device, pestle_node_t* node,
                             pestle_remarks_t* remarks) {
  question_t q;
  if (!is_candidate(node) || !make_question(node, &q)) return NULL;
  const pestle_backend_t* backend = find_taker(device, &q);
  if (!backend) return NULL;
  if (remarks) {
    char text[96];
    (void)snprintf(text, sizeof(text), "is done by the library of backend '%s'",
                   backend->name);
    pestle_remarks_add_on(remarks, "libraries", node, "library", text);
  }
  return make_call(node, &q, backend);
}

pestle_status_t pestle_libraries_apply(const pestle_device_t* device,
                                       pestle_module_t* module,
                                       pestle_remarks_t* remarks) {
  if (!pestle_device_library(device, 0, NULL)) return NULL;
  for (pestle_function_t* f = module->first; f; f = f->next) {
    pestle_node_t* node = pestle_region_next(f->body, NULL);
    while (node) {
      pestle_node_t* next = pestle_region_next(f->body, node);
      PESTLE_TRY(offer(device, node, remarks));
      node = next;
    }
  }
  return NULL;
}
