package config

import (
	_ "embed"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mayfly/commands/suggest"
)

// This file recognises what stands in a configuration without being an option of ours: directives of Redis,
// and variables that Kubernetes sets.

// ignoredDirectives are directives of Redis 7.0 and older without a meaning here, one a line. They concern
// features that mayfly lacks, or tune what works in another way. Ignoring them loses nothing.
//
//go:embed ignored.txt
var ignoredDirectives string

// redisImmutable are directives of Redis 7.0 that CONFIG SET cannot change there, and that are no options
// here.
const redisImmutable = `always-show-logo aof_rewrite_cpulist appenddirname appendfilename bgsave_cpulist
	bio_cpulist cluster-config-file cluster-port disable-thp enable-debug-command enable-module-command
	enable-protected-configs io-threads-do-reads rdbchecksum replicaof server_cpulist set-proc-title
	slaveof socket-mark-id syslog-enabled syslog-facility syslog-ident`

// A refusedDirective is a directive of Redis on which a user relies, for a feature that mayfly lacks.
// Ignoring it would be worse than not starting.
type refusedDirective struct {
	name  string
	legal []string // values that ask for nothing
	why   string   // the reason to refuse all others
}

var refusedDirectives = []refusedDirective{
	{"rename-command", nil, "commands keep their names"},
	{"loadmodule", nil, "there are no modules"},
	{"replicaof", []string{"no one"}, "there is no replication"},
	{"slaveof", []string{"no one"}, "there is no replication"},
	{"min-replicas-to-write", []string{"0"}, "there is no replication"},
	{"min-slaves-to-write", []string{"0"}, "there is no replication"},
	{"sentinel", nil, "there is no sentinel"},
	{"syslog-enabled", []string{"no"}, "the log goes to standard error or to logfile"},
	{"socket-mark-id", []string{"0"}, "sockets are not marked"},
	{"tls-protocols", []string{"", "TLSv1.2 TLSv1.3"}, "TLS is always of version 1.2 or 1.3"},
	{"tls-ciphers", []string{""}, "the ciphers of TLS cannot be chosen"},
	{"tls-ciphersuites", []string{""}, "the ciphers of TLS cannot be chosen"},
	{"tls-key-file-pass", []string{""}, "the private key must be in clear text"},
	{"tls-ca-cert-dir", []string{""}, "certificates are in one file: see tls-ca-cert-file"},
}

// takeDirective takes a directive that is no option of ours.
func (l *loader) takeDirective(name string, values []string, origin string) {
	value := strings.Join(values, " ")
	name = strings.ToLower(name)
	at := slices.IndexFunc(refusedDirectives, func(p refusedDirective) bool { return p.name == name })
	switch {
	case at < 0 && !slices.Contains(strings.Fields(ignoredDirectives), name):
		l.fail(nil, "unknown option %q with value %q %s: %s--help lists the options", name, value, origin, meantOption(name))
	case len(values) == 0:
		l.fail(nil, "option %s %s has no value", name, origin)
	case at < 0 || slices.ContainsFunc(refusedDirectives[at].legal, func(legal string) bool { return strings.EqualFold(legal, value) }):
		l.ignore(name)
	default:
		l.fail(nil, "option %s %s with value %q is refused: %s", name, origin, value, refusedDirectives[at].why)
	}
}

// meantOption asks whether another option is meant, in front of further advice. It is empty if none resembles
// the name.
func meantOption(name string) string {
	names := make([]string, len(Options))
	for i := range Options {
		names[i] = Options[i].Name
	}
	if word := suggest.Nearest(name, names); word != "" {
		return "did you mean " + word + "? "
	}
	return ""
}

// serviceLinks are variables that Kubernetes sets in every container, and the form of their values. They
// belong to services whose name begins with mayfly. Some have the names of options: a service mayfly sets
// MAYFLY_PORT=tcp://10.0.0.1:6379. See "Discovering services" in the manual of Kubernetes.
var serviceLinks = sync.OnceValue(func() []serviceLink {
	return []serviceLink{
		{regexp.MustCompile(`^(.+_)?SERVICE_HOST$`), isIP},
		{regexp.MustCompile(`^(.+_)?SERVICE_PORT(_.+)?$`), isPort},
		{regexp.MustCompile(`^(.+_)?PORT(_[0-9]+_(TCP|UDP|SCTP))?$`), regexp.MustCompile(`^(tcp|udp|sctp)://`).MatchString},
		{regexp.MustCompile(`^(.+_)?PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO$`), regexp.MustCompile(`^(tcp|udp|sctp)$`).MatchString},
		{regexp.MustCompile(`^(.+_)?PORT_[0-9]+_(TCP|UDP|SCTP)_PORT$`), isPort},
		{regexp.MustCompile(`^(.+_)?PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR$`), isIP},
	}
})

type serviceLink struct {
	name  *regexp.Regexp // without our prefix
	value func(string) bool
}

// isServiceLink reports whether a variable, without our prefix, describes a service of Kubernetes.
func isServiceLink(name, value string) bool {
	for _, link := range serviceLinks() {
		if link.name.MatchString(name) && link.value(value) {
			return true
		}
	}
	return false
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}
