package ovms

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/dialecttest"
)

var (
	received = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	leaf     = telematics.Installation{TypeKey: "NL", PINKey: "4711"}
)

const command = "3f0c6a0e-9b7d-4c3c-8a1b-2e4d6f708192"

func TestOVMS_KeepsTheContractOfDialects(t *testing.T) {
	for _, installation := range []telematics.Installation{
		leaf, {TypeKey: "RZ", PINKey: "4711"}, {TypeKey: "SQ", PINKey: "4711"}, {TypeKey: Twizy}, nil,
	} {
		t.Run(installation[TypeKey], func(t *testing.T) {
			dialecttest.Contract(t, Dialect{}, dialecttest.Samples{
				Unit: "OV-1", Installation: installation,
				Answer:   dialecttest.Line{Topic: "ovms/OV-1/OV-1/client/motorpool/response/" + command, Payload: "Vehicle locked\n"},
				Report:   dialecttest.Line{Topic: "ovms/OV-1/OV-1/metric/v/b/soc", Payload: "63.5"},
				Presence: dialecttest.Line{Topic: "ovms/OV-1/OV-1/metric/s/v3/connected", Payload: "yes"},
			})
		})
	}
}

// golden is a message of a module, and its meaning.
type golden struct {
	Topic, Payload string
	Retained       bool
	Presence       telematics.PresenceStatus
	Values         json.RawMessage
	Dropped        bool
	Alarm          *telematics.Alarm
	Answer         *struct {
		State          telematics.State
		Reason, Detail string
	}
}

func messages(t testing.TB) (all []golden) {
	t.Helper()
	text, err := os.ReadFile("testdata/messages.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("%d golden messages: %v", len(all), err)
	}
	return all
}

func (g golden) message(t testing.TB) telematics.Message {
	t.Helper()
	unit, subject, err := Dialect{}.ParseTopic(g.Topic)
	if err != nil || unit != "OV-1" {
		t.Fatalf("topic %q: unit %q, %v", g.Topic, unit, err)
	}
	return telematics.Message{Dialect: Dialect{}, Unit: unit, Subject: subject, Payload: []byte(g.Payload), Retained: g.Retained}
}

func TestGoldenMessages_AreDecodedAsTheFirmwareMeansThem(t *testing.T) {
	for _, g := range messages(t) {
		m := g.message(t)
		switch {
		case g.Presence != "":
			p, err := Dialect{}.DecodePresence(m, received)
			if _, _, other := (Dialect{}).DecodeReport(m, received); err != nil || p.Status != g.Presence ||
				!errors.Is(other, telematics.ErrOtherKind) {
				t.Errorf("%s %q: decoded as %+v, %v; as a report: %v", g.Topic, g.Payload, p, err, other)
			}
		case g.Answer != nil:
			a, _, err := Dialect{}.DecodeAnswer(m, received)
			want := telematics.Answer{
				Command: uuid.MustParse(command), At: received, State: g.Answer.State, Reason: g.Answer.Reason,
				Detail: g.Answer.Detail,
			}
			if err != nil || !reflect.DeepEqual(a, want) {
				t.Errorf("answer %q: decoded as %+v, %v", g.Payload, a, err)
			}
		case strings.Contains(g.Topic, "/metric/") && g.Payload == "" && g.Values == nil:
			if _, _, err := (Dialect{}).DecodeReport(m, received); !errors.Is(err, telematics.ErrOtherKind) {
				t.Errorf("%s without a payload: %v, want ErrOtherKind", g.Topic, err)
			}
		default:
			checkReport(t, g, m)
		}
	}
}

func checkReport(t *testing.T, g golden, m telematics.Message) {
	t.Helper()
	r, dropped, err := Dialect{}.DecodeReport(m, received)
	if err != nil || !r.Undated || !r.At.Equal(received) || (len(dropped) == 1) != g.Dropped {
		t.Errorf("%s %q: decoded as %+v, dropped %v, %v", g.Topic, g.Payload, r, dropped, err)
	}
	said, err := json.Marshal(r.Nested())
	require.NoError(t, err)
	var got, want any
	if g.Values == nil {
		g.Values = json.RawMessage("{}")
	}
	if errors.Join(json.Unmarshal(said, &got), json.Unmarshal(g.Values, &want)) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s %q is decoded as %s, want %s", g.Topic, g.Payload, said, g.Values)
	}
	if g.Alarm == nil && len(r.Alarms) > 0 || g.Alarm != nil && !slices.Equal(r.Alarms, []telematics.Alarm{*g.Alarm}) {
		t.Errorf("%s %q: alarms %+v, want %+v", g.Topic, g.Payload, r.Alarms, g.Alarm)
	}
}

