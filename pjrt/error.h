// SPDX-License-Identifier: Apache-2.0
// Errors as the framework has them: a code and a sentence. One that cannot be
// allocated is a constant, so that an error never fails.
//
// pjrt/ is the plugin through which JAX and others run on Pestle by the PJRT C
// API: clients, buffers, events, executables and the queue of their runs. pjrt/
// knows nothing of the library but include/pestle, and nothing of the device
// but what that says.
#ifndef PESTLE_PJRT_ERROR_H_
#define PESTLE_PJRT_ERROR_H_

#include <stddef.h>

#include "pestle/status.h"
#include "pjrt/abi.h"

// The error of |status|, which is taken over: its sentence, then its notes. NULL
// for NULL.
PJRT_Error* pestle_pjrt_error_of(pestle_status_t status);
// The same of a status that somebody else keeps.
PJRT_Error* pestle_pjrt_error_of_borrowed(pestle_status_t status);
// |code| with the formatted sentence. Never NULL.
PESTLE_PRINTF(2, 3)
PJRT_Error* pestle_pjrt_error(PJRT_Error_Code code, const char* format, ...);
// An error with |size| bytes of text.
PJRT_Error* pestle_pjrt_error_text(PJRT_Error_Code code, const char* text,
                                   size_t size);
// RESOURCE_EXHAUSTED: the one that is always there.
PJRT_Error* pestle_pjrt_out_of_memory(void);
// Another error that says the same; NULL for NULL.
PJRT_Error* pestle_pjrt_error_copy(const PJRT_Error* error);
void pestle_pjrt_error_free(PJRT_Error* error);
// "INTERNAL: sentence", for logs; |capacity| bytes, terminated.
const char* pestle_pjrt_error_sentence(const PJRT_Error* error);

// The error of a slot whose |args|, a struct that begins with its size, is NULL
// or smaller than |needed|; NULL when it is neither.
PJRT_Error* pestle_pjrt_check(const void* args, size_t needed,
                              const char* slot);
// The error of a slot that was not given |handle|.
PJRT_Error* pestle_pjrt_no_handle(const char* slot, const char* handle);

#endif  // PESTLE_PJRT_ERROR_H_
