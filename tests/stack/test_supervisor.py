"""What becomes of a desk whose processes are killed, frozen or told to stop."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.desk import Desk, DeskError, alive
from tests.support.simulator import Simulator

GONE_WITHIN_S = 10.0
TAKEN_OVER_WITHIN_S = 5.0  # what is promised after the loss of a lane
LANE_BACK_WITHIN_S = 2.0
RESTARTED_WITHIN_S = 15.0
SLOW_START_S = 20.0  # more than lanes that ran may be missing
NOTICED_WITHIN_S = 45.0  # a hang is noticed by silence, which takes longer than a death

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def desk(simulator: Simulator, database: str | None) -> Iterator[Desk]:
    with Desk(simulator.url, database_url=database) as desk:
        yield desk


@pytest.fixture(scope="module")
def lasting(simulator: Simulator) -> Iterator[Desk]:
    """A desk that several tests hurt; each waits until it is whole again."""
    with Desk(simulator.url) as desk:
        yield desk


def kill(pid: int) -> None:
    assert pid, "there is no such process"
    os.kill(pid, signal.SIGKILL)


def whole(desk: Desk) -> bool:
    return len(desk.lane_pids()) == 2 and desk.is_ready()


def beat(desk: Desk) -> object:
    rows = desk.sql("SELECT at FROM orders_heartbeat WHERE name = 'work'")
    return rows[0][0] if rows else None


def reader_of(workers: list[int]) -> int:
    """The idle worker that holds the queue's read lock: its main thread sits in read()."""
    for pid in workers:
        words = Path(f"/proc/{pid}/syscall").read_text().split()
        if words[0] == "0" and alive(pid):
            return pid
    return 0


def test_term_stops_everything_in_ten_seconds_and_leaves_no_process(desk: Desk) -> None:
    desk.wait(lambda: whole(desk), "both lanes run", RESTARTED_WITHIN_S)
    connection = HTTPConnection(urlsplit(desk.url).netloc, timeout=10)
    connection.request(
        "GET",
        "/api/v1/transitions",
        headers={
            "Authorization": f"Bearer {desk.token('viewer')}",
            "Accept": "text/event-stream",
        },
    )
    with closing(connection):
        assert connection.getresponse().status == 200  # a stream that never ends by itself
        assert desk.stop() < GONE_WITHIN_S
    assert desk.processes() == {}
    assert desk.process is not None
    assert desk.process.returncode == 0
    assert not desk.events("child_killed")
    assert [event["reason"] for event in desk.events("lane_ended")] == ["told to stop"] * 2


def test_copies_of_lanes_that_wait_in_the_cluster_do_not_hold_up_the_stop(
    simulator: Simulator,
) -> None:
    with Desk(simulator.url) as desk:
        desk.wait(lambda: whole(desk), "both lanes run", RESTARTED_WITHIN_S)
        desk.python(
            "from django_q.tasks import async_task\n"
            "for _ in range(4): async_task('orders.tasks.lane', cluster='lanes', timeout=-1)\n"
            "result = None"
        )
        free = "SELECT 1 FROM django_q_ormq WHERE key = 'lanes' AND lock <= CURRENT_TIMESTAMP"
        desk.wait(lambda: not desk.sql(free), "the copies are fetched", RESTARTED_WITHIN_S)
        # A busy machine: the lanes have ended long before the cluster's leader is told.
        leader, lanes = desk.pid("lanes"), desk.lane_pids()
        os.kill(leader, signal.SIGSTOP)
        assert desk.process is not None
        desk.process.terminate()
        desk.wait(lambda: not any(map(alive, lanes)), "the lanes ended", GONE_WITHIN_S)
        empty = "SELECT 1 FROM django_q_ormq WHERE key = 'lanes'"
        desk.wait(lambda: not desk.sql(empty), "a copy is taken up", LANE_BACK_WITHIN_S)
        os.kill(leader, signal.SIGCONT)
        desk.stop()
        assert not desk.events("child_killed")
        assert len(desk.events("lane_started")) == 2


def test_it_stops_in_time_while_the_database_is_locked(simulator: Simulator) -> None:
    with Desk(simulator.url) as desk, closing(sqlite3.connect(desk.data / "db.sqlite3")) as held:
        held.execute("BEGIN EXCLUSIVE")
        assert desk.stop() < GONE_WITHIN_S
        assert desk.processes() == {}


def test_after_the_death_of_a_lane_another_has_the_account_and_a_third_stands_by(
    desk: Desk,
) -> None:
    desk.wait(lambda: whole(desk), "both lanes run", RESTARTED_WITHIN_S)
    before = desk.holder()
    dead = desk.kill_worker()
    desk.wait(
        lambda: desk.holder() not in ("", before),
        "the other lane holds the account",
        TAKEN_OVER_WITHIN_S,
    )
    desk.wait(lambda: len(desk.lane_pids()) == 2, "the missing lane is back", LANE_BACK_WITHIN_S)
    assert dead not in desk.lane_pids()


@pytest.mark.parametrize("child", ["web", "lanes", "work"])
def test_a_killed_leader_comes_back_with_a_session_of_its_own(lasting: Desk, child: str) -> None:
    lasting.wait(lambda: whole(lasting), "the desk is whole", RESTARTED_WITHIN_S)
    old, beaten = lasting.pid(child), beat(lasting)
    orphans = lasting.workers(child)
    kill(old)
    lasting.wait(
        lambda: lasting.pid(child) not in (0, old), f"{child} runs again", RESTARTED_WITHIN_S
    )
    lasting.wait(lambda: whole(lasting), "the desk is whole again", RESTARTED_WITHIN_S)
    assert not [pid for pid in orphans if alive(pid)]
    lasting.wait(lambda: beat(lasting) != beaten, "tasks are done", RESTARTED_WITHIN_S)


