// SPDX-License-Identifier: Apache-2.0
#include "runtime/carrier.h"

#include <string.h>

#include "base/mem.h"
#include "runtime/combine.h"
#include "runtime/context.h"

// An all_reduce of fewer bytes has the order of the members always.
enum { OWN_ORDER_FROM = 1 << 18 };

// --- Life ---

static void abort_by_store(void* user, const char* reason) {
  const pestle_carrier_t* c = user;
  c->api->abort(c->self, c->comm, reason);
}

static pestle_status_t share_id(pestle_carrier_t* c, uint8_t id[128],
                                size_t* size, int64_t deadline_ns) {
  static const char key[] = "carrier/id";
  pestle_store_t* store = c->control->store;
  *size = 128;
  if (c->control->rank)
    return pestle_store_get(store, key, deadline_ns, id, size);
  PESTLE_TRY(c->api->id(c->self, id, size));
  return pestle_store_put(store, key, id, *size);
}

static pestle_status_t join(pestle_carrier_t* c, int64_t deadline_ms) {
  uint8_t id[128];
  pestle_comm_options_t options = {.struct_size = sizeof(options),
                                   .id = id,
                                   .rank = c->control->rank,
                                   .size = c->control->size,
                                   .deadline_ms = deadline_ms};
  PESTLE_TRY(share_id(c, id, &options.id_size,
                      pestle_clock_ns() + deadline_ms * 1000000));
  PESTLE_TRY(c->api->create(c->self, 0, &options, &c->comm));
  pestle_store_on_failure(c->control->store, abort_by_store, c);
  return NULL;
}

static pestle_status_t find(pestle_context_t* context, const char* name,
                            pestle_carrier_t* c) {
  PESTLE_TRY(pestle_registry_load_for(context, name, strlen(name)));
  const pestle_backend_t* backend =
      pestle_registry_backend(&context->registry, name);
  if (!backend || !PESTLE_HAS(backend, collective)) {
    return PESTLE_ERROR(NOT_FOUND,
                        "no backend '%s' carries the collectives of a world; "
                        "'pestle plugins list --why' says why",
                        name);
  }
  c->api = backend->collective;
  c->self = backend->self;
  return NULL;
}

pestle_status_t pestle_carrier_create(pestle_context_t* context,
                                      const char* name,
                                      pestle_process_comm_t* control,
                                      int64_t deadline_ms,
                                      pestle_carrier_t** out) {
  const char* checks = pestle_platform_env("PESTLE_WORLD_CHECK");
  pestle_carrier_t* c = pestle_alloc_zero(control->allocator, sizeof(*c));
  *out = NULL;
  if (!c) return PESTLE_OOM();
  c->control = control;
  c->checks = checks && strcmp(checks, "0") != 0;
  pestle_status_t status = find(context, name, c);
  if (!status) status = join(c, deadline_ms);
  if (status) {
    pestle_carrier_destroy(c);
    return status;
  }
  *out = c;
  return NULL;
}

void pestle_carrier_destroy(pestle_carrier_t* c) {
  if (!c) return;
  pestle_store_on_failure(c->control->store, NULL, NULL);
  if (c->comm) c->api->destroy(c->self, c->comm);
  pestle_dealloc(c->control->allocator, c, sizeof(*c));
}

// --- Combining here ---

typedef struct parts_t {
  uint64_t each;  // elements of a member's part
  size_t size;    // bytes of an element
  char *sent, *got, *own;
  size_t bytes;  // of the block that they lie in
  char* block;
} parts_t;

// Room for a part of each member twice, and one more.
static pestle_status_t make_parts(const pestle_carrier_t* c,
                                  const pestle_collective_t* op, uint64_t each,
                                  parts_t* p) {
  p->each = each;
  p->size = pestle_dtype_size((pestle_dtype_t)op->dtype);
  size_t part = (size_t)each * p->size, all = part * op->rank_count;
  p->bytes = 2 * all + part;
  p->block = pestle_alloc_aligned(c->control->allocator, p->bytes, 64);
  if (!p->block) return PESTLE_OOM();
  p->sent = p->block;
  p->got = p->block + all;
  p->own = p->block + 2 * all;
  return NULL;
}

static pestle_status_t combine(const pestle_carrier_t* c,
                               const pestle_collective_t* op, const parts_t* p,
                               char* out) {
  size_t bytes = op->rank_count * sizeof(void*);
  const void** in = pestle_alloc(c->control->allocator, bytes);
  if (!in) return PESTLE_OOM();
  for (uint32_t k = 0; k < op->rank_count; ++k)
    in[k] = p->got + (size_t)p->each * p->size * k;
  bool known = pestle_combine((pestle_reduction_t)op->reduction,
                              (pestle_dtype_t)op->dtype, out, in,
                              op->rank_count, (size_t)p->each);
  pestle_dealloc(c->control->allocator, in, bytes);
  if (known) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED, "%s combines %s by reduction %d, which nobody can", op->name,
      pestle_dtype_info((pestle_dtype_t)op->dtype)->name, (int)op->reduction);
}

