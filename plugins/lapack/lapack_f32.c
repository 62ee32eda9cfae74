// SPDX-License-Identifier: Apache-2.0
// The ops in f32.
#include <math.h>
#include <string.h>

#include "plugins/lapack/lapack_api.h"

#define REAL float
#define FN(name) s##name
#define CFN(name) c##name
#define DFN(name) s##name
#define NAME(name) pestle_lapack_##name##_f32
#include "plugins/lapack/lapack_real.h"
