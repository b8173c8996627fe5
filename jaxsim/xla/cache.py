"""JAX's persistent cache of compiled programs, enabled for programs that are started often."""

import os
from pathlib import Path

import jax

MIN_SECONDS = 0.3  # programs that compile faster are not cached


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
