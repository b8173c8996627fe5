/* Velocities of the rows of a world and their reference accelerations, of those that there are: `plain_reference` of
   make.py, in sequence. What is generated before this text: T; DIM rows of a contact's block, NF slots of a contact,
   PYRAMIDAL, SPARSE; the arrays Given and Found. Rows of sparse models have `width` columns, their contacts wrenches. */

typedef struct {
  int nv, general, limits, contacts, width, has_product;
} Sizes;

static T dot(const T* a, const T* b, int n) {
  T sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

static void put(const Given* x, const Found* y, int slot, T velocity) {
  const T* k = x->KBIP + 4 * slot;
  y->vel[slot] = velocity;
  y->aref[slot] = -k[1] * velocity - k[0] * k[2] * (x->pos[slot] - x->margin[slot]);
}

/* J x of a contact's frame from the velocities at the last dofs of its bodies */
static void of_bodies(const Given* x, const Found* y, int c, T* frame) {
  const T* wrench = x->J_contact + (long)c * DIM * 12;
  memset(frame, 0, DIM * sizeof(T));
  for (int side = 0; side < 2; ++side) {
    int geom = x->geom[2 * c + side], last = x->body_last_dof[x->geom_body[geom > 0 ? geom : 0]];
    for (int k = 0; last >= 0 && k < DIM; ++k) frame[k] += dot(wrench + (2 * k + side) * 6, y->velocity + 6 * last, 6);
  }
}

/* sums of axes times velocities from the root to each dof */
static void find_velocities(const Sizes* s, const Given* x, const Found* y) {
  for (int v = 0; v < s->nv; ++v)
    for (int i = 0; i < 6; ++i) {
      T before = x->dof_parent[v] < 0 ? 0 : y->velocity[6 * x->dof_parent[v] + i];
      y->velocity[6 * v + i] = before + x->cdof[6 * v + i] * x->qvel[v];
    }
}

/* J x of a general row, which is kept at all dofs or at columns that -1 ends */
static T of_general(const Sizes* s, const Given* x, int k) {
  const T* row = x->J_general + (long)k * s->width;
  if (!SPARSE) return dot(row, x->qvel, s->nv);
  T sum = 0;
  for (int i = 0; i < s->width && x->columns[k * s->width + i] >= 0; ++i)
    sum += row[i] * x->qvel[x->columns[k * s->width + i]];
  return sum;
}

static void of_contact(const Sizes* s, const Given* x, const Found* y, int c, int first) {
  T frame[DIM];
  if (SPARSE) of_bodies(x, y, c, frame);
  else
    for (int k = 0; k < DIM; ++k) frame[k] = dot(x->J_contact + ((long)c * DIM + k) * s->nv, x->qvel, s->nv);
  for (int f = 0; f < NF; ++f) {
    if (!x->active[first + f]) continue;
    int k = f / 2 + 1;
    T velocity = !PYRAMIDAL || DIM == 1 ? frame[f] : frame[0] + (f % 2 ? -1 : 1) * x->friction[5 * c + k - 1] * frame[k];
    put(x, y, first + f, velocity);
  }
}

static void make_reference(const Given* x, const Found* y) {
  const Sizes* s = (const Sizes*)x->sizes;
  if (SPARSE) find_velocities(s, x, y);
  int limit = s->general + s->nv, contact = limit + 2 * s->limits;
  for (int k = 0; k < s->general; ++k) {
    if (!x->active[k]) continue;
    put(x, y, k, of_general(s, x, k));
    if (s->has_product) y->aref[k] -= x->product[k];
  }
  for (int v = 0; v < s->nv; ++v)
    if (x->active[s->general + v]) put(x, y, s->general + v, x->qvel[v]);
  for (int i = 0; i < 2 * s->limits; ++i) {
    T velocity = x->qvel[x->limit_dof[i % s->limits]];
    if (x->active[limit + i]) put(x, y, limit + i, i < s->limits ? velocity : -velocity);
  }
  for (int c = 0; c < s->contacts; ++c)
    if (x->active[contact + c * NF]) of_contact(s, x, y, c, contact + c * NF);
}
