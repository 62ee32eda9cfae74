// SPDX-License-Identifier: Apache-2.0
// golden/PASS/CASE.mlir: a module, a line "// -----", and what pass PASS makes
// of it. Each case is also verified, sent through text and binary, and
// evaluated before and after. "// options: strict no-fuse" in a comment sets
// options. BLESS=1 writes what comes out.
#include "ir/sharding.h"
#include "passes_test.h"

#include <dirent.h>

#define SEPARATOR "// -----\n"

static char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char* text = malloc(size + 1);
  assert_int_equal(fread(text, 1, size, file), size);
  text[size] = 0;
  fclose(file);
  return text;
}

static void write_file(const char* path, const char* input, size_t input_size,
                       const char* output) {
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  fwrite(input, 1, input_size, file);
  fprintf(file, "%s%s", SEPARATOR, output);
  fclose(file);
}

static bool has_option(const char* input, const char* name) {
  const char* line = strstr(input, "// options:");
  if (!line) return false;
  const char* end = strchr(line, '\n');
  const char* found = strstr(line, name);
  return found && found < end;
}

static bool bless(void) {
  const char* value = getenv("BLESS");
  return value && !strcmp(value, "1");
}

static bool check_case(pestle_context_t* context, const char* pass,
                       const char* path) {
  char* text = read_file(path);
  char* expected = strstr(text, SEPARATOR);
  size_t input_size = expected ? (size_t)(expected - text) : strlen(text);
  pestle_module_t* module = NULL;
  assert_ok(pestle_module_parse(context, text, input_size, path, &module));
  pestle_compile_options_t options = test_options(pass);
  char* input = malloc(input_size + 1);
  memcpy(input, text, input_size);
  input[input_size] = 0;
  if (has_option(input, "strict")) options.numerics = PESTLE_NUMERICS_STRICT;
  if (has_option(input, "fast")) options.numerics = PESTLE_NUMERICS_FAST;
  options.no_fuse = has_option(input, "no-fuse");
  // What a process runs of a module has other types; partition_random_test.c runs them.
  if (pestle_module_has_mesh(module)) {
    test_run_with(module, &options);
  } else {
    test_keeps_meaning(module, &options, 2e-6);
  }
  char* output = test_print(module);
  bool same = expected && !strcmp(expected + strlen(SEPARATOR), output);
  if (!same && bless()) {
    write_file(path, input, input_size, output);
    same = true;
  }
  if (!same) {
    fprintf(stderr, "%s: expected\n%s\ngot\n%s\nBLESS=1 accepts it.\n", path,
            expected ? expected + strlen(SEPARATOR) : "(nothing)", output);
  }
  free(output);
  free(input);
  free(text);
  pestle_module_release(module);
  return same;
}

static size_t check_folder(pestle_context_t* context, const char* root,
                           const char* pass, size_t* failed) {
  char path[8192];
  snprintf(path, sizeof(path), "%s/%s", root, pass);
  DIR* folder = opendir(path);
  if (!folder) return 0;
  size_t count = 0;
  for (struct dirent* entry; (entry = readdir(folder));) {
    if (!strstr(entry->d_name, ".mlir")) continue;
    snprintf(path, sizeof(path), "%s/%s/%s", root, pass, entry->d_name);
    *failed += !check_case(context, pass, path);
    ++count;
  }
  closedir(folder);
  return count;
}

static void test_goldens(void** state) {
  (void)state;
  const char* source = getenv("PESTLE_SOURCE_DIR");
  char root[4096];
  snprintf(root, sizeof(root), "%s/tests/unit/passes/golden",
           source ? source : ".");
  pestle_context_t* context = test_context();
  size_t pass_count, failed = 0;
  const pestle_pass_t* passes = pestle_pass_table(&pass_count);
  for (size_t i = 0; i < pass_count; ++i) {
    size_t cases = check_folder(context, root, passes[i].name, &failed);
    bool alias = !strcmp(passes[i].name, "clean_up");
    if (!cases && !alias) {
      print_error("pass '%s' has no golden\n", passes[i].name);
      ++failed;
    }
  }
  assert_int_equal(failed, 0);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_goldens)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
