// SPDX-License-Identifier: Apache-2.0
// Target machines, kept from one compilation to the next: what LLVM makes of a set of
// features is a third of the time of a small kernel. One serves one compilation at a
// time.
#include "plugins/llvm/machine.h"

#include <pthread.h>
#include <string.h>

// Of the process, as libLLVM is: they are LLVM's memory, and know no host. A child of
// fork() finds the lock as pestle_llvm_open() leaves its own.
static struct {
  pthread_once_t once;
  pthread_mutex_t lock;
  uint32_t count;
  pestle_llvm_machine_t kept[16];
} g_machines = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

enum { MOST_KEPT = sizeof g_machines.kept / sizeof *g_machines.kept };

static void before_fork(void) {
  pthread_mutex_lock(&g_machines.lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&g_machines.lock);
}
static void register_fork(void) {
  (void)pthread_atfork(before_fork, after_fork, after_fork);
}

// Takes one of |features| and |is_quick| out of those that are kept.
static bool take_kept(uint64_t features, bool is_quick,
                      pestle_llvm_machine_t* out_machine) {
  bool found = false;
  (void)pthread_once(&g_machines.once, register_fork);
  pthread_mutex_lock(&g_machines.lock);
  for (uint32_t i = g_machines.count; i-- > 0 && !found;) {
    pestle_llvm_machine_t* kept = &g_machines.kept[i];
    if (kept->features != features || kept->is_quick != is_quick) continue;
    *out_machine = *kept;
    *kept = g_machines.kept[--g_machines.count];
    found = true;
  }
  pthread_mutex_unlock(&g_machines.lock);
  return found;
}

pestle_status_t pestle_llvm_machine_take(const pestle_host_t* host,
                                         const pestle_llvm_api_t* ll,
                                         uint64_t features, bool is_quick,
                                         pestle_llvm_machine_t* out_machine) {
  if (take_kept(features, is_quick, out_machine)) return NULL;
  *out_machine =
      (pestle_llvm_machine_t){.features = features, .is_quick = is_quick};
  LLVMTargetRef target;
  char* why = NULL;
  if (ll->GetTargetFromTriple(PESTLE_LLVM_TRIPLE, &target, &why)) {
    pestle_status_t status =
        PESTLE_PLUGIN_ERROR(host, UNAVAILABLE, "libLLVM: %s", why);
    ll->DisposeMessage(why);
    return status;
  }
  char text[1024];
  pestle_llvm_feature_string(features, '+', text, sizeof text);
  out_machine->made = ll->CreateTargetMachine(
      target, PESTLE_LLVM_TRIPLE, "x86-64", text,
      is_quick ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault, LLVMRelocPIC,
      LLVMCodeModelSmall);
  if (out_machine->made) return NULL;
  return PESTLE_PLUGIN_ERROR(host, UNAVAILABLE,
                             "libLLVM makes no code for x86-64");
}

void pestle_llvm_machine_give(const pestle_llvm_api_t* ll,
                              pestle_llvm_machine_t* machine) {
  if (!machine->made) return;
  (void)pthread_once(&g_machines.once, register_fork);
  pthread_mutex_lock(&g_machines.lock);
  bool keeps = g_machines.count < MOST_KEPT;
  if (keeps) g_machines.kept[g_machines.count++] = *machine;
  pthread_mutex_unlock(&g_machines.lock);
  if (!keeps) ll->DisposeTargetMachine(machine->made);
  machine->made = NULL;
}
