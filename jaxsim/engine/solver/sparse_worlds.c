/* The constraint problems of a batch of worlds of a large model: M by trees, general rows at static columns, contacts as
   wrenches on bodies. It follows primal.c. What is generated before that text: LS_NEWTON, FORCING, QUADRATIC, SPARE,
   MAX_CG, RIDGES, DIRECT, PRECISE, DIRECT_IF_PRECISE, as in sparse.py.

   Trees that no row touches have their free accelerations. The problem is that of the others, numbered anew in the order
   of elimination.py: a `rank` is a dof's place in it, and columns are ranks until `restrict_to_touched`.

   Newton's direction comes from elimination. Where that fills much, it comes from conjugate gradients on H, whose
   preconditioner are the blocks of H on the diagonal, one for each tree, as in sparse.py. */

enum { MATRIX, SMOOTH, AREF, STIFFNESS, LOWER, UPPER, GENERAL, WRENCH, FRICTION, MU, SETTINGS, FREE, WARM, BODY, CDOF, OPERANDS };
enum { ACC, NITER };

/* what is static, from the attribute of the call */
typedef struct {
  int width, nside;
  bool quadratic; /* all rows pull both ways */
  int rounds; /* of conjugate gradients that elimination costs, whatever touches */
  const int *column, *last_dof, *parent, *order, *rank;
} Plan;

/* what the direction needs beside the world's memory */
typedef struct Sparse {
  const Plan* plan;
  const int* body;
  const T* cdof;
  int *mark, *touched;
  T *weight, *curve, *x, *r, *q, *hq, *z;
  bool filled; /* elimination fills much: seen once, it is not tried again */
  const int* root; /* rank of the first dof of each rank's tree */
  int *dof, *number; /* dofs of the problem; numbers in it by ranks, or -1 */
  int *first, *place; /* of the problem's dofs */
  int* whole; /* where rows begin that have room for all columns */
  T *smooth, *free, *warm;
} Sparse;

/* ---- rows ---- */

static void sort(int* x, int n) {
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && x[j] < x[j - 1]; --j) {
      int y = x[j];
      x[j] = x[j - 1], x[j - 1] = y;
    }
}

/* a block over the columns that `touched` lists, its values zero; `mark` gets the place of each column */
static Block begin_block(World* w, Sparse* s, int n, int dim, int row) {
  Block b = {n, row, w->columns, w->values};
  sort(s->touched, n);
  for (int i = 0; i < n; ++i) w->columns[i] = s->touched[i], s->mark[s->touched[i]] = i;
  for (int i = 0; i < dim * n; ++i) w->values[i] = 0;
  return b;
}

static void end_block(World* w, Sparse* s, int n, int dim) {
  for (int i = 0; i < n; ++i) s->mark[w->columns[i]] = -1;
  w->columns += n, w->values += dim * n;
}

static void touch(Sparse* s, int v, int* n) {
  if (s->mark[v] >= 0) return;
  s->mark[v] = 0, s->touched[(*n)++] = v;
}

static Block general_block(const Sizes* n, const Given* g, World* w, int k, int row) {
  Sparse* s = w->sparse;
  const int* column = s->plan->column + (long)k * s->plan->width;
  const T* value = g->general + (long)k * s->plan->width;
  int count = 0;
  for (int i = 0; i < s->plan->width; ++i)
    if (column[i] >= 0 && value[i] != 0) touch(s, column[i], &count);
  Block b = begin_block(w, s, count, 1, row);
  for (int i = 0; i < s->plan->width; ++i)
    if (column[i] >= 0 && value[i] != 0) w->values[s->mark[column[i]]] += value[i];
  end_block(w, s, count, 1);
  return b;
}

static bool acts(const T* wrench, int side, int nside) {
  bool any = false;
  for (int d = 0; d < DIM; ++d)
    for (int i = 0; i < 6; ++i) any |= wrench[(d * nside + side) * 6 + i] != 0;
  return any;
}

