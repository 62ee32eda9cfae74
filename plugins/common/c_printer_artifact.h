// SPDX-License-Identifier: Apache-2.0
// The artifact of a target that prints text: how to launch the kernel, its
// text, and what a toolchain made of it. Whoever hands one to load() may have
// damaged it: open() checks all that it reads.
#ifndef PESTLE_PLUGINS_COMMON_C_PRINTER_ARTIFACT_H_
#define PESTLE_PLUGINS_COMMON_C_PRINTER_ARTIFACT_H_

#include "plugins/common/c_printer.h"

typedef struct pestle_c_printer_artifact_t {
  char target[16];     // "opencl"
  char name[128];      // of the kernel in its text
  char made_for[192];  // what |binary| is for: a device and its driver; ""
  uint32_t group[3], lane[3];
  uint32_t arg_count, param_count;
  bool table;
  const void *text, *binary;  // borrowed
  size_t text_size, binary_size;
} pestle_c_printer_artifact_t;

PESTLE_NODISCARD pestle_status_t pestle_c_printer_artifact_pack(
    const pestle_host_t* host, const pestle_c_printer_artifact_t* artifact,
    pestle_blob_t* out_blob);
// INCOMPATIBLE or MALFORMED when |data| is none of |target|'s.
PESTLE_NODISCARD pestle_status_t pestle_c_printer_artifact_open(
    const pestle_host_t* host, const char* target, const void* data,
    size_t size, pestle_c_printer_artifact_t* out_artifact);
// The launch data of |kernel|, printed as |printed|.
pestle_c_printer_artifact_t pestle_c_printer_artifact_of(
    const char* target, const pestle_kir_t* kernel,
    const pestle_c_printer_kernel_t* printed);

#endif  // PESTLE_PLUGINS_COMMON_C_PRINTER_ARTIFACT_H_
