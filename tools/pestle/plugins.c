// SPDX-License-Identifier: Apache-2.0
// pestle plugins: what was found, what is used and why something is not. Each
// file was tried in a child process before (cli_open_context).
#include <string.h>

#include "base/file.h"
#include "cli.h"
#include "json.h"

static const char* type_name(int32_t type) {
  switch (type) {
    case PESTLE_DEVICE_CPU:
      return "cpu";
    case PESTLE_DEVICE_CUDA:
      return "cuda";
    case PESTLE_DEVICE_OPENCL:
      return "opencl";
    case PESTLE_DEVICE_VULKAN:
      return "vulkan";
    case PESTLE_DEVICE_METAL:
      return "metal";
    case PESTLE_DEVICE_EXT:
      return "ext";
    default:
      return "-";
  }
}

static const char* verdict_name(int32_t verdict) {
  switch ((pestle_verdict_t)verdict) {
    case PESTLE_VERDICT_LOADED:
      return "used";
    case PESTLE_VERDICT_UNLOADABLE:
      return "not loadable";
    case PESTLE_VERDICT_ABI:
      return "another interface";
    case PESTLE_VERDICT_SCORE:
      return "not for this machine";
    case PESTLE_VERDICT_INIT:
      return "does not start";
    case PESTLE_VERDICT_TABLES:
      return "wrong tables";
    case PESTLE_VERDICT_FILTERED:
      return "filtered";
    case PESTLE_VERDICT_UNTRUSTED:
      return "not trusted";
    case PESTLE_VERDICT_OUTSCORED:
      return "not the best";
    case PESTLE_VERDICT_PROBE:
      return "did not survive";
  }
  return "refused";
}

// --- Devices ---

static pestle_status_t print_property(pestle_device_t* device, uint32_t index,
                                      pestle_json_t* json, bool* out_more) {
  pestle_device_property_t property = {.struct_size = sizeof(property)};
  pestle_status_t status = pestle_device_property(device, index, &property);
  *out_more = !status;
  if (pestle_status_code(status) == PESTLE_STATUS_NOT_FOUND) {
    pestle_status_release(status);
    return NULL;
  }
  PESTLE_TRY(status);
  if (json && property.is_text) {
    cli_key_cstr(json, property.name, property.text);
  } else if (json) {
    cli_key_i64(json, property.name, property.integer);
  } else if (property.is_text) {
    printf("           %s: %s\n", property.name, property.text);
  } else {
    printf("           %s: %lld\n", property.name, (long long)property.integer);
  }
  return NULL;
}

static pestle_status_t print_device(pestle_device_t* device,
                                    pestle_json_t* json) {
  char spec[64];
  (void)snprintf(spec, sizeof(spec), "%s:%d", pestle_device_type(device),
                 (int)pestle_device_index(device));
  if (json) {
    pestle_json_begin_object(json);
    cli_key_cstr(json, "device", spec);
    cli_key_cstr(json, "name", pestle_device_name(device));
    pestle_json_key(json, "properties");
    pestle_json_begin_object(json);
  } else {
    printf("         %s is %s\n", spec, pestle_device_name(device));
  }
  bool more = true;
  // A backend that never says that it was the last ends here.
  for (uint32_t p = 0; more && p < 256; ++p)
    PESTLE_TRY(print_property(device, p, json, &more));
  if (json) {
    pestle_json_end_object(json);
    pestle_json_end_object(json);
  }
  return NULL;
}

static pestle_status_t print_devices(cli_t* cli,
                                     const pestle_backend_info_t* info) {
  for (int32_t i = 0; i < info->device_count; ++i) {
    char spec[96];
    (void)snprintf(spec, sizeof(spec), "%s:%d", info->name, (int)i);
    pestle_device_t* device;
    PESTLE_TRY(pestle_context_device(cli->context, spec, &device));
    PESTLE_TRY(print_device(device, cli->json));
  }
  return NULL;
}

// --- Candidates ---

// How many candidates of the group there were.
static size_t group_size(cli_t* cli, const char* name) {
  size_t in_group = 0, count = pestle_context_backend_count(cli->context);
  for (size_t i = 0; i < count; ++i) {
    pestle_backend_info_t info = {.struct_size = sizeof(info)};
    pestle_status_release(pestle_context_backend_info(cli->context, i, &info));
    in_group += info.name && !strcmp(info.name, name);
  }
  return in_group;
}

static void print_why(cli_t* cli, const pestle_backend_info_t* info) {
  if (info->verdict != PESTLE_VERDICT_LOADED) {
    printf("         %s: %s\n", verdict_name(info->verdict),
           cli_shown(cli, info->reason));
    if (info->is_target) {
      printf("         compiles all the same: 'pestle compile --target %s'\n",
             info->name);
    }
    return;
  }
  size_t others = group_size(cli, info->name);
  printf("         used: score %d is %s, build %s\n", info->score,
         others > 1 ? "the best of its name that starts" : "above 0",
         info->build_id);
}

static pestle_status_t print_backend(cli_t* cli,
                                     const pestle_backend_info_t* info) {
  bool is_used = !info->reason[0];
  printf("%-8s %-8s devices %d  score %d  %s\n", cli_shown(cli, info->name),
         is_used ? type_name(info->device_type) : "unused", info->device_count,
         info->score,
         info->path[0] ? cli_shown(cli, info->path) : "(built in)");
  if (cli->text[CLI_WHY]) {
    print_why(cli, info);
  } else if (!is_used) {
    printf("         %s\n", cli_shown(cli, info->reason));
  }
  return is_used ? print_devices(cli, info) : NULL;
}

