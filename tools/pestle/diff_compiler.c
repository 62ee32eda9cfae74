// SPDX-License-Identifier: Apache-2.0
// pestle diff: runs a model in two ways and says whether the results agree, and
// if not, after which pass or at which kernel they part.
//
// The second way is run with no pass, with the first pass, with the first two
// ...: the first of them that disagrees with the first way names the pass.
// Then, in the module without passes or after the pass named, all values of the
// top level become results: the first that differs names the kernel.
#include <string.h>

#include "ir_text.h"
#include "json.h"
#include "trial.h"

typedef struct diff_t {
  cli_t* cli;
  pestle_module_t* module;
  cli_way_t a, b;
  cli_inputs_t inputs;
  cli_arrays_t expected;  // of the model, the first way
  const char* no_passes;  // all of the pipeline, to be left out
  size_t pass_count;
} diff_t;

// --- Passes ---

// The passes of the pipeline come first in pestle_pass_name(); those that run
// by name only are left out too, which does nothing.
static pestle_status_t list_passes(diff_t* d) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  for (size_t i = 0; pestle_pass_name(i); ++i) {
    pestle_strbuf_appendf(&text, "%s%s", i ? "," : "", pestle_pass_name(i));
    ++d->pass_count;
  }
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    d->no_passes = cli_copy(d->cli, pestle_strbuf_view(&text));
    if (!d->no_passes) status = PESTLE_OOM();
  }
  pestle_strbuf_deinit(&text);
  return status;
}

// Whether |module|, run by |way|, disagrees with |expected|.
static pestle_status_t disagrees(diff_t* d, pestle_module_t* module,
                                 const cli_way_t* way,
                                 const cli_arrays_t* expected, size_t* output,
                                 char* text, size_t size) {
  cli_arrays_t outputs;
  pestle_status_t status = cli_trial(d->cli, module, way, &d->inputs, &outputs);
  if (!status) {
    status = cli_trial_compare(d->cli, expected, &outputs, output, text, size);
  }
  cli_trial_free(&outputs);
  return status;
}

// --- Kernels ---

