// SPDX-License-Identifier: Apache-2.0
#include "pjrt/roster.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "pestle/plugin.h"
#include "pjrt/slots.h"

enum { MOST_GPUS = 64 };

// --- Of this process ---

// The device that the settings name, else the first GPU, else the CPU. Of
// backends that also run on the CPU (OpenCL, Vulkan) a device is named or not used.
static PJRT_Error* find_device(PJRT_Client* client,
                               pestle_device_t** out_device) {
  static const char* const gpus[] = {"cuda", "metal"};
  const char* name = client->settings.device;
  for (int i = 0; i < 2 && !*name; ++i) {
    if (pestle_context_is_available(client->context, gpus[i])) name = gpus[i];
  }
  snprintf(client->device_name, sizeof(client->device_name), "%s",
           *name ? name : "cpu");
  return pestle_pjrt_error_of(
      pestle_context_device(client->context, client->device_name, out_device));
}

// What GPUs have alike that one program is compiled for.
typedef struct model_t {
  char target[64];
  int64_t units;
} model_t;

static model_t model_of(pestle_device_t* device) {
  model_t model = {.units = 0};
  for (uint32_t i = 0;; ++i) {
    pestle_device_property_t p = {.struct_size = sizeof(p)};
    pestle_status_t status = pestle_device_property(device, i, &p);
    bool is_end = status != NULL;
    pestle_status_release(status);
    if (is_end) return model;
    if (!strcmp(p.name, "target_cpu"))
      (void)snprintf(model.target, sizeof(model.target), "%.63s", p.text);
    if (!strcmp(p.name, "multiprocessors")) model.units = p.integer;
  }
}

// All GPUs that are as |first| is, where their backend lets them meet: a name with a
// number is that one alone. The first is |first|.
static size_t find_gpus(const PJRT_Client* client, pestle_device_t* first,
                        pestle_device_t* out[MOST_GPUS]) {
  const pestle_backend_t* backend = pestle_device_backend(first);
  size_t count = 1;
  out[0] = first;
  if (strchr(client->device_name, ':') || !PESTLE_HAS(backend, collective) ||
      !backend->collective) {
    return 1;
  }
  model_t model = model_of(first);
  int32_t all = pestle_context_device_count(client->context, backend->name);
  for (int32_t i = 0; i < all && count < MOST_GPUS; ++i) {
    char name[PESTLE_PJRT_NAME_SIZE];
    pestle_device_t* device;
    (void)snprintf(name, sizeof(name), "%.64s:%d", backend->name, (int)i);
    pestle_status_t status =
        pestle_context_device(client->context, name, &device);
    if (!status && device != first) {
      model_t other = model_of(device);
      if (!strcmp(model.target, other.target) && model.units == other.units)
        out[count++] = device;
    }
    pestle_status_release(status);
  }
  return count;
}

static PJRT_Error* find_own(PJRT_Client* client,
                            pestle_device_t* out[MOST_GPUS],
                            size_t* out_count) {
  PJRT_TRY(find_device(client, &out[0]));
  bool is_cpu = pestle_device_dl(out[0]).device_type == PESTLE_DEVICE_CPU;
  *out_count = !is_cpu ? find_gpus(client, out[0], out)
               : client->settings.cpu_devices
                   ? (size_t)client->settings.cpu_devices
                   : 1;
  return NULL;
}

// The name without the number that tells devices of one backend apart.
static void kind_of(pestle_device_t* device, char out[PESTLE_PJRT_NAME_SIZE]) {
  const char* name = pestle_device_name(device);
  bool is_cpu = pestle_device_dl(device).device_type == PESTLE_DEVICE_CPU;
  (void)snprintf(out, PESTLE_PJRT_NAME_SIZE, "%.*s",
                 is_cpu ? 3 : (int)strcspn(name, ":"), is_cpu ? "cpu" : name);
}

// --- All of them ---

static PJRT_Error* make_room(PJRT_Client* client, size_t all, size_t own) {
  size_t pointers = 2 * all + 2 * own;
  client->devices =
      pestle_alloc_zero(pestle_allocator_system(), pointers * sizeof(void*));
  if (!client->devices) return pestle_pjrt_out_of_memory();
  client->device_count = all;
  client->local_count = own;
  client->descriptions = (void*)(client->devices + all);
  client->locals = client->devices + 2 * all;
  client->memories = (void*)(client->locals + own);
  return NULL;
}

