package broker_test

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"motorpool/telematics"
)

// story is the trace of an interleaving, with times from its start.
func (w *interleaving) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "trace of seed %d: %+v\n", w.seed, w.faultRates)
	for _, e := range w.trace {
		fmt.Fprintf(&b, "%12s  %s\n", w.clock(e.at), fmt.Sprintf(e.format, e.args...))
	}
	return ids.ReplaceAllStringFunc(b.String(), func(id string) string { return id[len(id)-6:] })
}

// ids are command IDs, of which the story shows the last six digits.
var ids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func (w *interleaving) trouble(s *server, method string, id telematics.CommandID, how callFault, at *instance) {
	// Other faults are not worth a line.
	if s.fault() == done || id != telematics.NoCommand && method != "Add" {
		w.note("%s: %s of %v: %s", at.name, method, id, callFaults[how])
	}
	w.count("faults: " + callFaults[how])
	to := time.Now()
	if how != refused && how != lost {
		to = to.Add(3 * time.Second) // the time limit of a step
	}
	w.excuse(id)
	w.mark(s, to)
}

// mark records a fault of a server, until a time.
func (w *interleaving) mark(s *server, to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == &w.postgres {
		w.troubles = append(w.troubles, interval{time.Now(), to})
	} else {
		w.others = append(w.others, interval{time.Now(), to})
	}
}

func (w *interleaving) excuse(id telematics.CommandID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.excused[id] = true
}

func (w *interleaving) isExcused(id telematics.CommandID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.excused[id] || w.anomalies[id]
}

func (w *interleaving) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally[what]++
}

func (w *interleaving) stepped(from, to telematics.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps[[2]telematics.State{from, to}]++
}

func (w *interleaving) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, event{time.Now(), format, args})
}

func (w *interleaving) violated(law, format string, args ...any) {
	w.note("VIOLATED: "+law+": "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, law+": "+fmt.Sprintf(format, args...))
}

func (w *interleaving) clock(t time.Time) string {
	return t.Sub(w.start).Round(time.Millisecond).String()
}
