/* Constraint rows of a world, those that there are: `plain_rows` of rows.py, in sequence. What is generated before this
   text: T; DIM rows of a contact's block, NF slots of a contact, PYRAMIDAL, SPARSE, FIXED, MINVAL; the arrays Given and
   Found; and `numbers`, which makes stiffness, damping, impedance, its derivative and R of a row. */

typedef struct {
  int nv, general, limits, contacts, capacity;
  int has_friction, has_limits, has_contacts; /* what the disable flags leave on */
} Sizes;

typedef struct {
  T pos, margin, depth, loss, diag;
  const T *solref, *solimp;
} Row;

enum { EQUALITY, FRICTION, LIMIT, KEPT, WANTED }; /* counts of rows; the first are kinds of general rows too */
enum { STIFFNESS, DAMPING, IMPEDANCE, DERIVATIVE, REGULAR, NUMBERS };

static void make_numbers(const Given* x, const Row* r, T* n) {
  numbers(x->timestep, r->solref, r->solimp, &r->depth, &r->diag, n);
}

static void put(const Found* y, int slot, const Row* r, const T* n) {
  T regular = n[REGULAR];
  y->active[slot] = true;
  y->pos[slot] = r->pos;
  y->margin[slot] = r->margin;
  y->frictionloss[slot] = r->loss;
  y->D[slot] = regular == 0 ? 0 : 1 / regular;
  y->R[slot] = regular;
  y->diagApprox[slot] = regular * n[IMPEDANCE] / (1 - n[IMPEDANCE]);
  memcpy(y->KBIP + 4 * slot, n, 4 * sizeof(T));
}

static void put_damper(const Given* x, const Found* y, int slot, const Row* r) { /* dry friction: no stiffness */
  T n[NUMBERS];
  make_numbers(x, r, n);
  n[STIFFNESS] = 0;
  put(y, slot, r, n);
}

static void put_spring(const Given* x, const Found* y, int slot, const Row* r) {
  T n[NUMBERS];
  make_numbers(x, r, n);
  put(y, slot, r, n);
}

/* Rows of equalities, of friction in tendons, of limits of balls and tendons. */
static void general_rows(const Sizes* s, const Given* x, const Found* y) {
  for (int k = 0; k < s->general; ++k) {
    int kind = x->general_kind[k];
    if (!x->general_active[k] || kind < 0) continue;
    T margin = x->general_margin[k];
    Row r = {x->general_pos[k], margin, x->general_impedance_pos[k] - margin, x->general_frictionloss[k],
             x->general_diag[k], x->general_solref + 2 * k, x->general_solimp + 5 * k};
    (kind == FRICTION ? put_damper : put_spring)(x, y, k, &r);
    y->count[kind] += 1;
  }
}

static void dof_rows(const Sizes* s, const Given* x, const Found* y) {
  for (int v = 0; s->has_friction && v < s->nv; ++v) {
    if (x->dof_frictionloss[v] == 0) continue;
    Row r = {0, 0, 0, x->dof_frictionloss[v], x->dof_invweight0[v], x->dof_solref + 2 * v, x->dof_solimp + 5 * v};
    put_damper(x, y, s->general + v, &r);
    y->count[FRICTION] += 1;
  }
  for (int i = 0; s->has_limits && i < 2 * s->limits; ++i) {
    int joint = x->limit_joint[i % s->limits];
    const T* range = x->jnt_range + 2 * joint;
    T value = x->qpos[x->limit_qpos[i % s->limits]], margin = x->jnt_margin[joint];
    T pos = i < s->limits ? value - range[0] : range[1] - value;
    if (!(pos < margin)) continue;
    T diag = x->dof_invweight0[x->limit_dof[i % s->limits]];
    Row r = {pos, margin, pos - margin, 0, diag, x->jnt_solref + 2 * joint, x->jnt_solimp + 5 * joint};
    put_spring(x, y, s->general + s->nv + i, &r);
    y->count[LIMIT] += 1;
  }
}

