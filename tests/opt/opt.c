// SPDX-License-Identifier: Apache-2.0
// pestle-opt FILE [--passes=a,b] [--skip=a,b] [--stop-after=N] [--strict]
//            [--no-fuse] [--no-verify] [--round-trip] [--print-after=a|all]
//            [--times] [--stats] [--plan] [--quiet] [--full] [--check]
// Runs the pipeline, or the passes named, over a module (text or ONNX) and
// prints it. --check evaluates it before and after on random inputs.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/half.h"
#include "compile/memory_plan.h"
#include "ir/ref/ref.h"
#include "passes/pass.h"
#include "pestle/import.h"

typedef struct settings_t {
  pestle_compile_options_t options;
  bool stats, plan, quiet, full, check;
  const char* path;
} settings_t;

static int report(pestle_status_t status) {
  if (!status) return 0;
  char text[4096];
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "pestle-opt: %s\n", text);
  pestle_status_release(status);
  return 1;
}

static void dump(void* user, pestle_stage_t stage, const char* name,
                 const char* text, size_t size) {
  (void)user, (void)stage;
  printf("// ---- %s\n%.*s\n", name, (int)size, text);
}

static const char* value_of(const char* argument, const char* name) {
  size_t size = strlen(name);
  return strncmp(argument, name, size) ? NULL : argument + size;
}

static void parse(int argc, char** argv, settings_t* s) {
  pestle_compile_options_t* o = &s->options;
  o->struct_size = sizeof(*o);
  o->verify = true;
  o->dump = dump;
  for (int i = 1; i < argc; ++i) {
    const char *a = argv[i], *v;
    if ((v = value_of(a, "--passes=")))
      o->passes = v;
    else if ((v = value_of(a, "--skip=")))
      o->skip_passes = v;
    else if ((v = value_of(a, "--stop-after=")))
      o->stop_after = atoi(v);
    else if ((v = value_of(a, "--print-after="))) {
      o->print_after = v;
      o->dump_stages |= 1u << PESTLE_STAGE_PASS;
    } else if (!strcmp(a, "--strict"))
      o->numerics = PESTLE_NUMERICS_STRICT;
    else if (!strcmp(a, "--no-fuse"))
      o->no_fuse = true;
    else if (!strcmp(a, "--no-verify"))
      o->verify = false;
    else if (!strcmp(a, "--round-trip"))
      o->round_trip = true;
    else if (!strcmp(a, "--times"))
      o->dump_stages |= 1u << PESTLE_STAGE_TIMES;
    else if (!strcmp(a, "--stats"))
      s->stats = true;
    else if (!strcmp(a, "--plan"))
      s->plan = true;
    else if (!strcmp(a, "--quiet"))
      s->quiet = true;
    else if (!strcmp(a, "--full"))
      s->full = true;
    else if (!strcmp(a, "--check"))
      s->check = true;
    else
      s->path = a;
  }
}

static pestle_status_t print_module(pestle_context_t* context,
                                    const settings_t* s,
                                    pestle_module_t* module) {
  char* text;
  size_t size;
  PESTLE_TRY(pestle_module_print(module, s->full ? 0 : PESTLE_PRINT_ELIDE,
                                 &text, &size));
  fwrite(text, 1, size, stdout);
  pestle_context_free(context, text, size + 1);
  return NULL;
}

// --- Statistics ---

typedef struct stats_t {
  unsigned fusions, ops, loose[PESTLE_OP_COUNT], heroes, labels;
} stats_t;

static void count_block(const pestle_block_t* block, stats_t* stats) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op != PESTLE_OP_FUSION) {
      ++stats->loose[n->op];
      if (n->op != PESTLE_OP_WHILE && n->op != PESTLE_OP_IF) continue;
      for (uint32_t r = 0; r < n->region_count; ++r) {
        count_block(pestle_node_body(n, r), stats);
      }
      continue;
    }
    ++stats->fusions;
    for (const pestle_node_t* m = pestle_node_body(n, 0)->first; m;
         m = m->next) {
      stats->ops += m->op != PESTLE_OP_CONSTANT && m->op != PESTLE_OP_RETURN;
    }
    printf("  %-48s %u in %u out\n", PESTLE_NODE_STR(n, label),
           (unsigned)n->operand_count, (unsigned)n->result_count);
  }
}

static void print_stats(pestle_module_t* module) {
  stats_t stats = {0};
  count_block(pestle_module_entry(module)->body->block, &stats);
  printf("fusions %u, ops inside %u; outside:", stats.fusions, stats.ops);
  for (int op = 0; op < PESTLE_OP_COUNT; ++op) {
    if (stats.loose[op]) {
      printf(" %s %u", pestle_op_info((pestle_op_t)op)->name, stats.loose[op]);
    }
  }
  printf("\n");
}

// --- Evaluation ---

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void* make_array(const pestle_type_t* type, uint64_t* seed) {
  size_t count = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  char* data = calloc(count + 1, size);
  for (size_t i = 0; i < count && seed; ++i) {
    uint64_t r = next_random(seed);
    double unit = (double)(r >> 11) / 9007199254740992.0;
    uint64_t bits = r >> 20;
    if (pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
      bits = pestle_float_encode(type->dtype, unit * 4 - 2);
    } else if (type->dtype == PESTLE_I1) {
      bits &= 1;
    }
    memcpy(data + i * size, &bits, size);
  }
  return data;
}

