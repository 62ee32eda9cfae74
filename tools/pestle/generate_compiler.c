// SPDX-License-Identifier: Apache-2.0
// pestle generate: tokens of a language model, by ids.
#include <inttypes.h>
#include <string.h>

#include "base/thread.h"
#include "cli.h"
#include "json.h"
#include "pestle/decode.h"

enum { USUAL_TOKENS = 64 };

typedef struct generate_t {
  cli_t* cli;
  pestle_decoder_t* decoder;
  PESTLE_VEC(int64_t) ids;  // the prompt, then what was chosen
  size_t prompt;
  int64_t count;  // tokens at most
  // The ids behind which none comes.
  const int64_t* ends;
  size_t end_count;
  int64_t end;  // of --end-id
  pestle_sampling_t sampling;
  double create_s, encode_s, prefill_s, decode_s;
  size_t steps;  // that |decode_s| is of
} generate_t;

static pestle_status_t read_ids(generate_t* g) {
  const char* text = g->cli->text[CLI_IDS];
  if (!text) {
    return CLI_USAGE_ERROR(
        "'pestle generate' needs --ids: the prompt's "
        "tokens, as in --ids 1,2,3");
  }
  while (text) {
    const char* comma = strchr(text, ',');
    pestle_str_t one = {text, comma ? (size_t)(comma - text) : strlen(text)};
    int64_t id;
    if (!pestle_str_parse_i64(one, &id)) {
      return CLI_USAGE_ERROR("--ids: '%.*s' is no integer", (int)one.size,
                             one.data);
    }
    if (!pestle_vec_push(&g->ids, id)) return PESTLE_OOM();
    text = comma ? comma + 1 : NULL;
  }
  g->prompt = g->ids.size;
  return NULL;
}

static pestle_status_t read_number(const cli_t* cli, cli_option_t option,
                                   const char* name, double most,
                                   double* out_value) {
  const char* text = cli->text[option];
  double value;
  if (!text) return NULL;
  if (!pestle_str_parse_f64(pestle_str(text), &value) ||
      !(value >= 0 && value <= most)) {
    return CLI_USAGE_ERROR("--%s '%s' is no number from 0 to %g", name, text,
                           most);
  }
  *out_value = value;
  return NULL;
}

// Before the model is opened, which takes seconds.
static pestle_status_t check_numbers(const cli_t* cli) {
  double value;
  PESTLE_TRY(read_number(cli, CLI_TEMPERATURE, "temperature", 1e9, &value));
  return read_number(cli, CLI_TOP_P, "top-p", 1, &value);
}

static pestle_status_t read_options(generate_t* g) {
  const cli_t* cli = g->cli;
  g->sampling = (pestle_sampling_t){.struct_size = sizeof(g->sampling)};
  PESTLE_TRY(pestle_decoder_sampling(g->decoder, &g->sampling));
  g->count = cli->text[CLI_TOKENS] ? cli->count[CLI_TOKENS] : USUAL_TOKENS;
  g->sampling.seed = (uint64_t)cli->count[CLI_CHOICE_SEED];
  if (cli->text[CLI_TOP_K]) g->sampling.top_k = cli->count[CLI_TOP_K];
  PESTLE_TRY(read_number(cli, CLI_TEMPERATURE, "temperature", 1e9,
                         &g->sampling.temperature));
  return read_number(cli, CLI_TOP_P, "top-p", 1, &g->sampling.top_p);
}

static pestle_status_t open(generate_t* g, const char* path) {
  cli_t* cli = g->cli;
  pestle_compile_options_t compile = {.struct_size = sizeof(compile),
                                      .no_cache = cli->text[CLI_NO_CACHE]};
  pestle_decoder_options_t options = {.struct_size = sizeof(options),
                                      .compile = &compile};
  options.most = cli->count[CLI_MOST];
  options.room = cli->count[CLI_ROOM];
  options.encoder = cli->text[CLI_ENCODER];
  int64_t begin = pestle_clock_ns();
  PESTLE_TRY(cli_numerics(cli, &compile.numerics));
  PESTLE_TRY(cli_device(cli, &options.device));
  PESTLE_TRY(cli_limit_memory(cli, options.device));
  PESTLE_TRY(pestle_decoder_create(cli->context, path, &options, &g->decoder));
  g->create_s = (double)(pestle_clock_ns() - begin) * 1e-9;
  return NULL;
}

static void find_ends(generate_t* g, const pestle_decoder_info_t* info) {
  g->ends = info->end_ids;
  g->end_count = info->end_count;
  if (!g->cli->text[CLI_END_ID]) return;
  g->end = g->cli->count[CLI_END_ID];
  g->ends = &g->end;
  g->end_count = 1;
}

static bool is_end(const generate_t* g, int64_t id) {
  for (size_t i = 0; i < g->end_count; ++i) {
    if (g->ends[i] == id) return true;
  }
  return false;
}

static pestle_status_t encode(generate_t* g) {
  const char* path = g->cli->text[CLI_FEATURES];
  cli_array_t features = {.data = NULL};
  if (!path) return NULL;
  PESTLE_TRY(cli_npy_read(path, &features));
  const pestle_tensor_t view = cli_array_view(&features);
  int64_t begin = pestle_clock_ns();
  pestle_status_t status = pestle_decoder_encode(g->decoder, 0, &view);
  g->encode_s = (double)(pestle_clock_ns() - begin) * 1e-9;
  cli_array_deinit(&features);
  return pestle_status_annotate(status, "with '%s'", path);
}

