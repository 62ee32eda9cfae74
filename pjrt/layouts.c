// SPDX-License-Identifier: Apache-2.0
#include "pjrt/layouts.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "pjrt/buffer.h"
#include "pjrt/ffi.h"
#include "pjrt/program.h"
#include "pjrt/slots.h"
#include "pjrt/spread.h"

// Axes from the fastest to the slowest, as the framework writes them: "{1,0}".
enum { TEXT = 4 + 3 * PESTLE_MAX_RANK };
struct PJRT_Layouts_MemoryLayout {
  bool is_own;  // the framework's, which destroys it
  char text[TEXT];
};

static void write_layout(const uint8_t* order, size_t rank, char* out_text) {
  size_t at = (size_t)snprintf(out_text, TEXT, "{");
  for (size_t i = rank; i-- > 0;)
    at += (size_t)snprintf(out_text + at, TEXT - at, i ? "%u," : "%u",
                           (unsigned)order[i]);
  snprintf(out_text + at, TEXT - at, "}");
}

PJRT_Layouts_MemoryLayout* pestle_pjrt_layout(
    pestle_arena_t* arena, const pestle_pjrt_shape_t* shape) {
  PJRT_Layouts_MemoryLayout* layout =
      PESTLE_ARENA_ARRAY(arena, PJRT_Layouts_MemoryLayout, 1);
  if (!layout) return NULL;
  layout->is_own = false;
  write_layout(shape->order, shape->rank, layout->text);
  return layout;
}

static PJRT_Error* make_layout(const uint8_t* order, size_t rank,
                               PJRT_Layouts_MemoryLayout** out) {
  PJRT_Layouts_MemoryLayout* layout =
      pestle_alloc(pestle_allocator_system(), sizeof(*layout));
  *out = layout;
  if (!layout) return pestle_pjrt_out_of_memory();
  layout->is_own = true;
  write_layout(order, rank, layout->text);
  return NULL;
}

static PJRT_Error* default_layout(size_t rank,
                                  PJRT_Layouts_MemoryLayout** out) {
  uint8_t order[PESTLE_MAX_RANK];
  *out = NULL;
  if (rank > PESTLE_MAX_RANK) {
    return pestle_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                             "buffers have at most %d axes; the layout of %zu "
                             "was asked for",
                             (int)PESTLE_MAX_RANK, rank);
  }
  for (size_t i = 0; i < rank; ++i)
    order[i] = (uint8_t)i;
  return make_layout(order, rank, out);
}

// --- The extension ---

static PJRT_Error* pestle_PJRT_Layouts_MemoryLayout_Destroy(
    PJRT_Layouts_MemoryLayout_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_MemoryLayout_Destroy, layout, layout);
  if (args->layout->is_own) {
    pestle_dealloc(pestle_allocator_system(), args->layout,
                   sizeof(*args->layout));
  }
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
  return default_layout(args->num_dims, &args->layout);
}

static PJRT_Error* pestle_PJRT_Layouts_PJRT_Buffer_MemoryLayout(
    PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_PJRT_Buffer_MemoryLayout, buffer, layout);
  return make_layout(args->buffer->shape.order, args->buffer->shape.rank,
                     &args->layout);
}

static PJRT_Error* pestle_PJRT_Layouts_PJRT_Topology_GetDefaultLayout(
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args) {
  PJRT_REQUIRE(PJRT_Layouts_PJRT_Topology_GetDefaultLayout,
               topology_description, layout);
  return default_layout(args->num_dims, &args->layout);
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
             .next = (PJRT_Extension_Base*)(uintptr_t)&pestle_pjrt_ffi},
    PJRT_LAYOUTS_SLOTS(LAYOUTS_SLOT_)};
