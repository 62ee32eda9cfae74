// SPDX-License-Identifier: Apache-2.0
// Ranks that find rank 0 by a store of somebody else's: they meet, several worlds beside
// each other; rank 0 on another machine, one that never comes, and a store that fails or
// says nonsense are told.
#include "runtime/rendezvous.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "pestle/context.h"
#include "runtime/world.h"
#include "test.h"

enum { RANKS = 3, KEYS = 4 };

// The framework's store, in memory.
typedef struct shelf_t {
  pestle_mutex_t mutex;
  pestle_cond_t changed;
  char keys[KEYS][160], values[KEYS][700];
  int count;
  bool broken;
} shelf_t;

static pestle_status_t put(void* user, const char* key, const char* value) {
  shelf_t* shelf = user;
  if (shelf->broken) return PESTLE_ERROR(UNAVAILABLE, "the store is gone");
  pestle_mutex_lock(&shelf->mutex);
  assert_true(shelf->count < KEYS);
  (void)snprintf(shelf->keys[shelf->count], 160, "%s", key);
  (void)snprintf(shelf->values[shelf->count++], 700, "%s", value);
  pestle_cond_broadcast(&shelf->changed);
  pestle_mutex_unlock(&shelf->mutex);
  return NULL;
}

static const char* look(const shelf_t* shelf, const char* key) {
  for (int i = 0; i < shelf->count; ++i) {
    if (!strcmp(shelf->keys[i], key)) return shelf->values[i];
  }
  return NULL;
}

static pestle_status_t get(void* user, const char* key, int64_t timeout_ms,
                           char* out_value, size_t capacity) {
  shelf_t* shelf = user;
  int64_t end = pestle_clock_ns() + timeout_ms * 1000000;
  pestle_mutex_lock(&shelf->mutex);
  const char* value;
  bool in_time = true;
  while (!(value = look(shelf, key)) && in_time)
    in_time = pestle_cond_wait_until(&shelf->changed, &shelf->mutex, end);
  if (value) (void)snprintf(out_value, capacity, "%s", value);
  pestle_mutex_unlock(&shelf->mutex);
  return value ? NULL : PESTLE_ERROR(DEADLINE_EXCEEDED, "nothing at '%s'", key);
}

static shelf_t shelf;
static const pestle_world_store_t store = {
    .struct_size = sizeof(store), .user = &shelf, .put = put, .get = get};

static void empty_shelf(void) {
  memset(&shelf, 0, sizeof(shelf));
  pestle_mutex_init(&shelf.mutex);
  pestle_cond_init(&shelf.changed);
}

typedef struct member_t {
  pestle_thread_t thread;
  pestle_context_t* context;
  int32_t rank, size;
  const char* name;
  const char* secret;
  int64_t create_ms;
  pestle_world_t* world;
  pestle_status_t status;
} member_t;

static void join_world(void* self) {
  member_t* m = self;
  pestle_world_options_t options = {
      .struct_size = sizeof(options),
      .create_deadline_ms = m->create_ms ? m->create_ms : 60000,
      .rank = m->rank,
      .size = m->size,
      .secret = m->secret,
      .store = &store,
      .name = m->name};
  m->status = pestle_world_create(m->context, &options, &m->world);
}

static pestle_context_t* make_context(void) {
  pestle_context_t* context;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .cache_dir = "", .threads = 1};
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static void clear_environment(void) {
  unsetenv("PESTLE_WORLD");
  unsetenv("PESTLE_WORLD_SECRET");
}

// One thread a rank, |count| of them.
static void meet(member_t* members, int count, pestle_context_t* context) {
  for (int i = 0; i < count; ++i) {
    members[i].context = context;
    assert_ok(pestle_thread_start(join_world, &members[i], "rank",
                                  &members[i].thread));
  }
  for (int i = 0; i < count; ++i)
    pestle_thread_join(&members[i].thread);
}

// Rank 0 goes last: it waits for the others.
static void leave(member_t* members, int count) {
  for (int i = count; i-- > 0;)
    pestle_world_release(members[i].world);
}

static void ranks_meet(void** state) {
  (void)state;
  clear_environment();
  empty_shelf();
  pestle_context_t* context = make_context();
  member_t a[RANKS], b[RANKS];
  memset(a, 0, sizeof(a));
  memset(b, 0, sizeof(b));
  for (int i = 0; i < RANKS; ++i) {
    a[i].rank = i;
    b[i].rank = RANKS - 1 - i;
    a[i].size = b[i].size = RANKS;
    a[i].name = "first";
    b[i].name = "second";
    // The user's own is not put anywhere.
    b[i].secret =
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
  }
  meet(a, RANKS, context);
  meet(b, RANKS, context);
  for (int i = 0; i < RANKS; ++i) {
    assert_ok(a[i].status);
    assert_ok(b[i].status);
    assert_int_equal(pestle_world_rank(a[i].world), i);
    assert_int_equal(pestle_world_rank(b[i].world), RANKS - 1 - i);
    assert_int_equal(pestle_world_size(b[i].world), RANKS);
  }
  assert_int_equal(shelf.count, 2);
  assert_string_equal(shelf.keys[0], "pestle/world/first");
  assert_int_equal(strlen(strrchr(shelf.values[0], '\n') + 1), 64);
  assert_string_equal(strrchr(shelf.values[1], '\n'), "\n");
  leave(a, RANKS);
  for (int i = 0; i < RANKS; ++i)  // b[i] is rank RANKS - 1 - i
    pestle_world_release(b[i].world);
  pestle_context_release(context);
}

static void join_alone(pestle_context_t* context, member_t* m) {
  m->context = context;
  m->size = 2;
  m->name = "w";
  join_world(m);
}

static void says_what_is_wrong(void** state) {
  (void)state;
  clear_environment();
  empty_shelf();
  pestle_context_t* context = make_context();
  member_t m = {.rank = 1, .create_ms = 50};
  join_alone(context, &m);
  assert_error(m.status, DEADLINE_EXCEEDED, "nothing at 'pestle/world/w'");

  assert_ok(put(&shelf, "pestle/world/w",
                "pestle world 1\n127.0.0.1\n4000\nanother machine\n"));
  join_alone(context, &m);
  assert_error(m.status, INVALID_ARGUMENT,
               "rank 1 is not on the machine of rank 0");

  static const char* const nonsense[] = {
      "", "pestle world 1", "pestle world 2\n127.0.0.1\n4000\nm\n",
      "pestle world 1\n127.0.0.1\nport\nm\n",
      "pestle world 1\n127.0.0.1\n70000\nm\n"};
  for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); ++i) {
    empty_shelf();
    assert_ok(put(&shelf, "pestle/world/w", nonsense[i]));
    join_alone(context, &m);
    assert_error(m.status, INCOMPATIBLE, "is not understood");
  }

  empty_shelf();
  shelf.broken = true;
  m.rank = 0;
  join_alone(context, &m);
  assert_error(m.status, UNAVAILABLE, "the store is gone");

  // Who it is has to be said.
  m.rank = 0;
  m.size = 0;
  m.context = context;
  join_world(&m);
  assert_error(m.status, INVALID_ARGUMENT, "has a store and no size");
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_meet),
      cmocka_unit_test(says_what_is_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
