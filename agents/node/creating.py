"""Disks and CDs that are made: image first and target second; undone is only what the call itself made."""

from __future__ import annotations

import dataclasses
import time

from agents.node import access, importing
from agents.node.backends.base import Export
from agents.node.existing import target_of
from agents.node.images import Made
from agents.node.jobs import AT_RESTART, Step
from agents.node.rebuild import restored, same_life
from agents.node.runtime import Node
from agents.protocol.access import OFF
from agents.protocol.answers import Created, Target
from agents.protocol.filenames import check_iso, disk_filename
from agents.protocol.requests import CdRequest, DiskRequest
from ipxeready.errors import ApplicationError, Conflict, Invalid, NotFound
from ipxeready.said import said
from ipxeready.storage import iqn as iqns
from ipxeready.storage.jobs import Job
from ipxeready.storage.sizes import parse_size

#: The job that makes a disk, and its operation in the log.
CREATE_DISK = "lun.create_disk"


def disk_request(node: Node, request: DiskRequest) -> DiskRequest:
    """The request with names and size in their one form, so that equal wishes are equal; Invalid when it is none."""
    target = iqns.split_target(request.iqn, node.base_iqn)
    return dataclasses.replace(
        request,
        iqn=f"{node.base_iqn}:{target.name}",
        filename=disk_filename(request.iqn, node.base_iqn, request.filename),
        size=_one_source(request),
    )


def disk_create(node: Node, request: DiskRequest, step: Step | None = None) -> Created:
    """Make an image (clone, empty, or the one that is there) and export it.

    1. Under the lock: is the name free, in the table and in the directory? Reserve it.
    2. Without the lock: the copy, which may take minutes. A clone may be a job from here on.
    3. Under the lock: export. What fails here takes back the file of step 2.
    """
    step = step or Step()
    target = iqns.split_target(request.iqn, node.base_iqn)
    iqn = f"{node.base_iqn}:{target.name}"
    filename = disk_filename(request.iqn, node.base_iqn, request.filename)
    size = _one_source(request)
    with node.log.about(
        CREATE_DISK,
        iqn=iqn,
        master=request.master,
        size=size,
        access=request.access,
    ) as note:
        begin = time.monotonic()
        if request.existing:
            with node.changing():
                _free_target(node, iqn)
                entry = node.images.find(filename)
                if entry is None:
                    raise NotFound(
                        said("there is no image {name} to export.", name=filename),
                        code="file.missing",
                    )
                node.images.check_disk(entry.name)
                backing = _export(node, iqn, entry.name, request)
            return _no_copy(iqn, backing, "existing", begin, note)
        if request.import_ is not None:
            note["import"] = request.import_
            backing = _import(node, iqn, request, filename)
            return _no_copy(iqn, backing, "import", begin, note)
        master = (
            node.masters.get(request.master).name
            if request.master is not None
            else None
        )
        with node.changing():
            # A broken memory and a missing secret are said before minutes of copying.
            access.wanted(node, node.memory.read(), iqn, request.access, request.chap)
            targets = _free_target(node, iqn, master)
            if master is not None:
                check_not_exported(node, targets, master)
            clash = node.images.find(filename)
            if clash is not None:
                raise Conflict(
                    said(
                        "the image {name} exists already; it was left as it is. Export it with existing: "
                        "true, or delete it first.",
                        name=clash.name,
                    ),
                    code="file.exists",
                )
            node.reserve(filename)
            try:
                before = access.expect(node, iqn, request.access, request.chap)
            except BaseException:
                node.release(filename)
                raise
        try:
            if master is not None:
                with node.reading(master):
                    # The first word of its progress, after its own checks, makes a job of it.
                    made = node.images.clone(
                        master, filename, progress=step.add, total=step.turn
                    )
            else:
                made = node.images.create_empty(filename, size or 0)
            note.update(how=made.how, seconds=made.seconds, bytes=made.copied)
            backing = _export_made(node, iqn, made, request)
        except BaseException:
            access.expect_no_more(node, iqn, before)
            raise
        finally:
            node.release(filename)
    return {
        "iqn": iqn,
        "backing": backing,
        "how": made.how,
        "seconds": made.seconds,
        "bytes": made.copied,
    }


def cd_create(node: Node, request: CdRequest) -> Created:
    """Export an ISO read-only as a CD drive, and remember it, so that it comes back after a restart."""
    if not node.backend.cd:
        raise Invalid(
            said(
                "the {backend} backend has no CD drive. Attach the ISO on a node with stgt.",
                backend=node.backend.name,
            ),
            code="backend.no_cd",
        )
    iso = check_iso(request.iso)
    if request.iqn is not None:
        name = iqns.split_target(request.iqn, node.base_iqn).name
    else:
        name = iqns.check_name(iso, field="iso")
    iqn = iqns.join(node.base_iqn, name)
    path = node.images.path(iso)
    access.check_shared(iqn, path, request.access)
    mode = OFF if access.is_shared(iqn, path) else request.access
    with (
        node.log.about("lun.create_cd", iqn=iqn, iso=iso, access=request.access),
        node.changing(),
    ):
        targets = _free_target(node, iqn)
        node.images.check_iso(iso)
        with access.remembered(node, iqn, mode, request.chap, targets) as allowed:
            before = node.memory.set(iqn, off=False, iso=iso)
            try:
                node.export(Export(iqn, path, cd=True, access=allowed))
            except ApplicationError:
                node.memory.restore(iqn, before)
                raise
        node.exported.add(iqn)
    return {"iqn": iqn, "backing": path}


