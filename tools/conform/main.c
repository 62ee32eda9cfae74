// SPDX-License-Identifier: Apache-2.0
// pestle-conform: what 'pestle plugins test' runs.
//
// usage: pestle-conform FILE.so|NAME FOLDERS [--ops A,B,C] [--target-cpu CPU]
//                       [--markdown]
//
// Exit code 0: nothing was wrong; 1: something was; others as pestle's.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ir/graph.h"
#include "tools/conform/kit.h"

kit_t kit;

static const char* const state_names[] = {"",         "pass",        "compiled",
                                          "fallback", "unsupported", "WRONG"};
static const char state_letters[] = ".PCFUW";

void kit_note(kit_state_t state, const char* format, ...) {
  kit_cell_t* cell = kit.cell;
  ++cell->instances;
  if (state <= cell->state) return;
  cell->state = state;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(cell->why, sizeof(cell->why), format, args);
  va_end(args);
}

static pestle_status_t compile_in(pestle_context_t* context,
                                  pestle_module_t* module,
                                  pestle_executable_t** out_executable) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  PESTLE_TRY(pestle_context_target(context, kit.backend, &device));
  kit.compiles_only = pestle_device_is_target(device);
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .verify = true,
                                      .target_cpu = kit.cpu};
  PESTLE_TRY(pestle_compile(context, module, device, &options, &plan));
  pestle_status_t status = NULL;
  if (!kit.compiles_only) {
    status = pestle_executable_create(context, plan, device, out_executable);
  }
  pestle_plan_release(plan);
  return status;
}

kit_state_t kit_compile(pestle_module_t* module, const char* what,
                        pestle_executable_t** out_executable) {
  *out_executable = NULL;
  pestle_status_t status = compile_in(kit.strict, module, out_executable);
  if (!status && kit.compiles_only) kit_note(KIT_COMPILED, "%s", "");
  if (!status) return kit.compiles_only ? KIT_COMPILED : KIT_PASS;
  const char* colon = *what ? ": " : "";
  bool lacks = pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED;
  if (!lacks) {
    kit_note(KIT_WRONG, "%s%s%s", what, colon, pestle_status_message(status));
    pestle_status_release(status);
    return KIT_WRONG;
  }
  pestle_status_t other = compile_in(kit.lenient, module, out_executable);
  kit_state_t state = !other ? KIT_FALLBACK
                      : pestle_status_code(other) == PESTLE_STATUS_UNSUPPORTED
                          ? KIT_UNSUPPORTED
                          : KIT_WRONG;
  kit_note(state, "%s%s%s", what, colon,
           pestle_status_message(state == KIT_WRONG ? other : status));
  pestle_status_release(status);
  pestle_status_release(other);
  return state;
}

// --- The backend ---

static bool is_file(const char* plugin) {
  return strchr(plugin, '/') ||
         pestle_str_ends_with(pestle_str(plugin), PESTLE_STR(".so"));
}

static void log_message(void* user, pestle_log_level_t level,
                        const char* message) {
  (void)user, (void)level;
  fprintf(stderr, "pestle-conform: %s\n", message);
}

// The name of the backend in the file |plugin|, as a device or to compile for.
static const char* name_of(pestle_context_t* context, const char* plugin) {
  size_t count = pestle_context_backend_count(context);
  for (size_t i = 0; i < count && is_file(plugin); ++i) {
    pestle_backend_info_t info = {.struct_size = sizeof(info)};
    pestle_status_release(pestle_context_backend_info(context, i, &info));
    bool is_usable = info.backend || info.is_target;
    if (is_usable && !strcmp(info.path, plugin)) return info.name;
  }
  return plugin;
}

