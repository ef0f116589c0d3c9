package teltonika

import (
	"errors"
	"os"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/dialecttest"
)

const unit telematics.Unit = "352093081452251"

var received = time.Date(2026, 1, 2, 10, 5, 0, 0, time.UTC)

// van has a complete installation.
var van = telematics.Installation{
	"lock": "output 1 pulse 1s", "unlock": "output 2 pulse 1s", "disable-driving": "output 3 on", "enable-driving": "output 3 off",
	"horn": "output 4", "lights": "output 4", "lock-signal": "can",
}

func golden(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	return string(b)
}

func message(payload string) telematics.Message {
	return telematics.Message{Dialect: Dialect{}, Unit: unit, Payload: []byte(payload)}
}

func TestTeltonika_KeepsTheContractOfDialects(t *testing.T) {
	for name, installation := range map[string]telematics.Installation{
		"complete":              van,
		"without a lock signal": {"lock": "output 1 on", "unlock": "output 1 off"},
		"immobilizer only":      {"disable-driving": "output 1 on", "enable-driving": "output 1 off"},
	} {
		t.Run(name, func(t *testing.T) {
			dialecttest.Contract(t, Dialect{}, dialecttest.Samples{
				Unit: unit, Installation: installation,
				Answer: dialecttest.Line{Topic: "teltonika/352093081452251/data", Payload: golden(t, "answer-switched.json")},
				Report: dialecttest.Line{Topic: "teltonika/352093081452251/data", Payload: golden(t, "record-parked.json")},
			})
		})
	}
}

func TestParseTopic_TopicOfCommandsIsRefused(t *testing.T) {
	for _, topic := range []string{CommandTopic(unit), "teltonika/352093081452251/data/x", "teltonika//data", "teltonika/a b/data"} {
		if u, _, err := (Dialect{}).ParseTopic(topic); err == nil {
			t.Errorf("the topic %q was parsed as unit %q", topic, u)
		}
	}
}

func TestDecode_RecordAndAnswerAreDistinguished(t *testing.T) {
	record, answer := message(golden(t, "record-parked.json")), message(golden(t, "answer-switched.json"))
	if _, _, err := (Dialect{}).DecodeAnswer(record, received); !errors.Is(err, telematics.ErrOtherKind) {
		t.Errorf("a record decoded as an answer: %v, want ErrOtherKind", err)
	}
	if _, _, err := (Dialect{}).DecodeReport(answer, received); !errors.Is(err, telematics.ErrOtherKind) {
		t.Errorf("an answer decoded as a record: %v, want ErrOtherKind", err)
	}
	for _, neither := range []string{
		`{}`, `{"RSP":null}`, `{"state":null}`, `{"state":{},"RSP":"x"}`, `{"CMD":"setdigout 1"}`, `{"RSP":1}`, `7`,
	} {
		if _, _, err := (Dialect{}).DecodeAnswer(message(neither), received); err == nil || errors.Is(err, telematics.ErrOtherKind) {
			t.Errorf("%s decoded as an answer: %v, want another error", neither, err)
		}
		if _, _, err := (Dialect{}).DecodeReport(message(neither), received); err == nil || errors.Is(err, telematics.ErrOtherKind) {
			t.Errorf("%s decoded as a record: %v, want another error", neither, err)
		}
	}
}

