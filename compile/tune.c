// SPDX-License-Identifier: Apache-2.0
// One kernel after the other, the one with most work first; of a kernel one
// choice after the other, each with what was found best for those before it and the
// usual options of those behind it, which may depend on it. Of a choice, the usual option and those that the estimates put near it are compiled,
// each as a plan of that kernel alone, and run turn by turn on the same buffers.
// The best time of each counts: noise only adds. The usual option stays unless
// another one wins by MARGIN twice, once in each of two series.
#include "compile/tune.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/thread.h"
#include "codegen/sketch/choice.h"
#include "compile/control.h"
#include "compile/steps.h"
#include "pestle/runtime.h"
#include "pestle/version.h"

enum {
  OPTIONS = 10,       // that are measured of a choice, the usual one included
  SLOWEST_SHARE = 2,  // estimated so many times the cheapest: not tried
  LEAST_ROUNDS = 5,
  MOST_ROUNDS = 60,
  PRUNE_ROUND = 2,       // from here on those that are far behind sit out
  BATCH_NS = 50000,      // a round of one option takes at least
  CHOICE_NS = 60000000,  // of rounds, unless they are long
  MOST_MEMORY = 1 << 30,
  TEXT = 512,
};
// Better by less is noise.
#define MARGIN 0.97
#define FAR_BEHIND 1.25

typedef struct option_run_t {
  uint32_t index;  // among the choice's options
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  int64_t repeats;
  double best_us;
  bool out;  // does not run, gives other bits, or is far behind
} option_run_t;

typedef struct buffers_t {
  size_t input_count, output_count;
  pestle_tensor_t inputs[PESTLE_KERNEL_MAX_ARGS];
  pestle_tensor_t outputs[PESTLE_KERNEL_MAX_ARGS];
  void* expected[PESTLE_KERNEL_MAX_ARGS];
  size_t sizes[2 * PESTLE_KERNEL_MAX_ARGS];  // inputs, then outputs
  int64_t shapes[2 * PESTLE_KERNEL_MAX_ARGS][PESTLE_MAX_RANK];
} buffers_t;

typedef struct tuner_t {
  pestle_kernels_t* ks;
  pestle_lockfile_t* lock;
  pestle_allocator_t allocator;
  pestle_compile_options_t options;  // without what is shown
  int64_t until_ns;
  buffers_t* buffers;     // of the kernel at hand
  pestle_arena_t* arena;  // of its choices
} tuner_t;

// What was found best so far for a kernel, and the choices that this leaves.
typedef struct found_t {
  const char* chosen;
  const pestle_choice_t* choices;
  size_t choice_count;
} found_t;

// --- A kernel as a plan ---

static pestle_status_t write_plan(const pestle_kernels_t* one,
                                  pestle_plan_build_t* build,
                                  pestle_plan_t** out_plan) {
  static const uint64_t signature[2] = {0, 0};
  PESTLE_TRY(pestle_steps_single(one, build));
  return pestle_plan_build_finish(build, false, one, "tuned", signature,
                                  out_plan);
}

// A plan and an executable of kernel |index| of |batch| alone.
static pestle_status_t load_one(tuner_t* t, const pestle_kernels_t* batch,
                                size_t index, option_run_t* out) {
  pestle_kernel_t copy = *batch->list.data[index];
  pestle_kernel_t* list[1] = {&copy};
  pestle_kernels_t one = *batch;
  copy.code = batch->list.data[copy.unique]->code;
  copy.unique = 0;
  one.list.data = list;
  one.list.size = 1;
  pestle_plan_build_t build;
  pestle_plan_build_init(t->allocator, &build);
  pestle_status_t status = write_plan(&one, &build, &out->plan);
  pestle_plan_build_deinit(&build);
  if (status) return status;
  return pestle_executable_create(t->ks->context, out->plan,
                                  t->ks->targets[0].device, &out->executable);
}

static void unload(option_run_t* runs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    pestle_executable_release(runs[i].executable);
    pestle_plan_release(runs[i].plan);
  }
}

// --- Buffers ---

