// SPDX-License-Identifier: Apache-2.0
#include "compile/kernels.h"

#include <stdatomic.h>
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
#include "compile/control.h"
#include "compile/dump.h"
#include "compile/explain.h"
#include "passes/util.h"
#include "pestle/plan_format.h"

// --- Targets ---

static pestle_status_t open_target(pestle_device_t* device, const char* cpu,
                                   pestle_kernel_target_t* out) {
  out->device = device;
  out->backend = pestle_device_backend(device);
  out->caps.struct_size = sizeof(out->caps);
  if (!out->backend->target) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "backend '%s' has no compiler: it can only run plans; "
                        "choose another device",
                        out->backend->name);
  }
  return pestle_device_caps(device, cpu, &out->caps);
}

pestle_status_t pestle_kernel_toolchain(const pestle_backend_t* backend,
                                        const char** out_text) {
  *out_text = NULL;
  PESTLE_TRY(backend->target->toolchain_id(backend->self, out_text));
  if (*out_text) return NULL;
  *out_text = "";
  return PESTLE_ERROR(
      INTERNAL,
      "backend '%s' says that toolchain_id() has succeeded, but "
      "it gave no text; mend the backend",
      backend->name);
}

static void init_empty(pestle_allocator_t allocator, pestle_arena_t* arena,
                       pestle_kernels_t* kernels) {
  kernels->arena = arena;
  pestle_arena_init(allocator, &kernels->nests);
  pestle_vec_init(&kernels->list, allocator);
  pestle_map_init(allocator, &kernels->same);
  pestle_map_init(allocator, &kernels->texts);
  pestle_strbuf_init(allocator, &kernels->missing);
}

void pestle_kernels_init_like(const pestle_kernels_t* like,
                              pestle_arena_t* arena,
                              pestle_kernels_t* out_kernels) {
  *out_kernels = *like;
  init_empty(like->list.allocator, arena, out_kernels);
}

pestle_status_t pestle_kernels_init(pestle_context_t* context,
                                    pestle_device_t* device,
                                    const pestle_compile_options_t* options,
                                    const pestle_lockfile_t* lock,
                                    pestle_arena_t* arena,
                                    pestle_kernels_t* out_kernels) {
  memset(out_kernels, 0, sizeof(*out_kernels));
  out_kernels->context = context;
  out_kernels->options = options;
  out_kernels->lock = lock;
  out_kernels->frozen = options->frozen;
  init_empty(pestle_context_allocator(context), arena, out_kernels);
  out_kernels->strict = pestle_context_is_strict(context);
  PESTLE_TRY(
      open_target(device, options->target_cpu, &out_kernels->targets[0]));
  pestle_device_t* fallback = NULL;
  PESTLE_TRY(pestle_context_fallback(context, device, &fallback));
  out_kernels->has_fallback = fallback != NULL;
  return fallback ? open_target(fallback, NULL, &out_kernels->targets[1])
                  : NULL;
}

void pestle_kernels_deinit(pestle_kernels_t* kernels) {
  pestle_allocator_t allocator = kernels->list.allocator;
  for (size_t i = 0; i < kernels->list.size; ++i) {
    pestle_kernel_t* k = kernels->list.data[i];
    pestle_kernel_drop_legal(k);
    pestle_free_aligned(allocator, k->code.data, k->code.size,
                        PESTLE_BUFFER_ALIGNMENT);
    pestle_status_release(k->status);
    pestle_dealloc(allocator, k, sizeof(*k));
  }
  pestle_vec_deinit(&kernels->list);
  pestle_strbuf_deinit(&kernels->missing);
  pestle_map_deinit(&kernels->same);
  pestle_map_deinit(&kernels->texts);
  pestle_arena_deinit(&kernels->nests);
}

// --- The lock ---

pestle_lockfile_place_t pestle_kernels_place(pestle_context_t* context,
                                             const pestle_target_caps_t* caps) {
  pestle_lockfile_place_t place = {.threads = pestle_context_threads(context)};
  pestle_lockfile_field(caps->name, place.target, sizeof(place.target));
  pestle_lockfile_field(caps->cpu, place.cpu, sizeof(place.cpu));
  return place;
}

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

