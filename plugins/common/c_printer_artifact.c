// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/c_printer_artifact.h"

#include <stdio.h>
#include <string.h>

#include "plugins/common/error.h"

#define MAGIC UINT32_C(0x54584350)  // "PCXT"
#define FORMAT 1u

typedef struct header_t {
  uint32_t magic, format;
  char target[16];
  char name[128];
  char made_for[192];
  uint32_t group[3], lane[3];
  uint32_t arg_count, param_count, table, reserved;
  uint64_t text_size, binary_size;
} header_t;

pestle_c_printer_artifact_t pestle_c_printer_artifact_of(
    const char* target, const pestle_kir_t* kernel,
    const pestle_c_printer_kernel_t* printed) {
  pestle_c_printer_artifact_t a = {.arg_count = kernel->arg_count,
                                   .param_count = kernel->param_count,
                                   .table = printed->table,
                                   .text = printed->text.data,
                                   .text_size = printed->text.size};
  snprintf(a.target, sizeof a.target, "%s", target);
  pestle_c_printer_name(kernel, a.name, sizeof a.name);
  memcpy(a.group, printed->group, sizeof a.group);
  memcpy(a.lane, printed->lane, sizeof a.lane);
  return a;
}

pestle_status_t pestle_c_printer_artifact_pack(
    const pestle_host_t* host, const pestle_c_printer_artifact_t* a,
    pestle_blob_t* out_blob) {
  header_t h = {.magic = MAGIC,
                .format = FORMAT,
                .arg_count = a->arg_count,
                .param_count = a->param_count,
                .table = a->table,
                .text_size = a->text_size,
                .binary_size = a->binary_size};
  memcpy(h.target, a->target, sizeof h.target);
  memcpy(h.name, a->name, sizeof h.name);
  memcpy(h.made_for, a->made_for, sizeof h.made_for);
  memcpy(h.group, a->group, sizeof h.group);
  memcpy(h.lane, a->lane, sizeof h.lane);
  size_t size = sizeof h + a->text_size + a->binary_size;
  *out_blob = (pestle_blob_t){NULL, 0};
  char* data = host->alloc(host->self, size);
  if (!data) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "no memory for an artifact of %zu bytes", size);
  }
  memcpy(data, &h, sizeof h);
  if (a->text_size) memcpy(data + sizeof h, a->text, a->text_size);
  if (a->binary_size) {
    memcpy(data + sizeof h + a->text_size, a->binary, a->binary_size);
  }
  *out_blob = (pestle_blob_t){data, size};
  return NULL;
}

pestle_status_t pestle_c_printer_artifact_open(
    const pestle_host_t* host, const char* target, const void* data,
    size_t size, pestle_c_printer_artifact_t* out_artifact) {
  header_t h;
  memset(out_artifact, 0, sizeof *out_artifact);
  if (size < sizeof h) {
    return PESTLE_PLUGIN_ERROR(
        host, MALFORMED, "%s: the artifact has only %zu bytes", target, size);
  }
  memcpy(&h, data, sizeof h);
  h.target[sizeof h.target - 1] = 0;
  h.name[sizeof h.name - 1] = 0;
  h.made_for[sizeof h.made_for - 1] = 0;
  if (h.magic != MAGIC || h.format != FORMAT || strcmp(h.target, target)) {
    return PESTLE_PLUGIN_ERROR(host, INCOMPATIBLE,
                               "%s: the artifact is of another target or build",
                               target);
  }
  size_t rest = size - sizeof h;
  if (h.text_size > rest || h.binary_size != rest - h.text_size) {
    return PESTLE_PLUGIN_ERROR(host, MALFORMED,
                               "%s: the artifact's sizes do not add up to %zu",
                               target, size);
  }
  const char* text = (const char*)data + sizeof h;
  pestle_c_printer_artifact_t a = {.arg_count = h.arg_count,
                                   .param_count = h.param_count,
                                   .table = h.table != 0,
                                   .text = text,
                                   .text_size = (size_t)h.text_size,
                                   .binary = text + h.text_size,
                                   .binary_size = (size_t)h.binary_size};
  memcpy(a.target, h.target, sizeof a.target);
  memcpy(a.name, h.name, sizeof a.name);
  memcpy(a.made_for, h.made_for, sizeof a.made_for);
  memcpy(a.group, h.group, sizeof a.group);
  memcpy(a.lane, h.lane, sizeof a.lane);
  *out_artifact = a;
  return NULL;
}
