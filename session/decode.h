// SPDX-License-Identifier: Apache-2.0
// What the files of include/pestle/decode.h share.
#ifndef PESTLE_SESSION_DECODE_H_
#define PESTLE_SESSION_DECODE_H_

#include "base/arena.h"
#include "base/thread.h"
#include "pestle/decode.h"
#include "pestle/graph.h"

enum {
  DECODE_MOST_PLANS = 256,
  DECODE_MOST_ROWS = 512,  // new tokens of one run
};

typedef enum decode_role_e {
  DECODE_IDS,
  DECODE_MASK,
  DECODE_POSITIONS,
  DECODE_FIRST,  // how many tokens are past
  DECODE_TOTAL,  // those and the new ones
  DECODE_CACHE,
  DECODE_BEAM_WIDTH,  // one
  DECODE_BEAMS,       // which beam each row of a cache is of: [1, beams, rows]
  // What the encoder gives: hidden states, and caches of cross attention.
  DECODE_HIDDEN,
  DECODE_CROSS,
} decode_role_t;

// The input of optimum's merged models that chooses between a branch without a past and one
// with a past.
#define PESTLE_DECODE_BRANCH "use_cache_branch"

// The input of ONNX Runtime's exports for GPUs that says how many rows caches have.
#define PESTLE_DECODE_ROWS "past_sequence_length"

typedef struct decode_input_t {
  const char* name;
  decode_role_t role;
  pestle_type_t type;  // with one new token, and room for |most| positions
  size_t cache;  // of DECODE_CACHE, its number; of what the encoder gives too
} decode_input_t;

// A cache [1, heads, room, width], or [1, room, width].
typedef struct decode_cache_t {
  uint32_t input, output;  // of the model
  const char* present;     // name of |output|
  int64_t parts;           // that lie apart, each of |room| rows
  size_t row_bytes;
} decode_cache_t;

// The model for |rows| new tokens: the caches, and behind them the logits of the model for
// one, and where they are far and of one sequence the chooser's two numbers. Arguments are the model's and, where it |grows|, the sequence's length.
typedef struct decode_plan_t {
  int64_t rows, batch, room;
  pestle_executable_t* executable;
} decode_plan_t;

typedef struct decode_slot_t {
  pestle_buffer_t** caches;
  // What the encoder gave, which others that were forked may have too.
  pestle_buffer_t** given;
  bool is_encoded;
  float* logits;
  int64_t length;
  bool has_logits;
  // Logits that the device has and the host has not, and what the chooser said of them.
  pestle_buffer_t *far_logits, *far_choice;
} decode_slot_t;

// What runs of all slots at once are given; made when the first comes.
typedef struct decode_batch_t {
  bool is_off;  // slots run one by one
  uint64_t runs;
  pestle_buffer_t** buffers;  // an input each, NULL of caches
  int64_t* numbers;           // |slots| * |most|
  char* bytes;                // logits of all slots
} decode_batch_t;

// What a second thread makes while tokens come: the executables for one token in the next room.
typedef struct decode_ahead_t {
  struct decode_ahead_t* next;  // of those whose threads run
  bool is_off;                  // pestle_decoder_options_t.no_ahead
  bool is_started;              // there is a thread to join
  int64_t process;              // that has the thread
  pestle_thread_t thread;
  volatile int32_t cancel;
  decode_plan_t plans[2];  // of one sequence, of all
  size_t count;
  int64_t failed;  // the room that was given up; 0: none
  atomic_bool is_done;
  _Atomic uint64_t compiles;
  _Atomic int64_t compile_ns;
  uint64_t waits;
} decode_ahead_t;

// Of a model without one |executable| is NULL and |count| 0.
typedef struct decode_encoder_t {
  pestle_executable_t* executable;
  pestle_type_t features;
  size_t count;   // of what it gives
  size_t* sizes;  // bytes of each
  pestle_buffer_t** results;
} decode_encoder_t;