static Block contact_block(const Sizes* n, const Given* g, World* w, int c, int row) {
  Sparse* s = w->sparse;
  int nside = s->plan->nside, count = 0;
  const T* wrench = g->contact + (long)c * DIM * nside * 6;
  const int* body = s->body + (long)c * nside;
  for (int k = 0; k < nside; ++k)
    if (acts(wrench, k, nside))
      for (int v = s->plan->last_dof[body[k]]; v >= 0; v = s->plan->parent[v]) touch(s, s->plan->rank[v], &count);
  Block b = begin_block(w, s, count, DIM, row);
  for (int k = 0; k < nside; ++k)
    if (acts(wrench, k, nside))
      for (int v = s->plan->last_dof[body[k]]; v >= 0; v = s->plan->parent[v])
        for (int d = 0; d < DIM; ++d)
          for (int i = 0; i < 6; ++i)
            w->values[d * count + s->mark[s->plan->rank[v]]] += wrench[(d * nside + k) * 6 + i] * s->cdof[v * 6 + i];
  end_block(w, s, count, DIM);
  return b;
}

/* ---- the direction ---- */

static void find_curvature(const Rows* a, Sparse* s) {
  for (int k = 0; k < a->contact_row; ++k) s->weight[k] = scalar_weight(a->D[k], a->lo[k], a->hi[k], a->r[k]);
  for (int c = 0; c < a->contacts; ++c) {
    int k = a->block[a->general + c].row;
    curvature(a->D + k, a->lo + k, a->hi + k, a->scale + c * DIM, a->r + k, s->curve + c * BLOCK);
  }
}

/* y = (M + J' s'' J) x */
static void hessian_times(const Sizes* n, const Given* g, const World* w, const Sparse* s, const T* x, T* y) {
  const Rows* a = &w->rows;
  inertia_times(n, g, w, x, y);
  for (int k = 0; k < a->units; ++k) y[a->dof[k]] += s->weight[k] * x[a->dof[k]];
  for (int i = 0; i < a->general; ++i) {
    const Block* b = a->block + i;
    T along;
    if (s->weight[b->row] == 0) continue;
    block_times(b, 1, x, &along);
    along *= s->weight[b->row];
    block_transpose_times(b, 1, &along, y);
  }
  for (int c = 0; c < a->contacts; ++c) {
    const Block* b = a->block + a->general + c;
    const T* curve = s->curve + c * BLOCK;
    T frame[DIM], push[DIM];
    if (curve[0] == 0) continue;
    block_times(b, DIM, x, frame);
    for (int d = 0; d < DIM; ++d) {
      push[d] = 0;
      for (int e = 0; e < DIM; ++e) push[d] += curve[d * DIM + e] * frame[e];
    }
    block_transpose_times(b, DIM, push, y);
  }
}

static bool is_number(int n, const T* x) {
  T total = 0;
  for (int i = 0; i < n; ++i) total += x[i] * 0;
  return total == 0;
}

/* The factor of H, or of its blocks, whose diagonal grows where rounding made it indefinite. False: it fills much. */
static bool factor(const Sizes* n, const Given* g, World* w, bool of_trees, long long most) {
  T ridge = 0;
  w->row = of_trees ? w->place : w->sparse->whole;
  for (int count = 0; count < RIDGES; ++count) {
    hessian(n, g, w, of_trees);
    for (int v = 0; v < n->nv; ++v) *diagonal(w, v) *= 1 + ridge;
    if (!factorise(n, w, most)) return false;
    if (is_number(n->nv, w->pivot)) return true;
    ridge = ridge > 0 ? 8 * ridge : 2 * n->nv * EPS;
  }
  return true;
}

static void conjugate_gradients(const Sizes* n, const Given* g, World* w, Sparse* s) {
  T tolerance = g->settings[0], scale = g->settings[2], least = s->plan->quadratic ? (T)QUADRATIC : (T)FORCING;
  int nv = n->nv;
  T precision = (T)SPARE * ratio(tolerance, scale * SQRT(dot(nv, w->grad, w->grad)));
  precision = precision < least ? least : precision > (T)0.5 ? (T)0.5 : precision;
  find_curvature(&w->rows, s);
  factor(n, g, w, true, LLONG_MAX);
  for (int v = 0; v < nv; ++v) s->x[v] = 0, s->r[v] = s->z[v] = -w->grad[v];
  substitute(n, w, s->z);
  memcpy(s->q, s->z, nv * sizeof(T));
  T rho = dot(nv, s->r, s->z), enough = precision * precision * rho, gain = INFINITY;
  for (int count = 0; count < MAX_CG && rho > enough && gain > tolerance / scale; ++count) {
    hessian_times(n, g, w, s, s->q, s->hq);
    T alpha = ratio(rho, dot(nv, s->q, s->hq));
    for (int v = 0; v < nv; ++v) {
      s->x[v] += alpha * s->q[v];
      s->z[v] = s->r[v] -= alpha * s->hq[v];
    }
    substitute(n, w, s->z);
    T next = dot(nv, s->r, s->z), beta = ratio(next, rho);
    for (int v = 0; v < nv; ++v) s->q[v] = s->z[v] + beta * s->q[v];
    gain = (T)0.5 * alpha * rho;
    rho = next;
  }
  memcpy(w->search, s->x, nv * sizeof(T));
}

