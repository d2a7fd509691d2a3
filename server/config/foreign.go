package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This file recognises what stands in a configuration without being an option of ours: directives of Redis,
// and variables that Kubernetes sets.

// ignoredDirectives are directives of Redis 7.0 and older without a meaning here. They concern features
// that mayfly lacks, or tune what works in another way. Ignoring them loses nothing.
var ignoredDirectives = strings.Fields(`
	acl-pubsub-default acllog-max-len active-defrag-cycle-max active-defrag-cycle-min
	active-defrag-ignore-bytes active-defrag-max-scan-fields active-defrag-threshold-lower
	active-defrag-threshold-upper activedefrag activerehashing always-show-logo aof-disable-auto-gc
	aof-load-truncated aof-rewrite-incremental-fsync aof-timestamp-enabled aof-use-rdb-preamble
	aof_rewrite_cpulist appenddirname appendfilename auto-aof-rewrite-min-size
	auto-aof-rewrite-percentage bgsave_cpulist bind-source-addr bio_cpulist busy-reply-threshold
	client-query-buffer-limit cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down
	cluster-allow-replica-migration cluster-announce-bus-port cluster-announce-hostname
	cluster-announce-ip cluster-announce-port cluster-announce-tls-port cluster-config-file
	cluster-link-sendbuf-limit cluster-migration-barrier cluster-node-timeout cluster-port
	cluster-preferred-endpoint-type cluster-replica-no-failover cluster-replica-validity-factor
	cluster-require-full-coverage cluster-slave-no-failover cluster-slave-validity-factor
	crash-log-enabled crash-memcheck-enabled dbfilename disable-thp dynamic-hz enable-debug-command
	enable-module-command enable-protected-configs hash-max-listpack-entries hash-max-listpack-value
	hash-max-ziplist-entries hash-max-ziplist-value hll-sparse-max-bytes hz ignore-warnings
	io-threads-do-reads jemalloc-bg-thread lazyfree-lazy-eviction lazyfree-lazy-expire
	lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush lfu-decay-time
	lfu-log-factor list-compress-depth list-max-listpack-size list-max-ziplist-entries
	list-max-ziplist-size list-max-ziplist-value lua-replicate-commands lua-time-limit masterauth
	masteruser maxmemory-eviction-tenacity maxmemory-samples min-replicas-max-lag min-slaves-max-lag
	no-appendfsync-on-rewrite oom-score-adj oom-score-adj-values proc-title-template
	propagation-error-behavior rdb-del-sync-files rdb-save-incremental-fsync rdbchecksum
	rdbcompression repl-backlog-size repl-backlog-ttl repl-disable-tcp-nodelay repl-diskless-load
	repl-diskless-sync repl-diskless-sync-delay repl-diskless-sync-max-replicas
	repl-ping-replica-period repl-ping-slave-period repl-timeout replica-announce-ip
	replica-announce-port replica-announced replica-ignore-disk-write-errors
	replica-ignore-maxmemory replica-lazy-flush replica-priority replica-read-only
	replica-serve-stale-data sanitize-dump-payload server_cpulist set-max-intset-entries
	set-proc-title shutdown-on-sigint shutdown-on-sigterm shutdown-timeout slave-announce-ip
	slave-announce-port slave-ignore-maxmemory slave-lazy-flush slave-priority slave-read-only
	slave-serve-stale-data stop-writes-on-bgsave-error stream-node-max-bytes
	stream-node-max-entries syslog-facility syslog-ident tls-client-cert-file tls-client-key-file
	tls-client-key-file-pass tls-cluster tls-dh-params-file tls-prefer-server-ciphers
	tls-replication tls-session-cache-size tls-session-cache-timeout tls-session-caching
	tracking-table-max-keys zset-max-listpack-entries zset-max-listpack-value
	zset-max-ziplist-entries zset-max-ziplist-value
`)

// A refusedDirective is a directive of Redis on which a user relies, for a feature that mayfly lacks.
// Ignoring it would be worse than not starting.
type refusedDirective struct {
	name  string
	legal []string // values that ask for nothing
	why   string   // the reason to refuse all others
}

var refusedDirectives = []refusedDirective{
	{"aclfile", []string{""}, "there are no ACLs and no users but default: see requirepass"},
	{"user", nil, "there are no ACLs and no users but default: see requirepass"},
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
	case at < 0 && !slices.Contains(ignoredDirectives, name):
		l.fail(nil, "unknown option %q with value %q %s: --help lists the options", name, value, origin)
	case len(values) == 0:
		l.fail(nil, "option %s %s has no value", name, origin)
	case at < 0 || slices.ContainsFunc(refusedDirectives[at].legal, func(legal string) bool { return strings.EqualFold(legal, value) }):
		l.ignore(name)
	default:
		l.fail(nil, "option %s %s with value %q is refused: %s", name, origin, value, refusedDirectives[at].why)
	}
}

// serviceLinks are variables that Kubernetes sets in every container, and the form of their values. They
// belong to services whose name begins with mayfly. Some have the names of options: a service mayfly sets
// MAYFLY_PORT=tcp://10.0.0.1:6379. See "Discovering services" in the manual of Kubernetes.
var serviceLinks = []struct {
	name  *regexp.Regexp // without our prefix
	value func(string) bool
}{
	{regexp.MustCompile(`^(.+_)?SERVICE_HOST$`), isIP},
	{regexp.MustCompile(`^(.+_)?SERVICE_PORT(_.+)?$`), isPort},
	{regexp.MustCompile(`^(.+_)?PORT(_[0-9]+_(TCP|UDP|SCTP))?$`), regexp.MustCompile(`^(tcp|udp|sctp)://`).MatchString},
	{regexp.MustCompile(`^(.+_)?PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO$`), regexp.MustCompile(`^(tcp|udp|sctp)$`).MatchString},
	{regexp.MustCompile(`^(.+_)?PORT_[0-9]+_(TCP|UDP|SCTP)_PORT$`), isPort},
	{regexp.MustCompile(`^(.+_)?PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR$`), isIP},
}

// isServiceLink reports whether a variable, without our prefix, describes a service of Kubernetes.
func isServiceLink(name, value string) bool {
	for _, link := range serviceLinks {
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
