/* Numbers of WORLDS worlds at once, in C++: a vector has an entry of each. REAL is the type of real numbers.

   What all worlds share (indices of loops, numbers of the model) is a number as before, and joins a vector as one. Truth
   is a mask: all bits of an entry, or none. Worlds take every branch that one of them takes, and keep what is theirs. */

#define WIDE
#define LANES 1
#define WORLDS (int)(64 / sizeof(REAL))
typedef REAL F __attribute__((vector_size(64)));
typedef decltype(F{} < F{}) I; /* integers, and masks */
typedef decltype(I{}[0] + 0) WHOLE;

template <class X> constexpr bool is_wide = false;
template <> constexpr bool is_wide<F> = true;
template <> constexpr bool is_wide<I> = true;
template <class X> struct Of { typedef I vector; };
template <> struct Of<REAL> { typedef F vector; };

/* a number as a vector like V */
template <class V, class X> static inline V like(X x) {
  if constexpr (is_wide<X>) return x;
  else if constexpr (is_wide<V> && __is_same(V, F)) return F{} + (REAL)x;
  else if constexpr (__is_same(X, bool)) return I{} - (WHOLE)x;
  else return I{} + (WHOLE)x;
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

#define EACH(i, n) for (int i = 0; i < (n); ++i)
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
template <> struct Of<F> { typedef F vector; };
template <class A, class X> static inline void put(A* array, int i, X x) { array[i] = like<A>(x); }
template <class A, class X> static inline void put(A* array, I i, X x) {
  A mine = like<A>(x);
  for (int w = 0; w < WORLDS; ++w) array[i[w]][w] = mine[w];
}
static inline int inside(int i, int most) { return i; }
static inline I inside(I i, int most) { return chosen(i < 0, 0, chosen(i > most, most, i)); }
#define INSIDE(i, most) inside(i, most)
static inline bool any(bool test) { return test; }
static inline bool any(I test) {
  WHOLE found = 0;
  for (int w = 0; w < WORLDS; ++w) found |= test[w];
  return found;
}
#define ANY(...) any(__VA_ARGS__)

/* A number joined with one in memory, in worlds where the test holds. */
#define JOINED(name, type, better) \
  template <class Test, class Place, class X> \
  static inline void name(Test test, typename Of<type>::vector* array, Place i, X number) { \
    typedef typename Of<type>::vector V; \
    V x = like<V>(number), now = at(array, i); \
    put(array, i, chosen(test, better, now)); \
  }
#define SET(name, type, bits) JOINED(name, type, x)
#define ADD(name, type, bits) JOINED(name, type, now + x)
#define GREATEST(name, type, bits) JOINED(name, type, chosen(now > x || now != now, now, x))
#define LEAST(name, type, bits) JOINED(name, type, chosen(now < x || now != now, now, x))

#define MATH(name) \
  static inline F name(F x) { \
    F found; \
    for (int w = 0; w < WORLDS; ++w) found[w] = __builtin_##name(x[w]); \
    return found; \
  }
#define MATH_OF_TWO(name) \
  static inline F both_##name(F x, F y) { \
    F found; \
    for (int w = 0; w < WORLDS; ++w) found[w] = __builtin_##name(x[w], y[w]); \
    return found; \
  } \
  static inline F name(F x, F y) { return both_##name(x, y); } \
  static inline F name(F x, REAL y) { return both_##name(x, like<F>(y)); } \
  static inline F name(REAL x, F y) { return both_##name(like<F>(x), y); }
#define EVERY_MATH(s) \
  MATH(sqrt##s) MATH(floor##s) MATH(ceil##s) MATH(round##s) MATH(rint##s) MATH(exp##s) MATH(log##s) MATH(sin##s) \
  MATH(cos##s) MATH(tan##s) MATH(tanh##s) MATH(cbrt##s) MATH(asin##s) MATH(acos##s) MATH(atan##s) MATH(fabs##s) \
  MATH_OF_TWO(atan2##s) MATH_OF_TWO(pow##s) MATH_OF_TWO(fmod##s)
EVERY_MATH(f)
EVERY_MATH()
using std::isfinite;
static inline I isfinite(F x) { return (x < INFINITY) & (x > -INFINITY); }
static inline F number_of_32_bits(I bits) { return (F)bits; }
static inline F number_of_64_bits(I bits) { return (F)bits; }

/* Numbers of worlds one after the other to and from vectors; there may be fewer worlds than entries. */
template <class V, class A> static inline void pack(V* to, const A* from, int size, int worlds) {
  for (int e = 0; e < size; ++e)
    for (int w = 0; w < WORLDS; ++w) {
      A x = from[(w < worlds ? w : worlds - 1) * size + e];
      to[e][w] = __is_same(A, bool) ? -(WHOLE)x : x;
    }
}
template <class V, class A> static inline void unpack(const V* from, A* to, int size, int worlds) {
  for (int w = 0; w < worlds; ++w)
    for (int e = 0; e < size; ++e) to[w * size + e] = __is_same(A, bool) ? from[e][w] != 0 : from[e][w];
}
