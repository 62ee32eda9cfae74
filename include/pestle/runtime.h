// SPDX-License-Identifier: Apache-2.0
// Running: devices, buffers, streams, events, plans, executables. The runtime
// runs a saved plan without any of the compiler.
//
// Threads: context, device, plan, executable and buffer may be used from any
// threads at once (what lies in a buffer needs outside order); streams need
// outside order. Of an event any threads may wait, query and register functions
// at once, but a recording needs it alone. After fork() the child
// may use a context of the parent's; pools start anew in it. Devices other than
// CPUs that the parent had opened are UNAVAILABLE there.
//
// Contents:
// - Backends and devices
// - Buffers
// - Streams and events
// - Plans
// - Constants
// - Executables
// - Plan cache
#ifndef PESTLE_RUNTIME_H_
#define PESTLE_RUNTIME_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/context.h"
#include "pestle/plugin.h"
#include "pestle/status.h"
#include "pestle/tensor.h"

PESTLE_EXTERN_C_BEGIN

typedef struct pestle_device_s pestle_device_t;
typedef struct pestle_buffer_s pestle_buffer_t;
typedef struct pestle_stream_s pestle_stream_t;
typedef struct pestle_event_s pestle_event_t;
typedef struct pestle_plan_s pestle_plan_t;
typedef struct pestle_executable_s pestle_executable_t;

// --- Backends and devices ---

// What became of a candidate, and the level at which the log says so.
typedef enum pestle_verdict_e {
  PESTLE_VERDICT_LOADED = 0,      // info
  PESTLE_VERDICT_UNLOADABLE = 1,  // warn: the system's loader refuses it
  PESTLE_VERDICT_ABI = 2,         // error: built for another interface
  PESTLE_VERDICT_SCORE = 3,       // debug: not for this machine
  PESTLE_VERDICT_INIT = 4,        // warn: it cannot start
  PESTLE_VERDICT_TABLES = 5,      // error: its tables are not what they must be
  PESTLE_VERDICT_FILTERED = 6,    // debug: the caller's filter
  PESTLE_VERDICT_UNTRUSTED = 7,   // warn: others may write the file
  PESTLE_VERDICT_OUTSCORED = 8,   // debug: its group has a better one
  PESTLE_VERDICT_PROBE = 9,       // error: it crashed, hung or ended the child
} pestle_verdict_t;

// One backend that the context loaded or refused. Borrowed from the context.
typedef struct pestle_backend_info_t {
  size_t struct_size;
  const char* name;
  const char* path;  // "" for one that is linked in
  const char* build_id;
  int32_t device_type;
  int32_t score;
  int32_t device_count;
  const char* reason;               // why it is not usable; "" when it is
  int32_t verdict;                  // pestle_verdict_t
  const pestle_backend_t* backend;  // NULL: not loaded
  bool is_target;  // refused as a device, but pestle_context_target() takes it
} pestle_backend_info_t;

// A candidate as a filter sees it. Borrowed during the call.
typedef struct pestle_candidate_t {
  size_t struct_size;
  const char* name;  // by its abi_info
  const char* path;  // "" for one that is linked in
  const pestle_backend_abi_info_t* abi_info;
  int32_t score;
} pestle_candidate_t;

// Which candidates may be loaded. A glob (* and ?) is held against the name of
// the backend ("cuda") and against name and variant of its file ("cuda-v13").
// Zero-initialise and set |struct_size|.
typedef struct pestle_backend_filter_t {
  size_t struct_size;
  // At least one must match; none given: all do. What does not match is not
  // even opened.
  const char* const* allowed;
  size_t allowed_count;
  // None may match.
  const char* const* blocked;
  size_t blocked_count;
  // False leaves the candidate out. NULL: takes all. Must not call Pestle.
  bool (*accept)(void* user, const pestle_candidate_t* candidate);
  void* user;
} pestle_backend_filter_t;

// Loads what the search path has, once. Candidates are grouped by name; the
// best score wins in each group; of equal ones that with this library's own
// build id, then the first in the search order, then by name. Groups do not
// compete. Never an error for a bad candidate: its reason is in the info.
// Called by the functions below when needed, unless pestle_context_load_all()
// was called before or the option manual_backends says that the caller sees to
// it. Fails only out of memory.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_context_load_backends(pestle_context_t* context);
// The same under a |filter| (may be NULL: everything), and again at each call:
// what was refused is looked at anew, what runs stays. Backends that are linked
// in are filtered too, but for built-in fallbacks, so that cpu always works.
// Allowed at any time: devices and what is on them stay valid, but the number
// of a device among those of its type ("gpu:1") is by score, and may grow.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_load_all(
    pestle_context_t* context, const pestle_backend_filter_t* filter);
// Loads the best of libpestle-{name}[-variant].so in the search path, and
// nothing else; nothing when backend |name| runs already. NOT_FOUND: there is
// no such file; else as pestle_context_load_backend() says of the last refused.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_context_load_best(pestle_context_t* context, const char* name);
// How many candidates were found, usable or not. Loads them. A later load may
// change their order.
PESTLE_API size_t pestle_context_backend_count(pestle_context_t* context);
// Describes candidate |index|; |out_info|->struct_size must be set. Its strings
// are borrowed from the context. NOT_FOUND past the last.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_backend_info(
    pestle_context_t* context, size_t index, pestle_backend_info_t* out_info);
