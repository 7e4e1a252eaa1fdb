"""What the desk remembers. The rules that matter are the database's own constraints.

State is written by `orders.journal` alone; nothing else may create or change these rows, save for
tokens, heartbeats and lane processes.
"""

from __future__ import annotations

import functools
import operator
from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import F, Q

from orders.fields import ExactDecimalField
from orders.machine import (
    ACTIVE,
    IN_DOUBT,
    TERMINAL,
    Act,
    AlertState,
    Event,
    MarketState,
    Note,
    State,
    allowed_moves,
)


def _choices(*enums: Any) -> list[tuple[str, str]]:
    return [(member.value, member.value) for enum in enums for member in enum]


class Desk(models.Model):
    """The one row that names this journal. Its prefix leads every client order ID."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    prefix = models.CharField(max_length=8)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="desk_is_one")]

    def __str__(self) -> str:
        return f"desk {self.prefix}"


class Account(models.Model):
    """One set of credentials at one venue. The secrets stay in the environment."""

    name = models.CharField(max_length=64, unique=True)
    exchange = models.CharField(max_length=64)
    base_url = models.CharField(max_length=255, blank=True)
    sandbox = models.BooleanField(default=False)
    active = models.BooleanField(default=True)  # in the account file
    timeout_ms = models.PositiveIntegerField(default=5000)
    request_expiry_ms = models.PositiveIntegerField(default=3000)
    absence = models.CharField(max_length=16, default="human")
    limited_until = models.DateTimeField(null=True, blank=True)  # a ban or a rate limit
    # The journal may lack what was decided before then: it was restored from a backup.
    restored_at = models.DateTimeField(null=True, blank=True)
    clock_offset_ms = models.FloatField(null=True, blank=True)
    clock_checked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Lease(models.Model):
    """Who may act for an account. `epoch` only grows: it is the fencing token."""

    account = models.OneToOneField(Account, models.CASCADE, primary_key=True)
    owner = models.CharField(max_length=128, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    deadline = models.DateTimeField(null=True, blank=True)  # by the database's clock
    taken_at = models.DateTimeField(null=True, blank=True)
    recovered_at = models.DateTimeField(null=True, blank=True)  # null: not yet, in this epoch

    def __str__(self) -> str:
        return f"{self.account_id} epoch {self.epoch} {self.owner or 'free'}"


class Market(models.Model):
    """One symbol of one account."""

    account = models.ForeignKey(Account, models.PROTECT, related_name="markets")
    symbol = models.CharField(max_length=64)
    base = models.CharField(max_length=32, blank=True)
    quote = models.CharField(max_length=32, blank=True)
    active = models.BooleanField(default=True)  # in the account file
    state = models.CharField(
        max_length=8, choices=_choices(MarketState), default=MarketState.OPEN.value
    )
    halted_at = models.DateTimeField(null=True, blank=True)
    halted_reason = models.TextField(blank=True)
    position = ExactDecimalField(default=Decimal)  # of the base currency, from the fills
    rules = models.JSONField(default=dict, blank=True)  # the venue's steps and limits, as text
    look_requested_at = models.DateTimeField(null=True, blank=True)
    last_event_at = models.DateTimeField(null=True, blank=True)
    # When recovery saw all its recent orders; null: not yet, and nothing is sent there.
    looked_over_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "symbol"], name="market_once"),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in MarketState]),
                name="market_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.account_id}:{self.symbol}"


class Intent(models.Model):
    """A journaled decision and its order; one row for ever."""

    account = models.ForeignKey(Account, models.PROTECT, related_name="intents")
    market = models.ForeignKey(Market, models.PROTECT, related_name="intents")
    strategy = models.CharField(max_length=64)
    symbol = models.CharField(max_length=64)
    side = models.CharField(max_length=4, choices=[("buy", "buy"), ("sell", "sell")])
    type = models.CharField(max_length=16, choices=[("market", "market"), ("limit", "limit")])
    quantity = ExactDecimalField()
    price = ExactDecimalField(null=True, blank=True)
    time_in_force = models.CharField(max_length=8, blank=True)
    post_only = models.BooleanField(default=False)
    reduce_only = models.BooleanField(default=False)
    params = models.JSONField(default=dict, blank=True)
    decided_at = models.DateTimeField()
    valid_until = models.DateTimeField()
    key = models.CharField(max_length=200, blank=True)  # the caller's, "" for none
    decision_key = models.CharField(max_length=64)
    contents = models.JSONField(default=dict)  # the decision as it was admitted
    client_order_id = models.CharField(max_length=64)
    admitted_as = models.CharField(max_length=16, choices=_choices(State))
    submitted_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    state = models.CharField(max_length=16, choices=_choices(State))
    former_state = models.CharField(max_length=16, blank=True)  # before a contradiction
    version = models.PositiveIntegerField(default=1)  # the number of its last transition
    updated_at = models.DateTimeField()
    reason = models.TextField(blank=True)  # of the last change of state

    attempt = models.PositiveSmallIntegerField(default=0)
    returns = models.PositiveSmallIntegerField(default=0)  # how often it came back to INTENT
    not_before = models.DateTimeField(null=True, blank=True)  # earliest next claim
    epoch = models.PositiveBigIntegerField(null=True, blank=True)  # of the last claim
    claimed_at = models.DateTimeField(null=True, blank=True)
    last_expiry_ms = models.BigIntegerField(null=True, blank=True)  # venue clock, over all attempts
    known = models.BooleanField(default=False)  # something once showed that the order exists
    doubt_since = models.DateTimeField(null=True, blank=True)

    venue_order_id = models.CharField(max_length=128, blank=True)
    venue_filled = ExactDecimalField(default=Decimal)  # executed quantity, as the venue reports it
    filled = ExactDecimalField(default=Decimal)  # executed quantity, from booked fills
    cost = ExactDecimalField(default=Decimal)  # sum of price times quantity over the fills
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.CharField(max_length=200, blank=True)
    orphan = models.BooleanField(default=False)  # the venue had it before the journal did
    cleared_at = models.DateTimeField(null=True, blank=True)  # proven absent before a first send
    # When it ended, while something of it may still arrive; null: nothing can.
    watched_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "client_order_id"], name="intent_client_order_id_once"
            ),
            models.UniqueConstraint(fields=["account", "decision_key"], name="intent_key_once"),
            models.UniqueConstraint(
                fields=["market", "venue_order_id"],
                condition=~Q(venue_order_id=""),
                name="intent_venue_order_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in State]), name="intent_state_known"
            ),
            models.CheckConstraint(condition=Q(side__in=["buy", "sell"]), name="intent_side_known"),
            models.CheckConstraint(
                condition=Q(type__in=["market", "limit"]), name="intent_type_known"
            ),
            # Write ahead: a request may only be under way where its claim was recorded.
            models.CheckConstraint(
                condition=~Q(state=State.IN_FLIGHT.value)
                | Q(attempt__gte=1, epoch__isnull=False, claimed_at__isnull=False),
                name="intent_in_flight_was_claimed",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.FILLED.value) | Q(filled=F("venue_filled")),
                name="intent_filled_is_booked",
            ),
            models.CheckConstraint(
                condition=Q(watched_since__isnull=True)
                | Q(state__in=sorted(state.value for state in TERMINAL)),
                name="intent_watched_has_ended",
            ),
        ]
        indexes = [
            models.Index(
                fields=["account", "state", "id"],
                name="intent_active",
                condition=Q(state__in=sorted(state.value for state in ACTIVE)),
            ),
            models.Index(
                fields=["market"],
                name="intent_doubt",
                condition=Q(state__in=sorted(state.value for state in IN_DOUBT)),
            ),
            models.Index(
                fields=["account", "watched_since"],
                name="intent_watched",
                condition=Q(watched_since__isnull=False),
            ),
            models.Index(fields=["market", "-id"], name="intent_of_market"),
            models.Index(fields=["strategy", "-id"], name="intent_of_strategy"),
            models.Index(fields=["created_at"], name="intent_created_at"),
            models.Index(fields=["client_order_id"], name="intent_client_order_id"),
            models.Index(fields=["venue_order_id"], name="intent_venue_order_id"),
        ]

    def __str__(self) -> str:
        return f"{self.client_order_id} {self.side} {self.quantity} {self.symbol} {self.state}"


def _moves_check() -> Q:
    """An intent's entry is a listed move, or a note that changes nothing."""
    moves = [
        Q(from_state=source.value if source else "", event=event.value, to_state=target.value)
        for source, event, target in allowed_moves()
    ]
    notes = Q(event__in=[note.value for note in Note], to_state=F("from_state"))
    return functools.reduce(operator.or_, moves, notes)


