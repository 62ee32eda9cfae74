// SPDX-License-Identifier: Apache-2.0
// Instructions of tiles: their checks and their steps.
#include "plugins/ref/ref_tile.h"

bool pestle_ref_plugin_is_tile(unsigned op) {
  return (op >= PESTLE_KIR_REF && op <= PESTLE_KIR_SYNC) ||
         (op >= PESTLE_KIR_WGMMA_RA && op <= PESTLE_KIR_TILE_LOAD_ALL);
}

// --- Maps ---

static const uint32_t* words_of(const pestle_kir_t* k,
                                const pestle_kir_buffer_t* map) {
  uint32_t id = (uint32_t)map->layout - 1;
  if (map->scope != PESTLE_KIR_TENSOR_MAP || id >= k->table_count) return NULL;
  pestle_kir_table_t table = k->table[id];
  if ((uint64_t)table.first + table.count > k->table_word_count ||
      table.count < 5) {
    return NULL;
  }
  const uint32_t* word = &k->table_word[table.first];
  uint32_t rank = word[1], words = 5 + 4 * rank;
  bool fits = rank >= 1 && rank <= REF_MAP_DIMS && word[0] < k->buffer_count;
  bool windows = rank > 2 && table.count == words + 3 * rank - 5;
  return fits && (windows || table.count == words) ? word : NULL;
}

static bool is_of_windows(const pestle_kir_t* k,
                          const pestle_kir_buffer_t* map) {
  return k->table[map->layout - 1].count > 5 + 4 * words_of(k, map)[1];
}

// Whether windows stand somewhere, boxes are of channels and pixels.
static bool are_windows(const uint32_t* word) {
  uint32_t rank = word[1];
  const uint32_t* more = word + 5 + 4 * rank;
  bool are = *more++ == PESTLE_KIR_MAP_WINDOWS;
  for (uint32_t d = 2; d < rank; ++d)
    are = are && word[5 + 4 * d + 1] == 1;
  for (uint32_t d = 1; d + 1 < rank; ++d, more += 3) {
    int64_t last = (int64_t)word[5 + 4 * d] - 1 + (int32_t)more[1];
    are = are && more[2] >= 1 && more[2] <= 8 && last >= (int32_t)more[0];
  }
  return are;
}

bool pestle_ref_plugin_is_map(const pestle_kir_t* k,
                              const pestle_kir_buffer_t* map) {
  const uint32_t* word = words_of(k, map);
  if (!word || !pestle_dtype_size((pestle_dtype_t)map->dtype)) return false;
  uint64_t elements = 1;
  for (uint32_t d = 0; d < word[1]; ++d) {
    elements *= word[5 + 4 * d + 1];
    if (!elements || elements > 1 << 20) return false;
  }
  if (is_of_windows(k, map) && !are_windows(word)) return false;
  uint32_t swizzle = word[2];
  return pestle_kir_buffer(k, word[0])->scope == PESTLE_KIR_GLOBAL &&
         (!swizzle || swizzle == 32 || swizzle == 64 || swizzle == 128);
}

void pestle_ref_plugin_read_map(const pestle_kir_t* k,
                                const pestle_kir_buffer_t* map,
                                ref_map_t* out) {
  const uint32_t* word = words_of(k, map);
  const pestle_kir_buffer_t* data = pestle_kir_buffer(k, word[0]);
  size_t size = pestle_dtype_size((pestle_dtype_t)map->dtype);
  // Of its own elements, which may have another size than the buffer's.
  uint64_t count =
      data->count * pestle_dtype_size((pestle_dtype_t)data->dtype) / size;
  *out = (ref_map_t){.slot = data->arg_slot,
                     .rank = word[1],
                     .swizzle = word[2],
                     .size = (uint32_t)size,
                     .offset = word[3] | (uint64_t)word[4] << 32,
                     .count = count};
  for (uint32_t d = 0; d < out->rank; ++d) {
    const uint32_t* dim = &word[5 + 4 * d];
    out->extent[d] = dim[0];
    out->box[d] = dim[1];
    out->stride[d] = dim[2] | (uint64_t)dim[3] << 32;
  }
  out->windows = is_of_windows(k, map);
  const uint32_t* more = &word[5 + 4 * out->rank + 1];
  for (uint32_t d = 1; out->windows && d + 1 < out->rank; ++d, more += 3) {
    out->low[d] = (int32_t)more[0];
    out->high[d] = (int32_t)more[1];
    out->step[d] = (int32_t)more[2];
  }
}

