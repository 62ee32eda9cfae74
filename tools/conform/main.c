// SPDX-License-Identifier: Apache-2.0
// pestle-conform: what 'pestle plugins test' runs.
//
// usage: pestle-conform FILE.so|NAME FOLDERS [--ops A,B,C] [--target-cpu CPU]
//                       [--markdown] [--json] [--jobs N]
//
// Exit code 0: nothing was wrong; 1: something was; others as pestle's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "base/json.h"
#include "base/str.h"
#include "ir/graph.h"
#include "tools/conform/kit.h"

kit_t kit;

enum { MAX_JOBS = 1024 };

static const char* const state_names[] = {"",         "pass",        "compiled",
                                          "fallback", "unsupported", "WRONG"};
static const char state_letters[] = ".PCFUW";

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
  if (list && !*list) {
    fprintf(stderr, "pestle: error: --ops: names no op\n");
    return false;
  }
  pestle_str_t rest = pestle_str(list ? list : ""), field;
  while (list && pestle_str_next(&rest, ',', &field)) {
    bool found = false;
    pestle_closest_t closest = pestle_closest_to(field);
    char hint[PESTLE_HINT];
    for (unsigned op = 0; op < PESTLE_OP_COUNT && !found; ++op) {
      pestle_str_t name = pestle_str(pestle_op_info((pestle_op_t)op)->name);
      found = pestle_str_equal(field, name);
      pestle_closest_offer(&closest, name);
    }
    if (found) continue;
    fprintf(stderr, "pestle: error: --ops: there is no op '%.*s'%s\n",
            (int)field.size, field.data, pestle_closest_hint(&closest, hint));
    return false;
  }
  return true;
}

// --- The matrix ---

static bool has_cells(unsigned op) {
  for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
    if (kit.results->cells[op][d].state != KIT_NONE) return true;
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
    case PESTLE_F4E2M1FN:
      return "e2m1";
    case PESTLE_F6E2M3FN:
      return "e2m3";
    case PESTLE_F6E3M2FN:
      return "e3m2";
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
    kit_state_t state = kit.results->cells[op][d].state;
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
      count += kit.results->cells[op][d].state == state;
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
      instances += kit.results->cells[op][d].instances;
  }
  const char* state =
      kit.results->compiles_only ? "compiled, not run," : "pass";
  printf(
      "%s%zu cells of op and dtype, %zu instances: %s %zu, fallback %zu, "
      "unsupported %zu, WRONG %zu\n",
      markdown ? "\n" : "", cells, instances, state,
      counts[kit.results->compiles_only ? KIT_COMPILED : KIT_PASS],
      counts[KIT_FALLBACK], counts[KIT_UNSUPPORTED], counts[KIT_WRONG]);
}

// Each cell that is no pass, worst first.
static void print_list(bool markdown) {
  if (markdown && count_state(KIT_PASS) + count_state(KIT_COMPILED) != 0)
    printf("\n");
  for (int s = KIT_WRONG; s > KIT_COMPILED; --s) {
    for (unsigned op = 0; op < PESTLE_OP_COUNT; ++op) {
      for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
        const kit_cell_t* cell = &kit.results->cells[op][d];
        if (cell->state != (kit_state_t)s) continue;
        printf(markdown ? "- %s: `%s` on %s: %s\n" : "%s: %s on %s: %s\n",
               state_names[s], pestle_op_info((pestle_op_t)op)->name,
               pestle_dtype_info((pestle_dtype_t)d)->name, cell->why);
      }
    }
  }
}

// One object: the counts, and each cell by its op and dtype.
static int print_json(void) {
  pestle_strbuf_t text;
  pestle_json_t json;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_json_init(&text, 2, &json);
  pestle_json_begin_object(&json);
  for (int s = KIT_PASS; s < KIT_STATE_COUNT; ++s) {
    pestle_json_key(&json, s == KIT_WRONG ? "wrong" : state_names[s]);
    pestle_json_u64(&json, count_state((kit_state_t)s));
  }
  pestle_json_key(&json, "cells");
  pestle_json_begin_array(&json);
  for (unsigned op = 0; op < PESTLE_OP_COUNT; ++op) {
    for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
      const kit_cell_t* cell = &kit.results->cells[op][d];
      if (cell->state == KIT_NONE) continue;
      pestle_json_begin_object(&json);
      pestle_json_key(&json, "op");
      pestle_json_cstr(&json, pestle_op_info((pestle_op_t)op)->name);
      pestle_json_key(&json, "dtype");
      pestle_json_cstr(&json, pestle_dtype_info((pestle_dtype_t)d)->name);
      pestle_json_key(&json, "state");
      pestle_json_cstr(
          &json, cell->state == KIT_WRONG ? "wrong" : state_names[cell->state]);
      pestle_json_key(&json, "instances");
      pestle_json_u64(&json, (uint64_t)cell->instances);
      if (cell->state > KIT_COMPILED) {
        pestle_json_key(&json, "why");
        pestle_json_cstr(&json, cell->why);
      }
      pestle_json_end_object(&json);
    }
  }
  pestle_json_end_array(&json);
  pestle_json_end_object(&json);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) printf("%s\n", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  bool is_printed = !status;
  pestle_status_release(status);
  return is_printed ? count_state(KIT_WRONG) != 0 : 5;
}

// --- All ---

static const char* ops_list;

static bool takes(pestle_op_t op) {
  return is_run(op) && is_listed(ops_list, pestle_op_info(op)->name);
}

// False when |argc| arguments are not those of the usage above.
static bool parse(int argc, char** argv, bool* out_markdown, bool* out_json,
                  long* out_jobs) {
  if (argc < 3) return false;
  kit.plugin = argv[1];
  kit.folders = argv[2];
  for (int i = 3; i < argc; ++i) {
    if (!strcmp(argv[i], "--markdown")) {
      *out_markdown = true;
    } else if (!strcmp(argv[i], "--json")) {
      *out_json = true;
    } else if (i + 1 == argc) {
      return false;
    } else if (!strcmp(argv[i], "--ops")) {
      ops_list = argv[++i];
    } else if (!strcmp(argv[i], "--target-cpu")) {
      kit.cpu = argv[++i];
    } else if (!strcmp(argv[i], "--jobs")) {
      *out_jobs = strtol(argv[++i], NULL, 10);
    } else {
      return false;
    }
  }
  return true;
}

int main(int argc, char** argv) {
  bool markdown = false, json = false;
  long jobs = 1;
  if (!parse(argc, argv, &markdown, &json, &jobs)) {
    fprintf(stderr, "pestle: error: 'pestle plugins test' runs this program\n");
    return 2;
  }
  if (jobs < 1 || jobs > MAX_JOBS) {
    fprintf(stderr, "pestle: error: --jobs: 1 to %d workers, not %ld\n",
            MAX_JOBS, jobs);
    return 2;
  }
  if (!check_list(ops_list)) return 2;
  kit.results = kit_share(sizeof(*kit.results));
  int code = kit.results ? kit_work((unsigned)jobs, takes) : 4;
  if (code) return code;
  if (json) return print_json();
  print_matrix(markdown);
  print_counts(markdown);
  print_list(markdown);
  return count_state(KIT_WRONG) != 0;
}
