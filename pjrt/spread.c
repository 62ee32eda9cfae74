// SPDX-License-Identifier: Apache-2.0
#include "pjrt/spread.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pestle/plan_format.h"
#include "pjrt/slots.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

// --- Bytes of protocol buffers ---

static void put_varint(pestle_strbuf_t* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    pestle_strbuf_append_char(out, (char)(value | 0x80));
  pestle_strbuf_append_char(out, (char)value);
}

static void put_number(pestle_strbuf_t* out, unsigned field, uint64_t value) {
  put_varint(out, field << 3);
  put_varint(out, value);
}

static void put_bytes(pestle_strbuf_t* out, unsigned field,
                      const pestle_strbuf_t* bytes) {
  put_varint(out, field << 3 | 2);
  put_varint(out, bytes->size);
  pestle_strbuf_append(out, pestle_strbuf_view(bytes));
}

// |*out_data| is a copy of |buffer| in |arena|; the buffer is gone.
static PJRT_Error* keep(pestle_arena_t* arena, pestle_strbuf_t* buffer,
                        const char** out_data, size_t* out_size) {
  *out_size = buffer->size;
  *out_data = buffer->failed
                  ? NULL
                  : pestle_arena_copy(arena, buffer->size ? buffer->data : "",
                                      buffer->size + !buffer->size, 1);
  pestle_strbuf_deinit(buffer);
  return *out_data ? NULL : pestle_pjrt_out_of_memory();
}

// --- Devices ---

static PJRT_Error* write_assignment(pestle_pjrt_program_t* p, int64_t replicas,
                                    int64_t partitions) {
  pestle_strbuf_t all;
  pestle_strbuf_init(pestle_allocator_system(), &all);
  put_number(&all, 1, (uint64_t)replicas);
  put_number(&all, 2, (uint64_t)partitions);
  for (int64_t c = 0; c < partitions; ++c) {
    pestle_strbuf_t ids, one;
    pestle_strbuf_init(pestle_allocator_system(), &ids);
    pestle_strbuf_init(pestle_allocator_system(), &one);
    for (int64_t r = 0; r < replicas; ++r)
      put_varint(&ids,
                 (uint64_t)p->rank_devices[r * partitions + c]->description.id);
    put_bytes(&one, 1, &ids);
    put_bytes(&all, 3, &one);
    all.failed |= ids.failed || one.failed;
    pestle_strbuf_deinit(&ids);
    pestle_strbuf_deinit(&one);
  }
  return keep(&p->arena, &all, &p->assignment, &p->assignment_size);
}

static PJRT_Error* list_devices(pestle_pjrt_program_t* p, const int64_t* ids) {
  int64_t partitions = p->options.partitions;
  for (size_t i = 0; i < p->rank_count; ++i) {
    PJRT_Device* device = pestle_pjrt_device(p->client, ids[i]);
    if (!device) {
      return INVALID("the program is for device %lld; the client has %zu",
                     (long long)ids[i], p->client->device_count);
    }
    for (size_t k = 0; k < i; ++k) {
      if (p->rank_devices[k] != device) continue;
      return INVALID("the program is for device %lld twice", (long long)ids[i]);
    }
    p->rank_devices[i] = device;
    if (!pestle_pjrt_is_local(device)) continue;
    p->devices[p->device_count] = device;
    p->logical_ids[p->device_count++] =
        (PJRT_LogicalDeviceIds){.replica = (int)((int64_t)i / partitions),
                                .partition = (int)((int64_t)i % partitions)};
  }
  if (p->device_count) return NULL;
  return p->rank_count == 1
             ? pestle_pjrt_check_local(p->rank_devices[0])
             : INVALID(
                   "none of the %zu devices of the program is of this "
                   "process: compile it where one is",
                   p->rank_count);
}

