"""The real desk in simulated time, against a simulated network and venue, driven by one seed.

loop       an event loop with virtual time, and processes that can crash and freeze
clocks     what each machine's clock shows
plan       what a seed decides: the venue's rules, the faults, the people
venue      an exchange with a ledger, as unkind as its profile allows
network    what may happen to a request, an answer and a push
gateway    the venues' contract, over that network
database   the journal on SQLite in memory, with faults at every commit
world      one run: chaos first, then peace
check      the ledger against the journal
mutations  rules taken out, one at a time
regressions  seeds that are kept
search     the command: many seeds, one seed, one story
speed      Django's repeated work done once
"""
