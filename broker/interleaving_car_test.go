package broker_test

import (
	"sync"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// motorcar is a vehicle whose unit follows the protocol.
type motorcar struct {
	*interleaving
	id   telematics.VehicleID
	unit telematics.Unit
	skew time.Duration // of its clock, against the true time
	dice *dice

	mu    sync.Mutex
	off   bool
	life  int // counts restarts: a restart ends the jobs that were running
	seen  map[telematics.CommandID]*job
	jobs  []*job // in the order of their arrival
	last  map[telematics.Lane]int64
	queue map[telematics.Lane][]*job // the first is running
}

// job is a command as its unit remembers it, and what the unit did for it.
type job struct {
	telematics.Claims
	final  *telematics.Answer
	starts []time.Time // true times at which the execution began
	done   bool        // it was executed successfully
}

func (m *motorcar) now() time.Time { return time.Now().Add(m.skew) }

// receive handles a command [CMD-4] [CMD-5].
func (m *motorcar) receive(c telematics.Claims) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		m.count("messages to a car without power")
		return
	}
	j := m.seen[c.Command]
	if !m.mended.Load() && m.dice.chance(m.faultRates.damaged) {
		m.count("commands damaged")
		if j == nil { // an unverified command is not remembered [CMD-4]
			m.note("car %d cannot verify %v", m.id, c.Command)
			m.sendAnswer(telematics.Answer{Command: c.Command, State: telematics.Rejected, Reason: telematics.BadSignature, At: m.now()})
		}
		return
	}
	if j != nil {
		m.count("commands received again")
		m.answer(j)
		return
	}
	j = &job{Claims: c}
	m.seen[c.Command], m.jobs = j, append(m.jobs, j)
	now := m.now()
	switch {
	case !now.Before(c.Expires):
		m.end(j, telematics.Rejected, telematics.TooLate)
	case c.Seq <= m.last[c.Lane]:
		m.end(j, telematics.Rejected, telematics.OutOfOrder)
	case m.dice.chance(0.1):
		m.last[c.Lane] = c.Seq
		m.end(j, telematics.Rejected, telematics.StateConflict)
	default:
		m.last[c.Lane] = c.Seq
		m.queue[c.Lane] = append(m.queue[c.Lane], j)
		m.answer(j)
		if len(m.queue[c.Lane]) == 1 { // [CMD-8]
			m.begin(j)
		}
	}
}

// begin executes a command, after a second check of the expiry. m.mu is held.
func (m *motorcar) begin(j *job) {
	if !m.now().Before(j.Expires) {
		m.end(j, telematics.Rejected, telematics.TooLate)
		m.next(j.Lane)
		return
	}
	life := m.life
	m.calls.Go(func() {
		time.Sleep(m.dice.within(0, 200*time.Millisecond)) // the unit stores the command first
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.life != life {
			return
		}
		if !m.now().Before(j.Expires) {
			m.end(j, telematics.Rejected, telematics.TooLate)
			m.next(j.Lane)
			return
		}
		j.starts = append(j.starts, time.Now())
		m.count("executions")
		m.note("car %d begins %v", m.id, j.Command)
		took := m.dice.within(50*time.Millisecond, 4*time.Second)
		if m.dice.chance(0.1) {
			took *= 4
		}
		m.calls.Go(func() { m.finish(j, life, took) })
	})
}

func (m *motorcar) finish(j *job, life int, took time.Duration) {
	time.Sleep(took)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != life {
		return
	}
	if m.dice.chance(0.1) {
		m.end(j, telematics.Failed, "")
	} else {
		j.done = true
		m.end(j, telematics.Succeeded, "")
	}
	m.next(j.Lane)
}

// next begins the next command of a lane. m.mu is held.
func (m *motorcar) next(lane telematics.Lane) {
	m.queue[lane] = m.queue[lane][1:]
	if len(m.queue[lane]) > 0 {
		m.begin(m.queue[lane][0])
	}
}

func (m *motorcar) end(j *job, state telematics.State, reason string) {
	m.note("car %d ends %v: %s %s", m.id, j.Command, state, reason)
	j.final = &telematics.Answer{Command: j.Command, State: state, Reason: reason, At: m.now()}
	m.answer(j)
}

// answer sends the current state of a command.
func (m *motorcar) answer(j *job) {
	answer := telematics.Answer{Command: j.Command, State: telematics.Received, At: m.now()}
	if j.final != nil {
		answer = *j.final
	} else if m.dice.chance(0.3) { // received is optional [ACK-1]
		return
	}
	m.sendAnswer(answer)
}

func (m *motorcar) sendAnswer(answer telematics.Answer) {
	m.count("answers")
	message := v1.EncodeAnswer(answer)
	m.transmit(func() {
		m.deliverTo(m.unit, func(b *broker.Broker) { b.Answer(brokertest.Said(m.unit, message, false)) })
	})
}

// contradict makes the car report a result for commands that it has rejected, against the protocol.
func (m *motorcar) contradict() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if j.final == nil || j.final.State != telematics.Rejected {
			continue
		}
		m.anomaly(j.Command)
		m.count("rejections contradicted")
		if m.dice.chance(0.5) {
			j.done = true
			m.end(j, telematics.Succeeded, "")
		} else {
			m.end(j, telematics.Failed, "")
		}
	}
}

// restart simulates a loss of power: unfinished commands have failed [CMD-5].
func (m *motorcar) restart(off time.Duration) {
	m.mu.Lock()
	m.off, m.life = true, m.life+1
	life := m.life
	m.note("car %d loses its power", m.id)
	m.mu.Unlock()
	time.Sleep(off)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != life {
		return // it lost power again
	}
	m.off = false
	clear(m.queue)
	for _, j := range m.jobs {
		if j.final == nil {
			m.end(j, telematics.Failed, telematics.Interrupted)
		}
	}
}

// report is a report with the last results [TEL-3].
func (m *motorcar) report() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := telematics.Report{At: m.now(), Values: map[telematics.Field]any{telematics.IsLocked: true}}
	for _, j := range m.remembered() {
		r.Answers = append(r.Answers, *j.final)
	}
	return v1.EncodeReport(r)
}

// remembered returns the last eight finished commands. m.mu is held.
func (m *motorcar) remembered() []*job {
	var finished []*job
	for _, j := range m.jobs {
		if j.final != nil {
			finished = append(finished, j)
		}
	}
	return finished[max(0, len(finished)-8):]
}

// reports sends reports at random intervals until a time.
func (m *motorcar) reports(until time.Time) {
	for time.Now().Before(until) {
		time.Sleep(m.dice.within(2*time.Second, 20*time.Second))
		m.mu.Lock()
		off := m.off
		m.mu.Unlock()
		if !off {
			message := m.report()
			m.transmit(func() {
				m.deliverTo(m.unit, func(b *broker.Broker) { b.Report(brokertest.Said(m.unit, message, false)) })
			})
		}
	}
}
