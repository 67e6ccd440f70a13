"""The settings that the launcher passes to each process: its own defaults, unless the environment
or the config file sets another value.

The order of precedence is that of the processes themselves (libs/config): environment
TOKENROUTER_NAME, then the file's [process] section, then the common keys before the first section.
Resolved values are passed as flags; every other key of the file reaches the processes by --config.
"""

import tomllib
from pathlib import Path

from failure import UsageError
from process_names import PROCESSES

COMMON_KEYS = ("log_level", "pair", "scheduler")  # as libs/config/settings.cc

class LaunchSettings:
    def __init__(self, file: dict, environment: dict[str, str]):
        self._file = file
        self._environment = environment

    def value(self, process: str, name: str, default: str) -> str:
        from_environment = self._environment.get(f"TOKENROUTER_{name.upper()}")
        if from_environment is not None:
            return from_environment
        section = self._file.get(process, {})
        if name in COMMON_KEYS:
            default = self._file.get(name, default)
        return str(section.get(name, default))


def read_config(path: str | None) -> dict:
    """An empty table without a path. Sections that are no process are refused, by name."""
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            entries = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"--config={path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"--config={path}: not TOML: {error}") from error
    for name, entry in entries.items():
        if isinstance(entry, dict) and name not in PROCESSES:
            raise UsageError(
                f"--config={path}: section [{name}] is no process; allowed: {', '.join(PROCESSES)}"
            )
    return entries


def absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).resolve())
