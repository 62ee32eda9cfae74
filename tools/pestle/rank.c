// SPDX-License-Identifier: Apache-2.0
// The command as a rank of a world: who it is stands in the environment.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli.h"
#include "pestle/plan_format.h"

static pestle_status_t open_world(cli_t* cli) {
  if (cli->world) return NULL;
  return pestle_world_create(cli->context, NULL, &cli->world);
}

static pestle_status_t replace(cli_t* cli, const char* rank,
                               const char** text) {
  static const char mark[] = "{rank}";
  const char* at = *text ? strstr(*text, mark) : NULL;
  if (!at) return NULL;
  pestle_strbuf_t out;
  pestle_strbuf_init(pestle_allocator_system(), &out);
  const char* from = *text;
  for (; at; from = at + strlen(mark), at = strstr(from, mark)) {
    pestle_strbuf_append_bytes(&out, from, (size_t)(at - from));
    pestle_strbuf_append_c(&out, rank);
  }
  pestle_strbuf_append_c(&out, from);
  pestle_status_t status = pestle_strbuf_status(&out);
  if (!status) *text = cli_copy(cli, pestle_strbuf_view(&out));
  pestle_strbuf_deinit(&out);
  return status || *text ? status : PESTLE_OOM();
}

static const cli_option_t named[] = {CLI_INPUTS, CLI_INPUTS_PB, CLI_OUTPUTS,
                                     CLI_COMPARE, CLI_DEVICE};
enum { NAMED = sizeof(named) / sizeof(named[0]) };

static bool has_mark(const char* text) {
  return text && strstr(text, "{rank}");
}

pestle_status_t cli_rank_words(cli_t* cli) {
  bool any = false;
  char rank[16];
  for (int i = 0; i < NAMED; ++i)
    any |= has_mark(cli->text[named[i]]);
  for (size_t i = 0; i < cli->list[CLI_INPUT].size; ++i)
    any |= has_mark(cli->list[CLI_INPUT].data[i]);
  if (!any) return NULL;
  PESTLE_TRY(pestle_status_annotate(open_world(cli),
                                    "for {rank}, which an option has"));
  (void)snprintf(rank, sizeof(rank), "%d", (int)pestle_world_rank(cli->world));
  for (int i = 0; i < NAMED; ++i)
    PESTLE_TRY(replace(cli, rank, &cli->text[named[i]]));
  for (size_t i = 0; i < cli->list[CLI_INPUT].size; ++i)
    PESTLE_TRY(replace(cli, rank, &cli->list[CLI_INPUT].data[i]));
  return NULL;
}

pestle_status_t cli_rank_join(cli_t* cli, const pestle_plan_t* plan) {
  const pestle_plan_header_t* header = pestle_plan_data(plan, NULL);
  int64_t processes = (int64_t)header->replicas * header->partitions;
  // With --mesh the processes are threads of this one.
  if (processes <= 1 || cli->spread) return NULL;
  // Others run as often as the clock says, which is not the same for all ranks.
  if (strcmp(cli->verb, "run") != 0 || cli->text[CLI_PROFILE]) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the model is for %lld processes, which 'pestle run' "
                        "without --profile runs",
                        (long long)processes);
  }
  return pestle_status_annotate(open_world(cli), "for a plan of %lld processes",
                                (long long)processes);
}
