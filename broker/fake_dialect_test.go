package broker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
	"motorpool/telematics/dialects"
	"motorpool/telematics/dialecttest"
)

// morse is a dialect of these tests only, as different from protocol v1 as units in the field are:
// topics that begin with the user's name, one retained value per topic, commands as text without
// signature and expiry, and a unit that does not remember what it executed.
//
//	morse/{unit}/{unit}/metric/{name}    from the unit, retained: "yes", "no", or a number
//	morse/{unit}/{unit}/connected        from the unit, retained, and its last will: "yes" or "no"
//	morse/{unit}/{unit}/command/{id}     to the unit: "lock" or "unlock"
//	morse/{unit}/{unit}/response/{id}    from the unit: "done", or an error
type morse struct{}

const morseRoot = "morse/"

var spoken = append(telematics.Dialects{morse{}, flag{}}, dialects.Spoken...)

func (morse) Protocol() telematics.Protocol       { return "morse" }
func (morse) Filters() telematics.Filters         { return morseFilters }
func (morse) PresenceOf(u telematics.Unit) string { return morseTopic(u) + "connected" }
func (morse) Promises(telematics.Installation, telematics.Action) telematics.Promises {
	return telematics.Promises{Correlated: true, Confirmed: true}
}

func (morse) Confirmation(telematics.Installation, telematics.Action) map[telematics.Field]any {
	return nil
}

func (morse) Actions(i telematics.Installation) ([]telematics.Action, error) {
	if len(i) > 0 {
		return nil, errors.New("morse has no settings")
	}
	return morseActions, nil
}

func morseTopic(u telematics.Unit) string    { return morseRoot + string(u) + "/" + string(u) + "/" }
func morseValue(m telematics.Message) string { return string(m.Payload) }

var (
	morseActions = []telematics.Action{telematics.Lock, telematics.Unlock}
	morseFilters = telematics.Filters{
		Answers: "morse/+/+/response/+", Reports: []string{"morse/+/+/metric/+"}, Presence: "morse/+/+/connected",
	}
	morseFields = map[string]telematics.Field{
		"metric/locked": telematics.IsLocked, "metric/speed": telematics.SpeedKmh, "metric/soc": telematics.Battery,
	}
)

var errTopic = errors.New("the topic is not of a unit")

func (morse) ParseTopic(topic string) (telematics.Unit, string, error) {
	rest, ok := strings.CutPrefix(topic, morseRoot)
	user, rest, _ := strings.Cut(rest, "/")
	serial, subject, cut := strings.Cut(rest, "/")
	if !ok || !cut || user != serial { // the access rules bind the user
		return "", "", errTopic
	}
	u, err := telematics.ParseUnit(serial)
	return u, subject, err
}

var errTooLong = errors.New("too long")

func (morse) DecodeAnswer(m telematics.Message, received time.Time) (telematics.Answer, []telematics.Dropped, error) {
	id, err := uuid.Parse(strings.TrimPrefix(m.Subject, "response/"))
	if err != nil || len(m.Payload) > telematics.MaxMessage {
		return telematics.Answer{}, nil, errors.Join(err, errTooLong)
	}
	a := telematics.Answer{Command: id, State: telematics.Succeeded, At: received}
	if morseValue(m) != "done" {
		a.State, a.Detail = telematics.Failed, morseValue(m)
	}
	return a, nil, nil
}

func (morse) DecodeReport(m telematics.Message, received time.Time) (telematics.Report, []telematics.Dropped, error) {
	if len(m.Payload) > telematics.MaxMessage {
		return telematics.Report{}, nil, errTooLong
	}
	r := telematics.Report{At: received, Undated: true}
	field, known := morseFields[m.Subject]
	if !known {
		return r, nil, nil
	}
	raw := strings.NewReplacer("yes", "true", "no", "false").Replace(morseValue(m))
	v, err := telematics.ParseValue(field, json.RawMessage(raw))
	if err != nil {
		return r, []telematics.Dropped{{Field: m.Subject, Reason: err.Error()}}, nil
	}
	r.Values = map[telematics.Field]any{field: v}
	return r, nil, nil
}

func (morse) DecodePresence(m telematics.Message, _ time.Time) (telematics.Presence, error) {
	switch morseValue(m) {
	case "yes":
		return telematics.Presence{Status: telematics.Online}, nil
	case "no":
		return telematics.Presence{Status: telematics.Offline}, nil
	}
	return telematics.Presence{}, errors.New("neither yes nor no")
}

func (morse) Encode(c *telematics.Command, _ telematics.Signer) (telematics.Transmission, error) {
	return telematics.Transmission{
		Topic: morseTopic(c.Unit) + "command/" + c.ID.String(), Payload: []byte(c.Action),
		LeaveBefore: c.Requested.Add(time.Second),
	}, nil
}

func TestMorse_KeepsTheContractOfDialects(t *testing.T) {
	dialecttest.Contract(t, morse{}, dialecttest.Samples{
		Unit:     van,
		Answer:   dialecttest.Line{Topic: morseTopic(van) + "response/" + uuid.NewString(), Payload: "done"},
		Report:   dialecttest.Line{Topic: morseTopic(van) + "metric/soc", Payload: "81.5"},
		Presence: dialecttest.Line{Topic: morseTopic(van) + "connected", Payload: "yes"},
	})
}
