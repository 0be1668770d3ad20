"""iSCSI names and the image file names that belong to them: one place makes and checks them, on both sides of the wire."""

from __future__ import annotations

import re
from typing import NamedTuple

from ipxeready.errors import Invalid
from ipxeready.said import said

#: What a disk may boot; also the middle part of its image's file name.
OSES = ("windows", "ubuntu", "debian", "centos", "esxi")
#: RFC 7143's limit for an iSCSI name, in bytes; LIO refuses the 224th.
MAX_IQN = 223
IMAGE_SUFFIX = ".img"
ISO_SUFFIX = ".iso"
MASTER_MARK = "_tpl_"

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOSTNAME = re.compile(_LABEL)
# iqn.YYYY-MM, a naming authority of two labels or more (rtslib wants a second
# dot after the date), then any number of colon-separated parts.
_BASE = re.compile(
    rf"iqn\.[0-9]{{4}}-(?:0[1-9]|1[0-2])\.{_LABEL}(?:\.{_LABEL})+(?::{_LABEL}(?:\.{_LABEL})*)*"
)
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
#: The shortest thing that has to fit behind a base.
_SHORTEST = ":a.windows.iso"


class TargetName(NamedTuple):
    """The part of a target's IQN behind the base, taken apart at its first dot."""

    name: str
    hostname: str
    rest: str

    @property
    def os(self) -> str | None:
        """The system of a worker's disk, or None (an install CD, a name of another shape)."""
        return self.rest if self.rest in OSES else None

    @property
    def cd(self) -> bool:
        """Whether the name is an ISO's."""
        return self.name.endswith(ISO_SUFFIX)


def _too_long(iqn: str, field: str) -> Invalid:
    return Invalid(
        said(
            "{field} {iqn} has {count} bytes; iSCSI names have at most {most}. Use a "
            "shorter hostname or a shorter IPXE_IQN_BASE.",
            field=field,
            iqn=repr(iqn),
            count=len(iqn.encode()),
            most=MAX_IQN,
        ),
        code="iqn.too_long",
        field=field,
    )


def check_base_iqn(text: str, *, field: str = "base_iqn") -> str:
    """`text` if every target system takes it as the start of a name, else Invalid.

    The rule is that of the strictest one: `iqn.YYYY-MM.a.b`, a real month, lower
    case letters, digits, hyphens and dots, no trailing colon, no underscore.
    """
    if not _BASE.fullmatch(text):
        raise Invalid(
            said(
                "{field} {text} is not a base IQN: write iqn.YYYY-MM.<domain reversed>, like "
                "iqn.2026-07.com.controller (a month from 01 to 12, two parts or more after "
                "the date, lower-case letters, digits, hyphens, no colon at the end).",
                field=field,
                text=repr(text),
            ),
            code="iqn.base",
            field=field,
        )
    if len((text + _SHORTEST).encode()) > MAX_IQN:
        raise _too_long(text + _SHORTEST, field)
    return text


def check_iqn(text: str, *, field: str = "iqn") -> str:
    """`text` lower-cased if it is a whole iSCSI target name that every target system takes, else Invalid."""
    iqn = text.lower()
    # The Kelvin sign, which is no ASCII, becomes a k.
    if not text.isascii() or not _BASE.fullmatch(iqn):
        raise Invalid(
            said(
                "{field} {text} is not a target name: write iqn.YYYY-MM.<domain "
                "reversed>:<name> with letters, digits, dots, hyphens and colons only.",
                field=field,
                text=repr(text),
            ),
            code="iqn.malformed",
            field=field,
        )
    if len(iqn.encode()) > MAX_IQN:
        raise _too_long(iqn, field)
    return iqn


def check_name(text: str, *, field: str = "name") -> str:
    """`text` lower-cased if it can stand behind a base (labels of a-z, 0-9, inner hyphens, joined by dots), else Invalid."""
    name = text.lower()
    if not text.isascii() or not _NAME.fullmatch(name):
        raise Invalid(
            said(
                "{field} {text} cannot be part of a target name: use letters, digits, dots "
                "and inner hyphens (no underscore, comma, space or separator).",
                field=field,
                text=repr(text),
            ),
            code="iqn.name",
            field=field,
        )
    return name


