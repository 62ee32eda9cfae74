// SPDX-License-Identifier: Apache-2.0
// CUDA C as the printer of C-family text sees it: without any header, to be
// compiled with --fmad=false, --prec-div=true and --prec-sqrt=true.
#ifndef PESTLE_PLUGINS_COMMON_CTEXT_CUDA_H_
#define PESTLE_PLUGINS_COMMON_CTEXT_CUDA_H_

#include "plugins/common/ctext.h"

extern const pestle_ctext_dialect_t pestle_ctext_cuda_dialect;

#endif  // PESTLE_PLUGINS_COMMON_CTEXT_CUDA_H_
