// SPDX-License-Identifier: Apache-2.0
// shaderc and SPIRV-Tools are linked into the plugin. A compiler is made for
// each call: what is costly, glslang's tables, is the process's.
#include "plugins/vulkan/shader.h"

#include <shaderc/shaderc.h>
#include <spirv-tools/libspirv.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "plugins/common/error.h"

// --- What floats are promised ---

// Numbers of the SPIR-V specification.
enum {
  SPIRV_HEADER = 5,
  SPIRV_ENTRY_POINT = 15,
  SPIRV_EXECUTION_MODE = 16,
  SPIRV_CAPABILITY = 17,
  SPIRV_TYPE_FLOAT = 22,
  MAX_PROMISES = 6,
};

typedef struct promise_t {
  unsigned bit;  // pestle_vulkan_floats_t
  uint32_t capability, mode, width;
} promise_t;

static const promise_t k_promises[MAX_PROMISES] = {
    {PESTLE_VULKAN_KEEPS_NAN_32, 4466, 4461, 32},
    {PESTLE_VULKAN_KEEPS_NAN_64, 4466, 4461, 64},
    {PESTLE_VULKAN_KEEPS_DENORMALS_32, 4464, 4459, 32},
    {PESTLE_VULKAN_KEEPS_DENORMALS_64, 4464, 4459, 64},
    {PESTLE_VULKAN_ROUNDS_TO_EVEN_32, 4467, 4462, 32},
    {PESTLE_VULKAN_ROUNDS_TO_EVEN_64, 4467, 4462, 64},
};

typedef struct module_t {
  const uint32_t* words;
  size_t count;
  size_t after_entry;  // the first word after the entry point
  uint32_t entry;      // the entry point's function
  bool has32, has64;   // floats of these sizes
} module_t;

static module_t scan(const uint32_t* words, size_t count) {
  module_t m = {.words = words, .count = count};
  for (size_t at = SPIRV_HEADER; at + 2 < count;) {
    size_t size = words[at] >> 16;
    uint32_t op = words[at] & 0xffff;
    if (!size || size > count - at) break;
    if (op == SPIRV_ENTRY_POINT) {
      m.entry = words[at + 2];
      m.after_entry = at + size;
    }
    if (op == SPIRV_TYPE_FLOAT && words[at + 2] == 32) m.has32 = true;
    if (op == SPIRV_TYPE_FLOAT && words[at + 2] == 64) m.has64 = true;
    at += size;
  }
  return m;
}

// Each capability once, right behind the header.
static size_t put_capabilities(const promise_t* const* asked, size_t count,
                               uint32_t* out) {
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i && asked[i]->capability == asked[i - 1]->capability) continue;
    out[size++] = 2u << 16 | SPIRV_CAPABILITY;
    out[size++] = asked[i]->capability;
  }
  return size;
}

static size_t put_modes(const promise_t* const* asked, size_t count,
                        uint32_t entry, uint32_t* out) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t* mode = out + 4 * i;
    mode[0] = 4u << 16 | SPIRV_EXECUTION_MODE;
    mode[1] = entry;
    mode[2] = asked[i]->mode;
    mode[3] = asked[i]->width;
  }
  return 4 * count;
}

static uint32_t* put(uint32_t* out, const uint32_t* words, size_t count) {
  memcpy(out, words, count * sizeof *out);
  return out + count;
}

// The module |words| with what it asks of floats: without it a driver may take
// it that there is neither NaN nor infinity nor -0, may flush denormals and
// round as it likes. GLSL has no words for it. Kernels compute in 32 and 64
// bits alone.
static pestle_status_t ask(const pestle_host_t* host, const void* words,
                           size_t bytes, unsigned floats,
                           pestle_blob_t* out_words) {
  module_t m = scan(words, bytes / sizeof(uint32_t));
  const promise_t* asked[MAX_PROMISES];
  size_t count = 0, more = 0;
  for (size_t i = 0; i < MAX_PROMISES && m.entry; ++i) {
    bool used = k_promises[i].width == 32 ? m.has32 : m.has64;
    if (used && (floats & k_promises[i].bit)) asked[count++] = &k_promises[i];
  }
  uint32_t capabilities[2 * MAX_PROMISES];
  more = put_capabilities(asked, count, capabilities);
  size_t size = (m.count + more + 4 * count) * sizeof(uint32_t);
  uint32_t* out = host->alloc(host->self, size);
  if (!out) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "no memory for %zu bytes of SPIR-V", size);
  }
  *out_words = (pestle_blob_t){out, size};
  size_t head = m.entry ? m.after_entry : SPIRV_HEADER;
  out = put(out, m.words, SPIRV_HEADER);
  out = put(out, capabilities, more);
  out = put(out, m.words + SPIRV_HEADER, head - SPIRV_HEADER);
  out += put_modes(asked, count, m.entry, out);
  put(out, m.words + head, m.count - head);
  return NULL;
}

// --- Compiling ---

static pestle_status_t copied(const pestle_host_t* host, const void* data,
                              size_t size, pestle_blob_t* out) {
  void* copy = host->alloc(host->self, size);
  if (!copy) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "no memory for %zu bytes of text", size);
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
                                           size_t size, unsigned floats,
                                           bool is_own,
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
    const char* why = shaderc_result_get_error_message(result);
    status =
        is_own ? PESTLE_PLUGIN_ERROR(host, INVALID_ARGUMENT,
                                     "the source does not compile: %s", why)
               : PESTLE_PLUGIN_ERROR(host, INTERNAL,
                                     "shaderc does not take what was printed: "
                                     "%s",
                                     why);
  } else {
    const void* words = shaderc_result_get_bytes(result);
    size_t bytes = shaderc_result_get_length(result);
    status = ask(host, words, bytes, floats, out_words);
    if (!status) {
      status = validate(host, name, out_words->data, out_words->size);
    }
    if (status && out_words->data) {
      host->free(host->self, out_words->data, out_words->size);
      *out_words = (pestle_blob_t){NULL, 0};
    }
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
