// SPDX-License-Identifier: Apache-2.0
// A group of lanes that works with tiles in shared memory: barrier objects,
// copies by boxes and products of warpgroups, all of which go on by themselves.
// What hardware may do in any order is done here in a seeded random one, and
// what hardware does not promise is a fault that is told:
//
//   ref_tile_run.c     lanes in turn, up to what they wait for
//   ref_tile_async.c   copies and products: asked for, done some time later
//   ref_tile_cluster.c what groups of a cluster do to each other
//   ref_tile_clock.c   who knows of whose accesses: races in shared memory
//   ref_tile_decode.c  instructions -> steps
//
// The groups of a cluster run at once: their lanes are numbered one group after the
// other, and so lie their shared memories, |stride| bytes apart; an addr is a place in
// all of that.
//
// Clocks are vector clocks: an actor is a lane, or a ticket of what goes on by
// itself. Of each byte of shared memory the last write and the last read of one
// actor are kept, so that a race with an earlier read can go unseen; the random
// order of another run may show it. Two clocks are kept for each: of ordinary
// accesses, and of those that were fenced, which alone copies and products see.
#ifndef PESTLE_PLUGINS_REF_REF_TILE_H_
#define PESTLE_PLUGINS_REF_REF_TILE_H_

#include "plugins/ref/ref_internal.h"

enum {
  REF_WARP = 32,
  REF_WARPGROUP = 128,
  REF_TICKETS = 128,  // that are under way at once
  REF_MBARS = 64,
  REF_REGISTER_FILE = 65536,
  REF_ROWS = 64,  // of a product; its taps
  REF_TAPS = 16,
  REF_DIRTY = 64,
  REF_NAMED = 16,  // barriers of SYNC
  REF_CLUSTER = 8,
  REF_ACTORS = 4096,
};

// A moment of an actor in one word, 0: never.
typedef uint32_t ref_moment_t;

typedef struct ref_clock_t {
  uint32_t* seen;    // by actor: its time that is known
  uint32_t* fenced;  // the same, of what copies and products see
} ref_clock_t;

typedef struct ref_mbar_t {
  uint64_t at;  // in shared memory; UINT64_MAX: free
  int64_t count, pending, bytes;
  uint32_t phase;
  ref_clock_t arrived, done;
} ref_mbar_t;

// What arrived at a barrier of SYNC and did not wait.
typedef struct ref_named_t {
  int64_t arrived;
  ref_clock_t clock;
} ref_named_t;

typedef enum ref_ticket_state_e {
  REF_TICKET_FREE,
  REF_TICKET_ASKED,  // nothing happened yet
  REF_TICKET_DONE,   // but nobody waited for it
} ref_ticket_state_t;

typedef struct ref_ticket_t {
  ref_ticket_state_t state;
  const ref_step_t* step;
  uint32_t lane;   // that asked; of a product the first of its warpgroup
  uint64_t batch;  // of the lane's or warpgroup's batches: its number
  uint64_t order;
  uint64_t a, b;  // places in shared memory
  int64_t coord[REF_MAP_NUMBERS];
  ref_mbar_t* mbar;
} ref_ticket_t;

typedef struct ref_warpgroup_t {
  int32_t registers;  // of a lane
  uint64_t batch;     // products asked for now belong to it
  uint32_t products;  // that nobody waited for
  // Places of private buffers that were written since the last fence.
  uint32_t dirty[REF_DIRTY], dirty_count;
} ref_warpgroup_t;

typedef enum ref_lane_state_e {
  REF_LANE_READY,
  REF_LANE_WAITS,  // at the step before its pc
  REF_LANE_ENDED,
} ref_lane_state_t;

typedef struct ref_lane_t {
  uint32_t pc;
  ref_lane_state_t state;
  uint32_t time, fence_time;
  uint64_t batch;  // of its tile_stores
  ref_clock_t clock;
} ref_lane_t;

struct ref_tiles_t {
  ref_machine_t* m;
  unsigned char* frames;
  size_t frame_size;
  uint32_t lanes, warpgroups, actors;  // of the cluster
  uint32_t cluster, group_lanes;
  uint32_t registers;  // of all lanes of a group
  unsigned char* memory;
  uint64_t stride;
  uint64_t random, order;
  bool told;  // a fault
  ref_lane_t* lane;
  ref_warpgroup_t* warpgroup;
  ref_ticket_t ticket[REF_TICKETS];
  uint32_t ticket_time[REF_TICKETS];
  ref_mbar_t mbar[REF_MBARS];
  ref_named_t named[REF_CLUSTER][REF_NAMED];
  // By group: when others accessed its memory, and whether it is gone.
  uint32_t* far[REF_CLUSTER];
  bool ended[REF_CLUSTER];
  float (*left)[REF_ROWS][REF_TAPS];  // by ticket: of a product its tile a
  ref_clock_t joined;                 // scratch of one clock
  ref_moment_t *write, *read;         // of each byte
  uint64_t shared_bytes;
  uint32_t now;  // the lane whose turn it is
};

