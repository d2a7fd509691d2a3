package main

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"mayfly/server"
	"mayfly/server/config"
)

// welcome says where the server listens, and where its page is, if there is one. With an untouched folder it
// also says how to see a document die. In another one those commands could change the default of a container
// of the user.
func welcome(w io.Writer, addresses []string, page string, settings *config.Settings, untouched bool) {
	fmt.Fprintf(w, "mayfly %s listens on %s; its data is in %s\n", server.Version, strings.ReplaceAll(strings.Join(addresses, ", "), "tcp ", ""), settings.Dir)
	if page != "" {
		fmt.Fprintf(w, "Its page: %s\n", page)
	}
	password := ""
	if settings.RequirePass != "" {
		password = "  export REDISCLI_AUTH=...    # the password, see requirepass\n"
	}
	cli := redisCLI(settings, addresses)
	if !untouched {
		fmt.Fprintf(w, "What it holds:\n%s  %s CONTAINER.LIST\n", password, cli)
		return
	}
	later := "Ten seconds after the second command"
	if settings.ManualClock {
		later = "After " + cli + " CLOCK ADVANCE 10"
	}
	fmt.Fprintf(w, `Try it:
%[2]s  %[1]s CONTAINER.SET orders TTL 10
  %[1]s DOC.PUT orders 1 '{"item":"tea"}'
  %[1]s DOC.GET orders 1
%[3]s, the third answers (nil).
`, cli, password, later)
}

// redisCLI is the command line of redis-cli that reaches the server from this machine. It has no password,
// because every user of the machine could read it there.
func redisCLI(s *config.Settings, addresses []string) string {
	if s.Port == 0 && s.TLSPort == 0 {
		return "redis-cli -s " + shellWord(s.UnixSocket)
	}
	words, port := []string{"redis-cli"}, cmp.Or(s.Port, s.TLSPort)
	if s.Port == 0 {
		words = append(words, "--tls")
		if s.TLSCACertFile != "" {
			words = append(words, "--cacert", shellWord(s.TLSCACertFile))
		} else {
			words = append(words, "--insecure") // no authority is known
		}
		if s.TLSAuthClients == "yes" {
			words = append(words, "--cert CERTIFICATE --key KEY")
		}
	}
	if host := hostOf(addresses, strconv.Itoa(port)); host != "127.0.0.1" {
		words = append(words, "-h", host)
	}
	if words = append(words, "-p", strconv.Itoa(port)); s.Cluster.ID != "" {
		words = append(words, "-c") // follows MOVED to the leader
	}
	return strings.Join(words, " ")
}

// hostOf is the address, of those that the server listens on, by which this machine reaches a port.
func hostOf(addresses []string, port string) string {
	best := ""
	for _, address := range addresses {
		host, p, err := net.SplitHostPort(strings.TrimPrefix(address, "tcp "))
		switch {
		case err != nil || p != port:
		case host == "127.0.0.1" || host == "0.0.0.0":
			return "127.0.0.1"
		case host == "::":
			best = "::1"
		case best == "":
			best = host
		}
	}
	return best
}

// shellWord writes a word for a shell.
func shellWord(s string) string {
	if !strings.ContainsAny(s, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
