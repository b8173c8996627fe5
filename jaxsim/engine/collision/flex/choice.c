/* Which contacts of segments with too many are kept: `choose` of choice.py, in sequence. Products are not contracted
   with sums, so that `one` has no use here. What is generated before this text: T, N contacts, SEGMENTS, KEPT, WIDTH of
   the table of paths, TURNS at most, WORD turns in a key. */

#include <stdlib.h>

typedef struct {
  int segment, rank, high, low, contact;
} Entry;

/* no two entries are equal, so that any sort gives the same order */
static int compare(const void* first, const void* second) {
  const Entry *a = first, *b = second;
  const int x[] = {a->segment, a->rank, a->high, a->low, a->contact};
  const int y[] = {b->segment, b->rank, b->high, b->low, b->contact};
  for (int i = 0; i < 5; ++i)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}

/* the turns of a walk down two trees to two leaves, as two keys */
static void walk(const int* leaf, const int* path, const int* depth, const bool* second, const T* surface, Entry* e) {
  const int *path1 = path + leaf[0] * WIDTH, *path2 = path + leaf[1] * WIDTH;
  int at1 = 0, at2 = 0, end1 = depth[leaf[0]], end2 = depth[leaf[1]];
  e->high = e->low = 0;
  for (int i = 0; i < TURNS; ++i) {
    bool down1 = at1 < end1 && (at2 == end2 || surface[path1[at1]] > surface[path2[at2]]);
    bool down2 = !down1 && at2 < end2;
    at1 += down1, at2 += down2;
    int turn = (down1 || down2) && !second[down1 ? path1[at1] : path2[at2]];
    if (i < WORD) e->high = e->high * 2 + turn;
    else e->low = e->low * 2 + turn;
  }
}

static T square(const T* a, const T* b) {
  T x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
  return x * x + y * y + z * z;
}

/* contacts of one segment: what `entry` names, in order; `spot` has distances and positions */
static void choose(Entry* entry, int n, const T* spot, int* rank) {
  T nearest[N]; /* to those selected; of those less than nothing */
  int best = 0, content[N];
  for (int i = 0; i < n; ++i) {
    content[i] = entry[i].contact, nearest[i] = INFINITY;
    if (spot[4 * content[i]] < spot[4 * content[best]]) best = i;
  }
  for (int k = 0; k < KEPT; ++k) {
    const T* pos = spot + 4 * content[best] + 1;
    T most = -1;
    int following = n - 1, first = k < KEPT - 1 ? k : best, other = content[first];
    nearest[best] = -1;
    for (int i = 0; i < n; ++i) {
      if (nearest[i] < 0) continue;
      T away = square(spot + 4 * content[i] + 1, pos);
      if (away < nearest[i]) nearest[i] = away;
      if (nearest[i] > most) most = nearest[i], following = i;
    }
    content[first] = content[best], content[best] = other;
    if (following != first) best = following;
  }
  for (int i = 0; i < n; ++i) rank[content[i]] = i < KEPT ? i : -1;
}

static void world(const int* segment, const int* keys, const bool* by_tree, const int* leaf, const T* spot,
                  const T* surface, const int* path, const int* depth, const bool* second, const T* one, int* rank) {
  Entry entry[N];
  int count[SEGMENTS + 1] = {0}, n = 0;
  for (int i = 0; i < N; ++i) ++count[segment[i]];
  for (int i = 0; i < N; ++i) {
    rank[i] = i;
    if (segment[i] == SEGMENTS || count[segment[i]] <= KEPT) continue;
    Entry e = {segment[i], keys[3 * i], keys[3 * i + 1], keys[3 * i + 2], i};
    if (by_tree[i]) walk(leaf + 2 * i, path, depth, second, surface, &e);
    entry[n++] = e;
  }
  qsort(entry, n, sizeof(Entry), compare);
  for (int i = 0; i < n; i += count[entry[i].segment]) choose(entry + i, count[entry[i].segment], spot, rank);
}
