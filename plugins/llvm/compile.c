// SPDX-License-Identifier: Apache-2.0
#include "plugins/llvm/compile.h"

#include <string.h>

#include "plugins/llvm/artifact.h"
#include "plugins/llvm/guard.h"

// --- Set-up ---

// Errors of the back end would go to stderr otherwise.
static void on_diagnostic(LLVMDiagnosticInfoRef info, void* self) {
  pestle_llvm_emit_t* e = self;
  if (e->ll->GetDiagInfoSeverity(info) != LLVMDSError || e->status) return;
  char* text = e->ll->GetDiagInfoDescription(info);
  e->status = PESTLE_PLUGIN_ERROR(e->host, INTERNAL, "LLVM: %s", text);
  e->ll->DisposeMessage(text);
}

static pestle_status_t verify(pestle_llvm_emit_t* e) {
  char* why = NULL;
  pestle_status_t status = NULL;
  if (e->ll->VerifyModule(e->module, LLVMReturnStatusAction, &why)) {
    status = PESTLE_PLUGIN_ERROR(e->host, INTERNAL,
                                 "the IR of a kernel is wrong: %s", why);
  }
  e->ll->DisposeMessage(why);
  return status;
}

pestle_status_t pestle_llvm_job_init(const pestle_host_t* host,
                                     const pestle_llvm_cpu_t* cpu,
                                     const pestle_kir_t* kernel, bool is_quick,
                                     pestle_llvm_job_t* out_job) {
  memset(out_job, 0, sizeof *out_job);
  pestle_llvm_emit_t* e = &out_job->emit;
  e->host = e->arena.host = host;
  e->k = kernel;
  e->cpu = cpu;
  e->is_quick = is_quick;
  PESTLE_TRY(pestle_llvm_open(host, &e->ll));
  PESTLE_TRY(pestle_llvm_machine_take(host, e->ll, cpu->features, is_quick,
                                      &out_job->machine));
  e->context = e->ll->ContextCreate();
  e->ll->ContextSetDiagnosticHandler(e->context, on_diagnostic, e);
  PESTLE_TRY(pestle_llvm_emit(e));
  LLVMTargetDataRef layout =
      e->ll->CreateTargetDataLayout(out_job->machine.made);
  e->ll->SetTarget(e->module, PESTLE_LLVM_TRIPLE);
  e->ll->SetModuleDataLayout(e->module, layout);
  e->ll->DisposeTargetData(layout);
  return verify(e);
}

void pestle_llvm_job_deinit(pestle_llvm_job_t* job) {
  pestle_llvm_emit_t* e = &job->emit;
  const pestle_llvm_api_t* ll = e->ll;
  if (e->status) e->host->status_release(e->host->self, e->status);
  pestle_plugin_arena_deinit(&e->arena);
  if (job->lost) return;
  if (job->object) ll->DisposeMemoryBuffer(job->object);
  if (e->b) ll->DisposeBuilder(e->b);
  if (e->module) ll->DisposeModule(e->module);
  if (e->context) ll->ContextDispose(e->context);
  if (ll) pestle_llvm_machine_give(ll, &job->machine);
}

// --- Running ---

static pestle_status_t run_passes(pestle_llvm_job_t* job) {
  pestle_llvm_emit_t* e = &job->emit;
  LLVMPassBuilderOptionsRef options = e->ll->CreatePassBuilderOptions();
  LLVMErrorRef error = e->ll->RunPasses(
      e->module,
      job->emit.is_quick ? PESTLE_LLVM_QUICK_PASSES : PESTLE_LLVM_PASSES,
      job->machine.made, options);
  e->ll->DisposePassBuilderOptions(options);
  if (!error) return NULL;
  char* text = e->ll->GetErrorMessage(error);
  pestle_status_t status =
      PESTLE_PLUGIN_ERROR(e->host, INTERNAL, "LLVM's passes: %s", text);
  e->ll->DisposeErrorMessage(text);
  return status;
}

pestle_status_t pestle_llvm_job_run(pestle_llvm_job_t* job) {
  pestle_llvm_emit_t* e = &job->emit;
  PESTLE_TRY(run_passes(job));
  char* why = NULL;
  if (e->ll->TargetMachineEmitToMemoryBuffer(
          job->machine.made, e->module, LLVMObjectFile, &why, &job->object)) {
    pestle_status_t status =
        PESTLE_PLUGIN_ERROR(e->host, INTERNAL, "LLVM's code: %s", why);
    e->ll->DisposeMessage(why);
    return status;
  }
  pestle_status_t status = e->status;
  e->status = NULL;
  return status;
}

// --- The artifact ---

pestle_status_t pestle_llvm_job_artifact(pestle_llvm_job_t* job,
                                         pestle_blob_t* out_artifact) {
  const pestle_llvm_emit_t* e = &job->emit;
  const char* name = pestle_kir_string(e->k, e->k->name);
  size_t name_size = strlen(name);
  size_t object_size = e->ll->GetBufferSize(job->object);
  pestle_llvm_artifact_t header = {
      .magic = PESTLE_LLVM_MAGIC,
      .version = PESTLE_LLVM_ARTIFACT_VERSION,
      .entry_size = (uint32_t)name_size,
      .features = e->cpu->features,
      .object_at = (sizeof header + name_size + 15) & ~(size_t)15,
      .object_size = object_size,
  };
  size_t size = (size_t)header.object_at + object_size;
  char* data = e->host->alloc(e->host->self, size);
  if (!data) {
    return PESTLE_PLUGIN_ERROR(e->host, OUT_OF_MEMORY,
                               "no memory for %zu bytes of code", size);
  }
  memset(data, 0, (size_t)header.object_at);
  memcpy(data, &header, sizeof header);
  memcpy(data + sizeof header, name, name_size);
  memcpy(data + header.object_at, e->ll->GetBufferStart(job->object),
         object_size);
  header.checksum = pestle_llvm_checksum(data, size);
  memcpy(data, &header, sizeof header);
  *out_artifact = (pestle_blob_t){data, size};
  return NULL;
}

// --- All of it ---

typedef struct task_t {
  const pestle_host_t* host;
  const pestle_llvm_cpu_t* cpu;
  const pestle_kir_t* kernel;
  bool is_quick;
  pestle_llvm_job_t* job;
  pestle_blob_t* artifact;
} task_t;

static pestle_status_t run_task(void* arg) {
  task_t* t = arg;
  PESTLE_TRY(
      pestle_llvm_job_init(t->host, t->cpu, t->kernel, t->is_quick, t->job));
  PESTLE_TRY(pestle_llvm_job_run(t->job));
  return pestle_llvm_job_artifact(t->job, t->artifact);
}

pestle_status_t pestle_llvm_compile(const pestle_host_t* host,
                                    const pestle_llvm_cpu_t* cpu,
                                    const pestle_kir_t* kernel, bool is_quick,
                                    pestle_blob_t* out_artifact) {
  pestle_llvm_job_t job = {.emit.arena.host = host};
  task_t task = {host, cpu, kernel, is_quick, &job, out_artifact};
  pestle_status_t status =
      pestle_llvm_guard(host, pestle_kir_string(kernel, kernel->name), run_task,
                        &task, &job.lost);
  pestle_llvm_job_deinit(&job);
  return status;
}
