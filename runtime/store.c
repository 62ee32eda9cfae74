// SPDX-License-Identifier: Apache-2.0
// A thread reads what comes and wakes who waits for it.
#include "runtime/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status_copy.h"
#include "base/str.h"
#include "base/thread.h"
#include "runtime/store_server.h"

static const int64_t second_ns = 1000000000;
static const int64_t linger_ns = 10000000000;
static const int64_t greet_ns = 10000000000;
// Rank 0 may be the one that is stuck: the error must come soon all the same.
static const int64_t answer_ns = 600000000;

// One that waits for an answer. Its frame comes into |room|.
typedef struct request_t request_t;
struct request_t {
  request_t* next;
  uint32_t tag;
  bool is_done;
  int32_t code;
  char* room;
  size_t capacity, size;
  char text[256];  // of a failure
};

struct pestle_store_t {
  pestle_allocator_t allocator;
  pestle_store_server_t* server;  // rank 0's
  pestle_socket_t socket;
  int32_t rank, size;
  unsigned char secret[32];
  pestle_socket_t failed[2];  // written once it has failed
  pestle_socket_t stop[2];
  atomic_bool stops, has_failed;
  pestle_thread_t thread;
  bool has_thread;
  atomic_uint_fast64_t arrived, done;
  pestle_mutex_t sending;  // frames go out as a whole
  uint64_t told;           // the |arrived| that was told last
  pestle_mutex_t mutex;    // of what follows
  pestle_cond_t changed;
  request_t* requests;
  uint32_t tags;
  pestle_status_t failure;
  bool is_closed;          // rank 0 has gone in peace
  pestle_mutex_t calling;  // of what follows, and while it is called
  void (*on_failure)(void* user, const char* why);
  void* on_failure_user;
};

// --- Failure ---

// The first one counts. Takes |why| over.
static void note_failure(pestle_store_t* s, pestle_status_t why) {
  pestle_mutex_lock(&s->mutex);
  bool first = !s->failure;
  if (first) s->failure = why;
  atomic_store(&s->has_failed, true);
  pestle_cond_broadcast(&s->changed);
  pestle_mutex_unlock(&s->mutex);
  if (first) {
    pestle_wake(s->failed[1]);
    pestle_mutex_lock(&s->calling);
    if (s->on_failure)
      s->on_failure(s->on_failure_user, pestle_status_message(s->failure));
    pestle_mutex_unlock(&s->calling);
  } else {
    pestle_status_release(why);
  }
}

void pestle_store_on_failure(pestle_store_t* s,
                             void (*fn)(void* user, const char* why),
                             void* user) {
  pestle_mutex_lock(&s->calling);
  s->on_failure = fn;
  s->on_failure_user = user;
  pestle_mutex_unlock(&s->calling);
  pestle_status_t failure = fn ? pestle_store_failure(s) : NULL;
  if (failure) fn(user, pestle_status_message(failure));
  pestle_status_release(failure);
}

pestle_status_t pestle_store_failure(const pestle_store_t* store) {
  pestle_store_t* s = (pestle_store_t*)(uintptr_t)store;  // for its lock
  pestle_mutex_lock(&s->mutex);
  pestle_status_t failure =
      s->failure ? pestle_status_retain(s->failure) : NULL;
  pestle_mutex_unlock(&s->mutex);
  return failure;
}

bool pestle_store_has_failed(const pestle_store_t* s) {
  return atomic_load(&s->has_failed);
}

pestle_socket_t pestle_store_wake(const pestle_store_t* s) {
  return s->failed[0];
}

static pestle_status_t text_status(int32_t code, const char* text,
                                   size_t size) {
  pestle_status_code_t known = code > 0 && code < PESTLE_STATUS_CODE_COUNT
                                   ? (pestle_status_code_t)code
                                   : PESTLE_STATUS_INTERNAL;
  return pestle_status_make(known, __FILE__, __LINE__, "%.*s",
                            size > 8192 ? 8192 : (int)size, text);
}

// --- Sending ---

