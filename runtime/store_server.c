// SPDX-License-Identifier: Apache-2.0
// One thread, which waits for all connections at once and for none of them alone.
#include "runtime/store_server.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/vec.h"
#include "runtime/store_wire.h"

// How long a connection may take to show that it knows the secret, and how many that
// have not yet there may be.
static const int64_t stranger_ns = 10000000000;
enum { STRANGERS = 64, MEET_TEXT = 200 };
// How long ranks may take to say where they are.
static const int64_t ask_ns = 250000000;
static const int64_t failed_linger_ns = 1000000000;

typedef PESTLE_VEC(char) bytes_t;

typedef enum stage_t { GREETING, PROVING, OPEN } stage_t;

typedef struct connection_t {
  pestle_socket_t socket;
  stage_t stage;
  bool is_over;  // to be closed
  int64_t since_ns;
  pestle_store_hello_t hello;
  unsigned char nonce[32];
  bytes_t in, out;
} connection_t;

// A request that is not answered yet.
typedef struct wait_t {
  connection_t* connection;
  uint32_t kind, tag;  // pestle_store_frame_kind_t
  char* key;
} wait_t;

typedef struct member_t {
  connection_t* connection;  // NULL: none
  pestle_store_seen_t seen;  // its times are those of the clock
  bool is_asked;             // and has not answered
} member_t;

typedef struct meeting_t {
  int32_t came;
  char* texts;  // MEET_TEXT of each rank; empty: has not come
} meeting_t;

struct pestle_store_server_t {
  pestle_allocator_t allocator;
  pestle_thread_t thread;
  pestle_socket_t listening;
  pestle_socket_t wake[2];
  atomic_bool stops;
  int64_t linger_ns;  // set before |stops|
  int32_t size;
  unsigned char secret[32];
  member_t* members;
  PESTLE_VEC(connection_t*) connections;
  PESTLE_VEC(pestle_poll_t) polls;
  PESTLE_VEC(wait_t) waits;
  int64_t ask_until_ns;
  pestle_map_t values;    // key to pestle_str_t*
  pestle_map_t meetings;  // key to meeting_t*
  int32_t fail_code;      // 0: all is well
  char* fail_text;
};

// --- Sending ---

static void push(connection_t* c, const void* data, size_t size) {
  if (!pestle_vec_append(&c->out, (const char*)data, size)) c->is_over = true;
}

static void send_frame(connection_t* c, uint32_t kind, uint32_t tag,
                       int32_t code, const void* value, size_t size) {
  pestle_store_head_t head = {.magic = PESTLE_STORE_MAGIC,
                              .kind = kind,
                              .tag = tag,
                              .code = code,
                              .value_size = (uint32_t)size};
  push(c, &head, sizeof(head));
  push(c, value, size);
}

static void refuse(connection_t* c, uint32_t tag, int32_t code,
                   const char* text) {
  send_frame(c, PESTLE_STORE_REPLY, tag, code, text, strlen(text));
}

static void send_failure(const pestle_store_server_t* s, connection_t* c,
                         uint32_t tag) {
  send_frame(c, PESTLE_STORE_FAILED, tag, s->fail_code, s->fail_text,
             strlen(s->fail_text));
}

// The first one counts.
static void fail(pestle_store_server_t* s, int32_t code, const char* text,
                 size_t size) {
  if (s->fail_code) return;
  s->fail_text = pestle_alloc(s->allocator, size + 1);
  if (!s->fail_text) return;
  memcpy(s->fail_text, text, size);
  s->fail_text[size] = '\0';
  s->fail_code = code ? code : PESTLE_STATUS_INTERNAL;
  for (size_t i = 0; i < s->connections.size; ++i) {
    if (s->connections.data[i]->stage == OPEN)
      send_failure(s, s->connections.data[i], 0);
  }
}

// --- Who waits ---

