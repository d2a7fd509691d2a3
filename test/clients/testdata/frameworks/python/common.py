"""What the scripts beside this one share. Each takes the port of a server and ends with the word passed."""

import sys
import threading
import time

import redis

port = int(sys.argv[1])
url = f"redis://127.0.0.1:{port}/0"


def connect(**options):
    return redis.Redis(port=port, **options)


def until(what, check):
    """Polls until check returns something true, and returns that. Fails after 30 s."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        got = check()
        if got:
            return got
        time.sleep(0.01)
    raise AssertionError(f"waited in vain: {what}")


def raises(error, call, *args, **options):
    """Calls, and fails unless that raises the error."""
    try:
        call(*args, **options)
    except error as err:
        return err
    raise AssertionError(f"{call} did not raise {error}")


def exclusive(enter):
    """Checks that of several that wait for a lock one at a time has it. enter returns what releases it."""
    inside, most, entered = 0, 0, 0

    def run():
        nonlocal inside, most, entered
        release = enter()
        inside += 1
        most = max(most, inside)
        time.sleep(0.005)
        inside -= 1
        entered += 1
        release()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, entered) == (1, 4), (most, entered)
