// SPDX-License-Identifier: Apache-2.0
// From a checked kernel to a program: slots are laid out, constants computed,
// regions turned into jumps. The frame is
//
//   constants | values | private buffers
//
// of which the first is copied at the start of a run, the rest is what the
// steps make of it.
#include <stdio.h>
#include <string.h>

#include "plugins/ref/ref_internal.h"
#include "plugins/ref/ref_tile.h"

#define FRAME_LIMIT (UINT64_C(1) << 30)

typedef struct decode_t {
  const pestle_host_t* host;
  const pestle_kir_t* k;
  uint32_t* offset;  // by instruction: its slots
  uint32_t* place;   // by buffer: in scratch or in the frame
  uint32_t* region;  // stack of open regions: pairs of step and ELSE's step
  uint64_t frame_size, constant_size;
  pestle_loaded_t* program;
  ref_step_t* steps;
  unsigned char* constants;
  ref_map_t* maps;
  uint32_t* coords;
  uint32_t id;  // of the instruction at hand
  uint32_t step_count, depth, map_count, copy_count, coord_count;
  bool has_registers, has_tiles;
} decode_t;

static uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

static bool is_constant(unsigned op) {
  return op == PESTLE_KIR_CONST || op == PESTLE_KIR_IOTA;
}

// --- Layout ---

static uint64_t take_slots(const pestle_kir_inst_t* inst, uint64_t* size) {
  uint64_t bytes = (uint64_t)inst->lanes * pestle_ref_plugin_slot(inst->type);
  uint64_t at = align_up(*size, bytes >= 32 ? 32 : 8);
  *size = at + bytes;
  return at;
}

static void lay_out_values(decode_t* d, bool constants) {
  for (uint32_t i = 0; i < d->k->inst_count; ++i) {
    const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, i);
    if (inst->type == PESTLE_NONE || is_constant(inst->op) != constants) {
      continue;
    }
    uint64_t at = take_slots(inst, &d->frame_size);
    if (at > FRAME_LIMIT) return;
    d->offset[i] = (uint32_t)at;
  }
}

static void lay_out_buffers(decode_t* d, uint64_t* out_scratch) {
  for (uint32_t b = 0; b < d->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* buffer = pestle_kir_buffer(d->k, b);
    if (buffer->scope == PESTLE_KIR_GLOBAL) {
      d->place[b] = buffer->arg_slot;
    } else if (buffer->scope == PESTLE_KIR_TENSOR_MAP) {
      d->place[b] = d->map_count++;
    } else if (buffer->scope == PESTLE_KIR_SHARED) {
      if (buffer->align > 64)
        *out_scratch = align_up(*out_scratch, buffer->align);
      d->place[b] = (uint32_t)*out_scratch;
      *out_scratch = align_up(
          *out_scratch +
              buffer->count * pestle_dtype_size((pestle_dtype_t)buffer->dtype),
          64);
    } else {
      d->frame_size = align_up(d->frame_size, 32);
      d->place[b] = (uint32_t)d->frame_size;
      d->frame_size +=
          buffer->count * buffer->lanes * pestle_ref_plugin_slot(buffer->dtype);
    }
    if (d->frame_size > FRAME_LIMIT || *out_scratch > FRAME_LIMIT) return;
  }
}

static pestle_status_t lay_out(decode_t* d) {
  uint64_t scratch = 0;
  lay_out_values(d, true);
  d->frame_size = align_up(d->frame_size, 32);
  d->constant_size = d->frame_size;
  lay_out_values(d, false);
  lay_out_buffers(d, &scratch);
  if (d->frame_size > FRAME_LIMIT || scratch > FRAME_LIMIT) {
    return REF_ERROR(d->host, UNSUPPORTED, "ref: kernel %s is too large",
                     pestle_kir_string(d->k, d->k->name));
  }
  if (scratch > d->k->shared_bytes) {
    return REF_ERROR(d->host, MALFORMED,
                     "ref: shared buffers of kernel %s take more than stated",
                     pestle_kir_string(d->k, d->k->name));
  }
  return NULL;
}

// --- Constants ---

