// SPDX-License-Identifier: Apache-2.0
// One kernel: lowered to a nest, scheduled as the lock or the sketches say, emitted
// flat, legalised for its target; again with less scratch, or for the fallback, where
// that does not do.
#include "compile/kernel_build.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "codegen/direct/direct.h"
#include "codegen/nest/nest_verify.h"
#include "codegen/schedule/schedule.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"
#include "compile/dump.h"
#include "compile/explain.h"
#include "compile/source.h"
#include "passes/util.h"
#include "pestle/plan_format.h"

// --- Its line of the lock ---

static const pestle_lockfile_line_t* find_line(const pestle_kernels_t* ks,
                                               const pestle_kernel_t* k) {
  if (!ks->lock || !k->key[0]) return NULL;
  pestle_lockfile_place_t place =
      pestle_kernels_place(ks->context, &ks->targets[0].caps);
  return pestle_lockfile_find(ks->lock, k->key, place.target, place.cpu,
                              place.threads);
}

// What |nest|, lowered, wants: what the tuner tries, else the lock's line.
static pestle_status_t set_wanted(const pestle_kernels_t* ks,
                                  pestle_nest_t* nest, uint32_t device,
                                  pestle_kernel_t* k) {
  k->key[0] = 0;
  if (!ks->lock || device) return NULL;
  nest->lists_options = true;
  PESTLE_TRY(pestle_nest_key(nest, (int)ks->options->numerics, k->key));
  const pestle_lockfile_line_t* line = find_line(ks, k);
  nest->wants_first = k->wanted != NULL;
  nest->wanted = k->wanted ? k->wanted : line ? line->chosen : NULL;
  return NULL;
}

// Keeps what there was to choose from, in the arena.
static pestle_status_t keep_choices(pestle_kernels_t* ks, pestle_nest_t* nest,
                                    pestle_kernel_t* k) {
  size_t count = nest->choices.size;
  k->open = pestle_choices_open(nest);
  k->stale = nest->stale;
  k->choice_count = 0;
  if (!ks->lock || !count) return NULL;
  k->choices = pestle_arena_copy(ks->arena, nest->choices.data,
                                 count * sizeof(pestle_choice_t),
                                 _Alignof(pestle_choice_t));
  if (!k->choices) return PESTLE_OOM();
  k->choice_count = count;
  return NULL;
}

// Notes that the lock has no line for |k|, or one that does not fit it.
static void note_missing(pestle_kernels_t* ks, const pestle_kernel_t* k) {
  if (!ks->lock || !k->open || k->wanted) return;
  bool found = find_line(ks, k) != NULL;
  if (found && !k->stale) return;
  if (found) {
    pestle_context_log(ks->context, PESTLE_LOG_WARN,
                       "kernel '%s': its line %s of the lock is of another "
                       "version and names choices that there are not; the "
                       "usual ones are taken",
                       k->name, k->key);
  }
  ++ks->missing_count;
  pestle_strbuf_appendf(&ks->missing, "%s'%s' (%s%s)",
                        ks->missing_count > 1 ? ", " : "", k->name,
                        found ? "does not fit: " : "", k->key);
}

// --- Names ---

static void dump(const pestle_kernels_t* ks, pestle_stage_t stage,
                 const char* name, const pestle_strbuf_t* text) {
  pestle_dump(ks->options, stage, name, pestle_strbuf_cstr(text), text->size);
}

// "add, tanh (node 'act1')": what a reader wants above a kernel.
static void describe(const pestle_node_t* node, pestle_strbuf_t* out) {
  if (node->op == PESTLE_OP_CUSTOM_CALL) {
    pestle_strbuf_append_c(out, PESTLE_NODE_STR(node, call_target_name));
    return;
  }
  if (pestle_is_direct(node)) {
    pestle_remark_describe(node, out);
    return;
  }
  const char* label = PESTLE_NODE_STR(node, label);
  if (label && label[0]) pestle_strbuf_appendf(out, "%s: ", label);
  uint32_t count = 0;
  for (pestle_node_t* n = pestle_node_body(node, 0)->first; n; n = n->next) {
    pestle_op_t op = (pestle_op_t)n->op;
    if (op == PESTLE_OP_RETURN || pestle_pass_is_stored(n)) continue;
    if (++count > 24) continue;
    if (count > 1) pestle_strbuf_append_c(out, ", ");
    pestle_remark_describe(n, out);
  }
  if (count > 24) pestle_strbuf_appendf(out, ", and %u more", count - 24);
}

