"""Django settings of the mode that IPXE_MODE picks: `control` or `agent`."""

from __future__ import annotations

from ipxeready.settings.base import IPXE

if IPXE.mode == "agent":
    from ipxeready.settings.agent import *
else:
    from ipxeready.settings.control import *
