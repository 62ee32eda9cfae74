// SPDX-License-Identifier: Apache-2.0
#include "compile/explain.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "codegen/direct/direct.h"
#include "compile/dump.h"

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

static uint32_t first_kernel(const pestle_kernels_t* ks,
                             const pestle_node_t* fusion) {
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    if (ks->list.data[i]->node == fusion) return i;
  }
  return UINT32_MAX;
}

// Lines under one label: the label, then as much space.
static void begin_line(const char* label, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, "  %-9s ", label);
}

static bool is_shown(const pestle_node_t* n) {
  return n->op != PESTLE_OP_RETURN && n->op != PESTLE_OP_CONSTANT;
}

static bool same_source(const pestle_node_t* a, const pestle_node_t* b) {
  const char *x = a->loc.name, *y = b->loc.name;
  return x == y || (x && y && !strcmp(x, y));
}

// "convolution [Conv_0]; add, tanh [Act_1]": ops of one node of the source
// together.
static void print_ops(const pestle_kernel_t* k, pestle_strbuf_t* out) {
  const pestle_node_t* last = NULL;
  begin_line("ops", out);
  if (pestle_is_direct(k->node)) {
    pestle_strbuf_appendf(out, "%s\n", k->ops);
    return;
  }
  for (const pestle_node_t* n = pestle_node_body(k->node, 0)->first; n;
       n = n->next) {
    if (!is_shown(n)) continue;
    bool ends = last && !same_source(last, n);
    if (ends && last->loc.name) {
      pestle_strbuf_appendf(out, " [%s]", last->loc.name);
    }
    if (last) pestle_strbuf_append_c(out, ends ? "; " : ", ");
    pestle_strbuf_append_c(out, pestle_op_info((pestle_op_t)n->op)->name);
    last = n;
  }
  if (last && last->loc.name) {
    pestle_strbuf_appendf(out, " [%s]", last->loc.name);
  }
  pestle_strbuf_append_char(out, '\n');
}

static void print_parts(const pestle_kernels_t* ks, const pestle_kernel_t* k,
                        pestle_strbuf_t* out) {
  uint32_t parts = 0, number = 0;
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    if (ks->list.data[i]->node != k->node) continue;
    ++parts;
    if (ks->list.data[i] == k) number = parts;
  }
  if (parts == 1) return;
  begin_line("part", out);
  pestle_strbuf_appendf(out,
                        "%" PRIu32 " of %" PRIu32
                        " kernels of these ops: results that need loops of "
                        "their own\n",
                        number, parts);
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

