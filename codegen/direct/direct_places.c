// SPDX-License-Identifier: Apache-2.0
// places: where flags are set. A vector of flags of which none is costs a test; of
// others each writes its place, and counts if it is set:
//
//   for each vector:
//     if any of it is set:
//       for i in it:  places[count] = i;  count += flags[i]
#include "codegen/direct/direct.h"

enum { LANES = 64 };  // flags are bytes

bool pestle_direct_places_is_idle(const pestle_node_t* node) {
  (void)node;
  return false;
}

static pk_t op(pestle_direct_t* d, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(d, o, a, b);
}

// Flags [v, last), of which some are set.
static void write_places(pestle_direct_t* d, uint32_t flags, uint32_t places,
                         uint32_t found, pk_t v, pk_t last, int64_t n) {
  pk_t i = pestle_kir_for(d->k, "i", v, last, 1, PESTLE_KIR_SERIAL);
  pk_t count = pestle_direct_get(d, found);
  pestle_direct_store(d, places, pestle_direct_clamp(d, count, 0, n - 1),
                      pestle_kir_cast(d->k, i, PESTLE_I32));
  pk_t set =
      pestle_kir_cast(d->k, pestle_direct_load(d, flags, i), PESTLE_INDEX);
  pestle_direct_set(d, found, op(d, PESTLE_OP_ADD, count, set));
  pestle_kir_end(d->k);
}

pestle_status_t pestle_direct_places(pestle_direct_t* d) {
  int64_t n = pestle_type_count(pestle_node_operand(d->node, 0)->type);
  unsigned bytes = d->caps->vector_bytes;
  unsigned lanes = bytes < 4 ? 1 : bytes > LANES ? LANES : bytes;
  uint32_t flags = pestle_direct_operand(d, 0);
  uint32_t places = pestle_direct_result(d, 0);
  uint32_t total = pestle_direct_result(d, 1);
  pk_t zero = pestle_direct_index(d, 0), end = pestle_direct_index(d, n);
  (void)pestle_kir_for(d->k, "g", zero, pestle_direct_index(d, 1), 1,
                       PESTLE_KIR_GROUP_X);
  uint32_t found = pestle_direct_variable(d, "found", PESTLE_INDEX, 1);
  pestle_direct_set(d, found, zero);
  if (n) {
    pk_t v =
        pestle_kir_for(d->k, "v", zero, end, (int32_t)lanes, PESTLE_KIR_SERIAL);
    pk_t mask = pestle_kir_mask(d->k, v, end, lanes);
    pk_t x = pestle_kir_load(d->k, flags, lanes, v, mask, 0);
    pestle_kir_if(d->k, pestle_kir_reduce(d->k, x, PESTLE_OP_OR));
    pk_t last = op(d, PESTLE_OP_ADD, v, pestle_direct_index(d, lanes));
    write_places(d, flags, places, found, v,
                 op(d, PESTLE_OP_MINIMUM, last, end), n);
    pestle_kir_end(d->k);
    pestle_kir_end(d->k);
  }
  pestle_direct_store(
      d, total, zero,
      pestle_kir_cast(d->k, pestle_direct_get(d, found), PESTLE_I64));
  pestle_kir_end(d->k);
  d->steps = (uint64_t)n;
  return NULL;
}
