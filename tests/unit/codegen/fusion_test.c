// SPDX-License-Identifier: Apache-2.0
// Fusions through lowering, schedule, emission and legalisation, then run by
// the interpreter and by native code, against the reference evaluator on the
// graph. Shapes are chosen to meet every tail: odd, prime, one, larger than a
// tile.
#include <math.h>
#include <stdlib.h>

#include "../plugins/llvm_kernel.h"
#include "base/half.h"
#include "codegen/emit/emit_flat.h"
#include "codegen/lower/lower.h"
#include "codegen/schedule/schedule.h"
#include "codegen/sketch/sketch.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "test.h"
#include "unit/codegen/fusion_cases.h"

// --- Data ---

static uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void fill_random(const pestle_type_t* type, void* data, uint32_t seed) {
  uint32_t state = seed * 77 + 5;
  size_t size = pestle_dtype_size(type->dtype);
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    double v = (double)next_random(&state) / (1 << 24) * 2 - 1;
    uint64_t bits;
    if (pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
      bits = pestle_float_encode(type->dtype, v);
    } else if (type->dtype == PESTLE_I1) {
      bits = v > 0;
    } else {
      bits = (uint64_t)(int64_t)(v * 9);
      if (pestle_dtype_is(type->dtype, PESTLE_KIND_UNSIGNED)) bits &= 7;
    }
    memcpy((char*)data + (size_t)i * size, &bits, size);
  }
}

static double element(const pestle_type_t* type, const void* data, int64_t i) {
  size_t size = pestle_dtype_size(type->dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)data + (size_t)i * size, size);
  if (pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
    return pestle_float_decode(type->dtype, bits);
  }
  return (double)(int64_t)bits;
}

static void* make_data(const pestle_type_t* type) {
  size_t size = (pestle_type_bytes(type) + 64 + 63) / 64 * 64;
  void* data = aligned_alloc(64, size);
  memset(data, 0xcd, size);  // what is past the end must stay so
  return data;
}

static void compare(const case_t* c, const char* how, const pestle_type_t* type,
                    const void* want, const void* got) {
  double scale = 0, worst = 0;
  int64_t at = -1, n = pestle_type_count(type);
  for (int64_t i = 0; i < n; ++i) {
    double w = fabs(element(type, want, i));
    if (isfinite(w) && w > scale) scale = w;
  }
  for (int64_t i = 0; i < n; ++i) {
    double w = element(type, want, i), g = element(type, got, i);
    double d = isnan(w) && isnan(g) ? 0 : w == g ? 0 : fabs(w - g);
    if (isnan(d)) d = INFINITY;
    if (d > worst) {
      worst = d;
      at = i;
    }
  }
  if (worst > c->tolerance * (scale > 0 ? scale : 1)) {
    fail_msg("%s on %s: element %lld is %.9g, should be %.9g", c->name, how,
             (long long)at, element(type, got, at), element(type, want, at));
  }
  size_t bytes = pestle_type_bytes(type);
  for (size_t i = bytes; i < bytes + 64 && i % 64; ++i) {
    assert_int_equal(((const uint8_t*)got)[i], 0xcd);
  }
}

// --- Running ---

enum { MOST_FOR_LANES = 20000 };

typedef struct run_t {
  const case_t* c;
  pestle_node_t* fusion;
  void* inputs[16];
  void* results[8];
} run_t;

static void run_kernel(const run_t* r, const pestle_backend_t* backend,
                       const pestle_kernel_group_t* group,
                       const pestle_target_caps_t* caps,
                       pestle_arena_t* arena) {
  pestle_allocator_t a = pestle_allocator_system();
  pestle_nest_t nest;
  pestle_kir_builder_t flat, legal;
  pestle_emitted_t args;
  pestle_nest_init(a, arena, "test", &nest);
  pestle_kir_init(a, "test", "", &flat);
  assert_ok(pestle_lower_group(r->fusion, group, NULL, PESTLE_NUMERICS_DEFAULT,
                               &nest));
  assert_ok(pestle_sketch(&nest, caps, true));
  if (getenv("PESTLE_TEST_PRINT")) {
    pestle_strbuf_t text;
    pestle_strbuf_init(a, &text);
    assert_ok(pestle_nest_print(&nest, &text));
    print_message("%s\n", pestle_strbuf_cstr(&text));
    pestle_strbuf_deinit(&text);
  }
  assert_ok(pestle_emit_flat(&nest, PESTLE_NUMERICS_DEFAULT, &flat, &args));
  if (getenv("PESTLE_TEST_PRINT")) {
    pestle_strbuf_t text;
    pestle_strbuf_init(a, &text);
    assert_ok(pestle_kir_print(&flat.view, &text));
    print_message("%s\n", pestle_strbuf_cstr(&text));
    pestle_strbuf_deinit(&text);
  }
  assert_ok(pestle_kir_verify(&flat.view));
  assert_ok(
      pestle_kir_legalise(&flat.view, caps, PESTLE_NUMERICS_DEFAULT, &legal));
  assert_ok(pestle_kir_verify(&legal.view));
  code_t code = code_make(backend, &legal.view, NULL);
  void* buffers[64];
  for (uint32_t i = 0; i < args.count; ++i) {
    const pestle_nest_tensor_t* t = &nest.tensors.data[args.tensors[i]];
    assert_null(t->pack);
    buffers[i] = t->kind == PESTLE_TENSOR_OUTPUT ? r->results[t->slot]
                 : t->elements ? (void*)(uintptr_t)t->elements->data
                               : r->inputs[t->slot];
  }
  void* scratch = aligned_alloc(64, (legal.view.shared_bytes + 127) / 64 * 64);
  // In two pieces, as two threads would run it.
  int64_t n = legal.view.group[0], half = n / 2;
  assert_int_equal(code.entry(code.self, buffers, NULL, 0, half, scratch), 0);
  assert_int_equal(code.entry(code.self, buffers, NULL, half, n, scratch), 0);
  free(scratch);
  backend->device->unload(backend->self, code.loaded);
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(&flat);
  pestle_nest_deinit(&nest);
}

