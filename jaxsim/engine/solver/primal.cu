/* Newton's method or conjugate gradients for the constraint problem of a world, by LANES lanes that share memory.

   The formulas are those of primal.py, problem.py and linesearch.py, which define what is right. Each lane owns column
   `j` of the Hessian, which it holds in registers, and entry `j` of every vector over dofs; rows of constraints are
   dealt out among the lanes. The source is CUDA and C99 alike: with LANES 1 it runs on any machine.

   It follows lanes.cu. What is generated before this text: NV dofs, NG general rows, NL limited dofs, NC contacts, DIM
   rows of a contact in its frame, NF facets, ELLIPTIC, CG, ITERATIONS, LS_ITERATIONS, LS_RELATIVE, LIMIT_OF_DOF, and the
   functions of a row or a contact (`kernel.rows_source`). */

#define FRICTION NG
#define LIMIT (NG + NV)
#define CONTACT (NG + NV + 2 * NL)
#define NSLOT (CONTACT + NC * NF)
#define BLOCK (DIM * DIM)
#define PAD (DIM == 3 ? 4 : DIM == 5 ? 6 : DIM)
#define GROUP (MANY ? 4 : NV) /* rows of the Hessian of which a share is left out if it is zero */
#define BATCH (LANES < NC ? LANES : NC ? NC : 1) /* contacts whose curvature is known at a time */

/* Memory of a world, in numbers: each part begins at a multiple of four. */
#define AT_STAGE UP(NV)
#define AT_COLUMN (AT_STAGE + 2 * UP(NV * PAD))
#define AT_R (AT_COLUMN + COLUMN_NUMBERS)
#define AT_Z (AT_R + UP(NSLOT))
#define AT_FRAME (AT_Z + UP(NSLOT))
#define AT_BLOCKS (AT_FRAME + UP(NC * DIM))
#define AT_SUMS (AT_BLOCKS + UP(BATCH * BLOCK))
#define AT_END (AT_SUMS + 4 * WARPS)

typedef struct {
  const T *M, *smooth, *aref, *D, *lo, *hi, *general, *contact, *friction, *mu, *settings, *free, *warm;
  int used; /* contacts up to the last one that is present */
} Problem;

/* the arguments of a function of row k, or of contact c, whose rows begin at slot k */
#define ROW(p, k) (p)->D + (k), (p)->lo + (k), (p)->hi + (k)
#define CONTACT_ROWS(p, c, k) ROW(p, k), (p)->friction + (c) * 5, (p)->mu + (c)

FUNCTION T row_force(const Problem* p, int k, T r) { T f; force_of_row(ROW(p, k), &r, &f); return f; }
FUNCTION T row_weight(const Problem* p, int k, T r) { T w; weight_of_row(ROW(p, k), &r, &w); return w; }
FUNCTION T row_cost(const Problem* p, int k, T r) { T cost; cost_of_row(ROW(p, k), &r, &cost); return cost; }

/* how many slots from the first one on are scalar rows in use */
FUNCTION int scalars(const Problem* p) { return ELLIPTIC ? CONTACT : CONTACT + p->used * NF; }

