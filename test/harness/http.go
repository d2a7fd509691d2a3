package harness

import (
	"io"
	"net/http"
	"testing"

	"mayfly/test/drill"
)

// Fetch gets a page from metrics-addr or web-addr of a server.
func Fetch(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	client := http.Client{Timeout: Patience}
	response, err := client.Get("http://" + address + path)
	drill.Check(t, err)
	text, err := io.ReadAll(response.Body)
	drill.Check(t, err, response.Body.Close())
	return response.StatusCode, string(text)
}
