// SPDX-License-Identifier: Apache-2.0
// What a collective costs: the bytes that go over wires, and how long they take. The
// pass `partition` chooses by the one, the simulator of worlds by both.
#ifndef PESTLE_BASE_WIRE_H_
#define PESTLE_BASE_WIRE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/collective.h"

// How a collective is carried out.
typedef enum pestle_wire_way_e {
  // Each member hands on to the next one: as many rounds as there are others.
  PESTLE_WIRE_RING = 0,
  // Up a tree of members and down again.
  PESTLE_WIRE_TREE = 1,
  // Among the members near each other first, then between these.
  PESTLE_WIRE_LEVELS = 2,
  // Each member hands to all others at once. An all_reduce takes one round, in which
  // everyone gets all, or two, where each combines a part.
  PESTLE_WIRE_PEERS = 3,
} pestle_wire_way_t;

// A kind of wire. Rates are of one member, in one direction.
typedef struct pestle_wire_t {
  double alpha;  // seconds of a round without bytes
  double beta;   // bytes a second
  double fold;   // bytes a second that a member combines; 0: at no cost
  bool peers;  // PESTLE_WIRE_PEERS is what it does; else the best of the others
} pestle_wire_t;

// Bytes that a member of |members| sends, as it also gets them, in a collective whose
// operand has |bytes| on each member. With one member none.
double pestle_wire_bytes(pestle_collective_kind_t kind, int64_t members,
                         double bytes);

// By PESTLE_WIRE_PEERS, exactly: what the member at |place| sends of |count| elements
// of |size| bytes, its own operand, to the member at |other|.
uint64_t pestle_wire_peer_bytes(pestle_collective_kind_t kind, int64_t members,
                                int64_t place, int64_t other, uint64_t count,
                                size_t size);
// The elements that the member at |place| combines for all begin here.
uint64_t pestle_wire_part(uint64_t count, int64_t members, int64_t place);
// Whether an all_reduce of so many bytes is one round of PESTLE_WIRE_PEERS.
bool pestle_wire_is_one_round(int64_t members, uint64_t bytes);

// Seconds of a collective whose |members| are |counts[0]| on each wire of the first
// kind, |counts[1]| such groups on each of the second and so on: their product is
// |members|. With |level_count| 1 all are on one wire. |bytes| as above; |out_way| may
// be NULL.
double pestle_wire_seconds(pestle_collective_kind_t kind, double bytes,
                           const pestle_wire_t* levels, const int64_t* counts,
                           size_t level_count, pestle_wire_way_t* out_way);

#endif  // PESTLE_BASE_WIRE_H_
