/* The constraint problem of a world for LANES lanes that share memory: J x, J' f and M + J' s'' J.

   The formulas are those of problem.py, which defines what is right. Each lane owns column `j` of the Hessian, which it
   holds in registers, and entry `j` of every vector over dofs; rows of constraints are dealt out among the lanes. The
   source is CUDA and C99 alike: with LANES 1 it runs on any machine.

   It follows elimination.cu. What is generated before this text: NV dofs, NG general rows, NL limited dofs, NC contacts,
   DIM rows of a contact in its frame, NF facets, ELLIPTIC, LIMIT_OF_DOF, and the functions of a row or a contact
   (`kernel.rows_source`). */

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
  bool any = false;
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
    any = any || mine;
  }
  sync();
  if (MANY && !any) return;
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
