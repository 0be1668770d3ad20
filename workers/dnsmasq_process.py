"""The running dnsmasq: found by its pid file, verified before it is signalled, asked what file it reads."""

from __future__ import annotations

import os
import select
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipxeready.said import said
from ipxeready.storage.fingerprint import read_regular

DEFAULT_CONF = "/etc/dnsmasq.conf"
#: A pid file is written right after the start; clocks and rounding get this much.
_SLACK_S = 5.0
_MAX_CONF_FILES = 50
_HOSTS_OPTIONS = ("dhcp-hostsfile", "dhcp-hostsdir")
_SHORT = {"-C": "conf-file", "-7": "conf-dir", "-x": "pid-file"}


class NotRunning(Exception):
    """There is no dnsmasq that may be signalled; `words` say what was found instead."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class Process:
    """One verified dnsmasq, held by a pidfd: a signal can never reach a later owner of its pid."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def hang_up(self) -> None:
        """Make it read its hosts file again."""
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGHUP)
        except ProcessLookupError:
            raise NotRunning(
                said("dnsmasq (pid {pid}) has just ended", pid=self.pid)
            ) from None
        except PermissionError:
            raise NotRunning(
                said(
                    "no permission to signal dnsmasq (pid {pid}). Run as its user or as root, or "
                    "set IPXE_CP_DNSMASQ_RELOAD to a command",
                    pid=self.pid,
                )
            ) from None

    def ends_within(self, seconds: float) -> bool:
        """Whether the process ends in that time."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def hosts_fault(self, ours: Path) -> str | None:
        """Why what we write to `ours` is not what this dnsmasq reads, or None if it is or nobody can tell.

        A file that was mounted on its own keeps its old inode in the container when someone replaces it
        (`sed -i`, `vim`): dnsmasq then re-reads the old content for ever.
        """
        try:
            named = list(_hosts_files(self.pid))
            mine = ours.stat()
        except OSError:
            return None
        for path in named or [str(ours.absolute())]:
            try:
                seen = _view(self.pid, path).stat()
                if stat.S_ISDIR(seen.st_mode):
                    seen = _view(self.pid, f"{path}/{ours.name}").stat()
            except FileNotFoundError:
                continue
            except OSError:
                return None
            if (seen.st_dev, seen.st_ino) == (mine.st_dev, mine.st_ino):
                return None
            named = named or [path]
        if not named:
            return None
        return said(
            "dnsmasq (pid {pid}) reads {files}, which is not the file that is written here "
            "({ours}). If dnsmasq runs in a container, restart the dnsmasq container or mount "
            "the directory instead of the file",
            pid=self.pid,
            files=", ".join(named),
            ours=ours,
        )


@contextmanager
def find(pidfile: Path) -> Iterator[Process]:
    """The dnsmasq that wrote `pidfile`; NotRunning when there is none or the pid is another's now."""
    try:
        text = read_regular(pidfile).decode(errors="replace").strip()
        written = pidfile.stat().st_mtime
    except FileNotFoundError:
        raise NotRunning(
            said("there is no pid file {file}: dnsmasq is not running", file=pidfile)
        ) from None
    except OSError as error:
        raise NotRunning(
            said("cannot read {file}: {error}", file=pidfile, error=error.strerror)
        ) from None
    if not (
        text.isdecimal()
        and text.isascii()
        and len(text) <= 10
        and 1 <= int(text) < 2**31
    ):
        raise NotRunning(said("{file} does not hold a process number", file=pidfile))
    pid = int(text)
    try:
        # First the handle, then the questions: if the pid changes hands in between,
        # the handle is dead and the signal fails.
        pidfd = os.pidfd_open(pid)
    except (ProcessLookupError, OSError):
        raise NotRunning(
            said(
                "dnsmasq is not running: {file} names process {pid}, which is gone",
                file=pidfile,
                pid=pid,
            )
        ) from None
    try:
        if fault := _not_dnsmasq(pid, pidfile, written):
            raise NotRunning(
                said(
                    "{file} names process {pid}, but {fault}",
                    file=pidfile,
                    pid=pid,
                    fault=fault,
                )
            )
        yield Process(pid, pidfd)
    finally:
        os.close(pidfd)