static bool add_wait(pestle_store_server_t* s, connection_t* c,
                     const pestle_store_head_t* head, pestle_str_t key) {
  wait_t wait = {.connection = c, .kind = head->kind, .tag = head->tag};
  wait.key = pestle_alloc(s->allocator, key.size + 1);
  if (wait.key) {
    memcpy(wait.key, key.data, key.size);
    wait.key[key.size] = '\0';
    if (pestle_vec_push(&s->waits, wait)) return true;
    pestle_dealloc(s->allocator, wait.key, key.size + 1);
  }
  refuse(c, head->tag, PESTLE_STATUS_OUT_OF_MEMORY,
         "the store is out of memory");
  return false;
}

static void drop_wait(pestle_store_server_t* s, size_t index) {
  wait_t* wait = &s->waits.data[index];
  pestle_free_str(s->allocator, wait->key);
  *wait = pestle_vec_last(&s->waits);
  --s->waits.size;
}

// Answers all who wait for |key| by a request of |kind|.
static void answer(pestle_store_server_t* s, uint32_t kind, pestle_str_t key,
                   int32_t code, const void* value, size_t size) {
  for (size_t i = s->waits.size; i-- > 0;) {
    const wait_t* w = &s->waits.data[i];
    if (w->kind != kind || !pestle_str_equal_c(key, w->key)) continue;
    send_frame(w->connection, PESTLE_STORE_REPLY, w->tag, code, value, size);
    drop_wait(s, i);
  }
}

// --- Keys ---

static pestle_str_t* make_value(pestle_store_server_t* s, pestle_str_t value) {
  pestle_str_t* made =
      pestle_alloc(s->allocator, sizeof(*made) + value.size + 1);
  if (!made) return NULL;
  char* data = (char*)(made + 1);
  if (value.size) memcpy(data, value.data, value.size);
  *made = pestle_str_make(data, value.size);
  return made;
}

static void put(pestle_store_server_t* s, connection_t* c,
                const pestle_store_head_t* head, pestle_str_t key,
                pestle_str_t value) {
  bool added = false;
  pestle_map_value_t* slot = pestle_map_find_str(&s->values, key);
  if (!slot && pestle_map_size(&s->values) >= PESTLE_STORE_KEYS) {
    refuse(c, head->tag, PESTLE_STATUS_RESOURCE_EXHAUSTED,
           "the store has as many keys as it takes, 1,048,576");
    return;
  }
  if (!slot) {
    pestle_str_t* made = make_value(s, value);
    slot = made ? pestle_map_put(&s->values, key.data, key.size, &added) : NULL;
    if (!slot) {
      if (made)
        pestle_dealloc(s->allocator, made, sizeof(*made) + value.size + 1);
      refuse(c, head->tag, PESTLE_STATUS_OUT_OF_MEMORY,
             "the store is out of memory");
      return;
    }
    slot->ptr = made;
  }
  const pestle_str_t* now = slot->ptr;
  send_frame(c, PESTLE_STORE_REPLY, head->tag, 0, now->data, now->size);
  if (added) answer(s, PESTLE_STORE_GET, key, 0, now->data, now->size);
}

static void get(pestle_store_server_t* s, connection_t* c,
                const pestle_store_head_t* head, pestle_str_t key) {
  const pestle_map_value_t* slot = pestle_map_find_str(&s->values, key);
  if (!slot) {
    (void)add_wait(s, c, head, key);
    return;
  }
  const pestle_str_t* now = slot->ptr;
  send_frame(c, PESTLE_STORE_REPLY, head->tag, 0, now->data, now->size);
}

// --- Meetings ---

static meeting_t* find_meeting(pestle_store_server_t* s, pestle_str_t key) {
  pestle_map_value_t* slot = pestle_map_find_str(&s->meetings, key);
  if (slot) return slot->ptr;
  size_t texts = (size_t)s->size * MEET_TEXT;
  meeting_t* made = pestle_alloc_zero(s->allocator, sizeof(*made) + texts);
  if (!made) return NULL;
  made->texts = (char*)(made + 1);
  if (pestle_map_set_str_ptr(&s->meetings, key, made)) return made;
  pestle_dealloc(s->allocator, made, sizeof(*made) + texts);
  return NULL;
}

