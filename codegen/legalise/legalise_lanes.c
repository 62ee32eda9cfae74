// SPDX-License-Identifier: Apache-2.0
// Values of more lanes than the target takes become several, of max_lanes each:
// part p holds the lanes from p * max_lanes on.
#include "codegen/legalise/legalise.h"

static unsigned parts_of(const pestle_rewrite_t* r, unsigned lanes) {
  unsigned most = r->caps->max_lanes;
  return lanes > most ? (lanes + most - 1) / most : 1;
}

static unsigned part_lanes(const pestle_rewrite_t* r, unsigned lanes) {
  return lanes > r->caps->max_lanes ? r->caps->max_lanes : lanes;
}

static bool needed(pestle_rewrite_t* r) {
  for (uint32_t i = 0; i < r->from->inst_count; ++i) {
    if (pestle_kir_inst(r->from, i)->lanes > r->caps->max_lanes) return true;
  }
  return false;
}

static pestle_kir_id_t* slots(const pestle_rewrite_t* r, uint32_t id) {
  return &r->map.data[(size_t)id * PESTLE_REWRITE_PARTS];
}

// Part |part| of operand |a|; of one that has a single part, that.
static pestle_kir_id_t part(const pestle_rewrite_t* r,
                            const pestle_kir_inst_t* inst, int a,
                            unsigned number) {
  uint32_t id = inst->arg[a];
  if (id == PESTLE_KIR_NONE) return id;
  unsigned parts = parts_of(r, pestle_kir_inst(r->from, id)->lanes);
  return slots(r, id)[parts > 1 ? number : 0];
}

static void buffers(pestle_rewrite_t* r) {
  for (size_t b = 0; b < r->to->buffer.size; ++b) {
    pestle_kir_buffer_t* buffer = &r->to->buffer.data[b];
    unsigned parts = parts_of(r, buffer->lanes);
    if (parts == 1) continue;
    buffer->count *= parts;
    buffer->lanes = (uint8_t)r->caps->max_lanes;
  }
}

// The index of part |number| of an access: of a private element its own, in
// memory as many lanes further.
static pestle_kir_id_t part_index(pestle_rewrite_t* r,
                                  const pestle_kir_inst_t* inst, unsigned parts,
                                  unsigned number) {
  pestle_kir_builder_t* k = r->to;
  pestle_kir_id_t index = slots(r, inst->arg[1])[0];
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(r->from, inst->arg[0]);
  if (buffer->scope == PESTLE_KIR_PRIVATE) {
    return pestle_kir_madi(k, index, parts, pestle_kir_index(k, number));
  }
  int64_t offset = (int64_t)number * r->caps->max_lanes;
  return pestle_kir_madi(k, index, 1, pestle_kir_index(k, offset));
}

static void split_access(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  unsigned parts = parts_of(r, inst->lanes);
  bool stores = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER;
  bool lanewise =
      inst->op == PESTLE_KIR_GATHER || inst->op == PESTLE_KIR_SCATTER;
  for (unsigned p = 0; p < parts; ++p) {
    pestle_kir_inst_t copy = *inst;
    copy.lanes = (uint8_t)part_lanes(r, inst->lanes);
    copy.arg[1] =
        lanewise ? part(r, inst, 1, p) : part_index(r, inst, parts, p);
    copy.arg[2] = part(r, inst, 2, p);
    if (stores) copy.arg[3] = part(r, inst, 3, p);
    // Later parts lie as many bytes further.
    unsigned bytes =
        copy.lanes *
        pestle_dtype_size(
            (pestle_dtype_t)pestle_kir_buffer(r->from, inst->arg[0])->dtype);
    while (p && copy.align_log2 && bytes % (1u << copy.align_log2)) {
      --copy.align_log2;
    }
    slots(r, id)[p] = pestle_kir_put(r->to, copy);
  }
}

// The tree of reduce folds upper halves onto lower ones: parts first.
static void split_reduce(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  unsigned lanes = pestle_kir_inst(r->from, inst->arg[0])->lanes;
  pestle_kir_id_t value[PESTLE_REWRITE_PARTS];
  unsigned parts = parts_of(r, lanes);
  for (unsigned p = 0; p < parts; ++p)
    value[p] = part(r, inst, 0, p);
  r->to->facts = inst->facts;
  for (; parts > 1; parts /= 2) {
    for (unsigned p = 0; p < parts / 2; ++p) {
      value[p] = pestle_kir_scalar(r->to, (pestle_op_t)inst->arg[1], value[p],
                                   value[p + parts / 2], PESTLE_KIR_NONE);
    }
  }
  slots(r, id)[0] =
      pestle_kir_reduce(r->to, value[0], (pestle_op_t)inst->arg[1]);
  r->to->facts = 0;
}