// |small_caches|: as if nothing fitted in them, so that what is done about large
// tensors is done about these.
static void run_on(run_t* r, const pestle_backend_t* backend, const char* cpu,
                   void* const* want, bool small_caches) {
  pestle_arena_t arena;
  pestle_kernel_group_t* groups;
  uint32_t count;
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  assert_ok(backend->target->describe(backend->self, cpu, &caps));
  if (small_caches) caps.l1_bytes = caps.l2_bytes = caps.l3_bytes = 2;
  pestle_arena_init(pestle_allocator_system(), &arena);
  for (uint32_t i = 0; i < r->fusion->result_count; ++i) {
    r->results[i] = make_data(r->fusion->results[i].type);
  }
  assert_ok(pestle_lower_partition(&arena, r->fusion, false, &groups, &count));
  for (uint32_t g = 0; g < count; ++g) {
    run_kernel(r, backend, &groups[g], &caps, &arena);
  }
  for (uint32_t i = 0; i < r->fusion->result_count; ++i) {
    compare(r->c, cpu ? cpu : backend->name, r->fusion->results[i].type,
            want[i], r->results[i]);
    free(r->results[i]);
  }
  pestle_arena_deinit(&arena);
}

static void run_case(const case_t* c) {
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_strbuf_t text;
  assert_ok(pestle_context_create(NULL, &context));
  pestle_strbuf_init(pestle_allocator_system(), &text);
  make_text(c, &text);
  assert_ok(
      pestle_module_parse(context, text.data, text.size, c->name, &module));
  assert_ok(pestle_module_verify(module));
  run_t r = {.c = c};
  r.fusion = pestle_module_entry(module)->body->block->first;
  void* want[8];
  for (uint32_t i = 0; i < r.fusion->operand_count; ++i) {
    const pestle_type_t* type = pestle_node_operand(r.fusion, i)->type;
    r.inputs[i] = make_data(type);
    fill_random(type, r.inputs[i], i);
  }
  for (uint32_t i = 0; i < r.fusion->result_count; ++i) {
    want[i] = make_data(r.fusion->results[i].type);
  }
  assert_ok(pestle_ref_evaluate_node(pestle_allocator_system(), r.fusion,
                                     (const void* const*)r.inputs, want));
  for (int small = 0; small < 2; ++small) {
    run_on(&r, ref_backend, NULL, want, small);
    run_on(&r, llvm_backend, NULL, want, small);
  }
  // As targets with lanes, which the interpreter runs one by one.
  int64_t elements = 0;
  for (uint32_t i = 0; i < r.fusion->operand_count; ++i) {
    elements += pestle_type_count(pestle_node_operand(r.fusion, i)->type);
  }
  static const char* const kinds[] = {"simt", "simt8", "simt1", "simtm"};
  if (elements <= MOST_FOR_LANES) {
    run_on(&r, ref_backend, kinds[elements % 3], want, false);
    run_on(&r, ref_backend, kinds[3], want, false);
  }
  for (uint32_t i = 0; i < r.fusion->operand_count; ++i)
    free(r.inputs[i]);
  for (uint32_t i = 0; i < r.fusion->result_count; ++i)
    free(want[i]);
  pestle_strbuf_deinit(&text);
  pestle_module_release(module);
  pestle_context_release(context);
}

static void test_case(void** state) {
  run_case(*state);
}

int main(void) {
  enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
  struct CMUnitTest tests[COUNT];
  size_t n = 0;
  const char* only = getenv("PESTLE_TEST_ONLY");
  for (size_t i = 0; i < COUNT; ++i) {
    if (only && strcmp(only, cases[i].name)) continue;
    tests[n++] = (struct CMUnitTest){.name = cases[i].name,
                                     .test_func = test_case,
                                     .initial_state = (void*)&cases[i]};
  }
  return _cmocka_run_group_tests("fusions", tests, n, llvm_setup,
                                 llvm_teardown);
}
