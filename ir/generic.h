// SPDX-License-Identifier: Apache-2.0
// An op as MLIR has it, a name, a dictionary of attributes, operands, regions
// and result types, and the node that it becomes. Readers of text and of
// bytecode decode what is written into the values below; what it means is here.
//
//   pestle_generic_t g;
//   pestle_generic_begin(&arena, op, &g);
//   pestle_generic_apply(&g, &properties);
//   pestle_generic_apply(&g, &discardable);
//   pestle_generic_create(&g, &builder, operands, 2, NULL, 0, types, 1, &node);
//   pestle_generic_layouts(&g, &node);
//
// On failure |g.at| is the value that is at fault, or NULL for the op as a whole,
// and the status says what is wrong, without the place: the reader knows it.
#ifndef PESTLE_IR_GENERIC_H_
#define PESTLE_IR_GENERIC_H_

#include "base/arena.h"
#include "ir/graph.h"

// A quantised element type: quant.h.
typedef struct pestle_quant_t pestle_quant_t;

// --- Attribute values ---

typedef enum pestle_generic_kind_e {
  PESTLE_GENERIC_UNIT,  // a key alone
  PESTLE_GENERIC_BOOL,
  PESTLE_GENERIC_INT,
  PESTLE_GENERIC_FLOAT,
  PESTLE_GENERIC_STRING,
  PESTLE_GENERIC_SYMBOL,
  PESTLE_GENERIC_WORD,  // a case of an enum: LT, TRANSPOSE
  PESTLE_GENERIC_LIST,  // [..], array<..>
  PESTLE_GENERIC_DICT,  // {..}, #stablehlo.gather<..>
  PESTLE_GENERIC_TYPE,
  PESTLE_GENERIC_FUNCTION,  // a function type
  PESTLE_GENERIC_ELEMENTS,
  PESTLE_GENERIC_CONV,    // convolution dimension numbers
  PESTLE_GENERIC_OPAQUE,  // nothing that an op here needs; |text| of a word
} pestle_generic_kind_t;

// Positions of a convolution's axes: batch, feature, spatial of the input;
// input feature, output feature, spatial of the kernel; batch, feature, spatial
// of the output.
typedef struct pestle_generic_conv_t {
  struct {
    int64_t first, second;
    int64_t space[PESTLE_MAX_RANK];
    size_t count;
  } side[3];
} pestle_generic_conv_t;

typedef struct pestle_generic_entry_t pestle_generic_entry_t;
typedef struct pestle_generic_value_t {
  pestle_generic_kind_t kind;
  uint32_t line, column;  // for the reader's messages; 0 for none
  bool b;
  int64_t i64;
  double f64;
  pestle_str_t text;   // STRING, SYMBOL (ended by 0), WORD; of a DICT, as whole
  pestle_str_t whole;  // the value as MLIR writes it, with its type
  pestle_type_t type;
  pestle_elements_t elements;
  pestle_generic_entry_t* entries;  // LIST (keys empty) and DICT
  size_t entry_count;
  // FUNCTION: of the text reader.
  struct pestle_parse_types_t *inputs, *outputs;
  const pestle_generic_conv_t* conv;
} pestle_generic_value_t;

struct pestle_generic_entry_t {
  pestle_str_t key;
  pestle_generic_value_t value;
  pestle_generic_entry_t* next;
};

// The value under |key|, or NULL.
const pestle_generic_value_t* pestle_generic_find(
    const pestle_generic_value_t* dict, const char* key);

// --- Ops ---

// What a reader is told of ops whose results have extents that values say.
typedef struct pestle_generic_shapes_t {
  // The value whose elements, or whose extents, an op could not be made without; the
  // status says so too. NULL: none.
  const pestle_value_t* wanted;
  // The module is read again with what is known of its arguments. Else a result that
  // turns out to have extents which its type is not written with is wanted, too.
  bool again;
} pestle_generic_shapes_t;

typedef struct pestle_generic_t {
  pestle_op_t op;
  pestle_arena_t* arena;  // of the reader: lists live until the node is made
  pestle_attr_t* attrs;
  size_t attr_count, attr_capacity;
  bool directed;  // a comparison whose direction was given
  bool total;     // a comparison of floats in total order
  bool by_name;   // a custom call that is a CUSTOM without a body
  // Of a custom call: its configuration, if that is a dictionary.
  const pestle_generic_value_t* configuration;
  const char* decomposition;  // of a composite: its function, in |arena|
  const pestle_generic_value_t* algorithm;  // of a product, a dictionary
  // What has no row of its own (built.h), and its attributes as they were written.
  const struct pestle_built_row_t* built;
  pestle_generic_entry_t *kept, **kept_end;
  bool lenient;  // unknown attributes are remarks of somebody's
  // Of a custom call whose tensors do not all lie as others do.
  const pestle_generic_entry_t *operand_layouts, *result_layouts;
  pestle_generic_shapes_t* shapes;  // of the reader, or NULL
  const pestle_generic_value_t* at;
} pestle_generic_t;