// Loads one plugin file now, beside what the search path has; its name need not
// be that of a plugin. A plugin is code: load only what you trust. NOT_FOUND:
// no such file; INCOMPATIBLE: another ABI, or its name is taken; UNAVAILABLE:
// why it cannot be used here.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_context_load_backend(pestle_context_t* context, const char* path);
// Adds a backend that the caller is linked with, by its entry points
// (PESTLE_BACKEND_PREFIX); |score| may be NULL. Fails as
// pestle_context_load_backend() does.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_add_backend(
    pestle_context_t* context, pestle_backend_abi_info_fn_t abi_info,
    pestle_backend_score_fn_t score, pestle_backend_init_fn_t init);
// The running backend of that name, or NULL. Loads what the search path has.
// Borrowed. The backend of a device is pestle_device_backend().
PESTLE_API const pestle_backend_t* pestle_context_backend(
    pestle_context_t* context, const char* name);
// How many devices there are of a type ("cpu", "gpu", "software") or backend.
// Loads them.
PESTLE_API int32_t pestle_context_device_count(pestle_context_t* context,
                                               const char* type);
// Whether there is one.
PESTLE_API bool pestle_context_is_available(pestle_context_t* context,
                                            const char* type);

// How many folders are searched: those of PESTLE_BACKEND_PATH or the option
// backend_path alone, else pestle/backends and then backends/ beside the library.
// Never the current folder.
PESTLE_API size_t pestle_context_search_path_count(pestle_context_t* context);
// Folder |index| in the order of the search; NULL past the last. Borrowed from the
// context.
PESTLE_API const char* pestle_context_search_path(pestle_context_t* context,
                                                  size_t index);
// Replaces them for the loads that follow. The texts are copied.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_set_search_paths(
    pestle_context_t* context, const char* const* folders, size_t count);

// The device that |spec| names: a type ("cpu", "gpu:1"; best score first) or a
// backend ("llvm", "ref", "cuda:1"). A driver that computes on the CPU (PoCL,
// llvmpipe) is no "gpu": its type is "software", and it comes behind all others. NULL: PESTLE_DEVICE if the environment is
// used, else "cpu". Borrowed: lives as long as the context. INVALID_ARGUMENT: a
// |spec| that is not understood; NOT_FOUND lists what there is.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_device(
    pestle_context_t* context, const char* spec, pestle_device_t** out_device);
// The same to compile for. Where the backend of that name is not for this
// machine (PESTLE_VERDICT_SCORE), but says that its compiler half works anywhere
// (PESTLE_BACKEND_TARGET_ALONE), it is started for that alone: the device has a
// description and compiles, is counted and found nowhere else, its number is -1,
// and whatever needs its memory or runs on it is UNAVAILABLE, with the reason.
// Fails as pestle_context_device() does, and with what its start says.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_target(
    pestle_context_t* context, const char* spec, pestle_device_t** out_device);
// Whether |device| only compiles; false for NULL.
PESTLE_API bool pestle_device_is_target(const pestle_device_t* device);
// The best device of |device|'s type whose backend takes what others refuse
// (PESTLE_BACKEND_FALLBACK), else such a CPU device; or NULL: there is none, or
// |device| is of that backend itself. Borrowed, as above.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_fallback(
    pestle_context_t* context, const pestle_device_t* device,
    pestle_device_t** out_device);
// "llvm", or "cuda:1" where a backend has several. Borrowed; "" for NULL.
PESTLE_API const char* pestle_device_name(const pestle_device_t* device);
// The context that it is of. Borrowed; NULL for NULL.
PESTLE_API pestle_context_t* pestle_device_context(
    const pestle_device_t* device);
// Its type: "cpu", "gpu", or "software", which is a driver's device that computes on
// the CPU. Static; "" for NULL.
PESTLE_API const char* pestle_device_type(const pestle_device_t* device);
// Its number among the devices of its type: 1 for "gpu:1". A load may raise it;
// -1 for NULL.
PESTLE_API int32_t pestle_device_index(const pestle_device_t* device);
// Property |index| of the device: a name with a text or a number. The backend
// decides which. |out_property|->struct_size must be set. NOT_FOUND past the
// last.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_device_property(pestle_device_t* device, uint32_t index,
                       pestle_device_property_t* out_property);
// What the views of its memory have as their device. All CPU devices are 0.
PESTLE_API pestle_dl_device_t pestle_device_dl(const pestle_device_t* device);
// The plugin's own table, borrowed.
PESTLE_API const pestle_backend_t* pestle_device_backend(
    const pestle_device_t* device);
// "name build-id": what a plan key holds about the backend. Borrowed.
PESTLE_API const char* pestle_device_backend_id(const pestle_device_t* device);
// The |index|-th backend whose library ops on |device| may be given to, best
// score first (pestle_library_api_t); NULL past the last. |out_id| (may be NULL)
// becomes "name build-id". Borrowed. Of backends that are loaded already.
PESTLE_API const pestle_backend_t* pestle_device_library(
    const pestle_device_t* device, size_t index, const char** out_id);
// What the device's target can do, for |cpu| or (NULL) this machine.
// |out_caps|->struct_size must be set. UNSUPPORTED: a CPU that the target does
// not know, or a backend without a compiler half.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_device_caps(
    pestle_device_t* device, const char* cpu, pestle_target_caps_t* out_caps);

// Runs task(arg, i) for i < count on the context's pool (the caller works too)
// and returns when all are done. |task| may be called from any threads at once
// and must not wait for another of its calls. Nested calls are fine.
PESTLE_API void pestle_context_parallel_for(pestle_context_t* context,
                                            int64_t count,
                                            void (*task)(void* arg, int64_t i),
                                            void* arg);

// --- Buffers ---

