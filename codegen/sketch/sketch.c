// SPDX-License-Identifier: Apache-2.0
// Which schedule: by the shape of the nest and the target's description, never
// by the name of an op. A nest has one output stage, the anchor, and reductions.
//
//   map           nothing is reduced        fused axes, split, vectors along the
//                                          innermost
//   rows          reductions along a        reductions under the row loop,
//                 contiguous axis           partial results in lanes
//   tile          a reduction whose         accumulators of rows x vectors in
//                 innermost map axis is     registers: GEMM, convolution,
//                 contiguous                pooling, column sums
//   gemv_rows     few vectors times         rows of the matrix in order, partial
//                 a matrix of rows          results in lanes
//   gemv_columns  few vectors times         some rows of the matrix at a time,
//                 a large matrix            sums of whole rows in scratch
//   flash_attention_cpu
//                 two contractions, row     tiles of both, scores and their rows
//                 reductions between them   in scratch
//   columns       several reductions along  one row's columns in lanes, all
//                 strided axes              reductions of a column tile after each
//                                           other, maps that are kept in scratch
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

enum {
  // A row that is kept in scratch instead of computed anew fills a quarter of L2
  // at most, so that its operands find room beside it.
  ROWS_OF_L2 = 4,
};

void pestle_sketch_note(const pestle_sketch_t* k, const char* format, ...) {
  if (!k->nest->why) return;
  va_list args;
  va_start(args, format);
  pestle_strbuf_appendf_v(k->nest->why, format, args);
  va_end(args);
  pestle_strbuf_append_char(k->nest->why, '\n');
}

int64_t pestle_sketch_lanes(const pestle_sketch_t* k, int64_t extent) {
  return pestle_sketch_min(k->lanes,
                           (int64_t)pestle_next_pow2((uint64_t)extent));
}

// --- Costs ---

typedef struct cost_t {
  uint8_t* seen;
  bool transcendental;
} cost_t;

static void cost_visit(cost_t* c, const pestle_expr_t* e) {
  if (c->seen[e->id]) return;
  c->seen[e->id] = 1;
  if (e->kind == PESTLE_EXPR_OP &&
      pestle_op_info((pestle_op_t)e->op)->flags & PESTLE_OP_FLAG_TRANS) {
    c->transcendental = true;
  }
  for (int i = 0; i < 3; ++i) {
    if (e->args[i]) cost_visit(c, e->args[i]);
  }
}

bool pestle_sketch_transcendental(pestle_sketch_t* k,
                                  const pestle_nest_stage_t* s) {
  cost_t c = {0};
  c.seen = pestle_arena_alloc_zero(k->nest->arena, k->nest->expr_count + 1, 1);
  if (!c.seen) {
    pestle_nest_fail_memory(k->nest);
    return false;
  }
  for (uint32_t v = 0; v < s->value_count; ++v)
    cost_visit(&c, s->values[v]);
  return c.transcendental;
}

// --- Which maps to inline ---

enum { NO_STAGE = -1, MANY_STAGES = -2 };

typedef struct use_t {
  pestle_sketch_t* k;
  uint32_t* readers;  // by stage: how many stages read it
  // By stage: the one that reads it where all maps between are inlined, or one of
  // the above.
  int32_t* ends;
  int32_t end;  // what the current reader is, or ends as
  bool* seen;   // by stage, of the current reader
} use_t;

static void use_visit(void* user, const pestle_expr_t* e) {
  use_t* u = user;
  int32_t producer = u->k->nest->tensors.data[e->i].stage;
  if (u->k->nest->tensors.data[e->i].kind != PESTLE_TENSOR_STAGE) return;
  if (producer < 0 || u->seen[producer]) return;
  u->seen[producer] = true;
  ++u->readers[producer];
  int32_t* end = &u->ends[producer];
  *end = *end == NO_STAGE || *end == u->end ? u->end : MANY_STAGES;
}

// Whether |s| may become a part of its readers.
static bool is_passing(const pestle_sketch_t* k, uint32_t s) {
  const pestle_nest_stage_t* st = pestle_sketch_stage(k, s);
  return !st->is_reduction && s != k->anchor && (int32_t)s != k->middle &&
         (!st->keep || k->nest->no_scratch || pestle_sketch_has_lanes(k));
}

