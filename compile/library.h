// SPDX-License-Identifier: Apache-2.0
// Ops that a backend has ready-made, as pestle_library_api_t of plugin.h says.
#ifndef PESTLE_COMPILE_LIBRARY_H_
#define PESTLE_COMPILE_LIBRARY_H_

#include "base/str.h"
#include "ir/graph.h"
#include "ir/remark.h"
#include "pestle/compile.h"
#include "pestle/runtime.h"

// What a call in a module is called that a library does: this, then the op.
// Its configuration is the backend, a space and the flags.
#define PESTLE_LIBRARY_CALL "pestle.library."

// Whether ops may be given to libraries, which have their own order of sums.
bool pestle_libraries_are_used(const pestle_compile_options_t* options);
// Appends a line for each library that ops on |device| may be given to.
void pestle_libraries_key(const pestle_device_t* device, pestle_strbuf_t* key);
// Makes calls of the ops of |module| that a library takes.
PESTLE_NODISCARD pestle_status_t
pestle_libraries_apply(const pestle_device_t* device, pestle_module_t* module,
                       pestle_remarks_t* remarks);

#endif  // PESTLE_COMPILE_LIBRARY_H_
