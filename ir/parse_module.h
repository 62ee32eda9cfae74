// SPDX-License-Identifier: Apache-2.0
// The outer part of the parser: modules and functions.
#ifndef PESTLE_IR_PARSE_MODULE_H_
#define PESTLE_IR_PARSE_MODULE_H_

#include "ir/parse_internal.h"

// Reads the text up to its end: makes |p->module|, declares its functions and
// notes where their bodies are in |p->bodies|.
PESTLE_NODISCARD pestle_status_t pestle_parse_module_text(pestle_parser_t* p);
PESTLE_NODISCARD pestle_status_t
pestle_parse_function_body(pestle_parser_t* p, const pestle_parse_body_t* body);

#endif  // PESTLE_IR_PARSE_MODULE_H_
