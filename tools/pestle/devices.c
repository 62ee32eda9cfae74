// SPDX-License-Identifier: Apache-2.0
// pestle devices: what kernels run on here, and by which names it is asked for.
#include <string.h>

#include "cli.h"
#include "json.h"

static const char* const types[] = {"cpu", "gpu", "software"};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

typedef struct facts_t {
  char name[256];  // of the hardware, or ""
  int64_t memory_bytes;
  bool is_interpreter;
} facts_t;

static bool is_named(const pestle_device_property_t* property,
                     const char* name) {
  return !strcmp(property->name, name);
}

// What the backend tells of it; of a CPU its name as code is generated for it.
static facts_t facts_of(pestle_device_t* device) {
  facts_t facts = {.memory_bytes = 0};
  pestle_status_t status = NULL;
  for (uint32_t i = 0; i < 256 && !status; ++i) {
    pestle_device_property_t p = {.struct_size = sizeof(p)};
    status = pestle_device_property(device, i, &p);
    if (status) break;
    if (p.is_text && is_named(&p, "name"))
      (void)snprintf(facts.name, sizeof(facts.name), "%s", p.text);
    if (!p.is_text && is_named(&p, "memory_bytes"))
      facts.memory_bytes = p.integer;
  }
  pestle_status_release(status);
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  status = pestle_device_caps(device, NULL, &caps);
  if (!status) {
    facts.is_interpreter = caps.flags & PESTLE_TARGET_INTERPRETED;
    if (!facts.name[0])
      (void)snprintf(facts.name, sizeof(facts.name), "%s", caps.cpu);
  }
  pestle_status_release(status);
  return facts;
}

static void print_one(const char* spec, pestle_device_t* device,
                      bool is_default) {
  facts_t facts = facts_of(device);
  const char* type = pestle_device_type(device);
  char bytes[32];
  printf("%-11s %-10s %s", spec, pestle_device_name(device), facts.name);
  if (facts.memory_bytes > 0) {
    printf(", %s",
           cli_info_bytes((uint64_t)facts.memory_bytes, bytes, sizeof(bytes)));
  }
  if (!strcmp(type, "software"))
    printf("; software: a driver that computes on the CPU, no answer to 'gpu'");
  if (facts.is_interpreter)
    printf("%sinterprets kernels: slow, for comparisons",
           facts.name[0] ? "; " : "");
  printf("%s\n", is_default ? "  (default)" : "");
}

static void json_one(const char* spec, pestle_device_t* device, bool is_default,
                     pestle_json_t* json) {
  facts_t facts = facts_of(device);
  const char* type = pestle_device_type(device);
  pestle_json_begin_object(json);
  cli_key_cstr(json, "device", spec);
  cli_key_cstr(json, "name", pestle_device_name(device));
  cli_key_cstr(json, "type", type);
  cli_key_cstr(json, "hardware", facts.name);
  cli_key_bool(json, "is_software", !strcmp(type, "software"));
  cli_key_bool(json, "is_interpreter", facts.is_interpreter);
  cli_key_bool(json, "is_default", is_default);
  if (facts.memory_bytes > 0)
    cli_key_i64(json, "memory_bytes", facts.memory_bytes);
  pestle_json_end_object(json);
}

static pestle_status_t tell_type(cli_t* cli, const char* type,
                                 const pestle_device_t* usual) {
  int32_t count = pestle_context_device_count(cli->context, type);
  for (int32_t i = 0; i < count; ++i) {
    char spec[64];
    pestle_device_t* device;
    (void)snprintf(spec, sizeof(spec), "%s:%d", type, (int)i);
    PESTLE_TRY(pestle_context_device(cli->context, spec, &device));
    if (cli->text[CLI_NAMES]) {
      printf("%s\n%s\n", spec, pestle_device_name(device));
    } else if (cli->json) {
      json_one(spec, device, device == usual, cli->json);
    } else {
      print_one(spec, device, device == usual);
    }
  }
  return NULL;
}

pestle_status_t cli_devices(cli_t* cli, int* out_exit) {
  (void)out_exit;
  pestle_device_t* usual;
  if (cli->args.size) {
    return CLI_USAGE_ERROR("'pestle devices' takes no argument, not '%s'",
                           cli->args.data[0]);
  }
  if (cli->text[CLI_NAMES] && cli->json)
    return CLI_USAGE_ERROR("--names and --json: which of them?");
  PESTLE_TRY(pestle_context_load_backends(cli->context));
  pestle_status_t status = pestle_context_device(cli->context, NULL, &usual);
  // PESTLE_DEVICE may name what is not here: the list says what is.
  if (pestle_status_code(status) == PESTLE_STATUS_NOT_FOUND) {
    pestle_status_release(status);
    status = NULL;
  }
  PESTLE_TRY(status);
  if (cli->json) {
    pestle_json_key(cli->json, "devices");
    pestle_json_begin_array(cli->json);
  }
  for (int t = 0; t < TYPES; ++t)
    PESTLE_TRY(tell_type(cli, types[t], usual));
  if (cli->json) pestle_json_end_array(cli->json);
  return NULL;
}
