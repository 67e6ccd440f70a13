"""The Rust toolchain: a cargo on PATH that is new enough, else Debian's rustc-web and cargo-web."""

import re

from commands import output_of
from versions import Versions


def cargo_version(text: str | None) -> tuple[int, int] | None:
    match = re.match(r"cargo (\d+)\.(\d+)", text or "")
    return (int(match[1]), int(match[2])) if match else None


def missing_rust_packages(versions: Versions, missing_packages) -> list[str]:
    """Debian packages to install, empty when the cargo on PATH will do."""
    found = cargo_version(output_of(["cargo", "--version"]))
    if found is not None and found >= versions.rust_minimum:
        return []
    return missing_packages(versions.rust_debian)
