// SPDX-License-Identifier: Apache-2.0
// A backend of this program whose tables are wrong in one way each, and callers that
// ask for nothing: a sentence for each, the same when memory fails, and nothing left
// behind.
#include "pestle/plugin.h"
#include "pestle/version.h"
#include "test.h"
// Ours.
#include "pestle/runtime.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/registry.h"

// --- A backend that is right ---

static pestle_backend_abi_info_t info;
static pestle_backend_t backend;
static pestle_target_api_t target;
static pestle_device_api_t device;
static pestle_library_api_t library;
static pestle_collective_api_t collective;
static int32_t score;
static bool starts, ended;
static const pestle_host_t* host;
static const char* why;

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  (void)self, (void)cpu;
  out_caps->max_lanes = 1;
  return NULL;
}
static pestle_status_t toolchain_id(void* self, const char** out_text) {
  (void)self;
  *out_text = "none";
  return NULL;
}
static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  (void)self, (void)kernel, (void)options, (void)out_artifact;
  return NULL;
}
static pestle_status_t load(void* self, int32_t index, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  (void)self, (void)index, (void)artifact, (void)size, (void)out_loaded;
  return NULL;
}
static void unload(void* self, pestle_loaded_t* loaded) {
  (void)self, (void)loaded;
}
static pestle_status_t allocate(void* self, int32_t index, size_t size,
                                void** out_data) {
  (void)self, (void)index, (void)size, *out_data = NULL;
  return NULL;
}
static bool takes(void* self, const pestle_library_op_t* op) {
  (void)self, (void)op;
  return false;
}
static pestle_status_t run(void* self, int32_t index,
                           pestle_device_stream_t* stream,
                           const pestle_library_op_t* op) {
  (void)self, (void)index, (void)stream, (void)op;
  return NULL;
}
static pestle_status_t comm_id(void* self, uint8_t* out_id, size_t* size) {
  (void)self, (void)out_id, *size = 0;
  return NULL;
}
static pestle_status_t comm_create(void* self, int32_t index,
                                   const pestle_comm_options_t* options,
                                   pestle_comm_t** out_comm) {
  (void)self, (void)index, (void)options, *out_comm = NULL;
  return NULL;
}
static pestle_status_t comm_enqueue(void* self, pestle_comm_t* comm,
                                    pestle_device_stream_t* stream,
                                    const pestle_collective_t* ops,
                                    size_t count) {
  (void)self, (void)comm, (void)stream, (void)ops, (void)count;
  return NULL;
}
static pestle_status_t comm_poll(void* self, pestle_comm_t* comm) {
  (void)self, (void)comm;
  return NULL;
}
static void comm_abort(void* self, pestle_comm_t* comm, const char* reason) {
  (void)self, (void)comm, (void)reason;
}
static void comm_destroy(void* self, pestle_comm_t* comm) {
  (void)self, (void)comm;
}
static void comm_deregister(void* self, pestle_comm_t* comm, void* handle) {
  (void)self, (void)comm, (void)handle;
}
static void deinit(void* self) {
  (void)self;
  ended = true;
}

static const pestle_backend_abi_info_t* abi_info(void) {
  return starts ? &info : NULL;
}
static int32_t say_score(char* out, size_t capacity) {
  snprintf(out, capacity, "%s", why);
  return score;
}
static const pestle_backend_t* init(const pestle_host_t* given,
                                    pestle_status_t* out_status) {
  host = given;
  (void)out_status;
  return &backend;
}
static const pestle_backend_t* init_starved(const pestle_host_t* given,
                                            pestle_status_t* out_status) {
  *out_status = given->status_make(given->self, PESTLE_STATUS_OUT_OF_MEMORY,
                                   __FILE__, __LINE__, "none left");
  return NULL;
}
// A table beside a failure is not taken.
static const pestle_backend_t* init_both(const pestle_host_t* given,
                                         pestle_status_t* out_status) {
  *out_status = given->status_make(given->self, PESTLE_STATUS_UNAVAILABLE,
                                   __FILE__, __LINE__, "half a start");
  return &backend;
}

