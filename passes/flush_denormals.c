// SPDX-License-Identifier: Apache-2.0
// Denormal elements of constant operands of products become zeros: a CPU takes
// more than a hundred cycles for each product with one, and trained weights that
// died out are full of them. Only where the tensor's largest element is so much
// larger that they are less than its rounding; see docs/adr/016.
//
//   %0 = convolution %x, dense<[1.0, 1.0e-40]>
//   -> %0 = convolution %x, dense<[1.0, 0.0]>
//
// Left out under PESTLE_NUMERICS_STRICT.
#include <string.h>

#include "base/mem.h"
#include "passes/util.h"

// Bits of a float format of p bits of precision: its sign, its least normal number,
// the one 2^p times as large, infinity; and what finds out whether some of |count|
// elements are denormal. Most tensors have none, and all weights are looked at.
typedef struct format_t format_t;
struct format_t {
  size_t bytes;
  uint64_t sign, least, large, infinity;
  bool (*has_denormal)(const char* data, size_t count, const format_t* f);
};

enum { BLOCK = 64 };  // elements that a vectorised loop looks at

#define HAS_DENORMAL(name, uint)                                        \
  static bool name(const char* data, size_t count, const format_t* f) { \
    uint block[BLOCK] = {0}, some = 0;                                  \
    uint most = (uint)(f->sign - 1), least = (uint)f->least;            \
    for (size_t i = 0; i < count && !some; i += BLOCK) {                \
      size_t n = count - i < BLOCK ? count - i : BLOCK;                 \
      memcpy(block, data + i * sizeof(uint), n * sizeof(uint));         \
      for (int j = 0; j < BLOCK; ++j)                                   \
        some |= (block[j] & most) - 1 < least - 1;                      \
    }                                                                   \
    return some;                                                        \
  }
HAS_DENORMAL(has_denormal_f32, uint32_t)
HAS_DENORMAL(has_denormal_f64, uint64_t)

static const format_t F32 = {4,
                             UINT64_C(1) << 31,
                             UINT64_C(1) << 23,
                             UINT64_C(25) << 23,
                             UINT64_C(0xff) << 23,
                             has_denormal_f32};
static const format_t F64 = {8,
                             UINT64_C(1) << 63,
                             UINT64_C(1) << 52,
                             UINT64_C(54) << 52,
                             UINT64_C(0x7ff) << 52,
                             has_denormal_f64};

static const format_t* format_of(pestle_dtype_t dtype) {
  return dtype == PESTLE_F32 ? &F32 : dtype == PESTLE_F64 ? &F64 : NULL;
}

// The bits of an element but for its sign; hosts are little-endian.
static uint64_t size_at(const char* data, size_t index, const format_t* f) {
  uint64_t bits = 0;
  memcpy(&bits, data + index * f->bytes, f->bytes);
  return bits & ~f->sign;
}

// Whether some elements are denormal, and a finite one is large enough beside them.
static bool is_mixed(const pestle_elements_t* e, size_t count,
                     const format_t* f) {
  bool some = f->has_denormal(e->data, count, f);
  for (size_t i = 0; some && i < count; ++i) {
    uint64_t size = size_at(e->data, i, f);
    if (size >= f->large && size < f->infinity) return true;
  }
  return false;
}

static pestle_value_t* flushed(pestle_formula_t* f, const pestle_elements_t* e,
                               size_t count, const format_t* format) {
  char* data = pestle_f_memory(f, format->bytes * count);
  if (!data) return NULL;
  memcpy(data, e->data, format->bytes * count);
  for (size_t i = 0; i < count; ++i) {
    if (size_at(data, i, format) < format->least) {
      memset(data + i * format->bytes, 0, format->bytes);
    }
  }
  pestle_elements_t to = {e->type, data, format->bytes * count, false};
  return pestle_f_elements(f, &to);
}

// A product that uses |value|, or NULL.
static pestle_node_t* product_of(const pestle_value_t* value) {
  for (const pestle_use_t* u = value->uses; u; u = u->next) {
    if (u->user->op == PESTLE_OP_CONVOLUTION ||
        u->user->op == PESTLE_OP_DOT_GENERAL) {
      return u->user;
    }
  }
  return NULL;
}

// One new constant for all products.
static pestle_status_t flush_constant(pestle_node_t* node, bool* changed) {
  pestle_value_t* from = &node->results[0];
  const pestle_elements_t* e = pestle_value_constant(from);
  const format_t* format = format_of((pestle_dtype_t)e->type.dtype);
  if (!format || e->splat || !product_of(from)) return NULL;
  size_t count = (size_t)pestle_type_count(&e->type);
  if (!is_mixed(e, count, format)) return NULL;
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* to = flushed(&f, e, count, format);
  PESTLE_TRY(f.status);
  for (pestle_node_t* user; (user = product_of(from)) != NULL;) {
    for (size_t i = 0; i < user->operand_count; ++i) {
      if (pestle_node_operand(user, i) == from) {
        pestle_node_set_operand(user, i, to);
      }
    }
  }
  *changed = true;
  return NULL;
}

static pestle_status_t flush_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_CONSTANT) PESTLE_TRY(flush_constant(n, user));
  }
  return NULL;
}

pestle_status_t pestle_pass_flush_denormals(pestle_pass_context_t* ctx,
                                            pestle_module_t* module,
                                            bool* out_changed) {
  if (ctx->options->numerics == PESTLE_NUMERICS_STRICT) return NULL;
  PESTLE_TRY(pestle_pass_each_block(module, flush_block, out_changed));
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}
