// SPDX-License-Identifier: Apache-2.0
// A plugin file tried in a child process. Its code may crash, hang or end the
// process at the first touch; here that costs a child, and what became of it is
// the reason. The child says before each step which one it is.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/context.h"
#include "runtime/registry.h"

enum { REPORT_STEP = 0x50455354, REPORT_RESULT = 0x50455355 };

// What the child sends. |info| is what the plugin says of itself; its texts
// follow, since its own pointers mean nothing here.
typedef struct report_t {
  int32_t kind;
  int32_t verdict, score, is_own, is_target, is_put_off;
  char step[64];
  char name[40];
  char build_id[264];
  char host_build_id[264];
  char reason[PESTLE_PLUGIN_REASON];
  pestle_backend_abi_info_t info;
} report_t;

// --- The child ---

typedef struct child_t {
  int pipe;
  report_t report;
} child_t;

static void send_report(child_t* child, int32_t kind) {
  // As bytes: gcc takes the report's address for that of its first member.
  unsigned char bytes[sizeof(report_t)];
  child->report.kind = kind;
  memcpy(bytes, &child->report, sizeof(bytes));
  for (size_t sent = 0; sent < sizeof(bytes);) {
    ssize_t size = write(child->pipe, bytes + sent, sizeof(bytes) - sent);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) _exit(125);
    sent += (size_t)size;
  }
}

static void at_step(void* user, const char* step) {
  child_t* child = user;
  (void)snprintf(child->report.step, sizeof(child->report.step), "%s", step);
  send_report(child, REPORT_STEP);
}

static void ask_properties(const pestle_backend_t* backend, int32_t device) {
  bool more = true;
  // As 'pestle plugins' does, which stops there too.
  for (uint32_t i = 0; more && i < 256; ++i) {
    pestle_device_property_t property = {.struct_size = sizeof(property)};
    pestle_status_t status =
        backend->device->property(backend->self, device, i, &property);
    more = !status;
    pestle_status_release(status);
  }
}

// What a host asks of every backend that it lists.
static void ask_backend(child_t* child, const pestle_backend_t* backend) {
  const pestle_target_api_t* target = backend->target;
  const pestle_device_api_t* device = backend->device;
  if (target) {
    pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
    at_step(child, "target.describe");
    pestle_status_release(target->describe(backend->self, NULL, &caps));
  }
  if (!device || !PESTLE_HAS(device, property)) return;
  at_step(child, "device.property");
  for (int32_t i = 0; i < backend->device_count; ++i) {
    ask_properties(backend, i);
  }
}

// What the plugin says of itself, as far as it is that long.
static void copy_info(const pestle_plugin_t* plugin, report_t* report) {
  const pestle_backend_abi_info_t* info = plugin->abi_info();
  size_t size = info->struct_size;
  if (size > sizeof(report->info)) size = sizeof(report->info);
  memcpy(&report->info, info, size);
  report->info.struct_size = size;
  (void)snprintf(report->name, sizeof(report->name), "%s", plugin->name);
  (void)snprintf(report->build_id, sizeof(report->build_id), "%s",
                 plugin->build_id);
  if (!PESTLE_HAS(info, host_build_id)) return;
  (void)snprintf(report->host_build_id, sizeof(report->host_build_id), "%.*s",
                 (int)sizeof(report->host_build_id) - 1, info->host_build_id);
}

static void try_backend(child_t* child, pestle_context_t* context,
                        pestle_arena_t* arena, pestle_plugin_t* plugin) {
  pestle_status_t status = pestle_plugin_open(arena, plugin, at_step, child);
  if (!status && !plugin->is_refused && !plugin->is_put_off) {
    int32_t score = plugin->score;
    status = pestle_plugin_start(context, arena, plugin, at_step, child);
    if (plugin->backend) ask_backend(child, plugin->backend);
    at_step(child, "deinit");
    pestle_plugin_stop(plugin);
    plugin->score = score;
  }
  if (status) _exit(124);
}

// The parent's input is not a plugin's to read, its output is data: what a
// constructor prints is no part of it.
static void close_streams(void) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  (void)dup2(null, STDIN_FILENO);
  (void)dup2(null, STDOUT_FILENO);
}

