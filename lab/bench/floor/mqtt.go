// Package floor has the floors of the measurements: programs that do a part of what the service
// does, with its libraries, each in a separate process. See docs/benchmarks.md.
package floor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/lab/bench/load"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// subscribe connects a client with the service's library and options, and returns it when its
// shared subscription at QoS 1 is granted.
func subscribe(b load.Broker, filter string, onMessage mqtt.MessageHandler) (mqtt.Client, error) {
	id := "bench-" + strings.NewReplacer("/", "-", "+", "").Replace(filter)
	filter = telematics.SharedFilter("bench", filter)
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(b.URL).SetClientID(id).SetUsername(b.User).SetPassword(b.Password).
		SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).SetConnectTimeout(answerTimeout).
		SetWriteTimeout(400 * time.Millisecond).SetKeepAlive(time.Minute).SetDefaultPublishHandler(onMessage))
	for _, step := range []func() mqtt.Token{client.Connect, func() mqtt.Token { return client.Subscribe(filter, 1, nil) }} {
		token := step()
		if !token.WaitTimeout(answerTimeout) {
			return nil, fmt.Errorf("subscribe %s: %w", id, errNoAnswer)
		}
		if token.Error() != nil {
			return nil, fmt.Errorf("subscribe %s: %w", id, token.Error())
		}
	}
	return client, nil
}

// answerTimeout is how long a floor waits for an answer, in addition to the budget of a command.
const answerTimeout = 5 * time.Second

var errNoAnswer = errors.New("no answer")

// waiters wait for the answers of vehicles, one for each vehicle.
type waiters struct {
	channels sync.Map // vehicle → chan []byte
}

// call publishes, and returns the vehicle's answer.
func (w *waiters) call(vehicle int, timeout time.Duration, publish func() error) ([]byte, error) {
	answer := make(chan []byte, 1)
	w.channels.Store(vehicle, answer)
	if err := publish(); err != nil {
		return nil, err
	}
	select {
	case payload := <-answer:
		return payload, nil
	case <-time.After(timeout):
		return nil, errNoAnswer
	}
}

var received = []byte(`"status":"` + string(telematics.Received) + `"`)

// receive returns a handler of answers below a root. Received is not an answer.
func (w *waiters) receive(root string) mqtt.MessageHandler {
	return func(_ mqtt.Client, m mqtt.Message) {
		if bytes.Contains(m.Payload(), received) {
			return
		}
		if answer, ok := w.channels.LoadAndDelete(load.VehicleIn(m.Topic(), root)); ok {
			answer.(chan []byte) <- m.Payload()
		}
	}
}

// Echo is the floor of commands: it publishes messages to units with the service's MQTT client, and
// waits for each to come back. Its result is load.Called.
type Echo struct {
	load.Calls
	Broker   load.Broker
	Vehicles load.Vehicles
	Bytes    int // of a message
}

// Do implements load.Job.
func (f *Echo) Do(ctx context.Context, _ func(string)) (any, error) {
	var calls waiters
	client, err := subscribe(f.Broker, load.EchoRoot+"+/ack", calls.receive(load.EchoRoot))
	if err != nil {
		return nil, err
	}
	defer client.Disconnect(0)
	payload := bytes.Repeat([]byte("x"), f.Bytes)
	return f.Calls.Do(ctx, func(worker int) func() error {
		next := f.Vehicles.Turns(worker, f.Workers)
		return func() error {
			vehicle := next()
			_, err := calls.call(vehicle, answerTimeout, func() error {
				client.Publish(load.EchoRoot+string(load.UnitOf(vehicle))+"/command", 1, false, payload)
				return nil
			})
			return err
		}
	}), nil
}

// LastReport is the metric of when the last report was received, in microseconds.
const LastReport = "bench_last_report_microseconds"

// Subscriber is the floor of reports: a client with the service's kind of subscription that counts
// them.
type Subscriber struct{ Broker load.Broker }

// Do implements load.Job.
func (f *Subscriber) Do(ctx context.Context, ready func(string)) (any, error) {
	var n, last atomic.Int64
	client, err := subscribe(f.Broker, v1.TelemetryChannel.Filter(), func(mqtt.Client, mqtt.Message) {
		n.Add(1)
		last.Store(time.Now().UnixMicro())
	})
	if err != nil {
		return nil, err
	}
	defer client.Disconnect(0)
	load.ServeHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// The caller may be gone.
		_, _ = fmt.Fprintf(w, "%s %d\n%s %d\n", load.ReportsMerged, n.Load(), LastReport, last.Load())
	}), ready)
	return nil, nil
}