// Small numbers of either sign, none of them zero or denormal; integers from 0
// to 3, which are indices into nearly everything.
static void fill(pestle_dtype_t dtype, void* data, size_t size) {
  uint64_t state = 0x9e3779b97f4a7c15u;
  size_t element = pestle_dtype_size(dtype);
  for (size_t i = 0; element && i < size / element; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double value = ((double)(state >> 40) + 1) / (1 << 23) - 1;
    char* at = (char*)data + i * element;
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    uint16_t half = (uint16_t)(bits >> 16);
    // 0.5 to 1, of either sign.
    uint16_t small = (uint16_t)(0x3800u | (state >> 54) | (bits >> 31 << 15));
    if (dtype == PESTLE_F32) {
      memcpy(at, &single, sizeof(single));
    } else if (dtype == PESTLE_F64) {
      memcpy(at, &value, sizeof(value));
    } else if (dtype == PESTLE_BF16) {
      memcpy(at, &half, sizeof(half));
    } else if (dtype == PESTLE_F16) {
      memcpy(at, &small, sizeof(small));
    } else {
      at[0] = (char)(state >> 62);
      if (dtype == PESTLE_I1) at[0] &= 1;
    }
  }
}

static pestle_status_t make_tensor(tuner_t* t, const pestle_io_info_t* info,
                                   size_t at, bool filled,
                                   pestle_tensor_t* out) {
  buffers_t* b = t->buffers;
  size_t size = pestle_dtype_size(info->dtype);
  for (int32_t i = 0; i < info->rank; ++i) {
    b->shapes[at][i] = info->dims[i];
    size *= (size_t)info->dims[i];
  }
  *out = (pestle_tensor_t){.device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = info->rank,
                           .dtype = pestle_dtype_to_dlpack(info->dtype),
                           .shape = b->shapes[at]};
  out->data = pestle_alloc_aligned(t->allocator, size, PESTLE_BUFFER_ALIGNMENT);
  if (!out->data) return PESTLE_OOM();
  b->sizes[at] = size;
  memset(out->data, 0, size);
  if (filled) fill(info->dtype, out->data, size);
  return NULL;
}

static void drop(tuner_t* t, void* data, size_t size) {
  pestle_free_aligned(t->allocator, data, size ? size : 1,
                      PESTLE_BUFFER_ALIGNMENT);
}

static void drop_buffers(tuner_t* t) {
  buffers_t* b = t->buffers;
  for (size_t i = 0; i < PESTLE_KERNEL_MAX_ARGS; ++i) {
    if (b->inputs[i].data) drop(t, b->inputs[i].data, b->sizes[i]);
    size_t size = b->sizes[PESTLE_KERNEL_MAX_ARGS + i];
    if (b->outputs[i].data) drop(t, b->outputs[i].data, size);
    if (b->expected[i]) drop(t, b->expected[i], size);
  }
  memset(b, 0, sizeof(*b));
}

static pestle_status_t make_buffers(tuner_t* t, const pestle_executable_t* e) {
  buffers_t* b = t->buffers;
  b->input_count = pestle_executable_input_count(e);
  b->output_count = pestle_executable_output_count(e);
  for (size_t i = 0; i < b->input_count; ++i) {
    pestle_io_info_t info = pestle_executable_input(e, i);
    PESTLE_TRY(make_tensor(t, &info, i, true, &b->inputs[i]));
  }
  for (size_t i = 0; i < b->output_count; ++i) {
    size_t at = PESTLE_KERNEL_MAX_ARGS + i;
    pestle_io_info_t info = pestle_executable_output(e, i);
    PESTLE_TRY(make_tensor(t, &info, at, false, &b->outputs[i]));
    b->expected[i] = pestle_alloc_aligned(t->allocator, b->sizes[at],
                                          PESTLE_BUFFER_ALIGNMENT);
    if (!b->expected[i]) return PESTLE_OOM();
  }
  return NULL;
}

