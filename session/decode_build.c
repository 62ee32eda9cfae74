// SPDX-License-Identifier: Apache-2.0
// The executables of a decoder. Each is the model for a number of new tokens, its caches as
// results where they lie as arguments. Where the model appends rows to its caches, a writer is
// linked behind it: the model sees caches with all their rows, of which the mask hides those
// that nothing was written to, and the writer moves the rows that were appended to the
// sequence's end, which is one more argument.
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "ir/graph.h"
#include "session/decode.h"

// --- What is compiled ---

pestle_type_t pestle_decode_type(const pestle_decoder_t* d, size_t input,
                                 int64_t room) {
  pestle_type_t type = d->inputs[input].type;
  if (d->inputs[input].role == DECODE_MASK) type.dims[1] = room;
  if (d->inputs[input].role == DECODE_CACHE) type.dims[type.rank - 2] = room;
  if (d->inputs[input].role == DECODE_BEAMS) type.dims[2] = room;
  return type;
}

// A function of each cache as it was, %p, and with the plan's rows appended, %q, and of the
// sequence's length: the caches with the new rows at that length.
static void put_writer(const pestle_decoder_t* d, const decode_plan_t* plan,
                       pestle_strbuf_t* text) {
  pestle_strbuf_append_c(text, "func.func public @main(");
  for (size_t c = 0; c < d->cache_count; ++c) {
    pestle_type_t type = pestle_decode_type(d, d->caches[c].input, plan->room);
    pestle_strbuf_appendf(text, "%%p%zu: ", c);
    pestle_type_print(&type, text);
    type.dims[type.rank - 2] += plan->rows;
    pestle_strbuf_appendf(text, ", %%q%zu: ", c);
    pestle_type_print(&type, text);
    pestle_strbuf_append_c(text, ", ");
  }
  pestle_strbuf_append_c(text, "%at: tensor<i64>) -> (");
  for (size_t c = 0; c < d->cache_count; ++c) {
    pestle_type_t type = pestle_decode_type(d, d->caches[c].input, plan->room);
    if (c) pestle_strbuf_append_c(text, ", ");
    pestle_type_print(&type, text);
  }
  pestle_strbuf_append_c(
      text, ") {\n%z = stablehlo.constant dense<0> : tensor<i64>\n");
  for (size_t c = 0; c < d->cache_count; ++c) {
    pestle_type_t past = pestle_decode_type(d, d->caches[c].input, plan->room);
    pestle_type_t all = past, new = past;
    int32_t axis = past.rank - 2;
    all.dims[axis] += plan->rows;
    new.dims[axis] = plan->rows;
    pestle_strbuf_appendf(text, "%%n%zu = stablehlo.slice %%q%zu [", c, c);
    for (int32_t i = 0; i < past.rank; ++i) {
      int64_t from = i == axis ? plan->room : 0;
      pestle_strbuf_appendf(text, "%s%lld:%lld", i ? ", " : "", (long long)from,
                            (long long)all.dims[i]);
    }
    pestle_strbuf_append_c(text, "] : (");
    pestle_type_print(&all, text);
    pestle_strbuf_append_c(text, ") -> ");
    pestle_type_print(&new, text);
    pestle_strbuf_appendf(
        text, "\n%%r%zu = stablehlo.dynamic_update_slice %%p%zu, %%n%zu", c, c,
        c);
    for (int32_t i = 0; i < past.rank; ++i)
      pestle_strbuf_append_c(text, i == axis ? ", %at" : ", %z");
    pestle_strbuf_append_c(text, " : (");
    pestle_type_print(&past, text);
    pestle_strbuf_append_c(text, ", ");
    pestle_type_print(&new, text);
    for (int32_t i = 0; i < past.rank; ++i)
      pestle_strbuf_append_c(text, ", tensor<i64>");
    pestle_strbuf_append_c(text, ") -> ");
    pestle_type_print(&past, text);
    pestle_strbuf_append_c(text, "\n");
  }
  pestle_strbuf_append_c(text, "return ");
  for (size_t c = 0; c < d->cache_count; ++c)
    pestle_strbuf_appendf(text, "%s%%r%zu", c ? ", " : "", c);
  for (size_t c = 0; c < d->cache_count; ++c) {
    pestle_type_t type = pestle_decode_type(d, d->caches[c].input, plan->room);
    pestle_strbuf_append_c(text, c ? ", " : " : ");
    pestle_type_print(&type, text);
  }
  pestle_strbuf_append_c(text, "\n}\n");
}

