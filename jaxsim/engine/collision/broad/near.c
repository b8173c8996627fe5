/* Pairs of geoms of a large model that may touch, in MuJoCo's order: `near_pairs` of broadphase.py. It follows sweep.c. */

typedef struct {
  int ngeom, npair, nexclude, capacity;
  int has_override, has_volumes; /* one margin for all; bodies are ordered as MuJoCo's trees of boxes order them */
} Sizes;

/* What is known of a geom. `parent` is the body to which the parent of its own weld is welded, or -1. */
typedef struct {
  int type, contype, conaffinity, body, weld, parent, is_single, has_volumes;
} Known;

/* An explicit pair: geoms that ascend by type, and what orders it. */
typedef struct {
  int first, second;
  unsigned signature;
} Explicit;

/* A pair that was found, and what orders it. */
typedef struct {
  unsigned major, minor;
  int row[3]; /* geoms that ascend by type; the explicit pair, or -1 */
} Pair;

typedef struct {
  Geoms x;
  const Sizes* size;
  const Known* known;
  const unsigned *exclude, *listed; /* sorted keys */
  const T* margin;
  T override;
  Pair* found;
  int count;
} Scene;

static bool is_in(const unsigned* sorted, int n, unsigned key) {
  while (n > 0) {
    int half = n / 2;
    if (sorted[half] == key) return true;
    if (sorted[half] < key) sorted += half + 1, n -= half + 1;
    else n = half;
  }
  return false;
}

static void append(Scene* s, Pair pair) {
  if (s->count < s->size->capacity) s->found[s->count] = pair;
  ++s->count;
}

/* by bodies, then by geoms; those of bodies with trees of boxes ascend by type */
static void append_dynamic(Scene* s, int g, int h) {
  const Known *a = s->known + g, *b = s->known + h;
  bool swap = a->type > b->type || (a->type == b->type && g > h);
  int first = swap ? h : g, second = swap ? g : h, body1 = s->known[first].body, body2 = s->known[second].body;
  bool by_type = s->size->has_volumes && a->has_volumes && b->has_volumes && !(a->is_single && b->is_single);
  unsigned low = body1 < body2 ? body1 : body2, high = body1 < body2 ? body2 : body1;
  bool flip = !by_type && body1 > body2;
  unsigned one = flip ? second : first, two = flip ? first : second;
  append(s, (Pair){(low << 16) + high, s->size->npair + one * s->size->ngeom + two, {first, second, -1}});
}

static bool may_collide(const Known* a, const Known* b) {
  if (!((a->contype & b->conaffinity) | (b->contype & a->conaffinity)) || a->weld == b->weld) return false;
  return !(a->weld && b->weld && (a->weld == b->parent || b->weld == a->parent));
}

/* whether neither the bodies are excluded nor the geoms an explicit pair */
static bool is_listed_nowhere(const Scene* s, int g, int h) {
  unsigned a = s->known[g].body, b = s->known[h].body, low = g < h ? g : h, high = g < h ? h : g;
  return !is_in(s->exclude, s->size->nexclude, a < b ? (a << 16) + b : (b << 16) + a) &&
         !is_in(s->listed, s->size->npair, low * s->size->ngeom + high);
}

static T margin_of(const Scene* s, int g, int h) {
  return s->size->has_override ? s->override : s->margin[g] + s->margin[h];
}

static void meet(void* scene, int g, int h) {
  Scene* s = scene;
  if (!may_collide(s->known + g, s->known + h)) return;
  T margin = margin_of(s, g, h);
  if (spheres_meet(&s->x, g, h, margin) && boxes_meet(&s->x, g, h, margin) && is_listed_nowhere(s, g, h))
    append_dynamic(s, g, h);
}

/* planes and height fields, which are not swept */
static void meet_grounds(Scene* s) {
  for (int g = 0; g < s->size->ngeom; ++g) {
    int type = s->known[g].type;
    if (type != PLANE && type != HFIELD) continue;
    for (int h = 0; h < s->size->ngeom; ++h) {
      const Known* other = s->known + h;
      if (other->type == PLANE || other->type == HFIELD || !may_collide(s->known + g, other)) continue;
      if (type == PLANE && is_above(&s->x, g, h, margin_of(s, g, h))) continue;
      if (is_listed_nowhere(s, g, h)) append_dynamic(s, g, h);
    }
  }
}

static void meet_explicit(Scene* s, const Explicit* pair, const T* pair_margin) {
  for (int k = 0; k < s->size->npair; ++k) {
    int g = pair[k].first, h = pair[k].second, type = s->known[g].type;
    T margin = s->size->has_override ? s->override : pair_margin[k];
    if (s->known[h].type == PLANE || s->known[h].type == HFIELD) continue;
    if (type == PLANE && is_above(&s->x, g, h, margin)) continue;
    if (type != PLANE && type != HFIELD && !(spheres_meet(&s->x, g, h, margin) && boxes_meet(&s->x, g, h, margin)))
      continue;
    append(s, (Pair){pair[k].signature, k, {g, h, k}});
  }
}

static int by_order(const void* a, const void* b) {
  const Pair *x = a, *y = b;
  if (x->major != y->major) return x->major < y->major ? -1 : 1;
  return (x->minor > y->minor) - (x->minor < y->minor);
}

static void world(const T* pos, const T* mat, const T* rbound, const T* aabb, const T* margin, const T* override,
                  const T* pair_margin, const int* sizes, const int* known, const bool* is_still, const bool* is_swept,
                  const int* exclude, const int* pair, const int* listed, int* row, int* count) {
  const Sizes* size = (const Sizes*)sizes;
  T reach = *override / 2;
  for (int g = 0; !size->has_override && g < size->ngeom; ++g) reach = margin[g] > reach ? margin[g] : reach;
  Scene s = {{size->ngeom, pos, mat, rbound, aabb, is_still, is_swept, reach}, size, (const Known*)known,
             (const unsigned*)exclude, (const unsigned*)listed, margin, *override};
  s.found = malloc((size->capacity + 1) * sizeof(Pair));
  s.x.centre = malloc((size->ngeom + 1) * sizeof(*s.x.centre));
  if (s.found && s.x.centre && sweep(&s.x, &s, meet)) {
    meet_grounds(&s);
    meet_explicit(&s, (const Explicit*)pair, pair_margin);
    int kept = s.count < size->capacity ? s.count : size->capacity;
    qsort(s.found, kept, sizeof(Pair), by_order);
    for (int i = 0; i < kept; ++i) memcpy(row + 3 * i, s.found[i].row, sizeof s.found[i].row);
    *count = s.count;
  } else {
    *count = size->capacity + 1; /* no memory: all are dropped, and one is counted */
  }
  free(s.found), free(s.x.centre);
}