// One sentence to the log, with the step's instruction; the group ends.
bool pestle_ref_plugin_fault(ref_tiles_t* t, const ref_step_t* s,
                             const char* format, ...) PESTLE_PRINTF(3, 4);
bool pestle_ref_plugin_told(const ref_tiles_t* t);
uint64_t pestle_ref_plugin_random(ref_tiles_t* t, uint64_t below);

// --- Clusters ---

static inline uint32_t pestle_ref_plugin_group_of(const ref_tiles_t* t,
                                                  uint32_t lane) {
  return lane / t->group_lanes;
}
// |actor| of group |from| accesses place |at|, which may be another group's: that has
// to know of it before it ends.
bool pestle_ref_plugin_reach(ref_tiles_t* t, const ref_step_t* s, uint32_t from,
                             uint32_t actor, uint32_t time, uint64_t at);
// The last of a group's lanes has ended.
bool pestle_ref_plugin_end_group(ref_tiles_t* t, uint32_t group);
// Steps of the lane at hand: false after a fault.
bool pestle_ref_plugin_ref_at(ref_tiles_t* t, const ref_step_t* s, int64_t at,
                              int64_t group, int64_t* out);
bool pestle_ref_plugin_load_at(ref_tiles_t* t, const ref_step_t* s, int64_t at,
                               unsigned char* slots);

// --- Clocks ---

// The lane at hand accesses bytes of shared memory by an ordinary instruction.
bool pestle_ref_plugin_touch(ref_tiles_t* t, const ref_step_t* s, uint64_t at,
                             uint64_t bytes, bool stores);
// And its own registers, which a product may be at.
bool pestle_ref_plugin_touch_private(ref_tiles_t* t, const ref_step_t* s,
                                     bool stores);
// Whether the buffer at |place| was written since the last fence.
bool pestle_ref_plugin_is_dirty(const ref_warpgroup_t* g, uint32_t place);
// A copy or a product with ticket |ticket|, asked for by |lane|, does.
bool pestle_ref_plugin_touch_async(ref_tiles_t* t, uint32_t ticket, uint64_t at,
                                   uint64_t bytes, bool stores);
void pestle_ref_plugin_clear(const ref_tiles_t* t, ref_clock_t c);
void pestle_ref_plugin_join(const ref_tiles_t* t, ref_clock_t into,
                            ref_clock_t from);
// What the lane did up to now goes into |into|; its time goes on.
void pestle_ref_plugin_release(ref_tiles_t* t, uint32_t lane, ref_clock_t into);
void pestle_ref_plugin_acquire(ref_tiles_t* t, uint32_t lane, ref_clock_t from);
// What |ticket| did is known to |into|.
void pestle_ref_plugin_release_ticket(const ref_tiles_t* t, uint32_t ticket,
                                      ref_clock_t into);

// --- What goes on by itself ---

// Whether one was carried out, any that may be.
bool pestle_ref_plugin_progress(ref_tiles_t* t);
bool pestle_ref_plugin_tile_load(ref_tiles_t* t, const ref_step_t* s);
bool pestle_ref_plugin_tile_store(ref_tiles_t* t, const ref_step_t* s);
bool pestle_ref_plugin_wgmma(ref_tiles_t* t, const ref_step_t* s,
                             uint32_t first_lane);
// At most |most| batches of the lane, or of products of its warpgroup, are
// still asked for. TILE_WAIT and WGMMA_WAIT: what is done is taken note of.
bool pestle_ref_plugin_waited(ref_tiles_t* t, uint32_t lane, bool products,
                              uint64_t most);

ref_mbar_t* pestle_ref_plugin_mbar(ref_tiles_t* t, const ref_step_t* s,
                                   uint64_t at);
// |arrivals| and |bytes| of the phase are there; the next one may begin.
bool pestle_ref_plugin_arrived(ref_tiles_t* t, const ref_step_t* s,
                               ref_mbar_t* b, int64_t arrivals, int64_t bytes);

// --- Decoding ---

bool pestle_ref_plugin_is_tile(unsigned op);
bool pestle_ref_plugin_is_map(const pestle_kir_t* k,
                              const pestle_kir_buffer_t* map);
void pestle_ref_plugin_read_map(const pestle_kir_t* k,
                                const pestle_kir_buffer_t* map, ref_map_t* out);
// What is wrong with instruction |id|, NULL: nothing. Its operands are earlier
// values and buffers.
const char* pestle_ref_plugin_tile_fault(const pestle_kir_t* k, uint32_t id);
// Makes |step| of a tile's instruction but COORD, which has none. |offset|: of
// values in the frame; |place|: of buffers, of a tensor map its number.
void pestle_ref_plugin_tile_step(const pestle_kir_t* k, uint32_t id,
                                 const uint32_t* offset, const uint32_t* place,
                                 uint32_t* coords, uint32_t* coord_count,
                                 ref_step_t* step);

#endif  // PESTLE_PLUGINS_REF_REF_TILE_H_
