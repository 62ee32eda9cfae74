// SPDX-License-Identifier: Apache-2.0
// Attributes (graph.h, "Attributes of dialects") of a function whose arguments or
// results are strings (docs/adr/035): what strings there are, a text of the function;
// and of each such argument or result, i32, that it is their numbers.
#ifndef PESTLE_IR_DICTIONARY_H_
#define PESTLE_IR_DICTIONARY_H_

#define PESTLE_FUNCTION_DICTIONARY "pestle.dictionary"
#define PESTLE_FUNCTION_STRINGS "pestle.strings"

#endif  // PESTLE_IR_DICTIONARY_H_
