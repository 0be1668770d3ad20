"""The target systems of a storage node, and the choice of one."""

from __future__ import annotations

import logging

from agents import protocol
from agents.node.backends.base import Backend
from agents.node.backends.files import FilesBackend
from agents.node.backends.stgt import StgtBackend
from ipxeready.conf import Config, ConfigError
from ipxeready.errors import Unavailable

logger = logging.getLogger(__name__)

_VARIABLE = "IPXE_AGENT_BACKEND"


def choose(config: Config) -> Backend:
    """The backend that the configuration names or, with `auto`, the best that works here: lio, stgt, files.

    One that is named and does not work is a ConfigError: a node that quietly took another
    would serve no machine.
    """
    wanted = config.agent_backend
    if wanted == protocol.LIO:
        raise ConfigError(
            _VARIABLE,
            wanted,
            "the LIO driver is not part of this release; use stgt, files or auto",
        )
    if wanted == protocol.FILES:
        return FilesBackend()
    stgt = StgtBackend(
        base_iqn=config.iqn_base,
        control_port=config.stgt_control_port,
        socket=config.stgt_socket,
    )
    try:
        stgt.check()
    except Unavailable as error:
        if wanted == protocol.STGT:
            raise ConfigError(_VARIABLE, wanted, error.message) from error
        logger.warning(
            "images without iSCSI, as no target system is usable: %s", error.message
        )
        return FilesBackend()
    return stgt


__all__ = ["Backend", "choose"]
