// SPDX-License-Identifier: Apache-2.0
// Kernel IR to LLVM IR: the state of one emission and what its files share.
//
// Invariants:
//  1. The kernel is walked region by region; an unrolled loop walks its body
//     once an iteration with a constant index. The kernel itself stays small
//     and nothing is rewritten.
//  2. A private buffer is an array of SSA values, its slots. A serial loop
//     gives a phi to each slot of each buffer that is stored in its body, an if
//     merges the slots that its sides left different. There is no alloca, so
//     no pass has to find registers again.
//  3. A one-lane index is a pair (variable, constant), so that unrolled
//     accesses are displacements off one address. It is made into a value
//     where it is used and never remembered, since the place may not dominate
//     the next use.
//  4. Small floats (f16, bf16, f8) are the integers of their bits, i2 to
//     ui4 are bytes kept sign- or zero-extended, i1 is LLVM's i1 in values and a
//     byte in memory.
//  5. A failure is kept in |status|; emission goes on with poison until the
//     walk looks at it after the instruction.
#ifndef PESTLE_PLUGINS_LLVM_EMIT_H_
#define PESTLE_PLUGINS_LLVM_EMIT_H_

#include "pestle/kir.h"
#include "plugins/common/error.h"
#include "plugins/common/memory.h"
#include "plugins/llvm/cpu.h"
#include "plugins/llvm/llvm_api.h"

typedef struct pestle_llvm_value_t {
  LLVMValueRef v;    // the value, or of an index its variable part or NULL
  int64_t constant;  // of an index
  bool index;
} pestle_llvm_value_t;

typedef struct pestle_llvm_emit_t {
  const pestle_host_t* host;
  const pestle_llvm_api_t* ll;
  const pestle_kir_t* k;
  const pestle_llvm_cpu_t* cpu;
  bool is_quick;  // code soon rather than fast
  pestle_plugin_arena_t arena;
  pestle_status_t status;  // the first failure

  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  LLVMValueRef body;                     // the function that holds the kernel
  LLVMTypeRef type[PESTLE_DTYPE_COUNT];  // one lane of a value
  LLVMTypeRef i8, i32, i64, f16, ptr;
  LLVMValueRef begin, end, params;
  LLVMValueRef opaque;  // the index of the last loop of many accesses, or NULL
  const struct pestle_llvm_table_t* table;  // the constants of a loop, or NULL
  LLVMValueRef zero_word;                   // NULL until a gather needs it
  unsigned invariant_kind, nontemporal_kind;
  LLVMValueRef invariant_node, nontemporal_node;
  unsigned scope_kind, noalias_kind;

  // By instruction, from analysis.
  uint32_t* region_end;   // of FOR and IF: the END
  uint32_t* region_else;  // of IF: the ELSE or the END
  uint8_t* contracted;    // of ADD and SUBTRACT: 1 + operand taken into an fma,
                          // of MULTIPLY: 1 when it was
  pestle_llvm_value_t* value;

  // By buffer.
  LLVMValueRef* base;   // the pointer of a global or shared buffer
  LLVMValueRef** slot;  // the values of a private one
  bool* shares_alias;   // another buffer may overlap it
  LLVMValueRef* scope;  // of a shared one: the set of it alone
  LLVMValueRef* apart;  // and that of all others; NULL: none, or not shared

  uint64_t emitted;  // instructions of the kernel walked
  bool streamed;     // a nontemporal store was made: fence before returning
  bool has_matrix;   // the kernel uses matrix registers
} pestle_llvm_emit_t;

// Emits |e->k| into a new module of |e->context|; |e| holds host, ll, k, cpu,
// arena and context. The module is |e->module|, also when it fails.
PESTLE_NODISCARD pestle_status_t pestle_llvm_emit(pestle_llvm_emit_t* e);

// --- emit_module.c ---

// Makes the module, the entry and the body; leaves the builder in the body.
PESTLE_NODISCARD pestle_status_t pestle_llvm_emit_module(pestle_llvm_emit_t* e);

// --- emit_check.c ---

// Looks over the kernel once: MALFORMED for what would make emission read out
// of bounds, UNSUPPORTED for what no CPU runs. Fills the arrays by instruction.
PESTLE_NODISCARD pestle_status_t pestle_llvm_analyse(pestle_llvm_emit_t* e);

// --- emit_value.c: types, constants, values by id ---

static inline const pestle_kir_inst_t* pestle_llvm_inst(
    const pestle_llvm_emit_t* e, uint32_t id) {
  return pestle_kir_inst(e->k, id);
}
static inline pestle_dtype_t pestle_llvm_dtype(const pestle_llvm_emit_t* e,
                                               uint32_t id) {
  return (pestle_dtype_t)pestle_llvm_inst(e, id)->type;
}

