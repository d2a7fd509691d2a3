# Sidekiq: jobs run, wait for their time, fail and are tried again, are dead in the end.

require "logger"
require "sidekiq"
require "sidekiq/api"
require "sidekiq/cli"

Redis.silence_deprecations = true # this Sidekiq is older than Debian's library for Redis
port = Integer(ARGV.fetch(0))
Sidekiq.logger.level = Logger::FATAL
Sidekiq.configure_server { |c| c.redis = { url: "redis://127.0.0.1:#{port}/0" }; c.average_scheduled_poll_interval = 1 }
Sidekiq.configure_client { |c| c.redis = { url: "redis://127.0.0.1:#{port}/0" } }

RAN = Queue.new # of this process: the server runs in it

class Noting
  include Sidekiq::Job
  def perform(what) = RAN << what
end

class Failing
  include Sidekiq::Job
  sidekiq_options retry: 1
  sidekiq_retry_in { 0 }
  def perform
    RAN << "failed"
    raise "as it must"
  end
end

def await(what)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
  until yield
    raise "waited in vain for #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    sleep 0.01
  end
end

first = Noting.perform_async("first")
Noting.perform_async("second")
Noting.perform_in(1, "later")
queue = Sidekiq::Queue.new
raise "in the queue: #{queue.map(&:args)}" unless queue.size == 2 && queue.find_job(first) && Sidekiq::ScheduledSet.new.size == 1

launcher = Sidekiq::Launcher.new(Sidekiq.options.merge(queues: ["default"], concurrency: 1, fetch: Sidekiq::BasicFetch.new(queues: ["default"])))
launcher.run
ran = 3.times.map { RAN.pop }
raise "ran: #{ran}" unless ran == %w[first second later]
Failing.perform_async
await("the job that fails to be dead") { Sidekiq::DeadSet.new.size == 1 }
raise "tried #{RAN.size} times" unless RAN.size == 2
stats = Sidekiq::Stats.new
await("what ran to be counted") { (stats = Sidekiq::Stats.new).processed == 5 }
raise "#{stats.failed} failed" unless stats.failed == 2
await("the process to be known") { Sidekiq::ProcessSet.new.size == 1 }
launcher.stop
puts "passed"
exit!(0)
