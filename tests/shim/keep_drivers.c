// SPDX-License-Identifier: Apache-2.0
// Preloaded into tests of a build by AddressSanitizer: drivers of Vulkan stay until the
// process ends. Mesa's have 128 bytes in a variable of their own on CPUs by AMD, and
// Vulkan's loader unloads a driver with its last instance: that is a leak then, of a
// library that no suppression can name any more.
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

__attribute__((visibility("default"))) int dlclose(void* handle) {
  struct link_map* map = NULL;
  union {
    void* address;
    int (*call)(void*);
  } next = {dlsym(RTLD_NEXT, "dlclose")};
  if (handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) &&
      strstr(map->l_name, "/libvulkan_")) {
    return 0;
  }
  return next.call ? next.call(handle) : -1;
}
