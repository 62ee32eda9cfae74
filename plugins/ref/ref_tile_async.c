// SPDX-License-Identifier: Apache-2.0
// Copies by boxes and products of warpgroups: a ticket each, carried out at a
// random moment between the asking and the wait.
#include <math.h>
#include <string.h>

#include "plugins/ref/ref_tile.h"

// --- Tickets ---

static ref_ticket_t* take_ticket(ref_tiles_t* t, const ref_step_t* s,
                                 uint32_t lane) {
  for (uint32_t i = 0; i < REF_TICKETS; ++i) {
    ref_ticket_t* k = &t->ticket[i];
    if (k->state != REF_TICKET_FREE) continue;
    memset(k, 0, sizeof *k);
    k->state = REF_TICKET_ASKED;
    k->step = s;
    k->lane = lane;
    k->order = t->order++;
    ++t->ticket_time[i];
    return k;
  }
  pestle_ref_plugin_fault(t, s, "more than %d are under way", REF_TICKETS);
  return NULL;
}

static uint32_t number_of(const ref_tiles_t* t, const ref_ticket_t* k) {
  return (uint32_t)(k - t->ticket);
}

static int64_t value_of(const ref_tiles_t* t, uint32_t offset) {
  int64_t value;
  memcpy(&value, t->m->frame + offset, sizeof value);
  return value;
}

// --- Barriers ---

ref_mbar_t* pestle_ref_plugin_mbar(ref_tiles_t* t, const ref_step_t* s,
                                   uint64_t at) {
  for (uint32_t i = 0; i < REF_MBARS; ++i)
    if (t->mbar[i].at == at) return &t->mbar[i];
  pestle_ref_plugin_fault(t, s, "no barrier was initialised at byte %llu",
                          (unsigned long long)at);
  return NULL;
}

bool pestle_ref_plugin_arrived(ref_tiles_t* t, const ref_step_t* s,
                               ref_mbar_t* b, int64_t arrivals, int64_t bytes) {
  b->pending -= arrivals;
  b->bytes -= bytes;
  if (b->pending < 0) {
    return pestle_ref_plugin_fault(
        t, s, "more than %lld arrive at a phase of the barrier at byte %llu",
        (long long)b->count, (unsigned long long)b->at);
  }
  if (b->pending || b->bytes) return true;
  for (uint32_t i = 0; i < REF_TICKETS; ++i) {
    const ref_ticket_t* k = &t->ticket[i];
    if (k->state == REF_TICKET_ASKED && k->mbar == b) {
      return pestle_ref_plugin_fault(
          t, s,
          "the phase of the barrier at byte %llu ends before instruction "
          "%u has copied: it expects too few bytes",
          (unsigned long long)b->at, k->step->id);
    }
  }
  b->phase ^= 1;
  b->pending = b->count;
  memcpy(b->done.seen, b->arrived.seen, t->actors * sizeof *b->done.seen);
  memcpy(b->done.fenced, b->arrived.fenced, t->actors * sizeof *b->done.fenced);
  return true;
}

// --- Copies ---

// Bytes are exchanged in pieces of 16: of rows of |swizzle| bytes, piece c of
// row r stands where piece c ^ r would.
static uint64_t swizzled(uint64_t at, uint32_t swizzle) {
  uint64_t pieces = swizzle / 16;
  return pieces ? at ^ ((at >> 7 & (pieces - 1)) << 4) : at;
}

typedef bool (*visit_t)(ref_tiles_t* t, ref_ticket_t* k, uint64_t shared,
                        unsigned char* element);

// What of the tensor is at a pixel's place: |at| is where it or its window stands.
static bool element_at(const ref_map_t* map, const ref_ticket_t* k,
                       const int64_t* at, uint64_t* out) {
  bool inside = true;
  *out = map->offset;
  for (uint32_t d = 0; d < map->rank; ++d) {
    bool moves = map->windows && d && d + 1 < map->rank;
    int64_t c = at[d] + (moves ? k->coord[map->rank + d - 1] : 0);
    inside = inside && c >= 0 && c < (int64_t)map->extent[d];
    *out += (uint64_t)c * map->stride[d];
  }
  return inside;
}

