// SPDX-License-Identifier: Apache-2.0
// Shardings: in what parts a tensor lies on the processes of a world.
//
//   sdy.mesh @mesh = <["x"=4, "y"=2]>
//   #sdy.sharding<@mesh, [{"x"}, {}]>   ->  tiles 4, 1; process 2 i + j has part i
//
// Partitions alone are spread; a module whose arguments have parts is one of
// partitions. What is said of an argument or result of a module that is local, as
// attribute spmd.sharding, is XLA's text: {devices=[4,1,2]0,1,2,3,4,5,6,7
// last_tile_dim_replicate}.
#ifndef PESTLE_IR_SHARDING_H_
#define PESTLE_IR_SHARDING_H_

#include "base/arena.h"
#include "ir/formula.h"
#include "ir/generic.h"
#include "ir/graph.h"

#define PESTLE_SHARDING_KEY "spmd.sharding"

typedef struct pestle_sharding_t {
  bool replicated;  // every process has all; the rest says nothing
  int32_t rank;
  int64_t tiles[PESTLE_MAX_RANK];  // parts along each dim
  // Summands that each part is the sum of, each of a process; 1: it is the part.
  int64_t sums;
  int64_t copies;  // processes that have the same
  // Processes by part, the last dim fastest, then by summand, and then by copy.
  const int32_t* processes;
  int64_t count;
} pestle_sharding_t;

// A mesh that the module has: its name, and the text of its axes. Kept as module
// attribute sdy.mesh.NAME.
PESTLE_NODISCARD pestle_status_t pestle_module_add_mesh(pestle_module_t* module,
                                                        pestle_str_t name,
                                                        pestle_str_t text);
// That |text|, of which an attribute is made, reads as one: MALFORMED otherwise.
PESTLE_NODISCARD pestle_status_t pestle_sharding_check(pestle_module_t* module,
                                                       pestle_str_t text);
// Its text, or NULL.
const char* pestle_module_find_mesh(const pestle_module_t* module,
                                    pestle_str_t name);
bool pestle_module_has_mesh(const pestle_module_t* module);
// Of a module that runs on one device, or was divided.
PESTLE_NODISCARD pestle_status_t
pestle_module_drop_meshes(pestle_module_t* module);
// What has been read: without meshes for one device; for several, with shardings of
// XLA's as Shardy's.
PESTLE_NODISCARD pestle_status_t
pestle_module_settle_meshes(pestle_module_t* module);
// Entry |index| of a list of such texts, "[<..>, <..>]"; empty where there is none.
pestle_str_t pestle_sharding_of_list(pestle_str_t list, size_t index);
// The attributes of sdy.manual_computation: lists of such texts of what goes in and
// comes out, and the text of the axes that it is for each process along. Empty: not
// given.
typedef struct pestle_shardings_t {
  pestle_str_t in, out, axes;
} pestle_shardings_t;
pestle_shardings_t pestle_shardings_read(const pestle_generic_value_t* dict);
// XLA's text of it, in |arena|; NULL: out of memory.
const char* pestle_sharding_text(const pestle_sharding_t* sharding,
                                 pestle_arena_t* arena);

// Notes what parts argument or result |index| is, of which NULL says that every process
// has all of it; sdy.sharding goes. |arena| is for the time of the call.
PESTLE_NODISCARD pestle_status_t pestle_function_set_sharding(
    pestle_function_t* function, bool of_result, uint32_t index,
    const pestle_sharding_t* sharding, pestle_arena_t* arena);

// --- spread_parts.c ---

// The part that a process has of |type|.
pestle_type_t pestle_sharding_local(const pestle_sharding_t* sharding,
                                    const pestle_type_t* type);
// The part of |whole| that this process has.
pestle_value_t* pestle_sharding_slice(pestle_formula_t* f,
                                      pestle_value_t* whole,
                                      const pestle_sharding_t* sharding);
// What the processes have parts of, this one |part|, on all of them.
pestle_value_t* pestle_sharding_gather(pestle_formula_t* f,
                                       pestle_value_t* part,
                                       const pestle_sharding_t* sharding);

// --- sharding_gspmd.c ---

// "{devices=[4,1,2]<=[8] last_tile_dim_replicate}" of a tensor of |rank| dims, in a
// module of several partitions, as text of Shardy's, with a mesh of its own, that the
// module keeps. UNSUPPORTED: lists of devices, and others.
PESTLE_NODISCARD pestle_status_t
pestle_sharding_of_tiles(pestle_module_t* module, pestle_str_t text,
                         int32_t rank, const char** out_text);
// The same of every argument and result that has mhlo.sharding and no sdy.sharding.
PESTLE_NODISCARD pestle_status_t
pestle_module_read_tiles(pestle_module_t* module);

// --- spread_marks.c ---

// What front ends write, as ops by name that the pass `partition` takes away.
#define PESTLE_MARK_LOCAL "pestle.local"
#define PESTLE_MARK_GLOBAL "pestle.global"
#define PESTLE_MARK_WISH "pestle.sharding"

// Of sdy.manual_computation: a value as each process has it, and the value that such
// parts are; |sharding| is its text, and |axes| that of the list of axes that the
// computation is for each process along.
PESTLE_NODISCARD pestle_status_t pestle_mark_local(
    pestle_builder_t* builder, pestle_value_t* global, pestle_str_t sharding,
    pestle_str_t axes, const pestle_type_t* local, pestle_value_t** out_local);
PESTLE_NODISCARD pestle_status_t
pestle_mark_global(pestle_builder_t* builder, pestle_value_t* local,
                   pestle_str_t sharding, pestle_str_t axes,
                   const pestle_type_t* global, pestle_value_t** out_global);
// Of sdy.sharding_constraint: the value, which lies as |sharding| says.
PESTLE_NODISCARD pestle_status_t pestle_mark_wish(pestle_builder_t* builder,
                                                  pestle_value_t* value,
                                                  pestle_str_t sharding,
                                                  pestle_value_t** out_value);
// Whether |node| is one of these.
bool pestle_is_mark(const pestle_node_t* node);

#endif  // PESTLE_IR_SHARDING_H_