static pestle_status_t make_writer(const pestle_decoder_t* d,
                                   const decode_plan_t* plan,
                                   pestle_module_t** out_module) {
  pestle_strbuf_t text;
  pestle_strbuf_init(d->allocator, &text);
  put_writer(d, plan, &text);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    status =
        pestle_module_parse(d->context, text.data, text.size, NULL, out_module);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

// |*module| with the caches as results, and behind them the logits if they are wanted, and what
// a chooser says of them.
static pestle_status_t link(const pestle_decoder_t* d,
                            const decode_plan_t* plan,
                            pestle_module_t** module) {
  bool has_logits = plan->rows == 1;
  bool has_choice = d->is_far && has_logits && plan->batch == 1;
  size_t caches = d->cache_count, inputs = d->input_count;
  size_t count = inputs + (2 * caches + 1) + (caches + 2) + 1;
  size_t bytes = count * sizeof(pestle_link_source_t);
  pestle_link_source_t* sources = pestle_alloc(d->allocator, bytes);
  pestle_module_t *writer = NULL, *chooser = NULL, *linked = NULL;
  if (!sources) return PESTLE_OOM();
  pestle_link_source_t *writes = sources + inputs,
                       *results = writes + 2 * caches + 1,
                       *chosen = results + caches + 2;
  for (uint32_t i = 0; i < inputs; ++i)
    sources[i] = (pestle_link_source_t){PESTLE_LINK_ARGUMENT, i};
  for (size_t c = 0; c < caches; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    writes[2 * c] = (pestle_link_source_t){PESTLE_LINK_ARGUMENT, cache->input};
    writes[2 * c + 1] = (pestle_link_source_t){0, cache->output};
    results[c] = d->grows ? (pestle_link_source_t){1, (uint32_t)c}
                          : (pestle_link_source_t){0, cache->output};
  }
  writes[2 * caches] =
      (pestle_link_source_t){PESTLE_LINK_ARGUMENT, (uint32_t)inputs};
  results[caches] = (pestle_link_source_t){0, d->logits};
  *chosen = results[caches];
  results[caches + 1] = (pestle_link_source_t){1 + d->grows, 0};
  pestle_status_t status = d->grows ? make_writer(d, plan, &writer) : NULL;
  if (!status && has_choice) status = pestle_decode_make_chooser(d, &chooser);
  pestle_link_part_t parts[3] = {{*module, sources, inputs},
                                 {writer, writes, 2 * caches + 1}};
  parts[1 + d->grows] = (pestle_link_part_t){chooser, chosen, 1};
  if (!status) {
    size_t part_count = (size_t)1 + d->grows + has_choice;
    status = pestle_module_link(parts, part_count, results,
                                caches + has_logits + has_choice, &linked);
  }
  pestle_dealloc(d->allocator, sources, bytes);
  pestle_module_release(writer);
  pestle_module_release(chooser);
  if (status) return status;
  pestle_module_release(*module);
  *module = linked;
  return NULL;
}

static pestle_status_t specialize(const pestle_decoder_t* d,
                                  const decode_plan_t* plan,
                                  pestle_module_t** out_module) {
  size_t bytes = d->input_count * sizeof(pestle_type_t);
  pestle_type_t* types = pestle_alloc(d->allocator, bytes);
  *out_module = NULL;
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < d->input_count; ++i) {
    decode_role_t role = d->inputs[i].role;
    types[i] = pestle_decode_type(d, i, plan->room);
    if (role == DECODE_IDS || role == DECODE_POSITIONS)
      types[i].dims[types[i].rank - 1] = plan->rows;
    if (role == DECODE_MASK && d->grows) types[i].dims[1] += plan->rows;
    bool has_batch =
        types[i].rank > 1 && role != DECODE_HIDDEN && role != DECODE_CROSS;
    bool is_number = role == DECODE_FIRST || role == DECODE_TOTAL;
    if (has_batch || (is_number && types[i].rank))
      types[i].dims[0] = plan->batch;
  }
  pestle_status_t status =
      pestle_module_specialize(d->module, types, d->input_count, out_module);
  pestle_dealloc(d->allocator, types, bytes);
  if (status) return status;
  pestle_function_t* f = pestle_module_entry(*out_module);
  status = f && pestle_function_argument_count(f) == d->input_count
               ? pestle_decode_check(d, f, plan)
               : PESTLE_ERROR(UNSUPPORTED,
                              "the values of some of the model's inputs decide "
                              "shapes: a decoder has none to give them");
  if (status) {
    pestle_module_release(*out_module);
    *out_module = NULL;
  }
  return status;
}