static void fill_constant(const decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  unsigned char* out = d->constants + d->offset[id];
  unsigned width = pestle_dtype_info((pestle_dtype_t)inst->type)->bits;
  ref_class_t kind = pestle_ref_plugin_class(inst->type);
  double value = pestle_kir_const_float(inst);
  float narrow = (float)value;
  if (kind == REF_F32 && inst->type != PESTLE_F32) {
    narrow = pestle_ref_plugin_decode(
        inst->type, pestle_ref_plugin_encode(inst->type, value));
  }
  for (unsigned lane = 0; lane < inst->lanes; ++lane) {
    uint64_t bits = (uint64_t)pestle_kir_const_int(inst);
    if (inst->op == PESTLE_KIR_IOTA) bits = lane;
    if (kind == REF_F32) {
      memcpy(out + 4 * lane, &narrow, sizeof narrow);
      continue;
    }
    if (kind != REF_F64 && width < 64) {
      uint64_t sign = kind == REF_I64 ? UINT64_C(1) << (width - 1) : 0;
      bits &= (UINT64_C(1) << width) - 1;
      bits = (bits ^ sign) - sign;
    }
    memcpy(out + 8 * lane, &bits, sizeof bits);
  }
}

// --- Steps ---

static void splat_4(void* restrict out_, const void* a, const void* b,
                    const void* c, size_t count, uint64_t arg) {
  float* restrict out = out_;
  float value = *(const float*)a;
  (void)b, (void)c, (void)arg;
  for (size_t i = 0; i < count; ++i)
    out[i] = value;
}

static void splat_8(void* restrict out_, const void* a, const void* b,
                    const void* c, size_t count, uint64_t arg) {
  uint64_t* restrict out = out_;
  uint64_t value = *(const uint64_t*)a;
  (void)b, (void)c, (void)arg;
  for (size_t i = 0; i < count; ++i)
    out[i] = value;
}

static ref_step_t* add_step(decode_t* d, ref_kind_t kind) {
  ref_step_t* step = &d->steps[d->step_count++];
  memset(step, 0, sizeof *step);
  step->kind = (uint8_t)kind;
  step->id = d->id;
  return step;
}

static void take_value(const decode_t* d, uint32_t id, ref_step_t* step) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  step->slot = (uint8_t)pestle_ref_plugin_slot(inst->type);
  step->lanes = inst->lanes;
  step->out = d->offset[id];
  step->fix = pestle_ref_plugin_fix(inst->type);
  step->fix_arg = pestle_ref_plugin_class(inst->type) == REF_F32
                      ? inst->type
                      : pestle_dtype_info((pestle_dtype_t)inst->type)->bits;
}

static void add_scalar(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  pestle_op_t op = (pestle_op_t)(inst->op - PESTLE_KIR_SCALAR_BASE);
  const char* letters = pestle_ref_plugin_op_info(inst->op).operands;
  ref_step_t* step = add_step(d, REF_STEP_VALUE);
  unsigned type = inst->type;
  take_value(d, id, step);
  // Unused operands read what is there: the first one, which may be i1 of
  // eight bytes a lane and so is never the shorter.
  step->a = d->offset[inst->arg[0]];
  step->b = letters[1] ? d->offset[inst->arg[1]] : step->a;
  step->c = letters[1] && letters[2] ? d->offset[inst->arg[2]] : step->b;
  if (op != PESTLE_OP_SELECT) type = pestle_kir_inst(d->k, inst->arg[0])->type;
  step->fn = pestle_ref_plugin_scalar(op, pestle_ref_plugin_class(type));
  if (op == PESTLE_OP_FMA) {
    ref_fn_t native =
        pestle_ref_plugin_native_fma(pestle_ref_plugin_class(type));
    if (native) step->fn = native;
  }
  step->arg = pestle_dtype_info((pestle_dtype_t)type)->bits;
  if ((inst->facts & PESTLE_KIR_APPROX) && inst->type == PESTLE_F32) {
    step->fix = pestle_ref_plugin_approx(op);
    step->fix_arg = inst->facts & PESTLE_KIR_FLUSH;
    return;
  }
  if (op == PESTLE_OP_SELECT || inst->type == PESTLE_I1) {
    step->fix = type == PESTLE_I1 && op != PESTLE_OP_SELECT ? step->fix : NULL;
  }
}

static void add_cast(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  unsigned from = pestle_kir_inst(d->k, inst->arg[0])->type;
  ref_step_t* step = add_step(d, REF_STEP_VALUE);
  take_value(d, id, step);
  step->a = step->b = step->c = d->offset[inst->arg[0]];
  step->arg = pestle_ref_plugin_cast_arg(from, inst->type);
  bool bits = inst->op == PESTLE_KIR_BITCAST;
  step->fn = bits ? pestle_ref_plugin_bitcast(from, inst->type)
                  : pestle_ref_plugin_cast(from, inst->type);
  if (pestle_ref_plugin_class(inst->type) == REF_F32) step->fix = NULL;
}

