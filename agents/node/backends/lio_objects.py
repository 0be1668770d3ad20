"""New objects of LIO, made through rtslib; what it would look up by reading everything is given to it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.node.backends import configfs
from agents.node.backends.configfs import (
    OURS,
    Shown,
    Tree,
    serial_of,
    store_index,
)
from agents.node.backends.limits import checkpoint
from agents.protocol.access import CHAP, NONE, OFF, Access
from ipxeready.errors import (
    ApplicationError,
    Conflict,
    Invalid,
    Unavailable,
    UpstreamFailed,
)
from ipxeready.said import said
from ipxeready.storage.sizes import SECTOR

#: rtslib wants the kernel to keep reservations here, and fails where it is missing.
_STATE = Path("/etc/target")
_INSIDE = (_STATE / "pr", _STATE / "alua")
#: What the kernel has room for in `udev_path`.
_MAX_PATH = 511
_ERRNO = re.compile(r"\[Errno (\d+)\]")


def library() -> Any:
    """rtslib, imported on storage nodes with LIO only: it talks to udev at once."""
    try:
        import rtslib_fb
    except (ImportError, OSError) as error:
        raise Unavailable(
            said(
                "rtslib-fb cannot be imported ({error}); install it, and libudev.",
                error=str(error),
            ),
            code="lio.library",
        ) from error
    return rtslib_fb


def prepare() -> None:
    """Make rtslib usable: its folder, and its root."""
    rtslib = library()
    with refusing(said("set up LIO")):
        _STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (
            _INSIDE
        ):  # for reservations that outlive a power cut, which no machine of ours makes
            with contextlib.suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
        # The folder is the kernel's until the next reboot where others have targets already.
        warnings.filterwarnings("ignore", message="Cannot set dbroot")
        rtslib.RTSRoot()


@contextlib.contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn what the kernel and rtslib raise into a refusal in words. They never hold a secret."""
    try:
        yield
    except ApplicationError:
        raise
    except OSError as error:
        raise refused(what, error.errno, error.strerror or str(error)) from error
    except Exception as error:
        if not type(error).__name__.startswith("RTSLib"):
            raise
        words = str(error)
        found = _ERRNO.findall(words)
        raise refused(what, int(found[-1]) if found else None, words) from error


def refused(what: str, number: int | None, words: str) -> UpstreamFailed:
    """The kernel said no."""
    return UpstreamFailed(
        said("LIO refused to {what}: {words}.", what=what, words=words),
        code="lio.refused",
    )


@dataclass(frozen=True)
class Image:
    """A backing file that we hold open: what the kernel gets is this very file, and no new one."""

    path: str
    file: int
    size: int
    label: str


@contextlib.contextmanager
def opened(path: str) -> Iterator[Image]:
    """The image at `path`, open for as long as the block: there, regular, writable and of whole sectors.

    LIO itself makes a file that is missing, and serves what a short one lacks as zeros.
    """
    if len(os.fsencode(path)) > _MAX_PATH:
        raise Conflict(
            said(
                "{path} is longer than the {most} bytes that LIO keeps; move the image directory.",
                path=path,
                most=_MAX_PATH,
            ),
            code="file.path",
        )
    checkpoint()
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags)
    except OSError as error:
        raise Conflict(
            said(
                "{path} cannot be opened read-write ({why}). Correct its name, owner, mode or mount.",
                path=path,
                why=error.strerror,
            ),
            code="file.access",
        ) from error
    try:
        status = os.fstat(file)
        size = status.st_size
        if not stat.S_ISREG(status.st_mode) or size <= 0 or size % SECTOR:
            raise Conflict(
                said(
                    "{path} has {size} bytes; an image is a regular file of more than 0 bytes and a "
                    "multiple of {sector}.",
                    path=path,
                    size=size,
                    sector=SECTOR,
                ),
                code="file.size",
            )
        yield Image(path, file, size, label_of(status))
    finally:
        os.close(file)


def label_of(status: os.stat_result) -> str:
    """A file by what stays when it is renamed."""
    return f"{status.st_dev}:{status.st_ino}"


@dataclass(frozen=True)
class Doors:
    """Who may log in, as the kernel keeps it: everybody or those named, with a proof or without."""

    everybody: bool
    proof: bool
    rules: dict[str, tuple[str, str]] = field(repr=False)

    @classmethod
    def of(cls, access: Access) -> Doors:
        """The doors for an access of ours."""
        if access.mode == OFF or access.initiator is None:
            return cls(True, False, {})
        pair = (access.chap.username, access.chap.secret) if access.chap else ("", "")
        return cls(False, access.mode == CHAP, {access.initiator.lower(): pair})

    @classmethod
    def there(cls, tree: Tree, shown: Shown) -> Doors:
        """Those of a target that is there."""
        rules = {name: tree.secrets(shown.iqn, name) for name in shown.rules}
        return cls(shown.generate, shown.authentication, rules)


