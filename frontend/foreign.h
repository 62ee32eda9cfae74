// SPDX-License-Identifier: Apache-2.0
// Files that are taken for models and are none: what they are, and what makes a
// model of them.
#ifndef PESTLE_FRONTEND_FOREIGN_H_
#define PESTLE_FRONTEND_FOREIGN_H_

#include <stddef.h>

#include "pestle/status.h"

// An error that names what |data| is, told by its first bytes; NULL when it may
// be a model. |name| is the file's, for the sentence.
PESTLE_NODISCARD pestle_status_t pestle_foreign_check(const char* name,
                                                      const void* data,
                                                      size_t size);
// The same of a file of a model's weights, which may be any bytes: only what lies in the
// place of a file that was not fetched is told.
PESTLE_NODISCARD pestle_status_t pestle_foreign_check_data(const char* name,
                                                           const void* data,
                                                           size_t size);
// The same of protobufs other than ONNX: to be asked when |data| is no ONNX
// model.
PESTLE_NODISCARD pestle_status_t pestle_foreign_check_protobuf(const char* name,
                                                               const void* data,
                                                               size_t size);

#endif  // PESTLE_FRONTEND_FOREIGN_H_
