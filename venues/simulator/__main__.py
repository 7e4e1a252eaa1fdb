"""python -m venues.simulator --port 9100"""

from __future__ import annotations

import argparse
import sys

from venues.simulator.cli import add_arguments, options_from
from venues.simulator.main import serve


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m venues.simulator", description="A simulated venue, until SIGTERM."
    )
    add_arguments(parser)
    try:
        serve(options_from(vars(parser.parse_args())))
    except (OSError, ValueError) as error:
        sys.exit(f"the simulator cannot start: {error}")


if __name__ == "__main__":
    main()
