"""`python -m agents.node.withdraw`: take the targets of this node off, ending their sessions; images stay, and a start brings all back.

For target systems that outlive the agent, as the kernel does, when the node itself is to end.
"""

from __future__ import annotations

import os
import sys

from agents.node.backends import Backend, choose
from ipxeready import conf
from ipxeready.conf import ConfigError
from ipxeready.errors import ApplicationError


def withdraw(backend: Backend) -> list[str]:
    """Take all targets off; what could not be, in words."""
    failed = []
    for target in backend.targets():
        try:
            backend.unexport(target["iqn"], force=True)
        except ApplicationError as error:
            failed.append(error.message)
    backend.tidy()
    return failed


def main() -> int:
    """The entry; what is wrong is a line each."""
    try:
        failed = withdraw(choose(conf.load(os.environ)))
    except (ConfigError, ApplicationError) as error:
        failed = [str(error)]
    for line in failed:
        print(f"ipxeready: {line}", file=sys.stderr)  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
