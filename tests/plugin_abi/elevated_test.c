// SPDX-License-Identifier: Apache-2.0
// A process with raised privileges (a program that belongs to another user and is
// run as that one) looks neither at PESTLE_BACKEND_PATH nor at any other variable.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "test.h"
// Ours.
#include "pestle/runtime.h"

enum { NOBODY = 65534, NOT_ELEVATED = 77 };

// The part that is run with raised privileges: 0 when all was ignored.
static int look(void) {
  if (!getauxval(AT_SECURE)) return NOT_ELEVATED;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true};
  pestle_context_t* context;
  pestle_device_t* device;
  // PESTLE_THREADS is no number: who reads it fails here.
  pestle_status_t status = pestle_context_create(&options, &context);
  if (status) return 1;
  int found = 0;
  for (size_t i = 0; i < pestle_context_search_path_count(context); ++i) {
    if (strstr(pestle_context_search_path(context, i), "planted")) found = 2;
  }
  // Nor is anything remembered in a folder that the variables name.
  if (pestle_context_cache_dir(context)) found = 4;
  status = pestle_context_device(context, NULL, &device);
  if (status || strcmp(pestle_device_name(device), "ref") != 0) found = 3;
  pestle_status_release(status);
  pestle_context_release(context);
  return found;
}

static void test_elevated(void** state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("only root can give files away\n");
    skip();
  }
  char copy[] = "/tmp/pestle-elevated-XXXXXX";
  pestle_allocator_t a = pestle_allocator_system();
  char* data;
  size_t size;
  assert_ok(
      pestle_file_read("/proc/self/exe", (size_t)1 << 28, a, &data, &size));
  int file = mkstemp(copy);
  assert_true(file >= 0);
  assert_int_equal(write(file, data, size), (ssize_t)size);
  assert_int_equal(fchown(file, NOBODY, NOBODY), 0);
  assert_int_equal(fchmod(file, 04755), 0);
  close(file);
  pestle_dealloc(a, data, size + 1);
  pid_t child = fork();
  if (!child) {
    setenv("PESTLE_BACKEND_PATH", "/planted", 1);
    setenv("PESTLE_CACHE_DIR", "/tmp/planted", 1);
    setenv("HOME", "/tmp/planted", 1);
    setenv("PESTLE_THREADS", "four", 1);
    setenv("PESTLE_DEVICE", "planted", 1);
    execl(copy, copy, "--look", (char*)NULL);
    _exit(126);
  }
  int end;
  assert_int_equal(waitpid(child, &end, 0), child);
  unlink(copy);
  assert_true(WIFEXITED(end));
  if (WEXITSTATUS(end) == NOT_ELEVATED) {
    print_message("this system raises no privileges for files in /tmp\n");
    skip();
  }
  assert_int_equal(WEXITSTATUS(end), 0);
}

int main(int argc, char** argv) {
  // Without a search for leaks, which may not look into such a process.
  if (argc > 1 && !strcmp(argv[1], "--look")) _exit(look());
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_elevated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
