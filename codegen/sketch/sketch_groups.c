// SPDX-License-Identifier: Apache-2.0
// Groups of columns, as of a grouped convolution: the columns of a group read the same
// inputs, those of the next group what lies behind. Vectors seldom end where groups do, so
// there are two ways.
//  - Joined: a tile has the columns of several groups, so many that it ends with one, and
//    shuffles give each lane its group's input (emit_strided_load.c).
//  - Per group: each group has tiles of its own, in whose last vector lanes idle.
// Neither multiplies an input by another group's weights, as one product of all groups
// with zeros between them would: 0 times an infinity is NaN.
//
// The choice weighs idle lanes, rows that fit beside the vectors, and shuffles. Measured
// on a Zen 5, one thread, 3x3 at 28 x 28, us, joined and per group, 8 groups of
//   6   47   59     14  148  129     20  214  313     36  885  803
//   11 131  105     16  144  144     22  617  347     44 2548  985
//   12 104  112     18  240  286     28  423  439
// and by x86-64-v3
//   6   60   59     12  158  203     20  576  528     28 1047  885
#include <inttypes.h>

#include "base/bits.h"
#include "codegen/sketch/sketch.h"

// What a row has for a vector from |first| to |last|, two columns, as emit_strided_load.c
// reads it: by elements, of which the vector before has the first unless a group begins
// with it, or by parts, which are shuffled.
static void add_vector(const pestle_register_tile_t* t, int64_t first,
                       int64_t last, pestle_contract_t* c) {
  int64_t more = last / t->group - first / t->group;
  int64_t parts = pestle_ceil_div(more * t->group_stride + 1, t->lanes);
  bool begins = first % t->group == 0;
  if (more <= parts) {
    c->shares += (double)(more + begins);
  } else {
    c->shares += (double)parts;
    c->shuffles += parts > 1 ? PESTLE_CPU_TWO_PARTS * (double)(parts - 1) : 1;
  }
}

void pestle_sketch_describe_groups(const pestle_register_tile_t* t,
                                   pestle_contract_t* c) {
  if (t->per_group) {
    c->others = c->width / t->group - 1;
    c->batch *= 1 + c->others;
    c->width = t->group;
  } else if (t->group) {
    c->period = t->group / pestle_gcd(t->group, t->lanes);
    for (int64_t v = 0; v < c->period; ++v)
      add_vector(t, v * t->lanes, (v + 1) * t->lanes - 1, c);
    c->shares /= (double)c->period;
    c->shuffles /= (double)c->period;
  }
}

static void note_groups(pestle_sketch_t* k, const pestle_register_tile_t* t,
                        double joined, double parted) {
  pestle_sketch_note(
      k,
      t->per_group ? "groups of %" PRId64 " columns have tiles of their own"
                   : "tiles join groups of %" PRId64
                     " columns, so many that they end with one: shuffles give "
                     "lanes what each group reads",
      t->group);
  if (joined == 0) return;
  pestle_sketch_note(k,
                     "joined they are estimated to take %.3g cycles, apart "
                     "%.3g",
                     joined, parted);
}

void pestle_sketch_choose_groups(pestle_sketch_t* k, const pestle_contract_t* c,
                                 pestle_register_tile_t* t) {
  // Sums in blocks of k are others than those in one, and what is chosen below
  // depends on the cores.
  if (c->block) {
    t->per_group = t->group % t->lanes != 0;
    t->group = t->per_group ? t->group : 0;
    return;
  }
  pestle_contract_t one = *c;
  pestle_register_tile_t own = *t;
  own.per_group = true;
  one.period = 0;
  one.shares = one.shuffles = 0;
  pestle_sketch_describe_groups(&own, &one);
  // Nothing costs 0 but what no tile has.
  double joined = pestle_sketch_cheapest_tiling(k, c).cycles;
  double parted = pestle_sketch_cheapest_tiling(k, &one).cycles;
  t->per_group = joined == 0 || parted < joined;
  note_groups(k, t, joined, parted);
}
