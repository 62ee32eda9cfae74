// SPDX-License-Identifier: Apache-2.0
// Kernel IR to C, one statement an instruction. All values have one lane
// (caps.max_lanes is 1), so that a value is a C variable; the C compiler makes
// vectors of the loops. Regions become blocks, so that the scopes agree.
#include "print_c.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prelude.h"

void example_text_append(example_text_t* text, const char* format, ...) {
  va_list args;
  for (;;) {
    size_t room = text->capacity - text->size;
    va_start(args, format);
    int size =
        vsnprintf(room ? text->data + text->size : NULL, room, format, args);
    va_end(args);
    if (text->failed || size < 0) return;
    if ((size_t)size < room) {
      text->size += (size_t)size;
      return;
    }
    size_t capacity = text->capacity * 2 + (size_t)size + 256;
    char* data = realloc(text->data, capacity);
    if (!data) {
      text->failed = true;
      return;
    }
    text->data = data;
    text->capacity = capacity;
  }
}

// --- Types ---

// Of floats that C lacks the type of their bits, which are moved and no more.
static const char* c_type(unsigned dtype) {
  static const char* const ints[2][4] = {
      {"int8_t", "int16_t", "int32_t", "int64_t"},
      {"uint8_t", "uint16_t", "uint32_t", "uint64_t"}};
  const pestle_dtype_info_t* info = pestle_dtype_info((pestle_dtype_t)dtype);
  if (!(EXAMPLE_DTYPES >> dtype & 1) && !(EXAMPLE_MOVED >> dtype & 1) &&
      dtype != PESTLE_INDEX) {
    return NULL;
  }
  if (dtype == PESTLE_F32) return "float";
  if (dtype == PESTLE_F64) return "double";
  int at = info->size == 8 ? 3 : info->size == 4 ? 2 : info->size / 2;
  return ints[info->kind != PESTLE_KIND_SIGNED][at];
}

static unsigned kind_of(unsigned dtype) {
  return pestle_dtype_info((pestle_dtype_t)dtype)->kind;
}

static unsigned type_of(const pestle_kir_t* k, uint32_t value) {
  return pestle_kir_inst(k, value)->type;
}

// --- Scalar rows ---

typedef struct scalar_t {
  const char *f, *s, *u;  // the columns of scalar.def
  char rule;              // S same, C compare, T test, E select, L clamp
} scalar_t;

static const scalar_t* scalar_row(unsigned op) {
  enum {
    SAME = 'S',
    COMPARE = 'C',
    TEST = 'T',
    SELECT = 'E',
    CLAMP = 'L',
  };
  static const scalar_t rows[] = {
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  [PESTLE_OP_##NAME] = {#F, #S, #U, RULE},
#include "pestle/scalar.def"
  };
  return &rows[op - PESTLE_KIR_SCALAR_BASE];
}

// The op as a block of its own, in which a, b and c are the operands in the
// type that the expression wants.
static void print_scalar(const pestle_kir_t* k, uint32_t at,
                         example_text_t* out) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, at);
  const scalar_t* row = scalar_row(inst->op);
  size_t operands = strlen(pestle_kir_op_info(inst->op).operands);
  unsigned dtype = type_of(k, inst->arg[row->rule == 'E' ? 1 : 0]);
  unsigned kind = kind_of(dtype);
  const char* wide = kind & PESTLE_KIND_FLOAT    ? c_type(dtype)
                     : kind & PESTLE_KIND_SIGNED ? "int64_t"
                                                 : "uint64_t";
  const char* text = kind & PESTLE_KIND_FLOAT    ? row->f
                     : kind & PESTLE_KIND_SIGNED ? row->s
                                                 : row->u;
  example_text_append(out, "%s v%u; { ", c_type(inst->type), at);
  for (size_t i = 0; i < operands; ++i) {
    const char* type = row->rule == 'E' && i == 0 ? "uint64_t" : wide;
    example_text_append(out, "const %s %c = v%u; ", type, "abc"[i],
                        inst -> arg[i]);
  }
  // M(f) is the C function, which f32 rounds from double's; fma has its own.
  unsigned bits = pestle_dtype_info((pestle_dtype_t)dtype)->bits;
  const char* cast = inst->type == PESTLE_I1 ? "1 & (uint8_t)" : "";
  bool fma = inst->op == PESTLE_KIR_FMA && dtype == PESTLE_F32;
  example_text_append(out,
                      "\n#define M(f) %s\n#define W %u\nv%u = %s(%s)(%s);\n"
                      "#undef M\n#undef W\n}\n",
                      fma ? "f32_##f" : "f", bits, at, cast, c_type(inst->type),
                      text);
}

// --- Casts and constants ---

