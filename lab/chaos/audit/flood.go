package audit

import (
	"net/http"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// Flood is a time in which one unit published far more than it may, without other faults.
type Flood struct {
	Interval
	Limited int // messages that the service dropped for that reason
}

const (
	// radioTakes is how long an answer takes at most from a car with a good radio to Mosquitto.
	radioTakes = 500 * time.Millisecond
	// floodDelays is how long the service may then take to settle the command and answer its
	// caller. Without faults it is some milliseconds, on a busy machine hundreds.
	floodDelays = 1500 * time.Millisecond
	// floodSpares is the percentage that must be answered within that: a lost message is
	// retransmitted, which takes longer.
	floodSpares = 80
	// floodLoses is the percentage of whose answers Mosquitto may drop each: its queues are full.
	// On a machine that builds meanwhile it drops up to a third of the messages, so one in thirty
	// times three in a row.
	floodLoses = 6
)

// unitFloodDelaysNoOther checks, for the commands of other cars whose units answered during a
// flood, that all but a few were settled in time with the unit's answer, if that was possible; that
// most callers got their answer soon after that of the unit; and that the service counts what it
// dropped by reason. Commands during a stall of the machine are exempt.
func unitFloodDelaysNoOther(chk *checker) {
	for _, flood := range chk.Floods {
		chk.must(flood.Limited > 0, subject{}, "the service counts no dropped messages of the unit")
		var slow []telematics.CommandID
		unheard := map[*Row]time.Duration{} // how long before its deadline the unit answered
		all := 0
		for i := range chk.Commands {
			r := &chk.Commands[i]
			if r.Requested.Before(flood.From) || r.Requested.After(flood.To) || chk.stalled(r) {
				continue
			}
			said := chk.find(r.ID, func(e *simulator.Event) bool {
				return e.Kind == simulator.CommandAnswered && e.Unit == r.Unit && e.Status != telematics.Received
			})
			if said == nil {
				continue
			}
			if all++; chk.answeredAfter(r, said.True) > radioTakes+floodDelays {
				slow = append(slow, r.ID)
			}
			if before := r.Deadline.Sub(said.True); before >= radioTakes+floodDelays && (r.State != said.Status || r.Late) {
				unheard[r] = before
			}
		}
		for r, before := range unheard {
			chk.must(
				len(unheard)*100 <= all*floodLoses, command(r.ID),
				"unit %s answered %v before the deadline, and the command ended %s, late %t, during the flood of another unit",
				r.Unit, before.Round(time.Millisecond), r.State, r.Late,
			)
		}
		chk.must(
			len(slow)*100 <= all*(100-floodSpares), command(slow...),
			"of %d commands that units answered during the flood of another one, the callers of %d were answered more than %v later",
			all, len(slow), radioTakes+floodDelays,
		)
	}
}

// answeredAfter returns how long after a time the caller of a command got its answer; zero if no
// caller waited for it.
func (v *view) answeredAfter(r *Row, said time.Time) time.Duration {
	for _, c := range v.called[r.RequestID] {
		if c.Status != 0 && c.Status != http.StatusAccepted {
			return c.End.Sub(said)
		}
	}
	return 0
}

// stalled reports whether something delayed a command's messages.
func (v *view) stalled(r *Row) bool {
	for _, delayed := range v.Delayed {
		if longestWithout(delayed, r.Requested, r.Deadline) < r.Deadline.Sub(r.Requested) {
			return true
		}
	}
	return false
}

// ClientFlood is a time in which one client sent far more signed changes than its limit allows,
// while Redis had little free memory.
type ClientFlood struct {
	Interval
	Requests, Limited int // made, and refused for the client's rate
	Kept              int // signatures of that client that are stored in Redis and Postgres
	Full              int // writes that Redis refused because it is full
	// Replayed is the answer to a signed change that was replayed after Redis was emptied.
	Replayed telematics.Code
}

// maxSignatures is how many signatures of a client are stored at most.
const maxSignatures = 2000

// clientFloodAffectsNoOther checks that a bounded number of signatures of a client over its limit
// is stored, that they do not fill Redis, and that meanwhile no command of others is refused
// because a server is unavailable; and that a signature is accepted once, even if Redis loses its
// data.
func clientFloodAffectsNoOther(chk *checker) {
	f := chk.ClientFlood
	if f.Requests == 0 {
		return
	}
	about := command()
	chk.must(
		f.Limited > f.Requests/2, about, "of %d requests of one client in %v only %d were over its limit", f.Requests,
		f.To.Sub(f.From).Round(time.Second), f.Limited,
	)
	chk.must(f.Kept <= maxSignatures, about, "%d signatures of the client are stored", f.Kept)
	chk.must(f.Full == 0, about, "Redis was full, and refused %d writes", f.Full)
	chk.must(
		f.Replayed == "agency_signature_replayed", about,
		"a signature that came again after Redis was emptied was answered %q", f.Replayed,
	)
	for i := range chk.Calls {
		if c := &chk.Calls[i]; c.Start.After(f.From) && c.Start.Before(f.To) {
			chk.must(c.Code != telematics.TelematicsUnavailable, called(c), "refused with %s during the flood", c.Code)
		}
	}
}
