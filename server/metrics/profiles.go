package metrics

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"mayfly/commands/engine"
)

// serveCommandLine answers with the command line as pprof.Cmdline does, but without passwords.
func serveCommandLine(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprint(w, strings.Join(redactedArguments(os.Args), "\x00")) // the client may have gone
}

// redactedArguments returns the arguments of a command line without the values of secret options.
func redactedArguments(args []string) []string {
	shown := slices.Clone(args)
	secret := false
	for i, arg := range shown {
		if name, isOption := strings.CutPrefix(arg, "--"); isOption {
			name, _, hasValue := strings.Cut(name, "=")
			if secret = engine.IsSecretOption(name); secret && hasValue {
				shown[i] = "--" + name + "=(redacted)"
			}
		} else if secret {
			shown[i] = "(redacted)"
		}
	}
	return shown
}

// limited bounds how many requests a handler answers at a time.
func limited(most int, next http.HandlerFunc) http.HandlerFunc {
	places := make(chan struct{}, most)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next(w, r)
		default:
			http.Error(w, "too many requests at a time, try again later", http.StatusServiceUnavailable)
		}
	}
}
