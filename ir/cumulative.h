// SPDX-License-Identifier: Apache-2.0
// What the row CUMULATIVE combines by, whose names its attribute holds.
#ifndef PESTLE_IR_CUMULATIVE_H_
#define PESTLE_IR_CUMULATIVE_H_

#include "ir/graph.h"

// The row that |name| stands for, PESTLE_OP_LOGSUMEXP for what no scalar row is;
// PESTLE_OP_COUNT for another name.
pestle_op_t pestle_cumulative_op(const char* name);
// Its name, or NULL where the row is not one of those.
const char* pestle_cumulative_name(pestle_op_t op);
// All of them, for messages.
#define PESTLE_CUMULATIVE_NAMES \
  "ADD, MULTIPLY, MAXIMUM, MINIMUM, AND, OR, XOR or LOGSUMEXP"

#endif  // PESTLE_IR_CUMULATIVE_H_
