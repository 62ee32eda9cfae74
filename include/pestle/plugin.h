// SPDX-License-Identifier: Apache-2.0
// The whole contract between Pestle and a backend plugin. A plugin is a shared
// library libpestle-{name}[-variant].so that sees include/pestle alone, links
// against nothing of the host and exports only
//
//   pestle_backend_abi_info   required; callable before anything else
//   pestle_backend_score      optional; cheap, no side effects
//   pestle_backend_init       required
//
// Everything that crosses is C: structs that begin with their size, handles,
// statuses. Statuses are made by the host (host->status_make); nothing that one
// side allocates is freed by the other, except blobs from host->alloc, which
// the host frees. New behaviour comes as a new slot at the end of a table; the
// reader checks struct_size before it looks at a slot (PESTLE_HAS). A changed
// meaning raises PESTLE_ABI_MAJOR, and the host refuses. All functions may be
// called from any thread at once unless they say otherwise. A plugin is never
// unloaded. It must not call back into the host except through pestle_host_t.
//
// Minor versions, each a group of slots or fields that was appended as a whole;
// what a group adds stands behind "-- minor N --" in its struct:
//
//   0  artifacts: describe, compile, print; load, cpu_entry; memory and copies
//   1  devices: lanes and groups in the description; streams, launches, events,
//      fences, recordings, numbers of memory, properties; abi_info says for which
//      host and device type a file is
//   2  library ops
//   3  rates in the description
//   4  the house: calls of the host in a stream's order, streams of others
//   5  arrays: memory of others, and what theirs call ours
//   6  own ops: kernels whose text a person wrote
//   7  collectives: between the ranks of a world
//   8  effort: whether code is wanted soon or fast; calls of functions that use the
//      device by its own interface; how far a transport's streams have come,
//      collectives in recordings, and beside other work
//
// Contents:
// - Versions
// - The host
// - Targets
// - Devices
// - Libraries
// - Collectives
// - A backend
// - Entry points
#ifndef PESTLE_PLUGIN_H_
#define PESTLE_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#include "pestle/collective.h"
#include "pestle/export.h"
#include "pestle/kir.h"
#include "pestle/status.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

// --- Versions ---

#define PESTLE_ABI_MAJOR 1u
#define PESTLE_ABI_MINOR 8u

// Whether the table |ptr| (with struct_size first) reaches slot |field|.
#define PESTLE_HAS(ptr, field)                                     \
  ((ptr)->struct_size >=                                           \
       (size_t)((const char*)&(ptr)->field - (const char*)(ptr)) + \
           sizeof((ptr)->field) &&                                 \
   (ptr)->field)

// Bits of pestle_backend_abi_info_t.sanitizers.
#define PESTLE_SANITIZER_ADDRESS 1u
#define PESTLE_SANITIZER_THREAD 2u

// What a plugin was built as. Static data of the plugin.
typedef struct pestle_backend_abi_info_t {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  uint32_t sanitizers;
  uint32_t kir_abi_major;
  uint32_t sizeof_inst, sizeof_buffer, sizeof_kir;  // as the plugin sees them
  const char* build_id;  // of the plugin: part of every plan key
  const char* name;      // "llvm": 1 to 32 of a-z, 0-9 and '_', a letter first
  // -- minor 1 --
  // pestle_build_id() of the Pestle that it was built with, or NULL. Of two
  // files with equal scores the host takes the one that has its own.
  const char* host_build_id;
  // pestle_device_type_t of its devices; 0: it says so when it starts. Who asks
  // for a cpu need not wait until a driver is found.
  int32_t device_type;
  uint32_t flags;  // pestle_backend_abi_flag_t; missing: none
} pestle_backend_abi_info_t;

// Bits of pestle_backend_abi_info_t.flags.
typedef enum pestle_backend_abi_flag_e {
  // Its target half works on any machine: where its score is 0 init() may be
  // called all the same, to describe, print and compile by. It then gives a
  // table without devices, whose score may be 0, and wakes no driver.
  PESTLE_BACKEND_TARGET_ALONE = 1,
} pestle_backend_abi_flag_t;

// --- The host ---

// The host's services. Outlives the plugin's use.
typedef struct pestle_host_t {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  void* self;
  // |message| is copied. |code| is a pestle_status_code_t.
  pestle_status_t (*status_make)(void* self, int32_t code, const char* file,
                                 int32_t line, const char* message);
  // Ends a status that status_make() made and that is not returned.
  void (*status_release)(void* self, pestle_status_t status);
  // Memory of the host's allocator, 64-byte aligned. NULL: out of memory.
  void* (*alloc)(void* self, size_t size);
  // Frees |size| bytes of alloc(). NULL is allowed.
  void (*free)(void* self, void* data, size_t size);
  // One message (copied) without a newline; |level| is a pestle_log_level_t.
  void (*log)(void* self, int32_t level, const char* message);
} pestle_host_t;