static PJRT_Error* add_device(PJRT_Client* client, size_t id, int process,
                              int local, const pestle_pjrt_card_t* card,
                              pestle_device_t* device) {
  PJRT_Device* d =
      local == 0 ? &client->device
                 : pestle_alloc_zero(pestle_allocator_system(), sizeof(*d));
  if (!d) return pestle_pjrt_out_of_memory();
  client->devices[id] = d;
  if (local >= 0) client->locals[local] = d;
  d->description.id = (int)id;
  d->description.process = process;
  snprintf(d->description.kind, sizeof(d->description.kind), "%s", card->kind);
  d->local = local;
  d->is_cpu = card->is_cpu;
  PJRT_TRY(pestle_pjrt_device_init(client, device, d));
  client->descriptions[id] = d->description_handle;
  if (local >= 0) client->memories[local] = d->memory_handle;
  return NULL;
}

// |cards| are the processes', of which there are |count|; this is number |index|.
static PJRT_Error* add_all(PJRT_Client* client, const pestle_pjrt_card_t* cards,
                           int32_t count, int32_t index,
                           pestle_device_t* const* own) {
  size_t all = 0, id = 0;
  for (int32_t p = 0; p < count; ++p)
    all += (size_t)cards[p].count;
  PJRT_TRY(make_room(client, all, (size_t)cards[index].count));
  for (int32_t p = 0; p < count; ++p) {
    bool is_own = p == index;
    for (int32_t i = 0; i < cards[p].count; ++i) {
      pestle_device_t* device = !is_own           ? NULL
                                : cards[p].is_cpu ? own[0]
                                                  : own[i];
      PJRT_TRY(add_device(client, id++, p, is_own ? i : -1, &cards[p], device));
    }
  }
  return NULL;
}

static PJRT_Error* add_processes(PJRT_Client* client,
                                 const pestle_pjrt_card_t* own,
                                 pestle_device_t* const* devices) {
  pestle_pjrt_processes_t* p = client->processes;
  size_t bytes = (size_t)p->count * sizeof(*own);
  pestle_pjrt_card_t* cards =
      pestle_alloc_zero(pestle_allocator_system(), bytes);
  if (!cards) return pestle_pjrt_out_of_memory();
  PJRT_Error* error = pestle_pjrt_processes_meet(p, own, cards);
  if (!error) error = add_all(client, cards, p->count, p->index, devices);
  pestle_dealloc(pestle_allocator_system(), cards, bytes);
  return error;
}

PJRT_Error* pestle_pjrt_roster_make(PJRT_Client* client,
                                    const pestle_pjrt_calls_t* calls) {
  pestle_device_t* own[MOST_GPUS];
  pestle_pjrt_card_t card;
  size_t count;
  const pestle_pjrt_settings_t* s = &client->settings;
  PJRT_TRY(find_own(client, own, &count));
  card.count = (int32_t)count;
  card.is_cpu = pestle_device_dl(own[0]).device_type == PESTLE_DEVICE_CPU;
  kind_of(own[0], card.kind);
  if (!calls || s->num_nodes <= 1) return add_all(client, &card, 1, 0, own);
  PJRT_TRY(pestle_pjrt_processes_create(calls, s->node_id, s->num_nodes,
                                        &client->processes));
  return add_processes(client, &card, own);
}

void pestle_pjrt_roster_drop(PJRT_Client* client) {
  pestle_allocator_t allocator = pestle_allocator_system();
  for (size_t i = 0; i < client->device_count; ++i) {
    PJRT_Device* d = client->devices[i];
    if (!d || d == &client->device) continue;
    pestle_pjrt_device_deinit(d);
    pestle_dealloc(allocator, d, sizeof(*d));
  }
  pestle_pjrt_device_deinit(&client->device);
  pestle_dealloc(
      allocator, client->devices,
      2 * (client->device_count + client->local_count) * sizeof(void*));
  pestle_pjrt_processes_release(client->processes);
}
