// SPDX-License-Identifier: Apache-2.0
// The backend "ref", as its files share it. A kernel is decoded once, at load,
// into steps whose operands are byte offsets into a frame, so that a run
// neither looks at rows nor allocates. The data flow:
//
//   compile  kernel -> artifact: its arrays behind a header (ref_artifact.c)
//   load     artifact -> kernel view, checked -> program (ref_decode*.c)
//   run      program over [begin, end) in a frame (ref_run.c)
//
// A value takes one slot a lane in the widest type of its class; narrow types
// are rounded or wrapped after each op (`fix`).
#ifndef PESTLE_PLUGINS_REF_REF_INTERNAL_H_
#define PESTLE_PLUGINS_REF_REF_INTERNAL_H_

#include <stdatomic.h>

#include "plugins/ref/ref.h"

// --- Classes ---

typedef enum ref_class_e {
  REF_F32,  // float: f32 and narrower
  REF_F64,  // double
  REF_I64,  // int64_t: signed integers, index
  REF_U64,  // uint64_t: unsigned integers, i1
  REF_CLASS_COUNT,
} ref_class_t;

static inline ref_class_t pestle_ref_plugin_class(unsigned dtype) {
  if (pestle_dtype_is((pestle_dtype_t)dtype, PESTLE_KIND_FLOAT)) {
    return dtype == PESTLE_F64 ? REF_F64 : REF_F32;
  }
  return pestle_dtype_is((pestle_dtype_t)dtype, PESTLE_KIND_SIGNED) ? REF_I64
                                                                    : REF_U64;
}
static inline unsigned pestle_ref_plugin_slot(unsigned dtype) {
  return pestle_ref_plugin_class(dtype) == REF_F32 ? 4 : 8;
}

// pestle_kir_op_info(), which is 2.5 KB of code where it is used, once for all.
pestle_kir_op_info_t pestle_ref_plugin_op_info(unsigned op);

// --- Kernels on slots ---

// out[i] = op(a[i], b[i], c[i]) for |count| lanes of a class. |arg|: the width
// of the type in bits, or what the function says.
typedef void (*ref_fn_t)(void* out, const void* a, const void* b, const void* c,
                         size_t count, uint64_t arg);

// A scalar row on operands of |kind|; NULL when the row does not take it.
ref_fn_t pestle_ref_plugin_scalar(pestle_op_t op, ref_class_t kind);
// Makes an f32 result as wrong as PESTLE_KIR_APPROX lets a target be; |arg|: not 0 where
// the instruction says PESTLE_KIR_FLUSH.
ref_fn_t pestle_ref_plugin_approx(pestle_op_t op);
// FMA by an instruction of the CPU; NULL where it has none.
ref_fn_t pestle_ref_plugin_native_fma(ref_class_t kind);
// Brings a result in slots back to its narrower type; NULL when there is
// nothing to do. |arg|: pestle_ref_plugin_fix_arg().
ref_fn_t pestle_ref_plugin_fix(unsigned dtype);
// Casts and bitcasts; |arg|: pestle_ref_plugin_cast_arg().
ref_fn_t pestle_ref_plugin_cast(unsigned from, unsigned to);
ref_fn_t pestle_ref_plugin_bitcast(unsigned from, unsigned to);
static inline uint64_t pestle_ref_plugin_cast_arg(unsigned from, unsigned to) {
  return (uint64_t)from << 8 | to;
}

// Moves elements between memory and slots. |data| is the buffer, |first| the
// element of lane 0.
typedef void (*ref_move_t)(void* data, int64_t first, void* slots,
                           size_t count);
ref_move_t pestle_ref_plugin_load(unsigned dtype);
ref_move_t pestle_ref_plugin_store(unsigned dtype);

// Bits of |dtype|, a float of at most 16 bits, from and to a value. Rounds to
// nearest even, once.
uint32_t pestle_ref_plugin_encode(unsigned dtype, double value);
float pestle_ref_plugin_decode(unsigned dtype, uint32_t bits);

// --- Programs ---

