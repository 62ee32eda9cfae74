// SPDX-License-Identifier: Apache-2.0
// Lanes that pass tiles to each other, where an argument lies along another axis
// than the results.
#include <inttypes.h>

#include "codegen/sketch/sketch.h"
#include "codegen/template/shared_transpose/shared_transpose.h"

pestle_status_t pestle_shared_transpose_sketch(pestle_sketch_t* k,
                                               const pestle_offer_t* offer,
                                               bool* out_done) {
  pestle_shared_transpose_t x;
  if (k->nest->no_scratch ||
      k->caps->max_group_lanes <
          PESTLE_SHARED_TRANSPOSE_ALONG * PESTLE_SHARED_TRANSPOSE_ROWS ||
      !pestle_shared_transpose_find(k->nest, &x)) {
    return pestle_nest_status(k->nest);
  }
  const pestle_nest_tensor_t* t = &k->nest->tensors.data[x.read->i];
  if (x.side * pestle_shared_transpose_pitch(&x) *
          (int64_t)pestle_dtype_size(t->type.dtype) >
      (int64_t)k->caps->scratch_bytes) {
    return NULL;
  }
  pestle_sketch_note(
      k,
      "shared_transpose: '%s' lies along another axis than the results; "
      "tiles of %" PRId64 " x %" PRId64 " of it pass through shared memory",
      t->name, x.side, x.side);
  *out_done = true;
  return pestle_schedule_template(
      k->nest, &(pestle_nest_template_t){
                   .row = offer->row, .stage = k->anchor, .ints = {x.read->i}});
}
