"""gunicorn with our settings: nothing of it is configured from outside."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable
from typing import Any, Final

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from ipxeready.conf import Config, Endpoint
from ipxeready.ending import told_by
from ipxeready.errors import ApplicationError
from ipxeready.pace import PacedWorker
from ipxeready.startup import StartError

#: Seconds that requests in flight have to end after SIGTERM: a full copy takes minutes.
GRACE: Final = 300


def reserve(bind: Endpoint) -> socket.socket:
    """Bind the address without listening yet: callers get "refused" until all is ready."""
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(bind)
    except OSError as error:
        sock.close()
        raise _taken(bind, error) from None
    return sock


def listen(sock: socket.socket, bind: Endpoint) -> None:
    """Start to listen; two that bound the same address find out here."""
    try:
        sock.listen(2048)
    except OSError as error:
        raise _taken(bind, error) from None


def _taken(bind: Endpoint, error: OSError) -> StartError:
    return StartError(
        f"cannot listen on {bind}: {(error.strerror or str(error)).lower()}; "
        "stop what is there, or choose another address with IPXE_CP_BIND or IPXE_AGENT_BIND"
    )


class Server(BaseApplication):
    """A gunicorn of the configuration's size over a socket that listens already."""

    def __init__(
        self,
        config: Config,
        sock: socket.socket,
        load: Callable[[], Any],
        in_worker: Callable[[], None] | None = None,
    ) -> None:
        self._config = config
        self._sock = sock
        self._load = load
        self._in_worker = in_worker
        super().__init__()

    def load_config(self) -> None:
        """Set what we mean; gunicorn's own files and variables are not read."""
        config = self._config
        options: dict[str, Any] = {
            # gunicorn takes the descriptor over.
            "bind": f"fd://{self._sock.detach()}",
            "worker_class": PacedWorker,
            "workers": config.serve_workers,
            "threads": config.serve_threads,
            # A connection of SQLite must not be carried across a fork.
            "preload_app": False,
            "graceful_timeout": GRACE,
            "timeout": 60,
            "keepalive": 15,
            "limit_request_line": 8190,
            "accesslog": None,
            "errorlog": "-",
            "loglevel": "info",
            "proc_name": f"ipxeready-{config.mode}",
            "control_socket_disable": True,
            "http_parser": "python",
            "post_worker_init": self._worker_started,
        }
        if os.access("/dev/shm", os.W_OK):  # noqa: S108  # the heartbeat must not wait for a disk
            options["worker_tmp_dir"] = "/dev/shm"  # noqa: S108
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """The WSGI application, made in each worker."""
        return self._load()

    def _worker_started(self, worker: Any) -> None:
        """Run what belongs into the worker; a refusal ends the whole service with one line."""
        # Taking a large file apart makes many objects and little garbage, and looking for that took half of the time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        # SIGTERM, or a master that was killed: this process goes once its requests are answered.
        told_by(lambda: not worker.alive or os.getppid() != worker.ppid)
        if self._in_worker is None:
            return
        try:
            self._in_worker()
        except (ApplicationError, StartError, OSError) as error:
            worker.log.error("cannot start: %s", error)
            sys.exit(Arbiter.APP_LOAD_ERROR)