static pestle_status_t build(const pestle_decoder_t* d,
                             const pestle_control_t* control,
                             pestle_module_t* module,
                             pestle_executable_t** out_executable) {
  pestle_compile_options_t options = d->compile;
  size_t bytes = d->cache_count * sizeof(pestle_alias_t);
  pestle_alias_t* aliases = pestle_alloc(d->allocator, bytes);
  pestle_plan_t* plan;
  if (!aliases) return PESTLE_OOM();
  for (size_t c = 0; c < d->cache_count; ++c) {
    aliases[c] = (pestle_alias_t){d->caches[c].input, (int32_t)c};
  }
  options.aliases = aliases;
  options.alias_count = d->cache_count;
  options.control = control;
  pestle_status_t status =
      pestle_compile(d->context, module, d->device, &options, &plan);
  pestle_dealloc(d->allocator, aliases, bytes);
  if (status) return status;
  status =
      pestle_executable_create(d->context, plan, d->device, out_executable);
  pestle_plan_release(plan);
  return status;
}

static pestle_status_t look_at(pestle_decoder_t* d, pestle_module_t* module) {
  pestle_function_t* f = pestle_module_entry(module);
  pestle_type_t logits = pestle_function_returned_type(f, d->logits);
  d->words = logits.dims[2];
  d->logits_dtype = logits.dtype;
  PESTLE_TRY(pestle_decode_find_places(d, f));
  return pestle_module_signature(module, d->signature);
}

static pestle_status_t look_once(pestle_decoder_t* d) {
  const decode_plan_t one = {.rows = 1, .batch = 1, .room = d->most};
  pestle_module_t* module;
  PESTLE_TRY(specialize(d, &one, &module));
  pestle_status_t status = look_at(d, module);
  pestle_module_release(module);
  return status;
}

// Without a mask a model is told how many rows there are where it counts them.
static pestle_status_t look_counting(pestle_decoder_t* d) {
  if (!d->counts) PESTLE_TRY(pestle_decode_count_rows(d));
  return look_once(d);
}

static bool is_out_of_memory(pestle_status_t status) {
  return pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
}

static pestle_status_t look_both(pestle_decoder_t* d) {
  if (!d->is_told) return look_counting(d);
  pestle_status_t status = look_once(d);
  if (!status || is_out_of_memory(status)) return status;
  // A model that appends rows wants another mask, and may not be imported before.
  d->grows = d->has_mask;
  pestle_status_t other = d->grows ? look_once(d) : look_counting(d);
  if (!other) {
    pestle_status_release(status);
    return NULL;
  }
  status = pestle_status_annotate(
      status, "taken as a model that %s: %s",
      d->grows ? "appends rows to its caches" : "counts the rows of its caches",
      pestle_status_message(other));
  d->grows = false;
  pestle_status_release(other);
  return status;
}

static pestle_status_t look_with(pestle_decoder_t* d, int64_t most) {
  d->most = d->room = most;
  for (size_t i = 0; i < d->input_count; ++i)
    d->inputs[i].type = pestle_decode_type(d, i, most);
  return look_both(d);
}

