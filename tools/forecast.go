package tools

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"mayfly/tools/chart"

	"github.com/gomodule/redigo/redis"
	"golang.org/x/term"
)

var forecastTool = tool{
	name:   "forecast",
	syntax: "[container] [--range 1h|24h|30d|1y] [--host name] [--port number]",
	summary: "Draws what dies when in a running server: in one container, or in all. Two marks tell what dies by the container's default, and what by an end of its own. " +
		"Where standard output is no terminal it writes a line for each step of time. " +
		"Exit code: 0 it is drawn, 2 it could not be.",
	run: forecast,
}

// ranges are the times that a forecast covers. The first bucket has begun already, so there is one more.
var ranges = []struct {
	name           string
	every, buckets int // s; number
}{{"1h", 60, 61}, {"24h", 3600, 25}, {"30d", 86400, 31}, {"1y", 14 * 86400, 27}}

// liveOptions are the options of tools that look at one running server.
type liveOptions struct {
	serverOptions
	host, socket string
	port         int
	span         string
}

func (o *liveOptions) define(c *call) {
	c.flags.StringVar(&o.host, "host", "127.0.0.1", "name or IP address of the server")
	c.flags.IntVar(&o.port, "port", 6379, "TCP port of the server")
	c.flags.StringVar(&o.socket, "socket", "", "path of the server's Unix socket, instead of host and port")
	c.flags.StringVar(&o.span, "range", "24h", "time of the histogram: 1h, 24h, 30d or 1y")
	o.serverOptions.define(c)
}

// address returns what the tool connects to.
func (o *liveOptions) address() string {
	if o.socket != "" {
		return o.socket
	}
	return net.JoinHostPort(o.host, strconv.Itoa(o.port))
}

// open checks the range and connects. every is the width of a bucket in seconds. A follower of a cluster
// shows its own data, as its page does.
func (o *liveOptions) open() (c *client, every, buckets int, err error) {
	for _, r := range ranges {
		if r.name == o.span {
			every, buckets = r.every, r.buckets
		}
	}
	if buckets == 0 {
		return nil, 0, 0, fmt.Errorf("invalid range %s: legal are 1h, 24h, 30d and 1y", o.span)
	}
	network := "tcp"
	if o.socket != "" {
		network = "unix"
	}
	if c, err = o.connectOver(network, o.address()); err != nil {
		return nil, 0, 0, advise(err)
	}
	var refused redis.Error // the server is no node
	if _, err := c.do("READONLY"); err != nil && !errors.As(err, &refused) {
		c.close()
		return nil, 0, 0, err
	}
	return c, every, buckets, nil
}

func forecast(c *call) (int, error) {
	var o liveOptions
	o.define(c)
	values, err := c.arguments()
	if err == nil && len(values) > 1 {
		err = fmt.Errorf("%d containers: mayfly forecast takes one, or none for all", len(values))
	}
	if err != nil {
		return exitFailed, err
	}
	name := ""
	if len(values) == 1 {
		name = values[0]
	}
	server, every, buckets, err := o.open()
	if err != nil {
		return exitFailed, err
	}
	defer server.close()
	f, err := readForecast(server, name, every, buckets)
	if err != nil {
		return exitFailed, suggestContainer(server, name, err)
	}
	lines := chart.List(f)
	if c.Terminals.Out {
		width, height := c.size()
		lines = chart.Histogram(f, width, max(min(height-8, 12), 3), c.style())
	}
	_, err = fmt.Fprintln(c.Out, strings.Join(lines, "\n"))
	return exitOK, err
}

// size returns the columns and lines of the terminal.
func (c *call) size() (width, height int) {
	if c.screen != nil {
		if width, height, err := term.GetSize(int(c.screen.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// style returns how the terminal shows marks: colours unless NO_COLOR is set, and characters by its locale.
func (c *call) style() chart.Style {
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale = os.Getenv(name); locale != "" {
			break
		}
	}
	locale = strings.ToLower(locale)
	return chart.Style{
		Color: c.Terminals.Out && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		ASCII: !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8"),
	}
}

// readForecast asks a server for the forecast of a container; of all if the name is empty.
func readForecast(server *client, name string, every, buckets int) (*chart.Forecast, error) {
	asked := name
	if name == "" {
		asked = "*"
	}
	reply, err := server.do("CONTAINER.FORECAST", asked, "EVERY", every, "BUCKETS", buckets)
	if err != nil {
		return nil, err
	}
	f := &chart.Forecast{Name: name, Every: int64(every)}
	list, own := []any(nil), []any(nil)
	read := func(field func() error) {
		if err == nil {
			err = field()
		}
	}
	amount := func(name string, to *chart.Amount) {
		read(func() error {
			pair, err := field[[]any](reply, name)
			*to = amountOf(pair)
			return err
		})
	}
	read(func() (err error) { f.Now, err = field[int64](reply, "now"); return err })
	read(func() (err error) { list, err = field[[]any](reply, "buckets"); return err })
	read(func() (err error) { own, err = field[[]any](reply, "own"); return err })
	amount("killed", &f.Overdue)
	amount("later", &f.Later)
	amount("never", &f.Never)
	if err != nil {
		return nil, err
	}
	for i := range min(len(list), len(own)) {
		bucket, _ := list[i].([]any)
		pair, _ := own[i].([]any)
		if len(bucket) == 3 {
			from, _ := bucket[0].(int64)
			f.Buckets = append(f.Buckets, chart.Bucket{From: from, Amount: amountOf(bucket[1:]), Own: amountOf(pair)})
		}
	}
	return f, nil
}

// amountOf returns a pair of a reply: items and bytes.
func amountOf(pair []any) (a chart.Amount) {
	if len(pair) == 2 {
		a.Items, _ = pair[0].(int64)
		a.Bytes, _ = pair[1].(int64)
	}
	return a
}

// advise says what to do about a server that is not there.
func advise(err error) error {
	var failed *net.OpError
	if errors.As(err, &failed) && failed.Op == "dial" {
		return fmt.Errorf("%w; --host and --port, or --socket, name another server", err)
	}
	return err
}

// suggestContainer names the containers of a server whose names are like an unknown one.
func suggestContainer(server *client, name string, err error) error {
	var refused redis.Error
	if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "ERR unknown container") {
		return err
	}
	reply, failed := server.do("CONTAINER.LIST")
	if failed != nil {
		return err
	}
	list, _ := reply.([]any)
	var near []string
	for _, one := range list {
		if text, _ := one.(string); len(near) < mostNear && edits(strings.ToLower(text), strings.ToLower(name)) <= max(1, min(len(name)/3, 3)) {
			near = append(near, chart.Printable(text))
		}
	}
	if len(near) == 0 {
		return fmt.Errorf("there is no container %s", chart.Printable(name))
	}
	return fmt.Errorf("there is no container %s; did you mean %s?", chart.Printable(name), strings.Join(near, " or "))
}

const mostNear = 3 // names that an error suggests

// edits returns how many bytes must be inserted, removed or replaced to make one text of another.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			if row[j+1] = min(above, row[j]) + 1; a[i] == b[j] {
				row[j+1] = min(row[j+1], left)
			} else {
				row[j+1] = min(row[j+1], left+1)
			}
			left = above
		}
	}
	return row[len(b)]
}
