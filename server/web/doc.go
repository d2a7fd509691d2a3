// Package web serves mayfly's page over HTTP: containers, coming deaths, live rates and documents, for
// people.
//
// The page has no API of its own. POST /command runs the words of one command through a connection to the
// server itself, so the page can do what redis-cli can, with the same rights and limits. GET /live sends the
// figures of INFO once a second.
//
// # Safety
//
// A password is asked for by POST /login, which sets a cookie that no script can read. Requests must name a
// host that the server knows, and those that change something must come from the page itself: a page of
// others can make neither. Without a password only browsers on this machine are served while protected-mode
// is on.
package web