static bool send_frame(pestle_store_t* s, uint32_t kind, uint32_t tag,
                       int32_t code, const char* key, const void* value,
                       size_t size) {
  pestle_store_head_t head = {.magic = PESTLE_STORE_MAGIC,
                              .kind = kind,
                              .tag = tag,
                              .code = code,
                              .key_size = (uint32_t)strlen(key),
                              .value_size = (uint32_t)size};
  int64_t end = pestle_clock_ns() + 5 * second_ns;
  pestle_mutex_lock(&s->sending);
  bool sent = pestle_socket_send_all(s->socket, &head, sizeof(head), end, -1) &&
              pestle_socket_send_all(s->socket, key, head.key_size, end, -1) &&
              pestle_socket_send_all(s->socket, value, size, end, -1);
  pestle_mutex_unlock(&s->sending);
  return sent;
}

static void tell_position(pestle_store_t* s) {
  pestle_store_at_t at = {.arrived = atomic_load(&s->arrived),
                          .done = atomic_load(&s->done)};
  (void)send_frame(s, PESTLE_STORE_AT, 0, 0, "", &at, sizeof(at));
}

void pestle_store_at(pestle_store_t* s, uint64_t arrived, uint64_t done) {
  atomic_store_explicit(&s->arrived, arrived, memory_order_relaxed);
  atomic_store_explicit(&s->done, done, memory_order_relaxed);
}

// --- Receiving ---

static void take_reply(pestle_store_t* s, const pestle_store_head_t* head,
                       const char* value) {
  pestle_mutex_lock(&s->mutex);
  request_t* r = s->requests;
  while (r && r->tag != head->tag)
    r = r->next;
  if (r) {
    r->size = head->value_size;
    if (!head->code && r->size && r->capacity) {
      memcpy(r->room, value, r->size < r->capacity ? r->size : r->capacity);
    }
    r->code = head->code;
    if (r->code) {
      (void)snprintf(r->text, sizeof(r->text), "%.*s",
                     r->size > 255 ? 255 : (int)r->size, value);
    }
    r->is_done = true;
    pestle_cond_broadcast(&s->changed);
  }
  pestle_mutex_unlock(&s->mutex);
}

static void take_frame(pestle_store_t* s, const pestle_store_head_t* head,
                       const char* value) {
  if (head->kind == PESTLE_STORE_REPLY) {
    take_reply(s, head, value);
  } else if (head->kind == PESTLE_STORE_WHERE) {
    tell_position(s);
  } else if (head->kind == PESTLE_STORE_FAILED) {
    note_failure(s, text_status(head->code, value, head->value_size));
  } else if (head->kind == PESTLE_STORE_CLOSED) {
    pestle_mutex_lock(&s->mutex);
    s->is_closed = true;
    pestle_cond_broadcast(&s->changed);
    pestle_mutex_unlock(&s->mutex);
  }
}

// False at the end of the connection.
static bool take_next(pestle_store_t* s, char* room, size_t capacity) {
  pestle_store_head_t head;
  int64_t end = pestle_clock_ns() + 30 * second_ns;
  if (!pestle_socket_receive_all(s->socket, &head, sizeof(head), end,
                                 s->stop[0]) ||
      head.magic != PESTLE_STORE_MAGIC || head.key_size ||
      head.value_size > capacity ||
      !pestle_socket_receive_all(s->socket, room, head.value_size, end,
                                 s->stop[0])) {
    return false;
  }
  take_frame(s, &head, room);
  return true;
}

static size_t room_size(const pestle_store_t* s) {
  size_t table = (size_t)s->size * sizeof(pestle_store_seen_t);
  return table > PESTLE_STORE_VALUE_SIZE ? table : PESTLE_STORE_VALUE_SIZE;
}

static void listen_to_store(void* self) {
  pestle_store_t* s = self;
  size_t capacity = room_size(s);
  char* room = pestle_alloc(s->allocator, capacity);
  pestle_poll_t both[2] = {{s->socket, PESTLE_POLL_READ, 0},
                           {s->stop[0], PESTLE_POLL_READ, 0}};
  int64_t told_ns = pestle_clock_ns();
  while (room && !atomic_load(&s->stops)) {
    (void)pestle_poll(both, 2, 1000);
    if (both[0].ready && !take_next(s, room, capacity)) break;
    int64_t now = pestle_clock_ns();
    if (now - told_ns < second_ns) continue;
    told_ns = now;
    uint64_t arrived = atomic_load(&s->arrived);
    if (arrived == s->told && arrived == atomic_load(&s->done)) continue;
    s->told = arrived;
    tell_position(s);
  }
  pestle_mutex_lock(&s->mutex);
  bool in_peace = s->is_closed || atomic_load(&s->stops);
  pestle_mutex_unlock(&s->mutex);
  if (!room) {
    note_failure(s, PESTLE_OOM());
  } else if (!in_peace) {
    note_failure(s, PESTLE_ERROR(UNAVAILABLE,
                                 "rank 0 has died: rank %d's connection to it "
                                 "has ended without a word",
                                 (int)s->rank));
  }
  pestle_dealloc(s->allocator, room, capacity);
}

