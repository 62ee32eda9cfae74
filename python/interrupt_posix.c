// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while the main thread compiles: the compilation stops, and what Python does of
// the signal, which it would do only after it, is done at once.
#include <signal.h>

#include "module.h"

static volatile int32_t interrupted;
static struct sigaction before;  // Python's own
static unsigned long main_thread;

static void on_interrupt(int number, siginfo_t* info, void* context) {
  __atomic_store_n(&interrupted, 1, __ATOMIC_RELAXED);
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else {
    before.sa_handler(number);
  }
}

// Stands before Python's handler, which is another after each signal.signal().
static void watch(void) {
  struct sigaction now;
  if (sigaction(SIGINT, NULL, &now) != 0) return;
  bool is_ours = now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_interrupt;
  bool is_plain = !(now.sa_flags & SA_SIGINFO) &&
                  (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
  if (is_ours || is_plain) return;
  before = now;
  now.sa_flags |= SA_SIGINFO;
  now.sa_sigaction = on_interrupt;
  (void)sigaction(SIGINT, &now, NULL);
}

const pestle_control_t* pestle_py_control(void* unused) {
  static const pestle_control_t control = {.struct_size = sizeof(control),
                                           .cancel = &interrupted};
  (void)unused;
  // Signals are the main thread's.
  if (PyThread_get_thread_ident() != main_thread) return NULL;
  __atomic_store_n(&interrupted, 0, __ATOMIC_RELAXED);
  watch();
  return &control;
}

// Pending calls are made by the main thread.
static int note_main_thread(void* unused) {
  (void)unused;
  main_thread = PyThread_get_thread_ident();
  return 0;
}

bool pestle_py_watch(void) {
  return Py_AddPendingCall(note_main_thread, NULL) == 0;
}
