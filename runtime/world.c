// SPDX-License-Identifier: Apache-2.0
#include "runtime/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "base/str.h"
#include "pestle/version.h"
#include "runtime/context.h"
#include "runtime/device_comm.h"
#include "runtime/host_transport.h"
#include "runtime/job.h"
#include "runtime/process_transport.h"
#include "runtime/progress.h"
#include "runtime/rendezvous.h"

enum {
  MOST_RANKS = 1 << 16,
  USUAL_DEADLINE_MS = 60000,
  USUAL_CREATE_MS = 300000,
};

// --- Life ---

void pestle_world_retain(pestle_world_t* world) {
  if (world) pestle_refcount_retain(&world->refcount);
}

void pestle_world_release(pestle_world_t* world) {
  if (!world || !pestle_refcount_release(&world->refcount)) return;
  pestle_context_t* context = world->context;
  pestle_progress_destroy(world->progress);
  pestle_device_comms_destroy(world);
  pestle_carrier_destroy(world->carrier);
  if (world->comm) world->api->destroy(world->transport, world->comm);
  pestle_store_close(world->store);
  pestle_vec_deinit(&world->plans);
  pestle_dealloc(context->core.allocator, world, sizeof(*world));
  pestle_context_release(context);
}

static bool is_off(const char* name) {
  const char* text = pestle_platform_env(name);
  return text && !strcmp(text, "0");
}

// Who carries the bytes: NULL is the choice of each device, "host" the ranks' own
// transport, "device" that of the device's backend.
static const char* read_transport(const pestle_world_options_t* options,
                                  pestle_world_t* world) {
  const char* name = options->transport;
  const char* ordered = pestle_platform_env("PESTLE_WORLD_ORDERED");
  const char* checks = pestle_platform_env("PESTLE_WORLD_CHECK");
  if (!name) name = pestle_platform_env("PESTLE_WORLD_TRANSPORT");
  if (name && (!*name || !strcmp(name, "nccl"))) name = NULL;
  world->ordered = (options->flags & PESTLE_WORLD_ORDERED) ||
                   (ordered && strcmp(ordered, "0") != 0);
  world->by_host = name != NULL;
  world->checks = checks && strcmp(checks, "0") != 0;
  world->overlaps = !is_off("PESTLE_WORLD_OVERLAP");
  world->records = !is_off("PESTLE_WORLD_RECORDINGS");
  return name;
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
  pestle_vec_init(&world->plans, context->core.allocator);
  world->api = &pestle_host_collective;
  world->transport = transport;
  world->rank = options->rank;
  world->size = options->size;
  world->deadline_ns = options->deadline_ms * 1000000;
  return world->api->create(transport, 0, options, &world->comm);
}

static pestle_status_t make_ranks(pestle_context_t* context, int32_t size,
                                  const pestle_world_options_t* user,
                                  pestle_world_t** out) {
  uint8_t id[128];
  pestle_host_transport_t* transport;
  pestle_comm_options_t options = {.struct_size = sizeof(options),
                                   .id = id,
                                   .id_size = sizeof(id),
                                   .size = size,
                                   .deadline_ms = user->deadline_ms};
  PESTLE_TRY(pestle_host_transport_create(context, &transport));
  pestle_status_t status =
      pestle_host_collective.id(transport, id, &options.id_size);
  for (int32_t i = 0; i < size && !status; ++i) {
    options.rank = i;
    status = make_rank(context, transport, &options, &out[i]);
    if (status) break;
    (void)read_transport(user, out[i]);
    out[i]->create_deadline_ns = user->create_deadline_ms * 1000000;
  }
  for (int32_t i = 0; i < size && status; ++i) {
    pestle_world_release(out[i]);
    out[i] = NULL;
  }
  pestle_host_transport_release(transport);  // the ranks hold it
  return status;
}

static pestle_status_t check_deadline(const char* name, int64_t* ms,
                                      int64_t usual) {
  if (*ms < 0 || *ms > INT64_MAX / 2000000) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a %s of %" PRId64 " ms; expected 0 (%" PRId64
                        ") or more",
                        name, *ms, usual);
  }
  if (!*ms) *ms = usual;
  return NULL;
}

// What the caller leaves to the environment.
static pestle_status_t read_milliseconds(const char* name, int64_t* ms) {
  const char* text = pestle_platform_env(name);
  if (*ms || !text) return NULL;
  if (pestle_str_parse_i64(pestle_str(text), ms) && *ms > 0) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "environment variable %s is '%s'; expected milliseconds, "
                      "at least 1",
                      name, text);
}

