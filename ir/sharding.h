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

// A mesh that the module has: its name, and the text of its axes.
PESTLE_NODISCARD pestle_status_t pestle_module_add_mesh(pestle_module_t* module,
                                                        pestle_str_t name,
                                                        pestle_str_t text);
// What |text| says of a tensor of |type|: "#sdy.sharding<@mesh, [..]>", or without
// what is before '<'. Where a list of axes follows, "<@mesh, [..]> {"x"}", it is what
// these alone say, and the value is whole along others. In |arena|. UNSUPPORTED:
// parts of axes, extents that are no multiples.
PESTLE_NODISCARD pestle_status_t pestle_sharding_parse(
    const pestle_module_t* module, pestle_str_t text, const pestle_type_t* type,
    pestle_arena_t* arena, pestle_sharding_t* out);
// Entry |index| of a list of such texts, "[<..>, <..>]"; empty where there is none.
pestle_str_t pestle_sharding_of_list(pestle_str_t list, size_t index);
// The attributes of sdy.manual_computation: lists of such texts of what goes in and
// comes out, and the text of the axes that it is for each process along. Empty: not
// given.
typedef struct pestle_shardings_t {
  pestle_str_t in, out, axes;
} pestle_shardings_t;
pestle_shardings_t pestle_shardings_read(const pestle_generic_value_t* dict);
bool pestle_sharding_equal(const pestle_sharding_t* a,
                           const pestle_sharding_t* b);
// The part that a process has of |type|.
pestle_type_t pestle_sharding_local(const pestle_sharding_t* sharding,
                                    const pestle_type_t* type);
// XLA's text of it, in |arena|; NULL: out of memory.
const char* pestle_sharding_text(const pestle_sharding_t* sharding,
                                 pestle_arena_t* arena);

// --- localise.c ---

// What front ends write for sdy.manual_computation: a value as each process has it,
// and the value that such parts are; |sharding| is its text, and |axes| that of the
// list of axes that the computation is for each process along.
PESTLE_NODISCARD pestle_status_t pestle_localise_enter(
    pestle_builder_t* builder, pestle_value_t* global, pestle_str_t sharding,
    pestle_str_t axes, const pestle_type_t* local, pestle_value_t** out_local);
PESTLE_NODISCARD pestle_status_t
pestle_localise_leave(pestle_builder_t* builder, pestle_value_t* local,
                      pestle_str_t sharding, pestle_str_t axes,
                      const pestle_type_t* global, pestle_value_t** out_global);
// Makes a module that was read for several partitions one that each of them runs:
// arguments, results and what computations take and give become the parts. An op
// outside of computations that wants a value in parts gets all of it, gathered once,
// and is done by every process; what is whole and is wanted in parts is sliced.
PESTLE_NODISCARD pestle_status_t
pestle_module_localise(pestle_module_t* module);

// --- localise_parts.c ---

// The part of |whole| that this process has.
pestle_value_t* pestle_sharding_slice(pestle_formula_t* f,
                                      pestle_value_t* whole,
                                      const pestle_sharding_t* sharding);
// The same, of numbers that are everywhere alike without a slice.
pestle_value_t* pestle_sharding_take(pestle_formula_t* f, pestle_value_t* whole,
                                     const pestle_sharding_t* sharding);
// What the processes have parts of, this one |part|, on all of them.
pestle_value_t* pestle_sharding_gather(pestle_formula_t* f,
                                       pestle_value_t* part,
                                       const pestle_sharding_t* sharding);

#endif  // PESTLE_IR_SHARDING_H_
