// SPDX-License-Identifier: Apache-2.0
// Tensors of ONNX test data.
#include <string.h>

#include "base/file.h"
#include "cli.h"

static pestle_status_t copy_elements(const pestle_elements_t* elements,
                                     cli_array_t* out_array) {
  PESTLE_TRY(cli_array_init(elements->type.dtype, elements->type.rank,
                            elements->type.dims, out_array));
  size_t size = pestle_dtype_size(out_array->dtype);
  if (!elements->splat && elements->size == out_array->size) {
    if (out_array->size) {
      memcpy(out_array->data, elements->data, out_array->size);
    }
    return NULL;
  }
  for (int64_t i = 0; elements->splat && i < out_array->count; ++i) {
    memcpy((char*)out_array->data + (size_t)i * size, elements->data, size);
  }
  return NULL;
}

pestle_status_t cli_read_pb(cli_t* cli, const char* path,
                            cli_array_t* out_array) {
  *out_array = (cli_array_t){.index = -1};
  pestle_mapping_t mapping;
  pestle_elements_t elements = {0};
  char name[1024] = "";
  PESTLE_TRY(pestle_file_map(path, &mapping));
  pestle_status_t status = pestle_read_onnx_tensor(
      cli->context, mapping.data, mapping.size, &elements, name, sizeof(name));
  if (!status) {
    status = copy_elements(&elements, out_array);
    pestle_context_free(cli->context, (void*)(uintptr_t)elements.data,
                        elements.size);
  }
  pestle_file_unmap(&mapping);
  if (!status && name[0]) {
    status = cli_array_set_name(out_array, pestle_str(name));
  }
  return pestle_status_annotate(status, "while reading '%s'", path);
}