/* products of one round of conjugate gradients, about */
static long long round_of(const Sizes* n, const World* w) {
  const Rows* a = &w->rows;
  long long total = 0;
  for (int v = 0; v < n->nv; ++v) total += 4 * (v + 1 - w->first[v]);
  for (int i = 0; i < a->general + a->contacts; ++i) total += 2 * a->block[i].n * (i < a->general ? 1 : DIM);
  return total;
}

/* rounds that elimination may cost */
static long long most_rounds(const Given* g) { return g->settings[0] < (T)PRECISE ? DIRECT_IF_PRECISE : DIRECT; }

static void newton_direction(const Sizes* n, const Given* g, World* w) {
  Sparse* s = w->sparse;
  s->filled = s->filled || !factor(n, g, w, false, most_rounds(g) * round_of(n, w));
  if (s->filled) {
    conjugate_gradients(n, g, w, s);
    return;
  }
  for (int v = 0; v < n->nv; ++v) w->search[v] = -w->grad[v];
  substitute(n, w, w->search);
}

/* ---- the trees that move ---- */

static void keep_tree(Sparse* s, int rank) { s->number[s->root[rank]] = 0; }

static void number_columns(const Sparse* s, Block* b) {
  int* column = (int*)b->column;
  for (int i = 0; i < b->n; ++i) column[i] = s->number[column[i]];
}

/* The problem of the trees that rows in use touch. Dofs of a tree follow each other, so its rows of M stay as they are.
 */
static void restrict_to_touched(Sizes* n, Given* g, World* w) {
  Sparse* s = w->sparse;
  Rows* a = &w->rows;
  int nv = 0, blocks = a->general + a->contacts;
  for (int r = 0; r < n->nv; ++r) s->number[r] = -1;
  for (int k = 0; k < a->units; ++k) keep_tree(s, s->plan->rank[a->dof[k]]);
  for (int i = 0; i < blocks; ++i)
    for (int k = 0; k < a->block[i].n; ++k) keep_tree(s, a->block[i].column[k]);
  for (int r = 0; r < n->nv; ++r) {
    if (s->number[s->root[r]] < 0) continue;
    int v = s->plan->order[r], moved = v - nv;
    s->number[r] = nv, s->dof[nv] = v;
    s->first[nv] = w->first[v] - moved, s->place[nv] = w->place[v] + moved;
    s->smooth[nv] = g->smooth[v], s->free[nv] = g->free[v], s->warm[nv] = g->warm[v];
    ++nv;
  }
  for (int k = 0; k < a->units; ++k) a->dof[k] = s->number[s->plan->rank[a->dof[k]]];
  for (int i = 0; i < blocks; ++i) number_columns(s, a->block + i);
  for (int v = 0; v < nv; ++v) s->whole[v] = v * nv;
  n->nv = nv, w->first = s->first, w->place = w->row = s->place;
  g->smooth = s->smooth, g->free = s->free, g->warm = s->warm;
}

/* ---- the handler ---- */

static void solve_world(Sizes n, Given g, const int* body, const T* cdof, World w, T* acc, int* niter) {
  w.sparse->body = body, w.sparse->cdof = cdof, w.sparse->filled = w.sparse->plan->rounds > most_rounds(&g);
  memcpy(acc, g.free, n.nv * sizeof(T));
  find_rows(&n, &g, &w);
  restrict_to_touched(&n, &g, &w);
  start_free(&n, &g, &w);
  start_warm_if_cheaper(&n, &g, &w);
  *niter = minimise(&n, &g, &w);
  for (int v = 0; v < n.nv; ++v) acc[w.sparse->dof[v]] = w.acc[v];
}

