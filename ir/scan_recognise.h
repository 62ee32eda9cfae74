// SPDX-License-Identifier: Apache-2.0
// What is known of a while that may become a scan (scan_recognise.c), and its counter
// (scan_place.c).
#ifndef PESTLE_IR_SCAN_RECOGNISE_H_
#define PESTLE_IR_SCAN_RECOGNISE_H_

#include "base/map.h"
#include "base/vec.h"
#include "ir/scan.h"

typedef enum pestle_scan_role_e {
  PESTLE_SCAN_CARRY,
  PESTLE_SCAN_COUNTER,
  PESTLE_SCAN_SAME,  // each turn has it from around the loop
  PESTLE_SCAN_STACK,
} pestle_scan_role_t;

typedef struct pestle_scan_carried_t {
  pestle_scan_role_t role;
  pestle_node_t* update;  // of a STACK
} pestle_scan_carried_t;

// A row read in each turn.
typedef struct pestle_scan_read_t {
  const pestle_node_t* node;
  size_t x;  // which of the scan's arrays
} pestle_scan_read_t;

typedef struct pestle_recognise_t {
  pestle_node_t* loop;
  pestle_block_t *cond, *body;
  pestle_arena_t arena;
  pestle_scan_carried_t* carried;
  uint32_t counter;
  int64_t start, step, turns;
  int direction;  // of the rows: 1, -1, or 0 for none seen
  PESTLE_VEC(pestle_scan_read_t) reads;
  PESTLE_VEC(pestle_value_t*) xs;
  PESTLE_VEC(pestle_value_t*) outside;  // what is read from around the loop
  pestle_map_t live;                    // nodes of the body that are needed
  bool counts;                          // something needs the counter
} pestle_recognise_t;

// What |value| of the condition or the body is, if each turn has the same from around.
pestle_value_t* pestle_scan_unchanging(const pestle_recognise_t* r,
                                       pestle_value_t* value);
// Whether the condition compares a counter with a number, and it is known how often that
// holds. Sets the counter's role.
bool pestle_scan_find_counter(pestle_recognise_t* r);
// Whether the operands of |n| from |first| on say the row of |whole| that a turn is about,
// in the direction of all rows.
bool pestle_scan_is_at_turn(pestle_recognise_t* r, const pestle_node_t* n,
                            uint32_t first, const pestle_type_t* whole);

#endif  // PESTLE_IR_SCAN_RECOGNISE_H_
