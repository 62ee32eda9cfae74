// SPDX-License-Identifier: Apache-2.0
#include "compile/explain.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "codegen/direct/direct.h"
#include "compile/dump.h"
#include "compile/explain_index.h"
#include "passes/util.h"

enum {
  // Bytes of a stream that one core takes a cycle, from what was measured on the
  // machine of the baselines at some 3.7 GHz: 118, 98 and 47 GB/s. (Panels that
  // a contraction reads between multiply-adds come slower: sketch_cost.c.)
  L2_BYTES = 32,
  L3_BYTES = 26,
  MEMORY_BYTES = 12,
  // Names that a line of many ops shows.
  SHOWN = 3,
};

static void send(const pestle_kernels_t* ks, const char* name,
                 const pestle_strbuf_t* text) {
  pestle_dump(ks->options, PESTLE_STAGE_EXPLAIN, name, pestle_strbuf_cstr(text),
              text->size);
}

void pestle_explain_note(pestle_kernels_t* kernels, const pestle_strbuf_t* why,
                         pestle_kernel_t* k) {
  k->explain_ops = k->flops;
  // Without memory the text is missing; pestle_explain_kernels() says so.
  k->explain_why = why->failed ? NULL
                               : pestle_arena_strdup(kernels->arena,
                                                     pestle_strbuf_cstr(why));
}

// --- One kernel ---

// Lines under one label: the label, then as much space.
static void begin_line(const char* label, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, "  %-9s ", label);
}

static bool is_shown(const pestle_node_t* n) {
  return n->op != PESTLE_OP_RETURN && !pestle_pass_is_stored(n);
}

static bool same_source(const pestle_node_t* a, const pestle_node_t* b) {
  const char *x = a->loc.name, *y = b->loc.name;
  return x == y || (x && y && !strcmp(x, y));
}

static void print_source(const pestle_node_t* n, pestle_strbuf_t* out) {
  if (!n->loc.name) return;
  pestle_strbuf_append_c(out, " [");
  pestle_strbuf_append_name(out, n->loc.name);
  pestle_strbuf_append_char(out, ']');
}

// "convolution [Conv_0]; add, tanh [Act_1]": ops of one node of the source
// together.
static void print_ops(const pestle_kernel_t* k, pestle_strbuf_t* out) {
  const pestle_node_t* last = NULL;
  begin_line("ops", out);
  // A kernel that was written as a text has no body.
  if (pestle_is_direct(k->node) || !k->node->region_count) {
    pestle_strbuf_appendf(out, "%s\n", k->ops ? k->ops : k->name);
    return;
  }
  for (const pestle_node_t* n = pestle_node_body(k->node, 0)->first; n;
       n = n->next) {
    if (!is_shown(n)) continue;
    bool ends = last && !same_source(last, n);
    if (ends) print_source(last, out);
    if (last) pestle_strbuf_append_c(out, ends ? "; " : ", ");
    pestle_strbuf_append_c(out, pestle_op_info((pestle_op_t)n->op)->name);
    last = n;
  }
  if (last) print_source(last, out);
  pestle_strbuf_append_char(out, '\n');
}

static void print_parts(const pestle_explain_index_t* index, uint32_t number,
                        const pestle_explain_group_t* group,
                        pestle_strbuf_t* out) {
  if (group->kernels == 1) return;
  begin_line("part", out);
  pestle_strbuf_appendf(out,
                        "%" PRIu32 " of %" PRIu32
                        " kernels of these ops: results that need loops of "
                        "their own\n",
                        index->part[number], group->kernels);
}

// Whether an argument of |k| is a result of |fusion|, or a view of one.
static bool reads_from(const pestle_kernel_t* k, const pestle_node_t* fusion) {
  for (uint32_t i = 0; i < k->arg_count; ++i) {
    if (k->args[i].kind != PESTLE_ARG_OPERAND) continue;
    const pestle_node_t* n =
        pestle_node_operand(k->node, k->args[i].slot)->node;
    while (n && n != fusion && n->op != PESTLE_OP_FUSION &&
           !pestle_is_direct(n) && n->operand_count)
      n = pestle_node_operand(n, 0)->node;
    if (n == fusion) return true;
  }
  return false;
}

