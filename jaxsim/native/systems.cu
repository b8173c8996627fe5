/* Systems of equations of N rows by the lanes of a world. What is generated before this text, for each N: N, and REAL,
   the type of numbers; elimination.cu. Matrices are rows after rows, `count` of them one after the other. Functions begin when all
   operands are written, and their results may be read when they end.

   A team of lanes takes a matrix, and lane j of it column j, in registers: a warp or a part of it where columns are
   few, else all lanes. What a lane hands to the others is read by all of them at once. */

#ifndef SYSTEMS_CU
#define SYSTEMS_CU
/* statements of each column j that is lane's own, the c-th one */
#define OWN(c, j) UNROLL for (int c = 0, j = member; c < COLS; ++c, j += TEAM) if (j < N)
/* statements of the systems g that teams take in turn; warps without one are done */
#define SYSTEMS(g, many) \
  const int member = lane % TEAM; \
  for (int first_ = 0, g = lane / TEAM; first_ + lane / WARP_LANES * (WARP_LANES / TEAM) < (many); first_ += TEAMS, g += TEAMS)
#endif

#if !defined(__CUDACC_RTC__) || N > 32
#define TEAM LANES
#define WARP_LANES LANES
#define team_sync sync
#else
#define TEAM (N > 16 ? 32 : N > 8 ? 16 : N > 4 ? 8 : 4)
#define WARP_LANES 32
#define team_sync __syncwarp
#endif
#define TEAMS (LANES / TEAM)
#define COLS ((N + TEAM - 1) / TEAM)
#define PITCH UP(N)
#define IN_REGISTERS (N <= 64)
/* of a factorised matrix: L D transposed, entry j >= k of row k */
#if IN_REGISTERS
#define FACTOR(s, k, j) (s)[(k) * PITCH + (j) - (k)]
#else
#define FACTOR(s, k, j) (s)[(k) * PITCH + (j)]
#endif

/* entry k of a vector y, of which each lane has its own entries; `told` are two numbers that all lanes share */
FUNCTION REAL OF(share)(int member, const REAL* y, int k, REAL* told) {
  REAL mine = y[0];
  UNROLL for (int c = 1; c < COLS; ++c) mine = k / TEAM == c ? y[c] : mine;
#if defined(__CUDACC_RTC__) && N <= 32
  return __shfl_sync(0xffffffff, mine, k, TEAM);
#else
  if (member == k % TEAM) told[k & 1] = mine;
  sync();
  return told[k & 1];
#endif
}

#if IN_REGISTERS
/* pivots from `first` on; rows and columns before it are gone from the registers, whose first one is row k's */
#define PIVOTS(first, end) \
  ROLLED for (int k = first; k < ((end) < N ? (end) : N); ++k) { \
    REAL* row = s + (g * N + k) * PITCH; \
    OWN(c, j) if (g < count) row[j >= k ? j - k : j - k + N] = j >= k ? h[c][0] : 0; \
    team_sync(); \
    /* a team without a system reads the last one, which a team of its warp has */ \
    const REAL* above = ALIGNED_ROW(s + ((g < count ? g : count - 1) * N + k) * PITCH); \
    REAL d = above[0], inv = d > 0 ? (REAL)1 / d : NAN; \
    if (g < count && member == 0) inverse[g * N + k] = inv; \
    UNROLL for (int c = 0; c < COLS; ++c) { \
      REAL factor = h[c][0] * inv; \
      UNROLL for (int i = 1; i < N - (first); ++i) h[c][i - 1] = h[c][i] - factor * above[i]; \
    } \
  }
#endif

/* Elimination without square roots of matrices with entry (i, j), j >= i, at a[i * row + j * col]: the rows of L D
   transposed in `s`, and 1 / D, which is nan where a pivot is not positive. Golub and Van Loan, 4.1. */
