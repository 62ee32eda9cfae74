// SPDX-License-Identifier: Apache-2.0
// One call of pestle_compile(): what it was given, and what goes with it from
// file to file of this folder.
//
// compile/ is the driver: key, cache, passes, memory plan, kernels, steps,
// plan, and what asks about them (explain, tuning, lock files). It alone sees
// passes/ and codegen/. compile/ knows nothing of how an op is lowered,
// scheduled or emitted, nor of how a plan is run.
#ifndef PESTLE_COMPILE_COMPILATION_H_
#define PESTLE_COMPILE_COMPILATION_H_

#include "compile/donation.h"
#include "compile/lockfile.h"
#include "ir/graph.h"
#include "ir/remark.h"
#include "pestle/compile.h"

typedef struct pestle_compilation_t {
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_device_t* device;
  pestle_compile_options_t options;
  pestle_control_t control;  // what options.control points at, if anything
  uint64_t signature[2];     // of |module|, once the key is made
  size_t key_head;           // bytes of the key before the module
  size_t key_tier;           // where the key has the digit of the tier
  pestle_donations_t donations;
  pestle_remarks_t* remarks;  // NULL: nobody asks why
  pestle_lockfile_t* lock;    // NULL: the usual schedules
  bool tuning;                // what is missing in |lock| is measured; no plan
} pestle_compilation_t;

// plan_key.c: appends every input that can change the plan, as lines and then
// the canonical module, and sets |c->signature|, |c->key_head| and |c->key_tier|.
PESTLE_NODISCARD pestle_status_t pestle_plan_key(pestle_compilation_t* c,
                                                 pestle_strbuf_t* out_key);

#endif  // PESTLE_COMPILE_COMPILATION_H_
