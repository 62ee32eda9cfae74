// SPDX-License-Identifier: Apache-2.0
// Functions of the operating system that the command needs and base/ does not
// offer.
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli.h"

void cli_set_signals(void) {
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
}

void cli_leave(int code) {
  if (PESTLE_SANITIZERS_) return;
  fflush(NULL);
  _exit(code);
}

const char* cli_environment(const char* name) {
  const char* value = secure_getenv(name);
  return value && value[0] ? value : NULL;
}

void cli_host_name(char* out_name, size_t capacity) {
  if (!capacity) return;
  if (gethostname(out_name, capacity)) out_name[0] = 0;
  out_name[capacity - 1] = 0;
}

bool cli_is_terminal(FILE* file) {
  return isatty(fileno(file)) == 1;
}

const char* cli_colour(FILE* file, cli_colour_t colour) {
  static const char* const codes[] = {[CLI_PLAIN] = "\033[0m",
                                      [CLI_BOLD] = "\033[1m",
                                      [CLI_RED] = "\033[1;31m",
                                      [CLI_GREEN] = "\033[32m",
                                      [CLI_YELLOW] = "\033[33m"};
  const char* term = cli_environment("TERM");
  bool is_dumb = !term || !strcmp(term, "dumb");
  if (is_dumb || cli_environment("NO_COLOR") || !cli_is_terminal(file))
    return "";
  return codes[colour];
}

int cli_terminal_width(FILE* file) {
  int64_t width = 0;
  struct winsize size;
  const char* columns = cli_environment("COLUMNS");
  if (!columns || !pestle_str_parse_i64(pestle_str(columns), &width)) {
    bool is_known = !ioctl(fileno(file), TIOCGWINSZ, &size) && size.ws_col;
    width = is_known ? size.ws_col : 80;
  }
  return width < 40 ? 40 : width > 120 ? 120 : (int)width;
}

// --- A model from a pipe ---
//
// Models are mapped, and some verbs open theirs more than once: what comes through
// the pipe goes to a file without a name, which /dev/fd opens again.

static pestle_status_t copy_stdin(FILE* file) {
  char block[1 << 16];
  size_t size;
  while ((size = fread(block, 1, sizeof(block), stdin)) > 0) {
    if (fwrite(block, 1, size, file) != size) break;
  }
  if (!ferror(stdin) && !ferror(file) && !fflush(file)) return NULL;
  return PESTLE_ERROR(IO, "copying the model from stdin to a file: %s",
                      strerror(errno));
}

pestle_status_t cli_take_stdin(cli_t* cli) {
  bool takes_model = strcmp(cli->verb, "plugins") && strcmp(cli->verb, "cache");
  for (size_t i = 0; takes_model && i < cli->args.size; ++i) {
    if (strcmp(cli->args.data[i], "-") != 0) continue;
    if (i > 0) return CLI_USAGE_ERROR("'-' stands for the model alone");
    if (isatty(STDIN_FILENO) == 1) {
      return CLI_USAGE_ERROR(
          "'-' reads a model from a pipe, and stdin is a terminal");
    }
    FILE* file = tmpfile();  // goes with the process
    if (!file) {
      return PESTLE_ERROR(IO, "making a file for the model from stdin: %s",
                          strerror(errno));
    }
    PESTLE_TRY(copy_stdin(file));
    char path[32];
    snprintf(path, sizeof(path), "/dev/fd/%d", fileno(file));
    cli->stdin_path = cli_copy(cli, pestle_str(path));
    if (!cli->stdin_path) return PESTLE_OOM();
    cli->args.data[i] = cli->stdin_path;
  }
  return NULL;
}

// --- Resources ---

// What getrusage() counts outlives exec(): under a large parent it is the
// parent's peak. Linux tells the program's own.
static int64_t own_peak_kb(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  long long kb = 0;
  while (file && !kb && fgets(line, sizeof(line), file)) {
    if (sscanf(line, "VmHWM: %lld kB", &kb) != 1) kb = 0;
  }
  if (file) fclose(file);
  return (int64_t)kb;
}

int64_t cli_peak_rss_kb(void) {
  struct rusage usage;
  int64_t own = own_peak_kb();
  if (own > 0) return own;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : (int64_t)usage.ru_maxrss;
}

pestle_status_t cli_own_path(pestle_arena_t* arena, const char** out_path) {
  return pestle_path_resolve("/proc/self/exe", arena, out_path);
}

pestle_status_t cli_become(const char* path, const char* const* arguments) {
  fflush(stdout);
  // execv() changes none of them, but its type is older than const.
  char* copies[64] = {NULL};
  for (size_t i = 0; arguments[i] && i < 63; ++i) {
    memcpy(&copies[i], &arguments[i], sizeof(copies[i]));
  }
  execv(path, copies);
  return PESTLE_ERROR(IO, "cannot run '%s': %s", path, strerror(errno));
}

int cli_run_command(const char* command) {
  fflush(stdout);
  int state = system(command);
  if (state == -1) return 127;
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

pestle_status_t cli_run_program(const char* const* arguments, int* out_exit) {
  pid_t pid;
  int state;
  fflush(stdout);
  int error = posix_spawnp(&pid, arguments[0], NULL, NULL,
                           (char* const*)(uintptr_t)arguments, environ);
  if (error) {
    return PESTLE_ERROR(NOT_FOUND, "cannot run '%s': %s", arguments[0],
                        strerror(error));
  }
  while (waitpid(pid, &state, 0) < 0) {
    if (errno == EINTR) continue;
    return PESTLE_ERROR(IO, "waiting for '%s': %s", arguments[0],
                        strerror(errno));
  }
  *out_exit = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
  return NULL;
}