pestle_status_t pestle_kernels_check_lockfile(const pestle_kernels_t* kernels) {
  if (!kernels->frozen || !kernels->missing_count) return NULL;
  PESTLE_TRY(pestle_strbuf_status(&kernels->missing));
  pestle_lockfile_place_t place =
      pestle_kernels_place(kernels->context, &kernels->targets[0].caps);
  return PESTLE_ERROR(
      NOT_FOUND,
      "the lock is frozen and lacks %zu kernels for %s %s with %d threads: %s; "
      "run with --tune SECONDS to add them, or leave out --frozen",
      kernels->missing_count, place.target, place.cpu, (int)place.threads,
      pestle_strbuf_cstr(&kernels->missing));
}

// --- One kernel ---

static void dump(const pestle_kernels_t* ks, pestle_stage_t stage,
                 const char* name, const pestle_strbuf_t* text) {
  pestle_dump(ks->options, stage, name, pestle_strbuf_cstr(text), text->size);
}

// "add, tanh (node 'act1')": what a reader wants above a kernel.
static void describe(const pestle_node_t* node, pestle_strbuf_t* out) {
  if (pestle_is_direct(node)) {
    pestle_remark_describe(node, out);
    return;
  }
  const char* label = PESTLE_NODE_STR(node, label);
  if (label && label[0]) pestle_strbuf_appendf(out, "%s: ", label);
  uint32_t count = 0;
  for (pestle_node_t* n = pestle_node_body(node, 0)->first; n; n = n->next) {
    pestle_op_t op = (pestle_op_t)n->op;
    if (op == PESTLE_OP_RETURN || op == PESTLE_OP_CONSTANT) continue;
    if (++count > 24) continue;
    if (count > 1) pestle_strbuf_append_c(out, ", ");
    pestle_remark_describe(n, out);
  }
  if (count > 24) pestle_strbuf_appendf(out, ", and %u more", count - 24);
}

static const char* base_name(const pestle_node_t* node) {
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
    } else if (t->constant) {
      a->elements = pestle_value_constant(pestle_node_operand(fusion, t->slot));
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
  nest.halvings = no_scratch ? 0 : attempt;
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
  if (!status && !k->args) status = PESTLE_OOM();
  k->work_ns = direct.steps / 4 + 1;
  k->flops = k->half_flops = k->byte_flops = 0;
  k->bytes = bytes_of_args(k->node);
  k->explain_ops = direct.steps;
  k->note = k->ops;
  k->chosen = "";
  k->explain_why = "none: the op writes its kernel itself\n";
  return status;
}

static pestle_status_t build_for(pestle_kernels_t* ks, uint32_t device,
                                 pestle_kernel_t* k) {
  return k->group ? build_group(ks, device, 0, k) : build_direct(ks, device, k);
}

// Whether what the target said of a kernel sends it to the fallback.
static bool is_refusal(const pestle_kernels_t* ks, const pestle_kernel_t* k,
                       pestle_status_t why) {
  return ks->has_fallback && !ks->strict && k->device == 0 &&
         pestle_status_code(why) == PESTLE_STATUS_UNSUPPORTED;
}

