// SPDX-License-Identifier: Apache-2.0
// Tokens of each text of the corpora and goldens are left out, doubled, cut at, or
// another one; bytes of each binary file are another one. What is read then verifies
// and has a signature, and again where its extents are given, or there is a sentence;
// nothing is left behind.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_CORPUS_WRONG_H_
#define PESTLE_TESTS_UNIT_FRONTEND_CORPUS_WRONG_H_

#include <ctype.h>
#include <dirent.h>

#include "base/file.h"
#include "base/mem.h"
#include "corpus.h"
#include "onnx_test.h"

enum { MAX_TEXT = 9000, MAX_BINARY = 3000 };

// Every so-many-th place is tried.
static size_t every;

typedef struct wrong_t {
  pestle_test_allocator_t memory;
  pestle_context_t* context;
  size_t tried, read, again;
  bool specializes;
} wrong_t;

static void begin(wrong_t* w, bool specializes) {
  pestle_test_allocator_init(&w->memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&w->memory),
      .cache_dir = "",
      .no_cache = true,
      .backend_path = "/nonexistent",
      .threads = 1};
  assert_ok(pestle_context_create(&options, &w->context));
  w->tried = w->read = w->again = 0;
  w->specializes = specializes;
}

static void end(wrong_t* w, const char* what, size_t least) {
  pestle_context_release(w->context);
  pestle_test_allocator_check(&w->memory);
  print_message("%s: %zu tried, %zu were read, %zu again\n", what, w->tried,
                w->read, w->again);
  assert_true(w->tried >= least / every);
}

// No status may say that the fault is ours.
static void check_refusal(const char* name, pestle_status_t status,
                          const char* data, size_t size) {
  assert_true(pestle_status_message(status)[0] != 0);
  if (pestle_status_code(status) == PESTLE_STATUS_INTERNAL)
    print_error("%s: %s\n%.*s\n", name, pestle_status_message(status),
                (int)size, data);
  assert_true(pestle_status_code(status) != PESTLE_STATUS_INTERNAL);
  pestle_status_release(status);
}

static void read_again(wrong_t* w, const char* name, pestle_module_t* module,
                       const char* data, size_t size) {
  pestle_module_t* made;
  uint64_t hash[2];
  pestle_status_t status = corpus_specialize(module, &made);
  if (status) check_refusal(name, status, data, size);
  if (!made) return;
  ++w->again;
  assert_ok(pestle_module_verify(made));
  assert_ok(pestle_module_signature(made, hash));
  pestle_module_release(made);
}

// |data| has its exact size, so that a sanitizer sees a read beyond the end.
static void import_one(wrong_t* w, const char* name, const char* data,
                       size_t size) {
  pestle_module_t* module = NULL;
  pestle_status_t status =
      pestle_import_bytes(w->context, data, size, name, NULL, &module);
  ++w->tried;
  if (status) {
    assert_null(module);
    check_refusal(name, status, data, size);
    return;
  }
  ++w->read;
  uint64_t hash[2];
  assert_ok(pestle_module_verify(module));
  assert_ok(pestle_module_signature(module, hash));
  if (w->specializes) read_again(w, name, module, data, size);
  pestle_module_release(module);
}

// --- Texts ---

static const char* const others[] = {
    "%v",
    "0",
    "-1",
    "x",
    "\"s\"",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ":",
    "=",
    "->",
    "@f",
    "#a",
    "!t",
    "tensor<2xf32>",
    "99999999999999999999",
    "1.5e3",
    "^bb0",
    "true",
    "dense<0>",
    "?",
    "loc(unknown)",
    "i64",
    "\xff",
};
enum { OTHERS = sizeof(others) / sizeof(*others), EACH = 6, SHORT = 3000 };

// The length of what begins at |at|: a word, a number, a string or a sign.
static size_t token_size(const char* at, const char* end) {
  const char* c = at + 1;
  if (*at == '"') {
    while (c < end && *c != '"' && *c != '\n')
      ++c;
    return (size_t)(c - at) + (c < end && *c == '"');
  }
  if (!isalnum((unsigned char)*at) && !strchr("%@#!^", *at)) return 1;
  while (c < end && (isalnum((unsigned char)*c) || *c == '_' || *c == '.'))
    ++c;
  return (size_t)(c - at);
}

// The text with |middle| in place of what lies from |from| to |to|.
static void import_with(wrong_t* w, const char* name, pestle_str_t text,
                        size_t from, size_t to, const char* middle) {
  size_t length = strlen(middle), size = from + length + text.size - to;
  char* changed = malloc(size ? size : 1);
  memcpy(changed, text.data, from);
  memcpy(changed + from, middle, length);
  memcpy(changed + from + length, text.data + to, text.size - to);
  import_one(w, name, changed, size);
  free(changed);
}

