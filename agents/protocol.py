"""The wire between control plane and storage node: paths, bodies and names, used by both ends."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

from ipxeready.errors import Invalid
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

AUTHORIZATION = "Authorization"
BEARER = "Bearer "

HEALTHZ = "/healthz"
CAPABILITIES = "/capabilities"
MASTERS = "/masters"
LUN = "/lun"
LUN_DISK = "/lun/disk"
LUN_CD = "/lun/cd"
LUN_SCAN = "/lun/scan"
LUN_ACCESS = "/lun/access"
LUN_GROW = "/lun/grow"
LUN_RESET = "/lun/reset"
IMAGES = "/images"
IMAGES_CONVERT = "/images/convert"
UPLOADS = "/uploads"
JOBS = "/jobs"
HEALTH = "/health"
LOGS = "/logs"

#: No request of this API is longer; a node refuses more with 413.
MAX_BODY = 64 * 1024
#: The one exception: a piece of an upload. More is 413 with this figure.
MAX_PIECE = 64 << 20
#: The control plane hands on at most this much of a node's words.
MAX_ERROR = 200
#: Seconds after which a node renews its list of masters by itself.
MASTERS_PERIOD = 30

STGT = "stgt"
LIO = "lio"
FILES = "files"
AUTO = "auto"
BACKENDS = (STGT, LIO, FILES)
#: The LUN number that carries the disk or CD, by backend (tgt keeps 0 for its controller).
LUN_NUMBER = {STGT: 1, FILES: 1, LIO: 0}
#: What stands between server and target in an iPXE SAN path, by backend.
ISCSI_SEP = {STGT: ":::1:", FILES: ":::1:", LIO: "::::"}

DISK = "disk"
CD = "cd"


#: Who may log in to a target: everybody, only its own initiator, that one with CHAP.
OFF = "off"
ACL = "acl"
CHAP = "chap"
ACCESS = (OFF, ACL, CHAP)


@dataclass(frozen=True)
class Chap:
    """The name and secret with which an initiator proves itself; never shown, not even by `repr`."""

    username: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Access:
    """Who may log in to one target. `initiator` for acl and chap, `chap` for chap only."""

    mode: str = OFF
    initiator: str | None = None
    chap: Chap | None = None


def access_of(target: str, mode: str, chap: Chap | None = None) -> Access:
    """The access to `target` (an IQN) in `mode`: the initiator follows from the target's name."""
    if mode == OFF:
        return Access()
    return Access(mode, iqns.initiator_of(target), chap if mode == CHAP else None)


# What target systems, initiators and files take alike: tgtd ends a name at a comma.
_USERNAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}")
_SECRET = re.compile(r"[A-Za-z0-9]{12,16}")
#: What begins so is no name and no secret to LIO: the target would be open.
NONE = "NULL"


def check_access(mode: str, *, field: str = "access") -> str:
    """`mode` if it is one of ours, else Invalid."""
    if mode not in ACCESS:
        raise Invalid(
            said(
                "{field} {mode} is not one of {choices}.",
                field=field,
                mode=repr(mode),
                choices=", ".join(ACCESS),
            ),
            code="access.unknown",
            field=field,
        )
    return mode


def check_chap(username: str, secret: str, *, field: str = "chap") -> Chap:
    """The pair if every initiator and target system takes it, else Invalid, which never repeats the secret."""
    if not _USERNAME.fullmatch(username):
        raise Invalid(
            said(
                "{field}.username {username} must be 1 to 255 letters, digits and `. _ : @ "
                "-`, and begin with a letter or digit.",
                field=field,
                username=repr(username),
            ),
            code="chap.username",
            field=field,
        )
    if not _SECRET.fullmatch(secret):
        raise Invalid(
            said(
                "{field}.secret must be 12 to 16 letters and digits: Windows takes no other "
                "length, and not every firmware other characters. This one has {count} "
                "characters.",
                field=field,
                count=len(secret),
            ),
            code="chap.secret",
            field=field,
        )
    for name, value in (("username", username), ("secret", secret)):
        if value.startswith(NONE):
            raise Invalid(
                said(
                    "{field} must not begin with {none}, which LIO takes for none: give another one",
                    field=f"{field}.{name}",
                    none=NONE,
                ),
                code=f"chap.{name}.null",
                field=field,
            )
    return Chap(username, secret)


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


class Uploaded(TypedDict):
    """The result of a finished upload; `sha256` as the node has read it from its disk."""

    name: str
    size: int
    sha256: str
    seconds: float
    bytes: int


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


