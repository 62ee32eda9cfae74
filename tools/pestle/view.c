// SPDX-License-Identifier: Apache-2.0
// pestle view: a model or plan as a page that needs nothing else: its graph on the way,
// kernels, times, memory.
#include "view.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/thread.h"
#include "json.h"
#include "pestle/version.h"

static const void* section(const pestle_plan_header_t* plan,
                           pestle_plan_section_t s) {
  return (const char*)plan + s.offset;
}

// --- JSON ---

static void write_ios(const pestle_plan_header_t* plan, pestle_plan_section_t s,
                      const char* key, pestle_json_t* json) {
  const pestle_plan_io_t* ios = section(plan, s);
  const char* strings = section(plan, plan->strings);
  pestle_json_key(json, key);
  pestle_json_begin_array(json);
  for (uint64_t i = 0; i < s.count; ++i) {
    const char* type = cli_info_type((pestle_dtype_t)ios[i].dtype,
                                     strings[ios[i].dictionary] != 0);
    cli_info_json_value(json, strings + ios[i].name, type, ios[i].rank,
                        ios[i].dims, NULL);
    cli_key_u64(json, "size", ios[i].size);
    pestle_json_end_object(json);
  }
  pestle_json_end_array(json);
}

static void write_locations(const pestle_plan_header_t* plan,
                            pestle_json_t* json) {
  const pestle_plan_location_t* l = section(plan, plan->locations);
  const char* strings = section(plan, plan->strings);
  pestle_json_key(json, "locations");
  pestle_json_begin_array(json);
  for (uint64_t i = 0; i < plan->locations.count; ++i) {
    pestle_json_begin_array(json);
    pestle_json_cstr(json, strings + l[i].op);
    pestle_json_cstr(json, strings + l[i].name);
    pestle_json_cstr(json, strings + l[i].file);
    pestle_json_u64(json, l[i].line);
    pestle_json_u64(json, l[i].column);
    pestle_json_end_array(json);
  }
  pestle_json_end_array(json);
}

// [storage, index, offset, size, is written].
static void write_binding(const pestle_plan_binding_t* b, pestle_json_t* json) {
  pestle_json_begin_array(json);
  pestle_json_u64(json, b->storage);
  pestle_json_u64(json, b->index);
  pestle_json_u64(json, b->offset);
  pestle_json_u64(json, b->size);
  pestle_json_u64(json, (b->flags & PESTLE_PLAN_WRITTEN) != 0);
  pestle_json_end_array(json);
}

static void write_kernel_cost(const pestle_plan_kernel_t* k,
                              const char* strings, pestle_json_t* json) {
  cli_key_cstr(json, "kernel", strings + k->name);
  cli_key_u64(json, "flops", k->flops);
  cli_key_u64(json, "bytes", k->bytes);
  cli_key_u64(json, "code", k->code_size);
}

static void write_step(const pestle_plan_header_t* plan, uint64_t i,
                       int32_t node, pestle_json_t* json) {
  static const char* const kinds[] = {"kernel", "copy",       "jump",
                                      "jump",   "jump",       "end",
                                      "call",   "collective", "jump"};
  const pestle_plan_step_t* s =
      (const pestle_plan_step_t*)section(plan, plan->steps) + i;
  const pestle_plan_kernel_t* kernels = section(plan, plan->kernels);
  const pestle_plan_binding_t* bindings = section(plan, plan->bindings);
  const uint32_t* ids = section(plan, plan->location_ids);
  const char* strings = section(plan, plan->strings);
  uint32_t count = s->kind == PESTLE_PLAN_COPY ? 2 : s->count;
  bool has_bindings =
      s->kind == PESTLE_PLAN_LAUNCH || s->kind == PESTLE_PLAN_COPY ||
      s->kind == PESTLE_PLAN_CALL || s->kind == PESTLE_PLAN_COLLECTIVE;
  pestle_json_begin_object(json);
  cli_key_cstr(json, "kind",
               s->kind <= PESTLE_PLAN_REPEAT ? kinds[s->kind] : "");
  if (s->kind == PESTLE_PLAN_LAUNCH)
    write_kernel_cost(&kernels[s->kernel], strings, json);
  cli_key_cstr(json, "ops", strings + s->label);
  pestle_json_key(json, "node");
  pestle_json_i64(json, node);
  pestle_json_key(json, "locations");
  pestle_json_begin_array(json);
  for (uint32_t j = 0; j < s->location_count; ++j)
    pestle_json_u64(json, ids[s->first_location + j]);
  pestle_json_end_array(json);
  pestle_json_key(json, "bindings");
  pestle_json_begin_array(json);
  for (uint32_t j = 0; has_bindings && j < count; ++j)
    write_binding(&bindings[s->first + j], json);
  pestle_json_end_array(json);
  pestle_json_end_object(json);
}

