// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/artifact.h"

#include <string.h>

#include "plugins/common/error.h"

#define MAGIC UINT64_C(0x3530414455435350)  // "PSCUDA05"
enum { MOST_ARGUMENTS = 512, MOST_LANES = 1024 };

typedef struct header_t {
  uint64_t magic;
  char name[128];
  char arch[16];
  uint32_t is_ptx;
  uint32_t group[3], lane[3];
  uint32_t arg_count, param_count;
  uint32_t dynamic_shared;
  uint32_t waits, at_once;
  uint32_t map_count;
  cuda_map_t map[CUDA_MAPS];
  uint64_t code_size;
  uint64_t check;  // of all else
} header_t;

// FNV-1a over words of 8 bytes.
static uint64_t add_up(uint64_t sum, const void* data, size_t size) {
  const unsigned char* at = data;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    sum = (sum ^ word) * UINT64_C(0x100000001b3);
    sum ^= sum >> 29;
  }
  for (; size; ++at, --size)
    sum = (sum ^ *at) * UINT64_C(0x100000001b3);
  return sum;
}

static uint64_t sum_of(const header_t* header, const void* code,
                       size_t code_size) {
  header_t h;
  memcpy(&h, header, sizeof h);  // gaps between its members too
  h.check = 0;
  return add_up(add_up(UINT64_C(0xcbf29ce484222325), &h, sizeof h), code,
                code_size);
}

pestle_status_t pestle_cuda_artifact_pack(const pestle_host_t* host,
                                          const cuda_artifact_t* a,
                                          pestle_blob_t* out_blob) {
  header_t h;
  memset(&h, 0, sizeof h);
  h.magic = MAGIC;
  h.is_ptx = a->is_ptx;
  h.arg_count = a->arg_count;
  h.param_count = a->param_count;
  h.dynamic_shared = a->dynamic_shared;
  h.waits = a->waits;
  h.at_once = a->at_once;
  h.map_count = a->map_count;
  h.code_size = a->code_size;
  memcpy(h.map, a->map, sizeof h.map);
  memcpy(h.name, a->name, sizeof h.name);
  memcpy(h.arch, a->arch, sizeof h.arch);
  memcpy(h.group, a->group, sizeof h.group);
  memcpy(h.lane, a->lane, sizeof h.lane);
  h.check = sum_of(&h, a->code, a->code_size);
  *out_blob = (pestle_blob_t){NULL, 0};
  if (a->arg_count + a->param_count > MOST_ARGUMENTS) {
    return PESTLE_PLUGIN_ERROR(
        host, UNSUPPORTED,
        "cuda: kernel %s has %u arguments, and at most %d can be passed",
        a->name, (unsigned)(a->arg_count + a->param_count), MOST_ARGUMENTS);
  }
  size_t size = sizeof h + a->code_size;
  char* data = host->alloc(host->self, size);
  if (!data) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no memory for an artifact of %zu bytes",
                               size);
  }
  memcpy(data, &h, sizeof h);
  memcpy(data + sizeof h, a->code, a->code_size);
  *out_blob = (pestle_blob_t){data, size};
  return NULL;
}

static const char* what_is_wrong(const header_t* h, const char* code,
                                 size_t size) {
  uint64_t lanes = 1;
  for (int i = 0; i < 3; ++i) {
    if (!h->lane[i] || h->lane[i] > MOST_LANES) return "its lanes";
    lanes *= h->lane[i];
  }
  if (lanes > MOST_LANES) return "its lanes";
  if (h->arg_count > MOST_ARGUMENTS ||
      h->param_count > MOST_ARGUMENTS - h->arg_count) {
    return "its arguments";
  }
  if (h->map_count > CUDA_MAPS) return "its tensor maps";
  for (uint32_t i = 0; i < h->map_count; ++i) {
    const cuda_map_t* map = &h->map[i];
    if (map->slot >= h->arg_count || map->rank < 1 || map->rank > 5 ||
        (map->windows && map->rank < 3)) {
      return "its tensor maps";
    }
  }
  if (!memchr(h->name, 0, sizeof h->name)) return "its name";
  if (!memchr(h->arch, 0, sizeof h->arch)) return "its architecture";
  if (h->code_size != size || !size) return "its size";
  if (h->check != sum_of(h, code, size)) return "its sum";
  if (h->is_ptx && code[size - 1]) return "its text";
  return NULL;
}

pestle_status_t pestle_cuda_artifact_open(const pestle_host_t* host,
                                          const void* data, size_t size,
                                          cuda_artifact_t* out_artifact) {
  header_t h;
  memset(out_artifact, 0, sizeof *out_artifact);
  if (size < sizeof h) {
    return PESTLE_PLUGIN_ERROR(
        host, MALFORMED, "cuda: an artifact of %zu bytes is too short", size);
  }
  memcpy(&h, data, sizeof h);
  if (h.magic != MAGIC) {
    return PESTLE_PLUGIN_ERROR(
        host, INCOMPATIBLE,
        "cuda: the artifact is of another backend or an older build; compile "
        "the module again");
  }
  const char* code = (const char*)data + sizeof h;
  const char* wrong = what_is_wrong(&h, code, size - sizeof h);
  if (wrong) {
    return PESTLE_PLUGIN_ERROR(host, MALFORMED,
                               "cuda: the artifact is damaged: %s", wrong);
  }
  *out_artifact = (cuda_artifact_t){.is_ptx = h.is_ptx != 0,
                                    .arg_count = h.arg_count,
                                    .param_count = h.param_count,
                                    .dynamic_shared = h.dynamic_shared,
                                    .waits = h.waits != 0,
                                    .at_once = h.at_once != 0,
                                    .map_count = h.map_count,
                                    .code = code,
                                    .code_size = size - sizeof h};
  memcpy(out_artifact->map, h.map, sizeof h.map);
  memcpy(out_artifact->name, h.name, sizeof h.name);
  memcpy(out_artifact->arch, h.arch, sizeof h.arch);
  memcpy(out_artifact->group, h.group, sizeof h.group);
  memcpy(out_artifact->lane, h.lane, sizeof h.lane);
  return NULL;
}
