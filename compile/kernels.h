// SPDX-License-Identifier: Apache-2.0
// From fusions to compiled kernels: lower, schedule, emit, legalise, compile.
#ifndef PESTLE_COMPILE_KERNELS_H_
#define PESTLE_COMPILE_KERNELS_H_

#include "base/map.h"
#include "codegen/emit/emit_flat.h"
#include "codegen/lower/lower.h"
#include "codegen/nest/kernel_arg.h"
#include "compile/lockfile.h"
#include "compile/memory_plan.h"
#include "pestle/compile.h"

// Where the memory plan puts what a node reads and makes.
typedef struct pestle_kernel_places_t {
  const int32_t* aliases;  // as in lower.h; NULL: none
  // Bytes that the address of each operand is a multiple of; 0: 64.
  const uint8_t* aligns;
} pestle_kernel_places_t;

// One kernel of the plan. |unique| names the first kernel with the same code.
typedef struct pestle_kernel_t {
  char name[48];
  // A fusion, an op of class DIRECT, or a call of an eval that is text.
  const pestle_node_t* node;
  // What it is made from, again when the target refuses it: the arena's. NULL
  // for a direct op, which is all there is to it.
  const pestle_kernel_group_t* group;
  pestle_kernel_places_t places;
  const char* ops;  // "add, tanh (node 'act1')"
  // Legalised for |device|; not |owns_legal|: an earlier kernel's, which is the
  // same, or an empty one, before it is built and once its code is there.
  const pestle_kir_builder_t* legal;
  bool owns_legal;
  // The arena's: what a person wrote, of which |legal| is the signature; or NULL.
  const pestle_source_text_t* source;
  uint32_t device;            // 0: the target; 1: the fallback
  pestle_kernel_arg_t* args;  // the arena's
  uint32_t arg_count;
  uint32_t unique;
  // |flops|: operations; a function like exp counts 20; of these |half_flops| in
  // products of f16 or bf16, |byte_flops| in those of bytes. |bytes|: what it must
  // read and write once. 0 flops: not counted.
  // |estimate_ns|: of one launch by one thread, as |work_ns| is unless a lock says
  // otherwise.
  uint64_t estimate_ns;
  bool repeats;    // in the body of a loop or branch
  bool is_cold;    // a run does not notice its code, which is wanted soon
  bool is_beside;  // it may run beside a collective, which takes units away
  uint64_t work_ns, flops, half_flops, byte_flops, bytes;
  // The arena's: "kind=name ..." (choice.h), and lines for profiles and traces:
  // ops, choices, the schedule's primitives.
  const char *chosen, *note;
  // Where a lock is used or made: the nest's key ("" for a direct op), what was
  // to choose from (the arena's), and whether there was anything.
  char key[PESTLE_LOCKFILE_KEY];
  const pestle_choice_t* choices;
  size_t choice_count;
  bool open;
  bool stale;          // |wanted| or the lock's line names what there is not
  const char* wanted;  // first choices to take, not the lock's; or NULL
  // For PESTLE_STAGE_EXPLAIN, the arena's; else NULL.
  const char* explain_why;  // lines about its schedule
  const char* refused;      // what the target said; of the fallback's
  bool explained;           // before it was compiled, as the fallback's
  uint64_t explain_ops;
  bool compiled;           // its code is there; of |unique| only
  pestle_blob_t code;      // of the host's allocator
  pestle_status_t status;  // of its compilation
} pestle_kernel_t;

// The devices that a plan may use: the target, and its type's fallback, which
// takes what the target refuses.
typedef struct pestle_kernel_target_t {
  pestle_device_t* device;
  const pestle_backend_t* backend;
  pestle_target_caps_t caps;
} pestle_kernel_target_t;

typedef struct pestle_kernels_t {
  pestle_context_t* context;
  const pestle_compile_options_t* options;
  pestle_arena_t* arena;  // for arguments and notes, until the plan is made
  pestle_arena_t nests;   // for the nest of one kernel after the other
  pestle_kernel_target_t targets[2];
  bool has_fallback, strict;
  uint32_t depth;  // of bodies around what is made now
  bool is_beside;  // what is made now may run beside a collective
  // NULL: the usual choices. What it lacks is counted, and named in
  // |missing|; it is an error if |frozen|.
  const pestle_lockfile_t* lock;
  bool frozen;
  size_t missing_count;
  pestle_strbuf_t missing;
  PESTLE_VEC(pestle_kernel_t*) list;
  pestle_map_t same;  // hash and device -> the first kernel that is so
  pestle_map_t
      texts;  // hash -> such a text in |arena|: many kernels say the same
} pestle_kernels_t;

// The text by which plan keys tell the backend's toolchain; borrowed from it.
PESTLE_NODISCARD pestle_status_t
pestle_kernel_toolchain(const pestle_backend_t* backend, const char** out_text);

// |lock| may be NULL: the usual decisions. All is borrowed.
PESTLE_NODISCARD pestle_status_t pestle_kernels_init(
    pestle_context_t* context, pestle_device_t* device,
    const pestle_compile_options_t* options, const pestle_lockfile_t* lock,
    pestle_arena_t* arena, pestle_kernels_t* out_kernels);
// An empty list of kernels made as those of |like| are, which it outlives not.
void pestle_kernels_init_like(const pestle_kernels_t* like,
                              pestle_arena_t* arena,
                              pestle_kernels_t* out_kernels);
void pestle_kernels_deinit(pestle_kernels_t* kernels);

// Bytes that the address of an input of |dtype| must be a multiple of for the
// plan's kernels to read it where it lies: of a CPU's those of the element, since
// vectors at any address cost it nothing that was measured; of others the widest
// that one lane moves.
uint32_t pestle_input_align(const pestle_target_caps_t* caps,
                            pestle_dtype_t dtype);

// Makes the kernels of all fusions and direct ops of |function|, which is placed
// by |memory|, in the order of its ops: those of one op stand together. None is
// compiled yet.
PESTLE_NODISCARD pestle_status_t pestle_kernels_make(
    pestle_kernels_t* kernels, const pestle_memory_plan_t* memory,
    const pestle_function_t* function);
// The fields of a line of a lock that say for what machine it is.
typedef struct pestle_lockfile_place_t {
  char target[32], cpu[64];
  int64_t threads;
} pestle_lockfile_place_t;
pestle_lockfile_place_t pestle_kernels_place(pestle_context_t* context,
                                             const pestle_target_caps_t* caps);
// NOT_FOUND if the lock must have all kernels and lacks some, which it names.
PESTLE_NODISCARD pestle_status_t
pestle_kernels_check_lockfile(const pestle_kernels_t* kernels);
// Appends a kernel that is made as |like| was, with the choices |wanted|.
PESTLE_NODISCARD pestle_status_t pestle_kernels_add_like(
    pestle_kernels_t* kernels, const pestle_kernel_t* like, const char* wanted);
// Frees the code of |k|, which is empty from then on.
void pestle_kernel_drop_legal(pestle_kernel_t* k);
// Compiles all unique kernels, in parallel. Those that the target refuses are
// built anew for the fallback, which may change their arguments.
PESTLE_NODISCARD pestle_status_t
pestle_kernels_compile(pestle_kernels_t* kernels);

// Counts what |k|, made from the scheduled |nest|, computes and moves.
PESTLE_NODISCARD pestle_status_t pestle_kernel_measure(pestle_nest_t* nest,
                                                       pestle_kernel_t* k);
// Operations of the products of |node|, whose kernel has no nest; 0: not counted.
uint64_t pestle_kernel_products(const pestle_node_t* node);

#endif  // PESTLE_COMPILE_KERNELS_H_
