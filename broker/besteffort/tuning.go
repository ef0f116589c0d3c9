package besteffort

import "time"

// Each constant: its value and unit, where the value comes from, and what breaks at half and at
// double.

const (
	// InquireEvery is the interval of inquiries for what confirms a command, once that is accepted;
	// a choice. Half: a module that counts whole seconds cannot show yet that its value is newer
	// than the command. Double: a lock of a locked car takes 4 s, and in a budget of 10 s there are
	// two inquiries.
	InquireEvery = 2 * time.Second

	// Point in a second at which commands are published that are confirmed by reports with times in
	// whole seconds: no vehicle executes one within the rest of the second. 0.8 s: execution within
	// 0.2 s is not confirmed. 0.95 s: on a busy machine more commands miss the end of a second, and
	// wait for the next.
	endOfSecond = 900 * time.Millisecond
	// Interval in which the state of a vehicle is read for a command that it confirms by a report;
	// a choice. Half: twice the reads. Double: callers wait up to half a second longer.
	confirmEvery = 500 * time.Millisecond
	// ConcludeEvery is the interval in which a batch of unconfirmed commands is checked; a choice.
	// Half: twice the statements, mostly for none. Double: clients learn the outcome 2 s later.
	ConcludeEvery = 2 * time.Second
	// Commands of a batch, whose vehicles are read concurrently; a choice. Half: after an outage of
	// units it takes longer until each had its turn. Double: it takes more connections to Postgres.
	concludeBatchSize = 32
	// Time after its deadline in which a command can be concluded: a parked vehicle reports every 5
	// minutes. Half: that may be too late. Double: what a person has done is taken for the command.
	concludeWithin = 10 * time.Minute
	// Answered commands that an answer without a command id is compared with: of a unit that
	// answers in 3 s, those of the time in which an answer can come late (telematics.AnswerWithin).
	// Half: an answer that more commands overtook is taken for that of a later one. Double: more is
	// read for each such answer.
	answersCompared = 32
)
