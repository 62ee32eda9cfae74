// SPDX-License-Identifier: Apache-2.0
// How a value is spread over a mesh of processes, axis by axis.
//
//   mesh   data = 2, model = 4          process 4 d + m stands at (d, m)
//   spread [{data}, {model}]            dim 0 in 2 parts, dim 1 in 4
//   spread [{}, {model}] sum {data}     of each part two summands
//
// A process has, of each dim, the part that its places along the dim's axes count, the
// first axis slowest. Along other axes all have the same. sharding.h has the same by
// processes, as XLA writes it.
#ifndef PESTLE_IR_SPREAD_H_
#define PESTLE_IR_SPREAD_H_

#include <assert.h>

#include "base/arena.h"
#include "base/str.h"
#include "ir/graph.h"
#include "ir/sharding.h"
#include "ir/sharding_text.h"

enum { PESTLE_MESH_AXES = 8 };

typedef struct pestle_mesh_t {
  int32_t axis_count;
  int64_t sizes[PESTLE_MESH_AXES];
  const char* names[PESTLE_MESH_AXES];
  int64_t strides[PESTLE_MESH_AXES];  // places between neighbours along it
  int64_t count;                      // of places
  const int32_t* processes;           // by place; NULL: in the same order
} pestle_mesh_t;

// A set of axes.
typedef uint8_t pestle_axes_t;

// Where an axis is used by a value.
enum {
  PESTLE_AXIS_FREE = 0xff,  // all have the same
  PESTLE_AXIS_SUM = 0xfe,   // each has a summand
  // else 8 times the dim, plus its place among the dim's axes
};

// Of one value. Frozen at 16 bytes.
typedef struct pestle_spread_t {
  uint8_t places[PESTLE_MESH_AXES];
  uint16_t closed;      // a bit a dim to which no axis may be added
  pestle_axes_t fixed;  // along which it stays whole
  uint8_t combine;      // of summands: PESTLE_COMBINE_*
  bool decided;         // by the user: nothing is added or taken away
  uint8_t unused[3];
} pestle_spread_t;
static_assert(sizeof(pestle_spread_t) == 16, "one a value");

// How summands become the value.
typedef enum pestle_combine_e {
  PESTLE_COMBINE_ADD,
  PESTLE_COMBINE_MULTIPLY,
  PESTLE_COMBINE_MINIMUM,
  PESTLE_COMBINE_MAXIMUM,
  PESTLE_COMBINE_AND,
  PESTLE_COMBINE_OR,
  PESTLE_COMBINE_COUNT
} pestle_combine_t;
// ADD .. OR as ops; PESTLE_COMBINE_COUNT for any other.
pestle_op_t pestle_combine_op(pestle_combine_t combine);
pestle_combine_t pestle_combine_of(pestle_op_t op);

// An ordered list of axes.
typedef struct pestle_axis_order_t {
  uint8_t axes[PESTLE_MESH_AXES];
  uint8_t count;
} pestle_axis_order_t;

static inline bool pestle_axes_has(pestle_axes_t set, int axis) {
  return (set >> axis & 1) != 0;
}
static inline pestle_axes_t pestle_axis_bit(int axis) {
  return (pestle_axes_t)(1u << axis);
}
pestle_axes_t pestle_axis_order_set(const pestle_axis_order_t* order);
bool pestle_axis_order_equal(const pestle_axis_order_t* a,
                             const pestle_axis_order_t* b);
// How many of their first axes are alike.
int pestle_axis_order_common(const pestle_axis_order_t* a,
                             const pestle_axis_order_t* b);
int64_t pestle_axis_order_parts(const pestle_mesh_t* mesh,
                                const pestle_axis_order_t* order);

// Every process has all of it.
pestle_spread_t pestle_spread_whole(void);
pestle_axis_order_t pestle_spread_dim(const pestle_spread_t* s, int dim);
// Takes all axes away from |dim| and gives it those of |order|, which are free.
void pestle_spread_set_dim(pestle_spread_t* s, int dim,
                           const pestle_axis_order_t* order);
// Axes along which there are summands; those that are used at all.
pestle_axes_t pestle_spread_sums(const pestle_spread_t* s);
pestle_axes_t pestle_spread_used(const pestle_spread_t* s);
void pestle_spread_set_sums(pestle_spread_t* s, pestle_axes_t axes,
                            pestle_combine_t combine);
