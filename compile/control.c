// SPDX-License-Identifier: Apache-2.0
#include "compile/control.h"

#include "base/fault.h"
#include "base/thread.h"

static bool is_cancelled(const pestle_control_t* control) {
  return control && control->cancel && !PESTLE_FAULT(trust_cancel) &&
         __atomic_load_n(control->cancel, __ATOMIC_RELAXED);
}

static bool is_late(const pestle_control_t* control) {
  return control->deadline_ns && pestle_clock_ns() > control->deadline_ns;
}

bool pestle_control_is_over(const pestle_control_t* control) {
  return is_cancelled(control) ||
         (control && !PESTLE_FAULT(trust_cancel) && is_late(control));
}

pestle_status_t pestle_control_check(const pestle_control_t* control,
                                     const char* stage, int64_t done,
                                     int64_t total) {
  if (!control || PESTLE_FAULT(trust_cancel)) return NULL;
  if (control->progress) {
    control->progress(control->progress_user, stage, done, total);
  }
  if (is_cancelled(control)) {
    return PESTLE_ERROR(CANCELLED, "cancelled by the caller during %s", stage);
  }
  if (is_late(control)) {
    return PESTLE_ERROR(DEADLINE_EXCEEDED,
                        "the deadline passed during %s (%lld of %lld done)",
                        stage, (long long)done, (long long)total);
  }
  return NULL;
}
