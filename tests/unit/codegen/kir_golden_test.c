// SPDX-License-Identifier: Apache-2.0
// tests/golden/kir/Inputs/NAME.kir: a kernel whose first note line says what is
// done with it, and NAME.kir.expected: what comes out. BLESS=1 rewrites.
//
//   // golden: finish          equal and dead instructions go
//   // golden: verify          the verifier's sentence
//   // golden: legalise WHAT   for a target without: no-math (transcendental
//                              rows), no-narrow (arithmetic on bf16, f16, f8),
//                              lanes-4 (more than four lanes)
//
// Each input is also printed and read back.
#include <dirent.h>

#include "unit/codegen/kir_test.h"

static char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  char* text = calloc(1, 1 << 16);
  size_t size = fread(text, 1, (1 << 16) - 1, file);
  text[size] = 0;
  fclose(file);
  return text;
}

static void lessen(const char* what, pestle_target_caps_t* caps) {
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  assert_ok(status);
  *caps = (pestle_target_caps_t){.struct_size = sizeof *caps};
  assert_ok(ref->target->describe(ref->self, NULL, caps));
  ref->deinit(ref->self);
  const uint32_t narrow = 1u << PESTLE_F16 | 1u << PESTLE_BF16 |
                          1u << PESTLE_F8E4M3FN | 1u << PESTLE_F8E5M2;
  for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    unsigned flags = pestle_op_info((pestle_op_t)op)->flags;
    uint32_t* bits = &caps->op_dtypes[PESTLE_KIR_SCALAR_BASE + op];
    if (strstr(what, "no-math") && flags & PESTLE_OP_FLAG_TRANS) *bits = 0;
    if (strstr(what, "no-narrow")) *bits &= ~narrow;
  }
  if (strstr(what, "lanes-4")) caps->max_lanes = 4;
}

// What the first line asks for, done; the text is the caller's to free.
static char* work(pestle_kir_builder_t* k, const char* what) {
  char* text = calloc(1, 1 << 16);
  if (strstr(what, "verify")) {
    pestle_status_t status = pestle_kir_verify(&k->view);
    pestle_status_format(status, text, (1 << 16) - 2);
    strcat(text, "\n");
    pestle_status_release(status);
  } else if (strstr(what, "finish")) {
    assert_ok(pestle_kir_finish(k));
    assert_ok(pestle_kir_verify(&k->view));
    strcpy(text, kir_test_text(&k->view));
  } else {
    pestle_target_caps_t caps;
    pestle_kir_builder_t legal;
    lessen(what, &caps);
    assert_ok(pestle_kir_verify(&k->view));
    assert_ok(
        pestle_kir_legalise(&k->view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
    assert_ok(pestle_kir_verify(&legal.view));
    strcpy(text, kir_test_text(&legal.view));
    pestle_kir_deinit(&legal);
  }
  return text;
}

static void round_trip(const pestle_kir_t* kernel) {
  pestle_kir_builder_t again;
  char* text = strdup(kir_test_text(kernel));
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "again", &again));
  assert_string_equal(kir_test_text(&again.view), text);
  assert_memory_equal(again.view.hash, kernel->hash, sizeof kernel->hash);
  pestle_kir_deinit(&again);
  free(text);
}

static bool check_file(const char* path) {
  char expected_path[1100], what[128];
  char* input = read_file(path);
  assert_non_null(input);
  snprintf(what, sizeof what, "%.*s", (int)strcspn(input, "\n"), input);
  snprintf(expected_path, sizeof expected_path, "%s.expected", path);
  pestle_kir_builder_t k;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), input, strlen(input),
                             path, &k));
  round_trip(&k.view);
  char* output = work(&k, what);
  char* expected = read_file(expected_path);
  bool same = expected && !strcmp(output, expected);
  if (!same && getenv("BLESS")) {
    FILE* file = fopen(expected_path, "wb");
    assert_non_null(file);
    fputs(output, file);
    fclose(file);
    same = true;
  }
  if (!same) {
    print_error("%s: expected\n%s\ngot\n%s\nBLESS=1 accepts it.\n", path,
                expected ? expected : "(nothing)", output);
  }
  free(expected);
  free(output);
  free(input);
  pestle_kir_deinit(&k);
  return same;
}

static void test_golden(void** state) {
  (void)state;
  char folder[512], path[1024];
  const char* root = getenv("PESTLE_SOURCE_DIR");
  snprintf(folder, sizeof folder, "%s/tests/golden/kir/Inputs",
           root ? root : ".");
  DIR* entries = opendir(folder);
  assert_non_null(entries);
  size_t count = 0, failed = 0;
  for (struct dirent* entry; (entry = readdir(entries));) {
    size_t size = strlen(entry->d_name);
    if (size < 5 || strcmp(entry->d_name + size - 4, ".kir")) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    failed += !check_file(path);
    ++count;
  }
  closedir(entries);
  assert_true(count > 0);
  assert_int_equal(failed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
