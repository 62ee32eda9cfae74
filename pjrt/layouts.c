// SPDX-License-Identifier: Apache-2.0
#include "pjrt/layouts.h"

#include <string.h>

#include "base/str.h"
#include "pjrt/buffer.h"
#include "pjrt/program.h"
#include "pjrt/slots.h"
#include "pjrt/spread.h"

// Dims from the fastest to the slowest, as the framework writes them.
struct PJRT_Layouts_MemoryLayout {
  const char* text;
};
static const PJRT_Layouts_MemoryLayout row_major[] = {
    {"{}"},
    {"{0}"},
    {"{1,0}"},
    {"{2,1,0}"},
    {"{3,2,1,0}"},
    {"{4,3,2,1,0}"},
    {"{5,4,3,2,1,0}"},
    {"{6,5,4,3,2,1,0}"},
    {"{7,6,5,4,3,2,1,0}"},
    {"{8,7,6,5,4,3,2,1,0}"},
    {"{9,8,7,6,5,4,3,2,1,0}"},
    {"{10,9,8,7,6,5,4,3,2,1,0}"},
    {"{11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
};
enum { LAYOUTS = sizeof(row_major) / sizeof(row_major[0]) };
_Static_assert(LAYOUTS == PESTLE_MAX_RANK + 1, "a layout a rank");

PJRT_Layouts_MemoryLayout* pestle_pjrt_layout(size_t rank) {
  if (rank >= LAYOUTS) return NULL;
  return (PJRT_Layouts_MemoryLayout*)(uintptr_t)&row_major[rank];
}

static PJRT_Error* layout_of(size_t rank, PJRT_Layouts_MemoryLayout** out) {
  *out = pestle_pjrt_layout(rank);
  if (*out) return NULL;
  return pestle_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                           "buffers have at most %d axes; the layout of %zu "
                           "was asked for",
                           (int)PESTLE_MAX_RANK, rank);
}

// --- The extension ---

static PJRT_Error* pestle_PJRT_Layouts_MemoryLayout_Destroy(
    PJRT_Layouts_MemoryLayout_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_MemoryLayout_Destroy, layout, layout);
  return NULL;
}

static void keep_text(PJRT_Layouts_SerializedLayout* layout) {
  (void)layout;
}

static PJRT_Error* pestle_PJRT_Layouts_MemoryLayout_Serialize(
    PJRT_Layouts_MemoryLayout_Serialize_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_MemoryLayout_Serialize, layout,
               serialized_layout_deleter);
  args->serialized_bytes = args->layout->text;
  args->serialized_bytes_size = strlen(args->layout->text);
  args->serialized_layout = NULL;
  args->serialized_layout_deleter = keep_text;
  return NULL;
}

static PJRT_Error* pestle_PJRT_Layouts_PJRT_Client_GetDefaultLayout(
    PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_PJRT_Client_GetDefaultLayout, client, layout);
  return layout_of(args->num_dims, &args->layout);
}

static PJRT_Error* pestle_PJRT_Layouts_PJRT_Buffer_MemoryLayout(
    PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_PJRT_Buffer_MemoryLayout, buffer, layout);
  return layout_of(args->buffer->shape.rank, &args->layout);
}

static PJRT_Error* pestle_PJRT_Layouts_PJRT_Topology_GetDefaultLayout(
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_PJRT_Topology_GetDefaultLayout,
               topology_description, layout);
  return layout_of(args->num_dims, &args->layout);
}

static PJRT_Error* pestle_PJRT_Layouts_PJRT_Executable_GetOutputLayouts(
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_PJRT_Executable_GetOutputLayouts, executable,
               layouts);
  args->num_outputs = args->executable->program->output_count;
  args->layouts = args->executable->program->output_layouts;
  return NULL;
}

static PJRT_Error* pestle_PJRT_Layouts_PJRT_Executable_GetParameterLayouts(
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_PJRT_Executable_GetParameterLayouts, executable,
               layouts);
  args->num_parameters = args->executable->program->input_count;
  args->layouts = args->executable->program->input_layouts;
  return NULL;
}

#define LAYOUTS_SLOT_(NAME) .NAME = pestle_##NAME,
const PJRT_Layouts_Extension pestle_pjrt_layouts = {
    .base = {.struct_size = sizeof(PJRT_Layouts_Extension),
             .type = PJRT_Extension_Type_Layouts,
             .next = (PJRT_Extension_Base*)(uintptr_t)&pestle_pjrt_shardings},
    PJRT_LAYOUTS_SLOTS(LAYOUTS_SLOT_)};

// --- What programs ask for ---

// Whether |mode|, an attribute's text, is NULL, left to Pestle, or row-major.
static bool is_fine(const char* mode) {
  if (!mode) return true;
  pestle_str_t text = pestle_str(mode);
  if (text.size >= 2 && text.data[0] == '"')
    text = pestle_str_make(text.data + 1, text.size - 2);
  bool fine =
      pestle_str_equal_c(text, "default") || pestle_str_equal_c(text, "auto");
  for (size_t rank = 0; rank < LAYOUTS && !fine; ++rank)
    fine = pestle_str_equal_c(text, row_major[rank].text);
  return fine;
}

static PJRT_Error* refuse(const char* what, size_t index, const char* mode) {
  return pestle_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                           "%s %zu is wanted in layout %s; buffers are "
                           "row-major on the device: leave "
                           "the layout to Pestle (Layout.AUTO), or transpose",
                           what, index, mode);
}

PJRT_Error* pestle_pjrt_layouts_check(pestle_module_t* module) {
  static const char key[] = "mhlo.layout_mode";
  pestle_function_t* entry = pestle_module_entry(module);
  size_t count = pestle_function_argument_count(entry);
  for (size_t i = 0; i < count; ++i) {
    const char* mode = pestle_function_argument_attribute(entry, i, key);
    if (!is_fine(mode)) return refuse("argument", i, mode);
  }
  for (size_t i = 0;
       pestle_function_returned_type(entry, i).dtype != PESTLE_NONE; ++i) {
    const char* mode = pestle_function_result_attribute(entry, i, key);
    if (!is_fine(mode)) return refuse("result", i, mode);
  }
  return NULL;
}
