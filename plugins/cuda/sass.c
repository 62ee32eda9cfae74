// SPDX-License-Identifier: Apache-2.0
// Machine code as text, by the toolkit's own program: nvdisasm FILE.
#include "plugins/cuda/sass.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

// A file in memory that holds |cubin|; -1: there is none.
static int file_of(const pestle_blob_t* cubin) {
  int file = memfd_create("pestle-cubin", 0);
  const char* at = cubin->data;
  size_t left = cubin->size;
  while (file >= 0 && left) {
    ssize_t written = write(file, at, left);
    if (written <= 0) {
      close(file);
      return -1;
    }
    at += written;
    left -= (size_t)written;
  }
  return file;
}

static bool spawn(const char* program, const char* path, int output,
                  pid_t* out_child) {
  posix_spawn_file_actions_t actions;
  char* arguments[] = {(char*)(uintptr_t)program, (char*)(uintptr_t)path, NULL};
  if (posix_spawn_file_actions_init(&actions)) return false;
  bool ok =
      !posix_spawn_file_actions_adddup2(&actions, output, 1) &&
      !posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0) &&
      !posix_spawnp(out_child, program, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return ok;
}

// False: the program could not be started or failed.
static bool run(const char* program, const char* path,
                pestle_plugin_text_t* out) {
  int ends[2], result = -1;
  pid_t child;
  char part[4096];
  if (pipe(ends)) return false;
  bool started = spawn(program, path, ends[1], &child);
  close(ends[1]);
  ssize_t size;
  while (started && (size = read(ends[0], part, sizeof part)) > 0)
    pestle_plugin_text_append(out, part, (size_t)size);
  close(ends[0]);
  if (!started || waitpid(child, &result, 0) != child) return false;
  return WIFEXITED(result) && !WEXITSTATUS(result);
}

void pestle_cuda_disassemble(const pestle_blob_t* cubin,
                             pestle_plugin_text_t* out) {
  static const char* const programs[] = {"nvdisasm",
                                         "/usr/local/cuda/bin/nvdisasm"};
  char path[64];
  bool done = false;
  int file = file_of(cubin);
  snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), file);
  pestle_plugin_text_format(out, "\n// Machine code\n");
  for (int i = 0; file >= 0 && !done && i < 2; ++i)
    done = run(programs[i], path, out);
  if (!done) {
    pestle_plugin_text_format(out,
                              "// is not shown: there is no nvdisasm here\n");
  }
  if (file >= 0) close(file);
}