// To the box's next element.
static void go_on(const ref_map_t* map, const ref_ticket_t* k, int64_t* at) {
  if (!map->windows) {
    for (uint32_t d = 0; d < map->rank; ++d) {
      if (++at[d] < k->coord[d] + (int64_t)map->box[d]) return;
      at[d] = k->coord[d];
    }
    return;
  }
  if (++at[0] < k->coord[0] + (int64_t)map->box[0]) return;
  at[0] = k->coord[0];
  for (uint32_t d = 1; d + 1 < map->rank; ++d) {
    at[d] += map->step[d];
    if (at[d] <= (int64_t)map->extent[d] - 1 + map->high[d]) return;
    at[d] = map->low[d];
  }
  ++at[map->rank - 1];
}

// Each element of the box, NULL where it lies outside of the tensor.
static bool walk(ref_tiles_t* t, ref_ticket_t* k, visit_t visit) {
  const ref_map_t* map = &t->m->program->maps[k->step->place];
  unsigned char* data = t->m->buffers[map->slot];
  int64_t at[REF_MAP_DIMS];
  uint64_t count = 1, element;
  for (uint32_t d = 0; d < map->rank; ++d) {
    at[d] = k->coord[d];
    count *= map->box[d];
  }
  for (uint64_t i = 0; i < count; ++i) {
    bool inside = element_at(map, k, at, &element);
    if (inside && element >= map->count) {
      return pestle_ref_plugin_fault(t, k->step,
                                     "the tensor map leaves its buffer");
    }
    uint64_t shared = swizzled(k->a + i * map->size, map->swizzle);
    if (!visit(t, k, shared, inside ? data + element * map->size : NULL)) {
      return false;
    }
    go_on(map, k, at);
  }
  return true;
}

static uint32_t size_of(const ref_tiles_t* t, const ref_ticket_t* k) {
  return t->m->program->maps[k->step->place].size;
}

static bool ask_load(ref_tiles_t* t, ref_ticket_t* k, uint64_t shared,
                     unsigned char* element) {
  (void)element;
  return pestle_ref_plugin_touch_async(t, number_of(t, k), shared,
                                       size_of(t, k), true);
}

static bool ask_store(ref_tiles_t* t, ref_ticket_t* k, uint64_t shared,
                      unsigned char* element) {
  return !element || pestle_ref_plugin_touch_async(t, number_of(t, k), shared,
                                                   size_of(t, k), false);
}

static bool do_load(ref_tiles_t* t, ref_ticket_t* k, uint64_t shared,
                    unsigned char* element) {
  unsigned char* to = t->memory + shared;
  if (element) {
    memcpy(to, element, size_of(t, k));
  } else {
    memset(to, 0, size_of(t, k));
  }
  return true;
}

static bool do_store(ref_tiles_t* t, ref_ticket_t* k, uint64_t shared,
                     unsigned char* element) {
  if (element) memcpy(element, t->memory + shared, size_of(t, k));
  return true;
}

// Whether a window stands where the copy begins, and its offset is one that the
// copy's bits take.
static bool check_window(ref_tiles_t* t, const ref_step_t* s,
                         const ref_map_t* map, const ref_ticket_t* k) {
  static const int64_t ends[] = {65536, 256, 32};
  for (uint32_t d = 1; d + 1 < map->rank; ++d) {
    int64_t at = k->coord[d], offset = k->coord[map->rank + d - 1];
    if (at < map->low[d] || at > (int64_t)map->extent[d] - 1 + map->high[d] ||
        (at - map->low[d]) % map->step[d]) {
      return pestle_ref_plugin_fault(
          t, s, "no window stands at %lld along dim %u of its map",
          (long long)at, d);
    }
    if (offset < 0 || offset >= ends[map->rank - 3]) {
      return pestle_ref_plugin_fault(
          t, s, "a window has no offset %lld along dim %u of its map",
          (long long)offset, d);
    }
  }
  return true;
}

// In the memory of group |group|.
static ref_ticket_t* take_copy(ref_tiles_t* t, const ref_step_t* s,
                               uint32_t group) {
  ref_ticket_t* k = take_ticket(t, s, t->now);
  const ref_map_t* map = &t->m->program->maps[s->place];
  if (!k) return NULL;
  k->a = (uint64_t)value_of(t, s->a) % t->stride + group * t->stride;
  uint32_t numbers = map->windows ? 2 * map->rank - 2 : map->rank;
  for (uint32_t d = 0; d < numbers; ++d)
    k->coord[d] = value_of(t, t->m->program->coords[s->target + d]);
  if (map->windows && !check_window(t, s, map, k)) return NULL;
  uint64_t row = (uint64_t)map->box[0] * map->size;
  if (k->a % 128 || (map->swizzle && (k->a % (8 * (uint64_t)map->swizzle) ||
                                      row > map->swizzle))) {
    pestle_ref_plugin_fault(
        t, s, "byte %llu is no place for a box with a swizzle of %u bytes",
        (unsigned long long)k->a, map->swizzle);
    return NULL;
  }
  return k;
}

