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


# What a seed is hard on. Two in ten are hard on nothing in particular.
THEMES = (
    "mixed",
    "mixed",
    "pages",  # the lists of the venue show a few orders only
    "margin",  # requests arrive when the venue's servers disagree whether they are too late
    "moving orders",  # resting orders end while somebody looks
    "stale claims",  # the desk stalls between a claim and its send
    "late owners",  # lanes sleep past their lease, wake, and go on for a while
    "slow refusals",  # the answer to a first attempt comes when a second one is under way
    "late evidence",  # the venue contradicts itself: fills after an end, refusals before fills
    "backup",  # the journal is put back to what it was some seconds ago
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
    fills_after_end: float  # share of ends that an execution follows, which it then reports
    refuses_first: float  # share of executions that a push calls rejected first


@dataclass(frozen=True)
class Faults:
    """Shares and sizes. Everything is zero once peace has come."""

    lost: float  # of requests and answers
    slow: float
    database: float  # of journal calls
    stall: float  # of journal calls: they take up to a lease and more
    crashes: float  # chance that a process's life ends in one
    freezes: float
    restore: tuple[float, float] | None  # when the image is taken, and when it is put back
    restore_told: bool  # the operator says so; else nothing is under way, and the venue shows it
    outage: tuple[float, float] | None
    limits: int  # how often the venue asks to be left alone
    clock_step_s: float
    venue_jitter_s: float  # its servers' clocks differ by at most twice this, within the margin


@dataclass(frozen=True)
class Plan:
    """One run."""

    seed: int
    theme: str
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
    theme = random.choice(THEMES)
    profile = _profile(random, theme)
    rules = _rules(random, profile, theme)
    profile = replace(profile, whole_life=_whole_life(profile, rules))
    kind = random.choice(("calm", "rough", "wild", "wild"))
    proof = theme in _ABOUT_PROOF
    chaos_s = random.uniform(4.5, 5.0) if proof else random.uniform(3.0, 5.0)
    if theme in SLEEPERS:  # time to sleep past a lease, and to wake
        chaos_s += 2.0
    plan = Plan(
        seed=seed,
        theme=theme,
        profile=profile,
        rules=rules,
        faults=_faults(random, kind, profile, theme, chaos_s),
        timeout_ms=1800 if theme == "slow refusals" else random.randrange(300, 1000),
        expiry_ms=400
        if theme == "slow refusals"
        else random.randrange(600, 900 if proof else 1600),
        lanes=2 if theme in SLEEPERS else random.choice((1, 1, 1, 2, 2, 3)),
        chaos_s=chaos_s,
        decisions=random.randint(4, 8),
        symbols=1 if theme == "pages" else random.choice((1, 1, 2, 4)),
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


# Themes about the proof of absence, which only some venues allow; and those about one chain of
# events, which other faults would mostly break.
_PRECISE = ("margin", "moving orders", "stale claims", "late owners", "slow refusals")
SLEEPERS = ("late owners", "slow refusals")
_ABOUT_PROOF = ("pages", "margin", "moving orders", "stale claims", "slow refusals")


def _profile(random: Random, theme: str) -> Profile:
    profile = replace(
        PROFILES["binance"],
        ladder=random.choice(LADDERS),
        expiry=random.random() < 0.75,
        used_id=random.choice(USED_IDS),
        visibility_lag_ms=random.randrange(200, 600),
        clock_margin_ms=random.randrange(60, 240),
        stream=theme not in ("moving orders", "slow refusals") and random.random() < 0.5,
        page_size=2 if random.random() < 0.25 else 500,
        window_ms=random.choice((None, 86_400_000)),
    )
    if theme == "backup":  # without a list of closed orders nobody can tell what a backup lacks
        ladder = random.choice((FULL, (Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS, Rung.TRADES)))
        return replace(profile, ladder=ladder, page_size=500)
    if theme not in _ABOUT_PROOF:
        return profile
    return replace(
        profile,
        ladder=FULL[1:] if theme == "pages" else FULL,
        expiry=True,
        page_size=2 if theme == "pages" else 500,
        clock_margin_ms={"margin": 240, "slow refusals": 60}.get(theme, profile.clock_margin_ms),
        visibility_lag_ms=200 if theme == "slow refusals" else profile.visibility_lag_ms,
        used_id=random.choice((UsedId.UNKNOWN, UsedId.UNIQUE_WHILE_OPEN)),
    )


def _rules(random: Random, profile: Profile, theme: str) -> VenueRules:
    lag_s = profile.visibility_lag_ms / 1000
    lists_closed = Rung.CLOSED_ORDERS in profile.ladder
    proof = theme in _ABOUT_PROOF
    all_orders = lists_closed and random.random() < (0.9 if proof else 0.8)
    late, moving = theme == "late evidence", theme == "moving orders"
    return VenueRules(
        late_accept_s=lag_s if proof else random.choice((0.0, lag_s, lag_s, lag_s)),
        late_end_s=0.0 if all_orders else random.choice((0.0, lag_s)),
        late_trade_s=random.choice((0.0, lag_s)),
        forget_id_s=random.choice((None, 0.0, 0.0, 0.3)) if lists_closed else None,
        all_orders=all_orders,
        refuses=random.choice((0.0, 0.0, 0.1, 0.3)),
        fills_on_look=0.35 if moving else random.choice((0.0, 0.35, 0.35)),
        eager=0.0 if moving else random.choice((0.1, 0.5, 0.9)),
        vanishes=0.0
        if proof or theme in ("backup", "late evidence")
        else random.choice((0.0, 0.0, 0.8)),
        pushes=random.choice((0.0, 0.5, 0.9, 1.0)),
        fills_after_end=random.choice((0.2, 0.6)) if late and lists_closed else 0.0,
        refuses_first=random.choice((0.0, 0.3)) if late and lists_closed else 0.0,
    )


def _whole_life(profile: Profile, rules: VenueRules) -> bool:
    """One rung shows an order from its acceptance to long after its end."""
    return rules.all_orders or (Rung.CLIENT_ID in profile.ladder and rules.forget_id_s is None)


def _faults(random: Random, kind: str, profile: Profile, theme: str, chaos_s: float) -> Faults:
    scale = {"calm": 0.2, "rough": 1.0, "wild": 2.0}[kind]
    if theme in _ABOUT_PROOF:
        scale = max(scale, 1.0)
    start = random.uniform(0.5, 3.0)
    image_at = random.uniform(0.4, chaos_s * 0.5)
    lost = random.choice((0.15, 0.25, 0.4)) * scale
    precise = theme in _PRECISE
    jitter_s = 0.45 * profile.clock_margin_ms / 1000
    return Faults(
        lost=0.4 if theme in ("margin", "moving orders", "stale claims") else lost,
        slow=0.0 if precise else random.choice((0.0, 0.1, 0.3)) * scale,
        database=0.0 if precise else random.choice((0.0, 0.0, 0.02)) * scale,
        stall=_stall(random, theme, precise) * scale,
        crashes=0.0 if precise else random.choice((0.0, 0.6, 0.9)) * min(scale, 1.0),
        freezes=0.0 if precise else random.choice((0.0, 0.0, 0.8)) * min(scale, 1.0),
        restore=(image_at, image_at + random.uniform(0.3, 2.0)) if theme == "backup" else None,
        restore_told=random.random() < 0.7,
        outage=(start, start + random.uniform(0.5, 2.0))
        if random.random() < 0.2 * scale and not precise
        else None,
        limits=0 if precise else random.choice((0, 0, 0, 1)),
        clock_step_s=random.choice((0.0, 0.0, 1.0)),
        venue_jitter_s=jitter_s if theme == "margin" else random.choice((0.0, 1.0, 1.0)) * jitter_s,
    )


def _stall(random: Random, theme: str, precise: bool) -> float:
    if theme == "stale claims":
        return 0.15
    return 0.0 if precise else random.choice((0.0, 0.0, 0.08))


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
