package entry

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Bounds of what a member may be called. The state is in the log, and in the memory of every node.
const (
	MostMembers = 64  // with those that were announced
	mostName    = 63  // bytes
	mostHost    = 255 // bytes; a name of DNS is no longer
)

// IsName reports whether a node can have the name: 1 to 63 letters, digits, dots, dashes and underscores, the
// first a letter or a digit.
func IsName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '.' && c != '_') {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= mostName
}

// IsAddr reports whether others can dial the address: host:port with both parts. The host is a name, or an
// address of IPv4 or, in brackets, of IPv6 with or without a zone. 0.0.0.0 and :: are no addresses of one
// machine.
func IsAddr(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || len(host) > mostHost {
		return false
	}
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == ':', c == '%':
		default:
			return false
		}
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && port == strconv.FormatUint(n, 10)
}

// Check returns an error for a member whose name or addresses cannot be legal.
func (m Member) Check() error {
	switch {
	case !IsName(m.Name):
		return fmt.Errorf("the name %.80q is not legal: legal are 1 to %d letters, digits, dots, dashes and underscores", m.Name, mostName)
	case !IsAddr(m.Addr):
		return fmt.Errorf("the address %.80q of %s is not legal: legal is host:port", m.Addr, m.Name)
	case m.Client != "" && !IsAddr(m.Client):
		return fmt.Errorf("the address %.80q of %s for clients is not legal: legal is host:port", m.Client, m.Name)
	}
	return nil
}
