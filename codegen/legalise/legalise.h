// SPDX-License-Identifier: Apache-2.0
// Legalisation: a list of linear copies of a kernel, each made only when the
// target lacks something that the kernel uses. A pass sees one instruction
// after the other and appends what stands for it; nothing is edited in place.
//
//   legalise_wide.c    integers of 64 bits as pairs of words
//   legalise_narrow.c  floats of 16 bits and less, integers below 8, i1 in memory
//   legalise_row.c     scalar rows out of other rows
//   legalise_approx.c  and by the target's approximations
//   legalise_lanes.c   long vectors cut up
//
// Private to codegen/legalise/*.c.
//
// codegen/legalise/ is also the vector math that targets lack.
// codegen/legalise/ knows nothing of nests, schedules or graphs, nor of a
// target but by its description.
#ifndef PESTLE_CODEGEN_LEGALISE_LEGALISE_H_
#define PESTLE_CODEGEN_LEGALISE_LEGALISE_H_

#include "codegen/kir/kir_internal.h"

// How many pieces legalise_lanes.c may cut a value into.
#define PESTLE_REWRITE_PARTS 32

struct pestle_kir_ranges_t;

typedef struct pestle_rewrite_t {
  const pestle_kir_t* from;
  const pestle_target_caps_t* caps;
  pestle_numerics_t numerics;
  pestle_kir_builder_t* to;
  PESTLE_VEC(pestle_kir_id_t) map;  // by id in |from|; lanes: parts of each
  PESTLE_VEC(uint32_t) uses;        // by id in |from|; empty until asked for
  PESTLE_VEC(uint8_t) approx;       // pestle_approx_t; the same
  uint64_t widened;                 // dtypes that the narrow pass replaces
  struct pestle_kir_ranges_t*
      ranges;  // of |from|; the wide pass alone has them
} pestle_rewrite_t;

typedef struct pestle_rewrite_pass_t {
  // Whether |r->from| needs the pass; may note why in |r|.
  bool (*needed)(pestle_rewrite_t* r);
  // Changes |r->to|'s buffers, which are copies. May be NULL.
  void (*buffers)(pestle_rewrite_t* r);
  pestle_status_t (*inst)(pestle_rewrite_t* r, uint32_t id);
  unsigned parts;  // ids in |r->map| a value; 0: one
  // After the last instruction, also on failure. May be NULL.
  void (*end)(pestle_rewrite_t* r);
  // Whether what it makes is verified, and refused if it does not hold.
  bool is_checked;
} pestle_rewrite_pass_t;

extern const pestle_rewrite_pass_t pestle_legalise_wide_rows;
extern const pestle_rewrite_pass_t pestle_legalise_wide;
extern const pestle_rewrite_pass_t pestle_legalise_narrow;
extern const pestle_rewrite_pass_t pestle_legalise_row;
extern const pestle_rewrite_pass_t pestle_legalise_lanes;

// --- legalise.c ---

// Whether the target compiles |op| on |dtype|.
bool pestle_rewrite_can(const pestle_rewrite_t* r, unsigned op,
                        pestle_dtype_t dtype);
static inline bool pestle_rewrite_can_row(const pestle_rewrite_t* r,
                                          pestle_op_t op,
                                          pestle_dtype_t dtype) {
  return pestle_rewrite_can(r, pestle_kir_code(op), dtype);
}
// The dtype that decides whether |inst| is legal: of its operands.
pestle_dtype_t pestle_rewrite_dtype(const pestle_kir_t* k,
                                    const pestle_kir_inst_t* inst);
// Whether |inst| is legal.
bool pestle_rewrite_legal(const pestle_rewrite_t* r,
                          const pestle_kir_inst_t* inst);
// UNSUPPORTED, naming what |inst| asks for and the target.
pestle_status_t pestle_rewrite_unsupported(const pestle_rewrite_t* r,
                                           const pestle_kir_inst_t* inst);
// How many instructions of |r->from| read value |id|; 0 without memory. While
// instructions are rewritten alone.
uint32_t pestle_rewrite_uses(pestle_rewrite_t* r, pestle_kir_id_t id);
// The constant that all lanes of float |id| are. False: they are none.
bool pestle_rewrite_constant(const pestle_kir_t* k, pestle_kir_id_t id,
                             double* out_value);
// |inst| with its operands as they are called in |r->to|.
pestle_kir_inst_t pestle_rewrite_mapped(const pestle_rewrite_t* r,
                                        const pestle_kir_inst_t* inst);
// Appends |inst|, whose operands are mapped, through the builder's folding.
pestle_kir_id_t pestle_rewrite_put(pestle_rewrite_t* r, pestle_kir_inst_t inst);
static inline void pestle_rewrite_set(pestle_rewrite_t* r, uint32_t id,
                                      pestle_kir_id_t value) {
  r->map.data[id] = value;
}
// The shuffle that takes |count| lanes of |a| from |first| on.
pestle_kir_id_t pestle_rewrite_slice(pestle_rewrite_t* r, pestle_kir_id_t a,
                                     unsigned first, unsigned count);

// --- legalise_divide.c ---

// The two terms of 1 / c whose product with any x of f32, by
// fma(x, high, x * low), is x / c rounded to f32; below 2^-100 it may be off by an ulp.
// False: there are none, or |c| is a power of two or outside of 2^-60 to 2^60.
bool pestle_split_reciprocal(float c, float* out_high, float* out_low);
// Whether instruction |id| divides by a constant |out_c| or, under `strict`, rounds such
// a quotient to an integer, on a target where a multiply-add is one instruction.
bool pestle_rewrite_is_quotient(const pestle_rewrite_t* r, uint32_t id,
                                float* out_c);
// Appends what stands for such an instruction. False: it stays what it is, because the
// constant has no two terms, or others read what is rounded.
bool pestle_rewrite_quotient(pestle_rewrite_t* r, uint32_t id, float c,
                             pestle_kir_id_t* out_id);

// --- legalise_whole.c ---

typedef struct pestle_visit_t {
  pestle_kir_id_t value;  // in |from|
  double least, most;
} pestle_visit_t;

// Whether instruction |id| makes an f32 of a narrow integer that was a clamped whole
// number of f32: the number itself, within the bounds.
bool pestle_rewrite_is_visit(const pestle_rewrite_t* r, uint32_t id,
                             pestle_visit_t* out_visit);
// Appends what stands for it.
pestle_kir_id_t pestle_rewrite_visit(pestle_rewrite_t* r, uint32_t id,
                                     const pestle_visit_t* visit);

#endif  // PESTLE_CODEGEN_LEGALISE_LEGALISE_H_
