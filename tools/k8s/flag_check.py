"""Checks that every flag and shared variable of the manifests is one that its program has."""

import re
import subprocess
from pathlib import Path

from schema_check import name_of

PREFIX = "TOKENROUTER_"


def known_flags(program: Path) -> set[str]:
    """Names of the long flags that --help lists."""
    done = subprocess.run([str(program), "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"--([a-z][a-z0-9_]*)", done.stdout))


def flag_findings(objects: list[dict], binaries: Path) -> list[str]:
    findings, everywhere = [], set()
    for workload in (entry for entry in objects if entry.get("kind") == "Deployment"):
        for container in workload["spec"]["template"]["spec"]["containers"]:
            program = binaries / Path(container["command"][0]).name
            if not program.exists():
                findings.append(f"{name_of(workload)}: there is no program {program}")
                continue
            known = known_flags(program)
            everywhere |= known
            for argument in container.get("args", []):
                flag = argument.removeprefix("--").partition("=")[0]
                if flag not in known:
                    findings.append(f"{name_of(workload)}: {program.name} has no flag --{flag}")
    for config in (entry for entry in objects if entry.get("kind") == "ConfigMap"):
        for key in config.get("data", {}):
            if key.startswith(PREFIX) and key.removeprefix(PREFIX).lower() not in everywhere:
                findings.append(f"{name_of(config)}: no program has a flag for {key}")
    return findings