typedef struct {
  XLA_FFI_CallFrame* frame;
  bool failed;
} Batch;

static void solve_part(long long begin, long long end, const void* data) {
  XLA_FFI_CallFrame* frame = ((Batch*)data)->frame;
  static const int ranks[] = {1, 1, 1, 1, 1, 1, 2, 4, 2, 1, 1, 1, 1, 2, 2};
  const int* p = ((XLA_FFI_Array*)frame->attrs.attrs[0])->data;
  Sizes n = {p[0], p[1], p[2], p[3], p[4], p[5], p[6], 0, p[7]};
  Plan plan = {p[8], p[9], p[10], p[12]};
  n.ls_relative = (T)LS_NEWTON;
  n.limit_dof = p + 13;
  const int *first = n.limit_dof + n.nl, *place = first + n.nv;
  plan.column = place + n.nv, plan.parent = plan.column + n.ng * plan.width, plan.order = plan.parent + n.nv;
  plan.rank = plan.order + n.nv, plan.last_dof = plan.rank + n.nv;
  Operand x[OPERANDS];
  for (int i = 0; i < OPERANDS; ++i) x[i] = operand(frame, i, ranks[i]);
  long long most = p[11], blocks = n.ng + n.nc; /* dofs that a contact may move */
  long long values = (long long)n.ng * plan.width + n.nc * DIM * most + (DIM + 1) * (most > plan.width ? most : plan.width);
  Sparse sparse;
  World w;
  T* numbers = malloc((numbers_laid_out(&n) + n.nslot + n.nc * BLOCK + 8 * n.nv + values) * sizeof(T));
  int* whole = malloc((integers_laid_out(&n) + 8 * n.nv + n.ng * plan.width + n.nc * most + n.nv) * sizeof(int));
  w.rows.block = malloc((blocks + 1) * sizeof(Block));
  bool enough = numbers && whole && w.rows.block;
  if (enough) {
    lay_out(&n, &w, numbers, whole);
    T** parts[] = {&sparse.x, &sparse.r, &sparse.q, &sparse.hq, &sparse.z, &sparse.smooth, &sparse.free, &sparse.warm};
    for (int i = 0; i < 8; ++i) *parts[i] = take(&w.values, n.nv);
    int* root = w.columns;
    int** lists[] = {&sparse.mark, &sparse.touched, &sparse.dof, &sparse.number, &sparse.first, &sparse.place, &sparse.whole};
    for (int i = 0; i < 7; ++i) *lists[i] = w.columns + (i + 1) * n.nv;
    w.columns += 8 * n.nv, sparse.root = root;
    for (int r = 0; r < n.nv; ++r) {
      int parent = plan.parent[plan.order[r]];
      root[r] = parent < 0 ? r : root[plan.rank[parent]];
    }
    sparse.weight = take(&w.values, n.nslot), sparse.curve = take(&w.values, n.nc * BLOCK);
    sparse.plan = &plan, w.sparse = &sparse, w.first = first, w.place = place;
    for (int v = 0; v < n.nv; ++v) sparse.mark[v] = -1;
  }
  for (long long i = begin; enough && i < end; ++i) {
#define AT(k) (x[k].data + i * x[k].stride)
    Given g = {AT(MATRIX), AT(SMOOTH), AT(AREF), AT(STIFFNESS), AT(LOWER), AT(UPPER), AT(GENERAL), AT(WRENCH),
               AT(FRICTION), AT(MU), AT(SETTINGS), AT(FREE), AT(WARM)};
    const int* body = (const int*)argument(frame, BODY)->data + i * x[BODY].stride;
    int* niter = (int*)result(frame, NITER)->data + i;
    solve_world(n, g, body, AT(CDOF), w, (T*)result(frame, ACC)->data + i * n.nv, niter);
  }
  free(numbers), free(whole), free(w.rows.block);
  if (!enough) __atomic_store_n(&((Batch*)data)->failed, true, __ATOMIC_RELAXED);
}

XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {
  if (is_question(frame)) return 0;
  long long count = 1;
  for (int k = 0; k < result(frame, ACC)->rank - 1; ++k) count *= result(frame, ACC)->dims[k];
  Batch batch = {frame, false};
  share(frame, count, 1, solve_part, &batch);
  return batch.failed ? failure(frame, "no memory for the constraint solver") : 0;
}
