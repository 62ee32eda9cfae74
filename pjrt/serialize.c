// SPDX-License-Identifier: Apache-2.0
// Executables as bytes: a header, a byte for each input, the program's name and the
// plan with all its constants. A plan is machine code: whoever loads bytes trusts
// their maker. Damage is found.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "pjrt/program.h"
#include "pjrt/slots.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

#define MAGIC "PSTLPJR1"

typedef struct header_t {
  char magic[8];
  uint64_t size;  // of everything
  uint64_t hash;  // of all that follows this field
  uint64_t signature[2];
  uint32_t input_tokens, output_tokens;  // positions, a uint32_t each
  uint32_t input_count;  // of the plan: so many bytes say which are donors
  uint32_t name_size;    // with its terminator
  int32_t numerics, threads;
  uint64_t plan_offset, plan_size;
} header_t;
_Static_assert(sizeof(header_t) == 80, "no gaps: its bytes are hashed");

enum { HASHED_FROM = 24, ALIGNMENT = 64, MOST_TOKENS = 1 << 20 };

// --- Writing ---

// The plan's bytes with all constants, which only a file has them in; to be freed
// with |*out_size| + 1.
static PJRT_Error* plan_bytes(pestle_pjrt_program_t* p, char** out_data,
                              size_t* out_size) {
  pestle_arena_t arena;
  char name[96];
  const char* folder = getenv("TMPDIR");
  pestle_arena_init(pestle_allocator_system(), &arena);
  // Threads may write one program at once: each has an arena of its own.
  snprintf(name, sizeof(name), "pestle-%lld-%llx-%llx.plan",
           (long long)pestle_process_id(), (unsigned long long)(uintptr_t)p,
           (unsigned long long)(uintptr_t)&arena);
  const char* path =
      pestle_path_join(&arena, folder && *folder ? folder : "/tmp", name);
  pestle_status_t status =
      path ? pestle_plan_save(p->plan, path) : PESTLE_OOM();
  if (!status) {
    status = pestle_file_read(path, SIZE_MAX - 1, pestle_allocator_system(),
                              out_data, out_size);
    status = pestle_status_join(status, pestle_file_remove(path));
  }
  pestle_arena_deinit(&arena);
  return pestle_pjrt_error_of(status);
}

struct PJRT_SerializedExecutable {
  size_t size;  // of this and the bytes, which lie ALIGNMENT behind it
};

static void destroy_bytes(PJRT_SerializedExecutable* bytes) {
  if (!bytes) return;
  pestle_free_aligned(pestle_allocator_system(), bytes, bytes->size, ALIGNMENT);
}

// Where the parts lie between the header and the plan.
typedef struct parts_t {
  size_t outputs, donors, name, end;
} parts_t;

static parts_t parts_of(const header_t* h) {
  parts_t parts;
  parts.outputs = sizeof(*h) + (size_t)h->input_tokens * sizeof(uint32_t);
  parts.donors = parts.outputs + (size_t)h->output_tokens * sizeof(uint32_t);
  parts.name = parts.donors + h->input_count;
  parts.end = parts.name + h->name_size;
  return parts;
}

static void write_tokens(char* target, const pestle_pjrt_tokens_t* tokens) {
  if (!tokens->count) return;
  memcpy(target, tokens->positions, tokens->count * sizeof(uint32_t));
}

