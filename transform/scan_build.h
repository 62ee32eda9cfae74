// SPDX-License-Identifier: Apache-2.0
// A scan that is made from parts of another one: its operands, a copier into its body,
// what it returns. The first failure is kept; steps after it do nothing.
#ifndef PESTLE_TRANSFORM_SCAN_BUILD_H_
#define PESTLE_TRANSFORM_SCAN_BUILD_H_

#include "ir/scan.h"
#include "transform/region.h"

typedef struct pestle_scan_build_t {
  pestle_status_t status;
  pestle_builder_t builder;
  pestle_values_t init, xs, constants;  // operands
  pestle_values_t next, ys;             // what the body returns
  pestle_scan_spec_t spec;
  pestle_scan_body_t body;
  pestle_copier_t copier;
  bool is_begun;
} pestle_scan_build_t;

// To stand where |builder| is, with the length and direction of |like|.
void pestle_scan_build_init(pestle_allocator_t allocator,
                            pestle_builder_t builder, const pestle_scan_t* like,
                            bool reverse, pestle_scan_build_t* out_build);
void pestle_scan_build_deinit(pestle_scan_build_t* b);
// The same, handing the failure over.
PESTLE_NODISCARD pestle_status_t
pestle_scan_build_close(pestle_scan_build_t* b);
// Adds |value| to one of the lists.
void pestle_scan_push(pestle_scan_build_t* b, pestle_values_t* list,
                      pv_t* value);
// The operands are complete: the body begins.
void pestle_scan_build_begin(pestle_scan_build_t* b);
// From now on |to| takes the place of |from| in what is copied.
void pestle_scan_build_map(pestle_scan_build_t* b, const pv_t* from, pv_t* to);
// What takes the place of |from|.
pv_t* pestle_scan_build_get(pestle_scan_build_t* b, pv_t* from);
// Copies the body of |scan| with a return of its own, so that what it returns is known
// also when ops are replaced by others.
void pestle_scan_build_copy(pestle_scan_build_t* b, const pestle_scan_t* scan);
// Takes that return away: what it returned.
void pestle_scan_build_returned(pestle_scan_build_t* b,
                                const pestle_scan_t* scan, pv_t** out_next,
                                pv_t** out_y);
// Makes the scan; NULL after a failure.
pestle_node_t* pestle_scan_build_end(pestle_scan_build_t* b);

#endif  // PESTLE_TRANSFORM_SCAN_BUILD_H_
