// Package frameworks uses a server at $MAYFLY_PORT as libraries over Redis do.
package frameworks

import (
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// address returns that of the server.
func address(t *testing.T) string {
	t.Helper()
	port := os.Getenv("MAYFLY_PORT")
	if port == "" {
		t.Skip("NOT TESTED: TestFrameworks in test/clients runs these tests, with a server at $MAYFLY_PORT")
	}
	return "127.0.0.1:" + port
}

// connect returns a client of go-redis, closed when the test ends.
func connect(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address(t), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// must fails the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(got T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// until polls until check returns true.
func until(t *testing.T, what string, check func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