static bool load_to(ref_tiles_t* t, const ref_step_t* s, uint32_t group) {
  ref_ticket_t* k = take_copy(t, s, group);
  if (!k) return false;
  uint64_t at = (uint64_t)value_of(t, s->b) % t->stride + group * t->stride;
  uint32_t actor = t->lanes + number_of(t, k);
  k->mbar = pestle_ref_plugin_mbar(t, s, at);
  // The barrier is used as tiles are: who initialised it has to have fenced.
  return k->mbar &&
         pestle_ref_plugin_reach(t, s, pestle_ref_plugin_group_of(t, t->now),
                                 actor, t->ticket_time[number_of(t, k)], at) &&
         pestle_ref_plugin_touch_async(t, number_of(t, k), at, 8, false) &&
         walk(t, k, ask_load);
}

// To all groups: copies of their own, each of which comes when it comes.
bool pestle_ref_plugin_tile_load(ref_tiles_t* t, const ref_step_t* s) {
  if (s->kind == REF_STEP_TILE_LOAD)
    return load_to(t, s, pestle_ref_plugin_group_of(t, t->now));
  for (uint32_t group = 0; group < t->cluster; ++group)
    if (!load_to(t, s, group)) return false;
  return true;
}

bool pestle_ref_plugin_tile_store(ref_tiles_t* t, const ref_step_t* s) {
  ref_ticket_t* k = take_copy(t, s, pestle_ref_plugin_group_of(t, t->now));
  if (!k) return false;
  k->batch = t->lane[t->now].batch++;
  return walk(t, k, ask_store);
}

// --- Products ---

typedef struct operand_t {
  const unsigned char* shared;
  uint64_t at;
  bool transposed;
  pestle_dtype_t dtype;
  uint32_t swizzle;
} operand_t;

enum { TAPS = REF_TAPS, ROW_BYTES = 128, CHUNK = 64 };

// Rows are as long as the swizzle is wide, but those of transposed tiles, which
// are 128 bytes.
static uint64_t place_of(const operand_t* x, unsigned row, unsigned tap) {
  uint64_t at = x->transposed
                    ? x->at + row / CHUNK * (uint64_t)CHUNK * ROW_BYTES +
                          (uint64_t)tap * ROW_BYTES + 2 * (row % CHUNK)
                    : x->at + (uint64_t)row * x->swizzle + 2 * tap;
  return swizzled(at, x->swizzle);
}

static float element_of(const operand_t* x, unsigned row, unsigned tap) {
  uint16_t bits;
  memcpy(&bits, x->shared + place_of(x, row, tap), sizeof bits);
  return pestle_ref_plugin_decode(x->dtype, bits);
}

static operand_t operand_of(const ref_tiles_t* t, const ref_ticket_t* k,
                            bool is_b) {
  uint32_t how = (uint32_t)k->step->imm;
  uint32_t narrower =
      (how & PESTLE_KIR_WGMMA_SWIZZLE) / PESTLE_KIR_WGMMA_SWIZZLE_64;
  return (operand_t){t->memory, is_b ? k->b : k->a,
                     how & (is_b ? PESTLE_KIR_WGMMA_B_TRANSPOSED
                                 : PESTLE_KIR_WGMMA_A_TRANSPOSED),
                     how & PESTLE_KIR_WGMMA_F16 ? PESTLE_F16 : PESTLE_BF16,
                     (uint32_t)ROW_BYTES >> narrower};
}

static bool in_registers(const ref_ticket_t* k) {
  return k->step->target != 0;
}

// Tile a as lanes have it when they ask: fragment a of MMA, a warp's 16 rows
// each. What writes the registers while the product is under way is a fault.
static void take_registers(ref_tiles_t* t, const ref_ticket_t* k) {
  float(*left)[TAPS] = t->left[number_of(t, k)];
  operand_t a = operand_of(t, k, false);
  for (unsigned lane = 0; lane < REF_WARPGROUP; ++lane) {
    const unsigned char* frame = t->frames + (k->lane + lane) * t->frame_size;
    unsigned row = lane / REF_WARP * 16 + lane % REF_WARP / 4;
    for (unsigned w = 0; w < 4; ++w) {
      uint64_t bits;
      memcpy(&bits, frame + k->step->a + 8 * (size_t)w, sizeof bits);
      for (unsigned h = 0; h < 2; ++h) {
        left[row + 8 * (w % 2)][2 * (lane % 4) + 8 * (w / 2) + h] =
            pestle_ref_plugin_decode(a.dtype,
                                     (uint32_t)(bits >> 16 * h) & 0xffff);
      }
    }
  }
}

