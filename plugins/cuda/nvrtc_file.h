// SPDX-License-Identifier: Apache-2.0
// Where libnvrtc is found: toolkits, wheels, the loader's paths.
#ifndef PESTLE_PLUGINS_CUDA_NVRTC_FILE_H_
#define PESTLE_PLUGINS_CUDA_NVRTC_FILE_H_

#include <stdbool.h>
#include <stddef.h>

// The file of libnvrtc that will be opened. False: none was found, and the
// loader is asked for it by name.
bool pestle_cuda_nvrtc_find(char* path, size_t capacity);

#endif  // PESTLE_PLUGINS_CUDA_NVRTC_FILE_H_
