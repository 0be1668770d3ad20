"""What the lab makes once and keeps below cache/: made under a lock, there only when complete, made anew when its recipe changes."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

CACHE = Path(__file__).parent / "cache"


def kept(name: str, recipe: Sequence[bytes], make: Callable[[Path], None]) -> Path:
    """The folder that `make` filled for this recipe, from the cache or filled now; older ones of that name go."""
    digest = hashlib.sha256(b"\0".join(recipe)).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    if folder.exists():
        return folder
    CACHE.mkdir(exist_ok=True)
    with _locked(CACHE / f"{name}.lock"):
        if folder.exists():  # another run made it while this one waited
            return folder
        # Nobody else is at it: what is there is of older recipes, or was left by a run that was killed.
        older = CACHE.glob(f"{name}-{'[0-9a-f]' * 16}*")
        for path in (*older, *CACHE.glob(f"making-{name}.*")):
            _remove(path)
        work = Path(tempfile.mkdtemp(prefix=f"making-{name}.", dir=CACHE))
        try:
            work.chmod(0o755)
            make(work)
            os.replace(work, folder)
        finally:
            _remove(work)
    return folder


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