// The bytes in the place of one float, widened.
static void bytes_of(const operand_t* x, unsigned row, unsigned tap,
                     bool is_signed, int32_t out[2]) {
  const unsigned char* from = x->shared + place_of(x, row, tap);
  for (unsigned i = 0; i < 2; ++i)
    out[i] = is_signed ? (int8_t)from[i] : (int32_t)from[i];
}

static void multiply_bytes(ref_tiles_t* t, const ref_ticket_t* k) {
  uint32_t how = (uint32_t)k->step->imm;
  unsigned n = how & PESTLE_KIR_WGMMA_N;
  operand_t a = operand_of(t, k, false), b = operand_of(t, k, true);
  int32_t left[REF_ROWS][2 * TAPS], right[256][2 * TAPS];
  for (unsigned tap = 0; tap < TAPS; ++tap) {
    for (unsigned row = 0; row < REF_ROWS; ++row)
      bytes_of(&a, row, tap, how & PESTLE_KIR_WGMMA_A_SIGNED,
               &left[row][2 * tap]);
    for (unsigned column = 0; column < n; ++column)
      bytes_of(&b, column, tap, how & PESTLE_KIR_WGMMA_B_SIGNED,
               &right[column][2 * tap]);
  }
  for (unsigned lane = 0; lane < REF_WARPGROUP; ++lane) {
    unsigned char* sums =
        t->frames + (k->lane + lane) * t->frame_size + k->step->place;
    for (unsigned i = 0; i < n / 2; ++i) {
      unsigned row = lane / REF_WARP * 16 + lane % REF_WARP / 4 + i / 2 % 2 * 8;
      unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      int64_t kept = 0;  // as registers are: integers are slots of 64 bits
      if (!(how & PESTLE_KIR_WGMMA_ZERO))
        memcpy(&kept, sums + sizeof kept * i, sizeof kept);
      uint32_t sum = (uint32_t)kept;
      for (unsigned tap = 0; tap < 2 * TAPS; ++tap)
        sum += (uint32_t)(left[row][tap] * right[column][tap]);
      kept = (int32_t)sum;
      memcpy(sums + sizeof kept * i, &kept, sizeof kept);
    }
  }
}

// --- Products of 8-bit floats, and of f32 of few bits ---

enum { MOST_TAPS = 2 * TAPS, F8_PLACES = 13, TF32_CUT = 0x1fff };

// Its elements in the place of 16-bit float |tap|, two of F8; of TF32 one every other.
static void floats_of(const operand_t* x, uint32_t how, bool is_b, unsigned row,
                      float out[MOST_TAPS]) {
  bool f8 = how & PESTLE_KIR_WGMMA_F8;
  bool e5 = how & (is_b ? PESTLE_KIR_WGMMA_B_E5M2 : PESTLE_KIR_WGMMA_A_E5M2);
  pestle_dtype_t dtype = e5 ? PESTLE_F8E5M2 : PESTLE_F8E4M3FN;
  for (unsigned tap = 0; tap < TAPS; tap += f8 ? 1 : 2) {
    const unsigned char* from = x->shared + place_of(x, row, tap);
    if (f8) {
      for (unsigned i = 0; i < 2; ++i)
        out[2 * tap + i] = pestle_ref_plugin_decode(dtype, from[i]);
    } else {
      uint32_t bits;
      memcpy(&bits, from, sizeof bits);
      bits &= ~(uint32_t)TF32_CUT;
      memcpy(&out[tap / 2], &bits, sizeof bits);
    }
  }
}

float pestle_ref_plugin_add_cut(float sum, const float* product,
                                unsigned count) {
  float largest = fabsf(sum), plain = sum;
  for (unsigned i = 0; i < count; ++i) {
    if (fabsf(product[i]) > largest) largest = fabsf(product[i]);
    plain += product[i];
  }
  if (!isfinite(plain) || largest == 0) return plain;
  int exponent;
  (void)frexpf(largest, &exponent);
  double unit = ldexp(1, exponent - 1 - F8_PLACES);
  double all = trunc(sum / unit);
  for (unsigned i = 0; i < count; ++i)
    all += trunc(product[i] / unit);
  return (float)(all * unit);
}

