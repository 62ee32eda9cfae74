// SPDX-License-Identifier: Apache-2.0
// What a contraction costs in cycles of one core, from the target description,
// and the cheapest way to run it. A model of four terms: multiply-adds, loads,
// traffic from the cache that holds the vector operand's panel, and what is
// done once per tile or panel. Rates are the target's; where it states none, and
// where a term has another number, that is cost.def's. Shares of the peak on its
// baseline, measured / as the model says:
//
//   tile of 168x256x384   1x4 48/47  2x4 93/93  3x4 95/96  4x4 and up 99/97
//   rows 4 KiB apart      6x4 95/97  8x3 96/97  12x2 88/86
//   panel of 1 MiB        operands of 12 MiB 96/96, of 32 MiB and more 44 (4x4),
//                         66 (6x4) / 31, 47; blocks of k = 1024 91/94
#include "base/bits.h"
#include "codegen/sketch/sketch.h"

// A candidate must be this much cheaper than one that was tried before it, whose
// tile is larger: the model is no better.
static const double BETTER = 0.995;
// What differs by less is not told apart in print.
static const double WORSE = 1.005;

enum {
  // Tiles of one vector would take more rows; 6 is no slower.
  MOST_ROWS = 14,
  // Registers for what a shuffle takes and makes.
  SHUFFLED = 2,
  WIDE_BUDGET = 24,
  WIDE_VECTORS = 4,
  NARROW_VECTORS = 2,
  // A box of several rows of windows fills this share of L2 at most.
  BOXES_OF_L2 = 4,
  MOST_HALO_ROWS = 16,
  FEW_HALO_ROWS = 4,
};

// --- The model ---

static double stated(uint32_t rate, double unit, double usual) {
  return rate ? (double)rate / unit : usual;
}

pestle_core_rates_t pestle_sketch_rates(const pestle_target_caps_t* caps) {
  return (pestle_core_rates_t){
      .fmas = stated(caps->fma_rate, 16, PESTLE_CPU_FMA_RATE),
      .loads = stated(caps->load_rate, 16, PESTLE_CPU_LOAD_RATE),
      .broadcasts = stated(caps->broadcast_rate, 16, PESTLE_CPU_BROADCAST_RATE),
      .l2 = stated(caps->l2_rate, 1, PESTLE_CPU_L2_RATE),
      .l3 = stated(caps->l3_rate, 1, PESTLE_CPU_L3_RATE),
      .crowded = stated(caps->memory_rate, 1, PESTLE_CPU_CROWDED_RATE),
      .latency = stated(caps->fma_cycles, 1, PESTLE_CPU_FMA_LATENCY)};
}

// Bytes a cycle of what does not fit L2.
static double far_rate(const pestle_core_rates_t* rates,
                       const pestle_sketch_t* k, const pestle_contract_t* c) {
  return c->bytes <= k->l3 / 2 ? rates->l3 : rates->crowded;
}

static int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Whether a panel of |reduction| rows of |lines| lines fits a cache of |sets| sets,
// read where it lies: rows |pitch| bytes apart may fall into few of them.
static bool sets_hold(int64_t sets, int64_t ways, int64_t pitch,
                      int64_t reduction, int64_t lines) {
  if (!pitch || pitch % PESTLE_CPU_LINE || !sets) return true;
  int64_t apart = greatest_divisor(pitch / PESTLE_CPU_LINE, sets);
  int64_t used = pestle_sketch_min(sets, sets / apart * lines);
  return reduction * lines <= used * ways;
}

