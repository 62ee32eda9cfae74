// SPDX-License-Identifier: Apache-2.0
// When two ops compute the same, and a hash that goes with it. Types are
// compared as pointers: both nodes are of one module.
#ifndef PESTLE_IR_EQUAL_H_
#define PESTLE_IR_EQUAL_H_

#include "ir/graph.h"

// Whether |a| and |b| give equal results: the same op on the same values with
// equal attributes, result types and regions. The operands of a commutative op
// may be swapped. Whether one may stand for the other is for the caller to say:
// effects and places are not looked at.
bool pestle_node_equal(const pestle_node_t* a, const pestle_node_t* b);
// Equal for equal nodes. Operands count by address, so it holds for one run.
uint64_t pestle_node_hash(const pestle_node_t* node);

// Same name, kind and contents; floats by their bits.
bool pestle_attr_equal(const pestle_attr_t* a, const pestle_attr_t* b);
// Whether two regions without owner or of two ops do the same with the same
// arguments and captured values. False also for what takes long to compare
// (more than a few hundred ops) and where ops in them have effects.
bool pestle_region_equal(const pestle_region_t* a, const pestle_region_t* b);

#endif  // PESTLE_IR_EQUAL_H_