static void multiply_floats(ref_tiles_t* t, const ref_ticket_t* k) {
  uint32_t how = (uint32_t)k->step->imm;
  unsigned n = how & PESTLE_KIR_WGMMA_N;
  unsigned taps = how & PESTLE_KIR_WGMMA_F8 ? MOST_TAPS : TAPS / 2;
  operand_t a = operand_of(t, k, false), b = operand_of(t, k, true);
  float left[REF_ROWS][MOST_TAPS], right[256][MOST_TAPS];
  for (unsigned row = 0; row < REF_ROWS; ++row)
    floats_of(&a, how, false, row, left[row]);
  for (unsigned column = 0; column < n; ++column)
    floats_of(&b, how, true, column, right[column]);
  for (unsigned lane = 0; lane < REF_WARPGROUP; ++lane) {
    unsigned char* sums =
        t->frames + (k->lane + lane) * t->frame_size + k->step->place;
    for (unsigned i = 0; i < n / 2; ++i) {
      unsigned row = lane / REF_WARP * 16 + lane % REF_WARP / 4 + i / 2 % 2 * 8;
      unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float sum = 0, product[MOST_TAPS];
      if (!(how & PESTLE_KIR_WGMMA_ZERO))
        memcpy(&sum, sums + 4 * (size_t)i, sizeof sum);
      for (unsigned tap = 0; tap < taps; ++tap)
        product[tap] = left[row][tap] * right[column][tap];
      if (how & PESTLE_KIR_WGMMA_F8) {
        sum = pestle_ref_plugin_add_cut(sum, product, taps);
      } else {
        for (unsigned tap = 0; tap < taps; ++tap)
          sum += product[tap];
      }
      memcpy(sums + 4 * (size_t)i, &sum, sizeof sum);
    }
  }
}

// --- Of 16-bit floats ---

static void multiply(ref_tiles_t* t, const ref_ticket_t* k) {
  uint32_t type = (uint32_t)k->step->imm & PESTLE_KIR_WGMMA_TYPE;
  if (type) {
    (type & PESTLE_KIR_WGMMA_BYTES ? multiply_bytes : multiply_floats)(t, k);
    return;
  }
  unsigned n = (uint32_t)k->step->imm & PESTLE_KIR_WGMMA_N;
  operand_t a = operand_of(t, k, false), b = operand_of(t, k, true);
  float(*left)[TAPS] = t->left[number_of(t, k)];
  float right[256][TAPS];
  for (unsigned tap = 0; tap < TAPS; ++tap) {
    for (unsigned row = 0; row < REF_ROWS && !in_registers(k); ++row)
      left[row][tap] = element_of(&a, row, tap);
    for (unsigned column = 0; column < n; ++column)
      right[column][tap] = element_of(&b, column, tap);
  }
  for (unsigned lane = 0; lane < REF_WARPGROUP; ++lane) {
    unsigned char* sums =
        t->frames + (k->lane + lane) * t->frame_size + k->step->place;
    for (unsigned i = 0; i < n / 2; ++i) {
      unsigned row = lane / REF_WARP * 16 + lane % REF_WARP / 4 + i / 2 % 2 * 8;
      unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float sum = 0;
      if (!((uint32_t)k->step->imm & PESTLE_KIR_WGMMA_ZERO))
        memcpy(&sum, sums + 4 * (size_t)i, sizeof sum);
      for (unsigned tap = 0; tap < TAPS; ++tap)
        sum += left[row][tap] * right[column][tap];
      memcpy(sums + 4 * (size_t)i, &sum, sizeof sum);
    }
  }
}

static bool ask_operand(ref_tiles_t* t, const ref_ticket_t* k, bool is_b,
                        unsigned rows) {
  operand_t x = operand_of(t, k, is_b);
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned tap = 0; tap < TAPS; ++tap) {
      if (!pestle_ref_plugin_touch_async(t, number_of(t, k),
                                         place_of(&x, row, tap), 2, false)) {
        return false;
      }
    }
  }
  return true;
}

