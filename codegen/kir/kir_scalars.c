// SPDX-License-Identifier: Apache-2.0
#include "codegen/kir/kir_scalars.h"

#include <math.h>

#include "base/mem.h"
#include "codegen/kir/kir_internal.h"

// --- Which constants are scalars ---

static bool is_plain(double value) {
  return isfinite(value) && value != 0 && fabs(value) != 1;
}

// Whether operand |at| of |inst| may be any number: the code is as good.
static bool takes_scalar(const pestle_kir_inst_t* inst, int at) {
  switch (inst->op) {
    case PESTLE_KIR_ADD:
    case PESTLE_KIR_SUBTRACT:
    case PESTLE_KIR_MULTIPLY:
    case PESTLE_KIR_FMA:
      return true;
    case PESTLE_KIR_DIVIDE:
      return at == 0 || !(inst->facts & (PESTLE_KIR_ARCP | PESTLE_KIR_APPROX));
    default:
      return false;
  }
}

// The first instruction within all loops over groups and lanes: what stands before it
// may not read memory.
static size_t find_body(const pestle_kir_builder_t* k) {
  size_t body = k->inst.size;
  for (size_t i = 0; i < k->inst.size; ++i) {
    const pestle_kir_inst_t* inst = &k->inst.data[i];
    if (inst->op == PESTLE_KIR_FOR && inst->arg[3] > PESTLE_KIR_UNROLL)
      body = i + 1;
  }
  return body;
}

void pestle_kir_find_scalars(const pestle_kir_builder_t* k,
                             uint8_t* out_is_scalar) {
  const pestle_kir_inst_t* inst = k->inst.data;
  size_t body = find_body(k);
  for (size_t i = 0; i < k->inst.size; ++i) {
    bool is_number = i >= body && inst[i].op == PESTLE_KIR_CONST &&
                     inst[i].type == PESTLE_F32 &&
                     is_plain(pestle_kir_const_float(&inst[i]));
    out_is_scalar[i] = is_number || inst[i].op == PESTLE_KIR_SPLAT;
  }
  // From the last on: what a splat is for is known before what it is of.
  for (size_t i = k->inst.size; i-- > 0;) {
    const char* letters = pestle_kir_info(inst[i].op).operands;
    bool is_splat = inst[i].op == PESTLE_KIR_SPLAT;
    for (int a = 0; letters[a]; ++a) {
      uint32_t x = inst[i].arg[a];
      if (!pestle_kir_is_value(letters[a]) || x >= k->inst.size) continue;
      if (is_splat ? !out_is_scalar[i] : !takes_scalar(&inst[i], a)) {
        out_is_scalar[x] = 0;
      }
    }
    if (is_splat) out_is_scalar[i] = 0;
  }
}

void pestle_kir_hash_but_scalars(const pestle_kir_builder_t* k,
                                 const uint8_t* is_scalar,
                                 uint64_t out_hash[2]) {
  pestle_kir_hash(k, is_scalar, out_hash);
}

// --- Lifting ---

static pestle_status_t copy_rest(const pestle_kir_builder_t* k,
                                 pestle_kir_builder_t* out) {
  bool ok = !out->failed && pestle_vec_reserve(&out->table, k->table.size) &&
            pestle_vec_reserve(&out->word, k->word.size) &&
            pestle_vec_reserve(&out->buffer, k->buffer.size + 1);
  if (!ok) return PESTLE_OOM();
  for (size_t i = 0; i < k->table.size; ++i)
    (void)pestle_vec_push(&out->table, k->table.data[i]);
  for (size_t i = 0; i < k->word.size; ++i)
    (void)pestle_vec_push(&out->word, k->word.data[i]);
  for (size_t i = 0; i < k->buffer.size; ++i)
    (void)pestle_vec_push(&out->buffer, k->buffer.data[i]);
  // Offsets stay what they are.
  pestle_strbuf_clear(&out->strings);
  pestle_strbuf_append_bytes(&out->strings, k->strings.data, k->strings.size);
  out->name = k->name;
  out->note = k->note;
  return out->strings.failed ? PESTLE_OOM() : NULL;
}

// Element |slot| of |buffer|, in as many lanes as |like| has.
static uint32_t load_scalar(pestle_kir_builder_t* out, uint32_t buffer,
                            uint32_t slot, const pestle_kir_inst_t* like) {
  uint32_t at = pestle_kir_index(out, slot);
  uint32_t one =
      pestle_kir_load(out, buffer, 1, at, PESTLE_KIR_NONE, sizeof(float));
  return like->lanes > 1 ? pestle_kir_splat(out, one, like->lanes) : one;
}

static pestle_status_t copy_code(const pestle_kir_builder_t* k,
                                 const uint32_t* slot, uint32_t buffer,
                                 uint32_t* moved, pestle_kir_builder_t* out) {
  for (uint32_t i = 0; i < k->inst.size; ++i) {
    pestle_kir_inst_t inst = k->inst.data[i];
    if (slot[i] != PESTLE_KIR_NONE) {
      moved[i] = load_scalar(out, buffer, slot[i], &inst);
      continue;
    }
    const char* letters = pestle_kir_info(inst.op).operands;
    for (int a = 0; letters[a]; ++a) {
      if (pestle_kir_is_value(letters[a]) && inst.arg[a] < k->inst.size)
        inst.arg[a] = moved[inst.arg[a]];
    }
    moved[i] = pestle_kir_put(out, inst);
  }
  return NULL;
}

pestle_status_t pestle_kir_lift_scalars(pestle_allocator_t allocator,
                                        const pestle_kir_builder_t* k,
                                        const uint32_t* slot, uint32_t count,
                                        pestle_kir_builder_t* out_builder) {
  size_t size = k->inst.size * sizeof(uint32_t);
  uint32_t* moved = pestle_alloc(allocator, size);
  if (!moved) return PESTLE_OOM();
  pestle_kir_init(allocator, "", "", out_builder);
  pestle_status_t status = copy_rest(k, out_builder);
  if (!status) {
    uint32_t buffer =
        pestle_kir_add_buffer(out_builder, "scalars", PESTLE_KIR_GLOBAL,
                              PESTLE_F32, 1, count, PESTLE_KIR_READONLY);
    status = copy_code(k, slot, buffer, moved, out_builder);
  }
  if (!status) status = pestle_kir_finish(out_builder);
  if (status) pestle_kir_deinit(out_builder);
  pestle_dealloc(allocator, moved, size);
  return status;
}
