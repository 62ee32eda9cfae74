// SPDX-License-Identifier: Apache-2.0
// Ops of class DIRECT: written as flat Kernel IR by one function each, without
// a nest or a schedule. codegen/direct/direct_<family>.c holds them, direct.c
// what they are written with.
//
// Such an op is a kernel of its own. Where its row says UPDATES, result i has
// been made a copy of operand i before the kernel runs (or is the operand,
// which dies), and the kernel changes it in place: it takes no argument for the
// operand.
//
// codegen/direct/ knows nothing of schedules or of what a target lacks.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_H_

#include "codegen/kir/kir_build.h"
#include "codegen/nest/kernel_arg.h"
#include "pestle/compile.h"

typedef struct pestle_direct_t {
  const pestle_node_t* node;
  pestle_kir_builder_t* k;
  const pestle_target_caps_t* caps;
  // Bytes that the address of each operand is a multiple of; NULL: 64.
  const uint8_t* aligns;
  pestle_kernel_arg_t* args;  // of the kernel, in the order of its buffers
  uint32_t arg_count;
  uint64_t steps;  // scalar steps of a run, for the choice of threads
  char how[160];   // which way the op chose, for explain; "": there is one
} pestle_direct_t;

// Two functions for each row of class DIRECT, whatever classes there are: one
// writes the kernel; one says that there is nothing to do but what UPDATES has
// done, so that there is no kernel.
#define PESTLE_ROW_SOURCE(NAME, op)
#define PESTLE_ROW_ELEMENTWISE(NAME, op)
#define PESTLE_ROW_VIEW(NAME, op)
#define PESTLE_ROW_GATHER(NAME, op)
#define PESTLE_ROW_REDUCTION(NAME, op)
#define PESTLE_ROW_WINDOW(NAME, op)
#define PESTLE_ROW_CONTRACTION(NAME, op)
#define PESTLE_ROW_CONTROL(NAME, op)
#define PESTLE_ROW_FUSION(NAME, op)
#define PESTLE_ROW_COMPOSITE(NAME, op)
#define PESTLE_ROW_COLLECTIVE(NAME, op)
#define PESTLE_ROW_DIRECT(NAME, op)                                        \
  PESTLE_NODISCARD pestle_status_t pestle_direct_##op(pestle_direct_t* d); \
  bool pestle_direct_##op##_is_idle(const pestle_node_t* node);
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, \
                        FUSE, FLAGS)                                      \
  PESTLE_ROW_##FUSE(NAME, op)
#include "pestle/ops.def"
#undef PESTLE_ROW_DIRECT

bool pestle_is_direct(const pestle_node_t* node);
// The scan that |node|, a group, is alone, or NULL: such a group is written as a direct op
// is (direct_scan.c).
const pestle_node_t* pestle_direct_scan_of(const pestle_node_t* node);
PESTLE_NODISCARD pestle_status_t pestle_direct_scan(pestle_direct_t* d);
// The gradient of an attention, which is a composite (direct_attention_grad.c).
PESTLE_NODISCARD pestle_status_t
pestle_direct_attention_grad(pestle_direct_t* d);
// The same where subgroups multiply small matrices: by queries, or by keys, by values or by
// both of them (direct_attention_grad_lanes.c).
PESTLE_NODISCARD pestle_status_t pestle_direct_attention_grad_lanes(
    pestle_direct_t* d, bool of_keys, bool of_values);
