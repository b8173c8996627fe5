/* Newton's method or conjugate gradients for the constraint problem of a world (problem.cu).

   The formulas are those of primal.py and linesearch.py, which define what is right. What is generated before this text:
   CG, ITERATIONS, LS_ITERATIONS, LS_RELATIVE. */

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
  for (int c = 0; c < COLS; ++c) mgrad[c] = 0;
  factorise(lane, s + AT_COLUMN, h, pivot, mgrad);
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
    eliminate(lane, s + AT_COLUMN, h, pivot, mgrad);
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
    for (int c = 0; c < COLS; ++c) search[c] = 0;
    EACH(c, j) search[c] = -grad[c];
    factorise(lane, s + AT_COLUMN, h, pivot, search);
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
