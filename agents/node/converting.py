"""A disk image of another format becomes a raw one of the image directory: looked at, weighed, written to a hidden part, named."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from agents.node import formats, qemuimg, quiet
from agents.node.errors import NoRoom
from agents.node.images import Images
from agents.node.jobs import AT_RESTART, Step
from agents.node.rebuild import restored
from agents.node.runtime import Node
from agents.protocol.answers import Converted
from agents.protocol.filenames import check_format, check_image, check_source
from ipxeready.errors import Conflict, NotFound
from ipxeready.said import said
from ipxeready.storage.jobs import Job
from ipxeready.storage.sizes import MAX_SIZE, SECTOR, format_size

#: Room is looked at so often (seconds) while qemu-img writes.
_PERIOD = 1.0

KIND = "image.convert"


def image_convert(
    node: Node,
    source: str,
    name: str,
    *,
    format_: str | None = None,
    step: Step | None = None,
) -> Converted:
    """Make the image `name` from `source`, which stays.

    1. Names, then the format by magic, then what qemu-img says: anything that needs a second file is refused.
       Nobody may be writing it, and it must be afterwards what it was before.
    2. Under the lock: neither is exported or being made. Both are marked.
    3. Without the lock, as a job: all of it is looked at for its size and its end, then qemu-img writes into a hidden part; the part gets its name when it is whole.
    """
    check_source(source)
    check_image(name)
    asked = None if format_ is None else check_format(format_)
    qemuimg.require()
    step, began = step or Step(), time.monotonic()
    with node.log.about(KIND, source=source, name=name) as note:
        with node.changing():
            _check_free(node, source, name)
            node.reserve(name.lower())
        try:
            with node.reading(source):
                file = _open(node.images, source)
                try:
                    quiet.check_no_writer(file, source, kind="source")
                    before = quiet.Stamp.of(file)
                    kind = formats.detect(file, source)
                    formats.check_asked(asked, kind, source)
                    size, cluster = _looked_at(file, kind, source)
                    note["format"], note["size"] = kind, size
                    step.turn(size)
                    needed = _needed(file, kind, size, cluster, step)

                    def whole() -> None:
                        quiet.check_unchanged(file, source, before, kind="source")

                    taken = _write(
                        node.images, file, kind, name, size, needed, step, whole
                    )
                finally:
                    os.close(file)
        finally:
            node.release(name.lower())
    return {
        "name": name,
        "size": size,
        "format": kind,
        "seconds": round(time.monotonic() - began, 3),
        "bytes": taken,
    }


def _made_before(node: Node, job: Job) -> Any:
    """The result of a conversion that a kill kept from saying so, or None: an image of that name that is younger than the job."""
    entry = node.images.find(str(job.about.get("name", "")))
    if entry is None or entry.mtime < datetime.fromisoformat(job.created).timestamp():
        return None
    return {"name": entry.name, "size": entry.size, "bytes": entry.allocated}


AT_RESTART[KIND] = _made_before


def _check_free(node: Node, source: str, name: str) -> None:
    if (clash := node.images.find(name)) is not None:
        raise Conflict(
            said(
                "the image {name} exists already; it was left as it is. Take another name, or delete "
                "it first.",
                name=clash.name,
            ),
            code="file.exists",
        )
    if node.is_making(source):
        raise Conflict(
            said("{name} is being made by another call; wait for that.", name=source),
            code="file.making",
        )
    path = node.images.path(source)
    for target in restored(node, node.targets()):
        if any(lun["backing"] == path for lun in target["luns"]):
            raise Conflict(
                said(
                    "{name} is exported as {iqn}, so it may change at any time. Delete that target "
                    "first (without the file).",
                    name=source,
                    iqn=target["iqn"],
                ),
                code="file.exported",
            )


def _open(images: Images, source: str) -> int:
    with images.handle() as folder:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(source, flags, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                words = said(
                    "{name} is a symlink. Put the file itself there.", name=source
                )
                raise Conflict(words, code="file.symlink") from error
            raise NotFound(
                said(
                    "there is no {name} in the image directory that can be read ({why}).",
                    name=source,
                    why=error.strerror,
                ),
                code="file.missing",
            ) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Conflict(
            said("{name} is not a regular file.", name=source), code="file.kind"
        )
    return file


def _looked_at(file: int, kind: str, source: str) -> tuple[int, int]:
    """The size of the disk that the image holds, by the rules of every image here, and of a piece of its tables."""
    try:
        told = qemuimg.info(file, kind)
        size = formats.check_info(told, qemuimg.path_of(file), kind, source)
        qemuimg.check(file, kind)
    except qemuimg.Failed as error:
        raise qemuimg.refusal(
            error, said("read {source} as {kind}", source=source, kind=kind)
        ) from error
    if size <= 0 or size % SECTOR:
        raise Conflict(
            said(
                "{name} is not converted: its disk has {size} bytes, and an image is more than 0 "
                "and a multiple of {sector}. Resize it where it comes from (qemu-img resize).",
                name=source,
                size=size,
                sector=SECTOR,
            ),
            code="convert.size",
        )
    if size > MAX_SIZE:
        raise Conflict(
            said(
                "{name} is not converted: its disk has {size}, above this node's limit of {most}.",
                name=source,
                size=format_size(size),
                most=format_size(MAX_SIZE),
            ),
            code="convert.size",
        )
    return size, int(told.get("cluster-size") or 0)


def _needed(file: int, kind: str, size: int, cluster: int, step: Step) -> int:
    """Bytes that the new image will take."""
    try:
        found = qemuimg.data_bytes(file, kind, cluster, step.check)
    except qemuimg.Failed as error:
        raise qemuimg.refusal(error, said("read all of it")) from error
    return min(found, size)


def _write(
    images: Images,
    file: int,
    kind: str,
    name: str,
    size: int,
    needed: int,
    step: Step,
    whole: Callable[[], None],
) -> int:
    """Convert into a new image; the bytes that it takes on the disk. `whole` may refuse it before it has its name."""
    taken, looked = 0, 0.0

    def fill(part: int, written: Callable[[int], None]) -> str:
        nonlocal taken
        try:
            os.ftruncate(part, size)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            raise NoRoom(
                said(
                    "no room for {name}: {size} is more than one file of this file system can have "
                    "({kind}).",
                    name=name,
                    size=format_size(size),
                    kind=images.fs_type(),
                )
            ) from error

        def watch(fraction: float) -> None:
            nonlocal taken, looked
            moment = time.monotonic()
            if moment - looked >= _PERIOD:
                now = os.fstat(part).st_blocks * 512
                written(now - taken)
                taken, looked = now, moment
                images.check_room(name, 0)
            step.at(int(size * fraction))

        try:
            qemuimg.convert(file, kind, part, size, watch)
        except qemuimg.Failed as error:
            if "No space left" in str(error) or "Disk quota" in str(error):
                raise OSError(errno.ENOSPC, str(error)) from error
            raise qemuimg.refusal(
                error, said("convert to {name}", name=name)
            ) from error
        if os.fstat(part).st_size != size:
            raise Conflict(
                said("{name} came out with another size; try again.", name=name)
            )
        whole()
        taken = os.fstat(part).st_blocks * 512
        return f"converted from {kind}"

    images.fill_new(name, fill, needed=needed)
    return taken
