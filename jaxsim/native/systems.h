/* Systems of equations by the lanes of a world. What is generated before this text: REAL, the type of real numbers, and
   T, of those of a world. Matrices are rows after rows. Functions begin when all operands are written, and their results
   may be read when they end. */

/* Functions of `count` matrices of n rows, one after the other in memory. EVERY goes over the entries (i, j) of `rows`
   by `cols` numbers of each matrix g, LOWER over those of a square with j <= i. Several lanes take them in turn, without
   a division for each: a lane's next entry is a known number of rows and columns on. */
#if LANES == 1
#define EVERY(g, i, j, rows, cols) \
  for (int g = 0; g < count; ++g) \
    for (int i = 0; i < (rows); ++i) \
      for (int j = 0; j < (cols); ++j)
#define LOWER(g, i, j, size) \
  for (int g = 0; g < count; ++g) \
    for (int i = 0; i < (size); ++i) \
      for (int j = 0; j <= i; ++j)
#else
/* entry {matrix, row, column} of a lane, and its steps in each */
FUNCTION void first_entry(int lane, int count, int rows, int cols, int* at) {
  int size = rows * cols;
  if (size <= 0) {
    at[0] = count;
    return;
  }
  at[0] = lane / size, at[1] = lane % size / cols, at[2] = lane % cols;
  at[3] = LANES / size, at[4] = LANES % size / cols, at[5] = LANES % cols;
}
FUNCTION void next_entry(int rows, int cols, int* at) {
  at[2] += at[5];
  int row = at[2] >= cols;
  at[2] -= row ? cols : 0;
  at[1] += at[4] + row;
  int matrix = at[1] >= rows;
  at[1] -= matrix ? rows : 0;
  at[0] += at[3] + matrix;
}
#define EVERY(g, i, j, rows, cols) \
  for (int at[6] = {0, 0, 0, 0, 0, 0}, g = (first_entry(lane, count, rows, cols, at), 0), i, j; \
       at[0] < count && (g = at[0], i = at[1], j = at[2], true); next_entry(rows, cols, at))
/* Row r of the upper half, and what is left of its length one of the lower half. */
#define LOWER(g, i, j, size) \
  for (int half = (size) / 2, tall = (size) - half, wide = (size) + 1 - (size) % 2, more = 1; more; more = 0) \
    EVERY(g, r_, c_, tall, wide) \
      for (int below = c_ <= r_ + half, i = below ? r_ + half : half - 1 - r_, j = below ? c_ : wide - 1 - c_, once = 1; \
           once; once = 0)
#endif

/* Elimination without square roots: the lower triangle of `a` holds L D, its diagonal D, `inverse` 1 / D, which is nan
   where a pivot is not positive. Golub and Van Loan, 4.1. */
FUNCTION void eliminate(int lane, int count, int n, T* a, T* inverse) {
  for (int k = 0; k < n; ++k) {
    ALL(g, count) {
      T d = a[(g * n + k) * n + k];
      inverse[g * n + k] = SELECT(d > 0, (REAL)1 / d, NAN);
    }
    sync();
    LOWER(g, i, j, n - k - 1) {
      T* mine = a + g * n * n + (k + 1) * n;
      mine[i * n + k + 1 + j] -= mine[i * n + k] * inverse[g * n + k] * mine[j * n + k];
    }
    sync();
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

/* x with a x = b (n x m) for positive a, which are overwritten */
FUNCTION void solve_positive(int lane, int count, int n, int m, T* a, T* inverse, const T* b, T* x) {
  eliminate(lane, count, n, a, inverse);
  ALL(e, count * n * m) x[e] = b[e];
  sync();
  for (int k = 0; k < n; ++k) {
    EVERY(g, r, c, n - k - 1, m) {
      int i = k + 1 + r;
      x[(g * n + i) * m + c] -= a[(g * n + i) * n + k] * inverse[g * n + k] * x[(g * n + k) * m + c];
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
   right-hand side's (i, c) at b[i * next + c * beside]. `work` is like b. */
FUNCTION void solve_triangular(int lane, int count, int n, int m, bool forward, bool unit, const T* a, int row, int col,
                               const T* b, int next, int beside, T* work, T* x) {
  ALL(e, count * n * m) work[e] = b[e];
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
