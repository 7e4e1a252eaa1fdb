"""Seeds that are kept: what they found, or which missing rule they notice.

A change of the plans or of the order in which randomness is drawn gives every seed another run.
Then search anew: `python -m tests.simulation --mutation RULE --seeds 500 --stop`.
"""

from __future__ import annotations

# seed -> what it found in the desk
REGRESSIONS: dict[int, str] = {
    42: "a lane that gave its account back was cancelled again, and the account was never retaken",
}

# rule -> the first seed that notices that it is missing
CAUGHT: dict[str, int] = {
    "answers-by-attempt": 63,
    "clean-up-in-peace": 42,
    "clock-margin": 4,
    "expiry-from-claim": 236,
    "fencing": 25,
    "known-never-absent": 164,
    "lag-between": 4,
    "looks-after-expiry": 3,
    "no-end-without-proof": 38,
    "one-send-per-permit": 4,
    "rung-order": 311,
    "same-id": 4,
    "second-look": 4,
    "whole-life": 288,
    "window": 357,
    "write-ahead": 1,
}