class Transition(models.Model):
    """One line of the journal: a durable change, append-only. Triggers refuse UPDATE and DELETE."""

    SUBJECTS = ("intent", "market", "alert", "account")

    at = models.DateTimeField()
    subject = models.CharField(max_length=8, choices=[(name, name) for name in SUBJECTS])
    account = models.ForeignKey(Account, models.PROTECT, null=True, related_name="transitions")
    market = models.ForeignKey(Market, models.PROTECT, null=True, related_name="transitions")
    intent = models.ForeignKey(Intent, models.PROTECT, null=True, related_name="transitions")
    alert = models.ForeignKey("Alert", models.PROTECT, null=True, related_name="transitions")
    seq = models.PositiveIntegerField(null=True)  # 1, 2, 3 … of its intent
    event = models.CharField(max_length=24, choices=_choices(Event, Note, Act))
    from_state = models.CharField(max_length=16, blank=True)
    to_state = models.CharField(max_length=16, blank=True)
    actor = models.CharField(max_length=200)  # "lane:…", "user:…", "token:…"
    reason = models.TextField(blank=True)
    evidence = models.JSONField(default=dict, blank=True)
    attempt = models.PositiveSmallIntegerField(null=True)
    epoch = models.PositiveBigIntegerField(null=True)
    act_id = models.UUIDField()  # shared by the entries of one act

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["intent", "seq"], name="transition_numbered_once"),
            models.CheckConstraint(
                condition=~Q(subject="intent")
                | Q(intent__isnull=False, seq__isnull=False, market__isnull=False),
                name="transition_of_intent_is_numbered",
            ),
            models.CheckConstraint(
                condition=Q(subject="intent") | Q(seq__isnull=True),
                name="transition_of_others_is_not",
            ),
            models.CheckConstraint(
                condition=~Q(subject="intent") | _moves_check(), name="transition_is_listed"
            ),
        ]
        indexes = [
            models.Index(fields=["market", "-id"], name="transition_of_market"),
            models.Index(fields=["account", "-id"], name="transition_of_account"),
            models.Index(fields=["actor", "-id"], name="transition_of_actor"),
            models.Index(fields=["event", "-id"], name="transition_of_event"),
            models.Index(fields=["at"], name="transition_at"),
        ]

    def __str__(self) -> str:
        return f"{self.pk} {self.subject} {self.event} {self.from_state}->{self.to_state}"


