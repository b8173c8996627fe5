/* The constraint problems of a batch of worlds, whose matrices are dense. It follows primal.c. What is generated before
   that text: LS_NEWTON, LS_CG. */

enum { MATRIX, SMOOTH, AREF, STIFFNESS, LOWER, UPPER, GENERAL, CONTACT, FRICTION, MU, SETTINGS, FREE, WARM, PLAN };
enum { ACC, NITER, RESIDUAL, FREE_RESIDUAL, FORCE };

static void newton_direction(const Sizes* n, const Given* g, World* w) {
  hessian(n, g, w, false);
  factorise(n, w, LLONG_MAX);
  for (int v = 0; v < n->nv; ++v) w->search[v] = -w->grad[v];
  substitute(n, w, w->search);
}

/* the columns of `dim` rows of length nv that are not zero, at the end of the columns and values of the world */
static Block packed(World* w, const T* rows, int dim, int nv, int row) {
  Block b = {0, row, w->columns, w->values};
  for (int v = 0; v < nv; ++v) {
    bool used = false;
    for (int d = 0; d < dim; ++d) used |= rows[d * nv + v] != 0;
    w->columns[b.n] = v;
    b.n += used;
  }
  for (int d = 0; d < dim; ++d)
    for (int i = 0; i < b.n; ++i) w->values[d * b.n + i] = rows[d * nv + w->columns[i]];
  w->columns += b.n, w->values += dim * b.n;
  return b;
}

static Block general_block(const Sizes* n, const Given* g, World* w, int k, int row) {
  return packed(w, g->general + (long)k * n->nv, 1, n->nv, row);
}

static Block contact_block(const Sizes* n, const Given* g, World* w, int c, int row) {
  return packed(w, g->contact + (long)c * DIM * n->nv, DIM, n->nv, row);
}

static void find_first(const Sizes* n, const Given* g, int* first, int* place) {
  for (int i = 0; i < n->nv; ++i) {
    int j = 0;
    while (j < i && g->M[(long)i * n->nv + j] == 0) ++j;
    first[i] = j, place[i] = i * n->nv;
  }
}

static long long numbers_of(const Sizes* n) {
  long long nv = n->nv, values = (n->ng + (long long)n->nc * DIM) * nv + (DIM + 1) * nv;
  return numbers_laid_out(n) + values;
}

static long long integers_of(const Sizes* n) {
  return integers_laid_out(n) + (n->ng + (long long)n->nc) * n->nv + n->nv;
}

static Sizes sizes_of(XLA_FFI_CallFrame* frame) {
  const XLA_FFI_Buffer *plan = argument(frame, PLAN), *out = result(frame, ACC), *mu = argument(frame, MU);
  const XLA_FFI_Buffer *general = argument(frame, GENERAL), *slots = result(frame, RESIDUAL);
  const int* p = plan->data;
  Sizes n = {out->dims[1], general->dims[general->rank - 2], plan->dims[0] - 4, mu->dims[mu->rank - 1]};
  n.nslot = slots->dims[1];
  n.iterations = p[0], n.ls_iterations = p[1], n.cg = p[2], n.warm = p[3];
  n.limit_dof = p + 4;
  n.ls_relative = n.cg ? (T)LS_CG : (T)LS_NEWTON;
  return n;
}

static void solve_world(const Sizes* n, const Given* g, World w, T* acc, int* niter, T* r, T* free_r, T* force) {
  const Rows* a = &w.rows;
  find_rows(n, g, &w);
  find_first(n, g, w.begin + n->nv, w.begin + 2 * n->nv);
  w.row = w.place;
  memset(r, 0, n->nslot * sizeof(T));
  memset(free_r, 0, n->nslot * sizeof(T));
  start_free(n, g, &w);
  for (int k = 0; k < a->rows; ++k) free_r[a->slot[k]] = a->r[k];
  start_warm_if_cheaper(n, g, &w);
  *niter = minimise(n, g, &w);
  memcpy(acc, w.acc, n->nv * sizeof(T));
  memcpy(force, w.force, n->nv * sizeof(T));
  for (int k = 0; k < a->rows; ++k) r[a->slot[k]] = a->r[k];
}

typedef struct {
  XLA_FFI_CallFrame* frame;
  bool failed;
} Batch;

static void solve_part(long long begin, long long end, const void* data) {
  XLA_FFI_CallFrame* frame = ((Batch*)data)->frame;
  static const int ranks[] = {2, 1, 1, 1, 1, 1, 2, 3, 2, 1, 1, 1, 1};
  Sizes n = sizes_of(frame);
  Operand x[PLAN];
  for (int i = 0; i < PLAN; ++i) x[i] = operand(frame, i, ranks[i]);
  World w;
  T* numbers = malloc(numbers_of(&n) * sizeof(T));
  int* whole = malloc(integers_of(&n) * sizeof(int));
  w.rows.block = malloc((n.ng + n.nc + 1) * sizeof(Block));
  bool enough = numbers && whole && w.rows.block;
  if (enough) lay_out(&n, &w, numbers, whole);
  T *acc = result(frame, ACC)->data, *r = result(frame, RESIDUAL)->data, *force = result(frame, FORCE)->data;
  T* free_r = result(frame, FREE_RESIDUAL)->data;
  int* niter = result(frame, NITER)->data;
  for (long long i = begin; enough && i < end; ++i) {
    const T* at[PLAN];
    Given g;
    for (int k = 0; k < PLAN; ++k) at[k] = x[k].data + i * x[k].stride;
    memcpy(&g, at, sizeof g);
    solve_world(&n, &g, w, acc + i * n.nv, niter + i, r + i * n.nslot, free_r + i * n.nslot, force + i * n.nv);
  }
  free(numbers), free(whole), free(w.rows.block);
  if (!enough) __atomic_store_n(&((Batch*)data)->failed, true, __ATOMIC_RELAXED);
}

XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {
  if (is_question(frame)) return 0;
  Batch batch = {frame, false};
  share(frame, result(frame, ACC)->dims[0], 4, solve_part, &batch);
  return batch.failed ? failure(frame, "no memory for the constraint solver") : 0;
}
