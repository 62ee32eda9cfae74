// SPDX-License-Identifier: Apache-2.0
// The same kernels by another way to Metal: the GLSL of plugins/vulkan, SPIR-V,
// and the MSL that SPIRV-Cross makes of it, on the same stand-in for a GPU. Both
// ways agree with the interpreter, and so with each other.
#include "gpu_flow.h"
#include "gpu_shim.h"

#if __has_include(<spirv_cross/spirv_cross_c.h>)
#include <spirv_cross/spirv_cross_c.h>

#define CROSS_FUNCTIONS(X)                  \
  X(spvc_context_create)                    \
  X(spvc_context_destroy)                   \
  X(spvc_context_parse_spirv)               \
  X(spvc_context_create_compiler)           \
  X(spvc_context_get_last_error_string)     \
  X(spvc_compiler_create_compiler_options)  \
  X(spvc_compiler_options_set_uint)         \
  X(spvc_compiler_install_compiler_options) \
  X(spvc_compiler_compile)

static struct {
#define SLOT(name) __typeof__(&name) name;
  CROSS_FUNCTIONS(SLOT)
#undef SLOT
} cross;

static const pestle_backend_t* vulkan;

static bool open_cross(void) {
  void* library = dlopen("libspirv-cross-c-shared.so.0", RTLD_NOW);
  if (!library) return false;
#define LOOK_UP(name) *(void**)&cross.name = dlsym(library, #name);
  CROSS_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  return true;
}

// The text of |words| in MSL; of |context|.
static const char* translated(spvc_context context, const void* words,
                              size_t size) {
  spvc_parsed_ir ir;
  spvc_compiler compiler;
  spvc_compiler_options options;
  const char* text = NULL;
  bool ok = !cross.spvc_context_parse_spirv(context, words, size / 4, &ir) &&
            !cross.spvc_context_create_compiler(
                context, SPVC_BACKEND_MSL, ir, SPVC_CAPTURE_MODE_TAKE_OWNERSHIP,
                &compiler) &&
            !cross.spvc_compiler_create_compiler_options(compiler, &options) &&
            !cross.spvc_compiler_options_set_uint(
                options, SPVC_COMPILER_OPTION_MSL_VERSION, 20300) &&
            !cross.spvc_compiler_install_compiler_options(compiler, options) &&
            !cross.spvc_compiler_compile(compiler, &text);
  if (!ok) {
    print_error("%s\n", cross.spvc_context_get_last_error_string(context));
    fail();
  }
  return text;
}

static pestle_status_t cross_compile(void* self, const pestle_kir_t* k,
                                     const pestle_kernel_options_t* options,
                                     pestle_blob_t* out_artifact) {
  pestle_kernel_options_t generic = *options;
  pestle_c_printer_artifact_t a;
  pestle_blob_t blob;
  spvc_context context;
  (void)self;
  generic.cpu = "generic";
  PESTLE_TRY(vulkan->target->compile(vulkan->self, k, &generic, &blob));
  assert_ok(pestle_c_printer_artifact_open(&test_host, "vulkan", blob.data,
                                           blob.size, &a));
  void* words = malloc(a.binary_size);
  memcpy(words, a.binary, a.binary_size);
  assert_int_equal(cross.spvc_context_create(&context), SPVC_SUCCESS);
  a.text = translated(context, words, a.binary_size);
  a.text_size = strlen(a.text);
  a.binary_size = 0;
  snprintf(a.target, sizeof a.target, "cross");
  pestle_status_t status =
      pestle_c_printer_artifact_pack(&test_host, &a, out_artifact);
  cross.spvc_context_destroy(context);
  free(words);
  host_free(NULL, blob.data, blob.size);
  return status;
}

static pestle_status_t cross_print(void* self, const pestle_kir_t* k,
                                   const pestle_kernel_options_t* options,
                                   pestle_text_t kind, pestle_blob_t* out) {
  (void)self;
  return vulkan->target->print(vulkan->self, k, options, kind, out);
}

static const pestle_target_api_t cross_target = {
    .struct_size = sizeof cross_target,
    .compile = cross_compile,
    .print = cross_print};

int main(void) {
  // Not the others: arrays of SPIRV-Cross need an operator for each address
  // space, its literals of floats are C++'s doubles, and it prints a shuffle
  // where its value is used, be it in a branch.
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs), cmocka_unit_test(gathers),
      cmocka_unit_test(many_arguments), cmocka_unit_test(lanes_share),
      cmocka_unit_test(lanes_in_axes)};
  (void)loops, (void)lane_moves, (void)lanes_reduce;
  if (!open_cross()) {
    print_message("skipped: libspirv-cross-c-shared.so.0 was not found\n");
    return 77;
  }
  gpu_setup("vulkan");
  vulkan = gpu;
  shim_start((shim_language_t){"cross", "metal_stdlib", true, true});
  shim_backend = *gpu;
  shim_backend.target = &cross_target;
  shim_backend.device = &shim_device_api;
  gpu = &shim_backend;
  return cmocka_run_group_tests(tests, NULL, gpu_teardown);
}

#else
int main(void) {
  print_message("skipped: built without SPIRV-Cross's header\n");
  return 77;
}
#endif