static void make_right(void) {
  starts = true, ended = false, score = 5, why = "";
  info =
      (pestle_backend_abi_info_t){.struct_size = sizeof(info),
                                  .abi_major = PESTLE_ABI_MAJOR,
                                  .abi_minor = PESTLE_ABI_MINOR,
                                  .sanitizers = PESTLE_SANITIZERS_,
                                  .kir_abi_major = PESTLE_KIR_ABI_MAJOR,
                                  .sizeof_inst = sizeof(pestle_kir_inst_t),
                                  .sizeof_buffer = sizeof(pestle_kir_buffer_t),
                                  .sizeof_kir = sizeof(pestle_kir_t),
                                  .build_id = "tables-1",
                                  .name = "tables"};
  target = (pestle_target_api_t){.struct_size = sizeof(target),
                                 .describe = describe,
                                 .toolchain_id = toolchain_id,
                                 .compile = compile};
  device = (pestle_device_api_t){
      .struct_size = sizeof(device), .load = load, .unload = unload};
  library = (pestle_library_api_t){
      .struct_size = sizeof(library), .takes = takes, .run = run};
  collective = (pestle_collective_api_t){.struct_size = sizeof(collective),
                                         .id = comm_id,
                                         .create = comm_create,
                                         .enqueue = comm_enqueue,
                                         .poll = comm_poll,
                                         .abort = comm_abort,
                                         .destroy = comm_destroy};
  backend = (pestle_backend_t){.struct_size = sizeof(backend),
                               .name = "tables",
                               .device_type = PESTLE_DEVICE_CUDA,
                               .score = 5,
                               .device_count = 1,
                               .target = &target,
                               .device = &device,
                               .deinit = deinit,
                               .library = &library,
                               .collective = &collective};
}

// --- Wrong in one way each ---

static char long_id[300];

#define SPOIL(name, statement) \
  static void name(void) {     \
    statement;                 \
  }
SPOIL(none, (void)0)
SPOIL(no_info, starts = false)
SPOIL(short_info, info.struct_size = 8)
SPOIL(endless_info, info.struct_size = ((size_t)1 << 16) + 1)
SPOIL(other_major, ++info.abi_major)
SPOIL(with_asan, info.sanitizers = PESTLE_SANITIZERS_ ^ 1u)
SPOIL(with_tsan, info.sanitizers = PESTLE_SANITIZERS_ ^ 2u)
SPOIL(with_other, info.sanitizers = PESTLE_SANITIZERS_ ^ 8u)
SPOIL(other_kir, ++info.kir_abi_major)
SPOIL(other_inst, ++info.sizeof_inst)
SPOIL(other_buffer, --info.sizeof_buffer)
SPOIL(longer_kir, ++info.sizeof_kir)
SPOIL(no_kir, info.sizeof_kir = 0)
SPOIL(no_name, info.name = NULL)
SPOIL(empty_name, info.name = "")
SPOIL(no_id, info.build_id = NULL)
SPOIL(digit_name, info.name = "7seas")
SPOIL(line_name, info.name = "_x")
SPOIL(sign_name, info.name = "a-b")
SPOIL(brace_name, info.name = "a{")
SPOIL(long_name, info.name = "a23456789012345678901234567890123")
SPOIL(cpu_name, info.name = "cpu")
SPOIL(gpu_name, info.name = "gpu")
SPOIL(software_name, info.name = "software")
SPOIL(endless_id, info.build_id = memset(long_id, 'i', sizeof(long_id)))
SPOIL(zero_score, score = 0)
SPOIL(bad_score, (score = -3, why = "no such card"))
SPOIL(short_table, backend.struct_size = 16)
SPOIL(endless_table, backend.struct_size = (size_t)1 << 40)
SPOIL(short_target, target.struct_size = 8)
SPOIL(endless_target, target.struct_size = ((size_t)1 << 16) + 8)
SPOIL(no_describe, target.describe = NULL)
SPOIL(no_toolchain, target.toolchain_id = NULL)
SPOIL(no_compile, target.compile = NULL)
SPOIL(short_device, device.struct_size = 16)
SPOIL(no_load, device.load = NULL)
SPOIL(no_unload, device.unload = NULL)
SPOIL(no_free, device.allocate = allocate)
SPOIL(short_library, library.struct_size = 8)
SPOIL(no_takes, library.takes = NULL)
SPOIL(no_run, library.run = NULL)
SPOIL(short_collective, collective.struct_size = 40)
SPOIL(no_comm_id, collective.id = NULL)
SPOIL(no_create, collective.create = NULL)
SPOIL(no_enqueue, collective.enqueue = NULL)
SPOIL(half_pair, collective.deregister_memory = comm_deregister)
SPOIL(no_poll, collective.poll = NULL)
SPOIL(no_abort, collective.abort = NULL)
SPOIL(no_destroy, collective.destroy = NULL)
SPOIL(no_table_name, backend.name = NULL)
SPOIL(other_table_name, backend.name = "table")
SPOIL(target_alone_named, (backend.name = "table", backend.device = NULL))
SPOIL(device_alone_named, (backend.name = "table", backend.target = NULL))
SPOIL(nothing_in_it, (backend.target = NULL, backend.device = NULL,
                      backend.library = NULL, backend.collective = NULL))
