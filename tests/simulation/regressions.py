"""Seeds that are kept: what they found, or which missing rule they notice.

A change of the plans or of the order in which randomness is drawn gives every seed another run.
Then search anew: `python -m tests.simulation --mutation RULE --seeds 500 --stop`.
"""

from __future__ import annotations

# seed -> what it found in the desk
REGRESSIONS: dict[int, str] = {
    100: "a lane that gave its account back was cancelled again, and the account was never retaken",
}

# rule -> the first seed that notices that it is missing
CAUGHT: dict[str, int] = {
    "answers-by-attempt": 68,
    "clean-up-in-peace": 100,
    "clock-margin": 4,
    "expiry-from-claim": 236,
    "fencing": 210,
    "known-never-absent": 41,
    "lag-between": 3,
    "looks-after-expiry": 3,
    "no-end-without-proof": 38,
    "one-send-per-permit": 8,
    "rung-order": 80,
    "same-id": 3,
    "second-look": 4,
    "whole-life": 412,
    "window": 82,
    "write-ahead": 1,
}