/* out = J x of all slots, x being in s[0..NV) */
FUNCTION void rows_times(int lane, const Problem* p, T* s, T* out) {
  int warp = lane / WIDTH, place = lane % WIDTH;
  T* frame = s + AT_FRAME;
  ALL(v, NV) {
    int limit = NL ? LIMIT_OF_DOF[v] : -1;
    out[FRICTION + v] = s[v];
    if (limit >= 0) out[LIMIT + limit] = s[v], out[LIMIT + NL + limit] = -s[v];
  }
  for (int g = warp; g < NG; g += WARPS) {
    T x = 0;
    for (int v = place; v < NV; v += WIDTH) x += p->general[g * NV + v] * s[v];
    warp_sums(lane, &x, 1, s + AT_SUMS);
    if (place == 0) out[g] = x;
  }
  for (int c = warp; c < p->used; c += WARPS) {
    T x[DIM];
    for (int d = 0; d < DIM; ++d) x[d] = 0;
    for (int v = place; v < NV; v += WIDTH)
      for (int d = 0; d < DIM; ++d) x[d] += p->contact[(c * DIM + d) * NV + v] * s[v];
    warp_sums(lane, x, DIM, s + AT_SUMS);
    if (place == 0)
      for (int d = 0; d < DIM; ++d) frame[c * DIM + d] = x[d];
  }
  sync();
  ALL(k, p->used * NF) {
    int c = k / NF, facet = k % NF, d = facet / 2 + 1;
    if (ELLIPTIC || DIM == 1) out[CONTACT + k] = frame[k];
    else {
      T side = p->friction[c * 5 + d - 1] * frame[c * DIM + d];
      out[CONTACT + k] = frame[c * DIM] + (facet % 2 ? -side : side);
    }
  }
  sync();
}

/* the forces of all slots into z, then x = J' f */
FUNCTION void constraint_force(int lane, const Problem* p, T* s, T* x) {
  const T* r = s + AT_R;
  T *f = s + AT_Z, *frame = s + AT_FRAME;
  ALL(k, scalars(p)) f[k] = row_force(p, k, r[k]);
  if (ELLIPTIC) ALL(c, p->used) {
    int at = CONTACT + c * DIM;
    force_of_contact(CONTACT_ROWS(p, c, at), r + at, f + at);
  }
  sync();
  ALL(k, p->used * DIM) {
    int c = k / DIM, d = k % DIM;
    const T* row = f + CONTACT + c * NF;
    T total = 0;
    if (ELLIPTIC || DIM == 1) total = row[d];
    else if (d) total = p->friction[c * 5 + d - 1] * (row[2 * d - 2] - row[2 * d - 1]);
    else for (int i = 0; i < NF; ++i) total += row[i];
    frame[k] = total;
  }
  sync();
  EACH(c, v) {
    int limit = NL ? LIMIT_OF_DOF[v] : -1;
    T total = f[FRICTION + v];
    if (limit >= 0) total += f[LIMIT + limit] - f[LIMIT + NL + limit];
    for (int g = 0; g < NG; ++g) total += p->general[g * NV + v] * f[g];
    for (int k = 0; k < p->used; ++k) {
      bool idle = true;
      for (int d = 0; d < DIM; ++d) idle = idle && frame[k * DIM + d] == 0;
      if (!idle)
        for (int d = 0; d < DIM; ++d) total += p->contact[(k * DIM + d) * NV + v] * frame[k * DIM + d];
    }
    x[c] = total;
  }
}

/* y = M x of vectors over dofs; leaves x in s[0..NV) */
FUNCTION void inertia_times(int lane, const Problem* p, T* s, const T* x, T* y) {
  sync();
  EACH(c, j) s[j] = x[c];
  sync();
  EACH(c, j) {
    T total = 0;
    for (int i = 0; i < NV; ++i) total += p->M[i * NV + j] * s[i];
    y[c] = total;
  }
}

/* Add a row's or contact's share J' B J, its n rows at `rows`, to the columns h. `stage` is written by all lanes, and
   `moves`: whether the rows depend on a dof. Where dofs are many, rows depend on few of them. */