// Bytes of host->alloc(); who receives one frees it with host->free().
// Frozen.
typedef struct pestle_blob_t {
  void* data;
  size_t size;
} pestle_blob_t;

// --- Targets ---

// A multiplication of small matrices that a target has as one instruction: rows
// m x k times k x n plus m x n. Frozen.
typedef struct pestle_intrinsic_t {
  uint8_t kind;  // pestle_intrinsic_kind_t
  // pestle_dtype_t of the operands and the sum. F8E4M3FN and F8E5M2 together say that
  // each operand may be either; f32 of units with k = 8 counts with 10 bits of mantissas,
  // but of those of 8 x 8.
  uint8_t a, b, c;
  uint16_t m, n, k;
  uint16_t lanes;  // that work on it together
} pestle_intrinsic_t;

typedef enum pestle_intrinsic_kind_e {
  PESTLE_INTRINSIC_NONE = 0,
  PESTLE_INTRINSIC_MMA = 1,    // operands in registers of a subgroup
  PESTLE_INTRINSIC_WGMMA = 2,  // operands in shared memory, four subgroups
  PESTLE_INTRINSIC_MREG = 3,   // operands in matrix registers of a thread
} pestle_intrinsic_kind_t;

// What a target can do: data, so that nothing above plugins/ asks for a name.
typedef struct pestle_target_caps_t {
  size_t struct_size;
  char name[32];          // "llvm"
  char cpu[64];           // "znver4": what |target_cpu| named or the host's
  char features[1024];    // "+avx512f,+fma,...": needed by what is compiled
  int32_t device_type;    // pestle_device_type_t
  uint32_t vector_bytes;  // widest vector, a power of two; 0: scalar only
  uint32_t vector_registers;
  uint32_t max_lanes;  // longest value that is accepted, at least 1
  uint32_t cores;      // that a plan may use; 0: unknown
  uint64_t l1_bytes, l2_bytes, l3_bytes;
  uint32_t scratch_bytes;  // largest sum of shared buffers
  uint32_t subgroup;       // lanes of a subgroup, a power of two; 0: none
  uint32_t max_group_lanes;
  uint32_t flags;  // pestle_target_flag_t
  // op_dtypes[op]: bit d (pestle_dtype_bit) set when the target compiles the op
  // (code of kir.h) with operands of dtype d; for CAST of and to d. Kernels have
  // no dtype without a bit, whatever is set.
  uint32_t op_dtypes[PESTLE_KIR_OP_LIMIT];
  // -- minor 1 --
  // Devices with groups of lanes: the most lanes and groups along x, y, z. 0:
  // the target has no lanes, as CPUs, and runs a group on one thread.
  uint32_t max_lanes_axis[3];
  uint32_t max_groups_axis[3];
  uint32_t register_bytes_lane;   // registers that a lane may have
  uint32_t register_bytes_group;  // and all lanes of an execution unit
  uint64_t memory_bytes_second;   // of the device's memory; 0: unknown
  uint32_t storage_dtypes;        // bit d: buffers may hold dtype d
  uint32_t intrinsic_count;
  pestle_intrinsic_t intrinsic[16];  // matrix units
  // -- minor 3 --
  // What one core does in a cycle at best, in sixteenths (16: one), with vectors
  // of vector_bytes; 0: unknown. Only ratios between schedules follow from them.
  uint32_t fma_rate;        // multiply-adds that start
  uint32_t load_rate;       // vectors loaded from L1
  uint32_t broadcast_rate;  // elements loaded into all lanes of a vector
  uint32_t fma_cycles;      // until a multiply-add's result is ready; cycles
  // Bytes a cycle that one core reads from a cache, and from memory.
  uint32_t l2_rate, l3_rate, memory_rate;
  // -- minor 6 --
  // In which compile_source() takes texts: "cuda", "glsl", "metal", "opencl"; "":
  // in none.
  char source_language[16];
} pestle_target_caps_t;

#define PESTLE_WIDE_GROUP 8u  // execution units of a wide group

typedef enum pestle_target_flag_e {
  PESTLE_TARGET_FLUSHES_DENORMALS = 1,
  PESTLE_TARGET_FMA = 2,          // fused multiply-add is one instruction
  PESTLE_TARGET_INTERPRETED = 4,  // time per instruction, not per lane
  // Runs groups of lanes side by side; its kernels have LANE loops and barriers.
  PESTLE_TARGET_LANES = 8,
  PESTLE_TARGET_ASYNC_COPY = 16,  // COPY_ASYNC: to shared, past the registers
  PESTLE_TARGET_APPROX = 32,      // has what PESTLE_KIR_APPROX speaks of
  // A group without shared buffers may be wide: up to PESTLE_WIDE_GROUP times as many
  // lanes, those of one index along lane.z on an execution unit of their own.
  PESTLE_TARGET_WIDE_GROUPS = 64,
  // SG_REDUCE waits for the lanes of its subgroup alone, but of integers of 64 bits: else
  // for all of the group.
  PESTLE_TARGET_SUBGROUPS = 128,
  // A wide group that is alone in its launch may be of as many units as the target has cores.
  PESTLE_TARGET_WIDE_LAUNCHES = 256,
} pestle_target_flag_t;

