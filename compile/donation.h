// SPDX-License-Identifier: Apache-2.0
// Which results may be made in place of inputs that runs are given: what the
// compilation's options and the module say, checked and in one order.
#ifndef PESTLE_COMPILE_DONATION_H_
#define PESTLE_COMPILE_DONATION_H_

#include "base/str.h"
#include "base/vec.h"
#include "ir/graph.h"
#include "pestle/compile.h"

// By input, each at most once.
typedef struct pestle_donations_t {
  PESTLE_VEC(pestle_alias_t) list;
} pestle_donations_t;

// Whether the extents of result |result| are known after a run only.
bool pestle_donation_is_bounded(const pestle_function_t* function,
                                uint32_t result);

void pestle_donations_init(pestle_allocator_t allocator,
                           pestle_donations_t* out_donations);
void pestle_donations_deinit(pestle_donations_t* donations);
// INVALID_ARGUMENT names an input or result that does not exist, is named twice,
// is bounded, or is of another type than its partner.
PESTLE_NODISCARD pestle_status_t pestle_donations_collect(
    const pestle_compile_options_t* options, const pestle_function_t* function,
    pestle_donations_t* out_donations);
void pestle_donations_key(const pestle_donations_t* donations,
                          pestle_strbuf_t* key);

#endif  // PESTLE_COMPILE_DONATION_H_