// Keeps the first failure and returns poison of |dtype| x |lanes|.
LLVMValueRef pestle_llvm_fail(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                              unsigned lanes, pestle_status_code_t code,
                              const char* sentence);
LLVMTypeRef pestle_llvm_vector(pestle_llvm_emit_t* e, LLVMTypeRef lane,
                               unsigned lanes);
LLVMTypeRef pestle_llvm_type(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                             unsigned lanes);
LLVMTypeRef pestle_llvm_memory_type(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                                    unsigned lanes);
LLVMValueRef pestle_llvm_i32(pestle_llvm_emit_t* e, int64_t value);
LLVMValueRef pestle_llvm_i64(pestle_llvm_emit_t* e, int64_t value);
// |value| in each lane; integers are truncated to the type.
LLVMValueRef pestle_llvm_int(pestle_llvm_emit_t* e, LLVMTypeRef lane,
                             unsigned lanes, int64_t value);
LLVMValueRef pestle_llvm_float(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                               unsigned lanes, double value);
LLVMValueRef pestle_llvm_splat(pestle_llvm_emit_t* e, LLVMValueRef v,
                               unsigned lanes);
// A call of the intrinsic |name| that is overloaded on |types|.
LLVMValueRef pestle_llvm_intrinsic(pestle_llvm_emit_t* e, const char* name,
                                   LLVMTypeRef* types, size_t type_count,
                                   LLVMValueRef* args, unsigned arg_count);
// Of one operand, overloaded on its type.
LLVMValueRef pestle_llvm_unary(pestle_llvm_emit_t* e, const char* name,
                               LLVMValueRef v);

// fma(a, b, c).
LLVMValueRef pestle_llvm_fma(pestle_llvm_emit_t* e, LLVMValueRef a,
                             LLVMValueRef b, LLVMValueRef c);

LLVMValueRef pestle_llvm_get(pestle_llvm_emit_t* e, uint32_t id);
void pestle_llvm_set(pestle_llvm_emit_t* e, uint32_t id, LLVMValueRef v);
void pestle_llvm_set_index(pestle_llvm_emit_t* e, uint32_t id, LLVMValueRef v,
                           int64_t constant);
// Whether |id| is an index, or an integer, that emission knows.
bool pestle_llvm_known(pestle_llvm_emit_t* e, uint32_t id, int64_t* out_value);

// --- emit_loop.c ---

// Whether a loop stands in code from |pc| to |end|.
bool pestle_llvm_has_loop(pestle_llvm_emit_t* e, uint32_t pc, uint32_t end);
// Whether that code, which has no loop, becomes many accesses of memory.
bool pestle_llvm_has_many_accesses(pestle_llvm_emit_t* e, uint32_t pc,
                                   uint32_t end);

// --- emit_table.c: constants of a loop beside accumulators ---

typedef struct pestle_llvm_table_t pestle_llvm_table_t;

// |v| as code that nothing is known of gives it, which touches no memory and may be
// moved; |stays|: it may not, and gives another value at each pass.
LLVMValueRef pestle_llvm_hide(pestle_llvm_emit_t* e, LLVMValueRef v,
                              bool stays);

// Makes |e->table| in front of the loop from |pc| to |end|, if it wants one and is
// in none that has. Who opened it sets it to NULL behind the loop.
PESTLE_NODISCARD pestle_status_t pestle_llvm_open_table(pestle_llvm_emit_t* e,
                                                        uint32_t pc,
                                                        uint32_t end,
                                                        bool* out_opened);
// The constant |n| out of |e->table|; NULL where that lacks it.
LLVMValueRef pestle_llvm_from_table(pestle_llvm_emit_t* e,
                                    const pestle_kir_inst_t* n);

// --- emit_memory.c: LOAD, STORE, GATHER, SCATTER, PREFETCH ---

void pestle_llvm_emit_memory(pestle_llvm_emit_t* e, uint32_t id);
// The address of an element of a buffer in memory, one lane.
LLVMValueRef pestle_llvm_address(pestle_llvm_emit_t* e, uint32_t buffer,
                                 uint32_t index);

// --- emit_dot.c: DOT2, DOT4, SCALE ---

void pestle_llvm_emit_dot(pestle_llvm_emit_t* e, uint32_t id);

// --- emit_matrix.c: MREG_ZERO, _LOAD, _STORE, _MMA ---

// Where the kernel has such rows: makes the registers ready before its body, and
// gives them back before it returns.
void pestle_llvm_open_matrix(pestle_llvm_emit_t* e);
void pestle_llvm_close_matrix(pestle_llvm_emit_t* e);
void pestle_llvm_emit_matrix(pestle_llvm_emit_t* e, uint32_t id);

