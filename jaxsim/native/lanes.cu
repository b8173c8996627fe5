/* Lanes that share memory: as threads of a GPU, as threads of a host (tests), or one lane alone, which is plain C99.

   A world has LANES lanes. They are one warp or, for more, all threads of a block; WIDTH is the number in a warp. It
   follows scalars.cu; elimination.cu follows it. What is generated before this text: LANES, WIDTH, and NV, the size of matrices that are
   eliminated. Lane j owns columns j, j + LANES, ... of such a matrix, in registers. */

#define WARPS (LANES / WIDTH)
#define UP(n) (((n) + 3) / 4 * 4)
#define MANY (NV > 64) /* columns are in memory, their entries up to the diagonal */
#define PITCH UP(NV)
#define COLS ((NV + LANES - 1) / LANES)
#if MANY
typedef T* Matrix;
#define ENTRY(h, c, i, j) (h)[(i) * PITCH + (j)]
#define EVERY_ROW(i, j) for (int i = 0; i <= (j) && (j) < NV; ++i)
#define COLUMN_NUMBERS (6 * PITCH + 16) /* shared by the lanes of an elimination (elimination.cu) */
#else
typedef T (*Matrix)[NV];
#define ENTRY(h, c, i, j) (h)[c][i]
#define EVERY_ROW(i, j) UNROLL for (int i = 0; i < NV; ++i)
#define COLUMN UP(NV + 1)
#define COLUMN_NUMBERS (2 * COLUMN)
#endif

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

#if !MANY
/* x of lane `other`; `shared` has two numbers, which successive calls use in turn */
#if defined(__CUDACC_RTC__) && WARPS == 1
#define OF_LANE(lane, other, x, shared, turn) __shfl_sync(0xffffffff, x, other)
#elif LANES == 1
#define OF_LANE(lane, other, x, shared, turn) (x)
#else
#define OF_LANE(lane, other, x, shared, turn) of_lane(lane, other, x, (shared) + ((turn) & 1))
FUNCTION T of_lane(int lane, int other, T x, T* shared) {
  if (lane == other) shared[0] = x;
  sync();
  return shared[0];
}
#endif

/* Elimination without square roots of a symmetric matrix, and its first half for the vector b, in place. What is left
   stays symmetric, so that a pivot's column is a row: one entry of each lane. After it lane j holds row j of the upper
   factor below its diagonal, and the columns of the lower one, not yet divided by the pivots, above it; `pivot` gets
   1 / D. Golub and Van Loan, 4.1. */
FUNCTION void factorise(int lane, T* columns, Matrix h, T* pivot, T* b) {
  UNROLL for (int k = 0; k < NV; ++k) {
    T* column = columns + (k & 1) * COLUMN;
    EACH(c, j) column[j] = h[c][k];
    if (lane == k % LANES) column[NV] = b[k / LANES];
    sync();
    T d = column[k], inverse = d > 0 ? reciprocal(d) : NAN;
    UNROLL for (int c = k / LANES; c < COLS; ++c) {
      int j = lane + LANES * c;
      if (j == k) pivot[c] = inverse;
      T m = j > k ? h[c][k] * inverse : 0; /* lanes that have their factor subtract zero: a branch takes longer */
      UNROLL for (int i = k + 1; i < NV; ++i) h[c][i] -= m * column[i];
      b[c] -= m * column[NV];
    }
  }
  sync();
}

/* the first half of the elimination for another vector, in place */
FUNCTION void eliminate(int lane, T* columns, Matrix h, const T* pivot, T* b) {
  UNROLL for (int k = 0; k < NV; ++k) {
    T x = OF_LANE(lane, k % LANES, b[k / LANES] * pivot[k / LANES], columns, k);
    UNROLL for (int c = 0; c < COLS; ++c)
      if (lane + LANES * c > k) b[c] -= h[c][k] * x;
  }
  sync();
}

/* the second half: x of the factorised matrix, in place */
FUNCTION void substitute(int lane, T* columns, Matrix h, const T* pivot, T* b) {
  UNROLL for (int k = NV - 1; k >= 0; --k) {
    T x = OF_LANE(lane, k % LANES, b[k / LANES] * pivot[k / LANES], columns, k);
    UNROLL for (int c = 0; c < COLS; ++c)
      if (lane + LANES * c < k) b[c] -= h[c][k] * x;
  }
  UNROLL for (int c = 0; c < COLS; ++c) b[c] *= pivot[c];
  sync();
}
#else
#define FACTORISED(columns) (columns) + PITCH, columns /* memory of the elimination, 1 / D */
#define factorise(lane, columns, h, pivot, b) OF(eliminate_in_memory)(lane, h, FACTORISED(columns))
#define eliminate(lane, columns, h, pivot, b)
#define substitute(lane, columns, h, pivot, b) OF(substitute_in_memory)(lane, h, FACTORISED(columns), b)
#endif