// Texts that a target may print for a kernel.
typedef enum pestle_text_e {
  PESTLE_TEXT_SOURCE = 0,  // what it hands to its toolchain (LLVM IR, CUDA C)
  PESTLE_TEXT_ASM = 1,     // assembly of the artifact
} pestle_text_t;

// How much time a kernel's code is worth. A hint: results are the same within what a
// kernel promises, and a target may make no difference.
typedef enum pestle_effort_e {
  PESTLE_EFFORT_FULL = 0,   // the fastest code
  PESTLE_EFFORT_QUICK = 1,  // code as soon as possible; better code follows
} pestle_effort_t;

typedef struct pestle_kernel_options_t {
  size_t struct_size;
  const char* cpu;  // NULL: the device's own
  bool strict;      // no contraction beyond what facts say
  // -- minor 8 --
  // pestle_effort_t; missing: full. As wide as it is, it lies behind the padding of
  // the record as it was before.
  uint64_t effort;
} pestle_kernel_options_t;

// A kernel as a person wrote it. All is borrowed during the call.
typedef struct pestle_source_text_t {
  size_t struct_size;
  // Before the kernel; its inside, which names the buffers as the signature does.
  // Of a |whole| text |body| is all of it, and |entry| names the kernel.
  const char *head, *body, *entry;
  const char* flags;  // more options of the toolchain, with blanks between; ""
  bool whole;
} pestle_source_text_t;

// The compiler half. Needs no device.
typedef struct pestle_target_api_t {
  size_t struct_size;
  // Fills |out_caps| for |cpu| (NULL: this machine's). Must not open a
  // toolchain. UNSUPPORTED names an unknown CPU.
  pestle_status_t (*describe)(void* self, const char* cpu,
                              pestle_target_caps_t* out_caps);
  // A text that changes whenever the same kernel could compile to other code:
  // toolchain build, pass string. Static or owned by |self|. Part of every plan
  // key; must not open the toolchain.
  pestle_status_t (*toolchain_id)(void* self, const char** out_text);
  // Compiles one legal kernel to an artifact that load() accepts. UNSUPPORTED
  // refuses it: it is built for the fallback of the device type then, unless
  // the context is strict. Every other failure ends the compilation.
  pestle_status_t (*compile)(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_blob_t* out_artifact);
  // Prints |kernel| as |kind|; may compile it. The blob is text without 0.
  pestle_status_t (*print)(void* self, const pestle_kir_t* kernel,
                           const pestle_kernel_options_t* options,
                           pestle_text_t kind, pestle_blob_t* out_text);
  // -- minor 6 --
  // Compiles |source|, of the target's source_language, to an artifact that load()
  // accepts. |signature| has no instructions: its buffers (with their names, in
  // arg_slot order), groups and lanes are the kernel's, and what is declared of them
  // around the body is what compile() declares. A |whole| text takes the arguments
  // that the backend's documentation says. INVALID_ARGUMENT: the text does not
  // compile, with what the toolchain says.
  pestle_status_t (*compile_source)(void* self, const pestle_kir_t* signature,
                                    const pestle_source_text_t* source,
                                    const pestle_kernel_options_t* options,
                                    pestle_blob_t* out_artifact);
} pestle_target_api_t;

// --- Devices ---

// A CPU kernel's code: runs indices [begin, end) of its group loop. |buffers|
// in arg_slot order, |params| its scalars, |scratch| shared_bytes, 64-byte
// aligned and of this thread alone. 0, or the id of a trap.
typedef int32_t (*pestle_cpu_entry_t)(const void* self, void* const* buffers,
                                      const int64_t* params, int64_t begin,
                                      int64_t end, void* scratch);

typedef struct pestle_loaded_s pestle_loaded_t;

// A queue of a device's work, an event, a fence, a recording: the backend's own.
typedef struct pestle_device_stream_s pestle_device_stream_t;
typedef struct pestle_device_event_s pestle_device_event_t;
typedef struct pestle_device_fence_s pestle_device_fence_t;
typedef struct pestle_device_graph_s pestle_device_graph_t;

// One launch. All is borrowed during the call.
typedef struct pestle_launch_t {
  size_t struct_size;
  const pestle_loaded_t* loaded;
  void* const* buffers;  // addresses in arg_slot order
  uint32_t buffer_count;
  uint32_t param_count;
  const int64_t* params;
} pestle_launch_t;