FUNCTION void add_block(int lane, int n, const T* rows, const T* block, T* stage, signed char* moves, Matrix h) {
  T weighted[COLS][DIM];
  int any = 0;
  UNROLL for (int c = 0; c < COLS; ++c) {
    T own[DIM];
    int j = lane + LANES * c;
    bool mine = false;
    for (int d = 0; d < n; ++d) own[d] = j < NV ? rows[d * NV + j] : 0, mine = mine || own[d] != 0;
    if (j < NV) for (int d = 0; d < n; ++d) stage[j * PAD + d] = own[d];
    for (int d = 0; d < n; ++d) {
      weighted[c][d] = 0;
      for (int e = 0; e < n; ++e) weighted[c][d] += block[d * n + e] * own[e];
    }
    if (MANY && j < PITCH) moves[j] = mine;
    any |= mine;
  }
  sync();
  if (MANY && !warp_largest(lane, any, 0)) return;
  for (int first = 0; first < NV; first += GROUP) {
    if (MANY && !four_bytes(moves + first)) continue;
    EACH(c, j) {
      UNROLL for (int i = first; i < first + GROUP; ++i)
        if (!MANY || i <= j)
          for (int d = 0; d < n; ++d) ENTRY(h, c, i, j) += stage[i * PAD + d] * weighted[c][d];
    }
  }
}

#define STAGE(turn) stages + UP(NV * PAD) * (turn), moves + PITCH * (turn)

/* the columns of M + J' s'' J, or of M alone; rows and columns from NV on are those of a unit matrix */
FUNCTION void hessian(int lane, const Problem* p, T* s, bool rows, Matrix h) {
  const T* r = s + AT_R;
  T *stages = s + AT_STAGE, *blocks = s + AT_BLOCKS;
  signed char* moves = (signed char*)(s + AT_Z); /* z has no values now */
  int turn = 0;
  UNROLL for (int c = 0; c < COLS; ++c) {
    int j = lane + LANES * c, limit = NL && j < NV ? LIMIT_OF_DOF[j] : -1;
    T w = 0;
    if (rows && j < NV) w = row_weight(p, FRICTION + j, r[FRICTION + j]);
    if (rows && limit >= 0)
      w += row_weight(p, LIMIT + limit, r[LIMIT + limit]) + row_weight(p, LIMIT + NL + limit, r[LIMIT + NL + limit]);
    EVERY_ROW(i, j) ENTRY(h, c, i, j) = (j < NV ? p->M[i * NV + j] : 0) + (i == j ? w : 0);
  }
  if (!rows) return;
  for (int g = 0; g < NG; ++g) {
    T w = row_weight(p, g, r[g]);
    if (w != 0) turn ^= 1, add_block(lane, 1, p->general + g * NV, &w, STAGE(turn), h);
  }
  for (int first = 0; first < p->used; first += BATCH) {
    int count = p->used - first < BATCH ? p->used - first : BATCH;
    sync();
    ALL(k, count) {
      int at = CONTACT + (first + k) * NF;
      curvature_of_contact(CONTACT_ROWS(p, first + k, at), r + at, blocks + k * BLOCK);
    }
    sync();
    for (int k = 0; k < count; ++k)
      if (blocks[k * BLOCK] != 0)
        turn ^= 1, add_block(lane, DIM, p->contact + (first + k) * DIM * NV, blocks + k * BLOCK, STAGE(turn), h);
  }
}

/* force' z, the sizes of its terms and z' s'' z at r + alpha z */
FUNCTION void along(int lane, const Problem* p, T* s, T alpha, T* out) {
  const T *r = s + AT_R, *z = s + AT_Z;
  out[0] = out[1] = out[2] = 0;
  ALL(k, scalars(p)) {
    T here = r[k] + alpha * z[k], push = row_force(p, k, here) * z[k];
    out[0] += push;
    out[1] += push < 0 ? -push : push;
    out[2] += row_weight(p, k, here) * z[k] * z[k];
  }
  if (ELLIPTIC) ALL(c, p->used) {
    T here[DIM], found[3];
    int at = CONTACT + c * DIM;
    UNROLL for (int i = 0; i < DIM; ++i) here[i] = r[at + i] + alpha * z[at + i];
    along_contact(CONTACT_ROWS(p, c, at), here, z + at, found, found + 1, found + 2);
    UNROLL for (int i = 0; i < 3; ++i) out[i] += found[i];
  }
  sums(lane, out, 3, s + AT_SUMS);
}

