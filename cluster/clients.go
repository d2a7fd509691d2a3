package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"mayfly/cluster/topology"
	"mayfly/cluster/transport"
	"mayfly/expiry/clock"
)

// clientOf is the first line on a stream of a client that another node passes on.
type clientOf struct {
	Addr  string `json:"addr"`  // of the client
	LAddr string `json:"laddr"` // of the node to which it is connected
	User  []byte `json:"user"`  // its name, which need not be a text; nil: the node knows no users
}

// The bounds of that line.
const (
	clientLine     = 1 << 10
	clientLineTime = 5 * time.Second
)

// DialClient opens a connection to a member, which runs a session at its other end for a client of this node.
// The error is [topology.ErrKnowsNoUsers] if the member would not hold a user to its rights who has not all.
func (n *Node) DialClient(ctx context.Context, id uint64, client topology.Client) (net.Conn, error) {
	inc := n.running.Load()
	switch {
	case inc == nil:
		return nil, errRestarting
	case id == inc.identity.ID: // this node has become the leader
		here, there := net.Pipe()
		n.options.ServeClient(there, client.Addr, client.LAddr, client.User)
		return here, nil
	}
	protocol := transport.ClientStream
	if client.Restricted {
		protocol = transport.UserStream
	}
	conn, err := inc.transport.Dial(ctx, id, protocol)
	if refused := (*transport.RefusedError)(nil); client.Restricted && errors.As(err, &refused) && refused.Status == http.StatusBadRequest {
		return nil, topology.ErrKnowsNoUsers
	}
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(clientOf{client.Addr, client.LAddr, []byte(client.User)})
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, err
	}
	return conn, nil
}

// serveClient takes a stream of a client from another member.
func (n *Node) serveClient(_ uint64, conn net.Conn) {
	var client clientOf
	r := bufio.NewReaderSize(conn, clientLine)
	err := conn.SetReadDeadline(clock.Deadline(clientLineTime))
	if err == nil {
		var line []byte
		if line, err = r.ReadSlice('\n'); err == nil {
			err = json.Unmarshal(line, &client)
		}
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil || n.options.ServeClient == nil {
		_ = conn.Close() // the node that has dialled sees it
		return
	}
	user := "default"
	if client.User != nil {
		user = string(client.User)
	}
	n.options.ServeClient(&readAhead{conn, r}, client.Addr, client.LAddr, user)
}

// readAhead is a connection of which a part is read already.
type readAhead struct {
	net.Conn
	r *bufio.Reader
}

func (c *readAhead) Read(b []byte) (int, error) { return c.r.Read(b) }

// NetConn returns the connection below.
func (c *readAhead) NetConn() net.Conn { return c.Conn }