static pestle_status_t generate(generate_t* g) {
  pestle_decoder_info_t info = {.struct_size = sizeof(info)};
  PESTLE_TRY(pestle_decoder_info(g->decoder, &info));
  const int64_t most = info.most;
  PESTLE_TRY(encode(g));
  int64_t begin = pestle_clock_ns();
  PESTLE_TRY(pestle_decoder_feed(g->decoder, 0, g->ids.data, g->prompt));
  g->prefill_s = (double)(pestle_clock_ns() - begin) * 1e-9;
  begin = pestle_clock_ns();
  for (int64_t i = 0; i < g->count; ++i) {
    int64_t id;
    PESTLE_TRY(pestle_decoder_choose(g->decoder, 0, &g->sampling, &id));
    if (!pestle_vec_push(&g->ids, id)) return PESTLE_OOM();
    if (is_end(g, id) || i + 1 == g->count) break;
    if (pestle_decoder_length(g->decoder, 0) >= most) {
      fprintf(stderr,
              "pestle: all %" PRId64 " positions are in use, so that %" PRId64
              " tokens are not made; --most gives more where the model has "
              "them\n",
              most, g->count - i - 1);
      break;
    }
    PESTLE_TRY(pestle_decoder_feed(g->decoder, 0, &id, 1));
    ++g->steps;
  }
  g->decode_s = (double)(pestle_clock_ns() - begin) * 1e-9;
  return NULL;
}

// --- What is printed ---

static double rate(size_t count, double seconds) {
  return seconds > 0 ? (double)count / seconds : 0;
}

static void print_text(const generate_t* g, const pestle_decoder_info_t* info) {
  for (size_t i = g->prompt; i < g->ids.size; ++i)
    printf("%s%" PRId64, i > g->prompt ? "," : "", g->ids.data[i]);
  printf("\n");
  if (g->cli->text[CLI_FEATURES]) {
    fprintf(stderr, "features in %.3f s, which tokens read as %.1f MB\n",
            g->encode_s, (double)info->encoder_bytes * 1e-6);
  }
  fprintf(stderr,
          "%zu tokens of prompt in %.3f s (%.1f tokens/s), %zu steps in %.3f s "
          "(%.1f tokens/s); open in %.3f s\n"
          "a token reads %.1f MB of weights and writes %" PRIu64
          " bytes of the caches (%.1f MB for %" PRId64
          " positions, %zu of %zu in place)\n",
          g->prompt, g->prefill_s, rate(g->prompt, g->prefill_s), g->steps,
          g->decode_s, rate(g->steps, g->decode_s), g->create_s,
          (double)info->weight_bytes * 1e-6, info->token_bytes,
          (double)info->cache_bytes * 1e-6, info->room, info->caches_in_place,
          info->caches);
}

static void print_json(const generate_t* g, const pestle_decoder_info_t* info) {
  pestle_json_t* json = g->cli->json;
  pestle_json_key(json, "ids");
  pestle_json_begin_array(json);
  for (size_t i = g->prompt; i < g->ids.size; ++i)
    pestle_json_i64(json, g->ids.data[i]);
  pestle_json_end_array(json);
  cli_key_i64(json, "prompt", (int64_t)g->prompt);
  cli_key_i64(json, "steps", (int64_t)g->steps);
  cli_key_f64(json, "open_s", g->create_s);
  if (g->cli->text[CLI_FEATURES]) {
    cli_key_f64(json, "encode_s", g->encode_s);
    cli_key_i64(json, "encoder_bytes", (int64_t)info->encoder_bytes);
  }
  cli_key_f64(json, "prefill_s", g->prefill_s);
  cli_key_f64(json, "decode_s", g->decode_s);
  cli_key_f64(json, "prefill_per_s", rate(g->prompt, g->prefill_s));
  cli_key_f64(json, "decode_per_s", rate(g->steps, g->decode_s));
  cli_key_i64(json, "weight_bytes", (int64_t)info->weight_bytes);
  cli_key_i64(json, "cache_bytes", (int64_t)info->cache_bytes);
  cli_key_i64(json, "token_bytes", (int64_t)info->token_bytes);
  cli_key_i64(json, "caches", (int64_t)info->caches);
  cli_key_i64(json, "caches_in_place", (int64_t)info->caches_in_place);
  cli_key_i64(json, "caches_bounded", (int64_t)info->caches_bounded);
  cli_key_i64(json, "room", info->room);
  cli_key_i64(json, "compiles", (int64_t)info->compiles);
  cli_key_f64(json, "compile_ms", (double)info->compile_ns * 1e-6);
  cli_key_i64(json, "compiles_ahead", (int64_t)info->compiles_ahead);
  cli_key_i64(json, "waits", (int64_t)info->waits);
  cli_key_i64(json, "peak_rss_kb", cli_peak_rss_kb());
}

static pestle_status_t work(generate_t* g) {
  const char* path;
  pestle_decoder_info_t info = {.struct_size = sizeof(info)};
  PESTLE_TRY(cli_only_argument(g->cli, "a model or its folder", &path));
  PESTLE_TRY(read_ids(g));
  PESTLE_TRY(check_numbers(g->cli));
  PESTLE_TRY(open(g, path));
  PESTLE_TRY(read_options(g));
  PESTLE_TRY(pestle_decoder_info(g->decoder, &info));
  find_ends(g, &info);
  PESTLE_TRY(generate(g));
  PESTLE_TRY(pestle_decoder_info(g->decoder, &info));
  if (g->cli->json) {
    print_json(g, &info);
  } else {
    print_text(g, &info);
  }
  return NULL;
}

pestle_status_t cli_generate(cli_t* cli, int* out_exit) {
  generate_t g = {.cli = cli};
  pestle_vec_init(&g.ids, pestle_allocator_system());
  pestle_status_t status = work(&g);
  pestle_decoder_release(g.decoder);
  pestle_vec_deinit(&g.ids);
  *out_exit = CLI_DONE;
  return status;
}
