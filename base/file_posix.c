// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/vec.h"

enum { PRIVATE_FILE = 0600, PRIVATE_FOLDER = 0700, USER_FILE = 0666 };

static pestle_status_code_t code_of_error(int error) {
  if (error == ENOENT || error == ENOTDIR) return PESTLE_STATUS_NOT_FOUND;
  if (error == ENOMEM) return PESTLE_STATUS_OUT_OF_MEMORY;
  if (error == ENOSPC || error == EDQUOT || error == EMFILE ||
      error == ENFILE || error == EFBIG) {
    return PESTLE_STATUS_RESOURCE_EXHAUSTED;
  }
  return PESTLE_STATUS_IO;
}

// "cannot open 'model.onnx': No such file or directory", from errno.
static pestle_status_t make_error(int line, const char* verb,
                                  const char* path) {
  int error = errno;
  char text[128];
  return pestle_status_make(code_of_error(error), __FILE__, line,
                            "cannot %s '%s': %s", verb, path,
                            strerror_r(error, text, sizeof(text)));
}
#define SYSTEM_ERROR(verb, path) make_error(__LINE__, (verb), (path))

// What whoever chose the place may do about it.
static const char* advice(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a folder that exists and that you may write to";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "; free some space or choose another place";
    default:
      return "";
  }
}

// Of a write. A folder that is missing is no thing that was asked for by name:
// the place refuses the write.
static pestle_status_t make_write_error(int line, const char* verb,
                                        const char* path) {
  int error = errno;
  char text[128];
  pestle_status_code_t code = code_of_error(error);
  return pestle_status_make(
      code == PESTLE_STATUS_NOT_FOUND ? PESTLE_STATUS_IO : code, __FILE__, line,
      "cannot %s '%s': %s%s", verb, path, strerror_r(error, text, sizeof(text)),
      advice(error));
}
#define WRITE_ERROR(verb, path) make_write_error(__LINE__, (verb), (path))

static pestle_status_t open_file(const char* path, int flags, mode_t mode,
                                 const char* verb, int* out_handle) {
  int handle;
  do {
    handle = open(path, flags | O_CLOEXEC, mode);
  } while (handle < 0 && errno == EINTR);
  *out_handle = handle;
  if (handle >= 0) return NULL;
  return flags & O_CREAT ? WRITE_ERROR(verb, path) : SYSTEM_ERROR(verb, path);
}

// Whoever named a folder or a device meant another file: the argument is wrong.
static pestle_status_t not_a_file(const struct stat* info, const char* path) {
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "cannot read '%s': it is %s, not a regular file; name one", path,
      S_ISDIR(info->st_mode) ? "a folder" : "a device, pipe or socket");
}

static pestle_status_t map_handle(int handle, const char* path,
                                  pestle_mapping_t* out_mapping) {
  struct stat info;
  if (fstat(handle, &info)) return SYSTEM_ERROR("look at", path);
  if (!S_ISREG(info.st_mode)) return not_a_file(&info, path);
  if (info.st_size == 0) return NULL;
  size_t size = (size_t)info.st_size;
  void* data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, handle, 0);
  // Not OUT_OF_MEMORY: whoever can do without the mapping goes on.
  if (data == MAP_FAILED && errno == ENOMEM) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "cannot map '%s': the process has no room for a "
                        "mapping of %zu bytes",
                        path, size);
  }
  if (data == MAP_FAILED) return SYSTEM_ERROR("map", path);
  *out_mapping = (pestle_mapping_t){.data = data, .size = size};
  return NULL;
}

pestle_status_t pestle_file_map(const char* path,
                                pestle_mapping_t* out_mapping) {
  *out_mapping = (pestle_mapping_t){0};
  int handle;
  // A pipe that nobody writes to would keep open() waiting.
  PESTLE_TRY(open_file(path, O_RDONLY | O_NONBLOCK, 0, "open", &handle));
  pestle_status_t status = map_handle(handle, path, out_mapping);
  close(handle);
  return status;
}