// Where an access begins: its buffer and index.
static void take_place(const decode_t* d, uint32_t id, ref_step_t* step) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(d->k, inst->arg[0]);
  step->scope = buffer->scope;
  step->a = d->offset[inst->arg[1]];
  step->place = d->place[inst->arg[0]];
  step->count = buffer->count;
  step->size = pestle_dtype_size((pestle_dtype_t)buffer->dtype);
}

static void add_access(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(d->k, inst->arg[0]);
  bool stores = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER;
  bool is_private = buffer->scope == PESTLE_KIR_PRIVATE;
  uint32_t mask = inst->arg[stores ? 3 : 2];
  ref_kind_t kind = inst->op == PESTLE_KIR_LOAD     ? REF_STEP_LOAD
                    : inst->op == PESTLE_KIR_STORE  ? REF_STEP_STORE
                    : inst->op == PESTLE_KIR_GATHER ? REF_STEP_GATHER
                                                    : REF_STEP_SCATTER;
  if (is_private)
    kind = stores ? REF_STEP_PRIVATE_STORE : REF_STEP_PRIVATE_LOAD;
  ref_step_t* step = add_step(d, kind);
  take_place(d, id, step);
  step->slot = (uint8_t)pestle_ref_plugin_slot(buffer->dtype);
  step->lanes = inst->lanes;
  step->out = d->offset[stores ? inst->arg[2] : id];
  step->b = mask == PESTLE_KIR_NONE ? REF_NO_MASK : d->offset[mask];
  step->move = stores ? pestle_ref_plugin_store(buffer->dtype)
                      : pestle_ref_plugin_load(buffer->dtype);
}

static void add_lanes(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  ref_kind_t kind = inst->op == PESTLE_KIR_SPLAT     ? REF_STEP_VALUE
                    : inst->op == PESTLE_KIR_EXTRACT ? REF_STEP_LANE
                    : inst->op == PESTLE_KIR_INSERT  ? REF_STEP_INSERT
                    : inst->op == PESTLE_KIR_REDUCE  ? REF_STEP_REDUCE
                                                     : REF_STEP_SHUFFLE;
  ref_step_t* step = add_step(d, kind);
  take_value(d, id, step);
  step->a = d->offset[inst->arg[0]];
  step->place = pestle_kir_inst(d->k, inst->arg[0])->lanes;
  if (kind == REF_STEP_VALUE) {
    step->fn = step->slot == 4 ? splat_4 : splat_8;
    step->fix = NULL;
  } else if (kind == REF_STEP_LANE) {
    step->a += inst->arg[1] * step->slot;
  } else if (kind == REF_STEP_INSERT) {
    step->b = d->offset[inst->arg[1]];
    step->imm = inst->arg[2];
  } else if (kind == REF_STEP_REDUCE) {
    step->fn = pestle_ref_plugin_scalar((pestle_op_t)inst->arg[1],
                                        pestle_ref_plugin_class(inst->type));
    step->arg = pestle_dtype_info((pestle_dtype_t)inst->type)->bits;
  } else {
    step->b = d->offset[inst->arg[1]];
    step->target = d->k->table[inst->arg[2]].first;
  }
}

static void add_index(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  ref_kind_t kind = inst->op == PESTLE_KIR_MADI   ? REF_STEP_MADI
                    : inst->op == PESTLE_KIR_MASK ? REF_STEP_MASK
                                                  : REF_STEP_PARAM;
  ref_step_t* step = add_step(d, kind);
  take_value(d, id, step);
  if (kind == REF_STEP_MADI) {
    step->a = d->offset[inst->arg[0]];
    step->b = d->offset[inst->arg[2]];
    step->imm = (int32_t)inst->arg[1];
  } else if (kind == REF_STEP_MASK) {
    step->a = d->offset[inst->arg[0]];
    step->b = d->offset[inst->arg[1]];
  } else {
    step->imm = inst->arg[0];
  }
}