// Readers lie behind what they read.
static pestle_status_t find_uses(pestle_sketch_t* k, use_t* u) {
  pestle_nest_t* nest = k->nest;
  size_t n = nest->stages.size;
  u->k = k;
  u->readers = PESTLE_ARENA_ARRAY(nest->arena, uint32_t, n);
  u->ends = PESTLE_ARENA_ARRAY(nest->arena, int32_t, n);
  u->seen = PESTLE_ARENA_ARRAY(nest->arena, bool, n);
  if (!u->readers || !u->ends || !u->seen) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", nest->name);
  }
  memset(u->readers, 0, n * sizeof(*u->readers));
  for (uint32_t s = 0; s < n; ++s)
    u->ends[s] = NO_STAGE;
  for (uint32_t s = (uint32_t)n; s-- > 0;) {
    const pestle_nest_stage_t* st = &nest->stages.data[s];
    memset(u->seen, 0, n);
    u->end = is_passing(k, s) ? u->ends[s] : (int32_t)s;
    pestle_nest_visit_values(nest, st, use_visit, u);
  }
  return pestle_nest_status(nest);
}

static bool any_reduce(const pestle_sketch_t* k) {
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    if (k->nest->stages.data[s].is_reduction) return true;
  }
  return false;
}

int64_t pestle_sketch_reduction_extent(const pestle_sketch_t* k,
                                       const pestle_nest_stage_t* s) {
  int64_t n = 1;
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    n *= pestle_nest_axis_span(&k->nest->axes.data[s->roots[i]]);
  }
  return n;
}

static int64_t longest_reduce(const pestle_sketch_t* k) {
  int64_t most = 0;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    int64_t n = pestle_sketch_reduction_extent(k, &k->nest->stages.data[s]);
    if (n > most) most = n;
  }
  return most;
}

typedef struct flag_t {
  pestle_sketch_t* k;
  const bool* which;
  bool hit;
} flag_t;

static void flag_visit(void* user, const pestle_expr_t* e) {
  flag_t* f = user;
  const pestle_nest_tensor_t* t = &f->k->nest->tensors.data[e->i];
  if (t->kind == PESTLE_TENSOR_STAGE && t->stage >= 0 && f->which[t->stage]) {
    f->hit = true;
  }
}

static bool reads_stage(pestle_sketch_t* k, const pestle_nest_stage_t* s,
                        const bool* which) {
  flag_t f = {k, which, false};
  pestle_nest_visit_values(k->nest, s, flag_visit, &f);
  return f.hit;
}

// Map |s|, which |readers| stages read, is made once for all. Anew for each it would
// be added to something else, and so may be rounded otherwise.
static void choose_kept(pestle_sketch_t* k, uint32_t s, uint32_t readers) {
  static const pestle_question_t q = {
      "kept", "cycles of a core: this stage, and a copy in scratch"};
  double once = pestle_sketch_map_cycles(k, s, 1);
  const pestle_option_t options[] = {
      {"scratch", once + pestle_sketch_scratch_cycles(k, s)},
      {"anew", once * readers}};
  pestle_choose_fixed(k->nest, q, options, 2, 0);
}

// All map stages, except transcendental ones that several stages read beside a
// reduction: these are kept, as the exponentials of a softmax are. (Those that all end in
// one stage are in its expression once.)
static pestle_status_t inline_maps(pestle_sketch_t* k) {
  pestle_nest_t* nest = k->nest;
  size_t n = nest->stages.size;
  use_t u;
  PESTLE_TRY(find_uses(k, &u));
  bool* inlined = pestle_arena_alloc_zero(nest->arena, n, 1);
  bool* costly = pestle_arena_alloc_zero(nest->arena, n, 1);
  if (!inlined || !costly) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", nest->name);
  }
  bool keep = longest_reduce(k) * PESTLE_SKETCH_ELEMENT <= k->l2 / ROWS_OF_L2 &&
              any_reduce(k) && !nest->no_scratch;
  if (pestle_sketch_has_lanes(k)) {
    keep = keep && pestle_sketch_keeps_rows(k, longest_reduce(k));
  }
  for (uint32_t s = 0; s < n; ++s) {
    const pestle_nest_stage_t* st = &nest->stages.data[s];
    if (st->is_reduction || s == k->anchor) continue;
    costly[s] =
        pestle_sketch_transcendental(k, st) || reads_stage(k, st, costly);
    bool shared = u.readers[s] > 1 && u.ends[s] == MANY_STAGES;
    inlined[s] = is_passing(k, s) && !(keep && costly[s] && shared);
    if (inlined[s]) continue;
    costly[s] = false;
    if ((int32_t)s == k->middle) {
      pestle_sketch_note(
          k,
          "'%s' is kept in scratch, a part of a row at a time: it "
          "passes from one convolution to the other",
          st->name);
    } else if (st->keep) {
      pestle_sketch_note(k,
                         "'%s' is a copy with its border, in scratch beside "
                         "its reader: no tap tests where it is",
                         st->name);
    } else {
      pestle_sketch_note(k,
                         "'%s' is kept in scratch: %u stages read it, and it "
                         "costs tens of instructions an element",
                         st->name, u.readers[s]);
      choose_kept(k, s, u.readers[s]);
    }
  }
  return pestle_schedule_inline(nest, inlined);
}

