// SPDX-License-Identifier: Apache-2.0
// The ref backend's tiles: a product by warpgroups is right in many orders of what
// goes on by itself, and each way of being wrong that hardware would punish with a
// hang or now and then a wrong number is told at once.
#include "base/half.h"
#include "unit/codegen/kir_test.h"
#include "unit/plugins/ring_kernel.h"

enum { M = 320, N = 128, K = 320, LOG = 4096 };

static char log_text[LOG];

static void keep_log(void* self, int32_t level, const char* message) {
  (void)self, (void)level;
  size_t at = strlen(log_text);
  snprintf(log_text + at, sizeof log_text - at, "%s\n", message);
}

// --- A kernel, and what is planted in it ---

// The line that has |line|, counted from |nth| = 0 on, has |to| instead of |from|;
// |from| NULL: the line goes.
typedef struct edit_t {
  const char* line;
  int nth;
  const char *from, *to;
} edit_t;

static void put_lines(pestle_strbuf_t* text, const edit_t* edit) {
  int seen = 0;
  bool found = false;
  for (size_t i = 0; i < sizeof ring_lines / sizeof *ring_lines; ++i) {
    const char* line = ring_lines[i];
    if (!edit || !strstr(line, edit->line) || seen++ != edit->nth) {
      pestle_strbuf_append_c(text, line);
      pestle_strbuf_append_char(text, '\n');
      continue;
    }
    found = true;
    if (!edit->from) continue;
    const char* at = strstr(line, edit->from);
    assert_non_null(at);
    pestle_strbuf_append_bytes(text, line, (size_t)(at - line));
    pestle_strbuf_append_c(text, edit->to);
    pestle_strbuf_append_c(text, at + strlen(edit->from));
    pestle_strbuf_append_char(text, '\n');
  }
  assert_true(found || !edit);
}

typedef struct data_t {
  uint16_t a[M * K], b[K * N];
  float y[M * N], want[M * N];
} data_t;

static data_t* make_data(void) {
  data_t* d = calloc(1, sizeof *d);
  assert_non_null(d);
  for (int i = 0; i < M * K; ++i)
    d->a[i] = (uint16_t)pestle_float_encode(PESTLE_F16, i * 7 % 13 - 6);
  for (int i = 0; i < K * N; ++i)
    d->b[i] = (uint16_t)pestle_float_encode(PESTLE_F16, i * 5 % 11 - 5);
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < N; ++n) {
      float sum = 0;  // of whole numbers: exact in any order
      for (int k = 0; k < K; ++k) {
        sum += (float)((m * K + k) * 7 % 13 - 6) *
               (float)((k * N + n) * 5 % 11 - 5);
      }
      d->want[m * N + n] = sum;
    }
  }
  return d;
}

typedef struct loaded_ring_t {
  pestle_allocator_t memory;
  pestle_host_t host;
  const pestle_backend_t* ref;
  pestle_loaded_t* loaded;
  pestle_kir_builder_t kernel;
  pestle_blob_t artifact;
} loaded_ring_t;

static pestle_status_t load_ring(loaded_ring_t* r, const edit_t* edit) {
  pestle_strbuf_t text;
  pestle_status_t status = NULL;
  memset(r, 0, sizeof *r);
  r->memory = pestle_allocator_system();
  r->host = kir_test_host(&r->memory);
  r->host.log = keep_log;
  log_text[0] = 0;
  pestle_strbuf_init(r->memory, &text);
  put_lines(&text, edit);
  assert_ok(pestle_kir_parse(r->memory, pestle_strbuf_cstr(&text), text.size,
                             "ring", &r->kernel));
  pestle_strbuf_deinit(&text);
  r->ref = pestle_ref_backend_init(&r->host, &status);
  assert_ok(status);
  pestle_kernel_options_t options = {.struct_size = sizeof options};
  status = r->ref->target->compile(r->ref->self, &r->kernel.view, &options,
                                   &r->artifact);
  if (status) return status;
  return r->ref->device->load(r->ref->self, 0, r->artifact.data,
                              r->artifact.size, &r->loaded);
}

static int32_t run_ring(const loaded_ring_t* r, data_t* d) {
  const pestle_kir_t* k = &r->kernel.view;
  void* buffers[3] = {d->a, d->b, d->y};
  pestle_cpu_entry_t entry;
  const void* self;
  pestle_allocator_t memory = r->memory;
  void* scratch = kir_test_alloc_(&memory, k->shared_bytes + 64);
  memset(d->y, 0, sizeof d->y);
  assert_ok(r->ref->device->cpu_entry(r->ref->self, r->loaded, &entry, &self));
  int32_t trap = entry(self, buffers, NULL, 0, k->group[0], scratch);
  kir_test_free_(&memory, scratch, k->shared_bytes + 64);
  return trap;
}