// --- Checks ---

static const char* check_stmatrix(const pestle_kir_t* k,
                                  const pestle_kir_inst_t* inst) {
  const pestle_kir_buffer_t* u = pestle_kir_buffer(k, inst->arg[0]);
  const pestle_kir_inst_t* at = pestle_kir_inst(k, inst->arg[1]);
  const pestle_kir_inst_t* words = pestle_kir_inst(k, inst->arg[2]);
  if (u->scope != PESTLE_KIR_SHARED ||
      pestle_dtype_size((pestle_dtype_t)u->dtype) != 2 || inst->arg[3] > 1 ||
      at->type != PESTLE_INDEX || at->lanes != 1 || words->type != PESTLE_U32 ||
      words->lanes > 4 || words->lanes == 3) {
    return "no such matrices";
  }
  return NULL;
}

static bool is_value(const pestle_kir_t* k, const pestle_kir_inst_t* inst,
                     int a, pestle_dtype_t type) {
  const pestle_kir_inst_t* from = pestle_kir_inst(k, inst->arg[a]);
  return from->type == type && from->lanes == 1;
}

// Indices along the coordinate that starts at |id|, or 0.
static uint32_t coordinates(const pestle_kir_t* k, uint32_t id,
                            uint32_t out[REF_MAP_NUMBERS]) {
  for (uint32_t count = 0; count < REF_MAP_NUMBERS;) {
    const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
    if (inst->op != PESTLE_KIR_COORD) {
      if (inst->type != PESTLE_INDEX) return 0;
      out[count++] = id;
      return count;
    }
    out[count++] = inst->arg[0];
    id = inst->arg[1];
  }
  return 0;
}

static const char* check_copy(const pestle_kir_t* k,
                              const pestle_kir_inst_t* inst) {
  const pestle_kir_buffer_t* map = pestle_kir_buffer(k, inst->arg[1]);
  uint32_t at[REF_MAP_NUMBERS];
  if (map->scope != PESTLE_KIR_TENSOR_MAP) return "no tensor map";
  uint32_t rank = words_of(k, map)[1];
  bool windows = inst->op == PESTLE_KIR_TILE_LOAD_WINDOW;
  if (windows != is_of_windows(k, map)) return "no such map";
  if (coordinates(k, inst->arg[2], at) != (windows ? 2 * rank - 2 : rank))
    return "the coordinate is not of the map's rank";
  bool loads = inst->op != PESTLE_KIR_TILE_STORE;
  return is_value(k, inst, 0, PESTLE_ADDR) &&
                 (!loads || is_value(k, inst, 3, PESTLE_ADDR))
             ? NULL
             : "no address";
}

// Bytes, 8-bit floats, and f32 of few bits.
static bool is_wgmma_type(uint32_t type) {
  uint32_t two = PESTLE_KIR_WGMMA_A_SIGNED | PESTLE_KIR_WGMMA_B_SIGNED;
  return (type & ~two) == PESTLE_KIR_WGMMA_BYTES ||
         (type & ~two) == PESTLE_KIR_WGMMA_F8 || type == PESTLE_KIR_WGMMA_TF32;
}

