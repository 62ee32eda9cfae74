// SPDX-License-Identifier: Apache-2.0
// libnvrtc as a file. Its name tells the version once links are followed.
#include "plugins/cuda/nvrtc_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/cuda/nvrtc.h"

static const char* const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                    "libnvrtc.so"};

static bool readable(const char* folder, size_t size, const char* below,
                     char* path, size_t capacity) {
  for (size_t i = 0; size && i < sizeof names / sizeof *names; ++i) {
    int length = snprintf(path, capacity, "%.*s%s/%s", (int)size, folder, below,
                          names[i]);
    if (length > 0 && (size_t)length < capacity && !access(path, R_OK)) {
      return true;
    }
  }
  return false;
}

static bool in_list(const char* list, char* path, size_t capacity) {
  while (list && *list) {
    size_t size = strcspn(list, ":");
    if (readable(list, size, "", path, capacity)) return true;
    list += size + (list[size] == ':');
  }
  return false;
}

// Toolkits that the environment names, then where they are installed. None of
// the environment counts in a process with more rights than its user.
bool pestle_cuda_nvrtc_find(char* path, size_t capacity) {
  static const char* const toolkits[] = {"CUDA_HOME", "CUDA_PATH"};
  static const char* const folders[] = {
      "/usr/local/cuda/lib64",
      "/usr/local/cuda/targets/x86_64-linux/lib",
      "/usr/lib/x86_64-linux-gnu",
      "/usr/lib64",
      "/usr/lib",
      "/opt/cuda/lib64",
      "/usr/local/lib",
  };
  if (in_list(secure_getenv("LD_LIBRARY_PATH"), path, capacity)) return true;
  for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits; ++i) {
    const char* home = secure_getenv(toolkits[i]);
    if (!home) continue;
    if (readable(home, strlen(home), "/lib64", path, capacity)) return true;
    if (readable(home, strlen(home), "/lib", path, capacity)) return true;
  }
  for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
    if (readable(folders[i], strlen(folders[i]), "", path, capacity)) {
      return true;
    }
  }
  return false;
}

void pestle_cuda_nvrtc_id(char* text, size_t capacity) {
  char path[1024], real[PATH_MAX];
  struct stat about;
  if (!pestle_cuda_nvrtc_find(path, sizeof path) || !realpath(path, real) ||
      stat(real, &about)) {
    snprintf(text, capacity, "none");
    return;
  }
  const char* name = strrchr(real, '/');
  // Builds of one version differ in size or time.
  snprintf(text, capacity, "%s %lld %lld", name ? name + 1 : real,
           (long long)about.st_size, (long long)about.st_mtime);
}