// Bits of pestle_buffer_flags().
typedef enum pestle_buffer_flag_e {
  // Nobody may write to the memory: pestle_buffer_write() and copies to it are
  // refused, and no run overwrites it.
  PESTLE_BUFFER_READ_ONLY = 1,
  // Host memory, of a CPU device, that other devices reach without a copy.
  PESTLE_BUFFER_PINNED = 2,
  // Memory of a device other than a CPU that the host reaches at its address.
  PESTLE_BUFFER_MANAGED = 4,
  // Nobody but who refers to the buffer sees the memory. Without it a run never
  // overwrites wrapped memory, donated or not.
  PESTLE_BUFFER_EXCLUSIVE = 8,
  // The memory is somebody else's: pestle_buffer_wrap() made the buffer.
  PESTLE_BUFFER_WRAPPED = 16,
} pestle_buffer_flag_t;

// Device memory of |size| bytes (may be 0), 64-byte aligned, contents
// undefined. The buffer keeps the device's context alive. RESOURCE_EXHAUSTED: the
// device's limit; OUT_OF_MEMORY; UNAVAILABLE: the device cannot be used here.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_buffer_create(
    pestle_device_t* device, size_t size, pestle_buffer_t** out_buffer);

// Zero-initialise and set |struct_size|.
typedef struct pestle_buffer_wrap_options_t {
  size_t struct_size;
  uint32_t flags;  // pestle_buffer_flag_t, but for WRAPPED
  // Called as release(release_self) exactly once, when nobody refers to the
  // buffer and no run uses it any more: on the thread where that comes true, with
  // no lock of Pestle's held. It may call Pestle. NULL: nothing is called.
  void (*release)(void* self);
  void* release_self;
} pestle_buffer_wrap_options_t;

// A buffer of |size| bytes at |data|, memory of |device| that is somebody else's
// and stays so until |options|->release is called. It may have any alignment:
// what a run cannot use where it lies is copied. |data| may be NULL when |size|
// is 0; |options| may be NULL. The buffer keeps the device's context alive. On
// failure nothing is taken over and release is not called. INVALID_ARGUMENT: a
// flag that is not known; UNAVAILABLE: the device cannot be used here.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_buffer_wrap(
    pestle_device_t* device, void* data, size_t size,
    const pestle_buffer_wrap_options_t* options, pestle_buffer_t** out_buffer);

// Adds a reference. NULL is allowed.
PESTLE_API void pestle_buffer_retain(pestle_buffer_t* buffer);
// Drops a reference. With the last one, when no run uses the buffer any more, its
// memory goes back to where it came from. NULL is allowed.
PESTLE_API void pestle_buffer_release(pestle_buffer_t* buffer);
// Bits of pestle_buffer_flag_t; 0 for NULL.
PESTLE_API uint32_t pestle_buffer_flags(const pestle_buffer_t* buffer);
// Whether the contents are there, or the run on a stream that was to make them has
// failed. Does not wait. False for NULL.
PESTLE_API bool pestle_buffer_is_ready(const pestle_buffer_t* buffer);
// Waits until they are, and returns the failure of that run if it failed.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_buffer_wait(const pestle_buffer_t* buffer);
// The real extents of a bounded output of rank |*out_rank| (may be NULL), there
// when the run that made it is done. NULL for every other buffer. Borrowed.
PESTLE_API const int64_t* pestle_buffer_extents(const pestle_buffer_t* buffer,
                                                int32_t* out_rank);
// Its first byte, as the device addresses it: host memory on CPU devices.
// Borrowed.
PESTLE_API void* pestle_buffer_data(const pestle_buffer_t* buffer);
// The same byte where the host may read and write it, or NULL: device memory
// that it cannot reach. Nothing waits for streams that use it. Borrowed.
PESTLE_API void* pestle_buffer_host_data(const pestle_buffer_t* buffer);
// Bytes, as asked for.
PESTLE_API size_t pestle_buffer_size(const pestle_buffer_t* buffer);
// The device that it is on. Borrowed from the context.
PESTLE_API pestle_device_t* pestle_buffer_device(const pestle_buffer_t* buffer);
// Copies |size| bytes of the host at |data| (may be NULL when |size| is 0) to
// byte |offset| of |buffer| and returns when it is done. Waits for runs on buffers
// that make or read it (pestle_executable_run_buffers()), for no other use by a
// stream. INVALID_ARGUMENT: a range outside of the buffer, or one that is read-only;
// UNSUPPORTED: a backend without copies; the failure of a run that was to make it.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_buffer_write(
    pestle_buffer_t* buffer, size_t offset, const void* data, size_t size);
// The other way: from byte |offset| of |buffer| to |data|, once it is made.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_buffer_read(
    const pestle_buffer_t* buffer, size_t offset, void* data, size_t size);
// Copies |size| bytes (may be 0) from byte |from_offset| of one buffer to byte
// |to_offset| of another, on any devices of one context, and returns when it is
// done: by the backend's own means within one backend, through the host's
// memory across two. Waits as pestle_buffer_read() and _write() do. INVALID_ARGUMENT: a range outside of
// its buffer, |to| is read-only, ranges of one buffer that overlap on a device
// other than a CPU, two contexts; UNSUPPORTED: a backend without copies.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_buffer_copy(const pestle_buffer_t* from, size_t from_offset,
                   pestle_buffer_t* to, size_t to_offset, size_t size);

