/* Systems of equations by one lane, of a world or of a vector of worlds. What is generated before this text: REAL, the
   type of real numbers, and T, of those of a world. Matrices are rows after rows. Several lanes have `systems.cu`. */

/* Functions of `count` matrices of n rows, one after the other in memory. EVERY goes over the entries (i, j) of `rows`
   by `cols` numbers of each matrix g, LOWER over those of a square with j <= i. */
#define EVERY(g, i, j, rows, cols) \
  for (int g = 0; g < count; ++g) \
    for (int i = 0; i < (rows); ++i) \
      for (int j = 0; j < (cols); ++j)
#define LOWER(g, i, j, size) \
  for (int g = 0; g < count; ++g) \
    for (int i = 0; i < (size); ++i) \
      for (int j = 0; j <= i; ++j)

/* Elimination without square roots: the lower triangle of `a` holds L D, its diagonal D, `inverse` 1 / D, which is nan
   where a pivot is not positive; the upper triangle holds (L D)', so that loops read rows. Zeros that a tree leaves are
   skipped. Golub and Van Loan, 4.1. */
FUNCTION void eliminate(int lane, int count, int n, T* a, T* inverse) {
  for (int g = 0; g < count; ++g, a += n * n, inverse += n)
    for (int k = 0; k < n; ++k) {
      T *row = a + k * n, d = row[k];
      inverse[k] = SELECT(d > 0, (REAL)1 / d, NAN);
      for (int i = k + 1; i < n; ++i) row[i] = a[i * n + k];
      for (int i = k + 1; i < n; ++i) {
        if (!ANY(row[i] != 0)) continue;
        T *mine = a + i * n, factor = row[i] * inverse[k];
        for (int j = k + 1; j <= i; ++j) mine[j] -= factor * row[j];
      }
    }
}

/* the lower Cholesky factors of a, which is overwritten */
FUNCTION void cholesky(int lane, int count, int n, T* a, T* inverse, T* factor) {
  eliminate(lane, count, n, a, inverse);
  ALL(e, count * n) inverse[e] = SQRT(inverse[e]);
  sync();
  EVERY(g, i, j, n, n) {
    T root = inverse[g * n + j];
    int e = (g * n + i) * n + j;
    factor[e] = SELECT(i < j, 0, SELECT(i == j, (REAL)1 / root, a[e] * root));
  }
  sync();
}

/* x (n x m) with a x = b, of what `eliminate` leaves */
FUNCTION void solve_eliminated(int lane, int count, int n, int m, const T* a, const T* inverse, const T* b, T* x) {
  ALL(e, count * n * m) x[e] = b[e];
  sync();
  for (int k = 0; k < n; ++k) {
    EVERY(g, r, c, n - k - 1, m) {
      int i = k + 1 + r;
      x[(g * n + i) * m + c] -= a[(g * n + k) * n + i] * inverse[g * n + k] * x[(g * n + k) * m + c];
    }
    sync();
  }
  EVERY(g, i, c, n, m) x[(g * n + i) * m + c] *= inverse[g * n + i];
  sync();
  for (int k = n - 1; k > 0; --k) {
    EVERY(g, i, c, k, m) {
      x[(g * n + i) * m + c] -= a[(g * n + k) * n + i] * inverse[g * n + i] * x[(g * n + k) * m + c];
    }
    sync();
  }
}

/* z (n x m) with L' D L z = x; `ld` has L below its diagonal, `inverse` is 1 / D */
FUNCTION void solve_ltdl(int lane, int count, int n, int m, const T* ld, const T* inverse, const T* x, T* z) {
  ALL(e, count * n * m) z[e] = x[e];
  sync();
  for (int k = n - 1; k > 0; --k) {
    EVERY(g, i, c, k, m) z[(g * n + i) * m + c] -= ld[(g * n + k) * n + i] * z[(g * n + k) * m + c];
    sync();
  }
  EVERY(g, i, c, n, m) z[(g * n + i) * m + c] *= inverse[g * n + i];
  sync();
  for (int k = 0; k < n - 1; ++k) {
    EVERY(g, r, c, n - k - 1, m) {
      int i = k + 1 + r;
      z[(g * n + i) * m + c] -= ld[(g * n + i) * n + k] * z[(g * n + k) * m + c];
    }
    sync();
  }
}

/* x (n x m) with a x = b by elimination with pivots, in memory `s` of n (n + m) numbers */
FUNCTION void solve_any(int lane, int count, int n, int m, T* s, const T* a, const T* b, T* x) {
  const int wide = n + m;
  for (int g = 0; g < count; ++g, a += n * n, b += n * m, x += n * m) {
    ALL(e, n * wide) {
      int i = e / wide, j = e % wide;
      s[e] = j < n ? a[i * n + j] : b[i * m + j - n];
    }
    sync();
    for (int k = 0; k < n; ++k) {
      VARIABLE(int, best, k);
      VARIABLE(REAL, size, -1);
      for (int i = k; i < n; ++i) {
        T here = SELECT(s[i * wide + k] < 0, -s[i * wide + k], s[i * wide + k]);
        LET(bool, larger, here > size);
        ASSIGN(size, SELECT(larger, here, size));
        ASSIGN(best, SELECT(larger, i, best));
      }
      sync();
      ALL(j, wide) {
        T kept = s[k * wide + j];
        PUT(s, k * wide + j, AT(s, best * wide + j));
        PUT(s, best * wide + j, kept);
      }
      sync();
      T inverse = (REAL)1 / s[k * wide + k];
      int right = wide - k - 1;
      ALL(e, (n - k - 1) * right) {
        int i = k + 1 + e / right, j = k + 1 + e % right;
        s[i * wide + j] -= s[i * wide + k] * inverse * s[k * wide + j];
      }
      sync();
    }
    for (int k = n - 1; k >= 0; --k) {
      ALL(e, (k + 1) * m) {
        int i = e / m, c = e % m;
        T found = s[k * wide + n + c] / s[k * wide + k];
        if (i == k) x[k * m + c] = found;
        else s[i * wide + n + c] -= s[i * wide + k] * found;
      }
      sync();
    }
  }
}

/* x (n x m) with a x = b, entries of `a` below its diagonal if `forward`, else above; (i, k) at a[i * row + k * col], a
   right-hand side's (i, c) at b[i * next + c * beside]. `work` is like b. Worlds of a vector may share both. */
#ifdef WIDE
template <class A, class B>
#else
#define A T
#define B T
#endif
FUNCTION void solve_triangular(int lane, int count, int n, int m, bool forward, bool unit, const A* a, int row, int col,
                               const B* b, int next, int beside, T* work, T* x) {
  ALL(e, count * n * m) PUT(work, e, b[e]);
  sync();
  for (int step = 0; step < n; ++step) {
    int k = forward ? step : n - 1 - step, left = n - step;
    EVERY(g, r, c, left, m) {
      int i = forward ? k + r : k - r, place = g * n * m + k * next + c * beside;
      T found = unit ? work[place] : work[place] / a[g * n * n + k * row + k * col];
      if (i == k) x[place] = found;
      else work[g * n * m + i * next + c * beside] -= a[g * n * n + i * row + k * col] * found;
    }
    sync();
  }
}
#ifndef WIDE
#undef A
#undef B
#endif
