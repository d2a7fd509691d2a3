package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
)

const csp = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// pageClient is a browser, or a program, on the page of a server.
type pageClient struct {
	t    *testing.T
	base string
	http http.Client
}

// startPage makes a server with the page. Its data is loaded.
func startPage(t *testing.T, options ...string) (*Server, *pageClient) {
	t.Helper()
	return startPageOn(t, "127.0.0.1", options...)
}

// startPageOn makes a server with the page on a host.
func startPageOn(t *testing.T, host string, options ...string) (*Server, *pageClient) {
	t.Helper()
	s, e := observed(t, host, options...)
	s.Start(e)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testTimeout)
		defer cancel()
		must(t, s.Stop(ctx))
	})
	return s, pageOf(t, s)
}

// pageOf returns a client of the page of a server.
func pageOf(t *testing.T, s *Server) *pageClient {
	c := &pageClient{t: t, base: "http://" + s.web.Addr().String()}
	c.http.Transport = new(http.Transport) // others must not close its connections
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

type pageAnswer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. Headers are name, value pairs; the host is the name Host.
func (c *pageClient) do(method, path, body string, headers ...string) pageAnswer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	must(c.t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.http.Do(r)
	must(c.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(c.t, err)
	for name, want := range map[string]string{"Content-Security-Policy": csp, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
		if got := response.Header.Get(name); got != want {
			c.t.Errorf("%s %s: %s is %q", method, path, name, got)
		}
	}
	for name := range response.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			c.t.Errorf("%s %s: the answer has %s", method, path, name)
		}
	}
	return pageAnswer{response.StatusCode, response.Header, string(text)}
}

// post sends JSON as the page does.
func (c *pageClient) post(path, body string, headers ...string) pageAnswer {
	c.t.Helper()
	return c.do("POST", path, body, append([]string{"Content-Type", "application/json", "Sec-Fetch-Site", "same-origin"}, headers...)...)
}

// command runs a command and returns the JSON of its answer.
func (c *pageClient) command(words ...string) string {
	c.t.Helper()
	body, err := json.Marshal(words)
	must(c.t, err)
	a := c.post("/command", string(body))
	return strings.TrimSpace(a.body)
}

func (c *pageClient) expect(want string, words ...string) {
	c.t.Helper()
	if got := c.command(words...); got != want {
		c.t.Errorf("%s: %.200s, not %s", words, got, want)
	}
}

func cookieOf(a pageAnswer) string {
	value, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return value
}

// The page runs commands with the rights of redis-cli, and replies in JSON.
func TestPageCommand(t *testing.T) {
	t.Parallel()
	s, c := startPage(t)
	if got, want := s.PageURL(), c.base+"/"; got != want {
		t.Errorf("the page is at %s, not %s", got, want)
	}
	c.expect(`{"reply":"OK"}`, "SET", "a", "1")
	c.expect(`{"reply":2}`, "incr", "a")
	c.expect(`{"reply":null}`, "GET", "absent")
	c.expect(`{"reply":"OK"}`, "SET", "b", "9007199254740992")
	c.expect(`{"reply":"9007199254740993"}`, "INCR", "b")
	c.expect(`{"error":"ERR value is not an integer or out of range"}`, "EXPIRE", "a", "x")
	c.expect(`{"reply":"<&>"}`, "ECHO", "<&>")
	if got := c.command("NONSENSE"); !strings.Contains(got, "ERR unknown command") {
		t.Error(got)
	}
	if got := c.post("/command", `["SET",{"base64":"/w=="},"\ud83d\ude00"]`).body; got != "{\"reply\":\"OK\"}\n" {
		t.Error(got)
	}
	c.expect(`{"reply":["0",[{"base64":"/w=="}]]}`, "SCAN", "0", "MATCH", "[^ab]")
	if got := c.post("/command?container=0", `["GET",{"base64":"/w=="}]`).body; got != "{\"reply\":\"😀\"}\n" {
		t.Error(got)
	}
	if got := c.post("/command?container=absent", `["PING"]`).body; !strings.Contains(got, `{"error":`) {
		t.Error(got)
	}
	for _, body := range []string{``, `{}`, `[]`, `null`, `["PING"`, `["PING"] x`, `[1]`, `[null]`, `["GET",["a"]]`, `["GET",{"base64":"?"}]`, `["GET",{}]`, "[\"GET\",\"\xff\"]", `["GET","\ud800"]`, `["GET","\udc00a"]`, `["GET","\ud800\u0041"]`, `[` + strings.Repeat(`"",`, 1024) + `""]`} {
		if a := c.post("/command", body); a.status != http.StatusBadRequest {
			t.Errorf("%.40s: %d %s", body, a.status, a.body)
		}
	}
}