// Bytes a cycle at which a tile reads its panel of |reduction| rows; 0: from L1, beside
// everything else.
static double panel_rate(const pestle_core_rates_t* rates,
                         const pestle_sketch_t* k, const pestle_contract_t* c,
                         const pestle_tiling_t* x, int64_t reduction) {
  int64_t lines =
      x->vectors * c->lanes * PESTLE_SKETCH_ELEMENT / PESTLE_CPU_LINE;
  int64_t panel = reduction * x->vectors * c->lanes * PESTLE_SKETCH_ELEMENT;
  int64_t pitch = x->copied || lines < 1 ? 0 : c->pitch;
  int64_t l1_ways = k->l1 / (PESTLE_CPU_L1_SETS * PESTLE_CPU_LINE);
  if (panel <= k->l1 / 2 &&
      sets_hold(PESTLE_CPU_L1_SETS, l1_ways, pitch, reduction, lines)) {
    return 0;
  }
  int64_t l2_sets = k->l2 / (PESTLE_CPU_L2_WAYS * PESTLE_CPU_LINE);
  bool near = panel <= k->l2 / 2 &&
              sets_hold(l2_sets, PESTLE_CPU_L2_WAYS, pitch, reduction, lines);
  double rate = near ? rates->l2 : far_rate(rates, k, c);
  // Rows of the operand itself that are a large power of two apart use half of
  // the sets at best.
  return c->aliasing && !x->copied ? rate / 2 : rate;
}

// Cycles of one step of the reduction of a tile of |rows| x |vectors|.
static double step_cycles(const pestle_sketch_t* k, const pestle_contract_t* c,
                          const pestle_tiling_t* x, int64_t rows,
                          int64_t vectors) {
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  double fma = (double)(rows * vectors) / rates.fmas;
  double latency = rates.latency + (c->short_dots ? PESTLE_CPU_DOT_LATENCY : 0);
  if (fma < latency) fma = latency;
  // FMAs take broadcasts out of memory themselves, where words are broadcast by
  // an instruction each: of 512^3 bf16 a tile of 8x1 measured 70 % of the peak.
  double broadcasts = (double)rows / (c->short_dots ? 1 : rates.broadcasts);
  double loads = (double)vectors / rates.loads + broadcasts;
  // Of a window that slides along the row only what is new is read.
  if (c->own) {
    loads = pestle_sketch_slides(c)
                ? fma
                : (double)(vectors + rows * vectors) / rates.loads;
  }
  // Lanes of several groups.
  if (c->period) {
    loads = (double)vectors * (1 + (double)rows * c->shares) / rates.loads;
  }
  if (c->strided && !x->copied) {
    loads = (double)(vectors * c->lanes) / rates.loads + broadcasts;
  }
  // Windows begin anywhere, so that nearly each vector is of two lines.
  if (c->im2row) {
    loads = (double)(2 * vectors) / rates.loads + broadcasts;
  }
  double compute = fma > loads ? fma : loads;
  double shuffles = (double)(rows * vectors) * c->shuffles;
  if (compute < shuffles) compute = shuffles;
  if (c->im2row) compute += loads * PESTLE_CPU_WINDOW_LOAD_SHARE;
  if (c->short_dots) compute += loads * PESTLE_CPU_DOT_LOAD_SHARE;
  if (c->row_aliasing && rows > PESTLE_CPU_L1_WAYS) {
    compute += (double)(rows * PESTLE_CPU_EVICTION_QUARTERS) / 4;
  }
  if (c->height * c->reduction * PESTLE_SKETCH_ELEMENT > k->l2 / 2) {
    compute += (double)(rows * PESTLE_SKETCH_ELEMENT) * PESTLE_CPU_ROW_SHARE /
               far_rate(&rates, k, c);
  }
  int64_t reduction = x->block ? x->block : c->reduction;
  double rate = panel_rate(&rates, k, c, x, reduction);
  if (rate == 0) return compute;
  double traffic = (double)(vectors * c->lanes * PESTLE_SKETCH_ELEMENT) / rate;
  return compute > traffic ? compute + traffic * PESTLE_CPU_HIDDEN_SHARE
                           : traffic + compute * PESTLE_CPU_HIDDEN_SHARE;
}

