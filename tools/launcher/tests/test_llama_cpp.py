import io
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import wheels
from failure import Failure
from llama_cpp import unpack_vendored
from versions import Wheel

PACKAGE = "llama_cpp_python-1.0"


class UnpackVendoredTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / f"{PACKAGE}.tar.gz"
        self.target = self.folder / "source"

    def write(self, files: dict[str, str]):
        with tarfile.open(self.package, "w:gz") as archive:
            for name, text in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))

    def test_takes_the_vendored_folder_alone(self):
        self.write(
            {
                f"{PACKAGE}/setup.py": "no",
                f"{PACKAGE}/vendor/llama.cpp/CMakeLists.txt": "yes",
                f"{PACKAGE}/vendor/llama.cpp/src/llama.cpp": "yes too",
                f"{PACKAGE}/vendor/other/CMakeLists.txt": "no",
            }
        )
        unpack_vendored(self.package, self.target)
        found = sorted(
            str(path.relative_to(self.target))
            for path in self.target.rglob("*")
            if path.is_file()
        )
        self.assertEqual(found, ["CMakeLists.txt", "src/llama.cpp"])
        self.assertEqual((self.target / "CMakeLists.txt").read_text(), "yes")

    def test_refuses_a_member_that_leads_out(self):
        self.write({f"{PACKAGE}/vendor/llama.cpp/../../../out": "no"})
        with self.assertRaisesRegex(Failure, "leads out"):
            unpack_vendored(self.package, self.target)

    def test_says_what_a_package_without_it_lacks(self):
        self.write({f"{PACKAGE}/setup.py": "no"})
        with self.assertRaisesRegex(Failure, "holds no vendor/llama.cpp"):
            unpack_vendored(self.package, self.target)


class DownloadSourceTest(unittest.TestCase):
    def test_pins_the_hash_before_pip_reads_the_package(self):
        source = Wheel(package="a-b", version="1.0", sha256="0" * 64)
        with tempfile.TemporaryDirectory() as folder:
            pinned = []

            def fake_run(command, what, env):
                pinned.append(Path(command[-1]).read_text())
                (Path(folder) / "a_b-1.0.tar.gz").write_bytes(b"other bytes")

            with mock.patch.object(wheels, "run", fake_run):
                with self.assertRaisesRegex(Failure, "sha256"):
                    wheels.download_source(source, Path(folder))
            self.assertEqual(pinned, [f"a-b==1.0 --hash=sha256:{'0' * 64}\n"])
            self.assertFalse((Path(folder) / "a_b-1.0.tar.gz").exists())


if __name__ == "__main__":
    unittest.main()
