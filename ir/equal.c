// SPDX-License-Identifier: Apache-2.0
#include "ir/equal.h"

#include <string.h>

#include "base/fault.h"
#include "base/hash.h"

// --- Hash ---

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

// Samples large constants: equal ones still get equal hashes.
static uint64_t hash_elements(uint64_t hash, const pestle_elements_t* e) {
  enum { SAMPLE = 256 };
  hash = mix(mix(hash, e->size), e->splat);
  size_t step = e->size <= SAMPLE * 4 ? e->size : e->size / 4;
  for (size_t at = 0; at < e->size; at += step) {
    size_t size = e->size - at;
    if (e->size > SAMPLE * 4 && size > SAMPLE) size = SAMPLE;
    hash = mix(hash, pestle_hash64((const char*)e->data + at, size));
  }
  return hash;
}

static uint64_t hash_attr(uint64_t hash, const pestle_attr_t* attr) {
  hash = mix(hash, attr->name);
  switch ((pestle_attr_kind_t)attr->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      return mix(hash, attr->as.b);
    case PESTLE_ATTR_KIND_I64:
      return mix(hash, (uint64_t)attr->as.i64);
    case PESTLE_ATTR_KIND_F64: {
      uint64_t bits;
      memcpy(&bits, &attr->as.f64, sizeof(bits));
      return mix(hash, bits);
    }
    case PESTLE_ATTR_KIND_STR:
      return mix(hash, pestle_hash64(attr->as.str, strlen(attr->as.str)));
    case PESTLE_ATTR_KIND_I64S:
      if (PESTLE_FAULT(cse_without_attributes)) return hash;
      for (size_t i = 0; i < attr->as.i64s.count; ++i) {
        hash = mix(hash, (uint64_t)attr->as.i64s.data[i]);
      }
      return mix(hash, attr->as.i64s.count);
    case PESTLE_ATTR_KIND_TYPE:
      return mix(hash, attr->as.type->dtype);
    case PESTLE_ATTR_KIND_ELEMENTS:
      return hash_elements(hash, attr->as.elements);
  }
  return hash;
}

static bool commutes(const pestle_node_t* node) {
  return node->operand_count == 2 &&
         (pestle_op_info((pestle_op_t)node->op)->flags & PESTLE_OP_FLAG_COMM);
}

uint64_t pestle_node_hash(const pestle_node_t* node) {
  uint64_t hash = mix(node->op, node->operand_count);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    uintptr_t operand = (uintptr_t)pestle_node_operand(node, i);
    if (commutes(node)) {
      sum += mix(0, operand);
    } else {
      sum = mix(sum, operand);
    }
  }
  hash = mix(hash, sum);
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    hash = hash_attr(hash, &node->attrs[i]);
  }
  return node->result_count ? mix(hash, (uintptr_t)node->results[0].type)
                            : hash;
}

// --- Attributes ---

static bool equal_elements(const pestle_elements_t* a,
                           const pestle_elements_t* b) {
  return a->size == b->size && a->splat == b->splat &&
         pestle_type_equal(&a->type, &b->type) &&
         (!a->size || !memcmp(a->data, b->data, a->size));
}

bool pestle_attr_equal(const pestle_attr_t* a, const pestle_attr_t* b) {
  if (a->name != b->name || a->kind != b->kind) return false;
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      return a->as.b == b->as.b;
    case PESTLE_ATTR_KIND_I64:
      return a->as.i64 == b->as.i64;
    case PESTLE_ATTR_KIND_F64:
      return !memcmp(&a->as.f64, &b->as.f64, sizeof(double));
    case PESTLE_ATTR_KIND_STR:
      return !strcmp(a->as.str, b->as.str);
    case PESTLE_ATTR_KIND_I64S:
      return PESTLE_FAULT(cse_without_attributes) ||
             pestle_i64s_equal(a->as.i64s, b->as.i64s);
    case PESTLE_ATTR_KIND_TYPE:
      return pestle_type_equal(a->as.type, b->as.type);
    case PESTLE_ATTR_KIND_ELEMENTS:
      return equal_elements(a->as.elements, b->as.elements);
  }
  return false;
}

// --- Values inside two regions ---

