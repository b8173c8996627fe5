/* Numbers of WORLDS worlds at once, in C++: a vector has an entry of each. REAL is the type of real numbers.

   VECTOR_BYTES, REAL_BITS and WORLDS are generated before this text. What all worlds share (indices of loops, numbers of
   the model) is a number as before, and joins a vector as one. Truth is a mask: all bits of an entry, or none. Worlds
   take every branch that one of them takes, and keep what is theirs. Integers have as many bits as REAL; those of fewer
   wrap after each operation (`wrap`). */

#define WIDE
#define LANES 1
typedef REAL F __attribute__((vector_size(VECTOR_BYTES)));
typedef decltype(F{} < F{}) I; /* integers, and masks */
typedef decltype(I{}[0] + 0) WHOLE;

template <class X> constexpr bool is_wide = false;
template <> constexpr bool is_wide<F> = true;
template <> constexpr bool is_wide<I> = true;
template <class X> struct Of {
  static_assert(!__is_same(X, float) && !__is_same(X, double), "a real number of another type than REAL");
  typedef I vector;
};
template <> struct Of<REAL> { typedef F vector; };
template <> struct Of<F> { typedef F vector; };
#if REAL_BITS == 32
typedef unsigned U __attribute__((vector_size(VECTOR_BYTES)));
template <> constexpr bool is_wide<U> = true;
template <> struct Of<unsigned> { typedef U vector; };
template <> struct Of<U> { typedef U vector; };
#endif

/* a number as a vector like V */
template <class V, class X> static inline V like(X x) {
  if constexpr (__is_same(V, X)) return x;
  else if constexpr (!is_wide<V>) return (V)x;
  else if constexpr (is_wide<X>) return (V)x;
  else if constexpr (__is_same(V, F)) return F{} + (REAL)x;
  else if constexpr (__is_same(X, bool)) return (V)(I{} - (WHOLE)x);
  else return (V)(I{} + (WHOLE)x);
}
template <class A, class B, bool a_is_wide, bool b_is_wide> struct Common { typedef A vector; };
template <class A, class B> struct Common<A, B, false, true> { typedef B vector; };
template <class A, class B> struct Common<A, B, false, false> { typedef typename Of<decltype(A() + B())>::vector vector; };
template <class A, class B> static inline auto chosen(I test, A a, B b) {
  typedef typename Common<A, B, is_wide<A>, is_wide<B>>::vector V;
  V x = like<V>(a), y = like<V>(b);
  return test ? x : y;
}
template <class A, class B> static inline auto chosen(bool test, A a, B b) {
  if constexpr (is_wide<A> || is_wide<B>) {
    typedef typename Common<A, B, is_wide<A>, is_wide<B>>::vector V;
    return test ? like<V>(a) : like<V>(b);
  } else return test ? a : b;
}
#define SELECT(...) chosen(__VA_ARGS__)

template <class To, class X> static inline auto convert(X x) {
  if constexpr (!is_wide<X>) return (To)x;
  else return __builtin_convertvector(x, typename Of<To>::vector);
}
#define CONVERT(type, ...) convert<type>(__VA_ARGS__)
/* an integer of a type that may have fewer bits than a vector's entries */
template <class To, class X> static inline auto wrap(X x) {
  if constexpr (!is_wide<X>) return (To)x;
  else {
    typedef typename Of<To>::vector V;
    constexpr int extra = 8 * ((int)sizeof(WHOLE) - (int)sizeof(To));
    if constexpr (extra <= 0) return (V)x;
    else if constexpr ((To)-1 < 0) return (V)((I)x << extra >> extra);
    else return (V)((I)x & (((WHOLE)1 << (8 * sizeof(To))) - 1));
  }
}
#define WRAP(type, ...) wrap<type>(__VA_ARGS__)

typedef int INDEX;
#define EACH(i, n) for (int i = 0; i < (n); ++i)
#define RANGE(i, first, end) for (int i = first; i < (end); ++i)
#define UPTO(j, i) for (int j = 0; j <= (i); ++j)
#define LET(type, name, ...) const auto name = (__VA_ARGS__)
#define VARIABLE(type, name, ...) typename Of<type>::vector name = like<typename Of<type>::vector>(__VA_ARGS__)
#define DECLARE(type, name) typename Of<type>::vector name
#define ASSIGN(name, ...) (name = like<decltype(name)>(__VA_ARGS__))
#define AT(array, ...) at(array, __VA_ARGS__)
#define PUT(array, i, ...) put(array, i, __VA_ARGS__)