static pestle_status_t json_backend(cli_t* cli,
                                    const pestle_backend_info_t* info) {
  bool is_used = !info->reason[0];
  pestle_json_t* json = cli->json;
  pestle_json_begin_object(json);
  cli_key_cstr(json, "name", info->name);
  cli_key_bool(json, "is_used", is_used);
  cli_key_cstr(json, "verdict", verdict_name(info->verdict));
  if (!is_used) cli_key_cstr(json, "why", info->reason);
  cli_key_bool(json, "is_target", info->is_target);
  cli_key_cstr(json, "type", is_used ? type_name(info->device_type) : "-");
  cli_key_i64(json, "score", info->score);
  cli_key_cstr(json, "build_id", info->build_id);
  cli_key_cstr(json, "path", info->path);
  pestle_json_key(json, "devices");
  pestle_json_begin_array(json);
  pestle_status_t status = is_used ? print_devices(cli, info) : NULL;
  pestle_json_end_array(json);
  pestle_json_end_object(json);
  return status;
}

static pestle_status_t print_default(cli_t* cli) {
  pestle_device_t* device;
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  PESTLE_TRY(pestle_context_device(cli->context, NULL, &device));
  if (cli->json) {
    cli_key_cstr(cli->json, "default", pestle_device_name(device));
    return NULL;
  }
  printf("default: %s", pestle_device_name(device));
  pestle_status_t status = pestle_device_caps(device, NULL, &caps);
  // A backend that generates no code knows of neither.
  if (!status && caps.cpu[0]) printf(", cpu %s", caps.cpu);
  if (!status && caps.features[0]) printf(", features %s", caps.features);
  pestle_status_release(status);
  printf("\n");
  return NULL;
}

static bool is_library(pestle_str_t name) {
  static const char* const ends[] = {".so", ".dylib", ".dll"};
  for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); ++i) {
    if (pestle_str_ends_with(name, pestle_str(ends[i]))) return true;
  }
  // A version behind: "libx.so.1".
  char text[256];
  snprintf(text, sizeof(text), "%.*s", PESTLE_STR_ARG(name));
  return strstr(text, ".so.") != NULL;
}

// A plugin that is not called as plugins are is looked at by nobody.
static void print_strangers(cli_t* cli, const char* folder) {
  const char** names;
  size_t count;
  pestle_status_t status =
      pestle_folder_list(folder, &cli->arena, &names, &count);
  for (size_t i = 0; !status && i < count; ++i) {
    pestle_str_t name = pestle_str(names[i]);
    bool is_plugin = pestle_str_starts_with(name, PESTLE_STR("libpestle-")) &&
                     pestle_str_ends_with(name, PESTLE_STR(".so"));
    // What a plugin brings along: libpestle-llvm-core.so.19.
    bool is_core = pestle_str_starts_with(name, PESTLE_STR("libpestle-")) &&
                   strstr(names[i], "-core.so.");
    if (is_plugin || is_core || !is_library(name)) continue;
    printf("         not looked at: %s; a plugin is called libpestle-NAME.so\n",
           cli_shown(cli, names[i]));
  }
  pestle_status_release(status);
}

static void print_search_path(cli_t* cli) {
  size_t count = pestle_context_search_path_count(cli->context);
  printf("searched:\n");
  for (size_t i = 0; i < count; ++i) {
    const char* folder = pestle_context_search_path(cli->context, i);
    printf("         %s\n", cli_shown(cli, folder));
    print_strangers(cli, folder);
  }
}

static void json_search_path(cli_t* cli) {
  size_t count = pestle_context_search_path_count(cli->context);
  pestle_json_key(cli->json, "searched");
  pestle_json_begin_array(cli->json);
  for (size_t i = 0; i < count; ++i) {
    pestle_json_cstr(cli->json, pestle_context_search_path(cli->context, i));
  }
  pestle_json_end_array(cli->json);
}

static pestle_status_t list(cli_t* cli) {
  PESTLE_TRY(pestle_context_load_backends(cli->context));
  if (cli->json) {
    json_search_path(cli);
    pestle_json_key(cli->json, "backends");
    pestle_json_begin_array(cli->json);
  } else if (cli->text[CLI_WHY]) {
    print_search_path(cli);
  }
  size_t count = pestle_context_backend_count(cli->context);
  for (size_t i = 0; i < count; ++i) {
    pestle_backend_info_t info = {.struct_size = sizeof(info)};
    PESTLE_TRY(pestle_context_backend_info(cli->context, i, &info));
    PESTLE_TRY(cli->json ? json_backend(cli, &info)
                         : print_backend(cli, &info));
  }
  if (cli->json) pestle_json_end_array(cli->json);
  return print_default(cli);
}

pestle_status_t cli_plugins(cli_t* cli, int* out_exit) {
  const char* word = cli->args.size ? cli->args.data[0] : "list";
  if (!strcmp(word, "test")) return cli_plugins_test(cli, out_exit);
  if (strcmp(word, "list") != 0) {
    static const char* const words[] = {"list", "test", NULL};
    char hint[PESTLE_HINT];
    return CLI_USAGE_ERROR(
        "'pestle plugins' takes list or test FILE|NAME, not '%s'%s", word,
        cli_hint(pestle_str(word), words, hint));
  }
  if (cli->args.size > 1) {
    return CLI_USAGE_ERROR("'pestle plugins list' takes no argument, not '%s'",
                           cli->args.data[1]);
  }
  pestle_status_t status = list(cli);
  // Who asks why wants the list, whatever is wrong with what is on it.
  if (status && cli->text[CLI_WHY] && !cli->json) {
    char text[1024];
    pestle_status_format(status, text, sizeof(text));
    cli_say_error("%s", text);
    pestle_status_release(status);
    return NULL;
  }
  return status;
}
