"""rq: jobs run in their order, with results; failed ones are kept, and run again; scheduled ones run in time."""

import datetime

import redis
from rq import Queue, SimpleWorker
from rq.registry import FailedJobRegistry, ScheduledJobRegistry

from common import until, url

connection = redis.Redis.from_url(url)
connection.config_set("reported-version", "4.0.14")  # from 5.0 on it would write its results to streams
queue, low = Queue("high", connection=connection), Queue("low", connection=connection)
first, second = low.enqueue(pow, 2, 5), queue.enqueue(pow, 3, 2)
failing = queue.enqueue(divmod, 1, 0)
later = queue.enqueue_in(datetime.timedelta(seconds=1), pow, 7, 2)
assert queue.get_job_ids() == [second.id, failing.id], queue.get_job_ids()
assert later.id in ScheduledJobRegistry(queue=queue)

worker = SimpleWorker([queue, low], connection=connection)
assert worker.work(burst=True)
assert (first.result, second.result) == (32, 9), (first.result, second.result)
failed = FailedJobRegistry(queue=queue)
assert failed.get_job_ids() == [failing.id] and failing.get_status() == "failed"
failed.requeue(failing.id)
assert len(queue) == 1 and queue.empty() == 1


def ran():
    worker.work(burst=True, with_scheduler=True)
    return later.get_status(refresh=True) == "finished"


until("the scheduled job runs", ran)
assert later.result == 49
connection.config_set("reported-version", "7.4.0")
print("passed")