static const char* check_wgmma(const pestle_kir_t* k,
                               const pestle_kir_inst_t* inst) {
  const pestle_kir_buffer_t* sums = pestle_kir_buffer(k, inst->arg[0]);
  uint32_t n = inst->arg[3] & PESTLE_KIR_WGMMA_N;
  uint32_t how = inst->arg[3], swizzle = how & PESTLE_KIR_WGMMA_SWIZZLE;
  uint32_t turned =
      how & (PESTLE_KIR_WGMMA_A_TRANSPOSED | PESTLE_KIR_WGMMA_B_TRANSPOSED);
  bool bytes = how & PESTLE_KIR_WGMMA_BYTES;
  if (n < 8 || n > 256 || n % 8 || (bytes && n > 32 && n % 16) ||
      sums->scope != PESTLE_KIR_PRIVATE ||
      sums->dtype != (bytes ? PESTLE_I32 : PESTLE_F32) || sums->count > n / 2 ||
      sums->count * sums->lanes != n / 2) {
    return "the sums must be n / 2 private f32, of bytes i32, n a multiple of "
           "8";
  }
  uint32_t type = how & PESTLE_KIR_WGMMA_TYPE;
  if ((type && (!is_wgmma_type(type) || turned || how & PESTLE_KIR_WGMMA_F16 ||
                inst->op != PESTLE_KIR_WGMMA)) ||
      (swizzle && (turned || swizzle == PESTLE_KIR_WGMMA_SWIZZLE))) {
    return "no such tiles";
  }
  if (inst->op == PESTLE_KIR_WGMMA_RA) {
    const pestle_kir_inst_t* a = pestle_kir_inst(k, inst->arg[1]);
    bool loaded =
        a->op == PESTLE_KIR_LOAD && a->type == PESTLE_U32 && a->lanes == 4 &&
        pestle_kir_buffer(k, a->arg[0])->scope == PESTLE_KIR_PRIVATE &&
        !(how & PESTLE_KIR_WGMMA_A_TRANSPOSED);
    if (!loaded) return "no tile in registers";
    return is_value(k, inst, 2, PESTLE_ADDR) ? NULL : "no address";
  }
  return is_value(k, inst, 1, PESTLE_ADDR) && is_value(k, inst, 2, PESTLE_ADDR)
             ? NULL
             : "no address";
}

const char* pestle_ref_plugin_tile_fault(const pestle_kir_t* k, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  uint32_t lanes = k->lane[0] * k->lane[1] * k->lane[2];
  bool warpgroups =
      (inst->op >= PESTLE_KIR_WGMMA && inst->op <= PESTLE_KIR_REGISTERS) ||
      inst->op == PESTLE_KIR_WGMMA_RA;
  if (inst->op == PESTLE_KIR_STMATRIX && lanes % REF_WARP)
    return "the lanes are no whole subgroups";
  if (warpgroups && lanes % REF_WARPGROUP)
    return "the lanes are no whole warpgroups";
  switch (inst->op) {
    case PESTLE_KIR_REF:
      return inst->type == PESTLE_ADDR && inst->lanes == 1 &&
                     is_value(k, inst, 1, PESTLE_INDEX) &&
                     pestle_kir_buffer(k, inst->arg[0])->scope ==
                         PESTLE_KIR_SHARED
                 ? NULL
                 : "no address of a shared buffer";
    case PESTLE_KIR_COORD: {
      uint32_t at[REF_MAP_NUMBERS];
      return inst->type == PESTLE_ADDR && inst->lanes == 1 &&
                     is_value(k, inst, 0, PESTLE_INDEX) &&
                     coordinates(k, id, at)
                 ? NULL
                 : "no coordinate";
    }
    case PESTLE_KIR_MBAR_INIT:
    case PESTLE_KIR_MBAR_EXPECT:
    case PESTLE_KIR_MBAR_ARRIVE:
      return is_value(k, inst, 0, PESTLE_ADDR) ? NULL : "no address";
    case PESTLE_KIR_MBAR_WAIT:
      return is_value(k, inst, 0, PESTLE_ADDR) &&
                     is_value(k, inst, 1, PESTLE_INDEX)
                 ? NULL
                 : "no barrier and parity";
    case PESTLE_KIR_TILE_LOAD:
    case PESTLE_KIR_TILE_LOAD_WINDOW:
    case PESTLE_KIR_TILE_LOAD_ALL:
    case PESTLE_KIR_TILE_STORE:
      return check_copy(k, inst);
    case PESTLE_KIR_REF_AT:
      return inst->type == PESTLE_ADDR && inst->lanes == 1 &&
                     is_value(k, inst, 0, PESTLE_ADDR) &&
                     is_value(k, inst, 1, PESTLE_INDEX)
                 ? NULL
                 : "no address and group";
    case PESTLE_KIR_LOAD_AT:
      return is_value(k, inst, 0, PESTLE_ADDR) &&
                     is_value(k, inst, 1, PESTLE_INDEX) &&
                     pestle_dtype_is((pestle_dtype_t)inst->type,
                                     PESTLE_KIND_REAL)
                 ? NULL
                 : "no elements at an address";
    case PESTLE_KIR_SYNC:
    case PESTLE_KIR_SYNC_ARRIVE:
      return is_value(k, inst, 0, PESTLE_INDEX) ? NULL : "no index";
    case PESTLE_KIR_WGMMA:
    case PESTLE_KIR_WGMMA_RA:
      return check_wgmma(k, inst);
    case PESTLE_KIR_STMATRIX:
      return check_stmatrix(k, inst);
    default:
      return NULL;
  }
}