// --- Requests ---

// Sends and waits. NULL with |r| filled, the world's failure, or DEADLINE_EXCEEDED
// without a cause.
static pestle_status_t request(pestle_store_t* s, request_t* r, uint32_t kind,
                               int32_t code, const char* key, const void* value,
                               size_t size, int64_t deadline_ns) {
  if (strlen(key) > PESTLE_STORE_KEY_SIZE || size > PESTLE_STORE_VALUE_SIZE) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "a key of %zu bytes with a value of %zu; a world's "
                        "store takes %d and %d",
                        strlen(key), size, PESTLE_STORE_KEY_SIZE,
                        PESTLE_STORE_VALUE_SIZE);
  }
  pestle_mutex_lock(&s->mutex);
  r->tag = ++s->tags;
  r->next = s->requests;
  s->requests = r;
  pestle_mutex_unlock(&s->mutex);
  // Where that fails rank 0 has gone, which the thread is about to find out.
  (void)send_frame(s, kind, r->tag, code, key, value, size);
  pestle_mutex_lock(&s->mutex);
  bool in_time = true;
  while (in_time && !r->is_done && !s->failure && !s->is_closed)
    in_time = pestle_cond_wait_until(&s->changed, &s->mutex, deadline_ns);
  request_t** at = &s->requests;
  while (*at != r)
    at = &(*at)->next;
  *at = r->next;
  pestle_status_t status = NULL;
  if (r->is_done && r->code) {
    status = text_status(r->code, r->text, strlen(r->text));
  } else if (!r->is_done && s->failure) {
    status = pestle_status_retain(s->failure);
  } else if (!r->is_done && s->is_closed) {
    status = PESTLE_ERROR(UNAVAILABLE, "rank 0 has left the world");
  } else if (!r->is_done) {
    status = PESTLE_ERROR(DEADLINE_EXCEEDED, "rank 0 has not answered");
  }
  pestle_mutex_unlock(&s->mutex);
  return status;
}

pestle_status_t pestle_store_put(pestle_store_t* s, const char* key,
                                 const void* value, size_t size) {
  request_t r = {.room = NULL};
  return request(s, &r, PESTLE_STORE_PUT, 0, key, value, size,
                 pestle_clock_ns() + 10 * second_ns);
}

pestle_status_t pestle_store_get(pestle_store_t* s, const char* key,
                                 int64_t deadline_ns, void* value,
                                 size_t* size) {
  request_t r = {.room = value, .capacity = *size};
  PESTLE_TRY(request(s, &r, PESTLE_STORE_GET, 0, key, "", 0, deadline_ns));
  if (r.size > *size) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "the value of '%s' has %zu bytes; there is room for "
                        "%zu",
                        key, r.size, *size);
  }
  *size = r.size;
  return NULL;
}

pestle_status_t pestle_store_ask(pestle_store_t* s, pestle_store_seen_t* seen) {
  request_t r = {.room = (char*)seen,
                 .capacity = (size_t)s->size * sizeof(*seen)};
  PESTLE_TRY(request(s, &r, PESTLE_STORE_ASK, 0, "", "", 0,
                     pestle_clock_ns() + answer_ns));
  if (r.size == r.capacity) return NULL;
  return PESTLE_ERROR(INTERNAL, "the store tells of %zu bytes of ranks",
                      r.size);
}

