package harness

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

// Fetch gets a page from metrics-addr or web-addr of a server.
func Fetch(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	client := http.Client{Timeout: Patience}
	response, err := client.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
