package floor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/jmoiron/sqlx"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/lab/bench/load"
	"motorpool/lab/world"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// testBed is a durable floor, with cars that answer when the test says so.
type testBed struct {
	*world.World
	floor    *Handler
	url      string
	cars     mqtt.Client
	commands chan mqtt.Message // that cars have received
	db       *sqlx.DB
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newTestBed(t *testing.T) *testBed {
	for _, server := range []string{devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer} {
		devstack.NeedServer(t, server)
	}
	w := must(world.New(must(world.TempDir("motorpool-floor-")), slog.New(slog.DiscardHandler)))
	t.Cleanup(func() { _, _ = w.Close(), os.RemoveAll(w.Dir) })
	require.NoError(t, w.StartServers(t.Context(), world.ServersConfig{}))
	b := &testBed{World: w, commands: make(chan mqtt.Message, 100), db: must(sqlx.Open("postgres", w.Postgres.URL())), floor: &Handler{
		Broker: load.Broker{URL: w.Mosquitto.ServiceURL(), User: devstack.GatewayUser, Password: w.ServicePassword},
		Root:   load.DurableRoot, Dir: w.Dir, Budget: telematics.DefaultBudget, Postgres: w.Postgres.URL(), Redis: w.Redis.URL(),
	}}
	b.cars = must(subscribe(b.floor.Broker, load.DurableRoot+"+/command", func(_ mqtt.Client, m mqtt.Message) { b.commands <- m }))
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		_, err := b.floor.Do(ctx, func(address string) { ready <- address })
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
		b.cars.Disconnect(0)
		_ = b.db.Close()
	})
	select {
	case b.url = <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	return b
}

// lock requests a command, and sends the status of the answer.
func (b *testBed) lock(vehicle int) <-chan int {
	token := must(b.Token(telematics.Actor{Subject: "bench", Role: telematics.Admin, Agency: 1}))
	request := must(http.NewRequest(http.MethodPost, b.url+fmt.Sprintf(load.LockPath, vehicle), nil))
	request.Header.Set("Authorization", "Bearer "+token)
	status := make(chan int, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			panic(err)
		}
		_ = response.Body.Close()
		status <- response.StatusCode
	}()
	return status
}

func (b *testBed) answer(message mqtt.Message) {
	claims := must(b.Signing.Keyring().Verify(message.Payload()))
	answer := v1.EncodeAnswer(telematics.Answer{Command: claims.Command, State: telematics.Succeeded, At: time.Now()})
	b.cars.Publish(strings.TrimSuffix(message.Topic(), "command")+"ack", 1, false, answer)
}

// expect compares what Postgres has of all commands, and how many are registered in Redis.
func (b *testBed) expect(t *testing.T, rows string, registered int) {
	var got string
	if err := b.db.Get(&got, `select coalesce(string_agg(state || ' ' || (completed_at is not null), ', '), '')
		from bench_commands`); err != nil || got != rows {
		t.Errorf("Postgres has %q, %v; want %q", got, err, rows)
	}
	if keys := b.floor.store.redis.Keys(t.Context(), "bench:*").Val(); len(keys) != registered {
		t.Errorf("Redis has %v, want %d", keys, registered)
	}
}

func TestDurable_StoresBeforeItPublishesAndAfterTheAnswer(t *testing.T) {
	b := newTestBed(t)
	first := b.lock(7)
	message := <-b.commands
	b.expect(t, "sent false", 1)
	assert.Equal(t, <-b.lock(7), http.StatusConflict, "a second command to the car: status")
	b.answer(message)
	assert.Equal(t, <-first, http.StatusOK, "status")
	b.expect(t, "succeeded true", 0)
}

func TestDurable_OneBatchHasAllThatQueuedMeanwhile(t *testing.T) {
	b := newTestBed(t)
	const commands = 9
	tx := b.db.MustBegin()
	tx.MustExec(`lock table bench_commands in exclusive mode`)
	statuses := []<-chan int{b.lock(1)}
	eventually(t, "the first batch is in flight", func(context.Context) bool {
		var blocked bool
		return b.db.Get(&blocked, `select exists (select from pg_locks where not granted)`) == nil && blocked
	})
	for vehicle := 2; vehicle <= commands; vehicle++ {
		statuses = append(statuses, b.lock(vehicle))
	}
	eventually(t, "the others have queued", func(context.Context) bool { return len(b.floor.store.inserts.queue) == commands-1 })
	require.NoError(t, tx.Commit())
	var messages []mqtt.Message
	for range commands {
		messages = append(messages, <-b.commands)
	}
	var transactions int
	if err := b.db.Get(&transactions, `select count(distinct xmin::text) from bench_commands`); err != nil || transactions != 2 {
		t.Errorf("%d commands were inserted by %d transactions, %v; want 2", commands, transactions, err)
	}
	for _, message := range messages {
		b.answer(message)
	}
	for _, status := range statuses {
		<-status
	}
}

func eventually(t *testing.T, what string, holds func(context.Context) bool) {
	require.NoError(t, world.Eventually(t.Context(), 10*time.Second, what, holds))
}
