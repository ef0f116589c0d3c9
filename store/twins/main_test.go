package twins

import (
	"context"
	goflag "flag"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/broker/ingest"
	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics/delivery"
)

var (
	_ broker.Vehicles = (*Twins)(nil)
	_ ingest.Twins    = (*Twins)(nil)
)

func TestMain(m *testing.M) {
	if require.Race { // the contract's property goes through Redis and Postgres, three times over
		_ = goflag.Set("rapid.checks", "20")
	}
	storetest.Main(m)
}

var morning = time.Date(2026, 1, 2, 10, 0, 0, 123456000, time.UTC)

// record is the state in Postgres, without Redis and the cache.
type record struct {
	*vehicles.Fleet
	stored
	owner *vehicles.Fleet // with the rights of the owner of the tables
}

// Import imports as motorpool import does.
func (r *record) Import(ctx context.Context, file vehicles.FleetFile) (vehicles.Imported, error) {
	return r.owner.Import(ctx, file)
}

func (r *record) Observe(ctx context.Context, observations []delivery.Observation) (delivery.Seen, error) {
	return Store(ctx, r.DB, observations)
}

// open connects an instance to a database.
func open(tb testing.TB, address string) *record {
	tb.Helper()
	r := newRecord(storetest.Open(tb, address))
	r.owner = vehicles.New(storetest.OpenAsOwner(tb, address))
	return r
}

func newRecord(db *pg.DB) *record { return &record{Fleet: vehicles.New(db), stored: stored{db}} }

func openRedis(t testing.TB, address string) *redis.DB {
	t.Helper()
	db, err := redis.New(redis.Config{URL: address})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// ownServer starts a Postgres server that the test may kill, with vehicle 1.
func ownServer(t *testing.T, timeout time.Duration) (storetest.Postgres, *record) {
	t.Helper()
	server := storetest.StartPostgres(t, false)
	return server, newRecord(storetest.OpenWith(t, pg.Config{URL: server.Database(storetest.Template), Timeout: timeout}))
}

// newTwins opens an instance's twins, whose states are due in Postgres after the time in which they
// are flushed, too.
func newTwins(p *record, db *redis.DB, flushEvery time.Duration) *Twins {
	return New(Config{DB: p.DB, Vehicles: p.Fleet, Redis: db, FlushEvery: flushEvery, StateInterval: min(flushEvery, MaxStateInterval)})
}

// withInterval opens an instance's twins with a state interval, which flushes more often.
func withInterval(p *record, db *redis.DB, interval time.Duration) *Twins {
	return New(Config{DB: p.DB, Vehicles: p.Fleet, Redis: db, FlushEvery: 50 * time.Millisecond, StateInterval: interval})
}

// unwritten returns how many vehicles have a state that Redis or Postgres does not have.
func (t *Twins) unwritten() int {
	n := t.queue.size() + t.unresolved.size()
	// At one instant: a state moves between them.
	counts, _ := t.redis.db.Client.TxPipelined(context.Background(), func(pipe goredis.Pipeliner) error {
		for _, key := range append(t.dues.due, t.dues.writing...) {
			pipe.ZCard(context.Background(), key)
		}
		return nil
	})
	for _, count := range counts {
		n += int(count.(*goredis.IntCmd).Val())
	}
	return n
}

func TestRecord_ContractOfContacts(t *testing.T) {
	address := storetest.NewDatabase(t)
	here, there := open(t, address), open(t, address)
	add := storetest.Vehicles(t, here.DB)
	brokertest.ContactsContract(t, func(*testing.T) brokertest.ContactRecord {
		return brokertest.ContactRecord{Here: here, There: there, Vehicle: add}
	})
}

func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queued) + len(q.flushing)
}