static void print_const(const pestle_kir_inst_t* inst, uint32_t at,
                        example_text_t* out) {
  const char* type = c_type(inst->type);
  if (!(kind_of(inst->type) & PESTLE_KIND_FLOAT)) {
    example_text_append(out, "const %s v%u = (%s)UINT64_C(%" PRIu64 ");\n",
                        type, at, type, (uint64_t)pestle_kir_const_int(inst));
    return;
  }
  double wide = pestle_kir_const_float(inst);
  uint64_t bits;
  memcpy(&bits, &wide, sizeof bits);
  example_text_append(out, "const %s v%u = (%s)as_f64(0x%" PRIx64 ");\n", type,
                      at, type, bits);
}

static void print_cast(const pestle_kir_t* k, uint32_t at,
                       example_text_t* out) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, at);
  unsigned to = inst->type, from = type_of(k, inst->arg[0]);
  unsigned bits = pestle_dtype_info((pestle_dtype_t)to)->bits;
  const char* type = c_type(to);
  uint32_t v = inst->arg[0];
  bool from_float = kind_of(from) & PESTLE_KIND_FLOAT;
  if (to == PESTLE_I1) {
    example_text_append(out, "const %s v%u = v%u != 0;\n", type, at, v);
  } else if (from_float && kind_of(to) & PESTLE_KIND_SIGNED) {
    double limit = ldexp(1, (int)bits - 1);
    example_text_append(out,
                        "const %s v%u = (%s)to_int(v%u, -%.1f, %.1f, "
                        "INT%u_MIN, INT%u_MAX);\n",
                        type, at, type, v, limit, limit, bits, bits);
  } else if (from_float && kind_of(to) & PESTLE_KIND_UNSIGNED) {
    example_text_append(out,
                        "const %s v%u = (%s)to_uint(v%u, %.1f, UINT%u_MAX);\n",
                        type, at, type, v, ldexp(1, (int)bits), bits);
  } else {
    example_text_append(out, "const %s v%u = (%s)v%u;\n", type, at, type, v);
  }
}

// --- Memory ---

// "buffer[index]", or for a masked access what comes before it.
static void print_load(const pestle_kir_inst_t* inst, uint32_t at,
                       example_text_t* out) {
  const char* type = c_type(inst->type);
  if (inst->arg[2] == PESTLE_KIR_NONE) {
    example_text_append(out, "const %s v%u = b%u[v%u];\n", type, at,
                        inst->arg[0], inst->arg[1]);
  } else {
    example_text_append(out, "const %s v%u = v%u ? b%u[v%u] : 0;\n", type, at,
                        inst->arg[2], inst->arg[0], inst->arg[1]);
  }
}

static void print_store(const pestle_kir_inst_t* inst, example_text_t* out) {
  if (inst->arg[3] != PESTLE_KIR_NONE) {
    example_text_append(out, "if (v%u) ", inst->arg[3]);
  }
  example_text_append(out, "b%u[v%u] = v%u;\n", inst->arg[0], inst->arg[1],
                      inst->arg[2]);
}

// Globals are arguments; shared buffers lie in the scratch, in order.
static void print_buffers(const pestle_kir_t* k, example_text_t* out) {
  uint64_t offset = 0;
  for (uint32_t i = 0; i < k->buffer_count; ++i) {
    const pestle_kir_buffer_t* b = pestle_kir_buffer(k, i);
    const char* type = c_type(b->dtype);
    if (b->scope == PESTLE_KIR_GLOBAL) {
      example_text_append(out, "%s* const b%u = buffers[%u];\n", type, i,
                          b->arg_slot);
    } else if (b->scope == PESTLE_KIR_SHARED) {
      example_text_append(
          out, "%s* const b%u = (void*)((char*)scratch + %" PRIu64 ");\n", type,
          i, offset);
      uint64_t size = b->count * pestle_dtype_size((pestle_dtype_t)b->dtype);
      offset += (size + 63) / 64 * 64;
    }
  }
}

// --- Instructions ---

static void print_for(const pestle_kir_inst_t* inst, uint32_t at,
                      example_text_t* out) {
  uint32_t lo = inst->arg[0], hi = inst->arg[1];
  // Of the group loop a launch runs [begin, end).
  if (inst->arg[3] == PESTLE_KIR_GROUP_X) {
    example_text_append(out,
                        "for (int64_t v%u = v%u > begin ? v%u : begin, e%u = "
                        "v%u < end ? v%u : end; v%u < e%u; ++v%u) {\n",
                        at, lo, lo, at, hi, hi, at, at, at);
    return;
  }
  example_text_append(
      out, "for (int64_t v%u = v%u; v%u < v%u; v%u += %" PRId32 ") {\n", at, lo,
      at, hi, at, (int32_t)inst->arg[2]);
}

static void print_alloc(const pestle_kir_t* k, const pestle_kir_inst_t* inst,
                        example_text_t* out) {
  const pestle_kir_buffer_t* b = pestle_kir_buffer(k, inst->arg[0]);
  example_text_append(out, "%s b%u[%" PRIu64 "];\n", c_type(b->dtype),
                      inst->arg[0], b->count ? b->count : 1);
}

