package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"mayfly/cluster/entry"
)

// ClusterSettings are the options of a node of a cluster. Without an ID the server is no node of a cluster.
type ClusterSettings struct {
	ID    string        // name of this node; empty: one machine
	Addr  string        // host:port on which the other nodes reach this one
	Peers []ClusterPeer // the nodes that form the cluster, this one among them, by name

	NodeTimeout  time.Duration // without a leader before an election
	ReadIndex    bool          // ask a majority for each read
	Proxy        bool          // pass commands on to the leader
	AnnounceAddr string        // host:port at which clients reach this node; empty: the host of Addr and the port
	Name         string        // of the master, for Sentinel's clients
	LogSize      int64         // bytes of the replicated log that are kept behind the checkpoint

	CertFile, KeyFile, CACertFile string // paths, PEM
	SecretFile                    string // path
}

// ClusterPeer is a node of a cluster as the option cluster-peers names it.
type ClusterPeer struct{ Name, Addr string }

// minClusterSecret is the length in bytes of the shortest legal content of cluster-secret-file.
const minClusterSecret = 32

// clusterName is the name of a node, or empty.
var clusterName = kind[string]{
	parse: func(text string) (string, error) {
		if text != "" && !entry.IsName(text) {
			return "", errors.New("argument must be 1 to 63 letters, digits, dots, dashes and underscores, or empty")
		}
		return text, nil
	},
	format: asIs.format,
	values: "1 to 63 letters, digits, dots, dashes and underscores, or empty",
}

// clusterAddr is the address of a node, or empty.
var clusterAddr = kind[string]{
	parse: func(text string) (string, error) {
		if text != "" && !entry.IsAddr(text) {
			return "", errors.New("argument must be host:port, with a port from 1 to 65535")
		}
		return text, nil
	},
	format: asIs.format,
	values: "empty, or a host:port", // the unit follows
}

// masterName is a name that the messages of Sentinels can hold: they are words between blanks.
var masterName = kind[string]{
	parse: func(text string) (string, error) {
		if !entry.IsName(text) {
			return "", errors.New("argument must be 1 to 63 letters, digits, dots, dashes and underscores")
		}
		return text, nil
	},
	format: asIs.format,
	values: "1 to 63 letters, digits, dots, dashes and underscores",
}

// clusterPeers is a list such as a=h1:7001,b=h2:7001, or empty.
var clusterPeers = kind[[]ClusterPeer]{
	parse: func(text string) (peers []ClusterPeer, err error) {
		if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		for part := range strings.SplitSeq(text, ",") {
			name, addr, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch {
			case !entry.IsName(name) || !entry.IsAddr(addr):
				return nil, errors.New("argument must be name=host:port,... without blanks")
			case slices.ContainsFunc(peers, func(p ClusterPeer) bool { return p.Name == name || p.Addr == addr }):
				return nil, errors.New("argument must name each node and each address once")
			}
			peers = append(peers, ClusterPeer{name, addr})
		}
		if len(peers) > entry.MostMembers {
			return nil, fmt.Errorf("argument must name at most %d nodes", entry.MostMembers)
		}
		slices.SortFunc(peers, func(a, b ClusterPeer) int { return cmp.Compare(a.Name, b.Name) })
		return peers, nil
	},
	format: func(peers []ClusterPeer) string {
		words := make([]string, len(peers))
		for i, p := range peers {
			words[i] = p.Name + "=" + p.Addr
		}
		return strings.Join(words, ",")
	},
	values: fmt.Sprintf("name=host:port,... for each node once, at most %d, or empty", entry.MostMembers),
}

// clusterEnabled is Redis' switch. It shows whether the server is a node of a cluster.
type clusterEnabled struct{ p *ClusterSettings }

func (v clusterEnabled) Set(text string) error {
	if !strings.EqualFold(text, "no") {
		return errors.New("argument must be " + v.legal())
	}
	return nil
}

func (v clusterEnabled) String() string { return yesNo.format(v.p.ID != "") }
func (v clusterEnabled) legal() string  { return `only "no"` }