// Bytes of device memory that the context's buffers, arenas and constants hold
// now and held at most, and that are kept to be used again.
typedef struct pestle_memory_stats_t {
  size_t struct_size;
  uint64_t active, peak, cached;
} pestle_memory_stats_t;
// Fills |*out_stats|, whose struct_size must be set. The numbers may be of
// slightly different moments.
PESTLE_API void pestle_device_memory_stats(const pestle_device_t* device,
                                           pestle_memory_stats_t* out_stats);

// A number of |device|'s memory, in bytes. On CPU devices they are those of the
// host's memory that the context holds for it. UNSUPPORTED: the backend has no
// such number.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_device_memory_get(
    const pestle_device_t* device, pestle_memory_t what, uint64_t* out_bytes);
// Sets a limit; PESTLE_MEMORY_PEAK and PESTLE_MEMORY_CACHE take 0 alone: the
// peak begins anew, what is kept for reuse is given back. |out_before| (may be
// NULL) receives what it was.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_device_memory_set(pestle_device_t* device, pestle_memory_t what,
                         uint64_t bytes, uint64_t* out_before);
// The sum over all devices of backends that are not cpu; those without the
// number count 0. Over cpu devices when there are no others. Loads backends.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_memory_get(
    pestle_context_t* context, pestle_memory_t what, uint64_t* out_bytes);
// Sets it on the devices of the one gpu backend that there is, or of cpu when
// there is none. With several gpu backends a limit is INVALID_ARGUMENT: their
// devices differ, so pestle_device_memory_set() is to be called for each; but
// PESTLE_MEMORY_PEAK and PESTLE_MEMORY_CACHE apply to all. |out_before| (may be
// NULL) receives the sum of what it was.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_context_memory_set(pestle_context_t* context, pestle_memory_t what,
                          uint64_t bytes, uint64_t* out_before);

// --- Streams and events ---

// An in-order queue of runs. On a CPU a thread of its own works it off. On another
// device it is the backend's own, and has such a thread as soon as there is a run
// that the host must look into, so that no run keeps its caller waiting.
//
// When a run fails the memory that it was to write (its outputs and donated
// inputs) is poisoned: runs that read any of it, on this stream or another, fail
// for the same reason, with the same sentence, and poison what they were to write;
// all others go on. It stays so until a run has written all of it, or the stream
// that failed is synchronised or released. Writes by the host do not heal:
// synchronise first. A stream that waits for an event which was recorded before
// such a synchronisation and carries its failure fails as a whole until it is
// synchronised itself, since what was poisoned is forgotten.
// UNSUPPORTED: the device offers no streams; RESOURCE_EXHAUSTED: no thread.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_stream_create(pestle_device_t* device, pestle_stream_t** out_stream);
// Waits for what is queued, then drops the stream. NULL is allowed.
PESTLE_API void pestle_stream_release(pestle_stream_t* stream);
// Waits until all that was queued is done; the first failure since the last
// call is returned. UNAVAILABLE: the stream was made before fork().
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_stream_synchronize(pestle_stream_t* stream);
// An event that was not recorded yet.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_event_create(pestle_device_t* device, pestle_event_t** out_event);
// Drops the event; recordings that streams wait for, and callbacks, stay. NULL is
// allowed.
PESTLE_API void pestle_event_release(pestle_event_t* event);
// Signals |event| when all queued before on |stream| is done; with NULL now. An
// event may be recorded again: waits are for the latest recording before them.
// Event and stream may be of any devices of a context, and nobody waits here:
// between two backends a thread of the stream does. Nothing else of the event may
// be called meanwhile.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_event_record(pestle_event_t* event, pestle_stream_t* stream);
// Signals |event| when the contents of |buffer| are there, with the status of the
// run that makes them; now where no run on a stream does. INVALID_ARGUMENT: they are
// of two contexts.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_event_record_buffer(pestle_event_t* event, pestle_buffer_t* buffer);
// Makes |stream| wait for |event|; with NULL the caller waits. That work before
// the recording failed is no failure of the wait (pestle_event_status() tells).
// INVALID_ARGUMENT: it was never recorded; UNAVAILABLE: the recording's device is
// lost.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_event_wait(pestle_event_t* event, pestle_stream_t* stream);
// Whether the latest recording is done. Does not wait.
PESTLE_API bool pestle_event_is_signalled(const pestle_event_t* event);
// What became of the work before the latest recording: the first failure on its
// stream that no synchronisation has returned yet, for the caller to release; OK
// when there is none, and while it is not signalled. After a device is lost
// that is UNAVAILABLE, with what its driver said first. INVALID_ARGUMENT: it was
// never recorded.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_event_status(const pestle_event_t* event);

// Is told what pestle_event_status() says, borrowed during the call.
typedef void (*pestle_event_fn_t)(void* self, pestle_status_t status);
// Calls fn(self, status) exactly once when the latest recording is signalled, also
// when its stream is released or its device is lost; if it is signalled already,
// soon. The call is made by a thread of the runtime, never by the caller or a
// driver, and no lock is held. It may use Pestle, and release the event or the
// context, but must not wait for the recording's stream, which a release of that
// stream does. Functions of one recording are called in the order in which they
// were given, and those of one stream one at a time, in the order of its
// recordings; those of other streams run beside them, so that one which waits holds
// up its own stream's alone. The event may be released, or recorded again, at once.
// In a child of fork() nothing of the parent's is called.
//
// INVALID_ARGUMENT: it was never recorded; OUT_OF_MEMORY; RESOURCE_EXHAUSTED: no
// thread; UNAVAILABLE: it was recorded before fork(). fn is then never called.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_event_on_signalled(
    pestle_event_t* event, pestle_event_fn_t fn, void* self);

