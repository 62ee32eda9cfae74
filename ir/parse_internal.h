// SPDX-License-Identifier: Apache-2.0
// What the files of the parser share. The text is read once from left to right
// with one token of look-ahead (function bodies are skipped first, so that
// calls may come before their callees); nothing is allocated for a count that
// the text does not back.
#ifndef PESTLE_IR_PARSE_INTERNAL_H_
#define PESTLE_IR_PARSE_INTERNAL_H_

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "ir/again.h"
#include "ir/generic.h"
#include "ir/graph.h"

// Brackets, regions and attributes nested deeper than this are refused.
#define PESTLE_PARSE_MAX_DEPTH 100

// --- Tokens ---

typedef enum pestle_token_kind_e {
  PESTLE_TOKEN_END,
  PESTLE_TOKEN_WORD,    // add, stablehlo.add
  PESTLE_TOKEN_VALUE,   // %name; |index| for %name#1, else -1
  PESTLE_TOKEN_SYMBOL,  // @name, @"name"
  PESTLE_TOKEN_HASH,    // #name
  PESTLE_TOKEN_BANG,    // !name
  PESTLE_TOKEN_CARET,   // ^name
  PESTLE_TOKEN_STRING,  // "..", |text| without the quotes, escapes as written
  PESTLE_TOKEN_INT,     // decimal or 0x; the sign belongs to it
  PESTLE_TOKEN_FLOAT,
  PESTLE_TOKEN_ARROW,  // ->
  PESTLE_TOKEN_PUNCTUATION,
  PESTLE_TOKEN_BAD,  // a byte that starts nothing, or a string without end
} pestle_token_kind_t;

typedef struct pestle_token_t {
  uint8_t kind;        // pestle_token_kind_t
  char sign;           // the character of PUNCTUATION, else 0
  bool first;          // on its line
  bool quoted;         // a SYMBOL that was written as a string
  int64_t index;       // of VALUE
  pestle_str_t text;   // without its prefix
  pestle_str_t whole;  // as written
  uint32_t line, column;
} pestle_token_t;

// A place to go back to.
typedef struct pestle_lexer_t {
  const char* cursor;  // behind |token|
  const char* line_start;
  uint32_t line;
  bool fresh;            // no token on this line yet
  const char* taken;     // the end of the token before the look-ahead
  pestle_token_t token;  // look-ahead
} pestle_lexer_t;

// --- The parser ---

// A location as read; |alias| gives what is missing once all aliases are known.
typedef struct pestle_parse_loc_t {
  pestle_str_t name, file, alias;  // empty where none
  uint32_t line, column;
} pestle_parse_loc_t;

typedef struct pestle_parse_fixup_t {
  pestle_node_t* node;
  pestle_parse_loc_t loc;
} pestle_parse_fixup_t;

// A value as it is written: a tensor, or a tuple of several.
typedef struct pestle_parse_part_t {
  pestle_value_t** leaves;
  size_t count;
  const char* nest;  // of pestle_parse_form_t; NULL of a tensor
} pestle_parse_part_t;

// What a name stands for: |count| results of one op, or one argument.
typedef struct pestle_parse_binding_t {
  pestle_str_t name;
  pestle_value_t* values;
  size_t count;
  const pestle_parse_part_t* parts;  // instead of |values| if not NULL
} pestle_parse_binding_t;

// A function whose body is still to be read.
typedef struct pestle_parse_body_t {
  pestle_function_t* function;
  pestle_lexer_t start;       // at the body's opening brace
  const pestle_str_t* names;  // of the arguments; NULL: in ^bb0
  const char** nests;         // of each name
  size_t name_count;
} pestle_parse_body_t;

