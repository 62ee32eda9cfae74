// SPDX-License-Identifier: Apache-2.0
// What the files of the fuse pass share. One fuse_t per block: items are the
// block's nodes in order, groups are sets of items that become one fusion.
//
// Invariants:
//  1. node->scratch of the block's nodes is the item's number.
//  2. Groups never depend on each other in a circle: an item joins a group only
//     when no path leaves the group and comes back through it.
//  3. A floating item belongs to no group: each group that uses it has a copy.
#ifndef PESTLE_PASSES_FUSE_H_
#define PESTLE_PASSES_FUSE_H_

#include "base/vec.h"
#include "passes/extents.h"
#include "passes/util.h"

#define PESTLE_FUSE_NONE UINT32_MAX

typedef enum pestle_fuse_kind_e {
  PESTLE_FUSE_KIND_MAP,     // elementwise ops and views only
  PESTLE_FUSE_KIND_ROW,     // reductions over one set of axes
  PESTLE_FUSE_KIND_WINDOW,  // one reduce_window
  PESTLE_FUSE_KIND_DOT,     // one contraction, or one attention
  PESTLE_FUSE_KIND_ALONE,   // takes nothing else
} pestle_fuse_kind_t;

// Why an op is not taken; NONE: it is.
typedef enum pestle_fuse_reason_e {
  PESTLE_FUSE_REASON_NONE,
#define PESTLE_FUSE_REASON(ID, ...) PESTLE_FUSE_REASON_##ID,
#include "passes/fuse_reasons.def"
} pestle_fuse_reason_t;

typedef struct pestle_fuse_item_t {
  pestle_node_t* node;
  uint32_t group;      // or NONE
  uint32_t next;       // member of the group, or NONE
  uint32_t stamp;      // of the last search that saw it
  uint32_t dep_begin;  // into fuse_t.deps; ends where the next item's begins
  bool floating;
  bool emitted;   // what it makes stands in front of what is emitted now
  bool repeated;  // evaluated more often than it has elements
  // Different places at which the group reads the value for one element of its
  // result: views multiply them, and so the code. 0 counts as 1.
  uint32_t copies;
  uint8_t side;  // operand of a contraction or window that it makes, + 1
} pestle_fuse_item_t;

typedef struct pestle_fuse_group_t {
  pestle_fuse_kind_t kind;
  uint32_t hero;          // item, or NONE
  uint32_t first, count;  // members, newest first
  uint32_t min, max;      // items
  uint32_t repeated;      // members that are evaluated again and again
  uint32_t operands;      // of all members together
  bool dead;              // merged into another
  bool one_reduction;     // ROW: one reduction, so producers are evaluated once
  const pestle_type_t* domain;  // shape that epilogue and row ops have
  pestle_i64s_t axes;           // ROW: reduced axes of |domain|
  const pestle_node_t* fusion;  // what emission made of it
} pestle_fuse_group_t;

// That |item| was refused by the group that |member| was in then.
typedef struct pestle_fuse_note_t {
  uint32_t item, member;
  pestle_fuse_reason_t why;
} pestle_fuse_note_t;

typedef struct pestle_fuse_pair_t {
  uint32_t from, to;  // groups
} pestle_fuse_pair_t;

typedef struct pestle_fuse_t {
  pestle_pass_context_t* ctx;
  pestle_module_t* module;
  pestle_block_t* block;
  pestle_allocator_t allocator;
  pestle_fuse_item_t* items;
  uint32_t item_count;
  uint32_t* deps;  // items that an item needs, captures of its regions too
  pestle_fuse_group_t* groups;
  uint32_t group_count;
  uint32_t* stack;  // of searches
  pestle_extents_t extents;
  uint32_t stamp;
  // Place i, before item i, leads to the last place at or before it that no
  // group lies across: union-find, since groups only grow.
  uint32_t* closed;
  // Empty unless remarks are wanted.
  PESTLE_VEC(pestle_fuse_note_t) notes;
  PESTLE_VEC(pestle_fuse_pair_t) pairs;  // of this block's remarks, in order
} pestle_fuse_t;

// --- fuse_graph.c: items, groups, paths ---

PESTLE_NODISCARD pestle_status_t pestle_fuse_init(pestle_fuse_t* f);
// The item that defines |value| in this block, or NONE.
uint32_t pestle_fuse_item_of(const pestle_fuse_t* f,
                             const pestle_value_t* value);
static inline pestle_node_t* pestle_fuse_node(const pestle_fuse_t* f,
                                              uint32_t item) {
  return f->items[item].node;
}
uint32_t pestle_fuse_new_group(pestle_fuse_t* f, uint32_t item,
                               pestle_fuse_kind_t kind);