// Without a password only browsers on this machine are served, as protected mode says for clients.
func TestPageWithoutPassword(t *testing.T) {
	t.Parallel()
	s, _ := startPage(t)
	local, remote := &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	b := pageBackend{s}
	if b.Denies(local) || !b.Denies(remote) {
		t.Error("with protected mode")
	}
	must(t, s.ConfigSet([][2]string{{"protected-mode", "no"}}))
	if b.Denies(remote) {
		t.Error("without protected mode")
	}
	must(t, s.ConfigSet([][2]string{{"protected-mode", "yes"}, {"requirepass", "secret"}}))
	if b.Denies(remote) {
		t.Error("with a password")
	}
	must(t, s.ConfigSet([][2]string{{"requirepass", ""}}))
	other := otherAddress(t)
	if other == "" {
		t.Skip("this machine has the loopback interface only: no request comes from elsewhere")
	}
	s, c := startPageOn(t, other)
	if a := c.do("GET", "/", ""); a.status != http.StatusForbidden || !strings.Contains(a.body, "protected mode") {
		t.Errorf("from another address: %d %s", a.status, a.body)
	}
	must(t, s.ConfigSet([][2]string{{"requirepass", "secret"}}))
	if a := c.do("GET", "/", ""); a.status != http.StatusOK {
		t.Errorf("with a password: %d", a.status)
	}
}

