// Package store keeps what must survive: the truth in [Postgres], the table of
// commands that wait for an answer, and the count of requests, in [Redis].
//
// # Postgres decides
//
// Every rule that several instances could break together is a constraint or a
// conditional write here: one open command per vehicle and lane is a unique index,
// a settlement names the states that it may follow, the history refuses to be
// changed. A write that many callers make at the same moment (claim, mark as sent,
// settle, add to the history) goes through a group, which gives the callers that
// wait together one statement and one commit:
//
//	call ──┐
//	call ──┼─► queue ──► one statement, one commit ──► each caller its own result
//	call ──┘     ▲                   │
//	             └── the next batch ◄┘
//
// # Locks
//
// Rows are locked in one order everywhere, so that two instances cannot wait for
// each other: commands by id, units by vehicle, vehicles by id. Claim locks
// vehicles and then waits for commands; nothing goes the other way.
//
// # Redis routes
//
// Redis may be emptied at any moment: nothing but waiting time is lost. [Limits] counts
// requests there; while it is away they pass uncounted. [Events] keeps the latest of what has
// changed there; who may have missed something is told.
//
// # Errors
//
// What does not exist is a *telematics.Error. The error of a server that is away
// says so: [Away].
package store
