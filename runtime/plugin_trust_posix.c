// SPDX-License-Identifier: Apache-2.0
// Whose code a plugin file is. It runs with all rights of this process, so
// nobody but root, this user and the owner of the library may be able to change
// it: neither the file, nor the folder, in which it could be replaced. Folders
// further up are not judged, else nothing below a sticky /tmp would load.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dynlib.h"
#include "base/file.h"
#include "runtime/registry.h"

// What the library's file cannot be found for is no trust.
static pestle_status_t owns_library(pestle_arena_t* arena, uid_t owner,
                                    bool* out_owns) {
  const char* path;
  struct stat info;
  pestle_status_t status = pestle_dynlib_path_of(
      (pestle_dynlib_fn_t)pestle_plugin_trust, arena, &path);
  if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) return status;
  *out_owns = !status && stat(path, &info) == 0 && info.st_uid == owner;
  pestle_status_release(status);
  return NULL;
}

static pestle_status_t is_trusted_owner(pestle_arena_t* arena, uid_t owner,
                                        bool* out_trusted) {
  *out_trusted = owner == 0 || owner == geteuid();
  return *out_trusted ? NULL : owns_library(arena, owner, out_trusted);
}

static const char* format_reason(pestle_arena_t* arena, const char* format,
                                 const char* what) {
  char text[PESTLE_PLUGIN_REASON];
  (void)snprintf(text, sizeof(text), format, what);
  return pestle_arena_strdup(arena, text);
}

// Why |info| cannot be trusted; |what| names it. NULL and |*out_reason| NULL if
// it can.
static pestle_status_t judge(pestle_arena_t* arena, const struct stat* info,
                             const char* what, const char** out_reason) {
  const char* format = NULL;
  bool trusted;
  PESTLE_TRY(is_trusted_owner(arena, info->st_uid, &trusted));
  if (info->st_mode & S_IWOTH) {
    format =
        "%s may be written by others, who could put any code there; take that "
        "right away (chmod o-w)";
  } else if (!trusted) {
    format =
        "%s belongs neither to root, nor to this user, nor to the owner of "
        "Pestle's library; change its owner (chown) or copy it";
  }
  *out_reason = format ? format_reason(arena, format, what) : NULL;
  return format && !*out_reason ? PESTLE_OOM() : NULL;
}

static pestle_status_t judge_folder(pestle_arena_t* arena, const char* path,
                                    const char** out_reason) {
  const char* folder = pestle_arena_strndup(arena, pestle_path_folder(path));
  if (!folder) return PESTLE_OOM();
  struct stat info;
  if (stat(folder, &info) != 0) {
    *out_reason = format_reason(arena, "its folder cannot be looked at: %s",
                                strerror(errno));
    return *out_reason ? NULL : PESTLE_OOM();
  }
  return judge(arena, &info, "its folder", out_reason);
}

// What the link |path| says, from its folder on; NULL: it is none.
static pestle_status_t follow(pestle_arena_t* arena, const char* path,
                              const char** out_next) {
  char text[PATH_MAX];
  *out_next = NULL;
  ssize_t size = readlink(path, text, sizeof(text) - 1);
  if (size < 0) return NULL;
  text[size] = 0;
  if (text[0] == '/') {
    *out_next = pestle_arena_strdup(arena, text);
  } else {
    const char* folder = pestle_arena_strndup(arena, pestle_path_folder(path));
    *out_next = folder ? pestle_path_join(arena, folder, text) : NULL;
  }
  return *out_next ? NULL : PESTLE_OOM();
}

// The folder of |path| and, if that is a link, of each that it leads to. It has
// been resolved, so it leads in no circle but one that was made since.
static pestle_status_t judge_links(pestle_arena_t* arena, const char* path,
                                   const char** out_reason) {
  for (int links = 0; path && links < 64; ++links) {
    PESTLE_TRY(judge_folder(arena, path, out_reason));
    if (*out_reason) return NULL;
    PESTLE_TRY(follow(arena, path, &path));
  }
  return NULL;
}

static void make_stamp(const struct stat* info, pestle_file_stamp_t* stamp) {
  *stamp = (pestle_file_stamp_t){
      .device = (uint64_t)info->st_dev,
      .inode = (uint64_t)info->st_ino,
      .size = (uint64_t)info->st_size,
      .modified_ns =
          (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec,
      .changed_ns =
          (int64_t)info->st_ctim.tv_sec * 1000000000 + info->st_ctim.tv_nsec};
}

// The file's own state, by a handle, so that nothing changes between the looks.
static pestle_status_t judge_file(pestle_arena_t* arena, const char* path,
                                  pestle_file_stamp_t* out_stamp,
                                  const char** out_reason) {
  // Without waiting for the other end of a pipe.
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info;
  if (file < 0 || fstat(file, &info) != 0) {
    const char* why = strerror(errno);
    if (file >= 0) close(file);
    *out_reason = format_reason(arena, "it cannot be read: %s", why);
    return *out_reason ? NULL : PESTLE_OOM();
  }
  close(file);
  make_stamp(&info, out_stamp);
  if (!S_ISREG(info.st_mode)) {
    *out_reason = "it is no regular file; expected a shared library";
    return NULL;
  }
  return judge(arena, &info, "the file", out_reason);
}

pestle_status_t pestle_plugin_trust(pestle_arena_t* arena, const char* path,
                                    const char** out_real_path,
                                    pestle_file_stamp_t* out_stamp,
                                    const char** out_reason) {
  *out_reason = NULL;
  *out_real_path = path;
  pestle_status_t status = pestle_path_resolve(path, arena, out_real_path);
  if (status) {
    if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) {
      return status;
    }
    *out_reason = format_reason(arena, "it leads to no file: %s",
                                pestle_status_message(status));
    pestle_status_release(status);
    return *out_reason ? NULL : PESTLE_OOM();
  }
  // The folders with the links, then that with the file.
  PESTLE_TRY(judge_links(arena, path, out_reason));
  if (*out_reason) return NULL;
  PESTLE_TRY(judge_folder(arena, *out_real_path, out_reason));
  if (*out_reason) return NULL;
  return judge_file(arena, *out_real_path, out_stamp, out_reason);
}

bool pestle_plugin_is_same(const char* path, const pestle_file_stamp_t* stamp) {
  struct stat info;
  pestle_file_stamp_t now;
  if (lstat(path, &info) != 0) return false;
  make_stamp(&info, &now);
  return !memcmp(&now, stamp, sizeof(now));
}