// otherAddress returns an IPv4 address of this machine that is not of the loopback interface, empty if there
// is none.
func otherAddress(t *testing.T) string {
	addrs, err := net.InterfaceAddrs()
	must(t, err)
	for _, addr := range addrs {
		if n, ok := addr.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return ""
}

// A password is given once. The cookie is safe from scripts and other sites, and void when the password
// changes.
func TestPageLogin(t *testing.T) {
	t.Parallel()
	s, c := startPage(t, "--requirepass", "secret")
	for _, path := range []string{"/", "/page.js"} {
		if a := c.do("GET", path, ""); a.status != http.StatusOK {
			t.Errorf("GET %s needs a password: %d", path, a.status)
		}
	}
	if a := c.do("GET", "/state", ""); a.body != "{\"known\":false,\"password\":true,\"readonly\":false,\"user\":\"default\"}\n" {
		t.Errorf("the state is %s", a.body)
	}
	ping := func(cookie string) int { return c.post("/command", `["PING"]`, "Cookie", cookie).status }
	if ping("") != http.StatusUnauthorized || ping("mayfly=secret") != http.StatusUnauthorized || c.do("GET", "/live", "").status != http.StatusUnauthorized {
		t.Error("commands run without the password")
	}
	if a := c.post("/command", `["PING"]`, "Authorization", "Basic OnNlY3JldA=="); a.status != http.StatusUnauthorized {
		t.Error("Basic authentication is enough")
	}
	for body, want := range map[string]int{`{"password":"wrong"}`: 401, `{"password":""}`: 401, `{}`: 400, `["secret"]`: 400, `{"password":null}`: 400, ``: 400} {
		if a := c.post("/login", body); a.status != want || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	a := c.post("/login", `{"password":"secret"}`)
	set := a.header.Get("Set-Cookie")
	if a.status != http.StatusNoContent || !strings.HasSuffix(set, "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict") {
		t.Errorf("%d %s", a.status, set)
	}
	cookie := cookieOf(a)
	if ping(cookie) != http.StatusOK {
		t.Error("the cookie is not enough")
	}
	must(t, s.ConfigSet([][2]string{{"requirepass", "other"}}))
	if ping(cookie) != http.StatusUnauthorized {
		t.Error("the cookie outlives the password")
	}
	must(t, s.ConfigSet([][2]string{{"requirepass", "secret"}}))
	if ping(cookie) != http.StatusUnauthorized {
		t.Error("the cookie comes back with the password")
	}
	cookie = cookieOf(c.post("/login", `{"password":"secret"}`))
	for _, password := range []string{"other", "secret"} { // no request comes in between
		must(t, s.ConfigSet([][2]string{{"requirepass", password}}))
	}
	if ping(cookie) != http.StatusUnauthorized {
		t.Error("the cookie outlives a password that has come back")
	}
	cookie = cookieOf(c.post("/login", `{"password":"secret"}`))
	if a := c.post("/logout", `{}`, "Cookie", cookie); a.status != http.StatusNoContent || ping(cookie) != http.StatusUnauthorized || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Error("the cookie outlives the logout")
	}
}

// A browser logs in as a user: its commands have the user's rights, and the cookie ends with the user.
func TestPageUsers(t *testing.T) {
	t.Parallel()
	s, c := startPage(t)
	set := func(name string, rules ...string) {
		t.Helper()
		_, _, err := s.Users().Set(name, rules)
		must(t, err)
	}
	set("alice", "on", ">secret", "~a*", "+@all", "db=carts,0")
	if a := c.post("/login", `{"user":"alice","password":"wrong"}`); a.status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.status, a.body)
	}
	cookie := cookieOf(c.post("/login", `{"user":"alice","password":"secret"}`))
	run := func(words string) string { return c.post("/command", words, "Cookie", cookie).body }
	for words, want := range map[string]string{
		`["ACL","WHOAMI"]`: `{"reply":"alice"}`, `["GET","b"]`: "NOPERM", `["DOC.GET","orders","a"]`: "NOPERM No permissions to access database", `["SET","a","1"]`: `{"reply":"OK"}`,
	} {
		if got := run(words); !strings.Contains(got, want) {
			t.Errorf("%s: %s", words, got)
		}
	}
	must(t, json.Unmarshal([]byte(c.post("/command", `["CONTAINER.CREATE","orders","TTL","-1"]`).body), new(any)))
	if info, names := c.sample(t, cookie); fmt.Sprint(names) != "[0]" || info["mayfly_version"] != Version || info["keys.count"] != 1.0 {
		t.Errorf("alice, who may see carts and 0, sees %q, %v", names, info["keys.count"])
	}
	may := func(words string) string { return c.post("/may", words, "Cookie", cookie).body }
	const asked = `[["","DOC.PUT","carts","a","{}"],["","DOC.PUT","orders","a","{}"],["","DOC.PUT","carts"],["0","DEL","a"],["orders","DEL","a"],["0","DEL","b"],["","FLUSHALL"],["","AUTH","x"],["","NOSUCH"]]`
	if got := may(asked); got != `["","database","key","","database","key","database","page","command"]`+"\n" {
		t.Errorf("alice may %s", got)
	}
	if got := may(`[["GET"]]`); !strings.Contains(got, "must be a list") {
		t.Error(got)
	}
	if got := c.post("/may", asked).body; got != `["","","","","","","","page","command"]`+"\n" {
		t.Errorf("the default may %s", got)
	}
	denied := len(s.Users().Log.Entries(100))
	set("alice", "-info", "-memory", "-container.due", "~*", "db=carts,orders")
	if info, names := c.sample(t, cookie); fmt.Sprint(names) != "[orders]" || len(info) != 0 || len(s.Users().Log.Entries(100)) != denied {
		t.Errorf("alice, who may not run INFO, sees %q, %v", names, info)
	}
	if got := c.post("/command", `["ACL","WHOAMI"]`).body; !strings.Contains(got, `"default"`) {
		t.Errorf("without a cookie: %s", got)
	}
	set("alice", ">more") // another password ends the cookie
	if got := run(`["ACL","WHOAMI"]`); !strings.Contains(got, `"default"`) {
		t.Errorf("after a change of passwords: %s", got)
	}
	// The default may lose its right, too.
	set("default", "resetpass", ">root")
	if a := c.post("/command", `["PING"]`); a.status != http.StatusUnauthorized {
		t.Errorf("without the password of the default: %d %s", a.status, a.body)
	}
	cookie = cookieOf(c.post("/login", `{"password":"root"}`))
	if got := run(`["ACL","WHOAMI"]`); !strings.Contains(got, `"default"`) {
		t.Error(got)
	}
	set("default", "off")
	if a := c.post("/command", `["PING"]`, "Cookie", cookie); a.status != http.StatusUnauthorized {
		t.Errorf("the cookie outlives its user: %d %s", a.status, a.body)
	}
}

