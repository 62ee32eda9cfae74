// SPDX-License-Identifier: Apache-2.0
// The list of copies, and what they share. See legalise.h.
#include "codegen/legalise/legalise_approx.h"

// --- What the target can do ---

bool pestle_rewrite_can(const pestle_rewrite_t* r, unsigned op,
                        pestle_dtype_t dtype) {
  return op < PESTLE_KIR_OP_LIMIT &&
         (r->caps->op_dtypes[op] & pestle_dtype_bit(dtype)) != 0;
}

pestle_dtype_t pestle_rewrite_dtype(const pestle_kir_t* k,
                                    const pestle_kir_inst_t* inst) {
  pestle_op_t op;
  unsigned type = inst->type;
  if (inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER) {
    type = pestle_kir_buffer(k, inst->arg[0])->dtype;
  } else if (pestle_kir_is_scalar(inst->op, &op) &&
             pestle_kir_row(op)->rule != PESTLE_RULE_SELECT) {
    type = pestle_kir_inst(k, inst->arg[0])->type;
  }
  return (pestle_dtype_t)type;
}

bool pestle_rewrite_legal(const pestle_rewrite_t* r,
                          const pestle_kir_inst_t* inst) {
  pestle_kir_op_info_t info = pestle_kir_info(inst->op);
  pestle_dtype_t dtype = pestle_rewrite_dtype(r->from, inst);
  if (pestle_approx_is_row(r, inst)) return true;
  // What has no dtype is part of every target.
  if (info.klass == 'B' || info.klass == 'L' || info.klass == 'E') return true;
  if (inst->op == PESTLE_KIR_ALLOC || inst->op == PESTLE_KIR_PREFETCH ||
      inst->op == PESTLE_KIR_MADI || inst->op == PESTLE_KIR_MASK ||
      inst->op == PESTLE_KIR_TRAP_IF || inst->op == PESTLE_KIR_BARRIER) {
    return true;
  }
  // What only the target's own schedules make: it has it, or not, as a whole.
  if (inst->op >= PESTLE_KIR_REF && inst->op <= PESTLE_KIR_GRID_WAIT) {
    return r->caps->op_dtypes[inst->op] != 0;
  }
  if (inst->op == PESTLE_KIR_CAST) {
    unsigned from = pestle_kir_inst(r->from, inst->arg[0])->type;
    if (!pestle_rewrite_can(r, inst->op, (pestle_dtype_t)from)) return false;
  }
  return pestle_rewrite_can(r, inst->op, dtype);
}

pestle_status_t pestle_rewrite_unsupported(const pestle_rewrite_t* r,
                                           const pestle_kir_inst_t* inst) {
  pestle_kir_op_info_t info = pestle_kir_info(inst->op);
  pestle_dtype_t dtype = pestle_rewrite_dtype(r->from, inst);
  // Without memory, operands have no types to go by.
  if (r->to && r->to->failed) return PESTLE_OOM();
  return PESTLE_ERROR(UNSUPPORTED,
                      "kernel %s: target %s has no %s on %s (%u lanes), and "
                      "nothing that it could be made of",
                      pestle_kir_string(r->from, r->from->name), r->caps->name,
                      info.mnemonic ? info.mnemonic : "such op",
                      pestle_dtype_info(dtype)->name, inst->lanes);
}

static bool count_uses(pestle_rewrite_t* r) {
  if (!pestle_vec_resize(&r->uses, r->from->inst_count)) return false;
  memset(r->uses.data, 0, r->uses.size * sizeof(r->uses.data[0]));
  for (uint32_t i = 0; i < r->from->inst_count; ++i) {
    const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, i);
    const char* letters = pestle_kir_info(inst->op).operands;
    for (int a = 0; letters[a]; ++a) {
      bool value = pestle_kir_is_value(letters[a]);
      if (value && inst->arg[a] < r->uses.size) ++r->uses.data[inst->arg[a]];
    }
  }
  return true;
}

uint32_t pestle_rewrite_uses(pestle_rewrite_t* r, pestle_kir_id_t id) {
  if (!r->uses.size && !count_uses(r)) {
    r->to->failed = true;
    return 0;
  }
  return r->uses.data[id];
}

bool pestle_rewrite_constant(const pestle_kir_t* k, pestle_kir_id_t id,
                             double* out_value) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  if (inst->op == PESTLE_KIR_SPLAT) inst = pestle_kir_inst(k, inst->arg[0]);
  if (inst->op != PESTLE_KIR_CONST) return false;
  *out_value = pestle_kir_const_float(inst);
  return true;
}

// --- Copying ---

