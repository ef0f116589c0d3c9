package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/broker/ingest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/dialects"
	"motorpool/telematics/signing"
	v1 "motorpool/telematics/v1"
)

// instant is a set of stores and an MQTT publisher that take no time: the record has only open
// commands, and cars answer while the command is published.
type instant struct {
	broker.Commands
	ingest.Twins
	broker *broker.Broker
	seq    atomic.Int64

	mu       sync.Mutex
	open     map[telematics.CommandID]telematics.Command
	inFlight map[string]telematics.Command // by topic: a vehicle has one at a time
}

func newInstant(b *testing.B, vehicles int, key telematics.Signer) *instant {
	b.Helper()
	w := &instant{open: map[telematics.CommandID]telematics.Command{}, inFlight: map[string]telematics.Command{}}
	twins := make([]telematics.Twin, vehicles)
	for i := range twins {
		twins[i] = healthy()
		twins[i].ID = telematics.VehicleID(i + 1)
		twins[i].Unit = telematics.Unit(fmt.Sprintf("35824005%07d", i+1))
	}
	c := brokertest.NewMemory(twins...).Config()
	w.Commands, w.Twins = c.Commands, c.Twins
	c.Commands, c.Twins, c.Events = w, w, w
	c.Publisher, c.Key, c.Dialects, c.Logger = instantMQTT{w}, key, dialects.Spoken, slog.New(slog.DiscardHandler)
	w.broker = broker.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.broker.Run(ctx); err != nil {
			b.Errorf("Run: %v", err)
		}
	})
	b.Cleanup(func() { cancel(); running.Wait() })
	return w
}

func (w *instant) Claim(_ context.Context, accepted *telematics.Command) (delivery.Claim, error) {
	c := *accepted
	c.Seq = w.seq.Add(1)
	topic := v1.CommandChannel.Topic(c.Unit)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[c.ID], w.inFlight[topic] = c, c
	return delivery.Claim{Seq: c.Seq}, nil
}

func (w *instant) StoreProgress(context.Context, []delivery.Note) error { return nil }

func (w *instant) Settle(_ context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.open[s.Command]
	delete(w.open, s.Command)
	c.State, c.Completed, c.SentAt, c.Attempts = s.State, s.At, s.SentAt, s.Attempts
	return &c, ok, nil
}

func (w *instant) Observe(context.Context, []delivery.Observation) (delivery.Seen, error) {
	return delivery.Seen{}, nil
}

func (w *instant) Publish(context.Context, []telematics.Event) ([]telematics.Event, error) {
	return nil, nil
}

// instantMQTT answers each command during its publication.
type instantMQTT struct{ *instant }

func (instantMQTT) Ready(telematics.Unit) error { return nil }

func (w instantMQTT) Publish(t telematics.Transmission) error {
	w.mu.Lock()
	c := w.inFlight[t.Topic]
	w.mu.Unlock()
	answer := `{"command_id":"` + c.ID.String() + `","status":"succeeded","at":"2026-01-02T10:00:02.310Z"}`
	w.broker.Answer(brokertest.Said(c.Unit, []byte(answer), false))
	return nil
}

func (w *instant) lock(b *testing.B, vehicle telematics.VehicleID) {
	r, err := w.broker.Send(b.Context(), &delivery.Order{Vehicle: vehicle, Action: telematics.Lock, Actor: admin, RequestID: uuid.Nil})
	if err != nil || r.Command.State != telematics.Succeeded {
		b.Errorf("Send = %+v, %v", r, err)
	}
}

// unsigned does not sign, so that only the broker's work is measured.
type unsigned struct{}

func (unsigned) Sign(telematics.Claims) ([]byte, error) { return []byte("unsigned"), nil }

// BenchmarkSend measures a command from the caller through the broker and back, with stores and a
// network that take no time.
func BenchmarkSend(b *testing.B) {
	key, err := signing.NewKey()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		key  telematics.Signer
	}{{"signed", key}, {"unsigned", unsigned{}}} {
		b.Run(c.name+"/callers=1", func(b *testing.B) {
			w := newInstant(b, 1, c.key)
			b.ReportAllocs()
			for b.Loop() {
				w.lock(b, 1)
			}
		})
		b.Run(c.name+"/callers=64", func(b *testing.B) {
			const callers = 64
			w := newInstant(b, callers, c.key)
			b.ReportAllocs()
			b.ResetTimer()
			var made atomic.Int64
			var wg sync.WaitGroup
			for caller := range callers {
				wg.Go(func() {
					for made.Add(1) <= int64(b.N) {
						w.lock(b, telematics.VehicleID(caller+1))
					}
				})
			}
			wg.Wait()
		})
	}
}
