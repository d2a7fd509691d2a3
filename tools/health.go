package tools

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

var healthTool = tool{
	name:   "health",
	syntax: "host:port",
	summary: "Asks the metrics-addr of a running server whether clients are served and may write, and prints what its /healthz answers. " +
		"It serves as health check of containers, which have no curl. " +
		"Exit code: 0 it is healthy, 1 it is not or could not be asked, 2 the arguments are wrong.",
	run: health,
}

const (
	exitUnhealthy   = 1 // health checks of containers know 0 and 1
	healthTimeout   = 5 * time.Second
	maxHealthAnswer = 64 << 10 // bytes
)

func health(c *call) (int, error) {
	values, err := c.parse("host:port")
	if err != nil {
		return exitFailed, err
	}
	client := http.Client{
		Timeout:       healthTimeout,
		Transport:     &http.Transport{DisableKeepAlives: true}, // without the environment's proxies
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Get("http://" + values[0] + "/healthz")
	if err != nil {
		return exitUnhealthy, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxHealthAnswer))
	if err != nil {
		return exitUnhealthy, err
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusServiceUnavailable:
		if _, err = fmt.Fprintln(c.Out, strings.TrimSpace(string(text))); err != nil || answer.StatusCode != http.StatusOK {
			return exitUnhealthy, err
		}
		return exitOK, nil
	}
	return exitUnhealthy, fmt.Errorf("%s answers %s: %.200s", values[0], answer.Status, strings.TrimSpace(string(text)))
}