// --- Steps ---

static ref_kind_t kind_of(unsigned op) {
  switch (op) {
    case PESTLE_KIR_MBAR_INIT:
      return REF_STEP_MBAR_INIT;
    case PESTLE_KIR_MBAR_EXPECT:
      return REF_STEP_MBAR_EXPECT;
    case PESTLE_KIR_MBAR_ARRIVE:
      return REF_STEP_MBAR_ARRIVE;
    case PESTLE_KIR_MBAR_WAIT:
      return REF_STEP_MBAR_WAIT;
    case PESTLE_KIR_TILE_LOAD:
    case PESTLE_KIR_TILE_LOAD_WINDOW:
      return REF_STEP_TILE_LOAD;
    case PESTLE_KIR_TILE_LOAD_ALL:
      return REF_STEP_TILE_LOAD_ALL;
    case PESTLE_KIR_TILE_STORE:
      return REF_STEP_TILE_STORE;
    case PESTLE_KIR_REF_AT:
      return REF_STEP_REF_AT;
    case PESTLE_KIR_LOAD_AT:
      return REF_STEP_LOAD_AT;
    case PESTLE_KIR_CLUSTER_SYNC:
      return REF_STEP_CLUSTER_SYNC;
    case PESTLE_KIR_TILE_WAIT:
      return REF_STEP_TILE_WAIT;
    case PESTLE_KIR_SYNC:
      return REF_STEP_SYNC;
    case PESTLE_KIR_SYNC_ARRIVE:
      return REF_STEP_SYNC_ARRIVE;
    case PESTLE_KIR_STMATRIX:
      return REF_STEP_STMATRIX;
    case PESTLE_KIR_WGMMA:
    case PESTLE_KIR_WGMMA_RA:
      return REF_STEP_WGMMA;
    case PESTLE_KIR_WGMMA_FENCE:
      return REF_STEP_WGMMA_FENCE;
    case PESTLE_KIR_WGMMA_COMMIT:
      return REF_STEP_WGMMA_COMMIT;
    case PESTLE_KIR_WGMMA_WAIT:
      return REF_STEP_WGMMA_WAIT;
    case PESTLE_KIR_REGISTERS:
      return REF_STEP_REGISTERS;
    default:  // MBAR_FENCE and TILE_FENCE
      return REF_STEP_TILE_FENCE;
  }
}