def _hostname(text: str) -> str:
    hostname = text.lower()
    if not _HOSTNAME.fullmatch(hostname):
        raise Invalid(
            said(
                "hostname {text} is not one DNS label: 1 to 63 letters, digits and inner "
                "hyphens.",
                text=repr(text),
            ),
            code="hostname.malformed",
            field="hostname",
        )
    return hostname


def _os(text: str) -> str:
    os = text.lower()
    if os not in OSES:
        raise Invalid(
            said(
                "os {text} is not one of {choices}.",
                text=repr(text),
                choices=", ".join(OSES),
            ),
            code="os.unknown",
            field="os",
        )
    return os


def join(base: str, name: str) -> str:
    """`<base>:<name>`, lower-case, checked as a whole (characters and length)."""
    iqn = f"{check_base_iqn(base)}:{check_name(name)}"
    if len(iqn.encode()) > MAX_IQN:
        raise _too_long(iqn, "iqn")
    return iqn


def target_iqn(base: str, hostname: str, os: str) -> str:
    """The one name of a worker's disk: `<base>:<hostname>.<os>`, always lower-case."""
    return join(base, f"{_hostname(hostname)}.{_os(os)}")


def cd_iqn(base: str, hostname: str) -> str:
    """The one name of a worker's install CD; the iPXE menu builds the same from `${hostname}`."""
    return join(base, f"{_hostname(hostname)}.windows{ISO_SUFFIX}")


def initiator_iqn(base: str, hostname: str) -> str:
    """The name under which a worker logs in."""
    return join(base, _hostname(hostname))


def initiator_of(target: str) -> str:
    """The one initiator that may log in to a target: `<base>:<hostname>`, from the target's own name.

    A hostname has no dot, so it is what stands before the first dot of the last part.
    """
    base, _, name = target.lower().rpartition(":")
    return f"{base}:{name.partition('.')[0]}"


def image_name(hostname: str, os: str) -> str:
    """The image file of a worker's disk: `<hostname>.<os>.img`, lower-case and flat."""
    return f"{_hostname(hostname)}.{_os(os)}{IMAGE_SUFFIX}"


def split_target(iqn: str, base: str, *, field: str = "iqn") -> TargetName:
    """The part of `iqn` behind `<base>:`, or Invalid when it is malformed or lies outside that base."""
    whole = check_iqn(iqn, field=field)
    prefix = f"{base}:"
    if not whole.startswith(prefix) or not _NAME.fullmatch(whole[len(prefix) :]):
        raise Invalid(
            said(
                "{field} {iqn} lies outside this node's base: it must be {base}:<name>. "
                "Compare IPXE_IQN_BASE of the node and of the control plane.",
                field=field,
                iqn=repr(iqn),
                base=base,
            ),
            code="iqn.outside_base",
            field=field,
        )
    name = whole[len(prefix) :]
    hostname, _, rest = name.partition(".")
    return TargetName(name, hostname, rest)


def is_master(filename: str) -> bool:
    """Whether an image file is a master, i.e. a template that is cloned and never exported or deleted here.

    The rule: the name ends in `.img`, and `_tpl_` stands anywhere in the part before
    that, which has more to it than the mark itself. Case does not matter for either.
    So `win_tpl_v1.img`, `WIN_TPL_v1.img`, `worker_tpl_01.windows.img` and
    `a_tpl_b_tpl_c.img` are masters; `_tpl_.img`, `tpl.img` and `x_tpl_y.iso` are not.
    """
    lower = filename.lower()
    if not lower.endswith(IMAGE_SUFFIX):
        return False
    stem = lower.removesuffix(IMAGE_SUFFIX)
    return MASTER_MARK in stem and stem != MASTER_MARK and not stem.startswith(".")
