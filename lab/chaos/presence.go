package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/lib/pq"

	"motorpool/internal/world"
	"motorpool/lab/chaos/audit"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// presenceWithin is how long the record may take to have what the broker retains.
const presenceWithin = 30 * time.Second

// presence compares what Mosquitto retains of the units of protocol v1 with the record, until both
// are the same, or the time is over.
func (r *round) presence(ctx context.Context) (all []audit.PresenceOf, err error) {
	_ = world.Eventually(ctx, presenceWithin, "the record has what mosquitto retains", func(ctx context.Context) bool {
		compared, failed := r.comparePresence(ctx)
		if failed != nil {
			if all == nil { // else the time was over during one comparison more
				err = failed
			}
			return false
		}
		all, err = compared, nil
		return retryLater(ctx, !slices.ContainsFunc(all, func(p audit.PresenceOf) bool { return p.Retained != p.Recorded }))
	}) // the audit shows what differs
	return all, err
}

func (r *round) comparePresence(ctx context.Context) ([]audit.PresenceOf, error) {
	retained, err := r.retainedPresence(ctx)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Serial, Status, Session string
		Actions, Keys           pq.StringArray
	}
	if err := r.watcher.db.SelectContext(ctx, &rows, `select serial, coalesce(status, '') as status, session,
		coalesce(actions, '{}') as actions, coalesce(keys, '{}') as keys from units`); err != nil {
		return nil, fmt.Errorf("read presence: %w", err)
	}
	recorded := map[telematics.Unit]string{}
	for _, row := range rows {
		recorded[telematics.Unit(row.Serial)] = presenceText(row.Status, row.Session, row.Keys, row.Actions)
	}
	var all []audit.PresenceOf
	for unit, text := range retained {
		all = append(all, audit.PresenceOf{Unit: unit, Retained: text, Recorded: recorded[unit]})
	}
	return all, nil
}

// presenceText is what a presence says, sorted.
func presenceText[K, A ~string](status, session string, keys []K, actions []A) string {
	keys, actions = slices.Sorted(slices.Values(keys)), slices.Sorted(slices.Values(actions))
	return fmt.Sprintf("%s, session %s, keys %v, capabilities %v", status, session, keys, actions)
}

// quiet is after how long without a retained message there are no more.
const quiet = 500 * time.Millisecond

// retainedPresence reads what Mosquitto retains of the cars of protocol v1.
func (r *round) retainedPresence(ctx context.Context) (map[telematics.Unit]string, error) {
	var mu sync.Mutex
	found, last := map[telematics.Unit]string{}, time.Now()
	filter := v1.PresenceChannel.Filter()
	token := r.listener.watcher.Subscribe(filter, 1, func(_ paho.Client, m paho.Message) {
		unit, _, err := v1.ParseTopic(m.Topic())
		p, invalid := v1.DecodePresence(m.Payload(), time.Now())
		mu.Lock()
		defer mu.Unlock()
		if m.Retained() { // units say more meanwhile
			last = time.Now()
		}
		if err == nil && invalid == nil && unit != floodUnit {
			found[unit] = presenceText(string(p.Status), p.Session, p.Keys, p.Actions)
		}
	})
	if !token.WaitTimeout(mqttTimeout) || token.Error() != nil {
		return nil, fmt.Errorf("read retained presence: %w", token.Error())
	}
	err := world.Eventually(ctx, mqttTimeout, "all retained presence has come", func(context.Context) bool {
		mu.Lock()
		defer mu.Unlock()
		return time.Since(last) > quiet
	})
	r.listener.watcher.Unsubscribe(filter).WaitTimeout(mqttTimeout)
	mu.Lock()
	defer mu.Unlock()
	return found, err
}