PJRT_Error* pestle_pjrt_spread_devices(pestle_pjrt_program_t* p) {
  const pestle_plan_header_t* header = pestle_plan_data(p->plan, NULL);
  pestle_pjrt_options_t* o = &p->options;
  if (o->replicas < 1) o->replicas = 1;
  if (o->partitions < 1) o->partitions = 1;
  int64_t processes = (int64_t)header->replicas * header->partitions;
  bool whole = processes == 1 && o->replicas <= 4096 && o->partitions <= 4096;
  if (!whole && (o->replicas != header->replicas ||
                 o->partitions != header->partitions)) {
    return INVALID(
        "the module is for %d replicas of %d partitions, and the compile "
        "options "
        "say %lld of %lld",
        (int)header->replicas, (int)header->partitions, (long long)o->replicas,
        (long long)o->partitions);
  }
  p->rank_count = (size_t)(o->replicas * o->partitions);
  p->rank_devices = PESTLE_ARENA_ARRAY(&p->arena, PJRT_Device*, p->rank_count);
  p->devices = PESTLE_ARENA_ARRAY(&p->arena, PJRT_Device*, p->rank_count);
  p->logical_ids =
      PESTLE_ARENA_ARRAY(&p->arena, PJRT_LogicalDeviceIds, p->rank_count);
  int64_t* ids = PESTLE_ARENA_ARRAY(&p->arena, int64_t, p->rank_count);
  if (!p->rank_devices || !p->devices || !p->logical_ids || !ids)
    return pestle_pjrt_out_of_memory();
  PJRT_TRY(pestle_pjrt_options_devices(o, p->client->device.description.id, ids,
                                       p->rank_count));
  PJRT_TRY(list_devices(p, ids));
  // The bytes were the caller's.
  o->assignment = NULL;
  o->assignment_size = 0;
  o->dump = (pestle_str_t){"", 0};
  return write_assignment(p, o->replicas, o->partitions);
}

// --- Shardings ---

// "{devices=[4,1]0,1,2,3}", "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}",
// "{devices=[2,2]0,1,2,3 last_tile_dims={unreduced}}"
static void write_sharding(const char* text, pestle_strbuf_t* out) {
  enum { OTHER = 3, UNREDUCED = 6 };
  const char* at = strchr(text, '[');
  if (!at && strstr(text, "unreduced")) put_number(out, 1, UNREDUCED);
  if (!at) return;  // replicated: nothing is said
  pestle_strbuf_t dims, devices;
  pestle_strbuf_init(pestle_allocator_system(), &dims);
  pestle_strbuf_init(pestle_allocator_system(), &devices);
  pestle_strbuf_t* list = &dims;
  for (++at; *at && *at != '}' && *at != ' ';) {
    uint64_t n = 0;
    for (; *at >= '0' && *at <= '9'; ++at)
      n = 10 * n + (uint64_t)(*at - '0');
    put_varint(list, n);
    if (*at == ']') list = &devices;
    if (*at == ']' || *at == ',')
      ++at;
    else if (*at != '}' && *at != ' ')
      break;
  }
  put_number(out, 1, OTHER);
  put_bytes(out, 3, &dims);
  put_bytes(out, 4, &devices);
  if (strstr(at, "last_tile_dim_replicate")) put_number(out, 6, 1);
  if (strstr(at, "unreduced")) {
    bool copies = strstr(at, "replicated") != NULL;
    put_varint(out, 8 << 3 | 2);  // last_tile_dims
    put_varint(out, copies ? 2 : 1);
    put_varint(out, UNREDUCED);
    if (copies) put_varint(out, 0);
  }
  out->failed |= dims.failed || devices.failed;
  pestle_strbuf_deinit(&dims);
  pestle_strbuf_deinit(&devices);
}

static PJRT_Error* list_shardings(pestle_pjrt_program_t* p,
                                  const char* const* texts,
                                  const uint32_t* places, size_t count,
                                  size_t all, const char* const** out_list,
                                  const size_t** out_sizes) {
  const char** list = PESTLE_ARENA_ARRAY(&p->arena, const char*, all);
  size_t* sizes = PESTLE_ARENA_ARRAY(&p->arena, size_t, all);
  if (!list || !sizes) return pestle_pjrt_out_of_memory();
  for (size_t i = 0; i < all; ++i) {
    list[i] = "";
    sizes[i] = 0;
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_strbuf_t bytes;
    pestle_strbuf_init(pestle_allocator_system(), &bytes);
    if (texts) write_sharding(texts[i], &bytes);
    PJRT_TRY(keep(&p->arena, &bytes, &list[places[i]], &sizes[places[i]]));
  }
  *out_list = list;
  *out_sizes = sizes;
  return NULL;
}

