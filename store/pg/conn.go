package pg

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lib/pq"

	"motorpool/store/unavailable"
)

// ErrNotReplicated means that a transaction is committed on the primary alone: its wait for the
// synchronous standby was cancelled, so a failover may lose it. It counts as not written. The error
// is marked as that of an unavailable server.
var ErrNotReplicated = unavailable.Mark(errors.New("postgres committed locally, without the synchronous standby: a failover may lose it"))

// driverConn is what the driver's connections can do.
type driverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

// session is a connection whose statements fail where a warning of Postgres says that their success
// is none.
//
// The end of a context does not cancel its statements. Postgres would end the wait of a commit for
// the synchronous standby as well, and keep a commit that only the primary has. The timeouts of
// Postgres and of the connection bound a statement.
//
// They fail as well once a server with a newer history was seen.
type session struct {
	driverConn
	pool    *sessions
	address string // of the server
	backend backend
	line    *Line // nil: not known
	warned  error // by the statement in progress
	waits   bool  // the server has not replied in time: the backend may work or wait on

	inTx     bool
	prepared map[string]sessionStatement // the planned statements, by their text
}

// newSession returns a session that reads the warnings of a connection from now on.
func (s *sessions) newSession(conn driverConn, address string) *session {
	c := &session{driverConn: conn, pool: s, address: address}
	pq.SetNoticeHandler(conn, func(notice *pq.Error) {
		if err := s.metrics.warned(notice); err != nil {
			c.warned = err
		}
	})
	return c
}

// result returns the error of a statement that has ended, or the warning that counts as one.
func (c *session) result(err error) error {
	warned := c.warned
	c.warned = nil
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.waits = true
	}
	if err != nil {
		return err
	}
	if warned != nil {
		return warned
	}
	return c.superseded()
}

// superseded returns an error once a server with a newer history was seen than that of this
// connection.
func (c *session) superseded() error {
	if newest := c.pool.lineage.newest.Load(); c.line != nil && newest != nil && c.line != newest {
		return formerError(c.address, *c.line, *newest)
	}
	return nil
}

// IsValid reports whether the connection may be used again.
func (c *session) IsValid() bool { return c.driverConn.IsValid() && c.superseded() == nil }

// ResetSession is called before the connection is used again.
func (c *session) ResetSession(ctx context.Context) error {
	if c.superseded() != nil {
		return driver.ErrBadConn
	}
	return c.driverConn.ResetSession(ctx)
}

// Close closes the connection. Its place in the pool stays taken while its backend works on.
func (c *session) Close() error {
	err := c.driverConn.Close()
	if c.waits && c.pool.places != nil {
		c.pool.hanging.add(c.backend, c.pool.places)
		return err
	}
	c.pool.places.release()
	return err
}

// planned returns a statement of a transaction, or any of [Statements], which is parsed once on
// each connection, not each time: that takes a round trip, and a plan. It returns false for others,
// for those without parameters, and beyond maxPlanned texts.
func (c *session) planned(ctx context.Context, query string, args []driver.NamedValue) (s sessionStatement, ok bool, err error) {
	if s, ok = c.prepared[query]; ok {
		return s, true, nil
	}
	if !c.inTx && !c.pool.planned || len(args) == 0 || len(c.prepared) >= maxPlanned {
		return s, false, nil
	}
	fresh, err := c.PrepareContext(ctx, query)
	if err != nil {
		return s, false, err
	}
	if c.prepared == nil {
		c.prepared = map[string]sessionStatement{}
	}
	s = fresh.(sessionStatement)
	c.prepared[query] = s
	return s, true, nil
}

func (c *session) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if s, ok, err := c.planned(ctx, query, args); err != nil {
		return nil, err
	} else if ok {
		return s.QueryContext(ctx, args)
	}
	rows, err := c.driverConn.QueryContext(context.WithoutCancel(ctx), query, args)
	return c.rows(rows, err)
}

func (c *session) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if s, ok, err := c.planned(ctx, query, args); err != nil {
		return nil, err
	} else if ok {
		return s.ExecContext(ctx, args)
	}
	done, err := c.driverConn.ExecContext(context.WithoutCancel(ctx), query, args)
	return done, c.result(err)
}

func (c *session) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	prepared, err := c.driverConn.PrepareContext(context.WithoutCancel(ctx), query)
	if err = c.result(err); err != nil {
		return nil, err
	}
	return sessionStatement{prepared.(driverStatement), c}, nil
}

func (c *session) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.driverConn.BeginTx(context.WithoutCancel(ctx), options)
	if err = c.result(err); err != nil {
		return nil, err
	}
	c.inTx = true
	return sessionTx{tx, c}, nil
}

func (c *session) Ping(ctx context.Context) error {
	return c.result(c.driverConn.Ping(context.WithoutCancel(ctx)))
}

// rows returns rows whose end is the end of the statement: Postgres commits, and warns, after the
// last row.
func (c *session) rows(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, c.result(err)
	}
	return sessionRows{rows, c}, nil
}

type sessionTx struct {
	driver.Tx
	conn *session
}

func (t sessionTx) Commit() error {
	t.conn.inTx = false
	return t.conn.result(t.Tx.Commit())
}

func (t sessionTx) Rollback() error {
	t.conn.inTx = false
	return t.conn.result(t.Tx.Rollback())
}

type driverStatement interface {
	driver.Stmt
	driver.StmtQueryContext
	driver.StmtExecContext
}

type sessionStatement struct {
	driverStatement
	conn *session
}

func (s sessionStatement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.driverStatement.QueryContext(context.WithoutCancel(ctx), args)
	return s.conn.rows(rows, err)
}

func (s sessionStatement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	done, err := s.driverStatement.ExecContext(context.WithoutCancel(ctx), args)
	return done, s.conn.result(err)
}

type sessionRows struct {
	driver.Rows
	conn *session
}

func (r sessionRows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		if warned := r.conn.result(nil); warned != nil {
			return warned
		}
		return io.EOF
	}
	return r.conn.result(err)
}

// Close reads the remaining rows.
func (r sessionRows) Close() error { return r.conn.result(r.Rows.Close()) }

// warned returns an error where a warning says that the success of the statement does not mean what
// it seems to. It decides by what no language changes: the SQLSTATE, and the function of Postgres
// that warns.
func (m *metrics) warned(notice *pq.Error) error {
	warning := fmt.Errorf("postgres warned: %s (%s)", notice.Message, notice.Code)
	switch {
	case notice.Routine == "SyncRepWaitForLSN": // "canceling wait for synchronous replication …"
		m.notReplicated.Inc()
		return fmt.Errorf("%w: %w", ErrNotReplicated, warning)
	case notice.Code == "25001", notice.Code == "25P01", // a transaction is open, or none is
		notice.Code == "01006", notice.Code == "01007": // nothing was revoked, or granted
		return warning
	}
	return nil
}
