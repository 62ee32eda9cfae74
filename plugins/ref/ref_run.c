// SPDX-License-Identifier: Apache-2.0
// Running a program: one switch a step, one loop over lanes in it. Nothing is
// allocated but the frame, once a call, and only when it is large.
#include <stdalign.h>
#include <string.h>

#include "plugins/ref/ref_internal.h"
#include "plugins/ref/ref_tile.h"

#define SMALL_FRAME 32768

static int64_t* slot_i64(const ref_machine_t* m, uint32_t offset) {
  return (int64_t*)(void*)(m->frame + offset);
}
static uint64_t* slot_u64(const ref_machine_t* m, uint32_t offset) {
  return (uint64_t*)(void*)(m->frame + offset);
}

static void fix(const ref_machine_t* m, const ref_step_t* s) {
  if (s->fix) {
    s->fix(m->frame + s->out, NULL, NULL, NULL, s->lanes, s->fix_arg);
  }
}

// --- Memory ---

static void* base_of(const ref_machine_t* m, const ref_step_t* s) {
  return s->scope == PESTLE_KIR_GLOBAL ? m->buffers[s->place]
                                       : (void*)(m->scratch + s->place);
}

// Elements [first, first + count) are touched: false when that is a fault.
static bool watch(const ref_machine_t* m, const ref_step_t* s, uint64_t first,
                  uint64_t count, bool stores) {
  if (!m->tiles || s->scope != PESTLE_KIR_SHARED) return true;
  return pestle_ref_plugin_touch(m->tiles, s,
                                 m->base + s->place + first * s->size,
                                 count * s->size, stores);
}

// Lane by lane; masked-off lanes are 0 when loaded and touch nothing.
static bool move_lanes(const ref_machine_t* m, const ref_step_t* s,
                       bool lanewise, bool stores) {
  const int64_t* index = slot_i64(m, s->a);
  const uint64_t* mask = s->b == REF_NO_MASK ? NULL : slot_u64(m, s->b);
  unsigned char* slots = m->frame + s->out;
  void* base = base_of(m, s);
  for (uint32_t lane = 0; lane < s->lanes; ++lane) {
    if (mask && !mask[lane]) {
      if (!stores) memset(slots + lane * s->slot, 0, s->slot);
      continue;
    }
    uint64_t at = lanewise ? (uint64_t)index[lane] : (uint64_t)*index + lane;
    if (at >= s->count || !watch(m, s, at, 1, stores)) return false;
    s->move(base, (int64_t)at, slots + lane * s->slot, 1);
  }
  return true;
}

// Bytes as they lie: words of 32 bits, each sign-extended to a slot.
static bool load_words(const ref_machine_t* m, const ref_step_t* s) {
  uint64_t at = (uint64_t)*slot_i64(m, s->a);
  uint64_t elements = 4 / s->size * (uint64_t)s->lanes;
  if (at >= s->count || s->count - at < elements) return false;
  if (!watch(m, s, at, elements, false)) return false;
  const unsigned char* from = base_of(m, s);
  from += at * s->size;
  for (uint32_t lane = 0; lane < s->lanes; ++lane) {
    int32_t word;
    memcpy(&word, from + 4 * (size_t)lane, sizeof word);
    slot_i64(m, s->out)[lane] = word;
  }
  return true;
}

// Groups run side by side. Of shared memory lanes come one after the other, and
// need not have waited for each other.
static bool atomic_add(const ref_machine_t* m, const ref_step_t* s) {
  uint64_t at = (uint64_t)*slot_i64(m, s->a);
  if (at >= s->count || !watch(m, s, at, 1, false)) return false;
  int32_t* to = (int32_t*)base_of(m, s) + at;
  int32_t more = (int32_t)*slot_i64(m, s->b);
  *slot_i64(m, s->out) = __atomic_fetch_add(to, more, __ATOMIC_RELAXED);
  return true;
}

