// SPDX-License-Identifier: Apache-2.0
// Where an op runs: where its operands lie. Arrays never move by themselves.
#include "lazy/place.h"

#include <stdio.h>

#include "base/str.h"

// "cuda:gpu:0" appended.
static void print_device(pestle_strbuf_t* out, const pestle_device_t* device) {
  const char* name = pestle_device_name(device);
  size_t size = strcspn(name, ":");
  pestle_strbuf_appendf(out, "%.*s:%s:%d", (int)size, name,
                        pestle_device_type(device),
                        (int)pestle_device_index(device));
}

static pestle_status_t mixed(const pestle_record_t* r,
                             const pestle_device_t* device) {
  bool backends = false;
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  for (size_t i = 0; i < r->operand_count; ++i) {
    const pestle_device_t* other = r->operands[i]->device;
    bool seen = pestle_array_flags(r->operands[i]) & PESTLE_NODE_WEAK;
    for (size_t j = 0; j < i && !seen; ++j)
      seen = r->operands[j]->device == other;
    if (seen) continue;
    if (text.size) pestle_strbuf_append_c(&text, ", ");
    print_device(&text, other);
    backends |= pestle_device_backend(other) != pestle_device_backend(device);
  }
  pestle_status_t status =
      PESTLE_ERROR(INVALID_ARGUMENT,
                   "Inputs are on different %s (%s). Use pestle.copy(x, "
                   "device) to move data "
                   "to the same %s.",
                   backends ? "backends" : "devices", pestle_strbuf_cstr(&text),
                   backends ? "backend" : "device");
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t pestle_place(const pestle_record_t* r,
                             pestle_device_t** out_device) {
  pestle_device_t* device = NULL;
  for (size_t i = 0; i < r->operand_count; ++i) {
    const pestle_array_t* operand = r->operands[i];
    if (operand->lazy != r->operands[0]->lazy) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "operand %zu is of another context than operand 0",
                          i);
    }
    if (pestle_array_flags(operand) & PESTLE_NODE_WEAK) continue;
    if (device && device != operand->device) return mixed(r, device);
    device = operand->device;
  }
  if (!device && r->operand_count) device = r->operands[0]->device;
  if (!device) device = r->device;
  if (!device) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "an op without operands needs a device");
  }
  *out_device = device;
  return NULL;
}
