package connections

import "time"

const (
	// unauthenticatedIdle is how long a read on a connection may take before its first valid token.
	// It is the time of a whole request in httpapi, so it shortens only the wait for the next one:
	// half cuts slow callers within a request, double keeps idle connections without a token
	// longer.
	unauthenticatedIdle = 20 * time.Second
	// minShare is how many connections an actor's tokens keep from eviction at least. Half evicts
	// callers with several tools; double lets few actors hold a small listener.
	minShare = 8
	// shares is the part of all connections that one actor may keep: 1/shares. Half lets 16 actors
	// hold all connections; double leaves a busy proxy too few.
	shares = 32
	// warnEvery is the shortest time between two warnings that the limit was reached. Half doubles
	// the log entries of a flood.
	warnEvery = time.Minute
	// maxDiscarded bounds the input that Close discards, in bytes: the largest request that httpapi
	// takes. A larger one may cost its sender the answer before it.
	maxDiscarded = 96 << 10
	// discardWithin is how long Close waits for more input. Half misses input on a loaded machine;
	// double holds its goroutine longer.
	discardWithin = 5 * time.Millisecond
)
