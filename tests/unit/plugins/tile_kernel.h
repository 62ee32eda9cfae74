// SPDX-License-Identifier: Apache-2.0
// A kernel of tiles as text, with one line changed, run by the ref backend, whose
// log is kept.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_TILE_KERNEL_H_
#define PESTLE_TESTS_UNIT_PLUGINS_TILE_KERNEL_H_

#include "base/half.h"
#include "unit/codegen/kir_test.h"

enum { LOG = 4096 };

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

static void put_lines(pestle_strbuf_t* text, const char* const* lines,
                      size_t count, const edit_t* edit) {
  int seen = 0;
  bool found = false;
  for (size_t i = 0; i < count; ++i) {
    const char* line = lines[i];
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

typedef struct tile_kernel_t {
  pestle_allocator_t memory;
  pestle_host_t host;
  const pestle_backend_t* ref;
  pestle_loaded_t* loaded;
  pestle_kir_builder_t kernel;
  pestle_blob_t artifact;
} tile_kernel_t;

static pestle_status_t load_kernel(tile_kernel_t* r, const char* const* lines,
                                   size_t count, const edit_t* edit) {
  pestle_strbuf_t text;
  pestle_status_t status = NULL;
  memset(r, 0, sizeof *r);
  r->memory = pestle_allocator_system();
  r->host = kir_test_host(&r->memory);
  r->host.log = keep_log;
  log_text[0] = 0;
  pestle_strbuf_init(r->memory, &text);
  put_lines(&text, lines, count, edit);
  assert_ok(pestle_kir_parse(r->memory, pestle_strbuf_cstr(&text), text.size,
                             "tiles", &r->kernel));
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

// The trap, or 0.
static int32_t run_kernel(const tile_kernel_t* r, void* const* buffers) {
  const pestle_kir_t* k = &r->kernel.view;
  pestle_cpu_entry_t entry;
  const void* self;
  pestle_allocator_t memory = r->memory;
  void* scratch = kir_test_alloc_(&memory, k->shared_bytes + 64);
  assert_ok(r->ref->device->cpu_entry(r->ref->self, r->loaded, &entry, &self));
  int32_t trap = entry(self, buffers, NULL, 0, k->group[0], scratch);
  kir_test_free_(&memory, scratch, k->shared_bytes + 64);
  return trap;
}

static void unload_kernel(tile_kernel_t* r) {
  r->ref->device->unload(r->ref->self, r->loaded);
  if (r->artifact.data)
    kir_test_free_(&r->memory, r->artifact.data, r->artifact.size);
  r->ref->deinit(r->ref->self);
  pestle_kir_deinit(&r->kernel);
}

typedef struct fault_t {
  const char* what;
  edit_t edit;
  // Of the log; where the order decides which fault is met first, of any. NULL: the
  // numbers are wrong.
  const char* words;
} fault_t;

// Whether the run with |f| planted shows it.
static void expect_fault(const fault_t* f, int32_t trap, bool wrong) {
  if (f->words ? !trap || !strstr(log_text, f->words) : !trap && !wrong) {
    fail_msg("%s: trap %d, numbers %s, log: %s", f->what, (int)trap,
             wrong ? "wrong" : "right", log_text);
  }
}

// The verifier's finding about |lines| with |edit|: |rule|; NULL: it has none.
static void expect_rule(const char* const* lines, size_t count,
                        const edit_t* edit, const char* rule) {
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_strbuf_t text;
  pestle_kir_builder_t k;
  pestle_strbuf_init(memory, &text);
  put_lines(&text, lines, count, edit);
  assert_ok(pestle_kir_parse(memory, pestle_strbuf_cstr(&text), text.size,
                             "tiles", &k));
  pestle_status_t status = pestle_kir_verify(&k.view);
  if (rule) {
    assert_error(status, INTERNAL, rule);
  } else {
    assert_ok(status);
  }
  pestle_kir_deinit(&k);
  pestle_strbuf_deinit(&text);
}

#endif  // PESTLE_TESTS_UNIT_PLUGINS_TILE_KERNEL_H_
