// SPDX-License-Identifier: Apache-2.0
// What texts of Shardy say of meshes and shardings, axis by axis.
//
//   #sdy.sharding<@mesh, [{"x", ?}, {"y":(1)2}], replicated={"z"}>
#ifndef PESTLE_IR_SHARDING_TEXT_H_
#define PESTLE_IR_SHARDING_TEXT_H_

#include "base/str.h"
#include "ir/graph.h"

enum { PESTLE_MESH_TEXT_AXES = 16 };

// The axes of a mesh, the slowest first; texts are borrowed.
typedef struct pestle_mesh_text_t {
  pestle_str_t names[PESTLE_MESH_TEXT_AXES];
  int64_t sizes[PESTLE_MESH_TEXT_AXES];
  int count;
  // "device_ids=[..]": numbers of processes in the order of the mesh, or none.
  pestle_str_t ids;
} pestle_mesh_text_t;

// An axis, or a part of one: |before| is what lies in front of the part along it.
typedef struct pestle_axis_part_t {
  int axis;
  int64_t before, size;
} pestle_axis_part_t;

// Whether an axis of |whole| has a part of |size| with |before| in front of it.
static inline bool pestle_axis_has_part(int64_t whole, int64_t before,
                                        int64_t size) {
  return before > 0 && size > 0 && whole % before == 0 &&
         whole / before % size == 0;
}

typedef struct pestle_axis_list_t {
  pestle_axis_part_t data[PESTLE_MESH_TEXT_AXES];
  int count;
} pestle_axis_list_t;

typedef struct pestle_sharding_text_t {
  pestle_mesh_text_t mesh;
  int rank;
  pestle_axis_list_t dims[PESTLE_MAX_RANK];
  bool open[PESTLE_MAX_RANK];         // more axes may follow
  int64_t priority[PESTLE_MAX_RANK];  // 0 goes first
  pestle_axis_list_t sums;            // along which there are summands
  pestle_axis_list_t fixed;           // along which the value stays whole
  // Axes that a mark names (sharding.h): of a computation for each process.
  bool has_manual;
  pestle_axis_list_t manual;
} pestle_sharding_text_t;

// The mesh |name| of the module. MALFORMED: it has none.
PESTLE_NODISCARD pestle_status_t pestle_mesh_text_find(
    const pestle_module_t* module, pestle_str_t name, pestle_mesh_text_t* out);
// "<["x"=4, "y"=2]>", with a dialect's name before it or without.
PESTLE_NODISCARD pestle_status_t pestle_mesh_text_read(const char* text,
                                                       pestle_mesh_text_t* out);
// Reads |text|, or that of a mark.
PESTLE_NODISCARD pestle_status_t
pestle_sharding_text_read(const pestle_module_t* module, pestle_str_t text,
                          pestle_sharding_text_t* out);
// The numbers of "device_ids=[..]" in |out|, |count| of them, each once.
PESTLE_NODISCARD pestle_status_t pestle_mesh_text_ids(
    const pestle_mesh_text_t* mesh, int64_t count, bool* seen, int32_t* out);
// UNSUPPORTED: a text that is not understood.
PESTLE_NODISCARD pestle_status_t pestle_sharding_unknown(pestle_str_t text);

#endif  // PESTLE_IR_SHARDING_TEXT_H_