// Orders the use of one buffer between streams: like an event, and it tells the
// backend whose memory is to be seen by whom.
typedef struct pestle_fence_s pestle_fence_t;

// A fence of |device|, without an update yet. Use it from one thread at a time.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_fence_create(pestle_device_t* device, pestle_fence_t** out_fence);
// Drops the fence, when no stream waits for it. NULL is allowed.
PESTLE_API void pestle_fence_release(pestle_fence_t* fence);
// What |stream| has queued so far writes |buffer|. |cross_device|: another
// device or the host will read it. INVALID_ARGUMENT: a stream or a buffer of
// another device.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_fence_update(pestle_fence_t* fence, pestle_stream_t* stream,
                    pestle_buffer_t* buffer, bool cross_device);
// What |stream|, of any device of the backend, queues from now on comes after
// the last update. NULL: the caller waits. No update yet: there is nothing to
// wait for.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_fence_wait(
    pestle_fence_t* fence, pestle_stream_t* stream, pestle_buffer_t* buffer);

// --- Plans ---

// Takes over |data|, |size| bytes of a plan (plan_format.h), 64-byte aligned;
// release(self) is called when the plan dies (NULL: |data| outlives it). Checks
// magic, version, checksum and every bound: MALFORMED, INCOMPATIBLE. On failure
// nothing is taken over. Constants outside of the plan are looked up in the
// context, then in its cache on disk; NOT_FOUND when one is in neither.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_plan_create(
    pestle_context_t* context, const void* data, size_t size,
    void (*release)(void* self), void* self, pestle_plan_t** out_plan);
// Adds a reference.
PESTLE_API void pestle_plan_retain(pestle_plan_t* plan);
// Drops a reference. A plan that the cache holds stays there.
PESTLE_API void pestle_plan_release(pestle_plan_t* plan);
// The plan's |*out_size| bytes (|out_size| may be NULL), borrowed. Large
// constants may lie outside of them: to hand a plan on, save it.
PESTLE_API const void* pestle_plan_data(const pestle_plan_t* plan,
                                        size_t* out_size);
// Writes the plan with all its constants to |path| by atomic rename, mode 0600.
// IO: the place cannot be written; RESOURCE_EXHAUSTED: the disk is full.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_plan_save(const pestle_plan_t* plan, const char* path);
// Maps a saved plan; the file stays mapped while the plan lives. A plan is
// machine code: load only what you trust. NOT_FOUND: no such file; else as
// pestle_plan_create().
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_plan_load(
    pestle_context_t* context, const char* path, pestle_plan_t** out_plan);

// --- Constants ---

// Packed bytes that a context holds once however many plans use them: mapped
// from the cache on disk, or host memory that is sealed read-only. Any thread
// may use one. It does not hold the context, which must outlive it.
typedef struct pestle_constant_s pestle_constant_t;

// Writes the |size| bytes of a packed constant to |target|, which is zero.
typedef void (*pestle_constant_pack_fn_t)(void* user, void* target,
                                          size_t size);

// The constant of |key|, a hash of the source's content and of the layout that
// it is packed to. Calls pack(user) only when the context has none; the content
// may still turn out to be one that it has. |*out_constant| is to be released,
// and is NULL when the context's cache is switched off: put the bytes into the
// plan. A disk that cannot be written costs the file alone.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_constant_get(pestle_context_t* context, const uint64_t key[2],
                    size_t size, pestle_constant_pack_fn_t pack, void* user,
                    pestle_constant_t** out_constant);
// The same for bytes that need no packing; they are borrowed during the call.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_constant_get_bytes(
    pestle_context_t* context, const uint64_t key[2], const void* data,
    size_t size, pestle_constant_t** out_constant);
// Drops a hold; the bytes live as long as something holds them.
PESTLE_API void pestle_constant_release(pestle_constant_t* constant);
// The bytes, 64-byte aligned, read-only and borrowed, and in |out_hash| (may be
// NULL) their XXH3-128, low half first.
PESTLE_API const void* pestle_constant_data(const pestle_constant_t* constant,
                                            uint64_t out_hash[2]);

// --- Executables ---

// Where outputs lie that a run allocates, if the executable runs on a device
// other than a CPU.
typedef enum pestle_output_place_e {
  PESTLE_OUTPUTS_AUTO = 0,  // on the device if an input does, else on the host
  PESTLE_OUTPUTS_HOST = 1,
  PESTLE_OUTPUTS_DEVICE = 2,
} pestle_output_place_t;

// Zero-initialise and set |struct_size|.
typedef struct pestle_run_options_t {
  size_t struct_size;
  int32_t threads;  // at most so many; 0: the pool's size
  // Names of inputs whose memory this run may overwrite.
  const char* const* donated;
  size_t donated_count;
  const struct pestle_control_t* control;  // or NULL
  // Called after each step when not NULL (profiles), by the thread that runs it:
  // ns of CLOCK_MONOTONIC. A device other than a CPU is waited for after each step
  // then. What the step is, pestle_executable_step() says.
  void (*on_step)(void* user, uint32_t step, int64_t begin_ns, int64_t end_ns);
  void* on_step_user;
  int32_t output_place;  // pestle_output_place_t
  // As whom the run takes part, of a plan for several processes (pestle/world.h). All
  // ranks run it, on threads of their own. Held while the run is queued.
  struct pestle_world_s* world;
  // The numbers of the strings that the run takes and gives (pestle/strings.h), made of
  // this executable. A model that makes new strings, or reads their letters, needs them
  // (pestle_executable_needs_strings()), and adds its own. Nobody else may use them until
  // the run is done. NULL: none.
  struct pestle_strings_s* strings;
} pestle_run_options_t;

