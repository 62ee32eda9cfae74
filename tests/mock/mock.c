// SPDX-License-Identifier: Apache-2.0
// The state that tests see, the compiler half and the entry points.
#include "mock/mock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock/mock_internal.h"

#define BUILD_ID "mock-1"

pthread_mutex_t mock_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t mock_changed = PTHREAD_COND_INITIALIZER;

static mock_t state = {.fail_slot = -1, .refused_op = -1, .minor = -1};

mock_t* mock_state(void) {
  return &state;
}

void mock_count_anew(void) {
  for (int i = 0; i < MOCK_SLOT_COUNT; ++i)
    atomic_store(&state.calls[i], 0);
  atomic_store(&state.kernels_run, 0);
}

void mock_reset(void) {
  mock_count_anew();
  atomic_store(&state.fail_slot, -1);
  atomic_store(&state.lost, false);
  atomic_store(&state.refused_op, -1);
  atomic_store(&state.launch_delay_us, 0);
  atomic_store(&state.faults, 0);
  state.missing = 0;
  state.minor = -1;
  state.dl_type = 0;
}

void mock_fail(mock_slot_t slot, int at, pestle_status_code_t code) {
  atomic_store(&state.fail_at, at);
  atomic_store(&state.fail_code, (int)code);
  atomic_store(&state.fail_slot, (int)slot);
}

int mock_live(void) {
  return atomic_load(&state.live_blocks) + atomic_load(&state.live_streams) +
         atomic_load(&state.live_events) + atomic_load(&state.live_fences) +
         atomic_load(&state.live_graphs) + atomic_load(&state.live_kernels) +
         atomic_load(&state.live_adopted);
}

void mock_fault(const char* format, ...) {
  char text[sizeof(state.fault)];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  if (!atomic_fetch_add(&state.faults, 1)) {
    memcpy(state.fault, text, sizeof(text));
  }
  fprintf(stderr, "mock: %s\n", text);
}

pestle_status_t mock_enter(void* self, mock_slot_t slot) {
  static const char* const names[] = {
#define MOCK_NAME_(NAME, slot) #slot,
      MOCK_SLOTS(MOCK_NAME_)
#undef MOCK_NAME_
  };
  const pestle_host_t* host = mock_host(self);
  atomic_fetch_add(&state.calls[slot], 1);
  if (atomic_load(&state.lost)) {
    return MOCK_ERROR(host, UNAVAILABLE, "mock: the device is lost");
  }
  if (atomic_load(&state.fail_slot) != (int)slot ||
      atomic_fetch_sub(&state.fail_at, 1) != 1) {
    return NULL;
  }
  atomic_store(&state.fail_slot, -1);
  char text[64];
  snprintf(text, sizeof(text), "mock: %s fails as it was told to", names[slot]);
  return host->status_make(host->self, atomic_load(&state.fail_code), __FILE__,
                           __LINE__, text);
}

// --- Compiler ---

static uint32_t dtypes_of(unsigned kinds) {
  uint32_t bits = 0;
  for (unsigned d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
    unsigned kind = pestle_dtype_info((pestle_dtype_t)d)->kind;
    bool number = kind & (PESTLE_KIND_BOOL | PESTLE_KIND_REAL);
    if (number && (kind & kinds)) bits |= pestle_dtype_bit((pestle_dtype_t)d);
  }
  return bits;
}

static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  (void)cpu;
  pestle_target_caps_t caps = {
      .struct_size = sizeof(caps),
      .cpu = "mock1",
      .device_type = ((const mock_backend_t*)self)->table.device_type,
      .vector_bytes = 64,
      .vector_registers = 32,
      .max_lanes = PESTLE_KIR_MAX_LANES,
      .cores = 1,
      .l1_bytes = 32 << 10,
      .l2_bytes = 1 << 20,
      .l3_bytes = 16 << 20,
      .scratch_bytes = 1 << 20,
      .max_group_lanes = 1,
      .flags = PESTLE_TARGET_INTERPRETED};
  snprintf(caps.name, sizeof(caps.name), "%s",
           ((const mock_backend_t*)self)->table.name);
  uint32_t all = dtypes_of(PESTLE_KIND_BOOL | PESTLE_KIND_REAL);
#define PESTLE_KIR(NAME, code, ...) caps.op_dtypes[code] = all;
#include "pestle/kir.def"
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, ...) \
  caps.op_dtypes[PESTLE_KIR_##NAME] = dtypes_of(KINDS);
#include "pestle/scalar.def"
  size_t size = out_caps->struct_size;
  if (size == 0 || size > sizeof(caps)) size = sizeof(caps);
  caps.struct_size = size;
  memcpy(out_caps, &caps, size);
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  (void)self;
  // What is refused changes what a plan is.
  const char* refused = getenv("MOCK_REFUSE");
  *out_text = refused ? refused : BUILD_ID;
  return NULL;
}