pestle_kir_inst_t pestle_rewrite_mapped(const pestle_rewrite_t* r,
                                        const pestle_kir_inst_t* inst) {
  pestle_kir_inst_t copy = *inst;
  const char* letters = pestle_kir_info(inst->op).operands;
  for (int a = 0; letters[a]; ++a) {
    if (!pestle_kir_is_value(letters[a])) continue;
    if (copy.arg[a] < r->from->inst_count) {
      copy.arg[a] = r->map.data[copy.arg[a]];
    }
  }
  return copy;
}

static pestle_kir_id_t put_scalar(pestle_rewrite_t* r, pestle_op_t op,
                                  const pestle_kir_inst_t* inst) {
  const char* letters = pestle_kir_info(inst->op).operands;
  uint32_t b = letters[1] ? inst->arg[1] : PESTLE_KIR_NONE;
  uint32_t c = letters[1] && letters[2] ? inst->arg[2] : PESTLE_KIR_NONE;
  r->to->facts = inst->facts;
  pestle_kir_id_t id = pestle_kir_scalar(r->to, op, inst->arg[0], b, c);
  r->to->facts = 0;
  return id;
}

pestle_kir_id_t pestle_rewrite_put(pestle_rewrite_t* r,
                                   pestle_kir_inst_t inst) {
  pestle_op_t op;
  pestle_dtype_t type = (pestle_dtype_t)inst.type;
  if (pestle_kir_is_scalar(inst.op, &op)) return put_scalar(r, op, &inst);
  switch (inst.op) {
    case PESTLE_KIR_MADI:
      return pestle_kir_madi(r->to, inst.arg[0], (int32_t)inst.arg[1],
                             inst.arg[2]);
    case PESTLE_KIR_MASK:
      return pestle_kir_mask(r->to, inst.arg[0], inst.arg[1], inst.lanes);
    case PESTLE_KIR_SPLAT:
      return pestle_kir_splat(r->to, inst.arg[0], inst.lanes);
    case PESTLE_KIR_CAST:
      return pestle_kir_cast(r->to, inst.arg[0], type);
    case PESTLE_KIR_BITCAST:
      return pestle_kir_bitcast(r->to, inst.arg[0], type);
    default:
      return pestle_kir_put(r->to, inst);
  }
}

pestle_kir_id_t pestle_rewrite_slice(pestle_rewrite_t* r, pestle_kir_id_t a,
                                     unsigned first, unsigned count) {
  pestle_kir_builder_t* k = r->to;
  pestle_kir_inst_t inst = {.op = PESTLE_KIR_SHUFFLE,
                            .type = (uint8_t)pestle_kir_type_of(k, a),
                            .lanes = (uint8_t)count,
                            .arg = {a, a, (uint32_t)k->table.size}};
  pestle_kir_table_t table = {(uint32_t)k->word.size, count};
  if (first == 0 && count == pestle_kir_lanes_of(k, a)) return a;
  if (count == 1) {
    inst.op = PESTLE_KIR_EXTRACT;
    inst.arg[1] = first;
    inst.arg[2] = 0;
    return pestle_kir_put(k, inst);
  }
  for (unsigned i = 0; i < count; ++i) {
    if (!pestle_vec_push(&k->word, first + i)) k->failed = true;
  }
  if (!pestle_vec_push(&k->table, table)) k->failed = true;
  return pestle_kir_put(k, inst);
}

// An empty kernel with the buffers, tables and strings of |from|.
static void start(const pestle_kir_t* from, pestle_allocator_t allocator,
                  pestle_kir_builder_t* to) {
  pestle_kir_init(allocator, "", NULL, to);
  pestle_strbuf_clear(&to->strings);
  pestle_strbuf_append_bytes(&to->strings, from->strings, from->strings_size);
  to->name = from->name;
  to->note = from->note;
  bool ok = !to->failed && !to->strings.failed;
  for (uint32_t b = 0; ok && b < from->buffer_count; ++b) {
    ok = pestle_vec_push(&to->buffer, *pestle_kir_buffer(from, b));
  }
  ok = ok && pestle_vec_append(&to->table, from->table, from->table_count);
  ok = ok &&
       pestle_vec_append(&to->word, from->table_word, from->table_word_count);
  if (!ok) to->failed = true;
}

