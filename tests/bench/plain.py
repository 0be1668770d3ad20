"""What /boot-vars is compared with, on the product's own server: an empty view, and the way without an index.

Run as `python -m tests.bench.plain`; the environment is that of `manage.py serve`.
"""

from __future__ import annotations

import os
import sys

import yaml
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path

from ipxeready import conf
from ipxeready.server import Server, listen, reserve
from ipxeready.storage.paths import Layout

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def empty(request: HttpRequest) -> HttpResponse:
    """Nothing but Django."""
    return HttpResponse(b"", content_type="text/plain", headers={"Content-Length": "0"})


def naive(request: HttpRequest) -> HttpResponse:
    """Read both files, find the machine, answer."""
    layout = Layout(conf.load(os.environ).root)
    mac = request.GET.get("mac", "")
    lines = layout.dhcp_hosts.read_text().splitlines()
    bound = dict(line.split(",")[:2] for line in lines if "," in line)
    with layout.workers_yml.open() as stream:
        workers = yaml.load(stream, Loader=_LOADER)["workers"]  # noqa: S506 - the C form of safe_load
    with layout.agents_yml.open() as stream:
        agents = yaml.load(stream, Loader=_LOADER)["agents"]  # noqa: S506
    worker = workers[bound[mac]]
    disk = next(d for d in worker["disks"] if d["os"] == worker["default_os"])
    body = (
        f"#!ipxe\n# boot vars for {worker['hostname']}\n"
        f"set base-iqn {disk['iqn'].rpartition(':')[0]}\n"
        f"set iscsi-server {agents[disk['agent']]['iscsi_server']}\n"
        f"set iscsi-sep :::1:\nset hostname {worker['hostname']}\n"
        f"set menu-default {worker['default_os']}\nset menu-timeout 5000\n"
    ).encode()
    return HttpResponse(
        body,
        content_type="text/plain",
        headers={"Content-Length": str(len(body)), "Cache-Control": "no-store"},
    )


urlpatterns = [path("empty", empty), path("boot-vars", naive)]


def _application() -> object:
    import django
    from django.core.handlers.wsgi import WSGIHandler

    settings.configure(
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        MIDDLEWARE=[],
        SECRET_KEY="only-for-the-bench",
    )
    django.setup()
    return WSGIHandler()


def main() -> None:
    """Serve until SIGTERM."""
    config = conf.load(os.environ)
    sock = reserve(config.bind)
    listen(sock, config.bind)
    sys.modules["tests.bench.plain"] = sys.modules[__name__]
    Server(config, sock, _application).run()


if __name__ == "__main__":
    main()