// A browser sends a cookie to all ports of a host: the sessions of several servers on it do not end each
// other.
func TestPageCookiesOfAHost(t *testing.T) {
	t.Parallel()
	jar, err := cookiejar.New(nil)
	must(t, err)
	var clients [2]*pageClient
	for i := range clients {
		_, clients[i] = startPage(t, "--requirepass", "secret")
		clients[i].http.Jar = jar
		if a := clients[i].post("/login", `{"password":"secret"}`); a.status != http.StatusNoContent {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	for _, c := range clients {
		c.expect(`{"reply":"PONG"}`, "PING")
	}
}

// Who guesses waits as with AUTH: the address counts, not the connection. The twelfth attempt begins the
// delays, of at least 10 ms between two.
func TestPageGuesses(t *testing.T) {
	t.Parallel()
	_, c := startPage(t, "--requirepass", "secret")
	begin := time.Now()
	for range 16 {
		if a := c.post("/login", `{"password":"guess"}`); a.status != http.StatusUnauthorized || !strings.HasPrefix(a.body, "WRONGPASS") {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if took := time.Since(begin); took < 30*time.Millisecond {
		t.Errorf("sixteen guesses take %v", took)
	}
	cookie := cookieOf(c.post("/login", `{"password":"secret"}`))
	if time.Since(begin) < 40*time.Millisecond || cookie == "" {
		t.Error("the right password does not wait as wrong ones do, or is refused")
	}
	if got := c.post("/command", `["INFO","stats"]`, "Cookie", cookie).body; !strings.Contains(got, `acl_access_denied_auth:16`) {
		t.Error("INFO does not count the guesses")
	}
}

// Requests name a host of the server: a page of others that makes its name mean this machine reads and writes
// nothing.
func TestPageHosts(t *testing.T) {
	t.Parallel()
	_, c := startPage(t, "--web-hosts", "Db.example.org")
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:9000": 200, "localhost.": 200, "127.0.0.1:9000": 200, "[::1]:9000": 200, "[::1]": 200, "192.0.2.7": 200,
		"db.example.org": 200, "DB.EXAMPLE.ORG.:8379": 200,
		"evil.example": 421, "evil.example:8379": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "evil.example:localhost": 421, "localhost@evil.example": 400, "127.1": 421, "0x7f000001": 421,
	} {
		if host == "localhost@evil.example" {
			continue // net/http refuses it as no host
		}
		if a := c.do("GET", "/", "", "Host", host); a.status != want {
			t.Errorf("%s: %d", host, a.status)
		}
		if a := c.post("/command", `["SET","by","`+host+`"]`, "Host", host); a.status != want {
			t.Errorf("a command at %s: %d", host, a.status)
		}
	}
	for request, want := range map[string]int{"GET / HTTP/1.0\r\n\r\n": 421, "GET / HTTP/1.1\r\n\r\n": 400, "GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n": 400,
		"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n": 421, "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n": 421} {
		if got := c.raw(request).StatusCode; got != want {
			t.Errorf("%q: %d", request, got)
		}
	}
}

// raw sends bytes and returns the answer.
func (c *pageClient) raw(request string) *http.Response {
	c.t.Helper()
	nc, err := net.Dial("tcp", strings.TrimPrefix(c.base, "http://"))
	must(c.t, err)
	c.t.Cleanup(func() { _ = nc.Close() })
	must(c.t, nc.SetDeadline(time.Now().Add(testTimeout)))
	_, err = io.WriteString(nc, request)
	must(c.t, err)
	response, err := http.ReadResponse(bufio.NewReader(nc), nil)
	must(c.t, err)
	return response // its body ends with the test
}

// Only the page itself, and programs that say so, send commands: forms and scripts of other sites do not.
func TestPageForgery(t *testing.T) {
	t.Parallel()
	_, c := startPage(t)
	const body = `["SET","forged","1"]`
	json, same := []string{"Content-Type", "application/json"}, []string{"Sec-Fetch-Site", "same-origin"}
	for _, tt := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"a form", []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}, 415},
		{"a form that is text", []string{"Content-Type", "text/plain", "Sec-Fetch-Site", "same-origin"}, 415},
		{"a beacon", []string{"Content-Type", "text/plain;charset=UTF-8", "Sec-Fetch-Site", "cross-site"}, 403},
		{"no type", same, 415},
		{"two types", []string{"Content-Type", "text/plain, application/json", "Sec-Fetch-Site", "same-origin"}, 415},
		{"no token", json, 403},
		{"another site", append(json, "Sec-Fetch-Site", "cross-site", "X-Mayfly-Page", "1"), 403},
		{"another name of the same site", append(json, "Sec-Fetch-Site", "same-site", "X-Mayfly-Page", "1"), 403},
		{"typed by the user", append(json, "Sec-Fetch-Site", "none"), 403},
		{"another origin", append(json, "X-Mayfly-Page", "1", "Origin", "http://evil.example"), 403},
		{"another port", append(json, "X-Mayfly-Page", "1", "Origin", "http://127.0.0.1:1"), 403},
		{"a sandbox", append(json, "X-Mayfly-Page", "1", "Origin", "null"), 403},
	} {
		for _, path := range []string{"/command", "/login", "/logout"} {
			if a := c.do("POST", path, body, tt.headers...); a.status != tt.want {
				t.Errorf("%s to %s: %d %s", tt.name, path, a.status, a.body)
			}
		}
	}
	c.expect(`{"reply":0}`, "EXISTS", "forged")
	for _, headers := range [][]string{append(json, "X-Mayfly-Page", "1"), append(json, same...), append(json, "Sec-Fetch-Site", "same-origin", "Origin", c.base),
		append(json, "Sec-Fetch-Site", "same-origin", "Origin", strings.Replace(c.base, "http:", "https:", 1))} { // behind a proxy with TLS
		if a := c.do("POST", "/command", body, headers...); a.status != 200 {
			t.Errorf("%v: %d %s", headers, a.status, a.body)
		}
	}
	for _, path := range []string{"/live", "/state"} {
		if a := c.do("GET", path, "", "Sec-Fetch-Site", "cross-site"); a.status != 403 {
			t.Errorf("GET %s from another site: %d", path, a.status)
		}
	}
	// CORS: a browser asks first, and gets no permission.
	for _, path := range []string{"/command", "/login", "/", "/live"} {
		a := c.do("OPTIONS", path, "", "Origin", "http://evil.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-mayfly-page")
		if a.status < 400 {
			t.Errorf("OPTIONS %s: %d", path, a.status)
		}
	}
	for _, path := range []string{"/command", "/login", "/logout"} {
		if a := c.do("GET", path, ""); a.status < 400 {
			t.Errorf("GET %s: %d", path, a.status)
		}
	}
	if a := c.do("GET", "/absent", ""); a.status != 404 {
		t.Errorf("GET /absent: %d", a.status)
	}
}

