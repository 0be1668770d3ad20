"""The tables of contract.md as data: every row of sections 4 and 6 with its success and its refusals.

`{...}` in texts is filled in by the test's site: `{pc}` a hostname that nobody has, `{n}` the node's id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.contract.shapes import Mapping, Or, time

#: A call that prepares something: method, path, body.
Call = tuple[str, str, Any]


@dataclass(frozen=True)
class Refused:
    """A request that is refused: how it differs from the row's success, the status, and words of the answer."""

    why: str
    status: int
    says: str = ""
    body: Any = None
    """Fields beside those of the row's body; None takes one away."""
    query: str | None = None
    path: str | None = None
    given: tuple[Call, ...] | None = None
    from_node: bool = False
    """The refusal is a node's: `{"detail": {"agent", "error"}}`."""


@dataclass(frozen=True)
class Row:
    """One method of one row."""

    method: str
    path: str
    shape: Any
    status: int = 200
    body: dict[str, Any] | None = None
    query: str = ""
    given: tuple[Call, ...] = ()
    refused: tuple[Refused, ...] = ()
    wrong: dict[str, Any] = field(default_factory=dict)
    """A value of a wrong type for each field, beside those that every field refuses."""
    flags: tuple[str, ...] = ()
    """Booleans of the query."""
    cds: bool = False
    """Needs a node with a target system that has CD drives."""
    open: bool = False
    """No credentials are asked for."""
    page: bool = True
    """Browsers get a page on the same URL."""

    @property
    def id(self) -> str:
        """As the contract has it."""
        return f"{self.method} {self.path}"


STRANGE = "iqn.2001-01.org.example:pc1.debian"
MAC, MAC2 = "52:54:00:00:00:01", "52:54:00:00:00:02"

DISK = {
    "agent": "{n}",
    "iqn": "{base}:{pc}.debian",
    "filename": "{pc}.debian.img",
    "backing": "{folder}/{pc}.debian.img",
    "os": "debian",
    "source": Or(
        {"type": "empty", "size": Or(1 << 20, 3 << 20)},
        {"type": "master", "name": "{tpl}"},
        {"type": "existing", "name": "{pc}.debian.img"},
    ),
    "access?": Or("acl", "chap"),
}
CD = {
    "agent": "{n}",
    "iqn": "{base}:{pc}.windows.iso",
    "iso": "{iso}",
    "backing": "{folder}/{iso}",
    "access?": Or("acl", "chap"),
}
RECORD = {
    "worker_id": "{pc}",
    "mac": Or(MAC, MAC2),
    "hostname": "{pc}",
    "arch": "x86_64",
    "state": Or("registered", "ready", "installing"),
    "access?": Or("off", "acl", "chap"),
    "default_os?": "debian",
    "boot?": {"menu_default?": str, "menu_timeout?": int},
    "disks": Or([], [DISK]),
    "cd": Or(None, CD),
}
AGENT = {
    "id": str,
    "base_url": str,
    "iscsi_server": str,
    "role": {"disk": bool, "cd": bool},
    "tags": list,
    "enabled": bool,
    "access": Or("off", "acl", "chap"),
}
CAPABILITIES = {
    "backend": Or("stgt", "lio", "files"),
    "cd": bool,
    "persistent": bool,
    "base_iqn": "{base}",
    "fs_type": str,
    "clone": bool,
    "empty_disk": bool,
    "reflink": bool,
    "free_bytes": int,
    "total_bytes": int,
    "making": [],
    "removing": [],
}
TARGET = {
    "iqn": str,
    "tid?": int,
    "luns": [{"lun": int, "backing": str, "size": int, "type": Or("disk", "cd")}],
    "sessions": list,
    "access": Or("off", "acl", "chap", "other"),
    "initiators": list,
}
MADE = {
    "iqn": "{base}:{pc}.debian",
    "backing": "{folder}/{pc}.debian.img",
    "how": "empty",
    "seconds": float,
    "bytes": 0,
}
MASTER = {"name": str, "size": int, "mtime": time}
IMAGE = {
    "name": str,
    "kind": Or("disk", "master", "iso", "source", "other"),
    "size": int,
    "allocated": int,
    "mtime": time,
    "target?": str,
    "problem?": str,
}
IMAGES = {"images": [IMAGE], "formats": list}
UPLOAD = {
    "id": str,
    "name": str,
    "size": Or(None, int),
    "offset": int,
    "sha256": Or(None, str),
    "created": time,
    "changed": time,
}
HEALTH = {
    "backend": Mapping,
    "room": Mapping,
    "fs": Mapping,
    "targets": Mapping,
    "images": Mapping,
    "problems": list,
}
SCANNED = {
    "created": Or([], [{"iqn": str, "cd": bool}]),
    "skipped": Or([], [{"name": str, "reason": str}]),
}

