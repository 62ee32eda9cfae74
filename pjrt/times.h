// SPDX-License-Identifier: Apache-2.0
// PESTLE_PJRT_TIMES: how often each program was compiled and run and how long
// that took, printed when the client ends.
#ifndef PESTLE_PJRT_TIMES_H_
#define PESTLE_PJRT_TIMES_H_

#include <stdint.h>

typedef struct pestle_pjrt_times_t pestle_pjrt_times_t;

// All take NULL: nobody asked for times.
pestle_pjrt_times_t* pestle_pjrt_times_create(void);
void pestle_pjrt_times_release(pestle_pjrt_times_t* times);
void pestle_pjrt_times_compiled(pestle_pjrt_times_t* times, const char* program,
                                int64_t ns);
// |ns| from the call until the results were there.
void pestle_pjrt_times_ran(pestle_pjrt_times_t* times, const char* program,
                           int64_t ns);
// A table to stderr, what took longest first.
void pestle_pjrt_times_print(pestle_pjrt_times_t* times);

#endif  // PESTLE_PJRT_TIMES_H_
