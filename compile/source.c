// SPDX-License-Identifier: Apache-2.0
// Kernels that a person wrote: of a text its threads, its signature and what is around it
// (source_text.c), of Kernel IR what is legal on the target.
#include "compile/source.h"

#include <string.h>

#include "base/custom_attrs.h"
#include "base/half.h"
#include "base/hash.h"
#include "base/mem.h"
#include "compile/source_grid.h"
#include "compile/source_internal.h"
#include "ir/custom_op.h"
#include "ir/infer.h"

enum { GROUP_LANES = 256, MOST_NAMES = 512, WIDTH = 4 };

static pestle_status_t check_names(const pestle_source_making_t* m) {
  const pestle_node_t* node = m->k->node;
  if (m->source->input_count == node->operand_count &&
      m->source->output_count == node->result_count &&
      pestle_source_tensors(node) <= 26 * 26) {
    return NULL;
  }
  return pestle_node_error(
      node, PESTLE_STATUS_INVALID_ARGUMENT,
      "the %s source of op '%s' names %zu inputs and %zu outputs, the op has "
      "%u and %u",
      m->source->language, m->op->name, m->source->input_count,
      m->source->output_count, node->operand_count, node->result_count);
}

// --- Threads ---

// What expressions may name.
static size_t list_names(const pestle_source_making_t* m,
                         pestle_grid_name_t* out) {
  size_t n = 0;
  for (uint32_t i = 0; i < pestle_source_tensors(m->k->node) && n < MOST_NAMES;
       ++i) {
    out[n++] = (pestle_grid_name_t){pestle_source_name(m, i),
                                    pestle_source_type(m->k->node, i), 0};
  }
  for (size_t i = 0; i < m->source->template_count && n < MOST_NAMES; ++i) {
    const pestle_source_template_t* t = &m->source->templates[i];
    if (!t->dtype) out[n++] = (pestle_grid_name_t){t->name, NULL, t->value};
  }
  for (size_t i = 0; i < m->attrs->count && n < MOST_NAMES; ++i) {
    const pestle_custom_attr_value_t* a = &m->attrs->values[i];
    if (a->kind != PESTLE_CUSTOM_I64) continue;
    out[n++] = (pestle_grid_name_t){a->name, NULL, a->as.i64};
  }
  return n;
}

// Whether each thread may take several elements of all tensors.
static bool takes_several(const pestle_source_making_t* m) {
  const pestle_source_t* s = m->source;
  const pestle_node_t* node = m->k->node;
  if (strcmp(s->language, "cuda") || !m->op->elementwise || s->whole ||
      s->has_init || s->shared_bytes || *s->grid[1] || *s->grid[2] ||
      *s->group[0] || m->in_place) {
    return false;
  }
  for (uint32_t i = 0; i < pestle_source_tensors(node); ++i) {
    const pestle_type_t* type = pestle_source_type(node, i);
    if (pestle_type_count(type) != m->grid[0] ||
        pestle_dtype_size(type->dtype) > sizeof(float)) {
      return false;
    }
  }
  return m->grid[0] >= WIDTH;
}

static pestle_status_t find_threads(pestle_source_making_t* m) {
  pestle_grid_name_t* names =
      PESTLE_ARENA_ARRAY(m->ks->arena, pestle_grid_name_t, MOST_NAMES);
  if (!names) return PESTLE_OOM();
  size_t count = list_names(m, names);
  const pestle_target_caps_t* caps = m->caps;
  int64_t lanes = 1, most = caps->max_group_lanes ? caps->max_group_lanes : 1;
  for (int a = 0; a < 3; ++a) {
    const char *grid = m->source->grid[a], *group = m->source->group[a];
    m->grid[a] = m->lane[a] = 1;
    if (*grid) {
      PESTLE_TRY(pestle_grid_evaluate(grid, names, count, &m->grid[a]));
    }
    if (*group) {
      PESTLE_TRY(pestle_grid_evaluate(group, names, count, &m->lane[a]));
    } else if (a == 0 && !*m->source->grid[1]) {
      m->lane[0] = most < GROUP_LANES ? most : GROUP_LANES;
    }
    if (m->lane[a] < 1) m->lane[a] = 1;
    lanes *= m->lane[a];
    if (a == 0) m->width = takes_several(m) ? WIDTH : 1;
    int64_t each = m->lane[a] * (a == 0 ? m->width : 1);
    m->groups[a] = (m->grid[a] + each - 1) / each;
    m->guarded = m->guarded || m->groups[a] * each != m->grid[a];
    uint32_t most_groups = caps->max_groups_axis[a];
    if (lanes > most || (most_groups && m->groups[a] > most_groups)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "a source of op '%s' has groups of %lld threads and "
                          "%lld groups along %c; '%s' has at most %lld and %u",
                          m->op->name, (long long)lanes,
                          (long long)m->groups[a], "xyz"[a], caps -> name,
                          (long long)most, most_groups);
    }
  }
  return NULL;
}

