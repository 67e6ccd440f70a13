"""Fetches one file from the model hub over HTTPS, resuming a part that is already there.

The hub is optional: any failure is reported as HubUnavailable and the caller continues with the
mirror.
"""

import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path

HUB = os.environ.get("TOKENROUTER_MODEL_HUB", "https://huggingface.co")
CONNECT_TIMEOUT_S = 5.0
READ_BYTES = 1 << 20


class HubUnavailable(Exception):
    """The reason, as one phrase."""


def file_url(repository: str, file: str) -> str:
    return f"{HUB}/{repository}/resolve/main/{file}"


def fetch(repository: str, file: str, part: Path, on_total) -> None:
    """Appends to `part` until the file is whole; on_total(bytes so far) is called as bytes come."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(
        file_url(repository, file), headers={"User-Agent": "tokenrouter"}
    )
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.urlopen(request, timeout=CONNECT_TIMEOUT_S) as response:
            if response.status != 206:
                have = 0  # the hub sends the file from its start
            with open(part, "ab" if have else "wb") as out:
                while block := response.read(READ_BYTES):
                    out.write(block)
                    have += len(block)
                    on_total(have)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to send: the part is whole
            return
        raise HubUnavailable(f"it answered {error.code}") from error
    except (OSError, http.client.HTTPException) as error:
        raise HubUnavailable(str(getattr(error, "reason", error))) from error
