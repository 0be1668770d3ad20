"""A binding that is added without a look at the whole file leaves what a look at the whole file would find."""

from __future__ import annotations

import random

import pytest

from ipxeready.errors import Conflict
from workers.hostsfile import HostsFile

_LINES = [
    "52:54:00:00:00:01,pc-1",
    "52:54:00:00:00:02,52:54:00:00:00:03,pc-2,192.0.2.7",
    "52:54:00:00:00:04,pc-1",
    "52:54:00:00:00:05,ignore",
    "# a comment",
    "",
    "id:somebody,pc-9",
    "52:54:00:00:00:06,set:room,pc-6,192.0.2.7",
    "52:54:00:00:00:01,pc-7",
    "not a line",
]


def _state(file: HostsFile) -> tuple[object, ...]:
    bindings = {
        key: [
            (row.mac, row.hostname, row.ip, row.effective, row.conflict)
            for row in file.bindings(key)
        ]
        for key in file.entries()
    }
    return file.render(), file.text.lines, file.entries(), bindings


@pytest.mark.parametrize("seed", range(60))
def test_edits_leave_what_a_new_look_finds(seed: int) -> None:
    chance = random.Random(seed)
    lines = chance.sample(_LINES, chance.randrange(len(_LINES)))
    end = chance.choice(["\n", "\r\n"])
    text = end.join(lines) + chance.choice([end, ""])
    file = HostsFile(text.encode())
    for _ in range(8):
        known = set(file.entries())
        before = dict(file.entries())
        pairs = [
            (
                f"52:54:00:00:00:{chance.randrange(1, 20):02x}",
                f"pc-{chance.randrange(20)}",
            )
            for _ in range(chance.choice([1, 1, 1, 3]))
        ]
        try:
            _, keys = file.edit(
                lambda hosts, pairs=pairs: [
                    hosts.bind(mac, name) for mac, name in pairs
                ]
            )
        except Conflict:
            keys = []
        assert _state(file) == _state(HostsFile(file.render()))
        after = file.entries()
        changed = {
            key
            for key in known | set(after)
            if key not in after
            or key not in before
            or before[key].digest != after[key].digest
        }
        assert changed <= set(keys)


def test_a_new_machine_is_no_look_at_the_whole_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = HostsFile(b"52:54:00:00:00:01,pc-1\n")
    monkeypatch.setattr(HostsFile, "_read", lambda self: pytest.fail("a whole look"))
    _, keys = file.edit(lambda hosts: hosts.bind("52:54:00:00:00:02", "pc-2"))
    assert keys == ["52:54:00:00:00:02,pc-2"]
    assert file.entries()[keys[0]].line == 2
