"""Progress goes to stderr only; signals end the program soon, with the right code and without a trace."""
import os
import pty
import select
import signal
import time

import pytest

from conftest import interrupt, without_progress


def read_until(descriptor, wanted, seconds):
    """Everything read from the descriptor until `wanted` appears, or the time is over."""
    end = time.monotonic() + seconds
    data = b""
    while wanted not in data and time.monotonic() < end:
        if select.select([descriptor], [], [], 0.05)[0]:
            data += os.read(descriptor, 4096)
    return data


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals(start, long_work, tmp_path, number, code):
    process = start(*long_work, "-o", "found.nw")
    time.sleep(0.5)
    assert process.poll() is None
    assert interrupt(process, number) == code
    out, err = process.communicate()
    assert out == b"" and without_progress(err) == b"nearwise: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_interrupted_as_json(start, long_work):
    process = start(*long_work, "--json")
    time.sleep(0.4)
    assert interrupt(process) == 130
    out, err = process.communicate()
    assert (out, without_progress(err)) == (b"", b'{"error":{"code":"cancelled","message":"interrupted"}}\n')


def test_an_ignored_signal_stays_ignored(start, long_work):
    process = start(*long_work, ignore=signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    assert interrupt(process, signal.SIGTERM) == 143


def test_old_output_survives(start, long_work, tmp_path):
    (tmp_path / "found.ivecs").write_bytes(b"precious")
    process = start(*long_work, "-o", "found.ivecs")
    time.sleep(0.4)
    assert interrupt(process) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["found.ivecs"]
    assert (tmp_path / "found.ivecs").read_bytes() == b"precious"


def test_plain_lines_elsewhere(start, long_work):
    process = start(*long_work)
    text = read_until(process.stderr.fileno(), b"\n", 10)
    assert text.startswith(b"nearwise: knn") and b"queries/s" in text and b"left" in text and b"\r" not in text
    # At most one line in 5 s.
    begin = time.monotonic()
    time.sleep(1)
    assert interrupt(process) == 130
    out, err = process.communicate()
    assert out == b"" and without_progress(err) == b"nearwise: interrupted\n"
    assert err.count(b"\n") <= 2 + (time.monotonic() - begin) // 5


def test_a_bar_on_a_terminal(start, long_work):
    ours, theirs = pty.openpty()
    process = start(*long_work, stderr=theirs, env={"TERM": "xterm"})
    begin = time.monotonic()
    text = read_until(ours, b"left", 10)
    assert time.monotonic() - begin >= 0.9  # not for short work
    assert b"\r" in text and b"[" in text and b"queries/s" in text
    assert interrupt(process) == 130
    # The bar is wiped before anything else is said.
    assert b"\r\x1b[Knearwise: interrupted" in read_until(ours, b"interrupted", 5)
    assert process.stdout.read() == b""
    os.close(ours)
    os.close(theirs)


def test_the_bar_is_gone_before_the_last_word(start, nearwise, long_work):
    """On work that lasts over a second and comes to its end."""
    limit = long_work.index("--limit-queries")
    work = long_work[:limit] + long_work[limit + 2 :]
    rate = nearwise(*work, "--limit-queries", 1000, "--json").json["queries_per_second"]
    ours, theirs = pty.openpty()
    process = start(*work, "--limit-queries", max(1, int(1.5 * rate)), "-o", "found.ivecs", stderr=theirs,
                    env={"TERM": "xterm"})
    text = read_until(ours, b"wrote", 20)
    assert process.wait(timeout=10) == 0
    # Everything on the line of the last word, which begins after the last return to its start.
    assert text[: text.rindex(b"wrote")].split(b"\r")[-1] in (b"nearwise: ", b"\x1b[Knearwise: "), text
    os.close(ours)
    os.close(theirs)


def test_a_terminal_that_cannot_redraw_gets_lines(start, long_work):
    ours, theirs = pty.openpty()
    process = start(*long_work, stderr=theirs, env={"TERM": "dumb"})
    assert read_until(ours, b"left", 10).startswith(b"nearwise: knn")
    assert interrupt(process) == 130
    os.close(ours)
    os.close(theirs)


def test_quiet(start, long_work):
    process = start(*long_work, "--quiet")
    assert read_until(process.stderr.fileno(), b"\n", 1.6) == b""
    assert interrupt(process) == 130