typedef struct pestle_parser_t {
  pestle_context_t* context;
  pestle_allocator_t allocator;
  const char* file;
  const char *begin, *end;
  pestle_lexer_t lexer;
  int depth;
  bool allows_index;            // data of attributes: read as i64
  bool signatures_only;         // bodies stay unread
  const pestle_again_t* again;  // or NULL
  const pestle_quant_t* quant;  // of the type that was read last
  pestle_generic_shapes_t shapes;
  size_t op_count;         // read by calls
  pestle_arena_t scratch;  // rewound after each op
  pestle_arena_t kept;     // until the end
  pestle_module_t* module;
  pestle_map_t ops;    // mlir name -> pestle_op_t
  pestle_map_t scope;  // value name -> index into |bindings|
  PESTLE_VEC(pestle_parse_binding_t) bindings;
  pestle_map_t aliases;  // location alias -> pestle_parse_loc_t*
  pestle_map_t words;    // other alias with its sign -> pestle_lexer_t*
  PESTLE_VEC(pestle_parse_fixup_t) fixups;
  PESTLE_VEC(pestle_parse_body_t) bodies;
  PESTLE_VEC(pestle_generic_composite_t) composites;  // by function, in order
} pestle_parser_t;

// --- parse_lex.c ---

// Reads the next token into |p->lexer.token|.
void pestle_parse_advance(pestle_parser_t* p);
static inline const pestle_token_t* pestle_parse_token(
    const pestle_parser_t* p) {
  return &p->lexer.token;
}
static inline bool pestle_parse_at(const pestle_parser_t* p, char sign) {
  return p->lexer.token.sign == sign;
}
static inline bool pestle_parse_at_kind(const pestle_parser_t* p,
                                        pestle_token_kind_t kind) {
  return p->lexer.token.kind == kind;
}
bool pestle_parse_at_word(const pestle_parser_t* p, const char* word);
// At a string, or a name in quotes, without an end on its line.
bool pestle_parse_at_open_string(const pestle_parser_t* p);
// Takes the token when it is |sign| (|word|) and says whether it was.
bool pestle_parse_take(pestle_parser_t* p, char sign);
bool pestle_parse_take_word(pestle_parser_t* p, const char* word);
// The same, or MALFORMED that says what stands there instead.
PESTLE_NODISCARD pestle_status_t pestle_parse_expect(pestle_parser_t* p,
                                                     char sign);
PESTLE_NODISCARD pestle_status_t pestle_parse_expect_word(pestle_parser_t* p,
                                                          const char* word);
PESTLE_NODISCARD pestle_status_t pestle_parse_expect_arrow(pestle_parser_t* p);
PESTLE_NODISCARD pestle_status_t pestle_parse_integer(pestle_parser_t* p,
                                                      int64_t* out_value);
// A STRING token without quotes and escapes, with a terminator, in |arena|.
PESTLE_NODISCARD pestle_status_t pestle_parse_string(pestle_parser_t* p,
                                                     pestle_arena_t* arena,
                                                     pestle_str_t* out_text);
PESTLE_NODISCARD pestle_status_t pestle_parse_symbol(pestle_parser_t* p,
                                                     pestle_arena_t* arena,
                                                     pestle_str_t* out_text);
// "file:3:5: expected .., found '..'".
PESTLE_NODISCARD pestle_status_t pestle_parse_expected(const pestle_parser_t* p,
                                                       const char* what);
// A status at a token.
PESTLE_NODISCARD PESTLE_PRINTF(4, 5) pestle_status_t
    pestle_parse_error(const pestle_parser_t* p, const pestle_token_t* at,
                       pestle_status_code_t code, const char* format, ...);
// |status|, which it takes over, with the place |at| before its message: what
// the graph objects to is a fault of the text.
PESTLE_NODISCARD pestle_status_t pestle_parse_place(const pestle_parser_t* p,
                                                    const pestle_token_t* at,
                                                    pestle_status_t status);
// Skips a bracketed part whose opening sign is the token; |angles| counts < >
// as brackets too.
PESTLE_NODISCARD pestle_status_t pestle_parse_skip_brackets(pestle_parser_t* p,
                                                            bool angles);
PESTLE_NODISCARD pestle_status_t pestle_parse_enter(pestle_parser_t* p);
static inline void pestle_parse_leave(pestle_parser_t* p) {
  --p->depth;
}

