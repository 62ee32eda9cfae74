// SPDX-License-Identifier: Apache-2.0
// The transport between threads as its table has it: who may join what, two
// communicators at once, and what is left when ranks never come.
#include "runtime/host_transport.h"

#include "test.h"

static pestle_context_t* make_context(void) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .threads = 1};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static const pestle_collective_api_t* const api = &pestle_host_collective;

typedef struct name_t {
  uint8_t id[128];
  size_t size;
} name_t;

static name_t make_name(pestle_host_transport_t* transport) {
  name_t name = {.size = sizeof(name.id)};
  assert_ok(api->id(transport, name.id, &name.size));
  assert_true(name.size && name.size <= sizeof(name.id));
  return name;
}

static pestle_comm_options_t options_of(const name_t* name, int32_t rank,
                                        int32_t size) {
  return (pestle_comm_options_t){.struct_size = sizeof(pestle_comm_options_t),
                                 .id = name->id,
                                 .id_size = name->size,
                                 .rank = rank,
                                 .size = size,
                                 .deadline_ms = 60000};
}

static void joins(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_host_transport_t* transport;
  pestle_comm_t *first, *none;
  assert_ok(pestle_host_transport_create(context, &transport));
  uint8_t few[2];
  size_t size = sizeof(few);
  assert_error(api->id(transport, few, &size), RESOURCE_EXHAUSTED,
               "there is room for 2");
  assert_true(size > sizeof(few));
  name_t name = make_name(transport), other = {.size = name.size};
  pestle_comm_options_t options = options_of(&name, 0, 3);
  assert_ok(api->create(transport, 0, &options, &first));
  assert_error(api->create(transport, 0, &options, &none), INVALID_ARGUMENT,
               "rank 0 joins its communicator twice");
  assert_null(none);
  options = options_of(&name, 1, 2);
  assert_error(api->create(transport, 0, &options, &none), INVALID_ARGUMENT,
               "of 3 ranks as one of 2");
  options = options_of(&name, 3, 3);
  assert_code(api->create(transport, 0, &options, &none), INVALID_ARGUMENT);
  options = options_of(&name, -1, 3);
  assert_code(api->create(transport, 0, &options, &none), INVALID_ARGUMENT);
  options = options_of(&name, 1, 3);
  assert_code(api->create(transport, 1, &options, &none), INVALID_ARGUMENT);
  options.id_size = 3;
  assert_code(api->create(transport, 0, &options, &none), INVALID_ARGUMENT);
  options = options_of(&name, 1, 3);
  options.deadline_ms = 0;
  assert_code(api->create(transport, 0, &options, &none), INVALID_ARGUMENT);
  options = options_of(&other, 0, 1);
  assert_error(api->create(transport, 0, &options, &none), INVALID_ARGUMENT,
               "has given no communicator 0");
  assert_ok(api->poll(transport, first));
  api->abort(transport, first, "enough");
  api->abort(transport, first, "again");
  assert_error(api->poll(transport, first), UNAVAILABLE,
               "rank 0 has ended its world: enough");
  // Two ranks never come.
  api->destroy(transport, first);
  api->destroy(transport, NULL);
  pestle_host_transport_release(transport);
  pestle_host_transport_release(NULL);
  pestle_context_release(context);
}

typedef struct rank_t {
  pestle_host_transport_t* transport;
  pestle_comm_t* comm;
  pestle_thread_t thread;
  pestle_status_t status;
  int32_t rank, in, out;
  const int32_t* ranks;
} rank_t;

static void add_up(void* self) {
  rank_t* r = self;
  for (uint64_t i = 1; i <= 50 && !r->status; ++i) {
    pestle_collective_t op = {.struct_size = sizeof(op),
                              .kind = PESTLE_COLLECTIVE_ALL_REDUCE,
                              .dtype = PESTLE_I32,
                              .rank_count = 2,
                              .ranks = r->ranks,
                              .source = -1,
                              .target = -1,
                              .send = &r->in,
                              .receive = &r->out,
                              .count = 1,
                              .sequence = i,
                              .name = "all_reduce"};
    r->status = api->enqueue(r->transport, r->comm, NULL, &op, 1);
  }
}

// Two at once, of one transport, which is let go of while they work.
static void works(void** state) {
  (void)state;
  static const int32_t both[] = {0, 1};
  pestle_context_t* context = make_context();
  pestle_host_transport_t* transport;
  rank_t ranks[4];
  assert_ok(pestle_host_transport_create(context, &transport));
  name_t names[2] = {make_name(transport), make_name(transport)};
  assert_memory_not_equal(names[0].id, names[1].id, names[0].size);
  for (int32_t i = 0; i < 4; ++i) {
    pestle_comm_options_t options = options_of(&names[i % 2], i / 2, 2);
    ranks[i] = (rank_t){
        .transport = transport, .rank = i / 2, .in = i + 1, .ranks = both};
    assert_ok(api->create(transport, 0, &options, &ranks[i].comm));
  }
  pestle_host_transport_release(transport);
  for (int i = 0; i < 4; ++i)
    assert_ok(pestle_thread_start(add_up, &ranks[i], "r", &ranks[i].thread));
  for (int i = 0; i < 4; ++i) {
    pestle_thread_join(&ranks[i].thread);
    assert_ok(ranks[i].status);
    assert_int_equal(ranks[i].out, i % 2 ? 6 : 4);
    assert_int_equal(pestle_host_comm_bytes(ranks[i].comm), 50 * 4);
  }
  pestle_collective_t op = {.struct_size = sizeof(op), .name = "all_reduce"};
  int stream;
  assert_error(api->enqueue(transport, ranks[0].comm,
                            (pestle_device_stream_t*)(void*)&stream, &op, 1),
               UNSUPPORTED, "no streams");
  for (int i = 0; i < 4; ++i)
    api->destroy(transport, ranks[i].comm);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joins),
      cmocka_unit_test(works),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
