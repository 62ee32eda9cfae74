// SPDX-License-Identifier: Apache-2.0
// Topologies: the one device that programs are made for, of a client or alone. One
// that stands alone has a client of its own, so that it compiles as that does.
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "pestle/version.h"
#include "pjrt/client.h"
#include "pjrt/slots.h"

// What a serialised topology begins with; the name of its device follows.
static const char magic[] = "pestle topology 1\n";
enum { MAGIC_SIZE = sizeof(magic) - 1 };

// --- Life ---

PJRT_Error* pestle_PJRT_Client_TopologyDescription(
    PJRT_Client_TopologyDescription_Args* args) {
  PJRT_REQUIRE(PJRT_Client_TopologyDescription, client, topology);
  args->topology = &args->client->topology;
  return NULL;
}

static PJRT_Error* create(const PJRT_NamedValue* options, size_t count,
                          PJRT_TopologyDescription** out_topology) {
  PJRT_Client* client = NULL;
  PJRT_TRY(pestle_pjrt_client_create(options, count, NULL, &client));
  PJRT_TopologyDescription* topology =
      pestle_alloc(pestle_allocator_system(), sizeof(*topology));
  if (!topology) {
    pestle_pjrt_client_release(client);
    return pestle_pjrt_out_of_memory();
  }
  *topology = client->topology;
  topology->is_alone = true;
  *out_topology = topology;
  return NULL;
}

// The options are those of a client. Of topologies there is one: its name says
// nothing.
PJRT_Error* pestle_PJRT_TopologyDescription_Create(
    PJRT_TopologyDescription_Create_Args* args) {
  PJRT_TRY(pestle_pjrt_check(
      args, PJRT_END_OF(PJRT_TopologyDescription_Create, topology),
      "PJRT_TopologyDescription_Create"));
  args->topology = NULL;
  if (args->num_options && !args->create_options) {
    return pestle_pjrt_no_handle("PJRT_TopologyDescription_Create",
                                 "create_options");
  }
  return create(args->create_options, args->num_options, &args->topology);
}

// A client's own goes with the client.
PJRT_Error* pestle_PJRT_TopologyDescription_Destroy(
    PJRT_TopologyDescription_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_TopologyDescription_Destroy, topology, topology);
  if (!args->topology->is_alone) return NULL;
  PJRT_Client* client = args->topology->client;
  pestle_dealloc(pestle_allocator_system(), args->topology,
                 sizeof(*args->topology));
  pestle_pjrt_client_release(client);
  return NULL;
}

// --- What it says of itself ---

PJRT_Error* pestle_PJRT_TopologyDescription_PlatformName(
    PJRT_TopologyDescription_PlatformName_Args* args) {
  PJRT_REQUIRE(PJRT_TopologyDescription_PlatformName, topology,
               platform_name_size);
  args->platform_name = PESTLE_PJRT_PLATFORM;
  args->platform_name_size = sizeof(PESTLE_PJRT_PLATFORM) - 1;
  return NULL;
}

PJRT_Error* pestle_PJRT_TopologyDescription_PlatformVersion(
    PJRT_TopologyDescription_PlatformVersion_Args* args) {
  PJRT_REQUIRE(PJRT_TopologyDescription_PlatformVersion, topology,
               platform_version_size);
  args->platform_version = "pestle " PESTLE_VERSION_STRING;
  args->platform_version_size = strlen(args->platform_version);
  return NULL;
}

PJRT_Error* pestle_PJRT_TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args* args) {
  PJRT_REQUIRE(PJRT_TopologyDescription_GetDeviceDescriptions, topology,
               num_descriptions);
  args->descriptions = args->topology->descriptions;
  args->num_descriptions = args->topology->count;
  return NULL;
}

PJRT_Error* pestle_PJRT_TopologyDescription_Attributes(
    PJRT_TopologyDescription_Attributes_Args* args) {
  PJRT_REQUIRE(PJRT_TopologyDescription_Attributes, topology, num_attributes);
  args->attributes = NULL;
  args->num_attributes = 0;
  return NULL;
}

// Equal where programs made for one run on the other: one build, one device.
PJRT_Error* pestle_PJRT_TopologyDescription_Fingerprint(
    PJRT_TopologyDescription_Fingerprint_Args* args) {
  PJRT_REQUIRE(PJRT_TopologyDescription_Fingerprint, topology, fingerprint);
  const char* version = args->topology->client->version;
  args->fingerprint = pestle_hash128(version, strlen(version)).low;
  return NULL;
}

PJRT_Error* pestle_PJRT_TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args* args) {
  static const int only[] = {0};
  PJRT_REQUIRE(PJRT_TopologyDescription_GetMemorySpaceKindIds, topology,
               num_memory_space_kind_ids);
  args->memory_space_kind_ids = only;
  args->num_memory_space_kind_ids = 1;
  return NULL;
}

// --- As bytes ---

struct PJRT_SerializedTopology {
  char bytes[MAGIC_SIZE + PESTLE_PJRT_NAME_SIZE];
};

static void free_bytes(PJRT_SerializedTopology* serialized) {
  pestle_dealloc(pestle_allocator_system(), serialized, sizeof(*serialized));
}

PJRT_Error* pestle_PJRT_TopologyDescription_Serialize(
    PJRT_TopologyDescription_Serialize_Args* args) {
  PJRT_REQUIRE(PJRT_TopologyDescription_Serialize, topology,
               serialized_topology_deleter);
  const char* name = args->topology->client->device_name;
  PJRT_SerializedTopology* out =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*out));
  if (!out) return pestle_pjrt_out_of_memory();
  memcpy(out->bytes, magic, MAGIC_SIZE);
  memcpy(out->bytes + MAGIC_SIZE, name, strlen(name));
  args->serialized_bytes = out->bytes;
  args->serialized_bytes_size = MAGIC_SIZE + strlen(name);
  args->serialized_topology = out;
  args->serialized_topology_deleter = free_bytes;
  return NULL;
}

PJRT_Error* pestle_PJRT_TopologyDescription_Deserialize(
    PJRT_TopologyDescription_Deserialize_Args* args) {
  PJRT_REQUIRE(PJRT_TopologyDescription_Deserialize, serialized_topology,
               topology);
  const char* bytes = args->serialized_topology;
  size_t size = args->serialized_topology_size;
  args->topology = NULL;
  if (size < MAGIC_SIZE || size > MAGIC_SIZE + PESTLE_PJRT_NAME_SIZE ||
      memcmp(bytes, magic, MAGIC_SIZE)) {
    return pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "these %zu bytes are no topology of Pestle's",
                             size);
  }
  PJRT_NamedValue device = {.struct_size = sizeof(device),
                            .name = "device",
                            .name_size = 6,
                            .type = PJRT_NamedValue_kString,
                            .string_value = bytes + MAGIC_SIZE,
                            .value_size = size - MAGIC_SIZE};
  return create(&device, 1, &args->topology);
}
