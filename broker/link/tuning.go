package link

import "time"

// Each constant: its value and unit, where the value comes from, and what breaks at half and at
// double.
const (
	// Bytes read from a socket in one call: some fifty reports; a choice. Half: more system calls.
	// Double: 32 KiB more for a connection.
	readAhead = 32 << 10
	// Time for which an acknowledgement waits for others, or for a message to be written with; a
	// choice. Half: more writes. Double: MQTT brokers that wait for acknowledgements deliver
	// later.
	ackAfter = 5 * time.Millisecond
	// Acknowledgements written together: half of the 20 messages that MQTT brokers commonly leave
	// unacknowledged. Half: more writes. Double: the MQTT broker waits until ackAfter has passed.
	acksTogether = 10
	// Bytes of an acknowledgement: MQTT 3.1.1 §3.4.
	ackSize = 4
	// Timeout of the last read from an MQTT broker that did not answer a ping: bytes in the socket
	// are read immediately. Half: a process that is stopped for 0.5 s before it reads loses the
	// connection. Double: a lost connection is noticed 1 s later.
	lastLook = time.Second
	// A write that fails this long after its deadline was late because this process did not run; a
	// choice, above the delays of a busy machine. Half: more writes are tried twice on a full
	// socket. Double: delays of 0.2 s drop sound connections.
	missedBy = 100 * time.Millisecond
	// Time after which the library calls a connection lost whose ping was not answered: never,
	// since it measures its own goroutines. batchingConn decides that.
	never = 100 * 365 * 24 * time.Hour

	// Interval of probes, until one is received; a choice. Half: more probes. Double: a lost one
	// costs 2 s of ConnectTimeout.
	probeEvery = time.Second

	// Time within which an instance that has the MQTT broker answers another one that asks; a
	// choice: it answers within milliseconds, and repeats its claim each second. Half: on a busy
	// machine an answer comes too late, and one of two installations gives up some seconds
	// later. Double: an instance is ready 0.3 s later.
	claimsWithin = 300 * time.Millisecond
	// Claims that are kept between two exchanges, of the instances at an MQTT broker; a choice.
	// Half is still far more than there are. Double: nothing.
	maxClaims = 256

	// Interval of the proofs that a connection's subscriptions still deliver; a choice. Half:
	// twice the packets of an idle instance. Double: one that delivers nothing is noticed 5 s
	// later.
	proveEvery = 5 * time.Second
	// Looks in sequence at which nothing has come before a connection is dropped; a choice.
	// Half: one lost probe drops it. Double: 20 s until it is noticed.
	silentLooks = 2

	// Number of probes for an instance that has received all presence, and their interval;
	// choices. Half: instances that answer late are not found, and all retained presence is
	// read. Double: it is read 1 s later where there is no other instance.
	askTimes, askEvery = 3, 300 * time.Millisecond
	// Probes of other instances that wait for an answer; a choice. Half: of many instances that
	// start together, some read all retained presence. Double: nothing.
	askQueue = 16
	// Units whose retained presence is read at a time: 1 MB of messages. Half: a million units
	// take twice the pauses, 40 s. Double: more that may not fit into the queue of an MQTT
	// broker.
	readBatch = 5000
	// Their topics in one packet: some 20 kB, and 100 kB of messages, far below what MQTT brokers
	// queue for a client. Half: twice the round trips. Double: more to queue.
	readPacket = 500
	// Time for which such a subscription stays after it was acknowledged: Mosquitto sends what is
	// retained before that, others immediately after. Half: less time for those. Double: a million
	// units take 20 s more.
	readPause = 100 * time.Millisecond
	// Factor of each pause before what did not fit is read again over the one before; a choice.
	// 0.75 would shorten the pauses; 3 reaches the longest after five.
	catchUpGrow = 1.5
	// Longest such pause; a choice. Half: a full queue is filled more often. Double: presence is
	// incomplete for longer.
	longestPause = 30 * time.Second

	// Time after the loss of a shard in which commands to its units wait for the units to come
	// to another one, instead of being refused; a choice: a load balancer notices a dead broker
	// within seconds, and units reconnect at growing intervals. Half: callers are refused while
	// units still come. Double: where units cannot come, callers wait for the end of their
	// budgets for longer.
	moveWithin = 30 * time.Second
	// Units whose shard is noted, some 100 bytes each; a choice. Half: commands to the rest go to
	// all shards. Double: up to 100 MB more.
	maxRoutes = 1 << 20

	// First and longest pause before a connection is tried again; choices. Half: more attempts in
	// an outage. Double: up to 2 s later after it.
	firstReconnect   = 100 * time.Millisecond
	longestReconnect = 2 * time.Second
)