NODE: Call = (
    "POST",
    "/agents",
    {"id": "{n}", "base_url": "{url}", "token": "{token}", "role": {"cd": True}},
)
DEAD: Call = (
    "POST",
    "/agents",
    {"id": "dead", "base_url": "{nowhere}", "token": "t", "role": {"cd": True}},
)
WORKER: Call = ("POST", "/workers", {"worker_id": "{pc}", "mac": MAC})
MAKE: Call = (
    "POST",
    "/workers/{pc}/luns/disk",
    {"type": "empty", "os": "debian", "size": "1M"},
)
ATTACH: Call = ("POST", "/workers/{pc}/luns/cd", {"iso": "{iso}"})
#: The node's address is given up: from now on nobody answers.
DIES: Call = ("PUT", "/agents/{n}", {"base_url": "{nowhere}", "token": "t"})
OFF: Call = ("PUT", "/agents/{n}", {"enabled": False})
NO_ROLE: Call = ("PUT", "/agents/{n}", {"role": {"disk": False, "cd": False}})
BAD_TOKEN: Call = ("PUT", "/agents/{n}", {"token": "not-the-nodes"})
LUN: Call = (
    "POST",
    "/agents/{n}/luns/disk",
    {"iqn": "{base}:{pc}.debian", "size": "1M"},
)
NOBODY = Refused("no such worker", 404, "no worker", given=())
NO_NODE = Refused("no such node", 404, "no node", given=())
UNREACHABLE = Refused("the node is gone", 503, "unreachable", given=(NODE, DIES))
NOT_OUR_TOKEN = Refused(
    "our stored token is wrong", 502, "token", given=(NODE, BAD_TOKEN), from_node=True
)