static pestle_status_t open_context(const char* plugin, const char* folders,
                                    bool strict,
                                    pestle_context_t** out_context) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .log = log_message,
                                      .log_level = PESTLE_LOG_WARN,
                                      .strict = strict,
                                      .no_cache = true,
                                      .manual_backends = true,
                                      .probe_backends = true,
                                      .backend_path = folders};
  PESTLE_TRY(pestle_context_create(&options, out_context));
  if (!is_file(plugin) && pestle_context_backend(*out_context, plugin)) {
    return NULL;
  }
  pestle_status_t status =
      is_file(plugin) ? pestle_context_load_backend(*out_context, plugin)
                      : pestle_context_load_best(*out_context, plugin);
  pestle_device_t* device;
  // Without a device it may compile all the same.
  const char* name = name_of(*out_context, plugin);
  pestle_status_t target =
      status ? pestle_context_target(*out_context, name, &device) : NULL;
  bool compiles = status && !target;
  pestle_status_release(target);
  if (!compiles) return status;
  pestle_status_release(status);
  return NULL;
}

// --- Which ops ---

static bool is_run(pestle_op_t op) {
  return !(pestle_op_info(op)->flags & PESTLE_OP_FLAG_TERMINATOR);
}

static bool is_listed(const char* list, const char* name) {
  if (!list) return true;
  pestle_str_t rest = pestle_str(list), field;
  while (pestle_str_next(&rest, ',', &field)) {
    if (pestle_str_equal_c(field, name)) return true;
  }
  return false;
}

static bool check_list(const char* list) {
  pestle_str_t rest = pestle_str(list ? list : ""), field;
  while (list && pestle_str_next(&rest, ',', &field)) {
    bool found = false;
    for (unsigned op = 0; op < PESTLE_OP_COUNT && !found; ++op) {
      found = pestle_str_equal_c(field, pestle_op_info((pestle_op_t)op)->name);
    }
    if (found) continue;
    fprintf(stderr, "pestle: error: --ops: there is no op '%.*s'\n",
            (int)field.size, field.data);
    return false;
  }
  return true;
}

static void run_ops(const char* list) {
  for (unsigned i = 0; i < PESTLE_OP_COUNT; ++i) {
    pestle_op_t op = (pestle_op_t)i;
    if (!is_run(op) || !is_listed(list, pestle_op_info(op)->name)) continue;
    if (pestle_op_is_scalar(op)) {
      kit_run_scalar(op);
    } else {
      kit_run_structured(op);
    }
  }
}

// --- The matrix ---

static bool has_cells(unsigned op) {
  for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
    if (kit.cells[op][d].state != KIT_NONE) return true;
  }
  return false;
}

// "f8E4M3FN" is wide for a column.
static const char* column(int dtype) {
  switch (dtype) {
    case PESTLE_F8E4M3FN:
      return "e4m3";
    case PESTLE_F8E5M2:
      return "e5m2";
    case PESTLE_F8E4M3FNUZ:
      return "e4m3z";
    case PESTLE_F8E5M2FNUZ:
      return "e5m2z";
    case PESTLE_F8E3M4:
      return "e3m4";
    case PESTLE_F8E4M3:
      return "e4m3i";
    case PESTLE_F8E4M3B11FNUZ:
      return "e4m3b";
    case PESTLE_F8E8M0FNU:
      return "e8m0";
    case PESTLE_C64:
      return "c64";
    case PESTLE_C128:
      return "c128";
    default:
      return pestle_dtype_info((pestle_dtype_t)dtype)->name;
  }
}

static void print_row(unsigned op, bool markdown) {
  const char* name = pestle_op_info((pestle_op_t)op)->name;
  printf(markdown ? "| `%s` |" : "%-24s", name);
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!pestle_dtype_is_stored((pestle_dtype_t)d)) continue;
    kit_state_t state = kit.cells[op][d].state;
    if (markdown) {
      printf(" %c |", state == KIT_NONE ? ' ' : state_letters[state]);
    } else {
      printf(" %*s%c", (int)strlen(column(d)) - 1, "", state_letters[state]);
    }
  }
  printf("\n");
}

