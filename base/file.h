// SPDX-License-Identifier: Apache-2.0
// Files, folders and paths. A status names the path and the system's reason:
// NOT_FOUND (no such file to read), RESOURCE_EXHAUSTED (disk or quota full, too
// many open files), INVALID_ARGUMENT (a folder or device where a file is
// needed), IO (everything else, also a write into a folder that is not there).
// Paths are terminated byte strings.
// Functions that return text take an arena to put it in.
#ifndef PESTLE_BASE_FILE_H_
#define PESTLE_BASE_FILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "pestle/allocator.h"
#include "pestle/status.h"

// A whole file mapped read-only. |data| is page-aligned and NULL for an empty
// file. If another process truncates the file, reading beyond the cut faults:
// map only files that are replaced by rename, or read them.
typedef struct pestle_mapping_t {
  const void* data;
  size_t size;
} pestle_mapping_t;

PESTLE_NODISCARD pestle_status_t pestle_file_map(const char* path,
                                                 pestle_mapping_t* out_mapping);
void pestle_file_unmap(pestle_mapping_t* mapping);
// Gives the pages that were read so far back to the system; they are there
// again when they are looked at.
void pestle_file_forget(const pestle_mapping_t* mapping);
// The same of the pages of [data, data + size) and of those shortly before, which the system
// maps with a page that is read; nothing where that lies elsewhere. The page that it ends in
// stays.
void pestle_file_forget_part(const pestle_mapping_t* mapping, const void* data,
                             size_t size);

// Reads a regular file of at most |limit| bytes (RESOURCE_EXHAUSTED above it)
// into a block of |out_size| + 1 bytes that ends with a zero byte, to be freed
// with pestle_dealloc(allocator, data, out_size + 1).
PESTLE_NODISCARD pestle_status_t pestle_file_read(const char* path,
                                                  size_t limit,
                                                  pestle_allocator_t allocator,
                                                  char** out_data,
                                                  size_t* out_size);

// Replaces |path| by the concatenation of |parts|, so that a reader sees the
// old file or the whole new one, also after a crash: written beside it, synced,
// renamed. Mode 0600. Safe against other processes that write the same path.
// A process that dies in between leaves a file named |path|.tmp-SOMETHING.
PESTLE_NODISCARD pestle_status_t pestle_file_write_atomic(
    const char* path, const pestle_str_t* parts, size_t part_count);
// The same but for a crash of the machine, after which the file may be missing
// or hold anything: for what is checked when it is read and can be made again. An empty
// folder of that name makes room.
// Waiting for the disk takes 5 to 20 ms a file, as long as compiling a kernel.
PESTLE_NODISCARD pestle_status_t pestle_file_write_cached(
    const char* path, const pestle_str_t* parts, size_t part_count);
// Writes a file for the user (mode 0666 less umask), in place.
PESTLE_NODISCARD pestle_status_t pestle_file_write(const char* path,
                                                   pestle_str_t data);

typedef struct pestle_file_info_t {
  int64_t size;
  int64_t modified_ns;  // since 1970
  uint64_t device;
  uint64_t inode;
  bool is_file;  // a regular file
  bool is_folder;
  bool is_link;     // only if links were not followed
  bool is_ours;     // owned by this process's user
  bool is_private;  // group and others have no access
} pestle_file_info_t;

PESTLE_NODISCARD pestle_status_t pestle_file_stat(const char* path,
                                                  bool follow_links,
                                                  pestle_file_info_t* out_info);
bool pestle_file_exists(const char* path);
// Sets the modification time to now (the cache's "last used").
PESTLE_NODISCARD pestle_status_t pestle_file_touch(const char* path);
// A file that is not there is not an error.
PESTLE_NODISCARD pestle_status_t pestle_file_remove(const char* path);
PESTLE_NODISCARD pestle_status_t pestle_file_rename(const char* from,
                                                    const char* to);

// An exclusive lock between processes and threads, on a file made for it (mode
// 0600). Ends with the process.
typedef struct pestle_file_lock_t {
  int64_t handle;
} pestle_file_lock_t;

// With |wait| false, UNAVAILABLE when another holds it.
PESTLE_NODISCARD pestle_status_t pestle_file_lock(const char* path, bool wait,
                                                  pestle_file_lock_t* out_lock);
void pestle_file_unlock(pestle_file_lock_t* lock);

// The names in a folder, without . and .., sorted bytewise.
PESTLE_NODISCARD pestle_status_t pestle_folder_list(const char* path,
                                                    pestle_arena_t* arena,
                                                    const char*** out_names,
                                                    size_t* out_count);
// Makes |path| and its missing parents, each with mode 0700.
PESTLE_NODISCARD pestle_status_t pestle_folder_make(const char* path);
// Removes an empty folder; one that is not there is not an error.
PESTLE_NODISCARD pestle_status_t pestle_folder_remove(const char* path);

// |folder|/|name|, or |name| if it is absolute or |folder| is empty. NULL when
// out of memory.
char* pestle_path_join(pestle_arena_t* arena, const char* folder,
                       const char* name);
// Views into |path|: "a/b.c" has folder "a" and name "b.c"; "b.c" has folder
// "."; "/b" has "/".
pestle_str_t pestle_path_folder(const char* path);
pestle_str_t pestle_path_name(const char* path);
// Absolute, without links, "." and "..". The file must exist.
PESTLE_NODISCARD pestle_status_t pestle_path_resolve(const char* path,
                                                     pestle_arena_t* arena,
                                                     const char** out_path);
// Resolves |name| relative to |folder| and checks that the file that is meant
// lies inside |folder|: INVALID_ARGUMENT when |name| is absolute or empty,
// climbs out by ".." or a symbolic link leads out. For names that come from
// untrusted files.
PESTLE_NODISCARD pestle_status_t
pestle_path_resolve_inside(const char* folder, const char* name,
                           pestle_arena_t* arena, const char** out_path);

#endif  // PESTLE_BASE_FILE_H_
