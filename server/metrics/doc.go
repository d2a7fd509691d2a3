// Package metrics serves monitoring over HTTP: /metrics for Prometheus, with the figures of INFO, and
// /healthz for load balancers.
//
// The table in table.go maps fields of INFO to metrics. Nothing is counted twice: a scrape reads what INFO
// reads. Connections, headers and times are bounded, and a scrape never delays a client of mayfly.
package metrics