SPOIL(no_type, backend.device_type = 0)
SPOIL(odd_type, backend.device_type = 1000)
SPOIL(many_devices, backend.device_count = 1025)
SPOIL(few_devices, backend.device_count = -1)
SPOIL(no_table_score, backend.score = 0)
SPOIL(alone, (info.flags = PESTLE_BACKEND_TARGET_ALONE, backend.score = 0,
              backend.device_count = 0))
SPOIL(alone_wrong,
      (info.flags = PESTLE_BACKEND_TARGET_ALONE, backend.device_count = -2))
// Right all the same.
SPOIL(old_info,
      (info.struct_size = offsetof(pestle_backend_abi_info_t, host_build_id),
       info.host_build_id = "never looked at"))
SPOIL(alone_ready,
      (info.flags = PESTLE_BACKEND_TARGET_ALONE, backend.device_count = 0))
SPOIL(half_target, backend.device = NULL)
SPOIL(half_device, backend.target = NULL)
SPOIL(library_alone,
      (backend.target = NULL, backend.device = NULL, backend.collective = NULL))
SPOIL(other_id, info.host_build_id = "another build")
SPOIL(software_like, info.name = backend.name = "softwares")
SPOIL(longest_name,
      info.name = backend.name = "a2345678901234567890123456789_12")

#define LOADED PESTLE_STATUS_OK
#define WRONG PESTLE_STATUS_INCOMPATIBLE
#define DEAD PESTLE_STATUS_UNAVAILABLE

static const struct {
  void (*spoil)(void);
  pestle_status_code_t code;
  const char* text;
} cases[] = {
    {no_info, WRONG, "pestle_backend_abi_info gave NULL; expected its static"},
    {short_info, WRONG, "is too short: expected 56 bytes, found 8"},
    {endless_info, WRONG, "it has 65537 bytes; expected at most 65536"},
    {other_major, WRONG, "major version differs: expected 1, found 2"},
    {with_asan, WRONG, "build both with the same preset"},
    {with_tsan, WRONG, "build both with the same preset"},
    {with_other, WRONG, "build both with the same preset"},
    {other_kir, WRONG, "the Kernel IR's major version differs"},
    {other_inst, WRONG, "size of pestle_kir_inst_t differs: expected 24"},
    {other_buffer, WRONG, "size of pestle_kir_buffer_t differs: expected 40"},
    {longer_kir, WRONG, "the size of pestle_kir_t differs"},
    {no_kir, WRONG, "the size of pestle_kir_t differs"},
    {no_name, WRONG, "names no backend or build id"},
    {empty_name, WRONG, "names no backend or build id"},
    {no_id, WRONG, "names no backend or build id"},
    {digit_name, WRONG, "'7seas' is no name for a backend"},
    {line_name, WRONG, "'_x' is no name for a backend"},
    {sign_name, WRONG, "'a-b' is no name for a backend"},
    {brace_name, WRONG, "'a{' is no name for a backend"},
    {long_name, WRONG, "'a23456789012345678901234567890123' is no name"},
    {cpu_name, WRONG, "'cpu' is no name for a backend"},
    {gpu_name, WRONG, "'gpu' is no name for a backend"},
    {software_name, WRONG, "'software' is no name for a backend"},
    {endless_id, WRONG, "its build id does not end within 256 bytes"},
    {zero_score, DEAD, "its score is 0, without a reason"},
    {bad_score, DEAD, "not for this machine: no such card"},
    {short_table, WRONG, "pestle_backend_t differs: expected 56, found 16"},
    {endless_table, WRONG, "pestle_backend_t differs: expected 56"},
    {short_target, WRONG, "pestle_target_api_t differs: expected 32, found 8"},
    {endless_target, WRONG, "pestle_target_api_t differs: expected 32"},
    {no_describe, WRONG, "target.describe is NULL"},
    {no_toolchain, WRONG, "target.toolchain_id is NULL"},
    {no_compile, WRONG, "target.compile is NULL"},
    {short_device, WRONG, "pestle_device_api_t differs: expected 24, found 16"},
    {no_load, WRONG, "device.load is NULL"},
    {no_unload, WRONG, "device.unload is NULL"},
    {no_free, WRONG, "device.deallocate, beside allocate, is NULL"},
    {short_library, WRONG, "pestle_library_api_t differs: expected 24"},
    {no_takes, WRONG, "library.takes is NULL"},
    {no_run, WRONG, "library.run is NULL"},
    {short_collective, WRONG, "pestle_collective_api_t differs: expected 80"},
    {no_comm_id, WRONG, "collective.id is NULL"},
    {no_create, WRONG, "collective.create is NULL"},
    {no_enqueue, WRONG, "collective.enqueue is NULL"},
    {half_pair, WRONG, "collective.register_memory, beside its pair, is NULL"},
    {no_poll, WRONG, "collective.poll is NULL"},
    {no_abort, WRONG, "collective.abort is NULL"},
    {no_destroy, WRONG, "collective.destroy is NULL"},
    {no_table_name, WRONG, "a table named '' with something in it"},
    {other_table_name, WRONG, "a table named 'table' with something in it"},
    {target_alone_named, WRONG, "a table named 'table' with something in it"},
    {device_alone_named, WRONG, "a table named 'table' with something in it"},
    {nothing_in_it, WRONG, "a table named 'tables' with neither half"},
    {no_type, WRONG, "device type 0 is none that this Pestle knows"},
    {odd_type, WRONG, "device type 1000 is none that this Pestle knows"},
    {many_devices, WRONG, "it has 1025 devices; expected at most 1024"},
    {few_devices, WRONG, "its score is 5, with -1 devices"},
    {no_table_score, WRONG, "its score is 0, with 1 devices"},
    {alone, DEAD, "it has started, but found no device"},
    {alone_wrong, WRONG, "its score is 5, with -2 devices"},
    {none, LOADED, NULL},
    {old_info, LOADED, NULL},
    {alone_ready, LOADED, NULL},
    {half_target, LOADED, NULL},
    {half_device, LOADED, NULL},
    {library_alone, LOADED, NULL},
    {other_id, LOADED, NULL},
    {software_like, LOADED, NULL},
    {longest_name, LOADED, NULL},
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

// |memory| may be NULL.
static pestle_context_t* open_context(pestle_test_allocator_t* memory) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .backend_path = "/nonexistent"};
  if (memory) options.allocator = pestle_test_allocator(memory);
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static void test_cases(void** state) {
  (void)state;
  for (size_t i = 0; i < CASES; ++i) {
    make_right();
    cases[i].spoil();
    pestle_context_t* context = open_context(NULL);
    pestle_status_t status =
        pestle_context_add_backend(context, abi_info, say_score, init);
    const char* message = pestle_status_message(status);
    bool is_right =
        pestle_status_code(status) == cases[i].code &&
        (!cases[i].text || (strstr(message, cases[i].text) &&
                            strstr(message, "the linked-in backend: ")));
    if (!is_right)
      print_error("case %zu: '%s', expected '%s'\n", i, message,
                  cases[i].text ? cases[i].text : "");
    assert_true(is_right);
    pestle_status_release(status);
    // It stays as a row with its reason; the next one of its name is free to start.
    size_t rows = pestle_context_backend_count(context);
    bool runs = !cases[i].code;
    assert_int_equal(pestle_context_backend(context, info.name) != NULL,
                     runs && info.name);
    make_right();
    status = pestle_context_add_backend(context, abi_info, say_score, init);
    bool taken = runs && strcmp(info.name, "tables") == 0 &&
                 pestle_status_code(status) == PESTLE_STATUS_INCOMPATIBLE;
    if (!taken) assert_int_equal(pestle_status_code(status), 0);
    pestle_status_release(status);
    assert_true(pestle_context_backend_count(context) >= rows);
    pestle_context_release(context);
  }
}

