// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/error.h"

#include <stdarg.h>
#include <stdio.h>

pestle_status_t pestle_plugin_error(const pestle_host_t* host,
                                    pestle_status_code_t code, const char* file,
                                    int line, const char* format, ...) {
  char message[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return host->status_make(host->self, (int32_t)code, file, line, message);
}
