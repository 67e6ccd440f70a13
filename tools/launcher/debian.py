"""Debian packages: asks dpkg what is missing and installs only that, in one apt-get run."""

import os
import shutil

from commands import as_root, output_of, run
from failure import Failure

LOCK_WAIT_S = 300  # apt may be held by an unattended upgrade


def missing_packages(packages) -> list[str]:
    """Those of `packages` that are not installed, in the given order."""
    if shutil.which("dpkg-query") is None:
        raise Failure(
            "dpkg-query is missing: the launcher installs on Debian 12; elsewhere install by hand "
            f"what tools/versions.lock lists: {' '.join(packages)}"
        )
    listing = output_of(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"]) or ""
    installed = {line.split()[0] for line in listing.splitlines() if line.endswith(" installed")}
    return [package for package in packages if package not in installed]


def install_packages(packages: list[str], console) -> None:
    if not packages:
        return
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    wait = ["-o", f"DPkg::Lock::Timeout={LOCK_WAIT_S}"]
    show = lambda line: console.progress(f"apt-get: {line}")
    run(as_root(["apt-get", "-q", "update"]), "apt-get update", show, env)
    command = ["apt-get", "-q", "install", "-y", "--no-install-recommends", *wait, *packages]
    # sudo drops the environment, so the variable is set once more inside.
    run(as_root(["env", "DEBIAN_FRONTEND=noninteractive", *command]), "apt-get install", show, env)
