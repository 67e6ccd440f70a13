"""The four processes of one deployment on this machine: their command lines, addresses and log
files.

The plan is written to plan.json in the run folder; the supervisor and the other verbs read it
there.
"""

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

import model_files
from failure import Failure, UsageError
from launch_settings import LaunchSettings
from places import Places
from versions import Versions

HOST = "127.0.0.1"
DEFAULT_PORTS = {
    ("gateway", "http"): 8000,
    ("gateway", "grpc"): 8001,
    ("scheduler", "listen"): 8002,
    ("gateway", "admin"): 9100,
    ("scheduler", "admin"): 9101,
    ("small_worker", "admin"): 9102,
    ("large_worker", "admin"): 9103,
}
ANY_ADDRESS = ("0.0.0.0", "[::]", "")  # listening on all: reached by loopback


@dataclass(frozen=True)
class ProcessPlan:
    name: str
    argv: list[str]
    admin: int  # port of /livez, /readyz and /metrics


@dataclass(frozen=True)
class Plan:
    processes: list[ProcessPlan]
    addresses: dict[str, str]  # "gateway http" -> host:port, for people and for chat
    model_name: str

    def port(self, name: str) -> int:
        return split_address(name, self.addresses[name])[1]


@dataclass(frozen=True)
class EngineChoice:
    """timed is None for the real engine, else the name of a step-time curve. threads: of each
    worker.
    """

    timed: str | None = None
    threads: int | None = None


def make_plan(
    places: Places,
    versions: Versions,
    settings: LaunchSettings,
    engine: EngineChoice,
    port_offset: int,
    config: str | None,
) -> Plan:
    programs = places.build("release") / "bin"
    addresses = {
        f"{process} {name}": settings.value(process, name, f"{HOST}:{port + port_offset}")
        for (process, name), port in DEFAULT_PORTS.items()
    }
    scheduler = addresses["scheduler listen"]

    def model(process: str, flag: str, name: str) -> tuple[str, str]:
        default = str(
            tiny_tokenizer_path(places)
            if engine.timed is not None
            else model_files.model_path(places, versions.models[name])
        )
        return flag, settings.value(process, flag, default)

    def plan(process: str, *flags: tuple[str, str]) -> ProcessPlan:
        listens = [
            (name, addresses[f"{owner} {name}"])
            for owner, name in DEFAULT_PORTS
            if owner == process
        ]
        argv = [f"--{name}={value}" for name, value in (*listens, *flags)]
        admin = split_address(f"{process} admin", addresses[f"{process} admin"])[1]
        return ProcessPlan(
            process,
            [str(programs / process), *argv, *([f"--config={config}"] if config else [])],
            admin,
        )

    def dialler(process: str, *flags: tuple[str, str]) -> ProcessPlan:
        return plan(
            process,
            ("scheduler", settings.value(process, "scheduler", scheduler)),
            ("pair", settings.value(process, "pair", "default")),
            *flags,
        )

    def engine_flags(process: str, files: tuple[str, str]) -> list[tuple[str, str]]:
        return _engine_flags(settings, process, engine, files, places.home)

    small, large = model("small_worker", "model", "small"), model("large_worker", "model", "large")
    model_name = settings.value("gateway", "model_name", "tokenrouter")
    return Plan(
        [
            plan("scheduler"),
            dialler("small_worker", *engine_flags("small_worker", small)),
            dialler("large_worker", *engine_flags("large_worker", large)),
            dialler("gateway", model("gateway", "tokenizer", "small"), ("model_name", model_name)),
        ],
        addresses,
        model_name,
    )


def _engine_flags(
    settings: LaunchSettings,
    process: str,
    engine: EngineChoice,
    model: tuple[str, str],
    home: Path,
) -> list[tuple[str, str]]:
    if engine.timed is not None:
        return [("engine", "timed"), ("timed_curve", engine.timed), ("tokenizer", model[1])]
    threads = (
        str(engine.threads)
        if engine.threads is not None
        else settings.value(process, "threads", default_threads())
    )
    # One key for both workers: they share this machine's cores under leases.
    return [
        ("engine", settings.value(process, "engine", "torch")),
        model,
        ("threads", threads),
        ("weight_cache", settings.value(process, "weight_cache", str(home / "packed"))),
        ("device_key", settings.value(process, "device_key", "cpu")),
    ]


def default_threads() -> str:
    """Both workers may use every core, since leases let only one compute at a time."""
    return str(len(os.sched_getaffinity(0)))


def tiny_tokenizer_path(places: Places) -> Path:
    """Stands in for both model files when the engines are timed."""
    return places.run / "tiny_tokenizer"


def models_needed(plan: Plan, places: Places, versions: Versions) -> tuple[str, ...]:
    """Names of the lock file's models that this plan's processes open."""
    words = {word.partition("=")[2] for process in plan.processes for word in process.argv}
    return tuple(
        name
        for name, model in versions.models.items()
        if str(model_files.model_path(places, model)) in words
    )


def split_address(name: str, address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdigit() or not 1 <= int(port) <= 65535:
        raise UsageError(f"{name}={address}: host:port with a port from 1 to 65535 is expected")
    return (HOST if host in ANY_ADDRESS else host), int(port)


def check_ports_are_free(plan: Plan) -> None:
    for name, address in plan.addresses.items():
        host, port = split_address(name, address)
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host.strip("[]"), port))
            except OSError as error:
                raise Failure(
                    f"{name}={address} cannot be bound ({error.strerror}): stop what holds "
                    "it, or shift all ports: ./tokenrouter up --port-offset=100"
                ) from error


def write_plan(run: Path, plan: Plan) -> None:
    run.mkdir(parents=True, exist_ok=True)
    (run / "plan.json").write_text(json.dumps(asdict(plan), indent=1))


def read_plan(run: Path) -> Plan:
    """Raises Failure when nothing was started from this checkout yet."""
    try:
        entry = json.loads((run / "plan.json").read_text())
    except FileNotFoundError as error:
        raise Failure("nothing was started from this checkout yet: ./tokenrouter up") from error
    return Plan(
        [ProcessPlan(**process) for process in entry["processes"]],
        entry["addresses"],
        entry["model_name"],
    )


def log_path(run: Path, name: str) -> Path:
    return run / f"{name}.log"