// Whether they give processes the same: what is closed or fixed does not count.
bool pestle_spread_equal(const pestle_spread_t* a, const pestle_spread_t* b);
bool pestle_spread_is_whole(const pestle_spread_t* s);
int64_t pestle_spread_parts(const pestle_mesh_t* mesh, const pestle_spread_t* s,
                            int dim);
// Whether the extents of |type| are multiples of the parts; the first dim that is none.
bool pestle_spread_fits(const pestle_mesh_t* mesh, const pestle_spread_t* s,
                        const pestle_type_t* type, int* out_dim);
// What a process has of |type|.
pestle_type_t pestle_spread_local(const pestle_mesh_t* mesh,
                                  const pestle_spread_t* s,
                                  const pestle_type_t* type);
// "[{data}, {}] sum {model}", appended.
void pestle_spread_print(const pestle_mesh_t* mesh, const pestle_spread_t* s,
                         int32_t rank, pestle_strbuf_t* out);
// The same by processes, in |arena|.
PESTLE_NODISCARD pestle_status_t pestle_spread_processes(
    const pestle_mesh_t* mesh, const pestle_spread_t* s, int32_t rank,
    pestle_arena_t* arena, pestle_sharding_t* out);

// The place of process |process|, and its number along the axes of |order|.
int64_t pestle_mesh_place(const pestle_mesh_t* mesh, int32_t process);
int64_t pestle_mesh_number(const pestle_mesh_t* mesh, int64_t place,
                           const pestle_axis_order_t* order);
// Groups of the processes that differ along the axes of |order| alone, members in
// the order of these: rows, in |arena|, as replica_groups has them.
PESTLE_NODISCARD pestle_status_t
pestle_mesh_groups(const pestle_mesh_t* mesh, const pestle_axis_order_t* order,
                   pestle_arena_t* arena, pestle_elements_t* out_groups);

// --- What a module says: mesh_of.c ---

// The meshes that a module's texts name, as one of which the axes of each are some
// neighbours. First every text is seen, then the mesh is made, then texts are read.
typedef struct pestle_mesh_maker_t {
  const pestle_module_t* module;
  pestle_arena_t* arena;
  pestle_mesh_t mesh;
  int64_t total;  // 0: no mesh was seen
  pestle_str_t ids;
  // Numbers of places that an axis, or a part of one, begins to count at.
  int64_t cuts[2 * PESTLE_MESH_TEXT_AXES];
  int cut_count;
  pestle_mesh_text_t first;  // whose names are shown
} pestle_mesh_maker_t;

void pestle_mesh_maker_init(const pestle_module_t* module,
                            pestle_arena_t* arena, pestle_mesh_maker_t* out);
// UNSUPPORTED: other devices than before, parts that do not nest; in words.
PESTLE_NODISCARD pestle_status_t
pestle_mesh_maker_see(pestle_mesh_maker_t* maker, pestle_str_t text);
// Whether |text| is of a mesh that numbers the devices in another order than the first
// that was seen.
PESTLE_NODISCARD pestle_status_t pestle_mesh_maker_is_other(
    const pestle_mesh_maker_t* maker, pestle_str_t text, bool* out_other);
PESTLE_NODISCARD pestle_status_t
pestle_mesh_maker_finish(pestle_mesh_maker_t* maker);
// What |text| says of a value of |type|. |*out_manual|: the axes that a list behind it
// names. UNSUPPORTED: extents that are no multiples of their parts.
PESTLE_NODISCARD pestle_status_t pestle_mesh_maker_read(
    const pestle_mesh_maker_t* maker, pestle_str_t text,
    const pestle_type_t* type, pestle_spread_t* out, pestle_axes_t* out_manual);
// The same of what an op in the module wishes for: axes that a dim cannot be divided by
// are left out, the last ones first.
PESTLE_NODISCARD pestle_status_t
pestle_mesh_maker_read_wish(const pestle_mesh_maker_t* maker, pestle_str_t text,
                            const pestle_type_t* type, pestle_spread_t* out);

#endif  // PESTLE_IR_SPREAD_H_