/* the step along z: Newton's method within a bracket, as in linesearch.py */
FUNCTION T line_search(int lane, const Problem* p, T* s, T slope, T bend, T tolerance) {
  T alpha = 0, step = 1, derivative = 0, noise = 0, lo = 0, hi = INFINITY, w[3];
  for (int count = 0; count == 0 || count < LS_ITERATIONS; ++count) {
    alpha = step;
    along(lane, p, s, alpha, w);
    T part = alpha * bend, first = slope < 0 ? -slope : slope;
    derivative = slope + part - w[0];
    T curve = bend + w[2];
    noise = 4 * EPS * (first + (part < 0 ? -part : part) + w[1]);
    if (derivative < 0) lo = alpha;
    if (derivative >= 0) hi = alpha;
    T newton = alpha - ratio(derivative, curve);
    step = newton > lo && newton < hi ? newton : isfinite(hi) ? (T)0.5 * (lo + hi) : 2 * alpha + 1;
    T size = derivative < 0 ? -derivative : derivative;
    if (size <= (tolerance > noise ? tolerance : noise) || !(lo < hi)) break;
  }
  return alpha;
}

/* r = J a - aref of both guesses; the cheaper one is taken. `acc` and `momentum` = M a. */
FUNCTION void first_guess(int lane, const Problem* p, T* s, T* acc, T* momentum, T* out_free) {
  T *r = s + AT_R, *z = s + AT_Z, cost[3] = {0, 0, 0};
  EACH(c, j) s[j] = p->free[j], acc[c] = p->free[j], momentum[c] = p->smooth[j];
  sync();
  rows_times(lane, p, s, r);
  ALL(k, NSLOT) r[k] -= p->aref[k];
  sync();
  ALL(k, NSLOT) out_free[k] = r[k];
  if (!p->warm) return;
  T warm[COLS], heavy[COLS];
  EACH(c, j) warm[c] = p->warm[j];
  inertia_times(lane, p, s, warm, heavy);
  rows_times(lane, p, s, z);
  ALL(k, NSLOT) z[k] -= p->aref[k];
  sync();
  EACH(c, j) cost[0] += (heavy[c] - p->smooth[j]) * (warm[c] - p->free[j]);
  cost[0] *= (T)0.5;
  ALL(k, scalars(p)) cost[1] += row_cost(p, k, z[k]), cost[2] += row_cost(p, k, r[k]);
  if (ELLIPTIC) ALL(c, p->used) {
    T of_warm, of_free;
    int at = CONTACT + c * DIM;
    cost_of_contact(CONTACT_ROWS(p, c, at), z + at, &of_warm);
    cost_of_contact(CONTACT_ROWS(p, c, at), r + at, &of_free);
    cost[1] += of_warm, cost[2] += of_free;
  }
  sums(lane, cost, 3, s + AT_SUMS);
  if (!(cost[0] + cost[1] < cost[2])) return;
  sync(); /* other lanes have read r, with shuffles alone in between */
  ALL(k, NSLOT) r[k] = z[k];
  EACH(c, j) acc[c] = warm[c], momentum[c] = heavy[c];
}

/* A world; `s` are AT_END numbers of memory, `matrix` NV * PITCH if there are many dofs. Results: qacc, J qacc - aref,
   J qacc_smooth - aref, J' f, iterations. */