def _not_dnsmasq(pid: int, pidfile: Path, written: float) -> str | None:
    proc = Path("/proc", str(pid))
    try:
        comm = (proc / "comm").read_text(errors="replace").strip()
        fields = (proc / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return said("that process is gone")
    if fields[0] in "ZX":
        return said("that process has ended")
    if comm != "dnsmasq":
        return said(
            "that is {name}, not dnsmasq: nothing was signalled", name=repr(comm)
        )
    try:
        program = str((proc / "exe").readlink()).removesuffix(" (deleted)")
    except OSError:
        program = comm  # not ours to see; the name has to do
    if Path(program).name != "dnsmasq":
        return said(
            "that runs {program}, not dnsmasq: nothing was signalled", program=program
        )
    if _started(fields[19]) > written + _SLACK_S and not _owns(pid, pidfile):
        return said(
            "that dnsmasq started after the file was written: the file is stale"
        )
    return None


def _started(ticks: str) -> float:
    """Wall-clock time of a process start, from its ticks since boot."""
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf(
        "SC_CLK_TCK"
    )
    return time.time() - age


def _owns(pid: int, pidfile: Path) -> bool:
    """Whether the command line names this pid file: then a clock that was set later does no harm."""
    try:
        return str(pidfile) in dict(_options(pid)).values()
    except OSError:
        return False


def _options(pid: int) -> Iterator[tuple[str, str]]:
    """Options with a value from the command line, by their long names."""
    raw = Path("/proc", str(pid), "cmdline").read_bytes()
    words = [word.decode("utf-8", "surrogateescape") for word in raw.split(b"\0")][1:]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            yield name[2:], value if equals else following
        elif word[:2] in _SHORT:
            yield _SHORT[word[:2]], word[2:] or following


def _hosts_files(pid: int) -> Iterator[str]:
    """Hosts files and folders that this dnsmasq was told to read, as paths in its own view."""
    given = list(_options(pid))
    todo = [item for item in given if item[0] in ("conf-file", "conf-dir")]
    if not any(name == "conf-file" for name, _ in todo):
        todo.append(("conf-file", DEFAULT_CONF))
    yield from (value for name, value in given if name in _HOSTS_OPTIONS)
    for _ in range(_MAX_CONF_FILES):
        if not todo:
            return
        name, value = todo.pop(0)
        try:
            if name == "conf-dir":
                todo += _folder(pid, value)
                continue
            text = _view(pid, value).read_text("utf-8", "surrogateescape")
        except FileNotFoundError:
            continue
        for line in text.splitlines():
            option, _, argument = line.partition("#")[0].partition("=")
            option, argument = option.strip(), argument.strip().strip('"')
            if option in _HOSTS_OPTIONS:
                yield argument
            elif option in ("conf-file", "conf-dir"):
                todo.append((option, argument))


def _folder(pid: int, value: str) -> list[tuple[str, str]]:
    folder, *_ = value.split(",")
    return [
        ("conf-file", f"{folder}/{entry.name}")
        for entry in sorted(_view(pid, folder).iterdir())
        if not entry.name.startswith((".", "#")) and not entry.name.endswith("~")
    ]


def _view(pid: int, path: str) -> Path:
    """`path` as process `pid` sees it; OSError where that cannot be told."""
    proc = Path("/proc", str(pid))
    if not path.startswith("/"):
        path = f"{(proc / 'cwd').readlink()}/{path}"
    namespaces = [Path("/proc", who, "ns/mnt").readlink() for who in (str(pid), "self")]
    if namespaces[0] == namespaces[1] and (proc / "root").readlink() == Path("/"):
        return Path(path)
    view = proc / "root"
    for part in Path(path).parts[1:]:
        view /= part
        if stat.S_ISLNK(view.lstat().st_mode):
            # An absolute link would be followed in our root, not in theirs.
            raise OSError(f"{path} goes through a link")
    return view