def test_the_death_of_the_worker_that_holds_the_queue_does_not_end_the_work(
    lasting: Desk,
) -> None:
    lasting.wait(lambda: whole(lasting), "the desk is whole", RESTARTED_WITHIN_S)
    old = lasting.pid("work")
    reader = lasting.wait(
        lambda: reader_of(lasting.workers("work")), "an idle worker reads", RESTARTED_WITHIN_S
    )
    kill(reader)
    beaten = beat(lasting)
    lasting.wait(
        lambda: lasting.pid("work") not in (0, old), "the cluster runs anew", NOTICED_WITHIN_S
    )
    lasting.wait(
        lambda: beat(lasting) not in (None, beaten), "tasks are done again", RESTARTED_WITHIN_S
    )


def test_a_frozen_lane_is_killed_and_replaced(lasting: Desk) -> None:
    lasting.wait(lambda: whole(lasting), "the desk is whole", RESTARTED_WITHIN_S)
    cluster, frozen = lasting.pid("lanes"), lasting.lane_pids()[0]
    os.kill(frozen, signal.SIGSTOP)
    lasting.wait(
        lambda: not alive(frozen) and whole(lasting), "another lane stands by", NOTICED_WITHIN_S
    )
    assert lasting.pid("lanes") == cluster  # the other lane was left alone


def test_lanes_that_do_not_start_are_noticed_and_their_cluster_restarted(lasting: Desk) -> None:
    lasting.wait(lambda: whole(lasting), "the desk is whole", RESTARTED_WITHIN_S)
    old, lane = lasting.pid("lanes"), lasting.lane_pids()[0]
    sentinel = int(Path(f"/proc/{lane}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(sentinel, signal.SIGSTOP)  # it replaces no worker any more
    kill(lane)
    lasting.wait(
        lambda: lasting.pid("lanes") not in (0, old), "the cluster runs anew", NOTICED_WITHIN_S
    )
    lasting.wait(lambda: whole(lasting), "the desk is whole again", RESTARTED_WITHIN_S)


def test_a_machine_on_which_lanes_start_slowly_is_given_the_time(simulator: Simulator) -> None:
    with Desk(simulator.url, ready=False) as desk:
        file = desk.data / "orderdesk.toml"
        text = file.read_text()
        file.unlink()
        os.mkfifo(file)  # a lane reads it first, and stands still here
        begun = time.monotonic()
        desk.wait(lambda: time.monotonic() - begun > SLOW_START_S, "a slow start", SLOW_START_S + 5)
        assert not desk.lane_pids()
        with file.open("w") as pipe:
            file.unlink()
            file.write_text(text)
            pipe.write(text)
        desk.wait(lambda: whole(desk), "both lanes run", NOTICED_WITHIN_S)
        assert not desk.events("child_restarted")
        desk.wait(
            lambda: not desk.sql("SELECT 1 FROM django_q_ormq WHERE key = 'lanes'"),
            "copies of lanes are asked for no longer",
            RESTARTED_WITHIN_S,
        )
        assert desk.stop() < GONE_WITHIN_S
        assert not desk.events("child_killed")


def test_a_frozen_web_process_is_replaced(lasting: Desk) -> None:
    lasting.wait(lambda: whole(lasting), "the desk is whole", RESTARTED_WITHIN_S)
    frozen = lasting.pid("web")
    os.kill(frozen, signal.SIGSTOP)
    lasting.wait(
        lambda: not alive(frozen) and lasting.is_ready(), "pages are served", NOTICED_WITHIN_S
    )


def test_a_killed_supervisor_leaves_no_orphan(simulator: Simulator) -> None:
    with Desk(simulator.url) as desk:
        desk.wait(lambda: whole(desk), "both lanes run", RESTARTED_WITHIN_S)
        lane = desk.lane_pids()[0]
        desk.kill()
        desk.wait(lambda: not alive(lane), "lanes end by themselves", GONE_WITHIN_S)
        desk.wait(lambda: not desk.processes(), "every process is gone", GONE_WITHIN_S + 5)


def test_a_port_in_use_is_named_with_the_remedy(simulator: Simulator) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        desk = Desk(simulator.url, environment={"ORDERDESK_PORT": port})
        with pytest.raises(DeskError, match=f"port {port} is in use.*ORDERDESK_PORT"), desk:
            pass


def test_a_second_desk_on_the_same_embedded_journal_is_refused(simulator: Simulator) -> None:
    with Desk(simulator.url) as first:
        second = Desk(simulator.url, environment={"ORDERDESK_DATA": str(first.data)})
        with (
            pytest.raises(DeskError, match=f"another desk uses {first.data}.*ORDERDESK_DATA"),
            second,
        ):
            pass
        first.kill()
        first.start()  # at once: the lock went with the process


def test_a_missing_account_file_is_named_with_the_remedy(simulator: Simulator) -> None:
    missing = {"ORDERDESK_CONFIG": "/nowhere/orderdesk.toml"}
    desk = Desk(simulator.url, environment=missing)
    with (
        pytest.raises(DeskError, match=r"/nowhere/orderdesk.toml.*docs/orderdesk.example.toml"),
        desk,
    ):
        pass