// Rows of a matrix register, |arg| elements apart in memory.
static bool move_register(const ref_machine_t* m, const ref_step_t* s,
                          bool stores) {
  enum { ROWS = PESTLE_KIR_MREG_ROWS, BYTES = PESTLE_KIR_MREG_ROW_BYTES };
  uint64_t at = (uint64_t)*slot_i64(m, s->a);
  uint64_t reach = (ROWS - 1) * s->arg + BYTES / s->size;
  if (at >= s->count || s->count - at < reach) return false;
  unsigned char* memory = base_of(m, s);
  unsigned char* rows = m->registers + (size_t)s->imm * REF_MREG_BYTES;
  for (size_t row = 0; row < ROWS; ++row) {
    unsigned char* there = memory + (at + row * s->arg) * s->size;
    unsigned char* here = rows + row * BYTES;
    memcpy(stores ? there : here, stores ? here : there, BYTES);
  }
  return true;
}

static bool move_run(const ref_machine_t* m, const ref_step_t* s, bool stores) {
  if (s->b != REF_NO_MASK) {
    const uint64_t* mask = slot_u64(m, s->b);
    for (uint32_t lane = 0; lane < s->lanes; ++lane) {
      if (!mask[lane]) return move_lanes(m, s, false, stores);
    }
  }
  uint64_t at = (uint64_t)*slot_i64(m, s->a);
  if (at >= s->count || s->count - at < s->lanes) return false;
  if (!watch(m, s, at, s->lanes, stores)) return false;
  s->move(base_of(m, s), (int64_t)at, m->frame + s->out, s->lanes);
  return true;
}

static bool move_private(const ref_machine_t* m, const ref_step_t* s,
                         bool stores) {
  uint64_t at = (uint64_t)*slot_i64(m, s->a);
  if (at >= s->count) return false;
  if (m->tiles && !pestle_ref_plugin_touch_private(m->tiles, s, stores)) {
    return false;
  }
  size_t size = (size_t)s->lanes * s->slot;
  unsigned char* element = m->frame + s->place + at * size;
  if (stores) {
    memcpy(element, m->frame + s->out, size);
  } else {
    memcpy(m->frame + s->out, element, size);
  }
  return true;
}

// --- Lanes ---

// Halves are folded onto each other: l op l + n/2, as kir.def has it.
static void reduce(const ref_machine_t* m, const ref_step_t* s) {
  alignas(32) unsigned char from[PESTLE_KIR_MAX_LANES * 8];
  alignas(32) unsigned char to[PESTLE_KIR_MAX_LANES * 8];
  size_t lanes = s->place;
  memcpy(from, m->frame + s->a, lanes * s->slot);
  for (size_t half = lanes / 2; half; half /= 2) {
    const void* upper = from + half * s->slot;
    s->fn(to, from, upper, from, half, s->arg);
    if (s->fix) s->fix(to, NULL, NULL, NULL, half, s->fix_arg);
    memcpy(from, to, half * s->slot);
  }
  memcpy(m->frame + s->out, from, s->slot);
}

static void insert(const ref_machine_t* m, const ref_step_t* s) {
  unsigned char* out = m->frame + s->out;
  memcpy(out, m->frame + s->a, (size_t)s->lanes * s->slot);
  memcpy(out + (size_t)s->imm * s->slot, m->frame + s->b, s->slot);
}

static void shuffle(const ref_machine_t* m, const ref_step_t* s) {
  unsigned char* out = m->frame + s->out;
  for (uint32_t lane = 0; lane < s->lanes; ++lane) {
    uint32_t from = m->program->words[s->target + lane];
    const unsigned char* source =
        from < s->place ? m->frame + s->a + from * s->slot
                        : m->frame + s->b + (from - s->place) * s->slot;
    memcpy(out + lane * s->slot, source, s->slot);
  }
}