// Whether |e| takes what the buffers are for, by the names of steps.h.
static bool fits_buffers(const option_run_t* usual, const option_run_t* x) {
  const pestle_executable_t *a = usual->executable, *b = x->executable;
  size_t inputs = pestle_executable_input_count(a);
  size_t outputs = pestle_executable_output_count(a);
  if (pestle_executable_input_count(b) != inputs ||
      pestle_executable_output_count(b) != outputs) {
    return false;
  }
  for (size_t i = 0; i < inputs; ++i) {
    if (strcmp(pestle_executable_input(a, i).name,
               pestle_executable_input(b, i).name)) {
      return false;
    }
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (strcmp(pestle_executable_output(a, i).name,
               pestle_executable_output(b, i).name)) {
      return false;
    }
  }
  return true;
}

// --- Times ---

static pestle_status_t run(tuner_t* t, const option_run_t* x) {
  buffers_t* b = t->buffers;
  return pestle_executable_run(x->executable, NULL, b->inputs, b->input_count,
                               b->outputs, b->output_count, NULL);
}

static pestle_status_t time_runs(tuner_t* t, option_run_t* x) {
  int64_t begin = pestle_clock_ns();
  for (int64_t i = 0; i < x->repeats; ++i)
    PESTLE_TRY(run(t, x));
  double us = (double)(pestle_clock_ns() - begin) * 1e-3 / (double)x->repeats;
  if (x->best_us <= 0 || us < x->best_us) x->best_us = us;
  return NULL;
}

// Runs |x| once and compares with the usual option, which |is_usual| itself.
static pestle_status_t check_bits(tuner_t* t, bool is_usual, option_run_t* x) {
  buffers_t* b = t->buffers;
  for (size_t i = 0; i < b->output_count; ++i)
    memset(b->outputs[i].data, 0, b->sizes[PESTLE_KERNEL_MAX_ARGS + i]);
  int64_t begin = pestle_clock_ns();
  PESTLE_TRY(run(t, x));
  int64_t ns = pestle_clock_ns() - begin;
  x->repeats = ns > 0 && ns < BATCH_NS ? BATCH_NS / ns + 1 : 1;
  for (size_t i = 0; i < b->output_count; ++i) {
    size_t size = b->sizes[PESTLE_KERNEL_MAX_ARGS + i];
    if (is_usual) {
      memcpy(b->expected[i], b->outputs[i].data, size);
    } else if (memcmp(b->expected[i], b->outputs[i].data, size)) {
      x->out = true;
    }
  }
  return NULL;
}

static double best_of(const option_run_t* runs, size_t count) {
  double best = 0;
  for (size_t i = 0; i < count; ++i) {
    if (runs[i].out || runs[i].best_us <= 0) continue;
    if (best <= 0 || runs[i].best_us < best) best = runs[i].best_us;
  }
  return best;
}

static bool is_late(const tuner_t* t) {
  return pestle_clock_ns() >= t->until_ns;
}

// Rounds, in each of which every option that is still in runs once; the first
// is the usual one, which stays in.
static pestle_status_t run_rounds(tuner_t* t, option_run_t* runs,
                                  size_t count) {
  int64_t begin = pestle_clock_ns();
  for (int round = 0; round < MOST_ROUNDS; ++round) {
    bool enough = pestle_clock_ns() - begin > CHOICE_NS || is_late(t);
    if (round >= LEAST_ROUNDS && enough) break;
    for (size_t i = 0; i < count; ++i) {
      if (!runs[i].out) PESTLE_TRY(time_runs(t, &runs[i]));
    }
    double best = best_of(runs, count);
    for (size_t i = 1; i < count && round >= PRUNE_ROUND; ++i) {
      runs[i].out = runs[i].out || runs[i].best_us > best * FAR_BEHIND;
    }
  }
  return NULL;
}

// The winner, or 0: the usual one stays.
static pestle_status_t pick(tuner_t* t, option_run_t* runs, size_t count,
                            size_t* out_winner) {
  *out_winner = 0;
  size_t best = 0;
  for (size_t i = 1; i < count; ++i) {
    if (!runs[i].out && runs[i].best_us < runs[best].best_us) best = i;
  }
  if (!best || runs[best].best_us > runs[0].best_us * MARGIN) return NULL;
  option_run_t again[2] = {runs[0], runs[best]};
  again[0].best_us = again[1].best_us = 0;
  PESTLE_TRY(run_rounds(t, again, 2));
  if (again[1].best_us <= again[0].best_us * MARGIN) *out_winner = best;
  return NULL;
}

