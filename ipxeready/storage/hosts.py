"""Edits of dhcp-hosts.conf that touch the fields they are about and leave all other bytes alone."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable

from ipxeready.errors import Conflict as ConflictError
from ipxeready.errors import NotFound
from ipxeready.said import said
from ipxeready.storage import hostsread, hoststokens
from ipxeready.storage.hostnames import check_hostname
from ipxeready.storage.hostsline import ParsedLine, parse_line
from ipxeready.storage.hostsread import Conflict, HostsLine, conflicts, parse
from ipxeready.storage.mac import normalize_mac

__all__ = ["Conflict", "HostsLine", "HostsText", "conflicts", "parse", "parse_line"]


class HostsText:
    """The file under edit.

    Lines are held by position; a removed line leaves a gap, so that positions stay. A line that dnsmasq
    drops for an address of an earlier line is "void": it binds nothing and holds no name.
    """

    def __init__(self, content: bytes) -> None:
        self._raws: list[bytes | None] = []
        self._by_mac: dict[str, list[int]] = {}
        self._by_name: dict[str, list[int]] = {}
        self._with_ip: dict[int, ParsedLine] = {}
        self._void: dict[int, tuple[str, int]] | None = None
        self._ends = {b"\n": 0, b"\r\n": 0}
        self._lines: list[HostsLine] | None = None
        self._rendered: bytes | None = None
        #: The lines as they were at `mark`.
        self._marked: list[HostsLine] | None = None
        #: The first position that was changed since `mark`, if any.
        self._first_changed: int | None = None
        for raw in hostsread.split(content):
            self._add(raw)

    @property
    def lines(self) -> list[HostsLine]:
        """All lines as dnsmasq reads them now."""
        if self._lines is None:
            self._lines = parse(self.render())
        return list(self._lines)

    def mark(self) -> int:
        """The present end, for `added_since`."""
        self._first_changed = None
        self._marked = self._lines
        return len(self._raws)

    def added_since(self, mark: int) -> list[HostsLine] | None:
        """The new lines at the end, where nothing else has changed since and no other line feels them; else None.

        Such a line binds machines and a name that stand nowhere else, and fixes no address.
        """
        if self._first_changed is not None and self._first_changed < mark:
            return None
        added: list[HostsLine] = []
        number = self._number(mark - 1) if mark else 0
        for at in range(mark, len(self._raws)):
            line = self._parsed(at)
            if line.kind != "entry" or not line.hostname or line.ips:
                return None
            found = [
                *(self._by_mac[mac] for mac in line.macs),
                self._by_name[line.hostname],
            ]
            if any(positions != [at] for positions in found):
                return None
            number += 1
            added.append(HostsLine(number, self._raw(at), *line[:6]))
        if self._marked is not None:
            self._lines = self._marked = [*self._marked, *added]
        return added

    def render(self) -> bytes:
        """The file's bytes."""
        if self._rendered is None:
            self._rendered = b"".join(raw for raw in self._raws if raw is not None)
        return self._rendered

    def line_of(self, mac: str) -> HostsLine | None:
        """The line that decides for `mac`: the last one that is not void."""
        alive = self._alive(self._by_mac.get(normalize_mac(mac), ()))
        return self._line(alive[-1]) if alive else None

    def lines_of(self, mac: str) -> list[HostsLine]:
        """Every line with `mac` on it, void ones too."""
        return [self._line(at) for at in self._by_mac.get(normalize_mac(mac), ())]

    def lines_named(self, hostname: str) -> list[HostsLine]:
        """The lines that give `hostname` to a machine."""
        return [self._line(at) for at in self._holders(hostname.lower())]

    def bind(self, mac: str, hostname: str, *, move: bool = False) -> list[HostsLine]:
        """Give `hostname` to `mac`; returns the lines that went or lost this MAC, as they were.

        1. A MAC alone on a line keeps that line: only the name changes. Otherwise a line is added.
        2. The MAC leaves all other lines, so that exactly one stays.
        3. A name that another machine holds is a conflict, unless `move` takes it away from there.
        """
        mac, hostname = normalize_mac(mac), check_hostname(hostname)
        others = [at for at in self._holders(hostname) if mac not in self._macs(at)]
        if not move:
            self._refuse_taken(hostname, others)
        mine = list(self._by_mac.get(mac, ()))
        alive = self._alive(mine)
        keep = alive[-1] if alive else None
        if keep is not None:
            line = self._parsed(keep)
            if line.kind == "refused":
                raise ConflictError(
                    f"mac: {mac} is refused DHCP by `ignore` on line {self._number(keep)} "
                    "of the hosts file. Remove that word there first.",
                    field="mac",
                )
            if line.hostname != hostname and hoststokens.has_others(
                self._raw(keep), mac
            ):
                keep = None
        edited = None if keep is None else self._renamed(keep, hostname)
        leave = [at for at in mine if at != keep]
        gone = [self._line(at) for at in sorted({*leave, *others})]
        for at in leave:
            self._set(at, hoststokens.without(self._raw(at), mac))
        for at in others:
            self._set(at, None)
        if keep is None:
            self._append(f"{mac},{hostname}".encode())
        elif edited != self._raw(keep):
            self._set(keep, edited)
        return gone

    def unbind(self, mac: str) -> list[HostsLine]:
        """Take `mac` off every line; a line without another machine goes. Returns them as they were."""
        mac = normalize_mac(mac)
        mine = [
            at for at in self._by_mac.get(mac, ()) if self._parsed(at).kind == "entry"
        ]
        gone = [self._line(at) for at in mine]
        for at in mine:
            self._set(at, hoststokens.without(self._raw(at), mac))
        return gone

    def unbind_hostname(self, hostname: str) -> list[HostsLine]:
        """Remove every line that gives `hostname` to a machine; returns them as they were."""
        mine = list(self._by_name.get(hostname.lower(), ()))
        gone = [self._line(at) for at in mine]
        for at in mine:
            self._set(at, None)
        return gone

    def replace_mac(
        self, hostname: str, old_mac: str, new_mac: str, *, move: bool = False
    ) -> list[HostsLine]:
        """Put `new_mac` where `old_mac` stands on the line of `hostname`; all other fields stay.

        Returns the other lines that went or lost `new_mac`. A MAC that has another name is a conflict,
        unless `move` is given.
        """
        hostname = hostname.lower()
        old_mac, new_mac = normalize_mac(old_mac), normalize_mac(new_mac)
        target = [at for at in self._holders(hostname) if old_mac in self._macs(at)]
        if not target:
            raise NotFound(
                said(
                    "no line binds {mac} to {hostname}.", mac=old_mac, hostname=hostname
                ),
                field="mac",
            )
        if old_mac == new_mac:
            return []
        others = [at for at in self._by_mac.get(new_mac, ()) if at != target[-1]]
        held = [
            line
            for line in map(self._line, others)
            if line.kind == "refused" or line.hostname not in (None, hostname)
        ]
        if held and not move:
            raise ConflictError(
                f"mac: {new_mac} belongs to {held[-1].hostname or 'a refused machine'} "
                f"(line {held[-1].number} of the hosts file). Take it away there first.",
                field="mac",
                extra={"hostname": held[-1].hostname, "line": held[-1].number},
            )
        gone = [self._line(at) for at in others]
        raw = hoststokens.with_mac(self._raw(target[-1]), old_mac, new_mac)
        for at in others:
            self._set(at, hoststokens.without(self._raw(at), new_mac))
        self._set(target[-1], raw)
        return gone

    def rename(self, old: str, new: str) -> list[HostsLine]:
        """Change the name on every line of `old`; returns these lines as they were."""
        new = check_hostname(new)
        mine = self._holders(old.lower())
        if not mine:
            raise NotFound(
                said("no line has the hostname {hostname}.", hostname=old),
                field="hostname",
            )
        self._refuse_taken(new, [at for at in self._holders(new) if at not in mine])
        before = [self._line(at) for at in mine]
        edited = [self._renamed(at, new) for at in mine]
        for at, raw in zip(mine, edited, strict=True):
            self._set(at, raw)
        return before

    # Lines by position

    def _raw(self, at: int) -> bytes:
        return self._raws[at] or b""

    def _parsed(self, at: int) -> ParsedLine:
        return parse_line(self._raw(at))

    def _macs(self, at: int) -> tuple[str, ...]:
        return self._parsed(at).macs

    def _number(self, at: int) -> int:
        return sum(raw is not None for raw in self._raws[: at + 1])

    def _line(self, at: int) -> HostsLine:
        line = HostsLine(self._number(at), self._raw(at), *self._parsed(at)[:6])
        if void := self._voids().get(at):
            return hostsread.dropped(line, void[0], self._number(void[1]))
        return line

    def _voids(self) -> dict[int, tuple[str, int]]:
        if self._void is None:
            self._void = hostsread.same_ip(sorted(self._with_ip.items()))
        return self._void

    def _alive(self, positions: Iterable[int]) -> list[int]:
        voids = self._voids()
        return [at for at in positions if at not in voids]

    def _holders(self, hostname: str) -> list[int]:
        return self._alive(self._by_name.get(hostname, ()))

    def _refuse_taken(self, hostname: str, holders: list[int]) -> None:
        if holders:
            line = self._line(holders[0])
            raise ConflictError(
                f"hostname: {hostname} is bound to {', '.join(line.macs)} (line "
                f"{line.number} of the hosts file). Choose another name or take that "
                "binding away first.",
                field="hostname",
                extra={"macs": list(line.macs), "line": line.number},
            )

    def _renamed(self, at: int, hostname: str) -> bytes:
        """The line at `at` with another name, checked to mean that to dnsmasq."""
        line = self._parsed(at)
        if line.hostname == hostname:
            return self._raw(at)
        new = hoststokens.with_name(self._raw(at), hostname)
        after = parse_line(new)
        if (after.kind, after.macs, after.hostname) != ("entry", line.macs, hostname):
            raise ConflictError(
                f"line {self._number(at)} of the hosts file has a shape that cannot be "
                "changed here. Change it with an editor."
            )
        return new

    # Changes

    def _add(self, raw: bytes) -> None:
        self._raws.append(None)
        self._set(len(self._raws) - 1, raw)

    def _set(self, at: int, raw: bytes | None) -> None:
        self._lines = self._rendered = None
        if self._first_changed is None or at < self._first_changed:
            self._first_changed = at
        if (old := self._raws[at]) is not None:
            self._count(old, -1)
            self._file(at, parse_line(old), remove=True)
        self._raws[at] = raw
        if raw is not None:
            self._count(raw, 1)
            self._file(at, parse_line(raw), remove=False)

    def _count(self, raw: bytes, by: int) -> None:
        if raw.endswith(b"\n"):
            self._ends[b"\r\n" if raw.endswith(b"\r\n") else b"\n"] += by

    def _file(self, at: int, line: ParsedLine, *, remove: bool) -> None:
        if line.ips:
            self._void = None
            if remove:
                del self._with_ip[at]
            else:
                self._with_ip[at] = line
        if line.kind not in ("entry", "refused"):
            return
        keys = [(self._by_mac, mac) for mac in line.macs]
        if line.hostname and line.kind == "entry":
            keys.append((self._by_name, line.hostname))
        for table, key in keys:
            positions = table.setdefault(key, [])
            if remove:
                positions.remove(at)
            else:
                insort(positions, at)

    def _append(self, entry: bytes) -> None:
        end = b"\r\n" if self._ends[b"\r\n"] > self._ends[b"\n"] else b"\n"
        for at in range(len(self._raws) - 1, -1, -1):
            last = self._raws[at]
            if last is None:
                continue
            if not last.endswith(b"\n"):
                self._set(at, last + (b"\n" if last.endswith(b"\r") else end))
            break
        self._add(entry + end)