// Whatever was refused behind its start is ended.
static void test_ends(void** state) {
  (void)state;
  static void (*const started[])(void) = {no_describe, no_takes, odd_type,
                                          no_table_score};
  for (size_t i = 0; i < sizeof(started) / sizeof(*started); ++i) {
    make_right();
    started[i]();
    pestle_context_t* context = open_context(NULL);
    assert_code(pestle_context_add_backend(context, abi_info, NULL, init),
                INCOMPATIBLE);
    assert_true(ended);
    pestle_context_release(context);
  }
  make_right();
  pestle_context_t* context = open_context(NULL);
  assert_code(pestle_context_add_backend(context, abi_info, NULL, init_starved),
              OUT_OF_MEMORY);
  assert_error(pestle_context_add_backend(context, abi_info, NULL, init_both),
               UNAVAILABLE, "cannot start: UNAVAILABLE: half a start");
  assert_false(ended);
  pestle_context_release(context);
}

static void test_memory(void** state) {
  (void)state;
  for (size_t i = 0; i < CASES; ++i) {
    for (size_t k = 1;; ++k) {
      make_right();
      cases[i].spoil();
      pestle_test_allocator_t memory;
      pestle_test_allocator_init(&memory, 0);
      pestle_context_t* context = open_context(&memory);
      atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
      pestle_status_t status =
          pestle_context_add_backend(context, abi_info, say_score, init);
      bool failed = pestle_test_allocator_failed(&memory);
      if (failed) {
        assert_code(status, OUT_OF_MEMORY);
      } else {
        assert_int_equal(pestle_status_code(status), cases[i].code);
        pestle_status_release(status);
      }
      pestle_context_release(context);
      pestle_test_allocator_check(&memory);
      if (!failed) break;
    }
  }
}

