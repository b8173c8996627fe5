/* Systems of equations by one lane, of a world or of a vector of worlds. What is generated before this text: REAL, the
   type of real numbers, and T, of those of a world. Matrices are rows after rows. Several lanes have `systems.cu`. */

/* Functions of `count` matrices of n rows, one after the other in memory. They are statements of the generator
   (`writer.py`), which a TPU's programs evaluate as well (`blocks.py`). */

/* Elimination without square roots: the lower triangle of `a` holds L D, its diagonal D, `inverse` 1 / D, which is nan
   where a pivot is not positive; the upper triangle holds (L D)', so that loops read rows. Zeros that a tree leaves are
   skipped. Golub and Van Loan, 4.1. */
FUNCTION void eliminate(int lane, int count, int n, T* a, T* inverse) {
  EACH(g, count) for (int k = 0; k < n; ++k) {
    LET(int, row, (g * n + k) * n);
    LET(REAL, pivot, AT(a, row + k));
    LET(REAL, reciprocal, SELECT(pivot > 0, (REAL)1 / pivot, NAN));
    PUT(inverse, g * n + k, reciprocal);
    RANGE(i, k + 1, n) PUT(a, row + i, AT(a, (g * n + i) * n + k));
    for (int i = k + 1; i < n; ++i) {
      LET(REAL, below, AT(a, row + i));
      if (!ANY(below != 0)) continue;
      LET(REAL, factor, below * reciprocal);
      LET(int, mine, (g * n + i) * n);
      RANGE(j, k + 1, i + 1) PUT(a, mine + j, AT(a, mine + j) - factor * AT(a, row + j));
    }
  }
}

/* the lower Cholesky factors of a, which is overwritten */
FUNCTION void cholesky(int lane, int count, int n, T* a, T* inverse, T* factor) {
  eliminate(lane, count, n, a, inverse);
  EACH(e, count * n) PUT(inverse, e, SQRT(AT(inverse, e)));
  EACH(g, count) EACH(i, n) {
    LET(int, row, (g * n + i) * n);
    RANGE(j, 0, i) PUT(factor, row + j, AT(a, row + j) * AT(inverse, g * n + j));
    PUT(factor, row + i, (REAL)1 / AT(inverse, g * n + i));
    RANGE(j, i + 1, n) PUT(factor, row + j, 0);
  }
}

/* x (n x m) with a x = b, of what `eliminate` leaves */
FUNCTION void solve_eliminated(int lane, int count, int n, int m, const T* a, const T* inverse, const T* b, T* x) {
  EACH(e, count * n * m) PUT(x, e, AT(b, e));
  EACH(g, count) {
    for (int k = 0; k < n; ++k) RANGE(i, k + 1, n) {
      LET(REAL, factor, AT(a, (g * n + k) * n + i) * AT(inverse, g * n + k));
      LET(int, to, (g * n + i) * m);
      EACH(c, m) PUT(x, to + c, AT(x, to + c) - factor * AT(x, (g * n + k) * m + c));
    }
    EACH(i, n) EACH(c, m) PUT(x, (g * n + i) * m + c, AT(x, (g * n + i) * m + c) * AT(inverse, g * n + i));
    for (int k = n - 1; k > 0; --k) EACH(i, k) {
      LET(REAL, factor, AT(a, (g * n + k) * n + i) * AT(inverse, g * n + i));
      LET(int, to, (g * n + i) * m);
      EACH(c, m) PUT(x, to + c, AT(x, to + c) - factor * AT(x, (g * n + k) * m + c));
    }
  }
}

