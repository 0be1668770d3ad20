"""What a start needs before anything forks: folders, first files, secrets, and apps' own steps."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from ipxeready.conf import AGENT, REPOSITORY, Config
from ipxeready.storage.paths import Layout

#: Steps of the control plane's start, after the index is built and before it listens:
#: apps add theirs when they are ready, and each settles what a crash left behind.
AT_START: Final[list[Callable[[], object]]] = []

#: Steps of each process of the control plane that serves: what goes on beside requests is begun here.
IN_EACH_PROCESS: Final[list[Callable[[], object]]] = []

_SECRET: Final = 0o600
_PLAIN: Final = 0o644


class StartError(Exception):
    """Why the service cannot start, in one line that says what to do."""


def at_start(step: Callable[[], object]) -> None:
    """Add a step to the control plane's start; adding it again changes nothing."""
    if step not in AT_START:
        AT_START.append(step)


def in_each_process(step: Callable[[], object]) -> None:
    """Add a step to the start of each serving process; adding it again changes nothing."""
    if step not in IN_EACH_PROCESS:
        IN_EACH_PROCESS.append(step)


def prepare(config: Config, layout: Layout) -> None:
    """Make what is missing of this mode's folders and files; StartError when it cannot be."""
    if config.mode == AGENT:
        _prepare_agent(config, layout)
    else:
        _prepare_control(config, layout)


def notes(config: Config, layout: Layout) -> list[str]:
    """The lines for the terminal: where secrets are to be found, never what they are."""
    if config.mode == AGENT:
        return [] if config.agent_token else [f"token: cat {layout.agent_token}"]
    lines = [] if config.cp_token else [f"token: cat {layout.cp_token}"]
    if layout.first_login.exists():
        lines.append(f"first login: admin, password: cat {layout.first_login}")
    return lines


def _prepare_control(config: Config, layout: Layout) -> None:
    _folders(
        (
            layout.root,
            layout.config,
            layout.state,
            layout.dnsmasq,
            layout.tftp,
            layout.public,
        )
    )
    _folder(layout.run, 0o700)
    if not config.cp_token:
        _secret(layout.cp_token)
    if not config.agent_token:
        _secret(layout.agent_token)
    _secret(layout.secret_key, size=48)  # Django wants fifty characters or more
    for path, default, mode in (
        (layout.agents_yml, "agents: {}\n", _SECRET),
        (layout.users_yml, "users: {}\n", _SECRET),
        (layout.chap_secrets_yml, "secrets: {}\n", _SECRET),
        (layout.workers_yml, "workers: {}\n", _PLAIN),
        (layout.settings_json, "{}\n", _PLAIN),
        (layout.operations, "", _PLAIN),
        (layout.dhcp_hosts, "", _PLAIN),
    ):
        if _exists(path) or not _lost(layout.backup / path.name, default):
            _live_file(path, default, mode)


def _prepare_agent(config: Config, layout: Layout) -> None:
    _folders((layout.root, config.disk_dir, config.log_file.parent))
    if not config.agent_token:
        _folder(layout.config, 0o755)
        _secret(layout.agent_token)
    _live_file(config.log_file, "", _PLAIN)


def _folders(paths: Iterable[Path]) -> None:
    for path in paths:
        _folder(path, 0o755)


def _folder(path: Path, mode: int) -> None:
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        # Name the part that is in the way, which may be a parent.
        wrong = next(p for p in (*reversed(path.parents), path) if not p.is_dir())
        message = (
            f"{wrong} must be a folder, but it is not: move it away or set IPXE_ROOT"
        )
        raise StartError(message) from None
    except OSError as error:
        raise StartError(f"{path} cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise StartError(f"{path} must be writable for the user who starts this")


def _exists(path: Path) -> bool:
    """Whether the file is there and can be used; StartError when something else is."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            message = f"{path} is a link to {path.readlink()}, which is not there"
            raise StartError(message) from None
        return False
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        message = f"{path} must be a file, but it is not: move it away, it is made anew"
        raise StartError(message)
    if not os.access(path, os.R_OK):
        raise StartError(f"{path} must be readable for the user who starts this")
    return True


def _create(path: Path, content: str, mode: int) -> None:
    """Make `path` complete and durable at once; another process that is faster wins."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        _write_new(draft, content, mode)
        try:
            os.link(draft, path)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links: the next best thing
            with contextlib.suppress(FileExistsError):
                _write_new(path, content, mode)
        finally:
            draft.unlink()
    except OSError as error:
        raise StartError(f"{path} cannot be made: {error.strerror}") from None


def _write_new(path: Path, content: str, mode: int) -> None:
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode
    )
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content.encode())
        file.flush()
        os.fsync(descriptor)


def _secret(path: Path, size: int = 32) -> None:
    """A file with a random secret of `size` bytes that only its owner reads."""
    if not _exists(path):
        _create(path, secrets.token_urlsafe(size) + "\n", _SECRET)
        return
    try:
        text = path.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        text = ""
    if not text.isprintable() or len(text.split()) != 1:
        message = (
            f"{path} must hold one word of ASCII: delete it, and a new one is made"
        )
        raise StartError(message)


def _live_file(path: Path, default: str, mode: int) -> None:
    """A file that people and the service change: from its template, else nearly empty."""
    if not _exists(path):
        _create(path, _template(path) or default, mode)


def _lost(backup: Path, default: str) -> bool:
    """Whether a missing file held something: then it stays missing and counts as broken until it is put back.

    A new, empty one would look as if all its records had been removed on purpose.
    """
    try:
        text = backup.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    lines = [line.strip() for line in text.splitlines()]
    said = "".join(line for line in lines if not line.startswith("#"))
    return said not in ("", default.strip(), default.strip().removesuffix(" {}"))


def _template(path: Path) -> str:
    """The shipped example beside `path`, or the repository's for a root elsewhere."""
    name = f"{path.name}.example"
    for place in (path.with_name(name), REPOSITORY / path.parent.name / name):
        try:
            return place.read_text(encoding="utf-8")
        except OSError:
            continue
    return ""
