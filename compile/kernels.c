// SPDX-License-Identifier: Apache-2.0
// The list of a plan's kernels: for which targets they are, and which ops of a
// function become one.
#include "compile/kernels.h"

#include "base/map.h"
#include "base/mem.h"
#include "codegen/direct/direct.h"
#include "codegen/lower/lower.h"
#include "compile/control.h"
#include "compile/kernel_build.h"
#include "compile/loop_trips.h"
#include "ir/custom_op.h"
#include "passes/fuse.h"
#include "passes/util.h"

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
    if (pestle_value_is_stored(operand)) continue;
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
  bool lanes = ks->targets[0].caps.flags & PESTLE_TARGET_LANES;
  PESTLE_TRY(pestle_lower_partition(ks->arena, fusion, lanes, &groups, &count));
  PESTLE_TRY(pestle_kernel_describe(ks, fusion, &ops));
  for (uint32_t g = 0; g < count; ++g) {
    PESTLE_TRY(pestle_kernel_add(ks, fusion, &groups[g], places, ops, NULL));
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
  if (node->op != PESTLE_OP_CUSTOM_CALL && pestle_direct_is_idle(node)) {
    return NULL;
  }
  PESTLE_TRY(pestle_kernel_describe(ks, node, &ops));
  return pestle_kernel_add(ks, node, NULL, places, ops, NULL);
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
      return pestle_pass_has_bodies(node) ||
             pestle_pass_info(node)->fuse == PESTLE_FUSE_COLLECTIVE;
  }
}

static pestle_status_t add_node(pestle_kernels_t* ks,
                                const pestle_memory_plan_t* memory,
                                const pestle_node_t* node) {
  bool text = pestle_is_text_call(node);
  if (!text && is_step_alone(node)) return NULL;
  bool direct = text || pestle_is_direct(node) || pestle_direct_whole_of(node);
  if (!direct && node->op != PESTLE_OP_FUSION) {
    return pestle_node_error(node, PESTLE_STATUS_INTERNAL,
                             "'%s' was left outside of every fusion",
                             pestle_op_info((pestle_op_t)node->op)->name);
  }
  if (makes_nothing(node)) return NULL;
  return direct ? add_direct(ks, memory, node) : add_fusion(ks, memory, node);
}

// --- Beside collectives ---

static bool reads_result(const pestle_memory_plan_t* memory,
                         const pestle_node_t* node,
                         const pestle_node_t* collective) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* operand = pestle_node_operand(node, i);
    for (uint32_t r = 0; r < collective->result_count; ++r) {
      if (pestle_memory_plan_at(memory, operand)->root ==
          pestle_memory_plan_at(memory, &collective->results[r])->root)
        return true;
    }
  }
  return false;
}

// How many nodes come behind |collective| before the one that waits for it, which reads a
// result or has bodies.
static uint32_t count_beside(const pestle_memory_plan_t* memory,
                             const pestle_node_t* collective) {
  uint32_t count = 0;
  for (const pestle_node_t* n = collective->next; n; n = n->next, ++count) {
    if (pestle_pass_has_bodies(n) ||
        (!pestle_fuse_is_view(n) && reads_result(memory, n, collective))) {
      break;
    }
  }
  return count;
}

static pestle_status_t add_block(pestle_kernels_t* ks,
                                 const pestle_memory_plan_t* memory,
                                 const pestle_block_t* block) {
  bool overlaps = ks->targets[0].caps.flags & PESTLE_TARGET_LANES;
  uint32_t beside = 0;  // nodes from here on
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    PESTLE_TRY(pestle_control_check(ks->options->control, "lower", 0, 0));
    ks->is_beside = beside > 0;
    beside -= beside > 0;
    if (overlaps && pestle_pass_is_collective(n)) {
      uint32_t count = count_beside(memory, n);
      if (beside < count) beside = count;
    }
    PESTLE_TRY(add_node(ks, memory, n));
    if (!pestle_pass_has_bodies(n)) continue;
    // Where trips are counted, nobody computes the condition.
    uint32_t first = pestle_loop_trips(n) ? 1 : 0;
    ++ks->depth;
    ks->is_beside = false;
    for (uint32_t r = first; r < n->region_count; ++r)
      PESTLE_TRY(add_block(ks, memory, pestle_node_body(n, r)));
    --ks->depth;
  }
  return NULL;
}

pestle_status_t pestle_kernels_make(pestle_kernels_t* kernels,
                                    const pestle_memory_plan_t* memory,
                                    const pestle_function_t* function) {
  PESTLE_TRY(add_block(kernels, memory, function->body->block));
  PESTLE_TRY(pestle_kernels_share(kernels));
  PESTLE_TRY(pestle_kernels_rate(kernels));
  for (size_t i = 0; i < kernels->list.size; ++i)
    PESTLE_TRY(pestle_kernel_dump(kernels, kernels->list.data[i]));
  return NULL;
}

pestle_status_t pestle_kernels_add_like(pestle_kernels_t* kernels,
                                        const pestle_kernel_t* like,
                                        const char* wanted) {
  kernels->is_beside = like->is_beside;
  return pestle_kernel_add(kernels, like->node, like->group, like->places,
                           like->ops, wanted);
}
