// SPDX-License-Identifier: Apache-2.0
#include "transform/scan_build.h"

#include "base/mem.h"

void pestle_scan_build_init(pestle_allocator_t allocator,
                            pestle_builder_t builder, const pestle_scan_t* like,
                            bool reverse, pestle_scan_build_t* b) {
  *b = (pestle_scan_build_t){.builder = builder};
  pestle_values_t* lists[] = {&b->init, &b->xs, &b->constants, &b->next,
                              &b->ys};
  for (size_t i = 0; i < 5; ++i)
    pestle_vec_init(lists[i], allocator);
  pestle_copier_init(allocator, builder, &b->copier);
  b->spec.length = like->length;
  b->spec.unroll = like->unroll;
  b->spec.reverse = reverse;
}

void pestle_scan_build_deinit(pestle_scan_build_t* b) {
  if (b->is_begun) pestle_region_discard(b->body.region);
  pestle_values_t* lists[] = {&b->init, &b->xs, &b->constants, &b->next,
                              &b->ys};
  for (size_t i = 0; i < 5; ++i)
    pestle_vec_deinit(lists[i]);
  pestle_copier_deinit(&b->copier);
  pestle_status_release(b->status);
}

void pestle_scan_push(pestle_scan_build_t* b, pestle_values_t* list,
                      pv_t* value) {
  if (b->status) return;
  if (!value || !pestle_vec_push(list, value)) b->status = PESTLE_OOM();
}

void pestle_scan_build_begin(pestle_scan_build_t* b) {
  b->spec.init = b->init.data;
  b->spec.carry_count = b->init.size;
  b->spec.xs = b->xs.data;
  b->spec.xs_count = b->xs.size;
  b->spec.constants = b->constants.data;
  b->spec.constant_count = b->constants.size;
  if (b->status) return;
  b->status = pestle_scan_begin(&b->builder, &b->spec, &b->body);
  b->is_begun = !b->status;
  if (b->is_begun) b->copier.builder = b->body.builder;
}

void pestle_scan_build_map(pestle_scan_build_t* b, const pv_t* from, pv_t* to) {
  if (!b->status) b->status = pestle_copier_set(&b->copier, from, to);
}

pv_t* pestle_scan_build_get(pestle_scan_build_t* b, pv_t* from) {
  pv_t* value = NULL;
  if (!b->status) b->status = pestle_region_map(&b->copier, from, &value);
  return b->status ? NULL : value;
}

static pestle_status_t copy(pestle_scan_build_t* b, const pestle_scan_t* scan) {
  pestle_node_t* end;
  PESTLE_TRY(pestle_copier_block(&b->copier, scan->body));
  return pestle_copier_node(&b->copier, scan->body->last, &end);
}

void pestle_scan_build_copy(pestle_scan_build_t* b, const pestle_scan_t* scan) {
  if (!b->status) b->status = copy(b, scan);
}

void pestle_scan_build_returned(pestle_scan_build_t* b,
                                const pestle_scan_t* scan, pv_t** out_next,
                                pv_t** out_y) {
  if (b->status) return;
  pestle_node_t* end = b->body.region->block->last;
  for (size_t i = 0; i < scan->carry_count; ++i)
    out_next[i] = pestle_node_operand(end, i);
  for (size_t i = 0; i < scan->ys_count; ++i)
    out_y[i] = pestle_node_operand(end, scan->carry_count + i);
  pestle_node_erase(end);
}

pestle_node_t* pestle_scan_build_end(pestle_scan_build_t* b) {
  pestle_node_t* node = NULL;
  if (!b->is_begun) return NULL;
  b->is_begun = false;
  b->status = pestle_scan_end(&b->builder, &b->spec, &b->body, b->status,
                              b->next.data, b->ys.data, b->ys.size, &node);
  return b->status ? NULL : node;
}

pestle_status_t pestle_scan_build_close(pestle_scan_build_t* b) {
  pestle_status_t status = b->status;
  b->status = NULL;
  pestle_scan_build_deinit(b);
  return status;
}
