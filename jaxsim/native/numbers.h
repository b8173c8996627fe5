/* Functions of numbers as JAX defines them where C does not: division by zero, shifts beyond the width, conversions of
   what does not fit, NaN. C99 and CUDA; `wide.h` lifts them to vectors of worlds. */

#define OF_INTEGERS(name, type, signed_type, unsigned_type, bits) \
  FUNCTION type quotient_##name(type a, type b) { \
    return b == 0 ? (type)-1 : ((type)-1 < 0 && b == (type)-1) ? (type)(0 - (unsigned_type)a) : a / b; \
  } \
  FUNCTION type remainder_##name(type a, type b) { \
    return b == 0 ? a : ((type)-1 < 0 && b == (type)-1) ? 0 : a % b; \
  } \
  FUNCTION type left_##name(type a, type b) { return (unsigned_type)b < bits ? (type)((unsigned_type)a << b) : 0; } \
  FUNCTION type right_##name(type a, type b) { return (type)((signed_type)a >> ((unsigned_type)b < bits ? b : bits - 1)); } \
  FUNCTION type right_logical_##name(type a, type b) { \
    return (unsigned_type)b < bits ? (type)((unsigned_type)a >> b) : 0; \
  }
OF_INTEGERS(int8, signed char, signed char, unsigned char, 8)
OF_INTEGERS(int32, int, int, unsigned, 32)
OF_INTEGERS(uint32, unsigned, int, unsigned, 32)
OF_INTEGERS(int64, long long, long long, unsigned long long, 64)

/* nearest integers that fit; NaN is zero. `first` is the least number that does not fit */
#define FITTED(name, type, real, least, most, first) \
  FUNCTION type name(real x) { \
    return x != x ? 0 : x >= (real)first ? most : x <= (real)least ? least : (type)x; \
  }
#define OF_REALS(suffix, real) \
  FITTED(int8_of_##suffix, signed char, real, -128, 127, 128) \
  FITTED(int32_of_##suffix, int, real, (-2147483647 - 1), 2147483647, 2147483648.) \
  FITTED(uint32_of_##suffix, unsigned, real, 0u, 4294967295u, 4294967296.) \
  FITTED(int64_of_##suffix, long long, real, (-9223372036854775807LL - 1), 9223372036854775807LL, 9223372036854775808.)
OF_REALS(float32, float)
OF_REALS(float64, double)

FUNCTION int bits_of_int32(int x) {
  unsigned y = x, n = 0;
  for (; y; y &= y - 1) ++n;
  return n;
}
FUNCTION unsigned bits_of_uint32(unsigned x) { return bits_of_int32(x); }
FUNCTION unsigned zeros_of_uint32(unsigned x) {
  unsigned n = 0;
  for (unsigned bit = 0x80000000u; bit && !(x & bit); bit >>= 1) ++n;
  return n;
}
FUNCTION int zeros_of_int32(int x) { return zeros_of_uint32(x); }
FUNCTION float sigmoidf(float x) { return 1 / (1 + expf(-x)); }
FUNCTION double sigmoid(double x) { return 1 / (1 + exp(-x)); }
