package tools

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// serverOptions are the options of a connection to a server, named as in redis-cli.
type serverOptions struct {
	user, password, passwordFile, cacert, cert, key string
	tls                                             bool
	redis                                           bool // it is the Redis of an import
}

// passwordVariable is the environment variable that holds a password, as for redis-cli.
const passwordVariable = "REDISCLI_AUTH"

func (o *serverOptions) define(c *call) {
	c.flags.StringVar(&o.user, "user", "", "user of the server; empty: the default one")
	c.flags.StringVar(&o.password, "password", "", "password of the server; safer in the environment variable "+passwordVariable)
	c.flags.StringVar(&o.passwordFile, "password-file", "", "file with the password in its first line")
	c.flags.BoolVar(&o.tls, "tls", false, "speak TLS with the server")
	c.flags.StringVar(&o.cacert, "cacert", "", "file with the authority that has signed the server's certificate; empty: the system's")
	c.flags.StringVar(&o.cert, "cert", "", "file with a certificate of our own, for a server that asks for one")
	c.flags.StringVar(&o.key, "key", "", "file with its key")
}

// isAddress reports whether s is the address of a server and not the path of a folder.
func isAddress(s string) bool {
	if fi, err := os.Stat(s); err == nil && fi.IsDir() || strings.ContainsRune(s, os.PathSeparator) {
		return false
	}
	_, port, err := net.SplitHostPort(s)
	return err == nil && port != ""
}

// dialTimeout is the longest time to connect to a server.
const dialTimeout = 5 * time.Second

// client is one connection to a server: SELECT holds for what follows. Replies are those of RESP2, with
// strings.
type client struct {
	conn    redis.Conn
	address string
}

// connect opens a connection to a server.
func (o *serverOptions) connect(address string) (*client, error) {
	return o.connectOver("tcp", address)
}

// readPassword returns the password for the server, empty for none.
func (o *serverOptions) readPassword() (string, error) {
	if o.passwordFile == "" || o.password != "" {
		return cmp.Or(o.password, os.Getenv(passwordVariable)), nil
	}
	return firstLine(o.passwordFile)
}

// firstLine returns the first line of a file.
func firstLine(path string) (string, error) {
	text, err := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), err
}

// connectOver is connect over a network: tcp, or unix for the path of a socket.
func (o *serverOptions) connectOver(network, address string) (*client, error) {
	password, err := o.readPassword()
	if err != nil {
		return nil, err
	}
	return o.dial(network, address, o.user, password)
}

// dial opens a connection to a server for a user, empty for the default one.
func (o *serverOptions) dial(network, address, user, password string) (*client, error) {
	options := []redis.DialOption{redis.DialConnectTimeout(dialTimeout), redis.DialUsername(user), redis.DialPassword(password)}
	if o.tls && network == "tcp" {
		config, err := o.tlsConfig(address)
		if err != nil {
			return nil, err
		}
		options = append(options, redis.DialUseTLS(true), redis.DialTLSConfig(config))
	}
	conn, err := redis.Dial(network, address, options...)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w%s", address, err, o.advice(err))
	}
	c := &client{conn: conn, address: address}
	if _, err := c.do("PING"); err != nil {
		c.close()
		return nil, fmt.Errorf("server %s: %w%s", address, err, o.advice(err))
	}
	return c, nil
}

// advice says what to do about an error of a server that does not let us in; empty if there is nothing to
// say.
func (o *serverOptions) advice(err error) string {
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &authority):
		return "; --cacert names the file with its authority"
	case errors.As(err, &record):
		return "; it may not speak TLS: leave out --tls, or write redis:// for a Redis"
	case errors.Is(err, io.EOF) && !o.tls:
		return ", it closes the connection; it may speak TLS: --tls, or rediss:// for a Redis"
	case !strings.Contains(err.Error(), "NOAUTH ") && !strings.Contains(err.Error(), "WRONGPASS "):
		return ""
	case o.redis:
		return "; the password stands in its address, as in redis://:password@host:port/0, or in --redis-password-file"
	}
	return "; --user names the user, and the password is that of --password-file, or of " + passwordVariable
}

func (c *client) close() { _ = c.conn.Close() } // all replies have been read

func (o *serverOptions) tlsConfig(address string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{ServerName: host}
	if o.cacert != "" {
		pem, err := os.ReadFile(o.cacert)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in %s", o.cacert)
		}
	}
	if o.cert != "" || o.key != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// do runs one command. A null reply is nil.
func (c *client) do(command string, args ...any) (any, error) {
	if err := c.send(command, args...); err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	reply, err := c.receive()
	if refused, ok := errors.AsType[redis.Error](err); ok && strings.HasPrefix(string(refused), "ERR unknown command") {
		return nil, unknownCommand{c.address, command}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", command, err, c.awaited(err))
	}
	return reply, nil
}

// unknownCommand is the error of a server that does not know a command: most likely it is a Redis.
type unknownCommand struct{ address, command string }

func (e unknownCommand) Error() string {
	return fmt.Sprintf("%[1]s does not know %[2]s: it is not mayfly, or an older one; mayfly import redis://%[1]s/0 --container <name> copies the keys of a Redis", e.address, e.command)
}

// passedOn returns the error of a node that passes clients on to the leader of its cluster; nil if err is
// none.
func (c *client) passedOn(err error) error {
	refused, _ := errors.AsType[redis.Error](err)
	words := strings.Fields(string(refused))
	if len(words) != 3 || words[0] != "MOVED" {
		return nil
	}
	return fmt.Errorf("%s is a follower of its cluster: name its leader instead, %s", c.address, words[2])
}

// awaited returns what a node of a cluster waits for that has refused a command with LOADING, to follow the
// error; empty if that is not known.
func (c *client) awaited(err error) string {
	var refused redis.Error
	if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "LOADING ") || c.send("CLUSTER", "STATUS") != nil {
		return ""
	}
	status, err := c.receive()
	if err != nil { // it is no node of a cluster, or has gone
		return ""
	}
	if cause, _ := field[string](status, "cause"); cause != "" && !strings.HasSuffix(string(refused), cause) {
		return ": " + cause
	}
	return ""
}

// send adds a command to those whose replies receive returns, in order.
func (c *client) send(command string, args ...any) error { return c.conn.Send(command, args...) }

// receive returns the next reply. An error of the server is a redis.Error, also if it is one of the replies
// of EXEC.
func (c *client) receive() (any, error) {
	reply, err := c.receiveParts()
	if err != nil {
		return nil, err
	}
	replies, _ := reply.([]any)
	for _, r := range replies {
		if refused, ok := r.(redis.Error); ok {
			return nil, refused
		}
	}
	return reply, nil
}

// receiveParts is receive, but errors among the replies of EXEC stay there.
func (c *client) receiveParts() (any, error) {
	if err := c.conn.Flush(); err != nil {
		return nil, err
	}
	reply, err := c.conn.Receive()
	return text(reply), err
}

// text makes strings of all bytes of a reply.
func text(reply any) any {
	switch r := reply.(type) {
	case []byte:
		return string(r)
	case []any:
		for i := range r {
			r[i] = text(r[i])
		}
	}
	return reply
}

// field returns a member of a reply that is a map: names and values in turn.
func field[T any](reply any, name string) (value T, err error) {
	pairs, _ := reply.([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		if value, ok := pairs[i+1].(T); ok && pairs[i] == name {
			return value, nil
		}
	}
	return value, fmt.Errorf("the server's reply has no %s as expected: is it mayfly?", name)
}