// --- parse_type.c ---

// PESTLE_NONE: no dtype is called so.
pestle_dtype_t pestle_parse_dtype_name(pestle_str_t name);
PESTLE_NODISCARD pestle_status_t pestle_parse_type(pestle_parser_t* p,
                                                   pestle_type_t* out_type);
// How a type is written: one tensor, or a tuple of |leaves| tensors that |nest|
// has as "(tt(t))", where a token is "()".
typedef struct pestle_parse_form_t {
  const char* nest;  // NULL of a tensor
  size_t leaves;
} pestle_parse_form_t;

// Tuples are taken apart as they are read: |data| has their tensors.
typedef struct pestle_parse_types_t {
  pestle_type_t* data;  // in the scratch arena
  size_t count, capacity;
  const pestle_quant_t** quants;  // of each type, NULL where it has none
  size_t quant_capacity;
  bool quantised;              // some is not NULL
  pestle_parse_form_t* forms;  // of what was read as types, in order
  size_t form_count, form_capacity;
  bool nested;  // some form is no tensor
} pestle_parse_types_t;
PESTLE_NODISCARD pestle_status_t pestle_parse_push_type(
    pestle_parser_t* p, pestle_parse_types_t* types, const pestle_type_t* type);
// The same of a type whose elements are quantised, unless |quant| is NULL.
PESTLE_NODISCARD pestle_status_t
pestle_parse_push_quant(pestle_parser_t* p, pestle_parse_types_t* types,
                        const pestle_type_t* type, const pestle_quant_t* quant);
// A tensor, a tuple or a token.
PESTLE_NODISCARD pestle_status_t
pestle_parse_type_form(pestle_parser_t* p, pestle_parse_types_t* types);
// "A, B" without brackets, at least one.
PESTLE_NODISCARD pestle_status_t
pestle_parse_type_list(pestle_parser_t* p, pestle_parse_types_t* types);
// "(A, B) -> C" or "(A, B) -> (C, D)".
PESTLE_NODISCARD pestle_status_t
pestle_parse_function_type(pestle_parser_t* p, pestle_parse_types_t* operands,
                           pestle_parse_types_t* results);

// --- parse_elements.c ---

// "dense<..> : type" from the word "dense" on. Data in the scratch arena.
PESTLE_NODISCARD pestle_status_t
pestle_parse_dense(pestle_parser_t* p, pestle_elements_t* out_elements);

// --- parse_attr.c ---

PESTLE_NODISCARD pestle_status_t
pestle_parse_value(pestle_parser_t* p, pestle_generic_value_t* out_value);
// "{..}" or, with |close| '>', what stands between < and >; the token is the
// opening sign.
PESTLE_NODISCARD pestle_status_t pestle_parse_dict(
    pestle_parser_t* p, char close, pestle_generic_value_t* out_value);
PESTLE_NODISCARD pestle_status_t
pestle_parse_conv_dims(pestle_parser_t* p, pestle_generic_conv_t* out_conv);
// "[1, 2]" of integers or booleans; "[[0, 1], [2, 3]]" too, flattened.
PESTLE_NODISCARD pestle_status_t pestle_parse_i64s(pestle_parser_t* p,
                                                   pestle_i64s_t* out_values);

// --- parse_loc.c ---

// "loc(..)" when the token is the word loc; else nothing happens and
// |*out_found| is false.
PESTLE_NODISCARD pestle_status_t pestle_parse_loc(pestle_parser_t* p,
                                                  pestle_parse_loc_t* out_loc,
                                                  bool* out_found);
// A location that nobody keeps.
PESTLE_NODISCARD pestle_status_t pestle_parse_skip_loc(pestle_parser_t* p);
// "loc(..)" after |node|.
PESTLE_NODISCARD pestle_status_t pestle_parse_node_loc(pestle_parser_t* p,
                                                       pestle_node_t* node);
