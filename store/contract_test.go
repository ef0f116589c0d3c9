package store

import (
	"context"
	"slices"
	"testing"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

var (
	_ broker.Vehicles     = (*Twins)(nil)
	_ broker.Commands     = (*Postgres)(nil)
	_ broker.Halts        = (*Postgres)(nil)
	_ broker.History      = (*Postgres)(nil)
	_ broker.Twins        = (*Twins)(nil)
	_ broker.Strangers    = (*Postgres)(nil)
	_ broker.Contacts     = (*Postgres)(nil)
	_ broker.PendingTable = (*Redis)(nil)
	_ broker.Events       = (*Events)(nil)
)

func TestPostgresKeepsTheContractOfCommands(t *testing.T) {
	t.Parallel()
	address := newDatabase(t)
	here, there := open(t, address), open(t, address)
	add := vehicles(t, here)
	brokertest.CommandsContract(t, func(t *testing.T) brokertest.CommandRecord {
		return brokertest.CommandRecord{
			Here: here, There: there,
			Vehicle: func() telematics.VehicleID { id, _ := add(); return id },
			Lines:   func(id telematics.CommandID) []telematics.Activity { return linesOf(t, here, id) },
		}
	})
}

// linesOf returns a command's lines of the history, oldest first.
func linesOf(t *testing.T, p *Postgres, id telematics.CommandID) []telematics.Activity {
	t.Helper()
	all, err := p.Activities(context.Background(), telematics.ActivityQuery{})
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(a telematics.Activity) bool { return a.Command != id })
	slices.Reverse(all)
	return all
}

func TestPostgresKeepsTheContractOfContacts(t *testing.T) {
	address := newDatabase(t)
	here, there := open(t, address), open(t, address)
	add := vehicles(t, here)
	brokertest.ContactsContract(t, func(*testing.T) brokertest.ContactRecord {
		return brokertest.ContactRecord{Here: here, There: there, Vehicle: add}
	})
}

func TestMiniredisKeepsTheContractOfEvents(t *testing.T) { eventsContract(t, miniredis(t)) }

func TestRedisKeepsTheContractOfEvents(t *testing.T) { eventsContract(t, startRedis(t).URL()) }

func eventsContract(t *testing.T, address string) {
	here, there := openRedis(t, address), openRedis(t, address)
	brokertest.EventsContract(t, func(t *testing.T) brokertest.EventLogs {
		empty := func() {
			if err := here.client.FlushAll(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		empty()
		return brokertest.EventLogs{Here: here.Events(), There: there.Events(), Empty: empty}
	})
}

func TestMiniredisKeepsTheContractOfThePendingTable(t *testing.T) {
	pendingTableContract(t, miniredis(t))
}

func TestRedisKeepsTheContractOfThePendingTable(t *testing.T) {
	pendingTableContract(t, startRedis(t).URL())
}

func pendingTableContract(t *testing.T, address string) {
	here, there := openRedis(t, address), openRedis(t, address)
	brokertest.PendingTableContract(t, func(t *testing.T) brokertest.PendingTables {
		flush := func() {
			if err := here.client.FlushAll(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		flush()
		return brokertest.PendingTables{Here: here, There: there, Flush: flush}
	})
}

func startRedis(t testing.TB) *devstack.Redis {
	t.Helper()
	devstack.NeedServer(t, devstack.RedisServer)
	s, err := devstack.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openRedis(t testing.TB, address string) *Redis {
	t.Helper()
	r, err := NewRedis(RedisConfig{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}
