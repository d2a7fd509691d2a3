"""celery: tasks run, have results, wait for a moment, are retried; a chord waits for its tasks."""

from celery import Celery, chord
from celery.contrib.testing.worker import start_worker

from common import url

app = Celery("check", broker=url, backend=url)
app.conf.update(result_expires=60, broker_transport_options={"polling_interval": 0.1})
tries = []


@app.task
def add(a, b):
    return a + b


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=2)
def flaky(self):
    tries.append(1)
    if len(tries) < 3:
        raise self.retry(countdown=0)
    return len(tries)


with start_worker(app, perform_ping_check=False, pool="solo"):
    results = [add.delay(n, 1) for n in range(20)]
    assert [r.get(timeout=30) for r in results] == list(range(1, 21))
    assert add.apply_async((2, 3), countdown=1).get(timeout=30) == 5
    assert flaky.delay().get(timeout=30) == 3
    assert chord([add.s(n, n) for n in range(4)], total.s())().get(timeout=30) == 12
print("passed")
