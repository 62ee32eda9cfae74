// SPDX-License-Identifier: Apache-2.0
// Language models token by token: ids in, ids out. A decoder holds a model, the caches of
// some sequences (slots) and an executable for each number of new tokens.
//
//   pestle_decoder_create(context, "model.onnx", NULL, &decoder);
//   pestle_decoder_feed(decoder, 0, prompt, prompt_count);
//   for (;;) {
//     pestle_decoder_choose(decoder, 0, &sampling, &id);
//     if (id == end) break;
//     pestle_decoder_feed(decoder, 0, &id, 1);
//   }
//
// A model is taken as builders of decoders write it (docs/language-models.md): inputs
// input_ids [1, tokens], attention_mask [1, positions], perhaps position_ids, and a cache
// for each present.* output. The caches have room for some positions and stay where they are:
// a token writes its own rows of them and nothing else, also of a model that appends rows. A
// sequence that passes the room is moved to twice as much, and the model compiled for it.
//
// Slots are sequences that know nothing of each other. A decoder is for one thread at a
// time; different decoders are not.
//
// Contents:
// - Decoders
// - Features
// - Tokens
// - Slots
#ifndef PESTLE_DECODE_H_
#define PESTLE_DECODE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/compile.h"
#include "pestle/context.h"
#include "pestle/runtime.h"
#include "pestle/status.h"
#include "pestle/tensor.h"

PESTLE_EXTERN_C_BEGIN

// --- Decoders ---

typedef struct pestle_decoder_s pestle_decoder_t;

// Zero-initialise and set |struct_size|. All is copied.
typedef struct pestle_decoder_options_t {
  size_t struct_size;
  pestle_device_t* device;  // NULL: pestle_context_device() without a name
  // Positions that a sequence may have; 0: 2048, or the model's context_length or the rows of
  // its tables of angles or places if these are less.
  int64_t most;
  size_t slots;     // sequences; 0: 1
  int32_t threads;  // of a run at most; 0: the pool's size
  // Of this numerics, target_cpu, no_cache and tier count. Or NULL.
  const pestle_compile_options_t* compile;
  // Positions that the caches have at first, 8 at least: when a sequence passes them they are
  // doubled, until they are |most|. 0: 256 where a token's cost follows them
  // (pestle_decoder_info_t.caches_bounded); else 2,048 on devices other than CPUs, and where the
  // caches of all slots would be above 1 GiB; else |most|.
  int64_t room;
  // The model's encoder, of speech models that are given as two files. Or NULL.
  const char* encoder;
  // What the next room needs is compiled when a token needs it. Else a thread of the decoder's
  // does it once half of the room is in use: it takes a core for as long as that takes, and the
  // memory of executables that a sequence that ends before does not need.
  bool no_ahead;
} pestle_decoder_options_t;

// Opens the model at |path|, a file, or a folder of onnxruntime-genai, whose
// genai_config.json names the file, and that of an encoder if there is one. The config counts for the file too if it lies beside it:
// names of inputs and outputs, head_size, context_length, the ids that begin, end and pad a
// text, and how tokens are chosen; of GGUF the file's own metadata counts. Each of its fields may
// be missing: the file is then model.onnx. Compiles the model
// for one token; other numbers of tokens are compiled when they are first
// needed, and one token in more positions before, by a thread of the decoder's: what fails there is
// tried again when it is needed, and told then. |options| may be NULL. Errors are those of
// pestle_import_file() and pestle_compile(); UNSUPPORTED: the model is none that a decoder
// takes (an input that it does not know, caches without a partner or that become something
// else than themselves with new rows), which the sentence says; INVALID_ARGUMENT: |most| or |room| is below 0; MALFORMED: the
// model has fewer angles than |most|, the config is no JSON, or a field of it is not what
// it should be, head_size not the caches', or none of the ids of an end one of the model's; NOT_FOUND: there is no such file, or the folder has no config.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_decoder_create(
    pestle_context_t* context, const char* path,
    const pestle_decoder_options_t* options, pestle_decoder_t** out_decoder);
// Frees |decoder| and its slots; what its thread compiles is stopped and waited for. NULL is
// allowed.
PESTLE_API void pestle_decoder_release(pestle_decoder_t* decoder);

// Zero-initialise and set |struct_size|.
typedef struct pestle_decoder_info_t {
  size_t struct_size;
  int64_t words;  // ids are 0 to |words| - 1
  int64_t most;   // positions a sequence
  size_t slots;
  size_t caches;           // tensors a slot
  size_t caches_in_place;  // of these, those that are never copied
  uint64_t cache_bytes;    // of a slot, in the room that it has now
  uint64_t token_bytes;    // of a slot that a token writes
  uint64_t weight_bytes;   // constants that a token reads
  // Since the decoder was made.
  uint64_t compiles;
  int64_t compile_ns;
  uint64_t batches;  // runs that were of several slots
  // Of genai_config.json, or of GGUF's metadata.
  int64_t context;  // positions that the model was trained for; 0: not told
  int64_t begin_id, pad_id;  // -1: none
  // Ids behind which a text ends. Borrowed until the decoder is released.
  const int64_t* end_ids;
  size_t end_count;
  int64_t
      room;  // positions that the caches have now; a token's cost may follow them
  // Of the caches, those of which a token's attention reads no more than the sequence has,
  // whatever room there is.
  size_t caches_bounded;
  // What pestle_decoder_encode() is given, borrowed until the decoder is released; NONE: the
  // model has no encoder. And bytes of what that makes of it for a slot.
  pestle_dtype_t feature_dtype;
  int32_t feature_rank;
  const int64_t* feature_dims;
  uint64_t encoder_bytes;
  uint64_t compiles_ahead;  // of |compiles|, those by a thread of the decoder's
  uint64_t waits;           // tokens and prompts that waited for that thread
} pestle_decoder_info_t;
// Fills |*out_info|, whose struct_size must be set.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_decoder_info(
    const pestle_decoder_t* decoder, pestle_decoder_info_t* out_info);

