"""Caches of compiled programs on disk: JAX's, and the bounds of our own folders."""

import contextlib
import os
import time
from pathlib import Path

import jax

MIN_SECONDS = 0.3  # programs that compile faster are not cached
MOST_BYTES, MOST_DAYS = 2**30, 60.0  # of files in a folder of ours; all of a step of the humanoid are 3 MB
BOUNDS = ("JAXSIM_KEPT_BYTES", "JAXSIM_KEPT_DAYS")  # variables of the environment that set them


def use_compile_cache(folder: str | os.PathLike | None = None) -> Path | None:
    """Cache compiled programs on disk for later processes; return the folder, or None if nothing was changed.

    Without `folder` it is `jaxsim` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`). A folder set in JAX
    before is kept (`JAX_COMPILATION_CACHE_DIR`); an empty `JAX_COMPILATION_CACHE_DIR` disables the cache.
    """
    if folder is None:
        if getattr(jax.config, "jax_compilation_cache_dir", None) or "JAX_COMPILATION_CACHE_DIR" in os.environ:
            return None
        folder = user_folder()
    path = made(Path(folder))
    if path is None:
        return None
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_SECONDS)
    return path


def user_folder() -> Path:
    """Return the folder `jaxsim` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxsim"


def made(folder: Path) -> Path | None:
    """Return the folder, created if it does not exist; None if that is not allowed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None  # the folder is not writable
    return folder if os.access(folder, os.W_OK) else None


def evict(folder: Path) -> None:
    """Remove files that were not used for a long time, then the least recently used until the rest is small enough.

    The modification time of a file is that of its last use. A file is removed with its checksum (`.sum`). A process
    that has loaded a removed file keeps using it; another process makes it again.
    """
    most_bytes, most_days = (
        float(os.environ.get(name) or default) for name, default in zip(BOUNDS, (MOST_BYTES, MOST_DAYS), strict=True)
    )
    found = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another process has removed it
            if path.is_file() and path.suffix != ".sum":
                found.append((path.stat().st_mtime, path.stat().st_size, path))
    oldest, total = time.time() - 86400 * most_days, 0
    for used, size, path in sorted(found, reverse=True):
        total += size
        if used < oldest or total > most_bytes:
            for file in (path, path.with_suffix(".sum")):
                file.unlink(missing_ok=True)