// What genai_config.json says, or would.
typedef struct decode_config_t {
  bool is_genai;     // there is such a file
  const char* file;  // of the model, within the folder; NULL: not told
  const char *input_ids, *mask, *position_ids, *logits;  // names
  // Names of keys and of values with a %d, or NULL.
  const char *past[2], *present[2];
  // The same of cross attention, whose present the encoder gives.
  const char *cross_past[2], *cross_present[2];
  // Of an encoder, its file within the folder, its path, and the name of its hidden states.
  const char *encoder_file, *encoder, *hidden;
  int64_t head_size, context;  // 0: not told
  bool follows_room;  // what it computes follows from how much room there is
  int64_t begin_id, pad_id;  // -1: none
  const int64_t* end_ids;
  size_t end_count;
  pestle_sampling_t sampling;
} decode_config_t;

struct pestle_decoder_s {
  pestle_context_t* context;
  pestle_allocator_t allocator;
  pestle_arena_t arena;
  pestle_device_t* device;
  pestle_compile_options_t compile;
  int32_t threads;
  decode_config_t config;
  const char* path;
  pestle_module_t* module;  // as it was imported
  uint64_t signature[2];    // of the model for one token
  decode_input_t* inputs;
  size_t input_count;
  uint32_t logits;  // the output of the model
  bool grows;       // the model appends rows to its caches
  // It appends rows and looks at nothing but how many its caches have, which is one more
  // argument (pestle_length_binding_t). Its prompts go one by one where many rows are found to
  // give something else.
  bool counts, is_tried, takes_rows;
  bool has_mask;    // it has attention_mask
  bool is_told;     // some input says how many rows there are
  bool has_branch;  // it has PESTLE_DECODE_BRANCH
  bool has_rows;    // it has PESTLE_DECODE_ROWS
  bool is_far;      // the device is none of CPUs: logits stay there
  pestle_dtype_t logits_dtype;
  int64_t words, most;
  bool is_most_told;
  // Positions that the model has tables for, |asked| (what |most| was at first) if it has no
  // less; then what reads the shortest of them.
  int64_t asked, places;
  const char* short_table;
  // Positions that the caches have, those that they have at first, and which are doubled
  // until they are |most|.
  int64_t room, first_room;
  decode_cache_t* caches;
  size_t cache_count;
  decode_plan_t plans[DECODE_MOST_PLANS];
  size_t plan_count;
  const decode_plan_t* token;  // for one token in |room|
  // Caches of which its attention reads no more than the sequence has.
  size_t bounded;
  uint64_t compiles;  // not those of |ahead|
  int64_t compile_ns;
  decode_ahead_t ahead;
  decode_slot_t* slots;
  size_t slot_count;
  // Of each cache the memory of all slots, one behind the other; NULL of one slot.
  pestle_buffer_t** blocks;
  decode_batch_t batch;
  decode_encoder_t encoder;
  // What a run is given.
  pestle_buffer_t *ids, *mask, *positions, *start, *first, *total, *beam_width;
  pestle_buffer_t* beams;  // zeros, where a model reads them
  int64_t mask_length;     // ones that |mask| begins with, of |room| places
  const char* zeros;       // that caches begin with
  pestle_buffer_view_t* views;
  pestle_buffer_t** results;
  uint32_t* donated;
  char* bytes;  // for logits of another type than f32
};

// --- decode_config.c ---

// Reads the config of the folder |path|, or beside the model at |path|; |*out_file| is the
// model's.
PESTLE_NODISCARD pestle_status_t pestle_decode_config(pestle_decoder_t* d,
                                                      const char* path,
                                                      const char** out_file);
// Whether one of the ids that genai_config.json has for an end is an id of the model.
PESTLE_NODISCARD pestle_status_t
pestle_decode_check_ends(const pestle_decoder_t* d);
// Whether the config says that the input |name| is a cache.
bool pestle_decode_is_past(const pestle_decoder_t* d, const char* name);
// Whether the config says that |present| is what the cache |past| becomes.
bool pestle_decode_is_pair(const pestle_decoder_t* d, const char* past,
                           const char* present);

// The same of cross attention.
bool pestle_decode_is_cross(const pestle_decoder_t* d, const char* name);
bool pestle_decode_is_config_cross(const pestle_decoder_t* d, const char* past,
                                   const char* present);

// --- decode_model.c ---

// |encoder|: the path of the model's encoder, or NULL.
PESTLE_NODISCARD pestle_status_t pestle_decode_open(pestle_decoder_t* d,
                                                    const char* path,
                                                    const char* encoder);
