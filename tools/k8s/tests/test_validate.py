"""Plants one error at a time in a copy of deploy/k8s; the check must name each."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "launcher"))

from manifest_check import RenderError, findings_of, render
from places import find_places
from schema_check import SchemaStore

TOOL = Path(__file__).resolve().parents[1] / "validate"
MANIFESTS = Path(__file__).resolve().parents[3] / "deploy" / "k8s"

# (file, text that must be there, its replacement, what the check must say)
PLANTED = (
    ("gateway.yaml", "containerPort: 8000", "containrPort: 8000", "'containrPort' was unexpected"),
    ("gateway.yaml", "replicas: 2", 'replicas: "two"', "'two' is not of type"),
    (
        "scheduler.yaml",
        "apiVersion: apps/v1",
        "apiVersion: apps/v2",
        "no schema of apps/v2 Deployment",
    ),
    ("scheduler.yaml", "kind: Deployment", "kind: Deploymint", "no schema of apps/v1 Deploymint"),
    (
        "scheduler.yaml",
        "      app.kubernetes.io/name: scheduler\n  template",
        "      app: x\n  template",
        "the selector does not match",
    ),
    ("small_worker.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot must be true"),
    ("small_worker.yaml", 'drop: ["ALL"]', 'drop: ["NET_RAW"]', "capabilities.drop must be [ALL]"),
    (
        "small_worker.yaml",
        "readOnlyRootFilesystem: true",
        "readOnlyRootFilesystem: false",
        "readOnlyRootFilesystem",
    ),
    (
        "small_worker.yaml",
        "automountServiceAccountToken: false",
        "automountServiceAccountToken: true",
        "automountServiceAccountToken must be false",
    ),
    ("large_worker.yaml", "livenessProbe:", "x-livenessProbe:", "livenessProbe is missing"),
    (
        "large_worker.yaml",
        "memory: 5Gi\n            limits",
        "x: 5Gi\n            limits",
        "requests.memory is missing",
    ),
    (
        "large_worker.yaml",
        "claimName: models",
        "claimName: model",
        "refers to PersistentVolumeClaim/model",
    ),
    (
        "gateway.yaml",
        "terminationGracePeriodSeconds: 80",
        "terminationGracePeriodSeconds: 60",
        "is less than preStop 10 + drain 60",
    ),
    (
        "large_worker.yaml",
        "--drain_ms=60000",
        "--drain_ms=600000",
        "is less than preStop 0 + drain 600",
    ),
    ("large_worker.yaml", "- --drain_ms=60000", "- --threads=3", "how long the process drains"),
    ("gateway.yaml", "preStop:", "postStart:", "preStop must sleep"),
    ("gateway.yaml", "targetPort: http", "targetPort: htpp", "targetPort htpp is no port"),
    (
        "scheduler.yaml",
        "port: 8002\n              service",
        "port: 8003\n              service",
        "readinessProbe asks port 8003",
    ),
    (
        "gateway.yaml",
        "  selector:\n    app.kubernetes.io/name: gateway",
        "  selector:\n    app.kubernetes.io/name: gate",
        "selects no pod",
    ),
    ("kustomization.yaml", "  - gateway.yaml", "  - gatewya.yaml", "kubectl kustomize"),
)


class ValidateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tools = find_places().kubernetes_tools
        cls.store = SchemaStore(cls.tools / "schemas")

    def check(self, *edits: tuple[str, str, str]) -> str:
        """The findings in a copy of the manifests after `edits` (file, old text, new text)."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "k8s"
            shutil.copytree(MANIFESTS, folder)
            for file, old, new in edits:
                text = (folder / file).read_text()
                self.assertIn(old, text)
                (folder / file).write_text(text.replace(old, new))
            try:
                return "\n".join(findings_of(render(self.tools / "kubectl", folder), self.store))
            except RenderError as error:
                return str(error)

    def test_accepts_what_is_in_the_repository(self):
        self.assertEqual(self.check(), "")

    def test_names_every_planted_error(self):
        for file, old, new, expected in PLANTED:
            with self.subTest(file=file, new=new):
                self.assertIn(expected, self.check((file, old, new)))

    def test_reports_two_errors_of_one_object(self):
        found = self.check(
            ("gateway.yaml", "containerPort: 8000", "containrPort: 8000"),
            ("gateway.yaml", "replicas: 2", 'replicas: "two"'),
        )
        self.assertIn("containrPort", found)
        self.assertIn("'two'", found)

    def test_the_program_fails_on_a_finding(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "k8s"
            shutil.copytree(MANIFESTS, folder)
            text = (folder / "gateway.yaml").read_text()
            (folder / "gateway.yaml").write_text(
                text.replace("containerPort: 8000", "containrPort: 8000")
            )
            done = subprocess.run(
                [str(TOOL), str(folder)], capture_output=True, text=True, check=False
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn("11 objects, ", done.stdout)


if __name__ == "__main__":
    unittest.main()
