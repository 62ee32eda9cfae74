// SPDX-License-Identifier: Apache-2.0
// The ops in f64.
#include <math.h>
#include <string.h>

#include "plugins/lapack/lapack_api.h"

#define REAL double
#define FN(name) d##name
#define CFN(name) z##name
#define DFN(name) d##name
#define NAME(name) pestle_lapack_##name##_f64
#include "plugins/lapack/lapack_real.h"