// Who has not come to |key|, "ranks 2, 3 have"; "rank 0 has" where that does not say.
static void find_missing(pestle_store_t* s, const char* key, char* out,
                         size_t capacity) {
  request_t r = {.room = NULL};
  pestle_status_t status = request(s, &r, PESTLE_STORE_MEET, 1, key, "", 0,
                                   pestle_clock_ns() + answer_ns);
  (void)snprintf(out, capacity, "%s",
                 r.is_done ? pestle_status_message(status) : "rank 0 has");
  pestle_status_release(status);
}

pestle_status_t pestle_store_meet(pestle_store_t* s, const char* key,
                                  const char* text, const char* what,
                                  int64_t deadline_ns) {
  char missing[128];
  request_t r = {.room = NULL};
  int64_t begin = pestle_clock_ns();
  pestle_status_t status = request(s, &r, PESTLE_STORE_MEET, 0, key, text,
                                   strlen(text), deadline_ns);
  if (pestle_status_code(status) != PESTLE_STATUS_DEADLINE_EXCEEDED)
    return status;
  pestle_status_release(status);
  if (pestle_store_has_failed(s)) return pestle_store_failure(s);
  double seconds = (double)(pestle_clock_ns() - begin) * 1e-9;
  find_missing(s, key, missing, sizeof(missing));
  return pestle_store_fail(
      s, PESTLE_ERROR(DEADLINE_EXCEEDED, "%s not come to %s for %.1f s",
                      missing, what, seconds));
}

pestle_status_t pestle_store_fail(pestle_store_t* s, pestle_status_t why) {
  if (pestle_store_has_failed(s)) {
    pestle_status_release(why);
    return pestle_store_failure(s);
  }
  request_t r = {.room = NULL};
  const char* text = pestle_status_message(why);
  size_t size = strlen(text);
  pestle_status_t status =
      request(s, &r, PESTLE_STORE_FAIL, (int32_t)pestle_status_code(why), "",
              text, size < 8192 ? size : 8192, pestle_clock_ns() + answer_ns);
  // FAILED ends the request; without it rank 0 does not hear.
  pestle_status_release(status);
  note_failure(s, why);
  return pestle_store_failure(s);
}

// --- Life ---

static pestle_status_t greet(pestle_store_t* s, int64_t deadline_ns,
                             bool* out_again) {
  pestle_store_hello_t hello = {
      .magic = PESTLE_STORE_MAGIC, .rank = s->rank, .size = s->size};
  pestle_store_proof_t proof;
  unsigned char mac[PESTLE_SHA256_SIZE];
  *out_again = false;
  PESTLE_TRY(pestle_random_bytes(hello.nonce, sizeof(hello.nonce)));
  if (!pestle_socket_send_all(s->socket, &hello, sizeof(hello), deadline_ns,
                              -1) ||
      !pestle_socket_receive_all(s->socket, &proof, sizeof(proof), deadline_ns,
                                 -1)) {
    *out_again = true;  // rank 0 of an earlier job, about to end
    return PESTLE_ERROR(UNAVAILABLE, "who listens there does not answer");
  }
  pestle_store_prove(s->secret, 'S', &hello, proof.nonce, mac);
  if (!pestle_digest_equal(mac, proof.mac)) {
    return PESTLE_ERROR(
        UNAVAILABLE,
        "who listens there does not know this job's secret: give all ranks the "
        "same PESTLE_WORLD_SECRET, or another port in PESTLE_WORLD");
  }
  pestle_store_prove(s->secret, 'C', &hello, proof.nonce, mac);
  if (pestle_socket_send_all(s->socket, mac, sizeof(mac), deadline_ns, -1))
    return NULL;
  *out_again = true;
  return PESTLE_ERROR(UNAVAILABLE, "who listens there has gone");
}