// --- Axes that are one ---

static bool is_longer(const pestle_sketch_t* k, uint32_t axis) {
  return pestle_sketch_extent(k, axis) > 1;
}

// Neighbouring axes of a product along which all that it and its reader touch
// moves as along one are one: a tile then has rows (or columns) of several of
// them. Measured, one thread of a Sapphire Rapids, 1x1 convolution of 384 to 64
// features at 14 x 14: 14 rows x 1 vector 85 us, which is what divides the width;
// 6 x 4 70.
static pestle_status_t flatten_product(pestle_sketch_t* k, uint32_t reduce) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, reduce);
  if (!pestle_sketch_is_product(f) || !pestle_sketch_aligned(k, reduce)) {
    return NULL;
  }
  int32_t tensor = (int32_t)f->tensors[0];
  for (uint32_t i = f->map_count ? f->map_count - 1 : 0; i-- > 0;) {
    f = pestle_sketch_stage(k, reduce);
    if (!is_longer(k, f->roots[i]) || !is_longer(k, f->roots[i + 1])) continue;
    bool may, reader, done;
    PESTLE_TRY(pestle_nest_may_fuse(nest, reduce, i, -1, &may));
    if (!may) continue;
    PESTLE_TRY(pestle_nest_may_fuse(nest, k->anchor, i, tensor, &reader));
    if (!reader) continue;
    PESTLE_TRY(pestle_schedule_fuse(nest, reduce, i, &done));
    PESTLE_TRY(pestle_schedule_fuse(nest, k->anchor, i, &done));
  }
  return NULL;
}

// --- The choice ---

static int32_t only_reduce(const pestle_sketch_t* k, uint32_t* out_count) {
  int32_t id = -1;
  *out_count = 0;
  for (uint32_t s = 0; s < k->nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = &k->nest->stages.data[s];
    if (st->inlined || st->keep || s == k->anchor) continue;
    ++*out_count;
    if (st->is_reduction) id = (int32_t)s;
  }
  return id;
}

static uint32_t count_reductions(const pestle_sketch_t* k) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < k->anchor; ++s) {
    count += k->nest->stages.data[s].is_reduction;
  }
  return count;
}

// Why no tile of accumulators was made.
static const char* why_rows(pestle_sketch_t* k, uint32_t count,
                            int32_t reduce) {
  if (count > 1) return "several stages that make and use a row";
  if (reduce < 0) return "a stage that is kept for its readers";
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, (uint32_t)reduce);
  if (!f->map_count) return "all elements are reduced into one, in one group";
  return pestle_sketch_aligned(k, (uint32_t)reduce)
             ? "the reduction's elements lie side by side, its results do not: "
               "lanes hold parts of one result (a tile would hold results)"
             : "the result is not read where it was reduced, which a tile "
               "wants";
}

// The form |form| of |reduce| is the first that fits: which others would.
static void choose_form(pestle_sketch_t* k, uint32_t reduce, const char* form) {
  static const pestle_question_t q = {
      "form", "cycles of a core: multiply-adds, loads, bytes"};
  const char* gemv;
  if (!pestle_choices_are_listed(k->nest)) {
    pestle_choose_only(k->nest, "form", form);
    return;
  }
  bool tiles = pestle_sketch_tile_fits(k, reduce);
  bool packed = pestle_sketch_prefers_dot(k, reduce);
  pestle_option_t options[2] = {{"", PESTLE_NOT_ESTIMATED}};
  uint32_t n = 0;
  double cycles = packed ? 0 : pestle_sketch_gemv_estimate(k, reduce, &gemv);
  if (cycles > 0) {
    options[n].cost = cycles;
    (void)snprintf(options[n++].name, sizeof(options->name), "%s", gemv);
  }
  if (tiles) {
    options[n] = (pestle_option_t){"tile", PESTLE_NOT_ESTIMATED};
    if (!packed) options[n].cost = pestle_sketch_tile_estimate(k, reduce);
    ++n;
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (strcmp(options[i].name, form)) continue;
    pestle_choose_fixed(k->nest, q, options, n, i);
    return;
  }
  pestle_choose_only(k->nest, "form", form);
}