template <class A> static inline A at(const A* array, int i) { return array[i]; }
template <class A> static inline auto at(const A* array, I i) {
  typedef typename Of<A>::vector V;
  typedef decltype(V{}[0] + 0) Number;
  Number found[WORLDS];
  WHOLE places[WORLDS];
  memcpy(places, &i, sizeof i);
  for (int w = 0; w < WORLDS; ++w)
    if constexpr (is_wide<A>) found[w] = ((const Number*)array)[places[w] * WORLDS + w];
    else found[w] = __is_same(A, bool) ? -(WHOLE)array[places[w]] : array[places[w]];
  V all;
  memcpy(&all, found, sizeof all);
  return all;
}
template <class A, class X> static inline void put(A* array, int i, X x) { array[i] = like<A>(x); }
template <class A, class X> static inline void put(A* array, I i, X x) {
  A mine = like<A>(x);
  for (int w = 0; w < WORLDS; ++w) array[i[w]][w] = mine[w];
}
#if REAL_BITS == 32
template <class A> static inline auto at(const A* array, U i) { return at(array, (I)i); }
template <class A, class X> static inline void put(A* array, U i, X x) { put(array, (I)i, x); }
#endif
static inline int inside(int i, int most) { return i; }
static inline I inside(I i, int most) { return chosen(i < 0, 0, chosen(i > most, most, i)); }
#define INSIDE(i, most) inside(i, most)
static inline bool any(bool test) { return test; }
static inline bool any(I test) {
  long long part[sizeof test / sizeof(long long)], found = 0;
  memcpy(part, &test, sizeof test);
  for (long long x : part) found |= x;
  return found;
}
#define ANY(...) any(__VA_ARGS__)
/* the number of the first entry where the test holds; there is one */
static inline int first_of_these(I test, I x) {
  int w = 0;
  while (!test[w]) ++w;
  return (int)x[w];
}

/* A number joined with one in memory, in worlds where the test holds; or in an array that worlds share. */
#define JOINED(name, type, better) \
  template <class Test, class V, class Place, class X> \
  static inline void name(Test test, V* array, Place i, X number) { \
    V x = like<V>(number), now = at(array, i); \
    put(array, i, chosen(test, better, now)); \
  }
#define SET(name, type, bits) JOINED(name, type, x)
#define ADD(name, type, bits) JOINED(name, type, wrap_joined<type>(now + x))
#define TIMES(name, type, bits) JOINED(name, type, wrap_joined<type>(now * x))
#define GREATEST(name, type, bits) JOINED(name, type, greater_joined<type>(now, x))
#define LEAST(name, type, bits) JOINED(name, type, less_joined<type>(now, x))
template <class To, class X> static inline auto wrap_joined(X x) {
  if constexpr (__is_same(X, F)) return x;
  else return wrap<To>(x);
}

template <class A, class V> static inline V greater_joined(V now, V x) {
  if constexpr (__is_same(A, bool)) return now | x;
  else return chosen(now > x || now != now, now, x);
}
template <class A, class V> static inline V less_joined(V now, V x) {
  if constexpr (__is_same(A, bool)) return now & x;
  else return chosen(now < x || now != now, now, x);
}

/* Functions of numbers, entry by entry. */
template <class X> static inline auto entry(X x, int w) {
  if constexpr (is_wide<X>) return x[w];
  else return x;
}
#define LIFT(name) \
  template <class... X> static inline auto name(X... x) { \
    if constexpr (!(is_wide<X> || ...)) return one::name(x...); \
    else { \
      typedef decltype(one::name(entry(x, 0)...)) Number; \
      typename Of<Number>::vector found; \
      for (int w = 0; w < WORLDS; ++w) found[w] = one::name(entry(x, w)...); \
      return found; \
    } \
  }
