package page

import (
	"fmt"
	"testing"

	"mayfly/test/harness"

	"github.com/chromedp/chromedp"
)

// TestClusterPage looks at the page of a follower: it shows the follower's own data, and names the leader
// when a change is asked of it.
func TestClusterPage(t *testing.T) {
	harness.Parallel(t)
	c := harness.StartCluster(t, 3)
	leader := c.Leader()
	follower := c.Others(leader)[0]
	addr := harness.FreeAddress(t)
	follower.Terminate()
	follower.Env = append(follower.Env, "MAYFLY_WEB_ADDR="+addr)
	follower.Start()
	follower.AwaitServing()
	leader = c.Leader()
	direct := leader.Connect()
	defer direct.Close()
	fillPage(t, direct)

	b := openBrowser(t, "http://"+addr+"/")
	b.await(`/follower/.test(document.getElementById("server").innerText) && document.querySelectorAll("#containers-body tr").length === 3`)
	b.await(`/items die until/.test(document.getElementById("deaths-text").innerText) && document.querySelectorAll("#documents-list li").length > 100`)
	b.run(b.click(`#documents-list li:nth-of-type(1) button`))
	b.await(`document.getElementById("document-text").innerText.includes("items")`)
	moved := fmt.Sprintf("This node is a follower. Only the leader makes changes: %s.", leader.ClientAddr)
	b.run(b.click(`#document-touch`))
	b.await(fmt.Sprintf(`document.getElementById("document-done").innerText === %q`, moved))
	b.run(chromedp.Evaluate(`document.getElementById("document-done").textContent = ""`, nil), b.click(`#document-delete`), b.click(`#document-delete`))
	b.await(fmt.Sprintf(`document.getElementById("document-done").innerText === %q && !!document.querySelector("#documents-list [aria-current]")`, moved))
	b.run(b.click(`#containers-body tr:nth-of-type(2) td:last-child button`), b.fill("#change-ttl", "100000000"))
	b.await(`!document.getElementById("change-apply").disabled`)
	b.run(b.click(`#change-apply`))
	b.await(fmt.Sprintf(`document.getElementById("change-error").innerText === %q`, moved))
	if ttl := defaultOf(t, direct, "orders"); ttl != "2592000" {
		t.Errorf("the default is %s", ttl)
	}
}
