// SPDX-License-Identifier: Apache-2.0
// The backends that are linked in: a table made from plugins.def, so that
// nothing registers itself behind anyone's back.
#include "runtime/registry.h"

// A row PESTLE_PLUGIN(name, STATIC) stands for these two functions.
#define DECLARE_STATIC(name)                                               \
  const pestle_backend_abi_info_t* pestle_##name##_backend_abi_info(void); \
  const pestle_backend_t* pestle_##name##_backend_init(                    \
      const pestle_host_t* host, pestle_status_t* out_status);
#define DECLARE_SHARED(name)
#define PESTLE_PLUGIN(name, kind) DECLARE_##kind(name)
#include "plugins/plugins.def"
#undef PESTLE_PLUGIN

const pestle_plugin_static_t* pestle_plugin_static_rows(void) {
  static const pestle_plugin_static_t rows[] = {
#define ROW_STATIC(name) \
  {pestle_##name##_backend_abi_info, pestle_##name##_backend_init},
#define ROW_SHARED(name)
#define PESTLE_PLUGIN(name, kind) ROW_##kind(name)
#include "plugins/plugins.def"
#undef PESTLE_PLUGIN
      {NULL, NULL},
  };
  return rows;
}
