"""Renders a kustomize folder and lists everything that is wrong with it."""

import subprocess
from pathlib import Path

import yaml

from policy_check import policy_findings
from schema_check import SchemaStore, schema_findings


class RenderError(Exception):
    """kubectl refused the folder; the message is its own."""


def render(kubectl: Path, folder: Path) -> list[dict]:
    done = subprocess.run(
        [str(kubectl), "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RenderError(f"{folder}: kubectl kustomize: {done.stderr.strip()}")
    objects = [document for document in yaml.safe_load_all(done.stdout) if document]
    if not objects:
        raise RenderError(f"{folder}: nothing was rendered")
    return objects


def findings_of(objects: list[dict], store: SchemaStore) -> list[str]:
    findings = [finding for entry in objects for finding in schema_findings(entry, store)]
    return findings + policy_findings(objects)