FUNCTION void OF(eliminate)(int lane, int count, const REAL* a, int row_, int col_, REAL* s, REAL* inverse) {
  SYSTEMS(g, count) {
#if IN_REGISTERS
    REAL h[COLS][N];
    UNROLL for (int c = 0; c < COLS; ++c) {
      int j = member + TEAM * c;
      UNROLL for (int i = 0; i < N; ++i) h[c][i] = g < count && j < N && i <= j ? a[g * N * N + i * row_ + j * col_] : 0;
    }
    PIVOTS(0, (N + 3) / 4)
#if N > (N + 3) / 4
    PIVOTS((N + 3) / 4, 2 * ((N + 3) / 4))
#endif
#if N > 2 * ((N + 3) / 4)
    PIVOTS(2 * ((N + 3) / 4), 3 * ((N + 3) / 4))
#endif
#if N > 3 * ((N + 3) / 4)
    PIVOTS(3 * ((N + 3) / 4), N)
#endif
#else
    REAL* u = s + g * N * PITCH;
    for (int i = 0; i < N; ++i) OWN(c, j) if (i <= j) u[i * PITCH + j] = a[g * N * N + i * row_ + j * col_];
    OF(eliminate_in_memory)(lane, u, inverse + count * N, inverse + g * N);
#endif
  }
  sync();
}

/* the lower Cholesky factors of a, of which the lower triangle is read */
FUNCTION void OF(cholesky)(int lane, int count, const REAL* a, REAL* s, REAL* inverse, REAL* factor) {
  OF(eliminate)(lane, count, a, 1, N, s, inverse);
  SYSTEMS(g, count) {
    if (g >= count) continue;
    const REAL* u = s + g * N * PITCH;
    OWN(c, j) {
      REAL root = SQRT(inverse[g * N + j]);
      for (int i = 0; i < N; ++i)
        factor[(g * N + i) * N + j] = i < j ? 0 : i == j ? (REAL)1 / root : FACTOR(u, j, i) * root;
    }
  }
  sync();
}

/* x (N x m) with a x = b, of what `eliminate` leaves */
FUNCTION void OF(solve_eliminated)(int lane, int count, int m, const REAL* s, REAL* inverse, const REAL* b, REAL* x) {
  SYSTEMS(e, count * m) {
    const bool mine = e < count * m;
    const int g = mine ? e / m : 0, at = g * N * m + (mine ? e % m : 0);
    const REAL* u = s + g * N * PITCH;
    REAL y[COLS];
    UNROLL for (int c = 0; c < COLS; ++c) y[c] = 0;
    OWN(c, j) y[c] = b[at + j * m];
#if IN_REGISTERS
    REAL scaled[COLS], inv[COLS];
    UNROLL for (int c = 0; c < COLS; ++c) scaled[c] = inv[c] = 0;
    OWN(c, j) inv[c] = inverse[g * N + j];
    for (int k = 0; k < N - 1; ++k) {
      UNROLL for (int c = 0; c < COLS; ++c) scaled[c] = y[c] * inv[c];
      REAL known = OF(share)(member, scaled, k, inverse + count * N);
      OWN(c, j) if (j > k) y[c] -= FACTOR(u, k, j) * known;
    }
    for (int k = N - 1; k > 0; --k) {
      UNROLL for (int c = 0; c < COLS; ++c) scaled[c] = y[c] * inv[c];
      REAL known = OF(share)(member, scaled, k, inverse + count * N);
      OWN(c, j) if (j < k) y[c] -= FACTOR(u, j, k) * known;
    }
    OWN(c, j) y[c] *= inv[c];
#else
    OF(substitute_in_memory)(lane, u, inverse + count * N, inverse + g * N, y);
#endif
    if (mine) OWN(c, j) x[at + j * m] = y[c];
    team_sync();
  }
  sync();
}

