/* Lanes that share memory: as threads of a GPU, as threads of a host (tests), or one lane alone, which is plain C99.

   A world has LANES lanes. They are one warp or, for more, all threads of a block; WIDTH is the number in a warp. It
   follows scalars.cu. What is generated before this text: LANES, WIDTH, and NV, the size of matrices that are
   eliminated. Lane j owns columns j, j + LANES, ... of such a matrix, in registers. */

#define WARPS (LANES / WIDTH)
#define UP(n) (((n) + 3) / 4 * 4)
#if NV <= 64
#define TURN NV /* pivots between two turns of the registers: here there is one turn */
#define UNROLL_TURNS UNROLL
#else
#define TURN 4
#ifdef __CUDACC_RTC__
#define UNROLL_TURNS _Pragma("unroll 1")
#else
#define UNROLL_TURNS
#endif
#endif
#define ROWS ((NV + TURN - 1) / TURN * TURN)
#define COLS ((ROWS + LANES - 1) / LANES)
#define COL_OF(k) (COLS == 1 ? 0 : (k) / LANES)
#define PITCH UP(ROWS)
#define COLUMN_NUMBERS (2 * PITCH) /* shared by the lanes of an elimination */

#define EACH(c, j) UNROLL for (int c = 0, j = lane; c < COLS; ++c, j += LANES) if (j < NV)
#define ALL(k, n) for (int k = lane; k < (n); k += LANES)

#ifdef __CUDACC_RTC__
FUNCTION void sync() {
  if (WARPS == 1) __syncwarp();
  else __syncthreads();
}
FUNCTION void warp_sums(int lane, T* x, int n, T* shared) {
  UNROLL for (int step = WIDTH / 2; step; step /= 2)
    UNROLL for (int i = 0; i < n; ++i) x[i] += __shfl_xor_sync(0xffffffff, x[i], step);
}
FUNCTION int warp_largest(int lane, int x, int* shared) {
  UNROLL for (int step = WIDTH / 2; step; step /= 2) {
    int other = __shfl_xor_sync(0xffffffff, x, step);
    if (other > x) x = other;
  }
  return x;
}
#elif LANES == 1
#define sync()
#define warp_sums(lane, x, n, shared)
#define warp_largest(lane, x, shared) (x)
#else /* one thread a lane, all in one warp; `meet` waits for the others */
static void meet(void);
static T told[LANES][4];
#define sync() meet()
FUNCTION void warp_sums(int lane, T* x, int n, T* shared) {
  for (int i = 0; i < n; i += 4) {
    for (int k = i; k < n && k < i + 4; ++k) told[lane][k - i] = x[k];
    meet();
    for (int k = i; k < n && k < i + 4; ++k) {
      x[k] = 0;
      for (int other = 0; other < LANES; ++other) x[k] += told[other][k - i];
    }
    meet();
  }
}
FUNCTION int warp_largest(int lane, int x, int* shared) {
  told[lane][0] = x;
  meet();
  for (int other = 0; other < LANES; ++other) x = told[other][0] > x ? (int)told[other][0] : x;
  meet();
  return x;
}
#endif

/* x[0..n), n up to 4, summed over all lanes; `shared` has 4 numbers for each warp */
FUNCTION void sums(int lane, T* x, int n, T* shared) {
  warp_sums(lane, x, n, shared);
  if (WARPS == 1) return;
  sync();
  if (lane % WIDTH == 0)
    for (int i = 0; i < n; ++i) shared[lane / WIDTH * 4 + i] = x[i];
  sync();
  for (int i = 0; i < n; ++i) {
    T total = 0;
    for (int k = 0; k < WARPS; ++k) total += shared[k * 4 + i];
    x[i] = total;
  }
}

/* the largest x >= 0 of all lanes */
FUNCTION int largest(int lane, int x, int* shared) {
  x = warp_largest(lane, x, shared);
  if (WARPS == 1) return x;
  sync();
  if (lane % WIDTH == 0) shared[lane / WIDTH] = x;
  sync();
  for (int k = 0; k < WARPS; ++k) x = shared[k] > x ? shared[k] : x;
  return x;
}

/* move the registers of all columns on by TURN rows, or back */
FUNCTION void turn_registers(T h[][ROWS], bool back) {
  if (TURN == ROWS) return;
  UNROLL for (int c = 0; c < COLS; ++c) {
    T kept[TURN];
    UNROLL for (int i = 0; i < TURN; ++i) kept[i] = h[c][back ? ROWS - TURN + i : i];
    if (back) {
      UNROLL for (int i = ROWS - 1; i >= TURN; --i) h[c][i] = h[c][i - TURN];
    } else {
      UNROLL for (int i = 0; i < ROWS - TURN; ++i) h[c][i] = h[c][i + TURN];
    }
    UNROLL for (int i = 0; i < TURN; ++i) h[c][back ? i : ROWS - TURN + i] = kept[i];
  }
}

/* Elimination without square roots. After it lane j holds row j of the upper factor below its diagonal, and the columns
   of the lower one, not yet divided by the pivots, above it; `pivot` gets 1 / D. Golub and Van Loan, 4.1. */
FUNCTION void factorise(int lane, T* columns, T h[][ROWS], T* pivot) {
  UNROLL_TURNS
  for (int start = 0; start < ROWS; start += TURN) {
    UNROLL for (int q = 0; q < TURN; ++q) {
      int k = start + q;
      T* column = columns + (q & 1) * PITCH;
      if (lane == k % LANES) {
        UNROLL for (int i = q; i < ROWS; ++i) column[i] = h[COL_OF(k)][i];
      }
      sync();
      T d = column[q], inverse = d > 0 ? 1 / d : NAN;
      UNROLL for (int c = 0; c < COLS; ++c) {
        int j = lane + LANES * c;
        if (j == k) pivot[c] = inverse;
        if (j > k && j < ROWS) {
          T m = column[j - start] * inverse;
          UNROLL for (int i = q + 1; i < ROWS; ++i)
            if (TURN == ROWS || start + i < ROWS) h[c][i] -= m * column[i];
        }
      }
    }
    turn_registers(h, false);
  }
  sync();
}

/* x of the factorised matrix for b; in place */
FUNCTION void substitute(int lane, T* columns, T h[][ROWS], const T* pivot, T* b) {
  UNROLL_TURNS
  for (int start = 0; start < ROWS; start += TURN) {
    UNROLL for (int q = 0; q < TURN; ++q) {
      int k = start + q;
      if (lane == k % LANES) columns[q & 1] = b[COL_OF(k)] * pivot[COL_OF(k)];
      sync();
      T x = columns[q & 1];
      UNROLL for (int c = 0; c < COLS; ++c)
        if (lane + LANES * c > k) b[c] -= h[c][q] * x;
    }
    turn_registers(h, false);
  }
  UNROLL_TURNS
  for (int start = ROWS - TURN; start >= 0; start -= TURN) {
    turn_registers(h, true);
    UNROLL for (int q = TURN - 1; q >= 0; --q) {
      int k = start + q;
      if (lane == k % LANES) columns[2 + (q & 1)] = b[COL_OF(k)] *= pivot[COL_OF(k)];
      sync();
      T x = columns[2 + (q & 1)];
      UNROLL for (int c = 0; c < COLS; ++c)
        if (lane + LANES * c < k) b[c] -= h[c][q] * x;
    }
  }
  sync();
}
