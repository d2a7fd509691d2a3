<?php
// Laravel: jobs run in their order, are released, come back if their worker is lost, wait for their time; a
// funnel and a throttle refuse.

foreach (['Container', 'Contracts', 'Support', 'Redis', 'Queue', 'Events'] as $part) {
    require_once "/usr/share/php/Illuminate/$part/autoload.php";
}

use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\Capsule\Manager;
use Illuminate\Redis\RedisManager;

error_reporting(E_ALL & ~E_DEPRECATED); // this Laravel is older than Debian's PHP
set_error_handler(fn ($no, $text) => throw new ErrorException($text), E_ALL & ~E_DEPRECATED);

$app = new Container();
Container::setInstance($app);
$app->singleton('events', fn () => new Dispatcher($app));
$app->singleton('redis', fn () => new RedisManager($app, 'phpredis', ['default' => ['host' => '127.0.0.1', 'port' => $argv[1], 'database' => 0]]));
$manager = new Manager($app);
$manager->addConnection(['driver' => 'redis', 'connection' => 'default', 'queue' => 'default', 'retry_after' => 1]);
$queue = $manager->getConnection();

function same($want, $got)
{
    if ($want !== $got) {
        throw new Exception('want ' . json_encode($want) . ', got ' . json_encode($got));
    }
}

// take returns the next job, which must be the one with a number.
function take($number, $attempts)
{
    global $queue;
    for ($end = microtime(true) + 30; ($job = $queue->pop()) === null && microtime(true) < $end; usleep(10_000)); // it may wait for its time
    same([$number, $attempts], [$job?->payload()['data']['number'], $job?->attempts()]);
    return $job;
}

foreach ([1, 2, 3] as $number) {
    $queue->push('Job', ['number' => $number]);
}
same(3, $queue->size());
take(1, 1)->delete();
take(2, 1)->release();
take(3, 1); // its worker is lost
take(2, 2)->delete();
take(3, 2)->delete();
$queue->later(1, 'Job', ['number' => 4]);
same(null, $queue->pop());
take(4, 1)->delete();
$queue->bulk(['Job', 'Job'], ['number' => 5]);
same(2, $queue->clear('default'));
same(0, $queue->size());

$redis = $app['redis']->connection();
$outer = fn () => $redis->funnel('funnel')->limit(1)->block(0)->then(fn () => 'in', fn () => 'out');
same('out', $redis->funnel('funnel')->limit(1)->then($outer, fn () => 'never'));
same('in', $outer());
$throttled = fn () => $redis->throttle('throttle')->allow(1)->every(600)->block(0)->then(fn () => 'in', fn () => 'out');
same(['in', 'out'], [$throttled(), $throttled()]);
echo "passed\n";
