"""What a node answers, body by body."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from agents.protocol.limits import MAX_ERROR


class Session(TypedDict):
    """One initiator that is logged in; `since` (ISO 8601) is when the node first saw it."""

    initiator: str
    address: str
    since: NotRequired[str]
    id: NotRequired[str]
    """What the target system tells a login from the next one of the same initiator by."""


class Lun(TypedDict):
    """One logical unit of a target; `size` in bytes, `type` is `disk` or `cd`."""

    lun: int
    backing: str
    size: int
    type: str


class Target(TypedDict):
    """One target of a node, as `GET /lun` lists it."""

    iqn: str
    tid: NotRequired[int]
    luns: list[Lun]
    sessions: list[Session]
    access: NotRequired[str]
    """off, acl or chap, as the target system really has it; `other` for what somebody's hand made."""
    initiators: NotRequired[list[str]]
    """Who may log in with acl and chap."""


class BackendHealth(TypedDict):
    """The target system: whether it answers, and is the one that the node was told of; `error` why not."""

    name: str
    alive: bool
    ours: bool
    error: NotRequired[str]


class Room(TypedDict):
    """Bytes: free and in all, what stays in reserve, and what the disks here may still take by growing."""

    free: int
    total: int
    reserve: int
    promised: int


class FileSystem(TypedDict):
    """What the images lie on."""

    type: str
    reflink: bool
    mount: str


class TargetCount(TypedDict):
    """Targets below the node's base, others' in the same target system, and open sessions of ours."""

    ours: int
    foreign: int
    sessions: int


class ImageCount(TypedDict):
    """Files of the image directory; `kept` are disks without a target."""

    disks: int
    masters: int
    isos: int
    kept: int


class NodeHealth(TypedDict):
    """The body of `GET /health`; `problems` are sentences, empty when all is well."""

    backend: BackendHealth
    room: Room
    fs: FileSystem
    targets: TargetCount
    images: ImageCount
    problems: list[str]


class Capabilities(TypedDict):
    """What a node can do and what room it has; `reflink` is measured, not guessed."""

    backend: str
    cd: bool
    persistent: bool
    base_iqn: str
    fs_type: str
    clone: bool
    empty_disk: bool
    reflink: bool
    free_bytes: int
    total_bytes: int
    making: NotRequired[list[str]]
    """Images that some call is making right now, by file name: no target yet, and not given up either."""
    removing: NotRequired[list[str]]
    """Targets that some call is taking off right now, by IQN: still listed, and not for long."""


class Master(TypedDict):
    """One master image; `mtime` ISO 8601 with offset."""

    name: str
    size: int
    mtime: str
    problem: NotRequired[str]
    """Why no disk can be cloned from it, in words."""


class MasterList(TypedDict):
    """The body of `GET /masters`."""

    masters: list[Master]


class Created(TypedDict):
    """The body of a 201 of `POST /lun/disk` and `POST /lun/cd`."""

    iqn: str
    backing: str
    how: NotRequired[str]
    """`reflink`, `full copy, because …`, `empty`, `existing` or `import`; docs/storage.md has them all."""
    seconds: NotRequired[float]
    bytes: NotRequired[int]
    """Bytes that were really copied."""


class ImageFile(TypedDict):
    """One file of the image directory, as `GET /images` lists it."""

    name: str
    kind: str
    """`disk`, `master`, `iso`, `source` (to be converted) or `other`."""
    size: int
    allocated: int
    mtime: str
    target: NotRequired[str]
    """The IQN under which it is exported."""
    problem: NotRequired[str]
    """Why it cannot be used as it is, in words."""


class ImageList(TypedDict):
    """The body of `GET /images`."""

    images: list[ImageFile]
    formats: list[str]
    """What this node can convert from; empty without qemu-img."""


class ImageDeleted(TypedDict):
    """The body of `DELETE /images`."""

    deleted: str
    freed: int
    """Bytes that it took on the disk."""


class Converted(TypedDict):
    """The result of a conversion; `bytes` are those that the new image takes."""

    name: str
    size: int
    format: str
    seconds: float
    bytes: int


class Upload(TypedDict):
    """One unfinished upload: `offset` bytes of `size` are there; `size` None where nobody said it."""

    id: str
    name: str
    size: int | None
    offset: int
    sha256: str | None
    """What it must be, if somebody said that."""
    created: str
    changed: str


#: How a node begins to say that an upload is not the file that was meant: its control plane knows it by that.
WRONG_CHECKSUM = "wrong checksum"


class Uploaded(TypedDict):
    """The result of a finished upload; `sha256` as the node has read it from its disk."""

    name: str
    size: int
    sha256: str
    seconds: float
    bytes: int


class Grown(TypedDict):
    """The body of `POST /lun/grow`: bytes now and before."""

    iqn: str
    backing: str
    size: int
    was: int


class ScanCreated(TypedDict):
    """One target that a scan made."""

    iqn: str
    cd: bool


class Skipped(TypedDict):
    """One file or target that a scan left alone, and why."""

    name: str
    reason: str


class ScanResult(TypedDict):
    """The body of `POST /lun/scan`."""

    created: list[ScanCreated]
    skipped: list[Skipped]


class Deleted(TypedDict):
    """The body of `DELETE /lun`; `closed` are the sessions that `force` ended."""

    deleted: str
    delete_file: bool
    closed: NotRequired[list[Session]]


def how_made(made: Created) -> dict[str, Any]:
    """What an audit line takes over from a node's answer: how the bytes came there, seconds, bytes copied."""
    found: dict[str, Any] = {}
    if isinstance(how := made.get("how"), str):
        found["how"] = how[:MAX_ERROR]
    for name in ("seconds", "bytes"):
        value = made.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
    return found