void pestle_file_unmap(pestle_mapping_t* mapping) {
  // The cast drops a const that is ours: mmap() gave the pages.
  if (mapping->size) munmap((void*)(uintptr_t)mapping->data, mapping->size);
  *mapping = (pestle_mapping_t){0};
}

void pestle_file_forget(const pestle_mapping_t* mapping) {
  if (!mapping->size) return;
  (void)madvise((void*)(uintptr_t)mapping->data, mapping->size, MADV_DONTNEED);
}

void pestle_file_forget_part(const pestle_mapping_t* mapping, const void* data,
                             size_t size) {
  enum { BEFORE = 1 << 16 };
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)data,
            begin = (uintptr_t)mapping->data;
  if (!mapping->size || from < begin || from - begin > mapping->size ||
      size > mapping->size - (from - begin)) {
    return;
  }
  uintptr_t to = (from + size) / page * page;
  from -= from - begin < BEFORE ? from - begin : BEFORE;
  from = from / page * page;
  if (from < to) (void)madvise((void*)from, to - from, MADV_DONTNEED);
}

typedef PESTLE_VEC(char) bytes_t;

// Reads to the end of the file: it may be a pipe, or grow meanwhile.
static pestle_status_t read_handle(int handle, const char* path, size_t limit,
                                   bytes_t* bytes) {
  struct stat info;
  if (fstat(handle, &info)) return SYSTEM_ERROR("look at", path);
  if (S_ISDIR(info.st_mode)) return not_a_file(&info, path);
  size_t expected = info.st_size > 0 ? (size_t)info.st_size : 4096;
  if (expected > limit) expected = limit;
  for (;;) {
    // One byte beyond what is expected, so that the end is seen at once.
    if (!pestle_vec_reserve(bytes, bytes->size ? 1 : expected + 1)) {
      return PESTLE_OOM();
    }
    ssize_t count =
        read(handle, bytes->data + bytes->size, bytes->capacity - bytes->size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SYSTEM_ERROR("read", path);
    if (count == 0) return NULL;
    bytes->size += (size_t)count;
    if (bytes->size > limit) {
      return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                          "'%s' is larger than the %zu bytes allowed", path,
                          limit);
    }
  }
}

pestle_status_t pestle_file_read(const char* path, size_t limit,
                                 pestle_allocator_t allocator, char** out_data,
                                 size_t* out_size) {
  *out_data = NULL;
  *out_size = 0;
  int handle;
  PESTLE_TRY(open_file(path, O_RDONLY, 0, "open", &handle));
  bytes_t bytes;
  pestle_vec_init(&bytes, allocator);
  pestle_status_t status = read_handle(handle, path, limit, &bytes);
  close(handle);
  char* data = NULL;
  if (!status) {
    // The block is handed over at the size that it will be freed with.
    data =
        pestle_realloc(allocator, bytes.data, bytes.capacity, bytes.size + 1);
    if (!data) status = PESTLE_OOM();
  }
  if (status) {
    pestle_vec_deinit(&bytes);
    return status;
  }
  data[bytes.size] = '\0';
  *out_data = data;
  *out_size = bytes.size;
  return NULL;
}

