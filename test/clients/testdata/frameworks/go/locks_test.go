package frameworks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func TestRedsync(t *testing.T) {
	client := connect(t)
	locks := redsync.New(goredis.NewPool(client))
	taken := func(err error) {
		t.Helper()
		if err == nil {
			t.Fatal("two owners have the lock")
		}
	}
	once := func(name string, ttl time.Duration) *redsync.Mutex {
		return locks.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1))
	}

	mine := once("redsync:a", 30*time.Second)
	if err := mine.Lock(); err != nil {
		t.Fatal(err)
	}
	theirs := once("redsync:a", 30*time.Second)
	taken(theirs.TryLock())
	if ok, err := theirs.Unlock(); ok || err == nil {
		t.Errorf("another one releases the lock: %t, %v", ok, err)
	}
	if client.Exists(t.Context(), "redsync:a").Val() != 1 {
		t.Fatal("another one has released the lock")
	}
	if ok, err := mine.Extend(); !ok || err != nil {
		t.Errorf("extending: %t, %v", ok, err)
	}
	if ok, err := mine.Unlock(); !ok || err != nil {
		t.Errorf("releasing: %t, %v", ok, err)
	}
	if ok, err := mine.Unlock(); ok || err == nil {
		t.Errorf("releasing again: %t, %v", ok, err)
	}

	brief := once("redsync:a", 200*time.Millisecond)
	if err := brief.Lock(); err != nil {
		t.Fatal(err)
	}
	next := once("redsync:a", 30*time.Second)
	until(t, "the lock expires", func() bool { return next.TryLock() == nil })
	if ok, _ := brief.Unlock(); ok {
		t.Error("a late owner releases the lock of the next")
	}
	if ok, err := next.Unlock(); !ok || err != nil {
		t.Errorf("releasing: %t, %v", ok, err)
	}

	exclusive(t, func() func() {
		lock := locks.NewMutex("redsync:b", redsync.WithTries(1000), redsync.WithRetryDelay(5*time.Millisecond))
		if err := lock.Lock(); err != nil {
			t.Error(err)
		}
		return func() { _, _ = lock.Unlock() }
	})
}

// exclusive checks that of several that wait for a lock one at a time has it. lock returns what releases it.
func exclusive(t *testing.T, lock func() (release func())) {
	t.Helper()
	client := connect(t)
	var inside, entered atomic.Int32
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			release := lock()
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d have the lock", n)
			}
			for range 5 { // time for others to get in, if they can
				if err := client.Ping(t.Context()).Err(); err != nil {
					t.Error(err)
				}
			}
			inside.Add(-1)
			entered.Add(1)
			release()
		})
	}
	all.Wait()
	if n := entered.Load(); n != 5 {
		t.Errorf("%d of 5 had the lock", n)
	}
}

func TestRedislock(t *testing.T) {
	client, ctx := connect(t), t.Context()
	locks := redislock.New(client)
	mine := must[*redislock.Lock](t)(locks.Obtain(ctx, "redislock:a", 30*time.Second, &redislock.Options{Metadata: "mine"}))
	if _, err := locks.Obtain(ctx, "redislock:a", time.Second, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Fatalf("a second owner: %v", err)
	}
	if ttl := must[time.Duration](t)(mine.TTL(ctx)); ttl <= 0 || ttl > 30*time.Second {
		t.Errorf("TTL %v", ttl)
	}
	if err := mine.Refresh(ctx, time.Minute, nil); err != nil {
		t.Error(err)
	}
	if ttl := must[time.Duration](t)(mine.TTL(ctx)); ttl <= 30*time.Second {
		t.Errorf("TTL %v after Refresh", ttl)
	}
	if err := mine.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := mine.Release(ctx); !errors.Is(err, redislock.ErrLockNotHeld) {
		t.Errorf("releasing again: %v", err)
	}

	brief := must[*redislock.Lock](t)(locks.Obtain(ctx, "redislock:a", 200*time.Millisecond, nil))
	next := must[*redislock.Lock](t)(locks.Obtain(ctx, "redislock:a", 30*time.Second, &redislock.Options{RetryStrategy: redislock.LinearBackoff(5 * time.Millisecond)}))
	if err := brief.Release(ctx); !errors.Is(err, redislock.ErrLockNotHeld) {
		t.Errorf("a late owner releases: %v", err)
	}
	if err := brief.Refresh(ctx, time.Minute, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("a late owner refreshes: %v", err)
	}
	if ttl := must[time.Duration](t)(brief.TTL(ctx)); ttl != 0 {
		t.Errorf("a late owner has %v", ttl)
	}
	if err := next.Release(ctx); err != nil {
		t.Error(err)
	}

	exclusive(t, func() func() {
		lock, err := locks.Obtain(ctx, "redislock:b", 30*time.Second, &redislock.Options{RetryStrategy: redislock.LinearBackoff(5 * time.Millisecond)})
		if err != nil {
			t.Error(err)
			return func() {}
		}
		return func() { _ = lock.Release(ctx) }
	})
}

// TestRueidislock uses the locks, which keep what they read in a cache.
func TestRueidislock(t *testing.T) {
	locker := must[rueidislock.Locker](t)(rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{address(t)}},
		KeyMajority:    1,
		KeyValidity:    time.Minute, // on a busy machine no extension comes too late
		TryNextAfter:   time.Minute, // nor a reply
		ExtendInterval: 100 * time.Millisecond,
	}))
	defer locker.Close()
	ctx, release, err := locker.TryWithContext(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := locker.TryWithContext(t.Context(), "a"); !errors.Is(err, rueidislock.ErrNotLocked) {
		t.Fatalf("a second owner: %v", err)
	}
	client := connect(t)
	end := func() time.Duration { // of the lock, since 1970; negative: there is none
		keys := must[[]string](t)(client.Keys(t.Context(), "rueidislock*").Result())
		if len(keys) != 1 {
			t.Fatalf("the lock has the keys %q", keys)
		}
		return must[time.Duration](t)(client.PExpireTime(t.Context(), keys[0]).Result())
	}
	for last, extended := end(), 0; extended < 5; extended++ { // each time by a new term from then on
		until(t, "the lock is extended", func() bool { return end() > last })
		last = end()
	}
	if ctx.Err() != nil {
		t.Errorf("the lock was lost: %v", context.Cause(ctx))
	}
	release()
	until(t, "the lock is released", func() bool {
		keys, err := client.Keys(t.Context(), "rueidislock*").Result()
		return err == nil && len(keys) == 0
	})
	exclusive(t, func() func() {
		_, release, err := locker.WithContext(t.Context(), "b")
		if err != nil {
			t.Error(err)
			return func() {}
		}
		return release
	})
}
