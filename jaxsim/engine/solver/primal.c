/* Newton's method or conjugate gradients for the constraint problem of a world, by one thread.

   The formulas are those of primal.py, problem.py and linesearch.py, which define what is right. Rows that are absent are left out, and so are columns of zeros; of a matrix, row i is kept from its first
   number that is not zero to the diagonal. Elimination goes from the last dof to the first, so that trees fill nothing
   (Featherstone, Rigid Body Dynamics Algorithms, 6.5). Sizes are read when it is called: one library serves all models
   with the same DIM, NF and ELLIPTIC.

   It follows the preamble of handlers, scalars.cu and rows.cu. After it comes dense_worlds.c or sparse_worlds.c, which
   know the operands. */

#include <limits.h>
#include <stdlib.h>

typedef struct {
  int nv, ng, nl, nc, nslot, iterations, ls_iterations, cg, warm;
  const int* limit_dof;
  T ls_relative;
} Sizes;

/* operands of a world */
typedef struct {
  const T *M, *smooth, *aref, *D, *lo, *hi, *general, *contact, *friction, *mu, *settings, *free, *warm;
} Given;

/* `dim` rows over n columns: rows of the problem from `row` on */
typedef struct {
  int n, row;
  const int* column;
  const T* value; /* (dim, n) */
} Block;

/* The rows in use, one after the other: units (a dof with a sign), general rows, contacts. */
typedef struct {
  int units, general, contacts, contact_row, rows, scalars;
  int *dof, *slot;
  T *sign, *D, *lo, *hi, *aref, *r, *z, *f, *scale;
  Block* block; /* general rows, then contacts */
} Rows;

typedef struct {
  int* begin; /* column from which each row of the factor is kept */
  const int *first, *place; /* the same of M, and where its row would begin */
  const int* row; /* where each row of the factor would begin: as in M, or room for all columns */
  T *factor, *pivot, *acc, *momentum, *grad, *search, *force, *heavy, *mgrad, *old_search, *old_mgrad, *old_grad;
  Rows rows;
  int* columns;
  T* values;
  struct Sparse* sparse; /* of a sparse world */
} World;

/* ---- rows ---- */

static void add_row(const Given* g, Rows* a, int slot) {
  int k = a->rows++;
  a->slot[k] = slot, a->D[k] = g->D[slot], a->lo[k] = g->lo[slot], a->hi[k] = g->hi[slot], a->aref[k] = g->aref[slot];
}

static void add_unit(const Given* g, Rows* a, int slot, int dof, T sign) {
  if (g->D[slot] <= 0) return;
  a->dof[a->units] = dof, a->sign[a->units++] = sign;
  add_row(g, a, slot);
}

static bool present(const T* D) {
  bool any = false;
  for (int i = 0; i < NF; ++i) any |= !(D[i] <= 0);
  return any;
}

/* mu and the coefficients of friction of a contact */
static void scales(const Given* g, int c, T* scale) {
  for (int i = 0; i < DIM; ++i) scale[i] = i ? g->friction[c * 5 + i - 1] : g->mu[c];
}

/* The columns of a general row, and of a contact's rows, that are not zero, at the end of the columns and values of the
   world. */
static Block general_block(const Sizes* n, const Given* g, World* w, int k, int row);
static Block contact_block(const Sizes* n, const Given* g, World* w, int c, int row);

static void find_rows(const Sizes* n, const Given* g, World* w) {
  Rows* a = &w->rows;
  int limit = n->ng + n->nv, contact = limit + 2 * n->nl;
  a->units = a->general = a->contacts = a->rows = 0;
  for (int v = 0; v < n->nv; ++v) add_unit(g, a, n->ng + v, v, 1);
  for (int k = 0; k < 2 * n->nl; ++k) add_unit(g, a, limit + k, n->limit_dof[k % n->nl], k < n->nl ? 1 : -1);
  for (int k = 0; k < n->ng; ++k)
    if (!(g->D[k] <= 0)) {
      a->block[a->general++] = general_block(n, g, w, k, a->rows);
      add_row(g, a, k);
    }
  a->contact_row = a->rows;
  for (int c = 0; c < n->nc; ++c) {
    if (!present(g->D + contact + c * NF)) continue;
    scales(g, c, a->scale + a->contacts * DIM);
    a->block[a->general + a->contacts++] = contact_block(n, g, w, c, a->rows);
    for (int i = 0; i < NF; ++i) add_row(g, a, contact + c * NF + i);
  }
  a->scalars = ELLIPTIC ? a->contact_row : a->rows;
}