static void try_text(wrong_t* w, const char* name, pestle_str_t text) {
  const char* end = text.data + text.size;
  size_t number = 0;
  for (size_t at = 0; at < text.size;) {
    if (isspace((unsigned char)text.data[at])) {
      ++at;
      continue;
    }
    const char* comment = text.data + at;
    if (end - comment > 1 && comment[0] == '/' && comment[1] == '/') {
      while (at < text.size && text.data[at] != '\n')
        ++at;
      continue;
    }
    size_t size = token_size(text.data + at, end), next = at + size;
    if (++number % every == 0) {
      char twice[64];
      snprintf(twice, sizeof(twice), "%.*s %.*s", size > 30 ? 30 : (int)size,
               text.data + at, size > 30 ? 30 : (int)size, text.data + at);
      import_with(w, name, text, at, next, "");
      import_with(w, name, text, at, next, twice);
      import_with(w, name, text, at, text.size, "");
      for (size_t i = 0; i < (text.size < SHORT ? EACH : 1); ++i) {
        const char* other = others[(number * 7 + i * 11) % OTHERS];
        import_with(w, name, text, at, next, other);
      }
    }
    at = next;
  }
}

// --- Binary files ---

static void try_bytes(wrong_t* w, const char* name, pestle_str_t bytes) {
  char* changed = malloc(bytes.size + 1);
  memcpy(changed, bytes.data, bytes.size);
  for (size_t at = bytes.size % every; at < bytes.size; at += every) {
    const char old = changed[at];
    const unsigned char byte = (unsigned char)old;
    const unsigned char values[] = {0, byte ^ 1, 0xff,
                                    (unsigned char)(byte + 2)};
    // Two of them at each place.
    for (size_t i = at % 2; i < sizeof(values); i += 2) {
      changed[at] = (char)values[i];
      if (changed[at] != old) import_one(w, name, changed, bytes.size);
    }
    changed[at] = old;
    char* cut = malloc(at ? at : 1);
    memcpy(cut, bytes.data, at);
    import_one(w, name, cut, at);
    free(cut);
  }
  free(changed);
}

// --- Folders ---

static void try_folder(wrong_t* w, const char* folder, bool is_text) {
  const char* root = getenv("PESTLE_SOURCE_DIR");
  if (!root) skip();
  char path[1024];
  snprintf(path, sizeof(path), "%s/tests/%s", root, folder);
  DIR* files = opendir(path);
  assert_non_null(files);
  pestle_allocator_t allocator = pestle_allocator_system();
  for (const struct dirent* entry; (entry = readdir(files)) != NULL;) {
    const char* dot = strrchr(entry->d_name, '.');
    bool is_mlir = dot && !strcmp(dot, ".mlir");
    if (entry->d_name[0] == '.' || is_mlir != is_text) continue;
    // The oldest and the newest form of what StableHLO's tools wrote.
    if (dot && !strcmp(dot, ".bc") && !strstr(entry->d_name, ".own.") &&
        !strstr(entry->d_name, ".0.9.0."))
      continue;
    snprintf(path, sizeof(path), "%s/tests/%s/%s", root, folder, entry->d_name);
    pestle_file_info_t info;
    assert_ok(pestle_file_stat(path, true, &info));
    if (!info.is_file || info.size > (is_text ? MAX_TEXT : MAX_BINARY))
      continue;
    char* data;
    size_t size;
    assert_ok(pestle_file_read(path, SIZE_MAX / 2, allocator, &data, &size));
    (is_text ? try_text : try_bytes)(w, entry->d_name,
                                     pestle_str_make(data, size));
    pestle_dealloc(allocator, data, size + 1);
  }
  closedir(files);
}

static void reads_text(void** state) {
  (void)state;
  wrong_t w;
  begin(&w, true);
  try_folder(&w, "golden/ir", true);
  try_folder(&w, "fuzz/corpus/ir", true);
  try_folder(&w, "unit/passes/golden/partition", true);
  try_folder(&w, "unit/frontend/texts", true);
  end(&w, "texts of Pestle", 50000);
}

static void reads_stablehlo(void** state) {
  (void)state;
  wrong_t w;
  begin(&w, true);
  try_folder(&w, "fuzz/corpus/stablehlo", true);
  try_folder(&w, "stablehlo/data", true);
  end(&w, "texts of StableHLO", 50000);
}

static void reads_bytecode(void** state) {
  (void)state;
  wrong_t w;
  begin(&w, true);
  try_folder(&w, "fuzz/corpus/bytecode", false);
  try_folder(&w, "stablehlo/data", false);
  end(&w, "bytecode", 20000);
}

static void reads_onnx(void** state) {
  (void)state;
  wrong_t w;
  begin(&w, false);
  try_folder(&w, "fuzz/corpus/onnx", false);
  end(&w, "ONNX", 50000);
}

static inline int run_wrong(size_t step) {
  every = step;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_text),
      cmocka_unit_test(reads_stablehlo),
      cmocka_unit_test(reads_bytecode),
      cmocka_unit_test(reads_onnx),
  };
  return cmocka_run_group_tests_name("corpus_wrong", tests, NULL, NULL);
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_CORPUS_WRONG_H_