static const char* base_name(const pestle_node_t* node) {
  if (node->op == PESTLE_OP_CUSTOM_CALL) return "own";
  if (pestle_is_direct(node)) {
    return pestle_op_info((pestle_op_t)node->op)->name;
  }
  const char* label = PESTLE_NODE_STR(node, label);
  if (label && label[0]) return label;
  for (pestle_node_t* n = pestle_node_body(node, 0)->first; n; n = n->next) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)n->op);
    pestle_fuse_class_t c = (pestle_fuse_class_t)info->fuse;
    if (c == PESTLE_FUSE_CONTRACTION || c == PESTLE_FUSE_REDUCTION ||
        c == PESTLE_FUSE_WINDOW) {
      return info->name;
    }
  }
  return "kernel";
}

static void make_name(const pestle_node_t* node, uint32_t index, char out[48]) {
  const char* base = base_name(node);
  char clean[32];
  size_t n = 0;
  for (; base[n] && n + 1 < sizeof(clean); ++n) {
    char c = base[n];
    bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9');
    clean[n] = ok ? c : '_';
  }
  clean[n] = 0;
  snprintf(out, 48, "%s_%u", clean, index);
}

static pestle_status_t bind_args(pestle_kernels_t* ks,
                                 const pestle_nest_t* nest,
                                 const pestle_node_t* fusion,
                                 const pestle_emitted_t* emitted,
                                 pestle_kernel_t* k) {
  k->arg_count = emitted->count;
  k->args =
      PESTLE_ARENA_ARRAY(ks->arena, pestle_kernel_arg_t, emitted->count + 1);
  if (!k->args) return PESTLE_OOM();
  for (uint32_t i = 0; i < emitted->count; ++i) {
    const pestle_nest_tensor_t* t = &nest->tensors.data[emitted->tensors[i]];
    pestle_kernel_arg_t* a = &k->args[i];
    *a = (pestle_kernel_arg_t){.slot = t->slot};
    a->kind = t->kind == PESTLE_TENSOR_OUTPUT ? PESTLE_ARG_RESULT
                                              : PESTLE_ARG_OPERAND;
    if (a->kind == PESTLE_ARG_RESULT) continue;
    if (t->elements) {
      a->elements = t->elements;
    } else if (t->constant &&
               !pestle_kernel_arg_store(
                   ks->arena, pestle_node_operand(fusion, t->slot), a)) {
      return PESTLE_OOM();
    }
    if (!a->elements) continue;
    a->kind = PESTLE_ARG_CONSTANT;
    // Of the nest, which does not last as long.
    a->pack = t->pack ? pestle_arena_copy(ks->arena, t->pack,
                                          t->pack_count * sizeof(*t->pack),
                                          _Alignof(pestle_pack_axis_t))
                      : NULL;
    if (t->pack && !a->pack) return PESTLE_OOM();
    a->pack_count = t->pack_count;
    a->pack_offset = t->pack_offset;
    a->packer = t->packer;
    a->packed_elements =
        t->packed_elements * (t->packed_width ? t->packed_width : 1);
  }
  return NULL;
}

static pestle_status_t dump_schedule(pestle_kernels_t* ks,
                                     const pestle_nest_t* nest) {
  if (!pestle_wants_dump(ks->options, PESTLE_STAGE_SCHEDULE)) return NULL;
  pestle_strbuf_t text;
  pestle_strbuf_init(ks->list.allocator, &text);
  pestle_str_t rest = pestle_str(nest->summary ? nest->summary : ""), line;
  while (pestle_str_next(&rest, '\n', &line)) {
    pestle_strbuf_appendf(&text, "// %.*s\n", (int)line.size, line.data);
  }
  pestle_status_t status = pestle_nest_print(nest, &text);
  if (!status) dump(ks, PESTLE_STAGE_SCHEDULE, nest->name, &text);
  pestle_strbuf_deinit(&text);
  return status;
}