@dataclass(frozen=True)
class DiskRequest:
    """`POST /lun/disk`: clone `master`, make an empty disk of `size`, export what is there, or give another image this name.

    `access` None leaves it to the node: what it remembers of that target, else its default.
    """

    iqn: str
    master: str | None = None
    size: int | str | None = None
    existing: bool = False
    import_: str | None = None
    filename: str | None = None
    access: str | None = None
    chap: Chap | None = None

    def body(self) -> dict[str, Any]:
        """The JSON body, without what is not set."""
        fields: dict[str, Any] = {
            "iqn": self.iqn,
            "master": self.master,
            "size": self.size,
            "import": self.import_,
            "filename": self.filename,
        }
        if self.existing:
            fields["existing"] = True
        fields |= access_body(self.access, self.chap)
        return {key: value for key, value in fields.items() if value is not None}

    def told(self) -> dict[str, Any]:
        """What an audit line may say of it: all but the secret."""
        return without_secret(self.body())


@dataclass(frozen=True)
class CdRequest:
    """`POST /lun/cd`: attach an ISO of the image directory, under its own name unless `iqn` says another."""

    iso: str
    iqn: str | None = None
    access: str | None = None
    chap: Chap | None = None

    def body(self) -> dict[str, Any]:
        """The JSON body, without what is not set."""
        fields: dict[str, Any] = {"iso": self.iso, "iqn": self.iqn}
        fields |= access_body(self.access, self.chap)
        return {key: value for key, value in fields.items() if value is not None}

    def told(self) -> dict[str, Any]:
        """What an audit line may say of it: all but the secret."""
        return without_secret(self.body())


@dataclass(frozen=True)
class AccessRequest:
    """`POST /lun/access`: who may log in to a target that is there.

    `force` also where a machine that is connected could not come back after a break of its connection.
    """

    iqn: str
    access: str
    chap: Chap | None = None
    force: bool = False

    def body(self) -> dict[str, Any]:
        """The JSON body, without what is not set."""
        fields: dict[str, Any] = {"iqn": self.iqn}
        if self.force:
            fields["force"] = True
        fields |= access_body(self.access, self.chap)
        return {key: value for key, value in fields.items() if value is not None}

    def told(self) -> dict[str, Any]:
        """What an audit line may say of it: all but the secret."""
        return without_secret(self.body())


def access_body(access: str | None, chap: Chap | None) -> dict[str, Any]:
    """The fields of a body that say who may log in; None where nothing is said."""
    secret = None if chap is None else dataclasses.asdict(chap)
    return {"access": access, "chap": secret}


def without_secret(body: dict[str, Any]) -> dict[str, Any]:
    """A body for a log."""
    return {name: value for name, value in body.items() if name != "chap"}


# No leading dot (hidden), separator, comma (tgtd ends a path there), quote or
# control character; what people call their masters and ISOs otherwise passes.
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ ()+-]{0,254}")


def check_filename(name: str, *, suffix: str, field: str) -> str:
    """`name` if it is a safe flat file name with that ending (any case), else Invalid."""
    if not _SAFE.fullmatch(name) or not name.lower().endswith(suffix):
        raise Invalid(
            said(
                "{field} {name} is not a file name of the image directory: letters, digits "
                "and `. _ - + ( )`, no separator, no comma, no leading dot, ending in "
                "{ending}.",
                field=field,
                name=repr(name),
                ending=suffix,
            ),
            code="file.name",
            field=field,
        )
    return name


def passes(check: Callable[[str], str], name: object) -> bool:
    """Whether a check of names takes this one: what a form offers must be what the service takes."""
    try:
        return isinstance(name, str) and bool(check(name))
    except Invalid:
        return False


def check_master(name: str, *, field: str = "master") -> str:
    """`name` if it follows the rule for masters (see `iqn.is_master`), else Invalid."""
    check_filename(name, suffix=iqns.IMAGE_SUFFIX, field=field)
    if not iqns.is_master(name):
        raise Invalid(
            said(
                "{field} {name} is not a master: a master has {mark} in its name.",
                field=field,
                name=repr(name),
                mark=iqns.MASTER_MARK,
            ),
            code="master.name",
            field=field,
        )
    return name


def check_iso(name: str, *, field: str = "iso") -> str:
    """`name` if it can be an ISO of the image directory, else Invalid."""
    return check_filename(name, suffix=iqns.ISO_SUFFIX, field=field)