// --- What a plugin says of itself ---

static void test_identity(void** state) {
  (void)state;
  const char* own = pestle_build_id();
  const size_t whole = sizeof(info);
  const size_t first = offsetof(pestle_backend_abi_info_t, host_build_id);
  const struct {
    const char *build, *host;
    size_t size;
    int32_t type;
    uint32_t flags;
    bool cpu_only;
    bool is_own, is_target, is_put_off;
  } rows[] = {
      {"a", NULL, whole, 0, 0, false, false, false, false},
      {own, NULL, whole, 0, 0, false, true, false, false},
      {"a", own, whole, 0, 0, false, true, false, false},
      {"a", "b", whole, 0, 0, false, false, false, false},
      // It was built before there was more to say.
      {"a", own, first, 2, 1, true, false, false, false},
      {"a", "b", whole, 0, PESTLE_BACKEND_TARGET_ALONE, false, false, true,
       false},
      {"a", "b", whole, 0, 2, false, false, false, false},
      {"a", "b", whole, PESTLE_DEVICE_CUDA, 0, true, false, false, true},
      {"a", "b", whole, PESTLE_DEVICE_CUDA, 0, false, false, false, false},
      {"a", "b", whole, PESTLE_DEVICE_CPU, 0, true, false, false, false},
      {"a", "b", whole, 0, 0, true, false, false, false},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    pestle_arena_t arena;
    pestle_plugin_t* plugin;
    pestle_arena_init(pestle_allocator_system(), &arena);
    make_right();
    info.build_id = rows[i].build, info.host_build_id = rows[i].host;
    info.struct_size = rows[i].size, info.flags = rows[i].flags;
    info.device_type = rows[i].type;
    assert_ok(pestle_plugin_probe_static(&arena, abi_info, say_score, init,
                                         rows[i].cpu_only, &plugin));
    bool is_right = plugin->is_own == rows[i].is_own &&
                    plugin->is_target == rows[i].is_target &&
                    plugin->is_put_off == rows[i].is_put_off;
    if (!is_right) print_error("row %zu\n", i);
    assert_true(is_right);
    // Who is put off is not asked for its score.
    assert_int_equal(plugin->score, rows[i].is_put_off ? 0 : 5);
    pestle_arena_deinit(&arena);
  }
}

// A file's name says the backend's, and which of its variants it is.
static void test_labels(void** state) {
  (void)state;
  static const char* const rows[][3] = {
      {"/a/libpestle-cuda.so", "cuda", "cuda"},
      {"/a/libpestle-cuda-v13.so", "cuda", "cuda-v13"},
      {"libpestle-cuda.v13.so", "cuda", "cuda.v13"},
      {"/a-b.c/libpestle-cuda.so.1", "cuda", "cuda.so.1"},
      {"/a/other.so", "other", "other"},
      {"/a/-x.so", "", "-x"},
      {"/a/libpestle-.so", "", ""},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    pestle_arena_t arena;
    pestle_plugin_t* plugin;
    pestle_arena_init(pestle_allocator_system(), &arena);
    assert_ok(pestle_plugin_row(&arena, rows[i][0], &plugin));
    assert_string_equal(plugin->path, rows[i][0]);
    assert_string_equal(plugin->name, rows[i][1]);
    assert_string_equal(plugin->label, rows[i][2]);
    pestle_arena_deinit(&arena);
  }
}

// One that works without a device is no target any more once it has one, and none
// without a compiler.
static void test_targets(void** state) {
  (void)state;
  pestle_device_t* found;
  for (int i = 0; i < 3; ++i) {
    pestle_context_t* context = open_context(NULL);
    pestle_backend_info_t row = {.struct_size = sizeof(row)};
    make_right();
    info.flags = PESTLE_BACKEND_TARGET_ALONE;
    score = i == 0 ? 5 : 0;
    if (i) backend.score = backend.device_count = 0;
    if (i == 2) backend.target = NULL;
    pestle_status_t status =
        pestle_context_add_backend(context, abi_info, say_score, init);
    assert_int_equal(pestle_status_code(status), i ? DEAD : LOADED);
    pestle_status_release(status);
    size_t last = pestle_context_backend_count(context) - 1;
    for (size_t k = 0; k <= last; ++k) {
      assert_ok(pestle_context_backend_info(context, k, &row));
      if (!strcmp(row.name, "tables")) break;
    }
    assert_string_equal(row.name, "tables");
    assert_int_equal(row.is_target, i != 0);
    status = pestle_context_target(context, "tables", &found);
    if (i == 2) {
      assert_error(status, UNAVAILABLE, "found no device");
    } else {
      assert_ok(status);
      assert_int_equal(pestle_device_is_target(found), i == 1);
    }
    pestle_context_release(context);
  }
}

