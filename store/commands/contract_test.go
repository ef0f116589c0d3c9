package commands

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lib/pq"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/broker/ingest"
	"motorpool/internal/require"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/store/twins"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

var (
	_ broker.Commands     = (*Store)(nil)
	_ broker.Halts        = HaltStore{}
	_ broker.Clock        = (*pg.DB)(nil)
	_ broker.AuditLog     = (*activity.Log)(nil)
	_ ingest.UnknownUnits = (*vehicles.Fleet)(nil)
	_ ingest.Contacts     = (*vehicles.Fleet)(nil)
)

func TestPostgres_KeepsTheContractOfCommands(t *testing.T) {
	t.Parallel()
	address := storetest.NewDatabase(t)
	here, there := open(t, address), open(t, address)
	add := storetest.Vehicles(t, here.DB)
	brokertest.CommandsContract(t, func(t *testing.T) brokertest.CommandRecord {
		return brokertest.CommandRecord{
			Here: commandsOf(here), There: commandsOf(there),
			Vehicle: func() telematics.VehicleID { id, _ := add(); return id },
			Fleet:   fleetIn(t, there),
			Entries: func(id telematics.CommandID) []telematics.Activity { return entriesOf(t, here, id) },
		}
	})
}

// twinsOf returns the reported states of an instance, which are flushed until the test ends.
func twinsOf(t *testing.T, p *instance) *twins.Twins {
	t.Helper()
	reported := twins.New(twins.Config{
		DB: p.DB, Vehicles: p.Fleet, Redis: openRedis(t, storetest.StartMiniredis(t).URL()), FlushEvery: 50 * time.Millisecond,
		StateInterval: 50 * time.Millisecond,
	})
	storetest.Run(t, func(ctx context.Context) error { return reported.Run(ctx, nil) })
	return reported
}

// commandsOf returns the store of commands of an instance without Redis.
func commandsOf(p *instance) *Store {
	return New(p.DB, twins.New(twins.Config{DB: p.DB, Vehicles: p.Fleet, Redis: new(redis.DB)}))
}

// fleetIn changes records of vehicles, as imports and units do.
func fleetIn(t *testing.T, p *instance) brokertest.Fleet {
	t.Helper()
	exec := func(query string, args ...any) {
		t.Helper()
		storetest.Exec(t, p.Pool, query, args...)
	}
	exec(`insert into agencies (id, code, name) values (1, 'MUC', 'Isar Mobility'), (2, 'HAM', 'Alster Mobility') on conflict do nothing`)
	removeUnit := func(id telematics.VehicleID) { exec(`update units set vehicle_id = null where vehicle_id = $1`, id) }
	return brokertest.Fleet{
		Record: func(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
			twin, err := p.Record(ctx, id)
			return pg.Deref(twin), err
		},
		Change: func(id telematics.VehicleID, change func(*telematics.Twin)) {
			t.Helper()
			twin, err := p.Record(context.Background(), id)
			require.NoError(t, err)
			before := twin.Unit
			if change(twin); twin.Unit != before {
				removeUnit(id)
			}
			exec(`update vehicles set agency_id = $2, status = $3, powertrain = $4, plate_number = $5, capabilities = $6 where id = $1`,
				id, twin.AgencyID, twin.Status, twin.Powertrain, twin.Plate, pq.Array(twin.Actions))
			if twin.Unit != "" {
				c := twin.Contact
				exec(`
					insert into units (serial, vehicle_id, protocol, status, session, said_at, changed_at, last_seen, actions,
						firmware, gap_ms)
					values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
					on conflict (serial) do update set vehicle_id = $2, protocol = $3, status = $4, session = $5, said_at = $6,
						changed_at = $7, last_seen = $8, actions = $9, firmware = $10, gap_ms = $11`,
					twin.Unit, id, twin.Protocol, pg.Nullable(c.Status), c.Session, pg.Timestamp(c.SaidAt),
					pg.Timestamp(c.ChangedAt), pg.Timestamp(c.LastSeen), pq.Array(c.Actions), c.Firmware,
					pg.Nullable(c.Gap.Milliseconds()),
				)
			}
		},
		Remove: func(id telematics.VehicleID) {
			t.Helper()
			removeUnit(id)
			exec(`delete from vehicles where id = $1`, id)
		},
	}
}

func TestTwins_KeepTheContractOfVehicles(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	twins := twinsOf(t, p)
	add := storetest.Vehicles(t, p.DB)
	brokertest.VehiclesContract(t, func(t *testing.T) brokertest.VehicleRecord {
		return brokertest.VehicleRecord{
			Vehicles: twins, Commands: New(p.DB, twins), Record: twins.Record,
			Vehicle: func() telematics.VehicleID { id, _ := add(); return id }, Fleet: fleetIn(t, p),
		}
	})
}

// entriesOf returns the audit log entries of a command, oldest first.
func entriesOf(t *testing.T, p *instance, id telematics.CommandID) []telematics.Activity {
	t.Helper()
	all, err := p.Activities(context.Background(), telematics.ActivityQuery{})
	require.NoError(t, err)
	all = slices.DeleteFunc(all, func(a telematics.Activity) bool { return a.Command != id })
	slices.Reverse(all)
	return all
}

func openRedis(t testing.TB, address string) *redis.DB {
	t.Helper()
	db, err := redis.New(redis.Config{URL: address})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
