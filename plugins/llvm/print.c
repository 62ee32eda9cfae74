// SPDX-License-Identifier: Apache-2.0
// A kernel's LLVM IR and assembly as text for people.
#include "plugins/llvm/compile.h"
#include "plugins/llvm/guard.h"

static void print_head(const pestle_llvm_emit_t* e, pestle_plugin_text_t* out) {
  const char* note = pestle_kir_string(e->k, e->k->note);
  pestle_plugin_text_format(out, "; kernel %s for %s\n",
                            pestle_kir_string(e->k, e->k->name), e->cpu->name);
  pestle_plugin_text_comment(out, "; ", note);
}

static pestle_status_t print_job(pestle_llvm_job_t* job, pestle_text_t kind,
                                 pestle_plugin_text_t* out) {
  pestle_llvm_emit_t* e = &job->emit;
  print_head(e, out);
  switch (kind) {
    case PESTLE_TEXT_SOURCE: {
      char* text = e->ll->PrintModuleToString(e->module);
      pestle_plugin_text_put(out, text);
      e->ll->DisposeMessage(text);
      return NULL;
    }
    case PESTLE_TEXT_ASM:
      PESTLE_TRY(pestle_llvm_job_run(job));
      return pestle_llvm_disassemble(job, out);
  }
  return PESTLE_PLUGIN_ERROR(e->host, INVALID_ARGUMENT,
                             "llvm prints source and asm, not text %d",
                             (int)kind);
}

typedef struct task_t {
  const pestle_host_t* host;
  const pestle_llvm_cpu_t* cpu;
  const pestle_kir_t* kernel;
  bool is_quick;
  pestle_text_t kind;
  pestle_llvm_job_t* job;
  pestle_plugin_text_t* out;
} task_t;

static pestle_status_t run_task(void* arg) {
  task_t* t = arg;
  PESTLE_TRY(
      pestle_llvm_job_init(t->host, t->cpu, t->kernel, t->is_quick, t->job));
  return print_job(t->job, t->kind, t->out);
}

pestle_status_t pestle_llvm_print(const pestle_host_t* host,
                                  const pestle_llvm_cpu_t* cpu,
                                  const pestle_kir_t* kernel, bool is_quick,
                                  pestle_text_t kind, pestle_blob_t* out_text) {
  pestle_llvm_job_t job = {.emit.arena.host = host};
  pestle_plugin_text_t text = {.host = host};
  task_t task = {host, cpu, kernel, is_quick, kind, &job, &text};
  pestle_status_t status =
      pestle_llvm_guard(host, pestle_kir_string(kernel, kernel->name), run_task,
                        &task, &job.lost);
  pestle_llvm_job_deinit(&job);
  if (!status) return pestle_plugin_text_take(&text, out_text);
  pestle_plugin_text_deinit(&text);
  return status;
}
