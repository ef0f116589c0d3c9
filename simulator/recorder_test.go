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

func TestRecorder_WritesALineOfJSONForEachEvent(t *testing.T) {
	var out bytes.Buffer
	r := &Recorder{Out: &out}
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

func TestRecorder_WriteErrorIsReturned(t *testing.T) {
	r := &Recorder{Out: fullDisk{}}
	r.Record(Event{})
	r.Record(Event{})
	if !errors.Is(r.Err(), errFull) {
		t.Errorf("error %v, want the write error", r.Err())
	}
	var none *Recorder
	none.Record(Event{}) // a nil recorder records nothing
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
