// SPDX-License-Identifier: Apache-2.0
// What device_comm.c and device_comm_record.c share: a rank's communicators on one device.
#ifndef PESTLE_RUNTIME_DEVICE_COMM_STATE_H_
#define PESTLE_RUNTIME_DEVICE_COMM_STATE_H_

#include "runtime/device_comm.h"

enum {
  PESTLE_COMM_KEPT = 256,  // collectives that are known by their numbers
  PESTLE_COMM_NAME = 96,   // bytes of a collective's name that are kept
};

// The communicator of the ranks of one row of groups.
typedef struct pestle_comm_part_t pestle_comm_part_t;
struct pestle_comm_part_t {
  pestle_comm_part_t* next;
  uint64_t rows;        // hash of all rows; 0: the whole world
  pestle_comm_t* comm;  // NULL: this rank is in none of the rows
  uint32_t number;      // from 0 on
  uint64_t begun;       // the watch's: what it has seen last, and since when
  int64_t since_ns;
  int64_t broken_ns;  // when it first said that it is; 0: not
};

typedef struct pestle_comm_entry_t {
  pestle_collective_t op;
  char name[PESTLE_COMM_NAME];
} pestle_comm_entry_t;

typedef struct pestle_device_comm_t pestle_device_comm_t;
struct pestle_device_comm_t {
  pestle_device_comm_t* next;
  pestle_world_t* world;
  pestle_device_t* device;
  const pestle_collective_api_t* api;  // NULL: all goes through the host
  void* self;
  PESTLE_VEC(uint64_t) plans;  // of which all groups are there
  pestle_mutex_t mutex;        // of what follows
  pestle_cond_t changed;
  pestle_thread_t thread;
  bool started, stop, aborted;
  int32_t running;
  pestle_comm_part_t* parts;  // the whole world first
  uint32_t part_count;
  uint64_t latest;  // number of what was queued last
  // Since when it is being queued, which may wait for others; 0: it is not.
  int64_t entered_ns;
  uint64_t host_at;  // number of what the host did last itself
  uint64_t told_begun, told_done;
  pestle_comm_entry_t entries[PESTLE_COMM_KEPT];
  uint64_t beside;  // the latest that was queued beside others; 0: none
  // -- recordings that hold collectives --
  pestle_comm_recording_t* recordings;  // of which it holds each once
  pestle_comm_recording_t* recorded;    // that is being made, or NULL
  pestle_comm_recording_t* launched;    // of the run under way, or NULL
  uint64_t launched_after;              // number before its first collective
};

// The rank's communicators on |device|, or NULL.
pestle_device_comm_t* pestle_device_comm_find(const pestle_world_t* world,
                                              const pestle_device_t* device);

// --- device_comm_record.c ---

// Under the lock: |op| of |part| is part of the recording that is made, if one is.
PESTLE_NODISCARD pestle_status_t pestle_comm_recording_add(
    pestle_device_comm_t* comm, const pestle_comm_part_t* part,
    const pestle_collective_t* op);
// Under the lock: collective |sequence| of the recording that runs, or NULL.
const pestle_comm_entry_t* pestle_comm_recording_entry(
    const pestle_device_comm_t* comm, uint64_t sequence);
// Destroys all of |comm|'s, which those that hold them see. The transport cannot end
// before.
void pestle_comm_recordings_end(pestle_device_comm_t* comm);

#endif  // PESTLE_RUNTIME_DEVICE_COMM_STATE_H_