static pestle_status_t write_all(int handle, const char* path,
                                 pestle_str_t data) {
  while (data.size) {
    ssize_t count = write(handle, data.data, data.size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return WRITE_ERROR("write", path);
    data = pestle_str_slice(data, (size_t)count, data.size);
    if (PESTLE_FAULT(trust_short_write)) return NULL;
  }
  return NULL;
}

// Closes and reports what a delayed write found (a full disk, a quota).
static pestle_status_t close_written(int handle, const char* path,
                                     pestle_status_t status) {
  if (close(handle) && !status) return WRITE_ERROR("write", path);
  return status;
}

// A path with something appended; paths of the system end at PATH_MAX anyway.
typedef struct path_buffer_t {
  char text[PATH_MAX + 64];
} path_buffer_t;

// Makes a file beside |path| that nobody else has.
static pestle_status_t make_temporary(const char* path,
                                      path_buffer_t* out_temporary,
                                      int* out_handle) {
  *out_handle = -1;
  if (strlen(path) >= PATH_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the path '%.64s...' is too long",
                        path);
  }
  for (int attempt = 0; attempt < 100; ++attempt) {
    snprintf(out_temporary->text, sizeof(out_temporary->text),
             "%s.tmp-%lld-%lld", path, (long long)pestle_thread_id(),
             (long long)pestle_wall_clock_ns());
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    if (PESTLE_FAULT(trust_in_place)) {
      snprintf(out_temporary->text, sizeof(out_temporary->text), "%s", path);
      flags = O_WRONLY | O_CREAT | O_TRUNC;
    }
    *out_handle = open(out_temporary->text, flags, PRIVATE_FILE);
    if (*out_handle >= 0 || (errno != EEXIST && errno != EINTR)) break;
  }
  if (PESTLE_FAULT(trust_in_place)) {
    // Long enough for a kill to meet it.
    struct timespec pause = {0, 3000000};
    nanosleep(&pause, NULL);
  }
  return *out_handle < 0 ? WRITE_ERROR("write", path) : NULL;
}

