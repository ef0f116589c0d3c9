package ovms

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

func TestInquire_OnlyAValueThatIsNewerThanTheCommandConfirms(t *testing.T) {
	const line = "v.e.locked                               "
	leaf := telematics.Installation{TypeKey: "NL", PINKey: "4711"}
	for _, c := range []struct {
		action telematics.Action
		since  time.Duration
		said   string
		want   bool
	}{
		{telematics.Lock, 2 * time.Second, "[00-] " + line + "yes", true},
		{telematics.Lock, 2 * time.Second, "[01-] " + line + "yes\n", true},
		{telematics.Lock, 2 * time.Second, "[02-] " + line + "yes", false},
		{telematics.Lock, 2999 * time.Millisecond, "[02-] " + line + "yes", false},
		{telematics.Lock, 3 * time.Second, "[02-] " + line + "yes", true},
		{telematics.Lock, 9 * time.Second, "[01S] " + line + "yes", false},
		{telematics.Lock, 9 * time.Second, "[99-] " + line + "yes", false},
		{telematics.Lock, 9 * time.Second, "[00-] " + line + "no", false},
		{telematics.Unlock, 9 * time.Second, "[00-] " + line + "no", true},
		{telematics.Unlock, 9 * time.Second, "[00-] " + line + "yes", false},
		{telematics.Lock, 9 * time.Second, "[---] v.e.locked", false},
		{telematics.Lock, 9 * time.Second, "Unrecognised command", false},
		{telematics.Lock, 9 * time.Second, "[00-] xv.e.locked yes", false},
		{telematics.Lock, 9 * time.Second, "", false},
	} {
		command := &telematics.Command{ID: uuid.New(), Unit: "OV-1", Action: c.action, Installation: leaf}
		out, ok := Dialect{}.Inquire(command, c.since)
		if !ok || out.QoS != 0 || strings.Contains(string(out.Payload), "4711") {
			t.Fatalf("%s after %v: %+v, %t; want an inquiry without the PIN", c.action, c.since, out, ok)
		}
		_, id, _ := strings.Cut(out.Topic, commands)
		a, _, err := Dialect{}.DecodeAnswer(
			telematics.Message{Dialect: Dialect{}, Unit: "OV-1", Subject: responses + id, Payload: []byte(c.said)},
			received,
		)
		if confirmed := err == nil && a.Command == command.ID && a.State == telematics.Succeeded &&
			a.At.Equal(received); confirmed != c.want ||
			!c.want && !errors.Is(err, telematics.ErrOtherKind) {
			t.Errorf("%s after %v, %q: %+v, %v; want confirmed %t", c.action, c.since, c.said, a, err, c.want)
		}
	}
}

func TestInquire_ThereIsNoneWhereNothingConfirms(t *testing.T) {
	for name, c := range map[string]struct {
		installation telematics.Installation
		action       telematics.Action
		since        time.Duration
	}{
		"the module sets the value itself": {telematics.Installation{TypeKey: "RZ", PINKey: "4711"}, telematics.Lock, time.Minute},
		"half of it does":                  {telematics.Installation{TypeKey: "SQ", PINKey: "4711"}, telematics.Lock, time.Minute},
		"the answer is enough":             {telematics.Installation{TypeKey: "NL", PINKey: "4711"}, telematics.ReportState, time.Minute},
		"too soon": {
			telematics.Installation{TypeKey: "NL", PINKey: "4711"}, telematics.Lock, 999 * time.Millisecond,
		},
	} {
		if out, ok := (Dialect{}).Inquire(&telematics.Command{Unit: "OV-1", Action: c.action, Installation: c.installation}, c.since); ok {
			t.Errorf("%s: %s", name, out.Payload)
		}
	}
}
