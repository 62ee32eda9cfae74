// SPDX-License-Identifier: Apache-2.0
// Collectives as transports see them: what is done, on which bytes, by whom. The ops of
// the graph that they come from are in ops.def, from ALL_REDUCE on.
#ifndef PESTLE_COLLECTIVE_H_
#define PESTLE_COLLECTIVE_H_

#include <stddef.h>
#include <stdint.h>

#include "pestle/export.h"
#include "pestle/status.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

// |count| is in elements. A member's place is that in the list of ranks.
typedef enum pestle_collective_kind_e {
  // receive: the members' |count| elements combined in the order of their places
  PESTLE_COLLECTIVE_ALL_REDUCE = 0,
  // receive: the members' |count| elements, one behind the other
  PESTLE_COLLECTIVE_ALL_GATHER = 1,
  // send has |count| elements for each member, receive the combination of those for
  // this one
  PESTLE_COLLECTIVE_REDUCE_SCATTER = 2,
  // send and receive have |count| elements for each member
  PESTLE_COLLECTIVE_ALL_TO_ALL = 3,
  // receive: the |count| elements of |source|, 0 where that is -1
  PESTLE_COLLECTIVE_PERMUTE = 4,
  // receive: the |count| elements of the first member, 0 for who is none
  PESTLE_COLLECTIVE_BROADCAST = 5,
} pestle_collective_kind_t;

// Floats narrower than f32 are combined in f32 and rounded once. Of i1 a sum is OR
// and a product AND.
typedef enum pestle_reduction_e {
  PESTLE_REDUCTION_SUM = 0,
  PESTLE_REDUCTION_PRODUCT = 1,
  PESTLE_REDUCTION_MINIMUM = 2,  // NaN where one is
  PESTLE_REDUCTION_MAXIMUM = 3,
  PESTLE_REDUCTION_AND = 4,
  PESTLE_REDUCTION_OR = 5,
} pestle_reduction_t;

// One collective of one rank. |send| and |receive| do not overlap.
typedef struct pestle_collective_t {
  size_t struct_size;
  int32_t kind;       // pestle_collective_kind_t
  int32_t reduction;  // pestle_reduction_t, of those that combine
  int32_t dtype;      // pestle_dtype_t
  // The members, in order; empty for a rank that takes no part.
  uint32_t rank_count;
  const int32_t* ranks;
  int32_t source,
      target;  // of PERMUTE: whose elements come, who gets these; or -1
  const void* send;
  void* receive;
  uint64_t count;
  uint64_t sequence;  // its number among this rank's, from 1 on
  uint64_t hash;      // of what all members must have alike
  const char* name;   // for messages: "all_reduce of step 12, layer5/psum"
} pestle_collective_t;

PESTLE_EXTERN_C_END

#endif  // PESTLE_COLLECTIVE_H_