// How much longer than at the full rate a panel's first reading takes: of one
// that was packed not at all, else by how many lines follow each other.
static double first_share(const pestle_contract_t* c,
                          const pestle_tiling_t* x) {
  if (!c->copyable || c->strided) return 1;
  return (double)(x->vectors + PESTLE_CPU_FIRST_LINES) / (double)x->vectors;
}

static double box_cycles(const pestle_contract_t* c, int64_t rows,
                         int64_t vectors, int64_t halo_rows) {
  if (!c->box_rank) return 0;
  const pestle_box_dim_t* inner = &c->box[c->box_rank - 1];
  int64_t elements =
      pestle_sketch_box_elements(c, rows, vectors * c->lanes, halo_rows);
  // A short row is a vector all the same.
  bool row = inner->row == 0 && inner->column == 0 && inner->halo_row == 0;
  if (row && inner->base < c->lanes) {
    elements = elements / inner->base * c->lanes;
  }
  return (double)(elements * PESTLE_CPU_BOX_EIGHTHS) / 8;
}

// Of a tile of |rows| rows that reads what is not padded: lines of the L2 that the
// rows of windows above it have not left in the L1. Where columns share what they
// read it is little, but each tap asks for the window at the border. Rows of planes
// follow each other, and masks hide their ends.
static double unpadded_cycles(const pestle_sketch_t* k,
                              const pestle_contract_t* c,
                              const pestle_tiling_t* x, int64_t rows,
                              int64_t vectors) {
  if (c->per_channel) return 0;
  if (!c->own) return (double)(c->reduction * PESTLE_CPU_UNPADDED_STEP);
  int64_t columns = vectors * c->lanes;
  int64_t line = PESTLE_CPU_LINE / PESTLE_SKETCH_ELEMENT;
  int64_t window = pestle_sketch_box_elements(c, rows, columns, 1) / line;
  int64_t more = pestle_sketch_box_elements(c, rows, columns, 2) / line;
  int64_t l1_ways = k->l1 / (PESTLE_CPU_L1_SETS * PESTLE_CPU_LINE);
  bool stays =
      sets_hold(PESTLE_CPU_L1_SETS, l1_ways, c->width * PESTLE_SKETCH_ELEMENT,
                window / vectors, pestle_sketch_column_strip(k, c, x));
  // The first of a piece's rows has none above it.
  double cycles = PESTLE_CPU_LINE / pestle_sketch_rates(k->caps).l2;
  if (!stays) return (double)window * cycles;
  double lines = (double)(more - window) +
                 (double)(2 * window - more) / (double)x->halo_rows;
  return lines * cycles * PESTLE_CPU_UNPADDED_SHARE;
}

// Around a tile: its results, and the box that it reads.
static double tile_cycles(const pestle_sketch_t* k, const pestle_contract_t* c,
                          const pestle_tiling_t* x, int64_t blocks,
                          int64_t rows, int64_t vectors) {
  double cycles =
      (double)(blocks * (PESTLE_CPU_TILE_CYCLES + 2 * rows * vectors));
  if (x->unpadded) return cycles + unpadded_cycles(k, c, x, rows, vectors);
  return x->halo_rows ? cycles : cycles + box_cycles(c, rows, vectors, 1);
}

// Padded boxes of |halo_rows| rows of windows of an image.
static int64_t boxes(const pestle_contract_t* c, int64_t halo_rows) {
  return pestle_ceil_div(c->most_halo_rows, halo_rows);
}