// --- A choice ---

// The options to measure: |taken| first, then the others by estimate.
static size_t list_options(const pestle_choice_t* d, uint32_t taken,
                           option_run_t out[OPTIONS]) {
  size_t n = 0;
  out[n++] = (option_run_t){.index = taken};
  double usual = d->options[d->usual].cost;
  bool* used = (bool[1024]){false};
  if (d->count > 1024) return n;
  used[taken] = true;
  while (n < OPTIONS) {
    uint32_t next = UINT32_MAX;
    for (uint32_t i = 0; i < d->count; ++i) {
      double cost = d->options[i].cost;
      if (used[i] || (usual > 0 && cost > usual * SLOWEST_SHARE)) continue;
      if (next == UINT32_MAX || cost < d->options[next].cost) next = i;
    }
    if (next == UINT32_MAX) break;
    used[next] = true;
    out[n++] = (option_run_t){.index = next};
  }
  return n;
}

// |chosen| down to |kind|, whose value is |value|.
static void replace(const char* chosen, const char* kind, const char* value,
                    pestle_strbuf_t* out) {
  pestle_str_t rest = pestle_str(chosen), field, name, old;
  bool is_it = false;
  while (!is_it && pestle_str_next(&rest, ' ', &field)) {
    if (!pestle_str_split(field, '=', &name, &old)) continue;
    if (out->size) pestle_strbuf_append_char(out, ' ');
    is_it = pestle_str_equal_c(name, kind);
    pestle_strbuf_appendf(out, "%.*s=", PESTLE_STR_ARG(name));
    pestle_strbuf_append(out, is_it ? pestle_str(value) : old);
  }
}

// Appends to |batch| a kernel for each of |runs|; one that cannot be made is
// out, and takes the first one's place.
static pestle_status_t build_options(tuner_t* t, const pestle_kernel_t* k,
                                     const pestle_choice_t* d,
                                     const char* chosen,
                                     pestle_kernels_t* batch,
                                     option_run_t* runs, size_t* count) {
  size_t n = 0;
  for (size_t i = 0; i < *count; ++i) {
    pestle_strbuf_t text;
    pestle_strbuf_init(t->allocator, &text);
    replace(chosen, d->kind, d->options[runs[i].index].name, &text);
    const char* wanted =
        pestle_arena_strdup(batch->arena, pestle_strbuf_cstr(&text));
    pestle_strbuf_deinit(&text);
    if (!wanted) return PESTLE_OOM();
    pestle_status_t status = pestle_kernels_add_like(batch, k, wanted);
    bool oom = pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
    if (status && (oom || !i)) return status;
    bool failed = status != NULL;
    pestle_status_release(status);
    if (failed) {
      // It was appended, half made: taken out again.
      pestle_kernel_t* broken = pestle_vec_pop(&batch->list);
      pestle_kernel_drop_legal(broken);
      pestle_dealloc(batch->list.allocator, broken, sizeof(*broken));
      continue;
    }
    const pestle_kernel_t* made = pestle_vec_last(&batch->list);
    runs[n] = runs[i];
    // A schedule that needs more scratch than there is, say.
    runs[n++].out = i && (made->stale || made->device);
  }
  *count = n;
  return NULL;
}

static pestle_status_t load_options(tuner_t* t, const pestle_kernels_t* batch,
                                    option_run_t* runs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const pestle_kernel_t* made = batch->list.data[i];
    for (size_t j = 0; j < i; ++j) {
      const pestle_kernel_t* other = batch->list.data[j];
      // The same code, and threads: nothing to measure.
      if (!runs[j].out && other->unique == made->unique &&
          other->work_ns == made->work_ns) {
        runs[i].out = true;
      }
    }
    if (runs[i].out) continue;
    PESTLE_TRY(load_one(t, batch, i, &runs[i]));
    runs[i].out = i && !fits_buffers(&runs[0], &runs[i]);
  }
  return NULL;
}

