// SPDX-License-Identifier: Apache-2.0
// Pestle's own text: modules as it prints them (module.h), and Kernel IR. A kernel
// that is read is verified; one that verifies prints, and what was printed is the
// same kernel.
#include "codegen/kir/kir_build.h"
#include "module.h"
#include "text.h"

static void check_kernel(pestle_allocator_t allocator, const char* text,
                         size_t size) {
  pestle_kir_builder_t k, again;
  pestle_status_t status = pestle_kir_parse(allocator, text, size, NULL, &k);
  if (status) {
    pestle_status_release(status);
    return;
  }
  status = pestle_kir_verify_in(allocator, &k.view);
  bool is_legal = !status;
  pestle_status_release(status);
  if (is_legal) {
    pestle_strbuf_t first, second;
    pestle_strbuf_init(allocator, &first);
    pestle_strbuf_init(allocator, &second);
    fuzz_take(pestle_kir_print(&k.view, &first), "a kernel does not print");
    status = pestle_kir_parse(allocator, pestle_strbuf_cstr(&first),
                              strlen(pestle_strbuf_cstr(&first)), NULL, &again);
    if (status) fprintf(stderr, "%s", pestle_strbuf_cstr(&first));
    fuzz_take(status, "a printed kernel is not read again");
    fuzz_take(pestle_kir_print(&again.view, &second), "it does not print");
    if (strcmp(pestle_strbuf_cstr(&first), pestle_strbuf_cstr(&second)) != 0) {
      pestle_fuzz_fail("a printed kernel is another kernel");
    }
    // The hash is of all but names and notes.
    fuzz_take(pestle_kir_finish(&k), "a legal kernel is not finished");
    fuzz_take(pestle_kir_finish(&again), "a printed kernel is not finished");
    if (memcmp(k.view.hash, again.view.hash, sizeof(k.view.hash)) != 0) {
      pestle_fuzz_fail("a printed kernel has another hash");
    }
    pestle_kir_deinit(&again);
    pestle_strbuf_deinit(&first);
    pestle_strbuf_deinit(&second);
  }
  pestle_kir_deinit(&k);
}

static bool is_kernel(const uint8_t* data, size_t size) {
  for (size_t i = 0; i + 7 < size && i < 256; ++i) {
    if (!memcmp(data + i, "kernel ", 7)) return true;
  }
  return false;
}

static void try_input(pestle_fuzz_t* fuzz, const uint8_t* data, size_t size) {
  if (is_kernel(data, size)) {
    pestle_allocator_t allocator = {&fuzz->blocks, pestle_fuzz_resize};
    check_kernel(allocator, (const char*)data, size);
  } else {
    pestle_module_t* module;
    pestle_status_t status = pestle_module_parse(
        fuzz->context, (const char*)data, size, NULL, &module);
    if (!status) fuzz_check_module(fuzz->context, module);
    pestle_status_release(status);
  }
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
