package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/chromedp/cdproto/emulation"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"
)

// browser is a window of Chromium on the page of a server. Errors of its scripts and violations of the
// content security policy fail the test.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// endChromium ends the browser of startChromium.
var endChromium = func() {}

// startChromium starts one browser for all tests: a start costs as much as a test. It draws without a process
// of its own for that. The context that it returns is that of the first window, which stays empty.
var startChromium = sync.OnceValues(func() (context.Context, error) {
	// The headless shell takes a third of the processor time. Debian's script of this name outlives a kill.
	path, err := exec.LookPath("/usr/lib/chromium/chromium-headless-shell")
	if err != nil {
		path, err = exec.LookPath("chromium")
	}
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("in-process-gpu", true), chromedp.WindowSize(1200, 1300), chromedp.WSURLReadTimeout(harness.Patience))
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	endChromium = end
	ctx, _ = chromedp.NewContext(ctx) // ends with the browser
	return ctx, chromedp.Run(ctx)
})

// openBrowser opens a window, which shares neither cookies nor storage with others.
func openBrowser(t *testing.T, url string) *browser {
	t.Helper()
	ctx, err := startChromium()
	if errors.Is(err, exec.ErrNotFound) {
		harness.Absent(t, "chromium is not installed")
	}
	drill.Check(t, err)
	ctx, cancel := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 8*harness.Patience) // a story has some forty steps
	t.Cleanup(cancel)
	b := &browser{t, ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *cdpruntime.EventExceptionThrown:
			t.Errorf("the page fails: %s", e.ExceptionDetails.Error())
		case *cdpruntime.EventConsoleAPICalled:
			if e.Type == cdpruntime.APITypeError {
				t.Errorf("the page reports an error: %s", e.Args[0].Value)
			}
		}
	})
	b.run(chromedp.Navigate(url), chromedp.Evaluate(`window.violations = []; addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective))`, nil))
	return b
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	drill.Check(b.t, chromedp.Run(b.ctx, actions...))
}

// poll waits until an expression of JavaScript is true. Looking with every frame would have the browser draw
// without end.
func poll(expression string) chromedp.Action {
	return chromedp.Poll(expression, nil, chromedp.WithPollingInterval(30*time.Millisecond), chromedp.WithPollingTimeout(harness.Patience))
}

// await waits until an expression of JavaScript is true.
func (b *browser) await(expression string) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, poll(expression)); err != nil {
		var text string
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText`, &text))
		b.t.Fatalf("%s: %v\n%s", expression, err, text)
	}
}

// click clicks on what a mouse can hit. It looks and clicks in one step of the page, so that nothing moves
// meanwhile.
func (b *browser) click(selector string) chromedp.Action {
	return poll(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e || e.disabled) return false;
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect(), hit = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
		if (!hit || !e.contains(hit)) return false;
		e.focus();
		e.click();
		return true;
	})()`, selector))
}

func (b *browser) text(selector string) (text string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).innerText`, selector), &text))
	return text
}

// fill replaces what is in a field by selecting it and typing, as a person does.
func (b *browser) fill(selector, text string) chromedp.Action {
	return chromedp.Tasks{chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).select()`, selector), nil), chromedp.SendKeys(selector, text)}
}

// keep keeps a screenshot for people, if artifacts are kept: go test ./test/page -artifacts -outputdir
// somewhere
func (b *browser) keep(name string, shot func(*[]byte) chromedp.Action) {
	b.t.Helper()
	if flag.Lookup("test.artifacts").Value.String() != "true" {
		return
	}
	var picture []byte
	b.run(shot(&picture))
	drill.Check(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), picture, 0o644))
}

// whole takes all of the page, visible what the window shows.
func whole(picture *[]byte) chromedp.Action   { return chromedp.FullScreenshot(picture, 100) }
func visible(picture *[]byte) chromedp.Action { return chromedp.CaptureScreenshot(picture) }

// startPage starts mayfly with a page and some documents, and returns the page's address.
func startPage(t *testing.T, args ...string) (p *harness.Process, c *redis.Client, url string) {
	t.Helper()
	addr := harness.FreeAddress(t)
	p = harness.Start(t, t.TempDir(), append([]string{"--web-addr", addr}, args...)...)
	o := &redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, ReadTimeout: harness.Patience}
	if i := slices.Index(args, "--requirepass"); i >= 0 {
		o.Password = args[i+1]
	}
	c = redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return p, c, "http://" + addr + "/"
}