CONTROL = (
    Row(
        "GET",
        "/healthz",
        {"status": "ok"},
        open=True,
        page=False,
        refused=(Refused("no boolean", 400, "verbose", query="verbose=maybe"),),
    ),
    Row(
        "GET",
        "/boot-vars",
        {
            "base_iqn": "{base}",
            "iscsi_server": "127.0.0.1",
            "iscsi_sep": ":::1:",
            "menu_default": "reboot",
            "menu_timeout": int,
        },
        query=f"mac={MAC}&format=json",
        given=(NODE, WORKER, MAKE),
        open=True,
        page=False,
    ),
    Row("GET", "/settings/auto-register", {"enabled": True}),
    Row(
        "PUT",
        "/settings/auto-register",
        {"enabled": False},
        body={"enabled": False},
        wrong={"enabled": "perhaps"},
        refused=(Refused("nothing", 400, "enabled", body={"enabled": None}),),
    ),
    Row(
        "GET",
        "/workers",
        [RECORD],
        given=(NODE, WORKER, MAKE),
        query="state=ready&os=debian&agent={n}&has_disk=true&search={pc}&ordering=worker_id",
        refused=(
            Refused("unknown filter", 400, "stat", query="stat=ready"),
            Refused("no such state", 400, "state", query="state=asleep"),
            Refused("no boolean", 400, "has_disk", query="has_disk=maybe"),
            Refused("no such order", 400, "ordering", query="ordering=beauty"),
            Refused("no number", 400, "limit", query="limit=x"),
            Refused("no number", 400, "offset", query="offset=-1"),
        ),
    ),
    Row(
        "POST",
        "/workers",
        RECORD,
        status=201,
        body={
            "worker_id": "{pc}",
            "mac": "52-54-00-00-00-01",
            "hostname": "{pc}",
            "arch": "x86_64",
            "boot": {"menu_default": "shell", "menu_timeout": 0},
        },
        wrong={"boot": "shell", "worker_id": 5, "mac": 525400000001, "hostname": True},
        refused=(
            Refused("id taken", 409, "worker_id", given=(WORKER,), body={"mac": MAC2}),
            Refused(
                "hostname taken",
                409,
                "hostname",
                given=(WORKER,),
                body={"worker_id": "other", "mac": MAC2},
            ),
            Refused(
                "MAC taken",
                409,
                "mac",
                given=(WORKER,),
                body={"worker_id": "other", "hostname": "other"},
            ),
            Refused("no id", 400, "worker_id", body={"worker_id": "a b"}),
            Refused("no MAC", 400, "mac", body={"mac": "00:00:00:00:00:00"}),
            Refused("a lease time", 400, "hostname", body={"hostname": "12h"}),
            Refused(
                "an id that is no hostname",
                400,
                "hostname",
                body={"worker_id": "a.b", "hostname": None},
            ),
            Refused(
                "no item", 400, "menu_default", body={"boot": {"menu_default": "x"}}
            ),
            Refused(
                "no time", 400, "menu_timeout", body={"boot": {"menu_timeout": -1}}
            ),
            Refused(
                "typo inside", 400, "menu_defalt", body={"boot": {"menu_defalt": "x"}}
            ),
            Refused("a path", 400, "windows_iso", body={"windows_iso": "../x.iso"}),
        ),
    ),
    Row(
        "GET",
        "/workers/{pc}",
        RECORD,
        given=(NODE, WORKER, MAKE),
        refused=(NOBODY,),
    ),
    Row(
        "GET",
        "/workers/{pc}/status",
        {
            "worker": RECORD,
            "actual": {
                "dnsmasq": {"hostname": "{pc}", "mac": MAC},
                "disks": [
                    {
                        "os": "debian",
                        "access": "acl",
                        "exists": True,
                        "target": TARGET,
                    }
                ],
                "cd": None,
            },
        },
        given=(NODE, WORKER, MAKE),
        refused=(NOBODY,),
    ),
    Row(
        "PUT",
        "/workers/{pc}/access",
        {**RECORD, "changed": ["{base}:{pc}.debian"], "kept": []},
        body={"access": "off", "force": True, "rotate": False},
        given=(NODE, WORKER, MAKE),
        wrong={"access": 5, "force": "perhaps", "rotate": "perhaps"},
        refused=(
            NOBODY,
            Refused("no mode", 400, "acl, chap", body={"access": "everybody"}),
            Refused("nothing", 400, "rotate", body={"access": None}),
            Refused(
                "no secret", 409, "no secret", body={"access": None, "rotate": True}
            ),
            Refused(
                "its node is gone", 503, "Nothing", given=(NODE, WORKER, MAKE, DIES)
            ),
        ),
    ),
    Row(
        "PUT",
        "/workers/{pc}/mac",
        {**RECORD, "changed": True},
        body={"mac": MAC2},
        given=(WORKER,),
        wrong={"mac": 5},
        refused=(
            NOBODY,
            Refused("no MAC", 400, "mac", body={"mac": "52:54:00"}),
            Refused("broadcast", 400, "mac", body={"mac": "ff:ff:ff:ff:ff:ff"}),
            Refused(
                "another's",
                409,
                "other",
                given=(
                    WORKER,
                    ("POST", "/workers", {"worker_id": "other", "mac": MAC2}),
                ),
            ),
        ),
    ),
    Row(
        "PUT",
        "/workers/{pc}/default-os",
        RECORD,
        body={"os": "Debian", "menu_default": "debian", "menu_timeout": 3000},
        given=(NODE, WORKER, MAKE),
        wrong={"os": 5, "menu_timeout": "soon"},
        refused=(
            NOBODY,
            Refused(
                "nothing",
                400,
                "",
                body={"os": None, "menu_default": None, "menu_timeout": None},
            ),
            Refused("no disk at all", 409, "os", given=(WORKER,)),
            Refused("another disk", 400, "debian", body={"os": "windows"}),
            Refused("no system", 400, "os", body={"os": "templeos"}),
            Refused("no item", 400, "menu_default", body={"menu_default": "games"}),
            Refused("no time", 400, "menu_timeout", body={"menu_timeout": -1}),
        ),
    ),
    Row(
        "POST",
        "/workers/{pc}/luns/disk",
        RECORD,
        status=201,
        body={"type": "empty", "os": "debian", "size": "1M", "disk_agent": "{n}"},
        given=(NODE, WORKER),
        wrong={"type": 5, "os": 5, "size": True, "name": 5},
        refused=(
            NOBODY,
            Refused("that os exists", 409, "debian", given=(NODE, WORKER, MAKE)),
            Refused("no type", 400, "type", body={"type": "magic"}),
            Refused("no system", 400, "os", body={"os": "beos"}),
            Refused("no whole sectors", 400, "size", body={"size": 1000}),
            Refused("no size", 400, "size", body={"size": None}),
            Refused("nothing of a size", 400, "size", body={"size": 0}),
            Refused("two sources", 400, "name", body={"name": "{tpl}"}),
            Refused(
                "nothing was kept",
                404,
                "",
                body={"type": "existing", "size": None, "name": "{pc}.debian.img"},
                from_node=True,
            ),
            Refused(
                "no such master",
                404,
                "",
                body={"type": "master", "size": None, "name": "no_tpl_x.img"},
                from_node=True,
            ),
            Refused(
                "no master",
                400,
                "name",
                body={"type": "master", "size": None, "name": "plain.img"},
            ),
            Refused("off", 409, "disabled", given=(NODE, WORKER, OFF)),
            Refused("no disks there", 400, "role.disk", given=(NODE, WORKER, NO_ROLE)),
            Refused("no such node", 404, "no node", body={"disk_agent": "none"}),
            Refused("gone", 503, "unreachable", given=(NODE, WORKER, DIES)),
            Refused(
                "no nodes",
                409,
                "no storage node",
                body={"disk_agent": None},
                given=(WORKER,),
            ),
            Refused(
                "each is off",
                409,
                "{n} is disabled",
                body={"disk_agent": None},
                given=(NODE, WORKER, OFF),
            ),
            Refused(
                "each is gone",
                503,
                "unreachable",
                body={"disk_agent": None},
                given=(NODE, WORKER, DIES),
            ),
        ),
    ),
    Row(
        "POST",
        "/workers/{pc}/luns/disk/debian/grow",
        RECORD,
        body={"size": "3M"},
        given=(NODE, WORKER, MAKE),
        wrong={"size": True},
        refused=(
            NOBODY,
            Refused("no such disk", 404, "debian", given=(NODE, WORKER)),
            Refused(
                "as it is", 409, "only made larger", body={"size": "1M"}, from_node=True
            ),
            Refused("no size", 400, "size", body={"size": None}),
            Refused("no whole sectors", 400, "size", body={"size": 1000}),
            Refused("gone", 503, "unreachable", given=(NODE, WORKER, MAKE, DIES)),
        ),
    ),
    Row(
        "POST",
        "/workers/{pc}/luns/disk/debian/reset",
        RECORD,
        body={"master": "{tpl}"},
        given=(NODE, WORKER, MAKE),
        wrong={"master": 5},
        refused=(
            NOBODY,
            Refused("no such disk", 404, "debian", given=(NODE, WORKER)),
            Refused("no master named", 400, "master", body={"master": None}),
            Refused("no master", 400, "master", body={"master": "a.img"}),
            Refused(
                "no such master",
                404,
                "no master",
                body={"master": "no_tpl_.img"},
                from_node=True,
            ),
            Refused("gone", 503, "unreachable", given=(NODE, WORKER, MAKE, DIES)),
        ),
    ),
    Row(
        "POST",
        "/workers/{pc}/luns/cd",
        RECORD,
        status=201,
        body={"iso": "{iso}", "agent": "{n}"},
        given=(NODE, WORKER),
        cds=True,
        wrong={"iso": 5, "agent": 5},
        refused=(
            NOBODY,
            Refused("a path", 400, "iso", body={"iso": "../x.iso"}),
            Refused(
                "no such ISO", 404, "none.iso", body={"iso": "none.iso"}, from_node=True
            ),
            Refused("another CD", 409, "DELETE", given=(NODE, WORKER, ATTACH)),
            Refused("no CDs there", 400, "role.cd", given=(NODE, WORKER, NO_ROLE)),
            Refused("off", 409, "disabled", given=(NODE, WORKER, OFF)),
            Refused("no such node", 404, "no node", body={"agent": "none"}),
            Refused("gone", 503, "unreachable", given=(NODE, WORKER, DIES)),
        ),
    ),
    Row(
        "DELETE",
        "/workers/{pc}/luns/cd",
        RECORD,
        given=(NODE, WORKER, ATTACH),
        cds=True,
        flags=("ignore_missing_target", "force", "forget"),
        refused=(
            NOBODY,
            Refused("no CD", 404, "CD", given=(NODE, WORKER)),
            Refused("gone", 503, "forget", given=(NODE, WORKER, ATTACH, DIES)),
        ),
    ),
    Row(
        "DELETE",
        "/workers/{pc}/luns/disk/debian",
        RECORD,
        given=(NODE, WORKER, MAKE),
        query="delete_file=1",
        flags=("delete_file", "ignore_missing_target", "force", "forget"),
        refused=(
            NOBODY,
            Refused("no such disk", 404, "debian", given=(NODE, WORKER)),
            Refused("no system", 400, "os", path="/workers/{pc}/luns/disk/beos"),
            Refused("gone", 503, "forget", given=(NODE, WORKER, MAKE, DIES)),
            Refused(
                "no target",
                404,
                "",
                given=(
                    NODE,
                    WORKER,
                    MAKE,
                    (
                        "DELETE",
                        "/agents/{n}/luns?iqn={base}:{pc}.debian&delete_file=true&force=true",
                        None,
                    ),
                ),
            ),
        ),
    ),
    Row(
        "POST",
        "/workers/luns/disk/batch",
        {
            "succeeded": [{"worker_id": "{pc}", "agent": "{n}", "iqn": DISK["iqn"]}],
            "skipped": [{"worker_id": "{pc}", "reason": str}],
            "failed": [{"worker_id": "nobody", "agent": "{n}", "error": str}],
        },
        body={
            "type": "empty",
            "os": "debian",
            "size": "1M",
            "targets": [
                {"worker_id": "nobody", "agent": "{n}"},
                {"worker_id": "{pc}", "agent": "{n}"},
                {"worker_id": "{pc}", "agent": "{n}"},
            ],
        },
        given=(NODE, WORKER),
        wrong={"targets": [5], "type": 5, "os": 5, "size": True},
        refused=(
            Refused("nobody", 400, "targets", body={"targets": []}),
            Refused("no node", 400, "agent", body={"targets": [{"worker_id": "{pc}"}]}),
            Refused("no size", 400, "size", body={"size": None}),
            Refused("no type", 400, "type", body={"type": "magic"}),
            Refused("no system", 400, "os", body={"os": "beos"}),
        ),
    ),
    Row(
        "DELETE",
        "/workers/{pc}",
        {"deleted": "{pc}", "delete_disk": True, "dnsmasq_removed": True},
        given=(NODE, WORKER, MAKE),
        query="delete_disk=true",
        flags=("delete_disk", "ignore_missing_target", "force", "forget"),
        refused=(
            NOBODY,
            Refused("gone", 503, "forget", given=(NODE, WORKER, MAKE, DIES)),
        ),
    ),
    Row(
        "POST",
        "/workers/delete/batch",
        {
            "succeeded": [{"worker_id": "{pc}", "hostname": "{pc}"}],
            "failed": [{"worker_id": "nobody", "error": str}],
        },
        body={
            "worker_ids": ["{pc}", "nobody"],
            "delete_disk": True,
            "ignore_missing_target": False,
        },
        given=(NODE, WORKER, MAKE),
        wrong={"worker_ids": "{pc}", "delete_disk": "perhaps"},
        refused=(Refused("nobody", 400, "worker_ids", body={"worker_ids": []}),),
    ),
    Row(
        "GET",
        "/agents",
        [{**AGENT, "health": str, "capabilities": Or(None, CAPABILITIES)}],
        query="live=true",
        given=(NODE, DEAD),
        flags=("live",),
        refused=(Refused("unknown filter", 400, "lives", query="lives=1"),),
    ),
    Row(
        "POST",
        "/agents",
        AGENT,
        status=201,
        body={
            "id": "{n}",
            "base_url": "{url}",
            "token": "{token}",
            "iscsi_server": "127.0.0.1",
            "role": {"disk": True, "cd": False},
            "tags": ["storage", "files"],
            "enabled": True,
        },
        wrong={"role": "disk", "tags": {"a": 1}, "enabled": "perhaps"},
        refused=(
            Refused("id taken", 409, "id", given=(NODE,)),
            Refused("no http", 400, "base_url", body={"base_url": "ftp://127.0.0.1"}),
            Refused("no address", 400, "base_url", body={"base_url": "127.0.0.1"}),
            Refused("no id", 400, "id", body={"id": "a b"}),
            Refused("a variable", 400, "token", body={"token": "${SECRET}"}),
            Refused("a typo inside", 400, "dsk", body={"role": {"dsk": True}}),
        ),
    ),
    Row(
        "POST",
        "/agents/probe",
        {
            "base_url": "{url}",
            "role": {"disk": bool, "cd": bool},
            "tags": ["storage", "files"].__eq__,
            "iscsi_server": "127.0.0.1",
            "enabled": True,
            "backend": "files",
            "fs_type": str,
            "base_iqn": "{base}",
            "clone": bool,
            "empty_disk": bool,
            "persistent": bool,
            "reflink": bool,
            "free_bytes": int,
            "total_bytes": int,
        },
        body={"base_url": "{url}", "token": "{token}"},
        refused=(
            Refused("nobody there", 502, "unreachable", body={"base_url": "{nowhere}"}),
            Refused("refused", 502, "token", body={"token": "wrong"}),
            Refused(
                "the stored token elsewhere",
                400,
                "give the token",
                body={"base_url": "{nowhere}", "token": None, "agent_id": "{n}"},
                given=(NODE,),
            ),
            Refused(
                "no such node", 404, "no node", body={"token": None, "agent_id": "none"}
            ),
            Refused("no http", 400, "base_url", body={"base_url": "file:///etc"}),
        ),
    ),
    Row(
        "PUT",
        "/agents/{n}",
        AGENT,
        body={
            "base_url": "{url}",
            "token": "{token}",
            "iscsi_server": "127.0.0.2",
            "role": {"disk": True, "cd": False},
            "tags": ["stgt"],
            "enabled": False,
        },
        given=(NODE,),
        wrong={"role": "disk", "tags": {"a": 1}, "enabled": "perhaps"},
        refused=(
            NO_NODE,
            Refused("no http", 400, "base_url", body={"base_url": "ftp://127.0.0.1"}),
            Refused("a variable", 400, "token", body={"token": "${SECRET}"}),
            Refused("the id", 400, "id", body={"id": "other"}),
        ),
    ),
    Row(
        "POST",
        "/agents/{n}/access",
        {"changed": ["{base}:{pc}.debian"], "kept": list, "failed": []},
        body={"access": "off", "force": False},
        given=(NODE, WORKER, MAKE),
        wrong={"access": 5, "force": "perhaps"},
        refused=(
            NO_NODE,
            Refused("no mode", 400, "acl, chap", body={"access": "everybody"}),
            Refused("it is gone", 503, "unreachable", given=(NODE, DIES)),
        ),
    ),
    Row(
        "DELETE",
        "/agents/{n}",
        {"deleted": "{n}"},
        given=(NODE,),
        refused=(
            NO_NODE,
            Refused("in use", 409, "{pc}", given=(NODE, WORKER, MAKE)),
        ),
    ),
    Row(
        "GET",
        "/agents/{n}",
        {**AGENT, "health": "ok", "capabilities": CAPABILITIES},
        query="live=true",
        given=(NODE,),
        flags=("live",),
        refused=(NO_NODE,),
    ),
    Row(
        "GET",
        "/agents/{n}/health",
        {"agent": "{n}", "reachable": True, "seconds": float, "health": HEALTH},
        given=(NODE,),
        refused=(NO_NODE,),
    ),
    Row(
        "GET",
        "/agents/{n}/logs",
        {"next_cursor": int, "entries": [Mapping]},
        query="before=0&limit=10",
        given=(NODE, LUN),
        refused=(
            NO_NODE,
            UNREACHABLE,
            NOT_OUR_TOKEN,
            Refused("no number", 400, "before", query="before=x"),
            Refused("too many", 400, "limit", query="limit=1001"),
            Refused("two ends", 400, "either", query="since=1&before=2"),
        ),
    ),
    Row(
        "POST",
        "/agents/{n}/luns/access",
        TARGET,
        body={"iqn": "{base}:{pc}.debian", "access": "off", "force": False},
        given=(NODE, LUN),
        wrong={"iqn": 5, "access": 5, "force": "perhaps"},
        refused=(
            NO_NODE,
            UNREACHABLE,
            NOT_OUR_TOKEN,
            Refused("no mode", 400, "acl, chap", body={"access": "everybody"}),
            Refused("no secret", 400, "secret", body={"access": "chap"}),
            Refused("a worker's", 409, "{pc}", given=(NODE, WORKER, MAKE)),
            Refused("no such target", 404, "", given=(NODE,), from_node=True),
        ),
    ),
    Row(
        "GET",
        "/agents/{n}/luns",
        [TARGET],
        given=(NODE, LUN),
        refused=(NO_NODE, UNREACHABLE, NOT_OUR_TOKEN),
    ),
    Row(
        "POST",
        "/agents/{n}/luns/disk",
        MADE,
        status=201,
        body={
            "iqn": "{base}:{pc}.debian",
            "filename": "{pc}.debian.img",
            "size": "1M",
        },
        given=(NODE,),
        wrong={"size": True},
        refused=(
            NO_NODE,
            UNREACHABLE,
            NOT_OUR_TOKEN,
            Refused("no disks there", 400, "role.disk", given=(NODE, NO_ROLE)),
            Refused("it exists", 409, "exists", given=(NODE, LUN), from_node=True),
            Refused("outside", 400, "", body={"iqn": STRANGE, "filename": None}),
            Refused("no IQN", 400, "iqn", body={"iqn": "pc1"}),
            Refused("two sources", 400, "master", body={"master": "{tpl}"}),
            Refused("no source", 400, "size", body={"size": None}),
            Refused(
                "no such master",
                404,
                "",
                body={"size": None, "master": "no_tpl_x.img"},
                from_node=True,
            ),
            Refused(
                "another name",
                400,
                "filename",
                body={"filename": "other.debian.img"},
                from_node=True,
            ),
        ),
    ),
    Row(
        "POST",
        "/agents/{n}/luns/cd",
        {"iqn": "{base}:{pc}.windows.iso", "backing": "{folder}/{iso}"},
        status=201,
        body={"iso": "{iso}", "iqn": "{base}:{pc}.windows.iso"},
        given=(NODE,),
        cds=True,
        refused=(
            NO_NODE,
            UNREACHABLE,
            Refused("no CDs there", 400, "role.cd", given=(NODE, NO_ROLE)),
            Refused(
                "no such ISO", 404, "none.iso", body={"iso": "none.iso"}, from_node=True
            ),
            Refused("a path", 400, "iso", body={"iso": "/etc/passwd"}),
            Refused("no IQN", 400, "iqn", body={"iqn": "pc1"}),
        ),
    ),
    Row(
        "DELETE",
        "/agents/{n}/luns",
        {"deleted": "{base}:{pc}.debian", "delete_file": True},
        query="iqn={base}:{pc}.debian&delete_file=true",
        given=(NODE, LUN),
        flags=("delete_file", "ignore_missing", "force"),
        refused=(
            NO_NODE,
            UNREACHABLE,
            Refused("no such target", 404, "", given=(NODE,), from_node=True),
            Refused("which?", 400, "iqn", query="delete_file=true"),
            Refused("no IQN", 400, "iqn", query="iqn=pc1"),
            Refused("outside", 400, "", query=f"iqn={STRANGE}"),
        ),
    ),
    Row(
        "POST",
        "/agents/{n}/luns/scan",
        SCANNED,
        body={},
        given=(NODE,),
        refused=(NO_NODE, UNREACHABLE, NOT_OUR_TOKEN),
    ),
    Row(
        "GET",
        "/agents/{n}/jobs",
        [],
        query="state=running&limit=10",
        given=(NODE,),
        refused=(
            NO_NODE,
            UNREACHABLE,
            NOT_OUR_TOKEN,
            Refused("no such state", 400, "state", query="state=ended"),
            Refused("no number", 400, "limit", query="limit=0"),
            Refused("a typo", 400, "stat", query="stat=done"),
        ),
    ),
    Row(
        "GET",
        "/agents/{n}/images",
        IMAGES,
        given=(NODE,),
        refused=(NO_NODE, UNREACHABLE, NOT_OUR_TOKEN),
    ),
    Row(
        "DELETE",
        "/agents/{n}/images",
        {"deleted": "{pc}.debian.img", "freed": int},
        query="name={pc}.debian.img",
        given=(NODE, LUN, ("DELETE", "/agents/{n}/luns?iqn={base}:{pc}.debian", None)),
        flags=("master",),
        refused=(
            NO_NODE,
            UNREACHABLE,
            Refused("no such file", 404, "", given=(NODE,), from_node=True),
            Refused("which?", 400, "name", query="master=false"),
            Refused("a path", 400, "name", query="name=../x.img"),
            Refused("a target's", 409, "", given=(NODE, LUN), from_node=True),
        ),
    ),
    Row(
        "POST",
        "/agents/{n}/images/convert",
        {
            "name": "{pc}.debian.img",
            "size": int,
            "format": "raw",
            "seconds": float,
            "bytes": int,
        },
        status=201,
        body={"source": "{tpl}", "name": "{pc}.debian.img", "format": "raw"},
        given=(NODE,),
        refused=(
            NO_NODE,
            UNREACHABLE,
            Refused("a path", 400, "source", body={"source": "../x.raw"}),
            Refused("no image", 400, "name", body={"name": "x.iso"}),
            Refused("no format", 400, "format", body={"format": "nbd"}),
            Refused("not there", 404, "", body={"source": "no.raw"}, from_node=True),
        ),
    ),
    Row("GET", "/agents/{n}/uploads", {"uploads": list}, given=(NODE,)),
    Row(
        "POST",
        "/agents/{n}/uploads",
        UPLOAD,
        status=201,
        body={"name": "{pc}.iso", "size": 10, "sha256": "0" * 64},
        given=(NODE,),
        refused=(
            NO_NODE,
            UNREACHABLE,
            Refused("a path", 400, "name", body={"name": "../x.iso"}),
            Refused("no image", 400, "name", body={"name": "x.exe"}),
            Refused("no checksum", 400, "sha256", body={"sha256": "x"}),
            Refused("no size", 400, "size", body={"size": -1}, from_node=True),
        ),
    ),
    Row(
        "GET",
        "/masters",
        {
            "agents": [
                {
                    "agent": str,
                    "iscsi_server": "127.0.0.1",
                    "masters": Or([], [MASTER]),
                    "error?": str,
                }
            ]
        },
        given=(NODE, DEAD),
        refused=(Refused("all dead", 502, "no node answered", given=(DEAD,)),),
    ),
    Row(
        "GET",
        "/jobs",
        [],
        query="state=running&kind=worker.disk.create",
        refused=(
            Refused("no such state", 400, "state", query="state=ended"),
            Refused("a typo", 400, "stat", query="stat=done"),
        ),
    ),
    Row(
        "GET",
        "/operations",
        {"next_cursor": int, "entries": [Mapping]},
        query="since=0&limit=1000&worker_id={pc}&op=create_worker&status=ok",
        given=(WORKER,),
        refused=(
            Refused("no number", 400, "since", query="since=x"),
            Refused("no number", 400, "limit", query="limit=0"),
            Refused("no number", 400, "before", query="before=-1"),
            Refused("unknown filter", 400, "worker", query="worker={pc}"),
        ),
    ),
    Row(
        "GET",
        "/files",
        {
            "path": "/",
            "entries": [
                {
                    "name": "boot",
                    "type": Or("file", "directory"),
                    "size": int,
                    "mtime": time,
                }
            ],
        },
    ),
    Row(
        "GET",
        "/files/boot",
        {
            "path": "/boot",
            "entries": [{"name": "vmlinuz", "type": "file", "size": 6, "mtime": time}],
        },
        refused=(
            Refused("no such folder", 404, "", path="/files/none"),
            Refused("a way out", 404, "", path="/files/../state"),
        ),
    ),
    Row("GET", "/file/boot/vmlinuz", "kernel", open=True, page=False),
)

