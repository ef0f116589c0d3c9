package pg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lib/pq"

	"motorpool/guard"
	"motorpool/store/unavailable"
)

// LockedError is the error of a call that needs what another transaction has locked. Nothing was
// written, and trying again later may help.
type LockedError struct {
	Locked string        // "vehicle 7", "the table units"
	For    time.Duration // age of the other transaction; zero: unknown
	Holder string        // the other session, as the server describes it; empty: unknown
	Cause  error
	whole  bool // a table is locked
}

func (e *LockedError) Error() string {
	text := e.Brief()
	if e.Holder != "" {
		text += ": " + e.Holder
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Brief is the error for a caller, who must not see who uses the database.
func (e *LockedError) Brief() string {
	text := "another transaction holds " + e.Locked
	if e.For > 0 {
		text += fmt.Sprintf(" since %d s", int(e.For.Seconds()))
	}
	return text
}

func (e *LockedError) Unwrap() error { return e.Cause }

// Unavailable reports that a later call may succeed.
func (e *LockedError) Unavailable() bool { return true }

// IsContended reports whether a transaction failed, and did nothing, because of what others have
// locked: it may succeed when it is run again.
func IsContended(err error) bool {
	refusal := pq.As(err)
	return refusal != nil && (refusal.Code == unavailable.LockNotAvailable || refusal.Code.Class() == "40")
}

// holder is a session that holds a lock.
type holder struct {
	Relation string   `db:"relation"`
	Seconds  *float64 `db:"seconds"` // null: the role may not see it
	Session  string   `db:"session"`
	Own      bool     `db:"own"` // of the service, of any instance
}

const (
	holderColumns = `extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds, concat_ws(', ',
			'backend ' || l.pid, 'user ' || a.usename, nullif(a.application_name, ''), host(a.client_addr), a.state) as session,
			coalesce(a.application_name = nullif(current_setting('application_name'), ''), false) as own
		from pg_locks l left join pg_stat_activity a on a.pid = l.pid
		where l.granted and l.pid <> pg_backend_pid()`
	// tableHolders are sessions with a lock on a table that keeps out writes. Partitions count,
	// too.
	tableHolders = `
		select l.relation::regclass::text as relation, ` + holderColumns + ` and l.locktype = 'relation'
			and l.database = (select oid from pg_database where datname = current_database())
			and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
			and l.relation in (select oid from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace)
		order by a.xact_start
		limit 1`
)

// RowLocked returns the error of a call that gives up because another transaction has locked a row,
// and counts it where another program holds it. The row is that of a table with a key; named as in
// "vehicle 7".
func (p *DB) RowLocked(ctx context.Context, named, table, key string, value any) *LockedError {
	found, ok := p.findHolder(ctx, `
		select '' as relation, `+holderColumns+` and l.locktype = 'transactionid'
			and l.transactionid = any (array(select xmax from `+table+` where `+key+` = $1))
		limit 1`, value)
	if !ok {
		return &LockedError{Locked: named}
	}
	p.countLocked(table, found)
	return found.error(named)
}

// nameLock adds to the error of a statement that was not granted a lock which table is locked,
// and by whom. Other errors are returned as they are.
func (p *DB) nameLock(ctx context.Context, err error) error {
	if refusal := pq.As(err); refusal == nil || refusal.Code != unavailable.LockNotAvailable {
		return err
	}
	found, ok := p.findHolder(ctx, tableHolders)
	if !ok {
		return err
	}
	p.countLocked(found.Relation, found)
	locked := found.error("the table " + found.Relation)
	locked.Cause, locked.whole = err, true
	return locked
}

func (h holder) error(what string) *LockedError {
	return &LockedError{Locked: what, Holder: h.Session, For: time.Duration(Deref(h.Seconds) * float64(time.Second))}
}

// findHolder looks for who holds a lock. Only one call does so at any time, since it reads the
// server's table of locks: false also where another one does.
func (p *DB) findHolder(ctx context.Context, query string, args ...any) (holder, bool) {
	if !p.findsHolder.TryLock() {
		return holder{}, false
	}
	defer p.findsHolder.Unlock()
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout/2)
	defer cancel()
	var found []holder
	err := p.Lists.SelectContext(ctx, &found, query, args...)
	return append(found, holder{})[0], err == nil && len(found) > 0
}

// Retries are attempts at a row that others have locked, for as long as a statement may wait for
// a lock. Statements that lock rows for several callers skip the locked ones, so that none waits
// for the row of another; those are tried again with the next batch.
type Retries struct {
	until time.Time
	pause time.Duration
}

// NewRetries returns the attempts of one call, which begins now.
func (p *DB) NewRetries() Retries {
	return Retries{until: time.Now().Add(p.config.Timeout / LockShare), pause: firstRetry}
}

// Next waits for the next attempt. It reports false where there is none any more, or the context
// has ended.
func (r *Retries) Next(ctx context.Context) bool {
	left := time.Until(r.until)
	if left <= 0 {
		return false
	}
	wait := min(left, r.pause/2+rand.N(r.pause/2))
	r.pause = min(2*r.pause, lastRetry)
	return guard.Pause(ctx, wait)
}