static void mask(const ref_machine_t* m, const ref_step_t* s) {
  uint64_t* out = slot_u64(m, s->out);
  int64_t index = *slot_i64(m, s->a), limit = *slot_i64(m, s->b);
  for (uint32_t lane = 0; lane < s->lanes; ++lane) {
    int64_t at;
    out[lane] =
        !__builtin_add_overflow(index, (int64_t)lane, &at) && at < limit;
  }
}

// --- Steps ---

static int64_t wrap_madi(int64_t a, int64_t imm, int64_t c) {
  return (int64_t)((uint64_t)a * (uint64_t)imm + (uint64_t)c);
}

// The index that follows, or false past the end.
static bool next_index(const ref_machine_t* m, const ref_step_t* s) {
  int64_t* index = slot_i64(m, s->out);
  int64_t hi = *slot_i64(m, s->b);
  if (s->scope && hi > m->end) hi = m->end;
  return !__builtin_add_overflow(*index, s->imm, index) && *index < hi;
}

static bool first_index(const ref_machine_t* m, const ref_step_t* s,
                        bool group) {
  int64_t lo = *slot_i64(m, s->a), hi = *slot_i64(m, s->b);
  if (group) {
    if (lo < m->begin) lo = m->begin;
    if (hi > m->end) hi = m->end;
  }
  *slot_i64(m, s->out) = lo;
  return lo < hi;
}

// Steps that neither jump nor stop; false when an access left its buffer.
static inline bool run_plain(const ref_machine_t* m, const ref_step_t* s) {
  switch ((ref_kind_t)s->kind) {
    case REF_STEP_VALUE:
      s->fn(m->frame + s->out, m->frame + s->a, m->frame + s->b,
            m->frame + s->c, s->lanes, s->arg);
      fix(m, s);
      return true;
    case REF_STEP_MADI:
      *slot_i64(m, s->out) =
          wrap_madi(*slot_i64(m, s->a), s->imm, *slot_i64(m, s->b));
      return true;
    case REF_STEP_MASK:
      mask(m, s);
      return true;
    case REF_STEP_PARAM:
      for (uint32_t lane = 0; lane < s->lanes; ++lane) {
        slot_i64(m, s->out)[lane] = m->params[s->imm];
      }
      fix(m, s);
      return true;
    case REF_STEP_LANE:
      memcpy(m->frame + s->out, m->frame + s->a, s->slot);
      return true;
    case REF_STEP_INSERT:
      insert(m, s);
      return true;
    case REF_STEP_REDUCE:
      reduce(m, s);
      return true;
    case REF_STEP_SHUFFLE:
      shuffle(m, s);
      return true;
    case REF_STEP_LOAD:
      return move_run(m, s, false);
    case REF_STEP_STORE:
      return move_run(m, s, true);
    case REF_STEP_GATHER:
      return move_lanes(m, s, true, false);
    case REF_STEP_SCATTER:
      return move_lanes(m, s, true, true);
    case REF_STEP_PRIVATE_LOAD:
      return move_private(m, s, false);
    case REF_STEP_PRIVATE_STORE:
      return move_private(m, s, true);
    case REF_STEP_LOAD_WORDS:
      return load_words(m, s);
    case REF_STEP_ATOMIC_ADD:
      return atomic_add(m, s);
    case REF_STEP_ADDRESS: {
      uint64_t at = (uint64_t)*slot_i64(m, s->a);
      *slot_i64(m, s->out) = (int64_t)(m->base + s->place + at * s->size);
      return at <= s->count;
    }
    case REF_STEP_REF_AT:
      return pestle_ref_plugin_ref_at(m->tiles, s, *slot_i64(m, s->a),
                                      *slot_i64(m, s->b), slot_i64(m, s->out));
    case REF_STEP_LOAD_AT:
      return pestle_ref_plugin_load_at(
          m->tiles, s, *slot_i64(m, s->a) + *slot_i64(m, s->b) * s->size,
          m->frame + s->out);
    case REF_STEP_MREG_ZERO:
      memset(m->registers + (size_t)s->imm * REF_MREG_BYTES, 0, REF_MREG_BYTES);
      return true;
    case REF_STEP_MREG_LOAD:
      return move_register(m, s, false);
    case REF_STEP_MREG_STORE:
      return move_register(m, s, true);
    case REF_STEP_MREG_MMA:
      pestle_ref_plugin_mreg_mma(m->registers, s->arg);
      return true;
    case REF_STEP_FOR:
    case REF_STEP_GROUP:
    case REF_STEP_NEXT:
    case REF_STEP_IF:
    case REF_STEP_JUMP:
    case REF_STEP_TRAP_IF:
    case REF_STEP_LANE_INDEX:
    case REF_STEP_BARRIER:
    case REF_STEP_SG_REDUCE:
    case REF_STEP_MMA:
    case REF_STEP_LDMATRIX:
    case REF_STEP_SG_BALLOT:
    case REF_STEP_COPY:
    case REF_STEP_MBAR_INIT:
    case REF_STEP_MBAR_EXPECT:
    case REF_STEP_MBAR_ARRIVE:
    case REF_STEP_MBAR_WAIT:
    case REF_STEP_TILE_LOAD:
    case REF_STEP_TILE_LOAD_ALL:
    case REF_STEP_TILE_STORE:
    case REF_STEP_TILE_WAIT:
    case REF_STEP_TILE_FENCE:
    case REF_STEP_SYNC_ARRIVE:
    case REF_STEP_SYNC:
    case REF_STEP_CLUSTER_SYNC:
    case REF_STEP_STMATRIX:
    case REF_STEP_WGMMA:
    case REF_STEP_WGMMA_FENCE:
    case REF_STEP_WGMMA_COMMIT:
    case REF_STEP_WGMMA_WAIT:
    case REF_STEP_REGISTERS:
      break;
  }
  return true;
}