// --- What a target says of itself ---

static void test_caps(void** state) {
  (void)state;
  static const struct {
    pestle_target_caps_t caps;
    const char* text;
  } rows[] = {
      {{.max_lanes = 1}, NULL},
      {{.max_lanes = 0}, "with max_lanes 0; expected at least 1"},
      {{.max_lanes = 1, .vector_bytes = 1024}, NULL},
      {{.max_lanes = 1, .vector_bytes = 48}, "vector_bytes 48; expected 0 or"},
      {{.max_lanes = 1, .vector_bytes = 2048}, "vector_bytes 2048; expected"},
      {{.max_lanes = 1, .subgroup = 64}, NULL},
      {{.max_lanes = 1, .subgroup = 3}, "subgroup 3; expected 0 or a power"},
      {{.max_lanes = 1, .subgroup = 4096}, "subgroup 4096; expected 0 or a"},
      {{.max_lanes = 1, .intrinsic_count = 16}, NULL},
      {{.max_lanes = 1, .intrinsic_count = 17}, "intrinsic_count 17; expected"},
      {{.max_lanes = 1, .flags = PESTLE_TARGET_LANES}, "max_group_lanes 0"},
      {{.max_lanes = 1, .flags = PESTLE_TARGET_LANES, .max_group_lanes = 1},
       NULL},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    pestle_status_t status = pestle_plugin_check_caps(&rows[i].caps, "odd");
    if (!rows[i].text) {
      assert_ok(status);
      continue;
    }
    assert_non_null(strstr(pestle_status_message(status), "backend 'odd'"));
    assert_error(status, INCOMPATIBLE, rows[i].text);
  }
}

// --- Callers that give nothing ---

static void test_callers(void** state) {
  (void)state;
  pestle_context_t* context = open_context(NULL);
  pestle_backend_info_t row = {.struct_size = sizeof(row)};
  pestle_backend_filter_t filter = {.struct_size = 0};
  assert_error(pestle_context_load_backends(NULL), INVALID_ARGUMENT,
               "a context");
  assert_error(pestle_context_load_all(NULL, NULL), INVALID_ARGUMENT,
               "a context");
  assert_error(pestle_context_load_all(context, &filter), INVALID_ARGUMENT,
               "pestle_backend_filter_t.struct_size is not set");
  filter = (pestle_backend_filter_t){.struct_size = sizeof(filter),
                                     .allowed_count = 1};
  assert_error(pestle_context_load_all(context, &filter), INVALID_ARGUMENT,
               "the filter counts globs, but has none");
  filter.allowed_count = 0, filter.blocked_count = 1;
  assert_error(pestle_context_load_all(context, &filter), INVALID_ARGUMENT,
               "the filter counts globs, but has none");
  assert_error(pestle_context_load_best(NULL, "x"), INVALID_ARGUMENT,
               "a context and a backend's name");
  assert_code(pestle_context_load_best(context, NULL), INVALID_ARGUMENT);
  assert_code(pestle_context_load_best(context, ""), INVALID_ARGUMENT);
  assert_error(pestle_context_load_best(context, "moon"), NOT_FOUND,
               "libpestle-moon[-VARIANT].so");
  assert_code(pestle_context_load_backend(NULL, "x"), INVALID_ARGUMENT);
  assert_error(pestle_context_load_backend(context, NULL), INVALID_ARGUMENT,
               "is empty");
  assert_code(pestle_context_load_backend(context, ""), INVALID_ARGUMENT);
  assert_error(pestle_context_load_backend(context, "/no/such.so"), NOT_FOUND,
               "there is no backend file '/no/such.so'");
  assert_code(pestle_context_add_backend(NULL, abi_info, NULL, init),
              INVALID_ARGUMENT);
  assert_code(pestle_context_add_backend(context, NULL, NULL, init),
              INVALID_ARGUMENT);
  assert_code(pestle_context_add_backend(context, abi_info, NULL, NULL),
              INVALID_ARGUMENT);
  assert_int_equal(pestle_context_backend_count(NULL), 0);
  assert_code(pestle_context_backend_info(NULL, 0, &row), INVALID_ARGUMENT);
  assert_code(pestle_context_backend_info(context, 0, NULL), INVALID_ARGUMENT);
  row.struct_size = 0;
  assert_error(pestle_context_backend_info(context, 0, &row), INVALID_ARGUMENT,
               "struct_size is not set");
  row.struct_size = sizeof(row) + 64;
  struct {
    pestle_backend_info_t info;
    char behind[64];
  } newer = {.info = {.struct_size = sizeof(newer)}};
  memset(newer.behind, 7, sizeof(newer.behind));
  assert_ok(pestle_context_backend_info(context, 0, &newer.info));
  assert_string_equal(newer.info.name, "ref");
  for (size_t i = 0; i < sizeof(newer.behind); ++i)
    assert_int_equal(newer.behind[i], 7);
  assert_error(pestle_context_backend_info(context, 99, &newer.info), NOT_FOUND,
               "there is no backend 99 of ");
  assert_null(pestle_context_backend(NULL, "ref"));
  assert_null(pestle_context_backend(context, NULL));
  assert_null(pestle_context_backend(context, "moon"));
  assert_int_equal(pestle_context_device_count(NULL, "cpu"), 0);
  assert_int_equal(pestle_context_device_count(context, NULL), 0);
  assert_int_equal(pestle_context_device_count(context, "ref"), 1);
  assert_int_equal(pestle_device_index(NULL), -1);
  assert_int_equal(pestle_context_search_path_count(NULL), 0);
  assert_null(pestle_context_search_path(context, 9));
  static const char* const folders[] = {"/a", ""};
  assert_code(pestle_context_set_search_paths(NULL, folders, 1),
              INVALID_ARGUMENT);
  assert_code(pestle_context_set_search_paths(context, NULL, 1),
              INVALID_ARGUMENT);
  assert_error(pestle_context_set_search_paths(context, folders, 2),
               INVALID_ARGUMENT, "search path 1 of 2 is empty");
  assert_error(
      pestle_context_set_search_paths(context, (const char* const[]){NULL}, 1),
      INVALID_ARGUMENT, "search path 0 of 1 is empty");
  assert_ok(pestle_context_set_search_paths(context, folders, 1));
  assert_string_equal(pestle_context_search_path(context, 0), "/a");
  pestle_context_release(context);
}

