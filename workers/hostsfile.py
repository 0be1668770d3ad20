"""dnsmasq/dhcp-hosts.conf in the index: each line with a MAC becomes its bindings; edits go through the draft."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipxeready.index.models import IndexedModel
from ipxeready.index.sources import Fault, Source
from ipxeready.index.writer import Draft
from ipxeready.said import said
from ipxeready.storage import hosts
from ipxeready.storage.hosts import HostsLine, HostsText
from ipxeready.storage.paths import Layout
from ipxeready.storage.yamlrecords import Entry
from workers.adapters import serial
from workers.models import Binding

#: With a digest and a count behind it, a key still fits the rows' `record`.
_LONGEST_KEY = 160


class HostsFile:
    """The hosts file as records: a line's own text is its key, what dnsmasq makes of it its digest."""

    def __init__(self, content: bytes) -> None:
        self.text = HostsText(content)
        self._read()

    def _read(self) -> None:
        lines = [
            line
            for line in self.text.lines
            if line.macs and line.kind in ("entry", "refused")
        ]
        last: dict[str, int] = {}
        holders: dict[str, HostsLine] = {}
        doubled: set[str] = set()
        for line in lines:
            for mac in line.macs:
                last[mac] = line.number
            if line.hostname and line.kind == "entry":
                first = holders.setdefault(line.hostname, line)
                if first is not line and set(first.macs) != set(line.macs):
                    doubled.add(line.hostname)
        self._entries: dict[str, Entry] = {}
        self._lines: dict[str, tuple[HostsLine, list[bool], bool]] = {}
        for line in lines:
            counts = [last[mac] == line.number for mac in line.macs]
            self._enter(line, counts, line.hostname in doubled)

    def _enter(self, line: HostsLine, counts: list[bool], conflict: bool) -> str:
        """Note one line as a record; returns its key."""
        text = _key_of(line.raw)
        key, again = text, 1
        while key in self._entries:
            again += 1
            key = f"{text} #{again}"
        flags = "".join(["1" if each else "0" for each in counts])
        digest = f"{line.kind[0]}{flags}{conflict:d}:{line.hostname}"
        self._entries[key] = Entry(key, line.number, digest)
        self._lines[key] = (line, counts, conflict)
        return key

    def clashes(self, lines: list[HostsLine]) -> bool:
        """Whether any MAC, name or address stands twice: to tell which takes longer."""
        mine = [line for line, _, _ in self._lines.values()]
        macs = [mac for line in mine for mac in line.macs]
        names = [line.hostname for line in mine if line.hostname]
        ips = [line.ip for line in lines if line.ip]
        return any(len(set(each)) < len(each) for each in (macs, names, ips))

    def entries(self) -> dict[str, Entry]:
        """Lines that bind or refuse a MAC."""
        return self._entries

    def entries_of(self, keys: list[str]) -> dict[str, Entry]:
        """The same for a few lines."""
        return {key: self._entries[key] for key in keys if key in self._entries}

    def check(self, keys: list[str]) -> bool:
        """Any bytes can be read."""
        return False

    def value(self, key: str) -> HostsLine | None:
        """The line, None when it is not there."""
        found = self._lines.get(key)
        return found[0] if found else None

    def bindings(self, key: str) -> list[Binding]:
        """The rows of one line."""
        line, counts, conflict = self._lines[key]
        hostname = line.hostname or ""
        if line.kind == "refused":
            hostname = ""
        return [
            Binding(
                record=key,
                mac=mac,
                hostname=hostname,
                ip=line.ip or "",
                tags=list(line.tags),
                effective=counts[at],
                conflict=conflict,
                serial=serial(hostname),
            )
            for at, mac in enumerate(line.macs)
        ]

    def edit(self, change: Callable[[HostsText], Any]) -> tuple[Any, list[str]]:
        """Make an edit; returns its result and the keys whose rows must be made anew."""
        before, content = self._entries, self.text.render()
        mark = self.text.mark()
        try:
            result = change(self.text)
        except Exception:
            if self.text.render() != content:
                # Half of several edits: none of them.
                self.restore(content)
            raise
        added = self.text.added_since(mark)
        if added is not None:
            # A new machine, the usual case: no look at the whole file.
            return result, [
                self._enter(line, [True] * len(line.macs), False) for line in added
            ]
        self._read()
        after = self._entries
        keys = [key for key in before if key not in after]
        for key, entry in after.items():
            old = before.get(key)
            if old is None or old.digest != entry.digest:
                keys.append(key)
        return result, keys

    def snapshot(self) -> bytes:
        """State to go back to."""
        return self.text.render()

    def restore(self, state: bytes) -> None:
        """Go back to a snapshot."""
        self.text = HostsText(state)
        self._read()

    def render(self) -> bytes:
        """The file's bytes."""
        return self.text.render()