typedef enum ref_kind_e {
  REF_STEP_VALUE,  // fn, then fix
  REF_STEP_MADI,
  REF_STEP_MASK,
  REF_STEP_PARAM,
  REF_STEP_LANE,  // extract: one slot
  REF_STEP_INSERT,
  REF_STEP_REDUCE,
  REF_STEP_SHUFFLE,
  REF_STEP_LOAD,
  REF_STEP_STORE,
  REF_STEP_GATHER,
  REF_STEP_SCATTER,
  REF_STEP_PRIVATE_LOAD,
  REF_STEP_PRIVATE_STORE,
  REF_STEP_LOAD_WORDS,
  REF_STEP_ATOMIC_ADD,
  REF_STEP_ADDRESS,  // bytes from the start of the cluster's shared memory on
  REF_STEP_REF_AT,
  REF_STEP_LOAD_AT,
  REF_STEP_MREG_ZERO,
  REF_STEP_MREG_LOAD,
  REF_STEP_MREG_STORE,
  REF_STEP_MREG_MMA,
  REF_STEP_FOR,
  REF_STEP_GROUP,
  REF_STEP_NEXT,  // the end of a loop
  REF_STEP_IF,
  REF_STEP_JUMP,
  REF_STEP_TRAP_IF,
  REF_STEP_LANE_INDEX,  // of this lane along axis |imm|; 3: its group's number
  REF_STEP_BARRIER,     // the other lanes come here first
  REF_STEP_SG_REDUCE,
  REF_STEP_MMA,
  REF_STEP_LDMATRIX,
  REF_STEP_SG_BALLOT,
  REF_STEP_COPY,  // at once: who waits for it finds it done
  // What belongs to tiles: ref_tile.h.
  REF_STEP_MBAR_INIT,
  REF_STEP_MBAR_EXPECT,
  REF_STEP_MBAR_ARRIVE,
  REF_STEP_MBAR_WAIT,
  REF_STEP_TILE_LOAD,
  REF_STEP_TILE_LOAD_ALL,
  REF_STEP_TILE_STORE,
  REF_STEP_TILE_WAIT,
  REF_STEP_TILE_FENCE,  // MBAR_FENCE too
  REF_STEP_SYNC_ARRIVE,
  REF_STEP_SYNC,
  REF_STEP_CLUSTER_SYNC,
  REF_STEP_STMATRIX,
  REF_STEP_WGMMA,
  REF_STEP_WGMMA_FENCE,
  REF_STEP_WGMMA_COMMIT,
  REF_STEP_WGMMA_WAIT,
  REF_STEP_REGISTERS,
} ref_kind_t;

#define REF_NO_MASK UINT32_MAX

typedef struct ref_step_t {
  uint8_t kind;  // ref_kind_t
  uint8_t slot;  // bytes a lane of the result or of the value stored
  uint8_t scope;
  uint32_t lanes;
  uint32_t out, a, b, c;  // offsets into the frame
  uint32_t target;        // step to go to; the table's first word
  uint32_t place;  // argument slot, offset in scratch or frame; operand lanes
  ref_fn_t fn, fix;
  ref_move_t move;
  uint64_t arg, fix_arg;
  int64_t imm;
  uint64_t count;  // elements of the buffer
  uint32_t size;   // bytes of an element in memory
  uint32_t id;     // of the instruction
} ref_step_t;

// A view of a global buffer by boxes (pestle_kir_scope_t), fastest dim first.
enum { REF_MAP_DIMS = 5, REF_MAP_NUMBERS = 8 };  // of a coordinate
typedef struct ref_map_t {
  uint32_t slot;  // of the buffer among the arguments
  uint32_t rank, swizzle, size;
  uint64_t offset, count;  // elements: of the view's first, of the buffer
  uint32_t extent[REF_MAP_DIMS], box[REF_MAP_DIMS];
  uint64_t stride[REF_MAP_DIMS];
  bool windows;  // by spatial dim, at its place: where they stand
  int32_t low[REF_MAP_DIMS], high[REF_MAP_DIMS], step[REF_MAP_DIMS];
} ref_map_t;

struct pestle_loaded_s {
  const pestle_host_t* host;
  size_t total_size;  // of this block
  uint32_t step_count;
  uint32_t constant_size;  // of the frame, copied from |constants|
  uint64_t frame_size;
  const ref_step_t* steps;
  const unsigned char* constants;
  const uint32_t* words;  // of shuffle tables
  const ref_map_t* maps;
  const uint32_t* coords;  // offsets into the frame, REF_MAP_NUMBERS a copy
  uint32_t lane[3];        // lanes of a group
  uint32_t cluster;        // groups of a cluster
  uint32_t shared_bytes;
  bool has_registers;  // of matrices
  bool has_tiles;
  atomic_uint runs;  // groups that began: the seed of the next one's order
  char name[64];
};

// What an entry returns when it had to stop, beside ids of traps.
#define REF_TRAP_BOUNDS (-1)  // an access left its buffer
#define REF_TRAP_MEMORY (-2)  // no memory for the frame
#define REF_TRAP_APART (-3)   // lanes of a group wait at different barriers
#define REF_TRAP_TILES \
  (-4)  // a fault in the use of tiles; the log has a sentence

pestle_status_t pestle_ref_plugin_status(const pestle_host_t* host,
                                         pestle_status_code_t code,
                                         const char* file, int line,
                                         const char* format, ...)
    PESTLE_PRINTF(5, 6);
#define REF_ERROR(host, code, ...)                                           \
  pestle_ref_plugin_status((host), PESTLE_STATUS_##code, __FILE__, __LINE__, \
                           __VA_ARGS__)

// The artifact as a kernel view into |artifact|, its sizes checked.
pestle_status_t pestle_ref_plugin_open(const pestle_host_t* host,
                                       const void* artifact, size_t size,
                                       pestle_kir_t* out_kernel);
