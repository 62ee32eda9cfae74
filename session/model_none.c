// SPDX-License-Identifier: Apache-2.0
// In a build without the compiler a session has plans alone.
#include "session/internal.h"

pestle_status_t pestle_session_import(pestle_session_t* s, const char* path,
                                      const pestle_import_options_t* options) {
  (void)s, (void)options;
  return PESTLE_ERROR(UNSUPPORTED,
                      "'%s' is no plan, and to make one of it needs the "
                      "compiler, which this library was built without",
                      path);
}

pestle_status_t pestle_session_specialize(pestle_session_t* s,
                                          session_shape_t* shape,
                                          const pestle_tensor_t* inputs) {
  (void)s, (void)shape, (void)inputs;
  return PESTLE_ERROR(INTERNAL, "there is no model");
}

pestle_status_t pestle_session_compile(pestle_session_t* s,
                                       const session_shape_t* shape,
                                       pestle_executable_t** out_executable) {
  (void)s, (void)shape;
  *out_executable = NULL;
  return PESTLE_ERROR(INTERNAL, "there is no model");
}

pestle_status_t pestle_session_pad(
    pestle_session_t* s, const session_shape_t* shape, pestle_module_t* many,
    const int64_t* many_dims, pestle_executable_t* by,
    session_route_t** out_route, pestle_strbuf_t* out_why) {
  (void)s, (void)shape, (void)many, (void)many_dims, (void)by, (void)out_why;
  *out_route = NULL;
  return NULL;
}

bool pestle_session_model_is_strings(const pestle_session_t* s, bool is_output,
                                     size_t index) {
  (void)s, (void)is_output, (void)index;
  return false;
}

pestle_status_t pestle_session_model_strings(const pestle_session_t* s,
                                             pestle_strings_t** out_strings) {
  (void)s;
  *out_strings = NULL;
  return PESTLE_ERROR(INTERNAL, "there is no model");
}
