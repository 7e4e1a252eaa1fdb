"""The protocol as a small explicit-state model, and a search through everything it can do.

`venue` is the world outside (network and venue), `desk` is the journal and its lanes, `proof` asks
the real `orders.verdict.judge`, `properties` says what must never be, `explore` visits every state
up to a bound. docs/protocol.md tells it in words. `python -m tests.model --help` runs it.
"""