static void append_measured(const pestle_choice_t* d, const option_run_t* runs,
                            size_t count, pestle_strbuf_t* out) {
  for (size_t i = 0; i < count; ++i) {
    if (runs[i].best_us <= 0) continue;
    pestle_strbuf_appendf(out, "%s%s:%s=%.4g", out->size ? "," : "", d->kind,
                          d->options[runs[i].index].name, runs[i].best_us);
  }
}

static pestle_status_t measure_options(tuner_t* t,
                                       const pestle_kernels_t* batch,
                                       option_run_t* runs, size_t count,
                                       size_t* out_winner) {
  *out_winner = 0;
  PESTLE_TRY(load_options(t, batch, runs, count));
  if (!t->buffers->output_count) {
    PESTLE_TRY(make_buffers(t, runs[0].executable));
  }
  for (size_t i = 0; i < count; ++i) {
    if (!runs[i].out) PESTLE_TRY(check_bits(t, i == 0, &runs[i]));
  }
  PESTLE_TRY(run_rounds(t, runs, count));
  return pick(t, runs, count, out_winner);
}

// Tunes choice |d|; |found| becomes what is best now.
static pestle_status_t tune_choice(tuner_t* t, const pestle_kernel_t* k,
                                   const pestle_choice_t* d, found_t* found,
                                   pestle_strbuf_t* measured) {
  option_run_t runs[OPTIONS];
  size_t count = list_options(d, d->taken, runs), winner = 0;
  pestle_kernels_t batch;
  pestle_kernels_init_like(t->ks, t->arena, &batch);
  batch.options = &t->options;
  batch.has_fallback = false;
  pestle_status_t status =
      build_options(t, k, d, found->chosen, &batch, runs, &count);
  if (!status) status = pestle_kernels_compile(&batch);
  if (!status) status = measure_options(t, &batch, runs, count, &winner);
  if (pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED) {
    // An option that the target refuses: the choice stays as it is.
    pestle_status_release(status);
    status = NULL;
    winner = 0;
  }
  unload(runs, count);
  if (!status) append_measured(d, runs, count, measured);
  if (!status && winner) {
    const pestle_kernel_t* made = batch.list.data[winner];
    *found = (found_t){made->chosen, made->choices, made->choice_count};
  }
  pestle_kernels_deinit(&batch);
  return status;
}

// --- A kernel ---

static pestle_status_t put_line(tuner_t* t, const pestle_kernel_t* k,
                                const char* chosen, const char* measured) {
  pestle_lockfile_place_t place =
      pestle_kernels_place(t->ks->context, &t->ks->targets[0].caps);
  char version[32];
  pestle_lockfile_field(pestle_version(), version, sizeof(version));
  pestle_lockfile_line_t line = {.key = k->key,
                                 .target = place.target,
                                 .cpu = place.cpu,
                                 .threads = place.threads,
                                 .version = version,
                                 .measured = *measured ? measured : "-",
                                 .chosen = chosen};
  return pestle_lockfile_put(t->lock, &line);
}

static pestle_status_t tune_choices(tuner_t* t, const pestle_kernel_t* k,
                                    found_t* found, pestle_strbuf_t* measured) {
  bool fits = k->bytes < MOST_MEMORY;
  for (size_t i = 0; i < found->choice_count && fits && !is_late(t); ++i) {
    const pestle_choice_t* d = &found->choices[i];
    if (!pestle_choice_is_open(d)) continue;
    PESTLE_TRY(tune_choice(t, k, d, found, measured));
  }
  return pestle_strbuf_status(measured);
}

static pestle_status_t tune_kernel(tuner_t* t, const pestle_kernel_t* k) {
  pestle_arena_t arena;
  pestle_strbuf_t measured;
  found_t found = {k->chosen, k->choices, k->choice_count};
  pestle_strbuf_init(t->allocator, &measured);
  pestle_arena_init(t->allocator, &arena);
  t->arena = &arena;
  pestle_status_t status = tune_choices(t, k, &found, &measured);
  drop_buffers(t);
  if (!status) {
    status = put_line(t, k, found.chosen, pestle_strbuf_cstr(&measured));
  }
  pestle_strbuf_deinit(&measured);
  pestle_arena_deinit(&arena);
  return pestle_status_annotate(status, "while tuning kernel '%s'", k->name);
}

