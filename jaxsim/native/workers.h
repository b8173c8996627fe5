/* Work on parts of a batch, shared among the threads of XLA's pool. C99 and C++.

   The caller takes parts too, and waits only for parts that have begun: so it ends even where no other thread is free.
   What a thread that comes late looks at lives until the last of them has gone. */

#include <sched.h>
#include <stdlib.h>

typedef void Work(long long first, long long last, const void* data);

typedef struct {
  long long next, done, count, part, users;
  Work* work;
  const void* data;
} Shared;

static void take_parts(void* shared) {
  Shared* s = (Shared*)shared;
  for (;;) {
    long long first = __atomic_fetch_add(&s->next, s->part, __ATOMIC_RELAXED);
    if (first >= s->count) break;
    long long last = first + s->part < s->count ? first + s->part : s->count;
    s->work(first, last, s->data);
    __atomic_fetch_add(&s->done, last - first, __ATOMIC_RELEASE);
  }
  if (__atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL) == 0) free(s);
}

static long long free_threads(XLA_FFI_CallFrame* frame) {
  int64_t count = 0;
  XLA_FFI_ThreadPool_NumThreads_Args args = {sizeof args, 0, frame->ctx, &count};
  XLA_FFI_Error* error = frame->api->XLA_FFI_ThreadPool_NumThreads(&args);
  if (!error) return count;
  XLA_FFI_Error_Destroy_Args gone = {sizeof gone, 0, error};
  frame->api->XLA_FFI_Error_Destroy(&gone);
  return 1;
}

/* `work` of all parts of 0, ..., count - 1 */
static void share(XLA_FFI_CallFrame* frame, long long count, long long part, Work* work, const void* data) {
  long long parts = (count + part - 1) / part, threads = parts > 1 ? free_threads(frame) : 1;
  long long others = (threads < parts ? threads : parts) - 1;
  Shared* s = others > 0 ? (Shared*)malloc(sizeof(Shared)) : 0;
  if (!s) {
    work(0, count, data);
    return;
  }
  Shared begin = {0, 0, count, part, others + 2, work, data};
  *s = begin;
  for (long long i = 0; i < others; ++i) {
    XLA_FFI_ThreadPool_Schedule_Args args = {sizeof args, 0, frame->ctx, take_parts, s};
    XLA_FFI_Error* error = frame->api->XLA_FFI_ThreadPool_Schedule(&args);
    if (error) {
      XLA_FFI_Error_Destroy_Args gone = {sizeof gone, 0, error};
      frame->api->XLA_FFI_Error_Destroy(&gone);
      __atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL);
    }
  }
  take_parts(s);
  while (__atomic_load_n(&s->done, __ATOMIC_ACQUIRE) < count) sched_yield();
  if (__atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL) == 0) free(s);
}
