// SPDX-License-Identifier: Apache-2.0
// Shared libraries as files, without opening them.
#ifndef PESTLE_PLUGINS_COMMON_FIND_H_
#define PESTLE_PLUGINS_COMMON_FIND_H_

#include <stdbool.h>
#include <stddef.h>

// The file |name| in a folder of LD_LIBRARY_PATH or else of |folders|, the
// first that can be read; false: there is none.
bool pestle_plugin_find(const char* name, const char* const* folders,
                        size_t folder_count, char* path, size_t capacity);

#endif  // PESTLE_PLUGINS_COMMON_FIND_H_
