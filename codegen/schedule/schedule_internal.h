// SPDX-License-Identifier: Apache-2.0
// Shared by the schedule*.c files; nobody else includes it.
#ifndef PESTLE_CODEGEN_SCHEDULE_SCHEDULE_INTERNAL_H_
#define PESTLE_CODEGEN_SCHEDULE_SCHEDULE_INTERNAL_H_

#include "codegen/schedule/schedule.h"

static inline const char* pestle_schedule_axis_name(const pestle_nest_t* nest,
                                                    uint32_t axis) {
  return nest->axes.data[axis].name;
}
static inline const char* pestle_schedule_stage_name(const pestle_nest_t* nest,
                                                     uint32_t stage) {
  return nest->stages.data[stage].name;
}
// |base| with |suffix| behind it.
const char* pestle_schedule_derived_name(pestle_nest_t* nest, const char* base,
                                         const char* suffix);
// Notes that a primitive was applied. |names| may end early with NULL.
PESTLE_NODISCARD pestle_status_t pestle_schedule_record(
    pestle_nest_t* nest, pestle_prim_t prim, const char* stage,
    const char* const* names, size_t name_count, const int64_t* ints,
    size_t int_count);
// The same for a primitive of a stage and up to two names; NULL ends them.
PESTLE_NODISCARD pestle_status_t pestle_schedule_record_names(
    pestle_nest_t* nest, pestle_prim_t prim, uint32_t stage, const char* name,
    const char* other);
// Puts the newest stage before |stage|, so that stages stay in order. Ids
// shift.
void pestle_schedule_move_before(pestle_nest_t* nest, uint32_t stage);
// Refuses |primitive|, which names |stage|, |link| and |name|, when that stage or one that
// runs under its loops would become more than PESTLE_NEST_MAX_COPIES copies.
PESTLE_NODISCARD pestle_status_t pestle_schedule_check_copies(
    pestle_nest_t* nest, const char* primitive, uint32_t stage,
    const char* link, const char* name);
// Where |axis| stands among the loops of |stage|, or -1.
int32_t pestle_schedule_position(const pestle_nest_stage_t* stage,
                                 uint32_t axis);
// Sets |*out_reads| when |q| reads a tensor of |stage|.
PESTLE_NODISCARD pestle_status_t pestle_schedule_reads(pestle_nest_t* nest,
                                                       uint32_t q,
                                                       uint32_t stage,
                                                       bool* out_reads);
// Whether |s| writes one tensor that has no other place than the kernel.
bool pestle_nest_is_kept(const pestle_nest_t* nest,
                         const pestle_nest_stage_t* s);
// Replaces what stages behind |stage| read by read(user, e), as a substitution does.
void pestle_schedule_replace_reads(
    pestle_nest_t* nest, uint32_t stage,
    const pestle_expr_t* (*read)(void* user, const pestle_expr_t* e),
    void* user);

#endif  // PESTLE_CODEGEN_SCHEDULE_SCHEDULE_INTERNAL_H_
