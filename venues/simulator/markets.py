"""The symbols, and the filters that an order must pass."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from venues.simulator.orders import Reason, RefusedError, Ticket

# symbol base: (start price, price tick, quantity step), all against USDT
NAMED: dict[str, tuple[str, str, str]] = {
    "BTC": ("60000", "0.01", "0.00001"),
    "ETH": ("3000", "0.01", "0.0001"),
    "SOL": ("150", "0.01", "0.001"),
    "BNB": ("600", "0.01", "0.001"),
    "XRP": ("0.5", "0.0001", "0.1"),
    "ADA": ("0.4", "0.0001", "0.1"),
    "DOGE": ("0.12", "0.00001", "1"),
    "LTC": ("80", "0.01", "0.001"),
    "DOT": ("6", "0.001", "0.01"),
    "AVAX": ("30", "0.01", "0.01"),
    "LINK": ("14", "0.01", "0.01"),
    "TRX": ("0.13", "0.0001", "0.1"),
    "ATOM": ("7", "0.001", "0.01"),
    "UNI": ("8", "0.001", "0.01"),
    "ETC": ("22", "0.01", "0.01"),
    "XLM": ("0.1", "0.0001", "1"),
    "NEAR": ("5", "0.001", "0.1"),
    "FIL": ("4", "0.001", "0.01"),
    "APT": ("7", "0.001", "0.01"),
    "ARB": ("0.8", "0.0001", "0.1"),
}
GENERIC = ("100", "0.01", "0.0001")  # T01USDT .. T120USDT
GENERIC_COUNT = 120
QUOTE = "USDT"
LEVEL_NOTIONAL = Decimal(25_000)  # about what one price level of the book holds, in quote


@dataclass(frozen=True, slots=True)
class Market:
    """One symbol's rules. `level_quantity` is what each price level of its book holds."""

    symbol: str
    base: str
    quote: str
    start_price: Decimal
    tick: Decimal
    step: Decimal
    level_quantity: Decimal
    min_notional: Decimal = Decimal(5)
    max_notional: Decimal = Decimal(900_000_000)
    max_price: Decimal = Decimal(1_000_000)
    max_quantity: Decimal = Decimal(9_000_000)

    def check(self, ticket: Ticket, last_price: Decimal) -> None:
        """Raise RefusedError where the ticket fails a filter."""
        price = ticket.price
        if price is not None and (price < self.tick or price > self.max_price or price % self.tick):
            raise RefusedError(Reason.PRICE_FILTER)
        quantity = ticket.quantity
        if quantity < self.step or quantity > self.max_quantity or quantity % self.step:
            raise RefusedError(Reason.LOT_SIZE)
        notional = quantity * (last_price if price is None else price)
        if not self.min_notional <= notional <= self.max_notional:
            raise RefusedError(Reason.NOTIONAL)

    def round_quantity(self, quantity: Decimal) -> Decimal:
        """Down to a whole number of steps."""
        return (quantity / self.step).to_integral_value(ROUND_DOWN) * self.step

    def round_price(self, price: Decimal) -> Decimal:
        """To a whole number of ticks, one at least."""
        return max((price / self.tick).to_integral_value() * self.tick, self.tick)


def _market(base: str, figures: tuple[str, str, str]) -> Market:
    price, tick, step = (Decimal(figure) for figure in figures)
    level = LEVEL_NOTIONAL / price
    # One significant digit, so that people can see why a large order fills in the parts it does.
    level = level.quantize(Decimal(1).scaleb(level.adjusted()), ROUND_DOWN)
    return Market(base + QUOTE, base, QUOTE, price, tick, step, max(level, step))


def all_markets() -> dict[str, Market]:
    """Every symbol of the simulator, by its venue name."""
    figures = dict(NAMED)
    figures.update({f"T{number:02}": GENERIC for number in range(1, GENERIC_COUNT + 1)})
    markets = (_market(base, figure) for base, figure in figures.items())
    return {market.symbol: market for market in markets}
