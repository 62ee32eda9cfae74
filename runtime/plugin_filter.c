// SPDX-License-Identifier: Apache-2.0
// Which candidates the caller wants.
#include <string.h>

#include "runtime/registry.h"

// The usual way back: what follows the last * is tried one character later.
bool pestle_glob_matches(const char* glob, const char* text) {
  const char *star = NULL, *retry = NULL;
  while (*text) {
    if (*glob == '*') {
      star = ++glob;
      retry = text;
    } else if (*glob == '?' || *glob == *text) {
      ++glob;
      ++text;
    } else if (star) {
      glob = star;
      text = ++retry;
    } else {
      return false;
    }
  }
  while (*glob == '*')
    ++glob;
  return !*glob;
}

static const char* first_match(const char* const* globs, size_t count,
                               const pestle_plugin_t* plugin) {
  for (size_t i = 0; i < count; ++i) {
    if (!globs[i]) continue;
    if (pestle_glob_matches(globs[i], plugin->name) ||
        pestle_glob_matches(globs[i], plugin->label)) {
      return globs[i];
    }
  }
  return NULL;
}

pestle_status_t pestle_plugin_filter_name(const pestle_backend_filter_t* filter,
                                          pestle_arena_t* arena,
                                          pestle_plugin_t* plugin) {
  if (!filter || plugin->is_built_in || plugin->is_refused) return NULL;
  const char* blocked =
      first_match(filter->blocked, filter->blocked_count, plugin);
  if (blocked) {
    return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_FILTERED,
                                "%s: '%s' is blocked by the filter's '%s'",
                                pestle_plugin_where(plugin), plugin->label,
                                blocked);
  }
  if (!filter->allowed_count ||
      first_match(filter->allowed, filter->allowed_count, plugin)) {
    return NULL;
  }
  return pestle_plugin_refuse(
      arena, plugin, PESTLE_VERDICT_FILTERED,
      "%s: '%s' is none of the %zu names that the filter allows",
      pestle_plugin_where(plugin), plugin->label, filter->allowed_count);
}

pestle_status_t pestle_plugin_filter_candidate(
    const pestle_backend_filter_t* filter, pestle_arena_t* arena,
    pestle_plugin_t* plugin) {
  if (!filter || !filter->accept || plugin->is_built_in || plugin->is_refused) {
    return NULL;
  }
  // A candidate that was tried in a child is not open here: what it said there
  // is repeated.
  pestle_candidate_t candidate = {
      .struct_size = sizeof(candidate),
      .name = plugin->name,
      .path = plugin->path,
      .abi_info = plugin->abi_info ? plugin->abi_info() : &plugin->said,
      .score = plugin->score};
  if (filter->accept(filter->user, &candidate)) return NULL;
  return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_FILTERED,
                              "%s: the caller's filter does not take it",
                              pestle_plugin_where(plugin));
}
