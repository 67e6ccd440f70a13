"""Checks one Kubernetes object against the strict JSON schema of its kind; reports every error, not
the first.
"""

import json
from pathlib import Path

import jsonschema

DEFINITIONS = (
    "https://kubernetes.io/api/_definitions.json"  # the name the schemas refer to; never fetched
)


class SchemaStore:
    """Schemas of one Kubernetes release, one file per kind: deployment-apps-v1.json."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._definitions = json.loads((folder / "_definitions.json").read_text())
        self._validators: dict[str, jsonschema.Draft202012Validator] = {}

    def validator(self, api_version: str, kind: str) -> jsonschema.Draft202012Validator | None:
        """None when this release has no such kind."""
        group, _, version = api_version.rpartition("/")
        parts = [kind.lower(), *([group.partition(".")[0]] if group else []), version]
        name = "-".join(parts) + ".json"
        if name not in self._validators:
            path = self._folder / name
            if not path.exists():
                return None
            schema = json.loads(path.read_text())
            resolver = jsonschema.RefResolver(
                schema["$id"], schema, store={DEFINITIONS: self._definitions}
            )
            self._validators[name] = jsonschema.Draft202012Validator(schema, resolver=resolver)
        return self._validators[name]


def name_of(entry: dict) -> str:
    return f"{entry.get('kind')}/{(entry.get('metadata') or {}).get('name')}"


def schema_findings(entry: dict, store: SchemaStore) -> list[str]:
    api_version, kind = str(entry.get("apiVersion")), str(entry.get("kind"))
    validator = store.validator(api_version, kind)
    if validator is None:
        return [f"{name_of(entry)}: no schema of {api_version} {kind}"]
    return [
        f"{name_of(entry)}: {_where(error)}: {error.message}"
        for error in sorted(
            validator.iter_errors(entry), key=lambda error: [str(part) for part in error.path]
        )
    ]


def _where(error: jsonschema.ValidationError) -> str:
    return ".".join(str(part) for part in error.path) or "(top)"
