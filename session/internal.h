// SPDX-License-Identifier: Apache-2.0
// A model in any shape: which executable serves which shape.
//
// session/ is include/pestle/session.h: a table of shapes, their executables, a
// thread that compiles, padding, memory for outputs, and (rows.h) the comparison that
// says when padding is right. session/ knows nothing of how a module is imported,
// compiled or run, which it has done by the public functions.
//
// A *shape* is the extents of all inputs (and the values of those that decide
// shapes). A *route* is how a run in that shape is done: by an executable of its own,
// or by one for more rows. Routes never change: a run holds the one that it began
// with, whatever becomes of the shape. All that is in shapes is under the session's
// lock; whoever has set |is_busy| of one may read and write its module without.
#ifndef PESTLE_SESSION_INTERNAL_H_
#define PESTLE_SESSION_INTERNAL_H_

#include "base/arena.h"
#include "base/map.h"
#include "base/thread.h"
#include "base/vec.h"
#include "pestle/session.h"
#include "runtime/arena_pool.h"

// As pestle_row_relation_t of rows.h, which a build without the compiler lacks.
typedef struct session_rows_t {
  int32_t axis;  // -1: it has no rows
  int64_t per;
} session_rows_t;

typedef struct session_route_t {
  pestle_refcount_t refcount;
  pestle_allocator_t allocator;
  size_t size;  // of this block
  pestle_executable_t* executable;
  size_t input_count, output_count;  // of the executable
  uint32_t* inputs;                  // of the executable -> of the session
  uint32_t* outputs;                 // likewise
  int64_t n, m;  // rows that it computes and has; equal: not padded
  session_rows_t *input_rows, *output_rows;
} session_route_t;

typedef struct session_shape_t {
  int64_t* dims;  // of all inputs, one behind the other
  char* key;      // dims, then values
  size_t key_size;
  pestle_module_t* module;         // specialised, or NULL
  session_route_t* route;          // NULL: not known yet
  struct session_shape_t* server;  // whose executable |route| has, or NULL
  bool is_own;                     // |route| is by an executable of its own
  bool is_quick;                   // which is of the quick tier
  bool is_declared;
  bool is_busy;  // a thread finds a route, or compiles
  bool is_queued;
  bool is_failed;
  uint32_t pins;  // threads that read its module and executable
  uint64_t used;  // the later the greater
  uint64_t runs;
  char* note;  // or NULL
} session_shape_t;

typedef struct session_input_t {
  const char* name;
  pestle_dtype_t dtype;
  int32_t rank;
  size_t first;  // its extents among those of all inputs
  int64_t* dims;
  const char** dim_names;  // "" where there is none
  bool decides_shapes;
} session_input_t;

typedef struct session_block_t {
  struct session_block_t* next;
  struct pestle_session_s* session;
  size_t size;  // with the head
} session_block_t;

struct pestle_session_s {
  pestle_refcount_t refcount;
  pestle_context_t* context;
  pestle_allocator_t allocator;
  pestle_arena_t arena;  // what is fixed from the beginning
  pestle_device_t* device;
  bool is_exact, is_quick;
  size_t most;
  pestle_compile_options_t compile;
  pestle_arena_pool_t* arenas;  // of all executables
  pestle_module_t* module;      // as imported; NULL: plans alone
  pestle_executable_t* first;   // of plans alone: whose strings all have
  session_input_t* inputs;
  size_t input_count, extent_count;
  const char** output_names;
  size_t output_count;
  bool has_declared;
  // -- under |mutex| --
  pestle_mutex_t mutex;
  pestle_cond_t changed;
  pestle_map_t by_key;
  PESTLE_VEC(session_shape_t*) shapes;
  PESTLE_VEC(session_shape_t*) queue;
  size_t own_count;  // executables that are not declared
  uint64_t ticks;
  pestle_status_t failure;  // of the thread, not told yet
  pestle_session_stats_t stats;
  // -- the thread --
  pestle_thread_t thread;
  bool has_thread, is_ending;
  volatile int32_t cancel;
  atomic_int active;  // runs under way
  // -- memory for outputs and padded inputs --
  pestle_mutex_t block_mutex;
  session_block_t* blocks;
  size_t block_count, block_bytes;
};