// ClientAddr returns the address at which clients reach this node.
func (s *Settings) ClientAddr() string {
	if s.Cluster.AnnounceAddr != "" {
		return s.Cluster.AnnounceAddr
	}
	host, _, _ := net.SplitHostPort(s.Cluster.Addr) // legal, or empty
	return net.JoinHostPort(host, strconv.Itoa(cmp.Or(s.Port, s.TLSPort)))
}

// CheckCluster returns an error, one line for each mistake, if the options of a cluster contradict each
// other, or others.
func (s *Settings) CheckCluster() error {
	c := &s.Cluster
	var mistakes []string
	fail := func(format string, parts ...any) { mistakes = append(mistakes, fmt.Sprintf(format, parts...)) }
	switch {
	case c.ID == "" && c.Addr != "":
		fail("option cluster-addr with value %q needs cluster-id, the name of this node", c.Addr)
	case c.ID == "" && len(c.Peers) > 0:
		fail("option cluster-peers with value %q needs cluster-id, the name of this node", clusterPeers.format(c.Peers))
	case c.ID != "" && (c.Addr == "" || len(c.Peers) == 0):
		fail("option cluster-id with value %q needs cluster-addr and cluster-peers", c.ID)
	case c.ID != "":
		c.checkPeers(fail)
		c.checkCredentials(fail)
		if err := s.checkProof(false); err != nil {
			fail("%v", err)
		}
		if c.AnnounceAddr == "" && s.Port == 0 && s.TLSPort == 0 {
			fail("option cluster-id with value %q needs port, tls-port or cluster-announce-addr: the other nodes send clients there", c.ID)
		}
	}
	if mistakes == nil {
		return nil
	}
	return errors.New(strings.Join(mistakes, "\n"))
}

func (c *ClusterSettings) checkPeers(fail func(string, ...any)) {
	at := slices.IndexFunc(c.Peers, func(p ClusterPeer) bool { return p.Name == c.ID })
	switch {
	case at < 0:
		fail("option cluster-peers with value %q does not name this node, %s", clusterPeers.format(c.Peers), c.ID)
	case c.Peers[at].Addr != c.Addr:
		fail("option cluster-peers gives %s the address %s, but cluster-addr is %s", c.ID, c.Peers[at].Addr, c.Addr)
	}
}

func (c *ClusterSettings) checkCredentials(fail func(string, ...any)) {
	given := 0
	for _, path := range []string{c.CertFile, c.KeyFile, c.CACertFile} {
		if path != "" {
			given++
		}
	}
	switch {
	case given == 1 || given == 2:
		fail("options cluster-cert-file, cluster-key-file and cluster-ca-cert-file need each other")
	case given == 3 && c.SecretFile != "":
		fail("options cluster-secret-file and cluster-cert-file exclude each other")
	case given == 0 && c.SecretFile == "" && !c.onLoopback():
		fail("an address of cluster-peers with value %q is not of the loopback interface: "+
			"set cluster-cert-file, cluster-key-file and cluster-ca-cert-file, or cluster-secret-file", clusterPeers.format(c.Peers))
	}
}

// checkProof returns an error if clients must prove who they are, but nodes need not: a process on this
// machine that says that it is a node is served as an authenticated client of any user. users says that there
// are some with less than all rights, or with passwords.
func (s *Settings) checkProof(users bool) error {
	c := &s.Cluster
	const need = " needs cluster-secret-file, or cluster-cert-file, cluster-key-file and cluster-ca-cert-file: " +
		"without them any process on this machine passes for a node"
	switch {
	case c.ID == "" || c.SecretFile != "" || c.CertFile != "":
		return nil
	case s.RequirePass != "":
		return errors.New("a node of a cluster with requirepass" + need)
	case users:
		return errors.New("a node of a cluster with users" + need)
	case s.Port == 0 && s.TLSPort != 0 && s.TLSAuthClients == "yes":
		return errors.New("a node of a cluster whose clients must show a certificate" + need)
	}
	return nil
}

// onLoopback reports whether all nodes are on this machine.
func (c *ClusterSettings) onLoopback() bool {
	for _, p := range append(slices.Clone(c.Peers), ClusterPeer{c.ID, c.Addr}) {
		host, _, _ := net.SplitHostPort(p.Addr) // legal
		if ip, err := netip.ParseAddr(host); !strings.EqualFold(host, "localhost") && (err != nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}
