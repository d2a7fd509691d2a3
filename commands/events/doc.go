// Package events names the kinds of events of items, and their classes, as the option notify-keyspace-events
// selects them. Package engine publishes them.
package events