static pestle_status_t carry(const pestle_carrier_t* c,
                             const pestle_collective_t* op, int32_t kind,
                             const void* send, void* receive, uint64_t count) {
  pestle_collective_t one = *op;
  one.kind = kind;
  one.send = send;
  one.receive = receive;
  one.count = count;
  return c->api->enqueue(c->self, c->comm, NULL, &one, 1);
}

static pestle_status_t all_reduce(const pestle_carrier_t* c,
                                  const pestle_collective_t* op, parts_t* p) {
  size_t bytes = (size_t)op->count * p->size;
  size_t all = (size_t)p->each * p->size * op->rank_count;
  memcpy(p->sent, op->send, bytes);
  memset(p->sent + bytes, 0, all - bytes);  // to equal parts
  PESTLE_TRY(
      carry(c, op, PESTLE_COLLECTIVE_ALL_TO_ALL, p->sent, p->got, p->each));
  PESTLE_TRY(combine(c, op, p, p->own));
  PESTLE_TRY(
      carry(c, op, PESTLE_COLLECTIVE_ALL_GATHER, p->own, p->got, p->each));
  memcpy(op->receive, p->got, bytes);
  return NULL;
}

static pestle_status_t combine_here(const pestle_carrier_t* c,
                                    const pestle_collective_t* op) {
  bool all = op->kind == PESTLE_COLLECTIVE_ALL_REDUCE;
  parts_t p;
  if (!op->rank_count || !op->count) return NULL;
  PESTLE_TRY(make_parts(
      c, op,
      all ? (op->count + op->rank_count - 1) / op->rank_count : op->count, &p));
  pestle_status_t status =
      all ? all_reduce(c, op, &p)
          : carry(c, op, PESTLE_COLLECTIVE_ALL_TO_ALL, op->send, p.got, p.each);
  if (!all && !status) status = combine(c, op, &p, op->receive);
  pestle_free_aligned(c->control->allocator, p.block, p.bytes, 64);
  return status;
}

// --- One collective ---

static bool is_exact(const pestle_collective_t* op) {
  return !pestle_dtype_is((pestle_dtype_t)op->dtype, PESTLE_KIND_FLOAT);
}

static pestle_status_t do_one(const pestle_carrier_t* c,
                              const pestle_collective_t* op, bool ordered) {
  bool combines = op->kind == PESTLE_COLLECTIVE_ALL_REDUCE ||
                  op->kind == PESTLE_COLLECTIVE_REDUCE_SCATTER;
  uint64_t bytes = op->count * pestle_dtype_size((pestle_dtype_t)op->dtype);
  bool here = combines && !is_exact(op) && (ordered || bytes < OWN_ORDER_FROM);
  if (!here) {
    pestle_status_t status = c->api->enqueue(c->self, c->comm, NULL, op, 1);
    if (!combines || pestle_status_code(status) != PESTLE_STATUS_UNSUPPORTED)
      return status;
    pestle_status_release(status);  // alike at all ranks
  }
  return combine_here(c, op);
}

// Heads alone, by the ranks' own transport: what differs is found before the carrier
// mixes it.
static pestle_status_t check(const pestle_carrier_t* c,
                             const pestle_collective_t* op, uint32_t index) {
  pestle_collective_t heads = pestle_collective_heads(op);
  if (op->kind == PESTLE_COLLECTIVE_PERMUTE) return NULL;  // no members
  return pestle_process_work(c->control, &heads, index);
}

pestle_status_t pestle_carrier_enqueue(pestle_carrier_t* c,
                                       const pestle_collective_t* ops,
                                       size_t count, bool ordered) {
  pestle_store_t* store = c->control->store;
  pestle_status_t status = NULL;
  pestle_store_at(store, ops->sequence, ops->sequence - 1);
  if (pestle_store_has_failed(store))
    return pestle_process_ended(c->control, ops);
  for (size_t i = 0; i < count && !status; ++i) {
    if (c->checks) status = check(c, &ops[i], (uint32_t)i);
    if (!status) status = do_one(c, &ops[i], ordered);
  }
  if (!status) {
    pestle_store_at(store, ops->sequence, ops->sequence);
    return NULL;
  }
  bool late = pestle_status_code(status) == PESTLE_STATUS_DEADLINE_EXCEEDED;
  if (late && !pestle_store_has_failed(store)) {
    pestle_status_release(status);
    return pestle_process_late(c->control, ops, -1);
  }
  pestle_status_release(pestle_store_fail(store, status));
  return pestle_process_ended(c->control, ops);
}
