package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/guard"
	"motorpool/store/unavailable"
)

// errNoPlace means that the statements of closed connections still wait in Postgres, as commits do
// for a synchronous standby that is gone.
var errNoPlace = unavailable.Mark(
	errors.New("no connection: earlier statements still wait in postgres, such as commits for a synchronous standby"),
)

// places limits the backends of a pool: those of its connections, and those that work or wait on
// after their connection was closed. The zero size and nil have no limit. It is safe for concurrent
// use.
type places struct {
	size int

	mu    sync.Mutex
	taken int
}

// take returns an error where no place is free: the pool has connections for all others.
func (p *places) take() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.size {
		return errNoPlace
	}
	p.taken++
	return nil
}

func (p *places) release() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
}

// hanging has the backends whose connections were closed because they did not reply in time. A
// backend that waits for a synchronous standby does not notice that, and cancelling it would keep a
// commit that the standby does not have. It is safe for concurrent use.
type hanging struct {
	// stillThere returns those of the backends that have not ended.
	stillThere func([]backend) (map[backend]bool, error)
	guard      *guard.Guard
	until      context.Context // ends with close
	stop       context.CancelFunc
	watching   sync.WaitGroup

	mu       sync.Mutex
	backends map[backend]*places
	watched  bool // a goroutine watches the backends, or none is started any more
}

func newHanging(g *guard.Guard) *hanging {
	until, stop := context.WithCancel(context.Background())
	return &hanging{guard: g, until: until, stop: stop, backends: map[backend]*places{}}
}

func (h *hanging) add(b backend, of *places) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.backends[b] = of
	if !h.watched {
		h.watched = true
		h.watching.Go(func() { _ = h.guard.Keep(h.until, "watch hanging backends", h.watch) })
	}
}

// watch releases the places of backends that have ended, until there are none.
func (h *hanging) watch(ctx context.Context) error {
	for guard.Pause(ctx, hangingEvery) {
		asked := h.list()
		// An error means that Postgres is unavailable.
		if there, err := h.stillThere(asked); err == nil && h.release(asked, there) {
			return nil
		}
	}
	return nil
}

func (h *hanging) list() []backend {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]backend, 0, len(h.backends))
	for b := range h.backends {
		list = append(list, b)
	}
	return list
}

// release releases the places of the backends that are not there any more, and reports whether no
// backend is left.
func (h *hanging) release(asked []backend, there map[backend]bool) (none bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range asked {
		if !there[b] {
			h.backends[b].release()
			delete(h.backends, b)
		}
	}
	h.watched = len(h.backends) > 0
	return !h.watched
}

func (h *hanging) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.backends)
}

func (h *hanging) close() {
	h.mu.Lock()
	h.watched = true
	h.mu.Unlock()
	h.stop()
	h.watching.Wait()
}

// Hanging returns the number of statements that were given up because Postgres did not reply in
// time, and that it still executes: what they write may be committed at any later time.
func (p *DB) Hanging() int { return p.config.shared.hanging.count() }

// stillThere returns those of the backends that have not ended, on a separate connection: those of
// the pools may all hang. A backend of another server, as before a failover, counts as ended.
func (c Config) stillThere(asked []backend) (map[backend]bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	connector, err := c.connector(c.Timeout, 0, patientDialer(c.Timeout), nil, nil)
	if err != nil {
		return nil, err
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	defer db.Close()
	var rows []struct {
		PID     string `db:"pid"`
		Started string `db:"started"`
	}
	// An idle one has replied to a closed connection, and ends; or it serves another connection.
	err = db.SelectContext(ctx, &rows, `
		select pid::text as pid, pg_postmaster_start_time()::text as started from pg_stat_activity
		where pid = any ($1::text[]::integer[]) and state is distinct from 'idle'`,
		pq.Array(Map(asked, func(b backend) string { return b.pid })))
	if err != nil {
		return nil, fmt.Errorf("ask for backends: %w", err)
	}
	there := make(map[backend]bool, len(rows))
	for _, r := range rows {
		there[backend{r.PID, r.Started}] = true
	}
	return there, nil
}
