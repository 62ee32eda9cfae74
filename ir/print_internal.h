// SPDX-License-Identifier: Apache-2.0
// What the files of the printer share.
#ifndef PESTLE_IR_PRINT_INTERNAL_H_
#define PESTLE_IR_PRINT_INTERNAL_H_

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "ir/graph.h"
#include "ir/print_bodies.h"

// The names of the values of a body: %0, %1 ... for results in the order of the
// text, an op's regions after the whole block that it stands in (as MLIR
// counts, so that sibling regions begin with one number), %arg0 ... for
// arguments, and wishes (value->name) where a value has one, made unique by a
// suffix.
typedef struct pestle_print_names_t {
  pestle_arena_t arena;
  pestle_map_t name_of;  // node or block argument -> text
  pestle_map_t taken;    // wishes in use
} pestle_print_names_t;

void pestle_print_names_init(pestle_allocator_t allocator,
                             pestle_print_names_t* out_names);
void pestle_print_names_deinit(pestle_print_names_t* names);
// Names everything in |body|, a function's or a CUSTOM's, forgetting what was
// named before.
PESTLE_NODISCARD pestle_status_t pestle_print_names_assign(
    pestle_print_names_t* names, const pestle_region_t* body);
// "%3", "%3#1" or "%arg0".
void pestle_print_value(const pestle_print_names_t* names,
                        const pestle_value_t* value, pestle_strbuf_t* out);
// "%3 = " or "%3:2 = ", or nothing for an op without results.
void pestle_print_results(const pestle_print_names_t* names,
                          const pestle_node_t* node, pestle_strbuf_t* out);

// --- Ops (print.c) ---

typedef struct pestle_printer_t {
  pestle_strbuf_t* out;
  unsigned flags;
  pestle_print_names_t names;
  pestle_print_bodies_t bodies;
} pestle_printer_t;
// "A" or "(A, B)".
void pestle_print_result_types(pestle_printer_t* p, const pestle_node_t* node);
// A line or more, indented by |depth|; |in_function|: its block is a function's.
void pestle_print_node(pestle_printer_t* p, const pestle_node_t* node,
                       int depth, bool in_function);

// --- Attributes ---

// "dense<..>", without the type.
void pestle_print_elements(const pestle_elements_t* elements, unsigned flags,
                           pestle_strbuf_t* out);
// "1, 2, 3"
void pestle_print_i64s(pestle_i64s_t values, pestle_strbuf_t* out);
// "dim = 0" or "dims = [0, 1]".
void pestle_print_keyword(const pestle_node_t* node, const char* keyword,
                          uint16_t attr, pestle_strbuf_t* out);
// " <{..}>" with the attributes that differ from their defaults, as the generic
// form has them, or nothing.
void pestle_print_properties(const pestle_node_t* node, unsigned flags,
                             pestle_strbuf_t* out);
// " {..}" of a custom call, whose name stands elsewhere; or nothing.
void pestle_print_custom_dict(const pestle_node_t* node, pestle_strbuf_t* out);
// "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
void pestle_print_conv_dims(const pestle_node_t* node, pestle_strbuf_t* out);
// "[[1, 1], [0, 0]]" from pairs.
void pestle_print_pairs(pestle_i64s_t values, pestle_strbuf_t* out);
void pestle_print_bools(pestle_i64s_t values, pestle_strbuf_t* out);
// "name", quoted when it is no plain identifier, and "@name".
void pestle_print_word(const char* name, pestle_strbuf_t* out);
void pestle_print_symbol(const char* name, pestle_strbuf_t* out);

#endif  // PESTLE_IR_PRINT_INTERNAL_H_
