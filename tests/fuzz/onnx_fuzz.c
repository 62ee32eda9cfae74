// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX model, and as a stored tensor.
#include <stddef.h>
#include <stdint.h>

#include "pestle/import.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  pestle_context_t* context;
  pestle_status_t status = pestle_context_create(&options, &context);
  if (status) {
    pestle_status_release(status);
    return 0;
  }
  pestle_module_t* module;
  status = pestle_import_onnx(context, data, size, false, NULL, NULL, &module);
  if (!status) {
    if (module) pestle_module_release(module);
  } else {
    pestle_status_release(status);
  }
  pestle_elements_t elements;
  status = pestle_read_onnx_tensor(context, data, size, &elements, NULL, 0);
  if (!status) {
    pestle_context_free(context, (void*)elements.data, elements.size);
  } else {
    pestle_status_release(status);
  }
  pestle_context_release(context);
  return 0;
}
