// SPDX-License-Identifier: Apache-2.0
// The strings of pestle/strings.h, made from a dictionary's text: "3:red5:green" in
// quotes, each with how many bytes it has, and bytes that are not printable as \\XX.
#ifndef PESTLE_BASE_WORDS_H_
#define PESTLE_BASE_WORDS_H_

#include "base/context.h"
#include "base/str.h"
#include "pestle/strings.h"

// Of |text| ("": none), which is not kept; it keeps |context|. MALFORMED when it is no
// such text.
PESTLE_NODISCARD pestle_status_t
pestle_strings_create_text(pestle_context_t* context, const char* text,
                           pestle_strings_t** out_strings);

// What tells the dictionary that |strings| were made of from another.
uint64_t pestle_strings_hash(const pestle_strings_t* strings);
uint64_t pestle_dictionary_hash(const char* text);
// The string of |id|, borrowed until the end of |strings|; "" of a number of none, which
// lies behind the real extent of what a run computes.
pestle_str_t pestle_strings_word(const pestle_strings_t* strings, int32_t id);

// --- Texts as lists ---

// Appends |text| to a list of texts that a custom call's configuration is: printable, no
// blanks, a blank behind each.
void pestle_field_append(pestle_strbuf_t* list, pestle_str_t text);
// Takes the next text of |rest| into |out|, which is cleared; false where there is none.
bool pestle_field_next(pestle_str_t* rest, pestle_strbuf_t* out);

#endif  // PESTLE_BASE_WORDS_H_
