"""Seeds that are kept: what they found, or which missing rule they notice.

A change of the plans or of the order in which randomness is drawn gives every seed another run.
Then search anew: `python -m tests.simulation --mutation RULE --seeds 500 --stop`.
"""

from __future__ import annotations

# seed -> what it found in the desk
REGRESSIONS: dict[int, str] = {
    51: "a lane that gave its account back was cancelled again, and the account was never retaken",
}

# rule -> the first seed that notices that it is missing
CAUGHT: dict[str, int] = {
    "clean-up-in-peace": 51,
    "known-never-absent": 31,
    "lag-between": 201,
    "looks-after-expiry": 20,
    "no-end-without-proof": 83,
    "one-send-per-permit": 20,
    "same-id": 1,
    "second-look": 100,
    "window": 212,
    "write-ahead": 1,
}
