"""tgtd's listing of its targets, read target by target as they are asked for: it has a thousand characters for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agents.node.backends.base import AccessShown
from agents.node.backends.sizes import size_of
from agents.protocol.access import ACL, CHAP, OFF
from agents.protocol.answers import Lun, Session, Target
from agents.protocol.systems import CD, DISK
from ipxeready.storage import iqn as iqns

_HEAD = "Target "


class Shown:
    """One target of tgtd's listing, with what only the backend looks at."""

    def __init__(self, tid: int, iqn: str) -> None:
        self.tid = tid
        self.iqn = iqn
        self.luns: list[Lun] = []
        self.readonly: dict[int, bool] = {}
        self.online: dict[int, bool] = {}
        self.sessions: list[Session] = []
        self.acl: list[str] = []
        self.accounts: list[str] = []
        self.outgoing: list[str] = []

    def access(self) -> AccessShown:
        """Who may log in, from the rules and accounts; `other` for what is not one of our modes."""
        rules, own = set(self.acl), iqns.initiator_of(self.iqn)
        mode = "other"
        if not self.outgoing:
            if rules == {"ALL"} and not self.accounts:
                mode = OFF
            elif rules == {own} and len(self.accounts) < 2:
                mode = CHAP if self.accounts else ACL
        return {
            "access": mode,
            "initiators": [] if mode == OFF else sorted(rules),
        }

    def public(self) -> Target:
        """The target as the API lists it."""
        return {
            "iqn": self.iqn,
            "tid": self.tid,
            "luns": self.luns,
            "sessions": self.sessions,
            **self.access(),
        }


class Listing(Mapping[str, Shown]):
    """The output of `tgtadm --op show --mode target`: by IQN, everybody's targets."""

    def __init__(self, text: str) -> None:
        self._texts: dict[str, str] = {}
        self._known: dict[str, Shown] = {}
        self.tids: set[int] = set()
        """The numbers that are taken."""
        for part in f"\n{text}".split(f"\n{_HEAD}")[1:]:
            number, _, iqn = part.partition("\n")[0].partition(": ")
            self.tids.add(int(number))
            self._texts[iqn] = f"{_HEAD}{part}"

    def __getitem__(self, iqn: str) -> Shown:
        if iqn not in self._known:
            (self._known[iqn],) = parse(self._texts[iqn])
        return self._known[iqn]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def forget(self, iqn: str) -> None:
        """Drop a target that was deleted meanwhile."""
        self._known.pop(iqn, None)
        del self._texts[iqn]

    def serves(self, iqn: str, path: str) -> bool:
        """Whether a target has that file behind it; told from its text."""
        return f"Backing store path: {path}\n" in f"{self._texts[iqn]}\n"


_KINDS = {"disk": DISK, "cd/dvd": CD}


def parse(text: str) -> list[Shown]:
    """Every target of `tgtadm --op show --mode target`; LUN 0, tgt's own controller, is left out."""
    found: list[Shown] = []
    section = ""
    lun: Lun | None = None
    for line in text.split("\n"):
        words = line.strip()
        if line.startswith(_HEAD):
            number, _, iqn = line.removeprefix(_HEAD).partition(": ")
            found.append(Shown(int(number), iqn))
            section, lun = "", None
        elif not found or not words:
            continue
        elif line.startswith("    ") and not line.startswith("     "):
            section = words
        elif section == "I_T nexus information:":
            _nexus(found[-1], words)
        elif section == "LUN information:":
            lun = _lun(found[-1], lun, words)
        elif section == "Account information:":
            name, outgoing, _ = words.partition(" (outgoing)")
            (found[-1].outgoing if outgoing else found[-1].accounts).append(name)
        elif section == "ACL information:":
            found[-1].acl.append(words)
    for target in found:
        target.luns = [unit for unit in target.luns if unit["type"] != "controller"]
        for unit in target.luns:
            unit["size"] = size_of(unit["backing"], unit["size"])
    return found


def _nexus(target: Shown, words: str) -> None:
    key, _, value = words.partition(": ")
    if key == "I_T nexus":
        target.sessions.append({"initiator": "", "address": "", "id": value})
    elif key == "Initiator" and target.sessions:
        target.sessions[-1]["initiator"] = value.partition(" alias:")[0]
    elif key == "IP Address" and target.sessions:
        target.sessions[-1]["address"] = value


def _lun(target: Shown, lun: Lun | None, words: str) -> Lun | None:
    key, _, value = words.partition(": ")
    if key == "LUN":
        new: Lun = {"lun": int(value), "backing": "", "size": 0, "type": ""}
        target.luns.append(new)
        return new
    if lun is None:
        return None
    match key:
        case "Type":
            lun["type"] = _KINDS.get(value, value)
        case "Size":
            megabytes = value.partition(" ")[0]
            lun["size"] = int(megabytes) << 20 if megabytes.isdigit() else 0
        case "Backing store path":
            lun["backing"] = value
        case "Readonly":
            target.readonly[lun["lun"]] = value == "Yes"
        case "Online":
            target.online[lun["lun"]] = value == "Yes"
    return lun
