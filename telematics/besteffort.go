package telematics

import "time"

// BestEffort is what holds only of a command to a unit that does less than one of protocol v1. Of
// the others it is zero.
type BestEffort struct {
	// Latest arrival of an answer that names no command; zero: it has come, or answers name theirs.
	AnswerBy time.Time
	// It succeeds when a report shows its effect: the unit answers only that it accepted it.
	ByReport bool
	// No report can show that: the vehicle had reported the values before, or never the fields.
	ReportedBefore bool
	// Its outcome was unknown, and a later report shows that it was not executed.
	Contradicted bool
}

// Confirmable reports whether a report can show that the command was executed.
func (e BestEffort) Confirmable() bool { return e.ByReport && !e.ReportedBefore }

// WorstLateness is how long after its publication a command can still reach a unit that checks no
// expiry: the MQTT broker notices a dead connection after 1.5 x keep-alive, of which at most 60 s
// are allowed [TOP-2].
const WorstLateness = 90 * time.Second

// AnswerWithin is how long after the deadline of a command its answer may come where answers name
// no command: WorstLateness, plus the unit's processing time and the difference of the clocks.
const AnswerWithin = WorstLateness + 10*time.Second

// RepeatedWithin is how long after an answer a duplicate of it can arrive and be taken for the
// answer to a newer command: the unit repeats it when it reconnects (QoS 1), and a unit that was
// silent for longer gets no command.
const RepeatedWithin = OnlineFor + WorstLateness

// AcceptedByUnit is Motorpool's detail of a command with an unknown outcome: the unit answered that
// it accepted the command, and no report has confirmed it.
const AcceptedByUnit = "accepted by the unit"

// actuatorTime is how long a vehicle may take until it reports what a command has changed.
const actuatorTime = 20 * time.Second

// DoneBy returns the latest time by which a vehicle that executed the command reports its effect.
func (c *Command) DoneBy() time.Time {
	if !c.ReceivedAt.IsZero() {
		return c.ReceivedAt.Add(actuatorTime)
	}
	return c.SentAt.Add(WorstLateness + actuatorTime)
}

// Recogniser is a dialect whose answers name no command, but hold details that rule out some.
// Without it an answer can belong to any command.
type Recogniser interface {
	// Recognise reports whether an answer can belong to a command, given the unit's installation,
	// and returns the state that it means for that command: that of the answer, or Received where
	// it does not show that this command was executed.
	Recognise(Installation, *Command, Answer) (State, bool)
}

// Inquirer is a dialect whose units can be asked for what confirms a command.
type Inquirer interface {
	// Inquire returns a message that asks the unit whether its vehicle has reported, within the
	// time since the command was published, the values that confirm the command. If it has, the
	// answer names the command, and is Succeeded; all other answers are ErrOtherKind. It changes
	// nothing at the unit, so it may be sent again. False: there is none.
	Inquire(c *Command, since time.Duration) (Transmission, bool)
}