// The row that |name| ("stablehlo.add", "func.return") stands for; of
// comparisons the first. False when there is none.
bool pestle_generic_find_op(pestle_str_t name, pestle_op_t* out_op);

void pestle_generic_begin(pestle_arena_t* arena, pestle_op_t op,
                          pestle_generic_t* out_g);
// The same by name, of ops without a row too: those are made by
// pestle_generic_build() alone. False when nothing here is called |name|.
bool pestle_generic_begin_name(pestle_arena_t* arena, pestle_str_t name,
                               pestle_generic_t* out_g);
// Takes over the attributes of |dict| that the op has. UNSUPPORTED names one
// that it has not, unless it asks for nothing, has a dot, or |g->lenient| is set
// and no op has an attribute of that name.
PESTLE_NODISCARD pestle_status_t
pestle_generic_apply(pestle_generic_t* g, const pestle_generic_value_t* dict);
// One attribute, whose contents live as long as |g|.
PESTLE_NODISCARD pestle_status_t pestle_generic_push(pestle_generic_t* g,
                                                     const pestle_attr_t* attr);
PESTLE_NODISCARD pestle_status_t pestle_generic_push_conv(
    pestle_generic_t* g, const pestle_generic_conv_t* conv);
// The comparison that "LT" says, and "FLOAT", which says nothing new, or
// "TOTALORDER".
PESTLE_NODISCARD pestle_status_t pestle_generic_direct(pestle_generic_t* g,
                                                       pestle_str_t direction);
PESTLE_NODISCARD pestle_status_t pestle_generic_compare_as(pestle_generic_t* g,
                                                           pestle_str_t type);
// A product is at least as exact as any of the words in |list| asks for.
PESTLE_NODISCARD pestle_status_t
pestle_generic_precision(const pestle_generic_value_t* list);

// Makes the node. |types| are those that are written for the results; what the
// op's rule says counts. A composite gets its body later, see below.
PESTLE_NODISCARD pestle_status_t pestle_generic_create(
    pestle_generic_t* g, pestle_builder_t* builder,
    pestle_value_t* const* operands, size_t operand_count,
    pestle_region_t* const* regions, size_t region_count,
    const pestle_type_t* types, size_t type_count, pestle_node_t** out_node);
// Transposes what |*node|, a custom call, takes and makes where layouts other
// than row-major were given; |*node| becomes that which has its results.
PESTLE_NODISCARD pestle_status_t pestle_generic_layouts(pestle_generic_t* g,
                                                        pestle_node_t** node);

// Whether |g|, all of whose attributes are given, is for pestle_generic_build():
// an op without a row, or a custom call of a function that is one here.
bool pestle_generic_is_built(pestle_generic_t* g);
// Makes what any op means, layouts and all, and gives its results, |type_count|
// values in the arena. A composite, which needs its node, is for
// pestle_generic_create(). |regions| are taken over.
PESTLE_NODISCARD pestle_status_t
pestle_generic_build(pestle_generic_t* g, pestle_builder_t* builder,
                     pestle_value_t* const* operands, size_t operand_count,
                     pestle_region_t* const* regions, size_t region_count,
                     const pestle_type_t* types, size_t type_count,
                     pestle_value_t*** out_values);

// --- Parts, for readers of forms of their own ---

// What |value|, of the attribute |name|, is as |a->kind| says.
PESTLE_NODISCARD pestle_status_t
pestle_generic_convert(pestle_generic_t* g, const char* name,
                       const pestle_generic_value_t* value, pestle_attr_t* a);
// Integers of an array, a list or constant data, in the arena.
PESTLE_NODISCARD pestle_status_t
pestle_generic_i64s(pestle_generic_t* g, const pestle_generic_value_t* value,
                    pestle_i64s_t* out_values);

// --- Ops of CHLO ---
//
// Ops that no row stands for and that are kept by name: a CUSTOM whose body is a
// formula of other ops, so that a backend may have a kernel for the whole.

