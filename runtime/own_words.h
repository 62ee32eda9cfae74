// SPDX-License-Identifier: Apache-2.0
// Functions of Pestle's own that read the letters of strings or make new ones
// (docs/adr/036). Strings are their numbers, i32; a number of none, which may lie behind
// what is real of a tensor, is "".
#ifndef PESTLE_RUNTIME_OWN_WORDS_H_
#define PESTLE_RUNTIME_OWN_WORDS_H_

#include "pestle/custom_call.h"

#define PESTLE_OWN_WORDS "pestle.s."

// The function called |name|, or NULL.
pestle_custom_call_fn_t pestle_own_words_find(const char* name);

#endif  // PESTLE_RUNTIME_OWN_WORDS_H_