static void unload_ring(loaded_ring_t* r) {
  r->ref->device->unload(r->ref->self, r->loaded);
  if (r->artifact.data)
    kir_test_free_(&r->memory, r->artifact.data, r->artifact.size);
  r->ref->deinit(r->ref->self);
  pestle_kir_deinit(&r->kernel);
}

// --- Right ---

// Each run has another order.
static void test_right(void** state) {
  (void)state;
  loaded_ring_t r;
  data_t* d = make_data();
  assert_ok(load_ring(&r, NULL));
  for (int run = 0; run < 6; ++run) {
    assert_int_equal(run_ring(&r, d), 0);
    assert_memory_equal(d->y, d->want, sizeof d->y);
  }
  assert_string_equal(log_text, "");
  unload_ring(&r);
  free(d);
}

// --- Faults ---

typedef struct fault_t {
  const char* what;
  edit_t edit;
  // Of the log; where the order decides which fault is met first, of any. NULL: the
  // numbers are wrong.
  const char* words;
} fault_t;

static const fault_t faults[] = {
    {"strips are not fenced",
     {"tile_fence", 0, NULL, NULL},
     "no fence for tiles after the write of lane"},
    {"barriers are not fenced",
     {"mbar_fence", 0, NULL, NULL},
     "no fence for tiles after the write of lane"},
    {"sums are not fenced",
     {"wgmma_fence", 0, NULL, NULL},
     "its sums were written and no wgmma_fence came since"},
    {"products are not waited for", {"wgmma_wait", 0, NULL, NULL}, "wait"},
    {"the slot is not given back",
     {"mbar_arrive", 0, NULL, NULL},
     "is stuck: no lane can go on"},
    {"the slot's parity is turned",
     {"madi %51, -1, %32", 0, "%51, -1, %32", "%51, 1, %0"},
     "is stuck: no lane can go on"},
    {"the tile's parity is turned",
     {"mbar_wait %91, %90", 0, "%90", "%32"},
     "used without a wait for the write of"},
    {"the tile is not waited for",
     {"mbar_wait %91, %90", 0, NULL, NULL},
     "shared memory"},
    {"the slot is not waited for",
     {"mbar_wait %53, %52", 0, NULL, NULL},
     "ref: kernel"},
    {"too few bytes",
     {"mbar_expect", 0, "24576", "16384"},
     "it expects too few bytes"},
    {"too many bytes",
     {"mbar_expect", 0, "24576", "24592"},
     "is stuck: no lane can go on"},
    {"a slot has more readers",
     {"mbar_init %9, 2", 0, "2", "3"},
     "is stuck: no lane can go on"},
    {"a slot has fewer readers",
     {"mbar_init %9, 2", 0, "2", "1"},
     "ref: kernel"},
    {"registers that are not there",
     {"registers 232", 0, "232", "240"},
     "is stuck: no lane can go on"},
    {"strips overtake their copies",
     {"tile_wait 1", 0, "1", "3"},
     "written without a wait for the read of instruction"},
    {"a barrier of a warpgroup is left out",
     {"sync %30, 128", 1, NULL, NULL},
     "of shared memory"},
    {"a barrier waits for too many",
     {"sync %30, 128", 0, "128", "288"},
     "is stuck: no lane can go on"},
    {"another swizzle",
     {"@map_a", 0, "[0, 2, 128,", "[0, 2, 64,"},
     "is no place for a box"},
    {"strips without a swizzle", {"xor %116", 0, "xor %116", "add %0"}, NULL},
    {"a transposed tile is none", {"wgmma @sums", 0, "393280", "262208"}, NULL},
    {"a map is longer than its tensor",
     {"@map_y", 0, "0, 320, 64,", "0, 384, 64,"},
     "the tensor map leaves its buffer"},
};

static void test_faults(void** state) {
  (void)state;
  data_t* d = make_data();
  for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
    const fault_t* f = &faults[i];
    loaded_ring_t r;
    assert_ok(load_ring(&r, &f->edit));
    int32_t trap = run_ring(&r, d);
    bool wrong = memcmp(d->y, d->want, sizeof d->y) != 0;
    if (f->words ? !trap || !strstr(log_text, f->words) : !trap && !wrong) {
      fail_msg("%s: trap %d, numbers %s, log: %s", f->what, (int)trap,
               wrong ? "wrong" : "right", log_text);
    }
    unload_ring(&r);
  }
  free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_right),
                                     cmocka_unit_test(test_faults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
