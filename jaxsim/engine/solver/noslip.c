/* The sweeps of the noslip solver over the rows in use, one world: `sweep_all` of noslip.py, in sequence. What is
   generated before this text: T; DIM rows of a contact, NF slots of a contact, PAIRS and CONES (what the friction of
   contacts is); `visit_scalar` and `visit_cone` of slip.py.

   Rows are visited in blocks: a row of dry friction, a pair of opposing edges of a pyramid, or the friction of an
   elliptic contact. A list holds the blocks in use, and after each sweep those whose island goes on. */

#include <stdlib.h>

#define WIDTH (CONES ? DIM - 1 : 1) /* rows of a block, at most */

typedef struct {
  int nv, ndry, ncontact, contact_slot, nslot, islands, iterations;
} Sizes;

typedef struct {
  const T *factor, *general, *contact, *friction, *aref, *bound, *regular, *tolerance, *scale;
  const bool* active;
  const int *label, *dry_slots;
} Given;

typedef struct {
  int slot, width;
  bool is_dry;
  const T* friction;
  T *x, products[WIDTH * WIDTH]; /* L^-1 J' of its rows, one after another, and their inner products */
} Block;

static T dot(const T* a, const T* b, int n) {
  T sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

static void add_scaled(T* y, T scale, const T* x, int n) {
  for (int i = 0; i < n; ++i) y[i] += scale * x[i];
}

/* L^-1 b in place; b is zero before `first` */
static void substitute(const Sizes* s, const T* factor, T* b, int first) {
  while (first < s->nv && b[first] == 0) ++first;
  for (int i = first; i < s->nv; ++i)
    b[i] = (b[i] - dot(factor + (long)i * s->nv + first, b + first, i - first)) / factor[(long)i * s->nv + i];
}

static void finish(const Sizes* s, const Given* g, Block* b, int first) {
  for (int k = 0; k < b->width; ++k) substitute(s, g->factor, b->x + (long)k * s->nv, first);
  for (int k = 0; k < b->width; ++k)
    for (int l = 0; l < b->width; ++l)
      b->products[k * b->width + l] = dot(b->x + (long)k * s->nv, b->x + (long)l * s->nv, s->nv);
}

/* The blocks in use in MuJoCo's order, with their rows in `x`; returns their number. */
static int find_blocks(const Sizes* s, const Given* g, Block* blocks, T* x) {
  int n = 0;
  for (int i = 0; i < s->ndry; ++i) {
    int slot = g->dry_slots[i];
    if (!g->active[slot]) continue;
    Block* b = blocks + n++;
    *b = (Block){slot, 1, true, 0, x};
    if (i < s->nv) x[i] = 1;
    else memcpy(x, g->general + (long)(i - s->nv) * s->nv, s->nv * sizeof(T));
    finish(s, g, b, i < s->nv ? i : 0);
    x += s->nv;
  }
  for (int c = 0; (PAIRS || CONES) && c < s->ncontact; ++c) {
    int slot = s->contact_slot + c * NF;
    const T *rows = g->contact + ((long)c * DIM + 1) * s->nv, *friction = g->friction + c * (DIM - 1);
    for (int k = 0; PAIRS && k < DIM - 1; ++k) {
      if (!g->active[slot + 2 * k + 1]) continue;
      Block* b = blocks + n++;
      *b = (Block){slot + 2 * k, 1, false, friction + k, x};
      add_scaled(x, 2 * friction[k], rows + (long)k * s->nv, s->nv);
      finish(s, g, b, 0);
      x += s->nv;
    }
    bool any = false;
    for (int k = 1; CONES && k < DIM; ++k) any |= g->active[slot + k];
    if (!any) continue;
    Block* b = blocks + n++;
    *b = (Block){slot, DIM - 1, false, friction, x};
    memcpy(x, rows, (DIM - 1) * (size_t)s->nv * sizeof(T));
    finish(s, g, b, 0);
    x += (DIM - 1) * (long)s->nv;
  }
  return n;
}

/* Each visit changes the force of a block and y, and returns what it improved. */
static T visit_row(const Sizes* s, const Given* g, const Block* b, T* y, T* force) {
  T* f = force + b->slot;
  T reference = g->aref[b->slot], value = f[0], limit = g->bound[b->slot], found[2];
  bool paired = !b->is_dry;
  if (paired) reference -= g->aref[b->slot + 1], value = (f[0] - f[1]) / 2, limit = (f[0] + f[1]) / 2;
  T slip = dot(b->x, y, s->nv) - reference;
  visit_scalar(&slip, b->products, &value, &limit, &paired, found);
  if (paired) f[0] = limit + found[0], f[1] = limit - found[0];
  else f[0] = found[0];
  add_scaled(y, found[0] - value, b->x, s->nv);
  return found[1];
}

#if CONES
static T visit_friction(const Sizes* s, const Given* g, const Block* b, T* y, T* force) {
  T slip[DIM - 1], friction[DIM - 1], found[DIM];
  const bool* active = g->active + b->slot + 1;
  T* f = force + b->slot + 1;
  for (int k = 0; k < DIM - 1; ++k) {
    slip[k] = dot(b->x + (long)k * s->nv, y, s->nv) - g->aref[b->slot + 1 + k];
    friction[k] = active[k] ? b->friction[k] : 1;
  }
  visit_cone(slip, b->products, friction, active, f, force + b->slot, found);
  for (int k = 0; k < DIM - 1; ++k) {
    add_scaled(y, found[k] - f[k], b->x + (long)k * s->nv, s->nv);
    f[k] = found[k];
  }
  return found[DIM - 1];
}
#else
#define visit_friction visit_row
#endif

/* Sweeps until no island goes on; returns the greatest number of sweeps of an island that has rows. */
static int make_sweeps(const Sizes* s, const Given* g, Block** list, int n, T* y, T* force, T* improved, int* sweeps) {
  bool touched[s->islands], running[s->islands];
  int most = 0;
  for (int i = 0; i < s->islands; ++i) touched[i] = false, running[i] = true, improved[i] = 0, sweeps[i] = 0;
  for (int i = 0; i < s->nslot; ++i) { /* the first sweep takes away the cost of regularisation */
    touched[g->label[i]] |= g->active[i];
    improved[g->label[i]] += (T)0.5 * force[i] * force[i] * g->regular[i];
  }
  for (int turn = 0, any = true; any && turn < s->iterations; ++turn) {
    for (int i = 0; i < n; ++i) {
      const Block* b = list[i];
      improved[g->label[b->slot]] += (b->is_dry || PAIRS ? visit_row : visit_friction)(s, g, b, y, force);
    }
    any = false;
    for (int i = 0; i < s->islands; ++i) {
      sweeps[i] += running[i];
      running[i] &= improved[i] * *g->scale >= *g->tolerance;
      improved[i] = 0, any |= running[i] && touched[i];
    }
    int kept = 0;
    for (int i = 0; i < n; ++i)
      if (running[g->label[list[i]->slot]]) list[kept++] = list[i];
    n = kept;
  }
  for (int i = 0; i < s->islands; ++i) most = touched[i] && sweeps[i] > most ? sweeps[i] : most;
  return most;
}

static void world(const T* factor, const T* y0, const T* general, const T* contact, const T* friction, const T* aref,
                  const bool* active, const T* bound, const T* force0, const T* regular, const int* label,
                  const T* tolerance, const T* scale, const int* dry_slots, const int* sizes, T* force, int* count) {
  const Sizes* s = (const Sizes*)sizes;
  Given g = {factor, general, contact, friction, aref, bound, regular, tolerance, scale, active, label, dry_slots};
  int blocks = s->ndry + (PAIRS ? s->ncontact * (DIM - 1) : CONES ? s->ncontact : 0), rows = 0;
  for (int i = 0; i < s->nslot; ++i) rows += active[i]; /* no fewer than those of blocks in use, but for absent ones */
  for (int c = 0; CONES && c < s->ncontact; ++c) rows += DIM;
  Block* block = malloc((blocks + 1) * sizeof(Block));
  Block** list = malloc((blocks + 1) * sizeof(Block*));
  T* x = calloc((size_t)(rows + 1) * s->nv + s->nv + s->islands, sizeof(T));
  int* sweeps = malloc(s->islands * sizeof(int));
  memcpy(force, force0, s->nslot * sizeof(T));
  *count = -1; /* no memory: forces stay as they are */
  if (block && list && x && sweeps) {
    T *y = x, *improved = y + s->nv;
    memcpy(y, y0, s->nv * sizeof(T));
    int n = find_blocks(s, &g, block, improved + s->islands);
    for (int i = 0; i < n; ++i) list[i] = block + i;
    *count = make_sweeps(s, &g, list, n, y, force, improved, sweeps);
  }
  free(block), free(list), free(x), free(sweeps);
}