static void run_child(child_t* child, pestle_context_t* context,
                      pestle_arena_t* arena, pestle_plugin_t* plugin) {
  // Handlers of the parent know nothing of a child.
  static const int signals[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE,
                                SIGABRT, SIGTRAP, SIGSYS};
  for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); ++i)
    signal(signals[i], SIG_DFL);
  (void)setpgid(0, 0);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  close_streams();
  context->core.log = NULL;
  context->core.trace = NULL;
  try_backend(child, context, arena, plugin);
  report_t* report = &child->report;
  report->verdict = plugin->is_refused ? (int32_t)plugin->verdict : 0;
  report->score = plugin->score;
  report->is_own = plugin->is_own;
  report->is_target = plugin->is_target;
  report->is_put_off = plugin->is_put_off;
  if (!plugin->is_refused) copy_info(plugin, report);
  (void)snprintf(report->reason, sizeof(report->reason), "%s", plugin->reason);
  send_report(child, REPORT_RESULT);
  _exit(0);
}

// --- The parent ---

// How long a child may take.
typedef struct patience_t {
  pid_t child;
  int64_t deadline_ms;
} patience_t;

static int64_t now_ms(void) {
  return pestle_clock_ns() / 1000000;
}

// Milliseconds for which |child| was ready to run and another process had the
// CPU: the second number of Linux's schedstat. 0 where there is no such file.
static int64_t starved_ms(pid_t child) {
  char path[64], text[96];
  (void)snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)child);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t size = read(file, text, sizeof(text) - 1);
  (void)close(file);
  text[size > 0 ? size : 0] = 0;
  const char* delay = strchr(text, ' ');
  return delay ? (int64_t)(strtoull(delay, NULL, 10) / 1000000) : 0;
}

// What is left of it. A busy machine is not the plugin's fault: waiting for a
// CPU does not count.
static int64_t left_ms(const patience_t* patience) {
  int64_t left = patience->deadline_ms - now_ms();
  if (left > 0) return left;
  left += starved_ms(patience->child);
  return left > 0 ? left : 0;
}

// The system did not let the parent listen; errno says why.
enum { DEAF = -2 };

// Reads |size| bytes: 1, 0 at the end, -1 when it is too late, or DEAF.
static int read_patiently(int pipe, void* data, size_t size,
                          const patience_t* patience) {
  size_t got = 0;
  while (got < size) {
    int64_t left = left_ms(patience);
    if (left <= 0) return -1;
    struct pollfd wait = {.fd = pipe, .events = POLLIN};
    int ready = poll(&wait, 1, (int)left);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return DEAF;
    ssize_t n = read(pipe, (char*)data + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DEAF;
    if (n == 0) return 0;
    got += (size_t)n;
  }
  return 1;
}

static bool is_report(report_t* report) {
  report->step[sizeof(report->step) - 1] = 0;
  report->name[sizeof(report->name) - 1] = 0;
  report->build_id[sizeof(report->build_id) - 1] = 0;
  report->host_build_id[sizeof(report->host_build_id) - 1] = 0;
  report->reason[sizeof(report->reason) - 1] = 0;
  bool is_result = report->kind == REPORT_RESULT && report->verdict >= 0 &&
                   report->verdict <= PESTLE_VERDICT_PROBE &&
                   report->info.struct_size <= sizeof(report->info);
  return report->kind == REPORT_STEP || is_result;
}

// Takes over what the child found.
static pestle_status_t take_result(pestle_arena_t* arena,
                                   const report_t* report,
                                   pestle_plugin_t* plugin) {
  plugin->score = report->score;
  plugin->is_own = report->is_own != 0;
  plugin->is_target = report->is_target != 0;
  plugin->is_put_off = report->is_put_off != 0;
  if (report->verdict) {
    return pestle_plugin_refuse(
        arena, plugin, (pestle_verdict_t)report->verdict, "%s", report->reason);
  }
  const char* name = pestle_arena_strdup(arena, report->name);
  const char* build_id = pestle_arena_strdup(arena, report->build_id);
  const char* host_id = pestle_arena_strdup(arena, report->host_build_id);
  if (!name || !build_id || !host_id) return PESTLE_OOM();
  plugin->name = name;
  plugin->build_id = build_id;
  plugin->said = report->info;
  plugin->said.name = name;
  plugin->said.build_id = build_id;
  plugin->said.host_build_id = *host_id ? host_id : NULL;
  return NULL;
}

// The system did not give what a try takes.
static pestle_status_t refuse_try(pestle_arena_t* arena, int error,
                                  pestle_plugin_t* plugin) {
  return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_PROBE,
                              "%s: cannot be tried in a child process: %s",
                              plugin->path, strerror(error));
}

