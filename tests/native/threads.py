"""Kernels on the host with several lanes, each a thread, that wait for each other where the kernel says so."""

from typing import Any

from jaxsim.native import compiler as native
from jaxsim.native import tile_source as tile
from jaxsim.native.tile_source import TileSource, tile_source

LANES = 5
ENTRY = """
#include <pthread.h>
static pthread_barrier_t gate;
static void meet(void) {{ pthread_barrier_wait(&gate); }}
static double block[{numbers}];
static const void* given[{count}];
static void* one_lane(void* lane) {{
  for (int world = 0; world < {worlds}; ++world) {{
    meet();
    visit((int)(long)lane, world, {args});
    meet();
  }}
  return 0;
}}
void tile({signature}) {{
  pthread_t threads[LANES];
  const void* pointers[] = {{{names}}};
  for (int i = 0; i < {count}; ++i) given[i] = pointers[i];
  pthread_barrier_init(&gate, 0, LANES);
  for (long i = 0; i < LANES; ++i) pthread_create(threads + i, 0, one_lane, (void*)i);
  for (int i = 0; i < LANES; ++i) pthread_join(threads[i], 0);
}}
"""


def use(monkeypatch: Any) -> None:
    """Let stages on the host use threads from now on."""
    monkeypatch.setattr(tile, "tile_source", _source)
    monkeypatch.setattr(native, "FLAGS", (*native.FLAGS, "-D_GNU_SOURCE", "-pthread"))
    monkeypatch.setattr(native, "LIBRARIES", ("-pthread", *native.LIBRARIES))


def _source(flat: Any, has_worlds: Any, worlds: int, lanes: int) -> TileSource:
    source = tile_source(flat, has_worlds, worlds, LANES)
    count = len(flat.inputs) + len(flat.outputs) + 1
    names = [f"p{i}" for i in range(count)]
    entry = ENTRY.format(
        numbers=max(1, source.shared // 8),
        count=count,
        worlds=worlds,
        args=", ".join(["(char*)block", *(f"(void*)given[{i}]" for i in range(count))]),
        signature=", ".join(f"void* {n}" for n in names),
        names=", ".join(names),
    )
    return source._replace(text="static void meet(void);\n" + source.text + entry)