// Matrix units, and copies to shared memory.
static void add_unit(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  bool copies = inst->op == PESTLE_KIR_COPY_ASYNC;
  ref_kind_t kind = copies                       ? REF_STEP_COPY
                    : inst->op == PESTLE_KIR_MMA ? REF_STEP_MMA
                                                 : REF_STEP_LDMATRIX;
  ref_step_t* step = add_step(d, kind);
  if (!copies) take_value(d, id, step);
  if (kind == REF_STEP_MMA) {
    step->a = d->offset[inst->arg[0]];
    step->b = d->offset[inst->arg[1]];
    step->c = d->offset[inst->arg[2]];
    step->imm = inst->arg[3];
    return;
  }
  const pestle_kir_buffer_t* tile = pestle_kir_buffer(d->k, inst->arg[0]);
  step->lanes = inst->lanes;
  step->a = d->offset[inst->arg[1]];
  step->place = d->place[inst->arg[0]];
  step->count = tile->count;
  step->size = pestle_dtype_size((pestle_dtype_t)tile->dtype);
  step->imm = copies ? 0 : inst->arg[2];
  if (!copies) return;
  step->b = d->offset[inst->arg[3]];
  step->target = d->place[inst->arg[2]];
  step->arg = pestle_kir_buffer(d->k, inst->arg[2])->count;
}

static void add_atomic(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  ref_step_t* step = add_step(d, REF_STEP_ATOMIC_ADD);
  take_value(d, id, step);
  take_place(d, id, step);
  step->b = d->offset[inst->arg[2]];
}

// Matrix registers.
static void add_mreg(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  d->has_registers = true;
  if (inst->op == PESTLE_KIR_MREG_MMA) {
    ref_step_t* step = add_step(d, REF_STEP_MREG_MMA);
    for (unsigned a = 0; a < 4; ++a)
      step->arg |= (uint64_t)inst->arg[a] << 8 * a;
    return;
  }
  if (inst->op == PESTLE_KIR_MREG_ZERO) {
    add_step(d, REF_STEP_MREG_ZERO)->imm = inst->arg[0];
    return;
  }
  ref_step_t* step =
      add_step(d, inst->op == PESTLE_KIR_MREG_STORE ? REF_STEP_MREG_STORE
                                                    : REF_STEP_MREG_LOAD);
  take_place(d, id, step);
  step->arg = inst->arg[2];
  step->imm = inst->arg[3];
}

// Words of neighbouring elements.
static void add_load_words(decode_t* d, uint32_t id) {
  ref_step_t* step = add_step(d, REF_STEP_LOAD_WORDS);
  take_value(d, id, step);
  take_place(d, id, step);
}

static void add_dot(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  ref_step_t* step = add_step(d, REF_STEP_VALUE);
  take_value(d, id, step);
  step->a = d->offset[inst->arg[0]];
  step->b = d->offset[inst->arg[1]];
  step->c = d->offset[inst->arg[2]];
  bool floats = inst->op == PESTLE_KIR_DOT2;
  step->fn = floats ? pestle_ref_plugin_dot2 : pestle_ref_plugin_dot4;
  step->arg = inst->arg[3];
  if (floats) step->fix = NULL;
}

static void add_scale(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  ref_step_t* step = add_step(d, REF_STEP_VALUE);
  take_value(d, id, step);
  step->a = d->offset[inst->arg[0]];
  step->b = d->offset[inst->arg[1]];
  step->fn = pestle_ref_plugin_scale;
  step->fix = NULL;
}

// --- Regions ---

static void open_region(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  bool loop = inst->op == PESTLE_KIR_FOR;
  d->region[2 * d->depth] = d->step_count;
  d->region[2 * d->depth++ + 1] = UINT32_MAX;
  if (loop && inst->arg[3] >= PESTLE_KIR_LANE_X) {
    ref_step_t* lane = add_step(d, REF_STEP_LANE_INDEX);
    lane->out = d->offset[id];
    // CLUSTER follows the lanes' axes.
    lane->imm = (int64_t)inst->arg[3] - PESTLE_KIR_LANE_X;
    return;
  }
  ref_step_t* step =
      add_step(d, !loop                                ? REF_STEP_IF
                  : inst->arg[3] == PESTLE_KIR_GROUP_X ? REF_STEP_GROUP
                                                       : REF_STEP_FOR);
  step->a = d->offset[inst->arg[0]];
  if (!loop) return;
  step->b = d->offset[inst->arg[1]];
  step->out = d->offset[id];
  step->imm = (int32_t)inst->arg[2];
}

static pestle_status_t at_else(decode_t* d) {
  uint32_t begin = d->region[2 * d->depth - 2];
  if (d->steps[begin].kind != REF_STEP_IF ||
      d->region[2 * d->depth - 1] != UINT32_MAX) {
    return REF_ERROR(d->host, MALFORMED, "ref: an `else` without its `if`");
  }
  d->region[2 * d->depth - 1] = d->step_count;
  add_step(d, REF_STEP_JUMP);
  d->steps[begin].target = d->step_count;
  return NULL;
}

