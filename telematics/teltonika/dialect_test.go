package teltonika

import (
	"errors"
	"os"
	"testing"
	"time"

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
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func message(payload string) telematics.Message {
	return telematics.Message{Dialect: Dialect{}, Unit: unit, Payload: []byte(payload)}
}

func TestTeltonikaKeepsTheContractOfDialects(t *testing.T) {
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
	for _, neither := range []string{`{}`, `{"RSP":null}`, `{"state":null}`, `{"state":{},"RSP":"x"}`, `{"CMD":"setdigout 1"}`, `{"RSP":1}`, `7`} {
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
		"DOUT1:ON Timeout:10s Speed threshold:1km/h Speed is above threshold, queued":   telematics.Received,
		"DOUT1:1 Timeout:15s IGN ON, QUEUED":                                            telematics.Received,
		"DOUT1 Is disabled from CFG":                                                    telematics.Rejected,
		"DOUT is disabled from CFG":                                                     telematics.Rejected,
		"WARNING: Not Recognized answer":                                                telematics.Rejected, //nolint:misspell // the unit's spelling
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

func TestRecognises_AnswerToACommandOfTheSameOutputs(t *testing.T) {
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
		{"DOUT is disabled from CFG", telematics.Lock, true}, // it does not name an output
		{"ERROR: wrong parameters", telematics.AttentionSignal, true},
	} {
		command := telematics.Command{Unit: unit, Action: c.action}
		if c.action == telematics.AttentionSignal {
			command.Attention = both
		}
		a, _, err := (Dialect{}).DecodeAnswer(message(`{"RSP":"`+c.text+`"}`), received)
		if err != nil || (Dialect{}).Recognises(van, &command, a) != c.can {
			t.Errorf("%q may answer %s: %t, want %t (%v)", c.text, c.action, !c.can, c.can, err)
		}
	}
}