// What memory_get() and memory_set() are about; bytes of one device.
typedef enum pestle_memory_e {
  PESTLE_MEMORY_ACTIVE = 0,       // get: held by buffers
  PESTLE_MEMORY_PEAK = 1,         // get: most that was; set to 0: begin anew
  PESTLE_MEMORY_CACHE = 2,        // get: kept for reuse; set to 0: give it back
  PESTLE_MEMORY_CACHE_LIMIT = 3,  // get, set: most that is kept
  PESTLE_MEMORY_LIMIT = 4,        // get, set: allocations past it fail
  PESTLE_MEMORY_WIRED_LIMIT = 5,  // get, set: most that the system may pin
  PESTLE_MEMORY_TOTAL = 6,        // get: what the device has
} pestle_memory_t;

// A property of a device. One whose integer "software" is not 0 computes on the CPU.
typedef struct pestle_device_property_t {
  size_t struct_size;
  char name[64];
  bool is_text;
  int64_t integer;
  char text[256];
} pestle_device_property_t;

// The device half. Memory, code, launches. Every slot may be missing; what then
// does not work is said where it is asked for. A device address is a void* that
// the host never follows, but adds offsets to within one allocation. UNAVAILABLE
// means that the device is lost for good: the host keeps the first such sentence
// and says nothing else of the device from then on.
typedef struct pestle_device_api_t {
  size_t struct_size;
  // Loads an artifact of this backend for |device|. MALFORMED for damaged,
  // INCOMPATIBLE for foreign ones; must not open a toolchain. The bytes are
  // borrowed during the call only.
  pestle_status_t (*load)(void* self, int32_t device, const void* artifact,
                          size_t size, pestle_loaded_t** out_loaded);
  // Frees what load() made; no launch of it runs any more.
  void (*unload)(void* self, pestle_loaded_t* loaded);
  // cpu devices: the code and its first argument.
  pestle_status_t (*cpu_entry)(void* self, pestle_loaded_t* loaded,
                               pestle_cpu_entry_t* out_entry,
                               const void** out_entry_self);
  // Device memory, at least 64-byte aligned; NULL slots on cpu devices, where
  // the host's allocator serves. It is the backend's own allocator, which may
  // cache: never one of the host's.
  pestle_status_t (*allocate)(void* self, int32_t device, size_t size,
                              void** out_data);
  // Frees |size| bytes of allocate(). Work that was queued before may still use
  // them: the backend sees to that.
  void (*deallocate)(void* self, int32_t device, void* data, size_t size);
  // Copies |size| bytes between the host's and the device's memory and returns
  // when it is done. Waits for no stream: that is the caller's matter.
  pestle_status_t (*copy_from_host)(void* self, int32_t device,
                                    const void* from, void* to, size_t size);
  pestle_status_t (*copy_to_host)(void* self, int32_t device, const void* from,
                                  void* to, size_t size);
  // -- minor 1 --
  // Between two devices of this backend, or within one; returns when done.
  pestle_status_t (*copy_device)(void* self, int32_t from_device,
                                 const void* from, int32_t to_device, void* to,
                                 size_t size);
  // Where the host may read and write the memory at |data|, or NULL where it
  // cannot.
  void* (*buffer_raw_ptr)(void* self, int32_t device, void* data);

  // Streams: work of one is done in order, that of two in any.
  pestle_status_t (*stream_create)(void* self, int32_t device,
                                   pestle_device_stream_t** out_stream);
  // Waits until all that was queued is done, and says what of it failed.
  pestle_status_t (*stream_synchronize)(void* self,
                                        pestle_device_stream_t* stream);
  // Waits, then frees the stream.
  void (*stream_destroy)(void* self, pestle_device_stream_t* stream);
  // Queues a launch of all groups. |stream| NULL: runs it and waits. A kernel
  // without lanes has one thread for each index of its group loops.
  pestle_status_t (*launch)(void* self, int32_t device,
                            pestle_device_stream_t* stream,
                            const pestle_launch_t* launch);
  // Queues copies; the host's bytes must stay until the stream is past them.
  pestle_status_t (*queue_from_host)(void* self, pestle_device_stream_t* stream,
                                     const void* from, void* to, size_t size);
  pestle_status_t (*queue_to_host)(void* self, pestle_device_stream_t* stream,
                                   const void* from, void* to, size_t size);
  pestle_status_t (*queue_copy)(void* self, pestle_device_stream_t* stream,
                                const void* from, void* to, size_t size);

  // Events hold a number that only grows; 0 at first. On cpu devices too.
  pestle_status_t (*event_create)(void* self, int32_t device,
                                  pestle_device_event_t** out_event);
  // What is queued may still use it: the backend sees to that; so for fences.
  void (*event_destroy)(void* self, pestle_device_event_t* event);
  // Waits until the number is at least |value|: the caller, or |stream|.
  pestle_status_t (*event_wait)(void* self, pestle_device_event_t* event,
                                uint64_t value);
  pestle_status_t (*event_wait_stream)(void* self, pestle_device_event_t* event,
                                       pestle_device_stream_t* stream,
                                       uint64_t value);
  // Sets the number when |stream| has come so far; NULL: now.
  pestle_status_t (*event_signal)(void* self, pestle_device_event_t* event,
                                  pestle_device_stream_t* stream,
                                  uint64_t value);
  bool (*event_is_signalled)(void* self, pestle_device_event_t* event,
                             uint64_t value);

  // Fences order the use of one buffer between streams. update(): what |stream|
  // has queued so far writes |data|; |cross_device|: another device or the host
  // will read it, so caches are to be flushed. wait(): what |stream| queues from
  // now on comes after the last update.
  pestle_status_t (*fence_create)(void* self, int32_t device,
                                  pestle_device_fence_t** out_fence);
  void (*fence_destroy)(void* self, pestle_device_fence_t* fence);
  pestle_status_t (*fence_update)(void* self, pestle_device_fence_t* fence,
                                  pestle_device_stream_t* stream, void* data,
                                  bool cross_device);
  pestle_status_t (*fence_wait)(void* self, pestle_device_fence_t* fence,
                                pestle_device_stream_t* stream, void* data);

  // Memory of one device. UNSUPPORTED: a number that the backend has not.
  pestle_status_t (*memory_get)(void* self, int32_t device,
                                pestle_memory_t what, uint64_t* out_bytes);
  // |out_before| (may be NULL) receives what it was.
  pestle_status_t (*memory_set)(void* self, int32_t device,
                                pestle_memory_t what, uint64_t bytes,
                                uint64_t* out_before);

  // Property |index| of |device|; NOT_FOUND past the last.
  pestle_status_t (*property)(void* self, int32_t device, uint32_t index,
                              pestle_device_property_t* out_property);

  // Recordings: what is queued between begin and end does not run, but becomes
  // a graph, which is queued as one. Addresses are those of the recording.
  pestle_status_t (*graph_begin)(void* self, pestle_device_stream_t* stream);
  pestle_status_t (*graph_end)(void* self, pestle_device_stream_t* stream,
                               pestle_device_graph_t** out_graph);
  pestle_status_t (*graph_launch)(void* self, pestle_device_graph_t* graph,
                                  pestle_device_stream_t* stream);
  // No launch of it runs any more.
  void (*graph_destroy)(void* self, pestle_device_graph_t* graph);

  // -- minor 4 --
  // Calls fn(user, failure) exactly once when all that was queued on |stream|
  // before is done. Any thread may make the call, the driver's, the backend's or
  // one that calls this table, this very function included; no lock of the
  // backend is held. |failure| is NULL, or a status of host->status_make() that
  // |fn| takes over: what stream_synchronize() would return then, which returns
  // it all the same. fn is called too when work on the stream failed and when
  // the device is lost, then with UNAVAILABLE. It is short, does not block and
  // calls nothing of the backend. What is queued later need not wait for it.
  // Calls on one stream may come in any order once they are due;
  // stream_destroy() returns after the last. UNSUPPORTED while |stream| records.
  // When this function fails fn is never called.
  pestle_status_t (*stream_host_call)(
      void* self, pestle_device_stream_t* stream,
      void (*fn)(void* user, pestle_status_t failure), void* user);
  // What the device's own interface calls |stream| (CUstream,
  // cl_command_queue). Borrowed: it lives as long as |stream|.
  pestle_status_t (*stream_native)(void* self, pestle_device_stream_t* stream,
                                   void** out_native);
  // What |stream| queues from now on comes after what the native stream has been
  // given so far, and the other way about. The host does not wait, and nothing
  // of |native| is kept. Of |device|, in the context that the backend uses:
  // INVALID_ARGUMENT for any other, as far as the driver can tell. UNSUPPORTED
  // while |stream| records.
  pestle_status_t (*wait_native)(void* self, int32_t device,
                                 pestle_device_stream_t* stream, void* native);
  pestle_status_t (*native_wait)(void* self, int32_t device, void* native,
                                 pestle_device_stream_t* stream);

  // -- minor 5 --
  // Where memory has handles of the device's own interface instead of addresses
  // (cl_mem, id<MTLBuffer>): makes |size| bytes from |offset| on of |handle| memory
  // of |device|, whose first byte |*out_data| is from now on. |*out_hold| keeps the
  // handle alive until release_adopted(), which comes when no work uses it any
  // more. INVALID_ARGUMENT: a handle of another context or device, or that has fewer
  // bytes; UNSUPPORTED: one that kernels cannot use.
  pestle_status_t (*adopt)(void* self, int32_t device, void* handle,
                           uint64_t offset, uint64_t size, void** out_data,
                           void** out_hold);
  void (*release_adopted)(void* self, void* hold);
  // The handle of the memory that |data| lies in, borrowed, and where in it.
  pestle_status_t (*handle_of)(void* self, int32_t device, const void* data,
                               void** out_handle, uint64_t* out_offset);
  // Where memory has addresses: the device (of this backend) that |pointer| is
  // memory of, in the context that the backend uses, and how many bytes there are
  // from there on. INVALID_ARGUMENT: of none.
  pestle_status_t (*where)(void* self, const void* pointer, int32_t* out_device,
                           uint64_t* out_size);
  // What DLPack calls |device|, where that is not what the host would: its device
  // type and its number among those of that type.
  void (*dlpack_device)(void* self, int32_t device, int32_t* out_type,
                        int32_t* out_id);

  // -- minor 8 --
  // Calls fn(user) once, on this thread and before it returns, as the device's own
  // interface wants a thread to be which uses |device|: CUDA's context is current.
  // The thread is afterwards as it was before. |fn| may call this table. When this
  // function fails |fn| was not called. Missing: threads need nothing.
  pestle_status_t (*native_call)(void* self, int32_t device,
                                 void (*fn)(void* user), void* user);
} pestle_device_api_t;