// The child ended, or was ended, in |step| without a result.
static pestle_status_t refuse_end(pestle_arena_t* arena, const char* step,
                                  bool too_late, int32_t timeout_ms,
                                  const int* end, pestle_plugin_t* plugin) {
  char what[256];
  if (too_late) {
    (void)snprintf(what, sizeof(what), "did not come back from %s within %d ms",
                   step, (int)timeout_ms);
  } else if (!end) {
    (void)snprintf(what, sizeof(what),
                   "crashed or ended the process in %s (this process waits for "
                   "no children, so it is not known which)",
                   step);
  } else if (WIFSIGNALED(*end)) {
    (void)snprintf(what, sizeof(what), "crashed in %s (signal %d, %s)", step,
                   WTERMSIG(*end), strsignal(WTERMSIG(*end)));
  } else if (WEXITSTATUS(*end) == 124) {
    return PESTLE_OOM();
  } else {
    (void)snprintf(what, sizeof(what),
                   "ended the process in %s (exit status %d)", step,
                   WEXITSTATUS(*end));
  }
  return pestle_plugin_refuse(
      arena, plugin, PESTLE_VERDICT_PROBE,
      "%s: %s, in a child process that tried it; expected it to return, so "
      "mend or remove the plugin",
      plugin->path, what);
}

// Whether the child ends in time. It is not waited for. Where nobody waits for
// children (SIGCHLD is ignored) one that is gone has ended.
static bool has_ended(const patience_t* patience) {
  for (;;) {
    siginfo_t info = {.si_pid = 0};
    int failed = waitid(P_PID, (id_t)patience->child, &info,
                        WEXITED | WNOHANG | WNOWAIT);
    if (failed && errno != EINTR) return true;
    if (!failed && info.si_pid == patience->child) return true;
    if (left_ms(patience) <= 0) return false;
    (void)poll(NULL, 0, 1);
  }
}

static pestle_status_t listen_to(pestle_arena_t* arena, int pipe, pid_t child,
                                 int32_t timeout_ms, pestle_plugin_t* plugin) {
  patience_t patience = {child, now_ms() + timeout_ms};
  report_t report = {.kind = 0};
  char step[64] = "its start";
  int got;
  bool is_own = true;
  while ((got = read_patiently(pipe, &report, sizeof(report), &patience)) ==
         1) {
    is_own = is_report(&report);
    if (!is_own || report.kind == REPORT_RESULT) break;
    memcpy(step, report.step, sizeof(step));
  }
  int error = got == DEAF ? errno : 0;
  // One that closed the pipe, or left it to a process that it started, may have
  // ended or not.
  if (got < 0) patience.deadline_ms = 0;
  bool ended = got != 1 && has_ended(&patience);
  if (got != 1) got = ended ? 0 : -1;
  // With what it started. A child that ended is still there until it is waited
  // for, so the number is its own.
  (void)kill(-child, SIGKILL);
  (void)kill(child, SIGKILL);
  int end = 0;
  pid_t waited;
  while ((waited = waitpid(child, &end, 0)) < 0 && errno == EINTR) {
  }
  if (error) return refuse_try(arena, error, plugin);
  if (got == 1 && is_own) return take_result(arena, &report, plugin);
  if (got == 1) {
    return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_PROBE,
                                "%s: wrote into a pipe that is not its own in "
                                "%s; mend or remove the plugin",
                                plugin->path, step);
  }
  return refuse_end(arena, step, got < 0, timeout_ms,
                    waited == child ? &end : NULL, plugin);
}

pestle_status_t pestle_plugin_try_in_child(pestle_context_t* context,
                                           pestle_arena_t* arena,
                                           pestle_plugin_t* plugin) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return refuse_try(arena, errno, plugin);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    child_t child = {.pipe = ends[1]};
    run_child(&child, context, arena, plugin);
  }
  int reason = errno;
  close(ends[1]);
  pestle_status_t status =
      pid > 0
          ? listen_to(arena, ends[0], pid, context->probe_timeout_ms, plugin)
          : refuse_try(arena, reason, plugin);
  close(ends[0]);
  return status;
}
