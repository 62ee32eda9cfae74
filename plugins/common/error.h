// SPDX-License-Identifier: Apache-2.0
// Statuses with formatted sentences, made by the host for a plugin.
#ifndef PESTLE_PLUGINS_COMMON_ERROR_H_
#define PESTLE_PLUGINS_COMMON_ERROR_H_

#include "pestle/plugin.h"

// Never NULL. |file| must be a string constant.
PESTLE_NODISCARD PESTLE_PRINTF(5, 6) pestle_status_t
    pestle_plugin_error(const pestle_host_t* host, pestle_status_code_t code,
                        const char* file, int line, const char* format, ...);

#define PESTLE_PLUGIN_ERROR(host, code, ...)                          \
  pestle_plugin_error(host, PESTLE_STATUS_##code, __FILE__, __LINE__, \
                      __VA_ARGS__)

#endif  // PESTLE_PLUGINS_COMMON_ERROR_H_
