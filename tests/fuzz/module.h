// SPDX-License-Identifier: Apache-2.0
// What holds of every module that was read: it verifies, its text and its bytes are
// read again, and all three have one signature.
#ifndef PESTLE_TESTS_FUZZ_MODULE_H_
#define PESTLE_TESTS_FUZZ_MODULE_H_

#include "pestle/graph.h"
#include "target.h"

static inline void fuzz_take(pestle_status_t status, const char* what) {
  if (!status) return;
  fprintf(stderr, "%s\n", pestle_status_message(status));
  pestle_fuzz_fail(what);
}

static inline void fuzz_same(pestle_module_t* module, const uint64_t hash[2],
                             const char* what) {
  uint64_t other[2];
  fuzz_take(pestle_module_signature(module, other), what);
  if (memcmp(hash, other, sizeof(other)) != 0) pestle_fuzz_fail(what);
  pestle_module_release(module);
}

// Takes |module| over.
static inline void fuzz_check_module(pestle_context_t* context,
                                     pestle_module_t* module) {
  uint64_t hash[2];
  char* text;
  void* bytes;
  size_t size;
  pestle_module_t* again;
  fuzz_take(pestle_module_verify(module), "what was read does not verify");
  fuzz_take(pestle_module_signature(module, hash), "there is no signature");
  fuzz_take(pestle_module_print(module, 0, &text, &size), "it does not print");
  pestle_status_t status =
      pestle_module_parse(context, text, size, NULL, &again);
  if (status) fprintf(stderr, "%s", text);
  fuzz_take(status, "what was printed is not read again");
  pestle_context_free(context, text, size + 1);
  fuzz_same(again, hash, "what was printed is another module");
  fuzz_take(pestle_module_serialize(module, &bytes, &size), "it has no bytes");
  fuzz_take(pestle_module_deserialize(context, bytes, size, &again),
            "the bytes are not read again");
  pestle_context_free(context, bytes, size);
  fuzz_same(again, hash, "the bytes are of another module");
  pestle_module_release(module);
}

#endif  // PESTLE_TESTS_FUZZ_MODULE_H_