// What a request can make the server spend is bounded.
func TestPageBounds(t *testing.T) {
	t.Parallel()
	_, c := startPage(t)
	if r := c.raw("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 32<<10) + "\r\n\r\n"); r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %d", r.StatusCode)
	}
	if a := c.post("/command", `["ECHO","`+strings.Repeat("x", 1<<20)+`"]`); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body: %d", a.status)
	}
	for range 5 {
		c.expect(`{"reply":`+strconv.Itoa(300_000)+`}`, "SETRANGE", "long", "299999", "x")
		c.expect(`{"reply":1100000}`, "SETRANGE", "longer", "1099999", "x")
	}
	if got := c.command("GET", "longer"); !strings.Contains(got, "ERR the reply is longer than 1048576 bytes") {
		t.Errorf("a long reply: %.200s", got)
	}
	if got := c.command("GET", "long"); !strings.Contains(got, "ERR the reply is longer than 1048576 bytes") { // six characters for each NUL
		t.Errorf("a reply that is long as JSON: %.200s", got)
	}
	const many = `{"error":"ERR COUNT 1001: the page may ask for up to 1000"}`
	c.expect(many, "SCAN", "0", "COUNT", "1001")
	c.expect(many, "scan", "0", "match", "COUNT", "count", "1001")
	c.expect(many, "DOC.SCAN", "0", "0", "COUNT", "1001")
	c.expect(many, "DOC.QUERY", "0", "SELECT * FROM c", "COUNT", "1001")
	c.expect(many, "CONTAINER.DUE", "0", "0", "COUNT", "1001")
	c.expect(many, "CONTAINER.HISTORY", "0", "COUNT", "1001")
	c.expect(many, "XRANGE", "s", "-", "+", "COUNT", "1001")
	c.expect(many, "XREAD", "COUNT", "1001", "STREAMS", "s", "0")
	if got := c.command("SCAN", "0", "COUNT", "1000"); !strings.HasPrefix(got, `{"reply":["0",["long`) {
		t.Error(got)
	}
	c.expect(`{"reply":"OK"}`, "SET", "COUNT", "5000")
	c.expect(`{"reply":"OK"}`, "MSET", "COUNT", "5000")
	if got := c.command("DOC.SCAN", "COUNT", "5000"); !strings.Contains(got, "reply") && strings.Contains(got, "the page may") {
		t.Error(got)
	}
}