// The same of a norm (direct_norm_grad.c).
PESTLE_NODISCARD pestle_status_t pestle_direct_norm_grad(pestle_direct_t* d);
// On targets with lanes, a group of a window that is a running reduction (direct_running.c).
PESTLE_NODISCARD pestle_status_t pestle_direct_running(pestle_direct_t* d);
// A product with weights of a few bits (direct_block_dot.c).
PESTLE_NODISCARD pestle_status_t pestle_direct_block_dot(pestle_direct_t* d);
// Rows of x as bytes for such products (direct_block_bytes.c).
PESTLE_NODISCARD pestle_status_t pestle_direct_block_bytes(pestle_direct_t* d);
// The weights of such a product as floats (direct_block_weights.c).
PESTLE_NODISCARD pestle_status_t
pestle_direct_block_weights(pestle_direct_t* d);
// Attention over a cache, up to what new tokens see (direct_cached_attention.c); how many
// new tokens |node| is of, 0: it is no such attention.
PESTLE_NODISCARD pestle_status_t
pestle_direct_cached_attention(pestle_direct_t* d);
// The same where lanes run side by side (direct_cached_attention_lanes.c).
PESTLE_NODISCARD pestle_status_t
pestle_direct_cached_attention_lanes(pestle_direct_t* d);
int64_t pestle_direct_cached_rows(const pestle_node_t* node);
// Of such an attention how many tokens are past: one number, or one for each sequence.
const pestle_value_t* pestle_direct_cached_past(const pestle_node_t* node);
// Of a group that is written whole, as a direct op is: the scan or the composite that it
// is of; else NULL.
const pestle_node_t* pestle_direct_whole_of(const pestle_node_t* node);
bool pestle_direct_is_idle(const pestle_node_t* node);

// Writes the kernel of |d->node| into |d->k|, which is finished here, and says
// what its arguments are. UNSUPPORTED names what the op's region holds.
PESTLE_NODISCARD pestle_status_t pestle_direct_emit(pestle_direct_t* d,
                                                    pestle_numerics_t numerics);

// --- What kernels are written with ---

typedef pestle_kir_id_t pk_t;

// Buffers: an operand (read only), a result, and memory of |count| elements
// that lives during the launch.
uint32_t pestle_direct_operand(pestle_direct_t* d, size_t operand);
uint32_t pestle_direct_result(pestle_direct_t* d, size_t result);
// The operand of a group that is |value|, an argument of its body, within; each is asked
// for once.
uint32_t pestle_direct_argument(pestle_direct_t* d,
                                const pestle_value_t* value);
// Whether |value|, an argument of the body, is the caller's or a constant, so that it may be
// read before a GRID_WAIT: a kernel that makes a result where it lies comes behind all that
// read it.
bool pestle_direct_is_given(const pestle_direct_t* d,
                            const pestle_value_t* value);
uint32_t pestle_direct_workspace(pestle_direct_t* d, pestle_dtype_t dtype,
                                 int64_t count);

// A variable of one value, which begins undefined where this is called.
uint32_t pestle_direct_variable(pestle_direct_t* d, const char* name,
                                pestle_dtype_t dtype, unsigned lanes);
pk_t pestle_direct_get(pestle_direct_t* d, uint32_t variable);
void pestle_direct_set(pestle_direct_t* d, uint32_t variable, pk_t value);

pk_t pestle_direct_index(pestle_direct_t* d, int64_t value);
// A scalar row on one or two values.
pk_t pestle_direct_op(pestle_direct_t* d, pestle_op_t op, pk_t a, pk_t b);
pk_t pestle_direct_select(pestle_direct_t* d, pk_t condition, pk_t yes,
                          pk_t no);
// |a| moved into [lo, hi].
pk_t pestle_direct_clamp(pestle_direct_t* d, pk_t a, int64_t lo, int64_t hi);
pk_t pestle_direct_load(pestle_direct_t* d, uint32_t buffer, pk_t index);
void pestle_direct_store(pestle_direct_t* d, uint32_t buffer, pk_t index,
                         pk_t value);

// The scalars that region |region| of the op returns for |arguments|, one each
// for its block's arguments; all of one number of lanes.
PESTLE_NODISCARD pestle_status_t pestle_direct_region(pestle_direct_t* d,
                                                      uint32_t region,
                                                      const pk_t* arguments,
                                                      pk_t* out_results);
// The same for one value of its block.
PESTLE_NODISCARD pestle_status_t pestle_direct_region_value(
    pestle_direct_t* d, uint32_t region, const pk_t* arguments,
    const pestle_value_t* value, pk_t* out_value);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_H_
