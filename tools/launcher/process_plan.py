"""The four processes of one deployment on this machine: their command lines, ports and log files.

The plan is written to plan.json in the run folder; the supervisor reads nothing else.
"""

import json
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

import model_files
from failure import Failure
from places import Places
from versions import Versions

HOST = "127.0.0.1"
PROCESSES = ("scheduler", "small_worker", "large_worker", "gateway")
# The drain order: clients first, then those that serve them.
STOP_ORDER = ("gateway", "small_worker", "large_worker", "scheduler")


@dataclass(frozen=True)
class Ports:
    http: int = 8000
    grpc: int = 8001
    scheduler: int = 8002
    gateway_admin: int = 9100
    scheduler_admin: int = 9101
    small_worker_admin: int = 9102
    large_worker_admin: int = 9103

    def shifted(self, offset: int) -> "Ports":
        return Ports(**{name: port + offset for name, port in asdict(self).items()})


@dataclass(frozen=True)
class ProcessPlan:
    name: str
    argv: list[str]
    admin: int  # port of /livez, /readyz and /metrics


@dataclass(frozen=True)
class EngineChoice:
    """timed is None for the real engine, else the name of a step-time curve."""

    timed: str | None = None
    threads: int = 2


def make_plan(places: Places, versions: Versions, ports: Ports, engine: EngineChoice,
              config: str | None) -> list[ProcessPlan]:
    programs = places.build("release") / "bin"
    shared = [f"--config={Path(config).resolve()}"] if config else []
    scheduler = f"{HOST}:{ports.scheduler}"

    def plan(name: str, admin: int, *flags: str) -> ProcessPlan:
        return ProcessPlan(name, [str(programs / name), *flags, f"--admin={HOST}:{admin}", *shared], admin)

    def worker(name: str, admin: int, model: str) -> ProcessPlan:
        return plan(name, admin, f"--scheduler={scheduler}", "--pair=default",
                    *_engine_flags(engine), f"--model={model_files.model_path(places, versions.models[model])}")

    return [
        plan("scheduler", ports.scheduler_admin, f"--listen={scheduler}"),
        worker("small_worker", ports.small_worker_admin, "small"),
        worker("large_worker", ports.large_worker_admin, "large"),
        plan("gateway", ports.gateway_admin, f"--http={HOST}:{ports.http}", f"--grpc={HOST}:{ports.grpc}",
             f"--scheduler={scheduler}", "--pair=default", "--model_name=tokenrouter",
             f"--tokenizer={model_files.model_path(places, versions.models['small'])}"),
    ]


def _engine_flags(engine: EngineChoice) -> list[str]:
    if engine.timed is not None:
        return ["--engine=timed", f"--timed_curve={engine.timed}"]
    # One key for both workers: they share this machine's cores and take turns by lease.
    return ["--engine=torch", f"--threads={engine.threads}", "--device_key=cpu"]


def check_ports_are_free(ports: Ports) -> None:
    for name, port in asdict(ports).items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise Failure(f"port {port} ({name}) on {HOST} is taken by another program ({error.strerror}); "
                              "stop it, or shift all ports: ./tokenrouter up --port-offset=100") from error


def write_plan(run: Path, ports: Ports, plan: list[ProcessPlan]) -> None:
    run.mkdir(parents=True, exist_ok=True)
    entry = {"ports": asdict(ports), "processes": [asdict(process) for process in plan]}
    (run / "plan.json").write_text(json.dumps(entry, indent=1))


def read_plan(run: Path) -> list[ProcessPlan]:
    return [ProcessPlan(**entry) for entry in _read(run)["processes"]]


def read_ports(run: Path) -> Ports:
    """The ports of the last start from this checkout; the defaults when there was none."""
    try:
        return Ports(**_read(run)["ports"])
    except FileNotFoundError:
        return Ports()


def _read(run: Path) -> dict:
    return json.loads((run / "plan.json").read_text())


def log_path(run: Path, name: str) -> Path:
    return run / f"{name}.log"
