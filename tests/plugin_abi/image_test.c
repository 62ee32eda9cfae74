// SPDX-License-Identifier: Apache-2.0
// Images of libraries whose headers and tables lie anywhere, and what the system says
// of files while it fails: the look at a plugin file reads nothing that is not there
// and tells why it does not take a file. The loader is linked into this program, whose
// own functions of these names it calls.
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "test.h"
// Ours.
#include "pestle/runtime.h"
#include "runtime/registry.h"

static char temporary[256];

static const char* in(const char* file) {
  static char paths[8][512];
  static unsigned next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof(paths[0]), "%s/%s", temporary, file);
  return path;
}

// --- Images ---

// A library of two segments, its dynamic section and its strings.
typedef struct library_t {
  Elf64_Ehdr header;
  Elf64_Phdr segments[2];
  Elf64_Dyn dynamic[4];
  char strings[64];
} library_t;

static const char plain_strings[] = "\0libc.so.6\0pestle_backend_init";

static library_t make_library(void) {
  library_t l = {.header = {.e_machine = EM_X86_64,
                            .e_type = ET_DYN,
                            .e_phoff = offsetof(library_t, segments),
                            .e_phentsize = sizeof(Elf64_Phdr),
                            .e_phnum = 2}};
  memcpy(l.header.e_ident, ELFMAG, SELFMAG);
  l.header.e_ident[EI_CLASS] = ELFCLASS64;
  l.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                               .p_offset = 0,
                               .p_vaddr = 0x1000,
                               .p_filesz = sizeof(library_t)};
  l.segments[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                               .p_offset = offsetof(library_t, dynamic),
                               .p_filesz = sizeof(l.dynamic)};
  l.dynamic[0] = (Elf64_Dyn){
      .d_tag = DT_STRTAB, .d_un.d_ptr = 0x1000 + offsetof(library_t, strings)};
  l.dynamic[1] =
      (Elf64_Dyn){.d_tag = DT_STRSZ, .d_un.d_val = sizeof(plain_strings)};
  l.dynamic[2] = (Elf64_Dyn){.d_tag = DT_SONAME, .d_un.d_val = 1};
  memcpy(l.strings, plain_strings, sizeof(plain_strings));
  return l;
}

static const char* inspect(const void* data, size_t size) {
  const char* path = in("image.so");
  assert_ok(pestle_file_write(path, pestle_str_make(data, size)));
  return pestle_plugin_inspect(path);
}

static void set_strings(library_t* l, const char* text, size_t size) {
  memset(l->strings, 'z', sizeof(l->strings));
  memcpy(l->strings, text, size);
  l->dynamic[1].d_un.d_val = size;
}

#define NOT_ELF "is not an ELF library"
#define OTHER "is built for another kind of machine"
#define CUT "is cut short"

static void expect(const library_t* l, size_t size, const char* text) {
  const char* why = inspect(l, size);
  if (!text) {
    assert_null(why);
    return;
  }
  assert_non_null(why);
  if (!strstr(why, text)) print_error("'%s', expected '%s'\n", why, text);
  assert_non_null(strstr(why, text));
}

static void test_headers(void** state) {
  (void)state;
  library_t l = make_library();
  const size_t whole = sizeof(l);
  expect(&l, whole, NULL);
  expect(&l, 0, NOT_ELF);
  expect(&l, sizeof(l.header) - 1, NOT_ELF);
  for (size_t size = sizeof(l.header); size < whole; ++size)
    expect(&l, size, CUT);
  l.header.e_ident[1] = 'X';
  expect(&l, whole, NOT_ELF);
  l = make_library();
  l.header.e_ident[EI_CLASS] = ELFCLASS32;
  expect(&l, whole, OTHER);
  l = make_library();
  l.header.e_machine = EM_AARCH64;
  expect(&l, whole, OTHER);
  l = make_library();
  l.header.e_phentsize = 32;
  expect(&l, whole, OTHER);
  l = make_library();
  l.header.e_phoff = whole;
  expect(&l, whole, CUT);
  l.header.e_phoff = UINT64_MAX - 8;
  expect(&l, whole, CUT);
  l = make_library();
  l.header.e_phnum = UINT16_MAX;
  expect(&l, whole, CUT);
  l.header.e_phnum = 0;  // no segment: the loader says what it thinks of it
  expect(&l, whole, NULL);
  for (int i = 0; i < 2; ++i) {
    l = make_library();
    l.segments[i].p_offset = whole + 1;
    expect(&l, whole, CUT);
    l = make_library();
    l.segments[i].p_filesz = UINT64_MAX;
    expect(&l, whole, CUT);
    // Of another kind it is not mapped.
    l.segments[i].p_type = PT_NOTE;
    expect(&l, whole, NULL);
  }
}

