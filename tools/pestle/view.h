// SPDX-License-Identifier: Apache-2.0
// What 'pestle view' is made of: graphs that are read from the text of a module, the
// kernels that ran for their nodes, and a page that shows all of it.
#ifndef PESTLE_TOOLS_VIEW_H_
#define PESTLE_TOOLS_VIEW_H_

#include "base/json.h"
#include "base/map.h"
#include "cli.h"
#include "pestle/plan_format.h"

// --- Graphs (view_graph.c) ---

// An op of a module's text, an argument of a function or region, or a function. Texts
// are views of what was read.
typedef struct cli_graph_node_t {
  pestle_str_t op;        // "add"; "arg", "func", "return"
  pestle_str_t name;      // of its first result
  pestle_str_t label;     // of a fusion
  pestle_str_t type;      // of its results
  pestle_str_t location;  // "Conv_41", or "file.py:3:4"; "" where it has none
  uint32_t line;          // of the text, from 0
  int32_t parent;         // whose region it is in; -1: none
  uint32_t first, count;  // into |operands|
} cli_graph_node_t;

typedef struct cli_graph_t {
  PESTLE_VEC(cli_graph_node_t) nodes;  // in the order of the text
  PESTLE_VEC(int32_t) operands;        // numbers of nodes
} cli_graph_t;

// |text| must outlive the graph, which must be deinitialised whatever comes back.
PESTLE_NODISCARD pestle_status_t cli_graph_read(pestle_str_t text,
                                                cli_graph_t* out_graph);
void cli_graph_deinit(cli_graph_t* graph);
// Its members, in an open object of |json|.
PESTLE_NODISCARD pestle_status_t cli_graph_write(const cli_graph_t* graph,
                                                 pestle_json_t* json);
// Whether a kernel may have been made of the node: an op that is in no fusion.
bool cli_graph_may_run(const cli_graph_t* graph, size_t node);

// --- Which node a launch is of (view_pair.c) ---

// For each step of |plan| the node of |graph| that it computes, or -1. In |out|, of as
// many as there are steps.
PESTLE_NODISCARD pestle_status_t cli_graph_pair(
    const cli_graph_t* graph, const pestle_plan_header_t* plan, int32_t* out);

// --- What is known of a model or plan (view_kernels.c, view_model_compiler.c) ---

typedef struct cli_view_pass_t {
  const char* name;
  const char* text;  // the module after it; NULL: as before it
} cli_view_pass_t;

// What a kernel was on its way, as numbers of texts; -1: not known.
typedef enum cli_view_stage_e {
  CLI_VIEW_EXPLAIN,
  CLI_VIEW_SCHEDULE,
  CLI_VIEW_KIR,
  CLI_VIEW_SOURCE,
  CLI_VIEW_ASM,
  CLI_VIEW_STAGES
} cli_view_stage_t;

typedef struct cli_view_kernel_t {
  const char* name;
  int32_t texts[CLI_VIEW_STAGES];
} cli_view_kernel_t;

// One of the models or plans of a page. Texts are in the command's arena.
typedef struct cli_view_t {
  cli_t* cli;
  const char* path;
  cli_job_t job;
  const char* fused;                   // with locations; NULL of a plan
  PESTLE_VEC(cli_view_pass_t) passes;  // the first is the module as it was read
  PESTLE_VEC(cli_view_kernel_t) kernels;
  pestle_map_t kernel_numbers;       // name -> number + 1
  PESTLE_VEC(const char*) texts;     // each once
  pestle_map_t text_numbers;         // text -> number + 1
  PESTLE_VEC(const char*) chapters;  // of explain: name, text, name, text
  pestle_status_t status;            // of what was received
} cli_view_t;

// Compiles the model with everything that there is to see; loads the plan into
// |view|->job.
PESTLE_NODISCARD pestle_status_t cli_view_compile(cli_view_t* view,
                                                  pestle_device_t* device);
// The number of a text, which is kept; -1: out of memory.
int32_t cli_view_text(cli_view_t* view, const char* text, size_t size);
// Keeps what a plan notes of its kernels.
PESTLE_NODISCARD pestle_status_t cli_view_keep_notes(cli_view_t* view);
// Gives kernels that were compiled as another one that one's code.
PESTLE_NODISCARD pestle_status_t cli_view_share_code(cli_view_t* view);
// Keeps a text of kernel |name|.
void cli_view_keep(cli_view_t* view, const char* name, cli_view_stage_t stage,
                   const char* text, size_t size);

// --- Other forms of a fused graph (view_export.c) ---

// For Graphviz, and for Netron: nodes that have a kernel's name, ops and time.
PESTLE_NODISCARD pestle_status_t cli_view_dot(const cli_graph_t* graph,
                                              const char* title,
                                              pestle_strbuf_t* out);
PESTLE_NODISCARD pestle_status_t cli_view_onnx(const cli_graph_t* graph,
                                               const char* title,
                                               pestle_strbuf_t* out);

// The text of view.html with view.css and view.js in it, which has DATA once.
extern const char cli_view_html[];
extern const char cli_view_css[];
extern const char cli_view_js[];

#endif  // PESTLE_TOOLS_VIEW_H_
