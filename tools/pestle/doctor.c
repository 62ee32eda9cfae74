// SPDX-License-Identifier: Apache-2.0
// pestle doctor: what is here and what is wrong with it. What JAX finds is looked at
// by a script (doctor_jax.py, which is in this program) in the Python whose JAX is
// meant: a command that is whole says what is wrong with an installation that is not.
#include "cli.h"
#include "pestle/version.h"

static pestle_status_t look_at_backends(cli_t* cli) {
  int done = CLI_DONE;
  printf("pestle %s\n", pestle_version());
  return cli_plugins(cli, &done);
}

static pestle_status_t look_at_jax(const cli_t* cli, int* out_exit) {
  const char* python =
      cli->text[CLI_PYTHON] ? cli->text[CLI_PYTHON] : "python3";
  const char* const arguments[] = {python, "-c", cli_doctor_jax, NULL};
  pestle_status_t status = cli_run_program(arguments, out_exit);
  if (!status) return NULL;
  return pestle_status_annotate(status,
                                "--python PYTHON says whose JAX is meant");
}

pestle_status_t cli_doctor(cli_t* cli, int* out_exit) {
  if (cli->args.size) {
    return CLI_USAGE_ERROR("'pestle doctor' takes no argument, not '%s'",
                           cli->args.data[0]);
  }
  if (cli->text[CLI_PYTHON] && !cli->text[CLI_JAX])
    return CLI_USAGE_ERROR("--python goes with --jax");
  PESTLE_TRY(look_at_backends(cli));
  return cli->text[CLI_JAX] ? look_at_jax(cli, out_exit) : NULL;
}