static pestle_status_t read_options(const pestle_world_options_t* user,
                                    pestle_world_options_t* out) {
  memset(out, 0, sizeof(*out));
  if (user && user->struct_size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_world_options_t.struct_size is not set");
  }
  if (user) {
    memcpy(out, user,
           user->struct_size < sizeof(*out) ? user->struct_size : sizeof(*out));
  }
  PESTLE_TRY(read_milliseconds("PESTLE_WORLD_DEADLINE_MS", &out->deadline_ms));
  PESTLE_TRY(
      read_milliseconds("PESTLE_WORLD_CREATE_MS", &out->create_deadline_ms));
  PESTLE_TRY(check_deadline("deadline", &out->deadline_ms, USUAL_DEADLINE_MS));
  return check_deadline("create_deadline", &out->create_deadline_ms,
                        USUAL_CREATE_MS);
}

static pestle_status_t check_size(int32_t size) {
  if (size >= 1 && size <= MOST_RANKS) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "a world of %d ranks; expected 1 to %d",
                      (int)size, MOST_RANKS);
}

pestle_status_t pestle_world_create_local(pestle_context_t* context,
                                          int32_t size,
                                          const pestle_world_options_t* user,
                                          pestle_world_t** out_ranks) {
  pestle_world_options_t options;
  PESTLE_REQUIRE(context && out_ranks, "a context and a place for the ranks");
  PESTLE_TRY(read_options(user, &options));
  PESTLE_TRY(check_size(size));
  memset(out_ranks, 0, (size_t)size * sizeof(*out_ranks));
  return make_ranks(context, size, &options, out_ranks);
}

// --- Processes ---

// The host that rank 0 listens on where others find it by a store.
static pestle_status_t find_host(const pestle_world_options_t* options,
                                 pestle_job_t* job) {
  const char* address = options->address;
  const char* from = "pestle_world_options_t.address";
  if (!address) {
    address = pestle_platform_env("PESTLE_WORLD");
    from = "PESTLE_WORLD";
  }
  if (address) return pestle_job_read_address(address, from, job);
  (void)snprintf(job->host, sizeof(job->host), "127.0.0.1");
  return NULL;
}

static pestle_status_t find_job(const pestle_world_options_t* options,
                                pestle_job_t* job) {
  if (!options->size && options->store) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_world_options_t has a store and no size");
  }
  if (!options->size) {
    if (options->address) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "pestle_world_options_t has an address and no size");
    }
    return pestle_job_read(job);
  }
  PESTLE_TRY(check_size(options->size));
  if (options->rank < 0 || options->rank >= options->size) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "rank %d of a world of %d ranks",
                        (int)options->rank, (int)options->size);
  }
  if (options->store) {
    PESTLE_TRY(find_host(options, job));
  } else if (options->address) {
    PESTLE_TRY(pestle_job_read_address(options->address,
                                       "pestle_world_options_t.address", job));
  } else {
    PESTLE_TRY(pestle_job_read(job));
  }
  job->rank = options->rank;
  job->size = options->size;
  return NULL;
}

static bool may_share(const pestle_world_options_t* options) {
  const char* text = pestle_platform_env("PESTLE_WORLD_SHM");
  return !(options->flags & PESTLE_WORLD_NO_SHARED_MEMORY) &&
         !(text && !strcmp(text, "0"));
}

static pestle_status_t use_carrier(pestle_world_t* world,
                                   const pestle_world_options_t* options) {
  const char* name = read_transport(options, world);
  if (!name || !strcmp(name, "host")) return NULL;
  return pestle_carrier_create(world->context, name,
                               (pestle_process_comm_t*)world->comm,
                               options->deadline_ms, &world->carrier);
}

// All have come to rank 0's store: those that have not are named.
static pestle_status_t join(pestle_world_t* world,
                            const pestle_world_options_t* options,
                            const pestle_job_t* job) {
  pestle_store_options_t store = {.host = job->host,
                                  .port = job->port,
                                  .rank = job->rank,
                                  .size = job->size};
  pestle_rendezvous_t meeting;
  char build[96];
  int64_t create_ns = options->create_deadline_ms * 1000000;
  int64_t end = pestle_clock_ns() + create_ns;
  if (options->store) {
    PESTLE_TRY(pestle_rendezvous_begin(world->context, options, job, end,
                                       &meeting, &store));
  } else {
    PESTLE_TRY(
        pestle_job_secret(world->context, options->secret, job, store.secret));
  }
  store.create_ns = create_ns;
  PESTLE_TRY(
      pestle_store_open(world->context->core.allocator, &store, &world->store));
  (void)snprintf(build, sizeof(build), "Pestle %s (build %s)", pestle_version(),
                 pestle_build_id());
  PESTLE_TRY(pestle_store_meet(world->store, "world", build, "the world", end));
  world->transport = world->store;
  pestle_status_t status =
      pestle_process_comm_create(world->store, 0, may_share(options),
                                 options->deadline_ms, end, &world->comm);
  if (!status) status = use_carrier(world, options);
  return status ? pestle_store_fail(world->store, status) : NULL;
}