static void write_plan(const pestle_plan_header_t* plan, const int32_t* nodes,
                       pestle_json_t* json) {
  const char* strings = section(plan, plan->strings);
  const pestle_plan_device_t* device =
      plan->devices.count ? section(plan, plan->devices) : NULL;
  const pestle_plan_constant_ref_t* refs = section(plan, plan->constant_refs);
  cli_key_cstr(json, "name", strings + plan->name);
  cli_key_cstr(json, "backend", device ? strings + device->backend : "");
  cli_key_cstr(json, "cpu", device ? strings + device->cpu : "");
  write_ios(plan, plan->inputs, "inputs", json);
  write_ios(plan, plan->outputs, "outputs", json);
  pestle_json_key(json, "arena");
  pestle_json_i64(json, plan->arena_size);
  pestle_json_key(json, "lower_bound");
  pestle_json_i64(json, plan->lower_bound);
  pestle_json_key(json, "scratch");
  pestle_json_i64(json, plan->scratch_size);
  pestle_json_key(json, "constants");
  pestle_json_begin_array(json);
  for (uint64_t i = 0; i < plan->constant_refs.count; ++i)
    pestle_json_u64(json, refs[i].size);
  pestle_json_end_array(json);
  write_locations(plan, json);
  pestle_json_key(json, "steps");
  pestle_json_begin_array(json);
  for (uint64_t i = 0; i < plan->steps.count; ++i)
    write_step(plan, i, nodes ? nodes[i] : -1, json);
  pestle_json_end_array(json);
}

// A graph as nodes and as text; |name| is the pass.
static pestle_status_t write_graph(cli_view_t* view, const char* name,
                                   const char* text, const cli_graph_t* graph,
                                   pestle_json_t* json) {
  pestle_json_begin_object(json);
  cli_key_cstr(json, "name", name);
  int32_t number = cli_view_text(view, text, strlen(text));
  if (number < 0) return PESTLE_OOM();
  cli_key_u64(json, "text", (uint64_t)number);
  PESTLE_TRY(cli_graph_write(graph, json));
  pestle_json_end_object(json);
  return NULL;
}

// Each pass that changed something, with those that did not behind it. The last is the
// fused graph, to which steps refer.
static pestle_status_t write_graphs(cli_view_t* view, const cli_graph_t* fused,
                                    pestle_json_t* json) {
  size_t last = view->passes.size;
  while (last > 0 && !view->passes.data[last - 1].text)
    --last;
  pestle_json_key(json, "graphs");
  pestle_json_begin_array(json);
  for (size_t i = 0; i + 1 < last; ++i) {
    const cli_view_pass_t* pass = &view->passes.data[i];
    if (!pass->text) continue;
    cli_graph_t graph;
    pestle_status_t status = cli_graph_read(pestle_str(pass->text), &graph);
    if (!status)
      status = write_graph(view, pass->name, pass->text, &graph, json);
    cli_graph_deinit(&graph);
    PESTLE_TRY(status);
  }
  if (view->fused)
    PESTLE_TRY(write_graph(view, "fused", view->fused, fused, json));
  pestle_json_end_array(json);
  pestle_json_key(json, "passes");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < view->passes.size; ++i) {
    pestle_json_begin_array(json);
    pestle_json_cstr(json, view->passes.data[i].name);
    pestle_json_bool(json, view->passes.data[i].text != NULL);
    pestle_json_end_array(json);
  }
  pestle_json_end_array(json);
  return NULL;
}

static void write_kernels(const cli_view_t* view, pestle_json_t* json) {
  pestle_json_key(json, "kernels");
  pestle_json_begin_object(json);
  for (size_t i = 0; i < view->kernels.size; ++i) {
    pestle_json_key(json, view->kernels.data[i].name);
    pestle_json_begin_array(json);
    for (int j = 0; j < CLI_VIEW_STAGES; ++j)
      pestle_json_i64(json, view->kernels.data[i].texts[j]);
    pestle_json_end_array(json);
  }
  pestle_json_end_object(json);
}

static void write_texts(const cli_view_t* view, pestle_json_t* json) {
  pestle_json_key(json, "explain");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < view->chapters.size; ++i)
    pestle_json_cstr(json, view->chapters.data[i]);
  pestle_json_end_array(json);
  pestle_json_key(json, "texts");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < view->texts.size; ++i)
    pestle_json_cstr(json, view->texts.data[i]);
  pestle_json_end_array(json);
}

