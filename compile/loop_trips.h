// SPDX-License-Identifier: Apache-2.0
// Loops of which it is known how often they run: the host counts their trips, so that
// nobody computes the condition and no run on a device waits for it.
#ifndef PESTLE_COMPILE_LOOP_TRIPS_H_
#define PESTLE_COMPILE_LOOP_TRIPS_H_

#include "ir/graph.h"

// How many trips |node| makes, a while after fusion; 0: it is another op, makes none, or
// that is not known.
uint32_t pestle_loop_trips(const pestle_node_t* node);

#endif  // PESTLE_COMPILE_LOOP_TRIPS_H_
