// SPDX-License-Identifier: Apache-2.0
// Reads programs and prints the signature of each, or why it is none:
//
//   pestle_signatures FILE...
//   b6c1.. FILE
//   ERROR FILE: UNSUPPORTED: ..
//
// corpus_long_test.py asks it about a program in text and in bytecode of many
// versions.
#include <inttypes.h>
#include <stdio.h>

#include "pestle/pestle.h"

static int print_signature(pestle_context_t* context, const char* path) {
  pestle_module_t* module = NULL;
  uint64_t hash[2];
  pestle_status_t status = pestle_import_file(context, path, NULL, &module);
  if (!status) status = pestle_module_signature(module, hash);
  pestle_module_release(module);
  if (!status) {
    printf("%016" PRIx64 "%016" PRIx64 " %s\n", hash[1], hash[0], path);
    return 0;
  }
  printf("ERROR %s: %s: %s\n", path,
         pestle_status_code_name(pestle_status_code(status)),
         pestle_status_message(status));
  pestle_status_release(status);
  return 1;
}

int main(int count, char** paths) {
  pestle_context_t* context = NULL;
  pestle_status_t status = pestle_context_create(NULL, &context);
  if (status) {
    fprintf(stderr, "%s\n", pestle_status_message(status));
    return 2;
  }
  int failed = 0;
  for (int i = 1; i < count; ++i)
    failed |= print_signature(context, paths[i]);
  pestle_context_release(context);
  return failed;
}