static pestle_status_t write_profile(cli_view_t* view, pestle_json_t* json) {
  pestle_json_key(json, "profile");
  if (view->job.executable) return cli_profile_json(&view->job, json);
  pestle_json_null(json);
  return NULL;
}

static pestle_status_t write_all(cli_view_t* view, const cli_graph_t* fused,
                                 pestle_json_t* json) {
  const pestle_plan_header_t* plan = pestle_plan_data(view->job.plan, NULL);
  int32_t* nodes = NULL;
  if (view->fused) {
    nodes = PESTLE_ARENA_ARRAY(&view->cli->arena, int32_t,
                               (size_t)plan->steps.count + 1);
    if (!nodes) return PESTLE_OOM();
    PESTLE_TRY(cli_graph_pair(fused, plan, nodes));
  }
  pestle_json_begin_object(json);
  cli_key_cstr(json, "path", view->path);
  cli_key_u64(json, "threads",
              (uint64_t)pestle_context_threads(view->cli->context));
  pestle_json_key(json, "random_inputs");
  pestle_json_bool(json, view->job.filled > 0);
  write_plan(plan, nodes, json);
  PESTLE_TRY(write_profile(view, json));
  PESTLE_TRY(write_graphs(view, fused, json));
  write_kernels(view, json);
  write_texts(view, json);
  pestle_json_end_object(json);
  return NULL;
}

static pestle_status_t write_view(cli_view_t* view, pestle_json_t* json) {
  cli_graph_t fused = {0};
  pestle_status_t status = NULL;
  pestle_str_t text = pestle_str(view->fused ? view->fused : "");
  status = cli_graph_read(text, &fused);
  if (!status) status = write_all(view, &fused, json);
  cli_graph_deinit(&fused);
  return status;
}

// --- The page ---

// Within a script element nothing may look like its end.
static void append_data(pestle_strbuf_t* out, pestle_str_t data) {
  for (size_t i = 0, begin = 0; i <= data.size; ++i) {
    if (i < data.size && data.data[i] != '<') continue;
    pestle_strbuf_append_bytes(out, data.data + begin, i - begin);
    if (i < data.size) pestle_strbuf_append_c(out, "\\u003c");
    begin = i + 1;
  }
}

// The page with CSS, DATA and JS, each between "@", in their places.
static void append_page(pestle_strbuf_t* out, pestle_str_t data) {
  pestle_str_t rest = pestle_str(cli_view_html), part;
  while (pestle_str_next(&rest, '@', &part)) {
    if (pestle_str_equal_c(part, "CSS")) {
      pestle_strbuf_append_c(out, cli_view_css);
    } else if (pestle_str_equal_c(part, "JS")) {
      pestle_strbuf_append_c(out, cli_view_js);
    } else if (pestle_str_equal_c(part, "DATA")) {
      append_data(out, data);
    } else {
      pestle_strbuf_append(out, part);
    }
  }
}

static pestle_status_t write_page(cli_view_t* views, size_t count,
                                  pestle_strbuf_t* out) {
  pestle_strbuf_t data;
  pestle_json_t json;
  char date[32];
  pestle_strbuf_init(pestle_allocator_system(), &data);
  pestle_json_init(&data, 0, &json);
  pestle_json_begin_object(&json);
  cli_key_cstr(&json, "pestle", pestle_version());
  cli_key_cstr(&json, "date",
               cli_date(pestle_wall_clock_ns(), date, sizeof(date)));
  pestle_json_key(&json, "reports");
  pestle_json_begin_array(&json);
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count && !status; ++i)
    status = write_view(&views[i], &json);
  pestle_json_end_array(&json);
  pestle_json_end_object(&json);
  if (!status) status = pestle_strbuf_status(&data);
  if (!status) append_page(out, pestle_strbuf_view(&data));
  pestle_strbuf_deinit(&data);
  return status;
}

// --- The verb ---

static void init_view(cli_t* cli, const char* path, cli_view_t* out_view) {
  pestle_allocator_t a = pestle_allocator_system();
  *out_view = (cli_view_t){.cli = cli, .path = path};
  cli_job_init(cli, &out_view->job);
  pestle_vec_init(&out_view->passes, a);
  pestle_vec_init(&out_view->kernels, a);
  pestle_map_init(a, &out_view->kernel_numbers);
  pestle_vec_init(&out_view->texts, a);
  pestle_map_init(a, &out_view->text_numbers);
  pestle_vec_init(&out_view->chapters, a);
}

