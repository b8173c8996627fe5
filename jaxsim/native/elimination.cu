/* Elimination of a matrix of more than 64 rows by the LANES lanes of a world, in memory; lane j owns columns j, j + LANES,
   ... What is generated before this text: N, the number of rows, and REAL, the type of numbers. */

#ifndef OF
#define JOINED_NAMES(a, b) a##b
#define NAME_OF(name, n) JOINED_NAMES(name, n)
#define OF(name) NAME_OF(name##_, N)
#ifdef __CUDACC_RTC__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define ALIGNED_ROW(x) (const REAL*)__builtin_assume_aligned(x, 16)
#else
#define UNROLL
#define ROLLED
#define ALIGNED_ROW(x) (x)
#endif
#define UP(n) (((n) + 3) / 4 * 4)
#define FOUR(q) UNROLL for (int q = 0; q < 4; ++q)
/* statements of each column j that is lane's own, the c-th one, also of those beyond the matrix */
#define SHARES ((N + LANES - 1) / LANES)
#define EACH_SHARE(c, j) UNROLL for (int c = 0, j = lane; c < SHARES; ++c, j += LANES)

/* whether one of four bytes, at a multiple of four, is not zero */
FUNCTION bool four_bytes(const signed char* x) {
  int all;
  memcpy(&all, x, 4);
  return all != 0;
}
#endif

#if N > 64
/* Elimination without square roots, four pivots at a time: row k of h, of UP(N) numbers, becomes that of L D transposed,
   from its diagonal on. `inverse` gets 1 / D, which is nan where a pivot is not positive. `shared` are 5 UP(N) + 16
   numbers. Zeros that a tree leaves are skipped. Golub and Van Loan, 4.1. */
FUNCTION void OF(eliminate_in_memory)(int lane, REAL* h, REAL* shared, REAL* inverse) {
  REAL* square = shared + 4 * UP(N);
  signed char* couples = (signed char*)(square + 16); /* whether a row is coupled with these four */
  for (int k = 0; k < N; k += 4) {
    REAL own[SHARES][4], a[4][4], inv[4];
    EACH_SHARE(c, j) {
      FOUR(q) own[c][q] = k + q <= j && j < N ? h[(k + q) * UP(N) + j] : 0;
      if (j >= k && j < k + 4) FOUR(q) square[(j - k) * 4 + q] = j < N ? own[c][q] : q == j - k;
    }
    sync();
    FOUR(r) FOUR(q) a[q][r] = square[r * 4 + q];
    FOUR(q) {
      inv[q] = a[q][q] > 0 ? 1 / a[q][q] : NAN;
      if (lane == 0 && k + q < N) inverse[k + q] = inv[q];
      UNROLL for (int r = q + 1; r < 4; ++r) {
        REAL m = a[q][r] * inv[q];
        UNROLL for (int i = r; i < 4; ++i) a[r][i] -= m * a[q][i];
        for (int c = 0; c < SHARES; ++c) own[c][r] -= m * own[c][q];
      }
    }
    bool mine = false;
    EACH_SHARE(c, j) {
      bool any = false;
      FOUR(q) {
        if (j >= k + q && j < UP(N)) shared[j * 4 + q] = own[c][q];
        if (j >= k + q && j < N) h[(k + q) * UP(N) + j] = own[c][q];
        own[c][q] = j >= k + 4 && j < N ? own[c][q] : 0;
        any = any || own[c][q] != 0;
        own[c][q] *= inv[q];
      }
      if (j < UP(N)) couples[j] = any;
      mine = mine || any;
    }
    sync();
    for (int i = k + 4; mine && i < N; i += 4) {
      if (!four_bytes(couples + i)) continue;
      EACH_SHARE(c, j) {
        REAL entry[4];
        FOUR(r) entry[r] = i + r <= j && j < N ? h[(i + r) * UP(N) + j] : 0;
        FOUR(r) FOUR(q) entry[r] -= own[c][q] * shared[(i + r) * 4 + q];
        FOUR(r) if (i + r <= j && j < N) h[(i + r) * UP(N) + j] = entry[r];
      }
    }
  }
  sync();
}

/* x of the factorised matrix for b, of which each lane has its own entries; in place. `told` are 16 shared numbers. */
FUNCTION void OF(substitute_in_memory)(int lane, const REAL* h, REAL* told, const REAL* inverse, REAL* b) {
  for (int k = 0; k < N; k += 4) {
    REAL *now = told + (k & 4), x[4];
    EACH_SHARE(c, j) if (j >= k && j < k + 4) now[j - k] = j < N ? b[c] : 0;
    sync();
    FOUR(q) x[q] = now[q];
    FOUR(q) {
      EACH_SHARE(c, j) if (j == k + q) b[c] = x[q];
      x[q] *= k + q < N ? inverse[k + q] : 0;
      UNROLL for (int r = q + 1; r < 4; ++r) if (k + r < N) x[r] -= h[(k + q) * UP(N) + k + r] * x[q];
      EACH_SHARE(c, j) if (j >= k + 4 && j < N) b[c] -= h[(k + q) * UP(N) + j] * x[q];
    }
  }
  for (int k = (N - 1) / 4 * 4; k >= 0; k -= 4) {
    REAL *now = told + 8 + (k & 4), x[4];
    EACH_SHARE(c, j) if (j >= k && j < k + 4) now[j - k] = j < N ? b[c] : 0;
    sync();
    UNROLL for (int q = 3; q >= 0; --q) {
      x[q] = now[q];
      UNROLL for (int r = q + 1; r < 4; ++r) if (k + r < N) x[q] -= h[(k + q) * UP(N) + k + r] * x[r];
      x[q] *= k + q < N ? inverse[k + q] : 0;
      EACH_SHARE(c, j) {
        if (j == k + q) b[c] = x[q];
        if (j < k && k + q < N) b[c] -= h[j * UP(N) + k + q] * x[q];
      }
    }
  }
  sync();
}
#endif
