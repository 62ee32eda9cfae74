// SPDX-License-Identifier: Apache-2.0
// shaderc and SPIRV-Tools are linked into the plugin. A compiler is made for
// each call: what is costly, glslang's tables, is the process's.
#include "plugins/vulkan/shader.h"

#include <shaderc/shaderc.h>
#include <spirv-tools/libspirv.h>
#include <stdio.h>
#include <string.h>

#include "plugins/common/error.h"

static pestle_status_t copied(const pestle_host_t* host, const void* data,
                              size_t size, pestle_blob_t* out) {
  void* copy = host->alloc(host->self, size);
  if (!copy) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "no memory for %zu bytes of SPIR-V", size);
  }
  memcpy(copy, data, size);
  *out = (pestle_blob_t){copy, size};
  return NULL;
}

static pestle_status_t validate(const pestle_host_t* host, const char* name,
                                const void* words, size_t size) {
  spv_context context = spvContextCreate(SPV_ENV_VULKAN_1_2);
  spv_diagnostic diagnostic = NULL;
  spv_const_binary_t binary = {words, size / sizeof(uint32_t)};
  spv_result_t result = spvValidate(context, &binary, &diagnostic);
  pestle_status_t status = NULL;
  if (result != SPV_SUCCESS) {
    status = PESTLE_PLUGIN_ERROR(
        host, INTERNAL, "kernel %s: its SPIR-V is not valid: %s", name,
        diagnostic ? diagnostic->error : "no reason given");
  }
  spvDiagnosticDestroy(diagnostic);
  spvContextDestroy(context);
  return status;
}

static shaderc_compile_options_t make_options(void) {
  shaderc_compile_options_t options = shaderc_compile_options_initialize();
  if (!options) return NULL;
  shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan,
                                         shaderc_env_version_vulkan_1_2);
  shaderc_compile_options_set_target_spirv(options, shaderc_spirv_version_1_5);
  shaderc_compile_options_set_optimization_level(
      options, shaderc_optimization_level_performance);
  return options;
}

pestle_status_t pestle_vulkan_compile_glsl(const pestle_host_t* host,
                                           const char* name, const void* text,
                                           size_t size,
                                           pestle_blob_t* out_words) {
  *out_words = (pestle_blob_t){NULL, 0};
  shaderc_compiler_t compiler = shaderc_compiler_initialize();
  shaderc_compile_options_t options = make_options();
  shaderc_compilation_result_t result = NULL;
  if (compiler && options) {
    result = shaderc_compile_into_spv(
        compiler, text, size, shaderc_compute_shader, name, "main", options);
  }
  pestle_status_t status;
  if (!result) {
    status = PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                                 "no memory to compile kernel %s", name);
  } else if (shaderc_result_get_compilation_status(result) !=
             shaderc_compilation_status_success) {
    status = PESTLE_PLUGIN_ERROR(host, INTERNAL,
                                 "shaderc does not take what was printed: %s",
                                 shaderc_result_get_error_message(result));
  } else {
    const void* words = shaderc_result_get_bytes(result);
    size_t bytes = shaderc_result_get_length(result);
    status = validate(host, name, words, bytes);
    if (!status) status = copied(host, words, bytes, out_words);
  }
  if (result) shaderc_result_release(result);
  if (options) shaderc_compile_options_release(options);
  if (compiler) shaderc_compiler_release(compiler);
  return status;
}

pestle_status_t pestle_vulkan_disassemble(const pestle_host_t* host,
                                          const void* words, size_t size,
                                          pestle_blob_t* out_text) {
  spv_context context = spvContextCreate(SPV_ENV_VULKAN_1_2);
  spv_text text = NULL;
  spv_diagnostic diagnostic = NULL;
  spv_result_t result =
      spvBinaryToText(context, words, size / sizeof(uint32_t),
                      SPV_BINARY_TO_TEXT_OPTION_INDENT |
                          SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES,
                      &text, &diagnostic);
  pestle_status_t status =
      result == SPV_SUCCESS
          ? copied(host, text->str, text->length, out_text)
          : PESTLE_PLUGIN_ERROR(host, INTERNAL, "no text of the SPIR-V: %s",
                                diagnostic ? diagnostic->error : "no reason");
  spvTextDestroy(text);
  spvDiagnosticDestroy(diagnostic);
  spvContextDestroy(context);
  return status;
}