static PJRT_SerializedExecutable* write_bytes(const pestle_pjrt_program_t* p,
                                              const char* plan,
                                              size_t plan_size) {
  size_t inputs = p->input_count - p->input_tokens.count;
  header_t header = {.input_tokens = (uint32_t)p->input_tokens.count,
                     .output_tokens = (uint32_t)p->output_tokens.count,
                     .input_count = (uint32_t)inputs,
                     .name_size = (uint32_t)strlen(p->name) + 1,
                     .numerics = (int32_t)p->options.numerics,
                     .threads = p->options.threads,
                     .plan_size = plan_size};
  parts_t parts = parts_of(&header);
  header.plan_offset =
      parts.end + (ALIGNMENT - parts.end % ALIGNMENT) % ALIGNMENT;
  header.size = header.plan_offset + plan_size;
  PJRT_SerializedExecutable* bytes = pestle_alloc_aligned(
      pestle_allocator_system(), ALIGNMENT + header.size, ALIGNMENT);
  if (!bytes) return NULL;
  bytes->size = ALIGNMENT + header.size;
  char* data = (char*)bytes + ALIGNMENT;
  memcpy(header.magic, MAGIC, sizeof(header.magic));
  memcpy(header.signature, p->signature, sizeof(header.signature));
  memset(data, 0, header.plan_offset);
  write_tokens(data + sizeof(header), &p->input_tokens);
  write_tokens(data + parts.outputs, &p->output_tokens);
  for (size_t i = 0; i < inputs; ++i)
    data[parts.donors + i] = p->is_donor[p->input_places[i]];
  memcpy(data + parts.name, p->name, header.name_size);
  memcpy(data + header.plan_offset, plan, plan_size);
  memcpy(data, &header, sizeof(header));
  header.hash = pestle_hash64(data + HASHED_FROM, header.size - HASHED_FROM);
  memcpy(data, &header, sizeof(header));
  return bytes;
}

PJRT_Error* pestle_PJRT_Executable_Serialize(
    PJRT_Executable_Serialize_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_Serialize, executable,
               serialized_executable_deleter);
  pestle_pjrt_program_t* p = args->executable->program;
  char* plan = NULL;
  size_t plan_size = 0;
  args->serialized_executable = NULL;
  if (p->rank_count > 1 || p->devices[0] != &p->client->device) {
    return pestle_pjrt_error(
        PJRT_Error_Code_UNIMPLEMENTED,
        "PJRT_Executable_Serialize: %s is for other "
        "devices than the first; compile it again where it "
        "is wanted",
        p->name);
  }
  if (p->has_orders) {
    return pestle_pjrt_error(
        PJRT_Error_Code_UNIMPLEMENTED,
        "PJRT_Executable_Serialize: %s asks for layouts of its own; keep its "
        "module, which compiles from Pestle's cache",
        p->name);
  }
  if (p->callback_count) {
    return INVALID(
        "%s calls Python functions of this process: it cannot be "
        "serialised",
        p->name);
  }
  PJRT_TRY(plan_bytes(p, &plan, &plan_size));
  PJRT_SerializedExecutable* bytes = write_bytes(p, plan, plan_size);
  pestle_dealloc(pestle_allocator_system(), plan, plan_size + 1);
  if (!bytes) return pestle_pjrt_out_of_memory();
  args->serialized_bytes = (const char*)bytes + ALIGNMENT;
  args->serialized_bytes_size = bytes->size - ALIGNMENT;
  args->serialized_executable = bytes;
  args->serialized_executable_deleter = destroy_bytes;
  return NULL;
}

// --- Reading ---

static PJRT_Error* damaged(const char* what) {
  return INVALID("the serialised executable is damaged: %s", what);
}

static PJRT_Error* read_header(const char* data, size_t size,
                               header_t* out_header) {
  if (size < sizeof(header_t) || memcmp(data, MAGIC, 8)) {
    return INVALID(
        "the bytes are no executable that this version of Pestle "
        "serialised");
  }
  memcpy(out_header, data, sizeof(header_t));
  const header_t* h = out_header;
  if (h->size != size) return damaged("it is cut");
  if (pestle_hash64(data + HASHED_FROM, size - HASHED_FROM) != h->hash)
    return damaged("its hash is another");
  if (h->input_tokens > MOST_TOKENS || h->output_tokens > MOST_TOKENS ||
      h->numerics < 0 || h->numerics > PESTLE_NUMERICS_FAST || h->threads < 0)
    return damaged("a number is out of range");
  parts_t parts = parts_of(h);
  if (h->plan_offset > size || h->plan_size != size - h->plan_offset ||
      h->plan_offset < parts.end) {
    return damaged("the plan leads out of it");
  }
  if (!h->name_size || data[parts.end - 1])
    return damaged("its name does not end");
  return NULL;
}

