"""Asks a process's admin port whether it is alive and ready."""

import http.client

TIMEOUT_S = 1.0
DETAIL_CHARACTERS = 120


def ask(port: int, path: str) -> tuple[int, str]:
    """(status, first line of the body); status 0 when nothing answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read(4096).decode(errors="replace")
        return response.status, body.strip().partition("\n")[0][:DETAIL_CHARACTERS]
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def readiness(port: int) -> tuple[str, str]:
    """(starting | not ready | ready, detail)."""
    status, detail = ask(port, "/readyz")
    if status == 200:
        return "ready", ""
    return ("starting", "") if status == 0 else ("not ready", detail)
