// SPDX-License-Identifier: Apache-2.0
// A module over a mesh on one evaluator, and divided on one for each process.
#ifndef PESTLE_TESTS_UNIT_PASSES_PARTITION_TEST_H_
#define PESTLE_TESTS_UNIT_PASSES_PARTITION_TEST_H_

#include "passes_test.h"

#include "ir/spread.h"
#include "pestle/partition.h"

enum { MOST_RANKS = 16 };

typedef struct counts_t {
  int of[PESTLE_OP_COUNT];
  int all;  // collectives
} counts_t;

// What says where values lie is nothing to who has them whole.
static inline void drop_wishes(pestle_module_t* module) {
  const pestle_region_t* body = pestle_module_entry(module)->body;
  for (pestle_node_t *n = body->block->first, *next; n; n = next) {
    next = pestle_region_next(body, n);
    if (!pestle_is_mark(n)) continue;
    pestle_value_replace_all_uses(&n->results[0], pestle_node_operand(n, 0));
    pestle_node_erase(n);
  }
}

static inline counts_t count_collectives(pestle_module_t* module) {
  counts_t c = {.all = 0};
  const pestle_region_t* body = pestle_module_entry(module)->body;
  for (const pestle_node_t* n = NULL; (n = pestle_region_next(body, n));) {
    ++c.of[n->op];
    c.all += n->operand_count &&
             pestle_op_info((pestle_op_t)n->op)->fuse == PESTLE_FUSE_COLLECTIVE;
  }
  return c;
}

// The part of |whole| that |rank| has, or |part| put where it belongs.
static inline void move_part(const pestle_function_t* f, bool result,
                             size_t index, int32_t rank,
                             const pestle_type_t* whole,
                             const pestle_type_t* local, char* all, char* part,
                             bool out) {
  int64_t starts[PESTLE_MAX_RANK], at[PESTLE_MAX_RANK] = {0};
  bool first;
  assert_ok(pestle_function_part(f, result, index, rank, starts, &first));
  size_t size = pestle_dtype_size(whole->dtype);
  for (int64_t i = 0; i < pestle_type_count(local); ++i) {
    int64_t to = 0;
    for (int32_t d = 0; d < whole->rank; ++d)
      to = to * whole->dims[d] + starts[d] + at[d];
    if (out) {
      memcpy(all + (size_t)to * size, part + (size_t)i * size, size);
    } else {
      memcpy(part + (size_t)i * size, all + (size_t)to * size, size);
    }
    for (int32_t d = whole->rank; d-- > 0;) {
      if (++at[d] < local->dims[d]) break;
      at[d] = 0;
    }
  }
}

static inline bool number_of(pestle_dtype_t dtype, const char* from,
                             double* out) {
  float narrow;
  if (dtype != PESTLE_F64 && dtype != PESTLE_F32) return false;
  if (dtype == PESTLE_F64) memcpy(out, from, sizeof(*out));
  if (dtype == PESTLE_F32) {
    memcpy(&narrow, from, sizeof(narrow));
    *out = narrow;
  }
  return true;
}

// The largest finite one: sums that cancel are as far off as what they are made of is
// large, which other elements of the tensor show.
static inline double largest_of(const pestle_type_t* type, const char* data) {
  double most = 0, x;
  size_t size = pestle_dtype_size(type->dtype);
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    if (!number_of(type->dtype, data + (size_t)i * size, &x)) return 0;
    if (isfinite(x) && fabs(x) > most) most = fabs(x);
  }
  return most;
}

static inline bool is_near(pestle_dtype_t dtype, const char* a, const char* b,
                           double largest) {
  double x, y;
  if (!number_of(dtype, a, &x) || !number_of(dtype, b, &y))
    return !memcmp(a, b, pestle_dtype_size(dtype));
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  if (isinf(x) || isinf(y)) return x == y;
  return fabs(x - y) <= 2e-5 * (1 + fabs(x) + fabs(y)) + 1e-6 * largest;
}

typedef struct spread_run_t {
  pestle_type_t in_types[TEST_MAX_ARRAYS], out_types[TEST_MAX_ARRAYS];
  size_t in_count, out_count;
  void *in[TEST_MAX_ARRAYS], *out[TEST_MAX_ARRAYS];
} spread_run_t;

static inline void* zeros(const pestle_type_t* type) {
  return calloc(1, pestle_type_bytes(type) + 16);
}