// The op that a test, or MOCK_REFUSE=mnemonic, keeps from this target.
static bool is_refused(const pestle_kir_t* kernel) {
  const char* refused = getenv("MOCK_REFUSE");
  for (uint32_t i = 0; i < kernel->inst_count; ++i) {
    unsigned op = pestle_kir_inst(kernel, i)->op;
    const char* name = pestle_kir_op_info(op).mnemonic;
    if ((int)op == atomic_load(&state.refused_op)) return true;
    if (refused && name && !strcmp(name, refused)) return true;
  }
  return false;
}

static pestle_status_t wrap(const pestle_host_t* host,
                            const pestle_kir_t* kernel, pestle_blob_t inner,
                            pestle_blob_t* out_artifact) {
  mock_artifact_t header = {.magic = MOCK_MAGIC,
                            .size = inner.size,
                            .group = kernel->group[0],
                            .shared_bytes = kernel->shared_bytes};
  size_t size = sizeof(header) + inner.size;
  char* data = host->alloc(host->self, size);
  if (!data) return MOCK_ERROR(host, OUT_OF_MEMORY, "out of host memory");
  memcpy(data, &header, sizeof(header));
  memcpy(data + sizeof(header), inner.data, inner.size);
  *out_artifact = (pestle_blob_t){data, size};
  return NULL;
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  const pestle_host_t* host = mock_host(self);
  pestle_blob_t inner;
  (void)options;
  *out_artifact = (pestle_blob_t){NULL, 0};
  if (is_refused(kernel)) {
    return MOCK_ERROR(host, UNSUPPORTED, "mock: a kernel that is refused");
  }
  PESTLE_TRY(pestle_ref_plugin_check(host, kernel));
  PESTLE_TRY(pestle_ref_plugin_pack(host, kernel, &inner));
  pestle_status_t status = wrap(host, kernel, inner, out_artifact);
  host->free(host->self, inner.data, inner.size);
  return status;
}

static pestle_status_t print(void* self, const pestle_kir_t* kernel,
                             const pestle_kernel_options_t* options,
                             pestle_text_t kind, pestle_blob_t* out_text) {
  (void)options, (void)kind;
  return pestle_ref_plugin_list(mock_host(self), kernel, out_text);
}

// --- Entry points ---

// The device's table of a backend that was built with an older header.
static size_t size_of_minor(int minor) {
  if (minor == 0) return offsetof(pestle_device_api_t, copy_device);
  if (minor >= 1 && minor <= 3) {
    return offsetof(pestle_device_api_t, stream_host_call);
  }
  if (minor == 4) return offsetof(pestle_device_api_t, adopt);
  return sizeof(pestle_device_api_t);
}

static void fill_api(pestle_device_api_t* api) {
  static const size_t places[] = {
#define MOCK_PLACE_(NAME, slot) offsetof(pestle_device_api_t, slot),
      MOCK_SLOTS(MOCK_PLACE_)
#undef MOCK_PLACE_
  };
  *api = (pestle_device_api_t){.struct_size = sizeof(*api)};
  mock_load_slots(api);
  mock_memory_slots(api);
  mock_stream_slots(api);
  mock_event_slots(api);
  api->struct_size = size_of_minor(state.minor);
  for (int i = 0; i < MOCK_SLOT_COUNT; ++i) {
    if (!(state.missing >> i & 1)) continue;
    memset((char*)api + places[i], 0, sizeof(void (*)(void)));
  }
}

static void deinit(void* self) {
  const pestle_host_t* host = mock_host(self);
  host->free(host->self, self, sizeof(mock_backend_t));
}

static const pestle_backend_t* init(const pestle_host_t* host, const char* name,
                                    int32_t type, int32_t score, int32_t first,
                                    pestle_status_t* out_status) {
  mock_backend_t* backend = host->alloc(host->self, sizeof(*backend));
  *out_status = NULL;
  if (!backend) {
    *out_status = MOCK_ERROR(host, OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  *backend = (mock_backend_t){
      .table = {.struct_size = sizeof(pestle_backend_t),
                .name = name,
                .device_type = type,
                .score = score,
                .device_count = 2,
                .self = backend,
                .target = &backend->target,
                .device = &backend->api,
                .deinit = deinit},
      .target = {.struct_size = sizeof(pestle_target_api_t),
                 .describe = describe,
                 .toolchain_id = toolchain_id,
                 .compile = compile,
                 .print = print},
      .host = host,
      .first = first,
  };
  fill_api(&backend->api);
  return &backend->table;
}

const pestle_backend_abi_info_t* mock_abi_info(void) {
  static const pestle_backend_abi_info_t info =
      PESTLE_BACKEND_ABI_INFO("mock", BUILD_ID);
  return &info;
}

const pestle_backend_t* mock_init(const pestle_host_t* host,
                                  pestle_status_t* out_status) {
  return init(host, "mock", PESTLE_DEVICE_EXT, 20, 0, out_status);
}

const pestle_backend_abi_info_t* mockb_abi_info(void) {
  static const pestle_backend_abi_info_t info =
      PESTLE_BACKEND_ABI_INFO("mockb", BUILD_ID);
  return &info;
}

const pestle_backend_t* mockb_init(const pestle_host_t* host,
                                   pestle_status_t* out_status) {
  return init(host, "mockb", PESTLE_DEVICE_VULKAN, 10, 2, out_status);
}
