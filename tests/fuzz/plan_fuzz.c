// SPDX-License-Identifier: Apache-2.0
// The plan loader: bytes as they are, and once more with a right checksum, so
// that the checks behind it are reached.
#include <stdlib.h>
#include <string.h>

#include "../unit/runtime/plan_writer.h"
#include "../unit/runtime/test_backend.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void try_plan(pestle_context_t* context, const void* data, size_t size) {
  pestle_plan_t* plan;
  pestle_status_t status =
      pestle_plan_create(context, data, size, NULL, NULL, &plan);
  if (!status) {
    pestle_executable_t* executable;
    status = pestle_executable_create(context, plan, NULL, &executable);
    pestle_executable_release(executable);
  }
  pestle_status_release(status);
  pestle_plan_release(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .threads = 1};
  pestle_context_t* context;
  pestle_status_t status = pestle_context_create(&options, &context);
  if (!status) status = test_backend_add(context);
  char* copy = aligned_alloc(64, (size + 64) & ~(size_t)63);
  if (!status && copy) {
    memcpy(copy, data, size);
    try_plan(context, copy, size);
    if (size >= sizeof(pestle_plan_header_t)) {
      plan_seal(copy, size);
      try_plan(context, copy, size);
    }
  }
  free(copy);
  pestle_status_release(status);
  pestle_context_release(context);
  return 0;
}