static void cross_into(const T* a, const T* b, T* out) {
  for (int i = 0; i < 3; ++i) out[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

/* Wrenches of the rows of a contact on its two bodies, each about the centre of mass of its tree; the first body is
   pushed back. */
static void make_wrenches(const Given* x, int c, const int* body, T (*wrench)[2][6]) {
  const T *pos = x->pos + 3 * c, *frame = x->frame + 9 * c;
  for (int side = 0; side < 2; ++side) {
    const T* com = x->subtree_com + 3 * x->body_root[body[side]];
    T sign = side ? 1 : -1, arm[3] = {pos[0] - com[0], pos[1] - com[1], pos[2] - com[2]};
    for (int k = 0; k < DIM && k < x->dim[c]; ++k) {
      T* w = wrench[k][side];
      if (k < 3) cross_into(arm, frame + 3 * k, w), memcpy(w + 3, frame + 3 * k, 3 * sizeof(T));
      else memcpy(w, frame + 3 * (k - 3), 3 * sizeof(T));
      for (int i = 0; i < 6; ++i) w[i] *= sign;
    }
  }
}

/* The rows of a contact in its frame, over the dofs of two chains from their ends to where they meet. */
static void fill_chains(const Sizes* s, const Given* x, const int* last, T (*wrench)[2][6], T* rows) {
  int end[2] = {last[0], last[1]};
  while (end[0] != end[1]) {
    int side = end[1] > end[0], v = end[side];
    const T* axis = x->cdof + 6 * v;
    for (int k = 0; k < DIM; ++k) {
      const T* w = wrench[k][side];
      rows[k * s->nv + v] = w[0] * axis[0] + w[1] * axis[1] + w[2] * axis[2] + w[3] * axis[3] + w[4] * axis[4] +
                            w[5] * axis[5];
    }
    end[side] = x->dof_parent[v];
  }
}

static void jacobian(const Sizes* s, const Given* x, const Found* y, int c, const int* body, const int* last) {
  T wrench[DIM][2][6] = {0};
  make_wrenches(x, c, body, wrench);
  if (SPARSE) memcpy(y->J_contact + (long)c * DIM * 12, wrench, sizeof wrench);
  else fill_chains(s, x, last, wrench, y->J_contact + (long)c * DIM * s->nv);
}

/* the impedance of friction over that of the normal */
static T friction_ratio(const Given* x) {
  T ratio = x->impratio[0];
  return 1 / (ratio > (T)MINVAL ? ratio : (T)MINVAL);
}

/* Rows of the cone of a contact from slot `first` on; R of friction follows from that of the normal. */
static void cone(const Given* x, const Found* y, int c, int first, int rows, T weight) {
  const T *friction = x->friction + 5 * c, *own = x->solreffriction + 2 * c;
  T margin = x->includemargin[c], n[NUMBERS];
  bool pyramid = PYRAMIDAL && x->dim[c] > 1;
  Row r = {x->dist[c], margin, x->dist[c] - margin, 0, weight, x->solref + 2 * c, x->solimp + 5 * c};
  if (pyramid) r.diag = weight * (1 + friction[0] * friction[0]);
  make_numbers(x, &r, n);
  if (pyramid) n[REGULAR] *= 2 * y->mu[c] * y->mu[c];
  put(y, first, &r, n);
  if (PYRAMIDAL) {
    for (int k = 1; k < rows; ++k) put(y, first + k, &r, n);
    return;
  }
  T normal = n[REGULAR];
  r.pos = r.margin = 0;
  /* MuJoCo ignores solreffriction of mixed signs */
  if ((own[0] != 0 || own[1] != 0) && (own[0] > 0) == (own[1] > 0)) r.solref = own;
  for (int k = 1; k < rows; ++k) {
    if (k == 1) make_numbers(x, &r, n), n[STIFFNESS] = 0;
    T square = friction[k - 1] * friction[k - 1];
    n[REGULAR] = normal * friction_ratio(x) * (square == 0 ? 1 : friction[0] * friction[0] / square);
    put(y, first + k, &r, n);
  }
}

static void contact_rows(const Sizes* s, const Given* x, const Found* y, int before) {
  int wanted = before, kept = before;
  for (int c = 0; c < s->contacts; ++c) {
    int dim = x->dim[c], body[2], last[2];
    y->exclude[c] = x->exclude[c], y->efc_address[c] = -1;
    if (dim <= 0) continue;
    for (int k = 0; k < 2; ++k) {
      int geom = x->geom[2 * c + k];
      body[k] = x->geom_body[geom > 0 ? geom : 0], last[k] = x->body_last_dof[body[k]];
    }
    y->mu[c] = dim > 1 ? x->friction[5 * c] * (T)sqrt(friction_ratio(x)) : 0;
    if (last[0] != last[1]) jacobian(s, x, y, c, body, last);
    if (!s->has_contacts || x->exclude[c] != 0) continue;
    if (last[0] == last[1]) {
      y->exclude[c] = FIXED;
      continue;
    }
    int rows = !PYRAMIDAL ? dim : dim > 1 ? 2 * (dim - 1) : 1;
    wanted += rows;
    if (wanted > s->capacity) continue;
    y->efc_address[c] = wanted - rows, kept += rows;
    T weight = x->body_invweight0[2 * body[0]] + x->body_invweight0[2 * body[1]];
    cone(x, y, c, s->general + s->nv + 2 * s->limits + c * NF, rows, weight);
  }
  y->count[KEPT] = kept, y->count[WANTED] = wanted;
}

static void make_rows(const Given* x, const Found* y) {
  const Sizes* s = (const Sizes*)x->sizes;
  general_rows(s, x, y);
  dof_rows(s, x, y);
  contact_rows(s, x, y, y->count[EQUALITY] + y->count[FRICTION] + y->count[LIMIT]);
}
