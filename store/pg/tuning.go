package pg

import "time"

// Defaults of Config.
const (
	// Connections of one instance; Postgres itself allows 100 by default. Half: lists wait for
	// each other; double: 8 instances do not fit.
	defaultConns = 20
	// Time of a statement. Half: a busy disk fails commands; double: a frozen server holds
	// commands beyond their budgets.
	defaultTimeout = 3 * time.Second
	// Calls in a statement. Half: more commits under load; double: no gain, and more work is
	// undone by one bad row.
	defaultBatch = 256
)

const (
	// listShare: lists may use 1/n of the connections. Half as many slow lists down; twice as
	// many delay commands.
	listShare = 4

	// commandShare: commands and reports may use 1/n of the connections. They share statements,
	// so few are enough.
	commandShare = 3

	// clientShare: signatures of clients and reads of bookings may use 1/n of the connections of
	// commands. Half as many: they wait for each other; twice as many: while one of their tables is
	// locked, commands have a third of these connections left.
	clientShare = 3

	// healthShare: beats, the clock and readiness may use 1/n of the connections. Half as many make
	// one that hangs delay the rest; twice as many take them from bookings.
	healthShare = 10

	// lockersShare: transactions that may wait for rows which others have locked may use 1/n of the
	// connections of Pool. Half as many: changes of bookings wait for each other; twice as many:
	// while a row is locked, they use all connections.
	lockersShare = 2

	// maxPlanned is how many statements a connection keeps parsed: twice as many as
	// there are. Half: the last ones are parsed each time; double: no gain.
	maxPlanned = 128

	// LockShare: a statement may wait for one lock for 1/n of its timeout, so waits for n locks
	// in a row still fit.
	LockShare = 6

	// Pauses between attempts at a locked row, which double. Half: more statements while a row is
	// locked; double: a command waits longer for a vehicle that was locked for a moment.
	firstRetry = 4 * time.Millisecond
	lastRetry  = 16 * time.Millisecond

	// Longest time for which a connection is used: after a failover, none to the former primary
	// remains after that.
	connLifetime = 30 * time.Minute
	idleConnTime = 5 * time.Minute

	// pruneBatch is how many old rows one statement removes; a choice. Half: more statements;
	// double: it holds the locks of its rows for longer.
	pruneBatch = 1000

	// hangingEvery is the interval of queries for backends that hang. Half: a connection more per
	// second while some do; double: an instance is available that much later.
	hangingEvery = 500 * time.Millisecond

	// lineEvery is the interval of queries in Redis for the newest primary that another instance
	// has seen. Half: more round trips; double: an instance that has not noticed a failover writes
	// to the former primary for that much longer.
	lineEvery = time.Second
	// surveyEvery is the interval of connections to all servers of the address. Half: twice as many
	// connections; double: a second primary is found that much later.
	surveyEvery = 30 * time.Second
	// logAgainAfter is the time after which the same server is logged again; a choice.
	logAgainAfter = time.Minute
)