// The texts are from Teltonika's pages on setdigout and setigndigout.
func TestDecodeAnswer_StateFollowsFromTheText(t *testing.T) {
	for text, want := range map[string]telematics.State{
		"DOUT1:ON Timeout:INFINITY":                       telematics.Succeeded,
		"DOUT1:ON Timeout:10s":                            telematics.Succeeded,
		"DOUT1:OFF Timeout:INFINITY DOUT2:ON Timeout:20s": telematics.Succeeded,
		"DOUT1:IGNORED DOUT2:ON Timeout:1s":               telematics.Succeeded,
		"DOUT1:1 Timeout:INFINITY":                        telematics.Succeeded,
		"DOUT1:IGNORED":                                   telematics.Received,
		// Outputs that were so already: what units in the field and the page on setigndigout say.
		"DOUT1:ON Timeout:1s DOUT2:IGNORED DOUT3:Already set to 1":                                          telematics.Succeeded,
		"DOUT1:IGNORED DOUT2:IGNORED DOUT3:Already set to 1":                                                telematics.Succeeded,
		"DOUT1:Already set to 0":                                                                            telematics.Succeeded,
		"DOUT1:already set to: OFF":                                                                         telematics.Succeeded,
		"DOUT3 state already set to: 1 time_on_ms: 0 time_off_ms: 0":                                        telematics.Succeeded,
		"DOUT1 state already set to: 1 time_on_ms: 0 time_off_ms: 0 DOUT2:ON Timeout:1s":                    telematics.Succeeded,
		"DOUT1:Already set to 1 DOUT2:ON Timeout:5s Speed threshold:1km/h Speed is above threshold, queued": telematics.Received,
		"DOUTS are set to:0010 TMOs are: 0 0 5 0":                                                           telematics.Succeeded,
		// Of two outputs, one.
		"DOUT1:ON Timeout:1s DOUT3 Is disabled from CFG": telematics.Failed,
		"DOUT1:IGNORED DOUT3 Is disabled from CFG":       telematics.Rejected,
		"DOUT1:Already set to 1 DOUT3 ERROR":             telematics.Failed,
		"DOUT1:ON Timeout:1s DOUT2 params are invalid":   telematics.Failed,
		"DOUT1:ON Timeout:1s DOUT2:something new":        telematics.Received,
		"Bad syntax":         telematics.Failed,
		"Arguments required": telematics.Failed,
		"DOUT1:ON Timeout:10s Speed threshold:1km/h Speed is above threshold, queued":   telematics.Received,
		"DOUT1:1 Timeout:15s IGN ON, QUEUED":                                            telematics.Received,
		"DOUT1 Is disabled from CFG":                                                    telematics.Rejected,
		"DOUT is disabled from CFG":                                                     telematics.Rejected,
		"WARNING: Not Recognized answer":                                                telematics.Rejected, //nolint:misspell // so it is
		"ERROR: wrong parameters":                                                       telematics.Failed,
		"Ver:03.28.07_00 GPS:AXN_5.10_3333 Hw:FMC130 Mod:4 IMEI:352093081452251 Init:1": telematics.Received,
		"": telematics.Received,
	} {
		payload := `{"RSP":"` + text + `"}`
		a, _, err := (Dialect{}).DecodeAnswer(message(payload), received)
		if err != nil || a.State != want || a.Command != telematics.NoCommand || !a.At.Equal(received) || a.Detail != text {
			t.Errorf("%s: %+v, %v; want %s", payload, a, err, want)
		}
		if (a.Reason != "") != (want == telematics.Rejected) {
			t.Errorf("%s: reason %q, want one only for a rejection", payload, a.Reason)
		}
	}
}