// Emission trusts a scheduled nest, so each is checked: 2 % of what lowering takes.
static pestle_status_t verify_nest(const pestle_kernels_t* ks,
                                   pestle_nest_t* nest,
                                   pestle_nest_level_t level,
                                   const pestle_target_caps_t* caps) {
  bool check = ks->options->verify || level == PESTLE_NEST_SCHEDULED;
  return check ? pestle_nest_verify(nest, level, caps) : NULL;
}

// |text| with its long lines broken between words, for people.
static void append_wrapped(const char* text, pestle_strbuf_t* out) {
  enum { WIDTH = 92 };
  size_t column = 0;
  while (*text) {
    size_t size = strcspn(text, " \n");
    if (column && column + 1 + size > WIDTH) {
      pestle_strbuf_append_c(out, "\n   ");
      column = 3;
    }
    if (column) pestle_strbuf_append_char(out, ' ');
    pestle_strbuf_append_bytes(out, text, size);
    column += size + 1;
    text += size;
    if (*text == '\n') {
      pestle_strbuf_append_char(out, '\n');
      column = 0;
    }
    text += *text != 0;
  }
}

// Threads are worth waking, or not: a choice, though the runtime makes it, by
// the kernel's estimated time.
static void decide_threads(const pestle_kernels_t* ks, uint32_t device,
                           pestle_nest_t* nest, pestle_kernel_t* k) {
  enum { WAKING_NS = 2000 };  // one that may sleep, one that may spin
  const pestle_target_caps_t* caps = &ks->targets[device].caps;
  bool lanes = (caps->flags & PESTLE_TARGET_LANES) != 0;
  // A lock is for a number of threads, a plan without one is not.
  if (ks->lock && pestle_context_threads(ks->context) < 2) return;
  if (lanes || caps->cores < 2 || k->legal->view.group[0] < 2) return;
  uint64_t useful = k->work_ns / PESTLE_PLAN_NS_PER_THREAD;
  bool surely_one = k->work_ns * 16 < PESTLE_PLAN_NS_PER_THREAD;
  if (surely_one) return;
  // Between them the estimate has its say as it is.
  bool usual = useful >= 2;
  double one = (double)k->work_ns;
  pestle_option_t options[] = {{"one", one},
                               {"all", one / (double)caps->cores + WAKING_NS}};
  static const pestle_question_t q = {
      "threads", "the work of one over the cores, and 2 us to wake the others"};
  bool all = pestle_choose(nest, q, options, 2, usual) == 1;
  if (all == usual) return;
  k->work_ns = all ? (uint64_t)caps->cores * PESTLE_PLAN_NS_PER_THREAD : 1;
}

// |text| in the arena, once for all kernels that say it; NULL: out of memory.
static const char* keep_text(pestle_kernels_t* ks, const char* text) {
  uint64_t hash = pestle_hash64(text, strlen(text));
  const pestle_map_value_t* kept = pestle_map_find_u64(&ks->texts, hash);
  if (kept && !strcmp(kept->ptr, text)) return kept->ptr;
  char* copy = pestle_arena_strdup(ks->arena, text);
  return copy && pestle_map_set_u64_ptr(&ks->texts, hash, copy) ? copy : NULL;
}

// What the plan keeps to be shown: ops, choices, and the schedule's primitives.
static pestle_status_t keep_note(pestle_kernels_t* ks, pestle_nest_t* nest,
                                 pestle_kernel_t* k) {
  pestle_strbuf_t choices, note;
  pestle_strbuf_init(ks->list.allocator, &choices);
  pestle_strbuf_init(ks->list.allocator, &note);
  pestle_choices_print(nest, &choices);
  pestle_strbuf_appendf(&note, "%s\n%s\n", k->ops,
                        pestle_strbuf_cstr(&choices));
  pestle_schedule_print(nest, &note);
  k->chosen = keep_text(ks, pestle_strbuf_cstr(&choices));
  k->note = keep_text(ks, pestle_strbuf_cstr(&note));
  pestle_status_t status = pestle_strbuf_status(&note);
  if (!status) status = pestle_strbuf_status(&choices);
  if (!status && (!k->chosen || !k->note)) status = PESTLE_OOM();
  pestle_strbuf_deinit(&choices);
  pestle_strbuf_deinit(&note);
  return status;
}