static void close_region(decode_t* d) {
  uint32_t begin = d->region[2 * --d->depth];
  uint32_t jump = d->region[2 * d->depth + 1];
  if (d->steps[begin].kind == REF_STEP_LANE_INDEX) return;
  if (d->steps[begin].kind == REF_STEP_IF) {
    d->steps[jump == UINT32_MAX ? begin : jump].target = d->step_count;
    return;
  }
  ref_step_t* next = add_step(d, REF_STEP_NEXT);
  next->target = begin + 1;
  next->out = d->steps[begin].out;
  next->imm = d->steps[begin].imm;
  // The group loop's end is not that of the kernel but of this run.
  next->scope = d->steps[begin].kind == REF_STEP_GROUP;
  next->b = d->steps[begin].b;
  d->steps[begin].target = d->step_count;
}

static pestle_status_t add_inst(decode_t* d, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(d->k, id);
  if (inst->op >= PESTLE_KIR_SCALAR_BASE) {
    add_scalar(d, id);
    return NULL;
  }
  if (pestle_ref_plugin_is_tile(inst->op)) {
    d->has_tiles = true;
    if (inst->op == PESTLE_KIR_COORD) return NULL;
    pestle_ref_plugin_tile_step(d->k, id, d->offset, d->place, d->coords,
                                &d->coord_count,
                                add_step(d, REF_STEP_TILE_FENCE));
    return NULL;
  }
  switch (inst->op) {
    case PESTLE_KIR_CAST:
    case PESTLE_KIR_BITCAST:
      add_cast(d, id);
      return NULL;
    case PESTLE_KIR_LOAD:
    case PESTLE_KIR_STORE:
    case PESTLE_KIR_GATHER:
    case PESTLE_KIR_SCATTER:
      add_access(d, id);
      return NULL;
    case PESTLE_KIR_MREG_ZERO:
    case PESTLE_KIR_MREG_LOAD:
    case PESTLE_KIR_MREG_STREAM:
    case PESTLE_KIR_MREG_STORE:
    case PESTLE_KIR_MREG_MMA:
      add_mreg(d, id);
      return NULL;
    case PESTLE_KIR_LOAD_WORDS:
      add_load_words(d, id);
      return NULL;
    case PESTLE_KIR_DOT2:
    case PESTLE_KIR_DOT4:
      add_dot(d, id);
      return NULL;
    case PESTLE_KIR_SCALE:
      add_scale(d, id);
      return NULL;
    case PESTLE_KIR_SPLAT:
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_INSERT:
    case PESTLE_KIR_REDUCE:
    case PESTLE_KIR_SHUFFLE:
      add_lanes(d, id);
      return NULL;
    case PESTLE_KIR_MADI:
    case PESTLE_KIR_MASK:
    case PESTLE_KIR_PARAM:
      add_index(d, id);
      return NULL;
    case PESTLE_KIR_FOR:
    case PESTLE_KIR_IF:
      open_region(d, id);
      return NULL;
    case PESTLE_KIR_ELSE:
      return at_else(d);
    case PESTLE_KIR_END:
      close_region(d);
      return NULL;
    case PESTLE_KIR_TRAP_IF: {
      ref_step_t* step = add_step(d, REF_STEP_TRAP_IF);
      step->a = d->offset[inst->arg[0]];
      step->imm = (int32_t)inst->arg[1];
      return NULL;
    }
    case PESTLE_KIR_CONST:
    case PESTLE_KIR_IOTA:
      fill_constant(d, id);
      return NULL;
    case PESTLE_KIR_BARRIER:
      add_step(d, REF_STEP_BARRIER);
      return NULL;
    case PESTLE_KIR_SG_REDUCE: {
      ref_step_t* step = add_step(d, REF_STEP_SG_REDUCE);
      take_value(d, id, step);
      step->a = d->offset[inst->arg[0]];
      step->imm = inst->arg[2];
      step->fn = pestle_ref_plugin_scalar((pestle_op_t)inst->arg[1],
                                          pestle_ref_plugin_class(inst->type));
      step->arg = pestle_dtype_info((pestle_dtype_t)inst->type)->bits;
      return NULL;
    }
    case PESTLE_KIR_SG_BALLOT: {
      ref_step_t* step = add_step(d, REF_STEP_SG_BALLOT);
      take_value(d, id, step);
      step->a = d->offset[inst->arg[0]];
      return NULL;
    }
    case PESTLE_KIR_ATOMIC_ADD:
      add_atomic(d, id);
      return NULL;
    case PESTLE_KIR_MMA:
    case PESTLE_KIR_LDMATRIX:
    case PESTLE_KIR_COPY_ASYNC:
      add_unit(d, id);
      return NULL;
    default:  // alloc, prefetch, copies and kernels that are done already
      return NULL;
  }
}

