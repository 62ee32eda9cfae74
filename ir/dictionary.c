// SPDX-License-Identifier: Apache-2.0
#include "ir/dictionary.h"

#include "base/require.h"
#include "base/words.h"
#include "ir/graph.h"

static const pestle_function_t* entry_of(const pestle_module_t* module) {
  // Reading the entry does not change the module.
  return module ? pestle_module_entry((pestle_module_t*)(uintptr_t)module)
                : NULL;
}

static bool is_strings(pestle_dialect_attrs_t attrs) {
  return pestle_dialect_attrs_find(attrs, PESTLE_FUNCTION_STRINGS) != NULL;
}

bool pestle_module_input_is_strings(const pestle_module_t* module,
                                    size_t index) {
  const pestle_function_t* entry = entry_of(module);
  return entry && is_strings(pestle_function_argument_attrs(entry, index));
}

bool pestle_module_output_is_strings(const pestle_module_t* module,
                                     size_t index) {
  const pestle_function_t* entry = entry_of(module);
  return entry && is_strings(pestle_function_result_attrs(entry, index));
}

pestle_status_t pestle_module_strings_create(const pestle_module_t* module,
                                             pestle_strings_t** out_strings) {
  if (out_strings) *out_strings = NULL;
  PESTLE_REQUIRE(module && out_strings, "a module and a place for the strings");
  const pestle_function_t* entry = entry_of(module);
  const char* text = entry
                         ? pestle_dialect_attrs_find(entry->dialect_attrs,
                                                     PESTLE_FUNCTION_DICTIONARY)
                         : NULL;
  return pestle_strings_create_text(module->context, text ? text : "",
                                    out_strings);
}