// What an executable takes and gives. Frozen. Borrowed from the executable.
typedef struct pestle_io_info_t {
  const char* name;
  pestle_dtype_t dtype;
  int32_t rank;
  const int64_t* dims;
  bool bounded;  // outputs whose real shape is known after a run only
} pestle_io_info_t;

// Loads |plan| on |device| (NULL: the device that it was made for). Its kernels
// are loaded, its constants shared with other executables of the plan.
// It keeps plan and context alive. INVALID_ARGUMENT: a device of another
// context; NOT_FOUND: the plan's backend is not here; INCOMPATIBLE: the machine
// lacks a feature that the plan names.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_executable_create(
    pestle_context_t* context, pestle_plan_t* plan, pestle_device_t* device,
    pestle_executable_t** out_executable);
// Adds a reference.
PESTLE_API void pestle_executable_retain(pestle_executable_t* executable);
// Drops a reference. Runs that a stream has queued hold their own.
PESTLE_API void pestle_executable_release(pestle_executable_t* executable);
// How many inputs a run takes.
PESTLE_API size_t
pestle_executable_input_count(const pestle_executable_t* executable);
// How many outputs a run gives.
PESTLE_API size_t
pestle_executable_output_count(const pestle_executable_t* executable);
// What input |index| must be; past the last the name is "" and all else 0.
PESTLE_API pestle_io_info_t
pestle_executable_input(const pestle_executable_t* executable, size_t index);
// What output |index| will be; past the last the name is "" and all else 0.
PESTLE_API pestle_io_info_t
pestle_executable_output(const pestle_executable_t* executable, size_t index);

// The input whose bytes output |index| begins as, and whose memory a run makes it
// in when it is given that (pestle_run_buffers_options_t.donated); -1: none.
PESTLE_API int32_t
pestle_executable_alias(const pestle_executable_t* executable, size_t index);

// Bytes of constants (weights) that a run as partition |partition| of the plan's needs:
// those that all processes have, and its own parts of others; -1: all that there are.
// What a device or another plan has already is counted too.
PESTLE_API uint64_t pestle_executable_constant_bytes(
    const pestle_executable_t* executable, int32_t partition);

typedef enum pestle_step_kind_e {
  PESTLE_STEP_KERNEL = 0,
  PESTLE_STEP_COPY = 1,        // of one value to another's place
  PESTLE_STEP_CALL = 2,        // a library's op, or a custom call
  PESTLE_STEP_JUMP = 3,        // of loops and branches; the end too
  PESTLE_STEP_COLLECTIVE = 4,  // with the other processes of a world
} pestle_step_kind_t;

// What a step is: with the times that pestle_run_options_t.on_step receives, a
// profile. Zero-initialise and set |struct_size|. Strings are the executable's.
typedef struct pestle_step_info_t {
  size_t struct_size;
  int32_t kind;         // pestle_step_kind_t
  const char* name;     // of kernel or call; "" for a jump
  const char* backend;  // that runs it: "llvm"
  bool fallback;        // the plan's device refused it
  int32_t threads;      // that take part at most; 0: the device's business
  // Graph ops and, in brackets, nodes of the model that they come from; and what
  // was decided about the kernel's schedule, "kind=value ...". Not terminated.
  const char* ops;
  size_t ops_size;
  const char* schedule;
  size_t schedule_size;
  // Operations: a multiply-add is two, a function like exp 20; 0: not counted. By
  // Winograd those that it makes, not those of the taps.
  uint64_t flops;
  // That it must read and write, once each, however good the caches; and how
  // many of these lie in constants (weights).
  uint64_t bytes, constant_bytes;
  // How many of the operations are in products of f16 or bf16, and in those of
  // bytes, for which machines have instructions of their own.
  uint64_t half_flops, byte_flops;
  // Which locations of the model it is for (pestle_executable_location()),
  // ascending; a jump's are those of its loop or branch.
  const uint32_t* locations;
  size_t location_count;
} pestle_step_info_t;

// How many steps a run may take: on_step numbers them from 0 on. A loop takes
// some more than once, a branch leaves some out.
PESTLE_API size_t
pestle_executable_step_count(const pestle_executable_t* executable);
// Fills |*out_info|, whose struct_size must be set. Any threads may ask.
// INVALID_ARGUMENT: no such step.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_executable_step(const pestle_executable_t* executable, size_t index,
                       pestle_step_info_t* out_info);

// Where ops of the model came from. Zero-initialise and set |struct_size|. Strings
// are the executable's, "" where there is none.
typedef struct pestle_location_info_t {
  size_t struct_size;
  const char* op;    // one that is there: "dot_general"
  const char* name;  // of the node in its source
  const char* file;
  uint32_t line, column;  // 0: none
} pestle_location_info_t;

// How many locations the ops of the compiled module had. A location's number is
// its place among them, in the order of the module: the same for each compilation
// of it, whatever the device and the options, so that a profile or a trace can be
// laid beside the graph. Passes may leave nothing of an op: then no step names it.
// A plan that the cache had from an equal module with other names has the names of
// that one.
PESTLE_API size_t
pestle_executable_location_count(const pestle_executable_t* executable);
// Fills |*out_info|, whose struct_size must be set. Any threads may ask.
// INVALID_ARGUMENT: no such location.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_executable_location(const pestle_executable_t* executable, size_t index,
                           pestle_location_info_t* out_info);

