// SPDX-License-Identifier: Apache-2.0
// What 'pestle view' shows of a model: one compilation that leaves the graph after each
// pass and every stage of each kernel.
#include <string.h>

#include "view.h"

static const struct {
  pestle_stage_t from;
  cli_view_stage_t to;
} stages[] = {{PESTLE_STAGE_SCHEDULE, CLI_VIEW_SCHEDULE},
              {PESTLE_STAGE_KERNELS, CLI_VIEW_KIR},
              {PESTLE_STAGE_SOURCE, CLI_VIEW_SOURCE},
              {PESTLE_STAGE_ASM, CLI_VIEW_ASM}};

static pestle_status_t push_pass(cli_view_t* view, const char* name,
                                 const char* text, size_t size) {
  cli_view_pass_t pass = {
      .name = cli_copy(view->cli, pestle_str(name)),
      .text = cli_copy(view->cli, pestle_str_make(text, size))};
  // A pass that changed nothing keeps no text.
  for (size_t i = view->passes.size; pass.text && i > 0; --i) {
    const char* before = view->passes.data[i - 1].text;
    if (!before) continue;
    if (!strcmp(before, pass.text)) pass.text = NULL;
    break;
  }
  if (!pass.name || !pestle_vec_push(&view->passes, pass)) return PESTLE_OOM();
  return NULL;
}

static pestle_status_t push_chapter(cli_view_t* view, const char* name,
                                    const char* text, size_t size) {
  const char* copies[] = {cli_copy(view->cli, pestle_str(name)),
                          cli_copy(view->cli, pestle_str_make(text, size))};
  for (int i = 0; i < 2; ++i) {
    if (!copies[i] || !pestle_vec_push(&view->chapters, copies[i]))
      return PESTLE_OOM();
  }
  return NULL;
}

static void receive(void* user, pestle_stage_t stage, const char* name,
                    const char* text, size_t size) {
  cli_view_t* view = user;
  static const char* const chapters[] = {"cache", "layouts", "summary",
                                         "refused"};
  if (view->status) return;
  if (stage == PESTLE_STAGE_PASS)
    view->status = push_pass(view, name, text, size);
  for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); ++i) {
    if (stages[i].from == stage)
      cli_view_keep(view, name, stages[i].to, text, size);
  }
  if (stage != PESTLE_STAGE_EXPLAIN) return;
  for (size_t i = 0; i < sizeof(chapters) / sizeof(chapters[0]); ++i) {
    if (strcmp(chapters[i], name) != 0) continue;
    view->status = push_chapter(view, name, text, size);
    return;
  }
  cli_view_keep(view, name, CLI_VIEW_EXPLAIN, text, size);
}

static pestle_status_t print(cli_view_t* view, const pestle_module_t* module,
                             unsigned flags, const char** out_copy) {
  char* text;
  size_t size;
  *out_copy = NULL;
  PESTLE_TRY(pestle_module_print(module, flags, &text, &size));
  *out_copy = cli_copy(view->cli, pestle_str_make(text, size));
  pestle_context_free(view->cli->context, text, size + 1);
  return *out_copy ? NULL : PESTLE_OOM();
}

enum { PLAIN = PESTLE_PRINT_ELIDE, LOCATED = PLAIN | PESTLE_PRINT_LOCATIONS };

static const char* last_text(const cli_view_t* view) {
  for (size_t i = view->passes.size; i-- > 0;) {
    if (view->passes.data[i].text) return view->passes.data[i].text;
  }
  return "";
}

// The passes once more, one by one, on the module itself: their texts with the places
// that ops come from, by which a reader finds the model's nodes again. |located| gets
// them, or is left empty where they end in another module than the compilation's did.
static pestle_status_t replay(cli_view_t* view, pestle_module_t* module,
                              pestle_device_t* device,
                              const pestle_compile_options_t* options,
                              const char** located) {
  pestle_compile_options_t one = *options;
  one.skip_passes = NULL;
  const char* end;
  for (size_t i = 0; i < view->passes.size; ++i) {
    const cli_view_pass_t* pass = &view->passes.data[i];
    one.passes = pass->name;
    if (i) {
      PESTLE_TRY(pestle_optimize(view->cli->context, module, device, &one));
    }
    if (pass->text) PESTLE_TRY(print(view, module, LOCATED, &located[i]));
  }
  PESTLE_TRY(print(view, module, PLAIN, &end));
  if (strcmp(end, last_text(view)) != 0)
    memset(located, 0, view->passes.size * sizeof(*located));
  return NULL;
}

static pestle_status_t compile(cli_view_t* view, pestle_module_t* module,
                               pestle_device_t* device) {
  cli_t* cli = view->cli;
  const char* text;
  pestle_compile_options_t options;
  PESTLE_TRY(cli_compile_options(cli, &options));
  pestle_compile_options_t plain = options;
  options.dump = receive;
  options.dump_user = view;
  options.print_after = "all";
  options.no_cache = true;
  options.dump_stages = 1u << PESTLE_STAGE_PASS | 1u << PESTLE_STAGE_EXPLAIN;
  for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); ++i)
    options.dump_stages |= 1u << stages[i].from;
  PESTLE_TRY(print(view, module, PLAIN, &text));
  PESTLE_TRY(push_pass(view, "as read", text, strlen(text)));
  PESTLE_TRY(
      cli_compile_module(cli, module, device, &options, &view->job.plan));
  PESTLE_TRY(view->status);
  const char** located =
      PESTLE_ARENA_ARRAY(&cli->arena, const char*, view->passes.size + 1);
  if (!located) return PESTLE_OOM();
  memset(located, 0, view->passes.size * sizeof(*located));
  PESTLE_TRY(replay(view, module, device, &plain, located));
  for (size_t i = 0; i < view->passes.size; ++i) {
    if (!located[i]) continue;
    view->passes.data[i].text = located[i];
    view->fused = located[i];
  }
  if (!view->fused) view->fused = last_text(view);
  return NULL;
}

pestle_status_t cli_view_compile(cli_view_t* view, pestle_device_t* device) {
  pestle_module_t* module;
  PESTLE_TRY(
      cli_open_module(view->cli, view->path, &view->job.inputs, &module));
  pestle_status_t status = compile(view, module, device);
  pestle_module_release(module);
  return status;
}
