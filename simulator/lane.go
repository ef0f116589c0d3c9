package simulator

import (
	"slices"

	"motorpool/telematics"
)

// job is an accepted command in its lane.
type job struct {
	claims telematics.Claims
	steps  []step
	now    int  // index of the present step
	broken bool // nothing moves
	stuck  bool // the part of the present step did not move
}

// begin starts the first command of a lane. Waiting may have taken long: expiry and the car's state
// are checked again right before anything moves [CMD-8] [CMD-7].
func (t *turn) begin(lane telematics.Lane) {
	for len(t.lanes[lane]) > 0 {
		j := t.lanes[lane][0]
		if reason, detail := t.overtaken(j.claims); reason != "" {
			t.leave(j)
			t.reject(j.claims, reason, detail)
			continue
		}
		t.note(CommandStarted, j.claims, telematics.Answer{})
		j.broken = j.steps[0].part != "" && t.faults.Fail.strikes(t.rng)
		t.move(j)
		return
	}
}

// move makes the movement of the present step. The part moves immediately; the rest of the step is
// the wait for its confirmation.
func (t *turn) move(j *job) {
	s := j.steps[j.now]
	j.stuck = j.broken || slices.Contains(t.faults.Jammed, s.part)
	if !j.stuck {
		t.body.do(s.action)
		t.watch()
	}
	t.Waits = append(t.Waits, Wait{Lane: j.claims.Lane, For: s.takes})
}

// Continue continues the present command of a lane, after its Wait.
func (u *Unit) Continue(at Moment, lane telematics.Lane) Effects {
	t := turn{Unit: u, at: at}
	t.goOn(u.lanes[lane][0])
	return t.Effects
}

func (t *turn) goOn(j *job) {
	if j.stuck {
		t.fail(j, string(j.steps[j.now].part)+"_fault")
		return
	}
	j.now++
	if j.now == len(j.steps) {
		t.succeed(j)
		return
	}
	if detail := t.body.forbids(j.steps[j.now].action); detail != "" {
		t.fail(j, detail)
		return
	}
	t.move(j)
}

func (t *turn) succeed(j *job) {
	detail := ""
	if j.claims.Action.Immobilizes() && t.body.Immobilizer == Armed {
		detail = string(Armed)
	}
	t.end(j, telematics.Answer{State: telematics.Succeeded, Detail: detail})
}

// fail answers that the command failed, with the detail, or with the half that was done [CMD-6].
func (t *turn) fail(j *job, detail string) {
	if j.now > 0 {
		detail = string(j.steps[j.now-1].action)
	}
	t.end(j, telematics.Answer{State: telematics.Failed, Detail: detail})
}

// end answers with the present state [ACK-2], and begins the next command of the lane.
func (t *turn) end(j *job, a telematics.Answer) {
	report := t.body.Report(t.at.Clock)
	if j.claims.Action != telematics.ReportState {
		report = selectFields(report, changes(j.claims.Action))
	}
	a.Report = &report
	t.leave(j)
	t.note(CommandEnded, j.claims, a)
	t.settle(j.claims, a)
	t.begin(j.claims.Lane)
}

func (t *turn) leave(j *job) {
	lane := j.claims.Lane
	t.lanes[lane] = t.lanes[lane][1:]
}