// A refusal that would have been none without strict says so.
static pestle_status_t say_strict(const pestle_kernels_t* ks,
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

static pestle_status_t dump_flat(pestle_kernels_t* ks,
                                 const pestle_kernel_t* k) {
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
  PESTLE_TRY(pestle_kir_verify_in(ks->list.allocator, &k->legal->view));
  return dump_flat(ks, k);
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

static pestle_status_t add_kernel(pestle_kernels_t* ks,
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
  k->unique = (uint32_t)ks->list.size - 1;
  make_name(node, k->unique, k->name);
  k->legal = &no_legal;
  int64_t begin = pestle_context_trace_begin(ks->context);
  pestle_status_t status = build_for(ks, 0, k);
  if (status && is_refusal(ks, k, status)) {
    pestle_status_t why = status;
    status = fall_back(ks, k, why);
    pestle_status_release(why);
  }
  status = say_strict(ks, k, status);
  status = finish_kernel(ks, k, status);
  if (!status) status = share_legal(ks, k);
  if (!status) note_missing(ks, k);
  pestle_context_trace_end(ks->context, begin, "lower", k->name, ops);
  return status;
}

// What |node| computes, as the arena's text.
static pestle_status_t note_of(pestle_kernels_t* ks, const pestle_node_t* node,
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

pestle_status_t pestle_kernels_add_like(pestle_kernels_t* kernels,
                                        const pestle_kernel_t* like,
                                        const char* wanted) {
  return add_kernel(kernels, like->node, like->group, like->places, like->ops,
                    wanted);
}

// --- The kernels of a function ---

// What the addresses of operands are multiples of, where their memory is not the
// plan's own. NULL: out of memory.
static const uint8_t* find_aligns(pestle_kernels_t* ks,
                                  const pestle_memory_plan_t* memory,
                                  const pestle_node_t* node) {
  uint8_t* aligns =
      pestle_arena_alloc_zero(ks->arena, node->operand_count + 1, 1);
  for (uint32_t o = 0; aligns && o < node->operand_count; ++o) {
    const pestle_value_t* operand = pestle_node_operand(node, o);
    if (pestle_value_constant(operand)) continue;
    uint8_t storage = pestle_memory_plan_at(memory, operand)->storage;
    if (storage != PESTLE_STORAGE_INPUT) continue;
    aligns[o] =
        (uint8_t)pestle_input_align(&ks->targets[0].caps, operand->type->dtype);
  }
  return aligns;
}

static pestle_status_t add_fusion(pestle_kernels_t* ks,
                                  const pestle_memory_plan_t* memory,
                                  const pestle_node_t* fusion) {
  pestle_kernel_group_t* groups;
  uint32_t count;
  const char* ops;
  bool any;
  int32_t* aliases =
      PESTLE_ARENA_ARRAY(ks->arena, int32_t, fusion->result_count + 1);
  pestle_kernel_places_t places = {aliases, find_aligns(ks, memory, fusion)};
  if (!aliases || !places.aligns) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "making a kernel");
  }
  PESTLE_TRY(pestle_memory_plan_aliases(memory, fusion, aliases, &any));
  PESTLE_TRY(pestle_lower_partition(ks->arena, fusion, &groups, &count));
  PESTLE_TRY(note_of(ks, fusion, &ops));
  for (uint32_t g = 0; g < count; ++g) {
    PESTLE_TRY(add_kernel(ks, fusion, &groups[g], places, ops, NULL));
  }
  if (any && count > 1) {
    return pestle_node_error(fusion, PESTLE_STATUS_INTERNAL,
                             "the memory plan puts a result of several "
                             "kernels in place of an operand");
  }
  return NULL;
}

static pestle_status_t add_direct(pestle_kernels_t* ks,
                                  const pestle_memory_plan_t* memory,
                                  const pestle_node_t* node) {
  const char* ops;
  pestle_kernel_places_t places = {.aligns = find_aligns(ks, memory, node)};
  if (!places.aligns) return PESTLE_ERROR(OUT_OF_MEMORY, "making a kernel");
  if (pestle_direct_is_idle(node)) return NULL;
  PESTLE_TRY(note_of(ks, node, &ops));
  return add_kernel(ks, node, NULL, places, ops, NULL);
}

static bool makes_nothing(const pestle_node_t* node) {
  for (uint32_t r = 0; r < node->result_count; ++r) {
    if (pestle_type_count(node->results[r].type) > 0) return false;
  }
  return true;
}

// What steps do without a kernel.
static bool is_step_alone(const pestle_node_t* node) {
  switch ((int)node->op) {
    case PESTLE_OP_CONSTANT:
    case PESTLE_OP_RETURN:
    case PESTLE_OP_CUSTOM_CALL:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_BITCAST_CONVERT:
    case PESTLE_OP_OPTIMIZATION_BARRIER:
      return true;
    default:
      return pestle_pass_has_bodies(node);
  }
}

static pestle_status_t add_node(pestle_kernels_t* ks,
                                const pestle_memory_plan_t* memory,
                                const pestle_node_t* node) {
  if (is_step_alone(node)) return NULL;
  bool direct = pestle_is_direct(node);
  if (!direct && node->op != PESTLE_OP_FUSION) {
    return pestle_node_error(node, PESTLE_STATUS_INTERNAL,
                             "'%s' was left outside of every fusion",
                             pestle_op_info((pestle_op_t)node->op)->name);
  }
  if (makes_nothing(node)) return NULL;
  return direct ? add_direct(ks, memory, node) : add_fusion(ks, memory, node);
}

static pestle_status_t add_block(pestle_kernels_t* ks,
                                 const pestle_memory_plan_t* memory,
                                 const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    PESTLE_TRY(pestle_control_check(ks->options->control, "lower", 0, 0));
    PESTLE_TRY(add_node(ks, memory, n));
    if (!pestle_pass_has_bodies(n)) continue;
    for (uint32_t r = 0; r < n->region_count; ++r)
      PESTLE_TRY(add_block(ks, memory, pestle_node_body(n, r)));
  }
  return NULL;
}