// --- Filters ---

static bool refuse_tables(void* user, const pestle_candidate_t* candidate) {
  ++*(int*)user;
  assert_ptr_equal(candidate->abi_info, &info);
  return strcmp(candidate->name, "tables") != 0;
}

// A filter is asked of linked-in backends too, less the built-in fallback.
static void test_filters(void** state) {
  (void)state;
  static const struct {
    const char *allowed, *blocked, *text;
  } rows[] = {
      {"tab*s", NULL, ""},
      {NULL, "?ables", "'tables' is blocked by the filter's '?ables'"},
      {"chairs", NULL,
       "'tables' is none of the 1 names that the filter allows"},
      {"tables", "table", ""},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    pestle_arena_t arena;
    pestle_arena_init(pestle_allocator_system(), &arena);
    pestle_plugin_t* plugin;
    make_right();
    assert_ok(pestle_plugin_probe_static(&arena, abi_info, NULL, init, false,
                                         &plugin));
    const char* allowed[] = {NULL, rows[i].allowed};
    const char* blocked[] = {NULL, rows[i].blocked};
    pestle_backend_filter_t filter = {.struct_size = sizeof(filter),
                                      .allowed = allowed + 1,
                                      .allowed_count = rows[i].allowed != NULL,
                                      .blocked = blocked,
                                      .blocked_count = 2};
    assert_ok(pestle_plugin_filter_name(NULL, &arena, plugin));
    assert_ok(pestle_plugin_filter_name(&filter, &arena, plugin));
    assert_int_equal(plugin->is_refused, *rows[i].text != 0);
    assert_true(!*rows[i].text || strstr(plugin->reason, rows[i].text));
    int calls = 0;
    filter.accept = refuse_tables, filter.user = &calls;
    assert_ok(pestle_plugin_filter_candidate(NULL, &arena, plugin));
    assert_ok(pestle_plugin_filter_candidate(&filter, &arena, plugin));
    // Who is refused by name is not asked about.
    assert_int_equal(calls, !*rows[i].text);
    assert_true(plugin->is_refused);
    assert_int_equal(plugin->verdict, PESTLE_VERDICT_FILTERED);
    // Nor is it judged again: it keeps its reason.
    const char* reason = plugin->reason;
    allowed[1] = "nobody", filter.allowed_count = 1;
    assert_ok(pestle_plugin_filter_name(&filter, &arena, plugin));
    assert_ptr_equal(plugin->reason, reason);
    plugin->is_refused = false, plugin->is_built_in = true;
    assert_ok(pestle_plugin_filter_name(&filter, &arena, plugin));
    assert_ok(pestle_plugin_filter_candidate(&filter, &arena, plugin));
    assert_false(plugin->is_refused);
    pestle_arena_deinit(&arena);
  }
}

