"""The requirements of a build, a start or a test; what is missing is listed and, on agreement,
installed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import buf_tool
import kubernetes_tools
import libtorch
import llama_cpp
import model_files
from console import Console, format_bytes
from debian import install_packages, missing_packages
from places import Places
from rust import missing_rust_packages
from versions import Versions


@dataclass(frozen=True)
class Missing:
    """One thing to install: its description and its installer. Order matters, since pip is one of
    the Debian packages.
    """

    text: str
    install: Callable[[], None]


@dataclass(frozen=True)
class Needs:
    """The requirements of a verb."""

    models: tuple[str, ...] = ("small", "large")
    test: bool = False
    full: bool = False
    llama_cpp: bool = False


FOR_SETUP = Needs(models=("small", "large", "smollm2"), test=True)
FOR_TEST = FOR_SETUP
FOR_FULL_TEST = Needs(models=("small", "large", "smollm2"), test=True, full=True)


def find_missing(
    places: Places, versions: Versions, console: Console, needs: Needs
) -> list[Missing]:
    wanted = [
        *versions.debian_build,
        *(versions.debian_test if needs.test else ()),
        *(versions.debian_full if needs.full else ()),
    ]
    packages = missing_packages(wanted) + missing_rust_packages(versions, missing_packages)
    missing = []
    if packages:
        missing.append(
            Missing(
                f"Debian packages: {' '.join(packages)}",
                lambda: install_packages(packages, console),
            )
        )
    if not libtorch.libtorch_is_present(places, versions):
        size = format_bytes(libtorch.download_size(versions))
        missing.append(
            Missing(
                f"libtorch {versions.libtorch_version} ({size} to fetch)",
                lambda: libtorch.install_libtorch(places, versions, console),
            )
        )
    if needs.test and not kubernetes_tools.kubernetes_tools_are_present(places, versions):
        size = format_bytes(versions.kubectl.bytes + versions.schemas.bytes)
        missing.append(
            Missing(
                f"kubectl and schemas of Kubernetes {versions.schema_version} ({size} to fetch)",
                lambda: kubernetes_tools.install_kubernetes_tools(places, versions, console),
            )
        )
    if needs.test and not buf_tool.buf_is_present(places, versions):
        missing.append(
            Missing(
                f"buf {versions.buf.version} ({format_bytes(versions.buf.bytes)} to fetch)",
                lambda: buf_tool.install_buf(places, versions, console),
            )
        )
    if needs.llama_cpp and not llama_cpp.source_is_present(places, versions):
        size = format_bytes(versions.llama_cpp.bytes)
        missing.append(
            Missing(
                f"llama.cpp of {versions.llama_cpp.package} {versions.llama_cpp.version} "
                f"({size} to fetch; building it takes about 5 minutes of processor time)",
                lambda: llama_cpp.fetch_source(places, versions, console),
            )
        )
    missing += [
        _missing_model(places, versions, console, name)
        for name in needs.models
        if not model_files.is_present(places, versions.models[name])
    ]
    return missing


def bring(places: Places, versions: Versions, console: Console, needs: Needs, yes: bool) -> None:
    """Installs what is missing, nothing twice. Raises Failure without agreement."""
    missing = find_missing(places, versions, console, needs)
    if not missing:
        return
    console.say(f"Missing on this machine (everything but Debian packages goes to {places.home}):")
    for item in missing:
        console.say(f"  {item.text}")
    console.confirm("Install them?", yes)
    for item in missing:
        began = console.elapsed()
        item.install()
        console.say(f"  installed in {console.elapsed() - began:.0f} s: {item.text}")


def _missing_model(places: Places, versions: Versions, console: Console, name: str) -> Missing:
    model = versions.models[name]
    return Missing(
        f"model {model.file} ({format_bytes(model.bytes)}, {model.licence})",
        lambda: model_files.pull(places, model, console),
    )