// --- emit_row.c, emit_float.c, emit_int.c: scalar rows ---

// Sets of dtypes.
#define PESTLE_LLVM_DTYPE(NAME) (1u << PESTLE_##NAME)
#define PESTLE_LLVM_FLOATS (PESTLE_LLVM_DTYPE(F32) | PESTLE_LLVM_DTYPE(F64))
#define PESTLE_LLVM_HALVES (PESTLE_LLVM_DTYPE(F16) | PESTLE_LLVM_DTYPE(BF16))
#define PESTLE_LLVM_OR_(NAME, ...) | PESTLE_LLVM_DTYPE(NAME)
#define PESTLE_LLVM_F8S (0u PESTLE_FLOAT_FORMATS_8(PESTLE_LLVM_OR_))
#define PESTLE_LLVM_INTS                                                     \
  (PESTLE_LLVM_DTYPE(I4) | PESTLE_LLVM_DTYPE(I8) | PESTLE_LLVM_DTYPE(I16) |  \
   PESTLE_LLVM_DTYPE(I32) | PESTLE_LLVM_DTYPE(I64) | PESTLE_LLVM_DTYPE(U4) | \
   PESTLE_LLVM_DTYPE(U8) | PESTLE_LLVM_DTYPE(U16) | PESTLE_LLVM_DTYPE(U32) | \
   PESTLE_LLVM_DTYPE(U64) | PESTLE_LLVM_DTYPE(I2) | PESTLE_LLVM_DTYPE(U2) |  \
   PESTLE_LLVM_DTYPE(INDEX))
#define PESTLE_LLVM_BITS (PESTLE_LLVM_INTS | PESTLE_LLVM_DTYPE(I1))
#define PESTLE_LLVM_ALL_DTYPES \
  (PESTLE_LLVM_FLOATS | PESTLE_LLVM_HALVES | PESTLE_LLVM_F8S | PESTLE_LLVM_BITS)

// One scalar row to emit.
typedef struct pestle_llvm_row_args_t {
  pestle_dtype_t dtype;  // of the operands; of SELECT the last two
  unsigned lanes, facts;
  LLVMValueRef x[3];
  bool known[3];  // an operand that is one constant, and its value
  double known_float[3];
  int64_t known_int[3];
} pestle_llvm_row_args_t;

typedef struct pestle_llvm_row_t pestle_llvm_row_t;
struct pestle_llvm_row_t {
  LLVMValueRef (*emit)(pestle_llvm_emit_t* e, const pestle_llvm_row_t* row,
                       const pestle_llvm_row_args_t* a);
  uint32_t dtypes;        // that it takes
  const char* intrinsic;  // what the functions of several rows differ in
  int predicate, unsigned_predicate;
};

// The row of pestle_op_t |op|, or NULL. Caps list exactly these.
const pestle_llvm_row_t* pestle_llvm_float_row(unsigned op);
const pestle_llvm_row_t* pestle_llvm_int_row(unsigned op);
uint32_t pestle_llvm_row_dtypes(unsigned op);
// The code of |op| on |a|; UNSUPPORTED when there is no row for its dtype.
LLVMValueRef pestle_llvm_emit_row(pestle_llvm_emit_t* e, unsigned op,
                                  const pestle_llvm_row_args_t* a);
// A scalar instruction, operands and all.
void pestle_llvm_emit_scalar(pestle_llvm_emit_t* e, uint32_t id);

// --- emit_cast.c: CAST ---

uint32_t pestle_llvm_cast_dtypes(void);
LLVMValueRef pestle_llvm_emit_cast(pestle_llvm_emit_t* e, pestle_dtype_t from,
                                   pestle_dtype_t to, unsigned lanes,
                                   unsigned facts, LLVMValueRef v);
// |v| of i2, ui2, i4 or ui4 extended from its low bits; others as they are.
LLVMValueRef pestle_llvm_normalise(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                                   unsigned lanes, LLVMValueRef v);

// --- emit_lane.c: what moves lanes; MASK, MADI ---

void pestle_llvm_emit_lane(pestle_llvm_emit_t* e, uint32_t id);
// A scalar row on one-lane indices that keeps the pair, if it can.
bool pestle_llvm_emit_index_row(pestle_llvm_emit_t* e, uint32_t id);

// --- caps.c ---

void pestle_llvm_caps(const pestle_llvm_cpu_t* cpu,
                      pestle_target_caps_t* out_caps);

#endif  // PESTLE_PLUGINS_LLVM_EMIT_H_
