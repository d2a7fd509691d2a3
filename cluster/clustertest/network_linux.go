package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"mayfly/expiry/clock"

	"golang.org/x/sys/unix"
)

// Clients is the host of the test itself: Dial connects from it.
const Clients = 0

const (
	device = "mayfly0"
	mtu    = 60_000 // few packets: each passes the test
	queued = 4096   // packets that a slow link holds; more are lost
)

// Network is a set of hosts with a link from each to each other. Safe for concurrent use.
type Network struct {
	hosts []*host
	stop  chan struct{}

	mu    sync.RWMutex // protects links
	links map[direction]Link
	slow  map[direction]chan delayed
	done  sync.WaitGroup
}

// direction is a pair of hosts by number.
type direction struct{ from, to int }

// delayed is a packet on a slow link.
type delayed struct {
	packet []byte
	due    time.Duration // of clock.Monotonic
}

// host is a network namespace.
type host struct {
	addr netip.Addr
	tun  *os.File
	ns   int // descriptor of the namespace

	// run takes what is to run on the thread that is in the namespace. A process that starts there stays in
	// it.
	run chan func()
}

// New makes a network of n hosts besides that of the clients. Its error is ErrUnsupported if the machine does
// not allow that.
func New(n int) (*Network, error) {
	w := &Network{stop: make(chan struct{}), links: make(map[direction]Link), slow: make(map[direction]chan delayed)}
	for i := range n + 1 {
		h, err := newHost(netip.AddrFrom4([4]byte{10, 99, 0, byte(i + 1)}))
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		w.hosts = append(w.hosts, h)
	}
	for i := range w.hosts {
		w.done.Go(func() { w.forward(i) })
	}
	return w, nil
}

// Addr returns the address of a host.
func (w *Network) Addr(host int) string { return w.hosts[host].addr.String() }

// Start starts a process on a host.
func (w *Network) Start(host int, cmd *exec.Cmd) (err error) {
	w.hosts[host].do(func() { err = cmd.Start() })
	return err
}

// Dial connects as a client, with the signature of net.Dialer.DialContext. addr has an address, not a name.
func (w *Network) Dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		if err = unix.Setns(w.hosts[Clients].ns, unix.CLONE_NEWNET); err == nil {
			conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		}
	}()
	<-done
	return conn, err
}

// Set changes the link from one host to another, in this direction alone.
func (w *Network) Set(from, to int, l Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.links[direction{from, to}] = l
}

// SetBoth changes the link between two hosts.
func (w *Network) SetBoth(a, b int, l Link) {
	w.Set(a, b, l)
	w.Set(b, a, l)
}

// Isolate cuts a host off from all others but the clients.
func (w *Network) Isolate(host int) {
	for i := range w.hosts {
		if i != host && i != Clients {
			w.SetBoth(host, i, Link{Cut: true})
		}
	}
}

// Heal makes all links sound.
func (w *Network) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.links)
}

// Close removes the network. Processes on it lose their links.
func (w *Network) Close() {
	close(w.stop)
	for _, h := range w.hosts {
		_ = h.tun.Close()
	}
	w.done.Wait()
	for _, h := range w.hosts {
		close(h.run)
		_ = unix.Close(h.ns)
	}
}

// forward takes the packets of a host to their destinations until the network is closed.
func (w *Network) forward(from int) {
	b := make([]byte, mtu+100)
	for {
		n, err := w.hosts[from].tun.Read(b)
		if err != nil {
			return
		}
		to, ok := w.destination(b[:n])
		if !ok {
			continue
		}
		d := direction{from, to}
		w.mu.RLock()
		link := w.links[d]
		w.mu.RUnlock()
		switch {
		case link.loses():
		case link.Delay > 0:
			w.delay(d, delayed{append([]byte(nil), b[:n]...), clock.Monotonic() + link.Delay})
		default:
			_, _ = w.hosts[to].tun.Write(b[:n]) // a full queue loses packets, as a switch does
		}
	}
}

// destination returns the host that a packet is for. It is false for what is no IPv4 packet to one.
func (w *Network) destination(packet []byte) (host int, ok bool) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return 0, false
	}
	to := netip.AddrFrom4([4]byte(packet[16:20]))
	for i, h := range w.hosts {
		if h.addr == to {
			return i, true
		}
	}
	return 0, false
}

// delay hands a packet to the goroutine of a slow link.
func (w *Network) delay(d direction, p delayed) {
	w.mu.Lock()
	q := w.slow[d]
	if q == nil {
		q = make(chan delayed, queued)
		w.slow[d] = q
		w.done.Go(func() { w.deliver(d, q) })
	}
	w.mu.Unlock()
	select {
	case q <- p:
	default:
	}
}

// deliver writes the packets of a slow link when they are due. A link that was cut meanwhile loses them.
func (w *Network) deliver(d direction, q chan delayed) {
	for {
		select {
		case <-w.stop:
			return
		case p := <-q:
			select {
			case <-w.stop:
				return
			case <-time.After(p.due - clock.Monotonic()):
			}
			w.mu.RLock()
			cut := w.links[d].Cut
			w.mu.RUnlock()
			if !cut {
				_, _ = w.hosts[d.to].tun.Write(p.packet)
			}
		}
	}
}

// newHost makes a namespace with a device.
func newHost(addr netip.Addr) (*host, error) {
	h := &host{addr: addr, ns: -1, run: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		err := h.enter()
		made <- err
		if err != nil {
			return
		}
		for f := range h.run {
			f()
		}
	}()
	return h, <-made
}

// do runs f on the host's thread and waits for it.
func (h *host) do(f func()) {
	done := make(chan struct{})
	h.run <- func() { f(); close(done) }
	<-done
}

// enter puts the calling thread into a new namespace and brings its devices up.
func (h *host) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	var err error
	if h.ns, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return os.NewSyscallError("open namespace", err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open /dev/net/tun", err)
	}
	ifr, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("TUNSETIFF", err)
	}
	h.tun = os.NewFile(uintptr(fd), device)
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(s)
	set := func(name string, request uint, value func(*unix.Ifreq) error) error {
		ifr, err := unix.NewIfreq(name)
		if err == nil {
			err = value(ifr)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, request, ifr)
		}
		return err
	}
	up := func(ifr *unix.Ifreq) error { ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }
	ip := h.addr.As4()
	return errors.Join(
		set(device, unix.SIOCSIFADDR, func(ifr *unix.Ifreq) error { return ifr.SetInet4Addr(ip[:]) }),
		set(device, unix.SIOCSIFNETMASK, func(ifr *unix.Ifreq) error { return ifr.SetInet4Addr([]byte{255, 255, 255, 0}) }),
		set(device, unix.SIOCSIFMTU, func(ifr *unix.Ifreq) error { ifr.SetUint32(mtu); return nil }),
		set(device, unix.SIOCSIFFLAGS, up),
		set("lo", unix.SIOCSIFFLAGS, up),
	)
}