// Commands that change or hold their connection would do nothing, or never answer.
func TestPageConnectionCommands(t *testing.T) {
	t.Parallel()
	_, c := startPage(t)
	for _, line := range []string{"SUBSCRIBE a", "PSUBSCRIBE a", "SSUBSCRIBE a", "UNSUBSCRIBE", "MONITOR", "MULTI", "EXEC", "DISCARD", "WATCH a", "UNWATCH", "CLIENT REPLY OFF", "client reply skip",
		"CLIENT SETNAME a", "CLIENT SETINFO LIB-NAME a", "CLIENT NO-EVICT ON", "CLIENT NO-TOUCH ON", "HELLO 3", "RESET", "AUTH a", "QUIT", "SELECT 1", "READONLY", "READWRITE", "ASKING", "WAIT 1 0", "SCRIPT DEBUG YES"} {
		if got := c.command(strings.Fields(line)...); !strings.HasPrefix(got, `{"error":"ERR `) || !strings.Contains(got, "of no use on the page") {
			t.Errorf("%s: %s", line, got)
		}
	}
	for _, line := range []string{"XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "xreadgroup group STREAMS c count 1 block 0 streams s >",
		"XREADGROUP GROUP g STREAMS NOACK BLOCK 0 STREAMS s >", "BLPOP list 0", "BZMPOP 0 1 z MIN"} {
		if got := c.command(strings.Fields(line)...); !strings.Contains(got, "the page runs ") {
			t.Errorf("%s: %s", line, got)
		}
	}
	c.expect(`{"reply":null}`, "XREAD", "STREAMS", "BLOCK", "0")
	if got := c.command("XREADGROUP", "GROUP", "BLOCK", "block", "STREAMS", "BLOCK", ">"); !strings.Contains(got, "NOGROUP") {
		t.Errorf("a group named BLOCK: %s", got)
	}
	c.expect(`{"error":"ERR the first word must be the name of a command"}`, "")
	c.expect(`{"error":"ERR the first word must be the name of a command"}`, "", "PING")
	c.expect(`{"reply":"PONG"}`, "PING")
}

// A read-only page changes nothing, whatever it is asked for.
func TestPageReadOnly(t *testing.T) {
	t.Parallel()
	_, c := startPage(t, "--web-readonly", "yes")
	for _, line := range []string{"SET a 1", "DEL a", "GETDEL a", "GETEX a", "DOC.PUT c a {}", "DOC.TOUCH c a", "DOC.GETTOUCH c a", "TOUCH a", "CONTAINER.SET c TTL 1", "CONTAINER.UNDO c", "FLUSHALL", "FLUSHDB", "EVAL return 0", "EVALSHA x 0",
		"CONFIG SET maxmemory 1", "CONFIG REWRITE", "SHUTDOWN NOSAVE", "PUBLISH a b", "CLIENT KILL TYPE normal", "CLIENT PAUSE 1000", "SCRIPT FLUSH", "SLOWLOG RESET", "COMPACT", "BACKUP x", "XTRIM s MAXLEN 0", "XADD s * a b", "CLUSTER FAILOVER", "MEMORY PURGE"} {
		if got := c.command(strings.Fields(line)...); !strings.HasPrefix(got, `{"error":"READONLY the page is read-only`) {
			if name := strings.Fields(line)[0]; name == "TOUCH" && strings.HasPrefix(got, `{"reply"`) {
				continue // it counts, and changes no end
			}
			t.Errorf("%s: %s", line, got)
		}
	}
	for _, line := range []string{"GET a", "SCAN 0", "PING", "INFO", "CONTAINER.LIST", "CONTAINER.FORECAST *", "CONTAINER.PLAN 0 TTL 1", "CONTAINER.HISTORY 0", "DOC.SCAN 0 0", "DBSIZE", "TIME"} {
		if got := c.command(strings.Fields(line)...); !strings.HasPrefix(got, `{"reply":`) {
			t.Errorf("%s: %s", line, got)
		}
	}
	if a := c.do("GET", "/state", ""); !strings.Contains(a.body, `"readonly":true`) {
		t.Error(a.body)
	}
	refused := regexp.MustCompile(`"error":"(READONLY .*|ERR .* is of no use on the page.*|ERR .* waits: the page runs what does not)"`)
	for _, command := range engine.TableSorted { // of all commands with the flag, not one gets through
		if command.Flags&(engine.Write|engine.MayWrite|engine.Admin|engine.Publishes) != 0 && len(command.Sub) == 0 {
			if got := c.command(command.Name); !refused.MatchString(got) {
				t.Errorf("%s: %s", command.Name, got)
			}
		}
	}
}