static inline void block_times(const Block* b, int dim, const T* x, T* out) {
  for (int d = 0; d < dim; ++d) {
    T total = 0;
    for (int i = 0; i < b->n; ++i) total += b->value[d * b->n + i] * x[b->column[i]];
    out[d] = total;
  }
}

static inline void block_transpose_times(const Block* b, int dim, const T* f, T* x) {
  for (int i = 0; i < b->n; ++i) {
    T total = 0;
    for (int d = 0; d < dim; ++d) total += b->value[d * b->n + i] * f[d];
    x[b->column[i]] += total;
  }
}

/* z = J x of the rows in use */
static void rows_times(const Rows* a, const T* x, T* z) {
  for (int k = 0; k < a->units; ++k) z[k] = a->sign[k] * x[a->dof[k]];
  for (int k = 0; k < a->general; ++k) block_times(a->block + k, 1, x, z + a->block[k].row);
  for (int c = 0; c < a->contacts; ++c) {
    const Block* b = a->block + a->general + c;
    const T* scale = a->scale + c * DIM;
    T *out = z + b->row, frame[DIM];
    block_times(b, DIM, x, frame);
    if (ELLIPTIC || DIM == 1) {
      for (int d = 0; d < DIM; ++d) out[d] = frame[d];
    } else {
      for (int d = 1; d < DIM; ++d) {
        T side = scale[d] * frame[d];
        out[2 * d - 2] = frame[0] + side, out[2 * d - 1] = frame[0] - side;
      }
    }
  }
}

static void residual(const Rows* a, const T* x, T* r) {
  rows_times(a, x, r);
  for (int k = 0; k < a->rows; ++k) r[k] -= a->aref[k];
}

/* the forces of the rows in use */
static void forces(const Rows* a, const T* r, T* f) {
  for (int k = 0; k < a->scalars; ++k) f[k] = scalar_force(a->D[k], a->lo[k], a->hi[k], r[k]);
  if (ELLIPTIC)
    for (int c = 0, k = a->contact_row; c < a->contacts; ++c, k += DIM)
      cone_force(a->D + k, a->scale + c * DIM, r + k, f + k);
}

/* the forces at r into f, and x = J' f */
static void constraint_force(const Sizes* n, const Rows* a, T* x) {
  T* f = a->f;
  forces(a, a->r, f);
  for (int v = 0; v < n->nv; ++v) x[v] = 0;
  for (int k = 0; k < a->units; ++k) x[a->dof[k]] += a->sign[k] * f[k];
  for (int k = 0; k < a->general; ++k) block_transpose_times(a->block + k, 1, f + a->block[k].row, x);
  for (int c = 0; c < a->contacts; ++c) {
    const Block* b = a->block + a->general + c;
    const T *row = f + b->row, *scale = a->scale + c * DIM;
    T frame[DIM];
    bool idle = true;
    for (int i = 0; i < NF; ++i) idle &= row[i] == 0;
    if (idle) continue;
    for (int d = 0; d < DIM; ++d) frame[d] = ELLIPTIC || DIM == 1 ? row[d] : 0;
    if (!ELLIPTIC)
      for (int d = 1; d < DIM; ++d) {
        frame[0] += row[2 * d - 2] + row[2 * d - 1];
        frame[d] = scale[d] * (row[2 * d - 2] - row[2 * d - 1]);
      }
    block_transpose_times(b, DIM, frame, x);
  }
}

static T cost(const Rows* a, const T* r) {
  T total = 0;
  for (int k = 0; k < a->scalars; ++k) total += scalar_cost(a->D[k], a->lo[k], a->hi[k], r[k]);
  if (ELLIPTIC)
    for (int c = 0, k = a->contact_row; c < a->contacts; ++c, k += DIM)
      total += cone_cost(a->D + k, a->scale + c * DIM, r + k);
  return total;
}

/* ---- matrices ---- */

static T dot(int n, const T* x, const T* y) {
  T total = 0;
  for (int i = 0; i < n; ++i) total += x[i] * y[i];
  return total;
}