// Tables that are not where they are said to be are left to the loader.
static void test_tables(void** state) {
  (void)state;
  const size_t whole = sizeof(library_t);
  library_t l = make_library();
  for (int i = 0; i < 4; ++i)
    l.dynamic[i].d_tag = DT_SONAME;  // no end within the file
  memset(l.strings, 1, sizeof(l.strings));
  expect(&l, whole, NULL);
  static const uint64_t places[] = {0, 0xfff, 0x1000 + sizeof(library_t),
                                    UINT64_MAX, 1};
  for (size_t i = 0; i < sizeof(places) / sizeof(*places); ++i) {
    l = make_library();
    set_strings(&l, "\0__asan_init", 13);
    l.dynamic[0].d_un.d_ptr = places[i];
    expect(&l, whole, NULL);
  }
  static const uint64_t sizes[] = {sizeof(l.strings) + 1, UINT64_MAX};
  for (size_t i = 0; i < 2; ++i) {
    l = make_library();
    set_strings(&l, "\0__asan_init", 13);
    l.dynamic[1].d_un.d_val = sizes[i];
    expect(&l, whole, NULL);
  }
  // A segment that lies at another address than in the file.
  l = make_library();
  l.segments[0].p_vaddr = 0x7000;
  l.segments[0].p_offset = offsetof(library_t, strings);
  l.segments[0].p_filesz = sizeof(l.strings);
  l.dynamic[0].d_un.d_ptr = 0x7000;
#if PESTLE_SANITIZERS_ == 0
  set_strings(&l, "\0__tsan_init", 13);
  expect(&l, whole, "is built with ThreadSanitizer, but this Pestle is not");
  set_strings(&l, "\0__asan_init", 13);
  expect(&l, whole, "is built with AddressSanitizer, but this Pestle is not");
  set_strings(&l, "__asan_init", 12);
  expect(&l, whole, "is built with AddressSanitizer, but this Pestle is not");
  l.segments[1].p_type = PT_NOTE;  // no dynamic section, whatever it looks like
  expect(&l, whole, NULL);
  l.segments[1].p_type = PT_DYNAMIC;
  set_strings(&l, "libc\0a\0__asan_init", 19);
  expect(&l, whole, "is built with AddressSanitizer, but this Pestle is not");
#endif
  // The end of another name, another beginning, no end, nothing.
  set_strings(&l, "x__asan_init", 13);
  expect(&l, whole, NULL);
  set_strings(&l, "__asan_initial", 15);
  expect(&l, whole, NULL);
  set_strings(&l, "__asan_init", 11);
  expect(&l, whole, NULL);
  set_strings(&l, "no end at all", 13);
  expect(&l, whole, NULL);
  set_strings(&l, "", 0);
  expect(&l, whole, NULL);
  // What cannot be mapped is left to the loader too.
  assert_null(pestle_plugin_inspect(in("nothing.so")));
}

// --- Files ---

#define NEXT(name) __extension__((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// The call of this name on a path that ends so fails, or says another owner.
static struct {
  const char *call, *end;
  int error;
  uid_t owner;
} fault;

static bool is_faulty(const char* call, const char* path) {
  if (!fault.call || strcmp(fault.call, call) != 0) return false;
  size_t size = strlen(path), end = strlen(fault.end);
  return size >= end && !strcmp(path + size - end, fault.end);
}

// Whose this program and its user are said to be; 0: whose they are.
static uid_t program_owner, user_id;

uid_t geteuid(void) {
  return user_id ? user_id : NEXT(geteuid)();
}

int stat(const char* path, struct stat* out) {
  int result = NEXT(stat)(path, out);
  if (program_owner && strstr(path, "/plugin_abi_image"))
    out->st_uid = program_owner;
  if (!is_faulty("stat", path)) return result;
  out->st_uid = fault.owner;
  errno = fault.error;
  return fault.error ? -1 : result;
}

int lstat(const char* path, struct stat* out) {
  if (!is_faulty("lstat", path)) return NEXT(lstat)(path, out);
  errno = fault.error;
  return -1;
}

static int last_file = -1;

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(list, int) : 0;
  va_end(list);
  if (is_faulty("open", path)) {
    errno = fault.error;
    return -1;
  }
  int file = NEXT(open)(path, flags, mode);
  if (is_faulty("fstat", path)) last_file = file;
  return file;
}

int fstat(int file, struct stat* out) {
  if (file != last_file || last_file < 0) return NEXT(fstat)(file, out);
  last_file = -1;
  errno = fault.error;
  return -1;
}

ssize_t readlink(const char* path, char* text, size_t size) {
  if (!is_faulty("readlink", path)) return NEXT(readlink)(path, text, size);
  // A link that was turned to itself since it was resolved.
  strcpy(text, "circle.so");
  return 9;
}

static void expect_trust(const char* path, const char* text) {
  pestle_arena_t arena;
  pestle_file_stamp_t stamp = {.inode = 0};
  const char *real_path, *reason;
  pestle_arena_init(pestle_allocator_system(), &arena);
  assert_ok(pestle_plugin_trust(&arena, path, &real_path, &stamp, &reason));
  if (!text) assert_null(reason);
  if (text && (!reason || !strstr(reason, text)))
    print_error("%s: '%s', expected '%s'\n", path, reason ? reason : "", text);
  assert_true(!text || (reason && strstr(reason, text)));
  if (!text) {
    assert_true(pestle_plugin_is_same(real_path, &stamp));
    fault.call = "lstat", fault.end = ".so", fault.error = EACCES;
    assert_false(pestle_plugin_is_same(real_path, &stamp));
    fault.call = NULL;
  }
  pestle_arena_deinit(&arena);
}