// What is known of a kernel once its nest is scheduled and emitted.
static pestle_status_t conclude(pestle_kernels_t* ks, uint32_t device,
                                pestle_nest_t* nest, pestle_kernel_t* k) {
  k->device = device;
  PESTLE_TRY(pestle_kernel_measure(nest, k));
  k->estimate_ns = k->work_ns;
  decide_threads(ks, device, nest, k);
  PESTLE_TRY(pestle_nest_status(nest));
  PESTLE_TRY(keep_choices(ks, nest, k));
  return keep_note(ks, nest, k);
}

// Attempts at a schedule whose scratch fits: each but the last counts on half the
// L2 of the one before, the last keeps nothing in scratch.
enum { NO_SCRATCH_ATTEMPT = 3 };

// What lanes move at once.
enum { LANE_ALIGN = 16 };

uint32_t pestle_input_align(const pestle_target_caps_t* caps,
                            pestle_dtype_t dtype) {
  if (caps->device_type != PESTLE_DEVICE_CPU) return LANE_ALIGN;
  // Of a complex number those of its parts.
  bool complex = pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX);
  return (uint32_t)pestle_dtype_size(dtype) >> complex;
}

static void place_operands(const pestle_kernel_t* k, pestle_nest_t* nest) {
  for (uint32_t t = 0; k->places.aligns && t < nest->tensors.size; ++t) {
    pestle_nest_tensor_t* x = &nest->tensors.data[t];
    if (x->kind != PESTLE_TENSOR_INPUT || x->elements ||
        x->slot >= k->node->operand_count) {
      continue;
    }
    x->align = k->places.aligns[x->slot];
  }
}

static const pestle_kir_builder_t no_legal;

static pestle_status_t legalise(pestle_kernels_t* ks, uint32_t device,
                                const pestle_kir_t* flat, pestle_kernel_t* k) {
  pestle_allocator_t allocator = ks->list.allocator;
  pestle_kir_builder_t* legal = pestle_alloc(allocator, sizeof(*legal));
  if (!legal) return PESTLE_OOM();
  pestle_status_t status = pestle_kir_legalise_in(
      allocator, flat, &ks->targets[device].caps, ks->options->numerics, legal);
  if (status) {
    pestle_dealloc(allocator, legal, sizeof(*legal));
    return status;
  }
  pestle_kernel_drop_legal(k);
  k->legal = legal;
  k->owns_legal = true;
  return NULL;
}

