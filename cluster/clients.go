package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"time"

	"mayfly/cluster/transport"
	"mayfly/expiry/clock"
)

// clientOf is the first line on a stream of a client that another node passes on.
type clientOf struct {
	Addr  string `json:"addr"`  // of the client
	LAddr string `json:"laddr"` // of the node to which it is connected
}

// The bounds of that line.
const (
	clientLine     = 1 << 10
	clientLineTime = 5 * time.Second
)

// DialClient opens a connection to a member, which runs a session at its other end for a client of this node:
// addr and laddr are the ends of the client's connection.
func (n *Node) DialClient(ctx context.Context, id uint64, addr, laddr string) (net.Conn, error) {
	inc := n.running.Load()
	switch {
	case inc == nil:
		return nil, errRestarting
	case id == inc.identity.ID: // this node has become the leader
		here, there := net.Pipe()
		n.options.ServeClient(there, addr, laddr)
		return here, nil
	}
	conn, err := inc.transport.Dial(ctx, id, transport.ClientStream)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(clientOf{addr, laddr})
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
	n.options.ServeClient(&readAhead{conn, r}, client.Addr, client.LAddr)
}

// readAhead is a connection of which a part is read already.
type readAhead struct {
	net.Conn
	r *bufio.Reader
}

func (c *readAhead) Read(b []byte) (int, error) { return c.r.Read(b) }

// NetConn returns the connection below.
func (c *readAhead) NetConn() net.Conn { return c.Conn }
