package broker_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/dialecttest"
)

// flag is a dialect of these tests only, with less than any of the product: no signature, no expiry
// and no presence, and answers name no command and share their topic with reports. The installation
// determines whether a report confirms a command.
//
//	flag/{unit}/data    from the unit: "answer done", "answer taken", "answer no", each with the action, or none;
//	                    or "locked yes", "locked no",
//	                    and with the unit's time, in whole seconds, "locked yes 1767348000"
//	flag/{unit}/do      to the unit: an action, and the command, which it ignores
type flag struct{}

const flagRoot = "flag/"

var (
	errTopic   = errors.New("the topic is not of a unit")
	errTooLong = errors.New("too long")
)

// withClock is an installation in which the unit dates its reports.
var withClock = telematics.Installation{"contact": "dated"}

// withContact is an installation in which the lock reports its position.
var withContact = telematics.Installation{"contact": "yes"}

func (flag) Protocol() telematics.Protocol     { return "flag" }
func (flag) PresenceOf(telematics.Unit) string { return "" }
func (flag) Filters() telematics.Filters {
	return telematics.Filters{Answers: flagRoot + "+/data", Reports: []string{flagRoot + "+/data"}}
}

func (flag) Actions(i telematics.Installation) ([]telematics.Action, error) {
	if len(i) > 0 && i["contact"] == "" {
		return nil, errors.New("flag knows only a contact")
	}
	return []telematics.Action{telematics.Lock, telematics.Unlock, telematics.AttentionSignal, telematics.ReportState}, nil
}

func (d flag) Promises(i telematics.Installation, a telematics.Action) telematics.Promises {
	return telematics.Promises{Confirmed: len(d.Confirmation(i, a)) > 0}
}

func (flag) Confirmation(i telematics.Installation, a telematics.Action) map[telematics.Field]any {
	if i["contact"] == "" || a != telematics.Lock && a != telematics.Unlock {
		return nil
	}
	return map[telematics.Field]any{telematics.IsLocked: a == telematics.Lock}
}

func (flag) ParseTopic(topic string) (telematics.Unit, string, error) {
	rest, ok := strings.CutPrefix(topic, flagRoot)
	serial, subject, cut := strings.Cut(rest, "/")
	if !ok || !cut {
		return "", "", errTopic
	}
	u, err := telematics.ParseUnit(serial)
	return u, subject, err
}

func (flag) DecodeAnswer(m telematics.Message, received time.Time) (telematics.Answer, []telematics.Dropped, error) {
	if len(m.Payload) > telematics.MaxMessage {
		return telematics.Answer{}, nil, errTooLong
	}
	said, ok := strings.CutPrefix(string(m.Payload), "answer ")
	if !ok {
		return telematics.Answer{}, nil, telematics.ErrOtherKind
	}
	a := telematics.Answer{State: telematics.Failed, At: received, Detail: said}
	switch word, _, _ := strings.Cut(said, " "); word {
	case "done":
		a.State = telematics.Succeeded
	case "taken":
		a.State = telematics.Received
	case "refused":
		a.State, a.Reason = telematics.Rejected, telematics.Unsupported
	}
	return a, nil, nil
}

func (d flag) Recognise(i telematics.Installation, c *telematics.Command, a telematics.Answer) (telematics.State, bool) {
	_, last, _ := strings.Cut(a.Detail, " ")
	actions, _ := d.Actions(i)
	return a.State, last == string(c.Action) || !slices.Contains(actions, telematics.Action(last))
}

func (flag) DecodeReport(m telematics.Message, received time.Time) (telematics.Report, []telematics.Dropped, error) {
	if len(m.Payload) > telematics.MaxMessage {
		return telematics.Report{}, nil, errTooLong
	}
	if strings.HasPrefix(string(m.Payload), "answer ") {
		return telematics.Report{}, nil, telematics.ErrOtherKind
	}
	r := telematics.Report{At: received, Undated: true}
	said := string(m.Payload)
	if what, seconds, dated := cutLast(said); dated {
		said, r.At, r.Undated = what, time.Unix(seconds, 0).UTC(), false
	}
	switch {
	case said == "locked yes", said == "locked no":
		r.Values = map[telematics.Field]any{telematics.IsLocked: said == "locked yes"}
	case strings.HasPrefix(said, "alarm "):
		r.Alarms = []telematics.Alarm{{Kind: strings.TrimPrefix(said, "alarm "), Text: "The vehicle is towed."}}
	}
	return r, nil, nil
}

func (flag) DecodePresence(telematics.Message, time.Time) (telematics.Presence, error) {
	return telematics.Presence{}, telematics.ErrOtherKind
}

// cutLast splits the time from the end of a payload.
func cutLast(said string) (what string, seconds int64, ok bool) {
	at := strings.LastIndex(said, " ")
	if at < 0 {
		return said, 0, false
	}
	seconds, err := strconv.ParseInt(said[at+1:], 10, 64)
	return said[:at], seconds, err == nil
}

func (d flag) Encode(c *telematics.Command, _ telematics.Signer) (telematics.Transmission, error) {
	out := telematics.Transmission{
		Topic: flagRoot + string(c.Unit) + "/do", Payload: []byte(string(c.Action) + " " + c.ID.String()),
		LeaveBefore: c.Requested.Add(3 * time.Second),
	}
	if expires := c.Expires(); out.LeaveBefore.After(expires) {
		out.LeaveBefore = expires
	}
	out.EndOfSecond = c.Installation["contact"] == withClock["contact"] && len(d.Confirmation(c.Installation, c.Action)) > 0
	return out, nil
}

func TestFlag_KeepsTheContractOfDialects(t *testing.T) {
	for _, installed := range []telematics.Installation{nil, withContact, withClock} {
		dialecttest.Contract(t, flag{}, dialecttest.Samples{
			Unit: truck, Installation: installed,
			Answer: dialecttest.Line{Topic: flagRoot + string(truck) + "/data", Payload: "answer done"},
			Report: dialecttest.Line{Topic: flagRoot + string(truck) + "/data", Payload: "locked yes"},
		})
	}
}
