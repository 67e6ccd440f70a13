"""The folders in use: the checkout, TOKENROUTER_HOME, and the run folder of this checkout."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Places:
    """Paths only; nothing is created here. Two checkouts share `home` but never a run folder."""

    checkout: Path
    home: Path

    @property
    def lock(self) -> Path:
        return self.checkout / "tools" / "versions.lock"

    @property
    def downloads(self) -> Path:
        return self.home / "downloads"

    @property
    def models(self) -> Path:
        return self.home / "models"

    @property
    def kubernetes_tools(self) -> Path:
        return self.home / "tools" / "kubernetes"

    @property
    def buf(self) -> Path:
        return self.home / "tools" / "buf"

    @property
    def run(self) -> Path:
        name = hashlib.sha256(str(self.checkout).encode()).hexdigest()[:12]
        return self.home / "run" / name

    def libtorch(self, version: str) -> Path:
        return self.home / f"libtorch-{version}"

    def llama_cpp(self, version: str) -> Path:
        return self.home / f"llama_cpp-{version}"

    def build(self, preset: str) -> Path:
        return self.checkout / "build" / preset


def find_places() -> Places:
    checkout = Path(__file__).resolve().parents[2]
    default = Path.home() / ".cache" / "tokenrouter"
    home = Path(os.environ.get("TOKENROUTER_HOME") or default).expanduser().resolve()
    return Places(checkout=checkout, home=home)