// Runs once. |inputs| and |outputs| are views in the executable's order. An
// input view may have any element strides; a contiguous one is read in place if
// its data is aligned to its elements (on devices other than CPUs: to 16 bytes),
// others cost one copy. An output view with data is written to (contiguous,
// 64-byte aligned: in place); one with NULL data is allocated: data, shape and
// strides are filled in, and pestle_tensor_release() frees it. For bounded outputs shape[] is updated to
// the real extents. Dtype, rank or shape that differ from the executable's are
// INVALID_ARGUMENT naming the tensor; so is an output that overlaps a live (not
// donated) input or another output. With a |stream| the call returns once
// queued: views' memory must stay valid until the stream is synchronised. NULL
// runs on the calling thread and the pool. |options| may be NULL.
//
// An executable of a device other than a CPU takes views of that device's
// memory, which it uses in place like a CPU's, and views of the host's, which
// are copied in and out. Views of other devices are INVALID_ARGUMENT: copy them
// with pestle_buffer_copy() first. An output on the device that has gaps
// between its elements is UNSUPPORTED. |stream|, if given, is of that device.
//
// Without a stream the call returns when all is done. On a stream it only queues:
// where the host has a part in it (views on the host or with gaps, outputs that
// are bounded, jumps, kernels that run on the CPU instead) a thread of the stream
// does all of it, in the stream's order.
// What fails after the arguments were accepted is then the stream's failure
// (pestle_stream_create()), and the call does not return it.
//
// With |options|->control, on_step or a trace the device is waited for between
// steps: control is looked at before each step is queued, every 16 steps the
// device is waited for. A plan into which the host need not look, and that is run
// again with the addresses of an earlier run, is recorded by the backend, if it
// offers that, and launched as one; 16 recordings are kept for each run that may
// be under way at once.
//
// Other errors: CANCELLED and DEADLINE_EXCEEDED as options->control says, INTERNAL when a
// kernel traps; outputs then hold anything. Any threads may run one executable
// at once. Allocates nothing in the steady state when all views are used in
// place.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_executable_run(
    pestle_executable_t* executable, pestle_stream_t* stream,
    const pestle_tensor_t* inputs, size_t input_count, pestle_tensor_t* outputs,
    size_t output_count, const pestle_run_options_t* options);

// A tensor, and the name of the input or output that it is for. Frozen.
typedef struct pestle_named_tensor_t {
  const char* name;
  pestle_tensor_t tensor;
} pestle_named_tensor_t;

// The place of the input called |name|; SIZE_MAX: there is none. Any thread.
PESTLE_API size_t pestle_executable_find_input(
    const pestle_executable_t* executable, const char* name);
// The place of the output called |name|; SIZE_MAX: there is none. Any thread.
PESTLE_API size_t pestle_executable_find_output(
    const pestle_executable_t* executable, const char* name);
// How many inputs are the tensors of a sequence called |name|: those that are called
// "name[0]", "name[1]" and so on. They lie behind each other, the first at |*out_first|
// (may be NULL). 0: the sequence has none, or there is no such one.
PESTLE_API size_t pestle_executable_find_input_list(
    const pestle_executable_t* executable, const char* name, size_t* out_first);
// The same for outputs.
PESTLE_API size_t pestle_executable_find_output_list(
    const pestle_executable_t* executable, const char* name, size_t* out_first);
// pestle_executable_run() with tensors by name, in any order: every input, and of
// outputs those that are wanted; with a |stream| all of them. What a run fills in
// of an output is filled in in |outputs|. NOT_FOUND: a name that the executable
// has not (those that it has are listed); INVALID_ARGUMENT: one given twice, or an
// input that is not given; else as pestle_executable_run(). Any threads.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_executable_run_named(
    pestle_executable_t* executable, pestle_stream_t* stream,
    const pestle_named_tensor_t* inputs, size_t input_count,
    pestle_named_tensor_t* outputs, size_t output_count,
    const pestle_run_options_t* options);

// An input of pestle_executable_run_buffers(): the element at index 0, ..., 0 lies
// |byte_offset| bytes into |buffer|; |strides| counts elements, of any sign, 0
// too; NULL means row-major contiguous. Type and extents are the executable's.
// Frozen.
typedef struct pestle_buffer_view_t {
  pestle_buffer_t* buffer;  // may be NULL for an input without elements
  uint64_t byte_offset;
  const int64_t* strides;
} pestle_buffer_view_t;

// Zero-initialise and set |struct_size|. All is borrowed during the call.
typedef struct pestle_run_buffers_options_t {
  size_t struct_size;
  int32_t threads;  // at most so many; 0: the pool's size
  // Indices of inputs that the run is given: see below.
  const uint32_t* donated;
  size_t donated_count;
  // The run comes after their latest recordings, failed or not; it waits for what
  // makes its inputs by itself.
  pestle_event_t* const* waits;
  size_t wait_count;
  // Recorded by a call that succeeds: signalled when the run is done, with the
  // status of this run alone. NULL: none.
  pestle_event_t* done;
  const struct pestle_control_t* control;  // or NULL
  // As in pestle_run_options_t.
  void (*on_step)(void* user, uint32_t step, int64_t begin_ns, int64_t end_ns);
  void* on_step_user;
  struct pestle_world_s* world;      // as in pestle_run_options_t
  struct pestle_strings_s* strings;  // likewise
} pestle_run_buffers_options_t;

