package activity

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Sealer seals entries a moment after they were added. Each instance runs one; an advisory lock
// lets one work at a time. It does not block the adding of entries.
type Sealer struct {
	db     *pg.DB
	log    *slog.Logger
	logged time.Time // when the head of the chain was logged last
}

// NewSealer returns a sealer, which is not safe for concurrent use.
func NewSealer(db *pg.DB, log *slog.Logger) *Sealer { return &Sealer{db: db, log: log} }

// Run seals entries, and adds the partitions of the next months. It blocks until the context ends,
// and returns nil.
func (s *Sealer) Run(ctx context.Context) error {
	tick := time.NewTicker(sealEvery)
	defer tick.Stop()
	for next := time.Now(); ; {
		if time.Now().After(next) {
			next = time.Now().Add(partitionsEvery)
			if _, err := AddPartitions(ctx, s.db); err != nil && ctx.Err() == nil {
				s.log.Warn("partitions of the audit log not added, retrying", "err", err, "retry_in", partitionsEvery)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := s.Seal(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("audit log not sealed, retrying", "err", err, "retry_in", sealEvery)
		}
	}
}

// Seal seals the entries that can be sealed now, at most sealBatches batches, and reports whether
// there may be more. It waits up to sealPatience for transactions that are adding entries.
func (s *Sealer) Seal(ctx context.Context) (more bool, err error) {
	last, err := s.decided(ctx)
	if err != nil {
		return false, unavailable.Wrap("seal the audit log", err)
	}
	more = true
	for n := 0; more && n < sealBatches; n++ {
		if more, err = s.batch(ctx, last); err != nil {
			return false, unavailable.Wrap("seal the audit log", err)
		}
	}
	return more, nil
}

// writers are the transactions that have added an entry, or are about to. A transaction locks the
// table before it draws an id, and keeps the lock until it ends.
const writers = ` from pg_locks
	where locktype = 'relation' and relation = 'activity'::regclass and granted and mode <> 'AccessShareLock'
		and database = (select oid from pg_database where datname = current_database())
		and pid is distinct from pg_backend_pid()`

// decided returns an id up to which no entry can appear any more: each transaction that could have
// drawn a smaller id has ended. Zero: nothing has to be sealed.
func (s *Sealer) decided(ctx context.Context) (id int64, err error) {
	err = s.db.Pool.GetContext(ctx, &id, `
		select case when last > coalesce((select last_id from activity_seals order by number desc limit 1), 0) then last else 0 end
		from (select coalesce(max(id), 0) as last from activity) as a`)
	if err != nil || id == 0 {
		return 0, err
	}
	var busy []string
	if err := s.db.Pool.SelectContext(ctx, &busy, `select virtualtransaction`+writers); err != nil {
		return 0, err
	}
	for end := time.Now().Add(sealPatience); len(busy) > 0; {
		if time.Now().After(end) {
			return 0, fmt.Errorf("a transaction that adds to the audit log does not end: %s (see pg_locks)", busy[0])
		}
		select {
		case <-time.After(sealRetry):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		still := busy[:0:0]
		if err := s.db.Pool.SelectContext(ctx, &still, `select virtualtransaction`+writers+` and virtualtransaction = any ($1)`, pq.Array(busy)); err != nil {
			return 0, err
		}
		busy = still
	}
	return id, nil
}

// sealLock is the number of the advisory lock.
const sealLock = 7_350_021_645

// batch seals the next entries up to an id. Where another instance seals, it does nothing.
func (s *Sealer) batch(ctx context.Context, upTo int64) (more bool, err error) {
	var last Seal
	err = s.db.Within(ctx, func(tx *sqlx.Tx) error {
		var mine bool
		if err := tx.GetContext(ctx, &mine, `select pg_try_advisory_xact_lock($1)`, sealLock); err != nil || !mine {
			return err
		}
		before, err := head(ctx, tx)
		if err != nil {
			return err
		}
		// A range of ids, and not a number of entries, so that a long backlog is not sorted for
		// each batch. Ids of transactions that were rolled back are missing.
		var first *int64
		if err := tx.GetContext(ctx, &first, `select min(id) from activity where id > $1 and id <= $2`, before.LastID, upTo); err != nil || first == nil {
			return err
		}
		end := min(*first+sealEntries-1, upTo)
		entries, err := readEntries(ctx, tx, `where id >= $1 and id <= $2 order by id`, *first, end)
		if err != nil {
			return err
		}
		more = end < upTo
		for len(entries) > 0 {
			n := 1
			for n < len(entries) && month(entries[n].at) == month(entries[0].at) {
				n++
			}
			if last, err = before.next(entries[:n], time.Now()); err != nil {
				return err
			}
			if err := last.insert(ctx, tx); err != nil {
				return err
			}
			before, entries = last, entries[n:]
		}
		return nil
	})
	if err == nil && last.Number > 0 && time.Since(s.logged) >= headEvery {
		s.logged = time.Now()
		s.log.Info("audit log sealed", "seal", last.Number, "head", last.Hash.String(), "last_id", last.LastID)
	}
	return more, err
}

// readEntries returns entries with their lines.
func readEntries(ctx context.Context, db sqlx.QueryerContext, which string, args ...any) ([]sealedEntry, error) {
	var entries []sealedEntry
	err := eachEntry(ctx, db, func(e sealedEntry, _ line) error {
		entries = append(entries, e)
		return nil
	}, which, args...)
	return entries, err
}

// eachEntry calls a function with each entry of a query, without holding all of them in memory.
func eachEntry(ctx context.Context, db sqlx.QueryerContext, call func(sealedEntry, line) error, which string, args ...any) error {
	rows, err := db.QueryxContext(ctx, `select `+lineColumns+` from activity `+which, args...) //nolint:sqlclosecheck // it does not see the Close of an interface's rows
	if err != nil {
		return err
	}
	defer rows.Close()
	var l line
	columns := []any{
		&l.ID, &l.At, &l.ActorSubject, &l.ActorRole, &l.ActorAgencyID, &l.AgencyID, &l.VehicleID, &l.BookingID, &l.Action, &l.Parameters,
		&l.Outcome, &l.Code, &l.CommandID, &l.RequestID, &l.LatencyUS, &l.Late, &l.Note,
	}
	for rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		text, err := l.text()
		if err != nil {
			return err
		}
		if err := call(sealedEntry{l.ID, l.At, text}, l); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Head returns the last seal; the zero seal where there is none.
func (l *Log) Head(ctx context.Context) (Seal, error) {
	seal, err := head(ctx, l.db.Pool)
	return seal, unavailable.Wrap("read the seals of the audit log", err)
}

// UnsealedFor returns the age of the oldest unsealed entry; zero: there is none.
func (l *Log) UnsealedFor(ctx context.Context) (time.Duration, error) {
	var seconds float64
	err := l.db.Pool.GetContext(ctx, &seconds, `
		select greatest(0, coalesce((
			select extract(epoch from clock_timestamp() - at) from activity
			where id > coalesce((select last_id from activity_seals order by number desc limit 1), 0)
			order by id limit 1), 0))`)
	return time.Duration(seconds * float64(time.Second)), unavailable.Wrap("read the seals of the audit log", err)
}