pestle_status_t pestle_kernels_make(pestle_kernels_t* kernels,
                                    const pestle_memory_plan_t* memory,
                                    const pestle_function_t* function) {
  return add_block(kernels, memory, function->body->block);
}

// --- Compilation ---

static void compile_one(pestle_kernels_t* ks, pestle_kernel_t* k) {
  const pestle_kernel_target_t* t = &ks->targets[k->device];
  pestle_kernel_options_t options = {
      .struct_size = sizeof(options),
      .cpu = k->device == 0 ? ks->options->target_cpu : NULL,
      .strict = ks->options->numerics == PESTLE_NUMERICS_STRICT};
  pestle_blob_t code = {0};
  k->status = t->backend->target->compile(t->backend->self, &k->legal->view,
                                          &options, &code);
  if (!k->status && (!code.data || !code.size)) {
    k->status = PESTLE_ERROR(INTERNAL,
                             "backend '%s' says that compile() has succeeded, "
                             "but it gave no artifact; mend the backend",
                             t->backend->name);
  }
  if (k->status) {
    k->status =
        pestle_status_annotate(k->status, "compiling kernel '%s'", k->name);
    return;
  }
  k->code = code;
  k->compiled = true;
}

typedef struct batch_t {
  pestle_kernels_t* ks;
  uint32_t* order;
  atomic_int stopped;
} batch_t;

static void compile_task(void* arg, int64_t index) {
  batch_t* b = arg;
  pestle_kernel_t* k = b->ks->list.data[b->order[index]];
  const pestle_control_t* control = b->ks->options->control;
  if (atomic_load(&b->stopped)) return;
  if (pestle_control_is_cancelled(control)) {
    atomic_store(&b->stopped, 1);
    return;
  }
  int64_t begin = pestle_context_trace_begin(b->ks->context);
  compile_one(b->ks, k);
  pestle_context_trace_end(b->ks->context, begin, "compile", k->name, k->ops);
  if (k->status && !is_refusal(b->ks, k, k->status)) {
    atomic_store(&b->stopped, 1);
  }
}

// Lists in |order| those whose code is still to be made.
static pestle_status_t find_unique(pestle_kernels_t* ks, uint32_t* order,
                                   uint32_t* out_count) {
  pestle_map_t seen;
  pestle_map_init(ks->list.allocator, &seen);
  pestle_status_t status = NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; i < ks->list.size && !status; ++i) {
    pestle_kernel_t* k = ks->list.data[i];
    uint64_t key[3] = {k->legal->view.hash[0], k->legal->view.hash[1],
                       k->device};
    bool added = false;
    pestle_map_value_t* v = pestle_map_put(&seen, key, sizeof(key), &added);
    if (!v) {
      status = PESTLE_ERROR(OUT_OF_MEMORY, "comparing kernels");
    } else {
      if (added) v->u64 = i;
      if (added && !k->compiled) order[n++] = i;
      k->unique = (uint32_t)v->u64;
    }
  }
  pestle_map_deinit(&seen);
  *out_count = n;
  return status;
}

