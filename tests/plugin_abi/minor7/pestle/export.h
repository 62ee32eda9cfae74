// SPDX-License-Identifier: Apache-2.0
// Linkage and compiler attributes used by every public header. Nothing else.
#ifndef PESTLE_EXPORT_H_
#define PESTLE_EXPORT_H_

#if defined(__GNUC__)
#define PESTLE_NODISCARD __attribute__((warn_unused_result))
#define PESTLE_PRINTF(format_index, first_arg) \
  __attribute__((format(printf, format_index, first_arg)))
#define PESTLE_EXPORT __attribute__((visibility("default")))
#else
#define PESTLE_NODISCARD
#define PESTLE_PRINTF(format_index, first_arg)
#define PESTLE_EXPORT
#endif

// Marks a function that libpestle exports.
#define PESTLE_API PESTLE_EXPORT

#ifdef __cplusplus
#define PESTLE_EXTERN_C_BEGIN extern "C" {
#define PESTLE_EXTERN_C_END }
#else
#define PESTLE_EXTERN_C_BEGIN
#define PESTLE_EXTERN_C_END
#endif

#endif  // PESTLE_EXPORT_H_
