// SPDX-License-Identifier: Apache-2.0
// libLLVM as a file: where it lies and which build it is, so that a plan's key
// can name it without mapping 120 MB.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/common/find.h"
#include "plugins/llvm/llvm_api.h"
#include "plugins/llvm/llvm_version.h"

static const char own_name[] = "libpestle-llvm-core.so." PESTLE_LLVM_MAJOR;

// An LLVM of our own beside this plugin, as wheels have it: what the system has is
// not asked for then.
static bool find_own(char* path, size_t capacity) {
  Dl_info info;
  if (!dladdr(&own_name, &info) || !info.dli_fname) {
    return false;
  }
  const char* slash = strrchr(info.dli_fname, '/');
  int folder = slash ? (int)(slash - info.dli_fname) : 0;
  int size =
      snprintf(path, capacity, "%.*s/%s", folder, info.dli_fname, own_name);
  return slash && size > 0 && (size_t)size < capacity && !access(path, R_OK);
}

bool pestle_llvm_find(char* path, size_t capacity) {
  if (find_own(path, capacity)) return true;
  static const char* const folders[] = {
      "/usr/lib/llvm-" PESTLE_LLVM_MAJOR "/lib",
      "/usr/lib/x86_64-linux-gnu",
      "/usr/lib64/llvm" PESTLE_LLVM_MAJOR "/lib64",
      "/usr/lib64",
      "/usr/lib",
      "/usr/local/lib",
  };
  return pestle_plugin_find(PESTLE_LLVM_SONAME, folders,
                            sizeof folders / sizeof *folders, path, capacity);
}

static bool read_at(int file, void* data, size_t size, uint64_t offset) {
  return pread(file, data, size, (off_t)offset) == (ssize_t)size;
}

// The build id among the |size| bytes of notes.
static bool find_note(const unsigned char* notes, size_t size, char* out,
                      size_t capacity) {
  for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
    Elf64_Nhdr note;
    memcpy(&note, notes + at, sizeof note);
    size_t name = at + sizeof note;
    size_t data = name + ((note.n_namesz + (size_t)3) & ~(size_t)3);
    size_t next = data + ((note.n_descsz + (size_t)3) & ~(size_t)3);
    if (next > size) return false;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        !memcmp(notes + name, "GNU", 4) &&
        note.n_descsz * (size_t)2 < capacity) {
      for (size_t i = 0; i < note.n_descsz; ++i) {
        snprintf(out + 2 * i, 3, "%02x", notes[data + i]);
      }
      return note.n_descsz > 0;
    }
    at = next;
  }
  return false;
}

static bool build_id_of(int file, char* out, size_t capacity) {
  Elf64_Ehdr header;
  if (!read_at(file, &header, sizeof header, 0)) return false;
  if (memcmp(header.e_ident, ELFMAG, SELFMAG)) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    unsigned char notes[4096];
    uint64_t at = header.e_phoff + (uint64_t)i * sizeof segment;
    if (!read_at(file, &segment, sizeof segment, at)) return false;
    if (segment.p_type != PT_NOTE || segment.p_filesz > sizeof notes) continue;
    size_t size = (size_t)segment.p_filesz;
    if (read_at(file, notes, size, segment.p_offset) &&
        find_note(notes, size, out, capacity)) {
      return true;
    }
  }
  return false;
}

bool pestle_llvm_file_build_id(const char* path, char* out, size_t capacity) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  bool found = build_id_of(file, out, capacity);
  close(file);
  return found;
}