// Lowers, schedules and emits for target |device|, into k->legal; what needs
// more scratch than the target has is made again with less.
static pestle_status_t build_group(pestle_kernels_t* ks, uint32_t device,
                                   uint32_t attempt, pestle_kernel_t* k) {
  const pestle_kernel_target_t* target = &ks->targets[device];
  bool no_scratch = attempt >= NO_SCRATCH_ATTEMPT;
  pestle_numerics_t numerics = ks->options->numerics;
  pestle_nest_t nest;
  pestle_kir_builder_t flat;
  pestle_emitted_t emitted;
  pestle_strbuf_t whole, full_note, why;
  bool explains = pestle_wants_dump(ks->options, PESTLE_STAGE_EXPLAIN);
  // The choices of a kernel that a lock is made from last as long as the kernel.
  pestle_arena_t* arena = ks->lock ? ks->arena : &ks->nests;
  pestle_arena_mark_t mark = pestle_arena_mark(&ks->nests);
  pestle_nest_init(ks->list.allocator, arena, k->name, &nest);
  pestle_strbuf_init(ks->list.allocator, &why);
  if (explains) nest.why = &why;
  nest.ops = k->ops;
  nest.no_scratch = no_scratch;
  nest.is_quick = ks->options->tier == PESTLE_TIER_QUICK;
  nest.is_fast = numerics == PESTLE_NUMERICS_FAST;
  nest.is_beside = k->is_beside;
  nest.halvings = no_scratch ? 0 : attempt;
  nest.by_phases = target->caps.flags & PESTLE_TARGET_LANES;
  pestle_strbuf_init(ks->list.allocator, &whole);
  pestle_strbuf_init(ks->list.allocator, &full_note);
  pestle_status_t status =
      pestle_lower_group(k->node, k->group, k->places.aliases, numerics, &nest);
  place_operands(k, &nest);
  if (!status) status = verify_nest(ks, &nest, PESTLE_NEST_LOWERED, NULL);
  if (!status) status = set_wanted(ks, &nest, device, k);
  if (!status) {
    status =
        pestle_sketch(&nest, &target->caps, numerics != PESTLE_NUMERICS_STRICT);
  }
  // Too much scratch is found below, and not a fault the first time.
  if (!status) {
    status = verify_nest(ks, &nest, PESTLE_NEST_SCHEDULED,
                         no_scratch ? &target->caps : NULL);
  }
  pestle_strbuf_appendf(&whole, "%s\n", k->ops);
  pestle_schedule_print(&nest, &whole);
  append_wrapped(pestle_strbuf_cstr(&whole), &full_note);
  pestle_strbuf_deinit(&whole);
  pestle_kir_init(ks->list.allocator, k->name, pestle_strbuf_cstr(&full_note),
                  &flat);
  if (!status) status = dump_schedule(ks, &nest);
  if (!status) status = pestle_emit_flat(&nest, numerics, &flat, &emitted);
  bool too_much = !status &&
                  flat.view.shared_bytes > target->caps.scratch_bytes &&
                  !no_scratch;
  if (!status && !too_much) {
    status = legalise(ks, device, &flat.view, k);
  }
  if (!status && !too_much) {
    status = conclude(ks, device, &nest, k);
    const pestle_lockfile_line_t* line = find_line(ks, k);
    pestle_choices_explain(&nest, line ? line->measured : NULL);
    if (explains) pestle_explain_note(ks, &why, k);
    if (!status) status = bind_args(ks, &nest, k->node, &emitted, k);
  }
  pestle_kir_deinit(&flat);
  pestle_strbuf_deinit(&full_note);
  pestle_strbuf_deinit(&why);
  pestle_nest_deinit(&nest);
  pestle_arena_rewind(&ks->nests, mark);
  if (!too_much) return status;
  // Lanes count on shared memory alone, which no share of an L2 makes less of.
  bool has_lanes = target->caps.max_group_lanes > 1;
  return build_group(ks, device, has_lanes ? NO_SCRATCH_ATTEMPT : attempt + 1,
                     k);
}

static uint64_t bytes_of_args(const pestle_node_t* node) {
  uint64_t bytes = 0;
  if (node->op == PESTLE_OP_DYNAMIC_UPDATE_SLICE) {
    // The window alone: what is around it is there, or copied by a step before.
    return 2 * pestle_type_bytes(pestle_node_operand(node, 1)->type);
  }
  for (uint32_t i = 0; i < node->operand_count; ++i)
    bytes += pestle_type_bytes(pestle_node_operand(node, i)->type);
  for (uint32_t i = 0; i < node->result_count; ++i)
    bytes += pestle_type_bytes(node->results[i].type);
  return bytes;
}

// Operands of which processes have a part each.
static pestle_status_t bind_parts(pestle_arena_t* arena, pestle_kernel_t* k) {
  for (uint32_t i = 0; i < k->arg_count; ++i) {
    if (k->args[i].kind != PESTLE_ARG_OPERAND) continue;
    const pestle_value_t* v = pestle_node_operand(k->node, k->args[i].slot);
    if (!pestle_kernel_arg_store(arena, v, &k->args[i])) return PESTLE_OOM();
  }
  return NULL;
}