// Each metric of the table has a golden message, and each field except the raw ones has one metric:
// with two, the field would change back and forth whenever all metrics are repeated.
func TestGoldenMessages_CoverTheTable(t *testing.T) {
	covered := map[string]bool{}
	from := map[telematics.Field]string{}
	for _, g := range messages(t) {
		m := g.message(t)
		name, ok := strings.CutPrefix(m.Subject, metrics)
		if !ok || name == "s/v3/connected" {
			continue
		}
		r, _, _ := Dialect{}.DecodeReport(m, received)
		for field := range r.Values {
			covered[name] = true
			if before := from[field]; before != "" && before != name {
				t.Errorf("%s has the metrics %s and %s", field, before, name)
			}
			from[field] = name
		}
	}
	for name := range table {
		if !covered[name] && !strings.HasPrefix(name, "v/d/") {
			t.Errorf("the metric %s has no golden message", name)
		}
	}
}

func TestParseTopic_RefusesTwoNames(t *testing.T) {
	for _, topic := range []string{
		"ovms/OV-1/OV-2/metric/v/b/soc", "ovms/OV-1/metric/v/b/soc", "ovms/OV-1/OV-1/", "ovms/OV-1/OV-1", "ovms/O V/O V/metric/x",
		"motorpool/v1/OV-1/ack", "OV-1/OV-1/metric/v/b/soc",
	} {
		if unit, subject, err := (Dialect{}).ParseTopic(topic); err == nil {
			t.Errorf("%q was parsed as unit %q, subject %q", topic, unit, subject)
		}
	}
}

func TestDecodeAnswer_NeedsACommand(t *testing.T) {
	for _, subject := range []string{"client/motorpool/response/", "client/motorpool/response/1", "client/app/response/" +
		command, "metric/v/b/soc"} {
		if a, _, err := (Dialect{}).DecodeAnswer(telematics.Message{Subject: subject, Payload: []byte("Vehicle locked")},
			received); err == nil {
			t.Errorf("subject %q: decoded as %+v, want an error", subject, a)
		}
	}
}

// The module may have executed a command whose answer was cut: a caller must not take it for one
// that was not.
func TestDecodeAnswer_TextThatIsCutIsNoFailure(t *testing.T) {
	for _, text := range []string{"", "\n", "Vehicle", "Vehicle unlock", "Vehicle unlocked\nI (4711) housekeeping: low memory"} {
		a, _, err := Dialect{}.DecodeAnswer(
			telematics.Message{Subject: "client/motorpool/response/" + command, Payload: []byte(text)}, received,
		)
		if err != nil || a.State != telematics.Received || a.Command.String() != command {
			t.Errorf("%q: %+v, %v; want received", text, a, err)
		}
	}
}

func order(i telematics.Installation, a telematics.Action) *telematics.Command {
	return &telematics.Command{
		ID: uuid.MustParse(command), Unit: "OV-1", Protocol: Protocol, Installation: i, Action: a,
		Requested: received, Deadline: received.Add(20 * time.Second),
	}
}

