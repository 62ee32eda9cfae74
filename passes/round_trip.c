// SPDX-License-Identifier: Apache-2.0
// Text and binary round trips, as the runner does them after each pass.
#include "passes/round_trip.h"

#include <inttypes.h>
#include <string.h>

static pestle_status_t compare(const uint64_t wanted[2],
                               const pestle_module_t* copy, const char* form) {
  uint64_t got[2];
  PESTLE_TRY(pestle_module_signature(copy, got));
  if (got[0] == wanted[0] && got[1] == wanted[1]) return NULL;
  return PESTLE_ERROR(INTERNAL,
                      "the module that comes back from its %s form differs: "
                      "signature %016" PRIx64 "%016" PRIx64 ", was %016" PRIx64
                      "%016" PRIx64,
                      form, got[0], got[1], wanted[0], wanted[1]);
}

// print(parse(text)) must be |text| to the byte.
static pestle_status_t compare_text(const pestle_module_t* copy,
                                    pestle_context_t* context, const char* text,
                                    size_t size) {
  char* again;
  size_t again_size;
  PESTLE_TRY(
      pestle_module_print(copy, PESTLE_PRINT_LOCATIONS, &again, &again_size));
  bool same = again_size == size && !memcmp(again, text, size);
  size_t line = 1;
  for (size_t i = 0; !same && i < size && i < again_size; ++i) {
    if (again[i] != text[i]) break;
    line += text[i] == '\n';
  }
  pestle_context_free(context, again, again_size + 1);
  if (same) return NULL;
  return PESTLE_ERROR(INTERNAL, "printed text changes from line %zu on", line);
}

static pestle_status_t round_trip_text(pestle_context_t* context,
                                       const pestle_module_t* module,
                                       const uint64_t wanted[2]) {
  char* text;
  size_t size;
  PESTLE_TRY(pestle_module_print(module, PESTLE_PRINT_LOCATIONS, &text, &size));
  pestle_module_t* copy = NULL;
  pestle_status_t status =
      pestle_module_parse(context, text, size, "<round trip>", &copy);
  if (!status) status = compare(wanted, copy, "text");
  if (!status) status = compare_text(copy, context, text, size);
  pestle_module_release(copy);
  pestle_context_free(context, text, size + 1);
  return status;
}

static pestle_status_t round_trip_binary(pestle_context_t* context,
                                         const pestle_module_t* module,
                                         const uint64_t wanted[2]) {
  void* data;
  size_t size;
  PESTLE_TRY(pestle_module_serialize(module, &data, &size));
  pestle_module_t* copy = NULL;
  pestle_status_t status =
      pestle_module_deserialize(context, data, size, &copy);
  if (!status) status = compare(wanted, copy, "binary");
  pestle_module_release(copy);
  pestle_context_free(context, data, size);
  return status;
}

pestle_status_t pestle_passes_round_trip(pestle_context_t* context,
                                         const pestle_module_t* module) {
  uint64_t wanted[2];
  PESTLE_TRY(pestle_module_signature(module, wanted));
  PESTLE_TRY(round_trip_text(context, module, wanted));
  return round_trip_binary(context, module, wanted);
}
