package ovms

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// inquiry is the line for the module's shell that prints v.e.locked with its age
// (ovms_metrics.cpp: metrics_list).
const inquiry = "metrics list -s v.e.locked"

// lockLine is what inquiry prints: the seconds since the vehicle reported the value, at most 99; S,
// if the module counts it as stale; and the value.
var lockLine = regexp.MustCompile(`^\[([0-9]{2})([-S])\]\s+v\.e\.locked\s+(yes|no)$`)

// Inquire implements telematics.Inquirer. The id of the answer has what confirms the command: the
// value, and the age that it has at most. The module rounds ages down, so a second is taken off.
func (d Dialect) Inquire(c *telematics.Command, since time.Duration) (telematics.Transmission, bool) {
	locked, ok := d.Confirmation(c.Installation, c.Action)[telematics.IsLocked].(bool)
	oldest := int(since/time.Second) - 1
	if !ok || oldest < 0 {
		return telematics.Transmission{}, false
	}
	value := no
	if locked {
		value = yes
	}
	id := fmt.Sprintf("%s.%s.%d", c.ID, value, oldest)
	return telematics.Transmission{Topic: topic(c.Unit, commands+id), Payload: []byte(inquiry)}, true
}

// decodeInquiry returns the answer to an inquiry with an id of Inquire. What confirms nothing is
// ErrOtherKind.
func decodeInquiry(id, text string) (telematics.Answer, error) {
	parts := strings.Split(id, ".")
	if len(parts) != 3 {
		return telematics.Answer{}, fmt.Errorf("%.64q is no id of a response", id)
	}
	command, err := uuid.Parse(parts[0])
	if err != nil {
		return telematics.Answer{}, err
	}
	oldest, err := strconv.Atoi(parts[2])
	said := lockLine.FindStringSubmatch(text)
	if err != nil || said == nil {
		return telematics.Answer{}, telematics.ErrOtherKind
	}
	if age, _ := strconv.Atoi(said[1]); age > oldest || said[2] != "-" || said[3] != parts[1] {
		return telematics.Answer{}, telematics.ErrOtherKind
	}
	return telematics.Answer{Command: command, State: telematics.Succeeded}, nil
}
