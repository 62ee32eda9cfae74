// SPDX-License-Identifier: Apache-2.0
// getrf, getrs, potrf and trsm for lapack_test.c, once for each type: T, AT for
// an element and FAKE for a name. They keep what LAPACK promises and nothing
// beyond: where that ends, ruin() is what comes out.

static bool FAKE(is_ruined)(const T* a, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (!isfinite(a[i])) return true;
  }
  return false;
}

static void FAKE(ruin)(T* a, int32_t count) {
  for (int32_t i = 0; !g_keeps && i < count; ++i)
    a[i] = (T)g_garbage;
}

// Of matrices whose pivots lie on the diagonal.
static void FAKE(getrf)(int32_t* m, int32_t* n, T* a, int32_t* lda,
                        int32_t* pivots, int32_t* info) {
  ++g_calls;
  assert_int_equal(*m, *lda);
  fake_pivots(pivots, *m < *n ? *m : *n);
  *info = 0;
  if (FAKE(is_ruined)(a, *m * *n)) {
    FAKE(ruin)(a, *m * *n);
    return;
  }
  for (int32_t k = 0; k < *m && k < *n; ++k) {
    T pivot = *AT(a, *m, k, k);
    if (pivot == 0 && !*info) *info = k + 1;
    for (int32_t i = k + 1; i < *m; ++i) {
      T* factor = AT(a, *m, i, k);
      if (pivot != 0) *factor /= pivot;
      for (int32_t j = k + 1; j < *n; ++j)
        *AT(a, *m, i, j) -= *factor * *AT(a, *m, k, j);
    }
  }
}

static void FAKE(potrf)(const char* uplo, int32_t* n, T* a, int32_t* lda,
                        int32_t* info, size_t length) {
  ++g_calls;
  assert_int_equal(*uplo, 'L');
  assert_int_equal(*n, *lda);
  assert_int_equal(length, 1);
  *info = 0;
  for (int32_t k = 0; k < *n; ++k) {
    T pivot = *AT(a, *n, k, k);
    if (!(pivot > 0)) {
      *info = pivot <= 0 || !g_is_blind ? k + 1 : 0;
      FAKE(ruin)(a, *n * *n);
      return;
    }
    T root = (T)sqrt((double)pivot);
    *AT(a, *n, k, k) = root;
    for (int32_t i = k + 1; i < *n; ++i)
      *AT(a, *n, i, k) /= root;
    for (int32_t j = k + 1; j < *n; ++j) {
      for (int32_t i = j; i < *n; ++i)
        *AT(a, *n, i, j) -= *AT(a, *n, i, k) * *AT(a, *n, j, k);
    }
  }
}

// op(a) x = b for one right-hand side, with reciprocals of the diagonal and
// without what would be multiplied by 0.
static void FAKE(triangle)(bool lower, bool turned, bool unit, int32_t n, T* a,
                           T* x) {
  bool down = lower != turned;
  for (int32_t step = 0; step < n; ++step) {
    int32_t i = down ? step : n - 1 - step;
    T sum = x[i];
    for (int32_t j = 0; j < step; ++j) {
      int32_t k = down ? j : n - 1 - j;
      T factor = turned ? *AT(a, n, k, i) : *AT(a, n, i, k);
      if (factor != 0 && x[k] != 0) sum -= factor * x[k];
    }
    x[i] = unit || sum == 0 ? sum : sum * (1 / *AT(a, n, i, i));
  }
  if (FAKE(is_ruined)(x, n)) FAKE(ruin)(x, n);
}

static void FAKE(trsm)(const char* side, const char* uplo, const char* trans,
                       const char* diagonal, int32_t* m, int32_t* n, T* alpha,
                       T* a, int32_t* lda, T* b, int32_t* ldb, size_t l0,
                       size_t l1, size_t l2, size_t l3) {
  ++g_calls;
  assert_int_equal(*side, 'L');
  assert_int_equal(*lda, *m);
  assert_int_equal(*ldb, *m);
  assert_true(*alpha == 1);
  assert_int_equal(l0 + l1 + l2 + l3, 4);
  for (int32_t j = 0; j < *n; ++j)
    FAKE(triangle)(*uplo == 'L', *trans == 'T', *diagonal == 'U', *m, a,
                   b + j * *m);
}

static void FAKE(getrs)(const char* trans, int32_t* n, int32_t* sides, T* a,
                        int32_t* lda, int32_t* pivots, T* b, int32_t* ldb,
                        int32_t* info, size_t length) {
  ++g_calls;
  assert_int_equal(*trans, 'N');
  assert_int_equal(*lda, *ldb);
  assert_int_equal(length, 1);
  assert_int_equal(pivots[0], 1);
  *info = 0;
  for (int32_t j = 0; j < *sides; ++j) {
    FAKE(triangle)(true, false, true, *n, a, b + j * *n);
    FAKE(triangle)(false, false, false, *n, a, b + j * *n);
  }
}