namespace one {
#define MATH(name) template <class... X> static inline auto name(X... x) { return __builtin_##name(x...); }
#define EVERY_MATH(DO, s) \
  DO(floor##s) DO(ceil##s) DO(round##s) DO(rint##s) DO(exp##s) DO(log##s) DO(sin##s) DO(cos##s) DO(tan##s) DO(tanh##s) \
  DO(cbrt##s) DO(asin##s) DO(acos##s) DO(atan##s) DO(fabs##s) DO(log1p##s) DO(expm1##s) DO(sinh##s) DO(cosh##s) \
  DO(exp2##s) DO(log2##s) DO(asinh##s) DO(acosh##s) DO(atanh##s) DO(erf##s) DO(atan2##s) DO(pow##s) DO(fmod##s) \
  DO(sqrt##s)
EVERY_MATH(MATH, f)
EVERY_MATH(MATH, )
NUMBERS_H
}
EVERY_MATH(LIFT, f)
EVERY_MATH(LIFT, )
LIFT(sigmoidf) LIFT(sigmoid)
#if REAL_BITS == 32
#define OF_REAL(name) name##f
#else
#define OF_REAL(name) name
#endif
#if defined(__x86_64__) && defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
/* glibc's functions of vectors, by the names of its ABI */
#if VECTOR_BYTES == 64 && REAL_BITS == 32
#define BY_VECTOR(of, name) _ZGVeN16##of##_##name##f
#elif VECTOR_BYTES == 64
#define BY_VECTOR(of, name) _ZGVeN8##of##_##name
#elif VECTOR_BYTES == 32 && REAL_BITS == 32
#define BY_VECTOR(of, name) _ZGVdN8##of##_##name##f
#elif VECTOR_BYTES == 32
#define BY_VECTOR(of, name) _ZGVdN4##of##_##name
#elif REAL_BITS == 32
#define BY_VECTOR(of, name) _ZGVbN4##of##_##name##f
#else
#define BY_VECTOR(of, name) _ZGVbN2##of##_##name
#endif
#define OF_ONE(name) \
  extern "C" F BY_VECTOR(v, name)(F); \
  static inline F OF_REAL(name)(F x) { return BY_VECTOR(v, name)(x); }
#define OF_TWO(name) \
  extern "C" F BY_VECTOR(vv, name)(F, F); \
  static inline F OF_REAL(name)(F x, F y) { return BY_VECTOR(vv, name)(x, y); } \
  static inline F OF_REAL(name)(F x, REAL y) { return BY_VECTOR(vv, name)(x, like<F>(y)); } \
  static inline F OF_REAL(name)(REAL x, F y) { return BY_VECTOR(vv, name)(like<F>(x), y); }
OF_ONE(exp) OF_ONE(log) OF_ONE(sin) OF_ONE(cos) OF_ONE(tan) OF_ONE(tanh) OF_ONE(cbrt) OF_ONE(asin) OF_ONE(acos)
OF_ONE(atan) OF_ONE(log2) OF_TWO(atan2) OF_TWO(pow)
#endif
#if VECTOR_BYTES > 16
/* by name: the compiler takes longer to read the header of all intrinsic functions than most programs */
#if REAL_BITS == 32
#define INSTRUCTION(name, ...) asm("v" name "ps " __VA_ARGS__)
#else
#define INSTRUCTION(name, ...) asm("v" name "pd " __VA_ARGS__)
#endif
#if VECTOR_BYTES == 64
#define ROUND "rndscale"
#define REGISTER "v"
#else
#define ROUND "round"
#define REGISTER "x"
#endif
#define BY_INSTRUCTION(function, name, option) \
  static inline F OF_REAL(function)(F x) { \
    F found; \
    INSTRUCTION(name, option "%1, %0" : "=" REGISTER(found) : REGISTER(x)); \
    return found; \
  }
BY_INSTRUCTION(sqrt, "sqrt", )
BY_INSTRUCTION(floor, ROUND, "$9, ")
BY_INSTRUCTION(ceil, ROUND, "$10, ")
BY_INSTRUCTION(rint, ROUND, "$8, ")
#endif
static inline F OF_REAL(fabs)(F x) { return (F)((I)x & ~((I{} + 1) << (REAL_BITS - 1))); }
#define LIFT_INTEGERS(name) \
  LIFT(quotient_##name) LIFT(remainder_##name) LIFT(left_##name) LIFT(right_##name) LIFT(right_logical_##name) \
  LIFT(name##_of_float32) LIFT(name##_of_float64)
LIFT_INTEGERS(int8) LIFT_INTEGERS(int32) LIFT_INTEGERS(uint32) LIFT_INTEGERS(int64)
#if REAL_BITS == 32
/* shifts by instructions of vectors */
template <class V> static inline V by_bits(V a, U n, bool left, bool logical) {
  V in = left ? (V)((U)a << (n & 31)) : logical ? (V)((U)a >> (n & 31)) : (V)((I)a >> (I)(n > 31 ? 31 : n));
  return left || logical ? chosen((I)(n < 32), in, V{}) : in;
}
#define SHIFT(function, V, left, logical) \
  static inline V function(V a, V b) { return by_bits(a, (U)b, left, logical); } \
  static inline V function(V a, decltype(V{}[0] + 0) b) { return by_bits(a, U{} + (unsigned)b, left, logical); }
SHIFT(left_int32, I, true, false) SHIFT(left_uint32, U, true, false)
SHIFT(right_int32, I, false, false) SHIFT(right_uint32, U, false, false)
SHIFT(right_logical_int32, I, false, true) SHIFT(right_logical_uint32, U, false, true)
#endif
LIFT(bits_of_int32) LIFT(bits_of_uint32) LIFT(zeros_of_int32) LIFT(zeros_of_uint32)
static inline bool IS_FINITE(REAL x) { return (x < INFINITY) & (x > -INFINITY); }
static inline I IS_FINITE(F x) { return (x < INFINITY) & (x > -INFINITY); }
static inline F number_of_32_bits(I bits) { return (F)bits; }
static inline F number_of_64_bits(I bits) { return (F)bits; }

#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif
/* Numbers of worlds one after the other to and from vectors; there may be fewer worlds than entries. */
#define LANES_OF(V) (int)(sizeof(V) / sizeof(V{}[0]))
/* Entry k of two vectors that exchange blocks of `s` entries: the second ones of `a` for the first ones of `b`. */
static constexpr int first_of(int s, int n, int k) { return k / s % 2 ? n + k - s : k; }
static constexpr int second_of(int s, int n, int k) { return k / s % 2 ? n + k : k + s; }
#define FOUR(of, n, k) of(s, n, k), of(s, n, k + 1), of(s, n, k + 2), of(s, n, k + 3)
template <int s, class V> static inline void exchange(V* a, V* b) {
  constexpr int n = LANES_OF(V);
  V x = *a, y = *b;
#define EXCHANGE(...) __builtin_shufflevector(x, y, __VA_ARGS__)
  if constexpr (n == 2) *a = EXCHANGE(0, 2), *b = EXCHANGE(1, 3);
  else if constexpr (n == 4) *a = EXCHANGE(FOUR(first_of, 4, 0)), *b = EXCHANGE(FOUR(second_of, 4, 0));
  else if constexpr (n == 8) {
    *a = EXCHANGE(FOUR(first_of, 8, 0), FOUR(first_of, 8, 4));
    *b = EXCHANGE(FOUR(second_of, 8, 0), FOUR(second_of, 8, 4));
  } else {
    *a = EXCHANGE(FOUR(first_of, 16, 0), FOUR(first_of, 16, 4), FOUR(first_of, 16, 8), FOUR(first_of, 16, 12));
    *b = EXCHANGE(FOUR(second_of, 16, 0), FOUR(second_of, 16, 4), FOUR(second_of, 16, 8), FOUR(second_of, 16, 12));
  }
}
/* as many vectors as each has entries (Eklundh 1972) */
template <int s = 1, class V> static inline void transpose(V* x) {
  constexpr int n = LANES_OF(V);
  if constexpr (s < n) {
    UNROLLED
    for (int i = 0; i < n; ++i)
      if (i / s % 2 == 0) exchange<s>(x + i, x + i + s);
    transpose<2 * s>(x);
  }
}
template <class V, class A> static inline void pack(V* to, const A* from, int size, int worlds) {
  int e = 0;
  if constexpr (sizeof(A) == sizeof(V{}[0]))
    for (; worlds == WORLDS && e + WORLDS <= size; e += WORLDS) {
      V block[WORLDS];
      UNROLLED
      for (int w = 0; w < WORLDS; ++w) memcpy(block + w, from + (long)w * size + e, sizeof(V));
      transpose(block);
      UNROLLED
      for (int k = 0; k < WORLDS; ++k) to[e + k] = block[k];
    }
  for (; e < size; ++e)
    for (int w = 0; w < WORLDS; ++w) {
      A x = from[(w < worlds ? w : worlds - 1) * (long)size + e];
      to[e][w] = __is_same(A, bool) ? -(WHOLE)x : x;
    }
}
template <class V, class A> static inline void unpack(const V* from, A* to, int size, int worlds) {
  int e = 0;
  if constexpr (sizeof(A) == sizeof(V{}[0]))
    for (; worlds == WORLDS && e + WORLDS <= size; e += WORLDS) {
      V block[WORLDS];
      UNROLLED
      for (int k = 0; k < WORLDS; ++k) block[k] = from[e + k];
      transpose(block);
      UNROLLED
      for (int w = 0; w < WORLDS; ++w) memcpy(to + (long)w * size + e, block + w, sizeof(V));
    }
  for (; e < size; ++e)
    for (int w = 0; w < worlds; ++w) to[w * (long)size + e] = __is_same(A, bool) ? from[e][w] != 0 : from[e][w];
}