#: Kinds of files of the image directory.
KIND_DISK = "disk"
KIND_MASTER = "master"
KIND_ISO = "iso"
KIND_SOURCE = "source"
KIND_OTHER = "other"
#: Files that are no images yet: they are converted.
SOURCE_SUFFIXES = (".qcow2", ".vhdx", ".vhd", ".vmdk", ".raw")
#: What may be uploaded.
UPLOAD_SUFFIXES = (iqns.IMAGE_SUFFIX, iqns.ISO_SUFFIX, *SOURCE_SUFFIXES)
#: The names of qemu-img for what can be converted.
FORMATS = ("qcow2", "vhdx", "vpc", "vmdk", "raw")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def kind_of(name: str) -> str:
    """What a file is by its name."""
    lower = name.lower()
    if lower.endswith(iqns.IMAGE_SUFFIX):
        return KIND_MASTER if iqns.is_master(name) else KIND_DISK
    if lower.endswith(iqns.ISO_SUFFIX):
        return KIND_ISO
    return KIND_SOURCE if lower.endswith(SOURCE_SUFFIXES) else KIND_OTHER


def check_image(name: str, *, field: str = "name") -> str:
    """`name` if it can be an image (a disk's or a master), else Invalid."""
    return check_filename(name, suffix=iqns.IMAGE_SUFFIX, field=field)


def check_import(name: str, *, field: str = "import") -> str:
    """`name` if it can become a worker's disk: an image, and no master (which is cloned instead)."""
    check_image(name, field=field)
    if iqns.is_master(name):
        raise Invalid(
            said(
                "{field} {name} is a master, from which disks are cloned: give it as master.",
                field=field,
                name=repr(name),
            ),
            code="import.master",
            field=field,
        )
    return name


def check_upload(name: str, *, field: str = "name") -> str:
    """`name` if it may be uploaded, else Invalid."""
    return _check_any(name, UPLOAD_SUFFIXES, field)


def check_source(name: str, *, field: str = "source") -> str:
    """`name` if it may be converted, else Invalid. Cloud images are qcow2 named `.img`, so that may be a source too."""
    return _check_any(name, (*SOURCE_SUFFIXES, iqns.IMAGE_SUFFIX), field)


def check_format(name: str, *, field: str = "format") -> str:
    """`name` if it is a format that is converted, else Invalid."""
    if name not in FORMATS:
        raise Invalid(
            said(
                "{field} {name} must be one of {choices}, or be left out.",
                field=field,
                name=repr(name),
                choices=", ".join(FORMATS),
            ),
            code="convert.format",
            field=field,
        )
    return name


def check_sha256(text: str, *, field: str = "sha256") -> str:
    """`text` lower-cased if it is a SHA-256, else Invalid."""
    digest = text.strip().lower()
    if not _SHA256.fullmatch(digest):
        raise Invalid(
            said(
                "{field} {text} is not a SHA-256: 64 hexadecimal digits, as `sha256sum` "
                "prints.",
                field=field,
                text=repr(text[:80]),
            ),
            code="upload.sha256",
            field=field,
        )
    return digest


def _check_any(name: str, suffixes: tuple[str, ...], field: str) -> str:
    if not _SAFE.fullmatch(name) or not name.lower().endswith(suffixes):
        raise Invalid(
            said(
                "{field} {name} is not a file name that is taken here: letters, digits and "
                "`. _ - + ( )`, no separator, no comma, no leading dot, ending in {endings}.",
                field=field,
                name=repr(name),
                endings=", ".join(suffixes),
            ),
            code="file.name",
            field=field,
        )
    return name


def disk_filename(iqn: str, base: str, filename: str | None = None) -> str:
    """The image file that belongs to a disk's IQN; a `filename` that says otherwise is Invalid.

    A rebuild makes the IQN from the file's name, so another name would be renamed by it.
    """
    target = iqns.split_target(iqn, base)
    if target.cd:
        raise Invalid(
            said(
                "iqn {iqn} ends in {suffix}, which is the name of an install CD, not of a "
                "disk.",
                iqn=repr(iqn),
                suffix=iqns.ISO_SUFFIX,
            ),
            code="iqn.cd",
            field="iqn",
        )
    expected = target.name + iqns.IMAGE_SUFFIX
    if filename is not None and filename != expected:
        raise Invalid(
            said(
                "filename {filename} must be the last part of the IQN + .img, here "
                "{expected} (a rebuild makes the IQN from the file name). Leave it out to "
                "get that.",
                filename=repr(filename),
                expected=repr(expected),
            ),
            code="file.iqn",
            field="filename",
        )
    return expected
