"""Asks a process's admin port whether it is alive and ready, and for its pages."""

import http.client
import json

TIMEOUT_S = 1.0
DETAIL_CHARACTERS = 120


MOST_BODY_BYTES = 16 << 20


def get(port: int, path: str) -> tuple[int, str]:
    """(status, body); status 0 when nothing answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(MOST_BODY_BYTES).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def ask(port: int, path: str) -> tuple[int, str]:
    """(status, first line of the body); status 0 when nothing answers."""
    status, body = get(port, path)
    return status, body.strip().partition("\n")[0][:DETAIL_CHARACTERS]


def page(port: int, path: str) -> dict:
    """A JSON page; empty when there is none."""
    status, body = get(port, path)
    try:
        return json.loads(body) if status == 200 else {}
    except json.JSONDecodeError:
        return {}


def readiness(port: int) -> tuple[str, str]:
    """(starting | not ready | ready, detail)."""
    status, detail = ask(port, "/readyz")
    if status == 200:
        return "ready", ""
    return ("starting", "") if status == 0 else ("not ready", detail)
