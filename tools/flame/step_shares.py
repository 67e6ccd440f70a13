"""The cost of the parts of an engine's step, from folded stacks (one line per stack: frames from the
outermost, separated by semicolons, then a number).

Only the thread that makes the step counts: it takes part in all work, so that its time is the step's
time. The others do the same work or wait."""

STEP = "StepMilliseconds"  # of tests/bench/engine/engine_steps_bench.cc: what is timed
LINEAR = ("PanelLinear::Run", "XnnLinear::Run", "Fp32Linear::Run", "CpuOps::Multiply")
QUANTIZE = ("Quantize", "quantize")
WAIT = ("WaitForChange", "__atomic_wait", "futex")
WAIT_IN = "ThreadPool::Run"  # into which the compiler may have put the wait
FORWARD = "Decoder::Forward"
ATTEND = ("CpuOps::Attend", "AttendTile")
PARTS = (
    "linear",  # layers' matrices
    "head",  # the output matrix
    "attention",
    "norm_rotary_activation",  # with the write of keys and values, and embedding
    "quantize",  # of activations
    "sampling",
    "wait_in_linear",  # for the other threads at the end of a matrix
    "wait_elsewhere",
    "rest",
)


def step_stacks(folded: str) -> dict[tuple[str, ...], int]:
    """Stacks of the stepping thread, from the step inwards."""
    stacks: dict[tuple[str, ...], int] = {}
    for line in folded.splitlines():
        text, _, count = line.rpartition(" ")
        frames = text.split(";")
        first = next((i for i, frame in enumerate(frames) if frame.endswith(STEP)), None)
        if first is not None:
            stack = ("step", *frames[first + 1 :])
            stacks[stack] = stacks.get(stack, 0) + int(count)
    return stacks


def not_unwound(folded: str) -> float:
    """Of the stepping thread's time: stacks that were not followed up to the step, so that their part
    lacks them. The first frame of a line names its thread."""
    lines = [line.rpartition(" ") for line in folded.splitlines()]
    lines = [(text.split(";"), int(count)) for text, _, count in lines]

    def followed(frames) -> bool:
        return any(frame.endswith(STEP) for frame in frames)

    threads = {frames[0] for frames, _ in lines if followed(frames)}
    own = [(frames, count) for frames, count in lines if frames[0] in threads]
    lost = sum(count for frames, count in own if not followed(frames))
    return lost / max(1, sum(count for _, count in own))


def part_of(stack: tuple[str, ...]) -> str:
    """The one of PARTS to which the stack's innermost frame belongs."""

    def has(names) -> bool:
        return any(name in frame for frame in stack for name in names)

    linear = has(LINEAR)
    if has(WAIT) or stack[-1].endswith(WAIT_IN):
        return "wait_in_linear" if linear else "wait_elsewhere"
    if has(QUANTIZE):
        return "quantize"
    sampling = has(("ChoiceSampler::",))
    if linear:
        return "head" if sampling else "linear"
    if sampling:
        return "sampling"
    if has(ATTEND):
        return "attention"
    return "norm_rotary_activation" if has((FORWARD,)) else "rest"


def shares(stacks: dict[tuple[str, ...], int]) -> dict[str, float]:
    """Of all time, by part; empty without a stack."""
    sums = dict.fromkeys(PARTS, 0)
    for stack, count in stacks.items():
        sums[part_of(stack)] += count
    total = sum(sums.values())
    return {part: count / total for part, count in sums.items()} if total else {}


def outside_linear(parts: dict[str, float]) -> float:
    """Time that is neither work on a matrix nor waiting for its end."""
    return 1 - sum(parts[part] for part in ("linear", "head", "wait_in_linear"))
