"""Plants one error at a time in a copy of deploy/k8s; the check must name each."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[1] / "validate"
MANIFESTS = Path(__file__).resolve().parents[3] / "deploy" / "k8s"

# (file, text that must be there, its replacement, what the check must say)
PLANTED = (
    ("gateway.yaml", "containerPort: 8000", "containrPort: 8000", "'containrPort' was unexpected"),
    ("gateway.yaml", "replicas: 2", 'replicas: "two"', "'two' is not of type"),
    ("scheduler.yaml", "apiVersion: apps/v1", "apiVersion: apps/v2", "no schema of apps/v2 Deployment"),
    ("scheduler.yaml", "kind: Deployment", "kind: Deploymint", "no schema of apps/v1 Deploymint"),
    ("scheduler.yaml", "      app.kubernetes.io/name: scheduler\n  template", "      app: x\n  template",
     "the selector does not match"),
    ("small_worker.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot must be true"),
    ("small_worker.yaml", 'drop: ["ALL"]', 'drop: ["NET_RAW"]', "capabilities.drop must be [ALL]"),
    ("small_worker.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "readOnlyRootFilesystem"),
    ("small_worker.yaml", "automountServiceAccountToken: false", "automountServiceAccountToken: true",
     "automountServiceAccountToken must be false"),
    ("large_worker.yaml", "livenessProbe:", "x-livenessProbe:", "livenessProbe is missing"),
    ("large_worker.yaml", "memory: 5Gi\n            limits", "x: 5Gi\n            limits", "requests.memory is missing"),
    ("large_worker.yaml", "claimName: models", "claimName: model", "refers to PersistentVolumeClaim/model"),
    ("gateway.yaml", "terminationGracePeriodSeconds: 80", "terminationGracePeriodSeconds: 60",
     "is less than preStop 10 + drain 60"),
    ("gateway.yaml", "preStop:", "postStart:", "preStop must sleep"),
    ("gateway.yaml", "targetPort: http", "targetPort: htpp", "targetPort htpp is no port"),
    ("scheduler.yaml", "port: 8002\n            periodSeconds", "port: 8003\n            periodSeconds",
     "readinessProbe asks port 8003"),
    ("gateway.yaml", "  selector:\n    app.kubernetes.io/name: gateway", "  selector:\n    app.kubernetes.io/name: gate",
     "selects no pod"),
    ("kustomization.yaml", "  - gateway.yaml", "  - gatewya.yaml", "kubectl kustomize"),
)


class ValidateTest(unittest.TestCase):
    def check(self, folder: Path) -> tuple[int, str]:
        done = subprocess.run([str(TOOL), str(folder)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_accepts_what_is_in_the_repository(self):
        code, text = self.check(MANIFESTS)
        self.assertEqual(code, 0, text)

    def test_names_every_planted_error(self):
        for file, old, new, expected in PLANTED:
            with self.subTest(file=file, new=new), tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / "k8s"
                shutil.copytree(MANIFESTS, folder)
                text = (folder / file).read_text()
                self.assertIn(old, text)
                (folder / file).write_text(text.replace(old, new))
                code, output = self.check(folder)
                self.assertEqual(code, 1, output)
                self.assertIn(expected, output)

    def test_reports_two_errors_of_one_object(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "k8s"
            shutil.copytree(MANIFESTS, folder)
            text = (folder / "gateway.yaml").read_text()
            text = text.replace("containerPort: 8000", "containrPort: 8000").replace("replicas: 2", 'replicas: "two"')
            (folder / "gateway.yaml").write_text(text)
            _, output = self.check(folder)
            self.assertIn("containrPort", output)
            self.assertIn("'two'", output)


if __name__ == "__main__":
    unittest.main()
