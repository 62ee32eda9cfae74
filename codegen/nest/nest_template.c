// SPDX-License-Identifier: Apache-2.0
// From the primitive of a template, which has names, to what the nest keeps of it.
#include "codegen/nest/nest.h"

pestle_status_t pestle_nest_read_template(const pestle_nest_t* nest,
                                          const pestle_schedule_row_t* row,
                                          pestle_nest_template_t* out) {
  int32_t stage = row->stage ? pestle_nest_find_stage(nest, row->stage) : -1;
  *out =
      (pestle_nest_template_t){.row = row->template, .stage = (uint32_t)stage};
  if (stage < 0) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "%s: there is no stage '%s'",
                        row->template->name, row->stage ? row->stage : "");
  }
  if (row->int_count + row->name_count > PESTLE_TEMPLATE_INTS) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%s %s: more than %d integers and tensors",
                        row->template->name, row->stage, PESTLE_TEMPLATE_INTS);
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < row->int_count; ++i)
    out->ints[count++] = row->ints[i];
  for (uint32_t i = 0; i < row->name_count; ++i) {
    int32_t tensor = pestle_nest_find_tensor(nest, row->names[i]);
    if (tensor < 0) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "%s %s: there is no tensor '%s'",
                          row->template->name, row->stage, row->names[i]);
    }
    out->ints[count++] = tensor;
  }
  return NULL;
}
