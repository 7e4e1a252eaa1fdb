"""What drives an account: the only code that may talk to its order endpoints.

runner    one process: holds leases, renews them, hands them over
drive     one account: recover first, then claim, send, reconcile and track until told to stop
recorder  writes what happened, all that has arrived in one transaction
sender    one claimed intent, one request
resolver  one intent in doubt: look, judge, decide
tracker   what is at the venue, followed to its end
absorb    one report of the venue, turned into changes
"""