FUNCTION void solve(int lane, Problem* p, T* s, T* matrix, T* out_acc, T* out_r, T* out_free, T* out_force, int* out_count) {
  T *r = s + AT_R, *z = s + AT_Z;
#if MANY
  Matrix h = matrix;
#else
  T h[COLS][NV];
#endif
  T tolerance = p->settings[0], ls_tolerance = p->settings[1], scale = p->settings[2];
  T acc[COLS], momentum[COLS], grad[COLS], search[COLS], pivot[COLS], constraint[COLS], mv[COLS], w[4];
  int last = 0, count = 0;
  ALL(c, NC) for (int d = 0; d < NF; ++d) if (!(p->D[CONTACT + c * NF + d] <= 0)) last = c + 1;
  p->used = largest(lane, last, (int*)(s + AT_SUMS));
  ALL(k, NSLOT) r[k] = z[k] = 0;
  sync();
  first_guess(lane, p, s, acc, momentum, out_free);
#if CG
  T old_search[COLS], old_mgrad[COLS], old_grad[COLS], mgrad[COLS];
  EACH(c, j) old_search[c] = old_mgrad[c] = old_grad[c] = 0;
  hessian(lane, p, s, false, h);
  factorise(lane, s + AT_COLUMN, h, pivot);
#endif
  bool done = false;
  while (true) {
    sync();
    constraint_force(lane, p, s, constraint);
    for (int i = 0; i < 4; ++i) w[i] = 0;
    EACH(c, j) {
      T f = p->smooth[j];
      grad[c] = momentum[c] - f - constraint[c];
      w[0] += momentum[c] * momentum[c], w[1] += f * f, w[2] += constraint[c] * constraint[c], w[3] += grad[c] * grad[c];
    }
    sums(lane, w, 4, s + AT_SUMS);
    T small = SQRT(w[3]), floor = 4 * EPS * (SQRT(w[0]) + SQRT(w[1]) + SQRT(w[2]) + small);
    done = done || scale * small < tolerance || small <= floor;
    if (done || count >= ITERATIONS) break;
#if CG
    for (int c = 0; c < COLS; ++c) mgrad[c] = 0;
    EACH(c, j) mgrad[c] = grad[c];
    substitute(lane, s + AT_COLUMN, h, pivot, mgrad);
    w[0] = w[1] = 0;
    EACH(c, j) w[0] += grad[c] * (mgrad[c] - old_mgrad[c]), w[1] += old_grad[c] * old_mgrad[c];
    sums(lane, w, 2, s + AT_SUMS);
    T beta = ratio(w[0], w[1]);
    EACH(c, j) {
      search[c] = -mgrad[c] + (beta > 0 ? beta : 0) * old_search[c];
      old_search[c] = search[c], old_mgrad[c] = mgrad[c], old_grad[c] = grad[c];
    }
#else
    hessian(lane, p, s, true, h);
    sync();
    factorise(lane, s + AT_COLUMN, h, pivot);
    for (int c = 0; c < COLS; ++c) search[c] = 0;
    EACH(c, j) search[c] = -grad[c];
    substitute(lane, s + AT_COLUMN, h, pivot, search);
#endif
    inertia_times(lane, p, s, search, mv);
    rows_times(lane, p, s, z);
    for (int i = 0; i < 4; ++i) w[i] = 0;
    EACH(c, j) {
      w[0] += search[c] * grad[c], w[1] += search[c] * (momentum[c] - p->smooth[j]);
      w[2] += search[c] * mv[c], w[3] += search[c] * search[c];
    }
    sums(lane, w, 4, s + AT_SUMS);
    T total = w[0], exact = tolerance * ls_tolerance * SQRT(w[3]) / scale;
    T enough = (T)LS_RELATIVE * (total < 0 ? -total : total);
    T alpha = line_search(lane, p, s, w[1], w[2], exact > enough ? exact : enough);
    EACH(c, j) acc[c] += alpha * search[c], momentum[c] += alpha * mv[c];
    sync();
    ALL(k, CONTACT + p->used * NF) r[k] += alpha * z[k];
    done = scale * (T)-0.5 * alpha * total < tolerance || total >= 0;
    ++count;
  }
  EACH(c, j) out_acc[j] = acc[c], out_force[j] = constraint[c];
  ALL(k, NSLOT) out_r[k] = r[k];
  if (lane == 0) out_count[0] = count;
}