PJRT_Error* pestle_pjrt_spread_shardings(
    pestle_pjrt_program_t* p, const pestle_pjrt_program_info_t* info) {
  if (p->rank_count == 1) return NULL;
  PJRT_TRY(list_shardings(p, info->input_shardings, p->input_places,
                          p->input_count - p->input_tokens.count,
                          p->input_count, &p->input_shardings,
                          &p->input_sharding_sizes));
  return list_shardings(p, info->output_shardings, p->output_places,
                        p->output_count - p->output_tokens.count,
                        p->output_count, &p->output_shardings,
                        &p->output_sharding_sizes);
}

// The text of a string attribute without its quotes.
static const char* unquoted(pestle_arena_t* arena, const char* text) {
  size_t size = text ? strlen(text) : 0;
  if (size < 2) return "";
  return pestle_arena_strndup(arena, pestle_str_make(text + 1, size - 2));
}

PJRT_Error* pestle_pjrt_spread_read(pestle_module_t* module,
                                    const pestle_plan_t* plan,
                                    pestle_arena_t* arena,
                                    pestle_pjrt_program_info_t* info) {
  static const char key[] = "spmd.sharding";
  pestle_function_t* entry = pestle_module_entry(module);
  const pestle_plan_header_t* header = pestle_plan_data(plan, NULL);
  size_t outputs = (size_t)header->outputs.count;
  const char** in = PESTLE_ARENA_ARRAY(arena, const char*, info->input_count);
  const char** out = PESTLE_ARENA_ARRAY(arena, const char*, outputs);
  if (!in || !out) return pestle_pjrt_out_of_memory();
  for (size_t i = 0; i < info->input_count; ++i) {
    in[i] = unquoted(arena, pestle_function_argument_attribute(entry, i, key));
    if (!in[i]) return pestle_pjrt_out_of_memory();
  }
  for (size_t i = 0; i < outputs; ++i) {
    out[i] = unquoted(arena, pestle_function_result_attribute(entry, i, key));
    if (!out[i]) return pestle_pjrt_out_of_memory();
  }
  info->input_shardings = in;
  info->output_shardings = out;
  info->output_count = outputs;
  return NULL;
}

// --- The extension ---

static PJRT_Error* pestle_PJRT_Shardings_PJRT_Executable_ParameterShardings(
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* args) {
  PJRT_REQUIRE(PJRT_Shardings_PJRT_Executable_ParameterShardings, executable,
               sharding_sizes);
  const pestle_pjrt_program_t* p = args->executable->program;
  args->num_parameters = p->input_count;
  args->shardings = p->input_shardings;
  args->sharding_sizes = p->input_sharding_sizes;
  return NULL;
}

static PJRT_Error* pestle_PJRT_Shardings_PJRT_Executable_OutputShardings(
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args* args) {
  PJRT_REQUIRE(PJRT_Shardings_PJRT_Executable_OutputShardings, executable,
               sharding_sizes);
  const pestle_pjrt_program_t* p = args->executable->program;
  args->num_outputs = p->output_count;
  args->shardings = p->output_shardings;
  args->sharding_sizes = p->output_sharding_sizes;
  if (!p->output_count && p->rank_count > 1) {
    // The empty tuple has a sharding, without which jaxlib refuses the program.
    static const char* const replicated[] = {""};
    static const size_t sizes[] = {0};
    args->num_outputs = 1;
    args->shardings = replicated;
    args->sharding_sizes = sizes;
  }
  return NULL;
}

#define SHARDINGS_SLOT_(NAME) .NAME = pestle_##NAME,
const PJRT_Shardings_Extension pestle_pjrt_shardings = {
    .base = {.struct_size = sizeof(PJRT_Shardings_Extension),
             .type = PJRT_Extension_Type_Shardings,
             .next = NULL},
    PJRT_SHARDINGS_SLOTS(SHARDINGS_SLOT_)};
