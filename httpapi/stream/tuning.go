package stream

import "time"

// Defaults of Config, and bounds. Source: measurements with 2,000 streams on a machine of two cores
// (docs/benchmarks.md).
const (
	// defaultPerActor is the number of streams an administrator may have open at an instance. Half
	// of it is too few for a console with several tabs; double it lets a tool that reconnects
	// without end take more from the others.
	defaultPerActor = 10
	// defaultStreams is the number of streams at an instance. Each has a connection and a
	// goroutine, so double the number needs twice the open files; with half, two instances cannot
	// serve the subscribers of three.
	defaultStreams = 2000
	// defaultBuffered is the number of events in the ring, and maxBuffered their size in bytes.
	// With half, subscribers that fall behind in a burst are cut earlier; double costs as much
	// memory again.
	defaultBuffered = 16 << 10
	maxBuffered     = 16 << 20
	// defaultPing is between two comments on an idle stream. Proxies cut silent connections, often
	// after 30 s, so double is too late; half costs twice as many writes.
	defaultPing = 15 * time.Second
	// defaultWriteTimeout is for one write. Half cuts subscribers whose network is gone for a
	// moment; double keeps dead ones longer.
	defaultWriteTimeout = 10 * time.Second
	// defaultStall is how long the log may not answer. Half: subscribers are warned of a failover
	// of Redis that takes a moment; double: they take what is old for new for longer.
	defaultStall = 5 * time.Second
	// defaultIdle is how long the log is followed without subscribers. Half follows anew more
	// often; double reads what no one needs.
	defaultIdle = time.Minute

	// recentEvents are read from the log at the start, so that subscribers of a replaced process
	// resume in the ring. With half more of them read the log; double delays the start.
	recentEvents = 8192
	// pageEvents is read from the log in one request. Half doubles the requests of a resuming
	// subscriber; double their size.
	pageEvents = 500
	// maxWrite is about the size of one write, in bytes. Half doubles the system calls of a
	// subscriber that catches up; double the memory of its buffer.
	maxWrite = 64 << 10

	// sessionCheck is between two checks whether the session of a stream has ended. Each reads one
	// value from Redis. Half doubles these reads; double shows events for twice as long after a
	// sign-out.
	sessionCheck = time.Second
	// startTimeout is how long a stream waits until the log is followed. Half fails when Redis is
	// slow; double holds the caller longer.
	startTimeout = 3 * time.Second
	// retryDelay is when clients reconnect after they have lost the stream. Half doubles the load
	// of reconnections after an instance has died; double the time without events.
	retryDelay = 3 * time.Second
	// minRetryAtStop and moreRetryAtStop spread reconnections when this process ends: each client
	// gets a random delay between the minimum and the sum. Half as much doubles the peak at the
	// other instances; double the time without events.
	minRetryAtStop  = time.Second
	moreRetryAtStop = 4 * time.Second
)
