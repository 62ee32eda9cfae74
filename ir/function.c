// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

const char* pestle_function_argument_name(const pestle_function_t* function,
                                          size_t index) {
  if (index >= pestle_function_argument_count(function)) return NULL;
  const char* name =
      function->argument_names ? function->argument_names[index] : NULL;
  return name && name[0] ? name : function->body->block->arguments[index]->name;
}