void pestle_ref_plugin_tile_step(const pestle_kir_t* k, uint32_t id,
                                 const uint32_t* offset, const uint32_t* place,
                                 uint32_t* coords, uint32_t* coord_count,
                                 ref_step_t* step) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  step->kind = (uint8_t)kind_of(inst->op);
  switch (inst->op) {
    case PESTLE_KIR_REF: {
      const pestle_kir_buffer_t* buffer = pestle_kir_buffer(k, inst->arg[0]);
      step->kind = REF_STEP_ADDRESS;
      step->out = offset[id];
      step->a = offset[inst->arg[1]];
      step->place = place[inst->arg[0]];
      step->count = buffer->count;
      step->size = pestle_dtype_size((pestle_dtype_t)buffer->dtype);
      return;
    }
    case PESTLE_KIR_MBAR_INIT:
    case PESTLE_KIR_MBAR_EXPECT:
      step->a = offset[inst->arg[0]];
      step->imm = inst->arg[1];
      return;
    case PESTLE_KIR_MBAR_ARRIVE:
      step->a = offset[inst->arg[0]];
      return;
    case PESTLE_KIR_MBAR_WAIT:
      step->a = offset[inst->arg[0]];
      step->b = offset[inst->arg[1]];
      return;
    case PESTLE_KIR_REF_AT:
    case PESTLE_KIR_LOAD_AT:
      step->out = offset[id];
      step->a = offset[inst->arg[0]];
      step->b = offset[inst->arg[1]];
      step->lanes = inst->lanes;
      if (inst->op == PESTLE_KIR_REF_AT) return;
      step->size = pestle_dtype_size((pestle_dtype_t)inst->type);
      step->move = pestle_ref_plugin_load(inst->type);
      return;
    case PESTLE_KIR_TILE_LOAD:
    case PESTLE_KIR_TILE_LOAD_WINDOW:
    case PESTLE_KIR_TILE_LOAD_ALL:
    case PESTLE_KIR_TILE_STORE: {
      uint32_t at[REF_MAP_NUMBERS] = {0};
      uint32_t rank = coordinates(k, inst->arg[2], at);
      step->a = offset[inst->arg[0]];
      if (inst->op != PESTLE_KIR_TILE_STORE) step->b = offset[inst->arg[3]];
      step->place = place[inst->arg[1]];
      step->target = *coord_count;
      for (uint32_t d = 0; d < rank; ++d)
        coords[(*coord_count)++] = offset[at[d]];
      return;
    }
    case PESTLE_KIR_SYNC:
    case PESTLE_KIR_SYNC_ARRIVE:
      step->a = offset[inst->arg[0]];
      step->imm = inst->arg[1];
      return;
    case PESTLE_KIR_STMATRIX: {
      const pestle_kir_buffer_t* buffer = pestle_kir_buffer(k, inst->arg[0]);
      step->a = offset[inst->arg[1]];
      step->b = offset[inst->arg[2]];
      step->lanes = pestle_kir_inst(k, inst->arg[2])->lanes;
      step->place = place[inst->arg[0]];
      step->count = buffer->count;
      step->imm = inst->arg[3];
      return;
    }
    case PESTLE_KIR_WGMMA_RA:
      // Its registers are those of the buffer that they were loaded from.
      step->target = place[pestle_kir_inst(k, inst->arg[1])->arg[0]] + 1;
      step->place = place[inst->arg[0]];
      step->a = offset[inst->arg[1]];
      step->b = offset[inst->arg[2]];
      step->imm = inst->arg[3];
      return;
    case PESTLE_KIR_WGMMA:
      step->place = place[inst->arg[0]];
      step->a = offset[inst->arg[1]];
      step->b = offset[inst->arg[2]];
      step->imm = inst->arg[3];
      return;
    case PESTLE_KIR_TILE_WAIT:
    case PESTLE_KIR_WGMMA_WAIT:
      step->imm = inst->arg[0];
      return;
    case PESTLE_KIR_REGISTERS:
      step->imm = (int32_t)inst->arg[0];
      return;
    default:
      return;
  }
}
