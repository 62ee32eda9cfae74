// SPDX-License-Identifier: Apache-2.0
// Facts of a convolution that passes decide by and lowering keeps to.
#ifndef PESTLE_IR_CONV_H_
#define PESTLE_IR_CONV_H_

#include "ir/graph.h"

// Elements between neighbouring windows along the width, where lanes of the result
// go along it, of an input that does too: its copy is made of phases then, each of
// the elements that leave the same rest, so that neighbours read neighbours. 1: no
// phases.
int64_t pestle_conv_phases(const pestle_node_t* node);

#endif  // PESTLE_IR_CONV_H_
