// SPDX-License-Identifier: Apache-2.0
// The one function that the framework looks up, and the table that it returns.
#include "pjrt/layouts.h"
#include "pjrt/slots.h"
#include "pjrt/versions.h"

#define PJRT_SLOT_ROW_(NAME, RETURNS) .NAME = pestle_##NAME,
static const PJRT_Api api = {
    .struct_size = sizeof(PJRT_Api),
    .extension_start = (PJRT_Extension_Base*)(uintptr_t)&pestle_pjrt_layouts,
    .pjrt_api_version = {.struct_size = sizeof(PJRT_Api_Version),
                         .major_version = PJRT_API_MAJOR,
                         .minor_version = PJRT_API_MINOR},
    PJRT_SLOTS(PJRT_SLOT_ROW_)};

PESTLE_API const PJRT_Api* GetPjrtApi(void);
const PJRT_Api* GetPjrtApi(void) {
  return &api;
}

PJRT_Error* pestle_PJRT_Plugin_Initialize(PJRT_Plugin_Initialize_Args* args) {
  return pestle_pjrt_check(args,
                           PJRT_END_OF(PJRT_Plugin_Initialize, extension_start),
                           "PJRT_Plugin_Initialize");
}

// --- What the plugin says of itself ---

static const int64_t current_version[] = {PESTLE_PJRT_STABLEHLO_CURRENT};
static const int64_t minimum_version[] = {PESTLE_PJRT_STABLEHLO_MINIMUM};

#define VERSION_ATTRIBUTE(text, values)                   \
  {                                                       \
      .struct_size = sizeof(PJRT_NamedValue),             \
      .name = (text),                                     \
      .name_size = sizeof(text) - 1,                      \
      .type = PJRT_NamedValue_kInt64List,                 \
      .int64_array_value = (values),                      \
      .value_size = sizeof(values) / sizeof((values)[0]), \
  }
static const PJRT_NamedValue attributes[] = {
    VERSION_ATTRIBUTE("stablehlo_current_version", current_version),
    VERSION_ATTRIBUTE("stablehlo_minimum_version", minimum_version),
};

PJRT_Error* pestle_PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args* args) {
  PJRT_TRY(pestle_pjrt_check(
      args, PJRT_END_OF(PJRT_Plugin_Attributes, num_attributes),
      "PJRT_Plugin_Attributes"));
  args->attributes = attributes;
  args->num_attributes = sizeof(attributes) / sizeof(attributes[0]);
  return NULL;
}