func TestRecognise_AnswerToACommandOfTheSameOutputs(t *testing.T) {
	both := &telematics.Attention{Signal: telematics.Both, Duration: time.Second}
	for _, c := range []struct {
		text   string
		action telematics.Action
		can    bool
	}{
		{"DOUT1:ON Timeout:1s", telematics.Lock, true},
		{"DOUT1:1 Timeout:1s", telematics.Lock, true},
		{"DOUT1:ON Timeout:1s", telematics.Unlock, false},
		{"DOUT1:IGNORED DOUT2:ON Timeout:1s", telematics.Unlock, true},
		{"DOUT1:OFF Timeout:1s", telematics.Lock, false},
		{"DOUT1:IGNORED DOUT2:IGNORED DOUT3:ON Timeout:INFINITY", telematics.DisableDriving, true},
		{"DOUT1:IGNORED DOUT2:IGNORED DOUT3:ON Timeout:INFINITY", telematics.EnableDriving, false},
		{"DOUT1:ON Timeout:1s DOUT2:IGNORED DOUT3:ON Timeout:INFINITY", telematics.LockAndDisableDriving, true},
		{"DOUT1:ON Timeout:1s DOUT2:IGNORED DOUT3:ON Timeout:INFINITY", telematics.Lock, true},
		{"DOUT1:ON Timeout:1s", telematics.LockAndDisableDriving, false},
		{"DOUT1:IGNORED DOUT2:IGNORED DOUT3:IGNORED DOUT4:ON Timeout:1s", telematics.AttentionSignal, true},
		{"DOUT1:ON Timeout:1s DOUT2:IGNORED DOUT3:Already set to 1", telematics.LockAndDisableDriving, true},
		{"DOUT1:ON Timeout:1s DOUT2:IGNORED DOUT3:Already set to 0", telematics.LockAndDisableDriving, false},
		{"DOUT1:IGNORED DOUT2:IGNORED DOUT3:Already set to 1", telematics.DisableDriving, true},
		{"DOUT1:IGNORED DOUT2:IGNORED DOUT3:Already set to 1", telematics.EnableDriving, false},
		{"DOUT1:IGNORED DOUT2:IGNORED DOUT3:Already set to 1", telematics.Lock, false},
		{"DOUT3 state already set to: 0 time_on_ms: 0 time_off_ms: 0", telematics.EnableDriving, true},
		{"DOUTS are set to:0010 TMOs are: 0 0 5 0", telematics.DisableDriving, true},
		{"DOUTS are set to:0010 TMOs are: 0 0 5 0", telematics.EnableDriving, false},
		{"DOUT1:ON Timeout:1s DOUT3 Is disabled from CFG", telematics.LockAndDisableDriving, true},
		{"DOUT is disabled from CFG", telematics.Lock, true}, // it does not name an output
		{"ERROR: wrong parameters", telematics.AttentionSignal, true},
	} {
		command := telematics.Command{Unit: unit, Action: c.action}
		if c.action == telematics.AttentionSignal {
			command.Attention = both
		}
		a, _, err := (Dialect{}).DecodeAnswer(message(`{"RSP":"`+c.text+`"}`), received)
		if _, can := (Dialect{}).Recognise(van, &command, a); err != nil || can != c.can {
			t.Errorf("%q may answer %s: %t, want %t (%v)", c.text, c.action, !c.can, c.can, err)
		}
	}
}

// An output that was high before has had no pulse, so nothing shows that the vehicle was locked.
func TestRecognise_PulseOnAnOutputThatWasHighIsAcceptedOnly(t *testing.T) {
	for _, c := range []struct {
		text   string
		action telematics.Action
		want   telematics.State
	}{
		{"DOUT1:Already set to 1", telematics.Lock, telematics.Received},
		{"DOUT1:Already set to 1 DOUT2:IGNORED DOUT3:ON Timeout:INFINITY", telematics.LockAndDisableDriving, telematics.Received},
		{"DOUT1:ON Timeout:1s DOUT2:IGNORED DOUT3:Already set to 1", telematics.LockAndDisableDriving, telematics.Succeeded},
		{"DOUT1:IGNORED DOUT2:IGNORED DOUT3:Already set to 1", telematics.DisableDriving, telematics.Succeeded},
		{"DOUT1:Already set to 1 DOUT3 ERROR", telematics.LockAndDisableDriving, telematics.Failed},
	} {
		a, _, err := (Dialect{}).DecodeAnswer(message(`{"RSP":"`+c.text+`"}`), received)
		if state, can := (Dialect{}).Recognise(van, &telematics.Command{Unit: unit, Action: c.action}, a); err != nil || !can ||
			state != c.want {
			t.Errorf("%q to %s is %s, %t, %v; want %s", c.text, c.action, state, can, err, c.want)
		}
	}
}
