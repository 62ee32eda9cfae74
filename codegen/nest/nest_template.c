// SPDX-License-Identifier: Apache-2.0
// Reads the primitive of a template, which refers by name, into what the nest keeps of
// it, which refers by id.
#include "codegen/nest/nest.h"

pestle_status_t pestle_nest_read_template(const pestle_nest_t* nest,
                                          const pestle_primitive_t* primitive,
                                          pestle_nest_template_t* out) {
  int32_t stage =
      primitive->stage ? pestle_nest_find_stage(nest, primitive->stage) : -1;
  *out = (pestle_nest_template_t){.row = primitive->template,
                                  .stage = (uint32_t)stage};
  if (stage < 0) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "%s: there is no stage '%s'",
                        primitive->template->name,
                        primitive->stage ? primitive->stage : "");
  }
  if (primitive->int_count + primitive->name_count > PESTLE_TEMPLATE_INTS) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT, "%s %s: more than %d integers and tensors",
        primitive->template->name, primitive->stage, PESTLE_TEMPLATE_INTS);
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < primitive->int_count; ++i)
    out->ints[count++] = primitive->ints[i];
  for (uint32_t i = 0; i < primitive->name_count; ++i) {
    int32_t tensor = pestle_nest_find_tensor(nest, primitive->names[i]);
    if (tensor < 0) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "%s %s: there is no tensor '%s'",
                          primitive->template->name, primitive->stage,
                          primitive->names[i]);
    }
    out->ints[count++] = tensor;
  }
  return NULL;
}