// The same for a direct op, which has neither nest nor schedule.
static pestle_status_t build_direct(pestle_kernels_t* ks, uint32_t device,
                                    pestle_kernel_t* k) {
  pestle_numerics_t numerics = ks->options->numerics;
  pestle_kir_builder_t flat;
  pestle_kernel_arg_t args[PESTLE_KERNEL_MAX_ARGS];
  memset(args, 0, sizeof(args));
  pestle_kir_init(ks->list.allocator, k->name, k->ops, &flat);
  pestle_direct_t direct = {.node = k->node,
                            .k = &flat,
                            .caps = &ks->targets[device].caps,
                            .aligns = k->places.aligns,
                            .args = args};
  pestle_status_t status = pestle_direct_emit(&direct, numerics);
  if (!status) {
    status = legalise(ks, device, &flat.view, k);
  }
  pestle_kir_deinit(&flat);
  k->device = device;
  k->arg_count = direct.arg_count;
  k->args =
      pestle_arena_copy(ks->arena, args, direct.arg_count * sizeof(args[0]),
                        _Alignof(pestle_kernel_arg_t));
  if (!status) status = k->args ? bind_parts(ks->arena, k) : PESTLE_OOM();
  k->estimate_ns = k->work_ns = direct.steps / 4 + 1;
  k->flops = pestle_kernel_products(k->node);
  k->half_flops = k->byte_flops = 0;
  k->bytes = bytes_of_args(k->node);
  k->explain_ops = direct.steps;
  k->note = k->ops;
  k->chosen = "";
  k->explain_why = direct.how[0] ? pestle_arena_strdup(ks->arena, direct.how)
                                 : "none: the op writes its kernel itself\n";
  return status;
}

static pestle_status_t build_for(pestle_kernels_t* ks, uint32_t device,
                                 pestle_kernel_t* k) {
  if (k->group) return build_group(ks, device, 0, k);
  return k->node->op == PESTLE_OP_CUSTOM_CALL
             ? pestle_source_build(ks, device, k)
             : build_direct(ks, device, k);
}

bool pestle_kernel_is_refusal(const pestle_kernels_t* ks,
                              const pestle_kernel_t* k, pestle_status_t why) {
  return ks->has_fallback && !ks->strict && k->device == 0 &&
         pestle_status_code(why) == PESTLE_STATUS_UNSUPPORTED;
}

pestle_status_t pestle_kernel_say_strict(const pestle_kernels_t* ks,
                                         const pestle_kernel_t* k,
                                         pestle_status_t why) {
  bool is_strict = ks->has_fallback && ks->strict && k->device == 0 &&
                   pestle_status_code(why) == PESTLE_STATUS_UNSUPPORTED;
  if (!is_strict) return why;
  return pestle_status_annotate(
      why, "backend '%s' refuses it, and without strict it would go to '%s'",
      ks->targets[0].backend->name, ks->targets[1].backend->name);
}

// Builds |k| for the fallback; |why| stays the caller's.
static pestle_status_t fall_back(pestle_kernels_t* ks, pestle_kernel_t* k,
                                 pestle_status_t why) {
  pestle_context_log(ks->context, PESTLE_LOG_INFO,
                     "kernel '%s' (%s) falls back to '%s': %s", k->name, k->ops,
                     ks->targets[1].backend->name, pestle_status_message(why));
  k->refused = pestle_arena_strdup(ks->arena, pestle_status_message(why));
  return build_for(ks, 1, k);
}

pestle_status_t pestle_kernel_dump(const pestle_kernels_t* ks,
                                   const pestle_kernel_t* k) {
  if (k->source) return NULL;
  if (!pestle_wants_dump(ks->options, PESTLE_STAGE_KERNELS)) return NULL;
  pestle_strbuf_t text;
  pestle_strbuf_init(ks->list.allocator, &text);
  pestle_status_t status = pestle_kir_print(&k->legal->view, &text);
  if (!status) status = pestle_strbuf_status(&text);
  if (!status) dump(ks, PESTLE_STAGE_KERNELS, k->name, &text);
  pestle_strbuf_deinit(&text);
  return status;
}