static void print_reads(const pestle_explain_index_t* index,
                        const pestle_kernel_t* k,
                        const pestle_explain_group_t* group,
                        pestle_strbuf_t* out) {
  for (size_t i = group->first_read; i; i = index->next_read[i - 1]) {
    const pestle_remark_t* r = &index->remarks->list.data[i - 1];
    if (!reads_from(k, r->from)) continue;
    begin_line("reads", out);
    pestle_strbuf_append_c(out, r->what);
    const pestle_explain_group_t* from = pestle_explain_group(index, r->from);
    // One without elements has no kernel.
    if (from && from->kernels) {
      pestle_strbuf_appendf(out, " from kernel %" PRIu32, from->first_kernel);
    }
    pestle_strbuf_append_char(out, '\n');
    begin_line("", out);
    pestle_strbuf_appendf(out, "not fused: %s\n", r->text);
  }
}

static void print_lines(const char* label, const char* text,
                        pestle_strbuf_t* out) {
  pestle_str_t rest = pestle_str(text), line;
  while (pestle_str_next(&rest, '\n', &line)) {
    if (!line.size) continue;
    begin_line(label, out);
    pestle_strbuf_append(out, line);
    pestle_strbuf_append_char(out, '\n');
    label = "";
  }
}

// "1.5 M", "12 ": the unit comes behind it.
static void print_count(double n, pestle_strbuf_t* out) {
  static const char* const letters[] = {"", "k", "M", "G", "T", "P"};
  int letter = 0;
  while (n >= 1000 && letter < 5) {
    n /= 1000;
    ++letter;
  }
  pestle_strbuf_appendf(out, letter ? "%.1f %s" : "%.0f %s", n,
                        letters[letter]);
}

static void print_ops_and_bytes(double ops, double bytes,
                                pestle_strbuf_t* out) {
  pestle_strbuf_append_c(out, "about ");
  print_count(ops, out);
  pestle_strbuf_append_c(out, ops < 1000 ? "operations, " : " operations, ");
  print_count(bytes, out);
  pestle_strbuf_append_c(out, bytes < 1000 ? "bytes" : "B");
}

typedef enum bound_e { BY_ARITHMETIC, BY_MEMORY, BY_NEITHER } bound_t;

static uint64_t bytes_a_cycle(const pestle_target_caps_t* caps,
                              uint64_t bytes) {
  if (caps->l2_bytes && bytes <= caps->l2_bytes) return L2_BYTES;
  return caps->l3_bytes && bytes <= caps->l3_bytes ? L3_BYTES : MEMORY_BYTES;
}

static bound_t bound_of(const pestle_target_caps_t* caps,
                        const pestle_kernel_t* k, double* out_balance) {
  *out_balance = 0;
  if (caps->flags & PESTLE_TARGET_INTERPRETED || !caps->vector_bytes ||
      !k->bytes) {
    return BY_NEITHER;
  }
  uint32_t lanes = caps->vector_bytes / 4;
  uint32_t fma = caps->flags & PESTLE_TARGET_FMA ? 2 : 1;
  *out_balance = (double)(lanes * fma) / (double)bytes_a_cycle(caps, k->bytes);
  return (double)k->explain_ops / (double)k->bytes < *out_balance
             ? BY_MEMORY
             : BY_ARITHMETIC;
}

static void print_cost(const pestle_kernels_t* ks, const pestle_kernel_t* k,
                       pestle_strbuf_t* out) {
  const pestle_target_caps_t* caps = &ks->targets[k->device].caps;
  double balance;
  bound_t bound = bound_of(caps, k, &balance);
  begin_line("cost", out);
  print_ops_and_bytes((double)k->explain_ops, (double)k->bytes, out);
  pestle_strbuf_append_c(out, " of arguments");
  if (bound == BY_NEITHER) {
    pestle_strbuf_append_char(out, '\n');
    return;
  }
  uint64_t width = bytes_a_cycle(caps, k->bytes);
  const char* from = width == L2_BYTES   ? "the L2"
                     : width == L3_BYTES ? "the L3"
                                         : "memory";
  pestle_strbuf_appendf(out,
                        ": %.1f a byte, bound by %s (a core does %.1f in the "
                        "time that a byte takes from %s)\n",
                        (double)k->explain_ops / (double)k->bytes,
                        bound == BY_MEMORY ? "memory" : "arithmetic", balance,
                        from);
}

