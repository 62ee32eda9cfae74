// SPDX-License-Identifier: Apache-2.0
// pestle plugins: what was found, what is used and why something is not.
#include "cli.h"

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

static void print_backend(const pestle_backend_info_t* info) {
  bool is_used = !info->reason[0];
  printf("%-8s %-8s devices %d  score %d  %s\n", info->name,
         is_used ? type_name(info->device_type) : "unused", info->device_count,
         info->score, info->path[0] ? info->path : "(built in)");
  if (!is_used) printf("         %s\n", info->reason);
}

static pestle_status_t print_default(cli_t* cli) {
  pestle_device_t* device;
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  PESTLE_TRY(pestle_context_device(cli->context, NULL, &device));
  PESTLE_TRY(pestle_device_caps(device, NULL, &caps));
  printf("default: %s", pestle_device_name(device));
  // A backend that generates no code knows of neither.
  if (caps.cpu[0]) printf(", cpu %s", caps.cpu);
  if (caps.features[0]) printf(", features %s", caps.features);
  printf("\n");
  return NULL;
}

pestle_status_t cli_plugins(cli_t* cli, int* out_exit) {
  (void)out_exit;
  if (cli->args.size) {
    return CLI_USAGE_ERROR("'pestle plugins' takes no argument, not '%s'",
                           cli->args.data[0]);
  }
  PESTLE_TRY(pestle_context_load_backends(cli->context));
  size_t count = pestle_context_backend_count(cli->context);
  for (size_t i = 0; i < count; ++i) {
    pestle_backend_info_t info = {.struct_size = sizeof(info)};
    PESTLE_TRY(pestle_context_backend_info(cli->context, i, &info));
    print_backend(&info);
  }
  return print_default(cli);
}