pestle_status_t pestle_ref_plugin_pack(const pestle_host_t* host,
                                       const pestle_kir_t* kernel,
                                       pestle_blob_t* out_artifact);
pestle_status_t pestle_ref_plugin_list(const pestle_host_t* host,
                                       const pestle_kir_t* kernel,
                                       pestle_blob_t* out_text);

// Checks types, lanes and regions, so that no kernel makes a run leave its
// frame. MALFORMED names the instruction.
pestle_status_t pestle_ref_plugin_check(const pestle_host_t* host,
                                        const pestle_kir_t* kernel);
// Decodes a checked kernel.
pestle_status_t pestle_ref_plugin_program(const pestle_host_t* host,
                                          const pestle_kir_t* kernel,
                                          pestle_loaded_t** out_loaded);

// Short dot products as kir.def has them: |arg| is DOT4's immediate. Of DOT2
// the sums are made from the lower element on, each rounded to f32; denormals
// are kept.
void pestle_ref_plugin_dot2(void* out, const void* a, const void* b,
                            const void* c, size_t count, uint64_t arg);
void pestle_ref_plugin_dot4(void* out, const void* a, const void* b,
                            const void* c, size_t count, uint64_t arg);

// a 2^b as kir.def has it.
void pestle_ref_plugin_scale(void* out, const void* a, const void* b,
                             const void* c, size_t count, uint64_t arg);

// Matrix registers of a thread, behind each other, and their product: |numbers|
// is c, a, b and MREG_MMA's immediate, a byte each from the lowest on. Sums of
// bf16 are made from the first tap on, as DOT2's.
enum { REF_MREG_BYTES = PESTLE_KIR_MREG_ROWS * PESTLE_KIR_MREG_ROW_BYTES };
void pestle_ref_plugin_mreg_mma(unsigned char* registers, uint64_t numbers);

// What lanes of a subgroup do together, on their frames, |frame_size| apart;
// |matrix| is the shared memory. False: an access left its buffer.
// As units add up products of 8-bit floats: these and the sum so far are cut off some
// places behind the first of the largest of them (ref_tile_async.c).
float pestle_ref_plugin_add_cut(float sum, const float* product,
                                unsigned count);
bool pestle_ref_plugin_mma(const ref_step_t* s, unsigned char* frames,
                           size_t frame_size, uint32_t lanes);
bool pestle_ref_plugin_ldmatrix(const ref_step_t* s, unsigned char* frames,
                                size_t frame_size, uint32_t lanes,
                                const unsigned char* shared);
// Of one subgroup.
bool pestle_ref_plugin_stmatrix(const ref_step_t* s, unsigned char* frames,
                                size_t frame_size, unsigned char* shared);
void pestle_ref_plugin_ballot(const ref_step_t* s, unsigned char* frames,
                              size_t frame_size, uint32_t lanes);

// --- Runs ---

typedef struct ref_tiles_t ref_tiles_t;

typedef struct ref_machine_t {
  const pestle_loaded_t* program;
  unsigned char* frame;
  void* const* buffers;
  const int64_t* params;
  unsigned char* scratch;  // of the lane's group
  uint64_t base;           // of that memory in the cluster's
  int64_t begin, end;
  int64_t lane[4];           // the last: the group's number in its cluster
  unsigned char* registers;  // PESTLE_KIR_MREGS, where groups have one lane
  ref_tiles_t* tiles;        // NULL: nobody looks at what is accessed
} ref_machine_t;

// Lanes do it together, or tiles need it: a run stops behind it.
static inline bool pestle_ref_plugin_is_meeting(const ref_step_t* s) {
  return s->kind == REF_STEP_BARRIER || s->kind == REF_STEP_SG_REDUCE ||
         s->kind == REF_STEP_MMA || s->kind == REF_STEP_LDMATRIX ||
         s->kind == REF_STEP_SG_BALLOT || s->kind > REF_STEP_COPY;
}

// Runs from step |*at| on, to the end of the program or past what lanes do
// together or tiles need. A trap, or 0.
int32_t pestle_ref_plugin_steps(const ref_machine_t* m, uint32_t* at);
// SG_REDUCE of |count| lanes whose frames are |frame_size| apart.
void pestle_ref_plugin_reduce_lanes(const ref_step_t* s, unsigned char* frames,
                                    size_t frame_size, uint32_t count);
// Lane |lane| of the group, or of all of the cluster's groups one after the other,
// with its frame of those at |frames|.
void pestle_ref_plugin_take_lane(ref_machine_t* m, unsigned char* frames,
                                 size_t frame_size, uint32_t lane);
// A group of a program with tiles, or a cluster of them: see ref_tile.h.
int32_t pestle_ref_plugin_run_tiles(ref_machine_t* m, unsigned char* frames,
                                    size_t frame_size, uint32_t lanes);

int32_t pestle_ref_plugin_run(const void* self, void* const* buffers,
                              const int64_t* params, int64_t begin, int64_t end,
                              void* scratch);

#endif  // PESTLE_PLUGINS_REF_REF_INTERNAL_H_