/* y = M x */
static void inertia_times(const Sizes* n, const Given* g, const World* w, const T* x, T* y) {
  for (int i = 0; i < n->nv; ++i) {
    const T* row = g->M + w->place[i];
    int first = w->first[i];
    y[i] = dot(i + 1 - first, row + first, x + first);
    for (int j = first; j < i; ++j) y[j] += row[j] * x[i];
  }
}

static T* diagonal(World* w, int v) { return w->factor + w->row[v] + v; }

static void keep_from(World* w, int row, int column) {
  T* h = w->factor + w->row[row];
  while (w->begin[row] > column) h[--w->begin[row]] = 0;
}

static void copy_inertia(const Sizes* n, const Given* g, World* w) {
  for (int i = 0; i < n->nv; ++i) {
    w->begin[i] = w->first[i];
    for (int j = w->first[i]; j <= i; ++j) w->factor[w->row[i] + j] = g->M[w->place[i] + j];
  }
}

/* add J' B J of a block of rows, all of it or what couples no trees; `weighted` has room for (dim + 1, n) */
static inline void add_block(World* w, const Block* b, int dim, const T* curve, bool of_trees) {
  T *weighted = w->values, *sum = weighted + dim * b->n;
  if (!b->n) return;
  for (int d = 0; d < dim; ++d)
    for (int i = 0; i < b->n; ++i) {
      T total = 0;
      for (int e = 0; e < dim; ++e) total += curve[d * dim + e] * b->value[e * b->n + i];
      weighted[d * b->n + i] = total;
    }
  for (int i = 0, from = 0; i < b->n; ++i) {
    int row = b->column[i];
    T* h = w->factor + w->row[row];
    if (of_trees)
      while (b->column[from] < w->first[row]) ++from;
    keep_from(w, row, b->column[from]);
    for (int j = from; j <= i; ++j) {
      T total = 0;
      for (int d = 0; d < dim; ++d) total += b->value[d * b->n + i] * weighted[d * b->n + j];
      sum[j] = total;
    }
    for (int j = from; j <= i; ++j) h[b->column[j]] += sum[j];
  }
}

/* M + J' s'' J, or its blocks on the diagonal, one for each tree */
static void hessian(const Sizes* n, const Given* g, World* w, bool of_trees) {
  const Rows* a = &w->rows;
  T block[BLOCK];
  copy_inertia(n, g, w);
  for (int k = 0; k < a->units; ++k)
    *diagonal(w, a->dof[k]) += scalar_weight(a->D[k], a->lo[k], a->hi[k], a->r[k]);
  for (int i = 0; i < a->general; ++i) {
    int k = a->block[i].row;
    T weight = scalar_weight(a->D[k], a->lo[k], a->hi[k], a->r[k]);
    if (weight != 0) add_block(w, a->block + i, 1, &weight, of_trees);
  }
  for (int c = 0; c < a->contacts; ++c) {
    const Block* b = a->block + a->general + c;
    int k = b->row;
    curvature(a->D + k, a->lo + k, a->hi + k, a->scale + c * DIM, a->r + k, block);
    if (block[0] != 0) add_block(w, b, DIM, block, of_trees);
  }
}

/* L' D L of the matrix, L being a unit triangle; `pivot` gets 1 / D. False if it would take more than `most` products. */
static bool factorise(const Sizes* n, World* w, long long most) {
  for (int k = n->nv - 1; k >= 0; --k) {
    T *row = w->factor + w->row[k], d = row[k], inverse = d > 0 ? 1 / d : NAN;
    int first = w->begin[k];
    w->pivot[k] = inverse;
    for (int j = first; j < k; ++j) {
      if (row[j] == 0) continue;
      T *target = w->factor + w->row[j], m = row[j] * inverse;
      keep_from(w, j, first);
      for (int i = first; i <= j; ++i) target[i] -= m * row[i];
      most -= j + 1 - first;
    }
    if (most < 0) return false;
    for (int j = first; j < k; ++j) row[j] *= inverse;
  }
  return true;
}

/* x of the factorised matrix for b; in place */
static void substitute(const Sizes* n, const World* w, T* x) {
  for (int k = n->nv - 1; k >= 0; --k) {
    const T* row = w->factor + w->row[k];
    for (int j = w->begin[k]; j < k; ++j) x[j] -= row[j] * x[k];
  }
  for (int k = 0; k < n->nv; ++k) {
    const T* row = w->factor + w->row[k];
    int first = w->begin[k];
    x[k] = x[k] * w->pivot[k] - dot(k - first, row + first, x + first);
  }
}