// --- The whole ---

static pestle_status_t make_program(decode_t* d) {
  const pestle_kir_t* k = d->k;
  size_t steps = align_up(sizeof(pestle_loaded_t), 64);
  size_t constants =
      align_up(steps + (size_t)k->inst_count * sizeof(ref_step_t), 64);
  size_t words = constants + (size_t)d->constant_size;
  size_t maps =
      align_up(words + (size_t)k->table_word_count * sizeof(uint32_t), 64);
  size_t coords = maps + d->map_count * sizeof(ref_map_t);
  size_t total =
      coords + (size_t)d->copy_count * REF_MAP_NUMBERS * sizeof(uint32_t);
  unsigned char* memory = d->host->alloc(d->host->self, total);
  if (!memory) return REF_ERROR(d->host, OUT_OF_MEMORY, "out of host memory");
  d->program = (pestle_loaded_t*)(void*)memory;
  d->steps = (ref_step_t*)(void*)(memory + steps);
  d->constants = memory + constants;
  if (k->table_word_count) {
    memcpy(memory + words, k->table_word,
           (size_t)k->table_word_count * sizeof(uint32_t));
  }
  memset(d->constants, 0, (size_t)d->constant_size);
  d->maps = (ref_map_t*)(void*)(memory + maps);
  d->coords = (uint32_t*)(void*)(memory + coords);
  for (uint32_t b = 0; b < k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(k, b);
    if (u->scope == PESTLE_KIR_TENSOR_MAP)
      pestle_ref_plugin_read_map(k, u, &d->maps[d->place[b]]);
  }
  pestle_status_t status = NULL;
  for (d->id = 0; !status && d->id < k->inst_count; ++d->id) {
    status = add_inst(d, d->id);
  }
  *d->program =
      (pestle_loaded_t){.host = d->host,
                        .total_size = total,
                        .step_count = d->step_count,
                        .constant_size = (uint32_t)d->constant_size,
                        .frame_size = d->frame_size,
                        .steps = d->steps,
                        .constants = d->constants,
                        .words = (const uint32_t*)(const void*)(memory + words),
                        .maps = d->maps,
                        .coords = d->coords,
                        .lane = {k->lane[0], k->lane[1], k->lane[2]},
                        .cluster = pestle_kir_cluster(k),
                        .shared_bytes = k->shared_bytes,
                        .has_registers = d->has_registers,
                        .has_tiles = d->has_tiles || pestle_kir_cluster(k) > 1};
  snprintf(d->program->name, sizeof d->program->name, "%s",
           pestle_kir_string(k, k->name));
  if (status) d->host->free(d->host->self, memory, total);
  return status;
}

pestle_status_t pestle_ref_plugin_program(const pestle_host_t* host,
                                          const pestle_kir_t* kernel,
                                          pestle_loaded_t** out_loaded) {
  decode_t d = {.host = host, .k = kernel};
  *out_loaded = NULL;
  // Offsets of values and buffers, and the regions: at most 256 are open.
  size_t count = (size_t)kernel->inst_count + kernel->buffer_count + 2 * 257;
  size_t size = count * sizeof(uint32_t);
  d.offset = host->alloc(host->self, size);
  if (!d.offset) return REF_ERROR(host, OUT_OF_MEMORY, "out of host memory");
  memset(d.offset, 0, size);
  d.place = d.offset + kernel->inst_count;
  d.region = d.place + kernel->buffer_count;
  for (uint32_t i = 0; i < kernel->inst_count; ++i) {
    unsigned op = pestle_kir_inst(kernel, i)->op;
    d.copy_count +=
        op == PESTLE_KIR_TILE_LOAD || op == PESTLE_KIR_TILE_LOAD_WINDOW ||
        op == PESTLE_KIR_TILE_LOAD_ALL || op == PESTLE_KIR_TILE_STORE;
  }
  pestle_status_t status = lay_out(&d);
  if (!status) status = make_program(&d);
  host->free(host->self, d.offset, size);
  if (!status) *out_loaded = d.program;
  return status;
}
