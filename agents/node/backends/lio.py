"""The kernel's LIO. Made through rtslib in this process; read, compared and taken off in configfs itself."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from agents.node.backends import configfs, lio_objects
from agents.node.backends.base import Backend, Export, describe, in_use, same
from agents.node.backends.configfs import Shown, Store, Tree, serial_of
from agents.node.backends.limits import Limited
from agents.node.backends.lio_objects import Doors, Image, Objects, opened, refusing
from agents.protocol.access import Access
from agents.protocol.answers import Target
from agents.protocol.systems import LIO, LUN_NUMBER
from ipxeready import lio
from ipxeready.conf import Endpoint
from ipxeready.errors import (
    ApplicationError,
    Conflict,
    Invalid,
    Unavailable,
    UpstreamFailed,
)
from ipxeready.said import joined, said
from ipxeready.storage.iqn import IMAGE_SUFFIX, initiator_of
from ipxeready.storage.sizes import SECTOR

logger = logging.getLogger(__name__)

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LUN = LUN_NUMBER[LIO]
T = TypeVar("T")


class LioBackend(Backend):
    """Targets of this kernel, below one base IQN. What lies outside that base is somebody else's.

    A target is whole when its portal group is enabled, which is the last step of making it. What a call left that
    died before is made anew; what one left that died while it took a target off has no portal, and is swept up.
    """

    name = LIO
    cd = False
    persistent = False

    def __init__(
        self, *, base_iqn: str, portal: Endpoint, write_back: bool = False
    ) -> None:
        self._tree = Tree(base_iqn)
        self._portal = portal
        self._objects = Objects(self._tree, portal=str(portal), write_back=write_back)
        self._limited = Limited("LIO", "lio.hung")
        self._ready = False
        self._open_once: set[str] = set()

    def check(self) -> None:
        """See the kernel's target system, and a portal that can be had."""
        self._run(lambda: None)

    def targets(self) -> list[Target]:
        """What configfs has below our base."""
        return self._run(lambda: [shown.public() for shown in self._tree.all()])

    def about(
        self, iqn: str, path: str | None = None, *, recent: bool = False
    ) -> list[Target]:
        """Those that matter, found by their names: our objects bear them, and others' objects are few."""

        def work() -> list[Target]:
            names = [name for name in self._tree.names() if self._tree.is_ours(name)]
            if path is not None and self._tree.others_have(path):
                wanted = names
            else:
                initiator = initiator_of(iqn)
                wanted = [name for name in names if initiator_of(name) == initiator]
                wanted += [name for name in names if path and self._serves(name, path)]
            found = (self._tree.shown(n) for n in dict.fromkeys(wanted or names[:1]))
            return [shown.public() for shown in found if shown]

        return self._run(work)

    def _serves(self, iqn: str, path: str) -> bool:
        """Whether a target bears the name of that image."""
        return (
            f"{iqn.rpartition(':')[2]}{IMAGE_SUFFIX}" == path.rpartition("/")[2].lower()
        )

    def find(self, iqn: str) -> Target | None:
        """One target, without a look at the others."""

        def work() -> Target | None:
            shown = self._tree.shown(iqn) if self._tree.is_ours(iqn) else None
            return shown.public() if shown else None

        return self._run(work)

    def foreign(self) -> int:
        """Targets outside our base."""
        return self._run(
            lambda: sum(not self._tree.is_ours(iqn) for iqn in self._tree.names())
        )

    def incarnation(self) -> str:
        """The boot of this kernel."""
        return _BOOT.read_text(encoding="ascii").strip()

    def export_all(
        self, exports: Sequence[Export]
    ) -> dict[str, ApplicationError | None]:
        """Make or accept one after the other; each has the time limit of its own."""
        result: dict[str, ApplicationError | None] = {}
        for export in exports:
            result[export.iqn] = None
            try:
                self._run(lambda export=export: self._export(export))  # type: ignore[misc]
            except ApplicationError as error:
                result[export.iqn] = error
        return result

    def unexport(self, iqn: str, *, force: bool = False) -> None:
        """Shut the door, look again who is inside, and take the target off, the image's object with it."""
        self._run(lambda: self._unexport(iqn, force=force))

    def tidy(self) -> None:
        """Sweep up leftovers, follow a changed portal, and forget who came while a target was open to all."""
        self._run(self._sweep)
        shown = self._run(self._tree.all)
        self._move([s for s in shown if not s.half and not self._listens(s)])
        self._open_once = {s.iqn for s in shown if s.cached and not s.generate}
        self.settle()

    @property
    def unsettled(self) -> bool:
        """Whether some target is no longer open to all, and in use since it was."""
        return bool(self._open_once)

    def settle(self) -> None:
        """Make those anew that are no longer in use: the kernel lets in whom it remembers from the open time."""
        for iqn in sorted(self._open_once):
            self._try(lambda iqn=iqn: self._forget(iqn))  # type: ignore[misc]

    # -- inside ----------------------------------------------------------

    def _run(self, work: Callable[[], T]) -> T:
        """`work` under the time limit, when LIO is there at all."""

        def limited() -> T:
            self._prepare()
            with refusing(said("show its targets")):
                return work()

        return self._limited.run(limited)

    def _prepare(self) -> None:
        if self._ready and lio.ISCSI.is_dir():
            return
        self._ready = False
        why = lio.problem()
        if why is not None:
            raise Unavailable(
                said(
                    "{why}. Load target_core_file and iscsi_target_mod, or take another backend.",
                    why=why,
                ),
                code="lio.missing",
            )
        lio_objects.prepare()
        self._check_portal()
        self._ready = True

    def _check_portal(self) -> None:
        """Where LIO does not listen yet, see that it could: every target needs the portal."""
        mine = self._tree.listening(ours=True)
        others = self._tree.listening(ours=False)
        if str(self._portal) in mine | others:
            return
        family = socket.AF_INET6 if ":" in self._portal.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(tuple(self._portal))
            except OSError as error:
                taken = any(_port(portal) == self._portal.port for portal in others)
                if mine and not taken and error.errno == errno.EADDRINUSE:
                    return  # the portal was changed: our targets will follow
                message = self._objects.deaf(error).message
                raise Unavailable(message, code="lio.portal") from error

    def _export(self, export: Export) -> None:
        if export.cd:
            raise Invalid(
                said(
                    "LIO has no CD drive: it would serve an ISO as a disk, which no firmware boots as a "
                    "CD. Attach the ISO on a node with stgt."
                ),
                code="backend.no_cd",
            )
        with opened(export.path) as image:
            shown = self._tree.shown(export.iqn)
            if shown is None:
                self._make(export, image, Doors.of(export.access or Access()))
            elif shown.half or not shown.groups:
                logger.info("%s was left half made; making it anew", export.iqn)
                self._remake(export, image, shown)
            else:
                self._adopt(export, image, shown)

    def _adopt(self, export: Export, image: Image, shown: Shown) -> None:
        """Accept a target that is there, repaired where that is needed; never one of another image."""
        stores = [store for store in shown.luns.values() if store]
        if any(store.path != export.path for store in stores):
            raise Conflict(
                said(
                    "the target {iqn} has {there} instead of {path}. Delete that target first.",
                    iqn=export.iqn,
                    there=", ".join(s.path for s in stores),
                    path=export.path,
                ),
                code="target.differs",
            )
        faults = self._faults(image, shown)
        doors = Doors.of(export.access) if export.access else None
        if doors and not doors.everybody and shown.cached and not shown.sessions:
            faults.append(said("a memory of who came while it was open"))
        if faults:
            if shown.sessions:
                raise Conflict(
                    said(
                        "{iqn} has {faults}, and is in use by {sessions}. Shut that machine down and scan "
                        "again.",
                        iqn=export.iqn,
                        faults=joined(" and ", *faults),
                        sessions=describe(shown.sessions),
                    ),
                    code="target.stale",
                )
            logger.info("%s has %s; making it anew", export.iqn, ", ".join(faults))
            self._remake(export, image, shown)
            return
        if not self._listens(shown):
            self._objects.listen(export.iqn)
        if doors is not None and doors != Doors.there(self._tree, shown):
            self._objects.doors(export.iqn, doors)
            if not doors.everybody:
                self._drop_rules(shown, doors)
                if shown.cached:
                    self._open_once.add(export.iqn)
        self._verify(export, image)

    def _faults(self, image: Image, shown: Shown) -> list[str]:
        """What is wrong with a target that only making it anew mends."""
        store = shown.luns.get(_LUN)
        if store is None or len(shown.luns) != 1:
            return [said("no disk as its one LUN 0")]
        faults: list[str] = []
        if not shown.enabled:
            faults.append(said("a portal group that is not enabled"))
        if store.size != image.size:
            faults.append(
                said(
                    "{there} bytes, while the file has {size},",
                    there=store.size,
                    size=image.size,
                )
            )
        if store.ours and store.label != image.label:
            faults.append(
                said("another file of that name, which was replaced meanwhile,")
            )
        if store.place != self._tree.store(shown.iqn):
            faults.append(said("a storage object that we did not make"))
            return faults
        attributes = f"{store.place}/attrib"
        if configfs.read(f"{attributes}/emulate_tpu") != "1":
            faults.append(said("no UNMAP"))
        if configfs.read(f"{attributes}/block_size") != str(SECTOR):
            faults.append(said("blocks of another size than {sector}", sector=SECTOR))
        if self._serial(store) != serial_of(shown.iqn):
            faults.append(said("another serial number"))
        return faults

    def _serial(self, store: Store) -> str:
        return (
            configfs.read(f"{store.place}/wwn/vpd_unit_serial")
            .rpartition(":")[2]
            .strip()
        )

    def _remake(self, export: Export, image: Image, shown: Shown) -> None:
        """Make a target anew that nobody uses; who may log in stays, unless the export says."""
        if export.access is not None:
            doors = Doors.of(export.access)
        elif shown.half:
            doors = Doors.of(Access())
        else:
            doors = Doors.there(self._tree, shown)
        with refusing(said("take {iqn} off", iqn=export.iqn)):
            self._tree.strip(export.iqn)
        self._make(export, image, doors)

    def _make(self, export: Export, image: Image, doors: Doors) -> None:
        """Storage object, target, LUN, who may log in, portal, and the switch last; nothing stays of a failure."""
        iqn = export.iqn
        try:
            with refusing(said("take the old storage object of {iqn} off", iqn=iqn)):
                self._tree.remove_store(self._tree.store(iqn))
            self._objects.store(iqn, image)
            self._objects.lun(iqn, self._objects.group(iqn))
            self._objects.doors(iqn, doors)
            self._objects.listen(iqn)
            self._objects.open(iqn)
            self._verify(export, image)
        except BaseException:
            with contextlib.suppress(OSError):  # the next call sweeps up the rest
                self._tree.strip(iqn)
            raise

    def _verify(self, export: Export, image: Image) -> None:
        """Compare what the kernel shows with what was asked for, and the file with the one of that name now."""
        shown = self._tree.shown(export.iqn)
        if (
            shown is None
            or not shown.enabled
            or not self._listens(shown)
            or not same(shown.public(), export)
            or self._faults(image, shown)
        ):
            raise UpstreamFailed(
                said(
                    "LIO does not show {iqn} as it was asked for; look with `targetcli ls`.",
                    iqn=export.iqn,
                ),
                code="lio.differs",
            )
        try:
            status = os.stat(export.path, follow_symlinks=False)  # noqa: PTH116 - a string all along
        except OSError:
            status = None
        if status is None or lio_objects.label_of(status) != image.label:
            raise Conflict(
                said(
                    "{path} was replaced while it was exported; try again.",
                    path=export.path,
                ),
                code="file.replaced",
            )

    def _drop_rules(self, shown: Shown, doors: Doors) -> None:
        """Forget initiators that may no longer log in, except those that are inside."""
        for initiator, rule in shown.rules.items():
            if initiator not in doors.rules and rule.session is None:
                configfs.remove_rule(f"{self._tree.group(shown.iqn)}/acls/{initiator}")

    def _unexport(self, iqn: str, *, force: bool) -> None:
        shown = self._tree.shown(iqn)
        if shown is None:
            with refusing(said("take the storage object of {iqn} off", iqn=iqn)):
                self._tree.remove_store(self._tree.store(iqn))
            return
        if shown.sessions and not force:
            raise in_use(shown.public())
        with refusing(said("take {iqn} off", iqn=iqn)):
            self._tree.close(shown)
            now = self._tree.shown(iqn)
            if now is not None and now.sessions and not force:
                self._reopen(shown)
                raise in_use(now.public())
            self._tree.strip(iqn)
        if self._tree.shown(iqn) is not None:
            raise UpstreamFailed(
                said("LIO still shows {iqn} after its deletion; try again.", iqn=iqn),
                code="lio.differs",
            )

    def _reopen(self, shown: Shown) -> None:
        """Somebody came in before the door was shut: it is as it was."""
        for name in shown.groups:
            for portal in shown.portals:
                place = f"{self._tree.target(shown.iqn)}/{name}/np/{portal}"
                with contextlib.suppress(OSError):
                    configfs.mkdir(place)

    def _sweep(self) -> None:
        """Remove what calls left that died on their way: half-made targets, and objects without a target."""
        for shown in self._tree.all():
            if shown.half:
                logger.info("removing %s, which was left half made", shown.iqn)
                with refusing(said("take {iqn} off", iqn=shown.iqn)):
                    self._tree.strip(shown.iqn)
        kept = {
            store.place for s in self._tree.all() for store in s.luns.values() if store
        }
        for place in self._tree.stores():
            if place not in kept:
                self._sweep_store(place)
        for place in self._tree.empty_adapters():
            configfs.rmdir(place)

    def _sweep_store(self, place: str) -> None:
        try:
            self._tree.remove_store(place)
            logger.info("removed the storage object %s, which had no target", place)
        except OSError as error:  # a target of somebody else's has it
            logger.warning("%s stays: %s", place, error.strerror)

    def _move(self, strays: Sequence[Shown]) -> None:
        """Follow a portal that was changed; sessions stay.

        All leave the old one before any takes the new one: an address and the one for all addresses exclude each other.
        """
        for shown in strays:
            logger.info("%s moves to the portal %s", shown.iqn, self._portal)
            self._try(lambda shown=shown: self._tree.close(shown))  # type: ignore[misc]
        for shown in strays:
            if not self._try(lambda shown=shown: self._objects.listen(shown.iqn)):  # type: ignore[misc]
                self._try(lambda shown=shown: self._reopen(shown))  # type: ignore[misc]

    def _forget(self, iqn: str) -> None:
        """Make a target anew, unless it is gone, open again, or in use."""
        shown = self._tree.shown(iqn)
        if shown is not None and shown.sessions:
            return
        self._open_once.discard(iqn)
        store = shown.luns.get(_LUN) if shown else None
        if shown and shown.cached and not shown.generate and store and store.ours:
            with opened(store.path) as image:
                self._remake(Export(iqn, store.path), image, shown)

    def _try(self, work: Callable[[], None]) -> bool:
        """Do what may wait until the next time; what is wrong is in the log."""
        try:
            self._run(work)
        except ApplicationError as error:
            logger.warning("%s", error.message)
            return False
        return True

    def _listens(self, shown: Shown) -> bool:
        return self._objects.portal in shown.portals


def _port(portal: str) -> int:
    return int(portal.rpartition(":")[2])