// Of all tiles of the columns of |vectors| vectors, rows below each other.
static double column_cycles(const pestle_sketch_t* k,
                            const pestle_contract_t* c,
                            const pestle_tiling_t* x, int64_t vectors) {
  int64_t blocks = x->block ? (c->reduction + x->block - 1) / x->block : 1;
  double cycles = 0;
  int64_t full = c->height / x->rows, tail = c->height % x->rows;
  if (full) {
    cycles += (double)full *
              ((double)c->reduction * step_cycles(k, c, x, x->rows, vectors) +
               tile_cycles(k, c, x, blocks, x->rows, vectors));
  }
  if (tail) {
    cycles += (double)c->reduction * step_cycles(k, c, x, tail, vectors) +
              tile_cycles(k, c, x, blocks, tail, vectors);
  }
  if (!x->halo_rows || x->unpadded) return cycles;
  if (c->per_channel) {
    // All columns of a tile's rows share a box.
    int64_t across = (c->width + c->lanes - 1) / c->lanes;
    int64_t tiles = (c->height + x->rows - 1) / x->rows;
    return cycles + box_cycles(c, x->rows, across, 1) *
                        (double)(tiles * vectors) / (double)across;
  }
  // One of |halo_rows| rows.
  return cycles + box_cycles(c, c->height, vectors, x->halo_rows) *
                      (double)boxes(c, x->halo_rows) /
                      (double)c->most_halo_rows;
}

// How often a panel comes from afar, for each of the batch: rows of windows that
// share a box are behind each other under one panel, which waits in L2. Measured,
// 3x3 of 256 to 512 features with strides, 7 rows of 7: 1.5 ms; 2.6 estimated, 1.7
// with this. One that half of L2 does not hold comes from afar for each row, but
// beside the tile's work: panel_rate() has that.
static double panel_readings(const pestle_contract_t* c,
                             const pestle_tiling_t* x) {
  if (!x->halo_rows || c->per_channel) return 1;
  return (double)boxes(c, x->halo_rows) / (double)c->most_halo_rows;
}

double pestle_sketch_cycles(const pestle_sketch_t* k,
                            const pestle_contract_t* c,
                            const pestle_tiling_t* x) {
  int64_t across = (c->width + c->lanes - 1) / c->lanes;
  int64_t full = across / x->vectors, tail = across % x->vectors;
  double cycles = 0;
  if (full) cycles += (double)full * column_cycles(k, c, x, x->vectors);
  if (tail) cycles += column_cycles(k, c, x, tail);
  int64_t block_rows = x->block ? pestle_sketch_block_rows(k, c, x) : c->height;
  int64_t times = (c->height + block_rows - 1) / block_rows;
  double elements = (double)(times * c->reduction * c->width);
  if (x->copied) {
    cycles +=
        elements *
        (c->strided ? PESTLE_CPU_TRANSPOSE_EIGHTHS : PESTLE_CPU_COPY_EIGHTHS) /
        8;
  }
  int64_t panels = c->reduction * c->width * (1 + c->others);
  if (panels * PESTLE_SKETCH_ELEMENT > k->l2 / 2) {
    pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
    cycles += elements * (double)PESTLE_SKETCH_ELEMENT * first_share(c, x) *
              panel_readings(c, x) / far_rate(&rates, k, c);
  }
  cycles *= (double)c->batch;
  if (tail) cycles += cycles * PESTLE_CPU_TAIL_SHARE;
  if (c->height % x->rows) cycles += cycles * PESTLE_CPU_TAIL_SHARE;
  return cycles;
}

// Pieces that threads may take, for each of the batch.
static int64_t pieces(const pestle_sketch_t* k, const pestle_contract_t* c,
                      const pestle_tiling_t* x) {
  int64_t columns = x->vectors * c->lanes;
  int64_t across = (c->width + columns - 1) / columns;
  int64_t rows = x->rows;
  if (x->block) rows = pestle_sketch_block_rows(k, c, x);
  if (x->halo_rows) {
    if (c->per_channel) across = (c->height + rows - 1) / rows;
    if (c->im2row) across = 1;
    if (x->unpadded && c->own) {
      across = pestle_ceil_div(across, pestle_sketch_column_strip(k, c, x));
    }
    return c->batch / c->most_halo_rows * boxes(c, x->halo_rows) * across;
  }
  if (x->copied && !x->block) rows = c->height;
  return c->batch * across * ((c->height + rows - 1) / rows);
}

