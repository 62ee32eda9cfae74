// SPDX-License-Identifier: Apache-2.0
// A plan under construction: strings, constants, bindings, steps; then bytes.
#ifndef PESTLE_COMPILE_PLAN_BUILD_H_
#define PESTLE_COMPILE_PLAN_BUILD_H_

#include "base/map.h"
#include "compile/kernels.h"
#include "pestle/plan_format.h"
#include "pestle/runtime.h"

typedef struct pestle_plan_constant_t {
  pestle_kernel_arg_t arg;  // of kind CONSTANT
  // Of one that has |arg.parts|, which of them it is; -1: all, each at a multiple of 64.
  int64_t part;
  bool alone;       // it is bound itself, not only as what some process has
  uint64_t key[2];  // of its content and layout
  uint64_t size;
  pestle_constant_t* shared;  // NULL: its bytes are in the plan
} pestle_plan_constant_t;

typedef struct pestle_plan_build_t {
  pestle_allocator_t allocator;
  pestle_strbuf_t strings;
  pestle_map_t string_offsets;
  PESTLE_VEC(pestle_plan_device_t) devices;
  PESTLE_VEC(pestle_plan_io_t) inputs;
  PESTLE_VEC(pestle_plan_io_t) outputs;
  PESTLE_VEC(pestle_plan_kernel_t) kernels;
  PESTLE_VEC(pestle_plan_binding_t) bindings;
  PESTLE_VEC(pestle_plan_step_t) steps;
  PESTLE_VEC(pestle_plan_call_t) calls;
  PESTLE_VEC(pestle_plan_tensor_t) call_tensors;
  PESTLE_VEC(pestle_plan_location_t) locations;
  PESTLE_VEC(uint32_t) location_ids;
  PESTLE_VEC(pestle_plan_collective_t) collectives;
  PESTLE_VEC(int32_t) groups;
  int32_t replicas, partitions;
  PESTLE_VEC(pestle_plan_part_t) parts;
  PESTLE_VEC(pestle_plan_part_place_t) part_places;
  pestle_map_t part_keys;
  PESTLE_VEC(pestle_plan_constant_t) constants;
  pestle_map_t constant_keys;
  uint64_t constant_size;
  int64_t arena_size, lower_bound;
  // Behind what is planned, and within arena_size: temporaries that live during
  // one group of copies or one launch.
  uint64_t spare;
  bool failed;
} pestle_plan_build_t;

void pestle_plan_build_init(pestle_allocator_t allocator,
                            pestle_plan_build_t* out_plan);
void pestle_plan_build_deinit(pestle_plan_build_t* plan);

pestle_plan_str_t pestle_plan_string(pestle_plan_build_t* plan,
                                     const char* text);
// The binding of a constant laid out as |arg| says, or of the part of it that a process
// has; equal ones are one.
pestle_plan_binding_t pestle_plan_constant(pestle_plan_build_t* plan,
                                           const pestle_kernel_arg_t* arg);
// Appends bindings; the index of the first.
uint32_t pestle_plan_bind(pestle_plan_build_t* plan,
                          const pestle_plan_binding_t* bindings,
                          uint32_t count);
// Appends a step; its index.
uint32_t pestle_plan_step(pestle_plan_build_t* plan, pestle_plan_step_t step);

// Writes all as one plan of the context of |kernels|. With |share| large
// constants lie in the context, which |plan| holds them in until it is
// deinitialised; else the plan is self-contained.
PESTLE_NODISCARD pestle_status_t pestle_plan_build_finish(
    pestle_plan_build_t* plan, bool share, const pestle_kernels_t* kernels,
    const char* name, const uint64_t signature[2], pestle_plan_t** out_plan);

// The steps as text.
void pestle_plan_build_print(const pestle_plan_build_t* plan,
                             pestle_strbuf_t* out);

#endif  // PESTLE_COMPILE_PLAN_BUILD_H_
