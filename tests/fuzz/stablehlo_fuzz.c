// SPDX-License-Identifier: Apache-2.0
// StableHLO text, as JAX and StableHLO's tools print it: pretty and generic, with
// CHLO, Shardy and locations. What is read holds to module.h.
#include "module.h"
#include "text.h"

static void try_input(pestle_fuzz_t* fuzz, const uint8_t* data, size_t size) {
  pestle_module_t* module;
  pestle_status_t status = pestle_module_parse(fuzz->context, (const char*)data,
                                               size, NULL, &module);
  if (!status) fuzz_check_module(fuzz->context, module);
  pestle_status_release(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pestle_fuzz_t fuzz;
  return pestle_fuzz_run(&fuzz, NULL, try_input, data, size);
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed) {
  uint64_t state = fuzz_seed(seed);
  for (size_t times = 1 + fuzz_below(&state, 4); times; --times)
    size = fuzz_change_text(data, size, max_size, &state);
  return size;
}
