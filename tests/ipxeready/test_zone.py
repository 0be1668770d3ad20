"""The time zone: TZ, else the system's, else UTC."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipxeready.conf import ConfigError
from ipxeready.zone import zone_name


def test_tz_wins() -> None:
    assert zone_name({"TZ": "Asia/Shanghai"}) == "Asia/Shanghai"
    assert zone_name({"TZ": ":Europe/Berlin"}) == "Europe/Berlin"
    assert zone_name({"TZ": "/usr/share/zoneinfo/Europe/Paris"}) == "Europe/Paris"


def test_without_tz_the_systems_zone_counts(tmp_path: Path) -> None:
    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert zone_name({}, tmp_path) == "Asia/Tokyo"


def test_a_copied_localtime_leaves_the_word_to_etc_timezone(tmp_path: Path) -> None:
    (tmp_path / "localtime").write_bytes(b"TZif")
    (tmp_path / "timezone").write_text("Asia/Shanghai\n")
    assert zone_name({}, tmp_path) == "Asia/Shanghai"


def test_a_system_without_a_zone_is_utc(tmp_path: Path) -> None:
    assert zone_name({"TZ": " "}, tmp_path) == "UTC"


def test_a_wrong_tz_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="TZ='Mars/Olympus'"):
        zone_name({"TZ": "Mars/Olympus"})
