package store

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// What is written by hand is what json.Marshal would write of the row that is read.
func TestEventsAreWrittenAsTheyAreRead(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 250e6, time.UTC)
	command := telematics.Command{
		ID: uuid.New(), Action: telematics.AttentionSignal, Attention: &telematics.Attention{Signal: telematics.Horn, Duration: time.Second},
		Actor: telematics.Actor{Subject: "o\"ne\n<ö>"}, State: telematics.Failed, Reason: "a\\b", Detail: "\u2028", Late: true, Attempts: 3,
		Reported:  &telematics.Report{At: at, Values: map[telematics.Field]any{telematics.IsLocked: true}},
		Requested: at, SentAt: at, ReceivedAt: at, Completed: at, Deadline: at.Add(time.Second),
	}
	for name, e := range map[string]telematics.Event{
		"a command":                  {Kind: telematics.CommandEvent, Vehicle: 42, Agency: 7, At: at, Command: &command},
		"one that has just begun":    {Kind: telematics.CommandEvent, Vehicle: 42, At: at, Command: &telematics.Command{ID: uuid.New(), Action: telematics.Lock, State: telematics.Accepted, Requested: at, Deadline: at}},
		"a change":                   {Kind: telematics.StatusEvent, Vehicle: 42, Agency: 7, At: at, Change: &telematics.Change{Fields: telematics.Snapshot{telematics.SpeedKmh: {Value: 50.5, At: at}}, LastSeen: at}},
		"a presence":                 {Kind: telematics.PresenceEvent, Vehicle: 42, At: at, Change: &telematics.Change{Presence: telematics.Online}},
		"that something was dropped": {Kind: telematics.ResetEvent, At: at},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := encodeEvent(&e)
			if err != nil {
				t.Fatal(err)
			}
			var row eventRow
			if err := json.Unmarshal(text, &row); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			again, err := json.Marshal(row)
			if err != nil || string(again) != string(text) {
				t.Errorf("written %s\n   read %s, %v", text, again, err)
			}
			told, err := decodeEvent(string(text))
			if err != nil || told.Kind != e.Kind || told.Vehicle != e.Vehicle || !told.At.Equal(e.At) {
				t.Errorf("read as %+v, %v", told, err)
			}
			if e.Command != nil && (told.Command.Actor != e.Command.Actor || told.Command.Detail != e.Command.Detail || !told.Command.Deadline.Equal(e.Command.Deadline)) {
				t.Errorf("the command is read as %+v", told.Command)
			}
		})
	}
}

func TestAPendingEntryIsWrittenAsItIsRead(t *testing.T) {
	want := telematics.Pending{
		Command: uuid.New(), Vehicle: 42, Unit: "a-unit_1", Instance: `in"stance`, Deadline: time.Date(2026, 1, 2, 10, 0, 0, 250e6, time.UTC),
	}
	if got, err := decodePending(string(encodePending(&want))); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v, %v; want %+v", got, err, want)
	}
}