// "ranks 0, 2", and at most eight of them.
static void list_ranks(const pestle_store_server_t* s, const meeting_t* m,
                       const char* text, pestle_strbuf_t* out) {
  int32_t count = 0;
  for (int32_t i = 0; i < s->size; ++i)
    count += !strcmp(m->texts + (size_t)i * MEET_TEXT, text);
  pestle_strbuf_append_c(out, count == 1 ? "rank " : "ranks ");
  for (int32_t i = 0, shown = 0; i < s->size && shown < 8; ++i) {
    if (strcmp(m->texts + (size_t)i * MEET_TEXT, text)) continue;
    pestle_strbuf_appendf(out, shown++ ? ", %d" : "%d", (int)i);
  }
  if (count > 8) pestle_strbuf_appendf(out, " and %d more", (int)count - 8);
}

// What rank 0 has, beside the first that has something else.
static void end_meeting(pestle_store_server_t* s, pestle_str_t key,
                        const meeting_t* m) {
  const char *first = m->texts, *other = NULL;
  for (int32_t i = 1; i < s->size && !other; ++i) {
    const char* text = m->texts + (size_t)i * MEET_TEXT;
    if (strcmp(first, text)) other = text;
  }
  if (!other) {
    answer(s, PESTLE_STORE_MEET, key, 0, "", 0);
    return;
  }
  pestle_strbuf_t text;
  pestle_strbuf_init(s->allocator, &text);
  list_ranks(s, m, other, &text);
  pestle_strbuf_appendf(&text, " came with %s, ", other);
  list_ranks(s, m, first, &text);
  pestle_strbuf_appendf(&text,
                        " with %s: all ranks of a world run the same plans in "
                        "the same order, compiled alike and tuned alike",
                        first);
  pestle_str_t all = pestle_strbuf_view(&text);
  fail(s, PESTLE_STATUS_INCOMPATIBLE, all.data, all.size);
  pestle_strbuf_deinit(&text);
}

