// SPDX-License-Identifier: Apache-2.0
// The artifact: the kernel's arrays behind a header, read in place. Whoever
// hands one to load() may have damaged it, so nothing in it is believed. A
// short listing of a kernel for people is made here too.
#include <stdio.h>
#include <string.h>

#include "plugins/ref/ref_internal.h"

#define MAGIC UINT64_C(0x0046455254534550)  // "PESTREF"
#define FORMAT 2u

typedef struct header_t {
  uint64_t magic;
  uint32_t format, kir_major;
  uint32_t inst_size, buffer_size;
  uint32_t inst_count, buffer_count, table_count, word_count, strings_size;
  uint32_t name, note;
  uint32_t shared_bytes, arg_count, param_count;
  uint32_t lane[3], cluster;
  int64_t group[3];
  uint64_t hash[2];
  uint64_t total_size;
} header_t;

typedef struct layout_t {
  size_t inst, buffer, table, word, strings, total;
} layout_t;

// Counts are of 32 bits and elements small: nothing overflows.
static layout_t lay_out(const header_t* h) {
  layout_t l;
  l.inst = sizeof(header_t);
  l.buffer = l.inst + (size_t)h->inst_count * sizeof(pestle_kir_inst_t);
  l.table = l.buffer + (size_t)h->buffer_count * sizeof(pestle_kir_buffer_t);
  l.word = l.table + (size_t)h->table_count * sizeof(pestle_kir_table_t);
  l.strings = l.word + (size_t)h->word_count * sizeof(uint32_t);
  l.total = l.strings + h->strings_size;
  return l;
}

static header_t header_of(const pestle_kir_t* k) {
  header_t h = {.magic = MAGIC,
                .format = FORMAT,
                .kir_major = PESTLE_KIR_ABI_MAJOR,
                .inst_size = sizeof(pestle_kir_inst_t),
                .buffer_size = sizeof(pestle_kir_buffer_t),
                .inst_count = k->inst_count,
                .buffer_count = k->buffer_count,
                .table_count = k->table_count,
                .word_count = k->table_word_count,
                .strings_size = k->strings_size,
                .name = k->name,
                .note = k->note,
                .shared_bytes = k->shared_bytes,
                .arg_count = k->arg_count,
                .param_count = k->param_count,
                .cluster = pestle_kir_cluster(k)};
  memcpy(h.lane, k->lane, sizeof h.lane);
  memcpy(h.group, k->group, sizeof h.group);
  memcpy(h.hash, k->hash, sizeof h.hash);
  h.total_size = lay_out(&h).total;
  return h;
}

pestle_status_t pestle_ref_plugin_pack(const pestle_host_t* host,
                                       const pestle_kir_t* kernel,
                                       pestle_blob_t* out_artifact) {
  header_t h = header_of(kernel);
  layout_t l = lay_out(&h);
  unsigned char* data = host->alloc(host->self, l.total);
  if (!data) return REF_ERROR(host, OUT_OF_MEMORY, "out of host memory");
  memcpy(data, &h, sizeof h);
  for (uint32_t i = 0; i < h.inst_count; ++i) {
    memcpy(data + l.inst + i * sizeof(pestle_kir_inst_t),
           pestle_kir_inst(kernel, i), sizeof(pestle_kir_inst_t));
  }
  for (uint32_t i = 0; i < h.buffer_count; ++i) {
    memcpy(data + l.buffer + i * sizeof(pestle_kir_buffer_t),
           pestle_kir_buffer(kernel, i), sizeof(pestle_kir_buffer_t));
  }
  if (h.table_count) memcpy(data + l.table, kernel->table, l.word - l.table);
  if (h.word_count) {
    memcpy(data + l.word, kernel->table_word, l.strings - l.word);
  }
  if (h.strings_size) {
    memcpy(data + l.strings, kernel->strings, h.strings_size);
  }
  *out_artifact = (pestle_blob_t){data, l.total};
  return NULL;
}

