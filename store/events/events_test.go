package events

import (
	"context"
	"testing"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/store/redis"
	"motorpool/store/storetest"
)

var _ broker.Events = (*Log)(nil)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestMiniredisKeepsTheContractOfEvents(t *testing.T) {
	eventsContract(t, storetest.StartMiniredis(t).URL())
}

func TestRedisKeepsTheContractOfEvents(t *testing.T) {
	eventsContract(t, storetest.StartRedis(t).URL())
}

func eventsContract(t *testing.T, address string) {
	here, there := openRedis(t, address), openRedis(t, address)
	brokertest.EventsContract(t, func(t *testing.T) brokertest.EventLogs {
		empty := func() {
			if err := here.Client.FlushAll(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		empty()
		return brokertest.EventLogs{Here: New(here), There: New(there), Empty: empty}
	})
}

func openRedis(t testing.TB, address string) *redis.DB {
	t.Helper()
	db, err := redis.New(redis.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
