"""The two commands that start a simulator, and the page that describes its language."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.simulator import ROOT, Simulator

COMMANDS = {
    "module": [sys.executable, "-m", "venues.simulator"],
    "manage.py": [sys.executable, "manage.py", "simulate"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_prints_the_address_serves_and_stops_cleanly(command: list[str]) -> None:
    with subprocess.Popen(
        [*command, "--port", "0", "--used-id", "burned"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with urlopen(f"{url}/api/v3/time", timeout=5) as answer:
            assert "serverTime" in json.load(answer)
        process.terminate()
        assert process.wait(5) == 0


@pytest.mark.parametrize(
    ("option", "value"), [("--port", "70000"), ("--tick-ms", "0"), ("--used-id", "sometimes")]
)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_wrong_option_is_named(command: list[str], option: str, value: str) -> None:
    ended = subprocess.run(
        [*command, option, value], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode != 0
    assert option in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_taken_port_is_told(sim: Simulator) -> None:
    ended = subprocess.run(
        [*COMMANDS["module"], "--port", str(sim.port)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1
    assert "address already in use" in ended.stderr


def test_every_fault_of_the_documentation_can_be_loaded(sim: Simulator) -> None:
    page = Path(ROOT, "docs", "simulator.md").read_text()
    lines = page.split("```json\n")[1].split("```")[0].splitlines()
    assert len(lines) > 10
    assert len(sim.faults(*(json.loads(line) for line in lines))) == len(lines)