pestle_status_t pestle_world_create(pestle_context_t* context,
                                    const pestle_world_options_t* user,
                                    pestle_world_t** out_world) {
  pestle_world_options_t options;
  pestle_job_t job = {.size = 0};
  PESTLE_REQUIRE(context && out_world, "a context and a place for the world");
  *out_world = NULL;
  pestle_context_enter(context);
  PESTLE_TRY(read_options(user, &options));
  PESTLE_TRY(find_job(&options, &job));
  pestle_world_t* world =
      pestle_alloc_zero(context->core.allocator, sizeof(*world));
  if (!world) return PESTLE_OOM();
  pestle_refcount_init(&world->refcount);
  pestle_context_retain(context);
  world->context = context;
  pestle_vec_init(&world->plans, context->core.allocator);
  world->api = &pestle_process_collective;
  world->rank = job.rank;
  world->size = job.size;
  world->deadline_ns = options.deadline_ms * 1000000;
  world->create_deadline_ns = options.create_deadline_ms * 1000000;
  pestle_status_t status = join(world, &options, &job);
  if (status) {
    pestle_world_release(world);
    return status;
  }
  *out_world = world;
  return NULL;
}

// --- Both ---

int32_t pestle_world_rank(const pestle_world_t* world) {
  return world ? world->rank : 0;
}

int32_t pestle_world_size(const pestle_world_t* world) {
  return world ? world->size : 0;
}

uint64_t pestle_world_bytes(const pestle_world_t* world) {
  if (!world) return 0;
  return world->store ? pestle_process_comm_bytes(world->comm)
                      : pestle_host_comm_bytes(world->comm);
}

pestle_status_t pestle_world_status(const pestle_world_t* world) {
  return world ? world->api->poll(world->transport, world->comm) : NULL;
}

void pestle_world_abort(pestle_world_t* world, pestle_status_t reason) {
  if (!world || !reason) return;
  world->api->abort(world->transport, world->comm,
                    pestle_status_message(reason));
}

void pestle_world_tell(pestle_world_t* world, uint64_t begun, uint64_t done) {
  if (world->store) {
    pestle_store_at(world->store, begun, done);
  } else {
    pestle_host_tell(world->comm, begun, done);
  }
}

pestle_status_t pestle_world_enqueue(pestle_world_t* world,
                                     const pestle_collective_t* ops,
                                     size_t count, bool ordered) {
  if (world->carrier) {
    return pestle_carrier_enqueue(world->carrier, ops, count,
                                  ordered || world->ordered);
  }
  return world->api->enqueue(world->transport, world->comm, NULL, ops, count);
}

// Which plans are known is the same for all ranks while they run the same ones.
static pestle_status_t compare_plan(pestle_world_t* world, const char* plan,
                                    uint64_t hash) {
  char key[64], text[160], what[160];
  for (size_t i = 0; i < world->plans.size; ++i) {
    if (world->plans.data[i] == hash) return NULL;
  }
  (void)snprintf(key, sizeof(key), "plan/%zu", world->plans.size);
  (void)snprintf(text, sizeof(text), "plan '%.100s' (%016" PRIx64 ")", plan,
                 hash);
  (void)snprintf(what, sizeof(what), "the first run of plan '%.100s'", plan);
  PESTLE_TRY(pestle_store_meet(world->store, key, text, what,
                               pestle_clock_ns() + world->create_deadline_ns));
  return pestle_vec_push(&world->plans, hash) ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_world_check(pestle_world_t* world, int32_t size,
                                   const char* plan, uint64_t hash) {
  if (size > 1 && !world) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "plan '%s' is for %d processes, each with a rank: set "
                        "pestle_run_options_t.world (pestle/world.h)",
                        plan, (int)size);
  }
  if (size > 1 && world->size != size) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "plan '%s' is for %d processes, and the world that it "
                        "is run in has %d ranks",
                        plan, (int)size, (int)world->size);
  }
  return size > 1 && world->store ? compare_plan(world, plan, hash) : NULL;
}
