"""Hostnames are DNS labels that neither dnsmasq nor iSCSI takes for something else."""

from __future__ import annotations

import pytest

from ipxeready.errors import Invalid
from ipxeready.storage.hostnames import check_hostname, warn_windows


@pytest.mark.parametrize(
    "text",
    ["worker-01", "a", "1a", "0x10", "pc101", "a--b", "5mm", "ignored", "x" * 63],
)
def test_good_names(text: str) -> None:
    assert check_hostname(text) == text


def test_names_come_out_in_lower_case() -> None:
    assert check_hostname("Worker-01") == "worker-01"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("101", "lease_time", marks=pytest.mark.case(2)),
        pytest.param("12h", "lease_time", marks=pytest.mark.case(2)),
        pytest.param("3d", "lease_time", marks=pytest.mark.case(2)),
        pytest.param("7W", "lease_time", marks=pytest.mark.case(2)),
        pytest.param("45s", "lease_time", marks=pytest.mark.case(2)),
        pytest.param("ignore", "keyword", marks=pytest.mark.case(4)),
        pytest.param("Infinite", "keyword", marks=pytest.mark.case(4)),
        pytest.param("worker_01", "underscore", marks=pytest.mark.case(49)),
        pytest.param("x" * 64, "long", marks=pytest.mark.case(53)),
        pytest.param("worker-01.lab.lan", "dot", marks=pytest.mark.case(55)),
        pytest.param("10.0.0.7", "dot", marks=pytest.mark.case(55)),
        pytest.param("worker-01.", "dot", marks=pytest.mark.case(55)),
        ("", "empty"),
        ("-worker", "hyphen"),
        ("worker-", "hyphen"),
        ("worker 01", "characters"),
        ("worker-01\n", "characters"),
        ("worker,01", "characters"),
        ("worker#1", "characters"),
        ("机房", "characters"),
        ("worker\u200b", "characters"),
        (5, "malformed"),
    ],
)
def test_bad_names_are_refused_each_with_its_rule(text: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_hostname(text)
    assert caught.value.code == f"hostname.{code}"
    assert caught.value.field == "hostname"
    assert caught.value.message.startswith("hostname: ")
    assert len(caught.value.message) < 250


@pytest.mark.case(54)
def test_a_name_too_long_for_windows_is_a_warning_only() -> None:
    assert check_hostname("classroom-2-seat-07") == "classroom-2-seat-07"
    assert "classroom-2-sea" in (warn_windows("classroom-2-seat-07") or "")
    assert warn_windows("classroom-2-007") is None
