package redis

import "time"

const (
	// Calls that share a round trip. Half: more round trips under load; double: longer pauses for
	// others.
	tripBatch = 256
	// Time of a round trip, with the library's second try. Half: the try is cut off; double:
	// commands outlive their budgets.
	tripTimeout = 3 * time.Second

	// ReadTimeout is how long a request waits for what it can do without. Half: a busy server
	// counts as unavailable; double: each request is half a second late where Redis hangs.
	ReadTimeout = 250 * time.Millisecond

	// Before connecting again. Half, double: no matter, it grows.
	firstPause = 100 * time.Millisecond
	// likewise. Half: more connections to a server that is busy starting; double: later wake-ups
	// and events.
	longestPause = 2 * time.Second

	// PingAfter is the silence after which a subscription's server is pinged. Half: more pings;
	// double: wake-ups and events are lost for longer where a connection died unnoticed.
	PingAfter = 3 * time.Second

	// Time by which an entry outlives its deadline, for late answers. Half: fewer are found here,
	// and are read from Postgres.
	pendingFor = time.Minute
	readyFor   = 10 * time.Second // that a key written by Ready stays

	// clusterReload is how old a cluster's topology may be. The library's own default, a minute, is
	// for how long a master that was replaced would still be used.
	clusterReload = time.Second
)