// What the core with the most to do takes, times the cores. They never end
// together: the others wait for this part of a piece, which counts where pieces
// are large, boxes of rows. Measured on two quiet cores of a Sapphire Rapids, 7x7
// with strides of 3 to 64 features in 14 pieces 783 us, in 56 707.
static const double WAIT = 0.5;

static double spread_cycles(const pestle_sketch_t* k,
                            const pestle_contract_t* c,
                            const pestle_tiling_t* x) {
  int64_t n = pieces(k, c, x), cores = k->cores;
  int64_t rounds = (n + cores - 1) / cores;
  double pieces_each = (double)rounds + (cores > 1 && x->halo_rows ? WAIT : 0);
  return pestle_sketch_cycles(k, c, x) * pieces_each * (double)cores /
         (double)n;
}

int64_t pestle_sketch_block_rows(const pestle_sketch_t* k,
                                 const pestle_contract_t* c,
                                 const pestle_tiling_t* x) {
  // Their accumulators wait in scratch while the blocks go by: a sixteenth of
  // L2, beside a panel of a quarter of it.
  int64_t rows = k->l2 / 16 / (x->vectors * c->lanes * PESTLE_SKETCH_ELEMENT);
  rows = rows / x->rows * x->rows;
  return rows > x->rows ? rows : x->rows;
}

// --- The choice ---

typedef double (*cost_fn_t)(const pestle_sketch_t* k,
                            const pestle_contract_t* c,
                            const pestle_tiling_t* x);

static void try_copies(const pestle_sketch_t* k, const pestle_contract_t* c,
                       cost_fn_t cost, pestle_tiling_t x,
                       pestle_tiling_t* best) {
  int64_t most_copied = k->l2 / 2;
  if (k->caps->scratch_bytes) {
    most_copied = pestle_sketch_min(most_copied, k->caps->scratch_bytes / 2);
  }
  for (int copied = c->packed ? 1 : 0; copied <= (c->copyable ? 1 : 0);
       ++copied) {
    x.copied = copied;
    int64_t reduction = x.block ? x.block : c->reduction;
    int64_t bytes = reduction * x.vectors * c->lanes * PESTLE_SKETCH_ELEMENT;
    if (copied && bytes > most_copied) continue;
    x.cycles = cost(k, c, &x);
    pestle_sketch_tried(k, &x);
    if (!best->rows || x.cycles < best->cycles * BETTER) {
      *best = x;
    }
  }
}

// Boxes of about |most| rows of windows, of one length but for the last.
static int64_t box_rows(const pestle_contract_t* c, int64_t most) {
  return pestle_ceil_div(c->most_halo_rows, boxes(c, most));
}

// Whether as many boxes of |halo_rows| rows fall to each core.
static bool are_even(const pestle_sketch_t* k, const pestle_contract_t* c,
                     int64_t halo_rows) {
  return c->batch / c->most_halo_rows * boxes(c, halo_rows) % k->cores == 0;
}

// Whether cores take rows of windows, not columns, of a depthwise convolution: so
// do the products before and behind it (rows_a_core()). Not where that would take
// boxes of a few rows, of which most is border.
static bool shares_rows(const pestle_sketch_t* k, const pestle_contract_t* c) {
  if (k->cores < 2 || !c->own || c->per_channel || c->im2row ||
      !pestle_sketch_favours_rows(c->most_halo_rows * c->height, c->width)) {
    return false;
  }
  for (int64_t most = MOST_HALO_ROWS; most >= FEW_HALO_ROWS; most /= 2) {
    if (are_even(k, c, box_rows(c, most))) return true;
  }
  return false;
}