// Runs once on buffers. |inputs| are views in the executable's order of buffers
// on its device or, for one that is no CPU, in the host's memory (a CPU device's
// buffers), from where they are copied. What is contiguous and aligned to its
// elements (on devices other than CPUs: to 16 bytes) is read where it lies, the
// rest costs one copy. |outputs| receives new buffers on the executable's device,
// each with a reference that is the caller's; nothing of them is the
// executable's. A bounded output is packed to its real extents, which
// pestle_buffer_extents() has.
//
// A donated input is given away: on success the caller's reference to its buffer
// is gone. The memory then becomes that of the output which the plan has begin as
// this input (pestle_compile_options_t.aliases, pestle_executable_alias()), or of one of equal size that is
// written after the input was read for the last time; the output may be that very
// buffer. It is so only if nobody else refers to the buffer, it is no wrapped
// memory (but with PESTLE_BUFFER_EXCLUSIVE) and not read-only, and the view is all
// of it: otherwise the output has memory of its own, and what others see of the
// donated buffer stays. Results are the same bits in any case.
//
// |stream| NULL runs on the calling thread and the pool, and returns when all is
// done. On a stream the call only queues: outputs are there at once as buffers, and
// their contents when the run is done (pestle_event_record_buffer(),
// pestle_buffer_wait()). Runs on buffers wait for each other by themselves, across
// streams and devices of a backend without the host: for what makes an input, and
// before donated memory is overwritten for who still reads it. Buffers stay as long
// as a run needs them, whoever releases them. A run that fails poisons its outputs
// and nothing else: who reads them fails with the same sentence, and so do their
// outputs; it is the stream's failure too.
//
// |options| may be NULL. Errors are those of pestle_executable_run(), the failure
// of a poisoned input, and INVALID_ARGUMENT for a buffer or event of another
// context, a buffer of another device, a view that leads out of its buffer, an index
// of no input, a buffer that is donated twice, an event that was never recorded.
// On an error all |outputs| are NULL and no reference is given away; what donated
// memory holds is undefined if steps had begun. Any threads may run one executable
// at once. Without a stream it allocates nothing but outputs in the steady state,
// and on CPUs takes those from what was freed.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_executable_run_buffers(
    pestle_executable_t* executable, pestle_stream_t* stream,
    const pestle_buffer_view_t* inputs, size_t input_count,
    pestle_buffer_t** outputs, size_t output_count,
    const pestle_run_buffers_options_t* options);

// Frees an output that a run of |executable| allocated and clears data, shape
// and strides. Does nothing for a NULL |tensor| or one without data; a tensor
// with memory of the caller's is not to be given.
PESTLE_API void pestle_tensor_release(pestle_executable_t* executable,
                                      pestle_tensor_t* tensor);

// Copies the elements of |tensor|, row-major, to the |size| bytes of the host at
// |data|, and returns when that is done: of an output on the executable's device
// for one. Waits for no stream. INVALID_ARGUMENT: another size than the
// tensor's, another device, or gaps between elements on a device that is no CPU.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_tensor_read(pestle_executable_t* executable,
                   const pestle_tensor_t* tensor, void* data, size_t size);

// --- Plan cache ---

// Called on a miss; makes the plan. |user| is the caller's.
typedef pestle_status_t (*pestle_plan_make_fn_t)(void* user,
                                                 pestle_plan_t** out_plan);

// The plan of |key| (all that the plan depends on, as bytes; compared in full
// on a hit): from memory, from disk, or from make(user), which runs once
// however many threads ask. |out_reason| (may be NULL) receives a static or
// context-owned sentence: why it missed, or "hit in memory" / "hit on disk".
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_plan_cache_get(pestle_context_t* context, const void* key,
                      size_t key_size, pestle_plan_make_fn_t make, void* user,
                      pestle_plan_t** out_plan, const char** out_reason);

// The same, but nothing is made: |*out_plan| is NULL where the plan is neither in
// memory nor on disk, also while another thread makes it.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_plan_cache_find(pestle_context_t* context, const void* key,
                       size_t key_size, pestle_plan_t** out_plan);

typedef struct pestle_cache_stats_t {
  size_t struct_size;
  uint64_t memory_hits, disk_hits, misses, evictions, healed;
  uint64_t memory_entries, disk_entries, disk_bytes;
  // Constants outside of plans; |disk_bytes| holds theirs too.
  uint64_t memory_constants, memory_constant_bytes, disk_constants;
} pestle_cache_stats_t;
// Fills |*out_stats|, whose struct_size must be set; looks into the folder. No
// folder is no error: then there are no entries on disk.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_cache_stats(pestle_context_t* context, pestle_cache_stats_t* out_stats);

// Calls visit for each entry on disk: file name, model, bytes, seconds since
// the epoch of its last use, and a status (NULL: sound; borrowed). Constants
// are entries named c-HASH whose model is "(constant)". With |verify| all bytes
// are read and checked, else the headers. Strings and status are borrowed
// during the call.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_cache_visit(
    pestle_context_t* context, bool verify,
    void (*visit)(void* user, const char* name, const char* model,
                  uint64_t bytes, int64_t used, pestle_status_t status),
    void* user);
// Calls visit with the key of each plan on disk that can be read (its checksum
// is not looked at): what pestle_plan_cache_get() was given, borrowed during
// the call. No folder is no error.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_cache_visit_keys(
    pestle_context_t* context,
    void (*visit)(void* user, const void* key, size_t key_size), void* user);
// Removes entries on disk: all, or the least recently used until at most
// |keep_bytes| remain; damaged ones and constants that no plan refers to in any
// case. A constant goes with the last plan that refers to it. |out_removed|
// (may be NULL) counts what was removed. Plans in memory stay.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_cache_prune(
    pestle_context_t* context, uint64_t keep_bytes, uint64_t* out_removed);

PESTLE_EXTERN_C_END

#endif  // PESTLE_RUNTIME_H_