// --- Features ---
//
// A model of two parts makes of features, the mel spectrum of speech for one, what each token
// looks at. Tokens come behind:
//
//   pestle_decoder_encode(decoder, 0, &features);
//   pestle_decoder_feed(decoder, 0, start, start_count);
//   ...
//   pestle_decoder_cut(decoder, 0, 0);     // the same features once more, or others

// Runs the encoder on |features|, a tensor of the host as pestle_decoder_info() describes it,
// without gaps, which may lack the batch. Keeps for |slot| what tokens look at, until other
// features come; pestle_decoder_fork() shares it. INVALID_ARGUMENT, before anything is changed:
// the model has no encoder, no such slot, features of another type, or the slot has tokens.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_decoder_encode(
    pestle_decoder_t* decoder, size_t slot, const pestle_tensor_t* features);

// --- Tokens ---

// Appends |count| (1 at least) tokens to the sequence of |slot|: a prompt, what follows
// one, or the token that was chosen. Afterwards the slot has the logits of the last one.
// INVALID_ARGUMENT, before anything is written: no such slot, an id that the model has
// not, more tokens than |most| leaves, an encoder that gave the slot nothing. After another error the sequence is as long as it
// was.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_decoder_feed(
    pestle_decoder_t* decoder, size_t slot, const int64_t* ids, size_t count);

// Appends one token to each of |count| slots, |ids[i]| to |slots[i]|: by one run, which reads
// the weights once, where the model takes batches and no slot of the decoder is full, else
// by a run each. INVALID_ARGUMENT, before anything is written: as pestle_decoder_feed(), or
// a slot is named twice.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_decoder_feed_each(pestle_decoder_t* decoder, const size_t* slots,
                         const int64_t* ids, size_t count);

// |words| logits of the token that comes next, or NULL: nothing was fed, or the device that
// has them is lost. Borrowed until the slot changes.
PESTLE_API const float* pestle_decoder_logits(const pestle_decoder_t* decoder,
                                              size_t slot);

// How a token is chosen. Zero-initialise and set |struct_size|: the likeliest.
typedef struct pestle_sampling_t {
  size_t struct_size;
  double
      temperature;  // logits are divided by it; 0: the likeliest, the first of equal ones
  int64_t top_k;  // among so many of the likeliest; 0: all
  // Among the likeliest whose probabilities reach it, one at least; 0 or 1: all. Without
  // |top_k| at most 1,024.
  double top_p;
  // The same seed, sequence and logits give the same token.
  uint64_t seed;
} pestle_sampling_t;
// How tokens are chosen where nobody says otherwise: what genai_config.json has under
// "search" (do_sample, temperature, top_k, top_p), else the likeliest. Fills
// |*out_sampling|, whose struct_size must be set; the seed is 0.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_decoder_sampling(
    const pestle_decoder_t* decoder, pestle_sampling_t* out_sampling);
// Chooses the token that comes next in |slot|, and does not feed it. |sampling| may be
// NULL. INVALID_ARGUMENT: a number out of range, or nothing was fed; INTERNAL: the logits
// are not numbers.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_decoder_choose(const pestle_decoder_t* decoder, size_t slot,
                      const pestle_sampling_t* sampling, int64_t* out_id);

// --- Slots ---

// Tokens that were fed; -1: no such slot.
PESTLE_API int64_t pestle_decoder_length(const pestle_decoder_t* decoder,
                                         size_t slot);
// Forgets all tokens from place |length| on, and the logits. INVALID_ARGUMENT: the
// sequence is shorter.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_decoder_cut(pestle_decoder_t* decoder, size_t slot, int64_t length);
// Makes slot |to| what |from| is. Costs a copy of the rows that are in use.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_decoder_fork(pestle_decoder_t* decoder, size_t from, size_t to);
// Writes the sequence of |slot| to a file: the rows that are in use, and the logits.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_decoder_save(
    const pestle_decoder_t* decoder, size_t slot, const char* path);
// Reads what pestle_decoder_save() wrote into |slot|. INCOMPATIBLE: it is of another model
// or of other numbers of positions; MALFORMED: it is no such file, or damaged. The slot is
// then as it was.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_decoder_load(pestle_decoder_t* decoder, size_t slot, const char* path);

PESTLE_EXTERN_C_END

#endif  // PESTLE_DECODE_H_
