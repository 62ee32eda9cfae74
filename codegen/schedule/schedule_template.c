// SPDX-License-Identifier: Apache-2.0
// The primitives of templates: the part that is the same for all of them.
#include <string.h>

#include "codegen/schedule/schedule_internal.h"

// What stages keep is the template's to place: nobody else looks at it.
static void keep_in_kernel(pestle_nest_t* nest) {
  for (size_t i = 0; i + 1 < nest->stages.size; ++i) {
    const pestle_nest_stage_t* s = &nest->stages.data[i];
    for (uint32_t v = 0; v < s->value_count && !s->inlined; ++v)
      nest->tensors.data[s->tensors[v]].scope = PESTLE_SCOPE_PRIVATE;
  }
}

static pestle_status_t record(pestle_nest_t* nest,
                              const pestle_nest_template_t* use) {
  pestle_primitive_t row = {
      .prim = PESTLE_PRIM_TEMPLATE,
      .template = use->row,
      .stage = pestle_schedule_stage_name(nest, use->stage)};
  const char* names[PESTLE_TEMPLATE_INTS];
  uint32_t count = 0;
  for (const char* f = use->row->form; *f; ++f) {
    if (*f == 'i' || *f == '[') row.ints[row.int_count++] = use->ints[count++];
    if (*f == 'n') {
      names[row.name_count++] = nest->tensors.data[use->ints[count++]].name;
    }
    if (*f == '[') f = strchr(f, ']');
  }
  row.names =
      pestle_arena_copy(nest->arena, names, row.name_count * sizeof(*names) + 1,
                        _Alignof(const char*));
  if (!row.names || !pestle_vec_push(&nest->primitives, row)) {
    pestle_nest_fail_memory(nest);
  }
  return pestle_nest_status(nest);
}

pestle_status_t pestle_schedule_template(pestle_nest_t* nest,
                                         const pestle_nest_template_t* use) {
  if (nest->template.row) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT, "%s %s: the kernel is made by %s already",
        use->row->name, pestle_schedule_stage_name(nest, use->stage),
        nest->template.row->name);
  }
  PESTLE_TRY(use->row->match(nest, use));
  size_t rows = nest->primitives.size;
  if (use->row->apply) PESTLE_TRY(use->row->apply(nest, use));
  nest->primitives.size = rows;  // what it did is part of this primitive
  nest->template = *use;
  keep_in_kernel(nest);
  return record(nest, use);
}