// --- What is found among several ---

static pestle_backend_t second;

static const pestle_backend_abi_info_t* second_info(void) {
  static pestle_backend_abi_info_t other;
  other = info;
  other.name = "second";
  return &other;
}
static const pestle_backend_t* second_init(const pestle_host_t* given,
                                           pestle_status_t* out_status) {
  (void)given, (void)out_status;
  return &second;
}

// Ops go to the library with the better score first, of any backend of the CPU, and on
// other devices to the backend's own.
static void test_libraries(void** state) {
  (void)state;
  pestle_context_t* context = open_context(NULL);
  pestle_device_t *ref, *cuda;
  const char* id = "?";
  assert_null(pestle_device_library(NULL, 0, &id));
  assert_string_equal(id, "");
  assert_null(pestle_device_library(NULL, 0, NULL));
  assert_ok(pestle_context_device(context, "ref", &ref));
  assert_null(pestle_device_library(ref, 0, &id));
  make_right();
  backend.device_type = PESTLE_DEVICE_CPU;
  second = backend;
  second.name = "second", second.score = 9;
  assert_ok(pestle_context_add_backend(context, abi_info, NULL, init));
  assert_ptr_equal(pestle_device_library(ref, 0, &id), &backend);
  assert_string_equal(id, "tables tables-1");
  assert_null(pestle_device_library(ref, 1, NULL));
  assert_ok(
      pestle_context_add_backend(context, second_info, NULL, second_init));
  assert_ptr_equal(pestle_device_library(ref, 0, NULL), &second);
  assert_ptr_equal(pestle_device_library(ref, 1, &id), &backend);
  assert_null(pestle_device_library(ref, 2, &id));
  assert_string_equal(id, "");
  pestle_context_release(context);
  // Equal scores: the first; and a GPU has no other's.
  context = open_context(NULL);
  make_right();
  second = backend;
  second.name = "second", second.device_type = PESTLE_DEVICE_CPU;
  assert_ok(pestle_context_add_backend(context, abi_info, NULL, init));
  assert_ok(
      pestle_context_add_backend(context, second_info, NULL, second_init));
  assert_ok(pestle_context_device(context, "ref", &ref));
  assert_ok(pestle_context_device(context, "tables", &cuda));
  assert_ptr_equal(pestle_device_library(cuda, 0, NULL), &backend);
  assert_null(pestle_device_library(cuda, 1, NULL));
  assert_ptr_equal(pestle_device_library(ref, 0, NULL), &second);
  assert_null(pestle_device_library(ref, 1, NULL));
  pestle_context_release(context);
}

// The best of those that offer to stand in for another backend of their type.
static void test_fallbacks(void** state) {
  (void)state;
  pestle_context_t* context = open_context(NULL);
  make_right();
  second = backend;
  second.name = "second", second.score = 9;
  assert_ok(pestle_context_add_backend(context, abi_info, NULL, init));
  assert_null(pestle_registry_fallback(&context->registry, PESTLE_DEVICE_CUDA));
  pestle_context_release(context);
  // Without a compiler none can.
  context = open_context(NULL);
  make_right();
  backend.flags = PESTLE_BACKEND_FALLBACK, backend.target = NULL;
  assert_ok(pestle_context_add_backend(context, abi_info, NULL, init));
  assert_null(pestle_registry_fallback(&context->registry, PESTLE_DEVICE_CUDA));
  pestle_context_release(context);
  for (int first_is_better = 0; first_is_better < 2; ++first_is_better) {
    context = open_context(NULL);
    make_right();
    backend.flags = second.flags = PESTLE_BACKEND_FALLBACK;
    backend.score = first_is_better ? 20 : 5;
    assert_ok(pestle_context_add_backend(context, abi_info, NULL, init));
    assert_ok(
        pestle_context_add_backend(context, second_info, NULL, second_init));
    const pestle_device_t* found =
        pestle_registry_fallback(&context->registry, PESTLE_DEVICE_CUDA);
    assert_ptr_equal(found->backend, first_is_better ? &backend : &second);
    assert_null(
        pestle_registry_fallback(&context->registry, PESTLE_DEVICE_METAL));
    pestle_context_release(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),     cmocka_unit_test(test_ends),
      cmocka_unit_test(test_memory),    cmocka_unit_test(test_identity),
      cmocka_unit_test(test_labels),    cmocka_unit_test(test_targets),
      cmocka_unit_test(test_caps),      cmocka_unit_test(test_callers),
      cmocka_unit_test(test_filters),   cmocka_unit_test(test_libraries),
      cmocka_unit_test(test_fallbacks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