// --- Libraries ---

// -- minor 2: library ops --

// A tensor of a library op: the element at index i lies at |data| plus the sum
// of i[axis] * strides[axis]. Frozen.
typedef struct pestle_library_view_t {
  void* data;              // NULL when takes() is asked
  int32_t dtype;           // pestle_dtype_t
  int32_t rank;            // at most PESTLE_MAX_RANK
  const int64_t* dims;     // in elements
  const int64_t* strides;  // in bytes
} pestle_library_view_t;

// Attributes of the op that are true, by their names in ops.def.
typedef enum pestle_library_flag_e {
  PESTLE_LIBRARY_FULL = 1,
  PESTLE_LIBRARY_LOWER = 2,
  PESTLE_LIBRARY_LEFT_SIDE = 4,
  PESTLE_LIBRARY_UNIT_DIAGONAL = 8,
  PESTLE_LIBRARY_TRANSPOSE = 16,  // transpose_a is not NO_TRANSPOSE
} pestle_library_flag_t;

// One op on its operands and results. All is borrowed during the call.
typedef struct pestle_library_op_t {
  size_t struct_size;
  // As in ops.def: "qr", whose row says what it means. "z.eigh": the function
  // "pestle.z.eigh" that contexts have, whose complex numbers are pairs along a last
  // axis; bit i of |flags| is then the i-th letter of its configuration.
  const char* name;
  uint32_t flags;  // pestle_library_flag_t
  uint32_t operand_count, result_count;
  const pestle_library_view_t* operands;
  const pestle_library_view_t* results;
} pestle_library_op_t;