typedef struct block_t {
  size_t size;
} block_t;

static void free_block(void* self) {
  block_t* block = self;
  pestle_free_aligned(pestle_allocator_system(), block, block->size, ALIGNMENT);
}

// The plan of a copy of |data|, at the alignment that plans need.
static PJRT_Error* read_plan(PJRT_Client* client, const char* data, size_t size,
                             pestle_plan_t** out_plan) {
  block_t* block = pestle_alloc_aligned(pestle_allocator_system(),
                                        ALIGNMENT + size, ALIGNMENT);
  if (!block) return pestle_pjrt_out_of_memory();
  block->size = ALIGNMENT + size;
  char* bytes = (char*)block + ALIGNMENT;
  memcpy(bytes, data, size);
  pestle_status_t status = pestle_plan_create(client->context, bytes, size,
                                              free_block, block, out_plan);
  if (status) free_block(block);
  return pestle_pjrt_error_of(status);
}

// What lies between header and plan, copied to |arena|; the name stays in |data|.
static PJRT_Error* read_info(const char* data, const header_t* header,
                             pestle_arena_t* arena,
                             pestle_pjrt_program_info_t* out_info) {
  parts_t parts = parts_of(header);
  size_t tokens = (size_t)header->input_tokens + header->output_tokens;
  uint32_t* positions =
      pestle_arena_copy(arena, data + sizeof(*header),
                        tokens * sizeof(uint32_t), _Alignof(uint32_t));
  bool* donors = PESTLE_ARENA_ARRAY(arena, bool, header->input_count);
  if (!positions || !donors) return pestle_pjrt_out_of_memory();
  for (uint32_t i = 0; i < header->input_count; ++i)
    donors[i] = data[parts.donors + i] != 0;
  *out_info = (pestle_pjrt_program_info_t){
      .name = data + parts.name,
      .signature = {header->signature[0], header->signature[1]},
      .input_tokens = {positions, header->input_tokens},
      .output_tokens = {positions + header->input_tokens,
                        header->output_tokens},
      .is_donor = donors,
      .input_count = header->input_count};
  return NULL;
}

static PJRT_Error* load(PJRT_Client* client, const char* data,
                        const header_t* header, pestle_arena_t* arena,
                        pestle_pjrt_program_t** out_program) {
  pestle_plan_t* plan;
  pestle_pjrt_program_info_t info;
  pestle_pjrt_options_t options = {
      .replicas = 1,
      .partitions = 1,
      .numerics = (pestle_numerics_t)header->numerics,
      .threads = header->threads};
  PJRT_TRY(read_info(data, header, arena, &info));
  PJRT_TRY(read_plan(client, data + header->plan_offset,
                     (size_t)header->plan_size, &plan));
  PJRT_Error* error =
      pestle_pjrt_program_create(client, plan, &options, &info, out_program);
  pestle_plan_release(plan);
  return error;
}

PJRT_Error* pestle_PJRT_Executable_DeserializeAndLoad(
    PJRT_Executable_DeserializeAndLoad_Args* args) {
  PJRT_REQUIRE(PJRT_Executable_DeserializeAndLoad, client, loaded_executable);
  header_t header;
  pestle_pjrt_program_t* program;
  const char* data = args->serialized_executable;
  args->loaded_executable = NULL;
  if (!data) {
    return pestle_pjrt_no_handle("PJRT_Executable_DeserializeAndLoad",
                                 "serialized_executable");
  }
  PJRT_TRY(pestle_pjrt_client_check(args->client));
  PJRT_TRY(read_header(data, args->serialized_executable_size, &header));
  pestle_arena_t arena;
  pestle_arena_init(pestle_allocator_system(), &arena);
  PJRT_Error* error = load(args->client, data, &header, &arena, &program);
  pestle_arena_deinit(&arena);
  if (error) return error;
  return pestle_pjrt_load(program, &args->loaded_executable);
}
