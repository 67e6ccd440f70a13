import os
import tempfile
import unittest
import zipfile
from pathlib import Path

from buf_tool import unpack_buf
from failure import Failure

SCRIPT = "buf_bin-1.0.data/scripts/buf"


class UnpackBufTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.wheel = Path(folder.name) / "buf.whl"
        self.target = Path(folder.name) / "buf"

    def write(self, *names: str):
        with zipfile.ZipFile(self.wheel, "w") as archive:
            for name in names:
                archive.writestr(name, f"text of {name}")

    def test_takes_the_program_and_makes_it_executable(self):
        self.write("buf_bin/__init__.py", SCRIPT)
        unpack_buf(self.wheel, self.target)
        self.assertEqual(self.target.read_text(), f"text of {SCRIPT}")
        self.assertTrue(os.access(self.target, os.X_OK))

    def test_says_that_a_wheel_without_the_program_is_not_one(self):
        self.write("buf_bin/__init__.py")
        with self.assertRaisesRegex(Failure, "one program buf is expected, found 0"):
            unpack_buf(self.wheel, self.target)
        self.assertFalse(self.target.exists())


if __name__ == "__main__":
    unittest.main()