// Whole ops that a backend has ready-made, for devices of its type: those of its
// own, and on cpu, whose devices share the host's memory, those of all backends.
// An op that one takes is a step of the plan instead of kernels.
typedef struct pestle_library_api_t {
  size_t struct_size;
  // Whether run() does |op| on tensors of these types, extents and strides. Has
  // no side effects and opens nothing; the answer may not change in a process.
  bool (*takes)(void* self, const pestle_library_op_t* op);
  // Does it; results and operands do not overlap. |device| is the backend's own
  // number, 0 on cpu. On other devices the work is queued on |stream|, or done
  // when the function returns where that is NULL.
  pestle_status_t (*run)(void* self, int32_t device,
                         pestle_device_stream_t* stream,
                         const pestle_library_op_t* op);
} pestle_library_api_t;

// --- Collectives ---

// -- minor 7: collectives --

// What create() is told. Borrowed during the call.
typedef struct pestle_comm_options_t {
  size_t struct_size;
  const uint8_t* id;  // what id() gave rank 0, the same for all ranks
  size_t id_size;     // in bytes
  int32_t rank, size;
  int64_t deadline_ms;  // that a rank waits for another one; at least 1
  int32_t max_units;    // units of the device that it may occupy; 0: its choice
} pestle_comm_options_t;

// One rank's end of a communicator, whose layout is the backend's.
typedef struct pestle_comm_s pestle_comm_t;

// What pestle_collective_api_t.record() is told.
typedef enum pestle_comm_record_e {
  // |stream| has begun to record: what enqueue() is given on it until graph_end() becomes a
  // part of the recording. |sequence| is the number before its first collective.
  PESTLE_COMM_RECORDS = 0,
  // graph_launch() of such a recording on |stream| comes next: the numbers of its
  // collectives now follow |sequence| as they followed the number that RECORDS had.
  PESTLE_COMM_LAUNCHES = 1,
  // The launch is queued; |sequence| is the number of its last collective.
  PESTLE_COMM_LAUNCHED = 2,
} pestle_comm_record_t;

