"""Files are written whole or not at all, and nothing else in a folder is touched."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from kernelbounds.io import files
from kernelbounds.paper.results import ResultStore
from kernelbounds.paper.specs import Choices


@pytest.fixture
def seq():
    s = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    s.update([[0.1], [0.7]], [0.3, -0.2])
    return s


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def _children(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kind", ["FIFO", "socket", "folder"])
def test_what_is_not_a_file_is_refused_and_left_alone(tmp_path, seq, kind):
    place = tmp_path / "x.npz"
    if kind == "FIFO":
        os.mkfifo(place)
    elif kind == "socket":
        here = os.open(".", os.O_RDONLY)
        os.chdir(tmp_path)  # the names of sockets must be short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("x.npz")
        os.fchdir(here)
        os.close(here)
    else:
        place.mkdir()
    before = place.stat()
    policy = kb.KernelUCB(seq)
    for call in (seq.save, policy.save, lambda path: policy.run(float, 1, save_to=path)):
        with pytest.raises(kb.InputError, match=rf"cannot save to .*: it is a .*{kind}") as caught:
            call(place)
        assert "\n" not in str(caught.value)
    with pytest.raises(kb.StoredFileError, match=rf"cannot read .*: it is a .*{kind}"):
        kb.ConfidenceSequence.load(place)  # and does not wait for somebody to write
    assert place.stat().st_ino == before.st_ino and place.stat().st_mode == before.st_mode
    assert _children(tmp_path) == ["x.npz"]


def test_devices_are_refused(tmp_path, seq):
    """On a device of the test's own: were it not refused, root would lose a real one."""
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    with pytest.raises(kb.InputError, match=r"it is a .*device"):
        seq.save(device)
    assert stat.S_ISCHR(device.stat().st_mode) and _children(tmp_path) == ["null"]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path, seq, umask):
    old = os.umask(umask)
    try:
        seq.save(tmp_path / "x.npz")
        ResultStore(tmp_path / "results").open(Choices())
        (tmp_path / "plain").write_text("")
    finally:
        os.umask(old)
    assert _mode(tmp_path / "x.npz") == _mode(tmp_path / "plain") == 0o666 & ~umask
    assert _mode(tmp_path / "results" / "settings.json") == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664])
def test_an_old_file_keeps_its_mode(tmp_path, seq, mode):
    file = tmp_path / "x.npz"
    seq.save(file)
    file.chmod(mode)
    seq.save(file)
    assert _mode(file) == mode


def test_symbolic_links_are_followed(tmp_path, seq):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link.npz", tmp_path / "there" / "x.npz"
    link.symlink_to(target)
    for _ in range(2):  # the link leads nowhere at first
        seq.save(link)
        assert link.is_symlink() and target.is_file() and not target.is_symlink()
    assert len(kb.ConfidenceSequence.load(link)) == 2
    assert _children(tmp_path) == ["link.npz", "there"] and _children(target.parent) == ["x.npz"]
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(kb.InputError, match="cannot save to"):
        seq.save(tmp_path / "loop")
    nowhere = tmp_path / "nowhere"
    nowhere.symlink_to(tmp_path / "no" / "folder.npz")
    with pytest.raises(kb.InputError, match="its folder does not exist"):
        seq.save(nowhere)


@pytest.mark.parametrize("name", ["x" * 246 + ".npz", "ü" * 125, "\udcff.npz", "a b\n'c"])
def test_any_name_that_the_file_system_takes(tmp_path, seq, name):
    for _ in range(2):
        seq.save(tmp_path / name)
    assert len(kb.ConfidenceSequence.load(tmp_path / name)) == 2
    assert len(_children(tmp_path)) == 1


CHILD = """
import sys, time
from pathlib import Path
from kernelbounds.io import files
with files.replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def _killed_while_writing(path):
    """What a process that was killed while it wrote to the path has left."""
    before = set(path.parent.iterdir())
    command = [sys.executable, "-c", CHILD, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "writing\n"
        child.kill()
    (left,) = set(path.parent.iterdir()) - before
    return left


@pytest.mark.slow
def test_what_a_killed_process_has_left_is_removed_by_the_next_save(tmp_path, seq):
    file, other = tmp_path / "x.npz", tmp_path / "y.npz"
    old, young, others = (_killed_while_writing(path) for path in (file, file, other))
    assert old.read_bytes() == b"half" and not file.exists()
    for one in (old, others):
        os.utime(one, (time.time() - 601,) * 2)
    seq.save(file)
    assert set(tmp_path.iterdir()) == {file, young, others}  # a young one may be in use
    os.utime(young, (time.time() - 601,) * 2)
    seq.save(file)
    seq.save(other)
    assert set(tmp_path.iterdir()) == {file, other}


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(28, "disk full")])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path, seq, error, monkeypatch):
    file = tmp_path / "x.npz"
    seq.save(file)
    content = file.read_bytes()

    def fails(file, **_):
        file.write(b"half")
        raise error

    monkeypatch.setattr(np, "savez", fails)
    with pytest.raises((kb.InputError, KeyboardInterrupt, MemoryError)):
        seq.save(file)
    assert file.read_bytes() == content and _children(tmp_path) == ["x.npz"]


def test_a_real_interrupt_leaves_nothing(tmp_path):
    file = tmp_path / "x.npz"
    command = [sys.executable, "-c", CHILD, file]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes) as child:
        assert child.stdout.readline() == "writing\n"
        child.send_signal(signal.SIGINT)
        assert child.wait() != 0
    assert _children(tmp_path) == []


def test_several_threads_may_save_to_one_file(tmp_path, seq):
    file = tmp_path / "x.npz"
    threads = [threading.Thread(target=seq.save, args=(file,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kb.ConfidenceSequence.load(file)) == 2 and _children(tmp_path) == ["x.npz"]


def _open_files():
    return {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if
            os.path.lexists(f"/proc/self/fd/{fd}")}  # fmt: skip


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"hello", None])
def test_a_file_that_cannot_be_loaded_is_closed(tmp_path, seq, content):
    file = tmp_path / "x.npz"
    seq.save(file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-30] if content is None else content)
    caught = []  # keeps the traceback, and what its frames hold
    for load in (kb.ConfidenceSequence.load, kb.KernelUCB.load):
        with pytest.raises(kb.StoredFileError) as error:
            load(file)
        caught.append(error)
    assert str(file) not in _open_files()


def test_text(tmp_path):
    files.write_text(tmp_path / "x.txt", "naïve\n")
    assert (tmp_path / "x.txt").read_bytes() == "naïve\n".encode()
