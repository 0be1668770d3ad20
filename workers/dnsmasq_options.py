"""How dnsmasq is started on the shipped configuration when the site's part comes as options."""

from __future__ import annotations

import stat
from pathlib import Path

from ipxeready.storage.paths import Layout


def command(
    layout: Layout,
    *,
    interface: str,
    dhcp_range: str,
    lease_file: Path,
    pid_file: Path,
    fast_start: bool = True,
) -> list[str]:
    """The command line of a dnsmasq in the foreground that serves DHCP and TFTP on `interface` only.

    `dhcp_range` is dnsmasq's own notation: first,last[,netmask][,lease time].
    """
    files = ["dnsmasq.conf", *(["fast-start.conf"] if fast_start else [])]
    return [
        "dnsmasq",
        "--keep-in-foreground",
        "--log-facility=-",
        *(f"--conf-file={layout.dnsmasq / name}" for name in files),
        f"--interface={interface}",
        f"--dhcp-range={dhcp_range}",
        "--dhcp-option=option:router",  # no gateway; else dnsmasq names itself
        f"--tftp-root={layout.tftp}",
        f"--dhcp-hostsfile={layout.dhcp_hosts}",
        f"--dhcp-leasefile={lease_file}",
        f"--pid-file={pid_file}",
        *_user(layout),
    ]


def _user(layout: Layout) -> list[str]:
    """Stay root only where dnsmasq's own user could not get at the files.

    It reads the scripts and, at each reload, the hosts file after it has given
    up root; a checkout below a private home folder is closed to it.
    """
    folders = (layout.dnsmasq, layout.tftp)
    open_to_all = all(
        parent.stat().st_mode & stat.S_IXOTH
        for folder in folders
        for parent in (folder, *folder.parents)
    )
    return [] if open_to_all else ["--user=root"]
