// SPDX-License-Identifier: Apache-2.0
#include "runtime/platform.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"

const char* pestle_platform_env(const char* name) {
  const char* value = secure_getenv(name);
  return value && *value ? value : NULL;
}

void pestle_fork_mark_init(pestle_fork_mark_t* out_mark) {
  out_mark->process = pestle_process_id();
  out_mark->page_size = 0;
  out_mark->state = &out_mark->local;
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  void* page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) {
    if (madvise(page, size, MADV_WIPEONFORK) == 0) {
      out_mark->page_size = size;
      out_mark->state = page;
    } else {
      munmap(page, size);
    }
  }
  atomic_init(out_mark->state, PESTLE_FORK_READY);
}

void pestle_fork_mark_deinit(pestle_fork_mark_t* mark) {
  // A zeroed mark was never initialised.
  if (mark->page_size) munmap(mark->state, mark->page_size);
  mark->state = NULL;
  mark->page_size = 0;
}

void pestle_fork_mark_poll(pestle_fork_mark_t* mark) {
  int64_t process = pestle_process_id();
  if (mark->process == process) return;
  mark->process = process;
  atomic_store(mark->state, PESTLE_FORK_CLEARED);
}

void pestle_platform_seal(void* data, size_t size, bool sealed) {
  (void)mprotect(data, size, sealed ? PROT_READ : PROT_READ | PROT_WRITE);
}

const char* pestle_platform_distrust(const char* path, bool folder) {
#define SENTENCE(text) \
  (folder ? "the cache folder " text : "the entry on disk " text)
  struct stat info;
  if ((folder ? stat(path, &info) : lstat(path, &info)) != 0) {
    return SENTENCE("cannot be looked at");
  }
  if (folder ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode)) {
    return folder ? "the cache folder is not a folder"
                  : "the entry on disk is not a regular file";
  }
  if (info.st_uid != geteuid()) return SENTENCE("belongs to another user");
  if (info.st_mode & (S_IWGRP | S_IWOTH)) {
    return SENTENCE("may be written by group or others");
  }
  return NULL;
#undef SENTENCE
}