// A run of elements from a global buffer to a shared one; zeros from below 0.
static bool copy_run(const ref_machine_t* m, const ref_step_t* s) {
  int64_t to = *slot_i64(m, s->a), from = *slot_i64(m, s->b);
  size_t bytes = (size_t)s->lanes * s->size;
  uint64_t most = s->arg;  // elements of the global buffer
  if (to < 0 || (uint64_t)to >= s->count || s->count - (uint64_t)to < s->lanes)
    return false;
  unsigned char* at = m->scratch + s->place + (size_t)to * s->size;
  if (m->tiles && !pestle_ref_plugin_touch(
                      m->tiles, s, m->base + s->place + (uint64_t)to * s->size,
                      bytes, true)) {
    return false;
  }
  if (from < 0) {
    memset(at, 0, bytes);
    return true;
  }
  if ((uint64_t)from >= most || most - (uint64_t)from < s->lanes) return false;
  const unsigned char* data = m->buffers[s->target];
  memcpy(at, data + (size_t)from * s->size, bytes);
  return true;
}

// An access left its buffer, or was a fault that is told already.
static int32_t left(const ref_machine_t* m) {
  return m->tiles && pestle_ref_plugin_told(m->tiles) ? REF_TRAP_TILES
                                                      : REF_TRAP_BOUNDS;
}

int32_t pestle_ref_plugin_steps(const ref_machine_t* m, uint32_t* at) {
  const ref_step_t* steps = m->program->steps;
  uint32_t count = m->program->step_count, pc = *at;
  while (pc < count) {
    const ref_step_t* s = &steps[pc++];
    if (s->kind < REF_STEP_FOR) {
      if (!run_plain(m, s)) return left(m);
    } else if (s->kind == REF_STEP_NEXT) {
      if (next_index(m, s)) pc = s->target;
    } else if (s->kind == REF_STEP_JUMP) {
      pc = s->target;
    } else if (s->kind == REF_STEP_IF) {
      if (!*slot_u64(m, s->a)) pc = s->target;
    } else if (s->kind == REF_STEP_TRAP_IF) {
      if (*slot_u64(m, s->a)) return (int32_t)s->imm;
    } else if (s->kind == REF_STEP_LANE_INDEX) {
      *slot_i64(m, s->out) = m->lane[s->imm];
    } else if (pestle_ref_plugin_is_meeting(s)) {
      break;
    } else if (s->kind == REF_STEP_COPY) {
      if (!copy_run(m, s)) return left(m);
    } else if (!first_index(m, s, s->kind == REF_STEP_GROUP)) {
      pc = s->target;
    }
  }
  *at = pc;
  return 0;
}