// Microseconds a kernel: a broken one must not reach a code generator.
static pestle_status_t finish_kernel(pestle_kernels_t* ks, pestle_kernel_t* k,
                                     pestle_status_t status) {
  if (status) {
    return pestle_status_annotate(status, "making kernel '%s' of %s", k->name,
                                  k->ops);
  }
  if (k->source) return NULL;
  return pestle_kir_verify_in(ks->list.allocator, &k->legal->view);
}

void pestle_kernel_drop_legal(pestle_kernel_t* k) {
  if (k->owns_legal) {
    pestle_kir_builder_t* legal = (pestle_kir_builder_t*)k->legal;
    pestle_allocator_t allocator = legal->allocator;
    pestle_kir_deinit(legal);
    pestle_dealloc(allocator, legal, sizeof(*legal));
  }
  k->legal = &no_legal;
  k->owns_legal = false;
}

pestle_status_t pestle_kernel_replace(pestle_kernels_t* ks, pestle_kernel_t* k,
                                      pestle_status_t why) {
  pestle_kernel_drop_legal(k);
  PESTLE_TRY(finish_kernel(ks, k, fall_back(ks, k, why)));
  return pestle_kernel_dump(ks, k);
}

// A graph has a few kernels many times: each is kept once.
static pestle_status_t share_legal(pestle_kernels_t* ks, pestle_kernel_t* k) {
  const uint64_t key[3] = {k->legal->view.hash[0], k->legal->view.hash[1],
                           k->device};
  bool added;
  pestle_map_value_t* slot =
      pestle_map_put(&ks->same, key, sizeof(key), &added);
  if (!slot) return PESTLE_OOM();
  const pestle_kernel_t* first = added ? k : slot->ptr;
  // One that was refused has become another kernel since.
  bool is_same = first != k && first->device == k->device &&
                 !memcmp(first->legal->view.hash, key, 2 * sizeof(key[0]));
  if (!is_same) {
    slot->ptr = k;
    return NULL;
  }
  pestle_kernel_drop_legal(k);
  k->legal = first->legal;
  return NULL;
}

pestle_status_t pestle_kernel_add(pestle_kernels_t* ks,
                                  const pestle_node_t* node,
                                  const pestle_kernel_group_t* group,
                                  pestle_kernel_places_t places,
                                  const char* ops, const char* wanted) {
  pestle_kernel_t* k =
      pestle_alloc_zero(ks->list.allocator, sizeof(pestle_kernel_t));
  if (!k) return PESTLE_ERROR(OUT_OF_MEMORY, "making a kernel");
  if (!pestle_vec_push(&ks->list, k)) {
    pestle_dealloc(ks->list.allocator, k, sizeof(*k));
    return PESTLE_ERROR(OUT_OF_MEMORY, "making a kernel");
  }
  k->node = node;
  k->group = group;
  k->places = places;
  k->ops = ops;
  k->wanted = wanted;
  k->repeats = ks->depth > 0;
  k->is_beside = ks->is_beside;
  k->unique = (uint32_t)ks->list.size - 1;
  make_name(node, k->unique, k->name);
  k->legal = &no_legal;
  int64_t begin = pestle_context_trace_begin(ks->context);
  pestle_status_t status = build_for(ks, 0, k);
  if (status && pestle_kernel_is_refusal(ks, k, status)) {
    pestle_status_t why = status;
    status = fall_back(ks, k, why);
    pestle_status_release(why);
  }
  status = pestle_kernel_say_strict(ks, k, status);
  status = finish_kernel(ks, k, status);
  if (!status) status = share_legal(ks, k);
  if (!status) note_missing(ks, k);
  pestle_context_trace_end(ks->context, begin, "lower", k->name, ops);
  return status;
}

pestle_status_t pestle_kernel_describe(pestle_kernels_t* ks,
                                       const pestle_node_t* node,
                                       const char** out) {
  pestle_strbuf_t note;
  pestle_strbuf_init(ks->list.allocator, &note);
  describe(node, &note);
  pestle_status_t status = pestle_strbuf_status(&note);
  *out = keep_text(ks, pestle_strbuf_cstr(&note));
  if (!status && !*out) status = PESTLE_ERROR(OUT_OF_MEMORY, "making a kernel");
  pestle_strbuf_deinit(&note);
  return status;
}
