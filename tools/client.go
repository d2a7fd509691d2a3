package tools

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// serverOptions are the options of a connection to a server, named as in redis-cli.
type serverOptions struct {
	password, cacert, cert, key string
	tls                         bool
}

// passwordVariable is the environment variable that holds a password, as for redis-cli.
const passwordVariable = "REDISCLI_AUTH"

func (o *serverOptions) define(c *call) {
	c.flags.StringVar(&o.password, "password", "", "of the server; safer in the environment variable "+passwordVariable)
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

// quietLog drops what go-redis would log: errors are returned as well.
type quietLog struct{}

func (quietLog) Printf(context.Context, string, ...any) {}

// connect opens one connection to a server, so that SELECT holds for what follows.
func (o *serverOptions) connect(ctx context.Context, address string) (*redis.Conn, func(), error) {
	redis.SetLogger(quietLog{})
	password := cmp.Or(o.password, os.Getenv(passwordVariable))
	options := &redis.Options{Addr: address, Password: password, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, ReadTimeout: -1, WriteTimeout: -1}
	if o.tls {
		var err error
		if options.TLSConfig, err = o.tlsConfig(address); err != nil {
			return nil, nil, err
		}
	}
	client := redis.NewClient(options)
	conn := client.Conn()
	shut := func() { _ = conn.Close(); _ = client.Close() }
	if err := conn.Ping(ctx).Err(); err != nil {
		shut()
		return nil, nil, fmt.Errorf("server %s: %w", address, err)
	}
	return conn, shut, nil
}

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
func do(ctx context.Context, conn *redis.Conn, args ...any) (any, error) {
	reply, err := conn.Do(ctx, args...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", args[0], err)
	}
	return reply, nil
}

// field returns a member of a reply that is a map.
func field[T any](reply any, name string) (value T, err error) {
	m, _ := reply.(map[any]any)
	value, ok := m[name].(T)
	if !ok {
		err = fmt.Errorf("the server's reply has no %s as expected: is it mayfly?", name)
	}
	return value, err
}