// --- The signature ---

static pestle_kir_builder_t* make_legal(pestle_source_making_t* m) {
  pestle_allocator_t allocator = m->ks->list.allocator;
  pestle_kir_builder_t* legal = pestle_alloc_zero(allocator, sizeof(*legal));
  if (!legal) return NULL;
  pestle_kir_init(allocator, m->k->name, m->k->ops, legal);
  m->k->legal = legal;
  m->k->owns_legal = true;
  return legal;
}

static pestle_status_t add_buffers(pestle_source_making_t* m,
                                   pestle_kir_builder_t* legal) {
  const pestle_node_t* node = m->k->node;
  for (uint32_t i = 0; i < pestle_source_tensors(node); ++i) {
    const pestle_type_t* type = pestle_source_type(node, i);
    char name[8];
    pestle_source_argument(i, name);
    uint32_t b = pestle_kir_add_buffer(
        legal, name, PESTLE_KIR_GLOBAL, type->dtype, 1, pestle_type_count(type),
        i < node->operand_count ? PESTLE_KIR_READONLY : 0);
    // Where a result may lie in an operand's place.
    if (m->in_place && !legal->failed) legal->buffer.data[b].alias_set = 1;
  }
  if (m->source->shared_bytes) {
    (void)pestle_kir_add_buffer(legal, "argShared", PESTLE_KIR_SHARED,
                                PESTLE_U8, 1, m->source->shared_bytes, 0);
  }
  PESTLE_TRY(pestle_kir_finish(legal));
  pestle_hasher_t h;
  pestle_hasher_init(&h);
  pestle_hasher_update_str(&h, pestle_strbuf_view(&m->text));
  pestle_hasher_update_str(&h, pestle_str(m->source->header));
  pestle_hasher_update_str(&h, pestle_str(m->source->flags));
  pestle_hasher_update_str(&h, pestle_str(m->source->entry));
  for (int a = 0; a < 3; ++a) {
    legal->view.group[a] = m->groups[a];
    legal->view.lane[a] = (uint32_t)m->lane[a];
    pestle_hasher_update_u64(&h, (uint64_t)m->groups[a]);
    pestle_hasher_update_u64(&h, (uint64_t)m->lane[a]);
  }
  pestle_hash128_t hash = pestle_hasher_finish(&h);
  legal->view.hash[0] ^= hash.low;
  legal->view.hash[1] ^= hash.high;
  return NULL;
}

// Arguments in slot order: operands, then results.
static pestle_status_t bind_args(pestle_source_making_t* m, uint32_t count) {
  pestle_kernel_t* k = m->k;
  const pestle_node_t* node = k->node;
  if (count != pestle_source_tensors(node) || count > PESTLE_KERNEL_MAX_ARGS) {
    return pestle_node_error(node, PESTLE_STATUS_INVALID_ARGUMENT,
                             "a kernel of op '%s' has %u arguments; the op has "
                             "%u operands and results, of at most %d",
                             m->op->name, count, pestle_source_tensors(node),
                             (int)PESTLE_KERNEL_MAX_ARGS);
  }
  k->arg_count = count;
  k->args = PESTLE_ARENA_ARRAY(m->ks->arena, pestle_kernel_arg_t, count + 1);
  if (!k->args) return PESTLE_OOM();
  memset(k->args, 0, (count + 1) * sizeof(*k->args));
  k->bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    bool result = i >= node->operand_count;
    k->args[i].kind = result ? PESTLE_ARG_RESULT : PESTLE_ARG_OPERAND;
    k->args[i].slot = result ? i - node->operand_count : i;
    k->bytes += pestle_type_bytes(pestle_source_type(node, i));
    if (result) continue;
    if (!pestle_kernel_arg_store(m->ks->arena, pestle_node_operand(node, i),
                                 &k->args[i])) {
      return PESTLE_OOM();
    }
  }
  k->work_ns = k->bytes / 4 + 1;  // what it computes is not known
  return NULL;
}

