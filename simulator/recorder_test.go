package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

func started(id uuid.UUID, at, expires time.Time) Event {
	return Event{Kind: CommandStarted, Unit: aUnit, Command: id, True: at, Clock: at, Expires: expires}
}

func TestRecorder_FindsLateAndRepeatedCommands(t *testing.T) {
	good, late, twice := uuid.New(), uuid.New(), uuid.New()
	r := &Recorder{}
	r.Record(
		started(good, epoch, epoch.Add(10*time.Second)),
		started(late, epoch.Add(5001*time.Millisecond), epoch),
		started(twice, epoch, epoch.Add(10*time.Second)),
		started(twice, epoch.Add(time.Second), epoch.Add(10*time.Second)),
		Event{Kind: CommandAnswered, Command: good, True: epoch.Add(time.Hour), Expires: epoch},
	)
	if got := r.Late(5 * time.Second); len(got) != 1 || got[0].Command != late {
		t.Errorf("late commands: %+v", got)
	}
	if got := r.Repeated(); len(got) != 1 || got[0].Command != twice {
		t.Errorf("repeated commands: %+v", got)
	}
	if got := r.Of(good); len(got) != 2 {
		t.Errorf("events of one command: %+v, want 2", got)
	}
}

func TestRecorder_WritesALineOfJSONForEachEvent(t *testing.T) {
	var out bytes.Buffer
	r := &Recorder{Out: &out, Limit: -1}
	want := started(uuid.New(), epoch, epoch.Add(10*time.Second))
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 50 {
				r.Record(want)
			}
		})
	}
	writers.Wait()
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 400 || len(r.Events()) != 0 || r.Err() != nil {
		t.Fatalf("%d lines, %d events in memory, %v; want 400 and none", len(lines), len(r.Events()), r.Err())
	}
	var got Event
	if err := json.Unmarshal(lines[0], &got); err != nil || got != want {
		t.Errorf("the first line is %s, %v", lines[0], err)
	}
}

func TestRecorder_KeepsOnlyTheLatestEvents(t *testing.T) {
	r := &Recorder{Limit: 10}
	for i := range 35 {
		r.Record(Event{Seq: int64(i)})
	}
	if got := r.Events(); len(got) != 10 || got[0].Seq != 25 || got[9].Seq != 34 {
		t.Errorf("kept %+v, want the events 25 to 34", got)
	}
}

func TestRecorder_WriteErrorIsReturned(t *testing.T) {
	r := &Recorder{Out: fullDisk{}}
	r.Record(Event{})
	r.Record(Event{})
	if !errors.Is(r.Err(), errFull) || len(r.Events()) != 2 {
		t.Errorf("error %v, %d events; want the write error and 2 events", r.Err(), len(r.Events()))
	}
	var none *Recorder
	none.Record(Event{}) // a nil recorder records nothing
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