class Objects:
    """Makes the parts of a target, each where the tree says that it is."""

    def __init__(self, tree: Tree, *, portal: str, write_back: bool) -> None:
        self._tree = tree
        self.portal = portal
        self._write_back = write_back

    def store(self, iqn: str, image: Image) -> None:
        """The storage object of an image, with its numbers and with UNMAP."""
        place = self._tree.store(iqn)
        rtslib = library()
        checkpoint()
        with refusing(said("make the storage object of {path}", path=image.path)):
            rtslib.FileIOStorageObject(
                f"{OURS}{iqn}",
                # Opened through our own descriptor: never a missing file made new, never another one.
                f"/proc/self/fd/{image.file}",
                image.size,
                serial_of(iqn),
                self._write_back,
                index=store_index(iqn),
            )
            configfs.write(f"{place}/udev_path", image.path)
            configfs.write(f"{place}/alias", image.label)
            configfs.write(f"{place}/attrib/block_size", str(SECTOR))
            configfs.write(f"{place}/attrib/emulate_tpu", "1")

    def group(self, iqn: str) -> Any:
        """The target and its portal group, shut, and never read-only."""
        rtslib = library()
        checkpoint()
        with refusing(said("make the target {iqn}", iqn=iqn)):
            target = rtslib.Target(rtslib.FabricModule("iscsi"), iqn)
            group = rtslib.TPG(target, 1)
            self.writable(iqn)
        return group

    def writable(self, iqn: str) -> None:
        """Initiators without a rule of their own may write too, once they may log in."""
        place = self._tree.group(iqn)
        configfs.write(f"{place}/attrib/demo_mode_write_protect", "0")

    def lun(self, iqn: str, group: Any) -> None:
        """LUN 0: always that number, as the machines' SAN path counts on it."""
        rtslib = library()
        checkpoint()
        with refusing(said("map the disk of {iqn}", iqn=iqn)):
            store = rtslib.FileIOStorageObject(f"{OURS}{iqn}", index=store_index(iqn))
            rtslib.LUN(group, 0, store, alias="image")

    def doors(self, iqn: str, doors: Doors) -> None:
        """Let in whom `doors` says, in an order in which nobody gets in who may neither before nor after.

        Sessions that are open stay: no rule is taken off, as the kernel would end its session.
        """
        place = self._tree.group(iqn)
        with refusing(said("set who may log in to {iqn}", iqn=iqn)):
            for initiator, (name, secret) in doors.rules.items():
                self._rule(iqn, initiator, name, secret)
            if doors.proof:
                configfs.write(f"{place}/attrib/authentication", "1")
            if not doors.everybody:
                configfs.write(f"{place}/attrib/generate_node_acls", "0")
            if not doors.proof:
                configfs.write(f"{place}/attrib/authentication", "0")
            if doors.everybody:
                configfs.write(f"{place}/attrib/generate_node_acls", "1")

    def _rule(self, iqn: str, initiator: str, name: str, secret: str) -> None:
        if name.startswith(NONE) or secret.startswith(NONE):
            raise Invalid(
                said(
                    "the name and secret of {initiator} must not begin with {none}: LIO takes that for "
                    "none.",
                    initiator=initiator,
                    none=NONE,
                ),
                code="chap.null",
                field="chap",
            )
        rtslib = library()
        checkpoint()
        target = rtslib.Target(rtslib.FabricModule("iscsi"), iqn, "lookup")
        group = rtslib.TPG(target, 1, "lookup")
        rule = rtslib.NodeACL(group, initiator)
        place = f"{self._tree.group(iqn)}/acls/{initiator}"
        if not any(True for _ in configfs.links(f"{place}/lun_0")):
            configfs.remove_lun(f"{place}/lun_0")
            rtslib.MappedLUN(rule, 0, 0, write_protect=False, alias="image")
        # Not through rtslib, which strips blanks.
        configfs.write(f"{place}/auth/userid", name or NONE)
        configfs.write(f"{place}/auth/password", secret or NONE)
        if self._tree.secrets(iqn, initiator) != (name, secret):
            raise UpstreamFailed(
                said(
                    "LIO does not keep the name and secret of {initiator} as they were given.",
                    initiator=initiator,
                ),
                code="lio.secret",
            )

    def listen(self, iqn: str) -> None:
        """The one portal that all targets share."""
        checkpoint()
        try:
            configfs.mkdir(f"{self._tree.group(iqn)}/np/{self.portal}")
        except OSError as error:
            raise self.deaf(error) from error

    def deaf(self, error: OSError) -> Conflict:
        """Why there is no portal, and what to do."""
        why = {
            errno.EADDRINUSE: said("something else listens there"),
            # The kernel's word for it.
            errno.EINVAL: said("something else listens there"),
            errno.EADDRNOTAVAIL: said("this machine has no such address"),
        }.get(error.errno or 0, error.strerror)
        others = sorted(self._tree.listening(ours=False))
        words = (
            said(
                "LIO cannot listen on IPXE_ISCSI_PORTAL={portal}: {why}. Targets of others "
                "listen on {others}.",
                portal=self.portal,
                why=why,
                others=", ".join(others),
            )
            if others
            else said(
                "LIO cannot listen on IPXE_ISCSI_PORTAL={portal}: {why}.",
                portal=self.portal,
                why=why,
            )
        )
        return Conflict(words, code="lio.portal")

    def open(self, iqn: str) -> None:
        """The last step: initiators may come."""
        with refusing(said("enable {iqn}", iqn=iqn)):
            configfs.write(f"{self._tree.group(iqn)}/enable", "1")