static void print_reads(const pestle_kernels_t* ks, const pestle_kernel_t* k,
                        const pestle_remarks_t* remarks, pestle_strbuf_t* out) {
  for (size_t i = 0; i < remarks->list.size; ++i) {
    const pestle_remark_t* r = &remarks->list.data[i];
    if (!r->from || r->kernel != k->node || !reads_from(k, r->from)) continue;
    begin_line("reads", out);
    pestle_strbuf_append_c(out, r->what);
    uint32_t from = first_kernel(ks, r->from);
    // One without elements has no kernel.
    if (from != UINT32_MAX) {
      pestle_strbuf_appendf(out, " from kernel %" PRIu32, from);
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
  int64_t groups = k->legal.view.group[0];
  begin_line("threads", out);
  if (groups <= 1) {
    pestle_strbuf_append_c(out, "one: the group loop has one step\n");
    return;
  }
  pestle_strbuf_appendf(
      out, "share %" PRId64 " steps of the group loop, about %.1f us of work\n",
      groups, (double)k->work_ns * 1e-3);
}

static void print_twin(const pestle_kernels_t* ks, uint32_t index,
                       pestle_strbuf_t* out) {
  const uint64_t* hash = ks->list.data[index]->legal.view.hash;
  for (uint32_t i = 0; i < index; ++i) {
    const pestle_kernel_t* k = ks->list.data[i];
    if (k->device != ks->list.data[index]->device ||
        memcmp(k->legal.view.hash, hash, 2 * sizeof(*hash)) != 0) {
      continue;
    }
    begin_line("code", out);
    pestle_strbuf_appendf(out, "that of kernel %" PRIu32 ", compiled once\n",
                          i);
    return;
  }
}

static pestle_status_t explain_kernel(const pestle_kernels_t* ks,
                                      const pestle_remarks_t* remarks,
                                      uint32_t index) {
  pestle_kernel_t* k = ks->list.data[index];
  if (!k->explain_why) return PESTLE_OOM();
  k->explained = k->device != 0;
  pestle_strbuf_t out;
  pestle_strbuf_init(ks->list.allocator, &out);
  pestle_strbuf_appendf(&out, "kernel %" PRIu32 ": %s\n", index, k->name);
  print_ops(k, &out);
  print_parts(ks, k, &out);
  if (k->device) {
    begin_line("fallback", &out);
    pestle_strbuf_appendf(&out, "'%s' runs it: %s\n",
                          ks->targets[1].backend->name,
                          k->refused ? k->refused : "");
  }
  print_reads(ks, k, remarks, &out);
  print_lines("schedule", k->explain_why, &out);
  print_cost(ks, k, &out);
  print_groups(k, &out);
  print_twin(ks, index, &out);
  pestle_status_t status = pestle_strbuf_status(&out);
  if (!status) send(ks, k->name, &out);
  pestle_strbuf_deinit(&out);
  return status;
}

// --- Remarks about the module, equal ones together ---

static bool is_told(const pestle_remarks_t* remarks, size_t index) {
  const pestle_remark_t* r = &remarks->list.data[index];
  for (size_t i = 0; i < index; ++i) {
    const pestle_remark_t* other = &remarks->list.data[i];
    if (!other->from && !strcmp(other->text, r->text)) return true;
  }
  return false;
}

// Whether the pass recognise left |remark|: the others are about layouts.
static bool is_of_composites(const pestle_remark_t* remark) {
  return !strcmp(remark->pass, "recognise");
}

static void print_together(const pestle_remarks_t* remarks, size_t first,
                           pestle_strbuf_t* out) {
  const pestle_remark_t* r = &remarks->list.data[first];
  size_t count = 0;
  pestle_strbuf_append_c(out, "  ");
  for (size_t i = first; i < remarks->list.size; ++i) {
    const pestle_remark_t* other = &remarks->list.data[i];
    if (other->from || strcmp(other->text, r->text) != 0) continue;
    if (++count > SHOWN) continue;
    pestle_strbuf_appendf(out, "%s%s", count > 1 ? ", " : "", other->what);
  }
  if (count > SHOWN) {
    pestle_strbuf_appendf(out, " and %zu more", count - SHOWN);
  }
  pestle_strbuf_appendf(out, count > 1 ? ": each %s\n" : ": %s\n", r->text);
}

static size_t print_module_remarks(const pestle_remarks_t* remarks,
                                   bool composites, pestle_strbuf_t* out) {
  size_t told = 0;
  for (size_t i = 0; i < remarks->list.size; ++i) {
    const pestle_remark_t* r = &remarks->list.data[i];
    if (r->from || is_of_composites(r) != composites || is_told(remarks, i)) {
      continue;
    }
    print_together(remarks, i, out);
    ++told;
  }
  return told;
}

// What looks like a composite with a kernel of its own, and is none; nothing is printed
// where there is nothing of the kind.
static pestle_status_t explain_composites(const pestle_kernels_t* ks,
                                          const pestle_remarks_t* remarks) {
  pestle_strbuf_t out;
  pestle_strbuf_init(ks->list.allocator, &out);
  pestle_strbuf_append_c(&out, "no attention: two products and a softmax\n");
  size_t told = print_module_remarks(remarks, true, &out);
  pestle_status_t status = pestle_strbuf_status(&out);
  if (!status && told) send(ks, "composites", &out);
  pestle_strbuf_deinit(&out);
  return status;
}

static pestle_status_t explain_layouts(const pestle_kernels_t* ks,
                                       const pestle_remarks_t* remarks) {
  pestle_strbuf_t out;
  pestle_strbuf_init(ks->list.allocator, &out);
  pestle_strbuf_append_c(&out, "layouts\n");
  if (!print_module_remarks(remarks, false, &out)) {
    pestle_strbuf_append_c(&out,
                           "  nothing was turned: no convolution or "
                           "contraction lies another way than its kernels "
                           "want\n");
  }
  pestle_status_t status = pestle_strbuf_status(&out);
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
  for (uint32_t i = 0; i < kernels->list.size; ++i) {
    PESTLE_TRY(explain_kernel(kernels, remarks, i));
  }
  return explain_summary(kernels, remarks);
}
