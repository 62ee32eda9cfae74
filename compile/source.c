// SPDX-License-Identifier: Apache-2.0
// The text of a kernel that a person wrote, around which the target declares its
// arguments as it does for its own:
//
//   y[i] = exp(x[i]);   ->   const long i = (long)get_global_id(0);
//                            __global const float* const x = argAA;
//                            ...
//                            #line 1
//                            y[i] = exp(x[i]);
//
// In CUDA a text of an op that treats each element by itself is written as a lambda, which a
// thread calls for four elements next to each other, that it loads and stores at once.
#include "compile/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/custom_attrs.h"
#include "base/half.h"
#include "base/hash.h"
#include "base/mem.h"
#include "compile/source_grid.h"
#include "ir/custom_op.h"
#include "ir/infer.h"

enum { GROUP_LANES = 256, MOST_NAMES = 512, WIDTH = 4 };

// --- Languages ---

typedef struct language_t {
  const char* name;
  // How a pointer is declared: const or nothing, type, name, argument. NULL: names
  // are macros, since GLSL has no pointers.
  const char* pointer;
  const char *array, *open, *close;  // of constants: type, name, count
  const char* index;                 // the number of a thread along x
  const char* types[PESTLE_PLUGIN_DTYPES];
} language_t;

#define TYPES(i8, u8, i16, u16, u32, i64, u64)                           \
  {[PESTLE_I8] = i8,       [PESTLE_U8] = u8,     [PESTLE_I16] = i16,     \
   [PESTLE_U16] = u16,     [PESTLE_I32] = "int", [PESTLE_U32] = u32,     \
   [PESTLE_I64] = i64,     [PESTLE_U64] = u64,   [PESTLE_F32] = "float", \
   [PESTLE_F64] = "double"}

static const language_t languages[] = {
    {"cuda", "%s%s* const %s = %s;\n", "const long long", "{", "}",
     "const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
     TYPES("signed char", "unsigned char", "short", "unsigned short",
           "unsigned int", "long long", "unsigned long long")},
    {"opencl", "__global %s%s* const %s = %s;\n", "const long", "{", "}",
     "const long i = (long)get_global_id(0);",
     TYPES("char", "uchar", "short", "ushort", "uint", "long", "ulong")},
    {"metal", "device %s%s* const %s = %s;\n", "const long", "{", "}",
     "const long i = (long)group_id.x * PESTLE_LANES_X + (long)lane_id.x;",
     TYPES("char", "uchar", "short", "ushort", "uint", "long", "ulong")},
    {"glsl", NULL, "const int", "int[](", ")",
     "const int i = int(gl_GlobalInvocationID.x);",
     TYPES("int8_t", "uint8_t", "int16_t", "uint16_t", "uint", "int64_t",
           "uint64_t")},
};

static const language_t* find_language(const char* name) {
  for (size_t i = 0; i < sizeof(languages) / sizeof(*languages); ++i) {
    if (!strcmp(languages[i].name, name)) return &languages[i];
  }
  return NULL;
}

// --- One kernel on its way ---

typedef struct making_t {
  pestle_kernels_t* ks;
  const pestle_target_caps_t* caps;
  pestle_kernel_t* k;
  const pestle_custom_op_t* op;
  const pestle_source_t* source;
  const language_t* language;
  const pestle_custom_attrs_t* attrs;
  int64_t grid[3], lane[3], groups[3];
  int64_t width;  // elements of a thread
  bool guarded;   // the last group has threads too many
  bool in_place;  // the eval's
  pestle_strbuf_t text;
} making_t;

static uint32_t tensor_count(const pestle_node_t* node) {
  return node->operand_count + node->result_count;
}

static const pestle_type_t* tensor_type(const pestle_node_t* node, uint32_t i) {
  return i < node->operand_count ? pestle_node_operand(node, i)->type
                                 : node->results[i - node->operand_count].type;
}

static const char* tensor_name(const making_t* m, uint32_t i) {
  const pestle_source_t* s = m->source;
  return i < s->input_count ? s->inputs[i] : s->outputs[i - s->input_count];
}

