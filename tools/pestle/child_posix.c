// SPDX-License-Identifier: Apache-2.0
// A child process that is spoken to line by line, and folders for what it reads.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli.h"

// The child's ends of both pipes become its stdin and stdout.
static int spawn(const char* const* arguments, const int to[2],
                 const int from[2], pid_t* out_pid) {
  posix_spawn_file_actions_t actions;
  int error = posix_spawn_file_actions_init(&actions);
  if (error) return error;
  error = posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  if (!error)
    error = posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  if (!error) {
    error = posix_spawnp(out_pid, arguments[0], &actions, NULL,
                         (char* const*)(uintptr_t)arguments, environ);
  }
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

pestle_status_t cli_child_start(const char* const* arguments,
                                cli_child_t* out_child) {
  *out_child = (cli_child_t){.pid = 0};
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC)) return PESTLE_ERROR(IO, "%s", strerror(errno));
  if (pipe2(from, O_CLOEXEC)) {
    close(to[0]);
    close(to[1]);
    return PESTLE_ERROR(IO, "%s", strerror(errno));
  }
  // A child that is gone is seen by what it does not answer.
  signal(SIGPIPE, SIG_IGN);
  pid_t pid = 0;
  int error = spawn(arguments, to, from, &pid);
  close(to[0]);
  close(from[1]);
  out_child->pid = error ? 0 : (int64_t)pid;
  out_child->in = fdopen(to[1], "w");
  out_child->out = fdopen(from[0], "r");
  if (error) {
    return PESTLE_ERROR(UNAVAILABLE, "cannot run '%s': %s", arguments[0],
                        strerror(error));
  }
  if (out_child->in && out_child->out) return NULL;
  return PESTLE_OOM();
}

bool cli_child_read(cli_child_t* child) {
  ssize_t size = getline(&child->line, &child->capacity, child->out);
  if (size <= 0) return false;
  if (child->line[size - 1] == '\n') child->line[size - 1] = 0;
  return true;
}

void cli_child_stop(cli_child_t* child) {
  if (child->in) fclose(child->in);
  if (child->out) fclose(child->out);
  int state;
  while (child->pid && waitpid((pid_t)child->pid, &state, 0) < 0 &&
         errno == EINTR) {
  }
  free(child->line);
  *child = (cli_child_t){.pid = 0};
}

pestle_status_t cli_temporary_folder(cli_t* cli, const char** out_path) {
  const char* base = cli_environment("TMPDIR");
  char* path =
      pestle_path_join(&cli->arena, base ? base : "/tmp", "pestle-XXXXXX");
  *out_path = NULL;
  if (!path) return PESTLE_OOM();
  if (!mkdtemp(path)) {
    return PESTLE_ERROR(IO, "making a folder '%s': %s", path, strerror(errno));
  }
  *out_path = path;
  return NULL;
}

void cli_remove_folder(cli_t* cli, const char* path) {
  const char** names;
  size_t count;
  pestle_status_t status =
      pestle_folder_list(path, &cli->arena, &names, &count);
  for (size_t i = 0; !status && i < count; ++i) {
    const char* file = pestle_path_join(&cli->arena, path, names[i]);
    if (file) unlink(file);
  }
  pestle_status_release(status);
  pestle_status_release(pestle_folder_remove(path));
}
