"""The start of a storage node: choose the target system, adopt and rebuild, then keep watch."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
from collections.abc import Callable

from agents.node import importing, rebuild, resetting, runtime
from agents.node.backends import Backend, choose
from agents.node.images import Images
from agents.node.jobs import Jobs
from agents.node.oplog import OperationLog
from agents.node.runtime import Node
from agents.node.sessions import Sessions
from agents.protocol.limits import MASTERS_PERIOD
from ipxeready import ending
from ipxeready.conf import Config, ConfigError
from ipxeready.errors import ApplicationError
from ipxeready.startup import StartError
from ipxeready.storage.paths import Layout

logger = logging.getLogger(__name__)

_WATCH_PERIOD = 10.0
#: Since when somebody is logged in is known this well.
_SESSIONS_PERIOD = 5.0
_CLEAN_PERIOD = 3600.0
#: A process that ends without its parent leaves the directory to the next agent so soon: sooner than one starts.
_CLAIM_PERIOD = 0.25

#: What keeps the image directory ours (`claim`).
_claimed: int | None = None


def start(config: Config) -> None:
    """Make this process a storage node. Called once, in the process that serves, before it serves.

    Raises StartError (one line for the terminal) when the image directory or the target
    system that the configuration names cannot be used. An image that cannot be exported
    stops nothing: it is in the log, with the reason.
    """
    node = build(config)
    runtime.install(node)
    _thread("claim", _CLAIM_PERIOD, leave_when_ending)
    _thread("masters", MASTERS_PERIOD, lambda: renew_masters(node))
    _thread("uploads", _CLEAN_PERIOD, lambda: clean_uploads(node))
    _thread("targets", _WATCH_PERIOD, lambda: watch_targets(node))
    _thread("sessions", _SESSIONS_PERIOD, lambda: note_sessions(node))


def check(config: Config) -> Backend:
    """The target system that the configuration leads to; StartError when it, or the images' place, cannot be used.

    Changes nothing, so that a process that only starts others can ask before it does.
    """
    folder = str(config.disk_dir)
    if "," in folder:
        raise StartError(
            f"IPXE_DISK_DIR={folder!r}: must have no comma, as tgtd ends a path there"
        )
    if not config.disk_dir.is_dir():
        raise StartError(
            f"IPXE_DISK_DIR={folder!r}: must be a directory; make or mount it"
        )
    try:
        return choose(config)
    except ConfigError as error:
        raise StartError(str(error)) from error


def claim(config: Config) -> None:
    """Have the image directory for this process and those it forks; StartError when another agent serves it.

    Two agents over one directory would export one image twice. A lock keeps it that ends with the last of these
    processes, also by `kill -9`. Where the file system has no such locks (NFS) that is only logged.
    """
    global _claimed
    folder = str(config.disk_dir)
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StartError(
            f"IPXE_DISK_DIR={folder!r}: cannot be read: {error.strerror}"
        ) from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        if error.errno == errno.EWOULDBLOCK:
            raise StartError(
                f"IPXE_DISK_DIR={folder!r}: another agent serves this directory (`fuser -v {folder}` names it), and "
                "two would give one disk to two machines. End that one, or give this one a directory of its own"
            ) from None
        logger.warning(
            "whether another agent serves %s cannot be told: %s", folder, error.strerror
        )
        return
    _claimed = held


def leave_when_ending() -> None:
    """One turn of the claim thread: who ends serves nobody, though it may finish a copy for minutes.

    The lock is the parent's as well, so only one whose parent was killed frees the directory by this.
    """
    global _claimed
    if _claimed is not None and ending.ending():
        os.close(_claimed)
        _claimed = None


def build(config: Config) -> Node:
    """A node after its rebuild, without threads and not yet installed."""
    backend = check(config)
    layout = Layout(config.root)
    node = Node(
        base_iqn=config.iqn_base,
        images=Images(
            config.disk_dir,
            state=layout.node_pool,
            may_reflink=config.agent_reflink != "never",
        ),
        backend=backend,
        log=OperationLog(config.log_file),
        jobs=Jobs(
            layout.node_jobs,
            waiting=max(1, config.serve_threads // 2),
        ),
        sessions=Sessions(Layout(config.root).node_sessions),
    )
    try:
        _begin(node, op="node.start")
    except ApplicationError as error:
        # Serve all the same: what is exported stays, the answers say what is wrong, and
        # the watch tries again.
        node.unbuilt = True
        logger.error("the rebuild did not run: %s", error.message)
    logger.info("this node serves %s with %s", config.disk_dir, backend.name)
    return node


def renew_masters(node: Node) -> None:
    """One turn of the masters thread."""
    node.masters.renew()


def note_sessions(node: Node) -> None:
    """One turn of the sessions thread: who has come and gone."""
    node.targets()


def clean_uploads(node: Node) -> None:
    """One turn of the uploads thread: what nobody has gone on with for a week goes."""
    for name in node.uploads.clean():
        node.log.add("node.clean", "ok", expired=name)


def watch_targets(node: Node) -> None:
    """One turn of the watch: a target system that was restarted has lost our targets, so they are made again.

    So is what a rebuild at the start could not do. A single one that is missing was taken off by somebody's hand, and stays off until the next scan.
    """
    if node.unbuilt:
        node.backend.check()
        node.memory.read()
        logger.info("the rebuild that could not run at the start runs now")
        _begin(node, op="node.rebuild")
        node.unbuilt = False
        return
    if node.backend.unsettled:
        with node.changing():
            node.backend.settle()
    if node.doubtful or (node.exported and rebuild.lost(node, node.backend.targets())):
        with node.changing():
            rebuild.restored(node, node.backend.targets())


def _begin(node: Node, *, op: str) -> None:
    """Clean up what a kill left, and bring up what should be there."""
    clean_uploads(node)
    # The node may serve already: what it is at right now was not left by a kill.
    with node.changing():
        for name in node.images.clean():
            node.log.add("node.clean", "ok", removed=name)
        for old, new in importing.recover(node.images):
            node.log.add("node.clean", "ok", renamed=old, to=new)
        _rebuild(node, op=op)
    node.masters.renew()


def _rebuild(node: Node, *, op: str) -> None:
    for name in resetting.restore(node):
        node.log.add(resetting.RESET_DISK, "rollback", restored=name)
    for skipped in rebuild.scan(node, op=op)["skipped"]:
        logger.info("not exported: %s: %s", skipped["name"], skipped["reason"])
    for name in resetting.settle(node):
        logger.warning(
            "%s was being reset when the agent was killed, and is not exported: its old image is kept beside it",
            name,
        )
    # After the targets, which tell what was done before the kill after all.
    node.jobs.recover(node)


def _thread(name: str, period: float, turn: Callable[[], None]) -> None:
    threading.Thread(
        target=_run, args=(period, turn), name=f"node-{name}", daemon=True
    ).start()


def _run(period: float, turn: Callable[[], None]) -> None:
    """Call `turn` every `period` seconds; a failure is logged and the next turn comes."""
    pause = threading.Event()
    said = ""
    while not pause.wait(period):
        try:
            turn()
            said = ""
        except ApplicationError as error:
            if error.message != said:  # once, not every ten seconds
                logger.warning("%s", error.message)
                said = error.message
        except Exception:
            logger.exception("a background turn failed")