// What threads can share.
static void print_groups(const pestle_kernel_t* k, pestle_strbuf_t* out) {
  int64_t groups = k->legal->view.group[0];
  begin_line("threads", out);
  if (groups <= 1) {
    pestle_strbuf_append_c(out, "one: the group loop has one step\n");
    return;
  }
  pestle_strbuf_appendf(
      out, "share %" PRId64 " steps of the group loop, about %.1f us of work\n",
      groups, (double)k->work_ns * 1e-3);
}

static void print_effort(const pestle_kernel_t* k, pestle_strbuf_t* out) {
  if (!k->is_cold) return;
  begin_line("code", out);
  pestle_strbuf_append_c(out,
                         "made soon rather than fast: a run does not notice\n");
}

static void print_twin(const pestle_explain_index_t* index, uint32_t number,
                       pestle_strbuf_t* out) {
  if (index->twin[number] == number) return;
  begin_line("code", out);
  pestle_strbuf_appendf(out, "that of kernel %" PRIu32 ", compiled once\n",
                        index->twin[number]);
}

static pestle_status_t explain_kernel(const pestle_kernels_t* ks,
                                      const pestle_explain_index_t* index,
                                      uint32_t number) {
  pestle_kernel_t* k = ks->list.data[number];
  const pestle_explain_group_t* group = pestle_explain_group(index, k->node);
  if (!k->explain_why) return PESTLE_OOM();
  k->explained = k->device != 0;
  pestle_strbuf_t out;
  pestle_strbuf_init(ks->list.allocator, &out);
  pestle_strbuf_appendf(&out, "kernel %" PRIu32 ": %s\n", number, k->name);
  print_ops(k, &out);
  print_parts(index, number, group, &out);
  if (k->device) {
    begin_line("fallback", &out);
    pestle_strbuf_appendf(&out, "'%s' runs it: %s\n",
                          ks->targets[1].backend->name,
                          k->refused ? k->refused : "");
  }
  print_reads(index, k, group, &out);
  print_lines("schedule", k->explain_why, &out);
  print_cost(ks, k, &out);
  print_groups(k, &out);
  print_effort(k, &out);
  print_twin(index, number, &out);
  pestle_status_t status = pestle_strbuf_status(&out);
  if (!status) send(ks, k->name, &out);
  pestle_strbuf_deinit(&out);
  return status;
}

// --- Remarks about the module, equal ones together ---

// Whether the pass recognise left |remark|: the others are about layouts.
static bool is_of_composites(const pestle_remark_t* remark) {
  return !strcmp(remark->pass, "recognise");
}

// Those of one text.
typedef struct remark_t {
  size_t first, count;
  pestle_strbuf_t what;  // of the first few, with commas
} remark_t;

typedef PESTLE_VEC(remark_t) together_t;

// Counts the remarks of each text, in the order of their first ones.
static bool count_together(const pestle_remarks_t* remarks, bool composites,
                           pestle_map_t* texts, together_t* out) {
  for (size_t i = 0; i < remarks->list.size; ++i) {
    const pestle_remark_t* r = &remarks->list.data[i];
    bool added;
    if (r->from || is_of_composites(r) != composites) continue;
    pestle_map_value_t* at =
        pestle_map_put(texts, r->text, strlen(r->text), &added);
    if (!at) return false;
    if (added) {
      remark_t made = {.first = i};
      pestle_strbuf_init(out->allocator, &made.what);
      at->u64 = out->size;
      if (!pestle_vec_push(out, made)) return false;
    }
    remark_t* same = &out->data[at->u64];
    if (++same->count > SHOWN) continue;
    pestle_strbuf_appendf(&same->what, "%s%s", same->count > 1 ? ", " : "",
                          r->what);
  }
  return true;
}

