// SPDX-License-Identifier: Apache-2.0
// Collectives in a world of one device, and shardings over it.
#include "base/mem.h"
#include "ir/built.h"

typedef pestle_value_t pv_t;

// Each operand is its result, in the type that is written.
static void keep(pestle_built_t* b) {
  if (b->type_count != b->operand_count) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED,
                      "%zu operands and %zu results: it has one for each",
                      b->operand_count, b->type_count);
  }
  for (size_t i = 0; i < b->type_count && !b->f.status; ++i) {
    b->results[i] = pestle_f_convert(&b->f, b->operands[i], b->types[i].dtype);
  }
}

void pestle_built_same(pestle_built_t* b) {
  keep(b);
}

void pestle_built_nothing(pestle_built_t* b) {
  if (b->type_count) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED, "it has no result");
  }
}

// Every group has one member, number 0; -1 fills groups up.
static bool is_alone(pestle_built_t* b) {
  const pestle_generic_value_t* groups = pestle_built_attr(b, "replica_groups");
  if (!groups) return true;
  bool alone = groups->kind == PESTLE_GENERIC_ELEMENTS &&
               pestle_dtype_is(groups->elements.type.dtype, PESTLE_KIND_INT);
  const pestle_elements_t* e = &groups->elements;
  size_t size = alone ? pestle_dtype_size(e->type.dtype) : 1;
  int64_t members = 0;
  size_t count = alone ? e->size / size : 0;
  for (size_t i = 0; i < count && alone; ++i) {
    int64_t member = 0;
    memcpy(&member, (const char*)e->data + i * size, size);
    members += member == 0;
    // A splat of 0 in a row of two would name number 0 twice.
    alone = member == 0 || (member & 0xffffffff) == (INT64_C(-1) & 0xffffffff);
  }
  if (alone && e->splat && pestle_type_count(&e->type) > 1) alone = false;
  if (alone && members <= 1) return true;
  pestle_built_fail(
      b, PESTLE_STATUS_UNSUPPORTED,
      "its groups are of several devices, and a program here runs "
      "on one; export it for one device");
  return false;
}

void pestle_built_alone(pestle_built_t* b) {
  if (is_alone(b)) keep(b);
}

// What is folded is one value, which the fold leaves as it is.
void pestle_built_all_reduce(pestle_built_t* b) {
  if (b->region_count != 1) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED, "it has one region");
    return;
  }
  pestle_built_alone(b);
}

// The value of number 0 goes to number 0, or to nobody: then 0 is what comes.
void pestle_built_permute(pestle_built_t* b) {
  pestle_i64s_t pairs;
  if (!pestle_built_i64s(b, "source_target_pairs", true, &pairs)) return;
  for (size_t i = 0; i < pairs.count; ++i) {
    if (pairs.data[i] == 0) continue;
    pestle_built_fail(b, PESTLE_STATUS_UNSUPPORTED,
                      "it names device %lld, and a program here runs on one; "
                      "export it for one device",
                      (long long)pairs.data[i]);
    return;
  }
  if (pairs.count) {
    keep(b);
    return;
  }
  b->results[0] = pestle_f_number(&b->f, b->operands[0]->type, 0);
}

void pestle_built_number_of_one(pestle_built_t* b) {
  pestle_type_t type = pestle_type_make(PESTLE_U32, 0, NULL);
  b->results[0] = pestle_f_number(&b->f, &type, 0);
}