// A transport: how the ranks of a world meet. A function that waits for other ranks
// ends with DEADLINE_EXCEEDED, which names a rank that did not come, or with
// UNAVAILABLE once the communicator is aborted. Calls with one communicator come from
// one thread at a time; poll() and abort() may be called beside them.
typedef struct pestle_collective_api_t {
  size_t struct_size;
  // Names a communicator that is to be: fills |out_id|, |*size| bytes, 128 at most,
  // and sets |*size| to the bytes that it has used. RESOURCE_EXHAUSTED: too few.
  pestle_status_t (*id)(void* self, uint8_t* out_id, size_t* size);
  // Joins a communicator on the backend's device |device|, 0 on cpu. All ranks call
  // it, each on a thread of its own, and it may wait until all have done so.
  pestle_status_t (*create)(void* self, int32_t device,
                            const pestle_comm_options_t* options,
                            pestle_comm_t** out_comm);
  // All ranks call it: those of one |color| are a new communicator, in the order of
  // their |key|, then of their ranks; of a color below 0 NULL. May be missing.
  pestle_status_t (*split)(void* self, pestle_comm_t* comm, int32_t color,
                           int32_t key, pestle_comm_t** out_comm);
  // Queues |count| >= 1 collectives of one sequence number, kind and group on
  // |stream|, to be done together; where that is NULL they are done when it returns,
  // and nobody reads what they send any more. |ops| is borrowed during the call.
  // INCOMPATIBLE: the ranks have come to different collectives.
  pestle_status_t (*enqueue)(void* self, pestle_comm_t* comm,
                             pestle_device_stream_t* stream,
                             const pestle_collective_t* ops, size_t count);
  // Tells of memory that collectives will send or receive, so that they may take a
  // shorter way. Both or neither; may be missing.
  pestle_status_t (*register_memory)(void* self, pestle_comm_t* comm,
                                     void* data, size_t size,
                                     void** out_handle);
  void (*deregister_memory)(void* self, pestle_comm_t* comm, void* handle);
  // OK, or what has broken the communicator. Never blocks.
  pestle_status_t (*poll)(void* self, pestle_comm_t* comm);
  // Ends what is queued and what waits, on all ranks, with an error; |reason| (a C
  // string) is in it. Any thread may call it, more than once.
  void (*abort)(void* self, pestle_comm_t* comm, const char* reason);
  // Leaves the communicator, on which nothing is queued or waits.
  void (*destroy)(void* self, pestle_comm_t* comm);
  // -- minor 8 --
  // Numbers of the latest collective that a stream has come to, and of the latest that
  // is done, of those queued on streams; 0: none. Never blocks; any thread may call it.
  // Needed of a transport with streams: what does not end is found by it alone.
  void (*progress)(void* self, pestle_comm_t* comm, uint64_t* out_begun,
                   uint64_t* out_done);
  // Lets recordings of the backend's streams hold collectives, and progress() know their
  // launches; |what| is a pestle_comm_record_t. Missing: a stream that records takes none.
  // Recordings with collectives of |comm| are destroyed before destroy(comm) is called,
  // and soon after abort(comm).
  pestle_status_t (*record)(void* self, pestle_comm_t* comm,
                            pestle_device_stream_t* stream, int32_t what,
                            uint64_t sequence);
  // As enqueue(), but beside what is queued on |stream| from then on: the collectives
  // come behind what |stream| has been given, and behind those that were queued so before.
  // Both or neither; may be missing.
  pestle_status_t (*enqueue_beside)(void* self, pestle_comm_t* comm,
                                    pestle_device_stream_t* stream,
                                    const pestle_collective_t* ops,
                                    size_t count);
  // What is queued on |stream| from now on comes behind the collectives up to number
  // |sequence| that were queued beside it on |comm|, or on one that it was split into or
  // from. A recording waits for all of its own.
  pestle_status_t (*wait_beside)(void* self, pestle_comm_t* comm,
                                 pestle_device_stream_t* stream,
                                 uint64_t sequence);
} pestle_collective_api_t;

// --- A backend ---

// Bits of pestle_backend_t.flags.
typedef enum pestle_backend_flag_e {
  // Takes every kernel that is legal for what it describes, and lacks no op:
  // what another backend of its device type refuses is built for it instead.
  PESTLE_BACKEND_FALLBACK = 1,
} pestle_backend_flag_t;

// A backend: either half may be NULL, and from minor 2 on both when it has a
// library, from minor 7 on when it has a transport; then it has no devices.
typedef struct pestle_backend_t {
  size_t struct_size;
  const char* name;     // "llvm", "ref"
  int32_t device_type;  // pestle_device_type_t
  int32_t score;        // best on this machine wins; 0: unusable
  int32_t device_count;
  void* self;
  const pestle_target_api_t* target;
  const pestle_device_api_t* device;
  // Frees what init() made for this host; nothing of the backend is used
  // afterwards, its code stays mapped. May be NULL or missing.
  void (*deinit)(void* self);
  uint32_t flags;  // pestle_backend_flag_t; missing: none
  // -- minor 2 --
  const pestle_library_api_t* library;  // or NULL
  // -- minor 7 --
  const pestle_collective_api_t* collective;  // or NULL
} pestle_backend_t;