// The largest difference over the largest magnitude.
static double compare(const pestle_type_t* type, const void* a, const void* b) {
  size_t count = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  if (!pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
    return memcmp(a, b, count * size) ? 1 : 0;
  }
  double worst = 0, largest = 1e-30;
  for (size_t i = 0; i < count; ++i) {
    uint64_t x = 0, y = 0;
    memcpy(&x, (const char*)a + i * size, size);
    memcpy(&y, (const char*)b + i * size, size);
    double f = pestle_float_decode(type->dtype, x);
    double g = pestle_float_decode(type->dtype, y);
    if (isnan(f) && isnan(g)) continue;
    if (fabs(f) > largest) largest = fabs(f);
    double d = x == y ? 0 : fabs(f - g);
    if (!(d <= worst)) worst = isnan(d) ? INFINITY : d;
  }
  return worst / largest;
}

enum { MAX_ARRAYS = 256 };

static void make_results(const pestle_function_t* f, void** out) {
  const pestle_node_t* end = f->body->block->last;
  for (uint32_t i = 0; i < end->operand_count && i < MAX_ARRAYS; ++i) {
    out[i] = make_array(pestle_node_operand(end, i)->type, NULL);
  }
}

static pestle_status_t evaluate(pestle_context_t* context,
                                pestle_module_t* module, void** arguments,
                                void** results) {
  const void* inputs[MAX_ARRAYS];
  for (int i = 0; i < MAX_ARRAYS; ++i)
    inputs[i] = arguments[i];
  return pestle_ref_evaluate_function(pestle_context_allocator(context),
                                      pestle_module_entry(module), inputs,
                                      results);
}

static int compare_all(const pestle_function_t* f, void** a, void** b) {
  const pestle_node_t* end = f->body->block->last;
  int bad = 0;
  for (uint32_t i = 0; i < end->operand_count; ++i) {
    double d = compare(pestle_node_operand(end, i)->type, a[i], b[i]);
    printf("result %u: difference %.3g\n", (unsigned)i, d);
    bad |= !(d < 1e-4);
  }
  return bad;
}

static pestle_status_t run(pestle_context_t* context, const settings_t* s,
                           pestle_module_t* module) {
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  PESTLE_TRY(pestle_passes_run(context, &caps, &s->options, module, NULL));
  if (!s->quiet) PESTLE_TRY(print_module(context, s, module));
  if (s->stats) print_stats(module);
  if (!s->plan) return NULL;
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(context), &arena);
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_context_allocator(context), &text);
  pestle_memory_plan_t plan;
  pestle_status_t status = pestle_memory_plan_make(module, NULL, &arena, &plan);
  if (!status) status = pestle_memory_plan_print(module, &plan, &text);
  if (!status) printf("%s", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  pestle_arena_deinit(&arena);
  return status;
}

static pestle_status_t load(pestle_context_t* context, const char* path,
                            pestle_module_t** out) {
  size_t size = strlen(path);
  if (size > 5 && !strcmp(path + size - 5, ".onnx")) {
    pestle_import_options_t import = {.struct_size = sizeof(import)};
    return pestle_import_onnx_file(context, path, &import, out);
  }
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_file_map(path, &mapping));
  pestle_status_t status =
      pestle_module_parse(context, mapping.data, mapping.size, path, out);
  pestle_file_unmap(&mapping);
  return status;
}

static int work(pestle_context_t* context, const settings_t* s) {
  pestle_module_t* module;
  if (report(load(context, s->path, &module))) return 1;
  void *arguments[MAX_ARRAYS] = {0}, *before[MAX_ARRAYS] = {0};
  void* after[MAX_ARRAYS] = {0};
  pestle_function_t* entry = pestle_module_entry(module);
  int failed = 0;
  if (s->check) {
    uint64_t seed = 77777;
    for (size_t i = 0; i < pestle_function_argument_count(entry); ++i) {
      arguments[i] =
          make_array(pestle_function_argument(entry, i)->type, &seed);
    }
    make_results(entry, before);
    make_results(entry, after);
    failed |= report(evaluate(context, module, arguments, before));
  }
  if (!failed) failed |= report(run(context, s, module));
  if (s->check && !failed) {
    entry = pestle_module_entry(module);
    failed |= report(evaluate(context, module, arguments, after));
    if (!failed) failed |= compare_all(entry, before, after);
  }
  for (int i = 0; i < MAX_ARRAYS; ++i) {
    free(arguments[i]), free(before[i]), free(after[i]);
  }
  pestle_module_release(module);
  return failed;
}

int main(int argc, char** argv) {
  settings_t s = {0};
  parse(argc, argv, &s);
  pestle_context_t* context;
  if (!s.path) {
    fprintf(stderr, "usage: pestle-opt FILE [options], see opt.c\n");
    return 2;
  }
  if (report(pestle_context_create(NULL, &context))) return 1;
  int failed = work(context, &s);
  pestle_context_release(context);
  return failed;
}
