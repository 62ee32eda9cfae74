// SPDX-License-Identifier: Apache-2.0
// How a rank meets others whose plans run on devices other than CPUs: collectives go
// on the device's stream by its backend's transport (NCCL), whose queued work nobody
// waits for but a thread that looks at it now and then. What the transport does not
// combine, and all of it where the backend has none or the user wants it so, goes
// through the host's memory and the ranks' own transport, with its bits.
//
//   run's thread:   enqueue 17 | enqueue 18 | .. | wait for the stream
//   watch:          begun 17? done? the world's failure? the transport's?
//
// A collective that a stream has come to and that does not end within the deadline, and
// a rank that has died, end the world, and then the transport's work, so that the wait
// ends too.
#ifndef PESTLE_RUNTIME_DEVICE_COMM_H_
#define PESTLE_RUNTIME_DEVICE_COMM_H_

#include "runtime/executable.h"
#include "runtime/world.h"

enum {
  PESTLE_COLLECTIVES_AT_ONCE = 16
};  // tensors of one step that meet together

// Makes |world| ready to run |executable|, whose home is no CPU. All ranks call it
// before each run; the first time on a device they meet in it. INVALID_ARGUMENT: two
// ranks have one device. INCOMPATIBLE: not all go the same way.
PESTLE_NODISCARD pestle_status_t pestle_device_comm_prepare(
    pestle_world_t* world, const pestle_executable_t* executable);
// Of a world that nobody runs anything in. NULL is allowed.
void pestle_device_comms_destroy(pestle_world_t* world);

// Around a run: while one is under way its collectives are looked at.
void pestle_device_comm_enter(pestle_world_t* world);
// Returns |status|, or what has ended the world.
PESTLE_NODISCARD pestle_status_t
pestle_device_comm_leave(pestle_world_t* world, pestle_status_t status);
// What has ended the world, once a device is waited for.
PESTLE_NODISCARD pestle_status_t
pestle_device_comm_check(const pestle_world_t* world);

// Queues |ops|, of one step, on |queue|, or |beside| what comes next there: then
// pestle_device_comm_wait() lets the queue wait for them. |groups| is the hash of the
// collective's rows.
PESTLE_NODISCARD pestle_status_t
pestle_device_comm_enqueue(pestle_world_t* world, const pestle_queue_t* queue,
                           const pestle_collective_t* ops, size_t count,
                           uint64_t groups, bool ordered, bool beside);
// Whether |world| does anything beside on |device|.
bool pestle_device_comm_overlaps(const pestle_world_t* world,
                                 const pestle_device_t* device);
// What is queued next on |queue| comes behind the collectives up to |number| that are
// beside it.
PESTLE_NODISCARD pestle_status_t pestle_device_comm_wait(
    const pestle_world_t* world, const pestle_queue_t* queue, uint64_t number);
// That, for all of them.
PESTLE_NODISCARD pestle_status_t pestle_device_comm_wait_all(
    const pestle_world_t* world, const pestle_queue_t* queue);

// --- Recordings: device_comm_record.c ---

// A recording that holds collectives of a world; the holder destroys it.
typedef struct pestle_comm_recording_t pestle_comm_recording_t;

// Whether what |world| does on |device| may be part of a recording.
bool pestle_device_comm_records(const pestle_world_t* world,
                                const pestle_device_t* device);
// Between graph_begin() on |queue| and the first step: what is queued until
// pestle_device_comm_recorded() is part of |*out_recording|.
PESTLE_NODISCARD pestle_status_t
pestle_device_comm_record(pestle_world_t* world, const pestle_queue_t* queue,
                          pestle_comm_recording_t** out_recording);
// It is |graph|, which it owns from now on; NULL: it failed, and is destroyed.
void pestle_device_comm_recorded(pestle_world_t* world,
                                 pestle_comm_recording_t* recording,
                                 pestle_device_graph_t* graph);
PESTLE_NODISCARD pestle_status_t
pestle_device_comm_launch(pestle_world_t* world, const pestle_queue_t* queue,
                          pestle_comm_recording_t* recording);
// False once the world that it was made in has ended.
bool pestle_comm_recording_is_there(pestle_comm_recording_t* recording);
// NULL is allowed.
void pestle_comm_recording_destroy(pestle_comm_recording_t* recording);

// The rows of a collective, the same number for the same rows.
uint64_t pestle_collective_rows_hash(const pestle_executable_t* executable,
                                     const pestle_plan_collective_t* k);

#endif  // PESTLE_RUNTIME_DEVICE_COMM_H_