#: Beside the tables: OpenAPI, made from the code.
BESIDE = {("GET", "/schema"), ("GET", "/jobs/*"), ("DELETE", "/jobs/*")}
BESIDE |= {(method, f"/agents/*{path}") for method, path in BESIDE if "jobs" in path}
#: The same of the agent: a job comes and goes.
AGENT_BESIDE = {"/jobs/*", "/uploads/*", "/uploads/*/finish"}
#: People come from commands and pages: tests/ipxeready/users/test_tokens.py.
BESIDE |= {("GET", "/tokens"), ("POST", "/tokens"), ("DELETE", "/tokens/*")}
#: An upload comes and goes too: tests/agents/test_images.py.
BESIDE |= {
    ("GET", "/agents/*/uploads/*"),
    ("PATCH", "/agents/*/uploads/*"),
    ("DELETE", "/agents/*/uploads/*"),
    ("POST", "/agents/*/uploads/*/finish"),
}

AGENT_ROWS = (
    Row("GET", "/healthz", {"status": "ok"}, open=True),
    Row("GET", "/capabilities", CAPABILITIES),
    Row("GET", "/masters", {"masters": [MASTER]}),
    Row(
        "GET",
        "/lun",
        [TARGET],
        given=(("POST", "/lun/disk", {"iqn": "{base}:{pc}.debian", "size": "1M"}),),
    ),
    Row(
        "POST",
        "/lun/disk",
        MADE,
        status=201,
        body={
            "iqn": "{base}:{pc}.debian",
            "size": "1M",
            "filename": "{pc}.debian.img",
        },
        wrong={"iqn": 5, "size": True, "filename": 5, "master": 5, "existing": 5},
        refused=(
            Refused("outside", 400, "iqn", body={"iqn": STRANGE, "filename": None}),
            Refused("no IQN", 400, "iqn", body={"iqn": "pc1"}),
            Refused("another name", 400, "filename", body={"filename": "x.debian.img"}),
            Refused("a path", 400, "filename", body={"filename": "../x.img"}),
            Refused("no source", 400, "size", body={"size": None}),
            Refused("two sources", 400, "master", body={"master": "{tpl}"}),
            Refused("no whole sectors", 400, "size", body={"size": 1000}),
            Refused(
                "it exists",
                409,
                "exists",
                given=(
                    ("POST", "/lun/disk", {"iqn": "{base}:{pc}.debian", "size": "1M"}),
                ),
            ),
            Refused(
                "no such master", 404, "", body={"size": None, "master": "no_tpl_.img"}
            ),
            Refused("no master", 400, "master", body={"size": None, "master": "a.img"}),
            Refused("nothing there", 404, "", body={"size": None, "existing": True}),
        ),
    ),
    Row(
        "POST",
        "/lun/cd",
        {"iqn": "{base}:{pc}.windows.iso", "backing": "{folder}/{iso}"},
        status=201,
        body={"iso": "{iso}", "iqn": "{base}:{pc}.windows.iso"},
        cds=True,
        wrong={"iso": 5, "iqn": 5},
        refused=(
            Refused("no such ISO", 404, "", body={"iso": "none.iso"}),
            Refused("a path", 400, "iso", body={"iso": "../x.iso"}),
            Refused("outside", 400, "iqn", body={"iqn": STRANGE}),
        ),
    ),
    Row("POST", "/lun/scan", SCANNED, body={}),
    Row(
        "GET",
        "/jobs",
        {"jobs": []},
        query="state=running&limit=10",
        refused=(
            Refused("no such state", 400, "state", query="state=ended"),
            Refused("no number", 400, "limit", query="limit=0"),
        ),
    ),
    Row(
        "DELETE",
        "/lun",
        {"deleted": "{base}:{pc}.debian", "delete_file": True},
        query="iqn={base}:{pc}.debian&delete_file=true",
        given=(("POST", "/lun/disk", {"iqn": "{base}:{pc}.debian", "size": "1M"}),),
        flags=("delete_file", "force"),
        refused=(
            Refused("no such IQN", 404, "", given=()),
            Refused("which?", 400, "iqn", query="delete_file=true"),
            Refused("outside", 400, "iqn", query=f"iqn={STRANGE}"),
        ),
    ),
    Row("GET", "/health", HEALTH),
    Row(
        "POST",
        "/lun/access",
        TARGET,
        body={"iqn": "{base}:{pc}.debian", "access": "acl"},
        given=(("POST", "/lun/disk", {"iqn": "{base}:{pc}.debian", "size": "1M"}),),
        wrong={"iqn": 5, "access": 5},
        refused=(
            Refused("no such target", 404, "", given=()),
            Refused("no such mode", 400, "access", body={"access": "open"}),
            Refused("no secret", 400, "chap", body={"access": "chap"}),
            Refused("outside", 400, "iqn", body={"iqn": STRANGE}),
        ),
    ),
    Row(
        "POST",
        "/lun/grow",
        {
            "iqn": "{base}:{pc}.debian",
            "backing": "{folder}/{pc}.debian.img",
            "size": 3 << 20,
            "was": 1 << 20,
        },
        body={"iqn": "{base}:{pc}.debian", "size": "3M"},
        given=(("POST", "/lun/disk", {"iqn": "{base}:{pc}.debian", "size": "1M"}),),
        wrong={"iqn": 5, "size": True},
        refused=(
            Refused("no such target", 404, "", given=()),
            Refused("as it is", 409, "only made larger", body={"size": "1M"}),
            Refused("outside", 400, "iqn", body={"iqn": STRANGE}),
        ),
    ),
    Row(
        "POST",
        "/lun/reset",
        {**MADE, "how": str, "bytes": int},
        body={"iqn": "{base}:{pc}.debian", "master": "{tpl}"},
        given=(("POST", "/lun/disk", {"iqn": "{base}:{pc}.debian", "size": "1M"}),),
        wrong={"iqn": 5, "master": 5},
        refused=(
            Refused("no such target", 404, "", given=()),
            Refused("no such master", 404, "", body={"master": "no_tpl_.img"}),
            Refused("no master", 400, "master", body={"master": "a.img"}),
            Refused("outside", 400, "iqn", body={"iqn": STRANGE}),
        ),
    ),
    Row("GET", "/images", IMAGES),
    Row(
        "DELETE",
        "/images",
        {"deleted": "{pc}.debian.img", "freed": int},
        query="name={pc}.debian.img",
        given=(
            ("POST", "/lun/disk", {"iqn": "{base}:{pc}.debian", "size": "1M"}),
            ("DELETE", "/lun?iqn={base}:{pc}.debian", None),
        ),
        flags=("master",),
        refused=(
            Refused("no such file", 404, "", given=()),
            Refused("hidden", 400, "name", query="name=.targets.json"),
        ),
    ),
    Row(
        "POST",
        "/images/convert",
        {
            "name": "{pc}.debian.img",
            "size": int,
            "format": "raw",
            "seconds": float,
            "bytes": int,
        },
        status=201,
        body={"source": "{tpl}", "name": "{pc}.debian.img", "format": "raw"},
        wrong={"source": 5, "name": 5, "format": 5},
        refused=(
            Refused("not there", 404, "", body={"source": "no.raw"}),
            Refused("a path", 400, "source", body={"source": "../x.raw"}),
        ),
    ),
    Row("GET", "/uploads", {"uploads": list}),
    Row(
        "POST",
        "/uploads",
        UPLOAD,
        status=201,
        body={"name": "{pc}.iso", "size": 10, "sha256": "0" * 64},
        wrong={"name": 5, "size": "x", "sha256": 5},
        refused=(Refused("a path", 400, "name", body={"name": "../x.iso"}),),
    ),
    Row(
        "GET",
        "/logs",
        Mapping,
        query="since=0&limit=10",
        refused=(
            Refused("no number", 400, "since", query="since=x"),
            Refused("no number", 400, "limit", query="limit=0"),
            Refused("no number", 400, "before", query="before=-1"),
            Refused("two ends", 400, "before", query="since=1&before=2"),
        ),
    ),
)
