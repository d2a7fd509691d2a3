package resp

import "strings"

// IsHTTP recognises requests by which a web page makes a browser talk to the server (cross-protocol
// scripting). Redis closes the connection for them, too.
func IsHTTP(name string) bool {
	return len(name) == len("POST") && strings.EqualFold(name, "POST") ||
		len(name) == len("Host:") && strings.EqualFold(name, "Host:")
}

// IsHTTPRequest reports whether a connection begins with a request in HTTP, as those of a browser, of curl
// and of health checks do. No command with this name takes these arguments.
func IsHTTPRequest(args []string) bool {
	if len(args) != 3 || !strings.HasPrefix(args[2], "HTTP/1.") {
		return false
	}
	switch args[0] {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE":
		return true
	}
	return false
}

// HTTPAnswer is the answer to a request in HTTP.
const HTTPAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"This port speaks the Redis protocol, not HTTP: use redis-cli or a Redis client. The web page is served at web-addr, metrics and health checks at metrics-addr.\n"
