// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program (LD_PRELOAD), it lets one call to the system fail that
// concerns files under a folder:
//
//   PESTLE_IO_FOLDER   the folder; calls on other files are passed on
//   PESTLE_IO_FAULT    N:HOW  the N-th such call, from 1 on; HOW is the number of an
//                      errno, or "short" (half of the bytes, and success)
//   PESTLE_IO_PLANT    "wx": a page that is writable and executable is mapped
//   PESTLE_IO_TRACE    a file that gets a line a call: "open write PATH", ...
//   PESTLE_IO_RECORD   a file that gets what changed the folder, with the bytes that
//                      were written: tests/robust/power_loss.py makes disks of it
//
// Pestle's own code and no library knows of it.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_FILES = 1024 };

static char names[MAX_FILES][512];  // of files that are open under the folder
static int
    numbers[MAX_FILES];  // of the opens that gave these handles, from 1 on
static atomic_int calls, opens;

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

// What tests/robust/wx.py must find.
__attribute__((constructor)) static void plant(void) {
  const char* what = getenv("PESTLE_IO_PLANT");
  if (!what || strcmp(what, "wx") != 0) return;
  syscall(SYS_mmap, NULL, 4096L, PROT_READ | PROT_WRITE | PROT_EXEC,
          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
}

static bool concerns(const char* path) {
  const char* folder = getenv("PESTLE_IO_FOLDER");
  return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static void trace(const char* what, const char* path) {
  const char* file = getenv("PESTLE_IO_TRACE");
  char line[1200];
  if (!file) return;
  int handle = (int)syscall(SYS_openat, AT_FDCWD, file,
                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (handle < 0) return;
  int size = snprintf(line, sizeof(line), "%s %s\n", what, path);
  (void)!syscall(SYS_write, handle, line, (size_t)size);
  syscall(SYS_close, handle);
}

// Appends a line, "WHAT NUMBER SIZE NAME [NEW NAME]" with NUL between the words, and
// |size| bytes behind it. Both as one write: threads do not mix theirs.
static void record(const char* what, int number, const char* path,
                   const char* other, const void* data, size_t size) {
  const char* file = getenv("PESTLE_IO_RECORD");
  if (!file) return;
  char line[1200];
  int length = snprintf(line, sizeof(line), "%s%c%d%c%zu%c%s%c%s\n", what, 0,
                        number, 0, size, 0, path, 0, other);
  char* whole = malloc((size_t)length + size);
  int handle = (int)syscall(SYS_openat, AT_FDCWD, file,
                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (!whole || handle < 0 || length >= (int)sizeof(line)) abort();
  memcpy(whole, line, (size_t)length);
  if (size) memcpy(whole + length, data, size);
  size += (size_t)length;
  if (syscall(SYS_write, handle, whole, size) != (long)size) abort();
  syscall(SYS_close, handle);
  free(whole);
}

// 0: goes on; -1: only half of the bytes; else the errno that it fails with.
static int fault(const char* what, const char* path) {
  int number = atomic_fetch_add(&calls, 1) + 1;
  trace(what, path);
  const char* text = getenv("PESTLE_IO_FAULT");
  if (!text) return 0;
  char* how;
  if (strtol(text, &how, 10) != number || *how != ':') return 0;
  return strcmp(how + 1, "short") == 0 ? -1 : atoi(how + 1);
}

#define FAIL_IF(what, path)             \
  do {                                  \
    int error_ = fault((what), (path)); \
    if (error_ > 0) {                   \
      errno = error_;                   \
      return -1;                        \
    }                                   \
  } while (0)

static const char* name_of(int handle) {
  return handle >= 0 && handle < MAX_FILES && names[handle][0] ? names[handle]
                                                               : NULL;
}

static int open_any(const char* name, const char* path, int flags,
                    mode_t mode) {
  int (*next)(const char*, int, ...) =
      NEXT(int (*)(const char*, int, ...), name);
  if (!concerns(path)) return next(path, flags, mode);
  FAIL_IF(flags & O_CREAT ? "create" : "open", path);
  int handle = next(path, flags, mode);
  if (handle >= 0 && handle < MAX_FILES) {
    snprintf(names[handle], sizeof(names[handle]), "%s", path);
    numbers[handle] = atomic_fetch_add(&opens, 1) + 1;
    const char* how = !(flags & O_CREAT) ? "open"
                      : flags & O_TRUNC  ? "empty"
                                         : "create";
    record(how, numbers[handle], path, "", NULL, 0);
  }
  return handle;
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(list, int) : 0;
  va_end(list);
  return open_any("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(list, int) : 0;
  va_end(list);
  return open_any("open64", path, flags, mode);
}

int close(int handle) {
  char path[512] = "";
  int error = 0;
  if (name_of(handle)) {
    snprintf(path, sizeof(path), "%s", names[handle]);
    names[handle][0] = 0;
    error = fault("close", path);
  }
  int result =
      NEXT(int (*)(int), "close")(handle);  // it is closed all the same
  if (error <= 0) return result;
  errno = error;
  return -1;
}

ssize_t read(int handle, void* data, size_t size) {
  ssize_t (*next)(int, void*, size_t) =
      NEXT(ssize_t(*)(int, void*, size_t), "read");
  const char* path = name_of(handle);
  if (!path) return next(handle, data, size);
  int error = fault("read", path);
  if (error < 0 && size > 1) size /= 2;
  if (error <= 0) return next(handle, data, size);
  errno = error;
  return -1;
}

ssize_t write(int handle, const void* data, size_t size) {
  ssize_t (*next)(int, const void*, size_t) =
      NEXT(ssize_t(*)(int, const void*, size_t), "write");
  const char* path = name_of(handle);
  if (!path) return next(handle, data, size);
  int error = fault("write", path);
  if (error < 0 && size > 1) size /= 2;
  if (error <= 0) {
    ssize_t count = next(handle, data, size);
    if (count > 0)
      record("write", numbers[handle], path, "", data, (size_t)count);
    return count;
  }
  errno = error;
  return -1;
}

int fsync(int handle) {
  const char* path = name_of(handle);
  if (path) FAIL_IF("fsync", path);
  int result = NEXT(int (*)(int), "fsync")(handle);
  if (path && !result) record("fsync", numbers[handle], path, "", NULL, 0);
  return result;
}

int flock(int handle, int how) {
  const char* path = name_of(handle);
  if (path) FAIL_IF("flock", path);
  return NEXT(int (*)(int, int), "flock")(handle, how);
}

int fstat(int handle, struct stat* out) {
  const char* path = name_of(handle);
  if (path) FAIL_IF("fstat", path);
  return NEXT(int (*)(int, struct stat*), "fstat")(handle, out);
}

int rename(const char* from, const char* to) {
  if (concerns(to)) FAIL_IF("rename", to);
  int result = NEXT(int (*)(const char*, const char*), "rename")(from, to);
  if (!result && concerns(to)) record("rename", 0, from, to, NULL, 0);
  return result;
}

int unlink(const char* path) {
  if (concerns(path)) FAIL_IF("unlink", path);
  int result = NEXT(int (*)(const char*), "unlink")(path);
  if (!result && concerns(path)) record("unlink", 0, path, "", NULL, 0);
  return result;
}

int mkdir(const char* path, mode_t mode) {
  if (concerns(path)) FAIL_IF("mkdir", path);
  int result = NEXT(int (*)(const char*, mode_t), "mkdir")(path, mode);
  if (!result && concerns(path)) record("mkdir", 0, path, "", NULL, 0);
  return result;
}

int rmdir(const char* path) {
  int result = NEXT(int (*)(const char*), "rmdir")(path);
  if (!result && concerns(path)) record("rmdir", 0, path, "", NULL, 0);
  return result;
}

int utimensat(int folder, const char* path, const struct timespec times[2],
              int flags) {
  if (concerns(path)) FAIL_IF("utimensat", path);
  return NEXT(int (*)(int, const char*, const struct timespec*, int),
              "utimensat")(folder, path, times, flags);
}

DIR* opendir(const char* path) {
  if (concerns(path)) {
    int error = fault("opendir", path);
    if (error > 0) {
      errno = error;
      return NULL;
    }
  }
  return NEXT(DIR * (*)(const char*), "opendir")(path);
}

static void* mmap_any(const char* name, void* at, size_t size, int protection,
                      int flags, int handle, off_t offset) {
  void* (*next)(void*, size_t, int, int, int, off_t) =
      NEXT(void* (*)(void*, size_t, int, int, int, off_t), name);
  const char* path = flags & MAP_ANONYMOUS ? NULL : name_of(handle);
  int error = path ? fault("mmap", path) : 0;
  if (error <= 0) return next(at, size, protection, flags, handle, offset);
  errno = error;
  return MAP_FAILED;
}

void* mmap(void* at, size_t size, int protection, int flags, int handle,
           off_t offset) {
  return mmap_any("mmap", at, size, protection, flags, handle, offset);
}

void* mmap64(void* at, size_t size, int protection, int flags, int handle,
             off_t offset) {
  return mmap_any("mmap64", at, size, protection, flags, handle, offset);
}
