// SPDX-License-Identifier: Apache-2.0
// A model served from several threads, in any batch (docs/sessions.md): each thread
// asks for batches of its own size and checks what comes back. Exit code 0: all right.
//
//   serve [MODEL.mlir]   the model gets x [batch, 3] and gives y = x + x
#include <pthread.h>
#include <stdio.h>

#include "pestle/pestle.h"

enum { CALLERS = 4, REQUESTS = 200, MOST_ROWS = 16, COLUMNS = 3 };

static const char model[] =
    "func.func @main(%x: tensor<?x3xf32> {pestle.name = \"x\"}) -> "
    "(tensor<?x3xf32> {pestle.name = \"y\"}) {\n"
    "  %y = stablehlo.add %x, %x : tensor<?x3xf32>\n"
    "  return %y : tensor<?x3xf32>\n"
    "}\n";

// Prints |status|, if it is one, and releases it.
static int failed(pestle_status_t status) {
  if (!status) return 0;
  fprintf(stderr, "serve: %s\n", pestle_status_message(status));
  pestle_status_release(status);
  return 1;
}

typedef struct caller_t {
  pestle_session_t* session;
  pthread_t thread;
  int number, failures;
} caller_t;

// One request: |rows| rows in, |rows| rows out, in memory of the session's.
static int ask(pestle_session_t* session, int64_t rows) {
  float x[MOST_ROWS * COLUMNS];
  for (int i = 0; i < MOST_ROWS * COLUMNS; ++i)
    x[i] = (float)i;
  pestle_named_tensor_t in = {
      .name = "x", .tensor = PESTLE_TENSOR(x, PESTLE_F32, rows, COLUMNS)};
  pestle_named_tensor_t out = {.name = "y"};
  if (failed(pestle_session_run(session, &in, 1, &out, 1, NULL))) return 1;
  const float* y = out.tensor.data;
  int wrong = out.tensor.shape[0] != rows;
  for (int64_t i = 0; i < rows * COLUMNS && !wrong; ++i)
    wrong = y[i] != 2 * x[i];
  pestle_session_tensor_release(session, &out.tensor);
  if (wrong) fprintf(stderr, "serve: wrong result for %d rows\n", (int)rows);
  return wrong;
}

static void* call(void* argument) {
  caller_t* caller = argument;
  unsigned seed = 17u * (unsigned)caller->number + 3u;
  for (int i = 0; i < REQUESTS && !caller->failures; ++i) {
    seed = seed * 1664525u + 1013904223u;
    caller->failures = ask(caller->session, 1 + (seed >> 16) % MOST_ROWS);
  }
  return NULL;
}

static int serve(pestle_session_t* session) {
  caller_t callers[CALLERS];
  int failures = 0, begun = 0;
  for (; begun < CALLERS; ++begun) {
    callers[begun] = (caller_t){.session = session, .number = begun};
    if (pthread_create(&callers[begun].thread, NULL, call, &callers[begun]))
      break;
  }
  for (int i = 0; i < begun; ++i) {
    pthread_join(callers[i].thread, NULL);
    failures += callers[i].failures;
  }
  pestle_session_stats_t stats = {.struct_size = sizeof(stats)};
  if (failures || begun < CALLERS ||
      failed(pestle_session_stats(session, &stats))) {
    return 1;
  }
  printf("%d runs, %d of them padded, by %d executables\n", (int)stats.runs,
         (int)stats.padded_runs, (int)stats.executables);
  return stats.runs != CALLERS * REQUESTS;
}

static int write_model(const char* path) {
  FILE* file = fopen(path, "w");
  if (!file) return 1;
  int wrong = fputs(model, file) < 0;
  return fclose(file) || wrong;
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "serve.mlir";
  if (argc < 2 && write_model(path)) return 1;
  pestle_context_options_t environment = {.struct_size = sizeof(environment),
                                          .use_environment = true};
  pestle_context_t* context = NULL;
  pestle_session_t* session = NULL;
  // A text names no dims: "x.0" is the first of input x.
  pestle_session_options_t options = {.struct_size = sizeof(options),
                                      .shapes = "x.0=1,2,4..16"};
  int result =
      failed(pestle_context_create(&environment, &context)) ||
      failed(pestle_session_create(context, path, &options, &session)) ||
      failed(pestle_session_wait(session, NULL)) || serve(session);
  pestle_session_release(session);
  pestle_context_release(context);
  if (argc < 2) remove(path);
  return result;
}