// Where such an op stands.
typedef struct pestle_generic_site_t {
  pestle_arena_t* arena;     // of the reader
  pestle_builder_t builder;  // with the op's location
  pestle_str_t name;
  pestle_value_t* const* operands;
  size_t operand_count;
  const pestle_type_t* types;  // written for the results
  size_t type_count;
} pestle_generic_site_t;

// The names of elementwise ones, NULL behind the last, and the row that takes and
// gives what each does.
const char* pestle_generic_chlo_name(size_t index);
pestle_op_t pestle_generic_chlo_base(size_t index);
// Puts the CUSTOM of |site|'s op, if it is such a one, in the place of |*node|,
// that of the row; |site->builder| is not used.
PESTLE_NODISCARD pestle_status_t
pestle_generic_chlo(const pestle_generic_site_t* site, pestle_node_t** node);
// chlo.top_k with its attribute.
PESTLE_NODISCARD pestle_status_t pestle_generic_top_k(
    const pestle_generic_site_t* site, int64_t k, pestle_node_t** out_node);
// chlo.ragged_dot with its attributes, a dictionary.
PESTLE_NODISCARD pestle_status_t pestle_generic_ragged_dot(
    const pestle_generic_site_t* site, const pestle_generic_value_t* dict,
    pestle_node_t** out_node);

// The body of such a CUSTOM.
typedef struct pestle_generic_wrap_t {
  pestle_region_t* region;
  pestle_builder_t inside;  // of the body; without a location, see below
  pestle_value_t** arguments;
} pestle_generic_wrap_t;
// Begins it: its arguments are what |site->operands| are outside. Ops in it have no
// location: where the body is inlined they get that of the CUSTOM.
PESTLE_NODISCARD pestle_status_t pestle_generic_wrap_begin(
    const pestle_generic_site_t* site, pestle_generic_wrap_t* out_wrap);
// Ends it with |results| and makes the CUSTOM; |attributes| is the text of a
// dictionary or empty.
PESTLE_NODISCARD pestle_status_t pestle_generic_wrap_end(
    const pestle_generic_site_t* site, pestle_generic_wrap_t* wrap,
    pestle_str_t attributes, pestle_value_t* const* results, size_t count,
    pestle_node_t** out_node);

// --- Ports and what dialects say ---

// What is noted of an argument or result beside its type.
typedef struct pestle_generic_port_t {
  const char* name;   // pestle.name, or NULL
  uint32_t shape_of;  // pestle.shape_of + 1, or 0
  pestle_dialect_attrs_t attrs;
} pestle_generic_port_t;
// What |dict| says; texts are those of its values as |whole|. In |arena|.
PESTLE_NODISCARD pestle_status_t
pestle_generic_port(pestle_arena_t* arena, const pestle_generic_value_t* dict,
                    pestle_generic_port_t* out_port);
// The entries of |dict| that the module keeps, in |arena|.
PESTLE_NODISCARD pestle_status_t
pestle_generic_kept(pestle_arena_t* arena, const pestle_generic_value_t* dict,
                    pestle_dialect_attrs_t* out_attrs);
// Gives a function what is noted of its arguments (but their names, which it
// was made with) and results.
PESTLE_NODISCARD pestle_status_t pestle_generic_set_ports(
    pestle_function_t* function, const pestle_generic_port_t* arguments,
    size_t argument_count, const pestle_generic_port_t* results,
    size_t result_count);

// --- Text in other files ---

// Reads |text|, one attribute as MLIR writes it, into |arena|. MALFORMED, UNSUPPORTED.
PESTLE_NODISCARD pestle_status_t pestle_generic_parse_value(
    pestle_context_t* context, pestle_arena_t* arena, pestle_str_t text,
    pestle_generic_value_t* out_value);

// --- Bodies of composites ---

// A composite whose body is still to be made; those of one function are
// neighbours.
typedef struct pestle_generic_composite_t {
  pestle_node_t* node;
  const char* decomposition;
  uint32_t line, column;
} pestle_generic_composite_t;

// Gives the composites their bodies, copies of the functions, and drops the
// functions that nothing else needs. Call it when all functions are there.
// |*out_at| is the one that a failure is about, or NULL.
PESTLE_NODISCARD pestle_status_t pestle_generic_attach_bodies(
    pestle_module_t* module, const pestle_generic_composite_t* composites,
    size_t count, const pestle_generic_composite_t** out_at);

// --- Functions that custom calls are given ---

// Puts texts of modules in the place of their names, once all functions are there.
PESTLE_NODISCARD pestle_status_t
pestle_generic_attach_computations(pestle_module_t* module);

#endif  // PESTLE_IR_GENERIC_H_
