package plain

import (
	"time"

	"motorpool/lab/chaos/verdict"
	"motorpool/simulator"
	"motorpool/telematics"
)

type (
	law  = verdict.Law[*evidence]
	must = func(holds bool, what string, args ...any)
)

func newLaw(name string, check func(*evidence, must)) law { return law{Name: name, Check: check} }

// The laws of a rolling restart.
var (
	noFailure = newLaw("a command is answered as executed, whatever is restarted", func(e *evidence, must must) {
		for _, c := range e.calls {
			must(c.answer == executed, "after %v: %s %s", c.took.Round(time.Millisecond), c.answer, c.reason)
		}
	})
	answeredOnce = newLaw("a command that is answered as executed was executed once", func(e *evidence, must must) {
		for _, c := range e.calls {
			if c.answer == executed {
				must(e.ended[c.command] == 1, "%s was executed %d times", c.command, e.ended[c.command])
			}
		}
	})
	noOther = newLaw("no vehicle executes a command without an answer to its caller", func(e *evidence, must must) {
		answered := map[telematics.CommandID]bool{}
		for _, c := range e.calls {
			answered[c.command] = answered[c.command] || c.answer == executed
		}
		for id := range e.ended {
			must(answered[id], "%s was executed, and no caller was answered so", id)
		}
	})
)

// The laws of shards.
var (
	notLate = newLaw("no command starts after its expiry", func(e *evidence, must must) {
		for _, event := range e.events {
			if event.Kind == simulator.CommandStarted {
				late := event.True.Sub(event.Expires)
				must(late <= 0, "%s started %s %v after its expiry", event.Unit, event.Command, late)
			}
		}
	})
	startedOnce = newLaw("no command starts more than once", func(e *evidence, must must) {
		for id, n := range e.started {
			must(n == 1, "%s started %d times", id, n)
		}
	})
	recorded = newLaw("an executed command is on record as succeeded", func(e *evidence, must must) {
		for id := range e.ended {
			must(e.states[id] == telematics.Succeeded, "%s was executed, and is %q on record", id, e.states[id])
		}
	})
	truth = newLaw("an answer to a caller is true", func(e *evidence, must must) {
		for _, c := range e.calls {
			switch c.outcome {
			case telematics.Executed:
				must(e.ended[c.command] > 0, "%s was answered with %s, and not executed", c.command, c.answer)
			case telematics.NotExecuted: // one that is refused because another is open names that
				must(e.started[c.command] == 0 || c.answer == inProgress, "%s was answered with %s, and executed", c.command, c.answer)
			}
		}
	})
	undamaged = newLaw("a command to a unit of another shard is executed", func(e *evidence, must must) {
		for _, c := range e.calls {
			if unit := unitOf(c.vehicle); !e.moved[unit] {
				must(c.answer == executed, "%s, after %v: %s", unit, c.took.Round(time.Millisecond), c.answer)
			}
		}
	})
)

// inProgress is the answer to a command that was refused because another one is open.
const inProgress = "409 " + string(telematics.CommandInProgress)

// The laws of a failover that loses commits.
var (
	inOrder = newLaw("no vehicle refuses a command as out of order", func(e *evidence, must must) {
		refused := map[telematics.CommandID]bool{}
		for _, event := range e.events {
			if event.Kind == simulator.CommandAnswered && event.Status != telematics.Received && !refused[event.Command] {
				is := event.Status == telematics.Rejected && event.Reason == telematics.OutOfOrder
				refused[event.Command] = is
				must(!is, "%s refused %s, number %d in lane %s", event.Unit, event.Command, event.Seq, event.Lane)
			}
		}
	})
	grows = newLaw("sequence numbers of a vehicle's commands grow", func(e *evidence, must must) {
		type lane struct {
			unit telematics.Unit
			lane telematics.Lane
		}
		last := map[lane]int64{}
		for _, event := range e.events {
			if event.Kind == simulator.CommandStarted {
				in := lane{event.Unit, event.Lane}
				must(event.Seq > last[in], "%s started %d after %d", event.Unit, event.Seq, last[in])
				last[in] = event.Seq
			}
		}
	})
	notForgotten = newLaw("an executed command, or its answer, is on record", func(e *evidence, must must) {
		for id := range e.ended {
			must(e.states[id] != "" || e.unrecorded[id], "command %s was executed, and neither it nor its answer is on record", id)
		}
	})
	loggedOnce = newLaw("a stored answer to a lost command has one entry in the audit log", func(e *evidence, must must) {
		for id := range e.unrecorded {
			must(
				e.entries[id] == 1 && e.states[id] == "", "the answer to %s has %d entries; the command is on record: %v", id,
				e.entries[id], e.states[id] != "",
			)
		}
	})
)