static void deinit_view(cli_view_t* view) {
  cli_job_deinit(&view->job);
  pestle_vec_deinit(&view->passes);
  pestle_vec_deinit(&view->kernels);
  pestle_map_deinit(&view->kernel_numbers);
  pestle_vec_deinit(&view->texts);
  pestle_map_deinit(&view->text_numbers);
  pestle_vec_deinit(&view->chapters);
  pestle_status_release(view->status);
}

static pestle_status_t open_view(cli_view_t* view, bool runs) {
  cli_t* cli = view->cli;
  cli_job_t* job = &view->job;
  PESTLE_TRY(cli_inputs_read(cli, &job->inputs));
  if (cli_is_plan(view->path)) {
    PESTLE_TRY(cli_open_plan(cli, view->path, NULL, &job->plan, &job->device));
    PESTLE_TRY(cli_view_keep_notes(view));
  } else {
    PESTLE_TRY(cli_device(cli, &job->device));
    PESTLE_TRY(cli_view_compile(view, job->device));
    PESTLE_TRY(cli_view_share_code(view));
  }
  return runs ? cli_job_load(job, true) : NULL;
}

typedef enum form_e { PAGE, DOT, ONNX } form_t;

static form_t form_of(const char* file) {
  pestle_str_t name = pestle_str(file);
  if (pestle_str_ends_with(name, PESTLE_STR(".dot"))) return DOT;
  return pestle_str_ends_with(name, PESTLE_STR(".onnx")) ? ONNX : PAGE;
}

static pestle_status_t export_graph(const cli_view_t* view, form_t form,
                                    pestle_strbuf_t* out) {
  cli_graph_t graph;
  pestle_status_t status = cli_graph_read(pestle_str(view->fused), &graph);
  if (!status) {
    status = form == DOT ? cli_view_dot(&graph, view->path, out)
                         : cli_view_onnx(&graph, view->path, out);
  }
  cli_graph_deinit(&graph);
  return status;
}

static pestle_status_t check_files(const cli_t* cli, form_t form) {
  size_t wanted = cli->text[CLI_COMPARE_WITH] ? 2 : 1;
  if (cli->args.size != wanted) {
    return CLI_USAGE_ERROR(
        "'pestle view%s' wants %s, not %zu", wanted == 2 ? " --compare" : "",
        wanted == 2 ? "two models or plans" : "one model or plan",
        cli->args.size);
  }
  if (form == PAGE) return NULL;
  if (wanted == 2) {
    return CLI_USAGE_ERROR("--compare is of a page: -o FILE.html, not %s",
                           cli->text[CLI_OUT]);
  }
  if (!cli_is_plan(cli->args.data[0])) return NULL;
  return CLI_USAGE_ERROR(
      "'%s' is a compiled plan, which has no graph any more: %s wants the "
      "model that it was made of",
      cli->args.data[0], cli->text[CLI_OUT]);
}

pestle_status_t cli_view(cli_t* cli, int* out_exit) {
  (void)out_exit;
  const char* file = cli->text[CLI_OUT];
  if (!file) {
    return CLI_USAGE_ERROR(
        "'pestle view' wants -o FILE.html: where to write the page (.dot, "
        ".onnx: the fused graph alone)");
  }
  form_t form = form_of(file);
  PESTLE_TRY(check_files(cli, form));
  // A target that is not here compiles and does not run.
  bool runs = form == PAGE && !cli->text[CLI_NO_RUN] && !cli->text[CLI_TARGET];
  cli_view_t views[2];
  size_t count = cli->args.size;
  pestle_strbuf_t page;
  pestle_status_t status = NULL;
  pestle_strbuf_init(pestle_allocator_system(), &page);
  for (size_t i = 0; i < count; ++i) {
    init_view(cli, cli->args.data[i], &views[i]);
    if (!status) status = cli_check_target(views[i].path, file, "-o");
    if (!status) status = open_view(&views[i], runs);
  }
  if (!status) {
    status = form == PAGE ? write_page(views, count, &page)
                          : export_graph(&views[0], form, &page);
  }
  if (!status) status = pestle_strbuf_status(&page);
  if (!status) status = pestle_file_write(file, pestle_strbuf_view(&page));
  if (!status && cli->json) {
    cli_key_cstr(cli->json, "file", file);
    cli_key_u64(cli->json, "bytes", page.size);
  }
  pestle_strbuf_deinit(&page);
  for (size_t i = 0; i < count; ++i)
    deinit_view(&views[i]);
  return status;
}