// --- All ---

typedef struct entry_t {
  const pestle_kernel_t* k;
  uint64_t work;  // of all kernels with its key
} entry_t;

static int by_work(const void* a, const void* b) {
  const entry_t *x = a, *y = b;
  if (x->work != y->work) return x->work < y->work ? 1 : -1;
  return strcmp(x->k->key, y->k->key);
}

static bool is_measured(const tuner_t* t, const pestle_kernel_t* k) {
  pestle_lockfile_place_t place =
      pestle_kernels_place(t->ks->context, &t->ks->targets[0].caps);
  const pestle_lockfile_line_t* line = pestle_lockfile_find(
      t->lock, k->key, place.target, place.cpu, place.threads);
  return line && strcmp(line->measured, "-") && !k->stale;
}

static pestle_status_t list_kernels(tuner_t* t, entry_t* entries,
                                    size_t* out_count) {
  pestle_map_t seen;
  pestle_map_init(t->allocator, &seen);
  pestle_status_t status = NULL;
  *out_count = 0;
  for (size_t i = 0; i < t->ks->list.size && !status; ++i) {
    const pestle_kernel_t* k = t->ks->list.data[i];
    if (!k->open || !k->key[0] || k->device || is_measured(t, k)) continue;
    bool added;
    pestle_map_value_t* v =
        pestle_map_put(&seen, k->key, sizeof(k->key), &added);
    if (!v) {
      status = PESTLE_OOM();
    } else if (added) {
      v->u64 = *out_count;
      entries[(*out_count)++] = (entry_t){.k = k, .work = k->work_ns};
    } else {
      entries[v->u64].work += k->work_ns;
    }
  }
  pestle_map_deinit(&seen);
  if (*out_count) qsort(entries, *out_count, sizeof(*entries), by_work);
  return status;
}

static pestle_status_t tune_all(tuner_t* t, const entry_t* entries,
                                size_t count, double seconds) {
  uint64_t left = 0;
  int64_t end = pestle_clock_ns() + (int64_t)(seconds * 1e9);
  for (size_t i = 0; i < count; ++i)
    left += entries[i].work;
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_control_check(t->options.control, "tune", (int64_t)i,
                                    (int64_t)count));
    // Each its share of the time; the first choice of one is not cut short.
    int64_t now = pestle_clock_ns(), rest = end > now ? end - now : 0;
    double share = (double)entries[i].work / (double)(left ? left : 1);
    t->until_ns = now + (int64_t)((double)rest * share);
    // At least a few milliseconds, while there are any.
    int64_t least = now + (rest < CHOICE_NS ? rest : CHOICE_NS);
    if (t->until_ns < least) t->until_ns = least;
    PESTLE_TRY(tune_kernel(t, entries[i].k));
    left -= entries[i].work;
  }
  return NULL;
}

pestle_status_t pestle_tune(pestle_kernels_t* kernels,
                            pestle_lockfile_t* lock) {
  if (pestle_device_is_target(kernels->targets[0].device)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "'%s' has no device here that could be measured; tune "
                        "on a machine that has one, and use its lock",
                        kernels->targets[0].backend->name);
  }
  tuner_t t = {.ks = kernels,
               .lock = lock,
               .allocator = kernels->list.allocator,
               .options = *kernels->options};
  t.options.dump = NULL;
  t.options.dump_stages = 0;
  t.buffers = pestle_alloc_zero(t.allocator, sizeof(*t.buffers));
  entry_t* entries =
      PESTLE_ARENA_ARRAY(kernels->arena, entry_t, kernels->list.size + 1);
  size_t count;
  pestle_status_t status = t.buffers && entries ? NULL : PESTLE_OOM();
  if (!status) status = list_kernels(&t, entries, &count);
  if (!status) status = tune_all(&t, entries, count, t.options.tune_seconds);
  if (t.buffers) pestle_dealloc(t.allocator, t.buffers, sizeof(*t.buffers));
  return status;
}
