/* What statements are for LANES threads that share memory: of a GPU, of a host (tests), or one alone, which is plain
   C99. The lanes are one warp or, for more, all threads of a block. */

#ifdef __CUDACC_RTC__
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define TURNS(...) PRAGMA(__VA_ARGS__)
#define ALL(i, n) TURNS(unroll 1) for (int i = lane; i < (n); i += LANES) /* short code is fetched once */
/* where the compiler knows n: loads of four turns overlap */
#define ALL_OF(i, n) TURNS(unroll ((n) >= 4 * LANES ? 4 : 1)) for (int i = lane; i < (n); i += LANES)
#else
#define ALL(i, n) for (int i = lane; i < (n); i += LANES)
#define ALL_OF ALL
#endif

#ifndef WIDE
/* Numbers of one world; `wide.h` has the same for vectors of worlds. */
#define LET(type, name, ...) const type name = __VA_ARGS__
#define VARIABLE(type, name, ...) type name = __VA_ARGS__
#define DECLARE(type, name) type name
#if LANES > 1 || defined(__CUDACC_RTC__)
typedef int INDEX;
#else /* as wide as an address, so that a compiler adds constants to it there */
#include <stddef.h>
typedef ptrdiff_t INDEX;
#endif
#define EACH(i, n) for (INDEX i = 0; i < (n); ++i)
#define RANGE(i, first, end) for (INDEX i = first; i < (end); ++i)
#define UPTO(j, i) for (INDEX j = 0; j <= (i); ++j)
#define ASSIGN(name, ...) (name = (__VA_ARGS__))
#define AT(array, i) ((array)[i])
#define PUT(array, i, ...) ((array)[i] = (__VA_ARGS__))
#define INSIDE(i, most) ((INDEX)(i))
#define ANY(...) (__VA_ARGS__)
#ifdef __CUDACC_RTC__
#define NOT_VECTORIZED()
#else
#define NOT_VECTORIZED() __asm__("") /* a compiler would collect the numbers of a vector one by one */
#endif
#endif

#if LANES == 1 && !defined(__CUDACC_RTC__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* memory of a call */
static void* allocated(size_t bytes) {
  void* memory = malloc(bytes);
  if (!memory) {
    fputs("jaxsim: no memory left\n", stderr);
    abort();
  }
  return memory;
}
#ifndef WIDE
/* the product of two vectors, as eight sums (double: four): a compiler may not change the order of one */
#define DOT(type) \
  typedef type some_##type __attribute__((vector_size(32))); \
  static inline type dot_##type(const type* a, const type* b, INDEX n) { \
    enum { SOME = 32 / sizeof(type) }; \
    some_##type sums = {0}, x, y; \
    type all = 0; \
    INDEX t = 0; \
    for (; t + SOME <= n; t += SOME) { \
      memcpy(&x, a + t, 32); \
      memcpy(&y, b + t, 32); \
      sums += x * y; \
    } \
    for (; t < n; ++t) all += a[t] * b[t]; \
    for (int k = 0; k < SOME; ++k) all += sums[k]; \
    return all; \
  }
DOT(float)
DOT(double)
#endif
#endif

#if LANES == 1
#define sync()
#elif defined(__CUDACC_RTC__)
FUNCTION void sync() {
  if (LANES <= 32) __syncwarp();
  else __syncthreads();
}
#else /* one thread a lane; `meet` waits for the others */
static void meet(void);
#define sync() meet()
#endif

/* Numbers of all lanes joined: first those of a warp, by FOLDED and OF_LANE. */
#if defined(__CUDACC_RTC__) && LANES > 1
#define WARP 32
#define FOLDED(step) _Pragma("unroll") for (int step = 16; step; step /= 2)
#define OF_LANE(x, step) __shfl_xor_sync(0xffffffff, x, step)
#else
#define WARP 1
#define FOLDED(step) for (int step = 0; step; step /= 2)
#define OF_LANE(x, step) (x)
#endif
#define WARPS (LANES / WARP)

/* what is written of a number that is not finite */
FUNCTION float number_of_32_bits(int bits) {
  union { int bits; float number; } x;
  x.bits = bits;
  return x.number;
}
FUNCTION double number_of_64_bits(long long bits) {
  union { long long bits; double number; } x;
  x.bits = bits;
  return x.number;
}

/* A number joined with one in memory that other lanes change, too. GREATEST and LEAST: NaN wins. */
#ifndef WIDE
#define SET(name, type, bits) \
  FUNCTION void name(bool test, type* array, int i, type x) { \
    if (test) array[i] = x; \
  }
#if defined(__CUDACC_RTC__) && LANES > 1
#define ADD(name, type, bits) \
  FUNCTION void name(bool test, type* array, int i, type x) { \
    if (test) atomicAdd(array + i, x); \
  }
FUNCTION bool swapped_32(void* place, int old, int new_) { return atomicCAS((int*)place, old, new_) == old; }
FUNCTION bool swapped_64(void* place, long long old, long long new_) {
  typedef unsigned long long U;
  return atomicCAS((U*)place, (U)old, (U)new_) == (U)old;
}
#define BITS_32 int
#define BITS_64 long long
#define JOINED(name, type, bits, wins, better) \
  FUNCTION void name(bool test, type* array, int i, type x) { \
    union { BITS_##bits bits_; type number; } old, mine; \
    do { \
      old.bits_ = *(volatile BITS_##bits*)(array + i); \
      type now = old.number; \
      if (!test || (wins)) return; \
      mine.number = better; \
    } while (!swapped_##bits(array + i, old.bits_, mine.bits_)); \
  }
#else
#if LANES == 1
#define ALONE(statement) statement
#else
static int turn;
#define ALONE(statement) \
  while (__sync_lock_test_and_set(&turn, 1)); \
  statement \
  __sync_lock_release(&turn);
#endif
#define ADD(name, type, bits) \
  FUNCTION void name(bool test, type* array, int i, type x) { \
    if (test) { ALONE(array[i] += x;) } \
  }
#define JOINED(name, type, bits, wins, better) \
  FUNCTION void name(bool test, type* array, int i, type x) { \
    if (test) { ALONE(type now = array[i]; if (!(wins)) array[i] = better;) } \
  }
#endif
#define GREATEST(name, type, bits) JOINED(name, type, bits, now > x || now != now, x)
#define LEAST(name, type, bits) JOINED(name, type, bits, now < x || now != now, x)
#define TIMES(name, type, bits) JOINED(name, type, bits, false, now * x)
#endif

