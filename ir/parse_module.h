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

// --- parse_port.c ---

// What is noted of an argument or result beside its type.
typedef struct pestle_parse_port_t {
  const char* name;   // pestle.name, or NULL
  uint32_t shape_of;  // pestle.shape_of + 1, or 0
  pestle_dialect_attrs_t attrs;
} pestle_parse_port_t;
PESTLE_NODISCARD pestle_status_t
pestle_parse_port(pestle_parser_t* p, const pestle_generic_value_t* dict,
                  pestle_parse_port_t* out_port);
// The entries of |dict| that the module keeps, in the scratch arena.
PESTLE_NODISCARD pestle_status_t
pestle_parse_kept(pestle_parser_t* p, const pestle_generic_value_t* dict,
                  pestle_dialect_attrs_t* out_attrs);

#endif  // PESTLE_IR_PARSE_MODULE_H_
