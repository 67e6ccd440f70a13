"""The Rust toolchain: a cargo on PATH that is new enough, else Debian's rustc-web and cargo-web."""

import re
import shutil

from commands import output_of
from versions import Versions

DEBIAN_CARGO = "/usr/bin/cargo"


def cargo_version(text: str | None) -> tuple[int, int] | None:
    match = re.match(r"cargo (\d+)\.(\d+)", text or "")
    return (int(match[1]), int(match[2])) if match else None


def path_has_new_cargo(versions: Versions) -> bool:
    found = cargo_version(output_of(["cargo", "--version"]))
    return found is not None and found >= versions.rust_minimum


def missing_rust_packages(versions: Versions, missing_packages) -> list[str]:
    """Debian packages to install, empty when the cargo on PATH will do."""
    return [] if path_has_new_cargo(versions) else missing_packages(versions.rust_debian)


def cargo_program(versions: Versions) -> str:
    """The cargo that the build must use."""
    return shutil.which("cargo") or DEBIAN_CARGO if path_has_new_cargo(versions) else DEBIAN_CARGO