/* ---- the method ---- */

/* force' z, the sizes of its terms and z' s'' z at r + alpha z */
static void along(const Rows* a, T alpha, T* out) {
  T push = 0, size = 0, curve = 0;
  for (int k = 0; k < a->scalars; ++k) {
    T z = a->z[k], r = a->r[k] + alpha * z, part = scalar_force(a->D[k], a->lo[k], a->hi[k], r) * z;
    push += part;
    size += part < 0 ? -part : part;
    curve += scalar_weight(a->D[k], a->lo[k], a->hi[k], r) * z * z;
  }
  if (ELLIPTIC)
    for (int c = 0, k = a->contact_row; c < a->contacts; ++c, k += DIM) {
      T r[DIM], f[DIM];
      for (int i = 0; i < DIM; ++i) r[i] = a->r[k + i] + alpha * a->z[k + i];
      cone_force(a->D + k, a->scale + c * DIM, r, f);
      for (int i = 0; i < DIM; ++i) {
        T part = f[i] * a->z[k + i];
        push += part;
        size += part < 0 ? -part : part;
      }
      curve += cone_along(a->D + k, a->scale + c * DIM, r, a->z + k);
    }
  out[0] = push, out[1] = size, out[2] = curve;
}

/* the step along z: Newton's method within a bracket, as in linesearch.py */
static T line_search(const Sizes* n, const Rows* a, T slope, T bend, T tolerance) {
  T alpha = 0, step = 1, lo = 0, hi = INFINITY, w[3];
  for (int count = 0; count == 0 || count < n->ls_iterations; ++count) {
    alpha = step;
    along(a, alpha, w);
    T part = alpha * bend, first = slope < 0 ? -slope : slope;
    T derivative = slope + part - w[0], noise = 4 * EPS * (first + (part < 0 ? -part : part) + w[1]);
    T size = derivative < 0 ? -derivative : derivative;
    if (derivative < 0) lo = alpha;
    if (derivative >= 0) hi = alpha;
    T newton = alpha - ratio(derivative, bend + w[2]);
    step = newton > lo && newton < hi ? newton : isfinite(hi) ? (T)0.5 * (lo + hi) : 2 * alpha + 1;
    if (size <= (tolerance > noise ? tolerance : noise) || !(lo < hi)) break;
  }
  return alpha;
}

/* the first guess: free motion, and r = J a - aref of it */
static void start_free(const Sizes* n, const Given* g, World* w) {
  memcpy(w->acc, g->free, n->nv * sizeof(T));
  memcpy(w->momentum, g->smooth, n->nv * sizeof(T));
  residual(&w->rows, g->free, w->rows.r);
}

/* the solution of the step before is the guess where it is cheaper */
static void start_warm_if_cheaper(const Sizes* n, const Given* g, World* w) {
  Rows* a = &w->rows;
  T gauss = 0;
  if (!n->warm) return;
  inertia_times(n, g, w, g->warm, w->heavy);
  residual(a, g->warm, a->z);
  for (int v = 0; v < n->nv; ++v) gauss += (w->heavy[v] - g->smooth[v]) * (g->warm[v] - g->free[v]);
  if (!((T)0.5 * gauss + cost(a, a->z) < cost(a, a->r))) return;
  memcpy(a->r, a->z, a->rows * sizeof(T));
  memcpy(w->acc, g->warm, n->nv * sizeof(T));
  memcpy(w->momentum, w->heavy, n->nv * sizeof(T));
}

/* search = -H^-1 grad, or about it */
static void newton_direction(const Sizes* n, const Given* g, World* w);

/* Polak-Ribiere with the inverse inertia as preconditioner; restarts when the coefficient is negative */
static void cg_direction(const Sizes* n, World* w) {
  size_t size = n->nv * sizeof(T);
  T over = 0, *mgrad = w->mgrad;
  memcpy(mgrad, w->grad, size);
  substitute(n, w, mgrad);
  for (int v = 0; v < n->nv; ++v) over += w->grad[v] * (mgrad[v] - w->old_mgrad[v]);
  T beta = ratio(over, dot(n->nv, w->old_grad, w->old_mgrad));
  for (int v = 0; v < n->nv; ++v) w->search[v] = -mgrad[v] + (beta > 0 ? beta : 0) * w->old_search[v];
  memcpy(w->old_search, w->search, size);
  memcpy(w->old_mgrad, mgrad, size);
  memcpy(w->old_grad, w->grad, size);
}

