// SPDX-License-Identifier: Apache-2.0
// The framework's compile options: a serialised xla.CompileOptionsProto, of which
// what concerns Pestle is read.
#ifndef PESTLE_PJRT_OPTIONS_H_
#define PESTLE_PJRT_OPTIONS_H_

#include "base/str.h"
#include "pjrt/settings.h"

typedef struct pestle_pjrt_options_t {
  int64_t replicas, partitions;
  // A serialised xla.DeviceAssignmentProto, of the caller's bytes; empty: none.
  const char* assignment;
  size_t assignment_size;
  int64_t ordinal;  // of the one device, or -1
  pestle_numerics_t numerics;
  int32_t threads;  // 0: all
  bool no_fuse;
  bool no_merge;        // no part of a sequence (merge.h)
  double tune_seconds;  // 0: not
  pestle_str_t dump;    // a folder, of the caller's bytes; empty: none
} pestle_pjrt_options_t;

// |settings| are what the options may overrule. INVALID_ARGUMENT: damaged bytes,
// or an option of jit(compiler_options=) that is not known.
PJRT_Error* pestle_pjrt_options_read(const void* data, size_t size,
                                     const pestle_pjrt_settings_t* settings,
                                     pestle_pjrt_options_t* out_options);

// The ids of the devices that |options| assign, process by process (number replica *
// partitions + partition): |count| of them, 0, 1, .. where nothing is assigned. One alone
// is then of this process, whose devices begin at |first|.
PJRT_Error* pestle_pjrt_options_devices(const pestle_pjrt_options_t* options,
                                        int64_t first, int64_t* out_ids,
                                        size_t count);

#endif  // PESTLE_PJRT_OPTIONS_H_
