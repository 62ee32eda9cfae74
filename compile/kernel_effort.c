// SPDX-License-Identifier: Apache-2.0
// Which kernels are worth good code. A model has kernels that take a thousandth of a
// run, as the few numbers of a norm or the classes at its end: their code is made soon
// rather than fast, which takes a third of the time of compiling them. By estimates of
// their time alone, and only as many as a run does not notice: all of them together
// are 1 / |COLD_SHARE| of it.
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "compile/kernel_build.h"
#include "pestle/plan_format.h"

enum { COLD_SHARE = 200 };

// Kernels of one code.
typedef struct code_t {
  uint64_t ns;  // of a run
  uint32_t instructions, number;
  bool may_be_cold;
} code_t;

static bool may_be_cold(const pestle_kernels_t* ks, const pestle_kernel_t* k) {
  return !k->source && !k->repeats &&
         ks->targets[k->device].caps.device_type == PESTLE_DEVICE_CPU;
}

// What a run spends in |k|, whose work threads share.
static uint64_t time_of(const pestle_kernels_t* ks, const pestle_kernel_t* k) {
  uint64_t threads = k->estimate_ns / PESTLE_PLAN_NS_PER_THREAD;
  uint64_t cores = ks->targets[k->device].caps.cores;
  if (threads > cores) threads = cores;
  return threads > 1 ? k->estimate_ns / threads : k->estimate_ns;
}

// The least time for what compiling takes first.
static int by_time(const void* a, const void* b) {
  const code_t *x = a, *y = b;
  double left = (double)x->ns * y->instructions;
  double right = (double)y->ns * x->instructions;
  if (left != right) return left < right ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

// Sums up the time of each code; code_of[i] is that of kernel i.
static pestle_status_t find_codes(const pestle_kernels_t* ks, code_t* codes,
                                  uint32_t* code_of, uint32_t* out_count,
                                  uint64_t* out_ns) {
  pestle_map_t seen;
  pestle_map_init(ks->list.allocator, &seen);
  pestle_status_t status = NULL;
  for (size_t i = 0; i < ks->list.size && !status; ++i) {
    const pestle_kernel_t* k = ks->list.data[i];
    const pestle_kir_t* view = &k->legal->view;
    uint64_t key[3] = {view->hash[0], view->hash[1], k->device};
    bool added;
    pestle_map_value_t* at = pestle_map_put(&seen, key, sizeof key, &added);
    if (!at) {
      status = PESTLE_OOM();
      break;
    }
    if (added) {
      at->u64 = (*out_count)++;
      codes[at->u64] = (code_t){.instructions = view->inst_count + 1,
                                .number = (uint32_t)at->u64,
                                .may_be_cold = true};
    }
    code_t* code = &codes[at->u64];
    code->ns += time_of(ks, k);
    code->may_be_cold = code->may_be_cold && may_be_cold(ks, k);
    code_of[i] = code->number;
    *out_ns += time_of(ks, k);
  }
  pestle_map_deinit(&seen);
  return status;
}

pestle_status_t pestle_kernels_rate(pestle_kernels_t* ks) {
  size_t n = ks->list.size + 1;
  code_t* codes = PESTLE_ARENA_ARRAY(ks->arena, code_t, n);
  uint32_t* code_of = PESTLE_ARENA_ARRAY(ks->arena, uint32_t, n);
  bool* is_cold = PESTLE_ARENA_ARRAY(ks->arena, bool, n);
  if (!codes || !code_of || !is_cold) return PESTLE_OOM();
  uint32_t count = 0;
  uint64_t all = 0, cold = 0;
  PESTLE_TRY(find_codes(ks, codes, code_of, &count, &all));
  if (count) qsort(codes, count, sizeof *codes, by_time);
  for (uint32_t c = 0; c < count; ++c) {
    bool fits = codes[c].may_be_cold && cold <= all / COLD_SHARE &&
                codes[c].ns <= all / COLD_SHARE - cold;
    is_cold[codes[c].number] = fits;
    if (fits) cold += codes[c].ns;
  }
  for (size_t i = 0; i < ks->list.size; ++i)
    ks->list.data[i]->is_cold = is_cold[code_of[i]];
  return NULL;
}