func TestEncode_CommandLines(t *testing.T) {
	for action, line := range map[telematics.Action]string{
		telematics.Lock: "lock 4711", telematics.Unlock: "unlock 4711", telematics.ReportState: "server v3 update all",
	} {
		out, err := Dialect{}.Encode(order(leaf, action), nil)
		if err != nil || string(out.Payload) != line || out.Topic != "ovms/OV-1/OV-1/client/motorpool/command/"+command || out.QoS != 0 ||
			(Dialect{}).Promises(leaf, action).Deduplicated {
			t.Errorf("%s: encoded as %+v, %v", action, out, err)
		}
		assert.Equal(t, out.LeaveBefore, received.Add(5*time.Second), "until when %s may be published", action)
	}
	soon := order(leaf, telematics.Lock)
	soon.Deadline = received.Add(2 * time.Second)
	out, err := Dialect{}.Encode(soon, nil)
	require.NoError(t, err)
	assert.Equal(t, out.LeaveBefore, soon.Deadline, "until when a command of 2 s may be published")
	for _, action := range telematics.ControlActions {
		if action == telematics.Lock || action == telematics.Unlock {
			continue
		}
		if out, err := (Dialect{}).Encode(order(leaf, action), nil); err == nil {
			t.Errorf("%s: encoded as %q, want an error", action, out.Payload)
		}
	}
}

// "lock N" limits the speed of a Twizy to N km/h.
func TestEncode_NeverLocksATwizy(t *testing.T) {
	for _, i := range []telematics.Installation{{TypeKey: Twizy}, {TypeKey: Twizy, PINKey: "4711"}} {
		actions, err := Dialect{}.Actions(i)
		if err != nil || !slices.Equal(actions, []telematics.Action{telematics.ReportState}) {
			t.Errorf("%v: actions %v, %v; want only report-state", i, actions, err)
		}
		for _, a := range []telematics.Action{telematics.Lock, telematics.Unlock} {
			if out, err := (Dialect{}).Encode(order(i, a), nil); err == nil {
				t.Errorf("%s: encoded as %q, want an error", a, out.Payload)
			}
		}
	}
}

func TestConfirmation_OnlyWhereTheVehicleReportsIt(t *testing.T) {
	for kind, want := range map[string][2]bool{"NL": {true, true}, "SQ": {false, true}, "RZ": {}, "SE": {}, "DEMO": {}, Twizy: {}} {
		i := telematics.Installation{TypeKey: kind, PINKey: "4711"}
		lock, unlock := Dialect{}.Confirmation(i, telematics.Lock), Dialect{}.Confirmation(i, telematics.Unlock)
		if (lock[telematics.IsLocked] == true) != want[0] || (unlock[telematics.IsLocked] == false) != want[1] {
			t.Errorf("%s: lock %v, unlock %v, want %v", kind, lock, unlock, want)
		}
		if (Dialect{}).Confirmation(i, telematics.ReportState) != nil {
			t.Errorf("%s: report-state has a confirmation", kind)
		}
	}
}

func TestActions_ErrorHasAHintAndNotThePIN(t *testing.T) {
	for _, bad := range []struct {
		i    telematics.Installation
		want string
	}{
		{telematics.Installation{"Type": "NL"}, `no setting "Type"`},
		{telematics.Installation{TypeKey: "nl", PINKey: "4711"}, "want one of CBOLT, DEMO"},
		{telematics.Installation{TypeKey: ""}, "want one of CBOLT, DEMO"},
		{telematics.Installation{TypeKey: "NL"}, "pin is missing"},
		{telematics.Installation{PINKey: "4711"}, "type is missing"},
		{telematics.Installation{TypeKey: "NL", PINKey: ""}, "4 to 8 digits"},
		{telematics.Installation{TypeKey: "NL", PINKey: "47"}, "4 to 8 digits"},
		{telematics.Installation{TypeKey: "NL", PINKey: "0012"}, "4 to 8 digits"},
		{telematics.Installation{TypeKey: "NL", PINKey: "47 11"}, "4 to 8 digits"},
		{telematics.Installation{TypeKey: "NL", PINKey: "4711\n"}, "4 to 8 digits"},
		{telematics.Installation{TypeKey: "NL", PINKey: "471147114"}, "4 to 8 digits"},
	} {
		actions, err := Dialect{}.Actions(bad.i)
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v: actions %v, %v; want %q", bad.i, actions, err, bad.want)
		} else if pin := bad.i[PINKey]; pin != "" && strings.Contains(err.Error(), pin) {
			t.Errorf("the error has the PIN: %v", err)
		}
		if out, err := (Dialect{}).Encode(order(bad.i, telematics.Lock), nil); err == nil {
			t.Errorf("%v: a lock was encoded as %q", bad.i, out.Payload)
		}
	}
}
