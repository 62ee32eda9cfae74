// SPDX-License-Identifier: Apache-2.0
// GLSL of Vulkan as the printer of C-family text sees it.
#ifndef PESTLE_PLUGINS_VULKAN_DIALECT_H_
#define PESTLE_PLUGINS_VULKAN_DIALECT_H_

#include "plugins/common/c_printer.h"

extern const pestle_c_printer_dialect_t pestle_vulkan_dialect;

#endif  // PESTLE_PLUGINS_VULKAN_DIALECT_H_
