"""`manage.py check --deploy` is clean, as shipped and with TLS; our own checks find what they look for."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from django.contrib import admin

from ipxeready.admin_checks import admin_writes_through_services
from ipxeready.checks import yaml_is_fast
from ipxeready.conf import REPOSITORY


@pytest.mark.parametrize("tls", ["0", "1"])
@pytest.mark.parametrize("mode", ["control", "agent"])
def test_the_deployment_checks_find_nothing(tls: str, mode: str) -> None:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("IPXE_")}
    environ |= {
        "DJANGO_SETTINGS_MODULE": "ipxeready.settings",
        "IPXE_TLS": tls,
        "IPXE_MODE": mode,
    }
    command = [sys.executable, "manage.py", "check", "--fail-level", "WARNING"]
    # An agent has no pages, cookies or redirects: those checks are the control plane's.
    deploy = ["--deploy"] if mode == "control" else []
    done = subprocess.run(
        [*command, *deploy],
        cwd=REPOSITORY,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_page_that_saves_past_the_services_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert admin_writes_through_services() == []
    page = SimpleNamespace(list_editable=("x",), inlines=[object])
    monkeypatch.setitem(admin.site._registry, SimpleNamespace, page)
    found = {message.id for message in admin_writes_through_services()}
    assert found == {"ipxeready.E002", "ipxeready.E003"}


def test_a_slow_yaml_is_found(monkeypatch: Any) -> None:
    assert yaml_is_fast() == []
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert [message.id for message in yaml_is_fast()] == ["ipxeready.E001"]
