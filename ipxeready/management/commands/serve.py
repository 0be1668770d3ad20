"""`manage.py serve`: the control plane or the agent, as IPXE_MODE says."""

from __future__ import annotations

import importlib
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ipxeready import startup
from ipxeready.conf import AGENT, Config
from ipxeready.errors import ApplicationError
from ipxeready.server import Server, listen, reserve
from ipxeready.storage.paths import Layout


class Command(BaseCommand):
    """Serve until SIGTERM; everything is told by the environment (see docs/contract.md)."""

    help = "Serve the control plane, or with IPXE_MODE=agent a storage node."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Prepare, then listen, then serve; what is wrong is said in one line."""
        config: Config = settings.IPXE
        layout: Layout = settings.IPXE_LAYOUT
        try:
            sock = reserve(config.bind)
            startup.prepare(config, layout)
            if config.mode == AGENT:
                _agent_startup().check(config)
                _agent_startup().claim(config)
            else:
                self._build(layout)
            for line in startup.notes(config, layout):
                self.stdout.write(line)
            self.stdout.flush()
            listen(sock, config.bind)
        except (startup.StartError, ApplicationError) as error:
            raise CommandError(" ".join(str(error).split())) from error
        in_worker = _start_agent if config.mode == AGENT else _start_control
        Server(config, sock, _application, in_worker).run()

    @staticmethod
    def _build(layout: Layout) -> None:
        """Build the index and settle what a crash left, before anybody is let in."""
        from django.db import connections

        from ipxeready import index

        settings.SECRET_KEY = layout.secret_key.read_text(encoding="ascii").strip()
        index.ensure_fresh(wait=True)
        for step in startup.AT_START:
            step()
        connections.close_all()


def _application() -> Any:
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()


def _agent_startup() -> Any:
    # By name, as nothing but the composition knows the agent.
    return importlib.import_module("agents.node.startup")


def _start_control() -> None:
    for step in startup.IN_EACH_PROCESS:
        step()


def _start_agent() -> None:
    _agent_startup().start(settings.IPXE)