class Fill(models.Model):
    """One execution, booked once."""

    account = models.ForeignKey(Account, models.PROTECT, related_name="fills")
    market = models.ForeignKey(Market, models.PROTECT, related_name="fills")
    intent = models.ForeignKey(Intent, models.PROTECT, related_name="fills")
    venue_trade_id = models.CharField(max_length=128)
    venue_order_id = models.CharField(max_length=128)
    side = models.CharField(max_length=4, choices=[("buy", "buy"), ("sell", "sell")])
    quantity = ExactDecimalField()
    price = ExactDecimalField()
    fee = ExactDecimalField(default=Decimal)
    fee_currency = models.CharField(max_length=32, blank=True)
    at = models.DateTimeField()  # the venue's time
    booked_at = models.DateTimeField()
    actor = models.CharField(max_length=200)  # who brought it

    class Meta:
        constraints = [
            # Both sides of a trade with oneself carry one trade ID.
            models.UniqueConstraint(
                fields=["market", "venue_trade_id", "venue_order_id"], name="fill_booked_once"
            ),
        ]
        indexes = [models.Index(fields=["market", "-id"], name="fill_of_market")]

    def __str__(self) -> str:
        return f"{self.venue_trade_id} {self.side} {self.quantity} at {self.price}"


class Alert(models.Model):
    """Something that a person must see. At most one per `topic` is not resolved."""

    SEVERITIES = ("critical", "warning", "info")

    account = models.ForeignKey(Account, models.PROTECT, null=True, related_name="alerts")
    market = models.ForeignKey(Market, models.PROTECT, null=True, blank=True, related_name="alerts")
    intent = models.ForeignKey(Intent, models.PROTECT, null=True, blank=True, related_name="alerts")
    kind = models.CharField(max_length=32)  # e.g. "market_halted"
    topic = models.CharField(max_length=200)  # what makes two of them the same
    severity = models.CharField(max_length=8, choices=[(name, name) for name in SEVERITIES])
    message = models.TextField()
    remedy = models.TextField(blank=True)
    state = models.CharField(max_length=12, choices=_choices(AlertState))
    times = models.PositiveIntegerField(default=1)
    raised_at = models.DateTimeField()
    last_raised_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=200, blank=True)
    note = models.TextField(blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["topic"],
                condition=~Q(state=AlertState.RESOLVED.value),
                name="alert_open_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in AlertState]),
                name="alert_state_known",
            ),
        ]
        indexes = [models.Index(fields=["state", "-id"], name="alert_by_state")]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class ApiToken(models.Model):
    """A program's credential. Only the SHA-256 of the token is kept."""

    name = models.CharField(max_length=64, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=16)
    accounts = models.JSONField(default=list, blank=True)  # names; empty: all
    strategies = models.JSONField(default=list, blank=True)  # names; empty: all
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class LaneProcess(models.Model):
    """A running lane task, by its own word."""

    owner = models.CharField(max_length=128, unique=True)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()  # by the database's clock

    def __str__(self) -> str:
        return self.owner


class Heartbeat(models.Model):
    """The last sign of life of a part of the desk."""

    name = models.CharField(max_length=64, unique=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} {self.at:%H:%M:%S}"