// The forms for one reduction; |*out_done|: one was taken.
static pestle_status_t try_single(pestle_sketch_t* k, uint32_t reduce,
                                  bool* out_done) {
  *out_done = true;
  bool packed = pestle_sketch_prefers_dot(k, reduce);
  if (!packed && pestle_sketch_gemv_rows_fits(k, reduce)) {
    pestle_sketch_note(k,
                       "gemv_rows: few vectors times a matrix, whose rows are "
                       "read in order");
    choose_form(k, reduce, "gemv_rows");
    return pestle_sketch_gemv_rows(k, reduce);
  }
  if (!packed && pestle_sketch_gemv_columns_fits(k, reduce)) {
    pestle_sketch_note(k,
                       "gemv_columns: few vectors times a matrix that no cache "
                       "holds, a few of its rows at a time");
    choose_form(k, reduce, "gemv_columns");
    return pestle_sketch_gemv_columns(k, reduce);
  }
  if (pestle_sketch_tile_fits(k, reduce)) {
    pestle_sketch_note(
        k,
        "tile of accumulators: one reduction, whose results lie side "
        "by side along the innermost dimension");
    choose_form(k, reduce, "tile");
    return pestle_sketch_tile(k, reduce);
  }
  *out_done = false;
  return NULL;
}

static pestle_status_t choose(pestle_sketch_t* k) {
  pestle_nest_t* nest = k->nest;
  uint32_t count;
  int32_t reduce = only_reduce(k, &count);
  if (nest->no_scratch) {
    pestle_sketch_note(k,
                       "nothing is kept in scratch: the usual schedule needs "
                       "more than the target's %u bytes",
                       k->caps->scratch_bytes);
  }
  if (count == 0) {
    pestle_sketch_note(k, "map: nothing is reduced");
    pestle_choose_only(nest, "form", "map");
    return pestle_sketch_map(k);
  }
  if (count == 1 && reduce >= 0) {
    bool done;
    PESTLE_TRY(flatten_product(k, (uint32_t)reduce));
    PESTLE_TRY(try_single(k, (uint32_t)reduce, &done));
    if (done) return NULL;
  }
  if (pestle_sketch_pair_fits(k)) {
    return pestle_sketch_pair(k);
  }
  if (!nest->no_scratch && pestle_sketch_flash_attention_cpu_fits(k)) {
    pestle_sketch_note(
        k,
        "flash_attention_cpu: two contractions with reductions of rows between "
        "them; the scores never lie in memory");
    return pestle_sketch_flash_attention_cpu(k);
  }
  bool* row = pestle_arena_alloc_zero(nest->arena, PESTLE_NEST_MAX_AXES, 1);
  if (!row) return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", nest->name);
  PESTLE_TRY(pestle_sketch_row_axes(k, row));
  int32_t column = pestle_sketch_column_axis(k, row);
  if (column >= 0) {
    pestle_sketch_note(
        k,
        "columns: %" PRIu32
        " reductions along dimensions with a stride; columns that "
        "lie side by side are reduced together",
        count_reductions(k));
    pestle_choose_only(nest, "form", "columns");
    return pestle_sketch_columns(k, row, column);
  }
  pestle_sketch_note(k, "rows: %s", why_rows(k, count, reduce));
  pestle_choose_only(nest, "form", "rows");
  k->row = row;
  return pestle_sketch_rows(k, row);
}

// Both factors of a product may be parts of one argument, as queries and keys are:
// what is packed or copied of one is no business of the other.
static pestle_status_t split_reads(pestle_sketch_t* k) {
  for (uint32_t s = 0; s < k->anchor; ++s) {
    if (pestle_sketch_stage(k, s)->inlined) continue;
    size_t arguments = k->nest->tensors.size;
    for (uint32_t t = 0; t < arguments; ++t) {
      if (pestle_schedule_may_split_read(k->nest, s, t))
        PESTLE_TRY(pestle_schedule_split_read(k->nest, s, t));
    }
  }
  return pestle_nest_status(k->nest);
}