/* z (n x m) with L' D L z = x; `ld` has L below its diagonal, `inverse` is 1 / D */
FUNCTION void solve_ltdl(int lane, int count, int n, int m, const T* ld, const T* inverse, const T* x, T* z) {
  EACH(e, count * n * m) PUT(z, e, AT(x, e));
  EACH(g, count) {
    for (int k = n - 1; k > 0; --k) EACH(i, k) {
      LET(REAL, factor, AT(ld, (g * n + k) * n + i));
      LET(int, to, (g * n + i) * m);
      EACH(c, m) PUT(z, to + c, AT(z, to + c) - factor * AT(z, (g * n + k) * m + c));
    }
    EACH(i, n) EACH(c, m) PUT(z, (g * n + i) * m + c, AT(z, (g * n + i) * m + c) * AT(inverse, g * n + i));
    for (int k = 0; k < n; ++k) RANGE(i, k + 1, n) {
      LET(REAL, factor, AT(ld, (g * n + i) * n + k));
      LET(int, to, (g * n + i) * m);
      EACH(c, m) PUT(z, to + c, AT(z, to + c) - factor * AT(z, (g * n + k) * m + c));
    }
  }
}

/* x (n x m) with a x = b by elimination with pivots, in memory `s` of n (n + m) numbers */
FUNCTION void solve_any(int lane, int count, int n, int m, T* s, const T* a, const T* b, T* x) {
  LET(int, wide, n + m);
  for (int g = 0; g < count; ++g) {
    EACH(i, n) {
      EACH(j, n) PUT(s, i * wide + j, AT(a, (g * n + i) * n + j));
      EACH(j, m) PUT(s, i * wide + n + j, AT(b, (g * n + i) * m + j));
    }
    for (int k = 0; k < n; ++k) {
      VARIABLE(int, best, k);
      VARIABLE(REAL, size, -1);
      for (int i = k; i < n; ++i) {
        LET(REAL, entry, AT(s, i * wide + k));
        LET(REAL, here, SELECT(entry < 0, -entry, entry));
        LET(bool, larger, here > size);
        ASSIGN(size, SELECT(larger, here, size));
        ASSIGN(best, SELECT(larger, i, best));
      }
      for (int i = k + 1; i < n; ++i) { /* exchange rows: worlds have pivots of their own */
        LET(bool, here, best == i);
        if (!ANY(here)) continue;
        EACH(j, wide) {
          LET(REAL, upper, AT(s, k * wide + j));
          LET(REAL, lower, AT(s, i * wide + j));
          PUT(s, k * wide + j, SELECT(here, lower, upper));
          PUT(s, i * wide + j, SELECT(here, upper, lower));
        }
      }
      LET(REAL, inverse, (REAL)1 / AT(s, k * wide + k));
      for (int i = k + 1; i < n; ++i) {
        LET(REAL, factor, AT(s, i * wide + k) * inverse);
        RANGE(j, k + 1, wide) PUT(s, i * wide + j, AT(s, i * wide + j) - factor * AT(s, k * wide + j));
      }
    }
    for (int k = n - 1; k >= 0; --k) EACH(c, m) {
      LET(REAL, found, AT(s, k * wide + n + c) / AT(s, k * wide + k));
      PUT(x, (g * n + k) * m + c, found);
      EACH(i, k) PUT(s, i * wide + n + c, AT(s, i * wide + n + c) - AT(s, i * wide + k) * found);
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
  EACH(e, count * n * m) PUT(work, e, AT(b, e));
  EACH(g, count) for (int step = 0; step < n; ++step) {
    LET(int, k, SELECT(forward, step, n - 1 - step));
    EACH(c, m) {
      LET(int, from, g * n * m + k * next + c * beside);
      LET(REAL, found, AT(work, from) / SELECT(unit, (REAL)1, AT(a, g * n * n + k * row + k * col)));
      PUT(x, from, found);
      RANGE(r, 1, n - step) {
        LET(int, i, SELECT(forward, k + r, k - r));
        LET(int, to, g * n * m + i * next + c * beside);
        PUT(work, to, AT(work, to) - AT(a, g * n * n + i * row + k * col) * found);
      }
    }
  }
}
#ifndef WIDE
#undef A
#undef B
#endif