static void test_trust(void** state) {
  (void)state;
  library_t l = make_library();
  const char* path = in("plugin.so");
  assert_ok(pestle_file_write(path, pestle_str_make((char*)&l, sizeof(l))));
  assert_int_equal(chmod(path, 0644), 0);
  expect_trust(path, NULL);
  // In a process without standard input the file is that number.
  int input = dup(0);
  if (input > 0) {
    close(0);
    expect_trust(path, NULL);
    assert_int_equal(dup2(input, 0), 0);
    close(input);
  }
  static const struct {
    const char *call, *end;
    int error;
    uid_t owner;
    const char* text;
  } rows[] = {
      {"stat", "-image", EACCES, 0, "its folder cannot be looked at: Permiss"},
      {"stat", "-image", 0, 54321, "its folder belongs neither to root"},
      {"open", "plugin.so", EMFILE, 0, "it cannot be read: Too many open"},
      {"fstat", "plugin.so", EIO, 0, "it cannot be read: Input/output"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    fault.call = rows[i].call, fault.end = rows[i].end;
    fault.error = rows[i].error, fault.owner = rows[i].owner;
    if (!strcmp(rows[i].end, "-image")) fault.end = strrchr(temporary, '/');
    expect_trust(path, rows[i].text);
    fault.call = NULL;
  }
  // Whoever owns the folder, who uses it, whose the library is; 1: it is not to be seen.
  static const uid_t owners[][4] = {{54321, 0, 0, 0},
                                    {54321, 54321, 0, 1},
                                    {54321, 54322, 0, 0},
                                    {54321, 0, 54321, 1},
                                    {54321, 0, 54322, 0}};
  for (size_t i = 0; i < sizeof(owners) / sizeof(*owners); ++i) {
    fault.call = "stat", fault.end = strrchr(temporary, '/');
    fault.error = 0, fault.owner = owners[i][0];
    user_id = owners[i][1], program_owner = owners[i][2];
    expect_trust(path, owners[i][3] ? NULL : "its folder belongs neither");
    fault.call = NULL;
    user_id = program_owner = 0;
  }
  // Links: of the folder, of another one, and one that is a circle by now.
  assert_int_equal(symlink("plugin.so", in("near.so")), 0);
  expect_trust(in("near.so"), NULL);
  assert_int_equal(symlink(path, in("far.so")), 0);
  expect_trust(in("far.so"), NULL);
  assert_int_equal(symlink("plugin.so", in("circle.so")), 0);
  fault.call = "readlink", fault.end = "circle.so";
  expect_trust(in("circle.so"), NULL);
  fault.call = NULL;
  expect_trust(in("nothing.so"), "it leads to no file: ");
}

// Each request for memory of that fails, whatever the look ends with.
static void test_memory(void** state) {
  (void)state;
  assert_int_equal(mkdir(in("folder.so"), 0755), 0);
  static const char* const files[] = {"plugin.so", "near.so", "far.so",
                                      "nothing.so", "folder.so"};
  for (size_t i = 0; i < 3 * sizeof(files) / sizeof(*files); ++i) {
    const char* path = in(files[i / 3]);
    for (size_t k = 1;; ++k) {
      pestle_test_allocator_t memory;
      pestle_test_allocator_init(&memory, k);
      pestle_arena_t arena;
      pestle_arena_init(pestle_test_allocator(&memory), &arena);
      const char *real_path, *reason;
      pestle_file_stamp_t stamp;
      // The folder cannot be looked at, or is another user's.
      fault.call = i % 3 ? "stat" : NULL;
      fault.end = strrchr(temporary, '/');
      fault.error = i % 3 == 1 ? ELOOP : 0, fault.owner = 54321;
      pestle_status_t status =
          pestle_plugin_trust(&arena, path, &real_path, &stamp, &reason);
      fault.call = NULL;
      bool failed = pestle_test_allocator_failed(&memory);
      if (failed)
        assert_code(status, OUT_OF_MEMORY);
      else
        assert_ok(status);
      pestle_arena_deinit(&arena);
      pestle_test_allocator_check(&memory);
      if (!failed) break;
    }
  }
}

static int make_folder(void** state) {
  (void)state;
  const char* base = getenv("TMPDIR");
  snprintf(temporary, sizeof(temporary), "%s/pestle-image-XXXXXX",
           base && *base ? base : "/tmp");
  return mkdtemp(temporary) ? chmod(temporary, 0755) : -1;
}

static int remove_folder(void** state) {
  (void)state;
  char line[300];
  snprintf(line, sizeof(line), "rm -rf '%s'", temporary);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_headers),
      cmocka_unit_test(test_tables),
      cmocka_unit_test(test_trust),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