static pestle_status_t build_text(pestle_source_making_t* m) {
  m->language = pestle_source_find_language(m->source->language);
  if (!m->language) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "op '%s' has a source in '%.40s'; cuda, opencl, glsl, "
                        "metal and kir are known",
                        m->op->name, m->source->language);
  }
  PESTLE_TRY(check_names(m));
  PESTLE_TRY(find_threads(m));
  PESTLE_TRY(pestle_source_put_text(m));
  PESTLE_TRY(pestle_strbuf_status(&m->text));
  pestle_kir_builder_t* legal = make_legal(m);
  if (!legal) return PESTLE_OOM();
  PESTLE_TRY(add_buffers(m, legal));
  pestle_source_text_t* text =
      PESTLE_ARENA_NEW(m->ks->arena, pestle_source_text_t);
  char* body = pestle_arena_strdup(m->ks->arena, pestle_strbuf_cstr(&m->text));
  const char *head = pestle_source_head(m), *flags = pestle_source_flags(m);
  if (!text || !body || !head || !flags) return PESTLE_OOM();
  *text = (pestle_source_text_t){.struct_size = sizeof(*text),
                                 .head = head,
                                 .body = body,
                                 .entry = m->source->entry,
                                 .flags = flags,
                                 .whole = m->source->whole};
  m->k->source = text;
  return bind_args(m, legal->view.arg_count);
}

// --- Kernel IR ---

// That a kernel reads and writes within the tensors that it is given.
static pestle_status_t check_buffers(const pestle_source_making_t* m,
                                     const pestle_kir_t* kir) {
  const pestle_node_t* node = m->k->node;
  for (uint32_t b = 0; b < kir->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(kir, b);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    if (u->arg_slot >= pestle_source_tensors(node))
      continue;  // bind_args() says so
    const pestle_type_t* type = pestle_source_type(node, u->arg_slot);
    bool operand = u->arg_slot < node->operand_count;
    if (u->dtype == type->dtype &&
        u->count <= (uint64_t)pestle_type_count(type) &&
        (!operand || (u->flags & PESTLE_KIR_READONLY))) {
      continue;
    }
    return pestle_node_error(
        node, PESTLE_STATUS_INVALID_ARGUMENT,
        "buffer '%s' of a kernel of op '%s' has %llu elements of %s%s; the "
        "tensor is %s",
        pestle_kir_string(kir, u->name), m->op->name,
        (unsigned long long)u->count,
        pestle_dtype_info((pestle_dtype_t)u->dtype)->name,
        operand ? ", and an operand's must be readonly" : "",
        pestle_type_text(type).text);
  }
  return NULL;
}

static pestle_status_t legalise(pestle_source_making_t* m,
                                const pestle_kir_builder_t* flat) {
  pestle_allocator_t allocator = m->ks->list.allocator;
  PESTLE_TRY(check_buffers(m, &flat->view));
  pestle_kir_builder_t* legal = pestle_alloc_zero(allocator, sizeof(*legal));
  if (!legal) return PESTLE_OOM();
  pestle_status_t status = pestle_kir_legalise_in(
      allocator, &flat->view, m->caps, m->ks->options->numerics, legal);
  if (status) {
    pestle_dealloc(allocator, legal, sizeof(*legal));
    return status;
  }
  m->k->legal = legal;
  m->k->owns_legal = true;
  return bind_args(m, legal->view.arg_count);
}