def _key_of(raw: bytes) -> str:
    """The line's own text; a long line's key is cut and told from others by a digest."""
    text = raw.strip().decode("latin-1")
    if len(text) <= _LONGEST_KEY:
        return text
    return f"{text[:_LONGEST_KEY]}… {hashlib.blake2b(raw, digest_size=16).hexdigest()}"


class HostsEditor:
    """The verbs of `tx.hosts`; each one is in the index at once."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def _do(self, change: Callable[[HostsText], Any]) -> Any:
        result, keys = self._draft.text.edit(change)
        if keys:
            self._draft.sync(keys)
        return result

    @property
    def text(self) -> HostsText:
        """The file for questions."""
        return self._draft.text.text  # type: ignore[no-any-return]

    def bind(self, mac: str, hostname: str) -> list[HostsLine]:
        """See HostsText.bind."""
        return self._do(lambda text: text.bind(mac, hostname))  # type: ignore[no-any-return]

    def bind_many(self, pairs: list[tuple[str, str]]) -> dict[str, list[HostsLine]]:
        """Bind several MACs with one look at the whole file; the lines that went, by MAC."""

        def change(text: HostsText) -> dict[str, list[HostsLine]]:
            return {mac: text.bind(mac, hostname) for mac, hostname in pairs}

        return self._do(change)  # type: ignore[no-any-return]

    def unbind_hostname(self, hostname: str) -> list[HostsLine]:
        """See HostsText.unbind_hostname."""
        return self._do(lambda text: text.unbind_hostname(hostname))  # type: ignore[no-any-return]

    def unbind_many(self, hostnames: list[str]) -> dict[str, list[HostsLine]]:
        """Unbind several hostnames with one look at the whole file; the lines that went, by hostname."""

        def change(text: HostsText) -> dict[str, list[HostsLine]]:
            return {each: text.unbind_hostname(each) for each in hostnames}

        return self._do(change)  # type: ignore[no-any-return]

    def replace_mac(self, hostname: str, old: str, new: str) -> list[HostsLine]:
        """See HostsText.replace_mac."""
        return self._do(lambda text: text.replace_mac(hostname, old, new))  # type: ignore[no-any-return]


class HostsSource(Source):
    """The only truth of MAC -> hostname."""

    name = "hosts"
    models = (Binding,)
    mode = 0o644  # dnsmasq drops its privileges and must read it
    in_place = True

    def path(self, layout: Layout) -> Path:
        """dnsmasq/dhcp-hosts.conf."""
        return layout.dhcp_hosts

    def open(self, content: bytes) -> HostsFile:
        """Any bytes are a hosts file; what dnsmasq drops becomes a problem."""
        return HostsFile(content)

    def rows(self, text: HostsFile, key: str) -> list[IndexedModel]:
        """The bindings of one line."""
        return list(text.bindings(key))

    def cross_check(self, text: HostsFile) -> list[Fault]:
        """Lines that do not do what they look like, and lines that contradict each other."""
        lines = text.text.lines
        faults = [
            Fault(
                "hosts.line",
                said("line {line}: {problem}", line=line.number, problem=line.problem),
                line=line.number,
            )
            for line in lines
            if line.problem
        ]
        faults += [
            Fault(f"hosts.{each.kind}", each.message, line=each.lines[0])
            for each in (hosts.conflicts(lines) if text.clashes(lines) else ())
        ]
        return faults

    def editor(self, draft: Draft) -> HostsEditor:
        """The verbs for `tx.hosts`."""
        return HostsEditor(draft)
