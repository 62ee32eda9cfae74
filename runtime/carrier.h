// SPDX-License-Identifier: Apache-2.0
// A world whose bytes a backend carries (MPI). What the backend does not combine, or
// combines in an order of its own where the order is given, is exchanged by it and
// combined here: the same bits as by threads. The ranks still have their own
// transport: it tells who is alive and where.
#ifndef PESTLE_RUNTIME_CARRIER_H_
#define PESTLE_RUNTIME_CARRIER_H_

#include "pestle/context.h"
#include "runtime/process_transport.h"

typedef struct pestle_carrier_t {
  const pestle_collective_api_t* api;
  void* self;
  pestle_comm_t* comm;
  pestle_process_comm_t* control;
  bool checks;  // each collective is compared over the ranks first
} pestle_carrier_t;

// Joins the communicator of backend |name| that rank 0 has named. NOT_FOUND: there is
// no such backend, or it carries nothing.
PESTLE_NODISCARD pestle_status_t pestle_carrier_create(
    pestle_context_t* context, const char* name, pestle_process_comm_t* control,
    int64_t deadline_ms, pestle_carrier_t** out_carrier);
// NULL is allowed.
void pestle_carrier_destroy(pestle_carrier_t* carrier);

// Does |ops|. |ordered|: what is combined has the order of the members.
PESTLE_NODISCARD pestle_status_t pestle_carrier_enqueue(
    pestle_carrier_t* carrier, const pestle_collective_t* ops, size_t count,
    bool ordered);

#endif  // PESTLE_RUNTIME_CARRIER_H_
