// SPDX-License-Identifier: Apache-2.0
// The backends that are linked in: a table made from plugins.def and from what
// PESTLE_STATIC_PLUGINS of the build names, so that nothing registers itself
// behind anyone's back.
#include "runtime/registry.h"

// A row PESTLE_PLUGIN(name, STATIC) stands for these functions. The build
// defines PESTLE_LINK_name as 1 for each SHARED one that it links in as well; a
// score is optional.
#define DECLARE_STATIC(name)                                               \
  const pestle_backend_abi_info_t* pestle_##name##_backend_abi_info(void); \
  const pestle_backend_t* pestle_##name##_backend_init(                    \
      const pestle_host_t* host, pestle_status_t* out_status);
#define DECLARE_LINK_0(name)
#define DECLARE_LINK_1(name) \
  DECLARE_STATIC(name)       \
  __attribute__((weak)) int32_t pestle_##name##_backend_score(char*, size_t);
#define ROW_STATIC(name) \
  {pestle_##name##_backend_abi_info, NULL, pestle_##name##_backend_init, true},
#define ROW_LINK_0(name)
#define ROW_LINK_1(name)                                            \
  {pestle_##name##_backend_abi_info, pestle_##name##_backend_score, \
   pestle_##name##_backend_init, false},
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define DECLARE_SHARED(name) PASTE(DECLARE_LINK_, PESTLE_LINK_##name)(name)
#define ROW_SHARED(name) PASTE(ROW_LINK_, PESTLE_LINK_##name)(name)

#define PESTLE_PLUGIN(name, kind) DECLARE_##kind(name)
#include "plugins/plugins.def"
#undef PESTLE_PLUGIN

const pestle_plugin_static_t* pestle_plugin_static_rows(void) {
  static const pestle_plugin_static_t rows[] = {
#define PESTLE_PLUGIN(name, kind) ROW_##kind(name)
#include "plugins/plugins.def"
#undef PESTLE_PLUGIN
      {NULL, NULL, NULL, false},
  };
  return rows;
}