// Tries again while nobody listens: ranks start in any order.
static pestle_status_t join(pestle_store_t* s,
                            const pestle_store_options_t* options) {
  int64_t end = pestle_clock_ns() + options->create_ns, pause = 2000000;
  for (;;) {
    bool again = true;
    pestle_status_t status =
        pestle_socket_connect(options->host, options->port, end, &s->socket);
    if (!status) {
      int64_t soon = pestle_clock_ns() + greet_ns;
      status = greet(s, soon < end ? soon : end, &again);
      if (!status) return NULL;
      pestle_socket_close(s->socket);
      s->socket = -1;
    }
    again &= pestle_status_code(status) == PESTLE_STATUS_UNAVAILABLE;
    if (!again || pestle_clock_ns() + pause >= end) {
      pestle_status_t late =
          again
              ? PESTLE_ERROR(
                    DEADLINE_EXCEEDED,
                    "rank %d has not met rank 0 at %s, port %u, for %.1f s: %s",
                    (int)s->rank, options->host, (unsigned)options->port,
                    (double)options->create_ns * 1e-9,
                    pestle_status_message(status))
              : NULL;
      if (!late) {
        return pestle_status_annotate(status, "at %s, port %u", options->host,
                                      (unsigned)options->port);
      }
      pestle_status_release(status);
      return late;
    }
    pestle_status_release(status);
    pestle_thread_sleep_ns(pause);
    if (pause < second_ns / 10) pause *= 2;
  }
}

static pestle_status_t start(pestle_store_t* s,
                             const pestle_store_options_t* user) {
  pestle_store_options_t options = *user;
  PESTLE_TRY(pestle_wake_create(s->failed));
  PESTLE_TRY(pestle_wake_create(s->stop));
  if (!s->rank) {
    PESTLE_TRY(pestle_store_server_start(s->allocator, options.host,
                                         options.port, s->size, s->secret,
                                         &s->server));
    options.port = pestle_store_server_port(s->server);
    if (options.listening)
      PESTLE_TRY(options.listening(options.listening_user, options.port));
  }
  PESTLE_TRY(join(s, &options));
  PESTLE_TRY(
      pestle_thread_start(listen_to_store, s, "pestle-rank", &s->thread));
  s->has_thread = true;
  return NULL;
}

pestle_status_t pestle_store_open(pestle_allocator_t allocator,
                                  const pestle_store_options_t* options,
                                  pestle_store_t** out) {
  pestle_store_t* s = pestle_alloc_zero(allocator, sizeof(*s));
  *out = NULL;
  if (!s) return PESTLE_OOM();
  s->allocator = allocator;
  s->rank = options->rank;
  s->size = options->size;
  memcpy(s->secret, options->secret, sizeof(s->secret));
  s->socket = s->failed[0] = s->failed[1] = s->stop[0] = s->stop[1] = -1;
  atomic_init(&s->stops, false);
  atomic_init(&s->has_failed, false);
  atomic_init(&s->arrived, 0);
  atomic_init(&s->done, 0);
  pestle_mutex_init(&s->sending);
  pestle_mutex_init(&s->calling);
  pestle_mutex_init(&s->mutex);
  pestle_cond_init(&s->changed);
  pestle_status_t status = start(s, options);
  if (status) {
    pestle_store_close(s);
    return status;
  }
  *out = s;
  return NULL;
}

void pestle_store_close(pestle_store_t* s) {
  if (!s) return;
  if (s->has_thread) {
    (void)send_frame(s, PESTLE_STORE_BYE, 0, 0, "", "", 0);
    atomic_store(&s->stops, true);
    pestle_wake(s->stop[1]);
    pestle_thread_join(&s->thread);
  }
  pestle_socket_close(s->socket);
  pestle_store_server_stop(s->server, s->has_thread ? linger_ns : 0);
  pestle_socket_close(s->failed[0]);
  pestle_socket_close(s->failed[1]);
  pestle_socket_close(s->stop[0]);
  pestle_socket_close(s->stop[1]);
  pestle_status_release(s->failure);
  pestle_cond_deinit(&s->changed);
  pestle_mutex_deinit(&s->mutex);
  pestle_mutex_deinit(&s->sending);
  pestle_mutex_deinit(&s->calling);
  pestle_dealloc(s->allocator, s, sizeof(*s));
}

int32_t pestle_store_rank(const pestle_store_t* s) {
  return s->rank;
}
int32_t pestle_store_size(const pestle_store_t* s) {
  return s->size;
}
const unsigned char* pestle_store_secret(const pestle_store_t* s) {
  return s->secret;
}
pestle_allocator_t pestle_store_allocator(const pestle_store_t* s) {
  return s->allocator;
}

void pestle_store_local_host(const pestle_store_t* s,
                             char host[PESTLE_HOST_SIZE]) {
  uint16_t port;
  pestle_socket_local(s->socket, host, &port);
}
