// SPDX-License-Identifier: Apache-2.0
// cblas_worker FOLDER THREADS LIBRARY: products of f32 by the cblas_sgemm() of
// a library, as one more program of compare.py; serve.h has the protocol. The
// library takes its threads from the environment.
#include <dlfcn.h>

#include "serve.h"

typedef void sgemm_t(int order, int transpose_a, int transpose_b, int m, int n,
                     int k, float alpha, const float* a, int lda,
                     const float* b, int ldb, float beta, float* c, int ldc);

typedef struct worker_t {
  const char* folder;
  sgemm_t* sgemm;
  int m, n, k;
  float *a, *b, *c;
} worker_t;

static bool run(void* state) {
  enum { ROW_MAJOR = 101, PLAIN = 111 };
  worker_t* w = state;
  w->sgemm(ROW_MAJOR, PLAIN, PLAIN, w->m, w->n, w->k, 1, w->a, w->k, w->b, w->n,
           0, w->c, w->n);
  return true;
}

static float* make(float* old, int rows, int columns) {
  size_t size = (size_t)rows * (size_t)columns * sizeof(float);
  free(old);
  return aligned_alloc(64, (size + 63) / 64 * 64);
}

static bool prepare(void* state, const char* name) {
  worker_t* w = state;
  if (sscanf(name, "gemm_%d_%d_%d", &w->m, &w->n, &w->k) != 3)
    return serve_error("not for this peer");
  size_t m = (size_t)w->m, n = (size_t)w->n, k = (size_t)w->k;
  w->a = make(w->a, w->m, w->k);
  w->b = make(w->b, w->k, w->n);
  w->c = make(w->c, w->m, w->n);
  if (!w->a || !w->b || !w->c) return serve_error("out of memory");
  if (!serve_read(w->folder, name, 0, w->a, m * k * sizeof(float)) ||
      !serve_read(w->folder, name, 1, w->b, k * n * sizeof(float))) {
    return false;
  }
  double start = serve_now();
  run(w);
  serve_ready(serve_now() - start, 0, w->c, m * n, false);
  return true;
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: cblas_worker FOLDER THREADS LIBRARY\n");
    return 2;
  }
  worker_t w = {.folder = argv[1]};
  void* library = dlopen(argv[3], RTLD_NOW);
  void* symbol = library ? dlsym(library, "cblas_sgemm") : NULL;
  if (!symbol) {
    serve_error("%s", dlerror());
    return 1;
  }
  memcpy(&w.sgemm, &symbol, sizeof(symbol));
  serve(prepare, run, &w);
  return 0;
}
