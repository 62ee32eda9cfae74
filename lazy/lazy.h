// SPDX-License-Identifier: Apache-2.0
// Arrays that record, evaluate and trace.
//
// lazy/ is include/pestle/array.h: nodes, views, evaluation by graph, what a
// context keeps of executables. lazy/ knows nothing of Python, and nothing of how a
// module is compiled or run.
//
// An evaluation has four parts, a file each: the walk (walk.c) claims the nodes
// behind the wanted arrays and writes them down as a key; the cache (cache.c) knows
// the executable of a key, or build.c makes the module that the key says; run.c
// runs it and turns nodes into data (evaluate.c leads). All that a walk reads or
// writes of nodes is under the context's one lock (docs/adr/022-arrays.md).
#ifndef PESTLE_LAZY_LAZY_H_
#define PESTLE_LAZY_LAZY_H_

#include <stdatomic.h>

#include "base/context.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ir/graph.h"
#include "pestle/array.h"

// --- What a context keeps ---

// A body of regions that some node has, once however many have it.
typedef struct pestle_body_t {
  pestle_module_t* module;
} pestle_body_t;

typedef struct pestle_lazy_entry_t pestle_lazy_entry_t;
typedef struct pestle_walk_t pestle_walk_t;

typedef struct pestle_lazy_t {
  pestle_context_guest_t guest;  // first
  pestle_context_t* context;     // which this is a part of
  pestle_allocator_t allocator;
  pestle_mutex_t mutex;  // of all that follows but counters, and of walks
  pestle_cond_t done;    // an evaluation has ended
  uint32_t waiting;      // threads that wait for that
  uint64_t walks;        // number of the latest
  // Walks up to this one are of the parent of a fork(), and how the locks were left.
  uint64_t parent_walks;
  bool is_torn;
  atomic_uint forks;
  pestle_walk_t* spare;  // walks that are not in use
  // Executables by key, the latest used first.
  pestle_map_t entries;
  pestle_lazy_entry_t *newest, *oldest;
  size_t entry_count;
  // Bodies by their bytes, and those of folds by op and dtype.
  pestle_map_t body_ids, fold_ids;
  pestle_map_t sites;  // texts of pestle_array_set_site(), kept until the end
  PESTLE_VEC(pestle_body_t) bodies;
  uint64_t evaluations, hits, donations;
  atomic_uint_fast32_t captures;      // number of the latest
  pestle_array_control_fn_t control;  // of compilations, or NULL
  void* control_user;
  // What only nodes refer to: bytes of data, and nodes.
  atomic_int_fast64_t held_bytes, held_nodes;
} pestle_lazy_t;

// All locks of the context's are free, also in a child of fork().
static inline void pestle_lazy_enter(const pestle_lazy_t* lazy) {
  pestle_context_core(lazy->context)->enter(lazy->context);
}
static inline void pestle_lazy_lock(pestle_lazy_t* lazy) {
  pestle_lazy_enter(lazy);
  pestle_mutex_lock(&lazy->mutex);
}

// What a compilation of this thread looks at; the lock is not held.
const pestle_control_t* pestle_lazy_control(pestle_lazy_t* lazy);

// That of |context|, made at the first call. Borrowed from the context.
PESTLE_NODISCARD pestle_status_t pestle_lazy_of(pestle_context_t* context,
                                                pestle_lazy_t** out_lazy);

// --- Arrays ---

// Results of an op that has any number of them: an array without a type of its own
// (TUPLE), which they read as GET.
enum {
  PESTLE_LAZY_GET = PESTLE_OP_COUNT,
  PESTLE_LAZY_ARGUMENT,
  PESTLE_LAZY_NONE
};

typedef enum pestle_node_state_e {
  PESTLE_NODE_DATA,
  PESTLE_NODE_LAZY,
  PESTLE_NODE_CLAIMED,  // an evaluation computes it
  PESTLE_NODE_TRACED,
  PESTLE_NODE_FAILED,
} pestle_node_state_t;

