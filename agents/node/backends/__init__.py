"""The target systems of a storage node, and the choice of one."""

from __future__ import annotations

import logging

from agents.node.backends.base import Backend
from agents.node.backends.files import FilesBackend
from agents.node.backends.lio import LioBackend
from agents.node.backends.stgt import StgtBackend
from agents.protocol.systems import AUTO, FILES, LIO
from ipxeready.conf import Config, ConfigError
from ipxeready.errors import ApplicationError

logger = logging.getLogger(__name__)

_VARIABLE = "IPXE_AGENT_BACKEND"


def choose(config: Config) -> Backend:
    """The backend that the configuration names or, with `auto`, the best that works here: lio, stgt, files.

    One that is named and does not work is a ConfigError: a node that quietly took another
    would serve no machine. `auto` stays with a tgtd that has targets of ours while LIO has none:
    machines may run from them.
    """
    wanted = config.agent_backend
    if wanted == FILES:
        return FilesBackend()
    lio = LioBackend(
        base_iqn=config.iqn_base,
        portal=config.iscsi_portal,
        write_back=config.lio_write_back,
    )
    stgt = StgtBackend(
        base_iqn=config.iqn_base,
        control_port=config.stgt_control_port,
        socket=config.stgt_socket,
        portal=config.iscsi_portal,
    )
    if wanted != AUTO:
        named: Backend = lio if wanted == LIO else stgt
        why = _why_not(named)
        if why is not None:
            raise ConfigError(_VARIABLE, wanted, why)
        return named
    no_lio = _why_not(lio)
    if no_lio is None:
        if lio.targets() or _why_not(stgt) is not None or not stgt.targets():
            return lio
        logger.info("tgtd has targets of ours and LIO has none: staying with tgtd")
        return stgt
    no_stgt = _why_not(stgt)
    if no_stgt is None:
        return stgt
    logger.warning(
        "images without iSCSI, as no target system is usable: %s %s", no_lio, no_stgt
    )
    return FilesBackend()


def _why_not(backend: Backend) -> str | None:
    """Why a target system cannot be used, or None when it answers."""
    try:
        backend.check()
    except ApplicationError as error:
        return error.message
    return None


__all__ = ["Backend", "choose"]