static inline void fill_array(const pestle_type_t* type, void* data,
                              uint64_t* seed) {
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    uint64_t r = test_random(seed) >> 20;
    double number = (double)(int64_t)(r % 4001 - 2000) / 500.0;
    if (type->dtype == PESTLE_F32) {
      ((float*)data)[i] = (float)number;
    } else if (type->dtype == PESTLE_F64) {
      ((double*)data)[i] = number;
    } else if (type->dtype == PESTLE_I32) {
      ((int32_t*)data)[i] = (int32_t)(r % 13);
    } else if (type->dtype == PESTLE_I64) {
      ((int64_t*)data)[i] = (int64_t)(r % 13);
    } else if (type->dtype == PESTLE_U8) {
      ((uint8_t*)data)[i] = (uint8_t)r;
    } else if (type->dtype == PESTLE_I1) {
      ((uint8_t*)data)[i] = (uint8_t)(r & 1);
    } else {
      fail_msg("no numbers of this type are made");
    }
  }
}

static inline void run_whole(const pestle_function_t* f, uint64_t seed,
                             spread_run_t* run) {
  const pestle_block_t* block = f->body->block;
  *run = (spread_run_t){.in_count = block->argument_count,
                        .out_count = block->last->operand_count};
  for (size_t i = 0; i < run->in_count; ++i) {
    run->in_types[i] = *block->arguments[i]->type;
    run->in[i] = zeros(&run->in_types[i]);
    fill_array(&run->in_types[i], run->in[i], &seed);
  }
  for (size_t i = 0; i < run->out_count; ++i) {
    run->out_types[i] = *pestle_node_operand(block->last, i)->type;
    run->out[i] = zeros(&run->out_types[i]);
  }
  assert_ok(pestle_ref_evaluate_function(
      pestle_allocator_system(), f, (const void* const*)run->in, run->out));
}

static inline void run_free(spread_run_t* run) {
  for (size_t i = 0; i < run->in_count; ++i)
    free(run->in[i]);
  for (size_t i = 0; i < run->out_count; ++i)
    free(run->out[i]);
}

// How many elements of all processes' results differ from the whole's; -1: a process
// failed, which only a planted fault may make it do.
static inline int64_t run_parts(const pestle_function_t* f, int32_t ranks,
                                const spread_run_t* whole) {
  const pestle_block_t* block = f->body->block;
  void *in[MOST_RANKS][TEST_MAX_ARRAYS], *out[MOST_RANKS][TEST_MAX_ARRAYS];
  const void* const* ins[MOST_RANKS];
  void* const* outs[MOST_RANKS];
  for (int32_t r = 0; r < ranks; ++r) {
    for (size_t i = 0; i < whole->in_count; ++i) {
      const pestle_type_t* local = block->arguments[i]->type;
      in[r][i] = zeros(local);
      move_part(f, false, i, r, &whole->in_types[i], local, whole->in[i],
                in[r][i], false);
    }
    for (size_t i = 0; i < whole->out_count; ++i)
      out[r][i] = zeros(pestle_node_operand(block->last, i)->type);
    ins[r] = (const void* const*)in[r];
    outs[r] = out[r];
  }
  pestle_status_t status =
      pestle_ref_evaluate_world(pestle_allocator_system(), f, ins, outs);
  int64_t differ = status ? -1 : 0;
  bool ran = !status;
  pestle_status_release(status);
  for (int32_t r = 0; r < ranks; ++r) {
    for (size_t i = 0; i < whole->out_count; ++i) {
      const pestle_type_t* local = pestle_node_operand(block->last, i)->type;
      char* want = zeros(local);
      move_part(f, true, i, r, &whole->out_types[i], local, whole->out[i], want,
                false);
      size_t size = pestle_dtype_size(local->dtype);
      double largest = largest_of(&whole->out_types[i], whole->out[i]);
      for (int64_t k = 0; ran && k < pestle_type_count(local); ++k)
        differ += !is_near(local->dtype, want + (size_t)k * size,
                           (char*)out[r][i] + (size_t)k * size, largest);
      free(want);
      free(out[r][i]);
    }
    for (size_t i = 0; i < whole->in_count; ++i)
      free(in[r][i]);
  }
  return differ;
}

// The module as it is on one, then divided: results equal. What it came to be.
static inline counts_t check(const char* text, int print) {
  pestle_context_t* context = test_context();
  pestle_module_t* module = test_parse(context, text);
  int32_t ranks = pestle_module_world(module).partitions;
  assert_true(ranks <= MOST_RANKS);
  spread_run_t whole;
  pestle_module_t* plain = test_parse(context, text);
  drop_wishes(plain);
  run_whole(pestle_module_entry(plain), 0x1234567 + strlen(text), &whole);
  pestle_module_release(plain);
  test_run(module, "canonicalise,recognise,partition,canonicalise");
  if (print) {
    char* printed = test_print(module);
    fprintf(stderr, "%s\n", printed);
    free(printed);
  }
  assert_int_equal(run_parts(pestle_module_entry(module), ranks, &whole), 0);
  counts_t c = count_collectives(module);
  run_free(&whole);
  pestle_module_release(module);
  pestle_context_release(context);
  return c;
}

#endif  // PESTLE_TESTS_UNIT_PASSES_PARTITION_TEST_H_