// Appends the rewritten |from| to |to|.
static pestle_status_t rewrite(pestle_rewrite_t* r,
                               const pestle_rewrite_pass_t* pass,
                               pestle_allocator_t allocator,
                               pestle_kir_builder_t* to) {
  r->to = to;
  start(r->from, allocator, to);
  pestle_vec_init(&r->map, allocator);
  pestle_vec_init(&r->uses, allocator);
  pestle_vec_init(&r->approx, allocator);
  pestle_status_t status = NULL;
  size_t parts = pass && pass->parts ? pass->parts : 1;
  if (!pestle_vec_resize(&r->map, r->from->inst_count * parts)) {
    status = PESTLE_OOM();
  }
  if (!status && pass && pass->buffers) pass->buffers(r);
  for (uint32_t i = 0; !status && i < r->from->inst_count; ++i) {
    if (pass) {
      status = pass->inst(r, i);
    } else {
      pestle_kir_inst_t inst =
          pestle_rewrite_mapped(r, pestle_kir_inst(r->from, i));
      pestle_rewrite_set(r, i, pestle_rewrite_put(r, inst));
    }
  }
  if (pass && pass->end) pass->end(r);
  pestle_vec_deinit(&r->map);
  pestle_vec_deinit(&r->uses);
  pestle_vec_deinit(&r->approx);
  r->to = NULL;
  return status ? status : pestle_kir_finish(to);
}

// --- The list ---

static pestle_status_t check_legal(const pestle_rewrite_t* r) {
  for (uint32_t i = 0; i < r->from->inst_count; ++i) {
    const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, i);
    if (!pestle_rewrite_legal(r, inst)) {
      return pestle_rewrite_unsupported(r, inst);
    }
    if (inst->lanes > r->caps->max_lanes) {
      return PESTLE_ERROR(UNSUPPORTED, "kernel %s: %u lanes, target %s has %u",
                          pestle_kir_string(r->from, r->from->name),
                          inst->lanes, r->caps->name, r->caps->max_lanes);
    }
  }
  if (r->from->shared_bytes <= r->caps->scratch_bytes) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED, "kernel %s needs %u bytes of scratch, target %s has %u",
      pestle_kir_string(r->from, r->from->name), r->from->shared_bytes,
      r->caps->name, r->caps->scratch_bytes);
}

// The verifier has to follow indices through what was made of them.
static pestle_status_t check_made(const pestle_rewrite_t* r,
                                  const pestle_kir_t* made,
                                  pestle_allocator_t allocator) {
  pestle_status_t broken = pestle_kir_verify_in(allocator, made);
  if (pestle_status_code(broken) != PESTLE_STATUS_INTERNAL) return broken;
  pestle_status_t status = PESTLE_ERROR(
      UNSUPPORTED,
      "kernel %s: target %s has no integers of 64 bits; of pairs: %s",
      pestle_kir_string(r->from, r->from->name), r->caps->name,
      pestle_status_message(broken));
  pestle_status_release(broken);
  return status;
}

static void move(pestle_kir_builder_t* from, pestle_kir_builder_t* to) {
  pestle_kir_deinit(to);
  *to = *from;
}

// Expansions use rows that may need expanding themselves, a few levels deep.
static pestle_status_t run_list(pestle_rewrite_t* r,
                                pestle_allocator_t allocator,
                                pestle_kir_builder_t* out) {
  const pestle_rewrite_pass_t* const list[] = {
      &pestle_legalise_wide_rows, &pestle_legalise_wide,
      &pestle_legalise_narrow,    &pestle_legalise_row,
      &pestle_legalise_row,       &pestle_legalise_row,
      &pestle_legalise_row,       &pestle_legalise_lanes};
  const pestle_kir_t* kernel = r->from;
  for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
    if (!list[i]->needed(r)) continue;
    pestle_kir_builder_t next;
    pestle_status_t status = rewrite(r, list[i], allocator, &next);
    if (!status && list[i]->is_checked)
      status = check_made(r, &next.view, allocator);
    if (status) {
      pestle_kir_deinit(&next);
      return status;
    }
    move(&next, out);
    r->from = &out->view;
  }
  if (r->from == kernel) {
    PESTLE_TRY(rewrite(r, NULL, allocator, out));
    r->from = &out->view;
  }
  return check_legal(r);
}

pestle_status_t pestle_kir_legalise_in(pestle_allocator_t allocator,
                                       const pestle_kir_t* kernel,
                                       const pestle_target_caps_t* caps,
                                       pestle_numerics_t numerics,
                                       pestle_kir_builder_t* out_builder) {
  pestle_rewrite_t r = {.from = kernel, .caps = caps, .numerics = numerics};
  memset(out_builder, 0, sizeof *out_builder);
  pestle_status_t status = run_list(&r, allocator, out_builder);
  if (status) {
    if (out_builder->allocator.resize) pestle_kir_deinit(out_builder);
    memset(out_builder, 0, sizeof *out_builder);
  }
  return status;
}

pestle_status_t pestle_kir_legalise(const pestle_kir_t* kernel,
                                    const pestle_target_caps_t* caps,
                                    pestle_numerics_t numerics,
                                    pestle_kir_builder_t* out_builder) {
  return pestle_kir_legalise_in(pestle_allocator_system(), kernel, caps,
                                numerics, out_builder);
}
