// SPDX-License-Identifier: Apache-2.0
// A look into a library's dynamic strings. A library that needs a sanitizer's
// runtime which the process does not have must not even be opened: that
// runtime, loaded late, ends the process. Every offset is checked; a file that
// is odd in any other way is left to the system's loader and its messages.
#include <elf.h>
#include <string.h>

#include "base/file.h"
#include "runtime/registry.h"

typedef struct image_t {
  const char* data;
  size_t size;
} image_t;

static bool read_at(image_t image, uint64_t offset, void* out, size_t size) {
  if (offset > image.size || size > image.size - offset) return false;
  memcpy(out, image.data + offset, size);
  return true;
}

static bool read_segment(image_t image, const Elf64_Ehdr* header,
                         unsigned index, Elf64_Phdr* out_segment) {
  uint64_t offset = header->e_phoff + (uint64_t)index * sizeof(*out_segment);
  return header->e_phoff < image.size &&
         read_at(image, offset, out_segment, sizeof(*out_segment));
}

// One of an image that is_whole().
static Elf64_Phdr segment_of(image_t image, const Elf64_Ehdr* header,
                             unsigned index) {
  Elf64_Phdr segment;
  memcpy(&segment, image.data + header->e_phoff + index * sizeof(segment),
         sizeof(segment));
  return segment;
}

// The file offset of a virtual address, or UINT64_MAX.
static uint64_t file_offset(image_t image, const Elf64_Ehdr* header,
                            uint64_t address) {
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    Elf64_Phdr segment = segment_of(image, header, i);
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return address - segment.p_vaddr + segment.p_offset;
    }
  }
  return UINT64_MAX;
}

// Of an image that is_whole().
static image_t dynamic_strings(image_t image, const Elf64_Ehdr* header) {
  image_t none = {NULL, 0};
  Elf64_Phdr segment = {.p_type = PT_NULL};
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    segment = segment_of(image, header, i);
    if (segment.p_type == PT_DYNAMIC) break;
  }
  if (segment.p_type != PT_DYNAMIC) return none;
  uint64_t address = 0, size = 0;
  Elf64_Dyn entry = {.d_tag = DT_DEBUG};
  for (uint64_t at = segment.p_offset; entry.d_tag != DT_NULL;
       at += sizeof(entry)) {
    if (!read_at(image, at, &entry, sizeof(entry))) return none;
    if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
  }
  uint64_t offset = file_offset(image, header, address);
  if (offset > image.size || size > image.size - offset) return none;
  return (image_t){image.data + offset, (size_t)size};
}

static bool has_string(image_t strings, const char* text) {
  size_t size = strlen(text) + 1;
  for (size_t at = 0; strings.size - at >= size;) {
    if (!memcmp(strings.data + at, text, size)) return true;
    const char* end = memchr(strings.data + at, 0, strings.size - at);
    if (!end) break;
    at = (size_t)(end - strings.data) + 1;
  }
  return false;
}

// The loader maps segments without asking how long the file is, and the first
// touch of what is not there ends the process.
static bool is_whole(image_t image, const Elf64_Ehdr* header) {
  Elf64_Phdr segment;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    if (!read_segment(image, header, i, &segment)) return false;
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    if (segment.p_offset > image.size ||
        segment.p_filesz > image.size - segment.p_offset) {
      return false;
    }
  }
  return true;
}

static const char* inspect_image(image_t image) {
  Elf64_Ehdr header;
  if (!read_at(image, 0, &header, sizeof(header)) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "is not an ELF library; expected a shared library for this system, "
           "so rebuild it or copy it anew";
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return "is built for another kind of machine; expected x86-64, so build "
           "it for this one";
  }
  if (!is_whole(image, &header)) {
    return "is cut short: it ends before its code does; copy it anew";
  }
  image_t strings = dynamic_strings(image, &header);
  if (!(PESTLE_SANITIZERS_ & PESTLE_SANITIZER_ADDRESS) &&
      has_string(strings, "__asan_init")) {
    return "is built with AddressSanitizer, but this Pestle is not; build "
           "both with the preset asan or neither";
  }
  if (!(PESTLE_SANITIZERS_ & PESTLE_SANITIZER_THREAD) &&
      has_string(strings, "__tsan_init")) {
    return "is built with ThreadSanitizer, but this Pestle is not; build both "
           "with the preset tsan or neither";
  }
  return NULL;
}

const char* pestle_plugin_inspect(const char* path) {
  pestle_mapping_t mapping;
  pestle_status_t status = pestle_file_map(path, &mapping);
  if (status) {
    pestle_status_release(status);
    return NULL;  // The loader says what is wrong.
  }
  const char* reason = inspect_image((image_t){mapping.data, mapping.size});
  pestle_file_unmap(&mapping);
  return reason;
}
