"""The script is safe whatever the files say: whitelists, not quoting."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bootvars import notes
from bootvars.render import as_json, message, script
from bootvars.services import Answer
from ipxeready.index import freshness
from ipxeready.storage.paths import Layout
from tests.bootvars.conftest import well_formed
from tests.bootvars.test_who_is_asking import AGENTS, IQN
from tests.workers.helpers import M1

EVIL = [
    "a\nsanboot iscsi:x",
    "a || shell",
    "${password}",
    "text\\",
    ";shell",
    ":label",
    "a\rb",
    "a\x00b",
    "机房",
    "#!ipxe",
    "-n",
    "--",
    "a&b",
    "'",
    '"',
    " ",
    "",
    "\u2028",
    "\x1b[2J",
]
text = st.one_of(st.sampled_from(EVIL), st.text(max_size=40))


@given(text)
def test_a_message_is_one_line_of_harmless_words(words: str) -> None:
    body = script(Answer(refused=words)).splitlines()
    assert len(body) == 4
    assert body[1].startswith("echo ")
    assert not set(body[1]) & set("${};&|`\\\"'<>*?~#!")
    assert body[1].isascii() and body[1].isprintable()
    assert len(message(words)) <= 300


@given(st.dictionaries(st.sampled_from(["base-iqn", "iscsi-server"]), text))
def test_a_value_outside_the_whitelist_never_reaches_the_script(
    values: dict[str, str],
) -> None:
    body = script(Answer(worker="pc1", values=dict(values)))
    for line in body.splitlines()[1:]:
        first, _, rest = line.partition(" ")
        assert first in ("#", "set", "echo")
        assert not set(rest) & set("${};&|`\\\"'<>*?~")
    json.dumps(as_json(Answer(worker="pc1", values=dict(values))))


@pytest.mark.parametrize("value", [text for text in EVIL if text != ":label"])
def test_a_rejected_value_becomes_a_message(value: str) -> None:
    body = script(Answer(worker="pc1", values={"iscsi-server": value}))
    assert body.splitlines()[1] == (
        "echo the value of iscsi-server has characters that iPXE would act on"
    )


records = st.fixed_dictionaries(
    {"hostname": st.one_of(st.just("pc1"), text)},
    optional={
        "arch": text,
        "state": text,
        "note": text,
        "label": text,
        "default_os": st.one_of(st.sampled_from(["ubuntu", "windows"]), text),
        "boot": st.one_of(
            text,
            st.fixed_dictionaries(
                {},
                optional={
                    "menu_default": st.one_of(st.just("shell"), text),
                    "menu_timeout": st.one_of(st.integers(), text),
                },
            ),
        ),
        "disks": st.one_of(
            text,
            st.lists(
                st.fixed_dictionaries(
                    {
                        "agent": st.one_of(st.sampled_from(["node-1", "gone"]), text),
                        "os": st.one_of(st.sampled_from(["ubuntu", "windows"]), text),
                        "iqn": st.one_of(
                            st.sampled_from(
                                [f"{IQN}:pc1.ubuntu", f"{IQN}:pc1.windows"]
                            ),
                            text,
                        ),
                    },
                    optional={"status": text, "backing": text, "filename": text},
                ),
                max_size=3,
            ),
        ),
        "cd": st.one_of(
            text,
            st.fixed_dictionaries(
                {"agent": text, "iqn": st.one_of(text, st.just(f"{IQN}:pc1.iso"))}
            ),
        ),
    },
)


@pytest.mark.case(39)
@pytest.mark.case(42)
@given(record=records, server=text, host=text)
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_file_can_make_the_script_do_anything_else(
    layout: Layout, record: dict[str, Any], server: str, host: str
) -> None:
    notes.forget()
    agents = yaml.safe_load(AGENTS)
    agents["agents"]["node-1"]["iscsi_server"] = server
    layout.agents_yml.write_text(yaml.safe_dump(agents))
    layout.workers_yml.write_text(yaml.safe_dump({"workers": {"pc1": record}}))
    layout.dhcp_hosts.write_bytes(f"{M1},pc1\n{host}\n".encode("utf-8", "replace"))
    freshness.forget()
    for query in (f"mac={M1}", "hostname=pc1"):
        well_formed(Client().get(f"/boot-vars?{query}"))
        answer = Client().get(f"/boot-vars?{query}&format=json")
        assert answer.status_code == 200
        answer.json()


@pytest.mark.case(43)
@pytest.mark.parametrize(
    "broken",
    [b"workers:\n  a: [", b"\xff\xfe", b"other: {}\n", b"- x\n", b"a: 1\n---\nb: 2\n"],
)
def test_a_ledger_that_breaks_leaves_boots_as_they_were(
    layout: Layout, boot: Callable[[str], str], broken: bytes
) -> None:
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: pc1}\n")
    layout.dhcp_hosts.write_text(f"{M1},pc1\n")
    good = boot(f"mac={M1}")
    assert "set hostname pc1" in good
    layout.workers_yml.write_bytes(broken)
    mtime = layout.workers_yml.stat().st_mtime_ns
    assert boot(f"mac={M1}") == good
    # A new machine cannot be registered: it is told why, and nothing is written.
    script = boot("mac=52:54:00:00:00:99")
    assert script.splitlines()[1].startswith("echo ")
    assert "workers.yml" in script
    assert script.splitlines()[2:] == [
        "set menu-default reboot",
        "set menu-timeout 5000",
    ]
    assert layout.workers_yml.read_bytes() == broken
    assert layout.workers_yml.stat().st_mtime_ns == mtime
    assert layout.dhcp_hosts.read_text() == f"{M1},pc1\n"


@pytest.mark.case(43)
def test_a_bug_becomes_a_script(
    layout: Layout, boot: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bootvars import views

    def bug(**_: object) -> Answer:
        raise RuntimeError("secret words")

    monkeypatch.setattr(views, "boot_vars", bug)
    script = boot(f"mac={M1}")
    assert "internal error" in script
    assert "secret" not in script
    answer = Client().get(f"/boot-vars?mac={M1}&format=json")
    assert answer.json() == {
        "refused": "internal error of the control plane: see its log"
    }
