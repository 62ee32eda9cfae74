// SPDX-License-Identifier: Apache-2.0
// GLSL to SPIR-V, validated.
#ifndef PESTLE_PLUGINS_VULKAN_SHADER_H_
#define PESTLE_PLUGINS_VULKAN_SHADER_H_

#include "pestle/plugin.h"

// The words go to |out_words|, a blob of the host.
PESTLE_NODISCARD pestle_status_t pestle_vulkan_compile_glsl(
    const pestle_host_t* host, const char* name, const void* text, size_t size,
    pestle_blob_t* out_words);
// The words as assembly.
PESTLE_NODISCARD pestle_status_t
pestle_vulkan_disassemble(const pestle_host_t* host, const void* words,
                          size_t size, pestle_blob_t* out_text);

#endif  // PESTLE_PLUGINS_VULKAN_SHADER_H_
