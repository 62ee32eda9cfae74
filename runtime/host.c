// SPDX-License-Identifier: Apache-2.0
// The services that the host lends to plugins. |self| is the context, so two
// contexts that load one plugin file share no state of the host.
#include "base/mem.h"
#include "runtime/context.h"

static pestle_status_t host_status_make(void* self, int32_t code,
                                        const char* file, int32_t line,
                                        const char* message) {
  (void)self;
  if (code <= PESTLE_STATUS_OK || code >= PESTLE_STATUS_CODE_COUNT) {
    code = PESTLE_STATUS_INTERNAL;
  }
  return pestle_status_make((pestle_status_code_t)code, file ? file : "", line,
                            "%s", message ? message : "");
}

static void host_status_release(void* self, pestle_status_t status) {
  (void)self;
  pestle_status_release(status);
}

static void* host_alloc(void* self, size_t size) {
  const pestle_context_t* context = self;
  return pestle_alloc_aligned(context->core.allocator, size,
                              PESTLE_BUFFER_ALIGNMENT);
}

static void host_free(void* self, void* data, size_t size) {
  const pestle_context_t* context = self;
  pestle_free_aligned(context->core.allocator, data, size,
                      PESTLE_BUFFER_ALIGNMENT);
}

static void host_log(void* self, int32_t level, const char* message) {
  if (level < PESTLE_LOG_ERROR) level = PESTLE_LOG_ERROR;
  if (level > PESTLE_LOG_DEBUG) level = PESTLE_LOG_DEBUG;
  pestle_context_log(self, (pestle_log_level_t)level, "%s",
                     message ? message : "");
}

void pestle_host_init(pestle_context_t* context, pestle_host_t* out_host) {
  *out_host = (pestle_host_t){
      .struct_size = sizeof(*out_host),
      .abi_major = PESTLE_ABI_MAJOR,
      .abi_minor = PESTLE_ABI_MINOR,
      .self = context,
      .status_make = host_status_make,
      .status_release = host_status_release,
      .alloc = host_alloc,
      .free = host_free,
      .log = host_log,
  };
}