// Makes a rename in |folder| last through a crash. A file system that cannot
// sync folders is not a failure of the write.
static void sync_folder_of(const char* path) {
  if (PESTLE_FAULT(trust_lost_name)) return;
  path_buffer_t folder;
  pestle_str_t view = pestle_path_folder(path);
  snprintf(folder.text, sizeof(folder.text), "%.*s", PESTLE_STR_ARG(view));
  int handle = open(folder.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;
  fsync(handle);
  close(handle);
}

static pestle_status_t replace_file(const char* path, const pestle_str_t* parts,
                                    size_t part_count, bool lasts) {
  path_buffer_t temporary;
  int handle;
  struct stat there;
  // A rename would put a file where a device, a pipe or a folder was. An empty folder
  // would keep it out of a cache for ever.
  if (!stat(path, &there) && !S_ISREG(there.st_mode) &&
      (lasts || rmdir(path))) {
    return PESTLE_ERROR(IO,
                        "cannot write '%s': there is something that is no "
                        "file; name another place",
                        path);
  }
  PESTLE_TRY(make_temporary(path, &temporary, &handle));
  pestle_status_t status = NULL;
  for (size_t i = 0; i < part_count && !status; ++i) {
    status = write_all(handle, path, parts[i]);
  }
  if (!status && lasts && !PESTLE_FAULT(trust_lost_fsync) && fsync(handle))
    status = WRITE_ERROR("write", path);
  status = close_written(handle, path, status);
  if (!status) status = pestle_file_rename(temporary.text, path);
  if (status) {
    if (!PESTLE_FAULT(trust_left_over)) unlink(temporary.text);
    return status;
  }
  if (lasts) sync_folder_of(path);
  return NULL;
}

pestle_status_t pestle_file_write_atomic(const char* path,
                                         const pestle_str_t* parts,
                                         size_t part_count) {
  return replace_file(path, parts, part_count, true);
}

pestle_status_t pestle_file_write_cached(const char* path,
                                         const pestle_str_t* parts,
                                         size_t part_count) {
  return replace_file(path, parts, part_count, false);
}

pestle_status_t pestle_file_write(const char* path, pestle_str_t data) {
  int handle;
  PESTLE_TRY(open_file(path, O_WRONLY | O_CREAT | O_TRUNC, USER_FILE, "write",
                       &handle));
  return close_written(handle, path, write_all(handle, path, data));
}

pestle_status_t pestle_file_stat(const char* path, bool follow_links,
                                 pestle_file_info_t* out_info) {
  *out_info = (pestle_file_info_t){0};
  struct stat info;
  int flags = follow_links ? 0 : AT_SYMLINK_NOFOLLOW;
  if (fstatat(AT_FDCWD, path, &info, flags)) {
    return SYSTEM_ERROR("look at", path);
  }
  *out_info = (pestle_file_info_t){
      .size = info.st_size,
      .modified_ns =
          (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
      .device = info.st_dev,
      .inode = info.st_ino,
      .is_file = S_ISREG(info.st_mode),
      .is_folder = S_ISDIR(info.st_mode),
      .is_link = S_ISLNK(info.st_mode),
      .is_ours = info.st_uid == geteuid(),
      .is_private = (info.st_mode & (S_IRWXG | S_IRWXO)) == 0,
  };
  return NULL;
}

bool pestle_file_exists(const char* path) {
  return access(path, F_OK) == 0;
}

pestle_status_t pestle_file_touch(const char* path) {
  if (utimensat(AT_FDCWD, path, NULL, 0)) return SYSTEM_ERROR("touch", path);
  return NULL;
}

pestle_status_t pestle_file_remove(const char* path) {
  if (unlink(path) && errno != ENOENT) return SYSTEM_ERROR("remove", path);
  return NULL;
}

pestle_status_t pestle_file_rename(const char* from, const char* to) {
  if (rename(from, to)) return WRITE_ERROR("rename a file to", to);
  return NULL;
}

pestle_status_t pestle_file_lock(const char* path, bool wait,
                                 pestle_file_lock_t* out_lock) {
  out_lock->handle = -1;
  int handle;
  PESTLE_TRY(open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, PRIVATE_FILE,
                       "lock", &handle));
  int result;
  do {
    result = flock(handle, LOCK_EX | (wait ? 0 : LOCK_NB));
  } while (result && errno == EINTR);
  if (result) {
    pestle_status_t status =
        errno == EWOULDBLOCK
            ? PESTLE_ERROR(UNAVAILABLE, "'%s' is locked by another process",
                           path)
            : SYSTEM_ERROR("lock", path);
    close(handle);
    return status;
  }
  out_lock->handle = handle;
  return NULL;
}

void pestle_file_unlock(pestle_file_lock_t* lock) {
  if (lock->handle >= 0) close((int)lock->handle);
  lock->handle = -1;
}

typedef PESTLE_VEC(const char*) names_t;

static pestle_status_t read_names(DIR* folder, const char* path,
                                  pestle_arena_t* arena, names_t* names) {
  for (;;) {
    errno = 0;
    const struct dirent* entry = readdir(folder);
    if (!entry) return errno ? SYSTEM_ERROR("list", path) : NULL;
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    const char* name = pestle_arena_strdup(arena, entry->d_name);
    if (!name || !pestle_vec_push(names, name)) return PESTLE_OOM();
  }
}

static int compare_names(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

pestle_status_t pestle_folder_list(const char* path, pestle_arena_t* arena,
                                   const char*** out_names, size_t* out_count) {
  *out_names = NULL;
  *out_count = 0;
  DIR* folder = opendir(path);
  if (!folder) return SYSTEM_ERROR("list", path);
  names_t names;
  pestle_vec_init(&names, arena->allocator);
  pestle_status_t status = read_names(folder, path, arena, &names);
  closedir(folder);
  if (!status) {
    if (names.size > 1) {
      qsort(names.data, names.size, sizeof(char*), compare_names);
    }
    *out_names = pestle_arena_copy(arena, names.data,
                                   names.size * sizeof(char*), _Alignof(char*));
    *out_count = names.size;
    if (!*out_names) {
      *out_count = 0;
      status = PESTLE_OOM();
    }
  }
  pestle_vec_deinit(&names);
  return status;
}

static pestle_status_t make_one_folder(const char* path) {
  if (!mkdir(path, PRIVATE_FOLDER) || errno == EEXIST) return NULL;
  // A parent that exists may refuse for another reason (EROFS, EACCES).
  int error = errno;
  struct stat info;
  if (!stat(path, &info) && S_ISDIR(info.st_mode)) return NULL;
  errno = error;
  return WRITE_ERROR("make the folder", path);
}

pestle_status_t pestle_folder_make(const char* path) {
  path_buffer_t part;
  size_t size = strlen(path);
  if (!size || size >= PATH_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "cannot make a folder: the path is %s",
                        size ? "too long" : "empty");
  }
  for (size_t i = 1; i <= size; ++i) {
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part.text, path, i);
    part.text[i] = '\0';
    PESTLE_TRY(make_one_folder(part.text));
  }
  pestle_file_info_t info;
  PESTLE_TRY(pestle_file_stat(path, true, &info));
  if (!info.is_folder) {
    return PESTLE_ERROR(IO, "'%s' exists and is not a folder", path);
  }
  return NULL;
}