// "#name = .." or "!name = .." at module level.
PESTLE_NODISCARD pestle_status_t pestle_parse_alias(pestle_parser_t* p);
// Whether the token is an alias that is known: then it is taken, the lexer goes to
// what it stands for, and |*out_back| is where to go on afterwards.
bool pestle_parse_enter_alias(pestle_parser_t* p, pestle_lexer_t* out_back);
// Gives every node its location.
PESTLE_NODISCARD pestle_status_t pestle_parse_resolve_locs(pestle_parser_t* p);

// --- parse_op.c ---

// An op on its way from text to node.
typedef struct pestle_parse_op_t {
  pestle_generic_t g;
  pestle_token_t at;  // its name
  pestle_builder_t* builder;
  pestle_value_t** operands;
  size_t operand_count, operand_capacity;
  pestle_parse_form_t* forms;  // of the operands as they are written
  size_t form_count, form_capacity;
  bool typed;  // |operand_types| were written
  pestle_parse_types_t operand_types, result_types;
  pestle_region_t** regions;
  size_t region_count, region_capacity;
} pestle_parse_op_t;

// |status| of ir/generic.h about |o| or one of its attributes, with its place.
PESTLE_NODISCARD pestle_status_t pestle_parse_placed(const pestle_parser_t* p,
                                                     const pestle_parse_op_t* o,
                                                     pestle_status_t status);
// One as it is written: all tensors of a tuple.
PESTLE_NODISCARD pestle_status_t
pestle_parse_push_operand(pestle_parser_t* p, pestle_parse_op_t* o);
// "%a, %b", possibly none.
PESTLE_NODISCARD pestle_status_t pestle_parse_operands(pestle_parser_t* p,
                                                       pestle_parse_op_t* o);
PESTLE_NODISCARD pestle_status_t pestle_parse_push_attr(
    pestle_parser_t* p, pestle_parse_op_t* o, const pestle_attr_t* attr);
// Takes over the attributes of a dictionary that the op knows.
PESTLE_NODISCARD pestle_status_t
pestle_parse_apply_dict(pestle_parser_t* p, pestle_parse_op_t* o,
                        const pestle_generic_value_t* dict);
PESTLE_NODISCARD pestle_status_t pestle_parse_push_region(
    pestle_parser_t* p, pestle_parse_op_t* o, pestle_region_t* region);
// Types behind a colon, in any of the ways that StableHLO writes them.
PESTLE_NODISCARD pestle_status_t pestle_parse_op_types(pestle_parser_t* p,
                                                       pestle_parse_op_t* o);
// Checks operand types against the text.
PESTLE_NODISCARD pestle_status_t pestle_parse_check_operands(
    const pestle_parser_t* p, const pestle_parse_op_t* o);
// Checks operand types against the text and creates the node.
PESTLE_NODISCARD pestle_status_t pestle_parse_finish(pestle_parser_t* p,
                                                     pestle_parse_op_t* o,
                                                     pestle_node_t** out_node);
// Where a return goes that is read in the place of a call: |values| has room for
// |count|, or, where |any| number may be returned, is made for it.
typedef struct pestle_parse_return_t {
  pestle_value_t** values;
  size_t count;
  bool any;
  bool seen;
} pestle_parse_return_t;
// One op. |function|: see below. A return goes to |end|, if that is not NULL.
PESTLE_NODISCARD pestle_status_t
pestle_parse_one(pestle_parser_t* p, pestle_builder_t* builder,
                 const pestle_function_t* function, pestle_parse_return_t* end);
// Ops up to '}', which is taken. |results| are the types that a function's
// return must have; NULL in regions.
PESTLE_NODISCARD pestle_status_t
pestle_parse_ops(pestle_parser_t* p, pestle_block_t* block,
                 const pestle_function_t* function);
// The op named |name|; UNSUPPORTED when there is none.
PESTLE_NODISCARD pestle_status_t pestle_parse_op_name(pestle_parser_t* p,
                                                      const pestle_token_t* at,
                                                      pestle_op_t* out_op);