// Bits of pestle_array_s.flags. WEAK adapts to the device of others.
enum {
  PESTLE_NODE_WEAK = 1,
  PESTLE_NODE_TUPLE = 2,
  PESTLE_NODE_PURE = 4,    // reads nothing but constants
  PESTLE_NODE_HELD = 8,    // counted in held_nodes
  PESTLE_DATA_HELD = 16,   // counted in held_bytes
  PESTLE_DATA_GIVEN = 32,  // to the run of the walk that met it last
  PESTLE_NODE_KEEPS = 64,  // has a reference of its own to the context
};

#define PESTLE_REF_HANDLE UINT64_C(1)
#define PESTLE_REF_NODE (UINT64_C(1) << 32)

struct pestle_array_s {
  atomic_uint_fast64_t refs;  // handles, and nodes that read it << 32
  _Atomic(uint32_t) state;    // pestle_node_state_t
  atomic_uint flags;
  // -- of a walk, which looks at no more than what stands together here --
  uint64_t walk;     // the latest that met it
  uint32_t number;   // of its value in that walk's key
  uint32_t readers;  // operands of that walk's nodes that it is
  // -- a node --
  uint16_t op;
  uint16_t part_count;  // results of a TUPLE
  uint32_t operand_count;
  uint32_t spec_words;  // attributes, type and bodies, as a key has them
  uint32_t depth;       // of the longest chain of nodes below
  uint32_t capture;  // of TRACED: the latest one whose arguments it is made of
  pestle_array_t** operands;
  uint32_t* spec;
  // -- of its life --
  pestle_lazy_t* lazy;  // whose context its buffer keeps, its operands or KEEPS
  pestle_device_t* device;
  size_t block_size;     // of this struct with what lies behind it
  pestle_array_t* next;  // in the list of those that are being freed
  // -- data --
  pestle_buffer_t* buffer;
  pestle_buffer_t** parts;  // of a TUPLE, each NULL once its GET has it
  uint64_t byte_offset;
  int64_t* strides;           // NULL: row-major
  _Atomic(int64_t*) lent;     // row-major ones, for who asked for them; or NULL
  pestle_status_t failure;    // of FAILED
  _Atomic(const char*) site;  // where the program recorded it, or NULL
  pestle_type_t type;         // last: what lies behind it is operands, words
};

// |*to| is |*from|, whose extents may have been written a moment ago: a copy of the whole
// struct would read them before the processor has put them together.
static inline void pestle_type_assign(pestle_type_t* to,
                                      const pestle_type_t* from) {
  to->dtype = from->dtype;
  to->rank = from->rank;
  for (int32_t i = 0; i < from->rank; ++i)
    to->dims[i] = from->dims[i];
}

static inline pestle_node_state_t pestle_array_node_state(
    const pestle_array_t* array) {
  return (pestle_node_state_t)atomic_load_explicit(&array->state,
                                                   memory_order_acquire);
}
static inline void pestle_array_set_state(pestle_array_t* array,
                                          pestle_node_state_t state) {
  atomic_store_explicit(&array->state, (uint32_t)state, memory_order_release);
}
static inline uint32_t pestle_array_flags(const pestle_array_t* array) {
  return atomic_load_explicit(&array->flags, memory_order_relaxed);
}

// --- array.c ---

// An array with one handle, |extra| bytes behind it, and all but refs, lazy,
// device and state clear; the type is not set. It keeps its context by the buffer or the
// operands that it is given next: one without either is to be told to.
pestle_array_t* pestle_array_make(pestle_lazy_t* lazy, pestle_device_t* device,
                                  pestle_node_state_t state, size_t extra);
// Has |array|, which has lost what kept its context or never had it, keep that itself.
void pestle_array_keep_context(pestle_array_t* array);
// An array of data; takes |buffer| over. NULL |strides|: row-major; else copied.
PESTLE_NODISCARD pestle_status_t pestle_array_make_data(
    pestle_lazy_t* lazy, const pestle_type_t* type, pestle_buffer_t* buffer,
    uint64_t byte_offset, const int64_t* strides, pestle_array_t** out_array);
void pestle_array_hold(pestle_array_t* array);    // by a node
void pestle_array_unhold(pestle_array_t* array);  // by a node
// Lets go of a node's operands, which |array| is no more.
void pestle_array_drop_operands(pestle_array_t** operands, uint32_t count);

