package frameworks

import (
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/ulule/limiter/v3"
	limiterstore "github.com/ulule/limiter/v3/drivers/store/redis"
)

func TestRedisRate(t *testing.T) {
	ctx, limits := t.Context(), redis_rate.NewLimiter(connect(t))
	limit := redis_rate.Limit{Rate: 3, Burst: 3, Period: 600 * time.Millisecond}
	for remaining := 2; remaining >= 0; remaining-- {
		got := must[*redis_rate.Result](t)(limits.Allow(ctx, "ann", redis_rate.PerMinute(3)))
		if got.Allowed != 1 || got.Remaining != remaining {
			t.Errorf("allowed %d, remaining %d, want 1, %d", got.Allowed, got.Remaining, remaining)
		}
	}
	got := must[*redis_rate.Result](t)(limits.Allow(ctx, "ann", redis_rate.PerMinute(3)))
	if got.Allowed != 0 || got.RetryAfter <= 0 || got.RetryAfter > 20*time.Second {
		t.Errorf("over the limit: %+v", got)
	}
	if got := must[*redis_rate.Result](t)(limits.AllowAtMost(ctx, "bob", redis_rate.PerMinute(3), 10)); got.Allowed != 3 {
		t.Errorf("allowed %d of 10, want 3", got.Allowed)
	}
	if err := limits.Reset(ctx, "ann"); err != nil {
		t.Error(err)
	}
	if got := must[*redis_rate.Result](t)(limits.AllowN(ctx, "ann", redis_rate.PerMinute(3), 3)); got.Allowed != 3 {
		t.Errorf("allowed %d after Reset, want 3", got.Allowed)
	}

	if got := must[*redis_rate.Result](t)(limits.AllowN(ctx, "eve", limit, 3)); got.Allowed != 3 {
		t.Fatalf("allowed %d, want 3", got.Allowed)
	}
	until(t, "the limiter opens", func() bool { return must[*redis_rate.Result](t)(limits.Allow(ctx, "eve", limit)).Allowed == 1 })
}

func TestUluleLimiter(t *testing.T) {
	ctx := t.Context()
	store := must[limiter.Store](t)(limiterstore.NewStore(connect(t)))
	limits := limiter.New(store, limiter.Rate{Limit: 2, Period: time.Hour})
	for _, want := range []struct {
		remaining int64
		reached   bool
	}{{1, false}, {0, false}, {0, true}} {
		got := must[limiter.Context](t)(limits.Get(ctx, "ann"))
		if got.Remaining != want.remaining || got.Reached != want.reached {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := must[limiter.Context](t)(limits.Peek(ctx, "ann")); !got.Reached {
		t.Errorf("Peek: %+v", got)
	}
	if got := must[limiter.Context](t)(limits.Get(ctx, "bob")); got.Reached {
		t.Errorf("another key: %+v", got)
	}
	brief := limiter.New(store, limiter.Rate{Limit: 1, Period: 200 * time.Millisecond})
	must[limiter.Context](t)(brief.Get(ctx, "joe"))
	until(t, "the limiter opens", func() bool { return !must[limiter.Context](t)(brief.Get(ctx, "joe")).Reached })

	hour := limiter.New(store, limiter.Rate{Limit: 1, Period: time.Hour})
	must[limiter.Context](t)(hour.Increment(ctx, "eve", 5))
	if got := must[limiter.Context](t)(hour.Peek(ctx, "eve")); !got.Reached {
		t.Errorf("after 5 of 1: %+v", got)
	}
	must[limiter.Context](t)(hour.Reset(ctx, "eve"))
	if got := must[limiter.Context](t)(hour.Get(ctx, "eve")); got.Reached {
		t.Errorf("after Reset: %+v", got)
	}
}
