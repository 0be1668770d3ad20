"""The names of files of the image directory, what each is by its name, and what may be uploaded, converted or made a disk."""

from __future__ import annotations

import re
from collections.abc import Callable

from ipxeready.errors import Invalid
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

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