// The page shows what other clients would see of it: its commands are counted, listed and watched as theirs.
func TestPageIsAClient(t *testing.T) {
	t.Parallel()
	_, c := startPage(t)
	if got := c.command("CLIENT", "INFO"); !strings.Contains(got, "name=page") || !strings.Contains(got, "addr=127.0.0.1:") {
		t.Errorf("CLIENT INFO: %s", got)
	}
	c.expect(`{"reply":"OK"}`, "CONTAINER.CREATE", "carts", "TTL", "60")
	if got := c.command("CONTAINER.HISTORY", "carts"); !strings.Contains(got, `"by","127.0.0.1:`) {
		t.Errorf("the history does not name the browser: %s", got)
	}
	if got := c.command("INFO", "commandstats"); !strings.Contains(got, "cmdstat_container.create:calls=1") {
		t.Error("the command is not counted")
	}
}

// A browser that leaves makes room for the next one.
func TestPageLeaves(t *testing.T) {
	t.Parallel()
	_, c := startPage(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for n := 0; n < 40; {
		r, err := http.NewRequestWithContext(ctx, "GET", c.base+"/live", nil)
		must(t, err)
		response, err := c.http.Do(r)
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode == http.StatusOK { // the server may not have noticed yet that others have left
			n++
		}
	}
}

// sample returns figures and names of containers of the first sample that a browser gets.
func (c *pageClient) sample(t *testing.T, cookie string) (info map[string]any, names []string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", c.base+"/live", nil)
	must(t, err)
	r.Header.Set("Cookie", cookie)
	response, err := http.DefaultClient.Do(r)
	must(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var sample struct {
				Info       map[string]any
				Containers []struct{ Name string }
			}
			must(t, json.Unmarshal([]byte(text), &sample))
			for _, container := range sample.Containers {
				names = append(names, container.Name)
			}
			return sample.Info, names
		}
	}
	t.Errorf("no sample: %d", response.StatusCode)
	return nil, nil
}

// The page is live: samples come once a second, while the browser may read.
func TestPageLive(t *testing.T) {
	t.Parallel()
	_, c := startPage(t, "--requirepass", "secret")
	cookie := cookieOf(c.post("/login", `{"password":"secret"}`))
	if got := c.post("/command", `["DOC.PUT","0","a","{}","TTL","100"]`, "Cookie", cookie).body; !strings.Contains(got, "reply") {
		t.Fatal(got)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", c.base+"/live", nil)
	must(t, err)
	r.Header.Set("Cookie", cookie)
	response, err := http.DefaultClient.Do(r)
	must(t, err)
	defer response.Body.Close()
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" || response.Header.Get("Content-Security-Policy") != csp {
		t.Errorf("%v", response.Header)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for n := 0; n < 2 && lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		n++
		var sample struct {
			Info       map[string]any
			Containers []struct {
				Name      string
				Documents int
				Next      int64
			}
		}
		must(t, json.Unmarshal([]byte(text), &sample))
		if sample.Info["mayfly_version"] != Version || len(sample.Containers) != 16 || sample.Containers[0].Documents != 1 || sample.Containers[0].Next == 0 {
			t.Errorf("the sample is %.300s", text)
		}
	}
}

// The stream ends with the session of its browser.
func TestPageLiveEnds(t *testing.T) {
	t.Parallel()
	s, c := startPage(t, "--requirepass", "secret")
	host := strings.TrimPrefix(c.base, "http://")
	for name, end := range map[string]func(cookie string){
		"logout":          func(cookie string) { c.post("/logout", `{}`, "Cookie", cookie) },
		"password change": func(string) { must(t, s.ConfigSet([][2]string{{"requirepass", "other"}})) },
	} {
		cookie := cookieOf(c.post("/login", `{"password":"secret"}`))
		response := c.raw("GET /live HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\n\r\n")
		if line, err := bufio.NewReader(response.Body).ReadString(':'); line != "data:" {
			t.Fatalf("%s: the stream begins with %q: %v", name, line, err)
		}
		end(cookie)
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Errorf("the stream outlives the %s: %v", name, err)
		}
		must(t, s.ConfigSet([][2]string{{"requirepass", "secret"}}))
	}
}