// --- source.c ---

PESTLE_NODISCARD pestle_status_t
pestle_array_check_type(const pestle_type_t* type);

// --- spec.c: what a node is beside its op and operands, as words ---

typedef PESTLE_VEC(uint32_t) pestle_words_t;
typedef struct pestle_node_parts_t {
  const pestle_attr_t* attrs;
  size_t attr_count;
  const pestle_type_t* type;  // stated, or NULL
  const uint32_t* bodies;     // numbers in pestle_lazy_t.bodies
  size_t body_count;
} pestle_node_parts_t;
PESTLE_NODISCARD bool pestle_spec_write(pestle_words_t* words,
                                        const pestle_node_parts_t* parts);
// What pestle_spec_write() wrote; pointers are into |arena| or |words|.
PESTLE_NODISCARD pestle_status_t
pestle_spec_read(pestle_arena_t* arena, const uint32_t* words,
                 pestle_node_parts_t* out_parts);
PESTLE_NODISCARD bool pestle_words_put_type(pestle_words_t* words,
                                            const pestle_type_t* type);
const uint32_t* pestle_words_get_type(const uint32_t* words,
                                      pestle_type_t* out_type);

// --- body.c ---

// The number of a body that is |module|'s entry.
PESTLE_NODISCARD pestle_status_t pestle_body_of(pestle_lazy_t* lazy,
                                                pestle_module_t* module,
                                                uint32_t* out_id);
// That of (a, b) -> op(a, b) on elements of |dtype|.
PESTLE_NODISCARD pestle_status_t pestle_body_of_fold(pestle_lazy_t* lazy,
                                                     pestle_op_t op,
                                                     pestle_dtype_t dtype,
                                                     uint32_t* out_id);
pestle_module_t* pestle_body_module(pestle_lazy_t* lazy, uint32_t id);

// --- apply.c ---

// An op with its attributes in the IR's form, and the numbers of its bodies.
typedef struct pestle_record_t {
  pestle_op_t op;
  pestle_array_t* const* operands;
  size_t operand_count;
  pestle_node_parts_t parts;
  pestle_device_t* device;  // of an op without operands
  bool no_views;            // data is copied
} pestle_record_t;
PESTLE_NODISCARD pestle_status_t pestle_array_record(const pestle_record_t* r,
                                                     pestle_array_t** out,
                                                     size_t out_capacity);
// |count| arrays in the shape that they have together, references of the caller's.
PESTLE_NODISCARD pestle_status_t pestle_array_spread(
    pestle_array_t* const* arrays, size_t count, pestle_array_t** out_arrays);

// --- view.c ---

// The result of a view op on data, where strides say it; else |*out_array| is NULL.
// |type| is the result's.
PESTLE_NODISCARD pestle_status_t pestle_array_view(const pestle_record_t* r,
                                                   const pestle_type_t* type,
                                                   pestle_array_t** out_array);
// Strides of row-major elements.
void pestle_strides_of(const pestle_type_t* type, int64_t* out_strides);

// --- walk.c ---

enum {
  PESTLE_KEY_LEAF = 1,
  PESTLE_KEY_NODE = 2,
  PESTLE_KEY_GET = 3,
  PESTLE_KEY_OUTPUTS = 4,
  PESTLE_LEAF_DONATED = 1 << 8,
};

typedef struct pestle_walk_frame_t {
  pestle_array_t* node;
  uint32_t operand;
} pestle_walk_frame_t;

struct pestle_walk_t {
  pestle_walk_t* next;
  pestle_lazy_t* lazy;
  pestle_device_t* device;
  PESTLE_VEC(pestle_walk_frame_t) stack;
  PESTLE_VEC(pestle_array_t*) nodes;    // claimed, operands first
  PESTLE_VEC(pestle_array_t*) leaves;   // data, in the order of arguments
  PESTLE_VEC(pestle_array_t*) outputs;  // nodes that become data
  pestle_words_t key;
  PESTLE_VEC(bool) dense;               // leaves whose strides the key knows
  PESTLE_VEC(size_t) leaf_at;           // place of each leaf in the key
  PESTLE_VEC(uint32_t) donated;         // leaves whose memory the run is given
  PESTLE_VEC(pestle_array_t*) dropped;  // operands of nodes that are data now
  PESTLE_VEC(pestle_buffer_view_t) views;
  PESTLE_VEC(pestle_buffer_t*) results;
  uint32_t values;       // numbered so far
  size_t operand_count;  // of all |nodes|
  uint32_t traces;  // the number of the capture that this is, or 0: a capture
                    // claims nothing
  pestle_array_t* busy;  // claimed by another
};

