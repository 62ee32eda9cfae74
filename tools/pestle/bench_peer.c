// SPDX-License-Identifier: Apache-2.0
// pestle bench --beside ort: ONNX Runtime by bench_ort.py, which this program has in
// itself, in a Python of its own. Nothing of it is in this process.
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

// The next line without its end, in |peer|->child.line. |verb| is what was asked.
static pestle_status_t read_answer(cli_bench_peer_t* peer, const char* verb,
                                   pestle_str_t* out_word,
                                   pestle_str_t* out_rest) {
  if (!cli_child_read(&peer->child)) {
    return PESTLE_ERROR(UNAVAILABLE,
                        "'%s', which runs onnxruntime, ended while %s",
                        peer->python, verb);
  }
  pestle_str_t line = pestle_str(peer->child.line);
  if (!pestle_str_split(line, ' ', out_word, out_rest)) {
    *out_word = line;
    *out_rest = pestle_str("");
  }
  if (!pestle_str_equal_c(*out_word, "failed")) return NULL;
  return PESTLE_ERROR(UNSUPPORTED, "onnxruntime failed while %s: %.*s", verb,
                      PESTLE_STR_ARG(*out_rest));
}

pestle_status_t cli_bench_peer_start(cli_bench_side_t* side,
                                     cli_bench_peer_t* peer) {
  const char* given = cli_environment("PESTLE_PYTHON");
  peer->python = given ? given : "python3";
  const char* const arguments[] = {peer->python, "-u", "-c", cli_bench_ort,
                                   NULL};
  pestle_str_t word, rest;
  pestle_status_t status = cli_child_start(arguments, &peer->child);
  if (!status) status = read_answer(peer, "being imported", &word, &rest);
  if (status) {
    return pestle_status_annotate(
        status,
        "--beside ort runs onnxruntime by a Python: PESTLE_PYTHON says "
        "which, else it is python3");
  }
  if (!pestle_str_equal_c(word, "here")) {
    return PESTLE_ERROR(UNAVAILABLE,
                        "--beside ort: '%s' cannot import onnxruntime (%.*s); "
                        "install it there ('%s -m pip install onnxruntime') or "
                        "name a Python that has it: PESTLE_PYTHON=FILE",
                        peer->python, PESTLE_STR_ARG(rest), peer->python);
  }
  snprintf(side->version, sizeof(side->version), "%.*s", PESTLE_STR_ARG(rest));
  return NULL;
}

// names.txt and a file an input.
static pestle_status_t write_inputs(const cli_bench_peer_t* peer,
                                    cli_job_t* job) {
  pestle_arena_t* arena = &job->cli->arena;
  pestle_strbuf_t names;
  pestle_strbuf_init(pestle_allocator_system(), &names);
  pestle_status_t status = NULL;
  for (size_t i = 0; i < job->input_count && !status; ++i) {
    pestle_io_info_t info = pestle_executable_input(job->executable, i);
    char file[40];
    snprintf(file, sizeof(file), "input_%zu.npy", i);
    const char* path = pestle_path_join(arena, peer->folder, file);
    pestle_strbuf_appendf(&names, "%s\n", info.name);
    status =
        path ? cli_npy_write(path, cli_inputs_find(&job->inputs, i, info.name))
             : PESTLE_OOM();
  }
  const char* path = pestle_path_join(arena, peer->folder, "names.txt");
  if (!status && !path) status = PESTLE_OOM();
  if (!status) status = pestle_strbuf_status(&names);
  if (!status) status = pestle_file_write(path, pestle_strbuf_view(&names));
  pestle_strbuf_deinit(&names);
  return status;
}

pestle_status_t cli_bench_peer_open(cli_bench_peer_t* peer, const char* model,
                                    cli_job_t* job, int64_t concurrency) {
  pestle_str_t word, rest;
  PESTLE_TRY(cli_temporary_folder(job->cli, &peer->folder));
  PESTLE_TRY(write_inputs(peer, job));
  fprintf(peer->child.in, "open %d %" PRId64 " %s\t%s\n",
          (int)pestle_context_threads(job->cli->context), concurrency,
          peer->folder, model);
  fflush(peer->child.in);
  return read_answer(peer, "opening the model", &word, &rest);
}

pestle_status_t cli_bench_peer_run(cli_bench_peer_t* peer, double seconds,
                                   cli_bench_side_t* side) {
  pestle_str_t word, rest, number;
  double value;
  bool is_first = true;
  fprintf(peer->child.in, "run %.6f\n", seconds);
  fflush(peer->child.in);
  PESTLE_TRY(read_answer(peer, "running", &word, &rest));
  while (side && pestle_str_next(&rest, ' ', &number)) {
    if (!pestle_str_parse_f64(number, &value)) {
      return PESTLE_ERROR(INTERNAL, "bench_ort.py said '%.*s' for a time",
                          PESTLE_STR_ARG(number));
    }
    if (is_first) {
      side->seconds += value;
    } else if (!pestle_vec_push(&side->ms, value)) {
      return PESTLE_OOM();
    }
    is_first = false;
  }
  return NULL;
}

void cli_bench_peer_stop(cli_t* cli, cli_bench_peer_t* peer) {
  cli_child_stop(&peer->child);
  if (peer->folder) cli_remove_folder(cli, peer->folder);
}
