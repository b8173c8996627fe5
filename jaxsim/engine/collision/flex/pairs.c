/* Pairs of elements whose boxes overlap, by sweep and prune. What is generated before this text: T, N elements of WIDTH
   bodies each, NBODY, CAPACITY, ITSELF, RANKED (whether ranks are wanted). */

#include <stdint.h>

enum { LANES = 8 }; /* elements that are compared at a time */

/* Elements in the order of the sweep. Entries beyond the last one touch nothing. */
typedef struct {
  float start[N + LANES];
  T at[3][N + LANES], half[3][N + LANES];
  int place[N + LANES]; /* before they were sorted */
} Sweep;

/* bits that are ordered as numbers are; what is no number comes last */
static uint32_t ordered(float x) {
  uint32_t bits;
  x = x == 0 ? 0 : x;
  memcpy(&bits, &x, 4);
  return x != x ? 0xffffffff : bits >> 31 ? ~bits : bits | 0x80000000;
}

/* the order of numbers, equal ones as they are */
static void sort(const float* x, int* order) {
  uint32_t key[N + 1];
  int spare[N + 1], *from = order, *to = spare;
  for (int i = 0; i < N; ++i) order[i] = i, key[i] = ordered(x[i]);
  for (int shift = 0; shift < 32; shift += 8) {
    int begin[257] = {0};
    for (int i = 0; i < N; ++i) ++begin[(key[i] >> shift & 255) + 1];
    for (int i = 0; i < 256; ++i) begin[i + 1] += begin[i];
    for (int i = 0; i < N; ++i) to[begin[key[from[i]] >> shift & 255]++] = from[i];
    int* last = from;
    from = to, to = last;
  }
}

/* the axis along which the elements reach farthest, as MuJoCo compares */
static int longest_axis(const T* box) {
  T low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, size[3];
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < 3; ++k) {
      T l = box[6 * i + k] - box[6 * i + 3 + k], h = box[6 * i + k] + box[6 * i + 3 + k];
      low[k] = l < low[k] ? l : low[k], high[k] = h > high[k] ? h : high[k];
    }
  for (int k = 0; k < 3; ++k) size[k] = high[k] - low[k];
  return size[0] > size[1] && size[0] > size[2] ? 0 : size[1] > size[2] ? 1 : 2;
}

static void arrange(const T* box, int axis, Sweep* s) {
  float start[N + 1];
  for (int i = 0; i < N; ++i) start[i] = (float)(box[6 * i + axis] - box[6 * i + 3 + axis]);
  sort(start, s->place);
  for (int i = 0; i < N; ++i) {
    const T* b = box + 6 * s->place[i];
    s->start[i] = start[s->place[i]];
    for (int k = 0; k < 3; ++k) s->at[k][i] = b[k], s->half[k][i] = b[3 + k];
  }
  for (int i = N; i < N + LANES; ++i) {
    s->start[i] = INFINITY;
    for (int k = 0; k < 3; ++k) s->at[k][i] = INFINITY, s->half[k][i] = 0;
  }
}

/* which of the elements from j on overlap with element i; whether any does */
static int overlaps(const Sweep* s, int i, int j, T margin, int* meets) {
  for (int l = 0; l < LANES; ++l) meets[l] = 1;
  for (int k = 0; k < 3; ++k) {
    T at = s->at[k][i], half = s->half[k][i];
    for (int l = 0; l < LANES; ++l) {
      T gap = at - s->at[k][j + l];
      meets[l] &= (gap < 0 ? -gap : gap) <= half + s->half[k][j + l] + margin;
    }
  }
  int any = 0;
  for (int l = 0; l < LANES; ++l) any |= meets[l];
  return any;
}

/* where boxes that meet that of an element begin at the latest, with room for rounding */
static float end_of(const Sweep* s, int i, int axis, T margin) {
  T at = s->at[axis][i], reach = s->half[axis][i] + margin;
  return (float)(at + reach + (T)1e-6 * ((at < 0 ? -at : at) + reach));
}

static void world(const T* box, const T* margin, const int* body, const bool* is_first, const int* id, int* pair,
                  int* count, int* rank) {
  Sweep s;
  int axis = longest_axis(box), meets[LANES], last[NBODY + 2]; /* the element that was seen last at each body */
  arrange(box, axis, &s);
  for (int i = 0; i < NBODY + 2; ++i) last[i] = -1;
  for (int i = 0; i < N; ++i) {
    int a = s.place[i];
    float end = end_of(&s, i, axis, *margin);
    if (RANKED) rank[a] = i;
    for (int k = 0; k < WIDTH; ++k) last[body[WIDTH * a + k] + 1] = body[WIDTH * a + k] < 0 ? -1 : i;
    for (int j = i + 1; j < N && s.start[j] <= end; j += LANES) {
      if (!overlaps(&s, i, j, *margin, meets)) continue;
      for (int l = 0; l < LANES; ++l) {
        if (!meets[l]) continue;
        int b = s.place[j + l], shared = 0;
        for (int k = 0; k < WIDTH; ++k) shared |= last[body[WIDTH * b + k] + 1] == i;
        if (shared || (!ITSELF && is_first[a] == is_first[b])) continue;
        bool swap = ITSELF ? a > b : !is_first[a];
        if (*count < CAPACITY) pair[2 * *count] = id[swap ? b : a], pair[2 * *count + 1] = id[swap ? a : b];
        ++*count;
      }
    }
  }
}
