// SPDX-License-Identifier: Apache-2.0
// Why a compilation did what it did: sentences that passes and sketches leave
// where they decide, for `pestle explain`. Nobody asks: there is no list, and
// nothing is written.
#ifndef PESTLE_IR_REMARK_H_
#define PESTLE_IR_REMARK_H_

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "ir/graph.h"

typedef struct pestle_remark_t {
  const char* pass;             // static
  const char* code;             // static: what the sentence says, for counting
  const char* what;             // an op or value; "" for the module
  const char* text;             // a sentence without its full stop
  const pestle_node_t* kernel;  // the fusion that it is about; NULL: all
  const pestle_node_t* from;    // the fusion whose result that one reads
} pestle_remark_t;

typedef struct pestle_remarks_t {
  pestle_arena_t arena;  // of |what| and |text|
  PESTLE_VEC(pestle_remark_t) list;
  bool failed;  // out of memory
} pestle_remarks_t;

void pestle_remarks_init(pestle_allocator_t allocator,
                         pestle_remarks_t* out_remarks);
void pestle_remarks_deinit(pestle_remarks_t* remarks);
// Adds a remark whose texts are copied, |pass| and |code| excepted.
void pestle_remarks_add(pestle_remarks_t* remarks,
                        const pestle_remark_t* remark);
// A remark on |node|, for all kernels. |remarks| NULL: nobody asks.
void pestle_remarks_add_on(pestle_remarks_t* remarks, const char* pass,
                           const pestle_node_t* node, const char* code,
                           const char* text);
PESTLE_NODISCARD pestle_status_t
pestle_remarks_status(const pestle_remarks_t* remarks);

// "maximum (Relu_3)": the op and, where it has one, the name of its source.
void pestle_remark_describe(const pestle_node_t* node, pestle_strbuf_t* out);

#endif  // PESTLE_IR_REMARK_H_