// Names a value until its scope ends.
PESTLE_NODISCARD pestle_status_t pestle_parse_bind(pestle_parser_t* p,
                                                   const pestle_token_t* at,
                                                   pestle_str_t name,
                                                   pestle_value_t* values,
                                                   size_t count);
// The same of |count| values as they are written, each of |forms|, whose tensors
// are |leaves| one after the other.
PESTLE_NODISCARD pestle_status_t pestle_parse_bind_forms(
    pestle_parser_t* p, const pestle_token_t* at, pestle_str_t name,
    pestle_value_t** leaves, const pestle_parse_form_t* forms, size_t count);
size_t pestle_parse_scope_begin(pestle_parser_t* p);
void pestle_parse_scope_end(pestle_parser_t* p, size_t mark);

// --- parse_tuple.c ---

// Ops that are resolved as they are read: tuples, tokens, an extent. The names end
// with NULL.
const char* pestle_parse_tuple_name(size_t index);
bool pestle_parse_is_tuple(pestle_str_t name);
// What follows the name of |o|; its one result is bound to |name|, if not NULL.
PESTLE_NODISCARD pestle_status_t pestle_parse_tuple(pestle_parser_t* p,
                                                    pestle_parse_op_t* o,
                                                    bool generic,
                                                    const pestle_token_t* name);

// --- parse_again.c ---

// The body of |callee| on the operands of |o|, at the end of |o|'s block;
// |*out_values| are what it returns.
PESTLE_NODISCARD pestle_status_t pestle_parse_inline(
    pestle_parser_t* p, pestle_parse_op_t* o, const char* callee,
    pestle_value_t*** out_values, size_t* out_count);
// Bodies, after the functions were declared, by |p->again|.
PESTLE_NODISCARD pestle_status_t pestle_parse_read_again(pestle_parser_t* p);

// --- parse_built.c ---

// What follows the name of an op without a row, in its short form.
PESTLE_NODISCARD pestle_status_t pestle_parse_built_form(pestle_parser_t* p,
                                                         pestle_parse_op_t* o);
// Names |values|, the results of |o|, as below.
PESTLE_NODISCARD pestle_status_t pestle_parse_bind_values(
    pestle_parser_t* p, const pestle_parse_op_t* o, const pestle_token_t* names,
    const int64_t* counts, size_t name_count, pestle_value_t** values,
    size_t value_count);
// Makes what |o| means and binds its results to |names|, each of which stands for
// as many as |counts| says; takes the location behind it.
PESTLE_NODISCARD pestle_status_t pestle_parse_built(pestle_parser_t* p,
                                                    pestle_parse_op_t* o,
                                                    const pestle_token_t* names,
                                                    const int64_t* counts,
                                                    size_t name_count);

// --- parse_composite.c ---

// "name" %0, %1 {decomposition = @f, ..}
PESTLE_NODISCARD pestle_status_t pestle_parse_composite(pestle_parser_t* p,
                                                        pestle_parse_op_t* o);
// |node| gets its body when all functions are read.
PESTLE_NODISCARD pestle_status_t pestle_parse_note_composite(
    pestle_parser_t* p, const pestle_parse_op_t* o, pestle_node_t* node);
// Where |o| stands, whose operands are checked against the types that are written.
PESTLE_NODISCARD pestle_status_t
pestle_parse_site(const pestle_parser_t* p, const pestle_parse_op_t* o,
                  pestle_generic_site_t* out_site);
// Gives composites their bodies and drops the functions that nothing else needs.
PESTLE_NODISCARD pestle_status_t pestle_parse_attach_bodies(pestle_parser_t* p);

// --- parse_ragged.c ---

// What follows the name chlo.ragged_dot, and the node that has its result.
PESTLE_NODISCARD pestle_status_t pestle_parse_ragged_dot(pestle_parser_t* p,
                                                         pestle_parse_op_t* o,
                                                         pestle_node_t** out);

// --- parse_scan.c ---