func fillPage(t *testing.T, c *redis.Client) {
	t.Helper()
	pipe := c.Pipeline()
	do := func(args ...any) { pipe.Do(t.Context(), args...) }
	do("CONTAINER.SET", "orders", "TTL", 30*86400)
	do("CONTAINER.SET", "sessions", "TTL", 3600)
	do("CONTAINER.SET", "carts", "TTL", 86400)
	for i := range 400 {
		do("DOC.PUT", "orders", fmt.Sprintf("order:%03d", i), fmt.Sprintf(`{"n":%d,"city":"Oslo"}`, i), "TTL", 3600+i*i*30)
		do("DOC.PUT", "carts", fmt.Sprintf("cart:%03d", i), fmt.Sprintf(`{"items":%d}`, i), "TTL", 60+i*137%86400)
		do("DOC.PUT", "sessions", fmt.Sprintf("user:%03d", i), fmt.Sprintf(`{"user":"u%d","since":"2026-01-01"}`, i))
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestPageInBrowser plays what people do on the page in a real browser.
func TestPageInBrowser(t *testing.T) {
	harness.Parallel(t)
	_, c, url := startPage(t, "--undo-window", "600")
	b := openBrowser(t, url)

	b.await(`!document.getElementById("hint").hidden && document.getElementById("status").dataset.state === "live"`)
	b.keep("empty", whole)
	fillPage(t, c)

	// The histogram of coming deaths.
	b.await(`document.querySelectorAll("#containers-body tr").length === 3`)
	b.await(`document.querySelector("#deaths-chart canvas") && /[1-9]\d* items die until \d+ \w+, \d\d:\d\d,/.test(document.getElementById("deaths-text").innerText)`)
	b.run(chromedp.Evaluate(`before = document.getElementById("deaths-text").innerText`, nil), b.click(`#ranges button:nth-of-type(3)`))
	b.await(`document.getElementById("deaths-text").innerText !== before && document.querySelector("#ranges [aria-pressed=true]").innerText === "30 d"`)
	b.await(`document.querySelector("svg.spark rect")`)
	b.await(`(() => { // a person moves the pointer until the text shows
		const box = document.querySelector("#deaths-chart .u-over"), at = box.getBoundingClientRect();
		box.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: at.left + 15, clientY: at.top + 50}));
		return /^from .*: [\d,]+ items?, [\d,]+ by a ttl of their own/.test(document.getElementById("deaths-bar").innerText);
	})()`)
	b.keep("histogram", whole)

	// A document, found by its id.
	b.run(chromedp.SetValue(`#documents-container`, "sessions"), chromedp.Evaluate(`document.getElementById("documents-container").dispatchEvent(new Event("change"))`, nil))
	b.run(chromedp.SendKeys(`#documents-find`, "user:00*\r"))
	b.await(`document.querySelectorAll("#documents-list li").length === 10`)
	b.run(b.click(`#documents-list li:nth-of-type(1) button`))
	b.await(`!document.getElementById("document").hidden`)
	if why := b.text("#document-why"); !regexp.MustCompile(`^Dies in 5\d min`).MatchString(why) || !strings.Contains(why, "default of sessions") {
		t.Errorf("the page says %q", why)
	}
	b.keep("document", whole)

	// A container, opened by its name; the results of a query, page by page.
	b.run(b.click(`#containers-body tr:nth-of-type(2) button.link`))
	b.await(`document.getElementById("documents-container").value === document.querySelector("#containers-body tr:nth-of-type(2)").dataset.name`)
	b.run(b.click(`#containers-body tr:nth-of-type(3) button.link`), b.fill("#documents-find", "SELECT * FROM c\r"))
	b.await(`document.getElementById("documents-text").innerText === "200 results so far"`)
	b.run(b.click(`#documents-next`))
	b.await(`document.getElementById("documents-text").innerText === "400 results" && document.getElementById("documents-next").hidden`)

	// A default that would kill, previewed: applied when the name is typed, and taken back.
	b.run(b.click(`#containers-body tr:nth-of-type(3) td:last-child button`))
	b.await(`document.getElementById("change").open && document.getElementById("change-before").innerText === "A change can be taken back for 10 min."`)
	b.run(b.fill("#change-ttl", "2 h"))
	b.await(`document.getElementById("change-span").innerText === "= 2 h" && !document.getElementById("change-apply").disabled`)
	b.run(b.fill("#change-ttl", "1"))
	b.await(`/400 items .* would die at once/.test(document.getElementById("change-text").innerText)`)
	b.await(`document.getElementById("change-apply").disabled && !document.getElementById("change-confirm").hidden`)
	b.keep("change", whole)
	b.run(chromedp.SendKeys(`#change-typed`, "sessions"))
	b.await(`!document.getElementById("change-apply").disabled`)
	b.run(b.click(`#change-apply`))
	b.await(`!document.getElementById("change-undo").hidden && document.getElementById("change-text").innerText.endsWith("400 items died.")`)
	if ttl := defaultOf(t, c, "sessions"); ttl != "1" {
		t.Errorf("the default is %s", ttl)
	}
	// What another client has changed meanwhile is not taken back unseen.
	drill.Check(t, c.Do(t.Context(), "CONTAINER.SET", "sessions", "TTL", "2").Err())
	b.run(b.click(`#change-undo`))
	b.await(`document.getElementById("change-error").innerText.startsWith("Someone else")`)
	if ttl := defaultOf(t, c, "sessions"); ttl != "2" {
		t.Errorf("the default is %s", ttl)
	}
	b.run(b.click(`#change-undo`))
	b.await(`!document.getElementById("change").open`)
	b.run(b.click(`#containers-body tr[data-name="sessions"] td:last-child button`))
	b.await(`!document.getElementById("change-undo").hidden`)
	if ttl := defaultOf(t, c, "sessions"); ttl != "1" {
		t.Errorf("the default is %s after the first undo", ttl)
	}
	b.run(b.click(`#change-undo`))
	b.await(`!document.getElementById("change").open`)
	if n, err := c.Do(t.Context(), "DOC.COUNT", "sessions").Int(); n != 400 || err != nil {
		t.Errorf("after the undo %d documents live: %v", n, err)
	}

	// Refused: the default has changed meanwhile.
	b.run(b.click(`#containers-body tr:nth-of-type(2) td:last-child button`), b.fill("#change-ttl", "100000000"))
	b.await(`!document.getElementById("change-apply").disabled`)
	drill.Check(t, c.Do(t.Context(), "CONTAINER.SET", "orders", "TTL", 50*86400).Err())
	b.run(b.click(`#change-apply`))
	b.await(`/Someone else has changed this default/.test(document.getElementById("change-error").innerText)`)
	if ttl := defaultOf(t, c, "orders"); ttl != "4320000" {
		t.Errorf("the default is %s", ttl)
	}
	b.keep("refused", whole)
	b.await(`!document.getElementById("change-apply").disabled`) // the preview is that of the new settings
	b.run(b.click(`#change-apply`))
	b.await(`/is 3 y 62 d now/.test(document.getElementById("change-text").innerText)`)
	b.run(b.click(`#change-cancel`))

	// Refused: more would die than the page has shown.
	b.await(`document.getElementById("change").open === false`)
	drill.Check(t, c.Do(t.Context(), "CONTAINER.CREATE", "young", "TTL", 1000).Err())
	b.await(`document.querySelectorAll("#containers-body tr").length === 4`)
	b.run(b.click(`#containers-body tr:nth-of-type(4) td:last-child button`), b.fill("#change-ttl", "1"))
	b.await(`!document.getElementById("change-apply").disabled`)
	drill.Check(t, c.Do(t.Context(), "DOC.PUT", "young", "a", "{}").Err())
	harness.WaitFor(t, "a document to be older than a second", func() bool {
		left, err := c.Do(t.Context(), "DOC.TTL", "young", "a").Int()
		return err == nil && left < 999
	})
	b.run(b.click(`#change-apply`))
	b.await(`document.getElementById("change-sample").innerText === "It is a."`)
	b.await(`/would kill more than 0 items/.test(document.getElementById("change-error").innerText) && !document.getElementById("change-confirm").hidden`)
	b.run(b.click(`#change-cancel`))

	// On a small screen nothing is wider than the screen.
	b.run(chromedp.EmulateViewport(400, 800), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
	b.await(`document.documentElement.scrollWidth <= 400 && document.querySelector("#deaths-chart canvas").offsetWidth < 400`)
	for _, part := range []string{"main section:not([hidden])", "main button, main input, main select, main h2, main td, #tiles div"} {
		b.await(`[...document.querySelectorAll("` + part + `")].every((e) => e.getBoundingClientRect().right <= 400)`)
	}
	b.keep("small", whole)
	var violations []string
	b.run(chromedp.Evaluate(`violations`, &violations))
	if len(violations) > 0 {
		t.Errorf("the page violates its policy: %v", violations)
	}
}

// tab presses the key Tab and returns what has the focus: an id, or the text or label of an element without
// one. It checks that the focus can be seen.
func (b *browser) tab() string {
	b.t.Helper()
	var focus struct {
		Name    string
		Visible bool
	}
	b.run(chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(`(() => {
		const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
		return {name: e.id || e.getAttribute("aria-label") || e.innerText || e.tagName,
			visible: e === document.body || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.width > 0};
	})()`, &focus))
	if !focus.Visible {
		b.t.Errorf("the focus on %q cannot be seen", focus.Name)
	}
	return focus.Name
}

// tabTo presses Tab until an element has the focus.
func (b *browser) tabTo(want string) {
	b.t.Helper()
	var seen []string
	for range 60 {
		name := b.tab()
		if name == want {
			return
		}
		seen = append(seen, name)
	}
	b.t.Fatalf("Tab does not reach %q, only %q", want, seen)
}

// TestPageByKeyboard does with keys all that the page can do.
func TestPageByKeyboard(t *testing.T) {
	harness.Parallel(t)
	_, c, url := startPage(t, "--requirepass", "secret", "--undo-window", "600")
	fillPage(t, c)
	b := openBrowser(t, url)
	b.await(`document.getElementById("login").open`)
	b.run(chromedp.KeyEvent("wrong\r"))
	b.await(`document.getElementById("login-error").innerText === "That is not the password."`)
	b.run(chromedp.KeyEvent("secret\r"))
	b.await(`document.querySelectorAll("#containers-body tr").length === 3 && document.querySelectorAll("#documents-list li").length > 10`)

	b.tabTo("Skip to the containers")
	b.tabTo("logout")
	b.tabTo("deaths-container")
	b.run(chromedp.KeyEvent("o")) // orders
	b.await(`/^400 items|^\d+ items? dies? until \d+ \w+, \d\d:\d\d/.test(document.getElementById("deaths-text").innerText) && document.getElementById("deaths-container").value === "orders"`)
	b.tabTo("1 h")
	b.run(chromedp.Evaluate(`before = document.getElementById("deaths-text").innerText`, nil), chromedp.KeyEvent(" "))
	b.await(`document.getElementById("deaths-text").innerText !== before && document.querySelector("#ranges [aria-pressed=true]").innerText === "1 h"`)
	b.tabTo("1 y")

	b.tabTo("Change the default of sessions")
	b.run(chromedp.KeyEvent("\r"))
	b.await(`document.getElementById("change").open && document.activeElement.id === "change-ttl"`)
	b.run(chromedp.KeyEvent("1"))
	b.await(`/400 items/.test(document.getElementById("change-text").innerText)`)
	b.tabTo("change-slider")
	b.run(chromedp.KeyEvent(kb.End))
	b.await(`document.getElementById("change-ttl").value === "315360000" && !document.getElementById("change-apply").disabled`)
	b.run(chromedp.KeyEvent(kb.Home))
	b.await(`document.getElementById("change-ttl").value === "1" && !document.getElementById("change-confirm").hidden`)
	b.tabTo("change-typed")
	b.run(chromedp.KeyEvent("sessions\r"))
	b.await(`document.activeElement.id === "change-undo"`)
	if ttl := defaultOf(t, c, "sessions"); ttl != "1" {
		t.Errorf("the default is %s", ttl)
	}
	b.run(chromedp.KeyEvent("\r"))
	b.await(`!document.getElementById("change").open && document.activeElement.innerText === "Change"`)
	if ttl := defaultOf(t, c, "sessions"); ttl != "3600" {
		t.Errorf("the default is %s after the undo", ttl)
	}
	b.run(chromedp.KeyEvent("\r"))
	b.await(`document.getElementById("change").open`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.await(`!document.getElementById("change").open`)

	b.tabTo("documents-container")
	b.run(chromedp.KeyEvent("s")) // sessions
	b.await(`document.querySelector("#documents-list li")?.innerText.startsWith("user:")`)
	b.tabTo("documents-find")
	b.run(chromedp.KeyEvent("user:007\r"))
	b.await(`document.querySelectorAll("#documents-list li").length === 1`)
	b.tabTo("user:007")
	b.run(chromedp.KeyEvent("\r"))
	b.await(`document.getElementById("document-id").innerText === "user:007"`)
	b.tabTo("document-touch")
	b.run(chromedp.KeyEvent("\r"))
	b.await(`document.getElementById("document-done").innerText.startsWith("Touched")`)
	b.tabTo("document-ttl")
	b.run(chromedp.KeyEvent("-1\r"))
	b.await(`/^It never dies/.test(document.getElementById("document-why").innerText)`)
	b.tabTo("document-delete")
	b.run(chromedp.KeyEvent("\r"))
	b.await(`document.getElementById("document-delete").innerText === "Delete it for ever?"`)
	b.run(chromedp.KeyEvent("\r"))
	b.await(`document.getElementById("document-done").innerText === "Deleted."`)
	if n, err := c.Do(t.Context(), "DOC.COUNT", "sessions").Int(); n != 399 || err != nil {
		t.Errorf("%d documents live: %v", n, err)
	}
	b.run(chromedp.Evaluate(`document.querySelector(".skip").focus()`, nil))
	b.tabTo("logout")
	b.run(chromedp.KeyEvent("\r"), chromedp.WaitVisible("#login-password"))
}

// TestPageWritesDocuments makes a document and edits it. What others wrote meanwhile stays.
func TestPageWritesDocuments(t *testing.T) {
	harness.Parallel(t)
	_, c, url := startPage(t)
	put := func(id, text string) {
		t.Helper()
		drill.Check(t, c.Do(t.Context(), "DOC.PUT", "carts", id, text).Err())
	}
	has := func(id, want string) {
		t.Helper()
		if got, err := c.Do(t.Context(), "DOC.GET", "carts", id).Text(); got != want || err != nil {
			t.Errorf("%s is %s, not %s: %v", id, got, want, err)
		}
	}
	drill.Check(t, c.Do(t.Context(), "CONTAINER.CREATE", "carts", "TTL", 86400).Err())
	put("7", `{"b":12345678901234567890,"a":[1.0,"x, y"]}`)
	b := openBrowser(t, url)
	b.await(`document.querySelectorAll("#documents-list li").length === 1`)

	// A new document. The server's errors show, and no other document is overwritten.
	b.run(b.click("#documents-new"))
	b.await(`document.getElementById("edit").open && document.activeElement.id === "edit-id"`)
	b.run(chromedp.SendKeys("#edit-id", "7"), b.fill("#edit-text", `{"n": }`), b.click("#edit-save"))
	b.await(`document.getElementById("edit-error").innerText.startsWith("invalid JSON at byte 7")`)
	b.run(b.fill("#edit-text", `{"n": 1}`), b.fill("#edit-ttl", "soon"), b.click("#edit-save"))
	b.await(`document.getElementById("edit-error").innerText.startsWith("invalid ttl soon")`)
	b.run(b.fill("#edit-ttl", "2 h"), b.click("#edit-save"))
	b.await(`document.getElementById("edit-error").innerText.startsWith("There is a document with this id already.")`)
	b.keep("new", visible)
	b.run(b.fill("#edit-id", "8"), chromedp.KeyEvent("\r"))
	b.await(`!document.getElementById("edit").open && document.getElementById("document-done").innerText === "Saved."`)
	b.await(`document.getElementById("document-id").innerText === "8" && /^Dies in (2 h|1 h 59 min)/.test(document.getElementById("document-why").innerText)`)
	has("8", `{"n":1,"ttl":7200}`)
	has("7", `{"b":12345678901234567890,"a":[1.0,"x, y"]}`)

	// An edit keeps numbers, and stores the text without the page's line breaks.
	b.run(b.click("#documents-list li:nth-of-type(1) button"))
	b.await(`document.getElementById("document-id").innerText === "7"`)
	edit := func(what, by string) {
		t.Helper()
		b.run(b.click("#document-edit"))
		b.await(`document.getElementById("edit").open && document.activeElement.id === "edit-text"`)
		b.run(chromedp.Evaluate(fmt.Sprintf(`document.getElementById("edit-text").setRangeText(%q, %s, "end")`, by, what), nil))
	}
	const end = `document.getElementById("edit-text").value.length - 2, document.getElementById("edit-text").value.length - 2`
	edit(end, `, "new": true`)
	b.run(b.click("#edit-save"))
	b.await(`document.getElementById("document-done").innerText === "Saved." && document.getElementById("document-text").innerText.includes("new")`)
	has("7", `{"b":12345678901234567890,"a":[1.0,"x, y"],"new":true}`)

	// A write of others meanwhile: nothing is saved, and what was typed stays.
	edit(end, `, "late": true`)
	put("7", `{"theirs":1}`)
	b.run(b.click("#edit-save"))
	b.await(`document.getElementById("edit-error").innerText.startsWith("This document has been changed") && document.getElementById("edit-text").value.includes("late")`)
	has("7", `{"theirs":1}`)
	b.run(b.click("#edit-cancel"))
	edit(end, `, "mine": 2`)
	b.run(b.click("#edit-save"))
	b.await(`!document.getElementById("edit").open`)
	has("7", `{"theirs":1,"mine":2}`)

	// A document that has died meanwhile is not made again.
	edit(end, "")
	drill.Check(t, c.Do(t.Context(), "DOC.DEL", "carts", "7").Err())
	b.run(b.click("#edit-save"))
	b.await(`document.getElementById("edit-error").innerText.includes("deleted")`)
	b.run(b.click("#edit-cancel"), b.click("#document-edit"))
	b.await(`document.getElementById("document-text").innerText === "There is no such item." && !document.getElementById("edit").open`)
	if n, err := c.Do(t.Context(), "DOC.COUNT", "carts").Int(); n != 1 || err != nil {
		t.Errorf("%d documents live: %v", n, err)
	}
}

// TestPageIndexes makes an index, sees what it holds, and drops it.
func TestPageIndexes(t *testing.T) {
	harness.Parallel(t)
	_, c, url := startPage(t)
	pipe := c.Pipeline()
	for _, words := range [][]any{{"CONTAINER.CREATE", "orders"}, {"CONTAINER.CREATE", "shops"}, {"INDEX.CREATE", "shops", "/at", "GEO"}, {"INDEX.CREATE", "shops", "/a b", "/c"},
		{"DOC.PUT", "orders", "1", `{"status":"open"}`}, {"DOC.PUT", "orders", "2", `{"status":"paid"}`}} {
		pipe.Do(t.Context(), words...)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, url)
	b.await(`document.querySelectorAll("#documents-list li").length === 2`)
	b.run(b.click("#indexes summary"), chromedp.SendKeys("#indexes-paths", "status\r"))
	b.await(`document.getElementById("indexes-text").innerText.includes("did you mean /status?")`)
	b.run(b.fill("#indexes-paths", "/status\r"))
	b.await(`/^\/status\s+ready\s+2\s+\d+ B\s+0\s+Drop$/.test(document.getElementById("indexes-body").innerText.trim())`)
	b.run(b.fill("#indexes-paths", "/status  /the total\r"))
	b.await(`document.getElementById("indexes-text").innerText === "Created." && document.querySelectorAll("#indexes-body tr").length === 2`)
	b.keep("indexes", whole)
	b.run(b.click("#indexes-body tr:nth-of-type(1) button"))
	b.await(`document.querySelector("#indexes-body button").innerText === "Drop it?"`)
	b.run(b.click("#indexes-body tr:nth-of-type(1) button"))
	b.await(`document.getElementById("indexes-text").innerText === "Dropped." && document.querySelector("#indexes-body tr:only-child td")?.innerText === "/status /the total"`)
	b.run(chromedp.Evaluate(`document.getElementById("documents-container").value = "shops"; document.getElementById("documents-container").dispatchEvent(new Event("change"))`, nil))
	b.await(`[...document.querySelectorAll("#indexes-body td:first-child")].map((e) => e.innerText).sort().join() === "/a b /c,/at GEO"`)
	b.run(chromedp.Evaluate(`[...document.querySelectorAll("#indexes-body button")].forEach((e) => { e.click(); e.click(); })`, nil))
	b.await(`document.querySelectorAll("#indexes-body tr").length === 0`)
	for name, want := range map[string]int{"orders": 1, "shops": 0} {
		if list, err := c.Do(t.Context(), "INDEX.LIST", name).Slice(); len(list) != want || err != nil {
			t.Errorf("%s has the indexes %v: %v", name, list, err)
		}
	}
}

// TestPageShowsMore looks at plain keys, a query, a log of deaths, odd names, and a page that changes
// nothing.
func TestPageShowsMore(t *testing.T) {
	harness.Parallel(t)
	_, c, url := startPage(t, "--web-readonly", "yes")
	pipe := c.Pipeline()
	for _, words := range [][]any{{"SET", "plain", "hello", "EX", "5000"}, {"SET", "\xff\xfe", "\xff"},
		{"HSET", "a hash", "name", "ann", "\xff", "1"}, {"HPEXPIRE", "a hash", "9000000", "FIELDS", "1", "name"}, {"SADD", "a set", "bob"}, {"ZADD", "a sorted set", "1.5", "cid"},
		{"RPUSH", "a list", "x", "y"}, {"EXPIRE", "a list", "5000"}, {"DOC.PUT", "0", "<img src=x onerror=alert(1)>", `{"html":"<script>alert(2)</script>"}`},
		{"CONTAINER.CREATE", "odd:a.b-c", "TTL", "3600"}, {"DOC.PUT", "odd:a.b-c", "1", `{"n":1}`}, {"DOC.PUT", "odd:a.b-c", "2", `{"n":2}`},
		{"CONTAINER.CREATE", "carts", "TTL", "1", "LOG", "3600"}, {"DOC.PUT", "carts", "7", `{"mail":"ann@example.org"}`}} {
		pipe.Do(t.Context(), words...)
	}
	pipe.Do(t.Context(), "CONTAINER.CREATE", "hostile")
	pipe.Do(t.Context(), "DOC.PUT", "hostile", "\u202egpj.\u200b\n", `{"2":12345678901234567890, "1":[1.0,{}],"a,b":"\\\":{"}`)
	for i := range 41 {
		pipe.Do(t.Context(), "DOC.PUT", "hostile", strings.Repeat(fmt.Sprintf("%02d", i), 25_000), "{}")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, url)
	b.await(`document.querySelectorAll("#containers-body tr").length === 4 && document.querySelectorAll("#documents-list li").length === 7`)
	if got := b.text("#containers-body"); !strings.Contains(got, "odd:a.b-c") || strings.Contains(got, "Change") {
		t.Errorf("the containers are %s", got)
	}
	choose := func(text string) chromedp.Action {
		return chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll("#documents-list button")].find((e) => e.innerText === %q).click()`, text), nil)
	}
	b.run(choose("plain"))
	b.await(`document.getElementById("document-text").innerText === "hello" && /^Dies in 1 h [12]\d min/.test(document.getElementById("document-why").innerText)`)
	for _, want := range [][2]string{{"a hash", "hash of 2 elements\n\nname: ann\nbase64 /w==: 1"}, {"a set", "set of 1 element\n\nbob"},
		{"a sorted set", "zset of 1 element\n\n1.5  cid"}, {"a list", "list of 2 elements\n\nx\ny"}} {
		b.run(choose(want[0]))
		b.await(fmt.Sprintf(`document.getElementById("document-text").innerText === %q`, want[1]))
	}
	b.await(`/^Dies in 1 h [12]\d min/.test(document.getElementById("document-why").innerText)`)
	b.run(choose("base64 //4="))
	b.await(`document.getElementById("document-text").innerText.startsWith("base64 /w==")`)
	b.run(choose("<img src=x onerror=alert(1)>"))
	b.await(`document.getElementById("document-text").innerText.includes("<script>alert(2)</script>") && document.getElementById("document-actions").hidden && document.getElementById("documents-new").hidden`)
	b.run(chromedp.Evaluate(`document.getElementById("documents-container").value = "odd:a.b-c"; document.getElementById("documents-container").dispatchEvent(new Event("change"))`, nil))
	b.await(`document.querySelectorAll("#documents-list li").length === 2`)
	b.run(b.fill("#documents-find", "SELECT c.n FROM c WHERE c.n > 1\r"))
	b.await(`document.getElementById("documents-text").innerText === "1 result"`)
	b.run(b.click(`#documents-list button`))
	b.await(`document.getElementById("document-id").innerText === "2" && /^Dies in/.test(document.getElementById("document-why").innerText)`)
	b.run(b.fill("#documents-find", "where n < 2\r"))
	b.await(`document.querySelector("#documents-list").innerText.startsWith("1: ")`)
	b.run(b.fill("#documents-find", "SELECT COUNT(1) FROM c\r"))
	b.await(`document.querySelector("#documents-list").innerText.includes(":2")`)
	b.run(b.fill("#documents-find", "1\r"))
	b.await(`document.getElementById("documents-text").innerText === "1 id" && document.getElementById("document-id").innerText === "1"`)
	b.run(b.fill("#documents-find", "3\r"))
	b.await(`document.getElementById("documents-text").innerText.startsWith("Nothing here has this id")`)
	b.run(b.fill("#documents-find", "SELECT * FROM c WHERE\r"))
	b.await(`document.getElementById("documents-text").innerText.length > 20`)
	b.run(chromedp.Evaluate(`document.getElementById("documents-container").value = "hostile"; document.getElementById("documents-container").dispatchEvent(new Event("change"))`, nil))
	b.await(`document.getElementById("documents-text").innerText === "42 ids"`) // more than a reply holds
	b.run(choose(`\u202egpj.\u200b\u000a`))
	b.await(`document.getElementById("document-id").innerText === "\\u202egpj.\\u200b\\u000a"`)
	const numbers = "{\n  \"2\": 12345678901234567890,\n  \"1\": [\n    1.0,\n    {}\n  ],\n  \"a,b\": \"\\\\\\\":{\"\n}"
	if got := b.text("#document-text"); got != numbers {
		t.Errorf("the text is %s, not %s", got, numbers)
	}
	drill.Check(t, c.Do(t.Context(), "DOC.PUT", "carts", "soon", "{}", "TTL", 40).Err())
	b.await(`document.querySelector("#containers-body [data-name=carts]").cells[5].innerText === "1"`) // whether the minute of the clock ends before or not
	b.await(`/ann@example.org/.test(document.getElementById("log-body").innerText) && /the default/.test(document.getElementById("log-body").innerText)`)
	// The list of last deaths grows by itself.
	drill.Check(t, c.Do(t.Context(), "DOC.PUT", "carts", "next", `{"mail":"bob@example.org"}`, "TTL", 1).Err())
	b.await(`/bob@example.org[^]*ann@example.org/.test(document.getElementById("log-body").innerText)`)
	b.keep("log", whole)
}

// TestPageFindsContainers looks for containers by their names, where there are more than the page shows.
func TestPageFindsContainers(t *testing.T) {
	harness.Parallel(t)
	_, c, url := startPage(t)
	pipe := c.Pipeline()
	for i := range 210 {
		pipe.Do(t.Context(), "CONTAINER.CREATE", fmt.Sprintf("shop:%03d", i))
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, url)
	rows := `document.querySelectorAll("#containers-body tr").length`
	b.await(rows + ` > 100 && /^and [12][0-9] more containers$/.test(document.getElementById("containers-more").innerText)`)
	b.run(b.fill("#containers-find", "p:209\r"))
	b.await(rows + ` === 1 && document.querySelector("#containers-body [data-name='shop:209']") !== null && document.getElementById("containers-more").hidden`)
	b.run(b.fill("#containers-find", "shop:20?\r"))
	b.await(rows + ` === 10`)
	b.run(b.fill("#containers-find", "nothing\r"))
	b.await(rows + ` === 0 && document.getElementById("containers-more").innerText === "No container in use has such a name." && document.getElementById("hint").hidden`)
	b.run(b.fill("#containers-find", "*\r"))
	b.await(rows + ` > 100`)
}

// TestPageOfHostileTexts shows names, ids and texts that would break a page. Nothing is wider than the
// screen.
func TestPageOfHostileTexts(t *testing.T) {
	harness.Parallel(t)
	_, c, url := startPage(t)
	name, wide := strings.Repeat("a-long_name.", 11)[:128], strings.Repeat("W", 255)
	ids := []string{"<img src=x onerror=alert(1)>", "</pre><script>alert(2)</script>", wide, strings.Repeat("very-long/", 90), "\u202eevil\u202c", "שלום עולם, مرحبا بالعالم",
		"👩‍👩‍👧‍👦 🇳🇴 👍🏽", "a\x00b\x1b[31m\r\n\tc", strings.Repeat("Z̸̡̢͎͓", 30), "{{constructor}} ${alert(3)} &lt;b&gt; %s"}
	pipe := c.Pipeline()
	do := func(args ...any) { pipe.Do(t.Context(), args...) }
	do("CONTAINER.CREATE", name, "TTL", 3*86400, "LOG", 3600)
	do("CONTAINER.CREATE", "held", "TTL", 9*365*86400, "TTLMODE", "LENIENT")
	do("CONTAINER.SET", "held", "HOLD", wide)
	for _, id := range ids {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		drill.Check(t, e.Encode(map[string]any{id: id, "all": ids}))
		do("DOC.PUT", name, id, text.String())
		do("DOC.PUT", name, "dead "+id, text.String(), "TTL", 1)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, url)
	b.await(fmt.Sprintf(`document.querySelectorAll("#log-body tr").length === %d`, len(ids)))
	b.run(chromedp.Evaluate(fmt.Sprintf(`document.getElementById("documents-container").value = %q; document.getElementById("documents-container").dispatchEvent(new Event("change"))`, name), nil))
	b.await(fmt.Sprintf(`document.getElementById("documents-text").innerText === "%d ids"`, len(ids)))
	fits := func(width int64, what string) {
		t.Helper()
		var wider []string
		b.run(chromedp.Evaluate(fmt.Sprintf(`[document.documentElement, ...document.querySelectorAll("body, body *:not(svg *, .hidden)")]
			.filter((e) => e.getBoundingClientRect().right > %[1]d || e === document.documentElement && e.scrollWidth > %[1]d || e.tagName === "DIALOG" && e.scrollWidth > e.clientWidth)
			.map((e) => e.tagName + " " + e.id + " " + e.className)`, width), &wider))
		if len(wider) > 0 {
			t.Errorf("with %.40q some elements are wider than %d pixels: %.500q", what, width, wider)
		}
	}
	for _, look := range []struct {
		scheme        string
		width, height int64
	}{{"light", 400, 800}, {"dark", 1200, 900}} {
		b.run(chromedp.EmulateViewport(look.width, look.height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}))
		b.await(fmt.Sprintf(`document.querySelector("#deaths-chart canvas").offsetWidth < %d`, look.width))
		for i, id := range ids {
			b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelectorAll("#documents-list button")[%d].click()`, i), nil))
			b.await(fmt.Sprintf(`document.getElementById("document-id").textContent === document.querySelectorAll("#documents-list button")[%d].textContent`, i))
			fits(look.width, id)
		}
		b.keep("hostile-"+look.scheme, whole)
		b.run(b.click(`#containers-body tr td:last-child button`), b.fill("#change-ttl", "1"))
		b.await(`document.querySelectorAll("#change-sample bdi").length === 10 && !document.getElementById("change-confirm").hidden`)
		fits(look.width, "the change of a default")
		b.run(b.click(`#change-cancel`), b.click(`#containers-body [data-name=held] td:last-child button`))
		b.await(fmt.Sprintf(`document.getElementById("change-before").innerText === "On hold: %s. Nothing dies, and a change is refused until the hold ends."`, wide))
		fits(look.width, "the change of a container on hold")
		b.keep("hostile-change-"+look.scheme, visible)
		b.run(b.click("#change-cancel"))
	}
}

// TestPageOfReader: a user who reads and touches sees what it may see, and no button that the server would
// refuse.
func TestPageOfReader(t *testing.T) {
	harness.Parallel(t)
	_, c, url := startPage(t, "--requirepass", "secret")
	for _, line := range []string{
		"CONTAINER.CREATE orders TTL 3600", "CONTAINER.CREATE secrets TTL 3600", "INDEX.CREATE orders /n",
		`DOC.PUT orders 1 {"n":1}`, `DOC.PUT secrets 1 {"n":1}`,
		"ACL SETUSER reader on >pw ~* db=orders +@all -@write -@admin -@dangerous +info +doc.touch",
	} {
		var args []any
		for word := range strings.FieldsSeq(line) {
			args = append(args, word)
		}
		drill.Check(t, c.Do(t.Context(), args...).Err())
	}
	shown := func(user, password, want string) {
		b := openBrowser(t, url)
		b.await(`document.getElementById("login").open`)
		b.run(chromedp.SendKeys("#login-user", user), chromedp.SendKeys("#login-password", password), b.click("#login-form button"))
		b.await(`document.querySelectorAll("#documents-list li").length === 1`)
		b.run(b.click(`#documents-list li:nth-of-type(1) button`))
		b.await(`!document.getElementById("document").hidden && document.getElementById("document-id").innerText === "1"`)
		// The buttons of a document are answered together, those of its container before.
		b.await(`!document.getElementById("document-touch").hidden`)
		var text, buttons string
		b.run(chromedp.Evaluate(`["document-touch", "document-edit", "document-ttl-form", "document-delete", "documents-new", "indexes-form"]
			.filter((id) => !document.getElementById(id).hidden).join(" ")`, &buttons))
		if buttons != want {
			t.Errorf("%s is offered %s, want %s", user, buttons, want)
		}
		b.run(chromedp.Evaluate(`document.body.innerText`, &text))
		if saw := strings.Contains(text, "secrets"); saw != (user == "default") {
			t.Errorf("%s sees the other container: %t", user, saw)
		}
	}
	shown("default", "secret", "document-touch document-edit document-ttl-form document-delete documents-new indexes-form")
	shown("reader", "pw", "document-touch")
}

// TestPageOfTests: a server for tests says so at the top of its page, and another one does not.
func TestPageOfTests(t *testing.T) {
	harness.Parallel(t)
	for want, args := range map[string][]string{
		"": nil,
		"For tests: all data goes with this server.":                                                   {"--ephemeral", "yes"},
		"For tests: all data goes with this server, and its time stands still between CLOCK commands.": {"--ephemeral", "yes", "--clock", "manual"},
	} {
		_, _, url := startPage(t, args...)
		b := openBrowser(t, url)
		b.await(`document.getElementById("server").textContent !== ""`)
		if got := b.text("#passing"); got != want {
			t.Errorf("%q: the page says %q, want %q", args, got, want)
		}
		var hidden bool
		if b.run(chromedp.Evaluate(`document.getElementById("passing").hidden`, &hidden)); hidden != (want == "") {
			t.Errorf("%q: hidden is %t", args, hidden)
		}
	}
}

// TestPagePicture looks after the picture of the README.
func TestPagePicture(t *testing.T) {
	t.Parallel()
	const maxSize = 150_000
	if text, err := os.ReadFile("docs/page.png"); err != nil || len(text) > maxSize || !bytes.HasPrefix(text, []byte("\x89PNG")) {
		t.Errorf("docs/page.png has %d bytes: %v", len(text), err)
	}
}

// TestMakePagePicture makes the picture of the README, page.png among the artifacts.
func TestMakePagePicture(t *testing.T) {
	harness.Parallel(t)
	if flag.Lookup("test.artifacts").Value.String() != "true" {
		t.Skip("makes a picture with -artifacts only")
	}
	_, c, url := startPage(t)
	pipe := c.Pipeline()
	do := func(args ...any) { pipe.Do(t.Context(), args...) }
	for i, of := range []struct {
		name      string
		ttl, docs int
	}{{"carts", 8 * 3600, 1100}, {"drafts", 14 * 3600, 600}, {"orders", 30 * 86400, 700}, {"sessions", 2 * 3600, 900}, {"tokens", 900, 300}} {
		do("CONTAINER.CREATE", of.name, "TTL", of.ttl)
		for n := range of.docs {
			do("DOC.PUT", of.name, n, fmt.Sprintf(`{"user":"u%d","n":%d,"note":%q}`, n%700, n, strings.Repeat("x", (n+i*7)%90)))
		}
	}
	for i := range 1400 { // most of them die in the evening
		do("DOC.PUT", "carts", fmt.Sprint("own", i), `{"items":["tea"]}`, "TTL", 40+i*60+int(9000*math.Sin(4*math.Pi*float64(i)/1400)*float64(i)/1400))
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, url)
	b.run(chromedp.EmulateViewport(1000, 822))
	b.await(`document.querySelectorAll("#containers-body tr").length === 5 && document.querySelectorAll("#containers-body svg").length === 5`)
	for i := range 16 { // the lines need something to show
		for n := range 12 + i*i%23 {
			do("DOC.PUT", "sessions", n, `{"user":"ann"}`)
			do("DOC.GET", "carts", n)
			do("DOC.GET", "orders", n)
		}
		do("DOC.PUT", "tokens", fmt.Sprint("brief", i), `{"for":"ann"}`, "TTL", 1)
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.run(chromedp.Evaluate(`before = document.getElementById("tiles").innerHTML`, nil))
		b.await(`document.getElementById("tiles").innerHTML !== before`)
	}
	b.keep("all", whole)
	b.keep("page", visible)
}

func defaultOf(t *testing.T, c *redis.Client, name string) string {
	t.Helper()
	fields, err := c.Do(t.Context(), "CONTAINER.GET", name).Slice()
	if err != nil {
		m, err := c.Do(t.Context(), "CONTAINER.GET", name).Result()
		drill.Check(t, err)
		return fmt.Sprint(m.(map[any]any)["ttl"])
	}
	return fmt.Sprint(fields[3])
}
