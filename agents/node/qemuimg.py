"""qemu-img on open files: it never sees a name that somebody chose, has limits, and goes when we do."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

from ipxeready.errors import ApplicationError, Conflict, Unavailable
from ipxeready.said import said

#: Memory for one run: enough for the tables of 64 TiB, too little to hurt the node.
_MEMORY = 2 << 30
#: Seconds of processor time to look at a header, and at all tables.
_LOOK, _WALK = 30, 900
#: What `qemu-img check` says of unused clusters, and of a format that it cannot check.
_LEAKS, _NO_CHECK = 3, 63
_PROGRESS = re.compile(rb"\(([0-9.]+)/100%\)")
#: How qemu-img names the file that we gave it.
_OURS = re.compile(r"'(?:driver=[^']*|/proc/self/fd/\d+)'")
_PERIOD = 0.5
_STDERR = 16 << 10


class Failed(Exception):
    """qemu-img said no; the text is its last words."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


def available() -> bool:
    """Whether this node has it."""
    return shutil.which("qemu-img") is not None


def require() -> None:
    """Conflict on a node without qemu-img."""
    if not available():
        raise Conflict(
            said(
                "this node has no qemu-img, so it converts nothing. Install it there (apt-get "
                "install qemu-utils), or convert the image elsewhere and bring the raw one."
            ),
            code="convert.no_qemu",
        )


def path_of(file: int) -> str:
    """How qemu-img finds an open file that it inherits: no name of the directory is ever interpreted."""
    return f"/proc/self/fd/{file}"


def info(file: int, kind: str) -> dict[str, Any]:
    """What `qemu-img info` says of an open file, opened as `kind`."""
    words = ["info", "--output=json", "--image-opts", _options(file, kind)]
    return dict(_json(_output(words, file, cpu=_LOOK)))


def check(file: int, kind: str) -> None:
    """Failed when its tables contradict each other; formats that qemu-img cannot check pass."""
    words = ["check", "--output=json", "--image-opts", _options(file, kind)]
    try:
        _output(words, file, cpu=_WALK, good=(0, _LEAKS, _NO_CHECK))
    except Failed as error:
        raise Failed(
            said("its tables are damaged ({error})", error=error.words)
        ) from None


def data_bytes(file: int, kind: str, cluster: int, watch: Callable[[], None]) -> int:
    """How much of it is data, i.e. what a sparse copy will take; `watch` is called now and then, and may raise.

    Failed when data lies behind the end of the file: qemu-img would read zeros there, and half an image would pass for a whole one.
    """
    words = ["map", "--output=json", "--image-opts", _options(file, kind)]
    total, end = 0, os.fstat(file).st_size
    with _started(words, (file,), cpu=_WALK) as (process, heard):
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        # One extent a line; a hostile table has very many.
        for number, line in enumerate(process.stdout):
            if number % 1000 == 0:
                watch()
            found = line.strip().strip(b"[],").strip()
            if not found:
                continue
            extent = _json(found)
            if not extent.get("data") or extent.get("zero"):
                continue
            total += int(extent["length"])
            last = int(extent.get("offset", 0)) + int(extent["length"])
            # The last cluster may end early: what is not written of it is zeros.
            if "offset" in extent and last > end + cluster:
                raise Failed(
                    said(
                        "it is cut off: it has {end} bytes and its data goes on to {last}; bring the whole "
                        "file",
                        end=end,
                        last=last,
                    )
                )
        _ended(process, heard)
    return total


def convert(
    source: int,
    kind: str,
    target: int,
    size: int,
    watch: Callable[[float], None],
) -> None:
    """Write the content of `source` to `target`, an empty file that has its size already; holes stay holes.

    `watch` gets the fraction that is done, at least twice a second; what it raises ends qemu-img.
    """
    words = ["convert", "-p", "-n", "--target-is-zero", "--image-opts"]
    words += ["--target-image-opts", _options(source, kind), _options(target, "raw")]
    # Hostile tables can cost time without end: an hour, and 10 MiB a second.
    cpu = 3600 + size // (10 << 20)
    with _started(words, (source, target), cpu=cpu, written=size) as (process, heard):
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        pipe, fraction, rest = process.stdout.fileno(), 0.0, b""
        while True:
            ready, _, _ = select.select([pipe], [], [], _PERIOD)
            if ready:
                chunk = os.read(pipe, 4096)
                if not chunk:
                    break
                rest = (rest + chunk)[-200:]
                for match in _PROGRESS.finditer(rest):
                    fraction = max(fraction, float(match[1]) / 100)
            watch(min(fraction, 1.0))
        _ended(process, heard)


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Failed(said("its answer is no JSON")) from None


class _Heard:
    """The start of what qemu-img says on standard error, read all the time: a full pipe would stop it."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What it said; waits for its end."""
        self._thread.join(5)
        return self._kept.decode(errors="replace")

    def _read(self) -> None:
        with self._pipe:
            while chunk := self._pipe.read1(4096):  # type: ignore[attr-defined]
                self._kept = (self._kept + chunk)[:_STDERR]


def _options(file: int, kind: str) -> str:
    return (
        f"driver={kind},file.driver=file,file.filename={path_of(file)},file.locking=off"
    )


def _output(
    words: list[str], file: int, *, cpu: int, good: tuple[int, ...] = (0,)
) -> bytes:
    with _started(words, (file,), cpu=cpu) as (process, heard):
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        out = process.stdout.read(1 << 20)
        _ended(process, heard, good)
    return out


@contextlib.contextmanager
def _started(
    words: list[str], files: tuple[int, ...], *, cpu: int, written: int = 0
) -> Iterator[tuple[subprocess.Popen[bytes], _Heard]]:
    """A qemu-img for the length of the block: gone at its end, however that comes, and with this thread."""
    limits = [f"--as={_MEMORY}", f"--cpu={cpu}", "--core=0", f"--fsize={written}"]
    command = ["setpriv", "--pdeathsig", "KILL", "--no-new-privs"]
    command += ["prlimit", *limits, "qemu-img", *words]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=files,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        )
    except OSError as error:
        raise Unavailable(
            said(
                "qemu-img could not be started ({why}); look at the node's memory and packages.",
                why=error.strerror,
            ),
            code="convert.start",
        ) from error
    assert process.stderr is not None  # noqa: S101 - pipes were asked for
    assert process.stdout is not None  # noqa: S101
    heard = _Heard(process.stderr)
    try:
        yield process, heard
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        heard.text()


def _ended(
    process: subprocess.Popen[bytes], heard: _Heard, good: tuple[int, ...] = (0,)
) -> None:
    """Wait for its end; Failed with its last words unless that was a good one."""
    until = time.monotonic() + 60
    while (code := process.poll()) is None and time.monotonic() < until:
        time.sleep(0.01)
    if code in good:
        return
    lines = [line.strip() for line in heard.text().splitlines() if line.strip()]
    if lines:
        words = _OURS.sub("it", lines[-1].removeprefix("qemu-img: "))
        raise Failed(words.rstrip(".")[-300:])
    if code is None:
        raise Failed(said("it does not end"))
    if code < 0:
        raise Failed(said("it was ended by signal {signal}", signal=-code))
    raise Failed(said("it said {code}", code=code))


def refusal(error: Failed, what: str) -> ApplicationError:
    """The error of a run that failed."""
    return Conflict(
        said("qemu-img could not {what}: {error}.", what=what, error=error.words),
        code="convert.failed",
    )
