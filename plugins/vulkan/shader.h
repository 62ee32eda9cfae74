// SPDX-License-Identifier: Apache-2.0
// GLSL to SPIR-V, validated.
#ifndef PESTLE_PLUGINS_VULKAN_SHADER_H_
#define PESTLE_PLUGINS_VULKAN_SHADER_H_

#include <stdbool.h>

#include "pestle/plugin.h"

// What a module asks of floats: each bit one that the device must have
// (VkPhysicalDeviceFloatControlsProperties).
typedef enum pestle_vulkan_floats_e {
  PESTLE_VULKAN_KEEPS_NAN_32 = 1,  // infinities and -0 too
  PESTLE_VULKAN_KEEPS_NAN_64 = 2,
  PESTLE_VULKAN_KEEPS_DENORMALS_32 = 4,
  PESTLE_VULKAN_KEEPS_DENORMALS_64 = 8,
  PESTLE_VULKAN_ROUNDS_TO_EVEN_32 = 16,
  PESTLE_VULKAN_ROUNDS_TO_EVEN_64 = 32,
  PESTLE_VULKAN_ALL_FLOATS = 63,
} pestle_vulkan_floats_t;

// |floats|: pestle_vulkan_floats_t. |is_own|: a person wrote the text, whose faults are
// no defects of ours. The words go to |out_words|, a blob of the host.
PESTLE_NODISCARD pestle_status_t pestle_vulkan_compile_glsl(
    const pestle_host_t* host, const char* name, const void* text, size_t size,
    unsigned floats, bool is_own, pestle_blob_t* out_words);
// The words as assembly.
PESTLE_NODISCARD pestle_status_t
pestle_vulkan_disassemble(const pestle_host_t* host, const void* words,
                          size_t size, pestle_blob_t* out_text);

#endif  // PESTLE_PLUGINS_VULKAN_SHADER_H_