/* z (N x m) with L' D L z = x; `ld` has L below its diagonal, `inverse` is 1 / D, `told` two numbers of memory */
FUNCTION void OF(solve_ltdl)(int lane, int count, int m, const REAL* ld, const REAL* inverse, const REAL* x, REAL* told, REAL* z) {
  SYSTEMS(e, count * m) {
    const bool mine = e < count * m;
    const int g = mine ? e / m : 0, at = g * N * m + (mine ? e % m : 0);
    const REAL* l = ld + g * N * N;
    REAL y[COLS];
    UNROLL for (int c = 0; c < COLS; ++c) y[c] = 0;
    OWN(c, j) y[c] = x[at + j * m];
    for (int k = N - 1; k > 0; --k) {
      REAL known = OF(share)(member, y, k, told);
      OWN(c, j) if (j < k) y[c] -= l[k * N + j] * known;
    }
    team_sync();
    OWN(c, j) y[c] *= inverse[g * N + j];
    for (int k = 0; k < N - 1; ++k) {
      REAL known = OF(share)(member, y, k, told);
      OWN(c, j) if (j > k) y[c] -= l[j * N + k] * known;
    }
    if (mine) OWN(c, j) z[at + j * m] = y[c];
    team_sync();
  }
  sync();
}

/* x (N x m) with a x = b, entries of `a` below its diagonal if `forward`, else above; (i, k) at a[i * row + k * col], a
   right-hand side's (i, c) at b[i * next + c * beside]; `told` are two numbers of memory */
FUNCTION void OF(solve_triangular)(int lane, int count, int m, bool forward, bool unit, const REAL* a, int row, int col,
                                   const REAL* b, int next, int beside, REAL* told, REAL* x) {
  SYSTEMS(e, count * m) {
    const bool mine = e < count * m;
    const int g = mine ? e / m : 0, at = g * N * m + (mine ? e % m : 0) * beside;
    const REAL* l = a + g * N * N;
    REAL y[COLS];
    UNROLL for (int c = 0; c < COLS; ++c) y[c] = 0;
    OWN(c, j) y[c] = b[at + j * next];
    for (int step = 0; step < N; ++step) {
      int k = forward ? step : N - 1 - step;
      OWN(c, j) if (j == k && !unit) y[c] /= l[k * row + k * col];
      REAL known = OF(share)(member, y, k, told);
      OWN(c, j) if (forward ? j > k : j < k) y[c] -= l[j * row + k * col] * known;
    }
    if (mine) OWN(c, j) x[at + j * next] = y[c];
    team_sync();
  }
  sync();
}

/* x (N x m) with a x = b by elimination with pivots, in memory `s` of N (N + m) numbers; a lane takes columns */
FUNCTION void OF(solve_any)(int lane, int count, int m, REAL* s, const REAL* a, const REAL* b, REAL* x) {
  const int wide = N + m;
  for (int g = 0; g < count; ++g, a += N * N, b += N * m, x += N * m) {
    for (int i = 0; i < N; ++i) ALL(j, wide) s[i * wide + j] = j < N ? a[i * N + j] : b[i * m + j - N];
    sync();
    for (int k = 0; k < N; ++k) {
      int best = k;
      REAL size = -1;
      for (int i = k; i < N; ++i) {
        REAL here = s[i * wide + k];
        here = here < 0 ? -here : here;
        if (here > size) size = here, best = i;
      }
      REAL inverse = (REAL)1 / s[best * wide + k];
      sync();
      if (best != k) ALL(j, wide) {
        REAL kept = s[k * wide + j];
        s[k * wide + j] = s[best * wide + j];
        s[best * wide + j] = kept;
      }
      sync();
      ALL(j, wide) if (j > k) {
        REAL above = s[k * wide + j] * inverse;
        for (int i = k + 1; i < N; ++i) s[i * wide + j] -= s[i * wide + k] * above;
      }
      sync();
    }
    ALL(c, m) {
      for (int i = N - 1; i >= 0; --i) {
        REAL y = s[i * wide + N + c];
        for (int k = i + 1; k < N; ++k) y -= s[i * wide + k] * s[k * wide + N + c];
        x[i * m + c] = s[i * wide + N + c] = y / s[i * wide + i];
      }
    }
    sync();
  }
}

#undef TEAM
#undef TEAMS
#undef WARP_LANES
#undef team_sync
#undef COLS
#undef PITCH
#undef IN_REGISTERS
#undef FACTOR
#undef PIVOTS
#undef N