pestle_walk_t* pestle_walk_take(pestle_lazy_t* lazy);  // the lock is held
void pestle_walk_give(pestle_walk_t* walk);            // the lock is held
void pestle_walk_destroy(pestle_walk_t* walk);
// Claims what those of |count| arrays need that are on the first one's device and
// no data, and writes the key. The lock is held. Where |walk|->busy is not NULL, it
// is of another evaluation and nothing is claimed. Without nodes there is nothing
// to be done.
PESTLE_NODISCARD pestle_status_t pestle_walk_claim(
    pestle_walk_t* walk, pestle_array_t* const* arrays, size_t count);
// Writes the key of the function that |capture| is: |arguments| are its first leaves;
// what else is data, or traced by a capture that began before, follows as leaves or,
// numbers that adapt, as constants. The lock is held.
PESTLE_NODISCARD pestle_status_t pestle_walk_trace(
    pestle_walk_t* walk, uint32_t capture, pestle_device_t* device,
    pestle_array_t* const* arguments, size_t argument_count,
    pestle_array_t* const* results, size_t count);
// The nodes are LAZY again. The lock is held.
void pestle_walk_unclaim(pestle_walk_t* walk);

// --- build.c ---

// The module that a key of |words| words says; leaf i is its argument i.
PESTLE_NODISCARD pestle_status_t
pestle_build_module(pestle_lazy_t* lazy, const uint32_t* key, size_t words,
                    pestle_module_t** out_module);

// --- cache.c ---

enum { PESTLE_LAZY_ENTRIES = 1024, PESTLE_LAZY_TIMED = 4 };
// The least time of the first PESTLE_LAZY_TIMED runs.
typedef struct pestle_lazy_cost_t {
  uint64_t ns;
  uint32_t runs;
} pestle_lazy_cost_t;
struct pestle_lazy_entry_t {
  pestle_lazy_entry_t *newer, *older;
  pestle_executable_t* executable;
  void* key;  // what the map has too
  size_t key_size;
  pestle_lazy_cost_t cost;
};
// The executable of |walk|'s key with a reference, and what it costs, or NULL. The
// lock is held.
pestle_executable_t* pestle_cache_find(pestle_walk_t* walk,
                                       pestle_lazy_cost_t* out_cost);
// A run of |walk|'s key took |ns|. The lock is held.
void pestle_cache_note(pestle_walk_t* walk, uint64_t ns);
// Compiles it, and keeps it. The lock is not held.
PESTLE_NODISCARD pestle_status_t
pestle_cache_make(pestle_walk_t* walk, pestle_executable_t** out_executable);
void pestle_cache_deinit(pestle_lazy_t* lazy);

// --- site.c ---

void pestle_sites_deinit(pestle_lazy_t* lazy);
// |status| with a note of where |array| was recorded, if that is known; NULL is allowed.
pestle_status_t pestle_site_note(const pestle_array_t* array,
                                 pestle_status_t status);
// |status|, of |walk|'s run, with notes of where what it computes was recorded, and
// what it reads of runs that failed.
pestle_status_t pestle_walk_note_sites(const pestle_walk_t* walk,
                                       pestle_status_t status);
// Gives the outputs of a run that may fail later the first site among its nodes.
void pestle_walk_pass_sites(const pestle_walk_t* walk);

// --- evaluate.c ---

// Computes |count| arrays, none of which is NULL, of one context.
PESTLE_NODISCARD pestle_status_t pestle_array_evaluate(
    pestle_array_t* const* arrays, size_t count, pestle_stream_t* stream);

#endif  // PESTLE_LAZY_LAZY_H_
