// SPDX-License-Identifier: Apache-2.0
// The backends that are linked in: a table made from plugins.def and from what
// PESTLE_STATIC_PLUGINS of the build names, so that nothing registers itself
// behind anyone's back.
#include "runtime/registry.h"

// A row PESTLE_PLUGIN(name, STATIC) stands for these functions.
#define DECLARE_STATIC(name)                                               \
  const pestle_backend_abi_info_t* pestle_##name##_backend_abi_info(void); \
  const pestle_backend_t* pestle_##name##_backend_init(                    \
      const pestle_host_t* host, pestle_status_t* out_status);
#define DECLARE_SHARED(name)
#define PESTLE_PLUGIN(name, kind) DECLARE_##kind(name)
#include "plugins/plugins.def"
#undef PESTLE_PLUGIN

// Shared ones that this build links in as well. A score is optional.
#if PESTLE_HAS_LINKED
#define PESTLE_LINKED(name) \
  DECLARE_STATIC(name)      \
  __attribute__((weak)) int32_t pestle_##name##_backend_score(char*, size_t);
#include "pestle_linked.def"
#undef PESTLE_LINKED
#endif

const pestle_plugin_static_t* pestle_plugin_static_rows(void) {
  static const pestle_plugin_static_t rows[] = {
#define ROW_STATIC(name) \
  {pestle_##name##_backend_abi_info, NULL, pestle_##name##_backend_init, true},
#define ROW_SHARED(name)
#define PESTLE_PLUGIN(name, kind) ROW_##kind(name)
#include "plugins/plugins.def"
#undef PESTLE_PLUGIN
#if PESTLE_HAS_LINKED
#define PESTLE_LINKED(name)                                         \
  {pestle_##name##_backend_abi_info, pestle_##name##_backend_score, \
   pestle_##name##_backend_init, false},
#include "pestle_linked.def"
#undef PESTLE_LINKED
#endif
      {NULL, NULL, NULL, false},
  };
  return rows;
}
