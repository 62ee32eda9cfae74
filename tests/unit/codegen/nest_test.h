// SPDX-License-Identifier: Apache-2.0
// Nests for tests: the fusion cases lowered, printed, parsed, emitted.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_NEST_TEST_H_
#define PESTLE_TESTS_UNIT_CODEGEN_NEST_TEST_H_

#include <string.h>

#include "codegen/emit/emit_flat.h"
#include "codegen/lower/lower.h"
#include "codegen/schedule/schedule.h"
#include "codegen/sketch/sketch.h"
#include "ir/graph.h"
#include "test.h"
#include "unit/codegen/fusion_cases.h"

enum {
  FUSION_COUNT = sizeof(cases) / sizeof(cases[0]),
};

// One case's fusion and its kernel groups.
typedef struct lowering_t {
  const case_t* c;
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_node_t* fusion;
  pestle_arena_t arena;
  pestle_kernel_group_t* groups;
  uint32_t group_count;
} lowering_t;

static inline void lowering_open(const case_t* c, lowering_t* out) {
  pestle_strbuf_t text;
  *out = (lowering_t){.c = c};
  assert_ok(pestle_context_create(NULL, &out->context));
  pestle_strbuf_init(pestle_allocator_system(), &text);
  make_text(c, &text);
  assert_ok(pestle_module_parse(out->context, text.data, text.size, c->name,
                                &out->module));
  pestle_strbuf_deinit(&text);
  out->fusion = pestle_module_entry(out->module)->body->block->first;
  pestle_arena_init(pestle_allocator_system(), &out->arena);
  assert_ok(pestle_lower_partition(&out->arena, out->fusion, false,
                                   &out->groups, &out->group_count));
}

static inline void lowering_close(lowering_t* l) {
  pestle_arena_deinit(&l->arena);
  pestle_module_release(l->module);
  pestle_context_release(l->context);
}

// A fresh nest of group |g|, of which inputs with a bit in |constants| count as
// constant.
static inline void lowering_nest(lowering_t* l, uint32_t g, uint32_t constants,
                                 pestle_nest_t* out_nest) {
  pestle_nest_init(pestle_allocator_system(), &l->arena, "test", out_nest);
  assert_ok(pestle_lower_group(l->fusion, &l->groups[g], NULL,
                               PESTLE_NUMERICS_DEFAULT, out_nest));
  for (size_t i = 0; i < out_nest->tensors.size; ++i) {
    pestle_nest_tensor_t* t = &out_nest->tensors.data[i];
    if (t->kind == PESTLE_TENSOR_INPUT && (constants >> t->slot & 1)) {
      t->constant = true;
    }
  }
}

static inline const case_t* find_case(const char* name) {
  for (size_t i = 0; i < FUSION_COUNT; ++i) {
    if (!strcmp(cases[i].name, name)) return &cases[i];
  }
  fail_msg("no case %s", name);
  return NULL;
}

// A machine with 16 registers of 16 floats, roughly, and short dot products.
static inline pestle_target_caps_t test_caps(void) {
  pestle_target_caps_t t = {.struct_size = sizeof(t),
                            .vector_bytes = 64,
                            .vector_registers = 32,
                            .max_lanes = 64,
                            .scratch_bytes = 4u << 20};
  t.op_dtypes[PESTLE_KIR_DOT2] = 1u << PESTLE_F32;
  t.op_dtypes[PESTLE_KIR_DOT4] = 1u << PESTLE_I32;
  t.op_dtypes[PESTLE_KIR_LOAD_WORDS] = 1u << PESTLE_I32;
  return t;
}

// The nest's text, to be freed with pestle_strbuf_deinit().
static inline pestle_strbuf_t nest_text(const pestle_nest_t* nest) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  assert_ok(pestle_nest_print(nest, &text));
  return text;
}

// Emits and hashes.
static inline void nest_hash(pestle_nest_t* nest, uint64_t out_hash[2]) {
  pestle_kir_builder_t flat;
  pestle_emitted_t args;
  pestle_kir_init(pestle_allocator_system(), "test", "", &flat);
  assert_ok(pestle_emit_flat(nest, PESTLE_NUMERICS_DEFAULT, &flat, &args));
  assert_ok(pestle_kir_verify(&flat.view));
  out_hash[0] = flat.view.hash[0];
  out_hash[1] = flat.view.hash[1];
  pestle_kir_deinit(&flat);
}

// Applies the primitive of the template |name| with these integers.
static inline pestle_status_t apply_template(pestle_nest_t* nest,
                                             const char* name, uint32_t stage,
                                             const int64_t* ints,
                                             size_t count) {
  pestle_nest_template_t use = {.row = pestle_template_find(name),
                                .stage = stage};
  assert_non_null(use.row);
  memcpy(use.ints, ints, count * sizeof(*ints));
  return pestle_schedule_template(nest, &use);
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_NEST_TEST_H_