pestle_status_t pestle_folder_remove(const char* path) {
  if (rmdir(path) && errno != ENOENT) return SYSTEM_ERROR("remove", path);
  return NULL;
}

char* pestle_path_join(pestle_arena_t* arena, const char* folder,
                       const char* name) {
  if (name[0] == '/' || !folder[0]) return pestle_arena_strdup(arena, name);
  size_t folder_size = strlen(folder), name_size = strlen(name);
  bool has_slash = folder[folder_size - 1] == '/';
  char* path = pestle_arena_alloc(arena, folder_size + name_size + 2, 1);
  if (!path) return NULL;
  memcpy(path, folder, folder_size);
  if (!has_slash) path[folder_size++] = '/';
  memcpy(path + folder_size, name, name_size + 1);
  return path;
}

pestle_str_t pestle_path_folder(const char* path) {
  size_t slash = pestle_str_rfind_char(pestle_str(path), '/');
  if (slash == SIZE_MAX) return PESTLE_STR(".");
  return pestle_str_make(path, slash ? slash : 1);
}

pestle_str_t pestle_path_name(const char* path) {
  pestle_str_t view = pestle_str(path);
  size_t slash = pestle_str_rfind_char(view, '/');
  return slash == SIZE_MAX ? view
                           : pestle_str_slice(view, slash + 1, view.size);
}

pestle_status_t pestle_path_resolve(const char* path, pestle_arena_t* arena,
                                    const char** out_path) {
  *out_path = NULL;
  char resolved[PATH_MAX];
  if (!realpath(path, resolved)) return SYSTEM_ERROR("find", path);
  *out_path = pestle_arena_strdup(arena, resolved);
  return *out_path ? NULL : PESTLE_OOM();
}

// Whether the text of |name| alone leads out of where it starts.
static bool climbs_out(const char* name) {
  pestle_str_t rest = pestle_str(name), part;
  int64_t depth = 0;
  while (pestle_str_next(&rest, '/', &part)) {
    if (pestle_str_equal_c(part, "..")) {
      if (--depth < 0) return true;
    } else if (part.size && !pestle_str_equal_c(part, ".")) {
      ++depth;
    }
  }
  return false;
}

pestle_status_t pestle_path_resolve_inside(const char* folder, const char* name,
                                           pestle_arena_t* arena,
                                           const char** out_path) {
  *out_path = NULL;
  if (!name[0] || name[0] == '/' || climbs_out(name)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the file name '%s' is not relative to and inside "
                        "the folder '%s'",
                        name, folder);
  }
  const char* base;
  const char* path = pestle_path_join(arena, folder, name);
  if (!path) return PESTLE_OOM();
  PESTLE_TRY(pestle_path_resolve(folder, arena, &base));
  PESTLE_TRY(pestle_path_resolve(path, arena, &path));
  pestle_str_t inside = pestle_str(path);
  size_t base_size = strlen(base);
  bool is_root = base_size == 1;
  if (!pestle_str_starts_with(inside, pestle_str(base)) ||
      (!is_root && path[base_size] != '/')) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%s' in the folder '%s' leads out of it, to '%s'",
                        name, folder, path);
  }
  *out_path = path;
  return NULL;
}