// Imports the model again as one that counts its rows.
PESTLE_NODISCARD pestle_status_t pestle_decode_count_rows(pestle_decoder_t* d);
// Whether the cross cache |past| is what |present| gives.
bool pestle_decode_is_cross_pair(const pestle_decoder_t* d, const char* past,
                                 const char* present);
// UNSUPPORTED: what |f| gives is none that a decoder takes of the model for |plan|.
PESTLE_NODISCARD pestle_status_t pestle_decode_check(const pestle_decoder_t* d,
                                                     pestle_function_t* f,
                                                     const decode_plan_t* plan);

// --- decode_build.c ---

// Whether the model is one that a decoder takes; finds its signature, words, and whether it
// appends rows.
PESTLE_NODISCARD pestle_status_t pestle_decode_look(pestle_decoder_t* d);

// The type of the input |input| for one new token in |room|.
pestle_type_t pestle_decode_type(const pestle_decoder_t* d, size_t input,
                                 int64_t room);
// The plan for |rows| new tokens of |batch| sequences in |room|, or NULL.
const decode_plan_t* pestle_decode_find(const pestle_decoder_t* d, int64_t rows,
                                        int64_t batch, int64_t room);
// Compiles |plan|, of which all but the executable is set. Any thread.
PESTLE_NODISCARD pestle_status_t
pestle_decode_make_plan(const pestle_decoder_t* d,
                        const pestle_control_t* control, decode_plan_t* plan);
// The plan for |rows| new tokens of |batch| sequences, compiled if need be.
PESTLE_NODISCARD pestle_status_t
pestle_decode_plan(pestle_decoder_t* d, int64_t rows, int64_t batch,
                   const decode_plan_t** out_plan);

// --- decode_places.c ---

// Finds |d->places| of the model for one token, |f|.
PESTLE_NODISCARD pestle_status_t
pestle_decode_find_places(pestle_decoder_t* d, const pestle_function_t* f);

// --- decode_encode.c ---

// Opens the encoder at |path| of the decoder at |decoder|, whose inputs are known, and compiles
// it. Finds the types of what the decoder reads of it.
PESTLE_NODISCARD pestle_status_t pestle_decode_open_encoder(
    pestle_decoder_t* d, const char* path, const char* decoder);
// INVALID_ARGUMENT: the model has an encoder, which gave |slot| nothing.
PESTLE_NODISCARD pestle_status_t pestle_decode_check_features(
    const pestle_decoder_t* d, const decode_slot_t* slot);
// Forgets what the encoder gave |slot|.
void pestle_decode_forget_features(const pestle_decoder_t* d,
                                   decode_slot_t* slot);
// Gives |to| what |from| has of the encoder.
void pestle_decode_share_features(const pestle_decoder_t* d,
                                  const decode_slot_t* from, decode_slot_t* to);

// --- decode_room.c ---

// The room that sequences of |positions| have.
int64_t pestle_decode_room_for(const pestle_decoder_t* d, int64_t positions);
// Of all caches of a slot.
uint64_t pestle_decode_cache_bytes(const pestle_decoder_t* d);
// Chooses the first room, of |asked| positions unless that is 0, by what the model's plan
// does, and has that.
PESTLE_NODISCARD pestle_status_t pestle_decode_first_room(pestle_decoder_t* d,
                                                          int64_t asked);
// Makes the caches of all slots, with the rows in use of those that they have, which are of
// |old| positions. After an error they have what they had.
PESTLE_NODISCARD pestle_status_t pestle_decode_make_caches(pestle_decoder_t* d,
                                                           int64_t old);
PESTLE_NODISCARD pestle_status_t pestle_decode_make_zeros(
    pestle_decoder_t* d, size_t size, pestle_buffer_t** out_buffer);
// Makes what says that there is one beam, if the model asks.
PESTLE_NODISCARD pestle_status_t pestle_decode_make_beams(pestle_decoder_t* d);
// Makes the mask that of no tokens.
PESTLE_NODISCARD pestle_status_t pestle_decode_clear_mask(pestle_decoder_t* d);
// Gives all slots room for what they have, and |slot| (may be NULL) to |end|; less room than
// there is where |slot| is empty. After an error all is as it was.
PESTLE_NODISCARD pestle_status_t pestle_decode_fit(pestle_decoder_t* d,
                                                   const decode_slot_t* slot,
                                                   int64_t end);