def _made_before(node: Node, job: Job) -> Created | None:
    """What a killed agent had made all the same: an image is whole or not there, and the rebuild has exported it."""
    with node.changing():
        target = target_of(node, str(job.about.get("iqn")))
    if target is None or not target["luns"]:
        return None
    return {"iqn": target["iqn"], "backing": target["luns"][0]["backing"]}


AT_RESTART[CREATE_DISK] = _made_before


def _no_copy(
    iqn: str, backing: str, how: str, begin: float, note: dict[str, object]
) -> Created:
    """The answer, and the log's note, of a disk whose image was there."""
    seconds = round(time.monotonic() - begin, 3)
    note.update(how=how, seconds=seconds)
    return {"iqn": iqn, "backing": backing, "how": how, "seconds": seconds, "bytes": 0}


def _one_source(request: DiskRequest) -> int | None:
    given = [
        field
        for field, there in (
            ("master", request.master is not None),
            ("size", request.size is not None),
            ("existing", request.existing),
            ("import", request.import_ is not None),
        )
        if there
    ]
    if len(given) != 1:
        raise Invalid(
            said(
                "give exactly one of master (clone it), size (an empty disk), existing: true (export "
                "the image that is there) and import (the name of an image that becomes this disk); "
                "this request has {given}.",
                given=" and ".join(given) or "none",
            ),
            code="disk.source",
        )
    return parse_size(request.size) if request.size is not None else None


def check_not_exported(node: Node, targets: list[Target], master: str) -> None:
    """Refuse to clone a master that somebody exported by hand: a machine may write to it at any time."""
    path = node.images.path(master)
    for target in targets:
        if any(lun["backing"] == path for lun in target["luns"]):
            raise Conflict(
                said(
                    "master {master} is exported as {iqn}, so that it may change at any time. Delete "
                    "that target first; its file stays.",
                    master=master,
                    iqn=target["iqn"],
                ),
                code="master.in_use",
            )


def _free_target(node: Node, iqn: str, master: str | None = None) -> list[Target]:
    """The targets that its making has to know of, unless that one is there: Conflict."""
    path = None if master is None else node.images.path(master)
    targets = restored(node, node.about(iqn, path, recent=True))
    if any(target["iqn"].lower() == iqn for target in targets):
        raise Conflict(
            said("the target {iqn} exists already.", iqn=iqn), code="target.exists"
        )
    return targets


def _export(
    node: Node,
    iqn: str,
    filename: str,
    request: DiskRequest,
    *,
    fresh: bool = False,
) -> str:
    """Export an image under the lock; it is no longer remembered as off.

    Nobody can have an image that is `fresh`, made by this very call; only a new secret has to know of other targets.
    """
    backing = node.images.path(filename)
    if fresh and request.chap is None and same_life(node):
        targets = []
    else:
        targets = restored(node, node.about(iqn, backing))
    user = next(
        (t["iqn"] for t in targets for lun in t["luns"] if lun["backing"] == backing),
        iqn,
    )
    if user != iqn:
        raise Conflict(
            said(
                "{name} is exported already, as {user}; one image, one target.",
                name=filename,
                user=user,
            ),
            code="file.exported",
        )
    node.memory.settle()
    with access.remembered(node, iqn, request.access, request.chap, targets) as allowed:
        before = node.memory.set(iqn, off=False)
        try:
            node.export(Export(iqn, backing, access=allowed))
        except ApplicationError:
            node.memory.restore(iqn, before)
            raise
    node.exported.add(iqn)
    return backing


def _import(node: Node, iqn: str, request: DiskRequest, filename: str) -> str:
    """Give an image that lies there this disk's name and export it; a failure gives the old name back."""
    old = request.import_ or ""
    with node.changing():
        _free_target(node, iqn)
        importing.check_importable(node, old, filename)
        before = access.expect(node, iqn, request.access, request.chap)
        try:
            importing.rename(node.images, old, filename)
            try:
                backing = _export(node, iqn, filename, request)
            except BaseException:
                importing.rename(node.images, filename, old)
                node.log.add("lun.create_disk", "rollback", iqn=iqn, renamed=old)
                raise
        except BaseException:
            access.expect_no_more(node, iqn, before)
            raise
        importing.forget_old(node, old)
    return backing


def _export_made(node: Node, iqn: str, made: Made, request: DiskRequest) -> str:
    try:
        with node.changing():
            node.images.check_disk(made.name)
            backing = _export(node, iqn, made.name, request, fresh=True)
            # Before anybody else has the lock: a rebuild leaves out what is being made, and the target system
            # may be restarted right now.
            node.release(made.name)
            return backing
    except BaseException:
        node.images.delete(made.name, made.identity)
        node.log.add(CREATE_DISK, "rollback", iqn=iqn, removed=made.name)
        raise
