package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"motorpool/telematics"
)

// Kind is what happened to a command in a car.
type Kind string

const (
	CommandReceived Kind = "received" // a copy of it reached the unit, signed by a known key
	CommandDamaged  Kind = "damaged"  // a copy of it reached the unit, damaged by the radio
	CommandStarted  Kind = "started"  // the car begins to act
	CommandEnded    Kind = "ended"    // the car has acted, or failed to
	CommandAnswered Kind = "answered" // the unit handed an answer to its radio
	Harmed          Kind = "harmed"   // what no command must ever do; the detail says it
	// The vehicle is locked or unlocked now, whatever the cause; the detail says which. Also at the
	// start.
	Turned Kind = "turned"
)

// Details of Turned.
const (
	TurnedLocked   = "locked"
	TurnedUnlocked = "unlocked"
)

// Event is one line of the flight recorder. For a unit whose commands have no number, Seq counts
// the commands that it received: so it distinguishes two copies of a command.
type Event struct {
	Kind    Kind                 `json:"kind"`
	Unit    telematics.Unit      `json:"unit"`
	Command telematics.CommandID `json:"command_id"`
	Action  telematics.Action    `json:"action,omitempty"`
	Lane    telematics.Lane      `json:"lane,omitempty"`
	Seq     int64                `json:"seq"`
	Expires time.Time            `json:"exp"`
	Status  telematics.State     `json:"status,omitempty"` // of the answer; with Reason and Detail
	Reason  string               `json:"reason,omitempty"`
	Detail  string               `json:"detail,omitempty"`
	Clock   time.Time            `json:"car_time"` // by the car's own clock
	True    time.Time            `json:"true_time"`
}

// Recorder is the flight recorder of a fleet: what each car executed, and when. It is evidence that
// does not depend on what the service believes. The zero value keeps everything in memory; nil
// records nothing. Safe for concurrent use.
type Recorder struct {
	Out io.Writer // gets each event as a line of JSON, instead of memory

	mu     sync.Mutex // guards what follows, and Out
	events []Event
	err    error
}

// Record adds events.
func (r *Recorder) Record(events ...Event) {
	if r == nil || len(events) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Out == nil {
		r.events = append(r.events, events...)
		return
	}
	for _, e := range events {
		if r.err == nil {
			r.err = r.write(e)
		}
	}
}

func (r *Recorder) write(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode flight record: %w", err)
	}
	if _, err := r.Out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write flight record: %w", err)
	}
	return nil
}

// Err returns the error with which the recorder failed to write to Out, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Events returns what is in memory, oldest first.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Of returns the events of one command.
func (r *Recorder) Of(id telematics.CommandID) []Event {
	return slices.DeleteFunc(r.Events(), func(e Event) bool { return e.Command != id })
}
