"""Studies under fire: several processes write to one file and are killed at random instants.

Workers are forked, so that hundreds of them cost no imports. Each tells its outcomes in order and
notes every one that was acknowledged, in a log that is synced to the disk. After a kill it is
started again and tells what it has no note of, with the same keys.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

import kernelbounds as kb
from kernelbounds import cli
from kernelbounds.study.study_file import StudyFile

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

WORKERS, TELLS, PARTS = 2, 100, 10


def problem():
    return kb.Problem(
        ["temperature=180:220", "catalyst=0.1:0.9"], "yield=0:100", 0.5,
        kernel="Matern(0.8, nu=2.5)", norm_bound=80.0,
    )  # fmt: skip


def outcome(worker, number):
    """Settings and outcome that belong to a key."""
    rng = np.random.default_rng([worker, number])
    return [180 + 40 * rng.random(), 0.1 + 0.8 * rng.random()], 100 * rng.random()


def acknowledged(log):
    return log.read_text().split() if log.exists() else []


def note(log, key):
    with open(log, "a") as file:
        file.write(f"{key}\n")
        file.flush()
        os.fsync(file.fileno())


def left_to_tell(worker, log, tells):
    """What is not acknowledged; and when a part of it is told, wait to be killed.

    So there are enough kills however late a busy machine sends them.
    """
    done, told = set(acknowledged(log)), 0
    for number in range(tells):
        if (key := f"{worker}-{number}") not in done:
            if told == max(tells // PARTS, 1):
                time.sleep(600)
            yield number, key
            told += 1


def tell_through_python(path, worker, log, tells):
    with kb.Study(path) as study:
        for number, key in left_to_tell(worker, log, tells):
            study.tell(*outcome(worker, number), key=key)
            note(log, key)


def tell_through_commands(path, worker, log, tells):
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    for number, key in left_to_tell(worker, log, tells):
        (temperature, catalyst), value = outcome(worker, number)
        settings = [f"temperature={temperature!r}", f"catalyst={catalyst!r}"]
        telling = [str(path), *settings, f"yield={value!r}", "--key", key]
        cli.app(["study", "tell", *telling], standalone_mode=False)
        note(log, key)


def run_under_fire(path, logs, work, tells, rng, longest):
    """Run the workers until they are done.

    Returns the number of kills, and how often a transaction, of one of the workers, was open then.
    """
    fork = multiprocessing.get_context("fork")
    running, kills, inside = {}, 0, 0
    waiting = list(range(WORKERS))
    while waiting or running:
        for worker in waiting:
            process = fork.Process(target=work, args=(path, worker, logs[worker], tells))
            process.start()
            running[worker] = process
        waiting = []
        worker = int(rng.choice(list(running)))
        wait_for(rng.uniform(0, longest), logs[worker], tells // PARTS)
        process = running.pop(worker)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            inside += os.path.exists(f"{path}-journal")
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        if process.exitcode:
            kills += 1
            longest *= 1.03  # so that it ends, on a machine that has become slow
            waiting = [worker]
            check_nothing_lost(path, logs)
    return kills, inside


def wait_for(seconds, log, most):
    """Wait so long, or until so many more are acknowledged: on a fast machine all soon would be."""
    end, enough = time.monotonic() + seconds, len(acknowledged(log)) + most
    while time.monotonic() < end and len(acknowledged(log)) < enough:
        time.sleep(0.001)


def check_nothing_lost(path, logs):
    noted = {key for log in logs for key in acknowledged(log)}
    store = StudyFile(path)
    told = [one.key for one in store.outcomes]
    store.close()
    assert len(told) == len(set(told))
    assert noted <= set(told)


def check_all_there_once(path, logs, tells):
    expected = {f"{w}-{n}": outcome(w, n) for w in range(WORKERS) for n in range(tells)}
    for worker, log in enumerate(logs):
        assert acknowledged(log) == [f"{worker}-{number}" for number in range(tells)]
    store = StudyFile(path)
    assert {one.key: (list(one.point), one.value) for one in store.outcomes} == expected
    assert len(store.outcomes) == len(expected)
    store.close()
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    assert [file.name for file in path.parent.iterdir() if file.suffix != ".log"] == [path.name]


def time_to_tell_one(folder, work):
    """Seconds for a process to begin, open the study and tell an outcome: the least of three."""
    fork, taken = multiprocessing.get_context("fork"), []
    for _ in range(3):
        path, log = folder / "other.db", folder / "other.log"
        kb.Study.create(path, problem()).close()
        begin = time.monotonic()
        process = fork.Process(target=work, args=(path, 0, log, 1))
        process.start()
        process.join()
        taken.append(time.monotonic() - begin)
        path.unlink()
        log.unlink()
    return min(taken)


@pytest.mark.parametrize(
    ("work", "tells"),
    [(tell_through_python, TELLS), (tell_through_commands, TELLS // 5)],
    ids=["python", "commands"],
)
def test_no_acknowledged_observation_is_lost_or_doubled(tmp_path, work, tells):
    path = tmp_path / "reactor.db"
    kb.Study.create(path, problem()).close()
    logs = [tmp_path / f"{worker}.log" for worker in range(WORKERS)]
    longest, rng = time_to_tell_one(tmp_path, work), np.random.default_rng(1)
    kills, inside = run_under_fire(path, logs, work, tells, rng, longest)
    print(f"{kills} kills, {inside} of them while a transaction was open")
    assert kills >= WORKERS * (PARTS - 1)
    # Commands spend most of their time elsewhere.
    assert inside >= (work is tell_through_python)
    check_all_there_once(path, logs, tells)
    with kb.Study(path) as study:
        assert len(study.sequence) == WORKERS * tells


def test_a_command_that_was_killed_is_told_again(tmp_path):
    """The real command in a process of its own, killed just when it writes."""
    path = tmp_path / "reactor.db"
    kb.Study.create(path, problem()).close()
    telling = ["temperature=200", "catalyst=0.4", "yield=63.1", "--key", "monday"]
    command = [sys.executable, "-m", "kernelbounds", "study", "tell", str(path), *telling]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None and not os.path.exists(f"{path}-journal"):
        time.sleep(0.0005)
    process.kill()
    process.wait()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1 observation" in again.stdout
    with kb.Study(path) as study:
        assert len(study) == 1


def test_creating_twice_at_once_makes_one(tmp_path):
    """Whoever comes second is told so, and the first one's study is not touched."""
    path = tmp_path / "reactor.db"
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()

    def create(name):
        try:
            kb.Study.create(path, problem(), stop_within=name).close()
            answers.put(name)
        except kb.InputError as error:
            answers.put(str(error))

    processes = [fork.Process(target=create, args=(number,)) for number in (1.0, 2.0, 3.0)]
    for one in processes:
        one.start()
    said = [answers.get(timeout=60) for _ in processes]
    for one in processes:
        one.join()
    (winner,) = [one for one in said if isinstance(one, float)]
    assert sum("already exists" in str(one) for one in said) == 2
    with kb.Study(path) as study:
        assert study.stop_within == winner


def test_two_who_ask_at_once_get_the_same_trial(tmp_path):
    path = tmp_path / "reactor.db"
    kb.Study.create(path, problem()).close()
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()

    def ask():
        with kb.Study(path) as study:
            answers.put(study.ask())

    processes = [fork.Process(target=ask) for _ in range(3)]
    for one in processes:
        one.start()
    trials = [answers.get(timeout=60) for _ in processes]
    for one in processes:
        one.join()
    assert trials[0] == trials[1] == trials[2]
    with kb.Study(path) as study:
        assert len(study.pending) == 1