static void print_matrix(bool markdown) {
  printf(markdown ? "| op |" : "%-24s", markdown ? "" : "op");
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!pestle_dtype_is_stored((pestle_dtype_t)d)) continue;
    printf(markdown ? " %s |" : " %s", column(d));
  }
  printf("\n");
  if (markdown) {
    printf("|---|");
    for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
      if (pestle_dtype_is_stored((pestle_dtype_t)d)) printf("---|");
    }
    printf("\n");
  }
  for (unsigned op = 0; op < PESTLE_OP_COUNT; ++op) {
    if (has_cells(op)) print_row(op, markdown);
  }
}

static size_t count_state(kit_state_t state) {
  size_t count = 0;
  for (unsigned op = 0; op < PESTLE_OP_COUNT; ++op) {
    for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d)
      count += kit.cells[op][d].state == state;
  }
  return count;
}

static void print_counts(bool markdown) {
  size_t cells = 0, instances = 0, counts[KIT_STATE_COUNT];
  for (int s = KIT_PASS; s < KIT_STATE_COUNT; ++s) {
    counts[s] = count_state((kit_state_t)s);
    cells += counts[s];
  }
  for (unsigned op = 0; op < PESTLE_OP_COUNT; ++op) {
    for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d)
      instances += kit.cells[op][d].instances;
  }
  const char* state = kit.compiles_only ? "compiled, not run," : "pass";
  printf(
      "%s%zu cells of op and dtype, %zu instances: %s %zu, fallback %zu, "
      "unsupported %zu, WRONG %zu\n",
      markdown ? "\n" : "", cells, instances, state,
      counts[kit.compiles_only ? KIT_COMPILED : KIT_PASS], counts[KIT_FALLBACK],
      counts[KIT_UNSUPPORTED], counts[KIT_WRONG]);
}

// Each cell that is no pass, worst first.
static void print_list(bool markdown) {
  if (markdown && count_state(KIT_PASS) + count_state(KIT_COMPILED) != 0)
    printf("\n");
  for (int s = KIT_WRONG; s > KIT_COMPILED; --s) {
    for (unsigned op = 0; op < PESTLE_OP_COUNT; ++op) {
      for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
        const kit_cell_t* cell = &kit.cells[op][d];
        if (cell->state != (kit_state_t)s) continue;
        printf(markdown ? "- %s: `%s` on %s: %s\n" : "%s: %s on %s: %s\n",
               state_names[s], pestle_op_info((pestle_op_t)op)->name,
               pestle_dtype_info((pestle_dtype_t)d)->name, cell->why);
      }
    }
  }
}

// --- All ---

static int fail(pestle_status_t status) {
  char text[2048];
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "pestle: error: %s\n", text);
  pestle_status_release(status);
  return 4;
}

int main(int argc, char** argv) {
  const char* list = NULL;
  bool markdown = false;
  for (int i = 3; i < argc; ++i) {
    if (!strcmp(argv[i], "--markdown")) {
      markdown = true;
    } else if (!strcmp(argv[i], "--ops") && i + 1 < argc) {
      list = argv[++i];
    } else if (!strcmp(argv[i], "--target-cpu") && i + 1 < argc) {
      kit.cpu = argv[++i];
    } else {
      argc = 0;
    }
  }
  if (argc < 3) {
    fprintf(stderr, "pestle: error: 'pestle plugins test' runs this program\n");
    return 2;
  }
  if (!check_list(list)) return 2;
  pestle_status_t status = open_context(argv[1], argv[2], true, &kit.strict);
  if (!status) status = open_context(argv[1], argv[2], false, &kit.lenient);
  int code = 0;
  if (status) {
    code = fail(status);
  } else {
    kit.backend = name_of(kit.strict, argv[1]);
    run_ops(list);
    print_matrix(markdown);
    print_counts(markdown);
    print_list(markdown);
    code = count_state(KIT_WRONG) != 0;
  }
  pestle_context_release(kit.strict);
  pestle_context_release(kit.lenient);
  return code;
}