int64_t pestle_sketch_result_bytes(const pestle_sketch_t* k) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint64_t bytes = 0;
  for (uint32_t v = 0; v < y->value_count; ++v) {
    bytes += pestle_type_bytes(&k->nest->tensors.data[y->tensors[v]].type);
  }
  return (int64_t)bytes;
}

static bool has_end(const pestle_sketch_t* k) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  bool ends = false;
  for (uint32_t i = 0; i < y->map_count; ++i)
    ends |= k->nest->axes.data[y->roots[i]].end_scale > 0;
  return ends;
}

// Results that the last cache cannot hold until somebody reads them go past
// it; and so do those whose lines it would bring one by one. Of results that end only a
// run tells how many there are, and few stay where they are.
static pestle_status_t stream_results(pestle_sketch_t* k) {
  int64_t bytes = pestle_sketch_result_bytes(k);
  const char* why;
  int64_t l3 = (int64_t)k->caps->l3_bytes;
  if (has_end(k)) return NULL;
  if (!k->scattered_stores && (!l3 || bytes < l3 / PESTLE_CPU_STREAMED_LEAST))
    return NULL;
  if (!pestle_nest_may_stream(k->nest, k->anchor, &why)) return NULL;
  bool usual = k->scattered_stores
                   ? bytes >= k->l2 * PESTLE_CPU_SCATTERED_L2S
                   : bytes >= l3 / 2 * PESTLE_CPU_STREAMED_HALVES;
  static const pestle_question_t known = {
      "stream", "cycles of a core: the results, to memory and to their reader"};
  static const pestle_question_t scattered = {
      "stream", "what lines cost that come one by one is measured alone"};
  double costs[2] = {PESTLE_NOT_ESTIMATED, PESTLE_NOT_ESTIMATED};
  if (!k->scattered_stores) pestle_sketch_stream_costs(k, costs);
  if (!pestle_choose_flag(k->nest, k->scattered_stores ? scattered : known,
                          costs, usual)) {
    return NULL;
  }
  return pestle_schedule_stream(k->nest, k->anchor);
}

pestle_status_t pestle_sketch(pestle_nest_t* nest,
                              const pestle_target_caps_t* caps,
                              bool reassociate) {
  pestle_sketch_t k = {
      .nest = nest,
      .caps = caps,
      .reassociate = reassociate,
      .transposed_copy = -1,
      .anchor = (uint32_t)nest->stages.size - 1,
      .registers = caps->vector_registers ? caps->vector_registers
                                          : PESTLE_CPU_REGISTERS,
      .lanes = caps->vector_bytes > PESTLE_SKETCH_ELEMENT
                   ? caps->vector_bytes / PESTLE_SKETCH_ELEMENT
                   : 1,
      .l1 = caps->l1_bytes ? (int64_t)caps->l1_bytes : PESTLE_CPU_L1_BYTES,
      .l2 = caps->l2_bytes ? (int64_t)caps->l2_bytes : PESTLE_CPU_L2_BYTES,
      .l3 = caps->l3_bytes ? (int64_t)caps->l3_bytes : PESTLE_CPU_L3_BYTES,
      .cores = caps->cores ? (int64_t)caps->cores : PESTLE_CPU_CORES};
  k.l2 >>= nest->halvings;
  if (nest->is_quick)
    k.registers = pestle_sketch_min(k.registers, PESTLE_CPU_QUICK_REGISTERS);
  if (k.registers < PESTLE_CPU_LEAST_REGISTERS)
    k.registers = PESTLE_CPU_LEAST_REGISTERS;
  k.middle = pestle_sketch_pair_middle(&k);
  PESTLE_TRY(inline_maps(&k));
  if (pestle_sketch_has_lanes(&k)) {
    nest->subgroup = caps->subgroup;
    nest->wide_moves = true;
    return pestle_sketch_with_lanes(&k);
  }
  PESTLE_TRY(split_reads(&k));
  PESTLE_TRY(choose(&k));
  PESTLE_TRY(stream_results(&k));
  PESTLE_TRY(pestle_sketch_prefetch_results(&k));
  return k.row ? pestle_sketch_prefetch(&k, k.row) : NULL;
}
