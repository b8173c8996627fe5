/* Geoms whose boxes may touch, by sweep and prune: boxes along the axes of the world, sorted along the axis on which
   centres spread most. `meet(scene, g, h)` is called for each two of them, once. What is generated before this text: T,
   PLANE and HFIELD, the geom types without bounds.

   Geoms that do not move never meet each other, so they are sorted apart and met only by those that move. */

#include <stdlib.h>

/* Bounds of a geom along the axes of the world, the axis of the sweep first. */
typedef struct {
  T low[3], high[3];
  int geom;
} Bounds;

/* Poses and bounds of the geoms of a world. `reach` is what each of two adds to its box: half of the largest margin. */
typedef struct {
  int ngeom;
  const T *pos, *mat, *rbound, *aabb;
  const bool *is_still, *is_swept;
  T reach;
  T (*centre)[3]; /* of the boxes */
} Geoms;

static T dot3(const T* a, const T* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static bool spheres_meet(const Geoms* x, int g, int h, T margin) {
  T gap[3], reach = x->rbound[g] + x->rbound[h] + margin;
  for (int k = 0; k < 3; ++k) gap[k] = x->pos[3 * h + k] - x->pos[3 * g + k];
  return dot3(gap, gap) <= reach * reach;
}

static bool is_above(const Geoms* x, int plane, int g, T margin) {
  T height = 0;
  for (int k = 0; k < 3; ++k) height += (x->pos[3 * g + k] - x->pos[3 * plane + k]) * x->mat[9 * plane + 3 * k + 2];
  return height > margin + x->rbound[g];
}

/* Whether boxes are within a margin along the axes of either: `bounds.boxes_overlap`. */
static bool boxes_meet(const Geoms* x, int g, int h, T margin) {
  const T *a = x->mat + 9 * g, *b = x->mat + 9 * h, *half_a = x->aabb + 6 * g + 3, *half_b = x->aabb + 6 * h + 3;
  T gap[3], cosine[3][3];
  for (int k = 0; k < 3; ++k) gap[k] = x->centre[h][k] - x->centre[g][k];
  bool apart = false;
  for (int i = 0; i < 3; ++i) {
    T along = 0, reach = half_a[i];
    for (int j = 0; j < 3; ++j) {
      T c = a[i] * b[j] + a[3 + i] * b[3 + j] + a[6 + i] * b[6 + j];
      cosine[i][j] = c < 0 ? -c : c;
      reach += cosine[i][j] * half_b[j];
      along += a[3 * j + i] * gap[j];
    }
    apart |= (along < 0 ? -along : along) - margin > reach;
  }
  for (int j = 0; j < 3; ++j) {
    T along = 0, reach = half_b[j];
    for (int i = 0; i < 3; ++i) reach += cosine[i][j] * half_a[i], along += b[3 * i + j] * gap[i];
    apart |= (along < 0 ? -along : along) - margin > reach;
  }
  return !apart;
}

static int by_low(const void* a, const void* b) {
  T x = ((const Bounds*)a)->low[0], y = ((const Bounds*)b)->low[0];
  return (x > y) - (x < y);
}

/* sort by buckets, then by insertion, which has little left to do unless few are far from all others */
static void sort_bounds(Bounds* x, Bounds* spare, int* begin, int n) {
  if (n < 2) return;
  T first = x[0].low[0], last = first;
  for (int i = 1; i < n; ++i) {
    first = x[i].low[0] < first ? x[i].low[0] : first;
    last = x[i].low[0] > last ? x[i].low[0] : last;
  }
  T scale = last > first ? (n - 1) / (last - first) : 0;
  memset(begin, 0, (n + 2) * sizeof(int));
  for (int i = 0; i < n; ++i) ++begin[(int)((x[i].low[0] - first) * scale) + 1];
  for (int i = 0; i < n; ++i) begin[i + 1] += begin[i];
  for (int i = 0; i < n; ++i) spare[begin[(int)((x[i].low[0] - first) * scale)]++] = x[i];
  long moves = 0, most = 8L * n;
  for (int i = 0; i < n && moves <= most; ++i) {
    int k = i;
    for (; k > 0 && x[k - 1].low[0] > spare[i].low[0]; --k, ++moves) x[k] = x[k - 1];
    x[k] = spare[i];
  }
  if (moves <= most) return;
  memcpy(x, spare, n * sizeof(Bounds));
  qsort(x, n, sizeof(Bounds), by_low);
}

/* the first of sorted bounds that begins beyond a place, or at it if `at_it` */
static int first_from(const Bounds* x, int n, T place, bool at_it) {
  int low = 0;
  while (n > 0) {
    int half = n / 2;
    T here = x[low + half].low[0];
    if (here < place || (here == place && !at_it)) low += half + 1, n -= half + 1;
    else n = half;
  }
  return low;
}

/* the axis along which centres of geoms that move spread most; sets the centres of all */
static int find_axis(const Geoms* x) {
  T sum[3] = {0}, square[3] = {0};
  int axis = 0, count = 0;
  for (int g = 0; g < x->ngeom; ++g) {
    for (int k = 0; k < 3; ++k) x->centre[g][k] = x->pos[3 * g + k] + dot3(x->mat + 9 * g + 3 * k, x->aabb + 6 * g);
    const T* c = x->centre[g];
    if (x->is_still[g] || !isfinite(c[0] + c[1] + c[2])) continue;
    ++count;
    for (int k = 0; k < 3; ++k) sum[k] += c[k], square[k] += c[k] * c[k];
  }
  for (int k = 0; k < 3 && count; ++k) square[k] -= sum[k] * sum[k] / count, axis = square[k] > square[axis] ? k : axis;
  return axis;
}

/* Bounds of geoms that move, then, from `ngeom` on, of those that do not; numbers of both. Poses that are no numbers
   meet nothing. */
static void find_bounds(const Geoms* x, Bounds* bounds, int* count) {
  int axis = find_axis(x);
  count[0] = count[1] = 0;
  for (int g = 0; g < x->ngeom; ++g) {
    if (!x->is_swept[g]) continue;
    Bounds b = {.geom = g};
    bool is_finite = true;
    for (int i = 0; i < 3; ++i) {
      int k = (axis + i) % 3;
      const T *r = x->mat + 9 * g + 3 * k, *half = x->aabb + 6 * g + 3;
      T c = x->centre[g][k], reach = x->reach;
      for (int j = 0; j < 3; ++j) reach += (r[j] < 0 ? -r[j] : r[j]) * half[j];
      reach += (T)1e-6 * ((c < 0 ? -c : c) + (reach < 0 ? -reach : reach)); /* rounding */
      b.low[i] = c - reach, b.high[i] = c + reach;
      is_finite &= isfinite(b.low[i]) && isfinite(b.high[i]);
    }
    if (is_finite) bounds[x->is_still[g] * x->ngeom + count[x->is_still[g]]++] = b;
  }
}

static void meet_if_near(void* scene, const Bounds* a, const Bounds* b, void (*meet)(void*, int, int)) {
  bool apart = (a->low[1] > b->high[1]) | (b->low[1] > a->high[1]); /* one branch for all, which is nearly always taken */
  apart |= (a->low[2] > b->high[2]) | (b->low[2] > a->high[2]);
  if (!apart) meet(scene, a->geom, b->geom);
}

/* Calls `meet` for geoms whose boxes overlap; returns whether there was memory. */
static bool sweep(const Geoms* x, void* scene, void (*meet)(void*, int, int)) {
  Bounds* moving = malloc(3 * (x->ngeom + 1) * sizeof(Bounds));
  int* begin = malloc((x->ngeom + 2) * sizeof(int));
  bool enough = moving && begin;
  if (enough) {
    Bounds *still = moving + x->ngeom, *spare = still + x->ngeom;
    int count[2];
    find_bounds(x, moving, count);
    int n = count[0], m = count[1];
    sort_bounds(moving, spare, begin, n);
    sort_bounds(still, spare, begin, m);
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n && moving[j].low[0] <= moving[i].high[0]; ++j)
        meet_if_near(scene, moving + i, moving + j, meet);
      for (int j = first_from(still, m, moving[i].low[0], false); j < m && still[j].low[0] <= moving[i].high[0]; ++j)
        meet_if_near(scene, moving + i, still + j, meet);
    }
    for (int j = 0; j < m; ++j)
      for (int i = first_from(moving, n, still[j].low[0], true); i < n && moving[i].low[0] <= still[j].high[0]; ++i)
        meet_if_near(scene, moving + i, still + j, meet);
  }
  free(moving), free(begin);
  return enough;
}
