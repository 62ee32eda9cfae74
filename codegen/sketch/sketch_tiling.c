// SPDX-License-Identifier: Apache-2.0
// The tile of a contraction as a choice between options (choice.h): what
// sketch_cost.c looked at, each with its estimate, and the cheapest of them as
// the usual one.
#include <stdio.h>

#include "base/vec.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

static bool same(const pestle_tiling_t* a, const pestle_tiling_t* b) {
  return a->rows == b->rows && a->vectors == b->vectors &&
         a->copied == b->copied && a->block == b->block &&
         a->halo_rows == b->halo_rows && a->unpadded == b->unpadded;
}

void pestle_sketch_tried(const pestle_sketch_t* k, const pestle_tiling_t* x) {
  if (!k->tried) return;
  for (size_t i = 0; i < k->tried->size; ++i) {
    if (same(&k->tried->data[i], x)) return;
  }
  if (!pestle_vec_push(k->tried, *x)) {
    pestle_nest_fail_memory(k->nest);
  }
}

// "8x3", "8x3+panel", "8x3+box7", "8x3+unpadded7", "8x3+block512".
static pestle_option_t option_of(const pestle_tiling_t* x) {
  pestle_option_t o = {.cost = x->cycles};
  char box[20] = "", block[12] = "";
  if (x->halo_rows) {
    (void)snprintf(box, sizeof(box), "+%s%d", x->unpadded ? "unpadded" : "box",
                   (int)x->halo_rows);
  }
  if (x->block) (void)snprintf(block, sizeof(block), "+block%d", (int)x->block);
  (void)snprintf(o.name, sizeof(o.name), "%dx%d%s%.12s%.10s", (int)x->rows,
                 (int)x->vectors, x->copied ? "+panel" : "", box, block);
  return o;
}

static const pestle_question_t question = {
    "tile",
    "cycles of all cores: multiply-adds, loads, cache traffic, and waiting"};

static pestle_tiling_t pick(pestle_sketch_t* k, const pestle_contract_t* c,
                            const pestle_tilings_t* tried,
                            const pestle_tiling_t* usual) {
  uint32_t at = UINT32_MAX, n = (uint32_t)tried->size;
  pestle_option_t* options =
      PESTLE_ARENA_ARRAY(k->nest->arena, pestle_option_t, n + 1);
  if (!options) {
    pestle_nest_fail_memory(k->nest);
    return *usual;
  }
  for (uint32_t i = 0; i < n; ++i) {
    options[i] = option_of(&tried->data[i]);
    if (same(&tried->data[i], usual)) at = i;
  }
  if (at == UINT32_MAX) options[at = n++] = option_of(usual);
  uint32_t taken = pestle_choose(k->nest, question, options, n, at);
  if (taken == at) return *usual;
  pestle_tiling_t x = tried->data[taken];
  x.cycles = pestle_sketch_cycles(k, c, &x);
  return x;
}

pestle_tiling_t pestle_sketch_choose_tiling(pestle_sketch_t* k,
                                            const pestle_contract_t* c) {
  pestle_tilings_t tried;
  pestle_vec_init(&tried, k->nest->allocator);
  if (pestle_choices_are_listed(k->nest)) k->tried = &tried;
  pestle_tiling_t x = pestle_sketch_cheapest_tiling(k, c);
  k->tried = NULL;
  x = pick(k, c, &tried, &x);
  pestle_vec_deinit(&tried);
  return x;
}

bool pestle_sketch_inline_epilogue(pestle_sketch_t* k, bool usual,
                                   double cycles) {
  static const pestle_question_t known = {
      "epilogue", "cycles of a core: the reduction, and a copy in scratch"};
  static const pestle_question_t unknown = {
      "epilogue",
      "what functions cost that are in the code once a vector, and "
      "leave it no registers, is measured alone"};
  if (k->nest->no_scratch) return usual;
  double copy = cycles > 0 ? cycles + pestle_sketch_scratch_cycles(k, k->anchor)
                           : PESTLE_NOT_ESTIMATED;
  const pestle_option_t options[] = {{"scratch", copy}, {"registers", cycles}};
  return pestle_choose(k->nest, cycles > 0 ? known : unknown, options, 2,
                       usual) == 1;
}
