"""Folded stacks as perf and inferno give them, and the parts that they belong to."""

import unittest

from step_shares import not_unwound, outside_linear, part_of, shares, step_stacks

STEP = "bench-1/7;_start;Main;(anonymous namespace)::StepMilliseconds;"
FORWARD = "TorchEngine::Step;Decoder::Forward;Decoder::FinishLayer;"
POOL = "ThreadPool::Run;ThreadPool::RunOne;"
FOLDED = "\n".join(
    (
        f"{STEP}{FORWARD}PanelLinear::Run;{POOL}Panel<Int8Kernel> 600",
        f"{STEP}{FORWARD}PanelLinear::Run;ThreadPool::Run 50",
        f"{STEP}{FORWARD}PanelLinear::Run;QuantizedRows::Quantize 10",
        f"{STEP}{FORWARD}CpuOps::Attend;{POOL}AttendTile<VectorAvx512, 6> 90",
        f"{STEP}{FORWARD}CpuOps::Attend;ThreadPool::Run;std::__atomic_wait;futex_wait 20",
        f"{STEP}{FORWARD}CpuOps::AddNorm;RmsNorm 30",
        f"{STEP}ChoiceSampler::Sample;PanelLinear::Run;{POOL}Panel<Int8Kernel> 150",
        f"{STEP}ChoiceSampler::Sample;SampleChoices 40",
        f"{STEP}clock_gettime 10",
        f"bench-1/8;clone3;ThreadPool::Work;{POOL}Panel<Int8Kernel> 900",
        "bench-1/7;[unknown] 250",
    )
)


class StepSharesTest(unittest.TestCase):
    def test_parts_are_shares_of_the_stepping_thread(self):
        parts = shares(step_stacks(FOLDED))
        self.assertEqual(
            parts,
            {
                "linear": 0.6,
                "head": 0.15,
                "attention": 0.09,
                "norm_rotary_activation": 0.03,
                "quantize": 0.01,
                "sampling": 0.04,
                "wait_in_linear": 0.05,
                "wait_elsewhere": 0.02,
                "rest": 0.01,
            },
        )
        self.assertAlmostEqual(outside_linear(parts), 0.2)

    def test_what_was_not_followed_to_the_step_is_said(self):
        self.assertAlmostEqual(not_unwound(FOLDED), 0.2)

    def test_work_on_items_is_no_waiting(self):
        self.assertEqual(part_of(("step", "PanelLinear::Run", "ThreadPool::RunOne")), "linear")

    def test_nothing_sampled_is_no_share(self):
        self.assertEqual(shares(step_stacks("bench-1/8;clone3 5\n")), {})
        self.assertEqual(not_unwound(""), 0)


if __name__ == "__main__":
    unittest.main()
