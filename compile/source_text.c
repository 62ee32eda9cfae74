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
#include <stdarg.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "compile/source_internal.h"

// --- Languages ---

struct pestle_source_language_t {
  const char* name;
  // How a pointer is declared: const or nothing, type, name, argument. NULL: names
  // are macros, since GLSL has no pointers.
  const char* pointer;
  const char *array, *open, *close;  // of constants: type, name, count
  const char* index;                 // the number of a thread along x
  const char* types[PESTLE_PLUGIN_DTYPES];
};

#define TYPES(i8, u8, i16, u16, u32, i64, u64)                           \
  {[PESTLE_I8] = i8,       [PESTLE_U8] = u8,     [PESTLE_I16] = i16,     \
   [PESTLE_U16] = u16,     [PESTLE_I32] = "int", [PESTLE_U32] = u32,     \
   [PESTLE_I64] = i64,     [PESTLE_U64] = u64,   [PESTLE_F32] = "float", \
   [PESTLE_F64] = "double"}

static const pestle_source_language_t languages[] = {
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

const pestle_source_language_t* pestle_source_find_language(const char* name) {
  for (size_t i = 0; i < sizeof(languages) / sizeof(*languages); ++i) {
    if (!strcmp(languages[i].name, name)) return &languages[i];
  }
  return NULL;
}
// --- Text ---

static void put(pestle_source_making_t* m, const char* format, ...)
    PESTLE_PRINTF(2, 3);
static void put(pestle_source_making_t* m, const char* format, ...) {
  va_list args;
  va_start(args, format);
  pestle_strbuf_appendf_v(&m->text, format, args);
  va_end(args);
}

// |count| integers as an array; one that is empty has a 1.
static void put_array(pestle_source_making_t* m, const char* name,
                      const char* what, const int64_t* values, size_t count) {
  put(m, "%s %s%s[%zu] = %s", m->language->array, name, what, count ? count : 1,
      m->language->open);
  for (size_t i = 0; i < count; ++i)
    put(m, i ? ", %lld" : "%lld", (long long)values[i]);
  put(m, "%s%s;\n", count ? "" : "1", m->language->close);
}

// Elements that the language has no type for are their bits.
static const char* memory_type(const pestle_source_language_t* language,
                               pestle_dtype_t dtype) {
  const char* type =
      dtype < PESTLE_PLUGIN_DTYPES ? language->types[dtype] : NULL;
  if (type) return type;
  return language
      ->types[pestle_dtype_size(dtype) == 1 ? PESTLE_U8 : PESTLE_U16];
}

static void put_tensor(pestle_source_making_t* m, uint32_t i) {
  const pestle_type_t* type = pestle_source_type(m->k->node, i);
  const char* name = pestle_source_name(m, i);
  int64_t strides[PESTLE_MAX_RANK], step = 1;
  for (int32_t d = type->rank; d-- > 0; step *= type->dims[d])
    strides[d] = step;
  char argument[8];
  pestle_source_argument(i, argument);
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

static bool computes_in_f64(const pestle_source_making_t* m) {
  return m->k->node->results[0].type->dtype == PESTLE_F64;
}

static void put_attr(pestle_source_making_t* m,
                     const pestle_custom_attr_value_t* a) {
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

static pestle_status_t put_template(pestle_source_making_t* m,
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
static void put_each(pestle_source_making_t* m, const char* format,
                     bool results_only) {
  for (uint32_t i = results_only ? m->k->node->operand_count : 0;
       i < pestle_source_tensors(m->k->node); ++i) {
    char argument[8];
    pestle_source_argument(i, argument);
    for (const char* c = format; *c; ++c) {
      if (*c == '#') {
        put(m, "%u", i);
      } else if (*c == '@') {
        put(m, "%s", argument);
      } else if (*c == '$') {
        put(m, "%s",
            memory_type(m->language, pestle_source_type(m->k->node, i)->dtype));
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
static void put_several(pestle_source_making_t* m) {
  long long count = (long long)m->grid[0];
  put(m, "auto pestle_body = [&](");
  for (uint32_t i = 0; i < pestle_source_tensors(m->k->node); ++i)
    put(m, "auto&& %s, ", pestle_source_name(m, i));
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
    pestle_source_argument(i, argument);
    put(m, "  part%u.f = *(const pestle_four<%s>*)(%s + pestle_at);\n", i,
        memory_type(m->language, pestle_source_type(m->k->node, i)->dtype),
        argument);
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

static pestle_status_t put_prologue(pestle_source_making_t* m) {
  const pestle_node_t* node = m->k->node;
  const char* type = m->language->types[node->results[0].type->dtype];
  if (m->width == 1 && !*m->source->grid[1]) {
    put(m, "#define PESTLE_LANES_X %lld\n%s\n", (long long)m->lane[0],
        m->language->index);
    if (m->guarded) put(m, "if (i >= %lld) return;\n", (long long)m->grid[0]);
  }
  for (uint32_t i = 0; i < pestle_source_tensors(node); ++i)
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

pestle_status_t pestle_source_put_text(pestle_source_making_t* m) {
  if (!m->source->whole) return put_prologue(m);
  put(m, "%s", m->source->body);
  return NULL;
}

// |a| with |b| behind it; NULL: out of memory.
static const char* joined(const pestle_source_making_t* m, const char* a,
                          const char* b) {
  size_t n = strlen(a), more = strlen(b) + 1;
  char* text = PESTLE_ARENA_ARRAY(m->ks->arena, char, n + more);
  if (!text) return NULL;
  memcpy(text, a, n);
  memcpy(text + n, b, more);
  return text;
}

const char* pestle_source_head(const pestle_source_making_t* m) {
  const char* head = m->source->header;
  return m->width > 1 ? joined(m, head, vector_head) : head;
}

const char* pestle_source_flags(const pestle_source_making_t* m) {
  const char* flags = m->source->flags;
  if (m->width == 1) return flags;
  return joined(m, flags, *flags ? LAMBDA_FLAGS : &LAMBDA_FLAGS[1]);
}
