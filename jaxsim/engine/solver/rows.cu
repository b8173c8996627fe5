/* Forces, costs and curvatures of constraint rows, in CUDA and C99 alike. problem.py defines what is right.

   It follows scalars.cu. What is generated before this text: DIM rows of a contact in its frame, NF facets, ELLIPTIC.
   Of a contact, D and r are at its first row, and `scale` is mu and its DIM - 1 coefficients of friction. */

#define BLOCK (DIM * DIM)

typedef struct {
  T u[DIM], n, t, weight, mu;
  bool bottom, middle;
} Cone;

FUNCTION Cone make_cone(const T* D, const T* scale, const T* r) {
  Cone k;
  T square = 0;
  k.mu = scale[0];
  UNROLL for (int i = 0; i < DIM; ++i) {
    k.u[i] = D[i] > 0 ? r[i] * scale[i] : 0;
    if (i) square += k.u[i] * k.u[i];
  }
  k.n = k.u[0];
  k.t = root(square);
  T normal = k.mu <= 0 ? r[0] : k.n;
  bool top = normal >= k.mu * k.t || (k.t <= 0 && normal >= 0);
  k.bottom = !top && (k.mu * normal + k.t <= 0 || (k.t <= 0 && normal < 0));
  k.middle = !top && !k.bottom;
  k.weight = ratio(D[0], k.mu * k.mu * (1 + k.mu * k.mu));
  return k;
}

FUNCTION void cone_force(const T* D, const T* scale, const T* r, T* f) {
  Cone k = make_cone(D, scale, r);
  T normal = -k.weight * (k.n - k.mu * k.t) * k.mu, pull = -ratio(normal, k.t);
  UNROLL for (int i = 0; i < DIM; ++i) {
    T middle = i ? pull * k.u[i] * scale[i] : normal;
    f[i] = k.bottom ? -D[i] * r[i] : k.middle ? middle : 0;
  }
}

FUNCTION T cone_cost(const T* D, const T* scale, const T* r) {
  Cone k = make_cone(D, scale, r);
  T square = 0, gap = k.n - k.mu * k.t;
  UNROLL for (int i = 0; i < DIM; ++i) square += D[i] * r[i] * r[i];
  return (T)0.5 * (k.bottom ? square : k.middle ? k.weight * gap * gap : 0);
}

/* z' s'' z of a contact */
FUNCTION T cone_along(const T* D, const T* scale, const T* r, const T* z) {
  Cone k = make_cone(D, scale, r);
  T slope = ratio(k.mu, k.t), rest = k.mu * k.mu - slope * k.n, outer = ratio(k.mu * k.n, k.t * k.t * k.t);
  T quadratic = 0, along = 0, square = 0, first = z[0] * k.mu;
  UNROLL for (int i = 0; i < DIM; ++i) {
    T y = z[i] * scale[i];
    quadratic += D[i] * z[i] * z[i];
    if (i) along += k.u[i] * y, square += y * y;
  }
  T middle = first * (first - 2 * slope * along) + outer * along * along + rest * square;
  return k.bottom ? quadratic : k.middle ? k.weight * middle : 0;
}

FUNCTION T scalar_force(T D, T lo, T hi, T r) {
  T t = D * r;
  return -(t <= lo ? lo : t >= hi ? hi : t);
}

FUNCTION T scalar_weight(T D, T lo, T hi, T r) {
  T t = D * r;
  return t > lo && t < hi ? D : 0;
}

FUNCTION T scalar_cost(T D, T lo, T hi, T r) {
  T t = D * r, bound = t <= lo ? lo : hi;
  if (t > lo && t < hi) return (T)0.5 * t * r;
  return bound * r - (T)0.5 * ratio(bound * bound, D);
}

/* s'' of a contact in its frame (DIM, DIM), whatever the cone; lo and hi as D */
FUNCTION void curvature(const T* D, const T* lo, const T* hi, const T* scale, const T* r, T* block) {
  UNROLL for (int i = 0; i < BLOCK; ++i) block[i] = 0;
#if ELLIPTIC
  Cone k = make_cone(D, scale, r);
  T slope = ratio(k.mu, k.t), rest = k.mu * k.mu - slope * k.n, outer = ratio(k.mu * k.n, k.t * k.t * k.t);
  UNROLL for (int i = 0; i < DIM; ++i)
    UNROLL for (int j = i; j < DIM; ++j) {
      T value = j == 0 ? 1 : i == 0 ? -slope * k.u[j] : outer * k.u[i] * k.u[j] + (i == j ? rest : 0);
      value *= k.weight * scale[i] * scale[j];
      T quadratic = i == j ? D[i] : 0;
      block[i * DIM + j] = block[j * DIM + i] = k.bottom ? quadratic : k.middle ? value : 0;
    }
#else
  if (DIM == 1) block[0] = scalar_weight(D[0], lo[0], hi[0], r[0]);
  UNROLL for (int i = 1, at = 0; i < DIM; ++i, at += 2) {
    T plus = scalar_weight(D[at], lo[at], hi[at], r[at]), mu = scale[i];
    T minus = scalar_weight(D[at + 1], lo[at + 1], hi[at + 1], r[at + 1]);
    block[0] += plus + minus;
    block[i] = block[i * DIM] = mu * (plus - minus);
    block[i * DIM + i] = mu * mu * (plus + minus);
  }
#endif
}