// Of one lane each is the value itself.
static void print_copy(const pestle_kir_inst_t* inst, uint32_t value,
                       uint32_t at, example_text_t* out) {
  example_text_append(out, "const %s v%u = v%u;\n", c_type(inst->type), at,
                      value);
}

static const char* print_inst(const pestle_kir_t* k, uint32_t at,
                              example_text_t* out) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, at);
  const uint32_t* arg = inst->arg;
  const char* type = c_type(inst->type);
  if (inst->lanes > 1) return "values of more than one lane";
  if (inst->op >= PESTLE_KIR_SCALAR_BASE) {
    if (inst->op >= PESTLE_KIR_SCALAR_BASE + PESTLE_SCALAR_COUNT || !type) {
      return "an op or a type that is newer than it";
    }
    print_scalar(k, at, out);
    return NULL;
  }
  switch (inst->op) {
    case PESTLE_KIR_CONST:
      print_const(inst, at, out);
      return NULL;
    case PESTLE_KIR_PARAM:
      example_text_append(out, "const %s v%u = (%s)params[%u];\n", type, at,
                          type, arg[0]);
      return NULL;
    case PESTLE_KIR_FOR:
      print_for(inst, at, out);
      return NULL;
    case PESTLE_KIR_IF:
      example_text_append(out, "if (v%u) {\n", arg[0]);
      return NULL;
    case PESTLE_KIR_ELSE:
      example_text_append(out, "} else {\n");
      return NULL;
    case PESTLE_KIR_END:
      example_text_append(out, "}\n");
      return NULL;
    case PESTLE_KIR_ALLOC:
      print_alloc(k, inst, out);
      return NULL;
    case PESTLE_KIR_LOAD:
    case PESTLE_KIR_GATHER:
      print_load(inst, at, out);
      return NULL;
    case PESTLE_KIR_STORE:
    case PESTLE_KIR_SCATTER:
      print_store(inst, out);
      return NULL;
    case PESTLE_KIR_MADI:
      example_text_append(
          out, "const int64_t v%u = v%u * INT64_C(%" PRId32 ") + v%u;\n", at,
          arg[0], (int32_t)arg[1], arg[2]);
      return NULL;
    case PESTLE_KIR_MASK:
      example_text_append(out, "const uint8_t v%u = v%u < v%u;\n", at, arg[0],
                          arg[1]);
      return NULL;
    case PESTLE_KIR_IOTA:
      example_text_append(out, "const %s v%u = 0;\n", type, at);
      return NULL;
    case PESTLE_KIR_SPLAT:
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_REDUCE:
      print_copy(inst, arg[0], at, out);
      return NULL;
    case PESTLE_KIR_INSERT:
      print_copy(inst, arg[1], at, out);
      return NULL;
    case PESTLE_KIR_CAST:
      print_cast(k, at, out);
      return NULL;
    case PESTLE_KIR_BITCAST:
      example_text_append(out, "%s v%u; memcpy(&v%u, &v%u, sizeof v%u);\n",
                          type, at, at, arg[0], at);
      return NULL;
    case PESTLE_KIR_TRAP_IF:
      example_text_append(out, "if (v%u) return %" PRId32 ";\n", arg[0],
                          (int32_t)arg[1]);
      return NULL;
    case PESTLE_KIR_BARRIER:   // a group is one thread
    case PESTLE_KIR_PREFETCH:  // a hint
      return NULL;
    default:
      return "an op that is newer than it";
  }
}

static const char* check_types(const pestle_kir_t* k) {
  for (uint32_t i = 0; i < k->buffer_count; ++i) {
    if (!c_type(pestle_kir_buffer(k, i)->dtype)) {
      return "a buffer of a dtype that C has not";
    }
  }
  for (uint32_t i = 0; i < k->inst_count; ++i) {
    unsigned type = pestle_kir_inst(k, i)->type;
    if (type != PESTLE_NONE && !c_type(type)) {
      return "a value of a dtype that C has not";
    }
  }
  return NULL;
}

const char* example_print_c(const pestle_kir_t* k, example_text_t* out) {
  const char* lacks = check_types(k);
  if (lacks) return lacks;
  example_text_append(out, "%s", EXAMPLE_PRELUDE);
  example_text_append(
      out,
      "// %s\nint32_t kernel(const void* self, void* const* buffers, const "
      "int64_t* params, int64_t begin, int64_t end, void* scratch);\n"
      "int32_t kernel(const void* self, void* const* buffers, const int64_t* "
      "params, int64_t begin, int64_t end, void* scratch) {\n"
      "(void)self, (void)buffers, (void)params, (void)scratch;\n",
      pestle_kir_string(k, k->name));
  print_buffers(k, out);
  for (uint32_t i = 0; i < k->inst_count && !lacks; ++i) {
    lacks = print_inst(k, i, out);
  }
  example_text_append(out, "return 0;\n}\n");
  return lacks;
}