// A defect of a kernel that a person wrote is not ours.
static pestle_status_t blame(const pestle_source_making_t* m,
                             pestle_status_t status) {
  if (pestle_status_code(status) != PESTLE_STATUS_INTERNAL) return status;
  pestle_status_t own =
      PESTLE_ERROR(INVALID_ARGUMENT, "a kernel of op '%s': %s", m->op->name,
                   pestle_status_message(status));
  pestle_status_release(status);
  return own;
}

static pestle_status_t build_kir(pestle_source_making_t* m, const char* text) {
  pestle_allocator_t allocator = m->ks->list.allocator;
  pestle_kir_builder_t flat;
  PESTLE_TRY(pestle_status_annotate(
      pestle_kir_parse(allocator, text, strlen(text), "kernel", &flat),
      "in a kernel of op '%s'", m->op->name));
  pestle_status_t status =
      blame(m, pestle_kir_verify_in(allocator, &flat.view));
  if (!status) status = legalise(m, &flat);
  pestle_kir_deinit(&flat);
  return status;
}

static pestle_status_t build_kernel(pestle_source_making_t* m,
                                    const pestle_kir_t* kernel) {
  PESTLE_TRY(pestle_kir_print(kernel, &m->text));
  PESTLE_TRY(pestle_strbuf_status(&m->text));
  return build_kir(m, pestle_strbuf_cstr(&m->text));
}

// --- Entry ---

static pestle_status_t build(pestle_source_making_t* m,
                             const pestle_custom_eval_t* eval) {
  const pestle_node_t* node = m->k->node;
  m->k->flops = m->k->half_flops = m->k->byte_flops = 0;
  m->k->note = m->k->ops;
  m->k->chosen = "";
  m->k->explain_why = "none: a person wrote the kernel\n";
  PESTLE_TRY(pestle_custom_attrs_of_text(
      m->ks->arena, m->op, PESTLE_NODE_STR(node, backend_dictionary),
      &m->attrs));
  if (eval->kind == PESTLE_EVAL_KERNEL_IR) return build_kernel(m, eval->kernel);
  return strcmp(m->source->language, "kir") ? build_text(m)
                                            : build_kir(m, m->source->body);
}

pestle_status_t pestle_source_build(pestle_kernels_t* ks, uint32_t device,
                                    pestle_kernel_t* k) {
  const pestle_custom_eval_t* eval;
  pestle_source_making_t m = {
      .ks = ks, .caps = &ks->targets[device].caps, .k = k};
  PESTLE_TRY(pestle_eval_call_find(k->node, &m.op, &eval));
  m.source = eval->source;
  m.in_place = eval->in_place;
  k->device = device;
  pestle_strbuf_init(ks->list.allocator, &m.text);
  pestle_status_t status = build(&m, eval);
  pestle_strbuf_deinit(&m.text);
  return status;
}

pestle_status_t pestle_source_initial(pestle_arena_t* arena,
                                      const pestle_node_t* node,
                                      uint32_t result,
                                      const pestle_elements_t** out_elements) {
  const pestle_custom_op_t* op;
  const pestle_custom_eval_t* eval;
  *out_elements = NULL;
  PESTLE_TRY(pestle_eval_call_find(node, &op, &eval));
  if (eval->kind != PESTLE_EVAL_SOURCE || !eval->source->has_init) return NULL;
  const pestle_type_t* type = node->results[result].type;
  size_t size = pestle_dtype_size(type->dtype);
  pestle_elements_t* e = PESTLE_ARENA_NEW(arena, pestle_elements_t);
  unsigned char* bytes = pestle_arena_alloc_zero(arena, 16, 16);
  if (!e || !bytes) return PESTLE_OOM();
  uint64_t bits =
      pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)
          ? pestle_float_encode(type->dtype, eval->source->init_value)
          : (uint64_t)(int64_t)eval->source->init_value;
  memcpy(bytes, &bits, size < 8 ? size : 8);
  *e = (pestle_elements_t){*type, bytes, size, true};
  *out_elements = e;
  return NULL;
}
