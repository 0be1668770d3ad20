"""Settings of the tests: the control plane on a root that no developer's variable reaches."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

for _name in [name for name in os.environ if name.startswith("IPXE_")]:
    # The lab and benches hand their own switches down; only the product's are dropped.
    if not _name.startswith(("IPXE_LAB", "IPXE_TEST", "IPXE_BENCH")):
        del os.environ[_name]
os.environ["IPXE_ROOT"] = str(
    Path(tempfile.gettempdir()) / f"ipxeready-no-root-{os.getpid()}"
)

from ipxeready.settings.control import *  # noqa: E402

SECRET_KEY = "only-for-tests-" * 5
#: Seconds of work per password are for attackers, not for tests.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
