package audit

import "motorpool/telematics"

// answersAreTrue checks every HTTP answer, including replayed ones:
//
//   - executed: it names its command, of the requested vehicle and action; the command's state is
//     succeeded; and it started and ended successfully in its car before the answer came.
//   - not_executed: its command never starts, before or after. Without a command in the answer,
//     no command of the call ever starts. (command_in_progress and idempotency_in_progress name the
//     command of another call.)
//   - failed: its command did not end successfully in any car.
//   - unknown: nothing; see unknownSettles.
//
// A call without an answer is not checked.
func answersAreTrue(chk *checker) {
	for i := range chk.Calls {
		c := &chk.Calls[i]
		if c.Status == 0 {
			continue
		}
		switch c.Outcome {
		case telematics.Executed:
			chk.executed(c)
		case telematics.NotExecuted:
			chk.notExecuted(c)
		case telematics.HasFailed:
			chk.must(chk.succeeded(c.ownCommand()) == nil, called(c), "the answer is failed, but the car executed it")
		}
	}
}

func (chk *checker) executed(c *Call) {
	row := chk.rows[c.Command]
	chk.must(row != nil && row.Vehicle == c.Vehicle && row.Action == c.Action && row.State == telematics.Succeeded, called(c),
		"the answer is executed, but the record does not say that %s succeeded at vehicle %d", c.Action, c.Vehicle)
	if row == nil {
		return
	}
	started, ended := chk.started(row.ID), chk.succeeded(row.ID)
	chk.must(started != nil && ended != nil && started.Unit == row.Unit && ended.Unit == row.Unit, called(c),
		"the answer is executed, but no car executed it")
	if ended != nil {
		chk.must(!ended.True.After(c.End.Add(clockReading)), called(c), "the answer is executed before the car had executed it")
	}
}

func (chk *checker) notExecuted(c *Call) {
	if id := c.ownCommand(); id != telematics.NoCommand {
		chk.must(chk.started(id) == nil, called(c), "the answer is not_executed, but the car started")
		return
	}
	about := request(c.RequestID)
	for _, r := range chk.madeBy(c) {
		if chk.started(r.ID) != nil {
			about.commands = append(about.commands, r.ID)
		}
	}
	chk.must(len(about.commands) == 0, about, "the answer is not_executed, but a command of the call started")
}