static pestle_status_t dump_text(pestle_kernels_t* ks, const pestle_kernel_t* k,
                                 pestle_stage_t stage, pestle_text_t kind) {
  if (!pestle_wants_dump(ks->options, stage)) return NULL;
  const pestle_kernel_target_t* t = &ks->targets[k->device];
  if (!PESTLE_HAS(t->backend->target, print)) return NULL;
  pestle_kernel_options_t options = {
      .struct_size = sizeof(options),
      .cpu = k->device == 0 ? ks->options->target_cpu : NULL,
      .strict = ks->options->numerics == PESTLE_NUMERICS_STRICT};
  pestle_blob_t text = {0};
  pestle_status_t status = t->backend->target->print(
      t->backend->self, &k->legal->view, &options, kind, &text);
  if (pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED) {
    pestle_status_release(status);
    return NULL;
  }
  PESTLE_TRY(status);
  if (!text.data) text.size = 0;
  pestle_dump(ks->options, stage, k->name, text.data ? text.data : "",
              text.size);
  pestle_free_aligned(ks->list.allocator, text.data, text.size,
                      PESTLE_BUFFER_ALIGNMENT);
  return NULL;
}

static pestle_status_t dump_code(pestle_kernels_t* ks) {
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    const pestle_kernel_t* k = ks->list.data[i];
    if (k->unique != i) continue;
    PESTLE_TRY(dump_text(ks, k, PESTLE_STAGE_SOURCE, PESTLE_TEXT_SOURCE));
    PESTLE_TRY(dump_text(ks, k, PESTLE_STAGE_ASM, PESTLE_TEXT_ASM));
  }
  return NULL;
}

// Compiles |count| kernels of |order|; a refusal is left in its kernel.
static pestle_status_t compile_all(pestle_kernels_t* ks, uint32_t* order,
                                   uint32_t count) {
  const pestle_control_t* control = ks->options->control;
  batch_t batch = {.ks = ks, .order = order};
  // In slices, so that progress is seen and a deadline is kept.
  enum { SLICE = 16 };
  for (uint32_t done = 0; done < count; done += SLICE) {
    PESTLE_TRY(pestle_control_check(control, "compile", done, count));
    uint32_t slice = count - done < SLICE ? count - done : SLICE;
    batch.order = order + done;
    pestle_context_parallel_for(ks->context, slice, compile_task, &batch);
    for (uint32_t i = done; i < done + slice; ++i) {
      pestle_kernel_t* k = ks->list.data[order[i]];
      if (k->status && !is_refusal(ks, k, k->status)) {
        pestle_status_t status = k->status;
        k->status = NULL;
        return say_strict(ks, k, status);
      }
    }
    // The flag may have been lowered again; kernels were skipped all the same.
    if (atomic_load(&batch.stopped)) {
      return PESTLE_ERROR(CANCELLED, "cancelled by the caller during compile");
    }
  }
  return pestle_control_check(control, "compile", count, count);
}

// Builds for the fallback what was refused, and what has the same code.
static pestle_status_t replace_refused(pestle_kernels_t* ks, bool* out_any) {
  *out_any = false;
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    pestle_kernel_t* k = ks->list.data[i];
    pestle_status_t why = ks->list.data[k->unique]->status;
    if (!why) continue;
    pestle_kernel_drop_legal(k);
    PESTLE_TRY(finish_kernel(ks, k, fall_back(ks, k, why)));
    *out_any = true;
  }
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    pestle_status_release(ks->list.data[i]->status);
    ks->list.data[i]->status = NULL;
  }
  return NULL;
}

pestle_status_t pestle_kernels_compile(pestle_kernels_t* kernels) {
  size_t n = kernels->list.size;
  uint32_t* order = PESTLE_ARENA_ARRAY(kernels->arena, uint32_t, n ? n : 1);
  if (!order) return PESTLE_ERROR(OUT_OF_MEMORY, "compiling kernels");
  // The second round is what the first refused, and refuses nothing.
  bool again = true;
  while (again) {
    uint32_t count;
    PESTLE_TRY(find_unique(kernels, order, &count));
    PESTLE_TRY(compile_all(kernels, order, count));
    PESTLE_TRY(replace_refused(kernels, &again));
  }
  return dump_code(kernels);
}
