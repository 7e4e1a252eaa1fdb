"""The demo: a simulated venue, a strategy that trades there, and faults to watch."""
