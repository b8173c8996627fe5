/* Candidates whose boxes overlap, of a list in MuJoCo's order. It follows sweep.c. */

typedef struct {
  int ngeom, count;
  const int *key, *candidate; /* of each two geoms that are swept, sorted by key */
  int nkey;
  int* found;
} Listed;

static void meet(void* scene, int g, int h) {
  Listed* s = scene;
  int wanted = g < h ? g * s->ngeom + h : h * s->ngeom + g, low = 0, n = s->nkey;
  while (n > 0) {
    int half = n / 2;
    if (s->key[low + half] < wanted) low += half + 1, n -= half + 1;
    else n = half;
  }
  for (; low < s->nkey && s->key[low] == wanted; ++low) s->found[s->count++] = s->candidate[low];
}

static int ascending(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

/* Fills `found` with candidates in their order: those of `always`, and those of geoms whose boxes overlap. Returns their
   number, or -1 where there is no memory. */
static int find_listed(Geoms x, const int* key, const int* candidate, int nkey, const int* always, int nalways,
                       int* found) {
  Listed s = {x.ngeom, nalways, key, candidate, nkey, found};
  memcpy(found, always, nalways * sizeof(int));
  x.centre = malloc((x.ngeom + 1) * sizeof(*x.centre));
  bool enough = x.centre && sweep(&x, &s, meet);
  free(x.centre);
  qsort(found, s.count, sizeof(int), ascending);
  return enough ? s.count : -1;
}
