// SPDX-License-Identifier: Apache-2.0
// Structured ops: every variant of each row of table.h on one shape, the first of
// a few that it goes with, dense and with gaps.
#include "tools/conform/kit.h"
#include "tools/conform/table.h"

static bool failed;

// Of compare() and run_views().
static inline void report(const instance_t* t, const char* how,
                          const char* message) {
  failed = true;
  kit_note(KIT_WRONG, "%s on %s, %s: %s", t->what, t->shape->name, how,
           message);
}

static void run_built(instance_t* t, const expected_t* e) {
  pestle_executable_t* executable;
  char what[128];
  snprintf(what, sizeof(what), "%s%son %s", t->what, *t->what ? " " : "",
           t->shape->name);
  kit_state_t state = kit_compile(t->module, what, &executable);
  if (!executable) return;
  failed = false;
  run_views(t, "dense", executable, e, VIEW_DENSE);
  run_views(t, "gaps", executable, e, VIEW_GAPS);
  if (!failed && state == KIT_PASS) kit_note(KIT_PASS, "%s", "");
  pestle_executable_release(executable);
}

// False where the variant does not go with the shape.
static bool run_instance(instance_t* t) {
  t->what = "";
  t->check = CHECK_BITS;
  if (!t->row->build(t)) return false;
  expected_t e;
  pestle_status_t status = expected_make(t, false, &e);
  if (status) {
    // Without a reference nothing can be said: none of the instances here are
    // so, or the table has changed.
    kit_note(KIT_UNSUPPORTED, "%s: no reference: %s", t->what,
             pestle_status_message(status));
    pestle_status_release(status);
  } else {
    run_built(t, &e);
  }
  expected_free(t, &e);
  pestle_module_release(t->module);
  return true;
}

// Odd extents first: vectors have tails there.
static void run_variant(const row_t* row, pestle_dtype_t dtype,
                        uint32_t variant) {
  static const char* const names[] = {"odd",  "prime", "one axis",
                                      "ones", "large", "scalar"};
  for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); ++n) {
    for (size_t s = 0; s < SHAPES; ++s) {
      if (strcmp(shapes[s].name, names[n]) != 0) continue;
      instance_t t = {.row = row,
                      .dtype = dtype,
                      .shape = &shapes[s],
                      .variant = variant,
                      .how = ""};
      if (run_instance(&t)) return;
    }
  }
}

void kit_run_structured(pestle_op_t op, pestle_dtype_t dtype) {
  strict_context = kit.strict;
  lenient_context = kit.lenient;
  for (size_t r = 0; r < ROWS; ++r) {
    if (rows[r].op != op || !row_takes(&rows[r], dtype)) continue;
    for (uint32_t v = 0; v < rows[r].variants; ++v)
      run_variant(&rows[r], dtype, v);
  }
}