static void print_together(const pestle_remarks_t* remarks,
                           const remark_t* same, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, "  %s", pestle_strbuf_cstr(&same->what));
  if (same->count > SHOWN) {
    pestle_strbuf_appendf(out, " and %zu more", same->count - SHOWN);
  }
  pestle_strbuf_appendf(out, same->count > 1 ? ": each %s\n" : ": %s\n",
                        remarks->list.data[same->first].text);
}

// False: out of memory. |*out_told|: how many lines there are.
static bool print_module_remarks(const pestle_remarks_t* remarks,
                                 bool composites, pestle_strbuf_t* out,
                                 size_t* out_told) {
  pestle_map_t texts;
  together_t all;
  pestle_map_init(out->allocator, &texts);
  pestle_vec_init(&all, out->allocator);
  bool counted = count_together(remarks, composites, &texts, &all);
  for (size_t i = 0; i < all.size; ++i) {
    remark_t* same = &all.data[i];
    print_together(remarks, same, out);
    counted = counted && !same->what.failed;
    pestle_strbuf_deinit(&same->what);
  }
  *out_told = all.size;
  pestle_vec_deinit(&all);
  pestle_map_deinit(&texts);
  return counted;
}

// What looks like a composite with a kernel of its own, and is none; nothing is printed
// where there is nothing of the kind.
static pestle_status_t explain_composites(const pestle_kernels_t* ks,
                                          const pestle_remarks_t* remarks) {
  pestle_strbuf_t out;
  size_t told;
  pestle_strbuf_init(ks->list.allocator, &out);
  pestle_strbuf_append_c(&out, "no attention: two products and a softmax\n");
  bool printed = print_module_remarks(remarks, true, &out, &told);
  pestle_status_t status = printed ? pestle_strbuf_status(&out) : PESTLE_OOM();
  if (!status && told) send(ks, "composites", &out);
  pestle_strbuf_deinit(&out);
  return status;
}

static pestle_status_t explain_layouts(const pestle_kernels_t* ks,
                                       const pestle_remarks_t* remarks) {
  pestle_strbuf_t out;
  size_t told;
  pestle_strbuf_init(ks->list.allocator, &out);
  pestle_strbuf_append_c(&out, "layouts\n");
  bool printed = print_module_remarks(remarks, false, &out, &told);
  if (!told) {
    pestle_strbuf_append_c(&out,
                           "  nothing was turned: no convolution or "
                           "contraction lies another way than its kernels "
                           "want\n");
  }
  pestle_status_t status = printed ? pestle_strbuf_status(&out) : PESTLE_OOM();
  if (!status) send(ks, "layouts", &out);
  pestle_strbuf_deinit(&out);
  return status;
}

// --- All of it ---

static void print_bounds(const pestle_kernels_t* ks, pestle_strbuf_t* out) {
  double ops = 0, bytes = 0, balance;
  uint32_t counts[3] = {0};
  for (size_t i = 0; i < ks->list.size; ++i) {
    const pestle_kernel_t* k = ks->list.data[i];
    bound_t b = bound_of(&ks->targets[k->device].caps, k, &balance);
    ++counts[b];
    ops += (double)k->explain_ops;
    bytes += (double)k->bytes;
  }
  begin_line("kernels", out);
  pestle_strbuf_appendf(out, "%zu: ", ks->list.size);
  print_ops_and_bytes(ops, bytes, out);
  pestle_strbuf_appendf(out,
                        " of arguments; %" PRIu32
                        " bound by arithmetic, %" PRIu32 " by memory\n",
                        counts[BY_ARITHMETIC], counts[BY_MEMORY]);
}

static bool is_counted(const pestle_remarks_t* remarks, size_t index) {
  for (size_t i = 0; i < index; ++i) {
    const pestle_remark_t* r = &remarks->list.data[i];
    if (r->from && r->code == remarks->list.data[index].code) return true;
  }
  return false;
}

