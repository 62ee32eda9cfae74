// SPDX-License-Identifier: Apache-2.0
#include "runtime/world.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "runtime/context.h"
#include "runtime/host_transport.h"

enum { MOST_RANKS = 1 << 16, USUAL_DEADLINE_MS = 60000 };

// --- Life ---

void pestle_world_retain(pestle_world_t* world) {
  if (world) pestle_refcount_retain(&world->refcount);
}

void pestle_world_release(pestle_world_t* world) {
  if (!world || !pestle_refcount_release(&world->refcount)) return;
  pestle_context_t* context = world->context;
  if (world->comm) world->api->destroy(world->transport, world->comm);
  pestle_dealloc(context->core.allocator, world, sizeof(*world));
  pestle_context_release(context);
}

static pestle_status_t make_rank(pestle_context_t* context,
                                 pestle_host_transport_t* transport,
                                 const pestle_comm_options_t* options,
                                 pestle_world_t** out) {
  pestle_world_t* world =
      pestle_alloc_zero(context->core.allocator, sizeof(*world));
  *out = world;
  if (!world) return PESTLE_OOM();
  pestle_refcount_init(&world->refcount);
  pestle_context_retain(context);
  world->context = context;
  world->api = &pestle_host_collective;
  world->transport = transport;
  world->rank = options->rank;
  world->size = options->size;
  return world->api->create(transport, 0, options, &world->comm);
}

static pestle_status_t make_ranks(pestle_context_t* context, int32_t size,
                                  int64_t deadline_ms, pestle_world_t** out) {
  uint8_t id[128];
  pestle_host_transport_t* transport;
  pestle_comm_options_t options = {.struct_size = sizeof(options),
                                   .id = id,
                                   .id_size = sizeof(id),
                                   .size = size,
                                   .deadline_ms = deadline_ms};
  PESTLE_TRY(pestle_host_transport_create(context, &transport));
  pestle_status_t status =
      pestle_host_collective.id(transport, id, &options.id_size);
  for (int32_t i = 0; i < size && !status; ++i) {
    options.rank = i;
    status = make_rank(context, transport, &options, &out[i]);
  }
  for (int32_t i = 0; i < size && status; ++i) {
    pestle_world_release(out[i]);
    out[i] = NULL;
  }
  pestle_host_transport_release(transport);  // the ranks hold it
  return status;
}

pestle_status_t pestle_world_create_local(pestle_context_t* context,
                                          int32_t size,
                                          const pestle_world_options_t* user,
                                          pestle_world_t** out_ranks) {
  pestle_world_options_t options = {.struct_size = 0};
  PESTLE_REQUIRE(context && out_ranks, "a context and a place for the ranks");
  if (user && user->struct_size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_world_options_t.struct_size is not set");
  }
  if (user) {
    memcpy(&options, user,
           user->struct_size < sizeof(options) ? user->struct_size
                                               : sizeof(options));
  }
  if (size < 1 || size > MOST_RANKS) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a world of %d ranks; expected 1 to %d", (int)size,
                        MOST_RANKS);
  }
  if (options.deadline_ms < 0 || options.deadline_ms > INT64_MAX / 2000000) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a deadline of %" PRId64
                        " ms; expected 0 (60,000) or more",
                        options.deadline_ms);
  }
  if (!options.deadline_ms) options.deadline_ms = USUAL_DEADLINE_MS;
  memset(out_ranks, 0, (size_t)size * sizeof(*out_ranks));
  return make_ranks(context, size, options.deadline_ms, out_ranks);
}

int32_t pestle_world_rank(const pestle_world_t* world) {
  return world ? world->rank : 0;
}

int32_t pestle_world_size(const pestle_world_t* world) {
  return world ? world->size : 0;
}

uint64_t pestle_world_bytes(const pestle_world_t* world) {
  return world ? pestle_host_comm_bytes(world->comm) : 0;
}

pestle_status_t pestle_world_status(const pestle_world_t* world) {
  return world ? world->api->poll(world->transport, world->comm) : NULL;
}

void pestle_world_abort(pestle_world_t* world, pestle_status_t reason) {
  if (!world || !reason) return;
  world->api->abort(world->transport, world->comm,
                    pestle_status_message(reason));
}

pestle_status_t pestle_world_enqueue(pestle_world_t* world,
                                     const pestle_collective_t* ops,
                                     size_t count) {
  return world->api->enqueue(world->transport, world->comm, NULL, ops, count);
}

pestle_status_t pestle_world_check(const pestle_world_t* world, int32_t size,
                                   const char* plan) {
  if (size <= 1 || pestle_world_size(world) == size) return NULL;
  if (!world) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "plan '%s' is for %d processes, each with a rank: set "
                        "pestle_run_options_t.world (pestle/world.h)",
                        plan, (int)size);
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "plan '%s' is for %d processes, and the world that it is "
                      "run in has %d ranks",
                      plan, (int)size, (int)pestle_world_size(world));
}
