/* Numbers of kernels, in CUDA and C99 alike. What is generated before this text: REAL, and TINY and EPS of that type
   (see `sqrt` in math/safe.py). */

#ifdef __CUDACC_RTC__
#define FUNCTION static __device__ __forceinline__
#define TABLE static __device__ const
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define UNROLL _Pragma("unroll")
#else
#include <math.h>
#include <stdbool.h>
#define FUNCTION static inline
#define TABLE static const
#define UNROLL
#endif

typedef REAL T;
#define SQRT(x) (sizeof(T) == 4 ? sqrtf(x) : sqrt(x))

/* 1 / x of a normal number, to two units in the last place in single precision: one instruction of a GPU */
FUNCTION T reciprocal(T x) {
#ifdef __CUDACC_RTC__
  if (sizeof(T) == 4) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"((float)x));
    return y;
  }
#endif
  return 1 / x;
}

FUNCTION T ratio(T a, T b) { return b != 0 ? a / b : 0; }

FUNCTION T root(T x) {
  T y = SQRT(x > TINY * TINY ? x : TINY * TINY);
  return y > 2 * TINY ? y : 0;
}
