// SPDX-License-Identifier: Apache-2.0
#include "ir/built.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

static const pestle_built_row_t ops[] = {
#define PESTLE_BUILT(name, op, OPERANDS, RESULTS, attrs, keywords) \
  {name, pestle_built_##op, OPERANDS, RESULTS, attrs, keywords},
#include "ir/built.def"
};
static const pestle_built_row_t calls[] = {
#define PESTLE_BUILT_CALL(target, op, OPERANDS, RESULTS) \
  {target, pestle_built_##op, OPERANDS, RESULTS, "", ""},
#include "ir/built.def"
};
enum {
  OPS = sizeof(ops) / sizeof(ops[0]),
  CALLS = sizeof(calls) / sizeof(calls[0]),
};

static const pestle_built_row_t* find(const pestle_built_row_t* rows,
                                      size_t count, pestle_str_t name) {
  for (size_t i = 0; i < count; ++i) {
    if (pestle_str_equal_c(name, rows[i].name)) return &rows[i];
  }
  return NULL;
}

const pestle_built_row_t* pestle_built_find(pestle_str_t name) {
  return find(ops, OPS, name);
}

const pestle_built_row_t* pestle_built_find_call(pestle_str_t target) {
  return find(calls, CALLS, target);
}

const pestle_built_row_t* pestle_built_row(size_t index) {
  return index < OPS ? &ops[index] : NULL;
}

// --- For the formulas ---

void pestle_built_fail(pestle_built_t* b, pestle_status_code_t code,
                       const char* format, ...) {
  char text[512];
  va_list args;
  if (b->f.status) return;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  b->f.status =
      pestle_status_make(code, __FILE__, __LINE__, "'%s': %s", b->name, text);
}

static const pestle_generic_value_t* find_in(
    const pestle_generic_entry_t* entries, const char* key) {
  for (const pestle_generic_entry_t* e = entries; e; e = e->next) {
    if (pestle_str_equal_c(e->key, key)) return &e->value;
  }
  return NULL;
}

const pestle_generic_value_t* pestle_built_attr(const pestle_built_t* b,
                                                const char* key) {
  return find_in(b->attrs, key);
}

const pestle_generic_value_t* pestle_built_config(const pestle_built_t* b,
                                                  const char* key) {
  const pestle_generic_value_t* all = pestle_built_attr(b, "backend_config");
  if (!all || all->kind != PESTLE_GENERIC_DICT) {
    all = pestle_built_attr(b, "mhlo.backend_config");
  }
  return all && all->kind == PESTLE_GENERIC_DICT ? find_in(all->entries, key)
                                                 : NULL;
}

bool pestle_built_i64s(pestle_built_t* b, const char* key, bool required,
                       pestle_i64s_t* out) {
  const pestle_generic_value_t* value = pestle_built_attr(b, key);
  *out = (pestle_i64s_t){NULL, 0};
  if (b->f.status) return false;
  if (!value && required) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED, "attribute '%s' is missing",
                      key);
  }
  if (!value || b->f.status) return !required;
  pestle_generic_t g = {.arena = b->arena};
  b->f.status = pestle_generic_i64s(&g, value, out);
  return !b->f.status;
}

bool pestle_built_i64(pestle_built_t* b, const char* key, bool required,
                      int64_t* out) {
  const pestle_generic_value_t* value = pestle_built_attr(b, key);
  if (b->f.status) return false;
  if (!value && !required) return true;
  if (!value || value->kind != PESTLE_GENERIC_INT) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED,
                      "attribute '%s' must be an integer", key);
    return false;
  }
  *out = value->i64;
  return true;
}

// --- Functions that are passed ---

static const char* callee_of(pestle_built_t* b) {
  const pestle_generic_value_t* list =
      pestle_built_attr(b, "called_computations");
  const pestle_generic_entry_t* e = list ? list->entries : NULL;
  bool names = e && (e->value.kind == PESTLE_GENERIC_SYMBOL ||
                     e->value.kind == PESTLE_GENERIC_STRING);
  if (names && !e->next) {
    return e->value.text.data;
  }
  pestle_built_fail(b, PESTLE_STATUS_MALFORMED,
                    "'called_computations' must name one function");
  return NULL;
}

static void fill_region(pestle_built_t* b, pestle_formula_t* f,
                        const char* name, size_t reads, size_t results) {
  pestle_attr_t callee = PESTLE_SET_STR(callee, name);
  pestle_node_t* call = pestle_f_node(
      f, &(pestle_node_spec_t){.op = PESTLE_OP_CALL,
                               .operands = f->builder.block->arguments,
                               .operand_count = reads,
                               .attrs = &callee,
                               .attr_count = 1});
  if (f->status) return;
  if (call->result_count != results) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED, "'%s' must give %zu results",
                      name, results);
    return;
  }
  pestle_value_t** values =
      PESTLE_ARENA_ARRAY(b->arena, pestle_value_t*, results + 1);
  if (!values) f->status = PESTLE_OOM();
  for (size_t i = 0; values && i < results; ++i)
    values[i] = &call->results[i];
  if (values) f->status = pestle_op_return(&f->builder, values, results, NULL);
}

pestle_region_t* pestle_built_region(pestle_built_t* b,
                                     const pestle_type_t* types, size_t count,
                                     size_t reads, size_t results) {
  pestle_region_t* region = NULL;
  pestle_builder_t inside = {.module = b->f.builder.module,
                             .loc = b->f.builder.loc};
  const char* name = callee_of(b);
  if (b->f.status) return NULL;
  b->f.status =
      pestle_region_create(inside.module, types, count, &region, &inside.block);
  if (b->f.status) return NULL;
  pestle_formula_t f = pestle_formula_make(inside);
  fill_region(b, &f, name, reads, results);
  if (!b->f.status) {
    b->f.status = f.status;
  } else {
    pestle_status_release(f.status);
  }
  if (b->f.status) pestle_region_discard(region);
  return b->f.status ? NULL : region;
}
