package pg

import "time"

// Defaults of Config.
const (
	// Connections of one instance; Postgres itself allows 100 by default. Half: lists wait for each
	// other; double: 8 instances do not fit.
	defaultConns = 20
	// Time of a statement. Half: a busy disk fails commands; double: a frozen server holds commands
	// beyond their budgets.
	defaultTimeout = 3 * time.Second
	// Calls in a statement. Half: more commits under load; double: no gain, and more work is undone
	// by one bad row.
	defaultBatch = 256
)

const (
	// listShare is the part (1/n) of the connections that lists may use. Half as many slow lists
	// down; twice as many delay commands.
	listShare = 4

	// commandShare is the part (1/n) for commands and reports. They share statements, so few
	// connections are enough.
	commandShare = 3

	// LockShare is the part (1/n) of a statement's timeout that it may wait for one lock: LockShare
	// locks in a row still fit.
	LockShare = 6

	// After a failover, connections to the former primary are gone by then at the latest.
	connLifetime = 30 * time.Minute
	idleConnTime = 5 * time.Minute
)