// --- Lanes ---

// The lanes of a group, each with a frame of its own, one after the other up to
// the next barrier.
typedef struct lanes_t {
  ref_machine_t m;
  size_t frame_size;  // of a lane
  uint32_t count;
  uint32_t* pc;
} lanes_t;

void pestle_ref_plugin_take_lane(ref_machine_t* m, unsigned char* frames,
                                 size_t frame_size, uint32_t lane) {
  const uint32_t* extent = m->program->lane;
  m->frame = frames + lane * frame_size;
  m->lane[0] = lane % extent[0];
  m->lane[1] = lane / extent[0] % extent[1];
  m->lane[2] = lane / extent[0] / extent[1] % extent[2];
  m->lane[3] = lane / extent[0] / extent[1] / extent[2];
}

// Butterflies, as kir.def has it; all lanes are read before one is written.
void pestle_ref_plugin_reduce_lanes(const ref_step_t* s, unsigned char* frames,
                                    size_t frame_size, uint32_t count) {
  size_t bytes = (size_t)s->lanes * s->slot, half = (size_t)s->imm / 2;
  alignas(32) unsigned char low[PESTLE_KIR_MAX_LANES * 8];
  for (uint32_t i = 0; i < count; ++i) {
    unsigned char* frame = frames + i * frame_size;
    memmove(frame + s->out, frame + s->a, bytes);
  }
  for (; half; half /= 2) {
    for (uint32_t i = 0; i < count; ++i) {
      if (i & half) continue;
      unsigned char* a = frames + i * frame_size + s->out;
      unsigned char* b = frames + (i | half) * frame_size + s->out;
      memcpy(low, a, bytes);
      s->fn(a, low, b, low, s->lanes, s->arg);
      if (s->fix) s->fix(a, NULL, NULL, NULL, s->lanes, s->fix_arg);
      memcpy(b, a, bytes);
    }
  }
}

// The lanes of a subgroup, up to where they end or meet those of others.
static int32_t run_subgroup(lanes_t* l, unsigned char* frames, uint32_t first,
                            uint32_t count) {
  unsigned char* own = frames + first * l->frame_size;
  uint32_t* pc = l->pc + first;
  for (;;) {
    for (uint32_t i = 0; i < count; ++i) {
      pestle_ref_plugin_take_lane(&l->m, frames, l->frame_size, first + i);
      int32_t trap = pestle_ref_plugin_steps(&l->m, &pc[i]);
      if (trap) return trap;
    }
    for (uint32_t i = 1; i < count; ++i) {
      if (pc[i] != pc[0]) return REF_TRAP_APART;
    }
    const ref_step_t* s = &l->m.program->steps[pc[0] - 1];
    bool within = true;
    if (s->kind == REF_STEP_SG_REDUCE) {
      pestle_ref_plugin_reduce_lanes(s, own, l->frame_size, count);
    } else if (s->kind == REF_STEP_MMA) {
      within = pestle_ref_plugin_mma(s, own, l->frame_size, count);
    } else if (s->kind == REF_STEP_LDMATRIX) {
      within = pestle_ref_plugin_ldmatrix(s, own, l->frame_size, count,
                                          l->m.scratch);
    } else if (s->kind == REF_STEP_SG_BALLOT) {
      pestle_ref_plugin_ballot(s, own, l->frame_size, count);
    } else {
      return 0;
    }
    if (!within) return REF_TRAP_BOUNDS;
  }
}