static void split_mask(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_kir_builder_t* k = r->to;
  for (unsigned p = 0; p < parts_of(r, inst->lanes); ++p) {
    int64_t offset = (int64_t)p * r->caps->max_lanes;
    pestle_kir_id_t index = slots(r, inst->arg[0])[0];
    index = pestle_kir_madi(k, index, 1, pestle_kir_index(k, offset));
    slots(r, id)[p] = pestle_kir_mask(k, index, slots(r, inst->arg[1])[0],
                                      part_lanes(r, inst->lanes));
  }
}

static void split_iota(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_kir_builder_t* k = r->to;
  pestle_dtype_t type = (pestle_dtype_t)inst->type;
  unsigned lanes = part_lanes(r, inst->lanes);
  for (unsigned p = 0; p < parts_of(r, inst->lanes); ++p) {
    pestle_kir_id_t first = pestle_kir_iota(k, type, lanes);
    pestle_kir_id_t offset =
        pestle_kir_int(k, type, lanes, (int64_t)p * r->caps->max_lanes);
    slots(r, id)[p] =
        pestle_kir_scalar(k, PESTLE_OP_ADD, first, offset, PESTLE_KIR_NONE);
  }
}

// Lane |imm| of one part; the others stay as they are.
static void split_lane(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_kir_inst_t copy = *inst;
  bool insert = inst->op == PESTLE_KIR_INSERT;
  unsigned lane = inst->arg[insert ? 2 : 1], most = r->caps->max_lanes;
  unsigned parts = parts_of(r, inst->lanes);
  for (unsigned p = 0; insert && p < parts; ++p) {
    slots(r, id)[p] = part(r, inst, 0, p);
  }
  copy.arg[0] = part(r, inst, 0, lane / most);
  copy.arg[insert ? 2 : 1] = lane % most;
  if (insert) {
    copy.arg[1] = part(r, inst, 1, 0);
    copy.lanes = (uint8_t)part_lanes(r, inst->lanes);
  }
  slots(r, id)[insert ? lane / most : 0] = pestle_kir_put(r->to, copy);
}

// Elementwise: part by part.
static void split_plain(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  const char* letters = pestle_kir_info(inst->op).operands;
  for (unsigned p = 0; p < parts_of(r, inst->lanes); ++p) {
    pestle_kir_inst_t copy = *inst;
    copy.lanes = (uint8_t)part_lanes(r, inst->lanes);
    for (int a = 0; letters[a]; ++a) {
      if (pestle_kir_is_value(letters[a])) {
        copy.arg[a] = part(r, inst, a, p);
      }
    }
    slots(r, id)[p] = pestle_rewrite_put(r, copy);
  }
}

static pestle_status_t rewrite_inst(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  unsigned most = r->caps->max_lanes, lanes = inst->lanes;
  if (inst->op == PESTLE_KIR_REDUCE || inst->op == PESTLE_KIR_EXTRACT ||
      inst->op == PESTLE_KIR_SHUFFLE) {
    unsigned from = pestle_kir_inst(r->from, inst->arg[0])->lanes;
    if (from > lanes) lanes = from;
  }
  bool splits = lanes > most;
  if (splits &&
      (most == 0 || lanes % most || lanes / most > PESTLE_REWRITE_PARTS ||
       inst->op == PESTLE_KIR_SHUFFLE || inst->op == PESTLE_KIR_LOAD_WORDS)) {
    return pestle_rewrite_unsupported(r, inst);
  }
  switch (inst->op) {
    case PESTLE_KIR_LOAD:
    case PESTLE_KIR_STORE:
    case PESTLE_KIR_GATHER:
    case PESTLE_KIR_SCATTER:
      if (splits) {
        split_access(r, id);
        return NULL;
      }
      break;
    case PESTLE_KIR_REDUCE:
      split_reduce(r, id);
      return NULL;
    case PESTLE_KIR_MASK:
      split_mask(r, id);
      return NULL;
    case PESTLE_KIR_IOTA:
      split_iota(r, id);
      return NULL;
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_INSERT:
      split_lane(r, id);
      return NULL;
    default:
      break;
  }
  split_plain(r, id);
  return NULL;
}

const pestle_rewrite_pass_t pestle_legalise_lanes = {
    .needed = needed,
    .buffers = buffers,
    .inst = rewrite_inst,
    .parts = PESTLE_REWRITE_PARTS};