// What follows the name chlo.scan.
PESTLE_NODISCARD pestle_status_t pestle_parse_scan_form(pestle_parser_t* p,
                                                        pestle_parse_op_t* o);

// --- parse_sdy.c ---

// What follows the name of an op of Shardy without a region.
PESTLE_NODISCARD pestle_status_t pestle_parse_sdy_form(pestle_parser_t* p,
                                                       pestle_parse_op_t* o);
// Whether an op of this name is its region.
bool pestle_parse_is_computation(pestle_str_t name);
// What follows that name: its ops go to |o|'s builder, and what they return is in
// |out_end|.
PESTLE_NODISCARD pestle_status_t
pestle_parse_computation(pestle_parser_t* p, pestle_parse_op_t* o, bool generic,
                         pestle_parse_return_t* out_end);

// --- parse_top_k.c ---

// What follows the name chlo.top_k, and the node that has its two results.
PESTLE_NODISCARD pestle_status_t pestle_parse_top_k(pestle_parser_t* p,
                                                    pestle_parse_op_t* o,
                                                    bool generic,
                                                    pestle_node_t** out);

// --- parse_region.c ---

// Names and types of block arguments as they are read.
typedef struct pestle_parse_arguments_t {
  pestle_token_t* names;  // VALUE tokens, in the scratch arena
  size_t name_capacity;
  pestle_parse_types_t types;
} pestle_parse_arguments_t;
// "%arg0:", whose name goes to |a->names[at]|.
PESTLE_NODISCARD pestle_status_t pestle_parse_argument_name(
    pestle_parser_t* p, pestle_parse_arguments_t* a, size_t at);
// "(%a: A, %b: B)"; more than once to append.
PESTLE_NODISCARD pestle_status_t
pestle_parse_arguments(pestle_parser_t* p, pestle_parse_arguments_t* arguments);
PESTLE_NODISCARD pestle_status_t pestle_parse_bind_argument(
    pestle_parser_t* p, const pestle_token_t* at, pestle_value_t* value);
// Binds a block's arguments and gives them their wished names.
PESTLE_NODISCARD pestle_status_t pestle_parse_bind_arguments(
    pestle_parser_t* p, const pestle_token_t* names, pestle_block_t* block);
// "{ ops }" with known arguments, or with "^bb0(..):" when |arguments| is NULL.
PESTLE_NODISCARD pestle_status_t
pestle_parse_region(pestle_parser_t* p, pestle_parse_op_t* o,
                    const pestle_parse_arguments_t* arguments);
PESTLE_NODISCARD pestle_status_t pestle_parse_while(pestle_parser_t* p,
                                                    pestle_parse_op_t* o);
PESTLE_NODISCARD pestle_status_t pestle_parse_reduce(pestle_parser_t* p,
                                                     pestle_parse_op_t* o);

// --- parse_form.c ---

// "{..} : types", the dictionary if it is there.
PESTLE_NODISCARD pestle_status_t
pestle_parse_types_after_dict(pestle_parser_t* p, pestle_parse_op_t* o);
// What follows an op's unquoted name, up to its types.
PESTLE_NODISCARD pestle_status_t pestle_parse_pretty(pestle_parser_t* p,
                                                     pestle_parse_op_t* o);

// --- parse_generic.c ---

// What follows an op's quoted name.
PESTLE_NODISCARD pestle_status_t pestle_parse_generic(pestle_parser_t* p,
                                                      pestle_parse_op_t* o);
// Takes over the attributes of a dictionary that the op knows.
PESTLE_NODISCARD pestle_status_t
pestle_parse_apply_dict(pestle_parser_t* p, pestle_parse_op_t* o,
                        const pestle_generic_value_t* dict);
// Doubles an array in the scratch arena; |*data| is a pointer to elements.
PESTLE_NODISCARD pestle_status_t pestle_parse_grow(pestle_parser_t* p,
                                                   void* data, size_t count,
                                                   size_t* capacity,
                                                   size_t element_size);

#endif  // PESTLE_IR_PARSE_INTERNAL_H_