void pestle_fuse_add(pestle_fuse_t* f, uint32_t group, uint32_t item);
// Whether |item|, or the group that it is in, needs a result of |group|. Gives
// up after a bounded search and then says yes.
bool pestle_fuse_depends(pestle_fuse_t* f, uint32_t item, uint32_t group);
// Whether |group| needs a result of |item| by a way that leaves the group.
bool pestle_fuse_group_depends(pestle_fuse_t* f, uint32_t group, uint32_t item);

// Who uses an item's results.
enum { PESTLE_FUSE_MAX_USERS = 32 };
typedef struct pestle_fuse_users_t {
  uint32_t groups[PESTLE_FUSE_MAX_USERS];  // distinct; floating users count as
  uint32_t count;                          // the groups that they float into
  bool outside;  // an op without group, the block's end, or a region inside
  bool many;     // more groups than fit
} pestle_fuse_users_t;
void pestle_fuse_find_users(const pestle_fuse_t* f, uint32_t item,
                            pestle_fuse_users_t* out_users);

// --- fuse_rules.c: what may go together ---

bool pestle_fuse_is_elementwise(const pestle_node_t* node);
bool pestle_fuse_is_cheap(const pestle_node_t* node);
// A constant that every group gets its own copy of.
bool pestle_fuse_is_inline_constant(const pestle_node_t* node);
// A reshape that only adds or drops dims of one element.
bool pestle_fuse_is_trivial_reshape(const pestle_node_t* node);
// A reshape that keeps the innermost dim: indices change, runs do not.
bool pestle_fuse_keeps_runs(const pestle_node_t* node);
// A reshape that only cuts dims in two or more.
bool pestle_fuse_splits_dims(const pestle_node_t* node);
// A complex number read as its parts, or the other way: the same bytes.
bool pestle_fuse_is_view_of_parts(const pestle_node_t* node);
// Moves no data in a dense row-major buffer.
bool pestle_fuse_is_zero_copy(const pestle_node_t* node);
// Whether results of |node| lie where its operands do: pestle_fuse_is_zero_copy(), or an
// OPTIMIZATION_BARRIER.
bool pestle_fuse_is_view(const pestle_node_t* node);
// Where such a view begins in its operand, in bytes.
int64_t pestle_fuse_view_offset(const pestle_node_t* node);
// Why |item| is not copied into several groups rather than stored.
pestle_fuse_reason_t pestle_fuse_refuses_copies(
    const pestle_fuse_t* f, uint32_t item, const pestle_fuse_users_t* users);
// Why |group|, whose members are all of |item|'s users that count, does not
// take |item| as a producer.
pestle_fuse_reason_t pestle_fuse_refuses_producer(const pestle_fuse_t* f,
                                                  uint32_t group,
                                                  uint32_t item);
// Marks what follows from having accepted |item|.
void pestle_fuse_note_joined(pestle_fuse_t* f, uint32_t group, uint32_t item);
// Sets kind, domain and axes of a group for its hero.
pestle_fuse_kind_t pestle_fuse_kind_of(const pestle_node_t* node);
void pestle_fuse_set_hero(pestle_fuse_t* f, uint32_t group, uint32_t item);
// Why |node| does not follow inside a hero's group: on its own rows or elements.
pestle_fuse_reason_t pestle_fuse_refuses_follower(
    const pestle_fuse_t* f, const pestle_fuse_group_t* group,
    const pestle_node_t* node, bool rows_only);

// --- fuse.c: groups ---

// The only user of what |group| makes for others, where one of its values is used
// outside of it, once; NULL.
pestle_node_t* pestle_fuse_only_user(const pestle_fuse_t* f, uint32_t group);
// Whether two groups together are no larger than one may be.
bool pestle_fuse_has_room(const pestle_fuse_t* f, uint32_t a, uint32_t b);
// The members of |from| become members of |into|.
void pestle_fuse_merge(pestle_fuse_t* f, uint32_t into, uint32_t from);

// --- fuse_pairs.c: depthwise convolutions join pointwise ones ---

void pestle_fuse_pairs(pestle_fuse_t* f);

// --- fuse_emit.c: groups become nodes ---

PESTLE_NODISCARD pestle_status_t pestle_fuse_emit(pestle_fuse_t* f);

// --- fuse_remarks.c: what `pestle explain` says of it ---

// Remembers that |group| refused |item|, where remarks are wanted. Returns
// |why|.
pestle_fuse_reason_t pestle_fuse_note(pestle_fuse_t* f, uint32_t group,
                                      uint32_t item, pestle_fuse_reason_t why);
// A remark for each value that passes from a group to another: why they are not
// one. Before emission, which erases the members; the fusions are filled in by
// the second function.
PESTLE_NODISCARD pestle_status_t pestle_fuse_remark_edges(pestle_fuse_t* f);
void pestle_fuse_remark_fusions(pestle_fuse_t* f);

#endif  // PESTLE_PASSES_FUSE_H_