// Over TLS the cookie is for TLS only, and a browser shows no certificate.
func TestPageOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	s, c := startPage(t, "--tls-port", strconv.Itoa(securePort), "--tls-cert-file", a.file("server.crt"), "--tls-key-file", a.file("server.key"), "--tls-ca-cert-file", a.file("ca.crt"), "--requirepass", "secret")
	plain := c.base
	c.base = strings.Replace(c.base, "http:", "https:", 1)
	if got, want := s.PageURL(), c.base+"/"; got != want {
		t.Errorf("the page is at %s, not %s", got, want)
	}
	c.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool}}
	if got := c.post("/login", `{"password":"secret"}`).header.Get("Set-Cookie"); !strings.HasSuffix(got, "; HttpOnly; Secure; SameSite=Strict") {
		t.Errorf("the cookie is %s", got)
	}
	for origin, want := range map[string]int{c.base: http.StatusOK, plain: http.StatusForbidden} {
		if a := c.do("GET", "/state", "", "Origin", origin); a.status != want {
			t.Errorf("from %s: %d %s", origin, a.status, a.body)
		}
		if a := c.post("/login", `{"password":"secret"}`, "Origin", origin); (a.status == http.StatusForbidden) != (want == http.StatusForbidden) {
			t.Errorf("a login from %s: %d %s", origin, a.status, a.body)
		}
	}
	for range 40 { // connections with a request under way keep their place
		c.http.CloseIdleConnections()
		if a := c.do("GET", "/", ""); a.status != 200 {
			t.Errorf("%d", a.status)
		}
	}
	if response, err := http.Get(plain + "/"); err == nil {
		if response.Body.Close(); response.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d", response.StatusCode)
		}
	}
	c.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool, MaxVersion: tls.VersionTLS11}}
	if _, err := c.http.Get(c.base + "/"); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

// Without web-addr nothing listens and nothing runs.
func TestNoPage(t *testing.T) {
	s, e := observed(t, "")
	before := runtime.NumGoroutine()
	if s.web != nil || s.Settings().WebAddr != "" {
		t.Error("a page is served")
	}
	s.Start(e)
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if strings.Contains(string(stacks), "mayfly/server/web") {
		t.Errorf("a goroutine of the page runs; there were %d before", before)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	must(t, s.Stop(ctx))
}

// While data is loaded the page says so.
func TestPageWhileLoading(t *testing.T) {
	t.Parallel()
	s, e := observed(t, "127.0.0.1")
	c := pageOf(t, s)
	if a := c.do("GET", "/", ""); a.status != 200 {
		t.Errorf("the page: %d", a.status)
	}
	if a := c.post("/command", `["PING"]`); a.status != http.StatusServiceUnavailable {
		t.Errorf("a command: %d %s", a.status, a.body)
	}
	s.Start(e)
	if n := s.Info().Rejected; n != 0 {
		t.Errorf("%d commands sent while loading count as clients that were rejected", n)
	}
	c.expect(`{"reply":"PONG"}`, "PING")
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	must(t, s.Stop(ctx))
	if _, err := net.Dial("tcp", s.web.Addr().String()); err == nil {
		t.Error("the page outlives the server")
	}
}

func TestPageAddrInUse(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	s := newTestServer(t, "--bind", ownHost(t), "--port", strconv.Itoa(port), "--web-addr", ln.Addr().String())
	if err := s.Listen(); err == nil || !strings.HasPrefix(err.Error(), "cannot listen on web-addr "+ln.Addr().String()) {
		t.Errorf("%v", err)
	}
}

// A word that the server refuses before it has read it gets an answer: the page waits for the reply while it
// sends.
func TestPageWordsTooLong(t *testing.T) {
	t.Parallel()
	_, c := startPage(t, "--requirepass", "secret", "--max-value-size", "100000")
	long := strings.Repeat("x", 200_000)
	if a := c.post("/login", `{"password":"`+long+`"}`); a.status != http.StatusUnauthorized || !strings.Contains(a.body, "the password is longer than any that the server takes") {
		t.Errorf("login: %d %.200s", a.status, a.body)
	}
	cookie := cookieOf(c.post("/login", `{"password":"secret"}`))
	if a := c.post("/command", `["SET","k","`+long+`"]`, "Cookie", cookie); a.status != http.StatusOK || !strings.Contains(a.body, "longer than max-value-size") {
		t.Errorf("SET: %d %.200s", a.status, a.body)
	}
}

// TestRefusalBeforeStart: until the server serves clients, the page may run nothing.
func TestRefusalBeforeStart(t *testing.T) {
	t.Parallel()
	if got := (pageBackend{newTestServer(t)}).Refusal("default", "", []string{"GET"}); got != "command" {
		t.Errorf("refused: %q", got)
	}
}