// --- model.c: of a session with a model ---

bool pestle_session_model_is_strings(const pestle_session_t* session,
                                     bool is_output, size_t index);
PESTLE_NODISCARD pestle_status_t pestle_session_model_strings(
    const pestle_session_t* session, pestle_strings_t** out_strings);

// --- blocks.c ---

enum { SESSION_BLOCK_HEAD = 64 };
// |size| bytes at a multiple of 64, from what was given back if it fits; NULL: out
// of memory.
void* pestle_session_take(pestle_session_t* session, size_t size);
void pestle_session_give(void* data);
void pestle_session_free_blocks(pestle_session_t* session);

// --- route.c ---

// The route by |executable|, which gets a reference; all inputs and outputs are
// looked up by name. Padding: |n| > |m|, and rows of the executable's inputs and
// outputs; else NULL.
PESTLE_NODISCARD pestle_status_t pestle_session_route_create(
    const pestle_session_t* session, pestle_executable_t* executable, int64_t n,
    int64_t m, const session_rows_t* input_rows,
    const session_rows_t* output_rows, session_route_t** out_route);
void pestle_session_route_release(session_route_t* route);

// --- shapes.c ---

// The shape of |key|, which begins with its dims; added when it is new. The lock is
// held.
PESTLE_NODISCARD pestle_status_t
pestle_session_shape(pestle_session_t* session, const char* key,
                     size_t key_size, session_shape_t** out_shape);
// A route for |shape|, with a reference: known, or found or compiled by this thread,
// or waited for. |inputs| are those of a run. The lock is not held.
PESTLE_NODISCARD pestle_status_t pestle_session_find_route(
    pestle_session_t* session, const char* key, size_t key_size,
    const pestle_tensor_t* inputs, session_route_t** out_route);
// Queues |shape| for the thread. The lock is held.
PESTLE_NODISCARD pestle_status_t pestle_session_queue(pestle_session_t* session,
                                                      session_shape_t* shape);
// Gives |shape| an executable of its own. The lock is held.
void pestle_session_adopt(pestle_session_t* session, session_shape_t* shape,
                          session_route_t* route);
PESTLE_NODISCARD pestle_status_t
pestle_session_start(pestle_session_t* session);
// Compiles what is queued, by the caller; the lock is not held.
PESTLE_NODISCARD pestle_status_t
pestle_session_work_off(pestle_session_t* session);
void pestle_session_end(pestle_session_t* session);
void pestle_session_shape_text(const pestle_session_t* session,
                               const session_shape_t* shape,
                               pestle_strbuf_t* out);

// --- declared.c ---

// Adds and queues the shapes that |text| declares.
PESTLE_NODISCARD pestle_status_t
pestle_session_declare(pestle_session_t* session, const char* text);

// --- model.c, model_none.c ---

// Imports the model at |path|: fills module, inputs and outputs.
PESTLE_NODISCARD pestle_status_t
pestle_session_import(pestle_session_t* session, const char* path,
                      const pestle_import_options_t* options);
// |shape|->module, of a run with |inputs| (NULL: of a declared shape).
PESTLE_NODISCARD pestle_status_t
pestle_session_specialize(pestle_session_t* session, session_shape_t* shape,
                          const pestle_tensor_t* inputs);
// Compiles |shape|->module by |tier|.
PESTLE_NODISCARD pestle_status_t pestle_session_compile(
    pestle_session_t* session, const session_shape_t* shape, pestle_tier_t tier,
    pestle_executable_t** out_executable);
// Whether the executable of |by|, made from |many|, may serve |shape|: then
// |*out_route| is how; else it is NULL and |out_why| says why not.
PESTLE_NODISCARD pestle_status_t pestle_session_pad(
    pestle_session_t* session, const session_shape_t* shape,
    pestle_module_t* many, const int64_t* many_dims, pestle_executable_t* by,
    session_route_t** out_route, pestle_strbuf_t* out_why);

// --- plans.c ---

// Opens a plan, or a set of plans.
PESTLE_NODISCARD pestle_status_t
pestle_session_open_plans(pestle_session_t* session, const char* path);

#endif  // PESTLE_SESSION_INTERNAL_H_
