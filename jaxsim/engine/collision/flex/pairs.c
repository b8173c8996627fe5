/* Pairs of elements whose boxes overlap, in sequence: a uniform grid whose cells are found by their hash. What is
   generated before this text: T, N elements, CAPACITY, ITSELF, BUCKETS (a power of two), CELLS along each axis. */

/* An element in the order of the grid, and its place before that. */
typedef struct {
  T at[3], half[3];
  int cell, place, body[4];
  bool is_first;
} Element;

static bool boxes_meet(const Element* a, const Element* b, T margin) {
  int apart = 0;
  for (int k = 0; k < 3; ++k) {
    T gap = a->at[k] - b->at[k];
    apart |= (gap < 0 ? -gap : gap) > a->half[k] + b->half[k] + margin;
  }
  return !apart;
}

static bool share_a_body(const Element* a, const Element* b) {
  int same = 0;
  for (int k = 0; k < 4; ++k)
    for (int l = 0; l < 4; ++l) same |= (a->body[k] >= 0) & (a->body[k] == b->body[l]);
  return same;
}

static int bucket(int cell) { return (int)(((unsigned)cell * 2654435761u) >> 7) & (BUCKETS - 1); }

/* the cells of half of the neighbours, of keys (z 1024 + y) 1024 + x */
static const int NEXT_CELLS[13] = {1,       1023,    1024,    1025,    1047551, 1047552, 1047553,
                                   1048575, 1048576, 1048577, 1049599, 1049600, 1049601};

/* the elements by buckets; `begin` gets the first one of each */
static void sort(const T* box, T margin, const int* body, const bool* is_first, Element* element, int* begin) {
  T low[3] = {INFINITY, INFINITY, INFINITY}, width = 0;
  int cell[N];
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < 3; ++k) {
      T x = isfinite(box[6 * i + k]) ? box[6 * i + k] : 0, half = box[6 * i + 3 + k];
      low[k] = x < low[k] ? x : low[k], width = half > width ? half : width;
    }
  width = 2 * width + margin;
  width = width > (T)1e-9 ? width : (T)1e-9;
  for (int i = 0; i <= BUCKETS; ++i) begin[i] = 0;
  for (int i = 0; i < N; ++i) {
    cell[i] = 0;
    for (int k = 2; k >= 0; --k) {
      T x = isfinite(box[6 * i + k]) ? box[6 * i + k] : 0, at = (x - low[k]) / width;
      cell[i] = cell[i] * 1024 + 1 + (at < CELLS - 1 ? (int)at : CELLS - 1);
    }
    ++begin[bucket(cell[i]) + 1];
  }
  for (int i = 0; i < BUCKETS; ++i) begin[i + 1] += begin[i];
  for (int i = N; i-- > 0;) {
    Element* e = element + --begin[bucket(cell[i]) + 1];
    for (int k = 0; k < 3; ++k) e->at[k] = box[6 * i + k], e->half[k] = box[6 * i + 3 + k];
    for (int k = 0; k < 4; ++k) e->body[k] = body[4 * i + k];
    e->cell = cell[i], e->place = i, e->is_first = is_first[i];
  }
}

static void world(const T* box, const T* margin, const int* body, const bool* is_first, const int* id, int* pair,
                  int* count) {
  Element element[N + 1];
  int begin[BUCKETS + 2];
  sort(box, *margin, body, is_first, element, begin);
  begin[BUCKETS + 1] = N;
  for (int i = 0; i < N; ++i)
    for (int n = -1; n < 13; ++n) {
      const Element* a = element + i;
      int cell = a->cell + (n < 0 ? 0 : NEXT_CELLS[n]), of = bucket(cell), end = begin[of + 2];
      for (int j = n < 0 ? i + 1 : begin[of + 1]; j < end; ++j) {
        const Element* b = element + j;
        if (b->cell != cell || !boxes_meet(a, b, *margin) || share_a_body(a, b)) continue;
        if (!ITSELF && a->is_first == b->is_first) continue;
        bool swap = ITSELF ? a->place > b->place : !a->is_first;
        if (*count < CAPACITY)
          pair[2 * *count] = id[(swap ? b : a)->place], pair[2 * *count + 1] = id[(swap ? a : b)->place];
        ++*count;
      }
    }
}
