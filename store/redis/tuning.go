package redis

import "time"

const (
	// How long a claim to Redis stays without being renewed, each second; a choice. Half: a
	// pause of 5 s gives Redis to another installation. Double: an installation whose database
	// has lost commits waits 10 s longer.
	ownedFor = 10 * time.Second

	// Calls that share a round trip. Half: more round trips under load; double: longer pauses for
	// others.
	tripBatch = 256
	// Timeout of a round trip, with the library's second try. Half: that try is cut off; double:
	// commands outlive their budgets.
	tripTimeout = 3 * time.Second

	// ReadTimeout is how long a request waits for optional data in Redis. Half: a busy server
	// counts as unavailable; double: each request is half a second late where Redis hangs.
	ReadTimeout = 250 * time.Millisecond

	// First pause before connecting again. Half or double makes no difference, since it grows.
	firstPause = 100 * time.Millisecond
	// Longest such pause. Half: more connections to a server that is busy starting; double: later
	// wake-ups and events.
	longestPause = 2 * time.Second

	// PingAfter is the silence after which a subscription's server is pinged. Half: more pings;
	// double: wake-ups and events are lost for longer where a connection died unnoticed.
	PingAfter = 3 * time.Second

	// Time by which an entry outlives its deadline, for late answers. Half: fewer are found here,
	// and are read from Postgres.
	pendingFor = time.Minute
	readyFor   = 10 * time.Second // that a key written by Ready stays

	// clusterReload is the longest age of the cached topology of a cluster. With the library's
	// default, a minute, a replaced master would still be used for that long.
	clusterReload = time.Second
)
