/* Systems of small matrices, by LANES lanes a matrix; it follows lanes.cu. What is generated before this text: NV rows,
   RIGHT right-hand sides. Numbers of a matrix are rows after rows, those of right-hand sides as well. */

/* the columns of a; rows and columns from NV on are those of a unit matrix */
FUNCTION void load(int lane, const T* a, T h[][ROWS]) {
  UNROLL for (int c = 0; c < COLS; ++c) {
    int j = lane + LANES * c;
    UNROLL for (int i = 0; i < ROWS; ++i) h[c][i] = i < NV && j < NV ? a[i * NV + j] : i == j ? 1 : 0;
  }
}

/* x with a x = b for a positive matrix; nan for others */
FUNCTION void solve_positive(int lane, T* shared, const T* a, const T* b, T* x) {
  T h[COLS][ROWS], pivot[COLS], y[COLS];
  load(lane, a, h);
  factorise(lane, shared, h, pivot);
  for (int r = 0; r < RIGHT; ++r) {
    for (int c = 0; c < COLS; ++c) y[c] = 0;
    EACH(c, j) y[c] = b[j * RIGHT + r];
    substitute(lane, shared, h, pivot, y);
    EACH(c, j) x[j * RIGHT + r] = y[c];
  }
}

/* the lower Cholesky factor */
FUNCTION void cholesky(int lane, T* shared, const T* a, T* factor) {
  T h[COLS][ROWS], pivot[COLS];
  load(lane, a, h);
  factorise(lane, shared, h, pivot);
  EACH(c, j) {
    T root = SQRT(pivot[c]);
    UNROLL for (int i = 0; i < NV; ++i) factor[i * NV + j] = i < j ? 0 : i == j ? 1 / root : h[c][i] * root;
  }
}

/* z with L' D L z = x; `ld` has L below its diagonal, `inverse` 1 / D */
FUNCTION void solve_ltdl(int lane, T* shared, const T* ld, const T* inverse, const T* x, T* z) {
  T h[COLS][ROWS], row[COLS][ROWS], y[COLS];
  load(lane, ld, h);
  UNROLL for (int c = 0; c < COLS; ++c) {
    int i = lane + LANES * c;
    UNROLL for (int j = 0; j < ROWS; ++j) row[c][j] = i < NV && j < i ? ld[i * NV + j] : 0;
  }
  for (int r = 0; r < RIGHT; ++r) {
    EACH(c, j) y[c] = x[j * RIGHT + r];
    UNROLL for (int k = NV - 1; k > 0; --k) {
      if (lane == k % LANES) shared[k & 1] = y[COL_OF(k)];
      sync();
      EACH(c, j) if (j < k) y[c] -= h[c][k] * shared[k & 1];
    }
    sync();
    EACH(c, j) y[c] *= inverse[j];
    UNROLL for (int k = 0; k < NV - 1; ++k) {
      if (lane == k % LANES) shared[k & 1] = y[COL_OF(k)];
      sync();
      EACH(c, j) y[c] -= row[c][k] * shared[k & 1];
    }
    sync();
    EACH(c, j) z[j * RIGHT + r] = y[c];
  }
}

/* x with a x = b by elimination with pivots, in memory that the lanes share: NV rows of NV + RIGHT */
FUNCTION void solve_any(int lane, T* s, const T* a, const T* b, T* x) {
  const int wide = NV + RIGHT;
  for (int i = 0; i < NV; ++i) ALL(j, wide) s[i * wide + j] = j < NV ? a[i * NV + j] : b[i * RIGHT + j - NV];
  sync();
  for (int k = 0; k < NV; ++k) {
    int best = k;
    T size = -1;
    for (int i = k; i < NV; ++i) {
      T here = s[i * wide + k] < 0 ? -s[i * wide + k] : s[i * wide + k];
      if (here > size) size = here, best = i;
    }
    sync();
    if (best != k) ALL(j, wide) {
      T kept = s[k * wide + j];
      s[k * wide + j] = s[best * wide + j];
      s[best * wide + j] = kept;
    }
    sync();
    T inverse = 1 / s[k * wide + k];
    ALL(j, wide) if (j > k) {
      T above = s[k * wide + j] * inverse;
      for (int i = k + 1; i < NV; ++i) s[i * wide + j] -= s[i * wide + k] * above;
    }
    sync();
  }
  for (int r = 0; r < RIGHT; ++r) {
    T* y = s + NV + r;
    for (int k = NV - 1; k >= 0; --k) {
      T found = y[k * wide] / s[k * wide + k];
      if (lane == 0) x[k * RIGHT + r] = found;
      ALL(i, k) y[i * wide] -= s[i * wide + k] * found;
      sync();
    }
  }
}
