// SPDX-License-Identifier: Apache-2.0
// PESTLE_* variables. A value that cannot be used is an error rather than a
// guess: who sets PESTLE_THREADS=four wants to know.
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "runtime/context.h"
#include "runtime/platform.h"

static pestle_status_t read_bool(const char* name, bool* value) {
  const char* text = pestle_platform_env(name);
  if (!text || *value) return NULL;
  static const struct {
    const char* text;
    bool value;
  } words[] = {{"1", true},   {"0", false},  {"true", true}, {"false", false},
               {"yes", true}, {"no", false}, {"on", true},   {"off", false}};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    if (strcmp(words[i].text, text)) continue;
    *value = words[i].value;
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "environment variable %s is '%s'; expected 1 or 0", name,
                      text);
}

static pestle_status_t read_threads(int32_t* threads) {
  const char* text = pestle_platform_env("PESTLE_THREADS");
  if (!text || *threads) return NULL;
  int64_t value;
  if (pestle_str_parse_i64(pestle_str(text), &value) && value >= 1 &&
      value <= 1024) {
    *threads = (int32_t)value;
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "environment variable PESTLE_THREADS is '%s'; expected a "
                      "whole number from 1 to 1024",
                      text);
}

static pestle_status_t read_cache_bytes(uint64_t* bytes) {
  const char* text = pestle_platform_env("PESTLE_CACHE_SIZE");
  int64_t value;
  if (!text || *bytes) return NULL;
  if (pestle_str_parse_bytes(pestle_str(text), &value) && value > 0) {
    *bytes = (uint64_t)value;
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "environment variable PESTLE_CACHE_SIZE is '%s'; "
                      "expected bytes, at least 1, or 512M, 2G; "
                      "PESTLE_NO_CACHE=1 keeps nothing",
                      text);
}

static pestle_status_t read_log_level(pestle_log_level_t* level) {
  const char* text = pestle_platform_env("PESTLE_LOG");
  if (!text || *level) return NULL;
  static const char* const names[] = {"error", "warn", "info", "debug"};
  for (size_t i = 0; i < 4; ++i) {
    if (strcmp(names[i], text)) continue;
    *level = (pestle_log_level_t)i;
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "environment variable PESTLE_LOG is '%s'; expected one "
                      "of error, warn, info, debug",
                      text);
}

pestle_status_t pestle_context_read_environment(
    pestle_context_options_t* options, const char** out_default_device) {
  PESTLE_TRY(read_bool("PESTLE_STRICT", &options->strict));
  PESTLE_TRY(read_bool("PESTLE_NO_CACHE", &options->no_cache));
  PESTLE_TRY(read_threads(&options->threads));
  PESTLE_TRY(read_cache_bytes(&options->cache_bytes));
  PESTLE_TRY(read_log_level(&options->log_level));
  if (!options->cache_dir) {
    options->cache_dir = pestle_platform_env("PESTLE_CACHE_DIR");
  }
  if (!options->backend_path) {
    options->backend_path = pestle_platform_env("PESTLE_BACKEND_PATH");
  }
  if (!options->trace_file) {
    options->trace_file = pestle_platform_env("PESTLE_TRACE");
  }
  *out_default_device = pestle_platform_env("PESTLE_DEVICE");
  return NULL;
}

pestle_status_t pestle_context_default_cache_dir(pestle_allocator_t allocator,
                                                 char** out_folder) {
  *out_folder = NULL;
  const char* base = pestle_platform_env("XDG_CACHE_HOME");
  const char* tail = "/pestle";
  // The XDG specification has relative paths ignored.
  if (!base || *base != '/') {
    base = pestle_platform_env("HOME");
    tail = "/.cache/pestle";
  }
  if (!base || *base != '/') return NULL;
  size_t size = strlen(base) + strlen(tail) + 1;
  char* folder = pestle_alloc(allocator, size);
  if (!folder) return PESTLE_OOM();
  memcpy(folder, base, strlen(base));
  memcpy(folder + strlen(base), tail, strlen(tail) + 1);
  *out_folder = folder;
  return NULL;
}