// How many values pass from kernel to kernel, and for which reasons.
static void print_reasons(const pestle_remarks_t* remarks,
                          pestle_strbuf_t* out) {
  size_t total = 0;
  for (size_t i = 0; i < remarks->list.size; ++i)
    total += remarks->list.data[i].from != NULL;
  if (!total) return;
  begin_line("between", out);
  pestle_strbuf_appendf(out, "%zu value%s:", total, total == 1 ? "" : "s");
  const char* comma = " ";
  for (size_t i = 0; i < remarks->list.size; ++i) {
    const pestle_remark_t* r = &remarks->list.data[i];
    if (!r->from || is_counted(remarks, i)) continue;
    size_t count = 0;
    for (size_t j = i; j < remarks->list.size; ++j) {
      const pestle_remark_t* other = &remarks->list.data[j];
      count += other->from && other->code == r->code;
    }
    pestle_strbuf_appendf(out, "%s%zu %s", comma, count, r->code);
    comma = ", ";
  }
  pestle_strbuf_append_char(out, '\n');
}

static pestle_status_t explain_summary(const pestle_kernels_t* ks,
                                       const pestle_remarks_t* remarks) {
  pestle_strbuf_t out;
  pestle_strbuf_init(ks->list.allocator, &out);
  const pestle_target_caps_t* caps = &ks->targets[0].caps;
  pestle_strbuf_append_c(&out, "summary\n");
  begin_line("target", &out);
  pestle_strbuf_appendf(
      &out,
      "%s%s%s: vectors of %" PRIu32 " bytes, %" PRIu32 " registers, L1 %" PRIu64
      " KiB, L2 %" PRIu64 " KiB, L3 %" PRIu64 " KiB\n",
      caps->name, caps->cpu[0] ? ", " : "", caps->cpu, caps->vector_bytes,
      caps->vector_registers, caps->l1_bytes >> 10, caps->l2_bytes >> 10,
      caps->l3_bytes >> 10);
  print_bounds(ks, &out);
  print_reasons(remarks, &out);
  pestle_status_t status = pestle_strbuf_status(&out);
  if (!status) send(ks, "summary", &out);
  pestle_strbuf_deinit(&out);
  return status;
}

pestle_status_t pestle_explain_refused(const pestle_kernels_t* kernels) {
  pestle_strbuf_t out;
  pestle_strbuf_init(kernels->list.allocator, &out);
  for (uint32_t i = 0; i < kernels->list.size; ++i) {
    const pestle_kernel_t* k = kernels->list.data[i];
    if (!k->device || k->explained) continue;
    if (!out.size) pestle_strbuf_append_c(&out, "refused\n");
    begin_line("fallback", &out);
    pestle_strbuf_appendf(&out, "'%s' runs kernel %" PRIu32 ", %s: %s\n",
                          kernels->targets[1].backend->name, i, k->name,
                          k->refused ? k->refused : "");
  }
  pestle_status_t status = pestle_strbuf_status(&out);
  if (!status && out.size) send(kernels, "refused", &out);
  pestle_strbuf_deinit(&out);
  return status;
}

pestle_status_t pestle_explain_kernels(const pestle_kernels_t* kernels,
                                       const pestle_remarks_t* remarks) {
  PESTLE_TRY(pestle_remarks_status(remarks));
  PESTLE_TRY(explain_layouts(kernels, remarks));
  PESTLE_TRY(explain_composites(kernels, remarks));
  pestle_arena_t arena;
  pestle_explain_index_t index;
  pestle_arena_init(kernels->list.allocator, &arena);
  pestle_map_init(kernels->list.allocator, &index.groups);
  bool made = pestle_explain_index_make(kernels, remarks, &arena, &index);
  pestle_status_t status = made ? NULL : PESTLE_OOM();
  for (uint32_t i = 0; i < kernels->list.size && !status; ++i)
    status = explain_kernel(kernels, &index, i);
  pestle_map_deinit(&index.groups);
  pestle_arena_deinit(&arena);
  return status ? status : explain_summary(kernels, remarks);
}