// Boxes of whole rows of windows, which their tiles share: what one window needs
// of its input, its neighbours need as well. Measured, one thread: 3x3 of 96 to
// 24 features at 160 x 160 13.9 -> 13.2 ms, 3x3 of 3 features with strides 1.6 ->
// 1.3 ms, 5x5 of one feature 8.8 -> 4.4 us.
static void try_boxes(const pestle_sketch_t* k, const pestle_contract_t* c,
                      cost_fn_t cost, pestle_tiling_t x,
                      pestle_tiling_t* best) {
  try_copies(k, c, cost, x, best);
  if (x.block) return;
  int64_t most = k->l2 / BOXES_OF_L2;
  if (k->caps->scratch_bytes) {
    most = pestle_sketch_min(most, k->caps->scratch_bytes / 2);
  }
  // Of rows that no other rows lie above. Measured on a Zen 5, 4000 x 64 to 128
  // features, three taps 128 apart: 1742 -> 849 us.
  if (c->unpadded && c->most_halo_rows <= 1 && !c->per_channel) {
    x.unpadded = true;
    try_copies(k, c, cost, x, best);
    x.unpadded = false;
  }
  int64_t first = c->per_channel ? 1 : MOST_HALO_ROWS;
  bool shares = c->most_halo_rows > 1 && shares_rows(k, c);
  for (int64_t halo_rows = first; halo_rows > 0 && c->most_halo_rows > 1;
       halo_rows /= 2) {
    x.halo_rows = box_rows(c, halo_rows);
    if (shares && !are_even(k, c, x.halo_rows)) continue;
    bool wide = c->per_channel || c->im2row;
    int64_t columns = wide ? c->width : x.vectors * c->lanes;
    int64_t elements = pestle_sketch_box_elements(
        c, c->per_channel ? x.rows : c->height, columns, x.halo_rows);
    x.unpadded = c->unpadded;
    if (x.unpadded) try_copies(k, c, cost, x, best);
    x.unpadded = false;
    if (elements * PESTLE_SKETCH_ELEMENT <= most) {
      try_copies(k, c, cost, x, best);
    }
  }
}

// The cheapest tile for blocks of |block| elements of the reduction; 0: all in one.
static pestle_tiling_t best_tile(const pestle_sketch_t* k,
                                 const pestle_contract_t* c, int64_t block,
                                 cost_fn_t cost) {
  pestle_tiling_t best = {0};
  int64_t budget = k->registers * PESTLE_CPU_ACCUMULATORS_OF_4 / 4;
  int64_t widest = budget >= WIDE_BUDGET ? WIDE_VECTORS : NARROW_VECTORS;
  int64_t across = (c->width + c->lanes - 1) / c->lanes;
  // What several windows share stays in registers for one vector of columns.
  if (pestle_sketch_slides(c)) widest = 1;
  if (widest < c->period) widest = pestle_sketch_min(c->period, budget);
  for (int64_t v = pestle_sketch_min(across, widest); v >= 1; --v) {
    if (c->period && v < across && v % c->period) continue;
    int64_t most = pestle_sketch_min(budget / v, MOST_ROWS);
    // What each row reads of its own waits beside a row of the vector operand.
    if (c->period) {
      int64_t held = (k->registers - SHUFFLED) / v - 1;
      most = pestle_sketch_min(most, held > 1 ? held : 1);
    }
    for (int64_t r = pestle_sketch_min(c->height, most); r >= 1; --r) {
      pestle_tiling_t x = {.rows = r, .vectors = v, .block = block};
      try_boxes(k, c, cost, x, &best);
    }
  }
  return best;
}

pestle_tiling_t pestle_sketch_cheapest_tiling(const pestle_sketch_t* k,
                                              const pestle_contract_t* c) {
  // Blocks decide in which order products are added: on them the number of
  // cores has no say.
  pestle_tiling_t best = best_tile(k, c, 0, pestle_sketch_cycles);
  int64_t block = 0;
  if (!best.rows) return best;  // groups begin together in no tile
  if (c->block) {
    pestle_tiling_t cut = best_tile(k, c, c->block, pestle_sketch_cycles);
    if (cut.cycles < best.cycles * BETTER) block = c->block;
  }
  if (k->tried) pestle_vec_clear(k->tried);
  best = best_tile(k, c, block, spread_cycles);
  best.cycles = pestle_sketch_cycles(k, c, &best);
  return best;
}