// Types of the entry points.
typedef const pestle_backend_abi_info_t* (*pestle_backend_abi_info_fn_t)(void);
// 0: not on this hardware, with the reason in |why| (a C string).
typedef int32_t (*pestle_backend_score_fn_t)(char* why, size_t capacity);
// NULL with a failing |*out_status| when it cannot start.
typedef const pestle_backend_t* (*pestle_backend_init_fn_t)(
    const pestle_host_t* host, pestle_status_t* out_status);

// --- Entry points ---

#if defined(__SANITIZE_ADDRESS__)
#define PESTLE_SANITIZERS_ PESTLE_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define PESTLE_SANITIZERS_ PESTLE_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PESTLE_SANITIZERS_ PESTLE_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define PESTLE_SANITIZERS_ PESTLE_SANITIZER_THREAD
#else
#define PESTLE_SANITIZERS_ 0u
#endif
#else
#define PESTLE_SANITIZERS_ 0u
#endif

// Define it before this header is included where the build id of the host is
// known: in Pestle's own tree.
#ifndef PESTLE_BACKEND_HOST_ID
#define PESTLE_BACKEND_HOST_ID NULL
#endif
// Define it, before PESTLE_BACKEND_IMPL at the latest, as the backend's device
// type.
#ifndef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE 0
#endif
// Likewise: pestle_backend_abi_flag_t.
#ifndef PESTLE_BACKEND_ABI_FLAGS
#define PESTLE_BACKEND_ABI_FLAGS 0
#endif

// What this translation unit was built as, for abi_info.
#define PESTLE_BACKEND_ABI_INFO(backend_name, id) \
  {sizeof(pestle_backend_abi_info_t),             \
   PESTLE_ABI_MAJOR,                              \
   PESTLE_ABI_MINOR,                              \
   PESTLE_SANITIZERS_,                            \
   PESTLE_KIR_ABI_MAJOR,                          \
   sizeof(pestle_kir_inst_t),                     \
   sizeof(pestle_kir_buffer_t),                   \
   sizeof(pestle_kir_t),                          \
   id,                                            \
   backend_name,                                  \
   PESTLE_BACKEND_HOST_ID,                        \
   PESTLE_BACKEND_DEVICE_TYPE,                    \
   PESTLE_BACKEND_ABI_FLAGS}

// The names of the entry points. A backend that is linked into the host, beside
// others, is compiled with PESTLE_BACKEND_PREFIX=cuda, say: its functions are
// pestle_cuda_backend_abi_info and so on, and pestle_context_add_backend() takes
// them. pestle_add_plugin() of the CMake package makes both kinds.
#ifdef PESTLE_BACKEND_PREFIX
#define PESTLE_BACKEND_PASTE_(prefix, what) pestle_##prefix##_backend_##what
#define PESTLE_BACKEND_NAME_(prefix, what) PESTLE_BACKEND_PASTE_(prefix, what)
#define PESTLE_BACKEND_ENTRY(what) \
  PESTLE_BACKEND_NAME_(PESTLE_BACKEND_PREFIX, what)
#define PESTLE_BACKEND_VISIBLE_
#else
#define PESTLE_BACKEND_ENTRY(what) pestle_backend_##what
#define PESTLE_BACKEND_VISIBLE_ PESTLE_EXPORT
#endif

// Writes the two required entry points.
#define PESTLE_BACKEND_IMPL(backend_name, id, init_fn)                        \
  PESTLE_BACKEND_VISIBLE_ const pestle_backend_abi_info_t*                    \
      PESTLE_BACKEND_ENTRY(abi_info)(void);                                   \
  const pestle_backend_abi_info_t* PESTLE_BACKEND_ENTRY(abi_info)(void) {     \
    static const pestle_backend_abi_info_t info =                             \
        PESTLE_BACKEND_ABI_INFO(backend_name, id);                            \
    return &info;                                                             \
  }                                                                           \
  PESTLE_BACKEND_VISIBLE_ const pestle_backend_t* PESTLE_BACKEND_ENTRY(init)( \
      const pestle_host_t* host, pestle_status_t* out_status);                \
  const pestle_backend_t* PESTLE_BACKEND_ENTRY(init)(                         \
      const pestle_host_t* host, pestle_status_t* out_status) {               \
    return init_fn(host, out_status);                                         \
  }
// And the optional one.
#define PESTLE_BACKEND_SCORE_IMPL(score_fn)                         \
  PESTLE_BACKEND_VISIBLE_ int32_t PESTLE_BACKEND_ENTRY(score)(      \
      char* why, size_t capacity);                                  \
  int32_t PESTLE_BACKEND_ENTRY(score)(char* why, size_t capacity) { \
    return score_fn(why, capacity);                                 \
  }

PESTLE_EXTERN_C_END

#endif  // PESTLE_PLUGIN_H_
