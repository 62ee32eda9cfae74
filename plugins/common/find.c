// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool readable(const char* folder, size_t size, const char* name,
                     char* path, size_t capacity) {
  int length = snprintf(path, capacity, "%.*s/%s", (int)size, folder, name);
  return size && length > 0 && (size_t)length < capacity &&
         access(path, R_OK) == 0;
}

bool pestle_plugin_find(const char* name, const char* const* folders,
                        size_t folder_count, char* path, size_t capacity) {
  const char* list = secure_getenv("LD_LIBRARY_PATH");
  while (list && *list) {
    size_t size = strcspn(list, ":");
    if (readable(list, size, name, path, capacity)) return true;
    list += size + (list[size] == ':');
  }
  for (size_t i = 0; i < folder_count; ++i) {
    const char* folder = folders[i];
    if (readable(folder, strlen(folder), name, path, capacity)) return true;
  }
  return false;
}