static pestle_status_t check_names(const making_t* m) {
  const pestle_node_t* node = m->k->node;
  if (m->source->input_count == node->operand_count &&
      m->source->output_count == node->result_count &&
      tensor_count(node) <= 26 * 26) {
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
static size_t list_names(const making_t* m, pestle_grid_name_t* out) {
  size_t n = 0;
  for (uint32_t i = 0; i < tensor_count(m->k->node) && n < MOST_NAMES; ++i) {
    out[n++] =
        (pestle_grid_name_t){tensor_name(m, i), tensor_type(m->k->node, i), 0};
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
static bool takes_several(const making_t* m) {
  const pestle_source_t* s = m->source;
  const pestle_node_t* node = m->k->node;
  if (strcmp(s->language, "cuda") || !m->op->elementwise || s->whole ||
      s->has_init || s->shared_bytes || *s->grid[1] || *s->grid[2] ||
      *s->group[0] || m->in_place) {
    return false;
  }
  for (uint32_t i = 0; i < tensor_count(node); ++i) {
    const pestle_type_t* type = tensor_type(node, i);
    if (pestle_type_count(type) != m->grid[0] ||
        pestle_dtype_size(type->dtype) > sizeof(float)) {
      return false;
    }
  }
  return m->grid[0] >= WIDTH;
}

static pestle_status_t find_threads(making_t* m) {
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

// --- Text ---

static void put(making_t* m, const char* format, ...) PESTLE_PRINTF(2, 3);
static void put(making_t* m, const char* format, ...) {
  va_list args;
  va_start(args, format);
  pestle_strbuf_appendf_v(&m->text, format, args);
  va_end(args);
}

// |count| integers as an array; one that is empty has a 1.
static void put_array(making_t* m, const char* name, const char* what,
                      const int64_t* values, size_t count) {
  put(m, "%s %s%s[%zu] = %s", m->language->array, name, what, count ? count : 1,
      m->language->open);
  for (size_t i = 0; i < count; ++i)
    put(m, i ? ", %lld" : "%lld", (long long)values[i]);
  put(m, "%s%s;\n", count ? "" : "1", m->language->close);
}

static void name_argument(uint32_t i, char out[8]) {
  (void)snprintf(out, 8, "arg%c%c", 'A' + (char)(i / 26), 'A' + (char)(i % 26));
}

// Elements that the language has no type for are their bits.
static const char* memory_type(const language_t* language,
                               pestle_dtype_t dtype) {
  const char* type =
      dtype < PESTLE_PLUGIN_DTYPES ? language->types[dtype] : NULL;
  if (type) return type;
  return language
      ->types[pestle_dtype_size(dtype) == 1 ? PESTLE_U8 : PESTLE_U16];
}

static void put_tensor(making_t* m, uint32_t i) {
  const pestle_type_t* type = tensor_type(m->k->node, i);
  const char* name = tensor_name(m, i);
  int64_t strides[PESTLE_MAX_RANK], step = 1;
  for (int32_t d = type->rank; d-- > 0; step *= type->dims[d])
    strides[d] = step;
  char argument[8];
  name_argument(i, argument);
  if (m->width > 1) {
    // A parameter of the lambda.
  } else if (m->language->pointer) {
    pestle_strbuf_appendf(&m->text, m->language->pointer,
                          i < m->k->node->operand_count ? "const " : "",
                          memory_type(m->language, type->dtype), name,
                          argument);
  } else {
    put(m, "#define %s %s.v\n", name, argument);
  }
  put(m, "#define %s_ndim %d\n#define %s_size %lld\n", name, (int)type->rank,
      name, (long long)pestle_type_count(type));
  put_array(m, name, "_shape", type->dims, (size_t)type->rank);
  put_array(m, name, "_strides", strides, (size_t)type->rank);
}

static bool computes_in_f64(const making_t* m) {
  return m->k->node->results[0].type->dtype == PESTLE_F64;
}

static void put_attr(making_t* m, const pestle_custom_attr_value_t* a) {
  switch ((pestle_custom_kind_t)a->kind) {
    case PESTLE_CUSTOM_BOOL:
      put(m, "#define %s %d\n", a->name, a->as.b);
      return;
    case PESTLE_CUSTOM_I64:
      put(m, "#define %s %lld\n", a->name, (long long)a->as.i64);
      return;
    case PESTLE_CUSTOM_F64:
      put(m, "#define %s (", a->name);
      if (computes_in_f64(m)) {
        pestle_strbuf_append_f64(&m->text, a->as.f64);
        put(m, strcmp(m->language->name, "glsl") ? ")\n" : "lf)\n");
      } else {
        pestle_strbuf_append_f32(&m->text, (float)a->as.f64);
        put(m, "f)\n");
      }
      return;
    case PESTLE_CUSTOM_I64S:
      put_array(m, a->name, "", a->as.i64s.data, a->as.i64s.count);
      return;
    case PESTLE_CUSTOM_STR:
    case PESTLE_CUSTOM_F64S:
      return;
  }
}

static pestle_status_t put_template(making_t* m,
                                    const pestle_source_template_t* t) {
  const char* type = NULL;
  if (t->dtype > 0 && t->dtype < (int32_t)PESTLE_PLUGIN_DTYPES) {
    type = m->language->types[t->dtype];
  }
  if (t->dtype && !type) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "template '%s' of op '%s' is %s, for which %s has no "
                        "type",
                        t->name, m->op->name,
                        pestle_dtype_info((pestle_dtype_t)t->dtype)->name,
                        m->language->name);
  }
  if (type) {
    put(m, "#define %s %s\n", t->name, type);
  } else {
    put(m, "#define %s %lld\n", t->name, (long long)t->value);
  }
  return NULL;
}

// What vector_head declares, of all arguments; |format| with a tensor's number, its type
// in memory and its argument.
static void put_each(making_t* m, const char* format, bool results_only) {
  for (uint32_t i = results_only ? m->k->node->operand_count : 0;
       i < tensor_count(m->k->node); ++i) {
    char argument[8];
    name_argument(i, argument);
    for (const char* c = format; *c; ++c) {
      if (*c == '#') {
        put(m, "%u", i);
      } else if (*c == '@') {
        put(m, "%s", argument);
      } else if (*c == '$') {
        put(m, "%s",
            memory_type(m->language, tensor_type(m->k->node, i)->dtype));
      } else {
        pestle_strbuf_append_char(&m->text, *c);
      }
    }
  }
}

// NVRTC takes a lambda for the host's but for this.
#define LAMBDA_FLAGS " -default-device"

static const char vector_head[] =
    "\ntemplate <class E> struct alignas(4 * sizeof(E)) pestle_four {\n"
    "  E v[4];\n};\n"
    "template <class E> struct pestle_part {\n"
    "  pestle_four<E> f;\n  long long at;\n"
    "  __device__ E& operator[](long long k) { return f.v[k - at]; }\n};\n";

// The body as a lambda, called for elements that were loaded at once where they lie so,
// else for one after the other.
static void put_several(making_t* m) {
  long long count = (long long)m->grid[0];
  put(m, "auto pestle_body = [&](");
  for (uint32_t i = 0; i < tensor_count(m->k->node); ++i)
    put(m, "auto&& %s, ", tensor_name(m, i));
  put(m, "const long long i) {\n#line 1\n%s\n;};\n", m->source->body);
  put(m,
      "const long long pestle_at = 4 * ((long long)blockIdx.x * "
      "blockDim.x + threadIdx.x);\n"
      "if (pestle_at + 4 <= %lld",
      count);
  put_each(m, " && (unsigned long long)@ % (4 * sizeof($)) == 0", false);
  put(m, ") {\n");
  put_each(m, "  pestle_part<$> part#;\n  part#.at = pestle_at;\n", false);
  for (uint32_t i = 0; i < m->k->node->operand_count; ++i) {
    char argument[8];
    name_argument(i, argument);
    put(m, "  part%u.f = *(const pestle_four<%s>*)(%s + pestle_at);\n", i,
        memory_type(m->language, tensor_type(m->k->node, i)->dtype), argument);
  }
  put(m, "  #pragma unroll\n  for (int j = 0; j < 4; ++j)\n    pestle_body(");
  put_each(m, "part#, ", false);
  put(m, "pestle_at + j);\n");
  put_each(m, "  *(pestle_four<$>*)(@ + pestle_at) = part#.f;\n", true);
  put(m,
      "} else {\n  for (long long i = pestle_at; i < pestle_at + 4 && i < "
      "%lld; ++i)\n    pestle_body(",
      count);
  put_each(m, "@, ", false);
  put(m, "i);\n}\n");
}

static pestle_status_t put_prologue(making_t* m) {
  const pestle_node_t* node = m->k->node;
  const char* type = m->language->types[node->results[0].type->dtype];
  if (m->width == 1 && !*m->source->grid[1]) {
    put(m, "#define PESTLE_LANES_X %lld\n%s\n", (long long)m->lane[0],
        m->language->index);
    if (m->guarded) put(m, "if (i >= %lld) return;\n", (long long)m->grid[0]);
  }
  for (uint32_t i = 0; i < tensor_count(node); ++i)
    put_tensor(m, i);
  if (type) put(m, "#define T %s\n", type);
  for (size_t i = 0; i < m->attrs->count; ++i)
    put_attr(m, &m->attrs->values[i]);
  for (size_t i = 0; i < m->source->template_count; ++i)
    PESTLE_TRY(put_template(m, &m->source->templates[i]));
  if (m->source->shared_bytes) put(m, "#define shared argShared\n");
  if (m->width > 1) {
    put_several(m);
  } else {
    put(m, "#line 1\n%s", m->source->body);
  }
  return NULL;
}

// --- The signature ---

static pestle_kir_builder_t* make_legal(making_t* m) {
  pestle_allocator_t allocator = m->ks->list.allocator;
  pestle_kir_builder_t* legal = pestle_alloc_zero(allocator, sizeof(*legal));
  if (!legal) return NULL;
  pestle_kir_init(allocator, m->k->name, m->k->ops, legal);
  m->k->legal = legal;
  m->k->owns_legal = true;
  return legal;
}

static pestle_status_t add_buffers(making_t* m, pestle_kir_builder_t* legal) {
  const pestle_node_t* node = m->k->node;
  for (uint32_t i = 0; i < tensor_count(node); ++i) {
    const pestle_type_t* type = tensor_type(node, i);
    char name[8];
    name_argument(i, name);
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
static pestle_status_t bind_args(making_t* m, uint32_t count) {
  pestle_kernel_t* k = m->k;
  const pestle_node_t* node = k->node;
  if (count != tensor_count(node) || count > PESTLE_KERNEL_MAX_ARGS) {
    return pestle_node_error(node, PESTLE_STATUS_INVALID_ARGUMENT,
                             "a kernel of op '%s' has %u arguments; the op has "
                             "%u operands and results, of at most %d",
                             m->op->name, count, tensor_count(node),
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
    k->bytes += pestle_type_bytes(tensor_type(node, i));
    if (result) continue;
    k->args[i].elements = pestle_value_constant(pestle_node_operand(node, i));
    if (k->args[i].elements) k->args[i].kind = PESTLE_ARG_CONSTANT;
  }
  k->work_ns = k->bytes / 4 + 1;  // what it computes is not known
  return NULL;
}

// |a| with |b| behind it; NULL: out of memory.
static const char* joined(making_t* m, const char* a, const char* b) {
  size_t n = strlen(a), more = strlen(b) + 1;
  char* text = PESTLE_ARENA_ARRAY(m->ks->arena, char, n + more);
  if (!text) return NULL;
  memcpy(text, a, n);
  memcpy(text + n, b, more);
  return text;
}

static pestle_status_t build_text(making_t* m) {
  m->language = find_language(m->source->language);
  if (!m->language) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "op '%s' has a source in '%.40s'; cuda, opencl, glsl, "
                        "metal and kir are known",
                        m->op->name, m->source->language);
  }
  PESTLE_TRY(check_names(m));
  PESTLE_TRY(find_threads(m));
  if (m->source->whole) {
    put(m, "%s", m->source->body);
  } else {
    PESTLE_TRY(put_prologue(m));
  }
  PESTLE_TRY(pestle_strbuf_status(&m->text));
  pestle_kir_builder_t* legal = make_legal(m);
  if (!legal) return PESTLE_OOM();
  PESTLE_TRY(add_buffers(m, legal));
  pestle_source_text_t* text =
      PESTLE_ARENA_NEW(m->ks->arena, pestle_source_text_t);
  char* body = pestle_arena_strdup(m->ks->arena, pestle_strbuf_cstr(&m->text));
  const char *head = m->source->header, *flags = m->source->flags;
  if (m->width > 1) {
    head = joined(m, head, vector_head);
    flags = joined(m, flags, *flags ? LAMBDA_FLAGS : &LAMBDA_FLAGS[1]);
  }
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
static pestle_status_t check_buffers(const making_t* m,
                                     const pestle_kir_t* kir) {
  const pestle_node_t* node = m->k->node;
  for (uint32_t b = 0; b < kir->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(kir, b);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    if (u->arg_slot >= tensor_count(node)) continue;  // bind_args() says so
    const pestle_type_t* type = tensor_type(node, u->arg_slot);
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

static pestle_status_t legalise(making_t* m, const pestle_kir_builder_t* flat) {
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
static pestle_status_t blame(const making_t* m, pestle_status_t status) {
  if (pestle_status_code(status) != PESTLE_STATUS_INTERNAL) return status;
  pestle_status_t own =
      PESTLE_ERROR(INVALID_ARGUMENT, "a kernel of op '%s': %s", m->op->name,
                   pestle_status_message(status));
  pestle_status_release(status);
  return own;
}

static pestle_status_t build_kir(making_t* m, const char* text) {
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

static pestle_status_t build_kernel(making_t* m, const pestle_kir_t* kernel) {
  PESTLE_TRY(pestle_kir_print(kernel, &m->text));
  PESTLE_TRY(pestle_strbuf_status(&m->text));
  return build_kir(m, pestle_strbuf_cstr(&m->text));
}

// --- Entry ---

static pestle_status_t build(making_t* m, const pestle_custom_eval_t* eval) {
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
  making_t m = {.ks = ks, .caps = &ks->targets[device].caps, .k = k};
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