static int minimise(const Sizes* n, const Given* g, World* w) {
  Rows* a = &w->rows;
  T tolerance = g->settings[0], ls_tolerance = g->settings[1], scale = g->settings[2];
  int nv = n->nv, count = 0;
  bool done = false;
  if (n->cg) {
    copy_inertia(n, g, w);
    factorise(n, w, LLONG_MAX);
    for (int v = 0; v < nv; ++v) w->old_search[v] = w->old_mgrad[v] = w->old_grad[v] = 0;
  }
  while (true) {
    constraint_force(n, a, w->force);
    for (int v = 0; v < nv; ++v) w->grad[v] = w->momentum[v] - g->smooth[v] - w->force[v];
    T small = SQRT(dot(nv, w->grad, w->grad)), sizes = SQRT(dot(nv, w->momentum, w->momentum)) + small;
    sizes += SQRT(dot(nv, g->smooth, g->smooth)) + SQRT(dot(nv, w->force, w->force));
    done = done || scale * small < tolerance || small <= 4 * EPS * sizes;
    if (done || count >= n->iterations) return count;
    if (n->cg) cg_direction(n, w);
    else newton_direction(n, g, w);
    inertia_times(n, g, w, w->search, w->heavy);
    rows_times(a, w->search, a->z);
    T total = dot(nv, w->search, w->grad), slope = dot(nv, w->search, w->momentum) - dot(nv, w->search, g->smooth);
    T exact = tolerance * ls_tolerance * SQRT(dot(nv, w->search, w->search)) / scale;
    T enough = n->ls_relative * (total < 0 ? -total : total);
    T alpha = line_search(n, a, slope, dot(nv, w->search, w->heavy), exact > enough ? exact : enough);
    for (int v = 0; v < nv; ++v) w->acc[v] += alpha * w->search[v], w->momentum[v] += alpha * w->heavy[v];
    for (int k = 0; k < a->rows; ++k) a->r[k] += alpha * a->z[k];
    done = scale * (T)-0.5 * alpha * total < tolerance || total >= 0;
    ++count;
  }
}

/* ---- operands and memory ---- */

typedef struct {
  const T* data;
  long long stride; /* numbers from a world to the next one: none if all share the operand */
} Operand;

static Operand operand(XLA_FFI_CallFrame* frame, int i, int rank) {
  const XLA_FFI_Buffer* b = argument(frame, i);
  Operand x = {b->data, b->rank > rank};
  for (int k = b->rank - rank; k < b->rank; ++k) x.stride *= b->dims[k];
  return x;
}

static T* take(T** memory, long long n) {
  T* x = *memory;
  *memory += n;
  return x;
}

/* Memory of a world: T at `numbers`, int at `whole`; columns and values of blocks come after it. */
static void lay_out(const Sizes* n, World* w, T* numbers, int* whole) {
  T **vectors[] = {&w->pivot, &w->acc, &w->momentum, &w->grad, &w->search, &w->force, &w->heavy, &w->mgrad,
                   &w->old_search, &w->old_mgrad, &w->old_grad};
  Rows* a = &w->rows;
  T** rows[] = {&a->sign, &a->D, &a->lo, &a->hi, &a->aref, &a->r, &a->z, &a->f};
  w->factor = take(&numbers, (long long)n->nv * n->nv);
  for (int i = 0; i < 11; ++i) *vectors[i] = take(&numbers, n->nv);
  for (int i = 0; i < 8; ++i) *rows[i] = take(&numbers, n->nslot);
  a->scale = take(&numbers, n->nc * DIM);
  w->values = numbers;
  a->dof = whole, a->slot = a->dof + n->nslot, w->begin = a->slot + n->nslot;
  w->first = w->begin + n->nv, w->place = w->first + n->nv, w->columns = w->begin + 3 * n->nv;
}

static long long numbers_laid_out(const Sizes* n) {
  return (long long)n->nv * n->nv + 11 * n->nv + 8 * n->nslot + n->nc * DIM;
}

static long long integers_laid_out(const Sizes* n) { return 2 * n->nslot + 3 * n->nv; }