// --- decode_ahead.c ---

// Behind tokens: has the next room's executables made by a second thread if half of the room is
// in use and they are not there. Where no thread is to be had they are made when they are needed.
void pestle_decode_begin_ahead(pestle_decoder_t* d);
// Takes what the second thread has made; waits for it where that is for |room|.
void pestle_decode_take_ahead(pestle_decoder_t* d, int64_t room);
// Stops the second thread and drops what it made; true if there was any of it. Nothing is made
// ahead for the next room any more.
bool pestle_decode_drop_ahead(pestle_decoder_t* d);
// Whether |*status| says that memory is short and dropping what is made ahead has given some
// back, so that it is worth another try: then |*status| is released and NULL.
bool pestle_decode_relieve(pestle_decoder_t* d, pestle_status_t* status);

// --- decode_batch.c ---

void pestle_decode_end_batch(pestle_decoder_t* d);

// --- decode_logits.c ---

// A function of the logits of one token: the likeliest's id, and its logit's bits.
PESTLE_NODISCARD pestle_status_t pestle_decode_make_chooser(
    const pestle_decoder_t* d, pestle_module_t** out_module);
// Forgets what the device has for |slot|.
void pestle_decode_drop(decode_slot_t* slot);
// Brings the logits of |slot| to the host, if they are not there.
PESTLE_NODISCARD pestle_status_t pestle_decode_fetch(const pestle_decoder_t* d,
                                                     decode_slot_t* slot);
// The likeliest token, if the device knows.
PESTLE_NODISCARD pestle_status_t
pestle_decode_likeliest(const pestle_decoder_t* d, const decode_slot_t* slot,
                        int64_t* out_id, bool* out_found);

// --- decode_slot.c ---

// Whether the model knows of a sequence how many rows its caches have and nothing else: a trace
// of one token may hide no tokens from those before them.
static inline bool pestle_decode_counts(const pestle_decoder_t* d) {
  return d->counts || d->has_rows;
}

// INVALID_ARGUMENT: the sequence has no room for |count| more, or the model has not one of
// |ids|.
PESTLE_NODISCARD pestle_status_t
pestle_decode_check_ids(const pestle_decoder_t* d, const decode_slot_t* slot,
                        const int64_t* ids, size_t count);
// Writes |count| numbers as the integers of |dtype|, from element |at| on.
PESTLE_NODISCARD pestle_status_t pestle_decode_write(pestle_buffer_t* buffer,
                                                     pestle_dtype_t dtype,
                                                     int64_t at,
                                                     const int64_t* numbers,
                                                     size_t count);
// Where the cache |cache| of |slot| lies in its block; elsewhere runs of all slots would not
// see it.
void* pestle_decode_place(const pestle_decoder_t* d, size_t cache,
                          const decode_slot_t* slot);
// Makes |data| the logits of |slot|.
void pestle_decode_take_logits(const pestle_decoder_t* d, decode_slot_t* slot,
                               const char* data);

// INVALID_ARGUMENT: there is no slot |slot|.
PESTLE_NODISCARD pestle_status_t pestle_decode_slot(const pestle_decoder_t* d,
                                                    size_t slot,
                                                    decode_slot_t** out_slot);

// Appends |count| tokens by the executable for |rows|.
PESTLE_NODISCARD pestle_status_t pestle_decode_run(pestle_decoder_t* d,
                                                   decode_slot_t* slot,
                                                   const int64_t* ids,
                                                   size_t count, int64_t rows,
                                                   bool wants_logits);
// UNSUPPORTED: a model that appends rows gives other caches token by token than by a prompt.
PESTLE_NODISCARD pestle_status_t pestle_decode_try(pestle_decoder_t* d);

// --- decode_keep.c ---

// UNSUPPORTED: a model that writes rows into its caches changes others, too.
PESTLE_NODISCARD pestle_status_t pestle_decode_try_keeping(pestle_decoder_t* d);

#endif  // PESTLE_SESSION_DECODE_H_