// --- Why ---

static void append_choice(const pestle_sketch_t* k, const pestle_contract_t* c,
                          const pestle_tiling_t* x, pestle_strbuf_t* text) {
  pestle_strbuf_appendf(text, "%lld rows x %lld vectors of %lld",
                        (long long)x->rows, (long long)x->vectors,
                        (long long)c->lanes);
  if (c->copyable) {
    pestle_strbuf_append_c(text,
                           x->copied ? ", panel copied" : ", panel in place");
  }
  if (x->halo_rows) {
    pestle_strbuf_appendf(text, ", %lld rows of windows %s",
                          (long long)x->halo_rows,
                          x->unpadded ? "where they lie" : "a padded box");
  } else if (x->unpadded) {
    pestle_strbuf_append_c(text, ", windows where they lie");
  }
  if (x->block) {
    pestle_strbuf_appendf(text, ", k in blocks of %lld", (long long)x->block);
  }
  pestle_strbuf_appendf(text, ": %.3g cycles", x->cycles);
  // Fewer or larger pieces leave cores without work: tiles are chosen by that.
  double spread = spread_cycles(k, c, x);
  if (spread > x->cycles * WORSE) {
    pestle_strbuf_appendf(text, " (%.3g with cores that wait)", spread);
  }
}

static void append_rejected(pestle_sketch_t* k, const pestle_contract_t* c,
                            pestle_tiling_t x, pestle_strbuf_t* text) {
  x.cycles = pestle_sketch_cycles(k, c, &x);
  pestle_strbuf_append_c(text, "\n  rejected ");
  append_choice(k, c, &x, text);
}

pestle_status_t pestle_sketch_keep_summary(pestle_sketch_t* k,
                                           pestle_strbuf_t* text) {
  pestle_status_t status = pestle_strbuf_status(text);
  if (!status) {
    const char* kept = pestle_arena_copy(
        k->nest->arena, pestle_strbuf_cstr(text), text->size + 1, 1);
    if (!kept) status = PESTLE_OOM();
    k->nest->summary = kept;
  }
  pestle_strbuf_deinit(text);
  return status;
}

pestle_status_t pestle_sketch_explain(pestle_sketch_t* k,
                                      const pestle_contract_t* c,
                                      const pestle_tiling_t* x) {
  pestle_strbuf_t text;
  pestle_strbuf_init(k->nest->allocator, &text);
  pestle_strbuf_append_c(&text, "tile of ");
  append_choice(k, c, x, &text);
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  double fma = (double)c->batch * (double)c->height * (double)c->reduction *
               (double)((c->width + c->lanes - 1) / c->lanes);
  pestle_strbuf_appendf(&text, ", %.0f %% of them multiply-adds",
                        100 * fma / rates.fmas / x->cycles);
  pestle_tiling_t other = *x;
  if (c->copyable) {
    other.copied = !x->copied;
    append_rejected(k, c, other, &text);
    other = *x;
  }
  if (c->block) {
    other.block = x->block ? 0 : c->block;
    append_rejected(k, c, other, &text);
    other = *x;
  }
  if (x->unpadded) {
    other.unpadded = false;
    append_rejected(k, c, other, &text);
    other = *x;
  }
  if (x->halo_rows) {
    other.halo_rows = 0;
    other.unpadded = false;
    append_rejected(k, c, other, &text);
    other = *x;
  }
  if (x->vectors > 1 && !c->period) {
    --other.vectors;
    append_rejected(k, c, other, &text);
    other = *x;
  }
  if (x->rows > 1) {
    --other.rows;
    append_rejected(k, c, other, &text);
  }
  return pestle_sketch_keep_summary(k, &text);
}
