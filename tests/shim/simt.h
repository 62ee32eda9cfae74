// SPDX-License-Identifier: Apache-2.0
// Groups of lanes on a CPU: what a kernel's text needs when it is compiled as
// C++ and run by tests. Each lane is a fibre; they take turns at barriers and
// where they pass values. The kernel's library gets these functions as a table,
// so that it links against nothing.
#ifndef PESTLE_TESTS_SHIM_SIMT_H_
#define PESTLE_TESTS_SHIM_SIMT_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct simt_place_t {
  uint32_t x, y, z;
} simt_place_t;

typedef struct simt_t {
  void (*barrier)(void);
  // |size| bytes at |value| become those of the lane whose number differs in
  // the bits of |distance|. All lanes of the group call it.
  void (*exchange)(void* value, uint32_t size, uint32_t distance);
  // |size| bytes at |value| of each of the 32 lanes of this one's subgroup, in
  // their order. All lanes of the group call it.
  void (*gather)(const void* value, uint32_t size, void* out);
  simt_place_t (*group)(void);
  simt_place_t (*lane)(void);
} simt_t;

extern const simt_t simt_functions;

// Runs |body| once for each lane of each group. False when lanes met different
// barriers.
int simt_run(const uint32_t group[3], const uint32_t lane[3],
             void (*body)(void* data), void* data);

#ifdef __cplusplus
}
#endif

#endif  // PESTLE_TESTS_SHIM_SIMT_H_
