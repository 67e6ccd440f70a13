"""The four processes, in the order they are started, and in the order they are stopped."""

PROCESSES = ("scheduler", "small_worker", "large_worker", "gateway")
STOP_ORDER = (
    "gateway",
    "small_worker",
    "large_worker",
    "scheduler",
)  # clients first, then those that serve them