// A copy of |module| that returns every value of its top level, in order.
static pestle_status_t with_all_values(diff_t* d, pestle_module_t* module,
                                       cli_ir_text_t* t,
                                       pestle_module_t** out) {
  cli_ir_pair_t* all = NULL;
  size_t count = 0, room = 0;
  *out = NULL;
  for (size_t i = 0; i < t->ops.size; ++i)
    room += t->ops.data[i].result_count;
  all = PESTLE_ARENA_ARRAY(&d->cli->arena, cli_ir_pair_t, room + 1);
  if (!all) return PESTLE_OOM();
  for (size_t i = 0; i < t->ops.size; ++i) {
    const cli_ir_op_t* op = &t->ops.data[i];
    if (op->first < t->header || op->last > t->end || op->indent != 4) continue;
    for (size_t r = 0; r < op->result_count; ++r) {
      PESTLE_TRY(cli_ir_result_name(d->cli, op, r, &all[count].from));
      all[count++].to = op->types[r];
    }
  }
  (void)module;
  cli_ir_edit_t edit = {.results = all, .result_count = count};
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_status_t status = cli_ir_text_apply(t, &edit, &text);
  if (!status) {
    status = pestle_module_parse(d->cli->context, text.data, text.size,
                                 "all values", out);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

// The op of the top level that makes value |value|, or NULL.
static const cli_ir_op_t* find_op(const cli_ir_text_t* t, size_t value) {
  for (size_t i = 0; i < t->ops.size; ++i) {
    const cli_ir_op_t* op = &t->ops.data[i];
    if (op->first < t->header || op->last > t->end || op->indent != 4) continue;
    if (value >= op->result_count) {
      value -= op->result_count;
      continue;
    }
    return op;
  }
  return NULL;
}

static void print_op(const cli_ir_text_t* t, size_t value) {
  const cli_ir_op_t* op = find_op(t, value);
  for (size_t k = op ? op->first : 1; op && k <= op->last; ++k) {
    pestle_str_t line = t->lines.data[k];
    printf("  %.*s\n", PESTLE_STR_ARG(line));
  }
}

static void json_op(const cli_ir_text_t* t, size_t value, pestle_json_t* json) {
  const cli_ir_op_t* op = find_op(t, value);
  pestle_json_begin_array(json);
  for (size_t k = op ? op->first : 1; op && k <= op->last; ++k)
    pestle_json_str(json, t->lines.data[k]);
  pestle_json_end_array(json);
}

// The first kernel of |module|, in which no pass runs any more, whose result
// differs.
static pestle_status_t find_kernel(diff_t* d, pestle_module_t* module,
                                   bool* out_found) {
  cli_ir_text_t t;
  pestle_module_t* all = NULL;
  cli_way_t a = d->a, b = d->b;
  a.passes = b.passes = NULL;
  a.skip = b.skip = d->no_passes;
  a.stop_after = b.stop_after = 0;
  *out_found = false;
  pestle_status_t status = cli_ir_text_init(d->cli, module, &t);
  if (!status) status = with_all_values(d, module, &t, &all);
  cli_arrays_t expected;
  pestle_vec_init(&expected, pestle_allocator_system());
  if (!status) status = cli_trial(d->cli, all, &a, &d->inputs, &expected);
  size_t value = SIZE_MAX;
  char text[512];
  if (!status) {
    status = disagrees(d, all, &b, &expected, &value, text, sizeof(text));
  }
  cli_trial_free(&expected);
  if (!status && value != SIZE_MAX) {
    *out_found = true;
    if (d->cli->json) {
      cli_key_cstr(d->cli->json, "kernel_difference", text);
      pestle_json_key(d->cli->json, "kernel");
      json_op(&t, value, d->cli->json);
    } else {
      printf("the first kernel whose result differs: %s\n", text);
      print_op(&t, value);
    }
  }
  pestle_module_release(all);
  cli_ir_text_deinit(&t);
  return status;
}

// --- The search ---

static pestle_status_t copy_of(diff_t* d, pestle_module_t** out) {
  void* data;
  size_t size;
  PESTLE_TRY(pestle_module_serialize(d->module, &data, &size));
  pestle_status_t status =
      pestle_module_deserialize(d->cli->context, data, size, out);
  pestle_context_free(d->cli->context, data, size);
  return status;
}

// What the first |n| passes of the second way make.
static pestle_status_t after_passes(diff_t* d, size_t n,
                                    pestle_module_t** out) {
  pestle_compile_options_t options;
  pestle_device_t* device;
  cli_way_t way = d->b;
  way.stop_after = (int64_t)n;
  PESTLE_TRY(copy_of(d, out));
  if (!n) return NULL;
  PESTLE_TRY(cli_way_options(d->cli, &way, &options));
  PESTLE_TRY(pestle_context_device(d->cli->context, way.device, &device));
  return pestle_optimize(d->cli->context, *out, device, &options);
}

static pestle_status_t explain(diff_t* d, size_t n) {
  if (d->cli->json) {
    if (n) cli_key_cstr(d->cli->json, "pass", pestle_pass_name(n - 1));
    cli_key_u64(d->cli->json, "after_passes", n);
  } else if (n) {
    printf("results part after pass %zu, '%s'\n", n, pestle_pass_name(n - 1));
  } else {
    printf("results part before any pass\n");
  }
  pestle_module_t* module = NULL;
  bool found = false;
  pestle_status_t status = after_passes(d, n, &module);
  if (!status) status = find_kernel(d, module, &found);
  pestle_module_release(module);
  if (!status && !found && n && !d->cli->json) {
    printf(
        "run as it is, no kernel of what the pass makes differs: the pass "
        "changes the meaning, or kernels differ where they are fused\n");
  }
  return status;
}

// How many passes of how many were tried.
static void show_progress(const diff_t* d, size_t n) {
  if (!cli_is_terminal(stderr)) return;
  fprintf(stderr, "\rpass %zu of %zu: %s\033[K", n + 1, d->pass_count,
          pestle_pass_name(n));
}

static void end_progress(const diff_t* d) {
  if (d->pass_count && cli_is_terminal(stderr)) fputs("\r\033[K", stderr);
}

static pestle_status_t search(diff_t* d) {
  for (size_t n = 0; n < d->pass_count; ++n) {
    show_progress(d, n);
    cli_way_t way = d->b;
    char text[512];
    size_t output;
    if (n) {
      way.stop_after = (int64_t)n;
    } else {
      way.passes = NULL;
      way.skip = d->no_passes;
    }
    PESTLE_TRY(disagrees(d, d->module, &way, &d->expected, &output, text,
                         sizeof(text)));
    if (output == SIZE_MAX) continue;
    end_progress(d);
    return explain(d, n);
  }
  end_progress(d);
  if (d->cli->json) {
    cli_key_bool(d->cli->json, "after_all_passes", true);
  } else {
    printf("they part only where all passes have run\n");
  }
  return NULL;
}

static pestle_status_t compare(diff_t* d, int* out_exit) {
  char text[512];
  size_t output;
  PESTLE_TRY(cli_trial(d->cli, d->module, &d->a, &d->inputs, &d->expected));
  PESTLE_TRY(disagrees(d, d->module, &d->b, &d->expected, &output, text,
                       sizeof(text)));
  pestle_json_t* json = d->cli->json;
  if (json) {
    cli_key_cstr(json, "model", d->cli->args.data[0]);
    cli_key_cstr(json, "first_way", d->a.text);
    cli_key_cstr(json, "second_way", d->b.text);
    cli_key_u64(json, "outputs", d->expected.size);
    cli_key_bool(json, "agree", output == SIZE_MAX);
    if (output != SIZE_MAX) {
      cli_key_u64(json, "output", output);
      cli_key_cstr(json, "difference", text);
    }
  }
  if (output == SIZE_MAX) {
    if (json) return NULL;
    printf("%s and %s agree on all %zu outputs\n", d->a.text, d->b.text,
           d->expected.size);
    return NULL;
  }
  *out_exit = CLI_CHECK_FAILED;
  if (!json) {
    printf("%s and %s: output %zu: %s\n", d->a.text, d->b.text, output, text);
  }
  if (d->cli->text[CLI_QUICK] || d->b.passes || d->b.stop_after) return NULL;
  PESTLE_TRY(list_passes(d));
  return search(d);
}

pestle_status_t cli_diff(cli_t* cli, int* out_exit) {
  if (cli->args.size != 3) {
    return CLI_USAGE_ERROR(
        "'pestle diff' wants a model and two ways to run it, as in 'pestle "
        "diff model.onnx ref llvm,strict'");
  }
  diff_t d = {.cli = cli};
  pestle_vec_init(&d.expected, pestle_allocator_system());
  PESTLE_TRY(cli_way_parse(cli, cli->args.data[1], &d.a));
  PESTLE_TRY(cli_way_parse(cli, cli->args.data[2], &d.b));
  pestle_status_t status = cli_inputs_read(cli, &d.inputs);
  if (!status) {
    status = cli_open_module(cli, cli->args.data[0], &d.inputs, &d.module);
  }
  if (!status) status = compare(&d, out_exit);
  cli_trial_free(&d.expected);
  pestle_module_release(d.module);
  cli_inputs_deinit(&d.inputs);
  return status;
}