static int32_t run_group(lanes_t* l, unsigned char* frames) {
  enum { SUBGROUP = 32 };  // or several smaller ones
  memset(l->pc, 0, l->count * sizeof(*l->pc));
  for (;;) {
    for (uint32_t i = 0; i < l->count; i += SUBGROUP) {
      uint32_t left = l->count - i;
      int32_t trap =
          run_subgroup(l, frames, i, left < SUBGROUP ? left : SUBGROUP);
      if (trap) return trap;
      if (l->pc[i] != l->pc[0]) return REF_TRAP_APART;
    }
    const ref_step_t* s = &l->m.program->steps[l->pc[0] - 1];
    if (s->kind != REF_STEP_BARRIER) return 0;
  }
}

static int32_t run_groups(const pestle_loaded_t* program, ref_machine_t m,
                          uint32_t lanes) {
  const pestle_host_t* host = program->host;
  size_t frame = ((size_t)program->frame_size + 63) & ~(size_t)63;
  size_t size = lanes * (frame + sizeof(uint32_t));
  unsigned char* frames = host->alloc(host->self, size);
  if (!frames) return REF_TRAP_MEMORY;
  lanes_t l = {m, frame, lanes, (uint32_t*)(void*)(frames + lanes * frame)};
  int32_t trap = 0;
  for (uint32_t i = 0; i < lanes; ++i) {
    memcpy(frames + i * frame, program->constants, program->constant_size);
  }
  for (int64_t g = m.begin; g < m.end && !trap; ++g) {
    l.m.begin = g;
    l.m.end = g + 1;
    trap = program->has_tiles
               ? pestle_ref_plugin_run_tiles(&l.m, frames, frame, lanes)
               : run_group(&l, frames);
  }
  host->free(host->self, frames, size);
  return trap;
}

static int32_t run_in(const pestle_loaded_t* program, unsigned char* frame,
                      void* const* buffers, const int64_t* params,
                      int64_t begin, int64_t end, void* scratch) {
  alignas(64) unsigned char registers[PESTLE_KIR_MREGS * REF_MREG_BYTES];
  ref_machine_t m = {program, frame, buffers, params,    scratch, 0,
                     begin,   end,   {0},     registers, NULL};
  if (program->has_registers) memset(registers, 0, sizeof registers);
  uint32_t pc = 0, count = program->step_count;
  int32_t trap = 0;
  memcpy(frame, program->constants, program->constant_size);
  // Barriers are nothing to one lane.
  while (!trap && pc < count)
    trap = pestle_ref_plugin_steps(&m, &pc);
  return trap;
}

static int32_t run_small(const pestle_loaded_t* program, void* const* buffers,
                         const int64_t* params, int64_t begin, int64_t end,
                         void* scratch) {
  alignas(64) unsigned char frame[SMALL_FRAME];
  return run_in(program, frame, buffers, params, begin, end, scratch);
}

int32_t pestle_ref_plugin_run(const void* self, void* const* buffers,
                              const int64_t* params, int64_t begin, int64_t end,
                              void* scratch) {
  const pestle_loaded_t* program = self;
  const pestle_host_t* host = program->host;
  size_t size = (size_t)program->frame_size;
  uint32_t lanes = program->lane[0] * program->lane[1] * program->lane[2];
  if (lanes > 1 || program->has_tiles) {
    lanes *= program->cluster;
    ref_machine_t m = {program, NULL, buffers, params, scratch, 0,
                       begin,   end,  {0},     NULL,   NULL};
    return run_groups(program, m, lanes);
  }
  if (size <= SMALL_FRAME) {
    return run_small(program, buffers, params, begin, end, scratch);
  }
  unsigned char* frame = host->alloc(host->self, size);
  if (!frame) return REF_TRAP_MEMORY;
  int32_t trap = run_in(program, frame, buffers, params, begin, end, scratch);
  host->free(host->self, frame, size);
  return trap;
}
