"""An exchange for tests and demonstrations: its own ledger, and faults on demand.

The engine (exchange, balances, markets, prices) knows no HTTP. A dialect, such as `binance`, turns
a venue's wire format into calls of the engine. The server applies the fault plan around a dialect.
"""