pestle_status_t pestle_ref_plugin_open(const pestle_host_t* host,
                                       const void* artifact, size_t size,
                                       pestle_kir_t* out_kernel) {
  header_t h;
  if (size < sizeof h) {
    return REF_ERROR(host, MALFORMED, "ref: the artifact has %zu bytes", size);
  }
  memcpy(&h, artifact, sizeof h);
  if (h.magic != MAGIC) {
    return REF_ERROR(host, INCOMPATIBLE,
                     "ref: the artifact is of another kind");
  }
  if (h.format != FORMAT || h.kir_major != PESTLE_KIR_ABI_MAJOR ||
      h.inst_size != sizeof(pestle_kir_inst_t) ||
      h.buffer_size != sizeof(pestle_kir_buffer_t)) {
    return REF_ERROR(host, INCOMPATIBLE,
                     "ref: the artifact is of another build");
  }
  layout_t l = lay_out(&h);
  const unsigned char* data = artifact;
  if (h.total_size != l.total || l.total != size) {
    return REF_ERROR(host, MALFORMED,
                     "ref: the artifact has %zu bytes, not %zu", size, l.total);
  }
  // Strings are read up to their terminators.
  if (!h.strings_size || data[l.total - 1] != 0) {
    return REF_ERROR(host, MALFORMED, "ref: the artifact's strings do not end");
  }
  *out_kernel = (pestle_kir_t){
      .struct_size = sizeof(pestle_kir_t),
      .abi_major = PESTLE_KIR_ABI_MAJOR,
      .inst_size = h.inst_size,
      .buffer_size = h.buffer_size,
      .inst_count = h.inst_count,
      .buffer_count = h.buffer_count,
      .table_count = h.table_count,
      .table_word_count = h.word_count,
      .strings_size = h.strings_size,
      .inst = data + l.inst,
      .buffer = data + l.buffer,
      .table = (const pestle_kir_table_t*)(const void*)(data + l.table),
      .table_word = (const uint32_t*)(const void*)(data + l.word),
      .strings = (const char*)data + l.strings,
      .name = h.name,
      .note = h.note,
      .shared_bytes = h.shared_bytes,
      .arg_count = h.arg_count,
      .param_count = h.param_count,
      .cluster = {h.cluster, 1, 1}};
  memcpy(out_kernel->lane, h.lane, sizeof h.lane);
  memcpy(out_kernel->group, h.group, sizeof h.group);
  memcpy(out_kernel->hash, h.hash, sizeof h.hash);
  return NULL;
}

// --- Listing ---

static int list_operands(const pestle_kir_t* k, const pestle_kir_inst_t* inst,
                         char* line, size_t room) {
  const char* letters = pestle_ref_plugin_op_info(inst->op).operands;
  int used = 0;
  for (int a = 0; letters[a] && (size_t)used < room; ++a) {
    char* at = line + used;
    size_t left = room - (size_t)used;
    const char* comma = a ? ", " : " ";
    if (letters[a] == 'b' && inst->arg[a] < k->buffer_count) {
      uint32_t name = pestle_kir_buffer(k, inst->arg[a])->name;
      used += snprintf(at, left, "%s@%s", comma, pestle_kir_string(k, name));
    } else if (letters[a] == 'i') {
      used += snprintf(at, left, "%s%d", comma, (int)(int32_t)inst->arg[a]);
    } else if (inst->arg[a] != PESTLE_KIR_NONE) {
      used += snprintf(at, left, "%s%%%u", comma, inst->arg[a]);
    }
  }
  return used;
}

// One instruction in |line|, which it never fills; returns its length.
static size_t list_line(const pestle_kir_t* k, uint32_t id, char* line,
                        size_t room) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  pestle_kir_op_info_t info = pestle_ref_plugin_op_info(inst->op);
  int used =
      snprintf(line, room, "%4u  %s", id, info.mnemonic ? info.mnemonic : "?");
  used += list_operands(k, inst, line + used, room - (size_t)used);
  if ((size_t)used < room && inst->type != PESTLE_NONE) {
    used += snprintf(line + used, room - (size_t)used, " : %sx%u",
                     pestle_dtype_info((pestle_dtype_t)inst->type)->name,
                     inst->lanes);
  }
  if ((size_t)used > room - 2) used = (int)room - 2;
  line[used] = '\n';
  return (size_t)used + 1;
}

pestle_status_t pestle_ref_plugin_list(const pestle_host_t* host,
                                       const pestle_kir_t* kernel,
                                       pestle_blob_t* out_text) {
  char line[192];
  char* text = NULL;
  size_t size = 0;
  // Twice: to measure, and to write.
  for (int pass = 0; pass < 2; ++pass) {
    size_t at = 0;
    for (uint32_t i = 0; i < kernel->inst_count; ++i) {
      size_t length = list_line(kernel, i, line, sizeof line);
      if (text) memcpy(text + at, line, length);
      at += length;
    }
    size = at;
    if (pass) break;
    text = host->alloc(host->self, size ? size : 1);
    if (!text) return REF_ERROR(host, OUT_OF_MEMORY, "out of host memory");
  }
  *out_text = (pestle_blob_t){text, size};
  return NULL;
}