bool pestle_ref_plugin_wgmma(ref_tiles_t* t, const ref_step_t* s,
                             uint32_t first_lane) {
  ref_warpgroup_t* g = &t->warpgroup[first_lane / REF_WARPGROUP];
  ref_ticket_t* k = take_ticket(t, s, first_lane);
  if (!k) return false;
  if (pestle_ref_plugin_is_dirty(g, s->place)) {
    return pestle_ref_plugin_fault(
        t, s, "its sums were written and no wgmma_fence came since");
  }
  if (in_registers(k) && pestle_ref_plugin_is_dirty(g, s->target - 1)) {
    return pestle_ref_plugin_fault(
        t, s, "its tile a was written and no wgmma_fence came since");
  }
  k->batch = g->batch;
  ++g->products;
  for (unsigned lane = 0; lane < REF_WARPGROUP; ++lane) {
    const unsigned char* frame =
        t->frames + (first_lane + lane) * t->frame_size;
    int64_t a, b;
    memcpy(&a, frame + s->a, sizeof a);
    memcpy(&b, frame + s->b, sizeof b);
    if (in_registers(k)) a = 0;
    if (lane && (k->a != (uint64_t)a || k->b != (uint64_t)b)) {
      return pestle_ref_plugin_fault(t, s,
                                     "lanes of a warpgroup name other tiles");
    }
    k->a = (uint64_t)a;
    k->b = (uint64_t)b;
  }
  if (in_registers(k)) {
    take_registers(t, k);
  } else if (!ask_operand(t, k, false, REF_ROWS)) {
    return false;
  }
  return ask_operand(t, k, true, (uint32_t)s->imm & PESTLE_KIR_WGMMA_N);
}

// --- Time goes on ---

// Products of one warpgroup are carried out in order.
static bool may_go(const ref_tiles_t* t, const ref_ticket_t* k) {
  if (k->state != REF_TICKET_ASKED) return false;
  if (k->step->kind != REF_STEP_WGMMA) return true;
  for (uint32_t i = 0; i < REF_TICKETS; ++i) {
    const ref_ticket_t* o = &t->ticket[i];
    if (o->state == REF_TICKET_ASKED && o->step->kind == REF_STEP_WGMMA &&
        o->lane == k->lane && o->order < k->order) {
      return false;
    }
  }
  return true;
}

static void carry_out(ref_tiles_t* t, ref_ticket_t* k) {
  if (k->step->kind == REF_STEP_WGMMA) {
    multiply(t, k);
    k->state = REF_TICKET_DONE;
  } else if (k->step->kind == REF_STEP_TILE_STORE) {
    walk(t, k, do_store);
    k->state = REF_TICKET_DONE;
  } else {
    const ref_map_t* map = &t->m->program->maps[k->step->place];
    int64_t bytes = map->size;
    if (t->ended[k->a / t->stride]) {
      pestle_ref_plugin_fault(t, k->step,
                              "group %u of the cluster has ended before the "
                              "copy to it",
                              (unsigned)(k->a / t->stride));
      k->state = REF_TICKET_FREE;
      return;
    }
    walk(t, k, do_load);
    for (uint32_t d = 0; d < map->rank; ++d)
      bytes *= map->box[d];
    k->state = REF_TICKET_FREE;
    pestle_ref_plugin_release_ticket(t, number_of(t, k), k->mbar->arrived);
    pestle_ref_plugin_arrived(t, k->step, k->mbar, 0, bytes);
  }
}

bool pestle_ref_plugin_progress(ref_tiles_t* t) {
  uint32_t count = 0, found[REF_TICKETS];
  for (uint32_t i = 0; i < REF_TICKETS; ++i)
    if (may_go(t, &t->ticket[i])) found[count++] = i;
  if (!count) return false;
  carry_out(t, &t->ticket[found[pestle_ref_plugin_random(t, count)]]);
  return true;
}

bool pestle_ref_plugin_waited(ref_tiles_t* t, uint32_t lane, bool products,
                              uint64_t most) {
  uint64_t batches =
      products ? t->warpgroup[lane / REF_WARPGROUP].batch : t->lane[lane].batch;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < REF_TICKETS; ++i) {
      ref_ticket_t* k = &t->ticket[i];
      if (k->state == REF_TICKET_FREE || k->lane != lane ||
          k->batch + most >= batches ||
          products != (k->step->kind == REF_STEP_WGMMA)) {
        continue;
      }
      if (k->mbar) continue;  // who asked for it does not wait
      if (!pass && k->state == REF_TICKET_ASKED) return false;
      if (!pass) continue;
      for (uint32_t j = 0; j < (products ? REF_WARPGROUP : 1u); ++j)
        pestle_ref_plugin_release_ticket(t, i, t->lane[lane + j].clock);
      if (products) --t->warpgroup[lane / REF_WARPGROUP].products;
      k->state = REF_TICKET_FREE;
    }
  }
  return true;
}
