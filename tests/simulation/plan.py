"""What a seed decides before the run: the venue's rules, the faults, the people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from venues.gateway import SecretText, VenueSettings
from venues.profiles import PROFILES, Profile, Rung, UsedId

ACCOUNT = "main"
SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XRP/USDT")
FULL = (Rung.CLIENT_ID, Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS, Rung.TRADES)
LADDERS = (
    FULL,
    FULL,
    FULL,
    (Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS, Rung.TRADES),
    (Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS),
    (Rung.CLIENT_ID, Rung.OPEN_ORDERS),
    (Rung.OPEN_ORDERS, Rung.TRADES),
)
USED_IDS = (
    UsedId.UNIQUE_WHILE_OPEN,
    UsedId.UNIQUE_WHILE_OPEN,
    UsedId.UNKNOWN,
    UsedId.UNKNOWN,
    UsedId.REJECTED_FOREVER,
    UsedId.BURNED,
)


@dataclass(frozen=True)
class VenueRules:
    """What the venue does beyond its profile, within what the profile says.

    late_accept_s: the most that an accepted order stays out of every look-up. late_end_s: the most
    that an ended one stays out of the list of closed orders. forget_id_s: how long an ended order
    stays in the look-up by client order ID; None: for ever. all_orders: the list of closed orders
    shows the open ones too.
    """

    late_accept_s: float
    late_end_s: float
    late_trade_s: float
    forget_id_s: float | None
    all_orders: bool
    refuses: float  # share of orders that it definitely refuses
    fills_on_look: float  # chance that an open order ends while somebody looks
    eager: float  # share of orders that execute at once
    vanishes: float  # share of known orders that it stops showing, for a while or for ever
    pushes: float  # share of pushes that arrive


@dataclass(frozen=True)
class Faults:
    """Shares and sizes. Everything is zero once peace has come."""

    lost: float  # of requests and answers
    slow: float
    database: float  # of journal calls
    stall: float  # of journal calls: they take up to a lease and more
    crashes: float  # chance that a process's life ends in one
    freezes: float
    outage: tuple[float, float] | None
    limits: int  # how often the venue asks to be left alone
    clock_step_s: float
    venue_jitter_s: float  # its servers' clocks differ by at most twice this, within the margin


@dataclass(frozen=True)
class Plan:
    """One run."""

    seed: int
    profile: Profile
    rules: VenueRules
    faults: Faults
    timeout_ms: int
    expiry_ms: int
    lanes: int
    chaos_s: float
    decisions: int
    symbols: int  # that they are spread over
    cancels: int
    halts: int
    offsets_s: tuple[float, float, float, float]  # desk hosts (2), database, venue


def plan_of(seed: int) -> tuple[Plan, Random]:
    """The plan, and the randomness that the run goes on with."""
    random = Random(seed)
    profile = _profile(random)
    rules = _rules(random, profile)
    profile = replace(profile, whole_life=_whole_life(profile, rules))
    kind = random.choice(("calm", "rough", "wild", "wild"))
    plan = Plan(
        seed=seed,
        profile=profile,
        rules=rules,
        faults=_faults(random, kind, profile),
        timeout_ms=random.randrange(400, 1600),
        expiry_ms=random.randrange(800, 2400),
        lanes=random.choice((1, 1, 2)),
        chaos_s=random.uniform(4.0, 7.0),
        decisions=random.randint(4, 9),
        symbols=random.choice((1, 1, 2, 4)),
        cancels=random.choice((0, 0, 1, 2)),
        halts=random.choice((0, 0, 0, 1)),
        offsets_s=(
            random.uniform(-2, 2),
            random.uniform(-2, 2),
            random.uniform(-3, 3),
            random.uniform(-5, 5),
        ),
    )
    return plan, random


def _profile(random: Random) -> Profile:
    return replace(
        PROFILES["binance"],
        ladder=random.choice(LADDERS),
        expiry=random.random() < 0.75,
        used_id=random.choice(USED_IDS),
        visibility_lag_ms=random.randrange(300, 900),
        clock_margin_ms=random.randrange(60, 240),
        stream=random.random() < 0.5,
        page_size=2 if random.random() < 0.25 else 500,
        window_ms=random.choice((None, 86_400_000)),
    )


def _rules(random: Random, profile: Profile) -> VenueRules:
    lag_s = profile.visibility_lag_ms / 1000
    lists_closed = Rung.CLOSED_ORDERS in profile.ladder
    all_orders = lists_closed and random.random() < 0.8
    return VenueRules(
        late_accept_s=random.choice((0.0, lag_s, lag_s, lag_s)),
        late_end_s=0.0 if all_orders else random.choice((0.0, lag_s)),
        late_trade_s=random.choice((0.0, lag_s)),
        forget_id_s=random.choice((None, 0.0, 0.0, 0.3)) if lists_closed else None,
        all_orders=all_orders,
        refuses=random.choice((0.0, 0.0, 0.1, 0.3)),
        fills_on_look=random.choice((0.0, 0.35, 0.35)),
        eager=random.choice((0.1, 0.5, 0.9)),
        vanishes=random.choice((0.0, 0.0, 0.8)),
        pushes=random.choice((0.0, 0.5, 0.9, 1.0)),
    )


def _whole_life(profile: Profile, rules: VenueRules) -> bool:
    """One rung shows an order from its acceptance to long after its end."""
    return rules.all_orders or (Rung.CLIENT_ID in profile.ladder and rules.forget_id_s is None)


def _faults(random: Random, kind: str, profile: Profile) -> Faults:
    scale = {"calm": 0.2, "rough": 1.0, "wild": 2.0}[kind]
    start = random.uniform(0.5, 4.0)
    return Faults(
        lost=random.choice((0.15, 0.25, 0.4)) * scale,
        slow=random.choice((0.0, 0.1, 0.3)) * scale,
        database=random.choice((0.0, 0.0, 0.02)) * scale,
        stall=random.choice((0.0, 0.0, 0.08)) * scale,
        crashes=random.choice((0.0, 0.6, 0.9)) * min(scale, 1.0),
        freezes=random.choice((0.0, 0.0, 0.8)) * min(scale, 1.0),
        outage=(start, start + random.uniform(0.5, 3.0)) if random.random() < 0.2 * scale else None,
        limits=random.choice((0, 0, 0, 1)),
        clock_step_s=random.choice((0.0, 0.0, 1.0)),
        venue_jitter_s=random.choice((0.0, 0.45, 0.45)) * profile.clock_margin_ms / 1000,
    )


def settings_of(timeout_ms: int, expiry_ms: int) -> VenueSettings:
    """The one account of a simulated desk."""
    return VenueSettings(
        account=ACCOUNT,
        exchange="binance",
        symbols=SYMBOLS,
        api_key=SecretText("k"),
        secret=SecretText("s"),
        timeout_ms=timeout_ms,
        request_expiry_ms=expiry_ms,
    )