// Whether two sentences are one but for their numbers.
static bool says_same(const char* a, const char* b) {
  for (;; ++a, ++b) {
    a += strspn(a, "0123456789");
    b += strspn(b, "0123456789");
    if (*a != *b || !*a) return *a == *b;
  }
}

// An importer may refuse tables that are shorter than there are positions. Where nobody asked
// for so many there are as many as the tables have, which the model for few positions shows.
static pestle_status_t look_short(pestle_decoder_t* d) {
  enum { FEWEST = 8 };
  pestle_status_t status = look_both(d);
  if (!status || d->is_most_told || is_out_of_memory(status)) return status;
  pestle_status_t other = d->asked > FEWEST ? look_with(d, FEWEST) : NULL;
  bool is_short = !other && d->places > FEWEST && d->places < d->asked;
  if (is_short) other = look_with(d, d->places);
  if (!other && is_short) {
    pestle_status_release(status);
    return NULL;
  }
  // What else is wrong with few positions has another cause than how many there are.
  if (other &&
      !says_same(pestle_status_message(status), pestle_status_message(other))) {
    pestle_status_release(status);
    return other;
  }
  pestle_status_release(other);
  return status;
}

pestle_status_t pestle_decode_look(pestle_decoder_t* d) {
  d->asked = d->most;
  pestle_status_t status = look_short(d);
  if (status && d->is_most_told) {
    return pestle_status_annotate(status,
                                  "with %lld positions a sequence "
                                  "(pestle_decoder_options_t.most, --most)",
                                  (long long)d->most);
  }
  PESTLE_TRY(status);
  PESTLE_TRY(pestle_decode_check_ends(d));
  if (d->places >= d->most) return NULL;
  if (!d->is_most_told && d->places) return look_with(d, d->places);
  return PESTLE_ERROR(
      MALFORMED,
      "'%s' takes rows of a table by positions, and has them for %lld, where "
      "sequences may have %lld: ask for %lld at most "
      "(pestle_decoder_options_t.most, --most)",
      d->short_table, (long long)d->places, (long long)d->most,
      (long long)d->places);
}

pestle_status_t pestle_decode_make_plan(const pestle_decoder_t* d,
                                        const pestle_control_t* control,
                                        decode_plan_t* plan) {
  pestle_module_t* module;
  PESTLE_TRY(specialize(d, plan, &module));
  pestle_status_t status = link(d, plan, &module);
  if (!status) status = build(d, control, module, &plan->executable);
  pestle_module_release(module);
  // The plan has its own weights: the pages of the model's file need not stay.
  pestle_module_relax(d->module);
  return pestle_status_annotate(status, "for %lld new tokens of %lld sequences",
                                (long long)plan->rows, (long long)plan->batch);
}

const decode_plan_t* pestle_decode_find(const pestle_decoder_t* d, int64_t rows,
                                        int64_t batch, int64_t room) {
  for (size_t i = 0; i < d->plan_count; ++i) {
    const decode_plan_t* p = &d->plans[i];
    if (p->rows == rows && p->batch == batch && p->room == room) return p;
  }
  return NULL;
}

pestle_status_t pestle_decode_plan(pestle_decoder_t* d, int64_t rows,
                                   int64_t batch,
                                   const decode_plan_t** out_plan) {
  decode_plan_t plan = {.rows = rows, .batch = batch, .room = d->room};
  *out_plan = pestle_decode_find(d, rows, batch, d->room);
  if (*out_plan) return NULL;
  pestle_decode_take_ahead(d, d->room);
  *out_plan = pestle_decode_find(d, rows, batch, d->room);
  if (*out_plan) return NULL;
  if (d->plan_count == DECODE_MOST_PLANS)
    return PESTLE_ERROR(INTERNAL, "a decoder has too many plans");
  int64_t begin = pestle_clock_ns();
  pestle_status_t status = pestle_decode_make_plan(d, NULL, &plan);
  ++d->compiles;
  d->compile_ns += pestle_clock_ns() - begin;
  if (status) return status;
  d->plans[d->plan_count] = plan;
  *out_plan = &d->plans[d->plan_count++];
  return NULL;
}
