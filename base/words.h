// SPDX-License-Identifier: Apache-2.0
// The strings of pestle/strings.h, made from a dictionary's text: "3:red5:green" in
// quotes, each with how many bytes it has, and bytes that are not printable as \\XX.
#ifndef PESTLE_BASE_WORDS_H_
#define PESTLE_BASE_WORDS_H_

#include "base/context.h"
#include "pestle/strings.h"

// Of |text| ("": none), which is not kept; it keeps |context|. MALFORMED when it is no
// such text.
PESTLE_NODISCARD pestle_status_t
pestle_strings_create_text(pestle_context_t* context, const char* text,
                           pestle_strings_t** out_strings);

#endif  // PESTLE_BASE_WORDS_H_
