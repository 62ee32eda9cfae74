// SPDX-License-Identifier: Apache-2.0
// What the merge*.c files share: the history, sequences, and how a sequence becomes
// a program.
#ifndef PESTLE_PJRT_MERGE_SEQUENCE_H_
#define PESTLE_PJRT_MERGE_SEQUENCE_H_

#include "pestle/graph.h"
#include "pjrt/merge.h"

enum {
  PESTLE_PJRT_MERGE_STEPS = 16,      // of the longest sequence
  PESTLE_PJRT_MERGE_SEQUENCES = 16,  // a device
  PESTLE_PJRT_MERGE_REPEATS = 3,     // before one is looked at
  PESTLE_PJRT_MERGE_HISTORY =
      PESTLE_PJRT_MERGE_STEPS * PESTLE_PJRT_MERGE_REPEATS,
};

// --- Sequences ---

// Sources are those of pestle_module_link(): of arguments that come from outside
// those that are one buffer have one number.
typedef struct pestle_pjrt_step_t {
  pestle_pjrt_program_t* program;  // held
  pestle_link_source_t* sources;   // of each argument
} pestle_pjrt_step_t;

typedef enum pestle_pjrt_sequence_state_e {
  PESTLE_PJRT_SEQUENCE_NEW,       // to be compiled
  PESTLE_PJRT_SEQUENCE_COMPARED,  // with its parts, on the next steps
  PESTLE_PJRT_SEQUENCE_USED,
  PESTLE_PJRT_SEQUENCE_REFUSED,
} pestle_pjrt_sequence_state_t;

typedef struct pestle_pjrt_sequence_t {
  PJRT_Device* device;
  atomic_int state;  // pestle_pjrt_sequence_state_t
  size_t length;
  pestle_pjrt_step_t steps[PESTLE_PJRT_MERGE_STEPS];
  size_t argument_count;  // from outside
  // Of the merged program: the results of all parts but for those that a later
  // part takes the memory of.
  pestle_link_source_t* results;
  size_t result_count;
  pestle_pjrt_program_t* program;  // the merged one; NULL: not yet
  // Comparisons so far, and the shortest times that they took.
  int compared;
  int64_t parts_ns, merged_ns, hold_ns;
  uint64_t first_key, key;  // pestle_pjrt_history_keys()
  // Of the last ten holds: how many somebody ended, by asking or by not coming.
  int holds, asked, expired;
  bool is_given_up;  // because of those
} pestle_pjrt_sequence_t;

// Frees it; NULL is allowed.
void pestle_pjrt_sequence_free(pestle_pjrt_sequence_t* sequence);
// Links and compiles it: from NEW to COMPARED or REFUSED. Takes seconds; from any
// thread. |cancel| is looked at.
void pestle_pjrt_sequence_compile(pestle_pjrt_sequence_t* sequence,
                                  const volatile int32_t* cancel);
// Runs the parts, |held|, and before them the merged program on the same
// arguments, and compares: to USED or REFUSED in the end. The parts' outputs are
// left in |held|. |hold_ns|: between the first and the last part.
PJRT_Error* pestle_pjrt_sequence_compare(pestle_pjrt_sequence_t* sequence,
                                         pestle_pjrt_execution_t* const* held,
                                         int64_t hold_ns);
// Queues the merged program in place of the parts, whose inputs are let go; their
// outputs are left in |held|.
PJRT_Error* pestle_pjrt_sequence_submit(pestle_pjrt_sequence_t* sequence,
                                        pestle_pjrt_execution_t* const* held);
// Gives part |at| what earlier parts, which have run, made for it.
void pestle_pjrt_sequence_wire(const pestle_pjrt_sequence_t* sequence,
                               pestle_pjrt_execution_t* const* held, size_t at);

// --- History ---

// Where an argument was: result |index| of execution |serial|, 0 for none; and its
// memory, which is compared only.
typedef struct pestle_pjrt_origin_t {
  uint64_t serial;
  uint32_t index;
  const void* memory;
} pestle_pjrt_origin_t;

typedef struct pestle_pjrt_entry_t {
  pestle_pjrt_program_t* program;  // held
  uint64_t key;      // of the program and how it is wired to what came before
  bool is_followed;  // by somebody who asked for a result
  size_t count, room;
  pestle_pjrt_origin_t* origins;  // of the arguments
} pestle_pjrt_entry_t;

typedef struct pestle_pjrt_history_t {
  bool is_soon;  // a sequence is looked at before it has earned its compilation
  uint64_t serial;  // of the last execution; the first is 1
  // Executions since the last one that took long enough to be worth merging.
  atomic_size_t short_ones;
  pestle_pjrt_entry_t
      entries[PESTLE_PJRT_MERGE_HISTORY];  // by serial, in a ring
} pestle_pjrt_history_t;

void pestle_pjrt_history_deinit(pestle_pjrt_history_t* history);
// Whether |e| need not be noted: it is over at once, and so were as many before it
// as a sequence has. Without a lock.
bool pestle_pjrt_history_skips(const pestle_pjrt_history_t* history,
                               const pestle_pjrt_execution_t* e);
// Notes |e|, whose results get its serial number. |was_asked|: for a result, since
// the execution before.
void pestle_pjrt_history_add(pestle_pjrt_history_t* history,
                             const pestle_pjrt_execution_t* e, bool was_asked);
// Forgets what was, after something that is no part of it.
void pestle_pjrt_history_break(pestle_pjrt_history_t* history);
// How many executions have been repeated, if merging them may pay; else 0.
size_t pestle_pjrt_history_repeats(const pestle_pjrt_history_t* history);
// Of the last |length| executions: the key of the first, and one of all, which is
// the same for another one of them as the first.
void pestle_pjrt_history_keys(const pestle_pjrt_history_t* history,
                              size_t length, uint64_t* out_first,
                              uint64_t* out_all);
// They as a sequence; NULL: they have nothing to do with each other, or there is
// no memory.
pestle_pjrt_sequence_t* pestle_pjrt_history_make(
    const pestle_pjrt_history_t* history, PJRT_Device* device, size_t length);

#endif  // PESTLE_PJRT_MERGE_SEQUENCE_H_