static void tell_missing(const pestle_store_server_t* s, connection_t* c,
                         const pestle_store_head_t* head, const meeting_t* m) {
  pestle_strbuf_t text;
  pestle_strbuf_init(s->allocator, &text);
  list_ranks(s, m, "", &text);
  pestle_strbuf_append_c(&text, m->came + 1 == s->size ? " has" : " have");
  refuse(c, head->tag, PESTLE_STATUS_DEADLINE_EXCEEDED,
         pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
}

static void meet(pestle_store_server_t* s, connection_t* c,
                 const pestle_store_head_t* head, pestle_str_t key,
                 pestle_str_t value) {
  meeting_t* m = find_meeting(s, key);
  if (!m) {
    refuse(c, head->tag, PESTLE_STATUS_OUT_OF_MEMORY,
           "the store is out of memory");
    return;
  }
  if (head->code) {  // it has waited for long enough
    tell_missing(s, c, head, m);
    return;
  }
  char* text = m->texts + (size_t)c->hello.rank * MEET_TEXT;
  if (!*text) {
    size_t size = value.size < MEET_TEXT - 1 ? value.size : MEET_TEXT - 1;
    memcpy(text, value.data, size);
    if (!size) (void)snprintf(text, MEET_TEXT, "nothing");
    ++m->came;
  }
  if (add_wait(s, c, head, key) && m->came == s->size) end_meeting(s, key, m);
}

// --- Positions ---

static void take_position(pestle_store_server_t* s, const connection_t* c,
                          pestle_str_t value) {
  member_t* m = &s->members[c->hello.rank];
  pestle_store_at_t at;
  if (value.size != sizeof(at)) return;
  memcpy(&at, value.data, sizeof(at));
  m->is_asked = false;
  if (at.arrived != m->seen.at.arrived) m->seen.since_ns = m->seen.heard_ns;
  m->seen.at = at;
}

static void ask(pestle_store_server_t* s, connection_t* c,
                const pestle_store_head_t* head) {
  if (!add_wait(s, c, head, PESTLE_STR(""))) return;
  s->ask_until_ns = pestle_clock_ns() + ask_ns;
  for (int32_t i = 0; i < s->size; ++i) {
    member_t* m = &s->members[i];
    m->is_asked = m->connection != NULL;
    if (m->connection)
      send_frame(m->connection, PESTLE_STORE_WHERE, 0, 0, "", 0);
  }
}

// Answers who has asked once all have spoken, or have had their time.
static void answer_asked(pestle_store_server_t* s) {
  bool asked = false;
  int64_t now = pestle_clock_ns();
  if (!s->ask_until_ns) return;
  for (int32_t i = 0; i < s->size; ++i)
    asked |= s->members[i].is_asked;
  if (asked && now < s->ask_until_ns) return;
  s->ask_until_ns = 0;
  bytes_t table;
  pestle_vec_init(&table, s->allocator);
  for (int32_t i = 0; i < s->size; ++i) {
    pestle_store_seen_t seen = s->members[i].seen;
    seen.since_ns = now - seen.since_ns;
    seen.heard_ns =
        seen.state == PESTLE_STORE_ABSENT ? -1 : now - seen.heard_ns;
    if (!pestle_vec_append(&table, (const char*)&seen, sizeof(seen))) break;
  }
  answer(s, PESTLE_STORE_ASK, PESTLE_STR(""), 0, table.data, table.size);
  pestle_vec_deinit(&table);
}

// --- Frames ---

static void take_frame(pestle_store_server_t* s, connection_t* c,
                       const pestle_store_head_t* head, pestle_str_t key,
                       pestle_str_t value) {
  member_t* m = &s->members[c->hello.rank];
  m->seen.heard_ns = pestle_clock_ns();
  switch (head->kind) {
    case PESTLE_STORE_AT:
      take_position(s, c, value);
      return;
    case PESTLE_STORE_BYE:
      m->seen.state = PESTLE_STORE_GONE;
      return;
    case PESTLE_STORE_FAIL:
      fail(s, head->code, value.data, value.size);
      send_failure(s, c, head->tag);
      return;
    default:
      break;
  }
  if (s->fail_code) {
    send_failure(s, c, head->tag);
  } else if (head->kind == PESTLE_STORE_PUT) {
    put(s, c, head, key, value);
  } else if (head->kind == PESTLE_STORE_GET) {
    get(s, c, head, key);
  } else if (head->kind == PESTLE_STORE_MEET) {
    meet(s, c, head, key, value);
  } else if (head->kind == PESTLE_STORE_ASK) {
    ask(s, c, head);
  } else {
    refuse(c, head->tag, PESTLE_STATUS_UNSUPPORTED,
           "the store of rank 0 does not know this request; all ranks need the "
           "same Pestle");
  }
}

static void greet(pestle_store_server_t* s, connection_t* c) {
  pestle_store_proof_t proof;
  memcpy(&c->hello, c->in.data, sizeof(c->hello));
  pestle_status_t status = pestle_random_bytes(c->nonce, sizeof(c->nonce));
  if (status || c->hello.magic != PESTLE_STORE_MAGIC) {
    pestle_status_release(status);
    c->is_over = true;
    return;
  }
  memcpy(proof.nonce, c->nonce, sizeof(c->nonce));
  pestle_store_prove(s->secret, 'S', &c->hello, c->nonce, proof.mac);
  push(c, &proof, sizeof(proof));
  c->stage = PROVING;
}

// Whether the client may come in; it is told why not.
static bool admit(pestle_store_server_t* s, connection_t* c) {
  char text[160];
  const pestle_store_hello_t* h = &c->hello;
  if (h->size != s->size || h->rank < 0 || h->rank >= s->size) {
    (void)snprintf(text, sizeof(text),
                   "rank %d of %d ranks comes to a world of %d", (int)h->rank,
                   (int)h->size, (int)s->size);
  } else if (s->members[h->rank].seen.state != PESTLE_STORE_ABSENT) {
    (void)snprintf(text, sizeof(text), "there is a rank %d already",
                   (int)h->rank);
  } else {
    return true;
  }
  send_frame(c, PESTLE_STORE_FAILED, 0, PESTLE_STATUS_INVALID_ARGUMENT, text,
             strlen(text));
  return false;
}

static void believe(pestle_store_server_t* s, connection_t* c) {
  unsigned char want[PESTLE_SHA256_SIZE];
  pestle_store_prove(s->secret, 'C', &c->hello, c->nonce, want);
  if (!pestle_digest_equal(want, (const unsigned char*)c->in.data)) {
    c->is_over = true;
    return;
  }
  if (!admit(s, c)) {
    c->stage = GREETING;  // a stranger still: what it says does not count
    c->since_ns = 0;
    return;
  }
  member_t* m = &s->members[c->hello.rank];
  c->stage = OPEN;
  m->connection = c;
  m->seen.state = PESTLE_STORE_HERE;
  m->seen.since_ns = m->seen.heard_ns = pestle_clock_ns();
  if (s->fail_code) send_failure(s, c, 0);
}

// Takes what has come as a whole. Bytes that are used up.
static size_t take(pestle_store_server_t* s, connection_t* c) {
  pestle_store_head_t head;
  size_t left = c->in.size;
  if (c->stage == GREETING) {
    if (left < sizeof(c->hello)) return 0;
    greet(s, c);
    return sizeof(c->hello);
  }
  if (c->stage == PROVING) {
    if (left < PESTLE_SHA256_SIZE) return 0;
    believe(s, c);
    return PESTLE_SHA256_SIZE;
  }
  if (left < sizeof(head)) return 0;
  memcpy(&head, c->in.data, sizeof(head));
  if (head.magic != PESTLE_STORE_MAGIC ||
      head.key_size > PESTLE_STORE_KEY_SIZE ||
      head.value_size > PESTLE_STORE_VALUE_SIZE) {
    c->is_over = true;
    return 0;
  }
  size_t size = sizeof(head) + head.key_size + head.value_size;
  if (left < size) return 0;
  take_frame(s, c, &head,
             pestle_str_make(c->in.data + sizeof(head), head.key_size),
             pestle_str_make(c->in.data + sizeof(head) + head.key_size,
                             head.value_size));
  return size;
}

// --- Connections ---

static void receive(pestle_store_server_t* s, connection_t* c) {
  for (;;) {
    if (!pestle_vec_reserve(&c->in, 4096)) {
      c->is_over = true;
      return;
    }
    int64_t got =
        pestle_socket_receive(c->socket, c->in.data + c->in.size, 4096);
    if (got < 0) c->is_over = true;
    if (got <= 0) break;
    c->in.size += (size_t)got;
    for (size_t used; !c->is_over && (used = take(s, c)) > 0;) {
      memmove(c->in.data, c->in.data + used, c->in.size - used);
      c->in.size -= used;
    }
    if (c->is_over) return;
  }
}

static void flush(connection_t* c) {
  if (!c->out.size) return;
  int64_t sent = pestle_socket_send(c->socket, c->out.data, c->out.size);
  if (sent < 0) {
    c->is_over = true;
    return;
  }
  memmove(c->out.data, c->out.data + sent, c->out.size - (size_t)sent);
  c->out.size -= (size_t)sent;
}

static void accept_one(pestle_store_server_t* s) {
  size_t strangers = 0;
  pestle_socket_t socket = pestle_socket_accept(s->listening);
  if (socket < 0) return;
  for (size_t i = 0; i < s->connections.size; ++i)
    strangers += s->connections.data[i]->stage != OPEN;
  connection_t* c = strangers < STRANGERS
                        ? pestle_alloc_zero(s->allocator, sizeof(*c))
                        : NULL;
  if (!c || !pestle_vec_push(&s->connections, c)) {
    pestle_socket_close(socket);
    pestle_dealloc(s->allocator, c, sizeof(*c));
    return;
  }
  c->socket = socket;
  c->since_ns = pestle_clock_ns();
  pestle_vec_init(&c->in, s->allocator);
  pestle_vec_init(&c->out, s->allocator);
}

static void note_end(pestle_store_server_t* s, const connection_t* c) {
  char text[200];
  member_t* m = &s->members[c->hello.rank];
  m->connection = NULL;
  m->is_asked = false;
  if (m->seen.state == PESTLE_STORE_GONE) return;
  m->seen.state = PESTLE_STORE_DEAD;
  size_t size = (size_t)snprintf(
      text, sizeof(text),
      "rank %d has died: its connection to rank 0 has ended without a word; it "
      "was last seen at collective %llu (%s), %.1f s ago",
      (int)c->hello.rank, (unsigned long long)m->seen.at.arrived,
      m->seen.at.done == m->seen.at.arrived ? "done" : "not done",
      (double)(pestle_clock_ns() - m->seen.heard_ns) * 1e-9);
  fail(s, PESTLE_STATUS_UNAVAILABLE, text, size);
}

static void drop_connection(pestle_store_server_t* s, size_t index) {
  connection_t* c = s->connections.data[index];
  s->connections.data[index] = pestle_vec_last(&s->connections);
  --s->connections.size;
  for (size_t i = s->waits.size; i-- > 0;) {
    if (s->waits.data[i].connection == c) drop_wait(s, i);
  }
  if (c->stage == OPEN) note_end(s, c);
  pestle_socket_close(c->socket);
  pestle_vec_deinit(&c->in);
  pestle_vec_deinit(&c->out);
  pestle_dealloc(s->allocator, c, sizeof(*c));
}

static void drop_ended(pestle_store_server_t* s) {
  int64_t now = pestle_clock_ns();
  for (size_t i = s->connections.size; i-- > 0;) {
    const connection_t* c = s->connections.data[i];
    bool late =
        c->stage != OPEN && now - c->since_ns > stranger_ns && !c->out.size;
    if (c->is_over || late) drop_connection(s, i);
  }
}

// --- The thread ---

static bool wait_for_all(pestle_store_server_t* s) {
  pestle_vec_clear(&s->polls);
  if (!pestle_vec_reserve(&s->polls, s->connections.size + 2)) return false;
  s->polls.data[s->polls.size++] =
      (pestle_poll_t){s->wake[0], PESTLE_POLL_READ, 0};
  s->polls.data[s->polls.size++] =
      (pestle_poll_t){s->listening, PESTLE_POLL_READ, 0};
  for (size_t i = 0; i < s->connections.size; ++i) {
    const connection_t* c = s->connections.data[i];
    short wanted = PESTLE_POLL_READ;
    if (c->out.size) wanted |= PESTLE_POLL_WRITE;
    s->polls.data[s->polls.size++] = (pestle_poll_t){c->socket, wanted, 0};
  }
  (void)pestle_poll(s->polls.data, s->polls.size,
                    s->ask_until_ns || atomic_load(&s->stops) ? 20 : 1000);
  return true;
}

static void serve_once(pestle_store_server_t* s) {
  char woken[16];
  size_t count = s->connections.size;  // a new one comes behind these
  if (!wait_for_all(s)) {
    pestle_thread_sleep_ns(1000000);
    return;
  }
  if (s->polls.data[0].ready)
    (void)pestle_socket_receive(s->wake[0], woken, sizeof(woken));
  for (size_t i = 0; i < count; ++i) {
    connection_t* c = s->connections.data[i];
    if (s->polls.data[i + 2].ready & ~PESTLE_POLL_WRITE) receive(s, c);
  }
  if (s->polls.data[1].ready) accept_one(s);
  answer_asked(s);
  drop_ended(s);
  for (size_t i = 0; i < s->connections.size; ++i)
    flush(s->connections.data[i]);
}

static void say_closed(pestle_store_server_t* s) {
  for (size_t i = 0; i < s->connections.size; ++i) {
    connection_t* c = s->connections.data[i];
    if (c->stage == OPEN && !s->fail_code)
      send_frame(c, PESTLE_STORE_CLOSED, 0, 0, "", 0);
    flush(c);
    pestle_socket_end(c->socket);
  }
}

static void serve(void* self) {
  pestle_store_server_t* s = self;
  int64_t end_ns = INT64_MAX;
  while (true) {
    serve_once(s);
    if (!atomic_load(&s->stops)) continue;
    int64_t now = pestle_clock_ns();
    if (end_ns == INT64_MAX) end_ns = now + s->linger_ns;
    if (s->fail_code && end_ns > now + failed_linger_ns)
      end_ns = now + failed_linger_ns;
    bool any = false;
    for (int32_t i = 0; i < s->size; ++i)
      any |= s->members[i].connection != NULL;
    if (!any || now >= end_ns) break;
  }
  say_closed(s);
}

// --- Life ---

static void destroy(pestle_store_server_t* s) {
  size_t cursor = 0;
  while (s->connections.size) {
    s->connections.data[0]->stage = PROVING;  // nobody is told any more
    drop_connection(s, 0);
  }
  while (s->waits.size)
    drop_wait(s, 0);
  for (const pestle_map_entry_t* e;
       (e = pestle_map_next(&s->values, &cursor));) {
    pestle_str_t* value = e->value.ptr;
    pestle_dealloc(s->allocator, value, sizeof(*value) + value->size + 1);
  }
  cursor = 0;
  for (const pestle_map_entry_t* e;
       (e = pestle_map_next(&s->meetings, &cursor));) {
    pestle_dealloc(s->allocator, e->value.ptr,
                   sizeof(meeting_t) + (size_t)s->size * MEET_TEXT);
  }
  pestle_map_deinit(&s->values);
  pestle_map_deinit(&s->meetings);
  pestle_vec_deinit(&s->waits);
  pestle_vec_deinit(&s->connections);
  pestle_vec_deinit(&s->polls);
  pestle_socket_close(s->listening);
  pestle_socket_close(s->wake[0]);
  pestle_socket_close(s->wake[1]);
  pestle_free_str(s->allocator, s->fail_text);
  pestle_dealloc(s->allocator, s->members,
                 (size_t)s->size * sizeof(*s->members));
  pestle_dealloc(s->allocator, s, sizeof(*s));
}

static pestle_status_t start(pestle_store_server_t* s, const char* host,
                             uint16_t port) {
  s->members =
      pestle_alloc_zero(s->allocator, (size_t)s->size * sizeof(*s->members));
  if (!s->members) return PESTLE_OOM();
  PESTLE_TRY(pestle_wake_create(s->wake));
  PESTLE_TRY(pestle_socket_listen(host, port, &s->listening));
  return pestle_thread_start(serve, s, "pestle-store", &s->thread);
}

pestle_status_t pestle_store_server_start(pestle_allocator_t allocator,
                                          const char* host, uint16_t port,
                                          int32_t size,
                                          const unsigned char secret[32],
                                          pestle_store_server_t** out) {
  pestle_store_server_t* s = pestle_alloc_zero(allocator, sizeof(*s));
  *out = NULL;
  if (!s) return PESTLE_OOM();
  s->allocator = allocator;
  s->size = size;
  s->listening = s->wake[0] = s->wake[1] = -1;
  memcpy(s->secret, secret, sizeof(s->secret));
  atomic_init(&s->stops, false);
  pestle_vec_init(&s->connections, allocator);
  pestle_vec_init(&s->polls, allocator);
  pestle_vec_init(&s->waits, allocator);
  pestle_map_init(allocator, &s->values);
  pestle_map_init(allocator, &s->meetings);
  pestle_status_t status = start(s, host, port);
  if (status) {
    destroy(s);
    return status;
  }
  *out = s;
  return NULL;
}

uint16_t pestle_store_server_port(const pestle_store_server_t* s) {
  char host[PESTLE_HOST_SIZE];
  uint16_t port;
  pestle_socket_local(s->listening, host, &port);
  return port;
}

void pestle_store_server_stop(pestle_store_server_t* s, int64_t linger_ns) {
  if (!s) return;
  s->linger_ns = linger_ns;
  atomic_store(&s->stops, true);
  pestle_wake(s->wake[1]);
  pestle_thread_join(&s->thread);
  destroy(s);
}