// Two regions that are being compared: what is defined in |a| stands for what
// is defined at the same place of |b|.
typedef struct pair_t {
  const pestle_region_t *a, *b;
} pair_t;

static size_t place_of(const pestle_node_t* node) {
  size_t place = 0;
  while ((node = node->prev))
    ++place;
  return place;
}

// Whether |a| and |b| are at the same place of the pair.
static bool same_place(const pair_t* pair, const pestle_block_t* a,
                       const pestle_block_t* b) {
  for (;;) {
    if (a->region == pair->a || b->region == pair->b) {
      return a->region == pair->a && b->region == pair->b;
    }
    const pestle_node_t *x = a->region->owner, *y = b->region->owner;
    if (!x || !y || a->region->index != b->region->index ||
        place_of(x) != place_of(y)) {
      return false;
    }
    a = x->block;
    b = y->block;
  }
}

// |pair| NULL: values are equal that are one.
static bool same_value(const pair_t* pair, const pestle_value_t* a,
                       const pestle_value_t* b) {
  if (a == b) return true;
  if (!pair || a->index != b->index || !a->node != !b->node) return false;
  if (!a->node) return same_place(pair, a->block, b->block);
  return place_of(a->node) == place_of(b->node) &&
         same_place(pair, a->node->block, b->node->block);
}

static bool equal_operands(const pair_t* pair, const pestle_node_t* a,
                           const pestle_node_t* b) {
  if (a->operand_count != b->operand_count) return false;
  bool same = true;
  for (uint32_t i = 0; i < a->operand_count && same; ++i) {
    same =
        same_value(pair, pestle_node_operand(a, i), pestle_node_operand(b, i));
  }
  return same || (commutes(a) &&
                  same_value(pair, pestle_node_operand(a, 0),
                             pestle_node_operand(b, 1)) &&
                  same_value(pair, pestle_node_operand(a, 1),
                             pestle_node_operand(b, 0)));
}

// Whether |a| and |b| are equal but for their regions.
static bool equal_alone(const pair_t* pair, const pestle_node_t* a,
                        const pestle_node_t* b) {
  if (a->op != b->op || a->attr_count != b->attr_count ||
      a->result_count != b->result_count ||
      a->region_count != b->region_count || !equal_operands(pair, a, b)) {
    return false;
  }
  for (uint32_t i = 0; i < a->result_count; ++i) {
    if (a->results[i].type != b->results[i].type) return false;
  }
  for (uint32_t i = 0; i < a->attr_count; ++i) {
    if (!pestle_attr_equal(&a->attrs[i], &b->attrs[i])) return false;
  }
  return true;
}

// --- Regions ---

static bool equal_arguments(const pestle_region_t* a,
                            const pestle_region_t* b) {
  if (a->block->argument_count != b->block->argument_count) return false;
  for (uint32_t i = 0; i < a->block->argument_count; ++i) {
    if (a->block->arguments[i]->type != b->block->arguments[i]->type) {
      return false;
    }
  }
  return true;
}

bool pestle_region_equal(const pestle_region_t* a, const pestle_region_t* b) {
  // Finding places takes as long as the square of the number of ops.
  enum { MOST_OPS = 256 };
  pair_t pair = {a, b};
  if (!equal_arguments(a, b)) return false;
  const pestle_node_t *x = NULL, *y = NULL;
  for (size_t count = 0; count <= MOST_OPS; ++count) {
    x = pestle_region_next(a, x);
    y = pestle_region_next(b, y);
    if (!x || !y) return !x && !y;
    if (!same_place(&pair, x->block, y->block) || !x->prev != !y->prev ||
        !equal_alone(&pair, x, y) || pestle_node_has_effect(x)) {
      return false;
    }
    for (uint32_t r = 0; r < x->region_count; ++r) {
      if (!equal_arguments(x->regions[r], y->regions[r])) return false;
    }
  }
  return false;
}

bool pestle_node_equal(const pestle_node_t* a, const pestle_node_t* b) {
  if (!equal_alone(NULL, a, b)) return false;
  for (uint32_t r = 0; r < a->region_count; ++r) {
    if (!pestle_region_equal(a->regions[r], b->regions[r])) return false;
  }
  return true;
}
