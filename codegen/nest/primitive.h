// SPDX-License-Identifier: Apache-2.0
// Schedule primitives as data: what was done to a nest, in an order in which it can
// be done again. A primitive refers by name, since ids move when stages are added;
// its text is one line:
//
//   inline P Q ...              fuse S.a b            split S.a 64
//   reorder S a b c             at P, C.a             at P, C
//   store P private             serial S.a            unroll S.a
//   vectorise S.a               bind S.a group.x      rfactor S.a reassoc
//   pack S.n t 64               stage S t             epilogue S scratch
//   partial S.k 64 reassoc      online O.k reassoc : M L
//   transpose S                 stream S
//   dot S.k 4                   flip S                join S.k l
//   prefetch S t at a by 1024   prefetch S t at a like u by 64 share 8
//   permute S a c b                               split_read S t
//   flatten S.a b               border S reassoc
//   unfuse S.a 8
//
// and of each template (template.h) its name, a stage, and what its form says:
//
//   winograd S 1 14 6 4 16 0 1 4                  shared_transpose S t
#ifndef PESTLE_CODEGEN_NEST_PRIMITIVE_H_
#define PESTLE_CODEGEN_NEST_PRIMITIVE_H_

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "codegen/nest/template.h"
#include "pestle/status.h"

// X(NAME, word, form): the form is what follows the word. 's' the stage, 'n'
// the next name, '*' all names that are left, '?' one more name after '.' or
// none, 'i' the next integer, 'P' a scope, 'R' " reassoc" or nothing, 'G'
// "group.x", "lane.x" or "lane.y", 'E' "scratch", 'A' "at", 'B' " by", 'L' " like" and
// a name or nothing, 'M' " share" and an integer or nothing, which is 0, "[a|b]" the
// next integer, which is 1 for " a", 2 for " b" and 0 for nothing; other characters
// stand for themselves.
// clang-format off
#define PESTLE_PRIMS(X)                                                       \
  X(INLINE, "inline", "*") X(FUSE, "fuse", "s.n n")                           \
  X(SPLIT, "split", "s.n i") X(REORDER, "reorder", "s *")                     \
  X(AT, "at", "s, n?") X(STORE, "store", "s P") X(SERIAL, "serial", "s.n")    \
  X(UNROLL, "unroll", "s.n") X(VECTORISE, "vectorise", "s.n")                 \
  X(BIND, "bind", "s.n G") X(RFACTOR, "rfactor", "s.nR")                      \
  X(PACK, "pack", "s.n n i") X(STAGE, "stage", "s n")                         \
  X(EPILOGUE, "epilogue", "s E") X(PARTIAL, "partial", "s.n iR")              \
  X(ONLINE, "online", "s.nR : *") X(TRANSPOSE, "transpose", "s")   \
  X(STREAM, "stream", "s") \
  X(DOT, "dot", "s.n iR") X(FLIP, "flip", "s") X(JOIN, "join", "s.n n") \
  X(PREFETCH, "prefetch", "s n A nLB iM")                                      \
  X(BORDER, "border", "sR") \
  X(PERMUTE, "permute", "s *") X(FLATTEN, "flatten", "s.n n") \
  X(SPLIT_READ, "split_read", "s n") X(UNFUSE, "unfuse", "s.n i")
// clang-format on

typedef enum pestle_prim_e {
#define PESTLE_PRIM_ENUM_(NAME, ...) PESTLE_PRIM_##NAME,
  PESTLE_PRIMS(PESTLE_PRIM_ENUM_)
#undef PESTLE_PRIM_ENUM_
      PESTLE_PRIM_TEMPLATE,  // of the template that the primitive names
  PESTLE_PRIM_COUNT
} pestle_prim_t;

enum { PESTLE_PRIM_INTS = PESTLE_TEMPLATE_INTS };

typedef struct pestle_primitive_t {
  uint8_t prim;  // pestle_prim_t
  uint8_t int_count;
  uint32_t name_count;
  const pestle_template_t* template;  // of TEMPLATE
  const char* stage;                  // NULL for INLINE
  const char* const* names;           // axes, stages or a tensor, by the form
  // Factor; pestle_scope_t; whether to reassociate; sizes of a tile.
  int64_t ints[PESTLE_PRIM_INTS];
} pestle_primitive_t;

typedef PESTLE_VEC(pestle_primitive_t) pestle_primitives_t;

// One line, without the newline.
void pestle_primitive_print(const pestle_primitive_t* primitive,
                            pestle_strbuf_t* out);
// Reads primitives, one a line, and appends them. Names live in |arena|. MALFORMED
// names |file|, line and column.
PESTLE_NODISCARD pestle_status_t
pestle_primitives_parse(pestle_arena_t* arena, const char* text, size_t size,
                        const char* file, pestle_primitives_t* primitives);

#endif  // PESTLE_CODEGEN_NEST_PRIMITIVE_H_
