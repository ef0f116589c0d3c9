package store

import (
	"fmt"
	"slices"

	"motorpool/telematics"
)

// The tables of commands and of the history have no check constraints: Postgres would read the text of each anew in each statement. What
// they would refuse is refused here. A settlement lets in only states that may follow [LAW-3], and gives a final one its time.

var (
	roles    = []telematics.Role{telematics.Admin, telematics.Client, telematics.System}
	outcomes = []telematics.Outcome{telematics.Undecided, telematics.Executed, telematics.NotExecuted, telematics.HasFailed, telematics.MayHave}
)

// checkCommand says what makes no sense in a command that is to be written down.
func checkCommand(c *telematics.Command) error {
	switch {
	case c.Lane == "" || c.Lane != c.Action.Lane():
		return fmt.Errorf("action %q in lane %q", c.Action, c.Lane)
	case (c.Action == telematics.AttentionSignal) != (c.Attention != nil):
		return fmt.Errorf("parameters of %q: there are: %v", c.Action, c.Attention != nil)
	case !slices.Contains(roles, c.Actor.Role):
		return fmt.Errorf("role %q: want one of %q", c.Actor.Role, roles)
	case c.Deadline.Before(c.Requested):
		return fmt.Errorf("deadline %v before the request %v", c.Deadline, c.Requested)
	}
	return nil
}

// checkLine says what makes no sense in a line of the history.
func checkLine(line *telematics.Activity) error {
	switch {
	case !slices.Contains(roles, line.Actor.Role):
		return fmt.Errorf("role %q: want one of %q", line.Actor.Role, roles)
	case !slices.Contains(outcomes, line.Outcome):
		return fmt.Errorf("outcome %q: want one of %q", line.Outcome, outcomes)
	}
	return nil
}
